"""A sliced log → a table of the slices that are behind: the steps of the search, in order."""

from __future__ import annotations

import math
from functools import partial
from typing import TypeAlias

import numpy as np
import polars as pl

from polars_mcc._counts.sliced import SAID, SET, SlicedLog
from polars_mcc._inference.arrays import of_arrays
from polars_mcc._inference.differences import adjusted
from polars_mcc._inference.quantiles import normal
from polars_mcc._log.words import crossed
from polars_mcc._scores.segments import Floats, Ints
from polars_mcc._search.codes import Coded, is_ordered
from polars_mcc._search.described import CONFUSION, described
from polars_mcc._search.listed import Cutoff, Listed, listed
from polars_mcc._search.parts import dtype_of, parts
from polars_mcc._search.slices import NOT_A_NUMBER, Looked, Search, Sought, looked_at

VERDICTS = pl.Enum(
    [
        *("listed", "most rows", "beyond the list", "not behind"),
        *("explained by those listed", "no interval"),
    ]
)
LISTED, MOST_ROWS, BEYOND, NOT_BEHIND, EXPLAINED, NO_INTERVAL = range(len(VERDICTS.categories))

_Schema: TypeAlias = dict[str, pl.DataType]


def columns_of_answer(metric: str) -> list[str]:
    """The columns of the answer after the keys and the model."""
    return [
        *("n", metric, f"{metric}_rest", f"{metric}_expected", "diff", "diff_low", "diff_high"),
        *("p_value", "p_adjusted", "loss", "confusion", *CONFUSION, "parts"),
        *("verdict", "n_tested", "n_untested", "n_null"),
    ]


def schema_of(search: Search, log: SlicedLog) -> _Schema:
    """The columns of the result, with their dtypes. A key that may be cut is text."""
    slices: _Schema = {SAID: pl.String(), SET: pl.String()}
    if not search.long:
        can_cut = search.bins is not None
        slices |= {
            key: pl.String() if can_cut and is_ordered(dtype) else dtype
            for key, dtype in log.key_dtypes.items()
        }
    if log.has_models:
        slices["model"] = pl.String()
    count = log.numbers.count
    known = dict.fromkeys(CONFUSION[:2], log.label_dtype)
    known |= {"confusion": pl.String(), "parts": dtype_of(search.metric.name, count)}
    known |= {"verdict": VERDICTS, "n": count, "n_null": count}
    known |= dict.fromkeys(("n_tested", "n_untested"), pl.Int64())
    return slices | {
        name: known.get(name, pl.Float64()) for name in columns_of_answer(search.metric.name)
    }


def searched(search: Search, every: Coded) -> pl.DataFrame:
    """The result: the slices of all models, sorted, at most `top`."""
    models = every.log.models
    found = [_of_model(Sought(**vars(search), coded=every, model=model)) for model in models]
    rows = _in_order(every, pl.concat(found, how="diagonal_relaxed"))
    ranked = _answer(search, every, rows, schema_of(search, every.log))
    return ranked if search.top is None else ranked.head(search.top)


def _of_model(sought: Sought) -> pl.DataFrame:
    """The listed slices of one model, or all slices; the rest of the log is of the same model."""
    cutoff_of = partial(Cutoff, sought.correction, 1 - sought.ci)

    def needed(tests: int) -> float:
        return 0.0 if sought.verdicts else cutoff_of(tests).needed(sought)

    looked = looked_at(sought, needed)
    is_tested = looked.is_distinct & ~np.isnan(looked.compared.evidence)
    n_tested, n_slices = (int(one.sum()) for one in (is_tested, looked.is_distinct))
    cutoff = cutoff_of(n_tested)
    chosen = listed(sought, looked, cutoff)
    rows = _listed(sought, chosen, looked, cutoff)
    if sought.verdicts:
        others = _others(sought, looked, chosen, cutoff)
        rows = _in_order(sought.coded, pl.concat([rows, others], how="diagonal_relaxed"))
        if not len(chosen.slices):
            nearest = rows[:1]
            known = _described(sought, looked, nearest["number"].to_numpy())
            rows = pl.concat([nearest.with_columns(known), rows[1:]], how="diagonal_relaxed")
    elif rows.height:
        rows = rows.filter(verdict=LISTED)
    if rows.is_empty():
        return rows
    return rows.with_columns(
        n_tested=pl.lit(n_tested, pl.Int64),
        n_untested=pl.lit(looked.n_small + n_slices - n_tested, pl.Int64),
        loss=pl.col("rest") - looked.overall,
        model=pl.lit(sought.model),
    )


def _described(sought: Sought, looked: Looked, slices: Ints) -> list[pl.Series]:
    """What is known only of the slices that are shown first: none without slices."""
    if not len(slices):
        return []
    known = described(sought, looked, slices)
    return [*known.get_columns(), parts(sought, looked, slices)]


def _slices(sought: Sought, looked: Looked, numbers: Ints) -> pl.DataFrame:
    """The places and ranks of the values of slices, and their rows."""
    keys = sought.coded.keys
    places = looked.places(numbers, [*keys])
    columns: dict[str, Ints] = {"number": numbers, "n": looked.n[numbers]}
    columns["n_null"] = looked.n_null[numbers]
    for at, key in enumerate(keys.values()):
        columns[key.column] = places[:, at]
        columns[f"rank:{key.name}"] = key.ranks(places[:, at])
    is_key = pl.col([key.column for key in keys.values()])
    return pl.DataFrame(columns).with_columns(pl.when(is_key >= 0).then(is_key))


def _listed(sought: Sought, chosen: Listed, looked: Looked, cutoff: Cutoff) -> pl.DataFrame:
    """The listed slices, with their exact scores."""
    slices, p_value = chosen.slices, chosen.p_value
    if not len(slices):
        return pl.DataFrame()
    is_most = looked.n[slices] > sought.max_share * looked.n_rows
    p_adjusted = np.empty(len(slices))
    for one in (is_most, ~is_most):
        p_adjusted[one] = adjusted(p_value[one], sought.correction, cutoff.tests)
    own = normal(np.array([chosen.exact[one] for one in slices.tolist()]))
    rows = _slices(sought, looked, slices).with_columns(
        *_described(sought, looked, slices),
        *of_arrays(p_value=own, p_adjusted=p_adjusted),
        verdict=pl.Series(np.where(is_most, MOST_ROWS, LISTED)),
    )
    turn, end = sought.scale.turn, "diff_low" if sought.scale.turn < 0 else "diff_high"
    rows = rows.with_columns(rest=turn * pl.col("score_a"))
    loss = pl.col("rest") - looked.overall
    return rows.with_columns(order=-loss if sought.rank == "loss" else turn * pl.col(end))


def _others(sought: Sought, looked: Looked, chosen: Listed, cutoff: Cutoff) -> pl.DataFrame:
    """The slices that are not listed. Each `p_adjusted` supposes that its slice is listed next."""
    is_other = looked.is_distinct.copy()
    is_other[chosen.slices] = False
    [slices] = np.nonzero(is_other)
    evidence = looked.compared.evidence[slices]
    exact = np.array([chosen.exact.get(one, math.nan) for one in slices.tolist()])
    p = shown = normal(np.where(np.isnan(exact), evidence, exact))
    if sought.coded.clusters is not None:  # Hide p-values that take rows as independent.
        shown = np.where((evidence == 0) | ~np.isnan(exact), p, math.nan)
    n_listed = len(chosen.slices)
    p_of_next = cutoff.at(n_listed + 1)
    verdict = np.full(len(slices), NOT_BEHIND)
    if n_listed:
        verdict[p <= p_of_next] = EXPLAINED
    verdict[np.isin(slices, chosen.beyond)] = BEYOND
    verdict[np.isnan(evidence)] = NO_INTERVAL
    p_adjusted = np.minimum(shown / p_of_next * cutoff.level, 1.0)
    score, rest = (
        pl.Series(name, shown[slices], nan_to_null=True).replace(NOT_A_NUMBER, math.nan)
        for name, shown in (
            ("score_b", looked.compared.shown),
            ("score_a", looked.compared.shown_rest),
        )
    )
    expected: Floats = np.full(len(slices), math.nan)
    if sought.to == "expected":
        expected = sought.scale.turned(looked.compared.reference[slices])
    of_labels = pl.Series("expected", expected, nan_to_null=True)
    return _slices(sought, looked, slices).with_columns(
        score,
        rest,
        *of_arrays(
            p_value=shown,
            p_adjusted=np.where(verdict == NOT_BEHIND, p_adjusted, math.nan),
            order=p,
            rest=looked.compared.rest[slices],
        ),
        of_labels,
        verdict=pl.Series(verdict),
        diff=score - (rest if sought.to == "rest" else of_labels),
    )


def _answer(search: Search, coded: Coded, rows: pl.DataFrame, schema: _Schema) -> pl.DataFrame:
    """The named columns of the result."""
    keys, metric = coded.keys.values(), search.metric.name
    if rows.is_empty():
        return pl.DataFrame(schema=schema)

    def known(what: str) -> list[pl.Expr]:
        return [pl.lit(key.values[what]).gather(pl.col(key.column)) for key in keys]

    set_ = [pl.when(pl.col(key.column).is_not_null()).then(pl.lit(key.name)) for key in keys]
    of_keys = {} if search.long else dict(zip(coded.keys, known("value"), strict=True))
    values = of_keys | {
        metric: pl.col("score_b"),
        f"{metric}_rest": pl.col("score_a"),
        f"{metric}_expected": pl.col("expected"),
        SAID: crossed(known("said")),
        SET: pl.concat_str(set_, separator=", ", ignore_nulls=True),
        "verdict": pl.lit(pl.Series([*VERDICTS.categories], dtype=VERDICTS)).gather("verdict"),
    }
    return rows.select(
        values.get(name, pl.col(name)).cast(dtype).alias(name) for name, dtype in schema.items()
    )


def _in_order(coded: Coded, rows: pl.DataFrame) -> pl.DataFrame:
    """Sort the rows. Sums of floats differ in the last digits from run to run, so these are cut."""
    if rows.is_empty():
        return rows
    ranks = [f"rank:{name}" for name in coded.keys]
    n = pl.col("n").cast(pl.Float64).round_sig_figs(12)  # weights are summed too
    by = ["verdict", pl.col("order").round_sig_figs(7), -n, *ranks]
    return rows.sort(by, nulls_last=True, maintain_order=True)

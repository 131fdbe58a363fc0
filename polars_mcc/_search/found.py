"""A sliced log → a table of the slices that are behind: the steps of the search, in order."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TypeAlias

import polars as pl

from polars_mcc._counts.sliced import SAID, SET, SlicedLog
from polars_mcc._inference.differences import with_adjusted
from polars_mcc._inference.quantiles import two_sided
from polars_mcc._log.words import crossed
from polars_mcc._search.codes import Coded, coded, is_ordered
from polars_mcc._search.counting import SLICE
from polars_mcc._search.described import CONFUSION, described
from polars_mcc._search.listed import Cutoff, Listed, listed
from polars_mcc._search.parts import dtype_of, parts
from polars_mcc._search.slices import Looked, Search, Sought, looked_at

VERDICTS = pl.Enum(
    [
        *("listed", "most rows", "beyond the list", "not behind"),
        *("explained by those listed", "no interval"),
    ]
)
LISTED, MOST_ROWS, BEYOND, NOT_BEHIND, EXPLAINED, NO_INTERVAL = (
    pl.lit(name, VERDICTS) for name in VERDICTS.categories
)

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


def searched(search: Search, log: SlicedLog) -> pl.DataFrame:
    """The result: the slices of all models, sorted, at most `top`."""
    every = coded(log, bins=search.bins, least=search.min_n)
    found = []
    for model in log.models:
        of_model = replace(every, log=replace(every.log, models=(model,), has_models=False))
        slices = _of_model(Sought(**vars(search), coded=of_model))
        found.append(slices.with_columns(model=pl.lit(model)))
    rows = _in_order(every, pl.concat(found, how="diagonal_relaxed"))
    ranked = _answer(search, every, rows, schema_of(search, log))
    return ranked if search.top is None else ranked.head(search.top)


def _of_model(sought: Sought) -> pl.DataFrame:
    """The listed slices of one model, or all slices; the rest of the log is of the same model."""
    cutoff_of = partial(Cutoff, sought.correction, 1 - sought.ci)

    def needed(tests: int) -> float:
        return 0.0 if sought.verdicts else cutoff_of(tests).needed(sought)

    looked = looked_at(sought, needed)
    n_tested = looked.slices["evidence"].drop_nulls().len()
    cutoff = cutoff_of(n_tested)
    chosen = listed(sought, looked, cutoff)
    rows = _listed(sought, chosen.slices, looked, cutoff)
    if not sought.verdicts:
        rows = rows.filter(pl.col("verdict") == LISTED)
    else:
        others = _others(sought, looked.slices, chosen, cutoff)
        rows = _in_order(sought.coded, pl.concat([rows, others], how="diagonal_relaxed"))
        if chosen.slices.is_empty():
            nearest = rows.head(1)
            known = described(sought, nearest)
            rows = rows.update(known.with_columns(parts(sought, looked, nearest)), on=SLICE)
    return rows.with_columns(
        n_tested=pl.lit(n_tested, pl.Int64),
        n_untested=pl.lit(looked.n_small + looked.slices.height - n_tested, pl.Int64),
        loss=pl.col("rest") - pl.lit(looked.overall, pl.Float64),
    )


def _listed(sought: Sought, chosen: pl.DataFrame, looked: Looked, cutoff: Cutoff) -> pl.DataFrame:
    """The listed slices, with their exact scores."""
    is_most = pl.col("n") > sought.max_share * looked.n
    decisive = chosen.with_columns(own=two_sided(pl.col("evidence")))
    apart = [decisive.filter(is_most == pl.lit(one)) for one in (False, True)]
    lists = (with_adjusted(one, sought.correction, cutoff.tests) for one in apart)
    sure = pl.concat(lists).with_columns(p_value="own")
    scores = described(sought, chosen)
    rows = sure.drop("score").join(scores, on=SLICE, maintain_order="left")
    scale, end = sought.scale, "diff_low" if sought.scale.turn < 0 else "diff_high"
    loss = scale.turned(pl.col("score_a")) - pl.lit(looked.overall, pl.Float64)
    order = -loss if sought.rank == "loss" else scale.turned(pl.col(end))
    return rows.with_columns(
        parts(sought, looked, rows),
        rest=scale.turned(pl.col("score_a")),
        order=order,
        verdict=pl.when(is_most).then(MOST_ROWS).otherwise(LISTED),
    )


def _others(sought: Sought, slices: pl.DataFrame, chosen: Listed, cutoff: Cutoff) -> pl.DataFrame:
    """The slices that are not listed. Each `p_adjusted` supposes that its slice is listed next."""
    n_listed, evidence = chosen.slices.height, pl.col("evidence")
    others = slices.join(chosen.slices, on=SLICE, how="anti", maintain_order="left").join(
        chosen.exact, on=SLICE, how="left", suffix="_exact", maintain_order="left"
    )
    exact = pl.col("evidence_exact")
    p = two_sided(pl.coalesce(exact, evidence))
    shown = p
    if sought.coded.log.has_clusters:  # Hide p-values that take rows as independent.
        shown = pl.when((evidence == 0) | exact.is_not_null()).then(p)
    p_of_next = cutoff.at(n_listed + 1)
    is_explained = (p <= p_of_next) if n_listed else pl.lit(value=False)
    verdict = (
        pl.when(evidence.is_null())
        .then(NO_INTERVAL)
        .when(pl.col(SLICE).is_in(chosen.beyond[SLICE].implode()))
        .then(BEYOND)
        .when(is_explained)
        .then(EXPLAINED)
        .otherwise(NOT_BEHIND)
    )
    expected, reference = pl.lit(None, pl.Float64), pl.col("shown_rest")
    if sought.to == "expected":
        expected = reference = sought.scale.turned(pl.col("reference"))
    return others.with_columns(
        p_value=shown,
        p_adjusted=pl.when(verdict == NOT_BEHIND).then(
            (shown / p_of_next * cutoff.level).clip(upper_bound=1.0)
        ),
        score_b="shown",
        score_a="shown_rest",
        diff=pl.col("shown") - reference,
        expected=expected,
        order=p,
        verdict=verdict,
    )


def _answer(search: Search, coded: Coded, rows: pl.DataFrame, schema: _Schema) -> pl.DataFrame:
    """The named columns of the result."""
    keys, metric = coded.keys.values(), search.metric.name
    set_ = [pl.when(pl.col(key.column).is_not_null()).then(pl.lit(key.name)) for key in keys]
    values = {} if search.long else {key.name: key.known("value") for key in keys}
    values |= {
        metric: pl.col("score_b"),
        f"{metric}_rest": pl.col("score_a"),
        f"{metric}_expected": pl.col("expected"),
        SAID: crossed(key.known("said") for key in keys),
        SET: pl.concat_str(set_, separator=", ", ignore_nulls=True),
    }
    return rows.select(
        values.get(name, pl.col(name)).cast(dtype).alias(name) for name, dtype in schema.items()
    )


def _in_order(coded: Coded, rows: pl.DataFrame) -> pl.DataFrame:
    """Sort the rows. Sums of floats differ in the last digits from run to run, so these are cut."""
    keys = [key.column for key in coded.keys.values()]
    n = pl.col("n").cast(pl.Float64).round_sig_figs(12)  # weights are summed too
    by = ["verdict", pl.col("order").round_sig_figs(7), -n, *keys]
    return rows.sort(by, nulls_last=True, maintain_order=True)

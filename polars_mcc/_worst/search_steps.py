"""A coded log → a table of the slices that are behind: the steps of the search, in order."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import polars as pl

from polars_mcc._base.slice_names import crossed_name
from polars_mcc._comparisons.columns_of_answers import CONFUSION
from polars_mcc._comparisons.evidence_and_p_values import adjusted
from polars_mcc._counts.sliced_log import N_WAITING, SAID, SET, SlicedLog
from polars_mcc._intervals.count_arrays import of_arrays
from polars_mcc._intervals.interval_methods import normal
from polars_mcc._metrics.slice_sums import Flags, Floats, Ints
from polars_mcc._worst.column_codes import CodedLog, is_ordered
from polars_mcc._worst.compared_slices import compared_slices
from polars_mcc._worst.listed_scores_and_confusions import described
from polars_mcc._worst.listed_slices import SliceList, list_slices
from polars_mcc._worst.rows_of_slices import LogRows, spans
from polars_mcc._worst.slice_scores import (
    ComparedSlices,
    Cutoff,
    ModelSearch,
    SearchSettings,
    as_shown,
)

VERDICTS = pl.Enum(
    [
        *("listed", "beyond the list", "not behind"),
        *("explained by those listed", "no interval", "too few rows"),
    ]
)
LISTED, BEYOND, NOT_BEHIND, EXPLAINED, NO_INTERVAL, TOO_FEW = range(len(VERDICTS.categories))

_Schema: TypeAlias = dict[str, pl.DataType]


def schema_of(settings: SearchSettings, log: SlicedLog) -> _Schema:
    """The columns of the result, with their dtypes. A key that may be cut is text."""
    slices: _Schema = {SAID: pl.String(), SET: pl.String()}
    if not settings.long:
        can_cut = settings.bins is not None
        slices |= {
            key: pl.String() if can_cut and is_ordered(dtype) else dtype
            for key, dtype in log.key_dtypes.items()
        }
    if log.has_models:
        slices["model"] = pl.String()
    count = log.numbers.count
    known = dict.fromkeys(CONFUSION[:2], log.label_dtype)
    known |= dict.fromkeys(("metric", "confusion", "explained_by"), pl.String())
    known |= {"verdict": VERDICTS, "n": count, **dict.fromkeys(log.unscored, count)}
    known |= dict.fromkeys(("n_tested", "n_untested"), pl.Int64())
    return slices | {name: known.get(name, pl.Float64()) for name in settings.columns}


def searched(settings: SearchSettings, log: CodedLog) -> pl.DataFrame:
    """The result: the slices of all models, sorted, at most `top`."""
    of_models = [_of_model(ModelSearch.of(settings, log, model)) for model in log.sliced.models]
    rows = _in_order(log, pl.concat(of_models, how="diagonal_relaxed"))
    schema = schema_of(settings, log.sliced)
    keys = log.keys.values()
    if rows.is_empty():
        return pl.DataFrame(schema=schema)
    value = [pl.lit(key.values["value"]).gather(pl.col(key.column)) for key in keys]
    set_ = [pl.when(pl.col(key.column).is_not_null()).then(pl.lit(key.name)) for key in keys]
    of_keys = {} if settings.long else dict(zip(log.keys, value, strict=True))
    values = of_keys | {
        "metric": pl.lit(settings.metric.name),
        SET: pl.concat_str(set_, separator=", ", ignore_nulls=True),
        "verdict": pl.lit(pl.Series([*VERDICTS.categories], dtype=VERDICTS)).gather("verdict"),
    }
    return rows.head(settings.top or rows.height).select(
        values.get(name, pl.col(name)).cast(dtype).alias(name) for name, dtype in schema.items()
    )


def _of_model(search: ModelSearch) -> pl.DataFrame:
    """The listed slices of one model, or all slices; the rest of the log is of the same model."""
    compared = compared_slices(search)
    n_slices = int(compared.is_distinct.sum())
    n_tested = int((compared.is_distinct & ~np.isnan(compared.comparisons.evidence)).sum())
    cutoff = search.cutoff(n_tested)
    log = LogRows.of(search, compared)
    listed = list_slices(log, cutoff)
    rows = _listed(log, listed, cutoff)
    if search.settings.verdicts:
        unlisted = _unlisted(search, compared, listed, cutoff)
        rows = pl.concat([rows, unlisted], how="diagonal_relaxed")
        if not len(listed.slices):
            rows = _in_order(search.log, rows)
            nearest = rows[:1]
            known = described(log, nearest["number"].to_numpy())
            rows = pl.concat([nearest.with_columns(known), rows[1:]], how="diagonal_relaxed")
    if rows.is_empty():
        return rows
    keys = search.log.keys.values()
    said = [pl.lit(key.values["said"]).gather(pl.col(key.column)) for key in keys]
    rows = rows.with_columns(crossed_name(said).alias(SAID))
    name_of = pl.col("explained_by").replace_strict(
        rows["number"], rows[SAID], default=None, return_dtype=pl.String
    )
    return rows.with_columns(
        name_of,
        n_tested=pl.lit(n_tested, pl.Int64),
        n_untested=pl.lit(compared.n_small + n_slices - n_tested, pl.Int64),
        loss=_loss(search, compared),
        model=pl.lit(search.model),
    )


def _loss(search: ModelSearch, compared: ComparedSlices) -> pl.Expr:
    """How much better the log would score without a slice: both scores are as in `by`."""
    [overall] = as_shown(np.array([compared.shown_overall]))
    better = pl.col("reference") - pl.lit(overall, pl.Float64)
    return (search.scale.turn * better).fill_nan(None)


def _values_and_sizes(compared: ComparedSlices, numbers: Ints) -> pl.DataFrame:
    """The places and ranks of the values of slices, and their rows."""
    places = compared.places(numbers)
    columns = {"number": numbers, "n": compared.n[numbers]}
    columns |= dict(zip(("n_null", N_WAITING), compared.unscored[:, numbers], strict=True))
    for key, of_key in zip(compared.keys, places.T, strict=True):
        columns[key.column], columns[f"rank:{key.name}"] = of_key, key.rank[of_key]
    is_key = pl.col([key.column for key in compared.keys])
    return pl.DataFrame(columns).with_columns(pl.when(is_key >= 0).then(is_key))


def _listed(log: LogRows, listed: SliceList, cutoff: Cutoff) -> pl.DataFrame:
    """The listed slices, with their exact scores."""
    search, compared, slices = log.search, log.compared, listed.slices
    settings, turn = search.settings, search.scale.turn
    if not len(slices):
        return pl.DataFrame()
    own, p_beside = np.array([listed.own[at] for at in slices.tolist()]), normal(listed.beside)
    rows = _values_and_sizes(compared, slices).with_columns(
        *described(log, slices),
        *of_arrays(
            p_value=normal(own),
            p_beside=p_beside,
            p_adjusted=adjusted(p_beside, settings.correction, cutoff.tests),
            left=listed.beside / own,
        ),
        verdict=pl.lit(LISTED),
        explained_by=pl.lit(None, pl.Int64),
    )
    gap = turn * pl.col("diff_low" if turn < 0 else "diff_high")
    order = -_loss(search, compared) if settings.rank == "loss" else gap
    return rows.with_columns(order=order, beside=pl.col("diff") * pl.col("left"))


def _unlisted(
    search: ModelSearch, compared: ComparedSlices, listed: SliceList, cutoff: Cutoff
) -> pl.DataFrame:
    """The slices that are not listed. Each `p_adjusted` supposes that its slice is listed next."""
    is_unlisted = compared.is_distinct.copy()
    is_unlisted[listed.slices] = False
    [slices] = np.nonzero(is_unlisted)
    comparisons = compared.comparisons
    evidence = comparisons.evidence[slices]
    exact = np.array([listed.own.get(number, math.nan) for number in slices.tolist()])
    p = shown = normal(np.where(np.isnan(exact), evidence, exact))
    if search.log.clusters is not None:  # Hide p-values that take rows as independent.
        shown = np.where((evidence == 0) | ~np.isnan(exact), p, math.nan)
    p_of_next = float(cutoff.largest_p(len(listed.slices) + 1))
    verdict = np.full(len(slices), NOT_BEHIND)
    if len(listed.slices):
        verdict[p <= p_of_next] = EXPLAINED
    verdict[np.isin(slices, listed.beyond)] = BEYOND
    verdict[np.isnan(evidence)] = NO_INTERVAL
    verdict[compared.is_large[slices]] = TOO_FEW
    p_adjusted = np.minimum(shown / p_of_next * cutoff.level, 1.0)
    score, rest = as_shown(comparisons.shown[slices]), as_shown(comparisons.shown_rest[slices])
    expected: Floats = np.full(len(slices), math.nan)
    if search.settings.to == "expected":
        expected = search.scale.turn * comparisons.reference[slices]
    of_labels = pl.Series("expected", expected, nan_to_null=True)
    arrays = of_arrays(
        p_value=shown, p_adjusted=np.where(verdict == NOT_BEHIND, p_adjusted, math.nan), order=p
    )
    diff = score - (rest if search.settings.to == "rest" else of_labels)
    by = _explained_by(compared, listed, slices, verdict == EXPLAINED)
    rows = _values_and_sizes(compared, slices).with_columns(of_labels, *arrays, explained_by=by)
    rows = rows.with_columns(
        pl.lit(None, pl.Float64).alias(name) for name in ("beside", "p_beside")
    )
    return rows.with_columns(score=score, reference=rest, diff=diff, verdict=pl.Series(verdict))


def _explained_by(
    compared: ComparedSlices, listed: SliceList, slices: Ints, explained: Flags
) -> pl.Series:
    """The number of the surest listed slice that no key keeps apart from each explained one."""
    (firsts, lasts), (first, last) = (spans(compared, of) for of in (slices, listed.slices))
    surest = np.full(len(slices), -1)
    for place in np.argsort(listed.beside).tolist():
        shares = (np.maximum(firsts, first[place]) <= np.minimum(lasts, last[place])).all(axis=1)
        surest[shares & explained] = listed.slices[place]
    return pl.Series(surest).replace(-1, None)


def _in_order(log: CodedLog, rows: pl.DataFrame) -> pl.DataFrame:
    """Sort the rows. Sums of floats differ in the last digits from run to run, so these are cut."""
    if rows.is_empty():
        return rows
    ranks = [f"rank:{name}" for name in log.keys]
    n = pl.col("n").cast(pl.Float64).round_sig_figs(12)  # weights are summed too
    by = ["verdict", pl.col("order").round_sig_figs(7), -n, *ranks]
    return rows.sort(by, nulls_last=True, maintain_order=True)

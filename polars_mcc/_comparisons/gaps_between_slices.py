"""Pairs of slices → the gap between the lowest and the highest slice, for each metric."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from polars_mcc._base.allowed_values import Correction
from polars_mcc._base.slice_names import slice_name
from polars_mcc._base.values_as_text_or_markdown import as_text
from polars_mcc._comparisons.corrected_p_values import with_adjusted
from polars_mcc._comparisons.difference_interval import Side
from polars_mcc._comparisons.evidence import LEVEL
from polars_mcc._comparisons.gap_and_spread import Compared, Gap, gap_of, scale_of
from polars_mcc._counts.class_counts import is_scored, unscored_sums
from polars_mcc._counts.sliced_log import KEY, SET, SlicedLog, joined
from polars_mcc._intervals.count_arrays import floats
from polars_mcc._intervals.interval_options import IntervalOptions
from polars_mcc._intervals.scores_with_intervals import estimate
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.slice_sums import Segments

_GROUP, _ROWS = "of:group", "of:rows"  # no metric has these names
LEAST_ROWS = 0.5
"""A score of fewer effective rows is not compared: it may be nearly anything of its range."""
ENDS = ("lowest", "highest")
COLUMNS = {
    "metric": pl.String(),
    "n_slices": pl.Int64(),
    "n": pl.Int64(),
    **{
        f"{end}{what}": dtype
        for end in ENDS
        for what, dtype in (("", pl.String()), ("_value", pl.Float64()))
    },
    **dict.fromkeys(Gap._fields, pl.Float64()),
}
"""The columns of a gap. Float weights have a float `n`."""


def gaps(
    log: SlicedLog,
    whole: SlicedLog,
    pairs: pl.DataFrame,
    asked: IntervalOptions,
    *,
    min_n: int,
    correction: Correction,
) -> pl.DataFrame:
    """The gap between the slices of each slice of `whole`, for each metric.

    Slices of fewer than `min_n` rows are left out, and scores without an interval.
    """
    own = [key for key in log.keys if key not in whole.keys]
    if log.sets is not None:  # A set without keys of its own has one slice.
        of_keys = [name for name, keys in log.sets.items() if {*keys} & {*own}]
        pairs = pairs.filter(pl.col(SET).cast(pl.String).is_in(of_keys))
    scored = pairs.lazy().filter(is_scored(log))
    rows = log.numbers.total(pl.col("n")).cast(pl.Float64)
    if not log.is_frequency:  # so many rows of equal weight would be as good
        rows = rows.pow(2) / pl.col("squares").sum()
    large = log.per_slice(scored, rows=rows).filter(pl.col("rows") >= min_n).collect()
    kept = joined(pairs, large, log.slice, how="semi")
    estimated = estimate(log, kept, replace(asked, ci=LEVEL), within=whole.slice)
    effective = estimated.cells.pairs.effective(is_frequency=log.is_frequency)
    scores = estimated.scores.with_columns(pl.Series(_ROWS, effective, pl.Float64))
    unscored = {name: log.numbers.as_count(number) for name, number in unscored_sums(log).items()}
    groups = whole.per_slice(pairs.lazy(), **unscored).collect()
    numbered = groups.select(*whole.slice).with_row_index(_GROUP).lazy()
    slices = whole.beside(scores.lazy(), numbered).sort(_GROUP, *log.slice).collect()
    texts = {key: as_text(pl.col(KEY + key), log.key_dtypes[key]) for key in own}
    names = slices.select(slice_name(texts, log.sets))
    segments = Segments.of(slices[_GROUP].to_numpy(), groups.height)
    answers = [
        _of_metric(slices, names.to_series(), segments, metric, asked.ci).hstack(groups)
        for metric in asked.metrics
    ]
    return with_adjusted(pl.concat(answers), correction).select(
        *whole.slice, *COLUMNS, "p_adjusted", *log.unscored
    )


def _of_metric(
    slices: pl.DataFrame, names: pl.Series, segments: Segments, metric: Metric, ci: float
) -> pl.DataFrame:
    """The gap of a metric in each group of slices."""
    score, low, high, _ = Side.of(slices, metric.name)
    scale, n = scale_of(metric), floats(slices[_ROWS])
    below, above = (scale.effective_rows(score, limit, n) for limit in (low, high))
    # At an end of the range, one limit is the score.
    rows = np.fmin(below, above)
    below, above = (np.where(np.isnan(side), rows, side) for side in (below, above))
    is_known = (rows > LEAST_ROWS) & ~np.isnan(low) & ~np.isnan(high)
    answers = []
    for start, length in zip(segments.starts, segments.lengths, strict=True):
        places = start + np.flatnonzero(is_known[start : start + length])
        group = Compared(score[places], below[places], above[places])
        size = slices["n"].gather(places).sum()
        answer: dict[str, Any] = {"metric": metric.name, "n_slices": len(places), "n": size}
        if len(places):
            ends = (places[group.score.argmin()], places[group.score.argmax()])
            for end, place in zip(ENDS, ends, strict=True):
                answer |= {end: names[int(place)], f"{end}_value": score[place]}
        gap = gap_of(group, scale, ci)._asdict()
        answer |= {name: None if math.isnan(value) else value for name, value in gap.items()}
        answers.append(answer)
    return pl.DataFrame(answers, COLUMNS | {"n": slices.schema["n"]})

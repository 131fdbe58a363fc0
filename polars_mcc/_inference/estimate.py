"""Pairs → the scores of slices, with standard errors and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from polars_mcc._counts.classes import is_scored, of_pairs
from polars_mcc._counts.counted import without_clusters
from polars_mcc._counts.exact import count_where
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.options import IntervalOptions, columns_of, with_limits_of
from polars_mcc._inference.tables import Pool
from polars_mcc._inference.variance import over_draws
from polars_mcc._scores.levels import levels_of
from polars_mcc._scores.measure import measure
from polars_mcc._scores.metric import Metric, Needed


class Estimate(NamedTuple):
    """The scores of slices, and the influence of a row on each score."""

    log: SlicedLog
    scores: pl.LazyFrame
    """A row per slice: `n`, `n_clusters` if there are clusters, metrics, intervals, `n_null`."""
    influences: Mapping[str, pl.LazyFrame]
    """For each metric, the scored pairs of each slice with their influence `phi`."""


def estimate(log: SlicedLog, pairs: pl.LazyFrame, options: IntervalOptions) -> Estimate:
    """Score each slice of a log from its pairs, with standard errors and intervals.

    If the log has clusters, `pairs` are split by cluster. A metric without a derivative raises a
    ValueError.
    """
    # A frame that is used twice is cached: else Polars reads the log once per use.
    cells = pairs.cache()
    pairs = without_clusters(log, cells)
    classes = of_pairs(log, pairs).cache()
    metrics, positive, pool = options.metrics, options.positive, options.pool
    levels = levels_of(log, pairs).cache() if log.is_of_scores else None
    measured = measure(log, classes, metrics, pairs=pairs, levels=levels, positive=positive).cache()
    names = [metric.name for metric in options.sure]
    moved: dict[str, pl.LazyFrame] = {}
    if names:
        from polars_mcc._inference import influences, intervals  # noqa: PLC0415 - only if one asks

        found = influences.influences(log, pairs, classes, levels, options)
        moved = {name: found.of(name) for name in names}
        scores = log.beside(
            measured, intervals.limits_of_slices(log, cells, measured, found, options)
        )
    else:
        scores = log.beside(measured, over_draws(log, cells.filter(is_scored(log))).drop("n"))
    unsure = columns_of(metric.name for metric in metrics if metric.no_interval)
    scores = scores.with_columns(**dict.fromkeys(unsure, pl.lit(None, pl.Float64)))
    if pool is not None:
        scores = _comparable(log, scores, classes, metrics, pool)
    n_clusters = [pl.col("n_clusters").fill_null(0)] if log.has_clusters else []
    with_limits = with_limits_of(metric.name for metric in metrics)
    scores = scores.select(*log.slice, "n", *n_clusters, *with_limits, "n_null")
    return Estimate(log, scores, moved)


def _comparable(
    log: SlicedLog,
    scores: pl.LazyFrame,
    classes: pl.LazyFrame,
    metrics: Sequence[Metric],
    pool: Pool,
) -> pl.LazyFrame:
    """Drop the limits of slices that lack the classes that a comparison needs."""
    whole = pool.log
    n_classes = {
        side: count_where(pl.col(f"{side}_n") > 0).cast(pl.Int64) for side in ("gold", "pred")
    }
    here = log.per_slice(classes, **n_classes)
    there = whole.per_slice(
        of_pairs(whole, pool.pairs),
        **{f"all_{side}": number for side, number in n_classes.items()},
    )
    limits = {
        column: pl.when(has_classes(metric.classes_needed)).then(column)
        for metric in metrics
        for column in columns_of([metric.name])
    }
    return whole.beside(log.beside(scores, here), there).with_columns(**limits)


def has_classes(needed: Needed) -> pl.Expr:
    """Whether a slice has the classes, by the number of `gold` and `pred` classes, and of all."""
    has_all_gold = (pl.col("gold") >= 2) & (pl.col("gold") == pl.col("all_gold"))
    return {
        "any": pl.lit(value=True),
        "two gold": pl.col("gold") >= 2,
        "all gold": has_all_gold,
        "all": has_all_gold & (pl.col("pred") == pl.col("all_pred")),
    }[needed]


def ranges_of(metrics: Sequence[Metric]) -> dict[str, tuple[float | None, float | None]]:
    """The range of each metric; None for an end that depends on the slice."""
    return {
        metric.name: (
            None if isinstance(metric.range.low, pl.Expr) else metric.range.low,
            None if isinstance(metric.range.high, pl.Expr) else metric.range.high,
        )
        for metric in metrics
        if metric.range is not None
    }


def within_range(
    scores: pl.LazyFrame, ranges: Mapping[str, tuple[float | None, float | None]]
) -> pl.LazyFrame:
    """Cut intervals at the ends of the range of their metric."""
    return scores.with_columns(
        pl.col(column).clip(*ends)
        for name, ends in ranges.items()
        for column in (f"{name}_low", f"{name}_high")
    )

"""Pairs → the scores of slices, with standard errors and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from polars_mcc._counts.classes import of_pairs
from polars_mcc._counts.counted import without_clusters
from polars_mcc._counts.exact import count_where
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.asked import Asked, Counted, columns_of, with_limits_of
from polars_mcc._scores.measure import measure
from polars_mcc._scores.metric import Metric, Needed


@dataclass(frozen=True)
class Estimate:
    """The pairs, classes and scores of slices, and the influence of a row on each score."""

    log: SlicedLog
    pairs: pl.LazyFrame
    classes: pl.LazyFrame
    scores: pl.LazyFrame
    """A row per slice: `n`, `n_clusters` if there are clusters, metrics, intervals, `n_null`."""
    influences: Mapping[str, pl.LazyFrame]
    """For each metric, the scored pairs with its `phi:` and `unit:`."""


def estimate(log: SlicedLog, pairs: pl.LazyFrame, asked: Asked) -> Estimate:
    """Score each slice of a log from its pairs, with standard errors and intervals.

    If the log has clusters, `pairs` are split by cluster; the pairs of the estimate are not.
    A metric without a derivative raises a ValueError.
    """
    # A frame that is used twice is cached: else Polars reads the log once per use.
    cells = pairs.cache()
    pairs = without_clusters(log, cells)
    classes = of_pairs(log, pairs).cache()
    metrics, positive = asked.metrics, asked.positive
    scores = measure(log, classes, metrics, pairs=pairs, positive=positive)
    influences: dict[str, pl.LazyFrame] = {}
    sure = [metric for metric in metrics if not metric.no_interval]
    from polars_mcc._inference import metric_intervals  # noqa: PLC0415 - for intervals alone

    for needs_pairs in (False, True):
        chosen = [metric for metric in sure if bool(metric.pairs) is needs_pairs]
        if chosen:
            kind = metric_intervals.of_pairs if needs_pairs else metric_intervals.of_classes
            counted = Counted(log, cells, pairs, classes, replace(asked, metrics=chosen))
            scores, of_pair = kind(counted, scores)
            influences |= {metric.name: of_pair for metric in chosen}
    unsure = columns_of(metric.name for metric in metrics if metric.no_interval)
    scores = scores.with_columns(**dict.fromkeys(unsure, pl.lit(None, pl.Float64)))
    if asked.pool is not None:
        scores = _comparable(log, scores, classes, asked)
    n_clusters = [pl.col("n_clusters").fill_null(0)] if log.has_clusters else []
    with_limits = with_limits_of(metric.name for metric in metrics)
    scores = scores.select(*log.slice, "n", *n_clusters, *with_limits, "n_null")
    return Estimate(log, pairs, classes, scores, influences)


def _comparable(
    log: SlicedLog, scores: pl.LazyFrame, classes: pl.LazyFrame, asked: Asked
) -> pl.LazyFrame:
    """Drop the limits of slices that lack the classes that a comparison needs."""
    assert asked.pool is not None  # noqa: S101 - for the type checker
    whole = asked.pool.log
    n_classes = {
        side: count_where(pl.col(f"{side}_n") > 0).cast(pl.Int64) for side in ("gold", "pred")
    }
    here = log.per_slice(classes, **n_classes)
    there = whole.per_slice(
        of_pairs(whole, asked.pool.pairs),
        **{f"all_{side}": number for side, number in n_classes.items()},
    )
    limits = {
        column: pl.when(has_classes(metric.classes_needed)).then(column)
        for metric in asked.metrics
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
        for column in columns_of([name])[:-1]
    )

"""Pairs → the scores of slices, with standard errors and intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import polars as pl

from polars_mcc._counts.classes import of_pairs
from polars_mcc._counts.counted import without_clusters
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.asked import Asked, Counted, columns_of, with_limits_of
from polars_mcc._inference.mcc_intervals import of_mcc
from polars_mcc._scores.measure import measure
from polars_mcc._scores.metric import Metric
from polars_mcc._scores.r_k import Summed, summed

_Kind: TypeAlias = Callable[[Counted, pl.LazyFrame], tuple[pl.LazyFrame, pl.LazyFrame]]
"""A function that adds intervals to scores. It also returns the influences of pairs."""


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
    slices, sums = summed(log, classes, asked.positive)
    of_slices = Summed(slices.cache(), sums)
    metrics, positive = asked.metrics, asked.positive
    scores = measure(log, classes, metrics, sums=of_slices, pairs=pairs, positive=positive)
    influences: dict[str, pl.LazyFrame] = {}
    for kind, chosen in _kinds(metrics):
        of_kind = replace(asked, metrics=chosen)
        counted = Counted(log, cells, pairs, classes, of_slices, of_kind)
        scores, of_pair = kind(counted, scores)
        influences |= {metric.name: of_pair for metric in chosen}
    n_clusters = [pl.col("n_clusters").fill_null(0)] if log.has_clusters else []
    with_limits = with_limits_of(metric.name for metric in metrics)
    scores = scores.select(*log.slice, "n", *n_clusters, *with_limits, "n_null")
    return Estimate(log, pairs, classes, scores, influences)


def _kinds(metrics: Sequence[Metric]) -> Iterator[tuple[_Kind, list[Metric]]]:
    """Group the metrics by the function that makes their intervals."""
    others = [metric for metric in metrics if metric.of_mcc is None]
    if len(others) < len(metrics):
        yield of_mcc, [metric for metric in metrics if metric.of_mcc is not None]
    if others:
        from polars_mcc._inference import metric_intervals  # noqa: PLC0415 - only these need it

        kinds = {False: metric_intervals.of_classes, True: metric_intervals.of_pairs}
        for needs_pairs, kind in kinds.items():
            chosen = [metric for metric in others if bool(metric.pairs) is needs_pairs]
            if chosen:
                yield kind, chosen


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
        for column in columns_of([name])[1:]
    )

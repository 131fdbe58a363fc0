"""Pairs → scores and intervals: how sure we are of each."""

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
"""What adds intervals to scores, and tells the influences of pairs."""


@dataclass(frozen=True)
class Estimate:
    """The pairs, classes and scores of slices, and how far a row of each pair moves each score."""

    log: SlicedLog
    pairs: pl.LazyFrame
    classes: pl.LazyFrame
    scores: pl.LazyFrame
    """Each slice with `n`, `n_clusters` of clusters, its metrics with intervals, and `n_null`."""
    influences: Mapping[str, pl.LazyFrame]
    """For each metric, the pairs that are scored, with its `phi:` and `unit:`."""


def estimate(log: SlicedLog, pairs: pl.LazyFrame, asked: Asked) -> Estimate:
    """How sure the scores of each slice of a log are, from its pairs, or a ValueError.

    The pairs are apart by cluster if the log has clusters; those of the estimate are not.
    """
    # What is asked for twice is cached: else Polars reads the log again for each time.
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
    """The metrics, by how their intervals are made."""
    others = [metric for metric in metrics if metric.of_mcc is None]
    if len(others) < len(metrics):
        yield of_mcc, [metric for metric in metrics if metric.of_mcc is not None]
    if others:
        from polars_mcc._inference import metric_intervals  # noqa: PLC0415 - for these alone

        kinds = {False: metric_intervals.of_classes, True: metric_intervals.of_pairs}
        for needs_pairs, kind in kinds.items():
            chosen = [metric for metric in others if bool(metric.pairs) is needs_pairs]
            if chosen:
                yield kind, chosen


def ranges_of(metrics: Sequence[Metric]) -> dict[str, tuple[float | None, float | None]]:
    """The least and the largest number that each metric can be, whatever the slice."""
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
    """Cut intervals at the least and the largest number that their score can be."""
    return scores.with_columns(
        pl.col(column).clip(*ends)
        for name, ends in ranges.items()
        for column in columns_of([name])[1:]
    )

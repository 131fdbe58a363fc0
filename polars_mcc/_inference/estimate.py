"""Pairs → the scores of slices, with standard errors and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from polars_mcc._counts.classes import is_scored, of_pairs
from polars_mcc._counts.counted import without_clusters
from polars_mcc._counts.exact import count_where
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference import influence
from polars_mcc._inference.arrays import (
    GOLD,
    NUMBER,
    PRED,
    Classes,
    Draws,
    Pairs,
    beside_pairs,
    in_floats,
    numbered,
    with_places,
)
from polars_mcc._inference.influence import Influence
from polars_mcc._inference.intervals import Interval, Sampling, interval
from polars_mcc._inference.options import IntervalOptions, columns_of, with_limits_of
from polars_mcc._inference.pool import Pool
from polars_mcc._inference.tables import tables_of
from polars_mcc._scores.column import Floats, Segments
from polars_mcc._scores.levels import Levels, levels_of, probabilities
from polars_mcc._scores.levels import in_floats as levels_in_floats
from polars_mcc._scores.measure import measure
from polars_mcc._scores.metric import Metric, Needed


@dataclass(frozen=True)
class Estimate:
    """The scores of slices, and the influence of a row on each score."""

    log: SlicedLog
    scores: pl.DataFrame
    """A row per slice: `n`, `n_clusters` if there are clusters, metrics, intervals, `n_null`."""
    pairs: Pairs
    """The scored pairs of all slices."""
    draws: Draws
    phi: Mapping[str, Floats]
    """For each metric, the influence of one row of each pair: (pairs,)."""

    @property
    def in_order(self) -> pl.DataFrame:
        """The scores, sorted by slice."""
        return self.scores.sort(self.log.slice) if self.log.slice else self.scores

    def influences(self, metric: str, name: str = "phi") -> pl.DataFrame:
        """The scored pairs with the influence of a row on a metric, to join to cells."""
        return self.pairs.with_influence(self.phi[metric], name)


def estimate(log: SlicedLog, cells: pl.DataFrame, options: IntervalOptions) -> Estimate:
    """Score each slice of a log from its pairs, with standard errors and intervals.

    If the log has clusters, `cells` are pairs split by cluster.
    """
    metrics, positive, pool = options.metrics, options.positive, options.pool
    counted = without_clusters(log, cells.lazy())
    if log.has_clusters:
        counted = counted.collect().lazy()
    of_labels = of_pairs(log, counted)
    levels = levels_of(log, counted) if log.is_of_scores else None
    scored = counted.filter(is_scored(log))
    measured, classes, pairs, *others = pl.collect_all(
        [
            measure(
                log, of_labels, metrics, pairs=counted, levels=levels, positive=options.positive
            ),
            in_floats(log, of_labels, options.positive),
            scored,
            *([] if levels is None else [levels]),
        ]
    )
    number = measured.height
    classes, pairs = (numbered(log, frame, measured) for frame in (classes, pairs))
    classes = classes.sort(NUMBER, "label")
    with np.errstate(all="ignore"):
        if others:
            found, placed = _of_scores(log, others[0], pairs, measured, options)
        else:
            found, placed = _of_labels(log, classes, pairs, measured, options)
        draws = _draws(log, cells, placed, number)
        sampling = Sampling.of(draws, is_frequency=log.is_frequency)
        pair = draws.cells["pair"].to_numpy()
        limits: dict[str, Interval] = {}
        for metric in options.sure:
            one = found[metric.name]
            phi = one.phi[pair]
            variance = draws.products(phi, phi) / draws.size / draws.size
            score = measured[metric.name].cast(pl.Float64).fill_null(np.nan).to_numpy()
            limits[metric.name] = interval(
                score, one, variance, sampling, options.ci, options.method
            )
    scores = _with_limits(log, measured, limits, sampling, metrics)
    if pool is not None:
        scores = _comparable(log, scores, classes, metrics, pool)
    return Estimate(log, scores, placed, draws, {name: one.phi for name, one in found.items()})


def _of_labels(
    log: SlicedLog,
    classes: pl.DataFrame,
    pairs: pl.DataFrame,
    measured: pl.DataFrame,
    options: IntervalOptions,
) -> tuple[dict[str, Influence], Pairs]:
    """The influences of rows on metrics of labels, and the pairs."""
    number, pool = measured.height, options.pool
    placed = Pairs.of(log, with_places(pairs, classes), number)
    arrays = Classes.of(classes, number)
    found: dict[str, Influence] = {}
    if metrics := [one for one in options.sure if not one.pairs]:
        expected = None
        if pool is not None:
            expected = pool.tabulated(log, pairs, classes, measured)
        tables = tables_of(arrays, placed, expected)
        found |= influence.of_classes(arrays, tables, metrics, log.zero_division)
    if metrics := [one for one in options.sure if one.pairs]:
        found |= influence.of_pairs(placed, placed.frame.select("gold", "pred"), metrics)
    return found, placed


def _of_scores(
    log: SlicedLog,
    levels: pl.DataFrame,
    pairs: pl.DataFrame,
    measured: pl.DataFrame,
    options: IntervalOptions,
) -> tuple[dict[str, Influence], Pairs]:
    """The influences of rows on metrics of scores, and the pairs of a gold label and a level."""
    floats = levels_in_floats(log, levels.lazy())
    if any(metric.are_probabilities for metric in options.metrics):
        floats = probabilities(log, floats)
    ordered = numbered(log, floats.collect(), measured).sort(
        NUMBER, "pred", descending=[False, True], nulls_last=True
    )
    places = ordered.select(NUMBER, "pred").with_row_index(PRED)
    beside = pairs.join(places, on=[NUMBER, "pred"]).with_columns(
        pl.col("gold").cast(pl.UInt32).alias(GOLD)
    )
    placed = Pairs.of(log, beside, measured.height)
    rows = Segments.of(ordered[NUMBER].to_numpy(), measured.height)
    arrays = Levels.of(ordered, rows, placed.per_weight)
    return influence.of_scores(arrays, placed, options.sure), placed


def _draws(log: SlicedLog, cells: pl.DataFrame, pairs: Pairs, number: int) -> Draws:
    """The independent draws of the slices. The column `pair` of its cells is a place in `pairs`."""
    if log.has_clusters:
        frame = pairs.frame.with_row_index("pair")
        counted = beside_pairs(log, cells, frame).select(NUMBER, "cluster", "pair", "n")
        return Draws.of(log, counted, number, order=["pair"])
    return Draws.of(log, pairs.counted.with_row_index("pair"), number, order=["pair"])


def _with_limits(
    log: SlicedLog,
    measured: pl.DataFrame,
    limits: Mapping[str, Interval],
    sampling: Sampling,
    metrics: Sequence[Metric],
) -> pl.DataFrame:
    """The scores with the columns of their intervals."""
    columns = [*log.slice, "n"]
    if sampling.n_clusters is not None:
        measured = measured.with_columns(n_clusters=pl.Series(sampling.n_clusters, dtype=pl.Int64))
        columns.append("n_clusters")
    ends = dict.fromkeys(columns_of(metric.name for metric in metrics), pl.lit(None, pl.Float64))
    found = measured.with_columns(**ends).with_columns(
        pl.Series(f"{name}_{part}", getattr(one, part)).fill_nan(None)
        for name, one in limits.items()
        for part in ("low", "high", "se")
    )
    return found.select(*columns, *with_limits_of(metric.name for metric in metrics), "n_null")


def _comparable(
    log: SlicedLog,
    scores: pl.DataFrame,
    classes: pl.DataFrame,
    metrics: Sequence[Metric],
    pool: Pool,
) -> pl.DataFrame:
    """Drop the limits of slices that lack the classes that a comparison needs."""
    whole = pool.log
    sides = ("gold", "pred")
    here = {side: count_where(pl.col(name) > 0) for side, name in zip(sides, "tp", strict=True)}
    there = {f"all_{side}": count_where(pl.col(f"{side}_n") > 0) for side in sides}
    of_slices = log.per_slice(classes.lazy(), **here)
    of_pools = whole.per_slice(of_pairs(whole, pool.pairs.lazy()), **there)
    limits = {
        column: pl.when(has_classes(metric.classes_needed)).then(column)
        for metric in metrics
        for column in columns_of([metric.name])
    }
    beside = whole.beside(log.beside(scores.with_row_index(NUMBER).lazy(), of_slices), of_pools)
    return beside.with_columns(**limits).sort(NUMBER).select(scores.columns).collect()


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
    return {one.name: one.range.numbers for one in metrics if one.range is not None}


def within_range(
    scores: pl.DataFrame, ranges: Mapping[str, tuple[float | None, float | None]]
) -> pl.DataFrame:
    """Cut intervals at the ends of the range of their metric."""
    return scores.with_columns(
        pl.col(column).clip(*ends)
        for name, ends in ranges.items()
        for column in (f"{name}_low", f"{name}_high")
    )

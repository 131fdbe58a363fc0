"""Pairs → the scores of slices, with standard errors and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from polars_mcc._counts.classes import is_scored, of_pairs
from polars_mcc._counts.counted import without_clusters
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference import influence
from polars_mcc._inference.arrays import (
    NUMBER,
    PRED,
    Classes,
    Draws,
    Pairs,
    beside_pairs,
    coded,
    floats,
    numbered,
)
from polars_mcc._inference.influence import Influence
from polars_mcc._inference.intervals import Interval, Sampling, interval
from polars_mcc._inference.moves_of_scores import Levels
from polars_mcc._inference.never_predicted import Between, between
from polars_mcc._inference.options import IntervalOptions, columns_of, with_limits_of
from polars_mcc._inference.tables import tables_of
from polars_mcc._scores.levels import in_floats as levels_in_floats
from polars_mcc._scores.levels import levels_of, probabilities
from polars_mcc._scores.measure import measure
from polars_mcc._scores.metric import Metric, Needed
from polars_mcc._scores.segments import Flags, Floats, Ints, Segments


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

    def influences(self, metric: str, name: str = "phi") -> pl.DataFrame:
        """The scored pairs with the influence of a row on a metric, to join to cells."""
        return self.pairs.with_influence(self.phi[metric], name)


def estimate(log: SlicedLog, cells: pl.DataFrame, options: IntervalOptions) -> Estimate:
    """Score each slice of a log from its pairs, with standard errors and intervals.

    If the log has clusters, `cells` are pairs split by cluster.
    """
    counted = without_clusters(log, cells.lazy())
    if log.has_clusters:
        counted = counted.collect().lazy()
    classes = of_pairs(log, counted).collect()
    levels = levels_of(log, counted).collect().lazy() if log.is_of_scores else None
    measured = measure(
        log,
        classes.lazy(),
        options.metrics,
        pairs=counted,
        levels=levels,
        positive=options.positive,
    ).collect()
    with np.errstate(all="ignore"):
        if levels is not None:
            found, pairs = _of_scores(log, levels, counted, measured, options)
            is_known: dict[str, Flags] = {}
        else:
            arrays, found, pairs, is_known = _of_labels(log, classes, counted, measured, options)
        draws, pair = Draws.of_pairs(pairs), np.arange(len(pairs.n))
        if log.has_clusters:
            of_cells = beside_pairs(log, cells, pairs.frame.with_row_index("pair"))
            draws = Draws.of(log, of_cells, measured.height, order=["pair"])
            pair = draws.cells["pair"].to_numpy()
        sampling = Sampling.of(draws, is_frequency=log.is_frequency)
        scores_of = {one.name: floats(measured[one.name]) for one in options.sure}
        classes_of = None if log.zero_division != 0 or levels is not None else arrays
        drawn = Drawn(pairs, draws, pair, sampling)
        limits = limits_of(scores_of, found, drawn, options, classes_of)
        limits = {name: one.where(is_known.get(name)) for name, one in limits.items()}
    scores = _with_limits(log, measured, limits, sampling, options.metrics)
    return Estimate(log, scores, pairs, draws, {name: one.phi for name, one in found.items()})


class Drawn(NamedTuple):
    """The pairs of slices and how they were drawn."""

    pairs: Pairs
    draws: Draws
    pair: Ints
    """The place of the pair of each cell of the draws."""
    sampling: Sampling


def limits_of(
    scores: Mapping[str, Floats],
    found: Mapping[str, Influence],
    drawn: Drawn,
    options: IntervalOptions,
    classes: Classes | None,
) -> dict[str, Interval]:
    """The limits of scores: (slices,).

    `classes` tell of classes that are never predicted; None: they have no limits of their own.
    """
    pairs, draws, pair, sampling = drawn
    limits: dict[str, Interval] = {}
    if not options.is_smoothed:
        return limits
    seen: dict[str, Between] = {}
    if classes is not None:
        of_classes = [one for one in options.sure if not one.pairs]
        seen = between(classes, pairs, draws, pairs.gold[pair], of_classes, ci=options.ci)
    for metric in options.sure:
        one, score = found[metric.name], scores[metric.name]
        phi = one.phi[pair]
        variance = draws.products(phi, phi) / draws.size / draws.size
        known = interval(score, one, variance, sampling, options)
        if metric.name in seen:
            is_exact = metric.is_share or options.method != "score"
            is_compared = options.is_compared or options.pool is not None
            known = known.reaching(
                score, seen[metric.name], one, is_exact=is_exact, is_compared=is_compared
            )
        limits[metric.name] = known
    return limits


def _of_labels(
    log: SlicedLog,
    classes: pl.DataFrame,
    counted: pl.LazyFrame,
    slices: pl.DataFrame,
    options: IntervalOptions,
) -> tuple[Classes, dict[str, Influence], Pairs, dict[str, Flags]]:
    """The classes, the influences of rows, the pairs, and which slices can be compared."""
    pool, is_known = options.pool, {}
    more = [] if pool is None else [pool.labels]
    arrays, pairs = coded(log, slices, classes, counted, positive=options.positive, more=more)
    expected = None
    if pool is not None:
        expected = pool.tabulated(arrays, slices)
        here = [arrays.rows.sum((one > 0).astype(float)) for one in (arrays.t, arrays.p)]
        for metric in options.sure:
            is_known[metric.name] = has_classes(metric.classes_needed, *here, *expected.n_classes)
    found: dict[str, Influence] = {}
    if metrics := [one for one in options.sure if not one.pairs]:
        tables = tables_of(arrays, pairs, expected, is_smoothed=options.is_smoothed)
        found |= influence.of_classes(arrays, tables, metrics, log.zero_division)
    if metrics := [one for one in options.sure if one.pairs]:
        found |= influence.of_pairs(pairs, pairs.frame.select("gold", "pred"), metrics)
    return arrays, found, pairs, is_known


def _of_scores(
    log: SlicedLog,
    levels: pl.LazyFrame,
    counted: pl.LazyFrame,
    slices: pl.DataFrame,
    options: IntervalOptions,
) -> tuple[dict[str, Influence], Pairs]:
    """The influences of rows on metrics of scores, and the pairs of a gold label and a level."""
    in_floats = levels_in_floats(log, levels)
    if any(metric.are_probabilities for metric in options.metrics):
        in_floats = probabilities(log, in_floats)
    of_slices = numbered(log, in_floats, slices)
    ordered = of_slices.sort(NUMBER, "pred", descending=[False, True]).collect()
    places = ordered.lazy().select(NUMBER, "pred").with_row_index(PRED)
    scored = numbered(log, counted.filter(is_scored(log) & (pl.col("n") > 0)), slices)
    beside = scored.join(places, on=[NUMBER, "pred"]).sort(NUMBER, "gold", PRED).collect()
    is_gold = beside["gold"].cast(pl.UInt32).to_numpy()
    labels = pl.Series([False, True]), ordered["pred"]
    pairs = Pairs.of(log, beside, (is_gold, beside[PRED].to_numpy()), slices, labels)
    rows = Segments.of(ordered[NUMBER].to_numpy(), slices.height)
    arrays = Levels.of(ordered, rows, pairs.per_weight)
    return influence.of_scores(arrays, pairs, options.sure), pairs


def _with_limits(
    log: SlicedLog,
    measured: pl.DataFrame,
    limits: Mapping[str, Interval],
    sampling: Sampling,
    metrics: Sequence[Metric],
) -> pl.DataFrame:
    """The scores with the columns of their intervals."""
    sizes = sampling.columns()
    unsure = columns_of(metric.name for metric in metrics if metric.name not in limits)
    sure = (column for name, one in limits.items() for column in one.columns(name))
    none = dict.fromkeys(unsure, pl.lit(None, pl.Float64))
    found = measured.with_columns(*sizes, *sure, **none)
    shown = with_limits_of(metric.name for metric in metrics)
    return found.select(*log.slice, "n", *(one.name for one in sizes), *shown, "n_null")


def has_classes(needed: Needed, gold: Any, pred: Any, *of_all: Any) -> Any:  # noqa: ANN401
    """Whether a slice has the classes, by the number of gold and pred classes, and of all.

    The numbers are arrays or expressions.
    """
    if needed == "any":
        return gold == gold  # noqa: PLR0124
    if needed == "two gold":
        return gold >= 2
    all_gold, all_pred = of_all
    has_all_gold = (gold >= 2) & (gold == all_gold)
    return has_all_gold if needed == "all gold" else has_all_gold & (pred == all_pred)

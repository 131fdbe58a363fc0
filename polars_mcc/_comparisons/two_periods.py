"""Pairs of two periods → the change of each slice's score: after minus before."""

from __future__ import annotations

import numpy as np
import polars as pl

from polars_mcc._comparisons.difference_interval import Side, difference, difference_by_cluster
from polars_mcc._counts.sliced_log import SlicedLog, joined
from polars_mcc._intervals.interval_options import PERIODS, IntervalOptions, with_limit_columns
from polars_mcc._intervals.scores_with_intervals import Estimate, estimate
from polars_mcc._metrics.slice_sums import Floats, added_up

_PERIODS = tuple(PERIODS.categories)


def changes(
    log: SlicedLog, apart: SlicedLog, cells: pl.DataFrame, options: IntervalOptions
) -> pl.DataFrame:
    """The difference between the scores of both periods, per slice of a log.

    `apart` is the same log with a slice per slice and `period`. `cells` are its pairs. The first
    metric is compared; the others are facts, shown for each period.
    """
    metric, *facts = options.metrics
    estimated = estimate(apart, cells, options, within=log.slice)
    sizes = ["n", "n_clusters"] if log.has_clusters else ["n"]

    def of(name: str, period: str) -> pl.Expr:
        return pl.col(name).filter(pl.col("period") == period)

    shown = [*with_limit_columns([metric.name]), *(fact.name for fact in facts)]
    both = log.per_slice(
        estimated.scores.lazy(),
        **{name: pl.col(name).sum() for name in log.unscored},
        **{f"{size}_{period}": of(size, period).sum() for size in sizes for period in _PERIODS},
        **{f"{name}_{period}": of(name, period).max() for name in shown for period in _PERIODS},
    ).collect()
    before, after = (Side.of(both, metric.name, f"_{period}") for period in _PERIODS)
    if not log.has_clusters:
        change = difference(before, after, options.ci)
    else:
        covariance = _covariance(log, estimated, both, metric.name)
        fewest = np.fmin(*(both[f"n_clusters_{period}"].to_numpy() for period in _PERIODS))
        change = difference_by_cluster(before, after, options.ci, covariance, fewest)
    scores = {"score_a": f"{metric.name}_before", "score_b": f"{metric.name}_after"}
    return change.beside(both.with_columns(pl.col(name).alias(to) for to, name in scores.items()))


def _covariance(log: SlicedLog, estimated: Estimate, slices: pl.DataFrame, metric: str) -> Floats:
    """The covariance of the scores of both periods, from the clusters that are in both.

    Φ is the sum of the influences φ of the rows of a cluster. The covariance is Σ Φ_before Φ_after,
    divided by the rows before and by the rows after.
    """
    number = np.zeros(estimated.scores.height, np.int64)
    if log.slice:
        numbers = slices.select(*log.slice, number=pl.int_range(pl.len()))
        of_slices = estimated.scores.select(log.slice)
        of_periods = joined(of_slices, numbers, log.slice, maintain_order="left")
        number = of_periods["number"].to_numpy()
    cells, is_after = estimated.cells, (estimated.scores["period"] == "after").to_numpy()
    of_period = cells.pairs.slices[cells.pair]
    draws, order = cells.draws(slices.height, number[of_period])
    phi = estimated.measured[metric].phi[cells.pair[order]]
    influences = []
    for is_here in (~is_after[of_period[order]], is_after[of_period[order]]):
        n = added_up(draws.n * is_here, draws.slices, slices.height)
        with np.errstate(all="ignore"):
            influences.append(np.where(is_here, phi / n[draws.slices], 0.0))
    return draws.products(*influences)

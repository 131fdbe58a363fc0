"""Two scores per slice, of two models or two periods → their difference, interval and p-value."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mcc._comparisons.evidence_and_p_values import with_adjusted
from polars_mcc._counts.reweighted_pairs import reweighted, with_pseudo_rows
from polars_mcc._counts.sliced_log import SlicedLog, joined
from polars_mcc._intervals.count_arrays import Draws, floats, of_arrays
from polars_mcc._intervals.influence_of_rows import NOTHING
from polars_mcc._intervals.interval_methods import critical, normal, normal_critical, student
from polars_mcc._intervals.interval_options import (
    PERIODS,
    IntervalOptions,
    limit_columns,
    with_limit_columns,
)
from polars_mcc._intervals.scores_of_arrays import Estimate, estimate
from polars_mcc._metrics.slice_sums import Floats, Ints, added_up


class Side(NamedTuple):
    """A score with its interval and its standard error: arrays (slices,), NaN for null."""

    score: Floats
    low: Floats
    high: Floats
    se: Floats

    @classmethod
    def of(cls, scores: pl.DataFrame, metric: str, suffix: str = "") -> Side:
        """The columns of a metric in a frame of scores."""
        return cls(*(floats(scores[name + suffix]) for name in (metric, *limit_columns([metric]))))

    def gather(self, places: Ints) -> Side:
        """The scores of these slices; -1 is none."""
        return Side(*(np.append(column, math.nan)[places] for column in self))

    def logarithm(self, z: Floats | float) -> Floats:
        """The logarithm of a ratio with half rows, from the limits that `log_interval` made.

        One limit is of this logarithm and the other of the score, unless that is 0 or infinite.
        """
        with np.errstate(all="ignore"):
            own, ends = np.log(self.score), (np.log(self.low), np.log(self.high))
            below, above = ends[0] + z * self.se, ends[1] - z * self.se
            of_end = np.where(self.score == 0, above, below)
            return np.where(np.isfinite(own), below + above - own, of_end)


class Difference(NamedTuple):
    """A difference b - a with its interval and p-value: arrays (slices,), NaN for null."""

    diff: Floats
    low: Floats
    high: Floats
    se: Floats
    p_value: Floats

    def beside(self, both: pl.DataFrame, b: str = "score_b", a: str = "score_a") -> pl.DataFrame:
        """Add the difference to both scores: to the digit, and NaN where a score is."""
        limits = {"diff_low": self.low, "diff_high": self.high, "diff_se": self.se}
        columns = of_arrays(**limits, p_value=self.p_value)
        return both.with_columns(columns, diff=pl.col(b) - pl.col(a))


def difference(
    a: Side,
    b: Side,
    ci: float,
    *,
    se: Floats | None = None,
    correlation: Floats | float = 0.0,
    df: Ints | None = None,
    added: Floats | float = 0.0,
) -> Difference:
    """The difference b - a, its interval and its p-value, from both intervals (Zou 2007).

    The limits of a score give its variance near each limit. `correlation` is the correlation of
    both scores; without it, they share no rows. If both intervals are Wald's, the interval of the
    difference is Wald's; else it is not symmetric. The p-value uses the variance on the side of 0.
    So it is below 1 - ci exactly if the interval does not hold 0. `df` are the degrees of freedom
    of Student's t, with clusters. `added` is a variance of the difference that is in neither score.
    """
    with np.errstate(all="ignore"):
        reach = critical(ci, df) * np.sqrt(added)
        down, up = (np.hypot(end, reach) for end in reaches(a, b, correlation))
        if se is None:
            se = np.sqrt(a.se**2 + b.se**2)
        return with_limits(b.score - a.score, down, up, se, ci=ci, df=df)


def difference_by_cluster(
    a: Side, b: Side, ci: float, covariance: Floats, n_clusters: Ints
) -> Difference:
    """The difference b - a if rows of a cluster may be in both; `n_clusters`: in the smaller."""
    with np.errstate(all="ignore"):
        correlation = np.clip(covariance / (a.se * b.se), -1, 1)
        squared = np.clip(a.se**2 + b.se**2 - 2 * covariance, 0, None)
    known = np.nan_to_num(correlation, nan=0.0)
    return difference(a, b, ci, se=np.sqrt(squared), correlation=known, df=n_clusters - 1)


def reaches(a: Side, b: Side, correlation: Floats | float = 0.0) -> tuple[Floats, Floats]:
    """How far the interval of b - a reaches down, and up."""
    of_a = np.stack([a.high - a.score, a.score - a.low])
    of_b = np.stack([b.score - b.low, b.high - b.score])
    squared = of_a**2 + of_b**2 - 2 * correlation * of_a * of_b
    # If both reaches are known, NaN comes from an infinite logarithm.
    known = np.where(np.isnan(squared), math.inf, np.clip(squared, 0, None))
    down, up = np.where(np.isnan(of_a) | np.isnan(of_b), math.nan, np.sqrt(known))
    return down, up


def with_limits(
    diff: Floats, down: Floats, up: Floats, se: Floats, *, ci: float, df: Ints | None = None
) -> Difference:
    """The limits and the p-value of a difference whose interval reaches `down` and `up`."""
    with np.errstate(all="ignore"):
        to_zero = np.where(diff > 0, down, up)
        of_level = np.where(diff == 0, 0.0, np.abs(diff) / to_zero)
        errors = critical(ci, df) * of_level
        p_value = normal(errors) if df is None else student(errors, df)
        p_value = np.where(np.isnan(to_zero), math.nan, p_value)
        return Difference(diff, diff - down, diff + up, se, p_value)


_IS_B = "of:pred"  # no metric has this name


class _Both(NamedTuple):
    """Both models of each slice: their scores, and how rows move the difference b minus a."""

    scores_a: pl.DataFrame
    scores_b: pl.DataFrame
    draws: Draws
    variance: Floats
    """The variance of the difference."""
    added: Floats
    """The part of it that rows without a label add, if labelled rows stand for others."""


def of_models(log: SlicedLog, counts: pl.DataFrame, asked: IntervalOptions) -> pl.DataFrame:
    """Both scores of each slice, and their difference: b minus a.

    Labelled rows may stand for others. Then the interval is first made as if all rows had a label.
    Rows without a label add a variance, which makes it wider.
    """
    [metric] = asked.metrics
    own, pairs = reweighted(log, counts.lazy())
    rows = pairs.collect()
    found = both = _both(own, rows, asked)
    added: Floats | float = 0.0
    if own.is_reweighted:
        both = _both(replace(own, labelled_numbers=None), rows, asked)
        # Few labelled rows on which the models differ hide how much they vary.
        smoothed = with_pseudo_rows(own, pairs).collect()
        added = np.fmax(found.added, _both(own, smoothed, asked).added)
    a, b = (Side.of(scores, metric.name) for scores in (both.scores_a, both.scores_b))
    effective, n_clusters = both.draws.effective, both.draws.n_clusters
    with np.errstate(all="ignore"):
        correlation = _correlation(a, b, both.variance, effective, asked)
        se = np.where(found.variance * effective > NOTHING, np.sqrt(found.variance), np.nan)
    df = None if n_clusters is None else n_clusters - 1
    change = difference(a, b, asked.ci, se=se, correlation=correlation, df=df, added=added)
    scores = found.scores_b.with_columns(
        pl.Series("score_a", found.scores_a[metric.name]), pl.col(metric.name).alias("score_b")
    )
    return with_adjusted(change.beside(scores), asked.correction)


def _both(log: SlicedLog, counts: pl.DataFrame, asked: IntervalOptions) -> _Both:
    """The scores of both models, and the variance of their difference."""
    [metric] = asked.metrics
    if log.nulls == "drop":  # A row without a label of one model is scored for neither.
        has_both = pl.all_horizontal(pl.col("baseline", "pred").is_not_null())
        counts = counts.with_columns(pl.when(has_both).then(pl.col("baseline", "pred")))
    counts = counts.sort("gold", "baseline", "pred", "n")
    both = pl.concat(
        counts.with_columns(pl.lit(pred == "pred").alias(_IS_B), pred=pred)
        for pred in ("baseline", "pred")
    )
    estimated = estimate(log.split_by(_IS_B), both, asked, within=log.slice)
    scores_a, scores_b = (
        estimated.scores.filter(is_b).drop(_IS_B) for is_b in (~pl.col(_IS_B), pl.col(_IS_B))
    )
    if counts.is_empty():  # The total slice is there, also without rows.
        scores_a = scores_b = estimate(log, counts, asked).scores
    cells, phi, number = estimated.cells, estimated.measured[metric.name].phi, scores_b.height
    pair_of_row = np.full(both.height, -1)
    pair_of_row[cells.row] = cells.pair
    # The slices of model b come second, in the same order.
    of_b = np.where(cells.row >= counts.height, cells.pairs.slices[cells.pair] - number, -1)
    draws, order = cells.draws(number, of_b)
    moved = phi[cells.pair[order]] - phi[pair_of_row[cells.row[order] - counts.height]]
    with np.errstate(all="ignore"):
        variance, added = (
            squares / draws.size / draws.size
            for squares in (draws.products(moved, moved), draws.added_squares(moved))
        )
    return _Both(scores_a, scores_b, draws, variance, added)


def _correlation(
    a: Side, b: Side, variance: Floats, effective: Floats, asked: IntervalOptions
) -> Floats:
    """The correlation of both scores. Each row moves both, and these influences are correlated.

    `variance` is the variance of the difference. The interval "score" multiplies the correlation by
    n / (n + z²): two models that agree on 5 rows need not agree on the next.
    """
    z = normal_critical(asked.ci)
    shared = (a.se**2 + b.se**2 - variance) / (2 * a.se * b.se)
    known = effective / (effective + z**2) if asked.method == "score" else 1.0
    return np.nan_to_num(np.clip(shared, -1, 1) * known, nan=0.0)


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
    slices = change.beside(both, f"{metric.name}_after", f"{metric.name}_before")
    return with_adjusted(slices, options.correction)


def _covariance(log: SlicedLog, estimated: Estimate, slices: pl.DataFrame, metric: str) -> Floats:
    """The covariance of the scores of both periods, from the clusters that are in both.

    Φ is the sum of the influences φ of the rows of a cluster. The covariance is Σ Φ_before Φ_after,
    divided by the rows before and by the rows after.
    """
    numbers = slices.select(*log.slice, number=pl.int_range(pl.len()))
    of_periods = estimated.scores.select(*log.slice, "period")
    of_periods = joined(of_periods, numbers, log.slice, maintain_order="left")
    number, is_after = of_periods["number"].to_numpy(), (of_periods["period"] == "after").to_numpy()
    cells = estimated.cells
    of_period = cells.pairs.slices[cells.pair]
    draws, order = cells.draws(slices.height, number[of_period])
    phi = estimated.measured[metric].phi[cells.pair[order]]
    influences = []
    for is_here in (~is_after[of_period[order]], is_after[of_period[order]]):
        n = added_up(draws.n * is_here, draws.slices, slices.height)
        with np.errstate(all="ignore"):
            influences.append(np.where(is_here, phi / n[draws.slices], 0.0))
    return draws.products(*influences)

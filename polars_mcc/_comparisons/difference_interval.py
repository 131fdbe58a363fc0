"""Two scores per slice, of two models or two periods → their difference, interval and p-value."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mcc._comparisons.evidence_and_p_values import LEVEL, Scale, better_or_worse, judged
from polars_mcc._counts.reweighted_pairs import reweighted, with_pseudo_rows
from polars_mcc._counts.sliced_log import SlicedLog, joined
from polars_mcc._intervals.count_arrays import Draws, floats, of_arrays
from polars_mcc._intervals.interval_methods import critical, normal, normal_critical, student
from polars_mcc._intervals.interval_options import (
    PERIODS,
    IntervalOptions,
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
    def of(cls, scores: pl.DataFrame, metric: str) -> Side:
        """The columns of a metric in a frame of scores."""
        return cls(*(floats(scores[name]) for name in with_limit_columns([metric])))

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


def tested_rows(estimated: Estimate) -> dict[str, Floats]:
    """By metric, the rows of each slice, or twice the rows of its score if these are fewer."""
    pairs, scorer = estimated.cells.pairs, estimated.scorer
    rows = pairs.effective(is_frequency=scorer.is_frequency)
    known = scorer.measured(pairs, IntervalOptions(LEVEL, is_compared=True), estimated.pools)
    least = dict.fromkeys(known, rows)
    for metric in scorer.metrics:
        if (scale := Scale.of(metric, 1)).low is not None:
            score, limits, _ = known[metric.name]
            ends = scale.rows_by_limits(score, limits.low, limits.high, rows)
            least[metric.name] = np.fmin(rows, np.round(2 * np.minimum(*ends), 6))
    return least


class Difference(NamedTuple):
    """A difference b - a with its interval and p-value: arrays (slices,), NaN for null."""

    diff: Floats
    low: Floats
    high: Floats
    p_value: Floats

    def beside(self, both: pl.DataFrame) -> pl.DataFrame:
        """Add the difference to both scores: to the digit, and NaN where a score is."""
        columns = of_arrays(diff_low=self.low, diff_high=self.high, p_value=self.p_value)
        return both.with_columns(columns, diff=pl.col("score") - pl.col("reference"))


def difference(
    a: Side,
    b: Side,
    ci: float,
    *,
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
        return with_limits(b.score - a.score, down, up, ci=ci, df=df)


def difference_by_cluster(
    a: Side, b: Side, ci: float, covariance: Floats, n_clusters: Ints
) -> Difference:
    """The difference b - a if rows of a cluster may be in both; `n_clusters`: in the smaller."""
    with np.errstate(all="ignore"):
        correlation = np.clip(covariance / (a.se * b.se), -1, 1)
    known = np.nan_to_num(correlation, nan=0.0)
    return difference(a, b, ci, correlation=known, df=n_clusters - 1)


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
    diff: Floats, down: Floats, up: Floats, *, ci: float, df: Ints | None = None
) -> Difference:
    """The limits and the p-value of a difference whose interval reaches `down` and `up`."""
    with np.errstate(all="ignore"):
        to_zero = np.where(diff > 0, down, up)
        of_level = np.where(diff == 0, 0.0, np.abs(diff) / to_zero)
        errors = critical(ci, df) * of_level
        p_value = normal(errors) if df is None else student(errors, df)
        p_value = np.where(np.isnan(to_zero), math.nan, p_value)
        return Difference(diff, diff - down, diff + up, p_value)


_IS_B, _PLACE = "of:pred", "of:place"  # no metric has these names


class _Both(NamedTuple):
    """Both models of each slice: their scores, and the draws that move both."""

    scores_a: pl.DataFrame
    scores_b: pl.DataFrame
    estimated: Estimate
    draws: Draws
    pairs: tuple[Ints, Ints]
    """For each cell of the draws: its pair with the label of b, and with that of a."""

    def variance(self, metric: str, *, added: bool = False) -> Floats:
        """The variance of the difference; or the part of it that rows without a label add."""
        phi, draws = self.estimated.measured[metric].phi, self.draws
        moved = phi[self.pairs[0]] - phi[self.pairs[1]]
        with np.errstate(all="ignore"):
            squares = draws.added_squares(moved) if added else draws.products(moved, moved)
            return squares / draws.size / draws.size


def of_models(log: SlicedLog, counts: pl.DataFrame, asked: IntervalOptions) -> pl.DataFrame:
    """Both scores of each slice by each metric, and their difference: b minus a.

    Facts have no interval: they are columns, a named like a period before and b like one after.
    Labelled rows may stand for others. Then the interval is first made as if all rows had a label.
    Rows without a label add a variance, which makes it wider.
    """
    own, pairs = reweighted(log, counts.lazy())
    rows = pairs.collect()
    found = both = smoothed = _both(own, rows, asked)
    if own.is_reweighted:
        both = _both(replace(own, labelled_numbers=None), rows, asked)
        # Few labelled rows on which the models differ hide how much they vary.
        smoothed = _both(own, with_pseudo_rows(own, pairs).collect(), asked)
    n_clusters, least_rows = both.draws.n_clusters, tested_rows(found.estimated)
    df = None if n_clusters is None else n_clusters - 1
    sizes = ["n", *(["n_clusters"] if log.has_clusters else []), *log.unscored]
    sides, answers = dict(zip(PERIODS.categories, (both.scores_a, both.scores_b), strict=True)), []
    facts = {
        f"{metric.name}_{period}": side[metric.name]
        for metric in asked.metrics
        for period, side in sides.items()
        if metric not in asked.sure
    }
    for metric in asked.sure:
        name = metric.name
        a, b = (Side.of(scores, name) for scores in (both.scores_a, both.scores_b))
        added = np.fmax(*(of.variance(name, added=True) for of in (found, smoothed)))
        correlation = _correlation(a, b, both.variance(name), both.draws.effective, asked)
        change = difference(a, b, asked.ci, correlation=correlation, df=df, added=added)
        scores = found.scores_b.select(*log.slice, *sizes, score=name, **facts)
        least = np.minimum(*np.split(least_rows[name], 2)) if len(least_rows[name]) else math.inf
        compared = change.beside(scores.with_columns(reference=found.scores_a[name]))
        answers.append(judged(compared, metric, asked, better_or_worse(metric), least))
    return pl.concat(answers)


def _both(log: SlicedLog, counts: pl.DataFrame, asked: IntervalOptions) -> _Both:
    """The scores of both models, and the draws of their rows."""
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
    cells, number = estimated.cells, scores_b.height
    pair_of_row = np.full(both.height, -1)
    pair_of_row[cells.row] = cells.pair
    # The slices of model b come second, in the same order.
    of_b = np.where(cells.row >= counts.height, cells.pairs.slices[cells.pair] - number, -1)
    draws, order = cells.draws(number, of_b)
    other = pair_of_row[cells.row[order] - counts.height]
    return _Both(scores_a, scores_b, estimated, draws, (cells.pair[order], other))


def _correlation(
    a: Side, b: Side, variance: Floats, effective: Floats, asked: IntervalOptions
) -> Floats:
    """The correlation of both scores. Each row moves both, and these influences are correlated.

    `variance` is the variance of the difference. The interval "score" multiplies the correlation by
    n / (n + z²): two models that agree on 5 rows need not agree on the next.
    """
    z = normal_critical(asked.ci)
    with np.errstate(all="ignore"):
        shared = (a.se**2 + b.se**2 - variance) / (2 * a.se * b.se)
    known = effective / (effective + z**2) if asked.method == "score" else 1.0
    return np.nan_to_num(np.clip(shared, -1, 1) * known, nan=0.0)


class Periods(NamedTuple):
    """The slices of a log, with their rows, and the scores before and after; null without rows."""

    slices: pl.DataFrame
    before: pl.DataFrame
    after: pl.DataFrame
    estimated: Estimate

    @classmethod
    def of(
        cls, log: SlicedLog, apart: SlicedLog, cells: pl.DataFrame, options: IntervalOptions
    ) -> Periods:
        """Score the pairs of `apart`: of the same log, with a slice per slice and `period`."""
        estimated = estimate(apart, cells, options, within=log.slice)
        scores, periods = estimated.scores, PERIODS.categories
        sizes = ["n", "n_clusters"] if log.has_clusters else ["n"]

        def of(name: str, period: str) -> pl.Expr:
            return pl.col(name).filter(pl.col("period") == period)

        slices = log.per_slice(
            scores.with_row_index(_PLACE).lazy(),
            **{period: of(_PLACE, period).max() for period in periods},
            **{f"{size}_{period}": of(size, period).sum() for size in sizes for period in periods},
            **{name: pl.col(name).sum() for name in log.unscored},
        ).collect()
        before, after = (scores.select(pl.all().gather(slices[period])) for period in periods)
        return cls(slices, before, after, estimated)

    def compared(self, log: SlicedLog, metric: str, ci: float) -> pl.DataFrame:
        """The slices with both scores by a metric, and their difference."""
        both = self.slices.with_columns(score=self.after[metric], reference=self.before[metric])
        before, after = (Side.of(side, metric) for side in (self.before, self.after))
        if not log.has_clusters:
            return difference(before, after, ci).beside(both)
        covariance = _covariance(log, self.estimated, both, metric)
        fewest = np.fmin(*both.select("n_clusters_before", "n_clusters_after").to_numpy().T)
        return difference_by_cluster(before, after, ci, covariance, fewest).beside(both)


def changes(
    log: SlicedLog, apart: SlicedLog, cells: pl.DataFrame, asked: IntervalOptions
) -> pl.DataFrame:
    """The difference between the scores of both periods by each metric, per slice of a log.

    `apart` is the same log with a slice per slice and `period`. `cells` are its pairs.
    """
    periods, answers = Periods.of(log, apart, cells, asked), []
    both = periods.slices.select(*PERIODS.categories)
    of_metrics = tested_rows(periods.estimated)
    for metric in asked.metrics:
        rows = pl.Series(of_metrics[metric.name])
        least = np.minimum(*(floats(rows.gather(place)) for place in both))
        slices = periods.compared(log, metric.name, asked.ci)
        answers.append(judged(slices, metric, asked, better_or_worse(metric), least))
    return pl.concat(answers)


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

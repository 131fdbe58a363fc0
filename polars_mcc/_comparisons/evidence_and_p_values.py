"""Tests of scores, accurate for very small p-values; and p-values corrected for many tests.

With thousands of slices, p-values of about 10⁻⁵ decide. There the p-value of a
normal distribution is too small or too large. So a score is treated as a proportion v of m rows, as
in its interval. m is such that Wilson's limit, on the side of the other score, equals the computed
limit. The test is the likelihood ratio test of two proportions (Wilks 1938): G² = 2 Σ m·KL(v, v̄),
where v̄ is the proportion of both together. The root of G² has the normal distribution.

A gate asks whether a score misses a threshold, or is worse than a baseline. Two tests must agree:
the p-value is the larger of theirs.

- The interval, turned around. A score v, as a proportion of its range, has the limit e. It is
  Wilson's limit of m = z² e(1 - e) / (e - v)² rows. With so many rows, v is
  (p₀ - v) √(m / (p₀(1 - p₀))) standard errors from the threshold p₀. So the p-value is
  (1 - ci) / 2 exactly where the limit is the threshold.
- The likelihood ratio of v and p₀ for these rows. Far out, or with few rows, the interval is too
  sure: if 93 % of rows are right, at most 1 of 3 is with probability 0.014, but the interval says
  0.00003.

A metric that needs two gold classes has another scale than a proportion: if 3 rows are of the rarer
class, m may be 30. So for the likelihood ratio m has a limit: the rows of a proportion that varies
as the metric does where the threshold is met (see `most_rows` in `_metrics/metric_type.py`).
A ratio such as "lr_pos" has no largest value. There the first test is of its logarithm, and the
second takes Student's t with 1 / se² degrees of freedom: so many rows, of the rarest kind, tell it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from polars_mcc._base.allowed_values import Correction
from polars_mcc._comparisons.columns_of_answers import VERDICTS
from polars_mcc._intervals.count_arrays import Counted, equal_rows, floats, of_arrays
from polars_mcc._intervals.interval_methods import (
    critical,
    normal,
    normal_critical,
    normal_quantile,
    student,
)
from polars_mcc._intervals.interval_options import IntervalOptions
from polars_mcc._metrics.exact_scores import most_rows
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.slice_sums import Flags, Floats, Ints, Segments, added_up, places_in

LEVEL = 0.95
"""The confidence level of the limits that give m. Any other level would do as well."""

MAX_ROWS = 4.0
"""The largest m, per row of the log. A mean loss has no such bound: it may be a small part of its
range."""


@dataclass(frozen=True)
class Scale:
    """A metric as a proportion of its range, if it has one.

    A score times `turn` is such that more is better. `low` and `high` are the range of such scores.
    """

    turn: int
    low: float | None
    high: float | None
    max_rows: float = MAX_ROWS
    """The largest m, per row of the log."""

    @classmethod
    def of(cls, metric: Metric, turn: int | None = None) -> Scale:
        """The scale of a metric: the range of its interval. `turn`: None if better is more."""
        ends = (None, None) if metric.range is None else metric.range.numbers
        turn = (-1 if metric.less_is_better else 1) if turn is None else turn
        numbers = [turn * end for end in ends if end is not None]
        if len({*numbers}) < 2 or not all(map(math.isfinite, numbers)):
            return cls(turn, None, None, math.inf)
        max_rows = math.inf if metric.is_of_scores else MAX_ROWS
        return cls(turn, min(numbers), max(numbers), max_rows)

    @property
    def is_share(self) -> bool:
        """Whether scores are proportions themselves, so that their ratio means something."""
        return (self.low, self.high) == (0, 1)

    def proportion(self, score: Floats) -> Floats:
        """The score as a proportion of the range."""
        if self.low is None or self.high is None:
            return score
        return np.clip((score - self.low) / (self.high - self.low), 0, 1)

    def effective_rows(self, score: Floats, limit: Floats, n: Floats) -> Floats:
        """The rows m of a proportion with this limit; for a metric without a range, 1 / variance.

        The variance can be almost 0, for example of kappa if all predictions are one label. So
        m is at most `MAX_ROWS` for each of the `n` rows of the log.
        """
        z = normal_critical(LEVEL)
        with np.errstate(all="ignore"):
            if self.low is None:
                return z**2 / np.where(limit != score, limit - score, math.nan) ** 2
            v, end = self.proportion(score), self.proportion(limit)
            rows = np.minimum(rows_with_limit(v, end, z), self.max_rows * n)
            return np.where(end != v, rows, math.nan)

    def rows_by_limits(
        self, score: Floats, low: Floats, high: Floats, n: Floats
    ) -> tuple[Floats, Floats]:
        """The rows m of scores by their lower and upper limits: of a rate, its base."""
        below, above = (self.effective_rows(score, limit, n) for limit in (low, high))
        # At an end of the range, one limit is the score.
        rows = np.fmin(below, above)
        return np.where(np.isnan(below), rows, below), np.where(np.isnan(above), rows, above)

    def evidence(self, v_b: Floats, rows_b: Floats, v_a: Floats, rows_a: Floats) -> Floats:
        """How many standard errors b is below a, from their proportions and rows; 0 if it is not.

        It is NaN if one of them is unknown. Each side is moved by half a row towards the other
        (Yates 1934). Else a slice whose few rows are all wrong seems surer than it can be.
        """
        with np.errstate(all="ignore"):
            if self.low is None:
                apart: Floats = (v_a - v_b) / np.sqrt(1 / rows_b + 1 / rows_a)
                return np.clip(apart, 0, None)
            v_b, v_a = v_b + 0.5 / rows_b, v_a - 0.5 / rows_a
            both = (rows_b * v_b + rows_a * v_a) / (rows_b + rows_a)
            apart = rows_b * divergence(v_b, both) + rows_a * divergence(v_a, both)
            root = np.sqrt(np.clip(2 * apart, 0, None))
            errors: Floats = np.where(v_b < v_a, root, np.where(v_b >= v_a, 0.0, math.nan))
            return errors

    def apart(self, score: Floats, n: Floats, expected: Floats, se: Floats, step: Floats) -> Floats:
        """How many standard errors a score is from the score given its labels, on either side.

        Both scores are turned so that more is better. `given_labels` returns `se` and `step`.
        The expected score is a proportion, of m rows that give it its standard error. The score is
        moved towards it by half of what one row can move it: with few rows of a gold label, a score
        takes few values, and the largest are far apart.
        """
        with np.errstate(all="ignore"):
            if self.low is None or self.high is None:
                return np.clip(np.abs(expected - score) - step / 2, 0, None) / se
            span = self.high - self.low
            v, known = self.proportion(score), self.proportion(expected)
            rows = np.minimum(known * (1 - known) / (se / span) ** 2, self.max_rows * n)
            half = np.fmax(0.5 / rows, step / span / 2)
            v = known + np.sign(v - known) * np.clip(np.abs(v - known) - half, 0, None)
            return np.sqrt(np.clip(2 * rows * divergence(v, known), 0, None))


def rows_with_limit(v: Floats, end: Floats, z: Floats | float) -> Floats:
    """The rows of a proportion v for which Wilson's limit with the critical value z is `end`."""
    return z**2 * end * (1 - end) / (end - v) ** 2


def divergence(v: Floats, other: Floats) -> Floats:
    """The Kullback-Leibler divergence of a proportion from another."""
    hit = np.where(v > 0, v * np.log(v / other), np.where(v <= 0, 0.0, math.nan))
    miss = np.where(v < 1, (1 - v) * np.log((1 - v) / (1 - other)), np.where(v >= 1, 0.0, math.nan))
    divergence: Floats = hit + miss
    return divergence


def collapse(pairs: Counted, pool_of: Ints, pool: Counted, draws: Floats | None = None) -> Floats:
    """The evidence of slices of two or more gold classes that are predicted as one; else NaN.

    In the pool, a row with gold label i is predicted as another of these gold classes at the rate
    r_i. So of a slice with n_i rows of each label, no row is, with the probability Π (1 - r_i)^n_i.
    With sample weights w, n_i is (Σ w)² / Σ w². With clusters, n_i is the number of `draws`. The
    pool has the rows of the slice too.
    """
    evidence = np.full(pairs.number, math.nan)
    if not len(pairs.n):
        return evidence
    k = int(max(pairs.gold.max(), pairs.pred.max(), pool.gold.max(), pool.pred.max())) + 1
    of_slice = Segments.of(pairs.slices, pairs.number)
    pred = pairs.pred.astype(np.float64)
    collapsed: Flags = (of_slice.min(pred) == of_slice.max(pred)) & (of_slice.lengths > 1)
    # Each cell of a collapsed slice is a gold class of its own.
    cells = np.flatnonzero(collapsed[pairs.slices])
    if not len(cells):
        return evidence
    slices, gold = pairs.slices[cells].astype(np.int64), pairs.gold[cells].astype(np.int64)
    is_missed = gold != pairs.pred[cells]
    missed = (slices * k + gold)[is_missed]
    own, starts = np.unique(pool.slices.astype(np.int64) * k + pool.gold, return_index=True)
    labels = Segments(starts, len(pool.n))
    place = places_in(own, pool_of[slices].astype(np.int64) * k + gold)
    of_cell, pair = labels.rows_of(place)
    as_missed = places_in(missed, slices[of_cell] * k + pool.pred[pair]) >= 0
    rate = added_up(pool.n[pair] * as_missed, of_cell, len(cells)) / labels.sum(pool.n)[place]
    n = equal_rows(pairs.n[cells], pairs.squares[cells]) if draws is None else draws[cells]
    with np.errstate(all="ignore"):
        log_p = added_up(n * np.log1p(-rate), slices, pairs.number)
    evidence[collapsed] = [*map(_evidence_of_log, log_p[collapsed].tolist())]
    return evidence


_LEAST_LOG = -700.0  # the logarithm of a probability that a float still holds


def _evidence_of_log(log_p: float) -> float:
    """The evidence with this one-sided p-value, by its logarithm."""
    held = evidence_of(2 * math.exp(max(log_p, _LEAST_LOG)))
    return math.hypot(held, math.sqrt(2 * max(_LEAST_LOG - log_p, 0.0)))


def evidence_of(p: float) -> float:
    """The evidence, in standard errors, that has this two-sided p-value."""
    return -normal_quantile(min(p, 1.0) / 2)


Bound = Literal["min", "max"]
_KNOWN = 1e6
"""How many times the rows of the slice the threshold stands for: it is a known number."""


def of_threshold(
    slices: pl.DataFrame,
    metric: Metric,
    bound: Bound,
    threshold: pl.Expr,
    ci: float,
    *,
    is_frequency: bool,
) -> Floats:
    """The p-value that the score of each slice meets its threshold; NaN without an interval.

    `slices` have the columns of `by` with intervals of the level `ci`. With clusters, errors have
    Student's t. `is_frequency`: a weight counts rows.
    """
    df = slices["n_clusters"].to_numpy() - 1 if "n_clusters" in slices.columns else None
    scale, score, up, down = _turned(slices, metric, bound)
    to = floats(slices.select(threshold.cast(pl.Float64)).to_series())
    if metric.is_log:
        with np.errstate(all="ignore"):
            beyond = scale.turn * (np.log(to) - np.log(scale.turn * up))
            se = floats(slices[f"{metric.name}_se"])
            errors = critical(ci, df) + beyond / se
            return np.fmax(_tail(errors, df), _tail(errors, 1 / se**2))
    to = scale.turn * np.broadcast_to(to, score.shape)
    with np.errstate(all="ignore"):
        z, is_below = critical(ci, df), score < to
        limit = np.where(is_below, up, down)
        v, known, end = map(scale.proportion, (score, to, limit))
        errors = z * ((known - v) / np.abs(end - v))
        if scale.low is not None:
            errors = errors * np.sqrt(end * (1 - end) / (known * (1 - known)))
            rows = rows_with_limit(v, end, z)
            if is_frequency:
                rows = np.fmin(rows, _max_rows(slices, metric))
            ratio = scale.evidence(v, rows, known, _KNOWN * rows)
            likely = np.fmin(errors, np.where(np.isnan(ratio), math.inf, ratio))
            errors = np.where(is_below, likely, errors)
        # At the threshold, it is 0/0.
        errors = np.where(np.isnan(errors), 0.0, errors)
        errors = np.where(np.isfinite(limit) & ~np.isnan(to), errors, math.nan)
        return _tail(errors, df)


def of_baseline(
    sides: Sequence[pl.DataFrame], two_sided: pl.Series, metric: Metric, bound: Bound, ci: float
) -> Floats:
    """The p-value that the score of each slice is no worse after than before; NaN without one.

    The sides, before and after, have the scores with intervals of the level `ci`; `two_sided` is
    the p-value of their difference.
    """
    before, after = sides
    z = critical(ci, None)
    scale, here, up, _ = _turned(after, metric, bound)
    _, there, _, down = _turned(before, metric, bound)
    half, is_worse = floats(two_sided) / 2, here < there
    p = np.where(is_worse, half, 1 - half)
    if scale.low is None:
        return p
    with np.errstate(all="ignore"):
        v, end, v_to, end_to = map(scale.proportion, (here, up, there, down))
        rows = np.fmin(rows_with_limit(v, end, z), _max_rows(after, metric))
        rows_to = np.fmin(rows_with_limit(v_to, end_to, z), _max_rows(before, metric))
        ratio = scale.evidence(v, rows, v_to, rows_to)
        likely = np.fmax(p, _tail(np.where(np.isnan(ratio), math.inf, ratio), None))
    return np.where(is_worse & ~np.isnan(half), likely, p)


def _turned(
    slices: pl.DataFrame, metric: Metric, bound: Bound
) -> tuple[Scale, Floats, Floats, Floats]:
    """The scale on which more is better, the score, and its limits on the better and worse side."""
    scale = Scale.of(metric, 1 if bound == "min" else -1)
    names = (f"{metric.name}{part}" for part in ("", "_low", "_high"))
    score, low, high = (scale.turn * floats(slices[name]) for name in names)
    return (scale, score, high, low) if bound == "min" else (scale, score, low, high)


def _max_rows(slices: pl.DataFrame, metric: Metric) -> Floats | float:
    """The largest number of effective rows that the metric can have; NaN if any number."""
    fact = most_rows(metric)
    return math.nan if fact is None else floats(slices[fact.name])


def _tail(errors: Floats, df: Ints | None) -> Floats:
    """The probability of more errors than these, one-sided."""
    with np.errstate(all="ignore"):
        half = (normal(errors) if df is None else student(errors, df)) / 2
    return np.where(errors < 0, 1 - half, half)


def adjusted(p: Floats, correction: Correction, tests: int | None = None) -> Floats:
    """Correct p-values for the number of `tests`: as many as p-values, or more. NaN stays.

    "bh" (Benjamini and Hochberg 1995) and "by" (Benjamini and Yekutieli 2001) control the false
    discovery rate; "holm" (1979) and "bonferroni", the probability of any false discovery. If
    `tests` is larger than the number of p-values, the missing p-values count as the largest.
    """
    corrected = np.full(len(p), math.nan)
    [known] = np.nonzero(~np.isnan(p))
    m = len(known) if tests is None else tests
    ranked = known[np.argsort(p[known], kind="stable")]
    place = np.arange(1, len(known) + 1)
    if correction == "bonferroni":
        times = p[ranked] * m
    elif correction == "holm":
        times = np.maximum.accumulate(p[ranked] * (m + 1 - place))
    else:
        of_all = m if correction == "bh" else m * (1 / np.arange(1, m + 1)).sum()
        times = np.minimum.accumulate((p[ranked] * of_all / place)[::-1])[::-1]
    corrected[ranked] = np.minimum(times, 1.0)
    return corrected


def with_adjusted(slices: pl.DataFrame, correction: Correction) -> pl.DataFrame:
    """Add `p_adjusted`, the column `p_value` after correction."""
    p_adjusted = adjusted(floats(slices["p_value"]), correction)
    return slices.with_columns(of_arrays(p_adjusted=p_adjusted))


def judged(
    slices: pl.DataFrame,
    metric: Metric,
    asked: IntervalOptions,
    word: pl.Expr,
    rows: Floats | float = math.inf,
) -> pl.DataFrame:
    """Add `metric`, `p_adjusted` and `verdict`, which is `word` where the p-value is small enough.

    Slices of too few `rows` have no p-value. Each metric is corrected alone: "fnr" and "tpr" are
    one test.
    """
    has_rows = pl.lit(pl.Series(np.broadcast_to(rows >= asked.min_n, slices.height)))
    slices = slices.with_columns(pl.when(has_rows).then("p_value"))
    p = pl.col("p_adjusted")
    verdict = pl.when(p < 1 - asked.ci).then(word).when(p.is_not_null()).then(pl.lit("not sure"))
    return with_adjusted(slices, asked.correction).with_columns(
        metric=pl.lit(metric.name), verdict=verdict.fill_null("not judged").cast(VERDICTS)
    )


def better_or_worse(metric: Metric, than: str = "reference") -> pl.Expr:
    """Which side of its reference a score is on, in words."""
    words = ["differs"] * 2 if metric.less_is_better is None else ["better", "worse"]
    more, less = map(pl.lit, words[::-1] if metric.less_is_better else words)
    return pl.when(pl.col("score") > pl.col(than)).then(more).otherwise(less)

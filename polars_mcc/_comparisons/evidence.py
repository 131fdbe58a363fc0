"""Test whether one score is below another; accurate for very small p-values.

With thousands of slices, p-values of about 10⁻⁵ decide. There the p-value of a
normal distribution is too small or too large. So a score is treated as a proportion v of m rows, as
in its interval. m is such that Wilson's limit, on the side of the other score, equals the computed
limit. The test is the likelihood ratio test of two proportions (Wilks 1938): G² = 2 Σ m·KL(v, v̄),
where v̄ is the proportion of both together. The root of G² has the normal distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from polars_mcc._intervals.count_arrays import Counted, equal_rows
from polars_mcc._intervals.interval_methods import normal_critical, normal_quantile
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
    def of(cls, metric: Metric) -> Scale:
        """The scale of a metric: the range of its interval."""
        ends = (None, None) if metric.range is None else metric.range.numbers
        turn = -1 if metric.less_is_better else 1
        numbers = [turn * end for end in ends if end is not None]
        if len({*numbers}) < 2 or not all(map(math.isfinite, numbers)):
            return cls(turn, None, None, math.inf)
        max_rows = math.inf if metric.is_of_scores else MAX_ROWS
        return cls(turn, min(numbers), max(numbers), max_rows)

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
            apart = rows_b * _divergence(v_b, both) + rows_a * _divergence(v_a, both)
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
            return np.sqrt(np.clip(2 * rows * _divergence(v, known), 0, None))


def rows_with_limit(v: Floats, end: Floats, z: Floats | float) -> Floats:
    """The rows of a proportion v for which Wilson's limit with the critical value z is `end`."""
    return z**2 * end * (1 - end) / (end - v) ** 2


def _divergence(v: Floats, other: Floats) -> Floats:
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

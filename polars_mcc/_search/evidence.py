"""How sure it is that one score is below another: a test that is right far out in the tail.

Among thousands of slices the least p-values decide, of some 10⁻⁵. There a normal distribution says
too little or too much. So a score is taken for a proportion v of m rows, as its interval is: m is
such that Wilson's limit on the side of the other score is the limit that was found. The test is the
ratio of likelihoods of two proportions (Wilks 1938): G² = 2 Σ m·KL(v, v̄), with v̄ that of both
together. Its root has the normal distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from polars_mcc._inference.methods import normal_critical, normal_quantile
from polars_mcc._scores.metric import Metric

LEVEL = 0.95
"""The level of the limits from which the rows are found; another would do as well."""

MOST = 10.0
"""The rows of a proportion that a row of the log is worth, at most."""


@dataclass(frozen=True)
class Scale:
    """A metric as a proportion: turned so that more is better, between two ends, if it has some."""

    turn: int
    low: float | None
    high: float | None

    @classmethod
    def of(cls, metric: Metric, labels: int) -> Scale:
        """The scale of a metric in a log of so many labels.

        R_K is that of independent labels at 0; of K balanced classes that are all wrong it is
        -1 / (K - 1).
        """
        ends: tuple[object, object] = (None, None)
        if metric.of_mcc is not None:
            a, b = metric.of_mcc
            ends = b - a / max(labels - 1, 1), b + a
        elif metric.range is not None:
            ends = metric.range.low, metric.range.high
        turn = -1 if metric.less_is_better else 1
        numbers = [turn * end for end in ends if isinstance(end, (int, float))]
        if len(numbers) < 2 or not all(map(math.isfinite, numbers)):
            return cls(turn, None, None)
        return cls(turn, min(numbers), max(numbers))

    def turned(self, score: pl.Expr) -> pl.Expr:
        """The score, or its negative: more is better."""
        return self.turn * score

    def place(self, score: pl.Expr) -> pl.Expr:
        """The proportion that a score is."""
        if self.low is None or self.high is None:
            return score
        return ((score - self.low) / (self.high - self.low)).clip(0, 1)

    def worth(self, score: pl.Expr, limit: pl.Expr, n: pl.Expr) -> pl.Expr:
        """The rows of a proportion that has this limit; without ends, 1 / variance.

        Where the variance all but vanishes, as that of kappa does if one label is predicted
        throughout, one of the `n` rows of the log is worth no more than so many.
        """
        z2 = normal_critical(LEVEL) ** 2
        if self.low is None:
            return z2 / (limit - score).pow(2)
        v, end = self.place(score), self.place(limit)
        rows = z2 * end * (1 - end) / (end - v).pow(2)
        return pl.when(end != v).then(rows.clip(upper_bound=MOST * n))

    def at_most(self, score: pl.Expr, n: pl.Expr, v_a: pl.Expr, rows_a: pl.Expr) -> pl.Expr:
        """What the evidence cannot exceed, whatever the limits of a score of `n` rows."""
        if self.low is None:
            return pl.lit(math.inf)
        return self.evidence(self.place(score), MOST * n, v_a, rows_a)

    def evidence(self, v_b: pl.Expr, rows_b: pl.Expr, v_a: pl.Expr, rows_a: pl.Expr) -> pl.Expr:
        """How many standard errors b is below a, from their proportions and rows."""
        sign = pl.when(v_b < v_a).then(1.0).otherwise(-1.0)
        if self.low is None:
            return sign * (v_a - v_b).abs() / (1 / rows_b + 1 / rows_a).sqrt()
        both = (rows_b * v_b + rows_a * v_a) / (rows_b + rows_a)

        def far(v: pl.Expr) -> pl.Expr:
            """The divergence of Kullback and Leibler."""
            hit = pl.when(v > 0).then(v * (v / both).log()).otherwise(0.0)
            miss = pl.when(v < 1).then((1 - v) * ((1 - v) / (1 - both)).log()).otherwise(0.0)
            return hit + miss

        return sign * (2 * (rows_b * far(v_b) + rows_a * far(v_a))).clip(0).sqrt()


def evidence_of(p: float) -> float:
    """The evidence that has a p-value, two-sided."""
    return -normal_quantile(min(p, 1.0) / 2)

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

import polars as pl

from polars_mcc._counts.classes import is_scored
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.pool import Pool
from polars_mcc._inference.quantiles import normal_critical, normal_quantile
from polars_mcc._scores.metric import Metric

COLLAPSE = "collapse"
"""The column of the evidence that a slice does not predict its gold classes."""

LEVEL = 0.95
"""The confidence level of the limits that give m. Any other level would do as well."""

MOST = 4.0
"""The most rows of a proportion, m, per row of the log. A mean loss has no such bound: it may be a
small part of its range."""


@dataclass(frozen=True)
class Scale:
    """A metric as a proportion: its sign such that more is better, and its range if it has one."""

    turn: int
    low: float | None
    high: float | None
    most: float = MOST

    @classmethod
    def of(cls, metric: Metric) -> Scale:
        """The scale of a metric: the range of its interval."""
        ends = (None, None) if metric.range is None else metric.range.numbers
        turn = -1 if metric.less_is_better else 1
        numbers = [turn * end for end in ends if end is not None]
        if len(numbers) < 2 or not all(map(math.isfinite, numbers)):
            return cls(turn, None, None)
        most = math.inf if metric.is_of_scores else MOST
        return cls(turn, min(numbers), max(numbers), most)

    def turned(self, score: pl.Expr) -> pl.Expr:
        """The score, or its negative, so that more is better."""
        return self.turn * score

    def proportion(self, score: pl.Expr) -> pl.Expr:
        """The score as a proportion of the range."""
        if self.low is None or self.high is None:
            return score
        return ((score - self.low) / (self.high - self.low)).clip(0, 1)

    def worth(self, score: pl.Expr, limit: pl.Expr, n: pl.Expr) -> pl.Expr:
        """The rows m of a proportion with this limit; for a metric without a range, 1 / variance.

        The variance can be almost 0, for example of kappa if all predictions are one label. So
        m is at most `MOST` for each of the `n` rows of the log.
        """
        z = normal_critical(LEVEL)
        if self.low is None:
            return z**2 / (limit - score).pow(2)
        v, end = self.proportion(score), self.proportion(limit)
        rows = rows_with_limit(v, end, z)
        return pl.when(end != v).then(rows.clip(upper_bound=self.most * n))

    def at_most(self, score: pl.Expr, n: pl.Expr, v_a: pl.Expr, rows_a: pl.Expr) -> pl.Expr:
        """An upper bound of the evidence of a score of `n` rows, without its limits."""
        if self.low is None or math.isinf(self.most):
            return pl.lit(math.inf)
        return self.evidence(self.proportion(score), self.most * n, v_a, rows_a)

    def evidence(self, v_b: pl.Expr, rows_b: pl.Expr, v_a: pl.Expr, rows_a: pl.Expr) -> pl.Expr:
        """How many standard errors b is below a, from their proportions and rows; 0 if it is not.

        It is null if one of them is unknown. Each side is moved by half a row towards the other
        (Yates 1934). Else a slice whose few rows are all wrong seems surer than it can be.
        """
        if self.low is None:
            return ((v_a - v_b) / (1 / rows_b + 1 / rows_a).sqrt()).clip(0)
        v_b, v_a = v_b + 0.5 / rows_b, v_a - 0.5 / rows_a
        both = (rows_b * v_b + rows_a * v_a) / (rows_b + rows_a)
        apart = rows_b * _divergence(v_b, both) + rows_a * _divergence(v_a, both)
        root = (2 * apart).clip(0).sqrt()
        return pl.when(v_b < v_a).then(root).when(v_b >= v_a).then(0.0)

    def apart(self, score: pl.Expr, n: pl.Expr) -> pl.Expr:
        """How many standard errors a score is from the score given its labels, on either side.

        The columns are those of `given_labels`. The expected score is a proportion, of m rows that
        give it its standard error. The score is moved towards it by half of what one row can move
        it: with few rows of a gold label, a score takes few values, and the largest are far apart.
        """
        expected, se, step = (pl.col(f"expected{part}") for part in ("", "_se", "_step"))
        expected = self.turned(expected.fill_nan(None))
        if self.low is None or self.high is None:
            return ((expected - score).abs() - step / 2).clip(0) / se
        span = self.high - self.low
        v, known = self.proportion(score), self.proportion(expected)
        rows = (known * (1 - known) / (se / span).pow(2)).clip(upper_bound=self.most * n)
        half = pl.max_horizontal(0.5 / rows, step / span / 2)
        v = known + (v - known).sign() * ((v - known).abs() - half).clip(0)
        return (2 * rows * _divergence(v, known)).clip(0).sqrt()


def rows_with_limit(v: pl.Expr, end: pl.Expr, z: pl.Expr | float) -> pl.Expr:
    """The rows of a proportion v for which Wilson's limit with the critical value z is `end`."""
    return z**2 * end * (1 - end) / (end - v).pow(2)


def _divergence(v: pl.Expr, other: pl.Expr) -> pl.Expr:
    """The Kullback-Leibler divergence of a proportion from another."""
    hit = pl.when(v > 0).then(v * (v / other).log()).otherwise(0.0)
    miss = pl.when(v < 1).then((1 - v) * ((1 - v) / (1 - other)).log()).otherwise(0.0)
    return hit + miss


def collapse(log: SlicedLog, pairs: pl.DataFrame, pool: Pool) -> pl.DataFrame:
    """The evidence of slices that have two gold classes or more, all predicted as one class.

    If such a slice had the rates of its pool, no row would be predicted as another of its gold
    classes with the probability Π (1 - r_i)^n_i: of the n_i rows with gold label i, each is so
    with the rate r_i. With sample weights w, n_i is (Σ w)² / Σ w². A column `draws` of the pairs
    counts other draws than rows: clusters. The pool has the rows of the slice too.
    """
    if pairs.is_empty():
        return pairs.select(*log.slice, pl.lit(None, pl.Float64).alias(COLLAPSE))
    n = pl.col("n").cast(pl.Float64)
    scored, of_pool = (
        cells.lazy().filter(is_scored(one) & (pl.col("n") > 0))
        for one, cells in ((log, pairs), (pool.log, pool.pairs))
    )
    draws = n if log.is_frequency else n**2 / pl.col("squares")
    draws = pl.col("draws") if "draws" in pairs.columns else draws
    sides = {side: log.within_slice(pl.col(side).n_unique()) for side in ("gold", "pred")}
    collapsed = scored.filter(sides["pred"] == 1, sides["gold"] > 1)
    collapsed = collapsed.select(*log.slice, "gold", draws=draws, only="pred").collect().lazy()
    # The gold classes of a slice that it does not predict, and how often the pool predicts them.
    missed = collapsed.filter(pl.col("gold").ne_missing(pl.col("only")))
    missed = missed.select(*log.slice, pred="gold", is_missed=pl.lit(value=True))
    of_pool = collapsed.join(of_pool, on=[*pool.log.slice, "gold"], nulls_equal=True)
    of_pool = of_pool.join(missed, on=[*log.slice, "pred"], how="left", nulls_equal=True)
    of_gold = of_pool.group_by(*log.slice, "gold").agg(
        pl.col("draws").first(), rate=n.filter("is_missed").sum() / n.sum()
    )
    log_p = (pl.col("draws") * (-pl.col("rate")).log1p()).sum()
    found = log.per_slice(of_gold.sort("gold"), log_p=log_p).collect()
    evidence = map(_evidence_of_log, found["log_p"])
    return found.select(log.slice).with_columns(pl.Series(COLLAPSE, evidence, pl.Float64))


_LEAST_LOG = -700.0  # the logarithm of a probability that a float still holds


def _evidence_of_log(log_p: float) -> float:
    """The evidence with this one-sided p-value, by its logarithm."""
    held = evidence_of(2 * math.exp(max(log_p, _LEAST_LOG)))
    return math.hypot(held, math.sqrt(2 * max(_LEAST_LOG - log_p, 0.0)))


def evidence_of(p: float) -> float:
    """The evidence, in standard errors, that has this two-sided p-value."""
    return -normal_quantile(min(p, 1.0) / 2)

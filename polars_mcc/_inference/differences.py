"""Two estimates per slice → their difference, its interval and its p-value."""

from __future__ import annotations

import math

import polars as pl

from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.estimate import Estimate
from polars_mcc._inference.options import columns_of
from polars_mcc._inference.quantiles import normal_critical, student_critical, two_sided
from polars_mcc._inference.variance import exact_sums, over_draws
from polars_mcc._log.choices import Correction

_PARTS = ("score", "low", "high", "se")
COLUMNS_A, COLUMNS_B = ([f"{part}_{letter}" for part in _PARTS] for letter in "ab")
"""The columns of both scores of a difference b - a, with their limits."""


def limits_of(metric: str) -> dict[str, str]:
    """Map the columns of a score and its limits to their short names in a difference."""
    return dict(zip((metric, *columns_of([metric])), _PARTS, strict=True))


def with_letter(estimate: Estimate, metric: str, letter: str) -> pl.LazyFrame:
    """The scores of an estimate and their limits as `score_a`, `low_a`, `high_a`, `se_a`."""
    parts = limits_of(metric)
    return estimate.scores.rename({column: f"{part}_{letter}" for column, part in parts.items()})


COVARIANCES = ("own_own", "own_total", "total_total")
"""The columns of `covariances`."""


def covariances(
    log: SlicedLog, whole: SlicedLog, slices: Estimate, total: Estimate, metric: str
) -> pl.LazyFrame:
    """The covariances of a slice's own score and the total's, over the rows of the slice.

    With the influences φ of a row on both scores, centred within the slice, they are
    Σ φ_own φ_total / n². With sample weights w they are Σ w² φ_own φ_total / (Σ w)².
    """
    on = [*whole.slice, "gold", "pred"]
    of_total = total.influences[metric].select(*on, total="phi")
    rows = slices.influences[metric].join(of_total, on=on, how="left", nulls_equal=True)
    n, total_phi = pl.col("n").cast(pl.Float64), pl.col("total")
    sums = exact_sums(log, rows, [], size=n, moved=n * total_phi)
    centred = log.beside(rows, sums).with_columns(
        own="phi", total=total_phi - pl.col("moved") / pl.col("size")
    )
    products = over_draws(
        log,
        centred,
        own_own=("own", "own"),
        own_total=("own", "total"),
        total_total=("total", "total"),
    )
    return products.select(*log.slice, pl.col(COVARIANCES) / pl.col("n") / pl.col("n"))


def independent(slices: pl.LazyFrame, ci: float) -> pl.LazyFrame:
    """Add the difference b - a of two scores that share no rows."""
    se = (pl.col("se_a").pow(2) + pl.col("se_b").pow(2)).sqrt()
    return with_difference(slices.with_columns(diff_se=se, correlation=pl.lit(0.0)), ci)


def with_difference(slices: pl.LazyFrame, ci: float, df: pl.Expr | None = None) -> pl.LazyFrame:
    """Add `diff` = b - a, its interval and its p-value, from both intervals (Zou 2007).

    The limits of a score give its variance near each limit. `correlation` is the correlation of
    both scores. If both intervals are Wald's, the interval of the difference is Wald's; else it is
    not symmetric. The p-value uses the variance on the side of 0. So it is below 1 - ci exactly
    if the interval does not hold 0. `df` are the degrees of freedom of Student's t, with clusters.
    """
    a, b, correlation = (pl.col(name) for name in ("score_a", "score_b", "correlation"))

    def reach(one: pl.Expr, other: pl.Expr) -> pl.Expr:
        squared = one.pow(2) + other.pow(2) - 2 * correlation * one * other
        return squared.fill_nan(math.inf).clip(0).sqrt()  # NaN comes from an infinite logarithm

    down = reach(b - pl.col("low_b"), pl.col("high_a") - a)
    up = reach(pl.col("high_b") - b, a - pl.col("low_a"))
    return with_limits(slices.with_columns(diff=b - a, down=down, up=up), ci, df)


def with_limits(slices: pl.LazyFrame, ci: float, df: pl.Expr | None = None) -> pl.LazyFrame:
    """Add the limits and the p-value of a `diff` whose interval reaches `down` and `up`."""
    diff = pl.col("diff")
    to_zero = pl.when(diff > 0).then("down").otherwise("up")
    of_level = pl.when(diff == 0).then(0.0).otherwise(diff.abs() / to_zero)
    p_value = two_sided(normal_critical(ci) * of_level)
    if df is not None:  # As columns, Polars computes each once.
        slices = slices.with_columns(df=df, critical=student_critical(ci, df))
        slices = slices.with_columns(t=pl.col("critical") * of_level)
        p_value = _student_p_value(ci)
    return slices.with_columns(
        diff_low=diff - pl.col("down"),
        diff_high=diff + pl.col("up"),
        p_value=pl.when(to_zero.is_not_null()).then(p_value.fill_nan(None)),
    )


def _student_p_value(ci: float) -> pl.Expr:
    """The two-sided p-value of Student's `t` with `df` degrees; 1 - ci at the `critical` value.

    It is exact for 1 and 2 degrees. For more, t becomes a normal deviate by Hill (Communications
    of the ACM 13, 1970, 617-619), scaled so that the critical value keeps its p-value. It errs by
    less than 10⁻⁴ for 3 degrees, and by less than 10⁻⁵ for more, up to 99 %.
    """
    df, critical, t = map(pl.col, ("df", "critical", "t"))
    square = 2 + t.pow(2)

    def deviate(value: pl.Expr) -> pl.Expr:
        a = df - 0.5
        b = 48 * a.pow(2)
        w = (a * (value.pow(2) / df).log1p()).sqrt().clip(upper_bound=_FAR)
        y = w.pow(2)
        more = y + 3 - (((0.4 * y + 3.3) * y + 24) * y + 85.5) / (0.8 * y.pow(2) + 100 + b)
        return w * (1 + more / b)

    return (
        pl.when(df == 1)
        .then((1 / t).arctan() * (2 / math.pi))
        .when(df == 2)
        .then(2 / (square + t * square.sqrt()))
        .otherwise(two_sided(normal_critical(ci) * deviate(t) / deviate(critical)))
    )


_FAR = 1e3  # a deviate whose p-value is 0


def adjusted(
    slices: pl.LazyFrame, correction: Correction, tests: pl.Expr | None = None
) -> pl.LazyFrame:
    """Correct the p-values for the number of `tests`: as many as p-values, or more.

    "bh" (Benjamini and Hochberg 1995) and "by" (Benjamini and Yekutieli 2001) control the false
    discovery rate; "holm" (1979) and "bonferroni", the probability of any false discovery. If
    `tests` is larger than the number of p-values, the missing p-values count as the largest.
    """
    p = pl.col("p_value")
    here = p.count()
    number = here if tests is None else tests
    m = number.cast(pl.Float64)
    place = pl.int_range(pl.len()) + 1
    if correction == "bonferroni":
        return slices.with_columns(p_adjusted=(p * m).clip(upper_bound=1))
    if correction == "holm":
        in_order = (p * (m + 1 - place)).cum_max()
        return slices.sort("p_value", nulls_last=True).with_columns(
            p_adjusted=in_order.clip(upper_bound=1)
        )
    rank = here.cast(pl.Float64) + 1 - place
    of_all = m if correction == "bh" else m * (1 / pl.int_range(1, number + 1)).sum()
    return slices.sort("p_value", descending=True, nulls_last=True).with_columns(
        p_adjusted=(p * of_all / rank).cum_min().clip(upper_bound=1)
    )

"""Two estimates per slice → their difference, its interval and its p-value."""

from __future__ import annotations

import math

import polars as pl

from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.asked import columns_of
from polars_mcc._inference.intervals import Estimate
from polars_mcc._inference.methods import normal_critical, two_sided
from polars_mcc._inference.variance import sum_of
from polars_mcc._inference.variance import total as total_of
from polars_mcc._log.choices import Correction

_PARTS = ("score", "se", "low", "high")
SIDE_A, SIDE_B = ([f"{part}_{name}" for part in _PARTS] for name in "ab")
"""The columns of each side of a difference b - a."""


def limits_of(metric: str) -> dict[str, str]:
    """Map the columns of a score and its limits to their short names in a side."""
    return dict(zip((metric, *columns_of([metric])), _PARTS, strict=True))


def side(estimate: Estimate, metric: str, name: str) -> pl.LazyFrame:
    """The scores of an estimate and their limits as `score_a`, `se_a`, `low_a`, `high_a`."""
    parts = limits_of(metric)
    return estimate.scores.rename({column: f"{part}_{name}" for column, part in parts.items()})


def side_a(estimate: Estimate, metric: str) -> pl.LazyFrame:
    """The score and limits of side a alone, to join to side b."""
    return side(estimate, metric, "a").select(*estimate.log.slice, *SIDE_A)


def covariances(
    log: SlicedLog, whole: SlicedLog, slices: Estimate, total: Estimate, metric: str
) -> pl.LazyFrame:
    """The `covariance` of the score of a slice with the score of all rows, for each slice.

    With the influences φ of a row on both scores, it is Σ φ_slice φ_total / (n N), over the rows of
    the slice. With sample weights w, it is Σ w² φ_slice φ_total / (Σ w of the slice · Σ w of all).
    """
    phi, unit = f"phi:{metric}", f"unit:{metric}"
    on = [*whole.slice, "gold", "pred"]
    of_total = total.influences[metric].select(
        *on, phi_total=phi, unit_total=unit, n_total=whole.within_slice(pl.col("n").sum())
    )
    rows = slices.influences[metric].join(of_total, on=on, how="left", nulls_equal=True)
    squares = pl.col("n" if log.is_frequency else "squares").cast(pl.Float64)
    bits = 60 if log.is_frequency else 0
    moved = squares * pl.col(phi) * pl.col("phi_total")
    shared = sum_of(log, moved, pl.col(unit) * pl.col("unit_total"), bits)
    sizes = total_of(pl.col("n")) * pl.col("n_total").max().cast(pl.Float64)
    return log.per_slice(rows, covariance=shared / sizes)


def independent(slices: pl.LazyFrame, ci: float) -> pl.LazyFrame:
    """Add the difference b - a of two scores that share no rows."""
    se = (pl.col("se_a").pow(2) + pl.col("se_b").pow(2)).sqrt()
    return with_difference(slices.with_columns(diff_se=se, correlation=pl.lit(0.0)), ci)


def with_difference(slices: pl.LazyFrame, ci: float) -> pl.LazyFrame:
    """Add `diff` = b - a, its interval and its p-value, from both intervals (Zou 2007).

    The limits of a score give its variance near each limit. `correlation` is the correlation of
    both scores. If both intervals are Wald's, the interval of the difference is Wald's; else it is
    not symmetric. The p-value uses the variance on the side of 0. So it is below 1 - ci exactly
    if the interval does not hold 0.
    """
    z = normal_critical(ci)
    a, b, diff, correlation = (
        pl.col(name) for name in ("score_a", "score_b", "diff", "correlation")
    )

    def reach(one: pl.Expr, other: pl.Expr) -> pl.Expr:
        squared = one.pow(2) + other.pow(2) - 2 * correlation * one * other
        return squared.fill_nan(math.inf).clip(0).sqrt()  # NaN comes from an infinite limit

    down = reach(b - pl.col("low_b"), pl.col("high_a") - a)
    up = reach(pl.col("high_b") - b, a - pl.col("low_a"))
    to_zero = pl.when(diff > 0).then("down").otherwise("up")
    errors = pl.when(diff == 0).then(0.0).otherwise(z * diff.abs() / to_zero)
    return slices.with_columns(diff=b - a, down=down, up=up).with_columns(
        diff_low=diff - pl.col("down"),
        diff_high=diff + pl.col("up"),
        p_value=pl.when(to_zero.is_not_null()).then(two_sided(errors)),
    )


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

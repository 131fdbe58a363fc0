"""Quantiles of the normal and of Student's distribution, as numbers and as expressions."""

from __future__ import annotations

import math
from functools import cache

import polars as pl

from polars_mcc._counts.sliced import SlicedLog


def normal_critical(ci: float) -> float:
    """The critical value of a normal interval: its standard errors to each side."""
    return normal_quantile((1 + ci) / 2)


def normal_quantile(share: float) -> float:
    """The standard normal quantile: the value with this share of the distribution below."""
    from statistics import NormalDist  # noqa: PLC0415 - slow to import, rarely needed

    return NormalDist().inv_cdf(share)


def critical(ci: float, log: SlicedLog) -> pl.Expr:
    """The critical value of a log: of Student's t if it has clusters, else the normal one.

    Student's t has one degree of freedom less than there are clusters.
    """
    if not log.has_clusters:
        return pl.lit(normal_critical(ci))
    return student_critical(ci, pl.col("n_clusters") - 1)


def student_critical(ci: float, df: pl.Expr) -> pl.Expr:
    """The critical value of Student's t, by its degrees of freedom; null below one.

    It is exact for few. For more it is the expansion of Fisher and Cornish (1960), which errs by
    less than 10⁻⁵ of the value up to 99 %.
    """
    z = normal_critical(ci)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    expansion = z + sum(term / df.pow(power) for power, term in enumerate(terms, 1))
    few = {number: _student_critical(ci, number) for number in range(1, _FEW + 1)}
    return pl.when(df > 0).then(df.replace_strict(few, default=expansion, return_dtype=pl.Float64))


_FEW = 12  # degrees of freedom with an exact value


@cache
def _student_critical(ci: float, df: int) -> float:
    """The critical value for an integer, by bisection of the angle θ = atan(t / √df).

    The share within ± t is a finite sum: Abramowitz and Stegun (1964), 26.7.3 and 26.7.4.
    """
    low, high = 0.0, math.pi / 2
    while low < (angle := (low + high) / 2) < high:
        term = math.cos(angle) if df % 2 else 1.0
        total = 0.0
        for number in range(1 + df % 2, df, 2):
            total += term
            term *= math.cos(angle) ** 2 * number / (number + 1)
        share = math.sin(angle) * total
        if df % 2:
            share = (angle + share) * 2 / math.pi
        low, high = (angle, high) if share < ci else (low, angle)
    return math.sqrt(df) * math.tan(low)


def two_sided(errors: pl.Expr) -> pl.Expr:
    """The two-sided p-value of a difference of so many standard errors, if it is normal."""
    return (errors.abs() / math.sqrt(2)).erfc()

"""Quantiles and two-sided p-values of the normal and of Student's distribution."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from polars_mcc._scores.segments import Floats, Ints


def normal_critical(ci: float) -> float:
    """The critical value of a normal interval: its standard errors to each side."""
    return normal_quantile((1 + ci) / 2)


def normal_quantile(share: float) -> float:
    """The standard normal quantile: the value with this share of the distribution below."""
    from statistics import NormalDist  # noqa: PLC0415 - slow to import, rarely needed

    return NormalDist().inv_cdf(share)


def critical(ci: float, df: Ints | None) -> Floats | float:
    """The critical value of Student's t by its degrees of freedom; NaN below one.

    If `df` is None, it is the critical value of the normal distribution.
    """
    z = normal_critical(ci)
    if df is None:
        return z
    known, of_each = np.unique(df, return_inverse=True)
    t = np.where(known > 0, z, math.nan)
    # By Newton's steps: log p is concave in log t, so they come from one side.
    for _ in range(_STEPS):
        p = student(t, known)
        steps = (np.log(p) - math.log1p(-ci)) * p / (2 * _density(t, known) * t)
        t = t * np.exp(steps)
        if np.nanmax(np.abs(steps), initial=0.0) < _CLOSE:
            break
    return t[of_each].reshape(df.shape)


_STEPS = 20
_CLOSE = 1e-12


def normal(errors: Floats) -> Floats:
    """The two-sided p-value of a difference of so many standard errors, if it is normal."""
    column = pl.Series("errors", errors, pl.Float64)
    return pl.select((pl.lit(column).abs() / math.sqrt(2)).erfc()).to_series().to_numpy()


def student(t: Floats, df: Ints) -> Floats:
    """The two-sided p-value of Student's t, from its degrees of freedom; NaN below one.

    It is the regularised incomplete beta function I_x(df/2, 1/2) at x = df / (df + t²): Abramowitz
    and Stegun (1964), 26.5.27 and the continued fraction 26.5.8.
    """
    df = np.where(df > 0, df, math.nan)
    x, y = df / (df + t**2), t**2 / (df + t**2)
    a, b = df / 2, np.full_like(df, 0.5)
    is_right = x > (a + 1) / (a + b + 2)  # There the fraction converges at 1 - x.
    factor = np.abs(t) * _density(t, df)  # x^a (1 - x)^b / B(a, b)
    a, b, x = np.where(is_right, b, a), np.where(is_right, a, b), np.where(is_right, y, x)
    part = factor / a * _fraction(a, b, x)
    return np.where(np.isinf(t), 0.0, np.where(is_right, 1 - part, part))


def _density(t: Floats, df: Ints) -> Floats:
    """The density of Student's t."""
    each, of_each = np.unique(df, return_inverse=True)
    scale = np.array([_log_ratio(one / 2) for one in each.tolist()]).reshape(each.shape)
    logs = scale[of_each].reshape(df.shape) - np.log(math.pi * df) / 2
    density: Floats = np.exp(logs - (df + 1) / 2 * np.log1p(t**2 / df))
    return density


def _log_ratio(a: float) -> float:
    """Ln Γ(a + 1/2) - ln Γ(a); for large a by its expansion, which loses no digits."""
    if not a > 50:
        return math.lgamma(a + 0.5) - math.lgamma(a) if a > 0 else math.nan
    return math.log(a) / 2 - 1 / (8 * a) + 1 / (192 * a**3) - 1 / (640 * a**5)


def _fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c = np.ones_like(x)
    d = 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / (1 + term * d)
            c = 1 + term / c
            fraction = fraction * d * c
        if not np.any(np.abs(d * c - 1) > _CLOSE):
            break
    return fraction


_TERMS = 10_000

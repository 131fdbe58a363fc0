"""The variance of a score → its interval.

A score with a range, such as 0 to 1, is treated as a proportion of m rows. m is such that the
proportion has the variance of the score. The interval of the score is then Wilson's interval (1927)
of the proportion. For a score that is a proportion, such as recall, these are the rows that could
have been wrong, and the interval is Wilson's to the last digit.

m comes from smoothed tables (see `smoothed_tables.tables_of`), because the observed table takes a
rate of 0 or 1 as known exactly. Each table smooths the rates on one side. So m is the smallest that
they give.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mcc._base.allowed_values import Method
from polars_mcc._intervals.count_arrays import Classes, Counted, Draws, of_arrays
from polars_mcc._intervals.influence_of_rows import NOTHING, Influence, differentiated
from polars_mcc._intervals.interval_options import IntervalOptions, limit_columns
from polars_mcc._intervals.never_predicted_classes import Between
from polars_mcc._metrics.derivatives import ArrayColumns, Column
from polars_mcc._metrics.mcc_and_one_vs_rest import TwoByTwo
from polars_mcc._metrics.metric_type import Metric, OverPairs
from polars_mcc._metrics.slice_sums import Flags, Floats, Ints, Segments, added_up


class Interval(NamedTuple):
    """The limits and the standard error of a score: (slices,); NaN if there is none."""

    low: Floats
    high: Floats
    se: Floats

    def widened_by(
        self,
        score: Floats,
        seen: Between,
        influence: Influence,
        *,
        is_exact: bool,
        is_compared: bool = False,
    ) -> Interval:
        """The limits, wider on each side by what a class that is never predicted may change.

        The limits of the score are independent of the values of the score at the tables of
        `never_predicted_classes.between`. So the squares of both distances from the score are
        added. `is_exact`: a textbook gives the limits, and only a score without limits gets some.
        A score jumps if it is far away even where the class is nearly never predicted. Such a score
        may be anything: its limits are the ends of its range; a score that is compared has none.
        """
        has_none = np.isnan(self.low)
        values = []
        for end, near in ((seen.least, seen.near_least), (seen.largest, seen.near_largest)):
            jumps = has_none & (np.abs(near - score) > np.abs(end - score) / 2)
            limit = np.where(near > score, influence.largest, influence.least)
            values.append(np.where(jumps, math.nan if is_compared else limit, end))
        lowest, highest = np.minimum(*values), np.maximum(*values)
        own_down, own_up = np.nan_to_num(score - self.low), np.nan_to_num(self.high - score)
        low = score - np.hypot(np.clip(score - lowest, 0, None), own_down)
        high = score + np.hypot(np.clip(highest - score, 0, None), own_up)
        is_new = ~np.isnan(low) & ~np.isnan(high) & (has_none | (not is_exact))
        low, high = np.where(is_new, low, self.low), np.where(is_new, high, self.high)
        return Interval(low, high, self.se)

    def columns(self, name: str) -> Iterable[pl.Series]:
        """The columns of an answer."""
        return of_arrays(**dict(zip(limit_columns([name]), self, strict=True)))


class Sampling(NamedTuple):
    """How the rows of slices were drawn: arrays (slices,).

    `effective` draws of equal size would be as good if all rows of a draw were alike;
    `n_clusters`, if rows are in clusters. `is_frequency`: a weight counts rows that are alike.
    """

    effective: Floats
    n_clusters: Ints | None
    is_frequency: bool

    def columns(self) -> list[pl.Series]:
        """The column of an answer that counts clusters, if there are any."""
        if self.n_clusters is None:
            return []
        return [pl.Series("n_clusters", self.n_clusters, pl.Int64)]


def interval(
    score: Floats,
    influence: Influence,
    variance: Floats,
    sampling: Sampling,
    options: IntervalOptions,
) -> Interval:
    """The interval of each exact `score`, from its `variance` and what its tables tell."""
    effective, n_clusters, is_frequency = sampling
    z = critical(options.ci, None if n_clusters is None else n_clusters - 1)
    least, largest, phi_phi = influence.least, influence.largest, influence.phi_phi
    span = largest - least
    # A mean of costs may round to a number beyond all of them.
    inside = np.clip(score, least, largest)
    score = np.where(np.abs(score - inside) <= _CLOSE * span, inside, score)
    span = np.where(np.isnan(span), np.abs(score), span)
    has_score = ~np.isnan(influence.value) & np.isfinite(score) & ~np.isnan(z)
    is_inside = has_score & (span > 0) & (least <= score) & (score <= largest)
    proportion = np.where(is_inside, (score - least) / span, math.nan)
    # Rows move the score by more than rounding does.
    varies = (NOTHING * span**2 < phi_phi) & (variance * effective > NOTHING * phi_phi)
    varies &= has_score & (variance > 0) & np.isfinite(effective)
    # At an end, each row could only move the score away from it, and their mean moves it nowhere.
    # So every φ is 0, but the φ of a square root, as of Cramér's V, may be infinite.
    varies &= (score != least) & (score != largest)
    se = np.where(varies & np.isfinite(variance), np.sqrt(variance), math.nan)
    # The rows that would have this variance. If they seem not to vary, the rows that there are.
    rows = np.where(varies, phi_phi / variance, effective)
    # Few clusters, and few rows with large weights, hide how much they vary. So G clusters count as
    # G - 1, and rows count by their weights w too: (Σ w)² / Σ w².
    if n_clusters is not None:
        rows *= 1 - 1 / n_clusters
    elif not is_frequency:
        rows = np.fmin(rows, effective)
    rows = np.where(np.isfinite(rows) & (rows > 0), rows, math.nan)
    low, high = _ends(proportion, z, se / span, rows * influence.effective_rows, options.method)
    error = np.sqrt(influence.max_variance / rows) if options.method == "score" else se
    has_proportion = ~np.isnan(proportion)
    low = np.where(has_proportion, least + span * low, score - z * error)
    high = np.where(has_proportion, least + span * high, score + z * error)
    is_known = np.isfinite(low) & np.isfinite(high) & has_score
    return Interval(np.where(is_known, low, math.nan), np.where(is_known, high, math.nan), se)


def _ends(
    proportion: Floats, z: Floats | float, se: Floats, rows: Floats, method: Method
) -> tuple[Floats, Floats]:
    """Both limits of a proportion with this standard error, and of so many rows."""
    if method == "wald":
        return proportion - z * se, proportion + z * se
    if method == "fisher":
        middle, reach = (
            np.arctanh(2 * proportion - 1),
            z * se / (2 * proportion * (1 - proportion)),
        )
        low, high = ((np.tanh(end) + 1) / 2 for end in (middle - reach, middle + reach))
        return low, high
    z2 = z**2 / rows  # Wilson's interval
    middle, reach = (proportion + z2 / 2, np.sqrt(z2 * proportion * (1 - proportion) + z2**2 / 4))
    # At an end exactly: the formula gives 1 - 4·10⁻¹⁶.
    low = np.where(proportion == 0, proportion, (middle - reach) / (1 + z2))
    high = np.where(proportion == 1, proportion, (middle + reach) / (1 + z2))
    return low, high


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
    scale = np.array([_log_ratio(a) for a in (each / 2).tolist()]).reshape(each.shape)
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


def log_interval(
    metric: Metric,
    score: Floats,
    classes: Classes,
    pairs: Counted,
    draws: tuple[Draws, Ints],
    *,
    is_0_0: Flags,
    ci: float,
) -> Interval:
    """The interval of a ratio from 0 to infinity, such as `lr_pos`: of its logarithm.

    Each exact `score` has one, with the standard error of its logarithm; NaN at 0/0. Each cell of
    the table of the positive class and the rest gets half a row (Haldane 1956), so the logarithm is
    finite and each cell has a variance. The delta method gives the standard error of the logarithm
    (Simel, Samsa and Matchar 1991).

    `pairs` are of places of classes; `draws` are those of the slices, with the pair of each cell.
    The interval reaches down from the smaller and up from the larger of two logarithms, with half
    rows and without: half a row is too much beside few rows. So it begins at 0, or ends at
    infinity, where the score is there. With sample weights, a row has their mean Σ w² / Σ w.
    """
    drawn, pair = draws
    number, size = pairs.number, drawn.size
    gold, pred = (1 - classes.is_positive[side].astype(np.int64) for side in pairs[2:4])
    place = pairs.slices * 4 + 2 * gold + pred  # tp, fn, fp, tn
    half = added_up(pairs.squares, pairs.slices, number) / size / size / 2
    shares = added_up(pairs.n, place, number * 4).reshape(number, 4).T / size + half
    col = ArrayColumns(Segments(np.arange(number), number), {})
    tp, fn, fp, tn = cells = [Column(col, share, is_variable=True) for share in shares]
    terms, no_product = OverPairs(col), tp
    table = (tp, fn, fp, tn, tp + fn, tp + fp, *(no_product,) * 3)
    terms.positive = TwoByTwo(*table)  # type: ignore[arg-type]
    logarithm = differentiated(metric, terms).log()
    # It has no unit, so the mean of these influences is 0.
    moved = np.stack(logarithm.gradient(*cells))
    phi = moved.T.reshape(-1)[place][pair]
    of_rows = drawn.products(phi, phi) / size / size
    variance = of_rows + 2 * half**2 * (moved**2).sum(axis=0)
    df = None
    if drawn.n_clusters is not None:
        df = drawn.n_clusters - 1
        variance = variance / (1 - 1 / drawn.n_clusters)
    se = np.where(np.isfinite(variance) & ~is_0_0, np.sqrt(variance), math.nan)
    reach = critical(ci, df) * se
    both = np.log(score), logarithm.value
    return Interval(np.exp(np.minimum(*both) - reach), np.exp(np.maximum(*both) + reach), se)

"""The variance of a score → its interval.

A score with a range, such as 0 to 1, is treated as a proportion of m rows. m is such that the
proportion has the variance of the score. The interval of the score is then Wilson's interval (1927)
of the proportion. For a score that is a proportion, such as recall, these are the rows that could
have been wrong, and the interval is Wilson's to the last digit.

m comes from the smoothed tables (see `tables`), because the observed table takes a rate of 0 or 1
as known exactly. Each table smooths the rates on one side. So m is the smallest that they give.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from polars_mcc._inference.arrays import Draws, of_arrays
from polars_mcc._inference.influence import NOTHING, Influence
from polars_mcc._inference.never_predicted import Between
from polars_mcc._inference.options import IntervalOptions
from polars_mcc._inference.quantiles import critical
from polars_mcc._log.choices import Method
from polars_mcc._scores.segments import Flags, Floats, Ints

PARTS = ("low", "high", "se")


@dataclass(frozen=True)
class Interval:
    """The limits and the standard error of a score: (slices,); NaN if there is none."""

    low: Floats
    high: Floats
    se: Floats

    def where(self, is_known: Flags | None) -> Interval:
        """The same where a slice can be compared with others; elsewhere none."""
        if is_known is None:
            return self
        return Interval(*(np.where(is_known, one, math.nan) for one in self._parts))

    def reaching(
        self,
        score: Floats,
        seen: Between,
        found: Influence,
        *,
        is_exact: bool,
        is_compared: bool = False,
    ) -> Interval:
        """The same, with what a class that is never predicted may add on each side.

        The limits of the score are independent of the values of the score at the tables of
        `never_predicted`. So the squares of both distances from the score are added. `is_exact`: a
        textbook gives the limits, and only a score without limits gets some. A score that jumps may
        be anything. Its limits are the ends of its range; a score that is compared has none.
        """
        has_none = np.isnan(self.low)
        values = []
        for end, near in ((seen.least, seen.near_least), (seen.most, seen.near_most)):
            jumps = has_none & (np.abs(near - score) > np.abs(end - score) / 2)
            limit = np.where(near > score, found.largest, found.least)
            values.append(np.where(jumps, math.nan if is_compared else limit, end))
        least, most = np.minimum(*values), np.maximum(*values)
        own_down, own_up = np.nan_to_num(score - self.low), np.nan_to_num(self.high - score)
        low = score - np.hypot(np.clip(score - least, 0, None), own_down)
        high = score + np.hypot(np.clip(most - score, 0, None), own_up)
        is_new = ~np.isnan(low) & ~np.isnan(high) & (has_none | (not is_exact))
        low, high = np.where(is_new, low, self.low), np.where(is_new, high, self.high)
        return Interval(low, high, self.se)

    def columns(self, name: str) -> Iterable[pl.Series]:
        """The columns of an answer."""
        return of_arrays(
            **{f"{name}_{part}": one for part, one in zip(PARTS, self._parts, strict=True)}
        )

    @property
    def _parts(self) -> tuple[Floats, ...]:
        return self.low, self.high, self.se


@dataclass(frozen=True)
class Sampling:
    """How the rows of slices were drawn: arrays (slices,).

    `effective` draws of equal size would be as good if all rows of a draw were alike;
    `n_clusters`, if rows are in clusters. `is_frequency`: a weight counts rows that are alike.
    """

    effective: Floats
    n_clusters: Ints | None
    is_frequency: bool

    @classmethod
    def of(cls, draws: Draws, *, is_frequency: bool) -> Sampling:
        """The sampling of draws."""
        return cls(draws.effective, draws.n_clusters, is_frequency)

    def columns(self) -> list[pl.Series]:
        """The column of an answer that counts clusters, if there are any."""
        if self.n_clusters is None:
            return []
        return [pl.Series("n_clusters", self.n_clusters, pl.Int64)]

    def critical(self, ci: float) -> Floats | float:
        """The critical value: of Student's t with clusters, else the normal one."""
        return critical(ci, None if self.n_clusters is None else self.n_clusters - 1)

    def independent(self, rows: Floats) -> Floats:
        """How many independent rows of equal weight would be as good.

        Few clusters, and few rows with large weights, hide how much they vary. So G clusters count
        as G - 1, and rows count by their weights w too: (Σ w)² / Σ w².
        """
        if self.n_clusters is not None:
            return rows * (1 - 1 / self.n_clusters)
        return rows if self.is_frequency else np.fmin(rows, self.effective)


def interval(
    score: Floats,
    found: Influence,
    variance: Floats,
    sampling: Sampling,
    options: IntervalOptions,
) -> Interval:
    """The interval of each exact `score`, from its `variance` and what its tables tell."""
    z, method = sampling.critical(options.ci), options.method
    least, largest, phi_phi = found.least, found.largest, found.phi_phi
    span = largest - least
    span = np.where(np.isnan(span), np.abs(score), span)
    has_score = ~np.isnan(found.value) & np.isfinite(score) & ~np.isnan(z)
    is_inside = has_score & (span > 0) & (least <= score) & (score <= largest)
    proportion = np.where(is_inside, (score - least) / span, math.nan)
    varies = has_score & _varies(score, found, span, variance, sampling.effective)
    se = np.where(varies & np.isfinite(variance), np.sqrt(variance), math.nan)
    # The rows that would have this variance. If they seem not to vary, the rows that there are.
    rows = sampling.independent(np.where(varies, phi_phi / variance, sampling.effective))
    rows = np.where(np.isfinite(rows) & (rows > 0), rows, math.nan)
    low, high = _ends(proportion, z, se / span, rows * found.effective_rows, method)
    error = np.sqrt(found.max_variance / rows) if method == "score" else se
    has_proportion = ~np.isnan(proportion)
    low = np.where(has_proportion, least + span * low, score - z * error)
    high = np.where(has_proportion, least + span * high, score + z * error)
    is_known = np.isfinite(low) & np.isfinite(high) & has_score
    low, high = (np.where(is_known, end, math.nan) for end in (low, high))
    return Interval(low, high, se)


def _varies(
    score: Floats, found: Influence, span: Floats, variance: Floats, draws: Floats
) -> Flags:
    """Whether rows move the score by more than rounding does."""
    is_moved = NOTHING * span**2 < found.phi_phi
    is_known = (variance > 0) & np.isfinite(draws) & (variance * draws > NOTHING * found.phi_phi)
    # At an end, each row could only move the score away from it, and their mean moves it nowhere.
    # So every φ is 0, but the φ of a square root, as of Cramér's V, may be infinite.
    is_end = (score == found.least) | (score == found.largest)
    return np.asarray(is_moved & is_known & ~is_end)


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
    middle, reach = (
        proportion + z2 / 2,
        np.sqrt(z2 * proportion * (1 - proportion) + z2**2 / 4),
    )
    # At an end exactly: the formula gives 1 - 4·10⁻¹⁶.
    low = np.where(proportion == 0, proportion, (middle - reach) / (1 + z2))
    high = np.where(proportion == 1, proportion, (middle + reach) / (1 + z2))
    return low, high

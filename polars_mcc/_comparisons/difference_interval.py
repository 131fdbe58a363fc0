"""Two scores per slice → their difference, its interval and its p-value."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mcc._intervals.count_arrays import floats, of_arrays
from polars_mcc._intervals.interval_methods import critical, normal, student
from polars_mcc._intervals.interval_options import limit_columns
from polars_mcc._metrics.slice_sums import Floats, Ints


class Side(NamedTuple):
    """A score with its interval and its standard error: arrays (slices,), NaN for null."""

    score: Floats
    low: Floats
    high: Floats
    se: Floats

    @classmethod
    def of(cls, scores: pl.DataFrame, metric: str, suffix: str = "") -> Side:
        """The columns of a metric in a frame of scores."""
        return cls(*(floats(scores[name + suffix]) for name in (metric, *limit_columns([metric]))))

    def gather(self, places: Ints) -> Side:
        """The scores of these slices; -1 is none."""
        return Side(*(np.append(column, math.nan)[places] for column in self))

    def logarithm(self, z: Floats | float) -> Floats:
        """The logarithm of a ratio with half rows, from the limits that `log_interval` made.

        One limit is of this logarithm and the other of the score, unless that is 0 or infinite.
        """
        with np.errstate(all="ignore"):
            own, ends = np.log(self.score), (np.log(self.low), np.log(self.high))
            below, above = ends[0] + z * self.se, ends[1] - z * self.se
            of_end = np.where(self.score == 0, above, below)
            return np.where(np.isfinite(own), below + above - own, of_end)


class Difference(NamedTuple):
    """A difference b - a with its interval and p-value: arrays (slices,), NaN for null."""

    diff: Floats
    low: Floats
    high: Floats
    se: Floats
    p_value: Floats

    def beside(self, both: pl.DataFrame, b: str = "score_b", a: str = "score_a") -> pl.DataFrame:
        """Add the difference to both scores: to the digit, and NaN where a score is."""
        limits = {"diff_low": self.low, "diff_high": self.high, "diff_se": self.se}
        columns = of_arrays(**limits, p_value=self.p_value)
        return both.with_columns(columns, diff=pl.col(b) - pl.col(a))


def difference(
    a: Side,
    b: Side,
    ci: float,
    *,
    se: Floats | None = None,
    correlation: Floats | float = 0.0,
    df: Ints | None = None,
    added: Floats | float = 0.0,
) -> Difference:
    """The difference b - a, its interval and its p-value, from both intervals (Zou 2007).

    The limits of a score give its variance near each limit. `correlation` is the correlation of
    both scores; without it, they share no rows. If both intervals are Wald's, the interval of the
    difference is Wald's; else it is not symmetric. The p-value uses the variance on the side of 0.
    So it is below 1 - ci exactly if the interval does not hold 0. `df` are the degrees of freedom
    of Student's t, with clusters. `added` is a variance of the difference that is in neither score.
    """
    with np.errstate(all="ignore"):
        reach = critical(ci, df) * np.sqrt(added)
        down, up = (np.hypot(end, reach) for end in reaches(a, b, correlation))
        if se is None:
            se = np.sqrt(a.se**2 + b.se**2)
        return with_limits(b.score - a.score, down, up, se, ci=ci, df=df)


def difference_by_cluster(
    a: Side, b: Side, ci: float, covariance: Floats, n_clusters: Ints
) -> Difference:
    """The difference b - a if rows of a cluster may be in both; `n_clusters`: in the smaller."""
    with np.errstate(all="ignore"):
        correlation = np.clip(covariance / (a.se * b.se), -1, 1)
        squared = np.clip(a.se**2 + b.se**2 - 2 * covariance, 0, None)
    known = np.nan_to_num(correlation, nan=0.0)
    return difference(a, b, ci, se=np.sqrt(squared), correlation=known, df=n_clusters - 1)


def reaches(a: Side, b: Side, correlation: Floats | float = 0.0) -> tuple[Floats, Floats]:
    """How far the interval of b - a reaches down, and up."""
    of_a = np.stack([a.high - a.score, a.score - a.low])
    of_b = np.stack([b.score - b.low, b.high - b.score])
    squared = of_a**2 + of_b**2 - 2 * correlation * of_a * of_b
    # If both reaches are known, NaN comes from an infinite logarithm.
    known = np.where(np.isnan(squared), math.inf, np.clip(squared, 0, None))
    down, up = np.where(np.isnan(of_a) | np.isnan(of_b), math.nan, np.sqrt(known))
    return down, up


def with_limits(
    diff: Floats, down: Floats, up: Floats, se: Floats, *, ci: float, df: Ints | None = None
) -> Difference:
    """The limits and the p-value of a difference whose interval reaches `down` and `up`."""
    with np.errstate(all="ignore"):
        to_zero = np.where(diff > 0, down, up)
        of_level = np.where(diff == 0, 0.0, np.abs(diff) / to_zero)
        errors = critical(ci, df) * of_level
        p_value = normal(errors) if df is None else student(errors, df)
        p_value = np.where(np.isnan(to_zero), math.nan, p_value)
        return Difference(diff, diff - down, diff + up, se, p_value)

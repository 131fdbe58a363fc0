"""The options of an interval, and the columns of an answer with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import polars as pl

from polars_mcc._log import defaults
from polars_mcc._log.choices import Method, check_at_least
from polars_mcc._scores.mcc_variants import MCC
from polars_mcc._scores.metric import Metric

if TYPE_CHECKING:
    from polars_mcc._inference.pool import Pool

TO = "_to"
"""Ends the columns of the reference of a slice."""
PERIODS = pl.Enum(["before", "after"])
FrameT_co = TypeVar("FrameT_co", covariant=True)


def columns_of(metrics: Iterable[str]) -> list[str]:
    """The columns of both limits and of the standard error of each metric."""
    return [f"{metric}_{what}" for metric in metrics for what in ("low", "high", "se")]


def with_limits_of(metrics: Iterable[str]) -> list[str]:
    """The columns of the score, both limits and the standard error of each metric."""
    return [column for metric in metrics for column in (metric, *columns_of([metric]))]


@dataclass(frozen=True)
class IntervalOptions:
    """The request for intervals: their metrics, confidence level and method."""

    ci: float
    method: Method = defaults.METHOD
    metrics: Sequence[Metric] = (MCC,)
    positive: pl.Expr | None = None
    """Whether a class is the positive one."""
    pool: Pool | None = None
    """The slices that are compared with each other, if slices are."""
    is_compared: bool = False
    """Whether scores are compared: then a score that may be anything has no limits."""
    is_smoothed: bool = True
    """Whether limits are asked for, which need smoothed tables; else only influences."""

    @property
    def sure(self) -> list[Metric]:
        """The metrics that have an interval."""
        return [metric for metric in self.metrics if not metric.no_interval]


def ranges_of(metrics: Sequence[Metric]) -> dict[str, tuple[float | None, float | None]]:
    """The range of each metric; None for an end that depends on the slice."""
    return {one.name: one.range.numbers for one in metrics if one.range is not None}


def within_range(
    scores: pl.DataFrame, ranges: Mapping[str, tuple[float | None, float | None]]
) -> pl.DataFrame:
    """Cut intervals at the ends of the range of their metric."""
    return scores.with_columns(
        pl.col(column).clip(*ends)
        for name, ends in ranges.items()
        for column in (f"{name}_low", f"{name}_high")
    )


class Resampling(Generic[FrameT_co]):
    """A method that is not a query. It takes only frames of the type `FrameT_co`."""


@dataclass(frozen=True)
class Bootstrap(Resampling[pl.DataFrame]):
    """Bootstrap intervals, from rows that are drawn with replacement.

    Counts are drawn, from a multinomial distribution. So the time depends on the number of pairs
    of labels, not on the number of rows. If the log has clusters, whole clusters are drawn. Any
    metric can be resampled, also one without a derivative. The bootstrap is not a query: the log
    must be a DataFrame. For a large log, use the DataFrame that `counts` gives.

    Args:
        replicates: How many times the rows of a slice are drawn.
        seed: The same seed gives the same replicates. None: other replicates each time.
        bca: Correct the percentiles for bias and acceleration (Efron 1987).

    Raises:
        ValueError: There are fewer than two replicates, or the seed is negative.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> method = polars_mcc.Bootstrap(replicates=500, seed=1)
        >>> log.mcc.by("ink_band", ci=0.95, method=method).columns
        ['ink_band', 'n', 'mcc', 'mcc_low', 'mcc_high', 'mcc_se', 'n_null']
    """

    replicates: int = defaults.REPLICATES
    seed: int | None = None
    bca: bool = False

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_at_least("replicates", self.replicates, 2)
        if self.seed is not None:
            check_at_least("seed", self.seed, 0)

"""What intervals are made with: the normal distribution, or rows that are drawn again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic, TypeVar

import polars as pl

from polars_mcc._log import defaults
from polars_mcc._log.choices import check_at_least

FrameT_co = TypeVar("FrameT_co", covariant=True)


def normal_critical(ci: float) -> float:
    """How many standard errors an interval of the normal distribution reaches to each side."""
    return normal_quantile((1 + ci) / 2)


def normal_quantile(share: float) -> float:
    """The standard normal deviate that is exceeded by all but this share."""
    from statistics import NormalDist  # noqa: PLC0415 - it takes a fifth of all that is loaded

    return NormalDist().inv_cdf(share)


class Resampling(Generic[FrameT_co]):
    """A method that is no query: it takes only frames of this kind."""


def two_sided(errors: pl.Expr) -> pl.Expr:
    """The p-value of a difference of so many standard errors, of the normal distribution."""
    return (errors.abs() / math.sqrt(2)).erfc()


@dataclass(frozen=True)
class Bootstrap(Resampling[pl.DataFrame]):
    """Intervals from rows that are drawn with replacement.

    Counts are drawn, from a multinomial distribution: that takes as much time as there are pairs
    of labels, whatever the rows. Of a log with clusters, whole clusters are drawn. Any metric can
    be resampled, also one that has no derivative. It is no query: the log is a DataFrame, which
    for a large log is that of `counts`.

    Args:
        replicates: How many times the rows of a slice are drawn.
        seed: What makes the same replicates come again. None: others each time.
        bca: Correct the percentiles for bias and acceleration (Efron 1987).

    Raises:
        ValueError: There are fewer than two replicates, or the seed is negative.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> method = polars_mcc.Bootstrap(replicates=500, seed=1)
        >>> log.mcc.by("ink_band", ci=0.95, method=method).columns
        ['ink_band', 'n', 'mcc', 'mcc_se', 'mcc_low', 'mcc_high', 'n_null']
    """

    replicates: int = defaults.REPLICATES
    seed: int | None = None
    bca: bool = False

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_at_least("replicates", self.replicates, 2)
        if self.seed is not None:
            check_at_least("seed", self.seed, 0)

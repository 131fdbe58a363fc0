"""The options of intervals and tests, and the deferred step that infers from counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import (
    Correction,
    Method,
    check_at_least,
    check_choice,
    check_level,
)
from polars_mcc._base.message_parts import Words, option, refused
from polars_mcc._base.unstable_polars import deferred
from polars_mcc._counts.label_hashes import Seen
from polars_mcc._counts.sliced_log import SlicedLog
from polars_mcc._counts.warnings_on_labels_and_keys import warner
from polars_mcc._frame.log_options import Described
from polars_mcc._metrics.mcc_accuracy_kappa_association import MCC
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.registry import named_labels

TO = "_to"
"""The end of the names of the keys of a reference, as in `country_to`."""
PERIODS = pl.Enum(["before", "after"])
"""The two periods that `drift` compares."""
FrameT_co = TypeVar("FrameT_co", covariant=True)


def limit_columns(metrics: Iterable[str]) -> list[str]:
    """The names of the limits and of the standard error: `mcc_low`, `mcc_high`, `mcc_se`."""
    return [f"{metric}_{what}" for metric in metrics for what in ("low", "high", "se")]


def with_limit_columns(metrics: Iterable[str]) -> list[str]:
    """The same after the name of each metric: `mcc`, `mcc_low`, `mcc_high`, `mcc_se`."""
    return [column for metric in metrics for column in (metric, *limit_columns([metric]))]


@dataclass(frozen=True)
class IntervalOptions:
    """The metrics, the confidence level and the method of intervals."""

    ci: float
    method: Method = defaults.METHOD
    metrics: Sequence[Metric] = (MCC,)
    positive: pl.Expr | None = None
    """An expression of `label`: whether this label is the positive one."""
    is_compared: bool = False
    """Whether the scores are only compared. If the data allow any score of its range, a score that
    is compared gets null limits; a score that is shown gets the ends of its range."""
    min_n: int = 1
    """The least number of rows of a slice that is compared with others."""
    correction: Correction = defaults.CORRECTION
    """The correction of p-values for the number of tests."""

    def __post_init__(self) -> None:
        """Raise a ValueError if an option that a user gave has an unknown value."""
        check_level(self.ci)
        check_choice("method", self.method, Method)
        check_choice("correction", self.correction, Correction)
        check_at_least("min_n", self.min_n, 1)

    @property
    def sure(self) -> list[Metric]:
        """The metrics with an interval."""
        return [metric for metric in self.metrics if not metric.no_interval]


def ranges_of(metrics: Sequence[Metric]) -> dict[str, tuple[float | None, float | None]]:
    """The ends of the range of each metric that has one. None: the end depends on the slice."""
    return {metric.name: metric.range.numbers for metric in metrics if metric.range is not None}


def within_range(
    scores: pl.DataFrame, ranges: Mapping[str, tuple[float | None, float | None]]
) -> pl.DataFrame:
    """Clip the limits of each metric to its range."""
    return scores.with_columns(
        pl.col(column).clip(*ends)
        for name, ends in ranges.items()
        for column in (f"{name}_low", f"{name}_high")
    )


class Resampling(Generic[FrameT_co]):
    """A method that draws rows, so it needs their counts in memory.

    A type checker refuses it for other frames than `FrameT_co`, such as a LazyFrame.
    """


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


def inferred(
    log: Described[Any],
    sliced: SlicedLog,
    counts: pl.LazyFrame,
    infer: Callable[[pl.DataFrame], pl.DataFrame],
    *,
    metrics: Sequence[Metric] = (),
    check: Callable[[pl.DataFrame], None] = lambda _: None,
) -> pl.LazyFrame:
    """What `infer` makes of counts. The counts of a lazy log are collected when the answer is.

    Then it warns about the labels. `metrics` say whether scores need two gold classes. `check`
    raises an error if the counts are wrong. `infer` gives the columns of the answer from counts
    without rows.
    """
    warn = warner(
        log, of_two_classes=any(metric.is_of_two or metric.is_of_positive for metric in metrics)
    )

    def answer(counted: pl.DataFrame) -> pl.DataFrame:
        check(counted)
        inferred = infer(counted)
        named = named_labels(metrics)
        warn(lambda: Seen.of(sliced, counted, log.roles.positive_label, named))
        return inferred

    if not log.roles.is_lazy:
        return answer(counts.collect()).lazy()
    check_portable(sliced)
    schema = infer(pl.DataFrame(schema=counts.collect_schema())).schema
    return deferred(lambda: answer(counts.collect(engine="streaming")), schema)


def check_portable(log: SlicedLog) -> None:
    """Raise a ValueError if the plan of a log is for another engine, which has no arrays."""
    if log.is_portable:
        raise refused(
            "an interval or a test is not computed by another engine, but where the counts arrive: "
            "with ",
            option("portable", value=True),
            ", ask for ",
            Words("counts(...)", "polars-mcc counts"),
            ", and ask the counts for it, with ",
            option("weight", "n"),
        )

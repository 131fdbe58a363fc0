"""scores → a verdict: is every slice good enough?"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_mcc._drift import PERIODS
from polars_mcc._exact import Floats
from polars_mcc._labels import common_dtype
from polars_mcc._log import Log, key_column
from polars_mcc._pairs import pairs

VERDICT = "verdict"
VERDICTS = pl.Enum(["fails", "passes", "not judged"])


class CheckError(AssertionError):
    """Slices of a log are not good enough: the message shows which.

    Attributes:
        failures: The slices that fail, a row each.
        judged: All slices, with their `verdict`.
    """

    __module__ = "polars_mcc"  # where users find it

    def __init__(self, message: str, judged: pl.DataFrame) -> None:
        """Take the message, and what was judged."""
        super().__init__(message)
        self.judged = judged
        self.failures = judged.filter(pl.col(VERDICT) == "fails")

    def __reduce__(self) -> tuple[type[CheckError], tuple[str, pl.DataFrame]]:
        """Travel between processes."""
        return type(self), (str(self), self.judged)


def verdict(fails: pl.Expr, is_judged: pl.Expr) -> pl.Expr:
    """What is said of a slice."""
    judged = pl.when(fails).then(pl.lit("fails")).otherwise(pl.lit("passes"))
    found = pl.when(is_judged).then(judged).otherwise(pl.lit("not judged"))
    return found.cast(VERDICTS).alias(VERDICT)


def below(value: str, high: str | None, least: float) -> pl.Expr:
    """Whether a value is too low: all of its interval, if it has one."""
    return (pl.col(value) if high is None else pl.coalesce(high, value)) < least


def with_baseline(baseline: Log, log: Log) -> tuple[Log, pl.LazyFrame]:
    """The pairs of two logs as those of two periods: of the baseline `before`, the log `after`."""
    labels = common_dtype({"the labels": log.labels, "the labels of the baseline": baseline.labels})
    numbers = baseline.numbers if isinstance(baseline.numbers, Floats) else log.numbers
    apart = replace(
        log, labels=labels, pred=labels, numbers=numbers, apart=("period",), has_total=False
    )

    def of(cells: pl.LazyFrame, period: str) -> pl.LazyFrame:
        return cells.select(
            pl.lit(period, PERIODS).alias("period"),
            *log.slice,
            pl.col("gold", "pred").cast(labels),
            pl.col("n").cast(numbers.count),
            "n_null",
        )

    counted = pairs(baseline)
    if log.several:  # In counts, the model is a key; of models that are not here, there is none.
        [*_, model] = log.slice
        models = pl.col(key_column("model")).cast(log.models, strict=False)
        counted = counted.with_columns(models.alias(model)).filter(pl.col(model).is_not_null())
    both = [of(counted, "before"), of(pairs(log), "after")]
    return apart, pl.concat(both, how="vertical_relaxed")


def passed(judged: pl.DataFrame, what: str, min_n: int) -> pl.DataFrame:
    """What was judged, unless a slice fails, or none is judged.

    Raises:
        CheckError: So it is.
    """
    fails, _, left_out = (judged.filter(pl.col(VERDICT) == name) for name in VERDICTS.categories)
    number = judged.height - left_out.height
    if number and fails.is_empty():
        return judged
    verb = "fails" if fails.height == 1 else "fail"
    message = f"{fails.height} of {number} slices {verb}: {what}"
    if not number:
        message = "there is no slice to judge"
    if not left_out.is_empty():
        message += f" ({left_out.height} not judged, of fewer than {min_n} rows)"
    if not fails.is_empty():
        message += f"\n{_table(fails.drop(VERDICT))}"
    raise CheckError(message, judged)


def _table(frame: pl.DataFrame) -> str:
    """All columns of a frame, and its first rows."""
    rows = 20
    more = f"\n… and {frame.height - rows} more" if frame.height > rows else ""
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=-1, tbl_hide_dataframe_shape=True):
        return f"{frame.head(rows)}{more}"

"""`check`: an error that shows the slices that are not good enough."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from polars_mcc._counts.cut import cut
from polars_mcc._counts.exact import Floats
from polars_mcc._counts.pairs import pairs
from polars_mcc._counts.sliced import KEY, SET, SlicedLog
from polars_mcc._inference.asked import Asked
from polars_mcc._inference.periods import PERIODS, changes, columns_for
from polars_mcc._log import defaults
from polars_mcc._log.choices import check_at_least, check_level, check_number
from polars_mcc._log.columns import MissingColumn
from polars_mcc._log.described import Described
from polars_mcc._log.frames import OtherFrame
from polars_mcc._log.keys import IntoKey, check_plain
from polars_mcc._log.labels import common_dtype
from polars_mcc._scores.metrics import MCC
from polars_mcc._verbs.by import by

_VERDICT = "verdict"
_VERDICTS = pl.Enum(["fails", "passes", "not judged"])
_SHOWN = 20  # slices that a message shows, at most


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
        self.failures = judged.filter(pl.col(_VERDICT) == "fails")

    def __reduce__(self) -> tuple[type[CheckError], tuple[str, pl.DataFrame]]:
        """Travel between processes."""
        return type(self), (str(self), self.judged)


def check(
    log: Described[Any],
    *keys: IntoKey,
    min: float | None = None,  # noqa: A002 - as a user says it
    no_worse_than: pl.DataFrame | pl.LazyFrame | OtherFrame | None = None,
    min_n: int = defaults.CHECKED_N,
    ci: float | None = None,
) -> pl.DataFrame:
    """Raise an error that shows the slices that are not good enough: a gate, or a test.

    Unlike the other verbs it decides now: the query of a LazyFrame is run.

    Args:
        *keys: What makes slices, as in `by`.
        min: The least score of a slice.
        no_worse_than: The counts of a baseline, such as last week's `counts(*keys)`, with which
            each slice is compared. One of this and `min` is to be given.
        min_n: Slices of fewer rows, here or in the baseline, are not judged.
        ci: The level at which one must be sure that a slice fails: it does if all of the
            interval of its score is below `min`, or all of the interval of its difference to
            the baseline below 0. A slice without an interval, such as one of a single predicted
            class, is judged by its score. None: scores decide, however few the rows. The level is
            that of each slice, whatever their number.

    Returns:
        A DataFrame, a row per slice, with the columns of `by`, or for a baseline those of `drift`
        but for p-values, and `verdict` (Enum): "passes" or "not judged". A slice without a score,
        because the log's `zero_division` leaves it out, is not judged.

    Raises:
        polars_mcc.CheckError: A slice fails, or none is judged. It is an AssertionError, whose
            message has a table of the slices that fail; so has its attribute `failures`.
        ValueError: Neither or both of `min` and `no_worse_than`; a baseline for windows, clusters
            or sample weights.

    Errors of `by` are raised too.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": ["a", "a", "b", "b"], "pred": ["a", "a", "b", "a"]})
        >>> log.mcc.check(min=0.5)["verdict"].to_list()
        ['passes']
        >>> log.mcc.check(min=0.6)
        Traceback (most recent call last):
            ...
        polars_mcc.CheckError: 1 of 1 slices fails: mcc below 0.6
        ┌─────┬─────────┬────────┐
        │ n   ┆ mcc     ┆ n_null │
        │ --- ┆ ---     ┆ ---    │
        │ i64 ┆ f64     ┆ i64    │
        ╞═════╪═════════╪════════╡
        │ 4   ┆ 0.57735 ┆ 0      │
        └─────┴─────────┴────────┘

    Command line:
        polars-mcc check logs/ --by country --min 0.6 --min-n 100
    """
    if (min is None) == (no_worse_than is None):
        msg = "check needs exactly one of min=0.6, say, and no_worse_than=the counts of a baseline"
        raise ValueError(msg)
    check_number("min", min)
    check_at_least("min_n", min_n, 1)
    if ci is not None:
        check_level(ci)
    cut(log, keys, answers=[_VERDICT])
    if min is not None:
        found, value, sizes, least = by(log, *keys, ci=ci).lazy(), "mcc", ["n"], min
        what = f"mcc below {min}"
    else:
        found = _compared(log, keys, no_worse_than, defaults.LEVEL if ci is None else ci)
        value, sizes, least = "diff", ["n_before", "n_after"], 0.0
        what = "mcc below that of the baseline"
    most = pl.col(value) if ci is None else pl.coalesce(f"{value}_high", value)
    if ci is not None:
        what += f", surely (ci={ci})"
    has_value = pl.col(value).is_not_null() & pl.col(value).is_not_nan()
    is_judged = pl.all_horizontal(pl.col(size) >= min_n for size in sizes) & has_value
    judged = pl.when(most < least).then(pl.lit("fails")).otherwise(pl.lit("passes"))
    verdict = pl.when(is_judged).then(judged).otherwise(pl.lit("not judged"))
    verdicts = found.with_columns(verdict.cast(_VERDICTS).alias(_VERDICT))
    return _passed(verdicts.collect(), what, min_n)


def _compared(
    log: Described[Any], keys: tuple[IntoKey, ...], baseline: object, ci: float
) -> pl.LazyFrame:
    """The slices of a log and of the counts of a baseline, compared as two periods."""
    check_plain(keys, "no_worse_than", "its rows are of another time", sets=True)
    reason = "no_worse_than is counts, of rows that are independent and alike"
    log.meaning.check_without("check", reason, "cluster", "sample_weight")
    sliced = cut(log, keys, answers=[_VERDICT, *columns_for(MCC.name)])
    model = ("model",) if sliced.has_models else ()
    try:
        counts = Described(baseline, weight="n", nulls=sliced.nulls)  # type: ignore[arg-type]
        before = cut(counts, [*sliced.keys, *model], answers=())
    except MissingColumn as error:
        msg = f"no_worse_than is not the counts of these slices: {error.problem}"
        raise pl.exceptions.ColumnNotFoundError(msg) from error
    for column, what in ((SET, "sets of keys"), ("model", "models")):
        if column in counts.meaning.schema and column not in (*sliced.keys, *model):
            msg = (
                f"no_worse_than has counts of several {what}, and so each row several times: take "
                f"counts({', '.join(map(repr, sliced.keys))}), or those of one by a filter"
            )
            raise ValueError(msg)
    before = replace(before, sets=sliced.sets, always=model)
    apart, cells = _with_baseline(before, sliced)
    found = changes(sliced, apart, cells, Asked(ci))
    shown = [name for name in columns_for(MCC.name) if name not in {"p_value", "p_adjusted"}]
    return sliced.answer(found.select(*sliced.slice, *shown))


def _with_baseline(baseline: SlicedLog, log: SlicedLog) -> tuple[SlicedLog, pl.LazyFrame]:
    """The pairs of two logs as those of two periods: of the baseline `before`, the log `after`."""
    labels = common_dtype(
        [("the labels", log.label_dtype), ("the labels of the baseline", baseline.label_dtype)]
    )
    numbers = baseline.numbers if isinstance(baseline.numbers, Floats) else log.numbers
    apart = replace(log, label_dtype=labels, pred_dtype=labels, numbers=numbers)
    apart = replace(apart, apart=("period",), has_total=False)

    def of(cells: pl.LazyFrame, period: str) -> pl.LazyFrame:
        return cells.select(
            pl.lit(period, PERIODS).alias("period"),
            *log.slice,
            pl.col("gold", "pred").cast(labels),
            pl.col("n").cast(numbers.count),
            "n_null",
        )

    counted = pairs(baseline)
    if log.has_models:  # In counts, the model is a key; of models that are not here, there is none.
        [*_, model] = log.slice
        models = pl.col(KEY + "model").cast(log.model_dtype, strict=False)
        counted = counted.with_columns(models.alias(model)).filter(pl.col(model).is_not_null())
    both = [of(counted, "before"), of(pairs(log), "after")]
    return apart, pl.concat(both, how="vertical_relaxed")


def _passed(judged: pl.DataFrame, what: str, min_n: int) -> pl.DataFrame:
    """What was judged, or a CheckError if a slice fails, or none is judged."""
    fails, _, left_out = (judged.filter(pl.col(_VERDICT) == name) for name in _VERDICTS.categories)
    number = judged.height - left_out.height
    if number and fails.is_empty():
        return judged
    verb = "fails" if fails.height == 1 else "fail"
    message = f"{fails.height} of {number} slices {verb}: {what}"
    if not number:
        message = "there is no slice to judge"
    if not left_out.is_empty():
        message += f" ({left_out.height} not judged: fewer than {min_n} rows, or no score)"
    if not fails.is_empty():
        message += f"\n{_table(fails.drop(_VERDICT))}"
    raise CheckError(message, judged)


def _table(frame: pl.DataFrame) -> str:
    """All columns of a frame, and its first rows."""
    more = f"\n… and {frame.height - _SHOWN} more" if frame.height > _SHOWN else ""
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=-1, tbl_hide_dataframe_shape=True):
        return f"{frame.head(_SHOWN)}{more}"

"""A query that counts, and the inference of arrays after it: one deferred step."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.options import IntervalOptions, ranges_of, within_range
from polars_mcc._log.messages import Words, option, said


def inferred(
    log: SlicedLog,
    counts: pl.LazyFrame,
    infer: Callable[[pl.DataFrame], pl.DataFrame],
    check: Callable[[pl.DataFrame], None] = lambda _: None,
    *,
    is_lazy: bool,
) -> pl.LazyFrame:
    """What `infer` makes of counts. The counts of a lazy log are collected when the answer is.

    `check` raises an error if the counts are wrong. `infer` gives the columns of the answer from
    counts without rows.
    """

    def answer(counted: pl.DataFrame) -> pl.DataFrame:
        check(counted)
        return infer(counted)

    if not is_lazy:
        return answer(counts.collect()).lazy()
    check_portable(log)
    schema = infer(pl.DataFrame(schema=counts.collect_schema())).schema
    return pl.defer(lambda: answer(counts.collect(engine="streaming")), schema=schema)


def with_intervals(
    log: SlicedLog, counts: pl.LazyFrame, options: IntervalOptions, *, is_lazy: bool
) -> pl.LazyFrame:
    """The scores of each slice with their intervals, within the range of each metric."""

    def infer(cells: pl.DataFrame) -> pl.DataFrame:
        from polars_mcc._inference.estimate import estimate  # noqa: PLC0415 - NumPy, for it alone

        return within_range(estimate(log, cells, options).scores, ranges_of(options.metrics))

    return inferred(log, counts, infer, is_lazy=is_lazy)


def check_portable(log: SlicedLog) -> None:
    """Raise a ValueError if the plan of a log is for another engine, which has no arrays."""
    if log.is_portable:
        msg = said(
            "an interval or a test is not computed by another engine, but where the counts arrive: "
            "with ",
            option("portable", value=True),
            ", ask for ",
            Words("counts(...)", "polars-mcc counts"),
            ", and ask the counts for it, with ",
            option("weight", "n"),
        )
        raise ValueError(msg)

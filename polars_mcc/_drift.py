"""pairs of two periods → what has changed: a slice's score now, less that of before."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_mcc._classes import Nulls
from polars_mcc._differences import LIMITS, Correction, adjusted, independent
from polars_mcc._intervals import Method, estimate
from polars_mcc._log import Log
from polars_mcc._pairs import pairs
from polars_mcc._plan_errors import Failure, unless
from polars_mcc._slices import merged_pairs

COLUMNS = (
    "n_before",
    "n_after",
    "mcc_before",
    "mcc_after",
    "diff",
    "se",
    "diff_low",
    "diff_high",
    "p_value",
    "p_adjusted",
    "n_null",
)

PERIODS = pl.Enum(["before", "after"])


def cells_of_periods(log: Log) -> tuple[Log, pl.LazyFrame]:
    """The pairs of the rows that are `before` or `after`, apart by `period`."""
    before, after = pl.col("before"), pl.col("after")
    both = Failure(
        before & after,
        pl.lit("a row is both before and after; the rows of two periods must not be the same"),
    )
    period = unless(pl.when(before).then(pl.lit("before")).otherwise(pl.lit("after")), both)
    apart = replace(log, extras=(), apart=("period",), has_total=False)
    cells = pairs(log).with_columns(period=period.cast(PERIODS))
    return apart, merged_pairs(apart, cells)


def changes(
    log: Log,
    cells: pl.LazyFrame,
    *,
    nulls: Nulls,
    zero_division: float | None,
    ci: float,
    method: Method,
    correction: Correction,
) -> pl.LazyFrame:
    """The difference of the scores of both periods, per slice of all rows of a log."""
    found = estimate(log, cells, nulls=nulls, zero_division=zero_division, ci=ci, method=method)
    scores = log.beside(found.scores, found.intervals)
    slices = replace(log, apart=())

    def of(period: str, column: str) -> pl.Expr:
        return pl.col(column).filter(pl.col("period") == period)

    both = slices.per_slice(
        scores,
        n_before=of("before", "n").sum(),
        n_after=of("after", "n").sum(),
        n_null=pl.col("n_null").sum(),
        **{
            f"{short}_{side}": of(period, column).max()
            for column, short in LIMITS.items()
            for side, period in (("a", "before"), ("b", "after"))
        },
    )
    compared = adjusted(independent(both, ci), correction)
    return compared.with_columns(mcc_before="mcc_a", mcc_after="mcc_b").select(
        *slices.slice, *COLUMNS
    )

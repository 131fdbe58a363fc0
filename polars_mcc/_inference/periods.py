"""Pairs of two periods → what has changed: a slice's score after, less that before."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.differences import LIMITS, independent
from polars_mcc._inference.intervals import estimate
from polars_mcc._log.choices import Method

COLUMNS = (
    *("n_before", "n_after", "mcc_before", "mcc_after", "diff", "se", "diff_low", "diff_high"),
    *("p_value", "p_adjusted", "n_null"),
)
PERIODS = pl.Enum(["before", "after"])


def changes(
    log: SlicedLog, apart: SlicedLog, cells: pl.LazyFrame, ci: float, method: Method
) -> pl.LazyFrame:
    """The difference of the scores of both periods, per slice of a log.

    `cells` are the pairs of the same log whose slices are `apart` by `period`.
    """
    scores = estimate(apart, cells, ci, method).scores

    def of(period: str, column: str) -> pl.Expr:
        return pl.col(column).filter(pl.col("period") == period)

    both = log.per_slice(
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
    return independent(both, ci).with_columns(mcc_before="mcc_a", mcc_after="mcc_b")

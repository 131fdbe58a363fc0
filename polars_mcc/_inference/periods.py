"""Pairs of two periods → what has changed: a slice's score after, less that before."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.asked import Asked
from polars_mcc._inference.differences import independent, limits_of
from polars_mcc._inference.intervals import estimate

PERIODS = pl.Enum(["before", "after"])
_SIDES = {"before": "a", "after": "b"}


def columns_for(metric: str) -> list[str]:
    """What is told of a slice in two periods."""
    return [
        *("n_before", "n_after", f"{metric}_before", f"{metric}_after"),
        *("diff", "diff_se", "diff_low", "diff_high", "p_value", "p_adjusted", "n_null"),
    ]


def changes(
    log: SlicedLog,
    apart: SlicedLog,
    cells: pl.LazyFrame,
    asked: Asked,
) -> pl.LazyFrame:
    """The difference of the scores of both periods, per slice of a log.

    `cells` are the pairs of the same log whose slices are `apart` by `period`.
    """
    [metric] = asked.metrics
    scores = estimate(apart, cells, asked).scores

    def of(period: str, column: str) -> pl.Expr:
        return pl.col(column).filter(pl.col("period") == period)

    both = log.per_slice(
        scores,
        n_before=of("before", "n").sum(),
        n_after=of("after", "n").sum(),
        n_null=pl.col("n_null").sum(),
        **{
            f"{short}_{side}": of(period, column).max()
            for column, short in limits_of(metric.name).items()
            for period, side in _SIDES.items()
        },
    )
    names = {f"{metric.name}_{period}": f"score_{side}" for period, side in _SIDES.items()}
    return independent(both, asked.ci).with_columns(**names)

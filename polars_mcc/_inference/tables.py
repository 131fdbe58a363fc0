"""Pairs and classes → two tables of each slice: the observed one, and one with more misses.

The observed table gives the variance of a score. This variance is 0 if all rows are right. The
other table has the same margins, and misses in every class. So its variance is not 0.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_mcc._counts.classes import beside_class, is_scored
from polars_mcc._counts.exact import power_of_two, sum_in_any_order
from polars_mcc._counts.sliced import SlicedLog

TABLE = "table"
"""The column that says which table a row belongs to."""
OBSERVED, POOLED = "observed", "pooled"
TABLES = pl.Enum([OBSERVED, POOLED])

_POOL = 2.0  # rows of each gold class


def by_table(log: SlicedLog) -> SlicedLog:
    """The same log with a slice per slice and table."""
    return replace(log, apart=(*log.apart, TABLE))


def at_each_table(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Repeat the rows of a frame for each table."""
    tables = pl.LazyFrame({TABLE: TABLES.categories}, schema={TABLE: TABLES})
    return frame.join(tables, how="cross")


def as_float(log: SlicedLog, units: str) -> pl.Expr:
    """A column of units as a float."""
    return log.numbers.from_units(pl.col(units), pl.col("unit")).cast(pl.Float64)


def both_tables(
    log: SlicedLog, pairs: pl.LazyFrame, classes: pl.LazyFrame, positive: pl.Expr | None = None
) -> pl.LazyFrame:
    """The classes of each slice at both tables, as floats, with the columns of `OverClasses`.

    Sum these floats only `in_order`.
    """
    hits, moved = pl.col("hits"), pl.col("moved")
    return (
        at_each_table(_pooled(log, pairs, _in_floats(log, classes, positive)))
        .with_columns(moved=pl.when(pl.col(TABLE) == POOLED).then(moved).otherwise(0.0))
        .with_columns(hits=hits + moved * (pl.col("support") * pl.col("drawn") - hits))
    )


def _in_floats(log: SlicedLog, classes: pl.LazyFrame, positive: pl.Expr | None) -> pl.LazyFrame:
    """The classes that occur, as floats, with the columns of `OverClasses`."""
    t, p = pl.col("gold_n"), pl.col("pred_n")

    def in_slice(condition: pl.Expr) -> pl.Expr:
        return log.within_slice(condition.cast(pl.UInt8).sum()).cast(pl.Float64)

    s = log.numbers.from_units(log.within_slice(t.sum()), pl.col("unit")).cast(pl.Float64)
    is_most = t == log.within_slice(t.max())
    return classes.filter(t + p > 0).select(
        *log.slice,
        "label",
        support=as_float(log, "gold_n"),
        predicted=as_float(log, "pred_n"),
        hits=as_float(log, "hit_n"),
        s=s,
        n=s,
        total=s,
        k=in_slice(t + p > 0),
        k_gold=in_slice(t > 0),
        k_pred=in_slice(p > 0),
        is_most=is_most,
        n_most=in_slice(is_most),
        is_positive=pl.lit(value=False) if positive is None else positive,
    )


def _pooled(log: SlicedLog, pairs: pl.LazyFrame, classes: pl.LazyFrame) -> pl.LazyFrame:
    """Add `moved` and `drawn` of each class, which describe a pool of rows.

    `moved` is the share of the gold rows of the class that go into the pool: up to two rows of each
    class. `drawn` is the share of the class in the predictions of the pool. In the pool,
    predictions are independent of gold labels. So both margins stay as they are.
    """
    n = pl.col("n").cast(pl.Float64)
    # Sample weights may add up to less than the number of rows.
    squares = n if log.is_frequency else pl.col("squares")
    rows_per_weight = log.within_slice(n.sum()) / log.within_slice(squares.sum())

    def share(support: pl.Expr) -> pl.Expr:
        return pl.when(support > 0).then(_POOL / (support + _POOL)).otherwise(0.0)

    scored = pairs.filter(is_scored(log))
    support = n.sum().over([*log.slice, "gold"]) * rows_per_weight
    of_pred = (
        scored.with_columns(
            in_pool=share(support) * n,
            unit=log.within_slice(power_of_two(n.sum())),
            rows_per_weight=rows_per_weight,
        )
        .group_by(*log.slice, "pred")
        .agg(
            drawn=sum_in_any_order(pl.col("in_pool"), pl.col("unit")),
            rows_per_weight=pl.col("rows_per_weight").max(),
        )
        .rename({"pred": "label"})
    )
    drawn, support = pl.col("drawn").fill_null(0.0), pl.col("support")
    in_pool = log.within_slice(sum_in_any_order(drawn, power_of_two(pl.col("s"))))
    rows = support * log.within_slice(pl.col("rows_per_weight").max())
    return beside_class(log, classes, "label", of_pred, "drawn", "rows_per_weight").with_columns(
        drawn=drawn / in_pool, moved=share(rows)
    )

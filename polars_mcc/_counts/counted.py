"""Rows → pairs: a row per slice and (gold, pred), with the number of rows or sum of weights."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.exact import weight_failures
from polars_mcc._counts.label_lists import in_order
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._log.plan_errors import Failure, told, unless


def counted(log: SlicedLog, rows: pl.LazyFrame | None = None) -> pl.LazyFrame:
    """Count the rows of each slice, gold, pred, and of each value of the columns that split pairs.

    `n` is the sum of the weights. `squares` is the sum of the squared weights, for sample weights
    only. `n_null` is the number of rows without a weight. A null label is counted like any other
    label. `rows` replaces the rows of the log and has the same columns.
    """
    weight = pl.col("weight")
    null, squared = weight.is_null().cast(pl.Int64), weight.cast(pl.Float64).pow(2)
    if log.weight_sums:  # Another engine has grouped equal rows already.
        null, squared = (pl.col(name) for name in (*log.weight_sums, "weight")[1:3])
    rows = log.rows if rows is None else rows
    if log.is_multilabel:
        rows = rows.with_columns(in_order(pl.col("gold", "pred").cast(log.pred_dtype)))
    sums = {"n": weight.sum(), "n_null": pl.lit(0, pl.Int64)}
    if log.weight_name is not None:
        sums = {"n": weight_total(log), "n_null": null.sum()}
        sums |= {} if log.is_frequency else {"squares": squared.sum()}
    pairs = rows.group_by(*log.slice, "gold", "pred", *log.pair_splits).agg(**sums)
    if log.is_multilabel:
        return pairs
    # Only now: there are fewer pairs than rows.
    preds = pl.col("pred", *({"baseline"} & {*log.splits})).cast(log.pred_dtype)
    return pairs.with_columns(pl.col("gold").cast(log.label_dtype), preds)


def weight_total(log: SlicedLog) -> pl.Expr:
    """The sum of weights; an error if a weight is negative or not finite, or the sum too large."""
    total = log.numbers.total(log.numbers.widen(pl.col("weight")))
    least = pl.col(next(iter(log.weight_sums), "weight")).min()
    failures = weight_failures(least, total, str(log.weight_name))
    return log.numbers.as_count(total, *failures)


def count_columns(log: SlicedLog) -> list[str]:
    """The columns of pairs that can be summed."""
    return ["n", "n_null", *([] if log.is_frequency else ["squares"])]


def added_up(log: SlicedLog, pairs: pl.LazyFrame, **columns: pl.Expr) -> pl.LazyFrame:
    """Add up pairs with the same slice and the same values of `columns`."""
    total = log.numbers.total(log.numbers.widen(pl.col("n")))
    n, *others = count_columns(log)
    return (
        pairs.select(*log.slice, n, *others, **columns)
        .group_by(*log.slice, *columns)
        .agg(pl.col(others).sum(), n=log.numbers.as_count(total))
    )


def merged(log: SlicedLog, pairs: pl.LazyFrame) -> pl.LazyFrame:
    """Add up equal pairs within the slices of `log`, which may join several slices of `pairs`."""
    return added_up(
        log, pairs, **{name: pl.col(name) for name in ("gold", "pred", *log.pair_splits)}
    )


def without_clusters(log: SlicedLog, pairs: pl.LazyFrame) -> pl.LazyFrame:
    """Add up the pairs of all clusters. A log without clusters keeps its pairs."""
    if not log.has_clusters:
        return pairs
    return added_up(log, pairs, gold=pl.col("gold"), pred=pl.col("pred"))


def countable(log: SlicedLog, pairs: pl.LazyFrame) -> pl.LazyFrame:
    """Turn pairs into a counts table. Rows without a weight are an error: they would be lost."""
    message = told(
        f"weight '{log.weight_name}' is null in ",
        pl.col("n_null"),
        " rows of one pair, which a counts table cannot hold; fill or filter them first",
    )
    n = unless(pl.col("n"), Failure(pl.col("n_null") > 0, message))
    return pairs.select(*log.slice, "gold", "pred", n=n)

"""log → pairs: a row per slice and (gold, pred) that occurs."""

from __future__ import annotations

import polars as pl

from polars_mcc._log import Log
from polars_mcc._multilabel import in_order
from polars_mcc._plan_errors import Failure, unless


def pairs(log: Log, rows: pl.LazyFrame | None = None) -> pl.LazyFrame:
    """Count the rows of each (slice, gold, pred), apart by the log's extras if it has some.

    `n` is the sum of the weights, and `squares` that of their squares if they are sample
    weights. `n_null` is the number of rows without a weight. A label that is null is counted
    like any other. The rows are those of the log, or others with its columns.
    """
    weight = pl.col("weight")
    least, null, squared = weight, weight.is_null().cast(pl.Int64), weight.cast(pl.Float64).pow(2)
    if log.sums:  # Another engine has added up the weights of rows that are alike.
        least, null, squared = (pl.col(name) for name in (*log.sums, "weight")[:3])
    rows = log.rows if rows is None else rows
    if log.multilabel:
        rows = rows.with_columns(in_order(pl.col("gold", "pred").cast(log.pred)))
    counted = rows.group_by(*log.slice, "gold", "pred", *log.extras)
    if log.weight is None:
        counts = counted.agg(n=weight.sum(), n_null=pl.lit(0, pl.Int64))
    else:
        total = log.numbers.total(log.numbers.widen(weight))
        failures = weight_failures(least.min(), total, log.weight)
        squares = {} if log.is_frequency else {"squares": squared.sum()}
        counts = counted.agg(
            n=as_count(log, total, *failures),
            n_null=null.sum(),
            **squares,
        )
    if log.multilabel:
        return counts
    labels = ["gold", *({"baseline"} & {*log.extras})]
    return counts.with_columns(pl.col(labels).cast(log.labels), pl.col("pred").cast(log.pred))


def count_columns(log: Log) -> list[str]:
    """The columns of pairs that are counts, and add up."""
    return ["n", "n_null", *([] if log.is_frequency else ["squares"])]


def merged(log: Log, pairs: pl.LazyFrame, **columns: pl.Expr) -> pl.LazyFrame:
    """Add up pairs that are the same in the slice and in `columns`."""
    total = log.numbers.total(log.numbers.widen(pl.col("n")))
    n, *others = count_columns(log)
    return (
        pairs.select(*log.slice, n, *others, **columns)
        .group_by(*log.slice, *columns)
        .agg(pl.col(others).sum(), n=as_count(log, total))
    )


def countable(log: Log, pairs: pl.LazyFrame) -> pl.LazyFrame:
    """The pairs as a counts table, or an error if rows without a weight would be lost."""
    message = pl.format(
        f"weight '{log.weight}' is null in {{}} rows of one pair, which a counts table "
        "cannot hold; fill or filter them first",
        pl.col("n_null"),
    )
    n = unless(pl.col("n"), Failure(pl.col("n_null") > 0, message))
    return pairs.select(*log.slice, "gold", "pred", n=n)


def as_count(log: Log, total: pl.Expr, *failures: Failure) -> pl.Expr:
    """A total in the dtype of counts, or an error if it is too large."""
    return unless(total, *failures, *log.numbers.failures(total)).cast(log.numbers.count)


def count_where(condition: pl.Expr) -> pl.Expr:
    """How often a condition holds, in 64 bits: the sum of a Boolean has 32."""
    return condition.cast(pl.Int64).sum()


def weight_failures(least: pl.Expr, total: pl.Expr, name: str) -> list[Failure]:
    """What makes weights no weights, from the least of them and their total."""
    negative = least < 0
    message = pl.format(
        f"weight '{name}' has or adds up to {{}}: weights must be finite and not negative; "
        "filter or mend these rows",
        pl.when(negative).then(least).otherwise(total),
    )
    return [Failure(negative | ~total.is_finite(), message)]

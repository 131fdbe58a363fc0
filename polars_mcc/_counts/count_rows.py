"""Rows → pairs: a row per slice and (gold, pred), with the number of rows or sum of weights.

The counts of the keys ("a",) are sums of the counts of ("a", "b"): no row is read for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from polars_mcc._base.errors_and_warnings import Failure, unless
from polars_mcc._counts.exact_sums import weight_failures
from polars_mcc._counts.sliced_log import KEY, LABELLED, SET, SlicedLog
from polars_mcc._keys.any_key import KeySet


def count_pairs(log: SlicedLog, rows: pl.LazyFrame | None = None) -> pl.LazyFrame:
    """Count the rows of each slice, gold, pred, and of each value of the columns that split pairs.

    `n` is the sum of the weights. `squares` is the sum of the squared weights, for sample weights
    only. `n_null` is the number of rows without a weight. A null label is counted like any other
    label. `rows` replaces the rows of the log and has the same columns.
    """
    weight, (null, squared) = pl.col("weight"), null_and_squared(log)
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
    preds = pl.col("pred", *({"baseline"} & {*log.pair_splits})).cast(log.pred_dtype)
    return pairs.with_columns(pl.col("gold").cast(log.label_dtype), preds)


def in_order(labels: pl.Expr) -> pl.Expr:
    """Sort a list of labels, and keep each label once."""
    return labels.list.unique().list.sort()


def null_and_squared(log: SlicedLog) -> tuple[pl.Expr, pl.Expr]:
    """How many rows without a weight a row stands for, and the sum of their squared weights."""
    weight = pl.col("weight")
    if log.weight_sums:  # Another engine has grouped equal rows already.
        null, squared = (pl.col(name) for name in (*log.weight_sums, "weight")[1:3])
        return null, squared
    return weight.is_null().cast(pl.Int64), weight.cast(pl.Float64).pow(2)


def weight_total(log: SlicedLog) -> pl.Expr:
    """The sum of weights; an error if a weight is negative or not finite, or the sum too large."""
    total = log.numbers.total(log.numbers.widen(pl.col("weight")))
    least = pl.col(next(iter(log.weight_sums), "weight")).min()
    failures = weight_failures(least, total, str(log.weight_name))
    return log.numbers.as_count(total, *failures)


def count_columns(log: SlicedLog) -> list[str]:
    """The columns of pairs that can be summed."""
    if log.is_reweighted:
        return ["n", "n_null", "squares", LABELLED]
    return ["n", "n_null", *([] if log.is_frequency else ["squares"])]


def pairs_added_up(log: SlicedLog, pairs: pl.LazyFrame, **columns: pl.Expr) -> pl.LazyFrame:
    """Add up pairs with the same slice and the same values of `columns`."""
    total = log.numbers.total(log.numbers.widen(pl.col("n")))
    n, *numbers = count_columns(log)
    return (
        pairs.select(*log.slice, n, *numbers, **columns)
        .group_by(*log.slice, *columns)
        .agg(pl.col(numbers).sum(), n=log.numbers.as_count(total))
    )


def merged(log: SlicedLog, pairs: pl.LazyFrame) -> pl.LazyFrame:
    """Add up equal pairs within the slices of `log`, which may join several slices of `pairs`."""
    return pairs_added_up(
        log, pairs, **{name: pl.col(name) for name in ("gold", "pred", *log.pair_splits)}
    )


def without_clusters(log: SlicedLog, pairs: pl.LazyFrame) -> pl.LazyFrame:
    """Add up the pairs of all clusters. A log without clusters keeps its pairs."""
    if not log.has_clusters:
        return pairs
    return pairs_added_up(log, pairs, gold=pl.col("gold"), pred=pl.col("pred"))


def countable(log: SlicedLog, pairs: pl.LazyFrame) -> pl.LazyFrame:
    """Turn pairs into a counts table. Rows without a weight are an error: they would be lost."""
    message = (
        f"weight '{log.weight_name}' is null in ",
        pl.col("n_null"),
        " rows of one pair, which a counts table cannot hold; fill or filter them first",
    )
    n = unless(pl.col("n"), Failure(pl.col("n_null") > 0, message))
    return pairs.select(*log.slice, "gold", "pred", n=n)


def count_pairs_of_sets(log: SlicedLog) -> pl.LazyFrame:
    """Count the pairs of each set of keys, or of the only set.

    A set that is part of larger sets is summed up from the smallest of these. All other sets are
    counted from rows. A key that is not in a set is null there.
    """
    if log.sets is None:
        return count_pairs(log)
    by_size = dict(sorted(log.sets.items(), key=lambda item: len(item[1])))
    parents = {
        name: next((larger for larger, all_keys in by_size.items() if {*keys} < {*all_keys}), None)
        for name, keys in log.sets.items()
    }
    of_rows = _from_rows(log, {name: log.sets[name] for name in parents if parents[name] is None})
    of_rows = of_rows.cache() if any(parents.values()) else of_rows
    summed: dict[str, pl.LazyFrame] = {}
    for name, keys in reversed(by_size.items()):
        parent = parents[name]
        if parent is not None:
            of_parent = summed.get(parent, of_rows.filter(pl.col(SET) == parent))
            one_set = replace(log, keys=keys, sets=None)
            of_set = merged(one_set, of_parent).with_columns(_named(log, name))
            summed[name] = of_set.cache() if name in parents.values() else of_set
    return pl.concat([of_rows, *summed.values()], how="diagonal")


def _named(log: SlicedLog, name: str) -> pl.Expr:
    return pl.lit(name, log.set_dtype).alias(SET)


def _from_rows(log: SlicedLog, sets: Mapping[str, KeySet]) -> pl.LazyFrame:
    """Count each row once per set, in one group by, which streams.

    A group by of all keys would be slow, as most of them are null. So a key that some sets lack
    goes to the first free column of its dtype: two sets of two texts each need two columns.
    """
    log = replace(log, frame=log.frame.cache()) if len(sets) > 1 else log
    shared = [key for key in log.keys if all(key in keys for keys in sets.values())]
    columns: dict[tuple[pl.DataType, int], str] = {}
    column_of: dict[str, dict[str, str]] = {}
    for name, keys in sets.items():
        own = [key for key in keys if key not in shared]
        dtypes = [log.key_dtypes[key] for key in own]
        column_of[name] = {
            key: columns.setdefault((dtype, dtypes[:place].count(dtype)), f"{SET}:{len(columns)}")
            for place, (key, dtype) in enumerate(zip(own, dtypes, strict=True))
        }
    stacked = replace(log, keys=(*columns.values(), *shared))

    def rows_of(name: str) -> pl.LazyFrame:
        free = {KEY + key: KEY + column for key, column in column_of[name].items()}
        one_set = replace(log, keys=sets[name], sets=None)
        return one_set.rows.rename(free).with_columns(_named(log, name))

    pairs = count_pairs(stacked, pl.concat(map(rows_of, sets), how="diagonal"))

    def value(key: str) -> pl.Expr:
        own = {name: of_set[key] for name, of_set in column_of.items() if key in of_set}
        return pl.coalesce(pl.when(pl.col(SET) == name).then(KEY + own[name]) for name in own)

    named = pairs.with_columns(**{KEY + key: value(key) for key in log.keys if key not in shared})
    return named.select(*log.slice, "gold", "pred", *log.pair_splits, *count_columns(log))

"""Pairs and classes → the tables of each slice at which the variance of a score is computed.

The observed table gives the standard error. It takes a rate of 0 or 1 as known exactly. So the
rows of a proportion that an interval stands for come from smoothed tables:

- `BY_GOLD`: each gold class gets two rows more, a hit and a miss. Its rows are then scaled back, so
  that the gold margin stays. The miss is spread evenly over the other classes.
- `BY_PRED`: the same for each predicted class, and the predicted margin stays.
- `POOLED`: the gold margin of the slice, and the rates of all slices that are compared together.
  Two slices with the same rates then have the same variance, whatever happened to few rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import polars as pl

from polars_mcc._counts.classes import beside_class, is_scored, of_pairs
from polars_mcc._counts.counted import merged
from polars_mcc._counts.exact import power_of_two, sum_in_any_order
from polars_mcc._counts.sliced import SlicedLog

TABLE = "table"
"""The column that says which table a row belongs to."""
OBSERVED, BY_GOLD, BY_PRED, POOLED = "observed", "by gold", "by pred", "pooled"
TABLES = pl.Enum([OBSERVED, BY_GOLD, BY_PRED, POOLED])
_OF_SLICE = (OBSERVED, BY_GOLD, BY_PRED)

_MORE = 2.0  # rows more of each class: a hit and a miss
_IS_MISS = pl.col("gold").ne_missing(pl.col("pred"))


class Pool(NamedTuple):
    """Slices that are compared with each other: a log with coarser slices, and its pairs."""

    log: SlicedLog
    pairs: pl.LazyFrame

    @classmethod
    def of(cls, log: SlicedLog, pairs: pl.LazyFrame) -> Pool:
        """Add up the pairs of all slices that are compared within a slice of `log`."""
        coarser = replace(log, extras=())
        return cls(coarser, merged(coarser, pairs).cache())


def by_table(log: SlicedLog) -> SlicedLog:
    """The same log with a slice per slice and table."""
    return replace(log, apart=(*log.apart, TABLE))


def as_float(log: SlicedLog, units: pl.Expr) -> pl.Expr:
    """A number of units as a float."""
    return log.numbers.from_units(units, pl.col("unit")).cast(pl.Float64)


def class_tables(
    log: SlicedLog,
    pairs: pl.LazyFrame,
    classes: pl.LazyFrame,
    positive: pl.Expr | None = None,
    pool: Pool | None = None,
) -> pl.LazyFrame:
    """The classes of each slice at each table, as floats, with the columns of `OverClasses`.

    `more` is the share of a class that is its two rows more, and `others` the number of classes
    over which their miss is spread. Sum these floats only `in_order`.
    """
    known = _in_floats(log, classes, positive)
    tp, fn, fp, tn = map(pl.col, ("hits", "fn", "fp", "tn"))
    by_gold, by_pred = (pl.col(TABLE) == table for table in (BY_GOLD, BY_PRED))
    smoothed = (
        at_each_table(_with_changes(log, pairs, known))
        .with_columns(
            more=pl.when(by_gold).then("more_gold").when(by_pred).then("more_pred").otherwise(0.0),
            # A class gives up a share of its own rows, and gets a half of this share as hits.
            own_fn=pl.when(by_gold)
            .then(pl.col("more_gold") * (pl.col("support") / 2 - fn))
            .when(by_pred)
            .then("fn_change")
            .otherwise(0.0),
            own_fp=pl.when(by_pred)
            .then(pl.col("more_pred") * (pl.col("predicted") / 2 - fp))
            .when(by_gold)
            .then("fp_change")
            .otherwise(0.0),
            own_tp=pl.when(by_gold)
            .then(pl.col("more_gold") * (pl.col("support") / 2 - tp))
            .when(by_pred)
            .then(pl.col("more_pred") * (pl.col("predicted") / 2 - tp))
            .otherwise(0.0),
        )
        .with_columns(
            hits=tp + pl.col("own_tp"),
            fn=(fn + pl.col("own_fn")).clip(0),
            fp=(fp + pl.col("own_fp")).clip(0),
            tn=(tn - pl.when(by_gold).then("own_fp").otherwise("own_fn")).clip(0),
        )
        .with_columns(
            support=pl.when(by_pred).then(tp + fn).otherwise("support"),
            predicted=pl.when(by_gold).then(tp + fp).otherwise("predicted"),
        )
    )
    columns = [*known.collect_schema().names(), TABLE, "more", "others"]
    tables = smoothed.select(columns)
    if pool is None:
        return tables
    return pl.concat([tables, _pooled(log, known, pool).select(columns)])


def pooled_pairs(log: SlicedLog, classes: pl.LazyFrame, pool: Pool) -> pl.LazyFrame:
    """The pairs of the pooled table, without the rows more: `weight` rows of each.

    `classes` are the tables of the classes of the slices.
    """
    of_gold = classes.filter(pl.col(TABLE) == POOLED, pl.col("support") > 0)
    rows = of_gold.select(*log.slice, "support", "more", gold="label").join(
        rates(pool), on=[*pool.log.slice, "gold"], nulls_equal=True
    )
    return rows.select(
        *log.slice,
        "gold",
        "pred",
        weight=pl.col("support") * (1 - pl.col("more")) * pl.col("rate"),
    )


def at_each_table(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Repeat the rows of a frame for each table that needs the slice alone."""
    # Not a cross join: of keys that are structs, Polars 2.0 panics in it.
    frame = frame.cache()
    return pl.concat(frame.with_columns(pl.lit(table, TABLES).alias(TABLE)) for table in _OF_SLICE)


def _in_floats(log: SlicedLog, classes: pl.LazyFrame, positive: pl.Expr | None) -> pl.LazyFrame:
    """The classes that occur, as floats, with the columns of `OverClasses`."""
    t, p, c = map(pl.col, ("gold_n", "pred_n", "hit_n"))

    def in_slice(condition: pl.Expr) -> pl.Expr:
        return log.within_slice(condition.cast(pl.UInt8).sum()).cast(pl.Float64)

    units = log.within_slice(t.sum())
    s, is_most = as_float(log, units), t == log.within_slice(t.max())
    return classes.filter(t + p > 0).select(
        *log.slice,
        "label",
        support=as_float(log, t),
        predicted=as_float(log, p),
        hits=as_float(log, c),
        fn=as_float(log, t - c),
        fp=as_float(log, p - c),
        tn=as_float(log, units - t - p + c),
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


def rows_per_weight(log: SlicedLog) -> pl.Expr:
    """How many rows a weight of 1 stands for, in a slice of pairs."""
    n = pl.col("n").cast(pl.Float64)
    return n.sum() / (n if log.is_frequency else pl.col("squares")).sum()


def _share_of_more(rows: pl.Expr) -> pl.Expr:
    """The share of a class that is its rows more."""
    return pl.when(rows > 0).then(_MORE / (rows + _MORE)).otherwise(0.0)


def _from_others(log: SlicedLog, own: pl.Expr, others: pl.Expr) -> pl.Expr:
    """The new misses that a class gets if each class spreads its `own` over the other classes."""
    total = log.within_slice(sum_in_any_order(own, power_of_two(pl.col("s"))))
    return pl.when(others > 0).then((total - own) / others).otherwise(0.0)


def _with_changes(log: SlicedLog, pairs: pl.LazyFrame, classes: pl.LazyFrame) -> pl.LazyFrame:
    """Add `more` of each class on both sides, and the change of its misses by other classes.

    `fp_change` belongs to `BY_GOLD`: other gold classes give up a share of their misses, and spread
    their new misses evenly. `fn_change` belongs to `BY_PRED`.
    """
    n = pl.col("n").cast(pl.Float64)

    def more_of(side: str) -> pl.Expr:
        rows = n.sum().over([*log.slice, side]) * pl.col("rows_per_weight")
        return _share_of_more(rows) * n

    sides = {"gold": "fp_taken", "pred": "fn_taken"}
    scored = pairs.filter(is_scored(log)).with_columns(
        unit=log.within_slice(power_of_two(n.sum())),
        rows_per_weight=log.within_slice(rows_per_weight(log)),
    )
    # Rows leave the other side of a miss: a smoothed gold class takes false positives away.
    taken = (
        scored.select(
            *log.slice,
            *("unit", "rows_per_weight"),
            pred_label="pred",
            gold_label="gold",
            is_miss=_IS_MISS,
            fp_taken=more_of("gold"),
            fn_taken=more_of("pred"),
        )
        .unpivot(
            ["pred_label", "gold_label"],
            index=[*log.slice, "unit", "rows_per_weight", "is_miss", *sides.values()],
            variable_name="side",
            value_name="label",
        )
        .group_by(*log.slice, "label")
        .agg(
            pl.col("rows_per_weight").max(),
            *(
                sum_in_any_order(
                    pl.when(pl.col("is_miss") & (pl.col("side") == side))
                    .then(column)
                    .otherwise(0.0),
                    pl.col("unit"),
                ).alias(column)
                for side, column in (("pred_label", "fp_taken"), ("gold_label", "fn_taken"))
            ),
        )
    )
    margins = {"gold": pl.col("support"), "pred": pl.col("predicted")}
    rows = {side: margin * pl.col("rows_per_weight") for side, margin in margins.items()}
    more = {f"more_{side}": _share_of_more(rows[side]) for side in margins}
    others = pl.col("k") - 1
    spread = {}
    for side, change, gone in (("gold", "fp", "fp_taken"), ("pred", "fn", "fn_taken")):
        own = pl.col(f"more_{side}") * margins[side] / 2
        spread[f"{change}_change"] = _from_others(log, own, others) - pl.col(gone)
    return (
        beside_class(log, classes, "label", taken, "rows_per_weight", *sides.values())
        .with_columns(**more, others=others)
        .with_columns(**spread)
    )


def rates(pool: Pool) -> pl.LazyFrame:
    """The share of each prediction among the rows of its gold label in the pool, and these rows."""
    log, n = pool.log, pl.col("n").cast(pl.Float64)
    of_gold = n.sum().over([*log.slice, "gold"])
    scored = pool.pairs.filter(is_scored(log))
    rate = pl.when(of_gold > 0).then(n / of_gold)
    return scored.select(*log.slice, "gold", "pred", rate=rate, of_gold=of_gold)


def _pooled(log: SlicedLog, classes: pl.LazyFrame, pool: Pool) -> pl.LazyFrame:
    """The classes of each slice at the pooled table. `more` is the share of the pool's two rows."""
    whole = pool.log
    of_pool = _in_floats(whole, of_pairs(whole, pool.pairs), None)
    per_weight = whole.per_slice(
        pool.pairs.filter(is_scored(whole)), rows_per_weight=rows_per_weight(whole)
    )
    pool_rows = pl.col("support") * pl.col("rows_per_weight")
    known = whole.beside(of_pool, per_weight).select(
        *whole.slice,
        "label",
        more=_share_of_more(pool_rows),
        hit_rate=pl.when(pl.col("support") > 0).then(pl.col("hits") / pl.col("support")),
        others=pl.col("k") - 1,
    )
    beside = classes.join(known, on=[*whole.slice, "label"], how="left", nulls_equal=True)
    beside = beside.with_columns(pl.col("hit_rate").fill_null(0.0)).cache()
    more, support = pl.col("more"), pl.col("support")
    unit = power_of_two(pl.col("s"))
    arrived = (
        beside.filter(support > 0)
        .select(*log.slice, "s", kept=support * (1 - more), gold="label")
        .join(rates(pool), on=[*whole.slice, "gold"], nulls_equal=True)
        .filter(_IS_MISS)
        .group_by(*log.slice, "pred")
        .agg(arrived=sum_in_any_order(pl.col("kept") * pl.col("rate"), unit))
        .rename({"pred": "label"})
    )
    own, others = more * support / 2, pl.col("others")
    new = _from_others(log, own, others)
    hits = support * ((1 - more) * pl.col("hit_rate") + more / 2)
    rest = pl.col("fp") + pl.col("tn")  # the rows of other gold labels, which do not change
    return (
        beside_class(log, beside, "label", arrived, "arrived")
        .with_columns(fp=(pl.col("arrived").fill_null(0.0) + new).clip(0), rest=rest)
        .with_columns(
            pl.lit(POOLED, TABLES).alias(TABLE),
            hits=hits,
            fn=(support - hits).clip(0),
            tn=(pl.col("rest") - pl.col("fp")).clip(0),
            predicted=hits + pl.col("fp"),
        )
    )

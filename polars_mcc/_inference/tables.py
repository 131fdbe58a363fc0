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
from polars_mcc._counts.exact import count_where
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.variance import exact_sums

TABLE = "table"
"""The column that says which table a row belongs to."""
METRIC = "metric"
"""The column that says which metric a row is about."""
OBSERVED, BY_GOLD, BY_PRED, POOLED = "observed", "by gold", "by pred", "pooled"
TABLES = pl.Enum([OBSERVED, BY_GOLD, BY_PRED, POOLED])

_MORE = 2.0  # rows more of each class: a hit and a miss
_OF_LABEL = {"gold": ("support", "fn"), "pred": ("predicted", "fp")}
"""The margin of each label of a class, and its rows that are no hits."""
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

    def expected(self, log: SlicedLog, pairs: pl.LazyFrame) -> pl.LazyFrame:
        """The pairs that each slice of `log` would have, if its gold labels had the pool's rates.

        `n` = `rows` · `rate`: the rows of the gold label in the slice, times the share of the
        prediction among the rows of this label in the pool, which are `pool_rows`.
        """
        n, whole = pl.col("n").cast(pl.Float64), self.log.slice
        rows = pairs.filter(is_scored(log)).group_by(*log.slice, "gold").agg(rows=n.sum())
        pool_rows = n.sum().over([*whole, "gold"])
        rates = self.pairs.filter(is_scored(self.log)).select(
            *(*whole, "gold", "pred"),
            rate=pl.when(pool_rows > 0).then(n / pool_rows),
            pool_rows=pool_rows,
        )
        found = rows.join(rates, on=[*whole, "gold"], nulls_equal=True)
        return found.with_columns(n=pl.col("rows") * pl.col("rate"))


def by_table(log: SlicedLog) -> SlicedLog:
    """The same log with a slice per slice and table."""
    return replace(log, apart=(*log.apart, TABLE))


def by_metric(log: SlicedLog) -> SlicedLog:
    """The same log with a slice per slice and metric."""
    return replace(log, apart=(*log.apart, METRIC))


def smoothed_tables(given: str | None, *, is_pooled: bool = False) -> list[str]:
    """The tables that give m. A rate of a class needs the side that it is given alone."""
    if given == "pred":
        return [BY_PRED]
    own = [BY_GOLD] if given == "gold" else [BY_GOLD, BY_PRED]
    return [*own, POOLED] if is_pooled else own


def at_table(frame: pl.LazyFrame, table: str) -> pl.LazyFrame:
    """Say that the rows of a frame belong to a table."""
    return frame.with_columns(pl.lit(table, TABLES).alias(TABLE))


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
    known = _classes_in_floats(log, classes, positive).cache()
    columns = [*known.collect_schema().names(), TABLE, "more", "others"]
    sized = with_rows_per_weight(log, known, pairs).with_columns(others=pl.col("k") - 1)
    by_gold, by_pred = (
        sized.with_columns(more=_share_of_more(pl.col(margin)))
        for margin in ("support", "predicted")
    )
    misses = pairs.filter(is_scored(log) & _IS_MISS).cache()
    tables = [
        at_table(sized.with_columns(more=pl.lit(0.0)), OBSERVED),
        at_table(_smoothed(log, misses, by_gold, "gold"), BY_GOLD),
        at_table(_smoothed(log, misses, by_pred, "pred"), BY_PRED),
    ]
    if pool is not None:
        expected = pool.expected(log, pairs).cache()
        at_rates = _at_rates(log, expected, known, pool)
        tables.append(at_table(_smoothed(log, expected.filter(_IS_MISS), at_rates, "gold"), POOLED))
    return pl.concat(table.select(columns) for table in tables)


def _classes_in_floats(
    log: SlicedLog, classes: pl.LazyFrame, positive: pl.Expr | None
) -> pl.LazyFrame:
    """The classes that occur, as floats, with the columns of `OverClasses`."""
    t, p, c = map(pl.col, ("gold_n", "pred_n", "hit_n"))
    units = log.within_slice(t.sum())
    s = as_float(log, units)
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
        total=s,  # the name in ranges of counts: see `Terms.n`
        k=log.within_slice(count_where(t + p > 0)).cast(pl.Float64),
        is_positive=pl.lit(value=False) if positive is None else positive,
    )


def with_rows_per_weight(log: SlicedLog, frame: pl.LazyFrame, pairs: pl.LazyFrame) -> pl.LazyFrame:
    """Add how many rows a weight of 1 stands for, in each slice."""
    if log.is_frequency:
        return frame.with_columns(rows_per_weight=pl.lit(1.0))
    rows = pl.col("n").cast(pl.Float64).sum() / pl.col("squares").sum()
    return log.beside(frame, log.per_slice(pairs.filter(is_scored(log)), rows_per_weight=rows))


def _share_of_more(weight: pl.Expr) -> pl.Expr:
    """The share of a class of this weight that is its rows more."""
    rows = weight * pl.col("rows_per_weight")
    return pl.when(rows > 0).then(_MORE / (rows + _MORE)).otherwise(0.0)


def _smoothed(
    log: SlicedLog, misses: pl.LazyFrame, classes: pl.LazyFrame, side: str
) -> pl.LazyFrame:
    """The table that keeps the margin of one side: gold or pred.

    A class gives up the share `more` of its own rows. A half of this share comes back as hits, the
    other half as misses that are spread evenly over the other classes.
    """
    margin, own_miss = _OF_LABEL[side]
    other = "pred" if side == "gold" else "gold"
    other_margin, other_miss = _OF_LABEL[other]
    given_up = beside_class(log, misses, side, classes, "more").drop(side).rename({other: "label"})
    n = pl.col("n").cast(pl.Float64)
    gone = exact_sums(log, given_up, ["label"], gone=n * pl.col("more"))
    more, half, others = pl.col("more"), pl.col(margin) / 2, pl.col("others")
    total = log.in_order("label")((more * half).sum())
    new = pl.when(others > 0).then((total - more * half) / others).otherwise(0.0)
    change = new - pl.col("gone").fill_null(0.0)
    hits, miss = pl.col("hits"), pl.col(own_miss)
    changed = beside_class(log, classes, "label", gone, "gone").with_columns(
        hits + more * (half - hits),
        (miss + more * (half - miss)).clip(0),
        (pl.col(other_miss) + change).clip(0),
        (pl.col("tn") - change).clip(0),
    )
    return changed.with_columns((hits + pl.col(other_miss)).alias(other_margin))


def _at_rates(
    log: SlicedLog, expected: pl.LazyFrame, classes: pl.LazyFrame, pool: Pool
) -> pl.LazyFrame:
    """The classes of the expected pairs. `more` is the share of the pool's two rows."""
    whole, support = pool.log, pl.col("support")
    of_pool = _classes_in_floats(whole, of_pairs(whole, pool.pairs), None)
    sizes = with_rows_per_weight(whole, of_pool, pool.pairs).select(
        *whole.slice, "label", more=_share_of_more(support), others=pl.col("k") - 1
    )
    sums = exact_sums(
        log,
        expected.with_columns(label="pred", is_hit=~_IS_MISS),
        ["label"],
        at_hits=pl.when("is_hit").then("n").otherwise(0.0),
        at_misses=pl.when("is_hit").then(0.0).otherwise("n"),
    )
    beside = classes.join(sizes, on=[*whole.slice, "label"], how="left", nulls_equal=True)
    rest = pl.col("fp") + pl.col("tn")  # the rows of other gold labels, which do not change
    hits, misses = (pl.col(name).fill_null(0.0) for name in ("at_hits", "at_misses"))
    return beside_class(log, beside, "label", sums, "at_hits", "at_misses").with_columns(
        hits=hits, fn=support - hits, fp=misses, tn=rest - misses
    )

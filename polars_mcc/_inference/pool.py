"""Slices that are compared with each other, and the pairs of a slice at the rates of all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mcc._counts.classes import is_scored
from polars_mcc._counts.counted import merged
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.arrays import (
    GOLD,
    NUMBER,
    PRED,
    Classes,
    Counted,
    numbered,
    with_codes,
)
from polars_mcc._scores.segments import Floats, Ints, Segments, added_up, places_in


class Expected(NamedTuple):
    """The pairs that each slice would have at the rates of its pool: arrays (cells,).

    `gold` and `pred` are places of classes, `pred` -1 if the slice has no such class.
    """

    slices: Ints
    gold: Ints
    pred: Ints
    n: Floats
    pool_rows: Floats
    """The gold rows of each class in the pool: (classes,)."""
    others: Floats
    """How many other classes the pool of each class has: (classes,)."""
    n_classes: tuple[Ints, Ints]
    """How many gold classes, and predicted classes, the pool of each slice has: (slices,)."""


@dataclass(frozen=True)
class Pool:
    """Slices that are compared with each other: a log with coarser slices, and its pairs."""

    log: SlicedLog
    pairs: pl.DataFrame

    @classmethod
    def of(cls, log: SlicedLog, pairs: pl.DataFrame) -> Pool:
        """Add up the pairs of all slices that are compared within a slice of `log`."""
        coarser = log.with_pairs_of()
        added = merged(coarser, pairs.lazy())
        return cls(coarser, added.sort(*coarser.slice, "gold", "pred").collect())

    def expected(self, log: SlicedLog, pairs: pl.DataFrame) -> pl.DataFrame:
        """The pairs that each slice of `log` would have, if its gold labels had the pool's rates.

        `n` = `rows` · `rate`: the rows of the gold label in the slice, times the share of the
        prediction among the rows of this label in the pool, which are `pool_rows`.
        """
        n, whole = pl.col("n").cast(pl.Float64), self.log.slice
        rows = pairs.lazy().filter(is_scored(log)).sort(*log.slice, "gold", "pred")
        rows = rows.group_by(*log.slice, "gold", maintain_order=True).agg(rows=n.sum())
        pool_rows = n.sum().over([*whole, "gold"])
        rates = (
            self.pairs.lazy()
            .filter(is_scored(self.log))
            .select(
                *(*whole, "gold", "pred"),
                rate=pl.when(pool_rows > 0).then(n / pool_rows),
                pool_rows=pool_rows,
            )
        )
        found = rows.join(rates, on=[*whole, "gold"], nulls_equal=True)
        return found.with_columns(n=pl.col("rows") * pl.col("rate")).collect()

    @cached_property
    def labels(self) -> pl.Series:
        """All labels of the pools."""
        return pl.concat([self.pairs["gold"], self.pairs["pred"].alias("gold")]).unique()

    def tabulated(self, classes: Classes, slices: pl.DataFrame) -> Expected:
        """The expected pairs of slices with these classes."""
        whole = self.log
        places = slices.select(pl.int_range(pl.len()).alias("place"), *whole.slice)
        pools = places.select(whole.slice).unique() if whole.slice else places[:1]
        scored = self.pairs.lazy().filter(is_scored(whole) & (pl.col("n") > 0))
        counted = with_codes(numbered(whole, scored, pools), classes.every)
        of_slices = numbered(whole, places.lazy(), pools).sort("place")
        pairs, pool_of = pl.collect_all([counted.sort(NUMBER, GOLD, PRED), of_slices])
        pool, gold, pred = (pairs[name].cast(pl.Int64).to_numpy() for name in (NUMBER, GOLD, PRED))
        n = pairs["n"].cast(pl.Float64).to_numpy()
        squares = n if whole.is_frequency else pairs["squares"].to_numpy()
        of_pools = Counted(pools.height, pool, gold, pred, n, squares)
        return tabulated(classes, pool_of[NUMBER].to_numpy(), of_pools)


def tabulated(classes: Classes, pool_of: Ints, pool: Counted) -> Expected:
    """The expected pairs of slices with these classes. `pool_of` is the pool of each slice."""
    k, n = len(classes.every), pool.n
    pools, gold, pred = pool.slices.astype(np.int64), pool.gold, pool.pred
    per_weight = added_up(n, pools, pool.number) / added_up(pool.squares, pools, pool.number)
    # The pairs of a gold label of a pool follow each other.
    keys, starts = np.unique(pools * k + gold, return_index=True)
    labels = Segments(starts, len(n))
    rows, each_pred = labels.sum(n), np.unique(pools * k + pred)
    each = [np.bincount(one // k, minlength=pool.number) for one in (keys, each_pred)]
    either = np.bincount(np.union1d(keys, each_pred) // k, minlength=pool.number)
    of_class = pool_of[classes.rows.of_row].astype(np.int64)
    place = places_in(keys, of_class * k + classes.codes)
    is_gold = place >= 0
    here = np.flatnonzero(is_gold & (classes.t > 0))
    of_class_here, at = labels.rows_of(place[here])
    cells = here[of_class_here]
    of_slice = classes.rows.of_row[cells]
    return Expected(
        of_slice,
        cells,
        classes.places(of_slice, pred[at]),
        classes.t[cells] * (n[at] / rows[place[cells]]),
        np.where(is_gold, rows[place] * per_weight[of_class], 0.0),
        either[of_class].astype(float) - 1,
        (each[0][pool_of], each[1][pool_of]),
    )

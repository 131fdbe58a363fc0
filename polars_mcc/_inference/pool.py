"""Slices that are compared with each other, and the pairs of a slice at the rates of all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import polars as pl

from polars_mcc._counts.classes import is_scored, of_pairs
from polars_mcc._counts.counted import merged
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.arrays import GOLD, NUMBER, PRED, in_floats, numbered, with_places
from polars_mcc._scores.column import Floats, Ints


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


@dataclass(frozen=True)
class Pool:
    """Slices that are compared with each other: a log with coarser slices, and its pairs."""

    log: SlicedLog
    pairs: pl.DataFrame

    @classmethod
    def of(cls, log: SlicedLog, *pairs: pl.DataFrame) -> Pool:
        """Add up the pairs of all slices that are compared within a slice of `log`."""
        coarser = replace(log, extras=())
        added = merged(coarser, pl.concat([one.lazy() for one in pairs], how="diagonal"))
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

    def tabulated(
        self, log: SlicedLog, pairs: pl.DataFrame, classes: pl.DataFrame, slices: pl.DataFrame
    ) -> Expected:
        """The expected pairs of slices with these numbered and sorted classes."""
        expected = numbered(log, self.expected(log, pairs), slices)
        placed = with_places(expected, classes, "left").drop_nulls(GOLD)
        placed = placed.sort(NUMBER, GOLD, "pred")
        whole, n = self.log, pl.col("n").cast(pl.Float64)
        rows = pl.lit(1.0) if whole.is_frequency else n.sum() / pl.col("squares").sum()
        of_pool = in_floats(whole, of_pairs(whole, self.pairs.lazy())).select(
            *whole.slice, "label", pool_rows="t", others=whole.within_slice(pl.len())
        )
        per_weight = whole.per_slice(self.pairs.lazy().filter(is_scored(whole)), per_weight=rows)
        sizes = whole.beside(of_pool, per_weight).with_columns(
            pl.col("pool_rows") * pl.col("per_weight")
        )
        on = [*whole.slice, "label"]
        beside = classes.join(
            sizes.collect(), on=on, how="left", nulls_equal=True, maintain_order="left"
        )
        return Expected(
            placed[NUMBER].to_numpy(),
            placed[GOLD].to_numpy(),
            placed[PRED].cast(pl.Int64).fill_null(-1).to_numpy(),
            placed["n"].to_numpy(),
            beside["pool_rows"].fill_null(0.0).to_numpy(),
            beside["others"].cast(pl.Float64).to_numpy() - 1,
        )

"""Counted pairs → arrays: the classes and the pairs of each slice, and independent draws.

A slice is a number: the place of its row in the frame of scores. A class is a place in `Classes`,
so a pair is two such places. Rows are sorted by slice and label, so sums of floats are equal in
each run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mcc._counts.classes import is_scored
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._scores.segments import Flags, Floats, Ints, Segments, added_up, places_in

NUMBER, GOLD, PRED = "of slice", "of gold", "of pred"
"""The columns with the number of a slice, and with the places of its classes."""


class Counted(NamedTuple):
    """Counted pairs of so many slices, sorted by slice, gold and pred: arrays (cells,).

    `gold` and `pred` are the codes of labels: places among all labels. `squares` are the sums of
    squared sample weights; without such weights, n.
    """

    number: int
    slices: Ints
    gold: Ints
    pred: Ints
    n: Floats | Ints
    """Integers, if the weights are."""
    squares: Floats | Ints


@dataclass(frozen=True)
class Classes:
    """The labels that occur in each slice, sorted. An array has a number per class: (classes,).

    `codes` are places in `every`, all labels of the log, sorted. `t` counts the gold rows of a
    class, `p` the predicted rows, `c` the hits; `fn`, `fp` and `tn` are exact differences of these,
    rounded once. `is_positive` is 1 for the positive class.
    """

    every: pl.Series
    rows: Segments
    codes: Ints
    t: Floats
    p: Floats
    c: Floats
    fn: Floats
    fp: Floats
    tn: Floats
    is_positive: Floats

    @cached_property
    def s(self) -> Floats:
        """The weight of the rows of each slice."""
        return self.rows.sum(self.t)

    @cached_property
    def k(self) -> Floats:
        """How many classes each slice has."""
        return self.rows.lengths.astype(float)

    def part(self, first: int, last: int, of_class: slice) -> Classes:
        """The same for some slices, whose classes are these."""
        starts = self.rows.starts[first:last] - of_class.start
        return self._taken(Segments(starts, of_class.stop - of_class.start), of_class)

    def where(self, chosen: Flags) -> Classes:
        """The same for the chosen slices."""
        is_kept = chosen[self.rows.of_row]
        starts = np.cumsum(self.rows.lengths[chosen]) - self.rows.lengths[chosen]
        return self._taken(Segments(starts, int(is_kept.sum())), is_kept)

    def _taken(self, rows: Segments, of_class: slice | Flags) -> Classes:
        """Some classes, which belong to other slices."""
        arrays = (self.codes, self.t, self.p, self.c, self.fn, self.fp, self.tn, self.is_positive)
        return Classes(self.every, rows, *(one[of_class] for one in arrays))

    @property
    def others(self) -> Floats:
        """How many other classes the slice of each class has: (classes,)."""
        return self.rows.spread(self.k) - 1

    @property
    def labels(self) -> pl.DataFrame:
        """The label of each class."""
        return self.every[self.codes].alias("label").to_frame()

    @cached_property
    def _ids(self) -> Ints:
        return self.rows.of_row * len(self.every) + self.codes

    def places(self, slices: Ints, codes: Ints) -> Ints:
        """The places of labels in the classes of slices; -1 where a slice has no such class."""
        return places_in(self._ids, slices.astype(np.int64) * len(self.every) + codes)


@dataclass(frozen=True)
class Pairs:
    """The scored pairs of each slice, sorted by slice, gold and pred.

    `gold` and `pred` are the places of their classes; of a log of scores, `gold` is 1 for positive
    rows, and `pred` the place of the level. `n` is the weight of the rows of a pair, and `squares`
    the sum of their squared sample weights; without such weights, n: arrays (pairs,).
    """

    rows: Segments
    gold: Ints
    pred: Ints
    n: Floats
    squares: Floats
    slices: pl.DataFrame = field(default_factory=pl.DataFrame)
    """The columns of each slice."""
    labels: tuple[pl.Series, pl.Series] = (pl.Series(), pl.Series())
    """What a place in `gold`, and in `pred`, stands for."""

    @classmethod
    def of(
        cls,
        log: SlicedLog,
        counted: pl.DataFrame,
        places: tuple[Ints, Ints],
        slices: pl.DataFrame,
        labels: tuple[pl.Series, pl.Series],
    ) -> Pairs:
        """The pairs of a sorted frame with the number of their slice."""
        n = counted["n"].cast(pl.Float64).to_numpy()
        squares = n if log.is_frequency else counted["squares"].to_numpy()
        rows = Segments.of(counted[NUMBER].to_numpy(), slices.height)
        return cls(rows, *places, n, squares, slices.select(log.slice), labels)

    @property
    def frame(self) -> pl.DataFrame:
        """The columns of the slice, its number, `gold` and `pred`: a row per pair."""
        of_gold, of_pred = self.labels
        number = pl.Series(NUMBER, self.rows.of_row, pl.UInt32)
        keys = self.slices[number].get_columns() if self.slices.width else []
        labels = of_gold[self.gold].alias("gold"), of_pred[self.pred].alias("pred")
        return pl.DataFrame([*keys, *labels, number])

    @property
    def per_weight(self) -> Floats:
        """How many rows a weight of 1 stands for, in each slice."""
        return self.rows.sum(self.n) / self.rows.sum(self.squares)

    @property
    def counted(self) -> pl.DataFrame:
        """The pairs with their places and counts."""
        counts = {GOLD: self.gold, PRED: self.pred, "n": self.n, "squares": self.squares}
        return self.frame.with_columns(pl.Series(name, one) for name, one in counts.items())

    def with_influence(self, phi: Floats, name: str = "phi") -> pl.DataFrame:
        """The pairs with their influence, to join to cells."""
        return self.frame.with_columns(pl.Series(name, phi, pl.Float64))


def coded(
    log: SlicedLog,
    slices: pl.DataFrame,
    classes: pl.DataFrame,
    pairs: pl.LazyFrame,
    *,
    positive: pl.Expr | None = None,
    more: Sequence[pl.Series] = (),
) -> tuple[Classes, Pairs]:
    """The classes and the scored pairs of slices, with numbers in place of slices and labels."""
    every = pl.concat([classes["label"], *more]).unique().sort()
    codes = every.to_frame("label").with_row_index(GOLD).lazy()
    of_classes = numbered(log, _in_floats(log, classes.lazy(), positive), slices)
    of_classes = of_classes.join(codes, on="label", nulls_equal=True).sort(NUMBER, GOLD)
    scored = pairs.filter(is_scored(log) & (pl.col("n") > 0))
    of_pairs = with_codes(numbered(log, scored, slices), every)
    of_pairs = of_pairs.select(NUMBER, GOLD, PRED, "n", "^squares$").sort(NUMBER, GOLD, PRED)
    found, counted = pl.collect_all([of_classes, of_pairs])
    number = slices.height
    rows = Segments.of(found[NUMBER].to_numpy(), number)
    names = ("t", "p", "c", "fn", "fp", "tn", "is_positive")
    arrays = Classes(every, rows, *(found[name].to_numpy() for name in (GOLD, *names)))
    of_slice = counted[NUMBER].to_numpy()
    gold, pred = (arrays.places(of_slice, counted[name].to_numpy()) for name in (GOLD, PRED))
    of_class = every[arrays.codes]
    return arrays, Pairs.of(log, counted, (gold, pred), slices, (of_class, of_class))


def _in_floats(log: SlicedLog, classes: pl.LazyFrame, positive: pl.Expr | None) -> pl.LazyFrame:
    """The classes that occur, as floats, with the names of `Classes`."""
    t, p, c = (pl.col(f"{side}_n") for side in ("gold", "pred", "hit"))
    s = log.within_slice(t.sum())
    counts = {"t": t, "p": p, "c": c, "fn": t - c, "fp": p - c, "tn": s - t - p + c}
    is_positive = pl.lit(value=False) if positive is None else positive
    return classes.filter(t + p > 0).select(
        *log.slice,
        "label",
        **{
            name: log.numbers.from_units(units, pl.col("unit")).cast(pl.Float64)
            for name, units in counts.items()
        },
        is_positive=is_positive.cast(pl.Float64).fill_null(0.0),
    )


def with_codes(pairs: pl.LazyFrame, labels: pl.Series) -> pl.LazyFrame:
    """Add the places of both labels of pairs among all labels."""
    codes = labels.to_frame("gold").lazy()
    of_gold = codes.with_row_index(GOLD)
    of_pred = codes.rename({"gold": "pred"}).with_row_index(PRED)
    return pairs.join(of_gold, on="gold", nulls_equal=True).join(
        of_pred, on="pred", nulls_equal=True
    )


def numbered(log: SlicedLog, rows: pl.LazyFrame, slices: pl.DataFrame) -> pl.LazyFrame:
    """Add the number of the slice of each row, its place in `slices`."""
    if not log.slice:
        return rows.with_columns(pl.lit(0, pl.UInt32).alias(NUMBER))
    numbers = slices.lazy().select(log.slice).with_row_index(NUMBER)
    return rows.join(numbers, on=log.slice, nulls_equal=True)


def beside(log: SlicedLog, rows: pl.DataFrame, slices: pl.DataFrame) -> pl.DataFrame:
    """Join columns of slices to the rows of each slice, in the order of the rows."""
    on = log.slice or pl.lit(0)
    return rows.join(slices, on=on, how="left", nulls_equal=True, maintain_order="left")


def beside_pairs(
    log: SlicedLog, cells: pl.DataFrame, pairs: pl.DataFrame, pred: str = "pred"
) -> pl.DataFrame:
    """Join columns of pairs to cells, which may have another prediction too."""
    of_pair = pairs.rename({"pred": pred})
    return cells.join(of_pair, on=[*log.slice, "gold", pred], nulls_equal=True)


@dataclass(frozen=True)
class Draws:
    """The independent draws of slices: rows, or clusters. A cell has equal rows of one cluster.

    The arrays are (cells,). `slices` has the number of the slice. `n` is the weight of the cell.
    `squares` is the sum of the squared weights of its rows. With clusters, `starts` has the first
    cell of each cluster.
    """

    number: int
    cells: pl.DataFrame
    slices: Ints
    n: Floats
    squares: Floats
    starts: Ints | None

    @classmethod
    def of(cls, log: SlicedLog, cells: pl.DataFrame, number: int, *, order: Sequence[str]) -> Draws:
        """The draws of cells with the number of their slice. `order` is that within a draw.

        A cluster without weight is no draw.
        """
        clusters = ["cluster"] if log.has_clusters else []
        cells = cells.filter(pl.col("n") > 0).sort(NUMBER, *clusters, *order)
        starts = None
        if clusters:
            last = pl.col(NUMBER, "cluster").shift()
            is_new = pl.any_horizontal(pl.col(NUMBER, "cluster").ne_missing(last))
            is_new = is_new | (pl.int_range(pl.len()) == 0)
            starts = cells.select(is_new.arg_true()).to_series().to_numpy()
        n = cells["n"].cast(pl.Float64).to_numpy()
        is_row = not clusters and not log.is_frequency
        squares = cells["squares"].to_numpy() if is_row else n
        return cls(number, cells, cells[NUMBER].to_numpy(), n, squares, starts)

    @classmethod
    def of_pairs(cls, pairs: Pairs) -> Draws:
        """The draws of pairs: each row is one."""
        number = len(pairs.rows.starts)
        return cls(number, pl.DataFrame(), pairs.rows.of_row, pairs.n, pairs.squares, None)

    @cached_property
    def of_cell(self) -> Ints:
        """The number of the draw of each cell."""
        if self.starts is None:
            return np.arange(len(self.n))
        return Segments(self.starts, len(self.n)).of_row

    @property
    def size_of_cell(self) -> Floats:
        """The weight of the rows of the draw of each cell."""
        return added_up(self.n, self.of_cell, len(self.n))[self.of_cell]

    @cached_property
    def n_clusters(self) -> Ints | None:
        """How many clusters each slice has."""
        if self.starts is None:
            return None
        return np.bincount(self.slices[self.starts], minlength=self.number)

    def with_rows(self, is_in: Flags) -> Floats:
        """How many draws of equal size have some of these cells: (slices,)."""
        if self.starts is not None:
            first = self.starts[np.unique(self.of_cell[is_in])]
            return np.bincount(self.slices[first], minlength=self.number).astype(np.float64)
        sums = (added_up(one * is_in, self.slices, self.number) for one in (self.n, self.squares))
        return equal_rows(*sums)

    def with_gold(self, gold: Ints, classes: int) -> tuple[Floats, Floats]:
        """How many draws have rows of each gold class, and rows of the others of its slice.

        `gold` is the place of the gold class of each cell.
        """
        slices = np.zeros(classes, np.int64)
        slices[gold] = self.slices
        if self.n_clusters is None:
            n, squares = (added_up(one, gold, classes) for one in (self.n, self.squares))
            every = added_up(self.squares, self.slices, self.number)
            return equal_rows(n, squares), equal_rows(
                self.size[slices] - n, every[slices] - squares
            )
        # A draw with rows of one class has none of the others.
        of_draw, places = np.unique(self.of_cell * classes + gold, return_index=True)
        of_draw, of_class = of_draw // classes, gold[places]
        is_alone = np.bincount(of_draw)[of_draw] == 1
        own = np.bincount(of_class, minlength=classes)
        alone = np.bincount(of_class[is_alone], minlength=classes)
        return own.astype(np.float64), (self.n_clusters[slices] - alone).astype(np.float64)

    @cached_property
    def size(self) -> Floats:
        """The weight of the rows of each slice."""
        return added_up(self.n, self.slices, self.number)

    @cached_property
    def effective(self) -> Floats:
        """How many draws of equal size would be as good, if all rows of a draw were alike."""
        one = np.ones(len(self.n))
        with np.errstate(all="ignore"):
            return self.size / self.products(one, one) * self.size

    def products(self, a: Floats, b: Floats) -> Floats:
        """Sum products of two numbers of cells over the draws of each slice: (slices,).

        The product is Σ (Σ n·a)·(Σ n·b), where the inner sums are over the cells of a draw. So the
        variance of a mean with the influence a is the sum of a·a, divided by `size`². The sum is
        NaN if it is infinite.
        """
        if self.starts is None:
            slices, addends = self.slices, self.squares * a * b
        elif not len(self.starts):
            return np.zeros(self.number)
        else:
            slices = self.slices[self.starts]
            x = np.add.reduceat(self.n * a, self.starts)
            addends = x * (x if b is a else np.add.reduceat(self.n * b, self.starts))
        found = added_up(addends, slices, self.number)
        return np.where(np.isfinite(found), found, np.nan)


def equal_rows(n: Floats | Ints, squares: Floats | Ints) -> Floats:
    """How many rows of equal weight would be as good (Kish 1965)."""
    found: Floats = np.zeros(len(n))
    np.divide(n, squares, out=found, where=squares > 0)
    return found * n


def floats(column: pl.Series) -> Floats:
    """A column as floats, with NaN for null."""
    return column.cast(pl.Float64).to_numpy()


def of_arrays(**arrays: Floats) -> Iterable[pl.Series]:
    """Columns from arrays: NaN becomes null."""
    return (pl.Series(name, one, pl.Float64, nan_to_null=True) for name, one in arrays.items())

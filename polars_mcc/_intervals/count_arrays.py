"""Counted pairs → arrays: the pairs and the classes of each slice, and independent draws.

A slice is a number: the place of its row in the frame of scores. A label is a code: its place among
all labels, sorted. A class is a label that occurs in a slice: a place in `Classes`. Rows are sorted
by slice and label, so sums of floats are equal in each run.

Rows without a label add to the variance of a score. Of N rows of a slice, N_j have the prediction
j, and n_j of these a label. With w_j = N_j / N, and with m_j and s_j² the mean and the variance of
the influence φ over the labelled rows with the prediction j, the variance of two phases is

    Σ_j w_j m_j² / N + Σ_j w_j² s_j² / n_j
        = Σ_j w_j (m_j² + s_j²) / N + Σ_j w_j (f_j - 1) s_j² / N,    f_j = N_j / n_j.

The first sum of the second line is the variance if all rows had a label. A labelled row counts as
f_j rows: its weight is f_j, and its squared weight f_j².
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mcc._counts.class_counts import is_scored
from polars_mcc._counts.sliced_log import STRATUM, SlicedLog, joined
from polars_mcc._metrics.slice_sums import (
    Flags,
    Floats,
    Ints,
    Segments,
    added_up,
    numbered,
    places_in,
    sorted_rows,
)


class Counted(NamedTuple):
    """Counted pairs of so many slices, sorted by slice, gold and pred: arrays (pairs,).

    `gold` and `pred` are the codes of labels, or the places of classes: then -1 is a class that the
    slice does not have. `squares` are the sums of squared sample weights, or of the squared numbers
    of rows that labelled rows stand for; without both, n.
    """

    number: int
    slices: Ints
    gold: Ints
    pred: Ints
    n: Floats | Ints
    """Integers, if the weights are."""
    squares: Floats | Ints

    @classmethod
    def of_rows(  # noqa: PLR0917 - the fields
        cls, number: int, slices: Ints, gold: Ints, pred: Ints, n: Ints, squares: Ints
    ) -> tuple[Counted, Ints, Ints]:
        """Add up equal pairs of rows; the order of rows by pairs, and the pair of each row in it.

        Equal pairs stay in the order of their rows, and are added up in it.
        """
        order, is_new = sorted_rows(slices, gold, pred)
        pair, first = np.cumsum(is_new) - 1, order[is_new]
        sides = [side[first].astype(np.int64) for side in (slices, gold, pred)]
        sums = [weights[order] for weights in (n, squares)]
        if len(first) < len(order):
            sums = [added_up(weights, pair, len(first)) for weights in sums]
        return cls(number, *sides, *sums), order, pair

    @property
    def rows(self) -> Segments:
        """Which pairs belong to which slice."""
        return Segments.of(self.slices, self.number)

    def of_slices(self, first: int, number: int) -> Counted:
        """The pairs of so many slices from the first on."""
        chosen = slice(*np.searchsorted(self.slices, [first, first + number]))
        slices, *arrays = (array[chosen] for array in self[1:])
        return Counted(number, slices - first, *arrays)

    @property
    def sums(self) -> tuple[Floats, Floats]:
        """The sums of `n` and of `squares` of each slice."""
        n, squares = (added_up(x, self.slices, self.number) for x in (self.n, self.squares))
        return n, squares

    def n_classes(self, side: Ints) -> Ints:
        """How many classes each slice has in `gold` or in `pred`."""
        slices, _ = np.unique(np.stack([self.slices, side]).astype(np.int64), axis=1)
        return np.bincount(slices, minlength=self.number)

    def effective(self, *, is_frequency: bool) -> Floats:
        """The rows of each slice; with sample weights, so many of equal weight."""
        n, squares = self.sums
        return n if is_frequency else equal_rows(n, squares)

    @property
    def per_weight(self) -> Floats:
        """How many rows a weight of 1 stands for, in each slice."""
        return np.divide(*self.sums)


class CountedCells(NamedTuple):
    """The scored rows of a frame of counts, sorted by slice, pair and cluster: arrays (cells,).

    A pair has a cell per cluster. If two models are compared, it has a cell per label of the other.
    """

    labels: pl.Series
    """All labels of both sides, sorted; in a log of scores: all scores, and 0 and 1."""
    pairs: Counted
    pair: Ints
    """The place of the pair of each cell."""
    row: Ints
    """The place of each cell in the frame."""
    n: Floats
    squares: Floats
    cluster: Ints | None
    stratum: Ints | None
    """The stratum of each cell, if labelled rows stand for others."""

    @classmethod
    def of(cls, log: SlicedLog, counts: pl.DataFrame, slices: pl.DataFrame) -> CountedCells:
        """The cells of a frame. The number of a slice is its place in `slices`."""
        rows = counts.with_row_index("row").filter(is_scored(log) & (pl.col("n") > 0))
        numbers = slices.select(*log.slice, number=pl.int_range(pl.len(), dtype=pl.UInt32))
        slice_of = rows.select("row", *log.slice)
        rows = rows.with_columns(
            joined(slice_of, numbers, log.slice, maintain_order="left")["number"]
        )
        if log.has_clusters:
            is_new = pl.col("cluster").ne_missing(pl.col("cluster").shift())
            rows = rows.sort("cluster", maintain_order=True)
            rows = rows.with_columns(cluster=is_new.cum_sum().cast(pl.Int64))
        more = ["cluster"] if log.has_clusters else []
        if log.is_reweighted:
            more = ["stratum"]
            rows = rows.with_columns(stratum=pl.struct("number", STRATUM).rank("dense") - 1)
        is_positive, dtype = rows["gold"], log.label_dtype
        if log.is_of_scores:
            is_positive, dtype = is_positive.cast(pl.Int8), log.pred_dtype
        labels, gold, pred = labels_and_codes(is_positive.cast(dtype), rows["pred"].cast(dtype))
        units = ("row", "number", *more)
        row, number, *unit = (rows[name].cast(pl.Int64).to_numpy() for name in units)
        n = rows["n"].to_numpy()
        are_counts = log.is_frequency and not log.is_reweighted
        squares = n if are_counts else rows["squares"].to_numpy()
        pairs, order, pair = Counted.of_rows(slices.height, number, gold, pred, n, squares)
        n, squares = (x[order].astype(np.float64) for x in (n, squares))
        row, *unit = (array[order] for array in (row, *unit))
        of_cells = {"cluster": None, "stratum": None, **dict(zip(more, unit, strict=True))}
        return cls(labels, pairs, pair, row, n, squares, **of_cells)

    def draws(self, number: int, slices: Ints) -> tuple[Draws, Ints]:
        """The draws of slices, and the place of each of their cells in this object.

        `slices` has the slice of each cell; a cell with -1 belongs to none, and is left out.
        """
        clusters = [] if self.cluster is None else [self.cluster]
        order, is_new = sorted_rows(slices, *clusters)  # of cells that are sorted by pair and row
        is_in = slices[order] >= 0
        order, is_new = order[is_in], is_new[is_in]
        slices, n, squares = slices[order], self.n[order], self.squares[order]
        if self.cluster is None:
            strata = None if self.stratum is None else self.stratum[order]
            return Draws(number, slices, n, squares, None, strata), order
        return Draws(number, slices, n, n, np.flatnonzero(is_new)), order


def labels_and_codes(gold: pl.Series, pred: pl.Series) -> tuple[pl.Series, Ints, Ints]:
    """All labels of both sides, sorted, nulls first; and the place of each label of both sides."""
    both = pl.concat(side.alias("label") for side in (gold, pred)).to_frame()
    labels = both.unique().sort("label")
    numbers = labels.with_row_index("code")  # No label is NaN, so one key will do: see `joined`.
    codes = both.join(numbers, "label", "left", nulls_equal=True, maintain_order="left")["code"]
    gold_codes, pred_codes = np.split(codes.cast(pl.Int64).to_numpy(), 2)
    return labels["label"], gold_codes, pred_codes


@dataclass(frozen=True)
class Classes:
    """The labels that occur in each slice, sorted. An array has a number per class: (classes,).

    `codes` are places in `every`, all labels of the log, sorted. `t` counts the gold rows of a
    class, `p` the predicted rows, `c` the hits; `fn`, `fp` and `tn` are the misses of the class,
    the false alarms, and all other rows. `is_positive` is 1 for the positive class. `per_label` is
    how many rows a labelled row predicted as the class stands for; None: no row stands for others.
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
    per_label: Floats | None = None

    @classmethod
    def of(
        cls, pairs: Counted, labels: pl.Series, is_positive: Floats, *, is_reweighted: bool = False
    ) -> tuple[Classes, Counted]:
        """The classes of coded pairs; and the pairs with places of classes, in floats.

        `is_positive` is of labels. `is_reweighted`: labelled rows stand for others.
        """
        k = max(len(labels), 1)
        first = pairs.slices.astype(np.int64) * k
        ids, places = numbered(np.concatenate([first + pairs.gold, first + pairs.pred]))
        gold, pred = np.split(places, 2)
        is_hit, n = gold == pred, pairs.n

        def counted(n: Floats | Ints) -> list[Floats]:
            """The hits, misses and false alarms of each class."""
            sides = (gold, is_hit), (gold, ~is_hit), (pred, ~is_hit)
            return [added_up(n[rows], side[rows], len(ids)) for side, rows in sides]

        c, fn, fp = exact = counted(n)
        # A difference of floats may be wrong in its first digit. So floats become integers, 2⁶¹ in
        # all of a slice.
        unit = np.zeros(pairs.number, np.int64)
        if n.dtype.kind == "f":
            unit = np.frexp(added_up(n, pairs.slices, pairs.number))[1] - 61
            n = np.rint(np.ldexp(n, -unit[pairs.slices])).astype(np.int64)
            exact = counted(n)
        neither = added_up(n, pairs.slices, pairs.number)[ids // k] - sum(exact)
        tn = np.ldexp(neither.astype(np.float64), unit[ids // k])
        t, p, c, fn, fp = (x.astype(np.float64) for x in (c + fn, c + fp, c, fn, fp))
        rows = Segments.of(ids // k, pairs.number)
        n, squares = (x.astype(np.float64) for x in (pairs.n, pairs.squares))
        per_label = _rows_per_label(n, squares, pred, rows) if is_reweighted else None
        counts = t, p, c, fn, fp, tn, is_positive[ids % k], per_label
        placed = Counted(pairs.number, pairs.slices, gold, pred, n, squares)
        return cls(labels, rows, ids % k, *counts), placed

    @cached_property
    def s(self) -> Floats:
        """The weight of the rows of each slice."""
        return self.rows.sum(self.t)

    @cached_property
    def n_other_classes(self) -> Floats:
        """How many other classes the slice of each class has: (classes,)."""
        return self.rows.spread(self.rows.lengths.astype(float)) - 1

    @cached_property
    def has_gaps(self) -> Flags | None:
        """Whether some rows of a slice have no label: (slices,); None: no row stands for others."""
        return None if self.per_label is None else np.asarray(self.rows.max(self.per_label) > 1)

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
        per_label = None if self.per_label is None else self.per_label[of_class]
        counts = (array[of_class] for array in arrays)
        return replace(Classes(self.every, rows, *counts), per_label=per_label)

    @property
    def labels(self) -> pl.DataFrame:
        """The label of each class."""
        return self.every[self.codes].alias("label").to_frame()

    def places(self, slices: Ints, codes: Ints) -> Ints:
        """The places of labels in the classes of slices; -1 where a slice has no such class."""
        k = len(self.every)
        return places_in(self.rows.of_row * k + self.codes, slices.astype(np.int64) * k + codes)


@dataclass(frozen=True)
class Draws:
    """The independent draws of slices: rows, or clusters. A cell has equal rows of one cluster.

    The arrays are (cells,). `slices` has the number of the slice. `n` is the weight of the cell.
    `squares` is the sum of the squared weights of its rows. With clusters, `starts` has the first
    cell of each cluster. If labelled rows stand for others, `strata` has the stratum of each cell.
    """

    number: int
    slices: Ints
    n: Floats
    squares: Floats
    starts: Ints | None
    strata: Ints | None = None

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
        sums = (added_up(x * is_in, self.slices, self.number) for x in (self.n, self.squares))
        return equal_rows(*sums)

    def with_gold(self, gold: Ints, classes: int) -> tuple[Floats, Floats]:
        """How many draws have rows of each gold class, and rows of the others of its slice.

        `gold` is the place of the gold class of each cell.
        """
        slices = np.zeros(classes, np.int64)
        slices[gold] = self.slices
        if self.n_clusters is None:
            n, squares = (added_up(x, gold, classes) for x in (self.n, self.squares))
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
        alike = np.ones(len(self.n))
        with np.errstate(all="ignore"):
            return self.size / self.products(alike, alike) * self.size

    def added_squares(self, a: Floats) -> Floats:
        """What rows without a label add to the sum of products of a with itself: (slices,)."""
        if self.strata is None:
            return np.zeros(self.number)
        added = _added_products(self.n, self.squares, self.strata, a, a)
        sums, gaps = (added_up(x, self.slices, self.number) for x in (added, self.squares - self.n))
        return np.where(gaps > 0, sums, 0.0)

    def products(self, a: Floats, b: Floats) -> Floats:
        """Sum products of two numbers of cells over the draws of each slice: (slices,).

        The product is Σ (Σ n·a)·(Σ n·b), where the inner sums are over the cells of a draw. So the
        variance of a mean with the influence a is the sum of a·a, divided by `size`². If labelled
        rows stand for others, it is the variance of two phases. The sum is NaN if it is infinite.
        """
        if self.strata is not None:
            added = _added_products(self.n, self.squares, self.strata, a, b)
            slices, addends = self.slices, self.n * a * b + added
        elif self.starts is None:
            slices, addends = self.slices, self.squares * a * b
        elif not len(self.starts):
            return np.zeros(self.number)
        else:
            slices = self.slices[self.starts]
            x = np.add.reduceat(self.n * a, self.starts)
            addends = x * (x if b is a else np.add.reduceat(self.n * b, self.starts))
        sums = added_up(addends, slices, self.number)
        return np.where(np.isfinite(sums), sums, np.nan)


def _added_products(n: Floats, squares: Floats, strata: Ints, a: Floats, b: Floats) -> Floats:
    """What rows without a label add to n·a·b, for the sum of products over rows: (cells,).

    Cells of one stratum have the same predictions, and squares = f·n.
    """
    number = int(strata.max(initial=-1)) + 1
    size = added_up(n, strata, number)
    apart_a, apart_b = (x - (added_up(n * x, strata, number) / size)[strata] for x in (a, b))
    return (squares - n) * apart_a * apart_b


def _rows_per_label(n: Floats, squares: Floats, pred: Ints, rows: Segments) -> Floats:
    """How many rows a labelled row with a prediction counts as: f_j, (classes,).

    A class without predictions counts as all rows of the slice do. `pred` has the class of pairs.
    """
    of_class = [added_up(x, pred, rows.size) for x in (squares, n)]
    squares, n = (np.where(of_class[1] > 0, x, rows.spread(rows.sum(x))) for x in of_class)
    return squares / n


def equal_rows(n: Floats | Ints, squares: Floats | Ints) -> Floats:
    """How many rows of equal weight would be as good (Kish 1965)."""
    rows_per_weight: Floats = np.zeros(len(n))
    np.divide(n, squares, out=rows_per_weight, where=squares > 0)
    return rows_per_weight * n


def floats(column: pl.Series) -> Floats:
    """A column as floats, with NaN for null."""
    return column.cast(pl.Float64).to_numpy()


def of_arrays(**arrays: Floats) -> Iterable[pl.Series]:
    """Columns from arrays: NaN becomes null."""
    return (pl.Series(name, array, pl.Float64, nan_to_null=True) for name, array in arrays.items())

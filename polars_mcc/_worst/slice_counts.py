"""Codes of rows → the counts of every slice of every set of keys, as arrays.

A set of keys is a table with an axis per key, and one for the pair of labels. NumPy counts it. A
set whose table would be too large is grouped by Polars.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from polars_mcc._counts.parquet_codes import combined
from polars_mcc._counts.sliced_log import PRED
from polars_mcc._intervals.count_arrays import Counted, equal_rows
from polars_mcc._metrics.slice_sums import Floats, Ints, added_up
from polars_mcc._worst.column_codes import CodedKey, CodedLog, totals

if TYPE_CHECKING:
    from polars_mcc._counts.parquet_files import Codes

CrossedKeys: TypeAlias = tuple[CodedKey, ...]
"""A set of keys that are crossed."""

Margins: TypeAlias = list[Ints]
"""Counts of labels, or of scores: each (slices, labels)."""

_CELLS_OF_TABLE = 2**22  # at most: 32 MB
_CELLS_AT_ONCE = 2**21  # at most, in the tables that are counted at once, if these are several


class SlicesOfKeys(NamedTuple):
    """The slices of a set of keys that are large enough: arrays (slices,)."""

    keys: CrossedKeys
    places: Ints
    """The place of the value of each key: (keys, slices)."""
    n: Ints
    """The weight of the scored rows."""
    unscored: Ints
    """The rows that are not scored, and those of them without a gold label: (2, slices)."""


class PairTables(NamedTuple):
    """Slices with a table of both labels each: arrays (slices, gold labels, predictions).

    If labelled rows stand for others, rows without a gold label come last. `pairs_of` lists the
    pairs of some slices. To list all pairs would take longer than to count.
    """

    n: Ints
    squares: Ints | None
    """The sums of squared sample weights; None: n."""

    @property
    def number(self) -> int:
        """How many slices there are."""
        return len(self.n)


class Batch(NamedTuple):
    """The slices of some sets of keys that are large enough, and their counts."""

    sets: Sequence[SlicesOfKeys]
    n: Floats
    """The weight of the scored rows of each slice."""
    n_small: int
    """How many slices have too few rows."""
    pairs: Counted | PairTables
    """The pairs of all slices, one set after the other: see `SliceCounter.is_reweighted`."""


_OfKeys: TypeAlias = tuple[SlicesOfKeys, Counted | PairTables, int]
"""The large slices of a set of keys, their pairs, and the number of other slices."""


@dataclass(frozen=True)
class SliceCounter:
    """Counts the slices of one model in a coded log."""

    log: CodedLog
    gold: Codes
    """The code of the gold label of each row: (rows,)."""
    pred: Codes
    n_codes: int
    """The number of codes of a label: one more than labels, if a row has none."""
    is_reweighted: bool
    """Whether labelled rows stand for rows without a gold label. Then these are pairs too: their
    code of gold is the number of labels."""
    n_pairs: float
    """The cells of a table of pairs. Scores have too many values for a table."""
    pair: Codes
    """The codes of both labels as one; empty if the table is too large."""
    min_n: float

    @classmethod
    def of(cls, log: CodedLog, model: str, min_n: float) -> SliceCounter:
        """Combine the labels of each row."""
        gold, pred = log.rows["gold"], log.rows[PRED + model]
        n = len(log.labels)
        n_codes = max(n + any(len(side) > 0 and int(side.max()) >= n for side in (gold, pred)), 1)
        n_pairs = math.inf if log.sliced.is_of_scores else n_codes**2
        is_small = n_pairs <= _CELLS_OF_TABLE
        pair = combined((gold, pred), (n_codes, n_codes), None) if is_small else gold[:0]
        is_reweighted = log.sliced.nulls == "reweight"
        return cls(log, gold, pred, n_codes, is_reweighted, n_pairs, pair, min_n)

    def whole(self) -> Counted:
        """The pairs of the whole log, as one slice: see `is_reweighted`."""
        count = self._in_table if self.n_pairs <= _CELLS_OF_TABLE else self._in_groups
        return pairs_of(count((), 0)[1], np.zeros(1, np.int64))

    def batches(self, depth: int) -> Iterator[Batch]:
        """Count every set of up to `depth` keys, many sets at a time.

        The next sets are counted while the slices of these are scored.
        """
        keys = [key for key in self.log.keys.values() if key.size]
        keys = sorted(keys, key=lambda key: -key.size)
        sets = [
            of_set
            for number in range(1, depth + 1)
            for of_set in itertools.combinations(keys, number)
        ]
        small = [of_set for of_set in sets if self._cells(of_set) <= _CELLS_OF_TABLE]
        large = [of_set for of_set in sets if self._cells(of_set) > _CELLS_OF_TABLE]
        with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
            waiting: deque[Iterator[_OfKeys]] = deque()
            for portion in self._counted_at_once(small):
                waiting.append(pool.map(self._in_table, portion, itertools.repeat(self.min_n)))
                if len(waiting) > 1:
                    yield _batch([*waiting.popleft()])
            for last in waiting:
                yield _batch([*last])
        for of_set in large:  # Polars takes all threads for one.
            yield _batch([self._in_groups(of_set, self.min_n)])

    def _cells(self, keys: CrossedKeys) -> float:
        return math.prod(key.size + 1 for key in keys) * self.n_pairs

    def _counted_at_once(self, sets: Sequence[CrossedKeys]) -> Iterator[list[CrossedKeys]]:
        """Split sets into portions of at most `_CELLS_AT_ONCE` together, or of one set."""
        portion: list[CrossedKeys] = []
        total = 0.0
        for keys in sets:
            size = self._cells(keys)
            if portion and total + size > _CELLS_AT_ONCE:
                yield portion
                portion, total = [], 0.0
            portion.append(keys)
            total += size
        if portion:
            yield portion

    def _in_table(self, keys: CrossedKeys, least: float) -> _OfKeys:
        """Count the slices of a set of keys with NumPy."""
        weights, k = self.log.weights, len(self.log.labels)
        n = self._table(keys, None if weights is None else weights.n)
        n_all, n_scored = n.sum((1, 2)), n[:, :k, :k].sum((1, 2))
        effective, squares = n_scored, None
        unscored = np.stack([n_all - n_scored, n[:, k:].sum((1, 2))])
        if weights is not None:
            nulls = self._table(keys, weights.n_null)
            unscored = unscored + np.stack([nulls.sum((1, 2)), nulls[:, k:].sum((1, 2))])
            if weights.squares is not None:
                squares = self._table(keys, weights.squares)[:, :k, :k]
                effective = equal_rows(n_scored, squares.sum((1, 2)))
        if self.is_reweighted:
            every = pairs_of(PairTables(n[:, :, :k], None), np.arange(len(n)))
            effective = equal_rows(*self.represented(every).sums)
        [large] = np.nonzero(effective >= least)
        n_small = int(np.count_nonzero((n_all > 0) | (unscored[0] > 0))) - len(large)
        places = np.unravel_index(large, [key.values.height for key in keys] or [1])
        pairs = n[:, :, :k] if self.is_reweighted else n[:, :k, :k]
        tables = PairTables(pairs[large], None if squares is None else squares[large])
        of_keys = SlicesOfKeys(
            keys, np.array(places, np.int32), n_scored[large], unscored[:, large]
        )
        return of_keys, tables, n_small

    def _table(self, keys: CrossedKeys, weight: Ints | None) -> Ints:
        """The rows of each slice of a set of keys, by both labels; or the sums of a weight."""
        codes = [*(self.log.rows[key.column] for key in keys), self.pair]
        table = totals(codes, [*(key.size + 1 for key in keys), self.n_codes**2], weight)
        return _of_values(table, keys).reshape(-1, self.n_codes, self.n_codes)

    def _in_groups(self, keys: CrossedKeys, least: float) -> _OfKeys:
        """Count the slices of a set of keys with Polars."""
        columns, weights = [key.column for key in keys], self.log.weights
        by = [*columns, "gold", "pred"]
        codes = {name: self.log.rows[name] for name in columns}
        rows = pl.LazyFrame({**codes, "gold": self.gold, "pred": self.pred})
        sums = {"n": pl.len().cast(pl.Int64)}
        if weights is not None:
            squares = weights.n if weights.squares is None else weights.squares
            of_rows = {"n": weights.n, "n_null": weights.n_null, "squares": squares}
            rows = rows.with_columns(pl.lit(pl.Series(name, of)) for name, of in of_rows.items())
            sums = {name: pl.col(name).sum() for name in of_rows}
        cells = rows.filter(*(pl.col(key.column) < key.size for key in keys))
        cells = cells.group_by(by).agg(**sums)
        for key in keys:
            if key.is_cut:  # Each value is a sum over its codes.
                of_values = key.values.lazy().select(
                    pl.int_ranges("first", pl.col("last") + 1).alias(key.column),
                    place=pl.int_range(pl.len()),
                )
                cells = cells.with_columns(pl.col(key.column).cast(pl.Int64))
                cells = cells.join(of_values.explode(key.column), on=key.column)
                cells = cells.drop(key.column).rename({"place": key.column})
                cells = cells.group_by(by).agg(pl.all().sum())
        if weights is None:
            cells = cells.with_columns(n_null=pl.lit(0, pl.Int64), squares="n")
        found = cells.filter((pl.col("n") != 0) | (pl.col("n_null") > 0)).sort(by).collect()
        slices, places = _numbered(found, columns)
        gold, pred, n, n_null, squares = (
            found[name].to_numpy() for name in (*by[-2:], "n", "n_null", "squares")
        )
        has_gold = gold < len(self.log.labels)
        is_scored = has_gold & (pred < len(self.log.labels))
        left_out = np.where(is_scored, 0, n) + n_null
        n_scored, n_squares, *unscored = (
            added_up(weight, slices, places.shape[1])
            for weight in (n * is_scored, squares * is_scored, left_out, left_out * ~has_gold)
        )
        is_pair = pred < len(self.log.labels) if self.is_reweighted else is_scored
        [kept] = np.nonzero(is_pair & (n > 0))
        arrays = slices, gold.astype(int), pred.astype(int), n, squares
        pairs = Counted(places.shape[1], *(array[kept] for array in arrays))
        is_frequency = self.log.sliced.is_frequency
        effective = n_scored if is_frequency else equal_rows(n_scored, n_squares)
        if self.is_reweighted:
            effective = equal_rows(*self.represented(pairs).sums)
        [large] = np.nonzero(effective >= least)
        left_out = np.stack(unscored)[:, large]
        of_keys = SlicesOfKeys(keys, places[:, large], n_scored[large], left_out)
        return of_keys, pairs_of(pairs, large), places.shape[1] - len(large)

    def margins(self, pairs: Counted | PairTables, first: int, last: int) -> Margins:
        """How often each label is gold, predicted, and both; or each score, by gold label."""
        k = len(self.log.labels)
        if isinstance(pairs, PairTables):
            table = pairs.n[first:last]
            return [table.sum(2), table.sum(1), np.diagonal(table, axis1=1, axis2=2).copy()]
        start, stop = np.searchsorted(pairs.slices, [first, last])
        slices, gold, pred, n = (array[start:stop] for array in pairs[1:5])
        rows = (slices - first) * k
        if self.log.sliced.is_of_scores:
            is_positive = self.log.labels.to_numpy()[gold] == 1
            sides = [((rows + pred)[here], n[here]) for here in (is_positive, ~is_positive)]
        else:
            is_hit = gold == pred
            sides = [(rows + gold, n), (rows + pred, n), ((rows + gold)[is_hit], n[is_hit])]
        tables = [added_up(n, cells, (last - first) * k) for cells, n in sides]
        return [table.reshape(last - first, k) for table in tables]

    def represented(self, pairs: Counted) -> Counted:
        """The scored pairs. If the log asks for it, they stand for rows without a gold label.

        A slice has N_j rows with the prediction j, of which n_j have a label. Each of these counts
        as N_j / n_j rows. A slice has no pairs if one of its predictions has no labelled row.
        """
        if not self.is_reweighted:
            return pairs
        strata, of_pair = np.unique(
            np.stack([pairs.slices, pairs.pred]).astype(np.int64), axis=1, return_inverse=True
        )
        of_pair = of_pair.reshape(-1)
        is_labelled = pairs.gold < len(self.log.labels)
        every, labelled = (
            added_up(n, of_pair, strata.shape[1]) for n in (pairs.n, pairs.n * is_labelled)
        )
        is_known = np.ones(pairs.number, bool)
        is_known[strata[0, labelled == 0]] = False
        kept = np.flatnonzero(is_labelled & is_known[pairs.slices])
        ratio = every[of_pair[kept]] / labelled[of_pair[kept]]
        slices, gold, pred, n, _ = (array[kept] for array in pairs[1:])
        return Counted(pairs.number, slices, gold, pred, n * ratio, n * ratio * ratio)


def weights_of_values(
    keys: CrossedKeys, codes: Mapping[str, Codes], weight: Floats
) -> Floats | None:
    """The weight of rows by the values of keys: an axis per key. None if the table is too large."""
    sizes = [key.size + 1 for key in keys]
    if math.prod(sizes) > _CELLS_OF_TABLE:
        return None
    return _of_values(totals([codes[key.column] for key in keys], sizes, weight), keys)


def _of_values(table: Ints, keys: CrossedKeys) -> Ints:
    """A table with an axis per key: from codes, and none, to values. A value may have many."""
    for axis, key in enumerate(keys):
        if not key.is_cut:
            table = table[(slice(None),) * axis + (slice(key.size),)]
            continue
        spans = key.values.select("first", pl.col("last") + 1).to_numpy().ravel()
        table = np.add.reduceat(table, spans, axis)
        table = table.take(range(0, len(spans), 2), axis)
    return table


def pairs_of(pairs: Counted | PairTables, slices: Ints) -> Counted:
    """The pairs of some slices, which get the numbers from 0 on."""
    if isinstance(pairs, PairTables):
        tables = pairs.n[slices]
        [filled] = np.nonzero(tables.ravel())
        places, pair = np.divmod(filled, max(math.prod(tables.shape[1:]), 1))
        labels, n = np.divmod(pair, max(tables.shape[2], 1)), tables.ravel()[filled]
        squares = n if pairs.squares is None else pairs.squares[slices].ravel()[filled]
        return Counted(len(slices), places, *labels, n, squares)
    place = np.full(pairs.number, -1)
    place[slices] = np.arange(len(slices))
    new = place[pairs.slices]
    [kept] = np.nonzero(new >= 0)
    return Counted(len(slices), new[kept], *(array[kept] for array in pairs[2:]))


def _numbered(cells: pl.DataFrame, columns: Sequence[str]) -> tuple[Ints, Ints]:
    """The number of each row of sorted codes, and the codes of each number: (columns, numbers)."""
    if not columns:
        return np.zeros(cells.height, np.int64), np.zeros((0, 1), np.int64)
    places = np.array([cells[name].to_numpy() for name in columns], np.int64)
    is_new = np.diff(places.reshape(len(columns), -1), prepend=-1).any(axis=0)
    return np.cumsum(is_new) - 1, places[:, is_new]


def _batch(of_sets: Sequence[_OfKeys]) -> Batch:
    """Number the slices of several sets of keys one after the other."""
    sets, of_each, n_small = zip(*of_sets, strict=True)
    n = np.concatenate([of_set.n for of_set in sets]).astype(np.float64)
    if isinstance(of_each[0], PairTables):
        tables = np.concatenate([pairs.n for pairs in of_each])
        squares = [pairs.squares for pairs in of_each if pairs.squares is not None]
        together = PairTables(tables, np.concatenate(squares) if squares else None)
        return Batch(sets, n, sum(n_small), together)
    firsts = np.cumsum([0, *(pairs.number for pairs in of_each)])
    slices = [pairs.slices + first for pairs, first in zip(of_each, firsts[:-1], strict=True)]
    arrays = map(np.concatenate, zip(*(pairs[2:] for pairs in of_each), strict=True))
    counted = Counted(int(firsts[-1]), np.concatenate(slices), *arrays)
    return Batch(sets, n, sum(n_small), counted)

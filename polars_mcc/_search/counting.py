"""Codes of rows → the counts of every slice of every set of keys, as arrays.

A set of keys is a table with an axis per key, and one for the pair of labels. NumPy counts it. A
set whose table would be too large is grouped by Polars.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from polars_mcc._counts.codes import combined
from polars_mcc._counts.sliced import PRED
from polars_mcc._inference.arrays import Counted, equal_rows
from polars_mcc._scores.segments import Floats, Ints, added_up
from polars_mcc._search.codes import Coded, Key, portions, summed

if TYPE_CHECKING:
    from polars_mcc._counts.parquet import Codes

Keys: TypeAlias = tuple[Key, ...]
"""A set of keys that are crossed."""

Margins: TypeAlias = list[Ints]
"""Counts of labels, or of scores: each (slices, labels)."""

_MOST = 2**22  # most cells of a table, 32 MB
_AT_ONCE = 2**21  # most cells of the tables that are counted at once, if these are several
_SORTED = 2**20  # rows that are sorted at once
_STEP = 2**17  # least rows that are counted at once: their codes fit in the caches
_CACHED = 2**18  # most cells of a table that fits in the caches, 2 MB


@dataclass(frozen=True)
class Table:
    """The counts of slices by both labels: (slices, codes, codes). A last code may be no label."""

    labels: int
    n: Ints
    squares: Floats | None

    def pairs(self, slices: Ints) -> Counted:
        """The scored pairs of some slices."""
        n = self._of_labels(self.n[slices])
        places, gold, pred = np.nonzero(n)
        found = squares = n[places, gold, pred]
        if self.squares is not None:
            squares = self._of_labels(self.squares[slices])[places, gold, pred]
        return Counted(len(slices), places, gold, pred, found, squares)

    def margins(self, first: int, last: int) -> Margins:
        """How often each label is gold, predicted, and both."""
        n = self._of_labels(self.n[first:last])
        return [n.sum(2), n.sum(1), n.diagonal(axis1=1, axis2=2)]

    def _of_labels(self, counts: Ints) -> Ints:
        return counts[:, : self.labels, : self.labels]


@dataclass(frozen=True)
class Cells:
    """The counts of slices by both labels, as a list of the scored pairs that occur."""

    labels: int
    counted: Counted
    positive: int | None
    """In a log of scores: the code of the gold label of positive rows."""

    def pairs(self, slices: Ints) -> Counted:
        """The scored pairs of some slices."""
        place = np.full(self.counted.number, -1)
        place[slices] = np.arange(len(slices))
        own = place[self.counted.slices]
        [kept] = np.nonzero(own >= 0)
        return Counted(len(slices), own[kept], *(one[kept] for one in self.counted[2:]))

    def margins(self, first: int, last: int) -> Margins:
        """How often each label is gold, predicted, and both; or each score, by gold label."""
        start, stop = np.searchsorted(self.counted.slices, [first, last])
        slices, gold, pred, n = (one[start:stop] for one in self.counted[1:5])
        rows, shape = (slices - first) * self.labels, (last - first, self.labels)
        if self.positive is None:
            is_hit = gold == pred
            sides = [(rows + gold, n), (rows + pred, n), ((rows + gold)[is_hit], n[is_hit])]
        else:
            is_positive = gold == self.positive
            sides = [((rows + pred)[one], n[one]) for one in (is_positive, ~is_positive)]
        return [added_up(own, at, math.prod(shape)).reshape(shape) for at, own in sides]


class Slices(NamedTuple):
    """The slices of a set of keys that are large enough: arrays (slices,)."""

    keys: Keys
    places: Ints
    """The place of the value of each key: (keys, slices)."""
    n: Ints
    """The weight of the scored rows."""
    n_null: Ints
    """The rows that are not scored."""

    @property
    def ids(self) -> Ints:
        """A number per slice that tells it from the others."""
        return ids_of(self.keys, self.places)


def ids_of(keys: Keys, places: Ints) -> Ints:
    """A number for the values of some keys, of Python if there are very many values."""
    sizes = [key.values.height for key in keys]
    found: Ints = places[0].astype(np.int64 if math.prod(sizes) < 2**63 else object)
    for size, place in zip(sizes[1:], places[1:], strict=True):
        found = found * size + place
    return found


class Batch(NamedTuple):
    """The slices of some sets of keys that are large enough, and their counts."""

    sets: Sequence[Slices]
    n_small: int
    """How many slices have too few rows."""
    counts: Table | Cells
    """The counts of all slices, one set after the other."""


class _Rows(NamedTuple):
    """The codes of each key, and of both labels as one: arrays (rows,)."""

    codes: Mapping[str, Codes]
    ends: Sequence[Sequence[int]] | None
    """If portions of rows are sorted by the first key: where each of its codes begins and ends."""


@dataclass(frozen=True)
class Counting:
    """Counts the slices of one model in a coded log."""

    coded: Coded
    model: str
    min_n: float

    def whole(self) -> Table | Cells:
        """The counts of the whole log, as one slice."""
        if self._size(()) > _MOST:
            return self._listed(self._cells(())[1])
        n, *others = (self._table((), _Rows(self._rows, None), one) for one in self._weights)
        return Table(len(self.coded.labels), n, others[1] if len(others) > 1 else None)

    def batches(self, depth: int) -> Iterator[Batch]:
        """Count every set of up to `depth` keys, many sets at a time.

        The next sets are counted while the slices of these are scored.
        """
        small: list[Keys] = []
        large: list[Keys] = []
        for number in range(1, depth + 1):
            for one in itertools.combinations(self._keys, number):
                (small if self._size(one) <= _MOST else large).append(one)
        with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
            waiting: deque[Callable[[], Batch]] = deque()
            for _, alike in itertools.groupby(small, self._order):
                for sets in _portions([*alike], self._size):
                    waiting.append(self._in_tables(sets, pool))
                    if len(waiting) > 1:
                        yield waiting.popleft()()
            yield from (one() for one in waiting)
        for sets in _portions(large, lambda _: len(self._sides[0])):
            yield self._grouped(sets)

    @cached_property
    def _keys(self) -> Keys:
        """The keys, those with the most codes first."""
        keys = [key for key in self.coded.keys.values() if key.size]
        return tuple(sorted(keys, key=lambda key: -key.size))

    def _order(self, keys: Keys) -> Key | None:
        """The key that rows are sorted by: the parts of a table then fit in the caches."""
        is_large = self._size(keys) > _CACHED and len(self._sides[0]) > _SORTED
        return keys[0] if is_large and self.coded.weights is None else None

    def _size(self, keys: Keys) -> float:
        """The cells of the table of a set of keys. Scores have too many values for a table."""
        if self.coded.log.is_of_scores:
            return math.inf
        return math.prod(key.size + 1 for key in keys) * self._n_codes**2

    @cached_property
    def _sides(self) -> tuple[Codes, Codes]:
        """The codes of both labels of each row."""
        return self.coded.rows["gold"], self.coded.rows[PRED + self.model]

    @cached_property
    def _weights(self) -> list[Ints | None]:
        """What is added up: the weights, the rows without one, and the squared sample weights."""
        weights = self.coded.weights
        return [None] if weights is None else [one for one in weights if one is not None]

    @cached_property
    def _n_codes(self) -> int:
        """The number of codes of a label: one more than labels, if a row has none."""
        n = len(self.coded.labels)
        return max(n + any(len(one) > 0 and int(one.max()) >= n for one in self._sides), 1)

    @cached_property
    def _rows(self) -> dict[str, Codes]:
        """The codes of each key, and of both labels as one."""
        keys = {key.column: self.coded.rows[key.column] for key in self.coded.keys.values()}
        return {**keys, "pair": _as_one(self._sides, [self._n_codes] * 2)}

    def _in_tables(self, sets: Sequence[Keys], pool: ThreadPoolExecutor) -> Callable[[], Batch]:
        """Slices that are counted by NumPy, in threads."""
        rows = self._in_order(sets, pool)

        def counted(keys: Keys) -> tuple[Slices, int, list[Ints]]:
            tables = [self._table(keys, rows, one) for one in self._weights]
            n, n_all = tables[0], tables[0].sum((1, 2))
            labels = len(self.coded.labels)
            of_labels = slice(None), slice(labels), slice(labels)
            scored = n_all if n.shape[1] == labels else n[of_labels].sum((1, 2))
            left_out, effective = n_all - scored, scored
            if len(tables) > 1:
                left_out = left_out + tables[1].sum((1, 2))
            if len(tables) > 2:
                effective = equal_rows(scored, tables[2][of_labels].sum((1, 2)))
            [large] = np.nonzero(effective >= self.min_n)
            n_small = np.count_nonzero((n_all > 0) | (left_out > 0)) - len(large)
            places = np.unravel_index(large, [key.values.height for key in keys])
            found = Slices(keys, np.array(places, np.int32), scored[large], left_out[large])
            return found, int(n_small), [one[large] for one in (n, *tables[2:])]

        def batch() -> Batch:
            found, n_small, kept = zip(*parts, strict=True)
            n, *squares = (np.concatenate(one) for one in zip(*kept, strict=True))
            table = Table(len(self.coded.labels), n, squares[0] if squares else None)
            return Batch(found, sum(n_small), table)

        parts = pool.map(counted, sets)
        return batch

    def _table(self, keys: Keys, rows: _Rows, weight: Ints | None) -> Ints:
        """The rows of each slice of a set of keys, by both labels; or the sums of a weight."""
        n_codes = self._n_codes
        sizes = [*(key.size + 1 for key in keys), n_codes**2]
        codes = [*(rows.codes[key.column] for key in keys), rows.codes["pair"]]
        table: Ints = np.zeros(sizes, np.int64 if weight is None else weight.dtype)
        if rows.ends is None:
            for part in portions(len(codes[0]), max(_STEP, table.size)):
                own = None if weight is None else weight[part]
                code = _as_one([one[part] for one in codes], sizes)
                table += summed(code, own, table.size).reshape(sizes)
        else:  # A part of the table after the other.
            shape = sizes[1:]
            for part, ends in zip(portions(len(codes[0]), _SORTED), rows.ends, strict=True):
                code = _as_one([one[part] for one in codes[1:]], shape)
                for place, (start, stop) in enumerate(itertools.pairwise(ends)):
                    number = math.prod(shape)
                    table[place] += summed(code[start:stop], None, number).reshape(shape)
        for axis, key in enumerate(keys):  # Each value is a sum over its codes.
            if not key.is_cut:
                table = table[(slice(None),) * axis + (slice(key.size),)]
                continue
            spans = key.values.select("first", pl.col("last") + 1).to_numpy().ravel()
            table = np.add.reduceat(table, spans, axis)
            table = table.take(range(0, len(spans), 2), axis)
        return table.reshape(-1, n_codes, n_codes)

    def _in_order(self, sets: Sequence[Keys], pool: ThreadPoolExecutor) -> _Rows:
        """The codes of rows, sorted by the first key if tables are larger than the caches."""
        first, rows = self._order(sets[0]), self._rows
        if first is None:
            return _Rows(rows, None)
        if first not in self._sorted:
            self._sorted.clear()
            later = self._keys[self._keys.index(first) :]
            names = [*(key.column for key in later), "pair"]
            found = {name: np.empty_like(rows[name]) for name in names}

            def sort(part: slice) -> Sequence[int]:
                code = rows[first.column][part]
                order = np.argsort(code, kind="stable")
                for name, one in found.items():
                    one[part] = rows[name][part][order]
                sizes = np.bincount(code, minlength=first.size + 1)
                return [0, *np.cumsum(sizes).tolist()]

            parts = [*pool.map(sort, portions(len(rows["pair"]), _SORTED))]
            self._sorted[first] = _Rows(found, parts)
        return self._sorted[first]

    @cached_property
    def _sorted(self) -> dict[Key, _Rows]:
        """The codes of rows, sorted by the last key that was asked for."""
        return {}

    def _grouped(self, sets: Sequence[Keys]) -> Batch:
        """Slices that are grouped by Polars."""
        found: list[Slices] = []
        pairs: list[Counted] = []
        number = n_small = 0
        for keys in sets:
            one, counted, small = self._of_set(keys)
            found.append(one)
            pairs.append(counted._replace(slices=counted.slices + number))
            number, n_small = number + len(one.n), n_small + small
        counted = Counted(
            number, *map(np.concatenate, zip(*(one[1:] for one in pairs), strict=True))
        )
        return Batch(found, n_small, self._listed(counted))

    def _listed(self, counted: Counted) -> Cells:
        labels = self.coded.labels
        is_positive = [*(labels == 1).arg_true(), -1] if self.coded.log.is_of_scores else [None]
        return Cells(len(labels), counted, is_positive[0])

    def _of_set(self, keys: Keys) -> tuple[Slices, Counted, int]:
        """The slices of one set of keys, their pairs, and how many slices have too few rows."""
        places, counted, left_out = self._cells(keys)
        scored, squares = (
            added_up(one, counted.slices, counted.number) for one in (counted.n, counted.squares)
        )
        effective = scored if self.coded.log.is_frequency else equal_rows(scored, squares)
        [large] = np.nonzero(effective >= self.min_n)
        kept = self._listed(counted).pairs(large)
        found = Slices(keys, places[:, large], scored[large], left_out[large])
        return found, kept, counted.number - len(large)

    def _cells(self, keys: Keys) -> tuple[Ints, Counted, Ints]:
        """The places of slices, their scored pairs, and the rows that are not scored."""
        columns = [key.column for key in keys]
        by = [*columns, "gold", "pred"]
        rows = self.frame({name: self.coded.rows[name] for name in columns})
        if keys:
            rows = rows.filter(pl.col(key.column) < key.size for key in keys)
        is_there = (pl.col("n") != 0) | (pl.col("n_null") > 0)
        cells = rows.group_by(by).agg(pl.all().sum()).filter(is_there)
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
        found = cells.sort(by).collect()
        slices, places = numbered(found, columns)
        number = places.shape[1]
        counted, left_out = self._scored(found, slices, number)
        return places, counted, left_out

    def _scored(self, cells: pl.DataFrame, slices: Ints, number: int) -> tuple[Counted, Ints]:
        """The scored pairs of cells, and the rows that are not scored."""
        gold, pred, n, n_null = (cells[one].to_numpy() for one in ("gold", "pred", "n", "n_null"))
        labels = len(self.coded.labels)
        is_scored = (gold < labels) & (pred < labels)
        left_out = np.zeros(number, n.dtype)
        np.add.at(left_out, slices, np.where(is_scored, 0, n) + n_null)
        [kept] = np.nonzero(is_scored & (n > 0))
        squares = cells["squares"].to_numpy() if "squares" in cells.columns else n
        of_cells = slices, gold.astype(int), pred.astype(int), n, squares
        return Counted(number, *(one[kept] for one in of_cells)), left_out

    def frame(self, codes: dict[str, Codes]) -> pl.LazyFrame:
        """Codes of rows beside those of both labels, and the weights to add up."""
        gold, pred = self._sides
        rows = pl.DataFrame({**codes, "gold": gold, "pred": pred}).lazy()
        if (weights := self.coded.weights) is None:
            return rows.with_columns(n=pl.lit(1, pl.Int64), n_null=pl.lit(0, pl.Int64))
        sums = {"n": weights.n, "n_null": weights.n_null, "squares": weights.squares}
        return rows.with_columns(
            pl.lit(pl.Series(name, one)) for name, one in sums.items() if one is not None
        )


def numbered(cells: pl.DataFrame, columns: Sequence[str]) -> tuple[Ints, Ints]:
    """The number of each row of sorted codes, and the codes of each number: (columns, numbers)."""
    if not columns:
        return np.zeros(cells.height, np.int64), np.zeros((0, 1), np.int64)
    places = np.array([cells[name].to_numpy() for name in columns], np.int64)
    is_new = np.diff(places.reshape(len(columns), -1), prepend=-1).any(axis=0)
    return np.cumsum(is_new) - 1, places[:, is_new]


def _portions(sets: Sequence[Keys], size_of: Callable[[Keys], float]) -> Iterator[list[Keys]]:
    """Split sets of keys into portions of at most `_AT_ONCE` together, or of one."""
    waiting: list[Keys] = []
    total = 0.0
    for one in sets:
        size = size_of(one)
        if waiting and total + size > _AT_ONCE:
            yield waiting
            waiting, total = [], 0.0
        waiting.append(one)
        total += size
    if waiting:
        yield waiting


def _as_one(codes: Sequence[Codes], sizes: Sequence[int]) -> Codes:
    """Several codes of each row as one integer, in few bytes."""
    return combined(codes, sizes, np.min_scalar_type(max(math.prod(sizes) - 1, 0)))

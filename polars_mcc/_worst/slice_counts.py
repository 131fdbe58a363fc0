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


class Batch(NamedTuple):
    """The slices of some sets of keys that are large enough, and their counts."""

    sets: Sequence[SlicesOfKeys]
    n: Floats
    """The weight of the scored rows of each slice."""
    n_small: int
    """How many slices have too few rows."""
    pairs: Counted
    """The pairs of all slices, one set after the other: see `SliceCounter.is_reweighted`."""


_OfKeys: TypeAlias = tuple[SlicesOfKeys, Counted, int]
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
        _, pairs, _ = self._counted((), 0)
        return pairs._replace(number=1)

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
            while small:
                size = np.cumsum([*map(self._cells, small)])
                portion = max(int(np.searchsorted(size, _CELLS_AT_ONCE, "right")), 1)
                counted = pool.map(self._counted, small[:portion], itertools.repeat(self.min_n))
                small = small[portion:]
                waiting.append(counted)
                if len(waiting) > 1:
                    yield _batch([*waiting.popleft()])
            for last in waiting:
                yield _batch([*last])
        for of_set in large:  # Polars takes all threads for one.
            yield _batch([self._counted(of_set, self.min_n)])

    def _cells(self, keys: CrossedKeys) -> float:
        return math.prod(key.size + 1 for key in keys) * self.n_pairs

    def _counted(self, keys: CrossedKeys, least: float) -> _OfKeys:
        """Count the slices of a set of keys."""
        k, count = len(self.log.labels), self._in_groups
        if self._cells(keys) <= _CELLS_OF_TABLE:
            count = self._in_table
        starts, places, gold, pred, n, n_null, squares = count(keys)
        slices = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(gold)))
        has_gold = gold < k
        is_scored = has_gold & (pred < k)
        left_out = n * ~is_scored + n_null
        weights = n * is_scored, squares * is_scored, left_out, left_out * ~has_gold
        n_scored, n_squares, *unscored = (np.add.reduceat(of, starts) for of in weights)
        is_pair = pred < k if self.is_reweighted else is_scored
        [kept] = np.nonzero(is_pair & (n > 0))
        arrays = slices, gold, pred, n, squares
        pairs = Counted(len(starts), *(array[kept] for array in arrays))
        is_frequency = self.log.sliced.is_frequency
        effective = n_scored if is_frequency else equal_rows(n_scored, n_squares)
        if self.is_reweighted:
            effective = equal_rows(*self.represented(pairs).sums)
        [large] = np.nonzero(effective >= least)
        left_out = np.stack(unscored)[:, large]
        of_keys = SlicesOfKeys(keys, places[:, large], n_scored[large], left_out)
        return of_keys, pairs_of(pairs, large), len(starts) - len(large)

    def _in_table(self, keys: CrossedKeys) -> list[Ints]:
        """The pairs of a set of keys, sorted by slice.

        They are the first pair and the places of each slice, and of each pair gold, pred, n, n_null
        and squares.
        """
        codes = [*(self.log.rows[key.column] for key in keys), self.pair]
        sizes, weights = [*(key.size + 1 for key in keys), self.n_codes**2], self.log.weights
        of_rows: list[Ints | None] = [None]
        if weights is not None:
            of_rows = [weights.n, weights.n_null]
        if weights is not None and weights.squares is not None:
            of_rows.append(weights.squares)
        tables = [_of_values(totals(codes, sizes, weight), keys) for weight in of_rows]
        filled = np.flatnonzero(np.any([table != 0 for table in tables[:2]], axis=0))
        ids, pair = np.divmod(filled, self.n_codes**2)
        starts = np.flatnonzero(np.diff(ids, prepend=-1))
        places = np.array(np.unravel_index(ids[starts], tables[0].shape[:-1] or (1,)), np.int32)
        n, *others = (table.ravel()[filled] for table in tables)
        n_null = others[0] if others else np.zeros(1, np.int64)
        of_pairs = *np.divmod(pair, self.n_codes), n, n_null, others[1] if others[1:] else n
        return [starts, places, *of_pairs]

    def _in_groups(self, keys: CrossedKeys) -> list[Ints]:
        """The same as `_in_table`, by grouping rows."""
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
        cells = cells.filter((pl.col("n") != 0) | (pl.col("n_null") > 0)).sort(by)
        found = cells.with_columns(pl.col(*by).cast(pl.Int64)).collect()
        places = np.array([found[name].to_numpy() for name in columns]).reshape(
            len(keys), found.height
        )
        is_new = np.diff(places, prepend=-1).any(axis=0) if keys else np.arange(found.height) == 0
        starts = np.flatnonzero(is_new)
        of_pairs = ("gold", "pred", "n", "n_null", "squares")
        return [starts, places[:, starts], *(found[name].to_numpy() for name in of_pairs)]

    def margins(self, pairs: Counted, first: int, last: int) -> Margins:
        """How often each label is gold, predicted, and both; or each score, by gold label."""
        k = len(self.log.labels)
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


def pairs_of(pairs: Counted, slices: Ints) -> Counted:
    """The pairs of some slices, which get the numbers from 0 on."""
    of_slice, cells = pairs.rows.rows_of(slices)
    return Counted(len(slices), of_slice, *(array[cells] for array in pairs[2:]))


def _batch(of_sets: Sequence[_OfKeys]) -> Batch:
    """Number the slices of several sets of keys one after the other."""
    sets, of_each, n_small = zip(*of_sets, strict=True)
    n = np.concatenate([of_set.n for of_set in sets]).astype(np.float64)
    firsts = np.cumsum([0, *(pairs.number for pairs in of_each)])
    slices = [pairs.slices + first for pairs, first in zip(of_each, firsts[:-1], strict=True)]
    arrays = map(np.concatenate, zip(*(pairs[2:] for pairs in of_each), strict=True))
    counted = Counted(int(firsts[-1]), np.concatenate(slices), *arrays)
    return Batch(sets, n, sum(n_small), counted)

"""Codes of rows → the counts of every slice of every set of keys.

Each set of keys is counted directly, into a table with an axis per key and two for the labels. A
table that leaves the caches of a processor is counted in the order of its first key, so that only a
part of it is in use at a time. Sets whose table would be too large are grouped by Polars.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from polars_mcc._counts.classes import is_scored, not_scored
from polars_mcc._counts.codes import combined
from polars_mcc._counts.counted import count_columns, merged
from polars_mcc._counts.sliced import PRED
from polars_mcc._log.keys import KeySet
from polars_mcc._search.codes import Coded, Key

if TYPE_CHECKING:
    import numpy.typing as npt

    from polars_mcc._counts.parquet import Codes

    Numbers: TypeAlias = npt.NDArray[Any]
    Tables: TypeAlias = Mapping[str, Numbers]

SLICE = "slice"

_QUICK = 2**17  # most cells of a table that fits in the caches of a processor
_MOST = 2**22  # most cells of one table, and most groups of Polars at once
_AT_ONCE = 2**24  # most cells of the tables that are counted in one pass over the rows
_STEP = 2**17  # rows whose codes fit in the caches


class Batch(NamedTuple):
    """Slices that are large enough, and their counts."""

    slices: pl.DataFrame
    """A row per slice: its number; for each key of its set, the place of its value in
    `Key.values`; `n` and `n_null`."""
    n_small: int
    """How many slices have too few rows."""
    pairs: Callable[[pl.Series | None], pl.DataFrame]
    """The pairs of some slices, or of all."""
    classes: pl.LazyFrame | None
    """The classes of all slices, if they are known without their pairs."""


class _Rows(NamedTuple):
    """Rows as arrays."""

    codes: Mapping[str, Codes]
    """The code of each row by key; "pair" has both labels as one code."""
    sums: Mapping[str, Numbers | None]
    """What is added up for each row; None: the rows are counted."""

    def part(self, rows: slice | Codes) -> _Rows:
        """Some of the rows, or the rows in another order."""
        sums = {name: None if one is None else one[rows] for name, one in self.sums.items()}
        return _Rows({name: one[rows] for name, one in self.codes.items()}, sums)


@dataclass(frozen=True)
class Counting:
    """Counts the slices of one model in a coded log."""

    coded: Coded
    min_n: float

    @property
    def _keys(self) -> Mapping[str, Key]:
        return self.coded.keys

    @cached_property
    def _n_labels(self) -> int:
        """The number of codes of a label. The last one is for null, if a label is null."""
        sides = ("gold", PRED + self.coded.log.models[0])
        return max(1, *(self.coded.most[side] for side in sides))

    def _parts(self, pairs: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """The pairs of each slice as tables: scored, with null as gold, and as predicted alone."""
        every = pairs.reshape(-1, self._n_labels, self._n_labels)
        n_scored = None if self.coded.log.nulls == "label" else len(self.coded.labels)
        null = slice(0, 0) if n_scored is None else slice(n_scored, None)
        return every[:, :n_scored, :n_scored], every[:, null], every[:, :n_scored, null]

    def whole(self) -> pl.DataFrame:
        """The pairs of the whole log."""
        tables = self._counted([()])[0]
        tables = {name: one[None] for name, one in tables.items()}
        return self._frame(tables, np.zeros(1, int)).drop(SLICE)

    def batches(self, depth: int) -> Iterator[Batch]:
        """Count every set of up to `depth` keys."""
        names = sorted(self._keys, key=lambda name: -self._keys[name].size)
        names = [name for name in names if self._keys[name].size]
        waiting: list[KeySet] = []
        for n_keys in range(1, depth + 1):
            for keys in itertools.combinations(names, n_keys):
                if self._cells(keys) > _MOST:
                    yield from self._grouped(keys)
                    continue
                if waiting and sum(map(self._cells, [*waiting, keys])) > _AT_ONCE:
                    yield self._batch(waiting)
                    waiting = []
                waiting.append(keys)
        if waiting:
            yield self._batch(waiting)

    def _cells(self, keys: KeySet) -> int:
        return math.prod(self._sizes(keys)) * self._n_labels**2

    def _sizes(self, keys: Sequence[str]) -> list[int]:
        return [self.coded.most[self._keys[key].column] for key in keys]

    def _rows(self) -> Iterator[_Rows]:
        """All rows, piece by piece."""
        log = self.coded.log
        pred = PRED + log.models[0]
        wide = np.min_scalar_type(self._n_labels**2)
        for piece in self.coded.pieces():
            codes = {name: piece[key.column].to_numpy() for name, key in self._keys.items()}
            gold, pred_ = (piece[side].to_numpy().astype(wide) for side in ("gold", pred))
            codes["pair"] = gold * wide.type(self._n_labels) + pred_
            sums: dict[str, Numbers | None] = {"n": None}
            if log.weight_name is not None:
                weight = piece["weight"]
                null, squared = weight.is_null().cast(pl.Int64), weight.cast(pl.Float64) ** 2
                if log.weight_sums:
                    _, null, squared = (piece[name] for name in (*log.weight_sums, "weight")[:3])
                given = {"n": weight.cast(log.numbers.count), "n_null": null}
                given |= {} if log.is_frequency else {"squares": squared}
                sums = {name: one.fill_null(0).to_numpy() for name, one in given.items()}
            yield _Rows(codes, sums)

    def _counted(self, sets: Sequence[KeySet]) -> list[Tables]:
        """A table for each set: an axis per key, then gold and predicted labels."""
        is_weighted = self.coded.log.weight_name is not None
        dtypes = {"n": np.dtype("f8" if self.coded.log.numbers.count.is_float() else "i8")}
        dtypes |= {"n_null": np.dtype("i8")} if is_weighted else {}
        dtypes |= {} if self.coded.log.is_frequency else {"squares": np.dtype("f8")}
        found: list[Tables] = [
            {
                name: np.zeros((*self._sizes(keys), self._n_labels**2), one)
                for name, one in dtypes.items()
            }
            for keys in sets
        ]
        places = range(len(sets))
        first_keys = [
            [*group] for _, group in itertools.groupby(places, lambda place: sets[place][:1])
        ]
        with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
            for rows in self._rows():

                def of_first_key(of_group: Sequence[int], rows: _Rows = rows) -> None:
                    of_log = [
                        place
                        for place in of_group
                        if found[place]["n"].size <= _QUICK or len(sets[place]) < 2
                    ]
                    for place in of_log:
                        _add(found[place], rows, sets[place])
                    if len(of_log) < len(of_group):
                        key = sets[of_group[0]][0]
                        wanted = {*(key for place in of_group for key in sets[place]), "pair"}
                        parts = [*_by_code(rows, key, self._sizes([key])[0], wanted)]
                        for place in {*of_group} - {*of_log}:
                            for code, part in enumerate(parts):
                                tables = {name: one[code] for name, one in found[place].items()}
                                _add(tables, part, sets[place][1:])

                for _ in pool.map(of_first_key, first_keys):
                    pass
        return found

    def _batch(self, sets: Sequence[KeySet]) -> Batch:
        """Slices from tables."""
        log = self.coded.log
        frames, kept, n_small = [], [], 0
        for keys, counted in zip(sets, self._counted(sets), strict=True):
            of_slices = {name: self._of_values(keys, one) for name, one in counted.items()}
            n, *null = (one.sum((1, 2)) for one in self._parts(of_slices["n"]))
            left_out = sum(null)
            if "n_null" in of_slices:
                left_out = left_out + of_slices["n_null"].sum(1)
            rows = n
            if "squares" in of_slices:
                squares = self._parts(of_slices["squares"])[0].sum((1, 2))
                rows = np.divide(n**2.0, squares, out=np.zeros(len(n)), where=squares > 0)
            large = np.flatnonzero(rows >= self.min_n)
            n_small += int(np.count_nonzero((n > 0) | (left_out > 0))) - len(large)
            places = np.unravel_index(large, [self._keys[key].values.height for key in keys])
            columns = {
                self._keys[key].column: pl.Series(at, dtype=pl.UInt32)
                for key, at in zip(keys, places, strict=True)
            }
            counts = {"n": n[large], "n_null": left_out[large]}
            frames.append(pl.DataFrame({**columns, **counts}))
            kept.append((of_slices, large))
        slices = pl.concat(frames, how="diagonal").with_row_index(SLICE)
        slices = slices.with_columns(pl.col("n", "n_null").cast(log.numbers.count))
        classes = None
        if log.weight_name is None:
            classes = self._classes(self._parts(one["n"][large])[0] for one, large in kept)

        def pairs(chosen: pl.Series | None) -> pl.DataFrame:
            wanted = np.ones(slices.height, bool)
            if chosen is not None:
                wanted[:] = False
                wanted[chosen.to_numpy()] = True
            of_sets = np.split(wanted, np.cumsum([len(large) for _, large in kept])[:-1])
            found = [(one, large[here]) for (one, large), here in zip(kept, of_sets, strict=True)]
            tables = {
                name: np.concatenate([one[name][at] for one, at in found]) for name in kept[0][0]
            }
            return self._frame(tables, np.flatnonzero(wanted))

        return Batch(slices, n_small, pairs, classes)

    def _of_values(self, keys: KeySet, table: Numbers) -> Numbers:
        """The table of slices: a slice of a key that is cut may have several codes."""
        for axis, name in enumerate(keys):
            key = self._keys[name]
            table = np.moveaxis(table, axis, 0)
            first = key.values["first"].to_numpy()
            if key.is_cut:
                spans = zip(first, key.values["last"].to_numpy(), strict=True)
                table = np.stack([table[start : end + 1].sum(0) for start, end in spans])
            elif np.array_equal(first, np.arange(len(first))):
                table = table[: len(first)]  # not copied
            else:
                table = table[first]
            table = np.moveaxis(table, 0, axis)
        return table.reshape(-1, table.shape[-1])

    def _classes(self, scored: Iterable[Numbers]) -> pl.LazyFrame:
        """The classes of slices, from the pairs of each set of keys."""
        sides = [
            (pairs.sum(2), pairs.sum(1), np.diagonal(pairs, axis1=1, axis2=2)) for pairs in scored
        ]
        names, n_labels = ("gold_n", "pred_n", "hit_n"), sides[0][0].shape[1]
        counts = zip(names, map(np.concatenate, zip(*sides, strict=True)), strict=True)
        place = pl.int_range(pl.len(), dtype=pl.UInt32)
        found = pl.LazyFrame({name: one.ravel() for name, one in counts})
        found = found.with_columns((place // n_labels).alias(SLICE), label=place % n_labels)
        return found.filter(pl.col("gold_n") + pl.col("pred_n") > 0).select(
            SLICE,
            self._label("label"),
            pl.col("gold_n", "pred_n", "hit_n").cast(pl.Int128),
            null_n=pl.lit(0, pl.Int128),
            unit=pl.lit(1.0),
        )

    def _label(self, column: str) -> pl.Expr:
        """The code of a label; null for null."""
        code = pl.col(column).cast(pl.UInt32)
        return pl.when(code < len(self.coded.labels)).then(code).alias(column)

    def _frame(self, tables: Tables, numbers: Codes) -> pl.DataFrame:
        """The pairs of slices with these numbers, from their tables."""
        where = np.nonzero(sum(one != 0 for one in tables.values()))
        counts = {name: one[where] for name, one in tables.items()}
        found = {
            SLICE: numbers[where[0]],
            "pair": where[1],
            "n_null": np.zeros(len(where[0]), "i8"),
        }
        return self._named(pl.DataFrame(found | counts).lazy(), pl.col(SLICE).cast(pl.UInt32))

    def _named(self, counts: pl.LazyFrame, *columns: pl.Expr) -> pl.DataFrame:
        """Counts with two labels in place of a pair."""
        pair, n_labels = pl.col("pair").cast(pl.UInt64), self._n_labels
        codes = counts.with_columns(gold=pair // n_labels, pred=pair % n_labels)
        labels = [self._label(side) for side in ("gold", "pred")]
        return codes.select(*columns, *labels, *count_columns(self.coded.log)).collect()

    def _grouped(self, keys: KeySet) -> Iterator[Batch]:
        """Slices of a set with many cells, some of its first values at a time."""
        log = replace(self.coded.log, keys=keys, extras=(), apart=())
        first = self._keys[keys[0]]
        passes = 1
        if not first.is_cut:
            passes = math.ceil(min(self._cells(keys), self.coded.rows) / _MOST)
            passes = min(passes, first.size)
        columns = [self._keys[key].column for key in keys]
        for place in range(passes):
            found = []
            for rows in self._rows():
                is_here = rows.codes[keys[0]] % passes == place
                for name in keys:
                    is_here &= rows.codes[name] < self._keys[name].size
                part = rows.part(np.flatnonzero(is_here))
                codes = {self._keys[key].column: part.codes[key] for key in keys}
                sums = {name: one for name, one in part.sums.items() if one is not None}
                frame = pl.DataFrame({**codes, "pair": part.codes["pair"], **sums}).lazy()
                totals = [pl.col(sums).sum()] if sums else [pl.len().cast(pl.Int64).alias("n")]
                found.append(frame.group_by(*columns, "pair").agg(totals).collect())
            counts = pl.concat(found).lazy().group_by(*columns, "pair").agg(pl.all().sum())
            if log.weight_name is None:
                counts = counts.with_columns(n_null=pl.lit(0, pl.Int64))
            wide = pl.col(columns).cast(pl.UInt32)
            pairs = self._named(counts, wide).lazy()
            for key in map(self._keys.__getitem__, keys):
                at = pl.int_range(pl.len(), dtype=pl.UInt32).alias("place")
                of_value = pl.int_ranges("first", pl.col("last") + 1, dtype=pl.UInt32)
                spans = key.values.lazy().select(at, of_value.alias(key.column))
                pairs = pairs.join(spans.explode(key.column), on=key.column)
                pairs = pairs.drop(key.column).rename({"place": key.column})
            if any(self._keys[name].is_cut for name in keys):
                pairs = merged(log, pairs)
            yield self._batch_of(pairs.collect(), columns)

    def _batch_of(self, pairs: pl.DataFrame, columns: Sequence[str]) -> Batch:
        """Slices from pairs."""
        log = self.coded.log
        n = pl.when(is_scored(log)).then("n").otherwise(0)
        rows = n.sum().cast(pl.Float64)
        if not log.is_frequency:
            rows = rows.pow(2) / pl.when(is_scored(log)).then("squares").otherwise(0.0).sum()
        left_out = log.numbers.as_count(not_scored(log).sum())
        slices = pairs.group_by(columns).agg(n=n.sum(), rows=rows, n_null=left_out)
        large = slices.filter(pl.col("rows") >= self.min_n).drop("rows").sort(columns)
        large = large.with_row_index(SLICE)
        known = pairs.join(large.select(SLICE, *columns), on=columns).drop(columns)

        def of(chosen: pl.Series | None) -> pl.DataFrame:
            return known if chosen is None else known.filter(pl.col(SLICE).is_in(chosen.implode()))

        return Batch(large, slices.height - large.height, of, None)


def _by_code(rows: _Rows, key: str, size: int, wanted: set[str]) -> Iterator[_Rows]:
    """The rows of each code of a key."""
    order = np.argsort(rows.codes[key], kind="stable")
    ends = np.cumsum(np.bincount(rows.codes[key], minlength=size))
    codes = {name: one for name, one in rows.codes.items() if name in wanted}
    ordered = _Rows(codes, rows.sums).part(order)
    for start, end in itertools.pairwise([0, *ends]):
        yield ordered.part(slice(start, end))


def _add(tables: Tables, rows: _Rows, keys: KeySet) -> None:
    """Add rows to the tables of a set of keys."""
    sizes = tables["n"].shape
    for start in range(0, len(rows.codes["pair"]), _STEP):
        part = slice(start, start + _STEP)
        code = combined([rows.codes[name][part] for name in (*keys, "pair")], sizes)
        for name, one in rows.sums.items():
            given = None if one is None else one[part]
            tables[name][...] += _sums(code, given, tables[name].size).reshape(sizes)


def _sums(code: Codes, numbers: Numbers | None, cells: int) -> Numbers:
    """Add up numbers by code. Integers are exact, as sums of floats of 53 bits."""
    if numbers is None or numbers.dtype.kind == "f":
        return np.bincount(code, numbers, cells)
    low, high = numbers & (2**32 - 1), numbers >> 32
    total = np.bincount(code, low, cells).astype(np.int64)
    if high.any():
        total += np.bincount(code, high, cells).astype(np.int64) << 32
    return total

"""Codes of rows → the pairs of every slice of every set of keys.

The rows of a set of keys are counted by NumPy, into a table with an axis per key and one for the
pair of labels. A set whose table would be too large is grouped by Polars, and so is a log with
weights, which is mostly a table of counts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from polars_mcc._counts.classes import is_scored, not_scored, of_pairs
from polars_mcc._counts.codes import combined
from polars_mcc._counts.counted import count_columns, counted, merged
from polars_mcc._counts.sliced import PRED
from polars_mcc._search.codes import Coded, Key

if TYPE_CHECKING:
    import numpy.typing as npt

    from polars_mcc._counts.parquet import Codes

    Counts: TypeAlias = npt.NDArray[np.int64]

Keys: TypeAlias = Sequence[Key]
"""A set of keys that are crossed."""

SLICE = "slice"
"""The column with the number of a slice."""

_MOST = 2**22  # most cells of a table, 32 MB, and of the sets that are counted at once
_STEP = 2**17  # least rows that are counted at once: their codes fit in the caches


class Batch(NamedTuple):
    """The slices of some sets of keys that are large enough, and their counts."""

    slices: pl.DataFrame
    """A row per slice: its number; for each key of its set, the number of its value in
    `Key.values`; `n` and `n_null`."""
    n_small: int
    """How many slices have too few rows."""
    classes: pl.LazyFrame
    """The classes of all slices."""
    pairs: Callable[[pl.Series], pl.DataFrame]
    """The pairs of some slices, by their numbers."""


@dataclass(frozen=True)
class Counting:
    """Counts the slices of one model in a coded log."""

    coded: Coded
    min_n: float

    def whole(self) -> pl.DataFrame:
        """The pairs of the whole log."""
        return counted(replace(self.coded.log.whole, extras=())).collect()

    def batches(self, depth: int) -> Iterator[Batch]:
        """Count every set of up to `depth` keys, many sets at a time."""
        keys = [key for key in self.coded.keys.values() if key.size]
        keys.sort(key=lambda key: -key.size)
        waiting: list[Keys] = []
        for n_keys in range(1, depth + 1):
            for one in itertools.combinations(keys, n_keys):
                if waiting and self._cells([*waiting, one]) > _MOST:
                    yield self._batch(waiting)
                    waiting = []
                waiting.append(one)
        if waiting:
            yield self._batch(waiting)

    def _cells(self, sets: Sequence[Keys]) -> int:
        """The cells of the tables of some sets of keys."""
        return sum(math.prod(key.size + 1 for key in keys) for keys in sets) * self._n_labels**2

    @property
    def _n_labels(self) -> int:
        """The number of labels, with null as one more."""
        return len(self.coded.labels) + 1

    def _batch(self, sets: Sequence[Keys]) -> Batch:
        log = self.coded.log
        is_plain = log.weight_name is None and not log.is_of_scores
        are_small = is_plain and self._cells(sets) <= _MOST
        return self._in_tables(sets) if are_small else self._grouped(sets)

    def _in_tables(self, sets: Sequence[Keys]) -> Batch:
        """Slices that are counted by NumPy."""
        frames, kept, n_small = [], [], 0
        with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
            tables = [*pool.map(self._table, sets)]
        for keys, table in zip(sets, tables, strict=True):
            counts: Counts = table.reshape(-1, self._n_labels, self._n_labels)
            every, n = counts.sum((1, 2)), self._scored(counts).sum((1, 2))
            large = np.flatnonzero(n >= self.min_n)
            n_small += int(np.count_nonzero(every)) - len(large)
            values = np.unravel_index(large, table.shape[:-1])
            columns = {
                key.column: pl.Series(value, dtype=pl.UInt32)
                for key, value in zip(keys, values, strict=True)
            }
            frames.append(pl.DataFrame({**columns, "n": n[large], "n_null": (every - n)[large]}))
            kept.append(counts[large])
        slices, counts = pl.concat(frames, how="diagonal"), np.concatenate(kept)

        def pairs(chosen: pl.Series) -> pl.DataFrame:
            where = np.nonzero(counts[chosen.to_numpy()])
            found = {"at": where[0], "gold": where[1], "pred": where[2]}
            found["n"] = counts[chosen.to_numpy()][where]
            labels = map(self._label, ("gold", "pred"))
            number = pl.lit(chosen).gather("at").alias(SLICE)
            return pl.DataFrame(found).select(number, *labels, "n", n_null=pl.lit(0, pl.Int64))

        return Batch(slices.with_row_index(SLICE), n_small, self._classes(counts), pairs)

    def _table(self, keys: Keys) -> Counts:
        """The rows of each slice of a set of keys: an axis per key, and one for both labels."""
        sizes = [*(key.size + 1 for key in keys), self._n_labels**2]
        codes = [*(self.coded.rows[key.column].to_numpy() for key in keys), self._pair_codes]
        table: Counts = np.zeros(math.prod(sizes), np.int64)
        step = max(_STEP, len(table))
        for start in range(0, self.coded.rows.height, step):
            code = combined([one[start : start + step] for one in codes], sizes)
            table += np.bincount(code, minlength=len(table))
        table = table.reshape(sizes)
        for axis, key in enumerate(keys):  # Each value is a sum over its codes.
            ends = key.values.select("first", pl.col("last") + 1).to_numpy().ravel()
            table = np.add.reduceat(table, ends, axis)
            table = table.take(range(0, len(ends), 2), axis)
        return table

    @cached_property
    def _pair_codes(self) -> Codes:
        """Both labels of each row as one code. The last label is null."""
        sides = ("gold", PRED + self.coded.log.models[0])
        gold, pred = (self.coded.rows[side].to_numpy() for side in sides)
        wide = np.min_scalar_type(self._n_labels**2)
        pair: Codes = gold.astype(wide) * wide.type(self._n_labels) + pred
        return pair

    def _scored(self, counts: Counts) -> Counts:
        """The counts of scored pairs."""
        n = self._n_labels - (self.coded.log.nulls == "drop")
        return counts[:, :n, :n]

    def _classes(self, counts: Counts) -> pl.LazyFrame:
        """The classes of slices, from the counts of their pairs."""
        scored = self._scored(counts)
        gold_n, pred_n = scored.sum(2), scored.sum(1)
        where = np.nonzero(gold_n + pred_n)
        sides = {"gold_n": gold_n, "pred_n": pred_n, "hit_n": scored.diagonal(axis1=1, axis2=2)}
        found = {SLICE: where[0], "label": where[1]}
        found |= {name: one[where] for name, one in sides.items()}
        return pl.LazyFrame(found).select(
            pl.col(SLICE).cast(pl.UInt32),
            self._label("label"),
            pl.col([*sides]).cast(pl.Int128),
            null_n=pl.lit(0, pl.Int128),
            unit=pl.lit(1.0),
        )

    def _label(self, column: str) -> pl.Expr:
        """The code of a label; null for null."""
        code = pl.col(column).cast(pl.UInt32)
        return pl.when(code < len(self.coded.labels)).then(code).alias(column)

    def _grouped(self, sets: Sequence[Keys]) -> Batch:
        """Slices that are grouped by Polars."""
        log = self.coded.log
        pairs = pl.concat([self._pairs(keys) for keys in sets], how="diagonal")
        columns = [key.column for key in self.coded.keys.values() if key.column in pairs.columns]
        n = pl.when(is_scored(log)).then("n").otherwise(0)
        rows = n.sum().cast(pl.Float64)
        if not log.is_frequency:
            squares = pl.when(is_scored(log)).then("squares").otherwise(0.0).sum()
            rows = pl.when(squares > 0).then(rows.pow(2) / squares).otherwise(0.0)
        n_null = log.numbers.as_count(not_scored(log).sum())
        slices = pairs.group_by(columns, maintain_order=True).agg(
            n=n.sum(), n_null=n_null, rows=rows
        )
        large = slices.filter(pl.col("rows") >= self.min_n).drop("rows").with_row_index(SLICE)
        numbers = large.select(SLICE, *columns)
        known = pairs.join(numbers, on=columns, nulls_equal=True).drop(columns)
        return Batch(
            large,
            slices.height - large.height,
            of_pairs(replace(log, keys=(), apart=(SLICE,)), known.lazy()),
            lambda chosen: known.filter(pl.col(SLICE).is_in(chosen.implode())),
        )

    def _pairs(self, keys: Keys) -> pl.DataFrame:
        """The pairs of a set of keys, with the number of the value of each key."""
        log = replace(self.coded.log, keys=tuple(key.name for key in keys), extras=())
        pairs = counted(log).filter((pl.col("n") != 0) | (pl.col("n_null") > 0))
        pairs = pairs.with_columns(pl.col(log.slice).cast(pl.UInt32))
        for key in keys:
            pairs = pairs.join(key.codes, on=key.column).drop(key.column)
            pairs = pairs.rename({"number": key.column})
            pairs = merged(log, pairs) if key.is_cut else pairs
        counts = count_columns(log)
        return pairs.select(*log.slice, "gold", "pred", *counts).sort(log.slice).collect()

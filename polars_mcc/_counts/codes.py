"""Count rows of local Parquet files by the codes of their columns: values ↔ integers, one place.

Each row group is decoded to codes (see `parquet.py`), and `numpy.bincount` counts their
combinations, in threads. Dictionaries differ by row group, so codes are translated to the codes of
the log: the counted cells if these are few, else the rows. The counts are a table with an axis per
column. A log whose table would be too large is counted the plain way.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import polars as pl

from polars_mcc._counts.parquet import TEXTS, Codes, Found, RowGroup, Scan, Unsuited

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Table: TypeAlias = npt.NDArray[np.int64]

MOST = 2**20
"""Most cells of a table, 8 MB."""
_SPARSE = 8  # a table with more cells than so many times the rows is not added as a whole
_FEW = 2**15  # most cells of a row group that are counted as pairs if classes would do
T = TypeVar("T")


class Values:
    """The values of a column, or of the labels, in the order in which they were found."""

    def __init__(self) -> None:
        self._codes: dict[object, int] = {}
        self._lock = threading.Lock()
        self._seen: list[tuple[Any, Codes]] = []

    def __len__(self) -> int:
        """How many codes there are."""
        return len(self._codes)

    def of(self, found: Found) -> Codes:
        """The code in the log of each code of a row group."""
        values = found.values
        for seen, codes in self._seen:  # Row groups often have the same dictionary.
            if type(seen) is type(values) and seen == values:
                return codes
        listed = values if isinstance(values, (range, list)) else values.to_pylist()
        if len({*listed}) < len(listed):
            raise Unsuited(listed)
        with self._lock:
            places = (self._codes.setdefault(value, len(self._codes)) for value in listed)
            codes = np.fromiter(places, np.int32, len(listed))
            self._seen = [*self._seen[-7:], (values, codes)]
        return codes

    @property
    def of_null(self) -> int:
        """The code of null, or -1."""
        return self._codes.get(None, -1)

    def series(self, dtype: pl.DataType) -> pl.Series:
        """The values, in the order of their codes."""
        if isinstance(dtype, TEXTS):
            return pl.Series([*self._codes], dtype=pl.String).cast(dtype)
        values = pl.Series([*self._codes], dtype=pl.Int128, strict=False)
        return values.cast(pl.Series(dtype=dtype).to_physical().dtype).cast(dtype)


@dataclass
class Cells:
    """Counts by combination of codes: a table with an axis per column, which grows."""

    axes: int
    table: Table = field(init=False)

    def __post_init__(self) -> None:
        self.table = np.zeros((0,) * self.axes, np.int64)

    def grow(self, shape: Sequence[int]) -> None:
        """Make room for so many codes on each axis."""
        now = self.table.shape
        if all(need <= has for need, has in zip(shape, now, strict=True)):
            return
        shape = [max(has, _power_of_two(need)) for need, has in zip(shape, now, strict=True)]
        if math.prod(shape) > MOST:
            raise Unsuited(shape)
        table = np.zeros(shape, np.int64)
        table[tuple(map(slice, now))] = self.table
        self.table = table

    def add(self, table: Table) -> None:
        """Add the counts of another table."""
        self.grow(table.shape)
        self.table[tuple(map(slice, table.shape))] += table

    def count_cells(self, rows: Sequence[Codes], maps: Sequence[Codes]) -> None:
        """Count rows by the codes of their row group, and translate the counts."""
        self.grow([int(codes.max()) + 1 for codes in maps])
        sizes = [len(codes) for codes in maps]
        counts = np.bincount(combined(rows, sizes), minlength=math.prod(sizes))
        self.table[np.ix_(*maps)] += counts.reshape(sizes)

    def count_rows(self, rows: Sequence[Codes], shape: Sequence[int]) -> None:
        """Count rows by the codes of the log."""
        self.grow(shape)
        code = combined(rows, self.table.shape)
        if self.table.size > _SPARSE * len(code):
            cells, counts = np.unique(code, return_counts=True)
            self.table.reshape(-1)[cells] += counts
        else:
            counts = np.bincount(code, minlength=self.table.size)
            self.table += counts.reshape(self.table.shape)


def _power_of_two(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()


def combined(rows: Sequence[Codes], sizes: Sequence[int]) -> Codes:
    """Several codes of each row as one integer. The last code varies fastest."""
    code = rows[0].astype(np.int32)
    for one, size in zip(rows[1:], sizes[1:], strict=True):
        code *= size
        code += one
    return code


class Job(NamedTuple):
    """The columns of one table of counts."""

    keys: tuple[str, ...]
    sides: tuple[str, ...]
    """Gold, a prediction, and further columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, in the order of the axes."""
        return (*self.keys, *self.sides)


_SIDES = ("gold_n", "pred_n", "hit_n", "null_n")
"""The counts of a class: how often it is gold, predicted and both, and the rows not scored."""


@dataclass(frozen=True)
class Counter:
    """Counts the rows of a scan."""

    scan: Scan
    jobs: Sequence[Job]
    has_classes: bool
    """Whether classes are enough: pairs of very many labels need not be counted."""
    nulls_are_labels: bool
    values: Mapping[str, Values]
    """The values of each column. Gold and predictions share theirs."""

    def counted(self) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        """For each job: the pairs that were counted, and the classes of rows with too many pairs.

        A frame has a row per combination that occurs, with a code per column.
        """
        tallies: dict[int, list[list[Cells]]] = {}

        def count(group: RowGroup) -> None:
            name = threading.get_ident()
            tally = tallies[name] = tallies.get(name) or self._nothing()
            self._count(group, tally)

        for _ in in_threads(count, self.scan):
            pass
        whole = self._nothing()
        for tally in tallies.values():
            for mine, theirs in zip(itertools.chain(*whole), itertools.chain(*tally), strict=True):
                mine.add(theirs.table)
        for job, (pairs, *sides) in zip(self.jobs, whole, strict=True):
            classes = dict(zip(_SIDES, sides, strict=True))
            yield _frame(job.columns, {"n": pairs}), _frame((*job.keys, "label"), classes)

    def _nothing(self) -> list[list[Cells]]:
        """No counts: for each job its pairs, and the four counts of its classes."""
        of_classes = [[Cells(len(job.keys) + 1) for _ in _SIDES] for job in self.jobs]
        return [
            [Cells(len(job.columns)), *sides]
            for job, sides in zip(self.jobs, of_classes, strict=True)
        ]

    def _count(self, group: RowGroup, tally: Sequence[Sequence[Cells]]) -> None:
        n_rows, found = group.read()
        if not n_rows:
            return
        maps = {name: self.values[name].of(one) for name, one in found.items()}
        known: dict[str, Codes] = {}

        def of_log(names: Sequence[str]) -> list[Codes]:
            for name in names:
                if name not in known:
                    known[name] = maps[name][found[name].codes]
            return [known[name] for name in names]

        for job, (pairs, *classes) in zip(self.jobs, tally, strict=True):
            cells = math.prod(len(maps[name]) for name in job.columns)
            if cells <= (_FEW if self.has_classes else n_rows):
                rows = [found[name].codes for name in job.columns]
                pairs.count_cells(rows, [maps[name] for name in job.columns])
            elif self.has_classes:
                self._count_classes(job, of_log(job.columns), classes)
            else:
                shape = [len(self.values[name]) for name in job.columns]
                pairs.count_rows(of_log(job.columns), shape)

    def _count_classes(self, job: Job, rows: Sequence[Codes], classes: Sequence[Cells]) -> None:
        *keys, gold, pred = rows
        labels = self.values["gold"]
        shape = [*(len(self.values[name]) for name in job.keys), len(labels)]
        none = labels.of_null
        if none >= 0 and not self.nulls_are_labels:
            is_left_out = (gold == none) | (pred == none)
            left_out = [codes[is_left_out] for codes in keys]
            classes[3].count_rows([*left_out, np.full(is_left_out.sum(), none)], shape)
            *keys, gold, pred = (codes[~is_left_out] for codes in rows)
        is_hit = gold == pred
        for cells, side in zip(classes, (gold, pred), strict=False):
            cells.count_rows([*keys, side], shape)
        classes[2].count_rows([codes[is_hit] for codes in (*keys, gold)], shape)


def _frame(names: Sequence[str], cells: Mapping[str, Cells]) -> pl.DataFrame:
    """The combinations of codes that occur, and their counts."""
    shape = np.max([one.table.shape for one in cells.values()], axis=0).tolist()
    for one in cells.values():
        one.grow(shape)
    where = np.nonzero(np.sum([one.table for one in cells.values()], axis=0))
    counts = {name: one.table[where] for name, one in cells.items()}
    return pl.DataFrame(dict(zip(names, where, strict=True)) | counts)


def codes_of_log(scan: Scan, values: Mapping[str, Values]) -> list[Mapping[str, Codes]]:
    """The codes of all rows: those of each row group, in the smallest integers."""

    def read(group: RowGroup) -> Mapping[str, Codes]:
        _, found = group.read()
        new = {name: values[name].of(one) for name, one in found.items()}
        return {
            name: new[name].astype(np.min_scalar_type(len(values[name])))[one.codes]
            for name, one in found.items()
        }

    return [*in_threads(read, scan)]


def in_threads(work: Callable[[RowGroup], T], scan: Scan) -> Iterator[T]:
    """Do some work for each row group of a scan, in order. The first error stops it."""
    threads = pl.thread_pool_size()
    pool, waiting = ThreadPoolExecutor(threads), deque[Future[T]]()
    try:
        for group in scan.row_groups():
            waiting.append(pool.submit(work, group))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        yield from (one.result() for one in waiting)
    finally:
        pool.shutdown(cancel_futures=True)

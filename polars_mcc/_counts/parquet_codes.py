"""Count rows of local Parquet files by the codes of their columns, in place of values.

Each row group is decoded to codes (see `parquet_files.py`), and `numpy.bincount` counts their
combinations, in threads. Dictionaries differ by row group, so the counted cells are translated to
the codes of the log, and added to a table with an axis per column. Pairs whose table would be too
large are sorted as numbers; other such logs are counted the plain way.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import polars as pl

from polars_mcc._counts.parquet_files import Codes, ColumnChunk, RowGroup, Scan, Unsuited
from polars_mcc._frame.labels import is_text

if TYPE_CHECKING:
    import numpy.typing as npt

    Table: TypeAlias = npt.NDArray[np.int64]

Job: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""The columns of a table of counts: keys; gold, a prediction, and further columns."""

MOST = 2**20
"""Most cells of a table, 8 MB."""
_ALL = 2**24  # most cells of the tables of all jobs
_PER_ROW = 16  # most cells that are written for a row, on average: else a plan of groups is faster
_SPARE = 2**23  # cells that are written before the average counts: row groups may be small
_FEW = 2**15  # most cells of a row group that are counted as pairs if classes would do
_SORTED = 2**23  # rows of all jobs whose numbers wait to be sorted, 64 MB
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

    def of(self, column: ColumnChunk) -> Codes:
        """The code in the log of each code of a row group."""
        values = column.values
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
        if is_text(dtype):
            return pl.Series([*self._codes], dtype=pl.String).cast(dtype)
        values = pl.Series([*self._codes], dtype=pl.Int128, strict=False)
        return values.cast(pl.Series(dtype=dtype).to_physical().dtype).cast(dtype)


def combined(
    rows: Sequence[Codes],
    sizes: Sequence[int],
    dtype: Any = np.int32,  # noqa: ANN401 - of NumPy
) -> Codes:
    """Several codes of each row as one integer. The last code varies fastest.

    `dtype`: None is the smallest integer.
    """
    number: Any = rows[0].astype(dtype or np.min_scalar_type(max(math.prod(sizes) - 1, 0)))
    for code, size in zip(rows[1:], sizes[1:], strict=True):
        number *= size
        number += code
    combination: Codes = number
    return combination


class _ManyPairs:
    """The pairs that are too many for a table: each is a number, with so many bits per code."""

    def __init__(self, columns: int, at_once: int) -> None:
        self._bits, self._at_once = 62 // columns, at_once
        self._lock = threading.Lock()
        self._rows: list[Codes] = []
        self._parts: list[tuple[Codes, Table]] = []

    def __bool__(self) -> bool:
        """Whether there are some."""
        return bool(self._rows or self._parts)

    def add(self, codes: Sequence[Codes]) -> None:
        """Add rows, from their codes."""
        if any(len(column) and int(column.max()) >> self._bits for column in codes):
            raise Unsuited(codes)
        numbers = combined(codes, [2**self._bits] * len(codes), np.int64)
        with self._lock:
            self._rows.append(numbers)
            if sum(map(len, self._rows)) < self._at_once:
                return
            rows, self._rows = self._rows, []
        part = np.unique(np.concatenate(rows), return_counts=True)
        with self._lock:
            self._parts.append(part)
            if sum(len(numbers) for numbers, _ in self._parts[1:]) > len(self._parts[0][0]):
                self._parts = [_added_up(self._parts)]

    def cells(self, table: Table) -> tuple[tuple[Codes, ...], Table]:
        """The codes of all pairs, with their rows; those of a table too."""
        where = np.nonzero(table)
        numbers = combined(where, [2**self._bits] * len(where), np.int64)
        rows = [np.unique(np.concatenate(self._rows), return_counts=True)] if self._rows else []
        numbers, n = _added_up([(numbers, table[where]), *self._parts, *rows])
        places = range(self._bits * (len(where) - 1), -1, -self._bits)
        return (*((numbers >> place) & (2**self._bits - 1) for place in places),), n


def _added_up(parts: Sequence[tuple[Codes, Table]]) -> tuple[Codes, Table]:
    """Add up the rows of equal numbers; each part is sorted, and has each number once."""
    parts = [part for part in parts if len(part[0])] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    numbers, n = map(np.concatenate, zip(*parts, strict=True))
    order = np.argsort(numbers, kind="stable")  # merges what is sorted
    numbers, n = numbers[order], n[order]
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    return numbers[first], np.add.reduceat(n, first)


_SIDES = ("gold_n", "pred_n", "hit_n", "null_n")
"""The counts of a class: how often it is gold, predicted and both, and the rows not scored."""


def count(
    scan: Scan,
    jobs: Sequence[Job],
    values: Mapping[str, Values],
    *,
    classes_suffice: bool,
    nulls_are_labels: bool,
) -> tuple[list[tuple[pl.DataFrame, pl.DataFrame]], list[int]]:
    """For each job: the pairs that were counted, and the classes of rows with too many pairs.

    A frame has a row per combination that occurs, with a code per column. The second result is
    the number of rows of each file, from its footer.

    Args:
        scan: The files.
        jobs: The columns of each table.
        values: The values of each column. Gold and predictions share theirs.
        classes_suffice: Whether pairs of very many labels need not be counted.
        nulls_are_labels: Whether null is a label like any other.
    """
    pairs = [{"n": np.zeros([0] * len([*keys, *sides]), np.int64)} for keys, sides in jobs]
    classes = [dict.fromkeys(_SIDES, np.zeros([0] * (len(keys) + 1), np.int64)) for keys, _ in jobs]
    many = [_ManyPairs(len([*keys, *sides]), _SORTED // len(jobs)) for keys, sides in jobs]
    rows_of_files, n_cells, n_rows = [0] * len(scan.files.paths), 0, 0
    lock = threading.Lock()

    def count_group(row_group: RowGroup) -> RowGroup:
        if not row_group.rows:
            return row_group
        nonlocal n_cells, n_rows
        read, n_all = row_group.read(), 0
        maps = {name: values[name].of(column) for name, column in read.items()}
        none = -1 if nulls_are_labels else values["gold"].of_null
        for place, (keys, sides) in enumerate(jobs):
            names = (*keys, *sides)
            sizes = [len(maps[name]) for name in names]
            are_many = classes_suffice and math.prod(sizes) > _FEW
            columns = (*keys, "gold") if are_many else names
            shape = [len(values[name]) for name in columns]
            if math.prod(shape) > MOST and not are_many:
                many[place].add([maps[name][read[name].codes] for name in names])
                continue
            n_all += math.prod(shape)
            if math.prod(shape) > MOST or n_all > _ALL:
                raise Unsuited(columns)
            with lock:
                n_cells += math.prod(shape if are_many else sizes)
                n_rows += row_group.rows
                if n_cells > _PER_ROW * n_rows + _SPARE:
                    raise Unsuited(columns)
            cells: Any
            if are_many:
                tables, cells = classes[place], tuple(map(slice, shape))
                counts = _by_class([maps[name][read[name].codes] for name in names], shape, none)
            else:  # By the codes of the row group: few cells are translated faster than rows.
                tables, cells = pairs[place], np.ix_(*(maps[name] for name in names))
                codes = combined([read[name].codes for name in names], sizes)
                counts = {"n": _table(codes, sizes)}
            with lock:
                for name, rows in counts.items():
                    tables[name] = _grown(tables[name], [len(values[of]) for of in columns])
                    tables[name][cells] += rows
        return row_group

    for row_group in in_threads(count_group, scan):
        rows_of_files[row_group.place] += row_group.rows
        scan.advance(row_group.rows)
    frames = [
        (_frame((*keys, *sides), of_pairs, more), _frame((*keys, "label"), of_classes))
        for (keys, sides), of_pairs, more, of_classes in zip(
            jobs, pairs, many, classes, strict=True
        )
    ]
    return frames, rows_of_files


def _by_class(codes: Sequence[Codes], shape: Sequence[int], none: int) -> dict[str, Table]:
    """Count rows by gold label, and by predicted label. `none`: a code that is no label."""
    *keys, gold, pred = codes
    is_hit = gold == pred
    of_gold = combined([*keys, gold], shape)
    of_pred = of_gold - gold + pred
    rows = {"gold_n": of_gold, "pred_n": of_pred, "hit_n": of_gold[is_hit]}
    if none >= 0:
        is_scored = (gold != none) & (pred != none)
        rows = {"gold_n": of_gold[is_scored], "pred_n": of_pred[is_scored]}
        rows |= {"hit_n": of_gold[is_hit & is_scored], "null_n": of_gold[~is_scored]}
    return {name: _table(code, shape) for name, code in rows.items()}


def _table(code: Codes, shape: Sequence[int]) -> Table:
    return np.bincount(code, minlength=math.prod(shape)).reshape(shape)


def _grown(table: Table, shape: Sequence[int]) -> Table:
    """A table with room for so many codes on each axis."""
    added = [(0, need - has) for need, has in zip(shape, table.shape, strict=True)]
    return np.pad(table, added) if any(of_axis for _, of_axis in added) else table


def _frame(
    columns: Sequence[str], tables: Mapping[str, Table], more: _ManyPairs | None = None
) -> pl.DataFrame:
    """The combinations of codes that occur, and their counts."""
    if more:
        where, n = more.cells(tables["n"])
        return pl.DataFrame(dict(zip(columns, where, strict=True)) | {"n": n})
    shape = np.max([table.shape for table in tables.values()], axis=0)
    whole = {name: _grown(table, shape) for name, table in tables.items()}
    where = np.nonzero(np.sum([*whole.values()], axis=0))
    counts = {name: table[where] for name, table in whole.items()}
    return pl.DataFrame(dict(zip(columns, where, strict=True)) | counts)


def codes_of_log(scan: Scan, values: Mapping[str, Values]) -> list[Mapping[str, Codes]]:
    """The codes of all rows: those of each row group, in the smallest integers."""
    import pyarrow as pa  # noqa: PLC0415 - only if files are read

    def read(group: RowGroup) -> Mapping[str, Codes]:
        columns = group.read()
        maps = {name: values[name].of(column) for name, column in columns.items()}
        return {
            name: maps[name].astype(np.min_scalar_type(len(values[name])))[column.codes]
            for name, column in columns.items()
        }

    of_groups = [*in_threads(read, scan)]
    pa.default_memory_pool().release_unused()  # PyArrow keeps the memory of decoding.
    return of_groups


def in_threads(work: Callable[[RowGroup], T], scan: Scan) -> Iterator[T]:
    """Do some work for each row group of a scan, in order. The first error stops it."""
    threads = pl.thread_pool_size()
    pool, waiting = ThreadPoolExecutor(threads), deque[Future[T]]()
    try:
        for group in scan.row_groups():
            waiting.append(pool.submit(work, group))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        yield from (job.result() for job in waiting)
    finally:
        pool.shutdown(cancel_futures=True)

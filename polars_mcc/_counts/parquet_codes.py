"""Count rows of local Parquet files by the codes of their columns, in place of values.

Each row group is decoded to codes (see `parquet_files.py`), and `numpy.bincount` counts their
combinations, in threads. Dictionaries differ by row group, so the counted cells are translated to
the codes of the log, and added to a table with an axis per column. Pairs whose table would be too
large are sorted as numbers; other such logs are counted the plain way.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from polars_mcc._base.threads import in_threads
from polars_mcc._counts.parquet_files import Codes, ColumnChunk, RowGroup, Scan, Unsuited, need
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
            new = [value for value in listed if value not in self._codes]
            self._codes.update(zip(new, itertools.count(len(self._codes))))
            codes = np.fromiter(map(self._codes.__getitem__, listed), np.int32, len(listed))
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
        part = _distinct(rows)
        with self._lock:
            self._parts.append(part)
            if sum(len(numbers) for numbers, _ in self._parts[1:]) > len(self._parts[0][0]):
                self._parts = [_added_up(self._parts)]

    def cells(self, table: Table) -> tuple[tuple[Codes, ...], Table]:
        """The codes of all pairs, with their rows; those of a table too."""
        need(all(size <= 2**self._bits for size in table.shape))
        where = np.nonzero(table)
        numbers = combined(where, [2**self._bits] * len(where), np.int64)
        rows = [_distinct(self._rows)] if self._rows else []
        numbers, n = _added_up([(numbers, table[where]), *self._parts, *rows])
        places = range(self._bits * (len(where) - 1), -1, -self._bits)
        return (*((numbers >> place) & (2**self._bits - 1) for place in places),), n


def _distinct(rows: Sequence[Codes]) -> tuple[Codes, Table]:
    """The numbers that occur, and how often: as `numpy.unique`, but sorted in place."""
    numbers = np.concatenate(rows)
    numbers.sort()
    first = np.concatenate([[0], np.flatnonzero(numbers[1:] != numbers[:-1]) + 1])
    return numbers[first], np.diff(first, append=len(numbers))


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


_SIDES = ("gold_n", "missed_n", "false_n", "null_n")
"""The counts of a class: how often it is gold; gold and not predicted; predicted and not gold; and
the rows not scored."""


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
    pairs: list[Table] = [np.zeros([0] * len([*keys, *sides]), np.int64) for keys, sides in jobs]
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
            if are_many:
                of_log = [maps[name][read[name].codes] for name in names]
                with lock:
                    _add_classes(classes[place], of_log, shape, none)
                continue
            # By the codes of the row group: few cells are translated faster than rows.
            rows = np.bincount(
                combined([read[name].codes for name in names], sizes), minlength=math.prod(sizes)
            )
            with lock:
                pairs[place] = table = _grown(pairs[place], shape)
                cells = _places([maps[name] for name in names], table.shape)
                table.reshape(-1)[cells.reshape(-1)] += rows
        return row_group

    for row_group in in_threads(count_group, scan.row_groups()):
        rows_of_files[row_group.place] += row_group.rows
        scan.advance(row_group.rows)
    hit_n = pl.col("gold_n") - pl.col("missed_n")
    frames = [
        (
            _frame((*keys, *sides), {"n": of_pairs}, more),
            _frame((*keys, "label"), of_classes)
            .with_columns(hit_n=hit_n, pred_n=hit_n + pl.col("false_n"))
            .drop("missed_n", "false_n"),
        )
        for (keys, sides), of_pairs, more, of_classes in zip(
            jobs, pairs, many, classes, strict=True
        )
    ]
    return frames, rows_of_files


def _add_classes(
    tables: dict[str, Table], codes: Sequence[Codes], shape: Sequence[int], none: int
) -> None:
    """Count rows by gold label, and misses by both labels. `none`: a code that is no label."""
    for name in _SIDES:
        tables[name] = _grown(tables[name], shape)
    *keys, gold, pred = codes
    of_gold, is_miss = combined([*keys, gold], tables["gold_n"].shape), gold != pred
    rows = {"gold_n": of_gold}
    if none >= 0:
        is_null = (gold == none) | (pred == none)
        is_miss &= ~is_null
        rows = {"gold_n": of_gold[~is_null], "null_n": of_gold[is_null]}
    at = np.flatnonzero(is_miss)  # Misses are few, and most rows are not touched again.
    rows["missed_n"] = of_gold[at]
    rows["false_n"] = of_gold[at] - gold[at] + pred[at]
    for name, places in rows.items():
        np.add.at(tables[name].reshape(-1), places, 1)


def _places(axes: Sequence[Codes], shape: Sequence[int]) -> Codes:
    """The places of all cells of some codes on each axis, if the cells of a table are in a row.

    As `numpy.ix_`, with which adding to a table takes three times as long.
    """
    places: Codes = axes[0].astype(np.intp)
    for codes, size in zip(axes[1:], shape[1:], strict=True):
        places = np.add.outer(places * size, codes)
    return places


def _grown(table: Table, shape: Sequence[int]) -> Table:
    """A table with room for so many codes on each axis."""
    added = [(0, max(need - has, 0)) for need, has in zip(shape, table.shape, strict=True)]
    return np.pad(table, added) if any(of_axis for _, of_axis in added) else table


def _frame(
    columns: Sequence[str], tables: Mapping[str, Table], more: _ManyPairs | None = None
) -> pl.DataFrame:
    """The combinations of codes that occur, and their counts, from tables of one shape."""
    if more:
        where, n = more.cells(tables["n"])
        return pl.DataFrame(dict(zip(columns, where, strict=True)) | {"n": n})
    where = np.nonzero(np.sum([*tables.values()], axis=0))
    counts = {name: table[where] for name, table in tables.items()}
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

    of_groups = [*in_threads(read, scan.row_groups())]
    pa.default_memory_pool().release_unused()  # PyArrow keeps the memory of decoding.
    return of_groups

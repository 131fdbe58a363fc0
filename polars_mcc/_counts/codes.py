"""Count rows of local Parquet files by the codes of their columns: values ↔ integers, one place.

Each row group is decoded to codes (see `parquet.py`), and `numpy.bincount` counts their
combinations, in threads. Dictionaries differ by row group, so the counted cells are translated to
the codes of the log, and added to a table with an axis per column. A log whose table would be too
large is counted the plain way.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
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


class Counted(NamedTuple):
    """A table of the rows of a row group."""

    columns: tuple[str, ...]
    cells: tuple[Codes | slice, ...]
    """Where its cells are in the table of the log."""
    rows: Table


class _Group(NamedTuple):
    """The columns of a row group, with the code in the log of each code of a column."""

    found: Mapping[str, Found]
    maps: Mapping[str, Codes]
    values: Mapping[str, Values]

    def cells(self, columns: Sequence[str]) -> int:
        """The size of a table with an axis per column."""
        return math.prod(len(self.maps[name]) for name in columns)

    def pairs(self, job: Job) -> Counted:
        """Count rows by the codes of the row group: few cells are translated faster than rows."""
        self._check(job.columns)
        maps = [self.maps[name] for name in job.columns]
        sizes = [len(codes) for codes in maps]
        code = combined([self.found[name].codes for name in job.columns], sizes)
        return Counted(job.columns, np.ix_(*maps), _table(code, sizes))

    def classes(self, job: Job, none: int) -> dict[str, Counted]:
        """Count rows by gold label, and by predicted label. `none`: a code that is no label."""
        names = (*job.keys, "gold")
        self._check(names)
        sizes = [len(self.values[name]) for name in names]
        *keys, gold, pred = (self.maps[name][self.found[name].codes] for name in job.columns)
        is_hit = gold == pred
        of_gold = combined([*keys, gold], sizes)
        of_pred = of_gold - gold + pred
        rows = {"gold_n": of_gold, "pred_n": of_pred, "hit_n": of_gold[is_hit]}
        if none >= 0:
            is_scored = (gold != none) & (pred != none)
            rows = {"gold_n": of_gold[is_scored], "pred_n": of_pred[is_scored]}
            rows |= {"hit_n": of_gold[is_hit & is_scored], "null_n": of_gold[~is_scored]}
        everywhere = tuple(map(slice, sizes))
        return {n: Counted(names, everywhere, _table(code, sizes)) for n, code in rows.items()}

    def _check(self, columns: Sequence[str]) -> None:
        """Raise if the table of the log is too large."""
        if math.prod(len(self.values[name]) for name in columns) > MOST:
            raise Unsuited(columns)


def _table(code: Codes, sizes: Sequence[int]) -> Table:
    return np.bincount(code, minlength=math.prod(sizes)).reshape(sizes)


def counted(
    scan: Scan,
    jobs: Sequence[Job],
    values: Mapping[str, Values],
    *,
    has_classes: bool,
    nulls_are_labels: bool,
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """For each job: the pairs that were counted, and the classes of rows with too many pairs.

    A frame has a row per combination that occurs, with a code per column.

    Args:
        scan: The files.
        jobs: The columns of each table.
        values: The values of each column. Gold and predictions share theirs.
        has_classes: Whether classes are enough: pairs of very many labels need not be counted.
        nulls_are_labels: Whether null is a label like any other.
    """
    tables: dict[tuple[int, str], Table] = {}
    lock = threading.Lock()

    def count(row_group: RowGroup) -> None:
        n_rows, found = row_group.read()
        if not n_rows:
            return
        group = _Group(found, {name: values[name].of(one) for name, one in found.items()}, values)
        none = -1 if nulls_are_labels else values["gold"].of_null
        for place, job in enumerate(jobs):
            are_many = has_classes and group.cells(job.columns) > _FEW
            counts = group.classes(job, none) if are_many else {"n": group.pairs(job)}
            with lock:
                for name, (columns, cells, rows) in counts.items():
                    shape = [len(values[one]) for one in columns]
                    table = tables[place, name] = _grown(tables.get((place, name)), shape)
                    table[cells] += rows

    for _ in in_threads(count, scan):
        pass
    for place, (keys, sides) in enumerate(jobs):
        of_job = {name: table for (of, name), table in tables.items() if of == place}
        pairs = _frame((*keys, *sides), values, {"n": of_job.pop("n", None)})
        classes = {name: of_job.get(name) for name in _SIDES}
        yield pairs, _frame((*keys, "gold"), values, classes).rename({"gold": "label"})


def _grown(table: Table | None, shape: Sequence[int]) -> Table:
    """A table with room for so many codes on each axis."""
    if table is None:
        return np.zeros(shape, np.int64)
    more = [(0, need - has) for need, has in zip(shape, table.shape, strict=True)]
    return np.pad(table, more) if any(of_axis for _, of_axis in more) else table


def _frame(
    columns: Sequence[str], values: Mapping[str, Values], tables: Mapping[str, Table | None]
) -> pl.DataFrame:
    """The combinations of codes that occur, and their counts."""
    is_counted = any(table is not None for table in tables.values())
    shape = [len(values[name]) if is_counted else 0 for name in columns]
    whole = {name: _grown(table, shape) for name, table in tables.items()}
    where = np.nonzero(np.sum([*whole.values()], axis=0))
    counts = {name: table[where] for name, table in whole.items()}
    return pl.DataFrame(dict(zip(columns, where, strict=True)) | counts)


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

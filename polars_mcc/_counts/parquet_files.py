"""Local Parquet files behind a plan: which they are, and their columns as codes.

A Parquet file holds text as a dictionary and small integers. pyarrow hands these out, Polars does
not. So the text of a row group costs no more than its integers: nothing is hashed.

The plan is a scan of files, whose columns may be renamed. Nothing of a plan is built again. A plan
with a filter, or of another kind, goes the plain way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import polars as pl

from polars_mcc._base.unstable_polars import ParquetScan, parquet_scan
from polars_mcc._counts.sliced_log import SlicedLog
from polars_mcc._frame.labels import is_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

Codes: TypeAlias = "npt.NDArray[np.integer[Any]]"

_WORTH, _WORTH_ONE = 2**24, 2**16
"""The least bytes of all files, and of one on average. The first use loads NumPy and PyArrow, which
takes as long as codes save on some 16 MB: 8 million rows of short text."""

_ROWS = 2**12  # least rows of a row group, on average
_SPAN = 2**12  # most values of a column of integers in a row group
_SHARE = 16  # a dictionary has at most one value for so many rows: else names cost more than rows
_BYTES = 1 / 4  # most bytes of a compressed dictionary per row: as `_SHARE`, with values of 4 bytes


class Unsuited(Exception):  # noqa: N818 - no error: the plain way counts the log
    """The files are not as this module reads them."""


@contextmanager
def _read(path: str) -> Iterator[None]:
    """Turn whatever goes wrong in reading a file into one error that names it."""
    try:
        yield
    except FileNotFoundError:  # It names the file.
        raise
    except (Unsuited, KeyError, NotImplementedError, MemoryError) as error:
        raise Unsuited(path) from error  # A column lacks, or PyArrow reads less than Polars.
    except Exception as error:
        first = str(error).partition("\n")[0]
        msg = f"'{path}' cannot be read as Parquet ({first}); leave it out, or write it again"
        raise pl.exceptions.ComputeError(msg) from error


class ColumnChunk(NamedTuple):
    """A column in one row group: the code of each row, and the value of each code."""

    codes: Codes
    values: Any
    """A sequence: an array of pyarrow, a range or a list."""


@dataclass(frozen=True)
class Scan:
    """Columns of local Parquet files, as a plan reads them."""

    files: ParquetScan
    dtypes: pl.Schema
    """The dtypes of the columns of the plan."""
    advance: Callable[[int], None] = lambda _: None
    """Called with the number of rows that were counted."""

    @cached_property
    def in_files(self) -> dict[str, pl.DataType]:
        """The columns that are read from the files, with their dtypes in Polars."""
        columns = {self.files.columns[name]: dtype for name, dtype in self.dtypes.items()}
        return {name: dtype for name, dtype in columns.items() if name not in self.files.folders}

    @cached_property
    def folders(self) -> pl.DataFrame:
        """A row per file: the columns of the plan that come from folders or paths."""
        columns, given = self.files.columns, self.files.folders
        named = [pl.col(column).alias(name) for name, column in columns.items() if column in given]
        return given.select(named)

    def row_groups(self) -> Iterator[RowGroup]:
        """The row groups of all files, not yet read."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - only if files are read

        texts = [name for name, dtype in self.in_files.items() if is_text(dtype)]
        options = {"read_dictionary": texts, "memory_map": True, "pre_buffer": False}
        first: Mapping[str, pa.Field] | None = None
        for place, path in enumerate(self.files.paths):
            with _read(path), pq.ParquetFile(path, **options) as file:
                schema, footer = file.schema_arrow, file.metadata
            self._check(schema)
            # As the file was written: `read_dictionary` makes all text alike.
            fields = {field.name: field for field in footer.schema.to_arrow_schema()}
            first = first or fields
            names = self.in_files if self.files.may_differ else {**first, **fields}
            need(all(_is_alike(first.get(name), fields.get(name)) for name in names))
            groups = footer.num_row_groups
            need(groups <= 1 or footer.num_rows >= _ROWS * groups)
            paths = [footer.schema.column(n).path for n in range(footer.num_columns)]
            for number in range(groups):
                group = footer.row_group(number)
                for n, name in enumerate(paths):
                    if name in self.in_files:
                        need((_has_few_texts if name in texts else _are_near)(group.column(n)))
                opened = partial(pq.ParquetFile, path, metadata=footer, **options)
                yield RowGroup(self, opened, place, number, group.num_rows)

    def is_suited(self) -> bool:
        """Whether the footer of the first file allows counting by codes."""
        try:
            next(self.row_groups(), None)
        except Exception:  # noqa: BLE001 - what is not recognised goes the plain way
            return False
        return True

    def _check(self, schema: pa.Schema) -> None:
        """Raise unless the columns of a file have the dtypes that Polars reads them as."""
        for name, dtype in self.in_files.items():
            places = schema.get_all_field_indices(name)
            need(len(places) == 1)
            kind = str(schema.field(places[0]).type)
            holds_text = kind.startswith("dictionary<values=") and "string" in kind
            need(holds_text if is_text(dtype) else kind == _ARROW.get(dtype))


def _is_alike(field: pa.Field | None, other: pa.Field | None) -> bool:
    """Whether two files have the same column. The metadata have the categories of an Enum."""
    if field is None or other is None:
        return False
    return bool(field.equals(other, check_metadata=True))


def _has_few_texts(column: pa.ColumnChunkMetaData) -> bool:
    """Whether a column has a small dictionary, as its footer says. A large one costs too much."""
    start = column.dictionary_page_offset
    size = 0 if start is None else column.data_page_offset - start
    return bool(size <= _BYTES * max(column.num_values, 2**12))


def _are_near(column: pa.ColumnChunkMetaData) -> bool:
    """Whether integers are near each other, as far as the footer has their least and largest."""
    stats = column.statistics
    ends = (stats.min, stats.max) if stats is not None and stats.has_min_max else ()
    return not ends or not isinstance(ends[0], int) or bool(ends[1] - ends[0] < _SPAN)


class RowGroup(NamedTuple):
    """One row group."""

    scan: Scan
    opened: Callable[[], Any]
    """Opens the file again: a reader cannot be shared by threads."""
    place: int
    """The place of the file."""
    group: int
    rows: int

    def read(self) -> Mapping[str, ColumnChunk]:
        """The columns of the plan."""
        import numpy as np  # noqa: PLC0415 - only if files are read

        scan = self.scan
        with _read(scan.files.paths[self.place]), self.opened() as file:
            table = file.read_row_group(self.group, columns=[*scan.in_files], use_threads=False)
            in_file = {column: _decoded(table.column(column)) for column in scan.in_files}
        columns = {name: in_file[own] for name, own in scan.files.columns.items() if own in in_file}
        for folder in scan.folders.slice(self.place, 1):
            as_text = is_text(folder.dtype)
            value = folder.cast(pl.String) if as_text else folder.to_physical().cast(pl.Int128)
            columns[folder.name] = ColumnChunk(np.zeros(self.rows, np.int8), value.to_list())
        return columns


_ARROW: Mapping[pl.DataType, str] = {
    **{getattr(pl, name)(): name.lower() for name in ("Int8", "Int16", "Int32", "Int64")},
    **{getattr(pl, name)(): name.lower() for name in ("UInt8", "UInt16", "UInt32", "UInt64")},
    pl.Boolean(): "bool",
    pl.Date(): "date32[day]",
}


def _decoded(column: pa.ChunkedArray) -> ColumnChunk:
    """The codes of a column: those of its dictionary, or the distance from the least integer."""
    import numpy as np  # noqa: PLC0415 - only if files are read

    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    is_coded = str(array.type).startswith("dictionary")
    numbers = _numbers(array.indices if is_coded else array)
    known = _bits(array, 0) if array.null_count else None
    not_null = numbers if known is None else numbers[known]
    least, largest = (int(not_null.min()), int(not_null.max())) if len(not_null) else (0, -1)
    values: Any
    if is_coded:
        codes, values = numbers, array.dictionary
        need(len(values) * _SHARE <= max(len(array), 2**12))
        values.validate(full=True)
        if least < 0 or largest >= len(values):
            raise IndexError(f"the codes {least} to {largest} of {len(values)} texts")
    else:
        need(largest - least < _SPAN)
        # Rows and their least value wrap to 16 bits alike, and distances below 2^12 stay.
        codes = numbers.astype(np.int16) - np.int16((least + 2**15) % 2**16 - 2**15)
        values = range(least, largest + 1)
    if known is None:
        return ColumnChunk(codes, values)
    listed = values if isinstance(values, range) else values.to_pylist()
    return ColumnChunk(np.where(known, codes, np.int32(len(listed))), [*listed, None])


def _numbers(array: pa.Array) -> Codes:
    """The integers of an array of pyarrow, whatever is where it is null.

    Not by its `to_numpy`, which imports pandas, nor by Polars, which imports `pyarrow.compute`.
    """
    import numpy as np  # noqa: PLC0415 - only if files are read

    kind = str(array.type)
    if kind == "bool":
        return _bits(array, 1).view(np.int8)
    integers = np.frombuffer(array.buffers()[1], kind.replace("date32[day]", "int32"))
    return integers[array.offset :][: len(array)]


def _bits(array: pa.Array, buffer: int) -> npt.NDArray[np.bool_]:
    """Which rows are not null (buffer 0), or true (buffer 1)."""
    import numpy as np  # noqa: PLC0415 - only if files are read

    bits = np.frombuffer(array.buffers()[buffer], np.uint8)
    end = array.offset + len(array)
    return np.unpackbits(bits, count=end, bitorder="little")[array.offset :].view(np.bool_)


def scan_of(log: SlicedLog, names: Sequence[str]) -> Scan | None:
    """The files behind these columns of a log.

    None if the log reads anything else; if it has weights, or a plan for a cluster; or if the files
    are small.
    """
    if log.is_portable or log.weight_name is not None:
        return None
    frame = log.frame if log.with_text is None else log.with_text
    try:
        plan = parquet_scan(frame, names)
        if plan is None:
            return None
        schema, in_folders = frame.collect_schema(), plan.folders.schema
        dtypes = pl.Schema({name: schema[name] for name in names})
        size = sum(Path(path).stat().st_size for path in plan.paths)
    except Exception:  # noqa: BLE001 - what is not recognised goes the plain way
        return None
    have_codes = all(
        (is_text(dtype) or dtype in _ARROW) and in_folders.get(plan.columns[name], dtype) == dtype
        for name, dtype in dtypes.items()
    )
    if not have_codes or size < max(_WORTH, _WORTH_ONE * len(plan.paths)):
        return None
    return Scan(plan, dtypes)


def need(holds: object) -> None:
    """Raise unless something holds."""
    if not holds:
        raise Unsuited

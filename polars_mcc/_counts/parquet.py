"""Local Parquet files behind a plan: which they are, and their columns as codes.

A Parquet file holds text as a dictionary and small integers. pyarrow hands these out, Polars does
not. So the text of a row group costs no more than its integers: nothing is hashed.

A plan is recognised by its optimised form, which Polars shows to its own GPU engine. A plan of an
unknown kind, or of an unknown version of that interface, goes the plain way.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import polars as pl

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

Codes: TypeAlias = "npt.NDArray[np.integer[Any]]"

_VERSIONS = {15, 16}  # of the interface to optimised plans: Polars 2.0 and 2.1
_ROWS = 2**12  # least rows of a row group, on average
_SPAN = 2**12  # most values of a column of integers in a row group
_SHARE = 16  # a dictionary has at most one value for so many rows: else names cost more than rows
TEXTS = (pl.String, pl.Categorical, pl.Enum)
_SOURCE = re.compile(r"^\s*(\w+ SCAN .*)$", re.MULTILINE)
_PLAIN_OPTIONS: Mapping[str, object] = {
    "row_index": None,
    "n_rows": None,
    "deletion_files": None,
    "column_mapping": None,
    "default_values": None,
    "missing_columns_policy": "raise",
    "extra_columns_policy": "raise",
}


class Unsuited(Exception):  # noqa: N818 - no error: the plain way counts the log
    """The files are not as this module reads them."""


class Found(NamedTuple):
    """A column of a row group: the code of each row, and the value of each code."""

    codes: Codes
    values: Any
    """A sequence: an array of pyarrow, a range or a list."""


@dataclass(frozen=True)
class Scan:
    """Columns of local Parquet files, as a plan reads them."""

    paths: Sequence[str]
    columns: Mapping[str, str]
    """The column of the files for each column of the plan."""
    dtypes: pl.Schema
    """The dtypes of the columns of the plan."""
    given: Sequence[Mapping[str, object]]
    """For each file: the values of its hive partitions, and its path if it is a column."""
    where: pl.Expr | None
    """The condition of the rows that are read."""

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(Path(path).stat().st_size for path in self.paths)

    @property
    def in_files(self) -> dict[str, pl.DataType]:
        """The columns that are read from the files, with their dtypes in Polars."""
        columns = {self.columns[name]: dtype for name, dtype in self.dtypes.items()}
        return {name: dtype for name, dtype in columns.items() if name not in self.given[0]}

    def row_groups(self) -> Iterator[RowGroup]:
        """The row groups of all files, not yet read."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - only if files are read

        texts = [name for name, dtype in self.in_files.items() if dtype in TEXTS]
        options = {"read_dictionary": texts, "memory_map": True, "pre_buffer": False}
        first: pa.Schema | None = None
        for path, given in zip(self.paths, self.given, strict=True):
            try:
                with pq.ParquetFile(path, **options) as file:
                    schema, known = file.schema_arrow, file.metadata
            except KeyError as error:  # The file has no such column.
                raise Unsuited(path) from error
            first, group_start = first or schema, 0
            groups = known.num_row_groups
            _need(groups <= 1 or known.num_rows >= _ROWS * groups)
            self._check(schema, first)
            for group in range(groups):
                rows = known.row_group(group).num_rows
                opened = partial(pq.ParquetFile, path, metadata=known, **options)
                yield RowGroup(self, opened, path, given, group, group_start, rows)
                group_start += rows

    def _check(self, schema: pa.Schema, first: pa.Schema) -> None:
        """Raise unless the columns of a file have the dtypes that Polars reads them as."""
        for name, dtype in self.in_files.items():
            places = schema.get_all_field_indices(name)
            _need(len(places) == 1)
            field = schema.field(places[0])
            kind = str(field.type)
            is_text = kind.startswith("dictionary<values=") and "string" in kind
            is_known = is_text if dtype in TEXTS else kind == _ARROW.get(dtype)
            # The metadata have the categories of an Enum.
            _need(is_known and field.metadata == first.field(name).metadata)


class RowGroup(NamedTuple):
    """One row group."""

    scan: Scan
    opened: Callable[[], Any]
    """Opens the file: a reader is not made for several threads."""
    path: str
    given: Mapping[str, object]
    group: int
    start: int
    rows: int

    def read(self) -> tuple[int, Mapping[str, Found]]:
        """The number of rows, and the columns of the plan."""
        import numpy as np  # noqa: PLC0415 - only if files are read

        columns = [*self.scan.in_files]
        with self.opened() as file:
            table = file.read_row_group(self.group, columns=columns, use_threads=False)
        found = {name: _found(table.column(name)) for name in columns}
        rows = self.rows
        if self.scan.where is not None:
            frame = pl.scan_parquet(self.path, hive_partitioning=False).slice(self.start, self.rows)
            given = [pl.lit(value).alias(name) for name, value in self.given.items()]
            mask = frame.with_columns(given).select(self.scan.where).collect().to_series()
            kept = mask.arg_true().to_numpy()
            rows = len(kept)
            found = {name: Found(one.codes[kept], one.values) for name, one in found.items()}
        for name in {*self.scan.columns.values()} & {*self.given}:
            values = pl.Series([self.given[name]]).to_physical().to_list()
            found[name] = Found(np.zeros(rows, np.int8), values)
        return rows, {name: found[column] for name, column in self.scan.columns.items()}


_ARROW: Mapping[pl.DataType, str] = {
    **{getattr(pl, name)(): name.lower() for name in ("Int8", "Int16", "Int32", "Int64")},
    **{getattr(pl, name)(): name.lower() for name in ("UInt8", "UInt16", "UInt32", "UInt64")},
    pl.Boolean(): "bool",
    pl.Date(): "date32[day]",
}


def _found(column: pa.ChunkedArray) -> Found:
    """The codes of a column: those of its dictionary, or the distance from the least integer."""
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    kind = str(array.type)
    if kind.startswith("dictionary"):
        _need(len(array.dictionary) * _SHARE <= max(len(array), 2**12))
        codes, values = pl.Series(array.indices), array.dictionary
    else:
        numbers = pl.Series(array).to_physical()
        # The distance of two integers may need one bit more than they have.
        numbers = numbers.cast(pl.UInt64 if kind == "uint64" else pl.Int64)
        least, most = numbers.min(), numbers.max()
        values = range(0)
        if isinstance(least, int) and isinstance(most, int):  # Else all values are null.
            _need(most - least < _SPAN)
            numbers, values = numbers - least, range(least, most + 1)
        codes = numbers.cast(pl.Int16)
    # Not `to_numpy` and `fill_null` of pyarrow: they import pandas, and a module of functions.
    if not codes.null_count():
        return Found(codes.to_numpy(), values)
    listed = values if isinstance(values, range) else values.to_pylist()
    return Found(codes.fill_null(len(listed)).to_numpy(), [*listed, None])


def scan_of(frame: pl.LazyFrame, names: Sequence[str]) -> Scan | None:
    """The files and columns behind these columns of a plan; None if it reads anything else."""
    # `visit` holds the lock of Python. Tables of Delta and Iceberg, and credentials of URLs, may
    # need the lock: it would hang.
    sources = _SOURCE.findall(frame.explain(optimized=False))
    if len(sources) != 1 or not sources[0].startswith("Parquet") or "://" in sources[0]:
        return None
    try:
        plan = frame._ldf.visit()  # noqa: SLF001 - there is no public way; see the docstring above
        return _scan_of(plan, frame.collect_schema(), names)
    except Exception:  # noqa: BLE001 - what is not recognised goes the plain way
        return None


def _scan_of(plan: Any, dtypes: pl.Schema, names: Sequence[str]) -> Scan:  # noqa: ANN401
    _need(plan.version()[0] in _VERSIONS)
    columns = {name: name for name in names}
    while type(node := plan.view_current_node()).__name__ != "Scan":
        _need(type(node).__name__ in {"Select", "HStack", "SimpleProjection"})
        made: Any = getattr(node, "expr", None) or getattr(node, "exprs", ())
        nodes = {one.output_name: plan.view_expression(one.node) for one in made}
        for name, column in columns.items():
            if (found := nodes.get(column)) is not None:
                _need(type(found).__name__ == "Column")
                columns[name] = found.name
        plan.set_node(node.input)
    kind, options, *_ = node.scan_type
    _need(kind == "parquet" and json.loads(options)["schema"] is None)
    for name, value in _PLAIN_OPTIONS.items():
        _need(getattr(node.file_options, name) == value)
    _need(node.paths and not any("://" in path for path in node.paths))
    given: list[dict[str, object]] = [{} for _ in node.paths]
    if node.hive_parts is not None:
        given = pl.DataFrame._from_pydf(node.hive_parts).to_dicts()  # noqa: SLF001 - as above
        _need(len(given) == len(node.paths))
    if (of_paths := node.file_options.include_file_paths) in columns.values():
        given = [{**one, of_paths: path} for one, path in zip(given, node.paths, strict=True)]
    for name, column in columns.items():
        _need(column in given[0] or isinstance(dtypes[name], TEXTS) or dtypes[name] in _ARROW)
    where = None if node.predicate is None else _rebuilt(plan, node.predicate.node)
    of_columns = pl.Schema({name: dtypes[name] for name in names})
    return Scan(tuple(node.paths), columns, of_columns, given, where)


def _need(holds: object) -> None:
    if not holds:
        raise Unsuited


_OPERATORS: Mapping[str, Callable[..., pl.Expr]] = {
    "Operator.Eq": operator.eq,
    "Operator.NotEq": operator.ne,
    "Operator.Lt": operator.lt,
    "Operator.LtEq": operator.le,
    "Operator.Gt": operator.gt,
    "Operator.GtEq": operator.ge,
    "Operator.And": operator.and_,
    "Operator.Or": operator.or_,
    "BooleanFunction.Not": operator.invert,
    "BooleanFunction.IsNull": pl.Expr.is_null,
    "BooleanFunction.IsNotNull": pl.Expr.is_not_null,
    "BooleanFunction.IsBetween": pl.Expr.is_between,
    "BooleanFunction.IsIn": lambda value, some, nulls_equal: value.is_in(
        some, nulls_equal=nulls_equal
    ),
}


def _rebuilt(plan: Any, place: int) -> pl.Expr:  # noqa: ANN401
    """A condition as an expression: comparisons of columns with constants, and, or, not."""
    node = plan.view_expression(place)
    match type(node).__name__:
        case "Column":
            return pl.col(node.name)
        case "Literal":
            # Others come as objects of Python, which may have fewer digits: nanoseconds, decimals.
            dtype = node.dtype.inner if isinstance(node.dtype, pl.List) else node.dtype
            _need(dtype in _ARROW or isinstance(dtype, (pl.String, pl.Enum, pl.Float64)))
            return pl.lit(pl.Series([node.value], dtype=node.dtype)).first()
        case "BinaryExpr":
            sides = (_rebuilt(plan, side) for side in (node.left, node.right))
            return _OPERATORS[str(node.op)](*sides)
        case "Function":
            function, *options = node.function_data
            columns = (_rebuilt(plan, column) for column in node.input)
            return _OPERATORS[str(function)](*columns, *options)
    raise Unsuited(type(node).__name__)

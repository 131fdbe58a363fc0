"""The one door to what Polars calls unstable or private: a function each.

`tests/base/test_unstable_polars.py` has a test of each, which fails where a new Polars changes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import polars as pl
from polars.io.plugins import register_io_source

from polars_mcc._base.threads import in_own_thread

Batches: TypeAlias = Callable[
    [list[str] | None, pl.Expr | None, int | None, int | None], Iterator[pl.DataFrame]
]
"""From columns, a filter, a number of rows, and the rows of a batch: batches of rows."""

_VERSION = 16  # of the interface to optimised plans
_SCANS = re.compile(r"^\s*(\w+ SCAN .*)$", re.MULTILINE)
_NOT_PLAIN = {"row_index", "n_rows", "deletion_files", "column_mapping"}
_NOT_PLAIN |= {"default_values", "table_statistics"}
"""Options that a scan of plain files does not have."""


def deferred(
    rows: Callable[[], pl.DataFrame], schema: Mapping[str, pl.DataType], *, once: bool = False
) -> pl.LazyFrame:
    """A frame that is computed on `collect`. `once`: a plan that uses it twice computes it once."""
    frame = pl.defer(partial(in_own_thread, rows), schema=schema)
    return frame.cache() if once else frame


def source_of(batches: Batches, schema: pl.Schema) -> pl.LazyFrame:
    """A frame that is read in batches, with the columns and the filter that a query needs."""
    return register_io_source(batches, schema=schema, is_pure=True)


def batches_of(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Collect rows in batches, in the order of the rows."""
    return rows.collect_batches()


def of_dtypes(
    inputs: Sequence[pl.Expr], made: Callable[[list[tuple[pl.Expr, pl.DataType]]], pl.Expr]
) -> pl.Expr:
    """An expression that is made when a plan knows the dtypes of its inputs."""
    return pl.pipe_with_dtype(inputs, made)


def at_largest(value: pl.Expr, by: pl.Expr) -> pl.Expr:
    """A value at the largest `by` of a group: an aggregation that streams."""
    return value.max_by(by)


def of_places(places: pl.Series, dtype: pl.DataType) -> pl.Series:
    """The values of a Categorical or an Enum, from their places among its categories."""
    return places.cat.to(dtype)


def by_sql(rows: pl.LazyFrame, query: str) -> pl.LazyFrame:
    """The rows of a query in SQL, to which the frame is `self`."""
    return rows.sql(query)


def parquet_files(
    files: str | list[str],
    *,
    hive_schema: pl.Schema | None,
    **how: Any,  # noqa: ANN401 - as Polars has them
) -> pl.LazyFrame:
    """Scan Parquet files whose folders have known dtypes, as `pl.scan_parquet` does.

    It may also be given the `schema` of the files.
    """
    return pl.scan_parquet(files, hive_schema=hive_schema, **how)


def without_columns(rows: int) -> pl.DataFrame:
    """Rows without a column."""
    return pl.DataFrame(height=rows)


def is_scan_alone(frame: pl.LazyFrame) -> bool:
    """Whether a plan reads files of Parquet or IPC, or memory, and does nothing else."""
    plan = frame.explain(optimized=False)
    return plan.startswith(("Parquet SCAN", "Ipc SCAN", "DF ["))


class ParquetScan(NamedTuple):
    """A scan of local Parquet files, whose columns may be renamed."""

    paths: Sequence[str]
    columns: Mapping[str, str]
    """The column of the files for each column of the plan."""
    folders: pl.DataFrame
    """A row per file: the values of its folders, such as `day=2026-01-31`, and its path."""
    may_differ: bool
    """Whether files may have columns that others do not have."""


def parquet_scan(frame: pl.LazyFrame, names: Sequence[str]) -> ParquetScan | None:
    """The files and columns behind these columns of a plan; None if it reads anything else.

    It looks at the optimised plan, which Polars shows to its own GPU engine.
    """
    # `visit` holds the lock of Python. Tables of Delta and Iceberg, and credentials of URLs, may
    # need the lock: it would hang.
    scans = _SCANS.findall(frame.explain(optimized=False))
    if len(scans) != 1 or not scans[0].startswith("Parquet") or "://" in scans[0]:
        return None
    plan = frame._ldf.visit()  # noqa: SLF001 - there is no public way
    if plan.version()[0] != _VERSION:
        return None
    columns = {name: name for name in names}
    while type(node := plan.view_current_node()).__name__ != "Scan":
        kind = type(node).__name__
        if kind not in {"Select", "HStack", "SimpleProjection"}:
            return None
        exprs: Any = getattr(node, "expr", None) or getattr(node, "exprs", ())
        made: dict[str, Any] = {expr.output_name: plan.view_expression(expr.node) for expr in exprs}
        kinds = {name: type(expr).__name__ for name, expr in made.items()}
        # Another expression of `select` may change the number of rows.
        if kind == "Select" and not {*kinds.values()} <= {"Column", "Literal"}:
            return None
        for name, column in columns.items():
            if column in made:
                if kinds[column] != "Column":
                    return None
                columns[name] = made[column].name
        plan.set_node(node.input)
    return _of_scan(node, columns)


def _of_scan(scan: Any, columns: Mapping[str, str]) -> ParquetScan | None:  # noqa: ANN401
    kind, options, *_ = scan.scan_type
    is_plain = (
        kind == "parquet"
        and json.loads(options)["schema"] is None
        and scan.predicate is None
        and all(getattr(scan.file_options, name) is None for name in _NOT_PLAIN)
        and scan.file_options.missing_columns_policy == "raise"
        and scan.paths
        and not any("://" in path for path in scan.paths)
    )
    if not is_plain:
        return None
    folders = without_columns(len(scan.paths))
    if scan.hive_parts is not None:
        folders = pl.DataFrame._from_pydf(scan.hive_parts)  # noqa: SLF001 - there is no public way
    if (of_paths := scan.file_options.include_file_paths) is not None:
        folders = folders.with_columns(pl.Series(of_paths, scan.paths))
    if folders.height != len(scan.paths):
        return None
    may_differ = scan.file_options.extra_columns_policy == "ignore"
    return ParquetScan(tuple(scan.paths), columns, folders, may_differ)

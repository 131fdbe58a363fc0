"""Delta and Iceberg tables: scan the newest version, as a whole or file by file.

A file of a table is written once. So the file names tell which files were added to the table, and
which were removed. A table is read as a whole if its files alone are not enough: rows were deleted
from a file, or columns were renamed.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from polars_mcc._log.extras import missing
from polars_mcc._store.places import Options, as_dict, is_url, listing

_ALONE = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
"""Features of a Delta table that allow reading its files one by one."""


@dataclass(frozen=True)
class Parts:
    """The current files of a table, and a function that scans them."""

    files: Sequence[str]
    scan: Callable[[Sequence[str], str], pl.LazyFrame]
    """Scan some files; the second argument names a column for the file of each row."""


def is_delta(folder: str, options: Options | None = None) -> bool:
    """Whether a folder is a Delta table."""
    return any(True for _ in _names(folder, "_delta_log", options))


def is_iceberg(folder: str, options: Options | None = None) -> bool:
    """Whether a folder is an Iceberg table."""
    return any(name.endswith(".metadata.json") for name in _names(folder, "metadata", options))


def _names(table: str, folder: str, options: Options | None) -> Iterator[str]:
    if is_url(table):
        yield from (one.path for one in listing(f"{table.rstrip('/')}/{folder}/", options))
    else:
        yield from map(str, Path(table, folder).glob("*"))


def scan_delta(table: str, storage_options: Options | None = None) -> pl.LazyFrame:
    """Scan the newest version of a Delta table."""
    _check_installed("deltalake", "Delta")
    return pl.scan_delta(table, storage_options=as_dict(storage_options))


def version_of_delta(table: str, options: Options | None) -> tuple[int, str]:
    """The newest version number, and the id of the Delta table."""
    now = _delta(table, options)
    return now.version(), str(now.metadata().id)


def parts_of_delta(table: str, options: Options | None) -> Parts | None:
    """The files of the newest Delta version; None if they cannot be read one by one."""
    now = _delta(table, options)
    features = {*(now.protocol().reader_features or ())}
    mapping = now.metadata().configuration.get("delta.columnMapping.mode", "none")
    if not features <= _ALONE or mapping != "none":
        return None
    schema = pl.scan_delta(now).collect_schema()
    folders = now.metadata().partition_columns
    return Parts(now.file_uris(), _reader(schema, folders, options))


def _delta(table: str, options: Options | None) -> Any:  # noqa: ANN401 - deltalake is optional
    _check_installed("deltalake", "Delta")
    from deltalake import DeltaTable  # noqa: PLC0415 - it is optional

    return DeltaTable(table, storage_options=as_dict(options))


def scan_iceberg(table: str, storage_options: Options | None = None) -> pl.LazyFrame:
    """Scan the newest version of an Iceberg table."""
    newest = newest_metadata(table, storage_options)
    _check_installed("pyiceberg", "Iceberg")
    return pl.scan_iceberg(newest, storage_options=as_dict(storage_options))


def version_of_iceberg(table: str, options: Options | None) -> tuple[int, str]:
    """The number of the newest Iceberg metadata file, and its path."""
    newest = newest_metadata(table, options)
    return _number(newest), newest


def newest_metadata(table: str, options: Options | None) -> str:
    """The path of the Iceberg metadata file with the highest number."""
    files = _names(table, "metadata", options)
    newest = max((file for file in files if file.endswith(".metadata.json")), key=_number)
    return newest if is_url(newest) else str(Path(newest).resolve())


def _number(file: str) -> int:
    return int("0" + re.sub(r"\D.*", "", file.rpartition("/")[2].removeprefix("v")))


def parts_of_iceberg(table: str, options: Options | None) -> Parts | None:
    """The files of the newest Iceberg snapshot; None if they cannot be read one by one."""
    newest = newest_metadata(table, options)
    _check_installed("pyiceberg", "Iceberg")
    of_tables = importlib.import_module("pyiceberg.table")
    identity = importlib.import_module("pyiceberg.transforms").IdentityTransform
    now = of_tables.StaticTable.from_metadata(newest, properties=as_dict(options) or {})
    tasks = [*now.scan().plan_files()]
    fields = {
        (one.field_id, one.name, str(one.field_type))
        for schema in now.schemas().values()
        for one in schema.fields
    }
    was_changed = len(fields) > len({number for number, _, _ in fields})
    was_changed |= len(fields) > len({name for _, name, _ in fields})
    may_lack_columns = any(
        isinstance(one.transform, identity) for spec in now.specs().values() for one in spec.fields
    )
    if was_changed or may_lack_columns or any(task.delete_files for task in tasks):
        return None
    files = [task.file.file_path.removeprefix("file://") for task in tasks]
    schema = scan_iceberg(table, options).collect_schema()
    return Parts(files, _reader(schema, [], options))


def _reader(
    schema: pl.Schema, folders: Sequence[str], options: Options | None
) -> Callable[[Sequence[str], str], pl.LazyFrame]:
    """A function that scans files with the schema of their table; `folders` are its partitions."""

    def scan(files: Sequence[str], paths: str) -> pl.LazyFrame:
        return pl.scan_parquet(
            [*files],
            schema=pl.Schema({name: schema[name] for name in schema if name not in folders}),
            hive_partitioning=bool(folders),
            hive_schema=pl.Schema({name: schema[name] for name in folders}) if folders else None,
            missing_columns="insert",  # The column may be newer than the file.
            extra_columns="ignore",
            glob=False,
            use_statistics=False,
            include_file_paths=paths,
            storage_options=as_dict(options),
        )

    return scan


def _check_installed(package: str, kind: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise missing(subject=f"reading {kind} tables", package=package, extra=kind.lower())

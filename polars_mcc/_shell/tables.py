"""Tables of Delta and Iceberg: what they have now, as a whole and file by file.

A file of a table is written once. So a table tells by the names of its files what it has added, and
what it has removed. If a file alone is not what the table has of it (rows of it are deleted, or
columns were renamed), the table is read as a whole.
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
"""The features of a Delta table with which a file of it can be read alone."""


@dataclass(frozen=True)
class Parts:
    """The files that a table has now, and how some of them are read."""

    files: Sequence[str]
    scan: Callable[[Sequence[str], str], pl.LazyFrame]
    """Scan some files, with a column of this name that says which a row is of."""


def is_delta(folder: str, options: Options | None = None) -> bool:
    """Whether a folder is a table of Delta."""
    return any(True for _ in _names(folder, "_delta_log", options))


def is_iceberg(folder: str, options: Options | None = None) -> bool:
    """Whether a folder is a table of Iceberg."""
    return any(name.endswith(".metadata.json") for name in _names(folder, "metadata", options))


def _names(table: str, folder: str, options: Options | None) -> Iterator[str]:
    if is_url(table):
        yield from (one.path for one in listing(f"{table.rstrip('/')}/{folder}/", options))
    else:
        yield from map(str, Path(table, folder).glob("*"))


def scan_delta(table: str, storage_options: Options | None = None) -> pl.LazyFrame:
    """A table of Delta as it is now."""
    _check_installed("deltalake", "Delta")
    return pl.scan_delta(table, storage_options=as_dict(storage_options))


def version_of_delta(table: str, options: Options | None) -> tuple[int, str]:
    """The number of its newest version, and the id of the table."""
    now = _delta(table, options)
    return now.version(), str(now.metadata().id)


def parts_of_delta(table: str, options: Options | None) -> Parts | None:
    """The files of its newest version, if they can be read one by one."""
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
    """A table of Iceberg as its newest metadata tell it."""
    newest = newest_metadata(table, storage_options)
    _check_installed("pyiceberg", "Iceberg")
    return pl.scan_iceberg(newest, storage_options=as_dict(storage_options))


def version_of_iceberg(table: str, options: Options | None) -> tuple[int, str]:
    """The number of its newest metadata, and their name."""
    newest = newest_metadata(table, options)
    return _number(newest), newest


def newest_metadata(table: str, options: Options | None) -> str:
    """The file with the highest number."""
    files = _names(table, "metadata", options)
    newest = max((file for file in files if file.endswith(".metadata.json")), key=_number)
    return newest if is_url(newest) else str(Path(newest).resolve())


def _number(file: str) -> int:
    return int("0" + re.sub(r"\D.*", "", file.rpartition("/")[2].removeprefix("v")))


def parts_of_iceberg(table: str, options: Options | None) -> Parts | None:
    """The files of its newest snapshot, if they can be read one by one."""
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
    """How files are scanned, given the columns of their table, and those that are in folders."""

    def scan(files: Sequence[str], paths: str) -> pl.LazyFrame:
        return pl.scan_parquet(
            [*files],
            schema=pl.Schema({name: schema[name] for name in schema if name not in folders}),
            hive_partitioning=bool(folders),
            hive_schema=pl.Schema({name: schema[name] for name in folders}) if folders else None,
            missing_columns="insert",  # Of files that are older than the column.
            extra_columns="ignore",
            glob=False,
            use_statistics=False,
            include_file_paths=paths,
            storage_options=as_dict(options),
        )

    return scan


def _check_installed(package: str, kind: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise missing(subject=f"a table of {kind}", package=package, extra=kind.lower())

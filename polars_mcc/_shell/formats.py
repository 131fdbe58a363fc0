"""The formats of logs: files, tables and stores of counts.

To add a format, add an entry to `KINDS`, before CSV, whose files may begin with any bytes. The help
of the logs, in `options`, lists the formats.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from polars_mcc._shell import tables
from polars_mcc._shell.object_storage import before_pattern, is_in_bucket
from polars_mcc._shell.tables import Parts
from polars_mcc._store.paths import Options, is_url
from polars_mcc._store.table import is_store, opened


@dataclass(frozen=True)
class Kind:
    """A format of logs."""

    name: str
    scan: Callable[..., pl.LazyFrame]
    """Called with a path and `storage_options`, or with the bytes of a file."""
    suffixes: tuple[str, ...] = ()  # file suffixes; none for a folder
    begins: bytes = b""
    """The first bytes of a file: they tell the format of a log from a pipe."""
    is_folder: Callable[[str, Options | None], bool] | None = None
    """Whether a folder is of this format. Then the files in it are not read as they are."""
    version: Callable[[str, Options | None], str] | None = None
    """A text that changes when a table changes, also if the table is made again."""
    parts: Callable[[str, Options | None], Parts | None] | None = None
    """The current files of a table; None if they cannot be read one by one."""


def _scan_store(folder: str, storage_options: Options | None = None) -> pl.LazyFrame:
    return opened(folder, storage_options).scan()


def _is_store(folder: str, options: Options | None) -> bool:
    return tables.is_delta(folder, options) and is_store(folder, options)


STORE = "store of counts"  # the name of its format
PARQUET = Kind("Parquet", pl.scan_parquet, (".parquet",), b"PAR1")
KINDS = (
    PARQUET,
    Kind("IPC", pl.scan_ipc, (".arrow", ".ipc", ".feather"), b"ARROW1"),
    Kind("NDJSON", pl.scan_ndjson, (".ndjson", ".jsonl"), b"{"),
    Kind("CSV", pl.scan_csv, (".csv",)),
    Kind(STORE, _scan_store, is_folder=_is_store, version=tables.version_of_delta),
    Kind(
        "Delta",
        tables.scan_delta,
        is_folder=tables.is_delta,
        version=tables.version_of_delta,
        parts=tables.parts_of_delta,
    ),
    Kind(
        "Iceberg",
        tables.scan_iceberg,
        is_folder=tables.is_iceberg,
        version=tables.newest_metadata,
    ),
)
_OF_SUFFIX = {suffix: kind for kind in KINDS for suffix in kind.suffixes}


def by_suffix(file: str) -> Kind | None:
    """The format that the suffix of a file names."""
    _, suffix = os.path.splitext(file)  # noqa: PTH122 - thousands of inputs
    return _OF_SUFFIX.get(suffix)


def kind_of(path: str, options: Options | None, *, expand: bool) -> Kind | None:
    """The format of a file, a table or a store; None for a plain folder.

    Without `expand`, the URL of a plain folder is read like a file: Polars expands it.
    """
    is_folder = is_in_bucket(path) if is_url(path) else Path(path).is_dir()
    is_named = is_url(path) and (before_pattern(path) or by_suffix(path))
    if is_folder and not is_named:
        with suppress(ModuleNotFoundError):  # Without obstore, Polars reads the URL.
            for kind in KINDS:
                if kind.is_folder is not None and kind.is_folder(path, options):
                    return kind
    is_listed = is_folder and (expand or not is_url(path))
    return None if is_listed else by_suffix(path) or PARQUET

"""The formats of logs: files, tables and stores of counts.

To add a format, add an entry to `FORMATS`, before CSV, whose files may begin with any bytes. The
help of the logs lists the formats: `LogPaths` in `_cli/shared_options`.

A file of a Delta table is written once. So the file names tell which files were added to the table,
and which were removed. A Delta table is read as a whole if its files alone are not enough: rows
were deleted from a file, or columns were renamed.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

import polars as pl

from polars_mcc._base.errors_and_warnings import check_installed
from polars_mcc._base.unstable_polars import parquet_files
from polars_mcc._inputs.buckets_and_credentials import folder_of_glob, is_in_bucket, listing
from polars_mcc._inputs.paths_and_settings import Options, as_dict, is_url
from polars_mcc._store.delta_table import Input, is_store, open_store

_FEATURES_OF_PLAIN_FILES = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
"""Features of a Delta table that allow reading its files one by one."""

ScanFiles: TypeAlias = Callable[[Sequence[str], str], pl.LazyFrame]
"""Scans some files of a table; the second argument names a column for the file of each row."""
TableFiles: TypeAlias = tuple[Sequence[Input], ScanFiles]


@dataclass(frozen=True)
class LogFormat:
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
    table_files: Callable[[str, Options | None], TableFiles | None] | None = None
    """The current files of a table; None if they cannot be read one by one."""


def _scan_store(folder: str, storage_options: Options | None = None) -> pl.LazyFrame:
    return open_store(folder, storage_options).scan()


def _is_store(folder: str, options: Options | None) -> bool:
    return is_delta(folder, options) and is_store(folder, options)


def is_delta(folder: str, options: Options | None = None) -> bool:
    """Whether a folder is a Delta table."""
    return any(True for _ in _files_in(folder, "_delta_log", options))


def is_iceberg(folder: str, options: Options | None = None) -> bool:
    """Whether a folder is an Iceberg table."""
    return any(name.endswith(".metadata.json") for name in _files_in(folder, "metadata", options))


def _files_in(table: str, folder: str, options: Options | None) -> Iterator[str]:
    if is_url(table):
        yield from (file.path for file in listing(f"{table.rstrip('/')}/{folder}/", options))
    else:
        yield from map(Path.as_posix, Path(table, folder).glob("*"))


def scan_delta(table: str, storage_options: Options | None = None) -> pl.LazyFrame:
    """Scan the newest version of a Delta table."""
    check_installed("deltalake", subject="reading Delta tables", extra="store")
    return pl.scan_delta(table, storage_options=as_dict(storage_options))


def version_of_delta(table: str, options: Options | None) -> str:
    """The newest version number, and the id of the Delta table."""
    now = _delta_table(table, options)
    return f"{now.version()} {now.metadata().id}"


def files_of_delta(table: str, options: Options | None) -> TableFiles | None:
    """The files of the newest Delta version; None if they cannot be read one by one."""
    now = _delta_table(table, options)
    features = {*(now.protocol().reader_features or ())}
    mapping = now.metadata().configuration.get("delta.columnMapping.mode", "none")
    if not features <= _FEATURES_OF_PLAIN_FILES or mapping != "none":
        return None
    schema, folders = pl.scan_delta(now).collect_schema(), now.metadata().partition_columns
    added = pl.DataFrame(now.get_add_actions()).select(
        "path", "size_bytes", pl.col("modification_time").cast(pl.Int64).cast(pl.String)
    )
    made = now.metadata().id  # A table that was made again may have files of the same names.
    files = [
        Input(f"{table.rstrip('/')}/{unquote(name)}", size, f"{time} {made}")
        for name, size, time in added.iter_rows()
    ]

    def scan(files: Sequence[str], paths: str) -> pl.LazyFrame:
        return parquet_files(
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

    return files, scan


def _delta_table(table: str, options: Options | None) -> Any:  # noqa: ANN401 - deltalake is optional
    check_installed("deltalake", subject="reading Delta tables", extra="store")
    from deltalake import DeltaTable  # noqa: PLC0415 - it is optional

    return DeltaTable(table, storage_options=as_dict(options))


def scan_iceberg(table: str, storage_options: Options | None = None) -> pl.LazyFrame:
    """Scan the newest version of an Iceberg table."""
    newest = newest_metadata(table, storage_options)
    check_installed("pyiceberg", subject="reading Iceberg tables", extra="iceberg")
    return pl.scan_iceberg(newest, storage_options=as_dict(storage_options))


def newest_metadata(table: str, options: Options | None) -> str:
    """The path of the Iceberg metadata file with the highest number: the version of the table."""
    files = _files_in(table, "metadata", options)
    newest = max((file for file in files if file.endswith(".metadata.json")), key=_version_of_file)
    return newest if is_url(newest) else str(Path(newest).resolve())


def _version_of_file(file: str) -> int:
    return int("0" + re.sub(r"\D.*", "", file.rpartition("/")[2].removeprefix("v")))


def scan_csv(
    source: str | BytesIO,
    storage_options: Options | None = None,
    *,
    text: Sequence[str] = (),
    null: Sequence[str] = (),
    separator: str | None = None,
    dtypes: Mapping[str, pl.DataType] | None = None,
) -> pl.LazyFrame:
    """Scan a CSV file with columns that stay text, texts that are null, a separator, and dtypes.

    Without a separator: a tab for `.tsv`, else the one that the first line has most of.
    """
    options = as_dict(storage_options)
    header = first_line(source, options)
    if separator is None:
        is_tsv = str(source).lower().endswith(_with_compressed(".tsv"))
        separator = "\t" if is_tsv else _separator(header)
    rows = pl.scan_csv(
        source,
        separator=separator,
        schema_overrides={**(dtypes or {}), **dict.fromkeys(text, pl.String())},
        null_values=[*null] or None,
        infer_schema_length=ROWS_FOR_DTYPES,
        raise_if_empty=False,
        storage_options=options,
    )
    for name in rows.collect_schema():
        first = name.removesuffix("_duplicated_0")  # Polars calls the second column so.
        if first not in {name, ""} and name not in header:
            raise pl.exceptions.DuplicateError(f"two columns are called '{first}'")
    return rows


ROWS_FOR_DTYPES = 10_000  # rows that tell the dtypes of CSV and NDJSON


def _scan_ndjson(source: str | BytesIO, storage_options: Options | None = None) -> pl.LazyFrame:
    """Scan JSON lines. All rows tell the dtypes if the first do not: it takes as long as to read.

    With a dtype that is Null, Polars reads `["a"]` as `[null]`, and fails at other values. It drops
    the fields of a struct that come later.
    """
    options = as_dict(storage_options)
    if _first_lines(source, options).is_empty():
        return pl.LazyFrame()
    scan = partial(pl.scan_ndjson, source, storage_options=options)
    rows = scan(infer_schema_length=ROWS_FOR_DTYPES)
    dtypes = map(str, rows.collect_schema().dtypes())
    is_known = not any("Null" in dtype or "Struct" in dtype for dtype in dtypes)
    return rows if is_known else scan(infer_schema_length=None)


SEPARATORS = ",;\t|"  # the likeliest first


def _separator(header: str) -> str:
    """The separator that the first line has most of, outside quotes."""
    return max(SEPARATORS, key=re.sub('"[^"]*"', "", header).count)


def first_line(source: str | BytesIO, options: dict[str, str] | None = None) -> str:
    """The first line of a text, perhaps compressed."""
    return "".join(text or "" for (text,) in _first_lines(source, options).iter_rows())


def _first_lines(source: str | BytesIO, options: dict[str, str] | None) -> pl.DataFrame:
    """The first line, or nothing; an error if its text cannot be UTF-8."""
    line = pl.scan_csv(  # as one column: Polars also decompresses it
        source,
        has_header=False,
        separator="\x1f",
        quote_char=None,
        n_rows=1,
        infer_schema=False,
        encoding="utf8-lossy",
        raise_if_empty=False,
        storage_options=options,
    )
    first = line.collect()
    if any("\0" in (text or "") for (text,) in first.iter_rows()):
        msg = "its text has bytes of 0, as UTF-16 has: write it as UTF-8"
        raise pl.exceptions.ComputeError(msg)
    return first


def _with_compressed(*suffixes: str) -> tuple[str, ...]:
    """Suffixes of files that Polars also reads compressed."""
    return tuple(f"{suffix}{end}" for suffix in suffixes for end in ("", ".gz", ".zst"))


STDIN = "-"  # the path of the standard input; it is read into memory
STORE = "store of counts"  # the name of its format
CSV = "CSV"
IPC = "IPC"
NDJSON = "NDJSON"
PARQUET = LogFormat("Parquet", pl.scan_parquet, (".parquet",), b"PAR1")
FORMATS = (
    PARQUET,
    LogFormat(IPC, pl.scan_ipc, (".arrow", ".ipc", ".feather"), b"ARROW1"),
    LogFormat(NDJSON, _scan_ndjson, _with_compressed(".ndjson", ".jsonl"), b"{"),
    LogFormat(CSV, scan_csv, _with_compressed(".csv", ".tsv")),
    LogFormat(STORE, _scan_store, is_folder=_is_store, version=version_of_delta),
    LogFormat(
        "Delta",
        scan_delta,
        is_folder=is_delta,
        version=version_of_delta,
        table_files=files_of_delta,
    ),
    LogFormat("Iceberg", scan_iceberg, is_folder=is_iceberg, version=newest_metadata),
)


def by_suffix(file: str) -> LogFormat | None:
    """The format that the suffix of a file names."""
    name = file.lower()
    return next((log_format for log_format in FORMATS if name.endswith(log_format.suffixes)), None)


def format_of(path: str, options: Options | None) -> LogFormat | None:
    """The format of a file, a table or a store; None for what is listed: a folder, or objects.

    Without obstore, URLs are not listed: Polars expands them.
    """
    is_folder = is_in_bucket(path) if is_url(path) else Path(path).is_dir()
    is_named = is_url(path) and (folder_of_glob(path) or by_suffix(path))
    if is_folder and not is_named:
        with suppress(ModuleNotFoundError):
            for log_format in FORMATS:
                if log_format.is_folder is not None and log_format.is_folder(path, options):
                    return log_format
    is_listed = is_folder and (not is_url(path) or find_spec("obstore") is not None)
    return None if is_listed else by_suffix(path) or PARQUET


def format_of_pipe() -> LogFormat:
    """The format of a log from a pipe. The log is read once; its first bytes tell its format."""
    data = sys.stdin.buffer.read().removeprefix(codecs.BOM_UTF8)
    if data.startswith(b"\xff\xff\xff\xff"):
        msg = "the standard input is an Arrow stream; write an Arrow file (IPC) or Parquet instead"
        raise ValueError(msg)
    is_packed = data.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))  # gzip or Zstandard
    begin = first_line(BytesIO(data)).encode() if is_packed else data
    log_format = next(
        log_format for log_format in FORMATS if begin.lstrip().startswith(log_format.begins)
    )

    @cache
    def scan(_: str, **options: Any) -> pl.LazyFrame:  # noqa: ANN401 - of the format
        return log_format.scan(BytesIO(data), **options).collect().lazy()

    return replace(log_format, scan=scan)

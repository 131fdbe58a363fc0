"""The inputs of the command line: find logs, check them, scan them as one frame."""

from __future__ import annotations

import glob
import json
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, filterfalse
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from polars_mcc._base.errors_and_warnings import Failure, unless
from polars_mcc._base.unstable_polars import parquet_files
from polars_mcc._base.values_as_text_or_markdown import read_as
from polars_mcc._frame.columns import as_expr
from polars_mcc._inputs.buckets_and_credentials import folder_of_glob, listing, looked_up
from polars_mcc._inputs.find_files import (
    FileSearch,
    absolute,
    canonical,
    each_resolved,
    is_hidden,
    is_no_log,
    naming,
)
from polars_mcc._inputs.formats import (
    CSV,
    IPC,
    NDJSON,
    PARQUET,
    ROWS_FOR_DTYPES,
    STORE,
    LogFormat,
    by_suffix,
    format_of,
)
from polars_mcc._inputs.paths_and_settings import (
    Options,
    as_dict,
    is_url,
    partition_columns,
    partitions,
)
from polars_mcc._inputs.sql_columns import filtered
from polars_mcc._inputs.standard_input import STDIN, format_of_pipe, naming_unreadable
from polars_mcc._store.delta_table import Input, open_store
from polars_mcc._store.stored_columns import log_options_of


@dataclass(frozen=True)
class Logs:
    """The files of one format that a user named, and hidden files in the named folders.

    A Delta table, an Iceberg table or a store of counts is one entry, its folder: to read all files
    in the folder would be wrong.
    """

    typed: Sequence[str]
    """The paths, globs and folders that the user named."""
    canonical: Mapping[str, str]
    """The real path of each file."""
    files: Sequence[str]
    format: LogFormat
    hidden: Sequence[str] = ()
    """Hidden files in the named folders that may be logs."""
    options: Options | None = None
    listed: Mapping[str, Input] = field(default_factory=dict)
    """Objects in a bucket, with size and version."""
    links: Sequence[str] = ()
    """Links to folders that were followed."""

    @cached_property
    def schemas(self) -> dict[str, pl.Schema]:
        """The schema of each local file. A column without a value is Null, if others tell more."""
        schemas = {file: self._schema(file) for file in self.files if not is_url(file)}
        if self.format.name != CSV or len(schemas) < 2:
            return schemas
        told = {name for schema in schemas.values() for name in schema if schema[name] != pl.String}
        for file, schema in schemas.items():
            if texts := [name for name in schema if schema[name] == pl.String and name in told]:
                first = self.scan_one(file).select(cs.by_name(texts)).head(ROWS_FOR_DTYPES)
                is_null = first.select(pl.all().is_null().all()).collect().row(0, named=True)
                schema |= {name: pl.Null() for name in texts if is_null[name]}
        return schemas

    def _schema(self, file: str) -> pl.Schema:
        with naming_unreadable(file, self.format.name):
            if self.format is not PARQUET:
                return self.scan_one(file).collect_schema()
            options = as_dict(self.options)
            rows = pl.scan_parquet(
                file, glob=False, hive_partitioning=False, storage_options=options
            )
            return rows.collect_schema()

    def scan_one(self, file: str, known: Mapping[str, pl.DataType] = {}) -> pl.LazyFrame:
        """Scan one of the files with the reader of its format.

        `known`: dtypes of other files, for columns of CSV that have no value in this one.
        """
        is_found = self.format.is_folder is None and (not is_url(file) or file in self.listed)
        name = glob.escape(absolute(file)) if is_found and file != STDIN else file
        scan = partial(self.format.scan, name, storage_options=self.options)
        is_told = known and self.format.name == CSV and file in self.schemas
        own = self.schemas[file] if is_told else pl.Schema()
        if dtypes := {name: known[name] for name, dtype in own.items() if dtype == pl.Null}:
            return scan(dtypes=dtypes)
        columns = partition_columns(absolute(file)) if self.format.name == IPC else []
        if columns and scan().collect_schema().keys().isdisjoint(columns):
            return scan(hive_partitioning=True, hive_schema=self.folder_dtypes[*columns,])
        return scan()

    def read_as(
        self, text: Sequence[str] = (), null: Sequence[str] = (), separator: str | None = None
    ) -> Logs:
        """The same files, read with options of CSV: text columns, texts that are null, a separator.

        Raises:
            ValueError: An option is given, and the files are not CSV; the separator is invalid.
        """
        typed = None if separator is None else _one_character(separator)
        options = {"text": (*text,), "null": (*null,), "separator": typed}
        options = {name: value for name, value in options.items() if value}
        if options and self.format.name != CSV:
            msg = f"--{next(iter(options))} is for CSV files, but the log is {self.format.name}"
            raise ValueError(msg)
        if not options:
            return self
        scan = partial(self.format.scan, **options)
        return replace(self, format=replace(self.format, scan=scan))

    def would_read(self, path: str) -> str | None:
        """The folder or glob that the user named, of which a file at this path would be a log."""
        for typed in self.typed:
            is_glob = root_of_path(typed) != typed
            below = (_as_regex if is_glob else re.escape)(os.path.realpath(typed)) + "(/.*)?"
            if re.fullmatch(below, os.path.realpath(path)):
                return typed
        return None

    @cached_property
    def described(self) -> Mapping[str, Any]:
        """The roles of columns that a store of counts has saved; empty for other logs."""
        if self.format.name != STORE:
            return {}
        of_each = [log_options_of(open_store(store, self.options).about) for store in self.files]
        if any(options != of_each[0] for options in of_each):
            msg = "the stores have counts of different columns; score each store on its own"
            raise ValueError(msg)
        return of_each[0]

    @cached_property
    def folder_dtypes(self) -> dict[tuple[str, ...], pl.Schema]:
        """The dtypes of the columns of folders, for all such folders. No file is opened."""
        files: dict[tuple[str, ...], list[str]] = {}
        for path in map(absolute, self.files):
            files.setdefault((*partition_columns(path),), []).append(path)
        how = {"schema": {}, "hive_partitioning": True, "glob": False}
        scans = {
            columns: parquet_files(paths, hive_schema=None, **how)
            for columns, paths in files.items()
        }
        return {columns: scan.collect_schema() for columns, scan in scans.items()}

    @cached_property
    def partitions(self) -> set[str]:
        """The columns that folders `name=value` of all Parquet files make.

        Folders above what the user named make none that a file has itself: the file is meant.
        """
        if not self._columns_of_folders:
            return set()
        above = self._columns_of_folders - self._common(map(self._below, self.files))
        return self._columns_of_folders - (above & self._columns_of_files if above else set())

    @cached_property
    def not_from_folders(self) -> set[str]:
        """The columns that files have themselves, although folders above them have their names."""
        return self._columns_of_folders - self.partitions

    @cached_property
    def _columns_of_folders(self) -> set[str]:
        has_folders = self.format is PARQUET and self.files
        return self._common(map(absolute, self.files)) if has_folders else set()

    @property
    def _columns_of_files(self) -> set[str]:
        """The columns of local files, and of the first object: to ask each takes long."""
        urls = [file for file in self.files if is_url(file)][:1]
        return {*chain(*self.schemas.values(), *map(self._schema, urls))}

    def _below(self, file: str) -> str:
        """The path of a file below the folder or glob that the user named."""
        path = absolute(file)
        roots = (f"{absolute(root_of_path(typed)).rstrip('/')}/" for typed in self.typed)
        lengths = (len(above) for above in roots if path.startswith(above))
        return path[min(lengths, default=len(path)) :]

    @staticmethod
    def _common(paths: Iterable[str]) -> set[str]:
        return set.intersection(*({*partition_columns(path)} for path in paths))


def root_of_path(path: str) -> str:
    """A path, or the folder that all matches of a glob are in."""
    is_named = os.path.exists(path)  # noqa: PTH110 - it may be a URL
    return path if is_named else folder_of_glob(path) or path


def _one_character(separator: str) -> str:
    r"""A separator as it is typed; \\t and tab are a tab."""
    character = {r"\t": "\t", "tab": "\t"}.get(separator, separator)
    if len(character.encode()) != 1:
        raise ValueError(f"--separator is one character, such as ';' or tab, got {separator!r}")
    return character


def find_logs(
    paths: Sequence[str], options: Options | None = None, *, may_be_gone: bool = False
) -> Logs:
    """Find the files of paths, globs and folders, each file once.

    A path has matches: itself, or those of a glob. A match is a file, a table, or a folder, of
    which `_logs_in_folder` takes the files of one format. All files must be of one format.

    Links to folders are followed; a loop of links, or a folder that cannot be read, is an error.
    Globs and folders in object storage are listed here; without obstore, Polars expands them.
    With `may_be_gone`, a path without files is no error.
    """
    if not paths:
        raise ValueError("name the logs to read: Parquet files, folders of them, or quoted globs")
    if STDIN in paths:
        if list(paths) != [STDIN]:
            msg = "the standard input (-) cannot be combined with other logs; pass it alone"
            raise ValueError(msg)
        return Logs(paths, _real_path_of_each(paths), [STDIN], format_of_pipe())
    local, formats = FileSearch(), dict[str, LogFormat]()
    hidden, listed = list[str](), dict[str, Input]()
    paths = [path.removeprefix("file://") for path in paths]
    for path in paths:
        is_found = may_be_gone
        is_one = is_url(path) or os.path.exists(path)  # noqa: PTH110 - False if it is forbidden
        for match in [path] if is_one else filterfalse(is_no_log, local.matches(path)):
            with naming(match):
                log_format = format_of(match, options)
            if log_format is None:
                objects = _objects(match, options) if is_url(match) else {}
                listed |= objects
                logs, hidden_here = _logs_in_folder(
                    match, [*objects] if is_url(match) else local.files(match)
                )
                hidden += hidden_here
            else:
                logs = {match: log_format}
            formats |= logs
            is_found |= bool(logs)
        if not is_found:
            raise _nothing_at(path)
    common_format = _format_of_all(formats)
    _check_files(file for file, log_format in formats.items() if log_format.is_folder is None)
    real, links = _real_path_of_each(formats), sorted(local.links)
    rest = [*_real_path_of_each(hidden)]
    return Logs(paths, real, [*real], common_format, rest, options, listed, links)


def _logs_in_folder(folder: str, paths: Sequence[str]) -> tuple[dict[str, LogFormat], list[str]]:
    """The logs of a folder, all of one format; and hidden files that may be logs.

    Hidden files, and files that are known to be no logs, are passed over. Any other file may be a
    log, so it is an error: a folder is read whole or not at all.
    """
    above = folder_of_glob(folder) or folder if is_url(folder) else os.path.normpath(folder)
    root = "" if above == os.curdir else above.rstrip("/")
    inside = {path: path.removeprefix(root) for path in paths}
    hidden = [path for path in paths if any(map(is_hidden, inside[path].split("/")))]
    passed = {*hidden, *filter(is_no_log, paths)}
    files = [path for path in paths if path not in passed]
    formats: dict[str, LogFormat] = {}
    for file in files:
        if (log_format := by_suffix(file)) is None:
            raise ValueError(
                f"'{file}' in folder '{folder}' is not known to be a log, by the end of its name; "
                "pass a quoted glob for the logs, or move it"
            )
        formats[file] = log_format
    names = sorted({log_format.name for log_format in formats.values()})
    if len(names) > 1:
        raise ValueError(
            f"folder '{folder}' has {' and '.join(names)} files; pass a quoted glob for one format"
        )
    return formats, [path for path in hidden if by_suffix(path) is not None]


def _nothing_at(path: str) -> FileNotFoundError:
    is_folder = Path(path).is_dir() or path.endswith("/")
    what = "no .parquet file in folder" if is_folder else "no file"
    is_word = path.isidentifier() and not is_folder
    hint = " to give an option several values, repeat it, as in --by a --by b;" if is_word else ""
    log = "a file, a folder, a quoted glob, or a store of counts"
    return FileNotFoundError(f"{what} '{path}';{hint} a log is {log}")


def _format_of_all(formats: Mapping[str, LogFormat]) -> LogFormat:
    """The format that all files have."""
    by_name = {log_format.name: log_format for log_format in formats.values()}
    if len(by_name) > 1:
        names = " and ".join(sorted(by_name))
        raise ValueError(f"cannot read {names} as one log; score each on its own")
    return next(iter(by_name.values()), PARQUET)


def scan_logs(
    logs: Logs, paths: str | None = None, hive_schema: pl.Schema | None = None
) -> pl.LazyFrame:
    """Scan files of one format as one log.

    Only for Parquet: `paths` names a column for the file, `hive_schema` has the dtypes of the
    columns of folders.
    """
    schemas = logs.schemas  # Or an error that names an unreadable file.
    if not logs.files:
        return pl.LazyFrame()
    known = _known_dtypes(schemas.values())
    if logs.format is not PARQUET:
        return pl.concat(
            [logs.scan_one(file, known) for file in logs.files], how="diagonal_relaxed"
        )
    first = next(iter(schemas.values()), pl.Schema())
    is_known = all(dtype == known.get(name, dtype) for name, dtype in first.items())
    of_files = {name: known.get(name, dtype) for name, dtype in first.items()}
    unlisted = [file for file in logs.files if is_url(file) and file not in logs.listed]
    is_expanded = any(file.endswith("/") or folder_of_glob(file) for file in unlisted)
    scanned = partial(
        parquet_files,
        [*map(absolute, logs.files)],
        storage_options=as_dict(logs.options),
        include_file_paths=paths,
        extra_columns="ignore",
        # If the row group statistics of a file were wrong, a filter would lose rows.
        use_statistics=False,
        glob=bool(unlisted),
        # Polars takes the dtypes of the first file, where a column may be Null.
        schema=None
        if is_known
        else {k: v for k, v in of_files.items() if k not in logs.partitions},
    )
    if not (logs.partitions or is_expanded):
        return scanned(hive_partitioning=False, hive_schema=None)
    rows = scanned(hive_partitioning=True, hive_schema=hive_schema or None)
    if not logs.not_from_folders:
        return rows
    own = scanned(hive_partitioning=False, hive_schema=None).select(
        cs.by_name(logs.not_from_folders)
    )
    return pl.concat([rows.drop(logs.not_from_folders), own], how="horizontal")


def scan_answer(
    path: str, null: Sequence[str] = (), dtypes: Mapping[str, pl.DataType] | None = None
) -> pl.LazyFrame:
    """Scan a file that `--out` wrote. CSV and JSON have text, which is read as `dtypes`.

    `null` are texts of CSV that are null. Without `dtypes`, all text stays text.
    """
    lines: bytes | list[str] | None = None
    form = "JSON"
    if path.lower().endswith(".json") and Path(path).is_file():
        with naming_unreadable(path, form):
            lines = "\n".join(map(json.dumps, json.loads(Path(path).read_bytes()))).encode()
        if not lines:
            return pl.LazyFrame()
    else:
        logs = find_logs([path])
        rows, form = scan_logs(logs), logs.format.name
        if form not in {CSV, NDJSON} or not rows.collect_schema():
            return rows
        lines = [*logs.files] if form == NDJSON else None

    def scan(text: Iterable[str] = ()) -> pl.LazyFrame:
        if lines is None:
            return scan_logs(logs.read_as([*text], null))
        overrides = dict.fromkeys(text, pl.String())
        return pl.scan_ndjson(lines, infer_schema_length=None, schema_overrides=overrides)

    with naming_unreadable(path, form):
        names = scan().collect_schema()
        text = [name for name in names if dtypes is None or name in dtypes]
        rows = scan(text).collect().lazy()
    return rows.with_columns(_typed(name, dtypes[name]) for name in text if dtypes is not None)


def _typed(name: str, dtype: pl.DataType) -> pl.Expr:
    """A column of text in the dtype that was written, or an error that names the first text."""
    text = as_expr(name)
    value = read_as(text, pl.String(), dtype)
    message = "the file has '", text, f"' in column '{name}', which is no {dtype}"
    return unless(value, Failure(text.is_not_null() & value.is_null(), message)).alias(name)


def check_same_dtypes(logs: Logs, columns: Iterable[str]) -> None:
    """Raise a SchemaError if a column that is read is missing or has another dtype in a file."""
    for column in dict.fromkeys(columns):
        having = {file: read[column] for file, read in logs.schemas.items() if column in read}
        having = {
            file: dtype for file, dtype in having.items() if "Null" not in str(dtype)
        } or having
        if column in logs.partitions or not having:
            continue  # Missing everywhere: the query raises, with the nearest name.
        first, dtype = next(iter(having.items()))
        for file, schema in logs.schemas.items():
            if schema and column not in schema:
                msg = f"column '{column}' is in '{first}' but not in '{file}'; score them apart"
                raise pl.exceptions.SchemaError(msg)
            if (
                file in having
                and having[file] != dtype
                and not _is_widened(logs, having[file], dtype)
            ):
                as_text = f"read it as text with --text {shlex.quote(column)}"
                nothing = "add --null NA if a word such as NA stands for no value, "
                way_out = (
                    f"{nothing}{as_text}" if logs.format.name == CSV else "write it with one dtype"
                )
                raise pl.exceptions.SchemaError(
                    f"column '{column}' is {dtype} in '{first}' but {having[file]} in '{file}'; "
                    f"{way_out}, or score them apart"
                )


def _known_dtypes(schemas: Iterable[pl.Schema]) -> dict[str, pl.DataType]:
    """The first dtype of each column that is not Null, and has no Null inside."""
    known: dict[str, pl.DataType] = {}
    for schema in schemas:
        known = {name: of for name, of in schema.items() if "Null" not in str(of)} | known
    return known


def _is_widened(logs: Logs, own: pl.DataType, other: pl.DataType) -> bool:
    """Whether Polars guessed dtypes from values, and both are numbers, or lists of numbers."""
    if isinstance(own, pl.List) and isinstance(other, pl.List):
        return _is_widened(logs, own.inner, other.inner)  # type: ignore[arg-type]
    return logs.format.name in {CSV, NDJSON} and own.is_numeric() and other.is_numeric()


def rows_of_files(
    logs: Logs, condition: str | None = None, columns: Collection[str] = ()
) -> list[int | None]:
    """Count the rows of each file after a filter, from footers and folder names; else None.

    A filter is possible only on partition columns. `columns` are the columns that the filter uses.
    """
    is_remote = any(map(is_url, logs.files))
    is_told = condition is None or logs.partitions.issuperset(columns)
    if logs.format.name not in {"Parquet", "IPC"} or is_remote or not is_told:
        return [None] * len(logs.files)
    with suppress(pl.exceptions.PolarsError):  # The query says which file cannot be read.
        kept = [filtered(scan_logs(replace(logs, files=[file])), condition) for file in logs.files]
        return [rows.item() for rows in pl.collect_all([lf.select(pl.len()) for lf in kept])]
    return [None] * len(logs.files)


@contextmanager
def named_if_corrupt(logs: Logs, columns: Sequence[str]) -> Iterator[None]:
    """If a scan fails, raise an error that names the first file with unreadable `columns`."""
    try:
        yield
    except (pl.exceptions.ComputeError, pl.exceptions.PanicException):
        for file in logs.files:
            rows = scan_logs(replace(logs, files=[file]))
            with naming_unreadable(file, logs.format.name):
                rows.select(cs.by_name(columns, require_all=False).is_null().sum()).collect()
        raise


def _objects(url: str, options: Options | None) -> dict[str, Input]:
    """The objects that a URL names: one object, the matches of a glob, or all below a folder."""
    if by_suffix(url) is not None and (named := looked_up(url, options)) is not None:
        return {named.path: named}
    folder = folder_of_glob(url)
    if folder is None:
        return {entry.path: entry for entry in listing(url, options)}
    is_match = re.compile(_as_regex(url)).fullmatch
    return {entry.path: entry for entry in listing(folder, options) if is_match(entry.path)}


def _as_regex(pattern: str) -> str:
    """Convert a glob to a regular expression: ** matches any depth of folders, * no slash."""
    of_parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]*\])", pattern)
    is_set = re.compile(r"\[.*\]").fullmatch
    texts = (part.replace("[!", "[^") if is_set(part) else re.escape(part) for part in parts)
    return "".join(of_parts.get(part, text) for part, text in zip(parts, texts, strict=True))


def _check_files(files: Iterable[str]) -> None:
    """Raise a ValueError if files are part of a Delta table, or if a name is not UTF-8."""
    folders: dict[str, None] = {}
    for file in files:
        if re.search(r"[\ud800-\udfff]", file):  # They stand for bytes that are not UTF-8.
            raise ValueError(f"the name of {file!r} is not UTF-8; rename the file")
        if not is_url(file):
            folders[file.rpartition("/")[0] or "."] = None
    for folder in folders:
        table = re.sub(r"(/[^/=]+=[^/]*)+$", "", folder)
        if Path(table, "_delta_log").is_dir():
            raise ValueError(
                f"'{table}' is a Delta table; pass this folder, not its files: some of them are no "
                "longer valid"
            )


def _real_path_of_each(files: Collection[str]) -> dict[str, str]:
    """One name of each file, its real path if this is one of the names; by name, the real path.

    The same file in another partition is another log: it has another value of the partition.
    """
    name_of: dict[tuple[str, frozenset[str]], str] = {}
    paths, real = each_resolved(files, canonical), each_resolved(files, os.path.realpath)
    for file, path in paths.items():
        same = real[file], frozenset(partitions(path))
        is_real = os.path.abspath(file) == real[file]  # noqa: PTH100 - thousands of inputs
        if same not in name_of or is_real:
            name_of[same] = file
    return {file: paths[file] for file in name_of.values()}

"""The inputs of the command line: find logs, check them, scan them as one frame."""

from __future__ import annotations

import glob
import json
import os
import posixpath
import re
import shlex
from collections import defaultdict
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
from polars_mcc._inputs import find_files, formats
from polars_mcc._inputs.buckets_and_credentials import folder_of_glob, listing, looked_up
from polars_mcc._inputs.paths_and_settings import (
    Options,
    as_dict,
    is_url,
    partition_columns,
    real_path,
    slashed,
)
from polars_mcc._inputs.sql_columns import filtered
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
    files: Sequence[str]
    format: formats.LogFormat
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
        if self.format.name != formats.CSV or len(schemas) < 2:
            return schemas
        told = {name for schema in schemas.values() for name in schema if schema[name] != pl.String}
        for file, schema in schemas.items():
            if texts := [name for name in schema if schema[name] == pl.String and name in told]:
                first = self.scan_one(file).select(cs.by_name(texts)).head(formats.ROWS_FOR_DTYPES)
                is_null = first.select(pl.all().is_null().all()).collect().row(0, named=True)
                schema |= {name: pl.Null() for name in texts if is_null[name]}
        return schemas

    def _schema(self, file: str) -> pl.Schema:
        with find_files.naming_unreadable(file, self.format.name):
            if self.format is not formats.PARQUET:
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
        is_found &= file != formats.STDIN
        name = glob.escape(find_files.absolute(file)) if is_found else file
        scan = partial(self.format.scan, name, storage_options=self.options)
        is_told = known and self.format.name == formats.CSV and file in self.schemas
        own = self.schemas[file] if is_told else pl.Schema()
        if dtypes := {name: known[name] for name, dtype in own.items() if dtype == pl.Null}:
            return scan(dtypes=dtypes)
        is_ipc = self.format.name == formats.IPC
        columns = partition_columns(find_files.absolute(file)) if is_ipc else []
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
        if separator is not None:
            separator = {r"\t": "\t", "tab": "\t"}.get(separator, separator)
            if len(separator.encode()) != 1:
                what = f"--separator is one character, such as ';' or tab, got {separator!r}"
                raise ValueError(what)
        options = {"text": (*text,), "null": (*null,), "separator": separator}
        options = {name: value for name, value in options.items() if value}
        if options and self.format.name != formats.CSV:
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
            below = (_as_regex if is_glob else re.escape)(real_path(typed)) + "(/.*)?"
            if re.fullmatch(below, real_path(path)):
                return typed
        return None

    @cached_property
    def described(self) -> Mapping[str, Any]:
        """The roles of columns that a store of counts has saved; empty for other logs."""
        if self.format.name != formats.STORE:
            return {}
        of_each = [log_options_of(open_store(store, self.options).about) for store in self.files]
        if any(options != of_each[0] for options in of_each):
            msg = "the stores have counts of different columns; score each store on its own"
            raise ValueError(msg)
        return of_each[0]

    @cached_property
    def folder_dtypes(self) -> dict[tuple[str, ...], pl.Schema]:
        """The dtypes of the columns of folders, for all such folders. No file is opened."""
        files = defaultdict[tuple[str, ...], list[str]](list)
        for path in map(find_files.absolute, self.files):
            files[*partition_columns(path),].append(path)
        how: dict[str, Any] = {"schema": {}, "hive_partitioning": True, "glob": False}
        return {
            columns: parquet_files(paths, hive_schema=None, **how).collect_schema()
            for columns, paths in files.items()
        }

    @cached_property
    def partitions(self) -> set[str]:
        """The columns that folders `name=value` of all Parquet files make."""
        return self._common(map(find_files.absolute, self.files)) - self.not_from_folders

    @cached_property
    def not_from_folders(self) -> set[str]:
        """The columns of files that folders above what the user named are called like.

        The columns of the files are meant.
        """
        of_folders = self._common(map(find_files.absolute, self.files))
        above = of_folders - self._common(map(self._below, self.files))
        if not above:
            return above
        urls = [file for file in self.files if is_url(file)][:1]  # To ask each takes long.
        return above.intersection(chain(*self.schemas.values(), *map(self._schema, urls)))

    def _below(self, file: str) -> str:
        """The path of a file below the folder or glob that the user named."""
        path = find_files.absolute(file)
        roots = (f"{find_files.absolute(root_of_path(typed)).rstrip('/')}/" for typed in self.typed)
        lengths = (len(above) for above in roots if path.startswith(above))
        return path[min(lengths, default=len(path)) :]

    def _common(self, paths: Iterable[str]) -> set[str]:
        """The columns that the folders of all these Parquet files make."""
        columns = ({*partition_columns(path)} for path in paths)
        is_made = self.format is formats.PARQUET and self.files
        return set.intersection(*columns) if is_made else set()


def root_of_path(path: str) -> str:
    """A path, or the folder that all matches of a glob are in."""
    is_named = os.path.exists(path)  # noqa: PTH110 - it may be a URL
    return path if is_named else folder_of_glob(path) or path


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
    if formats.STDIN in paths:
        if list(paths) != [formats.STDIN]:
            msg = "the standard input (-) cannot be combined with other logs; pass it alone"
            raise ValueError(msg)
        return Logs(paths, [formats.STDIN], formats.format_of_pipe())
    local, format_of_path = find_files.FileSearch(), dict[str, formats.LogFormat]()
    hidden, listed = list[str](), dict[str, Input]()
    paths = [slashed(re.sub("^file://(/(?=[A-Za-z]:/))?", "", path)) for path in paths]
    for path in paths:
        is_found = may_be_gone
        is_one = is_url(path) or os.path.exists(path)  # noqa: PTH110 - False if it is forbidden
        for match in [path] if is_one else filterfalse(find_files.is_no_log, local.matches(path)):
            with find_files.naming(match):
                log_format = formats.format_of(match, options)
            if log_format is not None:
                logs = {match: log_format}
            else:
                objects = _objects(match, options) if is_url(match) else {}
                files = [*objects] if is_url(match) else local.files(match)
                logs, hidden_here = _logs_in_folder(match, files)
                listed |= objects
                hidden += hidden_here
            format_of_path |= logs
            is_found |= bool(logs)
        if not is_found:
            raise _nothing_at(path)
    by_name = {log_format.name: log_format for log_format in format_of_path.values()}
    if len(by_name) > 1:
        names = " and ".join(sorted(by_name))
        raise ValueError(f"cannot read {names} as one log; score each on its own")
    common_format = next(iter(by_name.values()), formats.PARQUET)
    if common_format.is_folder is None:
        _check_files(format_of_path)
    files, rest = [*find_files.each_once(format_of_path)], [*find_files.each_once(hidden)]
    return Logs(paths, files, common_format, rest, options, listed, sorted(local.links))


def _logs_in_folder(
    folder: str, paths: Sequence[str]
) -> tuple[dict[str, formats.LogFormat], list[str]]:
    """The logs of a folder, all of one format; and hidden files that may be logs.

    Hidden files, and files that are known to be no logs, are passed over. Any other file may be a
    log, so it is an error: a folder is read whole or not at all.
    """
    above = folder_of_glob(folder) or folder if is_url(folder) else posixpath.normpath(folder)
    root = "" if above == os.curdir else above.rstrip("/")
    inside = {path: path.removeprefix(root) for path in paths}
    hidden = [path for path in paths if any(map(find_files.is_hidden, inside[path].split("/")))]
    passed = {*hidden, *filter(find_files.is_no_log, paths)}
    files = [path for path in paths if path not in passed]
    format_of_path: dict[str, formats.LogFormat] = {}
    for file in files:
        if (log_format := formats.by_suffix(file)) is None:
            raise ValueError(
                f"'{file}' in folder '{folder}' is not known to be a log, by the end of its name; "
                "pass a quoted glob for the logs, or move it"
            )
        format_of_path[file] = log_format
    names = sorted({log_format.name for log_format in format_of_path.values()})
    if len(names) > 1:
        raise ValueError(
            f"folder '{folder}' has {' and '.join(names)} files; pass a quoted glob for one format"
        )
    return format_of_path, [path for path in hidden if formats.by_suffix(path) is not None]


def _nothing_at(path: str) -> FileNotFoundError:
    is_folder = Path(path).is_dir() or path.endswith("/")
    what = "no .parquet file in folder" if is_folder else "no file"
    is_word = path.isidentifier() and not is_folder
    hint = " to give an option several values, repeat it, as in --by a --by b;" if is_word else ""
    log = "a file, a folder, a quoted glob, or a store of counts"
    return FileNotFoundError(f"{what} '{path}';{hint} a log is {log}")


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
    if logs.format is not formats.PARQUET:
        return pl.concat(
            [logs.scan_one(file, known) for file in logs.files], how="diagonal_relaxed"
        )
    first = next(iter(schemas.values()), pl.Schema())
    of_files = {name: known.get(name, dtype) for name, dtype in first.items()}
    told = {name: of_files[name] for name in of_files if name not in logs.partitions}
    unlisted = [file for file in logs.files if is_url(file) and file not in logs.listed]
    is_expanded = any(file.endswith("/") or folder_of_glob(file) for file in unlisted)
    scanned = partial(
        parquet_files,
        [*map(find_files.absolute, logs.files)],
        storage_options=as_dict(logs.options),
        include_file_paths=paths,
        extra_columns="ignore",
        # If the row group statistics of a file were wrong, a filter would lose rows.
        use_statistics=False,
        glob=bool(unlisted),
        # Polars takes the dtypes of the first file, where a column may be Null.
        schema=None if of_files == first else told,
    )
    if not (logs.partitions or is_expanded):
        return scanned(hive_partitioning=False, hive_schema=None)
    rows = scanned(hive_partitioning=True, hive_schema=hive_schema or None)
    if not logs.not_from_folders:
        return rows
    own = scanned(hive_partitioning=False, hive_schema=None)
    apart = rows.drop(logs.not_from_folders), own.select(cs.by_name(logs.not_from_folders))
    return pl.concat(apart, how="horizontal")


def scan_answer(
    path: str, null: Sequence[str] = (), dtypes: Mapping[str, pl.DataType] | None = None
) -> pl.LazyFrame:
    """Scan a file that `--out` wrote. CSV and JSON have text, which is read as `dtypes`.

    `null` are texts of CSV that are null. Without `dtypes`, all text stays text.
    """
    lines: bytes | list[str] | None = None
    form = "JSON"
    if path.lower().endswith(".json") and Path(path).is_file():
        with find_files.naming_unreadable(path, form):
            lines = "\n".join(map(json.dumps, json.loads(Path(path).read_bytes()))).encode()
        if not lines:
            return pl.LazyFrame()
    else:
        logs = find_logs([path])
        rows, form = scan_logs(logs), logs.format.name
        if form not in {formats.CSV, formats.NDJSON} or not rows.collect_schema():
            return rows
        lines = [*logs.files] if form == formats.NDJSON else None

    def scan(text: Iterable[str] = ()) -> pl.LazyFrame:
        if lines is None:
            return scan_logs(logs.read_as([*text], null))
        overrides = dict.fromkeys(text, pl.String())
        return pl.scan_ndjson(lines, infer_schema_length=None, schema_overrides=overrides)

    with find_files.naming_unreadable(path, form):
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
        if column in logs.partitions or not having:
            continue  # Missing everywhere: the query raises, with the nearest name.
        known = {file: dtype for file, dtype in having.items() if "Null" not in str(dtype)}
        known = known or having
        first, dtype = next(iter(known.items()))
        for file, schema in logs.schemas.items():
            if schema and column not in schema:
                msg = f"column '{column}' is in '{first}' but not in '{file}'; score them apart"
                raise pl.exceptions.SchemaError(msg)
            own = known.get(file, dtype)
            if own != dtype and not _is_widened(logs, own, dtype):
                way_out = "write it with one dtype"
                if logs.format.name == formats.CSV:
                    nothing = "add --null NA if a word such as NA stands for no value"
                    way_out = f"{nothing}, read it as text with --text {shlex.quote(column)}"
                raise pl.exceptions.SchemaError(
                    f"column '{column}' is {dtype} in '{first}' but {own} in '{file}'; {way_out}, "
                    "or score them apart"
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
    is_guessed = logs.format.name in {formats.CSV, formats.NDJSON}
    return is_guessed and own.is_numeric() and other.is_numeric()


def rows_of_files(
    logs: Logs, condition: str | None = None, columns: Collection[str] = ()
) -> list[int | None]:
    """Count the rows of each file after a filter, from footers and folder names; else None.

    A filter is possible only on partition columns. `columns` are the columns that the filter uses.
    """
    is_remote = any(map(is_url, logs.files))
    is_told = condition is None or logs.partitions.issuperset(columns)
    if logs.format.name in {"Parquet", "IPC"} and is_told and not is_remote:
        each = (filtered(scan_logs(replace(logs, files=[file])), condition) for file in logs.files)
        with suppress(pl.exceptions.PolarsError):  # The query says which file cannot be read.
            return [n.item() for n in pl.collect_all([rows.select(pl.len()) for rows in each])]
    return [None] * len(logs.files)


@contextmanager
def named_if_corrupt(logs: Logs, columns: Sequence[str]) -> Iterator[None]:
    """If a scan fails, raise an error that names the first file with unreadable `columns`."""
    try:
        yield
    except (pl.exceptions.ComputeError, pl.exceptions.PanicException):
        for file in logs.files:
            rows = scan_logs(replace(logs, files=[file]))
            with find_files.naming_unreadable(file, logs.format.name):
                rows.select(cs.by_name(columns, require_all=False).is_null().sum()).collect()
        raise


def _objects(url: str, options: Options | None) -> dict[str, Input]:
    """The objects that a URL names: one object, the matches of a glob, or all below a folder."""
    if formats.by_suffix(url) is not None and (named := looked_up(url, options)) is not None:
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

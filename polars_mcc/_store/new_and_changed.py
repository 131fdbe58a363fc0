"""Look up inputs: files, objects, files of tables, and whole tables, with size and version."""

from __future__ import annotations

import os
import time
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import polars as pl

from polars_mcc._inputs import find_files, read_files
from polars_mcc._inputs.buckets_and_credentials import looked_up_all
from polars_mcc._inputs.formats import PARQUET, ScanFiles, format_of
from polars_mcc._inputs.paths_and_settings import is_url, partition_columns, real_path, slashed
from polars_mcc._inputs.read_files import Logs
from polars_mcc._store.delta_table import Input

FILE = "polars_mcc:file"
"""The column with the path of the input of each row."""
_TICK = 0.05  # seconds; writes within one tick of the file system clock have the same time
_CHUNK_LIMITS = 256, 2**26  # maximum number of files, and of bytes, that one query counts


class CurrentInputs:
    """The inputs of logs as they are now. An input is named by its absolute path or its URL.

    Links in a path are not resolved.
    """

    def __init__(self, logs: Logs, *, again: bool) -> None:
        """Look up the size and version of each input.

        `find_logs` has listed the objects of a bucket, with sizes and versions. They are looked up
        only if this is done `again`.
        """
        self._logs = logs
        self.now: dict[str, Input] = {}
        """The inputs that exist, by path."""
        self.shown = {
            file.rstrip("/") if is_url(file) else slashed(os.path.abspath(file)): file  # noqa: PTH100
            for file in logs.files
        }
        """The path as the user typed it, by path."""
        self.failures: dict[str, Exception] = {}
        """Why an input cannot be looked up, by path."""
        self.tables = [*self.shown] if logs.format.version is not None else []
        self._scan_of_file: dict[str, ScanFiles] = {}
        """How the files of a table are scanned, by path of the file."""
        if self.tables:
            self._look_at_tables()
            return
        listed = {} if again else logs.listed
        listed = {**listed, **looked_up_all(self.shown.keys() - listed, logs.options)}
        times = [int(entry.version) for entry in listed.values() if not is_url(entry.path)]
        age = time.time() - max(times, default=0) / 1e9
        if 0 <= age < _TICK:  # A later write could get the same time, and would not be noticed.
            time.sleep(_TICK - age)
            listed |= looked_up_all(self.shown, logs.options)
        self.now = {path: listed[path] for path in self.shown if path in listed}
        for path, file in self.shown.items():
            # Without a link, the file was deleted meanwhile.
            if path not in listed and os.path.islink(file):  # noqa: PTH114 - thousands of inputs
                self.failures[path] = find_files.named_error(file, FileNotFoundError())
        path_of: dict[str, str] = {}  # Two paths may lead to one file since they were listed.
        for path, real in find_files.each_once(self.now).items():
            if (other := path_of.setdefault(real, path)) != path:
                raise ValueError(
                    f"'{other}' and '{path}' are links to one file in folders of different "
                    "partitions: name one of them"
                )
        self.now = {path: self.now[path] for path in path_of.values()}

    def _look_at_tables(self) -> None:
        log_format, options = self._logs.format, self._logs.options
        for path in self.tables:
            found = log_format.table_files and log_format.table_files(path, options)
            if found is None:
                self.now[path] = self._table(path)
            else:
                files = {file.path: file for file in found[0]}
                self.now |= files
                self._scan_of_file |= dict.fromkeys(files, found[1])

    def _table(self, path: str) -> Input:
        assert self._logs.format.version is not None  # noqa: S101 - each table has one
        return Input(path, 0, self._logs.format.version(path, self._logs.options))

    def look(self, paths: Iterable[str]) -> dict[str, Input]:
        """Look up some inputs again. Inputs that no longer exist are left out."""
        if not self.tables:
            return looked_up_all(paths, self._logs.options)
        return {  # A file of a table never changes.
            path: self._table(path) if path in self.tables else self.now[path] for path in paths
        }

    def chunks(self, paths: Iterable[str]) -> list[list[str]]:
        """Group inputs into chunks. One query counts the inputs of a chunk.

        They are of one table, and in folders of the same partition columns.
        """
        is_parquet = self._logs.format is PARQUET or self._scan_of_file
        max_files, max_bytes = _CHUNK_LIMITS if is_parquet else (1, 0)
        chunks: list[list[str]] = []
        growing: dict[object, tuple[list[str], int]] = {}
        for path in paths:
            alike = id(self._scan_of_file.get(path)), *partition_columns(path)
            chunk, size = growing.get(alike, ([], 0))
            if not chunk or len(chunk) >= max_files or size >= max_bytes:
                chunk, size = [], 0
                chunks.append(chunk)
            chunk.append(path)
            growing[alike] = chunk, size + (self.now[path].size or max_bytes // 16)
        return chunks

    def scan(self, chunk: Sequence[str]) -> pl.LazyFrame:
        """Scan the inputs of a chunk, with the column `FILE`."""
        if scan := self._scan_of_file.get(chunk[0]):
            return scan(chunk, FILE)
        files = [self.shown[path] for path in chunk]
        if self._logs.format is not PARQUET:
            [file] = files
            with find_files.naming_unreadable(file, self._logs.format.name):
                rows = self._logs.scan_one(file)
                has_columns = bool(rows.collect_schema())
            named = rows.with_columns(pl.lit(chunk[0]).alias(FILE))
            return named if has_columns else named.clear()
        hive_schema = self._logs.folder_dtypes[*partition_columns(chunk[0]),]
        scanned = read_files.scan_logs(replace(self._logs, files=files), FILE, hive_schema)
        names = [*map(find_files.absolute, files)]
        paths = pl.col(FILE).replace_strict(names, [*chunk], return_dtype=pl.String())
        return scanned.with_columns(paths)

    def other_names(self, known: Mapping[str, Input]) -> dict[str, str | None]:
        """The entries of a store that are counted under another path now: path → the other path.

        An input can be reached by another path if the entry or the input is a link, or if a file
        has become a folder with the input, or a folder a file. None stands for a file that is no
        longer part of its table.
        """
        away = [path for path in known if path not in self.now]
        if not away:
            return {}
        names = {where: path for path, where in find_files.real_paths(self.now).items()}
        inside = tuple(f"{table}/" for table in self.tables)
        places = sorted(names)
        names_now, nested = dict[str, str | None](), dict[str, str]()
        for path, where in find_files.real_paths(away).items():
            if where in names or f"{path}/".startswith(inside):
                names_now[path] = names.get(where)
                continue
            after = bisect(places, f"{where}/")
            below = (place for place in places[after : after + 1] if place.startswith(f"{where}/"))
            above = filter(names.__contains__, _parents(where))
            if (place := next(chain(below, above), None)) is not None:
                nested[path] = names[place]
        there = self._still_there(known[path] for path in nested)
        return names_now | {path: now for path, now in nested.items() if path not in there}

    def gone(self, known: Iterable[Input], named: Sequence[str]) -> list[str]:
        """The entries of a store that no longer exist, in the places that the user named.

        Each entry is looked up by its path, because a listing may be late, and a glob lists only
        its matches.
        """
        is_named = is_below(named)
        unseen = {
            entry.path: entry
            for entry in known
            if entry.path not in self.now and entry.path not in self.failures
        }
        real = find_files.real_paths(unseen)
        away = [path for path, where in real.items() if is_named(where)]
        there = self._still_there(unseen[path] for path in away)
        return [path for path in away if path not in there]

    def _still_there(self, entries: Iterable[Input]) -> set[str]:
        """The paths of the entries that still are a file or a table. A plain folder is neither."""
        options, entries = self._logs.options, [*entries]
        formats = {file.path: format_of(file.path, options) for file in entries if not file.size}
        tables = {path for path, known in formats.items() if known is not None and known.version}
        files = [entry.path for entry in entries if entry.size]
        return tables | {*looked_up_all(files, options)}


def _parents(path: str) -> Iterator[str]:
    """The folders that a path is in, the nearest first."""
    while (folder := os.path.dirname(path)) and folder != path:  # noqa: PTH120 - it may be a URL
        yield (path := folder)


def is_below(paths: Iterable[str]) -> Callable[[str], bool]:
    """A test whether a path is one of `paths`, or is below one. A glob stands for its root."""
    roots = (
        path if is_url(path) else real_path(path) for path in map(read_files.root_of_path, paths)
    )
    files = {root.rstrip("/") for root in roots}
    folders = tuple(f"{root}/" for root in files)
    return lambda path: path in files or path.startswith(folders)

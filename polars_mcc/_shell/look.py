"""Look up inputs: files, objects, files of tables, and whole tables, with size and version."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import polars as pl

from polars_mcc._shell import inputs
from polars_mcc._shell.folders import refused
from polars_mcc._shell.inputs import Logs
from polars_mcc._shell.kinds import PARQUET
from polars_mcc._shell.tables import Parts
from polars_mcc._store.kept import Input, partition_columns
from polars_mcc._store.places import (
    Listed,
    Options,
    before_pattern,
    content,
    is_url,
    looked_up_all,
)

FILE = "polars_mcc:file"
"""The column with the file of each row."""
_TICK = 0.05  # seconds; writes within one tick of the file system clock have the same time
_TOGETHER = 256, 2**26  # maximum number of files, and of bytes, that one query counts


class Files:
    """The current inputs: files, files of tables, or whole tables and stores."""

    def __init__(self, found: Logs, *, checksum: bool) -> None:
        """Look up each input once, in a listing where there is one."""
        self.found = found
        self._checksum = checksum
        self._parts: dict[str, Parts] = {}  # by table
        self.versions: dict[str, int] = {}  # by table
        self.failures: dict[str, Exception] = {}  # by input that cannot be looked up
        self.shown: dict[str, str] = {}  # the name that the user typed, by path
        self.now: dict[str, Input] = {}
        if found.kind.version is not None:
            for path in found.places.values():
                self._look_at_table(path)
            return
        self.shown = {path: file for file, path in found.places.items()}
        unlisted = [path for path in self.shown if path not in found.listed]
        listed = {**found.listed, **looked_up_all(unlisted, found.options)}
        times = [int(one.version) for one in listed.values() if not is_url(one.path)]
        age = time.time() - max(times, default=0) / 1e9
        if 0 <= age < _TICK:  # Another write would have the same time.
            time.sleep(_TICK - age)
            listed |= looked_up_all(unlisted, found.options)
        for path, file in self.shown.items():
            if path in listed:
                try:
                    self.now[path] = self._input(listed[path])
                except OSError as error:
                    self.failures[path] = error
            elif os.path.islink(file):  # noqa: PTH114 - Any other file was deleted meanwhile.
                self.failures[path] = refused(file, FileNotFoundError())

    def _look_at_table(self, path: str) -> None:
        kind, options = self.found.kind, self.found.options
        self.now = {file: one for file, one in self.now.items() if one.table != path}
        version = self._version(path)
        parts = kind.parts and kind.parts(path, options)
        if parts is None:
            self._parts.pop(path, None)
            self.now[path] = Input(path, 0, version, table=path)
        else:
            self._parts[path] = parts
            self.now |= {file: Input(file, 0, "", table=path) for file in parts.files}

    def _version(self, table: str) -> str:
        """Look up the current version of a table, and store it in `versions`."""
        assert self.found.kind.version is not None  # noqa: S101 - of each kind of table
        version = self.found.kind.version(table, self.found.options)
        self.versions[table], _ = version
        return str(version)

    def catch_up(self, known: Mapping[str, int]) -> bool:
        """Look up tables again if the store has a later version; True if a version changed."""
        before = {**self.versions}
        for table, version in before.items():
            if known.get(table, -1) > version:
                self._look_at_table(table)
        return self.versions != before

    def look(self, paths: Iterable[str]) -> dict[str, Input]:
        """Look up some inputs again; inputs that no longer exist are left out."""
        seen = [self.now[path] for path in paths if path in self.now]
        found = {one.path: self._as_whole(one) for one in seen if one.table is not None}
        files = [one.path for one in seen if one.table is None]
        listed = looked_up_all(files, self.found.options)
        return found | {path: self._input(one) for path, one in listed.items()}

    def _as_whole(self, one: Input) -> Input:
        """Update the version of a whole table. Files of a table never change."""
        return replace(one, version=self._version(one.path)) if one.path == one.table else one

    def _input(self, one: Listed) -> Input:
        if not self._checksum:
            return Input(one.path, one.size, one.version)
        checksum = hashlib.sha256()
        for part in content(one.path, self.found.options):
            checksum.update(part)
        return Input(one.path, one.size, one.version, checksum.hexdigest())

    def chunks(self, paths: Iterable[str]) -> list[list[str]]:
        """Group inputs into chunks, one query each: of one table, with equal partition columns."""
        most, bytes_ = _TOGETHER if self.found.kind is PARQUET or self._parts else (1, 0)
        found: list[list[str]] = []
        growing: dict[object, tuple[list[str], int]] = {}
        for path in paths:
            one = self.now[path]
            alike = one.table, *partition_columns(path)
            chunk, size = growing.get(alike, ([], 0))
            if not chunk or len(chunk) >= most or size >= bytes_:
                chunk, size = [], 0
                found.append(chunk)
            chunk.append(path)
            growing[alike] = chunk, size + (one.size or bytes_ // 16)
        return found

    def scan(self, chunk: Sequence[str]) -> pl.LazyFrame:
        """Scan some inputs, with the column `FILE`."""
        table = self.now[chunk[0]].table
        if table in self._parts:
            return self._parts[table].scan(chunk, FILE)
        files = [self.shown.get(path, path) for path in chunk]
        if self.found.kind is not PARQUET:
            [file] = files
            return self.found.scan_one(file).with_columns(pl.lit(chunk[0]).alias(FILE))
        scanned = inputs.scan(replace(self.found, files=files), FILE)
        paths = pl.col(FILE).replace_strict(files, [*chunk], return_dtype=pl.String())
        return scanned.with_columns(paths)


def moved(
    now: Mapping[str, Input], known: Mapping[str, Input], options: Options | None
) -> dict[str, Input]:
    """Find moved inputs: the old entry, which no longer exists, has the same name, size and time.

    A moved input may replace another one, which has moved too, and so on.
    """
    before: dict[object, list[Input]] = {}
    for path, one in known.items():
        is_here = path in now and one.is_as(now[path])
        if not is_here and one.table is None:
            before.setdefault(_alike(one), []).append(one)
    new = {
        path: one
        for path, one in now.items()
        if not (path in known and known[path].is_as(one)) and _alike(one) in before
    }
    elsewhere = {
        other.path for one in new.values() for other in before[_alike(one)] if other.path not in now
    }
    there = looked_up_all(elsewhere, options)
    found: dict[str, Input] = {}
    for path, one in new.items():
        several = [other for other in before[_alike(one)] if other.path not in there]
        if several:
            found[path] = max(several, key=lambda other: other.is_as(one))
            before[_alike(one)].remove(found[path])
    return found


def _alike(one: Input) -> object:
    return one.name, one.size, one.version


def is_below(paths: Iterable[str]) -> Callable[[str], bool]:
    """A test whether a path is in `paths`, or below a folder or the root of a glob in `paths`."""
    roots = {path: path if is_url(path) else os.path.realpath(path) for path in map(_root, paths)}
    files = {root.rstrip("/") for root in roots.values()}
    folders = tuple(root.rstrip("/") + "/" for root in files)
    return lambda path: path in files or path.startswith(folders)


def _root(path: str) -> str:
    is_named = not is_url(path) and os.path.exists(path)  # noqa: PTH110 - it may be a URL
    return path if is_named else before_pattern(path) or path

"""Inputs as they are now: files, objects, the files of a table, or a table as a whole."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import polars as pl

from polars_mcc._shell import inputs
from polars_mcc._shell.inputs import Logs
from polars_mcc._shell.kinds import PARQUET
from polars_mcc._shell.tables import Parts
from polars_mcc._store.kept import Input
from polars_mcc._store.places import Listed, Options, content, is_url, looked_up_all

FILE = "polars_mcc:file"
"""The column that says which file a row is of."""
_TICK = 0.05  # seconds that the clock of a file system may stand still
_TOGETHER = 256, 2**26  # files, and bytes of them, that are counted by one query


class Files:
    """The inputs as they are now: files, those of a table, or tables and stores as a whole."""

    def __init__(self, found: Logs, *, checksum: bool) -> None:
        """Look at each once, by a listing where there is one."""
        self._found = found
        self._checksum = checksum
        self._parts: dict[str, Parts] = {}  # by table
        self.versions: dict[str, int] = {}  # by table
        self.shown: dict[str, str] = {}  # as the user named it, by path
        self.now: dict[str, Input] = {}
        places = inputs.places(found.files)
        if found.kind.version is not None:
            for path in places.values():
                self._look_at_table(path)
            return
        self.shown = {path: file for file, path in places.items()}
        unlisted = [path for path in self.shown if path not in found.listed]
        listed = {**found.listed, **looked_up_all(unlisted, found.options)}
        times = [int(one.version) for one in listed.values() if not is_url(one.path)]
        age = time.time() - max(times, default=0) / 1e9
        if 0 <= age < _TICK:  # Else it could be written again at the same time.
            time.sleep(_TICK - age)
            listed |= looked_up_all(unlisted, found.options)
        # A file may have been deleted meanwhile.
        self.now = {path: self._input(listed[path]) for path in self.shown if path in listed}

    def _look_at_table(self, path: str) -> None:
        kind, options = self._found.kind, self._found.options
        assert kind.version is not None  # noqa: S101 - of each kind of table
        self.now = {file: one for file, one in self.now.items() if one.table != path}
        self.versions[path] = kind.version(path, options)
        parts = kind.parts and kind.parts(path, options)
        if parts is None:
            self._parts.pop(path, None)
            self.now[path] = Input(path, 0, str(self.versions[path]), table=path)
        else:
            self._parts[path] = parts
            self.now |= {file: Input(file, 0, "", table=path) for file in parts.files}

    def catch_up(self, known: Mapping[str, int]) -> bool:
        """Look again at tables that a store knows a later version of: whether there is another."""
        before = {**self.versions}
        for table, version in before.items():
            if known.get(table, -1) > version:
                self._look_at_table(table)
        return self.versions != before

    def look(self, paths: Iterable[str]) -> dict[str, Input]:
        """Some inputs as they are now, those that are there still."""
        seen = [self.now[path] for path in paths if path in self.now]
        found = {one.path: self._as_whole(one) for one in seen if one.table is not None}
        files = [one.path for one in seen if one.table is None]
        listed = looked_up_all(files, self._found.options)
        return found | {path: self._input(one) for path, one in listed.items()}

    def _as_whole(self, one: Input) -> Input:
        """A table that is one input; a file of a table stays what it is."""
        if self._found.kind.version is None or one.path != one.table:
            return one
        return replace(one, version=str(self._found.kind.version(one.path, self._found.options)))

    def _input(self, one: Listed) -> Input:
        if not self._checksum:
            return Input(one.path, one.size, one.version)
        checksum = hashlib.sha256()
        for part in content(one.path, self._found.options):
            checksum.update(part)
        return Input(one.path, one.size, one.version, checksum.hexdigest())

    def chunks(self, paths: Iterable[str]) -> list[list[str]]:
        """The inputs that one query is to count: of one table, with columns in the same folders."""
        most, bytes_ = _TOGETHER if self._found.kind is PARQUET or self._parts else (1, 0)
        found: list[list[str]] = []
        growing: dict[object, tuple[list[str], int]] = {}
        for path in paths:
            one = self.now[path]
            alike = one.table, *(part.partition("=")[0] for part in one.partitions)
            chunk, size = growing.get(alike, ([], 0))
            if not chunk or len(chunk) >= most or size >= bytes_:
                chunk, size = [], 0
                found.append(chunk)
            chunk.append(path)
            growing[alike] = chunk, size + (one.size or bytes_ // 16)
        return found

    def scan(self, chunk: Sequence[str]) -> pl.LazyFrame:
        """Some inputs, with a column that says which of them a row is of."""
        table = self.now[chunk[0]].table
        if table in self._parts:
            return self._parts[table].scan(chunk, FILE)
        files = [self.shown.get(path, path) for path in chunk]
        if self._found.kind is not PARQUET:
            [file] = files
            return self._found.scan_one(file).with_columns(pl.lit(chunk[0]).alias(FILE))
        scanned = inputs.scan(replace(self._found, files=files), FILE)
        paths = pl.col(FILE).replace_strict(files, [*chunk], return_dtype=pl.String())
        return scanned.with_columns(paths)


def moved(
    now: Mapping[str, Input], known: Mapping[str, Input], options: Options | None
) -> dict[str, Input]:
    """What new inputs were before: those of the same name, size and time that are there no more."""
    candidates: dict[object, list[Input]] = {}
    for path, one in known.items():
        if path not in now and one.table is None:
            candidates.setdefault((one.name, one.size, one.version), []).append(one)
    alike = {
        path: candidates[one.name, one.size, one.version]
        for path, one in now.items()
        if path not in known and (one.name, one.size, one.version) in candidates
    }
    there = looked_up_all({one.path for several in alike.values() for one in several}, options)
    found: dict[str, Input] = {}
    taken: set[str] = set()
    for path, several in alike.items():
        before = next((o for o in several if o.path not in there and o.path not in taken), None)
        if before is not None:
            taken.add(before.path)
            found[path] = before
    return found


def below(path: str) -> str:
    """What the paths of all inputs begin with that a path names: of a file, all of it."""
    prefix, *pattern = re.split(r"(?=[*?\[])", path, maxsplit=1)
    if pattern:
        prefix = prefix.rpartition("/")[0] or "."
    if is_url(prefix):
        return prefix.rstrip("/") + "/"
    place_ = os.path.realpath(prefix)
    return place_ + os.sep if os.path.isdir(place_) else place_  # noqa: PTH112

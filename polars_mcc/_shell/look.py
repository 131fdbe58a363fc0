"""Inputs as they are now: files, objects, the files of a table, or a table as a whole."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import polars as pl

from polars_mcc._shell import inputs
from polars_mcc._shell.inputs import Logs
from polars_mcc._shell.kinds import PARQUET
from polars_mcc._shell.tables import Parts
from polars_mcc._store.kept import Input
from polars_mcc._store.places import Options, content, exists, is_url, looked_up

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
        self.shown: dict[str, str] = {}  # as the user named it, by path
        self.now: dict[str, Input] = {}
        self.tables: set[str] = set()
        for file, path in inputs.places(found.files).items():
            if found.kind.version is None:
                self.shown[path] = file
                continue
            self.tables.add(path)
            parts = found.kind.parts and found.kind.parts(path, found.options)
            if parts is None:
                version = found.kind.version(path, found.options)
                self.now[path] = Input(path, 0, version, table=path)
            else:
                self._parts[path] = parts
                self.now |= {file: Input(file, 0, "", table=path) for file in parts.files}
        self.now |= self._looked()

    def _looked(self) -> dict[str, Input]:
        found: dict[str, Input] = {}
        for path in self.shown:
            listed = self._found.listed.get(path) or looked_up(path, self._found.options)
            if listed is not None:  # Else it was deleted meanwhile.
                found[path] = Input(path, listed.size, listed.version)
        latest = max(
            (int(one.version) for one in found.values() if not is_url(one.path)), default=0
        )
        age = time.time() - latest / 1e9
        if 0 <= age < _TICK:  # Else it could be written again at the same time.
            time.sleep(_TICK - age)
            return {path: again for path in found if (again := self.look(path))}
        return {path: self._with_checksum(one) for path, one in found.items()}

    def look(self, path: str) -> Input | None:
        """An input as it is now, if it is there still."""
        seen = self.now.get(path)
        if seen is not None and seen.table is not None:
            return seen
        found = looked_up(path, self._found.options)
        if found is None:
            return None
        return self._with_checksum(Input(path, found.size, found.version))

    def _with_checksum(self, one: Input) -> Input:
        if not self._checksum:
            return one
        checksum = hashlib.sha256()
        for part in content(one.path, self._found.options):
            checksum.update(part)
        return replace(one, checksum=checksum.hexdigest())

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


class Moves:
    """From where inputs have come: by their names, sizes and times."""

    def __init__(
        self, now: Mapping[str, Input], known: Mapping[str, Input], options: Options | None
    ) -> None:
        self._options = options
        self._known = {
            (one.name, one.size, one.version): one
            for path, one in known.items()
            if path not in now and one.table is None
        }

    def of(self, one: Input) -> Input | None:
        """What an input was called before, if there is nothing of that name now."""
        before = self._known.get((one.name, one.size, one.version))
        if before is None or one.table is not None or exists(before.path, self._options):
            return None
        del self._known[one.name, one.size, one.version]
        return before

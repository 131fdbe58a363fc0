"""A store of counts: numbered Parquet files. Each file is written once, whole, and never changed.

A file holds the counts of some inputs. Its metadata names these inputs, and the earlier files that
are still valid. The newest file is the state of the store: a file that it does not name is no
longer part of the store. So one step serves to add, correct or drop counts, and to merge small
files: write a file under the next number, if that number is free. If two processes try this at
once, one fails and starts again from the new state. A killed process has done the whole step, or
nothing.

A file that is no longer valid is deleted a day later, because a query may still read it.
"""

from __future__ import annotations

import io
import json
import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

import polars as pl

from polars_mcc._log.described import OF_STORE as INPUT
from polars_mcc._store.places import Options, Place, as_dict, place

MARK = "_polars_mcc.json"
"""The file that makes a folder a store. It describes the counts."""
N = "n"

_LAYOUT = 1  # the version of the file format
_ABOUT = "polars_mcc"  # the key in the metadata of a Parquet file
_LATER = 24 * 60 * 60  # seconds after which a file that is no longer valid is deleted
_LARGE = 2**22  # rows above which new files are not merged


@dataclass(frozen=True)
class Input:
    """An input, as it was when it was counted."""

    path: str
    size: int
    version: str
    checksum: str | None = None
    table: str | None = None  # the Delta or Iceberg table that the file belongs to
    rows: float = 0  # how many rows were counted

    def is_as(self, now: Input) -> bool:
        """Whether the input is unchanged, so that its counts are still right."""
        if partitions(self.path) != partitions(now.path):
            return False
        if now.checksum is not None:
            return self.checksum == now.checksum
        return (self.size, self.version) == (now.size, now.version)

    @property
    def name(self) -> str:
        """The file name, without folders."""
        return PurePosixPath(self.path).name


@dataclass(frozen=True)
class Segment:
    """The metadata of one file of a store."""

    inputs: Sequence[Input]
    dropped: Sequence[str]
    """Inputs of earlier files that are no longer part of the store."""
    live: Sequence[int]
    """The numbers of the earlier files that are still valid."""
    dead: Sequence[tuple[int, float]]
    """The files that are no longer valid, and since when (seconds since 1970)."""
    tables: Mapping[str, int]
    """The versions of the Delta and Iceberg tables that the store follows."""
    heights: Sequence[int]
    """The number of rows of counts of each input."""

    @property
    def height(self) -> int:
        """The number of rows of counts of all inputs."""
        return sum(self.heights)

    @property
    def size(self) -> int:
        """The cost of reading the file: a row of counts costs one, and so does an input."""
        return self.height + len(self.inputs)


@dataclass(frozen=True)
class State:
    """The content of a store, according to its newest file."""

    newest: int  # 0 if there is no file
    segments: Mapping[int, Segment]  # the valid files, oldest first
    current: Mapping[str, tuple[int, int]]
    """Where the counts of each input are: the file, and the index of the input in the file."""
    dead: Sequence[tuple[int, float]] = ()
    tables: Mapping[str, int] = field(default_factory=dict)
    """The versions of the tables that the store follows."""

    @cached_property
    def inputs(self) -> dict[str, Input]:
        """The inputs whose counts are in the store, by path."""
        return {
            path: self.segments[number].inputs[index]
            for path, (number, index) in self.current.items()
        }

    def valid(self, number: int) -> list[int]:
        """The indexes of the inputs whose valid counts are in this file."""
        inputs = self.segments[number].inputs
        at = enumerate(one.path for one in inputs)
        return [index for index, path in at if self.current.get(path) == (number, index)]

    def without(self, paths: Iterable[str]) -> State:
        """The state without these inputs."""
        gone = {*paths}
        kept = {path: at for path, at in self.current.items() if path not in gone}
        return replace(self, current=kept)


def _current(segments: Mapping[int, Segment]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for number, segment in segments.items():
        for path in segment.dropped:
            found.pop(path, None)
        for index, one in enumerate(segment.inputs):
            found[one.path] = number, index
    return found


@dataclass(frozen=True)
class Change:
    """A change to a store: counts to add or replace, and inputs to drop."""

    inputs: Sequence[Input] = ()
    counts: Sequence[pl.DataFrame] = ()  # one frame per input
    dropped: Sequence[str] = ()
    tables: Mapping[str, int] = field(default_factory=dict)  # their new versions


class Store:
    """A folder of counts."""

    def __init__(self, folder: Place) -> None:
        """Take a folder, which is a store or may become one."""
        self._place = folder
        self._read: dict[int, Segment] = {}

    @property
    def path(self) -> str:
        """The path or URL of the folder."""
        return self._place.path

    def known(self) -> dict[str, Any] | None:
        """The description of the counts; None if the folder is new or empty."""
        try:
            return self.about
        except FileNotFoundError:
            others = [name for name in self._place.names() if not name.startswith(".")]
        if others and MARK not in others:
            msg = (
                f"'{self.path}' is not a store of counts, and has '{others[0]}': use a folder "
                "that is empty or new"
            )
            raise ValueError(msg)
        return None

    def made(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """Make the folder a store, unless another process was first. Return the description."""
        self._place.prepare()
        known = {"layout": _LAYOUT, "id": uuid.uuid4().hex, **about}
        self._place.create(MARK, json.dumps(known, indent=1).encode())
        return self.about

    @cached_property
    def about(self) -> dict[str, Any]:
        """The description of the counts. It never changes."""
        try:
            about: dict[str, Any] = json.loads(self._place.read(MARK))
        except ValueError as error:
            msg = f"'{self.path}/{MARK}' is damaged ({error}): make the store again in a new folder"
            raise ValueError(msg) from error
        if about.get("layout") != _LAYOUT:
            msg = (
                f"'{self.path}' was made by another version of polars_mcc: make the store again in "
                "a new folder"
            )
            raise ValueError(msg)
        return about

    def look(self) -> None:
        """Raise an OSError if the folder is in a bucket that does not exist."""
        self._place.names()

    def state(self) -> State:
        """Read the current state of the store."""
        newest = max(map(_number, self._place.names()), default=0)
        newest = self._last_from(newest)
        if not newest:
            return State(0, {}, {})
        last = self._segment(newest)
        segments = {number: self._segment(number) for number in (*last.live, newest)}
        self._read = {**segments}
        return State(newest, segments, _current(segments), last.dead, last.tables)

    def _last_from(self, newest: int) -> int:
        """The newest file, even if the listing is late and misses the last files."""
        while True:
            try:
                self._segment(newest + 1)
            except FileNotFoundError:
                return newest
            newest += 1

    def _segment(self, number: int) -> Segment:
        """Read the metadata of a file. They never change, so they are cached."""
        if number in self._read:
            return self._read[number]
        source = self._source(number)
        options = as_dict(self._place.options)
        about = pl.read_parquet_metadata(source, storage_options=options).get(_ABOUT)
        if about is None:
            msg = (
                f"'{source}' is in the folder of a store, but is not part of it: move it elsewhere"
            )
            raise ValueError(msg)
        known = json.loads(about)
        inputs = [Input(*one) for one in known.pop("inputs")]
        dead = [(number, since) for number, since in known.pop("dead")]
        found = Segment(inputs=inputs, dead=dead, **known)
        self._read[number] = found
        return found

    def _source(self, number: int) -> str:
        return f"{self.path}/{_name(number)}"

    def scan(self) -> pl.LazyFrame:
        """Scan the current counts."""
        state = self.state()
        if not state.newest:
            msg = (
                f"'{self.path}' has no counts yet: add counts with polars-mcc counts LOGS --out "
                f"{self.path}"
            )
            raise ValueError(msg)
        valid = {number: state.valid(number) for number in state.segments}
        inputs = {number: segment.inputs for number, segment in state.segments.items()}
        whole = [number for number in valid if len(valid[number]) == len(inputs[number])]
        scans = [self._scanned(whole)] if whole else []
        scans += [self._rows(number, valid[number]) for number in valid if number not in whole]
        return pl.concat(scans).drop(INPUT)

    def counts(self, state: State, paths: Iterable[str]) -> dict[str, pl.DataFrame]:
        """Read the counts of some inputs, by path."""
        wanted: dict[int, dict[str, int]] = {}
        for path in paths:
            number, index = state.current[path]
            wanted.setdefault(number, {})[path] = index
        found: dict[str, pl.DataFrame] = {}
        for number, indexes in wanted.items():
            rows = self._rows(number, [*indexes.values()]).collect()
            found |= zip(indexes, apart(rows, INPUT, indexes.values()), strict=True)
        return found

    def _scanned(self, numbers: Sequence[int]) -> pl.LazyFrame:
        sources = [self._source(number) for number in numbers]
        return pl.scan_parquet(sources, glob=False, storage_options=as_dict(self._place.options))

    def _rows(self, number: int, indexes: Sequence[int]) -> pl.LazyFrame:
        """Scan the rows of some inputs of a file. `indexes` number the inputs."""
        wanted = pl.Series(indexes, dtype=pl.Int32())
        return self._scanned([number]).filter(pl.col(INPUT).is_in(wanted.implode()))

    def change(self, state: State, change: Change) -> bool:
        """Make the whole change; or return False if another process changed the store first."""
        kept = state.without([*change.dropped, *(one.path for one in change.inputs)])
        merged = self._to_merge(kept, change)
        inputs, frames = [*change.inputs], [*change.counts]
        heights = [frame.height for frame in frames]
        rows = [
            frame.with_columns(pl.lit(index, pl.Int32()).alias(INPUT))
            for index, frame in enumerate(frames)
        ]
        for number in merged:
            if not (valid := kept.valid(number)):
                continue
            places = pl.int_range(len(inputs), len(inputs) + len(valid), dtype=pl.Int32, eager=True)
            frame = self._rows(number, valid).collect()
            old = pl.Series(valid, dtype=pl.Int32())
            rows.append(frame.with_columns(pl.col(INPUT).replace_strict(old, places)))
            inputs += [state.segments[number].inputs[index] for index in valid]
            heights += [state.segments[number].heights[index] for index in valid]
        live = [number for number in state.segments if number not in merged]
        elsewhere = {one.path for number in live for one in state.segments[number].inputs}
        dropped = {
            *change.dropped,
            *(path for number in merged for path in state.segments[number].dropped),
        }
        dropped = {path for path in dropped if path in elsewhere and path not in kept.current}
        now = time.time()
        about = {
            "inputs": [astuple(one) for one in inputs],
            "heights": heights,
            "dropped": sorted(dropped - {one.path for one in inputs}),
            "live": live,
            "tables": {**state.tables, **change.tables},
            "dead": [*_recent(state.dead), *((number, now) for number in merged)],
        }
        # A change that only drops inputs writes a file without rows.
        data = pl.concat(rows or [self._scanned([state.newest]).head(0).collect()])
        file = io.BytesIO()
        data.write_parquet(file, metadata={_ABOUT: json.dumps(about)})
        return self._place.create(_name(state.newest + 1), file.getvalue())

    def _to_merge(self, state: State, change: Change) -> list[int]:
        """Choose the files to merge with a change, so that few files and few dead rows remain.

        A file is merged if more than half of it is no longer valid. The newest files are merged
        too, up to `_LARGE` rows, while a file is at most twice as large as what it is merged with.
        So the number of files grows with the logarithm of the rows, and so does how often a row
        is rewritten.
        """
        merged = [
            number
            for number, segment in state.segments.items()
            if 2 * sum(1 + segment.heights[index] for index in state.valid(number)) < segment.size
        ]
        size = sum(counts.height for counts in change.counts) + len(change.inputs)
        size += sum(state.segments[number].size for number in merged)
        for number in [*state.segments][::-1]:
            more = state.segments[number].size
            if number in merged:
                continue
            if more > 2 * size or more + size > _LARGE:
                break
            merged.append(number)
            size += more
        return sorted(merged)

    def clear(self, state: State) -> None:
        """Delete the files that have been invalid for a day, or that were never valid."""
        self._place.prepare()
        now = time.time()
        known = dict(state.dead)
        written = {_number(name): since for name, since in self._place.names().items()}
        old = [
            number
            for number, since in written.items()
            if 0 < number < state.newest
            and number not in state.segments
            and now - known.get(number, since) > _LATER
        ]
        if old:
            self._place.remove(map(_name, sorted(old)))


def partitions(path: str) -> list[str]:
    """The folders `name=value` of a path: hive partitions."""
    return [part for part in path.split("/")[:-1] if "=" in part]


def partition_columns(path: str) -> list[str]:
    """The names of the columns that the hive partitions of a path make."""
    return [part.partition("=")[0] for part in partitions(path)]


def apart(rows: pl.DataFrame, column: str, values: Iterable[object]) -> list[pl.DataFrame]:
    """Split rows by the values of a column, one frame per value, without the column."""
    by_value = rows.partition_by(column, as_dict=True, include_key=False)
    none = rows.drop(column).clear()
    return [by_value.get((value,), none) for value in values]


def opened(path: str, options: Options | None = None) -> Store:
    """Open the store in a folder, or raise a ValueError."""
    store = Store(place(path, options))
    try:
        store.about  # noqa: B018 - it is read
    except (FileNotFoundError, NotADirectoryError):
        store.look()
        msg = (
            f"'{path}' is not a store of counts: make one with polars-mcc counts LOGS --out {path}"
        )
        raise ValueError(msg) from None
    return store


def is_store(path: str, options: Options | None) -> bool:
    """Whether a folder is a store."""
    try:
        place(path, options).read(MARK)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _recent(dead: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    """The files that became invalid in the last day. `clear` deletes older ones by write time."""
    now = time.time()
    return [(number, since) for number, since in dead if now - since <= _LATER]


def _name(number: int) -> str:
    return f"{number:08}.parquet"


def _number(name: str) -> int:
    """The number in the name of a file of counts; 0 for any other file."""
    found = re.fullmatch(r"(\d{8,})\.parquet", name)
    return int(found[1]) if found else 0

"""A store of counts: files with numbers, each of which is put there once, whole, and never changed.

A file holds counts of some inputs, and says in its metadata which inputs these are, and which files
before it are still valid. The newest file is the state of the store: what it does not name is no
longer part of it. So to add counts, to correct or forget them, and to merge small files into a
large one are all the same step: a file is put under the next number, if there is none of it yet.
Of two processes that try, one has to look again. A process that is killed has done all of a step,
or nothing.

Files that are no longer valid are deleted a day later: a query may still read them.
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
"""The file that makes a folder a store: what its counts are of."""
N = "n"

_LAYOUT = 1  # of the files; another number is that of another version of polars_mcc
_ABOUT = "polars_mcc"  # the entry in the metadata of a file
_LATER = 24 * 60 * 60  # seconds after which a file that is no longer valid is deleted
_LARGE = 2**22  # rows of a file that is large enough


@dataclass(frozen=True)
class Input:
    """What an input was like when it was counted."""

    path: str
    size: int
    version: str
    checksum: str | None = None
    table: str | None = None  # the table that it is a file of
    rows: float = 0  # how many its counts are of

    def is_as(self, now: Input) -> bool:
        """Whether its counts are those of an input as that is now."""
        if partitions(self.path) != partitions(now.path):
            return False
        if now.checksum is not None:
            return self.checksum == now.checksum
        return (self.size, self.version) == (now.size, now.version)

    @property
    def name(self) -> str:
        """The name of the file."""
        return PurePosixPath(self.path).name


@dataclass(frozen=True)
class Segment:
    """A file of a store."""

    inputs: Sequence[Input]
    dropped: Sequence[str]
    """Inputs of files before it that are no longer part of the store."""
    live: Sequence[int]
    """The files before it that are still valid."""
    dead: Sequence[tuple[int, float]]
    """Files that are not, and since when."""
    tables: Mapping[str, int]
    """The versions of tables that the store follows."""
    heights: Sequence[int]
    """The rows of each of the inputs."""

    @property
    def height(self) -> int:
        """The rows of all inputs."""
        return sum(self.heights)

    @property
    def size(self) -> int:
        """How much there is to read: of many inputs without rows, their names."""
        return self.height + len(self.inputs)


@dataclass(frozen=True)
class State:
    """What a store has, as its newest file says."""

    newest: int  # 0 if there is no file
    segments: Mapping[int, Segment]  # the valid ones, oldest first
    current: Mapping[str, tuple[int, int]]
    """Where the counts of each input are: the file, and the number in it."""
    dead: Sequence[tuple[int, float]] = ()
    tables: Mapping[str, int] = field(default_factory=dict)
    """The versions of tables that it follows."""

    @cached_property
    def inputs(self) -> dict[str, Input]:
        """The inputs whose counts are in the store."""
        return {
            path: self.segments[number].inputs[index]
            for path, (number, index) in self.current.items()
        }

    def valid(self, number: int) -> list[int]:
        """The numbers of the inputs of a file whose counts in it are valid."""
        inputs = self.segments[number].inputs
        at = enumerate(one.path for one in inputs)
        return [index for index, path in at if self.current.get(path) == (number, index)]

    def without(self, paths: Iterable[str]) -> State:
        """The state, if it had not these inputs."""
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
    """What is to become of a store: counts to add or replace, inputs to drop."""

    inputs: Sequence[Input] = ()
    counts: Sequence[pl.DataFrame] = ()  # of each of the inputs
    dropped: Sequence[str] = ()
    tables: Mapping[str, int] = field(default_factory=dict)  # their versions from now on


class Store:
    """A folder of counts."""

    def __init__(self, folder: Place) -> None:
        """Look at a folder, which may be a store or become one."""
        self._place = folder
        self._read: dict[int, Segment] = {}

    @property
    def path(self) -> str:
        """Where it is."""
        return self._place.path

    def known(self) -> dict[str, Any] | None:
        """What its counts are of; None if it is no store, and may become one."""
        try:
            return self.about
        except FileNotFoundError:
            others = [name for name in self._place.names() if not name.startswith(".")]
        if others and MARK not in others:
            msg = (
                f"'{self.path}' is not a store of counts, and has '{others[0]}': name a folder "
                "that is empty, or new"
            )
            raise ValueError(msg)
        return None

    def made(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """Make a folder a store, unless another process has: what its counts are of."""
        self._place.prepare()
        known = {"layout": _LAYOUT, "id": uuid.uuid4().hex, **about}
        self._place.create(MARK, json.dumps(known, indent=1).encode())
        return self.about

    @cached_property
    def about(self) -> dict[str, Any]:
        """What its counts are of, which does not change."""
        try:
            about: dict[str, Any] = json.loads(self._place.read(MARK))
        except ValueError as error:
            msg = f"'{self.path}/{MARK}' is damaged ({error}): keep the counts in a new folder"
            raise ValueError(msg) from error
        if about.get("layout") != _LAYOUT:
            msg = (
                f"'{self.path}' is a store of another version of polars_mcc: keep the counts again "
                "in a new folder"
            )
            raise ValueError(msg)
        return about

    def look(self) -> None:
        """Raise an OSError if the folder is in a bucket that is not there."""
        self._place.names()

    def state(self) -> State:
        """What it has now."""
        newest = max(map(_number, self._place.names()), default=0)
        newest = self._last_from(newest)
        if not newest:
            return State(0, {}, {})
        last = self._segment(newest)
        segments = {number: self._segment(number) for number in (*last.live, newest)}
        self._read = {**segments}
        return State(newest, segments, _current(segments), last.dead, last.tables)

    def _last_from(self, newest: int) -> int:
        """The newest file, also if a listing was late: a file before it may be the last listed."""
        while True:
            try:
                self._segment(newest + 1)
            except FileNotFoundError:
                return newest
            newest += 1

    def _segment(self, number: int) -> Segment:
        """What the metadata of a file say; they do not change."""
        if number in self._read:
            return self._read[number]
        source = self._source(number)
        options = as_dict(self._place.options)
        about = pl.read_parquet_metadata(source, storage_options=options).get(_ABOUT)
        if about is None:
            msg = f"'{source}' is in a store of counts, but not of it: move it elsewhere"
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
        """Its counts, as it has them now."""
        state = self.state()
        if not state.newest:
            msg = f"'{self.path}' has no counts yet: polars-mcc counts LOGS --out {self.path}"
            raise ValueError(msg)
        valid = {number: state.valid(number) for number in state.segments}
        inputs = {number: segment.inputs for number, segment in state.segments.items()}
        whole = [number for number in valid if len(valid[number]) == len(inputs[number])]
        scans = [self._scanned(whole)] if whole else []
        scans += [self._rows(number, valid[number]) for number in valid if number not in whole]
        return pl.concat(scans).drop(INPUT)

    def counts(self, state: State, paths: Iterable[str]) -> dict[str, pl.DataFrame]:
        """The counts of some inputs."""
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
        """The rows of a file that are of some of its inputs, by their numbers."""
        wanted = pl.Series(indexes, dtype=pl.Int32())
        return self._scanned([number]).filter(pl.col(INPUT).is_in(wanted.implode()))

    def change(self, state: State, change: Change) -> bool:
        """Do all of a change at once; or nothing, if another process has changed the store."""
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
        # Without rows, if inputs are only dropped.
        data = pl.concat(rows or [self._scanned([state.newest]).head(0).collect()])
        file = io.BytesIO()
        data.write_parquet(file, metadata={_ABOUT: json.dumps(about)})
        return self._place.create(_name(state.newest + 1), file.getvalue())

    def _to_merge(self, state: State, change: Change) -> list[int]:
        """The files that a change is merged with, so that there are few, and each row is read.

        Those of more rows that are no longer valid than rows that are; and of the newest those that
        are not much larger than what they are merged with. So there are about as many files as the
        logarithm of the rows, and a row is written again about as often.
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
        """Delete files that have not been valid for long, and those that never were."""
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
    """The folders `name=value` of a path, which are columns too."""
    return [part for part in path.split("/")[:-1] if "=" in part]


def partition_columns(path: str) -> list[str]:
    """The names of the columns that the folders of a path are."""
    return [part.partition("=")[0] for part in partitions(path)]


def apart(rows: pl.DataFrame, column: str, values: Iterable[object]) -> list[pl.DataFrame]:
    """The rows of each of some values of a column, without the column."""
    by_value = rows.partition_by(column, as_dict=True, include_key=False)
    none = rows.drop(column).clear()
    return [by_value.get((value,), none) for value in values]


def opened(path: str, options: Options | None = None) -> Store:
    """The store in a folder, or a ValueError."""
    store = Store(place(path, options))
    try:
        store.about  # noqa: B018 - it is read
    except (FileNotFoundError, NotADirectoryError):
        store.look()
        msg = f"'{path}' is no store of counts: polars-mcc counts LOGS --out {path} makes one"
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
    """Files whose end is worth knowing: those before are deleted by the time of their writing."""
    now = time.time()
    return [(number, since) for number, since in dead if now - since <= _LATER]


def _name(number: int) -> str:
    return f"{number:08}.parquet"


def _number(name: str) -> int:
    """The number of a file of counts; 0 if it is none."""
    found = re.fullmatch(r"(\d{8,})\.parquet", name)
    return int(found[1]) if found else 0

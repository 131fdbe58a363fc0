"""Put the counts of inputs into a store, while other processes may do the same."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_mcc._log import defaults
from polars_mcc._log.plan_errors import reason
from polars_mcc._shell.asked import Asked
from polars_mcc._shell.inputs import Logs
from polars_mcc._shell.look import FILE, Files, is_below, moved
from polars_mcc._shell.outputs import said_of_disk
from polars_mcc._store.kept import Change, Input, N, State, Store, apart
from polars_mcc._store.places import is_there, looked_up_all
from polars_mcc._store.rows import counts_to_keep, description

Status: TypeAlias = Literal[
    "counted", "replaced", "moved", "unchanged", "removed", "gone", "forgotten"
]
STATUSES: tuple[Status, ...] = get_args(Status)

_Counted: TypeAlias = tuple[Input, pl.DataFrame, Input | None]
"""An input, its counts, and the entry of the input in the store before the count."""

_TRIES = 5
_OFTEN = 1.0  # seconds between two writes to the store


@dataclass
class Keeping:
    """The state of one run that puts the counts of inputs into a store."""

    asked: Asked
    files: Files
    store: Store
    watch: Callable[[Logs], Callable[[int], None]]
    done: dict[str, tuple[Status, float]] = field(default_factory=dict)
    failures: dict[str, Exception] = field(default_factory=dict)
    is_as_it_was: bool = False
    """Whether the store is unchanged because a new version of a table could not be read fully."""
    schema: dict[str, str] = field(init=False)
    """The schema of the counts."""
    _pending: list[_Counted] = field(default_factory=list)
    _note: Callable[[int], None] | None = None

    def make(self) -> None:
        """Create the store, or check that it has counts of the same columns and filter."""
        self.failures |= self.files.failures
        wanted = _wanted(self.asked, self.store.path)
        known = self.store.known()
        if known is None:
            counts, columns = self._first()
            schema = {name: str(dtype) for name, dtype in counts.collect_schema().items()}
            known = self.store.made({**wanted, "columns": columns, "schema": schema})
        for name, value in wanted.items():
            if known.get(name) != value:
                msg = (
                    f"the store '{self.store.path}' has counts with {name}={known.get(name)!r}, "
                    f"not {value!r}; pass the same words in the same order, or use another store"
                )
                raise ValueError(msg)
        self.schema = known["schema"]

    @property
    def rows_dtype(self) -> pl.DataType:
        """The dtype of row counts."""
        return pl.Float64() if self.schema[N] == str(pl.Float64()) else pl.Int64()

    def _first(self) -> tuple[pl.LazyFrame, dict[str, object]]:
        """The counts of the first readable input, and the description of the log."""
        failures: list[Exception] = []
        for path in [*self.files.now]:
            with _collected(failures):
                asked = self.asked.of(self.files.scan([path]))
                counts = counts_to_keep(asked.log, asked.keys)
                counts.collect_schema()
                return counts, description(asked.log)
        failures += self.files.failures.values()
        raise next(iter(failures), FileNotFoundError("all inputs have been deleted"))

    def keep(self) -> None:
        """Count until the store has the counts of each input as it is now."""
        for tried in itertools.count():
            state = self.store.state()
            self.files.catch_up(state.tables)
            todo = self._todo(state)
            others = [*(one for one, *_ in self._pending), *self._removed(state)]
            late = [*todo, *(one.path for one in others)]
            if not late:
                self.store.clear(state)
                return
            if tried == _TRIES:
                name = self.files.shown.get(late[0], late[0])
                msg = f"'{name}' changes while it is counted; try again when it is complete"
                raise OSError(msg)
            # All changes of a table are one write: no query sees a part of a version.
            tables = self.files.versions
            is_one_step = any(one.table in tables for one in state.inputs.values())
            latest = time.monotonic()
            if todo and self._note is None:
                files = [self.files.shown.get(path, path) for path in todo]
                self._note = self.watch(replace(self.files.found, files=files))
            with _at_once(self._counted, self.files.chunks(todo)) as answers:
                for counted in answers:
                    self._pending += [(one, rows, todo[one.path]) for one, rows in counted]
                    if time.monotonic() - latest > _OFTEN and not is_one_step:
                        self._put()
                        latest = time.monotonic()
            if is_one_step and self.failures:
                self._pending.clear()
                self.is_as_it_was = True
                return
            self._put(of_tables=True)

    def _removed(self, state: State) -> list[Input]:
        """The files in the store that are no longer part of their tables."""
        now, tables = self.files.now, self.files.versions
        return [
            one for path, one in state.inputs.items() if one.table in tables and path not in now
        ]

    def _todo(self, state: State) -> dict[str, Input | None]:
        """The inputs to count, each with its entry in the store, if any.

        A moved input, or one with a new time but the same content, is not counted again: its old
        counts become pending under the new entry.
        """
        todo: dict[str, Input | None] = {}
        known, now = state.inputs, self.files.now
        self.done = {
            path: told for path, told in self.done.items() if path in now or told[0] == "removed"
        }
        again: dict[str, Input] = {}  # counts that are still valid, by the new path
        from_where = moved(now, known, self.asked.storage_options)
        for path, one in now.items():
            if path in self.failures:
                continue
            before = from_where.get(path, known.get(path))
            status: Status = "counted"
            if before is not None:
                same: Status = "moved" if path in from_where else "unchanged"
                status = same if before.is_as(one) else "replaced"
            self.done.setdefault(path, (status, 0))
            if before is None or not before.is_as(one):
                todo[path] = before
            elif (before.path, before.version) != (path, one.version):
                again[path] = before
            else:
                self.done[path] = (self.done[path][0], before.rows)
        counts = self.store.counts(state, {one.path for one in again.values()})
        self._pending += [
            (replace(now[path], rows=before.rows), counts[before.path], before)
            for path, before in again.items()
        ]
        return todo

    def _counted(self, chunk: Sequence[str]) -> list[tuple[Input, pl.DataFrame]]:
        """Count some inputs. Inputs that changed during the count are left out, and tried again."""
        try:
            asked = self.asked.of(self.files.scan(chunk))
            answer = counts_to_keep(asked.log, [*asked.keys, FILE]).collect()
            self._check_schema(chunk[0], answer)
        except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
            if len(chunk) > 1:  # Count each alone, to find the one that fails.
                return [counted for path in chunk for counted in self._counted([path])]
            if not self.files.look(chunk):  # It was deleted during the count.
                del self.files.now[chunk[0]]
                return []
            is_panic = not isinstance(error, Exception)
            failure = pl.exceptions.ComputeError(reason(error)) if is_panic else error
            self.failures[chunk[0]] = failure
            self.done.pop(chunk[0], None)
            return []
        found = []
        again = self.files.look(chunk)
        for path, counts in zip(chunk, apart(answer, FILE, chunk), strict=True):
            before, now = self.files.now[path], again.get(path)
            if now == before:
                rows = _total(counts[N])
                assert self._note is not None  # noqa: S101 - there is something to count
                self._note(int(rows))
                found.append((replace(before, rows=rows), counts))
            elif now is None:
                del self.files.now[path]
            else:
                self.files.now[path] = now
        return found

    def _check_schema(self, file: str, answer: pl.DataFrame) -> None:
        if {*answer.columns} - {FILE} != {*self.schema}:
            msg = (
                f"the counts of '{file}' have the columns {answer.drop(FILE).columns}, but the "
                f"store '{self.store.path}' has {[*self.schema]}; use another store"
            )
            raise pl.exceptions.SchemaError(msg)
        for name, dtype in answer.schema.items():
            if name != FILE and str(dtype) != self.schema[name]:
                msg = (
                    f"column '{name}' is {dtype} in '{file}', but {self.schema[name]} in the store "
                    f"'{self.store.path}'; write it as {self.schema[name]}, or use another store"
                )
                raise pl.exceptions.SchemaError(msg)

    def _put(self, *, of_tables: bool = False) -> None:
        """Write pending counts to the store, except those that another process has written."""
        while self._pending or of_tables:
            state = self.store.state()
            if self.files.catch_up(state.tables):
                break
            ready = self._ready(state)
            moved_from = [
                before.path
                for one, _, before in ready
                if before is not None
                if before.path != one.path and state.inputs.get(before.path) == before
            ]
            removed = self._removed(state) if of_tables else []
            change = Change(
                [one for one, *_ in ready],
                [rows for _, rows, _ in ready],
                [*moved_from, *(one.path for one in removed)],
                self.files.versions,
            )
            if not (change.inputs or change.dropped) or self._change(state, change):
                self.done |= {one.path: ("removed", one.rows) for one in removed}
                break
        self._pending.clear()

    def _ready(self, state: State) -> list[_Counted]:
        """The pending counts that are neither outdated nor already written by another process."""
        others = [
            one
            for one, _, before in self._pending
            if (has := state.inputs.get(one.path)) is not None and has not in (before, one)
        ]
        now = self.files.look([one.path for one in others])
        late = {one.path for one in others if now.get(one.path) != replace(one, rows=0)}
        return [
            pending
            for pending in self._pending
            if (one := pending[0]).path not in late and state.inputs.get(one.path) != one
        ]

    def _change(self, state: State, change: Change) -> bool:
        with said_of_disk(f"cannot write to the store '{self.store.path}'"):
            return self.store.change(state, change)

    def gone(self, named: Sequence[str]) -> list[Input]:
        """The inputs in the store that no longer exist, in the places that the user named.

        Each input is looked up by name: a listing may be late, and a glob lists only its matches.
        """
        files, options = self.files, self.asked.storage_options
        is_named = is_below(named)
        state = self.store.state()
        away = [
            one
            for path, one in state.inputs.items()
            if path not in files.now and path not in self.failures and is_named(one.table or path)
        ]
        tables = {one.table for one in away if one.table not in {None, *files.versions}}
        no_more = {table for table in tables if table and not is_there(table, options)}
        there = looked_up_all([one.path for one in away if one.table is None], options)
        return [
            one
            for one in away
            if (one.path not in there if one.table is None else one.table in no_more)
        ]

    def drop(self, gone: Sequence[Input]) -> None:
        """Drop the counts of inputs, except those that another process has counted again."""
        while True:
            state = self.store.state()
            dropped = [one.path for one in gone if state.inputs.get(one.path) == one]
            if not dropped or self._change(state, Change(dropped=dropped)):
                return


def _total(counts: pl.Series) -> float:
    """Add up row counts without an overflow."""
    if counts.dtype.is_integer():
        counts = counts.cast(pl.Int128)
    total: float = counts.sum()  # type: ignore[assignment]
    return total


@contextmanager
def _collected(failures: list[Exception]) -> Iterator[None]:
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        failures.append(error)


@contextmanager
def _at_once(
    do: Callable[[Sequence[str]], list[tuple[Input, pl.DataFrame]]],
    chunks: Sequence[Sequence[str]],
) -> Iterator[Iterator[list[tuple[Input, pl.DataFrame]]]]:
    """Run chunks in threads. After an interrupt, only the chunks that have begun are finished."""
    executor = ThreadPoolExecutor(min(max(len(chunks), 1), os.cpu_count() or 1))
    try:
        answers = as_completed([executor.submit(do, chunk) for chunk in chunks])
        yield (one.result() for one in answers)
    finally:
        executor.shutdown(cancel_futures=True)


def _wanted(asked: Asked, store: str) -> dict[str, object]:
    """What the counts of a store are of. It is the same for all inputs."""
    typed = asked.typed
    for name, value in typed.items():
        if name not in {"keys", "gold", "pred", "weight"} and value is not None:
            flag = f"--{name.replace('_', '-')}"
            instead = _INSTEAD.get(name, f"pass {flag} when you score the store")
            msg = f"the store '{store}' cannot keep {flag}; {instead}"
            raise ValueError(msg)
    asked.check_rows()
    return {
        "by": typed.get("keys") or [],
        "gold": typed.get("gold", defaults.GOLD),
        "pred": typed.get("pred") or [defaults.PRED],
        "weight": typed.get("weight"),
        "filter": asked.filter,
    }


_INSTEAD = {
    "cluster": "make it a key with --by, and pass --cluster when you score the store",
    "sample_weight": "score the logs themselves",
    "score": "score the logs themselves",
}
"""What to do instead, for options that counts cannot hold."""

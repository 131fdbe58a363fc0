"""Counts that are kept: what is new in logs is counted, and put into a store, exactly once.

What is promised, and the tests of it in `tests/shell/` and `tests/store/`:

- what is kept is not read again: `test_no_rows_are_read_again`,
  `test_no_input_is_opened_that_a_listing_tells`, `test_files_that_a_table_keeps_are_not_read_again`
- what has changed is replaced: `test_what_is_new_is_counted_and_what_has_changed_is_replaced`,
  `test_an_etag_tells_what_sizes_do_not`, `test_checksums_see_what_sizes_and_times_do_not`
- what changes meanwhile is counted as it is then:
  `test_an_input_that_changes_meanwhile_is_counted_as_it_is_then`,
  `test_an_object_that_changes_after_it_was_listed_is_counted_as_it_is_then`
- what was moved takes its counts along: `test_what_is_moved_takes_its_counts_along`,
  `test_what_is_moved_takes_its_counts_along_and_what_is_gone_can_be_forgotten`
- the counts of what was deleted stay, until they are forgotten:
  `test_counts_of_what_is_deleted_stay`, `test_a_late_listing_of_inputs_loses_nothing`,
  `test_only_what_is_gone_from_where_was_looked_is_forgotten`
- a store follows the newest version of a table, in steps that are whole:
  `test_a_delta_table_is_counted_version_by_version`,
  `test_an_iceberg_table_is_counted_version_by_version`,
  `test_a_step_of_a_table_is_taken_as_a_whole`, `test_a_step_that_cannot_be_taken_is_not_begun`
- kill it at any moment, run it several times at once: `test_a_process_that_dies_at_every_step`,
  `test_processes_that_are_killed`, `test_of_two_steps_from_one_state_one_is_done`,
  `test_a_process_that_slept_for_days_does_no_harm`, `test_a_late_listing_hides_nothing`
- an input that cannot be read keeps no other out: `test_a_damaged_input_does_not_keep_others_out`
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_mcc._log import defaults
from polars_mcc._log.plan_errors import reason
from polars_mcc._shell import inputs
from polars_mcc._shell.asked import Asked
from polars_mcc._shell.inputs import Logs
from polars_mcc._shell.look import FILE, Files, Moves
from polars_mcc._shell.outputs import said_of_disk
from polars_mcc._store.kept import Change, Input, N, State, Store
from polars_mcc._store.places import Options, exists, is_url, place
from polars_mcc._store.rows import counts_to_keep, description
from polars_mcc.prediction_log import PredictionLog

Status: TypeAlias = Literal[
    "counted", "replaced", "moved", "unchanged", "removed", "gone", "forgotten"
]
STATUSES: tuple[Status, ...] = get_args(Status)

_TRIES = 5
_OFTEN = 1.0  # seconds after which what is counted is put into the store


def keep_counts(
    logs: str | Path | Sequence[str | Path],
    store: str | Path,
    *keys: str,
    gold: str = defaults.GOLD,
    pred: str | Sequence[str] = defaults.PRED,
    weight: str | None = None,
    filter: str | None = None,  # noqa: A002 - as the command line has it
    checksum: bool = False,
    forget: bool = False,
    storage_options: Options | None = None,
) -> pl.DataFrame:
    """Count what is new in logs, and keep the counts in a store: each row exactly once.

    Files whose counts are kept are not read again. If a file has changed, its new counts replace
    the old. If it was moved and has its name still, its counts move too. If it was deleted, its
    counts stay, until you `forget` them. Of a table of Delta or Iceberg, the store follows the
    newest version: it reads the files that the table has added, and drops the counts of those that
    the table has removed. Call it as often as you like, kill it at any moment, run it several
    times at once: no row is counted twice, and when it returns none is missing.

    Args:
        logs: Files, folders of them, or globs: Parquet, CSV, NDJSON or IPC; or tables of Delta or
            Iceberg. Paths and URLs (`s3://`, `gs://`, `az://`) may be mixed.
        store: A folder, or the URL of one; it is made if there is none.
        *keys: What makes slices, as it is typed on the command line: names of columns, or SQL.
        gold: The true label, likewise.
        pred: The predicted label, or several models, likewise.
        weight: How many rows a row stands for, likewise.
        filter: A condition in SQL: only rows for which it holds are counted.
        checksum: Read files to see if they have changed. Otherwise a file has changed if its size
            or its time of modification has; an object, if its size or its ETag has.
        forget: Drop the counts of files that are gone. Without it they are only listed.
        storage_options: Credentials and settings of an object storage, as Polars takes them. None:
            the environment has them.

    Returns:
        A DataFrame, a row per file, with `input` (String), its path; `status` (Enum): `"counted"`,
        `"replaced"`, `"moved"`, `"unchanged"`; `"removed"` from a table; `"gone"` from where it
        was, or now `"forgotten"`; and `rows` (Int64; Float64 for float weights), how many rows its
        counts stand for.

    Score the store as you would the log: `PredictionLog.from_store(store).by(*keys)`.

    Raises:
        ValueError: The folder is not a store, or its counts are of other columns.
        polars.exceptions.SchemaError: A column has another dtype than in the other inputs.
        OSError: The store cannot be written to; or a file changed each time that it was counted.
        ModuleNotFoundError: There is a URL, and obstore is not installed.

    If files cannot be read, the first is named, when all others have been counted. Errors of
    `counts` are raised too.

    Examples:
        >>> import tempfile
        >>> import polars as pl
        >>> import polars_mcc
        >>> store = tempfile.mkdtemp()
        >>> polars_mcc.keep_counts("data/digits.parquet", store, "ink_band")["status"].to_list()
        ['counted']
        >>> polars_mcc.keep_counts("data/digits.parquet", store, "ink_band")["status"].to_list()
        ['unchanged']
        >>> kept = polars_mcc.PredictionLog.from_store(store).by("ink_band")
        >>> kept.collect().equals(pl.read_parquet("data/digits.parquet").mcc.by("ink_band"))
        True
    """
    paths = [logs] if isinstance(logs, (str, Path)) else list(logs)
    preds = [pred] if isinstance(pred, str) else list(pred)
    typed = {"keys": [*keys], "gold": gold, "pred": preds, "weight": weight}
    asked = Asked(PredictionLog.counts, [*map(str, paths)], filter, typed, storage_options)
    return kept(asked, str(store), checksum=checksum, forget=forget)


def kept(
    asked: Asked,
    store: str,
    *,
    checksum: bool,
    forget: bool,
    note: Callable[[int], None] = lambda _: None,
) -> pl.DataFrame:
    """Count what is new in the files, and `note` how many rows each has."""
    found = asked.found
    _check_outside(found, store)
    log = Files(found, checksum=checksum)
    keeping = _Keeping(asked, log, Store(place(store, asked.storage_options)), note)
    keeping.make()
    keeping.keep()
    done = [(log.shown.get(path, path), *told) for path, told in keeping.done.items()]
    gone = keeping.gone(asked.logs)
    if gone and forget:
        keeping.drop(gone)
    done += [(one.path, "forgotten" if forget else "gone", one.rows) for one in gone]
    if keeping.failures:
        (file, error), *others = keeping.failures.items()
        what = reason(error)
        named = "" if file in what else f"'{file}': "
        more = f" (and so {len(others)} more)" if others else ""
        has = "is as it was" if keeping.is_as_it_was else "has the counts of all other inputs"
        msg = f"{named}{what}{more}; the store '{store}' {has}"
        raise type(error)(msg) from error
    return pl.DataFrame(
        done,
        schema={"input": pl.String(), "status": pl.Enum(STATUSES), "rows": keeping.rows_dtype},
        orient="row",
    )


@dataclass
class _Keeping:
    """Inputs on their way into a store."""

    asked: Asked
    files: Files
    store: Store
    note: Callable[[int], None]
    done: dict[str, tuple[Status, float]] = field(default_factory=dict)
    failures: dict[str, Exception] = field(default_factory=dict)
    is_as_it_was: bool = False
    """Whether nothing was put into the store, as a step could not be taken as a whole."""
    _pending: list[tuple[Input, pl.DataFrame, Input | None]] = field(default_factory=list)
    """Inputs, their counts, and what the store had of them when they were looked at."""

    def make(self) -> None:
        """Make the folder a store, or see that it is one of the same counts."""
        wanted = _wanted(self.asked)
        known = self.store.known()
        if known is None:
            counts, columns = self._first()
            schema = {name: str(dtype) for name, dtype in counts.collect_schema().items()}
            known = self.store.made({**wanted, "columns": columns, "schema": schema})
        for name, value in wanted.items():
            if known.get(name) != value:
                msg = (
                    f"'{self.store.path}' has counts with {name}={known.get(name)!r}, not "
                    f"{value!r}: ask for the same, or name another folder"
                )
                raise ValueError(msg)
        self.schema: dict[str, str] = known["schema"]

    @property
    def rows_dtype(self) -> pl.DataType:
        """The dtype of numbers of rows."""
        return pl.Float64() if self.schema[N] == str(pl.Float64()) else pl.Int64()

    def _first(self) -> tuple[pl.LazyFrame, dict[str, object]]:
        """The counts of the first input that can be read."""
        failures: list[Exception] = []
        for path in self.files.now:
            with _collected(failures):
                asked = self.asked.of(self.files.scan([path]))
                counts = counts_to_keep(asked.log, asked.keys)
                counts.collect_schema()
                return counts, description(asked.log)
        raise next(iter(failures), FileNotFoundError("all inputs have been deleted"))

    def keep(self) -> None:
        """Have the store hold the counts of each input as it is now."""
        for _ in range(_TRIES):
            state = self.store.state()
            todo = self._todo(state)
            if not todo and not self._pending and not self._removed(state):
                self.store.clear(state)
                return
            # A table takes a step as a whole: no query sees files that replace one another.
            is_one_step = bool(self._removed(state))
            latest = time.monotonic()
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
        changing = next(iter(self._todo(self.store.state())))
        msg = (
            f"'{self.files.shown.get(changing, changing)}' changes while it is counted; try again "
            "when it is whole"
        )
        raise OSError(msg)

    def _removed(self, state: State) -> list[Input]:
        """The files of tables that the store has, and that the tables have no more."""
        now, tables = self.files.now, self.files.tables
        return [
            one for path, one in state.inputs.items() if one.table in tables and path not in now
        ]

    def _todo(self, state: State) -> dict[str, Input | None]:
        """The inputs that are to be counted, each with what the store has of it.

        What was moved, or is known by a new time, is not: its counts are pending.
        """
        todo: dict[str, Input | None] = {}
        known = state.inputs
        again: dict[str, Input] = {}  # by what it is called now: counts that are valid still
        from_where = Moves(self.files.now, known, self.asked.storage_options)
        for path, now in self.files.now.items():
            if path in self.failures:
                continue
            before = known.get(path)
            if before is None and (before := from_where.of(now)) is not None:
                status: Status = "moved" if before.is_as(now) else "replaced"
            elif before is None:
                status = "counted"
            else:
                status = "unchanged" if before.is_as(now) else "replaced"
            self.done.setdefault(path, (status, 0))
            if before is None or not before.is_as(now):
                todo[path] = before
            elif (before.path, before.version) != (path, now.version):
                again[path] = before
            else:
                self.done[path] = (self.done[path][0], before.rows)
        counts = self.store.counts(state, {one.path for one in again.values()})
        self._pending += [
            (replace(self.files.now[path], rows=before.rows), counts[before.path], before)
            for path, before in again.items()
        ]
        return todo

    def _counted(self, chunk: Sequence[str]) -> list[tuple[Input, pl.DataFrame]]:
        """The counts of some inputs, as each was before and after they were counted."""
        try:
            asked = self.asked.of(self.files.scan(chunk))
            answer = counts_to_keep(asked.log, [*asked.keys, FILE]).collect()
            self._check_schema(chunk[0], answer)
        except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
            if len(chunk) > 1:  # Each alone: which is it?
                return [counted for path in chunk for counted in self._counted([path])]
            is_panic = not isinstance(error, Exception)
            failure = pl.exceptions.ComputeError(reason(error)) if is_panic else error
            self.failures[chunk[0]] = failure
            self.done.pop(chunk[0], None)
            return []
        by_file = answer.partition_by(FILE, as_dict=True, include_key=False)
        empty = answer.drop(FILE).clear()
        found = []
        for path in chunk:
            counts = by_file.get((path,), empty)
            before, now = self.files.now[path], self.files.look(path)
            if now == before:
                rows: float = counts[N].sum()  # type: ignore[assignment]
                self.note(int(rows))
                found.append((replace(before, rows=rows), counts))
            elif now is None:
                del self.files.now[path]
                self.done.pop(path, None)
            else:
                self.files.now[path] = now
        return found

    def _check_schema(self, file: str, answer: pl.DataFrame) -> None:
        for name, dtype in answer.schema.items():
            if name != FILE and str(dtype) != self.schema[name]:
                msg = (
                    f"column '{name}' is {dtype} in '{file}', but {self.schema[name]} in the "
                    f"inputs that '{self.store.path}' has: write it alike, or keep it elsewhere"
                )
                raise pl.exceptions.SchemaError(msg)

    def _put(self, *, of_tables: bool = False) -> None:
        """Put what is pending into the store, unless another process was faster."""
        while True:
            state = self.store.state()
            ready = []
            for one, counts, before in self._pending:
                has = state.inputs.get(one.path)
                was = before if before is None or before.path == one.path else None
                # Another process has counted it: look which of us has it as it is now.
                if has == was or (has != one and self.files.look(one.path) == replace(one, rows=0)):
                    ready.append((one, counts, before))
            moved = [
                before.path
                for one, _, before in ready
                if before is not None and before.path != one.path and before.path in state.current
            ]
            removed = self._removed(state) if of_tables else []
            dropped = [*moved, *(one.path for one in removed)]
            if not ready and not dropped:
                break
            change = Change([one for one, *_ in ready], [rows for _, rows, _ in ready], dropped)
            if self._change(state, change):
                self.done |= {one.path: ("removed", one.rows) for one in removed}
                break
        self._pending.clear()

    def _change(self, state: State, change: Change) -> bool:
        with said_of_disk(f"cannot write to '{self.store.path}'"):
            return self.store.change(state, change)

    def gone(self, named: Sequence[str]) -> list[Input]:
        """The inputs of the store that are no longer where they were, below what was named."""
        roots = [_root(path) for path in named]
        candidates = [
            one
            for path, one in self.store.state().inputs.items()
            if one.table is None and path not in self.files.now
            if any(path.startswith(root) for root in roots)
        ]
        options = self.asked.storage_options
        return [one for one in candidates if not exists(one.path, options)]

    def drop(self, gone: Sequence[Input]) -> None:
        """Drop the counts of inputs, unless another process has counted them again."""
        while True:
            state = self.store.state()
            dropped = [one.path for one in gone if state.inputs.get(one.path) == one]
            if not dropped or self._change(state, Change(dropped=dropped)):
                return


@contextmanager
def _collected(failures: list[Exception]) -> Iterator[None]:
    try:
        yield
    except pl.exceptions.PolarsError as error:
        failures.append(error)


@contextmanager
def _at_once(
    do: Callable[[Sequence[str]], list[tuple[Input, pl.DataFrame]]],
    chunks: Sequence[Sequence[str]],
) -> Iterator[Iterator[list[tuple[Input, pl.DataFrame]]]]:
    """Some chunks at a time; if that is interrupted, none but those that have begun."""
    executor = ThreadPoolExecutor(min(max(len(chunks), 1), os.cpu_count() or 1))
    try:
        answers = as_completed([executor.submit(do, chunk) for chunk in chunks])
        yield (one.result() for one in answers)
    finally:
        executor.shutdown(cancel_futures=True)


def _root(path: str) -> str:
    """What the paths of all inputs begin with that a path names: of a file, all of it."""
    prefix, *pattern = re.split(r"(?=[*?\[])", path, maxsplit=1)
    if pattern:
        prefix = prefix.rpartition("/")[0] or "."
    if is_url(prefix):
        return prefix.rstrip("/") + "/"
    place_ = os.path.realpath(prefix)
    return place_ + os.sep if os.path.isdir(place_) else place_  # noqa: PTH112


def _check_outside(found: Logs, store: str) -> None:
    inside = store.rstrip("/") + "/" if is_url(store) else os.path.realpath(store) + os.sep
    for file, path in inputs.places(found.files).items():
        if f"{path}/".startswith(inside):
            msg = f"'{file}' is in the store '{store}' itself: have the store outside of the logs"
            raise ValueError(msg)


def _wanted(asked: Asked) -> dict[str, object]:
    """What is counted: the same for all inputs of a store."""
    typed = asked.typed
    return {
        "by": typed.get("keys") or [],
        "gold": typed.get("gold", defaults.GOLD),
        "pred": typed.get("pred") or [defaults.PRED],
        "weight": typed.get("weight"),
        "filter": asked.filter,
    }

"""Count new inputs; commit their counts, and retry if another process committed first.

A run opens the store, then looks at the inputs, counts what is new, and takes steps. If another
process has taken a step since the store was opened, the run starts again: what was seen earlier
never replaces what was seen later.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, dataclass, field, replace
from threading import Lock
from typing import Literal, TypeAlias, TypeVar, get_args

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.errors_and_warnings import reason
from polars_mcc._base.message_parts import option, refused, said
from polars_mcc._base.visible_text import say
from polars_mcc._display.progress_bar import ProgressBar
from polars_mcc._frame.late_labels import as_length, before
from polars_mcc._inputs.buckets_and_credentials import folder_of_glob
from polars_mcc._inputs.find_files import names_first, real_paths
from polars_mcc._inputs.formats import STDIN
from polars_mcc._inputs.log_from_files import LogOptions, TypedLog, progress_bar
from polars_mcc._inputs.paths_and_settings import is_url, real_path
from polars_mcc._inputs.read_files import Logs, named_if_corrupt
from polars_mcc._store.delta_table import INPUT, INPUT_COLUMNS, Input, N, Store, total
from polars_mcc._store.new_and_changed import FILE, CurrentInputs, is_below
from polars_mcc._store.stored_columns import counts_to_keep, names_of_labels

Status: TypeAlias = Literal[
    "counted", "replaced", "recounted", "unchanged", "removed", "gone", "forgotten"
]
STATUSES: tuple[Status, ...] = get_args(Status)

_T = TypeVar("_T")

_MAX_TRIES = 5
_SECONDS_BETWEEN_STEPS = 1.0  # seconds between two steps of a run


StatusByPath: TypeAlias = dict[str, tuple[Status, float]]
"""What is done with each input or entry of the store, and its rows, by path."""

_INPUT_SCHEMA = {**INPUT_COLUMNS, "rows": pl.Float64()}


@dataclass
class Keeping:
    """One run that puts the counts of inputs into a store."""

    log: TypedLog
    path: str
    forget: bool
    is_shown: bool
    recount: str | None = None
    """The age up to which an input is counted again, as labels may have come; or "all"."""
    done: StatusByPath = field(default_factory=dict)
    failures: dict[str, Exception] = field(default_factory=dict)
    store: Store = field(init=False)
    files: CurrentInputs = field(init=False)
    _late: TypedLog | None = None
    """The log with labels that come later, as they are since the store was opened."""
    _plan: StatusByPath = field(default_factory=dict)
    """What is to be done, as of the last look at the store and the inputs."""
    _other_names: dict[str, str | None] = field(default_factory=dict)
    """The entries of the store that are counted under another path now: path → the other path."""
    _counted: dict[str, Input] = field(default_factory=dict)
    """Inputs whose counts are in `_counts`, and not yet in the store."""
    _counts: list[pl.DataFrame] = field(default_factory=list)
    _schema: pl.Schema = field(default_factory=pl.Schema)
    """The dtypes of the counts: a column without a value takes those of the first value."""
    _valued: set[str] = field(default_factory=set)
    """The columns that have a value in the store, or in counts of this run."""
    _fitting: Lock = field(default_factory=Lock)

    def run(self) -> bool:
        """Count until the store has the counts of each input as it is now.

        Return False if nothing was done, as a new version of a table could not be read as a whole.
        """
        changed: list[str] = []
        for _ in range(_MAX_TRIES):
            is_put = False
            while not is_put:
                self._open()
                self._compare()
                changed = self._count()
                if self.files.tables and self.failures:
                    return False
                is_put = self._put(self._to_be("removed", "forgotten"))
            if not changed:
                self._sum_up()
                return True
        name = self.files.shown.get(changed[0], changed[0])
        raise OSError(f"'{name}' changes while it is counted; try again when it is complete")

    def _open(self) -> None:
        """Open the store, then look at the inputs; make the store if there is none."""
        is_again = hasattr(self, "files")
        wanted = _description_wanted(self.log, self.path)
        self.store = Store.of(self.path, self.log.inputs.options)
        self.files = CurrentInputs(self.log.inputs, again=is_again)
        self.failures |= self.files.failures
        if self.store.table is None:
            counts, columns = self._first()
            about = {**wanted, "columns": columns}
            self.store = self.store.made(about, counts.collect_schema())
            self.files = CurrentInputs(self.log.inputs, again=True)
        self._schema, self._counted, self._counts = self.store.schema, {}, []
        self._valued = self.store.columns_with_values()
        kept = self.store.about
        for name in filter("columns".__ne__, {**wanted, **kept}):
            default = getattr(LogOptions, name, None)
            known, value = kept.get(name, default), wanted.get(name, default)
            if known != value:
                is_known = name in {*wanted, *_KEPT}
                same = "pass the same words in the same order, or use another store"
                raise refused(
                    f"the store '{self.path}' has counts with ",
                    option(name, known),
                    f", not {value!r}; {same if is_known else 'upgrade polars_mcc'}",
                )

    def _first(self) -> tuple[pl.LazyFrame, dict[str, object]]:
        """The counts of the first readable input, and the description of the log."""
        failures: list[Exception] = []
        for path in self.files.now:
            try:
                log = replace(self.log, source=self.files.scan([path]))
                log.check_row_by_row()
                counts = counts_to_keep(log.log, log.keys)
                counts.collect_schema()
            except (pl.exceptions.PolarsError, OSError) as error:
                failures.append(error)
            else:
                return counts, names_of_labels(log.log)
        gone = FileNotFoundError(f"no file of {', '.join(self.log.inputs.typed)} is there")
        raise [*failures, *self.files.failures.values(), gone][0]

    def _compare(self) -> None:
        """Compare the store with the inputs: the plan of what is to be done."""
        known, now, plan = self.store.inputs, self.files.now, StatusByPath()
        is_young = self._is_young(known.values())
        self._other_names = self.files.other_names(known)
        renamed = {*self._other_names.values()}
        for path, entry in now.items():
            if entry == known.get(path):
                is_again = is_young(known[path]) and path not in self.done
                plan[path] = "recounted" if is_again else "unchanged", known[path].rows
            elif path not in self.failures:
                plan[path] = "replaced" if path in known or path in renamed else "counted", 0
        self._plan = plan
        new = self._to_be(*_NEW)
        for path, other_path in self._other_names.items():
            if other_path not in new and other_path not in self.failures:
                plan[path] = "removed", known[path].rows
        named = [*self.log.inputs.typed, *self.log.inputs.links]
        own = [entry for path, entry in known.items() if path not in self._other_names]
        for path in self.files.gone(own, named):
            plan[path] = "forgotten" if self.forget else "gone", known[path].rows

    def _is_young(self, known: Iterable[Input]) -> Callable[[Input], bool]:
        """Whether an input in the store is counted again: the age of its newest row decides.

        The age counts from the newest row of all, or from today if that is in the future.
        """
        if self.recount is None:
            return lambda _: False
        if self.recount == "all":
            return lambda _: True
        newest = (entry.newest for entry in known if entry.newest is not None)
        since = before(max(newest, default=0), self.recount)
        # Rows without a time may be young.
        return lambda entry: entry.rows > 0 and (entry.newest is None or entry.newest >= since)

    def _to_be(self, *statuses: Status) -> StatusByPath:
        """What has these statuses in the plan."""
        return {path: done for path, done in self._plan.items() if done[0] in statuses}

    def _count(self) -> list[str]:
        """Count new inputs, and take steps on the way. Return the inputs that changed meanwhile."""
        todo = [*self._to_be(*_NEW)]
        changed: list[str] = []
        # All changes of a table are one step: no query sees a part of a version.
        latest = time.monotonic()
        files = [self.files.shown.get(path, path) for path in todo]
        progress: AbstractContextManager[ProgressBar | None] = nullcontext()
        if self.is_shown and todo:
            progress = progress_bar(replace(self.log.inputs, files=files))
        chunks = self.files.chunks(todo)
        self._late = self._labels_now(todo)
        with progress as bar, closing(_in_threads(self._counts_of, chunks)) as answers:
            for counts, again in answers:
                same = [entry for entry in again if entry == self.files.now[entry.path]]
                changed += (entry.path for entry in again if entry != self.files.now[entry.path])
                self._counted |= {entry.path: entry for entry in same}
                about = pl.DataFrame(same, schema=_INPUT_SCHEMA).drop("rows")
                self._counts.append(counts.join(about, on=INPUT, maintain_order="left"))
                if bar is not None:
                    bar.advance(int(sum(entry.rows for entry in same)))
                is_time = time.monotonic() - latest > _SECONDS_BETWEEN_STEPS
                if is_time and not self.files.tables:
                    if not self._put({}):
                        break
                    latest = time.monotonic()
        return changed

    def _labels_now(self, todo: Iterable[str]) -> TypedLog | None:
        """The log with labels that come later, for these inputs; None without a readable input."""
        for path in todo if self.log.options.outcomes is not None else ():
            try:
                return replace(self.log, source=self.files.scan([path])).labels_in_memory()
            except (pl.exceptions.PolarsError, OSError) as error:
                if names_first(error, self.log.options.outcomes or ()):
                    raise
                continue  # It fails again when it is counted.
        return None

    def _counts_of(self, chunk: Sequence[str]) -> list[tuple[pl.DataFrame, Sequence[Input]]]:
        """Count some inputs, and look at them again: they may have changed during the count."""
        none = pl.DataFrame(schema={**self._schema, INPUT: pl.String()})
        try:
            scanned = self.files.scan(chunk)
            if (schema := scanned.collect_schema()).names() == [FILE]:
                return [(none, [*self.files.look(chunk).values()])]
            log = (self._late or self.log).with_rows(scanned)
            counts = [counts_to_keep(log.log, [*log.keys, FILE])]
            times = [] if log.options.outcomes is None else [log.newest_times(FILE)]
            is_file = len(chunk) == 1 and not self.files.tables
            alone = [self.files.shown[path] for path in chunk if is_file]
            with named_if_corrupt(replace(self.log.inputs, files=alone), [*schema]):
                answer, *of_inputs = pl.collect_all([*counts, *times])
            newest = dict(row for times in of_inputs for row in times.rows())
            answer = self._fitted(chunk[0], answer)
        except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
            if len(chunk) > 1:  # Count each alone, to find the one that fails.
                return [counts for path in chunk for counts in self._counts_of([path])]
            again = [*self.files.look(chunk).values()]
            if again == [self.files.now[chunk[0]]]:  # Else it was changed or deleted meanwhile.
                is_panic = not isinstance(error, Exception)
                failure = pl.exceptions.ComputeError(reason(error)) if is_panic else error
                self.failures[chunk[0]] = failure
                return []
            return [(none, again)]
        rows = dict(answer.group_by(FILE).agg(total(answer.schema[N])).iter_rows())
        look = self.files.look(chunk).values()
        again = [
            replace(entry, rows=rows.get(entry.path, 0), newest=newest.get(entry.path))
            for entry in look
        ]
        return [(answer.rename({FILE: INPUT}), again)]

    def _fitted(self, file: str, answer: pl.DataFrame) -> pl.DataFrame:
        """The counts in the dtypes of the store; an error if their values have others."""
        counted, schema = answer.drop(FILE).schema, self.store.schema
        if {*counted} != {*schema}:
            raise pl.exceptions.SchemaError(
                f"the counts of '{file}' have the columns {[*counted]}, but the store "
                f"'{self.path}' has {[*schema]}; use another store"
            )
        valued = [name for name in counted if answer[name].null_count() < answer.height]
        with self._fitting:
            for name in valued:
                if name not in self._valued:
                    self._schema = pl.Schema({**self._schema, name: counted[name]})
                elif counted[name] != self._schema[name]:
                    raise pl.exceptions.SchemaError(
                        f"column '{name}' is {counted[name]} in '{file}', but {self._schema[name]} "
                        f"in the store '{self.path}'; write it as {self._schema[name]}, or use "
                        "another store"
                    )
            self._valued.update(valued)
            return _of_dtypes(answer, self._schema)

    def _put(self, dropped: StatusByPath) -> bool:
        """Take a step; False if another process took one since the store was opened."""
        along = (path for path, other in self._other_names.items() if other in self._counted)
        paths = [*dropped, *along]
        added = [*self._counted.values()]
        none = pl.DataFrame(schema={**self._schema, **INPUT_COLUMNS})
        fitted = (_of_dtypes(counts, self._schema).select(none.columns) for counts in self._counts)
        if (added or paths) and not self.store.step(added, pl.concat([none, *fitted]), paths):
            return False
        self.done |= {
            path: (self._plan[path][0], entry.rows) for path, entry in self._counted.items()
        }
        self.done |= dropped
        self._counted, self._counts = {}, []
        return True

    def _sum_up(self) -> None:
        """List what was done, in the order of the inputs; then what is no input any more."""
        done = self._to_be("unchanged") | self.done | self._to_be("gone", "forgotten")
        here = {path: done[path] for path in self.files.now if path in done}
        self.done = {
            self.files.shown.get(path, path): status for path, status in (here | done).items()
        }


def _of_dtypes(counts: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    """Counts in some dtypes. Columns of other dtypes have no value."""
    other = [name for name, dtype in schema.items() if counts.schema[name] != dtype]
    return counts.with_columns(pl.lit(None, schema[name]).alias(name) for name in other)


def _in_threads(
    do: Callable[[Sequence[str]], Iterable[_T]], chunks: Iterable[Sequence[str]]
) -> Generator[_T]:
    """Run chunks in threads. When it is closed, only the chunks that have begun are finished."""
    executor = ThreadPoolExecutor(os.cpu_count())
    try:
        for done in as_completed([executor.submit(do, chunk) for chunk in chunks]):
            yield from done.result()
    finally:
        executor.shutdown(cancel_futures=True)


def _description_wanted(log: TypedLog, store: str) -> dict[str, object]:
    """What the counts of a store are of. It is the same for all inputs."""
    options = asdict(log.options)
    for name, value in options.items():
        if name not in {*_KEPT, "pred"} and value != getattr(LogOptions, name):
            flag = f"--{name.replace('_', '-')}"
            instead = _INSTEAD.get(name, f"pass {flag} when you score the store")
            raise ValueError(f"the store '{store}' cannot keep {flag}; {instead}")
    kept = {name: options[name] for name in _KEPT if options[name] != getattr(LogOptions, name)}
    return {"by": [*(log.by or ())], "pred": log.options.pred or [defaults.PRED], **kept}


_NEW: tuple[Status, ...] = ("counted", "replaced", "recounted")
_KEPT = (
    *("gold", "weight", "filter", "latest", "time"),
    *("outcomes", "on", "text", "null", "separator"),
)
"""The options, beside keys and predictions, that make the counts what they are."""
_INSTEAD = {
    "cluster": "make it a key with --by, and pass --cluster when you score the store",
    "sample_weight": "score the logs themselves",
    "score": "score the logs themselves",
    "min_age": "make the time a key with --by, and filter by it when you score the store",
}
"""What to do instead, for options that counts cannot hold."""


def keep(
    log: TypedLog,
    store: str,
    *,
    forget: bool,
    history: int | None,
    recount: str | None = None,
    is_shown: bool = False,
) -> pl.DataFrame:
    """Count new and changed inputs, and keep their counts in a store.

    `recount`: the age up to which inputs are counted again, for labels that come later; or "all".
    If `is_shown`, the standard error shows a progress bar, and what is done with the files of the
    store.
    """
    if history is not None and (type(history) is not int or history < 1):
        raise refused(option("history", history), " is a number of days, and must be at least 1")
    _check_recount(log.options, recount)
    _check_outside(log.inputs, store)
    keeping = Keeping(log, store, forget, is_shown, recount)
    is_done = keeping.run()
    is_changed = not {status for status, _ in keeping.done.values()} <= {"unchanged", "gone"}
    if is_changed or history is not None:
        for sentence in keeping.store.upkeep(history):
            if is_shown:
                say(f"{store}: {sentence}")
    times = [entry.newest for entry in keeping.store.inputs.values() if entry.newest is not None]
    if is_shown and times:
        newest = pl.select(pl.from_epoch(pl.lit(max(times)), "us").dt.date()).item()
        say(f"{store}: the newest row is of {newest}")
    if keeping.failures:
        (file, error), *further = keeping.failures.items()
        what = reason(error)
        shown = keeping.files.shown.get(file, file)
        named = "" if file in what or shown in what else f"'{shown}': "
        and_more = f" (and {len(further)} more inputs)" if further else ""
        has = "has the counts of all other inputs" if is_done else "is unchanged"
        msg = said(named, what, f"{and_more}; the store '{store}' {has}")
        known = [kind for kind in type(error).__mro__ if "polars_mcc" not in kind.__module__]
        raise known[0](msg) from error  # Our own errors may need more arguments.
    n = pl.Float64() if keeping.store.schema[N].is_float() else pl.Int64()
    return pl.DataFrame(
        [(path, status, rows) for path, (status, rows) in keeping.done.items()],
        schema={"input": pl.String(), "status": pl.Enum(STATUSES), "rows": n},
        orient="row",
        strict=False,
    )


def _check_recount(options: LogOptions, recount: str | None) -> None:
    """Raise a ValueError unless labels that come later, and only these, are counted again."""
    if (options.outcomes is None) != (recount is None):
        has, needs = ("outcomes", "recount") if recount is None else ("recount", "outcomes")
        raise refused(
            f"{has} needs {needs} too: labels come later, so inputs are counted again while they "
            "are young, as in ",
            option("recount", "45d"),
        )
    if recount is None or recount == "all":
        return
    if options.time is None:
        needs = " needs the time of a row: pass it, as in "
        either = option("time", "timestamp"), ", or ", option("recount", "all")
        raise refused(option("recount", recount), needs, *either)
    as_length("recount", recount)


def _check_outside(logs: Logs, store: str) -> None:
    """Raise a ValueError if a log is inside the store, the store inside a log, or a log is `-`."""
    if logs.files == [STDIN]:
        msg = "a store keeps the counts of files; save the standard input to a file, and pass that"
        raise ValueError(msg)
    path = store.rstrip("/") if is_url(store) else real_path(store)
    for file, where in real_paths(logs.files).items():
        if where == path or where.startswith(path + "/"):
            msg = f"the log '{file}' is inside the store '{store}'; use a store outside the logs"
            raise ValueError(msg)
    for log in (*logs.typed, *logs.links):
        if folder_of_glob(log) is None and is_below([log])(path):
            msg = f"the store '{store}' is inside the log '{log}'; use a store outside the logs"
            raise ValueError(msg)

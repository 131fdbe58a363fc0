"""Put the counts of inputs into a store, while other processes may do the same.

A run opens the store, then looks at the inputs, counts what is new, and takes a step. If another
process has taken a step since the store was opened, the run starts again, with the counts that are
still right. So what was seen earlier never replaces what was seen later.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias, get_args

import polars as pl

from polars_mcc._log import defaults
from polars_mcc._log.messages import option, said
from polars_mcc._log.plan_errors import reason
from polars_mcc._shell.inputs import Logs
from polars_mcc._shell.look import FILE, Files
from polars_mcc._shell.sql import check_row_by_row
from polars_mcc._shell.typed_log import LogOptions, TypedLog
from polars_mcc._store.rows import counts_to_keep, description
from polars_mcc._store.table import INPUT, OF_INPUT, Input, N, Store, total

Status: TypeAlias = Literal["counted", "replaced", "unchanged", "removed", "gone", "forgotten"]
STATUSES: tuple[Status, ...] = get_args(Status)

_TRIES = 5
_OFTEN = 1.0  # seconds between two steps of a run


class _Plan(NamedTuple):
    """What a run has to do, according to one look at the store and the inputs."""

    new: Mapping[str, Status]
    """The inputs whose counts are not in the store: "counted", or "replaced"."""
    unchanged: Mapping[str, float]
    """The rows of the inputs whose counts are in the store."""
    dropped: dict[str, tuple[Status, float]]
    """The entries to drop, with their rows: they are no inputs of their own now, or forgotten."""
    gone: dict[str, tuple[Status, float]]
    """The entries that no longer exist, with their rows."""


class _Counted(NamedTuple):
    """The counts of some inputs, and the inputs that changed meanwhile."""

    inputs: Sequence[Input]
    counts: pl.DataFrame
    changed: Sequence[str]


_OF_INPUT = {**OF_INPUT, "rows": pl.Float64()}


@dataclass
class Keeping:
    """One run that puts the counts of inputs into a store."""

    log: TypedLog
    path: str
    watch: Callable[[Logs], Callable[[int], None]]
    forget: bool
    done: dict[str, tuple[Status, float]] = field(default_factory=dict)
    """What was done with each input, and its rows."""
    failures: dict[str, Exception] = field(default_factory=dict)
    store: Store = field(init=False)
    files: Files = field(init=False)
    _counted: dict[str, tuple[Input, Status]] = field(default_factory=dict)
    """Inputs whose counts are in `_counts`, and not yet in the store."""
    _counts: list[pl.DataFrame] = field(default_factory=list)
    is_changed: bool = False
    """Whether the run took a step."""
    _along: dict[str, list[str]] = field(default_factory=dict)
    """The entries that are dropped when an input is put: the same file under other names."""
    _note: Callable[[int], None] | None = None

    def run(self) -> bool:
        """Count until the store has the counts of each input as it is now.

        Return False if nothing was done, as a new version of a table could not be read as a whole.
        """
        late: list[str] = []
        for _ in range(_TRIES):
            while True:
                self._open()
                plan = self._plan()
                late = self._count(plan)
                if self.files.tables and self.failures:
                    return False
                if self._put(plan.dropped):
                    break
            if not late:
                self._sum_up(plan)
                return True
        name = self.files.shown.get(late[0], late[0])
        msg = f"'{name}' changes while it is counted; try again when it is complete"
        raise OSError(msg)

    def _open(self) -> None:
        """Open the store, then look at the inputs; make the store if there is none."""
        is_again = hasattr(self, "files")
        wanted = _wanted(self.log, self.path)
        self.store = Store.of(self.path, self.log.found.options)
        self.files = Files(self.log.found, again=is_again)
        self.failures |= self.files.failures
        if self.store.table is None:
            counts, columns = self._first()
            about = {**wanted, "columns": columns}
            self.store = self.store.made(about, counts.collect_schema())
            self.files = Files(self.log.found, again=True)
        for name, value in wanted.items():
            if (known := self.store.about.get(name)) != value:
                msg = said(
                    f"the store '{self.path}' has counts with ",
                    option(name, known),
                    f", not {value!r}; pass the same words in the same order, or use another store",
                )
                raise ValueError(msg)

    def _first(self) -> tuple[pl.LazyFrame, dict[str, object]]:
        """The counts of the first readable input, and the description of the log."""
        failures: list[Exception] = []
        for path in self.files.now:
            try:
                log = replace(self.log, source=self.files.scan([path]))
                counts = counts_to_keep(log.log, log.keys)
                counts.collect_schema()
            except (pl.exceptions.PolarsError, OSError) as error:  # noqa: PERF203 - a few files
                failures.append(error)
            else:
                return counts, description(log.log)
        failures += self.files.failures.values()
        gone = FileNotFoundError(f"no file of {', '.join(self.log.found.typed)} is there")
        raise next(iter(failures), gone)

    def _plan(self) -> _Plan:
        """Compare the store with the inputs, and forget counts that are no longer right."""
        known, now = self.store.inputs, self.files.now
        others = self.files.others(known)
        self._along = {}
        for entry, same in others.items():
            if same is not None:
                self._along.setdefault(same, []).append(entry)
        new: dict[str, Status] = {
            path: "replaced" if path in known or path in self._along else "counted"
            for path, one in now.items()
            if path not in self.failures and known.get(path) != one
        }
        self._counted = {
            path: counted
            for path, counted in self._counted.items()
            if path in new and counted[0] == now[path]
        }
        counts = pl.concat([self._none(), *self._counts])
        self._counts = [counts.filter(pl.col(INPUT).is_in([*self._counted]))]
        removed: Status = "removed"
        dropped = {
            entry: (removed, known[entry].rows)
            for entry, same in others.items()
            if same not in new and same not in self.failures
        }
        status: Status = "forgotten" if self.forget else "gone"
        named = [*self.log.found.typed, *self.log.found.links]
        gone = self.files.gone((path for path in known if path not in others), named)
        away = {path: (status, known[path].rows) for path in gone}
        unchanged = {path: known[path].rows for path in now if path in known and path not in new}
        return _Plan(new, unchanged, dropped | (away if self.forget else {}), away)

    def _count(self, plan: _Plan) -> list[str]:
        """Count new inputs, and take steps on the way. Return the inputs that changed meanwhile."""
        todo = [path for path in plan.new if path not in self._counted]
        if todo and self._note is None:
            files = [self.files.shown.get(path, path) for path in todo]
            self._note = self.watch(replace(self.log.found, files=files))
        late: list[str] = []
        # All changes of a table are one step: no query sees a part of a version.
        latest, is_alone = time.monotonic(), not self.files.tables
        with _at_once(self._counts_of, self.files.chunks(todo)) as answers:
            for counted, counts, changed in answers:
                late += changed
                self._counted |= {one.path: (one, plan.new[one.path]) for one in counted}
                self._counts.append(counts)
                if is_alone and time.monotonic() - latest > _OFTEN:
                    is_alone = self._put({})
                    latest = time.monotonic()
        return late

    def _counts_of(self, chunk: Sequence[str]) -> list[_Counted]:
        """Count some inputs. Inputs that changed during the count are left out."""
        try:
            log = replace(self.log, source=self.files.scan(chunk))
            answer = counts_to_keep(log.log, [*log.keys, FILE]).collect()
            self._check_schema(chunk[0], answer)
        except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
            if len(chunk) > 1:  # Count each alone, to find the one that fails.
                return [one for path in chunk for one in self._counts_of([path])]
            if self.files.look(chunk):  # Else it was deleted during the count.
                is_panic = not isinstance(error, Exception)
                failure = pl.exceptions.ComputeError(reason(error)) if is_panic else error
                self.failures[chunk[0]] = failure
            return []
        again = self.files.look(chunk)
        is_same = {path: again.get(path) == self.files.now[path] for path in chunk}
        rows = dict(answer.group_by(FILE).agg(total(answer.schema[N])).iter_rows())
        inputs = [replace(again[path], rows=rows.get(path, 0)) for path in chunk if is_same[path]]
        about = pl.DataFrame(inputs, schema=_OF_INPUT).drop("rows")
        counts = answer.rename({FILE: INPUT}).join(about, on=INPUT, maintain_order="left")
        assert self._note is not None  # noqa: S101 - there is something to count
        self._note(int(sum(one.rows for one in inputs)))
        changed = [path for path in chunk if not is_same[path] and path in again]
        return [_Counted(inputs, counts.select(self._none().columns), changed)]

    def _none(self) -> pl.DataFrame:
        """No counts, with their columns."""
        return pl.DataFrame(schema={**self.store.schema, **OF_INPUT})

    def _check_schema(self, file: str, answer: pl.DataFrame) -> None:
        schema = self.store.schema
        if {*answer.columns} - {FILE} != {*schema}:
            msg = (
                f"the counts of '{file}' have the columns {answer.drop(FILE).columns}, but the "
                f"store '{self.path}' has {[*schema]}; use another store"
            )
            raise pl.exceptions.SchemaError(msg)
        for name, dtype in answer.schema.items():
            if name != FILE and dtype != schema[name]:
                msg = (
                    f"column '{name}' is {dtype} in '{file}', but {schema[name]} in the store "
                    f"'{self.path}'; write it as {schema[name]}, or use another store"
                )
                raise pl.exceptions.SchemaError(msg)

    def _put(self, dropped: Mapping[str, tuple[Status, float]]) -> bool:
        """Take a step; False if another process took one since the store was opened."""
        added = [one for one, _ in self._counted.values()]
        paths = [*dropped, *(path for one in added for path in self._along.get(one.path, ()))]
        if added or paths:
            if not self.store.step(added, pl.concat([self._none(), *self._counts]), paths):
                return False
            self.is_changed = True
        self.done |= {one.path: (status, one.rows) for one, status in self._counted.values()}
        self.done |= dropped
        self._counted, self._counts = {}, []
        return True

    def _sum_up(self, plan: _Plan) -> None:
        """List what was done, in the order of the inputs; then what is no input any more."""
        done: dict[str, tuple[Status, float]] = {
            path: ("unchanged", rows) for path, rows in plan.unchanged.items()
        }
        done |= self.done
        here = {path: done[path] for path in self.files.now if path in done}
        done = here | done | plan.gone
        self.done = {self.files.shown.get(path, path): told for path, told in done.items()}


@contextmanager
def _at_once(
    do: Callable[[Sequence[str]], list[_Counted]], chunks: Sequence[Sequence[str]]
) -> Iterator[Iterator[_Counted]]:
    """Run chunks in threads. After an interrupt, only the chunks that have begun are finished."""
    executor = ThreadPoolExecutor(min(max(len(chunks), 1), os.cpu_count() or 1))
    try:
        answers = as_completed([executor.submit(do, chunk) for chunk in chunks])
        yield (counted for one in answers for counted in one.result())
    finally:
        executor.shutdown(cancel_futures=True)


def _wanted(log: TypedLog, store: str) -> dict[str, object]:
    """What the counts of a store are of. It is the same for all inputs."""
    options = asdict(log.options)
    for name, value in options.items():
        if name not in {*_KEPT, "pred"} and value != getattr(LogOptions, name):
            flag = f"--{name.replace('_', '-')}"
            instead = _INSTEAD.get(name, f"pass {flag} when you score the store")
            msg = f"the store '{store}' cannot keep {flag}; {instead}"
            raise ValueError(msg)
    by, pred = [*(log.by or ())], log.options.pred or [defaults.PRED]
    kept = {name: options[name] for name in _KEPT}
    for text in (*by, *pred, *filter(None, kept.values())):
        check_row_by_row(text)
    return {"by": by, "pred": pred, **kept}


_KEPT = ("gold", "weight", "filter")
_INSTEAD = {
    "cluster": "make it a key with --by, and pass --cluster when you score the store",
    "sample_weight": "score the logs themselves",
    "score": "score the logs themselves",
}
"""What to do instead, for options that counts cannot hold."""

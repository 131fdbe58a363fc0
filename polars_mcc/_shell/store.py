"""Counts that are kept: a folder with the counts of each log file, so that none is read twice.

The counts of an input are one file, whose name is made of the path of the input, and which says
what the input was like. It is written beside and renamed: so it is there, whole, or as it was, and
an input has one, whoever writes it how often. There is no list of inputs that could be wrong.

Assumed of the file system of the store: a rename within a folder replaces at once, and a link is
made only where there is no file (POSIX, NTFS, NFS); what is synchronised stays. Of that of the
inputs: a file that is written again has another size, or another time, of a clock that ticks every
50 ms; where it may not, `checksum` reads and compares contents.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import polars as pl

from polars_mcc._log import defaults
from polars_mcc._log.keys import check_plain
from polars_mcc._log.plan_errors import reason
from polars_mcc._shell.asked import Asked
from polars_mcc._shell.inputs import STORE, Logs, find
from polars_mcc._shell.outputs import put
from polars_mcc.prediction_log import PredictionLog

Status: TypeAlias = Literal["counted", "replaced", "moved", "unchanged"]
STATUSES: tuple[Status, ...] = ("counted", "replaced", "moved", "unchanged")

_ABOUT = "polars_mcc"
"""The entry in the metadata of a file of counts that says which input they are of."""
_OLD = 24 * 60 * 60  # seconds after which a file that was not renamed is taken for left behind
_TICK = 0.05  # seconds that the clock of a file system may stand still
_TRIES = 5

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Seen:
    """What an input was like when it was counted."""

    input: str
    size: int
    time: int
    checksum: str | None
    rows: float = 0  # how many its counts are of

    def is_as(self, now: Seen) -> bool:
        """Whether its counts are those of an input as that is now."""
        if _partitions(self.input) != _partitions(now.input):
            return False
        if now.checksum is not None:
            return self.checksum == now.checksum
        return (self.size, self.time) == (now.size, now.time)


def _partitions(path: str) -> list[str]:
    """The folders `name=value` of a path, which are columns too."""
    return [part for part in Path(path).parts[:-1] if "=" in part]


def keep_counts(
    logs: str | Path | Sequence[str | Path],
    store: str | Path,
    *keys: str,
    gold: str = defaults.GOLD,
    pred: str | Sequence[str] = defaults.PRED,
    weight: str | None = None,
    filter: str | None = None,  # noqa: A002 - as the command line has it
    checksum: bool = False,
) -> pl.DataFrame:
    """Count what is new in a folder of logs, and keep the counts: each file exactly once.

    A file whose counts are kept is not read again; one that has changed replaces its own counts;
    one that was moved, under its name, takes them along; and the counts of one that is deleted
    stay. Call it as often as you like, kill it at any moment, run it several times at once: no row
    is counted twice, and when it returns none is left out.

    Args:
        logs: Files, folders of them, or globs: Parquet, CSV, NDJSON or IPC.
        store: A folder; it is made if there is none.
        *keys: What makes slices, as it is typed on the command line: names of columns, or SQL.
        gold: The true label, likewise.
        pred: The predicted label, or several models, likewise.
        weight: How many rows a row stands for, likewise.
        filter: A condition in SQL: only rows for which it holds are counted.
        checksum: Read files to see if they have changed. Otherwise a file has changed if its size
            or its time of modification has.

    Returns:
        A DataFrame, a row per file, with `input` (String), its path; `status` (Enum): `"counted"`,
        `"replaced"`, `"moved"` or `"unchanged"`; and `rows` (as `n` of `counts`), how many rows
        its counts stand for.

    To score, scan the store as a log whose rows stand for `n` rows each:
    `pl.scan_parquet("store/*.parquet").mcc(weight="n").by(*keys)`.

    Raises:
        ValueError: The folder is not a store; its counts are of other columns; or an input is no
            file whose size and time can be looked up (a URL, a table of Delta or Iceberg).
        polars.exceptions.SchemaError: A column has another dtype than in the other inputs.
        OSError: The store cannot be written to.

    Of inputs that cannot be read, the first is named, when all others have been counted. Errors
    of `counts` are raised too.

    Examples:
        >>> import tempfile
        >>> import polars as pl
        >>> import polars_mcc
        >>> store = tempfile.mkdtemp()
        >>> polars_mcc.keep_counts("data/digits.parquet", store, "ink_band")["status"].to_list()
        ['counted']
        >>> polars_mcc.keep_counts("data/digits.parquet", store, "ink_band")["status"].to_list()
        ['unchanged']
        >>> kept = pl.scan_parquet(f"{store}/*.parquet").mcc(weight="n").by("ink_band")
        >>> kept.collect().equals(pl.read_parquet("data/digits.parquet").mcc.by("ink_band"))
        True
    """
    paths = [logs] if isinstance(logs, (str, Path)) else list(logs)
    found = find([str(path) for path in paths])
    preds = [pred] if isinstance(pred, str) else list(pred)
    typed = {"keys": [*keys], "gold": gold, "pred": preds, "weight": weight}
    asked = Asked(PredictionLog.counts, [], filter, typed)
    return kept(found, Path(store), asked, checksum=checksum)


def kept(
    found: Logs,
    store: Path,
    asked: Asked,
    *,
    checksum: bool,
    note: Callable[[int], None] = lambda _: None,
) -> pl.DataFrame:
    """Count what is new in the files found, and `note` how many rows each has."""
    _check_inputs(found, store)

    def query(file: str) -> pl.LazyFrame:
        of_file = replace(asked, logs=[file])
        check_plain(of_file.keys, "a store", "its rows are counted once; name the columns alone")
        counts: pl.LazyFrame = of_file.answer(of_file.rows)
        return counts

    counting = _Store(store, asked, query, found.files, checksum=checksum)
    failures: list[tuple[str, Exception]] = []

    def one(file: str) -> tuple[str, Status | None, float]:
        try:
            status, rows = counting.keep(file)
        except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
            is_panic = not isinstance(error, Exception)
            failure = pl.exceptions.ComputeError(reason(error)) if is_panic else error
            failures.append((file, failure))
            return file, None, 0
        note(int(rows))
        return file, status, rows

    with _at_once(one, found.files) as answers:
        done = list(answers)
    if failures:
        (file, error), *others = failures
        what = reason(error)
        named = "" if file in what else f"'{file}': "
        more = f" (and so {len(others)} more)" if others else ""
        msg = f"{named}{what}{more}; of all other inputs '{store}' has the counts"
        raise type(error)(msg) from error
    rows_dtype = pl.Float64() if counting.schema["n"] == str(pl.Float64()) else pl.Int64()
    return pl.DataFrame(
        done,
        schema={"input": pl.String(), "status": pl.Enum(STATUSES), "rows": rows_dtype},
        orient="row",
    )


class _Store:
    """A folder of counts, and how an input of it is counted."""

    def __init__(
        self,
        folder: Path,
        asked: Asked,
        query: Callable[[str], pl.LazyFrame],
        files: Sequence[str],
        *,
        checksum: bool,
    ) -> None:
        """Make the folder a store if it is empty, and see which inputs it has."""
        self._folder = folder
        self._query = query
        self._checksum = checksum
        mark = folder / STORE
        folder.mkdir(exist_ok=True)
        if not mark.is_file():
            _check_empty(folder)
            made = {**_wanted(asked), "schema": _schema_of_first(query, files)}
            # Of several processes, one makes the mark.
            with contextlib.suppress(FileExistsError):
                put(mark, json.dumps(made, indent=1).encode(), is_new=True)
        known = json.loads(mark.read_bytes())
        self.schema: dict[str, str] = known.pop("schema")
        _check_asked(folder, known, asked)
        for left in folder.glob(".*"):
            is_ours = re.search(r"\.[0-9a-f]{32}$", left.name)
            with contextlib.suppress(FileNotFoundError):
                if is_ours and time.time() - left.stat().st_mtime > _OLD:
                    left.unlink()
        self._inputs = {
            file.name: seen for file in folder.glob("*.parquet") if (seen := _seen(file))
        }

    def keep(self, file: str) -> tuple[Status, float]:
        """Have the counts of an input as it is now: how that came, and of how many rows."""
        path = Path(file).resolve()
        target = self._folder / _name_of(path)
        status: Status = "unchanged"
        for _ in range(_TRIES):
            now = self._look_at(path)
            before = _seen(target)
            if before is None and self._take_along(now, target):
                before, status = _seen(target), "moved"
            if before is not None and before.is_as(now):
                if (before.input, before.time) == (now.input, now.time):
                    return status, before.rows
                self._name_anew(target, now)
                continue
            if status in {"unchanged", "moved"}:
                status = "counted" if before is None else "replaced"
            answer = self._query(file).collect()
            self._check_schema(file, answer)
            put(target, _encoded(answer, now))
            # Look once more: the input may have changed while it was counted, or another process
            # have been slower to keep what it was before.
        msg = f"'{file}' changes while it is counted; try again when it is whole"
        raise OSError(msg)

    def _name_anew(self, target: Path, now: Seen) -> None:
        """Have counts say where their input is now, or when it was written last."""
        data = target.read_bytes()  # Of which both are, if another process replaces them.
        if (seen := _seen(io.BytesIO(data))) is not None and seen.is_as(now):
            put(target, _encoded(pl.read_parquet(io.BytesIO(data)), now))

    def _look_at(self, path: Path) -> Seen:
        age = time.time() - path.stat().st_mtime
        if 0 <= age < _TICK:  # Else it could be written again at the same time.
            time.sleep(_TICK - age)
        found = path.stat()
        checksum = _checksum(path) if self._checksum else None
        return Seen(str(path), found.st_size, found.st_mtime_ns, checksum)

    def _take_along(self, now: Seen, target: Path) -> bool:
        """Whether the counts of an input that is gone were those of this one: rename them."""
        for name, seen in self._inputs.items():
            is_same = Path(seen.input).name == Path(now.input).name
            is_same &= (seen.size, seen.time) == (now.size, now.time)
            if is_same and not Path(seen.input).exists():
                with contextlib.suppress(FileNotFoundError):  # Another process was faster.
                    (self._folder / name).rename(target)
                    return True
        return False

    def _check_schema(self, file: str, answer: pl.DataFrame) -> None:
        for name, dtype in answer.schema.items():
            if str(dtype) != self.schema[name]:
                msg = (
                    f"column '{name}' is {dtype} in '{file}', but {self.schema[name]} in the "
                    f"inputs that '{self._folder}' has: write it alike, or keep it elsewhere"
                )
                raise pl.exceptions.SchemaError(msg)


@contextmanager
def _at_once(do: Callable[[str], Answer], files: Sequence[str]) -> Iterator[Iterator[Answer]]:
    """Some files at a time; if that is interrupted, none but those that have begun."""
    executor = ThreadPoolExecutor(min(len(files), os.cpu_count() or 1))
    try:
        yield executor.map(do, files)
    finally:
        executor.shutdown(cancel_futures=True)


def _check_inputs(found: Logs, store: Path) -> None:
    for file in found.files:
        if store.resolve() in Path(file).resolve().parents:
            msg = f"'{file}' is in the store '{store}' itself: have the store outside of the logs"
            raise ValueError(msg)
        if not Path(file).is_file():
            what = f"a table of {found.kind.name}" if found.kind.is_folder else "no file"
            msg = (
                f"'{file}' is {what} that could be seen to have changed: keep its counts as "
                "--out counts.parquet, or name the files"
            )
            raise ValueError(msg)


def _check_empty(folder: Path) -> None:
    others = [file.name for file in folder.iterdir() if not file.name.startswith(".")]
    if others and STORE not in others:
        msg = (
            f"'{folder}' is not a store of counts, and has '{others[0]}': name a folder that is "
            "empty, or new"
        )
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


def _check_asked(folder: Path, known: dict[str, object], asked: Asked) -> None:
    for name, wanted in _wanted(asked).items():
        if known.get(name) != wanted:
            msg = (
                f"'{folder}' has counts with {name}={known.get(name)!r}, not {wanted!r}: ask for "
                "the same, or name another folder"
            )
            raise ValueError(msg)


def _schema_of_first(query: Callable[[str], pl.LazyFrame], files: Sequence[str]) -> dict[str, str]:
    """The columns of the counts of the first input that can be read."""
    failure: pl.exceptions.PolarsError | None = None
    for file in files:
        try:
            return {name: str(dtype) for name, dtype in query(file).collect_schema().items()}
        except pl.exceptions.PolarsError as error:  # noqa: PERF203 - most often there is none
            failure = failure or error
    assert failure is not None  # noqa: S101 - there are files
    raise failure


def _name_of(path: Path) -> str:
    """The name of the counts of an input: no two have one, and a person can tell which it is."""
    known_by = re.sub(r"[^\w.-]", "_", path.stem)[:60].lstrip("._")
    return f"{known_by}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}.parquet"


def _seen(target: Path | io.BytesIO) -> Seen | None:
    """The input that counts are of, if they are there."""
    try:
        about = pl.read_parquet_metadata(target).get(_ABOUT)
    except FileNotFoundError:
        return None
    if about is None:
        msg = f"'{target}' is in a store of counts, but not of it: move it elsewhere"
        raise ValueError(msg)
    return Seen(**json.loads(about))


def _checksum(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as content:
        while part := content.read(2**20):
            found.update(part)
    return found.hexdigest()


def _encoded(answer: pl.DataFrame, seen: Seen) -> bytes:
    """Counts as a Parquet file, which says which input they are of."""
    file = io.BytesIO()
    rows: float = answer["n"].sum()  # type: ignore[assignment]
    about = replace(seen, rows=rows)
    answer.write_parquet(file, metadata={_ABOUT: json.dumps(asdict(about))})
    return file.getvalue()

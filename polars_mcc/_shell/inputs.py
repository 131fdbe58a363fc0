"""The inputs of the command line: logs found, checked, and scanned as one.

To add a format, add its entry to `_KINDS`: nothing else knows it by name.
"""

from __future__ import annotations

import glob
import importlib.util
import io
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl
import polars.selectors as cs

from polars_mcc._log.extras import missing

STDIN = "-"  # the path of the standard input, which is read whole

STORE = "_polars_mcc.json"  # the file that makes a folder a store: what its counts are of
_METADATA = "metadata"  # the folder of an Iceberg table that tells what it is


@dataclass(frozen=True)
class Kind:
    """A format that logs are in."""

    name: str
    scan: Callable[[str], pl.LazyFrame]
    suffixes: tuple[str, ...] = ()  # what names of files end in; none if it is a folder
    begins: bytes = b""
    """What the bytes of a file begin with, to know it when it comes through a pipe."""
    read: Callable[[io.BytesIO], pl.DataFrame] | None = None  # how it is read from a pipe
    is_folder: Callable[[Path], bool] | None = None
    """Whether a folder is a table: then what is in it is not to be read as files."""


def _scan_delta(table: str) -> pl.LazyFrame:
    _check_installed("deltalake", "Delta")
    return pl.scan_delta(table)


def _scan_iceberg(table: str) -> pl.LazyFrame:
    """A table as its newest metadata tell it: the file with the highest number."""

    def number(file: Path) -> int:
        return int("0" + re.sub(r"\D.*", "", file.name.removeprefix("v")))

    newest = max(Path(table, _METADATA).glob("*.metadata.json"), key=number)
    _check_installed("pyiceberg", "Iceberg")
    return pl.scan_iceberg(str(newest.resolve()))


def _check_installed(package: str, kind: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise missing(subject=f"a table of {kind}", package=package, extra=kind.lower())


def _is_delta(folder: Path) -> bool:
    return (folder / "_delta_log").is_dir()


def _is_iceberg(folder: Path) -> bool:
    return any((folder / _METADATA).glob("*.metadata.json"))


_PARQUET = Kind("Parquet", pl.scan_parquet, (".parquet",), b"PAR1", pl.read_parquet)
_KINDS = (
    _PARQUET,
    Kind("IPC", pl.scan_ipc, (".arrow", ".ipc", ".feather"), b"ARROW1", pl.read_ipc),
    Kind("NDJSON", pl.scan_ndjson, (".ndjson", ".jsonl"), b"{", pl.read_ndjson),
    Kind("CSV", pl.scan_csv, (".csv",), b"", pl.read_csv),
    Kind("Delta", _scan_delta, is_folder=_is_delta),
    Kind("Iceberg", _scan_iceberg, is_folder=_is_iceberg),
)


@dataclass(frozen=True)
class Logs:
    """The files of one kind that a user named, and the files in her folders that are not.

    Of a table (Delta, Iceberg), which is not to be read as the files that it has, its folder.
    """

    files: list[str]
    others: list[str]
    kind: Kind

    def alone(self, file: str) -> Logs:
        """One of the files."""
        return Logs([file], [], self.kind)

    @cached_property
    def schemas(self) -> dict[str, pl.Schema]:
        """The columns of each file that is not a URL."""
        return {file: self._schema(file) for file in self.files if "://" not in file}

    def _schema(self, file: str) -> pl.Schema:
        try:
            if self.kind is _PARQUET:
                return pl.Schema(pl.read_parquet_schema(file))
            return self.kind.scan(file).collect_schema()
        except pl.exceptions.PolarsError as error:
            raise _unreadable(file, self.kind.name, error) from error

    @cached_property
    def partitions(self) -> set[str]:
        """The folders `name=value` that all Parquet files are in, which are columns too."""
        if self.kind is not _PARQUET or not self.files:
            return set()
        return set.intersection(*({*_partitions(file)} for file in self.files))


def find(paths: Sequence[str]) -> Logs:
    """Look up files, globs and folders, each file once; a URL is left for Polars.

    A folder may be a table of Delta or Iceberg; of another, the Parquet files are read, or else
    those of the one other kind there is. Hidden files, and those that begin with `_`, are
    bookkeeping of other tools.
    """
    if STDIN in paths:
        if list(paths) != [STDIN]:
            msg = "the standard input (-) is a log of its own: name no other file beside it"
            raise ValueError(msg)
        return Logs([STDIN], [], _PARQUET)
    files: list[str] = []
    others: list[str] = []
    for path in paths:
        is_one = "://" in path or Path(path).exists()
        matches = [path] if is_one else sorted(glob.glob(path, recursive=True))  # noqa: PTH207
        found: list[str] = []
        for match in matches:
            if not Path(match).is_dir() or _kind(match).is_folder:
                found.append(match)
                continue
            inside, rest = _in_folder(match)
            found += inside
            others += rest
        if not found:
            what = "no .parquet file in folder" if Path(path).is_dir() else "no file"
            msg = f"{what} '{path}'; name a Parquet file, a folder of them, or a quoted glob"
            raise FileNotFoundError(msg)
        files += found
    kinds = {_kind(file).name: _kind(file) for file in files}
    if len(kinds) > 1:
        msg = f"the files are of several kinds, {', '.join(sorted(kinds))}: score them apart"
        raise ValueError(msg)
    return Logs(_each_once(files), _each_once(others), *kinds.values())


def scan(logs: Logs) -> pl.LazyFrame:
    """Scan files of one kind as one log."""
    if logs.files == [STDIN]:
        return _from_bytes(sys.stdin.buffer.read()).lazy()
    local = logs.schemas
    if logs.kind is not _PARQUET:
        return pl.concat(map(logs.kind.scan, logs.files), how="diagonal_relaxed")
    return pl.scan_parquet(
        list(logs.files),
        hive_partitioning=bool(logs.partitions),
        extra_columns="ignore",
        # A filter must not lose the rows of a row group whose statistics are wrong.
        use_statistics=False,
        glob=len(local) < len(logs.files),
    )


def check_same(logs: Logs, columns: Iterable[str]) -> None:
    """Raise a SchemaError unless the columns that are read are the same in all files."""
    if logs.files == [STDIN]:
        return
    for column in dict.fromkeys(columns):
        if column in logs.partitions:
            continue
        having = {file: read[column] for file, read in logs.schemas.items() if column in read}
        if not having:
            continue  # missing everywhere: the query says so, and knows the nearest name
        first, dtype = next(iter(having.items()))
        for file in logs.schemas:
            if file not in having:
                msg = f"column '{column}' is in '{first}' but not in '{file}'; score them apart"
                raise pl.exceptions.SchemaError(msg)
            if having[file] != dtype:
                msg = (
                    f"column '{column}' is {dtype} in '{first}' but {having[file]} in '{file}'; "
                    "write it alike, or score them apart"
                )
                raise pl.exceptions.SchemaError(msg)


def store_of(logs: Logs) -> Path | None:
    """The first folder of the files that keeps counts, if one does."""
    folders = dict.fromkeys(Path(file).parent for file in logs.files if "://" not in file)
    return next((folder for folder in folders if (folder / STORE).is_file()), None)


def rows_of_files(
    logs: Logs,
    where: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None,
    columns: Collection[str] = (),
) -> list[int | None]:
    """How many rows of each file a filter leaves, where footers and names of folders tell it.

    `columns` are those that the filter is of.
    """
    is_local = not any("://" in file for file in logs.files) and logs.files != [STDIN]
    is_told = where is None or logs.partitions.issuperset(columns)
    if logs.kind.name not in {"Parquet", "IPC"} or not is_local or not is_told:
        return [None] * len(logs.files)
    scans = [scan(logs.alone(file)) for file in logs.files]
    kept = [lf if where is None else where(lf) for lf in scans]
    return [rows.item() for rows in pl.collect_all([lf.select(pl.len()) for lf in kept])]


@contextmanager
def named_if_corrupt(logs: Logs, columns: Sequence[str]) -> Iterator[None]:
    """If reading fails, find the first file whose `columns` cannot be read, and name it."""
    try:
        yield
    except (pl.exceptions.ComputeError, pl.exceptions.PanicException):
        for file in logs.files:
            if file != STDIN:
                _check_readable(logs.alone(file), columns)
        raise


def _in_folder(folder: str) -> tuple[list[str], list[str]]:
    """The files of the kind that a folder is read as, and the others."""
    files = [
        str(file)
        for file in sorted(Path(folder).rglob("*"))
        if file.is_file() and not file.name.startswith((".", "_"))
    ]
    kinds = {file: _by_suffix(file) for file in files}
    known = sorted({kind.name for kind in kinds.values() if kind is not None})
    if len(known) > 1 and _PARQUET.name not in known:
        msg = f"folder '{folder}' has files of several kinds, {', '.join(known)}: name a glob"
        raise ValueError(msg)
    wanted = _PARQUET.name if _PARQUET.name in known else "".join(known)
    is_wanted = {file: kind is not None and kind.name == wanted for file, kind in kinds.items()}
    return [file for file in files if is_wanted[file]], [f for f in files if not is_wanted[f]]


def _each_once(files: Sequence[str]) -> list[str]:
    by_place = {file if "://" in file else str(Path(file).resolve()): file for file in files}
    return list(by_place.values())


def _by_suffix(file: str) -> Kind | None:
    suffix = Path(file).suffix
    return next((kind for kind in _KINDS if suffix in kind.suffixes), None)


def _kind(file: str) -> Kind:
    """By the name, or what is in a folder; what has no known name is taken for Parquet."""
    path = Path(file)
    if path.is_dir():
        for kind in _KINDS:
            if kind.is_folder is not None and kind.is_folder(path):
                return kind
    return _by_suffix(file) or _PARQUET


def _from_bytes(data: bytes) -> pl.DataFrame:
    """A log that came through a pipe, of the kind that it begins like."""
    piped = [kind for kind in _KINDS if kind.read is not None]
    kind = next(kind for kind in piped if data.lstrip().startswith(kind.begins))
    assert kind.read is not None  # noqa: S101 - for the type checker
    try:
        return kind.read(io.BytesIO(data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise _unreadable(STDIN, "a log", error) from error


def _check_readable(log: Logs, columns: Sequence[str]) -> None:
    [file] = log.files
    try:
        scan(log).select(cs.by_name(columns, require_all=False).is_null().sum()).collect()
    except (pl.exceptions.ComputeError, pl.exceptions.PanicException) as error:
        raise _unreadable(file, log.kind.name, error) from error


def _unreadable(file: str, kind: str, error: BaseException) -> pl.exceptions.ComputeError:
    first = str(error).split("\n", 1)[0]
    msg = f"'{file}' cannot be read as {kind} ({first}); leave it out or write it again"
    return pl.exceptions.ComputeError(msg)


def _partitions(file: str) -> list[str]:
    return [part.split("=", 1)[0] for part in Path(file).parts[:-1] if "=" in part]

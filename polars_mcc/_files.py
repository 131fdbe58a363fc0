"""The files of the command line: logs found and checked, an answer written whole."""

from __future__ import annotations

import glob
import importlib.util
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import polars as pl
import polars.selectors as cs

Format: TypeAlias = Literal["table", "csv", "json", "ndjson", "markdown", "parquet"]
"""How an answer is written. A table is for reading; all but it and markdown keep every digit."""

_SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".ndjson": "ndjson",
    ".md": "markdown",
}


STDIN = "-"
"""The path of the standard input, which is read whole."""

_KINDS = {
    ".parquet": "Parquet",
    ".csv": "CSV",
    ".ndjson": "NDJSON",
    ".jsonl": "NDJSON",
    ".arrow": "IPC",
    ".ipc": "IPC",
    ".feather": "IPC",
}


_TABLES = {"Delta": "_delta_log", "Iceberg": "metadata"}
"""The folder that tells which of its neighbours are rows of a table, and which are no more."""


@dataclass(frozen=True)
class Logs:
    """The files of one kind that a user named, and the files in her folders that are not.

    Of a table (Delta, Iceberg), which is not to be read as the files that it has, its folder.
    """

    files: list[str]
    others: list[str]
    kind: str


def find(paths: Sequence[str]) -> Logs:
    """Look up files, globs and folders, each file once; a URL is left for Polars.

    A folder may be a table of Delta or Iceberg; of another, the Parquet files are read, or else
    those of the one other kind there is. Hidden files, and those that begin with `_`, are
    bookkeeping of other tools.

    Raises:
        FileNotFoundError: A path, glob or folder holds no such file.
        ValueError: Files are of several kinds, or the standard input is not alone.
    """
    if STDIN in paths:
        if list(paths) != [STDIN]:
            msg = "the standard input (-) is a log of its own: name no other file beside it"
            raise ValueError(msg)
        return Logs([STDIN], [], "")
    files: list[str] = []
    others: list[str] = []
    for path in paths:
        is_one = "://" in path or Path(path).exists()
        matches = [path] if is_one else sorted(glob.glob(path, recursive=True))  # noqa: PTH207
        found: list[str] = []
        for match in matches:
            if not Path(match).is_dir() or _kind(match) in _TABLES:
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
    kinds = sorted({_kind(file) for file in files})
    if len(kinds) > 1:
        msg = f"the files are of several kinds, {', '.join(kinds)}: score them apart"
        raise ValueError(msg)
    return Logs(_each_once(files), _each_once(others), *kinds)


def scan(logs: Logs, columns: Iterable[str]) -> pl.LazyFrame:
    """Scan files of one kind as one log, whose `columns` are the ones that will be read.

    The folders `name=value` that all Parquet files are in are columns too (hive partitions).

    Raises:
        polars.exceptions.ComputeError: A file cannot be read.
        polars.exceptions.SchemaError: One of `columns` is not the same in all files.
    """
    files = logs.files
    if files == [STDIN]:
        return _from_bytes(sys.stdin.buffer.read()).lazy()
    local = [file for file in files if "://" not in file]
    schemas = {file: _schema(file) for file in local}
    if logs.kind != "Parquet":
        for column in dict.fromkeys(columns):
            _check_same(column, schemas)
        return pl.concat(map(_scan_one, files), how="diagonal_relaxed")
    partitions = [_partitions(file) for file in files]
    shared = set.intersection(*map(set, partitions)) if partitions else set()
    for column in dict.fromkeys(columns):
        if column not in shared:
            _check_same(column, schemas)
    return pl.scan_parquet(
        list(files),
        hive_partitioning=bool(shared),
        extra_columns="ignore",
        # A filter must not lose the rows of a row group whose statistics are wrong.
        use_statistics=False,
        glob=len(local) < len(files),
    )


def rows_of_files(logs: Logs, where: pl.Expr | None) -> list[int | None]:
    """How many rows of each file a filter leaves, where footers and names of folders tell it."""
    unknown: list[int | None] = [None] * len(logs.files)
    if logs.kind not in {"Parquet", "IPC"} or any("://" in file for file in logs.files):
        return unknown
    if where is not None:
        partitions = set.intersection(*(set(_partitions(file)) for file in logs.files))
        if not partitions.issuperset(where.meta.root_names()):
            return unknown
    scans = [scan(Logs([file], [], logs.kind), ()) for file in logs.files]
    kept = [lf if where is None else lf.filter(where) for lf in scans]
    return [rows.item() for rows in pl.collect_all([lf.select(pl.len()) for lf in kept])]


@contextmanager
def named_if_corrupt(logs: Logs, columns: Sequence[str]) -> Iterator[None]:
    """If reading fails, find the first file whose `columns` cannot be read, and name it.

    Raises:
        polars.exceptions.ComputeError: A file cannot be read.
    """
    try:
        yield
    except (pl.exceptions.ComputeError, pl.exceptions.PanicException):
        for file in logs.files:
            _check_readable(Logs([file], [], logs.kind), columns)
        raise


def form_of(out: Path, form: Format) -> Format:
    """The format of a file: the one asked for, or if that is a table, that of its name."""
    if form != "table":
        return form
    if out.suffix not in _SUFFIXES:
        msg = f"cannot write '{out}': its name must end in one of {', '.join(_SUFFIXES)}"
        raise ValueError(msg)
    return _SUFFIXES[out.suffix]


def check_out(out: Path, form: Format) -> None:
    """Raise an error now if `write` could not write to `out` later."""
    form_of(out, form)
    check_place(out)


def check_place(out: Path) -> None:
    """Raise an error now if `write_whole` could not write to `out` later."""
    if not out.parent.is_dir():
        msg = f"cannot write '{out}': there is no folder '{out.parent}'"
        raise FileNotFoundError(msg)
    if out.is_dir():
        msg = f"cannot write '{out}': it is a folder"
        raise IsADirectoryError(msg)
    if not os.access(out.parent, os.W_OK | os.X_OK):
        msg = f"cannot write '{out}': the folder '{out.parent}' is read-only for you"
        raise PermissionError(msg)


def write(answer: pl.DataFrame, out: Path, form: Format) -> None:
    """Write an answer, as `write_whole` does."""
    write_whole(out, lambda: encoded(answer, form_of(out, form)))


def write_whole(out: Path, data: Callable[[], bytes]) -> None:
    """Write beside `out`, then rename: `out` is whole, or as it was.

    Raises:
        OSError: The disk is full, or the folder cannot be written to.
    """
    beside = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        beside.write_bytes(data())
        beside.replace(out)
    except (OSError, pl.exceptions.PolarsError) as error:
        what, *_ = str(error).split(f": {beside}")  # whose name says nothing to the user
        msg = f"cannot write '{out}', which is as it was: {what}"
        raise OSError(msg) from error
    finally:
        beside.unlink(missing_ok=True)


def encoded(answer: pl.DataFrame, form: Format) -> bytes:
    """An answer in a format that is no table."""
    if form == "parquet":
        file = io.BytesIO()
        answer.write_parquet(file)
        return file.getvalue()
    if form == "csv":
        text = answer.write_csv()
    elif form == "json":
        text = answer.write_json()
    elif form == "ndjson":
        text = answer.write_ndjson()
    else:
        text = _markdown(answer)
    return (text if text.endswith("\n") else text + "\n").encode()


def in_lines(answer: pl.DataFrame, escapes: Mapping[str, str]) -> pl.DataFrame:
    """An answer whose texts and column names have these characters escaped."""
    columns = {text.name: text for text in texts(answer).iter_columns()}

    def escaped(text: str) -> str:
        for character, escape in escapes.items():
            text = text.replace(character, escape)
        return text

    broken = [
        pl.col(name).cast(pl.String).str.replace_many(list(escapes), list(escapes.values()))
        for name, text in columns.items()
        if text.str.contains_any(list(escapes)).any()
    ]
    return answer.with_columns(broken).rename(escaped)


def _markdown(answer: pl.DataFrame) -> str:
    """All rows and columns, with the digits that a table shows."""
    with pl.Config(
        tbl_formatting="MARKDOWN",
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=-1,
        fmt_str_lengths=2**31,
    ):
        return str(in_lines(answer, {"\n": "<br>", "|": "\\|", "<": "&lt;"}))


def texts(answer: pl.DataFrame) -> pl.DataFrame:
    """The columns of an answer that hold text, as String."""
    return answer.select(cs.string(include_categorical=True) | cs.enum()).cast(pl.String)


def formulas(answer: pl.DataFrame) -> list[str]:
    """The texts of an answer that a spreadsheet would run as formulas if they came in a CSV."""
    names = pl.Series(answer.columns)
    found = pl.concat([names, *texts(answer).iter_columns()]).unique(maintain_order=True)
    return found.filter(found.str.contains(r"^[=@\t\r]|^[+-][^0-9.]")).to_list()


def _in_folder(folder: str) -> tuple[list[str], list[str]]:
    """The files of the kind that a folder is read as, and the others."""
    files = [
        str(file)
        for file in sorted(Path(folder).rglob("*"))
        if file.is_file() and not file.name.startswith((".", "_"))
    ]
    kinds = {file: _KINDS.get(Path(file).suffix) for file in files}
    known = sorted({kind for kind in kinds.values() if kind is not None})
    if len(known) > 1 and "Parquet" not in known:
        msg = f"folder '{folder}' has files of several kinds, {', '.join(known)}: name a glob"
        raise ValueError(msg)
    wanted = "Parquet" if "Parquet" in known else "".join(known)
    found = [file for file, kind in kinds.items() if kind == wanted]
    return found, [file for file, kind in kinds.items() if kind != wanted]


def _each_once(files: Sequence[str]) -> list[str]:
    by_place = {file if "://" in file else str(Path(file).resolve()): file for file in files}
    return list(by_place.values())


def _kind(file: str) -> str:
    """By the name, or what is in a folder; what has no known name is taken for Parquet."""
    path = Path(file)
    if path.is_dir():
        if (path / _TABLES["Delta"]).is_dir():
            return "Delta"
        if any((path / _TABLES["Iceberg"]).glob("*.metadata.json")):
            return "Iceberg"
    return _KINDS.get(path.suffix, "Parquet")


def _scan_one(file: str) -> pl.LazyFrame:
    scans: dict[str, Callable[[str], pl.LazyFrame]] = {
        "CSV": pl.scan_csv,
        "NDJSON": pl.scan_ndjson,
        "IPC": pl.scan_ipc,
        "Delta": _scan_delta,
        "Iceberg": _scan_iceberg,
    }
    return scans[_kind(file)](file)


def _scan_delta(table: str) -> pl.LazyFrame:
    _check_installed("deltalake", "Delta")
    return pl.scan_delta(table)


def _scan_iceberg(table: str) -> pl.LazyFrame:
    """A table as its newest metadata tell it: the file with the highest number."""

    def number(file: Path) -> int:
        return int("0" + re.sub(r"\D.*", "", file.name.removeprefix("v")))

    newest = max(Path(table, _TABLES["Iceberg"]).glob("*.metadata.json"), key=number)
    _check_installed("pyiceberg", "Iceberg")
    return pl.scan_iceberg(str(newest.resolve()))


def _check_installed(package: str, kind: str) -> None:
    if importlib.util.find_spec(package) is None:
        msg = f"{kind} tables need {package}: pip install 'polars-mcc[{kind.lower()}]'"
        raise ModuleNotFoundError(msg, name=package)


def _from_bytes(data: bytes) -> pl.DataFrame:
    """A log that came through a pipe, of the kind that it begins like."""
    file = io.BytesIO(data)
    try:
        if data.startswith(b"PAR1"):
            return pl.read_parquet(file)
        if data.startswith(b"ARROW1"):
            return pl.read_ipc(file)
        return pl.read_ndjson(file) if data.lstrip().startswith(b"{") else pl.read_csv(file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise _unreadable(STDIN, "a log", error) from error


def _schema(file: str) -> pl.Schema:
    try:
        if _kind(file) == "Parquet":
            return pl.Schema(pl.read_parquet_schema(file))
        return _scan_one(file).collect_schema()
    except pl.exceptions.PolarsError as error:
        raise _unreadable(file, _kind(file), error) from error


def _check_readable(logs: Logs, columns: Sequence[str]) -> None:
    [file] = logs.files
    if file == STDIN:
        return
    try:
        scan(logs, ()).select(cs.by_name(columns, require_all=False).is_null().sum()).collect()
    except (pl.exceptions.ComputeError, pl.exceptions.PanicException) as error:
        raise _unreadable(file, logs.kind, error) from error


def _unreadable(file: str, kind: str, error: BaseException) -> pl.exceptions.ComputeError:
    first = str(error).split("\n", 1)[0]
    msg = f"'{file}' cannot be read as {kind} ({first}); leave it out or write it again"
    return pl.exceptions.ComputeError(msg)


def _partitions(file: str) -> list[str]:
    return [part.split("=", 1)[0] for part in Path(file).parts[:-1] if "=" in part]


def _check_same(column: str, schemas: dict[str, pl.Schema]) -> None:
    having = {file: schema[column] for file, schema in schemas.items() if column in schema}
    if not having:
        return  # missing everywhere: the query says so, and knows the nearest name
    first, dtype = next(iter(having.items()))
    for file in schemas:
        if file not in having:
            msg = f"column '{column}' is in '{first}' but not in '{file}'; score them apart"
            raise pl.exceptions.SchemaError(msg)
        if having[file] != dtype:
            msg = (
                f"column '{column}' is {dtype} in '{first}' but {having[file]} in '{file}'; "
                "write it alike, or score them apart"
            )
            raise pl.exceptions.SchemaError(msg)

"""The outputs of the command line: answers as bytes, files written whole, and the terminal."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import polars as pl
from polars.datatypes import DataType, DataTypeClass

from polars_mcc._base.values_as_text_or_markdown import in_markdown, json_rows
from polars_mcc._base.visible_text import visible_lines
from polars_mcc._comparisons.columns_of_answers import CONFUSION
from polars_mcc._display.table_and_to_numpy import with_texts
from polars_mcc._frame.labels import is_text
from polars_mcc._inputs.find_files import real_paths
from polars_mcc._inputs.log_from_files import TypedLog
from polars_mcc._inputs.paths_and_settings import real_path

Format: TypeAlias = Literal["table", "wide", "csv", "json", "ndjson", "markdown", "parquet"]
"""The format of an answer. Table, wide and markdown round numbers; the others keep every digit."""

PICTURES = ("svg", "png", "html")
"""The formats of pictures, as the suffixes of their files say."""

DRAWN: tuple[str, ...] = ("by", "score", "classes", "confusion", "curve", "calibration")
DRAWN += ("compare", "contrast", "drift", "changes", "worst")
"""The verbs whose answers have a chart."""

IN_TERMINAL = ("table", "wide")
"""The formats that are drawn for a terminal, not for a file."""

_SUFFIXES: dict[str, str] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".md": "markdown",
    **{f".{picture}": picture for picture in PICTURES},
}


def format_of_file(out: Path, form: str, verb: str) -> str:
    """The format of a file: `form`; if `form` is for a terminal, the format of the suffix."""
    if form not in IN_TERMINAL:
        return form
    suffix = out.suffix.lower()
    if suffix not in _SUFFIXES:
        msg = f"cannot write '{out}': its name must end in one of {', '.join(_SUFFIXES)}, "
        msg += "or pass a format, as in --format csv"
        raise ValueError(msg)
    if _SUFFIXES[suffix] in PICTURES and verb not in DRAWN:
        which = f"only {', '.join(DRAWN)} have a chart"
        raise ValueError(f"cannot write '{out}': {which}; write a table, such as .csv")
    return _SUFFIXES[suffix]


def check_writable(out: Path, log: TypedLog, options: Iterable[object]) -> None:
    """Raise an error early if `write_whole` could not write to `out`, or the command reads `out`.

    `options` may name files, as in `cost('costs.csv')`.
    """
    for logs in (log.inputs, *([log.of_labels.inputs] if log.of_labels else [])):
        if real_path(str(out)) in real_paths(logs.files).values():
            raise ValueError(f"cannot write '{out}': it is one of the logs; choose another name")
        if (folder := logs.would_read(str(out))) is not None:
            raise ValueError(
                f"cannot write '{out}': it would be one of the logs of '{folder}'; choose another "
                "place"
            )
    texts = [str(value) for value in options if isinstance(value, (str, list, tuple))]
    words = (word for text in texts for word in (text, *re.split(r"[\"'()\[\],]", text)))
    if out.is_file() and real_path(str(out)) in {real_path(word) for word in words if word}:
        raise ValueError(f"cannot write '{out}': the command reads it; choose another name")
    if _is_special(out):
        return
    if not out.parent.is_dir():
        raise FileNotFoundError(f"cannot write '{out}': there is no folder '{out.parent}'")
    if out.is_dir():
        raise IsADirectoryError(f"cannot write '{out}': it is a folder")
    if not os.access(out.parent, os.W_OK | os.X_OK):
        msg = f"cannot write '{out}': you may not write to the folder '{out.parent}'"
        raise PermissionError(msg)


def write_whole(out: Path, data: Callable[[], bytes]) -> None:
    """Write a file completely: to a temporary file, which is renamed. Else `out` is unchanged.

    A pipe or a device is written as it is: a rename would put a file in its place.
    """
    if _is_special(out):
        out.write_bytes(data())
        return
    beside = out.with_name(f".{out.name}.{uuid.uuid4().hex}")
    try:
        with beside.open("xb") as file:
            file.write(data())
            file.flush()
            os.fsync(file.fileno())
        beside.replace(out)
        _synchronise(out.parent)
    except (OSError, pl.exceptions.PolarsError) as error:  # They may name the temporary file.
        why = getattr(error, "strerror", None) or str(error)
        raise OSError(f"cannot write '{out}', which is unchanged: {why}") from error
    finally:
        beside.unlink(missing_ok=True)


def _is_special(out: Path) -> bool:
    return out.exists() and not out.is_file() and not out.is_dir()


def _synchronise(folder: Path) -> None:
    """Write the names of a folder to the disk, on systems that can open a folder."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def as_bytes(answer: pl.DataFrame, form: str) -> bytes:
    """The bytes of an answer in a format for files."""
    if form == "parquet":
        file = io.BytesIO()
        answer.write_parquet(file)
        return file.getvalue()
    answer = _without_bytes(answer, plain=form in {"csv", "markdown"})
    if form == "csv":
        text = answer.write_csv()
    elif form == "markdown":
        text = _markdown(answer)
    else:
        text = _json(json_rows(answer), of_lines=form == "ndjson")
    return (text if text.endswith("\n") else text + "\n").encode()


def _json(rows: list[dict[str, Any]], *, of_lines: bool) -> str:
    def dumped(value: object) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))

    return "".join(f"{dumped(row)}\n" for row in rows) if of_lines else dumped(rows)


def _without_bytes(answer: pl.DataFrame, *, plain: bool) -> pl.DataFrame:
    """Replace what JSON lacks, Binary values and durations, by text.

    If `plain`, also write nested values as text: CSV has none.
    """
    return with_texts(
        answer,
        [
            name
            for name, dtype in answer.schema.items()
            if _is_lacking(dtype) or (plain and dtype.is_nested())
        ],
    )


def _is_lacking(dtype: DataType | DataTypeClass) -> bool:
    if isinstance(dtype, pl.Struct):
        return any(_is_lacking(field.dtype) for field in dtype.fields)
    if isinstance(dtype, (pl.List, pl.Array)):
        return _is_lacking(dtype.inner)
    return isinstance(dtype, (pl.Binary, pl.Duration))


def with_escapes(answer: pl.DataFrame, escaped: Callable[[str], str]) -> pl.DataFrame:
    """Escape the texts and the column names of an answer; what needs no escape keeps its dtype."""
    columns = {column.name: column for column in answer.iter_columns()}
    for text in text_columns(answer).iter_columns():
        lines = [None if line is None else escaped(line) for line in text]
        if lines != text.to_list():
            columns[text.name] = pl.Series(text.name, lines, pl.String)
    return pl.DataFrame([column.alias(escaped(name)) for name, column in columns.items()])


def _markdown(answer: pl.DataFrame) -> str:
    """All rows and columns as markdown, with as many digits as a table."""
    with pl.Config(
        tbl_formatting="MARKDOWN",
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=-1,
        fmt_str_lengths=2**31,
    ):
        return str(with_escapes(answer, in_markdown))


def text_columns(answer: pl.DataFrame) -> pl.DataFrame:
    """The text columns of an answer, as String."""
    texts = (column for column in answer.iter_columns() if is_text(column.dtype))
    return answer.select(text.cast(pl.String) for text in texts)


_FORMULA = r"^[=@+\-\t\r\n＝＠＋－]"  # Excel takes wide signs too.
_NUMBER = r"^[+-][0-9.,]*(?:[eE][+-]?[0-9]+)?"
_NO_FORMULA = rf"{_NUMBER}(?:%| to -?[0-9]+| < x ≤ [^|(!]+)?$"
"""A number, or the name of a bin that begins with one."""


def run_as_formulas(answer: pl.DataFrame) -> list[str]:
    """The texts of an answer that a spreadsheet would run as formulas if it opened a CSV."""
    names = pl.Series(answer.columns)
    cells = pl.concat([names, *text_columns(answer).iter_columns()]).unique(maintain_order=True)
    is_run = cells.str.contains(_FORMULA) & ~cells.str.contains(_NO_FORMULA)
    return cells.filter(is_run).to_list()


_LEFT_OUT: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("compare", "contrast", "drift"), ("p_value",)),
    "changes": ("diff_low", "diff_high", "p_value", "dispersion"),
    "worst": (
        *("keys", "diff_low", "diff_high", "p_value", "p_beside"),
        *(*CONFUSION, "verdict", "explained_by", "n_tested", "n_untested"),
    ),
}


def open_streams() -> None:
    """Open the null device in place of each standard stream that was closed at the start.

    Then to read or write it does not fail, and no file that is opened later gets its number, to
    which libraries write. A pipe of Windows lacks characters: they are written as "?", and tables
    have lines of ASCII.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    if "│".encode(sys.stdout.encoding, "replace") == b"?":
        pl.Config.set_tbl_formatting("ASCII_FULL_CONDENSED")


def show(text: str) -> None:
    """Write lines to the standard output."""
    write(f"{text}\n".encode(sys.stdout.encoding, "replace"))


def write(data: bytes) -> None:
    """Write to the standard output. If its reader has gone, that does not change the verdict."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except OSError as error:
        if error.errno not in {errno.EPIPE, errno.EINVAL}:  # Windows calls it invalid.
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def hidden_columns(answer: pl.DataFrame, verb: str) -> list[str]:
    """The columns that the table of a verb leaves out. Keys stay: they come before `n`.

    The verdict stays if it says more than "listed".
    """
    first = next((at for at, name in enumerate(answer.columns) if name in {"metric", "n"}), 0)
    after = answer.columns[first:] if verb != "worst" else answer.columns
    left_out = [name for name in after if name in _LEFT_OUT.get(verb, ())]
    if "verdict" in left_out and (answer["verdict"] != "listed").any():
        left_out.remove("verdict")
    return left_out


def terminal_table(answer: pl.DataFrame) -> str:
    """All rows and columns as text; line breaks in a cell are escaped."""
    with pl.Config(tbl_rows=-1, tbl_cols=-1, fmt_str_lengths=100, tbl_width_chars=-1):
        return visible_lines(str(with_escapes(answer, lambda text: text.replace("\n", r"\n"))))

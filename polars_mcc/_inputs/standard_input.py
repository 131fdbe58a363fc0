"""Read the standard input, and say which file cannot be read, and why."""

from __future__ import annotations

import codecs
import io
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from json import JSONDecodeError
from typing import Any

import polars as pl

from polars_mcc._base.errors_and_warnings import reason
from polars_mcc._base.message_parts import in_shell, quoted
from polars_mcc._inputs.find_files import named_error
from polars_mcc._inputs.formats import (
    FORMATS,
    NDJSON,
    PARQUET,
    ROWS_FOR_DTYPES,
    LogFormat,
    by_suffix,
    first_line,
)

STDIN = "-"  # the path of the standard input; it is read into memory


def format_of_pipe() -> LogFormat:
    """The format of a log from a pipe. The log is read once; its first bytes tell its format."""
    data = sys.stdin.buffer.read().removeprefix(codecs.BOM_UTF8)
    if data.startswith(b"\xff\xff\xff\xff"):
        msg = "the standard input is an Arrow stream; write an Arrow file (IPC) or Parquet instead"
        raise ValueError(msg)
    is_packed = data.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))  # gzip or Zstandard
    begin = first_line(io.BytesIO(data)).encode() if is_packed else data
    log_format = next(
        log_format for log_format in FORMATS if begin.lstrip().startswith(log_format.begins)
    )

    @cache
    def scan(_: str, **options: Any) -> pl.LazyFrame:  # noqa: ANN401 - of the format
        return log_format.scan(io.BytesIO(data), **options).collect().lazy()

    return replace(log_format, scan=scan)


TOLD_BY_FIRST_ROWS = (
    f"the first {ROWS_FOR_DTYPES:,} rows of JSON lines tell the columns and dtypes; let all rows "
    "tell them, and write Parquet: pl.read_ndjson(FILE, infer_schema_length=None)"
)

_UNREADABLE = OSError, JSONDecodeError, pl.exceptions.PolarsError, pl.exceptions.PanicException
_NOT_PARSED = re.compile(r"could not parse `(.*)` as dtype `\w+` at column '(.*)'")


@contextmanager
def naming_unreadable(file: str, format_name: str) -> Iterator[None]:
    """Turn errors of the system and of Polars into errors that name the file."""
    try:
        yield
    except _UNREADABLE as error:
        if isinstance(error, OSError) and file != STDIN:
            raise named_error(file, error) from error
        first = str(error).split("\n", 1)[0]
        way_out = "leave it out, or write it again"
        if failed := _NOT_PARSED.match(first):
            null, column = map(shlex.quote, failed.groups())
            is_number = re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", failed[1], re.IGNORECASE)
            way_out = f"add --null {null} if that is no value"
            way_out = "write all numbers with a decimal point" if is_number else way_out
            way_out += f", or --text {column} to read text"
        elif file != STDIN and format_name == PARQUET.name and by_suffix(file) is None:
            endings = [end for known in FORMATS for end in known.suffixes if end.count(".") == 1]
            way_out = f"the end of its name must tell its format: {', '.join(endings)}"
        if format_name == NDJSON and first.endswith("character 0 ('ï')"):
            first = "it begins with a byte order mark: write it as UTF-8 without one"
        if format_name == NDJSON and re.search(r"\('[NI]'\)", first):
            first = "JSON has no NaN, Infinity or None: write null"
        elif format_name == NDJSON and first.startswith("cannot parse"):
            way_out = TOLD_BY_FIRST_ROWS
        msg = f"'{file}' cannot be read as {format_name} ({first}); {way_out}"
        raise pl.exceptions.ComputeError(msg) from error


def names_first(error: BaseException, paths: Sequence[str]) -> bool:
    """Whether the message of an error begins with one of these files."""
    return reason(error).startswith(tuple(f"'{path}" for path in paths))


@contextmanager
def naming_files(paths: Sequence[str], *beginnings: str) -> Iterator[None]:
    """Name files in the errors about them: all errors, or those whose messages so begin."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        what = in_shell(reason(error))
        if not what.startswith(beginnings or "") or names_first(error, paths):
            raise
        known = [kind for kind in type(error).__mro__ if "polars_mcc" not in kind.__module__]
        raise known[0](f"{quoted(paths)}: {what}") from None

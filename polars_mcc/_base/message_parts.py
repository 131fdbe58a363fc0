"""Messages for two interfaces: the words of Python, with the words of the command line beside them.

A message is a `str`. Where both interfaces say the same, a plain `str` is enough.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Self

import polars as pl

_FLAGS = {"keys": "--by", "metrics": "--metric"}
"""Parameters whose option has a name of its own."""


class Words(str):
    """A text for Python, with the text for the command line in `in_shell`: "" to leave it out.

    Examples:
        >>> from polars_mcc._base.message_parts import option, said
        >>> message = said("method needs a level: pass ", option("ci", 0.95))
        >>> message, message.in_shell
        ('method needs a level: pass ci=0.95', 'method needs a level: pass --ci 0.95')
    """

    __slots__ = ("in_shell",)
    in_shell: str

    def __new__(cls, python: str, in_shell: str = "") -> Self:
        """Take both texts."""
        words = super().__new__(cls, python)
        words.in_shell = in_shell
        return words


def said(*parts: str) -> Words:
    """A message of several parts."""
    return Words("".join(parts), "".join(map(in_shell, parts)))


def refused(*parts: str) -> ValueError:
    """The error about a value that is not allowed, with a message of several parts."""
    return ValueError(said(*parts))


def in_shell(text: str) -> str:
    """A message for the command line."""
    return text.in_shell if isinstance(text, Words) else text


def of_error(error: BaseException) -> str:
    """The message of an error, with the words for the command line if it has them."""
    message = getattr(error, "words", None) or next(iter(error.args), None)
    return message if isinstance(message, Words) else str(error)


def option(name: str, value: object, of: str = "") -> Words:
    """An option with its value: `min=0.6`, or `--min 0.6`. `of`: the call that takes it."""
    argument = f"{name}={value!r}"
    return Words(f"{of}({argument})" if of else argument, _typed_option(name, value))


def _typed_option(name: str, value: object) -> str:
    """An option as it is typed. A list or a mapping repeats it."""
    import shlex  # noqa: PLC0415 - only for the message of an error

    flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
    if value is True or value is None:
        return flag if value else f"no {flag}"
    if isinstance(value, Mapping):
        return " ".join(f"{flag} {shlex.quote(f'{key}={item}')}" for key, item in value.items())
    values = value if isinstance(value, (list, tuple)) else [value]
    return " ".join(f"{flag} {shlex.quote(str(item))}" for item in values)


def as_sql(name: str) -> str:
    """The name of a column in SQL."""
    escaped = name.replace('"', '""')
    return name if re.fullmatch(r"[^\W\d]\w*", name) else f'"{escaped}"'


def sql_text(text: str) -> str:
    """A text in SQL."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def column(name: str) -> Words:
    """A column."""
    return Words(f"pl.col({name!r})", as_sql(name))


_SQL_TYPES = {"Int64": "BIGINT", "Float64": "DOUBLE", "String": "VARCHAR", "Boolean": "BOOLEAN"}
_SQL_TYPES |= {"Int8": "TINYINT", "Int16": "SMALLINT", "Int32": "INT", "Date": "DATE"}
_SQL_TYPES |= {"Datetime('us')": "TIMESTAMP", "Datetime('us', 'UTC')": "TIMESTAMPTZ"}


def cast(code: Words, dtype: str) -> Words:
    """A column in another dtype of Polars."""
    python = f"{code}.cast(pl.{dtype})"
    in_sql = dtype.upper() if dtype.startswith("Decimal") else _SQL_TYPES.get(dtype)
    in_sql = f"{code.in_shell}::{in_sql}" if in_sql else python
    return Words(python, in_sql)


def as_time(name: str) -> Words:
    """How text becomes a time. Of other text than ISO, Polars guesses which number is the day."""
    python, sql = f"pl.col({name!r}).str.to_datetime", as_sql(name)
    iso, zoned = " if it is like 2026-03-31T12:00, ", " if it ends with Z or an offset, else "
    of_python = f"{python}(){iso}{python}(time_zone='UTC'){zoned}{python}('%d/%m/%Y')"
    of_sql = f"{sql}::TIMESTAMP{iso}{sql}::TIMESTAMPTZ{zoned}strptime({sql}, '%d/%m/%Y')"
    return said(Words(of_python, of_sql), " with its format")


def renamed(name: str, new: str) -> Words:
    """A key with another name."""
    key = f"{as_sql(name)} AS {as_sql(new)}"
    return Words(f"pl.col('{name}').alias('{new}')", _typed_option("keys", key))


def quoted(names: Iterable[str]) -> str:
    """Names in quotes, separated by commas."""
    return ", ".join(f"'{name}'" for name in names)


def few(names: Collection[str]) -> str:
    """The first ten names in quotes, and the number of the others."""
    and_more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"{quoted([*names][:10])}{and_more}"


def as_code(value: object) -> str:
    """A value as Python code; an expression as Polars shows it."""
    if isinstance(value, pl.Expr):
        return f"pl.{value}" if str(value).startswith("col(") else str(value)
    if isinstance(value, str):
        return f'"{value}"' if repr(value) == f"'{value}'" and '"' not in value else repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(as_code, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(as_code, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def as_arguments(options: Mapping[str, object]) -> str:
    """Options as the arguments of a call."""
    return ", ".join(f"{name}={as_code(value)}" for name, value in options.items())

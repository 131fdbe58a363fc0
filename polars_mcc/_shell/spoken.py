"""Text written for Python in the words of a shell: `ci=0.95` becomes `--ci 0.95`.

Verbs say in Python what to write: in their errors, and in their docstrings, which are the help.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from polars_mcc._log.messages import as_sql
from polars_mcc.prediction_log import PredictionLog

NAMES: Mapping[str, str] = {
    "keys": "--by",  # as in SQL; the positional arguments are the logs
    "metrics": "--metric",  # repeated, one metric each time
}
"""Parameters whose option has a name of its own."""

_METHODS = {name: one for name, one in vars(PredictionLog).items() if inspect.isfunction(one)}
_SIGNATURES = [*map(inspect.signature, _METHODS.values()), inspect.signature(PredictionLog)]
_PARAMETERS = [parameter for one in _SIGNATURES for parameter in one.parameters.values()]
_OPTIONS = "|".join({one.name: None for one in _PARAMETERS if one.kind is one.KEYWORD_ONLY})
_VERBS = "|".join(name for name in _METHODS if not name.startswith("_"))
_SQL_TYPES = {"Int64": "BIGINT", "Float64": "DOUBLE", "String": "VARCHAR", "Boolean": "BOOLEAN"}
_SQL_TYPES |= {"Int8": "TINYINT", "Int16": "SMALLINT", "Int32": "INT", "Date": "DATE"}

_START = r"(?<![^\s(`])"  # A folder such as 'logs/top=3/' is no option.
_TEXT = r"""'[^']*'|"[^"]*\""""
_VALUE = rf"{_TEXT}|\[[^\]]*\]|\{{[^}}]*\}}|True|-?\d+(?:\.\d+)?"

Rule: TypeAlias = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]


def flag_of(name: str) -> str:
    """The option of a parameter, as it is typed: `--min-n` of `min_n`."""
    return NAMES.get(name, f"--{name.replace('_', '-')}")


def in_shell(text: str, *, typed: Collection[str] = ()) -> str:
    """A message with options as they are typed in a shell; what the user typed stays as it is."""
    for pattern, words in _RULES:

        def one(found: re.Match[str], words: Callable[[re.Match[str]], str] = words) -> str:
            return found[0] if any(found[0] in said for said in typed) else words(found)

        text = pattern.sub(one, text)
    return text


def as_help(text: str, flag: str = "") -> str:
    """Words of a docstring as help, without sentences on Python; a mapping is for the option."""
    text = _OF_PYTHON.sub("", text)
    return in_shell(_MAPPING.sub(lambda found: _typed(flag, found[0]), text))


def _operand(text: str) -> str:
    """A column, or SQL in parentheses, so that an operator can follow."""
    return f"({text})" if re.search(r"[-+*/%<>=(|:]", text) else as_sql(text)


def _option(name: str, value: str) -> str:
    """An option with a value in Python's notation, or in SQL."""
    return _typed(flag_of(name), value)


def _typed(flag: str, text: str) -> str:
    """A value as it is typed after its option; a list or a mapping repeats the option."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return f"{flag} {shlex.quote(text)}" if flag else text
    if value is True:
        return flag
    if isinstance(value, dict):
        return " ".join(f"{flag} {name}={one}".strip() for name, one in value.items())
    values = value if isinstance(value, list) else [value]
    return " ".join(f"{flag} {'…' if one is ... else shlex.quote(str(one))}" for one in values)


_MAPPING = re.compile(rf"\{{(?:{_TEXT}): (?:{_VALUE})(?:, (?:{_TEXT}): (?:{_VALUE}))*\}}")
_OF_PYTHON = re.compile(r"\s*In Python\b.*?\.(?=\s+[A-Z]|$)")  # one sentence
_RULES: list[Rule] = [
    (re.compile(r"`metrics\(\)`"), lambda _: "`polars-mcc metrics`"),
    (re.compile(rf"`({_OPTIONS})`"), lambda it: flag_of(it[1])),
    (re.compile(rf"`({_VERBS})`"), lambda it: f"`polars-mcc {it[1].replace('_', '-')}`"),
    (
        re.compile(rf"pl\.col\(({_TEXT})\)\.cast\(pl\.({'|'.join(_SQL_TYPES)})\)"),
        lambda it: f"{_operand(it[1][1:-1])}::{_SQL_TYPES[it[2]]}",
    ),
    (
        re.compile(rf"(?<!\()pl\.col\(({_TEXT})\)\.str\.to_datetime\(\)"),
        lambda it: f"--by '{as_sql(it[1][1:-1])}::DATETIME AS {as_sql(it[1][1:-1])}'",
    ),
    (
        re.compile(
            rf"in Polars as trailing\(pl\.col\(({_TEXT})\)\.str\.to_datetime\(\), ({_TEXT})\)"
        ),
        lambda it: f"as in trailing({as_sql(it[1][1:-1]) + '::TIMESTAMP'!r}, {it[2]})",
    ),
    (
        re.compile(rf"pl\.col\(({_TEXT})\)\.alias\(({_TEXT})\)"),
        lambda it: f"--by '{it[1][1:-1]} AS {it[2][1:-1]}'",
    ),
    (re.compile(rf"pl\.col\(\.\.\.\)\.alias\(({_TEXT})\)"), lambda it: f"… AS {it[1][1:-1]}"),
    (re.compile(r"\.alias\(\.\.\.\)"), lambda _: "AS"),
    (re.compile(rf"pl\.col\(({_TEXT})\)"), lambda it: _operand(it[1][1:-1])),
    (
        re.compile(r"\bdate\((\d+), (\d+), (\d+)\)"),
        lambda it: f"DATE '{it[1]}-{it[2]:0>2}-{it[3]:0>2}'",
    ),
    (re.compile(r", as in log\(\w+=[^()]*\)\.\w+\(\.\.\.\)"), lambda _: ""),
    (
        re.compile(rf"\b(?:frame\.mcc|log)\(({_OPTIONS})=([^()]*)\)"),
        lambda it: _option(it[1], it[2]),
    ),
    (re.compile(rf"\b(?:by|contrast)\(({_TEXT})\)"), lambda it: _option("keys", it[1])),
    (re.compile(rf"\b({_VERBS})\(({_TEXT})\)"), lambda it: f"{it[1]} {_option('keys', it[2])}"),
    (re.compile(rf"\b({_VERBS})\(\)"), lambda it: it[1].replace("_", "-")),
    (re.compile(rf"{_START}({_OPTIONS})=({_VALUE})"), lambda it: _option(it[1], it[2])),
    (re.compile(rf"{_START}({_OPTIONS})=(?=[,;.\s]|$)"), lambda it: flag_of(it[1])),
    (_MAPPING, lambda it: _typed("", it[0])),
]
"""What Python says, and what a shell says, in the order in which they are replaced."""

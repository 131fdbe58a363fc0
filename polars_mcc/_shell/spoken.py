"""Text written for Python in the words of a shell: `ci=0.95` becomes `--ci 0.95`.

Verbs say in Python what to write: in their errors, and in their docstrings, which are the help.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Collection, Mapping
from typing import Any

from polars_mcc.prediction_log import PredictionLog

NAMES: Mapping[str, str] = {
    "keys": "--by",  # as in SQL; the positional arguments are the logs
    "metrics": "--metric",  # repeated, one metric each time
}
"""Parameters whose option has a name of its own."""

_VERBS = [PredictionLog.__init__, *filter(callable, vars(PredictionLog).values())]
_PARAMETERS = [one for verb in _VERBS for one in inspect.signature(verb).parameters.values()]
_OPTIONS = "|".join({one.name: None for one in _PARAMETERS if one.kind is one.KEYWORD_ONLY})
_QUOTED = r"""'[^']*'|"[^"]*\""""
_ALIAS = re.compile(rf"pl\.col\(({_QUOTED})\)\.alias\(({_QUOTED})\)")
_COLUMN = re.compile(rf"pl\.col\(({_QUOTED})\)")
_DATE = re.compile(r"\bdate\((\d+), (\d+), (\d+)\)")
_LOG = re.compile(rf"\bframe\.mcc\(({_OPTIONS})=([^()]*)\)")
_KEYS = re.compile(rf"\b(?:by|contrast)\(({_QUOTED})\)")
_OPTION = re.compile(rf"\b({_OPTIONS})=({_QUOTED}|\[[^\]]*\]|\{{[^}}]*\}}|True|-?\d+(?:\.\d+)?)")
_NO_VALUE = re.compile(rf"\b({_OPTIONS})=(?=[,;.\s]|$)")
_NAMED = re.compile(rf"`({_OPTIONS})`")
_MAPPING = re.compile(r"""\{(?:'|")\w+(?:'|"): [^}]*\}""")
_OF_PYTHON = re.compile(r"\s*In Python\b.*?\.(?=\s+[A-Z]|$)")  # one sentence


def flag_of(name: str) -> str:
    """The option of a parameter, as it is typed: `--min-n` of `min_n`."""
    return NAMES.get(name, f"--{name.replace('_', '-')}")


def in_shell(text: str, *, flag: str | None = None, typed: Collection[str] = ()) -> str:
    """The text with options as they are typed in a shell.

    Args:
        text: A message, or words of a docstring.
        flag: The option that a mapping of the text belongs to, if it is one.
        typed: What the user typed: it is quoted as it is.
    """

    def rewritten(pattern: re.Pattern[str], words: Any, text: str) -> str:  # noqa: ANN401 - a callable
        def one(found: re.Match[str]) -> str:
            is_the_user_s = any(found[0] in said for said in typed)
            return found[0] if is_the_user_s else words(found)

        return pattern.sub(one, text)

    text = _OF_PYTHON.sub("", text).replace("`metrics()`", "`polars-mcc metrics`")
    text = rewritten(_ALIAS, lambda it: f"--by '{it[1][1:-1]} AS {it[2][1:-1]}'", text)
    text = rewritten(_COLUMN, lambda it: it[1][1:-1], text)
    text = rewritten(_DATE, lambda it: f"DATE '{it[1]}-{it[2]:0>2}-{it[3]:0>2}'", text)
    text = rewritten(_LOG, lambda it: _option(it[1], it[2]), text)
    text = rewritten(_KEYS, lambda it: f"--by {shlex.quote(it[1][1:-1])}", text)
    text = rewritten(_OPTION, lambda it: _option(it[1], it[2]), text)
    text = rewritten(_NAMED, lambda it: flag_of(it[1]), text)
    text = rewritten(_NO_VALUE, lambda it: flag_of(it[1]), text)
    return rewritten(_MAPPING, lambda it: _words(flag, ast.literal_eval(it[0])), text)


def _option(name: str, value: str) -> str:
    """An option with a value in Python's notation."""
    try:
        return _words(flag_of(name), ast.literal_eval(value))
    except (ValueError, SyntaxError):  # SQL
        return f"{flag_of(name)} {shlex.quote(value)}"


def _words(flag: str | None, value: object) -> str:
    """A value as it is typed after its option; a list or a mapping repeats the option."""
    before = "" if flag is None else f"{flag} "
    if value is True:
        return before.strip()
    if isinstance(value, dict):
        return " ".join(f"{before}{key}={one}" for key, one in value.items())
    values = value if isinstance(value, list) else [value]
    return " ".join(before + ("…" if one is ... else shlex.quote(str(one))) for one in values)

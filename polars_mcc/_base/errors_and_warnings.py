"""Errors about values, raised by the query itself; about missing packages; and our warnings.

A plan of native expressions cannot call Python to raise an error. A strict cast can fail, and
its error shows the value. So the message is the value of a cast that fails. A warning is raised at
the line of a user's code, or heard by a command.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import polars as pl

from polars_mcc._base.message_parts import Words, of_error

_END = "\u2060"
"""The end of a message: an invisible mark, as Polars quotes a value without escapes."""


@dataclass(frozen=True)
class Failure:
    """A condition under which the query fails, and the words and values of the message."""

    when: pl.Expr
    message: Sequence[str | pl.Expr]


def unless(value: pl.Expr, *failures: Failure) -> pl.Expr:
    """`value`, or an error with the message of the first failure whose condition is true."""
    if not failures:
        return value
    messages = []
    for failure in failures:  # `pl.format` would misread braces in a name.
        texts = (
            pl.lit(part) if isinstance(part, str) else part.cast(pl.String)
            for part in failure.message
        )
        messages.append(pl.when(failure.when).then(pl.concat_str(*texts, pl.lit(_END))))
    stop = pl.coalesce(messages).cast(pl.Int64)
    return pl.when(stop.is_null()).then(value)


def reason(error: BaseException) -> str:
    """A message of our own, also one given to `unless`; or the first paragraph of another."""
    text = of_error(error)
    if (message := own_message(text)) is not None:
        return message
    return text if isinstance(text, Words) else text.split("\n\n", 1)[0].strip()


@contextmanager
def in_own_words() -> Iterator[None]:
    """Raise an error that was given to `unless` with its message alone."""
    try:
        yield
    except pl.exceptions.InvalidOperationError as error:
        if (message := own_message(str(error))) is None:
            raise
        raise pl.exceptions.InvalidOperationError(message) from None


def own_message(text: str) -> str | None:
    """The message that was given to `unless`, without the cast; None for another error."""
    if not text.startswith("conversion from `str` to `i64` failed") or _END not in text:
        return None
    return text.split('["', 1)[1].split(_END, 1)[0]


def missing(*, subject: str, package: str, extra: str) -> ModuleNotFoundError:
    """An error that names the extra of a package that is not installed."""
    msg = f"{subject} needs {package}, which is not installed: pip install 'polars-mcc[{extra}]'"
    return ModuleNotFoundError(msg, name=package)


def check_installed(package: str, *, subject: str, extra: str) -> None:
    """Raise an error that names the extra, unless its package is installed."""
    if importlib.util.find_spec(package) is None:
        raise missing(subject=subject, package=package, extra=extra)


class PredictionLogWarning(UserWarning):
    """A label has several spellings, every score is 0 or 0/0, or a key makes no useful slices."""

    __module__ = "polars_mcc"  # where users find it


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collect the sentences of such warnings, instead of printing them."""
    sentences: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PredictionLogWarning)
        yield sentences
    for warning in caught:
        if isinstance(warning.message, PredictionLogWarning):
            sentences.append(of_error(warning.message))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )


def warn_of(sentences: Iterable[str]) -> None:
    """Warn at the line of the user's code that asked; in a thread of our own, at none."""
    packages = (Path(pl.__file__).parent, Path(__file__).parents[1])
    inside = (*(f"{folder}{os.sep}" for folder in packages), threading.__file__)
    for sentence in sentences:
        frame: FrameType | None = sys._getframe()  # noqa: SLF001 - as `warnings` does
        level = 1
        while frame is not None and frame.f_code.co_filename.startswith(inside):
            frame, level = frame.f_back, level + 1
        warnings.warn(sentence, PredictionLogWarning, stacklevel=level)

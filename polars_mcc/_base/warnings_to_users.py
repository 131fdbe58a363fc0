"""The warnings of the package: raised at the line of a user's code, or heard by a command."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from polars_mcc._base.message_parts import of_error


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
    """Warn at the line of the user's code that asked."""
    packages = (Path(pl.__file__).parent, Path(__file__).parents[1])
    inside = tuple(f"{folder}{os.sep}" for folder in packages)
    for sentence in sentences:
        frame, level = sys._getframe(), 1  # noqa: SLF001 - as `warnings` does
        while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
            frame, level = frame.f_back, level + 1
        warnings.warn(sentence, PredictionLogWarning, stacklevel=level)

"""Messages and tables for a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

import polars as pl

from polars_mcc._base.visible_text import visible_lines
from polars_mcc._cli.output_files import with_escapes
from polars_mcc._worst.failures_in_words import CONFUSION

_LEFT_OUT: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("compare", "contrast", "drift"), ("diff_se", "p_value")),
    "changes": ("diff_low", "diff_high", "p_value", "dispersion"),
    "worst": (
        *("keys", "diff_low", "diff_high", "p_value", "p_beside"),
        *(*CONFUSION, "verdict", "explained_by", "n_tested", "n_untested"),
    ),
}


def open_streams() -> None:
    """Open the null device in place of each standard stream that was closed at the start.

    Then to read or write it does not fail, and no file that is opened later gets its number, to
    which libraries write.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def show(text: str) -> None:
    """Write lines to the standard output."""
    write(f"{text}\n".encode(sys.stdout.encoding, "replace"))


def write(data: bytes) -> None:
    """Write to the standard output. If its reader has gone, that does not change the verdict."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def hidden_columns(answer: pl.DataFrame, verb: str) -> list[str]:
    """The columns that the table of a verb leaves out. Keys stay: they come before `n`.

    The verdict stays if it says more than "listed".
    """
    first = next((at for at, name in enumerate(answer.columns) if name in {"n", "n_before"}), 0)
    after = answer.columns[first:] if verb != "worst" else answer.columns
    left_out = [name for name in after if name in _LEFT_OUT.get(verb, ())]
    if "verdict" in left_out and (answer["verdict"] != "listed").any():
        left_out.remove("verdict")
    return left_out


def terminal_table(answer: pl.DataFrame) -> str:
    """All rows and columns as text; line breaks in a cell are escaped."""
    with pl.Config(tbl_rows=-1, tbl_cols=-1, fmt_str_lengths=100, tbl_width_chars=-1):
        return visible_lines(str(with_escapes(answer, lambda text: text.replace("\n", r"\n"))))

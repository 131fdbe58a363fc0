"""Text without characters that a terminal obeys; a line to the standard error."""

from __future__ import annotations

import sys
from unicodedata import bidirectional, category

_CONTROL_CATEGORIES = {"Cc", "Zl", "Zp"}
"""Unicode's categories of control characters and of line breaks."""
_REORDERING_CLASSES = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
"""Unicode's classes of characters that change the text direction."""


def say(message: str) -> None:
    """Write a line to the standard error."""
    sys.stderr.write(f"polars-mcc: {_visible(message)}\n")


def visible_lines(text: str) -> str:
    """Escape control characters and characters that reorder text; keep the line breaks."""
    return "\n".join(map(_visible, text.split("\n")))


def _visible(text: str) -> str:
    def visible(character: str) -> str:
        is_obeyed = (
            category(character) in _CONTROL_CATEGORIES
            or bidirectional(character) in _REORDERING_CLASSES
        )
        return ascii(character)[1:-1] if is_obeyed else character

    return "".join(map(visible, text))

"""Values that differ only in case, spaces or Unicode form, such as "Yes" and "yes "."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from polars_mcc._base.values_as_text_or_markdown import rows_in_words

Rows: TypeAlias = Mapping[str, float]
"""The rows of each text."""

_SHOWN = 10  # groups that a sentence shows, and texts of a group, at most
_POWERS = re.compile("(?<=\\d)(?=[\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089])")
_SPACES = re.compile(r"(?<!\d) | (?!\d)")


def alike(texts: Iterable[str]) -> list[list[str]]:
    """The texts that differ only in case, spaces or Unicode form, in groups of two or more.

    10² stays apart from 102, and "1 5" from "15". Characters that nobody sees do not count.
    """
    groups: dict[str, list[str]] = {}
    for text in sorted(texts):
        composed = unicodedata.normalize("NFKC", _POWERS.sub("^", text)).replace("\ufe0f", "")
        seen = "".join(char for char in composed if unicodedata.category(char) != "Cf")
        normal = _SPACES.sub("", " ".join(seen.split())).casefold()
        groups.setdefault(normal, []).append(text)
    return [group for group in groups.values() if len(group) > 1]


def differ(groups: Sequence[Sequence[str]], columns: Iterable[tuple[str, Rows]]) -> str:
    """The end of a sentence: the texts of each group, with their rows in each column."""
    has = []
    for name, rows in columns:
        of_groups = ([text for text in group if text in rows][:_SHOWN] for group in groups)
        each = [
            " and ".join(_with_rows(text, rows) for text in group) for group in of_groups if group
        ]
        has.append(f"'{name}' has {', '.join(each[:_SHOWN])}{', …' if len(each) > _SHOWN else ''}")
    return f"differ only in case, spaces or Unicode form: {'; '.join(has)}"


def _with_rows(text: str, rows: Rows) -> str:
    return f"{text!r} ({rows_in_words(rows[text])})"

"""A report for machines: Markdown for a pull request, JSON for a tracker."""

from __future__ import annotations

import json

import polars as pl

from polars_mcc._report.verdict import Report, Sentence
from polars_mcc._show.table import keys_of, shown

_ROWS = 20  # rows of a table in Markdown, at most: a comment is not long


def markdown(report: Report) -> str:
    """The verdict as a list, and each section as a table that is folded."""
    parts = [f"# {_escaped(report.title)}", "\n".join(map(_item, report.verdict))]
    for section in report.sections:
        if section.rows.is_empty():
            continue
        more = section.rows.height - _ROWS
        cut = [f"The first {_ROWS} of {section.rows.height:,} rows."] if more > 0 else []
        parts += [
            f"<details><summary>{_escaped(section.title)}</summary>",
            *map(_escaped, [*section.notes, *cut]),
            _table(section.rows.head(_ROWS)),
            *([f"    {section.query}"] if section.query else []),
            "</details>",
        ]
    lines = [f"{_escaped(what)}: {_escaped(text)}" for what, text in report.made.items()]
    return "\n\n".join([*parts, "\n".join(f"- {line}" for line in lines)]) + "\n"


def as_json(report: Report) -> str:
    """The same with all digits; NaN is null, and times are text."""
    found = {
        "title": report.title,
        "verdict": [
            {"text": sentence.text, "about": sentence.about, "is_detail": sentence.is_detail}
            for sentence in report.verdict
        ],
        "sections": [
            {
                "title": section.title,
                "query": section.query,
                "notes": [*section.notes],
                "rows": json.loads(section.rows.write_json()),
            }
            for section in report.sections
        ],
        "made": {**report.made},
    }
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def _item(sentence: Sentence) -> str:
    return f"{'  ' * sentence.is_detail}- {_escaped(sentence.text)}"


def _table(rows: pl.DataFrame) -> str:
    keys = keys_of(rows)
    numbers = {name for name, dtype in rows.schema.items() if dtype.is_numeric()}
    lines = [
        [*map(_escaped, rows.columns)],
        ["---:" if name in numbers else "---" for name in rows.columns],
        *(
            [_escaped(shown(name, value, is_key=name in keys)) for name, value in row.items()]
            for row in rows.iter_rows(named=True)
        ),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(text: str) -> str:
    """Text of a log as text of Markdown: no HTML, no mark-up, no end of a cell or a line."""
    for character in "\\`*_[]<>|~#":
        text = text.replace(character, f"\\{character}")
    return text.replace("&", "&amp;").replace("\r", "").replace("\n", " ")

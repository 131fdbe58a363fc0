"""A report as Markdown, for a pull request, or as JSON, for a program."""

from __future__ import annotations

import html
import json

import polars as pl

from polars_mcc._log.text import in_markdown, json_rows
from polars_mcc._report.sections import TOTAL_ID
from polars_mcc._report.verdict import Report
from polars_mcc._show.table import keys_of, texts_of, with_texts

_ROWS = 20  # rows of a table in Markdown, at most: a comment should be short
_IN_HTML = str.maketrans({"\n": "&#10;", "\r": "&#13;", "@": "@<!-- -->"})
"""Markdown would begin again after an empty line."""


def markdown(report: Report) -> str:
    """Write a report as Markdown: the verdict, the total, and all other tables folded."""
    verdict = [f"{'  ' * one.is_detail}- {in_markdown(one.text)}" for one in report.verdict]
    parts = [f"## {in_markdown(report.answers.options.title)}", "\n".join(verdict)]
    for section in report.sections:
        if section.rows.is_empty():
            continue
        rows = section.rows.drop(section.hidden, strict=False)
        shown = rows.tail(_ROWS) if section.is_time else rows.head(_ROWS)
        which = "last" if section.is_time else "first"
        cut = [f"The {which} {_ROWS} of {rows.height:,} rows."] if rows.height > _ROWS else []
        told = "\n\n".join([*map(in_markdown, [*section.notes, *cut]), _table(shown)])
        if section.id != TOTAL_ID:
            title = html.escape(section.title).translate(_IN_HTML)
            told = f"<details><summary>{title}</summary>\n\n{told}\n\n</details>"
        parts.append(told)
    made = "; ".join(
        f"{in_markdown(what)}: {in_markdown(text)}" for what, text in report.made.items()
    )
    return "\n\n".join([*parts, f"<sub>{made}</sub>"]) + "\n"


def as_json(report: Report) -> str:
    """Write a report as JSON, with all digits and columns. NaN and times are text."""
    found = {
        "schema": 1,
        "title": report.answers.options.title,
        "metric": report.answers.metric,
        "ci": report.answers.options.ci,
        "models": [*report.answers.models],
        "keys": [*report.answers.keys],
        "verdict": [
            {"kind": one.kind, "text": one.text, "section": one.about} for one in report.verdict
        ],
        "sections": [
            {"id": one.id, "title": one.title, "query": one.query, "notes": [*one.notes]}
            | {"rows": json_rows(_plain(one.rows))}
            for one in report.sections
        ],
        "made": {**report.made},
    }
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def _plain(rows: pl.DataFrame) -> pl.DataFrame:
    """Cast dtypes that JSON lacks to text, and keys of lists and structs."""
    keys = keys_of(rows)
    odd = [
        name
        for name, dtype in rows.schema.items()
        if dtype in {pl.Binary, pl.Duration} or (name in keys and dtype.is_nested())
    ]
    return with_texts(rows, odd)


def _table(rows: pl.DataFrame) -> str:
    lines = [
        [*map(in_markdown, rows.columns)],
        ["---:" if dtype.is_numeric() else "---" for dtype in rows.dtypes],
        *([*map(in_markdown, row)] for row in zip(*texts_of(rows).values(), strict=True)),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

"""A log → a report: all steps in order; and the report as Markdown or JSON."""

from __future__ import annotations

import datetime as dt
import html
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from polars_mcc._base.values_as_text_or_markdown import in_markdown, json_rows
from polars_mcc._display.table_and_to_numpy import key_columns, with_texts
from polars_mcc._frame.log_options import Described
from polars_mcc._keys.any_key import IntoKey
from polars_mcc._report.keys_counted_once import Collect, section_keys
from polars_mcc._report.report_data import ReportSettings, answers
from polars_mcc._report.sections import Section, sections, shown
from polars_mcc._report.summary import Report, in_words, sentences
from polars_mcc._version import __version__

_MAX_MARKDOWN_ROWS = 20  # rows of a table in Markdown: a comment should be short
_HTML_ESCAPES = str.maketrans({"\n": "&#10;", "\r": "&#13;", "@": "@<!-- -->"})
"""Markdown would begin again after an empty line."""


def markdown(report: Report) -> str:
    """Write a report as Markdown: the verdict, the total, and all other tables folded."""
    verdict = [f"- {in_markdown(said.text)}" for said in report.verdict]
    blocks = [f"## {in_markdown(report.answers.settings.title)}", "\n".join(verdict)]
    words = (f"- {in_markdown(name)}: {in_markdown(text)}" for name, text in report.words.items())
    blocks += ["\n".join(words)]
    for section in report.sections:
        said = report.said_of(section)
        if section.rows.is_empty() and not said:
            continue
        rows, cut = section.rows, -_MAX_MARKDOWN_ROWS if section.is_time else 0
        first = rows[cut:][:_MAX_MARKDOWN_ROWS] if rows.height > _MAX_MARKDOWN_ROWS else rows
        which = "last" if section.is_time else "first"
        notes = [*section.notes, *said]
        if rows.height > _MAX_MARKDOWN_ROWS:
            notes.append(f"The {which} {_MAX_MARKDOWN_ROWS} of {rows.height:,} rows.")
        tables = [_markdown_table(section, first)] if rows.height else []
        block = "\n\n".join([*map(in_markdown, notes), *tables])
        if section.id != "total":
            title = html.escape(section.title).translate(_HTML_ESCAPES)
            block = f"<details><summary>{title}</summary>\n\n{block}\n\n</details>"
        blocks.append(block)
    made = "; ".join(": ".join(map(in_markdown, entry)) for entry in report.made.items())
    return "\n\n".join([*blocks, f"<sub>{made}</sub>"]) + "\n"


def as_json(report: Report) -> str:
    """Write a report as JSON, with all digits and columns. NaN and times are text."""
    content = {
        "schema": 1,
        "title": report.answers.settings.title,
        "metric": report.answers.metric,
        "ci": report.answers.settings.ci,
        "models": [*report.answers.models],
        "keys": [*report.answers.columns],
        "verdict": [
            {"kind": sentence.kind, "text": sentence.text, "section": sentence.about}
            for sentence in report.verdict
        ],
        "words": {**report.words},
        "sensitive": [key.name for key in report.answers.sensitive],
        "sections": [
            {"id": section.id, "title": section.title, "query": section.query}
            | {"notes": [*section.notes], "sentences": report.said_of(section)}
            | {"rows": json_rows(_castable(section.rows))}
            for section in report.sections
        ],
        "made": {**report.made},
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _castable(rows: pl.DataFrame) -> pl.DataFrame:
    """Cast dtypes that JSON lacks to text, and keys of lists and structs."""
    keys = key_columns(rows)
    lacking = [
        name
        for name, dtype in rows.schema.items()
        if isinstance(dtype, (pl.Binary, pl.Duration)) or (name in keys and dtype.is_nested())
    ]
    return with_texts(rows, lacking)


def _markdown_table(section: Section, rows: pl.DataFrame) -> str:
    heads, columns, texts = zip(*shown(section, rows), strict=True)
    lines = [
        [*map(in_markdown, heads)],
        ["---:" if column.dtype.is_numeric() else "---" for column in columns],
        *([*map(in_markdown, row)] for row in zip(*texts, strict=True)),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_report(
    log: Described[Any],
    keys: Sequence[IntoKey],
    collect: Collect,
    settings: ReportSettings,
    made_by: Mapping[str, str] | None = None,
) -> str:
    """Write a report. `made_by` adds entries to its last section, *How this was made*."""
    reason = "some of its answers are of the labelled rows alone"
    log.roles.check_without("report", reason, "reweight")
    versions = {"polars_mcc": __version__, "Polars": pl.__version__}
    if settings.format == "html":
        from polars_mcc._report import html_page  # noqa: PLC0415 - altair is optional

        versions["altair"] = html_page.ALTAIR
    every = section_keys(log, [*settings.sensitive, *keys])
    n_sensitive = len(section_keys(log, settings.sensitive))
    if others := [key.name for key in every[:n_sensitive] if not key.is_column]:
        raise ValueError(f"sensitive takes columns, each for itself, but {others} are none")
    all_answers = replace(answers(log, every, collect, settings), n_sensitive=n_sensitive)
    versions["Python"] = platform.python_version()
    made = {
        **(made_by or {}),
        "made": f"{dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC",
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
    }
    content = Report(
        all_answers, sentences(all_answers), [*sections(all_answers)], in_words(all_answers), made
    )
    if settings.format == "md":
        return markdown(content)
    if settings.format == "json":
        return as_json(content)
    return html_page.page(content)

"""A log → a report: all steps in order."""

from __future__ import annotations

import datetime as dt
import platform
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import polars as pl

from polars_mcc._log.choices import ReportFormat, check_at_least, check_choice, check_level
from polars_mcc._log.described import Described
from polars_mcc._log.keys import IntoKey
from polars_mcc._report.answers import Asked, answers
from polars_mcc._report.once import Collect
from polars_mcc._report.parts import parts_of
from polars_mcc._report.sections import sections
from polars_mcc._report.text import as_json, markdown
from polars_mcc._report.verdict import Report, picture, tiles, verdict
from polars_mcc._scores import registry
from polars_mcc._scores.registry import IntoMetric
from polars_mcc._version import __version__


def written(
    log: Described[Any],
    keys: Sequence[IntoKey],
    collect: Collect,
    *,
    metric: IntoMetric,
    ci: float,
    depth: int,
    min_n: int,
    title: str,
    format: ReportFormat,  # noqa: A002 - as in `open`
    explored: int,
    made_by: Mapping[str, str] | None = None,
) -> str:
    """Write a report. `made_by` adds entries to its last section, *How this was made*."""
    check_level(ci)
    check_choice("format", format, ReportFormat)
    check_at_least("explored", explored, 0)
    asked = Asked(registry.one(metric), metric, ci, depth, min_n)
    versions = {"polars_mcc": __version__, "Polars": pl.__version__}
    with ExitStack() as stack:
        if format == "html":
            from polars_mcc._report import explorer, page  # noqa: PLC0415 - altair is optional

            versions["altair"] = page.ALTAIR
            script = stack.enter_context(page.libraries())
        found = answers(log, parts_of(log, keys), collect, asked)
        said, shown = verdict(found, asked), [*sections(found, asked)]
        versions["Python"] = platform.python_version()
        made = {
            **(made_by or {}),
            "made": f"{dt.datetime.now(dt.timezone.utc):%Y-%m-%d %H:%M} UTC",
            "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
        }
        report = Report(title, asked, found.models, found.keys, said, shown, made)
        if format == "md":
            return markdown(report)
        if format == "json":
            return as_json(report)
        explored_slices = explorer.explorer(found, asked, log.meaning, explored)
        top = [*tiles(found, asked)], picture(found, asked)
        return page.page(report, *top, explored_slices, script)

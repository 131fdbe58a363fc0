"""A log → a report: all steps in order."""

from __future__ import annotations

import datetime as dt
import platform
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import polars as pl

from polars_mcc._log.described import Described
from polars_mcc._log.keys import IntoKey
from polars_mcc._report.answers import ReportSettings, answers
from polars_mcc._report.once import Collect, section_keys
from polars_mcc._report.sections import sections
from polars_mcc._report.text import as_json, markdown
from polars_mcc._report.verdict import Report, verdict
from polars_mcc._version import __version__


def write_report(
    log: Described[Any],
    keys: Sequence[IntoKey],
    collect: Collect,
    settings: ReportSettings,
    made_by: Mapping[str, str] | None = None,
) -> str:
    """Write a report. `made_by` adds entries to its last section, *How this was made*."""
    versions = {"polars_mcc": __version__, "Polars": pl.__version__}
    with ExitStack() as stack:
        if settings.format == "html":
            from polars_mcc._report import page  # noqa: PLC0415 - altair is optional

            versions["altair"] = page.ALTAIR
            script = stack.enter_context(page.libraries())
        all_answers = answers(log, section_keys(log, keys), collect, settings)
        versions["Python"] = platform.python_version()
        made = {
            **(made_by or {}),
            "made": f"{dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC",
            "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
        }
        content = Report(all_answers, verdict(all_answers), [*sections(all_answers)], made)
        if settings.format == "md":
            return markdown(content)
        if settings.format == "json":
            return as_json(content)
        return page.page(content, script)

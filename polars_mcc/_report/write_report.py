"""A log → a report: all steps in order."""

from __future__ import annotations

import datetime as dt
import platform
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import polars as pl

from polars_mcc._frame.log_options import Described
from polars_mcc._keys.any_key import IntoKey
from polars_mcc._report.keys_counted_once import Collect, section_keys
from polars_mcc._report.markdown_and_json import as_json, markdown
from polars_mcc._report.report_data import ReportSettings, answers
from polars_mcc._report.sections import sections
from polars_mcc._report.summary import Report, verdict
from polars_mcc._version import __version__


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
    with ExitStack() as stack:
        if settings.format == "html":
            from polars_mcc._report import html_page  # noqa: PLC0415 - altair is optional

            versions["altair"] = html_page.ALTAIR
            script = stack.enter_context(html_page.libraries())
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
        return html_page.page(content, script)

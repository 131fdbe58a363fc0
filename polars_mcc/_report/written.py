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
from polars_mcc._report.answers import Options, answers
from polars_mcc._report.once import Collect, parts_of
from polars_mcc._report.sections import sections
from polars_mcc._report.text import as_json, markdown
from polars_mcc._report.verdict import Report, verdict
from polars_mcc._version import __version__


def written(
    log: Described[Any],
    keys: Sequence[IntoKey],
    collect: Collect,
    made_by: Mapping[str, str] | None = None,
    **options: Any,  # noqa: ANN401 - of `report`
) -> str:
    """Write a report. `made_by` adds entries to its last section, *How this was made*."""
    asked = Options(**options)
    versions = {"polars_mcc": __version__, "Polars": pl.__version__}
    with ExitStack() as stack:
        if asked.format == "html":
            from polars_mcc._report import page  # noqa: PLC0415 - altair is optional

            versions["altair"] = page.ALTAIR
            script = stack.enter_context(page.libraries())
        found = answers(log, parts_of(log, keys), collect, asked)
        versions["Python"] = platform.python_version()
        made = {
            **(made_by or {}),
            "made": f"{dt.datetime.now(dt.timezone.utc):%Y-%m-%d %H:%M} UTC",
            "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
        }
        report = Report(found, verdict(found), [*sections(found)], made)
        if asked.format == "md":
            return markdown(report)
        if asked.format == "json":
            return as_json(report)
        return page.page(report, script)

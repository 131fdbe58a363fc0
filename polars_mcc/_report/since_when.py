"""A log with a time → since when its slices are worse, and the days of those that are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from polars_mcc._counts.sliced_log import SET
from polars_mcc._display.table_and_to_numpy import slices_in_words
from polars_mcc._report.keys_counted_once import CountedLog, SectionKey, key_of_sets, set_name
from polars_mcc._verbs.changes import changes
from polars_mcc._verbs.contrast import contrast

WORDS = "polars_mcc:words"  # a column: no key has this name
MAX_DRAWN = 5  # slices that are worse, at most, that the report names and draws


class Since(NamedTuple):
    """Since when slices are worse, the surest first."""

    rows: pl.DataFrame
    """The answer of `changes`, with each slice in words, in the column `WORDS`."""
    query: str
    why_not: str
    """Why the log cannot say it, else ""."""

    def with_verdict(self, verdict: str) -> pl.DataFrame:
        """The slices with this verdict."""
        return self.rows if self.why_not else self.rows.filter(verdict=verdict)

    @property
    def n_judged(self) -> int:
        """The number of slices with enough rows."""
        return self.rows.height - self.with_verdict("not judged").height


def since_when(
    counted: CountedLog, keys: Sequence[SectionKey], options: Mapping[str, Any]
) -> Since:
    """Ask since when all rows and the slices of each key are worse. The counts have no times."""
    rows, sets = replace(counted, counts=None), [(key,) for key in keys]
    asked = [key_of_sets(sets, total=True)] if keys else []
    try:
        found, query = rows.ask("changes", changes, asked, **options)
    except (ValueError, pl.exceptions.DuplicateError) as error:  # The verb refuses.
        return Since(pl.DataFrame(), "", str(error))
    names = [SET, *(key.name for key in keys)] if keys else []
    said = slices_in_words(found, names).alias(WORDS)
    return Since(found.with_columns(said, pl.col("since").dt.date()), query, "")


def days_of(counted: CountedLog, keys: Sequence[SectionKey], of_set: str, metric: Any) -> Any:  # noqa: ANN401 - as `ask`
    """The scores by day of the slices of one set of keys, beside what their labels explain."""
    time, log = counted.log.roles.time, counted.log.with_frame
    assert time is not None  # noqa: S101 - for the type checker
    day = time.expr.dt.date().alias(time.name)
    within = [key.of_log for key in keys if set_name([key]) == of_set] or None
    return counted.collect(
        "days of changes",
        lambda rows: contrast(log(rows), day, within=within, to="expected", metric=metric),
    )

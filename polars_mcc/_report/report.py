"""`report`: a log → a page of HTML that opens without a network, or Markdown, or JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import ReportFormat
from polars_mcc._frame.columns import Frame, polars_frame
from polars_mcc._frame.log_options import Described
from polars_mcc._keys.any_key import IntoKey
from polars_mcc._metrics.registry import IntoMetrics


def report(
    log: Described[Any],
    *keys: IntoKey,
    metrics: IntoMetrics = defaults.METRICS,
    ci: float = defaults.LEVEL,
    depth: int = defaults.DEPTH,
    min_n: int = defaults.MIN_N,
    sensitive: IntoKey | Sequence[IntoKey] | None = None,
    title: str = defaults.TITLE,
    format: ReportFormat = defaults.REPORT,  # noqa: A002 - as in `open`
) -> str:
    """Write a report about a log as one page of HTML that needs no network.

    The verdict comes first, in eight sentences at most: whether there are warnings; how good each
    model is, with a confidence interval; whether another model is better than the first, and in
    how many slices it is not; how far the lowest and the highest slice of the sensitive keys, or of
    any key, are apart, in the metric or in the error rates of two classes (see `gaps`); how many
    slices are worse than the rest of the log; since when slices are worse, if the log has a `time`
    (see `changes`), or why that is not known; which rows are not scored. Then the metrics are told
    in words, with the costs and the direction that is better. Then come a chart and a table per
    key, the costliest confusions, and the comparison of models, each with a sentence on what it
    shows and with its query. If the log has a score, and gold is Boolean or there is a
    `positive`, the report says how good the scores are, and whether they are calibrated.

    Args:
        *keys: The keys to slice by. Each key makes its own slices, and has its own section. Numbers
            of more than 30 values are binned. Dates, datetimes and bins of them are drawn over
            time; if they have more than 60 values, they are cut as `worst` cuts them: by day, week
            or month. `bins("ts", "1h")` cuts them otherwise.
        metrics: One metric or several: names of `metrics()`, where the column `from` is not
            "scores". Scores, gaps and models over all rows are of each metric; charts, the worst
            slices, changes and models in slices are of the first. The tables also show MCC,
            accuracy and macro F1. In Python also expressions, as in `by`.
        ci: The confidence level of the intervals.
        depth: The search for the worst slices crosses up to this many keys. From 2 on, models are
            also compared in the slices of pairs of keys, of keys with up to 50 values.
        min_n: The search for the worst slices does not test slices with fewer rows.
        sensitive: The keys whose gaps are what the review is about, such as "race": columns, and
            bins of them. They are sliced by too, come first, and the verdict says their gaps, with
            ratio, limits and p-value.
        title: The heading of the report.
        format: "html": the page. "md": the verdict and the tables as Markdown, for example for a
            comment on a pull request, with 20 rows of each table. "json": the same for a program,
            with all digits and as many rows as the page; NaN and infinities are text: "NaN",
            "Infinity", "-Infinity".

    Returns:
        The text of the file. Text from the log is escaped. The charts of the page are SVG, and its
        only script sorts and filters tables: it is read on a screen, on a phone and on paper.
        A table has at most 1000 rows. A chart has a line per slice for up to 60 slices. More slices
        make a funnel plot (see `plot.funnel`).

        The log is counted once, by all keys together, and all answers come from these counts; times
        that are cut are counted by day. The counts are held in memory, 4 million at most. If they
        would be more, the keys with most values are left out of the counts and read from the log,
        with a query for each question. If the log has clusters or sample weights, all intervals are
        read from the log too. Scores always are, in three queries; and changes in one, and the
        days that the page draws in one per key. A log of more than 4 million rows is first read
        once, to estimate how many counts there would be.

    Raises:
        ModuleNotFoundError: altair is not installed. The extra `plot` has it. Only "html" needs it.
        TypeError: The log is a frame of another engine than Polars.
        ValueError: An option has a value that is not allowed; a sensitive key is no column, as of
            `each`; the log has `nulls="reweight"`.

    `report` also raises the errors of `by`, `worst`, `confusion` and `compare`. Labels inside lists
    are an error, as in `worst` and `confusion`.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.scan_parquet("data/digits.parquet")
        >>> page = log.mcc(pred=["logistic", "knn"]).report("ink_band", "fold")
        >>> page.splitlines()[0]
        '<!doctype html>'

    Command line::

        polars-mcc report logs/ --by country --by device --by day --out report.html
        polars-mcc report logs/ --by country --pred old --pred new --out comment.md
        polars-mcc report logs/ --by age --sensitive sex --metric "cost(fn=5, fp=1)" --out r.html
    """
    from polars_mcc._report.report_data import ReportSettings  # noqa: PLC0415 - it imports most verbs
    from polars_mcc._report.write_report import write_report  # noqa: PLC0415 - as above

    given: list[Any] = [] if sensitive is None else [sensitive]
    if isinstance(sensitive, Sequence) and not isinstance(sensitive, str):
        given = [*sensitive]
    settings = ReportSettings(metrics, ci, depth, min_n, title, format, given)
    source = log.roles.source
    of_polars = source if isinstance(source, Frame) else log.frame
    rows = polars_frame(of_polars, "report takes").lazy()

    def collect(_: str, query: Callable[[pl.LazyFrame], pl.LazyFrame]) -> pl.DataFrame:
        return query(rows).collect()

    return write_report(log, keys, collect, settings)

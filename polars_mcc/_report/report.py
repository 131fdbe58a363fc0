"""`report`: a page on a log, to be mailed, and opened without a network; or its text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from polars_mcc._log import defaults
from polars_mcc._log.choices import ReportFormat
from polars_mcc._log.described import Described
from polars_mcc._log.frames import Frame, polars_frame
from polars_mcc._log.keys import IntoKey
from polars_mcc._scores.registry import IntoMetric


def report(
    log: Described[Any],
    *keys: IntoKey,
    metric: IntoMetric = defaults.METRIC,
    ci: float = defaults.LEVEL,
    depth: int = defaults.DEPTH,
    min_n: int = defaults.MIN_N,
    title: str = defaults.TITLE,
    format: ReportFormat = defaults.REPORT,  # noqa: A002 - as in `open`
    explored: int = defaults.EXPLORED,
) -> str:
    """Write a report on a log as one page of HTML, which needs no network.

    The verdict comes first, in sentences: how good each model is and how sure that is, how many
    slices were looked at and which are behind, whether the second model is better and where it is
    not, which rows are not scored. Then come the numbers: a chart and a table per key, the
    confusions, the comparison of models, each with the query that made it. At the end the reader
    makes slices of any keys, filters them, and opens their confusion matrix, in the page.

    Args:
        *keys: What makes slices; each makes slices of its own. Times are drawn as time.
        metric: What is drawn, and what slices and models are compared by: a name of `metrics()`
            that is not of pairs, or an expression, as in `by`. MCC, accuracy and macro F1 are
            told beside it.
        ci: The confidence level of the intervals.
        depth: How many keys are crossed in the search for the worst slices, at most. From 2 on,
            models are also compared in the slices of pairs of keys of up to 50 values.
        min_n: Slices of fewer rows are not tested in that search, and at first not shown to the
            reader who explores.
        title: What stands above the page.
        format: "html": the page. "md": the verdict and the tables as Markdown, such as for the
            comment of a pull request, with 20 rows of each table. "json": the same for a tracker,
            with all digits and the rows of the page.
        explored: How many counts the page holds for the reader to explore, at most: 20 to 40 bytes
            each. Keys of many values are left out until the rest fit; the page names them. 0: the
            page has nothing to explore.

    Returns:
        The text of the file. What comes from the log is escaped, and no script runs in the page but
        its own. A table holds 1000 rows at most. Up to 60 slices are drawn a line each; more are a
        funnel (see `plot.funnel`).

        The log is counted once, by all keys together, and all answers come from these counts. They
        are in memory: 4 million at most. If there would be more, the keys with most values are
        asked of the rows, in a query each; so are all intervals if the log has clusters or sample
        weights. A log of more than 4 million rows is read once before, to see how many counts
        there would be.

    Raises:
        ModuleNotFoundError: altair is not installed; the extra `plot` has it. Only "html" needs it.
        TypeError: The log is of another engine.
        ValueError: An option has no such value.

    Errors of `by`, `worst`, `confusion` and `compare` are raised as they are; lists of labels are
    refused, as `worst` and `confusion` do.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.scan_parquet("data/digits.parquet")
        >>> page = log.mcc(pred=["logistic", "knn"]).report("ink_band", "fold")
        >>> page.splitlines()[0]
        '<!doctype html>'

    Command line:
        polars-mcc report logs/ --by country --by device --by day --out report.html
        polars-mcc report logs/ --by country --pred old --pred new --out comment.md
    """
    source = log.meaning.source
    of_polars = source if isinstance(source, Frame) else log.frame
    rows = polars_frame(of_polars, "a report is of").lazy()

    def collect(_: str, query: Callable[[pl.LazyFrame], pl.LazyFrame]) -> pl.DataFrame:
        return query(rows).collect()

    from polars_mcc._report.written import written  # noqa: PLC0415 - it asks most verbs

    return written(
        log,
        keys,
        collect,
        metric=metric,
        ci=ci,
        depth=depth,
        min_n=min_n,
        title=title,
        format=format,
        explored=explored,
    )

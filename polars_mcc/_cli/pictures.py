"""Answers of commands as pictures. HTML has its scripts inside, and needs no network."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import polars as pl

from polars_mcc import plot
from polars_mcc._display.chart_style import Charts, alt, legible_name
from polars_mcc._display.table_and_to_numpy import key_columns, slices_in_words
from polars_mcc._inputs.log_from_files import TypedLog
from polars_mcc._metrics.registry import find_metrics
from polars_mcc.prediction_log import PredictionLog


def picture(
    verb: str, log: TypedLog, options: Mapping[str, Any], answer: pl.DataFrame, form: str
) -> bytes:
    """The chart of an answer, or one for each metric or matrix, as the bytes of a file."""
    charts: list[Charts]
    if verb in {"by", "score", "curve"}:
        draw = plot.curve if verb == "curve" else _over_time_or_slices
        charts = [draw(answer, metric=metric.name) for metric in find_metrics(options["metrics"])]
    elif verb == "classes":
        scores = ("precision", "recall", "f1", "mcc")
        charts = [plot.slices(answer, metric=score, sort=False) for score in scores]
    elif verb == "confusion":
        words = slices_in_words(answer, key_columns(answer))
        of_slices = [*answer.group_by(words.alias("slice"), maintain_order=True)]
        charts = [
            plot.confusion(of).properties(title=legible_name(f"{s}")) for (s,), of in of_slices
        ]
    elif verb == "changes":
        charts = [_changes(log, answer, every=options["every"], metric=options["metric"])]
    else:
        charts = [(plot.calibration if verb == "calibration" else plot.differences)(answer)]
    of_whole = {"config": charts[0].config, "padding": charts[0].padding}
    for chart in charts:  # A part of a chart has neither.
        chart.config = chart.padding = alt.Undefined
    whole: Any = alt.vconcat(*charts, **of_whole)
    file: Any = io.BytesIO() if form == "png" else io.StringIO()
    with alt.data_transformers.disable_max_rows():
        whole.save(file, format=form, inline=form == "html")
    data: bytes = file.getvalue() if form == "png" else file.getvalue().encode()
    return data


def _over_time_or_slices(answer: pl.DataFrame, *, metric: str) -> Charts:
    """Lines over the only key of times; without one, a point per slice."""
    try:
        return plot.over_time(answer, metric=metric)
    except ValueError:
        return plot.slices(answer, metric=metric)


def _changes(log: TypedLog, answer: pl.DataFrame, *, every: str | None, metric: str) -> Charts:
    """The changes of slices, with the scores of the periods, which are counted for the chart."""
    if "keys" in answer.columns:
        msg = "--out draws the changes of plain keys: leave out each, rollup, cube and sets of --by"
        raise ValueError(msg)
    time: Any = log.log.roles.time
    period = (time.expr if every is None else time.expr.dt.truncate(every)).alias(time.name)
    asked: dict[str, Any] = {"within": [*log.keys] or None, "to": "expected", "metrics": metric}
    ask = PredictionLog.contrast
    periods = log.collect("", lambda rows: ask(log.log.with_frame(rows), period, **asked))
    return plot.changes(answer, periods)

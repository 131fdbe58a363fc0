"""Answers → the chart that a reader explores, and what is said of it."""

from __future__ import annotations

import polars as pl

from polars_mcc._log.described import Meaning
from polars_mcc._report.answers import Answers, Asked
from polars_mcc._show.explore import Explorer, explore, fitting, labels_of
from polars_mcc._show.in_browser import METRICS, OF_POSITIVE


def explorer(
    answers: Answers, asked: Asked, meaning: Meaning, rows: int
) -> tuple[Explorer | None, list[str]]:
    """The chart, and notes; or none, and why."""
    counts = answers.once.fewer(fitting, rows)
    if counts.height and meaning.nulls == "drop":
        counts = counts.filter(pl.all_horizontal(pl.col("gold", "pred").is_not_null()))
    if counts.is_empty():
        return None, ["There are no counts to explore in this page."]
    if counts.height > rows or counts.select("gold", "pred").n_unique() > rows // 2:
        return None, ["There is nothing to explore in this page: the labels are too many."]
    left_out = [name for name in answers.keys if name not in counts.columns]
    name = asked.metric.name
    how = (
        "Tick the keys that make slices. Choose which rows. Click a slice to see its confusion "
        "matrix. This page computes it from the counts that it holds."
    )
    notes = [how]
    if left_out:
        why = "as they have too many values, or a name that counts have for themselves"
        notes.append(f"Left out, {why}: {', '.join(left_out)}.")
    named = None if meaning.positive is None else pl.select(meaning.positive).item()
    positive = named if named in labels_of(counts) else None
    has_positive = positive is not None or meaning.label_dtype == pl.Boolean
    metrics = (*METRICS, *OF_POSITIVE) if has_positive else METRICS
    is_known = isinstance(asked.given, str) and name in metrics
    if not is_known:
        notes.append(f"{name} is not among the metrics that the page computes.")
    if not answers.once.rows_are_draws:
        notes.append("There are no intervals here: rows are in clusters, or have sample weights.")
    else:
        notes.append(
            "These intervals are approximate (Wilson's, from the variance of the score); those of "
            "the tables above are better."
        )
    chart = explore(
        counts,
        metric=name if is_known else METRICS[0],
        ci=asked.ci if answers.once.rows_are_draws else None,
        positive=positive,
        nulls=meaning.nulls,
        min_n=asked.min_n if counts.schema["n"].is_integer() else 0,
        rows=rows,
    )
    return chart, notes

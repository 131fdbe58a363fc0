"""Answers → the chart that a reader explores, and what is said of it."""

from __future__ import annotations

import polars as pl

from polars_mcc._log.described import Meaning
from polars_mcc._report.answers import Answers, Asked
from polars_mcc._show.explore import Explorer, explore, keys_in, labelled, metrics_of, within


def explorer(
    answers: Answers, asked: Asked, meaning: Meaning, rows: int
) -> tuple[Explorer | None, list[str]]:
    """The chart, and notes; or none, and why."""
    counts = answers.once.fewer(rows)
    counts = counts if counts.is_empty() else labelled(counts, meaning.nulls)
    if counts.is_empty():
        return None, ["There are no counts to explore in this page."]
    cells = within(counts, rows)
    if cells is None:
        return None, ["There is nothing to explore in this page: the labels are too many."]
    left_out = [name for name in answers.keys if name not in keys_in(cells)]
    name = asked.metric.name
    how = (
        "Tick the keys that make slices. Choose which rows. Click a slice to see its confusion "
        "matrix. This page computes it from the counts that it holds."
    )
    notes = [how]
    if left_out:
        why = "as they have too many values, or a name that counts have for themselves"
        notes.append(f"Left out, {why}: {', '.join(left_out)}.")
    positive = None if meaning.positive is None else pl.select(meaning.positive).item()
    metrics = metrics_of(cells, positive)
    is_known = isinstance(asked.given, str) and name in metrics
    if not is_known:
        notes.append(f"{name} is not among the metrics that the page computes.")
    if not answers.once.rows_are_draws:
        notes.append("There are no intervals here: rows are in clusters, or have sample weights.")
    else:
        notes.append(
            "These intervals are approximate: Wilson's, from the variance of the score. The tables "
            "above have better intervals."
        )
    chart = explore(
        cells,
        metric=name if is_known else metrics[0],
        ci=asked.ci if answers.once.rows_are_draws else None,
        positive=positive,
        nulls=meaning.nulls,
        min_n=asked.min_n if cells.schema["n"].is_integer() else 0,
        rows=rows,
    )
    return chart, notes

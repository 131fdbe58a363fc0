"""Answers → the chart that a reader explores, and the notes above it."""

from __future__ import annotations

import polars as pl

from polars_mcc._report.answers import Answers
from polars_mcc._show.explore import Explorer, explore, keys_in, labelled, metrics_of, within


def explorer(answers: Answers) -> tuple[Explorer | None, list[str]]:
    """The chart and its notes; or no chart, and a note that says why."""
    options, meaning = answers.options, answers.once.log.meaning
    rows = options.explored
    parts = [part for part in answers.parts if part.is_column]
    counts = answers.once.fewer(rows, parts)
    counts = counts if counts.is_empty() else labelled(counts, meaning.nulls)
    if counts.is_empty():
        return None, ["There are no counts to explore in this page."]
    cells = within(counts, rows)
    if cells is None:
        return None, ["There is nothing to explore in this page: there are too many labels."]
    left_out = [name for name in answers.keys if name not in keys_in(cells)]
    name = answers.metric
    how = (
        "Tick the keys to slice by. Choose which rows to include. Click a slice to see its "
        "confusion matrix. Your browser computes everything from the counts in this page."
    )
    marks = "A cross marks a slice with one predicted label, a ring one gold label: MCC is 0/0."
    notes = [how, marks]
    if left_out:
        why = "because they have too many values or a reserved name"
        notes.append(f"These keys are left out, {why}: {', '.join(left_out)}.")
    positive = None if meaning.positive is None else pl.select(meaning.positive).item()
    metrics = metrics_of(cells, positive)
    is_known = isinstance(options.metric, str) and name in metrics
    if not is_known:
        notes.append(f"This chart cannot compute the metric {name}.")
    if not answers.once.rows_are_draws:
        notes.append("This chart has no intervals: the log has clusters or sample weights.")
    else:
        notes.append(
            "The intervals of this chart are approximate (Wilson intervals, from the variance of "
            "the score). The tables above have better intervals."
        )
    chart = explore(
        cells,
        metric=name if is_known else metrics[0],
        ci=options.ci if answers.once.rows_are_draws else None,
        positive=positive,
        nulls=meaning.nulls,
        min_n=options.min_n if cells.schema["n"].is_integer() else 0,
        rows=rows,
    )
    return chart, notes

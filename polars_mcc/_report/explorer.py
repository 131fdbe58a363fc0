"""Answers → the chart that a reader explores, and what is said of it."""

from __future__ import annotations

from polars_mcc._log.choices import Nulls
from polars_mcc._report.answers import Answers, Asked
from polars_mcc._show.explore import Explorer, explore, within
from polars_mcc._show.in_browser import METRICS


def explorer(
    answers: Answers, asked: Asked, nulls: Nulls, rows: int
) -> tuple[Explorer | None, list[str]]:
    """The chart, and notes; or none, and why."""
    counts = answers.counts
    if counts.is_empty() or not rows:
        return None, ["There are no counts to explore in this page."]
    keys = [name for name in counts.columns if name not in {"model", "gold", "pred", "n"}]
    counts, kept = within(counts, keys, rows)
    left_out = [name for name in answers.keys if name not in kept]
    name = asked.metric.name
    how = (
        "Choose what makes slices, and of which rows; click a point, or move the slider, to see "
        "its confusion matrix. All of it is computed here, from counts in this page."
    )
    notes = [how]
    if left_out:
        why = "as they have too many values, or a name that counts have for themselves"
        notes.append(f"Left out, {why}: {', '.join(left_out)}.")
    if name not in METRICS:
        notes.append(f"{name} is not among the metrics that the page computes.")
    if not answers.has_units:
        notes.append("There are no intervals here: rows are in clusters, or have sample weights.")
    else:
        notes.append(
            "Intervals here are Wilson's, of the variance of the score; those of the tables above "
            "are a little better."
        )
    chart = explore(
        counts,
        metric=name if name in METRICS else METRICS[0],
        ci=asked.ci if answers.has_units else None,
        nulls=nulls,
        rows=rows,
    )
    return chart, notes

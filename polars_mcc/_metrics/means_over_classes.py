"""Scores per class → the mean of a metric over the classes of each slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import cast

import polars as pl

from polars_mcc._counts.class_counts import classes_of_pairs
from polars_mcc._counts.sliced_log import CLASS, GOLD_CLASS, SlicedLog
from polars_mcc._metrics.exact_scores import measure
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.slice_facts import FACT, fact

_OTHER = "polars_mcc:other"
"""The column with the class that a class is told from."""
_GOLD_ROWS = replace(fact(f"{FACT}gold rows", lambda terms: terms.positive.gold), is_of_scores=True)


def means_over_classes(
    sliced: SlicedLog, cells: pl.LazyFrame, asked: Sequence[Metric], positive: pl.Expr | None
) -> pl.LazyFrame:
    """Metrics of a score per class: each class is scored against the rest; null if one is null.

    A mean weighted by gold rows leaves out classes without any. A mean over the pairs of K classes
    counts a row K - 1 times as positive, by its own score, and K - 1 times as negative.
    """
    whole = replace(sliced, pair_splits=())
    one_class = cells.filter(pl.col(CLASS) == pl.col(CLASS).min())  # each class has all rows
    slices = measure(whole, classes_of_pairs(whole, one_class), [], positive=positive)
    of_duels = [metric for metric in asked if metric.mean_over == "pairs of classes"]
    of_classes = [metric for metric in asked if metric not in of_duels]
    kinds = [([CLASS], cells, of_classes)] if of_classes else []
    kinds += [([CLASS, _OTHER], _duels(cells), of_duels)] if of_duels else []
    for splits, counts, metrics in kinds:
        apart, classes = whole.split_by(*splits), classes_of_pairs(whole.split_by(*splits), counts)
        each = measure(apart, classes, [*metrics, _GOLD_ROWS], pairs=counts, positive=positive)
        means = {metric.name: _mean(metric) for metric in metrics}
        slices = whole.beside(slices, whole.per_slice_in_order(each, splits, means))
    return slices


def _duels(cells: pl.LazyFrame) -> pl.LazyFrame:
    """For each class and another, the rows of both, with the score of the class."""
    dtype = cells.collect_schema()[CLASS]
    names = cast("pl.Enum", dtype).categories
    sides = [(one, gold, other) for one, other in permutations(names, 2) for gold in (one, other)]
    schema = dict.fromkeys((CLASS, GOLD_CLASS, _OTHER), dtype)
    return cells.join(pl.LazyFrame(sides, schema, orient="row"), on=[CLASS, GOLD_CLASS])


def _mean(metric: Metric) -> pl.Expr:
    """The mean of a metric over classes, or their pairs; null if one of them is null."""
    value, rows = pl.col(metric.name), pl.col(_GOLD_ROWS.name)
    if metric.mean_over != "gold rows":
        return pl.when(value.null_count() == 0).then(value.mean())
    is_lost = (value.is_null() & (rows > 0)).any()
    return pl.when(~is_lost & (rows.sum() > 0)).then((value * rows).sum() / rows.sum())

"""Pairs → the scores of slices, also if labelled rows stand for others, or a class has a score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import cast

import polars as pl

from polars_mcc._counts.class_counts import classes_of_pairs
from polars_mcc._counts.reweighted_pairs import reweighted
from polars_mcc._counts.sliced_log import CLASS, GOLD_CLASS, LABELLED, SlicedLog
from polars_mcc._metrics.exact_scores import measure
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.one_vs_rest import CLASS_DTYPES
from polars_mcc._metrics.slice_facts import FACT, fact


def measure_pairs(
    log: SlicedLog,
    pairs: pl.LazyFrame,
    metrics: Sequence[Metric],
    *,
    positive: pl.Expr | None = None,
) -> pl.LazyFrame:
    """Compute the metrics of each slice from its pairs: see `measure`.

    If labelled rows stand for others, `n` and `n_null` count the rows as they are, and all metrics
    are null where a prediction has no labelled row.
    """
    log, pairs = reweighted(log, pairs)
    of_all = [metric for metric in metrics if not (log.is_reweighted and metric.is_of_labelled)]
    classes = classes_of_pairs(log, pairs)
    scores = measure(log, classes, of_all, pairs=pairs, positive=positive)
    if not log.is_reweighted:
        return scores
    known = {metric.name: pl.when(pl.col("n") > 0).then(metric.name) for metric in of_all}
    of_labelled = [metric for metric in metrics if metric.is_of_labelled]
    sizes = _of_labelled(log, pairs, of_labelled, positive)
    return log.beside(sizes, scores.select(*log.slice, **known))


def with_sizes(log: SlicedLog, pairs: pl.LazyFrame, classes: pl.LazyFrame) -> pl.LazyFrame:
    """The scores of classes, with `n` and `n_null` of their slices, which count rows as they are.

    `pairs` and `log` are those that the scores come from.
    """
    if not log.is_reweighted:
        return classes
    scores = ("label", *(name for name in CLASS_DTYPES if name != "n"))
    return log.beside(classes.select(*log.slice, *scores), _of_labelled(log, pairs, [], None))


def _of_labelled(
    log: SlicedLog, pairs: pl.LazyFrame, metrics: Sequence[Metric], positive: pl.Expr | None
) -> pl.LazyFrame:
    """The sizes of slices and other facts, from the labelled rows as they are."""
    assert log.labelled_numbers is not None  # noqa: S101 - for the type checker
    own = replace(log, numbers=log.labelled_numbers, labelled_numbers=None)
    labelled = pairs.with_columns(n=LABELLED)
    return measure(own, classes_of_pairs(own, labelled), metrics, pairs=labelled, positive=positive)


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

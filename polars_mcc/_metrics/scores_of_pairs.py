"""Pairs → the scores of slices, also where labelled rows stand for others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from polars_mcc._counts.class_counts import classes_of_pairs
from polars_mcc._counts.reweighted_pairs import reweighted
from polars_mcc._counts.sliced_log import LABELLED, SlicedLog
from polars_mcc._metrics.exact_scores import measure
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.one_vs_rest import CLASS_DTYPES


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

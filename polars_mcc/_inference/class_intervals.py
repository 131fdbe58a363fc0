"""Pairs and classes → standard errors and intervals of the scores of each class.

A row moves the score of a class by its gold label, by its prediction, or by both. A row with other
labels moves it only through the mean, which is subtracted from every influence. So four kinds of
rows give the variance, without a sum over classes.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_mcc._counts.classes import is_scored
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.gradients import MOVES, of_each_class
from polars_mcc._inference.intervals import in_columns, limits, of_tables
from polars_mcc._inference.options import IntervalOptions
from polars_mcc._inference.tables import (
    METRIC,
    OBSERVED,
    TABLE,
    by_metric,
    class_tables,
    smoothed_tables,
)
from polars_mcc._inference.variance import exact_sums, over_draws
from polars_mcc._scores.class_scores import CLASS_GIVEN, CLASS_RANGES, TwoByTwo

_GOLD, _PRED, _BOTH, _MEAN = map(pl.col, (*MOVES, "mean"))
_SCORES = pl.Enum([*CLASS_RANGES])


def class_intervals(
    log: SlicedLog,
    cells: pl.LazyFrame,
    pairs: pl.LazyFrame,
    classes: pl.LazyFrame,
    options: IntervalOptions,
) -> pl.LazyFrame:
    """The standard errors and limits of the scores of each class, a row per slice and class.

    The cells are pairs, split by cluster if the log has clusters.
    """
    of_class = replace(log, apart=(*log.apart, "label"))
    each = by_metric(of_class)
    tables = _of_each_score(log, pairs, classes).cache()
    scored = cells.filter(is_scored(log) & (pl.col("n") > 0))
    draws = over_draws(log, scored).cache()
    observed = tables.filter(pl.col(TABLE) == OBSERVED)
    if log.is_frequency and not log.has_clusters:
        variances = observed.select(*each.slice, variance=pl.col("phi_phi") / pl.col("s"))
    else:
        variances = _variances(log, each, scored, observed, draws)
    known = log.beside(each.beside(of_tables(each, tables), variances), draws)
    found = limits(each, known.with_columns(score="value"), options.ci, options.method)
    return in_columns(of_class, found, [*CLASS_RANGES])


def _of_each_score(log: SlicedLog, pairs: pl.LazyFrame, classes: pl.LazyFrame) -> pl.LazyFrame:
    """Each class at each table, a row per score: the columns of `Influences.tables`.

    And how far a row moves the score: `MOVES`, less the `mean` of all rows.
    """
    scores = TwoByTwo.of_floats(pl.col).scores(None)
    tables = class_tables(log, pairs, classes).with_columns(**scores).cache()
    of_scores = [
        tables.select(
            *(*log.slice, "label", TABLE, "support", "predicted", "hits", "s"),
            pl.lit(name, _SCORES).alias(METRIC),
            value=name,
            least=pl.lit(CLASS_RANGES[name][0]),
            largest=pl.lit(CLASS_RANGES[name][1]),
            is_smoothed=pl.col(TABLE).is_in(smoothed_tables(CLASS_GIVEN.get(name))),
            **dict(zip(MOVES, moves, strict=True)),
        )
        for name, moves in of_each_class().items()
    ]
    t, p, c = (pl.col(name) / pl.col("s") for name in ("support", "predicted", "hits"))
    return (
        pl.concat(of_scores)
        .with_columns(mean=t * _GOLD + p * _PRED + c * _BOTH)
        .with_columns(
            phi_phi=c * (_GOLD + _PRED + _BOTH - _MEAN).pow(2)
            + (t - c) * (_GOLD - _MEAN).pow(2)
            + (p - c) * (_PRED - _MEAN).pow(2)
            + (1 - t - p + c) * _MEAN.pow(2)
        )
    )


def _variances(
    log: SlicedLog,
    each: SlicedLog,
    cells: pl.LazyFrame,
    observed: pl.LazyFrame,
    draws: pl.LazyFrame,
) -> pl.LazyFrame:
    """The `variance` of each score.

    In a draw of n rows, x is the sum over the rows with the label of how far each moves the score.
    With the mean m, the draw moves the score by x - m·n. A draw without the label has x = 0. So
    the sum of squares over all draws is Σ x² - 2m Σ x·n + m² Σ n².
    """
    n = pl.col("n").cast(pl.Float64)
    of_draw = pl.col("squares") / n
    if log.has_clusters:
        of_draw = n.sum().over([*log.slice, "cluster"])
    is_hit = pl.col("gold").eq_missing(pl.col("pred"))
    cells = cells.with_columns(n=n, of_draw=of_draw, is_hit=is_hit)
    moved_by_gold = _GOLD + pl.when("is_hit").then(_PRED + _BOTH).otherwise(0.0)
    moves = observed.select(*each.slice, *MOVES)
    on = [*log.slice, "label"]
    rows = pl.concat(
        cells.filter(is_of_side)
        .rename({side: "label"})
        .drop(other)
        .join(moves, on=on, nulls_equal=True)
        .with_columns(x=moved)
        for side, other, is_of_side, moved in (
            ("gold", "pred", pl.lit(value=True), moved_by_gold),
            ("pred", "gold", ~pl.col("is_hit"), _PRED),
        )
    ).cache()
    squares = over_draws(each, rows, xx=("x", "x")).select(*each.slice, "xx")
    products = exact_sums(each, rows, [], nx=pl.col("n") * pl.col("of_draw") * pl.col("x"))
    sums = each.beside(each.beside(observed.select(*each.slice, "mean"), squares), products)
    n, nn = pl.col("n"), pl.col("n").pow(2) / pl.col("draws")
    total = pl.col("xx") - 2 * _MEAN * pl.col("nx") + _MEAN.pow(2) * nn
    return log.beside(sums, draws).select(*each.slice, variance=total / n.pow(2))

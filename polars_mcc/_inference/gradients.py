"""Metrics → how far a row moves each metric by its labels, from the derivatives of the metric.

T_k, P_k and C_k are the shares of rows with class k as gold label, as prediction, and as both. A
score is a function g of these shares. A row of the pair (i, j) moves the score by

    φ_ij = ∂g/∂T_i + ∂g/∂P_j + [i = j]·∂g/∂C_i - Σ_k (T_k·∂g/∂T_k + P_k·∂g/∂P_k + C_k·∂g/∂C_k).

So three numbers per class give the influence of every row. They are derivatives of the expression
that defines the metric. A score of pairs has one derivative per pair, by the share of the pair.

Influences are computed at several tables: see `tables`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import polars as pl

from polars_mcc._counts.classes import is_scored
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.tables import (
    METRIC,
    OBSERVED,
    TABLE,
    at_table,
    by_metric,
    by_table,
    smoothed_tables,
    with_rows_per_weight,
)
from polars_mcc._scores.class_scores import TwoByTwo
from polars_mcc._scores.derivative import Dual, NoDerivativeError, Tape
from polars_mcc._scores.levels import BOTH, in_floats, probabilities
from polars_mcc._scores.metric import Metric, OverClasses, OverPairs, Terms

_MARGINS = ("support", "predicted", "hits")
MOVES = ("by_gold", "by_pred", "by_both")
"""How far a row moves a metric, by the class of its gold label, of its prediction, and of both."""
_COUNTS = {
    **{name: {name: 1.0} for name in (*_MARGINS, "n")},
    "fn": {"support": 1.0, "hits": -1.0},
    "fp": {"predicted": 1.0, "hits": -1.0},
    "tn": {"support": -1.0, "predicted": -1.0, "hits": 1.0},
}
"""Counts that are columns, so that they are exact, with their derivatives by the margins."""


def moves_of_classes(
    log: SlicedLog, tables: pl.LazyFrame, metrics: Sequence[Metric], *, is_pooled: bool
) -> pl.LazyFrame:
    """How far each class of a slice moves metrics of classes: a row per metric, table and class.

    The columns of `MOVES` say how far. `Influences.tables` and `class_tables` explain the others.
    """
    apart = by_table(log)
    undefined = log.zero_division
    if undefined is not None and math.isnan(undefined):  # A score that is NaN has no interval.
        undefined = None
    tape = Tape(_COUNTS, apart.in_order("label"))
    if any(metric.classes for metric in metrics):
        tape.define(TwoByTwo.of_floats(tape).scores(undefined))
    values = _read(OverClasses(tape), metrics)
    found = tape.with_columns(tables).cache()
    facts = (*apart.slice, "label", *_MARGINS, "s", "more", "others")
    of_metrics = []
    for metric in metrics:
        value = values[metric.name]
        smoothed = smoothed_tables(metric.given, is_pooled=is_pooled)
        moves = dict(zip(MOVES, _moves(tape.gradient(value), _MARGINS), strict=True))
        of_metrics.append(found.select(*facts, **_of_metric(metric, value, smoothed), **moves))
    shares = (pl.col(margin) / pl.col("s") for margin in _MARGINS)
    moved = (share * pl.col(move) for share, move in zip(shares, MOVES, strict=True))
    mean = by_metric(apart).in_order("label")(pl.sum_horizontal(moved).sum())
    # Each row has one gold label, so each row loses the mean once.
    return pl.concat(of_metrics).with_columns(by_gold=pl.col("by_gold") - mean)


def moves_of_pairs(log: SlicedLog, pairs: pl.LazyFrame, metrics: Sequence[Metric]) -> pl.LazyFrame:
    """How far a row of each pair moves metrics of pairs: a row per metric and scored pair.

    The column `by_pair` says how far. `Influences.tables` explains the others.
    """
    n = pl.col("n").cast(pl.Float64)
    scored = pairs.filter(is_scored(log) & (pl.col("n") > 0))
    frame = scored.with_columns(s=log.within_slice(n.sum()), given="n", n=n)
    tape = Tape(_COUNTS, log.in_order("gold", "pred"))
    tape.define({"share": tape("n") / tape("s")})
    values = _read(OverPairs(tape), metrics)
    found = at_table(tape.with_columns(frame), OBSERVED).cache()
    of_metrics = []
    for metric in metrics:
        value = values[metric.name]
        [by_pair] = _moves(tape.gradient(value), ["n"])
        at_observed = _of_metric(metric, value, [OBSERVED])
        of_metrics.append(found.with_columns(**at_observed, by_pair=by_pair))
    return pl.concat(of_metrics).with_columns(n="given")


def moves_of_scores(
    log: SlicedLog, pairs: pl.LazyFrame, levels: pl.LazyFrame, metrics: Sequence[Metric]
) -> pl.LazyFrame:
    """How far a row of each score moves metrics of scores: a row per metric and level.

    The columns `by_positive` and `by_negative` say how far, for a row of either class. `Moves`
    explains `worth`, `in_floats` the counts, and `Influences.tables` the others.
    """
    frame = with_rows_per_weight(log, in_floats(log, levels), pairs)
    if any(metric.are_probabilities for metric in metrics):
        frame = probabilities(log, frame)
    tape = Tape({}, log.in_order("pred", descending=True))
    found = {one.name: one.moves(tape.column) for one in metrics if one.moves is not None}
    frame = tape.with_columns(frame).cache()
    names = [f"by_{side}" for side in BOTH] + ["value", "worth"]
    return pl.concat(
        frame.select(
            *(*log.slice, "pred", *BOTH),
            pl.col("^squares_.*$"),
            (pl.col("all_positive") + pl.col("all_negative")).alias("s"),
            **_range(metric),
            **dict(zip(names, found[metric.name], strict=True)),
        )
        for metric in metrics
    )


def _of_metric(metric: Metric, value: Dual, smoothed: Sequence[str]) -> dict[str, pl.Expr]:
    """The columns of a metric in `Influences.tables`."""
    return {
        **_range(metric),
        "value": value.value.cast(pl.Float64),
        "is_smoothed": pl.col(TABLE).is_in(smoothed),
    }


def _range(metric: Metric) -> dict[str, pl.Expr]:
    """The name of a metric, and its range."""
    ends = (None, None) if metric.range is None else (metric.range.low, metric.range.high)
    least, largest = (end if isinstance(end, pl.Expr) else pl.lit(end) for end in ends)
    return {
        METRIC: pl.lit(metric.name),
        "least": least.cast(pl.Float64),
        "largest": largest.cast(pl.Float64),
    }


def _moves(derivatives: Mapping[str, pl.Expr], margins: Sequence[str]) -> list[pl.Expr]:
    """Turn derivatives by counts into derivatives by shares of the rows."""
    return [derivatives.get(column, pl.lit(0.0)) * pl.col("s") for column in margins]


def of_each_class() -> dict[str, list[pl.Expr]]:
    """How far a row moves each score of a class: by gold label, by prediction, and by both."""
    scores = TwoByTwo.of_floats(Tape(_COUNTS, lambda one: one)).scores(None)
    return {name: _moves(one.by, _MARGINS) for name, one in scores.items() if isinstance(one, Dual)}


def _read(terms: Terms, metrics: Sequence[Metric]) -> dict[str, Dual]:
    """Each metric as an expression with its derivative. This puts its columns on the tape."""
    return {metric.name: _differentiated(metric, terms) for metric in metrics}


def _differentiated(metric: Metric, terms: Terms) -> Dual:
    try:
        value = metric.value(terms.of(metric, None))
    except NoDerivativeError as error:
        value = error.part
    if isinstance(value, Dual):
        return value
    msg = (
        f"metric '{metric.name}' has no standard error by a formula, because {value} has no "
        "derivative; write it as a function, as in lambda col: col('recall').mean(), with the "
        "methods that register_metric lists, or use by(..., method=Bootstrap(...)) on a DataFrame "
        "to resample it"
    )
    raise ValueError(msg)

"""Metrics → influences: how far one row of a pair moves each metric, at each table of its slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from polars_mcc._counts.classes import beside_class, is_scored
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.gradients import MOVES, moves_of_classes, moves_of_pairs, moves_of_scores
from polars_mcc._inference.options import IntervalOptions
from polars_mcc._inference.tables import (
    BY_GOLD,
    BY_PRED,
    METRIC,
    OBSERVED,
    POOLED,
    TABLE,
    at_table,
    by_metric,
    by_table,
    class_tables,
)
from polars_mcc._inference.variance import exact_sums
from polars_mcc._scores.levels import BOTH, SQUARES
from polars_mcc._scores.metric import Metric


class Influences(NamedTuple):
    """How far one row of a slice moves each metric. Both frames have the columns of the slice."""

    pairs: pl.LazyFrame
    """The scored pairs, a row per `metric`, `table`, `gold` and `pred`: `n`, `squares` of sample
    weights; `phi`, the influence of one row of the pair; and `weight`, how many rows the table has
    of the pair, without the rows more of a smoothed table."""
    tables: pl.LazyFrame
    """A row per `metric` and `table`: the `value` of the metric, null if it is undefined; its range
    from `least` to `largest`; `phi_phi`, the mean of φ²; and whether the table `is_smoothed`, so
    that it tells how many rows an interval stands for."""

    @property
    def observed(self) -> pl.LazyFrame:
        """The pairs of each slice as they are, a row per `metric`, `gold` and `pred`."""
        return self.pairs.filter(pl.col(TABLE) == OBSERVED).drop(TABLE, "weight")

    def of(self, metric: str) -> pl.LazyFrame:
        """The pairs of each slice as they are, with their influence `phi` on one metric."""
        return self.observed.filter(pl.col(METRIC) == metric).drop(METRIC)


def influences(
    log: SlicedLog,
    pairs: pl.LazyFrame,
    classes: pl.LazyFrame,
    levels: pl.LazyFrame | None,
    options: IntervalOptions,
) -> Influences:
    """The influences of rows on all metrics that have an interval; at least one has.

    Metrics of scores need the `levels` of the pairs.
    """
    if levels is not None:
        return _of_scores(log, pairs, levels, options.sure)
    found = []
    if of_classes := [one for one in options.sure if not one.pairs]:
        found.append(_of_classes(log, pairs, classes, replace(options, metrics=of_classes)))
    if of_pairs := [one for one in options.sure if one.pairs]:
        found.append(_of_pairs(log, pairs, of_pairs))
    return Influences(*map(pl.concat, zip(*found, strict=True)))


def _of_classes(
    log: SlicedLog, pairs: pl.LazyFrame, classes: pl.LazyFrame, options: IntervalOptions
) -> Influences:
    """The influences of rows on metrics of classes, at each table."""
    metrics, pool = options.metrics, options.pool
    each = by_metric(by_table(log))
    frame = class_tables(log, pairs, classes, options.positive, pool)
    moves = moves_of_classes(log, frame, metrics, is_pooled=pool is not None).cache()
    scored = pairs.filter(is_scored(log)).with_columns(weight=pl.col("n").cast(pl.Float64)).cache()
    rows = [at_table(scored, table) for table in (OBSERVED, BY_GOLD, BY_PRED)]
    if pool is not None:
        expected = pool.expected(log, pairs).select(*log.slice, "gold", "pred", weight="n")
        rows.append(at_table(expected, POOLED))
    # Not a cross join: of keys that are structs, Polars 2.0 panics in it.
    of_metrics = [
        pl.concat(rows, how="diagonal").with_columns(pl.lit(metric.name).alias(METRIC))
        for metric in metrics
    ]
    kept = 1 - pl.col("more")
    of_class = moves.with_columns(
        kept_gold=pl.when(pl.col(TABLE).is_in([BY_GOLD, POOLED])).then(kept).otherwise(1.0),
        kept_pred=pl.when(pl.col(TABLE) == BY_PRED).then(kept).otherwise(1.0),
    )
    by_gold, by_pred, by_both = MOVES
    of_gold = beside_class(
        each, pl.concat(of_metrics), "gold", of_class, by_gold, by_both, "kept_gold"
    )
    is_hit = pl.col("gold").eq_missing(pl.col("pred"))
    moved = beside_class(each, of_gold, "pred", of_class, by_pred, "kept_pred").with_columns(
        weight=pl.col("weight") * pl.col("kept_gold") * pl.col("kept_pred").fill_null(1.0),
        # In the pool, a prediction may be a label that the slice does not have.
        phi=pl.col(by_gold)
        + pl.col(by_pred).fill_null(0.0)
        + pl.when(is_hit).then(by_both).otherwise(0.0),
    )
    return _summed(each, moved, moves.with_columns(phi_squares_more=_phi_squares_more(each)))


def _of_pairs(log: SlicedLog, pairs: pl.LazyFrame, metrics: Sequence[Metric]) -> Influences:
    """The influences of rows on metrics of pairs, at the observed table alone."""
    each, weight = by_metric(log), pl.col("n").cast(pl.Float64)
    mean = each.in_order("gold", "pred")((weight / pl.col("s") * pl.col("by_pair")).sum())
    influences = moves_of_pairs(log, pairs, metrics).with_columns(
        phi=pl.col("by_pair") - mean, weight=weight, phi_squares_more=0.0
    )
    return _summed(by_metric(by_table(log)), influences, influences)


def _of_scores(
    log: SlicedLog, pairs: pl.LazyFrame, levels: pl.LazyFrame, metrics: Sequence[Metric]
) -> Influences:
    """The influences of rows on metrics of scores, at the observed table and a smoothed one.

    A level has two pairs: its score with either gold label.
    """
    moves = at_table(moves_of_scores(log, pairs, levels, metrics), OBSERVED).cache()
    influences = pl.concat(
        moves.filter(pl.col(count) > 0).with_columns(
            pl.col(f"^{squares}$").alias("squares"),
            gold=pl.lit(value=count == "positive"),
            n=count,
            weight=count,
            phi=f"by_{count}",
            phi_squares_more=0.0,
            is_smoothed=False,
        )
        for count, squares in zip(BOTH, SQUARES, strict=True)
    )
    each = by_metric(by_table(log))
    observed = _summed(each, influences, influences)
    # The table of a proportion of one half that is worth as many rows.
    least, largest = pl.col("least").max(), pl.col("largest").max()
    smoothed = each.per_slice(
        at_table(moves, BY_GOLD),
        value=(least + largest) / 2,
        least=least,
        largest=largest,
        is_smoothed=pl.lit(value=True),
        phi_phi=(largest - least).pow(2) / 4 / pl.col("worth").max(),
    )
    both = [observed.tables, smoothed.select(observed.tables.collect_schema().names())]
    return observed._replace(tables=pl.concat(both))


def _summed(each: SlicedLog, pairs: pl.LazyFrame, tables: pl.LazyFrame) -> Influences:
    """Add up φ² over the pairs of each table, and over its rows `more`."""
    weight, phi = pl.col("weight"), pl.col("phi")
    counts = pl.col("n", "^squares$")
    pairs = pairs.select(*each.slice, "gold", "pred", counts, weight, phi).cache()
    columns = ("value", "least", "largest", "is_smoothed", "s", "phi_squares_more")
    of_tables = each.per_slice(tables, **{name: pl.col(name).max() for name in columns})
    squares = exact_sums(each, pairs, [], phi_squares=weight * phi.pow(2))
    phi_phi = (pl.col("phi_squares") + pl.col("phi_squares_more")) / pl.col("s")
    found = each.beside(of_tables, squares).with_columns(phi_phi=phi_phi)
    return Influences(pairs, found.drop("phi_squares", "phi_squares_more", "s"))


def _phi_squares_more(each: SlicedLog) -> pl.Expr:
    """The sum of φ² over the rows more of a table.

    A class has a hit and a miss more, and the miss is spread over the other classes. With m other
    classes and weights w that is

        Σ_i w_i (gold_i + pred_i + both_i)² + Σ_i w_i/m Σ_{j≠i} (gold_i + pred_j)².

    In the table by prediction, gold and pred change places.
    """
    gold, pred, both = map(pl.col, MOVES)
    is_by_pred, m = pl.col(TABLE) == BY_PRED, pl.col("others")
    own, other = (pl.when(is_by_pred).then(a).otherwise(b) for a, b in ((pred, gold), (gold, pred)))
    margin = pl.when(is_by_pred).then("predicted").otherwise("support")
    within_table = each.in_order("label")
    others, squares = (within_table(part.sum()) - part for part in (other, other.pow(2)))
    miss = own.pow(2) + pl.when(m > 0).then((2 * own * others + squares) / m).otherwise(0.0)
    w = pl.col("more") * margin / 2
    return within_table((w * ((gold + pred + both).pow(2) + miss)).sum())

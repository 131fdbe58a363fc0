"""How one row moves a metric of pairs, at the observed table of a slice and at smoothed ones.

A metric of pairs needs the labels of a pair, so it has no formula over classes: see
`influence_of_rows` for those.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from polars_mcc._intervals import influence_of_rows
from polars_mcc._intervals.count_arrays import Classes, Counted
from polars_mcc._intervals.pooled_slices import Expected
from polars_mcc._intervals.reweighting import Moments
from polars_mcc._intervals.smoothed_tables import (
    OBSERVED,
    POOLED,
    observed_table,
    pooled_pairs,
    smoothed_pairs,
)
from polars_mcc._metrics.derivatives import ArrayColumns, Column
from polars_mcc._metrics.metric_type import Metric, OverPairs
from polars_mcc._metrics.slice_sums import Floats


def values_of_pairs(
    classes: Classes, pairs: Counted, labels: pl.Series, metric: Metric, zero_division: float | None
) -> Floats:
    """A metric of pairs in floats: (slices,). NaN without rows; 0/0 is `zero_division`."""
    _, terms = columns_of_pairs(pairs, _labels_of(pairs, labels, classes))
    value = influence_of_rows.differentiated(metric, terms, zero_division).of_slices().value
    return np.where(classes.s > 0, np.broadcast_to(value, classes.s.shape), math.nan)


def influences_on_pairs(
    pairs: Counted,
    labels: pl.Series,
    metrics: Sequence[Metric],
    classes: Classes | None = None,
    expected: Expected | None = None,
    *,
    is_smoothed: bool = True,
) -> dict[str, influence_of_rows.Influence]:
    """The influences of rows on metrics of pairs, at the observed table and at smoothed ones.

    A mean of numbers of rows, such as a cost, is smoothed by gold label alone. `expected`: slices
    are compared, and these are their pairs at the rates of all.

    `labels` are those of the log, and `classes` those of the slices. Without these, pairs have
    codes of labels, and there is no smoothed table; nor is there, if rows have no label.
    """
    is_smoothed &= classes is not None and classes.per_label is None
    if classes is None:
        return _of_some_pairs([pairs], labels, metrics, None)
    are_means = all(metric.is_mean for metric in metrics)
    is_pooled = is_smoothed and expected is not None and not are_means
    pooled = pooled_pairs(classes, expected) if is_pooled and expected is not None else None
    found, first = [], 0
    for part, [(_, own)] in influence_of_rows.portions(classes, [(observed_table(classes), pairs)]):
        tables = [own]
        if is_smoothed:
            sides = ("gold",) if are_means else ("gold", "pred")
            tables += [smoothed_pairs(part, own, side) for side in sides]
        if pooled is not None:
            tables.append(pooled.of_slices(first, own.number))
        found.append(_of_some_pairs(tables, labels, metrics, part))
        first += own.number
    return influence_of_rows.together(found)


def _of_some_pairs(
    tables: Sequence[Counted], labels: pl.Series, metrics: Sequence[Metric], classes: Classes | None
) -> dict[str, influence_of_rows.Influence]:
    """The influences of rows on metrics of the pairs of some slices: the observed ones are first.

    The observed pairs have places of classes; the others have codes of labels.
    """
    observed, *others = tables
    of_tables = [
        _of_pairs(observed, labels, metrics, classes),
        *(_of_pairs(table, labels, metrics, None) for table in others),
    ]
    influences = {}
    for metric in metrics:
        each = [of_table[metric.name] for of_table in of_tables]
        value, squares = (np.stack(arrays) for arrays in zip(*(of[:2] for of in each), strict=True))
        _, _, ends, phi = each[0]
        own = influence_of_rows.smoothed_tables("gold", is_pooled=False)
        if not metric.is_mean:
            own = influence_of_rows.smoothed_tables(None, is_pooled=len(tables) > POOLED)
        smoothed = own if len(tables) > 1 else [OBSERVED]
        influences[metric.name] = influence_of_rows.Influence.of(
            value, ends, squares, smoothed, phi, is_mean=metric.is_mean
        )
    return influences


def _labels_of(pairs: Counted, labels: pl.Series, classes: Classes | None) -> pl.DataFrame:
    """The labels of pairs of classes; without these, of codes of labels."""
    sides = pairs.gold, pairs.pred
    codes = sides if classes is None else [classes.codes[side] for side in sides]
    return pl.DataFrame([labels.gather(side) for side in codes], ["gold", "pred"])


def _of_pairs(
    pairs: Counted, labels: pl.Series, metrics: Sequence[Metric], classes: Classes | None
) -> dict[str, tuple[Floats, Floats, tuple[Floats | float, ...], Floats]]:
    """For each metric at one table: its value, the mean of φ², the ends of its range, and φ."""
    col, terms = columns_of_pairs(pairs, _labels_of(pairs, labels, classes))
    found = {}
    for metric in metrics:
        score = influence_of_rows.differentiated(metric, terms)
        s = pairs.rows.sum(pairs.n)
        [gradient] = score.gradient(col("n"))
        gradient = gradient * pairs.rows.spread(s)
        mean = pairs.rows.sum(pairs.n / pairs.rows.spread(s) * gradient)
        phi = gradient - pairs.rows.spread(mean)
        squares = pairs.rows.sum(pairs.n * phi**2)
        if classes is not None and classes.per_label is not None:
            moments = Moments.of(pairs.n, phi, pairs.pred, classes.rows.size)
            squares += classes.rows.sum(moments.added_squares(classes.per_label))
        value = np.broadcast_to(score.of_slices().value, s.shape)
        found[metric.name] = value, squares / s, influence_of_rows.ends_of(metric, terms), phi
    return found


def columns_of_pairs(pairs: Counted, labels: pl.DataFrame) -> tuple[ArrayColumns, OverPairs]:
    """The columns of pairs, and the terms over them."""
    arrays: dict[str, Column | Floats] = {}
    col = ArrayColumns(pairs.rows, arrays, labels)
    n = Column(col, pairs.n, is_variable=True)
    s = Column(col, pairs.rows.sum(pairs.n), is_total=True)
    arrays |= {"n": n, "share": n / s}
    return col, OverPairs(col)

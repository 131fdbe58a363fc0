"""Metrics → how far one row moves each metric, at each table of its slice.

T_k, P_k and C_k are the shares of rows with class k as gold label, as prediction, and as both. A
score is a function g of these shares. A row of the pair (i, j) moves the score by

    φ_ij = ∂g/∂T_i + ∂g/∂P_j + [i = j]·∂g/∂C_i - Σ_k (T_k·∂g/∂T_k + P_k·∂g/∂P_k + C_k·∂g/∂C_k).

So three numbers per class give the influence of every row. They are derivatives of the function
that defines the metric. A score of pairs has one derivative per pair, by the share of the pair.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from polars_mcc._intervals import smoothed_tables
from polars_mcc._intervals.auc_brier_influence import INFLUENCES, Levels
from polars_mcc._intervals.count_arrays import Classes, Counted
from polars_mcc._intervals.smoothed_tables import BY_GOLD, BY_PRED, OBSERVED, POOLED, ClassTable
from polars_mcc._metrics.derivatives import ArrayColumns, Column, NoDerivativeError, OfLabels
from polars_mcc._metrics.mcc_and_one_vs_rest import TwoByTwo
from polars_mcc._metrics.metric_type import Metric, OverClasses, OverPairs, Terms
from polars_mcc._metrics.slice_sums import Flags, Floats, Ints, Segments, added_up

_NONE = np.zeros(0)
_TOLD_BY = {"gold": [BY_GOLD, POOLED], "pred": [BY_PRED], None: [BY_GOLD, BY_PRED, POOLED]}
"""The smoothed tables that tell how a score varies, by the side that it is given."""
_AT_ONCE = 2**14  # classes


class Influence(NamedTuple):
    """How far rows move one metric: arrays (slices,), and of pairs."""

    value: Floats
    """The metric at the observed table, in floats; NaN if it is undefined."""
    least: Floats
    """The ends of its range; NaN without one."""
    largest: Floats
    phi_phi: Floats
    """The mean of φ²."""
    effective_rows: Floats
    """The rows of a proportion with the variance of the score, per row of the slice: the fewest of
    the smoothed tables; NaN if they do not tell."""
    max_variance: Floats
    """The largest mean of φ² at the smoothed tables: the variance of one row."""
    phi: Floats
    """The influence of one row of each pair, at the observed table: (pairs,)."""

    @classmethod
    def of(
        cls,
        value: Floats,
        ends: Iterable[Floats | float],
        phi_phi: Floats,
        phi: Floats = _NONE,
        *,
        given: str | None = None,
        is_mean: bool = False,
        has_gaps: Flags | None = None,
    ) -> Influence:
        """Put together what the tables of a score tell: the arrays are (tables, slices).

        A rate of a class needs the side that it is `given` alone, and a mean of numbers the table
        by gold label. How well rows without a label are known depends on the labelled rows with
        their prediction. So the table by prediction tells too, for slices that have gaps.
        """
        value = np.broadcast_to(value, phi_phi.shape)
        least, largest = (np.broadcast_to(end, value.shape[-1:]) for end in ends)
        told = [BY_GOLD] if is_mean else _TOLD_BY[given]
        told = [table for table in told if table < len(phi_phi)] or [OBSERVED]
        if has_gaps is not None and BY_PRED not in told and len(phi_phi) > BY_PRED:
            phi_phi[BY_PRED] = np.where(has_gaps, phi_phi[BY_PRED], math.nan)
            told = [*told, BY_PRED]
        rows = [effective_rows(value[at], least, largest, phi_phi[at]) for at in told]
        if is_mean:  # All rows alike tell as much as rows at the ends of the range, at least.
            rows = [np.where(np.isnan(of_table), 1.0, of_table) for of_table in rows]
        max_variance = np.fmax.reduce(phi_phi[told])
        observed = value[OBSERVED], least, largest, phi_phi[OBSERVED]
        return cls(*observed, np.fmin.reduce(rows), max_variance, phi)

    def no_better_known_than(self, other: Influence, places: Ints) -> Influence:
        """The same, but a slice tells no more per row than the slice of `other` at its place."""
        rows = np.fmin(self.effective_rows, other.effective_rows[places])
        variance = np.fmax(self.max_variance, other.max_variance[places])
        return self._replace(effective_rows=rows, max_variance=variance)


class Moments(NamedTuple):
    """The rows with each prediction: their weight, and the sums of φ and φ², (classes,)."""

    n: Floats
    total: Floats
    squares: Floats

    @classmethod
    def of(
        cls, n: Floats, phi: Floats, pred: Ints, number: int, more: Moments | None = None
    ) -> Moments:
        """Add up pairs, and `more` rows. Slices do not have the class -1."""
        known = pred >= 0
        n, phi, pred = n[known], phi[known], pred[known]
        moments = cls(*(added_up(x, pred, number) for x in (n, n * phi, n * phi**2)))
        return moments if more is None else moments.with_rows(more)

    def with_rows(self, other: Moments) -> Moments:
        """With other rows besides."""
        return Moments(*map(np.add, self, other))

    def added_squares(self, per_label: Floats) -> Floats:
        """N_j (f_j - 1) s_j²: (classes,)."""
        variance = self.squares / self.n - (self.total / self.n) ** 2
        return np.where(self.n > 0, self.n * (per_label - 1) * np.clip(variance, 0, None), 0.0)


def influences_on_classes(
    classes: Classes,
    tables: Sequence[tuple[ClassTable, Counted]],
    metrics: Sequence[Metric],
    zero_division: float | None,
) -> dict[str, Influence]:
    """The influences of rows on metrics of classes.

    A few slices at a time: a score remembers all numbers that it was computed from.
    """
    return together(_of_some(*part, metrics, zero_division) for part in portions(classes, tables))


def values_of(
    classes: Classes, metric: Metric, zero_division: float | None, pairs: Counted | None = None
) -> Floats:
    """A metric in floats: (slices,). NaN without rows; 0/0 is `zero_division`.

    A metric of pairs needs the `pairs` of the classes.
    """
    values: list[Floats] = [np.zeros(0)]
    observed = smoothed_tables.observed_table(classes)
    for part, tables in portions(classes, [] if pairs is None else [(observed, pairs)]):
        terms: Terms
        if pairs is None:
            _, terms = columns_of_classes(
                part, [smoothed_tables.observed_table(part)], [metric], zero_division
            )
        else:
            _, terms = columns_of_pairs(coded(part, tables[0][1]), classes.every)
        value = differentiated(metric, terms, zero_division).of_slices().value[..., :]
        value = np.broadcast_to(value, (1, len(part.rows.starts)))[0]
        values.append(np.where(part.s > 0, value, math.nan))
    return np.concatenate(values)


def portions(
    classes: Classes, tables: Sequence[tuple[ClassTable, Counted]]
) -> Iterator[tuple[Classes, list[tuple[ClassTable, Counted]]]]:
    """Split the slices into portions of about so many classes."""
    if classes.rows.size <= _AT_ONCE:
        yield classes, [*tables]
        return
    ends = np.searchsorted(classes.rows.starts, np.arange(_AT_ONCE, classes.rows.size, _AT_ONCE))
    number = len(classes.rows.starts)
    starts = np.append(classes.rows.starts, classes.rows.size)
    bounds = np.unique([0, *ends, number]).tolist() if number else [0, 0]
    for first, last in pairwise(bounds):
        of_class = slice(*starts[[first, last]].tolist())
        start = of_class.start
        some = []
        for table, pairs in tables:
            of_pair = slice(*np.searchsorted(pairs.slices, [first, last]))
            slices, gold, pred, n, squares = (array[of_pair] for array in pairs[1:])
            places = slices - first, gold - start, np.where(pred < 0, -1, pred - start)
            own = Counted(last - first, *places, n, squares)
            some.append((ClassTable(*(counts[of_class] for counts in table)), own))
        yield classes.part(first, last, of_class), some


def _of_some(
    classes: Classes,
    tables: Sequence[tuple[ClassTable, Counted]],
    metrics: Sequence[Metric],
    zero_division: float | None,
) -> dict[str, Influence]:
    """The influences of rows on metrics of the classes of some slices."""
    of_classes = [table for table, _ in tables]
    col, terms = columns_of_classes(classes, of_classes, metrics, zero_division)
    margins = [col("support"), col("predicted"), col("hits")]
    rows, s = classes.rows, classes.rows.spread(classes.s)
    shares = [margin.value / s for margin in margins]
    hits = [np.flatnonzero(pairs.gold == pairs.pred) for _, pairs in tables]
    influences = {}
    for metric in metrics:
        score = differentiated(metric, terms)
        # Derivatives by counts → by shares of the rows.
        shape = margins[0].value.shape
        gradient = (np.broadcast_to(part, shape) * s for part in score.gradient(*margins))
        by_gold, by_pred, by_both = gradient
        mean = rows.sum(sum(map(operator.mul, shares, (by_gold, by_pred, by_both))))
        by_gold = by_gold - rows.spread(mean)  # Each row has one gold label: it loses it once.
        phi_phi: list[Floats] = []
        phi: Floats = np.zeros(0)
        for place, (table, pairs) in enumerate(tables):
            by = by_gold[place], by_pred[place], by_both[place]
            # In the pool, a prediction may be a label that the slice does not have: -1.
            _, _, gold, pred, n, _ = pairs
            padded = np.append(by_pred[place], 0.0)
            of_pairs = by_gold[place, gold] + padded[pred]
            of_pairs[hits[place]] += by_both[place, gold[hits[place]]]
            squares = added_up(n * of_pairs**2, pairs.slices, len(classes.s))
            more: Moments | None = None
            if place == OBSERVED:
                phi = of_pairs
            else:
                more, beyond = _pseudo_rows(rows, table, *by, is_by_pred=place == BY_PRED)
                squares += rows.sum(more.squares) + beyond
            if classes.per_label is not None:
                moments = Moments.of(n, of_pairs, pred, rows.size, more)
                squares += rows.sum(moments.added_squares(classes.per_label))
            phi_phi.append(squares / classes.s)
        influences[metric.name] = Influence.of(
            score.of_slices().value,
            ends_of(metric, terms),
            np.stack(phi_phi),
            phi,
            given=metric.given,
            is_mean=metric.is_mean,
            has_gaps=classes.has_gaps,
        )
    return influences


def columns_of_classes(
    classes: Classes,
    tables: Sequence[ClassTable],
    metrics: Sequence[Metric],
    zero_division: float | None,
) -> tuple[ArrayColumns, OverClasses]:
    """The columns of classes at all tables, (tables, classes), and the terms over them."""
    if zero_division is not None and math.isnan(zero_division):
        zero_division = None  # A score that is NaN has no interval.
    arrays: dict[str, Column | Floats] = {"is_positive": classes.is_positive}
    col = ArrayColumns(classes.rows, arrays, classes.labels)
    stacked = ClassTable(*map(np.stack, zip(*tables, strict=True)))
    t, p, c = (Column(col, counts, is_variable=True) for counts in stacked[:3])
    s, k = classes.s, classes.rows.lengths.astype(float)
    arrays |= {
        name: Column(col, of_slices, is_total=True)
        for name, of_slices in (("s", s), ("n", s), ("k", k))
    }
    arrays |= {"support": t, "predicted": p, "hits": c}
    # They move as these differences do, but their numbers are exact.
    differences = {"fn": t - c, "fp": p - c, "tn": c - t - p}
    for (name, moved), value in zip(differences.items(), stacked[3:6], strict=True):
        arrays[name] = Column(col, value, moved.parts)
    if any(metric.classes for metric in metrics):
        arrays |= TwoByTwo.of_floats(col).scores(zero_division)  # type: ignore[arg-type]
    return col, OverClasses(col)


def _pseudo_rows(
    rows: Segments, table: ClassTable, gold: Floats, pred: Floats, both: Floats, *, is_by_pred: bool
) -> tuple[Moments, Floats]:
    """The pseudo-rows of a table by their prediction; and Σ φ² of those beyond, (slices,).

    A class has a pseudo-hit and pseudo-misses, which are spread over the m other classes. So with a
    hit of the weight w and misses of the weight v, Σ φ² is

        Σ_i w_i (gold_i + pred_i + both_i)² + Σ_i v_i/m Σ_{j≠i} (gold_i + pred_j)².

    In the table by prediction, v_i/m is of the prediction j. If a slice does not have all m
    classes, a part of a miss is beyond: it has another label, or another prediction.
    """
    w, u, v = smoothed_tables.pseudo_rows(table, is_by_pred=is_by_pred)
    n, total, squares = (rows.spread(rows.sum(x)) - x for x in (u, u * gold, u * gold**2))
    hit = gold + pred + both
    misses = Moments(v * n, v * (total + pred * n), v * (squares + 2 * pred * total + pred**2 * n))
    moments = misses.with_rows(Moments(w, w * hit, w * hit**2))
    rest = w * table.n_misses - u * v * (rows.spread(rows.lengths) - 1)
    own = pred if is_by_pred else gold
    beyond = Moments(rest, rest * own, rest * own**2)
    if is_by_pred:
        return moments.with_rows(beyond), np.zeros(len(rows.starts))
    return moments, rows.sum(beyond.squares)


def together(parts: Iterable[dict[str, Influence]]) -> dict[str, Influence]:
    """The influences on the metrics of all slices, from those of portions."""
    every = [*parts]
    return {
        name: Influence(*map(np.concatenate, zip(*(part[name] for part in every), strict=True)))
        for name in every[0]
    }


def influences_on_pairs(
    classes: Classes,
    pairs: Counted,
    metrics: Sequence[Metric],
    expected: smoothed_tables.Expected | None = None,
    *,
    is_smoothed: bool = True,
) -> dict[str, Influence]:
    """The influences of rows on metrics of pairs, at the observed table and at smoothed ones.

    A metric of pairs needs the labels of a pair, so it has no formula over classes. A mean of
    numbers of rows, such as a cost, is smoothed by gold label alone. `expected`: slices are
    compared, and these are their pairs at the rates of all. There is no smoothed table if rows have
    no label.
    """
    is_smoothed &= classes.per_label is None
    are_means = all(metric.is_mean for metric in metrics)
    sides = ("gold",) if are_means else ("gold", "pred")
    pooled = None
    if is_smoothed and expected is not None and not are_means:
        pooled = smoothed_tables.pooled_pairs(classes, expected)
    found, first = [], 0
    for part, [(_, own)] in portions(classes, [(smoothed_tables.observed_table(classes), pairs)]):
        tables = [coded(part, own)]
        if is_smoothed:
            tables += [smoothed_tables.smoothed_pairs(part, own, side) for side in sides]
        if pooled is not None:
            tables.append(pooled.of_slices(first, own.number))
        found.append(_of_some_pairs(part, own.pred, tables, metrics))
        first += own.number
    return together(found)


def _of_some_pairs(
    classes: Classes, pred: Ints, tables: Sequence[Counted], metrics: Sequence[Metric]
) -> dict[str, Influence]:
    """The influences of rows on metrics of the pairs of some slices.

    The pairs of all tables have codes of labels; `pred` has the predicted class of observed pairs.
    """
    of_tables = [columns_of_pairs(table, classes.every) for table in tables]
    influences = {}
    for metric in metrics:
        values, phi_phi, phis = [], [], []
        for table, (col, terms) in zip(tables, of_tables, strict=True):
            score = differentiated(metric, terms)
            rows, s = col.rows, col.rows.sum(table.n)
            [gradient] = score.gradient(col("n"))
            gradient = gradient * rows.spread(s)
            phi = gradient - rows.spread(rows.sum(table.n / rows.spread(s) * gradient))
            squares = rows.sum(table.n * phi**2)
            if classes.per_label is not None:
                moments = Moments.of(table.n, phi, pred, classes.rows.size)
                squares += classes.rows.sum(moments.added_squares(classes.per_label))
            values.append(np.broadcast_to(score.of_slices().value, s.shape))
            phi_phi.append(squares / s)
            phis.append(phi)
        ends = ends_of(metric, of_tables[OBSERVED][1])
        influences[metric.name] = Influence.of(
            np.stack(values), ends, np.stack(phi_phi), phis[OBSERVED], is_mean=metric.is_mean
        )
    return influences


def coded(classes: Classes, pairs: Counted) -> Counted:
    """Pairs of classes as pairs of codes of labels."""
    return pairs._replace(gold=classes.codes[pairs.gold], pred=classes.codes[pairs.pred])


def columns_of_pairs(pairs: Counted, labels: pl.Series) -> tuple[ArrayColumns, OverPairs]:
    """The columns of pairs, and the terms over them."""
    sides = {"gold": labels.gather(pairs.gold), "pred": labels.gather(pairs.pred)}
    arrays: dict[str, Column | Floats] = {}
    col = ArrayColumns(pairs.rows, arrays, pl.DataFrame(sides))
    n = Column(col, pairs.n, is_variable=True)
    s = Column(col, pairs.rows.sum(pairs.n), is_total=True)
    arrays |= {"n": n, "share": n / s}
    return col, OverPairs(col)


def influences_on_scores(
    levels: Levels, pairs: Counted, metrics: Sequence[Metric]
) -> dict[str, Influence]:
    """The influences of rows on metrics of scores, at the observed table and a smoothed one.

    At the smoothed table, the score is a proportion of one half with as many effective rows.
    """
    s, influences = pairs.rows.sum(pairs.n), {}
    for metric in metrics:
        ends = metric.range.numbers if metric.range else (None, None)
        least, largest = (np.full(len(s), end, float) for end in ends)
        by_positive, by_negative, value, rows = INFLUENCES[metric.influence or metric.name](levels)
        phi = np.where(pairs.gold == 1, by_positive[pairs.pred], by_negative[pairs.pred])
        phi_phi = pairs.rows.sum(pairs.n * phi**2) / s
        max_variance = (largest - least) ** 2 / 4 / rows
        rows = effective_rows((least + largest) / 2, least, largest, max_variance)
        influences[metric.name] = Influence(value, least, largest, phi_phi, rows, max_variance, phi)
    return influences


def ends_of(metric: Metric, terms: Terms) -> tuple[Floats | float, ...]:
    """The least and the largest value of a metric in each slice; NaN without a range."""
    if metric.range is None:
        return math.nan, math.nan
    ends: list[Any] = [metric.range.low, metric.range.high]
    values = [end(terms) if callable(end) else end for end in ends]
    return tuple(end.value if isinstance(end, Column) else end for end in values)


NOTHING = 1e-20  # a mean square of influences up to this is 0, except for rounding
_MAX_ROWS = 1e12  # effective rows per row of the slice; more than any share of a class allows


def effective_rows(value: Floats, least: Floats, largest: Floats, phi_phi: Floats) -> Floats:
    """The rows m of a proportion with the variance of the score, per row of the slice."""
    proportion = (value - least) / (largest - least)
    squared = phi_phi / (largest - least) ** 2
    rows = proportion * (1 - proportion) / squared
    # Kappa of one gold class is moved by no row. Then φ is only a rounding error.
    is_real = (proportion > 0) & (proportion < 1) & (squared > NOTHING) & (rows < _MAX_ROWS)
    # A rate of a class that the slice does not have is a proportion of all rows.
    is_alone = ((proportion == 0) | (proportion == 1)) & (squared <= NOTHING)
    return np.where(is_real, rows, np.where(is_alone, 1.0, math.nan))


def differentiated(metric: Metric, terms: Terms, zero_division: float | None = None) -> Column:
    """A metric as a column that has derivatives, or an error that says why it has none."""
    try:
        value: object = metric.value(terms.of(metric, zero_division))
        if isinstance(value, OfLabels):
            value = value.columns.number(value, is_total=False)
        why = f"{value} has no derivative"
    except (NoDerivativeError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        value, why = None, str(error)
    if isinstance(value, Column):
        return value
    raise ValueError(
        f"metric '{metric.name}' has no standard error by a formula, because {why}; write it as a "
        "function, as in lambda col: col('recall').mean(), with the methods that register_metric "
        "lists, or use by(..., method=Bootstrap(...)) on a DataFrame to resample it"
    )

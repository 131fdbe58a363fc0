"""Gold classes that are never predicted → how far a score may be from the observed one.

Where no row has a prediction, the variance of a score tells little. In 6 % of samples with 30 rows
of a rare class with a recall of 0.09, no row is predicted as this class. Then MCC is 0/0, shown as
0. What was never seen is rare, but how rare? If none of n independent rows was seen to do
something, its rate is at most

    U(n) = 1 - (α/2)^(1/n),

where α is 1 - ci (Clopper and Pearson 1934; about 3.7/n for a level of 95 %). So a score lies
between its values at about two tables:

- largest: all gold classes that are never predicted have the recall U of their rows together, and
  there is no other prediction of them;
- least: no row of these classes is a hit, and of all other rows the share U is predicted as one
  of them, in proportion to their rows.

For two classes, the never-predicted one with the share T of the rows, MCC is at most
√(U(1 - T)/(1 - TU)), and at least -√(uT/(1 - (1 - T)u)), with u = U of the other rows.

A score that is far from the observed one however small U is, such as the precision of a class that
is never predicted, is not known at all. Then its limits are the ends of its range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from polars_mcc._intervals.count_arrays import Classes, Counted, Draws
from polars_mcc._intervals.influence_of_rows import columns_of_classes, differentiated
from polars_mcc._intervals.smoothed_tables import ClassTable
from polars_mcc._metrics.mcc_and_one_vs_rest import TwoByTwo
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.slice_sums import Flags, Floats, Ints, added_up

_NEARLY_NOTHING = 1e-9  # of U
_FEW = 2  # draws


class Between(NamedTuple):
    """The values of a score at the tables: (slices,); NaN in slices without such classes."""

    least: Floats
    largest: Floats
    near_least: Floats
    """With a rate of nearly 0 in place of U: a score that jumps is far away even then."""
    near_largest: Floats


def between(
    classes: Classes,
    pairs: Counted,
    draws: Draws,
    gold: Ints,
    metrics: Sequence[Metric],
    *,
    ci: float,
) -> dict[str, Between]:
    """The values of metrics, where some of two or more gold classes are never predicted.

    `gold` is the place of the gold class of each cell of `draws`. A slice with fewer than two draws
    of these classes has none.
    """
    rows, t, never_predicted = classes.rows, classes.t, (classes.p == 0) & (classes.t > 0)
    if not never_predicted.any():
        return {}
    # To a metric of the positive class, all other classes are one.
    is_positive = classes.is_positive == 1
    p_of = (rows.sum(classes.p * side)[rows.of_row] for side in (is_positive, ~is_positive))
    is_unseen = np.where(is_positive, *(p == 0 for p in p_of))
    has_two = rows.sum((t > 0).astype(np.float64)) >= 2
    of_metrics: dict[str, Between] = {}
    for is_of_positive in (False, True):
        asked = [metric for metric in metrics if metric.is_of_positive == is_of_positive]
        is_never = never_predicted & is_unseen if is_of_positive else never_predicted
        unseen = draws.with_rows(is_never[gold])
        chosen = has_two & (unseen >= _FEW)
        if not asked or not chosen.any():
            continue
        seen = draws.with_rows(~is_never[gold])
        # If no other class has rows, rows of these classes are predicted as each other.
        has_others = seen >= _FEW
        is_other = ~is_never | ~has_others[rows.of_row]
        seen = np.where(has_others, seen, draws.with_rows(np.ones(len(gold), bool)))
        hits = is_never * rows.spread(_largest_rate(unseen, ci))
        false = is_other * rows.spread(_largest_rate(seen, ci))
        rates = _rates(hits, false, np.zeros_like(t))
        tables = (_table(classes, pairs, is_never, *both) for both in rates)
        is_kept = chosen[rows.of_row]
        some = [ClassTable(*(counts[is_kept] for counts in table)) for table in tables]
        _, terms = columns_of_classes(classes.where(chosen), some, asked, 0.0)
        for metric in asked:
            values = np.full((len(some), len(chosen)), math.nan)
            values[:, chosen] = differentiated(metric, terms).of_slices().value
            of_metrics[metric.name] = Between(*values)
    return of_metrics


def of_each_class(classes: Classes, draws: Draws, gold: Ints, *, ci: float) -> dict[str, Between]:
    """The values of the scores of each class, (classes,), where it or its rest is never predicted.

    The class and the rest of its slice are the two classes of the tables.
    """
    rows, t = classes.rows, classes.t
    s = rows.spread(classes.s)
    is_never, is_always = classes.p == 0, classes.p == s
    own, rest = draws.with_gold(gold, len(t))
    unseen, seen = np.where(is_never, own, rest), np.where(is_never, rest, own)
    chosen = (is_never | is_always) & (t > 0) & (t < s) & (unseen >= _FEW)
    if not chosen.any():
        return {}
    hits, false = (_largest_rate(n, ci) for n in (unseen, seen))
    unseen_rows = np.where(is_never, t, s - t)
    seen_rows, none, tables = s - unseen_rows, np.zeros_like(t), []
    for recall, wrong in _rates(hits, false, none):
        found, lost = recall * unseen_rows, wrong * seen_rows
        cells = np.stack([found, unseen_rows - found, lost, seen_rows - lost])
        tp, fn, fp, tn = np.where(is_never, cells, cells[::-1])  # of the class, or of its rest
        counts = t, tp + fp, tp, fn, fp, tn
        tables.append(ClassTable.plain(counts, classes.n_other_classes))
    col, _ = columns_of_classes(classes, tables, [], None)
    scores = TwoByTwo.of_floats(col).scores(None)
    return {
        name: Between(*np.where(chosen, score.value, math.nan))  # type: ignore[attr-defined]
        for name, score in scores.items()
    }


def _rates(hits: Floats, false: Floats, none: Floats) -> list[tuple[Floats, Floats]]:
    """The recall of what is never predicted, and the false alarms, at each table of `Between`."""
    ends = [(none, false), (hits, none)]
    return [*ends, *((_NEARLY_NOTHING * recall, _NEARLY_NOTHING * wrong) for recall, wrong in ends)]


def _largest_rate(draws: Floats, ci: float) -> Floats:
    """The largest rate of what none of so many draws did."""
    return 1 - ((1 - ci) / 2) ** (1 / draws)


def _table(
    classes: Classes, pairs: Counted, is_never: Flags, hits: Floats, false: Floats
) -> ClassTable:
    """The classes, if shares of the rows of each gold class get another prediction.

    `hits` are predicted right, and `false` as a class that is never predicted.
    """
    rows, t = classes.rows, classes.t
    # A row goes to the never-predicted classes other than its own, in proportion to their rows.
    own = is_never * t
    to = rows.spread(rows.sum(own)) - own
    false = np.where(to > 0, false, 0.0)
    per_row = np.where(to > 0, false * t / to, 0.0)
    come = own * (rows.spread(rows.sum(per_row)) - per_row)
    kept = 1 - hits - false
    p = added_up(pairs.n * kept[pairs.gold], pairs.pred, len(t)) + hits * t + come
    c = classes.c * kept + hits * t
    tn = np.clip(rows.spread(classes.s) - t - p + c, 0, None)
    return ClassTable.plain((t, p, c, t - c, p - c, tn), classes.n_other_classes)

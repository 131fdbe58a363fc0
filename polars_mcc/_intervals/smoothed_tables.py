"""Counted classes → the tables of each slice at which the variance of a score is computed.

The observed table gives the standard error. It takes a rate of 0 or 1 as known exactly. So the
rows of a proportion that an interval stands for come from smoothed tables:

- `BY_GOLD`: each gold class gets two pseudo-rows, a hit and a miss. Its rows are then scaled back,
  so that the gold margin stays. The miss is spread evenly over the other classes.
- `BY_PRED`: the same for each predicted class, and the predicted margin stays. If rows of a slice
  have no label, a class gets a miss of each other class: a rare gold label among the rows that a
  labelled row stands for would count most.
- `POOLED`: the gold margin of the slice, and the rates of all slices that are compared together.
  Two slices with the same rates then have the same variance, whatever happened to few rows. Slices
  of one pool are compared. A pool has the rows of its slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from polars_mcc._intervals.count_arrays import Classes, Counted
from polars_mcc._metrics.slice_sums import Floats, Ints, Segments, added_up, places_in

OBSERVED, BY_GOLD, BY_PRED, POOLED = range(4)
"""The places of the tables on the first axis of arrays."""


class ClassTable(NamedTuple):
    """The classes of each slice at one table, as in `Classes`: floats (classes,).

    With an axis more, (tables, classes), it is several tables.
    """

    t: Floats
    p: Floats
    c: Floats
    fn: Floats
    fp: Floats
    tn: Floats
    pseudo_share: Floats
    """The share of pseudo-rows in the rows of a class."""
    n_other_classes: Floats
    """Over how many classes the pseudo-misses are spread."""
    n_misses: Floats
    """How many pseudo-misses a class has, beside its pseudo-hit."""

    @classmethod
    def plain(cls, counts: Sequence[Floats], n_other_classes: Floats) -> ClassTable:
        """A table without pseudo-rows: t, p, c, fn, fp and tn."""
        t, p, c, fn, fp, tn = counts
        return cls(t, p, c, fn, fp, tn, np.zeros_like(t), n_other_classes, np.ones_like(t))


class Pools(NamedTuple):
    """The pool of each slice, and the pairs of the pools."""

    of_slice: Ints
    pairs: Counted


class Expected(NamedTuple):
    """The pairs that each slice would have at the rates of its pool."""

    pairs: Counted
    """With places of classes; `pred` is -1 if the slice has no such class."""
    pred_codes: Ints
    """The code of the predicted label of each pair."""
    pool_rows: Floats
    """The gold rows of each class in the pool: (classes,)."""
    n_other_classes: Floats
    """How many other classes the pool of each class has: (classes,)."""
    n_classes: tuple[Ints, Ints]
    """How many gold classes, and predicted classes, the pool of each slice has: (slices,)."""


def expected_pairs(classes: Classes, pools: Pools) -> Expected:
    """The expected pairs of slices with these classes."""
    pool_of, pool = pools
    k, n = len(classes.every), pool.n
    of_pool, gold, pred = pool.slices.astype(np.int64), pool.gold, pool.pred
    # The pairs of a gold label of a pool follow each other.
    keys, starts = np.unique(of_pool * k + gold, return_index=True)
    labels = Segments(starts, len(n))
    rows, each_pred = labels.sum(n), np.unique(of_pool * k + pred)
    each = [np.bincount(ids // k, minlength=pool.number) for ids in (keys, each_pred)]
    either = np.bincount(np.union1d(keys, each_pred) // k, minlength=pool.number)
    of_class = pool_of[classes.rows.of_row].astype(np.int64)
    place = places_in(keys, of_class * k + classes.codes)
    is_gold = place >= 0
    here = np.flatnonzero(is_gold & (classes.t > 0))
    of_class_here, at = labels.rows_of(place[here])
    own = here[of_class_here]
    slices, expected = classes.rows.of_row[own], classes.t[own] * (n[at] / rows[place[own]])
    places = own, classes.places(slices, pred[at])
    return Expected(
        Counted(len(classes.rows.starts), slices, *places, expected, expected),
        pred[at],
        np.where(is_gold, rows[place] * pool.per_weight[of_class], 0.0),
        either[of_class].astype(float) - 1,
        (each[0][pool_of], each[1][pool_of]),
    )


def tables_of(
    classes: Classes, pairs: Counted, expected: Expected | None, *, is_smoothed: bool = True
) -> list[tuple[ClassTable, Counted]]:
    """The tables of all slices, each with its pairs, in which places of classes stand for labels.

    The observed table comes first, and is the only one if not `is_smoothed`. A smoothed table has
    its pseudo-rows besides its pairs. If slices are compared, the last table is `POOLED`.
    """
    observed = observed_table(classes)
    tables = [(observed, pairs)]
    if not is_smoothed:
        return tables
    per_weight = classes.rows.spread(pairs.per_weight)
    for side, margin, own in (("gold", classes.t, pairs.gold), ("pred", classes.p, pairs.pred)):
        n_misses = observed.n_misses
        if classes.per_label is not None:  # Each class has its own share of labelled rows.
            per_weight = margin / added_up(pairs.squares, own, len(margin))
        if classes.has_gaps is not None and side == "pred":
            has_gaps = classes.has_gaps[classes.rows.of_row]
            n_misses = np.where(has_gaps, np.fmax(classes.n_other_classes, 1.0), 1.0)
        share = pseudo_share(margin * per_weight, n_misses)
        with_rows = observed._replace(pseudo_share=share, n_misses=n_misses)
        tables.append(smoothed(classes, with_rows, pairs, side))
    if expected is not None:
        tables.append(smoothed(classes, _at_rates(classes, expected), expected.pairs, "gold"))
    return tables


def observed_table(classes: Classes) -> ClassTable:
    """The classes as they are."""
    counts = classes.t, classes.p, classes.c, classes.fn, classes.fp, classes.tn
    return ClassTable.plain(counts, classes.n_other_classes)


def pseudo_share(rows: Floats, n_misses: Floats | float = 1.0) -> Floats:
    """The share of a pseudo-hit and pseudo-misses in a class of so many rows."""
    return np.where(rows > 0, (1 + n_misses) / (rows + 1 + n_misses), 0.0)


def smoothed(
    classes: Classes, table: ClassTable, pairs: Counted, side: str
) -> tuple[ClassTable, Counted]:
    """The table that keeps the margin of one side, gold or pred; and its pairs.

    A class gives up the share `pseudo_share` of its own rows. It comes back as hits, and as
    `n_misses` times as many misses, which are spread evenly over the other classes.
    """
    rows, (t, p, c, fn, fp, tn, share, n_other_classes, n_misses) = classes.rows, table
    own, other = (pairs.gold, pairs.pred) if side == "gold" else (pairs.pred, pairs.gold)
    is_miss = (own != other) & (other >= 0)
    given_up = pairs.n * share[own]
    gone = added_up(given_up[is_miss], other[is_miss], len(t))
    kept = pairs._replace(n=pairs.n - given_up)
    hits = (t if side == "gold" else p) / (1 + n_misses)
    misses = hits * n_misses
    given = share * misses
    with np.errstate(all="ignore"):
        come = (rows.spread(rows.sum(given)) - given) / n_other_classes
    change = np.where(n_other_classes > 0, come, 0.0) - gone
    miss, other_miss = (fn, fp) if side == "gold" else (fp, fn)
    c = c + share * (hits - c)
    miss = np.clip(miss + share * (misses - miss), 0, None)
    other_miss = np.clip(other_miss + change, 0, None)
    tn = np.clip(tn - change, 0, None)
    of_pseudo_rows = share, n_other_classes, n_misses
    if side == "gold":
        return ClassTable(t, c + other_miss, c, miss, other_miss, tn, *of_pseudo_rows), kept
    return ClassTable(c + other_miss, p, c, other_miss, miss, tn, *of_pseudo_rows), kept


def smoothed_pairs(classes: Classes, pairs: Counted, side: str) -> Counted:
    """The pairs of `BY_GOLD` or `BY_PRED`, pseudo-rows among them: codes of labels."""
    margin = classes.t if side == "gold" else classes.p
    share = pseudo_share(margin * classes.rows.spread(pairs.per_weight))
    return _with_pseudo_rows(classes, pairs, side, share, classes.codes[pairs.pred])


def pooled_pairs(classes: Classes, expected: Expected) -> Counted:
    """The pairs of `POOLED`, pseudo-rows among them: codes of labels."""
    share = pseudo_share(expected.pool_rows)
    return _with_pseudo_rows(classes, expected.pairs, "gold", share, expected.pred_codes)


def _with_pseudo_rows(
    classes: Classes, pairs: Counted, side: str, share: Floats, pred_codes: Ints
) -> Counted:
    """The pairs, of which each class of one side gives up a share to pseudo-rows."""
    rows, number, codes = classes.rows, pairs.number, classes.codes
    margin, of_pairs = (classes.t, pairs.gold) if side == "gold" else (classes.p, pairs.pred)
    hits, others = share * margin / 2, np.fmax(classes.n_other_classes, 1.0)
    [own] = np.nonzero(margin > 0)
    of_own, other = rows.rows_of(rows.of_row[own])
    own = own[of_own]
    pseudo = np.where(own == other, hits[own], hits[own] / others[own])
    gold, pred = (own, other) if side == "gold" else (other, own)
    kept = pairs.n * (1 - share[of_pairs])
    columns = (
        (pairs.slices, rows.of_row[own]),
        (codes[pairs.gold], codes[gold]),
        (pred_codes, codes[pred]),
        *((kept, pseudo),) * 2,
    )
    return Counted.of_rows(number, *map(np.concatenate, columns))[0]


def pseudo_rows(table: ClassTable, *, is_by_pred: bool) -> tuple[Floats, Floats, Floats]:
    """The weight of the pseudo-hit of each class, and two factors of pseudo-misses: (classes,).

    The first factor of a class i times the second of a class j is the weight of the pseudo-miss
    with the gold label i and the prediction j.
    """
    weight = table.pseudo_share * (table.p if is_by_pred else table.t) / (1 + table.n_misses)
    m, alike = table.n_other_classes, np.ones_like(weight)
    with np.errstate(all="ignore"):
        each = np.where(m > 0, weight * table.n_misses / m, 0.0)
    return (weight, alike, each) if is_by_pred else (weight, each, alike)


def _at_rates(classes: Classes, expected: Expected) -> ClassTable:
    """The classes of the expected pairs. `pseudo_share` is that of the pool."""
    gold, pred, n = expected.pairs[2:5]
    hits, misses = (
        added_up(n[rows], pred[rows], len(classes.t))
        for rows in (gold == pred, (gold != pred) & (pred >= 0))
    )
    rest = classes.fp + classes.tn  # the rows of other gold labels, which do not change
    counts = classes.t, hits + misses, hits, classes.t - hits, misses, rest - misses
    share = pseudo_share(expected.pool_rows)
    return ClassTable(*counts, share, expected.n_other_classes, np.ones_like(share))

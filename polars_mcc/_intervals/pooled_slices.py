"""Slices that are compared with each other, and the pairs of a slice at the rates of all.

Slices of one pool are compared. A pool has the rows of its slices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polars_mcc._intervals.count_arrays import Classes, Counted
from polars_mcc._metrics.slice_sums import Floats, Ints, Segments, places_in


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

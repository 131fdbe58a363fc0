"""Slices with rows without a gold label → counts in which labelled rows stand for these.

A slice has N_j rows with the prediction j, of which n_j have a label. Each of these counts as
N_j / n_j rows (see `reweighted_pairs`). The rest of a slice has ratios of its own. So its counts
are not those of the log minus those of the slice: only the rows as they are can be subtracted.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np

from polars_mcc._intervals.count_arrays import Counted, equal_rows
from polars_mcc._metrics.slice_sums import Floats, Ints, added_up

Margins: TypeAlias = list[Ints]
"""Counts of labels, or of scores: each (slices, labels)."""


def reweighted(pairs: Counted, no_label: int) -> Counted:
    """The labelled pairs of slices. `no_label` is the code of a row without a gold label.

    A slice has no pairs if one of its predictions has no labelled row.
    """
    strata, of_pair = np.unique(
        np.stack([pairs.slices, pairs.pred]).astype(np.int64), axis=1, return_inverse=True
    )
    of_pair = of_pair.reshape(-1)
    is_labelled = pairs.gold < no_label
    every, labelled = (
        added_up(n, of_pair, strata.shape[1]) for n in (pairs.n, pairs.n * is_labelled)
    )
    is_known = np.ones(pairs.number, bool)
    is_known[strata[0, labelled == 0]] = False
    kept = np.flatnonzero(is_labelled & is_known[pairs.slices])
    ratio = every[of_pair[kept]] / labelled[of_pair[kept]]
    slices, gold, pred, n, _ = (array[kept] for array in pairs[1:])
    return Counted(pairs.number, slices, gold, pred, n * ratio, n * ratio * ratio)


def rows_per_label(every: Ints, labelled: Ints) -> Floats:
    """How many rows a labelled row with each prediction counts as: (slices, labels).

    It is 0 in the whole slice if one of its predictions has no labelled row.
    """
    has_labels = labelled > 0
    ratio: Floats = np.zeros(every.shape)
    np.divide(every, labelled, out=ratio, where=has_labels)
    ratio *= (has_labels | (every == 0)).all(axis=1, keepdims=True)
    return ratio


def effective_rows(every: Ints, labelled: Ints) -> Floats:
    """How many rows of equal weight would be as good as those of each slice: (slices,).

    It is 0 if one of the predictions of the slice has no labelled row.
    """
    squares = every * rows_per_label(every, labelled)
    return equal_rows(every.sum(1), squares.sum(1))


def whole_at(pairs: Counted, per_label: Floats) -> Margins:
    """The margins of all rows, if labelled rows counted as much as `per_label` of each slice says.

    `pairs` are those of the log.
    """
    k = per_label.shape[1]
    by_gold = np.zeros(per_label.shape)
    bounds = np.searchsorted(pairs.gold, np.arange(k + 1)).tolist()
    for gold, (start, stop) in enumerate(pairwise(bounds)):
        cells = slice(start, stop)
        by_gold[:, gold] = per_label[:, pairs.pred[cells]] @ pairs.n[cells]
    is_labelled, is_hit = pairs.gold < k, pairs.gold == pairs.pred
    predicted, hits = (added_up(pairs.n * rows, pairs.pred, k) for rows in (is_labelled, is_hit))
    return [by_gold, per_label * predicted, per_label * hits]

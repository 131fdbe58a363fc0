"""Slices with rows without a gold label → counts in which labelled rows stand for these.

A slice has N_j rows with the prediction j, of which n_j have a label. Each of these counts as
N_j / n_j rows (see `reweighted_pairs`). The rest of a slice has ratios of its own. So its counts
are not those of the log minus those of the slice: only the rows as they are can be subtracted.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from polars_mcc._intervals.count_arrays import Counted
from polars_mcc._metrics.slice_sums import Ints, added_up

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

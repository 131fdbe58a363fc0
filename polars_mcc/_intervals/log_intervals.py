"""The interval of a ratio from 0 to infinity, such as `lr_pos`: of its logarithm.

Each cell of the table of the positive class and the rest gets half a row (Haldane 1956), so the
logarithm is finite and each cell has a variance. The delta method gives the standard error of the
logarithm (Simel, Samsa and Matchar 1991).
"""

from __future__ import annotations

import math

import numpy as np

from polars_mcc._intervals.count_arrays import Classes, Counted, Draws
from polars_mcc._intervals.influence_of_rows import differentiated
from polars_mcc._intervals.interval_methods import Interval, critical
from polars_mcc._metrics.derivatives import ArrayColumns, Column
from polars_mcc._metrics.mcc_and_one_vs_rest import TwoByTwo
from polars_mcc._metrics.metric_type import Metric, OverPairs
from polars_mcc._metrics.slice_sums import Flags, Floats, Ints, Segments, added_up


def log_interval(
    metric: Metric,
    score: Floats,
    classes: Classes,
    pairs: Counted,
    draws: tuple[Draws, Ints],
    *,
    is_0_0: Flags,
    ci: float,
) -> Interval:
    """The interval of each exact `score`, and the standard error of its logarithm; NaN at 0/0.

    `pairs` are of places of classes; `draws` are those of the slices, with the pair of each cell.
    The interval reaches down from the smaller and up from the larger of two logarithms, with half
    rows and without: half a row is too much beside few rows. So it begins at 0, or ends at
    infinity, where the score is there. With sample weights, a row has their mean Σ w² / Σ w.
    """
    drawn, pair = draws
    number, size = pairs.number, drawn.size
    gold, pred = (1 - classes.is_positive[side].astype(np.int64) for side in pairs[2:4])
    place = pairs.slices * 4 + 2 * gold + pred  # tp, fn, fp, tn
    half = added_up(pairs.squares, pairs.slices, number) / size / size / 2
    shares = added_up(pairs.n, place, number * 4).reshape(number, 4).T / size + half
    col = ArrayColumns(Segments(np.arange(number), number), {})
    tp, fn, fp, tn = cells = [Column(col, share, is_variable=True) for share in shares]
    terms, no_product = OverPairs(col), tp
    table = (tp, fn, fp, tn, tp + fn, tp + fp, *(no_product,) * 3)
    terms.positive = TwoByTwo(*table)  # type: ignore[arg-type]
    logarithm = differentiated(metric, terms).log()
    # It has no unit, so the mean of these influences is 0.
    moved = np.stack(logarithm.gradient(*cells))
    phi = moved.T.reshape(-1)[place][pair]
    of_rows = drawn.products(phi, phi) / size / size
    variance = of_rows + 2 * half**2 * (moved**2).sum(axis=0)
    df = None
    if drawn.n_clusters is not None:
        df = drawn.n_clusters - 1
        variance = variance / (1 - 1 / drawn.n_clusters)
    se = np.where(np.isfinite(variance) & ~is_0_0, np.sqrt(variance), math.nan)
    reach = critical(ci, df) * se
    both = np.log(score), logarithm.value
    return Interval(np.exp(np.minimum(*both) - reach), np.exp(np.maximum(*both) + reach), se)

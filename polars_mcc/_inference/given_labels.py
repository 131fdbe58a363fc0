"""What a slice would score given its labels: its gold labels, and the prediction rates of all rows.

Each gold label of the slice is predicted as often right, and as often as each other label, as it is
in all rows that the slice is compared with. A slice that scores less errs more than its mix of
labels explains.

If the rates of the slice are the same, its row of the confusion matrix for a gold label i is a
draw without replacement: n_i of the N_i rows with this label. The draws are independent. With the
influence φ_ij of a row on the score, and the rates r_ij, the variance of the score is about

    1/n² · Σ_i n_i · (1 - n_i/N_i) · N_i/(N_i - 1) · Σ_j r_ij (φ_ij - Σ_j r_ij φ_ij)²
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from polars_mcc._counts.exact import numbers
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.arrays import beside_pairs, of_arrays
from polars_mcc._inference.estimate import estimate
from polars_mcc._inference.options import IntervalOptions
from polars_mcc._inference.pool import Pool
from polars_mcc._scores.segments import Floats, Segments


def given_labels(
    log: SlicedLog, pairs: pl.DataFrame, pool: Pool, options: IntervalOptions
) -> pl.DataFrame:
    """The `expected` score of each slice given its labels, and its `expected_se`.

    `expected_step` is how far the prediction of one row moves the score, at most. `pool` has the
    pairs of all rows. The first metric of `options` is scored.
    """
    metric = options.metrics[0]
    expected = pool.expected(log, pairs).with_columns(n_null=pl.lit(0.0))
    in_floats = replace(
        log.with_pairs_of(), numbers=numbers(pl.Float64()), weight_name="n", is_frequency=True
    )
    at_rates = expected.select(*log.slice, "gold", "pred", "n", "n_null")
    found = estimate(in_floats, at_rates, replace(options, pool=None, is_smoothed=False))
    scores = found.scores.select(*log.slice, expected=metric.name)
    if metric.no_interval:
        none = pl.lit(None, pl.Float64)
        return scores.with_columns(expected_se=none, expected_step=none)
    moved = found.influences(metric.name).with_row_index("pair")
    cells = beside_pairs(log, expected, moved).sort("pair")
    gold = found.pairs.gold
    rows, of_all, rate, phi = (
        cells[name].to_numpy() for name in ("rows", "pool_rows", "rate", "phi")
    )
    # The pairs of a gold label of a slice follow each other.
    slices = found.pairs.rows.of_row
    is_new = np.diff(np.stack([slices, gold]).astype(np.int64), prepend=-1).any(axis=0)
    labels = Segments(np.flatnonzero(is_new), len(gold))
    se, step = spread_of_draws(found.pairs.rows, labels, rows, of_all, rate=rate, phi=phi)
    return scores.with_columns(of_arrays(expected_se=se, expected_step=step))


def spread_of_draws(
    slices: Segments,
    labels: Segments,
    rows: Floats,
    of_all: Floats,
    *,
    rate: Floats,
    phi: Floats,
) -> tuple[Floats, Floats]:
    """The standard error of each expected score, and how far one prediction moves it, at most.

    The arrays are of expected pairs: `rows` of the gold label in the slice, and `of_all` rows in
    the pool; the `rate` of the prediction, and the influence of a row. `slices` and `labels` say
    which pairs belong to a slice, and to a gold label of a slice.
    """
    with np.errstate(all="ignore"):
        not_drawn = np.where(of_all > 1, (of_all - rows) / (of_all - 1), 0.0)
        # Differences from the least φ: if all are equal, the variance is exactly 0.
        above = phi - labels.spread(labels.min(phi))
        mean = labels.spread(labels.sum(rate * above))
        squares = slices.sum(rows * not_drawn * rate * (above - mean) ** 2)
        size = slices.sum(rows * rate)
        return np.sqrt(squares / size**2), slices.max(labels.spread(labels.max(above))) / size

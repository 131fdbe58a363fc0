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

import polars as pl

from polars_mcc._counts.classes import is_scored
from polars_mcc._counts.exact import numbers
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.estimate import estimate
from polars_mcc._inference.options import IntervalOptions
from polars_mcc._inference.tables import Pool
from polars_mcc._inference.variance import exact_sums


def given_labels(
    log: SlicedLog, pairs: pl.LazyFrame, pool: Pool, options: IntervalOptions
) -> pl.LazyFrame:
    """The `expected` score of each slice given its labels, and its `expected_se`.

    `expected_step` is how far the prediction of one row moves the score, at most. `pool` has the
    pairs of all rows. The first metric of `options` is scored.
    """
    metric, rows = options.metrics[0], pl.col("rows")
    expected = pool.expected(log, pairs).with_columns(n_null=pl.lit(0.0)).cache()
    in_floats = replace(
        log, numbers=numbers(pl.Float64()), extras=(), weight_name="n", is_frequency=True
    )
    pair, of_label = [*log.slice, "gold", "pred"], [*log.slice, "gold"]
    at_rates = expected.select(*pair, "n", "n_null")
    found = estimate(in_floats, at_rates, replace(options, pool=None))
    scores = found.scores.select(*log.slice, expected=metric.name)
    if metric.no_interval:
        none = pl.lit(None, pl.Float64)
        return scores.with_columns(expected_se=none, expected_step=none)
    influences = found.influences[metric.name].select(*pair, "phi")
    of_all, rate, phi = map(pl.col, ("pool_rows", "rate", "phi"))
    not_drawn = pl.when(of_all > 1).then((of_all - rows) / (of_all - 1)).otherwise(0.0)
    # Differences from the least φ: if all are equal, the variance is exactly 0.
    above = phi - phi.min().over(of_label)
    moves = expected.join(influences, on=pair, nulls_equal=True).with_columns(above=above)
    above = pl.col("above")
    mean = (rate * above).sum().over(of_label, order_by="pred")
    moves = moves.with_columns(square=rows * not_drawn * rate * (above - mean).pow(2))
    spreads = exact_sums(log, moves, [], variance=pl.col("square"))
    spreads = log.beside(spreads, log.per_slice(moves, reach=above.max()))
    size = pl.col("n").cast(pl.Float64).sum()
    spreads = log.beside(spreads, log.per_slice(pairs.filter(is_scored(log)), size=size))
    size = pl.col("size")
    return log.beside(
        scores,
        spreads.select(
            *log.slice,
            expected_se=(pl.col("variance") / size.pow(2)).sqrt(),
            expected_step=pl.col("reach") / size,
        ),
    )

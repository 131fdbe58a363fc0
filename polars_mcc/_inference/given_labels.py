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
from polars_mcc._counts.exact import numbers, sum_in_any_order
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.asked import Asked
from polars_mcc._inference.intervals import estimate
from polars_mcc._inference.tables import Pool, rates


def given_labels(log: SlicedLog, pairs: pl.LazyFrame, pool: Pool, asked: Asked) -> pl.LazyFrame:
    """The `expected` score of each slice given its labels, and its `expected_se`.

    `expected_step` is how far the prediction of one row moves the score, at most. `pool` has the
    pairs of all rows. The first metric of `asked` is scored.
    """
    metric, n = asked.metrics[0], pl.col("n").cast(pl.Float64)
    on = [*pool.log.slice, "gold"]
    of_gold = pairs.filter(is_scored(log)).group_by(*log.slice, "gold").agg(rows=n.sum())
    at_rates = of_gold.join(rates(pool), on=on, nulls_equal=True).select(
        *log.slice,
        "gold",
        "pred",
        "rate",
        "of_gold",
        "rows",
        n=pl.col("rows") * pl.col("rate"),
        n_null=pl.lit(0.0),
    )
    at_rates = at_rates.cache()
    in_floats = replace(
        log, numbers=numbers(pl.Float64()), extras=(), weight_name="n", is_frequency=True
    )
    pairs = at_rates.select(*log.slice, "gold", "pred", "n", "n_null")
    found = estimate(in_floats, pairs, replace(asked, pool=None))
    scores = found.scores.select(*log.slice, expected=metric.name)
    if metric.no_interval:
        none = pl.lit(None, pl.Float64)
        return scores.with_columns(expected_se=none, expected_step=none)
    moved = found.influences[metric.name].select(
        *log.slice, "gold", "pred", phi=f"phi:{metric.name}", unit=f"unit:{metric.name}"
    )
    rows, of_all, rate, phi, unit = map(pl.col, ("rows", "of_gold", "rate", "phi", "unit"))
    left = pl.when(of_all > 1).then((of_all - rows) / (of_all - 1)).otherwise(0.0)
    mean = sum_in_any_order(rate * phi, unit).over([*log.slice, "gold"])
    square = rows * left * rate * (phi - mean).pow(2)
    reach = (phi.max() - phi.min()).over([*log.slice, "gold"])
    moves = at_rates.join(moved, on=[*log.slice, "gold", "pred"], nulls_equal=True)
    spreads = log.per_slice(
        moves.with_columns(square=square, reach=reach),
        variance=sum_in_any_order(pl.col("square"), 4 * unit.pow(2)),
        reach=pl.col("reach").max(),
    )
    size = pl.col("size")
    spreads = log.beside(spreads, log.per_slice(of_gold, size=rows.sum())).select(
        *log.slice,
        expected_se=(pl.col("variance") / size.pow(2)).sqrt(),
        expected_step=pl.col("reach") / size,
    )
    return log.beside(scores, spreads)

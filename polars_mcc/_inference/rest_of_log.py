"""The pairs of the rest of a slice, the other rows of the log: by subtracting counts."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.counted import count_columns, merged
from polars_mcc._counts.sliced import SlicedLog

ROUNDING = 2.0**-40
"""The share of a sum of floats that rounding may leave when all of it is subtracted."""


def pairs_of_rest(
    log: SlicedLog, own: pl.DataFrame, total: pl.DataFrame, within: list[str]
) -> pl.DataFrame:
    """The pairs of the rest of each slice of a log, which has its `own` pairs.

    `total` are the pairs of a slice and its rest together: they have equal columns `within`.
    """
    counts = count_columns(log)
    slices = own.lazy().select(log.slice).unique()
    every = slices.join(total.lazy(), on=within or pl.lit(0), nulls_equal=True)
    columns = [*log.slice, "gold", "pred", *counts]
    taken = own.lazy().with_columns(-pl.col(name) for name in counts)
    signed = pl.concat([every.select(columns), taken.select(columns)])
    return merged(log, _taken_away(log, signed)).collect()


def _taken_away(log: SlicedLog, signed: pl.LazyFrame) -> pl.LazyFrame:
    """The pairs of a slice, where the counts of some are negative: these are taken away.

    All later results are sums over pairs, so integer counts may stay in two rows. Float counts are
    added up here: what only rounding left is 0.
    """
    if not log.numbers.count.is_float():
        return signed
    n, least = pl.col("n"), pl.col("n").max() * ROUNDING
    sums = signed.group_by(*log.slice, "gold", "pred").agg(
        pl.col(count_columns(log)).sum(), least=least
    )
    return sums.with_columns(n=pl.when(n > pl.col("least")).then(n).otherwise(0.0))

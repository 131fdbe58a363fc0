"""The pairs of the rest of a slice, the other rows of the log: by subtracting counts."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.counted import count_columns, merged
from polars_mcc._counts.sliced import SlicedLog

ROUNDING = 2.0**-40
"""The share of a sum of floats that rounding may leave when all of it is subtracted."""


def pairs_of_rest(apart: SlicedLog, own: pl.DataFrame, total: pl.DataFrame) -> pl.DataFrame:
    """The pairs of the rest of each slice, whose `own` pairs have the columns of `apart`.

    `total` are the pairs of a slice and its rest together.
    """
    on = [name for name in apart.slice if name not in apart.splits]
    taken, counts = own.lazy(), count_columns(apart)
    slices = taken.select(apart.slice).unique()
    every = slices.join(total.lazy(), on=on or pl.lit(0), nulls_equal=True)
    columns = [*apart.slice, "gold", "pred", *counts]
    taken = taken.with_columns(-pl.col(name) for name in counts)
    signed = pl.concat([every.select(columns), taken.select(columns)])
    return merged(apart, _taken_away(apart, signed)).collect()


def _taken_away(log: SlicedLog, signed: pl.LazyFrame) -> pl.LazyFrame:
    """The pairs of a slice, where the counts of some are negative: these are taken away.

    All later results are sums over pairs. So a pair with integer counts stays in two rows. Float
    counts are added up here: a pair may then be 0 except for rounding, and such a pair is dropped.
    """
    if not log.numbers.count.is_float():
        return signed
    n, most = pl.col("n"), pl.col("n").max()
    return (
        signed.group_by(*log.slice, "gold", "pred")
        .agg(pl.col(count_columns(log)).sum(), least=most * ROUNDING)
        .filter((n > pl.col("least")) | (pl.col("n_null") > 0))
        .with_columns(n.clip(0))
        .drop("least")
    )

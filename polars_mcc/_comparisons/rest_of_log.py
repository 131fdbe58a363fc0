"""The pairs of the rest of each slice: the counts of all rows minus the counts of the slice."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.count_rows import count_columns, merged
from polars_mcc._counts.sliced_log import SlicedLog, joined

ROUNDING = 2.0**-40
"""If equal sums of floats are subtracted, rounding may leave up to this share of the sum."""


def pairs_of_rest(
    log: SlicedLog, own: pl.DataFrame, total: pl.DataFrame, within: list[str]
) -> pl.DataFrame:
    """The pairs of the rest of each slice, with the keys of the slice.

    `own` has the pairs of the slices. `total` has the pairs of all rows, per value of the columns
    `within`: the rest of a slice has the same values.
    """
    counts = count_columns(log)
    slices = own.lazy().select(log.slice).unique()
    every = joined(slices, total.lazy(), within, how="inner")
    columns = [*log.slice, "gold", "pred", *counts]
    taken = own.lazy().with_columns(-pl.col(name) for name in counts)
    signed = pl.concat([every.select(columns), taken.select(columns)])
    return merged(log, _subtracted(log, signed)).collect()


def _subtracted(log: SlicedLog, signed: pl.LazyFrame) -> pl.LazyFrame:
    """Subtract float counts, which have a minus sign; what only rounding leaves becomes 0.

    Integers stay in two rows, one of them negative: all later steps add up the rows of a pair.
    """
    if not log.numbers.count.is_float():
        return signed
    n, least = pl.col("n"), pl.col("n").max() * ROUNDING
    sums = signed.group_by(*log.slice, "gold", "pred").agg(
        pl.col(count_columns(log)).sum(), least=least
    )
    return sums.with_columns(n=pl.when(n > pl.col("least")).then(n).otherwise(0.0))

"""A sliced log → its pairs, whatever makes its slices: columns, sets of columns, windows."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.sets import counted_by_sets
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._counts.windows import counted_by_windows


def pairs(log: SlicedLog) -> pl.LazyFrame:
    """A row per slice and (gold, pred) that occurs, from one scan: see `counted`."""
    return counted_by_sets(log) if log.windows is None else counted_by_windows(log)

"""A sliced log → its pairs, for keys that are columns, sets of columns, or windows."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.coded import coded, pairs_and_classes
from polars_mcc._counts.seen import watched
from polars_mcc._counts.sets import counted_by_sets
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._counts.windows import counted_by_windows


def pairs(log: SlicedLog) -> pl.LazyFrame:
    """Count the rows of each slice and (gold, pred), in one scan: see `counted.counted`."""
    if log.windows is not None:
        return watched(log, counted_by_windows(log, log.windows))
    counts = coded(
        log,
        counted_by_sets(log),
        lambda scan: pairs_and_classes(log, scan, classes_suffice=False)[0],
    )
    return watched(log, counts)

"""A sliced log → its pairs, by a plan or by codes; or its counts of equal rows, of all models."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.coded import by_codes, equal_rows, pairs_and_classes
from polars_mcc._counts.counted import count_pairs_of_sets, weight_total
from polars_mcc._counts.label_lists import in_order
from polars_mcc._counts.seen import watched
from polars_mcc._counts.sliced import KEY, PRED, SlicedLog
from polars_mcc._counts.windows import count_pairs_of_windows

GOLD, N = "polars_mcc:gold", "polars_mcc:n"
HAS_NONE, TIMES = "polars_mcc:has_none", "polars_mcc:times"


def pairs(log: SlicedLog) -> pl.LazyFrame:
    """Count the rows of each slice and (gold, pred), in one scan: see `count_pairs`."""
    if log.windows is not None:
        return watched(log, count_pairs_of_windows(log, log.windows))
    counts = by_codes(
        log,
        count_pairs_of_sets(log),
        lambda scan: pairs_and_classes(log, scan, classes_suffice=False)[0],
    )
    return watched(log, counts)


def joint(log: SlicedLog) -> pl.LazyFrame:
    """Count equal rows: the same keys, gold and predictions of all models, so nothing is lost.

    `N` is the number of rows, or the sum of the weights.

    Keys keep their names, and predictions have the prefix `PRED`. In a log with weights, rows
    without a weight are counted separately: `HAS_NONE` marks them, and `TIMES` is the number of
    rows.
    """
    preds = [PRED + name for name in log.models]
    labels = {GOLD: pl.col("gold"), **{pred: pl.col(pred) for pred in preds}}
    if log.is_multilabel:
        labels = {name: in_order(label) for name, label in labels.items()}
    keys = {KEY + name: name for name in log.keys}
    alike = [pl.col(key).alias(name) for key, name in keys.items()]
    alike += [label.alias(name) for name, label in labels.items()]
    if log.weight_name is None:
        counts = log.frame.group_by(alike).agg(pl.len().cast(pl.Int64).alias(N))
        names = {**keys, "gold": GOLD, "n": N}
        return by_codes(log, counts, lambda scan: equal_rows(log, scan).rename(names))
    return log.frame.group_by(*alike, pl.col("weight").is_null().alias(HAS_NONE)).agg(
        weight_total(log).alias(N), pl.len().alias(TIMES)
    )

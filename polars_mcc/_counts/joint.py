"""A sliced log → counts of equal rows: the same keys, gold and predictions of all models.

Unlike pairs, which have one model, these counts also compare models. They lose nothing of the rows.
"""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.coded import coded, equal_rows
from polars_mcc._counts.counted import weight_total
from polars_mcc._counts.label_lists import in_order
from polars_mcc._counts.sliced import KEY, PRED, SlicedLog

GOLD, N = "polars_mcc:gold", "polars_mcc:n"
HAS_NONE, TIMES = "polars_mcc:has_none", "polars_mcc:times"


def joint(log: SlicedLog) -> pl.LazyFrame:
    """Count rows per combination of values that occurs: `N` is the rows, or the sum of weights.

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
        return coded(log, counts, lambda scan: equal_rows(log, scan).rename(names))
    return log.frame.group_by(*alike, pl.col("weight").is_null().alias(HAS_NONE)).agg(
        weight_total(log).alias(N), pl.len().alias(TIMES)
    )

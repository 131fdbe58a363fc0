"""pairs → classes: a row per slice and label, sufficient for every score."""

from __future__ import annotations

from typing import Literal, TypeAlias

import polars as pl

from polars_mcc._log import Log

Nulls: TypeAlias = Literal["drop", "label"]


def classes(log: Log, pairs: pl.LazyFrame, nulls: Nulls) -> pl.LazyFrame:
    """Add each pair to the two classes that it touches.

    `gold_n`, `pred_n`, `hit_n`: how often the label is gold, predicted, both. `null_n`:
    rows not scored, kept on whatever label they had so that no slice gets lost. All
    are wide (Int128, or Float64 for float weights): their products are exact.
    """
    gold, pred, n, none = pl.col("gold"), pl.col("pred"), pl.col("n"), pl.lit(0)
    scored_n = pl.when(is_scored(nulls)).then(n).otherwise(none)
    hit_n = pl.when(gold.eq_missing(pred)).then(scored_n).otherwise(none)
    parts = {
        "label": (gold, pred),
        "gold_n": (scored_n, none),
        "pred_n": (none, scored_n),
        "hit_n": (hit_n, none),
        "null_n": (n - scored_n, pl.col("n_null")),
    }
    counts = [name for name in parts if name != "label"]
    return (
        pairs.select(
            *log.slice,
            *(pl.concat_list(*sides).alias(name) for name, sides in parts.items()),
        )
        .explode(*parts)
        .group_by(*log.slice, "label")
        .agg(pl.col(*counts).cast(log.wide).sum())
    )


def is_scored(nulls: Nulls) -> pl.Expr:
    """Whether a pair counts, under the policy for labels that are null."""
    if nulls == "label":
        return pl.lit(value=True)
    return pl.col("gold").is_not_null() & pl.col("pred").is_not_null()

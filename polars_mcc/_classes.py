"""pairs → classes: a row per slice and label, sufficient for every score."""

from __future__ import annotations

from typing import Literal, TypeAlias

import polars as pl

from polars_mcc._log import Log

Nulls: TypeAlias = Literal["drop", "label"]


def classes(log: Log, pairs: pl.LazyFrame, nulls: Nulls) -> pl.LazyFrame:
    """Add each pair to the two classes that it touches.

    `gold_n`, `pred_n`, `hit_n`: how often the label is gold, predicted, both. `null_n`:
    rows not scored, kept on their gold label so that no slice gets lost. All are wide
    (Int128, or Float64 for float weights): their products are exact.
    """
    scored_n = pl.when(is_scored(nulls)).then("n").otherwise(0)
    is_gold = pl.col("side") == "gold"

    def add(count: str, where: pl.Expr) -> pl.Expr:
        return pl.when(where).then(count).otherwise(0).cast(log.wide).sum()

    return (
        pairs.select(
            *log.slice,
            "gold",
            "pred",
            scored_n=scored_n,
            hit_n=pl.when(pl.col("gold").eq_missing(pl.col("pred"))).then(scored_n).otherwise(0),
            left_n=pl.col("n") - scored_n,
            null_n="n_null",
        )
        .unpivot(
            ["gold", "pred"],
            index=[*log.slice, "scored_n", "hit_n", "left_n", "null_n"],
            variable_name="side",
            value_name="label",
        )
        .group_by(*log.slice, "label")
        .agg(
            gold_n=add("scored_n", is_gold),
            pred_n=add("scored_n", ~is_gold),
            hit_n=add("hit_n", is_gold),
            null_n=add("left_n", is_gold) + add("null_n", is_gold),
        )
    )


def is_scored(nulls: Nulls) -> pl.Expr:
    """Whether a pair counts, under the policy for labels that are null."""
    if nulls == "label":
        return pl.lit(value=True)
    return pl.col("gold").is_not_null() & pl.col("pred").is_not_null()

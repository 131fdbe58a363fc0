"""pairs → classes: a row per slice and label, sufficient for every score."""

from __future__ import annotations

from typing import Literal, TypeAlias

import polars as pl

from polars_mcc._log import Log

Nulls: TypeAlias = Literal["drop", "label"]


def classes(log: Log, pairs: pl.LazyFrame, nulls: Nulls) -> pl.LazyFrame:
    """Add each pair to the two classes that it touches.

    `gold_n`, `pred_n`, `hit_n`: how often the label is gold, predicted, both, in Int128
    units of the slice's `unit`. `null_n`: rows not scored, in the wide dtype, kept on their
    gold label so that no slice gets lost.
    """
    gold, pred = pl.col("gold"), pl.col("pred")
    scored_n = pl.when(is_scored(gold, pred, nulls)).then("n").otherwise(0)
    unit = log.numbers.unit(log.within_slice(scored_n.sum()))
    scored, hits = (
        log.numbers.in_units(pl.col(count), pl.col("unit")) for count in ("scored_n", "hit_n")
    )
    is_gold = pl.col("side") == "gold"

    def add(count: pl.Expr, where: pl.Expr) -> pl.Expr:
        return pl.when(where).then(count).otherwise(0).sum()

    return (
        pairs.with_columns(unit=unit)
        .select(
            *log.slice,
            gold,
            pred,
            "unit",
            scored_n=scored_n,
            hit_n=pl.when(gold.eq_missing(pred)).then(scored_n).otherwise(0),
            null_n=not_scored(log, nulls),
        )
        .unpivot(
            ["gold", "pred"],
            index=[*log.slice, "unit", "scored_n", "hit_n", "null_n"],
            variable_name="side",
            value_name="label",
        )
        .group_by(*log.slice, "label")
        .agg(
            gold_n=add(scored, is_gold),
            pred_n=add(scored, ~is_gold),
            hit_n=add(hits, is_gold),
            null_n=add(pl.col("null_n"), is_gold),
            unit=pl.col("unit").max(),
        )
    )


def is_scored(gold: pl.Expr, pred: pl.Expr, nulls: Nulls) -> pl.Expr:
    """Whether a pair of labels counts, under the policy for labels that are null."""
    if nulls == "label":
        return pl.lit(value=True)
    return gold.is_not_null() & pred.is_not_null()


def not_scored(log: Log, nulls: Nulls) -> pl.Expr:
    """How many rows of a pair are left out, for a null label or weight: a wide count."""
    is_left_out = ~is_scored(pl.col("gold"), pl.col("pred"), nulls)
    return pl.col("n_null").cast(log.numbers.wide) + pl.when(is_left_out).then("n").otherwise(0)

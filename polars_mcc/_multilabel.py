"""log → classes, where a row has several labels: gold and pred are lists.

A row is one label or another of a class, so classes are what they are where rows have one label:
how often a label is gold, is predicted, and is both. But they do not add up to the rows, which
are counted apart. Lists are taken for sets: a label that is there twice is there.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from polars_mcc._log import Log


def in_order(labels: pl.Expr) -> pl.Expr:
    """A list of labels as that of a set: each once, sorted."""
    return labels.list.unique().list.sort()


def classes(log: Log, lists: pl.LazyFrame, *, null_is_label: bool) -> pl.LazyFrame:
    """Reduce lists of labels to their classes, in one pass, a row of `lists` per row of each slice.

    `n` is how many rows one stands for, and `n_null` how many have no weight. A row whose list
    is null, or has a null in it, is scored if null is a label. The columns are those of
    `_classes.classes`, and `row_n`: rows that are scored, kept on the label null.
    """
    numbers, n = log.numbers, pl.col("n")
    gold, pred = (pl.col(side).cast(pl.List(log.labels)) for side in ("gold", "pred"))
    if null_is_label:
        missing = pl.lit([None], pl.List(log.labels))
        gold, pred = gold.fill_null(missing), pred.fill_null(missing)
        is_scored = pl.lit(value=True)
    else:
        is_scored = _is_complete(gold) & _is_complete(pred)
    scored_n = pl.when(is_scored).then(n).otherwise(0)
    wide_null_n = pl.col("n_null").cast(numbers.wide)
    rows = lists.select(
        *log.slice,
        gold=gold,
        pred=pred,
        is_scored=is_scored,
        scored_n=scored_n,
        null_n=wide_null_n + pl.when(is_scored).then(0).otherwise(n),
        unit=numbers.unit(log.within_slice(scored_n.sum())),
    ).cache()
    units = numbers.in_units(pl.col("scored_n"), pl.col("unit"))
    nothing = pl.lit(0, pl.Int128)
    zeros = dict.fromkeys(("row_n", "gold_n", "pred_n", "hit_n"), nothing)
    no_null = pl.lit(0, numbers.wide).alias("null_n")
    of_gold, of_pred = pl.col("gold"), pl.col("pred")
    sides: Mapping[str, tuple[pl.Expr, tuple[str, ...]]] = {
        "both": (of_gold.list.set_intersection(of_pred), ("gold_n", "pred_n", "hit_n")),
        "missed": (of_gold.list.set_difference(of_pred), ("gold_n",)),
        "added": (of_pred.list.set_difference(of_gold), ("pred_n",)),
    }
    of_rows = rows.select(
        *log.slice,
        "unit",
        pl.lit(None, log.labels).alias("label"),
        "null_n",
        **{**zeros, "row_n": units},
    )
    of_labels = [
        rows.filter("is_scored")
        .select(
            *log.slice,
            "unit",
            labels.alias("label"),
            no_null,
            **{**zeros, **dict.fromkeys(counts, units)},
        )
        .filter(pl.col("label").list.len() > 0)
        .explode("label")
        for labels, counts in sides.values()
    ]
    counts = pl.col(*zeros, "null_n")
    return (
        pl.concat([of_rows, *of_labels])
        .group_by(*log.slice, "label")
        .agg(counts.sum(), pl.col("unit").max())
    )


def _is_complete(labels: pl.Expr) -> pl.Expr:
    has_null = labels.list.contains(None, nulls_equal=True)
    return labels.is_not_null() & ~has_null.fill_null(value=False)

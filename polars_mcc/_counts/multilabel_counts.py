"""Rows or pairs → classes, where a row has several labels: gold and pred are lists.

A class is the same as with one label a row: how often a label is gold, predicted and both. But the
classes do not add up to the number of rows, so rows are counted separately. A list is a set: a
label that is in a list twice counts once.
"""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.exact_sums import Numbers, Product
from polars_mcc._counts.sliced_log import SlicedLog

OF_SETS = ("equal", "jaccard", "f1", "empty", "filled")
"""Numbers from 0 to 1 of the two sets of a row: whether they are equal, Jaccard's index and F1,
all without the rows in which both are empty; whether both are; and whether one is not."""
SCALE = 2**60
"""Such a number is an integer of so many parts: its sums depend on no order, nor on how rows are
counted together."""


def in_order(labels: pl.Expr) -> pl.Expr:
    """Sort a list of labels, and keep each label once."""
    return labels.list.unique().list.sort()


_BOTH, _MISSED, _ADDED, _ROW, _LEFT_OUT, _WAITING = range(6)
"""The kinds of counts: labels in both lists, in gold only, in pred only; scored and other rows; and
rows that are not scored for lack of a gold label."""


def classes_of_lists(log: SlicedLog, lists: pl.LazyFrame) -> pl.LazyFrame:
    """Reduce counts of rows with lists of labels to classes, in one pass.

    `n` is the rows that one row of counts stands for, and `n_null` the rows without a weight. A row
    with a null list, or with a null in a list, is scored only if null is a label. The result has
    the columns of `classes_of`, and `row_n` in the row of the null label. `row_n` is the number of
    scored rows.
    """
    gold, pred = (pl.col(side).cast(pl.List(log.label_dtype)) for side in ("gold", "pred"))
    if log.nulls == "label":
        missing = pl.lit([None], pl.List(log.label_dtype))
        gold, pred = gold.fill_null(missing), pred.fill_null(missing)
        is_scored = is_labelled = pl.lit(value=True)
    else:
        is_labelled = _is_complete(gold)
        is_scored = is_labelled & _is_complete(pred)
    n = pl.col("n")
    scored_n = pl.when(is_scored).then(n).otherwise(0)
    # The unit must fit the sum of labels too, and there may be more labels than rows.
    n_labels = pl.max_horizontal(1, pl.col("gold", "pred").list.len().cast(pl.Int64))
    unit = log.numbers.unit(log.within_slice((scored_n * n_labels).sum()))
    left_out = pl.col("n_null").cast(log.numbers.wide) + pl.when(is_scored).then(0).otherwise(n)
    counts = {"units": log.numbers.in_units(scored_n, unit), "left_out": left_out, "unit": unit}
    left = pl.when(is_labelled).then(_LEFT_OUT).otherwise(_WAITING)
    kinds = {"is_scored": is_scored, "kind": pl.when(is_scored).then(_ROW).otherwise(left)}
    rows = lists.select(*log.slice, gold=gold, pred=pred, **kinds, **counts).cache()
    label_lists = {
        _BOTH: pl.col("gold").list.set_intersection("pred"),
        _MISSED: pl.col("gold").list.set_difference("pred"),
        _ADDED: pl.col("pred").list.set_difference("gold"),
    }
    of_labels = [
        rows.filter("is_scored")
        .select(*log.slice, *counts, label=labels, side=pl.lit(side, pl.UInt8))
        .explode("label")
        for side, labels in label_lists.items()
    ]
    of_rows = rows.select(
        *log.slice,
        *counts,
        label=pl.lit(None, log.label_dtype),
        side=pl.col("kind").cast(pl.UInt8),
        **_of_sets(log.numbers, *(labels.list.len() for labels in label_lists.values())),
    )

    def count(*sides: int, of: str = "units") -> pl.Expr:
        return pl.when(pl.col("side").is_in(sides)).then(of).otherwise(0).sum()

    return (
        pl.concat([of_rows, *of_labels], how="diagonal")
        .group_by(*log.slice, "label")
        .agg(
            gold_n=count(_BOTH, _MISSED),
            pred_n=count(_BOTH, _ADDED),
            hit_n=count(_BOTH),
            row_n=count(_ROW),
            null_n=count(_ROW, _LEFT_OUT, _WAITING, of="left_out"),
            waiting_n=count(_WAITING, of="left_out"),
            unit=pl.col("unit").max(),
            **sums_of_sets(log.numbers),
        )
    )


def _of_sets(
    numbers: Numbers, both: pl.Expr, missed: pl.Expr, added: pl.Expr
) -> dict[str, pl.Expr]:
    """The columns of `OF_SETS` of a scored row, from how many labels are in both sets and in one.

    They are times the units of the row. 0/0 is null.
    """
    both, missed, added = (size.cast(pl.Int128) for size in (both, missed, added))
    either, one = both + missed + added, pl.lit(1, pl.Int128)
    parts = {
        "equal": ((either == both) & (either > 0), one),
        "jaccard": (both, either),
        "f1": (2 * both, both + either),
        "empty": (either == 0, one),
        "filled": (either > 0, one),
    }
    columns: dict[str, pl.Expr] = {}
    for name, (part, whole) in parts.items():
        share = part.cast(pl.Int128) * SCALE // whole
        scored = numbers.times(share, pl.when("is_scored").then("units"))
        columns |= scored.carried().columns(f"sets:{name}")
    return columns


def of_sets(numbers: Numbers) -> dict[str, Product]:
    """The numbers of `OF_SETS`, read from their columns."""
    any_product = numbers.product(pl.lit(0), pl.lit(0))
    names = (f"sets:{name}" for name in OF_SETS)
    return {name: any_product.from_columns(name, pl.col) for name in names}


def sums_of_sets(numbers: Numbers) -> dict[str, pl.Expr]:
    """The sums of these columns. Polars drops those that no metric needs from the plan."""
    sums = (product.sum().columns(name) for name, product in of_sets(numbers).items())
    return {name: sum_ for columns in sums for name, sum_ in columns.items()}


def _is_complete(labels: pl.Expr) -> pl.Expr:
    has_null = labels.list.contains(None, nulls_equal=True)
    return labels.is_not_null() & ~has_null.fill_null(value=False)

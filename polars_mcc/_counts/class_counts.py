"""Rows or pairs → classes: a row per slice and label, enough for nearly every metric.

A row may have several labels: gold and pred are then lists. A class is the same as with one label a
row: how often a label is gold, predicted and both. But the classes do not add up to the number of
rows, so rows are counted separately. A list is a set: a label that is in a list twice counts once.
"""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.exact_sums import Numbers, Product, count_where
from polars_mcc._counts.label_hashes import watched
from polars_mcc._counts.pair_counts import by_codes, pairs, pairs_and_classes
from polars_mcc._counts.parquet_files import Scan
from polars_mcc._counts.sliced_log import KEY, PRED, SlicedLog
from polars_mcc._frame.labels import are_scored


def classes_of(log: SlicedLog) -> pl.LazyFrame:
    """Reduce a log to its classes, in one pass over its rows.

    `gold_n`, `pred_n`, `hit_n`: how often the label is gold, predicted and both, in units of the
    slice, as Int128. `unit` is the root of this unit, 1 for integers. `null_n`: the rows not
    scored, in the wide dtype. Such rows keep a label here, so that a slice without scored rows is
    not lost.
    """
    is_plain = log.weight_name is None and log.sets is None and log.windows is None
    if log.waiting and not log.is_multilabel:  # Pairs tell for which predictions a label is known.
        is_plain = False
    if is_plain and log.is_multilabel:
        counts = {"n": pl.lit(1, pl.Int64), "n_null": pl.lit(0, pl.Int64)}
        rows = log.rows.select(*log.slice, "gold", "pred", **counts)
        return watched(log, classes_of_lists(log, rows))
    # Weights need pairs first: their unit depends on the sum of a slice. Booleans have only four
    # pairs, as many as two classes have sides (gold or pred).
    is_one_boolean = log.label_dtype == pl.Boolean and not log.has_models
    if is_one_boolean or log.is_of_scores or not is_plain:
        return classes_of_pairs(log, pairs(log))
    rows = _from_rows(log)
    if log.with_text is None and log.label_dtype != pl.String:
        # Integers and Enums cost a plan no more than codes do, which load PyArrow.
        return watched(log, rows)

    def from_codes(scan: Scan) -> pl.DataFrame:
        """Count pairs where they are few, and classes where pairs are many; add both up."""
        few, many = pairs_and_classes(log, scan, classes_suffice=True)
        if few.is_empty():
            return many
        sides = pl.concat([classes_of_pairs(log, few.lazy()), many.lazy()], how="diagonal_relaxed")
        sums = sides.group_by(*log.slice, "label").agg(pl.col("unit").max(), pl.col("^.*_n$").sum())
        return sums.collect()

    return watched(log, by_codes(log, rows, from_codes))


def _from_rows(log: SlicedLog) -> pl.LazyFrame:
    """Add each row to the class of its gold label, and each miss to the class of its pred too.

    A hit is one row to group and a miss is two, but there are far fewer groups than with pairs.
    All models share the gold labels, so each gold label is grouped once, with a count per model.
    There is only one group by: for a second one Polars would keep the rows of the log in memory.

    A row with gold a and pred b becomes two rows: (label a, missed by no model), which has the row
    and its hits, and (label b, missed by the model at this place).
    """
    keys = [KEY + key for key in log.keys]
    labels = pl.col("gold", *(PRED + name for name in log.models)).cast(log.label_dtype)
    missed_by = pl.col("missed_by")
    are_equal = pl.Expr.eq_missing if log.nulls == "label" else pl.Expr.eq
    are_hits = {
        f"hit:{name}": are_equal(pl.col("gold"), pl.col(PRED + name)) for name in log.models
    }
    rows = log.frame.select(*keys, labels).with_columns(**are_hits).cache()
    of_gold = rows.select(*keys, *are_hits, label="gold", missed_by=pl.lit(None, pl.UInt32))
    of_misses = [
        rows.filter(~pl.col(f"hit:{name}")).select(
            *keys, label=PRED + name, missed_by=pl.lit(place, pl.UInt32)
        )
        for place, name in enumerate(log.models)
    ]
    sums = {"row_n": count_where(missed_by.is_null())}
    for place, name in enumerate(log.models):
        hit = pl.col(f"hit:{name}")
        sums[f"gold_n:{name}"] = count_where(hit.is_not_null())
        sums[f"hit_n:{name}"] = count_where(hit)
        sums[f"missed_n:{name}"] = count_where(missed_by == place)
    sides = pl.concat([of_gold, *of_misses], how="diagonal")
    counted = sides.group_by(*keys, "label").agg(**sums)
    if log.has_models:
        counted = counted.cache()

    row_n, of_models = pl.col("row_n").cast(pl.Int128), []
    for name, model_slice in log.each_model():
        gold_n, hit_n, missed_n = (
            pl.col(f"{side}_n:{name}").cast(pl.Int128) for side in ("gold", "hit", "missed")
        )
        counts = {"gold_n": gold_n, "pred_n": missed_n + hit_n, "hit_n": hit_n}
        counts |= {"null_n": row_n - gold_n, "unit": pl.lit(1.0)}
        of_models.append(counted.select(*model_slice, "label", **counts))
    return pl.concat(of_models)


def classes_of_pairs(log: SlicedLog, pairs: pl.LazyFrame) -> pl.LazyFrame:
    """Add each pair to the classes of its two labels."""
    if log.is_multilabel:
        return classes_of_lists(log, pairs)
    is_hit, unit = pl.col("gold").eq_missing(pl.col("pred")), pl.col("unit")
    labels = ["gold", "pred"]
    if log.is_of_scores:  # A score is no label.
        is_hit, labels = pl.lit(value=False), ["gold"]
    scored_n = pl.when(is_scored(log)).then("n").otherwise(0)
    counts = {
        "unit": log.numbers.unit(log.within_slice(scored_n.sum())),
        "scored_n": scored_n,
        "hit_n": pl.when(is_hit).then(scored_n).otherwise(0),
        "null_n": not_scored(log),
    }
    # Not a union of both sides: it would repeat all previous steps in the plan.
    sides = pairs.select(*log.slice, *labels, **counts).unpivot(
        labels, index=[*log.slice, *counts], variable_name="side", value_name="label"
    )
    scored, hits = (log.numbers.in_units(pl.col(n), unit) for n in ("scored_n", "hit_n"))
    is_gold = pl.col("side") == "gold"
    return sides.group_by(*log.slice, "label").agg(
        gold_n=pl.when(is_gold).then(scored).otherwise(0).sum(),
        pred_n=pl.when(is_gold).then(0).otherwise(scored).sum(),
        hit_n=pl.when(is_gold).then(hits).otherwise(0).sum(),
        null_n=pl.when(is_gold).then("null_n").otherwise(0).sum(),
        unit=unit.max(),
    )


def with_margins(log: SlicedLog, pairs: pl.LazyFrame, classes: pl.LazyFrame) -> pl.LazyFrame:
    """Add to each pair its `units`, and how often each of its two labels is gold and predicted.

    `gold_t` and `gold_p` belong to the gold label, `pred_t` and `pred_p` to the predicted label.
    """
    for side, shared in (("gold", ["unit"]), ("pred", [])):
        margins = {side: "label", f"{side}_t": "gold_n", f"{side}_p": "pred_n"}
        of_class = classes.select(*log.slice, *shared, **margins)
        pairs = pairs.join(of_class, on=[*log.slice, side], how="left", nulls_equal=True)
    return pairs.with_columns(units=log.numbers.in_units(pl.col("n"), pl.col("unit")))


def is_scored(log: SlicedLog) -> pl.Expr:
    """Whether a pair is scored, by the log's rule for null labels."""
    return are_scored(pl.col("gold"), pl.col("pred"), log.nulls)


def not_scored(log: SlicedLog) -> pl.Expr:
    """Count the rows of a pair that are left out for a null label or weight, in the wide dtype."""
    left_out = pl.when(~is_scored(log)).then("n").otherwise(0)
    return pl.col("n_null").cast(log.numbers.wide) + left_out


def unscored_sums(log: SlicedLog) -> dict[str, pl.Expr]:
    """Count the rows of a slice that are not scored, and the rows that wait. Pairs tell both."""
    left_out = not_scored(log)
    waiting = pl.when(pl.col("gold").is_null()).then(left_out).otherwise(0)
    return log.unscored_as(left_out.sum(), waiting.sum())


OF_SETS = ("equal", "jaccard", "f1", "empty", "filled")
"""Numbers from 0 to 1 of the two sets of a row: whether they are equal, Jaccard's index and F1,
all without the rows in which both are empty; whether both are; and whether one is not."""
SCALE = 2**60
"""Such a number is an integer of so many parts: its sums depend on no order, nor on how rows are
counted together."""

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
    """The sums of these columns. Polars leaves out the sums that no metric needs."""
    sums = (product.sum().columns(name) for name, product in of_sets(numbers).items())
    return {name: sum_ for columns in sums for name, sum_ in columns.items()}


def _is_complete(labels: pl.Expr) -> pl.Expr:
    has_null = labels.list.contains(None, nulls_equal=True)
    return labels.is_not_null() & ~has_null.fill_null(value=False)

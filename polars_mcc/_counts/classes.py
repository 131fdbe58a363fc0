"""Rows or pairs → classes: a row per slice and label, sufficient for nearly every score."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from polars_mcc._counts import identity, label_lists
from polars_mcc._counts.pairs import pairs
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._log.labels import are_scored


def classes(log: SlicedLog, *, named: bool) -> pl.LazyFrame:
    """Reduce a log to its classes, in one pass over its rows.

    `gold_n`, `pred_n`, `hit_n`: how often the label is gold, predicted, both, in Int128
    units of the slice's `unit`. `null_n`: rows not scored, in the wide dtype, kept on a
    label so that no slice gets lost. `label` is the label if `named`, else its identity.
    """
    is_plain = log.weight_name is None and log.sets is None and log.windows is None
    if is_plain and log.is_multilabel:
        rows = log.rows.select(*log.slice, "gold", "pred")
        return label_lists.classes(log, rows, are_counts=False)
    # The unit of weights is known once their pairs are. Of Booleans there are as few pairs as
    # classes have sides.
    if not is_plain or log.label_dtype == pl.Boolean:
        return of_pairs(log, pairs(log))
    return _of_rows(log, named=named)


def _of_rows(log: SlicedLog, *, named: bool) -> pl.LazyFrame:
    """Add each row to the class of its gold label, and each miss to the class of its pred too.

    So a hit is one row to group, a miss two, and there are far fewer groups than of pairs.
    """
    gold, hit = pl.col("gold").cast(log.label_dtype), pl.col("hit")
    models = [(pred.cast(log.label_dtype), model_slice) for pred, model_slice in log.each_model()]
    hits = {
        f"hit:{place}": gold.eq_missing(pred) if log.nulls == "label" else gold == pred
        for place, (pred, _) in enumerate(models)
    }
    rows = log.frame.with_columns(**hits).cache()

    def sides(pred: pl.Expr, model_slice: list[pl.Expr], hit: pl.Expr) -> Iterator[pl.LazyFrame]:
        gold_label, pred_label = (
            side if named else identity.of_label(side, log.label_dtype) for side in (gold, pred)
        )
        if log.nulls == "drop":  # A row that is not scored is one of the class null.
            gold_label = pl.when(hit.is_not_null()).then(gold_label)
        yield rows.select(*model_slice, label=gold_label, hit=hit.fill_null(value=False))
        missed = pl.lit(None, pl.Boolean)
        yield rows.filter(~hit).select(*model_slice, label=pred_label, hit=missed)

    every_side = pl.concat(
        side
        for (pred, model_slice), hit in zip(models, hits, strict=True)
        for side in sides(pred, model_slice, pl.col(hit))
    )
    gold_n, missed_n, hit_n = (pl.col(count) for count in ("gold_n", "missed_n", "hit_n"))
    is_scored = pl.col("label").is_not_null() if log.nulls == "drop" else pl.lit(value=True)
    sums = {"gold_n": hit.is_not_null(), "missed_n": hit.is_null(), "hit_n": hit}
    # A sum of Booleans has 32 bits. A sum of bytes has 64, and bytes take little memory.
    counts = {name: where.cast(pl.UInt8).sum() for name, where in sums.items()}
    return _per_class(log, every_side, named=named, **counts).select(
        *log.slice,
        "label",
        gold_n=pl.when(is_scored).then(gold_n).otherwise(0).cast(pl.Int128),
        pred_n=(missed_n + hit_n).cast(pl.Int128),
        hit_n=hit_n.cast(pl.Int128),
        null_n=pl.when(is_scored).then(0).otherwise(gold_n).cast(pl.Int128),
        unit=pl.lit(1.0),
    )


def _per_class(
    log: SlicedLog, sides: pl.LazyFrame, *, named: bool, **sums: pl.Expr
) -> pl.LazyFrame:
    """Aggregate by slice and label: by their columns, or by one integer that stands for them.

    One integer is up to twice as fast. But then the columns are to be found again, as the
    maximum of values that are all the same; that is fast for numbers, and slow for text.
    """
    columns = sides.select(*log.slice, "label").collect_schema()
    if named or not log.slice or not all(map(identity.is_cheap, columns.dtypes())):
        return sides.group_by(columns.names()).agg(**sums)
    whole = identity.of_class(log.slice, "label").alias("class")
    return sides.group_by(whole).agg(pl.col(columns.names()).max(), **sums)


def of_pairs(log: SlicedLog, pairs: pl.LazyFrame) -> pl.LazyFrame:
    """Add each pair to the two classes that it touches."""
    if log.is_multilabel:
        return label_lists.classes(log, pairs, are_counts=True)
    gold, pred, unit = pl.col("gold"), pl.col("pred"), pl.col("unit")
    scored_n = pl.when(is_scored(log)).then("n").otherwise(0)
    counts = {
        "unit": log.numbers.unit(log.within_slice(scored_n.sum())),
        "scored_n": scored_n,
        "hit_n": pl.when(gold.eq_missing(pred)).then(scored_n).otherwise(0),
        "null_n": not_scored(log),
    }
    # A union of both sides would have all that comes before it twice in the plan.
    sides = pairs.select(*log.slice, gold, pred, **counts).unpivot(
        ["gold", "pred"], index=[*log.slice, *counts], variable_name="side", value_name="label"
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


def beside_class(
    log: SlicedLog, pairs: pl.LazyFrame, side: str, classes: pl.LazyFrame, *columns: pl.Expr | str
) -> pl.LazyFrame:
    """Add to each pair these columns of the class of its label on one side."""
    of_label, of_class = (identity.of_class(log.slice, name) for name in (side, "label"))
    return pairs.with_columns(of_label.alias("class")).join(
        classes.select(*columns, of_class.alias("class")), on="class", how="left", nulls_equal=True
    )


def with_margins(log: SlicedLog, pairs: pl.LazyFrame, classes: pl.LazyFrame) -> pl.LazyFrame:
    """Add to each pair its `units`, and how often each of its labels is gold, and predicted.

    `gold_t` and `gold_p` belong to the gold label, `pred_t` and `pred_p` to the predicted label.
    """

    def margins(side: str) -> list[pl.Expr]:
        return [pl.col("gold_n").alias(f"{side}_t"), pl.col("pred_n").alias(f"{side}_p")]

    of_gold = beside_class(log, pairs, "gold", classes, *margins("gold"), "unit")
    units = log.numbers.in_units(pl.col("n"), pl.col("unit"))
    return beside_class(log, of_gold, "pred", classes, *margins("pred")).with_columns(units=units)


def is_scored(log: SlicedLog) -> pl.Expr:
    """Whether a pair of labels counts, under the policy for labels that are null."""
    return are_scored(pl.col("gold"), pl.col("pred"), log.nulls)


def not_scored(log: SlicedLog) -> pl.Expr:
    """How many rows of a pair are left out, for a null label or weight: a wide count."""
    left_out = pl.when(~is_scored(log)).then("n").otherwise(0)
    return pl.col("n_null").cast(log.numbers.wide) + left_out

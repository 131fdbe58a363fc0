"""Rows with scores: a row needs a label and a score, or a score of each class."""

from __future__ import annotations

import polars as pl
import polars.selectors as cs

from polars_mcc._counts.sliced import CLASS, PRED, OfRow
from polars_mcc._log.columns import Columns
from polars_mcc._log.described import Meaning
from polars_mcc._log.labels import as_compared
from polars_mcc._log.plan_errors import Failure, told, unless

NEEDED = "needed:"
"""Begins the columns of the labels or scores that a row needs besides."""


def check_both(meaning: Meaning) -> None:
    """Raise a ValueError unless each model has both a predicted label and a score."""
    assert meaning.preds is not None and meaning.scores is not None  # noqa: S101, PT018 - for types
    preds, scores = meaning.preds.names, meaning.scores.names
    scores = ("the scores of its classes",) if meaning.score_labels else scores
    if len(preds) != len(scores):
        listed = " and ".join(", ".join(map(repr, names)) for names in (preds, scores))
        msg = (
            "metrics of labels and of scores in one call need a score for each prediction, but "
            f"there are {listed}; ask for each kind alone"
        )
        raise ValueError(msg)
    reason = "a row is scored by labels and by scores if it has both"
    meaning.check_without("by", reason, "nulls")


def with_both(
    frame: pl.LazyFrame, models: Columns, needed: Columns, *, is_per_class: bool
) -> pl.LazyFrame:
    """Drop the label or score of a row whose other one is missing.

    A score per class is there if all of them are.
    """
    are_there = [
        as_compared(pl.col(NEEDED + name), name, dtype, dtype).is_not_null()  # NaN is missing.
        for name, dtype in needed.dtypes.items()
    ]
    if is_per_class:
        are_there = [pl.all_horizontal(are_there)] * len(models.names)
    labels = {
        PRED + model: pl.when(is_there).then(PRED + model)
        for model, is_there in zip(models.names, are_there, strict=True)
    }
    return frame.with_columns(**labels).drop(cs.starts_with(NEEDED))


def of_classes(
    meaning: Meaning, frame: pl.LazyFrame, models: Columns, of_row: OfRow | None, *, per_class: bool
) -> pl.LazyFrame:
    """One score per row in place of a score per class, or a row per class.

    A row is scored if it has all scores. The query fails if its gold label has no score.
    """
    if of_row is None and not per_class:
        msg = (
            "this log has a score per class, and here one score is needed: ask for one class, as "
            f"in log(score={models.names[0]!r}, positive={meaning.score_labels[0]!r})"
        )
        raise ValueError(msg)
    names, gold = [PRED + name for name in models.names], pl.col("gold")
    scores = [pl.col(name).cast(pl.Float64) for name in names]
    are_gold = [gold == pl.lit(label, meaning.label_dtype) for label in meaning.score_labels]
    message = told(
        "gold label ",
        gold,
        f" has no score: the scores are of {', '.join(map(repr, meaning.score_labels))}; add its "
        "score, or filter the rows with this label",
    )
    known = unless(gold, Failure(~pl.any_horizontal(are_gold), message))
    is_whole = pl.all_horizontal(pl.col("gold", *names).is_not_null())
    frame = frame.with_columns(*(pl.when(is_whole).then(one) for one in scores), gold=known)
    score = f"{PRED}score"
    if of_row is not None:
        is_positive, one = of_row([*zip(are_gold, map(pl.col, names), strict=True)])
        others = [name for name in names if name != score]
        return frame.with_columns(one.alias(score), gold=is_positive).drop(others)
    # The column of a class may be called `score` too.
    each = frame.unpivot(names, index=~cs.by_name(names), variable_name=CLASS)
    each = each.rename({"value": score})
    is_positive = pl.any_horizontal(
        (pl.col(CLASS) == name) & is_gold for name, is_gold in zip(names, are_gold, strict=True)
    )
    return each.with_columns(pl.col(CLASS).cast(pl.Enum(names)), gold=is_positive)

"""What makes every score of a log 0 or 0/0: labels that never meet, one class, no positive row."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_mcc._counts.cut import cut
from polars_mcc._counts.sliced import PRED
from polars_mcc._log.columns import as_expr
from polars_mcc._log.described import Described
from polars_mcc._log.keys import IntoKey
from polars_mcc._log.messages import Words, of_error, quoted, said

_FIRST = 1000  # rows that are looked at first: in most logs they are enough
_SHOWN = 10  # labels that a sentence shows, at most


class PredictionLogWarning(UserWarning):
    """Every score of a log is 0 or 0/0, or a key makes no useful slices."""

    __module__ = "polars_mcc"  # where users find it


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collect the sentences of such warnings, instead of printing them."""
    sentences: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PredictionLogWarning)
        yield sentences
    for one in caught:
        if isinstance(one.message, PredictionLogWarning):
            sentences.append(of_error(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


@dataclass(frozen=True)
class Sides:
    """The gold and the predicted labels of a log."""

    log: Described[Any]
    frame: pl.LazyFrame
    gold: pl.Expr
    """The gold labels of a row."""
    preds: Mapping[str, pl.Expr]
    """The predicted labels of a row, by model; empty for a log of scores."""

    @classmethod
    def of(cls, log: Described[Any]) -> Sides:
        of_score = log.meaning.preds is None
        labelled = log(pred=log.meaning.gold.expr, score=None) if of_score else log
        sliced = cut(labelled, [], taken=[], lists=True)
        dtype = pl.List(sliced.label_dtype) if sliced.is_multilabel else sliced.label_dtype
        models = () if of_score else sliced.models
        preds = {name: pl.col(PRED + name).cast(dtype) for name in models}
        return cls(log, sliced.frame, pl.col("gold").cast(dtype), preds)

    def meet(self, pred: pl.Expr) -> pl.Expr:
        """Whether a row has a label that is gold and predicted."""
        if not self.log.meaning.is_multilabel:
            return self.gold == pred
        return self.gold.list.set_intersection(pred).list.drop_nulls().list.len() > 0

    def has(self, side: pl.Expr, label: pl.Expr) -> pl.Expr:
        """Whether a row has a label on one side."""
        return side.list.contains(label) if self.log.meaning.is_multilabel else side == label

    def labels(self, *sides: pl.Expr) -> pl.Series:
        """The labels that occur on some sides, sorted."""
        each = (side.explode() if self.log.meaning.is_multilabel else side for side in sides)
        found = pl.concat(self.frame.select(side.alias("label")) for side in each)
        return found.unique().drop_nulls().sort("label").collect()["label"]

    def is_seen(self, condition: pl.Expr) -> bool:
        """Whether a condition is true for some row. Rows are read up to the first one."""
        if self.frame.head(_FIRST).select(condition.any()).collect().item():
            return True
        return self.frame.filter(condition).head(1).collect().height > 0


def remarks(sides: Sides, *, of_two_classes: bool = True) -> Iterator[str]:
    """Sentences on a log whose scores are all 0 or 0/0. Most logs need a look at a few rows.

    `of_two_classes`: whether the scores need two gold classes, as MCC does.
    """
    yield from never_met(sides)
    without = [*no_positive(sides)]
    yield from without
    if of_two_classes and not without:
        yield from one_class(sides)


def never_met(sides: Sides) -> Iterator[str]:
    """A sentence for each model whose predicted labels are never gold labels."""
    gold_name = sides.log.meaning.gold.name
    if sides.log.meaning.label_dtype == pl.Boolean:  # It has no other spelling.
        return
    for name, pred in sides.preds.items():
        if sides.is_seen(sides.meet(pred)):
            continue
        gold_labels, pred_labels = sides.labels(sides.gold), sides.labels(pred)
        is_shared = pl.concat([gold_labels, pred_labels]).is_duplicated().any()
        if is_shared or gold_labels.is_empty() or pred_labels.is_empty():
            continue
        yield (
            f"no label of '{name}' is a label of '{gold_name}', so no row is a hit: '{gold_name}' "
            f"has {_shown(gold_labels)}; '{name}' has {_shown(pred_labels)}"
            f"{_nearest(gold_labels, pred_labels)}"
        )


def no_positive(sides: Sides) -> Iterator[str]:
    """A sentence if no row has the positive label that the log was described with."""
    meaning = sides.log.meaning
    if meaning.positive is None:
        return
    present = (sides.has(one, meaning.positive) for one in (sides.gold, *sides.preds.values()))
    if not any(map(sides.is_seen, present)):
        label, columns = pl.select(meaning.positive).item(), quoted(meaning.label_columns)
        labels = labels_of(sides)
        told = f"; the labels are {labels}" if labels else ""
        yield f"no scored row has the positive label {label!r} in {columns}{told}"


def one_class(sides: Sides) -> Iterator[str]:
    """A sentence if all rows have one gold label."""
    if sides.log.meaning.is_multilabel:
        return
    preds = [pred.is_not_null() for pred in sides.preds.values()]
    is_scored = pl.all_horizontal(sides.gold.is_not_null(), pl.any_horizontal(preds or True))
    known = sides.frame.filter(is_scored).select(sides.gold).head(1).collect().to_series()
    label = next(iter(known), None)
    is_other = sides.gold != pl.lit(label, sides.log.meaning.label_dtype)
    if label is None or sides.is_seen(is_scored & is_other):
        return
    name = sides.log.meaning.gold.name
    yield f"all labels of '{name}' are {label!r}: with one gold class, MCC and its kin are 0/0"


def key_is_gold(log: Described[Any], keys: Sequence[IntoKey]) -> Iterator[str]:
    """A sentence if a key is the gold label itself. No data are read."""
    gold = log.meaning.gold.expr
    for key in keys:
        if not isinstance(key, (str, pl.Expr)):
            continue
        if as_expr(key).meta.undo_aliases().meta.eq(gold.meta.undo_aliases()):
            yield said(
                f"key '{log.meaning.gold.name}' is the gold label, so each slice has one gold "
                "class, and MCC and its kin are 0/0; for the score of each class, use ",
                Words("classes()", "classes"),
            )


def labels_of(sides: Sides) -> str:
    """The labels that occur in a log, for a message."""
    return _shown(sides.labels(sides.gold, *sides.preds.values()))


def _shown(labels: pl.Series) -> str:
    more = ["…"] if len(labels) > _SHOWN else []
    return ", ".join([*map(repr, labels.head(_SHOWN)), *more])


def _nearest(gold: pl.Series, pred: pl.Series) -> str:
    """The predicted label whose spelling is nearest to a gold label."""
    import difflib  # noqa: PLC0415 - for an error alone

    spelled = {str(label).strip().lower(): label for label in gold}
    for label in pred.head(_SHOWN):
        if near := difflib.get_close_matches(str(label).strip().lower(), spelled, n=1):
            return f"; did you mean {spelled[near[0]]!r} by {label!r}?"
    return ""

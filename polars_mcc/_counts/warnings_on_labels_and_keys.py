"""What makes scores wrong, 0 or 0/0: several spellings, labels that never meet, one class."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import polars as pl

from polars_mcc._base.errors_and_warnings import warn_of
from polars_mcc._base.message_parts import Words, quoted, said
from polars_mcc._base.values_as_text_or_markdown import rows_in_words
from polars_mcc._counts.label_hashes import SEEN, Seen, hash_of, hashed
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._counts.sliced_log import PRED
from polars_mcc._counts.warnings_on_missing_labels import labelled_unevenly, none_labelled
from polars_mcc._frame.columns import as_expr
from polars_mcc._frame.labels import is_text, listed
from polars_mcc._frame.log_options import Described
from polars_mcc._keys.any_key import IntoKey

_FIRST, _NEXT = 1000, 2**16  # rows that are looked at first, and next
_MAX_COMPARED = 10_000  # labels that are compared with each other, at most
_TRIED = 10  # labels whose nearest gold label is looked for, at most
_SHOWN = 10  # groups that a sentence shows, and texts of a group, at most
_POWERS = re.compile("(?<=\\d)(?=[\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089])")
_SPACES = re.compile(r"(?<!\d) | (?!\d)")

Rows: TypeAlias = Mapping[str, float]
"""The rows of each text."""


@dataclass(frozen=True)
class LogLabels:
    """The gold and the predicted labels of a log."""

    log: Described[Any]
    frame: pl.LazyFrame
    gold: pl.Expr
    """The gold labels of a row."""
    preds: Mapping[str, pl.Expr]
    """The predicted labels of a row, by model; empty for a log of scores."""
    apart: LogLabels | None = None
    """Labels that come later, and predictions, in rows of their own: to join them takes long."""

    @classmethod
    def of(cls, log: Described[Any], apart: Described[Any] | None = None) -> LogLabels:
        """Take the labels of a log; if they come later, also of a log that is not joined."""
        of_score = log.roles.preds is None
        labelled = log(pred=log.roles.gold.expr, score=None) if of_score else log
        sliced = cut(sides_of(labelled, several=True), [], taken=[])
        models = () if of_score else sliced.models
        preds = {name: pl.col(PRED + name).cast(sliced.pred_dtype) for name in models}
        unjoined = None if apart is None else cls.of(apart)
        return cls(log, sliced.frame, pl.col("gold").cast(sliced.pred_dtype), preds, unjoined)

    @cached_property
    def first(self) -> pl.DataFrame:
        """The first rows, which are enough in most logs."""
        return self.frame.head(_FIRST).collect()

    @property
    def each(self) -> Sequence[pl.Expr]:
        """The gold labels, and the predicted labels of each model."""
        return (self.gold, *self.preds.values())

    @cached_property
    def in_words(self) -> str:
        """The labels that occur, for a message."""
        return listed(self.labels(*self.each))

    def has(self, side: pl.Expr, label: pl.Expr) -> pl.Expr:
        """Whether a row has a label on one side."""
        return side.list.contains(label) if self.log.roles.is_multilabel else side == label

    def labels(self, *sides: pl.Expr, of: pl.Series | None = None) -> pl.Series:
        """The labels that occur on some sides, sorted; `of`: only those with these hashes."""
        plain = (side.explode() if self.log.roles.is_multilabel else side for side in sides)
        labels = pl.concat(self.frame.select(label=side) for side in plain)
        if of is not None:
            labels = labels.filter(hash_of(pl.col("label").cast(pl.String)).is_in(of.implode()))
        return labels.unique().drop_nulls().sort("label").collect()["label"]

    def texts(self, hashes: pl.Series, *sides: pl.Expr) -> list[str]:
        """The labels on some sides that have these hashes. All rows are read for some alone."""
        log, texts = self.apart or self, pl.Series(dtype=pl.String)
        for rows in (log.first.lazy(), log.frame.head(_NEXT), log.frame):
            missing = hashes.filter(~hashes.is_in(hashed(texts).implode()))
            if missing.is_empty():
                break
            labels = replace(log, frame=rows).labels(*sides, of=missing)
            texts.extend(labels.cast(pl.String))
        return texts.to_list()

    def rows_of(self, labels: Sequence[str]) -> list[dict[str, float]]:
        """How many rows have each of these labels, on each side."""
        of_sides = (self._counted(labels, label=side) for side in self.each)
        return [dict(counts.iter_rows()) for counts in pl.collect_all(of_sides)]

    def pairs_of(self, labels: Sequence[str], pred: pl.Expr) -> dict[tuple[str, str], float]:
        """How many rows have each pair of a gold and a predicted label."""
        counts = self._counted(labels, gold=self.gold, pred=pred).collect()
        return {(gold, label): n for gold, label, n in counts.iter_rows()}

    def _counted(self, labels: Sequence[str], **sides: pl.Expr) -> pl.LazyFrame:
        """Count rows by their labels on some sides: these labels, and each label of a list."""
        weight = pl.col("weight") if self.log.roles.is_frequency else pl.lit(1)
        rows = self.frame.select(n=weight, **sides)
        if self.log.roles.is_multilabel:
            for side in sides:
                rows = rows.explode(side)
        text = pl.col(*sides).cast(pl.String)
        rows = rows.with_columns(text).filter(pl.all_horizontal(pl.col(*sides).is_in(labels)))
        return rows.group_by(*sides).agg(pl.sum("n")).sort(*sides)

    def as_pred(self, model: str | None, pred: object) -> str:
        """A prediction as text, also if `pred` is its hash."""
        side = self.preds[model or next(iter(self.preds))]
        if not isinstance(pred, str) and is_text(self.log.roles.label_dtype):
            pred = next(iter(self.texts(pl.Series([pred], dtype=pl.UInt64), side)), None)
        return repr(pred) if isinstance(pred, str) else str(pred)

    def is_seen(self, condition: pl.Expr) -> bool:
        """Whether a condition is true for some row. Reading stops at the first such row."""
        if self.first.select(condition.any()).item():
            return True
        return self.frame.filter(condition).head(1).collect().height > 0


def remarks(
    sides: LogLabels, seen: Seen, *, of_two_classes: bool = True, is_sound: bool = False
) -> Iterator[str]:
    """Sentences on labels that make scores wrong, 0 or 0/0. Most logs need a look at a few rows.

    Args:
        sides: The labels of the log.
        seen: The labels that were counted; without them, the first rows are looked at.
        of_two_classes: Whether the scores need two gold classes, as MCC does.
        is_sound: Whether scores that are 0 or 0/0 were refused already.
    """
    yield from missing_unevenly(sides, seen.labelled, sides.log)
    yield from named_in_vain(sides, seen)
    if is_sound or seen.is_sound or (sides.preds and sides.preds.keys() <= seen.sound):
        yield from spelled_alike(sides, seen)
        return
    yield from no_shared_label(sides)
    yield from spelled_alike(sides, seen)
    without = [*no_positive(sides)]
    yield from without
    if of_two_classes and not without:
        yield from one_class(sides)


def named_in_vain(sides: LogLabels, seen: Seen) -> Iterator[str]:
    """A sentence for each table of a metric, such as costs, that names labels that no row has.

    Then the first rows are read, for labels to compare with.
    """
    if (hashes := seen.hashes) is None:
        return
    for metric, labels in seen.named.items():
        known = pl.Series([label for label in labels if label is not None])
        absent = known.filter(~hashed(known).is_in(hashes.implode()))
        if len(absent):
            known = replace(sides, frame=sides.first.lazy()).labels(*sides.each)
            yield (
                f"no row has labels that the table of '{metric}' names, so they count for nothing: "
                f"{listed(absent)}; the log has labels such as {listed(known)}"
            )


def missing_unevenly(
    sides: LogLabels, labelled: pl.DataFrame | None, log: Described[Any]
) -> Iterator[str]:
    """Sentences on labels that are missing for some predictions more often than for others.

    The advice is to reweight, so labels that are reweighted, or cannot be, are not told. `sides`
    may be of the counts of the log.
    """
    if labelled is not None and log.roles.nulls == "drop" and log.roles.is_frequency:
        yield from none_labelled(labelled, log.roles)
        yield from labelled_unevenly(labelled, log, sides.as_pred)


def warner(log: Described[Any], *, of_two_classes: bool) -> Callable[[Callable[[], Seen]], None]:
    """A function that warns about the labels of a lazy log, for when its answer is collected.

    It takes a function that gives the labels that were counted. It does nothing for another log,
    and inside of `with seen()`, after which the labels are looked at anyway.
    """
    if SEEN.get() is not None or not isinstance(log.frame, pl.LazyFrame):
        return lambda _: None
    return lambda seen: warn_of(remarks(LogLabels.of(log), seen(), of_two_classes=of_two_classes))


def no_shared_label(sides: LogLabels) -> Iterator[str]:
    """A sentence for each model whose predicted labels are never gold labels."""
    roles, gold, gold_name = sides.log.roles, sides.gold, sides.log.roles.gold.name
    if roles.label_dtype == pl.Boolean:  # It has no other spelling.
        return
    for name, pred in sides.preds.items():
        is_shared_by_row = gold == pred
        if roles.is_multilabel:
            is_shared_by_row = gold.list.set_intersection(pred).list.drop_nulls().list.len() > 0
        if sides.is_seen(is_shared_by_row):
            continue
        gold_labels, pred_labels = sides.labels(gold), sides.labels(pred)
        is_shared = pl.concat([gold_labels, pred_labels]).is_duplicated().any()
        if is_shared or gold_labels.is_empty() or pred_labels.is_empty():
            continue
        yield (
            f"no label of '{name}' is a label of '{gold_name}', so no row is a hit: '{gold_name}' "
            f"has {listed(gold_labels)}; '{name}' has {listed(pred_labels)}"
            f"{_nearest(gold_labels, pred_labels)}"
        )


def no_positive(sides: LogLabels) -> Iterator[str]:
    """A sentence if no row has the positive label that the log was described with."""
    roles = sides.log.roles
    if roles.positive is None:
        return
    are_positive = (sides.has(side, roles.positive) for side in sides.each)
    if not any(map(sides.is_seen, are_positive)):
        label, columns = roles.positive_label, quoted(roles.label_columns)
        known = f"; the labels are {sides.in_words}" if sides.in_words else ""
        yield f"no scored row has the positive label {label!r} in {columns}{known}"


def one_class(sides: LogLabels) -> Iterator[str]:
    """A sentence if all rows have one gold label."""
    if sides.log.roles.is_multilabel:
        return
    preds = [pred.is_not_null() for pred in sides.preds.values()]
    is_scored = pl.all_horizontal(sides.gold.is_not_null(), pl.any_horizontal(preds or True))
    first = sides.frame.filter(is_scored).select(sides.gold).head(1).collect().to_series()
    label = next(iter(first), None)
    is_other = sides.gold != pl.lit(label, sides.log.roles.label_dtype)
    if label is None or sides.is_seen(is_scored & is_other):
        return
    name = sides.log.roles.gold.name
    yield f"all labels of '{name}' are {label!r}: with one gold class, MCC and its kin are 0/0"


def spelled_alike(sides: LogLabels, seen: Seen) -> Iterator[str]:
    """A sentence if labels differ only in case, spaces or Unicode form, such as "Yes" and "yes".

    All rows are read only if the first rows lack a counted label, or if labels are alike.
    """
    roles = sides.log.roles
    if not is_text(roles.label_dtype):
        return
    labels = _texts(sides, seen)
    groups = alike(labels) if len(labels) <= _MAX_COMPARED else []
    # Labels that the user named are labels of their own.
    declared = {*roles.score_labels, roles.positive_label}
    groups = [group for group in groups if len(declared.intersection(group)) < 2]
    if groups:
        rows = sides.rows_of([*chain(*groups)])
        if confused := _confused(sides, groups, rows):
            columns = zip((roles.gold.name, *sides.preds), rows, strict=True)
            yield f"labels {differ(confused, columns)}; each is a class of its own"


def alike(texts: Iterable[str]) -> list[list[str]]:
    """The texts that differ only in case, spaces or Unicode form, in groups of two or more.

    10² stays apart from 102, and "1 5" from "15". Characters that nobody sees do not count.
    """
    import unicodedata  # noqa: PLC0415 - for text alone

    groups: dict[str, list[str]] = {}
    for text in sorted(texts):
        composed = unicodedata.normalize("NFKC", _POWERS.sub("^", text)).replace("\ufe0f", "")
        seen = "".join(char for char in composed if unicodedata.category(char) != "Cf")
        normal = _SPACES.sub("", " ".join(seen.split())).casefold()
        groups.setdefault(normal, []).append(text)
    return [group for group in groups.values() if len(group) > 1]


def differ(groups: Sequence[Sequence[str]], columns: Iterable[tuple[str, Rows]]) -> str:
    """The end of a sentence: the texts of each group, with their rows in each column."""
    has = []
    for name, rows in columns:
        of_groups = ([text for text in group if text in rows][:_SHOWN] for group in groups)
        each = [
            " and ".join(_with_rows(text, rows) for text in group) for group in of_groups if group
        ]
        has.append(f"'{name}' has {', '.join(each[:_SHOWN])}{', …' if len(each) > _SHOWN else ''}")
    return f"differ only in case, spaces or Unicode form: {'; '.join(has)}"


def _with_rows(text: str, rows: Rows) -> str:
    return f"{text!r} ({rows_in_words(rows[text])})"


def key_is_gold(log: Described[Any], keys: Sequence[IntoKey]) -> Iterator[str]:
    """A sentence if a key is the gold label itself. No data are read."""
    gold = log.roles.gold.expr
    for key in keys:
        if not isinstance(key, (str, pl.Expr)):
            continue
        if as_expr(key).meta.undo_aliases().meta.eq(gold.meta.undo_aliases()):
            yield said(
                f"key '{log.roles.gold.name}' is the gold label, so each slice has one gold "
                "class, and MCC and its kin are 0/0; for the score of each class, use ",
                Words("classes()", "classes"),
            )


def _texts(sides: LogLabels, seen: Seen) -> list[str]:
    """The labels that occur in a log, as text."""
    if (hashes := seen.hashes) is None:  # Not all rows are read for a remark.
        first_rows = replace(sides, frame=sides.frame.head(_NEXT))
        return first_rows.labels(*sides.each).cast(pl.String).to_list()
    return [] if len(hashes) > _MAX_COMPARED else sides.texts(hashes, *sides.each)


def _confused(
    sides: LogLabels, groups: Sequence[Sequence[str]], rows: Sequence[Mapping[str, float]]
) -> Sequence[Sequence[str]]:
    """The groups of labels that no model tells apart.

    A model tells a label apart if, where it is gold, it is predicted more than twice as often as
    the others of its group. A model that tells most labels apart tells all of them apart. Only
    labels that are gold and predicted can be told apart.
    """
    of_gold, *of_preds = rows
    for pred, of_pred in zip(sides.preds.values(), of_preds, strict=True):
        n = sides.pairs_of([*chain(*groups)], pred)
        on_both_sides = of_gold.keys() & of_pred.keys()
        both = [[label for label in group if label in on_both_sides] for group in groups]
        both = [group for group in both if len(group) > 1]
        told = {
            gold
            for group in both
            for gold in group
            if 3 * n.get((gold, gold), 0) > 2 * sum(n.get((gold, pred), 0) for pred in group)
        }
        are_most = 2 * len(told) > sum(map(len, both))
        of_groups = (group for group in both if are_most or told.issuperset(group))
        apart = {label for group in of_groups for label in group[1:]}
        groups = [[label for label in group if label not in apart] for group in groups]
    return [group for group in groups if len(group) > 1]


def _nearest(gold: pl.Series, pred: pl.Series) -> str:
    """The predicted label whose spelling is nearest to a gold label."""
    import difflib  # noqa: PLC0415 - for an error alone

    spelled = {str(label).strip().lower(): label for label in gold}
    for label in pred.head(_TRIED):
        if near := difflib.get_close_matches(str(label).strip().lower(), spelled, n=1):
            return f"; did you mean {spelled[near[0]]!r} by {label!r}?"
    return ""

"""The labels that a query counts, for warnings about them: most need no second look at the log."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import polars as pl

from polars_mcc._counts.label_hashes import hashed
from polars_mcc._counts.sliced_log import MODEL, SlicedLog
from polars_mcc._frame.labels import is_text

_COLUMNS = ("gold", "pred", "baseline", "label")


@dataclass
class Seen:
    """The hashes of the text labels of the counts that were made."""

    parts: list[pl.Series] = field(default_factory=list)
    labelled: list[pl.DataFrame] = field(default_factory=list)
    """How many rows of each prediction there are, and how many have a gold label: see
    `labelled_rows`."""
    named: dict[str, Collection[object]] = field(default_factory=dict)
    """The labels that tables of metrics name, by metric: they are looked for among the counted."""
    is_sound: bool = False
    """Whether counts of a lazy log show that each model has hits, two gold classes and the positive
    label."""

    @classmethod
    def of(
        cls,
        log: SlicedLog,
        pairs: pl.DataFrame,
        positive: object = None,
        named: Mapping[str, Collection[object]] | None = None,
    ) -> Seen:
        """What the counts of the pairs of a log show; `named` are labels to look for."""
        labels, is_hit = cls(named={**(named or {})}), pl.col("gold") == pl.col("pred")
        labels.look(log, pairs)
        n_gold, sides = pl.col("gold").n_unique() >= 2, ["gold", "pred"]
        if log.is_of_scores:  # Gold says whether a row is positive.
            is_hit, positive = pl.lit(value=True), None
        if positive is not None and log.with_text is not None:
            positive = hashed(pl.Series([positive], dtype=pl.String)).item()
        scored = pairs.filter(pl.col("n") > 0, pl.all_horizontal(pl.col(sides).is_not_null()))
        of_models = scored.group_by(MODEL if log.has_models else pl.lit(0))
        facts = of_models.agg(is_sound=is_hit.any() & n_gold)["is_sound"]
        is_there = positive is None or any(positive in scored[side] for side in sides)
        labels.is_sound = is_there and facts.all() and len(facts) == len(log.models)
        return labels

    def look(self, log: SlicedLog, counts: pl.DataFrame) -> pl.DataFrame:
        """Take the labels of counts, and return the counts."""
        is_hashed = log.with_text is not None
        are_pairs = {"gold", "pred", "n"} <= {*counts.columns} and not log.is_of_scores
        is_plain = are_pairs and not log.is_multilabel and log.windows is None
        if is_plain and counts["gold"].null_count():
            pairs = log.once(counts.lazy()).with_columns(model=MODEL if log.has_models else None)
            self.labelled.append(labelled_rows(pairs))
        for column in (counts[name] for name in _COLUMNS if name in counts.columns):
            labels = column.explode() if isinstance(column.dtype, pl.List) else column
            self.take(labels, are_hashes=is_hashed)
        return counts

    def take(self, labels: pl.Series, *, are_hashes: bool = False) -> Seen:
        """Take labels that occur: text, and integers if some labels are looked for."""
        if are_hashes or is_text(labels.dtype) or (self.named and labels.dtype.is_integer()):
            distinct = labels.unique().drop_nulls().rename("label")
            self.parts.append(distinct if are_hashes else hashed(distinct))
        return self

    @property
    def hashes(self) -> pl.Series | None:
        """The hashes of all labels, each once; None if no labels were counted."""
        return pl.concat(self.parts).unique() if self.parts else None


def labelled_rows(pairs: pl.LazyFrame) -> pl.DataFrame:
    """Count the rows of each `model` and `pred`, and how many of them are `labelled`."""
    n = pl.col("n")
    sums = {"n": n.sum(), "labelled": n.filter(pl.col("gold").is_not_null()).sum()}
    of_preds = pairs.filter(pl.col("pred").is_not_null()).group_by("model", "pred").agg(**sums)
    return of_preds.sort("model", "pred").collect()


SEEN: ContextVar[Seen | None] = ContextVar("SEEN", default=None)
"""Where the labels go, inside of `with seen()`."""


@contextmanager
def seen() -> Iterator[Seen]:
    """Take the labels of all counts that are made inside of `with`."""
    labels = SEEN.get() or Seen()
    token = SEEN.set(labels)
    try:
        yield labels
    finally:
        SEEN.reset(token)


def watched(log: SlicedLog, counts: pl.LazyFrame) -> pl.LazyFrame:
    """Inside of `with seen()`: collect the counts at once, and take their labels."""
    labels = SEEN.get()
    has_text = log.with_text is not None or is_text(log.label_dtype)
    if labels is None or not (has_text or log.waiting or labels.named):
        return counts
    return labels.look(log, counts.collect()).lazy()

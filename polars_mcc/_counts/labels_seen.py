"""The labels that a query counts, for remarks on them: the log need not be read again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import polars as pl

from polars_mcc._counts.label_hashes import hashed
from polars_mcc._counts.sliced_log import MODEL, SlicedLog
from polars_mcc._frame.labels import is_text

_SIDES = ("gold", "pred", "baseline", "label")


@dataclass
class Seen:
    """The hashes of the text labels of the counts that were made."""

    parts: list[pl.Series] = field(default_factory=list)
    is_sound: bool = False
    """Whether counts show that each model has hits, two gold classes and the positive label."""

    @classmethod
    def of(cls, log: SlicedLog, pairs: pl.DataFrame, positive: object = None) -> Seen:
        """What the counts of the pairs of a log show."""
        labels, is_hit = cls(), pl.col("gold") == pl.col("pred")
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
        if _is_of_text(log):
            sides = (counts[name] for name in _SIDES if name in counts.columns)
            plain = (one.explode() if isinstance(one.dtype, pl.List) else one for one in sides)
            each = (one.unique().drop_nulls().rename("label") for one in plain)
            self.parts += [one if log.with_text is not None else hashed(one) for one in each]
        return counts

    @property
    def hashes(self) -> pl.Series | None:
        """The hashes of all labels, each once; None if no labels were counted."""
        return pl.concat(self.parts).unique() if self.parts else None


_SEEN: ContextVar[Seen | None] = ContextVar("seen", default=None)


@contextmanager
def seen() -> Iterator[Seen]:
    """Take the labels of all queries that are made meanwhile, once they are collected."""
    found = _SEEN.get() or Seen()
    token = _SEEN.set(found)
    try:
        yield found
    finally:
        _SEEN.reset(token)


def is_watched() -> bool:
    """Whether somebody asks for the labels."""
    return _SEEN.get() is not None


def watched(log: SlicedLog, counts: pl.LazyFrame) -> pl.LazyFrame:
    """Counts whose labels are taken, if somebody asks for them: then they are collected first."""
    asked = _SEEN.get()
    if asked is None or not _is_of_text(log):
        return counts
    return asked.look(log, counts.collect()).lazy()


def _is_of_text(log: SlicedLog) -> bool:
    is_hashed = log.with_text is not None
    return not log.is_of_scores and (is_hashed or is_text(log.label_dtype))

"""Hash text labels; take the hashes that queries count; encode two labels as one integer.

Text labels are hashed once, right after the scan: a score needs to know which labels are equal, not
the labels. Two of K labels share a hash of 63 or 64 bits with a probability below K² / 2⁶⁴, which
is 6·10⁻¹⁰ for 10⁵ labels. The number of rows, slices and pairs does not matter. Two labels with one
hash would be scored as one class. The expression hashes all labels of more than 32 bits. Polars'
hash differs between its versions, so no hash leaves the query. Text in local Parquet files is
counted by its codes, and only its distinct values are hashed (`pair_counts.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import polars as pl

from polars_mcc._counts.sliced_log import MODEL, PRED, SlicedLog
from polars_mcc._frame.labels import is_text

_CODES = 2**63
_NARROW = (pl.Boolean, pl.Int8, pl.Int16, pl.UInt8, pl.UInt16)
_NARROW_OR_32_BITS = (*_NARROW, pl.Int32, pl.UInt32)


def with_hashes(log: SlicedLog) -> SlicedLog:
    """Replace text labels by their hashes; null stays null."""
    if log.label_dtype != pl.String or log.is_multilabel:
        return log
    columns = ["gold", *(PRED + name for name in log.models), *({"baseline"} & {*log.pair_splits})]
    frame = log.frame.with_columns(hash_of(pl.col(name)) for name in columns)
    hash_dtype = pl.UInt64()
    return replace(
        log, frame=frame, with_text=log.frame, label_dtype=hash_dtype, pred_dtype=hash_dtype
    )


def wide_of(dtype: pl.DataType) -> pl.DataType:
    """The dtype in which integers do not wrap, and products of floats and decimals keep digits."""
    if dtype.is_integer():
        return pl.Int128()
    return pl.Float64() if dtype.is_numeric() else dtype


def with_wide_labels(log: SlicedLog) -> SlicedLog:
    """Count labels in a dtype to compute with: see `wide_of`."""
    wide = wide_of(log.label_dtype)
    return replace(log, label_dtype=wide, pred_dtype=pl.List(wide) if log.is_multilabel else wide)


def hash_of(label: pl.Expr) -> pl.Expr:
    """The hash of a text label; null stays null."""
    return pl.when(label.is_not_null()).then(of_label(label.cast(pl.String)))


def hashed(labels: pl.Series) -> pl.Series:
    """The hashes of labels, as `with_hashes` makes them."""
    return labels.to_frame("label").select(hash_of(pl.col("label"))).to_series()


def of_label(label: pl.Expr) -> pl.Expr:
    """Hash a label that is text, or wider than 32 bits, to a UInt64."""
    return label.hash()


class Pair(NamedTuple):
    """Two labels of one dtype as one integer, which can be decoded to a code per label."""

    number: pl.Expr
    radix: int

    def labels(self, number: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        """Decode a number to the codes of the gold label and of the predicted label."""
        return number // self.radix, number % self.radix


def has_codes_in_order(dtype: pl.DataType) -> bool:
    """Whether the codes of `of_pair` are in the order of the labels; of text, of its hashes.

    Null is the first, as in `by`. A Categorical is sorted by its text.
    """
    is_narrow = _physical(dtype) in _NARROW_OR_32_BITS and not isinstance(dtype, pl.Categorical)
    return is_narrow or dtype == pl.String


def _physical(dtype: pl.DataType) -> pl.DataType:
    return pl.Series(dtype=dtype).to_physical().dtype


def of_pair(gold: pl.Expr, pred: pl.Expr, dtype: pl.DataType) -> Pair:
    """Encode two labels as an Int64 or Int128: exact up to 32 bits each, else by 63-bit hashes."""
    physical = _physical(dtype)
    if physical not in _NARROW_OR_32_BITS:
        codes = [
            pl.when(label.is_not_null()).then(of_label(label) // 2).otherwise(0).cast(pl.Int128)
            for label in (gold, pred)
        ]
        return Pair(codes[0] * _CODES + codes[1], _CODES)
    bits, number = (16, pl.Int64) if physical in _NARROW else (32, pl.Int128)
    radix, least = 2 ** (bits + 1), -(2 ** (bits - 1)) - 1  # less than any label, for null
    codes = [
        (label.to_physical().cast(pl.Int64).fill_null(least) - least).cast(number)
        for label in (gold, pred)
    ]
    return Pair(codes[0] * radix + codes[1], radix)


NamedLabels: TypeAlias = dict[str, Collection[object]]
"""The labels that tables of metrics name, such as costs, by the name of the metric."""


@dataclass
class Seen:
    """The labels that queries counted, for warnings: most need no second look at the log."""

    named: NamedLabels = field(default_factory=dict)
    """They are looked for among the counted labels."""
    positive: object = None
    """The positive label that the log was described with."""
    hashes: pl.Series | None = None
    """The hashes of all counted labels, each once: of text, or of integers if some are named."""
    labelled: pl.DataFrame | None = None
    """How many rows of each prediction there are, and how many have a gold label: see
    `labelled_rows`."""
    sound: set[str] = field(default_factory=set)
    """The models that have hits, two gold classes and the positive label, as counts show."""
    is_sound: bool = False
    """Whether counts of a lazy log show so of each model."""

    @classmethod
    def of(cls, log: SlicedLog, pairs: pl.DataFrame, positive: object, named: NamedLabels) -> Seen:
        """What the counts of the pairs of a log show; `named` are labels to look for."""
        labels = cls(named, positive)
        labels.look(log, pairs)
        labels.is_sound = labels._sound(log, pairs) == {*log.models}
        return labels

    def _sound(self, log: SlicedLog, pairs: pl.DataFrame) -> set[str]:
        """The models with hits and two gold classes, if the positive label is there."""
        positive, is_hit, sides = self.positive, pl.col("gold") == pl.col("pred"), ["gold", "pred"]
        if log.is_of_scores:  # Gold says whether a row is positive.
            is_hit, positive = pl.lit(value=True), None
        if positive is not None and log.with_text is not None:
            positive = hashed(pl.Series([positive], dtype=pl.String)).item()
        scored = pairs.filter(pl.col("n") > 0, pl.all_horizontal(pl.col(sides).is_not_null()))
        if positive is not None and not any(positive in scored[side] for side in sides):
            return set()
        of_models = scored.group_by(model=MODEL if log.has_models else pl.lit(log.models[0]))
        is_sound = is_hit.any() & (pl.col("gold").n_unique() >= 2)
        return {*of_models.agg(is_sound=is_sound).filter("is_sound")["model"]}

    def look(self, log: SlicedLog, counts: pl.DataFrame) -> pl.DataFrame:
        """Take the labels of counts, and return the counts."""
        are_pairs = {"gold", "pred", "n"} <= {*counts.columns} and not log.is_of_scores
        is_plain = are_pairs and not log.is_multilabel and log.windows is None
        if is_plain:
            self.sound |= self._sound(log, counts)
        if self.labelled is None and is_plain and (log.waiting or counts["gold"].null_count()):
            pairs = log.once(counts.lazy()).with_columns(model=MODEL if log.has_models else None)
            self.labelled = labelled_rows(pairs)
        for name in {"gold", "pred", "baseline", "label"}.intersection(counts.columns):
            labels = counts[name]
            labels = labels.explode() if isinstance(labels.dtype, pl.List) else labels
            self.take(labels, are_hashes=log.with_text is not None)
        return counts

    def take(self, labels: pl.Series, *, are_hashes: bool = False) -> Seen:
        """Take labels that occur."""
        if are_hashes or is_text(labels.dtype) or (self.named and labels.dtype.is_integer()):
            distinct = labels.unique().drop_nulls().rename("label")
            hashes = distinct if are_hashes else hashed(distinct)
            known = [] if self.hashes is None else [self.hashes]
            self.hashes = pl.concat([*known, hashes]).unique()
        return self


def labelled_rows(pairs: pl.LazyFrame) -> pl.DataFrame:
    """Count the rows of each `model` and `pred`, and how many of them are `labelled`."""
    n = pl.col("n")
    sums = {"n": n.sum(), "labelled": n.filter(pl.col("gold").is_not_null()).sum()}
    of_preds = pairs.filter(pl.col("pred").is_not_null()).group_by("model", "pred").agg(**sums)
    return of_preds.sort("model", "pred").collect()


SEEN: ContextVar[Seen | None] = ContextVar("SEEN", default=None)
"""Where the labels go, inside of `with seen()`."""


@contextmanager
def seen(positive: object) -> Iterator[Seen]:
    """Take the labels of all counts of a log with this positive label, inside of `with`."""
    labels = SEEN.get() or Seen(positive=positive)
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

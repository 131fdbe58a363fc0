"""Hash text labels, and encode a pair of labels as one integer, in plans of Polars.

Text labels are hashed once, right after the scan: a score needs to know which labels are equal, not
the labels. Two of K labels share a hash of 63 or 64 bits with a probability below K² / 2⁶⁴, which
is 6·10⁻¹⁰ for 10⁵ labels. The number of rows, slices and pairs does not matter. Two labels with one
hash would be scored as one class. The expression hashes all labels of more than 32 bits. Polars'
hash differs between its versions, so no hash leaves the query. Text in local Parquet files is
counted by its codes, and only its distinct values are hashed (`pair_counts.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import polars as pl

from polars_mcc._counts.sliced_log import PRED, SlicedLog

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

"""Hash text labels, and encode a pair of labels as one integer, in plans of Polars.

Text labels are hashed once, right after the scan: a score needs to know which labels are equal, not
the labels. Two of K labels share a hash of 63 or 64 bits with a probability below K² / 2⁶⁴, which
is 6·10⁻¹⁰ for 10⁵ labels. The number of rows, slices and pairs does not matter. Two labels with one
hash would be scored as one class. The expression hashes all labels of more than 32 bits. A join of
pairs to classes uses a hash of the label, whatever its dtype. Polars' hash differs between its
versions, so no hash leaves the query. Text in local Parquet files is counted by its codes and not
hashed (`coded.py`).
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import polars as pl

from polars_mcc._counts.sliced import PRED, SlicedLog

_WORD = 2**64
_NUMBER = "number"
_MOST = 2**63
_BITS: Mapping[pl.DataType, int] = {
    pl.Boolean(): 1,
    pl.Int8(): 8,
    pl.Int16(): 16,
    pl.Int32(): 32,
    pl.UInt8(): 8,
    pl.UInt16(): 16,
    pl.UInt32(): 32,
}


def unnamed(log: SlicedLog) -> SlicedLog:
    """Replace text labels by their hashes; null stays null.

    If several sets of keys are counted from rows, text becomes Categorical instead: 4 bytes, half
    the size of a hash.
    """
    counted_sets = sum(parent is None for parent in log.parents.values())
    if log.label_dtype != pl.String or log.is_multilabel or counted_sets > 1:
        return log
    columns = ["gold", *(PRED + name for name in log.models), *({"baseline"} & {*log.extras})]
    hashed = log.frame.with_columns(_hashed(pl.col(name)) for name in columns)
    return replace(
        log,
        frame=hashed,
        hashed=(hashed, log.frame),
        label_dtype=pl.UInt64(),
        pred_dtype=pl.UInt64(),
    )


def _hashed(label: pl.Expr) -> pl.Expr:
    return pl.when(label.is_not_null()).then(of_label(label.cast(pl.String)))


def hashed(labels: pl.Series) -> pl.Series:
    """The hashes of labels, as `unnamed` makes them."""
    return labels.to_frame().select(_hashed(pl.col(labels.name))).to_series()


def of_label(label: pl.Expr) -> pl.Expr:
    """Hash a label that is text, or wider than 32 bits, to a UInt64."""
    return label.hash()


def of_class(slice_columns: Sequence[str], label: str) -> pl.Expr:
    """Make a join key for the classes of all slices: an Int128 of two 64-bit hashes.

    Both hashes depend on the slice, and the second also on the label. So both hashes tell two
    slices apart, and the second tells the labels of one slice apart. Without keys, the label
    itself is enough. Two of S slices share both hashes with a probability of S² / 2¹²⁸, which is
    3·10⁻²³ for 10⁸ slices.
    """
    if not slice_columns:
        return pl.col(label)

    def word(first_seed: int) -> pl.Expr:
        hashes = (pl.col(name).hash(seed) for seed, name in enumerate(slice_columns, first_seed))
        return reduce(operator.add, hashes)

    high, low = word(1), word(1 + len(slice_columns)) + pl.col(label).hash()
    return high.cast(pl.Int128) * _WORD + low.cast(pl.Int128)


class Pair(NamedTuple):
    """Two labels of one dtype as one integer, which can be decoded to a code per label."""

    number: pl.Expr
    radix: int

    def labels(self, number: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        """Decode a number to the codes of the gold label and of the predicted label."""
        return number // self.radix, number % self.radix


def of_pair(gold: pl.Expr, pred: pl.Expr, dtype: pl.DataType) -> Pair:
    """Encode two labels as an Int64 or Int128: exact up to 32 bits each, else by 63-bit hashes."""
    physical = pl.Series(dtype=dtype).to_physical().dtype
    if physical not in _BITS:
        codes = [(of_label(label) // 2).cast(pl.Int128) for label in (gold, pred)]
        return Pair(codes[0] * _MOST + codes[1], _MOST)
    bits = _BITS[physical]
    radix = 2**bits + 1
    null = -(2 ** (bits - 1)) - 1 if physical.is_signed_integer() else -1  # the least less 1
    wide = pl.Int64() if radix**2 <= _MOST else pl.Int128()
    codes = [
        (label.to_physical().cast(pl.Int64).fill_null(null) - null).cast(wide)
        for label in (gold, pred)
    ]
    return Pair(codes[0] * radix + codes[1], radix)


def of_booleans(gold: pl.Expr, pred: pl.Expr) -> pl.Expr:
    """Encode two Booleans as one byte, which is grouped by in less time than two columns."""
    codes = (label.cast(pl.UInt8).fill_null(2) for label in (gold, pred))
    return reduce(lambda high, low: high * 3 + low, codes)


def as_booleans(pair: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Decode two Booleans."""
    gold, pred = (pl.when(code < 2).then(code == 1) for code in (pair // 3, pair % 3))
    return gold, pred

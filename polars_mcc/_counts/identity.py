"""Hashes that stand for labels and slices while rows are counted.

A score needs to know which labels are equal, not what they are. Of K labels, two share an
identity with a probability below K² / 2⁶⁴, which is 6·10⁻¹⁰ for 10⁵ labels, whatever the
number of rows, slices and pairs; these two would be scored as one class. That two slices of
S share one is as likely as S² / 2¹²⁸, and 3·10⁻²³ for 10⁸ slices. Polars' hash differs
between its versions, so an identity does not leave the query.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce

import polars as pl

_WORD = 2**64


def of_label(label: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """What tells labels of `dtype` apart, null among them: text is hashed to a UInt64."""
    return label.hash() if dtype == pl.String else label


def of_class(slice_columns: Sequence[str], label: str) -> pl.Expr:
    """What tells the classes of all slices apart: an Int128 of two words of hashes.

    Both depend on the slice, the second on the label too: so the classes of two slices are
    kept apart by both words, and those of one slice by the label, which is enough without keys.
    """
    if not slice_columns:
        return pl.col(label)

    def word(first_seed: int) -> pl.Expr:
        hashes = (pl.col(name).hash(seed) for seed, name in enumerate(slice_columns, first_seed))
        return reduce(operator.add, hashes)

    high, low = word(1), word(1 + len(slice_columns)) + pl.col(label).hash()
    return high.cast(pl.Int128) * _WORD + low.cast(pl.Int128)


def is_cheap(dtype: pl.DataType) -> bool:
    """Whether a column of equal values is quickly reduced to its value, by `max`."""
    return dtype.is_numeric() or dtype.is_temporal() or isinstance(dtype, (pl.Boolean, pl.Enum))

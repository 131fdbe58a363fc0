"""Integers in place of labels, and in place of group by columns, while rows are counted.

Text labels are hashed once, right after the scan: a score needs to know which labels are equal, not
the labels. Two of K labels share a hash of 63 or 64 bits with a probability below K² / 2⁶⁴, which
is 6·10⁻¹⁰ for 10⁵ labels. The number of rows, slices and pairs does not matter. Two labels with one
hash would be scored as one class. The expression hashes all labels of more than 32 bits. A join of
pairs to classes uses a hash of the label, whatever its dtype. Polars' hash differs between its
versions, so no hash leaves the query.

Several columns of small, known width are grouped by as one integer, with a column as a digit:
Booleans, integers of up to 32 bits, dates, Enums and Categoricals. Each digit has a value for null.
The integer is exact and can be decoded. It takes as many columns as fit into 63 bits, which is too
few for two columns of 32 bits. All other columns are grouped by as they are. With many groups, one
integer takes half the time of several columns; with few groups, about the same time.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    labels = {name: pl.col(name).cast(pl.String) for name in columns}
    hashes = {
        name: pl.when(label.is_not_null()).then(of_label(label)) for name, label in labels.items()
    }
    hashed = log.frame.with_columns(**hashes)
    return replace(log, frame=hashed, label_dtype=pl.UInt64(), pred_dtype=pl.UInt64())


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


def grouped(rows: pl.LazyFrame, columns: Sequence[str], **aggregations: pl.Expr) -> pl.LazyFrame:
    """Group rows by columns and aggregate. Narrow columns are grouped by as one integer."""
    number = _Number.of(rows.select(columns).collect_schema())
    if number is None:
        return rows.group_by(columns).agg(**aggregations)
    decoded = number.decoded(pl.col(_NUMBER))
    others = [column for column in columns if column not in decoded]
    groups = rows.group_by(*others, number.encoded.alias(_NUMBER)).agg(**aggregations)
    return groups.select(
        *(decoded.get(column, pl.col(column)).alias(column) for column in columns), *aggregations
    )


class Pair(NamedTuple):
    """Two labels of one dtype as one integer, which can be decoded to a code per label."""

    number: pl.Expr
    radix: int

    def labels(self, number: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        """Decode a number to the codes of the gold label and of the predicted label."""
        return number // self.radix, number % self.radix


def of_pair(gold: pl.Expr, pred: pl.Expr, dtype: pl.DataType) -> Pair:
    """Encode two labels as an Int64 or Int128: exact up to 32 bits each, else by 63-bit hashes."""
    digit = _Digit.of("", dtype)
    if digit is None:
        radix = _MOST
        codes = [(of_label(label) // 2).cast(pl.Int128) for label in (gold, pred)]
    else:
        radix = digit.radix
        wide = pl.Int64() if radix**2 <= _MOST else pl.Int128()
        codes = [
            (digit.encoded(label, pl.Int64()) - digit.null).cast(wide) for label in (gold, pred)
        ]
    return Pair(codes[0] * radix + codes[1], radix)


@dataclass(frozen=True)
class _Digit:
    """A column as a digit of a number: its physical values, and the least minus 1 for null."""

    name: str
    dtype: pl.DataType
    null: int
    radix: int

    @classmethod
    def of(cls, name: str, dtype: pl.DataType) -> _Digit | None:
        """Make the digit of a column, or None if its dtype is too wide."""
        if isinstance(dtype, pl.Enum):
            return cls(name, dtype, null=-1, radix=len(dtype.categories) + 1)
        physical = pl.Series(dtype=dtype).to_physical().dtype
        if physical not in _BITS:
            return None
        bits = _BITS[physical]
        least = -(2 ** (bits - 1)) if physical.is_signed_integer() else 0
        return cls(name, dtype, null=least - 1, radix=2**bits + 1)

    def encoded(self, column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
        """Encode the column as integers of a dtype: its physical values, or `null`."""
        return column.to_physical().cast(dtype).fill_null(self.null)

    def decoded(self, digit: pl.Expr) -> pl.Expr:
        """Decode a digit to the column. 0 is null."""
        value: pl.Expr = pl.when(digit > 0).then(digit + self.null)
        if isinstance(self.dtype, (pl.Enum, pl.Categorical)):
            return value.cat.to(self.dtype)
        if self.dtype == pl.Date:
            value = value.cast(pl.Int32)
        return value.cast(self.dtype)


@dataclass(frozen=True)
class _Number:
    """Columns as one integer, a column per digit. The last column is the lowest digit."""

    digits: Sequence[_Digit]

    @classmethod
    def of(cls, dtypes: pl.Schema) -> _Number | None:
        """Take as many narrow columns as fit into a number; None if fewer than two fit."""
        digits: list[_Digit] = []
        for name, dtype in dtypes.items():
            digit = _Digit.of(name, dtype)
            if digit is not None and cls([*digits, digit]).count <= _MOST:
                digits.append(digit)
        return cls(digits) if len(digits) > 1 else None

    @property
    def count(self) -> int:
        """The number of possible values."""
        return math.prod(digit.radix for digit in self.digits)

    @property
    def encoded(self) -> pl.Expr:
        """Encode the columns as a number, in the smallest dtype that fits."""
        bits = self.count.bit_length()
        dtype = pl.Int16() if bits < 16 else pl.Int32() if bits < 32 else pl.Int64()

        def with_digit(high: pl.Expr, low: _Digit) -> pl.Expr:
            return high * low.radix + low.encoded(pl.col(low.name), dtype)

        first, *others = self.digits
        return reduce(with_digit, others, first.encoded(pl.col(first.name), dtype))

    def decoded(self, number: pl.Expr) -> dict[str, pl.Expr]:
        """Decode a number to the columns."""
        of_nulls = reduce(lambda high, low: high * low.radix + low.null, self.digits, 0)
        left, columns = number.cast(pl.Int64) - of_nulls, {}
        for digit in reversed(self.digits):
            columns[digit.name] = digit.decoded(left % digit.radix)
            left = left // digit.radix
        return columns

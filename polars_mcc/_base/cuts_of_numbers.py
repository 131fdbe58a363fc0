"""Numbers that a user lists to cut a column: thresholds of scores, and ends of bins.

A float column is compared with the cut in its own dtype: 0.7 in Float32 is at the cut 0.7. Integers
and decimals are compared with the cut as it is written: 0.1 is a tenth, and 2^53 + 1 is odd.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import pairwise
from numbers import Integral, Real
from typing import TypeAlias

import polars as pl

Number: TypeAlias = float | int | Decimal

_LARGEST_FLOAT = sys.float_info.max


def as_cuts(given: object) -> tuple[Number, ...]:
    """The numbers of a list, an array or a Series; empty unless they are finite and rise."""
    cuts = [_as_number(cut) for cut in given] if isinstance(given, Iterable) else []
    known = tuple(cut for cut in cuts if cut is not None)
    is_rising = all(low < high for low, high in pairwise(map(written, known)))
    return known if is_rising and len(known) == len(cuts) else ()


def _as_number(cut: object) -> Number | None:
    number: Number = math.nan
    if isinstance(cut, Decimal):
        number = cut if cut.is_finite() else math.nan
    elif isinstance(cut, Real):  # of NumPy too
        number = int(cut) if isinstance(cut, Integral) else float(cut)
    return number if -_LARGEST_FLOAT <= number <= _LARGEST_FLOAT else None


def as_number(text: str) -> Number:
    """A number that is typed, with all its digits, or a ValueError."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
        is_same = not math.isfinite(number) or written(number) == written(Decimal(text))
        return number if is_same else Decimal(text)


def written(cut: Number) -> Decimal:
    """The number as it is written: a tenth for the float 0.1."""
    return Decimal(int(cut) if cut == int(cut) else str(cut))


def as_series(cuts: Sequence[Number]) -> pl.Series:
    """The cuts as Float64, or as integers or decimals if Float64 would round one."""
    exact = [written(cut) for cut in cuts]
    if all(written(float(number)) == number for number in exact):
        return pl.Series([float(cut) for cut in cuts])
    if all(number == int(number) for number in exact):
        for dtype in (pl.Int64(), pl.Int128(), pl.UInt128()):
            least, largest = _limits_of_dtype(dtype)
            if least <= exact[0] and exact[-1] <= largest:
                return pl.Series([*map(int, cuts)], dtype=dtype)
    try:
        return pl.Series([Decimal(str(cut)) for cut in cuts])
    except (TypeError, RuntimeError) as error:
        msg = f"the thresholds {', '.join(map(str, cuts))} have more than 38 digits: round them"
        raise ValueError(msg) from error


def is_above(column: pl.Expr, dtype: pl.DataType, cut: Number, *, or_at: bool) -> pl.Expr:
    """Whether the numbers of a column of this dtype are above a cut, or at it."""
    if dtype.is_float():
        end = pl.lit(float(cut), dtype)
        return column >= end if or_at else column > end
    scale = dtype.scale if isinstance(dtype, pl.Decimal) else 0
    number, parts = written(cut).as_integer_ratio()  # A product of decimals would be rounded.
    number *= 10**scale
    first = -(-number // parts) if or_at else number // parts + 1
    least, largest = _limits_of_dtype(dtype)
    if first > largest:
        return pl.lit(value=False)
    end = max(first, least)
    return column >= pl.lit(Decimal(f"{end}E-{scale}") if scale else end, dtype)


def with_room_above(dtype: pl.DataType) -> pl.DataType:
    """The dtype that also holds a number above all numbers of this dtype, if there is one."""
    if isinstance(dtype, pl.Decimal):
        return pl.Decimal(scale=dtype.scale)
    return pl.Int64() if dtype.is_integer() and _limits_of_dtype(dtype)[1] < 2**32 else dtype


def above_all(largest: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Infinity, or one unit more than the largest number of a column: of integers or decimals.

    The largest number of 64 bits or more has no number above it, and is itself the answer.
    """
    if dtype.is_float():
        return pl.lit(math.inf, dtype)
    unit = Decimal(1).scaleb(-dtype.scale) if isinstance(dtype, pl.Decimal) else 1
    return pl.max_horizontal(largest, largest + pl.lit(unit, with_room_above(dtype)))


def _limits_of_dtype(dtype: pl.DataType) -> tuple[int, int]:
    """The least and the largest integer of a dtype, or number of units of a decimal."""
    if isinstance(dtype, pl.Decimal):
        return 1 - 10**dtype.precision, 10**dtype.precision - 1
    size = 1 << int(8 * pl.Series([0], dtype=dtype).estimated_size())
    return (0, size - 1) if dtype.is_unsigned_integer() else (-size // 2, size // 2 - 1)

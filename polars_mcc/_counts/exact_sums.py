"""The arithmetic of weights: sums and products that lose no digits.

Integers are added and multiplied in Int128. Floats are added together with their rounding errors.
The sums then become integers too, multiples of a small unit: the weights of a slice add up to
about 2^116 units. These integers are multiplied in two limbs.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from polars_mcc._base.errors_and_warnings import Failure, unless

_LARGEST_COUNT = 2**63 - 1
_LIMB = 2**60


@dataclass(frozen=True)
class Product:
    """A product, or sums and differences of products: one limb, or high · 2^60 + low."""

    limbs: tuple[pl.Expr, ...]
    """The high limb first."""

    def __add__(self, other: Product) -> Product:
        """The sum."""
        return Product((*map(operator.add, self.limbs, other.limbs),))

    def __sub__(self, other: Product) -> Product:
        """The difference."""
        return Product((*map(operator.sub, self.limbs, other.limbs),))

    def sum(self) -> Product:
        """The sum over rows."""
        return Product(tuple(limb.sum() for limb in self.limbs))

    def carried(self) -> Product:
        """The same number, with a low limb below 2^60: sums of up to 2^67 such numbers fit."""
        if len(self.limbs) == 1:
            return self
        high, low = self.limbs
        carry = low // _LIMB
        return Product((high + carry, low - carry * _LIMB))

    def columns(self, name: str) -> dict[str, pl.Expr]:
        """The expressions to compute, by column name."""
        return dict(zip((name, f"{name}:low"), self.limbs, strict=False))

    def from_columns(self, name: str, column: Callable[[str], pl.Expr]) -> Product:
        """The same number, read from its computed `columns`."""
        return Product((*map(column, self.columns(name)),))

    def to_float(self) -> pl.Expr:
        """The nearest float. With two limbs: the nearest of number / 2^60, or its neighbour."""
        if len(self.limbs) == 1:
            return self.limbs[0].cast(pl.Float64)
        high, low = self.limbs
        # |rest| is at most half of one unit of high, so the two cannot cancel.
        carry = (low + _LIMB // 2) // _LIMB
        rest = low - carry * _LIMB
        return (high + carry).cast(pl.Float64) + rest.cast(pl.Float64) / float(_LIMB)

    def to_units(self) -> pl.Expr:
        """The nearest float of the number itself, or its neighbour."""
        return self.to_float() * float(_LIMB) ** (len(self.limbs) - 1)


class Numbers:
    """Arithmetic of integer weights, whose unit is 1."""

    count: pl.DataType = pl.Int64()  # the dtype of counts in answers
    wide: pl.DataType = pl.Int128()  # the dtype of their sums

    def total(self, weight: pl.Expr) -> pl.Expr:
        """Sum wide weights."""
        return weight.sum()

    def as_count(self, total: pl.Expr, *failures: Failure) -> pl.Expr:
        """Cast a total to the dtype of counts, or raise an error if it is too large."""
        return unless(total, *failures, *self.failures(total)).cast(self.count)

    def widen(self, weight: pl.Expr) -> pl.Expr:
        """Cast a weight to the wide dtype."""
        # The sum of larger weights could wrap around. A single one is too large anyway.
        return weight.cast(pl.Int128).clip(upper_bound=_LARGEST_COUNT + 1)

    def failures(self, total: pl.Expr) -> list[Failure]:
        """The condition that a total is too large, with its message."""
        end = (
            f", more than {_LARGEST_COUNT} (2^63 - 1), the most that is counted exactly; make the "
            "weights smaller, or cast them to Float64"
        )
        return [Failure(total > _LARGEST_COUNT, ("the rows add up to at least ", total, end))]

    def unit(self, total: pl.Expr) -> pl.Expr:  # noqa: ARG002
        """The root of the unit of a slice, from the total of its weights: one number per slice.

        The unit itself may be out of the range of floats.
        """
        return pl.lit(1.0)

    def in_units(self, weight: pl.Expr, unit: pl.Expr) -> pl.Expr:  # noqa: ARG002
        """Convert a weight to a number of units, as Int128."""
        return weight.cast(pl.Int128)

    def from_units(self, units: pl.Expr, unit: pl.Expr) -> pl.Expr:  # noqa: ARG002
        """Convert a number of units to a weight, in the wide dtype."""
        return units

    def product(self, a: pl.Expr, b: pl.Expr) -> Product:
        """Multiply two numbers of units. Each is at most the total of a slice."""
        return Product((a * b,))

    def times(self, factor: pl.Expr, units: pl.Expr) -> Product:
        """Multiply a number of units by an integer below 2^60, exactly."""
        return Product((factor * units,))


class FloatNumbers(Numbers):
    """Arithmetic of float weights: as exact as integers for weights above 10^-18 of their total."""

    count = wide = pl.Float64()

    # Below _LARGE, multiples of _GRID are added as integers, and remainders as floats.
    _GRID = 2.0**-52
    _LARGE = 2.0**43
    # log2 of the units of a total: its square fits limbs · 2^60, with room for sums and for log2.
    _UNITS = 117

    def widen(self, weight: pl.Expr) -> pl.Expr:
        return weight.cast(pl.Float64)

    def total(self, weight: pl.Expr) -> pl.Expr:
        """Sum weights as a float, and the rounding error of that float.

        Both are practically exact for weights between 10^-6 and 10^12. For other weights, the
        second is an ordinary sum of floats.
        """
        grid = pl.when(weight < self._LARGE).then(weight / self._GRID).otherwise(0.0).floor()
        rest = weight - grid * self._GRID
        multiples = grid.cast(pl.Int128, strict=False).sum()
        high = multiples.cast(pl.Float64)
        left_out = (multiples - high.cast(pl.Int128)).cast(pl.Float64)
        return high * self._GRID + (left_out * self._GRID + rest.sum())

    def failures(self, total: pl.Expr) -> list[Failure]:
        message = ("the weights add up to ", total, "; make them smaller")
        return [Failure(~total.is_finite(), message)]

    def unit(self, total: pl.Expr) -> pl.Expr:
        bits = total.clip(math.ulp(0.0), sys.float_info.max).log(2)
        return pl.lit(2.0).pow(((bits - self._UNITS) / 2).ceil())

    def in_units(self, weight: pl.Expr, unit: pl.Expr) -> pl.Expr:
        return (weight / unit / unit).cast(pl.Int128, strict=False)

    def from_units(self, units: pl.Expr, unit: pl.Expr) -> pl.Expr:
        return units.cast(pl.Float64) * unit * unit

    def product(self, a: pl.Expr, b: pl.Expr) -> Product:
        """Multiply; the error is less than one in the low limb."""
        a_high, b_high = a // _LIMB, b // _LIMB
        a_low, b_low = a - a_high * _LIMB, b - b_high * _LIMB
        low = a_high * b_low + a_low * b_high + a_low * b_low // _LIMB
        return Product((a_high * b_high, low))

    def times(self, factor: pl.Expr, units: pl.Expr) -> Product:
        high = units // _LIMB
        return Product((factor * high, factor * (units - high * _LIMB)))


def numbers(dtype: pl.DataType) -> Numbers:
    """Choose the arithmetic for the dtype of a numeric weight."""
    return Numbers() if dtype.is_integer() else FloatNumbers()


def count_where(condition: pl.Expr) -> pl.Expr:
    """Count where a condition holds. A sum of UInt8 has 64 bits, a sum of Booleans only 32."""
    return condition.cast(pl.UInt8).sum()


def weight_failures(least: pl.Expr, total: pl.Expr, name: str) -> list[Failure]:
    """The condition that a weight is negative or not finite, from the least weight and the sum."""
    negative = least < 0
    message = (
        f"weight '{name}' has or adds up to ",
        pl.when(negative).then(least).otherwise(total),
        ": weights must be finite and not negative; filter or fix these rows",
    )
    return [Failure(negative | ~total.is_finite(), message)]

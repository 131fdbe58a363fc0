"""The arithmetic of weights: sums and products that lose no digits.

Integers are added up and multiplied in Int128. Floats are added up with what their rounding
would leave out; then they become integers too, counted in a unit so small that the weights
of a slice add up to about 2^116 of them, and multiplied in two limbs.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import polars as pl

from polars_mcc._log.plan_errors import Failure, told, unless

_MOST = 2**63 - 1
_LIMB = 2**60


@dataclass(frozen=True)
class Product:
    """A product, or sums and differences of products: high, or high · 2^60 + low."""

    high: pl.Expr
    low: pl.Expr | None = None

    def __add__(self, other: Product) -> Product:
        """The sum."""
        if self.low is None or other.low is None:
            return Product(self.high + other.high)
        return Product(self.high + other.high, self.low + other.low)

    def __sub__(self, other: Product) -> Product:
        """The difference."""
        if self.low is None or other.low is None:
            return Product(self.high - other.high)
        return Product(self.high - other.high, self.low - other.low)

    def sum(self) -> Product:
        """The sum over rows."""
        return Product(self.high.sum(), None if self.low is None else self.low.sum())

    def columns(self, name: str) -> dict[str, pl.Expr]:
        """What to compute, by name."""
        return {name: self.high, **({} if self.low is None else {f"{name}:low": self.low})}

    def from_columns(self, name: str, column: Callable[[str], pl.Expr]) -> Product:
        """The same number, once its `columns` are there."""
        return Product(*map(column, self.columns(name)))

    def to_float(self) -> pl.Expr:
        """The nearest float; with two limbs, of the number divided by 2^60, or a neighbour."""
        if self.low is None:
            return self.high.cast(pl.Float64)
        # The rest is at most half of one in high: the two cannot cancel.
        carry = (self.low + _LIMB // 2) // _LIMB
        rest = self.low - carry * _LIMB
        return (self.high + carry).cast(pl.Float64) + rest.cast(pl.Float64) / float(_LIMB)


def power_of_two(number: pl.Expr) -> pl.Expr:
    """The least power of two that a positive float is at most; or its double."""
    return pl.lit(2.0).pow(number.log(2).ceil() + 1)


def sum_in_any_order(addends: pl.Expr, unit: pl.Expr, bits: int = 60) -> pl.Expr:
    """The sum of floats, as floats are added that are integers: whatever their order.

    `unit` is the same for all. In units the addends are cut after `bits` + 60 binary digits, and
    their absolute values may add up to 2^(126 - bits).
    """
    fine = float(2**bits)
    scaled = addends / unit * fine
    high = scaled.floor()
    low = ((scaled - high) * float(_LIMB)).floor()
    limbs = Product(*(limb.cast(pl.Int128, strict=False) for limb in (high, low))).sum()
    return limbs.to_float() * (unit.max() / fine)


class Numbers:
    """How weights are added up and multiplied: integers, which are their own number of units."""

    count: pl.DataType = pl.Int64()  # the dtype of counts in an answer
    wide: pl.DataType = pl.Int128()  # the dtype of their sums

    def total(self, weight: pl.Expr) -> pl.Expr:
        """The sum of wide weights."""
        return reduce(operator.add, self.parts(weight))

    def as_count(self, total: pl.Expr, *failures: Failure) -> pl.Expr:
        """A total in the dtype of counts, or an error if it is too large."""
        return unless(total, *failures, *self.failures(total)).cast(self.count)

    def widen(self, weight: pl.Expr) -> pl.Expr:
        """A weight in the wide dtype."""
        # A sum of larger ones could wrap around; one of them is too large in any case.
        return weight.cast(pl.Int128).clip(upper_bound=_MOST + 1)

    def parts(self, weight: pl.Expr) -> tuple[pl.Expr, ...]:
        """The sum of wide weights, in parts to be added up."""
        return (weight.sum(),)

    def failures(self, total: pl.Expr) -> list[Failure]:
        """What makes a total too large."""
        message = told(
            "the rows add up to at least ",
            total,
            f", more than the {_MOST} (2^63 - 1) that are counted exactly; make the weights "
            "smaller, or Float64",
        )
        return [Failure(total > _MOST, message)]

    def unit(self, total: pl.Expr) -> pl.Expr:  # noqa: ARG002
        """What to count the weights of a slice in, from their total: a number per slice."""
        return pl.lit(1.0)

    def in_units(self, weight: pl.Expr, unit: pl.Expr) -> pl.Expr:  # noqa: ARG002
        """How many units a weight is, as Int128."""
        return weight.cast(pl.Int128)

    def from_units(self, units: pl.Expr, unit: pl.Expr) -> pl.Expr:  # noqa: ARG002
        """How much a number of units weighs, in the wide dtype."""
        return units

    def product(self, a: pl.Expr, b: pl.Expr) -> Product:
        """The product of two numbers of units, each at most the total of a slice."""
        return Product(a * b)


class Floats(Numbers):
    """Weights that are floats: as exact as integers if above 10^-18 of their total."""

    count = wide = pl.Float64()

    # Below _LARGE, multiples of _GRID are added up as integers; the rest, as floats.
    _GRID = 2.0**-52
    _LARGE = 2.0**43
    # Units to a total: its square fits limbs · 2^60, with room for sums and for log2.
    _UNITS = 117

    def widen(self, weight: pl.Expr) -> pl.Expr:
        return weight.cast(pl.Float64)

    def parts(self, weight: pl.Expr) -> tuple[pl.Expr, ...]:
        """The sum of weights as a float, and what that float leaves out.

        Both are as good as exact for weights between 10^-6 and 10^12; of others, the
        second is itself added up as floats are.
        """
        grid = pl.when(weight < self._LARGE).then(weight / self._GRID).otherwise(0.0).floor()
        rest = weight - grid * self._GRID
        multiples = grid.cast(pl.Int128, strict=False).sum()
        high = multiples.cast(pl.Float64)
        left_out = (multiples - high.cast(pl.Int128)).cast(pl.Float64)
        return high * self._GRID, left_out * self._GRID + rest.sum()

    def failures(self, total: pl.Expr) -> list[Failure]:
        message = told("the weights add up to ", total, "; make them smaller")
        return [Failure(~total.is_finite(), message)]

    def unit(self, total: pl.Expr) -> pl.Expr:
        """The square root of the unit: the unit itself need not be a float."""
        bits = total.clip(math.ulp(0.0), sys.float_info.max).log(2)
        return pl.lit(2.0).pow(((bits - self._UNITS) / 2).ceil())

    def in_units(self, weight: pl.Expr, unit: pl.Expr) -> pl.Expr:
        return (weight / unit / unit).cast(pl.Int128, strict=False)

    def from_units(self, units: pl.Expr, unit: pl.Expr) -> pl.Expr:
        return units.cast(pl.Float64) * unit * unit

    def product(self, a: pl.Expr, b: pl.Expr) -> Product:
        """The product, but for less than one in the low limb."""
        a_high, b_high = a // _LIMB, b // _LIMB
        a_low, b_low = a - a_high * _LIMB, b - b_high * _LIMB
        low = a_high * b_low + a_low * b_high + a_low * b_low // _LIMB
        return Product(a_high * b_high, low)


def numbers(dtype: pl.DataType) -> Numbers:
    """The arithmetic of a weight that is a number."""
    return Numbers() if dtype.is_integer() else Floats()


def count_where(condition: pl.Expr) -> pl.Expr:
    """How often a condition holds: a sum of bytes has 64 bits, a sum of Booleans only 32."""
    return condition.cast(pl.UInt8).sum()


def weight_failures(least: pl.Expr, total: pl.Expr, name: str) -> list[Failure]:
    """What makes weights no weights, from the least of them and their total."""
    negative = least < 0
    message = told(
        f"weight '{name}' has or adds up to ",
        pl.when(negative).then(least).otherwise(total),
        ": weights must be finite and not negative; filter or mend these rows",
    )
    return [Failure(negative | ~total.is_finite(), message)]

"""Expressions that know their derivatives, by the rules of arithmetic.

A score is written once, as a function of columns. Of `pl.col` it is an expression, which scores
slices. Of a `Tape` it is a `Dual`: the same expression, with its derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import polars as pl

Columns: TypeAlias = Callable[[str], pl.Expr]
"""Gives a column by its name: `pl.col`, or a `Tape`."""
_IntoNumber: TypeAlias = Any
"""A number, or an expression."""
_Rule: TypeAlias = Callable[[pl.Expr], pl.Expr]
"""From the derivative of a part, how it adds to the derivative of the whole."""

_ONE = pl.lit(1.0, pl.Float64)


class NoDerivativeError(ValueError):
    """A part of a score is an expression without a derivative."""

    def __init__(self, part: pl.Expr) -> None:
        """Name the expression."""
        super().__init__(str(part))
        self.part = part


class Dual(pl.Expr):
    """An expression per row, and its derivative by each column. A missing derivative is 0.

    Arithmetic with a Dual gives a Dual. A method without a rule here, such as a comparison or a
    median, gives a plain expression. That can be a condition, but not a part of a score.
    """

    def __init__(
        self, tape: Tape, value: pl.Expr, by: Mapping[str, pl.Expr], only: pl.Expr | None = None
    ) -> None:
        """Add derivatives to an expression. `only` is the condition of a filter."""
        self.__dict__.update(value.__dict__)
        self.tape, self.value, self.by, self.only = tape, value, by, only

    def __add__(self, other: _IntoNumber) -> Dual:
        """Add, by the sum rule."""
        other = self.tape.number(other)
        return _joined(self.value + other.value, (self, _same), (other, _same))

    def __mul__(self, other: _IntoNumber) -> Dual:
        """Multiply, by the product rule."""
        other = self.tape.number(other)
        rules = _times(other.value), _times(self.value)
        return _joined(self.value * other.value, (self, rules[0]), (other, rules[1]))

    def __truediv__(self, other: _IntoNumber) -> Dual:
        """Divide, by the quotient rule.

        A product with the reciprocal has the same last bit in each run. A quotient may not: Polars
        divides some columns by a product with the reciprocal, and others not. Which ones may change
        from run to run.
        """
        other = self.tape.number(other)
        inverse = 1 / other.value
        ratio = self.value * inverse
        return _joined(ratio, (self, _times(inverse)), (other, _times(-ratio * inverse)))

    def pow(self, exponent: _IntoNumber) -> Dual:
        """Raise to a power."""
        exponent = self.tape.number(exponent)
        x, n = self.value, exponent.value
        rules = _times(n * x.pow(n - 1)), _times(x.pow(n) * x.log())
        return _joined(x.pow(n), (self, rules[0]), (exponent, rules[1]))

    def __sub__(self, other: _IntoNumber) -> Dual:
        """Subtract."""
        other = self.tape.number(other)
        return _joined(self.value - other.value, (self, _same), (other, _times(pl.lit(-1.0))))

    def __neg__(self) -> Dual:
        """Change the sign."""
        return self._of(-self.value, pl.lit(-1.0))

    def __pow__(self, exponent: _IntoNumber) -> Dual:
        """Raise to a power."""
        return self.pow(exponent)

    def __radd__(self, other: _IntoNumber) -> Dual:
        """Add to a number."""
        return self.tape.number(other) + self

    def __rsub__(self, other: _IntoNumber) -> Dual:
        """Subtract from a number."""
        return self.tape.number(other) - self

    def __rmul__(self, other: _IntoNumber) -> Dual:
        """Multiply a number."""
        return self.tape.number(other) * self

    def __rtruediv__(self, other: _IntoNumber) -> Dual:
        """Divide a number."""
        return self.tape.number(other) / self

    def __rpow__(self, base: _IntoNumber) -> Dual:
        """Raise a number to a power."""
        return self.tape.number(base).pow(self)

    def abs(self) -> Dual:
        """The absolute value."""
        return self._of(self.value.abs(), self.value.sign())

    def sqrt(self) -> Dual:
        """The square root."""
        return self._of(self.value.sqrt(), 0.5 / self.value.sqrt())

    def exp(self) -> Dual:
        """The exponential."""
        return self._of(self.value.exp(), self.value.exp())

    def log(self, base: _IntoNumber = math.e) -> Dual:
        """The logarithm to a base that is a number."""
        return self._of(self.value.log(base), 1 / self.value / math.log(base))

    def clip(self, lower_bound: _IntoNumber = None, upper_bound: _IntoNumber = None) -> Dual:
        """Cut at numbers."""
        cut = self.value.clip(lower_bound, upper_bound)
        return _joined(cut, (self, _where(cut == self.value)))

    def fill_null(self, value: _IntoNumber = None, *_: object) -> Dual:
        """Put a number where there is none."""
        fill, is_null = self.tape.number(value), self.value.is_null()
        filled = self.value.fill_null(fill.value)
        return _joined(filled, (self, _where(~is_null)), (fill, _where(is_null)))

    def drop_nulls(self) -> Dual:
        """The same: aggregations ignore nulls anyway."""
        return self

    def cast(self, dtype: _IntoNumber, **options: _IntoNumber) -> pl.Expr:
        """Cast to a float. Other casts are step functions, without a derivative."""
        cast = self.value.cast(dtype, **options)
        return _joined(cast, (self, _same)) if dtype in {pl.Float64, pl.Float32} else cast

    def alias(self, name: str) -> Dual:
        """Rename."""
        return _joined(self.value.alias(name), (self, _same))

    def filter(self, *predicates: _IntoNumber, **constraints: _IntoNumber) -> Dual:
        """Leave out rows from aggregations."""
        holds = [*predicates, *(pl.col(name) == value for name, value in constraints.items())]
        holds += [] if self.only is None else [self.only]
        only = self.tape.column(pl.all_horizontal(holds).fill_null(value=False))
        return Dual(self.tape, self.value, self.by, only)

    def count(self) -> Dual:
        """Count the values."""
        return Dual(self.tape, self.tape.column(self._counts.sum()).cast(pl.Float64), {})

    def sum(self) -> Dual:
        """Add up the rows."""
        counts = self._counts
        addends = pl.when(counts).then(self.value).cast(pl.Float64)
        by = {name: pl.when(counts).then(one).otherwise(0.0) for name, one in self.by.items()}
        return self.tape.summed(addends, by)

    def mean(self) -> Dual:
        """The mean of the rows; null without any value."""
        number = self.count().value
        share, total = pl.when(number > 0).then(1 / number), self.sum()
        return _joined(total.value * share, (total, _times(share)))

    def min(self) -> Dual:
        """The least value. Rows that have it share the derivative."""
        return self._end(pl.Expr.min)

    def max(self) -> Dual:
        """The largest value. Rows that have it share the derivative."""
        return self._end(pl.Expr.max)

    def _end(self, end_of: Callable[[pl.Expr], pl.Expr]) -> Dual:
        end = self.tape.column(end_of(pl.when(self._counts).then(self.value)))
        return Dual(self.tape, end, self.filter(self.value == end).mean().by)

    def _of(self, value: pl.Expr, slope: pl.Expr) -> Dual:
        return _joined(value, (self, _times(slope)))

    @property
    def _counts(self) -> pl.Expr:
        """Whether an aggregation uses the row."""
        known = self.value.is_not_null()
        return known if self.only is None else known & self.only


class Tape:
    """Expressions over the rows of slices. Each aggregation is a column, computed once.

    Sums follow the order of the rows, so a sorted frame gives the same sums each time.

    Args:
        by: The derivatives of the columns of a frame, by the columns to differentiate by.
        within_slice: Turns an aggregation into a column.
    """

    def __init__(
        self,
        by: Mapping[str, Mapping[str, float]],
        within_slice: Callable[[pl.Expr], pl.Expr],
    ) -> None:
        """Start with the columns of a frame."""
        self._by: dict[str, Mapping[str, pl.Expr]] = {
            name: {
                other: _ONE if slope == 1 else pl.lit(slope, pl.Float64)
                for other, slope in one.items()
            }
            for name, one in by.items()
        }
        self._within_slice = within_slice
        self._columns: dict[str, pl.Expr] = {}
        self._sums: dict[str, Mapping[str, pl.Expr]] = {}  # how each row moves a sum

    def __call__(self, name: str) -> Dual:
        """A column of the frame."""
        return Dual(self, pl.col(name), self._by.get(name, {}))

    def define(self, columns: Mapping[str, pl.Expr]) -> None:
        """Name expressions over the columns of the frame."""
        for name, value in columns.items():
            number = self.number(value)
            self._columns[name], self._by[name] = number.value, number.by

    def number(self, part: object) -> Dual:
        """A part of a score. A plain expression must not use columns that have derivatives."""
        if isinstance(part, Dual):
            return part
        if not isinstance(part, pl.Expr):
            return Dual(self, pl.lit(part), {})
        if any(self._by.get(name) for name in part.meta.root_names()):
            raise NoDerivativeError(part)
        number = part if part.meta.is_literal() else self.column(part)
        return Dual(self, number.cast(pl.Float64), {})

    def column(self, value: pl.Expr) -> pl.Expr:
        """The column with the value of an expression in its slice."""
        value = self._within_slice(value)
        known = (name for name, other in self._columns.items() if other.meta.eq(value))
        name = next(known, f"tape:{len(self._columns)}")
        self._columns[name] = value
        return pl.col(name)

    def summed(self, addends: pl.Expr, by: Mapping[str, pl.Expr]) -> Dual:
        """The column with the sum of rows. `by` says how each row moves the sum."""
        total = self.column(addends.sum())
        name = total.meta.output_name()
        self._sums[name], self._by[name] = by, {name: _ONE} if by else {}
        return self(name)

    def with_columns(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Add all columns to the frame. A column comes after the columns that it needs."""
        levels: dict[str, int] = {}
        for name, value in self._columns.items():
            needed = (levels.get(other, 0) for other in value.meta.root_names())
            levels[name] = 1 + max(needed, default=0)
        for level in sorted({*levels.values()}):
            at_level = {
                name: value for name, value in self._columns.items() if levels[name] == level
            }
            frame = frame.with_columns(**at_level)
        return frame

    def gradient(self, score: Dual) -> dict[str, pl.Expr]:
        """How far each row moves a score of its slice, per unit of each column."""
        moves = dict(score.by)
        for name, by in reversed(self._sums.items()):
            if name not in moves:
                continue
            move = _times(moves.pop(name))
            for other, one in by.items():
                # A sum over sums: all rows move it together.
                step = move(self._within_slice(one.sum()) if other in self._sums else one)
                moves[other] = moves[other] + step if other in moves else step
        return moves


def except_where(undefined: pl.Expr, number: pl.Expr, instead: float | None) -> pl.Expr:
    """A number, but `instead` where it is undefined."""
    known = number.value if isinstance(number, Dual) else number
    value = pl.when(undefined).then(pl.lit(instead, pl.Float64)).otherwise(known)
    if not isinstance(number, Dual):
        return value
    return _joined(value, (number, _where(~undefined.fill_null(value=False))))


def _joined(value: pl.Expr, *parts: tuple[Dual, _Rule]) -> Dual:
    """A function of parts, each with the rule for its derivative."""
    by: dict[str, pl.Expr] = {}
    for part, rule in parts:
        for name, one in part.by.items():
            by[name] = by[name] + rule(one) if name in by else rule(one)
    filters = [part.only for part, _ in parts if part.only is not None]
    if any(not filters[0].meta.eq(other) for other in filters[1:]):
        raise NoDerivativeError(value)
    return Dual(parts[0][0].tape, value, by, filters[0] if filters else None)


def _same(one: pl.Expr) -> pl.Expr:
    return one


def _times(slope: pl.Expr) -> _Rule:
    return lambda one: slope if one is _ONE else slope * one


def _where(holds: pl.Expr) -> _Rule:
    """1 where a condition holds, else 0; 0 also times infinity."""
    return lambda one: pl.when(holds).then(one).otherwise(0.0)

"""Numbers of classes, pairs or slices as arrays that know their derivatives.

A score is written once, as a function of columns. Of `pl.col` it is an expression, which scores
slices exactly. Of `ArrayColumns` it is a `Column`: the same score as an array, and how far each row
moves it. A method of a `Column` has the name of the method of Polars that it stands for.

An array has a number per row, and NaN where Polars has null. It may have a first axis more, for
several tables of the same rows.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from polars_mcc._metrics.slice_sums import Flags, Floats, Segments

_Rule: TypeAlias = float | Floats | Flags | Callable[[Floats], Floats]
"""From how far a column moves a score, how far it does so through one of its parts: by a slope,
only where a condition holds, or by a function."""


class NoDerivativeError(ValueError):
    """A part of a score has no derivative."""


@dataclass(frozen=True)
class ArrayColumns:
    """Gives the columns of classes or of pairs by name, as `pl.col` does."""

    rows: Segments
    arrays: Mapping[str, Column | Floats]
    """The columns that have numbers; those that are a `Column` have derivatives."""
    labels: pl.DataFrame = field(default_factory=pl.DataFrame)
    """The columns that have no derivative: labels. Expressions may use them."""

    def __call__(self, name: str) -> Any:  # noqa: ANN401 - a Column, or OfLabels
        """A column."""
        if name in self.labels.columns:
            return OfLabels(self, pl.col(name))
        column = self.arrays[name]
        return column if isinstance(column, Column) else Column(self, column)

    def mean_distance(self, x: Any, y: Any, share: Any) -> Any:  # noqa: ANN401 - as above
        """The mean of abs(x - y) for independent labels: see `_mean_distance` of weighted kappa."""
        n, slices = self.rows.size, np.tile(self.rows.of_row, 2)
        ends = np.concatenate([self.number(side, is_total=False).value for side in (x, y)])
        order = np.lexsort([ends, slices])
        slices, ends = slices[order], ends[order]
        rows = Segments.of(slices, len(self.rows.starts))
        gaps = np.where(np.diff(slices, append=-1) == 0, np.diff(ends, append=0.0), 0.0)
        own = np.broadcast_to(share.value, (*share.value.shape[:-1], n))
        f, g = (
            rows.cumulated(np.concatenate(sides, axis=-1)[..., order])
            for sides in ((own, 0 * own), (0 * own, own))
        )

        def by_share(of_slice: Floats) -> Floats:
            slopes = np.empty_like(f), np.empty_like(g)
            for slope, other in zip(slopes, (g, f), strict=True):
                step = gaps * (1 - 2 * other)
                slope[..., order] = rows.spread(rows.sum(step)) - rows.cumulated(step) + step
            return self.rows.spread(of_slice) * (slopes[0][..., :n] + slopes[1][..., n:])

        total = rows.sum(gaps * (f * (1 - g) + g * (1 - f)))
        return Column(self, total, [(share, by_share)], is_total=True)

    def number(self, part: object, *, is_total: bool) -> Column:
        """A number, or an expression of labels, as a column without derivatives."""
        if isinstance(part, Column):
            return part
        if isinstance(part, (OfLabels, pl.Expr)):
            return self._of_labels(_expression(part))
        if part is None:
            part = math.nan
        return Column(self, np.full(1, float(part)), is_total=is_total)  # type: ignore[arg-type]

    def _of_labels(self, part: pl.Expr) -> Column:
        """The column of an expression that has no derivative, because it is of labels alone."""
        if unknown := {*part.meta.root_names()} - {*self.labels.columns}:
            msg = f"{part} is an expression of {', '.join(map(repr, sorted(unknown)))}"
            raise NoDerivativeError(msg)
        slices = pl.Series("polars_mcc:slice", self.rows.of_row, pl.UInt32)
        [values] = self.labels.select(part.over(slices).cast(pl.Float64))
        return Column(self, np.broadcast_to(values.to_numpy(), (self.rows.size,)))


def _arithmetic(
    how: Callable[[Any, Any], Any], slopes: Callable[[Any, Any, Any], tuple[_Rule, _Rule]]
) -> Callable[[Column, object], Column]:
    """An operation z of x and y, with its slopes by both, as functions of x, y and z."""

    def operation(self: Column, other: object) -> Column:
        x, y = self.beside(other)
        value = how(x.value, y.value)
        by_x, by_y = slopes(x.value, y.value, value)
        return _made(value, (x, by_x), (y, by_y))

    return operation


def _condition(how: Callable[[Any, Any], Any]) -> Callable[[Column, object], Column]:
    """A condition on two columns. It is 1, 0, or NaN where a missing number hides it."""

    def condition(self: Column, other: object) -> Column:
        x, y = self.beside(other)
        return x.plain(how(x.value, y.value))

    return condition


def _comparison(how: Callable[[Any, Any], Any]) -> Callable[[Column, object], Column]:
    """A comparison of two numbers."""
    return _condition(lambda x, y: np.where(np.isnan(x) | np.isnan(y), math.nan, how(x, y)))


def _reflected(name: str) -> Callable[[Column, object], Column]:
    """An operation with a number on its left."""
    return lambda self, other: getattr(self.as_number(other), name)(self)


class Column:
    """A number per row, or per slice (`is_total`), and how it follows from other columns."""

    __array_ufunc__ = None  # An array times a Column is a Column.

    def __init__(
        self,
        columns: ArrayColumns,
        value: Floats,
        parts: Sequence[tuple[Column, _Rule]] = (),
        *,
        only: Floats | None = None,
        is_total: bool = False,
        is_variable: bool = False,
    ) -> None:
        """Remember the parts, each with the rule for its derivative, and the rows of a filter.

        A score has derivatives by what `is_variable`.
        """
        self.columns, self.value = columns, value
        self.parts: list[tuple[Column, _Rule]] = [
            (part, rule) for part, rule in parts if part.varies
        ]
        self.only, self.is_total = only, is_total
        self.varies: bool = is_variable or bool(self.parts)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """Raise an error for a method that has no derivative."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise NoDerivativeError(f"'{name}' has no derivative; there are {', '.join(METHODS)}")

    __add__ = _arithmetic(operator.add, lambda *_: (1.0, 1.0))
    __sub__ = _arithmetic(operator.sub, lambda *_: (1.0, -1.0))
    __mul__ = _arithmetic(operator.mul, lambda x, y, _: (y, x))
    __truediv__ = _arithmetic(operator.truediv, lambda _, y, ratio: (1 / y, -ratio / y))

    def pow(self, exponent: object) -> Column:
        """Raise to a power."""
        x, n = self.beside(exponent)
        power = x.value**n.value
        slope = n.value * x.value ** (n.value - 1)
        by_n = (n, lambda a: a * power * np.log(x.value))
        return _made(power, (x, slope), by_n)

    def __neg__(self) -> Column:
        """Change the sign."""
        return _made(-self.value, (self, -1.0))

    __pow__ = pow  # noqa: A003 - the method above
    __radd__, __rsub__ = _reflected("__add__"), _reflected("__sub__")
    __rmul__, __rtruediv__ = _reflected("__mul__"), _reflected("__truediv__")
    __rpow__ = _reflected("pow")

    __gt__, __lt__ = _comparison(operator.gt), _comparison(operator.lt)
    __ge__, __le__ = _comparison(operator.ge), _comparison(operator.le)
    __eq__ = _comparison(operator.eq)  # type: ignore[assignment]
    __ne__ = _comparison(operator.ne)  # type: ignore[assignment]
    __hash__ = object.__hash__
    __and__ = _condition(lambda x, y: np.where((x == 0) | (y == 0), 0.0, x * y))
    __or__ = _condition(lambda x, y: np.where((x == 1) | (y == 1), 1.0, x + y))

    def __invert__(self) -> Column:
        """Whether a condition does not hold."""
        return self.plain(1 - self.value)

    def is_null(self) -> Column:
        """Whether there is no number."""
        return self.plain(np.isnan(self.value) * 1.0)

    def is_not_null(self) -> Column:
        """Whether there is a number."""
        return ~self.is_null()

    def abs(self) -> Column:
        """The absolute value."""
        return _made(np.abs(self.value), (self, np.sign(self.value)))

    def sqrt(self) -> Column:
        """The square root."""
        root = np.sqrt(self.value)
        return _made(root, (self, 0.5 / root))

    def exp(self) -> Column:
        """The exponential."""
        value = np.exp(self.value)
        return _made(value, (self, value))

    def log(self, base: float = math.e) -> Column:
        """The logarithm to a base."""
        scale = math.log(base)
        return _made(np.log(self.value) / scale, (self, 1 / self.value / scale))

    def clip(self, lower_bound: float | None = None, upper_bound: float | None = None) -> Column:
        """Cut at numbers."""
        low = -math.inf if lower_bound is None else lower_bound
        cut = np.clip(self.value, low, math.inf if upper_bound is None else upper_bound)
        return self.where(cut == self.value, cut)

    def where(self, holds: Flags, instead: Floats | float) -> Column:
        """The number where a condition holds, and a number without derivative elsewhere."""
        return _made(np.where(holds, self.value, instead), (self, holds))

    def except_where(self, undefined: Column, instead: float | None) -> Column:
        """The number, but `instead` where it is undefined."""
        holds = undefined if self.is_total else undefined.per_row()
        return self.where(holds.value != 1, math.nan if instead is None else instead)

    def fill_null(self, value: object) -> Column:
        """Put a number where there is none."""
        x, fill = self.beside(value)
        known = ~np.isnan(x.value)
        filled = np.where(known, x.value, fill.value)
        return _made(filled, (x, known), (fill, ~known))

    def drop_nulls(self) -> Column:
        """The same: aggregations ignore nulls anyway."""
        return self

    def cast(self, dtype: object, **_: object) -> Column:
        """Cast to a float. Other casts are step functions, without a derivative."""
        if dtype not in {pl.Float64, pl.Float32}:
            raise NoDerivativeError(f"a cast to {dtype} has no derivative")
        return self

    def alias(self, _: str) -> Column:
        """The same: the name is read from the expression."""
        return self

    def filter(self, *predicates: object, **constraints: object) -> Column:
        """Leave out rows from aggregations."""
        conditions = [
            *predicates,
            *(self.columns(name) == is_ for name, is_ in constraints.items()),
        ]
        only = np.asarray(1.0 if self.only is None else self.only)
        for condition in map(self.as_number, conditions):
            holds = condition.per_row().value == 1
            only = only * holds
        rules = [(self, 1.0)]
        return Column(self.columns, self.value, rules, only=only, is_total=self.is_total)

    def count(self) -> Column:
        """Count the numbers."""
        number = self.columns.rows.sum(self._used.astype(float))
        return Column(self.columns, number, is_total=True)

    def sum(self) -> Column:
        """Add up the rows."""
        if self.is_total:
            return self
        used, rows = self._used, self.columns.rows
        total = rows.sum(np.where(used, self.value, 0.0))
        rules = [(self, lambda a: np.where(used, rows.spread(a), 0.0))]
        return Column(self.columns, total, rules, is_total=True)

    def mean(self) -> Column:
        """The mean of the rows; NaN without any."""
        if self.is_total:
            return self
        number = self.count()
        return self.sum() / number.where(number.value > 0, math.nan)

    def min(self) -> Column:
        """The least number. Rows that have it share the derivative."""
        return self._end(Segments.min)

    def max(self) -> Column:
        """The largest number. Rows that have it share the derivative."""
        return self._end(Segments.max)

    def of_slices(self) -> Column:
        """The number of each slice, where all its rows have the same."""
        if self.is_total:
            return self
        rows = self.columns.rows
        value = np.broadcast_to(self.value, (*self.value.shape[:-1], rows.size))
        # All rows of a slice have the same number, so each has a part of what moves it.
        rules = [(self, lambda a: rows.spread(a / np.maximum(rows.lengths, 1)))]
        return Column(self.columns, rows.first(value), rules, is_total=True)

    def plain(self, value: Floats) -> Column:
        """Other numbers of the same rows, without derivatives."""
        return Column(self.columns, value, is_total=self.is_total)

    def gradient(self, *of: Column, each_row: bool = False) -> list[Floats]:
        """How far each row of other columns moves this number: of its slice, or of `each_row`."""
        score = self if each_row else self.of_slices()
        order: list[Column] = []  # each column after its parts
        seen: set[int] = set()

        def visit(column: Column) -> None:
            if id(column) not in seen:
                seen.add(id(column))
                for part, _ in column.parts:
                    visit(part)
                order.append(column)

        visit(score)
        slopes: dict[int, Any] = {id(score): np.ones_like(score.value)}
        for column in reversed(order):
            for part, rule in column.parts:
                through_column = _chained(slopes[id(column)], rule)
                slopes[id(part)] = slopes.get(id(part), 0.0) + through_column
        shape = (*score.value.shape[:-1], self.columns.rows.size)
        return [np.broadcast_to(slopes.get(id(column), 0.0), shape) for column in of]

    def as_number(self, other: object) -> Column:
        """A number as a column."""
        return self.columns.number(other, is_total=self.is_total)

    def beside(self, other: object) -> tuple[Column, Column]:
        """Both columns with a number per row, if one of them has; else per slice."""
        other = self.as_number(other)
        filters = [side.only for side in (self, other) if side.only is not None]
        if len(filters) > 1 and not np.array_equal(filters[0], filters[1]):
            raise NoDerivativeError("it computes with two columns that are filtered differently")
        if self.is_total == other.is_total:
            return self, other
        return self.per_row(), other.per_row()

    def per_row(self) -> Column:
        """The same numbers, one per row."""
        if not self.is_total:
            return self
        rows = self.columns.rows
        if self.value.shape[-1] != len(rows.starts):  # one number for all
            return Column(self.columns, self.value, self.parts)
        return Column(self.columns, rows.spread(self.value), [(self, rows.sum)])

    @property
    def _used(self) -> Flags:
        """Whether an aggregation uses the row."""
        known = ~np.isnan(self.value)
        return known if self.only is None else known & (self.only == 1)

    def _end(self, end_of: Callable[[Segments, Floats], Floats]) -> Column:
        if self.is_total:
            return self
        rows = self.columns.rows
        end = end_of(rows, np.where(self._used, self.value, math.nan))
        are_ends = self.filter(self.plain((self.value == rows.spread(end)) * 1.0))
        return Column(self.columns, end, [(are_ends.mean(), 1.0)], is_total=True)


class OfLabels:
    """An expression of labels. Polars computes it; with a `Column` it is one."""

    def __init__(self, columns: ArrayColumns, of: Any) -> None:  # noqa: ANN401
        """Remember the expression, or a namespace of its methods."""
        self.columns, self.of = columns, of

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """A method of the expression; of a column, if an argument is one."""
        attribute = getattr(self.of, name)
        return self._method(name) if callable(attribute) else OfLabels(self.columns, attribute)

    def _method(self, name: str) -> Callable[..., object]:
        def method(*values: object, **options: object) -> object:
            if any(isinstance(value, Column) for value in (*values, *options.values())):
                return getattr(self.columns.number(self, is_total=False), name)(*values, **options)
            return OfLabels(
                self.columns, getattr(self.of, name)(*map(_expression, values), **options)
            )

        return method

    __hash__ = object.__hash__


def _operator(name: str) -> Callable[..., object]:
    return lambda self, *other: self._method(name)(*other)


for _name in ("add", "sub", "mul", "truediv", "pow", "floordiv", "mod", "and", "or"):
    setattr(OfLabels, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(OfLabels, f"__r{_name}__", _operator(f"__r{_name}__"))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "invert"):
    setattr(OfLabels, f"__{_name}__", _operator(f"__{_name}__"))


def _expression(part: object) -> Any:  # noqa: ANN401
    return part.of if isinstance(part, OfLabels) else part


METHODS = (
    *("+ - * / **", "comparisons", "& | ~", "abs", "alias", "cast", "clip", "count", "drop_nulls"),
    *("exp", "fill_null", "filter", "is_not_null", "is_null", "log", "max", "mean", "min", "pow"),
    *("sqrt", "sum"),
)
"""What a `Column` can do."""


def _made(value: Floats, *parts: tuple[Column, _Rule]) -> Column:
    """A function of parts that have as many numbers, each with the rule for its derivative."""
    [(first, _), *_] = parts
    filters = (part.only for part, _ in parts if part.only is not None)
    return Column(first.columns, value, parts, only=next(filters, None), is_total=first.is_total)


def _chained(slope: Floats, rule: _Rule) -> Floats:
    """The slope of a score by a part of a column, from its slope by the column. 0 · ∞ is 0."""
    if callable(rule):
        return rule(slope)
    if isinstance(rule, np.ndarray) and rule.dtype == np.bool_:
        return np.where(rule, slope, 0.0)
    return np.where(slope == 0, 0.0, slope * rule)

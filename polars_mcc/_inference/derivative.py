"""Expressions → their derivatives, by the rules of arithmetic.

Polars gives the parts of an expression (`Expr.meta.serialize`). So a score is written once, as an
expression over the classes of a slice. Its derivatives follow from this expression.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from io import StringIO
from typing import Any, TypeAlias

import polars as pl

Node: TypeAlias = Any
"""A part of an expression, as Polars writes it in JSON."""

_ONE = pl.lit(1.0)
_COUNTS = {"Count", "NUnique"}
_FLOATS = [{"Literal": name} for name in ("Float64", "Float32")]


class NoDerivativeError(ValueError):
    """A part of an expression has no derivative here; the message names the part."""


@dataclass(frozen=True)
class _Where:
    """A derivative of 1 where `holds` is true, else 0; times any number, the 0 stays 0."""

    holds: pl.Expr


_Step: TypeAlias = "pl.Expr | _Where"


@dataclass(frozen=True)
class Value:
    """An expression per row, and its derivative by each column. A missing derivative is 0."""

    value: pl.Expr
    by: Mapping[str, pl.Expr]
    only: pl.Expr | None = None
    """The condition of a filter, if there is one."""


@dataclass(frozen=True)
class _Aggregate:
    """A column that is an aggregation over the rows of a slice, and how each row moves it."""

    level: int  # 0: over columns of the frame; 1: over aggregations of level 0; and so on
    value: pl.Expr
    by: Mapping[str, pl.Expr]


class Tape:
    """Expressions over the rows of slices. Each aggregation is a column, computed once.

    Sums follow the order of the rows, so a sorted frame gives the same sums each time.

    Args:
        by: The columns to differentiate by.
        within_slice: Turns an aggregation into a column.
        definitions: Columns that are expressions over the columns of `by`.
    """

    def __init__(
        self,
        by: Collection[str],
        within_slice: Callable[[pl.Expr], pl.Expr],
        definitions: Mapping[str, pl.Expr] | None = None,
    ) -> None:
        """Start with no expression."""
        self._by = frozenset(by)
        self._within_slice = within_slice
        self._definitions = definitions or {}
        self._defined: dict[str, Value] = {}
        self._names: dict[str, str] = {}
        self._aggregates: dict[str, _Aggregate] = {}

    def read(self, expression: pl.Expr) -> Value:
        """Rewrite an expression with its aggregations as columns, or raise NoDerivativeError."""
        return self._value(json.loads(expression.meta.serialize(format="json")))

    def with_aggregates(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Add the aggregations of all expressions that were read, as columns."""
        for level in sorted({aggregate.level for aggregate in self._aggregates.values()}):
            frame = frame.with_columns(
                aggregate.value.alias(name)
                for name, aggregate in self._aggregates.items()
                if aggregate.level == level
            )
        return frame

    def gradient(self, value: Value) -> dict[str, pl.Expr]:
        """How far each row moves a value of its slice, per unit of each column."""
        of_rows = {name: [one] for name, one in value.by.items() if name in self._by}
        moves = {name: [one] for name, one in value.by.items() if name not in self._by}
        in_turn = sorted(self._aggregates.items(), key=lambda item: -item[1].level)
        for name, aggregate in in_turn:
            if name not in moves:
                continue
            move = _added_up(moves[name])
            for other, one in aggregate.by.items():
                if other in self._by:
                    of_rows.setdefault(other, []).append(move * one)
                else:  # An aggregation of aggregations.
                    moves.setdefault(other, []).append(move * self._within_slice(one.sum()))
        return {name: _added_up(parts) for name, parts in of_rows.items()}

    def _value(self, node: Node) -> Value:
        """A part of an expression, with its derivatives."""
        if not self._depends(node):
            return Value(self._expression(node), {})
        (kind, content), *_ = node.items()
        rules: dict[str, Callable[[Node, Node], Value]] = {
            "Column": lambda _, name: self._column(name),
            "Agg": lambda node, _: self._column(self._aggregate(node)),
            "Alias": lambda _, parts: self._value(parts[0]),
            "Cast": self._cast,
            "Filter": self._filtered,
            "Ternary": self._either,
            "BinaryExpr": lambda node, part: self._chained(
                node, [part["left"], part["right"]], _OPERATORS.get(part["op"])
            ),
            "Function": self._function,
        }
        if kind not in rules:
            raise NoDerivativeError(_name_of(node))
        return rules[kind](node, content)

    def _column(self, name: str) -> Value:
        if name in self._definitions and name not in self._defined:
            self._defined[name] = Value(pl.col(name), self.read(self._definitions[name]).by)
        return self._defined.get(name) or Value(pl.col(name), {name: _ONE})

    def _cast(self, node: Node, content: Node) -> Value:
        if content["dtype"] not in _FLOATS:  # A step function has no derivative.
            raise NoDerivativeError(_name_of({"Cast": content}))
        return self._chained(node, [content["expr"]], lambda *_: [_ONE])

    def _filtered(self, node: Node, content: Node) -> Value:  # noqa: ARG002 - as in other rules
        of_all = self._value(content["input"])
        return Value(of_all.value, of_all.by, self._expression(content["by"]))

    def _either(self, node: Node, content: Node) -> Value:
        holds = self._expression(content["predicate"]).fill_null(value=False)
        sides = [content["truthy"], content["falsy"]]
        return self._chained(node, sides, lambda *_: [_Where(holds), _Where(~holds)])

    def _function(self, node: Node, content: Node) -> Value:
        name, parts = _name_of(content["function"]), content["input"]
        if name == "DropNulls":  # Aggregations ignore nulls anyway.
            return self._value(parts[0])
        if name == "Clip":
            return self._chained(node, parts, _clip(content["function"]["Clip"]))
        return self._chained(node, parts, _FUNCTIONS.get(name))

    def _chained(self, node: Node, nodes: Sequence[Node], rule: _Rule | None) -> Value:
        """A function of parts; `rule` gives its derivatives by these parts."""
        if rule is None:
            raise NoDerivativeError(_name_of(node))
        parts = [self._value(part) for part in nodes]
        filters = [part.only for part in parts if part.only is not None]
        if any(not filters[0].meta.eq(other) for other in filters[1:]):
            raise NoDerivativeError(_name_of({"Filter": {}}))
        by: dict[str, list[pl.Expr]] = {}
        for part, step in zip(parts, rule(*(part.value for part in parts)), strict=True):
            for name, one in part.by.items():
                by.setdefault(name, []).append(_times(step, one))
        value = self._expression(_unfiltered(node) if filters else node)
        derivatives = {name: _added_up(products) for name, products in by.items()}
        return Value(value, derivatives, filters[0] if filters else None)

    def _expression(self, node: Node) -> pl.Expr:
        """A part of an expression, with columns in place of its aggregations."""
        return _as_it_is(self._replaced(node))

    def _replaced(self, node: Node) -> Node:
        if _is_aggregation(node):
            return {"Column": self._aggregate(node)}
        if isinstance(node, dict):
            return {key: self._replaced(part) for key, part in node.items()}
        return [self._replaced(part) for part in node] if isinstance(node, list) else node

    def _depends(self, node: Node) -> bool:
        """Whether a part of an expression uses a column of `by`, so that it has a derivative."""
        if isinstance(node, dict) and isinstance(column := node.get("Column"), str):
            return column in self._by or column in self._definitions
        if _is_aggregation(node) and (node == "Len" or _COUNTS & {*node["Agg"]}):
            return False
        parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        return any(map(self._depends, parts))

    def _aggregate(self, node: Node) -> str:
        """The column of an aggregation."""
        text = json.dumps(node)
        if text not in self._names:
            name = self._names[text] = f"aggregate:{len(self._names)}"
            self._aggregates[name] = self._aggregated(node, name)
        return self._names[text]

    def _aggregated(self, node: Node, name: str) -> _Aggregate:
        """How an aggregation is computed, and how a row moves it."""
        if not self._depends(node):
            return _Aggregate(0, self._within_slice(_as_it_is(node)), {})
        [(kind, content)] = node["Agg"].items()
        if kind not in {"Sum", "Mean", "Min", "Max"}:
            raise NoDerivativeError(_name_of(node["Agg"]))
        part = self._value(content.get("input", content) if kind in {"Min", "Max"} else content)
        level = 1 + max((self._level(column) for column in _columns(part)), default=-1)
        counts = part.value.is_not_null()
        counts = counts if part.only is None else counts & part.only.fill_null(value=False)
        here = pl.when(counts).then(part.value).cast(pl.Float64)
        if kind in {"Sum", "Mean"}:
            number = self._within_slice(counts.sum()).cast(pl.Float64)
            share = _ONE if kind == "Sum" else pl.when(number > 0).then(1 / number)
            total = self._within_slice(here.sum())
            by = {
                column: pl.when(counts).then(_times(share, one)).otherwise(0.0)
                for column, one in part.by.items()
            }
            return _Aggregate(level, _times(share, total), by)
        end = self._within_slice(here.min() if kind == "Min" else here.max())
        is_end = (here == pl.col(name)).fill_null(value=False)
        share = 1 / self._within_slice(is_end.sum()).cast(pl.Float64)
        by = {
            column: pl.when(is_end).then(_times(share, one)).otherwise(0.0)
            for column, one in part.by.items()
        }
        return _Aggregate(level, end, by)

    def _level(self, column: str) -> int:
        return self._aggregates[column].level if column in self._aggregates else -1


def _columns(value: Value) -> set[str]:
    only = [] if value.only is None else value.only.meta.root_names()
    return {*value.value.meta.root_names(), *value.by, *only}


def _is_aggregation(node: Node) -> bool:
    return node == "Len" or (isinstance(node, dict) and "Agg" in node)


def _as_it_is(node: Node) -> pl.Expr:
    try:
        return pl.Expr.deserialize(StringIO(json.dumps(node)), format="json")
    except pl.exceptions.ComputeError:  # JSON has no infinite numbers.
        raise NoDerivativeError("NaN or infinity") from None  # noqa: EM101, TRY003


def _unfiltered(node: Node) -> Node:
    """A part of an expression without its filters, which the caller applies to the whole."""
    if isinstance(node, dict):
        if "Filter" in node:
            return _unfiltered(node["Filter"]["input"])
        return {key: _unfiltered(part) for key, part in node.items()}
    return [_unfiltered(part) for part in node] if isinstance(node, list) else node


def _name_of(node: Node) -> str:
    """The name of a part in a message: its function, operator or aggregation."""
    if not isinstance(node, dict):
        return str(node)
    [(kind, content), *_] = node.items()
    inside = {"Function": "function", "BinaryExpr": "op"}.get(kind)
    if inside is not None:
        return _name_of(content[inside])
    return _name_of(content) if kind in {"Agg", "Pow", "Trigonometry", "Boolean"} else str(kind)


def _added_up(parts: list[pl.Expr]) -> pl.Expr:
    return reduce(operator.add, parts)


def _times(step: _Step, one: pl.Expr) -> pl.Expr:
    if isinstance(step, _Where):
        return pl.when(step.holds).then(one).otherwise(0.0)
    return one if step is _ONE else step if one is _ONE else step * one


_Rule: TypeAlias = Callable[..., "Sequence[_Step]"]
"""From the arguments of a function, its derivatives by each argument."""

_OPERATORS: Mapping[str, _Rule] = {
    "Plus": lambda *_: [_ONE, _ONE],
    "Minus": lambda *_: [_ONE, pl.lit(-1.0)],
    "Multiply": lambda left, right: [right, left],
    "TrueDivide": lambda left, right: [1 / right, -left / right / right],
}


def _first_known(*parts: pl.Expr) -> Sequence[_Step]:
    are_null = [part.is_null() for part in parts]
    return [
        _Where(pl.all_horizontal(~is_null, *are_null[:place]))
        for place, is_null in enumerate(are_null)
    ]


def _ends(end: pl.Expr, parts: Sequence[pl.Expr]) -> Sequence[_Step]:
    """The derivative of a minimum or a maximum. Equal parts share the derivative."""
    are_ends = [(part == end).fill_null(value=False).cast(pl.Float64) for part in parts]
    return [is_end / pl.sum_horizontal(are_ends) for is_end in are_ends]


def _clip(limits: Mapping[str, bool]) -> _Rule:
    def rule(value: pl.Expr, *ends: pl.Expr) -> Sequence[_Step]:
        least = ends[:1] if limits["has_min"] else ()
        most = ends[-1:] if limits["has_max"] else ()
        is_inside = [value >= end for end in least] + [value <= end for end in most]
        is_out = [value < end for end in least] + [value > end for end in most]
        return [_Where(pl.all_horizontal(is_inside)), *map(_Where, is_out)]

    return rule


_FUNCTIONS: Mapping[str, _Rule] = {
    "Negate": lambda _: [pl.lit(-1.0)],
    "Abs": lambda x: [x.sign()],
    "Exp": lambda x: [x.exp()],
    "Log": lambda x, base: [1 / x / base.log(), -x.log() / base / base.log().pow(2)],
    "Log1p": lambda x: [1 / (1 + x)],
    "Sqrt": lambda x: [0.5 / x.sqrt()],
    "Generic": lambda x, power: [power * x.pow(power - 1), x.pow(power) * x.log()],  # pow
    "ArcTanh": lambda x: [1 / (1 - x.pow(2))],
    "FillNull": _first_known,
    "Coalesce": _first_known,
    "MinHorizontal": lambda *parts: _ends(pl.min_horizontal(parts), parts),
    "MaxHorizontal": lambda *parts: _ends(pl.max_horizontal(parts), parts),
    "SumHorizontal": lambda *parts: [_ONE for _ in parts],
}

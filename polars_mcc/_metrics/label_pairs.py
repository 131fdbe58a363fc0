"""Numbers by gold label and prediction, such as costs: as a user gives them, and of each pair."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import reduce
from itertools import chain
from operator import add
from typing import TypeAlias

import polars as pl

from polars_mcc._base.allowed_values import check_number
from polars_mcc._base.errors_and_warnings import reason
from polars_mcc._frame.labels import as_label, from_text, is_text
from polars_mcc._metrics.metric_type import Sum

ByPair: TypeAlias = Mapping[tuple[object, object], float]
"""A number by gold label and prediction."""
IntoByPair: TypeAlias = ByPair | pl.DataFrame | str
"""The same; or columns `gold`, `pred` and a number; or the path of a CSV file with these."""


def by_pair(given: IntoByPair, name: str) -> ByPair:
    """The numbers that a user gives, or an error. Labels of a file are text."""
    if isinstance(given, str):
        try:
            return by_pair(pl.read_csv(given, infer_schema=False, raise_if_empty=False), name)
        except (pl.exceptions.PolarsError, OSError, ValueError) as error:
            raise type(error)(f"'{given}': {reason(error)}") from None
    if isinstance(given, pl.DataFrame):
        if {*given.columns} != {"gold", "pred", name}:
            utf16 = "bytes of 0, as UTF-16 has: write it as UTF-8"
            got = utf16 if "\0" in "".join(given.columns) else given.columns
            raise ValueError(f"{name} needs the columns gold, pred and {name}, got {got}")
        rows = given.select("gold", "pred", pl.col(name).cast(pl.Float64)).rows()
        given = {(gold, pred): number for gold, pred, number in rows}
        if len(given) < len(rows):
            raise ValueError(f"{name} has a pair of gold and pred twice: keep one number for each")
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} by gold label and prediction must be a mapping, got {given!r}")
    if not given:
        raise ValueError(f"{name} by gold label and prediction names no pair")
    numbers = {}
    for pair, number in given.items():
        if not (isinstance(pair, tuple) and len(pair) == 2):
            example = "{('fraud', 'ok'): 10}"
            msg = f"{name} is by gold label and prediction, as in {example}, got {pair!r}"
            raise ValueError(msg)
        numbers[pair] = checked(f"{name} of {pair!r}", number)
    return numbers


def checked(name: str, number: float) -> float:
    """A finite number, or an error."""
    number = float(number) if isinstance(number, Decimal) else number
    check_number(name, number)
    if number is None or not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {number}")
    return float(number)


def typed(numbers: ByPair, dtype: pl.DataType) -> ByPair:
    """The same numbers by labels of this dtype. Text is read as such a label."""
    return {
        (typed_label(gold, dtype), typed_label(pred, dtype)): n
        for (gold, pred), n in numbers.items()
    }


def named(numbers: ByPair, dtype: pl.DataType) -> list[object]:
    """The labels that numbers are given for; none for an Enum, whose labels are known to exist."""
    is_enum = isinstance(dtype, pl.Enum)
    return [] if is_enum else [*dict.fromkeys(chain(*numbers))]


def typed_label(label: object, dtype: pl.DataType) -> object:
    """A label of this dtype, or a SchemaError. Text is read as one."""
    if label is None:
        return None
    if isinstance(label, str) and not is_text(dtype):
        known = from_text(label, dtype)
        label = label if known is None else known
    return as_label(label, dtype, f"label {label!r} of a metric")


def mean_of(number: Callable[..., pl.Expr], *sides: str, of: str = "share") -> Sum:
    """The mean number of a row, from its labels of these sides: "gold", "pred" or both.

    With `of="n"` it is the sum over all rows.
    """
    side, *others = sides
    return lambda col: (col(of) * col(side).pipe(number, *map(col, others))).sum()


def mean_of_pairs(numbers: ByPair, *, of: str = "share") -> Sum:
    """The mean number of a row; 0 for a pair that is not named. `of` is as in `mean_of`."""

    def number_of(gold: pl.Expr, pred: pl.Expr) -> pl.Expr:
        each = (
            (gold.eq_missing(pl.lit(label)) & pred.eq_missing(pl.lit(other))).cast(pl.Float64)
            * number
            for (label, other), number in numbers.items()
        )
        return reduce(add, each)

    return mean_of(number_of, "gold", "pred", of=of)

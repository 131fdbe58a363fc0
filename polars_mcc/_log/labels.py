"""The dtype in which labels are compared, and the labels of a dtype."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import polars as pl

from polars_mcc._log.choices import Nulls

Labelled: TypeAlias = Sequence[tuple[str, pl.DataType]]
"""The name and dtype of each column of labels. Two columns may have the same name."""

_WIDE = (pl.UInt64, pl.Int128, pl.UInt128)


def common_dtype(columns: Labelled) -> pl.DataType:
    """The dtype in which the labels of all `columns` are compared by value, or a SchemaError.

    Labels of one dtype are compared as they are. Integers of different widths are compared in a
    wider integer, floats in Float64, text (String, Categorical, Enum) in String. A column of
    dtype Null fits any other.
    """
    for name, dtype in columns:
        if dtype.is_nested() or dtype.is_object():
            msg = (
                f"labels must be plain values here, but '{name}' is {dtype}; take one label of "
                "it first (a struct field, a list element); lists of labels work in by(), "
                "score(), classes() and counts() without intervals"
            )
            raise pl.exceptions.SchemaError(msg)
    dtypes = list(dict.fromkeys(dtype for _, dtype in columns if dtype != pl.Null))
    if not dtypes:
        return pl.Null()
    if len(dtypes) == 1:
        return dtypes[0]
    if all(dtype.is_integer() for dtype in dtypes):
        return pl.Int128() if any(dtype in _WIDE for dtype in dtypes) else pl.Int64()
    if all(dtype.is_float() for dtype in dtypes):
        return pl.Float64()
    if all(isinstance(dtype, (pl.String, pl.Categorical, pl.Enum)) for dtype in dtypes):
        return pl.String()
    found = ", ".join(f"'{name}' is {dtype}" for name, dtype in columns)
    name = next(name for name, dtype in columns if dtype == dtypes[1])
    msg = f"labels cannot be compared: {found}; cast one to the dtype of the other, as in "
    # A cast to Boolean would turn every score except 0 into True.
    is_score = dtypes[0] == pl.Boolean and dtypes[1].is_float()
    msg += f"pl.col('{name}') >= 0.5" if is_score else f"pl.col('{name}').cast(pl.{dtypes[0]!r})"
    raise pl.exceptions.SchemaError(msg)


def dtype_of_labels(columns: Labelled) -> pl.DataType:
    """The dtype in which labels are compared, plain or inside lists, or a SchemaError."""
    has_lists = any(is_list(dtype) for _, dtype in columns)
    return _dtype_in_lists(columns) if has_lists else common_dtype(columns)


def as_labels(labels: Sequence[object], dtype: pl.DataType, *, null: bool) -> pl.Series:
    """The labels that a user listed as a Series of `dtype`. `null`: null is a label too."""
    missing = [None] if null and None not in labels else []
    try:
        listed = pl.Series("labels", [*labels, *missing], dtype=dtype, strict=True)
    except (TypeError, pl.exceptions.PolarsError) as error:
        msg = f"labels={list(labels)!r} do not have the dtype of the columns, {dtype}: {error}"
        raise pl.exceptions.SchemaError(msg) from error
    if listed.is_duplicated().any():
        msg = f"labels={list(labels)!r} lists a label twice"
        raise ValueError(msg)
    return listed


def as_label(positive: object, dtype: pl.DataType) -> object:
    """The positive label as a value of `dtype`, or a SchemaError."""
    try:
        [label] = pl.Series([positive], dtype=dtype, strict=True)
    except (TypeError, pl.exceptions.PolarsError) as error:
        msg = f"positive={positive!r} does not have the dtype of the labels, {dtype}"
        raise pl.exceptions.SchemaError(msg) from error
    return label


def label_names(labels: Iterable[object]) -> list[str]:
    """Labels as text, for the column names of a confusion matrix."""
    return ["null" if label is None else str(label) for label in labels]


def known_labels(dtype: pl.DataType) -> list[object] | None:
    """All labels of a Boolean or Enum dtype, in order. None for other dtypes."""
    if dtype == pl.Boolean:
        return [False, True]
    return dtype.categories.to_list() if isinstance(dtype, pl.Enum) else None


def is_list(dtype: pl.DataType) -> bool:
    """Whether the dtype is a list of labels."""
    return isinstance(dtype, (pl.List, pl.Array))


def _dtype_in_lists(columns: Labelled) -> pl.DataType:
    """The dtype in which labels inside lists are compared, or a SchemaError."""
    inner: list[tuple[str, pl.DataType]] = []
    for name, dtype in columns:
        if not isinstance(dtype, (pl.List, pl.Array)):
            lists = next(other for other, dtype in columns if is_list(dtype))
            msg = (
                f"'{lists}' has lists of labels, but '{name}' is {dtype}: make both lists, as in "
                f"pl.concat_list('{name}'), or neither"
            )
            raise pl.exceptions.SchemaError(msg)
        inner.append((name, dtype.inner() if isinstance(dtype.inner, type) else dtype.inner))
    labels = common_dtype(inner)
    if labels == pl.Boolean:
        names = " and ".join(repr(name) for name, _ in columns)
        msg = f"{names} have lists of Booleans, but lists must hold the names of labels"
        raise pl.exceptions.SchemaError(msg)
    return pl.String() if labels == pl.Null else labels


def are_scored(gold: pl.Expr, pred: pl.Expr, nulls: Nulls) -> pl.Expr:
    """Whether a row is scored, given the policy for null labels."""
    if nulls == "label":
        return pl.lit(value=True)
    return gold.is_not_null() & pred.is_not_null()

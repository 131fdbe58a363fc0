"""Frames that can be a log, and the columns that a user names: resolved, or an error about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import polars as pl
import polars.selectors as cs

from polars_mcc._base.message_parts import Words, as_sql, as_time, few, quoted, said
from polars_mcc._frame.missing_and_likely_columns import missing_column

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    FrameT = TypeVar(
        "FrameT", bound="pl.DataFrame | pl.LazyFrame", default="pl.DataFrame | pl.LazyFrame"
    )
else:  # Python has defaults of type variables from 3.13 on.
    from typing import TypeVar

    FrameT = TypeVar("FrameT")

Frame: TypeAlias = pl.DataFrame | pl.LazyFrame


class _Narwhals(Protocol):
    @property
    def to_native(self) -> Any: ...  # noqa: ANN401


class _PandasLike(Protocol):
    @property
    def iloc(self) -> Any: ...  # noqa: ANN401


class _Arrow(Protocol):
    @property
    def num_rows(self) -> Any: ...  # noqa: ANN401


class _DuckDB(Protocol):
    @property
    def sql_query(self) -> Any: ...  # noqa: ANN401


class _Ibis(Protocol):
    @property
    def order_by(self) -> Any: ...  # noqa: ANN401


class _SparkLike(Protocol):
    @property
    def withColumn(self) -> Any: ...  # noqa: ANN401, N802


OtherFrame: TypeAlias = _Narwhals | _PandasLike | _Arrow | _DuckDB | _Ibis | _SparkLike
"""Frames of other engines. Each type has a member that Polars frames do not have."""


def polars_frame(frame: object, subject: str) -> Frame:
    """The frame if it is from Polars, else a TypeError that says what to do."""
    if not isinstance(frame, Frame):
        raise TypeError(
            f"{subject} a polars DataFrame or LazyFrame, got {type(frame).__module__}."
            f"{type(frame).__qualname__}; for a log of another engine, pass its counts, "
            "PredictionLog(frame).counts(...), and weight='n'"
        )
    return frame


def check_collected(answer: object, subject: str) -> None:
    """Raise a TypeError unless the answer is a DataFrame."""
    if not isinstance(answer, pl.DataFrame):
        msg = f"{subject} a DataFrame, got {type(answer).__qualname__}: call collect() first"
        raise TypeError(msg)


IntoColumn: TypeAlias = str | pl.Expr  # a column name or any Polars expression

IntoColumns: TypeAlias = str | pl.Expr | Sequence[str | pl.Expr]
"""A column, or several: a list, a selector, an expression with several outputs."""


@dataclass(frozen=True)
class NamedColumns:
    """The columns that a user gave for a role, with their names and dtypes in the log."""

    given: tuple[IntoColumn, ...]
    dtypes: pl.Schema
    is_several: bool = False
    """Whether a list was given, even a list of one: the answer then has a column `model`."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.dtypes)

    @property
    def name(self) -> str:
        """The name of the one column."""
        [name] = self.dtypes
        return name

    @property
    def dtype(self) -> pl.DataType:
        """The dtype of the one column."""
        [dtype] = self.dtypes.values()
        return dtype

    @property
    def each(self) -> list[tuple[str, IntoColumn]]:
        """Each name with its column. A ValueError if one expression makes several columns."""
        if len(self.given) != len(self.dtypes):
            msg = f"{quoted(self.dtypes)} come from one expression: list them one by one"
            raise ValueError(msg)
        return list(zip(self.dtypes, self.given, strict=True))

    @property
    def expr(self) -> pl.Expr:
        """The one column."""
        [column] = self.given
        return as_expr(column)


class Weighed(NamedTuple):
    """The rows of a log, or the counts that another engine made, with the weight of each row."""

    frame: pl.LazyFrame
    weight: pl.Expr
    name: str | None
    dtype: pl.DataType
    sums: tuple[str, ...] = ()
    """Aggregates by another engine: the least weight, the rows without a weight, the squares."""


def several_columns(schema: pl.Schema, columns: IntoColumns, role: str) -> NamedColumns:
    """The columns of a role that takes several. Raise an error if one or all are missing."""
    is_several = not isinstance(columns, str) and (
        not isinstance(columns, pl.Expr) or columns.meta.has_multiple_outputs()
    )
    listed = [columns] if isinstance(columns, (str, pl.Expr)) else list(columns)
    dtypes = resolved(schema, listed, role)
    if not dtypes:
        msg = f"{role}={columns} matches no column; the columns are {few(schema)}"
        raise pl.exceptions.ColumnNotFoundError(msg)
    return NamedColumns(tuple(by_name(schema, listed, role)), dtypes, is_several)


def one_column(schema: pl.Schema, column: IntoColumn, role: str) -> NamedColumns:
    """The column of a role that takes one. Raise an error if it is missing, or is several."""
    dtypes = resolved(schema, [column], role)
    if len(dtypes) != 1:
        raise ValueError(f"{role} must be one column, but {column} is {quoted(dtypes) or 'none'}")
    return NamedColumns((column,), dtypes)


def by_name(schema: pl.Schema, columns: Iterable[IntoColumn], role: str) -> Iterator[IntoColumn]:
    """Selectors as the names that they select; other columns unchanged."""
    for column in columns:
        if isinstance(column, pl.Expr) and column.meta.is_column_selection():
            yield from resolved(schema, [column], role)
        else:
            yield column


def resolved(schema: pl.Schema, columns: Sequence[IntoColumn], role: str) -> pl.Schema:
    """The names and dtypes of `columns`, after a check that they exist."""
    for column in columns:
        if not isinstance(column, (str, pl.Expr)):
            is_listed = role == "key" and isinstance(column, (list, tuple))
            unpack = "; unpack a list with *" if is_listed else ""
            msg = f"{role} must be a column name or a polars expression, got {column!r}{unpack}"
            raise TypeError(msg)
        for name in [column] if isinstance(column, str) else column.meta.root_names():
            if name not in schema:
                raise missing_column(name, schema, role)
    exprs = [column for column in columns if isinstance(column, pl.Expr)]
    read = set(schema)
    if not any(expr.meta.has_multiple_outputs() for expr in exprs):
        # To resolve one column in thousands takes Polars longer than to count a small log.
        read = {column for column in columns if isinstance(column, str)}
        read.update(*(expr.meta.root_names() for expr in exprs))
    log = pl.LazyFrame(schema={name: schema[name] for name in schema if name in read})
    try:
        return log.select(map(as_expr, columns)).collect_schema()
    except pl.exceptions.DuplicateError as error:
        alone = (log.select(as_expr(column)).collect_schema() for column in columns)
        names = [name for schema in alone for name in schema]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        how = Words(".alias(...)", "AS")
        msg = said(f"two {role} columns have the same name '{twice}'; rename one with ", how)
        raise pl.exceptions.DuplicateError(msg) from error


def check_weight(name: str, dtype: pl.DataType) -> None:
    """Raise a SchemaError unless a weight is a number."""
    if not (dtype.is_integer() or dtype.is_float()):
        msg = f"weight must be integer or float, but '{name}' is {dtype}; cast it first"
        raise pl.exceptions.SchemaError(msg)


def check_score(name: str, dtype: pl.DataType) -> None:
    """Raise a SchemaError unless a score is a number."""
    if not dtype.is_numeric():
        msg = f"score must be a number, but '{name}' is {dtype}; cast it, or use it as pred"
        raise pl.exceptions.SchemaError(msg)


def check_time(name: str, dtype: pl.DataType) -> None:
    """Raise a SchemaError unless the time of a row is a Date or Datetime."""
    if not isinstance(dtype, (pl.Date, pl.Datetime)):
        what = f"time '{name}' must be Date or Datetime, but is {dtype}; "
        raise pl.exceptions.SchemaError(said(what, made_a_time(name, dtype)))


def made_a_time(name: str, dtype: pl.DataType) -> str:
    """How to make a column a time."""
    if dtype.is_numeric():
        code = "{} if it counts seconds (1.8e9), {} if milliseconds (1.8e12), {} if microseconds"
        made = [f"({as_sql(name)}{factor})::TIMESTAMP" for factor in (" * 1000000", " * 1000", "")]
        python = code.format(f"pl.from_epoch({name!r}, 's')", "'ms'", "'us'")
        return said("make it a time: ", Words(python, code.format(*made)))
    if dtype != pl.String:
        return "cast it first"
    return said("parse it first, as in ", as_time(name))


def roots(schema: pl.Schema, columns: Iterable[IntoColumn]) -> list[str]:
    """The columns of the frame that these columns are computed from, each once."""
    each: dict[str, None] = {}
    for column in columns:
        names = [column] if isinstance(column, str) else column.meta.root_names()
        is_by_name = bool(names) and all(name in schema for name in names)
        each |= dict.fromkeys(names if is_by_name else resolved(schema, [column], "column"))
    return list(each)


def as_expr(column: IntoColumn) -> pl.Expr:
    """A column name as an expression that matches only this column."""
    # pl.col("*") and pl.col("^a.*$") are patterns, but a column may have such a name.
    if not isinstance(column, str):
        return column
    is_pattern = column == "*" or (column.startswith("^") and column.endswith("$"))
    return cs.by_name(column).as_expr() if is_pattern else pl.col(column)

"""The columns that a user names: found in a schema, or an error that says how to name them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import polars as pl
import polars.selectors as cs

from polars_mcc._log import defaults

IntoColumn: TypeAlias = str | pl.Expr  # a column name or any Polars expression

IntoColumns: TypeAlias = str | pl.Expr | Sequence[str | pl.Expr]
"""A column, or several: a list, a selector, an expression with several outputs."""


class MissingColumn(pl.exceptions.ColumnNotFoundError):
    """A log has no column of this name.

    Attributes:
        problem: What is missing, the nearest name, and the names that there are.
        role: What the column was to be: `"gold"`, `"pred"`, `"key"` …
        is_default: Whether the user has not named it.
    """

    def __init__(self, problem: str, role: str, is_default: bool = False) -> None:  # noqa: FBT002
        """Take what is missing."""
        super().__init__(problem, role, is_default)
        self.problem, self.role, self.is_default = problem, role, is_default

    def __str__(self) -> str:
        """The message, for Python."""
        return self.told(f"frame.mcc({self.role}='label')")

    def told(self, example: str) -> str:
        """The message, with an example of how to name the column if it is a default."""
        if not self.is_default:
            return self.problem
        return f"{self.problem} Say which column is {self.role}, as in {example}."


@dataclass(frozen=True)
class Columns:
    """What a user named for a role, and what it is called and typed in the log."""

    given: tuple[IntoColumn, ...]
    dtypes: pl.Schema
    is_several: bool = False
    """Whether they may be several: several models, though the list of them have one."""

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
        """The name of each column, and the column, or an error if one expression makes several."""
        if len(self.given) != len(self.dtypes):
            msg = f"{quoted(self.dtypes)} are computed by one expression: list them one by one"
            raise ValueError(msg)
        return list(zip(self.dtypes, self.given, strict=True))

    @property
    def expr(self) -> pl.Expr:
        """The one column."""
        [column] = self.given
        return as_expr(column)


def several(schema: pl.Schema, columns: IntoColumns, role: str) -> Columns:
    """The columns of a role that may have several, or an error if one is not there, or none."""
    is_several = not isinstance(columns, str) and (
        not isinstance(columns, pl.Expr) or columns.meta.has_multiple_outputs()
    )
    listed = [columns] if isinstance(columns, (str, pl.Expr)) else list(columns)
    dtypes = resolved(schema, listed, role)
    if not dtypes:
        msg = f"{role}={columns} matches no column; the columns are {quoted(schema)}"
        raise pl.exceptions.ColumnNotFoundError(msg)
    return Columns(tuple(by_name(schema, listed, role)), dtypes, is_several)


def one(schema: pl.Schema, column: IntoColumn, role: str) -> Columns:
    """The column of a role that has one, or an error if it is not there, or several."""
    dtypes = resolved(schema, [column], role)
    if len(dtypes) != 1:
        msg = f"{role} must be one column, but {column} is {quoted(dtypes) or 'none'}"
        raise ValueError(msg)
    return Columns((column,), dtypes)


def by_name(schema: pl.Schema, columns: Iterable[IntoColumn], role: str) -> Iterator[IntoColumn]:
    """Columns that are only selected as their names, and others as they are."""
    for column in columns:
        if isinstance(column, pl.Expr) and column.meta.is_column_selection():
            yield from resolved(schema, [column], role)
        else:
            yield column


def resolved(schema: pl.Schema, columns: Sequence[IntoColumn], role: str) -> pl.Schema:
    """The names and dtypes that `columns` come to, after checking that they exist."""
    for column in columns:
        if not isinstance(column, (str, pl.Expr)):
            is_listed = role == "key" and isinstance(column, (list, tuple))
            unpack = "; unpack a list with *" if is_listed else ""
            msg = f"{role} must be a column name or a polars expression, got {column!r}{unpack}"
            raise TypeError(msg)
        for name in [column] if isinstance(column, str) else column.meta.root_names():
            if name not in schema:
                raise _missing(name, schema, role)
    try:
        return pl.LazyFrame(schema=schema).select(map(as_expr, columns)).collect_schema()
    except pl.exceptions.DuplicateError as error:
        listed = ", ".join(map(str, columns))
        msg = f"two {role} columns have one name, in {listed}; name one of them with .alias(...)"
        raise pl.exceptions.DuplicateError(msg) from error


def check_weight(name: str, dtype: pl.DataType) -> None:
    """Raise a SchemaError unless a weight is a number."""
    if not (dtype.is_integer() or dtype.is_float()):
        msg = f"weight must be integer or float, but '{name}' is {dtype}; cast it first"
        raise pl.exceptions.SchemaError(msg)


def roots(schema: pl.Schema, columns: Iterable[IntoColumn]) -> list[str]:
    """The columns of a frame that are needed for these, each once."""
    found: dict[str, None] = {}
    for column in columns:
        names = [column] if isinstance(column, str) else column.meta.root_names()
        is_by_name = bool(names) and all(name in schema for name in names)
        found |= dict.fromkeys(names if is_by_name else resolved(schema, [column], "column"))
    return list(found)


def as_expr(column: IntoColumn) -> pl.Expr:
    """A column name as an expression that means this column and no other."""
    # pl.col("*") and pl.col("^a.*$") are patterns; a column so named is not.
    if not isinstance(column, str):
        return column
    is_pattern = column == "*" or (column.startswith("^") and column.endswith("$"))
    return cs.by_name(column).as_expr() if is_pattern else pl.col(column)


def distinct(columns: Iterable[IntoColumn]) -> pl.Expr:
    """How many different rows some columns have, by their hashes, which take little memory."""
    return pl.struct(*map(as_expr, columns)).hash().n_unique()


def as_many_as_fit(
    names: Sequence[str], size: Callable[[str], float], fits: Callable[[Sequence[str]], bool]
) -> Sequence[str] | None:
    """The most names that fit together. Those of largest size are left out first.

    None: it does not fit even if all names are left out.
    """
    if fits(names):
        return names
    by_size = sorted(names, key=size)
    for many in range(len(names) - 1, -1, -1):
        some = [name for name in names if name in by_size[:many]]
        if fits(some):
            return some
    return None


def quoted(names: Iterable[str]) -> str:
    """Names in a sentence."""
    return ", ".join(f"'{name}'" for name in names)


def as_code(value: object) -> str:
    """A value as it stands in a call; an expression, as Polars shows it."""
    if isinstance(value, pl.Expr):
        return f"pl.{value}" if str(value).startswith("col(") else str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(as_code, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(as_code, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


_DEFAULT_NAMES: Mapping[str, str] = {"gold": defaults.GOLD, "pred": defaults.PRED}


def _missing(name: str, schema: pl.Schema, role: str) -> MissingColumn:
    import difflib  # noqa: PLC0415 - for an error alone

    def likeness(other: str) -> float:
        return difflib.SequenceMatcher(None, name.lower(), other.lower()).ratio()

    nearest = sorted(schema, key=likeness, reverse=True)
    hint = f"; did you mean '{nearest[0]}'?" if nearest and likeness(nearest[0]) >= 0.6 else "."
    columns = f"The columns are {quoted(nearest[:10])}" if nearest else "There are no columns"
    more = f" and {len(nearest) - 10} more" if len(nearest) > 10 else ""
    return MissingColumn(
        f"no column '{name}' for {role}{hint} {columns}{more}.",
        role,
        _DEFAULT_NAMES.get(role) == name,
    )

"""Columns that a user names, resolved against a schema, or an error that says what to name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import polars as pl
import polars.selectors as cs

from polars_mcc._log import defaults
from polars_mcc._log.likely import possible
from polars_mcc._log.messages import Words, option, said

IntoColumn: TypeAlias = str | pl.Expr  # a column name or any Polars expression

IntoColumns: TypeAlias = str | pl.Expr | Sequence[str | pl.Expr]
"""A column, or several: a list, a selector, an expression with several outputs."""


class MissingColumn(pl.exceptions.ColumnNotFoundError):
    """A log has no column of this name.

    Attributes:
        problem: What is missing, the nearest name, and the names that there are.
        role: What the column is needed for: `"gold"`, `"pred"`, `"key"` …
        schema: The columns of the log.
        is_default: Whether the name is the default of the role: the user has not named a column.
        options: The options of a call that names the labels.
        frame: How the call begins, `"df.mcc({})"`, with a place for the options.
        question: How the call ends: the verb with its arguments.
    """

    def __init__(
        self,
        problem: str,
        role: str,
        schema: pl.Schema,
        is_default: bool = False,  # noqa: FBT002
    ) -> None:
        """Say what is missing."""
        super().__init__(problem, role, schema, is_default)
        self.problem, self.role, self.schema, self.is_default = problem, role, schema, is_default
        self.options: Mapping[str, object] = {}
        self.frame, self.question = "df.mcc({})", ""

    @property
    def words(self) -> Words:
        """The message. If the role has its default name, a call names the labels."""
        if not self.is_default:
            return said(self.problem)
        labels = {role: self.options[role] for role in ("gold", "pred") if role in self.options}
        call = self.frame.format(as_arguments(self.options)) + self.question
        typed = " ".join(option(role, name).in_shell for role, name in labels.items())
        return said(self.problem, " Name the labels: ", Words(call, typed))

    def __str__(self) -> str:
        """The message in Python."""
        return self.words


@dataclass(frozen=True)
class Columns:
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


def several(schema: pl.Schema, columns: IntoColumns, role: str) -> Columns:
    """The columns of a role that takes several. Raise an error if one or all are missing."""
    is_several = not isinstance(columns, str) and (
        not isinstance(columns, pl.Expr) or columns.meta.has_multiple_outputs()
    )
    listed = [columns] if isinstance(columns, (str, pl.Expr)) else list(columns)
    dtypes = resolved(schema, listed, role)
    if not dtypes:
        msg = f"{role}={columns} matches no column; the columns are {few(schema)}"
        raise pl.exceptions.ColumnNotFoundError(msg)
    return Columns(tuple(by_name(schema, listed, role)), dtypes, is_several)


def one(schema: pl.Schema, column: IntoColumn, role: str) -> Columns:
    """The column of a role that takes one. Raise an error if it is missing, or is several."""
    dtypes = resolved(schema, [column], role)
    if len(dtypes) != 1:
        msg = f"{role} must be one column, but {column} is {quoted(dtypes) or 'none'}"
        raise ValueError(msg)
    return Columns((column,), dtypes)


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
                raise _missing(name, schema, role)
    try:
        return pl.LazyFrame(schema=schema).select(map(as_expr, columns)).collect_schema()
    except pl.exceptions.DuplicateError as error:
        each = (pl.LazyFrame(schema=schema).select(as_expr(one)) for one in columns)
        names = [name for one in each for name in one.collect_schema()]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        how = Words(".alias(...)", "AS")
        msg = said(f"two {role} columns have the same name '{twice}'; rename one with ", how)
        raise pl.exceptions.DuplicateError(msg) from error


def check_weight(name: str, dtype: pl.DataType) -> None:
    """Raise a SchemaError unless a weight is a number."""
    if not (dtype.is_integer() or dtype.is_float()):
        msg = f"weight must be integer or float, but '{name}' is {dtype}; cast it first"
        raise pl.exceptions.SchemaError(msg)


def roots(schema: pl.Schema, columns: Iterable[IntoColumn]) -> list[str]:
    """The columns of the frame that these columns are computed from, each once."""
    found: dict[str, None] = {}
    for column in columns:
        names = [column] if isinstance(column, str) else column.meta.root_names()
        is_by_name = bool(names) and all(name in schema for name in names)
        found |= dict.fromkeys(names if is_by_name else resolved(schema, [column], "column"))
    return list(found)


def as_expr(column: IntoColumn) -> pl.Expr:
    """A column name as an expression that matches only this column."""
    # pl.col("*") and pl.col("^a.*$") are patterns, but a column may have such a name.
    if not isinstance(column, str):
        return column
    is_pattern = column == "*" or (column.startswith("^") and column.endswith("$"))
    return cs.by_name(column).as_expr() if is_pattern else pl.col(column)


def distinct(columns: Iterable[IntoColumn]) -> pl.Expr:
    """The number of distinct rows of some columns. Hashes take less memory than rows."""
    return pl.struct(*map(as_expr, columns)).hash().n_unique()


def as_many_as_fit(
    names: Sequence[str], size: Callable[[str], float], fits: Callable[[Sequence[str]], bool]
) -> Sequence[str] | None:
    """The largest set of names that fits. The names of largest size are left out first.

    None: not even the empty set fits.
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
    """Names in quotes, separated by commas."""
    return ", ".join(f"'{name}'" for name in names)


def few(names: Collection[str]) -> str:
    """The first ten names in quotes, and the number of the others."""
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"{quoted([*names][:10])}{more}"


def as_code(value: object) -> str:
    """A value as Python code; an expression as Polars shows it."""
    if isinstance(value, pl.Expr):
        return f"pl.{value}" if str(value).startswith("col(") else str(value)
    if isinstance(value, str):
        return f'"{value}"' if repr(value) == f"'{value}'" and '"' not in value else repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(as_code, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(as_code, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def as_arguments(options: Mapping[str, object]) -> str:
    """Options as the arguments of a call."""
    return ", ".join(f"{name}={as_code(value)}" for name, value in options.items())


def did_you_mean(name: str, known: Iterable[str], shown: str = "'{}'") -> str:
    """The end of a clause about an unknown name: the nearest known name, or a full stop."""
    nearest = _nearest(name, known)
    is_near = nearest and _likeness(name, nearest[0]) >= 0.6
    return f"; did you mean {shown.format(nearest[0])}?" if is_near else "."


def no_column(name: str, schema: pl.Schema, needed: str = "") -> str:
    """Say that a column is missing, and list the nearest names: ten at most."""
    known = [one for one in schema if not one.startswith("polars_mcc:")]
    nearest = _nearest(name, known)[:10]
    listed = sorted(known, key=lambda one: one not in nearest)
    return f"no column '{name}'{needed}{did_you_mean(name, known)} {_those(listed)}"


def _nearest(name: str, known: Iterable[str]) -> list[str]:
    """Known names, the name most like the unknown one first."""
    return sorted(known, key=lambda other: _likeness(name, other), reverse=True)


def _likeness(name: str, other: str) -> float:
    import difflib  # noqa: PLC0415 - for an error alone

    ratio = difflib.SequenceMatcher(None, name.lower(), other.lower()).ratio()
    is_part = len(name) > 1 and name.lower() in other.lower()
    return max(ratio, 0.6) if is_part else ratio


def _those(names: Collection[str]) -> str:
    return f"The columns are {few(names)}." if names else "There are no columns."


_DEFAULT_NAMES: Mapping[str, str] = {"gold": defaults.GOLD, "pred": defaults.PRED}
_IN_WORDS: Mapping[str, str] = {"gold": "the true label", "pred": "the predicted label"}


def _missing(name: str, schema: pl.Schema, role: str) -> MissingColumn:
    if _DEFAULT_NAMES.get(role) != name:
        return MissingColumn(no_column(name, schema, f" for {role}"), role, schema)
    columns = _those(schema)
    if len(schema) > 10 and (labels := possible(schema)[:10]):
        columns = (
            f"Columns that may be labels, by name and dtype, are {quoted(labels)}, and "
            f"{len(schema) - len(labels)} more are left out."
        )
    problem = f"no column '{name}' ({_IN_WORDS[role]}){did_you_mean(name, schema)} {columns}"
    return MissingColumn(problem, role, schema, is_default=True)

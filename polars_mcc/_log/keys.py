"""What makes slices, as a user says it: columns, sets of columns, trailing windows."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

import polars as pl

from polars_mcc._log.choices import Align, check_choice
from polars_mcc._log.columns import (
    Columns,
    IntoColumn,
    as_arguments,
    as_code,
    by_name,
    few,
    one,
    resolved,
)

T = TypeVar("T", bound=Hashable)

KeySet: TypeAlias = tuple[str, ...]
"""The names of keys that are crossed. An empty set is the total."""

TOTAL = ""  # the name of the set of no keys: all rows are one slice

_SECOND = 10**9
_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": _SECOND, "m": 60 * _SECOND, "h": 3600 * _SECOND}
_UNITS |= {"d": 86_400 * _SECOND, "w": 7 * 86_400 * _SECOND}
_MONTHS = {"mo": 1, "q": 3, "y": 12}


Number: TypeAlias = float | int


@dataclass(frozen=True)
class Bins:
    """A column that is cut into bins: the result of `bins`."""

    column: IntoColumn
    cuts: int | tuple[Number, ...] | str

    def __repr__(self) -> str:
        """The call that makes it."""
        cuts = [*self.cuts] if isinstance(self.cuts, tuple) else self.cuts
        return f"bins({as_code(self.column)}, {as_code(cuts)})"


InSet: TypeAlias = str | pl.Expr | Bins
"""What a set of keys holds: columns and bins."""


@dataclass(frozen=True)
class KeySets:
    """Several sets of keys: the result of `each`, `rollup`, `cube` and `sets`."""

    word: Literal["each", "rollup", "cube", "sets"]
    columns: tuple[Any, ...]  # columns, and for `sets` also tuples of them
    total: bool

    def __repr__(self) -> str:
        """The call that makes it."""
        total = "" if self.total == (self.word in {"rollup", "cube"}) else f"total={self.total}"
        return f"{self.word}({', '.join(filter(None, [*map(as_code, self.columns), total]))})"


@dataclass(frozen=True)
class Trailing:
    """Windows of time, one that ends with each step: the result of `trailing`."""

    index: IntoColumn
    window: str
    every: str
    align: Align

    def __repr__(self) -> str:
        """The call that makes it."""
        options = as_arguments({"every": self.every, "align": self.align})
        return f"trailing({as_code(self.index)}, {as_code(self.window)}, {options})"


IntoKey: TypeAlias = str | pl.Expr | Bins | KeySets | Trailing
"""What a user groups by: a column, bins, several sets of columns, or windows of time."""


def each(*columns: InSet, total: bool = False) -> KeySets:
    """Slice by each column alone: by country, and separately by device.

    Args:
        *columns: Names, expressions, selectors, `bins`.
        total: Add the total: all rows as one slice.

    Returns:
        A key for the verbs that take keys. Other keys are crossed with it, as in SQL: `"day",
        each("country", "device")` slices by day and country, and by day and device. The answer
        has a column `keys` (String) with the names of the keys of each slice, `""` for the total.
        The other keys of the row are null.

    Examples:
        >>> import polars as pl
        >>> from polars_mcc import each
        >>> log = pl.DataFrame({"a": [1, 2], "b": [3, 3], "gold": [0, 1], "pred": [0, 1]})
        >>> log.mcc.by(each("a", "b", total=True))
        shape: (4, 6)
        ┌──────┬──────┬──────┬─────┬─────┬────────┐
        │ keys ┆ a    ┆ b    ┆ n   ┆ mcc ┆ n_null │
        │ ---  ┆ ---  ┆ ---  ┆ --- ┆ --- ┆ ---    │
        │ str  ┆ i64  ┆ i64  ┆ i64 ┆ f64 ┆ i64    │
        ╞══════╪══════╪══════╪═════╪═════╪════════╡
        │ a    ┆ 1    ┆ null ┆ 1   ┆ 0.0 ┆ 0      │
        │ a    ┆ 2    ┆ null ┆ 1   ┆ 0.0 ┆ 0      │
        │ b    ┆ null ┆ 3    ┆ 2   ┆ 1.0 ┆ 0      │
        │      ┆ null ┆ null ┆ 2   ┆ 1.0 ┆ 0      │
        └──────┴──────┴──────┴─────┴─────┴────────┘
    """
    return KeySets("each", columns, total)


def rollup(*columns: InSet, total: bool = True) -> KeySets:
    """Slice by all columns, by all except the last, and so on, as SQL's ROLLUP does.

    Args:
        *columns: Names, expressions, selectors, `bins`, the coarsest first.
        total: Add the total: all rows as one slice.

    Returns:
        A key for the verbs that take keys: see `each`.

    Examples:
        >>> import polars as pl
        >>> from polars_mcc import rollup
        >>> log = pl.DataFrame({"a": [1, 2], "b": [3, 3], "gold": [0, 1], "pred": [0, 1]})
        >>> log.mcc.by(rollup("a", "b"))["keys"].to_list()
        ['a, b', 'a, b', 'a', 'a', '']
    """
    return KeySets("rollup", columns, total)


def cube(*columns: InSet, total: bool = True) -> KeySets:
    """Slice by every set of the columns, as SQL's CUBE does.

    Args:
        *columns: Names, expressions, selectors, `bins`.
        total: Add the total: all rows as one slice.

    Returns:
        A key for the verbs that take keys: see `each`.

    Examples:
        >>> import polars as pl
        >>> from polars_mcc import cube
        >>> log = pl.DataFrame({"a": [1, 1], "b": [3, 3], "gold": [0, 1], "pred": [0, 1]})
        >>> log.mcc.by(cube("a", "b"))["keys"].to_list()
        ['a, b', 'a', 'b', '']
    """
    return KeySets("cube", columns, total)


def sets(*columns: InSet | Sequence[InSet], total: bool = False) -> KeySets:
    """Slice by a list of sets of columns, as SQL's GROUPING SETS does.

    Args:
        *columns: A tuple for each set of columns: names, expressions, selectors, `bins`. A column
            is a set of one. `()` is the total.
        total: Add the total: all rows as one slice.

    Returns:
        A key for the verbs that take keys: see `each`.

    Examples:
        >>> import polars as pl
        >>> from polars_mcc import sets
        >>> log = pl.DataFrame({"a": [1, 1], "b": [3, 3], "gold": [0, 1], "pred": [0, 1]})
        >>> log.mcc.by(sets(("a", "b"), "b", ()))["keys"].to_list()
        ['a, b', 'b', '']
    """
    listed = (
        tuple(one) if isinstance(one, Sequence) and not isinstance(one, str) else one
        for one in columns
    )
    return KeySets("sets", tuple(listed), total)


def trailing(
    index: IntoColumn, window: str, *, every: str | None = None, align: Align = "data"
) -> Trailing:
    """Slice by trailing windows of time, such as the last 7 days of every day.

    Windows may overlap. Each row is read once: a window is the sum of the counts of its days.

    Args:
        index: A Date or Datetime column.
        window: The length of a window: `"7d"`, `"12h"`, `"1w"`, `"3mo"` …
        every: The step from one window to the next, such as `"1d"`. The window must be a multiple
            of it. None: the length of a window, so that windows touch and do not overlap.
        align: Where the first step begins. `"data"`: at the first day of the log, or the first
            hour, minute, second or month if `every` has that unit. `"calendar"`: where
            `dt.truncate(every)` begins it, so `"1w"` begins on Mondays.

    Returns:
        A key for the verbs that take keys. The name of a window is its last day, or its last
        hour, minute or second if `every` has that unit: the window 2026-09-07 of
        `trailing("day", "7d")` is the week that ends with this day. The answer also has `complete`
        (Boolean): whether the rows of the whole log reach from the first day of the window to its
        last day. Rows without a time are one slice, in which both columns are null.

    Examples:
        >>> from datetime import date
        >>> import polars as pl
        >>> from polars_mcc import trailing
        >>> days = [date(2026, 9, day) for day in range(1, 11)]
        >>> log = pl.DataFrame({"day": days, "gold": [0, 1] * 5, "pred": [0, 1, 1, 1, 0] * 2})
        >>> log.mcc.by(trailing("day", "7d"))
        shape: (2, 5)
        ┌────────────┬──────────┬─────┬──────────┬────────┐
        │ day        ┆ complete ┆ n   ┆ mcc      ┆ n_null │
        │ ---        ┆ ---      ┆ --- ┆ ---      ┆ ---    │
        │ date       ┆ bool     ┆ i64 ┆ f64      ┆ i64    │
        ╞════════════╪══════════╪═════╪══════════╪════════╡
        │ 2026-09-07 ┆ true     ┆ 7   ┆ 0.166667 ┆ 0      │
        │ 2026-09-14 ┆ false    ┆ 3   ┆ -0.5     ┆ 0      │
        └────────────┴──────────┴─────┴──────────┴────────┘
    """
    check_choice("align", align, Align)
    return Trailing(index, window, window if every is None else every, align)


@dataclass(frozen=True)
class Windows:
    """Trailing windows of an index, resolved against the schema."""

    index: Columns
    number: int
    unit: str  # a step is `number` of this unit of Polars durations
    per_window: int  # steps in a window
    align: Align

    @property
    def is_clock(self) -> bool:
        """Whether steps are hours or less: their length does not depend on the calendar."""
        return self.unit not in {"d", "w", *_MONTHS}

    @property
    def is_months(self) -> bool:
        """Whether steps are months, whose lengths differ."""
        return self.unit in _MONTHS

    @property
    def is_daily(self) -> bool:
        """Whether each day ends a window."""
        return not self.is_clock and not self.is_months and self.size == 1

    @property
    def size(self) -> int:
        """The length of a step in months, in days, or in nanoseconds if `is_clock`."""
        length, _ = _length(self.number, self.unit)
        return length if self.is_months or self.is_clock else length // _UNITS["d"]


@dataclass(frozen=True)
class Keys:
    """The keys of a question, resolved against the schema."""

    columns: Columns
    sets: tuple[KeySet, ...] | None
    """The sets of keys, without the index of a window. None if there is one set."""
    windows: Windows | None


def found(schema: pl.Schema, keys: Sequence[IntoKey], *, long: bool) -> Keys:
    """Resolve the keys of a question into columns, sets and windows, or raise an error."""
    resolved(schema, [key for key in keys if isinstance(key, (str, pl.Expr))], "key")
    plain: list[IntoColumn] = []
    groups: list[list[KeySet]] = []
    windows: Windows | None = None
    for key in keys:
        if isinstance(key, Trailing):
            if windows is not None:
                msg = f"only one trailing(...) is allowed as a key, but {key} is the second"
                raise ValueError(msg)
            windows = _windows(schema, key)
        elif isinstance(key, KeySets):
            groups.append(_sets(schema, key))
            plain += _flat(schema, key.columns)
        elif not isinstance(key, Bins):  # `bins.settled` has replaced them
            groups.append([(*resolved(schema, [key], "key"),)])
            plain += _flat(schema, [key])
    columns = Columns(*_distinct(schema, plain))
    if windows is not None and windows.index.name in columns.names:
        msg = f"key '{windows.index.name}' is given twice: as the index of trailing(), and alone"
        raise pl.exceptions.DuplicateError(msg)
    if not long and not any(isinstance(key, KeySets) for key in keys):
        return Keys(columns, None, windows)
    if long and not columns.names:
        msg = "long=True shows the names and values of keys: name at least one, as in by('country')"
        raise ValueError(msg)
    crossed = [tuple(dict.fromkeys(itertools.chain(*one))) for one in itertools.product(*groups)]
    by_content = {frozenset(one): one for one in reversed(crossed)}
    distinct = tuple(one for one in crossed if by_content[frozenset(one)] is one)
    if twice := _twice(map(name_of, distinct)):
        msg = (
            f"two sets of keys are called '{twice[0]}'; rename a key whose name is empty, or has a "
            "comma"
        )
        raise ValueError(msg)
    return Keys(columns, distinct, windows)


def name_of(keys: KeySet) -> str:
    """The name of a set of keys in the column `keys` of an answer."""
    return ", ".join(keys) if keys else TOTAL


def check_plain(keys: Sequence[IntoKey], verb: str, reason: str, *, sets: bool = False) -> None:
    """Raise a ValueError if a verb gets windows, or sets of keys without `sets`."""
    for key in keys:
        if isinstance(key, Trailing) or (isinstance(key, KeySets) and not sets):
            word = key.word if isinstance(key, KeySets) else "trailing"
            msg = f"{verb} does not support {word}(...): {reason}"
            raise ValueError(msg)


def _twice(values: Iterable[T]) -> list[T]:
    return [value for value, times in Counter(values).items() if times > 1]


def _flat(
    schema: pl.Schema, columns: Iterable[IntoColumn | tuple[IntoColumn, ...]]
) -> Iterator[IntoColumn]:
    """The columns of all sets. A selector gives the names that it selects."""
    for column in columns:
        yield from by_name(schema, column if isinstance(column, tuple) else (column,), "key")


def _distinct(
    schema: pl.Schema, columns: Sequence[IntoColumn]
) -> tuple[tuple[IntoColumn, ...], pl.Schema]:
    """Each column once, even if it is in several sets."""
    distinct: list[IntoColumn] = []
    for column in columns:
        if not any(is_same(column, other) for other in distinct):
            distinct.append(column)
    return tuple(distinct), resolved(schema, distinct, "key")


def is_same(one: IntoColumn, other: IntoColumn) -> bool:
    """Whether two columns are the same name, or the same expression."""
    if isinstance(one, pl.Expr) and isinstance(other, pl.Expr):
        return one.meta.eq(other)
    return isinstance(one, str) and isinstance(other, str) and one == other


def _sets(schema: pl.Schema, key: KeySets) -> list[KeySet]:
    """The sets of names that `each`, `rollup`, `cube` or `sets` stands for."""
    if key.word == "sets":
        listed = [(*resolved(schema, [*_flat(schema, [one])], "key"),) for one in key.columns]
        by_content = {frozenset(one): one for one in listed}
        if len(by_content) < len(listed):
            [twice, *_] = _twice(map(frozenset, listed))
            msg = f"sets(...) has {by_content[twice]!r} twice"
            raise ValueError(msg)
    else:
        names = (*resolved(schema, key.columns, "key"),)
        depth = 1 if key.word == "each" else len(names)
        sizes = range(depth if names else 0, 0, -1)
        listed = [one for size in sizes for one in itertools.combinations(names, size)]
        if key.word == "rollup":
            listed = [names[:size] for size in sizes]
    if key.columns and not listed:
        msg = f"{key.word}(...) matches no column; the columns are {few(schema)}"
        raise pl.exceptions.ColumnNotFoundError(msg)
    if not listed and not (key.word == "sets" and key.total):
        msg = f"{key.word}() is empty: name keys, as in {key.word}('country', 'device')"
        raise ValueError(msg)
    return [*listed, ()] if key.total and () not in listed else listed


def _windows(schema: pl.Schema, key: Trailing) -> Windows:
    index = one(schema, key.index, "index")
    window, every = _parts("window", key.window), _parts("every", key.every)
    (length, months), (step, is_months) = _length(*window), _length(*every)
    if months != is_months or length % step:
        msg = (
            f"window={key.window!r} must be a multiple of every={key.every!r}: a window is the "
            "sum of the counts of whole steps"
        )
        raise ValueError(msg)
    if not isinstance(index.dtype, (pl.Date, pl.Datetime)):
        parsed = f"trailing(pl.col({index.name!r}).str.to_datetime(), {key.window!r})"
        is_text = index.dtype == pl.String
        way_out = f"parse it first, in Polars as {parsed}" if is_text else "cast it first"
        msg = f"index '{index.name}' must be Date or Datetime, but is {index.dtype}; {way_out}"
        raise pl.exceptions.SchemaError(msg)
    windows = Windows(index, *every, length // step, key.align)
    if windows.is_clock and index.dtype == pl.Date:
        msg = f"every={key.every!r} is shorter than a day, but index '{index.name}' is a Date"
        raise ValueError(msg)
    return windows


def _parts(name: str, length: str) -> tuple[int, str]:
    found = re.fullmatch(r"(\d+)([a-z]+)", length) if isinstance(length, str) else None
    if found is None or found[2] not in {*_UNITS, *_MONTHS} or int(found[1]) == 0:
        msg = f"{name} must be a number and a unit, as '7d', '12h', '1w' or '3mo', got {length!r}"
        raise ValueError(msg)
    return int(found[1]), found[2]


def _length(number: int, unit: str) -> tuple[int, bool]:
    """A length in months or in nanoseconds, and whether it is in months."""
    return number * (_UNITS | _MONTHS)[unit], unit in _MONTHS

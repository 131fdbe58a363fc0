"""What makes slices, as a user says it: columns, sets of columns, trailing windows."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import polars as pl

from polars_mcc._log.choices import Align, check_choice
from polars_mcc._log.columns import Columns, IntoColumn, as_code, by_name, one, quoted, resolved

T = TypeVar("T", bound=Hashable)

KeySet: TypeAlias = tuple[str, ...]
"""The names of keys that make slices together; none for the total."""

TOTAL = ""  # the name of the set of no keys: all rows are one slice

_SECOND = 10**9
_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": _SECOND, "m": 60 * _SECOND, "h": 3600 * _SECOND}
_UNITS |= {"d": 86_400 * _SECOND, "w": 7 * 86_400 * _SECOND}
_MONTHS = {"mo": 1, "q": 3, "y": 12}


@dataclass(frozen=True)
class KeySets:
    """Several sets of keys: what `each`, `rollup`, `cube` and `sets` give."""

    word: Literal["each", "rollup", "cube", "sets"]
    columns: tuple[IntoColumn | tuple[IntoColumn, ...], ...]
    total: bool

    def __repr__(self) -> str:
        """The call that makes it."""
        total = "" if self.total == (self.word in {"rollup", "cube"}) else f"total={self.total}"
        return f"{self.word}({', '.join(filter(None, [*map(as_code, self.columns), total]))})"


@dataclass(frozen=True)
class Trailing:
    """Windows of time that end with each step: what `trailing` gives."""

    index: IntoColumn
    window: str
    every: str
    align: Align

    def __repr__(self) -> str:
        """The call that makes it."""
        options = f"every={self.every!r}, align={self.align!r}"
        return f"trailing({as_code(self.index)}, {self.window!r}, {options})"


IntoKey: TypeAlias = str | pl.Expr | KeySets | Trailing
"""What makes slices: a column, several sets of columns, or windows of time."""


def each(*columns: IntoColumn, total: bool = False) -> KeySets:
    """Slice by each column alone: the slices of every country, and those of every device.

    Args:
        *columns: Names, expressions, selectors.
        total: Add the total: all rows as one slice.

    Returns:
        A key for the verbs that take keys. Beside other keys it has SQL's meaning: `"day",
        each("country", "device")` makes the slices of day and country, and of day and device. The
        answer has a column `keys` (String) with the names of the keys of a slice, `""` for the
        total. A key that is not of the slice is null.

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


def rollup(*columns: IntoColumn, total: bool = True) -> KeySets:
    """Slice by all columns, by all but the last, and so on, as SQL's ROLLUP does.

    Args:
        *columns: Names, expressions, selectors, the coarsest first.
        total: Whether the total, all rows as one slice, is among the slices.

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


def cube(*columns: IntoColumn, total: bool = True) -> KeySets:
    """Slice by every set of the columns, as SQL's CUBE does.

    Args:
        *columns: Names, expressions, selectors.
        total: Whether the total, all rows as one slice, is among the slices.

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


def sets(*columns: IntoColumn | Sequence[IntoColumn], total: bool = False) -> KeySets:
    """Slice by the sets that are listed, as SQL's GROUPING SETS does.

    Args:
        *columns: A tuple for each set of columns: names, expressions, selectors. A column alone
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
    listed = (one if isinstance(one, (str, pl.Expr)) else tuple(one) for one in columns)
    return KeySets("sets", tuple(listed), total)


def trailing(
    index: IntoColumn, window: str, *, every: str | None = None, align: Align = "data"
) -> Trailing:
    """Slice by windows of time: every so often, the rows of so much time before.

    Windows may overlap. Each row is read once: a window is summed up from the counts of its days.

    Args:
        index: A Date or Datetime column.
        window: How long the windows are: `"7d"`, `"12h"`, `"1w"`, `"3mo"` …
        every: How often a window ends, such as `"1d"`; the window must be a multiple of it.
            None: as often as makes windows touch.
        align: Where the first step begins. `"data"`: with the first day of the log (the first
            hour, minute or second, if `every` is in these; the first month, if it is in months).
            `"calendar"`: where `dt.truncate(every)` has it, so that `"1w"` begins on Mondays.

    Returns:
        A key for the verbs that take keys. A window is named by its last day, or, if `every` is
        in hours or less, by its last hour, minute or second: at 2026-09-07, `trailing("day",
        "7d")` is the week that ends with this day. Beside it the answer has `complete` (Boolean):
        whether the rows of the log, of all slices, reach from the first day of the window to its
        last. Rows without a time are a slice of their own, where both are null.

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
    """Trailing windows of an index, in steps of so many units."""

    index: Columns
    number: int
    unit: str  # a step is so many of a unit, one of Polars' for durations
    per_window: int  # steps of a window
    align: Align

    @property
    def is_clock(self) -> bool:
        """Whether steps are hours or less, which have one length whatever the calendar."""
        return self.unit not in {"d", "w", *_MONTHS}

    @property
    def is_months(self) -> bool:
        """Whether steps are months, which are not of one length."""
        return self.unit in _MONTHS

    @property
    def size(self) -> int:
        """How many months, days, or, of a clock, nanoseconds a step has."""
        length, _ = _length(self.number, self.unit)
        return length if self.is_months or self.is_clock else length // _UNITS["d"]


@dataclass(frozen=True)
class Keys:
    """The keys of a question, found in the schema of its log."""

    columns: Columns
    sets: tuple[KeySet, ...] | None
    """The sets of keys that make slices, without that of a window; None if all are one set."""
    windows: Windows | None


def found(schema: pl.Schema, keys: Sequence[IntoKey], *, long: bool) -> Keys:
    """The columns, sets and windows that the keys of a question come to, or an error."""
    resolved(schema, [key for key in keys if isinstance(key, (str, pl.Expr))], "key")
    plain: list[IntoColumn] = []
    groups: list[list[KeySet]] = []
    windows: Windows | None = None
    for key in keys:
        if isinstance(key, Trailing):
            if windows is not None:
                msg = f"trailing windows go by one index, but there are two: {key} is the second"
                raise ValueError(msg)
            windows = _windows(schema, key)
        elif isinstance(key, KeySets):
            groups.append(_sets(schema, key))
            plain += _flat(schema, key.columns)
        else:
            groups.append([(*resolved(schema, [key], "key"),)])
            plain += _flat(schema, [key])
    columns = Columns(*_distinct(schema, plain))
    if windows is not None and windows.index.name in columns.names:
        msg = f"key '{windows.index.name}' is there twice: as the index of trailing(), and alone"
        raise pl.exceptions.DuplicateError(msg)
    if not long and not any(isinstance(key, KeySets) for key in keys):
        return Keys(columns, None, windows)
    if long and not columns.names:
        msg = "long=True shows the names and values of keys: name some, as in by('country')"
        raise ValueError(msg)
    crossed = [tuple(dict.fromkeys(itertools.chain(*one))) for one in itertools.product(*groups)]
    by_content = {frozenset(one): one for one in reversed(crossed)}
    distinct = tuple(one for one in crossed if by_content[frozenset(one)] is one)
    if twice := _twice(map(name_of, distinct)):
        msg = f"two sets of keys have one name, '{twice[0]}'; rename a key whose name has a comma"
        raise ValueError(msg)
    return Keys(columns, distinct, windows)


def name_of(keys: KeySet) -> str:
    """The name of a set of keys, as answers show it."""
    return ", ".join(keys) if keys else TOTAL


def check_plain(keys: Sequence[IntoKey], verb: str, reason: str, *, sets: bool = False) -> None:
    """Raise a ValueError if a verb has no meaning for windows, or, unless `sets`, sets of keys."""
    for key in keys:
        if isinstance(key, Trailing) or (isinstance(key, KeySets) and not sets):
            word = key.word if isinstance(key, KeySets) else "trailing"
            msg = f"{verb} takes no {word}(...): {reason}"
            raise ValueError(msg)


def _twice(values: Iterable[T]) -> list[T]:
    return [value for value, times in Counter(values).items() if times > 1]


def _flat(
    schema: pl.Schema, columns: Iterable[IntoColumn | tuple[IntoColumn, ...]]
) -> Iterator[IntoColumn]:
    """The columns of all sets; of a selector, their names."""
    for column in columns:
        yield from by_name(schema, column if isinstance(column, tuple) else (column,), "key")


def _distinct(
    schema: pl.Schema, columns: Sequence[IntoColumn]
) -> tuple[tuple[IntoColumn, ...], pl.Schema]:
    """Each column once, though several sets have it."""
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
    """The sets of names that a word of SQL's means."""
    if key.word == "sets":
        listed = [(*resolved(schema, [*_flat(schema, [one])], "key"),) for one in key.columns]
        by_content = {frozenset(one): one for one in listed}
        if len(by_content) < len(listed):
            [twice, *_] = _twice(map(frozenset, listed))
            msg = f"sets has {by_content[twice]!r} twice"
            raise ValueError(msg)
    else:
        names = (*resolved(schema, key.columns, "key"),)  # type: ignore[arg-type]
        depth = 1 if key.word == "each" else len(names)
        sizes = range(depth if names else 0, 0, -1)
        listed = [one for size in sizes for one in itertools.combinations(names, size)]
        if key.word == "rollup":
            listed = [names[:size] for size in sizes]
    if key.columns and not listed:
        msg = f"{key.word}(...) matches no column; the columns are {quoted(schema)}"
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
            f"window={key.window!r} must be a multiple of every={key.every!r}: counts are added "
            "up, and those of a part of a step are not known"
        )
        raise ValueError(msg)
    if not isinstance(index.dtype, (pl.Date, pl.Datetime)):
        msg = (
            f"index '{index.name}' must be Date or Datetime, but is {index.dtype}; cast or parse "
            "it first"
        )
        raise pl.exceptions.SchemaError(msg)
    windows = Windows(index, *every, length // step, key.align)
    if windows.is_clock and index.dtype == pl.Date:
        msg = f"every={key.every!r} is less than a day, but index '{index.name}' is Date"
        raise ValueError(msg)
    return windows


def _parts(name: str, length: str) -> tuple[int, str]:
    found = re.fullmatch(r"(\d+)([a-z]+)", length) if isinstance(length, str) else None
    if found is None or found[2] not in {*_UNITS, *_MONTHS} or int(found[1]) == 0:
        msg = f"{name} must be a number and a unit, as '7d', '12h', '1w' or '3mo', got {length!r}"
        raise ValueError(msg)
    return int(found[1]), found[2]


def _length(number: int, unit: str) -> tuple[int, bool]:
    """So many units in months, or in nanoseconds; and whether it is in months."""
    return number * (_UNITS | _MONTHS)[unit], unit in _MONTHS

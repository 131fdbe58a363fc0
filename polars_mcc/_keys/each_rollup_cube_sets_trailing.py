"""The keys `each`, `rollup`, `cube` and `sets`: sets of columns; `trailing`: windows of time."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import polars as pl

from polars_mcc._base.allowed_values import Align, check_choice
from polars_mcc._base.message_parts import as_arguments, as_code, few, said
from polars_mcc._frame.columns import IntoColumn, NamedColumns, made_a_time, one_column, resolved
from polars_mcc._frame.log_options import Described
from polars_mcc._keys import any_key


@any_key.word("each(country, \"date_trunc('week', ts)\")")
def each(*columns: any_key.IntoKey, total: bool = False) -> KeySets:
    """Slice by each column alone: by country, and separately by device.

    Args:
        *columns: Names, expressions, selectors, `bins`.
        total: Add the total: all rows as one slice.

    Returns:
        A key for the verbs that take keys. Other keys are crossed with it, as in SQL. `"day",
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


@any_key.word("rollup(country, city)")
def rollup(*columns: any_key.IntoKey, total: bool = True) -> KeySets:
    """Slice by all columns, by all except the last, and so on, as SQL's ROLLUP does.

    Args:
        *columns: Names, expressions, selectors, `bins`, the coarsest first.
        total: Add the total: all rows as one slice.

    Returns:
        A key for the verbs that take keys, as `each` gives.

    Examples:
        >>> import polars as pl
        >>> from polars_mcc import rollup
        >>> log = pl.DataFrame({"a": [1, 2], "b": [3, 3], "gold": [0, 1], "pred": [0, 1]})
        >>> log.mcc.by(rollup("a", "b"))["keys"].to_list()
        ['a, b', 'a, b', 'a', 'a', '']
    """
    return KeySets("rollup", columns, total)


@any_key.word("cube(country, device)")
def cube(*columns: any_key.IntoKey, total: bool = True) -> KeySets:
    """Slice by every set of the columns, as SQL's CUBE does.

    Args:
        *columns: Names, expressions, selectors, `bins`.
        total: Add the total: all rows as one slice.

    Returns:
        A key for the verbs that take keys, as `each` gives.

    Examples:
        >>> import polars as pl
        >>> from polars_mcc import cube
        >>> log = pl.DataFrame({"a": [1, 1], "b": [3, 3], "gold": [0, 1], "pred": [0, 1]})
        >>> log.mcc.by(cube("a", "b"))["keys"].to_list()
        ['a, b', 'a', 'b', '']
    """
    return KeySets("cube", columns, total)


@any_key.word("sets((country, device), country, ())")
def sets(*columns: any_key.IntoKey | Sequence[any_key.IntoKey], total: bool = False) -> KeySets:
    """Slice by a list of sets of columns, as SQL's GROUPING SETS does.

    Args:
        *columns: A tuple for each set of columns: names, expressions, selectors, `bins`. A column
            is a set of one. `()` is the total.
        total: Add the total: all rows as one slice.

    Returns:
        A key for the verbs that take keys, as `each` gives.

    Examples:
        >>> import polars as pl
        >>> from polars_mcc import sets
        >>> log = pl.DataFrame({"a": [1, 1], "b": [3, 3], "gold": [0, 1], "pred": [0, 1]})
        >>> log.mcc.by(sets(("a", "b"), "b", ()))["keys"].to_list()
        ['a, b', 'b', '']
    """
    listed = (
        tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else given
        for given in columns
    )
    return KeySets("sets", tuple(listed), total)


@dataclass(frozen=True)
class KeySets(any_key.Key):
    """Several sets of keys: the result of `each`, `rollup`, `cube` and `sets`."""

    kind: Literal["each", "rollup", "cube", "sets"]
    columns: tuple[Any, ...]  # columns and bins, and for `sets` also tuples of them
    total: bool
    stands_for: ClassVar[Literal["sets"]] = "sets"

    def __repr__(self) -> str:
        """The call that makes it."""
        total = "" if self.total == (self.kind in {"rollup", "cube"}) else f"total={self.total}"
        return f"{self.kind}({', '.join(filter(None, [*map(as_code, self.columns), total]))})"

    def made(self, schema: pl.Schema) -> any_key.Made:
        """The columns of all sets, and the names of each set."""
        kind = self.kind
        if kind == "sets":
            of_sets = [[*any_key.columns_of(schema, keys)] for keys in self._each]
            listed: list[any_key.KeySet] = [(*resolved(schema, keys, "key"),) for keys in of_sets]
            columns = [*itertools.chain(*of_sets)]
            if same := any_key.twice(map(frozenset, listed)):
                [*_, last] = (names for names in listed if {*names} == same[0])
                raise ValueError(f"sets(...) has {last!r} twice")
        else:
            columns = [*any_key.columns_of(schema, self.columns)]
            names = (*resolved(schema, columns, "key"),)
            sizes = range(min(1, len(names)) if kind == "each" else len(names), 0, -1)
            listed = [some for size in sizes for some in itertools.combinations(names, size)]
            if kind == "rollup":
                listed = [names[:size] for size in sizes]
        if self.columns and not listed:
            msg = f"{kind}(...) matches no column; the columns are {few(schema)}"
            raise pl.exceptions.ColumnNotFoundError(msg)
        if not listed and not (kind == "sets" and self.total):
            raise ValueError(f"{kind}() is empty: name keys, as in {kind}('country', 'device')")
        return any_key.Made(columns, [*listed, ()] if self.total and () not in listed else listed)

    @property
    def _each(self) -> list[tuple[any_key.IntoKey, ...]]:
        """The columns, each as a set."""
        return [keys if isinstance(keys, tuple) else (keys,) for keys in self.columns]

    @property
    def is_settled(self) -> bool:
        """Whether all columns are settled."""
        keys = itertools.chain(*self._each)
        return all(key.is_settled for key in keys if isinstance(key, any_key.Key))

    def settled(self, log: Described[Any], *, unread: bool) -> KeySets:
        """The same sets, with settled columns."""

        def known(key: Any) -> Any:  # noqa: ANN401 - a key, or a set of keys
            if isinstance(key, tuple):
                return tuple(map(known, key))
            return any_key.settled(log, [key], unread=unread)[0]

        return replace(self, columns=known(self.columns))


@any_key.word("trailing(day, '7d', every='1d')", of_one=True)
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
class Trailing(any_key.Key):
    """Windows of time, one that ends with each step: the result of `trailing`."""

    index: IntoColumn
    window: str
    every: str
    align: Align
    stands_for: ClassVar[Literal["windows"]] = "windows"

    def __repr__(self) -> str:
        """The call that makes it."""
        options = as_arguments({"every": self.every, "align": self.align})
        return f"trailing({as_code(self.index)}, {as_code(self.window)}, {options})"

    def made(self, schema: pl.Schema) -> any_key.Made:
        """The windows of the index."""
        index = one_column(schema, self.index, "index")
        window, every = step_of("window", self.window), step_of("every", self.every)
        (length, months), (step, is_months) = any_key.length_of(*window), any_key.length_of(*every)
        if months != is_months or length % step:
            raise ValueError(
                f"window={self.window!r} must be a multiple of every={self.every!r}: a window is "
                "the sum of the counts of whole steps"
            )
        if not isinstance(index.dtype, (pl.Date, pl.Datetime)):
            what = f"index '{index.name}' must be Date or Datetime, but is {index.dtype}; "
            raise pl.exceptions.SchemaError(said(what, made_a_time(index.name, index.dtype)))
        windows = any_key.Windows(index, *every, length // step, self.align)
        check_days(index, "index", self.every)
        return any_key.Made([], windows=windows)


def step_of(name: str, length: str) -> tuple[int, str]:
    """The number and the unit of a length of time, or a ValueError."""
    parts = re.fullmatch(r"(\d+)([a-z]+)", length) if isinstance(length, str) else None
    if parts is None or parts[2] not in {*any_key.UNITS, *any_key.MONTHS} or int(parts[1]) == 0:
        msg = f"{name} must be a number and a unit, as '7d', '12h', '1w' or '3mo', got {length!r}"
        raise ValueError(msg)
    return int(parts[1]), parts[2]


def check_days(time: NamedColumns, role: str, every: str) -> None:
    """Raise a ValueError if steps of dates are shorter than a day."""
    _, unit = step_of("every", every)
    if unit in any_key.UNITS and any_key.UNITS[unit] < any_key.UNITS["d"] and time.dtype == pl.Date:
        msg = f"every={every!r} is shorter than a day, but {role} '{time.name}' is a Date"
        raise ValueError(msg)

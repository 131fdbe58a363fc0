"""The key `trailing`: windows of time, one that ends with each step."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

import polars as pl

from polars_mcc._base.allowed_values import Align, check_choice
from polars_mcc._base.message_parts import as_arguments, as_code, said
from polars_mcc._frame.columns import IntoColumn, NamedColumns, made_a_time, one_column
from polars_mcc._keys.any_key import MONTHS, UNITS, Key, Made, Windows, length_of, word


@word("trailing(day, '7d', every='1d')", of_one=True)
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
class Trailing(Key):
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

    def made(self, schema: pl.Schema) -> Made:
        """The windows of the index."""
        index = one_column(schema, self.index, "index")
        window, every = step_of("window", self.window), step_of("every", self.every)
        (length, months), (step, is_months) = length_of(*window), length_of(*every)
        if months != is_months or length % step:
            raise ValueError(
                f"window={self.window!r} must be a multiple of every={self.every!r}: a window is "
                "the sum of the counts of whole steps"
            )
        if not isinstance(index.dtype, (pl.Date, pl.Datetime)):
            what = f"index '{index.name}' must be Date or Datetime, but is {index.dtype}; "
            raise pl.exceptions.SchemaError(said(what, made_a_time(index.name, index.dtype)))
        windows = Windows(index, *every, length // step, self.align)
        check_days(index, "index", self.every)
        return Made([], windows=windows)


def step_of(name: str, length: str) -> tuple[int, str]:
    """The number and the unit of a length of time, or a ValueError."""
    parts = re.fullmatch(r"(\d+)([a-z]+)", length) if isinstance(length, str) else None
    if parts is None or parts[2] not in {*UNITS, *MONTHS} or int(parts[1]) == 0:
        msg = f"{name} must be a number and a unit, as '7d', '12h', '1w' or '3mo', got {length!r}"
        raise ValueError(msg)
    return int(parts[1]), parts[2]


def check_days(time: NamedColumns, role: str, every: str) -> None:
    """Raise a ValueError if steps of dates are shorter than a day."""
    _, unit = step_of("every", every)
    if unit in UNITS and UNITS[unit] < UNITS["d"] and time.dtype == pl.Date:
        msg = f"every={every!r} is shorter than a day, but {role} '{time.name}' is a Date"
        raise ValueError(msg)

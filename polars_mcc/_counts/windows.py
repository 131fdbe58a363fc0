"""Trailing windows → their pairs. Rows are counted once, by part; parts add up to windows."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_mcc._counts.counted import merged
from polars_mcc._counts.sets import counted_by_sets
from polars_mcc._counts.sliced import COMPLETE, KEY, SlicedLog
from polars_mcc._log.keys import Windows

_BEGINS, _ORIGIN, _ENDS, _PLACE = "begins:", "origin:", "ends:", "place:"
_LAST, _END = "last:", "end:"


def counted_by_windows(log: SlicedLog) -> pl.LazyFrame:
    """Count the pairs of each window from the pairs of its parts, up to the last step of the log.

    Steps are numbered from the origin, where the first step begins. A window ends with a step and
    has a fixed number of steps. Its name is its last day, hour, minute or second. Rows without a
    time form a slice of their own.
    """
    windows = log.windows
    assert windows is not None  # noqa: S101 - for the type checker
    key = KEY + windows.index.name
    index, origin, ends = pl.col(key), pl.col(_ORIGIN), pl.col(_ENDS)
    # One scan serves the rows and the span of the log, its first and last time.
    frame = log.frame.cache()
    span = frame.select(
        _truncated(windows, index.min(), _part(windows)).alias(_ORIGIN),
        _truncated(windows, index.min(), f"1{_unit(windows)}").alias(_BEGINS),
        _truncated(windows, index.max(), f"1{_unit(windows)}").alias(_ENDS),
    )
    part = _truncated(windows, index, _part(windows))
    parts = replace(log, frame=frame.with_columns(part), windows=None)
    pairs = counted_by_sets(parts)
    places = pl.LazyFrame({_PLACE: range(windows.per_window)}, schema={_PLACE: pl.Int64})
    last = _step(windows, origin, ends)
    is_untimed = index.is_null() & (pl.col(_PLACE) == 0)
    of_steps = (
        pairs.join(span, how="cross")
        .with_columns(_step(windows, origin, index).alias(key), last.alias(_LAST))
        .join(places, how="cross")
        .with_columns(index + pl.col(_PLACE))
        .filter((index <= pl.col(_LAST)) | is_untimed)
    )
    start = _after(windows, origin, index + 1 - windows.per_window)
    end = _last(windows, _after(windows, origin, index + 1))
    is_complete = (start >= pl.col(_BEGINS)) & (end <= ends)
    # Join by window: there are far fewer windows than slices.
    slices = merged(parts, of_steps).cache()
    steps = slices.group_by(key).agg().join(span, how="cross")
    named = steps.select(key, end.alias(_END), is_complete.alias(COMPLETE))
    found = slices.join(named, on=key, how="left")
    return found.with_columns(pl.col(_END).alias(key)).drop(_END)


def _unit(windows: Windows) -> str:
    """The unit of window names: days, or the unit of steps if it is shorter than a day."""
    return windows.unit if windows.is_clock else "d"


def _part(windows: Windows) -> str:
    """The length of a part: rows are counted by part, and a step is one or several parts."""
    if windows.align == "calendar":
        return f"{windows.number}{windows.unit}"
    return "1mo" if windows.is_months else f"1{_unit(windows)}"


def _truncated(windows: Windows, time: pl.Expr, length: str) -> pl.Expr:
    zone = getattr(windows.index.dtype, "time_zone", None)
    if not (windows.is_clock and zone):
        return time.dt.truncate(length)
    # In local time, hours repeat or are missing when clocks are set.
    return time.dt.convert_time_zone("UTC").dt.truncate(length).dt.convert_time_zone(zone)


def _step(windows: Windows, origin: pl.Expr, time: pl.Expr) -> pl.Expr:
    """The number of the step of a time, from 0."""
    if windows.is_clock:
        passed = (time - origin).dt.total_nanoseconds()
    elif windows.is_months:
        passed = _months(time) - _months(origin)
    else:
        passed = (time.dt.date() - origin.dt.date()).dt.total_days()
    return passed // windows.size


def _months(time: pl.Expr) -> pl.Expr:
    return time.dt.year().cast(pl.Int64) * 12 + time.dt.month().cast(pl.Int64)


def _after(windows: Windows, origin: pl.Expr, steps: pl.Expr) -> pl.Expr:
    """The time that is a number of steps after the origin."""
    unit = "ns" if windows.is_clock else "mo" if windows.is_months else "d"
    length = pl.concat_str((steps * windows.size).cast(pl.String), pl.lit(unit))
    if windows.is_clock or windows.index.dtype == pl.Date:
        return origin.dt.offset_by(length)
    # From noon: days on which clocks are set may have no midnight.
    return origin.dt.offset_by("12h").dt.offset_by(length).dt.truncate("1d")


def _last(windows: Windows, end: pl.Expr) -> pl.Expr:
    """The last day, hour, minute or second before a time."""
    if windows.is_clock or windows.index.dtype == pl.Date:
        return end.dt.offset_by(f"-1{_unit(windows)}")
    return end.dt.offset_by("-12h").dt.truncate("1d")

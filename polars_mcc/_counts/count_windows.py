"""Trailing windows → their pairs. Rows are counted once, by part; parts add up to windows."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_mcc._counts.count_rows import count_pairs_of_sets, merged
from polars_mcc._counts.sliced_log import COMPLETE, KEY, SlicedLog
from polars_mcc._keys.any_key import Windows

_BEGINS, _ORIGIN, _ENDS, _PLACE = "begins:", "origin:", "ends:", "place:"
_LAST, _END = "last:", "end:"


def count_pairs_of_windows(log: SlicedLog, windows: Windows) -> pl.LazyFrame:
    """Count the pairs of each window from the pairs of its parts, up to the last step of the log.

    Steps are numbered from the origin, where the first step begins. A window ends with a step and
    has a fixed number of steps. Its name is its last day, hour, minute or second. Rows without a
    time form a slice of their own.

    Days and longer steps are of local time, hours and shorter steps of UTC: so no clock is set
    between two steps.
    """
    key = KEY + windows.index.name
    index, origin, ends = pl.col(key), pl.col(_ORIGIN), pl.col(_ENDS)
    # One scan serves the rows and the span of the log, its first and last time.
    frame = log.frame.with_columns(_without_zone(windows, index)).cache()
    unit = f"1{_unit(windows)}"
    span = frame.select(
        index.min().dt.truncate(_part(windows)).alias(_ORIGIN),
        index.min().dt.truncate(unit).alias(_BEGINS),
        index.max().dt.truncate(unit).alias(_ENDS),
    )
    part = index.dt.truncate(_part(windows))
    parts = replace(log, frame=frame.with_columns(part), windows=None)
    pairs = count_pairs_of_sets(parts)
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
    # Join by window: there are far fewer windows than slices.
    slices = merged(parts, of_steps).cache()
    steps = slices.group_by(key).agg().join(span, how="cross")
    named = slices.join(_names_of(windows, steps, index), on=key, nulls_equal=True)
    return named.with_columns(pl.col(_END).alias(key)).drop(_END)


def _names_of(windows: Windows, steps: pl.LazyFrame, index: pl.Expr) -> pl.LazyFrame:
    """The name of each window, and whether it is complete; null for rows without a time.

    Clocks of a zone may skip a day. No window ends with this day if each day ends a window;
    otherwise the window has the name of the day before.
    """
    unit, origin = _unit(windows), pl.col(_ORIGIN)
    start, after = (_after(windows, origin, index + steps) for steps in (1 - windows.per_window, 1))
    begun, ended = _in_zone(windows, start), _in_zone(windows, after)
    first = _in_zone(windows, pl.col(_BEGINS))
    end = _in_zone(windows, pl.col(_ENDS).dt.offset_by(f"1{unit}"))
    last = after.dt.offset_by(f"-1{unit}")
    is_skipped = _in_zone(windows, last) == ended
    name = pl.when(is_skipped).then(last.dt.offset_by("-1d")).otherwise(last)
    is_daily = not windows.is_clock and not windows.is_months and windows.size == 1
    is_named = ~is_skipped if is_daily else pl.lit(value=True)
    return steps.filter(is_named | index.is_null()).select(
        index,
        _in_zone(windows, name).alias(_END),
        ((begun >= first) & (ended <= end)).alias(COMPLETE),
    )


def _unit(windows: Windows) -> str:
    """The unit of window names: days, or the unit of steps if it is shorter than a day."""
    return windows.unit if windows.is_clock else "d"


def _part(windows: Windows) -> str:
    """The length of a part: rows are counted by part, and a step is one or several parts."""
    if windows.align == "calendar":
        return f"{windows.number}{windows.unit}"
    return "1mo" if windows.is_months else f"1{_unit(windows)}"


def _zone(windows: Windows) -> str | None:
    zone: str | None = getattr(windows.index.dtype, "time_zone", None)
    return zone


def _without_zone(windows: Windows, time: pl.Expr) -> pl.Expr:
    """A time on clocks that are never set: UTC for hours, the local calendar for days."""
    if _zone(windows) is None:
        return time
    if windows.is_clock:
        return time.dt.convert_time_zone("UTC")
    return time.dt.replace_time_zone(None)


def _in_zone(windows: Windows, time: pl.Expr) -> pl.Expr:
    """The same time in the zone of the log. A day is its first moment, at most an hour late.

    A day that clocks have skipped is the first moment of the next day.
    """
    zone = _zone(windows)
    if zone is None:
        return time
    if windows.is_clock:
        return time.dt.convert_time_zone(zone)
    midnight, noon = (
        day.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
        for day in (time, time.dt.offset_by("-12h"))
    )
    # From the noon before: days on which clocks are set may have no midnight.
    return pl.coalesce(midnight, noon + pl.duration(hours=12))


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
    return origin.dt.offset_by(length)

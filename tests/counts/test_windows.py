"""Trailing windows as a key score as a filter per window."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import exact
from polars.testing import assert_frame_equal
from support import first, in_turn

from polars_mcc import each, trailing

FIRST = dt.datetime(2026, 1, 28, 5)
HOURS = st.one_of(st.none(), st.integers(0, 24 * 70))
codes = st.one_of(st.none(), st.integers(0, 2))
logs = st.lists(st.tuples(st.sampled_from(["x", "y"]), HOURS, codes, codes), max_size=25)
SCHEMA = {"key": pl.String, "ts": pl.Datetime("us"), "gold": pl.Int64, "pred": pl.Int64}
DAY, HOUR = dt.timedelta(days=1), dt.timedelta(hours=1)


def frame_of(rows) -> pl.DataFrame:
    timed = [
        (key, None if hours is None else FIRST + hours * HOUR, gold, pred)
        for key, hours, gold, pred in rows
    ]
    return pl.DataFrame(timed, schema=SCHEMA, orient="row")


def day_of(time: dt.datetime) -> dt.datetime:
    return dt.datetime(time.year, time.month, time.day)


def after_months(time: dt.datetime, months: int) -> dt.datetime:
    place = time.year * 12 + time.month - 1 + months
    return dt.datetime(place // 12, place % 12 + 1, 1)


@dataclass(frozen=True)
class Steps:
    """The steps of a window, computed in Python as the reference."""

    align: str
    origin: object
    """From a time of the log to the start of its step."""
    step: object
    """From an origin and a number of steps to the start of that step."""
    steps_per_window: int
    unit: dt.timedelta
    """The length of the last part of a window, which names the window."""


def months(size: int):
    return lambda origin, number: after_months(origin, number * size)


def lengths(size: dt.timedelta):
    return lambda origin, number: origin + number * size


def monday(time: dt.datetime) -> dt.datetime:
    return day_of(time) - time.weekday() * DAY


def quarter(time: dt.datetime) -> dt.datetime:
    return dt.datetime(time.year, (time.month - 1) // 3 * 3 + 1, 1)


def month(time: dt.datetime) -> dt.datetime:
    return dt.datetime(time.year, time.month, 1)


def hour(time: dt.datetime) -> dt.datetime:
    return day_of(time) + time.hour * HOUR


def three_hours(time: dt.datetime) -> dt.datetime:
    return day_of(time) + time.hour // 3 * 3 * HOUR


WINDOWS = {
    ("7d", "1d"): Steps("data", day_of, lengths(DAY), 7, DAY),
    ("7d", None): Steps("data", day_of, lengths(7 * DAY), 1, DAY),
    ("1w", None): Steps("data", day_of, lengths(7 * DAY), 1, DAY),
    ("48h", "1d"): Steps("data", day_of, lengths(DAY), 2, DAY),
    ("10d", "5d"): Steps("data", day_of, lengths(5 * DAY), 2, DAY),
    ("2mo", "1mo"): Steps("data", month, months(1), 2, DAY),
    ("1q", None): Steps("data", month, months(3), 1, DAY),
    ("6h", "3h"): Steps("data", hour, lengths(3 * HOUR), 2, HOUR),
    ("2w", "1w"): Steps("calendar", monday, lengths(7 * DAY), 2, DAY),
    ("3mo", "1mo"): Steps("calendar", month, months(1), 3, DAY),
    ("1q", "3mo"): Steps("calendar", quarter, months(3), 1, DAY),
    ("6h", "3h", "calendar"): Steps("calendar", three_hours, lengths(3 * HOUR), 2, HOUR),
}


def filtered(rows, steps: Steps) -> list[tuple]:
    """(key, window, complete, n, mcc, n_null) of each slice, from a loop over rows and windows."""
    timed = [(key, FIRST + h * HOUR, g, p) for key, h, g, p in rows if h is not None]
    windows: list[tuple] = [(None, None, None, None)]
    if timed:
        first, last = min(t for _, t, *_ in timed), max(t for _, t, *_ in timed)
        origin, number = steps.origin(first), 0
        while steps.step(origin, number) <= last:
            number += 1
            start = steps.step(origin, number - steps.steps_per_window)
            end = steps.step(origin, number)
            part = hour if steps.unit == HOUR else day_of
            complete = part(first) <= start and end - steps.unit <= part(last)
            windows.append((end - steps.unit, complete, start, end))
    found = []
    for key in ("x", "y"):
        for name, complete, start, end in windows:
            if name is None:
                inside = [(g, p) for k, h, g, p in rows if k == key and h is None]
            else:
                inside = [(g, p) for k, t, g, p in timed if k == key and start <= t < end]
            if inside:
                table = Counter(pair for pair in inside if None not in pair)
                truth = exact(table)
                score = None if truth is None else pytest.approx(float(truth), abs=1e-15)
                left_out = len(inside) - table.total()
                found.append((key, name, complete, table.total(), score, left_out))
    return found


@pytest.mark.parametrize("length", WINDOWS, ids=str)
@given(rows=logs)
def test_a_window_is_a_filter(run, length, rows):
    window, every, *_ = length
    steps = WINDOWS[length]
    key = trailing("ts", window, every=every, align=steps.align)
    answer = run(frame_of(rows), lambda log: log.mcc.by("key", key))
    assert answer.columns == ["key", "ts", "complete", "n", "mcc", "n_null"]
    assert answer.rows() == filtered(rows, steps)


def test_a_window_is_named_by_the_day_that_it_ends_with(run):
    days = [dt.date(2026, 9, 1) + day * DAY for day in range(20)]
    log = pl.DataFrame({"day": days, "gold": 1, "pred": 1})
    answer = run(log, lambda log: log.mcc.by(trailing("day", "7d")))
    ends = [dt.date(2026, 9, day) for day in (7, 14, 21)]
    assert answer.select("day", "complete", "n").rows() == [
        (ends[0], True, 7),
        (ends[1], True, 7),
        (ends[2], False, 6),
    ]
    weeks = run(log, lambda log: log.mcc.by(trailing("day", "1w", align="calendar")))
    ends = [dt.date(2026, 9, day) for day in (6, 13, 20)]  # Sundays; the 1st is a Tuesday
    assert weeks.select("day", "complete", "n").rows() == [
        (ends[0], False, 6),
        (ends[1], True, 7),
        (ends[2], True, 7),
    ]


def test_windows_of_the_calendar_that_touch_are_slices_by_truncate(run):
    log = frame_of([("x", hours, hours % 3, hours % 2) for hours in range(0, 900, 7)])
    key = trailing("ts", "1w", align="calendar")
    answer = run(log, lambda log: log.mcc.by("key", key, ci=0.95)).drop("complete", "ts")
    week = pl.col("ts").dt.truncate("1w")
    assert_frame_equal(answer, log.mcc.by("key", week, ci=0.95).drop("ts"), rel_tol=1e-12)


def test_an_interval_of_a_window_is_that_of_its_rows(run):
    log = frame_of([("x", hours, hours % 3, hours % 2) for hours in range(0, 900, 7)])
    log = log.with_columns(user=pl.int_range(pl.len()) % 5)
    answer = run(
        log, lambda log: log.mcc(cluster="user").by(trailing("ts", "7d", every="1d"), ci=0.95)
    )
    at = dt.datetime(2026, 2, 10)
    inside = log.filter(
        pl.col("ts").is_between(dt.datetime(2026, 2, 4), dt.datetime(2026, 2, 11), closed="left")
    )
    alone = inside.mcc(cluster="user").score(ci=0.95)
    found = answer.filter(pl.col("ts") == at).drop("ts", "complete")
    assert_frame_equal(found, alone, rel_tol=1e-12)


def test_windows_of_sets(run):
    log = frame_of([("x", 1, 0, 0), ("y", 2, 0, 1), ("x", 30, 1, 1)])
    keys = [each("key", total=True), trailing("ts", "2d", every="1d")]
    answer = run(log, lambda log: log.mcc.by(*keys, long=True))
    assert answer.columns == ["slice", "keys", "ts", "complete", "n", "mcc", "n_null"]
    first, second = dt.datetime(2026, 1, 28), dt.datetime(2026, 1, 29)
    assert answer.select("slice", "keys", "ts", "complete", "n").rows() == [
        ("key = x", "key", first, False, 1),
        ("key = x", "key", second, True, 2),
        ("key = y", "key", first, False, 1),
        ("key = y", "key", second, True, 1),
        ("all rows", "", first, False, 2),
        ("all rows", "", second, True, 3),
    ]


VERBS = {
    "counts": lambda log, *keys: log.mcc.counts(*keys),
    "classes": lambda log, *keys: log.mcc.classes(*keys),
    "confusion": lambda log, *keys: log.mcc.confusion(*keys, labels=[0, 1, 2]),
    "costliest": lambda log, *keys: log.mcc.confusion(*keys, top=1),
    "compare": lambda log, *keys: log.mcc(pred=["pred", "gold"]).compare(*keys),
    "metrics": lambda log, *keys: log.mcc.by(*keys, metrics=["f1_macro", "chi2"]),
    "check": lambda log, *keys: log.mcc.check(*keys, metric="accuracy", min=0),
}


@pytest.mark.parametrize("verb", first(3, VERBS))
def test_every_verb_takes_windows(verb):
    """For each window, a verb gives the same rows as for a log of the rows of this window."""
    log = frame_of([("x", hours, hours % 3, hours % 2) for hours in range(0, 400, 7)])
    answer = VERBS[verb](log, trailing("ts", "3d", every="1d"))
    ends = answer["ts"].unique()
    assert len(ends) == 17
    for end in ends.sort()[::4]:  # the first and the last are among them
        inside = log.filter(pl.col("ts").is_between(end - 2 * DAY, end + DAY, closed="left"))
        alone = VERBS[verb](inside).drop("p_adjusted", strict=False)
        part = answer.filter(pl.col("ts") == end)
        assert part["complete"].unique().to_list() == [end - 2 * DAY >= day_of(FIRST)]
        assert_frame_equal(part.select(alone.columns), alone, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("ask", "reason"),
    [
        (lambda log, key: log.mcc.drift(key, before="gold", after="gold"), "windows overlap"),
        (lambda log, key: log.mcc(score="gold").curve(key), "thresholds are of all rows"),
        (lambda log, key: log.mcc(score="gold").best_threshold(key), "thresholds are of all rows"),
        (lambda log, key: log.mcc.check(key, no_worse_than=log), "its rows are of another time"),
    ],
)
def test_verbs_that_take_no_windows_say_why(ask, reason):
    with pytest.raises(ValueError, match=rf"does not support trailing\(...\): {reason}"):
        ask(frame_of([]), trailing("ts", "1d"))


def test_hours_of_a_day_that_has_25():
    """Clocks go back in Berlin on 25 October 2026, but all windows have the same length."""
    start = dt.datetime(2026, 10, 24, 22, tzinfo=dt.UTC)
    hours = [start + hour * HOUR for hour in range(25)]
    times = pl.Series("ts", hours).dt.convert_time_zone("Europe/Berlin")
    log = pl.DataFrame({"ts": times, "gold": 1, "pred": 1})
    answer = log.mcc.by(trailing("ts", "4h", every="2h"))
    assert answer["n"].to_list() == [2] + [4] * 11 + [3]
    assert answer["complete"].to_list() == [False] + [True] * 11 + [False]
    by_day = log.mcc.by(trailing("ts", "1d"))
    assert by_day["n"].to_list() == [25]


@pytest.mark.parametrize("align", ["data", "calendar"])
def test_days_of_a_week_that_has_169_hours(align):
    """Days are calendar days, whatever their number of hours."""
    start = dt.datetime(2026, 10, 18, 22, tzinfo=dt.UTC)  # a Monday, in Berlin
    hours = [start + hour * HOUR for hour in range(2 * 169)]
    times = pl.Series("ts", hours).dt.convert_time_zone("Europe/Berlin")
    log = pl.DataFrame({"ts": times, "gold": 1, "pred": 1})
    weeks = log.mcc.by(trailing("ts", "1w", align=align))
    assert weeks["n"].to_list() == [169, 168, 1]
    assert weeks["ts"].dt.date().to_list() == [
        dt.date(2026, *day) for day in ((10, 25), (11, 1), (11, 8))
    ]
    days = log.mcc.by(trailing("ts", "2d", every="1d", align=align))
    assert days["n"].to_list() == [24] + [48] * 5 + [49, 49] + [48] * 6 + [25]


@in_turn(
    first=[pytest.param(5, id="within"), pytest.param(8, id="at the start")],
    align=["data", "calendar"],
)
def test_days_without_a_midnight(first, align):
    """On 8 September 2024 the clocks of Santiago went from 23:59 to 1:00."""
    days = [dt.date(2024, 9, day) for day in range(first, 12)]
    noons = [dt.datetime(day.year, day.month, day.day, 12) for day in days]
    times = pl.Series("ts", noons).dt.replace_time_zone("America/Santiago")
    log = pl.DataFrame({"ts": times, "gold": 1, "pred": 1})
    for size in (1, 2):
        answer = log.mcc.by(trailing("ts", f"{size}d", every="1d", align=align))
        assert answer["ts"].dt.date().to_list() == days
        assert answer["n"].to_list() == [1, *[size] * (len(days) - 1)]
        assert answer["complete"].to_list() == [size == 1, *[True] * (len(days) - 1)]
    [month] = log.mcc.by(trailing("ts", "1mo"))["ts"].dt.date()
    assert month == dt.date(2024, 9, 30)


ODD_DAYS = {
    "Pacific/Apia": (2011, 12, 30),  # no such day
    "Pacific/Fakaofo": (2011, 12, 30),  # no such day
    "Pacific/Kwajalein": (1993, 8, 21),  # no such day
    "Pacific/Kiritimati": (1994, 12, 31),  # no such day
    "Australia/Lord_Howe": (1981, 3, 1),  # begins at 0:30
    "Africa/Monrovia": (1972, 1, 7),  # begins at 0:44:30
    "America/Toronto": (1919, 3, 31),  # begins at 0:30
    "America/Santiago": (2024, 9, 8),  # begins at 1:00
    "America/Havana": (2024, 11, 3),  # midnight comes twice
    "Europe/Berlin": (2026, 10, 25),
    "Asia/Kathmandu": (1986, 1, 1),  # begins at 0:15
    "Africa/Casablanca": (2026, 2, 15),
    "Etc/GMT+12": (2026, 1, 1),
}
OF_DAYS = {  # days of a window and of a step
    ("1d", None, "data"): (1, 1),
    ("7d", None, "data"): (7, 7),
    ("7d", "1d", "data"): (7, 1),
    ("2d", "1d", "calendar"): (2, 1),
    ("6d", "3d", "data"): (6, 3),
    ("1w", None, "calendar"): (7, 7),
}


def by_calendar(log: pl.DataFrame, days: int, step: int, *, is_week: bool) -> list:
    """(last day, complete, n) of each window, from the local days of rows, counted one by one."""
    rows = Counter(log["ts"].dt.date())
    first, last = min(rows), max(rows)
    around = pl.datetime_range(
        dt.datetime(first.year, first.month, first.day) - 20 * DAY,
        dt.datetime(last.year, last.month, last.day) + 20 * DAY,
        "10m",
        time_zone="UTC",
        eager=True,
    )
    existing = {*around.dt.convert_time_zone(log.schema["ts"].time_zone).dt.date()}
    found, end = [], first + (step - 1 - first.weekday() * is_week) * DAY
    while end - step * DAY < last:
        inside = [day for day in (end - ago * DAY for ago in range(days)) if day in existing]
        n = sum(rows[day] for day in inside)
        if n and (step > 1 or end in existing):
            found.append((inside[0], first <= inside[-1] and inside[0] <= last, n))
        end += step * DAY
    return found


@given(
    zone=st.sampled_from([*ODD_DAYS]),
    start=st.integers(-20, 8),
    hours=st.lists(st.integers(1, 60), max_size=20),
    length=st.sampled_from([*OF_DAYS]),
)
def test_a_window_of_days_is_of_local_days(zone, start, hours, length):
    at = dt.datetime(*ODD_DAYS[zone]) + start * DAY / 2
    times = [at + sum(hours[:place]) * HOUR for place in range(len(hours) + 1)]
    times = pl.Series("ts", times).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    log = pl.DataFrame({"ts": times, "gold": 1, "pred": 1})
    window, every, align = length
    key = trailing("ts", window, every=every, align=align)
    answer = log.mcc.by(key).select(pl.col("ts").dt.date(), "complete", "n")
    assert answer.rows() == by_calendar(log, *OF_DAYS[length], is_week=window == "1w")
    in_hours = trailing("ts", "6h", every="2h", align=align)
    in_utc = log.with_columns(pl.col("ts").dt.convert_time_zone("UTC")).mcc.by(in_hours)
    assert_frame_equal(log.mcc.by(in_hours).with_columns(in_utc["ts"]), in_utc)


def test_no_window_ends_with_a_day_that_does_not_exist(run):
    """The clocks of Samoa went from the end of 29 to the start of 31 December 2011."""
    noons = [dt.datetime(2011, 12, day, 12) for day in (*range(24, 30), 31)]
    times = pl.Series("ts", noons).dt.replace_time_zone("Pacific/Apia")
    log = pl.DataFrame({"ts": times, "gold": 1, "pred": 1})

    def asked(window: str, every: str | None = None) -> list[tuple]:
        answer = run(log, lambda log: log.mcc.by(trailing("ts", window, every=every)))
        assert answer.schema["ts"] == log.schema["ts"]
        return answer.select(pl.col("ts").dt.day(), "complete", "n").rows()

    assert asked("1d") == [(day, True, 1) for day in (*range(24, 30), 31)]
    assert asked("7d") == [(29, True, 6), (6, False, 1)]
    assert asked("2d", "1d")[-2:] == [(29, True, 2), (31, True, 1)]
    assert asked("1mo") == [(31, False, 7)]


def test_a_date_is_an_index():
    log = frame_of([("x", 24 * day, 0, 0) for day in range(4)]).with_columns(pl.col("ts").dt.date())
    answer = log.mcc.by(trailing(pl.col("ts").alias("day"), "2d", every="1d"))
    assert answer.schema["day"] == pl.Date
    assert answer["n"].to_list() == [1, 2, 2, 2]


def test_windows_of_no_rows(run):
    answer = run(frame_of([]), lambda log: log.mcc.by("key", trailing("ts", "7d")))
    assert answer.is_empty()
    assert answer.columns == ["key", "ts", "complete", "n", "mcc", "n_null"]
    untimed = run(frame_of([("x", None, 0, 0)]), lambda log: log.mcc.by(trailing("ts", "7d")))
    assert untimed.rows() == [(None, None, 1, 0.0, 0)]


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        (("ts", "7d", "2d"), ValueError, "window='7d' must be a multiple of every='2d'"),
        (("ts", "1d", "7d"), ValueError, "multiple of every='7d'"),
        (("ts", "1mo", "1d"), ValueError, "multiple of every='1d'"),
        (("ts", "7 days", None), ValueError, "a number and a unit, as '7d'"),
        (("ts", "0d", None), ValueError, "a number and a unit, as '7d'"),
        (("key", "7d", None), pl.exceptions.SchemaError, "'key' must be Date or"),
        (("t", "7d", None), pl.exceptions.ColumnNotFoundError, "'t' for index"),
        (
            (pl.col("ts").dt.date(), "1d", "1h"),
            ValueError,
            "every='1h' is shorter than a day, but i",
        ),
    ],
)
def test_windows_that_make_no_sense(key, error, message):
    index, window, every = key
    with pytest.raises(error, match=message):
        frame_of([]).mcc.by("key", trailing(index, window, every=every))


def test_windows_that_hide_a_key():
    with pytest.raises(pl.exceptions.DuplicateError, match="'ts' is given twice"):
        frame_of([]).mcc.by("ts", trailing("ts", "1d"))
    with pytest.raises(ValueError, match="only one trailing"):
        frame_of([]).mcc.by(trailing("ts", "1d"), trailing("ts", "2d"))
    with pytest.raises(ValueError, match="align must be one of 'data', 'calendar', got 'monday'"):
        trailing("ts", "1d", align="monday")
    complete = frame_of([]).rename({"key": "complete"})
    with pytest.raises(pl.exceptions.DuplicateError, match="key 'complete' has the name"):
        complete.mcc.by("complete", trailing("ts", "1d"))

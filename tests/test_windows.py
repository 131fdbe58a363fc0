"""`by` over trailing windows: the same as a filter for each window."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import exact
from polars.testing import assert_frame_equal

import polars_mcc

FIRST = dt.datetime(2026, 1, 28)
HOURS = st.one_of(st.none(), st.integers(0, 24 * 70))
codes = st.one_of(st.none(), st.integers(0, 2))
logs = st.lists(st.tuples(st.sampled_from(["x", "y"]), HOURS, codes, codes), max_size=25)
SCHEMA = {"key": pl.String, "ts": pl.Datetime("us"), "gold": pl.Int64, "pred": pl.Int64}


def frame_of(rows) -> pl.DataFrame:
    timed = [
        (key, None if hours is None else FIRST + dt.timedelta(hours=hours), gold, pred)
        for key, hours, gold, pred in rows
    ]
    return pl.DataFrame(timed, schema=SCHEMA, orient="row")


def day(time: dt.datetime) -> dt.datetime:
    return dt.datetime(time.year, time.month, time.day)


def month(time: dt.datetime) -> dt.datetime:
    return dt.datetime(time.year, time.month, 1)


def before(time: dt.datetime, months: int) -> dt.datetime:
    place = time.year * 12 + time.month - 1 - months
    return dt.datetime(place // 12, place % 12 + 1, 1)


LENGTHS = {
    # window, every: the step of a time, the step after one, the start of the window of a step
    ("7d", "1d"): (day, lambda d: d + dt.timedelta(1), lambda d: d - dt.timedelta(6)),
    ("48h", "1d"): (day, lambda d: d + dt.timedelta(1), lambda d: d - dt.timedelta(1)),
    ("2w", "1w"): (
        lambda t: day(t) - dt.timedelta(t.weekday()),
        lambda d: d + dt.timedelta(7),
        lambda d: d - dt.timedelta(7),
    ),
    ("3mo", "1mo"): (month, lambda d: before(d, -1), lambda d: before(d, 2)),
    ("6h", "3h"): (
        lambda t: day(t) + dt.timedelta(hours=t.hour // 3 * 3),
        lambda d: d + dt.timedelta(hours=3),
        lambda d: d - dt.timedelta(hours=3),
    ),
}


def filtered(rows, length) -> list[tuple]:
    """(key, window, n, mcc, n_null): every row looked at for every window."""
    step, following, start_of = LENGTHS[length]
    timed = [(key, FIRST + dt.timedelta(hours=h), g, p) for key, h, g, p in rows if h is not None]
    untimed = [(key, g, p) for key, h, g, p in rows if h is None]
    windows = []
    if timed:
        at, last = min(step(t) for _, t, *_ in timed), max(step(t) for _, t, *_ in timed)
        while at <= last:
            windows.append(at)
            at = following(at)
    found = []
    for key in ("x", "y"):
        parts = [(None, [(g, p) for k, g, p in untimed if k == key])]
        for at in windows:
            inside = [
                (g, p) for k, t, g, p in timed if k == key and start_of(at) <= t < following(at)
            ]
            parts.append((at, inside))
        for at, pairs in parts:
            if pairs:
                table = Counter(pair for pair in pairs if None not in pair)
                truth = exact(table)
                score = None if truth is None else pytest.approx(float(truth), abs=1e-15)
                found.append((key, at, table.total(), score, len(pairs) - table.total()))
    return found


@pytest.mark.parametrize("length", LENGTHS, ids=" every ".join)
@given(rows=logs)
def test_a_window_is_a_filter(run, length, rows):
    window, every = length
    answer = run(
        frame_of(rows),
        lambda log: polars_mcc.by(log, "key", index="ts", window=window, every=every),
    )
    assert answer.columns == ["key", "ts", "n", "mcc", "n_null"]
    assert answer.rows() == filtered(rows, length)


def test_windows_that_touch_are_slices_by_truncate(run):
    log = frame_of([("x", hours, hours % 3, hours % 2) for hours in range(0, 900, 7)])
    answer = run(log, lambda log: polars_mcc.by(log, "key", index="ts", window="1w", ci=0.95))
    week = pl.col("ts").dt.truncate("1w")
    assert_frame_equal(answer, polars_mcc.by(log, "key", week, ci=0.95), rel_tol=1e-12)


def test_an_interval_of_a_window_is_that_of_its_rows(run):
    log = frame_of([("x", hours, hours % 3, hours % 2) for hours in range(0, 900, 7)])
    log = log.with_columns(user=pl.int_range(pl.len()) % 5)
    answer = run(
        log,
        lambda log: polars_mcc.by(
            log, index="ts", window="7d", every="1d", ci=0.95, cluster="user"
        ),
    )
    at = dt.datetime(2026, 2, 10)
    inside = log.filter(
        pl.col("ts").is_between(dt.datetime(2026, 2, 4), dt.datetime(2026, 2, 11), closed="left")
    )
    alone = polars_mcc.score(inside, ci=0.95, cluster="user")
    found = answer.filter(pl.col("ts") == at).drop("ts")
    assert_frame_equal(found, alone, rel_tol=1e-12)


def test_windows_of_sets(run):
    log = frame_of([("x", 1, 0, 0), ("y", 2, 0, 1), ("x", 30, 1, 1)])
    answer = run(
        log,
        lambda log: polars_mcc.by(
            log, "key", index="ts", window="2d", every="1d", sets="each", total=True, long=True
        ),
    )
    assert answer.columns == ["slice", "value", "ts", "n", "mcc", "n_null"]
    first, second = dt.datetime(2026, 1, 28), dt.datetime(2026, 1, 29)
    assert answer.select("slice", "value", "ts", "n").rows() == [
        ("key", "x", first, 1),
        ("key", "x", second, 2),
        ("key", "y", first, 1),
        ("key", "y", second, 1),
        ("", None, first, 2),
        ("", None, second, 3),
    ]


def test_hours_of_a_day_that_has_25():
    """Clocks go back in Berlin on 25 October 2026: each window is still as long as another."""
    start = dt.datetime(2026, 10, 24, 22, tzinfo=dt.timezone.utc)
    hours = [start + dt.timedelta(hours=hour) for hour in range(25)]
    times = pl.Series("ts", hours).dt.convert_time_zone("Europe/Berlin")
    log = pl.DataFrame({"ts": times, "gold": 1, "pred": 1})
    answer = polars_mcc.by(log, index="ts", window="4h", every="2h")
    assert answer["n"].to_list() == [2] + [4] * 11 + [3]
    by_day = polars_mcc.by(log, index="ts", window="1d")
    assert by_day["n"].to_list() == [25]


def test_a_date_is_an_index():
    log = frame_of([("x", 24 * day, 0, 0) for day in range(4)]).with_columns(pl.col("ts").dt.date())
    answer = polars_mcc.by(log, index=pl.col("ts").alias("day"), window="2d", every="1d")
    assert answer.schema["day"] == pl.Date
    assert answer["n"].to_list() == [1, 2, 2, 2]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"window": "7d"}, ValueError, "window='7d' needs both an index and a window"),
        ({"index": "ts", "every": "1d"}, ValueError, "needs both an index and a window"),
        ({"index": "ts", "window": "7d", "every": "2d"}, ValueError, "multiple of every='2d'"),
        ({"index": "ts", "window": "1d", "every": "7d"}, ValueError, "multiple of every='7d'"),
        ({"index": "ts", "window": "1mo", "every": "1d"}, ValueError, "multiple of every='1d'"),
        ({"index": "ts", "window": "7 days"}, ValueError, "a number and a unit, as '7d'"),
        ({"index": "ts", "window": "0d"}, ValueError, "a number and a unit, as '7d'"),
        ({"index": "key", "window": "7d"}, pl.exceptions.SchemaError, "'key' must be Date or"),
        ({"index": "t", "window": "7d"}, pl.exceptions.ColumnNotFoundError, "'t' for index"),
        (
            {"index": pl.col("ts").dt.date(), "window": "1d", "every": "1h"},
            ValueError,
            "every='1h' is less than a day, but index 'ts' is Date",
        ),
    ],
)
def test_windows_that_make_no_sense(options, error, message):
    with pytest.raises(error, match=message):
        polars_mcc.by(frame_of([]), "key", **options)

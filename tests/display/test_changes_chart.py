"""The chart of a change shows the scores of the rows, which sklearn and plain loops give."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import matthews_corrcoef

from polars_mcc import bins, each, plot

START = dt.datetime(2026, 2, 15, 22, 30)


def log_of(days: int = 40, falls: dict[str, tuple[int, int]] | None = None) -> pl.DataFrame:
    """Rows of three countries. A country errs more from one day to another day."""
    rng = np.random.default_rng(7)
    n = days * 90
    day = np.repeat(np.arange(days), 90)
    country = rng.choice(["DE", "FR", "IT"], n)
    gold = (rng.random(n) < np.where(day % 7 > 4, 0.5, 0.2)).astype(int)
    errs = np.full(n, 0.1)
    for name, (first, last) in (falls or {"DE": (25, days)}).items():
        errs[(country == name) & (day >= first) & (day < last)] = 0.45
    pred = np.where(rng.random(n) < errs, 1 - gold, gold)
    frame = pl.DataFrame({"country": country, "gold": gold, "pred": pred, "number": day})
    at = pl.lit(START) + pl.duration(days="number")
    return frame.with_columns(ts=at, day=at.dt.date())


def rows_of(chart) -> list[dict]:
    [rows] = chart.to_dict()["datasets"].values()
    return rows


def parts(chart) -> tuple[list[dict], list[dict]]:
    """The periods and the bands of a chart."""
    rows = rows_of(chart)
    return [row for row in rows if not row.get("side")], [row for row in rows if row.get("side")]


def expected(rows: pl.DataFrame, whole: pl.DataFrame) -> float:
    """The MCC of rows if each gold label were predicted as in all rows of the slice."""
    seen = Counter(whole.select("gold", "pred").iter_rows())
    of_gold = Counter(whole["gold"])
    cells = Counter()
    for gold, n in Counter(rows["gold"]).items():
        for pred in (0, 1):
            cells[gold, pred] += n * seen[gold, pred] / of_gold[gold]
    pairs = [(gold, pred) for gold in (0, 1) for pred in (0, 1)]
    gold, pred = zip(*pairs, strict=True)
    return matthews_corrcoef(gold, pred, sample_weight=[cells[pair] for pair in pairs])


def score(rows: pl.DataFrame) -> float:
    return matthews_corrcoef(rows["gold"], rows["pred"])


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_points_and_bands_are_the_scores_of_the_rows(zone):
    frame = log_of().with_columns(pl.col("ts").dt.replace_time_zone(zone))
    log = frame.mcc(time="ts")
    found = log.changes("country")
    days = log.contrast(bins("ts", "1d"), within="country", to="expected")
    periods, bands = parts(plot.changes(found, days))
    name = f"country = DE, since {frame.filter(number=25)['day'][0]}: worse"
    assert next(iter({row["line"]: 0 for row in periods})) == name, "the surest change is first"
    for country, since in found.select("country", pl.col("since").dt.date()).rows():
        of_slice = frame.filter(country=country)
        own = [row for row in periods if f"country = {country}," in row["line"]]
        assert [row["at"][:10] for row in own] == [
            str(day) for day in of_slice["day"].unique().sort()
        ]
        for row in own:
            here = of_slice.filter(pl.col("day").cast(pl.String) == row["at"][:10])
            assert row["n"] == here.height
            assert row["score"] == pytest.approx(score(here), abs=1e-9)
            assert row["expected"] == pytest.approx(expected(here, of_slice), abs=1e-9)
        ends = {}
        for row in bands:
            if f"country = {country}," not in row["line"]:
                continue
            is_after = row["side"] == "after"
            here = of_slice.filter((pl.col("day") >= since) == is_after)
            assert row["n"] == here.height
            assert row["level"] == pytest.approx(score(here), abs=1e-9)
            assert row["explained"] == pytest.approx(expected(here, of_slice), abs=1e-9)
            ends[row["side"]] = row["at"][:10], row["end"][:10]
        first, last = frame["day"].min(), frame["day"].max() + dt.timedelta(days=1)
        assert ends == {"before": (str(first), str(since)), "after": (str(since), str(last))}


def test_bands_reach_as_far_as_the_rows_that_were_compared():
    """The country falls on day 20 and recovers on day 40: the second change is of a part."""
    frame = log_of(60, {"DE": (20, 40)}).filter(country="DE")
    log = frame.mcc(time="day")
    found = log.changes(max_changes=2, alternative="two-sided", every=None)
    assert {*found["verdict"]} == {"worse", "better"}
    chart = plot.changes(found, log.contrast("day", to="expected"))
    _, bands = parts(chart)
    assert len(bands) == 4
    spans = set()
    for row in bands:
        start, end = (dt.date.fromisoformat(row[name][:10]) for name in ("at", "end"))
        here = frame.filter(pl.col("day").is_between(start, end, closed="left"))
        assert row["n"] == here.height
        assert row["level"] == pytest.approx(score(here), abs=1e-9)
        spans.add(tuple((day - START.date()).days for day in (start, end)))
    assert any(start > 0 and end < 60 for start, end in spans), "or no change is of a part"
    scales = {layer["encoding"]["x"]["title"] for layer in chart.to_dict()["spec"]["layer"]}
    assert scales == {"day"}


def test_one_change_is_one_chart_and_top_leaves_out():
    log = log_of().mcc(time="ts")
    found = log.changes("country")
    days = log.contrast(bins("ts", "1d"), within="country", to="expected")
    two = plot.changes(found, days, top=2).to_dict()
    assert two["facet"]["field"] == "line"
    assert two["title"]["text"][0] == "The first 2 of 3 changes."
    alone = plot.changes(found, days, top=1).to_dict()
    assert alone["title"]["text"][0].startswith("country = DE, since")
    marks = [layer["mark"]["type"] for layer in alone["layer"]]
    assert marks == ["rect", "rule", "rule", "line", "line"]
    same = plot.changes(found.filter(verdict="worse"), days).to_dict()
    assert json.dumps(same["datasets"]) == json.dumps(alone["datasets"])


def test_models_and_a_day_of_one_class():
    frame = log_of().with_columns(other=pl.col("pred").shift(3).fill_null(0))
    frame = frame.filter((pl.col("number") != 3) | (pl.col("gold") == 0))
    log = frame.mcc(pred=["pred", "other"], time="day")
    found = log.changes("country")
    days = log.contrast("day", within="country", to="expected")
    periods, _ = parts(plot.changes(found, days))
    assert len({row["line"] for row in periods}) == 6
    of_worse = [row for row in periods if row["line"].startswith("country = DE, pred, since")]
    assert [row["score"] is None for row in of_worse].index(True) == 3
    assert [row["score"] is None for row in of_worse].count(True) == 1


def test_errors_say_what_to_ask_for():
    log = log_of().mcc(time="ts")
    found = log.changes("country")
    days = log.contrast(bins("ts", "1d"), to="expected")
    with pytest.raises(ValueError, match=r"contrast\(time, within=\['country'\], to='expected'\)"):
        plot.changes(found, days)
    by = log.by("country", bins("ts", "1d"))
    with pytest.raises(ValueError, match="needs a column 'metric'"):
        plot.changes(found, by)
    countries = log.contrast("number", within="country", to="expected")
    with pytest.raises(ValueError, match="the time of a period"):
        plot.changes(found, countries)
    few = log.changes("country", min_n=10**6)
    days = log.contrast(bins("ts", "1d"), within="country", to="expected")
    with pytest.raises(ValueError, match="no row of the result of changes"):
        plot.changes(few, days)
    with pytest.raises(ValueError, match="top must be an integer of at least 1, got 0"):
        plot.changes(found, days, top=0)


def test_a_change_that_is_part_of_another_says_so():
    log = log_of().mcc(time="day")
    found = log.changes(each("country", total=True)).filter(keys="").drop("keys", "country")
    chart = plot.changes(found, log.contrast("day", to="expected"))
    lines = {row["line"] for row in rows_of(chart)}
    assert lines == {"all rows, since 2026-03-12: part of country = DE"}

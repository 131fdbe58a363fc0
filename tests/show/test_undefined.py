"""Charts mark slices and times whose score is 0/0, and say how many; the report says it first."""

from __future__ import annotations

import datetime as dt
import json
import math

import polars as pl
import pytest

import polars_mcc

plot = pytest.importorskip("polars_mcc.plot")

DAYS = [dt.date(2026, 3, day) for day in range(1, 7)]
ONE_CLASS, COLLAPSED = DAYS[2], DAYS[4]


def log() -> pl.DataFrame:
    """Six days of 20 rows: one has one gold class, and one has one predicted class."""
    rows = pl.DataFrame({"day": DAYS}).join(pl.DataFrame({"i": range(20)}), how="cross")
    gold = pl.when(pl.col("day") == ONE_CLASS).then(0).otherwise((pl.col("i") % 3 == 0).cast(int))
    pred = pl.when(pl.col("i") == 7).then(1 - gold).otherwise(gold)
    pred = pl.when(pl.col("day") == COLLAPSED).then(0).otherwise(pred)
    return rows.select("day", key=pl.col("day").dt.day(), gold=gold, pred=pred)


def drawn(chart) -> list[dict]:
    """The rows of the data of a chart, in its first layer with a mark of points or lines."""
    [values, *_] = chart.to_dict()["datasets"].values()
    return values


@pytest.mark.parametrize("options", [{"ci": 0.95}, {}])
@pytest.mark.parametrize("zero_division", [0.0, None, math.nan])
def test_a_line_does_not_fall_to_0_where_the_score_is_0_over_0(options, zero_division):
    days = log().mcc(zero_division=zero_division).by("day", **options)
    chart = plot.over_time(days)
    rows = {row["at"][:10]: row for row in drawn(chart)}
    for day in DAYS:
        is_undefined = day in {ONE_CLASS, COLLAPSED}
        assert (rows[str(day)]["score"] is None) is is_undefined
        assert rows[str(day)]["is_undefined"] is is_undefined
    title = chart.to_dict()["title"]["text"]
    assert title.startswith("mcc is 0")
    assert title.endswith("in 2 of 6 times")
    marks = [layer["mark"] for layer in chart.to_dict()["layer"]]
    assert {"type": "point", "shape": "cross", "color": "#767676"} in marks


def test_slices_that_are_0_over_0_are_marked():
    chart = plot.slices(log().mcc.by("key", ci=0.95))
    rows = {row["slice"]: row for row in drawn(chart)}
    assert [rows[key]["score"] for key in ("3", "5")] == [None, None]
    assert chart.to_dict()["title"]["text"] == "mcc is 0/0 (one class only) in 2 of 6 rows"
    [text] = [layer for layer in chart.to_dict()["layer"] if layer["mark"]["type"] == "text"]
    assert text["encoding"]["text"] == {"value": "0/0"}
    rates = log().mcc(positive=1).by("key", metrics="fnr")
    chart = plot.slices(rates, metric="fnr")
    assert chart.to_dict()["title"]["text"] == "fnr is 0/0 (one class only) in 1 of 6 rows"
    scores = [row["score"] for row in sorted(drawn(chart), key=lambda row: row["slice"])]
    assert scores == [0, 0, None, 0, 1, 0]
    precision = log().mcc(positive=1).by("key", metrics=["precision", "fdr"], ci=0.95)
    for metric in ("precision", "fdr"):
        rows = {row["slice"]: row for row in drawn(plot.slices(precision, metric=metric))}
        assert [key for key, row in rows.items() if row["is_undefined"]] == ["5"]


def test_a_score_of_0_with_an_interval_is_a_score():
    guess = pl.DataFrame({"day": DAYS[:1] * 4, "gold": [0, 0, 1, 1], "pred": [0, 1, 0, 1]})
    [row] = drawn(plot.over_time(guess.mcc.by("day", ci=0.9)))
    assert (row["score"], row["is_undefined"]) == (0.0, False)
    never = guess.mcc.by("day", ci=0.9, metrics="accuracy").with_columns(accuracy=0.0)
    assert drawn(plot.over_time(never, metric="accuracy"))[0]["score"] == 0.0


def test_the_report_counts_slices_without_a_score():
    report = json.loads(log().mcc.report("day", "key", format="json"))
    notes = {section["id"]: section["notes"] for section in report["sections"]}
    for key in ("day", "key"):
        assert "mcc is 0/0 (one class only) in 2 of 6 slices." in notes[f"by:{key}"]


@pytest.mark.filterwarnings("ignore::polars_mcc.PredictionLogWarning")
def test_the_report_says_first_that_labels_never_meet():
    never = log().with_columns(pl.col("gold").cast(pl.String), pred=pl.lit("one"))
    for frame in (never, never.lazy()):
        [first, *_] = json.loads(frame.mcc.report("day", format="json"))["verdict"]
        assert first["kind"] == "labels"
        assert first["text"].startswith("no label of 'pred' is a label of 'gold', so no row is a")
    assert "<p" in polars_mcc.PredictionLog(never).report("day")

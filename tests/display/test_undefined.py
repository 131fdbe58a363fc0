"""Charts mark slices and times whose score is 0/0, and say how many; the report says it first."""

from __future__ import annotations

import datetime as dt
import json
import math
import re

import polars as pl
import pytest
from support import first

import polars_mcc

plot = pytest.importorskip("polars_mcc.plot")
vl_convert = pytest.importorskip("vl_convert")

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


def marks(chart) -> dict[str, list[tuple[float, float]]]:
    """Where the crosses and the rings of a chart are on its picture."""
    spec = chart.to_dict()
    svg = vl_convert.vegalite_to_svg(spec)
    found = re.findall(r'translate\(([\d.]+),([\d.]+)\)" d="(M.*?)" (fill|stroke)=', svg)
    shapes = {"cross": 2, "ring": 1}
    return {
        name: [
            (float(x), float(y))
            for x, y, path, kind in found
            if kind == "stroke" and path.count("M") == starts
        ]
        for name, starts in shapes.items()
    }


def test_a_collapsed_time_is_at_0_with_its_interval_and_a_cross():
    days = log().mcc.by("day", ci=0.95)
    chart = plot.over_time(days)
    rows = {row["at"][:10]: row for row in drawn(chart)}
    collapsed, one_class = (rows[str(day)] for day in (COLLAPSED, ONE_CLASS))
    shown = ["score", "low", "high", "zero", "is_undefined"]
    ends = days.filter(day=COLLAPSED).row(0, named=True)
    assert ends["mcc_low"] < 0 < ends["mcc_high"]
    expected = [0.0, ends["mcc_low"], ends["mcc_high"], 0.0, False]
    assert [collapsed[name] for name in shown] == expected
    assert [one_class[name] for name in shown] == [None, None, None, None, True]
    assert all(rows[str(day)]["zero"] is None for day in DAYS if day != COLLAPSED)
    spec = chart.to_dict()
    assert spec["title"]["text"] == [
        "× mcc is 0, as one class is predicted, in 1 of 6 times",
        "○ mcc is 0/0 (one class only) in 1 of 6 times",
    ]
    [rule] = [layer for layer in spec["layer"] if layer["mark"]["type"] == "rule"]
    assert [rule["encoding"][end]["field"] for end in ("y", "y2")] == ["low", "high"]
    assert rule["transform"] == [{"filter": "isValid(datum.zero)"}]
    found = marks(chart)
    [(cross_x, cross_y)], [(ring_x, ring_y)] = found["cross"], found["ring"]
    width, height = spec["width"], spec["height"]
    assert (cross_x, ring_x) == pytest.approx((width * 4 / 5, width * 2 / 5))
    # No mark is clipped: the ends of the axis are below 0, and the ring is inside the frame.
    assert cross_y < height - 8
    assert height - 10 < ring_y < height - 4


def test_a_slice_of_one_predicted_class_is_the_lowest_and_has_a_cross():
    chart = plot.slices(log().mcc.by("key", ci=0.95))
    spec = chart.to_dict()
    layers = {layer["mark"]["type"]: layer for layer in spec["layer"]}
    assert layers["text"]["encoding"]["text"] == {"value": "○ 0/0"}
    order = layers["text"]["encoding"]["y"]["scale"]["domain"]
    assert (order[0], order[-1]) == ("5", "3")
    assert spec["title"]["text"] == [
        "× mcc is 0, as one class is predicted, in 1 of 6 rows",
        "○ mcc is 0/0 (one class only) in 1 of 6 rows",
    ]
    [(x, y)] = marks(chart)["cross"]
    assert 8 < x < spec["width"] - 8
    assert 0 < y < spec["height"]["step"], "on the first line"


@pytest.mark.parametrize("zero_division", first(2, [0.0, None, math.nan]))
def test_a_line_does_not_fall_to_0_if_it_may_be_0_over_0(zero_division):
    """Without intervals, one predicted class looks like one gold class."""
    chart = plot.over_time(log().mcc(zero_division=zero_division).by("day"))
    rows = {row["at"][:10]: row for row in drawn(chart)}
    is_0, unsure = zero_division == 0, {ONE_CLASS, COLLAPSED}
    for day in DAYS:
        assert (rows[str(day)]["score"] is None) is (day in unsure)
        assert rows[str(day)]["zero"] == (0 if is_0 and day in unsure else None)
        assert rows[str(day)]["is_undefined"] is (day in unsure and not is_0)
    told = "× mcc is 0, or 0/0 (one class only)," if is_0 else "○ mcc is 0/0 (one class only)"
    assert chart.to_dict()["title"]["text"] == [f"{told} in 2 of 6 times"]
    assert len(marks(chart)["cross" if is_0 else "ring"]) == 2


def test_a_rate_of_0_over_0_is_marked():
    rates = log().mcc(positive=1).by("key", metrics="fnr")
    chart = plot.slices(rates, metric="fnr")
    assert chart.to_dict()["title"]["text"] == ["○ fnr is 0/0 (one class only) in 1 of 6 rows"]
    found = [row["score"] for row in sorted(drawn(chart), key=lambda row: row["slice"])]
    assert found == [0, 0, None, 0, 1, 0]


@pytest.mark.parametrize(("metric", "at_0"), [("precision", 0.0), ("fdr", 1.0)])
def test_a_rate_of_what_is_never_predicted_has_a_cross(metric, at_0):
    answer = log().mcc(positive=1).by("day", metrics=metric, ci=0.95)
    chart = plot.over_time(answer, metric=metric)
    rows = {row["at"][:10]: row["zero"] for row in drawn(chart)}
    assert rows.pop(str(COLLAPSED)) == at_0
    assert {*rows.values()} == {None}
    told = f"× {metric} is {at_0:g}, as the class is never predicted, in 1 of 6 times"
    assert chart.to_dict()["title"]["text"] == [told]


def test_a_rate_of_0_is_no_collapse():
    """At an end of its range, a score has an interval (but for `g_mean`) and no standard error."""
    wrong = pl.DataFrame({"key": ["a"] * 6, "gold": [0, 1] * 3, "pred": [1, 0] * 3})
    for metric in ("precision", "f1", "accuracy", "mcc", "g_mean", "jaccard_macro"):
        answer = wrong.mcc(positive=1).by("key", metrics=metric, ci=0.95, method="score")
        [row] = drawn(plot.slices(answer, metric=metric))
        assert (row["score"], row["zero"]) == (-1.0 if metric == "mcc" else 0.0, None)


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
        assert {
            "mcc is 0, as one class is predicted, in 1 of 6 slices.",
            "mcc is 0/0 (one class only) in 1 of 6 slices.",
        } <= {*notes[f"by:{key}"]}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::polars_mcc.PredictionLogWarning")
def test_the_report_says_first_that_labels_never_meet():
    never = log().with_columns(pl.col("gold").cast(pl.String), pred=pl.lit("one"))
    for frame in (never, never.lazy()):
        [first, *_] = json.loads(frame.mcc.report("day", format="json"))["verdict"]
        assert first["kind"] == "labels"
        told = "Read the warnings first: no label of 'pred' is a label of 'gold', so no row is a"
        assert first["text"].startswith(told)
    assert "<p" in polars_mcc.PredictionLog(never).report("day")

"""Charts show the numbers of the result, and are saved without a network."""

from __future__ import annotations

import datetime as dt
import html
import itertools
import json
import math
import re
import subprocess
import sys

import altair as alt
import polars as pl
import pytest
from support import first, log_of

from polars_mcc import bins, each, plot, trailing
from polars_mcc._keys.bins import UNITS

ROWS = [("x", i % 3, (i * i) % 4) for i in range(60)] + [("y", i % 2, i % 2) for i in range(20)]
LOG = log_of([*ROWS, (None, 0, 0), (None, 1, 0), ("empty", None, 0)]).with_columns(
    other=pl.col("gold").reverse(),
    device=pl.Series(["tv", None, "pc"]).gather(pl.int_range(83, eager=True) % 3),
    day=pl.date(2026, 3, 1) + pl.duration(days=pl.int_range(83) // 10),
    score=pl.int_range(83) % 17,
)


def layers_of(chart: alt.LayerChart) -> list[dict]:
    """The layers, each with its data rows."""
    spec = chart.to_dict()
    return [
        {**layer, "rows": spec["datasets"][layer.get("data", spec.get("data"))["name"]]}
        for layer in spec["layer"]
    ]


def layer_with(chart: alt.LayerChart, mark: str) -> dict:
    return next(layer for layer in layers_of(chart) if layer["mark"]["type"] == mark)


def test_slices_are_points_with_intervals_from_the_lowest_up():
    answer = LOG.mcc.by("key", ci=0.9)
    chart = plot.slices(answer)
    points = layer_with(chart, "point")
    # A 0 without an interval is 0/0: it is no point, and stands last. In an answer without any
    # interval, a cross marks it.
    drawn = answer.filter(pl.col("mcc").is_not_null()).with_columns(
        mcc=pl.when(pl.col("mcc_low").is_not_null()).then("mcc")
    )
    names = [name or "null" for name in drawn["key"]]
    assert [row["slice"] for row in points["rows"]] == names
    columns = {"score": "mcc", "low": "mcc_low", "high": "mcc_high", "n": "n"}
    for name, column in columns.items():
        assert [row[name] for row in points["rows"]] == drawn[column].to_list()
    by_score = [name or "null" for name in drawn.sort("mcc", nulls_last=True)["key"]]
    assert points["encoding"]["y"]["scale"]["domain"] == by_score
    in_order = layer_with(plot.slices(answer, sort=False), "point")
    assert in_order["encoding"]["y"]["scale"]["domain"] == names
    rule = layer_with(chart, "rule")["encoding"]
    assert (rule["x"]["field"], rule["x2"]["field"]) == ("low", "high")
    without = plot.slices(LOG.mcc.by("key"))
    assert [layer["mark"]["type"] for layer in layers_of(without)] == ["point", "point"]


@pytest.mark.parametrize("long", [False, True])
def test_a_window_of_a_set_is_named(long):
    weeks = LOG.mcc.by(each("key", total=True), trailing("day", "7d"), long=long)
    drawn = layer_with(plot.slices(weeks), "point")["rows"]
    assert {"key = x and day = 2026-03-07", "all rows and day = 2026-03-07"} <= {
        row["slice"] for row in drawn
    }
    assert len({row["slice"] for row in drawn}) == len(drawn) == weeks["mcc"].count()


def test_a_small_slice_is_a_small_point():
    answer = LOG.mcc.by("key", ci=0.9)
    size = layer_with(plot.slices(answer), "point")["encoding"]["size"]
    assert (size["field"], size["scale"]["domain"]) == ("n", [0, answer["n"].max()])
    low, high = size["scale"]["range"]
    assert 0 < low < high


@pytest.mark.parametrize("name", first(2, ["gold", "label", "threshold"]))
def test_a_key_of_any_name_is_a_key(name):
    """Even if other results have a column of this name."""
    log = LOG.rename({"gold": "truth", "key": name}).mcc(gold="truth")
    points = layer_with(plot.slices(log.by(name)), "point")["rows"]
    assert {row["slice"] for row in points} == {"x", "y", "null"}
    half = pl.col("day") < pl.date(2026, 3, 4)
    for answer in (
        log(pred=["pred", "other"]).compare(name),
        log.drift(name, before=half, after=~half),
    ):
        points = layer_with(plot.differences(answer), "point")["rows"]
        assert {row["slice"] for row in points} <= {"x", "y", "null"}


@pytest.mark.parametrize("long", [False, True])
def test_sets_of_keys_are_named_and_the_total_is_a_line(long):
    answer = LOG.mcc.by(each("key", "device", total=True), ci=0.9, long=long)
    total, *others = layers_of(plot.slices(answer))
    assert [row["slice"] for row in total["rows"]] == ["all rows"]
    assert total["mark"]["type"] == "rule"
    assert total["rows"][0]["score"] == LOG.mcc.score()["mcc"].item()
    names = ["null", "x", "y"]
    expected = [f"key = {name}" for name in names] + [f"device = {k}" for k in ("null", "pc", "tv")]
    assert [row["slice"] for row in others[-1]["rows"]] == expected


def test_crossed_keys_and_no_keys():
    both = plot.slices(LOG.filter(pl.col("key") == "y").mcc.by("key", "device"))
    names = [row["slice"] for row in layer_with(both, "point")["rows"]]
    assert names == [f"key = y and device = {device}" for device in ("null", "pc", "tv")]
    one = layer_with(plot.slices(LOG.mcc.score(metrics="kappa"), metric="kappa"), "point")
    assert [row["slice"] for row in one["rows"]] == ["all rows"]
    assert one["encoding"]["x"]["title"] == "kappa"


@pytest.mark.slow
def test_keys_of_any_name():
    """Altair parses `a.b`, `a:Q` and `a[0]`. A column `keys` may be a key of the user."""
    for name in ("a.b", "a:Q", "a[0]", "keys", "line", "score", "is_total", "slice", "at"):
        log = LOG.with_columns(pl.col("key").alias(name))
        answer = log.mcc.by(name, "day", metrics=pl.col("f1").min().alias("f.1"))
        line = layer_with(plot.over_time(answer, metric="f.1"), "line")
        assert {row["line"] for row in line["rows"]} == {"null", "x", "y"}
        points = layer_with(plot.slices(log.mcc.by(name)), "point")
        assert [row["slice"] for row in points["rows"]] == ["null", "x", "y"]


def test_several_models_have_a_colour_each():
    answer = LOG.mcc(pred=["pred", "other"]).by("key", ci=0.9)
    points = layer_with(plot.slices(answer), "point")
    assert points["encoding"]["color"]["scale"]["domain"] == ["pred", "other"]
    assert len(set(points["encoding"]["color"]["scale"]["range"])) == 2
    assert points["encoding"]["yOffset"]["field"] == "model"


@pytest.mark.parametrize(
    "answer",
    [
        LOG.mcc(pred="other").compare("key", baseline="pred"),
        LOG.mcc(pred=["other", "gold"]).compare("key", baseline="pred"),
        LOG.mcc.drift(
            "device",
            before=pl.col("day") < pl.date(2026, 3, 4),
            after=pl.col("day") > pl.date(2026, 3, 4),
        ),
        LOG.mcc.worst("key", "device", min_n=5, verdicts=True),
        LOG.mcc.worst("key", "device", min_n=5, long=True, verdicts=True),
        LOG.mcc.contrast("device", metrics="accuracy", ratio=True),
    ],
    ids=["compare", "models", "drift", "worst", "worst, long", "ratio"],
)
def test_differences(answer):
    chart = plot.differences(answer)
    none, _, points = layers_of(chart)
    effect, same = ("diff", 0.0) if "diff" in answer.columns else ("ratio", 1.0)
    assert none["rows"] == [{"score": same}]
    drawn = answer.filter(pl.col(effect).is_not_null())
    assert [row["score"] for row in points["rows"]] == drawn[effect].to_list()
    assert {"low", "high"} <= points["rows"][0].keys()


def test_over_time():
    answer = LOG.mcc.by("device", trailing("day", "2d", every="1d"), ci=0.9)
    chart = plot.over_time(answer)
    line = layer_with(chart, "line")
    assert line["encoding"]["x"] == {"field": "at", "title": "day", "type": "temporal"}
    assert {row["line"] for row in line["rows"]} == {"null", "pc", "tv"}
    drawn = answer.filter(pl.col("mcc_low").is_not_null())
    scores = [row["score"] for row in line["rows"] if not row["is_undefined"]]
    assert sorted(scores) == sorted(drawn["mcc"])
    band = layer_with(chart, "area")["encoding"]
    assert (band["y"]["field"], band["y2"]["field"]) == ("low", "high")
    alone = plot.over_time(LOG.mcc.by("day", metrics="accuracy"), metric="accuracy")
    assert [layer["mark"]["type"] for layer in layers_of(alone)] == ["line"]
    with pytest.raises(ValueError, match=r"time must be one column, but there are \[\]"):
        plot.over_time(LOG.mcc.by("key"))
    with pytest.raises(ValueError, match="time='n' is not a Date or Datetime key"):
        plot.over_time(answer, time="n")


def test_a_curve_marks_the_best_threshold():
    answer = LOG.mcc(positive="ant", score="score").curve("device")
    chart = plot.curve(answer)
    line, best = layers_of(chart)
    assert best["transform"] == [{"filter": "datum.is_best"}]
    drawn = answer.filter(pl.col("threshold").is_not_null())
    assert [row["score"] for row in line["rows"]] == drawn["mcc"].to_list()
    of_best = [row for row in best["rows"] if row["is_best"]]
    found = {row["line"]: row["score"] for row in of_best}
    assert len(of_best) == len(found)
    expected = LOG.mcc(positive="ant", score="score").best_threshold("device")
    assert found == {row["device"] or "null": row["mcc"] for row in expected.iter_rows(named=True)}
    assert (
        len(layers_of(plot.curve(LOG.mcc(positive="ant", score="score").curve(), metric="f1"))) == 2
    )


def test_an_infinite_threshold_has_no_place_on_an_axis():
    """If it is the best one, no point is: not the next best."""
    log = pl.DataFrame({"gold": [0, 0, 1], "score": [0.1, 0.9, -math.inf]})
    for dtype in (pl.Float64, pl.Float32):
        answer = log.cast({"score": dtype}).mcc(score="score", positive=1).curve(metrics="accuracy")
        line, best = layers_of(plot.curve(answer, metric="accuracy"))
        assert [row["at"] for row in line["rows"]] == pytest.approx([0.1, 0.9])
        assert not any(row["is_best"] for row in best["rows"])


def many_lines(number: int, models: int = 1, times: int = 4) -> pl.DataFrame:
    """A log of so many slices and models, over some weeks; the names fall with their order."""
    weeks = pl.int_range(times, eager=True)
    names = [f"s{100 - place}" for place in range(number)]
    rows = pl.DataFrame({"key": names}).join(pl.DataFrame({"week": weeks}), how="cross")
    rows = rows.join(pl.DataFrame({"i": range(12)}), how="cross")
    i = pl.int_range(pl.len())
    return rows.with_columns(
        day=pl.date(2026, 3, 2) + pl.duration(weeks="week"),
        gold=pl.col("i") % 2,
        score=(i * 7 % 13) / 13,
        **{f"m{at}": (i.hash(at) % 3 > 0).cast(int) for at in range(models)},
    )


ASKED = {
    "over_time": lambda log, models: plot.over_time(log(pred=models).by("key", "day", ci=0.9)),
    "curve": lambda log, _: plot.curve(log(score="score", positive=1).curve("key")),
    "calibration": lambda log, _: plot.calibration(
        log(score="score", positive=1).calibration("key", bins=2)
    ),
}


@pytest.mark.parametrize("draw", first(1, ASKED))
def test_lines_have_a_colour_each_and_more_than_eight_are_facets(draw):
    for number in (7, 8):
        spec = ASKED[draw](many_lines(number).mcc, "m0").to_dict()
        [scale] = {
            (*scale["range"],)
            for layer in spec["layer"]
            if (scale := layer["encoding"].get("color", {}).get("scale"))
        }
        assert len(scale) == len({*scale}) == number
    chart = ASKED[draw](many_lines(9).mcc, "m0")
    spec = chart.to_dict()
    assert spec["facet"]["field"] == "line"
    colours = [layer["encoding"].get("color") for layer in spec["spec"]["layer"]]
    assert {"value": "#0072B2"} in colours
    assert all(colour is None or "field" not in colour for colour in colours)
    import vl_convert  # noqa: PLC0415 - an optional dependency

    svg = vl_convert.vegalite_to_svg(spec)
    panes = re.findall(r">(s\d+)</text>", svg)
    assert panes == sorted(f"s{100 - place}" for place in range(9))
    # A pane has the rows of its own slice.
    per_pane = svg.count('aria-roledescription="line mark"') / 9
    assert per_pane == (2 if draw == "calibration" else 1), "the line, and the diagonal"


def test_facets_are_in_the_order_of_the_slices_with_a_colour_per_model():
    log = many_lines(5, models=2).with_columns(
        key=pl.col("key").cast(pl.Enum([f"s{100 - place}" for place in range(5)]))
    )
    spec = plot.over_time(log.mcc(pred=["m0", "m1"]).by("key", "day", ci=0.9)).to_dict()
    facet, inner = spec["facet"], spec["spec"]
    assert facet["field"] == "slice"
    assert facet["sort"] == {"field": "place", "op": "min"}
    places = {
        row["slice"]: row["place"] for row in reversed(spec["datasets"][spec["data"]["name"]])
    }
    assert sorted(places, key=places.get) == [f"s{100 - place}" for place in range(5)]
    domains = [layer["encoding"]["color"]["scale"]["domain"] for layer in inner["layer"]]
    assert {(*domain,) for domain in domains} == {("m0", "m1")}
    assert all("data" not in layer for layer in inner["layer"])


def test_more_models_than_colours_are_a_facet_each():
    models = [f"m{at}" for at in range(9)]
    log = many_lines(1, models=9).mcc(pred=models)
    spec = plot.over_time(log.by("day")).to_dict()
    assert spec["facet"]["field"] == "line"
    rows = spec["datasets"][spec["data"]["name"]]
    assert {row["line"] for row in rows} == {*models}


@pytest.mark.parametrize("unit", UNITS)
def test_bins_of_times_are_drawn_over_time(unit):
    start, step = (
        dt.datetime(2026, 1, 28, 22),
        dt.timedelta(hours={"1h": 1, "1d": 24}.get(unit, 700)),
    )
    times = [start + step * at for at in range(6)]
    log = pl.DataFrame({"ts": [*times, None]}).join(
        pl.DataFrame({"gold": [0, 1, 1, 0], "pred": [0, 1, 0, 0]}), how="cross"
    )
    chart = plot.over_time(log.mcc.by(bins("ts", unit), ci=0.9))
    line = layer_with(chart, "line")
    assert line["encoding"]["x"] == {"field": "at", "title": "ts", "type": "temporal"}
    # Polars' own truncation, without the names of bins.
    starts = pl.Series(times).dt.truncate(unit).unique().sort().dt.to_string("%Y-%m-%dT%H:%M")
    assert [row["at"][:16] for row in line["rows"]] == starts.to_list()


@pytest.mark.slow
def test_texts_that_name_times_are_times_if_no_key_is_one():
    log = LOG.with_columns(year=pl.lit("2026"), code=pl.lit("2026-13"))
    for keys in (["year"], ["year", "key"], ["code", "year"]):
        rows = layer_with(plot.over_time(log.mcc.by(*keys)), "line")["rows"]
        assert {row["at"][:10] for row in rows} == {"2026-01-01"}
    by_day = plot.over_time(log.mcc.by("year", "day"))
    assert layer_with(by_day, "line")["encoding"]["x"]["title"] == "day"
    with pytest.raises(ValueError, match=r"time must be one column, but there are \[\]"):
        plot.over_time(log.mcc.by("code"))
    with pytest.raises(ValueError, match=r"there are \['year', 'month'\]"):
        plot.over_time(log.with_columns(month=pl.lit("2026-02")).mcc.by("year", "month"))


@pytest.mark.slow
def test_a_matrix_of_few_labels_is_large_and_has_room_for_its_numbers():
    two = pl.DataFrame({"gold": ["a", "b"] * 2, "pred": ["a", "b", "b", "a"]})
    sizes = {}
    for name, counts in {"few": [1] * 4, "many": [10**9] * 4}.items():
        log = two.with_columns(n=pl.Series(counts)).mcc(weight="n")
        spec = plot.confusion(log.confusion()).to_dict()
        assert spec["width"] == spec["height"]
        sizes[name] = spec["width"]["step"]
    assert sizes["few"] == sizes["many"] == 100
    ten = pl.DataFrame({"gold": range(10), "pred": range(10), "n": [10**9] * 10})
    step = plot.confusion(ten.mcc(weight="n").confusion()).to_dict()["width"]["step"]
    assert step >= 6 * len("1000000000")
    labels = pl.DataFrame({"gold": range(40), "pred": range(40)})
    assert plot.confusion(labels.mcc.confusion()).to_dict()["width"] == {"step": 12}


def test_a_reliability_diagram_has_a_line_per_slice_and_the_diagonal():
    answer = LOG.mcc(positive="ant", score=pl.col("score") / 17).calibration("device", bins=3)
    perfect, rule, line = layers_of(plot.calibration(answer))
    top = max(answer["score_mean"].max(), answer["rate_high"].max())
    assert [(row["at"], row["score"]) for row in perfect["rows"]] == [(0, 0), (top, top)]
    assert rule["encoding"]["y"]["scale"] == {"domain": [0, top]}
    columns = {"at": "score_mean", "score": "rate", "low": "rate_low", "high": "rate_high"}
    for name, column in columns.items():
        assert [row[name] for row in line["rows"]] == answer[column].to_list()
    assert {row["line"] for row in line["rows"]} == {"tv", "null", "pc"}
    assert (rule["encoding"]["y"]["field"], rule["encoding"]["y2"]["field"]) == ("low", "high")
    answer = LOG.mcc(positive="ant", score="score").calibration("device", bins=None)
    assert answer["score_max"].max() > 1
    rule, line = layers_of(plot.calibration(answer))  # no diagonal
    assert rule["encoding"]["y"]["scale"] == {"domain": [0, 1]}
    assert [row["at"] for row in line["rows"]] == answer["score_min"].to_list()


def test_a_matrix_wide_and_long():
    wide = layers_of(plot.confusion(LOG.mcc.confusion()))
    long = layers_of(plot.confusion(LOG.mcc.confusion(long=True)))
    assert [layer["mark"]["type"] for layer in wide] == ["rect", "text"]

    def cells(rows: list[dict]) -> dict:
        return {(r["gold"], r["pred"]): (r["n"], round(r["share"], 12)) for r in rows if r["n"]}

    assert cells(wide[0]["rows"]) == cells(long[0]["rows"])
    shares = LOG.mcc.confusion(long=True, normalize="gold")
    assert {pair: share for pair, (_, share) in cells(long[0]["rows"]).items()} == pytest.approx(
        {row[:2]: row[2] for row in shares.rows()}
    )
    with pytest.raises(ValueError, match=r"several slices, of \['key'\]"):
        plot.confusion(LOG.mcc.confusion("key"))
    one = LOG.mcc.confusion("key").filter(pl.col("key") == "x")
    assert len(layers_of(plot.confusion(one))) == 2
    with pytest.raises(ValueError, match="confusions only, no matrix: ask without top"):
        plot.confusion(LOG.mcc.confusion(top=3))


def test_a_label_has_one_place_on_both_sides_of_a_matrix():
    """The columns of a wide matrix are texts; its gold labels are not."""
    reached = 0
    for labels in (
        [True, False],
        [dt.date(2026, 3, 1), dt.date(2026, 3, 2)],
        [1.5, 2.0],
        [7, 8],
        [*"ab"],
    ):
        log = pl.DataFrame({"gold": labels * 2, "pred": [labels[0], *labels, labels[1]]})
        [rect, _] = layers_of(plot.confusion(log.mcc.confusion()))
        places = rect["encoding"]["x"]["scale"]["domain"]
        assert (len(places), {row["pred"] for row in rect["rows"]}) == (2, {*places})
        reached += 1
    assert reached == 5


def test_classes_are_slices_with_as_many_rows_as_their_support():
    for ci in (None, 0.9):
        answer = LOG.mcc(pred=["pred", "other"]).classes("key", ci=ci)
        layers = layers_of(plot.slices(answer, metric="recall", sort=False))
        drawn = [row for layer in layers for row in layer["rows"] if row["score"] is not None]
        wanted = {
            (f"key = {key or 'null'} and label = {label}", model, support, recall)
            for key, model, label, support, recall in answer.select(
                "key", "model", "label", "support", "recall"
            ).iter_rows()
            if recall is not None
        }
        assert {(r["slice"], r["model"], r["n"], r["score"]) for r in drawn} == wanted


@pytest.mark.slow
def test_charts_are_saved_without_a_network_and_labels_are_text(tmp_path):
    log = LOG.with_columns(key=pl.col("key") + "<script>alert(1)</script>&\u202e")
    chart = plot.slices(log.mcc.by("key", ci=0.9)).properties(title="Mine")
    for name in ("chart.svg", "chart.png"):
        chart.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    svg = (tmp_path / "chart.svg").read_text(encoding="utf-8")
    assert "<script" not in svg
    assert "&lt;script&gt;" in svg
    assert "Mine" in svg
    chart.save(tmp_path / "chart.html", inline=True)
    page = (tmp_path / "chart.html").read_text(encoding="utf-8")
    assert not re.findall(r"<(?:script|link)[^>]*(?:src|href)=", page), "nothing is loaded"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\u2028\u2029\r\n", "<U+2028><U+2029><U+000D><U+000A>"),
        pytest.param(
            "\0\x01\x7f\uffff", "<U+0000><U+0001><U+007F><U+FFFF>", marks=pytest.mark.slow
        ),
        pytest.param('\\" + 1 + "', '\\" + 1 + "', marks=pytest.mark.slow),
        pytest.param("\u202e</script>'", "\u202e</script>'", marks=pytest.mark.slow),
        # A name that all objects of JavaScript have.
        pytest.param("constructor", "constructor", marks=pytest.mark.slow),
    ],
)
def test_texts_of_a_log_are_no_code_of_a_chart(text, shown):
    """Vega-Lite makes code of titles and of sorted values, and an SVG has no control character."""
    import vl_convert  # noqa: PLC0415 - an optional dependency

    names = {"ant": text, "x": text, "day": f"day {text}", "key": f"key {text}"}
    log = LOG.with_columns(pl.col(pl.String).replace(names)).rename(
        {"pred": text, **{name: names[name] for name in ("day", "key")}}
    )
    one, models = (log.mcc(pred=pred, positive=text) for pred in (text, [text, "other"]))
    metric = f"least {text}"
    least = pl.col("f1").min().alias(metric)
    of_keys = each(names["key"], total=True)
    charts = [
        plot.slices(models.by(of_keys, ci=0.9)),
        plot.slices(one.by(names["key"], metrics=least), metric=metric),
        plot.differences(models.compare(names["key"])),
        plot.over_time(models.by(names["day"], metrics=least), metric=metric),
        plot.curve(log.mcc(score="score", positive=text).curve(names["key"])),
        plot.calibration(one(score=pl.col("score") / 17).calibration(names["key"])),
        plot.confusion(one.confusion()),
        plot.funnel(one.by(of_keys, ci=0.9)),
    ]
    for place, chart in enumerate(charts):
        svg = vl_convert.vegalite_to_svg(chart.to_dict())
        assert svg.count("<path") > 10, place
        assert "NaN" not in svg, place
        assert shown in html.unescape(svg), place


@pytest.mark.slow
def test_200_slices_are_all_named():
    names = [f"slice number {place:03}" for place in range(200)]
    log = pl.DataFrame({"key": names * 4, "gold": [0, 1] * 400, "pred": [0, 1, 1, 1] * 200})
    svg = plot.slices(log.mcc.by("key"))
    height = 16 * 200
    found = svg.to_dict()
    assert found["height"] == {"step": 16}
    import vl_convert  # noqa: PLC0415 - an optional dependency

    text = vl_convert.vegalite_to_svg(found)
    assert all(name in text for name in names)
    assert float(re.search(r'height="(\d+)', text)[1]) >= height


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: plot.slices(LOG.lazy().mcc.by("key")),
            TypeError,
            "got LazyFrame: .*collect",
        ),
        (lambda: plot.slices(LOG.mcc.by("key"), metric="f1"), ValueError, "a column 'f1'"),
        (lambda: plot.slices(LOG.clear().mcc.by("key")), ValueError, "nothing to draw"),
        (lambda: plot.differences(LOG.mcc.by("key")), ValueError, "needs a column 'diff'"),
        (lambda: plot.curve(LOG.mcc.by("key")), ValueError, "needs a column 'threshold'"),
        (lambda: plot.calibration(LOG.mcc.by("key")), ValueError, "needs a column 'rate'"),
        (lambda: plot.confusion(LOG), ValueError, "result of confusion.. needs a column 'n_null'"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.slow
def test_without_the_extra_it_says_what_to_install():
    code = "import sys; sys.modules['altair'] = None; import polars_mcc; polars_mcc.plot"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        "a chart needs altair, which is not installed: pip install 'polars-mcc[plot]'"
        in done.stderr
    )
    every = "import sys; sys.modules['altair'] = None; from polars_mcc import *; print(bins, each)"
    subprocess.run([sys.executable, "-c", every], check=True, capture_output=True)
    assert "plot" in dir(sys.modules["polars_mcc"])
    missing = "import polars_mcc; polars_mcc.plots"
    done = subprocess.run(
        [sys.executable, "-c", missing], capture_output=True, text=True, check=False
    )
    assert "module 'polars_mcc' has no attribute 'plots'" in done.stderr


def test_a_duration_is_a_slice_and_no_time():
    hours = pl.DataFrame({"gold": [0, 1, 1], "pred": [0, 1, 0], "hour": [1, 1, None]})
    scores = hours.with_columns(hour=pl.duration(hours="hour")).mcc.by("hour")
    drawn = plot.slices(scores).to_dict()
    [rows] = drawn["datasets"].values()
    assert {row["slice"] for row in rows} == {"null", "1h"}
    with pytest.raises(ValueError, match="time must be one column, but there are \\[\\]"):
        plot.over_time(scores)
    with pytest.raises(ValueError, match="time='hour' is not a Date or Datetime key of the result"):
        plot.over_time(scores, time="hour")


@pytest.mark.parametrize("name", ["threshold", "label", "bin", "since", "gold", "reason"])
def test_a_key_may_have_the_name_of_a_column_of_another_verb(name):
    """The chart knows which verb it draws, so it does not guess which columns are keys."""
    rows = {name: ["a", "a", "b", "b"], "truth": [0, 1, 0, 1], "other": [0, 1, 1, 1]}
    log = pl.DataFrame(rows).mcc(gold="truth", pred="other", positive=1)
    for keys, slices in (([name], ["a", "b"]), ([each(name)], [f"{name} = a", f"{name} = b"])):
        answer = log.by(*keys, metrics=["tp", "fp", "fn", "tn", "accuracy"])
        for metric in ("tp", "accuracy"):
            [drawn] = plot.slices(answer, metric=metric).to_dict()["datasets"].values()
            assert [row["slice"] for row in drawn] == slices


def test_an_infinite_score_is_told_and_not_drawn():
    """One false positive in b: lr_pos is (2/3) / (1/3). In a there is none."""
    rows = {"k": ["a"] * 4 + ["b"] * 6, "gold": [1, 1, 0, 0, 1, 1, 1, 0, 0, 0]}
    log = pl.DataFrame(rows | {"pred": [1, 1, 0, 0, 1, 1, 0, 1, 0, 0]})
    log = log.with_columns(
        day=pl.date(2026, 1, 1) + pl.duration(days=(pl.col("k") == "b").cast(pl.Int8))
    )
    reached = 0
    for ci, (draw, key) in itertools.product(
        (None, 0.9), ((plot.slices, "k"), (plot.over_time, "day"))
    ):
        answer = log.mcc(positive=1).by(key, metrics="lr_pos", ci=ci)
        chart = draw(answer, metric="lr_pos").to_dict()
        [drawn] = chart["datasets"].values()
        json.dumps(drawn, allow_nan=False)
        assert [row["score"] for row in drawn] == [None, pytest.approx(2)]
        [said] = [text for text in chart["title"]["text"] if "infinite" in text]
        assert "lr_pos is infinite, and not drawn, in 1 of 2" in said
        reached += 1
    assert reached == 4

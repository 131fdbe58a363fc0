"""A funnel plot has the limits that its docstring states, and says which slices are outside."""

from __future__ import annotations

import itertools
import json
import math
import random

import polars as pl
import pytest
from support import first, log_of

from polars_mcc import each, plot
from polars_mcc._display import chart_style

Z = {"95 %": 1.959963984540054, "99.8 %": 3.090232306167813}
ROWS = [
    (f"slice {place}", row % 3, row % 3 if row % (3 if place == 5 else 7) else (row + place) % 4)
    for place in range(12)
    for row in range(20 + 15 * place)
]
LOG = log_of([*ROWS, ("unlabelled", None, 0)])


def answer_of(scores: list[float | None], *, n: float = 100, se: float | None = 0.05):
    """A result of `by` with slices "0", "1", … that share n and the standard error."""
    return pl.DataFrame({"key": [str(place) for place in range(len(scores))]}).with_columns(
        pl.lit(n).alias("n"),
        pl.Series("mcc", scores, dtype=pl.Float64),
        pl.lit(se, pl.Float64).alias("mcc_se"),
        pl.lit(se, pl.Float64).alias("mcc_low"),
        pl.lit(se, pl.Float64).alias("mcc_high"),
        pl.lit(0).alias("n_null"),
    )


def drawn(answer: pl.DataFrame, **options) -> tuple[float, list[dict], list[dict]]:
    """The overall score, the points of the limits, and the slices without "key = " in names."""
    spec = plot.funnel(answer, **options).to_dict()
    overall, limits, slices = (spec["datasets"][layer["data"]["name"]] for layer in spec["layer"])
    for row in slices:
        row["slice"] = row["slice"].removeprefix("key = ")
    return overall[0]["score"], limits, slices


def places(answer: pl.DataFrame, **options) -> dict[str, str]:
    return {row["slice"]: row["where"] for row in drawn(answer, **options)[2]}


def by_hand(target: float, sigma: float, n: float, score: float) -> str:
    reach = {level: z * sigma / math.sqrt(n) for level, z in Z.items()}
    if abs(score - target) > reach["99.8 %"]:
        return "outside 99.8 %"
    return "outside 95 %" if abs(score - target) > reach["95 %"] else "within"


@pytest.mark.parametrize("source", ["total", "slices", "overall"])
def test_limits_and_places_are_those_of_plain_floats(source):
    answer = LOG.mcc.by(each("key", total=source == "total"), ci=0.9)
    rows = [row for row in answer.iter_rows(named=True) if row["mcc"] is not None]
    slices = [row for row in rows if row["key"] is not None]
    if source == "total":
        [total] = [row for row in rows if row["key"] is None]
        target, variance = total["mcc"], total["n"] * total["mcc_se"] ** 2
    else:
        n = sum(row["n"] for row in slices)
        target = sum(row["n"] * row["mcc"] for row in slices) / n
        variance = sum(row["n"] ** 2 * row["mcc_se"] ** 2 for row in slices) / n
    options = {"overall": 0.9} if source == "overall" else {}
    target, sigma = options.get("overall", target), math.sqrt(variance)

    found, limits, points = drawn(answer, **options)
    assert found == pytest.approx(target, rel=1e-12)
    for row in limits:
        side = 1 if row["is_upper"] else -1
        limit = target + side * Z[row["level"]] * sigma / math.sqrt(row["n"])
        assert row["limit"] == pytest.approx(min(1.0, limit), rel=1e-12)
    expected = {row["key"]: by_hand(target, sigma, row["n"], row["mcc"]) for row in slices}
    assert {row["slice"]: row["where"] for row in points} == expected
    assert len({*expected.values()}) > 1, "else the test says little"
    scores = {row["slice"]: (row["n"], row["score"]) for row in points}
    assert scores == {row["key"]: (row["n"], row["mcc"]) for row in slices}


def test_limits_reach_from_the_least_n_to_the_largest_in_even_steps():
    answer = pl.concat([answer_of([0.5], n=n) for n in (7, 300, 5000)])
    _, limits, _ = drawn(answer)
    lines = {(row["level"], row["is_upper"]) for row in limits}
    assert lines == {(level, side) for level in Z for side in (True, False)}
    for line in lines:
        n = [row["n"] for row in limits if (row["level"], row["is_upper"]) == line]
        assert (n[0], n[-1]) == (pytest.approx(7), pytest.approx(5000))
        step = (5000 / 7) ** (1 / (len(n) - 1))
        assert [b / a for a, b in itertools.pairwise(n)] == pytest.approx([step] * (len(n) - 1))


def test_slices_outside_are_drawn_last():
    # One n of 100, σ = 0.5: the limits are 0.098 and 0.1545 from 0.5.
    scores = [0.34, 0.35, 0.40, 0.41, 0.5, 0.59, 0.60, 0.65, 0.66]
    _, _, points = drawn(answer_of(scores), overall=0.5)
    found = [(row["where"], row["score"]) for row in points]
    assert found == [
        *(("within", score) for score in (0.41, 0.5, 0.59)),
        *(("outside 95 %", score) for score in (0.35, 0.40, 0.60, 0.65)),
        *(("outside 99.8 %", score) for score in (0.34, 0.66)),
    ]


def test_the_legend_names_the_places_and_grey_is_for_slices_without_an_interval():
    def legend(chart: chart_style.Chart) -> dict:
        scale = chart.to_dict()["layer"][2]["encoding"]["color"]["scale"]
        return dict(zip(scale["domain"], scale["range"], strict=True))

    colours = {"outside 99.8 %": "#D55E00", "outside 95 %": "#E69F00", "within": "#0072B2"}
    assert legend(plot.funnel(answer_of([0.5, 0.6]))) == colours
    # 300 rows of one label, all of them right: 0/0, shown as 0.
    log = pl.concat([LOG, log_of([("one label", 0, 0)] * 300)])
    answer = log.mcc.by(each("key", total=True), ci=0.95)
    assert answer.filter(key="one label")["mcc"].item() == 0
    assert places(answer)["one label"] == "no interval"
    assert legend(plot.funnel(answer)) == {**colours, "no interval": "#767676"}


def test_a_perfect_slice_is_compared_though_it_has_no_standard_error():
    rows = [("perfect", row % 2, row % 2) for row in range(400)]
    answer = pl.concat([LOG, log_of(rows)]).mcc.by("key", ci=0.95)
    assert answer.filter(key="perfect")["mcc_se"].item() is None
    assert places(answer)["perfect"] == "outside 99.8 %"


def test_slices_without_a_score_or_rows_are_left_out_and_move_no_limit():
    known = answer_of([0.4, 0.5])
    others = [answer_of([None, math.nan]), answer_of([0.9], n=0)]
    answer = pl.concat([known, *(rows.with_columns(key="key" + pl.col("key")) for rows in others)])
    assert drawn(answer) == drawn(known)


def test_one_slice_has_limits_too():
    overall, limits, points = drawn(LOG.mcc.by(ci=0.95))
    assert [(row["slice"], row["score"], row["where"]) for row in points] == [
        ("all rows", overall, "within")
    ]
    n = [row["n"] for row in limits]
    assert (min(n), max(n)) == (pytest.approx(len(ROWS) / 2), pytest.approx(len(ROWS) * 2))


def test_limits_are_cut_at_the_ends_of_the_metric():
    few = answer_of([0.9, 0.95], n=4, se=0.4)
    assert max(row["limit"] for row in drawn(few)[1]) == 1.0
    names = {"mcc": "accuracy", "mcc_se": "accuracy_se", "mcc_low": "accuracy_low"}
    accuracy = few.rename(names)
    limits = [row["limit"] for row in drawn(accuracy, metric="accuracy")[1]]
    assert (min(limits), max(limits)) == (0.0, 1.0)
    # A column of the user with the name of a metric, in percent.
    percent = accuracy.with_columns(pl.col("^accuracy.*$") * 100)
    assert max(row["limit"] for row in drawn(percent, metric="accuracy")[1]) > 100
    own = few.rename({old: new.replace("accuracy", "my own") for old, new in names.items()})
    assert max(row["limit"] for row in drawn(own, metric="my own")[1]) > 1


def test_float_weights_and_a_large_n():
    log = LOG.with_columns(w=pl.int_range(LOG.height) % 3 / 4 + 0.25)
    answer = log.mcc(sample_weight="w").by(each("key", total=True), ci=0.9)
    assert {row["n"] for row in drawn(answer)[2]} == {
        *answer.filter(pl.col("key").is_not_null(), pl.col("n") > 0)["n"]
    }
    # n² is beyond an Int64.
    large = answer_of([0.5, 0.6], n=10**10, se=1e-6)
    assert {*places(large).values()} == {"outside 99.8 %"}
    # With one n only, the limits begin at n / 2.
    reach = Z["99.8 %"] * 1e-6 * math.sqrt(2)
    assert drawn(large)[1][0]["limit"] == pytest.approx(0.55 + reach, abs=1e-9)


def test_sets_of_keys_and_long_answers():
    log = LOG.with_columns(other=pl.col("gold"))
    keys = each("key", "other", total=True)
    wide, long = (drawn(log.mcc.by(keys, ci=0.9, long=long)) for long in (False, True))
    assert wide == long
    assert {"slice 3", "other = bee"} <= {row["slice"] for row in wide[2]}
    assert "total" not in {row["slice"] for row in wide[2]}


def test_one_model_of_several():
    log = LOG.with_columns(other=pl.col("gold"))
    answer = log.mcc(pred=["pred", "other"]).by(each("key", total=True), ci=0.9)
    with pytest.raises(ValueError, match="one model, but the result has 2, such as 'pred': filter"):
        plot.funnel(answer)
    alone = LOG.mcc.by(each("key", total=True), ci=0.9)
    assert drawn(answer.filter(model="pred")) == drawn(alone)


@pytest.mark.slow
def test_names_are_text_and_the_chart_is_saved(tmp_path):
    hostile = "<script>alert(1)</script>&\u202e"
    log = LOG.with_columns(
        pl.col("key").str.replace("slice", hostile, literal=True).alias("a.b[0]")
    )
    answer = log.mcc.by("a.b[0]", metrics=lambda col: col("f1").mean().alias("<b>f.1</b>"), ci=0.9)
    chart = plot.funnel(answer, metric="<b>f.1</b>")
    assert f"{hostile} 3" in {row["slice"] for row in drawn(answer, metric="<b>f.1</b>")[2]}
    for name in ("chart.svg", "chart.png"):
        chart.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5000
    svg = (tmp_path / "chart.svg").read_text("utf-8")
    assert "<b>" not in svg
    assert "&lt;b&gt;f.1&lt;/b&gt;" in svg
    tooltip = chart.to_dict()["layer"][2]["encoding"]["tooltip"]
    shown = [(entry["field"], entry["title"]) for entry in tooltip]
    assert shown == [("slice", "slice"), ("score", "<b>f.1</b>"), ("n", "n")]


def test_it_looks_like_the_other_charts_and_describes_itself():
    scores = [0.3, 0.38, *[0.5] * 40]
    chart = plot.funnel(answer_of(scores), overall=0.5)
    spec = chart.to_dict()
    assert spec["config"] == plot.slices(answer_of(scores)).to_dict()["config"]
    assert spec["description"] == (
        "Funnel plot of mcc against n, around 0.500, with limits of 95 % and 99.8 %. "
        "Slices: 1 outside 99.8 %, 1 outside 95 %, 40 within."
    )


@pytest.mark.slow
def test_10_000_slices_are_drawn_and_small():
    answer = pl.concat([answer_of([0.5, 0.7] * 100, n=n) for n in range(10, 60)])
    spec = plot.funnel(answer).to_dict()
    assert len(json.dumps(spec)) < 100 * answer.height
    assert answer.height == 10_000


def simulated(slices: int, sizes: range, *, rare: float, right: float) -> pl.DataFrame:
    """A log where no slice is better or worse than another."""
    draw = random.Random(7)
    keys = [str(key) for key in range(slices) for _ in range(draw.choice(sizes))]
    gold = [draw.random() < rare for _ in keys]
    pred = [g if draw.random() < right else draw.random() < rare for g in gold]
    return pl.DataFrame({"key": keys, "gold": gold, "pred": pred})


@pytest.mark.slow
@pytest.mark.parametrize("total", first(1, [False, True]))
def test_of_slices_that_differ_by_chance_alone_5_percent_are_outside(total):
    log = simulated(2000, range(200, 600), rare=0.5, right=0.8)
    found = [*places(log.mcc.by(each("key", total=total), ci=0.95)).values()]
    outer, inner = found.count("outside 99.8 %"), found.count("outside 95 %")
    # Tolerance: three standard errors of a binomial share of 2000.
    assert (outer + inner) / 2000 == pytest.approx(0.05, abs=3 * math.sqrt(0.05 * 0.95 / 2000))
    assert outer / 2000 == pytest.approx(0.002, abs=3 * math.sqrt(0.002 * 0.998 / 2000))


@pytest.mark.slow
def test_few_rows_of_a_rare_class_are_outside_more_often_as_the_docstring_says():
    log = simulated(2000, range(30, 300), rare=0.05, right=0.9)
    found = [*places(log.mcc.by(each("key", total=True), ci=0.95)).values()]
    assert 0.01 <= found.count("outside 99.8 %") / 2000 <= 0.02


SCORES = answer_of([0.5, 0.6])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: plot.funnel(LOG.lazy().mcc.by("key", ci=0.9)), TypeError, "got LazyFrame"),
        (
            lambda: plot.funnel(LOG.mcc.by("key")),
            ValueError,
            r"'mcc_se'.* ask .* by\(..., ci=0.95",
        ),
        (
            lambda: plot.funnel(SCORES.drop("mcc_low")),
            ValueError,
            "'mcc_low'.* ask for intervals",
        ),
        (lambda: plot.funnel(SCORES, metric="f1"), ValueError, "needs a column 'f1'"),
        (lambda: plot.funnel(SCORES.clear()), ValueError, "nothing to draw"),
        (lambda: plot.funnel(answer_of([None])), ValueError, "'mcc' is null in every row"),
        (
            lambda: plot.funnel(answer_of([1.0], se=None)),
            ValueError,
            "'mcc_se' is null in every",
        ),
        (
            lambda: plot.funnel(LOG.mcc.by(each("key", total=True), ci=0.9)[-1:]),
            ValueError,
            "the total is the only row with a score",
        ),
        (lambda: plot.funnel(SCORES, overall=71), ValueError, "overall=71 .* from -1 to 1"),
        (
            lambda: plot.funnel(SCORES, overall=math.nan),
            ValueError,
            "overall=nan is not a score",
        ),
        (lambda: plot.funnel(SCORES, overall="0.7"), TypeError, "overall must be a number"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()

"""`contrast`: compare slices, and check the answers on logs that the tests filter."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
from oracles import se_of_wald
from polars.testing import assert_frame_equal
from scipy import stats
from sklearn.metrics import accuracy_score
from support import ask, first, in_turn, some_slow

import polars_mcc
from polars_mcc.metric import cost

METRICS = ["mcc", "accuracy", "f1_macro", "fnr", "kappa"]


@pytest.fixture(scope="module")
def log() -> pl.DataFrame:
    rng = np.random.default_rng(7)
    n = 900
    gold = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    country = rng.choice(["DE", "FR", "US"], n)
    right = rng.random(n) < np.where(country == "FR", 0.6, 0.85)
    pred = np.where(right, gold, rng.choice(["a", "b", "c"], n))
    return pl.DataFrame(
        {
            "country": pl.Series(country).replace("US", None),
            "device": rng.choice(["phone", "tablet"], n),
            "gold": gold,
            "pred": pred,
            "w": rng.integers(1, 5, n),
        }
    )


def of(log: pl.DataFrame, key: str, value: object) -> pl.Expr:
    return pl.col(key).eq_missing(pl.lit(value, log.schema[key]))


@in_turn(3, metric=METRICS, weight=[{}, {"weight": "w"}, {"sample_weight": "w"}])
def test_beside_the_rest_it_is_a_difference_of_two_periods(log, run, metric, weight):
    about = {"positive": "a", **weight}
    found = run(log, lambda f: ask(f, "contrast", "country", metrics=metric, **about))
    assert found["country"].to_list() == [None, "DE", "FR"]
    for row in found.iter_rows(named=True):
        is_slice = of(log, "country", row["country"])
        periods = log.mcc(**about).drift(before=~is_slice, after=is_slice, metrics=metric)
        [expected] = periods.to_dicts()
        same = {"n_before": "n_reference", "n_after": "n"}
        same |= {name: name for name in ("reference", "score", "diff", "diff_low", "diff_high")}
        same |= {"p_value": "p_value"}
        for theirs, ours in same.items():
            assert row[ours] == pytest.approx(expected[theirs], rel=1e-9), ours


@pytest.mark.slow
def test_beside_the_total_rows_that_are_shared_count_once(log):
    """The slice and the rest are independent, and the total is their mean."""
    asked = {"metrics": "accuracy", "method": "wald"}
    found = log.mcc.contrast("country", to="total", **asked)
    is_hit = (log["gold"] == log["pred"]).cast(pl.Float64)
    for row in found.iter_rows(named=True):
        inside = log.select(of(log, "country", row["country"])).to_series()
        n, total = inside.sum(), log.height
        here, there = is_hit.filter(inside), is_hit.filter(~inside)
        spread = (side.var(ddof=0) / len(side) for side in (here, there))
        assert row["diff"] == pytest.approx(here.mean() - is_hit.mean(), rel=1e-12)
        expected = (1 - n / total) * math.sqrt(sum(spread))
        assert se_of_wald(row) == pytest.approx(expected, rel=1e-9)
        assert row["diff_high"] - row["diff"] == pytest.approx(row["diff"] - row["diff_low"])
    rest = log.mcc.contrast("country", **asked)
    assert found["p_value"].to_list() == pytest.approx(rest["p_value"].to_list(), rel=1e-9)


def test_each_pair_of_slices_and_one_slice_and_the_best(log, run):
    each = run(log, lambda f: f.mcc.contrast("country", to="each"))
    pairs = [(None, "DE"), (None, "FR"), ("DE", "FR")]
    assert each.select("country", "country_to").rows() == pairs
    scores = dict(log.mcc.by("country").select("country", "mcc").iter_rows())
    for row in each.iter_rows(named=True):
        assert row["diff"] == scores[row["country"]] - scores[row["country_to"]]
    one = run(log, lambda f: f.mcc.contrast("country", to={"country": None}))
    assert one["country"].to_list() == ["DE", "FR"]
    assert one["diff"].to_list() == [-value for value in each["diff"][:2]]
    assert one["p_value"].to_list() == each["p_value"][:2].to_list()
    best = max(scores, key=scores.get)
    found = run(log, lambda f: f.mcc.contrast("country", to="best"))
    assert found["country_to"].to_list() == [best, best]
    assert found["diff"].min() == min(scores.values()) - max(scores.values())
    least = run(log, lambda f: f.mcc(positive="a").contrast("country", to="best", metrics="fnr"))
    assert (least["diff"] >= 0).all()


@pytest.mark.parametrize("to", first(2, ["rest", "total", "best", "each", {"country": "DE"}]))
def test_within_is_as_a_log_of_its_own(log, run, to):
    found = run(log, lambda f: f.mcc.contrast("country", to=to, within="device"))
    assert found.columns[:2] == ["device", "country"]
    for device in ("phone", "tablet"):
        alone = log.filter(device=device).mcc.contrast("country", to=to)
        inside = found.filter(device=device).drop("device", "p_adjusted")
        assert_frame_equal(inside, alone.drop("p_adjusted"), rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("to", some_slow(["rest", "total", "best", "each"], "rest", "total"))
def test_models_are_compared_with_themselves(log, to):
    both = log.with_columns(other=pl.col("pred").reverse()).mcc(pred=["pred", "other"])
    found = both.contrast("country", to=to)
    for model in ("pred", "other"):
        alone = both(pred=model).contrast("country", to=to).drop("p_adjusted")
        of_model = found.filter(model=model).drop("model", "p_adjusted")
        assert_frame_equal(of_model, alone, rel_tol=1e-9, abs_tol=1e-12)


def test_a_ratio_of_proportions_is_near_that_of_logarithms(log):
    """SciPy has the interval of Katz for a relative risk, which also uses logarithms."""
    found = log.mcc.contrast("country", to="each", metrics="accuracy", ratio=True)
    for row in found.iter_rows(named=True):
        hits, n, hits_to, n_reference = (
            round(row["score"] * row["n"]),
            row["n"],
            round(row["reference"] * row["n_reference"]),
            row["n_reference"],
        )
        expected = stats.contingency.relative_risk(hits, n, hits_to, n_reference)
        assert row["ratio"] == pytest.approx(expected.relative_risk, rel=1e-12)
        katz = expected.confidence_interval(0.95)
        assert [row["ratio_low"], row["ratio_high"]] == pytest.approx(list(katz), abs=0.01)
        is_different = row["ratio_low"] > 1 or row["ratio_high"] < 1
        assert is_different == (row["p_value"] < 0.05)
    labels = {"gold": ["a", "b"] * 2, "pred": ["a", "b", "b", "a"]}
    none = pl.DataFrame({"key": ["x", "x", "y", "y"], **labels})
    unknown = none.mcc.contrast("key", ratio=True)  # 1 beside -1
    assert unknown["ratio"].to_list() == [None, None]


def wilson(hits: int, n: int, z: float = NormalDist().inv_cdf(0.975)) -> tuple[float, float]:
    middle, reach = hits + z**2 / 2, z * math.sqrt(hits * (n - hits) / n + z**2 / 4)
    return max((middle - reach) / (n + z**2), 0.0), (middle + reach) / (n + z**2)


def hits_of(groups: dict[str, tuple[int, int]]) -> pl.DataFrame:
    """A table of counts: groups with so many hits of so many rows."""
    rows = [
        {"group": group, "gold": 1, "pred": int(is_hit), "n": count}
        for group, (hits, n) in groups.items()
        for is_hit, count in ((True, hits), (False, n - hits))
        if count
    ]
    return pl.DataFrame(rows)


def test_a_ratio_to_or_from_a_score_of_0_is_0_or_infinite(run):
    """The worst group does not vanish. Its limits are those of Fieller's form for two rates."""
    counts = hits_of({"all": (9, 10), "none": (0, 20), "none too": (0, 8), "some": (3, 12)})
    options = {"metrics": "accuracy", "ratio": True, "min_n": 1}
    found = run(counts, lambda f: f.mcc(weight="n").contrast("group", to="each", **options))
    rows = {(row["group"], row["group_to"]): row for row in found.iter_rows(named=True)}
    (low, _), (_, none) = wilson(9, 10), wilson(0, 20)
    worst = rows["all", "none"]
    assert (worst["ratio"], worst["ratio_high"]) == (math.inf, math.inf)
    least = math.sqrt(0.9**2 - (0.9 - low) ** 2) / none
    assert worst["ratio_low"] == pytest.approx(least, rel=1e-12)
    both_0 = rows["none", "none too"]
    assert [both_0[name] for name in ("ratio", "ratio_low", "ratio_high", "p_value")] == [None] * 4
    differences = {**options, "to": "each", "ratio": False}
    differ = run(counts, lambda f: f.mcc(weight="n").contrast("group", **differences))
    for row, plain in zip(rows.values(), differ.iter_rows(named=True), strict=True):
        is_one_0 = (row["score"] == 0) != (row["reference"] == 0)
        if is_one_0:
            assert row["p_value"] == pytest.approx(plain["p_value"], rel=1e-12)
        if row["ratio"] is not None:
            is_different = row["ratio_low"] > 1 or row["ratio_high"] < 1
            assert is_different == (row["p_value"] < 0.05)
    known = [row["p_adjusted"] for row in rows.values() if row["p_value"] is not None]
    assert len(known) == 5
    assert all(0 <= p <= 1 for p in known)

    to_all = {"to": {"group": "all"}, **options}
    found = run(counts, lambda f: f.mcc(weight="n").contrast("group", **to_all))
    worst = found.row(0, named=True)
    assert (worst["group"], worst["ratio"], worst["ratio_low"]) == ("none", 0.0, 0.0)
    most = none / math.sqrt(0.9**2 - (0.9 - low) ** 2)
    assert worst["ratio_high"] == pytest.approx(most, rel=1e-12)
    assert worst["p_value"] < 0.001
    for to in ("rest", "total", "best"):
        found = run(counts, lambda f, to=to: f.mcc(weight="n").contrast("group", to=to, **options))
        worst = found.filter(group="none").row(0, named=True)
        assert (worst["ratio"], worst["ratio_low"]) == (0.0, 0.0), to
        assert 0 < worst["ratio_high"] < 1, to


@pytest.mark.parametrize("metric", ["accuracy", "tpr", "ppv", "fnr"])
def test_a_ratio_of_rates_to_the_total_follows_from_the_ratio_to_the_rest(log, metric):
    """The total rate is a mean of both rates, with the shares of the rows that are counted."""
    described = log.mcc(positive="a")
    rest, total, plain = (
        described.contrast("country", to=to, metrics=metric, ratio=ratio)
        for to, ratio in (("rest", True), ("total", True), ("total", False))
    )
    is_counted = {"tpr": "gold", "fnr": "gold", "ppv": "pred"}.get(metric)
    rows = log if is_counted is None else log.filter(pl.col(is_counted) == "a")
    assert total["p_value"].to_list() == rest["p_value"].to_list()
    for of_rest, found, other in zip(
        *map(pl.DataFrame.to_dicts, (rest, total, plain)), strict=True
    ):
        share = rows.select(of(log, "country", found["country"]).mean()).item()
        assert found["ratio"] == pytest.approx(other["score"] / other["reference"], rel=1e-12)
        for end in ("ratio", "ratio_low", "ratio_high"):
            expected = of_rest[end] / (share * of_rest[end] + 1 - share)
            assert found[end] == pytest.approx(expected, rel=1e-9)
    whole = log.with_columns(key=1).mcc(positive="a")
    of_all = whole.contrast("key", to="total", metrics=metric, ratio=True)
    assert of_all.select("ratio", "ratio_low", "ratio_high", "p_value").row(0) == (1, 1, 1, 1)


@pytest.mark.parametrize("to", ["rest", "total"])
def test_a_ratio_beside_an_mcc_of_0(to):
    """The reference is at chance exactly, and its interval has negative numbers."""
    rows = [("x", "a", "a", 15), ("x", "a", "b", 5), ("x", "b", "b", 15), ("x", "b", "a", 5)]
    if to == "total":
        rows += [
            ("y", gold, pred, n) for _, gold, pred, n in (("", "a", "b", 15), ("", "a", "a", 5))
        ]
        rows += [("y", "b", "a", 15), ("y", "b", "b", 5)]
    else:
        rows += [("y", gold, pred, 10) for gold in "ab" for pred in "ab"]
    log = pl.DataFrame(rows, schema=["key", "gold", "pred", "n"], orient="row")
    found = log.mcc(weight="n").contrast("key", to=to, ratio=True)
    [of_x] = found.filter(key="x").to_dicts()
    assert of_x["reference"] == 0
    assert (of_x["ratio"], of_x["ratio_high"]) == (math.inf, math.inf)
    assert 0 <= of_x["ratio_low"] < math.inf
    assert (of_x["ratio_low"] >= 1) == (of_x["p_value"] < 0.05)


FEW = [(0.005, 20), (0.01, 50), (0.01, 200), (0.03, 20), (0.03, 50), (0.05, 50), (0.1, 20)]
MORE = [*FEW, (0.1, 50), (0.3, 30), (0.9, 50), (0.9, 500)]
"""Rates, and rows."""


def held(slice_: tuple[float, int], other: tuple[float, int], to: str) -> pl.DataFrame:
    """Whether the interval held in samples of two slices, and whether one score was 0."""
    rng = np.random.default_rng(5)
    hits = {
        key: rng.binomial(n, rate, 3000)
        for key, (rate, n) in zip("ab", (slice_, other), strict=True)
    }
    drawn = pl.DataFrame(hits).group_by("a", "b").len("times").with_row_index("sample")
    frames = [
        drawn.select("sample", key=pl.lit(key), gold=1, pred=pred, n=count)
        for key, (_, n) in zip("ab", (slice_, other), strict=True)
        for pred, count in ((1, pl.col(key)), (0, n - pl.col(key)))
    ]
    log = pl.concat(frames).filter(pl.col("n") > 0).mcc(weight="n")
    found = log.contrast("key", within="sample", to=to, metrics="accuracy", ratio=True)
    (rate, n), (rate_to, n_reference) = slice_, other
    reference = (rate * n + rate_to * n_reference) / (n + n_reference) if to == "total" else rate_to
    each = found.filter(key="a").join(drawn, on="sample")
    return each.select(pl.all().repeat_by("times").explode()).select(
        held=pl.lit(rate / reference).is_between("ratio_low", "ratio_high"),
        is_one_0=(pl.col("score") == 0) != (pl.col("reference") == 0),
    )


@pytest.mark.parametrize(
    ("slice_", "other"),
    [((0.05, 50), (0.9, 50)), ((0.3, 30), (0.05, 60)), ((0.02, 100), (0.1, 50))],
)
def test_the_interval_of_a_ratio_holds_near_0(slice_, other):
    """Rates of which 4 to 13 % of the samples are 0."""
    found = held(slice_, other, "each")
    of_0 = found.filter("is_one_0")
    assert of_0.height > 60
    assert of_0["held"].null_count() == 0
    assert found["held"].mean() > 0.93


@pytest.mark.release
def test_the_interval_of_a_ratio_holds_as_often_as_the_docstring_says():
    for slice_, other in itertools.product(MORE, MORE):
        share = held(slice_, other, "each")["held"].mean()
        has_two = min(math.prod(slice_), math.prod(other)) >= 2
        assert share > (0.93 if has_two else 0.88), (slice_, other, share)
        share = held(slice_, other, "total")["held"].mean()
        assert share > (0.93 if has_two else 0.88), (slice_, other, share)


DEAR = {(True, False): 100, (False, True): 1}
"""The costs of pairs of labels, gold and predicted."""


@pytest.mark.parametrize("rows", [15, 60])
@pytest.mark.parametrize("metric", [cost(fn=10, fp=1), cost(fn=100, fp=1), cost(DEAR)])
def test_few_rows_of_a_dear_class_are_no_difference(metric, rows):
    """One row in ten is of the dear class. One of two small parts may have all of these rows."""
    rng, samples = np.random.default_rng(rows), 300
    size = samples * rows * 10 // 3
    gold = rng.random(size) < 0.1
    log = pl.DataFrame(
        {
            "sample": np.arange(size) % samples,
            "part": np.arange(size) // samples < rows,
            "gold": gold,
            "pred": rng.random(size) < np.where(gold, 0.1, 0.06),
        }
    ).mcc(positive=True)
    asked, of_part = {"metrics": metric, "min_n": 1}, {"before": ~pl.col("part"), "after": "part"}
    rest, total, each = (
        log.contrast("part", within="sample", to=to, **asked) for to in ("rest", "total", "each")
    )
    drift = log.drift("sample", **of_part, **asked)
    for found in (rest.filter("part"), total.filter("part"), each, drift):
        assert found.height == samples
        for level in (0.05, 0.01, 0.001):
            assert (found["p_value"] < level).sum() <= stats.binom.isf(1e-4, samples, level)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("metric", ["accuracy", "fnr"])
def test_gaps_of_fairlearn_are_asked_as_the_guide_says(metric):
    """In *Moving here*; also of a metric of which less is better, and of a group of score 0."""
    fairlearn = pytest.importorskip("fairlearn.metrics")
    rng = np.random.default_rng(21)
    group, device = rng.choice(["a", "b", "c", "none"], 600), rng.choice(["x", "y"], 600)
    gold = rng.random(600) < 0.5
    is_right = rng.random(600) < np.select([group == "a", group == "b"], [0.9, 0.6], 0.75)
    is_right = np.where(group == "none", metric == "fnr", is_right)  # the score of the group is 0
    frame = pl.DataFrame({"g": group, "c": device, "gold": gold, "pred": gold == is_right})
    rate = {"accuracy": accuracy_score, "fnr": fairlearn.false_negative_rate}[metric]

    def peer(of: pl.DataFrame, **features):
        gold, pred, group = (of[name].to_numpy() for name in ("gold", "pred", "g"))
        return fairlearn.MetricFrame(
            metrics=rate, y_true=gold, y_pred=pred, sensitive_features=group, **features
        )

    below_1 = pl.min_horizontal("ratio", 1 / pl.col("ratio")).min()
    log, theirs = frame.mcc(positive=True), peer(frame)
    scores = log.by("g", metrics=metric)[metric]
    assert (scores.min(), scores.max()) == pytest.approx((theirs.group_min(), theirs.group_max()))
    for to, method in (("each", "between_groups"), ("total", "to_overall")):
        found = log.contrast("g", to=to, metrics=metric)
        size = theirs.difference(method=method)
        assert found["diff"].abs().max() == pytest.approx(size, rel=1e-12)
        for others in (frame, frame.filter(pl.col("g") != "none")):
            some = others.mcc(positive=True).contrast("g", to=to, metrics=metric, ratio=True)
            ratio = peer(others).ratio(method=method)
            assert some.select(below_1).item() == pytest.approx(ratio, rel=1e-12)
            assert (ratio == 0) == (others.height == 600)
        inside = log.contrast("g", to=to, within="c", metrics=metric)
        sizes = peer(frame, control_features=device).difference(method=method)
        largest = dict(inside.group_by("c").agg(pl.col("diff").abs().max()).iter_rows())
        assert largest == pytest.approx(sizes.to_dict(), rel=1e-12)


def test_edges(log):
    empty = log.clear().mcc.contrast("country", to="each")
    assert empty.is_empty()
    one = log.head(1).mcc.contrast("country")
    assert one.select("n", "n_reference", "diff").rows() == [(1, 0, None)]
    with pytest.raises(
        pl.exceptions.InvalidOperationError, match="no row of the log is in the slice country = XX"
    ):
        log.mcc.contrast("country", to={"country": "XX"})
    all_rows = log.with_columns(key=1).mcc.contrast("key", to="total")
    assert all_rows.select("diff", "diff_low", "diff_high", "p_value").rows() == [(0, 0, 0, 1)]


@pytest.mark.slow
@in_turn(to=["rest", "total", "expected", "best", "each", {"k": "c"}], lazy=[False, True])
def test_small_slices_have_no_p_value(to, lazy):
    """Neither beside a small reference. The correction is for the tests that are made."""
    sizes = {"a": 14, "b": 15, "c": 300, "d": 200}
    rows = {"k": [key for key, n in sizes.items() for _ in range(n)], "gold": 1}
    frame = pl.DataFrame(rows).with_columns(pred=(pl.int_range(pl.len()) % 4 > 0).cast(int))
    log = (frame.lazy() if lazy else frame).mcc
    asked = {"to": to, "metrics": "accuracy", "correction": "bonferroni"}
    every, found, least = (
        log.contrast("k", **asked, **options).lazy().collect()
        for options in ({"min_n": 1}, {}, {"min_n": 201})
    )
    tests = ["p_value", "p_adjusted", "verdict"]
    assert_frame_equal(found.drop(tests), every.drop(tests))
    sides = [pl.col("n"), pl.col("n_reference")]
    for answer, min_n in ((found, 15), (least, 201)):
        is_tested = pl.all_horizontal(side >= min_n for side in sides)
        expected = every.select(pl.when(is_tested).then("p_value")).to_series()
        assert answer["p_value"].to_list() == expected.to_list()
        number = expected.count()
        adjusted = [p if p is None else min(p * number, 1) for p in expected]
        assert answer["p_adjusted"].to_list() == pytest.approx(adjusted)
        is_judged = answer["verdict"].cast(pl.String) != "not judged"
        assert is_judged.to_list() == expected.is_not_null().to_list()
    assert 0 < found["p_value"].count() < every["p_value"].count()


def test_rows_of_a_p_value_are_those_of_equal_weight():
    w = [1.0] * 16 + [100.0] + [1.0] * 40
    log = pl.DataFrame({"k": [0] * 17 + [1] * 40, "gold": 1, "pred": [1, 0, 1] * 19, "w": w})
    for options, number in (({}, 2), ({"sample_weight": "w"}, 0)):
        found = log.mcc(**options).contrast("k", metrics="accuracy")
        assert found["p_value"].count() == number
    with pytest.raises(ValueError, match="min_n must be an integer of at least 1"):
        log.mcc.contrast("k", min_n=0)


def test_no_difference_is_found_at_its_rate():
    """In 400 logs whose slices do not differ, p is below 0.05 in about 5 %."""
    rng = np.random.default_rng(11)
    sizes, below = 1200, []
    gold = rng.integers(0, 3, (400, sizes))
    pred = np.where(rng.random((400, sizes)) < 0.75, gold, rng.integers(0, 3, (400, sizes)))
    frame = pl.DataFrame(
        {
            "log": np.repeat(np.arange(400), sizes),
            "key": np.tile(np.arange(sizes) % 3, 400),
            "gold": gold.ravel(),
            "pred": pred.ravel(),
        }
    )
    for to in ("rest", "total", {"key": 0}):
        for metric in ("f1_macro", "kappa"):
            found = frame.mcc.contrast("key", to=to, within="log", metrics=metric)
            below.append((found["p_value"] < 0.05).mean())
    assert all(0.035 < share < 0.07 for share in below), below


@pytest.mark.parametrize(
    ("keys", "options", "message"),
    [
        ([], {}, "name the keys to slice by"),
        (
            ["country"],
            {"to": "nothing"},
            "to must be one of 'rest', 'total', 'expected', 'best', 'each', or a",
        ),
        (["country"], {"to": {"device": "x"}}, "not a slice of the keys 'country'"),
        (["country"], {"metrics": pl.col("recall").median()}, "has no derivative"),
        (["country"], {"cluster": "w"}, "contrast does not support cluster"),
        ([polars_mcc.each("country")], {}, "contrast does not support each"),
        (["country"], {"within": polars_mcc.each("device")}, "contrast does not support each"),
        (["country"], {"within": "country"}, "'country' is a key and also in within"),
        (["w"], {"to": {"w": 1.5}}, "key 'w' is Int64 and cannot have this value"),
        (["w"], {"to": {"w": "x"}}, "key 'w' is Int64 and cannot have this value"),
    ],
)
def test_what_is_refused(log, keys, options, message):
    with pytest.raises(ValueError, match=message):
        ask(log, "contrast", *keys, **options)

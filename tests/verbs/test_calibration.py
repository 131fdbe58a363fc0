"""`calibration`: compare with bins of plain Python, and with `by` and the metrics of bins."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sklearn.calibration import calibration_curve
from support import ask, in_turn

from polars_mcc import each, trailing

Z = 1.959963984540054
SCHEMA = {"key": pl.String, "gold": pl.Boolean, "score": pl.Float64, "n": pl.Int64}
scores = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 0.1, 0.25, 0.5, 0.9, 1.0, math.nan]))
golds = st.sampled_from([True, False, None])
keys = st.sampled_from([None, "x", "y"])
weights = st.sampled_from([None, 0, 1, 1, 2, 7])
rows = st.lists(st.tuples(keys, golds, scores, weights), max_size=25)
SCORES = pl.DataFrame(
    {
        "gold": [i * i % 7 < i % 5 for i in range(300)],
        "p": [i * 37 % 101 / 100 for i in range(300)],
        "q": [i * 11 % 13 / 13 for i in range(300)],
        "w": [i % 4 / 2 for i in range(300)],
        "user": [i // 5 % 40 for i in range(300)],
        "day": range(300),
    }
).with_columns(pl.col("day").cast(pl.Date))


def frame_of(rows) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def wilson(positives: int, n: int) -> tuple[float, float]:
    """Wilson 1927: the rates whose test does not reject the observed rate."""
    rate, z2 = positives / n, Z * Z
    middle = (rate + z2 / (2 * n)) / (1 + z2 / n)
    reach = Z * math.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return middle - reach, middle + reach


def is_scored(gold, score, weight) -> bool:
    return None not in (gold, score, weight) and not math.isnan(score)


def expected(rows, bins: int | None) -> list[tuple]:
    """The table of rows (key, gold, score, weight), in exact fractions."""
    found = []
    for key in sorted({row[0] for row in rows}, key=lambda key: (key is not None, key)):
        inside = [row[1:] for row in rows if row[0] == key]
        scored = [row for row in inside if is_scored(*row) and row[2]]
        null = sum(1 if n is None else n for g, s, n in inside if not is_scored(g, s, n))
        total, binned = sum(n for *_, n in scored), defaultdict(list)
        for gold, score, n in scored:
            if bins is None:
                binned[score].append((gold, score, n))
                continue
            below = sum(other for _, least, other in scored if least < score)
            tied = sum(other for _, same, other in scored if same == score)
            place = Fraction(2 * below + tied, 2 * total) * bins
            binned[min(math.floor(place), bins - 1)].append((gold, score, n))
        for number, place in enumerate(sorted(binned), start=1):
            n = sum(n for *_, n in binned[place])
            positives = sum(n for gold, _, n in binned[place] if gold)
            of_bin = [score for _, score, _ in binned[place]]
            mean = sum(Fraction(score) * n for _, score, n in binned[place]) / n
            ends = min(of_bin), max(of_bin)
            low, high = wilson(positives, n)
            found.append((key, number, *ends, n, float(mean), positives / n, low, high, null))
        if not binned:
            found.append((key, None, None, None, 0, *[None] * 4, null))
    return found


@given(rows=rows, bins=st.none() | st.integers(1, 6))
def test_the_table_is_that_of_plain_python(run, rows, bins):
    answer = run(
        frame_of(rows), lambda log: log.mcc(score="score", weight="n").calibration("key", bins=bins)
    )
    assert [*answer.rows()] == [
        tuple(pytest.approx(one, abs=1e-12) if type(one) is float else one for one in row)
        for row in expected(rows, bins)
    ]


def test_dtypes_and_columns(run):
    log = frame_of([("x", True, 0.5, 1)])
    names = ["score_min", "score_max", "n", "score_mean", "rate", "rate_low", "rate_high", "n_null"]
    counts = {"n": pl.Int64(), "n_null": pl.Int64()}
    schema = {name: pl.Float64() for name in names} | counts
    answer = run(log, lambda log: log.mcc(score="score").calibration())
    assert dict(answer.schema) == {"bin": pl.Int64(), **{name: schema[name] for name in names}}
    of_floats = log.mcc(score=["score"], weight=pl.col("n") / 1).calibration("key")
    assert of_floats.columns[:3] == ["key", "model", "bin"]
    assert (of_floats.schema["n"], of_floats.schema["n_null"]) == (pl.Float64, pl.Float64)


@pytest.mark.parametrize("weight", [{}, {"weight": "w"}, {"sample_weight": "w"}], ids=str)
def test_the_errors_of_calibration_are_of_this_table(run, weight):
    log = SCORES.mcc(score=["p", "q"], **weight)
    table = run(SCORES, lambda f: f.mcc(score=["p", "q"], **weight).calibration())
    names = ["ece", "calibration_error"]
    n, rate, apart = pl.col("n"), pl.col("rate"), pl.col("rate") - pl.col("score_mean")
    rows = SCORES.unpivot(["p", "q"], index=["gold", "w"], variable_name="model", value_name="s")
    of_bin = pl.col("s").is_between("score_min", "score_max")
    of_bins = table.join(rows.drop_nulls(), on="model").filter(of_bin)
    known = of_bins.group_by("model", "bin").agg(
        m=pl.col("w").sum() ** 2 / pl.col("w").pow(2).sum()
    )
    table = table.join(known, on=["model", "bin"]).sort("model", "bin")
    m = pl.col("m") if "sample_weight" in weight else n
    assert not table.select((m - 1 < 1e-6).any()).item()
    squares = n * (apart.pow(2) - rate * (1 - rate) / (m - 1))
    by_hand = table.group_by("model", maintain_order=True).agg(
        ece=(n * apart.abs()).sum() / n.sum(),
        calibration_error=(squares.sum() / n.sum()).clip(0).sqrt(),
    )
    assert_frame_equal(log.score(metrics=names).select("model", *names), by_hand)


@in_turn(
    dtype=[pl.Float64, pl.Float32],
    about=[
        {},
        {"weight": "w"},
        {"sample_weight": "w"},
        {"cluster": "user"},
        {"sample_weight": "w", "cluster": "user"},
    ],
)
def test_the_interval_is_that_of_a_share_in_by(run, about, dtype):
    """The accuracy of the prediction "positive" is the share of positive rows."""
    frame = SCORES.with_columns(pl.col("p").cast(dtype), pred=True)
    table = run(frame, lambda f: f.mcc(score="p", **about).calibration(bins=4, ci=0.9))
    ends = [1.5 if number == 4 else end for number, end in table.select("bin", "score_max").rows()]
    place = pl.sum_horizontal(1 + pl.lit(0), *(pl.col("p") > end for end in ends))
    by = frame.mcc(**about).by(place.alias("bin"), metrics="accuracy", ci=0.9)
    same = {"rate": "accuracy", "rate_low": "accuracy_low", "rate_high": "accuracy_high"}
    sizes = ["n", "n_clusters"] if "cluster" in about else ["n"]
    shared = table.select("bin", *sizes, *same)
    by = by.select(pl.col("bin").cast(pl.Int64), *sizes, **same)
    assert_frame_equal(shared, by, rel_tol=1e-9)


def test_equal_scores_are_in_one_bin(run):
    """In any order of the rows, also if Polars knows that they are sorted."""
    rows = pl.DataFrame({"gold": [True, False] * 10, "score": [0.5] * 16 + [0.1, 0.2, 0.8, 0.9]})
    ends = [(1, 0.1, 0.2, 2), (2, 0.5, 0.5, 16), (3, 0.8, 0.9, 2)]
    orders = [rows, rows.sort("score"), rows.sort("score", descending=True)]
    for log in orders + [rows.sample(fraction=1, shuffle=True, seed=seed) for seed in range(5)]:
        table = run(log, lambda f: f.mcc(score="score").calibration())
        assert table.select("bin", "score_min", "score_max", "n").rows() == ends


def test_counts_are_exact(run):
    log = frame_of([("x", True, 0.5, 2**60 + 1), ("x", False, 0.5, 2)])
    table = run(log, lambda f: f.mcc(score="score", weight="n").calibration())
    assert table["n"].to_list() == [2**60 + 3]


@pytest.mark.parametrize("height", [0, 1])
def test_a_log_of_no_rows_or_one(run, height):
    frame = SCORES.head(height)
    one = run(frame, lambda f: f.mcc(score="p", cluster="user").calibration())
    assert one.select("n", "n_clusters", "rate_low").rows() == [(height, height, None)]
    models = run(frame, lambda f: f.mcc(score=["q", "p"]).calibration())
    assert models.select("model", "n").rows() == [("q", height), ("p", height)]


@pytest.mark.slow
def test_models_sets_and_windows(run):
    """Each slice and model has the table of its rows alone."""
    frame = SCORES.with_columns(key=pl.col("user") % 3)
    log = frame.mcc(score=["q", "p"])
    keys = each("key", total=True), trailing("day", "90d", every="45d")
    table = run(frame, lambda f: f.mcc(score=["q", "p"]).calibration(*keys, bins=3))
    assert table["model"].unique(maintain_order=True).to_list() == ["q", "p"]
    for (of_set, key, day, model), part in table.group_by("keys", "key", "day", "model"):
        inside = pl.col("day").is_between(day - pl.duration(days=90), day, closed="right")
        rows = frame.filter(inside & pl.col("key").eq_missing(key) if of_set else inside)
        alone = log.with_frame(rows)(score=model).calibration(bins=3)
        assert_frame_equal(part.select(alone.columns), alone)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": 0}, "bins must be an integer of at least 1, got 0"),
        ({"ci": 1}, "ci must be a confidence level"),
        ({"score": None}, "this log has no score"),
        ({"nulls": "label"}, "calibration does not support nulls='label'"),
        ({"gold": "user"}, "gold 'user' is Int64: say which label is positive"),
    ],
)
def test_what_has_no_table(options, message):
    score = {} if "score" in options else {"score": "p"}
    log = SCORES.with_columns(pred="gold")
    with pytest.raises(ValueError, match=message):
        ask(log, "calibration", **score, **{k: v for k, v in options.items() if k != "score"})


@pytest.mark.parametrize("score", [-0.1, 1.5, math.inf])
def test_a_score_that_is_no_probability_is_an_error_if_its_row_is_scored(run, score):
    log = frame_of([("x", True, 0.5, 1), ("x", False, score, 1)])
    with pytest.raises(pl.exceptions.PolarsError, match=r"is not between 0 and 1.*bins=None"):
        run(log, lambda f: f.mcc(score="score").calibration())
    per_score = run(log, lambda f: f.mcc(score="score").calibration(bins=None))
    found = sorted(zip(per_score["score_min"], per_score["rate"], strict=True))
    assert found == sorted([(0.5, 1.0), (score, 0.0)])
    unscored = log.with_columns(gold=pl.when(pl.col("score") == 0.5).then("gold"))
    assert unscored.mcc(score="score").calibration()["n_null"].to_list() == [1]


def test_a_bin_per_score_is_the_rate_of_each_decile(run):
    """Deciles of unequal size, of two models and with weights, against a group-by."""
    log = SCORES.with_columns(decile=(10 * pl.col("p").pow(2)).ceil().cast(pl.Int8) + 1, n="day")
    log = log.with_columns(pl.col("n").to_physical() % 3)
    asked = {"score": ["decile", "p"], "weight": "n"}
    found = run(log, lambda f: f.mcc(**asked).calibration(bins=None)).filter(model="decile")
    n, positives = pl.col("n").sum(), pl.col("n").filter("gold").sum()
    rates = log.filter(pl.col("n") > 0).group_by("decile").agg(n, rate=positives / n).sort("decile")
    assert rates.height == 11
    assert found["bin"].to_list() == [*range(1, 12)]
    for column in ("score_min", "score_max", "score_mean"):
        assert found[column].to_list() == rates["decile"].to_list()
    assert found.select("n", "rate").rows() == rates.select("n", "rate").rows()


def bins_of(scores: list[float], bins: int) -> tuple[list[int], list[int]]:
    """The bin of each score, counted from 0: here, and in scikit-learn, as the notes say."""
    n, here, there = len(scores), [], []
    for score in scores:
        below, equal = sum(x < score for x in scores), scores.count(score)
        here.append((2 * below + equal) * bins // (2 * n))
        there.append(sum(Fraction(k * (n - 1), bins) < below for k in range(1, bins)))
    return here, there


def means_of(scores: list[float], gold: list[bool], places: list[int]) -> list[tuple[float, float]]:
    """The mean score and the rate of each bin that has rows."""
    rows = list(zip(scores, gold, places, strict=True))
    each_bin = [[row for row in rows if row[2] == place] for place in sorted(set(places))]
    return [
        (sum(row[0] for row in part) / len(part), sum(row[1] for row in part) / len(part))
        for part in each_bin
    ]


@pytest.mark.parametrize("digits", [1, 2, 9])
@pytest.mark.parametrize("bins", [2, 4, 8])  # of these, percentiles are exact in floats
def test_bins_differ_from_quantiles_of_scikit_learn_as_the_notes_say(bins, digits):
    rng, differ = random.Random(bins * 100 + digits), 0
    for _ in range(40):
        n = rng.randint(bins, 40)
        scores = [round(rng.random(), digits) for _ in range(n)]
        gold = [rng.random() < 0.5 for _ in range(n)]
        gold[0], gold[1] = True, False
        here, there = bins_of(scores, bins)
        found = pl.DataFrame({"gold": gold, "p": scores}).mcc(score="p").calibration(bins=bins)
        ours = found.select("score_mean", "rate").rows()
        rates, scores_of_bins = calibration_curve(gold, scores, n_bins=bins, strategy="quantile")
        theirs = list(zip(scores_of_bins.tolist(), rates.tolist(), strict=True))
        for bins_found, places in ((ours, here), (theirs, there)):
            for got, want in zip(bins_found, means_of(scores, gold, places), strict=True):
                assert got == pytest.approx(want, rel=1e-12)
        if len(set(scores)) == n and n % bins == 0:
            assert here == there
        differ += here != there
    assert differ > 0


def test_a_tie_is_in_the_bin_of_its_middle_and_in_scikit_learn_of_its_first_row():
    scores, gold = [0.1, 0.5, 0.5, 0.5, 0.5, 0.9], [False, True, False, True, True, True]
    found = pl.DataFrame({"gold": gold, "p": scores}).mcc(score="p").calibration(bins=3)
    assert found["n"].to_list() == [1, 4, 1]
    _, means = calibration_curve(gold, scores, n_bins=3, strategy="quantile")
    assert means.tolist() == pytest.approx([(0.1 + 4 * 0.5) / 5, 0.9])

"""Standard errors of metrics of scores: DeLong's, differences, resampling, and published ones."""

from __future__ import annotations

import math
from statistics import NormalDist, stdev

import numpy as np
import oracles_of_scores as oracles
import polars as pl
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from oracles import se_of_wald
from polars.testing import assert_frame_equal
from support import ask, first, in_turn, some_slow

import polars_mcc

SURE = polars_mcc.metrics().filter(pl.col("from") == "scores", no_interval="")["metric"].to_list()
MEANS = ["brier", "log_loss"]
CLOSE = {"rel": 1e-12, "abs": 1e-14}
NORMAL = NormalDist()

# 113 patients with a subarachnoid haemorrhage, and how they rank by wfns/s100b/ndka: from Turck et
# al. 2010, Intensive Care Medicine 36. pROC publishes the areas and their tests.
POOR = """
3/11/82 2/8/61 4/14/66 5/10/78 5/33/5 5/44/28 5/38/49 2/5/97 5/27/105 2/7/98 1/5/100 2/31/38
5/29/72 4/37/90 4/49/17 2/21/25 5/48/69 5/40/2 5/50/109 2/5/87 5/46/41 2/25/48 5/1/55 2/7/70
4/19/93 5/43/63 4/23/89 4/44/24 1/6/107 4/22/76 4/11/6 2/8/33 2/9/88 5/18/7 5/41/32 2/12/99
2/42/52 5/26/73 5/47/103 5/45/50 5/33/77
"""
GOOD = """
1/11/1 1/12/27 1/8/23 1/2/42 5/36/8 1/16/76 2/8/9 2/8/83 1/2/67 2/6/86 2/2/79 1/7/104 1/9/31
1/5/10 2/15/56 1/5/13 2/9/11 1/11/108 1/17/62 3/3/35 4/14/36 1/12/84 4/28/4 1/7/22 5/39/14
5/35/33 1/14/65 1/5/21 2/32/74 4/34/101 1/9/18 1/6/16 2/7/58 2/6/30 1/4/19 2/11/64 1/8/95
2/12/91 2/13/39 1/4/53 1/3/106 1/7/12 1/2/80 2/7/34 1/6/43 2/14/45 1/7/75 1/6/3 3/27/81 2/9/60
4/24/30 2/5/47 1/8/85 4/26/46 1/5/54 1/3/20 5/20/37 4/30/44 2/8/96 2/13/26 1/6/57 1/12/63
1/8/102 3/5/51 1/2/59 2/17/29 2/13/94 4/36/40 4/15/71 1/13/92 1/39/15 1/37/68
"""
MARKERS = ["wfns", "s100b", "ndka"]
# From the tests of pROC 1.19, tests/testthat/test-{var,cov,roc.test}.R. The areas: Robin et al.
# 2011, BMC Bioinformatics 12, and the manual.
AREAS = {"wfns": 0.8236789, "s100b": 0.7313686, "ndka": 0.6119580}
VARIANCES = {"wfns": 0.00146991470882363, "s100b": 0.00266868245717244, "ndka": 0.0031908105493913}
COVARIANCES = {
    ("wfns", "ndka"): -0.000532967856762438,
    ("ndka", "s100b"): -0.000756164938056579,
    ("s100b", "wfns"): 0.00119615567376754,
}
TESTS = {
    ("wfns", "s100b"): (2.20898359144091, 0.0271757822291882, 0.0104061769564846),
    ("wfns", "ndka"): (2.79777591868904, 0.00514557970691098, 0.0634011709339876),
    ("ndka", "s100b"): (-1.39077002573558, 0.164295175223054, -0.2876917446341914),
}


@pytest.fixture(scope="module")
def patients() -> pl.DataFrame:
    rows = [
        (gold, *map(int, row.split("/")))
        for gold, listed in ((True, POOR), (False, GOOD))
        for row in listed.split()
    ]
    return pl.DataFrame(rows, ["gold", *MARKERS], orient="row")


def test_the_variances_that_proc_publishes(patients, run):
    answer = run(patients, lambda f: f.mcc(score=MARKERS).by(metrics="roc_auc", ci=0.95))
    for row in answer.to_dicts():
        assert row["n"] == 113
        assert row["roc_auc"] == pytest.approx(AREAS[row["model"]], abs=6e-8)
        assert row["roc_auc_se"] ** 2 == pytest.approx(VARIANCES[row["model"]], rel=1e-12)


@pytest.mark.parametrize("pair", TESTS)
def test_the_tests_that_proc_publishes(patients, run, pair):
    """roc.test(first, second): it shows the first minus the second, and we the reverse."""
    first, second = pair
    z, p_value, low = TESTS[pair]
    [row] = run(
        patients,
        lambda f: f.mcc(score=[second, first]).compare(metrics="roc_auc", method="wald"),
    ).to_dicts()
    assert row["model"] == first
    known = {frozenset(one): value for one, value in COVARIANCES.items()}[frozenset(pair)]
    variance = VARIANCES[first] + VARIANCES[second] - 2 * known
    assert row["diff"] / math.sqrt(variance) == pytest.approx(z, rel=1e-12)
    assert row["p_value"] == pytest.approx(p_value, rel=1e-12)
    reach = NORMAL.inv_cdf(0.975) * math.sqrt(variance)
    assert row["diff"] - reach == pytest.approx(low, rel=1e-12)


@in_turn(gold=[[True], [False], [True, False]], n=[2, 3, 50], p=[0.5, 0.0, 1.0, 0.3], name=MEANS)
def test_equal_losses_are_not_known_exactly(name, p, n, gold):
    log = pl.DataFrame({"gold": (gold * n)[:n], "p": [p] * n})
    [row] = log.mcc(score="p").score(metrics=name, ci=0.95).to_dicts()
    assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
    assert row[f"{name}_high"] - row[f"{name}_low"] > 0.02 / n


def test_a_baseline_of_text_is_no_score(users):
    log = users.with_columns(text=pl.lit("0.5")).mcc(score="a")
    with pytest.raises(pl.exceptions.SchemaError, match="score must be a number, but 'text' is"):
        log.compare(metrics="roc_auc", baseline="text")


def test_scores_of_two_models_are_never_crossed(users):
    """Each side of a comparison has the score of its own model."""
    both = users.drop_nulls(["a", "b"])
    found = both.mcc(score=["a", "b"]).compare("slice", metrics="roc_auc")
    for model, column in (("a", "reference"), ("b", "score")):
        alone = both.mcc(score=model).by("slice", metrics="roc_auc")
        assert found[column].to_list() == pytest.approx(alone["roc_auc"].to_list())


@pytest.mark.parametrize("method", ["score", "wald"])
def test_a_perfect_area_is_compared(method):
    """A perfect ranking has no standard error: only the score interval has a test."""
    gold = [False] * 30 + [True] * 30
    log = pl.DataFrame({"gold": gold, "a": range(60), "b": [*range(25, 60), *range(25)]})
    [row] = log.mcc(score=["b", "a"]).compare(metrics="roc_auc", method=method).to_dicts()
    assert row["score"] == 1.0
    assert (row["p_value"] is None) == (method == "wald")


# Any log: DeLong's components, differences, and the variance of a mean.

few = st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 1.0])
rows = st.lists(st.tuples(st.booleans(), few, few), min_size=4, max_size=40)


def frame_of(rows: list[tuple]) -> pl.DataFrame:
    return pl.DataFrame(rows, ["gold", "a", "b"], orient="row")


def has_both_twice(log: pl.DataFrame) -> bool:
    return 2 <= log["gold"].sum() <= log.height - 2


@given(rows)
def test_delongs_variances_and_covariance(rows):
    log = frame_of(rows)
    assume(has_both_twice(log))
    gold, a, b = (log[name].to_numpy() for name in log.columns)
    areas, covariance = oracles.delong(gold, [a, b])
    found = log.mcc(score=["a", "b"]).by(metrics="roc_auc", ci=0.9)
    assert found["roc_auc"].to_list() == pytest.approx(areas.tolist(), rel=1e-14)
    for se, variance in zip(found["roc_auc_se"], covariance.diagonal(), strict=True):
        # An area of 0 or 1, or scores that are all alike, have no standard error.
        expected = pytest.approx(variance, **CLOSE) if variance > 1e-15 else None
        assert (se if se is None else se**2) == expected
    asked = {"metrics": "roc_auc", "method": "wald", "ci": 0.9, "min_n": 1}
    compared = log.mcc(score=["a", "b"]).compare(**asked)
    [row] = compared.to_dicts()
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    assert row["diff"] == pytest.approx(areas[1] - areas[0], abs=1e-15)
    if variance > 1e-15 and min(covariance.diagonal()) > 1e-15:
        z = (areas[1] - areas[0]) / math.sqrt(variance)
        assert row["p_value"] == pytest.approx(2 * NORMAL.cdf(-abs(z)), rel=1e-9, abs=1e-15)


def unbiased(rows: list[oracles.Row], rows_per_weight: float = 1) -> list[float]:
    """DeLong's divisor of each row: its class has m rows, and the variance divides by m - 1."""
    sizes = {
        side: sum(w for gold, _, w in rows if gold == side) * rows_per_weight
        for side in (True, False)
    }
    return [math.sqrt(sizes[gold] / (sizes[gold] - 1)) for gold, *_ in rows]


def moves(name: str, rows: list[oracles.Row], rows_per_weight: float = 1) -> np.ndarray:
    """The influence of each row, by differences; of a log loss, from its definition."""
    if name == "log_loss":
        lost = np.array([oracles.log_loss([(gold, score, 1)]) for gold, score, _ in rows])
        return lost - np.average(lost, weights=[w for *_, w in rows])
    found = np.array(oracles.influences(name, rows))
    return found * unbiased(rows, rows_per_weight) if name == "roc_auc" else found


@given(rows)
def test_errors_are_those_of_differences(rows):
    log = frame_of(rows)
    assume(has_both_twice(log))
    listed = [(gold, a, 1) for gold, a, _ in rows]
    [found] = log.mcc(score="a").by(metrics=SURE, ci=0.9).to_dicts()
    for name in SURE:
        expected = math.sqrt((moves(name, listed) ** 2).sum()) / len(rows)
        if expected < 1e-9:
            assert found[f"{name}_se"] is None or found[f"{name}_se"] < 1e-8, name
        else:
            assert found[f"{name}_se"] == pytest.approx(expected, rel=1e-11), name


def wilson(v: float, m: float, z: float = NORMAL.inv_cdf(0.95)) -> list[float]:
    middle, reach = v + z**2 / 2 / m, z * math.sqrt(v * (1 - v) / m + z**2 / 4 / m**2)
    return [(middle + side * reach) / (1 + z**2 / m) for side in (-1, 1)]


def rows_of_a_loss(log: pl.DataFrame, name: str) -> tuple[float, float, float]:
    """The share of the range, how many rows it is worth, and the range: with a row at each end."""
    gold, p = log["gold"].to_numpy(), log["a"].to_numpy()
    if name == "brier":
        of_positive, of_negative, span = (1 - p) ** 2, p**2, 1.0
    else:
        p = p.clip(oracles.LEAST, 1 - oracles.LEAST)
        of_positive, of_negative, span = -np.log(p), -np.log(1 - p), -math.log(oracles.LEAST)
    loss = np.where(gold, of_positive, of_negative)
    more = np.append(loss, [0.0, max(of_positive.max(), of_negative.max())])
    m = len(loss) * more.mean() * (span - more.mean()) / more.var()
    return loss.mean() / span, m, span


def rows_of_an_area(log: pl.DataFrame) -> tuple[float, float, float]:
    """DeLong's, Hanley and McNeil's, and DeLong's with half a row at each end of each class."""
    p, n = log.filter("gold")["a"].to_numpy(), log.filter(~pl.col("gold"))["a"].to_numpy()
    wins = (p[:, None] > n[None, :]) + (p[:, None] == n[None, :]) / 2
    area, sides = float(wins.mean()), [wins.mean(axis=1), wins.mean(axis=0)]
    q_1, q_2 = area / (2 - area), 2 * area**2 / (1 + area)
    of_shapes = [
        area * (1 - area) + (a - 1) * (q_1 - area**2) + (b - 1) * (q_2 - area**2)
        for a, b in ((len(p), len(n)), (len(n), len(p)))
    ]
    longer = [[*side, 0.0, 1.0] for side in sides]
    weights = [[1.0] * len(side) + [0.5, 0.5] for side in sides]
    means = [np.average(x, weights=w) for x, w in zip(longer, weights, strict=True)]
    spread = sum(
        np.average((np.array(x) - mean) ** 2, weights=w) / len(side)
        for x, w, mean, side in zip(longer, weights, means, sides, strict=True)
    )
    mean = sum(means) / 2
    of_ends = mean * (1 - mean) / spread
    pairs = len(p) * len(n)
    if 0 < area < 1:
        of_shape = area * (1 - area) * pairs / max(of_shapes)
    else:  # the limit
        of_shape = pairs / (1 + (max(len(p), len(n)) - 1) / 2)
    variance = sum(np.var(side, ddof=min(1, len(side) - 1)) / len(side) for side in sides)
    observed = area * (1 - area) / variance if variance > 1e-15 else math.inf
    return area, min(observed, max(of_shape, of_ends)), 1.0


def rows_of_a_precision(log: pl.DataFrame) -> tuple[float, float, float]:
    """With half a positive and half a negative row more, above all others."""
    rows = [(gold, score, 1) for gold, score in log.select("gold", "a").rows()]
    more = [*rows, (True, 2.0, 0.5), (False, 2.0, 0.5)]
    value = float(oracles.average_precision(more))
    w = np.array([weight for *_, weight in more])
    moves = np.array(oracles.influences("average_precision", more)) / w.sum()
    gold = np.array([one for one, *_ in more])
    variance = sum(
        (w[side] * moves[side] ** 2).sum() * w[side].sum() / (w[side].sum() - 0.5)
        for side in (gold, ~gold)
    )
    return float(oracles.average_precision(rows)), value * (1 - value) / variance, 1.0


ROWS_OF = {
    "roc_auc": rows_of_an_area,
    "average_precision": rows_of_a_precision,
    "brier": lambda log: rows_of_a_loss(log, "brier"),
    "log_loss": lambda log: rows_of_a_loss(log, "log_loss"),
}


@example(rows=[(True, 0.5, 0.0)] * 3 + [(False, 0.5, 0.0)] * 12, descending=None)
@given(rows=rows, descending=st.sampled_from([False, True, None]))
@pytest.mark.parametrize("name", first(2, ROWS_OF))
def test_the_interval_is_wilsons_of_so_many_rows(name, rows, descending):
    log = frame_of(rows) if descending is None else frame_of(rows).sort("a", descending=descending)
    assume(log["gold"].n_unique() == 2)
    share, m, span = ROWS_OF[name](log)
    found = log.mcc(score="a").score(metrics=name, ci=0.9).row(0, named=True)
    limits = [found[f"{name}_low"], found[f"{name}_high"]]
    assert limits == pytest.approx([span * end for end in wilson(share, m)], rel=1e-9, abs=1e-9)
    equal = log.with_columns(w=pl.lit(0.25)).mcc(score="a", sample_weight="w")
    of_equal = equal.score(metrics=name, ci=0.9).row(0, named=True)
    assert [of_equal[f"{name}_low"], of_equal[f"{name}_high"]] == pytest.approx(limits, rel=1e-9)


@given(rows)
def test_the_error_of_a_mean(rows):
    """It is the standard deviation over the root of n; the delta method divides by n."""
    log = frame_of(rows)
    [found] = log.mcc(score="a").by(metrics=MEANS, ci=0.9).to_dicts()
    n = len(rows)
    for name in MEANS:
        lost = [float(oracles.FAMILY[name]([(gold, a, 1)])) for gold, a, _ in rows]
        expected = stdev(lost) * math.sqrt((n - 1) / n) / math.sqrt(n)
        if expected > 1e-9:
            assert found[f"{name}_se"] == pytest.approx(expected, rel=1e-11), name
        else:
            assert found[f"{name}_se"] is None, name


@pytest.fixture(scope="module")
def users() -> pl.DataFrame:
    rng = np.random.default_rng(8)
    n = 120
    gold = rng.random(n) < 0.4
    columns = {"gold": gold, "a": rng.beta(2 + gold, 3, n).round(2), "slice": rng.integers(0, 2, n)}
    columns |= {"user": rng.integers(0, 25, n), "w": rng.integers(1, 9, n) / 4}
    more = {"b": np.clip(columns["a"] + rng.normal(0, 0.2, n), 0, 1).round(2)}
    return pl.DataFrame({**columns, **more, "n": rng.integers(1, 4, n)})


@in_turn(1, cluster=[None, "user"], weight=[None, "sample_weight w", "weight n"])
def test_errors_with_weights_and_clusters(users, run, weight, cluster):
    """The variance is the sum over draws, rows or clusters, of (Σ w φ)², by (Σ w)²."""
    kind, _, column = (weight or "").partition(" ")
    options, users = {kind: column} if weight else {}, users.head(50)
    w = users[column].to_numpy() if weight else np.ones(users.height)
    rows = list(zip(users["gold"], users["a"], w.tolist(), strict=True))
    is_sample = kind == "sample_weight"
    rows_per_weight = w.sum() / (w**2).sum() if is_sample else 1
    answer = run(
        users, lambda f: ask(f, "by", score="a", metrics=SURE, ci=0.9, cluster=cluster, **options)
    )
    for name in SURE:
        phi = moves(name, rows, rows_per_weight)
        if cluster:
            squares = [move**2 for move in oracles.by_unit(users["user"].to_list(), w * phi)]
        else:
            squares = (w * phi) ** 2 if is_sample else w * phi**2
        expected = math.sqrt(sum(squares)) / w.sum()
        assert answer[f"{name}_se"].item() == pytest.approx(expected, rel=1e-11), name


@pytest.mark.parametrize("name", some_slow(SURE, "average_precision", "log_loss"))
def test_two_models_of_clusters(users, name):
    """A difference moves by the difference of both influences, within each cluster."""
    users = users.head(50)
    listed = [
        list(zip(users["gold"], users[model], [1] * users.height, strict=True))
        for model in ("a", "b")
    ]
    phi = moves(name, listed[1]) - moves(name, listed[0])
    for cluster in (None, "user"):
        log = users.mcc(score=["a", "b"], cluster=cluster)
        [row] = log.compare(metrics=name, ci=0.9, method="wald").to_dicts()
        units = users[cluster].to_list() if cluster else range(users.height)
        expected = math.sqrt(sum(move**2 for move in oracles.by_unit(units, phi))) / users.height
        df = row["n_clusters"] - 1 if cluster else None
        assert se_of_wald(row, 0.9, df) == pytest.approx(expected, rel=1e-6)
        values = [float(oracles.FAMILY[name](one)) for one in listed]
        assert (row["reference"], row["score"]) == pytest.approx(values, rel=1e-12)


def test_a_row_is_compared_if_both_models_score_it(users):
    holes = users.with_columns(
        a=pl.when(pl.col("n") != 1).then("a"),
        b=pl.when(pl.col("user") > 3).then("b").otherwise(math.nan),
    )
    known = users.filter(pl.col("n") != 1, pl.col("user") > 3)
    for name in SURE:
        found = holes.mcc(score=["a", "b"]).compare("slice", metrics=name)
        expected = known.mcc(score=["a", "b"]).compare("slice", metrics=name)
        assert_frame_equal(
            found.drop("n_null"), expected.drop("n_null"), rel_tol=1e-12, abs_tol=1e-15
        )
        assert found["n_null"].sum() == users.height - known.height


@in_turn(1, method=["score", "wald"], name=SURE)
def test_independent_scores_add_their_variances(users, run, name, method):
    """Of two periods, and of a slice and the rest."""
    is_late = pl.col("slice") == 1
    of_slices = users.mcc(score="a").by("slice", metrics=name, ci=0.9, method=method)
    early, late = of_slices.to_dicts()
    se = math.hypot(early[f"{name}_se"], late[f"{name}_se"])
    options = {"metrics": name, "ci": 0.9, "method": method}
    drift = run(users, lambda f: f.mcc(score="a").drift(before=~is_late, after=is_late, **options))
    contrast = run(users, lambda f: f.mcc(score="a").contrast("slice", to="rest", **options))
    rest = contrast.filter(slice=1)
    for found in (drift, rest):
        assert found["diff"].item() == pytest.approx(late[name] - early[name], rel=1e-12)
        if method == "wald":
            of_both = se_of_wald(found.row(0, named=True), 0.9)
            assert of_both == pytest.approx(se, rel=1e-9)
        assert found["reference"].item() == pytest.approx(early[name], rel=1e-12)
        low, high = found["diff_low"].item(), found["diff_high"].item()
        assert low < found["diff"].item() < high
        assert 0 < found["p_value"].item() < 1


@pytest.mark.parametrize("name", first(2, SURE))
def test_the_bootstrap_agrees(users, name):
    method = polars_mcc.Bootstrap(replicates=2000, seed=1)
    found = users.mcc(score="a").by("slice", metrics=name, ci=0.9, method=method)
    expected = users.mcc(score="a").by("slice", metrics=name, ci=0.9)
    assert found[name].to_list() == pytest.approx(expected[name].to_list(), rel=1e-12)
    ratio = found[f"{name}_se"] / expected[f"{name}_se"]
    assert ratio.to_list() == pytest.approx([1, 1], abs=0.1)


def test_counts_models_and_sets_are_as_rows(users):
    keys = polars_mcc.each("slice", total=True)
    counted = users.group_by("slice", "gold", "a").len("times")
    found = counted.mcc(score="a", weight="times").by(keys, metrics=SURE, ci=0.9)
    expected = users.mcc(score="a").by(keys, metrics=SURE, ci=0.9)
    assert_frame_equal(found, expected, rel_tol=1e-11, abs_tol=1e-14)
    both = users.mcc(score=["b", "a"]).by(keys, metrics=SURE, ci=0.9)
    of_model = both.filter(model="a").drop("model")
    assert_frame_equal(of_model, expected, rel_tol=1e-11, abs_tol=1e-14)


def test_floats_are_the_same_in_each_run():
    """Many levels and bins, in any order of the threads."""
    rng = np.random.default_rng(3)
    n = 50_000
    columns = {"key": rng.integers(0, 40, n), "p": rng.random(n), "gold": rng.random(n) < 0.3}
    query = pl.LazyFrame(columns).mcc(score="p").by("key", metrics=[*oracles.FAMILY])
    first = query.collect()
    for _ in range(3):
        assert_frame_equal(query.collect(), first, check_exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("slices", [1, 3_000])
def test_errors_do_not_depend_on_the_engine(slices):
    """Many scores, so that the streaming engine has several parts, in any order."""
    rng = np.random.default_rng(2)
    n = 150_000
    columns = {"key": rng.integers(0, slices, n), "a": rng.random(n), "gold": rng.random(n) < 0.3}
    query = pl.LazyFrame(columns).mcc(score="a").by("key", metrics=SURE, ci=0.9)
    expected = query.collect(engine="in-memory")
    for _ in range(3):
        found = query.collect(engine="streaming")
        assert_frame_equal(found, expected, rel_tol=1e-9, abs_tol=1e-12)


# Slices that cannot be judged.


def test_a_slice_of_one_class_is_not_judged(run):
    """It has no area, and without positive rows no average precision."""
    log = pl.DataFrame(
        {
            "key": ["both"] * 4 + ["negative"] * 3 + ["positive"] * 3,
            "gold": [True, True, False, False] + [False] * 3 + [True] * 3,
            "p": [0.9, 0.6, 0.7, 0.1, *[0.2, 0.3, 0.9] * 2],
        }
    )
    for ci in (None, 0.9):
        options = {"min_n": 2, "ci": ci}
        area = run(log, lambda f, o=options: _checked(f, min={"roc_auc": 0.3}, **o))
        assert area["verdict"].to_list() == ["passes", "not judged", "not judged"]
        precision = run(log, lambda f, o=options: _checked(f, min={"average_precision": 0.3}, **o))
        alone = "passes" if ci is None else "not judged"  # It has no interval.
        assert precision["verdict"].to_list() == ["passes", "not judged", alone]
        brier = run(log, lambda f, o=options: _checked(f, max={"brier": 0.99}, **o))
        assert brier["verdict"].to_list() == ["passes"] * 3
    with pytest.raises(
        polars_mcc.CheckError, match="1 of 1 slices fails: roc_auc below 0.8 .2 not"
    ):
        log.mcc(score="p").check("key", min={"roc_auc": 0.8}, min_n=2)
    with pytest.raises(polars_mcc.CheckError) as failed:
        log.mcc(score="p").check("key", max={"brier": 0.2}, min_n=2)
    expected = log.mcc(score="p").by("key", metrics="brier")
    assert failed.value.judged["brier"].to_list() == expected["brier"].to_list()
    verdicts = ["fails" if brier > 0.2 else "passes" for brier in expected["brier"]]
    assert failed.value.judged["verdict"].to_list() == verdicts


def _checked(frame, **options):
    """`check` runs a lazy query at once."""
    found = frame.mcc(score="p").check("key", **options)
    return found.lazy() if isinstance(frame, pl.LazyFrame) else found


def test_less_of_a_loss_is_better(users):
    for name in ("brier", "log_loss", "ece", "calibration_error", "brier_reliability"):
        with pytest.raises(ValueError, match=name):
            users.mcc(score="a").check("slice", min={name: 0.5})


def test_labels_and_scores_are_checked_together(users):
    log = users.with_columns(pred=pl.col("a") >= 0.45).mcc(score="a", pred="pred")
    found = log.check("slice", min={"mcc": -1, "roc_auc": 0.1}, max={"brier": 0.9}, min_n=1)
    expected = log.by("slice", metrics=["mcc", "roc_auc", "brier"])
    assert_frame_equal(found.select(expected.columns), expected)
    assert found["verdict"].to_list() == ["passes"] * 2


@pytest.mark.parametrize("verb", ["compare", "contrast", "drift"])
def test_what_has_no_interval_is_not_compared(users, verb):
    keys, options = {
        "compare": ([], {"score": ["a", "b"]}),
        "contrast": (["slice"], {"score": "a"}),
        "drift": ([], {"score": "a", "before": pl.col("n") < 2, "after": pl.col("n") > 1}),
    }[verb]
    for name in {*oracles.FAMILY} - {*SURE}:
        with pytest.raises(
            ValueError, match=f"'{name}'.*(biased|coarse|labels alone|several scores)"
        ):
            ask(users, verb, *keys, metrics=name, **options)


@in_turn(cluster=[None, "user"], metric=["roc_auc", "brier", "log_loss"])
def test_constant_scores_have_no_standard_error_but_a_score_interval(metric, cluster):
    """All rows have the same influence, so only "score" says how far the truth may be."""
    log = pl.DataFrame({"gold": [True, False] * 20, "p": 0.5, "user": [1, 2, 3, 4] * 10})
    log = log.mcc(score="p", cluster=cluster)
    names = [f"{metric}_low", f"{metric}_high", f"{metric}_se"]
    for method in ("wald", "fisher"):
        found = log.score(metrics=metric, ci=0.9, method=method)
        assert found.select(names).row(0) == (None, None, None)
    low, high, error = log.score(metrics=metric, ci=0.9).select(names).row(0)
    assert error is None
    assert low < log.score(metrics=metric)[metric].item() < high


def test_a_perfect_ranking_of_float_weights_has_an_interval():
    """The sums of these weights give an area of 1 + 2·10⁻¹⁶ in floats."""
    scores, weights = [0.5, 0.454, 0.25, 0.246], [0.1, 0.3, 300.1, 0.3]
    log = pl.DataFrame({"gold": [True, True, True, False], "score": scores, "w": weights})
    found = log.mcc(score="score", weight="w").by(metrics="roc_auc", ci=0.999)
    assert found["roc_auc_low"].item() == pytest.approx(0.0523395882991, rel=1e-9)
    assert found["roc_auc_high"].item() == 1

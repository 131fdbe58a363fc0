"""`gaps`: beside fairlearn, and beside loops over slices with the formulas of textbooks."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest
from benchmarks import gaps_coverage
from polars.testing import assert_frame_equal
from scipy import optimize, stats
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef, recall_score
from support import in_turn

import polars_mcc
from polars_mcc import CheckError, bins, each, rollup, trailing

OF_SKLEARN = {
    "accuracy": accuracy_score,
    "tpr": lambda gold, pred: recall_score(gold, pred, zero_division=0),
    "mcc": matthews_corrcoef,
    "f1_macro": lambda gold, pred: f1_score(gold, pred, average="macro"),
}


def log_of(slices: int, rows: int, seed: int, *, error: float = 0.2) -> pl.DataFrame:
    """Slices of unequal sizes and rates of errors."""
    rng = np.random.default_rng(seed)
    part = rng.choice(slices, rows, p=rng.dirichlet(np.full(slices, 3.0)))
    gold = rng.random(rows) < 0.4
    wrong = rng.random(rows) < error * (1 + part / slices)
    sex = np.where(rng.random(rows) < 0.5, "f", "m")
    return pl.DataFrame({"part": part, "sex": sex, "gold": gold, "pred": gold ^ wrong})


def binomial_limits(hits: float, rows: float, z: float) -> tuple[float, float]:
    """The limits at which the normal deviate of Peizer and Pratt, in its other form, is z."""

    def beyond(p: float, hits: float) -> float:
        s, t, q = hits - 0.5, rows - hits + 0.5, 1 - p
        likely = 2 * (s * math.log(s / (rows * p)) + t * math.log(t / (rows * q)))
        moved = s + 1 / 6 - (rows + 1 / 3) * p
        moved += 0.02 * (q / (s + 0.5) - p / (t + 0.5) + (q - 0.5) / (rows + 1))
        return moved / abs(s - rows * p) * math.sqrt(likely / (1 + 1 / (6 * rows))) - z

    def low(hits: float) -> float:
        if hits == 0:
            return 0.0
        return optimize.brentq(beyond, 1e-15, (hits - 0.5) / rows * (1 - 1e-6), (hits,))

    return low(hits), 1 - low(rows - hits)


def moments_of_squares(rows: int, share: float) -> np.ndarray:
    """The mean, variance and third central moment of one term of X², from all its values."""
    hits = np.arange(rows + 1)
    p = stats.binom.pmf(hits, rows, share)
    squares = (hits - rows * share) ** 2 / (rows * share * (1 - share))
    mean = (p * squares).sum()
    return np.array([mean, *((p * (squares - mean) ** power).sum() for power in (2, 3))])


def by_hand(hits: list[int], rows: list[int], ci: float) -> dict[str, float]:
    """The answer for a proportion: slices with so many hits among so many rows."""
    number, scores = len(rows), [h / n for h, n in zip(hits, rows, strict=True)]
    z = stats.studentized_range.ppf(ci, number, 1e7) / math.sqrt(2)
    limits = [binomial_limits(h, n, z) for h, n in zip(hits, rows, strict=True)]
    lows, highs = [], []
    for i, j in itertools.permutations(range(number), 2):
        diff = scores[i] - scores[j]
        lows.append(diff - math.hypot(scores[i] - limits[i][0], limits[j][1] - scores[j]))
        highs.append(diff + math.hypot(limits[i][1] - scores[i], scores[j] - limits[j][0]))
    share = sum(hits) / sum(rows)
    variances = [share * (1 - share) / n for n in rows]
    q = sum((v - share) ** 2 / s for v, s in zip(scores, variances, strict=True))
    of_terms = sum(moments_of_squares(n, share) for n in rows)
    moments = np.maximum(
        of_terms - moments_of_squares(sum(rows), share), (number - 1) * np.array([1, 2, 8])
    )
    df = 8 * moments[1] ** 3 / moments[2] ** 2
    p = stats.chi2.sf((q - moments[0]) * math.sqrt(2 * df / moments[1]) + df, df)
    weights = [1 / s for s in variances]
    c = sum(weights) - sum(w**2 for w in weights) / sum(weights)
    return {
        "diff": max(scores) - min(scores),
        "diff_low": max(*lows, 0),
        "diff_high": min(max(highs), 1),
        "ratio": min(scores) / max(scores),
        "spread": math.sqrt(max((q - (number - 1)) / c, 0)),
        "p_value": p,
    }


@in_turn(3, slices=[3, 8, 30], rows=[400, 3000], metric=["accuracy", "tpr", "fpr"])
def test_a_proportion_is_computed_by_hand(slices, rows, metric):
    log = log_of(slices, rows, slices + rows, error=0.05 if slices == 8 else 0.3)
    [row] = log.mcc(positive=True).gaps("part", metrics=metric, ci=0.9, min_n=1).to_dicts()
    kept = {"accuracy": log, "tpr": log.filter("gold"), "fpr": log.filter(~pl.col("gold"))}[metric]
    hit = pl.col("gold") == pl.col("pred") if metric == "accuracy" else pl.col("pred")
    counts = kept.group_by("part").agg(hits=hit.sum(), rows=pl.len()).sort("part")
    expected = by_hand(counts["hits"].to_list(), counts["rows"].to_list(), 0.9)
    assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-6, abs=1e-9)
    n = log.filter(pl.col("part").is_in(counts["part"].implode())).height
    assert (row["metric"], row["n_slices"], row["n"]) == (metric, counts.height, n)


@pytest.mark.parametrize("metric", OF_SKLEARN)
def test_the_values_are_those_of_fairlearn(metric):
    log = log_of(5, 2000, 7)
    [row] = log.mcc(positive=True).gaps("part", metrics=[metric]).to_dicts()
    gold, pred, part = (log[name].to_numpy() for name in ("gold", "pred", "part"))
    peer = pytest.importorskip("fairlearn.metrics").MetricFrame(
        metrics=OF_SKLEARN[metric], y_true=gold, y_pred=pred, sensitive_features=part
    )
    assert row["diff"] == pytest.approx(peer.difference(method="between_groups"), abs=1e-12)
    assert row["ratio"] == pytest.approx(peer.ratio(method="between_groups"), abs=1e-12)
    assert row["lowest"] == f"part = {peer.by_group.idxmin()}"
    assert row["highest"] == f"part = {peer.by_group.idxmax()}"
    assert (row["lowest_score"], row["highest_score"]) == pytest.approx(
        (peer.group_min(), peer.group_max()), abs=1e-12
    )
    assert 0 <= row["diff_low"] <= row["diff"] <= row["diff_high"]


def test_keys_within_models_and_metrics_have_a_row_each():
    log = log_of(4, 3000, 3).with_columns(other=pl.col("gold"), age=pl.int_range(pl.len()) % 50)
    asked = log.mcc(pred=["pred", "other"], positive=True)
    found = asked.gaps(
        each("part", bins("age", [20, 30])), within="sex", metrics=["tpr", "accuracy"]
    )
    assert found.columns[:5] == ["keys", "sex", "model", "metric", "n_slices"]
    order = itertools.product(["part", "age"], "fm", ["pred", "other"], ["tpr", "accuracy"])
    assert found.select("keys", "sex", "model", "metric").rows() == [*order]
    for row in found.to_dicts():
        part = log.filter(sex=row["sex"]).mcc(pred=row["model"], positive=True)
        key = "part" if row["keys"] == "part" else bins("age", [20, 30])
        alone = part.gaps(key, metrics=row["metric"])
        assert_frame_equal(
            pl.DataFrame([row], found.schema).select(alone.columns).drop("p_adjusted", "verdict"),
            alone.drop("p_adjusted", "verdict"),
            rel_tol=1e-12,
        )
    perfect = found.filter(model="other")
    assert set(perfect.select("diff", "diff_low", "spread", "p_value").rows()) == {(0, 0, 0, 1)}
    crossed = asked.gaps("part", "sex", metrics="accuracy").filter(model="pred")
    assert crossed["n_slices"].item() == 8
    assert " and sex = " in crossed["lowest"].item()
    for of_metric in found.partition_by("metric"):  # Each is corrected alone.
        adjusted = stats.false_discovery_control(of_metric["p_value"])
        assert of_metric["p_adjusted"].to_list() == pytest.approx(adjusted, rel=1e-12)
        is_gap = of_metric["p_adjusted"] < 0.05
        assert of_metric["verdict"].to_list() == [("not sure", "gap")[one] for one in is_gap]


@pytest.mark.parametrize("name", ["diff", "metric", "n", "accuracy", "keys", "model", "of:group"])
def test_a_key_may_have_any_name_as_the_answer_has_no_keys(name):
    log = log_of(4, 600, 3).with_columns(other=pl.col("gold") ^ (pl.int_range(pl.len()) % 9 == 0))
    both = {"pred": ["pred", "other"]}
    renamed = log.rename({"part": name})
    for key, given in ((name, "part"), (each(name, "sex"), each("part", "sex"))):
        found = renamed.lazy().mcc(**both).gaps(key, metrics=["accuracy", "mcc"]).collect()
        words = pl.col("lowest", "highest").str.replace(f"{name} = ", "part = ", literal=True)
        found = found.with_columns(words)
        if "keys" in found.columns:
            found = found.with_columns(pl.col("keys").replace(name, "part"))
        expected = log.mcc(**both).gaps(given, metrics=["accuracy", "mcc"])
        assert_frame_equal(found, expected)
    if name in {"diff", "metric", "n", "model"}:
        with pytest.raises(pl.exceptions.DuplicateError, match=f"key '{name}' has the name of a"):
            renamed.mcc(**both).gaps("sex", within=name)


def test_small_slices_and_slices_without_a_score_are_left_out():
    log = pl.concat(
        [
            log_of(3, 900, 1),
            pl.DataFrame({"part": [7], "sex": ["f"], "gold": [True], "pred": [False]}),
            pl.DataFrame({"part": [8] * 40, "sex": "f", "gold": False, "pred": False}),
        ],
        how="vertical_relaxed",
    )
    asked = log.mcc(positive=True)
    every = asked.gaps("part", metrics="tpr", min_n=1)
    assert every.select("n_slices", "lowest").row(0) == (4, "part = 7")
    alone = log.filter(pl.col("part") < 3).mcc(positive=True).gaps("part", metrics="tpr")
    for options in ({}, {"min_n": 2}, {"min_n": 30}):
        assert_frame_equal(asked.gaps("part", metrics="tpr", **options), alone)
    gate = {"max_gap": {"tpr": 0.5}}
    assert asked.check("part", **gate)["n_slices"].item() == 3
    with pytest.raises(CheckError, match="1 of 1 gaps fails"):
        asked.check("part", min_n=1, **gate)
    with pytest.raises(CheckError, match="fewer than two slices of 30 rows or more"):
        log.filter(pl.col("part") > 6).mcc(positive=True).check("part", **gate)
    few = asked.gaps("part", metrics="tpr", min_n=10**6).row(0, named=True)
    assert (few["n_slices"], few["n"], few["lowest"], few["diff"]) == (0, 0, None, None)
    one = log.filter(pl.col("part") < 1).mcc(positive=True).gaps("part").row(0, named=True)
    assert (one["n_slices"], one["lowest"], one["highest"]) == (1, "part = 0", "part = 0")
    assert [one[name] for name in ("diff", "diff_low", "ratio", "spread", "p_value")] == [None] * 5
    two = log.filter(pl.col("part") < 2).mcc.gaps("part").row(0, named=True)
    assert two["spread"] is None
    assert two["p_value"] is not None


def test_a_ratio_of_0_is_0_and_0_by_0_is_null():
    rows = {"part": [0] * 9 + [1] * 9, "gold": True, "pred": [False] * 9 + [True] * 9}
    log = pl.DataFrame(rows)
    assert log.mcc.gaps("part", metrics="accuracy", min_n=9)["ratio"].item() == 0
    log = log.with_columns(pred=pl.lit(value=False))
    found = log.mcc.gaps("part", metrics="accuracy", min_n=9).row(0, named=True)
    assert (found["ratio"], found["diff"], found["p_value"]) == (None, 0, 1)
    one = log_of(1, 300, 1)
    other = one.with_columns(part=pl.col("part") + 1, pred=~pl.col("pred"))
    negative = pl.concat([one, other]).mcc.gaps("part").row(0, named=True)
    assert negative["lowest_score"] < 0
    assert negative["ratio"] is None


def test_the_four_fifths_rule_is_a_gate(caplog):
    caplog.set_level("INFO", "polars_mcc")
    rows, hits = [400, 500, 60], [200, 150, 40]
    counts = pl.DataFrame(
        [
            {"race": race, "pred": pred, "gold": True, "n": k if pred else n - k}
            for race, n, k in zip("abc", rows, hits, strict=True)
            for pred in (True, False)
        ]
    )
    log = counts.mcc(weight="n")
    rule = {"min_ratio": {"selection_rate": 0.8}}
    [gap] = log.gaps("race", metrics="selection_rate").to_dicts()
    assert (gap["lowest"], gap["highest"]) == ("race = b", "race = c")
    assert gap["ratio"] == pytest.approx(0.3 / (2 / 3), rel=1e-12)
    assert 0.3 < gap["ratio_low"] < gap["ratio"] < gap["ratio_high"] < 0.8
    for ci in (None, 0.95):
        with pytest.raises(
            CheckError, match="1 of 1 ratios fails: ratio of selection_rate below 0.8"
        ):
            log.check("race", ci=ci, **rule)
    alike = counts.filter(pl.col("race") != "b").mcc(weight="n")
    with pytest.raises(CheckError):
        alike.check("race", min_ratio=0.8, metric="selection_rate")
    judged = alike.check("race", ci=0.95, **rule)
    assert judged["verdict"].to_list() == ["not significant"]
    assert judged.columns[-2:] == ["min_ratio", "verdict"]
    told = caplog.messages[-1]
    assert told.startswith("selection_rate ratio of race 0.750 (0.")
    end = "at least 0.8: passes, 2 groups, 460 rows, outside but not significantly"
    assert told.endswith(f"), {end}")
    # A sample weight of 2 is one row: as if there were half as many.
    half = counts.with_columns(pl.col("n") // 2).mcc(weight="n").gaps("race", metrics="tpr")
    each_twice = counts.with_columns(pl.col("n") // 2).select(
        pl.exclude("n").repeat_by("n").explode(), w=2.0
    )
    same = each_twice.mcc(sample_weight="w").gaps("race", metrics="tpr")
    ratios = ["ratio", "ratio_low", "ratio_high"]
    assert_frame_equal(same.select(ratios), half.select(ratios))
    alike(weight="n").check(each("race", pl.lit(1).alias("all")), **rule, ci=0.95)
    unknown = "selection_rate ratio of all unknown, at least 0.8: not judged: fewer than two groups"
    assert caplog.messages[-1] == unknown
    no_one = counts.with_columns(pred=pl.lit(value=False)).mcc(weight="n")
    with pytest.raises(
        CheckError, match="no ratio of selection_rate can be judged: .* scores are 0"
    ):
        no_one.check("race", **rule)
    assert log.gaps("race", metrics="mcc").select(ratios[1:]).row(0) == (None, None)
    for options, why in {
        "not from 0 to 1": (
            {"min_ratio": {"mcc": 0.8}},
            "is no ratio of proportions: .* from 0 to 1",
        ),
        "above 1": ({"min_ratio": {"tpr": 1.25}}, "above 0 and at most 1"),
        "two": ({"min_ratio": 0.8, "max_gap": 0.1}, "max_gap is checked alone: .* min_ratio"),
        "three": ({"min_ratio": 0.8, "min": 0.1}, "min_ratio is checked alone: leave out min"),
    }.values():
        with pytest.raises(ValueError, match=why):
            log.check("race", **options)


@pytest.mark.parametrize(
    ("number", "sizes"), [(2, [3000, 30]), (5, [30]), (5, [3000]), (50, [30, 3000])]
)
def test_the_four_fifths_rule_seldom_stops_groups_that_keep_it(number, sizes):
    rng = np.random.default_rng(number)
    stops, holds, finds = gaps_coverage.ratio_gates(number, sizes, 0.1, 20, rng)
    assert stops <= 0.05
    assert holds >= 0.95
    assert (finds > 0.9) == (sizes == [3000])


def test_a_total_has_no_gap_and_weights_count_rows():
    log = log_of(3, 600, 5)
    found = log.mcc.gaps(rollup("part", "sex"), metrics="accuracy")
    assert found["keys"].to_list() == ["part, sex", "part"]
    counts = log.group_by("part", "sex", "gold", "pred").len("k").sort(pl.all())
    weighed = counts.lazy().mcc(weight="k").gaps(rollup("part", "sex"), metrics="accuracy")
    assert_frame_equal(weighed.collect(), found)
    missing = log.with_columns(gold=pl.when(pl.col("sex") == "m").then("gold"))
    answer = missing.mcc.gaps("part", metrics="accuracy")
    assert answer["n_null"].item() == log.filter(sex="f").height


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda log: log.gaps(), "name the keys to slice by, as in gaps"),
        (lambda log: log.gaps("part", within="part"), "'part' is a key and also in within"),
        (lambda log: log.gaps(trailing("part", 3)), r"gaps does not support trailing\(...\)"),
        (lambda log: log.gaps("part", within=each("sex")), r"does not support each\(...\)"),
        (lambda log: log(cluster="sex").gaps("part"), "gaps does not support cluster"),
        (lambda log: log(positive=True).gaps("part", metrics="tp"), "'tp' counts rows"),
        (lambda log: log.gaps("part", metrics=["mcc", "roc_auc"]), "some of scores"),
        (lambda log: log.gaps("part", min_n=0), "min_n"),
        (lambda log: log.gaps("part", ci=2), "ci"),
        (lambda log: log.gaps("part", correction="none"), "correction"),
        (lambda log: log(pred="sex", gold="sex").gaps("part", metrics="tpr"), "positive"),
        (lambda log: log.gaps("part", metrics="chi2"), "'chi2' has no interval"),
    ],
)
def test_what_it_refuses(ask, message):
    with pytest.raises(ValueError, match=message):
        ask(log_of(2, 20, 1).mcc)


def test_a_score_that_may_be_anything_is_not_compared():
    """With few rows of a class that is never predicted, MCC is known to no row."""
    rng = np.random.default_rng(2)
    cells = rng.multinomial(30, [0.69, 0.01, 0.006, 0.294], (400, 2))
    sample, part, cell, n = *(x.ravel() for x in np.indices(cells.shape)), cells.ravel()
    log = pl.DataFrame(
        {"sample": sample, "part": part, "gold": cell // 2, "pred": cell % 2, "n": n}
    )
    found = log.mcc(weight="n").gaps("part", within="sample", metrics=["mcc", "f1_macro"])
    compared = found.filter(pl.col("n_slices") == 2)
    assert compared.height > 700
    for name in ("diff", "diff_low", "diff_high", "p_value"):
        assert compared[name].is_finite().all()


def test_equal_slices_seldom_have_a_gap():
    """Twenty equal slices: the largest minus the smallest is far from 0, and no gap is sure."""
    rng = np.random.default_rng(8)
    hits = rng.binomial(30, 0.9, (300, 20))
    sample, part = np.indices(hits.shape).reshape(2, -1)
    right = pl.DataFrame({"sample": sample, "part": part, "gold": 1, "pred": 1, "n": hits.ravel()})
    log = pl.concat([right, right.with_columns(pred=0, n=30 - pl.col("n"))]).mcc(weight="n")
    found = log.gaps("part", within="sample", metrics="accuracy")
    assert found["diff"].mean() == pytest.approx(0.2, abs=0.02)
    assert found["spread"].mean() < 0.02
    assert (found["diff_low"] == 0).mean() > 0.95
    assert (found["p_value"] < 0.05).mean() < 0.075


@pytest.mark.parametrize("scale", [1e6, 0.1, 1 / 600])
def test_gaps_and_searches_do_not_depend_on_the_scale_of_sample_weights(scale):
    i = pl.int_range(600)
    log = pl.select(key=i % 4, gold=i % 2 == 0, pred=(i % 2 == 0) ^ (i % 7 == i % 4))
    one, other = (
        log.with_columns(w=(1.0 + i % 3) * factor).mcc(sample_weight="w") for factor in (1, scale)
    )
    asked = {"metrics": ["accuracy", "mcc"], "min_n": 20}
    found, expected = (each.gaps("key", **asked).drop("n", "n_null") for each in (other, one))
    assert_frame_equal(found, expected, rel_tol=1e-9)
    found, expected = (
        each.worst("key", verdicts=True).select("slice", "p_value", "verdict")
        for each in (other, one)
    )
    assert_frame_equal(found, expected, rel_tol=1e-9)


def test_a_slice_whose_rows_cost_the_same_is_compared():
    a = pl.DataFrame({"g": "a", "gold": [False] * 50, "pred": False})
    sides = {"gold": [True] * 25 + [False] * 25, "pred": [False] * 20 + [True] * 5 + [False] * 25}
    b = pl.DataFrame({"g": "b", **sides})
    log = pl.concat([a, b]).mcc
    for asked in (
        "cost(fn=10, fp=1, tp=-2)",
        polars_mcc.metric.cost({(True, False): 10, (False, True): 1, (True, True): -2}),
    ):
        [gap] = log.gaps("g", metrics=asked).to_dicts()
        assert (gap["n_slices"], gap["diff"]) == (2, 3.8)
        low, high = log.by("g", metrics=asked, ci=0.95).select("cost_low", "cost_high").row(0)
        assert -2 < low < 0 < high < 3


@pytest.mark.parametrize("bound", [{"min": 0.9}, {"max_gap": 0.1}])
def test_a_gate_of_no_rows_fails_also_with_several_models(bound):
    log = pl.DataFrame(schema={"g": pl.Int8, "gold": pl.Int8, "a": pl.Int8, "b": pl.Int8})
    for pred in ("a", ["a"], ["a", "b"]):
        with pytest.raises(CheckError, match="no slice to judge|no gap of mcc can be judged"):
            log.mcc(pred=pred).check("g", **bound)


@pytest.mark.parametrize(("positives", "is_compared"), [(1, False), (14, False), (15, True)])
def test_a_rate_of_few_rows_is_not_compared(positives, is_compared):
    """A slice may have many rows, and few of the positive class: then Fisher's p is far larger."""
    cells = [("A", 1, 0, 1), ("A", 1, 1, positives - 1), ("A", 0, 0, 200)]
    cells += [("B", 1, 0, 60), ("B", 1, 1, 240), ("B", 0, 0, 3000)]
    log = pl.DataFrame(cells, schema=["k", "gold", "pred", "n"], orient="row")
    log = log.mcc(weight="n", positive=1)
    of_rate, of_rows = log.gaps("k", metrics=["tpr", "accuracy"], min_n=30).rows(named=True)
    assert (of_rate["p_value"] is not None) == is_compared
    assert of_rate["n_slices"] == 1 + is_compared
    assert of_rows["n_slices"] == 2
    p = log.contrast("k", metrics="tpr", min_n=30)["p_value"]
    assert p.is_not_null().to_list() == [is_compared] * 2
    assert log.contrast("k", metrics="accuracy")["p_value"].null_count() == 0

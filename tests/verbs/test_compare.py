"""`compare`: the difference of two models on the same rows."""

from __future__ import annotations

import math
from collections import Counter
from statistics import NormalDist

import numpy as np
import oracles
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy import stats
from support import in_turn

from polars_mcc import Bootstrap

Z = NormalDist().inv_cdf(0.975)
NATIVE = ["score", "fisher", "wald"]


@pytest.fixture(scope="module")
def log():
    """500 rows of 60 users in three slices. b often errs with a; c has null predictions."""
    rng = np.random.default_rng(11)
    n = 500
    gold = rng.integers(0, 3, n)
    a = np.where(rng.random(n) < 0.7, gold, rng.integers(0, 3, n))
    b = np.where(rng.random(n) < 0.6, a, np.where(rng.random(n) < 0.8, gold, 0))
    return pl.DataFrame(
        {
            "slice": rng.choice(["x", "y", "z"], n),
            "user": rng.integers(0, 60, n),
            "gold": gold,
            "a": a,
            "b": b,
            "c": pl.Series(rng.integers(0, 3, n)).replace(2, None),
            "w": rng.integers(1, 9, n) / 4,
        }
    )


def influence_of_rows(rows: pl.DataFrame, model: str, weight: list[float]) -> list[float]:
    return oracles.influences_of_rows(list(zip(rows["gold"], rows[model], strict=True)), weight)


@in_turn(weight=[None, "w"], cluster=[None, "user"])
def test_the_standard_error_is_that_of_numerical_differentiation(run, log, weight, cluster):
    found = run(
        log,
        lambda frame: frame.mcc(sample_weight=weight, cluster=cluster, pred="b").compare(
            "slice", baseline="a", method="wald"
        ),
    )
    for name, rows in log.group_by("slice"):
        w = rows[weight].to_list() if weight else [1.0] * rows.height
        of_a, of_b = (influence_of_rows(rows, model, w) for model in ("a", "b"))
        differences = [b - a for a, b in zip(of_a, of_b, strict=True)]
        moved = oracles.moved(rows[cluster] if cluster else range(rows.height), w, differences)
        [answer] = found.filter(pl.col("slice") == name[0]).to_dicts()
        df = None if cluster is None else answer["n_clusters"] - 1
        assert oracles.se_of_wald(answer, df=df) == pytest.approx(math.hypot(*moved), rel=1e-6)


def test_scores_and_rows_are_those_of_by(run, log):
    found = run(log, lambda frame: frame.mcc(pred="b").compare("slice", baseline="a"))
    for model, column in (("a", "reference"), ("b", "score")):
        expected = log.mcc(pred=model).by("slice")
        assert found[column].to_list() == expected["mcc"].to_list()
        assert found["n"].to_list() == expected["n"].to_list()
    assert found["diff"].to_list() == (found["score"] - found["reference"]).to_list()


def test_walds_interval(log):
    found = log.mcc(pred="b").compare("slice", method="wald", ci=0.9, baseline="a")
    z = NormalDist().inv_cdf(0.95)
    for row in found.iter_rows(named=True):
        assert row["diff_high"] - row["diff"] == pytest.approx(row["diff"] - row["diff_low"])
        se = (row["diff_high"] - row["diff"]) / z
        p = 2 * NormalDist().cdf(-abs(row["diff"]) / se)
        assert row["p_value"] == pytest.approx(p, rel=1e-6)


@pytest.mark.parametrize("method", NATIVE)
def test_the_interval_is_zous(log, method):
    """Compute it from the intervals of both scores and the correlation of their influences."""
    answer = log.mcc(pred="b").compare(method=method, baseline="a").row(0, named=True)
    a, b = (log.mcc(pred=m).by(ci=0.95, method=method).row(0, named=True) for m in "ab")
    both = [influence_of_rows(log, model, [1.0] * log.height) for model in "ab"]
    correlation = np.corrcoef(*both)[0, 1]
    if method == "score":  # The intervals also use the rates of both models together.
        correlation *= log.height / (log.height + Z**2)
        tables = [Counter(zip(log["gold"], log[model], strict=True)) for model in "ab"]
        for side, table in zip((a, b), tables, strict=True):
            limits = oracles.score_interval(table, Z, pool=tables[0] + tables[1])
            side["mcc_low"], side["mcc_high"] = limits

    def reach(one: float, other: float) -> float:
        return math.sqrt(one**2 + other**2 - 2 * correlation * one * other)

    low = answer["diff"] - reach(b["mcc"] - b["mcc_low"], a["mcc_high"] - a["mcc"])
    high = answer["diff"] + reach(b["mcc_high"] - b["mcc"], a["mcc"] - a["mcc_low"])
    assert answer["diff_low"] == pytest.approx(low, rel=1e-9)
    assert answer["diff_high"] == pytest.approx(high, rel=1e-9)
    to_zero = answer["diff"] - low if answer["diff"] > 0 else high - answer["diff"]
    p = 2 * NormalDist().cdf(-Z * abs(answer["diff"]) / to_zero)
    assert answer["p_value"] == pytest.approx(p, rel=1e-6)
    if method != "wald":
        assert abs(low + high - 2 * answer["diff"]) > 1e-4, "one side is longer"


def test_the_standard_error_is_that_of_resampled_rows(log):
    rng = np.random.default_rng(2)
    picks = rng.integers(0, log.height, (4000, log.height))
    gold = log["gold"].to_numpy()[picks]
    a, b = (oracles.scores_of_rows(gold, log[m].to_numpy()[picks], 3) for m in "ab")
    found = log.mcc(pred="b").compare(method="wald", baseline="a")
    se = oracles.se_of_wald(found.row(0, named=True))
    assert se == pytest.approx((b - a).std(), rel=0.04)
    independent = math.hypot(a.std(), b.std())
    assert se < 0.9 * independent, "the models err on the same rows"


def test_the_rows_of_two_models_are_paired_not_pooled(log):
    """Shuffled predictions keep the scores, but widen the interval of the difference."""
    shuffled = log.sort("gold").with_columns(
        b=pl.col("b").shuffle(seed=1).over("gold", mapping_strategy="group_to_rows")
    )
    paired = log.mcc(pred="b").compare(baseline="a").row(0, named=True)
    apart = shuffled.mcc(pred="b").compare(baseline="a").row(0, named=True)
    assert apart["diff"] == pytest.approx(paired["diff"])
    assert oracles.se_of_wald(apart) > 1.1 * oracles.se_of_wald(paired)


@given(st.lists(st.integers(0, 40), min_size=8, max_size=8), st.sampled_from(NATIVE))
def test_models_can_be_swapped(counts, method):
    cells = [(g, a, b) for g in (0, 1) for a in (0, 1) for b in (0, 1)]
    table = pl.DataFrame(cells, schema=["gold", "a", "b"], orient="row").with_columns(
        n=pl.Series(counts)
    )
    one, other = (
        table.mcc(pred=models, weight="n").compare(method=method).row(0, named=True)
        for models in (("a", "b"), ("b", "a"))
    )
    if one["diff"] is None:
        assert sum(counts) == 0
        return
    assert one["diff"] == -other["diff"]
    for name, sign, swapped in [
        ("p_value", 1, "p_value"),
        ("diff_low", -1, "diff_high"),
        ("diff_high", -1, "diff_low"),
    ]:
        if one[name] is None:
            assert other[swapped] is None
        else:
            assert one[name] == pytest.approx(sign * other[swapped], abs=1e-7)


@given(st.lists(st.integers(0, 40), min_size=8, max_size=8), st.sampled_from([0.8, 0.95, 0.99]))
def test_the_p_value_agrees_with_the_interval(counts, ci):
    cells = [(g, a, b) for g in (0, 1) for a in (0, 1) for b in (0, 1)]
    table = pl.DataFrame(cells, schema=["gold", "a", "b"], orient="row").with_columns(
        n=pl.Series(counts)
    )
    row = table.mcc(weight="n", pred="b").compare(ci=ci, baseline="a").row(0, named=True)
    assume(row["p_value"] is not None)
    assert 0 <= row["p_value"] <= 1
    leaves_out_0 = row["diff_low"] > 1e-12 or row["diff_high"] < -1e-12
    if abs(row["p_value"] - (1 - ci)) > 1e-9:
        assert (row["p_value"] < 1 - ci) == leaves_out_0


def test_a_model_and_itself(log):
    """The difference is 0. With 5 rows, its interval is still wide."""
    same = log.mcc(pred=pl.col("a").alias("copy")).compare(baseline="a").row(0, named=True)
    assert (same["diff"], same["p_value"], same["verdict"]) == (0, 1, "not sure")
    assert -0.05 < same["diff_low"] < 0 < same["diff_high"] < 0.05
    few = log.head(5).mcc(pred=pl.col("a").alias("copy")).compare(baseline="a").row(0, named=True)
    assert few["diff_low"] < -0.2
    assert few["diff_high"] > 0.2


def test_many_models_in_one_scan(run, log):
    found = run(log, lambda frame: frame.mcc(pred=["b", "c"]).compare("slice", baseline="a"))
    assert found["model"].to_list() == ["b", "c"] * 3
    for model in ("b", "c"):
        alone = log.mcc(pred=model).compare("slice", baseline="a")
        of_model = found.filter(pl.col("model") == model).drop("p_adjusted", "verdict")
        assert_frame_equal(of_model, alone.drop("p_adjusted", "verdict"), rel_tol=1e-10)


def test_a_row_that_one_model_leaves_open_is_scored_for_neither(run, log):
    found = run(log, lambda frame: frame.mcc(pred="c").compare("slice", baseline="a"))
    answered = log.drop_nulls("c")
    expected = answered.mcc(pred="c").compare("slice", baseline="a")
    assert_frame_equal(found.drop("n_null"), expected.drop("n_null"), rel_tol=1e-10)
    assert found["n_null"].sum() == log["c"].null_count()
    assert (found["n"] + found["n_null"]).sum() == log.height
    labelled = run(log, lambda f: f.mcc(nulls="label", pred="c").compare("slice", baseline="a"))
    filled = log.with_columns(pl.col("c").fill_null(9)).mcc(pred="c").compare("slice", baseline="a")
    assert_frame_equal(labelled, filled, rel_tol=1e-10)


@pytest.mark.parametrize("cluster", [None, "user"])
def test_counts_give_the_difference_of_their_rows(log, cluster):
    keys = ["slice", "gold", "a", "b", "user"]
    counted = log.group_by(keys).agg(n=pl.len())
    found = counted.mcc(weight="n", cluster=cluster, pred="b").compare("slice", baseline="a")
    expected = log.mcc(cluster=cluster, pred="b").compare("slice", baseline="a")
    assert_frame_equal(found, expected, rel_tol=1e-10)
    assert ("n_clusters" in found.columns) == (cluster is not None)


def test_the_verb_counts_makes_joint_counts(log):
    counted = log.mcc(pred="b").counts("slice", "a")
    found = counted.mcc(weight="n", pred="pred").compare("slice", baseline="a")
    expected = log.mcc(pred="b").compare("slice", baseline="a")
    assert_frame_equal(found.drop("model"), expected.drop("model"), rel_tol=1e-10)


def test_two_logs_are_joined_on_their_rows(log):
    log = log.with_row_index("row")
    old, new = log.select("row", "gold", pred="a"), log.select("row", pred="b").sample(fraction=1)
    joined = old.join(new, on="row", suffix="_new")
    found = joined.mcc(pred="pred_new").compare(baseline="pred")
    expected, names = log.mcc(pred="b").compare(baseline="a"), ["model", "baseline"]
    assert found.select(names).row(0) == ("pred_new", "pred")
    assert_frame_equal(found.drop(names), expected.drop(names), rel_tol=1e-10)


CORRECTIONS = ["bh", "by", "holm", "bonferroni"]


@in_turn(seed=range(5), correction=CORRECTIONS)
def test_corrections(correction, seed):
    """Check 30 slices, one without a p-value, against SciPy or against the definition."""
    rng = np.random.default_rng(seed)
    log = pl.DataFrame({"key": rng.integers(0, 30, 3000), "gold": rng.integers(0, 2, 3000)})
    log = log.with_columns(
        a=pl.when(pl.Series(rng.random(3000) < 0.7)).then("gold").otherwise(1 - pl.col("gold")),
        b=pl.when(pl.Series(rng.random(3000) < 0.8)).then("gold").otherwise(1 - pl.col("gold")),
    ).with_columns(gold=pl.when(pl.col("key") == 7).then(1).otherwise("gold"))
    found = log.mcc(pred="b").compare("key", correction=correction, baseline="a")
    assert found["key"].is_sorted()
    known = found.drop_nulls("p_value")
    assert found.height - known.height == 1
    p = known["p_value"].to_numpy()
    m, order = len(p), np.argsort(p)
    if correction in ("bh", "by"):
        expected = stats.false_discovery_control(p, method=correction)
    elif correction == "bonferroni":
        expected = np.minimum(p * m, 1)
    else:
        expected = np.empty(m)
        expected[order] = np.minimum(np.maximum.accumulate(p[order] * (m - np.arange(m))), 1)
    assert known["p_adjusted"].to_numpy() == pytest.approx(expected, rel=1e-12)


def test_no_rows(run):
    log = pl.DataFrame(schema=dict.fromkeys(["gold", "a", "b", "c"], pl.String))
    assert run(log, lambda frame: frame.mcc(pred="b").compare("c", baseline="a")).height == 0
    found = run(log, lambda frame: frame.mcc(pred=["b", "c"]).compare(baseline="a"))
    assert found["model"].to_list() == ["b", "c"]
    assert found["n"].to_list() == [0, 0]
    assert found["diff"].null_count() == 2


def test_a_model_of_one_class_has_a_difference_and_its_interval():
    log = pl.DataFrame({"gold": [*"abab"] * 5, "a": [*"abaa"] * 5, "b": ["a"] * 20})
    row = log.mcc(pred="b").compare(baseline="a").row(0, named=True)
    assert row["score"] == 0
    assert row["diff"] == -row["reference"]
    assert row["diff_low"] < row["diff"] < row["diff_high"]
    assert 0.01 < row["p_value"] < 0.1
    # With one gold class, there is nothing to know.
    row = log.with_columns(gold=pl.lit("a")).mcc(pred="b").compare(baseline="a").row(0, named=True)
    assert row["diff_low"] is row["diff_high"] is row["p_value"] is row["p_adjusted"] is None


def test_what_is_refused(log):
    for alone in (log.mcc(pred="a").compare, log.mcc(pred=["a"]).compare):
        with pytest.raises(ValueError, match="there is no second model to compare: pass several"):
            alone()
        with pytest.raises(ValueError, match="there is no second model to compare"):
            alone(baseline="a")
        with pytest.raises(ValueError, match="there is no second model to compare"):
            alone(baseline=pl.col("a"))
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="no column 'aa' for baseline"):
        log.mcc(pred="b").compare(baseline="aa")
    with pytest.raises(pl.exceptions.SchemaError, match="labels cannot be compared"):
        log.mcc(pred="b").compare(baseline=pl.col("a").cast(pl.String))
    with pytest.raises(pl.exceptions.DuplicateError, match="key 'diff'"):
        log.mcc(pred="b").compare(pl.col("slice").alias("diff"), baseline="a")
    with pytest.raises(ValueError, match="method must be one of 'score', 'fisher', 'wald'"):
        log.mcc(pred="b").compare(method=Bootstrap(), baseline="a")
    with pytest.raises(ValueError, match="correction must be one of 'bh', 'by'"):
        log.mcc(pred="b").compare(correction="fdr", baseline="a")
    with pytest.raises(ValueError, match="ci must be a confidence level"):
        log.mcc(pred="b").compare(ci=None, baseline="a")

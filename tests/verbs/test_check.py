"""`check`: raise an error that shows the slices that miss a threshold or a baseline."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import pickle
import re
import subprocess
import sys
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from benchmarks import healthy_gates
from polars.testing import assert_frame_equal
from scipy.stats import false_discovery_control
from support import ask, in_turn

import polars_mcc
from polars_mcc import each


def counts_of(**tables) -> pl.DataFrame:
    """Counts with one slice per name, from the counts of (gold, pred): aa, ab, ba, bb."""
    cells = [
        (key, gold, pred, n)
        for key, counts in tables.items()
        for (gold, pred), n in zip(["aa", "ab", "ba", "bb"], counts, strict=True)
    ]
    return pl.DataFrame(cells, schema=["key", "gold", "pred", "n"], orient="row")


COUNTS = counts_of(good=[95, 5, 5, 95], poor=[70, 30, 30, 70], small=[3, 1, 1, 3])


@pytest.mark.parametrize("frame", [COUNTS, COUNTS.lazy()], ids=["DataFrame", "LazyFrame"])
def test_slices_below_the_least_score_fail(frame):
    with pytest.raises(polars_mcc.CheckError) as raised:
        frame.mcc(weight="n").check("key", min=0.6)
    assert raised.value.failures["key"].to_list() == ["poor", "small"]
    assert raised.value.judged["verdict"].to_list() == ["passes", "fails", "fails"]
    lines = str(raised.value).splitlines()
    assert lines[0] == "2 of 3 slices fail: mcc below 0.6"
    assert any("poor" in line and "200" in line and "0.4" in line for line in lines)
    assert not any("good" in line for line in lines)
    passed = frame.mcc(weight="n").check("key", min=0.4)
    assert isinstance(passed, pl.DataFrame)
    assert passed["verdict"].to_list() == ["passes"] * 3


def test_small_slices_are_not_judged_and_not_passed_over():
    judged = COUNTS.mcc(weight="n").check("key", min=0.3, min_n=100)
    assert judged["verdict"].to_list() == ["passes", "passes", "not judged"]
    with pytest.raises(polars_mcc.CheckError, match="1 of 2 slices fails: mcc below 0.6 .1 not"):
        COUNTS.mcc(weight="n").check("key", min=0.6, min_n=100)
    with pytest.raises(polars_mcc.CheckError, match="no slice to judge .3 not judged: fewer"):
        COUNTS.mcc(weight="n").check("key", min=0.6, min_n=1000)


def test_with_a_level_a_slice_fails_if_it_surely_does():
    with pytest.raises(polars_mcc.CheckError, match=r"significantly .ci=0.95") as raised:
        COUNTS.mcc(weight="n").check("key", min=0.6, ci=0.95)
    assert raised.value.failures["key"].to_list() == ["poor"]
    log = COUNTS.filter(key="poor").mcc(weight="n")
    high = log.by(ci=0.95)["mcc_high"].item()
    assert log.check(min=high, ci=0.95)["verdict"].to_list() == ["not significant"]
    with pytest.raises(polars_mcc.CheckError):
        log.check(min=high + 1e-12, ci=0.95)


def judged_by(log, *keys, **options) -> pl.DataFrame:
    """The answer of a gate, open or not."""
    try:
        return log.check(*keys, **options)
    except polars_mcc.CheckError as error:
        return error.judged


def adjusted(p: list[float], correction: str) -> list[float]:
    if correction == "bonferroni":
        return [min(1, one * len(p)) for one in p]
    if correction == "holm":
        rank = {place: at for at, place in enumerate(sorted(range(len(p)), key=p.__getitem__))}
        of_rank = sorted(p)
        steps = [of_rank[at] * (len(p) - at) for at in range(len(p))]
        return [min(1, max(steps[: rank[place] + 1])) for place in range(len(p))]
    return [*false_discovery_control(p, method=correction)]


@pytest.mark.parametrize("correction", ["holm", "bonferroni", "bh", "by"])
def test_p_values_are_corrected_for_slices_metrics_and_models(correction):
    """As if each slice, metric and model had one gate."""
    rng = np.random.default_rng(7)
    gold = rng.integers(0, 2, 600)
    pred = {name: np.where(rng.random(600) < hits, gold, 1 - gold) for name, hits in MODELS.items()}
    frame = pl.DataFrame({"key": rng.integers(0, 4, 600), "gold": gold, **pred})
    log, bars = frame.mcc(pred=["old", "new"]), {"mcc": 0.8, "accuracy": 0.88}
    each = {
        metric: judged_by(log, "key", min={metric: at}, ci=0.95, correction=None)["p_adjusted"]
        for metric, at in bars.items()
    }
    want = adjusted([*each["mcc"], *each["accuracy"]], correction)
    least = np.minimum(want[:8], want[8:])
    found = judged_by(log, "key", min=bars, ci=0.95, correction=correction)
    assert found["p_adjusted"].to_list() == pytest.approx([*least], rel=1e-12)
    is_beyond = [
        (mcc < 0.8 and p < 0.05) or (accuracy < 0.88 and q < 0.05)
        for mcc, accuracy, p, q in zip(
            found["mcc_high"], found["accuracy_high"], want[:8], want[8:], strict=True
        )
    ]
    assert (found["verdict"] == "fails").to_list() == is_beyond
    assert {*found["verdict"]} == {"fails", "not significant", "passes"}


MODELS = {"old": 0.93, "new": 0.8}


def test_slices_that_are_not_judged_count_as_no_test():
    log = COUNTS.mcc(weight="n")
    alone = COUNTS.filter(pl.col("key") != "small").mcc(weight="n")
    few = judged_by(log, "key", min=0.6, min_n=100, ci=0.95)
    assert (
        few["p_adjusted"].to_list()[:2]
        == judged_by(alone, "key", min=0.6, ci=0.95)["p_adjusted"].to_list()
    )
    assert few["p_adjusted"][2] is None
    bars = pl.DataFrame({"key": ["good", "poor"], "min": [0.6, 0.6]})
    assert judged_by(log, "key", min=bars, ci=0.95)["p_adjusted"].equals(few["p_adjusted"])


def test_with_a_level_a_slice_without_an_interval_is_not_judged():
    """One gold class, or one cluster: no model could do better, or nobody knows."""
    one_class = counts_of(good=[95, 5, 5, 95], one=[9, 1, 0, 0]).mcc(weight="n")
    found = one_class.check("key", min=0.2, ci=0.95)
    assert found["verdict"].to_list() == ["passes", "not judged"]
    with pytest.raises(polars_mcc.CheckError) as raised:
        one_class.check("key", min=0.999, ci=0.95)
    line, *_ = str(raised.value).splitlines()
    reason = "(1 not judged: no score, or not the gold labels that it needs)"
    assert line == f"1 of 1 slices fails: mcc below 0.999, significantly (ci=0.95) {reason}"
    rows = pl.DataFrame(
        {"gold": [0, 1] * 40, "pred": [0, 0, 1, 1] * 20, "key": [1] * 60 + [2] * 20}
    )
    rows = rows.with_columns(user=pl.when(pl.col("key") == 1).then(pl.int_range(pl.len()) % 9))
    with pytest.raises(polars_mcc.CheckError, match=r"\(1 not judged: no interval\)"):
        rows.mcc(cluster="user").check("key", min=0.9, ci=0.95)
    with pytest.raises(
        polars_mcc.CheckError, match="there is no slice to judge .1 not judged: no int"
    ):
        rows.filter(key=2).mcc(cluster="user").check(min=0.9, ci=0.95)


def test_a_slice_of_three_rows_does_not_fail():
    """Two labels of three are wrong, or all are one label."""
    wrong, one = [("a", "b"), ("b", "a"), ("b", "b")], [("a", "b"), ("b", "b"), ("b", "b")]
    log = labelled(fine=FINE * 20, wrong=wrong, one=one).mcc
    found = log.check("key", min=0.2, ci=0.95)
    assert found["verdict"][0] == "passes"
    assert "fails" not in found["verdict"]
    with pytest.raises(polars_mcc.CheckError, match="2 of 3 slices fail"):
        log.check("key", min=0.2)


def test_slices_that_miss_a_threshold_by_chance_are_told():
    with pytest.raises(polars_mcc.CheckError) as raised:
        COUNTS.mcc(weight="n").check("key", min=0.6, ci=0.95)
    line, *_ = str(raised.value).splitlines()
    told = "1 of 3 slices fails: mcc below 0.6, significantly (ci=0.95); "
    assert line == told + "1 more has mcc below 0.6, but not significantly"
    assert raised.value.judged["verdict"].to_list() == ["passes", "fails", "not significant"]
    passed = COUNTS.mcc(weight="n", positive="a").check(
        "key", min=0.45, max={"fnr": 0.2}, ci=0.999999
    )
    assert passed["verdict"].to_list() == ["passes", *["not significant"] * 2]
    assert passed["failed"].to_list() == [""] * 3


def test_a_correction_needs_a_level():
    log = COUNTS.mcc(weight="n")
    with pytest.raises(ValueError, match="correction='bh' needs a confidence level: pass ci=0.95"):
        log.check("key", min=0.1, correction="bh")
    with pytest.raises(ValueError, match="correction must be one of 'bh', .*, None, got 'fdr'"):
        log.check("key", min=0.1, correction="fdr", ci=0.9)
    assert log.check("key", min=0.1, correction=None).equals(log.check("key", min=0.1))
    assert "p_adjusted" not in log.check("key", min=0.1).columns


@pytest.mark.parametrize("ci", [None, 0.95])
def test_a_model_that_says_one_label_fails(ci):
    one = counts_of(one=[500, 0, 500, 0])
    with pytest.raises(polars_mcc.CheckError, match="1 of 1 slices fails: mcc below 0.1"):
        one.mcc(weight="n").check("key", min=0.1, ci=ci)


def test_no_rows_are_not_good_enough():
    with pytest.raises(polars_mcc.CheckError, match="there is no slice to judge"):
        COUNTS.head(0).mcc(weight="n").check("key", min=0.1)
    with pytest.raises(polars_mcc.CheckError, match="not judged: fewer than 1 rows"):
        COUNTS.head(0).mcc(weight="n").check(min=0.1)


BASELINE = counts_of(good=[96, 4, 5, 95], poor=[95, 5, 5, 95], gone=[9, 0, 0, 9])


def test_slices_worse_than_a_baseline_fail():
    with pytest.raises(polars_mcc.CheckError, match="2 of 2 slices fail: .* baseline") as raised:
        COUNTS.mcc(weight="n").check("key", no_worse_than=BASELINE)
    assert raised.value.failures["key"].to_list() == ["good", "poor"]
    verdicts = dict(raised.value.judged.select("key", "verdict").rows())
    assert (verdicts["gone"], verdicts["small"]) == ("not judged", "not judged")
    with pytest.raises(polars_mcc.CheckError) as surely:
        COUNTS.mcc(weight="n").check("key", no_worse_than=BASELINE.lazy(), ci=0.95)
    assert surely.value.failures["key"].to_list() == ["poor"]
    COUNTS.mcc(weight="n").check("key", no_worse_than=COUNTS)


def test_all_rows_are_one_slice():
    both = COUNTS.rename({"n": "w"}).with_columns(other="gold")
    baseline = both.mcc(pred=["pred", "other"], weight="w").counts()
    judged = both.mcc(pred=["pred", "other"], weight="w").check(no_worse_than=baseline)
    assert judged["diff"].to_list() == [0, 0]
    one = both.mcc(weight="w").check(no_worse_than=COUNTS)
    assert one.select("n_before", "n_after", "diff").rows() == [(408, 408, 0)]


def test_the_error_travels():
    with pytest.raises(polars_mcc.CheckError) as raised:
        COUNTS.mcc(weight="n").check("key", min=0.6)
    arrived = pickle.loads(pickle.dumps(raised.value))  # noqa: S301 - our own
    assert str(arrived) == str(raised.value)
    assert arrived.failures.equals(raised.value.failures)


def test_a_baseline_is_what_counts_gives():
    log = pl.DataFrame(
        {
            "day": [1, 2, 3, 4] * 10,
            "key": pl.Series(["x", "y"] * 20, dtype=pl.Enum(["x", "y"])),
            "gold": ["p", "q", "q", "p", "q"] * 8,
            "a": ["p", "q"] * 20,
            "b": ["p", "q", "q", "q"] * 10,
        }
    )
    week = (pl.col("day") // 2).alias("week")
    counts = log.mcc(pred=["a", "b"]).counts(week, "key")
    judged = log.mcc(pred=["a", "b"]).check(week, "key", no_worse_than=counts)
    assert judged.filter(pl.col("n_before") != pl.col("n_after")).is_empty()
    assert judged["diff"].to_list() == [0.0] * judged.height
    text = counts.with_columns(pl.col("key", "gold").cast(pl.String), pl.col("n").cast(pl.Float64))
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="no_worse_than is not the counts"):
        log.mcc(pred="a").check("key", no_worse_than=text.drop("n"))
    other = text.with_columns(pl.col("week").cast(pl.Int64))
    assert log.mcc(pred=["a", "b"]).check(week, "key", no_worse_than=other)["diff"].sum() == 0


KEYS = {
    "String": ["1", "2"],
    "Float64": [1.0, 2.0],
    "Int64": [1, 2],
    "Boolean": [True, False],
    "Date": [dt.date(2026, 1, 1), dt.date(2026, 1, 2)],
    "Datetime(time_unit='us', time_zone=None)": [dt.datetime(2026, 1, day) for day in (1, 2)],
    "Binary": [b"1", b"2"],
}


@in_turn(other=KEYS, own=KEYS)
def test_keys_of_a_baseline_are_of_the_kind_of_the_keys_of_the_log(own, other):
    """As text and as a number, 1.1 and 1.10 are other slices."""
    log, baseline = (
        pl.DataFrame(
            {"key": KEYS[one] * 20, "gold": [1, 0] * 10 + [0, 1] * 10, "pred": [1, 0] * 20}
        )
        for one in (own, other)
    )
    if own == other or {own, other} == {"Float64", "Int64"}:
        judged = log.mcc.check("key", no_worse_than=baseline.mcc.counts("key"), min_n=1)
        assert judged["verdict"].to_list() == ["passes"] * 2
        return
    told = f"key 'key' is {own} in the log but {other} in no_worse_than; cast one, as in pl.col('k"
    with pytest.raises(pl.exceptions.SchemaError, match=f"^{re.escape(told)}"):
        log.mcc.check(polars_mcc.each("key", total=True), no_worse_than=baseline.mcc.counts("key"))


PAIRED = {
    "accuracy": {},
    "mcc": {"sample_weight": "w"},
    "fnr": {"cluster": "user", "positive": True},
    "roc_auc": {"positive": True, "pred": None, "score": ["pred", "new", "own"]},
}


@pytest.mark.parametrize("metric", PAIRED)
def test_a_model_no_worse_than_another_on_the_same_rows_is_the_test_of_compare(metric):
    rng = np.random.default_rng(7)
    gold = np.tile([True, False], 1500)
    wrong = rng.random(3000) < 0.1
    worse = rng.random(3000) < np.repeat([0.0, 0.02, 0.25], 1000)
    columns = {"key": np.repeat(["a", "b", "c"], 1000), "gold": gold, "pred": gold ^ wrong}
    columns |= {"new": gold ^ (wrong | worse), "own": gold, "user": np.arange(3000) // 3}
    frame = pl.DataFrame(columns | {"w": np.arange(3000) % 4 + 1})
    if metric == "roc_auc":
        frame = frame.with_columns(pl.col("pred", "new", "own") * 0.6 + rng.random(3000) * 0.4)
    log = frame.mcc(**{"pred": ["pred", "new", "own"], **PAIRED[metric]})
    compared = log.compare("key", baseline="pred", metrics=metric)
    rows, p_values = compared.to_dicts(), []
    for row in rows:
        lost = (row["score"] - row["reference"]) * (-1 if metric == "fnr" else 1)
        p_values.append(row["p_value"] / 2 if lost < 0 else 1 - row["p_value"] / 2)
    order = sorted(range(6), key=p_values.__getitem__)
    adjusted, most = [0.0] * 6, 0.0
    for rank, place in enumerate(order):  # Holm (1979)
        adjusted[place] = most = max(most, min(1.0, p_values[place] * (6 - rank)))
    with pytest.raises(polars_mcc.CheckError, match=f"fail.?: {metric} .* pred, signif") as raised:
        log.check("key", metric=metric, no_worse_than="pred", ci=0.95)
    judged = raised.value.judged
    assert judged["p_adjusted"].to_list() == pytest.approx(adjusted, rel=1e-9)
    fails = [p < 0.05 for p in adjusted]
    assert (judged["verdict"] == "fails").to_list() == fails
    assert ("c", "new") in raised.value.failures.select("key", "model").rows()
    same = [name for name in judged.columns if name in compared.columns and name[0] != "p"]
    same.remove("verdict")
    assert_frame_equal(judged.select(same), compared.select(same))
    assert {"key", "model", "baseline", "n", "score", "reference", "diff_low"} < {*same}


def test_a_gate_that_passes_says_what_it_asked_and_how_much_it_judged(caplog):
    caplog.set_level("INFO", "polars_mcc")
    keys = ["a and b", None, "c"]
    tables = {"x": [40, 9, 9, 42], "y": [45, 5, 5, 45], "z": [20, 5, 5, 1200], "few": [0, 0, 0, 4]}
    named = pl.col("key").replace(dict(zip("xyz", keys, strict=True)))
    log = counts_of(**tables).with_columns(named, other="gold")

    def said(keys=("key",), **options):
        caplog.clear()
        described = log.mcc(weight="n", positive="b", pred=options.pop("pred", "pred"))
        described.check(*keys, **options)
        return [record.getMessage() for record in caplog.records]

    hits = [82, 90, 1220]
    accuracy = [hit / (hit + miss) for hit, miss in zip(hits, [18, 10, 10], strict=True)]
    low = '"a and b"'
    of_all = "passes, 3 slices, 1,430 rows"
    bar = pl.DataFrame({"key": keys, "min": [0.5, 0.89, 0.2]})
    cases = {
        f"lowest accuracy 0.820 of key = {low}, at least 0.8: {of_all}, 1 not judged": {
            "min": {"accuracy": 0.8},
            "min_n": 5,
        },
        "nearest accuracy 0.900 of key = null, at least 0.89: " + of_all + ", 1 not judged": {
            "min": bar,
            "metric": "accuracy",
        },
        f"accuracy {1396 / 1434:.3f}, at least 0.9: passes, 1 slice, 1,434 rows": {
            "keys": (),
            "min": {"accuracy": 0.9},
        },
        f"lowest accuracy minus pred 0.008 of key = c, at least 0: {of_all}, 1 not judged": {
            "no_worse_than": "pred",
            "metric": "accuracy",
            "pred": "other",
            "min_n": 5,
        },
    }
    assert accuracy == pytest.approx([0.82, 0.9, 1220 / 1230])
    for sentence, options in cases.items():
        told = said(**options)
        model = "other: " * ("no_worse_than" in options)
        assert told == [model + sentence]
    both = said(max={"fnr": 0.2, "fpr": 0.3}, pred=["pred", "other"], min_n=5)
    fnr, fpr = 9 / 51, 5 / 25
    assert both[:2] == [
        f"pred: highest fnr {fnr:.3f} of key = {low}, at most 0.2: {of_all}, 1 not judged",
        f"pred: highest fpr {fpr:.3f} of key = c, at most 0.3: {of_all}, 1 not judged",
    ]
    assert [" 0.000 of " in line and line[:7] == "other: " for line in both[2:]] == [True, True]
    sure = log.filter(key="c").mcc(weight="n").by("key", metrics="accuracy", ci=0.9).row(0)
    [told] = said(keys=(each("key"),), min={"accuracy": 0.99}, ci=0.9, min_n=1000)
    assert told.startswith(
        f"accuracy {sure[2]:.3f} ({sure[3]:.3f} to {sure[4]:.3f}), at least 0.99"
    )
    [told] = said(max_gap={"accuracy": 0.5})
    of_all = "passes, 3 groups, 1,430 rows"
    limits = r"0.172 \(0.0\d\d to 0.\d+\)"
    assert re.fullmatch(f"accuracy gap of key {limits}, at most 0.5: {of_all}", told)
    with pytest.raises(polars_mcc.CheckError):
        said(min=0.99)
    assert not caplog.records


def test_a_paired_gate_judges_as_other_gates():
    gold = [0, 1] * 20 + [0] * 40
    key = ["two"] * 40 + ["one"] * 40
    log = pl.DataFrame({"key": key, "gold": gold, "pred": 0, "new": [0, 1] * 40, "n": 1})
    judged = log.mcc(pred=["pred", "new"]).check("key", no_worse_than="pred")
    assert judged.select("key", "verdict").rows() == [("one", "not judged"), ("two", "passes")]
    with pytest.raises(polars_mcc.CheckError, match="1 of 1 slices fails: mcc below new or 0/0"):
        log.mcc.check("key", no_worse_than="new")
    with pytest.raises(polars_mcc.CheckError, match="2 not judged: fewer than 41 rows"):
        log.mcc.check("key", no_worse_than="new", min_n=41)
    for typed in ("nwe", "counts.parquet"):
        said = f"no model and no column '{typed}': no_worse_than takes a model of the log ('pred'),"
        with pytest.raises(ValueError, match=re.escape(said)):
            log.mcc.check("key", no_worse_than=typed)
    with pytest.raises(ValueError, match="there is no second model to compare"):
        log.mcc.check("key", no_worse_than="pred")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"no_worse_than": COUNTS.with_columns(model=pl.lit("one"))},
            ValueError,
            "no_worse_than has counts of several models, so it counts each row several times: use",
        ),
        ({}, ValueError, "check needs either min or max, such as min=0.6, or no_worse_than="),
        (
            {"min": 0.5, "no_worse_than": COUNTS},
            ValueError,
            "check needs either min or max, such as min=0.6, or no_worse_than=",
        ),
        ({"min": "0.5"}, TypeError, "min must be a number"),
        ({"max_gap": 0.5, "min": 0.5}, ValueError, "max_gap is checked alone: leave out min, max"),
        ({"max_gap": "0.5"}, TypeError, "max_gap must be a number"),
        ({"max_gap": {"accuracy": -0.5}}, ValueError, "max_gap={'accuracy': -0.5} is no width"),
        ({"max_gap": 0.5, "min_n": 0}, ValueError, "min_n must be an integer of at least 1"),
        ({"max_gap": 0.5, "ci": 95}, ValueError, "ci must be a confidence level"),
        ({"min": 0.5, "min_n": 0}, ValueError, "min_n must be an integer of at least 1"),
        ({"min": 0.5, "ci": 95}, ValueError, "ci must be a confidence level"),
        ({"no_worse_than": COUNTS, "ci": 95}, ValueError, "ci must be a confidence level"),
        ({"no_worse_than": COUNTS, "nulls": "keep"}, ValueError, "nulls must be one of"),
    ],
)
def test_what_cannot_be_checked(options, error, message):
    with pytest.raises(error, match=message):
        ask(COUNTS, "check", "key", weight="n", **options)


def of_rates(*rates: float, rows: int = 100) -> pl.DataFrame:
    """Counts of slices with these accuracies."""
    hits = [round(rate * rows) for rate in rates]
    right = pl.DataFrame({"key": [*range(len(rates))], "gold": 1, "pred": 1, "n": hits})
    return pl.concat([right, right.with_columns(pred=0, n=rows - pl.col("n"))])


def test_a_gap_that_is_too_wide_fails():
    log = of_rates(0.8, 0.9, 0.95).mcc(weight="n", positive=1)
    bounds = {"accuracy": 0.14, "tpr": 0.16}
    with pytest.raises(
        polars_mcc.CheckError, match="^1 of 2 gaps fails: gap of accuracy above 0.14\n"
    ) as one:
        log.check("key", max_gap=bounds)
    assert one.value.judged["verdict"].to_list() == ["fails", "passes"]
    assert one.value.failures["lowest"].to_list() == ["key = 0"]
    gaps = log.gaps("key", metrics=["accuracy", "tpr"])
    assert_frame_equal(one.value.judged.drop("max_gap", "verdict"), gaps.drop("verdict"))
    sure = log.check("key", max_gap=bounds, ci=0.95)
    assert sure["verdict"].to_list() == ["not significant", "passes"]
    assert log.check("key", max_gap=0.16, metric="accuracy")["max_gap"].to_list() == [0.16]
    low = gaps["diff_low"][0]
    assert 0 < low < 0.14
    judged = log.check("key", max_gap={"accuracy": low + 1e-9}, ci=0.95)
    assert judged["verdict"].to_list() == ["not significant"]
    with pytest.raises(polars_mcc.CheckError, match=r"significantly \(ci=0.95\)"):
        log.check("key", max_gap={"accuracy": low - 1e-9}, ci=0.95)


def test_a_gap_that_cannot_be_judged_is_no_pass():
    one = of_rates(0.8).lazy().mcc(weight="n")
    with pytest.raises(polars_mcc.CheckError, match="accuracy can be judged: fewer than two"):
        one.check("key", max_gap={"accuracy": 0.5})
    two = of_rates(0.8, 0.9).lazy().mcc(weight="n")
    assert two.check("key", max_gap={"accuracy": 0.5, "mcc": None}).height == 1
    with pytest.raises(polars_mcc.CheckError, match="no gap of accuracy can be judged"):
        two.check("key", max_gap={"accuracy": 0.5}, min_n=101)


def test_a_key_that_would_be_hidden():
    with pytest.raises(pl.exceptions.DuplicateError, match="key 'verdict' has the name"):
        COUNTS.rename({"key": "verdict"}).mcc(weight="n").check("verdict", min=0.5)


@pytest.mark.slow
def test_pytest_shows_the_table(tmp_path):
    (tmp_path / "test_model.py").write_text(
        "import polars as pl, polars_mcc\n"
        "def test_model():\n"
        "    log = pl.DataFrame({'gold': ['a', 'b'] * 9, 'pred': ['a', 'a', 'b'] * 6})\n"
        "    log.mcc.check(min=0.9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "CheckError: 1 of 1 slices fails: mcc below 0.9" in done.stdout
    assert "│ 18" in done.stdout


def test_several_metrics_each_with_its_threshold():
    counts = COUNTS.mcc(weight="n", positive="a")
    least, most = {"mcc": 0.3, "accuracy": 0.8}, {"fnr": 0.2}
    with pytest.raises(polars_mcc.CheckError) as raised:
        counts.check("key", min=least, max=most)
    judged = raised.value.judged
    assert judged.columns == ["key", "n", "mcc", "accuracy", "fnr", "n_null", "failed", "verdict"]
    assert judged["failed"].to_list() == ["", "accuracy, fnr", "accuracy, fnr"]
    line, *_ = str(raised.value).splitlines()
    assert line == "2 of 3 slices fail: accuracy below 0.8 (2), fnr above 0.2 (2)"
    with pytest.raises(polars_mcc.CheckError, match="fnr above 0.2, significantly") as raised:
        counts.check("key", max=0.2, metric="fnr", ci=0.95)
    sure = counts.by("key", metrics="fnr", ci=0.95).filter(pl.col("fnr_low") > 0.2)["key"]
    assert raised.value.failures["key"].to_list() == sure.to_list() == ["poor"]


def test_each_slice_has_its_own_threshold():
    bars = pl.DataFrame({"key": ["good", "poor"], "min": [0.95, 0.3]})
    with pytest.raises(
        polars_mcc.CheckError, match="1 of 2 slices fails: mcc below its min .1 not"
    ):
        COUNTS.mcc(weight="n").check("key", min=bars)
    lower = bars.with_columns(min=pl.col("min") - 0.1)
    judged = COUNTS.mcc(weight="n").check("key", min=lower)
    assert judged["verdict"].to_list() == ["passes", "passes", "not judged"]
    gone = pl.concat([lower, pl.DataFrame({"key": ["gone"], "min": [0.5]})])
    judged = COUNTS.mcc(weight="n").check("key", min=gone)
    assert dict(judged.select("key", "verdict").iter_rows())["gone"] == "not judged"
    of_metrics = {"mcc": bars, "accuracy": bars}
    with pytest.raises(TypeError, match="min must be a number"):
        COUNTS.mcc(weight="n").check("key", min=of_metrics)
    with pytest.raises(polars_mcc.CheckError, match=r"mcc above 0.1 .3.$|mcc above 0.1 .3.\n"):
        COUNTS.mcc(weight="n").check("key", min={"mcc": 0.2}, max={"mcc": 0.1})


def test_a_baseline_of_any_metric_the_right_way_round():
    counts = COUNTS.mcc(weight="n", positive="a")
    better = counts_of(good=[99, 1, 5, 95], poor=[60, 40, 30, 70], small=[3, 1, 1, 3])
    with pytest.raises(polars_mcc.CheckError, match="fnr above the baseline") as raised:
        counts.check("key", no_worse_than=better, metric="fnr")
    assert raised.value.failures["key"].to_list() == ["good"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min": 0.5, "metric": "fnr"}, "for 'fnr' less is better: pass a maximum, as in max=0.5"),
        ({"min": pl.DataFrame({"key": ["x"]})}, "min is a frame without a numeric column 'min'"),
        ({"min": pl.DataFrame({"key": ["x"], "min": ["0"]})}, "without a numeric column 'min'"),
        ({"min": pl.DataFrame({"kye": ["x"], "min": [0.1]})}, "keys of the slices, 'key', and a"),
        ({"min": pl.DataFrame({"key": ["x"] * 2, "min": [0.1] * 2})}, "several rows for one slice"),
        (
            {"min": pl.DataFrame({"key": [1], "min": [0.1]})},
            "'key' is Int64 in min, but String in the log",
        ),
        ({"min": {"nope": 0.5}}, "no metric 'nope'"),
    ],
)
def test_thresholds_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        COUNTS.mcc(weight="n", positive="a").check("key", **options)


@pytest.mark.parametrize("as_frame", [pl.DataFrame, pl.LazyFrame])
def test_a_positive_label_that_no_row_has_does_not_pass(as_frame):
    log = as_frame({"key": [1, 1, 2], "gold": ["no", "fraud", "no"], "pred": "no"})
    log.mcc(positive="fraud").check("key", max={"fpr": 0.5})
    message = "no scored row has the positive label 'Fraud' in 'gold', 'pred'; the labels are 'f"
    with pytest.raises(ValueError, match=message):
        log.mcc(positive="Fraud").check("key", max={"fpr": 0.5})
    known = pl.col("gold", "pred").cast(pl.Enum(["no", "fraud"]))
    log.filter(gold="no").with_columns(known).mcc(positive="fraud").check(max={"fpr": 0.5})


@pytest.mark.parametrize("as_frame", [pl.DataFrame, pl.LazyFrame])
def test_thresholds_by_slice_keep_the_order_of_slices(as_frame):
    keys = [*range(40)]
    log = as_frame({"key": keys * 2, "gold": [0] * 40 + [1] * 40, "pred": [0] * 40 + [1] * 40})
    described = log.with_columns(other="pred").mcc(pred=["pred", "other"])
    slices = described.by("key").lazy().collect().select("key", "model", min=0.5)
    gone = slices[:1].with_columns(key=pl.lit(-1, pl.Int64))
    judged = described.check("key", min=pl.concat([gone, slices.reverse()]))
    in_order = [*slices.select("key", "model").rows(), (-1, "pred")]
    assert judged.select("key", "model").rows() == in_order


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min": 70}, "min=70 is outside the range of mcc, [-1, 1]"),
        ({"min": {"accuracy": -0.1}}, "min=-0.1 is outside the range of accuracy, [0, 1]"),
        ({"max": {"fnr": 10}}, "max=10 is outside the range of fnr, [0, 1]"),
    ],
)
def test_a_threshold_outside_the_range_of_its_metric_is_an_error(options, message):
    COUNTS.mcc(weight="n").check("key", min={"mcc": None, "accuracy": 0.1})
    with pytest.raises(ValueError, match=re.escape(message)):
        COUNTS.mcc(weight="n", positive="a").check("key", **options)


AS_GIVEN = {
    "number": lambda _, number: number,
    "of a metric": lambda metric, number: {metric: number},
    "frame": lambda _, number: pl.DataFrame({"key": ["poor", "good"], "at": [None, number]}),
}


def most_hits(col):
    return col("hits").max().alias("most_hits")


@in_turn(
    bound=["min", "max"],
    given=AS_GIVEN,
    **{
        "metric, number, message": [
            ("mcc", 70, "is outside the range of mcc, [-1, 1]"),
            ("mcc", -1.5, "is outside the range of mcc, [-1, 1]"),
            ("accuracy", -0.1, "is outside the range of accuracy, [0, 1]"),
            ("chi2", -2, "is outside the range of chi2, [0, (K - 1)s]"),
            ("mcc", math.nan, "is no threshold for mcc: it must be finite"),
            ("chi2", math.inf, "is no threshold for chi2: it must be finite"),
            ("mcc", -math.inf, "is no threshold for mcc: it must be finite"),
            (most_hits, math.nan, "is no threshold for most_hits: it must be finite"),
        ]
    },
)
def test_a_threshold_is_checked_in_each_form(metric, number, message, bound, given):
    """NaN would pass any score, or none; so would 70 for 0.7."""
    limit = AS_GIVEN[given](metric, number)
    limit = limit.rename({"at": bound}) if isinstance(limit, pl.DataFrame) else limit
    with pytest.raises(ValueError, match=rf"^{bound}=.*{re.escape(message)}$"):
        COUNTS.mcc(weight="n").check("key", metric=metric, **{bound: limit})


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Float32, pl.Decimal(10, 3)])
def test_a_threshold_of_a_slice_is_checked_in_each_dtype(dtype):
    limits = pl.DataFrame({"key": ["good"], "max": [70]}, schema_overrides={"max": dtype})
    with pytest.raises(
        ValueError, match=re.escape("max=70.0 is outside the range of mcc, [-1, 1]")
    ):
        COUNTS.mcc(weight="n").check("key", max=limits)


SCORED = pl.DataFrame(
    {
        "gold": ["fraud", "ok", "ok", "fraud"],
        "p": [0.9, 0.2, 0.4, 0.3],
        "pred": ["fraud", *["ok"] * 3],
    }
)


@in_turn(
    bounds=[{"min": {"roc_auc": 0.1}}, {"max": {"brier": 0.9}}], columns=[{}, {"pred": "pred"}]
)
def test_a_gate_of_scores_knows_whether_the_positive_label_exists(columns, bounds):
    log = SCORED.mcc(score="p", **columns)
    assert log(positive="fraud").check(**bounds)["verdict"].to_list() == ["passes"]
    with pytest.raises(ValueError, match="no scored row has the positive label 'fruad'"):
        log(positive="fruad").check(**bounds)


@pytest.mark.parametrize("limits", [{"max": {"brier": 0.9}}, {"min": {"roc_auc": 0, "f1": 0}}])
def test_a_positive_label_of_scores_is_gold(limits):
    """All rows would be negative, so a loss would be small. A predicted label proves nothing."""
    gold, pred = ["fraud"] * 10 + ["ok"] * 90, ["Fraud"] * 10 + ["ok"] * 90
    log = pl.DataFrame({"gold": gold, "pred": pred, "p": [0.05] * 100})
    for models in ("pred", ["pred"]):
        both = log.mcc(pred=models, score="p", positive="Fraud")
        with pytest.raises(ValueError, match="no scored row has the positive label 'Fraud'"):
            both.check(**limits)


@pytest.mark.parametrize("role", ["score", "pred"])
def test_each_model_must_be_judged(role):
    """A model without any score or label was not tested."""
    log = pl.DataFrame({"gold": [True, False] * 50, "old": [0.9, 0.1] * 50, "new": [None] * 100})
    dtype, metric = {"score": (pl.Float64, "roc_auc"), "pred": (pl.Boolean, "accuracy")}[role]
    log = log.with_columns(pl.col("old").round().cast(dtype), pl.col("new").cast(dtype))
    with pytest.raises(polars_mcc.CheckError, match=f"no slice can be judged by {metric} of new"):
        log.mcc(**{role: ["old", "new"]}).check(metric=metric, min=0.5)
    log.mcc(**{role: ["old"]}).check(metric=metric, min=0.5)


def test_a_key_that_is_gold_leaves_no_area():
    log = pl.DataFrame({"gold": ["fraud"] * 50 + ["ok"] * 50, "p": [0.5] * 100})
    with pytest.raises(polars_mcc.CheckError, match="key 'gold' is the gold label"):
        log.mcc(score="p", positive="fraud").check("gold", min={"roc_auc": 0.5})


def test_a_gate_takes_metrics_of_labels_and_of_scores():
    log = SCORED.mcc(pred="pred", score="p", positive="fraud")
    judged = log.check(min={"roc_auc": 0.7, "tpr": 0.5, "mcc": 0.5}, max={"log_loss": 1.0})
    assert judged.select("roc_auc", "tpr", "log_loss", "verdict").row(0) == (
        0.75,
        0.5,
        pytest.approx(-sum(math.log(p) for p in (0.9, 0.8, 0.6, 0.3)) / 4, rel=1e-14),
        "passes",
    )
    with pytest.raises(polars_mcc.CheckError, match="roc_auc below 0.8"):
        log.check(min={"roc_auc": 0.8, "tpr": 0.5})


def test_counts_of_a_baseline_have_no_scores():
    log = SCORED.mcc(pred="pred", score="p", positive="fraud")
    counts = log.counts()
    with pytest.raises(ValueError, match="metric 'roc_auc' needs scores"):
        log.check(metric="roc_auc", no_worse_than=counts)


@pytest.mark.parametrize(
    ("metric", "gold"), [("recall", 0), ("fnr", 0), ("specificity", 1), ("fpr", 1)]
)
def test_a_rate_of_gold_rows_is_not_judged_without_them(metric, gold):
    """No model could change that. So the gate neither fails nor passes there."""
    both = pl.DataFrame({"key": "both", "gold": [1, 1, 0, 0], "pred": [1, 0, 0, 1]})
    one = pl.DataFrame({"key": "one", "gold": [gold] * 4, "pred": [gold] * 4})
    log = pl.concat([both, one]).mcc(positive=1)
    judged = log.check("key", max={metric: 1}, min_n=1)
    assert judged.select("key", "verdict").rows() == [("both", "passes"), ("one", "not judged")]


def test_slices_that_are_not_judged_say_why():
    """A threshold of a slice that is not in the log, and a slice without a threshold."""
    log = counts_of(one=[9, 1, 1, 9], two=[90, 1, 1, 90], other=[90, 1, 1, 90]).mcc(weight="n")
    own = pl.DataFrame({"key": ["gone", "away", "one"], "min": [0.1, 0.1, 0.1]})
    with pytest.raises(polars_mcc.CheckError) as raised:
        log.check("key", min=own, min_n=50)
    assert str(raised.value) == (
        "there is no slice to judge "
        "(5 not judged: not in the log (2), no min (2), fewer than 50 rows (1))"
    )
    with pytest.raises(polars_mcc.CheckError, match=r"\(1 not judged: not in the log\)"):
        log.check("key", min=pl.DataFrame({"key": ["one", "two", "other", "gone"], "min": 0.99}))


def labelled(**slices) -> pl.DataFrame:
    """A log with one slice per name, from (gold, pred) of its rows."""
    rows = [(key, gold, pred) for key, labels in slices.items() for gold, pred in labels]
    return pl.DataFrame(rows, schema=["key", "gold", "pred"], orient="row")


FINE = [("a", "a"), ("b", "b")] * 4
FILLS = [0.0, 1.0, -1.0, None, math.nan]
PRECISION_OF_A = (pl.col("precision").filter(pl.col("label") == "a").max()).alias("precision_of_a")


@in_turn(
    bound=[pytest.param({"min": 0}, id="min"), pytest.param({"max": 1}, id="max")],
    zero_division=FILLS,
    **{
        "metric, blind": [
            pytest.param(*("mcc", [("a", "b"), ("b", "b")]), id="mcc"),
            pytest.param(*("mcc_macro", [("a", "b"), ("b", "b")]), id="mcc_macro"),
            pytest.param(*("mcc_min_class", [("a", "b"), ("b", "b")]), id="mcc_min_class"),
            pytest.param(
                *("precision_weighted", [("a", "c"), ("b", "c")]), id="precision_weighted"
            ),
            pytest.param(*(PRECISION_OF_A, [("a", "b"), ("b", "b")]), id="expression"),
        ]
    },
)
def test_0_by_0_is_never_a_pass(metric, blind, bound, zero_division):
    log = labelled(fine=FINE, blind=blind).mcc(zero_division=zero_division)
    with pytest.raises(polars_mcc.CheckError, match="1 of 2 slices fails: .* or 0/0") as raised:
        log.check("key", metric=metric, **bound)
    assert raised.value.failures["key"].to_list() == ["blind"]


@in_turn(
    zero_division=FILLS,
    **{
        "bound, positive": [
            ({"max": {"fdr": 1}}, "a"),
            ({"min": {"precision": 0}}, "a"),
            ({"max": {"for": 1}}, "b"),
        ]
    },
)
def test_a_rate_of_predictions_at_0_by_0_is_never_a_pass(bound, positive, zero_division):
    """Where less is better, 1 - `zero_division` would be 0, the best."""
    log = labelled(fine=FINE, blind=[("a", "b"), ("b", "b")])
    with pytest.raises(polars_mcc.CheckError, match="1 of 2 slices fails: .* or 0/0") as raised:
        log.mcc(zero_division=zero_division, positive=positive).check("key", **bound)
    assert raised.value.failures["key"].to_list() == ["blind"]


@in_turn(
    3,
    zero_division=FILLS,
    **{
        "metric, score": [
            ("precision_macro", Fraction(1, 20)),
            ("precision_weighted", Fraction(1, 100)),
        ]
    },
)
def test_a_class_at_0_by_0_lifts_no_mean(metric, score, zero_division):
    """Of 90 rows with a and 10 with b, all are b: the precision of a is 0/0, that of b is 1/10."""
    log = labelled(one=[("a", "b")] * 90 + [("b", "b")] * 10).mcc(zero_division=zero_division)
    judged = log.check(metric=metric, min=float(score) - 1e-12)
    assert judged[metric].item() == pytest.approx(float(score), rel=1e-14)
    with pytest.raises(polars_mcc.CheckError, match=f"{metric} below 0.9"):
        log.check(metric=metric, min=0.9)
    of_interval = {"precision_macro": "fails", "precision_weighted": "not significant"}
    found = judged_by(log, metric=metric, min=0.9, ci=0.95)
    assert found["verdict"].to_list() == [of_interval[metric]]


@in_turn(metric=["mcc", "mcc_macro"], zero_division=FILLS)
def test_0_by_0_is_worse_than_any_baseline(metric, zero_division):
    poor = counts_of(key=[50, 51, 51, 50])  # below 0, and each class has a score
    blind = counts_of(key=[0, 100, 0, 100]).mcc(weight="n", zero_division=zero_division)
    with pytest.raises(polars_mcc.CheckError, match=f"{metric} below the baseline or 0/0"):
        blind.check("key", no_worse_than=poor, metric=metric)


def test_a_metric_of_a_user_that_is_nan_is_no_pass():
    """Nobody is predicted to be negative: the negative predictive value is 0 / 0."""
    log = labelled(fine=FINE, blind=[("a", "b"), ("b", "b")]).mcc
    hits = pl.col("hits") / pl.col("predicted")
    own = hits.filter(pl.col("label") == "a").sum().alias("own")
    with pytest.raises(polars_mcc.CheckError, match="1 of 2 slices fails: own below 0 or 0/0"):
        log.check("key", metric=own, min=0)


@pytest.mark.parametrize("number", [np.float32, np.float64, np.float16, float])
def test_numbers_of_numpy_are_numbers(number):
    log = labelled(fine=FINE).mcc
    judged = log.check(min=number(0.5), min_n=np.int64(3), ci=number(0.9375))
    assert judged.equals(log.check(min=0.5, min_n=3, ci=0.9375))
    assert log.check(max={"mcc": number(1), "accuracy": np.int8(1)}).height == 1
    with pytest.raises(ValueError, match="min_n must be an integer of at least 1, got True"):
        log.check(min=0, min_n=True)


def test_thirty_healthy_nights_are_quiet_and_a_bad_slice_is_found():
    """41 slices of 3 to 600 rows; one row in ten is of the rare class. Each slice has a p-value."""
    nights = healthy_gates.tried("2, 90:10", 0.95, "41 slices", 30, np.random.default_rng(5))
    assert nights["below"].sum() <= 1
    assert nights["at"].sum() <= 2
    assert nights["found"].all()
    assert nights["uncorrected"].sum() > 2


def test_a_gate_of_one_night_fails_as_nights_that_are_corrected_one_by_one():
    """So the benchmark may ask for all nights at once."""
    table = healthy_gates.probabilities([0.5, 0.5], 0.8)
    rng = np.random.default_rng(3)
    counts = healthy_gates.counted(healthy_gates.drawn(table, [300, 100, 30], 6, rng))
    every = healthy_gates.failing(counts, min=0.66).filter("corrected")["night"]
    each = {
        night
        for (night,), rows in counts.group_by("night")
        if "fails" in healthy_gates.judged(rows, "key", min=0.66)["verdict"]
    }
    assert {*every} == each
    assert 0 < len(each) < 6


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    "gate",
    [
        {"max_gap": {"selection_rate": 0.05}},
        {"max_gap": {"fpr": 0.05}, "ci": 0.95},
        {"max_gap": {"tnr": 0.05}},
        {"max_gap": {"ppv": 0.05}},
        {"min_ratio": {"selection_rate": 0.8}},
    ],
    ids=str,
)
def test_a_gap_of_a_positive_label_that_no_row_has_is_refused(gate, lazy):
    log = pl.DataFrame({"gold": ["yes", "no"] * 80, "pred": ["yes"] * 100 + ["no"] * 60})
    log = log.with_columns(key=pl.int_range(pl.len()) < 80)
    log = log.lazy() if lazy else log
    with pytest.raises(ValueError, match="no scored row has the positive label 'Yes'"):
        log.mcc(positive="Yes").check("key", **gate)
    with contextlib.suppress(polars_mcc.CheckError):
        log.mcc(positive="yes").check("key", **gate)


def test_a_gap_of_labels_that_never_meet_is_refused():
    log = pl.DataFrame({"gold": ["yes", "no"] * 80, "pred": ["Y", "N"] * 80, "key": [1, 2] * 80})
    with pytest.raises(ValueError, match="label"):
        log.mcc.check("key", max_gap={"accuracy": 0.05})

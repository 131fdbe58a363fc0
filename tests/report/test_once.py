"""A report counts the log once. The counts give the same report as the rows."""

from __future__ import annotations

import functools
import itertools
import json
import math
import re

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support import first

import polars_mcc
from polars_mcc import each, rollup, trailing
from polars_mcc._frame.log_options import Described
from polars_mcc._report import keys_counted_once
from polars_mcc._report.report_data import ReportSettings
from polars_mcc._report.write_report import write_report

N = 600
I = pl.int_range(N)  # noqa: E741
LOG = pl.select(
    gold=pl.when(I % 50 > 0).then(I * I % 3),
    pred=pl.when(I % 41 > 0).then((I * I + (I % 7 == 0).cast(pl.Int64)) % 3),
    other=(I * I + (I % 5 == 0).cast(pl.Int64)) % 3,
    country=pl.lit(pl.Series(["DE", None, "FR", "IT"])).gather(I.hash() % 4),
    device=I.hash(1) % 3,
    day=pl.date(2026, 3, 1) + pl.duration(days=I.hash(2) % 28),
    user=I // 5 % 60,
    times=pl.when(I % 60 > 0).then(I % 4),
    importance=(I % 5 + 1) / 2,
    sure=pl.when(I % 47 > 0).then(I.hash(3) % 101 / 100).otherwise(float("nan")),
)
BOTH = ["pred", "other"]
DEVICE = (pl.col("device") > 0).alias("Device is large")
QUESTIONS = {
    "plain": ({}, ["country", "device"]),
    "two models": ({"pred": BOTH}, ["country", "device"]),
    "no keys": ({"pred": BOTH}, []),
    "frequencies": ({"pred": BOTH, "weight": "times"}, ["country", "device"]),
    "float weights": ({"weight": "importance"}, ["country"]),
    "importances": ({"pred": BOTH, "sample_weight": "importance"}, ["country"]),
    "clusters": ({"pred": BOTH, "cluster": "user"}, ["country"]),
    "null labels": ({"pred": BOTH, "nulls": "label"}, ["country"]),
    "expressions": ({"pred": [pl.col("pred").alias("a b"), "other"]}, [DEVICE, "country"]),
    "sets and windows": ({"pred": BOTH}, [rollup("country", "device"), trailing("day", "7d")]),
    "each": ({}, [each("country", "device"), "day"]),
    "a key that is a label": ({"pred": BOTH}, ["gold", "other"]),
}


def told(log, *keys, **options) -> dict:
    """A report as JSON, without the slices of pairs of keys: only counts give these."""
    found = json.loads(log.report(*keys, format="json", **options))
    del found["made"]
    for part, id_ in (("sections", "id"), ("verdict", "section")):
        found[part] = [one for one in found[part] if one[id_] != "compared:pairs of keys"]
    for sentence in found["verdict"]:
        if sentence["kind"] == "comparison":
            sentence["text"] = re.sub(r", and it is .*? of \d+ slices.*", "", sentence["text"])
    return found


def assert_same(one, other) -> None:
    """Assert that two JSON values are equal, up to rounding of floats."""
    if isinstance(one, dict):
        assert {*one} == {*other}
        for name, value in one.items():
            assert_same(value, other[name])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for each_one, each_other in zip(one, other, strict=True):
            assert_same(each_one, each_other)
    elif isinstance(one, float) and isinstance(other, float):
        assert math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    else:
        assert one == other


SIZES = itertools.cycle([20, 200, 500])
CASES = [(name, most) for name in QUESTIONS for most in (0, next(SIZES))]


@pytest.mark.parametrize("case", first(2, sorted(CASES, key=lambda case: case[0] != "frequencies")))
def test_counts_tell_what_the_rows_tell(case, monkeypatch):
    """Of at most 0 counts, the rows tell; of a few more, only some of the keys fit."""
    name, most = case
    columns, keys = QUESTIONS[name]
    from_counts = told_by_counts(name)
    monkeypatch.setattr(keys_counted_once, "_MAX_COUNTS", most)
    assert_same(from_counts, told(LOG.mcc(**columns), *keys))


@functools.cache
def told_by_counts(name: str) -> dict:
    columns, keys = QUESTIONS[name]
    return told(LOG.mcc(**columns), *keys)


@pytest.mark.parametrize(
    ("columns", "asked"),
    first(
        1,
        [
            ({"pred": BOTH, "weight": "times"}, ["rows", "counts"]),
            (
                {"pred": "pred", "score": "sure", "positive": 1},
                ["rows", "counts", "scores", "scores", "calibration"],
            ),
            (
                {"pred": BOTH, "cluster": "user"},
                ["rows", "counts", "scores", "worst slices", "models"],
            ),
            *(
                pytest.param(*more, marks=pytest.mark.slow)
                for more in (
                    ({"pred": BOTH}, ["rows", "counts"]),
                    ({"cluster": "user"}, ["rows", "counts", "scores", "worst slices"]),
                    ({"pred": "pred", "score": "sure"}, ["rows", "counts"]),
                    (
                        {"pred": "pred", "score": "user", "positive": 1},
                        ["rows", "counts", "scores", "scores"],
                    ),
                )
            ),
        ],
        of_several=True,
    ),
)
def test_the_log_is_read_once(columns, asked):
    log = LOG.lazy().mcc(**columns)
    collected = []

    def collect(about, query):
        collected.append(about)
        return query(log.frame).collect()

    settings = ReportSettings("mcc", 0.95, 2, 30, "", "md")
    write_report(log, ["country", "device"], collect, settings)
    assert collected == asked


def test_counts_are_a_log_of_fewer_rows():
    log = polars_mcc.PredictionLog(LOG, pred=BOTH, weight="times")
    found = keys_counted_once.count_once(
        log, {"country": "country"}, lambda _, query: query(LOG.lazy()).collect()
    )
    assert isinstance(found.counts, Described)
    assert found.counts.frame.height < LOG.height / 2
    assert_frame_equal(found.counts.by("country"), log.by("country"))
    assert found.counts.frame["polars_mcc:n"].null_count() == LOG["times"].null_count()


def test_how_many_counts_there_would_be_is_told_before(monkeypatch):
    """An estimate gives the number within 20 %. All groups are never held at once."""
    monkeypatch.setattr(keys_counted_once, "_MAX_COUNTS", 100)
    log = pl.select(key=pl.int_range(100_000) % 20_000, gold=0, pred=0)
    numbers = []

    def collect(about, query):
        answer = query(log.lazy()).collect()
        if about == "number of counts":
            numbers.append(answer.item())
        return answer

    found = keys_counted_once.count_once(log.mcc, {"key": "key"}, collect)
    assert numbers[0] == pytest.approx(20_000, rel=0.2)
    assert [*found.keys] == []
    assert found.counts is not None, "the labels alone are few"


def test_a_key_may_have_any_name_also_beside_weights():
    names = {"country": "rows", "device": "weight"}
    log = LOG.rename(names).mcc(weight="times")
    report = told(log, "rows", "weight")
    rows = next(section["rows"] for section in report["sections"] if section["id"] == "by:rows")
    by = LOG.mcc(weight="times").by("country", metrics=["mcc"])
    assert {(row["rows"], row["n"]) for row in rows} == {*by.select("country", "n").iter_rows()}


def test_a_report_compares_slices_by_a_metric_of_labels():
    log = pl.DataFrame({"gold": [True, False], "pred": [True, False], "p": [0.9, 0.2]})
    with pytest.raises(ValueError, match="'roc_auc' is of scores; leave it out"):
        log.mcc(pred="pred", score="p").report(metrics="roc_auc")

"""The command line: verbs on files, formats, options and error messages."""

from __future__ import annotations

import datetime as dt
import gzip
import html
import inspect
import io
import json
import logging
import pathlib
import re
import shutil
import subprocess
import sys
import typing
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from runner import invoke
from support import first, in_turn, on_posix, some_slow

import polars_mcc
from polars_mcc import cube, each, rollup, sets, trailing
from polars_mcc._cli.app_and_answers import app
from polars_mcc._keys.any_key import WORDS, Key, of_column, word

INF, NAN = float("inf"), float("nan")
ROWS = pl.DataFrame(
    {
        "country": ["DE", "DE", "FR", "FR"],
        "gold": ["u", "v", "u", "v"],
        "pred": ["u", "v", "u", "u"],
        "other": ["u", "u", "u", None],
        "n": [3, 1, 1, 1],
    }
)


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """A hive-partitioned log of two days, at logs/ in the working directory."""
    monkeypatch.chdir(tmp_path)
    for day in ("2026-01-01", "2026-01-02"):
        (tmp_path / f"logs/day={day}").mkdir(parents=True)
        ROWS.write_parquet(tmp_path / f"logs/day={day}/part.parquet")
    return tmp_path / "logs"


def polars_mcc_by(*arguments: str):
    return invoke("by", *arguments)


def answer_of(*arguments: str) -> pl.DataFrame:
    done = polars_mcc_by(*arguments, "--out", "answer.parquet")
    assert done.exit_code == 0, done.output
    return pl.read_parquet("answer.parquet")


def refusal_of(*arguments: str, out: str = "answer.csv") -> str:
    done = polars_mcc_by(*arguments, "--out", out)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("polars-mcc: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize(
    "paths",
    first(
        4,
        [
            ["logs"],
            ["logs/"],
            ["logs/**/*.parquet"],
            ["logs/day=*"],
            ["logs/**"],
            ["logs", "logs/day=2026-01-01", "./logs/day=2026-01-01/part.parquet"],
            ["logs/day=2026-01-01", "logs/day=2026-01-02/part.parquet"],
        ],
    ),
    ids=str,
)
@pytest.mark.usefixtures("logs")
def test_files_folders_and_globs(paths):
    log = pl.scan_parquet("logs")
    expected = log.collect().mcc.by("day", "country")
    assert_frame_equal(answer_of(*paths, "--by", "day", "--by", "country"), expected)
    assert_frame_equal(answer_of(*paths), log.collect().mcc.score())


@pytest.mark.usefixtures("logs")
def test_options_are_those_of_the_function():
    log = pl.scan_parquet("logs").collect()
    assert_frame_equal(
        answer_of("logs", "--by", "country", "--pred", "pred", "--pred", "other"),
        log.mcc(pred=["pred", "other"]).by("country"),
    )
    assert_frame_equal(
        answer_of("logs", "--gold", "other", "--pred", "gold", "--weight", "n", "--nulls", "label"),
        log.mcc(gold="other", pred="gold", weight="n", nulls="label").score(),
    )
    assert_frame_equal(
        answer_of("logs", "--filter", "day > DATE '2026-01-01' AND country = 'FR'"),
        log.filter(pl.col("day") > pl.date(2026, 1, 1), pl.col("country") == "FR").mcc.score(),
    )


@pytest.mark.usefixtures("logs")
def test_the_table_is_printed_whole():
    done = polars_mcc_by("logs", "--by", "country")
    assert done.exit_code == 0
    assert re.search(r"│ DE +┆ 4 +┆ 1.0 +┆ 0 +│", done.stdout)
    many = pl.DataFrame({"key": [f"slice {i:03}" for i in range(200)], "gold": 1, "pred": 1})
    many.write_parquet("many.parquet")
    done = polars_mcc_by("many.parquet", "--by", "key")
    assert all(f"slice {i:03}" in done.stdout for i in range(200))


@pytest.mark.usefixtures("logs")
def test_intervals():
    options = ("--by", "country", "--pred", "other", "--ci", "0.9", "--method", "fisher")
    log = pl.read_parquet("logs", hive_partitioning=True)
    expected = log.mcc(pred="other", cluster="day").by("country", ci=0.9, method="fisher")
    assert_frame_equal(answer_of("logs", *options, "--cluster", "day"), expected)
    assert "needs a confidence level: pass --ci 0.95 too" in refusal_of("logs", "--method", "wald")
    assert "ci must be a confidence level" in refusal_of("logs", "--ci", "95")
    assert "no column 'dya' for cluster; did you mean" in refusal_of(
        "logs", "--ci", "0.9", "--cluster", "dya"
    )


@pytest.mark.usefixtures("logs")
def test_metrics():
    log = pl.read_parquet("logs", hive_partitioning=True)
    options = ("--by", "country", "--metric", "accuracy", "--metric", "tpr", "--positive", "a")
    expected = log.mcc(positive="a").by("country", metrics=["accuracy", "tpr"])
    assert_frame_equal(answer_of("logs", *options), expected)
    listed = invoke("metrics")
    assert listed.exit_code == 0, listed.output
    assert all(name in listed.stdout for name in polars_mcc.metrics()["metric"])
    assert "did you mean 'accuracy'" in refusal_of("logs", "--metric", "acuracy")
    assert "say which label is positive" in refusal_of("logs", "--metric", "tpr")


def test_a_positive_label_in_the_dtype_of_gold(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for gold in ([1, 2], [[1], [1, 2]]):
        log = pl.DataFrame({"gold": gold, "pred": gold})
        log.write_parquet("log.parquet")
        found = answer_of("log.parquet", "--metric", "tp", "--positive", "1")
        assert_frame_equal(found, log.mcc(positive=1).score(metrics="tp"))
    refusal = refusal_of("log.parquet", "--metric", "tp", "--positive", "x")
    assert "--positive 'x' is not a label: column 'gold' (gold) is Int64" in refusal


BERLIN = dt.timezone(dt.timedelta(hours=1))
TYPED = {
    "date": (["2026-03-01", "2026-03-02"], [dt.date(2026, 3, 1), dt.date(2026, 3, 2)], pl.Date()),
    **{
        f"datetime {unit}": (
            ["2026-03-01 12:00", "2026-03-02"],
            [dt.datetime(2026, 3, 1, 12), dt.datetime(2026, 3, 2)],
            pl.Datetime(unit),
        )
        for unit in ("ms", "us", "ns")
    },
    "datetime of a zone": (
        ["2026-03-01T12:00:00+01:00", "2026-03-02 13:00"],
        [dt.datetime(2026, 3, 1, 12, tzinfo=BERLIN), dt.datetime(2026, 3, 2, 13, tzinfo=BERLIN)],
        pl.Datetime("us", "Europe/Berlin"),
    ),
    "time": (["09:30", "12:00:05"], [dt.time(9, 30), dt.time(12, 0, 5)], pl.Time()),
    "Boolean": (["true", "False"], [True, False], pl.Boolean()),
    "Boolean as number": (["1", "0"], [True, False], pl.Boolean()),
    "integer as Boolean": (["true", "false"], [1, 0], pl.Int8()),
    "decimal": (["1.10", "2.5"], [Decimal("1.1"), Decimal("2.5")], pl.Decimal(5, 2)),
    "float": (["0.1", "2"], [0.1, 2.0], pl.Float32()),
    "wide integer": (
        ["170141183460469231731687303715884105727", "-1"],
        [2**127 - 1, -1],
        pl.Int128(),
    ),
    "enum": (["1", "true"], ["1", "true"], pl.Enum(["true", "1"])),
    "text": (["1", "true"], ["1", "true"], pl.String()),
}


@pytest.mark.parametrize("kind", first(2, TYPED))
def test_labels_and_keys_are_typed_in_their_dtype(kind, tmp_path, monkeypatch):
    """The first value is gold in rows 0, 1, 2 and predicted in rows 1, 2, 3, 4."""
    monkeypatch.chdir(tmp_path)
    (first, second), (a, b), dtype = TYPED[kind]
    gold = pl.Series([a, a, a, b, b, b], dtype=dtype)
    pl.DataFrame({"gold": gold, "pred": pl.Series([b, a, a, a, a, b], dtype=dtype)}).write_parquet(
        "log.parquet"
    )
    counts = ["--metric", "tp", "--metric", "fp", "--metric", "fn"]
    for text, expected in ((first, (2, 2, 1)), (second, (1, 1, 2))):
        found = answer_of("log.parquet", *counts, "--positive", text)
        assert found["tp", "fp", "fn"].row(0) == expected
    matrix = answered("confusion", "log.parquet", "--labels", second, "--labels", first)
    assert matrix.select(pl.nth(1, 2)).rows() == [(1, 2), (1, 2)]
    to = answered("contrast", "log.parquet", "--by", "pred", "--to", f"pred={first}")
    assert to["pred", "n", "n_reference"].rows() == [(b, 2, 4)]


@pytest.mark.parametrize(
    ("dtype", "text", "example"),
    [
        (pl.Date(), "03/01/2026", ", as in 2026-03-01"),
        (pl.Datetime(), "2026-03-01T12:00:00Z", ", as in '2026-03-01 12:00'"),
        (pl.Datetime("us", "UTC"), "x", ", as in '2026-03-01 12:00'"),
        (pl.Time(), "noon", ", as in 12:00"),
        (pl.Boolean(), "2", " (true or false)"),
        (pl.Decimal(5, 2), "1.234", ""),
        (pl.UInt8(), "300", ""),
        (pl.Enum(["u"]), "v", ""),
    ],
    ids=str,
)
def test_text_that_is_no_label(dtype, text, example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(schema={"gold": dtype, "pred": dtype}).write_parquet("log.parquet")
    told = refusal_of("log.parquet", "--metric", "tp", "--positive", text)
    assert told.endswith(
        f"--positive '{text}' is not a label: column 'gold' (gold) is {dtype}{example}\n"
    )
    done = invoke("confusion", "log.parquet", "--labels", text)
    assert f"--labels '{text}' is not a label" in done.stderr
    done = invoke("contrast", "log.parquet", "--by", "pred", "--to", f"pred={text}")
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"key 'pred' is {dtype} and cannot have this value" in done.stderr


@pytest.mark.slow
def test_a_positive_label_beside_a_comparison(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = pl.DataFrame({"gold": [0, 1, 1, 0, 1], "p": [0.9, 0.8, 0.2, 0.1, 0.5]})
    log.write_csv("log.csv")
    log.write_parquet("log.parquet")
    for file in ("log.csv", "log.parquet"):
        for positive, expected in {"1": (2, 1, 1), "true": (2, 1, 1), "0": (1, 1, 1)}.items():
            counts = ["--metric", "tp", "--metric", "fp", "--metric", "fn"]
            found = answer_of(file, "--pred", "p >= 0.5", "--positive", positive, *counts)
            assert found["tp", "fp", "fn"].row(0) == expected


@pytest.mark.usefixtures("logs")
def test_compare():
    command = ["compare", "logs", "--pred", "pred", "--pred", "other", "--by", "country"]
    done = invoke(*command, "--correction", "holm", "--out", "a.parquet")
    assert done.exit_code == 0, done.output
    log = pl.read_parquet("logs")
    expected = log.mcc(pred=["pred", "other"]).compare("country", correction="holm")
    assert_frame_equal(pl.read_parquet("a.parquet"), expected)
    both = invoke(*command, "--pred", "gold", "--weight", "n")
    assert both.exit_code == 0, both.output
    assert "p_adjusted" in both.stdout
    assert both.stdout.count("gold") == 2
    beside = invoke(*command[:4], "--baseline", "other", "--by", "country", "--out", "b.parquet")
    assert beside.exit_code == 0, beside.output
    expected = log.mcc(pred="pred").compare("country", baseline="other")
    assert_frame_equal(pl.read_parquet("b.parquet"), expected)
    refused = invoke(*command[:4])
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith("polars-mcc: logs: there is no second model to compare")


def answered(*arguments: str) -> pl.DataFrame:
    done = invoke(*arguments, "--out", "a.parquet")
    assert done.exit_code == 0, done.output
    return pl.read_parquet("a.parquet")


@pytest.mark.usefixtures("logs")
def test_sets_and_windows():
    log = pl.read_parquet("logs", hive_partitioning=True)
    assert_frame_equal(
        answer_of("logs", "--by", "each(country, total=True)", "--long"),
        log.mcc.by(each("country", total=True), long=True),
    )
    assert_frame_equal(
        answer_of("logs", "--by", "cube(country, day)"),
        log.mcc.by(cube("country", "day")),
    )
    assert_frame_equal(
        answer_of("logs", "--by", "country", "--by", "trailing(day, '2d', every='1d')"),
        log.mcc.by("country", trailing("day", "2d", every="1d")),
    )
    computed = log.with_columns(FR=pl.col("country") == "FR", odd=pl.col("n") % 2)
    assert_frame_equal(
        answer_of("logs", "--by", """sets((country, "n % 2 AS odd"), "n % 2 AS odd", ())"""),
        computed.mcc.by(sets(("country", "odd"), "odd", ())),
    )
    assert_frame_equal(
        answer_of("logs", "--by", """each("country = 'FR' AS FR")""", "--by", "rollup(country)"),
        computed.mcc.by(each("FR"), rollup("country")),
    )


@pytest.mark.usefixtures("logs")
def test_a_new_kind_of_key_needs_no_edit_of_the_command(monkeypatch):
    @dataclass(frozen=True)
    class IsOver(Key):
        column: str
        least: int
        stands_for = "column"

        def made(self, schema):
            return of_column(schema, (pl.col(self.column) > self.least).alias("is over"))

    monkeypatch.setitem(WORDS, "is_over", None)  # It is gone after the test.

    @word("is_over(n, 1)", of_one=True)
    def is_over(column, least):
        return IsOver(column, least)

    log = pl.read_parquet("logs")
    for typed, key in (("is_over(n, 1)", is_over("n", 1)), ("each(is_over(n, 1))", None)):
        assert_frame_equal(
            answer_of("logs", "--by", typed), log.mcc.by(key or each(is_over("n", 1)))
        )


@pytest.mark.parametrize(
    "key",
    [
        "each(country",
        "each(country = 'FR')",
        "each(1)",
        "trailing(day, 2d)",
        "each(day)(x)",
        "trailing((day,), '7d')",
        "each((country, day))",
    ],
)
@pytest.mark.usefixtures("logs")
def test_sets_that_are_not_understood(key):
    told = refusal_of("logs", "--by", key)
    assert f"--by {key!r} is not valid: write it as in Python" in told


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A log whose slice k = 1 is bad, of 400 rows, at log.parquet."""
    monkeypatch.chdir(tmp_path)
    place = pl.int_range(400)
    log = pl.select(
        k=place % 4, j=place % 3, day=pl.date(2026, 1, 1) + pl.duration(days=place // 200)
    )
    is_gold = place // 12 % 2 == 0
    is_wrong = (pl.col("k") == 1) & (place % 5 < 2) | (place % 50 == 0)
    log = log.with_columns(gold=is_gold).with_columns(pred=is_wrong != is_gold, score=place % 17)
    log.write_parquet("log.parquet")
    return log


def test_worst(planted):
    options = ("--by", "k", "--by", "j", "--top", "1", "--rank", "gap", "--long")
    found = answered("worst", "log.parquet", *options)
    assert_frame_equal(found, planted.mcc.worst("k", "j", top=1, rank="gap", long=True))
    assert found.select("slice", "keys").rows() == [("k = 1", "k")]
    found = answered("worst", "log.parquet", "--by", "k", "--bins", "none", "--verdicts")
    assert_frame_equal(found, planted.mcc.worst("k", bins=None, verdicts=True))
    done = invoke("worst", "log.parquet", "--by", "k", "--by", "j", "--long")
    assert "19 slices tested: 1 is worse than the rest of the log; 3 more only " in done.stderr
    done = invoke("worst", "log.parquet", "--by", "k", "--filter", "k <> 1")
    assert (done.exit_code, "shape: (0, " in done.stdout) == (0, True)
    nearest = r"none is worse than the rest of the log\. Nearest: k = \d \(n 100, mcc 0\.\d+, rest "
    assert re.search(nearest, done.stderr)
    none = answered("worst", "log.parquet", "--by", "k", "--filter", "k <> 1")
    assert_frame_equal(none, planted.mcc.worst("k").clear())
    done = invoke("worst", "log.parquet", "--by", "k", "--filter", "k <> 1", "--format", "json")
    assert (done.exit_code, json.loads(done.stdout)) == (0, [])
    done = invoke("worst", "log.parquet", "--by", "k", "--pred", "pred", "--pred", "gold")
    nearest = "1 is worse than the rest of the log. Nearest: k = 0 (gold) (n 100, mcc 1.000, rest "
    assert nearest in done.stderr
    assert "shape: (1, " in done.stdout
    done = invoke("worst", "log.parquet", "--by", "k", "--filter", "k = 9")
    assert "No slice was tested" in done.stderr
    pred = "CASE WHEN k < 3 AND j > 0 THEN NOT gold ELSE gold END AS pred"
    options = ("--by", "k", "--pred", pred, "--top")
    done = invoke("worst", "log.parquet", *options, "1")
    assert "shape: (1, " in done.stdout
    behind = re.search(r"slices tested: (\d+) are worse than the rest of the log\.", done.stderr)
    assert int(behind[1]) > 1, "all that are behind, and not those that are shown"
    done = invoke("worst", "log.parquet", *options, "0")
    assert "top must be an integer of at least 1, got 0" in done.stderr
    done = invoke("worst", "log.parquet", "--by", "k", "--depth", "0")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "depth must be an integer of at least 1, got 0" in done.stderr


def test_drift(planted):
    periods = ("--before", "day = DATE '2026-01-01'", "--after", "day > DATE '2026-01-01'")
    found = answered("drift", "log.parquet", *periods, "--by", "k")
    first = pl.date(2026, 1, 1)
    assert_frame_equal(
        found, planted.mcc.drift("k", before=pl.col("day") == first, after=pl.col("day") > first)
    )
    done = invoke("drift", "log.parquet", "--before", "day ==", "--after", "k")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--before 'day ==' is neither a column nor SQL that Polars accepts" in done.stderr


def test_curve(planted):
    found = answered("curve", "log.parquet", "--score", "score", "--by", "k", "--thresholds", "5")
    assert_frame_equal(found, planted.mcc(score="score").curve("k", thresholds=5))
    listed = ("--thresholds", "0.5", "--thresholds", "7", "--score", "score")
    found = answered("curve", "log.parquet", *listed)
    assert_frame_equal(found, planted.mcc(score="score").curve(thresholds=[0.5, 7]))
    of_j = ("--gold", "j", "--positive", "2", "--score", "score")
    best = answered("best-threshold", "log.parquet", *of_j)
    assert_frame_equal(best, planted.mcc(gold="j", positive=2, score="score").best_threshold())
    done = invoke("curve", "log.parquet", "--gold", "j", "--score", "score", "--positive", "x")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--positive 'x' is not a label: column 'j' (gold) is Int64" in done.stderr
    done = invoke("curve", "log.parquet")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "this log has no score: say which column" in done.stderr


def test_a_cut_has_all_digits_that_are_typed(tmp_path):
    whole = [2**53, 2**53 + 1, 2**53 + 2]
    log = pl.DataFrame({"gold": [True, True, False], "pred": True, "whole": whole})
    tenth = [Decimal("0.10000000000000000001"), Decimal("0.1"), Decimal("0.2")]
    log = log.with_columns(tenth=pl.Series(tenth), f=pl.Series([0.1, 0.2, 0.7], dtype=pl.Float32))
    log.write_parquet(tmp_path / "log.parquet")
    at = {"whole": str(2**53 + 1), "tenth": "0.10000000000000000001", "f": "0.7"}
    counts = {"whole": (1, 1), "tenth": (1, 1), "f": (0, 1)}
    for column, cut in at.items():
        command = ("curve", tmp_path / "log.parquet", "--score", column, "--thresholds", cut)
        done = invoke(*map(str, command), "--thresholds", "1e16", "--format", "ndjson")
        first, _ = map(json.loads, done.stdout.splitlines())
        assert (first["tp"], first["fp"]) == counts[column]
        assert Fraction(str(first["threshold"])) == Fraction(cut)
    cuts = {"whole": f"[{2**53}, {2**53 + 1}]", "tenth": "[0.1, 0.15]", "f": "[0.1, 0.2]"}
    for column, listed in cuts.items():
        command = ("by", str(tmp_path / "log.parquet"), "--by", f"bins({column}, {listed})")
        done = invoke(*command, "--metric", "accuracy", "--format", "ndjson")
        assert [json.loads(line)["n"] for line in done.stdout.splitlines()] == [1, 1, 1]
    done = invoke("curve", str(tmp_path / "log.parquet"), "--score", "f", "--thresholds", "x")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--thresholds x: not a number" in done.stderr


def test_calibration(planted):
    p = pl.col("score") / 17
    log = planted.mcc(gold="j", positive=2, score=p)
    of_j = ("log.parquet", "--gold", "j", "--positive", "2", "--score", "score / 17.0")
    found = answered("calibration", *of_j, "--by", "k", "--bins", "3", "--ci", "0.9")
    assert_frame_equal(found, log.calibration("k", bins=3, ci=0.9))
    rounded = answered("calibration", *of_j[:-1], "round(score / 17.0, 1) AS p")
    assert_frame_equal(rounded, log(score=p.round(1)).calibration())
    report = ("--pred", "pred", "--score", "k / 3.0", "--by", "j", "--out", "r.md")
    assert invoke("report", "log.parquet", *report).exit_code == 0
    assert "Are the scores calibrated?" in pathlib.Path("r.md").read_text("utf-8")
    done = invoke("calibration", "log.parquet", "--score", "score")
    assert (done.exit_code, done.stdout) == (2, "")
    assert re.search(
        r"the score \d+\.0 of 'score' is not between 0 and 1, as a probability", done.stderr
    )
    done = invoke("calibration", "log.parquet")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "this log has no score: say which column" in done.stderr


OF_SCORES = {
    "by": (["--by", "k", "--ci", "0.9"], lambda log: log.by("k", metrics="roc_auc", ci=0.9)),
    "score": ([], lambda log: log.score(metrics="roc_auc")),
    "compare": (["--by", "k"], lambda log: log.compare("k", metrics="roc_auc")),
    "contrast": (["--by", "k"], lambda log: log.contrast("k", metrics="roc_auc")),
    "drift": (
        ["--before", "j = 0", "--after", "j > 0"],
        lambda log: log.drift(before=pl.col("j") == 0, after=pl.col("j") > 0, metrics="roc_auc"),
    ),
    "check": (
        ["--by", "k", "--min", "roc_auc=0"],
        lambda log: log.check("k", metric="roc_auc", min=0),
    ),
}


@pytest.mark.parametrize("name", first(2, OF_SCORES))
def test_a_metric_of_scores(name, planted):
    typed, ask = OF_SCORES[name]
    metric = [] if name == "check" else ["--metric", "roc_auc"]
    scores = ["--score", "score / 17.0 AS one", "--score", "round(score / 5.0, 0) AS two"]
    both = {"one": pl.col("score") / 17, "two": (pl.col("score") / 5).round()}
    log = planted.mcc(gold="j", positive=2, score=[p.alias(name) for name, p in both.items()])
    about = ["log.parquet", "--gold", "j", "--positive", "2", *typed, *metric]
    found = answered(name, *about, *scores)
    assert {*found["model"]} == ({"two"} if name == "compare" else {*both})
    assert_frame_equal(found, ask(log), check_row_order=False)
    if name != "compare":
        one = answered(name, *about, *scores[:2])
        assert_frame_equal(one, ask(log(score=both["one"])), check_row_order=False)


SEVERAL = {
    "by": ["--by", "k"],
    "score": [],
    "curve": ["--score", "score"],
    "compare": ["--by", "k", "--pred", "pred", "--pred", "gold", "--min-n", "20"],
    "contrast": ["--by", "k", "--ratio"],
    "drift": ["--by", "k", "--before", "j = 0", "--after", "j > 0"],
    "gaps": ["--by", "k"],
}


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.usefixtures("planted")
def test_several_metrics_are_typed_one_by_one_or_with_commas(name):
    """A comma inside brackets is part of a call."""
    command = [name, "log.parquet", *SEVERAL[name]]
    metrics = ["accuracy", "cost(fn=10, fp=1)", "fnr", "tpr"]
    apart = answered(*command, *(word for metric in metrics for word in ("--metric", metric)))
    typed = ("accuracy,cost(fn=10, fp=1), fnr", "tpr")
    assert_frame_equal(answered(*command, "--metric", typed[0], "--metric", typed[1]), apart)
    if "metric" in apart.columns:
        assert [*apart["metric"].unique(maintain_order=True)] == ["accuracy", "cost", "fnr", "tpr"]
    done = invoke(*command, "--metric", "mcc,accurcy")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no metric 'accurcy'; did you mean 'accuracy'?" in done.stderr


def test_a_report_of_several_metrics(planted):
    models = ("--pred", "pred", "--pred", "gold AS other", "--by", "k", "--out", "r.json")
    done = invoke("report", "log.parquet", "--metric", "mcc,cost(fn=10, fp=1)", *models)
    assert done.exit_code == 0, done.output
    found = json.loads(pathlib.Path("r.json").read_text("utf-8"))
    log = planted.with_columns(other="gold").mcc(pred=["pred", "other"])
    [first, second] = log.compare(metrics=["mcc", "cost(fn=10, fp=1)"]).to_dicts()
    texts = [said["text"].replace("\u00a0", " ") for said in found["verdict"]]
    for name, row in (("MCC", first), ("cost", second)):
        told = f"other is better than pred: the difference in {name} is {row['diff']:+.3f}"
        assert any(told.replace("-", "−") in text for text in texts), texts
    [scores] = [text for text in texts if text.startswith("pred: MCC is ")]
    assert "; pred: cost is " in scores
    tables = {section["id"]: section["rows"] for section in found["sections"]}
    assert [row["metric"] for row in tables["compared"]] == ["mcc", "cost"]
    assert {row["metric"] for row in tables["gaps"]} == {"mcc", "cost", "fnr", "fpr"}
    assert {row["metric"] for row in tables["compared:k"]} == {"mcc"}
    assert {"mcc_low", "cost_low", "accuracy"} <= {*tables["by:k"][0]}
    assert {row["metric"] for row in tables["worst"]} == {"mcc"}
    alone = invoke("report", "log.parquet", "--metric", "roc_auc,mcc", *models)
    assert "report takes metrics of labels, but 'roc_auc' is of scores" in alone.stderr


class TestCheck:
    def test_it_passes(self, planted, caplog):
        caplog.set_level("ERROR", "polars_mcc")
        done = invoke("check", "log.parquet", "--by", "k", "--min", "0.1")
        assert logging.getLogger("polars_mcc").level == logging.ERROR
        key, _, score, _ = planted.mcc.by("k").sort("mcc").row(0)
        of_all = "passes, 4 slices, 400 rows"
        told = f"lowest mcc {score:.3f} of k = {key}, at least 0.1: {of_all}\n"
        assert (done.exit_code, done.stdout) == (0, told)
        few = ["--by", "j", "--min", "0.1", "--min-n", "134"]
        done = invoke("check", "log.parquet", *few)
        [only] = planted.filter(j=0).mcc.score()["mcc"]
        told = f"mcc {only:.3f}, at least 0.1: passes, 1 slice, 134 rows, 2 not judged\n"
        assert (done.exit_code, done.stdout) == (0, told)
        bars = ["--min", "accuracy=0.1", "--max", "fp=1000", "--positive", "true"]
        done = invoke("check", "log.parquet", *bars)
        accuracy = (planted["gold"] == planted["pred"]).mean()
        fp = (~planted["gold"] & planted["pred"]).sum()
        told = f"accuracy {accuracy:.3f}, at least 0.1: passes, 1 slice, 400 rows\n"
        assert done.stdout == f"{told}fp {fp}, at most 1000: passes, 1 slice, 400 rows\n"
        written = invoke("check", "log.parquet", *bars, "--out", "judged.csv")
        assert written.stdout == done.stdout
        judged = answered("check", "log.parquet", "--by", "k", "--min", "0.1")
        assert_frame_equal(judged, planted.mcc.check("k", min=0.1))

    def test_it_says_what_is_worse_by_chance(self, planted):
        scores = sorted(planted.mcc.by("k")["mcc"])
        least = ["--by", "k", "--min", str(scores[0] + 1e-6), "--ci", "0.95"]
        done = invoke("check", "log.parquet", *least)
        assert done.exit_code == 0
        assert done.stdout.startswith(f"lowest mcc {scores[0]:.3f} (")
        assert done.stdout.endswith(
            ": passes, 4 slices, 400 rows, 1 outside but not significantly\n"
        )
        planted.vstack(planted.filter(pl.col("gold") == pl.col("pred")).head(40)).mcc.counts(
            "k"
        ).write_parquet("counts.parquet")
        against = ["--by", "k", "--no-worse-than", "counts.parquet", "--ci", "0.95"]
        done = invoke("check", "log.parquet", *against)
        assert done.exit_code == 0
        told = r"lowest mcc minus the baseline -.* \d outside but not significantly\n"
        assert re.fullmatch(told, done.stdout)

    @pytest.mark.usefixtures("planted")
    def test_it_fails_with_a_table(self):
        options = ["--by", "k", "--min", "0.6", "--min-n", "100", "--ci", "0.95"]
        done = invoke("check", "log.parquet", *options)
        assert done.exit_code == 1
        assert "1 of 4 slices fails: mcc below 0.6, significantly (ci=0.95)" in done.stdout
        assert done.stdout.count("│ 1 ") == 1

    def test_several_metrics(self, planted):
        bars = ["--min", "mcc=0.1", "--min", "accuracy=0.9", "--max", "fnr=0.9"]
        about = ["--by", "k", "--positive", str(planted["gold"][0])]
        done = invoke("check", "log.parquet", *about, *bars)
        assert done.exit_code == 1
        assert "accuracy below 0.9 (" in done.stdout
        judged = answered("check", "log.parquet", *about, *bars[:2], *bars[4:])
        log = planted.mcc(positive=planted["gold"][0])
        assert_frame_equal(judged, log.check("k", min={"mcc": 0.1}, max={"fnr": 0.9}))

    @pytest.mark.parametrize("form", ["csv", "json", "ndjson", "md", "parquet"])
    def test_a_failure_is_written_like_a_pass(self, planted, form):
        """The file of an earlier run would say that all slices pass."""
        asked = ["check", "log.parquet", "--by", "k", "--out", f"judged.{form}", "--min"]
        for bar, code in (("-0.9", 0), ("0.6", 1)):
            done = invoke(*asked, bar)
            assert done.exit_code == code
            assert "4 rows written to judged." in done.stderr
            if code:
                assert done.stdout.startswith("1 of 4 slices fails: mcc below 0.6\n")
            if form == "parquet":
                judged = pl.read_parquet("judged.parquet")
                assert judged["k"].to_list() == planted["k"].unique().sort().to_list()
                assert judged["verdict"].to_list().count("fails") == code
            else:
                assert pathlib.Path(f"judged.{form}").read_text("utf-8").count("fails") == code

    @pytest.mark.usefixtures("planted")
    def test_a_failure_in_a_pipe_is_data(self):
        asked = ["check", "log.parquet", "--by", "k", "--min", "0.6"]
        done = invoke(*asked, "--format", "json")
        assert done.exit_code == 1
        assert (
            sorted(row["verdict"] for row in json.loads(done.stdout)) == ["fails"] + ["passes"] * 3
        )
        assert done.stderr == "polars-mcc: 1 of 4 slices fails: mcc below 0.6\n"
        assert invoke(*asked, "--format", "wide").stdout == invoke(*asked).stdout

    @in_turn(
        flag=["--min", "--max"],
        **{
            "typed, why": [
                (["mcc=a"], "'a' is no number"),
                (["mcc="], "'' is no number"),
                (["a"], "'a' is no number"),
                (["0.5", "mcc=0.1"], "'0.5' has no name"),
                (["0.5", "0.6"], "'0.5' has no name"),
                (["=0.5"], "'=0.5' has no name"),
                (["mcc=0.99", "mcc=0.1"], "mcc is given twice"),
                (["mcc=0.1", "accuracy=0.1", " mcc =0.1"], "mcc is given twice"),
            ]
        },
    )
    @pytest.mark.usefixtures("planted")
    def test_each_bar_counts(self, flag, typed, why):
        words = [word for text in typed for word in (flag, text)]
        done = invoke("check", "log.parquet", *words)
        assert (done.exit_code, done.stdout) == (2, "")
        assert f"{flag} takes one number ({flag} 0.6), or each metric once" in done.stderr
        assert done.stderr.endswith(f"; {why}\n")

    def test_contrast(self, planted):
        for to, typed in (("each", ["each"]), ({"k": 1}, ["k=1"])):
            found = answered("contrast", "log.parquet", "--by", "k", "--to", *typed, "--ratio")
            assert_frame_equal(found, planted.mcc.contrast("k", to=to, ratio=True))
        done = invoke("contrast", "log.parquet", "--by", "k", "--to", "k=x")
        assert (done.exit_code, done.stdout) == (2, "")
        assert "key 'k' is Int64 and cannot have this value" in done.stderr

    def test_gaps(self, planted):
        typed = ["--metric", "accuracy", "--metric", "mcc", "--within", "j", "--min-n", "2"]
        found = answered("gaps", "log.parquet", "--by", "k", *typed, "--ci", "0.9")
        options = {"metrics": ["accuracy", "mcc"], "within": "j", "min_n": 2, "ci": 0.9}
        assert_frame_equal(found, planted.mcc.gaps("k", **options))
        options = ["--by", "k", "--max-gap", "accuracy=0.99"]
        passed = invoke("check", "log.parquet", *options)
        assert passed.exit_code == 0
        [gap] = planted.mcc.gaps("k", metrics="accuracy").to_dicts()
        limits = "{diff:.3f} ({diff_low:.3f} to {diff_high:.3f})".format(**gap)
        of_all = "passes, 4 groups, 400 rows"
        assert passed.stdout == f"accuracy gap of k {limits}, at most 0.99: {of_all}\n"
        sure = invoke("check", "log.parquet", *options, "--max-gap", "mcc=0.6", "--ci", "0.999999")
        assert sure.stdout.startswith(f"accuracy gap of k {gap['diff']:.3f} (")
        [wide] = planted.mcc.gaps("k", metrics="mcc")["diff"]
        too_wide = rf"mcc gap of k {wide:.3f} \(0.257 .* at most 0.6: {of_all}, outside but not"
        assert re.search(too_wide, sure.stdout)
        both = ["--by", "k", "--by", "j", "--max-gap", "accuracy=1", "--max-gap", "mcc=2"]
        passed = invoke("check", "log.parquet", *both, "--format", "wide")
        assert "diff_low" in passed.stdout
        assert invoke("check", "log.parquet", *both).stdout.startswith("accuracy gap of k, j 0.")
        done = invoke("check", "log.parquet", *options, "--max-gap", "mcc=0.01")
        assert done.exit_code == 1
        assert done.stdout.startswith("1 of 2 gaps fails: gap of mcc above 0.01\n")
        ratio = ["--by", "k", "--min-ratio", "accuracy=0.2", "--min-ratio", "tpr=0.1"]
        passed = invoke("check", "log.parquet", *ratio, "--positive", "true")
        assert passed.exit_code == 0, passed.output
        assert passed.stdout.startswith("accuracy ratio of k 0.")
        assert ", at least 0.1: passes, 4 groups, 400 rows\n" in passed.stdout
        refused = invoke("check", "log.parquet", *options, "--min", "0.1")
        assert refused.exit_code == 2
        assert "max_gap is checked alone" in refused.stderr

    def test_a_baseline(self, planted):
        planted.with_columns(pred="gold").mcc.counts("k").write_parquet("counts.parquet")
        options = ["--by", "k", "--no-worse-than", "counts.parquet", "--ci", "0.99"]
        passed = invoke("check", "log.parquet", *options, "--pred", "gold")
        told = r"lowest mcc minus the baseline 0.000 \(.* to .*\) of k = 0, at least 0: passes.*\n"
        assert re.fullmatch(told, passed.stdout)
        done = invoke("check", "log.parquet", *options)
        assert done.exit_code == 1
        assert "1 of 4 slices fails: mcc below the baseline, significantly" in done.stdout

    def test_another_model_on_the_same_rows(self, planted):
        asked = ["check", "log.parquet", "--by", "k", "--no-worse-than"]
        models = ["--pred", "pred", "--pred", "gold AS best"]
        judged = answered(*asked, "pred", *models)
        best = planted.with_columns(best="gold").mcc(pred=["pred", "best"])
        assert_frame_equal(judged, best.check("k", no_worse_than="pred"))
        done = invoke(*asked, "best", *models)
        assert done.exit_code == 1
        assert done.stdout.startswith("3 of 4 slices fail: mcc below best\n")
        done = invoke(*asked, "gold")  # a column that is no model of the log
        assert done.stdout.startswith("3 of 4 slices fail: mcc below gold\n")
        done = invoke(*asked, "worst", *models)
        takes = (
            "--no-worse-than takes a model of the log ('pred', 'best'), a column that is one, or"
        )
        assert (done.exit_code, done.stdout) == (2, "")
        assert f"no model, no column and no file 'worst': {takes} a file of counts\n" in done.stderr

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ([], "check needs either min or max, such as --min 0.6, or --no-worse-than, another"),
            (["--no-worse-than", "nope.parquet"], "no file 'nope.parquet'"),
            (["--no-worse-than", "log.parquet"], "no_worse_than is not the counts of these slices"),
            (["--min", "0.5", "--by", "kk"], "no column 'kk' for key"),
        ],
    )
    @pytest.mark.usefixtures("planted")
    def test_refusals_are_no_failures(self, options, message):
        done = invoke("check", "log.parquet", *options)
        assert (done.exit_code, done.stdout) == (2, "")
        assert message in done.stderr


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("arguments", "verb"),
    [
        (["score"], lambda f: f.mcc.score()),
        (["score", "--metric", "kappa"], lambda f: f.mcc.score(metrics="kappa")),
        (["score", "--ci", "0.9"], lambda f: f.mcc.score(ci=0.9)),
        (["counts", "--by", "country"], lambda f: f.mcc.counts("country")),
        (["counts", "--weight", "n"], lambda f: f.mcc(weight="n").counts()),
        (["classes", "--by", "country"], lambda f: f.mcc.classes("country")),
        (["confusion", "--by", "country"], lambda f: f.mcc.confusion("country")),
        (
            ["confusion", "--pred", "pred", "--pred", "other", "--nulls", "label"],
            lambda f: f.mcc(pred=["pred", "other"], nulls="label").confusion(),
        ),
        (
            ["confusion", "--top", "1", "--weight", "n"],
            lambda f: f.mcc(weight="n").confusion(top=1),
        ),
        (
            ["confusion", "--long", "--normalize", "gold"],
            lambda f: f.mcc.confusion(long=True, normalize="gold"),
        ),
    ],
)
def test_the_other_verbs(arguments, verb):
    command, *options = arguments
    done = invoke(command, "logs", *options, "--out", "a.parquet")
    assert done.exit_code == 0, done.output
    assert_frame_equal(pl.read_parquet("a.parquet"), verb(pl.read_parquet("logs")))


@pytest.mark.parametrize(
    ("form", "read"),
    [
        ("csv", pl.read_csv),
        ("json", pl.read_json),
        ("ndjson", pl.read_ndjson),
        ("parquet", pl.read_parquet),
    ],
)
@pytest.mark.usefixtures("logs")
def test_formats_on_the_standard_output_keep_every_digit(form, read):
    done = polars_mcc_by("logs", "--pred", "other", "--metric", "f1_macro", "--format", form)
    expected = pl.read_parquet("logs").mcc(pred="other").score(metrics="f1_macro")
    assert_frame_equal(read(io.BytesIO(done.stdout_bytes)), expected, check_exact=True)
    assert done.stderr == ""
    named = polars_mcc_by("logs", "--pred", "other", "--format", form, "--out", "answer")
    assert named.exit_code == 0, named.output
    assert read("answer").height == 1


@pytest.mark.parametrize("options", [("--by", "gold + 1"), ("--filter", "gold = 1")])
def test_sql_beside_a_column_with_the_name_of_a_pattern_is_refused_in_a_line(
    options, tmp_path, monkeypatch
):
    """Polars takes such a name for a pattern, in SQL too."""
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"^p.*$": 1, "gold": 1, "pred": 1}).write_parquet("log.parquet")
    assert "that Polars accepts: " in refusal_of("log.parquet", *options)


def test_the_name_of_a_column_with_a_line_break_is_one_line_of_markdown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"two\nlines": "x", "gold": 1, "pred": 1}).write_parquet("log.parquet")
    done = polars_mcc_by("log.parquet", "--by", "two\nlines", "--format", "markdown")
    assert done.stdout.startswith("| two<br>lines ")


def test_markdown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = pl.DataFrame({"a|b": ["x|y", "<b>", "two\nlines"], "gold": 1, "pred": 1})
    log.with_columns(pl.col("a|b").alias("^p.*$")).write_parquet("log.parquet")
    assert r"two\nlines" in polars_mcc_by("log.parquet", "--by", "^p.*$").stdout
    done = polars_mcc_by("log.parquet", "--by", "a|b", "--format", "markdown")
    header, rule, *rows = done.stdout.splitlines()
    assert header.startswith(r"| a\|b ")
    assert set(rule) == {"|", "-"}
    assert [row.split(" ")[1] for row in rows] == [r"\<b\>", "two<br>lines", r"x\|y"]
    again = polars_mcc_by("log.parquet", "--by", "a|b", "--out", "answer.md")
    assert again.exit_code == 0, again.output
    assert (tmp_path / "answer.md").read_text("utf-8") == done.stdout


@in_turn(
    place=["value", "list", "array", "struct", "name"],
    dtype=[pl.Float16, pl.Float32, pl.Float64],
    form=["json", "ndjson"],
)
def test_json_tells_nan_and_infinities_from_null(form, dtype, place, tmp_path):
    values = [NAN, INF, -INF, None, 0.5]
    told = ["NaN", "Infinity", "-Infinity", None, 0.5]
    floats = pl.Series("^k.*$", values, dtype)  # The name is a pattern of Polars.
    keys, wanted = {
        "value": (floats, told),
        "list": (floats.reshape((-1, 1)).cast(pl.List(dtype)), [[one] for one in told]),
        "array": (floats.reshape((-1, 1)), [[one] for one in told]),
        "struct": (
            floats.alias("f").to_frame().to_struct("^k.*$"),
            [{"f": one} for one in told],
        ),
        "name": (pl.Series("NaN", ["NaN", "Infinity", None]), ["NaN", "Infinity", None]),
    }[place]
    keys.to_frame().with_columns(gold=1, pred=1).write_parquet(tmp_path / "log.parquet")
    options = ("--by", keys.name, "--zero-division", "nan", "--format", form)
    done = polars_mcc_by(str(tmp_path / "log.parquet"), *options)
    assert done.exit_code == 0, done.output

    def no_number(word):
        raise AssertionError(word)

    lines = done.stdout.splitlines() if form == "ndjson" else [done.stdout]
    read = [json.loads(line, parse_constant=no_number) for line in lines]
    rows = read if form == "ndjson" else read[0]
    assert sorted(map(str, [row[keys.name] for row in rows])) == sorted(map(str, wanted))
    assert {row["mcc"] for row in rows} == {"NaN"}


@in_turn(
    form=["csv", "json", "ndjson", "markdown", "parquet"],
    **{
        "values, texts": [
            ([b"\x00\xff", b"|<\n", None], ["00ff", "7c3c0a", None]),
            ([[b"\x00"], [None, b"\xff"], None], ['["00"]', '[null, "ff"]', None]),
            ([{"a": [b"\xff"]}, {"a": None}, None], ['{"a": ["ff"]}', '{"a": null}', None]),
        ]
    },
)
def test_bytes_are_hex_where_a_format_is_text(form, values, texts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = pl.DataFrame({"^k.*$": values, "gold": 1, "pred": 1})
    log.write_parquet("log.parquet")  # The name of the key is a pattern of Polars.
    done = polars_mcc_by("log.parquet", "--by", "^k.*$", "--format", form)
    assert done.exit_code == 0, done.output
    if form == "markdown":
        _, _, *rows = done.stdout.splitlines()
        found = [row.split("|")[1].strip().replace("\\", "") for row in rows]
        assert {*found} == {text or "null" for text in texts}
        return
    read = getattr(pl, f"read_{form}")
    found = read(io.BytesIO(done.stdout_bytes))["^k.*$"].to_list()
    expected = values if form == "parquet" else texts
    assert sorted(map(str, found)) == sorted(map(str, expected))


def test_a_terminal_is_shown_no_controls_and_no_parquet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = pl.DataFrame({"key": ["\x1b[31mred"], "gold": 1, "pred": 1})
    log.write_parquet("log.parquet")
    to_a_file = polars_mcc_by("log.parquet", "--by", "key", "--format", "csv")
    assert "\x1b[31mred" in to_a_file.stdout
    shown = invoke("by", "log.parquet", "--by", "key", "--format", "csv", is_terminal=True)
    assert "\x1b" not in shown.stdout
    assert r"\x1b[31mred" in shown.stdout
    refused = invoke("by", "log.parquet", "--format", "parquet", is_terminal=True)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "a terminal cannot show parquet: use --out FILE" in refused.stderr


@pytest.mark.parametrize("out", ["a.parquet", "a.csv", "a.json", "a.ndjson"])
@pytest.mark.usefixtures("logs")
def test_out_replaces_a_file(out, tmp_path):
    (tmp_path / out).write_text("what was here before")
    done = polars_mcc_by("logs", "--by", "country", "--out", out)
    assert done.stdout == ""
    assert done.stderr == f"polars-mcc: 2 rows written to {out}\n"
    readers = (pl.read_parquet, pl.read_csv, pl.read_json, pl.read_ndjson)
    read = dict(zip(["a.parquet", "a.csv", "a.json", "a.ndjson"], readers, strict=True))[out]
    assert_frame_equal(read(out), pl.read_parquet("logs").mcc.by("country"))
    assert sorted(file.name for file in tmp_path.iterdir()) == [out, "logs"]


@pytest.mark.parametrize("glob", ["logs", "logs/", "logs/*", "logs/**", "."])
def test_what_is_no_log_in_a_folder_is_passed_over(glob, logs):
    others = ["_SUCCESS", ".part.parquet.crc", "part.crc", "README", "readme.md", ".DS_Store"]
    for other in [*others, ".git/config", "_committed_1", ".ipynb_checkpoints/notes.txt"]:
        (logs / other).parent.mkdir(exist_ok=True)
        (logs / other).write_text("not a log")
    done = polars_mcc_by(glob, "--format", "csv")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1].startswith("8,")


@pytest.mark.parametrize("hidden", ["_old.parquet", ".old.parquet", "_old/a.parquet", ".o/a.csv"])
def test_hidden_files_that_may_be_logs_are_named(hidden, logs):
    (logs / hidden).parent.mkdir(exist_ok=True)
    ROWS.write_parquet(logs / hidden)
    done = polars_mcc_by("logs", "--format", "csv")
    assert (done.exit_code, done.stderr) == (0, f"polars-mcc: not read (hidden): logs/{hidden}\n")
    assert done.stdout.splitlines()[1].startswith("8,")
    (logs / "_year=1").mkdir()
    ROWS.write_parquet(logs / "_year=1/a.parquet")
    done = polars_mcc_by("logs", "--format", "csv")
    assert done.stdout.splitlines()[1].startswith("12,"), "a partition is not hidden"


OTHERS = ["b.csv", "B.CSV", "b.csv.gz", "b.tsv", "b.json", "b.txt", "b", "b.csv.bz2", "b.crc.x"]


@in_turn(3, below=["", "day=2026-01-03/"], suffix=["parquet", "ndjson"], other=OTHERS)
def test_any_other_file_in_a_folder_is_an_error(other, suffix, below, tmp_path, monkeypatch):
    """A gate must not pass because a log is not read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs" / below).mkdir(parents=True)
    WRITE[suffix](ROWS, f"logs/a.{suffix}")
    (tmp_path / "logs" / below / other).write_text("gold,pred\nu,v\n")
    for verb in (["by"], ["check", "--min", "0"], ["counts", "--out", "store"]):
        done = invoke(*verb, "logs")
        assert (done.exit_code, done.stdout) == (2, "")
        told = f"'logs/{below}{other}' in folder 'logs' is not known to be a log"
        of_two = "folder 'logs' has CSV and "
        is_csv = re.search(r"csv(\.gz)?$|tsv$", other.lower())
        assert (of_two if is_csv else told) in done.stderr
    assert invoke("by", f"logs/*.{suffix}").exit_code == 0
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("name", ["B.CSV", "b.csv.gz", "b.tsv"])
def test_a_log_of_another_ending_is_read(name, tmp_path, monkeypatch):
    """The failing rows are in the second file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    pl.DataFrame({"gold": ["u", "v"], "pred": ["u", "v"]}).write_csv("logs/a.csv")
    rows = pl.DataFrame({"gold": ["u", "v"], "pred": ["v", "u"]})
    data = rows.write_csv(separator="\t" if name.endswith("tsv") else ",").encode()
    (tmp_path / "logs" / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    done = invoke("check", "logs", "--min", "0.5", "--min-n", "1")
    assert done.exit_code == 1


WRITE = {
    "csv": pl.DataFrame.write_csv,
    "ndjson": pl.DataFrame.write_ndjson,
    "jsonl": pl.DataFrame.write_ndjson,
    "arrow": pl.DataFrame.write_ipc,
    "feather": pl.DataFrame.write_ipc,
    "parquet": pl.DataFrame.write_parquet,
}


@pytest.mark.parametrize("suffix", first(3, WRITE))
def test_files_of_other_kinds(suffix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    for part in ("a", "b"):
        WRITE[suffix](ROWS.with_columns(extra=pl.lit(part)), f"logs/{part}.{suffix}")
    both = pl.concat([ROWS, ROWS])
    expected = both.mcc(weight="n").by("country")
    for paths in (["logs"], [f"logs/*.{suffix}"], [f"logs/a.{suffix}", f"logs/b.{suffix}"]):
        assert_frame_equal(answer_of(*paths, "--by", "country", "--weight", "n"), expected)
    assert "did you mean 'country'" in refusal_of("logs", "--by", "county")


@pytest.mark.parametrize("suffix", some_slow(WRITE, *(WRITE.keys() - {"csv"})))
def test_the_standard_input(suffix, tmp_path):
    log = tmp_path / f"log.{suffix}"
    WRITE[suffix](ROWS, log)
    arguments = ["by", "-", "--by", "country", "--format", "csv"]
    done = subprocess.run(
        [sys.executable, "-m", "polars_mcc", *arguments],
        input=log.read_bytes(),
        capture_output=True,
        check=True,
    )
    assert_frame_equal(pl.read_csv(done.stdout), ROWS.mcc.by("country"))


def test_the_standard_input_is_no_file_to_make_readable(monkeypatch):
    """Polars finds no footer in these bytes, and the system then cannot go back in them."""
    broken = io.TextIOWrapper(io.BytesIO(b"ARROW1.."))
    monkeypatch.setattr("sys.stdin", broken)
    assert "'-' cannot be read as IPC (" in refusal_of("-")


def test_kinds_that_do_not_go_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ROWS.write_csv("a.csv")
    ROWS.write_ndjson("b.ndjson")
    assert "cannot read CSV and NDJSON as one log" in refusal_of("a.csv", "b.ndjson")
    assert "folder '.' has CSV and NDJSON files; pass a quoted glob" in refusal_of(".")
    assert "cannot be combined with other logs" in refusal_of("-", "a.csv")
    ROWS.write_parquet("c.parquet")
    assert "folder '.' has CSV and NDJSON and Parquet files; pass a" in refusal_of(".")
    broken = tmp_path / "broken.arrow"
    broken.write_bytes(b"no arrow at all")
    assert "'broken.arrow' cannot be read as IPC" in refusal_of("broken.arrow")
    numbers = ROWS.with_columns(gold=pl.int_range(pl.len()))
    numbers.write_csv("d.csv")
    told = refusal_of("a.csv", "d.csv")
    assert "column 'gold' is String in 'a.csv' but Int64 in 'd.csv'; add --null NA if a" in told


def test_columns_that_are_not_used_may_differ(logs):
    file = logs / "day=2026-01-02/part.parquet"
    ROWS.with_columns(n=pl.lit("x"), extra=1).select(pl.all().reverse()).write_parquet(file)
    assert answer_of("logs")["n"].item() == 8


class TestRefusals:
    @pytest.fixture(autouse=True)
    def nothing_is_written(self, logs, tmp_path):
        before = set(tmp_path.rglob("*"))
        (tmp_path / "answer.csv").write_text("as it was")
        yield
        assert (tmp_path / "answer.csv").read_text("utf-8") == "as it was"
        new = set(tmp_path.rglob("*")) - before - {tmp_path / "answer.csv"}
        assert all(path.is_relative_to(logs) or path.suffix == ".parquet" for path in new)

    def test_a_missing_column(self):
        told = refusal_of("logs", "--by", "contry")
        assert "logs: no column 'contry' for key; did you mean 'country'?" in told
        assert "'foo'" in refusal_of("logs", "--filter", "foo > 1").replace('"', "'")

    def test_labels_that_cannot_be_compared(self):
        assert "'n' is Int64, 'pred' is String" in refusal_of("logs", "--gold", "n")

    def test_a_key_named_like_a_column_of_the_answer(self):
        assert "key 'n' has the name of a column of the answer" in refusal_of("logs", "--by", "n")

    def test_no_file(self, tmp_path):
        (tmp_path / "empty").mkdir()
        (tmp_path / "empty/README").touch()
        told = refusal_of("empty")
        assert "no .parquet file in folder 'empty'; a log is a file, a folder" in told
        assert told.startswith("polars-mcc: no .parquet file"), "the message names the folder"
        (tmp_path / "empty/README").unlink()
        (tmp_path / "empty").rmdir()
        assert "no file 'nope.parquet'" in refusal_of("nope.parquet")
        assert "no file 'nope/*.parquet'" in refusal_of("nope/*.parquet")

    def test_several_values_of_an_option(self):
        told = refusal_of("logs", "--by", "country", "day")
        assert "no file 'day'" in told
        assert "to give an option several values, repeat it, as in --by a --by b;" in told
        assert "repeat --by for several columns" in refusal_of("logs", "--by", "country,day")

    @pytest.mark.parametrize("content", [b"", b"a log", b"PAR1" + b"\0" * 100 + b"PAR1"])
    def test_a_file_that_is_not_parquet(self, logs, content):
        (logs / "day=2026-01-02/other.parquet").write_bytes(content)
        told = refusal_of("logs")
        assert "'logs/day=2026-01-02/other.parquet' cannot be read as Parquet (" in told

    def test_a_truncated_file(self, logs):
        file = logs / "day=2026-01-02/part.parquet"
        file.write_bytes(file.read_bytes()[:-10])
        assert "part.parquet' cannot be read as Parquet" in refusal_of("logs")

    def test_files_of_different_dtypes(self, logs):
        file = logs / "day=2026-01-02/part.parquet"
        ROWS.with_columns(gold=pl.lit(1)).write_parquet(file)
        told = refusal_of("logs")
        assert "column 'gold' is String in 'logs/day=2026-01-01/part.parquet' but Int32 in" in told
        assert (
            "'logs/day=2026-01-02/part.parquet'; write it with one dtype, or score them apart"
            in told
        )

    def test_files_without_a_column(self, logs):
        ROWS.drop("country").write_parquet(logs / "day=2026-01-02/part.parquet")
        told = refusal_of("logs", "--by", "country")
        assert "column 'country' is in 'logs/day=2026-01-01/part.parquet' but not in 'l" in told

    def test_a_bad_filter(self):
        assert "Boolean" in refusal_of("logs", "--filter", "n + 1")
        told = refusal_of("logs", "--filter", "SELECT ;")
        assert "filter 'SELECT ;' is not SQL that Polars accepts: " in told

    def test_a_bad_weight(self):
        pl.read_parquet("logs").with_columns(n=-pl.col("n")).write_parquet("w.parquet")
        told = refusal_of("w.parquet", "--weight", "n")
        assert "weight 'n' has or adds up to -" in told
        assert "expression" not in told

    def test_a_bad_out(self):
        told = refusal_of("logs", out="a.xlsx")
        assert "must end in one of .parquet, .csv, .json, .ndjson, .jsonl, .md" in told
        assert "--format csv" in told
        assert "there is no folder 'nope'" in refusal_of("logs", out="nope/a.csv")


@pytest.mark.parametrize(
    "arguments", [["by"], ["by", "logs", "--nulls", "keep"], ["by", "logs", "--nope"], ["nope"]]
)
def test_usage_errors_exit_with_2(arguments):
    assert invoke(*arguments).exit_code == 2


@pytest.mark.slow
def test_python_dash_m_and_version(logs):
    command = [sys.executable, "-W", "error", "-m", "polars_mcc"]
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"polars-mcc {polars_mcc.__version__} on polars ")
    done = subprocess.run([*command, "by", logs], capture_output=True, text=True, check=True)
    assert "mcc" in done.stdout
    done = subprocess.run(
        [*command, "by", "nope"], capture_output=True, text=True, check=False, cwd=logs
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_without_the_extra_it_says_what_to_install():
    code = (
        "import sys; sys.modules['cyclopts'] = None; sys.argv = ['polars-mcc', 'by'];"
        "from polars_mcc.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "needs cyclopts, which is not installed: pip install 'polars-mcc[cli]'" in done.stderr


@pytest.mark.slow
@on_posix
def test_the_shell_completes(tmp_path):
    """Bash completes verbs and options, with the script that --install-completion writes."""
    script = tmp_path / "polars-mcc.bash"
    script.write_text(app.generate_completion(shell="bash"), "utf-8")  # noqa: S604 - its name
    words = {
        ("polars-mcc", "rep"): ["report"],
        ("polars-mcc", "report", "logs", "--min"): ["--min-age", "--min-n"],
    }
    for line, completed in words.items():
        listed = " ".join(f"'{word}'" for word in line)
        asked = f"source {script}; COMP_WORDS=({listed}); COMP_CWORD={len(line) - 1}; _polars_mcc;"
        done = subprocess.run(
            [shutil.which("bash"), "-c", asked + 'printf "%s\\n" "${COMPREPLY[@]}"'],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == completed


NO_COMMANDS = {
    "from_store": "a store is a log like any other",
    "engine_counts": "it gives a frame of another engine, and a command reads files",
}
VERBS = {
    name: verb
    for name, verb in vars(polars_mcc.PredictionLog).items()
    if not name.startswith("_") and name not in NO_COMMANDS
}
"""The verbs, each of which is a command."""


@pytest.mark.parametrize("verb", first(5, [*VERBS, "metrics"]))
def test_help_has_an_example(verb):
    verb = verb.replace("_", "-")
    done = invoke(verb, "--help")
    assert done.exit_code == 0
    assert f"polars-mcc {verb}" in done.output


NO_OPTIONS = {
    "format": "the name of the file tells",
    "self": "the log of a method",
    "log": "it is the files that are named, and what is said of them",
    "frame": "it is the files that are named",
}


@pytest.mark.slow
def test_a_library_that_checks_types_does_not_disturb(monkeypatch):
    """If pydantic is loaded, cyclopts checks values and defaults with it."""
    monkeypatch.setenv("POLARS_WARN_UNSTABLE", "0")  # a user's, not conftest's
    code = "import pydantic; from polars_mcc._cli.run_command import main; main()"
    arguments = ["score", "data/digits.parquet", "--format", "csv"]
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("n,mcc,n_null\n")


def test_every_verb_is_a_command():
    assert {name.replace("_", "-") for name in VERBS} <= {*app}


def choices_of(hint) -> set[str]:
    """The values of all Literals inside a type."""
    if typing.get_origin(hint) is typing.Literal:
        return {*typing.get_args(hint)}
    return {choice for inner in typing.get_args(hint) for choice in choices_of(inner)}


OR_NONE = {"worst": ["bins"], "calibration": ["bins"], "check": ["correction"]}
"""Options that may be none, by verb."""
OF_PYTHON = r"\bNone\b|\bPython\b|\bpl\.|\{|\(\)|Frame\b|Bootstrap|=True"
"""What the help of a shell does not say."""


@pytest.mark.slow
def test_every_public_kind_of_key_is_a_word_of_the_command():
    code = (
        "from polars_mcc._cli.shared_options import WORDS; import polars_mcc; "
        "print(*sorted(WORDS)); print(*(name for name in polars_mcc.__all__ if "
        "getattr(polars_mcc, name) in [key.make for key in WORDS.values()]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    words, public = done.stdout.splitlines()
    assert words == public == "bins cube each rollup sets trailing"


@pytest.mark.parametrize("name", VERBS)
def test_a_parameter_is_an_option_with_its_default(name):
    """Every parameter of every verb, and of a log, is an option of its command; it has help."""
    asked = app[name.replace("_", "-")].assemble_argument_collection(parse_docstring=True)
    arguments = {argument.field_info.name: argument for argument in asked}
    makes_log, verb = polars_mcc.PredictionLog.__init__, VERBS[name]
    parameters = {**inspect.signature(makes_log).parameters, **inspect.signature(verb).parameters}
    hints = {**typing.get_type_hints(makes_log), **typing.get_type_hints(verb)}
    groups = {argument.field_info.name for argument in asked if argument.names == ("*",)}
    options = {*parameters} - {*NO_OPTIONS} | ({"format"} if name != "report" else {"out"})
    of_store = {"out", "forget", "history", "recount"}
    of_files = {"logs", "filter", "text", "null", "separator"} | of_store
    assert {*arguments} - groups - options <= of_files
    for option in options & {*parameters} - {"format"}:
        argument, parameter = arguments[option], parameters[option]
        flag = {"keys": "--by", "metrics": "--metric"}.get(option)
        flag = flag or f"--{option.replace('_', '-')}"
        assert argument.names[:1] == (flag,)
        default = None if parameter.kind is parameter.VAR_POSITIONAL else parameter.default
        is_list = "list" in str(argument.hint)
        listed = list(default) if isinstance(default, tuple) else [default]
        assert argument.field_info.default == (listed if default and is_list else default)
        may_be_none = {"zero_division", *OR_NONE.get(name, [])}
        none = {"none"} if option in may_be_none else set()  # no default
        assert choices_of(argument.hint) == choices_of(hints[option]) | none
        told = " ".join(argument.parameter.help.split())
        assert told.endswith(".")
        assert not re.search(OF_PYTHON, told)
        assert (f" Repeat {flag} for several" in told) == is_list


def test_every_option_of_a_log_reaches_every_command(planted):
    """The command line describes a log with the same parameters as Python."""
    about = ["--weight", "j", "--cluster", "k", "--nulls", "label", "--zero-division", "0.5"]
    log = planted.mcc(weight="j", cluster="k", nulls="label", zero_division=0.5)
    assert_frame_equal(answered("by", "log.parquet", *about, "--by", "k"), log.by("k"))
    found = answered("score", "log.parquet", *about, "--ci", "0.9")
    assert_frame_equal(found, log.score(ci=0.9))
    found = answered("classes", "log.parquet", "--sample-weight", "j")
    assert_frame_equal(found, planted.mcc(sample_weight="j").classes())
    found = answered(
        "by", "log.parquet", "--by", "k", "--filter", "k = 9", "--zero-division", "none"
    )
    assert found.is_empty()


NEEDED = {
    "check": (["--min", "0"], {"min": 0}),
    "compare": (["--baseline", "gold"], {"baseline": "gold"}),
    "drift": (
        ["--before", "j = 0", "--after", "j > 0"],
        {"before": pl.col("j") == 0, "after": pl.col("j") > 0},
    ),
    "changes": (["--time", "day"], {}),
    "curve": (["--score", "score"], {}),
    "best_threshold": (["--score", "score"], {}),
    "calibration": (["--score", "k / 3.0"], {}),
}
"""What a verb cannot do without: typed, and in Python."""


@pytest.mark.parametrize("name", some_slow(sorted({*VERBS} - {"report"}), "contrast"))
def test_the_defaults_of_a_command_are_those_of_the_verb(name, planted):
    typed, needed = NEEDED.get(name, ([], {}))
    described = dict(zip(typed[::2], map(pl.sql_expr, typed[1::2]), strict=True))
    roles = {role: described.get(f"--{role}") for role in ("score", "time")}
    log = planted.mcc(**roles)
    keys = [] if name == "score" else ["k"]
    by = [word for key in keys for word in ("--by", key)]
    found = answered(name.replace("_", "-"), "log.parquet", *by, *typed)
    assert_frame_equal(found, getattr(log, name)(*keys, **needed), check_row_order=False)


@pytest.mark.parametrize(
    "name", some_slow(["worst", "compare", "contrast", "drift"], "worst", "contrast")
)
def test_a_table_leaves_out_the_details_of_a_difference(name, planted):
    typed, needed = NEEDED.get(name, ([], {}))
    long = {"long": True} if name == "worst" else {}
    columns = getattr(planted.mcc, name)("k", **needed, **long).columns

    def shown(*form: str) -> tuple[list[str], str]:
        done = invoke(name, "log.parquet", "--by", "k", *typed, *form)
        assert done.exit_code == 0, done.output
        [heads] = re.findall(r"┌.*┐\n│ (.*) │\n│ --- ", done.stdout)
        return heads.replace(" ", "").split("┆"), done.stderr

    details = {"p_value"}
    if name == "worst":
        details = {"keys", "diff_low", "diff_high", "p_value", "p_beside", "verdict"}
        details |= {"confused_gold", "confused_pred", "confused", "confused_rest"}
        details |= {"explained_by", "n_tested", "n_untested"}
    brief, said = shown()
    assert brief == [column for column in columns if column not in details]
    many = "column is" if len(details) == 1 else "columns are"
    assert f"polars-mcc: {len(details)} {many} left out; --format wide shows all\n" in said
    wide, said = shown("--format", "wide")
    assert wide == columns
    assert "left out" not in said
    for form, read in (("csv", pl.read_csv), ("json", pl.read_json)):
        done = invoke(name, "log.parquet", "--by", "k", *typed, "--format", form)
        assert {*columns} - {"k"} == {*read(done.stdout_bytes).columns} - {"k"}
    done = invoke(name, "log.parquet", "--by", "k", *typed, "--format", "wide", "--out", "a.csv")
    assert done.exit_code == 0, done.output
    assert {*columns} - {"k"} == {*pl.read_csv("a.csv").columns} - {"k"}


@pytest.mark.slow
@pytest.mark.usefixtures("planted")
def test_a_table_leaves_out_no_key():
    """A contrast has no `dispersion`, so a key may have this name."""
    for keys in (["--by", "k AS dispersion"], ["--by", "k", "--within", "j AS dispersion"]):
        done = invoke("contrast", "log.parquet", *keys, "--ratio")
        assert done.exit_code == 0, done.output
        assert re.search(r"│ (k ┆ )?dispersion ", done.stdout) or " dispersion ┆ k " in done.stdout
        assert "1 column is left out" in done.stderr


@pytest.mark.usefixtures("planted")
def test_a_check_in_a_wide_table_shows_the_scores():
    done = invoke("check", "log.parquet", "--by", "k", "--min", "0.1", "--format", "wide")
    assert done.exit_code == 0, done.output
    assert "┆ verdict " in done.stdout


@pytest.mark.slow
def test_keys_that_are_text_with_too_many_values_are_told(tmp_path, monkeypatch):
    """A time of a CSV file is text; so are ids."""
    monkeypatch.chdir(tmp_path)
    rows = pl.int_range(600)
    log = pl.select(
        at=pl.datetime(2026, 1, 1) + pl.duration(minutes=rows),
        id=pl.format("user {}", rows),
        k=pl.format("{}", rows % 3),
        gold=rows % 2,
        pred=rows // 7 % 2,
    )
    log.write_csv("log.csv")
    keys = ["--by", "at", "--by", "id", "--by", "k"]
    done = invoke("worst", "log.csv", *keys)
    assert done.exit_code == 0, done.output
    told = re.findall(r"key '(\w+)' is text with about \d+ values", done.stderr)
    assert told == ["at", "id"]
    [cast] = re.findall(r"Convert it, as in (at::\w+) if it is like 2026", done.stderr)
    found = answered("worst", "log.csv", "--by", f"{cast} AS at", "--by", "k", "--verdicts")
    typed = pl.read_csv("log.csv").with_columns(pl.col("at").str.to_datetime())
    assert_frame_equal(found, typed.mcc.worst("at", "k", verdicts=True))
    computed = invoke("worst", "log.csv", "--by", "upper(id) AS user")
    assert "key 'user' is text" in computed.stderr
    for few in (["--by", "k"], ["--by", "id", "--filter", "k = 'x'"]):
        assert "is text with" not in invoke("worst", "log.csv", *few).stderr


def test_rows_of_counts_are_as_many_as_they_stand_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts = pl.DataFrame({"k": [f"k{place}" for place in range(60)]})
    counts = counts.with_columns(gold=0, pred=0, n=500)
    counts.write_parquet("counts.parquet")
    weighed = invoke("worst", "counts.parquet", "--by", "k", "--weight", "n")
    assert "0 slices tested (60 more not: " in weighed.stderr
    assert "is text with" not in weighed.stderr
    assert "is text with" in invoke("worst", "counts.parquet", "--by", "k").stderr


OF_POSITIVE = [
    ["by", "--metric", "tpr", "--metric", "accuracy"],
    ["by", "--metric", "tpr", "--weight", "w"],
    ["score", "--metric", "fpr", "--ci", "0.9"],
    ["contrast", "--by", "k", "--metric", "tpr"],
    ["compare", "--pred", "pred", "--pred", "other", "--metric", "fpr"],
    ["worst", "--by", "k", "--metric", "tpr"],
    ["classes"],
    ["curve", "--score", "s", "--thresholds", "3"],
    ["best-threshold", "--score", "s"],
    ["by", "--gold", "golds", "--pred", "preds"],
    ["report", "--out", "r.md"],
]


@pytest.mark.parametrize("asked", some_slow(OF_POSITIVE, *OF_POSITIVE[2:6]), ids=" ".join)
def test_a_positive_label_that_no_row_has_is_told(asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    i = pl.int_range(200)
    log = pl.select(k=i % 2, s=i / 200, w=i / 10).with_columns(
        gold=pl.when(i % 3 > 0).then(pl.lit("u")).otherwise(pl.lit("v")),
        pred=pl.when(i % 5 > 0).then(pl.lit("u")).otherwise(pl.lit("v")),
    )
    log = log.with_columns(other="pred", golds=pl.concat_list("gold"), preds=pl.concat_list("pred"))
    log.write_parquet("log.parquet")
    verb, *options = asked
    done = invoke(verb, "log.parquet", *options, "--positive", "uu")
    assert done.exit_code == 0, done.output
    assert "no scored row has the positive label 'uu' in 'gold" in done.stderr
    assert "; the labels are 'u', 'v'\n" in done.stderr
    done = invoke(verb, "log.parquet", *options, "--positive", "u")
    assert done.exit_code == 0, done.output
    assert "row has" not in done.stderr


@pytest.mark.usefixtures("logs")
def test_a_metric_of_one_class_without_its_label_names_the_labels():
    done = invoke("by", "logs", "--metric", "tpr")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "as in --positive fraud; the labels are String" in done.stderr
    assert "This log has the labels 'u', 'v'" in done.stderr


@pytest.mark.parametrize(("typed", "near"), [("--positve", "--positive"), ("--zzz", None)])
@pytest.mark.usefixtures("logs")
def test_an_option_that_is_not_known(typed, near):
    done = invoke("by", "logs", typed, "u")
    assert (done.exit_code, done.stdout) == (2, "")
    hint = f"; did you mean {near}?" if near else "."
    assert f"there is no option {typed}{hint} --help lists the options." in done.stderr


@pytest.mark.usefixtures("planted")
def test_a_reference_is_one_word_or_one_slice():
    for words in (
        ["rest", "total"],
        ["best", "k=1"],
        ["k=1", "total"],
        ["k=1", "k=2"],
        ["k=1", "k=1"],
        ["=1"],
    ):
        typed = [one for word in words for one in ("--to", word)]
        done = invoke("contrast", "log.parquet", "--by", "k", *typed)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "--to takes one word, or each key once" in done.stderr


@pytest.mark.usefixtures("planted")
def test_the_word_none_is_text_where_nothing_may_be_none():
    done = invoke("report", "log.parquet", "--by", "k", "--title", "none", "--out", "r.md")
    assert done.exit_code == 0, done.output
    assert pathlib.Path("r.md").read_text("utf-8").startswith("## none\n")


class TestSql:
    @pytest.fixture(autouse=True)
    def scores(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        hours = pl.datetime_range(
            pl.datetime(2026, 3, 2), pl.datetime(2026, 3, 20), "5h", eager=True, time_unit="us"
        )
        place = pl.int_range(len(hours))
        self.log = pl.select(ts=hours).with_columns(
            recid=place % 3 % 2, decile=place * 7 % 10 + 1, country=pl.lit("DE")
        )
        self.log.write_parquet("log.parquet")
        self.described = self.log.with_columns(
            gold=pl.col("recid") == 1, high=pl.col("decile") >= 5, low=pl.col("decile") >= 3
        )

    def answer(self, *arguments: str) -> pl.DataFrame:
        return answered("by", "log.parquet", *arguments)

    def test_columns_may_be_computed(self):
        log = self.described.mcc(pred="high")
        found = self.answer("--gold", "recid = 1", "--pred", "decile >= 5")
        assert_frame_equal(found, log.score())
        found = self.answer(
            "--gold", "recid = 1", "--pred", "decile >= 5", "--weight", "decile * 2"
        )
        assert_frame_equal(found, log(weight=pl.col("decile") * 2).score())

    def test_they_are_named_after_their_text_or_with_as(self):
        models = ("--gold", "recid = 1", "--pred", "decile >= 5 as high", "--pred", "decile >= 3")
        found = self.answer(*models, "--by", "date_trunc('week', ts) AS week")
        named = self.described.rename({"low": "decile >= 3"})
        week = pl.col("ts").dt.truncate("1w").alias("week")
        assert_frame_equal(found, named.mcc(pred=["high", "decile >= 3"]).by(week))
        found = self.answer(*models, "--by", "date_trunc('week', ts)")
        assert found.columns[:2] == ["date_trunc('week', ts)", "model"]
        quoted = self.answer(*models, "--by", "date_trunc('week', ts) AS \"a week\"")
        assert quoted.columns[0] == "a week"

    def test_a_name_may_be_that_of_a_column(self):
        """The computed column is used as the key, and SQL still sees the other column."""
        found = self.answer(
            "--gold", "recid = 1", "--pred", "decile >= 5", "--by", "lower(country) AS country"
        )
        assert found["country"].to_list() == ["de"]

    def test_a_column_is_a_column_whatever_it_looks_like(self):
        names = ["decile >= 5", "date_trunc('week', ts)", "each(a)", "*", "x AS y"]
        for name in names:
            self.log.with_columns(gold=1, pred=1, **{name: 7}).write_parquet("named.parquet")
            found = answered("by", "named.parquet", "--by", name)
            assert found.rows() == [(7, self.log.height, 0.0, 0)]
            assert found.columns[0] == name

    def test_a_filter_knows_dtypes_too(self):
        options = ("--gold", "recid = 1", "--pred", "decile >= 5")
        found = self.answer(*options, "--filter", "date_trunc('week', ts) = DATE '2026-03-09'")
        inside = self.described.filter(pl.col("ts").dt.truncate("1w") == pl.date(2026, 3, 9))
        assert_frame_equal(found, inside.mcc(pred="high").score())

    def test_periods_scores_and_clusters_may_be_computed(self):
        gold = ("--gold", "recid = 1")
        periods = (
            "--before",
            "ts < DATE '2026-03-09'",
            "--after",
            "date_trunc('week', ts) > DATE '2026-03-08'",
        )
        found = answered("drift", "log.parquet", *gold, "--pred", "decile >= 5", *periods)
        week = pl.date(2026, 3, 9)
        expected = self.described.mcc(pred="high").drift(
            before=pl.col("ts") < week, after=pl.col("ts") >= week
        )
        assert_frame_equal(found, expected)
        found = answered("best-threshold", "log.parquet", *gold, "--score", "decile * 2")
        expected = self.described.mcc(score=pl.col("decile") * 2).best_threshold()
        assert_frame_equal(found, expected)
        options = ("--pred", "decile >= 5", "--ci", "0.9", "--cluster", "decile % 3")
        found = self.answer(*gold, *options)
        log = self.described.mcc(pred="high", cluster=pl.col("decile") % 3)
        assert_frame_equal(found, log.score(ci=0.9))

    def test_counts_of_computed_columns_are_kept(self):
        options = (
            "--gold",
            "recid = 1",
            "--pred",
            "decile >= 5",
            "--by",
            "date_trunc('week', ts) AS week",
        )
        done = invoke("counts", "log.parquet", *options, "--out", "store")
        assert done.exit_code == 0, done.output
        week = pl.col("ts").dt.truncate("1w").alias("week")
        expected = self.described.mcc(pred="high").by(week)
        assert_frame_equal(
            answered("by", "store", "--by", "week", "--weight", "n", "--pred", "pred"), expected
        )
        again = invoke("counts", "log.parquet", *options, "--out", "store")
        assert again.stderr.endswith("store: 0 counted, 0 replaced, 1 unchanged\n")

    @pytest.mark.slow
    def test_a_report_of_computed_columns(self):
        options = (
            "--gold",
            "recid = 1",
            "--pred",
            "decile >= 5 AS high",
            "--by",
            "date_trunc('week', ts)",
        )
        done = invoke("report", "log.parquet", *options, "--out", "report.html")
        assert done.exit_code == 0, done.output
        page = pathlib.Path("report.html").read_text("utf-8")
        assert "By date_trunc(&#39;week&#39;, ts)" in page
        query = html.unescape(page)
        assert (
            """log.mcc(gold="recid = 1", pred=pl.col("decile >= 5").alias("high")).by(""" in query
        )
        assert """by("date_trunc('week', ts)", metrics=""" in query

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                ["--pred", "decile >="],
                "--pred 'decile >=' is neither a column nor SQL that Polars accepts",
            ),
            (["--pred", "decil >= 5"], "--pred 'decil >= 5' is neither a column nor SQL that"),
            (["--pred", "sum(decile)"], "--pred 'sum(decile)' is neither a column nor SQL"),
            (["--by", "cuontry", "--pred", "recid"], "no column 'cuontry' for key; did you mean"),
            ([], "no column 'gold' (the true label). The columns are"),
        ],
    )
    def test_what_is_no_column(self, options, message):
        gold = [] if not options else ["--gold", "recid"]
        done = invoke("by", "log.parquet", *gold, *options)
        assert (done.exit_code, done.stdout) == (2, "")
        assert message in done.stderr
        assert ("Name the labels: --gold ... --pred ..." in done.stderr) == (not options)
        assert "frame.mcc" not in done.stderr


class TestTextsAndNames:
    """SQL that reads text as a time, or a column that is not there, says the way out."""

    @pytest.fixture(autouse=True)
    def texts(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        days = [f"2026-03-{day:02} 12:00:00" for day in range(1, 13)]
        others = {f"c{place}": 0 for place in range(60)}
        rows = pl.DataFrame({"ts": days, "my ts": days}).with_columns(
            country=pl.lit("DE"), gold=1, pred=1, **{n: pl.lit(v) for n, v in others.items()}
        )
        rows.write_parquet("log.parquet")

    def told(self, *arguments: str) -> str:
        done = invoke("by", "log.parquet", *arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        return done.stderr

    @pytest.mark.parametrize(
        ("option", "sql"),
        [
            ("--by", "date_trunc('week', ts) AS week"),
            ("--by", "EXTRACT(year FROM ts)"),
            ("--by", "year(ts)"),
            ("--by", "strftime(ts, '%Y')"),
            ("--by", "CASE WHEN country = 'DE' THEN month(ts) END"),
            ("--by", "ts - INTERVAL '1 day'"),
            ("--by", "ts > DATE '2026-03-05'"),
            ("--filter", "ts > DATE '2026-03-05'"),
            ("--filter", "country = 'DE' AND year(ts) = 2026"),
        ],
    )
    def test_a_time_function_of_text(self, option, sql):
        told = self.told(option, sql)
        assert (
            ": 'ts' is text, not a time; convert it, as in ts::TIMESTAMP if it is like 20" in told
        )
        assert f"{option.removeprefix('--')} " in told
        mended = re.sub(r"\bts\b", "ts::TIMESTAMP", sql)
        assert answered("by", "log.parquet", option, mended).height

    def test_a_name_that_is_no_word_is_quoted(self):
        told = self.told("--by", 'year("my ts")')
        assert """text, not a time; convert it, as in "my ts"::TIMESTAMP if it is like 20""" in told
        assert answered("by", "log.parquet", "--by", 'year("my ts"::TIMESTAMP)').height == 1

    def test_other_functions_of_text_are_refused_before_rows_are_read(self):
        assert "'ts' is text, not a number; convert it, as in ts::DOUBLE" in self.told(
            "--by", "abs(ts)"
        )
        assert "filter 'abs(ts) > 1' is not SQL" in self.told("--filter", "abs(ts) > 1")

    def test_windows_of_text(self):
        for name, sql in {"ts": "ts::TIMESTAMP", "'my ts'": '"my ts"::TIMESTAMP'}.items():
            told = self.told("--by", f"trailing({name}, '7d')")
            way_out = f"trailing('{sql}', '7d')"
            assert f"but is String; parse it first, as in {sql} if it is like 2026-03-31" in told
            found = answered("by", "log.parquet", "--by", way_out)
            assert found["n"].to_list() == [7, 5]

    @pytest.mark.parametrize(
        ("option", "sql", "near"),
        [
            ("--by", "upper(contry)", "country"),
            ("--by", "each('upper(contry)')", "country"),
            ("--by", "date_trunc('week', tss)", "ts"),
            ("--pred", "pret >= 1", "pred"),
            ("--filter", "contry = 'DE'", "country"),
        ],
    )
    def test_a_wrong_name_inside_sql(self, option, sql, near):
        told = self.told(option, sql)
        assert f"that Polars accepts: no column '{re.search(r'contry|tss|pret', sql)[0]}'" in told
        assert f"; did you mean '{near}'? The columns are '" in told
        assert told.endswith(" and 55 more.\n")

    def test_a_wrong_name_in_a_filter_fails_before_anything_is_kept(self):
        done = invoke("counts", "log.parquet", "--filter", "contry = 'DE'", "--out", "store")
        assert done.exit_code == 2
        assert "did you mean 'country'?" in done.stderr
        assert not pathlib.Path("store").exists()


class TestTextAgainstNumbers:
    """Polars would compare text with decimals as texts: "3e-05" >= "0.5" is true."""

    SCORES = ("0.1", "3e-05", "6e-04", "0.95", "NA", None)
    """As numbers, one of them is 0.5 or more."""

    LOGS = ("log.csv", "log.parquet", "log.ndjson")

    @pytest.fixture(autouse=True)
    def _in_a_folder_with_the_logs(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        log = pl.DataFrame({"p": self.SCORES, "gold": 1, "pred": 1, "price": 0.5})
        log = log.with_columns(id="id" + pl.col("p"))
        log.write_csv("log.csv")
        log.write_ndjson("log.ndjson")
        log.with_columns(pl.col("price").cast(pl.Decimal(5, 2))).write_parquet("log.parquet")

    @in_turn(
        5,
        log=LOGS,
        sql=[
            "p >= 0.5",
            "p >= .5",
            "p < -1.",
            "0.5 <= p",
            "NOT p < 0.5",
            "p >= 5e-1",
            "p >= 1",
            "p = 99999999999999999999999",
            "p BETWEEN 0.5 AND 1.0",
            "p IN (1, 2)",
            "p IN (0.5)",
            "p NOT IN (-1)",
            "p >= price",
            "CASE p WHEN 0.5 THEN 1 END = 1",
            "NULLIF(p, 0.5) IS NULL",
            "COALESCE(p, 0.5) > 0.5",
            "id = 'idNA' AND p >= 0.5",
        ],
    )
    def test_it_is_refused(self, sql, log):
        for verb, option in (("by", "filter"), ("by", "by"), ("check", "pred"), ("by", "gold")):
            limit = ["--min", "0"] if verb == "check" else []
            done = invoke(verb, log, f"--{option}", sql, *limit)
            assert (done.exit_code, done.stdout) == (2, ""), option
            assert "'p' is text, not a number; convert it, as in p::DOUBLE, or " in done.stderr

    @pytest.mark.parametrize("log", LOGS)
    def test_computed_text_is_refused(self, log):
        done = invoke("by", log, "--filter", "LOWER(p) >= 0.5")
        assert (done.exit_code, done.stdout) == (2, "")
        assert "cannot compare string with numeric type" in done.stderr

    @pytest.mark.parametrize(
        ("sql", "kept"),
        [
            ("p = '0.1'", 1),
            ("p IN ('0.1', '0.95', '3')", 2),
            ("p <> 'x = 0.5' AND price >= 0.5", 5),
            ("TRY_CAST(p AS DOUBLE) >= 0.5", 1),
            ("price = 0.50", 6),
            ("price IN (0.5, 1)", 6),
            ("gold IN (1, 2) AND SUBSTR(p, 1, 2) = '0.'", 2),
            ("LENGTH(p) > 2.5", 4),
            ("p || 0.5 = '0.10.5'", 1),
        ],
    )
    def test_other_comparisons_are_as_they_were(self, sql, kept):
        for log in self.LOGS:
            assert answered("by", log, "--filter", sql)["n"].to_list() == [kept]

    def test_a_word_for_nothing(self):
        pathlib.Path("g.csv").write_text("gold,p\n1,3e-05\n1,0.6\n0,0.2\n0,NA\n1,0.1\n1,0.2\n")
        asked = ["check", "g.csv", "--gold", "gold = 1", "--pred", "p >= 0.5", "--min", "tpr=0.5"]
        assert invoke(*asked).exit_code == 2
        failed = invoke(*asked, "--null", "NA")
        assert failed.exit_code == 1
        assert " 0.25 " in failed.stdout


def test_changes_that_judge_nothing_say_so(tmp_path):
    """Exit code 1, as of `check`; and numbers that are no times yet say how to be them."""
    path, start = tmp_path / "log.csv", dt.datetime(2026, 9, 1, tzinfo=dt.UTC)
    days = [start + dt.timedelta(i // 20) for i in range(800)]
    factors = {"s": 1, "ms": 1000, "us": 1_000_000}
    pl.DataFrame(
        {"day": [str(day.date()) for day in days], "gold": [0, 1] * 400, "pred": [0, 1, 1, 0] * 200}
        | {
            unit: [int(day.timestamp()) * factor for day in days]
            for unit, factor in factors.items()
        }
    ).write_csv(path)
    asked = ("changes", str(path), "--false-alarms", "1y", "--time")
    assert invoke(*asked, "day::DATE").exit_code == 0
    for typed in (
        ("day::DATE", "--min-age", "400d"),
        ("day::DATE", "--filter", "day > '2030-01-01'"),
        ("day::DATE", "--min-n", "500"),
        ("s::TIMESTAMP",),
        ("ms::TIMESTAMP",),
    ):
        for form in ("table", "json"):
            done = invoke(*asked, *typed, "--format", form)
            assert (done.exit_code, "there is no slice to judge" in done.stderr) == (1, True)
            assert ("of January 1970" in done.stderr) == typed[0].endswith("TIMESTAMP")
            assert all(option in done.stderr for option in typed[1:2] if option != "--min-n")
    for unit, magnitude in {"s": r"\(1.8e9", "ms": r"\(1.8e12", "us": "microseconds"}.items():
        refused = invoke(*asked, unit)
        assert refused.exit_code == 2
        [code] = re.findall(rf"(?:: |, )([^,:]*::TIMESTAMP) if [a-z ]*{magnitude}", refused.stderr)
        assert invoke(*asked, code).exit_code == 0, code


def test_a_text_in_double_quotes_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"k": ["N/A", "x"], "gold": [0, 1], "pred": [0, 1]}).write_parquet("log.parquet")
    for option, sql in (("--filter", 'k != "N/A"'), ("--by", 'k = "N/A"'), ("--gold", 'k = "N/A"')):
        done = invoke("by", "log.parquet", option, sql)
        assert "no column 'N/A'. The columns are " in done.stderr
        assert done.stderr.endswith("A text is in single quotes: 'N/A'.\n")
        again = invoke("by", "log.parquet", option, sql.replace('"', "'"))
        assert "N/A" not in again.stderr or option == "--gold"

"""The command line: the main job on files, and its refusals."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

import polars_mcc
from polars_mcc._command import app

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
    return CliRunner().invoke(app, ["by", *arguments])


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
    [
        ["logs"],
        ["logs/"],
        ["logs/**/*.parquet"],
        ["logs/day=*"],
        ["logs/**"],
        ["logs", "logs/day=2026-01-01", "./logs/day=2026-01-01/part.parquet"],
        ["logs/day=2026-01-01", "logs/day=2026-01-02/part.parquet"],
    ],
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
        log.mcc.by("country", pred=["pred", "other"]),
    )
    assert_frame_equal(
        answer_of("logs", "--gold", "other", "--pred", "gold", "--weight", "n", "--nulls", "label"),
        log.mcc.score(gold="other", pred="gold", weight="n", nulls="label"),
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
    expected = polars_mcc.by(log, "country", pred="other", ci=0.9, method="fisher", cluster="day")
    assert_frame_equal(answer_of("logs", *options, "--cluster", "day"), expected)
    assert "give the level too, as ci=0.95" in refusal_of("logs", "--cluster", "day")
    assert "ci must be a confidence level" in refusal_of("logs", "--ci", "95")
    assert "no column 'dya' for cluster; did you mean" in refusal_of(
        "logs", "--ci", "0.9", "--cluster", "dya"
    )


@pytest.mark.usefixtures("logs")
def test_metrics():
    log = pl.read_parquet("logs", hive_partitioning=True)
    options = ("--by", "country", "--metric", "accuracy", "--metric", "tpr", "--positive", "a")
    expected = polars_mcc.by(log, "country", metrics=["accuracy", "tpr"], positive="a")
    assert_frame_equal(answer_of("logs", *options), expected)
    listed = CliRunner().invoke(app, ["metrics"])
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
        assert_frame_equal(found, polars_mcc.score(log, metrics="tp", positive=1))
    refusal = refusal_of("log.parquet", "--metric", "tp", "--positive", "x")
    assert "--positive 'x' is no label: gold 'gold' is Int64" in refusal


@pytest.mark.usefixtures("logs")
def test_compare():
    command = ["compare", "logs", "--a", "pred", "--b", "other", "--by", "country"]
    done = CliRunner().invoke(app, [*command, "--correction", "holm", "--out", "a.parquet"])
    assert done.exit_code == 0, done.output
    log = pl.read_parquet("logs")
    expected = polars_mcc.compare(log, "pred", "other", "country", correction="holm")
    assert_frame_equal(pl.read_parquet("a.parquet"), expected)
    both = CliRunner().invoke(app, [*command, "--b", "gold", "--weight", "n"])
    assert both.exit_code == 0, both.output
    assert "p_adjusted" in both.stdout
    assert both.stdout.count("gold") == 2
    refused = CliRunner().invoke(app, [*command, "--b", "pred"])
    assert refused.exit_code == 2
    assert refused.stderr == (
        "polars-mcc: logs: model 'pred' is the baseline; leave it out of those that are "
        "compared with it\n"
    )


def answered(*arguments: str) -> pl.DataFrame:
    done = CliRunner().invoke(app, [*arguments, "--out", "a.parquet"])
    assert done.exit_code == 0, done.output
    return pl.read_parquet("a.parquet")


@pytest.mark.usefixtures("logs")
def test_sets_and_windows():
    log = pl.read_parquet("logs", hive_partitioning=True)
    assert_frame_equal(
        answer_of("logs", "--by", "country", "--sets", "each", "--total", "--long"),
        log.mcc.by("country", sets="each", total=True, long=True),
    )
    assert_frame_equal(
        answer_of("logs", "--by", "country", "--by", "day", "--sets", "cube"),
        log.mcc.by("country", "day", sets="cube"),
    )
    assert_frame_equal(
        answer_of("logs", "--by", "country", "--index", "day", "--window", "2d", "--every", "1d"),
        log.mcc.by("country", index="day", window="2d", every="1d"),
    )
    assert "needs both an index and a window" in refusal_of("logs", "--window", "2d")


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
    found = answered(
        "worst", "log.parquet", "--by", "k", "--by", "j", "--top", "1", "--rank", "gap"
    )
    assert_frame_equal(found, planted.mcc.worst("k", "j", top=1, rank="gap", long=True))
    assert found.select("slice", "value").rows() == [("k", "1")]
    done = CliRunner().invoke(app, ["worst", "log.parquet", "--by", "k", "--depth", "0"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "depth must be an integer of at least 1, got 0" in done.stderr


def test_drift(planted):
    periods = ("--before", "day = DATE '2026-01-01'", "--after", "day > DATE '2026-01-01'")
    found = answered("drift", "log.parquet", *periods, "--by", "k")
    first = pl.date(2026, 1, 1)
    assert_frame_equal(found, planted.mcc.drift(pl.col("day") == first, pl.col("day") > first, "k"))
    done = CliRunner().invoke(app, ["drift", "log.parquet", "--before", "day ==", "--after", "k"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "polars-mcc: --before 'day ==': " in done.stderr


def test_curve(planted):
    found = answered("curve", "log.parquet", "--by", "k", "--thresholds", "5")
    assert_frame_equal(found, planted.mcc.curve("k", thresholds=5))
    best = answered("curve", "log.parquet", "--gold", "j", "--positive", "2", "--best")
    assert_frame_equal(best, planted.mcc.best_threshold(gold="j", positive=2))
    done = CliRunner().invoke(app, ["curve", "log.parquet", "--gold", "j", "--positive", "x"])
    assert (done.exit_code, done.stdout) == (2, "")


class TestCheck:
    def test_it_passes(self, planted):
        done = CliRunner().invoke(app, ["check", "log.parquet", "--by", "k", "--min", "0.1"])
        assert (done.exit_code, done.stdout) == (0, "4 slices pass\n")
        few = ["--by", "j", "--min", "0.1", "--min-n", "134"]
        done = CliRunner().invoke(app, ["check", "log.parquet", *few])
        assert (done.exit_code, done.stdout) == (0, "1 slices pass, 2 are not judged\n")
        judged = answered("check", "log.parquet", "--by", "k", "--min", "0.1")
        assert_frame_equal(judged, planted.mcc.check("k", min=0.1))

    @pytest.mark.usefixtures("planted")
    def test_it_fails_with_a_table(self):
        options = ["--by", "k", "--min", "0.6", "--min-n", "100", "--ci", "0.95"]
        done = CliRunner().invoke(app, ["check", "log.parquet", *options])
        assert done.exit_code == 1
        assert "1 of 4 slices fails: mcc below 0.6, surely (ci=0.95)" in done.stdout
        assert done.stdout.count("│ 1 ") == 1

    def test_a_baseline(self, planted):
        planted.with_columns(pred="gold").mcc.counts("k").write_parquet("counts.parquet")
        options = ["--by", "k", "--no-worse-than", "counts.parquet", "--ci", "0.99"]
        done = CliRunner().invoke(app, ["check", "log.parquet", *options])
        assert done.exit_code == 1
        assert "1 of 4 slices fails: mcc below that of the baseline, surely" in done.stdout

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ([], "check needs one of min="),
            (["--no-worse-than", "nope.parquet"], "no file 'nope.parquet'"),
            (["--no-worse-than", "log.parquet"], "no_worse_than is not the counts of these slices"),
            (["--min", "0.5", "--by", "kk"], "no column 'kk' for key"),
        ],
    )
    @pytest.mark.usefixtures("planted")
    def test_refusals_are_no_failures(self, options, message):
        done = CliRunner().invoke(app, ["check", "log.parquet", *options])
        assert (done.exit_code, done.stdout) == (2, "")
        assert message in done.stderr


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("arguments", "verb"),
    [
        (["score"], polars_mcc.score),
        (["score", "--metric", "kappa"], lambda f: polars_mcc.score(f, metrics="kappa")),
        (["score", "--ci", "0.9"], lambda f: polars_mcc.score(f, ci=0.9)),
        (["counts", "--by", "country"], lambda f: polars_mcc.counts(f, "country")),
        (["counts", "--weight", "n"], lambda f: polars_mcc.counts(f, weight="n")),
        (["classes", "--by", "country"], lambda f: polars_mcc.classes(f, "country")),
        (["confusion", "--by", "country"], lambda f: polars_mcc.confusion(f, "country")),
        (
            ["confusion", "--pred", "pred", "--pred", "other", "--nulls", "label"],
            lambda f: polars_mcc.confusion(f, pred=["pred", "other"], nulls="label"),
        ),
        (
            ["confusion", "--top", "1", "--weight", "n"],
            lambda f: polars_mcc.confusion(f, top=1, weight="n"),
        ),
        (
            ["confusion", "--long", "--normalize", "gold"],
            lambda f: polars_mcc.confusion(f, long=True, normalize="gold"),
        ),
    ],
)
def test_the_other_verbs(arguments, verb):
    command, *options = arguments
    done = CliRunner().invoke(app, [command, "logs", *options, "--out", "a.parquet"])
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
    expected = polars_mcc.score(pl.read_parquet("logs"), pred="other", metrics="f1_macro")
    assert_frame_equal(read(io.BytesIO(done.stdout_bytes)), expected, check_exact=True)
    assert done.stderr == ""
    named = polars_mcc_by("logs", "--pred", "other", "--format", form, "--out", "answer")
    assert named.exit_code == 0, named.output
    assert read("answer").height == 1


def test_markdown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = pl.DataFrame({"a|b": ["x|y", "<b>", "two\nlines"], "gold": 1, "pred": 1})
    log.write_parquet("log.parquet")
    done = polars_mcc_by("log.parquet", "--by", "a|b", "--format", "markdown")
    header, rule, *rows = done.stdout.splitlines()
    assert header.startswith(r"| a\|b ")
    assert set(rule) == {"|", "-"}
    assert [row.split(" ")[1] for row in rows] == ["&lt;b>", "two<br>lines", r"x\|y"]
    again = polars_mcc_by("log.parquet", "--by", "a|b", "--out", "answer.md")
    assert again.exit_code == 0, again.output
    assert (tmp_path / "answer.md").read_text() == done.stdout


def test_a_terminal_is_shown_no_controls_and_no_parquet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = pl.DataFrame({"key": ["\x1b[31mred"], "gold": 1, "pred": 1})
    log.write_parquet("log.parquet")
    to_a_file = polars_mcc_by("log.parquet", "--by", "key", "--format", "csv")
    assert "\x1b[31mred" in to_a_file.stdout
    monkeypatch.setattr("polars_mcc._command._is_terminal", lambda: True)
    shown = polars_mcc_by("log.parquet", "--by", "key", "--format", "csv")
    assert "\x1b" not in shown.stdout
    assert r"\x1b[31mred" in shown.stdout
    refused = polars_mcc_by("log.parquet", "--format", "parquet")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "a terminal cannot show parquet: add --out FILE" in refused.stderr


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


def test_other_files_in_a_folder_are_named(logs):
    (logs / "notes.txt").write_text("not a log")
    (logs / "_SUCCESS").touch()
    (logs / ".crc").touch()
    done = polars_mcc_by("logs")
    assert done.exit_code == 0
    assert done.stderr == "polars-mcc: not read, as not Parquet files: logs/notes.txt\n"


WRITE = {
    "csv": pl.DataFrame.write_csv,
    "ndjson": pl.DataFrame.write_ndjson,
    "jsonl": pl.DataFrame.write_ndjson,
    "arrow": pl.DataFrame.write_ipc,
    "feather": pl.DataFrame.write_ipc,
    "parquet": pl.DataFrame.write_parquet,
}


@pytest.mark.parametrize("suffix", WRITE)
def test_files_of_other_kinds(suffix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    for part in ("a", "b"):
        WRITE[suffix](ROWS.with_columns(extra=pl.lit(part)), f"logs/{part}.{suffix}")
    both = pl.concat([ROWS, ROWS])
    expected = polars_mcc.by(both, "country", weight="n")
    for paths in (["logs"], [f"logs/*.{suffix}"], [f"logs/a.{suffix}", f"logs/b.{suffix}"]):
        assert_frame_equal(answer_of(*paths, "--by", "country", "--weight", "n"), expected)
    assert "did you mean 'country'" in refusal_of("logs", "--by", "county")


@pytest.mark.parametrize("suffix", ["csv", "ndjson", "arrow", "parquet"])
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
    assert_frame_equal(pl.read_csv(done.stdout), polars_mcc.by(ROWS, "country"))


def test_kinds_that_do_not_go_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ROWS.write_csv("a.csv")
    ROWS.write_ndjson("b.ndjson")
    assert "of several kinds, CSV, NDJSON: score them apart" in refusal_of("a.csv", "b.ndjson")
    assert "folder '.' has files of several kinds, CSV, NDJSON" in refusal_of(".")
    assert "name no other file beside it" in refusal_of("-", "a.csv")
    ROWS.write_parquet("c.parquet")
    done = polars_mcc_by(".")
    assert done.stderr == "polars-mcc: not read, as not Parquet files: a.csv, b.ndjson\n"
    broken = tmp_path / "broken.arrow"
    broken.write_bytes(b"no arrow at all")
    assert "'broken.arrow' cannot be read as IPC" in refusal_of("broken.arrow")
    numbers = ROWS.with_columns(gold=pl.int_range(pl.len()))
    numbers.write_csv("d.csv")
    assert "column 'gold' is String in 'a.csv' but Int64 in 'd.csv'" in refusal_of("a.csv", "d.csv")


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
        assert (tmp_path / "answer.csv").read_text() == "as it was"
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
        (tmp_path / "empty/a.txt").touch()
        told = refusal_of("empty")
        assert "no .parquet file in folder 'empty'; name a Parquet file, a folder of" in told
        (tmp_path / "empty/a.txt").unlink()
        (tmp_path / "empty").rmdir()
        assert "no file 'nope.parquet'" in refusal_of("nope.parquet")
        assert "no file 'nope/*.parquet'" in refusal_of("nope/*.parquet")

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
        assert "'logs/day=2026-01-02/part.parquet'; write it alike, or score them apart" in told

    def test_files_without_a_column(self, logs):
        ROWS.drop("country").write_parquet(logs / "day=2026-01-02/part.parquet")
        told = refusal_of("logs", "--by", "country")
        assert "column 'country' is in 'logs/day=2026-01-01/part.parquet' but not in 'l" in told

    def test_a_bad_filter(self):
        assert "Boolean" in refusal_of("logs", "--filter", "n + 1")
        refusal_of("logs", "--filter", "SELECT ;")

    def test_a_bad_weight(self):
        pl.read_parquet("logs").with_columns(n=-pl.col("n")).write_parquet("w.parquet")
        told = refusal_of("w.parquet", "--weight", "n")
        assert "weight 'n' has or adds up to -" in told
        assert "expression" not in told

    def test_a_bad_out(self):
        assert "must end in one of .parquet, .csv, .json, .ndjson, .md" in refusal_of(
            "logs", out="a.xlsx"
        )
        assert "there is no folder 'nope'" in refusal_of("logs", out="nope/a.csv")


@pytest.mark.parametrize(
    "arguments", [["by"], ["by", "logs", "--nulls", "keep"], ["by", "logs", "--nope"], ["nope"]]
)
def test_usage_errors_exit_with_2(arguments):
    assert CliRunner().invoke(app, arguments).exit_code == 2


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
        "import sys; sys.modules['typer'] = None; sys.argv = ['polars-mcc', 'by'];"
        "from polars_mcc.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "needs typer, which is not installed; pip install 'polars-mcc[cli]'" in done.stderr


def test_the_shell_completes():
    """As a shell asks for it: verbs, and options."""
    words = {"polars-mcc rep": 1, "polars-mcc report logs --min": 3}
    told = {}
    for line, place in words.items():
        shell = {"COMP_WORDS": line, "COMP_CWORD": str(place)}
        environment = {**os.environ, "_POLARS_MCC_COMPLETE": "complete_bash", **shell}
        command = [sys.executable, "-m", "polars_mcc"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        told[line] = done.stdout.split()
    assert list(told.values()) == [["report"], ["--min-n"]]


@pytest.mark.parametrize("verb", [command.callback.__name__ for command in app.registered_commands])
def test_help_has_an_example(verb):
    done = CliRunner().invoke(app, [verb, "--help"])
    assert done.exit_code == 0
    assert f"polars-mcc {verb}" in done.output or verb == "metrics"

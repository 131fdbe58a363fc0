"""Labels in other files, from the command line."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from runner import invoke

from polars_mcc import PredictionLogWarning

PREDICTIONS = pl.DataFrame(
    {
        "id": ["007", "a", "b", "c", "d", None],
        "country": ["DE", "DE", "FR", "FR", "FR", "DE"],
        "day": [dt.date(2026, 3, day) for day in range(1, 7)],
        "pred": ["x", "y", "x", "y", "x", "x"],
    }
)
LABELS = pl.DataFrame(
    {"id": ["007", "a", "a", "b", "d"], "y": ["x", "x", "y", "y", "x"], "at": [1, 1, 2, 3, 4]}
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, frame in {"predictions": PREDICTIONS, "labels": LABELS}.items():
        (tmp_path / name).mkdir()
        for place in range(2):
            frame.gather_every(2, place).write_parquet(tmp_path / name / f"{place}.parquet")
    return tmp_path


OF_LABELS = ("--outcomes", "labels", "--on", "id", "--gold", "y", "--latest", "at")


def answer_of(command: str, *arguments: str) -> pl.DataFrame:
    done = invoke(command, "predictions", *OF_LABELS, *arguments, "--format", "parquet")
    assert done.exit_code == 0, done.stderr
    return pl.read_parquet(done.stdout_bytes)


def test_it_is_the_answer_of_python():
    log = PREDICTIONS.mcc(outcomes=LABELS, on="id", gold="y", latest="at")
    assert_frame_equal(answer_of("by", "--by", "country"), log.by("country"))
    assert_frame_equal(answer_of("score", "--ci", "0.95"), log.score(ci=0.95))
    assert answer_of("check", "--min", "-1")["n_waiting"].item() == 2


def test_sql_and_filters_are_of_the_frame_that_has_the_columns():
    typed = (
        "--outcomes",
        "labels",
        "--on",
        "id || '!'",
        "--gold",
        "upper(y)",
        "--latest",
        "at + 1",
    )
    done = invoke(
        *("by", "predictions", *typed, "--pred", "upper(pred)", "--filter", "country = 'DE'"),
        *("--format", "csv"),
    )
    assert done.stdout.splitlines()[-1].split(",")[0] == "2", done.output


def test_rows_of_some_age():
    young = answer_of("by", "--time", "day", "--min-age", "2d")
    assert young.select("n", "n_null").rows() == [(3, 1)]
    until = answer_of("by", "--time", "day", "--min-age", "2d", "--now", "2026-03-04")
    assert until.select("n", "n_null").rows() == [(2, 0)]


def test_a_report_tells_what_waits():
    asked = (*OF_LABELS, "--by", "country", "--time", "day", "--out", "page.md")
    done = invoke("report", "predictions", *asked)
    assert done.exit_code == 0, done.stderr
    page = Path("page.md").read_text("utf-8")
    assert "2 rows are not scored: the label y has not come." in page


def test_two_labels_are_an_error():
    done = invoke("by", "predictions", "--outcomes", "labels", "--on", "id", "--gold", "y")
    assert done.exit_code == 2
    assert "id a has two labels in 'y', 'x' and 'y'" in done.stderr


def test_files_of_text():
    PREDICTIONS.write_csv("predictions.csv")
    LABELS.write_csv("labels.csv")
    of_text = ("--outcomes", "labels.csv", *OF_LABELS[2:])
    done = invoke("by", "predictions.csv", *of_text, "--format", "csv")
    assert done.stdout.splitlines()[-1] == "4,0.5773502691896258,2,2", done.output
    PREDICTIONS[:1].write_csv("predictions.csv")
    differ = invoke("by", "predictions.csv", *of_text)
    assert "on 'id' is Int64 in the predictions and String in the outcomes" in differ.stderr
    assert "cast both, as in id::VARCHAR" in differ.stderr
    assert invoke("by", "predictions.csv", *of_text, "--text", "id", "--text", "y").exit_code == 0


def test_labels_that_are_known_unevenly_are_told():
    rows = {"id": [*range(400)], "pred": ["fraud", "ok"] * 200}
    pl.DataFrame(rows).write_parquet("log.parquet")
    labels = {"id": [*range(0, 400, 2), *range(1, 100, 2)], "y": [*["fraud"] * 200, *["ok"] * 50]}
    pl.DataFrame(labels).write_parquet("outcomes.parquet")
    for command in ("by", "check"):
        asked = ("--on", "id", "--gold", "y", *(["--min", "0"] if command == "check" else []))
        done = invoke(command, "log.parquet", "--outcomes", "outcomes.parquet", *asked)
        assert "known for 100 % of the rows predicted 'fraud', and for 25 % of" in done.stderr
        assert "use --nulls reweight; if" in done.stderr


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_predictions_that_share_an_id_are_told(suffix):
    """With the number that a DataFrame tells; of rows that are old enough."""
    twice = pl.concat([PREDICTIONS, PREDICTIONS[1:4], PREDICTIONS[2:3], PREDICTIONS[-1:]])
    for name, frame in {"twice": twice, "once": PREDICTIONS}.items():
        (frame.write_csv if suffix == "csv" else frame.write_parquet)(f"{name}.{suffix}")
    of_day = ("--time", "day" if suffix == "parquet" else "day::DATE", "--now", "2026-03-06")
    for age, n in {"0d": 7, "3d": 5, "5d": 0}.items():
        told = f"{n} predictions share their id ('id') with another"
        for command in (("by",), ("check", "--min", "-1")):
            asked = (*OF_LABELS, *of_day, "--min-age", age)
            done = invoke(command[0], f"twice.{suffix}", *command[1:], *asked)
            assert (told in done.stderr) == (n > 0), done.output
            assert "share" not in invoke(command[0], f"once.{suffix}", *command[1:], *asked).stderr
    with pytest.warns(PredictionLogWarning, match="7 predictions share their id"):
        twice.mcc(outcomes=LABELS, on="id", gold="y", latest="at")


def test_a_store_tells_of_which_day_its_newest_row_is():
    asked = (
        "counts",
        "predictions",
        *OF_LABELS,
        "--time",
        "day",
        "--by",
        "country",
        "--out",
        "store",
    )
    for recount in ("2d", "all"):
        done = invoke(*asked, "--recount", recount)
        assert "store: the newest row is of 2026-03-06\n" in done.stderr

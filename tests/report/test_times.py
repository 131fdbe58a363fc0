"""Raw times in a report are cut by day, week or month. The oracle cuts by plain Polars."""

from __future__ import annotations

import datetime as dt
import json

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from runner import invoke
from support import first, some_slow
from test_page import specs_of

from polars_mcc import bins
from polars_mcc._report import keys_counted_once

N = 900
I = pl.int_range(N)  # noqa: E741
START = dt.datetime(2026, 1, 7, 22, 30)


def log_over(days: int, *, zone: str | None = None, dtype: type = pl.Datetime) -> pl.DataFrame:
    """A log with a time of its own in nearly every row, over this many days; some are null."""
    seconds = I * (days * 86_400) // (N - 1)
    at = (pl.lit(START) + pl.duration(seconds=seconds)).dt.replace_time_zone(
        zone, ambiguous="earliest", non_existent="null"
    )
    gold = I.hash() % 3
    return pl.select(
        at=pl.when(I % 90 != 1).then(at.cast(dtype) if dtype == pl.Date else at),
        country=pl.lit(pl.Series(["DE", "FR"])).gather(I.hash(1) % 2),
        gold=gold,
        pred=pl.when(I.hash(2) % 4 == 0).then((gold + 1) % 3).otherwise(gold),
        other=pl.when(I.hash(3) % 5 == 0).then((gold + 1) % 3).otherwise(gold),
    )


CUTS = {13: ("1d", "%Y-%m-%d"), 90: ("1w", "%Y-%m-%d"), 400: ("1mo", "%Y-%m")}
KINDS = {
    "datetime": {},
    "zone": {"zone": "Europe/Berlin"},
    "date": {"dtype": pl.Date},
}


def section(report: dict, id_: str) -> dict:
    [found] = [one for one in report["sections"] if one["id"] == id_]
    return found


CASES = [(days, kind) for days in CUTS for kind in KINDS if (days, kind) != (13, "date")]


@pytest.mark.parametrize("case", first(1, some_slow(CASES, *CASES[1::2])), ids=str)
def test_a_raw_time_is_cut_as_plain_polars_cuts_it(case):
    days, kind = case
    unit, form = CUTS[days]
    log = log_over(days, **KINDS[kind])
    start = pl.col("at").dt.date().dt.truncate(unit).dt.to_string(form)
    by_hand = log.with_columns(at=start)
    models = ["pred", "other"]
    reports = [
        json.loads(frame.mcc(pred=models).report("at", "country", format="json"))
        for frame in (log, log.lazy())
    ]
    assert reports[0]["sections"] == reports[1]["sections"], "a lazy log is told the same"
    slices = by_hand.mcc(pred=models).by("at", metrics=["mcc", "accuracy", "f1_macro"], ci=0.95)
    told = section(reports[0], "by:at")
    rows = pl.DataFrame(told["rows"], infer_schema_length=None)
    shown = slices.select(rows.columns)
    assert_frame_equal(rows, shown, check_dtypes=False, abs_tol=1e-9)
    compared = by_hand.mcc(pred=models).compare("at")
    of_models = section(reports[0], "compared:at")
    rows = pl.DataFrame(of_models["rows"], infer_schema_length=None)
    assert_frame_equal(rows, compared, check_dtypes=False, abs_tol=1e-9)
    word = {"1d": "day", "1w": "week, which its Monday names", "1mo": "month"}[unit]
    for one in (told, of_models):
        assert f"at has many values, so it is cut by {word}." in one["notes"]
    assert f'bins("at", "{unit}")' in told["query"]
    by_query = eval(told["query"], {"log": log, "bins": bins})  # noqa: S307
    assert_frame_equal(by_query.select(shown.columns), shown)


def test_few_times_stay():
    log = log_over(40, dtype=pl.Date)
    told = section(json.loads(log.mcc.report("at", format="json")), "by:at")
    assert len(told["rows"]) == log["at"].n_unique()
    assert not any("cut by" in note for note in told["notes"])
    nights = log_over(500).with_columns(pl.col("at").dt.truncate("1mo"))
    told = section(json.loads(nights.mcc.report("at", format="json")), "by:at")
    assert len(told["rows"]) == nights["at"].n_unique()


@pytest.mark.slow
def test_counts_hold_days_not_times(monkeypatch):
    """A log with a time per row has as many counts as rows: then no pairs of keys are compared."""
    log = log_over(40).mcc(pred=["pred", "other"])
    expected = json.loads(log.report("at", "country", format="json"))
    monkeypatch.setattr(keys_counted_once, "_MAX_COUNTS", N - 200)
    found = json.loads(log.report("at", "country", format="json"))
    assert found["sections"] == expected["sections"]
    assert len(section(found, "compared:pairs of keys")["rows"]) == 12


@pytest.mark.slow
def test_a_page_draws_the_units_over_time(monkeypatch):
    log = log_over(400).mcc(pred=["pred", "other"])
    specs = specs_of(monkeypatch, log.report, "at")
    lines = [
        layer["encoding"]["x"]
        for spec in specs
        for layer in spec.get("layer", ())
        if layer["mark"]["type"] == "line"
    ]
    assert {(one["title"], one["type"]) for one in lines} == {("at", "temporal")}
    assert "at has many values, so it is cut by month." in log.report("at", format="md")


@pytest.mark.slow
def test_the_command_cuts_raw_times_too(tmp_path):
    log_over(90).write_parquet(tmp_path / "log.parquet")
    out = tmp_path / "report.json"
    done = invoke("report", str(tmp_path / "log.parquet"), "--by", "at", "--out", str(out))
    assert done.exit_code == 0, done.output
    told = section(json.loads(out.read_text("utf-8")), "by:at")
    expected = section(json.loads(log_over(90).mcc.report("at", format="json")), "by:at")
    assert told["rows"] == expected["rows"]
    assert len(told["rows"]) == 15

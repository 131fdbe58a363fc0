"""What `changes` does not look at: changes that somebody has seen, and labels that are to come."""

from __future__ import annotations

import datetime as dt
import io

import duckdb
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from runner import invoke
from support import first

import polars_mcc  # noqa: F401 - registers the namespace
from polars_mcc import PredictionLog, bins, each, keep_counts, rollup

START, FALL = dt.date(2026, 3, 1), dt.date(2026, 3, 21)
TEXTS = {"null": None, "empty": "", "digits": "01", "quoted": 'a,"b"\n'}


def made_log() -> pl.DataFrame:
    """From FALL on, the model is worse where the code is 1. All keys have a value per code."""
    draw = np.random.default_rng(1)
    n = 12_000
    day, code, gold = (draw.integers(0, high, n) for high in (40, 3, 2))
    is_right = draw.random(n) < np.where((day >= 20) & (code == 1), 0.6, 0.9)
    rows = {"id": range(n), "d": day, "code": code, "gold": gold}
    log = pl.DataFrame(rows | {"pred": np.where(is_right, gold, 1 - gold)})
    of_code, days = pl.duration(days="code", microseconds="code"), pl.duration(days="d", hours=5)
    return log.with_columns(
        other="pred",
        day=pl.lit(START) + pl.duration(days="d"),
        ts=pl.datetime(2026, 3, 1, time_zone="Europe/Berlin") + days,
        is_one=pl.col("code") == 1,
        third=pl.col("code") / 3,
        price=pl.col("code").cast(pl.Decimal(10, 2)),
        date=pl.date(2025, 1, 1) + pl.duration(days="code"),
        at=pl.datetime(2025, 1, 1) + of_code,
        at_utc=pl.datetime(2025, 1, 1, time_zone="UTC") + of_code,
        clock=pl.time("code", 3),
        enum=pl.Series(["DE", "FR", "IT"], dtype=pl.Enum(["IT", "FR", "DE"])).gather(code),
        **{
            name: pl.col("code").replace_strict([0, 1, 2], ["DE", text, "NA"])
            for name, text in TEXTS.items()
        },
    )


LOG = made_log()
PLAIN = [
    *("null", "at_utc", "code", "is_one", "third", "price", "date", "at", "clock", "enum"),
    *(name for name in TEXTS if name != "null"),
]
KEYS = {
    "crossed": ["null", "date"],
    "each": [each("null", "date", "is_one")],
    **{name: [name] for name in PLAIN},
    "no key": [],
    "bins of numbers": [bins("third", 2)],
    "bins of times": [bins("at_utc", "1d")],
    "rollup": [rollup("code", "null")],
}
FORMS = {
    "as it is": lambda found: found,
    "no verdict": lambda found: changed(found).drop("verdict", "p_value", "n_before").lazy(),
    "CSV": lambda found: pl.read_csv(io.StringIO(found.write_csv()), infer_schema=False),
    "NDJSON": lambda found: pl.read_ndjson(io.StringIO(found.write_ndjson())),
}


def changed(found: pl.DataFrame) -> pl.DataFrame:
    return found.filter(pl.col("verdict").cast(pl.String).is_in(["worse", "better"]))


@pytest.mark.parametrize("keys", first(6, KEYS))
def test_rows_before_a_known_change_are_not_looked_at(keys):
    """The answer is that of the rows that are left: of code 1, those from the change on."""
    for time in ("ts", "day"):
        log = LOG.mcc(time=time)
        found = log.changes(*KEYS[keys])
        since = changed(found)["since"].unique().to_list()
        assert [str(day)[:10] for day in since] == [str(FALL)]
        is_left = (pl.col("code") != 1) | (pl.col(time) >= since[0])
        expected = LOG.filter(is_left).mcc(time=time).changes(keys) if keys in PLAIN else None
        for form, known in FORMS.items():
            # read_csv reads an empty text as null: the shell does not, see below.
            if (form == "CSV") == (time == "ts") and (keys, form) != ("empty", "CSV"):
                again = log.changes(*KEYS[keys], known=known(found))
                assert changed(again).is_empty(), form
                assert again.height == found.height, form
                if expected is not None:
                    assert_frame_equal(again, expected)


FILES = [("null", "parquet"), ("at_utc", "ndjson"), *((key, "csv") for key in PLAIN)]


@pytest.mark.parametrize(("key", "form"), first(4, FILES, of_several=True))
def test_the_shell_takes_its_own_answer(key, form, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    LOG.write_parquet("log.parquet")
    asked = ("changes", "log.parquet", "--by", key, "--time", "ts", "--false-alarms", "1y")
    assert invoke(*asked, "--out", f"seen.{form}").exit_code == 1
    done = invoke(*asked, "--known", f"seen.{form}", "--format", "parquet")
    assert done.exit_code == 0, done.stderr
    log = LOG.mcc(time="ts")
    known = log.changes(key, false_alarms="1y")
    expected = log.changes(key, false_alarms="1y", known=known)
    assert_frame_equal(
        pl.read_parquet(done.stdout_bytes),
        expected.cast({"verdict": pl.String}),
        check_dtypes=False,
    )


def test_only_the_newest_change_of_a_slice_counts():
    """Rows of other slices, models and verdicts, and without a time, count for nothing."""
    log = LOG.mcc(pred=["pred", "other"], time="day")
    days = [dt.date(2026, 3, 5), FALL, dt.date(2026, 3, 10), dt.date(2026, 4, 1), None]
    models, codes = ["pred", "pred", "pred", "pred", "pred"], [1, 1, 7, 0, 1]
    verdicts = ["worse", "better", "worse", "no change", "worse"]
    known = pl.DataFrame({"code": codes, "model": models, "since": days, "verdict": verdicts})
    left = {(code, "pred"): START for code in (0, 2)} | {(1, "pred"): FALL}
    for (code, model), start in (left | {(code, "other"): START for code in (0, 1, 2)}).items():
        of_slice = (pl.col("code") == code) & (pl.col("day") >= start)
        alone = LOG.filter(of_slice).mcc(pred=model, time="day").changes(correction="bonferroni")
        found = log.changes("code", known=known).filter(code=code, model=model)
        assert_frame_equal(
            found.select(alone.columns).drop("p_adjusted", "verdict"),
            alone.drop("p_adjusted", "verdict"),
        )


def test_a_day_is_typed_as_a_user_writes_it():
    """In the zone of the time, beside rows of an earlier answer."""
    log = LOG.mcc(time="ts")
    rows = {"code": ["0", "1"], "since": ["2026-03-02T00:00:00.000000+0100", "2026-03-21"]}
    again = log.changes("code", known=pl.DataFrame(rows))
    assert changed(again).is_empty()
    assert again.filter(code=0).select(pl.sum_horizontal("n_before", "n_after")).item() == (
        LOG.filter(pl.col("code") == 0, pl.col("day") >= dt.date(2026, 3, 2)).height
    )
    for rows, message in (
        (
            {"code": ["O"], "since": ["2026-03-21"]},
            "known has 'O' in column 'code', which is no Int64",
        ),
        (
            {"code": ["1"], "since": ["21.3.2026"]},
            "known has '21.3.2026' in column 'since', which is no Datetime",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            log.changes("code", known=pl.DataFrame(rows))
    of_text = LOG.with_columns(code=pl.format("0{}", "code")).mcc(time="ts")
    with pytest.raises(pl.exceptions.SchemaError, match="Int64 in column 'code', which is text"):
        of_text.changes("code", known=pl.DataFrame({"code": [1], "since": [FALL]}))


@pytest.mark.parametrize("known", [pl.DataFrame({"since": [FALL]}), pl.DataFrame({"code": [1]})])
def test_the_keys_and_since_are_needed(known):
    [name] = {"code", "since"} - {*known.columns}
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match=f"known has no column '{name}'"):
        LOG.mcc(time="day").changes("code", known=known)


def test_a_first_night_has_no_changes_yet(tmp_path, monkeypatch):
    """A file that is missing is an error; the first line of one is enough."""
    monkeypatch.chdir(tmp_path)
    LOG.write_parquet("log.parquet")
    asked = ("changes", "log.parquet", "--by", "code", "--time", "day", "--format", "parquet")
    done = invoke(*asked, "--known", "seen.csv")
    assert done.exit_code == 2
    assert "'seen.csv': no file for --known: begin one with a line of the keys" in done.stderr
    (tmp_path / "seen.csv").write_text("code,since\n")
    done = invoke(*asked, "--known", "seen.csv")
    assert done.exit_code == 0
    found = pl.read_parquet(done.stdout_bytes).cast({"verdict": pl.String})
    expected = LOG.mcc(time="day").changes("code")
    assert_frame_equal(found, expected.cast({"verdict": pl.String}))
    empty = pl.DataFrame(schema={"code": pl.Int64, "since": pl.Date})
    assert_frame_equal(LOG.mcc(time="day").changes("code", known=empty), expected)


LATE = "labels come later here, .* as in "
OUTCOMES = LOG.select("id", "gold", "day").filter(
    # A label comes within a week, and one of twenty never does.
    pl.col("day") + pl.duration(days=pl.col("id") % 7) <= dt.date(2026, 4, 9),
    pl.col("id") % 20 > 0,
)
PREDICTIONS = LOG.drop("gold")


def logs_of(folder):
    """The same log as a frame, a lazy frame, a store, and a frame that says that rows wait."""
    labels = OUTCOMES.drop("day")
    PREDICTIONS.write_parquet(folder / "log.parquet")
    labels.write_parquet(folder / "labels.parquet")
    log, of_labels, store = (
        str(folder / name) for name in ("log.parquet", "labels.parquet", "store")
    )
    late = {"on": "id", "time": "day"}
    keep_counts(log, store, "code", "day", **late, outcomes=of_labels, recount="7d")
    return {
        "frame": PREDICTIONS.mcc(**late, outcomes=labels),
        "lazy": PREDICTIONS.lazy().mcc(**late, outcomes=labels.lazy()),
        "store": PredictionLog.from_store(store)(time="day"),
        "joined": PREDICTIONS.join(labels, on="id", how="left").mcc(waiting=True, time="day"),
    }


def test_labels_that_come_later_need_an_age(tmp_path):
    """With one, the answer is that of the rows of this age."""
    is_old = pl.col("day") <= dt.date(2026, 4, 2)
    is_known = pl.col("id").is_in(OUTCOMES["id"].implode())
    old = PREDICTIONS.filter(is_old).join(OUTCOMES.drop("day"), on="id", how="left")
    expected = old.mcc(time="day").changes("code")
    for log in logs_of(tmp_path).values():
        with pytest.raises(ValueError, match=f"{LATE}min_age='30d'"):
            log.changes("code")
        found = log(min_age="7d").changes("code").lazy().collect()
        assert_frame_equal(found.drop("n_waiting"), expected)
        for code, n_waiting in found.select("code", "n_waiting").iter_rows():
            waiting = LOG.filter(is_old, ~is_known, pl.col("code") == code)
            assert n_waiting == waiting.height > 100


def test_in_the_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = logs_of(tmp_path)["frame"](min_age="7d").changes("code").cast({"verdict": pl.String})
    for paths in (["store"], ["log.parquet", "--outcomes", "labels.parquet", "--on", "id"]):
        asked = ("changes", *paths, "--by", "code", "--time", "day", "--format", "parquet")
        done = invoke(*asked)
        assert done.exit_code == 2
        assert done.stderr.endswith("as in --min-age 30d\n")
        done = invoke(*asked, "--min-age", "7d")
        found = pl.read_parquet(done.stdout_bytes).cast({"verdict": pl.String})
        assert_frame_equal(found, expected)


def test_another_engine_joins_the_labels_that_are_old_enough():
    engine = duckdb.connect()
    frames = {"frame": PREDICTIONS, "outcomes": OUTCOMES.drop("day")}
    frames = {
        name: engine.from_arrow(frame.drop("clock", strict=False).to_arrow())
        for name, frame in frames.items()
    }
    log = PredictionLog(**frames, on="id", time="day")
    with pytest.raises(ValueError, match="filter the old rows, and leave outcomes out"):
        log.changes("code", every=None)

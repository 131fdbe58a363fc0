"""What `--out` writes is read again: each format, with keys of each dtype."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from itertools import chain, cycle

import numpy as np
import polars as pl
from polars.testing import assert_frame_equal
from runner import invoke

ZONE = "Europe/Berlin"
NIGHT = dt.datetime(2026, 10, 25, 0, 30, tzinfo=dt.UTC)  # 02:30 in Berlin, as an hour later
KEYS = [
    pl.Series(["", "null", "01"]),
    pl.Series([None, 'a,"b"\n', "NaN"], dtype=pl.Categorical),
    pl.Series(["a", None, "01"], dtype=pl.Enum(["01", "a"])),
    pl.Series([True, None, False]),
    pl.Series([2**64 - 1, 0, None], dtype=pl.UInt64),
    pl.Series([2**100, 2**100 + 1, None], dtype=pl.Int128),
    pl.Series([math.nan, None, 0.1 + 0.2]),
    pl.Series([math.inf, -math.inf, 1.0]),
    pl.Series([0.1, None, 1e30], dtype=pl.Float32),
    pl.Series(["1.10", "2", None]).cast(pl.Decimal(30, 20)),
    pl.Series([b"", b"\xff\x00", None]),
    pl.Series([dt.date(2026, 1, 1), None, dt.date(2026, 1, 2)]),
    pl.Series([dt.time(1), dt.time(1, 0, 0, 1), None]),
    pl.Series([0, 1, 10**18], dtype=pl.Datetime("ns")),
    pl.Series([NIGHT, NIGHT + dt.timedelta(hours=1), None], dtype=pl.Datetime("ms", ZONE)),
    pl.Series([-90_000_000_001, 0, 86_400_000_000_000], dtype=pl.Duration("ns")),
    pl.Series([dt.timedelta(1), None, dt.timedelta(0, -90.5)], dtype=pl.Duration("ms")),
    pl.Series([["a, b"], ["a", "b"], None]),
    pl.Series([[math.nan, 0.5], [None], []], dtype=pl.List(pl.Float64)),
    pl.Series([[b"\x00"], [None], None], dtype=pl.List(pl.Binary)),
    pl.Series([[dt.date(2026, 1, 1)], [None], None], dtype=pl.Array(pl.Date, 1)),
    pl.Series(
        [{"a": 1, "b": [dt.timedelta(1)]}, {"a": None, "b": None}, None],
        dtype=pl.Struct({"a": pl.Int8, "b": pl.List(pl.Duration("us"))}),
    ),
]
FORMATS = ["csv", "json", "ndjson", "parquet"]
ROWS = 400


def log_of(*keys: pl.Series) -> pl.DataFrame:
    """From the 20th of 40 days on, the model is worse where a key has its first value."""
    draw = np.random.default_rng(0)
    code, day = np.arange(3 * ROWS) % 3, np.arange(3 * ROWS) % 40
    gold = draw.integers(0, 2, 3 * ROWS)
    is_right = draw.random(3 * ROWS) < np.where((day >= 20) & (code == 0), 0.5, 0.95)
    return pl.DataFrame(
        {
            **{f"k{place}": key.gather(code) for place, key in enumerate(keys)},
            "gold": gold,
            "pred": np.where(is_right, gold, 1 - gold),
            "code": code,
            "ts": [dt.date(2026, 1, 1) + dt.timedelta(int(one)) for one in day],
        }
    )


def test_every_format_is_read_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = log_of(*KEYS)
    log.write_parquet("log.parquet")
    names = [f"k{place}" for place in range(len(KEYS))]
    asked = ("log.parquet", "--by", f"each({', '.join(names)})")
    crossed = ("log.parquet", *chain.from_iterable(("--by", name) for name in names))
    reached = 0
    for form in FORMATS:
        assert invoke("counts", *crossed, "--out", f"c.{form}").exit_code == 0
        as_good = ("--no-worse-than", f"c.{form}", "--min-n", "1", "--format", "parquet")
        done = invoke("check", *asked, *as_good)
        assert (done.exit_code, done.stderr) == (0, ""), form
        judged = pl.read_parquet(done.stdout_bytes)
        assert judged["n_before"].to_list() == judged["n_after"].to_list() == [ROWS] * 3 * len(KEYS)
    # Keys share rows, and a single key is worse. CSV has no dtypes, so each key is read from CSV.
    for name, other in zip(names, cycle(["json", "csv", "ndjson", "csv", "parquet"]), strict=False):
        found = log.mcc(time="ts").changes(name)
        [since] = found.filter(verdict="worse")["since"]
        rest = log.filter((pl.col("code") > 0) | (pl.col("ts") >= since))
        expected = rest.mcc(time="ts").changes(name).cast({"verdict": pl.String})
        assert expected.filter(verdict="worse").is_empty()
        changes = ("changes", "log.parquet", "--by", name, "--time", "ts")
        for form in {"csv", other}:
            assert invoke(*changes, "--out", f"seen.{form}").exit_code == 0
            done = invoke(*changes, "--known", f"seen.{form}", "--format", "parquet")
            assert (done.exit_code, done.stderr) == (0, ""), form
            again = pl.read_parquet(done.stdout_bytes)
            assert_frame_equal(again, expected, check_dtypes=False, check_row_order=False)
            reached += again.height
    assert reached == 3 * (22 + 13)


def test_a_float_of_counts_and_a_label_are_read_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = [pl.Series([dt.timedelta(0), dt.timedelta(1)]), pl.Series([0.5, 1e300])]
    labels += [pl.Series(["01", "1"]), pl.Series([Decimal("1.10"), Decimal("2.00")])]
    reached = 0
    for label in labels:
        gold, pred = (label.gather([0, 1, at, 1, 0]) for at in (0, 1))
        pl.DataFrame({"gold": gold, "pred": pred}).write_parquet("log.parquet")
        for form in FORMATS:
            assert invoke("counts", "log.parquet", "--out", f"c.{form}").exit_code == 0
            done = invoke("check", "log.parquet", "--no-worse-than", f"c.{form}", "--min-n", "1")
            assert done.exit_code == 0, done.stderr
            assert done.stdout.startswith(
                "mcc minus the baseline 0.000, at least 0: passes, 1 slice,"
            )
            reached += 1
    assert reached == 16


def test_a_text_that_is_no_value_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log_of(pl.Series([dt.timedelta(1), None, None])).write_parquet("log.parquet")
    (tmp_path / "c.csv").write_text("k0,gold,pred,n\n1 day,0,0,3\n")
    done = invoke("check", "log.parquet", "--by", "k0", "--no-worse-than", "c.csv")
    assert done.exit_code == 2
    assert "the file has '1 day' in column 'k0', which is no Duration" in done.stderr


def test_a_bad_answer_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log_of(KEYS[0]).write_parquet("log.parquet")
    changes = ("changes", "log.parquet", "--by", "k0", "--time", "ts", "--format", "csv")
    texts = {"cut.json": "[{", "object.json": '{"a":1}', "bom.ndjson": '\ufeff{"a":1}\n'}
    texts |= {"other.csv": "a,b\n1,2\n", "quote.csv": 'k0,since\nx,"2026\n'}
    texts |= {"date.csv": "k0,since\nx,2026-13-77\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
        check = ("check", "log.parquet", "--by", "k0", "--no-worse-than", name)
        for asked in ((*changes, "--known", name), check):
            done = invoke(*asked)
            assert done.exit_code == 2
            assert done.stderr.startswith(f"polars-mcc: '{name}'"), done.stderr
    (tmp_path / "none.json").write_text("[]")
    (tmp_path / "none.ndjson").write_text("")
    known = {invoke(*changes, "--known", f"none.{form}").stdout for form in ("json", "ndjson")}
    assert known == {invoke(*changes).stdout}

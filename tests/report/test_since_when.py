"""A report says since when slices are worse: with the numbers of sklearn, and nothing else."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import polars as pl
import pytest
from runner import invoke
from sklearn.metrics import matthews_corrcoef
from support import first, in_turn
from test_page import specs_of

START = dt.datetime(2026, 2, 15, 5)
DAYS, OF_DAY = 40, 120


def log_of(fall: float = 0.45, common: tuple[float, float] = (0.25, 0.25)) -> pl.DataFrame:
    """Three countries. From day 25 on, DE errs more, and label 1 may be more common."""
    rng = np.random.default_rng(3)
    day = np.repeat(np.arange(DAYS), OF_DAY)
    country = rng.choice(["DE", "FR", "IT"], len(day))
    is_late = day >= 25
    gold = (rng.random(len(day)) < np.where(is_late, common[1], common[0])).astype(int)
    errs = np.where(is_late & (country == "DE"), fall, 0.08)
    pred = np.where(rng.random(len(day)) < errs, 1 - gold, gold)
    frame = pl.DataFrame({"country": country, "gold": gold, "pred": pred, "number": day})
    return frame.with_columns(
        ts=pl.lit(START) + pl.duration(days="number"),
        device=pl.int_range(pl.len()).hash(1) % 2,
    )


def told(log, *keys, **options) -> tuple[list[str], dict | None]:
    """The sentence of the verdict on changes, and the section."""
    report = json.loads(log.report(*keys, format="json", **options))
    texts = [one["text"] for one in report["verdict"] if one["kind"] == "changes"]
    assert all(one["section"] == "since" for one in report["verdict"] if one["text"] in texts)
    sections = [section for section in report["sections"] if section["id"] == "since"]
    sentences = [text.replace("\u00a0", " ") for text in texts]
    return sentences, sections[0] if sections else None


def mcc(rows: pl.DataFrame) -> float:
    return matthews_corrcoef(rows["gold"], rows["pred"])


def explained(rows: pl.DataFrame, whole: pl.DataFrame) -> float:
    """The MCC of rows if each gold label were predicted as in all rows of the slice."""
    gold, pred, weight = [], [], []
    for label in (0, 1):
        of_label = whole.filter(gold=label)
        for other in (0, 1):
            gold.append(label)
            pred.append(other)
            share = of_label.filter(pred=other).height / of_label.height
            weight.append(rows.filter(gold=label).height * share)
    return matthews_corrcoef(gold, pred, sample_weight=weight)


def test_the_sentence_has_the_scores_of_the_rows():
    log = log_of()
    texts, section = told(log.mcc(time="ts"), "country", "device", "ts")
    of_slices, names = [log.filter(country="DE")], ["country = DE"]
    parts = {row["slice"]: row["part_of"] for row in section["rows"] if row["part_of"]}
    assert parts == dict.fromkeys(["all rows", "device = 0", "device = 1"], "country = DE")
    since = {row["slice"]: row["since"] for row in section["rows"]}
    assert since["country = DE"] == "2026-03-12"
    healthy = {"country = FR", "country = IT"}
    assert {*since} == {*names, *parts, *healthy}, "no slice is of times"
    told_of = {row["slice"]: row for row in section["rows"]}
    for name, rows in zip(names, of_slices, strict=True):
        is_after = pl.col("ts").dt.date() >= dt.date.fromisoformat(since[name])
        before, after = rows.filter(~is_after), rows.filter(is_after)
        row, given = told_of[name], mcc(before) + explained(after, rows) - explained(before, rows)
        assert row["verdict"] == "worse"
        assert row["score"] == pytest.approx(mcc(after))
        assert row["reference"] == pytest.approx(mcc(before))
        assert row["score"] - row["diff"] == pytest.approx(given)
    [text], row = texts, told_of["country = DE"]
    assert text == (
        "1 of 6 slices (all rows, each key) became worse on some day: since 2026-03-12, "
        f"country = DE has MCC {row['score']:.3f}, {row['reference']:.3f} before (p < 0.001)."
    )
    expected = log.mcc(time="ts").changes("country")
    assert section["query"].endswith(
        '.changes(each("country", "device", total=True), min_n=30, ci=0.95)'
    )
    assert expected["since"][0].date().isoformat() == since["country = DE"]


def test_no_change_is_said_and_so_is_a_moved_mix():
    texts, section = told(log_of(0.08).mcc(time="ts"), "country")
    assert texts == ["No change: none of 4 slices (all rows, each key) became worse on some day."]
    assert {row["verdict"] for row in section["rows"]} == {"no change"}
    log = log_of(0.08, (0.5, 0.02)).mcc(time="ts")
    texts, section = told(log)
    [text] = texts
    none = "No change: none of 1 slice (all rows) became worse on some day"
    assert text.startswith(f"{none}, though MCC moved")
    assert section["rows"][0]["verdict"] == "labels moved"
    few, _ = told(log_of().mcc(time="ts"), min_n=10**6)
    assert few == ["No slice has enough rows to say since when it is worse."]


def test_a_log_that_cannot_say_it_says_why():
    log = log_of()
    labels = log.with_row_index("id").select("id", label="gold").filter(pl.col("id") % 9 > 0)
    late = log.with_row_index("id").drop("gold")
    joined = late.mcc(gold="label", outcomes=labels, on="id", time="ts")
    texts, section = told(joined, "country")
    assert len(texts) == 1
    assert texts[0].startswith("Since when slices are worse is not known: labels come later here")
    assert section["rows"] == []
    assert section["notes"][0] in texts[0]
    users = log.mcc(time="ts", cluster=pl.int_range(pl.len()) // 3)
    [text], _ = told(users, "country")
    assert "not known: changes does not support cluster" in text
    named = log.rename({"country": "verdict"}).mcc(time="ts")
    [text], _ = told(named, "verdict")
    assert "key 'verdict' has the name of a column of the answer" in text


def test_without_a_time_nothing_is_said():
    assert told(log_of().mcc, "country", "ts") == ([], None)


@pytest.mark.parametrize("kind", first(2, ["lazy", "models", "slice", "null time"]))
def test_logs_of_other_kinds(kind):
    log, key = log_of(), "country"
    described = {"time": "ts"}
    if kind == "lazy":
        log = log.lazy()
    elif kind == "models":
        log = log.with_columns(good=pl.col("pred").shift(1).fill_null(0))
        described["pred"] = ["pred", "good"]
    elif kind == "slice":
        log, key = log.rename({"country": "slice"}), "slice"
    else:
        log = log.with_columns(ts=pl.when(pl.col("device") == 0).then("ts"))
    texts, section = told(log.mcc(**described), key)
    model = " (pred)" if kind == "models" else ""
    assert f"since 2026-03-12, {key} = DE{model} has MCC 0." in texts[0]
    assert ("Rows without a time are not used." in section["notes"]) == (kind == "null time")


def test_the_page_draws_the_surest_and_markdown_has_the_table(tmp_path, monkeypatch):
    log = log_of().mcc(time="ts")
    specs = specs_of(monkeypatch, log.report, "country", "device")
    drawn = [
        spec for spec in specs if "rect" in [one["mark"]["type"] for one in spec.get("layer", ())]
    ]
    titles = [
        spec["title"]["text"][0]
        for spec in drawn
        if "encoding" in spec["layer"][0] and "text" in spec.get("title", {})
    ]
    assert titles[0] == "country = DE, since 2026-03-12: worse"
    assert len(titles) == 1
    text = log.report("country", format="md")
    assert "<summary>Since when</summary>" in text
    assert ": since 2026-03-12, country = DE has MCC 0." in text
    log_of().write_parquet(tmp_path / "log.parquet")
    out = tmp_path / "report.json"
    command = ["report", str(tmp_path / "log.parquet"), "--by", "country", "--time", "ts"]
    done = invoke(*command, "--out", str(out))
    assert done.exit_code == 0, done.output
    [of_file] = [
        one for one in json.loads(out.read_text("utf-8"))["sections"] if one["id"] == "since"
    ]
    assert of_file["rows"] == told(log, "country")[1]["rows"]


@in_turn(
    **{
        "key, word": [
            (pl.Series([dt.timedelta(minutes=90), dt.timedelta(0), None]), "1h 30m"),
            (pl.Series([dt.time(1, 0, 0, 1), dt.time(1), None]), "01:00:00.000001"),
            (pl.Series([b"\xff", b"", None]), "ff"),
            (pl.Series([[dt.timedelta(1)], [], None]), '["1d"]'),
            (pl.Series([{"a": b"\xff"}, {"a": None}, None]), '{"a": "ff"}'),
        ],
        "form": ["html", "md", "json"],
    }
)
def test_a_key_of_any_dtype_has_a_page(key, word, form):
    draw = np.random.default_rng(1)
    code, day = np.arange(3600) % 3, np.arange(3600) // 3 % 40
    gold = draw.integers(0, 2, 3600)
    is_right = draw.random(3600) < np.where((day >= 20) & (code == 0), 0.5, 0.95)
    log = pl.DataFrame({"gold": gold, "pred": np.where(is_right, gold, 1 - gold)})
    log = log.with_columns(ts=pl.lit(START) + pl.duration(days=pl.Series(day)))
    page = (
        log.with_columns(key=key.gather(code)).mcc(time="ts").report("key", format=form, min_n=30)
    )
    plain = page.replace("\\", "").replace("&quot;", '"').replace("&#34;", '"')
    assert f"key = {word}" in plain


def test_one_failure_is_one_sentence_and_the_worst_slices_are_asked_too():
    """A version fails on one device: neither is the slice that the report is asked for."""
    draw = np.random.default_rng(2)
    day, version, device = (draw.integers(0, high, 20_000) for high in (60, 3, 3))
    gold = draw.integers(0, 2, 20_000)
    is_wrong = draw.random(20_000) < np.where(
        (version == 2) & (device == 1) & (day >= 40), 0.4, 0.06
    )
    log = pl.DataFrame({"version": version, "device": device, "country": day % 2, "gold": gold})
    log = log.with_columns(
        pred=pl.Series(np.where(is_wrong, 1 - gold, gold)),
        ts=pl.lit(dt.datetime(2026, 3, 1, 5)) + pl.duration(days=pl.Series(day)),
    )
    keys = "version", "device", "country"
    texts, section = told(log.mcc(time="ts"), *keys, "ts")
    name = "version = 2 and device = 1"
    asked = "all rows, each key, version × device"
    start = f"1 of 18 slices ({asked}) became worse on some day: since 2026-04-10, "
    assert texts[0].startswith(f"{start}{name} has MCC ")
    alone = log.filter(version=2, device=1)
    is_after = pl.col("ts") >= dt.datetime(2026, 4, 10)
    scores = mcc(alone.filter(is_after)), mcc(alone.filter(~is_after))
    assert f"MCC {scores[0]:.3f}, {scores[1]:.3f} before" in texts[0]
    parts = [row for row in section["rows"] if row["verdict"] == "part of"]
    assert len(parts) == 5
    assert {row["part_of"] for row in parts} == {name}
    page = log.mcc(time="ts").report(*keys, "ts")
    assert page.count(f"{name}, since 2026-04-10") >= 1
    alone, _ = told(log.mcc(time="ts"), *keys, depth=1)
    assert alone[0].startswith("1 of ")

"""The report as Markdown and as JSON: the same verdict and the same tables as the page."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys

import polars as pl
import pytest
from support import first, some_slow
from test_page import HOSTILE, hostile_log

import polars_mcc


def digits():
    return pl.scan_parquet("data/digits.parquet").mcc(pred=["logistic", "knn"])


@pytest.mark.slow
def test_json_has_all_digits():
    found = json.loads(digits().report("ink_band", format="json", title="Monday"))
    assert found["title"] == "Monday"
    assert [found[name] for name in ("metric", "ci", "models", "keys")] == [
        *("mcc", 0.95, ["logistic", "knn"], ["ink_band"])
    ]
    sections = {section["id"]: section for section in found["sections"]}
    total = digits().score(ci=0.95).collect()
    rows = sections["total"]["rows"]
    assert [row["mcc_low"] for row in rows] == total["mcc_low"].to_list()
    query = sections["by:ink_band"]["query"]
    frame = pl.scan_parquet("data/digits.parquet")
    slices = eval(query, {"log": frame}).collect().sort("ink_band", "model")  # noqa: S307
    told = pl.DataFrame(sections["by:ink_band"]["rows"]).sort("ink_band", "model")
    assert (
        told["mcc"].to_list()
        == slices.sort(pl.col("ink_band").cast(pl.String), "model")["mcc"].to_list()
    )
    assert f"polars_mcc {polars_mcc.__version__}" in found["made"]["versions"]


def test_markdown_has_the_verdict_and_the_tables():
    text = digits().report("ink_band", "day", format="md", title="Monday")
    assert text.startswith("## Monday\n\n- logistic: MCC is 0.941 ")
    assert text.count("<details>") == text.count("</details>")
    assert "<summary>By ink_band</summary>" in text
    assert "The last 20 of 60 rows." in text
    table = re.search(r"\n\n(\| model .*?)\n\n", text, re.DOTALL)[1]
    head, rule, *rows = table.splitlines()
    assert head.startswith("| model | n | mcc |")
    assert rule.startswith("| --- | ---: | ---: |")
    assert len(rows) == 2
    assert {line.count("|") for line in (head, rule, *rows)} == {8}


@pytest.mark.slow
def test_text_of_the_log_is_text():
    text = hostile_log().mcc.report("<b>country</b>", format="md", title=HOSTILE[0])
    said = [line for line in text.splitlines() if not line.startswith("    ")]  # else it is code
    assert not re.search(r"(?<!\\)<(?!/?(details|summary|sub)>)", "\n".join(said))
    found = json.loads(hostile_log().mcc.report("<b>country</b>", format="json"))
    [rows] = [one["rows"] for one in found["sections"] if one["id"] == "by:<b>country</b>"]
    assert {row["<b>country</b>"] for row in rows} == {*HOSTILE}


def test_a_cell_stays_a_cell():
    labels = {"gold": [0, 0, 1, 1] * 15, "pred": [0, 0, 1, 1] * 15}
    text = pl.DataFrame({"a|b": ["x\ny", "|"] * 30, **labels}).mcc.report("a|b", format="md")
    table = re.search(r"<summary>By a\|b</summary>.*?\n\n(\|.*?)\n\n", text, re.DOTALL)[1]
    unescaped = [re.sub(r"\\\|", "", line) for line in table.splitlines()]
    assert len({line.count("|") for line in unescaped}) == 1
    assert len(unescaped) == 4


@pytest.mark.slow
@pytest.mark.parametrize("form", some_slow(["md", "json"], "json"))
def test_no_charts_need_no_altair(form):
    code = (
        "import sys; sys.modules['altair'] = None; import polars as pl, polars_mcc; "
        "log = pl.read_parquet('data/digits.parquet'); "
        f"print(len(log.mcc(pred='knn').report('fold', format={form!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 1000


@pytest.mark.parametrize(
    ("zero_division", "told"),
    first(1, [(float("nan"), "NaN"), (None, None), (0.0, 0.0)], of_several=True),
)
def test_nan_is_not_null_in_json(zero_division, told):
    keys = {"key": [float("nan"), float("inf"), -float("inf"), 0.5, None] * 20}
    log = pl.DataFrame({**keys, "gold": 1, "pred": 1}).mcc(zero_division=zero_division)
    _, total, *sections = json.loads(log.report("key", format="json"))["sections"]
    assert [row["mcc"] for row in total["rows"]] == [told]
    rows = next(one for one in sections if one["id"] == "by:key")["rows"]
    assert {row["key"] for row in rows} == {"NaN", "Infinity", "-Infinity", 0.5, None}
    assert "<!doctype html>" in log.report("key")


def test_other_formats_are_refused():
    log = pl.DataFrame({"gold": [1, 1], "pred": [1, 1]}).mcc
    with pytest.raises(ValueError, match="format must be"):
        log.report(format="pdf")


NAN = float("nan")
ODD = pl.DataFrame(
    {
        "bytes": [b"\xff\x00", b"a", None] * 20,
        "float": [float("nan"), float("inf"), None] * 20,
        "list": [[1, 2], [], None] * 20,
        "lang_se": ["de", "@ann", None] * 20,
        "^m.*$": ["x", "y", None] * 20,
        "city, state": ["a, b", "c", None] * 20,
        "model": ["new", "old", None] * 20,
        "<b>": ["<i>", "&", None] * 20,
        "gold": [0, 1, 1, 0] * 15,
        "pred": [0, 1, 0, 0] * 15,
    }
)


@pytest.mark.slow
def test_keys_of_any_name_and_dtype_are_in_every_format():
    keys = ODD.columns[:-2]
    asked = {"depth": 1, "min_n": 10}
    found = json.loads(ODD.mcc.report(*keys, "gold", format="json", **asked))
    text = ODD.mcc.report(*keys, "gold", format="md", **asked)
    page = ODD.mcc.report(*keys, "gold", **asked)
    said = " ".join(sentence["text"] for sentence in found["verdict"])
    assert "None" not in said.replace("None of ", "")
    assert "@ann" not in text
    assert "shape: (" not in page
    scores = {"n", "mcc", "mcc_low", "mcc_high", "accuracy", "f1_macro", "n_null"}
    for key in keys:
        section = next(section for section in found["sections"] if section["id"] == f"by:{key}")
        assert {*section["rows"][0]} == {key, *scores}
        assert len({str(row[key]) for row in section["rows"]}) == len(section["rows"]) == 3
        assert f"<summary>By {html.escape(key)}</summary>" in text
        assert f'aria-label="mcc by {html.escape(key)}"' in page


@pytest.mark.slow
@pytest.mark.parametrize("key", ODD.columns[:-2])
def test_pairs_of_keys_of_any_name_and_dtype_have_a_report(key):
    page = ODD.mcc.report(key, "gold", min_n=10)
    assert f'aria-label="mcc by {html.escape(key)}"' in page


@pytest.mark.slow
def test_two_keys_of_one_name_are_refused_and_one_twice_is_one():
    log = pl.read_parquet("data/digits.parquet").mcc(pred="knn")
    month = pl.col("day").dt.truncate("1mo")
    with pytest.raises(pl.exceptions.DuplicateError, match="two keys have the name 'day'"):
        log.report(polars_mcc.trailing("day", "7d"), month, format="json")
    log.report("day", month.alias("month"), "day", format="json")
    two = [polars_mcc.sets(("fold", "ink_band"), "fold"), polars_mcc.sets("fold", "ink_band")]
    found = json.loads(log.report(*two, format="json"))
    assert len([section for section in found["sections"] if section["id"].startswith("by:")]) == 2


def test_what_is_behind_is_counted_before_the_list_is_cut():
    row = pl.int_range(24_000)
    is_bad = (row % 60 < 25) & (row // 60 % 2 == 0)
    log = pl.select(
        key=pl.format("k{}", row % 60),
        gold=row // 60 % 4,
        pred=pl.when(is_bad).then((row // 60 + 1) % 4).otherwise(row // 60 % 4),
    )
    found = json.loads(log.mcc.report("key", format="json"))
    [slices] = [one["text"] for one in found["verdict"] if one["kind"] == "slices"]
    assert slices.startswith("25 of 60 slices tested are worse than the rest of the log, first: ")
    worst = next(section for section in found["sections"] if section["id"] == "worst")
    assert len(worst["rows"]) == 20
    assert worst["notes"][-1].endswith("The table shows the first 20.")


@pytest.mark.slow
@pytest.mark.parametrize("zero_division", some_slow([None, NAN, 0.0], NAN, 0.0))
def test_logs_without_a_score_have_a_report(zero_division):
    one = pl.DataFrame({"key": ["a", "b"] * 40, "gold": 1, "pred": 1})
    for log in (one, one.with_columns(pred=pl.lit(None, pl.Int32))):
        described = log.mcc(zero_division=zero_division)
        found = json.loads(described.report("key", format="json"))
        if zero_division is None:
            assert described.report("key").startswith("<!doctype html>")
        assert described.report("key", format="md")
        text = next(one["text"] for one in found["verdict"] if one["kind"] == "score")
        scored = log["pred"].null_count() == 0
        undefined = "MCC is undefined (0/0) over 80 rows."
        assert text == (undefined if scored else "no row is scored.")
        said = [one["sentences"] for one in found["sections"] if one["id"] == "labels"]
        one_class = "all labels of 'gold' are 1: with one gold"
        assert any(text.startswith(one_class) for texts in said for text in texts) is scored


def test_a_metric_that_is_called_as_another_is_the_one_asked_for():
    def least(col):
        return (col("hits") / col("support")).min().alias("mcc")

    log = pl.read_parquet("data/digits.parquet").mcc(pred="bayes")
    found = json.loads(log.report("fold", metrics=least, format="json"))
    worst = next(section for section in found["sections"] if section["id"] == "worst")
    by = next(section for section in found["sections"] if section["id"] == "by:fold")
    scores = {row["fold"]: row["mcc"] for row in by["rows"]}
    assert "metric=" in worst["query"]
    assert scores == dict(log.by("fold", metrics=least).select("fold", "mcc").rows())
    for row in worst["rows"]:
        assert row["mcc"] in scores.values()

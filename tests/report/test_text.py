"""The report for machines: the same verdict and tables, as Markdown and as JSON."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import polars as pl
import pytest
from test_page import HOSTILE, hostile_log

import polars_mcc


def digits():
    return pl.scan_parquet("data/digits.parquet").mcc(pred=["logistic", "knn"])


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
    slices = eval(query, {"log": frame, "each": polars_mcc.each}).collect()  # noqa: S307
    slices = slices.filter(keys="ink_band").sort("ink_band", "model")
    told = pl.DataFrame(sections["by:ink_band"]["rows"]).sort("ink_band", "model")
    assert (
        told["mcc"].to_list()
        == slices.sort(pl.col("ink_band").cast(pl.String), "model")["mcc"].to_list()
    )
    assert f"polars_mcc {polars_mcc.__version__}" in found["made"]["versions"]


def test_markdown_has_the_verdict_and_the_tables():
    text = digits().report("ink_band", "day", format="md", title="Monday")
    assert text.startswith("## Monday\n\n- logistic: MCC 0.941 ")
    assert text.count("<details>") == text.count("</details>")
    assert "<summary>By ink\\_band</summary>" in text
    assert "The last 20 of 60 rows." in text
    table = re.search(r"\n\n(\| model .*?)\n\n", text, re.DOTALL)[1]
    head, rule, *rows = table.splitlines()
    assert head.startswith("| model | n | mcc |")
    assert rule.startswith("| --- | ---: | ---: |")
    assert len(rows) == 2
    assert {line.count("|") for line in (head, rule, *rows)} == {9}


def test_text_of_the_log_is_text():
    text = hostile_log().mcc.report("<b>country</b>", format="md", title=HOSTILE[0])
    said = [line for line in text.splitlines() if not line.startswith("    ")]  # else it is code
    assert not re.search(r"(?<!\\)<(?!/?(details|summary|sub)>)", "\n".join(said))
    found = json.loads(hostile_log().mcc.report("<b>country</b>", format="json"))
    assert {row["<b>country</b>"] for row in found["sections"][2]["rows"]} == {*HOSTILE}


def test_a_cell_stays_a_cell():
    log = pl.DataFrame({"a|b": ["x\ny", "|"] * 30, "gold": [0, 1] * 30, "pred": [0, 1] * 30})
    text = log.mcc.report("a|b", format="md")
    table = re.search(r"<summary>By a\\\|b</summary>\n\n(.*?)\n\n", text, re.DOTALL)[1]
    unescaped = [re.sub(r"\\\|", "", line) for line in table.splitlines()]
    assert len({line.count("|") for line in unescaped}) == 1
    assert len(unescaped) == 4


@pytest.mark.parametrize("form", ["md", "json"])
def test_no_charts_need_no_altair(form):
    code = (
        "import sys; sys.modules['altair'] = None; import polars as pl, polars_mcc; "
        "log = pl.read_parquet('data/digits.parquet'); "
        f"print(len(log.mcc(pred='knn').report('fold', format={form!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 1000


def test_nan_is_null_in_json_and_other_formats_are_refused():
    log = pl.DataFrame({"gold": [1, 1], "pred": [1, 1]}).mcc(zero_division=float("nan"))
    [row] = json.loads(log.report(format="json"))["sections"][0]["rows"]
    assert row["mcc"] is None
    assert "<!doctype html>" in log.report()
    with pytest.raises(ValueError, match="format must be"):
        log.report(format="pdf")
    with pytest.raises(ValueError, match="explored must be an integer of at least 0"):
        log.report(explored=-1)

"""Answers as pictures: `--out` with the suffix `.svg`, `.png` or `.html`."""

from __future__ import annotations

import html
import re
import subprocess
import sys

import pytest
from runner import invoke
from support import first

from polars_mcc._cli import outputs

DIGITS, TUMOURS = "data/digits.parquet", "data/breast_cancer.parquet"
BANDS = ["light", "medium", "heavy"]
DAY = "DATE '2026-03-15'"
PICTURES = {
    "by": (
        [DIGITS, "--by", "ink_band", "--metric", "mcc", "--metric", "f1_macro"],
        [*BANDS, "mcc"],
    ),
    "calibration": ([TUMOURS, "--score", "round(radius)", "--bins", "none"], ["mean score", "25"]),
    "changes": (
        [DIGITS, "--pred", "bayes", "--by", "ink_band", "--time", "day"],
        [f"ink_band = {band}, since" for band in BANDS],
    ),
    "score": ([DIGITS, "--pred", "knn", "--pred", "bayes"], ["all rows", "knn", "bayes"]),
    "classes": (
        [DIGITS, "--ci", "0.9"],
        [*map(str, range(10)), "precision", "recall", "f1", "mcc"],
    ),
    "confusion": (
        [TUMOURS, "--pred", "knn", "--by", "radius_band"],
        [*(f"radius_band = {band}" for band in ("small", "medium", "large")), "share of gold"],
    ),
    "curve": ([TUMOURS, "--score", "radius", "--thresholds", "9"], ["threshold", "mcc", "f1"]),
    "compare": ([DIGITS, "--pred", "knn", "--pred", "bayes", "--by", "ink_band"], [*BANDS, "diff"]),
    "contrast": ([DIGITS, "--by", "ink_band"], [*BANDS, "diff"]),
    "drift": (
        [DIGITS, "--by", "ink_band", "--before", f"day < {DAY}", "--after", f"day >= {DAY}"],
        [*BANDS, "diff"],
    ),
    "worst": (
        [DIGITS, "--pred", "bayes", "--by", "ink", "--by", "day"],
        ["before 2026-03-16", "diff"],
    ),
}


@pytest.mark.parametrize("verb", first(2, PICTURES))
def test_an_answer_is_drawn_if_its_file_is_a_picture(verb, tmp_path):
    arguments, texts = PICTURES[verb]
    out = tmp_path / "picture.svg"
    done = invoke(verb, *arguments, "--out", str(out))
    assert done.exit_code == 0, done.stderr
    svg = html.unescape(out.read_text("utf-8"))
    shown = set(re.findall(r">([^<>]+)</text>", svg))
    assert [text for text in texts if not any(text in one for one in shown)] == []


def test_every_verb_with_a_chart_is_drawn_above():
    assert {*outputs.DRAWN} == {*PICTURES}


@pytest.mark.slow
def test_lines_over_time_are_drawn_and_a_page_needs_no_network(tmp_path):
    page, picture = tmp_path / "days.html", tmp_path / "days.PNG"
    for out in (page, picture):
        done = invoke("by", DIGITS, "--by", "day", "--by", "ink_band", "--out", str(out))
        assert done.stderr.endswith(f"90 rows written to {out}\n"), done.stderr
    text = page.read_text("utf-8")
    assert not re.findall(r"<(?:script|link)[^>]*(?:src|href)=", text)
    assert '"type": "temporal"' in text
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gaps", DIGITS, "--by", "fold"], "only by, score, .*, worst have a chart; write a table"),
        (["best-threshold", TUMOURS, "--score", "radius"], "have a chart"),
        (["counts", DIGITS, "--by", "fold"], "have a chart"),
        (["confusion", DIGITS, "--top", "3"], "confusions only, no matrix"),
        (["worst", DIGITS, "--by", "fold"], "there is nothing to draw"),
        (
            ["changes", DIGITS, "--by", "each(fold)", "--time", "day"],
            "leave out each, rollup, cube",
        ),
    ],
)
def test_what_has_no_chart_is_an_error_and_writes_nothing(arguments, message, tmp_path):
    done = invoke(*arguments, "--out", str(tmp_path / "picture.svg"))
    assert done.exit_code == 2
    assert re.search(message, done.stderr)
    assert [*tmp_path.iterdir()] == []


def test_without_the_extra_a_picture_is_refused_before_the_log_is_counted(tmp_path):
    out = tmp_path / "picture.svg"
    arguments = ["by", DIGITS, "--by", "fold", "--out", str(out)]
    code = (
        "import sys; sys.modules['altair'] = None\n"
        "from polars_mcc._inputs.log_from_files import TypedLog\n"
        "from polars_mcc._cli.run_command import main\n"
        f"TypedLog.collect = None\nmain({arguments!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, out.exists()) == (2, False)
    assert "a chart needs altair, which is not installed: pip install" in done.stderr

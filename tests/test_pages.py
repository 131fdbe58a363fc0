"""The README and the pages of examples/: every block runs, and what they list is complete."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import duckdb
import pages
import polars as pl
import pytest
from benchmarks import peers
from polars.testing import assert_frame_equal
from sklearn import metrics
from support import on_posix

import polars_mcc

README = pages.README.read_text("utf-8")
GUIDE = {path.stem: path.read_text("utf-8") for path in pages.GUIDE.glob("*.md")}


SLOW = {
    *(
        "README.md",
        "command_line.md",
        "compare_two_models.md",
        "every_night.md",
        "find_failing_slices.md",
        "gate_a_release.md",
    ),
    *("nightly_counts.md", "pictures_and_reports.md", "scores_of_probabilities.md"),
}
"""Pages whose blocks search, write reports, or start processes."""


@on_posix
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.name, marks=[pytest.mark.slow] * (path.name in SLOW))
        for path in pages.PAGES
    ],
)
def test_blocks_run_and_show_what_they_print(path):
    page = path.read_text("utf-8")
    assert pages.filled(page).splitlines() == page.splitlines()


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 210


def test_a_page_of_the_guide_opens_with_the_question_that_it_answers():
    openings = {name: page.split("\n\n")[1] for name, page in GUIDE.items()}
    assert [name for name, text in openings.items() if not re.match(r"[^.?]+\?", text)] == []


def test_shell_blocks_are_the_three_that_ci_runs():
    """`.ci/run` reads them from here and runs them in fresh virtual environments."""
    main_job, tests, report = pages.blocks("sh")
    assert "polars-mcc by data/" in main_job
    assert "pytest" in tests
    assert len(report.splitlines()) == 2
    assert "polars-mcc report data/" in report


def test_the_sql_of_duckdb_gives_the_scores(monkeypatch):
    monkeypatch.chdir(pages.ROOT)
    expected = pl.read_parquet("data/digits.parquet").mcc.by("fold")
    [query] = pages.blocks("sql", pages.GUIDE / "moving_here.md")
    found = pl.DataFrame(duckdb.sql(query).fetchall(), schema=["fold", "n", "mcc"], orient="row")
    assert_frame_equal(found, expected.drop("n_null"), check_dtypes=False, rel_tol=1e-12, abs_tol=0)


def test_polars_mcc_loses_no_digit_that_peers_lose():
    header, _, *rows = (line.split(" | ") for line in peers.markdown())
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    assert columns["polars_mcc"] == columns["exact"]
    assert len(columns) >= 4


def test_moving_here_names_each_function_of_scikit_learn_for_classifiers():
    rooms = ("sklearn.metrics._classification", "sklearn.metrics._ranking")
    functions = {name: getattr(metrics, name) for name in metrics.__all__}
    asked = {name for name, one in functions.items() if getattr(one, "__module__", "") in rooms}
    told = GUIDE["moving_here"] + (pages.GUIDE.parent / "metrics.md").read_text("utf-8")
    assert len(asked) > 30
    assert {name for name in asked if name not in told} == set()


def test_the_number_of_metrics():
    number = polars_mcc.metrics().height
    assert f"[{number} metrics](examples/guide/choose_metrics.md)" in README
    assert f"| {number} metrics, your own;" in README
    assert f"list all {number}." in GUIDE["choose_metrics"]


def test_verbs_keys_and_options_are_listed():
    page = GUIDE["score_your_slices"]
    log = vars(polars_mcc.PredictionLog)
    for verb in {name for name in log if not name.startswith("_")} - {
        "from_store",
        "engine_counts",
    }:
        assert f"log.mcc.{verb}(" in page, verb
    for option in inspect.signature(polars_mcc.PredictionLog).parameters:
        assert option == "frame" or re.search(rf"^\| [^|]*`{option}`", page, re.MULTILINE), option
    for word in ("each", "rollup", "cube", "sets", "trailing"):
        assert f"`{word}(" in page, word


def test_the_folders_for_contributors_are_those_of_the_package():
    package = Path(polars_mcc.__file__).parent
    folders = {path.parent.name for path in package.glob("_*/__init__.py")}
    assert {*re.findall(r"^\| `(_\w+)/`", GUIDE["how_it_works"], re.MULTILINE)} == folders


def test_the_names_of_the_glossary_are_those_of_the_code():
    package = Path(polars_mcc.__file__).parent
    code = {path.name: path.read_text("utf-8") for path in package.rglob("*.py")}
    glossary = (pages.ROOT / "examples" / "glossary.md").read_text("utf-8")
    rows = re.findall(r"^\| \*\*.*\|(.*)\|$", glossary, re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(names) > 40
    text = "\n".join([*code, *(f"{path.name}/" for path in package.glob("_*")), *code.values()])
    assert [
        name for name in names if name.split("(")[0].split(".")[-1].strip("=") not in text
    ] == []

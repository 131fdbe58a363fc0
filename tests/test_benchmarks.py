"""The benchmarks run, on small logs; peers agree with us, and intervals cover the truth."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import replace

import duckdb
import numpy as np
import pages
import polars as pl
import pytest
from benchmarks import (
    changes_coverage,
    collapsed_slices,
    figures,
    interval_coverage,
    partial_labels,
    planted_slices,
    promises,
    speed,
)
from support import first

pytestmark = pytest.mark.slow


@pytest.mark.skipif(duckdb.__version__ < "2", reason="the benchmark asks for DuckDB 2")
@pytest.mark.parametrize("workload", first(1, ["hive partitions, half of them", "three models"]))
def test_speed_of_ours_and_of_duckdb(workload, tmp_path):
    command = [sys.executable, speed.__file__, str(tmp_path), "--rows", "8000", "--rounds", "1"]
    done = subprocess.run(
        [*command, "--only", workload, "--peers", "DuckDB"],
        capture_output=True,
        text=True,
        check=True,
    )
    _, whole, _, warm, _, fastest, _, fastest_warm, _, _ = done.stdout.split("\n\n")
    queries = ["DuckDB, from pairs", "DuckDB, from marginals"]
    queries += ["DuckDB, from joint pairs"] * (workload == "three models")
    for table, peers in ((whole, queries), (warm, queries)):
        header, _, *rows = table.splitlines()
        cells = [dict(zip(header.split(" | "), row.split(" | "), strict=True)) for row in rows]
        assert [row["each peer"] for row in cells] == peers
        assert all(float(row["ours / peer"]) > 0 for row in cells)
        assert all(float(row.get("differ |", "0 |").removesuffix(" |")) < 1e-14 for row in cells)
    for table, every in ((fastest, whole), (fastest_warm, warm)):
        _, _, row = table.strip().splitlines()
        assert row.removesuffix(" |") in every


def test_coverage_of_the_default_interval():
    """In a few settings, of 2000 samples each: the error of a share of 0.95 is 0.005.

    With 95:5, the rare classes have 2 to 5 rows.
    """
    rng = np.random.default_rng(12)
    settings = (row for row in interval_coverage.of_scores(2000, 20, [100], rng, ["score"]))
    for row in settings:
        low, high = (0.93, 0.97) if row["mix"] == "balanced" else (0.87, 1)
        assert low <= row["coverage"] <= high, row
        assert row["none"] == 0


def assert_kept(found: list[dict]) -> None:
    broken = promises.outside(promises.as_frame(found))
    assert broken.is_empty(), broken


@pytest.mark.parametrize(("listed", "is_broken"), [(3, False), (4, True)])
def test_few_logs_break_a_promise_only_if_chance_does_not(listed, is_broken):
    """With a share of 0.05, 3 of 6 have a chance of 0.002, and 3 standard errors of 0.0013."""
    about = {"claim": "worst", "value": listed / 6, "samples": 6, "least_class": 9, "family": "f1"}
    found = pl.DataFrame([about | {"p0.01": None}]).cast({"p0.01": pl.Float64})
    assert promises.outside(found).is_empty() != is_broken


CELLS = [
    promises.Cell("90:10", "10% wrong", 60, "none"),
    promises.Cell("90:10", "nearly all one class", 200, "none"),
    promises.Cell("95:5", "2% wrong", 200, "mild"),
    promises.Cell("10 balanced", "30% wrong", 200, "clusters"),
    promises.Cell("30 Zipf", "10% wrong", 1000, "none"),
    promises.Rare("90:10", "2% found", 200, "none"),
    promises.Rare("5 skewed", "9% found, no false alarm", 200, "clusters", "last"),
]


@pytest.mark.parametrize("cell", first(2, CELLS), ids=str)
def test_promises_are_kept_by_intervals(cell):
    """A short part of the grid; the bounds are as wide as the noise of so few samples."""
    found = [*promises.coverage(cell, 300, np.random.default_rng(5))]
    assert {row["family"] for row in found} == {*promises.FAMILIES}
    assert_kept(found)


SCORES = [
    promises.Scores("equal", 0.9, 10, 10, "none"),
    promises.Scores("unequal", 0.5, 30, 30, "none"),
    promises.Scores("five levels", 0.99, 10, 90, "mild"),
    promises.Scores("equal", 0.8, 30, 30, "clusters"),
    promises.Scores("equal", 0.999, 5, 5, "none"),
]


@pytest.mark.parametrize("cell", first(2, SCORES), ids=str)
def test_promises_are_kept_by_scores(cell):
    rng = np.random.default_rng(5)
    found = [*promises.coverage_of_scores(cell, 300, rng)]
    assert {row["metric"] for row in found} == {*itertools.chain(*promises.OF_SCORES.values())}
    if cell.rows < 100:
        found += promises.differences_of_scores(cell, 150, rng)
    broken = promises.outside(promises.as_frame(found), promises.LIMITS_OF_SCORES)
    assert broken.is_empty(), broken


OF_FAMILIES = ("f1", "f1_weighted", "informedness", "f1_macro", "mcc", "kappa", "own_squares")
OF_FAMILIES += ("f2", "kappa_quadratic", "cost_100")
"""A metric of each family: the others of a family have their errors in the same way."""


def test_promises_are_kept_by_differences(monkeypatch):
    """The slices have 15 rows, and the rest 35: no p-value may be small too often."""
    assert {promises.FAMILY[name] for name in OF_FAMILIES} == {*promises.FAMILIES}
    monkeypatch.setattr(promises, "COMPARED", OF_FAMILIES)
    rng = np.random.default_rng(5)
    assert_kept([*promises.differences(promises.Cell("90:10", "10% wrong", 15, "none"), 100, rng)])
    cell = promises.Cell("90:10", "10% wrong", 200, "none")
    assert_kept([*promises.other_mixes(cell, 100, rng)])


@pytest.mark.parametrize("weights", first(1, promises.WEIGHTS))
def test_promises_are_kept_by_worst(weights, monkeypatch):
    monkeypatch.setattr(promises, "SEARCHED", [one for one in OF_FAMILIES if one != "own_squares"])
    rng = np.random.default_rng(5)
    for mix in ("90:10", "10 balanced"):
        assert_kept([*promises.searches(promises.Cell(mix, "10% wrong", 3000, weights), 1, rng)])


@pytest.mark.parametrize("name", first(1, ["50:50", "five classes"]))
def test_weighted_samples_of_changes_tell_what_samples_tell(name):
    setting = changes_coverage.mixes(14, 60)[name]
    rng = np.random.default_rng(3)
    found = changes_coverage.times_too_often(setting, 4000, rng)
    plain = changes_coverage.largest(changes_coverage.drawn(setting, 20_000, rng)).p
    for times, level in zip(found[:2], (0.05, 0.01), strict=True):
        share = (plain < level).mean()
        assert abs(times * level - share) < 4 * (share / len(plain)) ** 0.5 + 0.1 * share


def test_reweighted_labels_cover_and_labelled_rows_alone_do_not():
    comes = np.array([0.3, 1.0])
    covers = partial_labels.coverage(partial_labels.FRAUD, comes, 3000, 1000)
    assert covers["drop"]["accuracy"] < 0.05
    assert min(covers["reweight"].values()) > 0.92
    late = np.array([[0.1, 0.1], [1.0, 1.0]])  # It depends on the label.
    wrong = partial_labels.coverage(partial_labels.FRAUD, late, 3000, 300)["reweight"]
    assert max(wrong[name] for name in ("accuracy", "tpr", "ppv")) < 0.05


def test_coverage_of_a_difference():
    """Of models that err apart or alike, on tables that are balanced and have 300 rows."""
    rng = np.random.default_rng(12)
    settings = interval_coverage.of_differences(1000, [300], rng)
    balanced = itertools.takewhile(lambda row: row["mix"] == "balanced", settings)
    found = [row for row in balanced if row["method"] == "score"]
    assert len(found) == 12
    for row in found:
        assert 0.93 <= row["coverage"] <= 0.985, row
        assert row["rejected"] <= 0.07 or row["a"] != row["b"], row


@pytest.mark.parametrize("keys", first(1, ["nested", "independent", "nearly equal"]))
def test_planted_slices_are_found_and_few_others(keys):
    """The truth is known from the rates of misses."""
    setting = planted_slices.Setting(depth=2, rows=20_000, keys=keys)
    for planted in ("apart", "overlapping"):
        found = planted_slices.look(replace(setting, planted=planted), 1, "polars_mcc")
        assert found.recalled == found.planted >= 2
        assert found.false == 0
        assert found.listed <= found.planted + 1
    nothing = planted_slices.look(replace(setting, planted="none"), 1, "polars_mcc")
    assert (nothing.planted, nothing.listed) == (0, 0)


@pytest.mark.parametrize(("classes", "share"), [(2, 0.9), (3, 0.6), (6, 0.9)])
def test_a_collapsed_slice_is_listed_first(classes, share):
    assert collapsed_slices.named(300, classes, share, 1)[:1] == ["key1 = bad"]
    assert not collapsed_slices.lists_something(classes, 0.95, 0.3, 1)


PAGE = """# A page

<!-- figures speed: python made.py LOGS -->
| log | over DuckDB 1.0 |
| --- | --: |
| short | 1.50 |
<!-- end of speed -->

It is fast. <!-- quotes speed -->

<!-- measured -->
Long ago.
"""
MADE = """import sys
print(f"| log | over DuckDB 2.0 |\\n| --- | --: |\\n| {sys.argv[1]} | 1.25 |")
"""


@pytest.mark.parametrize("does", [MADE, MADE.replace("log", "other"), f"{MADE}sys.exit(1)"])
def test_figures_are_written_with_their_version(does, tmp_path, capsys):
    (tmp_path / "examples").mkdir()
    page = tmp_path / "examples/page.md"
    page.write_text(PAGE)
    (tmp_path / "README.md").write_text("nothing")
    (tmp_path / "polars_mcc").mkdir()
    (tmp_path / "polars_mcc/_version.py").write_text('__version__ = "9.9"')
    (tmp_path / "made.py").write_text(does)
    is_written = figures.measure(tmp_path, [], "here")
    told = capsys.readouterr().out
    assert "read again: examples/page.md:9 quotes speed" in told
    assert is_written == (does == MADE) == ("not measured: speed" not in told)
    expected = PAGE.replace("1.0", "2.0").replace("short | 1.50", "here | 1.25")
    expected = expected.replace("Long ago.", figures.machine(tmp_path))
    assert page.read_text("utf-8") == (expected if is_written else PAGE)


def test_every_table_of_figures_has_a_script_and_a_page_that_says_when():
    reached = 0
    for page in figures.pages(pages.ROOT):
        text = page.read_text("utf-8")
        commands = [match["command"] for match in figures.REGION.finditer(text)]
        assert len(commands) == text.count("<!-- figures "), page
        assert bool(commands) == bool(figures.MEASURED.search(text)), page
        assert all((pages.ROOT / command.split()[1]).exists() for command in commands)
        reached += len(commands)
    assert reached > 40

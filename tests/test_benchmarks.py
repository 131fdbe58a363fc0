"""The benchmarks run, on small logs; peers agree with us, and intervals cover the truth."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pages
import polars as pl
import pytest
from benchmarks import (
    changes_coverage,
    collapsed_slices,
    few_differences,
    figures,
    gaps_coverage,
    interval_coverage,
    measuring,
    partial_labels,
    planted_slices,
    promises,
    quick,
    report_cost,
    scores_cost,
    sets_cost,
    speed,
    tried,
    waiting,
)

pytestmark = pytest.mark.slow


@pytest.mark.skipif(duckdb.__version__ < "2", reason="the benchmark asks for DuckDB 2")
@pytest.mark.parametrize("workload", ["three models", "hive partitions, half of them"])
def test_speed_of_ours_and_of_duckdb(workload, tmp_path):
    command = [sys.executable, speed.__file__, str(tmp_path), "--rows", "8000", "--rounds", "1"]
    done = subprocess.run(
        [*command, "--only", workload, "--peers", "DuckDB"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert_prints(done.stdout, "speed_whole", "speed_warm")
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


@pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens")
@pytest.mark.parametrize("query", ["the command line", "map_groups, scikit-learn"])
def test_speed_beside_duckdb(query, tmp_path, monkeypatch, capsys):
    """A query in this process: that others have processes of their own is tried above."""
    log, folder = speed.BY_NAME[speed.SHORT_TEXT], tmp_path / "log"
    speed.write_logs(log, 8000, folder)
    monkeypatch.setattr("sys.argv", [])
    speed.QUERIES[query](log, folder)
    speed.print_beside([[log.name, query, *map(str, range(7))], ["another", query, "1"]])
    assert_prints(capsys.readouterr().out, "speed_beside")


def numbers_of(function: Callable[..., None], *arguments: object, **options: object) -> list[float]:
    """The numbers that a function prints."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        function(*arguments, **options)
    return [*map(float, told.getvalue().split())]


def test_report_cost_runs(tmp_path, monkeypatch, capsys):
    """One query in a process of its own, as all of them have there; the others here."""
    asked = report_cost.asked

    def asked_here(name: str, path: Path, query: str) -> list[float]:
        if (name, query) == ("short", "json"):
            return asked(name, path, query)
        return numbers_of(report_cost.ask, name, path, query)

    monkeypatch.setattr(report_cost, "asked", asked_here)
    monkeypatch.setattr(
        "sys.argv", ["report_cost.py", str(tmp_path), "--rows", "4000", "--rounds", "1"]
    )
    report_cost.main()
    done = capsys.readouterr().out
    assert_prints(done, "report")
    _, _, *rows = done.splitlines()
    assert [row.removeprefix("| ").split(" | ")[:2] for row in rows] == [
        [log, query] for log in ("long", "wide", "short") for query in ("by", "html", "md", "json")
    ]


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


@pytest.mark.parametrize("cell", CELLS, ids=str)
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


@pytest.mark.parametrize("cell", SCORES, ids=str)
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


@pytest.mark.parametrize("weights", promises.WEIGHTS)
def test_promises_are_kept_by_worst(weights, monkeypatch):
    monkeypatch.setattr(promises, "SEARCHED", [one for one in OF_FAMILIES if one != "own_squares"])
    rng = np.random.default_rng(5)
    for mix in ("90:10", "10 balanced"):
        assert_kept([*promises.searches(promises.Cell(mix, "10% wrong", 3000, weights), 1, rng)])


def test_what_was_tried_prints_tables(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["tried.py", "--samples", "5"])
    tried.main()
    assert_prints(capsys.readouterr().out, "tried_variances", "tried_tests")


def test_few_differences_prints_a_table(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["few_differences.py", "--samples", "20"])
    monkeypatch.setattr(few_differences, "CLASSES", (2,))
    monkeypatch.setattr(few_differences, "MIXES", ("balanced",))
    few_differences.main()
    header, _, *rows = capsys.readouterr().out.splitlines()
    assert header.startswith("| rows that differ | settings | compare |")
    assert len(rows) == 3
    assert all(int(row.split(" | ")[1]) > 0 for row in rows)


def test_labels_for_some_rows_print_tables(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["partial_labels.py", "--samples", "20"])
    monkeypatch.setattr(partial_labels, "FOUND", (0.9,))
    monkeypatch.setattr(partial_labels, "LOGS", 1)
    partial_labels.main()
    tables = capsys.readouterr().out.split("\n\n")
    assert [len(table.strip().splitlines()) - 2 for table in tables] == [8, 12, 4, 4, 12]


def test_gaps_print_tables(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["gaps_coverage.py", "--samples", "30"])
    monkeypatch.setattr(gaps_coverage, "SETTINGS", [("30", 0.1), ("30 to 3,000", 0.5)])
    gaps_coverage.main()
    assert_prints(capsys.readouterr().out, "gaps_coverage", "gaps_of_equal")


def test_changes_print_tables(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["changes_coverage.py", "--samples", "20", "--short"])
    monkeypatch.setattr(changes_coverage, "SLICES", 5)
    changes_coverage.main()
    names = [name for name in figures.tables(pages.ROOT) if name.startswith("changes_")]
    assert len(names) == 6
    assert_prints(capsys.readouterr().out, *names)


@pytest.mark.parametrize("name", ["50:50", "five classes"])
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


def test_the_simulation_prints_tables_and_draws_a_chart(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(interval_coverage, "PAIRS", ((0.3, 0.3), (0.3, 0.6)))
    monkeypatch.setattr(interval_coverage, "USERS", (5,))
    options = ["--replicates", "5", "--n-boot", "5", "--sizes", "30"]
    files = ["--out", str(tmp_path / "out"), "--chart", str(tmp_path / "chart.svg")]
    monkeypatch.setattr("sys.argv", ["interval_coverage.py", *options, *files])
    interval_coverage.main()
    done = capsys.readouterr().out
    assert_prints(done, "methods")
    assert [line for line in done.splitlines() if line.isalpha()] == [
        "scores",
        "differences",
        "users",
    ]
    assert "<svg" in (tmp_path / "chart.svg").read_text()
    results = pl.read_parquet(tmp_path / "out/scores.parquet")
    assert results.height == 2 * 2 * 4 * 5


def test_what_intervals_cost(tmp_path):
    size = ("--rows", "2000", "--rounds", "1", "--n-boot", "2")
    done = run("interval_cost", str(tmp_path), *size, "--only", "three models")
    assert_prints(done, "intervals", "bootstrap")


def test_what_inference_costs():
    done = run("waiting", "--rounds", "1")
    assert_prints(done, "waiting")
    assert "| `by` | 1.0 | " in done
    for calls in (waiting.wide(rows=2_000), waiting.days(slices=3)):
        assert measuring.in_turns(calls, 1).keys() == calls.keys()


def test_the_quick_part_of_all_speeds(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(quick, "apart", lambda *_: [100.0])
    chosen = ["`by`, short text labels", "by, each of ten keys", "scores: by, three", "report, md"]
    every = {name: call for name, call in quick.calls().items() if name[0] in chosen}
    monkeypatch.setattr(quick, "calls", lambda: every)
    options = ["--rows", "8000", "--rounds", "1"]
    monkeypatch.setattr("sys.argv", ["quick.py", str(tmp_path), *options])
    quick.main()
    done = capsys.readouterr().out
    assert_prints(done, "quick")
    assert len(done.splitlines()) == 2 + len(every) > 5


def test_what_a_progress_bar_costs():
    done = run("progress_cost", "--rows", "8000", "--rounds", "1")
    assert_prints(done, "progress")


def test_what_sets_cost(tmp_path, monkeypatch, capsys):
    """One query in a process of its own, as all of them have there; the others here."""
    measured = sets_cost.measured

    def measured_here(query: str, logs: str) -> list[float]:
        if query == "by, one key":
            return measured(query, logs)
        return numbers_of(sets_cost.run, query, logs)

    monkeypatch.setattr(sets_cost, "measured", measured_here)
    monkeypatch.setattr(
        "sys.argv", ["sets_cost.py", str(tmp_path), "--rows", "8000", "--rounds", "1"]
    )
    sets_cost.main()
    done = capsys.readouterr().out
    assert_prints(done, "sets", "sets_beside")


def test_what_a_store_costs():
    done = run("store_cost", "--inputs", "3", "--rows", "100", "--rounds", "1")
    assert_prints(done.replace("| 3 | 100 | ", "| 365 | 50000 | "), "store")


def test_engines_and_larger_logs():
    """The engine that is always there; the tests of Spark count on it."""
    done = run(
        "engines", "--rows", "8000", "--slices", "100", "--rounds", "1", "--engines", "Polars"
    )
    assert_prints(done, "engines", "larger_logs")


def test_what_scores_cost(tmp_path, monkeypatch, capsys):
    """One query in a process of its own, as all of them have there; the others here."""

    def apart_or_here(file: str, folder: str, flag: str, query: str, *options: str) -> list[float]:
        if query == scores_cost.BASE:
            return measuring.apart(file, folder, flag, query, *options)
        return numbers_of(scores_cost.run, query, folder, in_memory=bool(options))

    monkeypatch.setattr(scores_cost, "apart", apart_or_here)
    options = ["--rows", "8000", "--rounds", "1"]
    monkeypatch.setattr("sys.argv", ["scores_cost.py", str(tmp_path), *options])
    scores_cost.main()
    done = capsys.readouterr().out
    assert "| Parquet | by, three metrics, with ci |" in done
    assert "| in memory | compare, roc_auc |" in done


def test_what_metrics_cost():
    done = run("metrics_cost", "--rows", "8000", "--rounds", "1")
    assert_prints(done, "metrics")
    assert "| MCC alone | 1.00 | 1.00 to 1.00 | " in done


@pytest.mark.parametrize("keys", ["independent", "nested", "nearly equal"])
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


def run(benchmark: str, *arguments: str) -> str:
    command = [sys.executable, str(Path(__file__).with_name("benchmarks") / f"{benchmark}.py")]
    command += arguments
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def assert_prints(done: str, *names: str) -> None:
    """The tables of the guide: their header rows, and labels that are there."""
    found = re.findall(r"(?:^\|.*\n)+", f"{done}\n", re.MULTILINE)
    for name in names:
        table = figures.tables(pages.ROOT)[name]
        text = figures.like(table, found)
        assert text, (name, figures.header(table.text))
        assert figures.rows(text).keys() & figures.rows(table.text).keys(), name

"""Every code block of the README runs, and prints what it shows."""

from __future__ import annotations

import doctest
import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest
from benchmarks import peers
from polars.testing import assert_frame_equal

import polars_mcc
from polars_mcc._shell import command

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("*.md")}


def blocks(language: str, page: str = README) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    assert {kind for kind, _ in found} <= {"python", "py", "console", "sh", "sql", "text"}
    return [text for kind, text in found if kind == language]


@pytest.mark.parametrize("page", [README, *PAGES.values()], ids=["README.md", *PAGES])
def test_python_blocks(page, monkeypatch, tmp_path, capsys):
    """In one session, in the order of the page; files go to a folder of their own."""
    if page is PAGES["beyond_one_machine.md"]:
        pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(ROOT / "data")
    session: dict[str, object] = {}
    runner = doctest.DocTestRunner()
    for number, text in enumerate(blocks("python", page)):
        if ">>>" in text:
            test = doctest.DocTestParser().get_doctest(text, session, f"block {number}", None, 0)
            runner.run(test, clear_globs=False)
            session = test.globs
        else:
            exec(compile(text, f"block {number}", "exec"), session)  # noqa: S102
    assert runner.failures == 0, capsys.readouterr().out


@pytest.mark.parametrize("text", blocks("console"))
def test_console_blocks(text, tmp_path):
    (tmp_path / "data").symlink_to(ROOT / "data")
    for line, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, flags=re.MULTILINE):
        program, *arguments = shlex.split(line)
        assert program == "polars-mcc"
        done = subprocess.run(
            [sys.executable, "-m", "polars_mcc", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout + done.stderr == expected


def test_the_number_of_metrics():
    assert f"[{polars_mcc.metrics().height} of them](examples/metrics.md)" in README


def test_spark_blocks_are_those_that_the_tests_of_spark_run():
    assert blocks("py") == blocks("py", PAGES["beyond_one_machine.md"])


def test_sql_blocks(monkeypatch):
    monkeypatch.chdir(ROOT)
    expected = pl.read_parquet("data/digits.parquet").mcc.by("fold")
    for query in blocks("sql"):
        found = pl.DataFrame(
            duckdb.sql(query).fetchall(), schema=["fold", "n", "mcc"], orient="row"
        )
        assert_frame_equal(
            found, expected.drop("n_null"), check_dtypes=False, rel_tol=1e-12, abs_tol=0
        )


def test_the_table_of_lost_digits():
    """Ours, and of peers those of which the version that it names is installed."""

    def columns(lines: list[str]) -> dict[str, tuple[str, ...]]:
        rows = [re.split(r" \| ", line.removeprefix("| ").removesuffix(" |")) for line in lines]
        return {header: tuple(cells) for header, *cells in zip(*rows, strict=True)}

    first = README.index("| counts | exact | polars_mcc |")
    shown = columns(README[first:].split("\n\n", 1)[0].split("\n"))
    found = columns(peers.markdown())
    assert shown["polars_mcc"] == shown["exact"]
    assert len(shown.keys() & found.keys()) >= 3
    assert {name: shown.get(name, cells) for name, cells in found.items()} == found


def test_shell_blocks_are_the_three_that_ci_runs():
    """`.ci/run` reads them from here and runs them in fresh virtual environments."""
    main_job, tests, report = blocks("sh")
    assert "polars-mcc by data/" in main_job
    assert "pytest" in tests
    assert len(report.splitlines()) == 2
    assert "polars-mcc report data/" in report


def test_the_tables_of_verbs_and_of_arguments_are_complete():
    for verb in command.VERBS:
        assert f".mcc.{verb}(" in README, verb
    for option in inspect.signature(polars_mcc.PredictionLog).parameters:
        assert option == "frame" or f"`{option}`" in README, option
    for word in ("each", "rollup", "cube", "sets", "trailing"):
        assert f"`{word}(" in README, word


def test_the_folders_for_contributors_are_those_that_there_are():
    package = Path(polars_mcc.__file__).parent
    folders = {path.parent.name for path in package.glob("_*/__init__.py")}
    assert {*re.findall(r"^\| `(_\w+)/`", README, re.MULTILINE)} == folders


def test_the_names_of_the_glossary_are_those_of_the_code():
    package = Path(polars_mcc.__file__).parent
    code = {path.name: path.read_text("utf-8") for path in package.rglob("*.py")}
    rows = re.findall(r"^\| \*\*.*\|(.*)\|$", PAGES["glossary.md"], re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(names) > 40
    text = "\n".join([*code, *(f"{path.name}/" for path in package.glob("_*")), *code.values()])
    assert [
        name for name in names if name.split("(")[0].split(".")[-1].strip("=") not in text
    ] == []

"""Figures in the pages know what they were measured on; what is stale is found, and renewed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pages
import pytest
from benchmarks import figures
from support import first

BENCHMARKS = Path(figures.__file__).parent
TABLES = figures.tables(pages.ROOT)
NUMBERS = re.compile(r"[^a-zA-Z`]*\d[^a-zA-Z`]*( to [^a-zA-Z`]*)?")


def test_tables_with_many_numbers_stand_between_markers():
    """Such a table has numbers in a third of the cells, beside its first column."""
    for page in [pages.README, *pages.GUIDE.glob("*.md")]:
        text = pages.BLOCK.sub("", figures.REGION.sub("", page.read_text("utf-8")))
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            cells = [cell for line in table.splitlines()[2:] for cell in figures.cells(line)[1:]]
            numbers = [cell for cell in cells if re.fullmatch(NUMBERS, cell)]
            assert len(numbers) < len(cells) / 3, (page.name, table)
            assert "--:" not in table, (page.name, table)


def test_every_marker_is_read():
    text = "".join(page.read_text("utf-8") for page in figures.pages(pages.ROOT))
    assert text.count("<!-- figures ") == len(TABLES) > 20


@pytest.mark.parametrize("name", TABLES)
def test_a_marker_names_what_exists(name):
    table = TABLES[name]
    assert table.command.split()[0] == "python"
    for path in table.depends:
        assert (pages.ROOT / path).exists(), path
    assert re.fullmatch("[0-9a-f]{7,40}", table.commit)
    assert figures.rows(table.text)
    assert "--:" in table.text.splitlines()[1]


def test_sentences_quote_tables_that_exist():
    assert {name for _, _, name in figures.quotes(pages.ROOT)} <= TABLES.keys()


def test_every_benchmark_is_listed():
    """And only those. A module that others import is none."""
    listed = re.findall(
        r"tests/benchmarks/(\w+\.py)", (pages.GUIDE / "benchmarks.md").read_text("utf-8")
    )
    scripts = {path.name for path in BENCHMARKS.glob("*.py") if "__main__" in path.read_text()}
    assert {*listed} == scripts


PAGE = """# A page

<!-- figures speed: python tests/benchmarks/fake.py LOGS, at {commit}, of src -->
| log | times as long | ms |
| --- | --: | --: |
| short | 1.50 | 70 |
| long | 2.00 | 90 |
<!-- end of speed -->

It takes twice as long. <!-- quotes speed -->

<!-- figures shares: python tests/benchmarks/fake.py LOGS, at {commit}, of README.md -->
| log | covers 1.0 |
| --- | --: |
| a | 0.95 |
<!-- end of shares -->
"""
FAKE = """import sys, pathlib
print("made", sys.argv[1:])
print(pathlib.Path("short" if "--short" in sys.argv else "whole").read_text())
"""
WHOLE = """| log | times as long | ms |
| --- | --: | --: |
| short | 1.70 | 7 |
| long | 2.10 | 9 |

| log | covers 2.0 |
| --- | --: |
| a | 0.94 |
"""


@pytest.fixture
def tree(tmp_path):
    """A repository with a page, a command and two commits; the page names the second."""
    (tmp_path / "tests/benchmarks").mkdir(parents=True)
    (tmp_path / "src").mkdir()
    shutil.copy(figures.__file__, tmp_path / "tests/benchmarks")
    (tmp_path / "tests/benchmarks/fake.py").write_text(FAKE)
    (tmp_path / "src/one.py").write_text("1")
    (tmp_path / "README.md").write_text("nothing")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    (tmp_path / "src/one.py").write_text("2")
    (tmp_path / "page").write_text("")
    commit(tmp_path)
    (tmp_path / "examples").mkdir()
    page(tmp_path).write_text(PAGE.format(commit=head(tmp_path)))
    commit(tmp_path)
    return tmp_path


def git(tree, *arguments):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tree), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def commit(tree):
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "more")


def head(tree):
    return git(tree, "rev-parse", "--short", "HEAD")


def page(tree):
    return tree / "examples/page.md"


def run(tree, *arguments):
    """Python without site-packages: figures.py needs nothing else."""
    command = [sys.executable, "-I", "-S", "tests/benchmarks/figures.py", *arguments]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_nothing_is_stale(tree):
    assert run(tree) == (0, "")


@pytest.mark.slow
def test_changed_files_make_a_table_stale(tree):
    (tree / "src/one.py").write_text("3")  # not committed
    (tree / "src/new.py").write_text("3")
    assert run(tree) == (1, "stale speed src/new.py src/one.py\n")
    commit(tree)
    assert run(tree) == (1, "stale speed src/new.py src/one.py\n")
    (tree / "tests/benchmarks/fake.py").write_text(f"{FAKE}\n1")
    assert run(tree)[1].splitlines() == [
        "stale speed src/new.py src/one.py tests/benchmarks/fake.py",
        "stale shares tests/benchmarks/fake.py",
    ]


CODE = """import os

LIMIT = 2


def f(a):
    return a
"""
EXPLAINED = CODE.replace("import os", '"""A module."""\nimport sys').replace(
    "):\n", '):\n    """Return a."""\n    import os  # for nothing\n'
)


def test_code_that_is_moved_or_explained_is_as_measured(tree):
    (tree / "src/one.py").write_text(CODE)
    commit(tree)
    page(tree).write_text(PAGE.format(commit=head(tree)))
    commit(tree)
    (tree / "src/one.py").write_text(EXPLAINED.split("\n\n\n")[0] + "\n")
    (tree / "src/sub").mkdir()
    (tree / "src/sub/two.py").write_text(EXPLAINED.split("\n\n\n")[1])
    commit(tree)
    assert run(tree) == (0, "")
    (tree / "src/sub/two.py").write_text(EXPLAINED.replace("return a", "return -a"))
    assert run(tree) == (1, "stale speed src/sub/two.py\n")


def test_a_commit_that_is_not_here_is_said(tree):
    page(tree).write_text(PAGE.format(commit="abcdef0"))
    code, told = run(tree)
    assert code == 1
    assert told.splitlines()[0].startswith("unknown speed: this clone lacks abcdef0")
    assert told.count("unknown") == 2


def changed_tree(tree, short):
    (tree / "src/one.py").write_text("3")
    (tree / "whole").write_text(WHOLE)
    (tree / "short").write_text(short)
    commit(tree)
    return head(tree)


def test_measuring_writes_all_tables_of_the_command(tree):
    new = changed_tree(tree, "")
    code, told = run(tree, "--measure", "speed", "--logs", "somewhere")
    assert code == 0, told
    assert "made ['somewhere']" in told
    assert told.splitlines()[-1] == "read again: examples/page.md:10 quotes speed"
    expected = PAGE.format(commit=new)
    expected = expected.replace("| 1.50 | 70 |", "| 1.70 | 7 |").replace("2.00 | 90", "2.10 | 9")
    assert page(tree).read_text() == expected.replace("1.0", "2.0").replace("0.95", "0.94")
    assert run(tree) == (0, "")


@pytest.mark.slow
def test_measuring_wants_what_it_measures_committed(tree):
    before = page(tree).read_text()
    changed_tree(tree, "")
    (tree / "src/one.py").write_text("4")
    code, told = run(tree, "--measure", "speed", "--logs", "somewhere")
    assert (code, told.startswith("commit first")) == (1, True)
    assert run(tree, "--measure", "other")[1].startswith("there is no table other")
    (tree / "src/one.py").write_text("3")
    assert "give --logs" in run(tree, "--measure", "speed")[1]
    (tree / "whole").unlink()
    assert "nothing is written" in run(tree, "--measure", "speed", "--logs", ".")[1]
    assert page(tree).read_text() == before


SHORT = "| log | times as long | ms |\n| --- | --: | --: |\n"


def test_confirming_writes_the_commit_only(tree):
    new = changed_tree(tree, f"{SHORT}| short | 1.64 | 7000 |\n")
    old = page(tree).read_text()
    code, told = run(tree, "--confirm", "--logs", ".")
    assert code == 0, told
    assert "made ['.', '--short']" in told
    line = "figures speed: python tests/benchmarks/fake.py LOGS, at "
    assert page(tree).read_text() == re.sub(f"{line}\\w+", f"{line}{new}", old)


@pytest.mark.parametrize(
    ("short", "said"),
    first(
        2,
        [
            (f"{SHORT}| short | 1.66 | 70 |", "short: times as long: 1.66, and 1.50 is written"),
            (f"{SHORT}| other | 1.50 | 70 |", "other: the page has no such row"),
            (SHORT, "no row is printed"),
            ("nothing", "the short part prints no table with its header"),
        ],
        of_several=True,
    ),
)
def test_confirming_says_what_differs(tree, short, said):
    changed_tree(tree, f"{short}\n")
    before = page(tree).read_text()
    code, told = run(tree, "--confirm", "speed", "--logs", ".")
    assert (code, told.splitlines()[-1]) == (1, f"speed: {said}")
    assert page(tree).read_text() == before


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("2.0", "2.2", True),
        ("2.0", "2.21", False),
        ("0.003", "0.022", True),
        ("0.93 to 0.97 (0.1)", "0.92 to 0.99 (0.09)", True),
        ("0.93 to 0.97 (0.1)", "0.92 to 0.99", False),
        ("80 000", "79,000", True),
        ("97.5%", "80.0%", False),
        ("", "", True),
        ("", "1", False),
    ],
)
def test_what_is_as_written(old, new, same):
    assert figures.is_as_written(old, new) == same


@pytest.mark.slow
def test_the_quick_part_says_what_is_worse_by_a_quarter(tree):
    page(tree).write_text(PAGE.format(commit=head(tree)).replace("speed", "quick"))
    (tree / "whole").write_text(f"{SHORT}| short | 1.87 | 700 |\n| long | 2.51 | 90 |\n")
    code, told = run(tree, "--quick", "--logs", ".")
    last = "worse: long: times as long: 2.51, and 2.00 is written"
    assert (code, told.splitlines()[-1]) == (1, last)
    (tree / "whole").write_text(f"{SHORT}| short | 1.00 | 700 |\n")
    code, told = run(tree, "--quick", "--logs", ".")
    assert (code, told.splitlines()[-1]) == (0, "worse: nothing")

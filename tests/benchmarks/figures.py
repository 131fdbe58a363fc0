"""The tables of figures in the README and the guide: which are stale, and how to renew them.

    python tests/benchmarks/figures.py                       # what is stale
    python tests/benchmarks/figures.py --measure [NAME ...]  # run the command, write the table
    python tests/benchmarks/figures.py --confirm [NAME ...]  # run a short part of it
    python tests/benchmarks/figures.py --quick --logs LOGS   # what is slower than recorded

Needs Python and git. Commands need what they say; a folder for their logs is `--logs`. A table
stands in a page between two lines:

    <!-- figures NAME: COMMAND, at COMMIT, of FILES -->
    <!-- end of NAME -->

COMMIT is where it was measured. FILES are the files and folders that it depends on, beside the
script of the command. A table whose files have changed since is listed as `stale NAME FILE ...`; a
table whose commit is not in this clone is listed as `unknown NAME`. Then the exit code is 1. A file
of Python has changed if it has a statement that no file had at the commit. Comments, docstrings and
imports are none, so code may be moved and explained.

A command may print several tables. A table is known by its header row, numbers aside. All tables of
a command are written together. Without a NAME, `--measure` and `--confirm` take what is stale.

Columns of labels are aligned to the left, columns of figures to the right. `--confirm` runs the
command with `--short`, which prints some of the rows, or rows of fewer samples. If each number of
each row is as written, only the commit is written. Else the rows that differ are printed, and
nothing is written. As written means: it differs by at most a tenth, or by at most 0.02, which is
rounding for a ratio and sampling error for a share. Columns of times and ranges, and those that say
where something is, are not compared.

`--quick` runs the command of the table "quick", and prints what is more than a quarter larger.

A sentence that repeats figures ends with `<!-- quotes NAME -->`. `--measure` lists such sentences,
for someone to read them again.
"""

from __future__ import annotations

import argparse
import ast
import functools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REGION = re.compile(
    r"^<!-- figures (?P<name>\w+): (?P<command>.+), at (?P<commit>\w+), of (?P<files>.+) -->\n"
    r"(?P<text>.*?)^<!-- end of (?P=name) -->$",
    re.MULTILINE | re.DOTALL,
)
QUOTES = re.compile(r"<!-- quotes ([\w ]+) -->")
TIMES = re.compile(r"(^| )(ms|s|min|seconds?)($|[ ,])|range$|^where")
"""Columns that another run does not repeat."""
Rows = dict[tuple[str, ...], dict[str, str]]


@dataclass(frozen=True)
class Table:
    """A table of figures in a page."""

    page: Path
    name: str
    command: str
    commit: str
    files: tuple[str, ...]
    text: str

    @property
    def depends(self) -> list[str]:
        """The files, and the script of the command."""
        return [*self.files, *(word for word in self.command.split() if word.endswith(".py"))]


def pages(root: Path) -> list[Path]:
    return [root / "README.md", *sorted((root / "examples").rglob("*.md"))]


def tables(root: Path) -> dict[str, Table]:
    """The tables of all pages, by name."""
    found: dict[str, Table] = {}
    for page in pages(root):
        for match in REGION.finditer(page.read_text("utf-8")):
            name, command, commit, files, text = match.groups()
            assert name not in found, f"two tables have the name {name}"
            found[name] = Table(page, name, command, commit, tuple(files.split()), text)
    return found


def quotes(root: Path) -> Iterator[tuple[str, int, str]]:
    """Sentences that repeat figures: the page, the line, and a name of a table."""
    for page in pages(root):
        for place, line in enumerate(page.read_text("utf-8").splitlines(), 1):
            for match in QUOTES.finditer(line):
                for name in match[1].split():
                    yield page.relative_to(root).as_posix(), place, name


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class _WithoutWords(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else self.generic_visit(node)

    def _none(self, _: ast.AST) -> None:
        return None

    visit_Import = visit_ImportFrom = _none  # noqa: N815 - names of the base class


def statements(code: str) -> set[str]:
    """The statements and definitions of a module, without docstrings, comments and imports."""
    return {ast.dump(statement) for statement in _WithoutWords().visit(ast.parse(code)).body}


@functools.cache
def statements_at(root: Path, commit: str) -> set[str]:
    """The statements that modules had at a commit, of those that have changed or are gone."""
    names = git(
        root, "diff", "--name-only", "--no-renames", "--diff-filter=a", commit, "--", "*.py"
    )
    wanted = [f"{commit}:{name}" for name in names.splitlines()]
    command = ["git", "-C", str(root), "cat-file", "--batch"]
    done = subprocess.run(
        command, input="\n".join(wanted).encode(), capture_output=True, check=True
    )
    found, rest = set[str](), done.stdout
    for _ in wanted:
        about, rest = rest.split(b"\n", 1)
        size = int(about.split()[-1])
        found |= statements(rest[:size].decode())
        rest = rest[size + 1 :]
    return found


def changed(root: Path, commit: str, files: Sequence[str]) -> list[str] | None:
    """Files that run something else than at the commit; None if the commit is not here."""
    try:
        git(root, "cat-file", "-e", f"{commit}^{{commit}}")
    except subprocess.CalledProcessError:
        return None
    return [name for name in differing(root, commit, files) if is_new(root, commit, name)]


def differing(root: Path, commit: str, files: Sequence[str]) -> list[str]:
    """Files that are not as at a commit, new ones included."""
    found = git(root, "diff", "--name-only", commit, "--", *files)
    found += git(root, "ls-files", "--others", "--exclude-standard", "--", *files)
    return sorted(found.splitlines())


def is_new(root: Path, commit: str, name: str) -> bool:
    """Whether a file that differs from a commit runs what no file ran then."""
    if not name.endswith(".py"):
        return True
    path = root / name
    return path.exists() and not statements(path.read_text("utf-8")) <= statements_at(root, commit)


def stale(root: Path) -> dict[str, list[str] | None]:
    """The tables to measure or confirm, with what has changed."""
    found = {
        name: changed(root, table.commit, table.depends) for name, table in tables(root).items()
    }
    return {name: files for name, files in found.items() if files != []}


def print_stale(root: Path) -> bool:
    found = stale(root)
    for name, files in found.items():
        if files is None:
            commit = tables(root)[name].commit
            print(f"unknown {name}: this clone lacks {commit}; try git fetch --unshallow")
        else:
            more = [f"and {len(files) - 4} more"] if len(files) > 4 else []
            print("stale", name, *files[:4], *more)
    return bool(found)


def printed(root: Path, command: str, logs: str | None, *options: str) -> list[str]:
    """The tables that a command prints. It runs on the package of this tree."""
    words = [*shlex.split(command), *options]
    if "LOGS" in words and logs is None:
        sys.exit(f"{command}: give --logs, a folder for its logs")
    run = [{"python": sys.executable, "LOGS": str(logs)}.get(word, word) for word in words]
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    print("$", *words, flush=True)
    process = subprocess.Popen(
        run, stdout=subprocess.PIPE, text=True, cwd=root, env={**os.environ, "PYTHONPATH": path}
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    if process.wait():
        sys.exit(f"{command} failed, so nothing is written")
    return re.findall(r"(?:^\|.*\n)+", "".join(lines), re.MULTILINE)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def header(table: str) -> list[str]:
    """What a table is known by: versions in it may change."""
    return [re.sub(r"[\d.]+", "", cell).strip() for cell in cells(table.split("\n", 1)[0])]


def like(table: Table, found: Sequence[str]) -> str | None:
    """The printed table with the same header row."""
    return next((one for one in found if header(one) == header(table.text)), None)


def rows(text: str) -> Rows:
    """The figures of each row, by its labels and by column."""
    head, alignment, *lines = (cells(line) for line in text.splitlines())
    is_figure = [mark.endswith(":") for mark in alignment]
    found: Rows = {}
    for line in lines:
        both = [*zip(head, is_figure, line, strict=True)]
        labels = tuple(cell for _, is_right, cell in both if not is_right)
        found[labels] = {
            name: cell for name, is_right, cell in both if is_right and not TIMES.search(name)
        }
    return found


def numbers(cell: str) -> list[float]:
    without_groups = re.sub(r"(?<=\d)[ ,](?=\d{3}\b)", "", cell)
    return [float(number) for number in re.findall(r"-?\d+\.?\d*", without_groups)]


def is_as_written(old: str, new: str) -> bool:
    before, now = numbers(old), numbers(new)
    return len(before) == len(now) and all(
        abs(a - b) <= max(0.1 * abs(a), 0.02) + 1e-9 for a, b in zip(before, now, strict=True)
    )


def is_worse(old: str, new: str) -> bool:
    """Whether a number is larger by more than a quarter."""
    return any(b > 1.25 * a for a, b in zip(numbers(old), numbers(new), strict=False))


def differences(old: str, new: str, *, worse: bool = False) -> list[str]:
    """The cells of new rows that are not as written, or that are worse."""
    written, found = rows(old), []
    for labels, figures in rows(new).items():
        name = ", ".join(filter(None, labels))
        if labels not in written:
            found.append(f"{name}: the page has no such row")
            continue
        for column, cell in figures.items():
            before = written[labels][column]
            if is_worse(before, cell) if worse else not is_as_written(before, cell):
                found.append(f"{name}: {column}: {cell}, and {before} is written")
    return found


def write(root: Path, table: Table, text: str, commit: str) -> None:
    """Write a table and its commit into its page."""

    def region(match: re.Match[str]) -> str:
        if match["name"] != table.name:
            return match[0]
        about = f"figures {table.name}: {table.command}, at {commit}, of {' '.join(table.files)}"
        return f"<!-- {about} -->\n{text}<!-- end of {table.name} -->"

    page = table.page.read_text("utf-8")
    table.page.write_text(REGION.sub(region, page), "utf-8")
    print(f"{table.page.relative_to(root).as_posix()} has {table.name}, at {commit}")


def asked(root: Path, names: Sequence[str]) -> list[Table]:
    """The named tables, or those that are stale. Their files are as committed."""
    every = tables(root)
    if unknown := {*names} - {*every}:
        sys.exit(f"there is no table {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    found = [every[name] for name in names or stale(root)]
    for table in found:
        if files := differing(root, "HEAD", table.depends):
            sys.exit(f"commit first, so that a commit has what is measured: {' '.join(files)}")
    return found


def measure(root: Path, names: Sequence[str], logs: str | None) -> bool:
    """Write the tables of the commands. Whether one of them was not printed."""
    commit, failed, written = git(root, "rev-parse", "--short", "HEAD").strip(), False, set()
    for command in dict.fromkeys(table.command for table in asked(root, names)):
        found = printed(root, command, logs)
        for table in tables(root).values():
            if table.command != command:
                continue
            text = like(table, found)
            if text is None:
                print(f"{table.name}: the command prints no table with its header")
                failed = True
            else:
                write(root, table, text, commit)
                written.add(table.name)
    for page, line, name in quotes(root):
        if name in written:
            print(f"read again: {page}:{line} quotes {name}")
    return failed


def confirm(root: Path, names: Sequence[str], logs: str | None) -> bool:
    """Write the commit of the tables that a short run repeats. Whether one was not repeated."""
    commit, failed = git(root, "rev-parse", "--short", "HEAD").strip(), False
    chosen = asked(root, names)
    for command in dict.fromkeys(table.command for table in chosen):
        found = printed(root, command, logs, "--short")
        for table in (table for table in chosen if table.command == command):
            text = like(table, found)
            differs = (
                ["the short part prints no table with its header"]
                if text is None
                else differences(table.text, text) or ([] if rows(text) else ["no row is printed"])
            )
            for line in differs:
                print(f"{table.name}: {line}")
            if differs:
                failed = True
            else:
                write(root, table, table.text, commit)
    return failed


def quick(root: Path, logs: str | None) -> bool:
    """Print what is worse than the table "quick" by more than a quarter."""
    table = tables(root)["quick"]
    text = like(table, printed(root, table.command, logs))
    assert text is not None, "the command prints no table with the header of the page"
    differs = differences(table.text, text, worse=True)
    print(*(f"worse: {line}" for line in differs or ["nothing"]), sep="\n")
    return bool(differs)


def main(arguments: Sequence[str] | None = None) -> bool:
    """What the program does; whether there is something to do."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--measure", nargs="*", metavar="NAME", help="write tables")
    what.add_argument("--confirm", nargs="*", metavar="NAME", help="write commits")
    what.add_argument("--quick", action="store_true", help="what is worse by a quarter")
    parser.add_argument("--logs", help="a folder for logs, for commands with LOGS")
    options = parser.parse_args(arguments)
    if options.measure is not None:
        return measure(ROOT, options.measure, options.logs)
    if options.confirm is not None:
        return confirm(ROOT, options.confirm, options.logs)
    return quick(ROOT, options.logs) if options.quick else print_stale(ROOT)


if __name__ == "__main__":
    sys.exit(main())

"""Measure the tables of figures in the guide, and write them into its pages: before a release.

    python tests/benchmarks/figures.py --logs LOGS [PAGE ...]

It takes some five hours on two cores. LOGS is a folder for the logs that commands make. With PAGE,
such as `how_sure.md`, only the tables of these pages are measured. A table stands between two
lines:

    <!-- figures NAME: COMMAND -->
    <!-- end of NAME -->

A command may print several tables: a table is known by its header row, numbers aside. When all
tables of a page are written, its line `<!-- measured -->` says with which version and where. If a
command fails, or does not print a table, that is said at the end, and the line stays as it was.
A sentence that repeats figures ends with `<!-- quotes NAME -->`, and is listed to be read again.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REGION = re.compile(
    r"(?<=^<!-- figures )(?P<name>\w+): (?P<command>.+) -->\n"
    r"(?P<text>.*?)(?=^<!-- end of (?P=name) -->$)",
    re.MULTILINE | re.DOTALL,
)
MEASURED = re.compile(r"(?<=^<!-- measured -->\n).*$", re.MULTILINE)
QUOTES = re.compile(r"<!-- quotes ([\w ]+) -->")


def pages(root: Path) -> list[Path]:
    return [root / "README.md", *sorted((root / "examples").rglob("*.md"))]


def header(table: str) -> list[str]:
    """What a table is known by: versions in it may change."""
    cells = table.split("\n", 1)[0].strip("| ").split("|")
    return [re.sub(r"[\d.]+", "", cell).strip() for cell in cells]


def printed(root: Path, command: str, logs: str) -> list[str]:
    """The tables that a command prints. It runs on the package of this tree."""
    words = {"python": sys.executable, "LOGS": logs}
    run = [words.get(word, word) for word in shlex.split(command)]
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    # A new process reads compiled modules, as a user's: compiling ours anew takes a second.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    print("$", command, flush=True)
    done = subprocess.run(
        run, stdout=subprocess.PIPE, text=True, cwd=root, env=environment, check=False
    )
    print(done.stdout, flush=True)
    return [] if done.returncode else re.findall(r"(?:^\|.*\n)+", done.stdout, re.MULTILINE)


def machine(root: Path) -> str:
    text = (root / "polars_mcc/_version.py").read_text("utf-8")
    [own] = re.findall(r'__version__ = "(.*)"', text)
    versions = f"polars_mcc {own} and Polars {version('polars')}"
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return (
        f"The figures of this page are of {versions}, on {os.cpu_count()} cores ({system}). "
        "Seconds depend on the machine and its load, and ratios to other programs do too."
    )


def write(root: Path, page: Path, found: dict[str, list[str]]) -> list[str]:
    """Write the printed tables into a page. Return the names of tables that were not printed."""
    missing = []

    def region(match: re.Match[str]) -> str:
        tables = found[match["command"]]
        text = next((one for one in tables if header(one) == header(match["text"])), None)
        if text is None:
            missing.append(match["name"])
            return match[0]
        return f"{match['name']}: {match['command']} -->\n{text}"

    text = REGION.sub(region, page.read_text("utf-8"))
    page.write_text(text if missing else MEASURED.sub(machine(root), text), "utf-8")
    return missing


def measure(root: Path, chosen: Sequence[str], logs: str) -> bool:
    """Measure the tables of all pages, or of the chosen ones. Return whether all were written."""
    found: dict[str, list[str]] = {}
    missing: list[str] = []
    for page in pages(root):
        commands = [match["command"] for match in REGION.finditer(page.read_text("utf-8"))]
        if commands and (not chosen or page.name in chosen):
            for command in commands:
                if command not in found:
                    found[command] = printed(root, command, logs)
            missing += write(root, page, found)
    for page in pages(root):
        for place, line in enumerate(page.read_text("utf-8").splitlines(), 1):
            for match in QUOTES.finditer(line):
                print(f"read again: {page.relative_to(root)}:{place} quotes {match[1]}")
    print(*(f"not measured: {name}" for name in missing), sep="\n")
    return not missing


def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="only the tables of these pages")
    parser.add_argument("--logs", required=True, help="a folder for the logs of commands")
    options = parser.parse_args()
    return measure(ROOT, options.pages, options.logs)


if __name__ == "__main__":
    sys.exit(not main())

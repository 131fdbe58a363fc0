"""Run the code blocks of README.md and examples/, and compare or write the outputs they show.

python tests/pages.py            # which pages show other outputs than they have
python tests/pages.py --write    # write the outputs into the pages
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
GUIDE = ROOT / "examples" / "guide"
PAGES = [README, *sorted((ROOT / "examples").glob("*.md")), *sorted(GUIDE.glob("*.md"))]

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
KINDS = {"python", "py", "console", "bash", "sh", "sql", "text", "yaml"}
"""Blocks of python, console and bash are run here. py, sh, sql and yaml have tests of their own.
Text is not run."""


def blocks(language: str, page: Path = README) -> list[str]:
    """The code blocks of a page in one language."""
    found = BLOCK.findall(page.read_text("utf-8"))
    assert {kind for kind, _ in found} <= KINDS, page
    return [text for kind, text in found if kind == language]


def filled(page: str) -> str:
    """A page with the outputs that its blocks have now: one session, in an empty folder."""
    session: dict[str, object] = {}

    def run(match: re.Match[str]) -> str:
        kind, text = match.groups()
        assert kind in KINDS, f"a block of {kind!r} is not run"
        if kind == "python" and ">>>" in text:
            text = _prompted(text, session)
        elif kind == "python":
            exec(compile(text, "<page>", "exec"), session)  # noqa: S102
        elif kind == "console":
            text = _typed(text)
        elif kind == "bash":
            command = ["bash", "-c", text]
            subprocess.run(command, env=_environment(), check=True, capture_output=True)
        return f"```{kind}\n{text}```"

    assert not re.search(r"^[ \t]+```", page, re.MULTILINE), "an indented block is not run"
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # contextlib.chdir is of Python 3.11
        try:
            Path("data").symlink_to(ROOT / "data")
            return BLOCK.sub(run, page)
        finally:
            os.chdir(before)


def _prompted(text: str, session: dict[str, object]) -> str:
    """The lines of a Python session, with their outputs."""
    shown: list[str] = []
    for example in doctest.DocTestParser().get_examples(text):
        first, *others = example.source.splitlines()
        shown += [f">>> {first}", *(f"... {line}".rstrip() for line in others)]
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(example.source, "<page>", "single"), session)  # noqa: S102
        except Exception as error:  # noqa: BLE001 - the page shows it
            printed.write(f"Traceback (most recent call last):\n    ...\n{type(error).__name__}: ")
            printed.write(f"{error}\n")
        shown += printed.getvalue().splitlines()
    return "".join(f"{line}\n" for line in shown)


def _typed(text: str) -> str:
    """The lines of a shell, with their outputs. A line that ends with a backslash goes on."""
    shown = ""
    for command in re.findall(r"^\$ ((?:.*\\\n)*.*)\n", text, flags=re.MULTILINE):
        done = subprocess.run(
            ["bash", "-c", command],  # noqa: S607
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        shown += f"$ {command}\n{done.stdout}"
    return shown


def _environment() -> dict[str, str]:
    """The environment, with the programs of this Python first."""
    found = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    found.pop("POLARS_WARN_UNSTABLE", None)  # of the tests alone: see tests/conftest.py
    return found


def main() -> None:
    for path in PAGES:
        page = path.read_text("utf-8")
        if (found := filled(page)) != page:
            print(f"{path.relative_to(ROOT)} shows other outputs than its blocks have")
            if "--write" in sys.argv:
                path.write_text(found, "utf-8")


if __name__ == "__main__":
    main()

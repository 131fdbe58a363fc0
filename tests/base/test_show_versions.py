"""What a report of a fault begins with."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import polars_mcc
from polars_mcc import _version

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
OF_DEVELOPERS = {"test", "test-engines", "docs", "peers"}


def test_each_dependency_has_its_version_and_none_is_imported(monkeypatch, capsys):
    code = "import polars_mcc, sys; polars_mcc.show_versions(); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    *lines, modules = shown.stdout.splitlines()
    found = dict(line.split(": ", 1) for line in lines)
    found = {name: version.strip() for name, version in found.items()}
    assert found["polars_mcc"] == polars_mcc.__version__
    assert found["Python"].startswith("{}.{}.{}".format(*sys.version_info))
    assert {name: found[name] for name in ("polars", "numpy", "cyclopts")} == {
        name: metadata.version(name) for name in ("polars", "numpy", "cyclopts")
    }
    assert {"polars"} == {"polars", "cyclopts", "altair", "narwhals", "duckdb"} & {*modules.split()}

    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    of_users = (extras[name] for name in extras.keys() - OF_DEVELOPERS)
    needed = [*project["dependencies"], *(one for some in of_users for one in some)]
    names = {re.match(r"[\w-]+", one)[0] for one in needed}
    assert names - {"polars-mcc"} <= found.keys()

    monkeypatch.setattr(_version, "PACKAGES", ("no-such-package",))
    polars_mcc.show_versions()
    assert re.search(r"^no-such-package: +not installed\n\Z", capsys.readouterr().out, re.MULTILINE)

"""Which changes of the numeric core do the tests notice?

    pip install cosmic-ray && python tests/mutation.py

Changes the modules of the core one operator or number at a time (cosmic-ray), in a copy of
this tree, runs the tests on each, and prints the changes that they did not notice and the
share of those that they did. Takes most of an hour on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
_EXACT, _SCORED = "counts/test_exact", "scores/test_identities test_edges verbs/test_by"
_SURE = "inference/test_intervals verbs/test_compare"
_EVERY = "inference/test_every_score"
CORE = {
    "_counts/exact": f"{_EXACT} {_SCORED} log/test_errors",
    "_counts/counted": f"{_EXACT} {_SCORED} log/test_errors",
    "_counts/classes": f"{_EXACT} {_SCORED} log/test_errors verbs/test_classes",
    "_scores/r_k": f"{_EXACT} {_SCORED} log/test_errors verbs/test_classes",
    "_scores/expression": f"{_EXACT} scores/test_expression test_edges",
    "_scores/derivative": _EVERY,
    "_inference/gradients": f"{_SURE} {_EVERY}",
    "_inference/tables": f"{_SURE} {_EVERY}",
    "_inference/influences": f"{_SURE} {_EVERY}",
    "_inference/limits": f"{_SURE} {_EVERY}",
    "_inference/class_intervals": _EVERY,
    "_inference/variance": f"{_SURE} {_EVERY}",
    "_inference/differences": f"{_SURE} verbs/test_contrast",
    "_inference/bootstrap": f"inference/test_intervals {_EVERY}",
}
"""The modules of the core, and the tests of each."""

CONFIG = """
[cosmic-ray]
module-path = "polars_mcc/{module}.py"
timeout = 300
excluded-modules = []
test-command = "{python} -m pytest -x -q -p no:randomly -p no:cacheprovider {tests}"

[cosmic-ray.distributor]
name = "local"

[cosmic-ray.filters.operators-filter]
# Arithmetic stays arithmetic, and logic logic: of the rest, nothing gets past an import.
exclude-operators = [
    "core/ReplaceBinaryOperator_.*_(Pow|LShift|RShift|BitXor|Mod)",
    "core/ReplaceBinaryOperator_(Add|Sub|Mul|Div|FloorDiv|Pow|Mod)_Bit.*",
    "core/ReplaceBinaryOperator_Bit.*_(Add|Sub|Mul|Div|FloorDiv)",
    "core/ReplaceComparisonOperator_.*_(Is|IsNot)",
]
"""


def mutate(module: str) -> list[tuple[str, bool]]:
    """The changes of a module, each as a diff, and whether a test failed for it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        tests = " ".join(f"tests/{name}.py" for name in CORE[module].split())
        config = CONFIG.format(module=module, python=sys.executable, tests=tests)
        (copy / "config.toml").write_text(config)

        def run(command: str, *arguments: str) -> str:
            done = subprocess.run(
                [BIN / command, *arguments],
                cwd=copy,
                env=os.environ | {"PYTHONPATH": str(copy), "HYPOTHESIS_PROFILE": "quick"},
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
            return done.stdout

        run("cosmic-ray", "init", "config.toml", "session.sqlite")
        run("cr-filter-operators", "session.sqlite", "config.toml")
        run("cosmic-ray", "exec", "config.toml", "session.sqlite")
        done = map(json.loads, run("cosmic-ray", "dump", "session.sqlite").splitlines())
        return [
            (result["diff"], result["test_outcome"] != "survived")
            for _, result in done
            if result["worker_outcome"] == "normal"
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("modules", nargs="*", default=list(CORE), help=", ".join(CORE))
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    with ThreadPoolExecutor(args.workers) as workers:
        results = dict(zip(args.modules, workers.map(mutate, args.modules), strict=True))
    for module, changes in results.items():
        for diff, noticed in changes:
            if not noticed:
                print(f"not noticed in {module}:\n{diff}\n")
    for module, changes in [*results.items(), ("all", list(chain(*results.values())))]:
        noticed = sum(noticed for _, noticed in changes)
        print(f"{module}: {noticed} of {len(changes)} noticed, {noticed / len(changes):.1%}")


if __name__ == "__main__":
    main()

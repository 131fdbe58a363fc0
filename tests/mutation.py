"""Which changes of the package do the tests notice?

    pip install cosmic-ray && python tests/mutation.py

Changes the rooms that compute one operator or number at a time (cosmic-ray), in a copy of this
tree, and runs the tests of the room on each change. Prints the changes that the tests did not
notice, and the share of those that they did. A sample of 1 change in 50 takes about half an
hour on two cores; `--share 1` takes a day.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cosmic_ray.work_item import MutationSpec

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
ROOMS = {
    "_counts": "counts metrics/test_identities.py metrics/test_scores_of_classes.py test_edges.py"
    " verbs/test_by.py verbs/test_classes.py frame/test_errors.py keys/test_bins.py test_unseen.py"
    " test_plan.py",
    "_metrics": "metrics/test_column.py metrics counts/test_exact.py test_edges.py"
    " verbs/test_by.py verbs/test_curve.py verbs/test_classes.py intervals/test_every_score.py"
    " intervals/test_errors_of_scores.py",
    "_intervals": "intervals verbs/test_classes.py verbs/test_by.py",
    "_comparisons": "comparisons verbs/test_compare.py verbs/test_contrast.py verbs/test_drift.py"
    " verbs/test_gaps.py verbs/test_check.py",
    "_worst": "worst verbs/test_worst.py report/test_verdict.py",
    "_store": "store/test_delta.py store/test_operations.py store/test_keep.py",
}
"""The rooms that compute, and the tests of each; the quickest first."""

CONFIG = """
[cosmic-ray]
module-path = "polars_mcc/{room}"
timeout = 600
excluded-modules = []
test-command = "{python} -m pytest -n0 -x -q {options} {tests}"

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


@cache
def annotations(module: Path) -> list[ast.expr]:
    """The annotations of a module: text for the type checker, which no test runs."""
    nodes = ast.walk(ast.parse(module.read_text("utf-8")))
    found = (getattr(one, name, None) for one in nodes for name in ("annotation", "returns"))
    return [one for one in found if isinstance(one, ast.expr)]


def in_annotation(tree: Path, change: MutationSpec) -> bool:
    return any(
        (one.lineno, one.col_offset) <= change.start_pos < (one.end_lineno, one.end_col_offset)
        for one in annotations(tree / change.module_path)
    )


def mutate(room: str, share: float, seed: int) -> list[tuple[str, bool]]:
    """A sample of the changes of a room, each as a diff, and whether a test failed for it."""
    # The test run imports this file, to look for doctests, and has no cosmic-ray.
    from cosmic_ray.work_db import WorkDB, use_db  # noqa: PLC0415
    from cosmic_ray.work_item import WorkerOutcome, WorkResult  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        tests = " ".join(f"tests/{name}" for name in ROOMS[room].split())
        options = "-m 'not release' -p no:randomly -p no:cacheprovider"
        config = CONFIG.format(room=room, python=sys.executable, options=options, tests=tests)
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
        with use_db(str(copy / "session.sqlite"), WorkDB.Mode.open) as session:
            changes = sorted(session.pending_work_items, key=lambda item: str(item.mutations))
            in_code = [item for item in changes if not in_annotation(copy, *item.mutations)]
            kept = random.Random(seed).sample(in_code, round(share * len(in_code)))
            left_out = {item.job_id for item in changes} - {item.job_id for item in kept}
            session.set_multiple_results(left_out, WorkResult(WorkerOutcome.SKIPPED))
        run("cosmic-ray", "exec", "config.toml", "session.sqlite")
        done = map(json.loads, run("cosmic-ray", "dump", "session.sqlite").splitlines())
        return [
            (result["diff"], result["test_outcome"] != "survived")
            for _, result in done
            if result["worker_outcome"] == "normal"
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("rooms", nargs="*", default=list(ROOMS), help=", ".join(ROOMS))
    parser.add_argument("--share", type=float, default=0.02, help="of the changes of each room")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    with ThreadPoolExecutor(args.workers) as workers:
        tried = workers.map(lambda room: mutate(room, args.share, args.seed), args.rooms)
        results = dict(zip(args.rooms, tried, strict=True))
    for room, changes in results.items():
        for diff, noticed in changes:
            if not noticed:
                print(f"not noticed in {room}:\n{diff}\n")
    for room, changes in [*results.items(), ("all", list(chain(*results.values())))]:
        noticed = sum(noticed for _, noticed in changes)
        print(f"{room}: {noticed} of {len(changes)} noticed, {noticed / max(1, len(changes)):.1%}")


if __name__ == "__main__":
    main()

"""The folders of the package: imports go down only."""

from __future__ import annotations

import ast
import functools
import graphlib
from pathlib import Path

import polars_mcc

PACKAGE = Path(polars_mcc.__file__).parent
FLOORS = [
    {"_version"},
    {"_base"},
    {"_frame"},
    {"_keys"},
    {"_counts"},
    {"_metrics"},
    {"_intervals"},
    {"_comparisons"},
    {"_worst"},
    {"_display", "plot"},
    {"_verbs"},
    {"_inputs", "_store"},
    {"_report"},
    {"prediction_log"},
    {"expr_namespace"},
    {"_public_names", "metric"},
    {"_cli"},
    {"__init__", "__main__"},
]
"""From the bottom up. Folders of one floor may import each other, but not in a circle."""
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
MODULES = {
    "polars_mcc." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
    for path in PACKAGE.rglob("*.py")
}


@functools.cache
def imported(path: Path) -> set[str]:
    """The modules of the package that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports a relative name"
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in MODULES else node.module for name in inside]
        else:
            continue
        found |= {name for name in names if name.split(".")[0] == "polars_mcc"}
    return {"polars_mcc.__init__" if name == "polars_mcc" else name for name in found}


def floor_of(module: str) -> int:
    return FLOOR_OF[module.split(".")[1]]


def test_every_module_is_in_a_room():
    assert {module.split(".")[1] for module in MODULES} == {*FLOOR_OF}


def test_arrows_go_down():
    upward = [
        f"{module} imports {other}"
        for module, path in MODULES.items()
        for other in imported(path)
        if floor_of(other) > floor_of(module)
    ]
    assert upward == []


def test_there_are_no_circles():
    """This includes imports within a folder, and imports inside functions."""
    graph = {module: imported(path) for module, path in MODULES.items()}
    assert len([*graphlib.TopologicalSorter(graph).static_order()]) >= len(MODULES)

"""The folders of the package: imports go down only, and test folders mirror them."""

from __future__ import annotations

import ast
import functools
import graphlib
from collections import Counter
from pathlib import Path

import polars_mcc

PACKAGE = Path(polars_mcc.__file__).parent
TESTS = Path(__file__).parent
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


def test_tests_lie_in_folders_that_mirror_the_rooms():
    rooms = {path.parent.name.lstrip("_") for path in PACKAGE.glob("_*/__init__.py")}
    folders = {path.parent.name for path in TESTS.glob("*/test_*.py")}
    assert folders == rooms


ABOVE = {
    "conftest.py",  # forgets metrics that were registered, and the libraries of charts
    "store_cases.py",
    "test_coded.py",  # keeping counts is one way to count rows by codes
    "test_progress.py",  # the bar of a command
    "test_scorer.py",  # a search asks it
    "test_spark.py",
    "test_spellings.py",
}
"""Files of tests that import a private name of a room that is not below their own."""


def test_tests_import_public_names_and_those_of_their_room():
    """And of rooms below it, which make what the room takes."""
    outside = set()
    for path in {*TESTS.rglob("*.py")} - {*TESTS.glob("benchmarks/*")}:
        room = f"_{path.parent.name}"
        if "polars_mcc._" not in path.read_text("utf-8"):
            continue
        rooms = {name.split(".")[1] for name in imported(path) if name.count(".") > 1}
        if any(FLOOR_OF[one] > FLOOR_OF.get(room, -1) for one in rooms - {room}):
            outside.add(path.name)
    assert outside == ABOVE


def test_a_name_of_a_file_or_class_means_one_thing():
    files = Counter(path.stem for path in MODULES.values() if path.stem != "__init__")
    classes = Counter(
        node.name.lstrip("_")
        for path in MODULES.values()
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    assert min(len(files), len(classes)) > 100
    assert {name for names in (files, classes) for name, n in names.items() if n > 1} == set()


def test_a_module_is_small():
    """Split a file that is longer than 450 lines."""
    lines = {module: len(path.read_text("utf-8").splitlines()) for module, path in MODULES.items()}
    assert {module: count for module, count in lines.items() if count > 450} == {}

"""A store of each format is read, and goes on counting, in each later version.

The stores are in `format_NUMBER/`. Make them for a new number, and only then:
`PYTHONPATH=tests:tests/cli python tests/store/test_formats.py`.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from runner import invoke

import polars_mcc
from polars_mcc import PredictionLog
from polars_mcc._inputs import log_from_files
from polars_mcc._store import count_and_commit
from polars_mcc._store.delta_table import FORMAT, open_store

HERE = Path(__file__).parent
DAYS = [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]
NOON, ONE, SECOND = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC), dt.time(1), dt.timedelta(seconds=1)
ROWS = {
    "text": pl.DataFrame(
        {
            "country": ["DE", "DE", "DE", None],
            "gold": ["cat", "dog", "dog", "cat"],
            "pred": ["cat", "dog", "cat", None],
        }
    ),
    "dtypes": pl.DataFrame(
        {
            "size": pl.Series(["small", "large"], dtype=pl.Enum(["small", "large"])),
            "at": pl.Series([NOON, None], dtype=pl.Datetime("ns", "UTC")),
            "time": [ONE, None],
            "took": pl.Series([SECOND, None], dtype=pl.Duration("ms")),
            "gold": pl.Series([255, 0], dtype=pl.UInt8),
            "old": pl.Series([255, 255], dtype=pl.UInt8),
            "new": pl.Series([255, 0], dtype=pl.UInt8),
        }
    ),
    "typed": pl.DataFrame(
        {
            "code": ["01", "1", "1", "1", "NA", "1"],
            "truth": [True, True, False, False, True, False],
            "guess": [True, True, False, True, True, True],
            "times": [1.5, 0.25, 2.0, 0.5, 1.0, 9.0],
            "use": [1, 1, 1, 1, 1, 0],
        }
    ),
    "waiting": pl.DataFrame(
        {"id": [1, 2, 3, 4], "day": [DAYS[0], *DAYS, DAYS[1]], "pred": ["a", "b", "b", "a"]}
    ),
    "folders": pl.DataFrame({"gold": [1, 0, 1, 0], "pred": [1, 0, 0, 0]}),
}
LABELS = pl.DataFrame({"id": [1, 2, 3], "label": ["a", "b", "a"], "came": [1, 1, 1]})
_TYPED = {"gold": "truth", "pred": "guess", "weight": "times", "filter": "use = 1"}
_WAITING = {"gold": "label", "outcomes": "labels", "on": "id", "latest": "came", "time": "day"}
OPTIONS: dict[str, dict[str, Any]] = {
    "text": {"by": "country"},
    "dtypes": {"by": ["size", "at", "time", "took"], "pred": ["old", "new"]},
    "typed": {"by": "code", **_TYPED, "text": "code", "null": "NA", "separator": ";"},
    "waiting": {"by": "day", **_WAITING, "recount": "2d"},
    "folders": {"by": "part"},
}
ANSWERS: dict[str, tuple[list[tuple], list[tuple]]] = {
    "text": ([(None, 0, None, 1), ("DE", 3, 0.5, 0)], [(3, 0.5, 1)]),
    "dtypes": (
        [
            ("small", NOON, ONE, SECOND, "old", 1, 0.0, 0),
            ("small", NOON, ONE, SECOND, "new", 1, 0.0, 0),
            ("large", None, None, None, "old", 1, 0.0, 0),
            ("large", None, None, None, "new", 1, 0.0, 0),
        ],
        [("old", 2, 0.0, 0), ("new", 2, 1.0, 0)],
    ),
    "typed": (
        [(None, 1.0, 0.0, 0.0), ("01", 1.5, 0.0, 0.0), ("1", 2.75, 0.516398, 0.0)],
        [(5.25, 0.822753, 0.0)],
    ),
    "waiting": ([(DAYS[0], 2, 1.0, 0, 0), (DAYS[1], 1, 0.0, 1, 1)], [(3, 0.5, 1, 1)]),
    "folders": ([("x", 4, 0.57735, 0)], [(4, 0.57735, 0)]),
}
"""The rows of `by` and of `score`: keys, the model, n, mcc, n_null, n_waiting."""


def write(kind: str, name: str) -> None:
    """Write a log, and the labels that come later, into the working directory."""
    folder = Path("logs", "part=x" if kind == "folders" else "")
    for place in (folder, Path("labels")):
        place.mkdir(parents=True, exist_ok=True)
    LABELS.write_parquet("labels/a.parquet")
    if kind == "typed":
        ROWS[kind].write_csv(folder / f"{name}.csv", separator=";")
    else:
        ROWS[kind].write_parquet(folder / f"{name}.parquet")


def count(kind: str, *logs: str, forget: bool = False) -> str:
    """Count on the command line, which has every setting. Return what it says."""
    words = ["counts", *logs, "--out", "store", *["--forget"] * forget]
    for name, value in OPTIONS[kind].items():
        for one in value if isinstance(value, list) else [value]:
            words += [f"--{name}", one]
    done = invoke(*words)
    assert done.exit_code == 0, done.output
    return done.stderr


def answers(kind: str, times: int = 1) -> tuple[list[tuple], ...]:
    """What the store answers, where it has each row so many times."""
    log, by = PredictionLog.from_store("store"), OPTIONS[kind]["by"]
    asked = log.by(*([by] if isinstance(by, str) else by)), log.score()
    counts = pl.col("^n(_null|_waiting)?$") / times
    return tuple(one.with_columns(pl.col("mcc").round(6), counts).collect().rows() for one in asked)


def copied(kind: str, number: int = FORMAT, *, says: str | None = None) -> None:
    """Copy a store into the working directory; its metadata may say another format."""
    shutil.copytree(HERE / f"format_{number}" / kind, "store")
    own = f'"polars_mcc.format":"{number}"'
    for commit in Path("store/_delta_log").iterdir():
        text = commit.read_text("utf-8")
        assert own in text or '"metaData"' not in text
        commit.write_text(text.replace(own, says or own), "utf-8")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("number", range(1, FORMAT + 1))
@pytest.mark.parametrize("kind", ROWS)
def test_a_store_is_read_and_goes_on_counting(kind, number):
    copied(kind, number)
    assert answers(kind) == ANSWERS[kind]
    before = open_store("store").inputs
    write(kind, "b")
    assert "1 counted, 0 replaced, 0 unchanged" in count(kind, "logs")
    assert answers(kind, times=2) == ANSWERS[kind]
    assert f"{len(before)} forgotten" in count(kind, "logs", *before, forget=True)
    assert answers(kind) == ANSWERS[kind]
    assert open_store("store").inputs.keys().isdisjoint(before)


def test_a_store_without_a_number_is_of_format_1():
    copied("text", 1, says='"other":"1"')
    write("text", "b")
    assert "1 counted" in count("text", "logs")
    assert answers("text", times=2) == ANSWERS["text"]


def test_a_store_of_a_later_format_is_refused():
    """It is not read as a Delta table, where each row would count once."""
    copied("text", says=f'"polars_mcc.format":"{FORMAT + 1}"')
    write("text", "b")
    message = (
        f"the store 'store' has format {FORMAT + 1}, but polars_mcc {polars_mcc.__version__} reads "
        f"formats up to {FORMAT}; upgrade polars_mcc"
    )
    for ask in (
        lambda: PredictionLog.from_store("store"),
        lambda: polars_mcc.keep_counts("logs", "store", "country"),
        lambda: polars_mcc.keep_counts("store", "other", "country"),
    ):
        with pytest.raises(ValueError, match=f"^{message}$"):
            ask()
    refused = invoke("by", "store")
    assert (refused.exit_code, refused.stderr) == (2, f"polars-mcc: {message}\n")


@dataclass(frozen=True)
class LaterOptions(log_from_files.LogOptions):
    """The options of a polars_mcc that has one more."""

    clip: str = "none"


def test_a_new_option_refuses_only_stores_that_need_it(monkeypatch):
    write("text", "b")
    keep = partial(polars_mcc.keep_counts, "logs")
    copied("text")
    with monkeypatch.context() as later:
        later.setattr(log_from_files, "LogOptions", LaterOptions)
        later.setattr(count_and_commit, "LogOptions", LaterOptions)
        later.setattr(count_and_commit, "_KEPT", (*count_and_commit._KEPT, "clip"))
        assert keep("store", "country")["status"].to_list() == ["counted"]
        keep("by_default", "country")
        later.setattr(log_from_files, "LogOptions", partial(LaterOptions, clip="x"))
        with pytest.raises(ValueError, match="'store' has counts with clip='none', not 'x'; pass"):
            keep("store", "country")
        keep("clipped", "country")
    assert keep("by_default", "country")["status"].to_list() == ["unchanged"]
    with pytest.raises(ValueError, match="has counts with clip='x', not None; upgrade polars_mcc$"):
        keep("clipped", "country")


def make() -> None:
    """Make the stores of this format."""
    for kind, rows in ROWS.items():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            write(kind, "a")
            if kind == "text":
                rows.clear().write_parquet("logs/none.parquet")
            count(kind, "logs")
            shutil.copytree("store", HERE / f"format_{FORMAT}" / kind)


if __name__ == "__main__":
    make()

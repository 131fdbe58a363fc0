"""Steps of a store. Each step is done as a whole or not at all, also if processes compete."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import polars as pl
import pytest

from polars_mcc._store import kept as stores
from polars_mcc._store.kept import Change, Input, Store, is_store, opened
from polars_mcc._store.places import place

DAY = 24 * 60 * 60


def counts(number: int, height: int = 3) -> pl.DataFrame:
    schema = {"key": pl.String(), "n": pl.Int64()}
    return pl.DataFrame({"key": [f"{number}"] * height, "n": [number] * height}, schema)


def store_in(folder: Path | str) -> Store:
    store = Store(place(str(folder)))
    if store.known() is None:
        store.made({})
    return store


def added(store: Store, path: str, number: int, height: int = 3) -> bool:
    change = Change([Input(path, 1, f"{number}", rows=number * height)], [counts(number, height)])
    return store.change(store.state(), change)


def keys(store: Store) -> list[str]:
    return sorted(store.scan().collect()["key"].to_list())


def test_any_steps_leave_what_a_dictionary_would_have(tmp_path):
    """Adding, replacing, moving and dropping many inputs at once, in any order."""
    draw = random.Random(0)
    for round_ in range(15):
        store, want, number = store_in(tmp_path / str(round_)), {}, 0
        for _ in range(40):
            paths = draw.sample(range(12), draw.choice([0, 1, 1, 2, 6]))
            dropped = draw.sample(range(12), draw.choice([0, 0, 1, 4]))
            dropped = [f"{one}" for one in dropped if one not in paths and f"{one}" in want]
            inputs, frames = [], []
            for path in paths:
                number += 1
                height = draw.choice([0, 1, 2, 5, 40])
                inputs.append(Input(f"{path}", height, f"{number}"))
                frames.append(counts(number, height))
            if not inputs and (not dropped or not want):
                continue
            assert store.change(store.state(), Change(inputs, frames, dropped))
            for path in dropped:
                del want[path]
            want |= {one.path: (one, rows) for one, rows in zip(inputs, frames, strict=True)}
            # Read by another `Store`, which has cached nothing.
            other = store_in(tmp_path / str(round_))
            state = other.state()
            assert state.inputs == {path: one for path, (one, _) in want.items()}
            assert keys(other) == sorted(
                key for _, rows in want.values() for key in rows["key"].to_list()
            )
            by_input = other.counts(state, want)
            assert all(by_input[path].equals(rows) for path, (_, rows) in want.items())
            assert len(state.segments) <= 8


def test_of_two_steps_from_one_state_one_is_done(tmp_path):
    store = store_in(tmp_path)
    state = store.state()
    one, other = (Change([Input("a", 1, name)], [counts(1)]) for name in "xy")
    assert store.change(state, one)
    assert not store.change(state, other)
    assert [one.version for one in store.state().inputs.values()] == ["x"]


@pytest.mark.parametrize("together", [1, 100])
def test_there_are_few_files_and_rows_are_written_few_times(tmp_path, together):
    """Files grow with the logarithm of the steps; so does how often a row is written."""
    store = store_in(tmp_path)
    written = 0
    for step in range(200):
        inputs = [Input(f"{step}-{one}", 1, "1") for one in range(together)]
        store.change(store.state(), Change(inputs, [counts(1, 5)] * together))
        state = store.state()
        written += state.segments[state.newest].height
        assert len(state.segments) <= 9
    assert written <= 10 * 200 * together * 5
    assert len(keys(store)) == 200 * together * 5


def test_large_files_stay_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "_LARGE", 50)
    store = store_in(tmp_path)
    for step in range(60):
        added(store, f"{step}", step, 5)
        state = store.state()
    heights = [one.height for one in state.segments.values()]
    assert max(heights) <= 50
    assert len([height for height in heights if height < 25]) <= 4
    assert len(keys(store)) == 300


def test_rows_that_are_no_longer_valid_are_not_read_for_long(tmp_path):
    store = store_in(tmp_path)
    inputs = [Input(f"{one}", 1, "1") for one in range(100)]
    store.change(store.state(), Change(inputs, [counts(1, 10)] * 100))
    store.change(store.state(), Change(dropped=[f"{one}" for one in range(60)]))
    state = store.state()
    assert [one.height for one in state.segments.values()] == [400]
    big = Change([Input("big", 1, "1")], [counts(2, 1000)])
    assert store.change(state, big)
    assert store.change(store.state(), Change(dropped=["big"]))
    state = store.state()
    assert [one.height for one in state.segments.values()] == [400], (
        "what counts is rows, not inputs"
    )
    store.change(state, Change(dropped=[f"{one}" for one in range(60, 100)]))
    assert keys(store) == []
    assert store.scan().collect_schema().names() == ["key", "n"]


def test_a_late_listing_hides_nothing(tmp_path, monkeypatch):
    """The newest files are looked up by name, even if the listing lacks them."""
    store, late = store_in(tmp_path), store_in(tmp_path)
    for number in range(6):
        added(store, f"{number}", number, 3)
    names = late._place.names
    for newest in range(7):
        monkeypatch.setattr(
            late._place,
            "names",
            lambda newest=newest: {n: t for n, t in names().items() if n <= f"{newest:08}.parquet"},
        )
        late._read.clear()
        assert late.state().inputs == store.state().inputs
        assert keys(late) == keys(store)


def test_files_that_were_merged_are_deleted_a_day_later(tmp_path, monkeypatch):
    store = store_in(tmp_path)
    added(store, "a", 1)
    before = store.scan()
    added(store, "b", 2)
    assert [*store.state().segments] == [2]
    left = tmp_path / f".{'0' * 8}.parquet.{'0' * 32}"
    other = tmp_path / ".nfs0123"
    for file in (left, other):
        file.touch()
        os.utime(file, (1, 1))
    store.clear(store.state())
    assert before.collect()["n"].sum() == 3, "a query from before the merge"
    assert not left.exists()
    assert other.exists(), "not a file of the store"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + DAY - 60)
    store.clear(store.state())
    assert (tmp_path / "00000001.parquet").exists()
    monkeypatch.setattr(time, "time", lambda: now + DAY + 60)
    store.clear(store.state())
    assert not (tmp_path / "00000001.parquet").exists()
    assert keys(store) == ["1"] * 3 + ["2"] * 3
    added(store, "c", 3)
    assert store.state().dead[0][0] == 2, "a deleted file is no longer listed"


def test_a_file_that_was_old_when_it_was_merged_is_kept_for_a_day(tmp_path):
    """A query of a minute ago may read a file that is a year old."""
    store = store_in(tmp_path)
    added(store, "a", 1)
    os.utime(tmp_path / "00000001.parquet", (1, 1))
    added(store, "b", 2)
    store.clear(store.state())
    assert (tmp_path / "00000001.parquet").exists()


def test_a_process_that_slept_for_days_does_no_harm(tmp_path, monkeypatch):
    """It writes a file under a freed number. Nobody reads that file, and it is deleted."""
    store = store_in(tmp_path)
    added(store, "a", 1)
    asleep = store.state()
    for number in range(2, 9):
        added(store, f"{number}", number)
    (tmp_path / "00000002.parquet").unlink()
    assert store.change(asleep, Change([Input("late", 1, "1")], [counts(99)]))
    assert "late" not in store.state().inputs, "the input is missing, so it is counted again"
    assert "99" not in keys(store)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + DAY + 60)
    store.clear(store.state())
    assert not (tmp_path / "00000002.parquet").exists()


def test_what_is_no_store_of_ours_is_left_alone(tmp_path):
    store = store_in(tmp_path)
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "00000001.parquet")
    with pytest.raises(
        ValueError, match=r"00000001\.parquet' is in the folder of a store, but is not part of it"
    ):
        store.state()
    mark = tmp_path / "_polars_mcc.json"
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "layout": 0}))
    with pytest.raises(ValueError, match="was made by another version of polars_mcc: make the"):
        opened(str(tmp_path))
    assert is_store(str(tmp_path), None)
    assert not is_store(str(tmp_path / "none"), None)
    with pytest.raises(
        ValueError, match="none' is not a store of counts: make one with polars-mcc counts LOGS"
    ):
        opened(str(tmp_path / "none"))

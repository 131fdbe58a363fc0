"""Stores of counts: each row is counted once, whatever happens to the inputs."""

from __future__ import annotations

import datetime as dt
import io
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable
from polars.testing import assert_frame_equal
from runner import Done, invoke
from store_cases import KEYS, Logs, contents, keep
from support import first, in_turn, on_linux, on_posix

import polars_mcc
from polars_mcc import PredictionLog, bins
from polars_mcc._inputs import read_files
from polars_mcc._store import keep_counts as keep_module
from polars_mcc._store.count_and_commit import Keeping
from polars_mcc._store.delta_table import Store


@pytest.fixture
def logs(tmp_path):
    logs = Logs(tmp_path / "logs")
    for name in "abc":
        logs.write(f"{name}.parquet")
    return logs


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


def test_what_is_new_is_counted_and_what_has_changed_is_replaced(logs, store):
    assert keep(logs, store) == {"counted": 3}
    logs.check(store)
    assert keep(logs, store) == {"unchanged": 3}
    logs.write("d.parquet")
    logs.write("b.parquet")
    assert keep(logs, store) == {"counted": 1, "replaced": 1, "unchanged": 2}
    logs.check(store)


def test_no_rows_are_read_again(logs, store):
    """The pages of the inputs are damaged, but size and time are unchanged."""
    keep(logs, store)
    before = sorted(store.rglob("*"))
    for path in logs.folder.iterdir():
        found = path.stat()
        path.write_bytes(bytes(found.st_size))
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert keep(logs, store) == {"unchanged": 3}
    assert sorted(store.rglob("*")) == before


def test_counts_of_what_is_deleted_stay(logs, store):
    want = logs.scan().mcc.by("country").collect()
    keep(logs, store)
    (logs.folder / "a.parquet").unlink()
    assert keep(logs, store) == {"unchanged": 2, "gone": 1}
    assert_frame_equal(PredictionLog.from_store(store).by("country").collect(), want)
    assert keep(logs, store, forget=True) == {"unchanged": 2, "forgotten": 1}
    logs.check(store)
    assert keep(logs, store, forget=True) == {"unchanged": 2}


def test_only_what_is_gone_from_where_was_looked_is_forgotten(logs, store, tmp_path):
    """A call forgets no inputs outside the places that it names."""
    others = Logs(tmp_path / "others", 1)
    for name in "xy":
        others.write(f"{name}.parquet")
    keep(logs, store)
    keep(others, store)
    for file in (others.folder / "x.parquet", logs.folder / "a.parquet"):
        file.unlink()
    only_b = str(logs.folder / "b*.parquet")
    assert keep(only_b, store) == {"unchanged": 1, "gone": 1}
    assert keep(only_b, store, forget=True) == {"unchanged": 1, "forgotten": 1}
    assert {Path(path).name for path, _ in contents(store)} == {
        *("b.parquet", "c.parquet", "x.parquet", "y.parquet")
    }
    assert keep(others.folder / "y.parquet", store, forget=True) == {"unchanged": 1}
    done = polars_mcc.keep_counts(others.folder, store, *KEYS)
    assert done.filter(status="gone")["input"].to_list() == [str(others.folder / "x.parquet")]


def test_what_is_renamed_is_gone_and_new(logs, store):
    keep(logs, store)
    want = logs.scan().mcc.by("country").collect()
    (logs.folder / "a.parquet").rename(logs.folder / "d.parquet")
    assert keep(logs, store, forget=True) == {"counted": 1, "unchanged": 2, "forgotten": 1}
    assert_frame_equal(PredictionLog.from_store(store).by("country").collect(), want)


@in_turn(1, place=["", "*.parquet", "a.parquet"], forget=[False, True])
def test_a_file_that_becomes_a_folder_of_its_name_is_counted_once(logs, store, place, forget):
    """Spark writes a folder where pandas wrote a file. And back."""
    place, rest = logs.folder / place, {} if place == "a.parquet" else {"unchanged": 2}
    keep(logs, store)
    (logs.folder / "a.parquet").unlink()
    for name in ("a.parquet/part-0.parquet", "a.parquet/part-1.parquet"):
        logs.write(name)
    assert keep(place, store, forget=forget) == {"replaced": 1, "counted": 1, **rest}
    logs.check(store)
    assert keep(place, store, forget=forget) == {**rest, "unchanged": 2 + len(rest) * 2}
    shutil.rmtree(logs.folder / "a.parquet")
    logs.write("a.parquet")
    assert keep(place, store, forget=forget) == {**rest, "replaced": 1}
    logs.check(store)


def test_a_file_that_becomes_a_folder_without_logs_is_gone(logs, store):
    keep(logs, store)
    (logs.folder / "a.parquet").unlink()
    (logs.folder / "a.parquet").mkdir()
    assert keep(logs, store) == {"unchanged": 2, "gone": 1}
    assert keep(logs, store, forget=True) == {"unchanged": 2, "forgotten": 1}
    shutil.rmtree(logs.folder / "a.parquet")
    logs.check(store)


@pytest.mark.slow
def test_what_moves_and_leaves_a_link_is_one_input(logs, store):
    """A file, then a folder. It is counted again, under its new name."""
    keep(logs, store)
    archive = logs.folder / "archive"
    archive.mkdir()
    (logs.folder / "a.parquet").rename(archive / "a.parquet")
    (logs.folder / "a.parquet").symlink_to(archive / "a.parquet")
    assert keep(logs, store) == {"replaced": 1, "unchanged": 2}
    assert keep(logs, store) == {"unchanged": 3}
    assert keep(archive, store) == {"unchanged": 1}
    logs.write("archive/a.parquet")
    assert keep(archive, store) == {"replaced": 1}
    assert keep(logs, store, forget=True) == {"unchanged": 3}
    rows = pl.concat(pl.read_parquet(file) for file in [*logs.folder.glob("*.parquet")])
    assert_frame_equal(
        PredictionLog.from_store(store).by("country").collect(), rows.mcc.by("country")
    )
    moved = logs.folder.with_name("moved")
    logs.folder.rename(moved)
    logs.folder.symlink_to(moved)
    for place in (logs.folder, moved):
        for _ in range(2):
            done = keep(place, store, forget=True)
            assert sum(contents(store).values()) == rows.height
        assert done == {"unchanged": 3}


def test_a_link_that_turns_to_another_folder_takes_its_counts_along(logs, store, tmp_path):
    other = Logs(tmp_path / "other", 5)
    for name in "bcd":
        other.write(f"{name}.parquet")
    link = tmp_path / "link"
    link.symlink_to(logs.folder)
    keep(link, store)
    link.unlink()
    link.symlink_to(other.folder)
    done = keep(link, store, forget=True)
    assert done == {"replaced": 2, "counted": 1, "forgotten": 1}
    other.check(store)


def test_two_entries_that_become_one_file_are_counted_once(logs, store):
    """Also if the file changes at the same time."""
    for is_changed in (False, True):
        (logs.folder / "a.parquet").unlink()
        logs.write("a.parquet")
        keep(logs, store)
        assert len(contents(store)) == 3
        (logs.folder / "a.parquet").unlink()
        (logs.folder / "a.parquet").symlink_to(logs.folder / "b.parquet")
        if is_changed:
            logs.write("b.parquet")
        done = keep(logs, store)
        assert done == {
            "replaced" if is_changed else "unchanged": 1,
            "unchanged": 1 + (not is_changed),
        } | ({} if is_changed else {"removed": 1})
        names = ("b.parquet", "c.parquet")
        rows = pl.concat(pl.read_parquet(logs.folder / name) for name in names)
        assert (
            PredictionLog.from_store(store).score().collect()["n"].item()
            == rows.drop_nulls(["gold", "pred"]).height
        )
        assert sorted(Path(path).name for path, _ in contents(store)) == [*names]


def test_one_file_in_folders_of_two_days_is_refused(logs, store):
    for day in (1, 2):
        (logs.folder / f"day={day}").mkdir()
        (logs.folder / f"day={day}/x.parquet").symlink_to(logs.folder / "a.parquet")
    with pytest.raises(
        ValueError, match="are links to one file in folders of different partitions"
    ):
        keep(logs, store)


@pytest.mark.slow
def test_an_input_without_rows_is_not_read_again(logs, store):
    """The filter leaves no row of it; later it has rows, then none again."""
    keep(logs, store, filter="country = 'XX'")
    assert {*contents(store).values()} == {0}
    for path in logs.folder.iterdir():
        found = path.stat()
        path.write_bytes(bytes(found.st_size))
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert keep(logs, store, filter="country = 'XX'") == {"unchanged": 3}
    for country, rows in [("XX", 2), ("YY", 0), ("XX", 2)]:
        path = logs.write("a.parquet")
        found = path.stat()
        pl.read_parquet(path).head(2).with_columns(country=pl.lit(country)).write_parquet(path)
        for _ in range(2):
            keep(logs, store, filter="country = 'XX'")
            assert sorted(contents(store).values()) == [0, 0, rows]
    path.unlink()
    assert keep(logs, store, filter="country = 'XX'", forget=True) == {
        "unchanged": 2,
        "forgotten": 1,
    }
    assert sorted(contents(store).values()) == [0, 0]


def test_an_earlier_version_can_be_opened(logs, store):
    keep(logs, store)
    first, then = logs.scan().collect(), dt.datetime.now()  # noqa: DTZ005 - local, as users write
    time.sleep(0.02)
    logs.write("a.parquet")
    keep(logs, store)
    for version, rows in [(1, first), (2, logs.scan().collect()), (then, first)]:
        kept = PredictionLog.from_store(store, version=version)
        assert_frame_equal(kept.by("country").collect(), rows.mcc.by("country"))
    for version in (9, -1):
        with pytest.raises(ValueError, match=f"has no version {version}: use a number up to 2, or"):
            PredictionLog.from_store(store, version=version)
    for version in (0, then - dt.timedelta(days=1)):
        with pytest.raises(ValueError, match=f"had no counts at version {version}"):
            PredictionLog.from_store(store, version=version)
    for version in (True, "1", dt.date(2026, 1, 2)):
        with pytest.raises(TypeError, match="is neither the number of a version nor a datetime"):
            PredictionLog.from_store(store, version=version)
    with pytest.raises(
        ValueError, match="has no version 0001-01-01 00:00:00: use a number up to 2"
    ):
        PredictionLog.from_store(store, version=dt.datetime.min)  # noqa: DTZ901 - as users write
    DeltaTable(store).vacuum(0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(ValueError, match="files of version 1 of '.*' have been deleted"):
        PredictionLog.from_store(store, version=1)


def test_a_folder_is_a_column_of_its_files_whatever_else_is_counted(tmp_path, store):
    """The day of the folder wins over the day in the file. Other files have no such folder."""
    logs = Logs(tmp_path / "logs")
    inside, outside = logs.write("day=7/a.parquet"), logs.write("b.parquet")
    polars_mcc.keep_counts(logs.folder, store, "day")
    days = [pl.read_parquet(inside).with_columns(day=pl.lit(7, pl.Int64)), pl.read_parquet(outside)]
    want = pl.concat(days).mcc.by("day")
    assert_frame_equal(PredictionLog.from_store(store).by("day").collect(), want)


def test_a_column_of_folders_has_one_dtype(tmp_path, store):
    """Whichever files are counted together. A night may bring only a folder without a value."""
    logs = Logs(tmp_path / "logs")
    for days in (["1", "a"], ["__HIVE_DEFAULT_PARTITION__"], ["2"]):
        for day in days:
            logs.write(f"when={day}/a.parquet")
        polars_mcc.keep_counts(logs.folder, store, "when")
        want = pl.scan_parquet(logs.folder, hive_partitioning=True).mcc.by("when").collect()
        assert_frame_equal(PredictionLog.from_store(store).by("when").collect(), want)
        assert want.schema["when"] == pl.String


@pytest.mark.parametrize("name", first(3, ["a b", "ü", "100%", "a#b", 'a"b', "it's", "x=1"]))
def test_a_store_may_have_any_common_name(logs, tmp_path, name):
    store = tmp_path / name / name
    store.parent.mkdir()
    keep(logs, store)
    logs.write("a.parquet")
    assert keep(logs, store) == {"replaced": 1, "unchanged": 2}
    logs.check(store)


@pytest.mark.parametrize("name", ["a%20b", "a\nb", "a\tb", "a\\b", "a[1]"])
def test_a_name_that_delta_does_not_take_is_refused(logs, tmp_path, name):
    with pytest.raises(ValueError, match="a Delta table cannot be in a folder with "):
        keep(logs, tmp_path / name)
    assert not (tmp_path / name).exists()


def test_columns_that_delta_does_not_take_are_refused(logs, store):
    with pytest.raises(
        pl.exceptions.DuplicateError, match="cannot have columns 'n' and 'N', which"
    ):
        polars_mcc.keep_counts(logs.folder, store, "day AS N")
    with pytest.raises(pl.exceptions.DuplicateError, match="columns 'input' and 'Input', which"):
        polars_mcc.keep_counts(logs.folder, store, "day AS Input")
    with pytest.raises(pl.exceptions.DuplicateError, match="key 'input' has the name of a column"):
        polars_mcc.keep_counts(logs.folder, store, "day AS input")
    assert not store.exists()


def test_a_copy_counts_again_and_a_link_does_not(logs, store):
    """Two equal files are two inputs; one file under two names is one input."""
    path = logs.folder / "a.parquet"
    (logs.folder / "link.parquet").symlink_to(path)
    (logs.folder / "copy.parquet").write_bytes(path.read_bytes())
    done = polars_mcc.keep_counts(logs.folder, store, *KEYS)
    assert len(done) == 4
    kept = sum(contents(store).values())
    names = ["a", "b", "c", "copy"]
    assert kept == sum(pl.read_parquet(logs.folder / f"{name}.parquet").height for name in names)


def test_a_file_that_was_just_written_is_waited_for(logs, store):
    """Within a tick of the clock, a file could be written again and have the same time."""
    path = logs.write("d.parquet")
    os.utime(path)
    keep(logs, store)
    [found] = [int(version) for file, version in contents(store) if file == str(path)]
    assert time.time_ns() - found >= 50_000_000


@pytest.mark.parametrize("is_torn", [False, True])
def test_an_input_that_changes_meanwhile_is_counted_as_it_is_then(
    logs, store, monkeypatch, is_torn
):
    """Also if it is written after the look-up of the input, and before the count ends."""
    scan, changes = read_files.scan_logs, [1, 1, 1]

    def changed_and_scanned(*arguments):
        if changes:
            changes.pop()
            logs.write("a.parquet")
            if is_torn and not changes:
                raise pl.exceptions.ComputeError("one half is old")
        return scan(*arguments)

    monkeypatch.setattr(read_files, "scan_logs", changed_and_scanned)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    keep(logs, store)
    logs.check(store)
    logs.write("a.parquet")
    changes += range(100)
    with pytest.raises(OSError, match=r"a\.parquet' changes while it is counted"):
        keep(logs, store)


def test_counts_from_before_the_step_of_another_process_are_not_put(logs, store, monkeypatch):
    step, meanwhile = Store.step, [1]

    def interrupted(self, *arguments):
        if meanwhile:
            meanwhile.pop()
            keep(logs.write("a.parquet"), store)
        return step(self, *arguments)

    monkeypatch.setattr(Store, "step", interrupted)
    assert keep(logs, store) == {"counted": 2, "unchanged": 1}
    logs.check(store)


def test_a_damaged_page_is_of_a_file(logs, store):
    path = logs.folder / "b.parquet"
    content = bytearray(path.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    content[4:-footer] = bytes(len(content) - footer - 4)
    path.write_bytes(content)
    (logs.folder / "a.parquet").unlink()
    (logs.folder / "a.parquet").symlink_to(path)
    with pytest.raises(
        pl.exceptions.PolarsError,
        match=r"^'.*[ab]\.parquet' cannot be read .* the store .* of all other inp",
    ):
        keep(logs, store)
    assert [Path(path).name for path, _ in contents(store)] == ["c.parquet"]


def test_a_damaged_input_does_not_keep_others_out(logs, store):
    (logs.folder / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(pl.exceptions.ComputeError, match=r"a\.parquet' cannot be read as Parquet"):
        keep(logs, store)
    logs.write("a.parquet")
    assert keep(logs, store) == {"counted": 1, "unchanged": 2}
    logs.check(store)


DAMAGES = {
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda _: b"",
    "a page": lambda data: data[:4] + bytes(40) + data[44:],
    "no Parquet": lambda _: b"gold,pred\n",
}


@pytest.mark.parametrize("place", [".", "env=prod"])
@pytest.mark.parametrize("before", [["day=1"], []], ids=["a store", "no store"])
def test_a_damaged_file_in_a_folder_of_folders_keeps_no_other_out(place, before, tmp_path, store):
    """Neither in its own folder, nor in others: the dtype of a folder is in its name."""
    logs, reached = Logs(tmp_path / place / "logs"), 0
    for damage in DAMAGES.values():
        for day in ("day=1", "day=2"):
            for part in "ab":
                logs.write(f"{day}/{part}.parquet")
            if day in before:
                keep(logs, store)
        bad = logs.folder / "day=2/a.parquet"
        bad.write_bytes(damage(bad.read_bytes()))
        with pytest.raises(pl.exceptions.PolarsError, match=r"^'[^']*/day=2/a\.parquet'") as told:
            keep(logs, store)
        assert str(told.value).endswith(f"the store '{store}' has the counts of all other inputs")
        bad.unlink()
        want = pl.scan_parquet(logs.folder, hive_partitioning=True)
        found = PredictionLog.from_store(store).by("day").collect()
        assert_frame_equal(found, want.mcc.by("day").collect())
        assert found["day"].to_list() == [1, 2]
        shutil.rmtree(logs.folder)
        shutil.rmtree(store)
        logs = Logs(tmp_path / place / "logs")
        reached += 1
    assert reached == len(DAMAGES)


def test_a_column_of_another_dtype_is_refused(logs, store):
    keep(logs, store)
    logs.rows().with_columns(day=pl.col("day").cast(pl.String)).write_parquet(
        logs.folder / "d.parquet"
    )
    message = r"column 'day' is String in '.*d\.parquet', but Int64 in the store"
    with pytest.raises(pl.exceptions.SchemaError, match=message):
        keep(logs, store)


def test_a_store_is_of_one_question(logs, store):
    keep(logs, store)
    with pytest.raises(ValueError, match=r"has counts with by=\['country', 'day'\], not \['day'\]"):
        polars_mcc.keep_counts(logs.folder, store, "day")
    with pytest.raises(ValueError, match="has counts with filter=None, not 'day > 1'"):
        keep(logs, store, filter="day > 1")
    with pytest.raises(ValueError, match="the log '.*' is inside the store"):
        keep(store, store)
    with pytest.raises(ValueError, match=r"is not a store of counts, and has '[abc]\.parquet'"):
        keep(store, logs.folder, weight="n")


@pytest.mark.parametrize("kind", first(2, ["parquet", "csv", "ndjson", "arrow"]))
def test_names_are_not_patterns(tmp_path, store, kind):
    """The file `a[1]` is not the file `a1`, and `b*/c` is not `b1/c`."""
    logs = Logs(tmp_path / "logs")
    write = {"parquet": "write_parquet", "csv": "write_csv", "arrow": "write_ipc"}
    for name in ("a[1]", "a1", "b*/c", "b1/c", "d?", "de", "f %41é"):
        path = logs.folder / f"{name}.{kind}"
        path.parent.mkdir(exist_ok=True)
        getattr(logs.rows(), write.get(kind, "write_ndjson"))(path)
    read = {"parquet": pl.read_parquet, "csv": pl.read_csv, "arrow": pl.read_ipc}
    files = [file for file in logs.folder.rglob("*") if file.is_file()]
    rows = [read.get(kind, pl.read_ndjson)(io.BytesIO(file.read_bytes())) for file in files]
    want = pl.concat(rows).mcc.by("country")
    assert keep(logs, store) == {"counted": 7}
    assert_frame_equal(PredictionLog.from_store(store).by("country").collect(), want)


@pytest.mark.parametrize("key", ["each(country, day)", "trailing(day, '7d')"])
def test_a_store_is_of_columns(logs, store, key):
    """A row that is counted in several slices would be added up several times."""
    path = logs.folder / "a.parquet"
    pl.read_parquet(path).with_columns(pl.col("day").cast(pl.Date)).write_parquet(path)
    with pytest.raises(
        ValueError, match=r"a store does not support (each|trailing)\(...\): each row is c"
    ):
        polars_mcc.keep_counts(path, store, key)


@in_turn(
    kind=["array", "list"],
    inner=[pl.String, pl.Int8, pl.UInt64, pl.Int128, pl.Decimal(5, 1), pl.Date],
)
def test_labels_in_arrays_are_kept_as_lists_are(tmp_path, store, inner, kind):
    numbers = [[1, 2], [2, 3], None, [1, 2]], [[2, 1], [2, 1], [2, 1], [1, 3]]
    dtype = pl.Array(inner, 2) if kind == "array" else pl.List(inner)
    gold, pred = (pl.Series(one, dtype=pl.List(pl.Int8)) for one in numbers)
    log = pl.DataFrame({"key": ["x", "y", "x", "y"], "gold": gold, "pred": pred})
    log = log.with_columns(pl.col("gold", "pred").cast(pl.List(inner)).cast(dtype))
    log.write_parquet(tmp_path / "log.parquet")
    polars_mcc.keep_counts(tmp_path / "log.parquet", store, "key")
    rows = PredictionLog.from_store(store).by("key", metrics=["mcc", "f1_micro"]).collect()
    assert rows["n"].to_list() == [1, 2]
    assert rows["f1_micro"].to_list() == [1.0, 2 * 2 / (4 + 4)]  # y: 2 of {2, 3}, 1 of {1, 2}


def test_what_is_no_text_is_refused(logs, store):
    """A store keeps the words of the question."""
    for named in ({"gold": pl.col("gold")}, {"pred": pl.col("pred")}, {"pred": [pl.col("pred")]}):
        with pytest.raises(TypeError, match=r"takes names of columns, or SQL, got col\(\"\w+\"\)"):
            polars_mcc.keep_counts(logs.folder, store, "day", **named)
    for key in (pl.col("day"), bins("day", [2]), ["day"]):
        with pytest.raises(TypeError, match="takes names of columns, or SQL, got "):
            polars_mcc.keep_counts(logs.folder, store, key)
    for option in ("weight", "filter"):
        with pytest.raises(TypeError, match="takes names of columns, or SQL, got "):
            polars_mcc.keep_counts(logs.folder, store, **{option: pl.col("day") > 1})
    assert not store.exists()


def test_a_store_is_a_log_as_a_whole(logs, store, tmp_path):
    """Its files are no logs: some of them are no longer valid."""
    keep(logs, store)
    for kept in (f"{store}/*.parquet", next(store.glob("*.parquet")), tmp_path):
        with pytest.raises(ValueError, match=r"store' is a Delta table; pass this folder"):
            keep(kept, tmp_path / "two")
    with pytest.raises(ValueError, match="'.*logs' is not a store of counts: make one with"):
        PredictionLog.from_store(logs.folder)


@pytest.mark.slow
def test_filters_weights_and_models(logs, tmp_path):
    """They work with a store as input, and with several models."""
    keep(logs, tmp_path / "one", filter="day > 1")
    rows = logs.scan().filter(pl.col("day") > 1)
    kept = PredictionLog.from_store(tmp_path / "one")
    assert_frame_equal(kept.by("country").collect(), rows.mcc.by("country").collect())

    def again() -> str:
        done = polars_mcc.keep_counts(
            tmp_path / "one", tmp_path / "two", "day", pred=["pred", "gold"]
        )
        assert done["input"].to_list() == [str(tmp_path / "one")]
        return done["status"].item()

    assert [again(), again()] == ["counted", "unchanged"]
    both = PredictionLog.from_store(tmp_path / "two")
    want = rows.mcc(pred=["pred", "gold"])
    assert_frame_equal(both.by("day").collect(), want.by("day").collect())
    compared = both(pred="pred").compare("day", baseline="gold")
    assert_frame_equal(
        compared.collect(), want(pred="pred").compare("day", baseline="gold").collect()
    )
    logs.write("d.parquet")
    keep(logs, tmp_path / "one", filter="day > 1")
    assert again() == "replaced"
    rows = logs.scan().filter(pl.col("day") > 1)
    want = rows.mcc(pred=["pred", "gold"]).by("day").collect()
    both = PredictionLog.from_store(tmp_path / "two")
    assert_frame_equal(both.by("day").collect(), want)


def test_columns_keep_their_names(logs, tmp_path):
    """Also computed columns, and labels in lists. The weight is the weight of the rows."""
    rows = logs.scan().collect().rename({"gold": "label", "pred": "guess"}).with_row_index("w")
    (tmp_path / "renamed").mkdir()
    file = tmp_path / "renamed/a.parquet"
    rows.write_parquet(file)
    said = {
        "gold": "label",
        "pred": "coalesce(guess, 'none') AS sure",
        "weight": "CAST(w AS DOUBLE)",
    }
    polars_mcc.keep_counts(file, tmp_path / "one", "day * 2 AS twice", **said)
    kept = PredictionLog.from_store(tmp_path / "one")
    assert kept.frame.collect_schema().names() == ["twice", "label", "sure", "n"]
    want = rows.with_columns(twice=pl.col("day") * 2, sure=pl.col("guess").fill_null("none")).mcc(
        gold="label", pred="sure", weight=pl.col("w").cast(pl.Float64)
    )
    assert_frame_equal(kept.by("twice").collect(), want.by("twice"))
    lists = rows.with_columns(
        pl.concat_list("label", pl.lit("x")), pl.concat_list("guess", "label")
    )
    lists.write_parquet(tmp_path / "lists.parquet")
    labels = {"gold": "label", "pred": "guess"}
    polars_mcc.keep_counts(tmp_path / "lists.parquet", tmp_path / "two", "day", **labels)
    kept = PredictionLog.from_store(tmp_path / "two")
    assert_frame_equal(kept.by("day").collect(), lists.mcc(**labels).by("day"))


def test_names_that_counts_need_are_taken(logs, store):
    path = logs.folder / "a.parquet"
    taken = "key 'n' has the name of a column of the answer"
    with pytest.raises(pl.exceptions.DuplicateError, match=taken):
        polars_mcc.keep_counts(path, store, "day AS n")
    with pytest.raises(ValueError, match="gold and pred are different columns, both called 'x'"):
        polars_mcc.keep_counts(path, store, gold="gold AS x", pred="pred AS x")
    assert not store.exists()


def test_a_weight_that_is_null_is_not_lost(logs, store):
    path = logs.folder / "a.parquet"
    pl.read_parquet(path).with_columns(w=pl.lit(None, pl.Int64)).write_parquet(path)
    with pytest.raises(
        pl.exceptions.PolarsError, match="weight 'w' is null in .* equal rows, which"
    ):
        polars_mcc.keep_counts(path, store, "day", weight="w")


@pytest.mark.slow
@on_posix
@pytest.mark.parametrize("room", [0, 500])
def test_a_full_disk_leaves_the_counts_that_were_there(logs, store, room):
    """A limit on the file size stands in for a full disk."""

    def limit():
        import resource  # noqa: PLC0415 - Windows has none

        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    words = ["counts", str(logs.folder), "--by", "country", "--by", "day", "--out", str(store)]
    run = [sys.executable, "-m", "polars_mcc", *words]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    for is_there in (False, True):
        before = contents(store)
        logs.write("a.parquet")
        done = subprocess.run(
            run, capture_output=True, text=True, check=False, env=env, preexec_fn=limit
        )
        assert done.returncode == 2, done.stderr
        what = "write to" if is_there else "make"
        assert f"polars-mcc: cannot {what} the store '{store}': " in done.stderr
        assert "File too large" in done.stderr.splitlines()[-1]
        assert contents(store) == before
        keep(logs, store)
        assert logs.is_kept(store)


@on_linux
def test_a_folder_that_may_not_be_written_is_named(logs):
    with pytest.raises(OSError, match="cannot make the store '/proc/store': "):
        keep(logs, "/proc/store")


def command(*arguments) -> Done:
    return invoke(*map(str, arguments))


def test_the_command_line(logs, store):
    by = ("--by", "country", "--by", "day")
    done = command("counts", logs.folder, *by, "--out", store)
    assert done.exit_code == 0, done.stderr
    assert "store: 3 counted, 0 replaced, 0 unchanged" in done.stderr
    (logs.folder / "_a.csv").touch()
    done = command("counts", logs.folder, *by, "--out", store, "--history", "7")
    assert "0 counted, 0 replaced, 3 unchanged" in done.stderr
    assert "not read (hidden): " in done.stderr
    done = command("by", store, "--by", "country", "--format", "csv")
    assert done.stdout == logs.scan().mcc.by("country").collect().write_csv()
    done = command("by", store, logs.folder, "--by", "country")
    assert "cannot read Parquet and store of counts as one log" in done.stderr
    (logs.folder / "a.parquet").unlink()
    done = command("counts", logs.folder, *by, "--out", store)
    a = f"polars-mcc:   {logs.folder}/a.parquet\n"
    assert f"gone, but still counted (use --forget to drop their counts):\n{a}" in done.stderr
    assert "0 replaced, 2 unchanged, 1 gone" in done.stderr
    done = command("counts", logs.folder, *by, "--out", store, "--forget")
    assert f"gone, and their counts are dropped:\n{a}" in done.stderr
    logs.check(store)
    for option in (["--history", "7"], ["--forget"]):
        assert command("counts", logs.folder, "--out", "x.csv", *option).exit_code == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filter": "day > AVG(day)"}, "'day > AVG\\(day\\)' uses several rows at once; a store"),
        ({"filter": "day = first_value(day)"}, "uses several rows at once"),
        ({"filter": "string_agg(country, ',') = 'DE'"}, "uses several rows at once"),
        ({"weight": "SUM(day) OVER (PARTITION BY country)"}, "uses several rows at once"),
        ({"pred": "(SELECT 'cat') AS pred"}, "one expression, without a subquery"),
    ],
)
def test_what_is_not_of_each_row_is_refused(logs, store, options, message):
    with pytest.raises((ValueError, pl.exceptions.SQLInterfaceError), match=message):
        keep(logs, store, **options)
    for file in logs.files():
        pl.read_parquet(file).rename({"day": "max(day)"}).write_parquet(file)
    named = "\"max(day)\" + 1 > 2 AND country <> 'sum(over)'"
    polars_mcc.keep_counts(logs.place, store, "country", "max(day)", filter=named)


@pytest.mark.slow
def test_options_that_counts_have_no_place_for_are_refused(logs, store):
    by = ("counts", logs.folder, "--by", "country", "--out", store)
    for flag, value, way_out in [
        ("--cluster", "day", "make it a key with --by"),
        ("--sample-weight", "day", "score the logs themselves"),
        ("--score", "day", "score the logs themselves"),
        ("--nulls", "label", "pass --nulls when you score the store"),
        ("--positive", "cat", "pass --positive when you score the store"),
    ]:
        done = command(*by, flag, value)
        assert done.exit_code == 2
        message = f"polars-mcc: the store '{store}' cannot keep {flag}; {way_out}"
        assert message in done.stderr, done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "polars_mcc", "counts", "-", "--out", store],
        input="gold,pred\na,a\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "a store keeps the counts of files; save the standard input to a file" in done.stderr
    done = command("counts", logs.folder, "--out", "s3://bucket/counts.parquet")
    assert "--out is a local file, or the URL of a store without a suffix" in done.stderr
    assert not store.exists()


def test_a_store_may_be_named_as_shells_do(logs, store):
    keep(logs, store)
    want = logs.scan().mcc.by("country").collect()
    for name in (f"{store}/", f"{store}/."):
        done = command("by", name, "--by", "country", "--format", "csv")
        assert done.stdout == want.write_csv()
        assert PredictionLog.from_store(name).by("country").collect().equals(want)
        assert keep(logs, name) == {"unchanged": 3}


def test_a_store_and_its_logs_are_apart(logs, store):
    with pytest.raises(ValueError, match="the store '.*logs/store' is inside the log '.*logs'"):
        keep(logs, logs.folder / "store")
    assert not (logs.folder / "store").exists()
    with pytest.raises(FileNotFoundError, match="cannot make '.*none/store': there is no folder"):
        keep(logs, store / "none/store")
    with pytest.raises(NotADirectoryError, match="b.parquet' is a file, not a folder"):
        keep(logs.folder / "a.parquet", logs.folder / "b.parquet")
    keep(logs, store)
    with pytest.raises(ValueError, match="history=0 is a number of days, and must be at least 1"):
        keep(logs, store, history=0)
    (store / "_delta_log" / f"{0:020}.json").write_text("?")
    with pytest.raises(OSError, match="cannot read '.*store' as a Delta table: "):
        PredictionLog.from_store(store)


def test_what_is_gone_with_its_folder_can_be_forgotten(logs, store, tmp_path):
    others = Logs(tmp_path / "logs2", 1)
    others.write("x.parquet")
    keep(logs, store)
    keep(others, store)
    shutil.rmtree(others.folder)
    with pytest.raises(FileNotFoundError, match="no file '.*logs2'; a log is a file, .* store"):
        keep(others, store)
    assert keep(others, store, forget=True) == {"forgotten": 1}
    logs.check(store)
    for file in logs.folder.iterdir():
        file.unlink()
    assert keep(logs, store, forget=True) == {"forgotten": 3}
    assert contents(store) == {}


def test_what_cannot_be_read_or_is_deleted_keeps_no_other_out(logs, store):
    """A file may be deleted at any time, or lack a column."""
    counted = Keeping._counts_of

    def deleted(self, chunk):
        (logs.folder / "a.parquet").unlink(missing_ok=True)
        return counted(self, chunk)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Keeping, "_counts_of", deleted)
        assert keep(logs, store) == {"counted": 2}
    path = logs.write("d.parquet")
    pl.read_parquet(path).drop("gold").write_parquet(path)
    logs.write("e.parquet")
    with pytest.raises(
        pl.exceptions.ColumnNotFoundError, match="'.*d.parquet': no column 'gold'.*; t"
    ):
        keep(logs, store)
    assert sorted(Path(file).name[0] for file, _ in contents(store)) == ["b", "c", "e"]


def test_a_link_is_in_the_folders_that_it_is_in(tmp_path, store):
    logs = Logs(tmp_path / "elsewhere")
    path = logs.write("a.parquet")
    (tmp_path / "logs/day=7").mkdir(parents=True)
    (tmp_path / "logs/day=7/a.parquet").symlink_to(path)
    days = []
    for _ in range(2):
        polars_mcc.keep_counts(tmp_path / "logs", store, "day", forget=True)
        days.append(PredictionLog.from_store(store).by("day").collect()["day"].to_list())
        if len(days) == 1:
            (tmp_path / "logs/day=7").rename(tmp_path / "logs/day=8")
    assert days == [[7], [8]]


def test_a_store_that_was_made_anew_is_counted_anew(logs, store, tmp_path):
    one = tmp_path / "one"
    polars_mcc.keep_counts(logs.folder, one, "day")
    polars_mcc.keep_counts(one, store, "day")
    logs.write("a.parquet")
    shutil.rmtree(one)
    polars_mcc.keep_counts(logs.folder, one, "day")
    done = polars_mcc.keep_counts(one, store, "day")
    assert done["status"].to_list() == ["replaced"]
    want = logs.scan().mcc.by("day").collect()
    assert_frame_equal(PredictionLog.from_store(store).by("day").collect(), want)
    one.rename(tmp_path / "two")
    done = polars_mcc.keep_counts(tmp_path / "two", store, "day")
    assert done["status"].to_list() == ["counted"], "the folder of the other is not looked at"
    done = polars_mcc.keep_counts([tmp_path / "two", one], store, "day", forget=True)
    assert done["status"].to_list() == ["unchanged", "forgotten"]
    assert_frame_equal(PredictionLog.from_store(store).by("day").collect(), want)


def test_each_promise_has_its_tests():
    named = re.findall(r"`(test_\w+)`", keep_module.__doc__)
    there = {
        name
        for file in Path(__file__).parents[1].glob("*/test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text("utf-8"), flags=re.MULTILINE)
    }
    assert len(named) > 15
    assert {*named} <= there

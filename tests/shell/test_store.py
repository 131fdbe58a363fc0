"""Counts that are kept: each row counted once, whatever happens to inputs and processes."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mcc
from polars_mcc._shell import inputs
from polars_mcc._shell import store as stores

KILLS = int(os.environ.get("POLARS_MCC_KILLS", "30"))
KEYS = ["country", "day"]


class Logs:
    """A folder of log files, each of which can be written, corrected, moved and deleted."""

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.folder = folder
        self.draw = random.Random(seed)
        self.clock = time.time_ns() - 10**15
        folder.mkdir(parents=True)

    def rows(self) -> pl.DataFrame:
        size = self.draw.randrange(1, 300)
        return pl.DataFrame(
            {
                "country": self.draw.choices(["DE", "FR", None], k=size),
                "day": self.draw.choices([1, 2, 3], k=size),
                "gold": self.draw.choices(["cat", "dog", "emu"], k=size),
                "pred": self.draw.choices(["cat", "dog", None], k=size),
            },
            schema_overrides={"country": pl.String, "pred": pl.String},
        )

    def write(self, name: str) -> Path:
        """Write a file, or write it again, at a time of its own."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        beside = path.with_name(f".{path.name}")
        self.rows().write_parquet(beside)
        self.clock += self.draw.randrange(10**7, 10**9)
        os.utime(beside, ns=(self.clock, self.clock))
        beside.replace(path)
        return path

    def scan(self) -> pl.LazyFrame:
        return pl.scan_parquet(sorted(self.folder.rglob("*.parquet")), hive_partitioning=False)

    def check(self, store: Path) -> None:
        """The store says what the log says, by all that can be asked of both."""
        kept, log = pl.scan_parquet(store / "*.parquet").mcc(weight="n"), self.scan().mcc
        assert_frame_equal(
            kept.by("country", ci=0.9).collect(), log.by("country", ci=0.9).collect()
        )
        assert_frame_equal(kept.counts(*KEYS).collect(), log.counts(*KEYS).collect())


def keep(logs: Logs | Path, store: Path, **options) -> dict[str, int]:
    folder = logs.folder if isinstance(logs, Logs) else logs
    done = polars_mcc.keep_counts(folder, store, *KEYS, **options)
    return dict(done["status"].value_counts().iter_rows())


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
    """Inputs whose pages are damaged: their size and time are what they were."""
    keep(logs, store)
    before = [store_file.stat().st_mtime_ns for store_file in sorted(store.iterdir())]
    for path in logs.folder.iterdir():
        found = path.stat()
        path.write_bytes(bytes(found.st_size))
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert keep(logs, store) == {"unchanged": 3}
    assert [store_file.stat().st_mtime_ns for store_file in sorted(store.iterdir())] == before


def test_counts_of_what_is_deleted_stay(logs, store):
    want = logs.scan().mcc.by("country").collect()
    keep(logs, store)
    (logs.folder / "a.parquet").unlink()
    assert keep(logs, store) == {"unchanged": 2}
    kept = pl.scan_parquet(store / "*.parquet")
    assert_frame_equal(kept.mcc(weight="n").by("country").collect(), want)


def test_what_is_moved_takes_its_counts_along(logs, store):
    keep(logs, store)
    archive = logs.folder / "archive"
    archive.mkdir()
    (logs.folder / "a.parquet").rename(archive / "a.parquet")
    assert keep(logs, store) == {"moved": 1, "unchanged": 2}
    logs.check(store)
    assert keep(logs, store) == {"unchanged": 3}


def test_a_move_to_another_partition_is_counted_again(tmp_path, store):
    logs = Logs(tmp_path / "logs")
    path = logs.write("day=1/a.parquet")
    polars_mcc.keep_counts(logs.folder, store, "day")
    (logs.folder / "day=2").mkdir()
    path.rename(logs.folder / "day=2" / "a.parquet")
    done = polars_mcc.keep_counts(logs.folder, store, "day")
    assert done["status"].to_list() == ["replaced"]
    assert pl.read_parquet(store / "*.parquet")["day"].unique().to_list() == [2]


def test_a_copy_counts_again_and_a_link_does_not(logs, store):
    """Two files are two inputs, even if they are alike; one file under two names is one."""
    path = logs.folder / "a.parquet"
    (logs.folder / "link.parquet").symlink_to(path)
    (logs.folder / "copy.parquet").write_bytes(path.read_bytes())
    done = polars_mcc.keep_counts(logs.folder, store, *KEYS)
    assert len(done) == 4
    kept = pl.read_parquet(store / "*.parquet")["n"].sum()
    names = ["a", "b", "c", "copy"]
    assert kept == sum(pl.read_parquet(logs.folder / f"{name}.parquet").height for name in names)


def test_checksums_see_what_sizes_and_times_do_not(logs, store):
    keep(logs, store, checksum=True)
    path = logs.folder / "a.parquet"
    found, rows = path.stat(), pl.read_parquet(path)
    turned = rows.with_columns(gold=pl.col("gold").reverse())
    turned.write_parquet(path)
    path.write_bytes(path.read_bytes().ljust(found.st_size, b"\0")[: found.st_size])
    turned.write_parquet(path)  # As large, most often; if not, it is seen anyway.
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert keep(logs, store, checksum=True) == {"replaced": 1, "unchanged": 2}
    logs.check(store)


def test_the_same_content_at_another_time_is_not_replaced_by_checksum(logs, store):
    keep(logs, store, checksum=True)
    for path in logs.folder.iterdir():
        os.utime(path, (10**9, 10**9))
    assert keep(logs, store, checksum=True) == {"unchanged": 3}
    assert keep(logs, store) == {"unchanged": 3}, "the time is noted"


def test_a_file_that_was_just_written_is_waited_for(logs, store):
    """Within a tick of the clock, a file could be written again and have the same time."""
    path = logs.write("d.parquet")
    os.utime(path)
    keep(logs, store)
    [about] = [
        found
        for file in store.glob("*.parquet")
        if (found := json.loads(pl.read_parquet_metadata(file)["polars_mcc"]))["input"]
        == str(path.resolve())
    ]
    assert time.time_ns() - about["time"] >= 50_000_000


def test_an_input_that_changes_meanwhile_is_counted_as_it_is_then(logs, store, monkeypatch):
    """Whatever is written between the look at the input and the look at its counts."""
    scan, changes = inputs.scan, [1, 1, 1]

    def changed_and_scanned(found):
        if changes:
            changes.pop()
            logs.write("a.parquet")
        return scan(found)

    monkeypatch.setattr(inputs, "scan", changed_and_scanned)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    keep(logs, store)
    logs.check(store)
    logs.write("a.parquet")
    changes += range(100)
    with pytest.raises(OSError, match=r"a\.parquet' changes while it is counted"):
        keep(logs, store)


def test_a_damaged_page_is_of_a_file(logs, store):
    path = logs.folder / "b.parquet"
    content = bytearray(path.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    content[4:-footer] = bytes(len(content) - footer - 4)
    path.write_bytes(content)
    (logs.folder / "a.parquet").unlink()
    (logs.folder / "a.parquet").symlink_to(path)
    with pytest.raises(pl.exceptions.PolarsError, match=r"^'.*[ab]\.parquet': .* of all other inp"):
        keep(logs, store)
    assert len([*store.glob("*.parquet")]) == 1


def test_a_damaged_input_does_not_keep_others_out(logs, store):
    (logs.folder / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(pl.exceptions.ComputeError, match=r"a\.parquet' cannot be read as Parquet"):
        keep(logs, store)
    logs.write("a.parquet")
    assert keep(logs, store) == {"counted": 1, "unchanged": 2}
    logs.check(store)


def test_a_column_of_another_dtype_is_refused(logs, store):
    keep(logs, store)
    logs.rows().with_columns(day=pl.col("day").cast(pl.String)).write_parquet(
        logs.folder / "d.parquet"
    )
    message = r"column 'day' is String in '.*d\.parquet', but Int64 in the inputs"
    with pytest.raises(pl.exceptions.SchemaError, match=message):
        keep(logs, store)


def test_a_store_is_of_one_question(logs, store):
    keep(logs, store)
    with pytest.raises(ValueError, match=r"has counts with by=\['country', 'day'\], not \['day'\]"):
        polars_mcc.keep_counts(logs.folder, store, "day")
    with pytest.raises(ValueError, match="has counts with filter=None, not 'day > 1'"):
        keep(logs, store, filter="day > 1")
    with pytest.raises(ValueError, match="is in the store .* itself"):
        keep(store, store)
    with pytest.raises(ValueError, match=r"is not a store of counts, and has '[abc]\.parquet'"):
        keep(store, logs.folder, weight="n")
    with pytest.raises(ValueError, match="'s3://a/b.parquet' is no file that could be seen"):
        polars_mcc.keep_counts("s3://a/b.parquet", store, *KEYS)


@pytest.mark.parametrize("key", ["each(country, day)", "trailing(day, '7d')"])
def test_a_store_is_of_columns(logs, store, key):
    """Rows that are counted for several slices would be added up several times."""
    path = logs.folder / "a.parquet"
    pl.read_parquet(path).with_columns(pl.col("day").cast(pl.Date)).write_parquet(path)
    with pytest.raises(
        ValueError, match=r"a store takes no (each|trailing)\(...\): its rows are c"
    ):
        polars_mcc.keep_counts(path, store, key)


def test_a_store_of_a_store_needs_its_weight(logs, tmp_path):
    keep(logs, tmp_path / "one")
    for kept in (tmp_path / "one", str(tmp_path / "one/*.parquet")):
        with pytest.raises(ValueError, match=r"one' has counts, whose rows .* add --weight n"):
            keep(kept, tmp_path / "two")


def test_filters_weights_and_models(logs, tmp_path):
    """Of a store of counts, and of several models."""
    keep(logs, tmp_path / "one", filter="day > 1")
    kept = pl.scan_parquet(tmp_path / "one" / "*.parquet")
    want = logs.scan().filter(pl.col("day") > 1).mcc.by("country").collect()
    assert_frame_equal(kept.mcc(weight="n").by("country").collect(), want)
    polars_mcc.keep_counts(
        tmp_path / "one", tmp_path / "two", "day", weight="n", pred=["pred", "gold"]
    )
    kept = pl.scan_parquet(tmp_path / "two" / "*.parquet").mcc(weight="n").by("day", "model")
    rows = logs.scan().filter(pl.col("day") > 1).mcc(pred=["pred", "gold"]).by("day")
    want = rows.sort("day", "model").collect()
    assert_frame_equal(kept.collect().sort("day", "model"), want)


def test_what_was_left_behind_is_cleared_away_in_time(logs, store):
    keep(logs, store)
    left, recent = store / f".a.parquet.{'0' * 32}", store / f".b.parquet.{'1' * 32}"
    other = store / ".nfs0123"
    for file in (left, recent, other):
        file.touch()
    for file in (left, other):
        os.utime(file, (1, 1))
    keep(logs, store)
    assert not left.exists()
    assert recent.exists()
    assert other.exists(), "it is none of ours"
    logs.check(store)


def command(*arguments) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "polars_mcc", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_the_command_line(logs, store):
    by = ("--by", "country", "--by", "day")
    done = command("counts", logs.folder, *by, "--out", store)
    assert done.returncode == 0, done.stderr
    assert "store: 3 counted, 0 replaced, 0 moved, 0 unchanged" in done.stderr
    (logs.folder / "notes.txt").touch()
    done = command("counts", logs.folder, *by, "--out", store, "--checksum")
    assert "0 counted, 3 replaced" in done.stderr, "they had no checksums"
    assert "not read, as not Parquet files: " in done.stderr
    done = command("by", store, "--by", "country")
    assert done.returncode == 2
    assert "has counts, whose rows stand for n rows each: add --weight n" in done.stderr
    done = command("by", store, "--by", "country", "--weight", "n", "--format", "csv")
    assert done.stdout == logs.scan().mcc.by("country").collect().write_csv()
    assert command("counts", logs.folder, "--out", "x.csv", "--checksum").returncode == 2


def _keep(folder: Path, store: Path, begun) -> None:
    begun.set()
    keep(folder, store)


def _keep_until(folder: Path, store: Path, last: int) -> None:
    """Die before the call of this number that changes a file, or looks after it."""
    calls = itertools.count()

    def deadly(function):
        def call(*arguments, **options):
            if next(calls) == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    for place, name in [
        *((os, name) for name in ("fsync", "replace", "link")),
        *((Path, name) for name in ("mkdir", "open", "unlink", "rename")),
    ]:
        setattr(place, name, deadly(getattr(place, name)))
    stores.ThreadPoolExecutor = lambda _: ThreadPoolExecutor(1)
    keep(folder, store)


@pytest.fixture(scope="module")
def processes():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["polars_mcc", "test_store"])
    return context


class Kept:
    """A store whose inputs change, and what each of them was at any time."""

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.logs, self.store = Logs(folder / "logs", seed), folder / "store"
        self.versions: dict[tuple[str, int], pl.DataFrame] = {}

    def write(self, *names: object) -> None:
        for name in names:
            path = self.logs.write(f"{name}.parquet")
            self.versions[str(path), path.stat().st_mtime_ns] = pl.read_parquet(path)

    def check(self) -> bool:
        """Each file of counts is whole, and of an input as it was once; is all as it is now?"""
        inputs = {}
        for file in self.store.glob("*.parquet"):
            about = json.loads(pl.read_parquet_metadata(file)["polars_mcc"])
            rows = self.versions[about["input"], about["time"]]
            assert_frame_equal(pl.read_parquet(file), rows.mcc.counts(*KEYS))
            assert about["input"] not in inputs
            inputs[about["input"]] = about["time"]
        now = {str(path): path.stat().st_mtime_ns for path in self.logs.folder.iterdir()}
        return inputs == now


def test_a_process_that_dies_at_every_step(tmp_path, processes):
    """Before each call that changes a file, while a store is made, added to, and corrected."""
    steps = 0
    for number in itertools.count():
        kept = Kept(tmp_path / str(number), number)
        if number % 2:
            kept.write("a", "b")
            keep(kept.logs, kept.store)
            kept.write("b", "c")
        else:
            kept.write("a", "b")
        child = processes.Process(
            target=_keep_until, args=(kept.logs.folder, kept.store, number // 2)
        )
        child.start()
        child.join()
        kept.check()
        keep(kept.logs, kept.store)
        assert kept.check()
        kept.logs.check(kept.store)
        if child.exitcode == 0 and number % 2:
            break
        steps += child.exitcode == -signal.SIGKILL
    assert steps > 20


def test_processes_that_are_killed(tmp_path, processes):
    """At random points, alone and two at once, while inputs come and are corrected.

    After each kill, every file of counts is whole, and is that of an input as it was once: so no
    row is in the store twice. In the end, all rows are there.
    """
    kept = Kept(tmp_path, seed=random.randrange(10**6))
    draw = kept.logs.draw
    kept.write(*range(12))
    kills = finished = between = 0
    longest = 0.3
    while kills < KILLS:
        kept.write(*draw.sample(range(12 + kills // 20), 8))
        children, waits = [], []
        for _ in range(draw.choice([1, 1, 2])):
            begun = processes.Event()
            arguments = (kept.logs.folder, kept.store, begun)
            children.append(processes.Process(target=_keep, args=arguments))
            children[-1].start()
            begun.wait()
        started = time.monotonic()
        ends = started + draw.uniform(0, longest)
        for child in children:
            child.join(max(ends - time.monotonic(), 0))
            if child.is_alive():
                child.kill()
                kills += 1
            else:
                finished += 1
                longest = 0.8 * longest + 0.2 * (time.monotonic() - started)
            child.join()
            waits.append(child.exitcode)
        longest *= 1.01
        between += not kept.check() and 0 not in waits
    done = keep(kept.logs, kept.store)
    assert kept.check()
    kept.logs.check(kept.store)
    left = len([*kept.store.glob(".*")])
    print(
        f"Store: {kills} processes killed, {between} of them with inputs yet to be counted, "
        f"and {finished} finished before; {left} files were left behind half written; in the "
        f"end no row was lost, and none counted twice ({done})"
    )

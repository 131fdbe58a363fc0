"""A store with labels that come later has them as they were when each input was last counted."""

from __future__ import annotations

import datetime as dt
import random
import time
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from in_processes import Processes
from polars.testing import assert_frame_equal
from support import first, on_posix

import polars_mcc
from polars_mcc import PredictionLog
from polars_mcc._inputs.log_from_files import TypedLog
from polars_mcc._inputs.read_files import Logs
from polars_mcc._store import new_and_changed
from polars_mcc._store.delta_table import Store

OF_LOG = ["key", "gold", "pred"]
START = dt.date(2026, 3, 1)


class Nights:
    """Predictions of each night, labels that come later, and what a store of them has to hold."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.draw = random.Random(seed)
        self.predictions, self.labels = folder / "predictions", folder / "labels"
        for place in (self.predictions, self.labels):
            place.mkdir(parents=True)
        self.store = folder / "store"
        self.given = self.predictions, self.store, "key"
        self.options = {"gold": "outcome", "outcomes": self.labels}
        self.options |= {"on": "id", "latest": "at", "time": "day"}
        self.day = 0
        self.waiting: list[int] = []
        self.known: dict[int, tuple[int, str]] = {}
        """The time and the label of each id, as it is known now."""
        self.held: dict[str, pl.DataFrame] = {}
        self.newest: dict[str, int] = {}

    def pass_a_night(self) -> None:
        """Predictions of a day, and labels of some of the rows that wait; some are corrected."""
        draw = self.draw
        size = draw.choice([1, 5, 20])
        ids = [1000 * self.day + place for place in range(size)]
        rows = {
            "id": ids,
            "day": [START + dt.timedelta(days=self.day - draw.choice([0, 0, 1]))] * size,
            "key": draw.choices("xyz", k=size),
            "pred": draw.choices("uvw", k=size),
        }
        pl.DataFrame(rows).write_parquet(self.predictions / f"{self.day}.parquet")
        self.waiting += ids
        self.come(draw.choice([0, 3, 10]))
        self.day += 1

    def come(self, number: int) -> None:
        """Write a file of labels."""
        now = len([*self.labels.iterdir()])
        again = self.draw.sample([*self.known], min(2, len(self.known)))
        new = self.draw.sample(self.waiting, min(number, len(self.waiting)))
        self.waiting = [id_ for id_ in self.waiting if id_ not in new]
        labels = {id_: self.draw.choice("uvw") for id_ in (*again, *new)}
        self.known |= {id_: (now, label) for id_, label in labels.items()}
        rows = {"id": [*labels], "outcome": [*labels.values()], "at": [now] * len(labels)}
        schema = {"id": pl.Int64, "outcome": pl.String, "at": pl.Int64}
        pl.DataFrame(rows, schema=schema).write_parquet(self.labels / f"{now}.parquet")

    def keep(self, recount: str) -> dict[str, int]:
        done = polars_mcc.keep_counts(*self.given, **self.options, recount=recount)
        return dict(done["status"].value_counts().iter_rows())

    def account(self, recount: int | None) -> None:
        """Account for a run: what is new or young enough has the labels of now."""
        now = max(self.newest.values(), default=0)
        for path in map(str, sorted(self.predictions.iterdir())):
            rows = pl.read_parquet(path)
            age = now - self.newest.get(path, now)
            if path in self.held and recount is not None and age > recount:
                continue
            gold = [self.known.get(id_, (0, None))[1] for id_ in rows["id"]]
            self.held[path] = rows.with_columns(gold=pl.Series(gold, dtype=pl.String))
        self.newest |= {path: (rows["day"].max() - START).days for path, rows in self.held.items()}

    def labels_after(self, files: int) -> dict[int, str]:
        """The label of each id after the first so many files of labels."""
        labels: dict[int, str] = {}
        for number in range(files):
            labels |= dict(
                pl.read_parquet(self.labels / f"{number}.parquet")["id", "outcome"].rows()
            )
        return labels

    def check_after_kills(self, seen: dict[str, int]) -> None:
        """Each input is whole, with the labels of one moment, which is not before the last one."""
        number = len([*self.labels.iterdir()])
        labels = [self.labels_after(files) for files in range(number + 1)]
        store = Store.of(str(self.store))
        if store.table is None or store.table.version() == 0:
            return
        by = ["key", "outcome", "pred"]
        for (path,), rows in store._rows().collect().group_by("input"):
            found = {tuple(row[:3]): row[3] for row in rows.select(*by, "n").rows()}
            log = pl.read_parquet(path)
            for files in range(seen.get(path, 0), number + 1):
                gold = [labels[files].get(id_) for id_ in log["id"]]
                joined = log.with_columns(outcome=pl.Series(gold, dtype=pl.String))
                counts = joined.group_by(by).len().rows()
                if found == {tuple(row[:3]): row[3] for row in counts}:
                    seen[path] = files
                    break
            else:
                raise AssertionError(path)

    def check(self) -> None:
        kept = PredictionLog.from_store(self.store)
        want = pl.concat(self.held.values()).group_by(OF_LOG).agg(n=pl.len().cast(pl.Int64))
        found = kept.frame.rename({"outcome": "gold"}).group_by(OF_LOG).agg(pl.col("n").sum())
        assert_frame_equal(found.collect(), want, check_row_order=False)
        answer = kept.by().collect()
        waiting = sum(rows["gold"].null_count() for rows in self.held.values())
        assert answer["n_waiting"].item() == answer["n_null"].item() == waiting


@pytest.mark.parametrize("seed", first(4, range(12)))
def test_nightly_labels_are_those_of_the_last_count_of_each_input(tmp_path, seed, monkeypatch):
    nights = Nights(tmp_path, seed)
    step = Store.step
    for _ in range(6):
        nights.pass_a_night()
        days = nights.draw.choice([1, 2, 4, None])
        recount = "all" if days is None else f"{days}d"
        meanwhile = [days] if nights.draw.random() < 0.4 else []

        def interrupted(self, *arguments, meanwhile=meanwhile, recount=recount, days=days):
            if meanwhile:  # Another run sees labels that this one does not.
                meanwhile.pop()
                nights.come(5)
                nights.keep(recount)
                nights.account(days)
                nights.come(5)
            return step(self, *arguments)

        with monkeypatch.context() as patched:
            patched.setattr(Store, "step", interrupted)
            nights.keep(recount)
        nights.account(days)
        nights.check()


def test_what_is_old_is_read_no_more(tmp_path):
    nights = Nights(tmp_path, 0)
    for _ in range(5):
        nights.pass_a_night()
    assert nights.keep("2d") == {"counted": 5}
    done = nights.keep("2d")
    assert set(done) == {"recounted", "unchanged"}
    assert nights.keep("all") == {"recounted": 5}
    statuses = pl.Series([*done.values()])
    assert statuses.sum() == 5


def test_a_row_of_the_future_does_not_make_all_others_old(tmp_path):
    nights = Nights(tmp_path, 1)
    nights.pass_a_night()
    future = pl.read_parquet(nights.predictions / "0.parquet").with_columns(
        pl.lit(dt.date(2999, 1, 1)).alias("day"), pl.col("id") + 500
    )
    recent = future.with_columns(day=dt.date.today(), id=pl.col("id") + 100)  # noqa: DTZ011
    future.write_parquet(nights.predictions / "8.parquet")
    recent.write_parquet(nights.predictions / "9.parquet")
    assert nights.keep("3d") == {"counted": 3}
    assert nights.keep("3d") == {"recounted": 2, "unchanged": 1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outcomes": "labels", "on": "id"}, "outcomes needs recount too"),
        ({"recount": "3d"}, "recount needs outcomes too"),
        ({"outcomes": "labels", "on": "id", "recount": "3d"}, "needs the time of a row"),
        ({"outcomes": "labels", "on": "id", "recount": "3", "time": "day"}, "a length of time"),
    ],
)
def test_what_is_missing_is_said(tmp_path, options, message):
    nights = Nights(tmp_path, 0)
    nights.pass_a_night()
    options = {
        name: str(nights.labels) if name == "outcomes" else value for name, value in options.items()
    }
    with pytest.raises(ValueError, match=message):
        polars_mcc.keep_counts(nights.predictions, nights.store, "key", gold="outcome", **options)


@pytest.mark.slow
@on_posix
@pytest.mark.parametrize("seed", range(3))
def test_runs_that_are_killed_leave_each_input_with_the_labels_of_one_moment(tmp_path, seed):
    nights, seen = Nights(tmp_path, seed), dict[str, int]()
    for _ in range(4):
        nights.pass_a_night()
    processes = Processes(nights.draw)
    started = time.monotonic()
    nights.keep("3d")
    processes.longest = time.monotonic() - started
    while processes.kills < 5:
        nights.pass_a_night()
        number = nights.draw.choice([1, 2])
        come = partial(nights.come, 4)
        processes.run(number, *nights.given, meanwhile=come, recount="3d", **nights.options)
        nights.check_after_kills(seen)
    nights.keep("all")
    nights.account(None)
    nights.check()


def test_rows_without_a_time_are_counted_again(tmp_path):
    nights = Nights(tmp_path, 3)
    nights.pass_a_night()
    rows = pl.read_parquet(nights.predictions / "0.parquet")
    without = rows.with_columns(pl.lit(None, pl.Date).alias("day"), pl.col("id") + 500)
    without.write_parquet(nights.predictions / "9.parquet")
    assert nights.keep("1d") == {"counted": 2}
    assert nights.keep("1d") == {"recounted": 2}


def test_labels_are_read_once_in_a_run(tmp_path, monkeypatch):
    nights = Nights(tmp_path, 4)
    for _ in range(5):
        nights.pass_a_night()
    times = []
    read = TypedLog.labels_in_memory
    monkeypatch.setattr(TypedLog, "labels_in_memory", lambda log: times.append(1) or read(log))
    monkeypatch.setattr(new_and_changed, "_CHUNK_LIMITS", (1, 0))
    assert nights.keep("all") == {"counted": 5}
    assert len(times) == 1


def test_two_labels_are_an_error_and_the_store_stays(tmp_path):
    nights = Nights(tmp_path, 5)
    nights.pass_a_night()
    assert nights.keep("3d") == {"counted": 1}
    before = PredictionLog.from_store(nights.store).by().collect()
    labels = {"id": [0, 0], "outcome": ["u", "v"], "at": [99, 99]}
    pl.DataFrame(labels).write_parquet(nights.labels / "99.parquet")
    with pytest.raises(
        pl.exceptions.InvalidOperationError, match="labels': id 0 has two labels at its"
    ):
        nights.keep("3d")
    assert PredictionLog.from_store(nights.store).by().collect().equals(before)


def test_a_damaged_input_does_not_keep_others_out(tmp_path):
    nights = Nights(tmp_path, 6)
    for _ in range(2):
        nights.pass_a_night()
    whole = (nights.predictions / "0.parquet").read_bytes()
    (nights.predictions / "0.parquet").write_bytes(b"PAR1")
    with pytest.raises(pl.exceptions.ComputeError, match=r"0\.parquet' cannot be read as Parquet"):
        nights.keep("3d")
    (nights.predictions / "0.parquet").write_bytes(whole)
    assert nights.keep("3d") == {"counted": 1, "recounted": 1}


def test_each_csv_file_is_looked_at_equally_often_in_any_store(tmp_path, monkeypatch):
    scans = []
    scan = Logs.scan_one
    monkeypatch.setattr(Logs, "scan_one", lambda *of: scans.append(1) or scan(*of))
    in_sum = []
    for n in (3, 6, 9):
        folders = [tmp_path / f"{name}{n}" for name in ("predictions", "labels", "store")]
        for folder, column in zip(folders, ("pred", "gold"), strict=False):
            folder.mkdir()
            for file in range(n):
                (folder / f"{file}.csv").write_text(f"id,{column}\n{file}a,x\n{file}b,y\n")
        predictions, labels, store = map(str, folders)
        scans.clear()
        late = {"outcomes": labels, "on": "id", "recount": "all"}
        done = polars_mcc.keep_counts(predictions, store, **late)
        assert done["status"].to_list() == ["counted"] * n
        in_sum.append(len(scans))
    three, six, nine = in_sum
    assert nine - six == six - three

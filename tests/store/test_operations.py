"""Files that are written, renamed, linked and deleted at random, and a plain recount of them."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mcc
from polars_mcc import PredictionLog
from polars_mcc._store.delta_table import Store

SEQUENCES = int(os.environ.get("POLARS_MCC_SEQUENCES", "200"))
OF_LOG = ["key", "gold", "pred"]


class World:
    """A folder of logs, and a plain account of what a store of it has to hold."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.draw = random.Random(seed)
        self.root, self.archive = folder / "logs", folder / "archive"
        for place in (self.root, self.archive, self.root / "a", self.root / "b"):
            place.mkdir(parents=True)
        self.clock = 10**18
        self.held: dict[str, pl.DataFrame] = {}
        """The rows that the store has, by the name that the input had when it was last seen."""
        self.told: list[str] = []

    def files(self) -> list[Path]:
        """The files that may change. One other file always stays."""
        files = (one for one in self.root.rglob("*.parquet") if not one.is_symlink())
        return sorted(one for one in files if one.stem != "first")

    def write(self, path: Path) -> None:
        draw = self.draw.choices
        size = self.draw.choice([0, 1, 5, 30])
        rows = {
            "key": draw("xyz", k=size),
            "gold": draw("uvw", k=size),
            "pred": draw("uvw", k=size),
        }
        self.clock += 1000
        beside = path.with_name(".new")
        pl.DataFrame(rows, schema=dict.fromkeys(OF_LOG, pl.String)).write_parquet(beside)
        os.utime(beside, ns=(self.clock, self.clock))
        beside.replace(path)

    def name(self) -> Path:
        return self.root / self.draw.choice(["", "a", "b"]) / f"{self.draw.randrange(6)}.parquet"

    def unlink(self, path: Path) -> None:
        """Delete a file or link, and the links that lead to the same file."""
        self.unlink_links_to(path)
        path.unlink(missing_ok=True)

    def unlink_links_to(self, path: Path) -> None:
        links = [one for one in self.root.rglob("*.parquet") if one.is_symlink() and one != path]
        for link in [one for one in links if one.resolve() == path.resolve()]:
            link.unlink()

    def change(self) -> None:
        """Make one change to the files."""
        kind, path = (
            self.draw.choice(["write", "write", "rename", "delete", "link", "archive"]),
            self.name(),
        )
        others = [one for one in self.files() if one != path]
        self.told.append(f"{kind} {path}")
        if kind == "write" or not others:
            self.write(path)
        elif kind == "delete":
            self.unlink(path)
        else:
            other = self.draw.choice(others)
            self.told[-1] += f" {other}"
            if kind == "archive":  # It moves, and leaves a link.
                target = self.archive / f"{self.clock}.parquet"
                if self.draw.random() < 0.5:
                    target = self.root / "a" / f"moved{self.draw.randrange(3)}.parquet"
                    self.unlink(target)
                if other.exists():
                    other.rename(target)
                    other.symlink_to(target)
                return
            self.unlink(path)
            if kind == "rename" and other.exists():
                self.unlink_links_to(other)
                other.rename(path)
            elif kind == "link" and other.exists():
                path.symlink_to(other)

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Tell what was done if an assertion fails."""
        try:
            yield
        except AssertionError:
            print(*self.told, sep="\n")
            raise

    def seen(self, *, forget: bool) -> None:
        """Account for a run: each file under one name, and what is gone unless it is forgotten."""
        names: dict[tuple[int, int], list[str]] = {}
        for path in sorted(self.root.rglob("*.parquet")):
            found = path.stat()
            names.setdefault((found.st_dev, found.st_ino), []).append(str(path))
        now: dict[str, pl.DataFrame] = {}
        for same in names.values():
            real = [one for one in same if not Path(one).is_symlink()]
            now[(real or same)[0]] = pl.read_parquet(same[0])
        gone = {
            name: rows for name, rows in self.held.items() if not Path(name).exists() and not forget
        }
        self.held = gone | now

    def check(self, store: Path) -> None:
        kept = PredictionLog.from_store(store)
        want = pl.concat(
            [pl.DataFrame(schema=dict.fromkeys(OF_LOG, pl.String)), *self.held.values()]
        )
        want = want.group_by(OF_LOG).agg(n=pl.len().cast(pl.Int64)).sort(OF_LOG)
        found = kept.frame.group_by(OF_LOG).agg(pl.col("n").sum()).sort(OF_LOG).collect()
        assert_frame_equal(found, want)


def _keep(world: World, store: Path, *, forget: bool) -> None:
    polars_mcc.keep_counts(world.root, store, "key", forget=forget)


def _run(folder: Path, seed: int) -> None:
    """Take a sequence of operations; another process may run between a look and its step."""
    world, store = World(folder, seed), folder / "store"
    world.write(world.root / "first.parquet")
    step = Store.step
    for _ in range(4):
        for _ in range(world.draw.choice([0, 1, 2, 4])):
            world.change()
        forget = world.draw.random() < 0.5
        meanwhile = [1] if world.draw.random() < 0.5 else []

        def interrupted(self, *arguments, meanwhile=meanwhile):
            is_late = bool(meanwhile)  # The files change after they were looked at.
            if meanwhile:
                meanwhile.pop()
                forgets = world.draw.random() < 0.5
                for _ in range(world.draw.choice([0, 1, 3])):
                    world.change()
                _keep(world, store, forget=forgets)
                world.seen(forget=forgets)
            done = step(self, *arguments)
            paths = [path for path in self.inputs if Path(path).exists()]
            world.told.append(f"step {done}")
            is_once = len({*map(os.path.realpath, paths)}) == len(paths)
            assert is_once or is_late or not done, "a file counts twice"
            return done

        with pytest.MonkeyPatch.context() as patched, world.telling():
            patched.setattr(Store, "step", interrupted)
            _keep(world, store, forget=forget)
        # A run looks only at files that it listed at its start. The next run sees the rest.
        world.told.append(f"keep {forget=}")
        _keep(world, store, forget=forget)
        world.seen(forget=forget)
        with world.telling():
            world.check(store)


FEW = range(6)
MANY = pytest.param(range(6, SEQUENCES), marks=pytest.mark.slow)


@pytest.mark.parametrize("seeds", [FEW, MANY], ids=["few", "many"])
def test_any_operations_leave_what_a_recount_finds(tmp_path, seeds):
    for seed in seeds:
        _run(tmp_path / f"{seed}", seed)

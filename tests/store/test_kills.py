"""A run that writes a store ends at any moment, or another comes between: all rows count once."""

from __future__ import annotations

import logging
import os
import random
import signal
import time
from collections.abc import Callable
from itertools import count

import deltalake
import pytest
from deltalake.table import TableOptimizer
from in_processes import SHORT_STEPS, Processes
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from store_cases import KEYS, Logs, Objects, contents, keep, s3_server
from support import on_posix

from polars_mcc._store.delta_table import Store, open_store

KILLS = int(os.environ.get("POLARS_MCC_KILLS", "20"))


@pytest.fixture(autouse=True)
def _short_steps(monkeypatch):
    for owner, name, value in SHORT_STEPS:
        monkeypatch.setattr(owner, name, value)


class Dead(BaseException):
    """The end of a run; no write follows."""


def _dies() -> None:
    raise Dead


class Writes:
    """The writes of runs, in turn. Before one of them, something happens."""

    def __init__(self, at: int = 0, happens: Callable[[], None] = _dies) -> None:
        self.at, self.happens = at, happens
        self.number = 0
        self.is_happening = self.is_dead = False

    def before(self) -> None:
        if self.is_dead:
            raise Dead
        if not self.is_happening:
            self.number += 1
            if self.number == self.at:
                self.is_happening, self.is_dead = True, self.happens is _dies
                self.happens()
                self.is_happening = False


def _new(logs: Logs) -> None:
    for name in "abc":
        logs.write(f"{name}.parquet")


def _changed(logs: Logs) -> None:
    """Inputs that are new, changed, emptied and gone."""
    logs.write("a.parquet")
    logs.delete("b.parquet")
    logs.write("c.parquet", size=logs.smallest)
    for name in "de":
        logs.write(f"{name}.parquet")


def _overtaken(logs: Logs, store: str) -> Callable[[], None]:
    """Another run takes all its steps. It sees inputs that the first has not seen."""

    def run() -> None:
        logs.write("a.parquet")
        logs.write("d.parquet", size=logs.smallest)
        logs.write("e.parquet")
        logs.delete("c.parquet")
        keep(logs, store, forget=True)
        assert logs.is_kept(store)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("what", ["dies", "is overtaken"])
def test_a_run_before_each_of_its_writes(tmp_path, monkeypatch, what):
    """It dies there, or another process takes all its steps there.

    A write makes a version of the table, or none. After each, every input in the store is whole,
    in one version that it once had. In the end, all rows are there, once.
    """
    writes = Writes()

    def watch(owner, name):
        write = getattr(owner, name)
        watched = lambda *given, **named: writes.before() or write(*given, **named)  # noqa: E731
        monkeypatch.setattr(owner, name, watched)

    watch(deltalake.DeltaTable, "create")
    watch(deltalake, "write_deltalake")
    watch(Store, "_set")
    watch(TableOptimizer, "compact")
    for at in count(1):
        logs, store = Logs(tmp_path / f"{at}", seed=at), str(tmp_path / f"store{at}")
        writes = Writes(at, _dies if what == "dies" else _overtaken(logs, store))
        for change in (_new, _changed):
            before = {path for path, _ in contents(store)}
            change(logs)
            try:
                keep(logs, store, forget=True)
            except Dead:
                logs.is_kept(store)
                with_rows = {one[0] for one in logs.now().items() if logs.versions[one].height}
                assert before & with_rows <= {path for path, _ in contents(store)}
                writes.is_dead = False
                keep(logs, store, forget=True)
            assert logs.is_kept(store)
        if writes.number < at:
            break
    assert at > 10
    logs.check(store)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # boto's
def test_a_run_on_objects_is_overtaken_before_some_of_its_writes(monkeypatch):
    """The server does so before it answers a request that makes a version."""
    monkeypatch.setattr(logging.getLogger("werkzeug"), "level", logging.ERROR)
    answer, writes = DomainDispatcherApplication.__call__, Writes()

    def watched(server, environ, start_response):
        if environ["REQUEST_METHOD"] == "PUT" and "/_delta_log/" in environ["PATH_INFO"]:
            writes.before()
        return answer(server, environ, start_response)

    monkeypatch.setattr(DomainDispatcherApplication, "__call__", watched)
    with s3_server() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        logs, store = Objects("kills"), "s3://kills/store"
        for at, change in [(1, _new), (2, _changed), (4, _changed)]:
            change(logs)
            writes = Writes(at, _overtaken(logs, store))
            keep(logs, store, forget=True)
            assert writes.number >= at
            assert logs.is_kept(store)
        logs.check(store)


@pytest.mark.slow
@on_posix
def test_processes_that_are_killed(tmp_path):
    """Kill at random points, alone or several at once, while inputs are added and corrected."""
    logs, store = Logs(tmp_path / "logs", seed=random.randrange(10**6)), str(tmp_path / "store")
    draw, between = logs.draw, 0
    for name in range(6):
        logs.write(f"{name}.parquet")
    processes = Processes(draw)
    started = time.monotonic()
    keep(logs, store)
    processes.longest = time.monotonic() - started
    while processes.kills < KILLS:
        for name in draw.sample(range(6 + processes.kills // 20), 4):
            logs.write(f"{name}.parquet")
        exits = processes.run(draw.choice([1, 2, 3]), logs.place, store, *KEYS)
        assert exits <= {0, -signal.SIGKILL}
        between += not logs.is_kept(store) and 0 not in exits
    done = keep(logs, store)
    assert logs.is_kept(store)
    logs.check(store)
    kept = open_store(store)
    print(
        f"Store: {processes.kills} processes killed, {between} times with inputs yet to be "
        f"counted, and {processes.finished} finished before; {kept.table.version()} versions, "
        f"{len(kept.table.file_uris())} files; no row was lost, and none counted twice ({done})"
    )

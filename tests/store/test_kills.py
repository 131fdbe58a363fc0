"""Processes that write a store are killed at any moment, alone or two at once."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from store_cases import Logs, Objects, keep, s3_server

from polars_mcc._shell import keeping, look
from polars_mcc._store.kept import opened

KILLS = int(os.environ.get("POLARS_MCC_KILLS", "30"))


def _keep(place: str, store: str, begun, environment: dict[str, str]) -> None:
    os.environ.update(environment)
    # One step per input makes many steps, and small files that are merged.
    look._TOGETHER, keeping._OFTEN = (1, 0), 0.0
    begun.set()
    keep(place, store)


def _keep_until(place: str, store: str, last: int) -> None:
    """Die before the call number `last` among the calls that change files."""
    calls = itertools.count()

    def deadly(function):
        def call(*arguments, **options):
            if next(calls) == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    for module, name in [
        *((os, name) for name in ("fsync", "link")),
        *((Path, name) for name in ("mkdir", "open", "unlink")),
    ]:
        setattr(module, name, deadly(getattr(module, name)))
    keeping.ThreadPoolExecutor = lambda _: ThreadPoolExecutor(1)
    look._TOGETHER, keeping._OFTEN = (1, 0), 0.0
    keep(place, store)


@pytest.fixture(scope="module")
def processes():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["polars_mcc._shell.keep", "test_kills"])
    return context


def test_a_process_that_dies_at_every_step(tmp_path, processes):
    """Kill before each call that changes files, while a store is made, extended or corrected."""
    steps = 0
    for number in itertools.count():
        logs, store = (
            Logs(tmp_path / str(number) / "logs", number),
            tmp_path / str(number) / "store",
        )
        for name in "ab":
            logs.write(f"{name}.parquet")
        if number % 2:
            keep(logs, store)
            for name in "bc":
                logs.write(f"{name}.parquet")
        child = processes.Process(target=_keep_until, args=(logs.place, str(store), number // 2))
        child.start()
        child.join()
        if (store / "00000001.parquet").exists():
            logs.is_kept(store)
        keep(logs, store)
        assert logs.is_kept(store)
        if child.exitcode == 0 and number % 2:
            break
        steps += child.exitcode == -signal.SIGKILL
    assert steps > 20


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # boto's
@pytest.mark.parametrize("where", ["local", "s3"])
def test_processes_that_are_killed(tmp_path, processes, where, monkeypatch):
    """Kill at random points, alone or two at once, while inputs are added and corrected.

    After each kill, every input in the store is whole, in one version that it once had. So no row
    is counted twice, and no input is counted in part. In the end, all rows are there.
    """
    if where == "local":
        _kill(Logs(tmp_path / "logs", seed=random.randrange(10**6)), tmp_path / "store", processes)
        return
    with s3_server() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        logs = Objects("kills", seed=random.randrange(10**6))
        _kill(logs, "s3://kills/store", processes, environment)


def _kill(logs: Logs, store: Path | str, processes, environment=None) -> None:
    draw = logs.draw
    for name in range(12):
        logs.write(f"{name}.parquet")
    started = time.monotonic()
    keep(logs, store)
    longest = time.monotonic() - started
    kills = finished = between = 0
    while kills < KILLS:
        for name in draw.sample(range(12 + kills // 20), 8):
            logs.write(f"{name}.parquet")
        children, waits = [], []
        for _ in range(draw.choice([1, 1, 2])):
            begun = processes.Event()
            arguments = (logs.place, str(store), begun, environment or {})
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
        assert {*waits} <= {0, -signal.SIGKILL}
        longest *= 1.01
        between += not logs.is_kept(store) and 0 not in waits
    done = keep(logs, store)
    assert logs.is_kept(store)
    logs.check(store)
    state = opened(str(store)).state()
    print(
        f"Store: {kills} processes killed, {between} of them with inputs yet to be counted, "
        f"and {finished} finished before; {state.newest} files were put, of which "
        f"{len(state.segments)} are valid; no row was lost, and none counted twice ({done})"
    )

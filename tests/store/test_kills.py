"""Processes that write a store are killed at any moment, alone or several at once."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import pytest
from store_cases import Logs, Objects, keep, s3_server

from polars_mcc._store import count_and_commit, delta_table, new_and_changed
from polars_mcc._store.delta_table import open_store

KILLS = int(os.environ.get("POLARS_MCC_KILLS", "30"))


def _keep(place: str, store: str, begun, environment: dict[str, str]) -> None:
    os.environ.update(environment)
    # One step per input makes many steps, and small files that are merged.
    (
        new_and_changed._CHUNK_LIMITS,
        count_and_commit._SECONDS_BETWEEN_STEPS,
        delta_table._MAX_FILES,
    ) = (1, 0), 0.0, 4
    begun.set()
    keep(place, store)


@pytest.fixture(scope="module")
def processes():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["polars_mcc._store.keep_counts", "test_kills"])
    return context


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # boto's
@pytest.mark.parametrize("where", ["local", "s3"])
def test_processes_that_are_killed(tmp_path, processes, where, monkeypatch):
    """Kill at random points, alone or several at once, while inputs are added and corrected.

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
        for _ in range(draw.choice([1, 1, 2, 3])):
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
    kept = open_store(str(store))
    print(
        f"Store: {kills} processes killed, {between} of them with inputs yet to be counted, and "
        f"{finished} finished before; {kept.table.version()} versions, "
        f"{len(kept.table.file_uris())} files; no row was lost, and none counted twice ({done})"
    )

"""Threads of our own: they are used again, by what they wait for too, and after a fork."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import polars as pl
import pytest

from polars_mcc._base.threads import in_own_thread, in_threads
from polars_mcc._base.unstable_polars import deferred


def test_one_thread_does_one_work_after_another():
    threads = {in_own_thread(threading.get_ident) for _ in range(20)}
    assert len(threads) == 1
    assert threads != {threading.get_ident()}


def test_a_work_that_waits_for_another_has_the_same_thread_each_time():
    def both() -> tuple[int, int]:
        return threading.get_ident(), in_own_thread(threading.get_ident)

    [(outer, inner)] = {in_own_thread(both) for _ in range(20)}
    assert outer != inner


def test_deferred_frames_are_computed_in_the_same_thread_whoever_collects():
    def ident() -> pl.DataFrame:
        return pl.DataFrame({"ident": [threading.get_ident()]})

    def nested() -> pl.DataFrame:
        inner = deferred(ident, {"ident": pl.Int64()}).collect()
        return ident().with_columns(inner=inner["ident"])

    frame = deferred(nested, {"ident": pl.Int64(), "inner": pl.Int64()})
    found = pl.concat(frame.collect(engine=engine) for engine in ["streaming", "in-memory"] * 8)
    assert found.n_unique() == 1


def test_items_are_done_in_order_and_at_the_same_time():
    together = threading.Barrier(threads := min(2, pl.thread_pool_size()), timeout=60)

    def work(item: int) -> int:
        if item < threads:
            together.wait()
            time.sleep(0.05 * (item == 0))
        return item * item

    assert [*in_threads(work, range(40))] == [item * item for item in range(40)]


def test_the_first_error_stops_the_work_and_threads_work_on():
    begun = []

    def work(item: int) -> int:
        begun.append(item)
        if item == 3:
            raise ValueError("three")
        return item

    done = in_threads(work, range(1000))
    assert [next(done) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        list(done)
    assert len(begun) < 1000
    assert [*in_threads(abs, [-1])] == [1]
    with pytest.raises(ZeroDivisionError):
        in_own_thread(lambda: 1 // 0)


def test_what_is_not_asked_for_is_not_begun():
    begun = []
    done = in_threads(begun.append, range(1000))
    next(done)
    done.close()
    assert len(begun) <= 2 * pl.thread_pool_size()


def test_no_more_is_begun_than_twice_the_threads_while_the_first_takes_long():
    begun: list[int] = []

    def work(item: int) -> None:
        begun.append(item)
        if item == 0:
            time.sleep(0.5)

    next(in_threads(work, range(1000)))
    assert len(begun) <= 2 * pl.thread_pool_size()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows")
def test_a_fork_has_threads_of_its_own():
    program = """
import os
from polars_mcc._base.threads import in_own_thread
assert in_own_thread(os.getpid) == os.getpid()
child = os.fork()
if child == 0:
    os._exit(in_own_thread(os.getpid) != os.getpid())
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)

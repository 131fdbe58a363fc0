"""Threads of our own, which do what Polars asks for from any of its many threads.

The C library keeps the freed memory of a thread for that thread. As Polars calls from another
thread each time, a process that asks again and again would need ever more memory. Here the thread
that was last at work is the first to work again.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import TypeAlias, TypeVar

import polars as pl

Item = TypeVar("Item")
T = TypeVar("T")
_Works: TypeAlias = "SimpleQueue[Callable[[], None]]"

_idle: list[_Works] = []
"""Where the idle threads wait for work, the last one at work last."""
if hasattr(os, "register_at_fork"):  # A fork has no threads but its own.
    os.register_at_fork(after_in_child=_idle.clear)


def in_own_thread(work: Callable[[], T]) -> T:
    """Do some work in a thread of our own."""
    return _begun(work).result()


def in_threads(work: Callable[[Item], T], items: Iterable[Item]) -> Iterator[T]:
    """Do some work for each item, in order, in as many threads as Polars has.

    The first error stops it.
    """
    threads = pl.thread_pool_size()
    running: set[Future[T]] = set()
    begun: deque[Future[T]] = deque()
    try:
        for item in items:
            while len(begun) >= 2 * threads or (begun and begun[0].done()):
                yield begun.popleft().result()
            if len(running) >= threads:
                running = wait(running, return_when=FIRST_COMPLETED).not_done
            begun.append(_begun(partial(work, item)))
            running.add(begun[-1])
        while begun:
            yield begun.popleft().result()
    finally:
        wait(running)


def _begun(work: Callable[[], T]) -> Future[T]:
    """Begin some work in an idle thread, or in a new one."""
    done: Future[T] = Future()
    try:
        works = _idle.pop()
    except IndexError:
        works = SimpleQueue()
        Thread(target=_do_all, args=[works], daemon=True).start()

    def do() -> None:
        try:
            answer = work()
        except BaseException as error:  # noqa: BLE001 - it is raised where the work is waited for
            _idle.append(works)
            done.set_exception(error)
        else:
            _idle.append(works)
            done.set_result(answer)

    works.put(do)
    return done


def _do_all(works: _Works) -> None:
    while True:
        works.get()()

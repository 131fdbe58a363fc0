"""What processes do that are killed. It imports little: each process starts at once."""

from __future__ import annotations

import multiprocessing
import time

import polars_mcc
from polars_mcc._store import count_and_commit, delta_table, new_and_changed

SHORT_STEPS = [
    (new_and_changed, "_CHUNK_LIMITS", (1, 0)),
    (count_and_commit, "_SECONDS_BETWEEN_STEPS", 0.0),
    (delta_table, "_MAX_FILES", 4),
]
"""One step per input makes many steps, and small files that are merged."""


def _keep(begun, given, options) -> None:
    for owner, name, value in SHORT_STEPS:
        setattr(owner, name, value)
    begun.set()
    polars_mcc.keep_counts(*given, **options)


class Processes:
    """Processes that keep counts, and are killed after a random time of about a run."""

    def __init__(self, draw) -> None:
        self.draw = draw
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["polars_mcc._store.count_and_commit", "deltalake"])
        self.longest = 0.0
        """How long a run takes, as far as it is known."""
        self.kills = self.finished = 0

    def run(self, number: int, *given, meanwhile=bool, **options) -> set[int]:
        """Start some, and kill what has not ended after a while. Return their exit codes."""
        children = []
        for _ in range(number):
            begun = self.context.Event()
            children.append(self.context.Process(target=_keep, args=(begun, given, options)))
            children[-1].start()
            begun.wait()
            meanwhile()
        started = time.monotonic()
        ends = started + self.draw.uniform(0, self.longest)
        for child in children:
            child.join(max(ends - time.monotonic(), 0))
            if child.is_alive():
                child.kill()
                self.kills += 1
            else:
                self.finished += 1
            child.join()
        self.longest *= 0.9 if all(child.exitcode == 0 for child in children) else 1.05
        return {child.exitcode for child in children}

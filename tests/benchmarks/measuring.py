"""What benchmarks share: Markdown tables, calls in turns, and processes of their own."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


def print_head(labels: Sequence[str], figures: Sequence[str]) -> None:
    """Print the head of a table: labels are aligned to the left, figures to the right."""
    print_row(*labels, *figures)
    print_row(*["---"] * len(labels), *["--:"] * len(figures))


def print_row(*cells: object) -> None:
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def in_turns(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """The seconds of each call in each round."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def times(ours: Sequence[float], base: Sequence[float], digits: int = 1) -> tuple[str, str]:
    """Two cells: the median and the range of the ratios of each round."""
    ratios = [one / other for one, other in zip(ours, base, strict=True)]
    median, low, high = statistics.median(ratios), min(ratios), max(ratios)
    return f"{median:.{digits}f}", f"{low:.{digits}f} to {high:.{digits}f}"


def print_ratios(seconds: Mapping[str, Sequence[float]], base: str, *labels: str) -> None:
    """Print a row for each call: the ratios to the base, and the median of its seconds."""
    for name, ours in seconds.items():
        cells = times(ours, seconds[base], 2)
        print_row(*labels, name, *cells, f"{statistics.median(ours):.2f}")


def apart(file: str, *arguments: object) -> list[float]:
    """Run a script in a new process, and return the numbers that it prints."""
    command = [sys.executable, file, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [*map(float, done.stdout.split())]


def peak() -> int:
    """The peak of memory of this process, in MB. getrusage would include its parent."""
    status = Path("/proc/self/status").read_text("utf-8")
    [found] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    return int(found) // 1024

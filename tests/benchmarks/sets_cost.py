"""The cost of sets of keys: `by` over each of ten keys, and `worst`, compared with one key.

    python tests/benchmarks/sets_cost.py LOGS [--rows 8_000_000]
    python tests/benchmarks/sets_cost.py LOGS --memory

Makes logs once, in the folder LOGS: ten text keys of 20 values, and ten text labels. Queries run in
turn, each in a new process. The table shows the median of the ratios to `by` over one key, and the
peak of memory of the process. The floor decodes and hashes all columns, without a group by.
`--memory` prints the peak of `worst` on three keys, gold and pred of Int8, for more and more rows.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

from polars_mcc import each

KEYS = [f"key{place}" for place in range(10)]
FILES = 8
NARROW = "worst, three Int8 keys"


def write_logs(folder: Path, rows: int) -> None:
    if folder.exists():
        return
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    values = pl.Series([f"value_{place:02}" for place in range(20)])
    labels = pl.Series([f"label_{place}" for place in range(10)])
    for file in range(FILES):
        size = rows // FILES
        gold = rng.integers(0, 10, size)
        pred = np.where(rng.random(size) < 0.85, gold, rng.integers(0, 10, size))
        columns = {key: values.gather(rng.integers(0, 20, size)) for key in KEYS}
        columns |= {"gold": labels.gather(gold), "pred": labels.gather(pred)}
        pl.DataFrame(columns).write_parquet(folder / f"{file}.parquet")


def write_narrow(folder: Path, rows: int) -> None:
    if folder.exists():
        return
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for file in range(FILES):
        size = rows // FILES
        columns = {f"key{place}": rng.integers(0, 20, size, dtype=np.int8) for place in range(3)}
        gold = rng.integers(0, 10, size, dtype=np.int8)
        pred = np.where(rng.random(size) < 0.85, gold, rng.integers(0, 10, size, dtype=np.int8))
        pl.DataFrame({**columns, "gold": gold, "pred": pred}).write_parquet(
            folder / f"{file}.parquet"
        )


def of_duckdb(logs: str, depth: int) -> None:
    """Count the pairs of each set of keys, in one scan."""
    sets = ", ".join(f"({', '.join(set_)}, gold, pred)" for set_ in combinations(KEYS, depth))
    columns = ", ".join([*KEYS, "gold", "pred"])
    query = f"SELECT {columns}, count(*) FROM '{logs}' GROUP BY GROUPING SETS ({sets})"  # noqa: S608 - no input of users
    duckdb.sql(query).to_arrow_table()


def each_alone(log: pl.LazyFrame) -> None:
    for key in KEYS:
        log.mcc.by(key).collect()


QUERIES: dict[str, Callable[[pl.LazyFrame, str], object]] = {
    "by, one key": lambda log, _: log.mcc.by(KEYS[0]).collect(),
    "floor: decode and hash all": lambda log, _: log.select(pl.all().hash().max()).collect(),
    "floor, and text to categories": lambda log, _: log.select(
        pl.all().cast(pl.Categorical).to_physical().max()
    ).collect(),
    "by, each of ten keys": lambda log, _: log.mcc.by(each(*KEYS)).collect(),
    "by, ten keys, one by one": lambda log, _: each_alone(log),
    "by, each of ten keys, the plain plan": lambda log, _: (
        log.mcc(portable=True).by(each(*KEYS)).collect()
    ),
    "DuckDB, pairs of ten grouping sets": lambda _, logs: of_duckdb(logs, 1),
    "DuckDB, pairs of 45 grouping sets of two": lambda _, logs: of_duckdb(logs, 2),
    "worst, ten keys, depth 1": lambda log, _: log.mcc.worst(*KEYS, depth=1).collect(),
    "worst, ten keys, depth 2": lambda log, _: log.mcc.worst(*KEYS).collect(),
    NARROW: lambda log, _: log.mcc.worst(*KEYS[:3]).collect(),
    "worst, ten keys, depth 3": lambda log, _: log.mcc.worst(*KEYS, depth=3).collect(),
}


def run(query: str, logs: str) -> None:
    log = pl.scan_parquet(logs)
    start = time.perf_counter()
    QUERIES[query](log, logs)
    seconds = time.perf_counter() - start
    status = Path("/proc/self/status").read_text()
    [peak] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    print(seconds, int(peak) // 1024)


def measured(query: str, logs: str) -> tuple[float, int]:
    command = [sys.executable, __file__, logs, "--query", query]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, megabytes = done.stdout.split()
    return float(seconds), int(megabytes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", metavar="LOGS")
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--query", choices=QUERIES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.query:
        run(options.query, options.logs)
        return
    if options.memory:
        print("| rows | seconds | peak, MB |\n| --: | --: | --: |")
        for rows in (10_000_000, 20_000_000, 40_000_000, 80_000_000):
            folder = Path(options.logs) / f"narrow-{rows}"
            write_narrow(folder, rows)
            seconds, peak = measured(NARROW, f"{folder}/*.parquet")
            print(f"| {rows:,} | {seconds:.2f} | {peak} |")
        return
    folder = Path(options.logs) / f"ten-keys-{options.rows}"
    write_logs(folder, options.rows)
    found: dict[str, list[tuple[float, int]]] = {query: [] for query in QUERIES if query != NARROW}
    for _ in range(options.rounds):
        for query, runs in found.items():
            runs.append(measured(query, f"{folder}/*.parquet"))
    [one_key, *_] = found.values()
    print("| query | seconds | beside by of one key | range | peak, MB |")
    print("| --- | --: | --: | --: | --: |")
    for query, runs in found.items():
        ratios = sorted(ours / one for (ours, _), (one, _) in zip(runs, one_key, strict=True))
        seconds = statistics.median(seconds for seconds, _ in runs)
        print(
            f"| {query} | {seconds:.2f} | {statistics.median(ratios):.1f} "
            f"| {ratios[0]:.1f} to {ratios[-1]:.1f} | {max(peak for _, peak in runs)} |"
        )


if __name__ == "__main__":
    main()

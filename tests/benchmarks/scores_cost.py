"""The cost of metrics of scores, beside a group by of DuckDB and one of Polars.

    python tests/benchmarks/scores_cost.py LOGS [--rows 20_000_000]

Makes a log once, in the folder LOGS: 200 slices, a Boolean gold label, a score with four digits,
and two scores with two digits for `compare`. Queries run in turn, each in a new process. The table
shows the median of the ratios to the group by of DuckDB, which only counts rows of the same slice,
score and gold label, and the peak of memory of the process. "In memory" reads the log before the
clock starts; DuckDB then reads it as Arrow.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

FILES, SLICES = 8, 200
METRICS = ["roc_auc", "brier", "log_loss"]
COUNT = "SELECT segment, {}, gold, count(*) FROM {} GROUP BY ALL"
BASE = "DuckDB: count"


def write_log(folder: Path, rows: int) -> None:
    if folder.exists():
        return
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    segments = pl.Series([f"segment_{place:03}" for place in range(SLICES)])
    for file in range(FILES):
        size = rows // FILES
        logit = rng.logistic(size=size)
        scores = {
            name: (1 / (1 + np.exp(-logit - noise * rng.standard_normal(size)))).round(digits)
            for name, noise, digits in (("score", 0.0, 4), ("old", 0.5, 2), ("new", 0.3, 2))
        }
        columns = {"segment": segments.gather(rng.integers(0, SLICES, size)), **scores}
        gold = rng.random(size) < 1 / (1 + np.exp(-logit))
        pl.DataFrame({**columns, "gold": gold}).write_parquet(folder / f"{file}.parquet")


def count(scores: str) -> Callable[[pl.LazyFrame, str], object]:
    return lambda _, source: duckdb.sql(COUNT.format(scores, source)).to_arrow_table()


def by(**options: object) -> Callable[[pl.LazyFrame, str], object]:
    return lambda log, _: log.mcc(score="score").by("segment", **options).collect()


QUERIES: dict[str, Callable[[pl.LazyFrame, str], object]] = {
    BASE: count("score"),
    "Polars: count": lambda log, _: (
        log.group_by("segment", "score", "gold").agg(pl.len()).collect()
    ),
    "by, roc_auc": by(metrics="roc_auc"),
    "by, three metrics": by(metrics=METRICS),
    "by, three metrics, with ci": by(metrics=METRICS, ci=0.95),
    "DuckDB: joint counts": count("old, new"),
    "compare, roc_auc": lambda log, _: (
        log.mcc(score=["old", "new"]).compare("segment", metric="roc_auc").collect()
    ),
}


def run(query: str, folder: str, *, in_memory: bool) -> None:
    files = f"{folder}/*.parquet"
    log, source = pl.scan_parquet(files), f"'{files}'"
    if in_memory:
        frame = log.collect()
        log, source = frame.lazy(), "arrow"
        if "DuckDB" in query:
            duckdb.register("arrow", frame.to_arrow())
    start = time.perf_counter()
    QUERIES[query](log, source)
    seconds = time.perf_counter() - start
    status = Path("/proc/self/status").read_text()
    [peak] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    print(seconds, int(peak) // 1024)


def measured(query: str, folder: str, *options: str) -> tuple[float, int]:
    command = [sys.executable, __file__, folder, "--query", query, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, megabytes = done.stdout.split()
    return float(seconds), int(megabytes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("logs", metavar="LOGS")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="only queries with this in their name")
    parser.add_argument("--query", choices=QUERIES, help=argparse.SUPPRESS)
    parser.add_argument("--in-memory", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.query:
        import polars_mcc  # noqa: F401, PLC0415 - adds `mcc`; DuckDB does not need it

        run(args.query, args.logs, in_memory=args.in_memory)
        return
    folder = f"{args.logs}/scores-{args.rows}"
    write_log(Path(folder), args.rows)
    print("| log | query | seconds | beside DuckDB | range | peak, MB |")
    print("| --- | --- | --: | --: | --: | --: |")
    for log, options in (("Parquet", []), ("in memory", ["--in-memory"])):
        found: dict[str, list[tuple[float, int]]] = {
            query: [] for query in QUERIES if query == BASE or args.only in query
        }
        for _ in range(args.rounds):
            for query, runs in found.items():
                runs.append(measured(query, folder, *options))
        for query, runs in found.items():
            ratios = [ours / one for (ours, _), (one, _) in zip(runs, found[BASE], strict=True)]
            print(
                f"| {log} | {query} | {statistics.median(one for one, _ in runs):.2f} "
                f"| {statistics.median(ratios):.1f} | {min(ratios):.1f} to {max(ratios):.1f} "
                f"| {max(peak for _, peak in runs)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

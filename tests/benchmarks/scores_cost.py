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
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
from measuring import apart, peak, print_head, print_row, times

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
        log.mcc(score=["old", "new"]).compare("segment", metrics="roc_auc").collect()
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
    print(time.perf_counter() - start, peak())


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
    print_head(["log", "query"], ["seconds", "times DuckDB's count", "range", "peak, MB"])
    for log, options in (("Parquet", []), ("in memory", ["--in-memory"])):
        runs: dict[str, list[list[float]]] = {
            query: [] for query in QUERIES if query == BASE or args.only in query
        }
        for _ in range(args.rounds):
            for query, of_query in runs.items():
                of_query.append(apart(__file__, folder, "--query", query, *options))
        seconds = {query: [took for took, _ in of_query] for query, of_query in runs.items()}
        for query, took in seconds.items():
            megabytes = max(most for _, most in runs[query])
            cells = times(took, seconds[BASE])
            median = f"{statistics.median(took):.2f}"
            print_row(log, query, median, *cells, f"{megabytes:.0f}")


if __name__ == "__main__":
    main()

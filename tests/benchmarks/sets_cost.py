"""The cost of sets of keys: `by` over each of ten keys, and `worst`, compared with one key.

    python tests/benchmarks/sets_cost.py LOGS [--rows 8_000_000]
    python tests/benchmarks/sets_cost.py LOGS --memory

Makes logs once, in the folder LOGS: ten text keys of 20 values, and ten text labels. Queries run in
turn, each in a new process. The table shows the median of the ratios to `by` over one key, and the
peak of memory of the process. The floor decodes and hashes all columns, without a group by. A
second table has `worst` beside DuckDB's counts of the same sets, and depth 3 beside depth 2.
`--memory` prints the peak of `worst` on three keys, gold and pred of Int8, for more and more rows.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
from measuring import apart, peak, print_head, print_row, times

from polars_mcc import each

KEYS = [f"key{place}" for place in range(10)]
FILES = 8
NARROW = "worst, three Int8 keys"
ONE, ALONE = "by, one key", "by, each of ten keys"
DUCKDB = ("DuckDB, pairs of ten grouping sets", "DuckDB, pairs of 45 grouping sets of two")
WORST = tuple(f"worst, ten keys, depth {depth}" for depth in (1, 2, 3))
BESIDE = tuple(zip(WORST, (*DUCKDB, WORST[1]), strict=True))


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
    ONE: lambda log, _: log.mcc.by(KEYS[0]).collect(),
    "floor: decode and hash all": lambda log, _: log.select(pl.all().hash().max()).collect(),
    "floor, and text to categories": lambda log, _: log.select(
        pl.all().cast(pl.Categorical).to_physical().max()
    ).collect(),
    ALONE: lambda log, _: log.mcc.by(each(*KEYS)).collect(),
    "by, ten keys, one by one": lambda log, _: each_alone(log),
    "by, each of ten keys, the plain plan": lambda log, _: (
        log.mcc(portable=True).by(each(*KEYS)).collect()
    ),
    DUCKDB[0]: lambda _, logs: of_duckdb(logs, 1),
    DUCKDB[1]: lambda _, logs: of_duckdb(logs, 2),
    WORST[0]: lambda log, _: log.mcc.worst(*KEYS, depth=1).collect(),
    WORST[1]: lambda log, _: log.mcc.worst(*KEYS).collect(),
    NARROW: lambda log, _: log.mcc.worst(*KEYS[:3]).collect(),
    WORST[2]: lambda log, _: log.mcc.worst(*KEYS, depth=3).collect(),
}


def run(query: str, logs: str) -> None:
    log = pl.scan_parquet(logs)
    start = time.perf_counter()
    QUERIES[query](log, logs)
    print(time.perf_counter() - start, peak())


def measured(query: str, logs: str) -> list[float]:
    """The seconds of a query in a new process, and its peak of memory in MB."""
    return apart(__file__, logs, "--query", query)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("logs", metavar="LOGS")
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--queries", nargs="*", default=[name for name in QUERIES if name != NARROW]
    )
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="*", default=[10**7 * 2**k for k in range(4)])
    parser.add_argument("--query", choices=QUERIES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.query:
        run(options.query, options.logs)
    elif options.memory:
        print_memory(options)
    else:
        print_costs(options)


def print_memory(options: argparse.Namespace) -> None:
    print_head(["rows"], ["seconds", "peak, MB"])
    for rows in options.sizes:
        folder = Path(options.logs) / f"narrow-{rows}"
        write_narrow(folder, rows)
        seconds, megabytes = measured(NARROW, f"{folder}/*.parquet")
        print_row(f"{rows:,}", f"{seconds:.2f}", f"{megabytes:.0f}")


def print_costs(options: argparse.Namespace) -> None:
    folder = Path(options.logs) / f"ten-keys-{options.rows}"
    write_logs(folder, options.rows)
    runs: dict[str, list[list[float]]] = {query: [] for query in options.queries}
    for _ in range(options.rounds):
        for query, of_query in runs.items():
            of_query.append(measured(query, f"{folder}/*.parquet"))
    seconds = {query: [took for took, _ in of_query] for query, of_query in runs.items()}
    print_head(["query"], ["seconds", "times `by` of one key", "peak, MB"])
    for query, took in seconds.items():
        megabytes = max(most for _, most in runs[query])
        median = f"{statistics.median(took):.2f}"
        ratio, _ = times(took, seconds[ONE])
        print_row(query, median, ratio, f"{megabytes:.0f}")
    print()
    print_head(["query", "beside"], ["times as long", "range"])
    for query, other in BESIDE:
        if query in seconds:
            print_row(query, other, *times(seconds[query], seconds[other], 2))


if __name__ == "__main__":
    main()

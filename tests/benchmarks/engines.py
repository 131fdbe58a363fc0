"""The same log counted by Polars, DuckDB and Spark, and the estimated cost of larger logs.

    python -m pip install -e '.[test-engines]' duckdb  # and Java 17, for Spark
    python tests/benchmarks/engines.py

Writes a log of text labels. Each engine, in a new process, computes the score of each slice. The
table shows the median of the rounds, without the first round, and its ratio to the first engine.
Spark has two executors of one core each. Then the script measures the bytes of a row and of a pair.
It multiplies these to estimate logs that do not fit on this machine. It prints its assumptions too.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from expression_or_by import write_log
from measuring import peak, print_head, print_row

from polars_mcc import PredictionLog

TASK_ROWS = 50_000_000
"""Rows that a task of a cluster counts: about 128 MB of three columns of text labels."""
MACHINE, CLUSTER = 32, 800
"""Cores of one machine, and of a cluster of 50 with 16 each."""
DISK = 2e9
"""Bytes a second that a machine reads."""


def scan(engine: str, logs: str):
    if engine == "Polars":
        return pl.scan_parquet(f"{logs}/*.parquet")
    if engine == "DuckDB":
        import duckdb  # noqa: PLC0415 - a process imports what its engine needs

        return duckdb.connect().read_parquet(f"{logs}/*.parquet")
    from pyspark.sql import SparkSession  # noqa: PLC0415

    spark = (
        SparkSession.builder.master("local-cluster[2,1,2048]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark.read.parquet(logs)


def ask(engine: str, logs: str, rounds: int) -> None:
    """Print the seconds of each round, and hashes of the answer."""
    frame, seconds = scan(engine, logs), []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        answer = PredictionLog(frame).by("slice").collect()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": seconds[1:], "answer": answer.hash_rows(1).to_list()}))


def write_pairs(slices: int, folder: str) -> None:
    """Write a log with about 20 rows per slice, so that most pairs are rare."""
    rng, rows = np.random.default_rng(0), 20 * slices
    labels = pl.Series(["cat", "dog", "emu", "fox", "gnu"])
    pl.DataFrame(
        {
            "slice": rng.integers(0, slices, rows),
            "gold": labels.gather(rng.integers(0, 5, rows)),
            "pred": labels.gather(rng.integers(0, 5, rows)),
        }
    ).write_parquet(f"{folder}/log.parquet")


def pairs(folder: str) -> None:
    """Print the bytes of a pair: in memory while it is counted, as Arrow, and as Parquet."""
    log = pl.scan_parquet(f"{folder}/log.parquet")
    log.head(1000).mcc.counts("slice").collect()
    before = peak()
    found = log.mcc.counts("slice").collect()
    memory = (peak() - before) * 2**20
    found.write_parquet(f"{folder}/counts.parquet")
    stored = Path(folder, "counts.parquet").stat().st_size
    each = {"memory": memory, "Arrow": found.estimated_size(), "Parquet": stored}
    print(json.dumps({name: size / found.height for name, size in each.items()}))


def apart(*arguments: object) -> dict:
    """Run this script in a new process, and return what it prints."""
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engines", nargs="*", default=["Polars", "DuckDB", "Spark"])
    parser.add_argument("--slices", type=int, default=500_000)
    parser.add_argument("--ask", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--pairs", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ask:
        ask(*args.ask, args.rounds)
    elif args.pairs:
        pairs(args.pairs)
    else:
        compare(args)


def compare(args: argparse.Namespace) -> None:
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        write_log(args.rows, Path(folder))
        asked = ("slice", "gold", "pred")
        one = pl.read_parquet(f"{folder}/0.parquet", columns=list(asked))
        one.write_parquet(f"{folder}/.asked")
        row_bytes = Path(folder, ".asked").stat().st_size / one.height
        Path(folder, ".asked").unlink()
        found = {
            engine: apart("--ask", engine, folder, "--rounds", args.rounds)
            for engine in args.engines
        }
    with tempfile.TemporaryDirectory() as folder:
        write_pairs(args.slices, folder)
        each = apart("--pairs", folder)
    base = found[args.engines[0]]
    print(
        f"{args.rows} rows, 1000 slices, 10 text labels, {cores} cores, median of {args.rounds}\n"
    )
    print_head(["engine"], ["s", "beside the first", "rows a second and core"])
    for engine, run in found.items():
        assert run["answer"] == base["answer"], f"{engine} gives a different answer"
        seconds = statistics.median(run["seconds"])
        ratio = seconds / statistics.median(base["seconds"])
        rate = args.rows / seconds / cores
        print_row(engine, f"{seconds:.2f}", f"{ratio:.1f}", f"{rate / 1e6:.1f} M")
    print(f"\nA row: {row_bytes:.2f} bytes of Parquet in the columns that are read. A pair:")
    print(", ".join(f"{size:.1f} bytes {name}" for name, size in each.items()))
    rate = args.rows / statistics.median(base["seconds"]) / cores
    print(
        f"\nBy multiplication, with the rate of {args.engines[0]}; {MACHINE} cores and "
        f"{DISK / 1e9:.0f} GB/s a machine, {CLUSTER} cores a cluster of {CLUSTER // 16}, "
        f"{TASK_ROWS / 1e6:.0f} M rows a task:\n"
    )
    costs = ["log", "one machine: computing, reading, min", "cluster, min", "memory", "shuffled"]
    print_head(["rows", "pairs"], costs)
    for rows in (10**10, 10**12, 10**13):
        for distinct in (20_000, 20_000_000):
            tasks = rows / TASK_ROWS
            log = rows * row_bytes
            shuffled = min(tasks * distinct, rows) * each["Arrow"]
            print_row(
                f"10^{np.log10(rows):.0f}",
                f"{distinct / 1e6:g} M",
                f"{log / 1e12:.2f} TB",
                f"{rows / rate / MACHINE / 60:.1f}, {log / DISK / 60:.1f}",
                f"{max(rows / rate / CLUSTER, log / DISK / (CLUSTER / 16)) / 60:.1f}",
                f"{distinct * each['memory'] / 1e9:.2f} GB",
                f"{shuffled / 1e9:.1f} GB",
            )


if __name__ == "__main__":
    main()

"""How long a query takes with a progress bar, compared with the same query without one.

    python tests/benchmarks/progress_cost.py --rows 20_000_000

Makes the log of `expression_or_by.py` and runs both queries in turn. Prints a table: the median of
the ratios of each round, with their range; of seconds, and of processor time, which is less noisy.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import closing
from pathlib import Path

import polars as pl
from expression_or_by import write_log
from measuring import print_head, print_row, times
from rich.console import Console

from polars_mcc._display.progress_bar import ProgressBar, collect

LABELS = {
    "text labels": pl.col("gold", "pred"),
    "Boolean labels": pl.col("gold", "pred") > "dog",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    print_head(["labels"], ["times as long with a bar", "range", "of processor time", "its range"])
    for name, labels in LABELS.items():
        with tempfile.TemporaryDirectory() as folder:
            write_log(args.rows, Path(folder))
            for file in Path(folder).glob("*.parquet"):
                pl.read_parquet(file).with_columns(labels).write_parquet(file)
            compare(pl.scan_parquet(f"{folder}/*.parquet"), args, name)


def compare(log: pl.LazyFrame, args: argparse.Namespace, name: str) -> None:
    def with_bar() -> pl.DataFrame:
        console = Console(stderr=True, force_terminal=True)
        with closing(ProgressBar([args.rows], console=console)) as bar:
            return collect(log, lambda log: log.mcc.by("slice"), bar)

    queries = {
        "without": lambda: log.mcc.by("slice").collect(),
        "with": with_bar,
    }
    wall: dict[str, list[float]] = {name: [] for name in queries}
    processor: dict[str, list[float]] = {name: [] for name in queries}
    answers = {}
    for _ in range(args.rounds):
        for query, run in queries.items():
            start, used = time.perf_counter(), time.process_time()
            answers[query] = run()
            wall[query].append(time.perf_counter() - start)
            processor[query].append(time.process_time() - used)
    assert answers["with"].equals(answers["without"])
    cells = [cell for of in (wall, processor) for cell in times(of["with"], of["without"], 2)]
    print_row(name, *cells)


if __name__ == "__main__":
    main()

"""The cost of a store of counts and the time that it saves, compared with its log.

    python tests/benchmarks/store_cost.py [--inputs 8760 365] [--rows 1000 50_000]

Writes a log of --inputs files of --rows rows, and keeps its counts in a store. Updates the store
with no new file, and with one new file. Then scores the store and the log. Prints a table of the
medians of the rounds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from measuring import print_head, print_row

import polars_mcc

KEYS = ["country", "day"]
LABELS = pl.Series([f"label {code}" for code in range(10)])


def write(path: Path, day: int, rows: int) -> None:
    rng = np.random.default_rng(day)
    gold = rng.integers(0, 10, rows)
    pred = np.where(rng.random(rows) < 0.8, gold, rng.integers(0, 10, rows))
    pl.DataFrame(
        {
            "country": pl.Series(rng.integers(0, 20, rows)).cast(pl.String),
            "day": np.full(rows, day),
            "gold": LABELS.gather(gold),
            "pred": LABELS.gather(pred),
        }
    ).write_parquet(path)
    os.utime(path, (day, day))


def seconds(run: Callable[[], object], rounds: int = 1) -> float:
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def measured(inputs: int, rows: int, rounds: int) -> list[float]:
    """Seconds to count all files, none, and a new one; then to score the store, and the log."""
    with tempfile.TemporaryDirectory() as folder:
        logs, store = Path(folder, "logs"), Path(folder, "store")
        logs.mkdir()
        for day in range(inputs):
            write(logs / f"{day:05}.parquet", day, rows)

        def keep() -> pl.DataFrame:
            return polars_mcc.keep_counts(logs, store, *KEYS)

        def of_store() -> pl.DataFrame:
            return polars_mcc.PredictionLog.from_store(store).by("country").collect()

        def of_log() -> pl.DataFrame:
            return pl.scan_parquet(logs / "*.parquet").mcc.by("country").collect()

        first, again = seconds(keep), seconds(keep, rounds)
        write(logs / "new.parquet", inputs, rows)
        new = seconds(keep)
        assert of_store().equals(of_log())
        return [first, again, new, seconds(of_store, rounds), seconds(of_log, rounds)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--inputs", type=int, nargs="*", default=[8760, 365])
    parser.add_argument("--rows", type=int, nargs="*", default=[1000, 50_000])
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    columns = [f"{step}, s" for step in ("count all", "nothing new", "one new file")]
    columns += ["score the store, s", "score the log, s", "log / store"]
    print_head(["files", "rows of a file"], columns)
    for inputs, rows in zip(args.inputs, args.rows, strict=True):
        found = measured(inputs, rows, args.rounds)
        cells = [f"{one:.2f}" for one in found]
        print_row(inputs, rows, *cells, f"{found[-1] / found[-2]:.1f}")


if __name__ == "__main__":
    main()

"""The cost of a store of counts and the time that it saves, compared with its log.

    python tests/benchmarks/store_cost.py --inputs 365 --rows 50_000
    python tests/benchmarks/store_cost.py --inputs 8760 --rows 1000

Writes a log of --inputs files, and keeps its counts in a store. Updates the store with no new file,
and with one new file. Then scores the store and the log. Prints medians of the rounds.
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--inputs", type=int, default=365)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        logs, store = Path(folder, "logs"), Path(folder, "store")
        logs.mkdir()
        for day in range(args.inputs):
            write(logs / f"{day:05}.parquet", day, args.rows)

        def keep() -> pl.DataFrame:
            return polars_mcc.keep_counts(logs, store, *KEYS)

        def of_store() -> pl.DataFrame:
            return polars_mcc.PredictionLog.from_store(store).by("country").collect()

        def of_log() -> pl.DataFrame:
            return pl.scan_parquet(logs / "*.parquet").mcc.by("country").collect()

        first, again = seconds(keep), seconds(keep, args.rounds)
        write(logs / "new.parquet", args.inputs, args.rows)
        new = seconds(keep)
        assert of_store().equals(of_log())
        on_log, on_store = seconds(of_log, args.rounds), seconds(of_store, args.rounds)
        sizes = [
            sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
            for place in (logs, store)
        ]
    print(f"{args.inputs} files of {args.rows} rows, counts by {' and '.join(KEYS)}")
    print("keep_counts")
    print(f"  all files new {first:9.3f} s")
    print(f"  none new      {again:9.3f} s")
    print(f"  one new       {new:9.3f} s")
    print("by(country)")
    print(f"  of the log    {on_log:9.3f} s, {sizes[0] / 1e6:.1f} MB")
    print(f"  of the store  {on_store:9.3f} s, {sizes[1] / 1e6:.1f} MB, {on_store / on_log:.2f} ×")


if __name__ == "__main__":
    main()

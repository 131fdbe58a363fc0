"""How long the expression takes compared with `by`, for the same scores of a Parquet log.

    python tests/benchmarks/expression_or_by.py --rows 10_000_000 --weight float

Makes a log of 10 text labels in 200 slices, runs the queries in turn, and prints the median
of the ratios of each round, with their range.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

import polars_mcc

LABELS = ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay"]
SLICES = 200


def write_log(rows: int, folder: Path) -> None:
    rng = np.random.default_rng(0)
    names = pl.Series(LABELS)
    for part in range(8):
        n = rows * (part + 1) // 8 - rows * part // 8
        gold = rng.integers(0, len(LABELS), n)
        guess = rng.integers(0, len(LABELS), n)
        pred = np.where(rng.random(n) < 0.8, gold, guess)
        pl.DataFrame(
            {
                "slice": pl.Series(rng.integers(0, SLICES, n)).cast(pl.String),
                "gold": names.gather(gold),
                "pred": names.gather(pred),
                "integer": rng.integers(0, 10, n),
                "float": rng.random(n),
            }
        ).write_parquet(folder / f"{part}.parquet")


def print_ratios(seconds: dict[str, list[float]], base: str, width: int) -> None:
    """Print the seconds of each query divided by the base query: median and range of rounds."""
    for name, times in seconds.items():
        ratios = [t / one for t, one in zip(times, seconds[base], strict=True)]
        low, high, median = min(ratios), max(ratios), statistics.median(ratios)
        print(f"{name:{width}} {median:5.2f} × {base}   ({low:.2f} to {high:.2f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--weight", choices=["integer", "float"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_log(args.rows, Path(folder))
        log = pl.scan_parquet(f"{folder}/*.parquet")

        def aggregated(labels: list[str] | None) -> Callable[[], pl.DataFrame]:
            mcc = polars_mcc.ExprMcc(pl.col("pred")).score(
                "gold", weight=args.weight, labels=labels
            )
            return lambda: log.group_by("slice").agg(mcc=mcc).sort("slice").collect()

        queries = {
            "by": lambda: log.mcc(weight=args.weight).by("slice").collect(),
            "agg, labels=[...]": aggregated(LABELS),
            "agg": aggregated(None),
        }
        expected = queries["by"]()["mcc"]
        seconds: dict[str, list[float]] = {name: [] for name in queries}
        for _ in range(args.rounds):
            for name, query in queries.items():
                start = time.perf_counter()
                answer = query()["mcc"]
                seconds[name].append(time.perf_counter() - start)
                assert ((answer - expected).abs() < 1e-12).all(), name
    weight = f"{args.weight} weights, " if args.weight else ""
    print(
        f"{args.rows} rows, {weight}{SLICES} slices, {len(LABELS)} text labels, "
        f"{args.rounds} rounds"
    )
    print_ratios(seconds, "by", width=20)


if __name__ == "__main__":
    main()

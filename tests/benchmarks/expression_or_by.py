"""How long the expression takes compared with `by`, for the same scores of a Parquet log.

    python tests/benchmarks/expression_or_by.py --rows 10_000_000 --weight float

Makes a log of 10 text labels in 200 slices, runs the queries in turn, and prints a table of the
median of the ratios of each round, with their range.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from measuring import in_turns, print_head, print_ratios

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
            "`by`": lambda: log.mcc(weight=args.weight).by("slice").collect(),
            "the expression, `labels=[...]`": aggregated(LABELS),
            "the expression": aggregated(None),
        }
        expected = queries["`by`"]()["mcc"]
        for name, query in queries.items():
            assert ((query()["mcc"] - expected).abs() < 1e-12).all(), name
        seconds = in_turns(queries, args.rounds)
    print_head(["query"], ["times `by`", "range", "seconds"])
    print_ratios(seconds, "`by`")


if __name__ == "__main__":
    main()

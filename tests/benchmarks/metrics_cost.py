"""The cost of other metrics and of their intervals, compared with `by` for MCC alone.

    python tests/benchmarks/metrics_cost.py --rows 20_000_000

Makes a log of 10 text labels in 200 slices, and a log with lists of labels. Runs the queries in
turn, and prints the median of the ratios of each round, with their range.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
from expression_or_by import print_ratios, write_log

import polars_mcc


def two_labels(column: str) -> pl.Expr:
    """Lists of two labels: the label of the row and the label of the next row."""
    return pl.concat_list(column, pl.col(column).shift(-1).fill_null("ant")).alias(column)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    listed = polars_mcc.metrics()
    of_classes = listed.filter(pl.col("from") == "classes")["metric"].to_list()
    of_pairs = listed.filter(pl.col("from") == "pairs")["metric"].to_list()
    of_lists = listed.filter("multilabel", pl.col("from") == "classes")["metric"].to_list()
    with tempfile.TemporaryDirectory() as folder:
        rows, lists = Path(folder) / "rows", Path(folder) / "lists"
        for made in (rows, lists):
            made.mkdir()
        write_log(args.rows, rows)
        for file in rows.iterdir():
            log = pl.read_parquet(file, columns=["slice", "gold", "pred"])
            log.with_columns(map(two_labels, ("gold", "pred"))).write_parquet(lists / file.name)
        log, tagged = (pl.scan_parquet(made / "*.parquet") for made in (rows, lists))
        queries: dict[str, Callable[[], pl.LazyFrame]] = {
            "mcc": lambda: log.mcc.by("slice"),
            f"{len(of_classes)} metrics of classes": lambda: log.mcc.by(
                "slice", metrics=of_classes
            ),
            f"{len(of_classes)} metrics of classes, with intervals": lambda: log.mcc.by(
                "slice", metrics=of_classes, ci=0.95
            ),
            "counts of the pairs": lambda: log.mcc.counts("slice"),
            f"{len(of_classes + of_pairs)} metrics of classes and pairs": lambda: log.mcc.by(
                "slice", metrics=of_classes + of_pairs
            ),
            "lists: explode them, and count labels": lambda: (
                pl.concat(
                    tagged.select("slice", label=side).explode("label") for side in ("gold", "pred")
                )
                .group_by("slice", "label")
                .agg(pl.len())
            ),
            f"lists: {len(of_lists)} metrics": lambda: tagged.mcc.by("slice", metrics=of_lists),
        }
        seconds: dict[str, list[float]] = {name: [] for name in queries}
        for _ in range(args.rounds):
            for name, query in queries.items():
                start = time.perf_counter()
                query().collect()
                seconds[name].append(time.perf_counter() - start)
    print(f"{args.rows} rows, 200 slices, 10 text labels, {args.rounds} rounds")
    print_ratios(seconds, "mcc", width=40)


if __name__ == "__main__":
    main()

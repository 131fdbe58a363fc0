"""The cost of other metrics and of their intervals, compared with `by` for MCC alone.

    python tests/benchmarks/metrics_cost.py --rows 20_000_000

Makes a log of 10 text labels in 200 slices, and a log with lists of labels. Runs the queries in
turn, and prints a table: the median of the ratios of each round, with their range.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
from expression_or_by import write_log
from measuring import in_turns, print_head, print_ratios

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
            "MCC alone": lambda: log.mcc.by("slice"),
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
        calls = {name: lambda query=query: query().collect() for name, query in queries.items()}
        seconds = in_turns(calls, args.rounds)
    print_head(["query"], ["times MCC alone", "range", "seconds"])
    print_ratios(seconds, "MCC alone")


if __name__ == "__main__":
    main()

"""How far the scores are from exact arithmetic, on random tables that are hard.

    python tests/benchmarks/exactness.py --tables 20_000

Prints a table: the largest error in units in the last place, for each family in tests/tables.py
and each way to score them. Each table of a family is a slice of one counts table.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
from measuring import print_head, print_row

import polars_mcc

sys.path.insert(0, str(Path(__file__).parents[1]))
import oracles
import tables

_MCC = polars_mcc.ExprMcc(pl.col("pred")).score


def _by(engine: str) -> Callable[[pl.LazyFrame], pl.DataFrame]:
    return lambda counts: counts.mcc(weight="n").by("table").collect(engine=engine)


def _agg(labels: Sequence[int] | None) -> Callable[[pl.LazyFrame], pl.DataFrame]:
    score = _MCC("gold", weight="n", labels=labels)
    return lambda counts: counts.group_by("table").agg(mcc=score).sort("table").collect()


QUERIES = {
    "by, streaming": _by("streaming"),
    "by, in-memory": _by("in-memory"),
    "agg": _agg(None),
    "agg, labels": _agg(range(50)),
}


def errors(some: Sequence[oracles.Table], query: str) -> list[float]:
    """The error of the score of each table, in units in the last place."""
    found = QUERIES[query](tables.counts_of(some).lazy())["mcc"]
    truth = (oracles.exact(tables.as_integers(table)) for table in some)
    return [
        float(score is not None) if exact is None else oracles.ulps(score, exact)
        for score, exact in zip(found, truth, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--tables", type=int, default=20_000, help="tables per family")
    args = parser.parse_args()
    print_head(["tables", "how many"], [*QUERIES])
    total, families = 0, (*tables.INTEGERS, *tables.FLOATS)
    for family in families:
        rng = random.Random(family.__name__)
        n = args.tables // 20 if family is tables.many_classes else args.tables
        some = [family(rng) for _ in range(n)]
        total += n
        worst = {query: f"{max(errors(some, query)):.2f}" for query in QUERIES}
        if family in tables.BEYOND_LABELS:
            worst["agg, labels"] = "floats"
        name = family.__name__.replace("_", " ")
        print_row(name, n, *worst.values())
    print(f"{total} tables")


if __name__ == "__main__":
    main()

"""Inputs on which other packages lose digits or fail, compared with exact arithmetic.

    pip install -e '.[test]' --group peers && python tests/benchmarks/peers.py

Prints a Markdown table with a column for each peer that is installed.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import distributions, version
from pathlib import Path

import numpy as np
import polars as pl

import polars_mcc

sys.path.insert(0, str(Path(__file__).parents[1]))
import oracles
import tables
from tables import FloatTable as Table

TABLES: dict[str, Table] = {
    title: oracles.table_of(matrix)
    for title, matrix in {
        "[[10¹², 1], [1, 3]]": [[10**12, 1], [1, 3]],
        "[[10¹⁵, 5], [7, 11]]": [[10**15, 5], [7, 11]],
        "[[10¹⁸, 10¹⁸], [10¹⁸, 2]]": [[10**18, 10**18], [10**18, 2]],
        "[[700000, 30000], [50000, 700000]]": [[700_000, 30_000], [50_000, 700_000]],
        "[[10¹², 0.1], [0.1, 0.3]]": [[1e12, 0.1], [0.1, 0.3]],
    }.items()
}
"""Rows are gold labels, columns are predictions."""


def exact(table: Table) -> float:
    truth = oracles.exact(tables.as_integers(table))
    assert truth is not None
    return float(truth)


def own(table: Table) -> float:
    counts = polars_mcc.PredictionLog(tables.counts_of([table]), weight="n")
    return counts.score()["mcc"].item()


def scikit_learn(table: Table) -> float:
    metrics = importlib.import_module("sklearn.metrics")
    gold, pred = zip(*table, strict=True)
    weights = np.array(list(table.values()))
    return float(metrics.matthews_corrcoef(gold, pred, sample_weight=weights))


def pycm(table: Table) -> float | None:
    if not all(isinstance(n, int) for n in table.values()):
        return None
    matrix = {g: {p: table[g, p] for p in (0, 1)} for g in (0, 1)}
    return float(importlib.import_module("pycm").ConfusionMatrix(matrix=matrix).Overall_MCC)


def polars_ds(table: Table) -> float | None:
    """polars_ds takes rows, not counts."""
    if sum(table.values()) > 10**7:
        return None
    labels = pl.DataFrame(list(table), schema=["gold", "pred"], orient="row")
    rows = labels.select(pl.all().cast(pl.UInt32).repeat_by(pl.Series(table.values())).explode())
    query_mcc = importlib.import_module("polars_ds").query_mcc
    return rows.select(query_mcc("gold", "pred")).item()


def duckdb(table: Table) -> float:
    """The SQL of the guide, without the part that counts rows."""
    gold, pred = oracles.marginals(table)
    dtype = "HUGEINT" if all(isinstance(n, int) for n in table.values()) else "DOUBLE"
    rows = ", ".join(
        f"({gold[k]}::{dtype}, {pred[k]}::{dtype}, {table[k, k]}::{dtype})" for k in (0, 1)
    )
    query = f"""
        SELECT (c * s - tp) / sqrt((s * s - pp) * (s * s - tt)) FROM (
            SELECT sum(t) AS s, sum(c) AS c, sum(t * p) AS tp, sum(t * t) AS tt, sum(p * p) AS pp
            FROM (VALUES {rows}) AS classes (t, p, c)
        )"""  # noqa: S608 - the rows are ours
    [(score,)] = importlib.import_module("duckdb").sql(query).fetchall()
    return score


PEERS: dict[str, Callable[[Table], float | None]] = {
    "scikit-learn": scikit_learn,
    "pycm": pycm,
    "polars_ds": polars_ds,
    "duckdb": duckdb,
}


def cell(score: Callable[[Table], float | None], table: Table) -> str:
    try:
        found = score(table)
    except Exception as error:  # noqa: BLE001 - the table shows the error of a peer
        return type(error).__name__
    return "" if found is None else f"{found:.12g}"


def markdown() -> list[str]:
    """The lines of the table. An error is shown of peers alone."""
    installed = {distribution.name for distribution in distributions()}
    ours = {"exact": exact, "polars_mcc": own}
    peers = {f"{name} {version(name)}": one for name, one in PEERS.items() if name in installed}
    head = ["counts", *ours, *peers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [
            [title, *(f"{score(table):.12g}" for score in ours.values())]
            + [cell(score, table) for score in peers.values()]
            for title, table in TABLES.items()
        ]
    return [
        "| " + " | ".join(row) + " |" for row in [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    ]


if __name__ == "__main__":
    print("\n".join(markdown()))

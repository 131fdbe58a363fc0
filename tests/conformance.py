"""Compare metrics with other libraries on the same inputs, and list where they differ.

`python tests/conformance.py` prints the tables of examples/metrics.md. `--write` writes the tables
to that page.
"""

from __future__ import annotations

import itertools
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pycm
import scipy.stats
import sklearn.metrics
from oracles import table_of

import polars_mcc

PAGE = Path(__file__).parent.parent / "examples" / "metrics.md"
POSITIVE = 1
OF_SCORES = polars_mcc.metrics().filter(pl.col("from") == "scores")["metric"].to_list()
HIGHEST = 4
"""A predicted label by this number is the score of a row, in metrics of scores."""
CLOSE = 1e-12
"""The relative tolerance for peers, which round at every step."""

Table = dict[tuple[int, int], int]

REGULAR: dict[str, Table] = {
    "two classes": table_of([[50, 7], [4, 21]]),
    "two classes, worse than chance": table_of([[3, 17], [24, 5]]),
    "three classes": table_of([[12, 3, 1], [2, 30, 4], [1, 6, 9]]),
    "three classes, cells that do not occur": {(0, 0): 5, (0, 2): 2, (1, 1): 8, (2, 2): 3},
    "all right": {(0, 0): 4, (1, 1): 3, (2, 2): 5},
}
DEGENERATE: dict[str, Table] = {
    "one class": {(1, 1): 5},
    "one gold class": {(1, 0): 2, (1, 1): 3},
    "one predicted class": {(0, 1): 2, (1, 1): 3},
    "a class never predicted": {(0, 0): 4, (1, 0): 2, (1, 2): 1, (2, 2): 3},
    "a class never gold": {(0, 0): 4, (0, 1): 2, (2, 0): 1, (2, 2): 3},
    "no error": {(0, 0): 4, (1, 1): 3},
    "no class gold and predicted": {(0, 1): 3, (2, 1): 2, (2, 3): 4},
}


class Difference(NamedTuple):
    metric: str
    peer: str
    where: str
    ours: float | None
    theirs: float | str


def rows_of(table: Table) -> tuple[np.ndarray, np.ndarray]:
    pairs = [pair for pair, n in table.items() for _ in range(n)]
    gold, pred = zip(*pairs, strict=True)
    return np.array(gold), np.array(pred)


def ours(table: Table) -> dict[str, float]:
    """Compute every metric of a table."""
    counts = pl.DataFrame(
        {
            "gold": [gold for gold, _ in table],
            "pred": [pred for _, pred in table],
            "n": list(table.values()),
        }
    )
    names = polars_mcc.metrics()["metric"].to_list()
    score = pl.col("pred") / HIGHEST
    log = counts.mcc(pred="pred", score=score, weight="n", positive=POSITIVE)
    answer = log.score(metrics=names)
    return answer.to_dicts()[0]


def peers_of(metric: str) -> list[str]:
    [peers] = polars_mcc.metrics().filter(metric=metric)["peers"]
    return peers.split("; ") if peers else []


SCORERS = {peer.split(": ")[1].partition("(")[0] for name in OF_SCORES for peer in peers_of(name)}


def called(function: str) -> tuple[str, dict[str, Any]]:
    """The name of a function, and its option, as in "f1_score(average='macro')"."""
    name, option, value = re.fullmatch(r"(\w+)(?:\((\w+)='(\w+)'\))?", function).groups()
    return name, {option: value} if option else {}


def theirs(peer: str, table: Table, *, is_binary: bool) -> float | str | None:
    """Call a peer on a table. None if the peer is not defined for this table."""
    library, function = peer.split(": ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {"scikit-learn": _sklearn, "PyCM": _pycm, "SciPy": _scipy}[library](
            function, table, is_binary
        )


def _sklearn(function: str, table: Table, is_binary: bool) -> float:
    name, arguments = called(function)
    gold, pred = rows_of(table)
    if name in SCORERS:
        gold, pred = gold == POSITIVE, pred / HIGHEST
        arguments |= {"labels": [False, True]} if name == "log_loss" else {}
    elif is_binary:
        gold, pred = gold == POSITIVE, pred == POSITIVE
    if name in {"precision_score", "recall_score", "f1_score"}:
        arguments["zero_division"] = 0.0
    return float(getattr(sklearn.metrics, name)(gold, pred, **arguments))


def _pycm(function: str, table: Table, is_binary: bool) -> float | str | None:
    name, _, only = function.partition(" ")
    labels = sorted({label for pair in table for label in pair})
    if is_binary and POSITIVE not in labels:
        return None
    if len(labels) < 2:  # PyCM needs two classes; the second one never occurs.
        labels = [0, *labels]
    if only and len(labels) != 2:
        return None
    matrix = {g: {p: table.get((g, p), 0) for p in labels} for g in labels}
    found = pycm.ConfusionMatrix(matrix=matrix)
    value = getattr(found, name)
    if isinstance(value, dict):
        value = value[POSITIVE]
    return value if isinstance(value, str) else float(value)


def _scipy(function: str, table: Table, is_binary: bool) -> float | str:  # noqa: ARG001
    golds, preds = (sorted({pair[side] for pair in table}) for side in (0, 1))
    observed = np.array([[table.get((g, p), 0) for p in preds] for g in golds])
    if function == "chi2_contingency":
        return float(scipy.stats.chi2_contingency(observed, correction=False).statistic)
    return float(scipy.stats.contingency.association(observed, method="cramer"))


def differences(tables: dict[str, Table]) -> Iterator[Difference]:
    """Yield each disagreement between a metric and one of its peers."""
    binary = set(polars_mcc.metrics().filter(pl.col("from") == "positive")["metric"])
    for where, table in tables.items():
        answer = ours(table)
        for metric in polars_mcc.metrics()["metric"]:
            for peer in peers_of(metric):
                found = theirs(peer, table, is_binary=metric in binary)
                if found is None:
                    continue
                value = answer[metric]
                is_number = isinstance(found, float) and value is not None
                if not (is_number and abs(found - value) <= CLOSE * max(1, abs(value))):
                    yield Difference(metric, peer, where, value, found)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _number(value: float | str | None) -> str:
    return "null" if value is None else value if isinstance(value, str) else f"{value:.4g}"


def _markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def registry_table() -> str:
    found = polars_mcc.metrics()
    rows = [
        [
            f"`{row['metric']}`",
            row["formula"],
            row["range"],
            row["undefined"] or "nowhere",
            row["from"] + ("" if row["multilabel"] else "; one label a row"),
            row["source"],
            row["peers"],
        ]
        for row in found.iter_rows(named=True)
    ]
    header = ["metric", "formula", "range", "0/0 where", "from", "source", "agree"]
    return _markdown(header, rows)


def differences_table() -> str:
    """A row per library, table and value of the library, with the metrics and our values."""
    found = sorted(differences(DEGENERATE), key=lambda d: (d.peer.split(":")[0], d.where))
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for (library, where, said), several in itertools.groupby(
        found, key=lambda d: (d.peer.split(":")[0], d.where, _number(d.theirs))
    ):
        for difference in several:
            texts = grouped.setdefault((library, where, said), [])
            texts.append(f"`{difference.metric}` {_number(difference.ours)}")
    rows = [
        [where, library, said, ", ".join(dict.fromkeys(metrics))]
        for (library, where, said), metrics in grouped.items()
    ]
    return _markdown(["counts of", "peer", "its value", "ours"], rows)


TABLES = {"registry": registry_table, "differences": differences_table}


def page() -> str:
    """The text of the page with fresh tables."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in TABLES.items():
        start = f"<!-- {name}: python tests/conformance.py --write -->\n"
        before, rest = text.split(start)
        _, after = rest.split(f"<!-- end of {name} -->")
        text = f"{before}{start}{table()}\n<!-- end of {name} -->{after}"
    return text


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print("\n\n".join(table() for table in TABLES.values()))

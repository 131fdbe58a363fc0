"""How many planted bad slices `worst` finds, and how many of those that it reports are not bad.

A log has keys that are independent of each other and of the labels, so which slices fall behind
the rest is known: those with a larger expected rate of misses. Three slices are planted, of one
key or two, in which misses are more frequent; or none.

    python tests/benchmarks/planted_slices.py [--logs 100]
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import dataclass

import numpy as np
import polars as pl

KEYS = [f"key{place}" for place in range(5)]
VALUES = 6
ROWS = 20_000
MIXES = {"4 classes, balanced": [0.25] * 4, "2 classes, 95:5": [0.95, 0.05]}
USUAL, PLANTED = 0.1, 0.25

Slice = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Planted:
    """A log, the slices planted in it, and all slices that are behind the rest."""

    log: pl.DataFrame
    planted: set[Slice]
    behind: set[Slice]


def generate(seed: int, mix: list[float], bad: int) -> Planted:
    rng = np.random.default_rng(seed)
    planted: set[Slice] = set()
    for depth in (1, 2, 2)[:bad]:
        names = sorted(rng.choice(KEYS, depth, replace=False).tolist())
        planted.add(tuple((name, int(rng.integers(VALUES))) for name in names))

    def misses(columns: dict[str, np.ndarray], rows: int) -> np.ndarray:
        rate = np.full(rows, USUAL)
        for slice_ in planted:
            inside = np.all([columns[name] == value for name, value in slice_], axis=0)
            rate[inside] = PLANTED + 0.2 * (len(slice_) - 1)
        return rate

    grid = np.indices([VALUES] * len(KEYS)).reshape(len(KEYS), -1)
    every = dict(zip(KEYS, grid, strict=True))
    expected = misses(every, grid.shape[1])
    behind = set()
    for depth in (1, 2):
        for names in itertools.combinations(KEYS, depth):
            for values in itertools.product(range(VALUES), repeat=depth):
                pairs = list(zip(names, values, strict=True))
                inside = np.all([every[name] == value for name, value in pairs], axis=0)
                if expected[inside].mean() > expected[~inside].mean() + 1e-9:
                    behind.add(tuple(pairs))

    columns = {name: rng.integers(0, VALUES, ROWS) for name in KEYS}
    gold = rng.choice(len(mix), ROWS, p=mix)
    wrong = (gold + rng.integers(1, len(mix), ROWS)) % len(mix)
    pred = np.where(rng.random(ROWS) < misses(columns, ROWS), wrong, gold)
    return Planted(pl.DataFrame({**columns, "gold": gold, "pred": pred}), planted, behind)


def reported(log: pl.DataFrame, correction: str) -> set[Slice]:
    found = log.mcc.worst(*KEYS, correction=correction).rows(named=True)
    return {tuple((key, row[key]) for key in row["keys"].split(", ")) for row in found}


def measure(logs: int, mix: str, bad: int, correction: str) -> dict[str, object]:
    shares, recalls, others, with_false = [], [], [], 0
    for seed in range(logs):
        truth = generate(seed, MIXES[mix], bad)
        found = reported(truth.log, correction)
        false = found - truth.behind
        shares.append(len(false) / max(len(found), 1))
        with_false += bool(false)
        if bad:
            recalls.append(len(found & truth.planted) / len(truth.planted))
            others.append(len((found & truth.behind) - truth.planted))
    return {
        "labels": mix,
        "planted": bad,
        "correction": correction,
        "recall": f"{np.mean(recalls):.1%}" if bad else "",
        "false discovery rate": f"{np.mean(shares):.2%}",
        "logs with a false one": f"{with_false / logs:.0%}",
        "others behind, per log": f"{np.mean(others):.2f}" if bad else "",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=100)
    options = parser.parse_args()
    columns = None
    for mix, bad, correction in itertools.product(MIXES, (3, 0), ("bh", "by")):
        row = measure(options.logs, mix, bad, correction)
        if columns is None:
            columns = list(row)
            print("| " + " | ".join(columns) + " |")
            print("| " + " | ".join("---" for _ in columns) + " |")
        print("| " + " | ".join(map(str, row.values())) + " |", flush=True)


if __name__ == "__main__":
    main()

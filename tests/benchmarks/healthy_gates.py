"""How often a gate with `ci` stops a model that did not change, and a slice that is bad.

    python tests/benchmarks/healthy_gates.py [--logs 400] [--metric mcc]

All slices of a log have one table of probabilities: the recall of the most frequent class is 0.99,
of the others 0.6 or 0.95. With balanced classes it is 0.6 or 0.95 for each. A key cuts the log in
few slices, in many, or in many tiny ones (`KEYS`). The gate is `check(key, min=..., ci=0.95)`. The
minimum is the true score, or 0.02 less.

Prints the share of logs with an alarm, which should be at most 0.05; the alarms of the first thirty
nights, which should be at most 2; how often a bad slice of 300 rows is found, in which predictions
do not depend on gold labels; and the share of logs with an alarm without correction.
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import numpy as np
import polars as pl
from measuring import print_head, print_row

import polars_mcc

CI = 0.95
LESS = 0.02
NIGHTS = 30
KEYS = {
    "6 slices": [4000, 2500, 1500, 800, 400, 200],
    "41 slices": [600, 400, 300, 200, *[100] * 6, *[60] * 10, *[30] * 10, *[10] * 10, 3],
    "251 slices": [*[60] * 20, *[20] * 30, *[8] * 50, *[3] * 151],
}
"""The rows of each slice of a key."""
MIXES = {
    "2, balanced": [0.5, 0.5],
    "2, 90:10": [0.9, 0.1],
    "2, 97:3": [0.97, 0.03],
    "4, 90:10": [0.9, 0.05, 0.03, 0.02],
    "6, balanced": [1 / 6] * 6,
}
"""The gold classes, and their shares."""
RECALLS = (0.6, 0.95)


def probabilities(shares: list[float], recall: float) -> np.ndarray:
    """The table of a healthy slice: gold by row. Errors are of all other classes alike."""
    classes = len(shares)
    is_balanced = len({*shares}) == 1
    hits = np.array([recall if is_balanced else 0.99, *[recall] * (classes - 1)])
    table = np.repeat((1 - hits)[:, None] / (classes - 1), classes, axis=1)
    np.fill_diagonal(table, hits)
    return np.array(shares)[:, None] * table


def counted(draws: np.ndarray) -> pl.DataFrame:
    """Tables of slices as counts: `night`, `key`, `gold`, `pred` and `n`."""
    places = np.nonzero(draws)
    columns = dict(zip(["night", "key", "gold", "pred"], places, strict=True))
    return pl.DataFrame({**columns, "n": draws[places]})


def judged(counts: pl.DataFrame, *keys: str, **options: Any) -> pl.DataFrame:
    """The answer of a gate, open or not."""
    try:
        return counts.mcc(weight="n", positive=1).check(*keys, ci=CI, **options)
    except polars_mcc.CheckError as error:
        return error.judged


def failing(counts: pl.DataFrame, **options: Any) -> pl.DataFrame:
    """The slices that fail in each night, and how many fail without correction.

    One call for all nights is faster than a call for each. It is without correction. Holm's least
    p-value is multiplied by the number of slices of the night that are judged.
    """
    slices = judged(counts, "night", "key", correction=None, **options)
    slices = slices.with_columns(tests=pl.col("p_adjusted").count().over("night"))
    is_first = pl.col("p_adjusted") * pl.col("tests") < 1 - CI
    return slices.filter(verdict="fails").select("night", "key", corrected=is_first)


def drawn(table: np.ndarray, rows: list[int], nights: int, rng: np.random.Generator) -> np.ndarray:
    """Counts of each slice of each night."""
    draws = rng.multinomial(np.tile(rows, (nights, 1)), table.ravel())
    return draws.reshape(nights, len(rows), *table.shape)


def tried(
    mix: str, recall: float, key: str, nights: int, rng: np.random.Generator, metric: str = "mcc"
) -> dict[str, np.ndarray]:
    """Which nights have an alarm, and in which nights a bad slice is found."""
    table, rows = probabilities(MIXES[mix], recall), KEYS[key]
    bad = table.sum(axis=1, keepdims=True) * table.sum(axis=0)
    whole = counted((table * 1e9).round().astype(int)[None, None])
    [truth] = whole.mcc(weight="n", positive=1).score(metrics=metric)[metric]
    healthy = drawn(table, rows, nights, rng)
    both = np.concatenate([healthy, drawn(bad, [300], nights, rng)], axis=1)
    at, below = (failing(counted(healthy), metric=metric, min=truth - less) for less in (0, LESS))
    planted = failing(counted(both), metric=metric, min=truth - LESS).filter(key=len(rows))
    found = {
        "at": at.filter("corrected"),
        "below": below.filter("corrected"),
        "found": planted.filter("corrected"),
        "uncorrected": below,
    }
    return {name: np.isin(range(nights), one["night"]) for name, one in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--logs", type=int, default=60, help="logs per setting")
    parser.add_argument("--metric", default="mcc", help="the metric of the gate")
    asked = parser.parse_args()
    rng = np.random.default_rng(5)
    figures = ["at min", "min 0.02 lower", "nights", "found", "uncorrected"]
    print_head(["classes", "recall", "key"], figures)
    settings = [*itertools.product(MIXES, RECALLS, KEYS)]
    for mix, recall, key in settings:
        found = tried(mix, recall, key, asked.logs, rng, asked.metric)
        shares = {name: f"{nights.mean():.3f}" for name, nights in found.items()}
        first = f"{found['below'][:NIGHTS].sum()} of {NIGHTS}"
        cells = [shares["at"], shares["below"], first, shares["found"], shares["uncorrected"]]
        print_row(mix, recall, key, *cells)


if __name__ == "__main__":
    main()

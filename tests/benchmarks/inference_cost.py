"""The cost of intervals and tests, as a multiple of `by` without an interval, in one process.

    python tests/benchmarks/inference_cost.py [--wide] [--rounds 6]

The log is data/digits.parquet, in memory: 1,797 rows, where a user waits for the machinery, not for
the rows. With --wide, the log has a million rows, 2,000 slices and 20 classes. Calls take turns;
the least time of each counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import polars as pl

import polars_mcc  # noqa: F401 - registers the namespace

DIGITS = Path(__file__).parents[2] / "data" / "digits.parquet"
NINE = (
    *("mcc", "accuracy", "kappa", "informedness", "markedness", "balanced_accuracy"),
    *("f1_macro", "recall_macro", "precision_weighted"),
)


def small() -> Mapping[str, Callable[[], object]]:
    """Each question about the digits; the first is `by` without an interval."""
    frame = pl.read_parquet(DIGITS)
    log, two = frame.mcc(pred="logistic"), frame.mcc(pred=["logistic", "knn"])
    scored = frame.with_columns(gold=pl.col("gold") == 8).mcc(score="confidence")
    early, key = pl.col("day") < pl.date(2026, 3, 15), "ink_band"
    return {
        "by": lambda: log.by(key),
        "by, ci": lambda: log.by(key, ci=0.95),
        "by, nine metrics, ci": lambda: log.by(key, metrics=NINE, ci=0.95),
        "classes, ci": lambda: log.classes(key, ci=0.95),
        "check, ci": lambda: log.check(key, min=0.1, ci=0.95),
        "by, roc_auc, ci": lambda: scored.by(key, metrics="roc_auc", ci=0.95),
        "drift": lambda: log.drift(key, before=early, after=~early),
        "compare": lambda: two.compare(key),
        **{
            f"contrast, to {to}": lambda to=to: log.contrast(key, to=to)  # type: ignore[misc]
            for to in ("rest", "total", "expected", "best", "each")
        },
        "worst": lambda: log.worst(key, "fold", "confidence_band"),
    }


def wide(rows: int = 1_000_000) -> Mapping[str, Callable[[], object]]:
    """Many slices of many classes."""
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 20, rows)
    pred = np.where(rng.random(rows) < 0.7, gold, rng.integers(0, 20, rows))
    log = pl.DataFrame({"slice": rng.integers(0, 2_000, rows), "gold": gold, "pred": pred}).mcc()
    return {
        "by": lambda: log.by("slice"),
        "by, ci": lambda: log.by("slice", ci=0.95),
        "by, nine metrics, ci": lambda: log.by("slice", metrics=NINE, ci=0.95),
        "classes, ci": lambda: log.classes("slice", ci=0.95),
        "contrast, to rest, ten slices": lambda: log.contrast(pl.col("slice") % 10),
    }


def least(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The least seconds of each call."""
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            found[name] = min(found[name], time.perf_counter() - start)
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--wide", action="store_true")
    arguments.add_argument("--rounds", type=int, default=6)
    options = arguments.parse_args()
    found = least(wide() if options.wide else small(), options.rounds)
    print(f"{'':32}{'ms':>8}{'times by':>10}")
    for name, seconds in found.items():
        print(f"{name:32}{1e3 * seconds:8.1f}{seconds / found['by']:10.1f}")


if __name__ == "__main__":
    main()

"""What a person waits for: each question about a small log, as a multiple of `by`, in one process.

    python tests/benchmarks/waiting.py [--wide] [--days] [--rounds 6]

The log is data/digits.parquet, in memory: 1,797 rows, where a user waits for the machinery, not for
the rows. With --wide, the log has a million rows, 2,000 slices and 20 classes. With --days, it is
counts of 365 days, 1,000 slices and 10 classes, 40 rows a day; `by` is of the slice and the day.
Calls take turns; the least time of each counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import polars as pl
from measuring import in_turns, print_head, print_row

import polars_mcc  # noqa: F401 - registers the namespace

DIGITS = Path(__file__).parents[2] / "data" / "digits.parquet"
NINE = (
    *("mcc", "accuracy", "kappa", "informedness", "markedness", "balanced_accuracy"),
    *("f1_macro", "recall_macro", "precision_weighted"),
)
KEYS = ("ink_band", "fold", "confidence_band")


def small() -> Mapping[str, Callable[[], object]]:
    """Each question about the digits; the first is `by` without an interval."""
    frame = pl.read_parquet(DIGITS)
    log, two = frame.mcc(pred="logistic"), frame.mcc(pred=["logistic", "knn"])
    scored = frame.with_columns(gold=pl.col("gold") == 8).mcc(score="confidence")
    early, key = pl.col("day") < pl.date(2026, 3, 15), KEYS[0]
    return {
        "`by`": lambda: log.by(key),
        "`by`, with intervals": lambda: log.by(key, ci=0.95),
        "`by`, nine metrics with intervals": lambda: log.by(key, metrics=NINE, ci=0.95),
        "`by`, three keys": lambda: log.by(*KEYS),
        "`classes`, with intervals": lambda: log.classes(key, ci=0.95),
        "`counts`": lambda: log.counts(key),
        "`confusion`": lambda: log.confusion(key),
        "`check`, with intervals": lambda: log.check(key, min=0.1, ci=0.95),
        "`by`, ROC AUC with intervals": lambda: scored.by(key, metrics="roc_auc", ci=0.95),
        "`curve`": lambda: scored.curve(key),
        "`calibration`": lambda: scored.calibration(key),
        "`drift`": lambda: log.drift(key, before=early, after=~early),
        "`compare`": lambda: two.compare(key),
        **{
            f'`contrast`, `to="{to}"`': lambda to=to: log.contrast(key, to=to)  # type: ignore[misc]
            for to in ("rest", "total", "expected", "best", "each")
        },
        "`worst`, three keys": lambda: log.worst(*KEYS),
        "`report`, Markdown": lambda: log.report(*KEYS, format="md"),
        "`report`, HTML": lambda: log.report(*KEYS),
    }


def wide(rows: int = 1_000_000) -> Mapping[str, Callable[[], object]]:
    """Many slices of many classes."""
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 20, rows)
    pred = np.where(rng.random(rows) < 0.7, gold, rng.integers(0, 20, rows))
    other = np.where(rng.random(rows) < 0.7, gold, rng.integers(0, 20, rows))
    day = pl.Series(np.arange(rows) % 60).cast(pl.Date)
    columns = {"slice": rng.integers(0, 2_000, rows), "gold": gold, "pred": pred, "other": other}
    frame = pl.DataFrame({**columns, "day": day})
    log, two = frame.mcc(pred="pred", time="day"), frame.mcc(pred=["pred", "other"])
    weekday = pl.col("day").dt.weekday().alias("weekday")
    return {
        "`by`": lambda: log.by("slice"),
        "`by`, with intervals": lambda: log.by("slice", ci=0.95),
        "`by`, nine metrics with intervals": lambda: log.by("slice", metrics=NINE, ci=0.95),
        "`classes`, with intervals": lambda: log.classes("slice", ci=0.95),
        "`compare`": lambda: two.compare("slice"),
        "`contrast`": lambda: log.contrast("slice"),
        '`contrast`, `to="rest"`, ten slices': lambda: log.contrast(pl.col("slice") % 10),
        "`gaps`": lambda: log.gaps("slice"),
        "`gaps` of weekdays, within each slice": lambda: log.gaps(
            weekday, within="slice", metrics="accuracy"
        ),
        "`changes`": lambda: log.changes("slice"),
    }


def days(slices: int = 1_000) -> Mapping[str, Callable[[], object]]:
    """Counts of a year, of many slices."""
    rng, per_day = np.random.default_rng(0), 40
    rows = slices * 365 * per_day
    cell = np.arange(rows, dtype=np.int32) // per_day
    gold = rng.integers(0, 10, rows, np.int8)
    pred = np.where(rng.random(rows) < 0.8, gold, rng.integers(0, 10, rows, np.int8))
    day = pl.Series(cell % 365).cast(pl.Date)
    frame = pl.DataFrame({"slice": cell // 365, "day": day, "gold": gold, "pred": pred})
    log = frame.mcc.counts("slice", "day").mcc(weight="n", time="day")
    return {
        "`by`": lambda: log.by("slice", "day"),
        "`by`, the slice alone": lambda: log.by("slice"),
        "`by`, the slice alone, with intervals": lambda: log.by("slice", ci=0.95),
        "`changes`": lambda: log.changes("slice"),
        "`changes`, `max_changes=1`": lambda: log.changes("slice", max_changes=1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--days", action="store_true")
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    calls = wide() if options.wide else days() if options.days else small()
    least = {name: min(seconds) for name, seconds in in_turns(calls, options.rounds).items()}
    print_head(["question"], ["times `by`", "ms"])
    for name, seconds in least.items():
        print_row(name, f"{seconds / least['`by`']:.1f}", f"{1e3 * seconds:.1f}")


if __name__ == "__main__":
    main()

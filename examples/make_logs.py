"""Generate a large prediction log as Parquet, with one folder per day and some bad slices.

    python examples/make_logs.py --rows 50_000_000 --out logs --labels string

The log has two models: `pred` is right in about 90 % of the rows, and `challenger` in about
92 %. In the slices of PLANTED, `pred` is right in about 55 %. The folder of a day is called
`day=2026-01-01`. A file has at most a million rows, so memory does not grow with the log. The
same arguments give the same rows.
"""

from __future__ import annotations

import argparse
import datetime as dt
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

COUNTRIES = ["AR", "AU", "BR", "CA", "CN", "DE", "EG", "ES", "FR", "GB"]
COUNTRIES += ["ID", "IN", "IT", "JP", "KR", "MX", "NG", "TR", "US", "ZA"]
DEVICES = ["desktop", "phone", "tablet", "watch"]
CUSTOMERS = 5_000
ANIMALS = ["cat", "dog", "bird", "fish", "horse", "cow", "sheep", "goat", "pig", "hen"]
LABELS: dict[str, pl.DataType] = {
    "string": pl.String(),
    "enum": pl.Enum(ANIMALS),
    "integer": pl.Int16(),
    "boolean": pl.Boolean(),
}
FIRST_DAY = dt.date(2026, 1, 1)
ROWS_PER_FILE = 1_000_000

PLANTED = {
    "tablets in Brazil": (pl.col("country") == "BR") & (pl.col("device") == "tablet"),
    "Japan on the last day": (pl.col("country") == "JP") & pl.col("is_last_day"),
    "customer 17": pl.col("customer") == 17,
}


def file_of(
    n: int, day: dt.date, dtype: pl.DataType, rng: np.random.Generator, *, is_last_day: bool
) -> pl.DataFrame:
    """Make `n` rows of one day."""
    classes = 2 if dtype == pl.Boolean else len(ANIMALS)
    share = 1 / np.arange(1, classes + 1)
    gold = rng.choice(classes, n, p=share / share.sum())
    seconds = np.sort(rng.integers(0, 86_400, n))
    slices = pl.DataFrame(
        {
            "ts": np.datetime64(day, "us") + seconds * np.timedelta64(1_000_000, "us"),
            "country": named(rng.integers(0, len(COUNTRIES), n), COUNTRIES),
            "device": named(rng.choice(len(DEVICES), n, p=[0.4, 0.45, 0.1, 0.05]), DEVICES),
            "customer": rng.integers(0, CUSTOMERS, n, dtype=np.int32),
        }
    )
    is_planted = slices.with_columns(is_last_day=is_last_day).select(
        pl.any_horizontal(PLANTED.values())
    )
    accuracy = np.where(is_planted.to_series().to_numpy(), 0.55, 0.90)

    def answer(accuracy: np.ndarray | float) -> pl.Series:
        wrong = (gold + rng.integers(1, classes, n)) % classes
        return labelled(np.where(rng.random(n) < accuracy, gold, wrong), dtype)

    return slices.with_columns(
        gold=labelled(gold, dtype), pred=answer(accuracy), challenger=answer(0.92)
    )


def named(codes: np.ndarray, names: list[str]) -> pl.Series:
    return pl.Series(names).gather(codes)


def labelled(codes: np.ndarray, dtype: pl.DataType) -> pl.Series:
    if dtype in (pl.String, pl.Enum):
        return named(codes, ANIMALS).cast(dtype)
    return pl.Series(codes).cast(dtype)


def files(rows: int, days: int) -> Iterator[tuple[dt.date, int, int]]:
    """Yield the day, number and size of each file. All days have about the same size."""
    for day in range(days):
        of_day = rows * (day + 1) // days - rows * day // days
        parts = math.ceil(of_day / ROWS_PER_FILE)
        for part in range(parts):
            size = of_day * (part + 1) // parts - of_day * part // parts
            yield FIRST_DAY + dt.timedelta(days=day), part, size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, required=True, help="such as 50_000_000")
    parser.add_argument("--out", type=Path, required=True, help="a new or empty folder")
    parser.add_argument("--labels", choices=LABELS, default="string", help="dtype of the labels")
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.rows < 1 or args.days < 1:
        parser.error("--rows and --days must be at least 1")
    out: Path = args.out
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        parser.error(f"--out {out} is not an empty folder; name a new one")

    rng = np.random.default_rng(args.seed)
    last_day = FIRST_DAY + dt.timedelta(days=args.days - 1)
    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns) as progress:
        task = progress.add_task("rows", total=args.rows)
        for day, part, size in files(args.rows, args.days):
            folder = out / f"day={day}"
            folder.mkdir(parents=True, exist_ok=True)
            log = file_of(size, day, LABELS[args.labels], rng, is_last_day=day == last_day)
            log.write_parquet(folder / f"part-{part:03}.parquet")
            progress.advance(task, size)
    print(f"{args.rows} rows in {out}; bad slices: {', '.join(PLANTED)}")


if __name__ == "__main__":
    main()

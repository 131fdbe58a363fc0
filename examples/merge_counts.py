"""Keep the counts of each day, and score any range of days without reading the logs again.

python examples/merge_counts.py
"""

import datetime as dt
import tempfile
from pathlib import Path

import polars as pl

import polars_mcc  # noqa: F401 - registers the namespace

DATA = Path(__file__).parent.parent / "data"

log = pl.scan_parquet(DATA / "digits.parquet")
today = dt.date(2026, 3, 31)

with tempfile.TemporaryDirectory() as folder:
    # Once a night: store one row per (day, ink_band, gold, pred), with its count n.
    stored = Path(folder) / "counts.parquet"
    log.filter(pl.col("day") < today).mcc.counts("day", "ink_band").sink_parquet(stored)

    # At any time: concatenate the stored counts and the counts of today. weight="n" tells that
    # a row of the counts stands for n rows of the log.
    new = log.filter(pl.col("day") == today).mcc.counts("day", "ink_band")
    counts = pl.concat([pl.scan_parquet(stored), new])
    print(counts.mcc(weight="n").by("ink_band").collect())

    # The rows give the same scores.
    print(log.mcc.by("ink_band").collect())

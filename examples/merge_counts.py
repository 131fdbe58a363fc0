"""Keep the counts of each day, and score any span of days without their logs.

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
    # Once a night: a row per (day, ink_band, gold, pred) in place of the day's rows.
    stored = Path(folder) / "counts.parquet"
    log.filter(pl.col("day") < today).mcc.counts("day", "ink_band").sink_parquet(stored)

    # At any time: the stored counts and today's are one log, in which a row weighs n.
    new = log.filter(pl.col("day") == today).mcc.counts("day", "ink_band")
    counts = pl.concat([pl.scan_parquet(stored), new])
    print(counts.mcc(weight="n").by("ink_band").collect())

    # The same scores, from the rows.
    print(log.mcc.by("ink_band").collect())

"""Score a folder of Parquet files, a folder per day: only what is asked for is read.

python examples/hive_partitions.py
"""

import datetime as dt
import tempfile
from pathlib import Path

import polars as pl

import polars_mcc  # noqa: F401 - registers the namespace

DATA = Path(__file__).parent.parent / "data"

with tempfile.TemporaryDirectory() as folder:
    pl.read_parquet(DATA / "digits.parquet").write_parquet(folder, partition_by="day")

    log = pl.scan_parquet(folder)
    recent = log.filter(pl.col("day") > dt.date(2026, 3, 22), pl.col("confidence") >= 0.5)
    weekly = recent.mcc.by(pl.col("day").dt.truncate("1w").alias("week"))

    # The plan reads the files of those days, and in them the columns that are needed.
    print(weekly.explain())
    print(weekly.collect())

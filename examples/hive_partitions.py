"""Score a folder of Parquet files, with one folder per day. Polars reads only the days it needs.

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

    # The part of the plan that reads: the files of these days, four columns, and both filters.
    reads = ("Parquet SCAN", "PROJECT", "SELECTION")
    plan = [line.strip() for line in weekly.explain().splitlines()]
    print(*(line for line in plan if line.startswith(reads)), sep="\n")
    print(weekly.collect())

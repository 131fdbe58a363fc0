"""Score every slice of a log.

python examples/quickstart.py
"""

from pathlib import Path

import polars as pl

import polars_mcc  # noqa: F401 - registers the namespace

DATA = Path(__file__).parent.parent / "data"

log = pl.scan_parquet(DATA / "digits.parquet")

print(log.mcc.score().collect())
print(log.mcc.by("ink_band").collect())

# Keys are columns or expressions. Two keys make a slice for each pair of values.
is_early = (pl.col("day") < pl.date(2026, 3, 17)).alias("is_early")
print(log.mcc.by("confidence_band", is_early).collect())

# Which digits does the model miss, and what does it predict instead?
print(log.mcc.classes().collect())
print(log.mcc.confusion(labels=list(range(10))).collect())

"""Use the score as an expression: beside other aggregations, and in windows of time.

python examples/expression_over_time.py
"""

from pathlib import Path

import polars as pl

import polars_mcc  # noqa: F401 - registers the namespace

DATA = Path(__file__).parent.parent / "data"

log = pl.scan_parquet(DATA / "digits.parquet").sort("day")
mcc = pl.col("pred").mcc.score("gold", labels=list(range(10)))

weekly = log.group_by_dynamic("day", every="1w").agg(
    rows=pl.len(), mean_confidence=pl.col("confidence").mean(), mcc=mcc
)
print(weekly.collect())

trailing = log.rolling("day", period="7d").agg(mcc=mcc).unique("day", maintain_order=True)
print(trailing.collect())

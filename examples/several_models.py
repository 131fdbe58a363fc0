"""Score several models on the same rows, in one scan.

python examples/several_models.py
"""

from pathlib import Path

import polars as pl

import polars_mcc  # noqa: F401 - registers the namespace

DATA = Path(__file__).parent.parent / "data"

log = pl.scan_parquet(DATA / "breast_cancer.parquet")
scores = log.mcc(pred=["logistic", "knn", "bayes"]).by("radius_band")

print(scores.collect())
print(scores.collect().pivot("model", index="radius_band", values="mcc"))

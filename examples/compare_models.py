"""Compare models on the same rows: is a new model better than the old one, and in which slices?

python examples/compare_models.py
"""

from pathlib import Path

import polars as pl

import polars_mcc  # noqa: F401 - registers the namespace

DATA = Path(__file__).parent.parent / "data"

log = pl.scan_parquet(DATA / "digits.parquet")

# The baseline is the first model. The verdict says whether another model is better.
# It follows p_adjusted, which is corrected for the number of comparisons: six here.
compared = log.mcc(pred=["logistic", "knn", "bayes"]).compare("ink_band").collect()
print(compared.select("ink_band", "model", "reference", "score", "diff", "diff_low", "diff_high"))
print(compared.filter(verdict="better").select("ink_band", "model", "p_adjusted"))

# Two logs of the same rows: join them on the column that identifies a row.
old = log.select("row", "gold", pred="logistic")
new = log.select("row", pred="knn")
joined = old.join(new, on="row", suffix="_new")
print(joined.mcc(pred="pred_new").compare(baseline="pred").collect())

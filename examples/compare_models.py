"""Is a new model better than the old one, and in which slices? On the same rows, in one scan.

python examples/compare_models.py
"""

from pathlib import Path

import polars as pl

import polars_mcc  # noqa: F401 - registers the namespace

DATA = Path(__file__).parent.parent / "data"

log = pl.scan_parquet(DATA / "digits.parquet")

# Above 0: better than the baseline. Corrected for the six comparisons that are made.
compared = log.mcc(pred=["logistic", "knn", "bayes"]).compare("ink_band").collect()
print(compared.select("ink_band", "model", "mcc_a", "mcc_b", "diff", "diff_low", "diff_high"))
print(compared.filter(pl.col("p_adjusted") < 0.01).select("ink_band", "model", "p_adjusted"))

# Two logs of the same rows: join them on what tells the rows apart.
old = log.select("row", "gold", pred="logistic")
new = log.select("row", pred="knn")
joined = old.join(new, on="row", suffix="_new")
print(joined.mcc(pred="pred_new").compare(baseline="pred").collect())

"""Choose the threshold of a score: one for each country, or one for all countries.

python examples/pick_thresholds.py
"""

from pathlib import Path

import numpy as np
import polars as pl

import polars_mcc  # noqa: F401 - registers the namespace

# The score is higher in Japan than in other countries, with and without fraud.
rng = np.random.default_rng(0)
rows = 20_000
country = rng.choice(["DE", "FR", "JP"], rows, p=[0.5, 0.3, 0.2])
fraud = rng.random(rows) < 0.1
shift = np.where(country == "JP", 1.5, 0.0)
log = pl.DataFrame(
    {"country": country, "fraud": fraud, "score": rng.normal(2.5 * fraud + shift, 1).round(2)}
)

# The threshold with the best MCC in each country. loss: what a country loses by the shared one.
print(log.mcc(gold="fraud", score="score").best_threshold("country"))

# The curve at 100 quantiles of the scores. The MCC-F1 curve has f1 as x and (mcc + 1) / 2 as y.
# Its best point is the point nearest to (1, 1).
curve = log.mcc(gold="fraud", score="score").curve(thresholds=100)
print(curve.select("threshold", "tp", "fp", "mcc", "f1"))
to_best = ((1 - pl.col("f1")).pow(2) + ((1 - pl.col("mcc")) / 2).pow(2)).sqrt()
print(curve.select("threshold", "mcc", to_best.alias("distance")).sort("distance").head(1))

# Choose a threshold on some rows, and score it on other rows.
split = pl.int_range(pl.len()) % 2 == 0
[threshold] = log.filter(split).mcc(gold="fraud", score="score").best_threshold()["threshold"]
print(log.filter(~split).mcc(gold="fraud", pred=pl.col("score") >= threshold).score(ci=0.95))

# The shipped data: a tumour is predicted malignant if its radius is at least the threshold.
tumours = pl.scan_parquet(Path(__file__).parent.parent / "data" / "breast_cancer.parquet")
print(tumours.mcc(score="radius").best_threshold("fold").collect())

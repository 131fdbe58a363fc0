"""Is the model getting worse? Trailing windows from daily counts, and two periods compared.

python examples/watch_a_model_drift.py
"""

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl

import polars_mcc
from polars_mcc import trailing

# Eight weeks; from the sixth on, the model is worse in France.
rng = np.random.default_rng(0)
rows = 40_000
day = rng.integers(0, 56, rows)
country = rng.choice(["DE", "FR"], rows)
misses = np.where((country == "FR") & (day >= 35), 0.2, 0.1)
gold = rng.choice(["cat", "dog", "cow"], rows)
guess = rng.choice(["cat", "dog", "cow"], rows)
log = pl.DataFrame(
    {
        "day": [date(2026, 3, 2) + timedelta(int(d)) for d in day],
        "country": country,
        "gold": gold,
        "pred": np.where(rng.random(rows) < misses, guess, gold),
    }
)

# The score of the seven days that end with each day: the rows are read once, and the counts
# of each day are used seven times.
weekly = log.mcc.by("country", trailing("day", "7d", every="1d"), ci=0.95)
print(weekly.filter(pl.col("day").dt.weekday() == 7).drop("mcc_se", "n_null"))

# What has changed since the release, in each country, and is it more than chance?
release = date(2026, 4, 6)
change = log.mcc.drift("country", before=pl.col("day") < release, after=pl.col("day") >= release)
print(change.select("country", "mcc_before", "mcc_after", "diff_low", "diff_high", "p_adjusted"))

# A gate, in a pipeline or a test: the counts of before are the baseline.
baseline = log.filter(pl.col("day") < release).mcc.counts("country")
try:
    log.filter(pl.col("day") >= release).mcc.check("country", no_worse_than=baseline, ci=0.95)
except polars_mcc.CheckError as error:
    print(error)

# The shipped data do not drift.
digits = pl.scan_parquet(Path(__file__).parent.parent / "data" / "digits.parquet")
middle = date(2026, 3, 15)
same = digits.mcc.drift("ink_band", before=pl.col("day") < middle, after=pl.col("day") >= middle)
print(same.select("ink_band", "mcc_before", "mcc_after", "p_adjusted").collect())

"""Watch a model drift: score windows of time, compare two periods, and stop a bad release.

python examples/watch_a_model_drift.py
"""

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl

import polars_mcc
from polars_mcc import trailing

# Eight weeks of predictions. From the sixth week on, the model is worse in France.
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

# A window is the seven days that end with a day. Rows are counted once per day, and the counts of
# a day are used in seven windows. Sundays are printed.
weekly = log.mcc.by("country", trailing("day", "7d", every="1d"), ci=0.95)
print(weekly.filter(pl.col("day").dt.weekday() == 7).drop("mcc_se", "n_null"))

# Did the score of a country change with the release, by more than chance?
release = date(2026, 4, 6)
change = log.mcc.drift("country", before=pl.col("day") < release, after=pl.col("day") >= release)
print(change.select("country", "reference", "score", "diff_low", "diff_high", "p_adjusted"))

# A gate for a pipeline or a test. The baseline is the counts of the rows before the release.
baseline = log.filter(pl.col("day") < release).mcc.counts("country")
try:
    log.filter(pl.col("day") >= release).mcc.check("country", no_worse_than=baseline, ci=0.95)
except polars_mcc.CheckError as error:
    print(error)

# The shipped data do not drift.
digits = pl.scan_parquet(Path(__file__).parent.parent / "data" / "digits.parquet")
middle = date(2026, 3, 15)
same = digits.mcc.drift("ink_band", before=pl.col("day") < middle, after=pl.col("day") >= middle)
print(same.select("ink_band", "reference", "score", "p_adjusted").collect())

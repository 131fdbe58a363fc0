"""Which slices fail? All keys and their pairs, each slice listed once, by its reason.

python examples/find_bad_slices.py
"""

from pathlib import Path

import numpy as np
import polars as pl

from polars_mcc import each

# A log in which the model is bad for tablets in Brazil and, less so, for all old versions.
rng = np.random.default_rng(0)
rows = 30_000
country = rng.choice(["BR", "DE", "FR", "IN", "US"], rows)
device = rng.choice(["phone", "tablet", "desktop"], rows, p=[0.6, 0.15, 0.25])
version = rng.choice(["1.9", "2.0", "2.1", "2.2"], rows)
browser = rng.choice(["chrome", "firefox", "safari"], rows)
misses = np.where((country == "BR") & (device == "tablet"), 0.45, 0.08)
misses = np.where(version == "1.9", np.maximum(misses, 0.14), misses)
gold = rng.choice(["spam", "ham"], rows, p=[0.2, 0.8])
other = np.where(gold == "spam", "ham", "spam")
log = pl.DataFrame(
    {
        "country": country,
        "device": device,
        "version": version,
        "browser": browser,
        "gold": gold,
        "pred": np.where(rng.random(rows) < misses, other, gold),
    }
)

# Each key alone, in the form that charts take.
keys = ["country", "device", "version", "browser"]
print(log.mcc.by(each(*keys, total=True), long=True))

# All slices of up to two keys, each with the rest of the log. Those that are bad because another
# is, finer or coarser, are not listed: what is left is what was planted.
worst = log.mcc.worst(*keys, long=True)
print(worst.select("slice", "value", "n", "mcc", "mcc_rest", "diff_high", "loss"))

# The shipped data, with numbers and days as they are: of the digits written with little ink in the
# last week, fours are taken for eights.
digits = pl.scan_parquet(Path(__file__).parent.parent / "data" / "digits.parquet")
found = digits.mcc.worst("ink", "day", "fold", long=True)
print(found.select("slice", "value", "n", "mcc", "mcc_rest", "^confused.*$").collect())

# Nothing found is an answer too: what was looked at, and how near the nearest is.
looked = digits.mcc.worst("ink_band", "fold", long=True, verdicts=True)
print(looked.select("slice", "value", "n", "mcc", "p_adjusted", "verdict").head(3).collect())

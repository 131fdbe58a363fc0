"""Find the slices that fail, among all values of the keys and all pairs of values.

python examples/find_bad_slices.py
"""

from pathlib import Path

import numpy as np
import polars as pl

from polars_mcc import each

# A log with two planted failures: tablets in Brazil, and, less severe, version 1.9.
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

# Score the values of each key. With long=True, the column slice names the slice in words.
keys = ["country", "device", "version", "browser"]
print(log.mcc.by(each(*keys, total=True), long=True))

# Compare each slice of one or two keys with the rest of the log. Tablets in Brazil lower the score
# of all tablets and of all of Brazil: worst lists only the slice that is the reason.
worst = log.mcc.worst(*keys, long=True)
with pl.Config(fmt_str_lengths=60):  # The name of a slice may be long.
    print(worst.select("slice", "n", "score", "reference", "diff_high", "loss"))

# The shipped data: worst cuts numbers into bins, and days by week. Naive Bayes fails for digits
# that have little ink, up to the middle of March.
digits = pl.scan_parquet(Path(__file__).parent.parent / "data" / "digits.parquet")
found = digits.mcc(pred="bayes").worst("ink", "day", "fold", long=True)
with pl.Config(fmt_str_lengths=60):
    print(found.select("slice", "n", "score", "reference", "confusion").collect())

# No slice of these keys fails. verdicts=True shows every slice that was tested, and its p-value.
looked = digits.mcc.worst("ink_band", "fold", long=True, verdicts=True)
print(looked.select("slice", "n", "score", "p_adjusted", "verdict").head(3).collect())

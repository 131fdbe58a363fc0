"""Account for rows of the same user: they are not independent, so the interval is wider.

python examples/users_are_clusters.py
"""

import numpy as np
import polars as pl

import polars_mcc  # noqa: F401 - registers the namespace

# 300 users with about 20 predictions each. The model is good for some users and bad for others.
rng = np.random.default_rng(0)
rows = rng.poisson(20, 300)
user = np.repeat(np.arange(300), rows)
is_hit = rng.random(len(user)) < np.repeat(rng.beta(2, 1, 300), rows)
gold = rng.choice(["cat", "dog", "cow"], len(user))
guess = rng.choice(["cat", "dog", "cow"], len(user))
log = pl.DataFrame({"user": user, "gold": gold, "pred": np.where(is_hit, gold, guess)})

as_rows = log.mcc.score(ci=0.95)
as_users = log.mcc(cluster="user").score(ci=0.95)
print(as_rows)
print(as_users)

times = as_users["mcc_se"].item() / as_rows["mcc_se"].item()
effective = as_rows["n"].item() / times**2
print(f"With users as clusters, the standard error is {times:.2f} times as large.")
print(f"{log.height} rows of 300 users tell as much as {effective:.0f} independent rows.")

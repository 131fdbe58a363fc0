"""Since when slices are worse: what counts alone do not show."""

from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl

import polars_mcc  # noqa: F401 - registers the namespace


def test_a_label_that_varies_only_before_a_split_says_nothing_of_it():
    """Positives come in ten of twenty days. Errors of rounding are no change after the tenth."""
    rng = np.random.default_rng(5)
    slices, days = 300, 20
    gold = np.stack([np.full((slices, days), 60), rng.poisson(3, (slices, days))], -1)
    gold[:, 10:, 1] = 0
    missed = rng.binomial(gold[..., 1], 0.1)
    cells = {(0, 0): gold[..., 0], (1, 0): missed, (1, 1): gold[..., 1] - missed}
    part, day = np.indices((slices, days)).reshape(2, -1)
    frame = pl.concat(
        pl.DataFrame({"part": part, "day": day, "gold": i, "pred": j, "n": n.ravel()})
        for (i, j), n in cells.items()
    )
    log = frame.with_columns(day=date(2026, 1, 1) + pl.duration(days="day"))
    found = log.mcc(weight="n", time="day").changes("part", alternative="two-sided")
    assert found.height == slices
    assert found["since"].max() <= date(2026, 1, 10)
    assert found["p_value"].min() > 1e-5

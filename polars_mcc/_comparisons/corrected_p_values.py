"""P-values that are corrected for many tests: Holm, Benjamini and Hochberg, and others."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from polars_mcc._base.allowed_values import Correction
from polars_mcc._intervals.count_arrays import floats, of_arrays
from polars_mcc._metrics.slice_sums import Floats


def adjusted(p: Floats, correction: Correction, tests: int | None = None) -> Floats:
    """Correct p-values for the number of `tests`: as many as p-values, or more. NaN stays.

    "bh" (Benjamini and Hochberg 1995) and "by" (Benjamini and Yekutieli 2001) control the false
    discovery rate; "holm" (1979) and "bonferroni", the probability of any false discovery. If
    `tests` is larger than the number of p-values, the missing p-values count as the largest.
    """
    corrected = np.full(len(p), math.nan)
    [known] = np.nonzero(~np.isnan(p))
    m = len(known) if tests is None else tests
    ranked = known[np.argsort(p[known], kind="stable")]
    place = np.arange(1, len(known) + 1)
    if correction == "bonferroni":
        times = p[ranked] * m
    elif correction == "holm":
        times = np.maximum.accumulate(p[ranked] * (m + 1 - place))
    else:
        of_all = m if correction == "bh" else m * (1 / np.arange(1, m + 1)).sum()
        times = np.minimum.accumulate((p[ranked] * of_all / place)[::-1])[::-1]
    corrected[ranked] = np.minimum(times, 1.0)
    return corrected


def with_adjusted(
    slices: pl.DataFrame, correction: Correction, tests: int | None = None
) -> pl.DataFrame:
    """Add `p_adjusted`, the column `p_value` after correction."""
    p_adjusted = adjusted(floats(slices["p_value"]), correction, tests)
    return slices.with_columns(of_arrays(p_adjusted=p_adjusted))

"""The largest p-value of a listed slice, so that few listed slices are false."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polars_mcc._base.allowed_values import Correction
from polars_mcc._intervals.interval_methods import normal
from polars_mcc._metrics.slice_sums import Floats, Ints
from polars_mcc._worst.failures_in_words import LONGEST_LIST

LENIENT = 2.0
"""How many times too large the first p-values may be: they take the variance of the rest from the
whole log."""


@dataclass(frozen=True)
class Cutoff:
    """The largest p-value of a listed slice, for a correction, a level and a number of tests."""

    correction: Correction
    level: float
    tests: int
    longest: int = LONGEST_LIST
    """The most slices of the list."""
    surer: float = 1.0
    """How many times evidence by cluster may be the evidence by row."""

    def passes(self, evidence: float, n_listed: int) -> bool:
        """Whether so much evidence is enough for a list with this number of slices."""
        p = normal(np.array([max(evidence, 0.0)]))[0]
        return bool(p <= self.largest_p(n_listed))

    def allows_any(self, p: Floats) -> bool:
        """Whether the p-values of all slices allow a list. Holm's procedure does not step up."""
        if self.correction in {"bh", "by"}:
            return bool((np.sort(p) <= self.largest_p(np.arange(1, len(p) + 1))).any())
        return bool((p <= self.largest_p(1)).any())

    def largest_p(self, n_listed: int | Ints) -> float | Floats:
        """The largest p-value of a list with this number of slices."""
        tests = max(self.tests, 1)
        if self.correction == "bonferroni":
            return self.level / tests
        if self.correction == "holm":
            return self.level / np.maximum(tests - n_listed + 1, 1)
        harmonic = (1 / np.arange(1, tests + 1)).sum() if self.correction == "by" else 1.0
        return self.level * n_listed / (tests * harmonic)

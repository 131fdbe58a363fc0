"""The largest p-value of a listed slice, for each correction."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from polars_mcc._worst.slice_scores import Cutoff


@pytest.mark.parametrize("method", ["bh", "by"])
def test_the_cutoff_is_that_of_scipy(method):
    """The list is as long as the number of adjusted p-values that are at most the level."""
    p = np.sort(np.random.default_rng(0).beta(0.3, 2, 40))
    cutoff = Cutoff(method, 0.1, len(p))
    largest = max((k for k in range(1, 41) if p[k - 1] <= cutoff.largest_p(k)), default=0)
    assert largest == (false_discovery_control(p, method=method) <= 0.1).sum() > 3


def test_the_cutoff_of_a_single_error():
    assert Cutoff("bonferroni", 0.05, 10).largest_p(7) == pytest.approx(0.005)
    assert [Cutoff("holm", 0.05, 10).largest_p(k) for k in (1, 10)] == pytest.approx([0.005, 0.05])
    assert Cutoff("bh", 0.05, 0).largest_p(1) > 0

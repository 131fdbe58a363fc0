"""The test of two scores: exact for proportions, close to exact in the tail."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom, chi2_contingency, entropy

from polars_mcc._comparisons.evidence_and_p_values import Scale
from polars_mcc._intervals.interval_methods import normal
from polars_mcc._metrics import registry


def accuracy_log(sides: dict[str, tuple[int, int]]) -> pl.DataFrame:
    """Counts of (right, wrong) rows for each side."""
    rows = []
    for side, (right, wrong) in sides.items():
        rows += [(side, 0, 0, right - right // 2), (side, 1, 1, right // 2), (side, 0, 1, wrong)]
    return pl.DataFrame(rows, schema=["side", "gold", "pred", "n"], orient="row")


def p_of(here: tuple[int, int], there: tuple[int, int], ci: float = 0.001) -> float:
    log = accuracy_log({"here": here, "there": there}).mcc(weight="n")
    found = log.worst(
        "side", metric="accuracy", min_n=1, correction="bonferroni", ci=ci, verdicts=True
    )
    return found.filter(pl.col("side") == "here")["p_value"].item()


@pytest.mark.parametrize(
    ("here", "there"), [((60, 40), (900, 100)), ((5, 9), (40, 12)), ((0, 12), (5000, 500))]
)
def test_of_two_proportions_it_is_the_likelihood_ratio(here, there):
    """Reference: SciPy's test of a 2 × 2 table, with Yates' correction."""
    expected = chi2_contingency([here, there], correction=True, lambda_="log-likelihood")
    assert p_of(here, there) == pytest.approx(expected.pvalue, rel=1e-6)


def test_of_a_slice_that_is_far_from_a_list_it_is_too():
    """Such a slice is not counted again. Half of the rows are the rest."""
    expected = chi2_contingency([(55, 45), (59, 41)], correction=True, lambda_="log-likelihood")
    assert p_of((55, 45), (59, 41), ci=0.99) == pytest.approx(expected.pvalue, rel=1e-6)


def test_far_out_in_the_tail_it_is_near_the_exact_probability():
    """92 rows; 10 % are wrong elsewhere. A normal test would be wrong by a factor of 20 to 30."""
    n, rate = 92, 0.1
    scale = Scale.of(registry.find_metric("accuracy"))
    for wrong in range(16, 32):
        known = (np.array([one]) for one in (1 - wrong / n, float(n), 1 - rate, 1e12))
        [p] = normal(scale.evidence(*known))
        exact = binom.sf(wrong - 1, n, rate)
        assert 0.9 < p / 2 / exact < 1.5
        plain = (wrong / n - rate) / math.sqrt(rate * (1 - rate) / n)
        if wrong >= 25:
            assert math.erfc(plain / math.sqrt(2)) / 2 < exact / 10


def test_the_scale_of_metrics():
    assert Scale.of(registry.find_metric("mcc")) == Scale(1, -1.0, 1.0)
    assert Scale.of(registry.find_metric("mcc_normalized")) == Scale(1, 0.0, 1.0)
    assert Scale.of(registry.find_metric("fnr")) == Scale(-1, -1.0, 0.0)


def test_a_limit_tells_its_effective_rows():
    z2 = NormalDist().inv_cdf(0.975) ** 2

    def worth(scale: Scale, score: float, limit: float, n: float = 1e6) -> float:
        return float(scale.effective_rows(*(np.array(one) for one in (score, limit, n))))

    assert worth(Scale(1, None, None), 0.7, 0.5) == pytest.approx(z2 / 0.2**2)
    v, m = 0.8, 120  # of MCC 0.6: Wilson's upper limit of m rows
    middle, reach = v + z2 / m / 2, math.sqrt(z2 / m * (v * (1 - v) + z2 / m / 4))
    limit = 2 * (middle + reach) / (1 + z2 / m) - 1
    assert worth(Scale(1, -1.0, 1.0), 0.6, limit) == pytest.approx(m)
    assert worth(Scale(1, -1.0, 1.0), 0.6, limit, n=10.0) == 40.0


@pytest.mark.parametrize("score", [-0.6, 0.2, 0.31, 0.33, 0.9])
def test_a_score_is_apart_from_the_one_given_its_labels_by_more_than_half_a_step(score):
    expected, se, step, n = 0.3, 0.05, 0.04, 400.0

    def apart(scale: Scale, score: float) -> float:
        return float(scale.apart(*(np.array(one) for one in (score, n, expected, se, step))))

    away = max(abs(expected - score) - step / 2, 0)
    assert apart(Scale(1, None, None), score) == pytest.approx(away / se)
    v, known, spread = (score + 1) / 2, (expected + 1) / 2, se / 2
    rows = known * (1 - known) / spread**2
    v = known + math.copysign(max(abs(v - known) - max(0.5 / rows, step / 4), 0), v - known)
    divergence = entropy([v, 1 - v], [known, 1 - known])
    assert apart(Scale(1, -1.0, 1.0), score) == pytest.approx(math.sqrt(2 * rows * divergence))

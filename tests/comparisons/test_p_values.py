"""P-values, critical values and corrections: against SciPy, mpmath, and loops over ranks."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats
from support import in_turn

from polars_mcc._comparisons.evidence_and_p_values import adjusted
from polars_mcc._intervals.interval_methods import critical, normal, student


@pytest.fixture(autouse=True)
def _zero_by_zero():
    """0/0 is NaN, as where the verbs call the steps."""
    with np.errstate(all="ignore"):
        yield


TOL = 1e-11  # the product's fraction stops at 1e-12
DF = np.array([1, 2, 3, 4, 5, 7, 10, 29, 30, 31, 99, 100, 101, 102, 1000, 12345, 100_000])


def exact(t: float, df: int) -> float:
    """The two-sided p-value, with 40 digits on the way."""
    with mpmath.workdps(40):
        x = mpmath.mpf(df) / (df + mpmath.mpf(t) ** 2)
        return float(mpmath.betainc(mpmath.mpf(df) / 2, 0.5, 0, x, regularized=True))


def test_the_p_values_of_student_are_those_of_mpmath():
    for t in (0.0, 1e-8, 1e-3, 0.1, 0.5, 1.0, 1.7, 1.96, 3.0, 8.0, 30.0, 200.0, 1000.0):
        found = student(np.full(len(DF), t), DF)
        truth = [exact(t, df) for df in DF.tolist()]
        np.testing.assert_allclose(found, truth, rtol=TOL, atol=1e-300, err_msg=str(t))


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.999999])
def test_critical_values_have_their_p_values(level):
    found = critical(level, DF)
    truth = [exact(t, df) for t, df in zip(found.tolist(), DF.tolist(), strict=True)]
    np.testing.assert_allclose(truth, 1 - level, rtol=1e-10)
    # SciPy of Python 3.10 errs by 4e-11.
    np.testing.assert_allclose(found, stats.t.isf((1 - level) / 2, DF), rtol=1e-9)
    assert critical(level, None) == pytest.approx(stats.norm.isf((1 - level) / 2), rel=1e-11)


def test_without_degrees_of_freedom_there_is_no_student():
    none = np.array([0, -1, 5])
    assert np.isnan(critical(0.95, none)).tolist() == [True, True, False]
    assert np.isnan(student(np.ones(3), none)).tolist() == [True, True, False]
    assert critical(0.95, np.zeros(0, int)).shape == (0,)
    assert np.isnan(student(np.array([np.nan]), np.array([5]))).all()
    assert student(np.array([np.inf]), np.array([5])).tolist() == [0.0]


def test_normal_p_values_are_those_of_scipy():
    errors = np.array([0.0, 1e-9, 0.3, 1.0, 1.96, 5.0, 12.0, 36.0, -2.5])
    np.testing.assert_allclose(normal(errors), 2 * stats.norm.sf(np.abs(errors)), rtol=1e-12)
    assert normal(np.array([np.inf])).tolist() == [0.0]
    assert np.isnan(normal(np.array([np.nan]))).all()


def by_definition(p: list[float], correction: str, tests: int) -> list[float]:
    """The least level at which each hypothesis is rejected: by loops over ranks."""
    ranked, found = sorted(p), []
    for one in p:
        if correction == "bonferroni":
            found.append(one * tests)
        elif correction == "holm":
            steps = [(tests - rank) * q for rank, q in enumerate(ranked) if q <= one]
            found.append(max(steps))
        else:
            of_all = sum(1 / i for i in range(1, tests + 1)) if correction == "by" else 1
            steps = [q * tests * of_all / (rank + 1) for rank, q in enumerate(ranked) if q >= one]
            found.append(min(steps))
    return [min(one, 1.0) for one in found]


@in_turn(correction=["bh", "by", "holm", "bonferroni"], more=[0, 1, 20])
def test_p_values_are_corrected_by_definition(correction, more):
    rng = np.random.default_rng(20)
    for _ in range(50):
        p = np.round(rng.uniform(0, 1, 12) ** 3, 2)  # with ties
        p[rng.uniform(size=12) < 0.3] = np.nan
        known = p[~np.isnan(p)].tolist()
        tests = len(known) + more if more else None
        found = adjusted(p, correction, tests)
        assert np.isnan(found).tolist() == np.isnan(p).tolist()
        expected = by_definition(known, correction, len(known) + more)
        np.testing.assert_allclose(found[~np.isnan(p)], expected, rtol=1e-14)
    assert adjusted(np.zeros(0), correction).shape == (0,)
    assert np.isnan(adjusted(np.full(2, np.nan), correction)).all()

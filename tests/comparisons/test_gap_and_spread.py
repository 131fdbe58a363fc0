"""The arrays of `gaps`: distributions beside SciPy, and gaps beside loops over all pairs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, stats
from support import first

from polars_mcc._comparisons.evidence_and_p_values import Scale
from polars_mcc._comparisons.gaps_between_slices import (
    Compared,
    chi_squared,
    errors_below,
    gaps_of,
    lower_limit,
    range_quantile,
)
from polars_mcc._metrics import registry

NO_RANGE = Scale(1, None, None, math.inf)


def gap_of(slices, scale, ci):
    return gaps_of([slices], scale, ci)[0]


@pytest.mark.parametrize("df", [0.3, 1, 2, 7.7, 49, 800])
def test_chi_squared(df):
    for share in (1e-12, 1e-4, 0.01, 0.3, 0.5, 0.9, 0.9999):
        x = stats.chi2.isf(share, df)
        assert chi_squared(x, df) == pytest.approx(share, rel=1e-8)
    assert chi_squared(-1, df) == chi_squared(0, df) == 1


@pytest.mark.parametrize("number", [2, 3, 10, 50])
def test_the_quantile_of_a_range(number):
    for level in (0.5, 0.95, 0.999):
        expected = stats.studentized_range.ppf(level, number, np.inf)
        assert range_quantile(number, level) == pytest.approx(expected, rel=1e-6)
    assert range_quantile(2, 0.95) == pytest.approx(stats.norm.ppf(0.975) * math.sqrt(2), rel=1e-9)


def test_scores_without_a_range_have_the_test_of_cochran():
    rng = np.random.default_rng(4)
    for _ in range(50):
        number = rng.integers(2, 9)
        v, m = rng.normal(5, 1, number), rng.uniform(0.5, 9, number)
        found = gap_of(Compared(v, m, m), NO_RANGE, 0.9)
        q = sum(w * (x - np.average(v, weights=m)) ** 2 for x, w in zip(v, m, strict=True))
        assert found.p_value == pytest.approx(stats.chi2.sf(q, number - 1), rel=1e-9)
        z = stats.studentized_range.ppf(0.9, number, np.inf) / math.sqrt(2)
        pairs = [*itertools.permutations(range(number), 2)]
        reaches = [z * math.sqrt(1 / m[i] + 1 / m[j]) for i, j in pairs]
        diffs = [v[i] - v[j] for i, j in pairs]
        low = max(diff - reach for diff, reach in zip(diffs, reaches, strict=True))
        high = max(diff + reach for diff, reach in zip(diffs, reaches, strict=True))
        assert found.diff == max(diffs)
        assert (found.diff_low, found.diff_high) == pytest.approx((max(low, 0), high), rel=1e-6)


def test_only_the_outermost_slices_are_compared_and_no_pair_is_missed():
    """Also if one slice has the most of all: it is no pair with itself."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        number = rng.integers(2, 40)
        v, rows = rng.choice(9, number) / 8.0, rng.choice([1.0, 2, 5, 50, 900], (2, number))
        found = gap_of(Compared(v, *rows), NO_RANGE, 0.95)
        z = range_quantile(int(number), 0.95) / math.sqrt(2)
        down, up = z / np.sqrt(rows)
        low = high = -math.inf
        for i, j in itertools.permutations(range(number), 2):
            low = max(low, v[i] - v[j] - math.hypot(down[i], up[j]))
            high = max(high, v[i] - v[j] + math.hypot(up[i], down[j]))
        assert found.diff_low == pytest.approx(max(low, 0), abs=1e-12)
        assert found.diff_high == pytest.approx(high, rel=1e-12)


@pytest.mark.parametrize("scale", [NO_RANGE, Scale(1, 0, 1), Scale(1, -1, 1)])
def test_many_groups_have_the_gaps_that_each_has_alone(scale):
    """Groups of no slice, of one and of many; and of scores that are all 0, or all 1."""
    rng, groups = np.random.default_rng(6), []
    for number in (2, 0, 1, 7, 1, 40, 3, 0):
        v, rows = rng.integers(0, 30, number) / 30, rng.choice([30.0, 31, 900], (2, number))
        groups += [Compared(of, *rows) for of in (v, 0 * v, 0 * v + 1)]
    gaps = np.array(gaps_of(groups, scale, 0.9))
    assert np.isnan(gaps).all(axis=1).sum() == 12
    assert (np.isfinite(gaps[:, 4]).sum() == 8) == scale.is_share
    np.testing.assert_array_equal(gaps, [gap_of(group, scale, 0.9) for group in groups])


@pytest.mark.parametrize("z", [1.96, 3.0, 4.0])
def test_the_limits_of_a_proportion_have_the_binomial_tail(z):
    """The share of so many hits or more, at the limit, is the share beyond z. Few rows may err."""
    rows = np.repeat([30.0, 300, 1e6, 1e12], 5)
    hits = np.tile([1.0, 2, 7, 29, 30], 4)
    low = lower_limit(hits / rows, rows, z)
    beyond = stats.beta.cdf(low, hits, rows - hits + 1) / stats.norm.sf(z)
    assert ((beyond > 0.9) & (beyond < 1.21)).all()
    assert beyond[hits > 2] == pytest.approx(1, abs=0.06)
    exact = stats.beta.ppf(stats.norm.sf(z), hits, rows - hits + 1)
    assert low[hits > 2] == pytest.approx(exact[hits > 2], rel=0.01)
    assert (lower_limit(np.array([0, 0.01]), np.array([30.0, 30]), z) == 0).all()


@pytest.mark.parametrize("number", first(1, [50, 200]))
def test_equal_slices_with_few_errors_have_no_gap(number):
    """Half of them have 30 rows and half 3,000, and 1 row in 200 is wrong."""
    rng = np.random.default_rng(number)
    rows = np.tile([30.0, 3000.0], number // 2)
    samples = rng.binomial(rows.astype(int), 0.005, (200, number)) / rows
    scale = Scale(1, 0, 1)
    gaps = gaps_of([Compared(1 - wrong, rows, rows) for wrong in samples], scale, 0.95)
    assert sum(gap.diff_low > 0 for gap in gaps) <= 10
    assert sum(gap.p_value < 0.05 for gap in gaps) <= 18


def score_and_likelihood(x_i, n_i, x_j, n_j, ratio):
    """Both tests that p_i / p_j is the ratio, from likelihoods that a search makes largest."""

    def fitted(x_i, x_j):
        def lost(p):
            pairs = ((x_i, ratio * p), (n_i - x_i, 1 - ratio * p), (x_j, p), (n_j - x_j, 1 - p))
            return -sum(x * math.log(q) for x, q in pairs if x > 0)

        ends = (1e-12, min(1, 1 / ratio) - 1e-12)
        found = optimize.minimize_scalar(
            lost, bounds=ends, method="bounded", options={"xatol": 1e-12}
        )
        free = -sum(
            x * math.log(x / n) for k, n in ((x_i, n_i), (x_j, n_j)) for x in (k, n - k) if x > 0
        )
        return found.x, found.fun - free

    p, _ = fitted(x_i, x_j)
    variance = ratio * p * (1 - ratio * p) / n_i + ratio**2 * p * (1 - p) / n_j
    variance *= (n_i + n_j) / (n_i + n_j - 1)
    z = (ratio * x_j / n_j - x_i / n_i) / math.sqrt(variance)
    x_i, x_j = x_i + 0.5, x_j - 0.5
    is_below = x_i / n_i < ratio * x_j / n_j
    return z, math.sqrt(max(2 * fitted(x_i, x_j)[1], 0)) if is_below else 0.0


def test_the_tests_of_a_ratio_are_of_the_largest_likelihood():
    rng, reached = np.random.default_rng(4), 0
    for n_i, n_j in ((30, 30), (30, 3000), (200, 45)):
        for ratio in (0.3, 0.8, 1.25):
            x_i, x_j = int(rng.integers(0, n_i // 2)), int(rng.integers(n_j // 3, n_j))
            expected = score_and_likelihood(x_i, n_i, x_j, n_j, ratio)
            v = np.array([x_i / n_i]), np.array([x_j / n_j])
            found = errors_below(v[0], np.array([n_i]), v[1], np.array([n_j]), np.array([ratio]))
            assert found.item() == pytest.approx(min(expected), rel=1e-5, abs=1e-5)
            reached += found.item() > 0
    assert reached >= 6
    # Farrington and Manning (1990): 7 of 34 beside 1 of 34, the score test of equal rates is X².
    z, _ = score_and_likelihood(1, 34, 7, 34, 1)
    x2 = stats.chi2_contingency([[1, 33], [7, 27]], correction=False).statistic
    assert z == pytest.approx(math.sqrt(x2 * 67 / 68), rel=1e-6)


@pytest.mark.parametrize(("n_i", "n_j"), [(10, 10), (30, 30), (15, 400), (400, 15)])
def test_a_ratio_of_few_rows_is_refused_as_seldom_as_promised(n_i, n_j):
    """All tables of two binomials: how probable a rejection is, at most."""
    rates = np.concatenate([ends := np.geomspace(1e-4, 0.5, 40), 1 - ends])
    pairs = (np.arange(n_i + 1)[:, None] / n_i, float(n_i), np.arange(n_j + 1) / n_j, float(n_j))
    for ratio in (0.5, 0.8, 1.0):
        errors = errors_below(*pairs, np.array(ratio))
        of_i = stats.binom.pmf(np.arange(n_i + 1), n_i, ratio * rates[:, None])
        of_j = stats.binom.pmf(np.arange(n_j + 1), n_j, rates[:, None])
        for level in (0.025, 0.0025, 2e-5):
            rejected = errors > stats.norm.isf(level)
            assert np.einsum("gi,ij,gj->g", of_i, rejected, of_j).max() <= level


def test_the_limits_of_a_ratio_are_of_all_pairs_of_slices():
    rng, reached = np.random.default_rng(1), 0
    for number in (2, 3, 7):
        n = rng.choice([30, 100, 3000], number).astype(float)
        v = (
            rng.binomial(n.astype(int), rng.choice([0.1, 0.5, 0.95]) * rng.uniform(0.3, 1, number))
            / n
        )
        z = stats.norm.isf(0.05 / number / (number - 1))

        def upper(i, j, n=n, v=v, z=z):
            """The ratio of i to j at which both tests are sure; at least the ratio itself."""

            def beyond(log):
                arrays = (np.array([x]) for x in (v[i], n[i], v[j], n[j], math.exp(log)))
                return errors_below(*arrays).item() - z

            return math.exp(optimize.brentq(beyond, -9, 9, xtol=1e-12))

        uppers = [upper(i, j) for i, j in itertools.permutations(range(number), 2)]
        gap = gap_of(Compared(v, n, n), Scale(1, 0, 1), 0.95)
        assert gap.ratio_low == pytest.approx(1 / max(uppers), rel=1e-8)
        assert gap.ratio_high == pytest.approx(min(*uppers, 1), rel=1e-8)
        assert gap.ratio_low < gap.ratio < gap.ratio_high
        reached += gap.ratio_high < 1
    assert reached == 2
    assert math.isnan(gap_of(Compared(v, n, n), Scale(1, -1, 1), 0.95).ratio_low)


def test_a_score_where_less_is_better_is_not_turned():
    fpr, tpr, mcc = registry.find_metrics(["fpr", "tpr", "mcc"])
    assert Scale.of(fpr, 1) == Scale.of(tpr, 1) == Scale(1, 0, 1)
    v, m = np.array([0.1, 0.5, 0.4]), np.array([30.0, 20, 90])
    found = gap_of(Compared(v, m, m), Scale.of(fpr, 1), 0.95)
    other = gap_of(Compared(1 - v, m, m), Scale.of(fpr, 1), 0.95)
    of_mcc = gap_of(Compared(2 * v - 1, m, m), Scale.of(mcc, 1), 0.95)
    for gap, span in ((other, 1), (of_mcc, 2)):
        assert gap.p_value == pytest.approx(found.p_value, rel=1e-12)
        lengths = [span * x for x in (found.diff, found.diff_low, found.diff_high, found.spread)]
        assert (gap.diff, gap.diff_low, gap.diff_high, gap.spread) == pytest.approx(lengths)

"""The score is R_K: known values, and identities from the literature."""

from __future__ import annotations

import itertools
import math

import oracles
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import mcc_of
from tables import counts_of

import polars_mcc

cells = st.integers(0, 30)
matrices = st.integers(2, 5).flatmap(
    lambda k: st.lists(st.lists(cells, min_size=k, max_size=k), min_size=k, max_size=k)
)
filled = st.integers(1, 10_000)
CLOSE = 1e-12
"""The tolerance: the identities cancel digits in floats; the package does not."""


@pytest.mark.parametrize(
    ("matrix", "value"),
    [
        ([[6, 2], [1, 3]], 16 / math.sqrt(1120)),
        ([[90, 5], [4, 1]], (90 * 1 - 4 * 5) / math.sqrt(94 * 95 * 5 * 6)),
        ([[95, 0], [5, 0]], 0.0),
        ([[3, 0], [0, 2]], 1.0),
        ([[0, 3], [2, 0]], -1.0),
        ([[2, 0, 0], [0, 0, 1], [0, 1, 1]], 6 / 16),
    ],
)
def test_known_values(matrix, value):
    assert mcc_of(oracles.table_of(matrix)) == pytest.approx(value, abs=0, rel=1e-15)


def test_published_roundings():
    assert round(mcc_of(oracles.table_of([[6, 2], [1, 3]])), 3) == 0.478
    assert round(mcc_of(oracles.table_of([[90, 5], [4, 1]])), 3) == 0.135
    x, y = pl.Series([1, 1, 1, 0, 0]), pl.Series([0, 1, 0, 1, 0])
    assert round(polars_mcc.SeriesMcc(y).score(x), 3) == -0.167


@given(matrices, st.permutations(range(5)), st.integers(2, 10**9))
@example([[10**6, 1], [1, 3]], range(2), 2)
def test_identities_for_k_classes(matrix, names, factor):
    """The score is exact to 4 units in the last place, and some changes leave it as it is."""
    table = oracles.table_of(matrix)
    found, truth = mcc_of(table), oracles.exact(table)
    if truth is None:
        assert found is None
        return
    assert oracles.ulps(found, truth) <= 4, (found, truth)
    assert found == pytest.approx(oracles.triple_sum(table), abs=CLOSE)
    assert found == pytest.approx(oracles.one_vs_rest_sums(table), abs=CLOSE)
    if sum(table.values()) < 10**5:
        assert found == pytest.approx(oracles.one_hot(oracles.rows_of(table)), abs=CLOSE)
    assert mcc_of({(names[g], names[p]): n for (g, p), n in table.items()}) == found, "relabelling"
    assert mcc_of(dict(reversed(table.items()))) == found, "row order"
    assert mcc_of({(p, g): n for (g, p), n in table.items()}) == found, "gold and pred swapped"
    scaled = mcc_of({pair: n * factor for pair, n in table.items()})
    assert scaled == pytest.approx(found, rel=1e-15, abs=0), "counts multiplied"


@given(*[filled] * 4)
def test_identities_for_two_classes(tp, fn, fp, tn):
    found = mcc_of({(1, 1): tp, (1, 0): fn, (0, 1): fp, (0, 0): tn})
    for identity in (
        oracles.binary,
        oracles.matthews_1975,
        oracles.root_of_rates,
        oracles.informedness_markedness,
    ):
        # The last two lose half the digits near 0: they take a root of a number near 0.
        assert found == pytest.approx(identity(tp, fn, fp, tn), abs=1e-7)
        if abs(found) > 1e-3:
            assert found == pytest.approx(identity(tp, fn, fp, tn), rel=1e-9)


@given(*[st.integers(1, 50)] * 4)
def test_pearson_correlation_and_chi_squared(tp, fn, fp, tn):
    found = mcc_of({(1, 1): tp, (1, 0): fn, (0, 1): fp, (0, 0): tn})
    assert found == pytest.approx(oracles.pearson(tp, fn, fp, tn), abs=CLOSE)
    assert abs(found) == pytest.approx(oracles.root_of_chi2(tp, fn, fp, tn), abs=1e-7)


def scores_of(tables: list[dict]) -> list[float]:
    """The scores of many tables, as slices of one counts table."""
    return counts_of(tables).mcc(weight="n").by("table")["mcc"].to_list()


def test_bounds_over_all_tables_of_two_classes():
    """The score reaches 1 if the marginals are equal; otherwise φ_max is its bound, and reached."""
    n = 8
    tables = list(oracles.all_tables(n, classes=2))
    best: dict[tuple[int, int], float] = {}
    bounds: dict[tuple[int, int], float] = {}
    for table, score in zip(tables, scores_of(tables), strict=True):
        tn, fp, fn, tp = (table[pair] for pair in itertools.product((0, 1), repeat=2))
        marginals = tp + fn, tp + fp
        if {0, n} & set(marginals):
            assert score == 0
            continue
        best[marginals] = max(score, best.get(marginals, -1))
        bounds[marginals] = oracles.phi_max(tp, fn, fp, tn)
        assert -1 <= score <= bounds[marginals] + 1e-15
    assert len(best) == (n - 1) ** 2
    for marginals, bound in bounds.items():
        assert best[marginals] == pytest.approx(bound, rel=1e-15)
        assert (best[marginals] == 1) == (marginals[0] == marginals[1])


def test_bounds_over_all_tables_of_three_classes():
    """The minimum lies between -1 and 0, and depends on the gold distribution."""
    tables = list(oracles.all_tables(5, classes=3))
    least: dict[tuple[int, ...], float] = {}
    for table, score in zip(tables, scores_of(tables), strict=True):
        golds = tuple(sorted(sum(table[g, p] for p in range(3)) for g in range(3)))
        least[golds] = min(score, least.get(golds, 1))
    assert least.pop((0, 0, 5)) == 0
    assert least[0, 1, 4] == least[0, 2, 3] == -1
    assert -1 < least[1, 2, 2] < least[1, 1, 3] < 0

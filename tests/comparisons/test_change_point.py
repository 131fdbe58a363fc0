"""The arrays of `changes`: beside loops, beside all draws of small logs, and beside simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

from polars_mcc._comparisons.change_point import Looked, RowsInTime, Steps, normal_errors
from polars_mcc._metrics.slice_sums import Segments

GOLD = np.array([0, 0, 0, 1, 1])  # of five pairs
PHI = np.array([0.9, -0.4, 0.1, 1.3, -0.7])


def log_of(rng: np.random.Generator, days: int, rows: int) -> list[tuple[int, int]]:
    """RowsInTime (day, pair), the same rates on every day."""
    pairs = rng.choice(5, rows, p=[0.4, 0.1, 0.1, 0.3, 0.1])
    return [*zip(rng.integers(0, days, rows).tolist(), pairs.tolist(), strict=True)]


def steps_of(logs: list[list[tuple[int, int]]], gold: np.ndarray = GOLD) -> Steps:
    """The steps of some logs, each one slice. Pairs of a slice have places of their own."""
    rows = [(i, day, 5 * i + pair, 1.0) for i, log in enumerate(logs) for day, pair in log]
    arrays = [np.array(column) for column in zip(*rows, strict=True)]
    of_slices = np.concatenate([gold for _ in logs]), np.concatenate([PHI for _ in logs])
    return Steps.of(len(logs), RowsInTime(*arrays), *of_slices)


def by_loops(log: list[tuple[int, int]], gold: np.ndarray) -> list[dict[str, float]]:
    """U of each split, and its moments, from the rows one by one."""
    found = []
    for day in sorted({day for day, _ in log})[:-1]:
        moved = variance = to_right = to_left = 0.0
        for label in set(gold.tolist()):
            own = [(d, PHI[pair]) for d, pair in log if gold[pair] == label]
            if not own:
                continue
            every = [x for _, x in own]
            mean, n = np.mean(every), len(own)
            before = [x for d, x in own if d <= day]
            m, left = len(before), n - len(before)
            moved += sum(before) - m * mean
            variance += m * left / (n - 1) * np.var(every) if n > 1 else 0
            if n > 2:
                skew = m * left * (left - m) / (n - 1) / (n - 2)
                third = skew * np.mean((np.array(every) - mean) ** 3)
                to_right, to_left = to_right + max(third, 0), to_left + min(third, 0)
        n_before = sum(d <= day for d, _ in log)
        moments = {"variance": variance, "to_right": to_right, "to_left": to_left}
        found.append({"n": n_before, "moved": moved, **moments})
    return found


@pytest.mark.parametrize("gold", [GOLD, np.zeros(5, int)], ids=["by label", "of any label"])
def test_the_moments_of_splits(gold):
    rng = np.random.default_rng(1)
    logs = [log_of(rng, days, rows) for days, rows in ((3, 8), (12, 90), (5, 4), (2, 1), (9, 300))]
    steps = steps_of(logs, gold)
    for i, log in enumerate(logs):
        start, length = steps.of_slice.starts[i], steps.of_slice.lengths[i]
        for place, expected in enumerate(by_loops(log, gold), start):
            for name, value in expected.items():
                found = getattr(steps.moments, name)[place]
                assert found == pytest.approx(value, rel=1e-8, abs=1e-8), name
        assert length == len({day for day, _ in log})


def test_the_moments_are_those_of_all_draws():
    """All orders of the predictions of each label, each as likely."""
    log = [(0, 0), (0, 1), (0, 3), (1, 0), (1, 2), (1, 4), (1, 3)]
    own = [[pair for _, pair in log if GOLD[pair] == label] for label in (0, 1)]
    days = [[day for day, pair in log if GOLD[pair] == label] for label in (0, 1)]
    sums = []
    for orders in itertools.product(*map(itertools.permutations, own)):
        rows = zip(itertools.chain(*days), itertools.chain(*orders), strict=True)
        sums.append(sum(PHI[pair] for day, pair in rows if day == 0))
    central = np.array(sums) - np.mean(sums)
    steps = steps_of([log])
    assert steps.moments.variance[0] == pytest.approx(np.mean(central**2), rel=1e-8)
    assert (steps.moments.to_right + steps.moments.to_left)[0] == pytest.approx(
        np.mean(central**3), rel=1e-7
    )


def test_neighbours_are_as_correlated_as_said():
    """The covariance of two splits that follow each other, from all orders of a small log."""
    days = [0, 1, 2, 2, 3]
    x = np.array([1.0, -0.5, 0.25, 2.0, -1.0])
    sums = [
        [sum(v for d, v in zip(days, order, strict=True) if d <= day) for day in range(3)]
        for order in itertools.permutations(x)
    ]
    expected = np.cov(np.array(sums).T, bias=True)
    rows = RowsInTime(np.zeros(5, int), np.array(days), np.arange(5), np.ones(5))
    moments = Steps.of(1, rows, np.zeros(5, int), x).moments
    assert moments.variance[:3] == pytest.approx(np.diag(expected), rel=1e-8)
    assert moments.beside[1:3] == pytest.approx([expected[0, 1], expected[1, 2]], rel=1e-8)


def test_the_largest_split_is_found_in_both_directions():
    rng = np.random.default_rng(3)
    logs = [log_of(rng, 20, 400) for _ in range(30)]
    steps = steps_of(logs)
    ones = np.ones(len(logs))
    for falls, rises in ((True, False), (False, True), (True, True)):
        split = steps.split(40, 0.05, ones, falls=falls, rises=rises)
        for i, log in enumerate(logs):
            best, since, risen = -math.inf, -1, False
            days = sorted({day for day, _ in log})
            for place, expected in enumerate(by_loops(log, GOLD)):
                if not 40 <= expected["n"] <= len(log) - 40:
                    continue
                errors = expected["moved"] / math.sqrt(expected["variance"])
                for way in [1] * falls + [-1] * rises:
                    third = way * expected["to_right" if way > 0 else "to_left"]
                    skew = third / expected["variance"] ** 1.5
                    root = np.cbrt(max(1 + skew * way * errors / 2, 0))
                    value = 6 / skew * (root - 1) + skew / 6 if skew else way * errors
                    if value > best:
                        best, since, risen = value, days[place + 1], way < 0
            assert split.errors[i] == pytest.approx(best, rel=1e-6)
            assert (split.since[i], split.is_rise[i]) == (since, risen)


def test_two_runs_of_splits_have_the_p_value_of_both():
    """One label ends where the other begins: there, nothing can be said; the runs share nothing."""
    rng = np.random.default_rng(7)
    early_days, late_days = rng.integers(0, 9, 200).tolist(), rng.integers(9, 18, 200).tolist()
    early = [(day, int(rng.random() < (0.7 if day > 4 else 0.3))) for day in early_days]
    late = [(day, int(rng.choice([3, 4]))) for day in late_days]
    one, other, both = (
        steps_of([log]).split(1, 0.05, np.ones(1), falls=True, rises=False)
        for log in (early, late, early + late)
    )
    assert one.errors[0] > max(other.errors[0], 3)
    h = both.errors[0]
    assert h == pytest.approx(one.errors[0], rel=1e-6)
    rest = bound_of(early, h) + bound_of(late, h) - stats.norm.sf(h)
    assert both.p_value[0] == pytest.approx(rest + stats.norm.sf(h) * stats.norm.cdf(h), rel=1e-6)


def bound_of(log: list[tuple[int, int]], h: float) -> float:
    """Worsley's bound of one log, at so many errors."""
    moments, total = steps_of([log]).moments, stats.norm.sf(h)
    for place in range(1, len(moments.n) - 1):
        r = moments.beside[place] / math.sqrt(moments.variance[place] * moments.variance[place - 1])
        total += 2 * special.owens_t(h, math.sqrt((1 - r) / (1 + r)))
    return total


def test_a_slice_without_a_split_has_none():
    few = [(0, 0), (0, 3), (1, 1)]
    one_day = [(4, pair) for pair in (0, 1, 2, 3, 4) * 20]
    all_alike = [(day, 0) for day in range(10) for _ in range(20)]
    split = steps_of([few, one_day, all_alike]).split(10, 0.05, np.ones(3), falls=True, rises=True)
    assert split.since.tolist() == [-1, -1, -1]
    assert np.isnan(split.p_value).all()
    assert np.isnan(split.errors).all()


@pytest.mark.parametrize(
    ("skewness", "most"), {-1: 4.3, -0.3: 1.09, 0: 1, 0.3: 1.05, 0.5: 1.13, 1: 1.4, 2: 2.1}.items()
)
def test_a_skewed_tail_is_that_of_a_gamma_distribution(skewness, most):
    """Wilson and Hilferty's root is never much too sure; far out it is not sure enough."""
    for p in (0.3, 0.05, 0.01, 1e-3, 1e-4, 1e-5):
        errors = stats.pearson3.isf(p, skewness)
        [found] = stats.norm.sf(normal_errors(np.array([errors]), np.array([1.0 * skewness])))
        assert 0.972 <= found / p <= most + 1e-6


def test_the_p_value_is_worsleys_bound():
    """P(first ≥ h) + Σ P(split ≥ h, the one before < h), by SciPy's function of Owen."""
    correlations = np.array([0.0, 0.9999, 0.99, 0.9, 0.5])  # of each split with the one before it
    apart = np.sqrt((1 - correlations) / (1 + correlations))
    apart[0] = 0
    looked = Looked(Segments(np.array([0]), 5), apart, 1)
    for h in (0.5, 1.5, 3.0, 4.5, 9.0):
        expected = stats.norm.sf(h) + sum(2 * special.owens_t(h, a) for a in apart[1:])
        assert looked.p_value(np.array([h]))[0] == pytest.approx(min(expected, 1), rel=1e-9)
    twice = Looked(looked.of_slice, apart, 2)
    assert twice.p_value(np.array([3.0])) == pytest.approx(2 * looked.p_value(np.array([3.0])))
    for level in (0.3, 0.05, 1 / 365, 1e-7):
        for each in (looked, twice):
            assert each.p_value(each.critical(level))[0] == pytest.approx(level, rel=1e-9)


def test_the_critical_value_of_many_splits():
    """Where the bound of no error is far above 1, and the level is large."""
    for size, r, level in itertools.product((1, 30, 5000), (0.5, 0.999), (0.5, 0.2, 0.05, 1e-9)):
        apart = np.full(size, math.sqrt((1 - r) / (1 + r)))
        looked = Looked(Segments(np.array([0]), size), apart, 1)
        found = looked.p_value(looked.critical(level))[0]
        assert found == pytest.approx(level, rel=1e-3 if level > 0.1 else 1e-8)


def test_dispersion_is_that_of_blocks_around_the_parts():
    rng = np.random.default_rng(5)
    log = log_of(rng, 40, 900)
    # A fall and a recovery: the pair 3 becomes 4 on days 14 to 26.
    log = [(day, 4 if pair == 3 and 14 <= day < 27 else pair) for day, pair in log]
    steps = steps_of([log])
    moved, variance = steps.own.moved, steps.own.variance

    def around(cuts: list[int]) -> float:
        rest = np.zeros(40)
        for first, last in itertools.pairwise([0, *cuts, 40]):
            part = slice(first, last)
            rest[part] = moved[part] - variance[part] * moved[part].sum() / variance[part].sum()
        blocks = [rest[first : first + 7].sum() for first in range(0, 40, 7)]
        excess = sum(x**2 for x in blocks) / variance.sum()
        return max(1.0, excess * len(blocks) / (len(blocks) - len(cuts) - 1))

    of_cuts = [steps.dispersion(cuts, np.arange(40) // 7)[0] for cuts in range(3)]
    one = min((around([cut]) for cut in range(1, 40)), key=lambda c: abs(c - of_cuts[1]))
    assert of_cuts[1] == pytest.approx(one, rel=1e-9)
    assert of_cuts[0] == pytest.approx(around([]), rel=1e-9)
    assert of_cuts[1] > 3, "one cut cannot tell a fall and a recovery"
    assert of_cuts[2] < 2

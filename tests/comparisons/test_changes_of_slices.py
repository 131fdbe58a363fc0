"""Since when slices are worse: what counts alone do not show."""

from __future__ import annotations

import itertools
import math
from datetime import date

import numpy as np
import polars as pl
from scipy import stats

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


def slope(table: np.ndarray, way: np.ndarray) -> float:
    """How far MCC moves if a row has another prediction."""
    ends = []
    for step in (1e-4, -1e-4):
        (a, b), (c, d) = table + step * way
        ends.append((a * d - b * c) / math.sqrt((a + b) * (c + d) * (a + c) * (b + d)))
    return ends[0] - ends[1]


def test_a_label_that_is_skewed_the_other_way_makes_no_change_surer():
    """One positive of 119 comes after, and it may be one of 8 hits: U cannot be much larger by it.

    But two of three false positives come after. The p-value is that of all draws of both.
    """
    counts = [(0, 0, 0, 1077), (0, 0, 1, 1), (0, 1, 0, 110), (0, 1, 1, 8)]
    counts += [(1, 0, 0, 42), (1, 0, 1, 2), (1, 1, 0, 1)]
    frame = pl.DataFrame(counts, ["day", "gold", "pred", "n"], orient="row")
    log = frame.with_columns(day=date(2026, 1, 1) + pl.duration(days="day"))
    found = log.mcc(weight="n", time="day").changes()["p_value"].item()
    table = np.array([[1119.0, 3], [111, 8]])
    hit, error = (slope(table, np.array(way)) for way in ([[0, 0], [-1, 1]], [[1, -1], [0, 0]]))
    share = 0.0
    for errors, hits in itertools.product(range(4), range(2)):
        if errors * error - hits * hit >= 2 * error - 1e-12:
            of_errors = stats.hypergeom(1122, 3, 44).pmf(errors)
            share += of_errors * stats.hypergeom(119, 8, 1).pmf(hits)
    assert share / 3 < found < 3 * share

"""What a slice scores given its labels: the oracle enumerates every confusion matrix it can have.

If the rates of the slice are those of all rows, each row of its confusion matrix is a draw without
replacement. So with two classes all tables and their probabilities can be listed.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from oracles import se_of_wald
from scipy.stats import hypergeom
from support import in_turn

SETTINGS = {
    # the table of all rows, gold by row, and the gold labels of the slice
    "few of a class": ([[810, 90], [10, 90]], (44, 4)),
    "balanced": ([[450, 50], [60, 440]], (30, 40)),
    "most rows": ([[80, 20], [30, 70]], (80, 60)),
}


def log_of(table: list[list[int]], part: np.ndarray) -> pl.DataFrame:
    """Counts of a log with a slice of the table `part`."""
    rest = np.array(table) - part
    rows = [
        (place, gold, pred, int(cells[gold][pred]))
        for place, cells in (("here", part), ("there", rest))
        for gold in (0, 1)
        for pred in (0, 1)
    ]
    return pl.DataFrame(rows, schema=["place", "gold", "pred", "n"], orient="row")


def tables(table: list[list[int]], sizes: tuple[int, int]):
    """Every table that a slice with these gold labels can have, with its probability."""
    sides = []
    for size, row in zip(sizes, table, strict=True):
        hits = np.arange(size + 1)
        sides.append(hypergeom.pmf(hits, sum(row), row[1], size))
    for one, p_one in enumerate(sides[0]):
        for other, p_other in enumerate(sides[1]):
            yield (
                np.array([[sizes[0] - one, one], [sizes[1] - other, other]]),
                p_one * p_other,
            )


def contrasted(log: pl.DataFrame, metric: str) -> dict:
    described = log.mcc(weight="n", positive=1)
    found = described.contrast("place", to="expected", metrics=metric)
    return found.row(0, named=True)


@pytest.mark.parametrize(("table", "sizes"), SETTINGS.values(), ids=SETTINGS)
def test_the_score_at_the_rates_of_all_rows(table, sizes):
    rates = np.array(table) / np.sum(table, axis=1, keepdims=True)
    at_rates = np.array(sizes)[:, None] * rates
    part = np.floor(at_rates).astype(int)
    part[:, 0] += np.array(sizes) - part.sum(axis=1)
    found = contrasted(log_of(table, part), "mcc")
    (tn, fp), (fn, tp) = at_rates
    expected = (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    assert found["expected"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("table", "sizes"), SETTINGS.values(), ids=SETTINGS)
def test_the_standard_error_is_that_of_all_draws(table, sizes):
    """Exact for recall, which is linear in the draw; near for a score that is not."""
    for metric, near in (("tpr", 1e-9), ("accuracy", 1e-9), ("mcc", 0.2)):
        scores, shares = [], []
        for part, p in tables(table, sizes):
            (tn, fp), (fn, tp) = part
            spread = np.sqrt(float((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))
            score = {
                "tpr": tp / (tp + fn),
                "accuracy": (tp + tn) / part.sum(),
                "mcc": (tp * tn - fp * fn) / spread if spread else 0.0,
            }[metric]
            scores.append(score)
            shares.append(p)
        mean = np.average(scores, weights=shares)
        se = np.sqrt(np.average((np.array(scores) - mean) ** 2, weights=shares))
        part = np.array([[sizes[0] - 2, 2], [1, sizes[1] - 1]])
        found = contrasted(log_of(table, part), metric)
        assert se_of_wald(found) == pytest.approx(se, rel=near), metric


@in_turn(
    2,
    metric=["mcc", "accuracy", "tpr", "f1_macro"],
    **{"table, sizes": [pytest.param(*one, id=name) for name, one in SETTINGS.items()]},
)
def test_small_p_values_are_as_rare_as_they_say(table, sizes, metric):
    """All tables of a slice, with their probabilities: no simulation, so no noise."""
    listed = [(part, p) for part, p in tables(table, sizes) if p > 1e-12]
    frames = [
        log_of(table, part).with_columns(sample=pl.lit(at)) for at, (part, _) in enumerate(listed)
    ]
    log = pl.concat(frames).filter(pl.col("n") > 0).mcc(weight="n", positive=1)
    found = log.contrast("place", within="sample", to="expected", metrics=metric)
    found = found.filter(place="here").sort("sample")
    shares = np.array([listed[at][1] for at in found["sample"]])
    values = found["p_value"].fill_null(1.0).to_numpy()
    for level in (0.05, 0.01, 0.001, 0.0001):
        assert shares[values < level].sum() <= 1.3 * level, level

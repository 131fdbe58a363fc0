"""Metrics of scores, computed in other ways. Nothing here calls polars_mcc, or Polars.

Rows are a list of (is positive, score, weight). Sums are fractions, so nothing is rounded.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction

import numpy as np

Row = tuple[bool, float, float]
BINS = 10
LEAST = 2.0**-52
"""The least probability of a log loss."""


def _exact(weight: float) -> int | Fraction:
    """A weight without rounding. Sums of integers are the fastest."""
    return weight if isinstance(weight, int) else Fraction(weight)


def _sides(rows: Sequence[Row]) -> tuple[list[tuple[float, int | Fraction]], ...]:
    return tuple(
        [(score, _exact(weight)) for gold, score, weight in rows if gold == side and weight]
        for side in (True, False)
    )


def _sum(rows: Sequence[Row]) -> Fraction:
    return Fraction(sum(_exact(weight) for *_, weight in rows))


def _by_score(rows: Sequence[Row]) -> list[tuple[Fraction, Fraction, Fraction]]:
    """The (score, positive, negative) of each score, from the least score up."""
    sums: dict[float, list[int | Fraction]] = {}
    for place, side in enumerate(_sides(rows)):
        for score, weight in side:
            sums.setdefault(score, [0, 0])[place] += weight
    return [(Fraction(score), *map(Fraction, of_sides)) for score, of_sides in sorted(sums.items())]


def roc_auc(rows: Sequence[Row]) -> Fraction | None:
    """The share of pairs in order, over all pairs of a positive and a negative row."""
    positive, negative = _sides(rows)
    if not positive or not negative:
        return None
    below, tied = (_of_pairs(rows, is_pair) for is_pair in (operator.gt, operator.eq))
    return (below + tied / 2) / _of_pairs(rows, lambda *_: True)


def _of_pairs(rows: Sequence[Row], is_pair: Callable[[float, float], bool]) -> Fraction:
    """The weight of pairs of a positive and a negative row whose scores are so."""
    positive, negative = _sides(rows)
    return Fraction(sum(v * sum(w for b, w in negative if is_pair(a, b)) for a, v in positive))


def roc_auc_ties(rows: Sequence[Row]) -> Fraction | None:
    positive, negative = _sides(rows)
    if not positive or not negative:
        return None
    return _of_pairs(rows, operator.eq) / _of_pairs(rows, lambda *_: True)


def average_precision(rows: Sequence[Row]) -> Fraction | None:
    """The mean, over positive rows, of the precision at the score of the row."""
    positive, negative = _sides(rows)
    if not positive:
        return None
    total = Fraction(0)
    for score, weight in positive:
        hits, others = (sum(w for s, w in side if s >= score) for side in (positive, negative))
        total += weight * Fraction(hits) / (hits + others)
    return total / sum(w for _, w in positive)


def brier(rows: Sequence[Row]) -> Fraction:
    return sum(Fraction(w) * (Fraction(s) - g) ** 2 for g, s, w in rows) / _sum(rows)


def log_loss(rows: Sequence[Row]) -> float:
    lost = [
        -w * math.log(min(max(s if g else 1 - s, LEAST), 1 - LEAST)) if w else 0.0
        for g, s, w in rows
    ]
    return math.fsum(lost) / float(_sum(rows))


def brier_uncertainty(rows: Sequence[Row]) -> Fraction:
    rate = _sum([row for row in rows if row[0]]) / _sum(rows)
    return rate * (1 - rate)


def brier_reliability(rows: Sequence[Row]) -> Fraction:
    parts = ((s, p / (p + q), p + q) for s, p, q in _by_score(rows))
    return sum(n * (score - rate) ** 2 for score, rate, n in parts) / _sum(rows)


def brier_resolution(rows: Sequence[Row]) -> Fraction:
    base = _sum([row for row in rows if row[0]]) / _sum(rows)
    return sum((p + q) * (p / (p + q) - base) ** 2 for _, p, q in _by_score(rows)) / _sum(rows)


def bins(rows: Sequence[Row]) -> list[list[Row]]:
    """Ten bins with equally many rows. Equal scores are in one bin: that of the middle of their
    ranks."""
    found: dict[int, list[Row]] = {}
    of_score: dict[float, list[Row]] = {}
    for row in rows:
        if row[2]:
            of_score.setdefault(row[1], []).append(row)
    below, n = Fraction(0), _sum(rows)
    for score, p, q in _by_score(rows):
        place = math.floor((below + (p + q) / 2) / n * BINS)
        found.setdefault(place, []).extend(of_score[score])
        below += p + q
    return [*found.values()]


def _distance(rows: Sequence[Row]) -> tuple[Fraction, Fraction]:
    """How far the rate of positive rows is from their mean score; and the rate."""
    rate = _sum([row for row in rows if row[0]]) / _sum(rows)
    return rate - sum(Fraction(s) * Fraction(w) for _, s, w in rows) / _sum(rows), rate


def ece(rows: Sequence[Row]) -> Fraction:
    return sum(_sum(one) * abs(_distance(one)[0]) for one in bins(rows)) / _sum(rows)


def calibration_error(rows: Sequence[Row], *, is_sample: bool = False) -> float | None:
    """Without what chance adds. A bin of one row says nothing about chance, and is left out.

    A bin of sample weights is as good as fewer rows (Kish).
    """
    known, squares = Fraction(0), Fraction(0)
    for one in bins(rows):
        (apart, rate), size = _distance(one), _sum(one)
        n = size**2 / sum(Fraction(w) ** 2 for *_, w in one) if is_sample else size
        if n > 1:
            known += size
            squares += size * (apart**2 - rate * (1 - rate) / (n - 1))
    return math.sqrt(max(squares / known, 0)) if known else None


FAMILY: dict[str, Callable[[Sequence[Row]], Fraction | float | None]] = {
    one.__name__: one
    for one in (
        roc_auc,
        average_precision,
        brier,
        log_loss,
        calibration_error,
        ece,
        brier_reliability,
        brier_resolution,
        brier_uncertainty,
        roc_auc_ties,
    )
}
# A mean over classes, of a log with one score, is of this score.
FAMILY |= dict.fromkeys(("roc_auc_weighted", "roc_auc_ovo"), roc_auc)
FAMILY["average_precision_weighted"] = average_precision


def components(gold: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The structural components V10 and V01 of DeLong et al. 1988, from all pairs."""
    positive, negative = score[gold], score[~gold]
    above = positive[:, None] > negative[None, :]
    placed = above + (positive[:, None] == negative[None, :]) / 2
    return placed.mean(axis=1), placed.mean(axis=0)


def delong(gold: np.ndarray, scores: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The areas of several scores, and their covariances: S10 / m + S01 / n."""
    v10, v01 = zip(*(components(gold, score) for score in scores), strict=True)
    areas = np.array([one.mean() for one in v10])
    covariance = np.atleast_2d(np.cov(v10)) / gold.sum()
    covariance += np.atleast_2d(np.cov(v01)) / (~gold).sum()
    return areas, covariance


def influences(name: str, rows: Sequence[Row]) -> list[float]:
    """n times the derivative of a metric by the weight of each row, by central differences.

    The sums are fractions, so the step may be small: the error of the difference is its square.
    """
    step, found = Fraction(1, 2**60), []
    for place, (gold, score, weight) in enumerate(rows):
        ends = []
        for sign in (1, -1):
            moved = [*rows]
            moved[place] = (gold, score, Fraction(weight) + sign * step)
            ends.append(Fraction(FAMILY[name](moved)))
        found.append(float((ends[0] - ends[1]) / (2 * step) * _sum(rows)))
    return found


def by_unit(units: Sequence[Hashable], moves: Sequence[float]) -> list[float]:
    """The sums of moves within each unit."""
    sums: dict[Hashable, float] = {}
    for unit, move in zip(units, moves, strict=True):
        sums[unit] = sums.get(unit, 0.0) + move
    return [*sums.values()]

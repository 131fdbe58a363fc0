"""Levels of scores → how far a row moves each metric of scores.

In formulas, P and N count the positive and negative rows of a slice, p and q the rows of a level,
tp and fp the rows at or above a level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polars_mcc._metrics.derivatives import ArrayColumns, Column
from polars_mcc._metrics.roc_auc_top_k_brier_log_loss_ece import (
    LARGEST_LOG_LOSS,
    Loss,
    brier,
    hit,
    log_loss,
)
from polars_mcc._metrics.slice_sums import Floats, Segments


@dataclass(frozen=True)
class Levels:
    """The levels of slices as arrays (levels,), from the largest score of a slice down.

    `positive` and `negative` are the weights of the rows of a level, `tp` and `fp` of the rows at
    or above it, `all_positive` and `all_negative` of the rows of its slice. A weight of 1 stands
    for `per_weight` rows. `epsilon` is that of the scores.
    """

    rows: Segments
    score: Floats
    positive: Floats
    negative: Floats
    tp: Floats
    fp: Floats
    all_positive: Floats
    all_negative: Floats
    per_weight: Floats
    epsilon: float

    @classmethod
    def of(
        cls,
        rows: Segments,
        score: Floats,
        positive: Floats,
        negative: Floats,
        *,
        per_weight: Floats | None = None,
        epsilon: float,
    ) -> Levels:
        """The levels of slices from their counts. `per_weight` is of slices; None: it is 1."""
        tp, fp = rows.cumulated(positive), rows.cumulated(negative)
        totals = rows.spread(rows.sum(positive)), rows.spread(rows.sum(negative))
        weights = np.ones(len(score)) if per_weight is None else rows.spread(per_weight)
        return cls(rows, score, positive, negative, tp, fp, *totals, weights, epsilon)

    def total(self, values: Floats) -> Floats:
        """Add up the numbers of the levels of a slice, on each of its levels."""
        return self.rows.spread(self.rows.sum(values))


class LevelInfluence(NamedTuple):
    """How far a row moves a metric of scores, by its level: see `Levels`."""

    positive: Floats
    """By one positive row at the level, n times the derivative of the metric by its count:
    (levels,)."""
    negative: Floats
    value: Floats
    """The metric: (slices,)."""
    effective_rows: Floats
    """The rows of a proportion with the same variance, per row, where no rate of 0 or 1 is known
    exactly: (slices,)."""


def _auc_influence(x: Levels) -> LevelInfluence:
    """A row moves the area by its placement: the share of the other class that it is beyond.

    DeLong's variance gives the effective rows. It may be 0, so these rows have a limit: the larger
    number of two variances that are never 0. One is the variance of Hanley and McNeil (1982), for
    the worse of two shapes. The other is DeLong's variance with half a pseudo-row at each end of
    each class.
    """
    all_p, all_n, both = x.all_positive, x.all_negative, x.all_positive + x.all_negative
    above = (2 * (all_n - x.fp) + x.negative) / (2 * all_n)  # negatives below a positive: a share
    below = (2 * x.tp - x.positive) / (2 * all_p)  # positives above a negative: a share
    area = x.total(x.positive * above) / all_p
    by_positive = (above - area) * both / all_p * _unbiased(x, all_p)
    by_negative = (below - area) * both / all_n * _unbiased(x, all_n)
    p, n = all_p * x.per_weight, all_n * x.per_weight
    other_p, other_n = (np.clip(rows - 1, 0, None) for rows in (p, n))
    up, down = (1 - area) / (2 - area), area / (1 + area)
    shapes = np.fmax(other_p * up + other_n * down, other_n * up + other_p * down)
    (mean_p, square_p), (mean_n, square_n) = (
        _smoothed(x, x.total(count * place), x.total(count * place**2), size)
        for count, place, size in ((x.positive, above, all_p), (x.negative, below, all_n))
    )
    mean = (mean_p + mean_n) / 2
    spread = (square_p - mean_p**2) / p + (square_n - mean_n**2) / n
    max_rows = np.fmax(p * n / (1 + shapes), mean * (1 - mean) / spread) / (p + n)
    squares = x.positive * by_positive**2 + x.negative * by_negative**2
    observed = area * (1 - area) / (x.total(squares) / both)
    # A perfect area may be 1 + 2·10⁻¹⁶ in floats.
    is_known = np.isfinite(observed) & (observed > 0)
    rows = np.where(is_known, np.fmin(observed, max_rows), max_rows)
    return LevelInfluence(by_positive, by_negative, x.rows.first(area), x.rows.first(rows))


def _smoothed(
    x: Levels,
    total: Floats,
    squares: Floats,
    weight: Floats,
    *,
    pseudo_rows: float = 0.5,
    largest: Floats | float = 1.0,
) -> tuple[Floats, Floats]:
    """The mean and the mean square of values with so many pseudo-rows of 0, and of the largest."""
    size = weight * x.per_weight + 2 * pseudo_rows
    mean = (total * x.per_weight + pseudo_rows * largest) / size
    return mean, (squares * x.per_weight + pseudo_rows * largest * largest) / size


def _unbiased(x: Levels, size: Floats) -> Floats:
    """DeLong's variance of a mean divides by its rows minus 1."""
    rows = size * x.per_weight
    factor: Floats = np.sqrt(np.where(rows > 1, rows / (rows - 1), 1.0))
    return factor


def _ap_influence(x: Levels) -> LevelInfluence:
    """A positive row adds its own precision. Each row moves the precision at and below its level.

    The effective rows come from a log with two half pseudo-rows above all other rows: a positive
    and a negative one.
    """
    moved, mean = _ap_with(x, 0.0)
    (up, down), smoothed = _ap_with(x, 0.5)
    p, n = x.all_positive * x.per_weight, x.all_negative * x.per_weight
    of_p, of_n = (
        x.total(count * square) * x.per_weight
        for count, square in ((x.positive, up**2), (x.negative, down**2))
    )
    # The positive pseudo-row has the precision 1/2, and adds a quarter to what is at or below it.
    added, lost = (x.total(count) + 0.25 for count in _ap_shares(x, 0.5))
    top = (0.5 + added - smoothed) ** 2, lost**2
    variance = (of_p + top[0] / 2) * (p + 0.5) / p + (of_n + top[1] / 2) * (n + 0.5) / n
    variance = np.where(n > 0, variance / (p + 0.5) ** 2, np.nan)
    rows = smoothed * (1 - smoothed) / variance / (p + n)
    both = (x.all_positive + x.all_negative) / x.all_positive
    by_positive, by_negative = (move * both for move in moved)
    return LevelInfluence(by_positive, by_negative, x.rows.first(mean), x.rows.first(rows))


def _ap_shares(x: Levels, pseudo_rows: float) -> tuple[Floats, Floats]:
    """How the precision of the positive rows of a level changes by a row at or above it."""
    p, fp, tp = (count * x.per_weight for count in (x.positive, x.fp, x.tp))
    above = (tp + fp + 2 * pseudo_rows) ** 2
    return p * (fp + pseudo_rows) / above, p * (tp + pseudo_rows) / above


def _ap_with(x: Levels, pseudo_rows: float) -> tuple[tuple[Floats, Floats], Floats]:
    """How far rows move the precision of all positive rows, times P; and its mean.

    `pseudo_rows` is how many positive, and negative, rows are above all others.
    """
    up, down = (
        x.total(share) - x.rows.cumulated(share) + share for share in _ap_shares(x, pseudo_rows)
    )
    p, tp, fp = (count * x.per_weight for count in (x.all_positive, x.tp, x.fp))
    precision = (tp + pseudo_rows) / (tp + fp + 2 * pseudo_rows)
    total = x.total(x.positive * precision) * x.per_weight
    mean = (total + pseudo_rows / 2) / (p + pseudo_rows)
    return (precision + up - mean, -down), mean


def _mean_influence(loss: Loss, largest: float) -> Callable[[Levels], LevelInfluence]:
    """A row moves a mean by its own value.

    The effective rows come from a log with two pseudo-rows. One has no loss. The other has the
    largest loss that a score of the slice allows.
    """

    def influence(x: Levels) -> LevelInfluence:
        score = Column(ArrayColumns(x.rows, {}), x.score)
        positive, negative = (side.value for side in loss(score, x.epsilon))  # type: ignore[arg-type, attr-defined]
        total = x.total(x.positive * positive + x.negative * negative)
        squares = x.total(x.positive * positive**2 + x.negative * negative**2)
        allowed = x.rows.spread(x.rows.max(np.fmax(positive, negative)))
        rows = x.all_positive + x.all_negative
        mean, square = _smoothed(x, total, squares, rows, pseudo_rows=1.0, largest=allowed)
        effective_rows = x.rows.first(mean * (largest - mean) / (square - mean**2))
        observed = total / rows
        return LevelInfluence(
            positive - observed, negative - observed, x.rows.first(observed), effective_rows
        )

    return influence


INFLUENCES: Mapping[str, Callable[[Levels], LevelInfluence]] = {
    "roc_auc": _auc_influence,
    "average_precision": _ap_influence,
    "brier": _mean_influence(brier, 1.0),
    "log_loss": _mean_influence(log_loss, LARGEST_LOG_LOSS),
    "top_k": _mean_influence(hit, 1.0),
}
"""The metrics of scores that have an interval."""

"""Levels of scores → how far a row moves each metric of scores.

In formulas, P and N count the positive and negative rows of a slice, p and q the rows of a level,
tp and fp the rows at or above a level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mcc._scores.brier_log_loss_ece import LARGEST_LOG_LOSS, Loss, brier, log_loss
from polars_mcc._scores.column import ArrayColumns, Column
from polars_mcc._scores.levels import BOTH
from polars_mcc._scores.segments import Floats, Segments


@dataclass(frozen=True)
class Levels:
    """The levels of slices as arrays (levels,), from the largest score of a slice down.

    `positive` and `negative` are the weights of the rows of a level, `tp` and `fp` of the rows at
    or above it, `all_positive` and `all_negative` of the rows of its slice. A weight of 1 stands
    for `per_weight` rows.
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

    @classmethod
    def of(cls, levels: pl.DataFrame, rows: Segments, per_weight: Floats) -> Levels:
        """The arrays of sorted levels `in_floats`. `per_weight` is of slices."""
        names = ("score", *BOTH, "tp", "fp", "all_positive", "all_negative")
        columns = {name: levels[name].to_numpy() for name in names}
        return cls(rows, **columns, per_weight=rows.spread(per_weight))

    def total(self, values: Floats) -> Floats:
        """Add up the numbers of the levels of a slice, on each of its levels."""
        return self.rows.spread(self.rows.sum(values))


class Moves(NamedTuple):
    """How far a row moves a metric of scores, by its level: see `Levels`."""

    positive: Floats
    """By one positive row at the level, n times the derivative of the metric by its count:
    (levels,)."""
    negative: Floats
    value: Floats
    """The metric: (slices,)."""
    worth: Floats
    """How many rows of a proportion with the same variance a row is worth, where no rate of 0 or 1
    is known exactly: (slices,)."""


def _auc_moves(x: Levels) -> Moves:
    """A row moves the area by its placement: the share of the other class that it is beyond.

    DeLong's variance gives the worth. It may be 0, so the worth has a limit: the larger worth of
    two variances that are never 0. One is the variance of Hanley and McNeil (1982), for the worse
    of two shapes. The other is DeLong's variance with half a row more at each end of each class.
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
    most = np.fmax(p * n / (1 + shapes), mean * (1 - mean) / spread) / (p + n)
    squares = x.positive * by_positive**2 + x.negative * by_negative**2
    observed = area * (1 - area) / (x.total(squares) / both)
    # A perfect area may be 1 + 2·10⁻¹⁶ in floats.
    is_known = np.isfinite(observed) & (observed > 0)
    worth = np.where(is_known, np.fmin(observed, most), most)
    return Moves(by_positive, by_negative, x.rows.first(area), x.rows.first(worth))


def _smoothed(
    x: Levels,
    total: Floats,
    squares: Floats,
    weight: Floats,
    *,
    more: float = 0.5,
    largest: Floats | float = 1.0,
) -> tuple[Floats, Floats]:
    """The mean and the mean square of values with so many rows more of 0, and of the largest."""
    size = weight * x.per_weight + 2 * more
    mean = (total * x.per_weight + more * largest) / size
    return mean, (squares * x.per_weight + more * largest * largest) / size


def _unbiased(x: Levels, size: Floats) -> Floats:
    """DeLong's variance of a mean divides by its rows minus 1."""
    rows = size * x.per_weight
    found: Floats = np.sqrt(np.where(rows > 1, rows / (rows - 1), 1.0))
    return found


def _ap_moves(x: Levels) -> Moves:
    """A positive row adds its own precision. Each row moves the precision at and below its level.

    The worth comes from a log with two half rows more, a positive and a negative one, above all
    other rows.
    """
    moved, mean = _ap_with(x, 0.0)
    (up, down), smoothed = _ap_with(x, 0.5)
    p, n = x.all_positive * x.per_weight, x.all_negative * x.per_weight
    of_p, of_n = (
        x.total(count * square) * x.per_weight
        for count, square in ((x.positive, up**2), (x.negative, down**2))
    )
    # The row more has the precision 1/2, and adds a quarter to what is at or below it.
    more, less = (x.total(count) + 0.25 for count in _ap_shares(x, 0.5))
    top = (0.5 + more - smoothed) ** 2, less**2
    variance = (of_p + top[0] / 2) * (p + 0.5) / p + (of_n + top[1] / 2) * (n + 0.5) / n
    variance = np.where(n > 0, variance / (p + 0.5) ** 2, np.nan)
    worth = smoothed * (1 - smoothed) / variance / (p + n)
    both = (x.all_positive + x.all_negative) / x.all_positive
    by_positive, by_negative = (move * both for move in moved)
    return Moves(by_positive, by_negative, x.rows.first(mean), x.rows.first(worth))


def _ap_shares(x: Levels, more: float) -> tuple[Floats, Floats]:
    """How the precision of the positive rows of a level changes by a row at or above it."""
    p, fp, tp = (count * x.per_weight for count in (x.positive, x.fp, x.tp))
    above = (tp + fp + 2 * more) ** 2
    return p * (fp + more) / above, p * (tp + more) / above


def _ap_with(x: Levels, more: float) -> tuple[tuple[Floats, Floats], Floats]:
    """How far rows move the precision of all positive rows, times P; and its mean.

    `more` is how many positive, and negative, rows are above all others.
    """
    up, down = (x.total(share) - x.rows.cumulated(share) + share for share in _ap_shares(x, more))
    p, tp, fp = (count * x.per_weight for count in (x.all_positive, x.tp, x.fp))
    precision = (tp + more) / (tp + fp + 2 * more)
    total = x.total(x.positive * precision) * x.per_weight
    mean = (total + more / 2) / (p + more)
    return (precision + up - mean, -down), mean


def _mean_moves(loss: Loss, largest: float) -> Callable[[Levels], Moves]:
    """A row moves a mean by its own value.

    The worth comes from a log with two rows more. One has no loss. The other has the largest loss
    that a score of the slice allows.
    """

    def moves(x: Levels) -> Moves:
        score = Column(ArrayColumns(x.rows, {}), x.score)
        positive, negative = (one.value for one in loss(score))  # type: ignore[arg-type, attr-defined]
        total = x.total(x.positive * positive + x.negative * negative)
        squares = x.total(x.positive * positive**2 + x.negative * negative**2)
        allowed = x.rows.spread(x.rows.max(np.fmax(positive, negative)))
        rows = x.all_positive + x.all_negative
        mean, square = _smoothed(x, total, squares, rows, more=1.0, largest=allowed)
        worth = x.rows.first(mean * (largest - mean) / (square - mean**2))
        observed = total / rows
        return Moves(positive - observed, negative - observed, x.rows.first(observed), worth)

    return moves


MOVES: Mapping[str, Callable[[Levels], Moves]] = {
    "roc_auc": _auc_moves,
    "average_precision": _ap_moves,
    "brier": _mean_moves(brier, 1.0),
    "log_loss": _mean_moves(log_loss, LARGEST_LOG_LOSS),
}
"""The metrics of scores that have an interval."""

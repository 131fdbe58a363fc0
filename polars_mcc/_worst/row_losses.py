"""The loss of a row, by its pair of labels, and the score test of a slice that loses more."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from polars_mcc._intervals.count_arrays import Counted
from polars_mcc._metrics.slice_sums import Floats, Ints, added_up

_FREE = 5.0
"""The least rows of a slice that a regression leaves free: else it explains the slice."""


class RowLosses(NamedTuple):
    """What rows lose by their pair: minus their influence on the score of all rows.

    With to="expected", less the mean of their gold label. A row stands for s rows: for none, if it
    has no influence, as a rate is not of it.
    """

    gold: Ints
    """The code of the gold label of each pair, sorted: (pairs,)."""
    pred: Ints
    of_pair: Floats
    """For the loss y: s, s·y, s², s²·y and s²·y²: (5, pairs)."""
    of_log: Floats
    """The sums over all rows, with weights w: w, w·y, w², w²·y and w²·y²: (5,)."""

    @classmethod
    def of(cls, every: Counted, scored: Counted, phi: Floats, *, given_labels: bool) -> RowLosses:
        """The losses of a log, from the pairs of all rows and the scored pairs.

        `phi` is the influence of a row of each scored pair, such that more is better.
        """
        k = int(every.pred.max(initial=0)) + 1
        place = np.searchsorted(every.gold * k + every.pred, scored.gold * k + scored.pred)
        loss, stand_for = np.zeros((2, len(every.n)))
        loss[place] = -np.nan_to_num(phi)
        with np.errstate(all="ignore"):
            stand_for[place] = np.nan_to_num(scored.n / every.n[place])
            if given_labels:
                _, gold = np.unique(every.gold, return_inverse=True)
                loss -= (np.bincount(gold, every.n * loss) / np.bincount(gold, every.n))[gold]
        s = np.where(loss != 0, stand_for, 0.0)
        total = float(max(every.n.sum(), every.squares.sum()))
        table = s, s * loss, s**2, s**2 * loss, s**2 * loss**2
        values = np.array([_on_grid(of, total) for of in table])
        losses = cls(every.gold, every.pred, values, np.zeros(5))
        return losses._replace(of_log=losses.sums(every)[:, 0])

    def of_pairs(self, gold: Ints, pred: Ints) -> Floats:
        """`of_pair` for some pairs, by their labels."""
        k = int(self.pred.max(initial=0)) + 1
        return self.of_pair[:, np.searchsorted(self.gold * k + self.pred, gold * k + pred)]

    def sums(self, pairs: Counted) -> Floats:
        """The sums over the rows of slices, see `of_log`: (5, slices)."""
        weights = [pairs.n] * 2 + [pairs.squares] * 3
        of_pairs = zip(self.of_pairs(pairs.gold, pairs.pred), weights, strict=True)
        sums = [added_up(of * weight, pairs.slices, pairs.number) for of, weight in of_pairs]
        return np.array(sums)

    def of_slices(self, pairs: Counted) -> Floats:
        """The weight of slices, their loss, and how far the loss of a row varies: (slices, 3).

        The variance is that of the score test of a slice (White 1980), or if this is larger, the
        mean of all rows: a slice almost without errors knows little of its variance.
        """
        here, every = self.sums(pairs), self.of_log
        with np.errstate(all="ignore"):  # A log may have no rows.
            fit, share = every[1] / every[0], here[0] / every[0]
            own, squares = _squared_residuals(here, fit), _squared_residuals(every, fit)
            variance = (own * (1 - share) ** 2 + (squares - own) * share**2) / (1 - share) / here[0]
            variance = np.maximum(variance, squares / max(every[0], 1.0))
        return np.column_stack([*here[:2], np.sqrt(variance)])


def _on_grid(values: Floats, total: float) -> Floats:
    """Round values such that sums of rows with this total weight are exact, in any order."""
    largest = float(np.abs(values).max(initial=0.0)) * total
    if not 0 < largest < math.inf:
        return values
    step = 2.0 ** (math.ceil(math.log2(largest)) - 53)
    return np.round(values / step) * step


def evidence_of_losses(left: Floats, free: Floats, error: Floats) -> Floats:
    """How many standard errors slices lose more than others explain: the score test.

    `left` is this loss, and `free` the rows that others leave free, see
    `LossRegression.unexplained`. `error` is of a row.
    """
    with np.errstate(all="ignore"):
        evidence = left / (error * np.sqrt(free))
    return np.where((free <= _FREE) | (error <= 0), 0.0, evidence)


def _squared_residuals(sums: Floats, fit: float) -> Floats:
    """Sums of w² (y - fit)²."""
    _, _, squares, moved, squared = sums
    left: Floats = squared - 2 * fit * moved + fit**2 * squares
    return left

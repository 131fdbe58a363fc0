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

    def alone(self, pairs: Counted) -> Floats:
        """The evidence of slices beside no others, their weight, and their loss: (slices, 3)."""
        here, every = self.sums(pairs), self.of_log[:, None]
        with np.errstate(all="ignore"):  # A log may have no rows.
            share, fit = (here[0] / every[0])[:, None], every[1] / every[0]
        return np.column_stack([score_test(here[:, :, None], every, fit, share)[0], *here[:2]])


def _on_grid(values: Floats, total: float) -> Floats:
    """Round values such that sums of rows with this total weight are exact, in any order."""
    largest = float(np.abs(values).max(initial=0.0)) * total
    if not 0 < largest < math.inf:
        return values
    step = 2.0 ** (math.ceil(math.log2(largest)) - 53)
    return np.round(values / step) * step


def score_test(here: Floats, every: Floats, fit: Floats, share: Floats) -> tuple[Floats, Floats]:
    """How many standard errors slices lose more than a regression explains, and their free rows.

    It is the score test with the variance of the residuals (White 1980), or if this is larger, with
    their mean: a slice almost without errors knows little of its variance. The last axis is of
    patterns of rows. `here` and `every` are sums, see `RowLosses.of_log`. `fit` is of the losses,
    `share` of the columns of the slices.
    """
    own, squares = squared_residuals(here, fit), squared_residuals(every, fit)
    weight = every[0]
    free: Floats = here[0].sum(-1) - (weight * share**2).sum(-1)
    variance = (own * (1 - share) ** 2 + (squares - own) * share**2).sum(-1)
    variance = np.maximum(variance, squares.sum() / max(weight.sum(), 1.0) * free)
    with np.errstate(all="ignore"):
        evidence = (here[1] - here[0] * fit).sum(-1) / np.sqrt(variance)
    return np.where((free > _FREE) & (variance > 0), evidence, 0.0), free


def squared_residuals(sums: Floats, fit: Floats) -> Floats:
    """Sums of w² (y - fit)²."""
    _, _, squares, moved, squared = sums
    left: Floats = squared - 2 * fit * moved + fit**2 * squares
    return left

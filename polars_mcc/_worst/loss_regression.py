"""The losses of rows → what slices, as columns of 0 and 1, explain of them.

Rows that are in the same columns have one pattern, so sums by pattern are enough.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from polars_mcc._metrics.slice_sums import Flags, Floats, Ints
from polars_mcc._worst.row_losses import score_test, squared_residuals
from polars_mcc._worst.rows_of_slices import Column, LogRows

_SPANNED = 1e-10
"""A direction with a smaller share of the largest eigenvalue is spanned by other columns."""


class _Fit(NamedTuple):
    """A regression on some columns."""

    columns: Floats
    """A constant and the columns: (patterns, columns)."""
    inverse: Floats
    """The inverse of the matrix of the rows that these have in common."""
    fit: Floats
    """The loss that is explained: (patterns,)."""
    group: Ints
    """Patterns that the columns do not tell apart have one number: (patterns,)."""
    of_groups: Floats
    """The sums over their rows: (5, groups)."""


@dataclass(frozen=True)
class LossRegression:
    """The losses of a log by pattern."""

    log: LogRows
    of_row: Ints
    columns: tuple[Column, ...]
    is_in: Flags
    """Whether rows of a pattern are in a column: (patterns, columns)."""
    sums: Floats
    """Sums over the rows of each pattern, see `LogRows.losses`: (6, patterns)."""
    fits: dict[frozenset[Column], _Fit] = field(default_factory=dict)
    """The regressions that were asked for, by the columns that are left out."""

    @classmethod
    def of(cls, log: LogRows) -> LossRegression:
        """Explain nothing: all rows have one pattern."""
        of_row, is_in = np.zeros(len(log.cell), np.int32), np.zeros((1, 0), bool)
        sums = np.append(len(of_row), log.compared.losses.of_log)[:, None]
        return cls(log, of_row, (), is_in, sums)

    def plus(self, column: Column, rows: Ints) -> LossRegression:
        """The regression with one more column: the patterns of its rows are split."""
        number, inside = len(self.is_in), self.losses(rows)
        [met] = np.nonzero(inside[0])
        new = np.zeros(number, np.int32)
        new[met] = number + np.arange(len(met))
        of_row = self.of_row.copy()
        of_row[rows] = new[of_row[rows]]
        is_new = np.repeat([False, True], [number, len(met)])
        is_in = np.column_stack([np.concatenate([self.is_in, self.is_in[met]]), is_new])
        sums = np.append(self.sums - inside, inside[:, met], axis=1)
        return LossRegression(self.log, of_row, (*self.columns, column), is_in, sums)

    def without(self, columns: Collection[Column]) -> LossRegression:
        """The regression without some columns."""
        kept = [place for place, one in enumerate(self.columns) if one not in columns]
        names = tuple(self.columns[place] for place in kept)
        return LossRegression(self.log, self.of_row, names, self.is_in[:, kept], self.sums)

    def losses(self, rows: Ints) -> Floats:
        """The sums of some rows by pattern, see `LogRows.losses`: (6, patterns)."""
        return self.log.losses(rows, self.of_row, len(self.is_in))

    def losses_of(self, column: Column) -> Floats:
        """The sums of the rows of a column by pattern: (6, patterns)."""
        return np.where(self.is_in[:, self.columns.index(column)], self.sums, 0.0)

    def unexplained(self, sums: Floats, but: frozenset[Column]) -> tuple[float, float]:
        """How many standard errors a slice loses more than the columns explain, but for some.

        It is the least of two: beside columns that add up, and among rows in the same columns. The
        second holds if these leave at least half as many rows of the slice free: of a slice that is
        what two columns have in common, they leave none. `sums` are of the slice, by pattern. Then
        comes the share of its free rows that the columns leave.
        """
        columns, inverse, fit, group, of_groups = self._fit(but)
        every, here = self._known[0], sums[1:, self._known[1]]
        share = columns @ (inverse @ (columns.T @ here[0]))
        evidence, free = score_test(here, every, fit, share)
        here_too, n = np.array([np.bincount(group, of) for of in here]), of_groups[0]
        among, free_among = score_test(here_too, of_groups, of_groups[1] / n, here_too[0] / n)
        least = float(min(evidence, among) if free_among >= free / 2 else evidence)
        weight, total = float(here[0].sum()), float(every[0].sum())
        alone = weight * (1 - weight / total) if total > 0 else 0.0
        return least, min(max(float(free) / alone, 0.0), 1.0) if alone > 0 else 0.0

    def at_most(self, weight: Floats, loss: Floats, overlaps: Sequence[Floats]) -> Floats:
        """Bounds of `unexplained`, with the mean variance alone, from rows in common: (slices,).

        `weight` and `loss` are of slices, `overlaps` the weight of their rows in each column.
        """
        columns, inverse, fit, *_ = self._fit(frozenset())
        every = self._known[0]
        in_common = np.column_stack([weight, *overlaps])
        free = weight - ((in_common @ inverse) * in_common).sum(1)
        left = loss - in_common @ (inverse @ (columns.T @ every[1]))
        mean = squared_residuals(every, fit).sum() / max(every[0].sum(), 1.0)
        with np.errstate(all="ignore"):
            most = np.maximum(left, 0.0) / np.sqrt(mean * free)
            most = most * (1 + 1e-6) + 1e-6  # for rounding
        return np.where(np.isfinite(most), most, math.inf)

    @cached_property
    def _known(self) -> tuple[Floats, Ints, Floats, Floats]:
        """The sums and the places of patterns with rows, their columns, and the rows in common.

        Weights are on a grid, so that these sums are exact, in any order.
        """
        [kept] = np.nonzero((self.sums[0] > 0) & (self.sums[1] > 0))
        every = self.sums[1:, kept]
        columns = np.column_stack([np.ones(len(kept)), self.is_in[kept]])
        return every, kept, columns, columns.T @ (every[0][:, None] * columns)

    def _fit(self, but: frozenset[Column]) -> _Fit:
        """The regression by least squares. One without a listed slice is asked for once."""
        if but in self.fits:
            return self.fits[but]
        every, _, columns, in_common = self._known
        kept = [0, *(1 + at for at, one in enumerate(self.columns) if one not in but)]
        columns, in_common = columns[:, kept], in_common[np.ix_(kept, kept)]
        inverse: Floats = np.linalg.pinv(in_common, _SPANNED, hermitian=True).astype(np.float64)
        group = np.zeros(len(columns), np.int64)
        for first in range(0, len(kept), 31):
            some = columns[:, first : first + 31].astype(np.int64)
            ids = group * 2**31 + some @ 2 ** np.arange(some.shape[1])
            _, group = np.unique(ids, return_inverse=True)
        explained = columns @ (inverse @ (columns.T @ every[1]))
        of_groups = np.array([np.bincount(group, of) for of in every])
        fit = _Fit(columns, inverse, explained, group, of_groups)
        if not any(isinstance(one, int) for one in but):
            self.fits[but] = fit
        return fit

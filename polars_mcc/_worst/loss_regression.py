"""The losses of rows → what slices, as columns of 0 and 1, explain of them.

Rows that are in the same columns have one pattern, so sums by pattern are enough.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from polars_mcc._metrics.slice_sums import Flags, Floats, Ints
from polars_mcc._worst.rows_of_slices import LogRows

Column: TypeAlias = "int | tuple[int, int]"
"""A slice, by its number; or a key that is cut, by its place, and the code of one of its bins."""

_FREE = 5.0
"""The least rows of a slice that a regression leaves free: else it explains the slice."""
_NOTHING = 1e-7
"""The part of a column that other columns leave, if they span it."""


class _Fit(NamedTuple):
    """A regression on some columns: arrays (patterns,)."""

    kept: Ints
    """The patterns that have rows."""
    sums: Floats
    axes: Floats
    """Orthonormal functions that span a constant and the columns: (functions, patterns)."""
    fit: Floats
    squares: Floats
    """Sums of w² and squared residuals."""


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
        return cls(log, of_row, (), is_in, log.losses_of_all)

    def plus(self, column: Column, rows: Ints) -> LossRegression:
        """The regression with one more column: the patterns of its rows are split."""
        number, inside = len(self.is_in), self.losses(rows)
        [met] = np.nonzero(np.bincount(self.of_row[rows], minlength=number))
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

    def unexplained(self, sums: Floats, but: frozenset[Column] = frozenset()) -> float:
        """How many standard errors a slice loses more than the columns explain, but for some.

        It is the score test with the variance of the residuals (White 1980), or if this is larger,
        with their mean: a slice almost without errors knows little of its variance. `sums` are
        those of the slice by pattern.
        """
        kept, (weight, *_), axes, fit, squares = self._fit(but)
        here = sums[1:, kept]
        share = _projected(axes, here[0])
        own = _squared_residuals(here, fit)
        free = float(here[0].sum() - (weight * share**2).sum())
        variance = float((own * (1 - share) ** 2 + (squares - own) * share**2).sum())
        variance = max(variance, float(squares.sum() / max(weight.sum(), 1)) * free)
        if free <= _FREE or variance <= 0:
            return 0.0
        return float((here[1] - here[0] * fit).sum()) / math.sqrt(variance)

    def _fit(self, but: frozenset[Column]) -> _Fit:
        """The regression by least squares, by Gram and Schmidt's process.

        NumPy's own sums do not depend on the number of threads, as those of BLAS do.
        """
        if but not in self.fits:
            [kept] = np.nonzero((self.sums[0] > 0) & (self.sums[1] > 0))
            sums = self.sums[1:, kept]
            weight, axes = sums[0], np.zeros((0, len(kept)))
            columns = self.without(but).is_in[kept].T.astype(np.float64)
            for column in (np.ones(len(kept)), *columns):
                left = column
                for _ in range(2):  # The second time takes what rounding left.
                    left = left - _projected(axes, weight * left)
                norm = math.sqrt((weight * left**2).sum())
                if norm > _NOTHING * math.sqrt((weight * column).sum()):
                    axes = np.append(axes, [left / norm], axis=0)
            fit = _projected(axes, sums[1])
            self.fits[but] = _Fit(kept, sums, axes, fit, _squared_residuals(sums, fit))
        return self.fits[but]


def _projected(axes: Floats, sums: Floats) -> Floats:
    """The part of sums by pattern, per row, that the axes span."""
    part: Floats = np.einsum("ap,a->p", axes, np.einsum("ap,p->a", axes, sums))
    return part


def _squared_residuals(sums: Floats, fit: Floats) -> Floats:
    """Sums of w² (y - fit)²."""
    _, _, squares, moved, squared = sums
    left: Floats = squared - 2 * fit * moved + fit**2 * squares
    return left

"""The losses of rows → what slices, as columns of 0 and 1, explain of them.

Rows that are in the same slices have one pattern. The rows that columns have in common, and the
losses of columns, are all that a regression needs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from polars_mcc._metrics.slice_sums import Flags, Floats, Ints
from polars_mcc._worst.rows_of_slices import Column, LogRows

_SPANNED = 1e-8
"""A column of which others leave a smaller share free is spanned by them."""


class _Fit(NamedTuple):
    """A regression on a constant and some columns."""

    used: Ints
    """The places of columns that are not spanned by others, in the matrix of rows in common."""
    inverse: Floats
    """The inverse of their matrix."""
    slopes: Floats


@dataclass(frozen=True)
class LossRegression:
    """The losses of a log, and the columns that explain them: slices, and bins of keys.

    Weights and losses are on a grid, so that their sums are exact, in any order.
    """

    log: LogRows
    columns: tuple[Column, ...]
    in_common: Floats
    """The weight of the rows that a constant and the columns have in common, two by two."""
    losses: Floats
    """The loss of all rows, and of the rows of each column."""
    of_row: Ints
    """The pattern of each row."""
    is_in: Flags
    """Whether rows of a pattern are in a slice: (patterns, slices). All patterns differ."""
    sums: Floats
    """The weight and the loss of each pattern: (2, patterns)."""
    fits: dict[frozenset[Column], _Fit] = field(default_factory=dict)
    """The regressions that were asked for, by the columns that are left out."""

    @classmethod
    def of(cls, log: LogRows) -> LossRegression:
        """Explain nothing: all rows have one pattern."""
        of_log = log.compared.losses.of_log[:2, None]
        of_row, is_in = np.zeros(len(log.cell), np.int32), np.zeros((1, 0), bool)
        return cls(log, (), of_log[:1], of_log[1], of_row, is_in, of_log)

    @property
    def slices(self) -> list[Column]:
        """The columns that are slices, in the order of `is_in`."""
        return [one for one in self.columns if isinstance(one, int)]

    def plus(self, column: Column) -> LossRegression:
        """The regression with one more column. A slice splits the patterns of its rows."""
        rows = self.log.of_column(column)
        inside = self.by_pattern(rows)
        weights, (weight, loss) = self.weights(rows, inside), inside.sum(axis=1)
        in_common = np.block([[self.in_common, weights[:, None]], [weights, weight]])
        columns, losses = (*self.columns, column), np.append(self.losses, loss)
        more = replace(self, columns=columns, in_common=in_common, losses=losses, fits={})
        if not isinstance(column, int):
            return more
        number = len(self.is_in)
        [met] = np.nonzero(inside[0])
        new = np.zeros(number, np.int32)
        new[met] = number + np.arange(len(met))
        of_row = self.of_row.copy()
        of_row[rows] = new[of_row[rows]]
        is_new = np.repeat([False, True], [number, len(met)])
        is_in = np.column_stack([np.concatenate([self.is_in, self.is_in[met]]), is_new])
        sums = np.append(self.sums - inside, inside[:, met], axis=1)
        return replace(more, of_row=of_row, is_in=is_in, sums=sums)

    def without(self, columns: Collection[Column]) -> LossRegression:
        """The regression without some columns."""
        kept, of_patterns = self._kept(columns), [one not in columns for one in self.slices]
        is_in, group = np.unique(self.is_in[:, of_patterns], axis=0, return_inverse=True)
        return replace(
            self,
            columns=tuple(one for one in self.columns if one not in columns),
            in_common=self.in_common[np.ix_(kept, kept)],
            losses=self.losses[kept],
            of_row=group.astype(np.int32)[self.of_row],
            is_in=is_in,
            sums=np.array([np.bincount(group, of) for of in self.sums]),
            fits={},
        )

    def _kept(self, but: Collection[Column]) -> Ints:
        """The places of the constant and of all columns but some."""
        return np.array([0, *(at for at, one in enumerate(self.columns, 1) if one not in but)])

    def by_pattern(self, rows: Ints) -> Floats:
        """The weight and the loss of some rows by pattern: (2, patterns)."""
        return self.log.losses(rows, self.of_row, len(self.is_in))

    def weights(self, rows: Ints, inside: Floats) -> Floats:
        """The weight of some rows, and of those in each column. `inside` is by pattern."""
        found = dict(zip(self.slices, inside[0] @ self.is_in, strict=True))
        weight = self.log.weight(rows) if self.cut_keys else None
        for key in self.cut_keys:
            of_bins = np.bincount(self.log.codes(key)[rows], weight)
            found |= {(key, code): of for code, of in enumerate(of_bins)}
        return np.array([inside[0].sum(), *(found.get(one, 0.0) for one in self.columns)])

    def of_column(self, column: Column) -> tuple[Floats, Floats]:
        """The rows of a slice that is a column: `by_pattern` and `weights`."""
        inside = np.where(self.is_in[:, self.slices.index(column)], self.sums, 0.0)
        return inside, self.in_common[1 + self.columns.index(column)]

    @property
    def cut_keys(self) -> set[int]:
        """The keys whose bins are columns."""
        return {one[0] for one in self.columns if isinstance(one, tuple)}

    def bins_of(self, key: int) -> frozenset[Column]:
        """The columns that are bins of a key."""
        return frozenset(one for one in self.columns if isinstance(one, tuple) and one[0] == key)

    def unexplained(
        self, weights: Floats, loss: Floats, but: frozenset[Column] = frozenset()
    ) -> tuple[Floats, Floats]:
        """What slices lose more than the columns, but some, add up to; and their free rows.

        Free rows are the square of what is left of the column of a slice. `weights` are (slices, 1
        + columns), see `weights`; all others (slices,).
        """
        used, inverse, slopes = self._fit(but)
        some = weights[:, used]
        return loss - some @ slopes, weights[:, 0] - ((some @ inverse) * some).sum(axis=1)

    def unexplained_among(self, slice_: Column, inside: Floats) -> tuple[Floats, Floats]:
        """The same of one slice, among the rows that are in the same slices but this one."""
        every = self.sums
        if slice_ in self.columns:
            every, column = every.copy(), self.slices.index(slice_)
            for place in np.flatnonzero(self.is_in[:, column]).tolist():
                twin = self.is_in[place].copy()
                twin[column] = False
                if (there := self._place_of.get(twin.tobytes())) is not None:
                    every[:, place] += self.sums[:, there]
        share = inside[0] / np.where(every[0] > 0, every[0], 1.0)
        return (inside[1] - share * every[1]).sum(), (inside[0] - share * inside[0]).sum()

    @cached_property
    def _place_of(self) -> dict[bytes, int]:
        """The place of each pattern, by its row of `is_in`."""
        return {row.tobytes(): place for place, row in enumerate(self.is_in)}

    @cached_property
    def _every_column(self) -> tuple[Floats, Flags]:
        """The regression on all columns, and which are swept."""
        table = np.block([[self.in_common, self.losses[:, None]], [self.losses, 0.0]])
        return self._swept(table, np.zeros(len(self.losses), bool), np.arange(len(self.losses)))

    def _swept(self, table: Floats, is_swept: Flags, columns: Ints) -> tuple[Floats, Flags]:
        """Sweep columns in, but for those that others span."""
        is_swept = is_swept.copy()
        for at in columns.tolist():
            if not is_swept[at] and table[at, at] > _SPANNED * self.in_common[at, at]:
                table, is_swept[at] = _sweep(table, at), True
        return table, is_swept

    def _fit(self, but: frozenset[Column]) -> _Fit:
        """The regression by least squares: columns are swept out again."""
        if but not in self.fits:
            table, is_swept = self._every_column
            kept = self._kept(but)
            is_used = is_swept & np.isin(np.arange(len(is_swept)), kept)
            for at in np.flatnonzero(is_swept & ~is_used).tolist():
                table = _sweep(table, at)
            table, is_used = self._swept(table, is_used, kept)
            [used] = np.nonzero(is_used)
            self.fits[but] = _Fit(used, table[np.ix_(used, used)], table[used, -1])
        return self.fits[but]


def _sweep(table: Floats, at: int) -> Floats:
    """Sweep a column into a regression, or out of it.

    J. H. Goodnight, The American Statistician 33 (1979) 149-158.
    """
    row = table[at] / table[at, at]
    swept: Floats = table - np.outer(table[:, at], row)
    swept[:, at] = -table[:, at] / table[at, at]
    swept[at] = row
    swept[at, at] = 1 / table[at, at]
    return swept

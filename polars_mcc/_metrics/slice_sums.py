"""Rows that belong to slices, and sums over them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Flags: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[Any]
"""Integers of any width: places of rows, or counts."""
_EXACT = 2**52  # floats add up integers exactly, and far faster
_SPARSE = 8  # possible numbers, per number; for more, to sort is faster than to count


@dataclass(frozen=True)
class Segments:
    """Which rows belong to which slice: the rows of a slice follow each other.

    `starts` has the place of the first row of each slice; `size` is the number of rows.
    """

    starts: Ints
    size: int

    @classmethod
    def of(cls, slices: Ints, number: int) -> Segments:
        """The segments of rows that are sorted by the number of their slice."""
        return cls(np.searchsorted(slices, np.arange(number)), len(slices))

    @cached_property
    def lengths(self) -> Ints:
        """How many rows each slice has."""
        return np.diff(self.starts, append=self.size)

    @cached_property
    def of_row(self) -> Ints:
        """The number of the slice of each row."""
        return np.repeat(np.arange(len(self.starts)), self.lengths)

    def sum(self, values: Floats) -> Floats:
        """Add up the rows of each slice, along the last axis."""
        return self._reduced(np.add, values, 0.0)

    def max(self, values: Floats) -> Floats:
        """The largest number of each slice; NaN without any."""
        return self._reduced(np.fmax, values, math.nan)

    def min(self, values: Floats) -> Floats:
        """The least number of each slice; NaN without any."""
        return self._reduced(np.fmin, values, math.nan)

    def first(self, values: Floats) -> Floats:
        """The number of the first row of each slice; NaN without any."""
        firsts = np.full((*values.shape[:-1], len(self.starts)), math.nan)
        firsts[..., self._filled] = values[..., self.starts[self._filled]]
        return firsts

    def spread(self, values: Floats) -> Floats:
        """Repeat the number of each slice on its rows."""
        return values[..., self.of_row]

    def rows_of(self, chosen: Ints) -> tuple[Ints, Ints]:
        """The rows of chosen slices. For each row: the place of its choice, and its own place."""
        lengths = self.lengths[chosen]
        of_choice = np.repeat(np.arange(len(chosen)), lengths)
        first = np.repeat(np.cumsum(lengths) - lengths, lengths)
        return of_choice, np.arange(len(of_choice)) - first + self.starts[chosen][of_choice]

    def cumulated(self, values: Floats) -> Floats:
        """Add up the rows of each slice up to and with each row, along the last axis."""
        sums = np.empty_like(values)
        for start, length in zip(self.starts.tolist(), self.lengths.tolist(), strict=True):
            rows = slice(start, start + length)
            sums[..., rows] = np.cumsum(values[..., rows], axis=-1)
        return sums

    def steps(self, values: Floats) -> Floats:
        """How much each row is more than the row before it; the first row of a slice as it is."""
        before = np.append(0.0, values[:-1])
        before[self.starts[self._filled]] = 0.0
        more: Floats = values - before
        return more

    @cached_property
    def _filled(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.lengths > 0)

    def _reduced(self, how: np.ufunc, values: Floats, nothing: float) -> Floats:
        starts = self.starts[self._filled]
        values = np.broadcast_to(values, (*values.shape[:-1], self.size))  # one number for all rows
        reduced = np.full((*values.shape[:-1], len(self.starts)), nothing)
        if len(starts):
            reduced[..., self._filled] = how.reduceat(values, starts, axis=-1)
        return reduced


def places_in(ids: Ints, wanted: Ints) -> Ints:
    """The places of numbers among sorted numbers; -1 where there is no such number."""
    if not len(ids):
        return np.full(len(wanted), -1)
    places = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[places] == wanted, places, -1)


def sorted_rows(*columns: Ints) -> tuple[Ints, Flags]:
    """The stable order of rows by columns of integers from -1 on, and which begin a new group."""
    number = max(len(columns[0]), 1)
    sizes = [int(column.max(initial=-1)) + 2 for column in columns]
    if math.prod(sizes) * number >= 2**63:
        order = np.lexsort(columns[::-1])
        ordered = np.stack(columns).astype(np.int64)[:, order]
        is_new: Flags = np.asarray(np.diff(ordered, prepend=-2).any(axis=0))
        return order, is_new
    ids = np.zeros(len(columns[0]), np.int64)
    for column, size in zip(columns, sizes, strict=True):
        ids = ids * size + (column + 1)
    places, steps = np.arange(len(ids)), np.diff(ids, prepend=-1)
    if (steps >= 0).all():
        return places, steps > 0
    # To sort integers that have their place is far faster than to ask for the order.
    group, order = np.divmod(np.sort(ids * number + places), number)
    return order, np.diff(group, prepend=-1) > 0


def numbered(ids: Ints) -> tuple[Ints, Ints]:
    """The distinct numbers, sorted; and the place of each number among them."""
    size = int(ids.max(initial=-1)) + 1
    if size > _SPARSE * len(ids):
        return np.unique(ids, return_inverse=True)
    occurs = np.zeros(size, bool)
    occurs[ids] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[ids]


def added_up(values: Floats | Ints, places: Ints, number: int) -> Floats:
    """Add up the numbers that have the same place, from 0 to `number`: integers exactly."""
    is_integer = values.dtype.kind == "i"
    if is_integer and np.abs(values, dtype=np.float64).sum() > _EXACT:
        total: Any = np.zeros(number, np.int64)
        np.add.at(total, places, values)
    else:
        total = np.bincount(places, values, number).astype(np.int64 if is_integer else np.float64)
    sums: Floats = total
    return sums

"""Which slices are listed: a stepwise regression of the loss of rows on slices.

The loss of a row is minus its influence on the score of all rows. Slices are columns of 0 and 1. A
slice has two evidences, in standard errors: z of its own score beside the rest of the log, and L of
its losses. The listed slices leave ℓ of L: of what they add up to, and among the rows that are in
the same of them. So the slice keeps z·ℓ/L. Where losses say little, as of slices with another mix
of labels, it keeps z - (L - ℓ), times the root of the share of its rows that is not in them.

The rows that slices have in common give a bound of ℓ. So rows are looked at only for the slices
that may be the next ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from polars_mcc._comparisons.evidence_and_p_values import evidence_of
from polars_mcc._metrics.slice_sums import Flags, Floats, Ints
from polars_mcc._worst.loss_regression import LossRegression
from polars_mcc._worst.row_losses import evidence_of_losses
from polars_mcc._worst.rows_of_slices import Column, LogRows, spans
from polars_mcc._worst.slice_counts import weights_of_values
from polars_mcc._worst.slice_scores import LENIENT, ComparedSlices, Cutoff, p_of

if TYPE_CHECKING:
    from polars_mcc._counts.parquet_files import Codes

_TELLING = 2.0
"""Where losses give more evidence than this, the share of it that is explained is telling."""
_OWN = 3.0
"""The evidence that a slice must keep beside one with fewer keys, to be listed instead of it."""
_ROWS_AT_ONCE = 2**18
"""Rows that are counted for exact evidence at once, if a log has fewer."""
_SECOND = 0.5
"""The share of its evidence that a slice must keep beside another range of the same number."""


class SliceList(NamedTuple):
    """The listed slices, by their numbers, and what is known of others."""

    slices: Ints
    beside: Floats
    """The evidence of each beside all other listed slices."""
    own: dict[int, float]
    """The exact evidence, beside the rest of the log, of all slices that were counted."""
    beyond: Ints
    """Slices that did not fit in the list."""


def list_slices(rows: LogRows, cutoff: Cutoff) -> SliceList:
    """List slices, and take them from the list, until no other is sure beside those listed."""
    near = _candidates(rows.compared, rows.compared.comparisons.evidence * cutoff.surer, cutoff)
    if len(near):
        steps = _Steps(rows, cutoff, near)
        if steps.can_begin():
            return steps.taken()
        return SliceList(near[:0], np.zeros(0), steps.near.known_own, near[:0])
    return SliceList(near, np.zeros(0), {}, near)


def _candidates(compared: ComparedSlices, evidence: Floats, cutoff: Cutoff) -> Ints:
    """The slices that are behind, the surest first."""
    [near] = np.nonzero(compared.is_distinct & (evidence > evidence_of(LENIENT * cutoff.level)))
    places = compared.places(near)
    ranked_keys = sorted(zip(compared.keys, places.T, strict=True), key=lambda both: -both[0].size)
    ranks = [key.rank[of_key] for key, of_key in ranked_keys]
    sets, n_keys = np.searchsorted(compared.starts, near, "right"), (places >= 0).sum(1)
    # Equal evidence: fewer keys, more rows, and then the order of the values.
    order = np.lexsort([*reversed(ranks), sets, -compared.n[near], n_keys, -evidence[near]])
    ranked: Ints = near[order]
    return ranked


class _Steps:
    """The steps of the regression. Slices are known by their places among the candidates."""

    def __init__(self, rows: LogRows, cutoff: Cutoff, near: Ints) -> None:
        """Begin with no slice. Those `near` have evidence that could be enough to be listed."""
        self.cutoff = cutoff
        self.near = _Candidates(rows, cutoff, near)
        self.listed: list[int] = []
        self.is_out = np.zeros(len(near), bool)
        self.regression = LossRegression.of(rows)

    def can_begin(self) -> bool:
        """Whether the own p-values of all slices allow a list: then the first step is taken."""
        known, most = np.ones(len(self.near.most)), np.array([*map(p_of, self.near.most)])
        for at in range(len(most)):
            known[at] = most[at] = p_of(self.near.own(at))
            is_sure, may_be = self.cutoff.allows_any(known), self.cutoff.allows_any(most)
            if is_sure or not may_be:
                return is_sure
        return False

    def taken(self) -> SliceList:
        """Take all steps."""
        every = np.ones(len(self.is_out), bool)
        while len(self.listed) < self.cutoff.longest:
            best = next(self._surest(every), None)
            if best is None:
                break
            self._list(self._coarsest(best))
        is_full = len(self.listed) == self.cutoff.longest
        more = [*self._surest(every)] if is_full else []
        beside = np.array([*map(self.beside, self.listed)])
        slices = self.near.slices
        return SliceList(slices[self.listed], beside, self.near.known_own, slices[more])

    def _surest(self, among: Flags) -> Iterator[int]:
        """The slices that are sure beside the listed ones, the surest first.

        Bounds tell which are looked at.
        """
        near = self.near
        left = near.left_at_most(self.regression, self.listed)
        left[~among | self.is_out] = left[self.listed] = -math.inf
        is_exact = np.zeros(len(left), bool)
        while self._is_sure(left[at := int(np.argmax(left))]):
            if is_exact[at]:
                left[at] = -math.inf
                yield at
            else:
                left[at], is_exact[at] = self.beside(at), True

    def _is_sure(self, left: float) -> bool:
        if not self.listed:
            return left >= self.near.least
        return self.cutoff.passes(left, len(self.listed) + 1)

    def beside(self, at: int) -> float:
        """The evidence of a slice beside those listed, or beside the others of them."""
        return self.near.left(at, self.regression, self.listed)

    def _coarsest(self, best: int) -> int:
        """A slice, or the one with fewer keys that explains it."""
        n_keys = self.near.has_key.sum(axis=1)
        while True:
            wholes = (n_keys < n_keys[best]) & self.near.contain(best)
            whole = next(self._surest(wholes), None)
            if whole is None:
                return best
            if self.near.left(best, self._with(whole), [*self.listed, whole]) >= _OWN:
                return best
            best = whole

    def _list(self, at: int) -> None:
        """List a slice. Then slices that the others explain leave the list, the weakest first."""
        self.regression = self._with(at)
        self.listed.append(at)
        while len(self.listed) > 1:
            beside = [*map(self.beside, self.listed)]
            weakest = int(np.argmin(beside))
            if self.cutoff.passes(beside[weakest], len(self.listed)):
                break
            gone = self.listed.pop(weakest)
            self.is_out[gone] = True
            unused = {*self.regression.cut_keys} - {*self.near.number[self.listed].tolist()}
            bins = [one for key in unused for one in self.regression.bins_of(key)]
            self.regression = self.regression.without([int(self.near.slices[gone]), *bins])

    def _with(self, at: int) -> LossRegression:
        """The regression with one more slice. A range of a number comes with the bins of it."""
        regression, number = self.regression.plus(int(self.near.slices[at])), self.near.number[at]
        if number >= 0 and number not in regression.cut_keys:
            for code in range(1, self.near.rows.compared.keys[number].size):
                regression = regression.plus((int(number), code))
        return regression


def _left_of(own: Floats, alone: Floats, left: Floats, free: float = 1.0) -> Floats:
    """The own evidence, less what is explained of the evidence by losses.

    Where losses say little, the share of free rows says how much is left.
    """
    share = np.clip(left / np.maximum(alone, _TELLING), 0.0, 1.0)
    less = np.maximum(own - np.maximum(alone - left, 0.0), 0.0) * math.sqrt(free)
    beside: Floats = np.where(alone > _TELLING, own * share, less)
    return beside


class _Candidates:
    """The slices that may be listed: what is known of each, and what a list leaves of it."""

    def __init__(self, rows: LogRows, cutoff: Cutoff, slices: Ints) -> None:
        self.rows, self.slices = rows, slices
        compared = rows.compared
        self.least = evidence_of(cutoff.level)
        """The least evidence of the own score of a slice that may be listed."""
        evidence = compared.comparisons.evidence[slices] * cutoff.surer
        # With 1 / LENIENT of the p-value, z²/2 is larger by ln LENIENT at most.
        self.most: Floats = np.sqrt(evidence**2 + 2 * math.log(LENIENT))
        """The most own evidence that each may have."""
        self.known_own: dict[int, float] = {}
        self.firsts, self.lasts = spans(compared, slices)
        self.has_key = self.firsts >= 0
        is_cut = np.array([key.is_cut for key in compared.keys])
        self.number = np.where(self.has_key.sum(axis=1) == 1, self.has_key.argmax(axis=1), -1)
        """The key of a slice that is a range of one number, or of times; else -1."""
        self.number[~is_cut[self.number]] = -1
        self.weight, self.loss, self.error = compared.comparisons.losses[slices].T
        left, self.free = LossRegression.of(rows).unexplained(self.weight[:, None], self.loss)
        self.alone = evidence_of_losses(left, self.free, self.error)
        """The evidence by losses beside no others."""
        self.places = compared.places(slices)
        self.of_set = np.searchsorted(compared.starts, slices, "right") - 1
        self.in_columns: dict[Column, Floats] = {}
        self.second_ranges: dict[int, Flags] = {}
        self.within: dict[tuple[int, int], float] = {}

    def own(self, at: int) -> float:
        """The evidence of the own score of a slice; 0 if it may not be listed."""
        if int(self.slices[at]) not in self.known_own:
            # In small logs, many at once take little longer than one.
            is_new = ~np.isin(self.slices, [*self.known_own])
            others = np.flatnonzero(is_new & (np.arange(len(is_new)) != at))
            some = [at, *others[: min(_ROWS_AT_ONCE // len(self.rows.cell), 15)].tolist()]
            slices = self.slices[some].tolist()
            own = self.rows.evidence(slices)
            self.known_own |= zip(slices, own, strict=True)
            self.most[some] = [one if one >= self.least else 0.0 for one in own]
        return float(self.most[at])

    def contain(self, at: int) -> Flags:
        """Whether each slice contains a slice."""
        is_in = (self.firsts <= self.firsts[at]) & (self.lasts >= self.lasts[at])
        contains: Flags = is_in.all(axis=1)
        return contains

    def left(self, at: int, regression: LossRegression, listed: Sequence[int]) -> float:
        """The evidence of a slice beside those listed, or beside the others of them.

        It is not more than its own evidence beside the other rows of each of these that contains
        it.
        """
        alone, left, free = self.alone[at], *self._unexplained(at, regression)
        if left < _SECOND * alone and self._are_second_ranges(listed)[at]:
            return 0.0
        beside = float(_left_of(np.array(self.own(at)), alone, left, free))
        if beside >= self.least:
            contains = self.contain(at)
            for whole in listed:
                if whole != at and contains[whole]:
                    if (at, whole) not in self.within:
                        one, other = int(self.slices[at]), int(self.slices[whole])
                        [self.within[at, whole]] = self.rows.evidence([one], other)
                    beside = min(beside, self.within[at, whole])
        return beside

    def _unexplained(self, at: int, regression: LossRegression) -> tuple[Floats, float]:
        """The evidence of a slice by losses, beside the columns of a regression.

        It is the least of two: beside columns that add up, and among rows in the same slices, if
        these leave at least half as many rows free. Then comes the share of its free rows that the
        columns leave.
        """
        slice_ = int(self.slices[at])
        if slice_ in regression.columns:
            inside, weights = regression.of_column(slice_)
        else:
            rows = self.rows.of_column(slice_)
            inside = regression.by_pattern(rows)
            weights = regression.weights(rows, inside)
        but = regression.bins_of(self.number[at]) | ({slice_} & {*regression.columns})
        left, free = regression.unexplained(weights[None], inside[1].sum(), but)
        left_among, free_among = regression.unexplained_among(slice_, inside)
        least = evidence_of_losses(left, free, self.error[at])
        if free_among >= free / 2:
            least = np.minimum(least, evidence_of_losses(left_among, free_among, self.error[at]))
        share = float(free[0]) / self.free[at] if self.free[at] > 0 else 0.0
        return least[0], min(max(share, 0.0), 1.0)

    def _are_second_ranges(self, listed: Sequence[int]) -> Flags:
        """Whether each slice overlaps a listed one with the same keys: it has other ranges."""
        is_second = np.zeros(len(self.slices), bool)
        for one in listed:
            if one not in self.second_ranges:
                same_keys = self.has_key == self.has_key[one]
                ends = np.minimum(self.lasts, self.lasts[one])
                overlap = np.maximum(self.firsts, self.firsts[one]) <= ends
                self.second_ranges[one] = (same_keys & overlap).all(axis=1)
                self.second_ranges[one][one] = False
            is_second |= self.second_ranges[one]
        return is_second

    def left_at_most(self, regression: LossRegression, listed: Sequence[int]) -> Floats:
        """The most evidence that each slice may keep: (slices,)."""
        for column in regression.columns:
            if column not in self.in_columns:
                self.in_columns[column] = self._in_common(column)
        in_columns = [self.in_columns[column] for column in regression.columns]
        weights = np.column_stack([self.weight, *in_columns])
        left, free = regression.unexplained(weights, self.loss)
        for number in regression.cut_keys:
            some, but = self.number == number, regression.bins_of(number)
            left[some], free[some] = regression.unexplained(weights[some], self.loss[some], but)
        bounds = evidence_of_losses(left, free, self.error) * (1 + 1e-6) + 1e-6  # for rounding
        bounds = np.where(np.isnan(left), math.inf, bounds)
        is_explained = (bounds < _SECOND * self.alone) & self._are_second_ranges(listed)
        return np.where(is_explained, 0.0, _left_of(self.most, self.alone, bounds))

    def _in_common(self, column: Column) -> Floats:
        """The weight of the rows that slices have in common with a column. NaN if not known."""
        compared, logged = self.rows.compared, self.rows.search.log.rows
        rows = self.rows.of_column(column)
        weight, in_common = self.rows.weight(rows), np.full(len(self.slices), math.nan)
        codes: dict[str, Codes] = {}
        for number in np.unique(self.of_set).tolist():
            keys = compared.sets[number].keys
            new = [key.column for key in keys if key.column not in codes]
            codes |= {name: logged[name][rows] for name in new}
            table = weights_of_values(keys, codes, weight)
            if table is not None:
                [here] = np.nonzero(self.of_set == number)
                places = [self.places[here, compared.keys.index(key)] for key in keys]
                in_common[here] = table[tuple(places)]
        return in_common

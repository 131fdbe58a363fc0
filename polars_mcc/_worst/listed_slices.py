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
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from polars_mcc._comparisons.evidence_and_p_values import evidence_of
from polars_mcc._intervals.interval_methods import normal
from polars_mcc._metrics.slice_sums import Floats, Ints
from polars_mcc._worst.loss_regression import LossRegression
from polars_mcc._worst.p_value_cutoff import LENIENT, Cutoff
from polars_mcc._worst.rows_of_slices import Column, LogRows, spans
from polars_mcc._worst.slice_counts import weights_of_values
from polars_mcc._worst.slice_scores import ComparedSlices

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
        return SliceList(near[:0], np.zeros(0), steps.known_own, near[:0])
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
    """The steps of the regression. Slices are known by their numbers."""

    def __init__(self, rows: LogRows, cutoff: Cutoff, near: Ints) -> None:
        """Begin with no slice. Those `near` have evidence that could be enough to be listed."""
        self.rows, self.cutoff = rows, cutoff
        self.known_own: dict[int, float] = {}
        self.least = evidence_of(cutoff.level)
        """The least evidence of the own score of a slice that may be listed."""
        evidence = rows.compared.comparisons.evidence[near] * cutoff.surer
        # With 1 / LENIENT of the p-value, z²/2 is larger by ln LENIENT at most.
        most = np.sqrt(evidence**2 + 2 * math.log(LENIENT))
        self.most = dict(zip(near.tolist(), most.tolist(), strict=True))
        """The most own evidence that each may have."""
        firsts, lasts = spans(rows.compared, near)
        self.spans = dict(zip(near.tolist(), zip(firsts, lasts, strict=True), strict=True))
        self.keys_of = {at: (first >= 0).tobytes() for at, (first, _) in self.spans.items()}
        self.numbers = {at: self._number(at) for at in near.tolist()}
        """The key of a slice that is a range of one number, or of one time."""
        self.within: dict[tuple[int, int], float] = {}
        self.listed: list[int] = []
        self.out: set[int] = set()
        self.common = _RowsInCommon(rows, near)
        self.regression = LossRegression.of(rows)

    def _number(self, at: int) -> int | None:
        [keys] = np.nonzero(self.spans[at][0] >= 0)
        is_range = len(keys) == 1 and self.rows.compared.keys[keys[0]].is_cut
        return int(keys[0]) if is_range else None

    def can_begin(self) -> bool:
        """Whether the own p-values of all slices allow a list: then the first step is taken."""
        most = np.array(normal(np.array([*self.most.values()])))
        known = np.ones(len(most))
        for place, at in enumerate(self.most):
            known[place] = most[place] = normal(np.array([self.own(at)]))[0]
            is_sure, may_be = self.cutoff.allows_any(known), self.cutoff.allows_any(most)
            if is_sure or not may_be:
                return is_sure
        return False

    def taken(self) -> SliceList:
        """Take all steps."""
        every = self.common.slices
        while len(self.listed) < self.cutoff.longest:
            best = next(self._surest(every), None)
            if best is None:
                break
            self._list(self._coarsest(best))
        is_full = len(self.listed) == self.cutoff.longest
        more = [*self._surest(every)] if is_full else []
        listed, beyond = (np.array(of, np.int64) for of in (self.listed, more))
        beside = np.array([*map(self.beside, self.listed)])
        return SliceList(listed, beside, self.known_own, beyond)

    def _surest(self, among: Ints) -> Iterator[int]:
        """The slices that are sure beside the listed ones, the surest first.

        Bounds tell which are looked at.
        """
        slices, alone = self.common.slices, self.common.losses[:, 0]
        numbers = slices.tolist()
        most = np.array([*map(self._most, numbers)])
        bounds = self.common.bounds(self.regression)
        left = _left_of(most, alone, bounds)
        [weak] = np.nonzero((bounds < _SECOND * alone) & (left > 0))
        left[weak[[self._is_second_range(numbers[at]) for at in weak.tolist()]]] = 0.0
        has_bins = {one[0] for one in self.regression.columns if isinstance(one, tuple)}
        is_range = np.array([self.numbers[at] in has_bins for at in numbers])
        left[is_range] = most[is_range]
        left[~np.isin(slices, among) | np.isin(slices, [*self.listed, *self.out])] = -math.inf
        exact: set[int] = set()
        while self._is_sure(left[place := int(np.argmax(left))]):
            if place in exact:
                left[place] = -math.inf
                yield numbers[place]
            else:
                left[place] = self.beside(numbers[place])
                exact.add(place)

    def _is_sure(self, left: float) -> bool:
        if not self.listed:
            return left >= self.least
        return self.cutoff.passes(left, len(self.listed) + 1)

    def own(self, at: int) -> float:
        """The evidence of the own score of a slice; 0 if it may not be listed."""
        if at not in self.known_own:
            # In small logs, many at once take little longer than one.
            others = (one for one in self.most if one not in self.known_own and one != at)
            some = [at, *islice(others, min(_ROWS_AT_ONCE // len(self.rows.cell), 15))]
            self.known_own |= zip(some, self.rows.evidence(some), strict=True)
        return self.known_own[at] if self.known_own[at] >= self.least else 0.0

    def _most(self, at: int) -> float:
        """The most own evidence that a slice may have."""
        return self.own(at) if at in self.known_own else self.most[at]

    def beside(self, at: int) -> float:
        """The evidence of a slice beside those listed, or beside the others of them."""
        return self._within(at, self._kept(at, *self._of_losses(at, self.regression)))

    def _of_losses(self, at: int, regression: LossRegression) -> tuple[float, float, float]:
        """The evidence of a slice by losses: alone, and beside the columns of a regression.

        Then comes the share of its free rows that these leave. A range of a number is not beside
        the bins of this number.
        """
        number, columns = self.numbers[at], regression.columns
        if at in columns:
            sums = regression.losses_of(at)
        else:
            sums = regression.losses(self.rows.of_column(at))
        own = [one for one in columns if one == at or (isinstance(one, tuple) and one[0] == number)]
        alone = float(self.rows.compared.comparisons.losses[at, 0])
        return alone, *regression.unexplained(sums, frozenset(own))

    def _kept(self, at: int, alone: float, left: float, free: float) -> float:
        """What others leave of the own evidence of a slice, by its evidence by losses."""
        if left < _SECOND * alone and self._is_second_range(at):
            return 0.0
        own = np.array(self.own(at))
        return float(_left_of(own, np.array(alone), np.array(left), free))

    def _is_second_range(self, at: int) -> bool:
        """Whether a slice overlaps a listed one with the same keys: it has other ranges."""
        keys = self.keys_of[at]
        same = [one for one in self.listed if one != at and self.keys_of[one] == keys]
        (first, last), others = self.spans[at], [self.spans[one] for one in same]
        return any((np.maximum(first, a) <= np.minimum(last, b)).all() for a, b in others)

    def _within(self, at: int, beside: float) -> float:
        """The least of some evidence, and of that beside the other rows of each listed whole."""
        for whole in self.listed if beside >= self.least else ():
            if whole != at and self._contains(whole, at):
                if (at, whole) not in self.within:
                    [self.within[at, whole]] = self.rows.evidence([at], whole)
                beside = min(beside, self.within[at, whole])
        return beside

    def _contains(self, whole: int, part: int) -> bool:
        (first, last), (first_part, last_part) = self.spans[whole], self.spans[part]
        return bool(((first <= first_part) & (last >= last_part)).all())

    def _coarsest(self, best: int) -> int:
        """A slice, or the one with fewer keys that explains it."""
        while True:
            whole = next(self._surest(self._wholes(best)), None)
            if whole is None:
                return best
            losses = self._of_losses(best, self._with(whole))
            self.listed.append(whole)
            beside = self._within(best, self._kept(best, *losses))
            self.listed.pop()
            if beside >= _OWN:
                return best
            best = whole

    def _wholes(self, at: int) -> Ints:
        """The slices with fewer keys that contain a slice."""
        n_keys = sum(self.keys_of[at])
        found = (one for one in self.spans if sum(self.keys_of[one]) < n_keys)
        return np.array([one for one in found if self._contains(one, at)], np.int64)

    def _list(self, slice_: int) -> None:
        """List a slice. Then slices that the others explain leave the list, the weakest first."""
        self.regression = self._with(slice_)
        self.listed.append(slice_)
        while len(self.listed) > 1:
            beside = [*map(self.beside, self.listed)]
            weakest = int(np.argmin(beside))
            if self.cutoff.passes(beside[weakest], len(self.listed)):
                break
            gone = self.listed.pop(weakest)
            self.out.add(gone)
            numbers = {self.numbers[at] for at in self.listed}
            bins = [one for one in self.regression.columns if isinstance(one, tuple)]
            unused = [one for one in bins if one[0] not in numbers]
            self.regression = self.regression.without([gone, *unused])

    def _with(self, slice_: int) -> LossRegression:
        """The regression with one more slice. A range of a number comes with the bins of it."""
        regression, number = self.regression, self.numbers[slice_]
        columns: list[Column] = [slice_]
        if number is not None and (number, 1) not in regression.columns:
            columns += [(number, code) for code in range(1, self.rows.compared.keys[number].size)]
        for column in columns:
            regression = regression.plus(column, self.rows.of_column(column))
        return regression


def _left_of(own: Floats, alone: Floats, left: Floats, free: float = 1.0) -> Floats:
    """The own evidence, less what is explained of the evidence by losses.

    Where losses say little, the share of free rows says how much is left.
    """
    share = np.clip(left / np.maximum(alone, _TELLING), 0.0, 1.0)
    less = np.maximum(own - np.maximum(alone - left, 0.0), 0.0) * math.sqrt(free)
    beside: Floats = np.where(alone > _TELLING, own * share, less)
    return beside


class _RowsInCommon:
    """Candidates, and how many rows they have in common with the columns of a regression."""

    def __init__(self, rows: LogRows, slices: Ints) -> None:
        """Sort slices by their keys, as the keys of a set are counted at once."""
        self.rows, self.slices = rows, slices
        compared = rows.compared
        self.losses = compared.comparisons.losses[slices]
        self.places = compared.places(slices)
        self.of_set = np.searchsorted(compared.starts, slices, "right") - 1
        self.in_columns: dict[Column, Floats] = {}

    def bounds(self, regression: LossRegression) -> Floats:
        """The most evidence that each slice may keep by its losses: (slices,)."""
        for column in regression.columns:
            if column not in self.in_columns:
                self.in_columns[column] = self._in_common(column)
        overlaps = [self.in_columns[column] for column in regression.columns]
        return regression.at_most(self.losses[:, 1], self.losses[:, 2], overlaps)

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

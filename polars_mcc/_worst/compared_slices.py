"""Counts of every slice → its score beside that of the rest of the log, and its evidence."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import polars as pl

from polars_mcc._comparisons.evidence_and_p_values import evidence_of
from polars_mcc._intervals.count_arrays import Counted
from polars_mcc._intervals.scores_of_arrays import has_classes
from polars_mcc._metrics.slice_sums import Flags, Floats, Ints, places_in
from polars_mcc._worst.row_losses import RowLosses
from polars_mcc._worst.slice_counts import (
    Batch,
    CrossedKeys,
    Margins,
    PairTables,
    SlicesOfKeys,
    pairs_of,
)
from polars_mcc._worst.slice_scores import LENIENT, ComparedSlices, Comparisons, ModelSearch

_SLICES_PER_TEST = 100
"""If keys determine each other, slices have the same rows, and count as one test: on average, at
most so many slices."""
_LABELS_AT_ONCE = 2**20  # labels of slices that are scored at once


def compared_slices(search: ModelSearch) -> ComparedSlices:
    """Count every slice, and compare each large enough slice with the rest of the log.

    A slice that cannot have enough evidence for the list, whatever its limits, gets evidence 0.
    """
    whole = _WholeLog.of(search)
    # Rests that are scored by pair have all pairs.
    in_slice = len(whole.every.n) if search.is_by_pair else len(search.log.labels)
    step = max(1, _LABELS_AT_ONCE // max(1, in_slice))
    n_small = sum(key.n_small for key in search.log.keys.values())
    sets: list[SlicesOfKeys] = []
    parts = [Comparisons(*(np.zeros(0),) * 4, np.zeros((0, 3)))]
    n_slices, threads = 0, pl.thread_pool_size()
    waiting: deque[Future[Comparisons]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for batch in search.counter.batches(search.settings.depth):
            n_small += batch.n_small
            sets += batch.sets
            n_slices += batch.pairs.number
            cutoff = search.cutoff(n_slices // _SLICES_PER_TEST)
            needed = evidence_of(LENIENT * float(cutoff.largest_p(cutoff.longest))) / cutoff.surer
            needed = 0.0 if search.settings.verdicts else needed
            for first in range(0, batch.pairs.number, step):
                last = min(first + step, batch.pairs.number)
                waiting.append(pool.submit(whole.compared, batch, first, last, needed))
                if len(waiting) >= threads:
                    parts.append(waiting.popleft().result())
        parts += [future.result() for future in waiting]
    by_keys = {of_keys.keys: of_keys for of_keys in sets}
    is_distinct = [_has_own_rows(by_keys, of_keys, search.scorer.rounding) for of_keys in sets]
    nothing = np.zeros(0, np.int64)
    n = np.concatenate([nothing, *(of_keys.n for of_keys in sets)])
    none = np.zeros((2, 0), np.int64)
    unscored = np.concatenate([none, *(of_keys.unscored for of_keys in sets)], 1)
    stand_for = n + unscored[1] if search.counter.is_reweighted else n
    comparisons = Comparisons(*map(np.concatenate, zip(*parts, strict=True)))
    is_large = stand_for > search.settings.max_share * whole.n
    comparisons.evidence[is_large] = math.nan
    return ComparedSlices(
        [*search.log.keys.values()],
        sets,
        np.cumsum([0, *(len(of_keys.n) for of_keys in sets)])[:-1],
        n,
        unscored,
        comparisons,
        np.concatenate([np.zeros(0, bool), *is_distinct]),
        is_large,
        whole.pairs,
        whole.losses,
        whole.shown,
        n_small,
    )


def _has_own_rows(
    sets: Mapping[CrossedKeys, SlicesOfKeys], of_keys: SlicesOfKeys, rounding: float
) -> Flags:
    """Whether each slice lacks rows of every slice with one key fewer. Else a key adds nothing."""
    lacks = np.ones(len(of_keys.n), bool)
    for left_out in range(len(of_keys.keys) if len(of_keys.keys) > 1 else 0):
        kept = [key for key in range(len(of_keys.keys)) if key != left_out]
        fewer = sets[tuple(of_keys.keys[key] for key in kept)]
        if len(fewer.n):
            ids = (_ids(fewer.keys, places) for places in (fewer.places, of_keys.places[kept]))
            place = places_in(*ids)
            lacks &= (place < 0) | (fewer.n[place] - of_keys.n > rounding * of_keys.n)
    return lacks


def _ids(keys: CrossedKeys, places: Ints) -> Ints:
    """A number for the values of some keys. If 64 bits are too few, it is an integer of Python."""
    sizes = [key.values.height for key in keys]
    ids: Ints = places[0].astype(np.int64 if math.prod(sizes) < 2**63 else object)
    for size, place in zip(sizes[1:], places[1:], strict=True):
        ids = ids * size + place
    return ids


@dataclass(frozen=True)
class _WholeLog:
    """All rows of the log. The rest of a slice is all rows minus the slice."""

    search: ModelSearch
    every: Counted
    """The pairs of all rows, as they were counted."""
    pairs: Counted
    """The scored pairs."""
    margins: Margins
    losses: RowLosses
    n: float
    """The weight of the rows that the scored rows stand for."""
    shown: float
    """The score as in `by` (see `ModelSearch.shown`)."""
    rows: float
    """The rows m of the score of the log as a proportion; 0 if it is unknown."""

    @classmethod
    def of(cls, search: ModelSearch) -> _WholeLog:
        """Score all rows."""
        every = search.counter.whole()
        pairs = search.counter.represented(every)
        margins = search.counter.margins(pairs, 0, 1)
        counts = pairs if search.is_by_pair else margins
        [shown] = search.shown(counts)
        rows = float(np.nan_to_num(search.limits(pairs).rows_down[0]))
        of_log = float(pairs.n.sum()), float(shown), rows
        with np.errstate(all="ignore"):
            of_metrics, *_ = search.scorer.influences(pairs, is_smoothed=False)
        phi = search.scale.turn * of_metrics[search.settings.metric.name].phi
        losses = RowLosses.of(every, pairs, phi, given_labels=search.settings.to == "expected")
        return cls(search, every, pairs, margins, losses, *of_log)

    def compared(self, batch: Batch, first: int, last: int, needed: float) -> Comparisons:
        """Compare the slices with the numbers from `first` to `last` with their rests.

        Limits are computed only of slices that may reach the needed evidence.
        """
        search, turn, values = self.search, self.search.scale.turn, self.search.values
        settings, metric = search.settings, search.settings.metric
        counter, number = search.counter, last - first
        own: Counted | Margins
        others: Counted | Margins
        if search.is_by_pair:
            own, others = self._pairs(batch.pairs, first, last)
            here, left = (counter.margins(pairs, 0, number) for pairs in (own, others))
        else:
            own = here = counter.margins(batch.pairs, first, last)
            others = left = rest_of(here, self.margins, self._nothing)
        score, rest = turn * values(own, search.scorer.zero_division), turn * values(others, None)
        shown: list[Floats] = [np.zeros(0)] * 2
        if settings.verdicts:
            shown = [search.shown(own), search.shown(others)]
        is_comparable = has_rest = np.ones(last - first, bool)
        if not metric.is_of_scores:
            every, *sides = (
                [(side > 0).sum(1) for side in margins[:2]]
                for margins in (self.margins, here, left)
            )
            is_comparable, has_rest = (
                np.asarray(has_classes(metric.classes_needed, *side, *every)) for side in sides
            )
        n = here[0].sum(1) if search.counter.is_reweighted else batch.n[first:last]
        by_labels = np.flatnonzero(search.is_by_labels & ~has_rest)
        if settings.to == "expected":
            by_labels, has_rest = np.arange(last - first), np.zeros(last - first, bool)
        comparable = np.where(is_comparable & has_rest, rest, math.nan)
        evidence = self._below_rest(batch.pairs, first, n, score, comparable, needed=needed)
        if len(by_labels):
            pairs = search.counter.represented(pairs_of(batch.pairs, first + by_labels))
            pool = np.zeros(len(by_labels), np.int64), self.pairs
            rest[by_labels], evidence[by_labels] = search.below_expected(pairs, *pool)
        evidence = np.where(is_comparable, evidence, math.nan)
        losses = np.full((last - first, 3), math.nan)
        behind = np.flatnonzero(evidence > 0)
        losses[behind] = self.losses.of_slices(pairs_of(batch.pairs, first + behind))
        return Comparisons(rest, evidence, shown[0], shown[1], losses)

    @property
    def _nothing(self) -> float:
        """What rounding may leave of the rows of a rest."""
        return float(self.every.n.sum()) * self.search.scorer.rounding

    def _pairs(self, pairs: Counted | PairTables, first: int, last: int) -> tuple[Counted, Counted]:
        """The scored pairs of slices, and of their rests."""
        counter, number = self.search.counter, last - first
        own = pairs_of(pairs, np.arange(first, last))
        slices = np.repeat(np.arange(number), len(self.every.n))
        labels = (np.tile(side, number) for side in (self.every.gold, self.every.pred))
        whole = [slices, *labels, *(np.tile(n, number) for n in self.every[4:])]
        taken = [*own[1:4], *(-n for n in own[4:])]
        rest, *_ = Counted.of_rows(number, *map(np.concatenate, zip(whole, taken, strict=True)))
        [left] = np.nonzero(rest.n > self._nothing)
        others = Counted(number, *(array[left] for array in rest[1:]))
        return counter.represented(own), counter.represented(others)

    def _below_rest(
        self,
        counted: Counted | PairTables,
        first: int,
        n: Floats,
        score: Floats,
        rest: Floats,
        *,
        needed: float,
    ) -> Floats:
        """The evidence of slices that may reach the needed evidence; of others 0.

        The rest has the same ratio of effective rows m to rows as the log.
        """
        search, scale = self.search, self.search.scale
        v_rest, rows = scale.proportion(rest), (1 - n / self.n) * self.rows
        largest = np.full(len(n), math.inf)
        # The evidence whatever the limits, at most. A sum of sample weights is no number of rows.
        if math.isfinite(scale.max_rows) and search.scorer.is_frequency:
            largest = scale.evidence(scale.proportion(score), scale.max_rows * n, v_rest, rows)
        evidence = np.where(np.isnan(score) | np.isnan(rest) | np.isnan(largest), math.nan, 0.0)
        [behind] = np.nonzero((score < rest) & (largest >= needed))
        if len(behind):
            pairs = search.counter.represented(pairs_of(counted, first + behind))
            limits = search.limits(pairs)
            apart = scale.evidence(limits.proportion, limits.rows_up, v_rest[behind], rows[behind])
            collapsed = search.collapse(pairs, np.zeros(len(behind), np.int64), self.pairs)
            is_below = limits.score + limits.spread < rest[behind]
            evidence[behind] = np.where(is_below & ~np.isnan(collapsed), collapsed, apart)
        return evidence


def rest_of(slices: Margins, whole: Margins, nothing: float) -> Margins:
    """The margins of the rests of slices. What rounding leaves of float weights is `nothing`."""
    rests = [every - of_slices for every, of_slices in zip(whole, slices, strict=True)]
    return [np.where(rest > nothing, rest, 0.0) for rest in rests] if nothing else rests

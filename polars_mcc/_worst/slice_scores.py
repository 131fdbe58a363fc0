"""Every slice of up to `depth` keys: its score, its size, and its evidence against the rest."""

from __future__ import annotations

import itertools
import math
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import polars as pl

from polars_mcc._base.allowed_values import Correction, Rank, Reference
from polars_mcc._comparisons.evidence import LEVEL, Scale, collapse, evidence_of
from polars_mcc._comparisons.rest_of_log import ROUNDING
from polars_mcc._counts.label_hashes import wide_of
from polars_mcc._intervals.count_arrays import Counted
from polars_mcc._intervals.interval_options import IntervalOptions
from polars_mcc._intervals.pooled_slices import Pools
from polars_mcc._intervals.scores_of_arrays import Scorer, has_classes
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.slice_sums import Flags, Floats, Ints, added_up, places_in
from polars_mcc._worst.column_codes import CodedKey, CodedLog
from polars_mcc._worst.failures_in_words import LONGEST_LIST
from polars_mcc._worst.p_value_cutoff import LENIENT, Cutoff
from polars_mcc._worst.reweighted_slices import Margins, rows_per_label, whole_at
from polars_mcc._worst.slice_counts import (
    Batch,
    CrossedKeys,
    PairTables,
    SliceCounter,
    SlicesOfKeys,
    pairs_of,
)

Clauses: TypeAlias = tuple[tuple[int, int], ...]
"""A slice, as the place of each of its keys with the place of the value of this key."""

_SLICES_PER_TEST = 100
"""If keys determine each other, slices have the same rows, and count as one test: on average, at
most so many slices."""
_NOT_A_NUMBER = -sys.float_info.max
"""Stands for a score of NaN, as NaN in an array is an unknown score."""
_LABELS_AT_ONCE = 2**20  # labels of slices that are scored at once
_SURER = math.sqrt(2)
"""How many times the evidence by row the evidence by cluster may be: influences in a cluster may
cancel."""


@dataclass(frozen=True)
class SearchSettings:
    """The settings of a search: metric, number of keys, least rows, confidence level."""

    metric: Metric
    positive: pl.Expr | None
    depth: int
    min_n: int
    max_share: float
    bins: int | None
    top: int | None
    rank: Rank
    ci: float
    correction: Correction
    verdicts: bool
    long: bool
    to: Reference


class Limits(NamedTuple):
    """Scores and how sure they are, such that more is better: arrays (slices,)."""

    score: Floats
    proportion: Floats
    """The score as a proportion."""
    rows_up: Floats
    """The rows m of the proportion, from the upper limit."""
    rows_down: Floats
    """The same from the lower limit."""
    spread: Floats
    """The distance from the score to its upper limit."""
    phi: Floats
    """The influence of one row of each pair: (pairs,)."""


@dataclass(frozen=True)
class ModelSearch:
    """A search in the coded log of one model."""

    settings: SearchSettings
    log: CodedLog
    model: str
    scale: Scale
    """The metric as a proportion."""
    counter: SliceCounter
    scorer: Scorer
    """It scores 0/0 as 0 or as unknown, never as 1."""

    @classmethod
    def of(cls, settings: SearchSettings, log: CodedLog, model: str) -> ModelSearch:
        """Prepare the search: what counts slices, and what scores them."""
        metric, labels = settings.metric, log.labels
        if metric.labels_needed == "values":
            labels = labels.cast(wide_of(labels.dtype))
        if metric.labels_needed == "equality":
            labels = pl.int_range(len(labels), dtype=pl.UInt32, eager=True)
        counter = SliceCounter.of(log, model, settings.min_n)
        are_floats = counter.is_reweighted or log.sliced.numbers.count.is_float()
        scorer = Scorer(
            [metric],
            labels,
            settings.positive,
            zero_division=0.0 if log.sliced.zero_division == 0 else None,
            is_frequency=log.sliced.is_frequency,
            epsilon=log.sliced.epsilon,
            rounding=ROUNDING if are_floats else 0.0,
            is_reweighted=counter.is_reweighted,
        )
        return cls(settings, log, model, Scale.of(metric), counter, scorer)

    def cutoff(self, tests: int) -> Cutoff:
        """The largest p-value of a listed slice."""
        settings, surer = self.settings, 1.0 if self.log.clusters is None else _SURER
        longest = max(settings.top or 0, LONGEST_LIST)
        return Cutoff(settings.correction, 1 - settings.ci, tests, longest, surer)

    def shown(self, margins: Margins) -> Floats:
        """The scores of slices as in `by`: `_NOT_A_NUMBER` for NaN, NaN for null."""
        zero_division = self.log.sliced.zero_division
        values = self.scorer.values(margins, zero_division)
        if zero_division is None or not math.isnan(zero_division):
            return values
        # 0/0 is NaN. A score without gold rows is null.
        is_known = ~np.isnan(self.scorer.values(margins, 0.0))
        return np.where(np.isnan(values) & is_known, _NOT_A_NUMBER, values)

    def limits(self, pairs: Counted, pools: Pools | None = None) -> Limits:
        """The scores of slices, and how sure they are."""
        scale, asked = self.scale, IntervalOptions(LEVEL, is_compared=True)
        [measured] = self.scorer.measured(pairs, asked, pools).values()
        score, ends = scale.turn * measured.score, (measured.interval.low, measured.interval.high)
        low, high = (scale.turn * end for end in ends[:: scale.turn])
        n = added_up(pairs.n, pairs.slices, pairs.number)
        rows_up, rows_down = (scale.effective_rows(score, end, n) for end in (high, low))
        proportion = scale.proportion(score)
        return Limits(score, proportion, rows_up, rows_down, high - score, measured.phi)

    def below_expected(
        self, pairs: Counted, pool_of: Ints, pool: Counted
    ) -> tuple[Floats, Floats, Floats]:
        """The score of each slice given its labels, twice its standard error, and the evidence."""
        scale = self.scale
        here = scale.turn * self.scorer.values_of_pairs(pairs, self.scorer.zero_division)
        expected, se, step = self.scorer.given_labels(pairs, Pools(pool_of, pool))
        there, n = scale.turn * expected, added_up(pairs.n, pairs.slices, pairs.number)
        collapsed = self.collapse(pairs, pool_of, pool)
        with np.errstate(all="ignore"):
            apart = np.where(np.isnan(collapsed), scale.apart(here, n, there, se, step), collapsed)
            is_known = (se > 0) & ~np.isnan(here) & ~np.isnan(there)
            evidence = np.where(is_known, np.where(here < there, apart, 0.0), math.nan)
        return there, 2 * se, evidence

    def collapse(
        self, pairs: Counted, pool_of: Ints, pool: Counted, draws: Floats | None = None
    ) -> Floats:
        """The evidence of slices predicted as one class, if the metric is then 0/0; else NaN."""
        metric = self.settings.metric
        can_be = metric.is_of_two and not metric.is_of_scores
        if not can_be or self.scorer.zero_division is None:
            return np.full(pairs.number, math.nan)
        evidence = collapse(pairs, pool_of, pool, draws)
        if not np.isnan(evidence).all():
            evidence[~np.isnan(self.scorer.values_of_pairs(pairs, None))] = math.nan
        return evidence


class Comparisons(NamedTuple):
    """Slices compared with the rest of the log: arrays (slices,). More is better."""

    score: Floats
    """0/0 is unknown."""
    rest: Floats
    """The score of all other rows."""
    reference: Floats
    """The score that the slice is compared with."""
    spread: Floats
    """The distance from the score to its upper limit."""
    evidence: Floats
    """How many standard errors the slice is behind the reference; 0 if it is not behind, NaN if it
    cannot be compared."""
    shown: Floats
    """The score as in `by` (see `ModelSearch.shown`); empty unless all slices are shown."""
    shown_rest: Floats


@dataclass(frozen=True)
class ComparedSlices:
    """All slices that were counted and are large enough, set after set: arrays (slices,)."""

    keys: Sequence[CodedKey]
    """All keys of the log."""
    sets: Sequence[SlicesOfKeys]
    starts: Ints
    """The number of the first slice of each set: (sets,)."""
    place_of_set: Mapping[frozenset[CodedKey], int]
    """The place of the set of these keys."""
    n: Ints
    """The weight of the scored rows."""
    stand_for: Ints
    """The weight of the rows that these stand for."""
    unscored: Ints
    """The rows that are not scored, and those of them without a gold label: (2, slices)."""
    comparisons: Comparisons
    is_distinct: Flags
    """Whether it has fewer rows than each slice with one key fewer."""
    has_most_rows: Flags
    """Whether it has more than `max_share` of the scored rows."""
    overall: float
    """The score of the log."""
    n_small: int
    """How many slices are too small."""

    def places(self, slices: Ints) -> Ints:
        """The place of the value of each key, -1 if the key is not in the set: (slices, keys)."""
        column = {key: place for place, key in enumerate(self.keys)}
        table = np.full((len(slices), len(self.keys)), -1, np.int64)
        sets = np.searchsorted(self.starts, slices, "right") - 1
        for number in np.unique(sets).tolist():
            [rows] = np.nonzero(sets == number)
            of_keys = self.sets[number]
            for key, places in zip(of_keys.keys, of_keys.places, strict=True):
                table[rows, column[key]] = places[slices[rows] - self.starts[number]]
        return table

    def clauses(self, slices: Ints) -> list[Clauses]:
        """The keys of slices with their values."""
        rows = self.places(slices).tolist()
        return [tuple((key, place) for key, place in enumerate(row) if place >= 0) for row in rows]

    def number_of(self, slice_: Clauses) -> int | None:
        """The number of the slice with these keys and values, if it was large enough."""
        places = {self.keys[key]: place for key, place in slice_}
        set_ = self.place_of_set.get(frozenset(places))
        if set_ is None:
            return None
        of_keys = self.sets[set_]
        wanted = np.array([[places[key]] for key in of_keys.keys])
        [same] = np.nonzero((of_keys.places == wanted).all(0))
        return int(self.starts[set_] + same[0]) if len(same) else None


def compared_slices(search: ModelSearch) -> ComparedSlices:
    """Count every slice, and compare each large enough slice with the rest of the log.

    A slice that cannot have enough evidence for the list, whatever its limits, gets evidence 0.
    """
    whole = _WholeLog.of(search)
    step = max(1, _LABELS_AT_ONCE // max(1, len(search.log.labels)))
    n_small = sum(key.n_small for key in search.log.keys.values())
    sets: list[SlicesOfKeys] = []
    parts = [Comparisons(*(np.zeros(0),) * 7)]
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
    return ComparedSlices(
        [*search.log.keys.values()],
        sets,
        np.cumsum([0, *(len(of_keys.n) for of_keys in sets)])[:-1],
        {frozenset(of_keys.keys): place for place, of_keys in enumerate(sets)},
        n,
        stand_for,
        unscored,
        Comparisons(*map(np.concatenate, zip(*parts, strict=True))),
        np.concatenate([np.zeros(0, bool), *is_distinct]),
        stand_for > search.settings.max_share * whole.n,
        whole.score,
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
    n: float
    """The weight of the rows that the scored rows stand for."""
    score: float
    rows: float
    """The rows m of the score of the log as a proportion; 0 if it is unknown."""

    @classmethod
    def of(cls, search: ModelSearch) -> _WholeLog:
        """Score all rows."""
        every = search.counter.whole()
        pairs = search.counter.represented(every)
        margins = search.counter.margins(pairs, 0, 1)
        [score] = search.scale.turn * search.scorer.values(margins, search.scorer.zero_division)
        rows = float(np.nan_to_num(search.limits(pairs).rows_down[0]))
        return cls(search, every, pairs, margins, float(pairs.n.sum()), float(score), rows)

    def compared(self, batch: Batch, first: int, last: int, needed: float) -> Comparisons:
        """Compare the slices with the numbers from `first` to `last` with their rests.

        Limits are computed only of slices that may reach the needed evidence.
        """
        search, turn, values = self.search, self.search.scale.turn, self.search.scorer.values
        settings, metric = search.settings, search.settings.metric
        here, left = self._margins(batch.pairs, first, last)
        score, rest = turn * values(here, search.scorer.zero_division), turn * values(left, None)
        shown: list[Floats] = [np.zeros(0)] * 2
        if settings.verdicts:
            shown = [search.shown(here), search.shown(left)]
        is_comparable = np.ones(last - first, bool)
        if not metric.is_of_scores:
            sides = (*here[:2], *self.margins[:2])
            n_classes = ((side > 0).sum(1) for side in sides)
            is_comparable = np.asarray(has_classes(metric.classes_needed, *n_classes))
        if settings.to == "expected":
            pairs = search.counter.represented(pairs_of(batch.pairs, np.arange(first, last)))
            pool = np.zeros(last - first, np.int64), self.pairs
            reference, spread, evidence = search.below_expected(pairs, *pool)
        else:
            reference, comparable = rest, np.where(is_comparable, rest, math.nan)
            n = here[0].sum(1) if search.counter.is_reweighted else batch.n[first:last]
            spread, evidence = self._below_rest(
                batch.pairs, first, n, score, comparable, needed=needed
            )
        evidence = np.where(is_comparable, evidence, math.nan)
        return Comparisons(score, rest, reference, spread, evidence, *shown)

    def _margins(
        self, pairs: Counted | PairTables, first: int, last: int
    ) -> tuple[Margins, Margins]:
        """The margins of slices, and of their rests."""
        counter, rounding = self.search.counter, self.search.scorer.rounding
        if not counter.is_reweighted:
            here = counter.margins(pairs, first, last)
            return here, rest_of(here, self.margins, self.n * rounding)
        nothing = float(self.every.n.sum()) * rounding
        sizes = counter.by_prediction(pairs, first, last)
        here = counter.margins(pairs, first, last, rows_per_label(*sizes))
        rests = rest_of(sizes, counter.by_prediction(self.every, 0, 1), nothing)
        per_label = rows_per_label(*rests)
        taken = counter.margins(pairs, first, last, per_label)
        return here, rest_of(taken, whole_at(self.every, per_label), nothing)

    def _below_rest(
        self,
        counted: Counted | PairTables,
        first: int,
        n: Floats,
        score: Floats,
        rest: Floats,
        *,
        needed: float,
    ) -> tuple[Floats, Floats]:
        """The spread and the evidence of slices that may reach the needed evidence.

        The rest has the same ratio of effective rows m to rows as the log.
        """
        search, scale = self.search, self.search.scale
        v_rest, rows = scale.proportion(rest), (1 - n / self.n) * self.rows
        largest, spread = np.full(len(n), math.inf), np.full(len(n), math.nan)
        if math.isfinite(scale.max_rows):  # The evidence whatever the limits, at most.
            largest = scale.evidence(scale.proportion(score), scale.max_rows * n, v_rest, rows)
        evidence = np.where(np.isnan(score) | np.isnan(rest) | np.isnan(largest), math.nan, 0.0)
        [behind] = np.nonzero((score < rest) & (largest >= needed))
        if len(behind):
            pairs = search.counter.represented(pairs_of(counted, first + behind))
            limits = search.limits(pairs)
            apart = scale.evidence(limits.proportion, limits.rows_up, v_rest[behind], rows[behind])
            collapsed = search.collapse(pairs, np.zeros(len(behind), np.int64), self.pairs)
            is_below = limits.score + limits.spread < rest[behind]
            spread[behind] = limits.spread
            evidence[behind] = np.where(is_below & ~np.isnan(collapsed), collapsed, apart)
        return spread, evidence


def rest_of(slices: Margins, whole: Margins, nothing: float) -> Margins:
    """The margins of the rests of slices. What rounding leaves of float weights is `nothing`."""
    rests = [every - of_slices for every, of_slices in zip(whole, slices, strict=True)]
    return [np.where(rest > nothing, rest, 0.0) for rest in rests] if nothing else rests


def as_shown(scores: Floats) -> pl.Series:
    """A column of the scores that `ModelSearch.shown` gives: NaN becomes null."""
    return pl.Series(scores, nan_to_null=True).replace(_NOT_A_NUMBER, math.nan)


def coarser(slice_: Clauses) -> list[Clauses]:
    """The slices with some of the keys of a slice, the fewest first; last, the slice itself."""
    sizes = range(1, len(slice_) + 1)
    return [kept for size in sizes for kept in itertools.combinations(slice_, size)]

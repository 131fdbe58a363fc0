"""Every slice of up to `depth` keys: its score, its size, and its evidence against the rest."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mcc._counts.identity import wide_of
from polars_mcc._inference.arrays import Counted
from polars_mcc._inference.evidence import LEVEL, Scale, collapse
from polars_mcc._inference.options import IntervalOptions
from polars_mcc._inference.pool import Pools
from polars_mcc._inference.rest_of_log import ROUNDING
from polars_mcc._inference.scorer import Scorer, has_classes
from polars_mcc._log.choices import Correction, Rank, Reference
from polars_mcc._scores.metric import Metric
from polars_mcc._scores.segments import Flags, Floats, Ints, added_up, places_in
from polars_mcc._search.codes import Coded
from polars_mcc._search.counting import (
    Batch,
    Cells,
    Counting,
    Keys,
    Margins,
    Slices,
    Table,
    ids_of,
)

_SAME = 100  # most slices, on average, that have the same rows because keys determine each other
_NO_ROWS = np.zeros(0, np.int64)
NOT_A_NUMBER = -sys.float_info.max
"""Stands for a score that is NaN: a score that is unknown is NaN in arrays."""
_MARGINS = 2**20  # labels of slices that are scored at once


@dataclass(frozen=True)
class Search:
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
class Sought(Search):
    """A search in the coded log of one model."""

    coded: Coded
    model: str

    @cached_property
    def scale(self) -> Scale:
        """The metric as a proportion."""
        return Scale.of(self.metric)

    @cached_property
    def counting(self) -> Counting:
        """What counts slices."""
        return Counting(self.coded, self.model, self.min_n)

    @cached_property
    def scorer(self) -> Scorer:
        """What scores slices. A score at 0/0 is 0, or unknown."""
        log, labels = self.coded.log, self.coded.labels
        if self.metric.has_labels:
            labels = labels.cast(wide_of(labels.dtype))
        if not self.metric.needs_labels:
            labels = pl.int_range(len(labels), dtype=pl.UInt32, eager=True)
        return Scorer(
            [self.metric],
            labels,
            self.positive,
            zero_division=0.0 if log.zero_division == 0 else None,
            is_frequency=log.is_frequency,
            rounding=self.rounding,
        )

    @property
    def rounding(self) -> float:
        """The share of a sum of weights that its order may change."""
        return ROUNDING if self.coded.log.numbers.count.is_float() else 0.0

    def scores(self, margins: Margins, *, or_nothing: bool = False) -> Floats:
        """The scores of slices, such that more is better. `or_nothing`: NaN at 0/0."""
        zero_division = None if or_nothing else self.scorer.zero_division
        return self.scale.turned(self.scorer.values(margins, zero_division))

    def shown(self, margins: Margins) -> Floats:
        """The scores of slices as `by` has them; `NOT_A_NUMBER` for NaN, NaN if there is none."""
        zero_division = self.coded.log.zero_division
        values = self.scorer.values(margins, zero_division)
        if zero_division is None or not math.isnan(zero_division):
            return values
        # At 0/0 it is NaN. Without gold rows there is none.
        is_known = ~np.isnan(self.scorer.values(margins, 0.0))
        return np.where(np.isnan(values) & is_known, NOT_A_NUMBER, values)

    def limits(self, pairs: Counted, pools: Pools | None = None) -> Limits:
        """The scores of slices, and how sure they are."""
        scale, asked = self.scale, IntervalOptions(LEVEL, is_compared=True)
        [found] = self.scorer.measured(pairs, asked, pools).values()
        score = scale.turned(found.score)
        ends = [scale.turned(end) for end in (found.interval.low, found.interval.high)]
        low, high = ends if scale.turn > 0 else ends[::-1]
        n = added_up(pairs.n, pairs.slices, pairs.number)
        rows_up, rows_down = (scale.effective_rows(score, end, n) for end in (high, low))
        proportion = scale.proportion(score)
        return Limits(score, proportion, rows_up, rows_down, high - score, found.phi)

    def below_expected(
        self, pairs: Counted, pool_of: Ints, pool: Counted
    ) -> tuple[Floats, Floats, Floats]:
        """The score of each slice given its labels, twice its standard error, and the evidence."""
        scale = self.scale
        here = scale.turned(self.scorer.values_of_pairs(pairs, self.scorer.zero_division))
        expected, se, step = self.scorer.given_labels(pairs, Pools(pool_of, pool))
        there, n = scale.turned(expected), added_up(pairs.n, pairs.slices, pairs.number)
        collapsed = self.collapse(pairs, pool_of, pool)
        with np.errstate(all="ignore"):
            apart = np.where(np.isnan(collapsed), scale.apart(here, n, there, se, step), collapsed)
            is_known = (se > 0) & ~np.isnan(here) & ~np.isnan(there)
            evidence = np.where(is_known, np.where(here < there, apart, 0.0), math.nan)
        return there, 2 * se, evidence

    def collapse(
        self, pairs: Counted, pool_of: Ints, pool: Counted, draws: Floats | None = None
    ) -> Floats:
        """The evidence of slices whose predictions are one class, where the metric is 0/0 then."""
        metric = self.metric
        can_be = metric.is_of_two and not metric.is_of_scores
        if not can_be or self.scorer.zero_division is None:
            return np.full(pairs.number, math.nan)
        found = collapse(pairs, pool_of, pool, draws)
        if not np.isnan(found).all():
            found[~np.isnan(self.scorer.values_of_pairs(pairs, None))] = math.nan
        return found


class Compared(NamedTuple):
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
    """The score as `by` has it: see `Sought.shown`. Only if all slices are shown."""
    shown_rest: Floats


@dataclass(frozen=True)
class Looked:
    """All slices that were counted and are large enough, set after set."""

    sets: Sequence[Slices]
    compared: Compared
    is_distinct: Flags
    """Whether it has other rows than each slice with one key fewer: (slices,)."""
    overall: float
    """The score of the log."""
    n_rows: float
    """The scored rows of the log."""
    n_small: int

    @cached_property
    def starts(self) -> Ints:
        """The number of the first slice of each set."""
        return np.cumsum([0, *(len(one.n) for one in self.sets)])[:-1]

    @cached_property
    def n(self) -> Ints:
        """The weight of the scored rows of each slice: (slices,)."""
        return np.concatenate([_NO_ROWS, *(one.n for one in self.sets)])

    @cached_property
    def n_null(self) -> Ints:
        """The rows of each slice that are not scored: (slices,)."""
        return np.concatenate([_NO_ROWS, *(one.n_null for one in self.sets)])

    def places(self, slices: Ints, keys: Sequence[str]) -> Ints:
        """The place of the value of each key, -1 if the key is not in the set: (slices, keys)."""
        at = {name: place for place, name in enumerate(keys)}
        found = np.full((len(slices), len(keys)), -1, np.int64)
        sets = np.searchsorted(self.starts, slices, "right") - 1
        for number in np.unique(sets).tolist():
            [rows] = np.nonzero(sets == number)
            one = self.sets[number]
            for key, places in zip(one.keys, one.places, strict=True):
                found[rows, at[key.name]] = places[slices[rows] - self.starts[number]]
        return found

    def number_of(self, places: Mapping[str, int]) -> int | None:
        """The number of the slice with these places of values, if it was large enough."""
        number = self._numbers.get(frozenset(places))
        if number is None:
            return None
        one = self.sets[number]
        wanted = np.array([[places[key.name]] for key in one.keys])
        [found] = np.nonzero((one.places == wanted).all(0))
        return int(self.starts[number] + found[0]) if len(found) else None

    @cached_property
    def _numbers(self) -> dict[frozenset[str], int]:
        return {frozenset(key.name for key in one.keys): at for at, one in enumerate(self.sets)}


def looked_at(sought: Sought, needed: Callable[[int], float]) -> Looked:
    """Count every slice, and compare each large enough slice with the rest of the log.

    `needed` gives the least evidence of a listed slice, from the number of tests. A slice that
    cannot reach it, whatever its limits, gets evidence 0, and its limits are not computed.
    """
    all_rows = _AllRows.of(sought)
    n_small = sum(key.n_small for key in sought.coded.keys.values())
    sets: list[Slices] = []
    found = [Compared(*(np.zeros(0),) * 7)]
    n_tested, threads = 0, pl.thread_pool_size()
    waiting: deque[Future[list[Compared]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for batch in sought.counting.batches(sought.depth):
            n_small += batch.n_small
            sets += batch.sets
            n = np.concatenate([one.n for one in batch.sets])
            n_tested += len(n)
            # Some slices have the same rows, which lowers the number of tests and what is needed.
            compared = all_rows.compared(batch, n, needed(n_tested // _SAME))
            waiting.append(pool.submit(list, compared))
            if len(waiting) >= threads:
                found += waiting.popleft().result()
        for one in waiting:
            found += one.result()
    every = Compared(*map(np.concatenate, zip(*found, strict=True)))
    by_keys = {one.keys: one for one in sets}
    is_distinct = [_adds(by_keys, one, sought.rounding) for one in sets]
    are_distinct = np.concatenate([np.zeros(0, bool), *is_distinct])
    return Looked(sets, every, are_distinct, all_rows.overall, all_rows.n, n_small)


def _adds(sets: Mapping[Keys, Slices], one: Slices, rounding: float) -> Flags:
    """Whether each slice lacks rows of every slice with one key fewer: else a key adds nothing."""
    found = np.ones(len(one.n), bool)
    if len(one.keys) < 2:
        return found
    for left_out in range(len(one.keys)):
        kept = [at for at in range(len(one.keys)) if at != left_out]
        coarser = sets[tuple(one.keys[at] for at in kept)]
        if len(coarser.n):
            place = places_in(coarser.ids, ids_of(coarser.keys, one.places[kept]))
            found &= (place < 0) | (coarser.n[place] - one.n > rounding * one.n)
    return found


@dataclass(frozen=True)
class _AllRows:
    """All rows of the log. The rest of a slice is all rows minus the slice."""

    sought: Sought
    pairs: Counted
    margins: Margins
    n: float
    overall: float
    rows: float
    """The rows m of the score of the log as a proportion; 0 if it is unknown."""

    @classmethod
    def of(cls, sought: Sought) -> _AllRows:
        """Score all rows."""
        counts = sought.counting.whole()
        pairs, margins = counts.pairs(np.zeros(1, np.int64)), counts.margins(0, 1)
        rows = float(np.nan_to_num(sought.limits(pairs).rows_down[0]))
        overall = float(sought.scores(margins)[0])
        return cls(sought, pairs, margins, float(pairs.n.sum()), overall, rows)

    def compared(self, batch: Batch, n: Ints, needed: float) -> Iterator[Compared]:
        """Score some slices and their rests, a few at a time, and compare them."""
        step = max(1, _MARGINS // max(1, len(self.sought.coded.labels)))
        for first in range(0, len(n), step):
            last = min(first + step, len(n))
            yield self._compared(batch.counts, first, n[first:last] * 1.0, needed)

    def _compared(self, counts: Table | Cells, first: int, n: Floats, needed: float) -> Compared:
        sought, slices = self.sought, np.arange(first, first + len(n))
        here = counts.margins(first, first + len(n))
        left = self._left(here)
        score, rest = sought.scores(here), sought.scores(left, or_nothing=True)
        shown: list[Floats] = [np.zeros(0)] * 2
        if sought.verdicts:
            shown = [*map(sought.shown, (here, left))]
        is_comparable = self._is_comparable(here)
        if sought.to == "expected":
            pools = np.zeros(len(n), np.int64), self.pairs
            reference, spread, evidence = sought.below_expected(counts.pairs(slices), *pools)
        else:
            reference, comparable = rest, np.where(is_comparable, rest, math.nan)
            spread, evidence = self._below_rest(
                lambda some: counts.pairs(slices[some]), n, score, comparable, needed
            )
        evidence = np.where(is_comparable, evidence, math.nan)
        return Compared(score, rest, reference, spread, evidence, *shown)

    def _is_comparable(self, margins: Margins) -> Flags:
        """Whether slices have the classes that a comparison needs."""
        if self.sought.metric.is_of_scores:
            return np.ones(len(margins[0]), bool)
        numbers = ((one > 0).sum(1) for one in (*margins[:2], *self.margins[:2]))
        return np.asarray(has_classes(self.sought.metric.classes_needed, *numbers))

    def _left(self, margins: Margins) -> Margins:
        """The margins of the rests of slices."""
        left = [every - one for every, one in zip(self.margins, margins, strict=True)]
        nothing = self.n * self.sought.rounding
        return [np.where(one > nothing, one, 0.0) for one in left] if nothing else left

    def _below_rest(
        self,
        pairs_of: Callable[[Ints], Counted],
        n: Floats,
        score: Floats,
        rest: Floats,
        needed: float,
    ) -> tuple[Floats, Floats]:
        """The spread and the evidence of slices that may reach the needed evidence.

        The rest has as many rows of a proportion, for each of its rows, as the log.
        """
        sought, scale = self.sought, self.sought.scale
        rest_of = scale.proportion(rest), (1 - n / self.n) * self.rows
        at_most = scale.at_most(score, n, *rest_of)
        is_behind = (score < rest) & (at_most >= needed)
        spread = np.full(len(n), math.nan)
        evidence = np.where(np.isnan(score) | np.isnan(rest) | np.isnan(at_most), math.nan, 0.0)
        [behind] = np.nonzero(is_behind)
        if len(behind):
            pairs = pairs_of(behind)
            sure = sought.limits(pairs)
            v, m = (one[behind] for one in rest_of)
            found = scale.evidence(sure.proportion, sure.rows_up, v, m)
            collapsed = sought.collapse(pairs, np.zeros(len(behind), np.int64), self.pairs)
            is_below = sure.score + sure.spread < rest[behind]
            found = np.where(is_below & ~np.isnan(collapsed), collapsed, found)
            spread[behind], evidence[behind] = sure.spread, found
        return spread, evidence

"""Which slices are listed: each by its own reason, and few that are not behind.

Slices are ordered by evidence, the largest first. A slice is listed if it passes three tests. It is
behind the rest of the log. It is also behind after the rows of slices listed before are removed
from it and from the rest; a part of a listed slice must be behind the rest of that slice. And it is
behind the rest of each slice with fewer keys that contains it and is behind too: so a slice is
named by its cause, and not by a key that happens to go with it. A slice is removed again if it is
not behind without its listed parts.

A slice with most of the rows makes a list of its own: it passes the same tests, but its rows are
not removed from other slices. Else little would remain to compare them with.

Thousands of slices may be behind, and few are listed. The false discovery rate must hold for the
listed slices. Focused Benjamini-Hochberg (Katsevich, Sabatti and Bogomolov 2023) takes the largest
cutoff t, a p-value, for which m·t / |the list at t| is at most the rate. m is the number of tests.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from polars_mcc._inference.evidence import evidence_of
from polars_mcc._inference.quantiles import normal
from polars_mcc._log.choices import Correction
from polars_mcc._scores.segments import Floats, Ints
from polars_mcc._search.overlaps import Overlaps, Question, spans
from polars_mcc._search.parts import Places, places_of, subsets
from polars_mcc._search.slices import Looked, Sought

MOST = 100
"""The most slices of a list, unless `top` is larger."""
_LOOKED_AT = 10
"""The candidates that get a rough look, for each slice of a list. A list of 100 is then full unless
nine of ten candidates are only behind because of others."""
_AT_ONCE = 3 * 63
"""The candidates that are tested at once, while rows are counted by three words of 63 bits each."""
_LEFT = 1.0
"""The least rough evidence of what is left of an overlapping slice: far below what a list needs, as
a rough score may be off by some standard errors."""
_SURER = math.sqrt(2)
"""Evidence by cluster may be so many times the evidence by row: influences in a cluster cancel."""
_LENIENT = 2.0
"""The first p-values may be so many times too small: they take the variance of the rest from the
whole log."""


@dataclass(frozen=True)
class Cutoff:
    """The largest p-value of a listed slice, for a correction, a level and a number of tests."""

    correction: Correction
    level: float
    tests: int

    def at(self, listed: int) -> float:
        """The largest p-value of a list with this number of slices."""
        tests = max(self.tests, 1)
        if self.correction == "bonferroni":
            return self.level / tests
        if self.correction == "holm":
            return self.level / max(tests - listed + 1, 1)
        return self.level * listed / (tests * self._harmonic)

    def needed(self, sought: Sought) -> float:
        """The least evidence of a candidate."""
        p = _LENIENT * self.at(_most(sought))
        return evidence_of(p) / _surer(sought) if p < 1 else 0.0

    @cached_property
    def _harmonic(self) -> float:
        if self.correction != "by":
            return 1.0
        return sum(1 / test for test in range(1, max(self.tests, 1) + 1))


class Listed(NamedTuple):
    """The listed slices, and the slices that were tested but are not listed, by their numbers."""

    slices: Ints
    """The listed slices, in the order of evidence."""
    p_value: Floats
    """The larger of two p-values: of all rows of the slice, and of its remaining rows."""
    exact: dict[int, float]
    """The exact evidence of all slices whose overlaps were counted."""
    beyond: Ints
    """Slices that did not fit in the list, or were not checked because the list was full."""


def _most(sought: Sought) -> int:
    """The most slices of the list."""
    return max(sought.top or 0, MOST)


def _surer(sought: Sought) -> float:
    """How many times evidence by cluster may be the evidence by row."""
    return _SURER if sought.coded.clusters is not None else 1.0


def listed(sought: Sought, looked: Looked, cutoff: Cutoff) -> Listed:
    """List the slices with the most evidence."""
    most, large = _most(sought), sought.max_share * looked.n_rows
    near = candidates(sought, looked, cutoff)
    waiting, beyond = _worth_a_look(sought, looked, near, cutoff, _LOOKED_AT * most)
    chosen = waiting[:0]
    p_value: Floats = np.zeros(0)
    exact: dict[int, float] = {}
    while len(waiting) and len(chosen) < most:
        room = max(_AT_ONCE - len(chosen), _AT_ONCE // 2)
        pool = np.concatenate([chosen, waiting[:room]])
        tested = _Candidates.of(sought, looked, pool, large)
        exact |= dict(zip(tested.slices.tolist(), tested.evidence, strict=True))
        (chosen, p_value), waiting = tested.listed(cutoff), waiting[room:]
    beyond = np.concatenate([chosen[most:], waiting, beyond])
    return Listed(chosen[:most], p_value[:most], exact, beyond)


def candidates(sought: Sought, looked: Looked, cutoff: Cutoff) -> Ints:
    """The slices that may be listed, in the order of evidence."""
    needed = evidence_of(min(_LENIENT * cutoff.level, 1.0)) / _surer(sought)
    [near] = np.nonzero(looked.is_distinct & (looked.compared.evidence > max(needed, 0.0)))
    keys = sorted(sought.coded.keys.values(), key=lambda key: -key.size)
    places = looked.places(near, [key.name for key in keys])
    ranks = [key.ranks(places[:, at]) for at, key in enumerate(keys)]
    sets = np.searchsorted(looked.starts, near, "right")
    n_keys, evidence = (places >= 0).sum(1), looked.compared.evidence[near]
    # Equal evidence: fewer keys, more rows, and then the order of the values.
    order = np.lexsort([*reversed(ranks), sets, -looked.n[near], n_keys, -evidence])
    ranked: Ints = near[order]
    p = normal(looked.compared.evidence[ranked] * _surer(sought))
    largest = np.array([cutoff.at(rank + 1) for rank in range(len(ranked))])
    [below] = np.nonzero(p <= _LENIENT * largest)
    return ranked[: below[-1] + 1] if len(below) else ranked[:0]


def _worth_a_look(
    sought: Sought, looked: Looked, ranked: Ints, cutoff: Cutoff, most: int
) -> tuple[Ints, Ints]:
    """The slices without those that a surer slice seems to explain, and the slices beyond `most`.

    A part of a surer slice is left out unless it is behind the other rows of that slice by `_LEFT`
    standard errors. A slice that contains a surer slice is left out unless its other rows are
    behind the rest of the log. If the slice has fewer keys, it is kept, and the surer part is left
    out unless it is behind the other rows of the slice. The scores of other rows are computed as if
    scores were means. This is rough; the slices that are kept are counted exactly later.
    """
    needed = evidence_of(cutoff.at(MOST))
    first, last = spans(sought, looked, ranked)
    found = looked.compared
    arrays = looked.n, found.score, found.reference, found.spread
    n, score, rest, spread = (one[ranked].astype(np.float64) for one in arrays)
    variance = (spread / 2) ** 2
    per_row = n * variance
    is_waiting = np.ones(len(ranked), dtype=bool)
    kept: list[int] = []
    for one in range(len(ranked)):
        if not is_waiting[one]:
            continue
        if len(kept) == most:
            break
        is_waiting[one] = False
        is_part = ((first >= first[one]) & (last <= last[one])).all(axis=1)
        is_whole = ((first <= first[one]) & (last >= last[one])).all(axis=1)
        is_same = (first == first[one]) & (last == last[one])
        is_coarser = is_waiting & is_whole & (is_same | (first < 0)).all(axis=1)
        with np.errstate(all="ignore"):
            n_left = np.abs(n - n[one])
            left = (n * score - n[one] * score[one]) / (n - n[one])
            behind_rest_of_one = (left - score) / np.sqrt(variance + per_row[one] / n_left)
            behind_all = (rest - left) / np.sqrt(per_row / n_left)
            behind_whole = (left - score[one]) / np.sqrt(variance[one] + per_row / n_left)
        if np.any(is_coarser & (behind_whole < needed - _LEFT)):
            continue
        kept.append(one)
        is_waiting &= ~(is_part & ~(behind_rest_of_one >= _LEFT))
        is_waiting &= ~(is_whole & ~is_coarser & ~(behind_all >= _LEFT))
    return ranked[kept], ranked[is_waiting]


@dataclass(frozen=True)
class _Candidates:
    """Slices in the order of exact evidence. A slice is known by its rank in this order.

    Rounds of guesses find the list at a cutoff. A round tests every slice after the slices that the
    guess lists before it. The slices that pass are the next guess. The test of a slice depends only
    on slices before it. So each round is right for one slice more, until the guess stays the same.
    """

    slices: Ints
    """The numbers of the slices."""
    evidence: Sequence[float]
    values: Sequence[Places]
    """The place of the value of each key."""
    overlaps: Overlaps
    large: frozenset[int]
    """The slices with most of the rows."""
    known: dict[Question, float]
    """The evidence of all questions that were answered."""

    @classmethod
    def of(cls, sought: Sought, looked: Looked, slices: Ints, large: float) -> _Candidates:
        """Count the slices, and sort them by exact evidence."""
        found = Overlaps.of(sought, looked, slices)
        alone = found.evidence([Question(number) for number in range(len(slices))])
        order = sorted(range(len(slices)), key=lambda number: (-alone[number], number))
        ranked = slices[order]
        known = {Question(rank): alone[number] for rank, number in enumerate(order)}
        of_most = frozenset(np.flatnonzero(looked.n[ranked] > large).tolist())
        values = places_of(looked, ranked, [*sought.coded.keys])
        in_order = found.in_order(order)
        return cls(ranked, [*known.values()], values, in_order, of_most, known)

    def listed(self, cutoff: Cutoff) -> tuple[Ints, Floats]:
        """The list at the largest cutoff that holds for it: at most as its length allows."""
        number, guess = len(self.slices), [*range(len(self.slices))]
        while True:
            p = self._at(cutoff.at(number), guess)
            few, guess = max(len(p.keys() - self.large), 1), [*p]
            if few >= number:
                break
            number = few
        return self.slices[guess], np.array([*p.values()], np.float64)

    def _at(self, largest: float, guess: Sequence[int]) -> dict[int, float]:
        """The slices listed at a p-value, each with the larger p-value of its first two tests."""
        removed: set[int] = set()
        while True:
            p = self._behind(largest, guess, removed)
            whole = self._explained_by_its_parts([*p], largest)
            if whole is None:
                return p
            removed.add(whole)
            guess = [*p]

    def _behind(
        self, largest: float, guess: Sequence[int], removed: Collection[int]
    ) -> dict[int, float]:
        """The slices that pass all tests after the slices listed before them."""
        every = [rank for rank in range(len(self.slices)) if rank not in removed]
        alone = {rank: self._p(Question(rank)) for rank in every}
        behind = [rank for rank in every if alone[rank] <= largest]
        listed = [rank for rank in guess if rank in behind]
        while True:
            tests = {rank: self._tests(rank, listed, behind) for rank in behind}
            self._answer(itertools.chain(*tests.values()))
            now = [rank for rank in behind if all(self._p(one) <= largest for one in tests[rank])]
            if now == listed:
                return {rank: max(alone[rank], self._p(tests[rank][0])) for rank in now}
            listed = now

    def _tests(self, rank: int, listed: Sequence[int], behind: Collection[int]) -> list[Question]:
        """Is a slice behind without the slices listed before, in the log and in coarser slices?"""
        left = self._left(rank, listed)
        wholes = (whole for whole in self._wholes[rank] if whole in behind)
        return [left, *(replace(left, within=left.within | {whole}) for whole in wholes)]

    def _left(
        self, rank: int, listed: Sequence[int], parts: frozenset[int] = frozenset()
    ) -> Question:
        """Is a slice behind without the slices listed before it, and without some of its parts?"""
        before = frozenset(other for other in listed if other < rank)
        within = frozenset(other for other in before if self.overlaps.has(other, rank))
        return Question(rank, without=(before - within - self.large) | parts, within=within)

    @cached_property
    def _wholes(self) -> list[list[int]]:
        """For each slice, the slices with fewer keys that contain it: its keys, but for some."""
        ranks = {value: rank for rank, value in enumerate(self.values)}
        return [
            [ranks[one] for one in subsets(value) if one in ranks and one != value]
            for value in self.values
        ]

    def _explained_by_its_parts(self, listed: Sequence[int], largest: float) -> int | None:
        """The listed slice that is least behind without its listed parts, if it fails the test."""
        tests = []
        for rank in listed:
            parts = (one for one in listed if one > rank and self.overlaps.has(rank, one))
            if inside := frozenset(parts):
                tests.append(self._left(rank, listed, inside))
        self._answer(tests)
        weakest = max(tests, key=self._p, default=None)
        return weakest.slice if weakest is not None and self._p(weakest) > largest else None

    def _answer(self, tests: Iterable[Question]) -> None:
        """Compute the evidence of all tests at once: one query for many is faster."""
        new = [one for one in dict.fromkeys(tests) if one not in self.known]
        self.known.update(zip(new, self.overlaps.evidence(new), strict=True))

    def _p(self, test: Question) -> float:
        """The p-value of a test whose evidence is known; 1 if the slice is not behind."""
        return math.erfc(self.known[test] / math.sqrt(2))

"""Which slices are listed: each by its own reason, and few that are not behind.

Slices are ordered by evidence, the largest first. A slice is listed if it passes three tests:

- It is behind the rest of the log.
- It is still behind if the rows of slices listed before are removed from both sides. If it is a
  part of a listed slice, it is behind the rest of that slice.
- It is behind the rest of each slice with fewer keys that contains it and is behind too. So a slice
  is named by its cause, and not by a key that happens to go with it.

A slice is removed again if it is not behind without its listed parts.

A slice with most of the rows makes a list of its own: it passes the same tests, but its rows are
not removed from other slices. Else little would remain to compare them with.

Thousands of slices may be behind, and few are listed. The false discovery rate must hold for the
listed slices. Focused Benjamini-Hochberg (Katsevich, Sabatti and Bogomolov 2023) takes the largest
cutoff t, a p-value, for which m·t / |the list at t| is at most the rate. m is the number of tests.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from polars_mcc._comparisons.evidence import evidence_of
from polars_mcc._intervals.interval_methods import normal
from polars_mcc._metrics.slice_sums import Floats, Ints
from polars_mcc._worst.failures_in_words import LONGEST_LIST
from polars_mcc._worst.overlapping_slices import Overlaps, Question, spans
from polars_mcc._worst.p_value_cutoff import LENIENT, Cutoff
from polars_mcc._worst.slice_scores import ComparedSlices, ModelSearch, coarser

_CANDIDATES_PER_SLICE = 10
"""The candidates that get a rough look, for each slice of a list. A list of 100 is then full unless
nine of ten candidates are only behind because of others."""
_TESTED_AT_ONCE = 3 * 63
"""The candidates that are tested at once, while rows are counted by three words of 63 bits each."""
_LEAST_LEFT = 1.0
"""The least rough evidence of what is left of an overlapping slice: far below what a list needs, as
a rough score may be off by some standard errors."""


class SliceList(NamedTuple):
    """The listed slices, and the slices that were tested but are not listed, by their numbers."""

    slices: Ints
    """The listed slices, in the order of evidence."""
    p_value: Floats
    """The larger of two p-values: of all rows of the slice, and of its remaining rows."""
    exact: dict[int, float]
    """The exact evidence of all slices whose overlaps were counted."""
    beyond: Ints
    """Slices that did not fit in the list, or were not checked because the list was full."""


def list_slices(search: ModelSearch, compared: ComparedSlices, cutoff: Cutoff) -> SliceList:
    """List the slices with the most evidence."""
    longest = cutoff.longest
    waiting, beyond = _unexplained(compared, _candidates(compared, cutoff), cutoff)
    listed = waiting[:0]
    p_value: Floats = np.zeros(0)
    exact: dict[int, float] = {}
    while len(waiting) and len(listed) < longest:
        room = max(_TESTED_AT_ONCE - len(listed), _TESTED_AT_ONCE // 2)
        tested = _Candidates.of(search, compared, np.concatenate([listed, waiting[:room]]))
        exact |= dict(zip(tested.slices.tolist(), tested.evidence, strict=True))
        (listed, p_value), waiting = tested.listed(cutoff), waiting[room:]
    beyond = np.concatenate([listed[longest:], waiting, beyond])
    return SliceList(listed[:longest], p_value[:longest], exact, beyond)


def _candidates(compared: ComparedSlices, cutoff: Cutoff) -> Ints:
    """The slices that may be listed, in the order of evidence."""
    needed = evidence_of(LENIENT * cutoff.level) / cutoff.surer
    [near] = np.nonzero(compared.is_distinct & (compared.comparisons.evidence > needed))
    places = compared.places(near)
    ranked_keys = sorted(zip(compared.keys, places.T, strict=True), key=lambda both: -both[0].size)
    ranks = [key.rank[of_key] for key, of_key in ranked_keys]
    sets = np.searchsorted(compared.starts, near, "right")
    n_keys, evidence = (places >= 0).sum(1), compared.comparisons.evidence[near]
    # Equal evidence: fewer keys, more rows, and then the order of the values.
    order = np.lexsort([*reversed(ranks), sets, -compared.n[near], n_keys, -evidence])
    ranked: Ints = near[order]
    p = normal(evidence[order] * cutoff.surer)
    [below] = np.nonzero(p <= LENIENT * cutoff.largest_p(np.arange(1, len(ranked) + 1)))
    return ranked[: below[-1] + 1] if len(below) else ranked[:0]


def _unexplained(compared: ComparedSlices, ranked: Ints, cutoff: Cutoff) -> tuple[Ints, Ints]:
    """The slices without those that a surer slice seems to explain, and those not looked at.

    A part of a surer slice is left out unless it is behind the other rows of that slice by
    `_LEAST_LEFT` standard errors. A slice that contains a surer slice is left out unless its other
    rows are behind the rest of the log. If the slice has fewer keys, it is kept, and the surer part
    is left out unless it is behind the other rows of the slice. The scores of other rows are
    computed as if scores were means. This is rough; the slices that are kept are counted exactly
    later.
    """
    needed = evidence_of(float(cutoff.largest_p(LONGEST_LIST)))
    first, last = spans(compared, ranked)
    of_all = compared.comparisons
    arrays = compared.stand_for, of_all.score, of_all.reference, of_all.spread
    n, score, rest, spread = (array[ranked].astype(np.float64) for array in arrays)
    variance = (spread / 2) ** 2
    per_row = n * variance
    is_waiting = np.ones(len(ranked), dtype=bool)
    kept: list[int] = []
    for place in range(len(ranked)):
        if not is_waiting[place]:
            continue
        if len(kept) == _CANDIDATES_PER_SLICE * cutoff.longest:
            break
        is_waiting[place] = False
        is_part = ((first >= first[place]) & (last <= last[place])).all(axis=1)
        is_whole = ((first <= first[place]) & (last >= last[place])).all(axis=1)
        is_same = (first == first[place]) & (last == last[place])
        is_coarser = is_waiting & is_whole & (is_same | (first < 0)).all(axis=1)
        with np.errstate(all="ignore"):
            n_left = np.abs(n - n[place])
            left = (n * score - n[place] * score[place]) / (n - n[place])
            behind_others = (left - score) / np.sqrt(variance + per_row[place] / n_left)
            behind_all = (rest - left) / np.sqrt(per_row / n_left)
            behind_whole = (left - score[place]) / np.sqrt(variance[place] + per_row / n_left)
        if np.any(is_coarser & (behind_whole < needed - _LEAST_LEFT)):
            continue
        kept.append(place)
        is_waiting &= ~(is_part & ~(behind_others >= _LEAST_LEFT))
        is_waiting &= ~(is_whole & ~is_coarser & ~(behind_all >= _LEAST_LEFT))
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
    wholes: Sequence[Sequence[int]]
    """For each slice, the slices with fewer keys that contain it: its keys, but for some."""
    overlaps: Overlaps
    contains: Sequence[Sequence[bool]]
    """Whether a slice contains all rows of another slice."""
    large: frozenset[int]
    """The slices with most of the rows."""
    p_value: dict[Question, float]
    """The p-value of each question that was answered."""

    @classmethod
    def of(cls, search: ModelSearch, compared: ComparedSlices, slices: Ints) -> _Candidates:
        """Count the slices, and sort them by exact evidence."""
        overlaps = Overlaps.of(search, compared, slices)
        alone = overlaps.evidence([Question(number) for number in range(len(slices))])
        order = sorted(range(len(slices)), key=lambda number: (-alone[number], number))
        ranked = slices[order]
        evidence = [alone[number] for number in order]
        clauses = compared.clauses(ranked)
        ranks = {slice_: rank for rank, slice_ in enumerate(clauses)}
        wholes = [
            [ranks[whole] for whole in coarser(slice_)[:-1] if whole in ranks] for slice_ in clauses
        ]
        in_order = replace(overlaps, is_in=overlaps.is_in[order])
        kinds = np.packbits(in_order.is_in, axis=1)
        contains = [(~(kinds & ~whole).any(axis=1)).tolist() for whole in kinds]
        large = frozenset(np.flatnonzero(compared.has_most_rows[ranked]).tolist())
        p_value = {
            Question(rank): math.erfc(errors / math.sqrt(2)) for rank, errors in enumerate(evidence)
        }
        return cls(ranked, evidence, wholes, in_order, contains, large, p_value)

    def listed(self, cutoff: Cutoff) -> tuple[Ints, Floats]:
        """The list at the largest cutoff that holds for it: at most as its length allows."""
        number, guess = len(self.slices), [*range(len(self.slices))]
        while True:
            p = self._listed_at(float(cutoff.largest_p(number)), guess)
            n_listed, guess = max(len(p.keys() - self.large), 1), [*p]
            if n_listed >= number:
                break
            number = n_listed
        return self.slices[guess], np.array([*p.values()], np.float64)

    def _listed_at(self, largest: float, guess: Sequence[int]) -> dict[int, float]:
        """The slices listed at a p-value, each with the larger p-value of its first two tests.

        A slice that fails the test without its listed parts is removed, the weakest first.
        """
        removed: set[int] = set()
        while True:
            p = self._passed(largest, guess, removed)
            without_parts = []
            for rank in p:
                parts = (part for part in p if part > rank and self.contains[rank][part])
                if inside := frozenset(parts):
                    without_parts.append(self._question(rank, [*p], inside))
            of_tests = self._p_values(without_parts)
            if max(of_tests, default=0.0) <= largest:
                return p
            removed.add(without_parts[of_tests.index(max(of_tests))].slice)
            guess = [*p]

    def _passed(
        self, largest: float, guess: Sequence[int], removed: Collection[int]
    ) -> dict[int, float]:
        """The slices that pass all tests after the slices listed before them.

        A slice must be behind without the slices listed before, in the log and in coarser slices.
        """
        alone = ((rank, self.p_value[Question(rank)]) for rank in range(len(self.slices)))
        behind = {rank: p for rank, p in alone if p <= largest and rank not in removed}
        listed = [rank for rank in guess if rank in behind]
        while True:
            tests: list[Question] = []
            for rank in behind:
                test = self._question(rank, listed)
                wholes = (whole for whole in self.wholes[rank] if whole in behind)
                tests += [test, *(replace(test, within=test.within | {it}) for it in wholes)]
            of_slices: dict[int, list[float]] = {}
            for test, p in zip(tests, self._p_values(tests), strict=True):
                of_slices.setdefault(test.slice, []).append(p)
            passed = {rank: p for rank, p in of_slices.items() if max(p) <= largest}
            if [*passed] == listed:
                return {rank: max(behind[rank], p[0]) for rank, p in passed.items()}
            listed = [*passed]

    def _question(
        self, rank: int, listed: Sequence[int], parts: frozenset[int] = frozenset()
    ) -> Question:
        """Is a slice behind without the slices listed before it, and without some of its parts?"""
        before = frozenset(other for other in listed if other < rank)
        within = frozenset(other for other in before if self.contains[other][rank])
        return Question(rank, without=(before - within - self.large) | parts, within=within)

    def _p_values(self, tests: Sequence[Question]) -> list[float]:
        """The p-values of tests; 1 if the slice is not behind. One query for many is faster."""
        new = [test for test in dict.fromkeys(tests) if test not in self.p_value]
        for test, errors in zip(new, self.overlaps.evidence(new), strict=True):
            self.p_value[test] = math.erfc(errors / math.sqrt(2))
        return [self.p_value[test] for test in tests]

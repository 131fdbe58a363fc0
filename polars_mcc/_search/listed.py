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
bar t, a p-value, for which m·t / |the list at t| is at most the rate. m is the number of tests.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_mcc._inference.methods import two_sided
from polars_mcc._log.choices import Correction
from polars_mcc._search.codes import Key
from polars_mcc._search.counting import SLICE
from polars_mcc._search.evidence import evidence_of
from polars_mcc._search.overlaps import Overlaps, Question
from polars_mcc._search.slices import Sought

_AT_ONCE = 3 * 63  # slices whose overlaps are counted at once: three integers of bits per row
MOST = 100  # most slices that are listed, unless `top` is larger
_LEFT = 1.0  # least evidence of the remaining rows of an overlapping slice; rough, to save time
_SURER = math.sqrt(2)  # factor: evidence is larger by cluster if influences in a cluster cancel
_LENIENT = 2.0  # factor: first p-values take the variance of the rest from the whole log


@dataclass(frozen=True)
class Bar:
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

    def needed(self, most: int, *, has_clusters: bool) -> float:
        """The least evidence of a candidate, if `most` slices may be listed."""
        p = _LENIENT * self.at(max(most, MOST))
        return evidence_of(p) / (_SURER if has_clusters else 1.0) if p < 1 else 0.0

    @cached_property
    def _harmonic(self) -> float:
        if self.correction != "by":
            return 1.0
        return sum(1 / place for place in range(1, max(self.tests, 1) + 1))


@dataclass(frozen=True)
class Listed:
    """The listed slices, and the slices that were tested but are not listed."""

    slices: pl.DataFrame
    """The listed slices, in the order of evidence. `p_value` is the larger of two p-values: of all
    rows of the slice, and of its remaining rows."""
    exact: pl.DataFrame
    """The exact `evidence` of all slices whose overlaps were counted."""
    beyond: pl.DataFrame
    """Slices that did not fit in the list, or were not checked because the list was full."""


def listed(sought: Sought, slices: pl.DataFrame, bar: Bar, most: int, rows: float) -> Listed:
    """List the slices with the most evidence: at most `most`, or `MOST` if that is more.

    A slice with more than `rows` rows has most of the rows.
    """
    most = max(most, MOST)
    ranked = candidates(sought, slices, bar)
    rest, beyond = _worth_a_look(sought, ranked, bar, 10 * most)
    columns, chosen = rest.columns, rest[:0].with_columns(p_value=pl.lit(1.0))
    exact = [rest[:0].select(SLICE, "evidence")]
    while rest.height and chosen.height < most:
        room = max(_AT_ONCE - chosen.height, _AT_ONCE // 2)
        pool = _Pool.of(sought, pl.concat([chosen.select(columns), rest[:room]]), bar, rows)
        exact.append(pool.slices.select(SLICE, "evidence"))
        chosen, rest = pool.listed(), rest[room:]
    beyond = pl.concat([chosen[most:].select(columns), rest, beyond])
    known = pl.concat(exact).unique(SLICE, keep="last")
    return Listed(chosen[:most], known, beyond)


def candidates(sought: Sought, slices: pl.DataFrame, bar: Bar) -> pl.DataFrame:
    """The slices that may be listed, in the order of evidence."""
    surer = _SURER if sought.coded.log.has_clusters else 1.0
    columns = [key.column for key in sought.coded.keys.values()]
    n_keys = pl.sum_horizontal(pl.col(columns).is_not_null())
    p = two_sided(pl.col("evidence") * surer)
    near = slices.filter((pl.col("evidence") > 0) & (p <= _LENIENT * bar.level))
    ranked = near.sort(-pl.col("evidence"), n_keys, -pl.col("n"), SLICE)
    bars = np.array([bar.at(place + 1) for place in range(ranked.height)])
    below = np.flatnonzero(ranked.select(p).to_series().to_numpy() <= _LENIENT * bars)
    return ranked[: below[-1] + 1] if len(below) else ranked[:0]


def _worth_a_look(
    sought: Sought, ranked: pl.DataFrame, bar: Bar, most: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The slices without those that a surer slice seems to explain, and the slices beyond `most`.

    A part of a surer slice is left out unless it is behind the other rows of that slice by `_LEFT`
    standard errors. A slice that contains a surer slice is left out unless its other rows are
    behind the rest of the log. If the slice has fewer keys, it is kept, and the surer part is left
    out unless it is behind the other rows of the slice. The scores of other rows are computed as if
    scores were means. This is rough; the slices that are kept are counted exactly later.
    """
    needed = evidence_of(bar.at(MOST))
    first, last = _spans(sought.coded.keys, ranked)
    n, score, rest, spread = (
        ranked[name].cast(pl.Float64).to_numpy() for name in ("n", "score", "reference", "spread")
    )
    variance = (spread / 2) ** 2
    per_row = n * variance
    is_left = np.ones(ranked.height, dtype=bool)
    kept: list[int] = []
    for one in range(ranked.height):
        if not is_left[one]:
            continue
        if len(kept) == most:
            break
        is_left[one] = False
        is_part = is_left & (first >= first[one]).all(axis=1) & (last <= last[one]).all(axis=1)
        is_whole = is_left & (first <= first[one]).all(axis=1) & (last >= last[one]).all(axis=1)
        with np.errstate(all="ignore"):
            n_left = np.abs(n - n[one])
            left = (n * score - n[one] * score[one]) / (n - n[one])
            behind_rest_of_one = (left - score) / np.sqrt(variance + per_row[one] / n_left)
            behind_all = (rest - left) / np.sqrt(per_row / n_left)
            behind_whole = (left - score[one]) / np.sqrt(variance[one] + per_row / n_left)
        is_same = (first == first[one]) & (last == last[one])
        is_coarser = is_whole & (is_same | (first < 0)).all(axis=1)
        if np.any(is_coarser & (behind_whole < needed - _LEFT)):
            continue
        kept.append(one)
        is_whole &= ~is_coarser
        is_left &= ~(is_part & ~(behind_rest_of_one >= _LEFT))
        is_left &= ~(is_whole & ~(behind_all >= _LEFT))
    return ranked[kept], ranked.filter(is_left)


def _spans(
    keys: Mapping[str, Key], slices: pl.DataFrame
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The first and last code of each slice in each key; all codes if the key is not in its set."""
    ends = []
    for end, of_all in (("first", -1), ("last", np.iinfo(np.int64).max)):
        columns = [
            key.known(end).cast(pl.Int64).fill_null(of_all).alias(key.column)
            for key in keys.values()
        ]
        ends.append(slices.select(columns).to_numpy().reshape(slices.height, len(keys)))
    return ends[0], ends[1]


@dataclass(frozen=True)
class _Pool:
    """Candidates in the order of exact evidence, with the p-values computed so far."""

    slices: pl.DataFrame
    overlaps: Overlaps
    bar: Bar
    large: frozenset[int]
    """The slices with most of the rows."""
    known: dict[Question, float] = field(default_factory=dict)

    @classmethod
    def of(cls, sought: Sought, slices: pl.DataFrame, bar: Bar, rows: float) -> _Pool:
        """Count the slices, and sort them by exact evidence."""
        found = Overlaps.of(sought, slices)
        alone = found.evidence([Question(place) for place in range(slices.height)])
        order = sorted(range(slices.height), key=lambda place: (-alone[place], place))
        exact = pl.Series("evidence", [alone[place] for place in order], dtype=pl.Float64)
        known = {Question(place): alone[at] for place, at in enumerate(order)}
        large = frozenset(place for place, n in enumerate(slices["n"][order]) if n > rows)
        return cls(slices[order].with_columns(exact), found.in_order(order), bar, large, known)

    def listed(self) -> pl.DataFrame:
        """The listed slices, at the largest bar that holds for the list."""
        number = self.slices.height
        p = self._at(self.bar.at(number), range(number))
        while (few := max(len(p.keys() - self.large), 1)) < number:
            number = few
            p = self._at(self.bar.at(number), [*p])
        rows = self.slices[[*p]]
        return rows.with_columns(p_value=pl.Series([*p.values()], dtype=pl.Float64))

    def _at(self, bar: float, guess: Sequence[int]) -> dict[int, float]:
        """The slices listed at a bar, each with the larger p-value of its first two tests."""
        taken_off: frozenset[int] = frozenset()
        while True:
            p = self._forward(bar, taken_off, guess)
            whole = self._explained_by_its_parts([*p], bar)
            if whole is None:
                return p
            taken_off |= {whole}
            guess = [*p]

    def _forward(
        self, bar: float, taken_off: frozenset[int], guess: Sequence[int]
    ) -> dict[int, float]:
        """The slices that pass the first two tests, each after the slices listed before it.

        A slice depends only on the slices before it. So each round is right for one slice more than
        the round before, whatever the guess, and the list is found when it no longer changes.
        """
        every = [place for place in range(self.slices.height) if place not in taken_off]
        alone = self._p([Question(place) for place in every])
        behind = {place for place in every if alone[Question(place)] <= bar}
        listed = [place for place in guess if place in behind]
        while True:
            left = {place: self._left(place, listed) for place in every}
            by_cause = {
                place: [
                    replace(left[place], within=left[place].within | {whole})
                    for whole in self._wholes[place]
                    if whole in behind
                ]
                for place in behind
            }
            found = self._p([*left.values(), *itertools.chain(*by_cause.values())])
            p = {place: max(alone[Question(place)], found[left[place]]) for place in every}
            now = [
                place
                for place in every
                if p[place] <= bar and all(found[one] <= bar for one in by_cause[place])
            ]
            if now == listed:
                return {place: p[place] for place in now}
            listed = now

    @cached_property
    def _wholes(self) -> list[list[int]]:
        """For each slice, the slices with fewer keys that contain it: its keys, but for some."""
        columns = [key.column for key in self.overlaps.sought.coded.keys.values()]
        values = self.slices.select(columns).rows()
        places = {value: place for place, value in enumerate(values)}
        found = []
        for value in values:
            used = [at for at, one in enumerate(value) if one is not None]
            coarser = (
                tuple(one if at in kept else None for at, one in enumerate(value))
                for size in range(1, len(used))
                for kept in itertools.combinations(used, size)
            )
            found.append([places[one] for one in coarser if one in places])
        return found

    def _left(
        self, place: int, listed: Sequence[int], parts: frozenset[int] = frozenset()
    ) -> Question:
        """Whether a slice is behind, without the slices listed before it."""
        before = frozenset(other for other in listed if other < place)
        within = frozenset(other for other in before if self.overlaps.has(other, place))
        return Question(place, without=(before - within - self.large) | parts, within=within)

    def _explained_by_its_parts(self, listed: Sequence[int], bar: float) -> int | None:
        """The listed slice that is least behind without its listed parts, if it fails the bar."""
        asked = []
        for place in listed:
            parts = frozenset(
                other for other in listed if other > place and self.overlaps.has(place, other)
            )
            if parts:
                asked.append(self._left(place, listed, parts))
        p = self._p(asked)
        weakest = max(p, key=lambda question: p[question], default=None)
        return weakest.slice if weakest is not None and p[weakest] > bar else None

    def _p(self, asked: Sequence[Question]) -> dict[Question, float]:
        """The p-value of each comparison; 1 if the slice is not behind."""
        new = [one for one in dict.fromkeys(asked) if one not in self.known]
        self.known.update(zip(new, self.overlaps.evidence(new), strict=True))
        return {one: math.erfc(self.known[one] / math.sqrt(2)) for one in asked}

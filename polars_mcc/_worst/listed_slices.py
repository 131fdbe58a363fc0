"""Which slices are listed: a stepwise regression of the loss of rows on slices.

The loss of a row is minus its influence on the score of all rows. Slices are columns of 0 and 1. A
slice has two evidences, in standard errors: z of its own score beside the rest of the log, and L of
its losses. A regression on the listed slices leaves ℓ of L. So the slice keeps z·ℓ/L. Where losses
say little, as of slices with another mix of labels, it keeps z - (L - ℓ).

Rows that are in the same listed slices have one pattern, so the regression needs only sums by
pattern: of all rows, and of the rows of the slice. Candidates are looked at by what was last known
of them, the surest first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from polars_mcc._comparisons.evidence import evidence_of
from polars_mcc._intervals.interval_methods import normal
from polars_mcc._metrics.slice_sums import Flags, Floats, Ints
from polars_mcc._worst.overlapping_slices import LogRows, Overlaps, spans
from polars_mcc._worst.p_value_cutoff import LENIENT, Cutoff
from polars_mcc._worst.slice_scores import ComparedSlices, ModelSearch, coarser

_TELLING = 2.0
"""Evidence of losses of which a share may be explained."""
_OWN = 3.0
"""The evidence that a slice must keep beside one with fewer keys, to be listed instead of it."""
_FREE = 5.0
"""The least rows of a slice that a regression leaves free: else it explains the slice."""


class SliceList(NamedTuple):
    """The listed slices, by their numbers, and what is known of others."""

    slices: Ints
    beside: Floats
    """The evidence of each beside all other listed slices."""
    own: dict[int, float]
    """The exact evidence, beside the rest of the log, of all slices that were counted."""
    beyond: Ints
    """Slices that did not fit in the list."""


def list_slices(search: ModelSearch, compared: ComparedSlices, cutoff: Cutoff) -> SliceList:
    """List slices, and take them from the list, until no other is sure beside those listed."""
    evidence = compared.comparisons.evidence * cutoff.surer
    near, number = _candidates(compared, evidence, cutoff)
    if not len(near):
        return SliceList(near, np.zeros(0), {}, near)
    steps = _Steps(search, compared, cutoff)
    steps.own(near[0])
    p = np.sort(normal(np.append(steps.known_own[int(near[0])], evidence[near[1:]])))
    steps.can_begin = bool((p <= cutoff.largest_p(np.arange(1, len(p) + 1))).any())
    steps.left = {at: float(evidence[at]) for at in near[:number].tolist()}
    return steps.taken()


def _candidates(compared: ComparedSlices, evidence: Floats, cutoff: Cutoff) -> tuple[Ints, int]:
    """The slices that are behind, the surest first; and how many of them may be listed.

    Evidence beside listed slices is never above that beside the rest of the log.
    """
    [near] = np.nonzero(compared.is_distinct & (evidence > evidence_of(LENIENT * cutoff.level)))
    places = compared.places(near)
    ranked_keys = sorted(zip(compared.keys, places.T, strict=True), key=lambda both: -both[0].size)
    ranks = [key.rank[of_key] for key, of_key in ranked_keys]
    sets, n_keys = np.searchsorted(compared.starts, near, "right"), (places >= 0).sum(1)
    # Equal evidence: fewer keys, more rows, and then the order of the values.
    order = np.lexsort([*reversed(ranks), sets, -compared.n[near], n_keys, -evidence[near]])
    ranked: Ints = near[order]
    sure = normal(evidence[ranked]) <= LENIENT * cutoff.largest_p(cutoff.longest + 1)
    return ranked, max(int(np.count_nonzero(sure)), 1)


class Patterns(NamedTuple):
    """The rows of a log by the listed slices that they are in."""

    of_row: Ints
    is_in: Flags
    """Whether rows of a pattern are in a slice: (patterns, slices)."""
    sums: Floats
    """Sums over the rows of each pattern, with weights w and losses y: w, w·y, w², w²·y and w²·y²:
    (5, patterns)."""


class _Steps:
    """The steps of the regression. Slices are known by their numbers."""

    def __init__(self, search: ModelSearch, compared: ComparedSlices, cutoff: Cutoff) -> None:
        """Begin with no slice."""
        self.compared, self.cutoff, self.can_begin = compared, cutoff, False
        self.rows = LogRows.of(search, compared)
        self.least = evidence_of(cutoff.level)
        """The least evidence of the own score of a slice that may be listed."""
        self.known_own: dict[int, float] = {}
        self.within: dict[tuple[int, int], float] = {}
        self.left: dict[int, float] = {}
        """What was last known to be left of each candidate."""
        self.listed: list[int] = []
        self.out: set[int] = set()
        self.every = np.ones(len(self.rows.cell), bool)
        pattern = np.zeros(len(self.rows.cell), np.uint8)
        self.patterns = self._patterns(pattern, np.zeros((1, 0), bool))

    def taken(self) -> SliceList:
        """Take all steps."""
        fresh: set[int] = set()
        while len(self.listed) < self.cutoff.longest:
            best = max(self.left, key=self.left.__getitem__, default=-1)
            if best < 0 or not self._is_sure(self.left[best]):
                break
            if best not in fresh:
                self.left[best] = self.beside(best, self.patterns)
                fresh.add(best)
                continue
            self._list(self._coarsest(best))
            fresh = set()
        is_full = len(self.listed) == self.cutoff.longest
        more = [at for at, left in self.left.items() if is_full and self._is_sure(left)]
        listed, beyond = (np.array(of, np.int64) for of in (self.listed, more))
        return SliceList(listed, np.array(self._beside_others()), self.known_own, beyond)

    def _is_sure(self, left: float) -> bool:
        if self.can_begin and not self.listed:
            return left >= self.least
        return self.cutoff.passes(left, len(self.listed) + 1)

    def own(self, at: int) -> float:
        """The evidence of the own score of a slice; 0 if it may not be listed."""
        if at not in self.known_own:
            self.known_own[at] = self._behind(at, None)
        return self.known_own[at] if self.known_own[at] >= self.least else 0.0

    def _behind(self, at: int, whole: int | None) -> float:
        """The evidence of a slice beside all other rows, or beside those of a slice."""
        here = self.rows.members(at)
        others = ~here if whole is None else self.rows.members(whole) & ~here
        [evidence] = Overlaps.of(self.rows, [*map(self.rows.sums, (here, others))]).evidence()
        return float(evidence)

    def beside(self, at: int, patterns: Patterns, but: int | None = None) -> float:
        """The evidence of a slice beside those listed, `but` itself if it is listed."""
        sums = self._sums(at, patterns)
        kept = np.delete(patterns.is_in, [] if but is None else [but], axis=1)
        own, first = self.own(at), _unexplained(sums, patterns.sums, kept[:, :0])
        left = _unexplained(sums, patterns.sums, kept)
        if first > _TELLING:
            beside = own * min(max(left / first, 0.0), 1.0)
        else:
            beside = max(own - max(first - left, 0.0), 0.0)
        for whole in self.listed if beside >= self.least else ():
            if whole != at and self._contains(whole, at):
                if (at, whole) not in self.within:
                    self.within[at, whole] = self._behind(at, whole)
                beside = min(beside, self.within[at, whole])
        return beside

    def _sums(self, at: int, patterns: Patterns) -> Floats:
        """The sums of the rows of a slice by pattern."""
        if at in self.listed:
            return np.where(patterns.is_in[:, self.listed.index(at)], patterns.sums, 0.0)
        return self.rows.losses(self.rows.members(at), patterns.of_row, len(patterns.is_in))

    def _contains(self, whole: int, part: int) -> bool:
        first, last = spans(self.compared, np.array([whole, part]))
        return bool(((first[0] <= first[1]) & (last[0] >= last[1])).all())

    def _coarsest(self, best: int) -> int:
        """A slice, or the one with fewer keys that explains it."""
        while True:
            left = {at: self.beside(at, self.patterns) for at in self._wholes(best)}
            whole = max(left, key=left.__getitem__, default=-1)
            if whole < 0 or left[whole] <= 0:
                return best
            self.listed.append(whole)
            beside = self.beside(best, self._with(whole))
            self.listed.pop()
            if beside >= _OWN:
                return best
            best = whole

    def _wholes(self, at: int) -> list[int]:
        """The slices with fewer keys that contain a slice, and may be listed."""
        [clauses] = self.compared.clauses(np.array([at]))
        found = [self.compared.number_of(whole) for whole in coarser(clauses)[:-1]]
        evidence, gone = self.compared.comparisons.evidence, {*self.listed, *self.out}
        known = [at for at in found if at is not None and self.compared.is_distinct[at]]
        return [at for at in known if at not in gone and not np.isnan(evidence[at])]

    def _list(self, slice_: int) -> None:
        """List a slice; then those that the others explain leave, the weakest first."""
        self.patterns = self._with(slice_)
        self.listed.append(slice_)
        self.left.pop(slice_, None)
        while len(self.listed) > 1:
            beside = self._beside_others()
            weakest = int(np.argmin(beside))
            if self.cutoff.passes(beside[weakest], len(self.listed)):
                return
            self.out.add(self.listed.pop(weakest))
            is_in = np.delete(self.patterns.is_in, weakest, axis=1)
            self.patterns = self.patterns._replace(is_in=is_in)
            # What it explained may come back.
            self.left = {at: self.own(at) for at in self.left}

    def _beside_others(self) -> list[float]:
        """The evidence of each listed slice beside the others."""
        return [self.beside(at, self.patterns, place) for place, at in enumerate(self.listed)]

    def _with(self, slice_: int) -> Patterns:
        """The patterns with one more slice."""
        of_row, is_in, _ = self.patterns
        of_row = of_row.astype(np.int64) * 2 + self.rows.members(slice_)
        [found] = np.nonzero(np.bincount(of_row, minlength=2 * len(is_in)))
        place = np.zeros(2 * len(is_in), np.min_scalar_type(len(found)))
        place[found] = np.arange(len(found))
        return self._patterns(place[of_row], np.column_stack([is_in[found // 2], found % 2 == 1]))

    def _patterns(self, of_row: Ints, is_in: Flags) -> Patterns:
        return Patterns(of_row, is_in, self.rows.losses(self.every, of_row, len(is_in)))


def _unexplained(slice_: Floats, every: Floats, model: Flags) -> float:
    """How many standard errors a slice loses more than a regression on others explains.

    It is the score test with the variance of the residuals (White 1980), or if this is larger, with
    their mean: a slice almost without errors knows little of its variance. `slice_` and `every` are
    sums by pattern, `model` the columns of the others.
    """
    kept = every[0] > 0
    slice_, every, model = slice_[:, kept], every[:, kept], model[kept]
    n, loss, *squares = every
    root = np.sqrt(n)[:, None]
    axes = np.linalg.qr(root * np.column_stack([np.ones(len(n), bool), model]))[0] / root
    fit = axes @ (axes.T @ loss)
    share = axes @ (axes.T @ slice_[0])
    here, all_ = (
        squared - 2 * fit * moved + fit**2 * weight
        for weight, moved, squared in (slice_[2:], squares)
    )
    free = float(slice_[0].sum() - (n * share**2).sum())
    variance = float((here * (1 - share) ** 2 + (all_ - here) * share**2).sum())
    variance = max(variance, float(all_.sum() / max(n.sum(), 1)) * free)
    if free <= _FREE or variance <= 0:
        return 0.0
    return float((slice_[1] - slice_[0] * fit).sum()) / math.sqrt(variance)

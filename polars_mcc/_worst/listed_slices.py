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
from polars_mcc._worst.p_value_cutoff import LENIENT, Cutoff
from polars_mcc._worst.rows_of_slices import LogRows, spans
from polars_mcc._worst.slice_scores import ComparedSlices, coarser

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


def list_slices(rows: LogRows, cutoff: Cutoff) -> SliceList:
    """List slices, and take them from the list, until no other is sure beside those listed."""
    evidence = rows.compared.comparisons.evidence * cutoff.surer
    near, number = _candidates(rows.compared, evidence, cutoff)
    own: dict[int, float] = {}
    if len(near):
        first = int(near[0])
        own[first] = rows.evidence(first)
        p = np.sort(normal(np.append(own[first], evidence[near[1:]])))
        if (p <= cutoff.largest_p(np.arange(1, len(p) + 1))).any():
            return _Steps(rows, cutoff, near, own).taken(near[:number].tolist())
    return SliceList(near[:0], np.zeros(0), own, near[:0])


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
    """Sums over the rows of each pattern, see `LogRows.losses`: (6, patterns)."""

    def model(self, but: int | None = None) -> _Model:
        """The regression on the slices, without one of them."""
        return _Model.of(self.sums, np.delete(self.is_in, [] if but is None else [but], axis=1))


class _Model(NamedTuple):
    """A regression of losses on slices, in a log of patterns: arrays (patterns,)."""

    kept: Flags
    """Whether a pattern has rows."""
    sums: Floats
    axes: Floats
    """Orthonormal columns that span the slices and a constant."""
    fit: Floats
    squares: Floats
    """Sums of w² and squared residuals."""

    @classmethod
    def of(cls, sums: Floats, columns: Flags) -> _Model:
        """Fit the regression by least squares."""
        kept = (sums[0] > 0) & (sums[1] > 0)
        sums, columns = sums[1:, kept], columns[kept]
        root = np.sqrt(sums[0])[:, None]
        axes = np.linalg.qr(root * np.column_stack([np.ones(len(root), bool), columns]))[0] / root
        fit = axes @ (axes.T @ sums[1])
        return cls(kept, sums, axes, fit, _residuals(sums, fit))

    def unexplained(self, slice_: Floats) -> float:
        """How many standard errors a slice loses more than the regression explains.

        It is the score test with the variance of the residuals (White 1980), or if this is larger,
        with their mean: a slice almost without errors knows little of its variance. `slice_` are
        the sums of its rows by pattern.
        """
        slice_ = slice_[1:, self.kept]
        share = self.axes @ (self.axes.T @ slice_[0])
        here, weight = _residuals(slice_, self.fit), self.sums[0]
        free = float(slice_[0].sum() - (weight * share**2).sum())
        variance = float((here * (1 - share) ** 2 + (self.squares - here) * share**2).sum())
        variance = max(variance, float(self.squares.sum() / max(weight.sum(), 1)) * free)
        if free <= _FREE or variance <= 0:
            return 0.0
        return float((slice_[1] - slice_[0] * self.fit).sum()) / math.sqrt(variance)


def _residuals(sums: Floats, fit: Floats) -> Floats:
    """Sums of w² (y - fit)²."""
    _, _, squares, moved, squared = sums
    left: Floats = squared - 2 * fit * moved + fit**2 * squares
    return left


class _Steps:
    """The steps of the regression. Slices are known by their numbers."""

    def __init__(
        self, rows: LogRows, cutoff: Cutoff, near: Ints, known_own: dict[int, float]
    ) -> None:
        """Begin with no slice. Those `near` have evidence that could be enough to be listed."""
        self.rows, self.cutoff, self.known_own = rows, cutoff, known_own
        self.least = evidence_of(cutoff.level)
        """The least evidence of the own score of a slice that may be listed."""
        evidence = rows.compared.comparisons.evidence[near] * cutoff.surer
        # With 1 / LENIENT of the p-value, z²/2 is larger by ln LENIENT at most.
        most = np.sqrt(evidence**2 + 2 * math.log(LENIENT))
        self.most = dict(zip(near.tolist(), most.tolist(), strict=True))
        """The most own evidence that each may have."""
        firsts, lasts = spans(rows.compared, near)
        self.spans = dict(zip(near.tolist(), zip(firsts, lasts, strict=True), strict=True))
        self.within: dict[tuple[int, int], float] = {}
        self.left: dict[int, float] = {}
        """What was last known to be left of each candidate."""
        self.listed: list[int] = []
        self.out: set[int] = set()
        pattern = np.zeros(len(rows.cell), np.int32)
        self.patterns = Patterns(pattern, np.zeros((1, 0), bool), rows.losses_of_all)
        self.nothing = self.model = self.patterns.model()
        self.losses: dict[int, tuple[float, float]] = {}
        """The evidence by losses of each candidate, alone and beside those listed now."""

    def taken(self, candidates: list[int]) -> SliceList:
        """Take all steps. The first is taken, as some slice passes by its own evidence."""
        self.left = {at: self.most[at] for at in candidates}
        sure: set[int] = set()
        while len(self.listed) < self.cutoff.longest:
            best = max(self.left, key=self.left.__getitem__, default=-1)
            if best < 0 or not self._is_sure(self.left[best]):
                break
            if best in sure:
                self._list(self._coarsest(best))
                sure = set()
            elif best in self.losses:
                self.left[best] = self.beside(best)
                sure.add(best)
            else:
                self.left[best] = self._kept(self._most(best), *self._by_losses(best))
        is_full = len(self.listed) == self.cutoff.longest
        more = [at for at, left in self.left.items() if is_full and self._is_sure(left)]
        listed, beyond = (np.array(of, np.int64) for of in (self.listed, more))
        return SliceList(listed, np.array(self._beside_others()), self.known_own, beyond)

    def _is_sure(self, left: float) -> bool:
        if not self.listed:
            return left >= self.least
        return self.cutoff.passes(left, len(self.listed) + 1)

    def own(self, at: int) -> float:
        """The evidence of the own score of a slice; 0 if it may not be listed."""
        if at not in self.known_own:
            self.known_own[at] = self.rows.evidence(at)
        return self.known_own[at] if self.known_own[at] >= self.least else 0.0

    def _most(self, at: int) -> float:
        """The most own evidence that a slice may have."""
        return self.own(at) if at in self.known_own else self.most[at]

    def beside(self, at: int) -> float:
        """The evidence of a slice beside those listed."""
        return self._within(at, self._kept(self.own(at), *self._by_losses(at)))

    def _by_losses(self, at: int) -> tuple[float, float]:
        """The evidence of a slice by losses: alone, and beside those listed."""
        if at not in self.losses:
            self.losses[at] = self._of_sums(self._sums(at, self.patterns), self.model)
        return self.losses[at]

    def _of_sums(self, sums: Floats, model: _Model) -> tuple[float, float]:
        """The evidence of the sums of a slice by losses: alone, and beside a regression."""
        alone = sums.sum(axis=1, keepdims=True)
        return self.nothing.unexplained(alone), model.unexplained(sums)

    def _kept(self, own: float, alone: float, left: float) -> float:
        """What others leave of the own evidence of a slice, by its evidence by losses."""
        if alone > _TELLING:
            return own * min(max(left / alone, 0.0), 1.0)
        return max(own - max(alone - left, 0.0), 0.0)

    def _within(self, at: int, beside: float) -> float:
        """The least of some evidence, and of that beside the other rows of each listed whole."""
        for whole in self.listed if beside >= self.least else ():
            if whole != at and self._contains(whole, at):
                if (at, whole) not in self.within:
                    self.within[at, whole] = self.rows.evidence(at, whole)
                beside = min(beside, self.within[at, whole])
        return beside

    def _sums(self, at: int, patterns: Patterns) -> Floats:
        """The sums of the rows of a slice by pattern."""
        return self.rows.losses(self.rows.of_slice(at), patterns.of_row, len(patterns.is_in))

    def _contains(self, whole: int, part: int) -> bool:
        (first, last), (first_part, last_part) = self.spans[whole], self.spans[part]
        return bool(((first <= first_part) & (last >= last_part)).all())

    def _coarsest(self, best: int) -> int:
        """A slice, or the one with fewer keys that explains it."""
        while True:
            left = {at: self.beside(at) for at in self._wholes(best)}
            whole = max(left, key=left.__getitem__, default=-1)
            if whole < 0 or left[whole] <= 0:
                return best
            patterns = self._with(whole)
            losses = self._of_sums(self._sums(best, patterns), patterns.model())
            self.listed.append(whole)
            beside = self._within(best, self._kept(self.own(best), *losses))
            self.listed.pop()
            if beside >= _OWN:
                return best
            best = whole

    def _wholes(self, at: int) -> list[int]:
        """The slices with fewer keys that contain a slice, and may be listed."""
        compared, gone = self.rows.compared, {*self.listed, *self.out}
        [clauses] = compared.clauses(np.array([at]))
        found = [compared.number_of(whole) for whole in coarser(clauses)[:-1]]
        return [at for at in found if at is not None and at in self.most and at not in gone]

    def _list(self, slice_: int) -> None:
        """List a slice; then those that the others explain leave, the weakest first."""
        self.patterns = self._with(slice_)
        self.listed.append(slice_)
        self.left.pop(slice_, None)
        while len(self.listed) > 1:
            beside = self._beside_others()
            weakest = int(np.argmin(beside))
            if self.cutoff.passes(beside[weakest], len(self.listed)):
                break
            self.out.add(self.listed.pop(weakest))
            is_in = np.delete(self.patterns.is_in, weakest, axis=1)
            self.patterns = self.patterns._replace(is_in=is_in)
            # What it explained may come back.
            self.left = {at: self._most(at) for at in self.left}
        self.model, self.losses = self.patterns.model(), {}

    def _beside_others(self) -> list[float]:
        """The evidence of each listed slice beside the others."""
        beside = []
        for place, at in enumerate(self.listed):
            sums = np.where(self.patterns.is_in[:, place], self.patterns.sums, 0.0)
            losses = self._of_sums(sums, self.patterns.model(place))
            beside.append(self._within(at, self._kept(self.own(at), *losses)))
        return beside

    def _with(self, slice_: int) -> Patterns:
        """The patterns with one more slice: those that it meets are two."""
        of_row, is_in, sums = self.patterns
        rows = self.rows.of_slice(slice_)
        inside = self.rows.losses(rows, of_row, len(is_in))
        [met] = np.nonzero(np.bincount(of_row[rows], minlength=len(is_in)))
        place = np.zeros(len(is_in), np.int32)
        place[met] = len(is_in) + np.arange(len(met))
        of_row = of_row.copy()
        of_row[rows] = place[of_row[rows]]
        column = np.repeat([False, True], [len(is_in), len(met)])
        is_in = np.column_stack([np.concatenate([is_in, is_in[met]]), column])
        return Patterns(of_row, is_in, np.append(sums - inside, inside[:, met], axis=1))

"""Which slices are listed: a stepwise regression of the loss of rows on slices.

The loss of a row is minus its influence on the score of all rows. Slices are columns of 0 and 1. A
slice has two evidences, in standard errors: z of its own score beside the rest of the log, and L of
its losses. A regression on the listed slices leaves ℓ of L. So the slice keeps z·ℓ/L. Where losses
say little, as of slices with another mix of labels, it keeps z - (L - ℓ).

Rows that are in the same slices are of one kind, so a step needs only sums by kind. There are too
many kinds if thousands of slices are behind: the surest are counted first, and others once they may
be next.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from polars_mcc._comparisons.evidence import evidence_of
from polars_mcc._intervals.interval_methods import normal
from polars_mcc._metrics.slice_sums import Flags, Floats, Ints
from polars_mcc._worst.overlapping_slices import Losses, Overlaps, Question
from polars_mcc._worst.p_value_cutoff import LENIENT, Cutoff
from polars_mcc._worst.slice_scores import ComparedSlices, ModelSearch, coarser

_AT_ONCE = 128  # candidates that are counted at once
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
    waiting = near[:number].tolist()
    order = {number: rank for rank, number in enumerate(waiting)}
    listed, out, passed, own = list[int](), set[int](), set[int](), dict[int, float]()

    def count(alive: Sequence[int]) -> _Counted:
        """Count the next candidates, with those that are listed or still sure."""
        room = max(_AT_ONCE - len(alive), _AT_ONCE // 2)
        asked, waiting[:room] = [*listed, *alive, *waiting[:room]], []
        counted = _Counted.of(search, compared, asked, evidence_of(cutoff.level))
        own.update(zip(counted.row, counted.own.tolist(), strict=True))
        passed.update(asked)
        return counted

    def is_sure(left: float) -> bool:
        return (can_begin and not listed) or cutoff.passes(left, len(listed) + 1)

    def sure() -> list[int]:
        return [number for number, left in counted.others(listed, out) if is_sure(left)]

    counted = count([])
    of_near = [own.get(at, float(evidence[at])) for at in near.tolist()]
    p = np.sort(normal(np.array(of_near)))
    can_begin = bool((p <= cutoff.largest_p(np.arange(1, len(p) + 1))).any())
    while len(listed) < cutoff.longest:
        best, left = max(counted.others(listed, out), key=itemgetter(1), default=(-1, 0.0))
        unseen = float(evidence[waiting[0]]) if waiting else 0.0
        if not is_sure(max(left, unseen)) or best < 0:
            break
        if unseen > left:
            counted = count(sure())
            continue
        listed.append(counted.coarsest(best, listed, out))
        while len(listed) > 1:
            weakest, left = min(counted.beside_others(listed), key=itemgetter(1))
            if cutoff.passes(left, len(listed)):
                break
            listed.remove(weakest)
            out.add(weakest)
            # What it explained may come back.
            again = {*passed, *waiting}.difference(listed, out)
            waiting[:] = sorted(again, key=lambda number: order.get(number, len(order)))
            passed.clear()
    is_full = len(listed) == cutoff.longest
    beyond = [*sure(), *waiting] if is_full else []
    beside = [left for _, left in counted.beside_others(listed)]
    return SliceList(np.array(listed, np.int64), np.array(beside), own, np.array(beyond, np.int64))


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


@dataclass(frozen=True)
class _Counted:
    """Some slices, and those with fewer keys that contain them, with their rows by kind.

    A slice is known by its number. Arrays have it in the row that `row` says.
    """

    overlaps: Overlaps
    row: Mapping[int, int]
    wholes: Mapping[int, Sequence[int]]
    """For each slice, the slices with fewer keys that contain it."""
    is_in: Flags
    """Whether rows of a kind are in a slice: (slices, kinds). Kinds without a loss are left out."""
    losses: Losses
    own: Floats
    """The evidence of the own score."""
    by_loss: Floats
    """The evidence of the losses."""
    least: float
    """The least evidence of the own score of a slice that may be listed."""
    within: dict[tuple[int, int], float] = field(default_factory=dict)
    """The evidence of a slice beside the other rows of one that contains it."""

    @classmethod
    def of(
        cls, search: ModelSearch, compared: ComparedSlices, asked: Sequence[int], least: float
    ) -> _Counted:
        """Count the rows of slices, and of those with fewer keys that contain them."""
        of_asked = compared.clauses(np.array([*dict.fromkeys(asked)], np.int64))
        numbers = {each: compared.number_of(each) for own in of_asked for each in coarser(own)}
        may_enter = compared.is_distinct & ~np.isnan(compared.comparisons.evidence)
        known = {own: at for own, at in numbers.items() if at is not None and may_enter[at]}
        wholes = {
            at: [known[whole] for whole in coarser(own)[:-1] if whole in known]
            for own, at in known.items()
        }
        overlaps = Overlaps.of(search, compared, np.array([*known.values()], np.int64))
        own = np.array(overlaps.evidence([Question(row) for row in range(len(known))]))
        losses = overlaps.losses()
        [has_loss] = np.nonzero(losses.n > 0)
        is_in, losses = overlaps.is_in[:, has_loss], Losses(*(sums[has_loss] for sums in losses))
        by_loss = _unexplained(is_in, is_in[:0], losses)
        row = {at: row for row, at in enumerate(known.values())}
        return cls(overlaps, row, wholes, is_in, losses, own, by_loss, least)

    def others(self, listed: Sequence[int], out: Collection[int]) -> list[tuple[int, float]]:
        """The slices that may be listed, with their evidence beside those listed."""
        others = [at for at, row in self.row.items() if self.own[row] >= self.least]
        others = [at for at in others if at not in out and at not in listed]
        return [*zip(others, self.beside(others, listed).tolist(), strict=True)]

    def beside(self, slices: Sequence[int], listed: Sequence[int]) -> Floats:
        """The evidence of slices beside those listed."""
        some, model = ([self.row[at] for at in of] for of in (slices, listed))
        own, first = self.own[some], self.by_loss[some]
        left = _unexplained(self.is_in[some], self.is_in[model], self.losses)
        with np.errstate(all="ignore"):
            share = own * np.clip(left / first, 0, 1)
        beside = np.where(first > _TELLING, share, own - np.clip(first - left, 0, own))
        pairs = [
            (place, (row, whole))
            for place, row in enumerate(some)
            for whole in model
            if row != whole and beside[place] >= self.least and self._contains(whole, row)
        ]
        new = [pair for pair in dict.fromkeys(pair for _, pair in pairs) if pair not in self.within]
        asked = [Question(row, frozenset([whole])) for row, whole in new]
        self.within.update(zip(new, self.overlaps.evidence(asked), strict=True))
        for place, pair in pairs:
            beside[place] = min(beside[place], self.within[pair])
        return beside

    def _contains(self, whole: int, row: int) -> bool:
        return not (self.is_in[row] & ~self.is_in[whole]).any()

    def coarsest(self, best: int, listed: Sequence[int], out: Collection[int]) -> int:
        """A slice, or the one with fewer keys that explains it."""
        others = dict(self.others(listed, out))
        while wholes := [at for at in self.wholes[best] if others.get(at, 0.0) > 0]:
            whole = max(wholes, key=others.__getitem__)
            if self.beside([best], [*listed, whole])[0] >= _OWN:
                break
            best = whole
        return best

    def beside_others(self, listed: Sequence[int]) -> list[tuple[int, float]]:
        """The listed slices, with their evidence beside the others."""
        others = ([at for at in listed if at != own] for own in listed)
        beside = (self.beside([own], model) for own, model in zip(listed, others, strict=True))
        return [*zip(listed, (float(left[0]) for left in beside), strict=True)]


def _unexplained(slices: Flags, model: Flags, losses: Losses) -> Floats:
    """How many standard errors slices lose more than a regression on others explains.

    It is the score test with the variance of the residuals (White 1980), or if this is larger, with
    their mean: a slice almost without errors knows little of its variance.
    """
    n, root = losses.n[:, None], np.sqrt(losses.n)[:, None]
    columns = np.vstack([np.ones(len(root), bool), model]).T
    axes = np.linalg.qr(root * columns)[0] / root
    fit = axes @ (axes.T @ losses.loss)
    moved = losses.loss - losses.n * fit
    squared = losses.squared - 2 * fit * losses.moved + fit**2 * losses.squares
    inner, mean = axes.T @ (squared[:, None] * axes), squared.sum() / max(losses.n.sum(), 1)
    evidence = np.zeros(len(slices))
    for first in range(0, len(slices), 32):  # A few at a time: a flag becomes 8 bytes.
        here = slices[first : first + 32].astype(np.float64)
        along = here @ (n * axes)
        free = here @ losses.n - (along**2).sum(1)
        robust = here @ squared - 2 * ((here @ (squared[:, None] * axes)) * along).sum(1)
        robust += ((along @ inner) * along).sum(1)
        variance = np.maximum(robust, mean * free)
        with np.errstate(all="ignore"):
            errors = here @ moved / np.sqrt(variance)
        evidence[first : first + 32] = np.where((free > _FREE) & (variance > 0), errors, 0.0)
    return evidence

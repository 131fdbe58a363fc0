"""Overlapping slices: count rows once by the slices they are in, then combine the counts.

Rows that are in the same slices are of one kind. The pairs of the rows that are in one slice, and
not in another, are sums over kinds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mcc._intervals.count_arrays import Counted, Draws
from polars_mcc._intervals.pooled_slices import Pools
from polars_mcc._intervals.scores_of_arrays import has_classes
from polars_mcc._metrics.slice_sums import Flags, Floats, Ints, added_up
from polars_mcc._worst.slice_counts import numbered
from polars_mcc._worst.slice_scores import ComparedSlices, ModelSearch

_NOTHING = 1e-9  # a smaller effect is 0: influences cancel in each cluster


@dataclass(frozen=True)
class Question:
    """Is a slice behind? Of some rows, compare the rows in the slice with the rows outside it."""

    slice: int
    within: frozenset[int] = frozenset()
    """Slices that must contain the rows of both sides."""


class Losses(NamedTuple):
    """Sums over the rows of each kind, with weights w and losses y: arrays (kinds,)."""

    n: Floats
    """Σ w"""
    loss: Floats
    """Σ w·y"""
    squares: Floats
    """Σ w²"""
    moved: Floats
    """Σ w²·y"""
    squared: Floats
    """Σ w²·y²"""


@dataclass(frozen=True)
class Overlaps:
    """Counts of rows by kind: a cell per kind, pair and cluster."""

    search: ModelSearch
    is_in: Flags
    """Whether rows of a kind are in a slice; shape (slices, kinds)."""
    kind: Ints
    """The kind of each cell: (cells,)."""
    pair: Ints
    """The place of its pair in `gold` and `pred`."""
    n: Floats | Ints
    squares: Floats | Ints
    cluster: Ints
    """The number of its cluster; without clusters, 0."""
    n_clusters: int
    gold: Ints
    """The code of the gold label of each pair: (pairs,). It may be that of no label: see
    `SliceCounter.is_reweighted`."""
    pred: Ints

    @classmethod
    def of(cls, search: ModelSearch, compared: ComparedSlices, slices: Ints) -> Overlaps:
        """Count the rows of the log by kind, for these slices."""
        log = search.log
        firsts, lasts = spans(compared, slices)
        codes, members = {}, []
        for place, key in enumerate(log.keys.values()):
            first, last = firsts[:, place, None], lasts[:, place, None]
            if (first >= 0).any():  # Else no slice has the key.
                code = np.arange(key.size + 1)
                is_in = (first <= code) & (code <= last)
                # Codes that are in the same slices become one code.
                _, example, alike = np.unique(
                    np.packbits(is_in, axis=0), axis=1, return_index=True, return_inverse=True
                )
                alike = alike.reshape(-1).astype(np.min_scalar_type(len(example)))
                codes[key.column] = alike[log.rows[key.column]]
                members.append(is_in[:, example])
        clusters = {} if log.clusters is None else {"cluster": log.clusters}
        sides = ["pred"] if search.counter.is_reweighted else ["gold", "pred"]
        are_pairs = (pl.col(side) < len(log.labels) for side in sides)
        grouped = search.counter.grouped(codes, clusters, *are_pairs).filter(pl.col("n") > 0)
        cells = grouped.sort(*codes, "gold", "pred", *clusters).collect()
        kind, places = numbered(cells, [*codes])
        is_in = np.ones((len(slices), places.shape[1]), bool)
        for of_key, place in zip(members, places, strict=False):
            is_in &= of_key[:, place]
        gold, pred, n, squares = (
            cells[name].to_numpy() for name in ("gold", "pred", "n", "squares")
        )
        k = len(log.labels)
        pairs, pair = np.unique(gold.astype(np.int64) * k + pred, return_inverse=True)
        ids, cluster = np.unique(cells["cluster"] if clusters else kind * 0, return_inverse=True)
        return cls(search, is_in, kind, pair, n, squares, cluster, len(ids), pairs // k, pairs % k)

    def evidence(self, questions: Sequence[Question]) -> list[float]:
        """How many standard errors each slice is behind; 0 if not behind, or without rows."""
        if not questions:
            return []
        of_questions = []  # The kinds of rows of each comparison in the slice, and beside it.
        for asked in questions:
            rows = self.is_in[[*asked.within]].all(axis=0)
            of_questions += [self.is_in[asked.slice] & rows, ~self.is_in[asked.slice] & rows]
        search, scale, masks = self.search, self.search.scale, np.array(of_questions)
        sums, number = self.sums(masks), np.arange(len(questions))
        pairs, inside = self.pairs(*sums), self.pairs(*(side[::2] for side in sums))
        pool = self.pairs(*(side[::2] + side[1::2] for side in sums))
        if search.settings.to == "expected":
            evidence = search.below_expected(inside, number, pool)[2]
            return [*np.nan_to_num(evidence).tolist()]
        limits = search.limits(pairs, Pools(np.repeat(number, 2), pool))
        v, up, down = limits.proportion, limits.rows_up, limits.rows_down
        apart = scale.evidence(v[::2], up[::2], v[1::2], down[1::2])
        if search.is_by_labels:
            classes, needed = pool.n_classes, search.settings.metric.classes_needed
            every = classes(pool.gold), classes(pool.pred)
            here = pairs.n_classes(pairs.gold), pairs.n_classes(pairs.pred)
            own, rest = (has_classes(needed, *(n[at::2] for n in here), *every) for at in (0, 1))
            apart = np.where(own & ~rest, search.below_expected(inside, number, pool)[2], apart)
        collapsed = search.collapse(inside, number, pool)
        if search.log.clusters is not None:
            apart = self._by_cluster(masks, self.of_pairs(pairs, limits.phi), apart)
            if not np.isnan(collapsed).all():
                draws = self._clusters_of_pairs(masks[::2], inside)
                collapsed = search.collapse(inside, number, pool, draws)
        is_below = limits.score[::2] + limits.spread[::2] < limits.score[1::2]
        evidence = np.where(is_below & ~np.isnan(collapsed), collapsed, apart)
        return [*np.nan_to_num(evidence).tolist()]

    def losses(self) -> Losses:
        """The losses of rows: minus their influence on the score of all rows.

        With to="expected", they are less the mean of their gold label. Rows whose labels have no
        influence, whatever is predicted, are left out: a rate is not of them.
        """
        search = self.search
        n, squares = self.sums(np.ones((1, self.is_in.shape[1]), bool))
        whole = self.pairs(n, squares)
        with np.errstate(all="ignore"):
            of_metrics, *_ = search.scorer.influences(whole, is_smoothed=False)
        phi = self.of_pairs(whole, of_metrics[search.settings.metric.name].phi)[0]
        loss = -search.scale.turn * np.nan_to_num(phi)
        each = np.nan_to_num(self.of_pairs(whole, whole.n)[0])  # If rows stand for others: so many.
        with np.errstate(all="ignore"):
            stand_for = np.nan_to_num(each / n[0])
            if search.settings.to == "expected":
                _, of_gold = np.unique(self.gold, return_inverse=True)
                loss -= (np.bincount(of_gold, each * loss) / np.bincount(of_gold, each))[of_gold]
        weight = self.n * stand_for[self.pair] * (loss != 0)[self.pair]
        squares = self.squares * (stand_for**2 * (loss != 0))[self.pair]
        y, number = loss[self.pair], self.is_in.shape[1]
        parts = weight, weight * y, squares, squares * y, squares * y**2
        sums = (np.bincount(self.kind, part, number) for part in parts)
        return Losses(*(of_kinds.astype(np.float64) for of_kinds in sums))

    def _cells(self, masks: Flags) -> Iterator[Ints]:
        """The places of the cells of each mask."""
        return (np.flatnonzero(mask[self.kind]) for mask in masks)

    def sums(self, masks: Flags) -> tuple[Floats | Ints, Floats | Ints]:
        """The weight of the rows of each mask and pair, and of squares: (masks, pairs)."""
        cells, number = [*self._cells(masks)], len(self.gold)
        weights = [self.n] if self.search.log.sliced.is_frequency else [self.n, self.squares]
        sums = [
            np.array([added_up(weight[own], self.pair[own], number) for own in cells])
            for weight in weights
        ]
        return sums[0], sums[-1]

    def pairs(self, n: Floats | Ints, squares: Floats | Ints) -> Counted:
        """The scored pairs of sums that are not 0."""
        where = slices, pairs = np.nonzero(n > 0)
        gold, pred = self.gold[pairs], self.pred[pairs]
        every = Counted(len(n), slices, gold, pred, n[where], squares[where])
        return self.search.counter.represented(every)

    def _places(self, pairs: Counted) -> Ints:
        """The places of pairs in `gold` and `pred`."""
        k = len(self.search.log.labels)
        return np.searchsorted(self.gold * k + self.pred, pairs.gold * k + pairs.pred)

    def of_pairs(self, pairs: Counted, values: Floats) -> Floats:
        """Values of pairs as a table: (slices, pairs)."""
        table = np.full((pairs.number, len(self.gold)), math.nan)
        table[pairs.slices, self._places(pairs)] = values
        return table

    def draws(self, masks: Flags, pairs: Counted) -> tuple[Draws, Ints]:
        """The clusters of the rows of masks, and the place of the pair of each of their cells."""
        place = self.of_pairs(pairs, np.arange(len(pairs.n), dtype=np.float64))
        cells = [own[np.argsort(self.cluster[own], kind="stable")] for own in self._cells(masks)]
        slices = np.repeat(np.arange(len(masks)), [*map(len, cells)])
        places = np.concatenate(cells)
        ids = np.stack([slices, self.cluster[places]])
        starts = np.flatnonzero(np.diff(ids, prepend=-1).any(axis=0))
        n = self.n[places].astype(np.float64)
        draws = Draws(len(masks), slices, n, n, starts)
        return draws, place[slices, self.pair[places]].astype(np.int64)

    def covariances(self, masks: Flags, phi: Floats) -> Floats:
        """The covariance of the scores of a slice and of its rest, from clusters that are in both.

        Φ is the sum of the influences φ of the rows of a cluster. The covariance is Σ Φ_in Φ_out,
        divided by the rows in the slice and by the rows in the rest.
        """
        sides = self._of_clusters(masks, phi)
        both = zip(sides, sides, strict=True)
        return np.array([(sums * sums_rest).sum() for (sums, *_), (sums_rest, *_) in both])

    def _of_clusters(self, masks: Flags, phi: Floats) -> Iterator[tuple[Ints, float, int]]:
        """For each mask: Φ of each cluster per row of the mask, Σ φ² likewise, and its clusters."""
        for place, cells in enumerate(self._cells(masks)):
            n, clusters = self.n[cells], self.cluster[cells]
            with np.errstate(all="ignore"):  # A side may have no rows.
                moved = phi[place, self.pair[cells]] / n.sum()
                sums = np.bincount(clusters, n * moved, self.n_clusters)
            in_mask = int(np.count_nonzero(np.bincount(clusters)))
            yield sums, float((self.squares[cells] * moved**2).sum()), in_mask

    def _clusters_of_pairs(self, masks: Flags, pairs: Counted) -> Floats:
        """The number of clusters that have rows of each pair of slices."""
        table, number = np.zeros((len(masks), len(self.gold))), max(self.n_clusters, 1)
        for place, cells in enumerate(self._cells(masks)):
            both = np.unique(self.pair[cells] * number + self.cluster[cells])
            table[place] = np.bincount(both // number, minlength=len(self.gold))
        return table[pairs.slices, self._places(pairs)]

    def _by_cluster(self, masks: Flags, phi: Floats, evidence: Floats) -> Floats:
        """Convert evidence by row to evidence by cluster; 0 with one cluster on a side.

        Student's t becomes a normal deviate: D. L. Wallace, Annals of Mathematical Statistics 30
        (1959) 1121-1123.
        """
        converted = np.zeros(len(evidence))
        sides = self._of_clusters(masks, phi)
        for place, (own, rest) in enumerate(zip(sides, sides, strict=True)):
            (sums, squares, n), (sums_rest, squares_rest, n_rest) = own, rest
            clusters_vary, rows_vary = ((sums - sums_rest) ** 2).sum(), squares + squares_rest
            effect = clusters_vary / rows_vary if rows_vary > 0 else 0.0
            fewest = min(n, n_rest)
            if fewest > 1 and effect > _NOTHING:
                df = fewest - 1
                effect *= fewest / df  # few clusters show too little variance
                t2 = evidence[place] ** 2 / effect
                deviate = (8 * df + 1) / (8 * df + 3) * math.sqrt(df * math.log1p(t2 / df))
                converted[place] = deviate
        return converted


def spans(compared: ComparedSlices, slices: Ints) -> tuple[Ints, Ints]:
    """The first and last code of each slice in each key; all codes if the key is not in its set."""
    places = compared.places(slices)
    firsts, lasts = np.full(places.shape, -1), np.full(places.shape, np.iinfo(np.int64).max)
    for column, key in enumerate(compared.keys):
        [has_key] = np.nonzero(places[:, column] >= 0)
        for ends, name in ((firsts, "first"), (lasts, "last")):
            ends[has_key, column] = key.values[name].to_numpy()[places[has_key, column]]
    return firsts, lasts

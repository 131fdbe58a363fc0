"""Overlapping slices: count rows once by the slices they are in, then combine the counts.

Rows that are in the same slices are of one kind. The pairs of the rows that are in one slice, and
not in another, are sums over kinds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from polars_mcc._intervals.count_arrays import Counted, Draws
from polars_mcc._intervals.pooled_slices import Pools
from polars_mcc._intervals.scores_of_arrays import has_classes
from polars_mcc._metrics.slice_sums import Flags, Floats, Ints, added_up
from polars_mcc._worst.slice_scores import ComparedSlices, ModelSearch

_NOTHING = 1e-9  # a smaller effect is 0: influences cancel in each cluster


class Sums(NamedTuple):
    """The weights of some rows, and their squares, by cell: arrays (cells,)."""

    n: Ints
    squares: Ints


@dataclass(frozen=True)
class LogRows:
    """The scored rows of a log by cell: a cell per pair and cluster."""

    search: ModelSearch
    compared: ComparedSlices
    cell: Ints
    """The cell of each row; the number of cells for a row that is not scored: (rows,)."""
    weights: Sequence[Ints]
    """Of each row: its weight and its square; nothing if each row counts once."""
    pair: Ints
    """The place of the pair of each cell in `gold` and `pred`."""
    cluster: Ints
    """The number of the cluster of each cell; without clusters, 0."""
    n_clusters: int
    gold: Ints
    """The code of the gold label of each pair: (pairs,). It may be that of no label: see
    `SliceCounter.is_reweighted`."""
    pred: Ints

    @classmethod
    def of(cls, search: ModelSearch, compared: ComparedSlices) -> LogRows:
        """Number the cells of the log."""
        log, counter, k = search.log, search.counter, len(search.log.labels)
        is_scored = counter.pred < k
        is_scored &= (counter.gold < k) | counter.is_reweighted
        weights: list[Ints] = []
        if log.weights is not None:
            is_scored &= log.weights.n > 0
            squares = log.weights.squares
            weights = [log.weights.n, log.weights.n if squares is None else squares]
        ids = counter.gold.astype(np.int64) * counter.n_codes + counter.pred
        n_clusters = 1
        if log.clusters is not None:
            known, cluster = np.unique(log.clusters, return_inverse=True)
            n_clusters = max(len(known), 1)
            ids = ids * n_clusters + cluster
        found, places = np.unique(ids[is_scored], return_inverse=True)
        cell = np.full(len(ids), len(found), np.min_scalar_type(len(found)))
        cell[is_scored] = places
        pairs, pair = np.unique(found // n_clusters, return_inverse=True)
        labels = np.divmod(pairs, counter.n_codes)
        return cls(search, compared, cell, weights, pair, found % n_clusters, n_clusters, *labels)

    def members(self, slice_: int) -> Flags:
        """Whether each row is in a slice."""
        is_in = np.ones(len(self.cell), bool)
        firsts, lasts = spans(self.compared, np.array([slice_]))
        for key, first, last in zip(self.compared.keys, firsts[0], lasts[0], strict=True):
            if first >= 0:
                codes = self.search.log.rows[key.column]
                is_in &= codes == first if first == last else (codes >= first) & (codes <= last)
        return is_in

    def sums(self, rows: Flags) -> Sums:
        """Add up rows by cell."""
        number, cells = len(self.pair), self.cell[rows]
        if not self.weights:
            n = np.bincount(cells, minlength=number + 1)[:number]
            return Sums(n, n)
        n, squares = (added_up(of[rows], cells, number + 1)[:number] for of in self.weights)
        return Sums(n, squares)

    @cached_property
    def every(self) -> Overlaps:
        """All rows."""
        return Overlaps.of(self, [self.sums(np.ones(len(self.cell), bool))])

    @cached_property
    def whole(self) -> Counted:
        """The scored pairs of all rows."""
        return self.every.pairs(*self.every.sums(self.every.is_in))

    @cached_property
    def loss(self) -> tuple[Floats, Floats]:
        """The loss of a row of each pair, and how many rows it stands for: (pairs,).

        The loss is minus its influence on the score of all rows; with to="expected", less the mean
        of its gold label. Rows whose labels have no influence, whatever is predicted, stand for
        none: a rate is not of them.
        """
        search, every = self.search, self.every
        with np.errstate(all="ignore"):
            of_metrics, *_ = search.scorer.influences(self.whole, is_smoothed=False)
            phi = every.of_pairs(self.whole, of_metrics[search.settings.metric.name].phi)[0]
            loss = -search.scale.turn * np.nan_to_num(phi)
            each = np.nan_to_num(every.of_pairs(self.whole, self.whole.n)[0])
            if search.settings.to == "expected":
                _, of_gold = np.unique(self.gold, return_inverse=True)
                loss -= (np.bincount(of_gold, each * loss) / np.bincount(of_gold, each))[of_gold]
            rows = every.sums(every.is_in)[0][0]
            return loss, np.where(loss != 0, np.nan_to_num(each / rows), 0.0)

    def losses(self, rows: Flags, group: Ints, number: int) -> Floats:
        """Sums of some rows by group: w, w·y, w², w²·y and w²·y², with weights w and losses y."""
        loss, stand_for = self.loss
        size = len(loss) + 1
        pairs = np.append(self.pair, len(loss))[self.cell[rows]]
        ids = group[rows].astype(np.int64) * size + pairs
        tables = [np.bincount(ids, minlength=number * size)]
        if self.weights:
            tables = [added_up(of[rows], ids, number * size) for of in self.weights]
        n, squares = (
            of.reshape(number, size)[:, :-1].astype(np.float64) for of in (tables[0], tables[-1])
        )
        n, squares = n * stand_for, squares * stand_for**2
        return np.stack([n.sum(1), n @ loss, squares.sum(1), squares @ loss, squares @ loss**2])


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
    def of(cls, rows: LogRows, sides: Sequence[Sums]) -> Overlaps:
        """Take each side, some rows of the log, as a kind of its own."""
        places = [np.flatnonzero(side.n > 0) for side in sides]
        cells = np.concatenate(places)
        kind = np.repeat(np.arange(len(sides)), [*map(len, places)])
        n, squares = (
            np.concatenate([of[at] for of, at in zip(sums, places, strict=True)])
            for sums in zip(*sides, strict=True)
        )
        of_cells = rows.pair[cells], n, squares, rows.cluster[cells]
        is_in = np.eye(len(sides), dtype=bool)
        return cls(rows.search, is_in, kind, *of_cells, rows.n_clusters, rows.gold, rows.pred)

    def evidence(self) -> Floats:
        """How many standard errors each slice is behind; 0 if not behind, or without rows.

        The sides are slices, each before the rows that it is compared with.
        """
        search, scale, masks = self.search, self.search.scale, self.is_in
        sums, number = self.sums(masks), np.arange(len(masks) // 2)
        pairs, inside = self.pairs(*sums), self.pairs(*(side[::2] for side in sums))
        pool = self.pairs(*(side[::2] + side[1::2] for side in sums))
        if search.settings.to == "expected":
            evidence = search.below_expected(inside, number, pool)[2]
            return np.nan_to_num(evidence)
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
        return np.nan_to_num(evidence)

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

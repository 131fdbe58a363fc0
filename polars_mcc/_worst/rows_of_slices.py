"""Rows of a coded log → counts of a slice and of the rows beside it, and sums of their losses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from polars_mcc._intervals.count_arrays import Counted, Draws
from polars_mcc._intervals.scores_of_arrays import has_classes
from polars_mcc._intervals.smoothed_tables import Pools
from polars_mcc._metrics.slice_sums import Floats, Ints, added_up
from polars_mcc._worst.column_codes import places_in_order, portions, totals
from polars_mcc._worst.slice_scores import ComparedSlices, ModelSearch

if TYPE_CHECKING:
    from polars_mcc._counts.parquet_files import Codes

Column: TypeAlias = "int | tuple[int, int]"
"""A slice, by its number; or a key that is cut, by its place, and the code of one of its bins."""

_NOTHING = 1e-9  # a smaller effect is 0: influences cancel in each cluster


class Sums(NamedTuple):
    """The weights of some rows, and their squares, by cell: arrays (cells,)."""

    n: Floats | Ints
    squares: Floats | Ints


@dataclass(frozen=True)
class LogRows:
    """The scored rows of a log by cell: a cell per pair and cluster, sorted."""

    search: ModelSearch
    compared: ComparedSlices
    cell: Codes
    """The cell of each row; the number of cells for a row that is not scored: (rows,)."""
    weights: Sequence[Floats | Ints]
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
        weights: list[Floats | Ints] = []
        if log.weights is not None:
            squares = log.weights.squares
            weights = [log.weights.n, log.weights.n if squares is None else squares]
        n_clusters = 1
        if log.clusters is None and len(counter.pair):
            ids, number = counter.pair, counter.n_codes**2
            code = found = np.flatnonzero(totals([ids], [number]))
        else:
            pairs = counter.gold.astype(np.int64) * counter.n_codes + counter.pred
            if log.clusters is not None:
                known, cluster = np.unique(log.clusters, return_inverse=True)
                n_clusters = max(len(known), 1)
                pairs = pairs * n_clusters + cluster
            found, ids = np.unique(pairs, return_inverse=True)
            number, code = len(found), np.arange(len(found))
        golds, preds = np.divmod(found // n_clusters, counter.n_codes)
        [scored] = np.nonzero((preds < k) & ((golds < k) | counter.is_reweighted))
        cell, found = places_in_order(ids, number, code[scored]), found[scored]
        pairs, pair = np.unique(found // n_clusters, return_inverse=True)
        labels = np.divmod(pairs, counter.n_codes)
        return cls(search, compared, cell, weights, pair, found % n_clusters, n_clusters, *labels)

    def codes(self, place: int) -> Codes:
        """The code of each row in a key."""
        return self.search.log.rows[self.compared.keys[place].column]

    def of_column(self, column: Column) -> Ints:
        """The rows of a slice, or of a bin."""
        if isinstance(column, tuple):
            place, code = column
            return np.flatnonzero(self.codes(place) == code)
        is_in = np.ones(len(self.cell), bool)
        firsts, lasts = spans(self.compared, np.array([column]))
        ends = zip(self.compared.keys, firsts[0].tolist(), lasts[0].tolist(), strict=True)
        for key, first, last in ends:  # Integers of Python leave codes as small as they are.
            if first >= 0:
                codes = self.search.log.rows[key.column]
                is_in &= codes == first if first == last else (codes >= first) & (codes <= last)
        return np.flatnonzero(is_in)

    def sums(self, rows: Ints | slice) -> Sums:
        """Add up rows by cell."""
        number, cells = len(self.pair), self.cell[rows]
        if not self.weights:
            n = totals([cells], [number + 1])[:number]
            return Sums(n, n)
        n, squares = (added_up(of[rows], cells, number + 1)[:number] for of in self.weights)
        return Sums(n, squares)

    @cached_property
    def every(self) -> Sums:
        """All rows."""
        return self.sums(slice(None))

    def both(self, slice_: int, within: int | None = None) -> tuple[Sums, Sums]:
        """The rows of a slice, and all other rows, or those within another slice."""
        rows = self.of_column(slice_)
        whole = slice(None) if within is None else self.of_column(within)
        here, every = self.sums(rows), self.every if within is None else self.sums(whole)
        if here.n.dtype.kind == "i" and here.squares.dtype.kind == "i":
            return here, Sums(*(all_ - own for all_, own in zip(every, here, strict=True)))
        is_other = np.zeros(len(self.cell), bool)
        is_other[whole] = True
        is_other[rows] = False
        return here, self.sums(np.flatnonzero(is_other))

    def evidence(self, slices: Sequence[int], within: int | None = None) -> list[float]:
        """How surely slices are behind all other rows, or behind those within another slice."""
        sides = [side for at in slices for side in self.both(at, within)]
        found: list[float] = Sides.of(self, sides).evidence().tolist()
        return found

    @cached_property
    def _of_cell(self) -> Floats:
        """What a row of each cell loses, and one that is not scored, see `RowLosses.of_pair`."""
        of_pair = self.compared.losses.of_pairs(self.gold, self.pred)[:2]
        return np.append(of_pair[:, self.pair], np.zeros((2, 1)), axis=1)

    def weight(self, rows: Ints) -> Floats:
        """The weight of some rows in the regression of losses."""
        weight: Floats = self._of_cell[0][self.cell[rows]]
        return weight * self.weights[0][rows] if self.weights else weight

    def losses(self, rows: Ints, group: Ints, number: int) -> Floats:
        """The weight and the loss of some rows by group: (2, number)."""
        total = np.zeros((2, number))
        for some in portions(len(rows)):
            part = rows[some]
            cells, groups = self.cell[part], group[part]
            weight = self.weights[0][part] if self.weights else 1
            total += [np.bincount(groups, of[cells] * weight, number) for of in self._of_cell]
        return total


@dataclass(frozen=True)
class Sides:
    """Counts of rows on several sides: in turn a slice, and what it is compared with."""

    log: LogRows
    number: int
    side: Ints
    """The side of each cell, sorted: (cells,)."""
    cell: Ints
    """The cell of the log."""
    n: Floats | Ints
    squares: Floats | Ints

    @classmethod
    def of(cls, log: LogRows, sides: Sequence[Sums]) -> Sides:
        """Leave out empty cells."""
        cells = [np.flatnonzero(side.n > 0) for side in sides]
        n, squares = (
            np.concatenate([of[at] for of, at in zip(sums, cells, strict=True)])
            for sums in zip(*sides, strict=True)
        )
        side = np.repeat(np.arange(len(sides)), [*map(len, cells)])
        return cls(log, len(sides), side, np.concatenate(cells), n, squares)

    def evidence(self) -> Floats:
        """How many standard errors each slice is behind; 0 if not behind, or without rows."""
        search, scale = self.log.search, self.log.search.scale
        sums, number = self.by_pair, np.arange(self.number // 2)
        pairs, inside = self.pairs(*sums), self.pairs(*(side[::2] for side in sums))
        pool = self.pairs(*(side[::2] + side[1::2] for side in sums))
        if search.settings.to == "expected":
            evidence = search.below_expected(inside, number, pool)[1]
            return np.nan_to_num(evidence)
        limits = search.limits(pairs, Pools(np.repeat(number, 2), pool))
        v, up, down = limits.proportion, limits.rows_up, limits.rows_down
        apart = scale.evidence(v[::2], up[::2], v[1::2], down[1::2])
        if search.is_by_labels:
            classes, needed = pool.n_classes, search.settings.metric.classes_needed
            every = classes(pool.gold), classes(pool.pred)
            here = pairs.n_classes(pairs.gold), pairs.n_classes(pairs.pred)
            own, rest = (has_classes(needed, *(n[at::2] for n in here), *every) for at in (0, 1))
            apart = np.where(own & ~rest, search.below_expected(inside, number, pool)[1], apart)
        collapsed = search.collapse(inside, number, pool)
        if search.log.clusters is not None:
            apart = self._by_cluster(self.of_pairs(pairs, limits.phi), apart)
            if not np.isnan(collapsed).all():
                collapsed = search.collapse(inside, number, pool, self._clusters_of_pairs(inside))
        is_below = limits.score[::2] + limits.spread[::2] < limits.score[1::2]
        evidence = np.where(is_below & ~np.isnan(collapsed), collapsed, apart)
        return np.nan_to_num(evidence)

    @cached_property
    def by_pair(self) -> Sequence[Floats | Ints]:
        """The weight of the rows of each side and pair, and of squares: (sides, pairs)."""
        number = len(self.log.gold)
        ids = self.side * number + self.log.pair[self.cell]
        weights = [self.n] if self.log.search.log.sliced.is_frequency else [self.n, self.squares]
        sums = [
            added_up(of, ids, self.number * number).reshape(self.number, number) for of in weights
        ]
        return sums[0], sums[-1]

    def pairs(self, n: Floats | Ints, squares: Floats | Ints) -> Counted:
        """The scored pairs of sums that are not 0."""
        where = slices, pairs = np.nonzero(n > 0)
        gold, pred = self.log.gold[pairs], self.log.pred[pairs]
        every = Counted(len(n), slices, gold, pred, n[where], squares[where])
        return self.log.search.counter.represented(every)

    def _places(self, pairs: Counted) -> Ints:
        """The places of pairs in `gold` and `pred`."""
        k = len(self.log.search.log.labels)
        return np.searchsorted(self.log.gold * k + self.log.pred, pairs.gold * k + pairs.pred)

    def of_pairs(self, pairs: Counted, values: Floats) -> Floats:
        """Values of pairs as a table: (slices, pairs)."""
        table = np.full((pairs.number, len(self.log.gold)), math.nan)
        table[pairs.slices, self._places(pairs)] = values
        return table

    def draws(self, pairs: Counted) -> tuple[Draws, Ints]:
        """The clusters of the rows of each side, and the place of the pair of each cell."""
        place = self.of_pairs(pairs, np.arange(len(pairs.n), dtype=np.float64))
        order = np.lexsort([self.log.cluster[self.cell], self.side])
        side, cells, n = self.side[order], self.cell[order], self.n[order].astype(np.float64)
        ids = np.stack([side, self.log.cluster[cells]])
        starts = np.flatnonzero(np.diff(ids, prepend=-1).any(axis=0))
        draws = Draws(self.number, side, n, n, starts)
        return draws, place[side, self.log.pair[cells]].astype(np.int64)

    def covariances(self, phi: Floats) -> Floats:
        """The covariance of the scores of a slice and of its rest, from clusters that are in both.

        Φ is the sum of the influences φ of the rows of a cluster. The covariance is Σ Φ_in Φ_out,
        divided by the rows in the slice and by the rows in the rest.
        """
        sides = self._of_clusters(phi)
        both = zip(sides, sides, strict=True)
        return np.array([(sums * sums_rest).sum() for (sums, *_), (sums_rest, *_) in both])

    def _of_clusters(self, phi: Floats) -> Iterator[tuple[Ints, float, int]]:
        """For each side: Φ of each cluster per row, Σ φ² likewise, and its clusters."""
        ends = np.searchsorted(self.side, np.arange(self.number + 1)).tolist()
        for place, own in enumerate(map(slice, ends[:-1], ends[1:])):
            n, cells = self.n[own], self.cell[own]
            clusters = self.log.cluster[cells]
            with np.errstate(all="ignore"):  # A side may have no rows.
                moved = phi[place, self.log.pair[cells]] / n.sum()
                sums = np.bincount(clusters, n * moved, self.log.n_clusters)
            in_side = int(np.count_nonzero(np.bincount(clusters)))
            yield sums, float((self.squares[own] * moved**2).sum()), in_side

    def _clusters_of_pairs(self, pairs: Counted) -> Floats:
        """The number of clusters that have rows of each pair of the slices."""
        table = np.zeros((self.number, len(self.log.gold)))
        np.add.at(table, (self.side, self.log.pair[self.cell]), 1)  # A cell is of one cluster.
        return table[::2][pairs.slices, self._places(pairs)]

    def _by_cluster(self, phi: Floats, evidence: Floats) -> Floats:
        """Convert evidence by row to evidence by cluster; 0 with one cluster on a side.

        Student's t becomes a normal deviate: D. L. Wallace, Annals of Mathematical Statistics 30
        (1959) 1121-1123.
        """
        converted = np.zeros(len(evidence))
        sides = self._of_clusters(phi)
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

"""Overlapping slices: count rows once by the slices they are in, then combine the counts.

Codes of a key that are in the same slices are alike. So rows fall into kinds: those of one kind are
in the same slices. The pairs of the rows that are in one slice and not in another are sums over the
kinds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from polars_mcc._inference.arrays import Counted, Draws
from polars_mcc._inference.pool import Pools
from polars_mcc._scores.segments import Flags, Floats, Ints, added_up
from polars_mcc._search.counting import numbered
from polars_mcc._search.slices import Looked, Sought

_NOTHING = 1e-9  # a smaller effect is 0: influences cancel in each cluster


@dataclass(frozen=True)
class Question:
    """Is a slice behind? Of some rows, compare the rows in the slice with the rows outside it."""

    slice: int
    without: frozenset[int] = frozenset()
    """Slices whose rows are removed from both sides."""
    within: frozenset[int] = frozenset()
    """Slices that must contain the rows of both sides."""


@dataclass(frozen=True)
class Overlaps:
    """Counts of rows by kind: a cell per kind, pair and cluster."""

    sought: Sought
    is_in: Flags
    """Whether rows of a kind are in a slice; shape (slices, kinds)."""
    kind: Ints
    """The kind of each cell: (cells,)."""
    pair: Ints
    """The place of its pair in `gold` and `pred`."""
    n: Floats | Ints
    squares: Floats | Ints
    cluster: Ints | None
    gold: Ints
    """The code of the gold label of each pair: (pairs,)."""
    pred: Ints

    @classmethod
    def of(cls, sought: Sought, looked: Looked, slices: Ints) -> Overlaps:
        """Count the rows of the log by kind, for these slices."""
        coded = sought.coded
        firsts, lasts = spans(sought, looked, slices)
        codes, members = {}, []
        for place, key in enumerate(coded.keys.values()):
            first, last = firsts[:, place, None], lasts[:, place, None]
            if (first >= 0).any():  # Else no slice has the key.
                every = np.arange(key.size + 1)
                is_in, alike = _distinct((first <= every) & (every <= last))
                codes[key.column] = alike[coded.rows[key.column]]
                members.append(is_in)
        clusters = {} if coded.clusters is None else {"cluster": coded.clusters}
        is_scored = [pl.col(side) < len(coded.labels) for side in ("gold", "pred")]
        rows = sought.counting.frame(codes | clusters)
        by = [*codes, "gold", "pred", *clusters]
        cells = rows.group_by(by).agg(pl.all().sum()).filter(*is_scored, pl.col("n") > 0).sort(by)
        found = cells.collect()
        kind, places = numbered(found, [*codes])
        is_in = np.ones((len(slices), places.shape[1]), bool)
        for of_key, place in zip(members, places, strict=False):
            is_in &= of_key[:, place]
        k = len(coded.labels)
        ids = found["gold"].to_numpy().astype(np.int64) * k + found["pred"].to_numpy()
        pairs, pair = np.unique(ids, return_inverse=True)
        n = found["n"].to_numpy()
        squares = found["squares"].to_numpy() if "squares" in found.columns else n
        cluster = np.unique(found["cluster"], return_inverse=True)[1] if clusters else None
        return cls(sought, is_in, kind, pair, n, squares, cluster, pairs // k, pairs % k)

    def in_order(self, order: Sequence[int]) -> Overlaps:
        """The same counts, with the slices in another order."""
        return replace(self, is_in=self.is_in[[*order]])

    def has(self, one: int, other: int) -> bool:
        """Whether slice `one` contains all rows of slice `other`."""
        return not np.any(self.is_in[other] & ~self.is_in[one])

    def evidence(self, asked: Sequence[Question]) -> list[float]:
        """How many standard errors each slice is behind; 0 if not behind, or without rows."""
        if not asked:
            return []
        found: list[float] = np.nan_to_num(self._evidence(self._masks(asked))).tolist()
        return found

    def _masks(self, asked: Sequence[Question]) -> Flags:
        """The kinds of rows of each comparison in the slice, and beside it."""
        masks = []
        for one in asked:
            rows = self.is_in[[*one.within]].all(axis=0) & ~self.is_in[[*one.without]].any(axis=0)
            masks += [self.is_in[one.slice] & rows, ~self.is_in[one.slice] & rows]
        return np.array(masks)

    def _evidence(self, masks: Flags) -> Floats:
        """The evidence of each comparison; NaN if it is unknown."""
        sought, scale = self.sought, self.sought.scale
        number = len(masks) // 2
        sums = self.sums(masks)
        pairs, inside = self._pairs(*sums), self._pairs(*(one[::2] for one in sums))
        pool = self._pairs(*(one[::2] + one[1::2] for one in sums))
        every = np.arange(number)
        if sought.to == "expected":
            return sought.below_expected(inside, every, pool)[2]
        sure = sought.limits(pairs, Pools(np.repeat(every, 2), pool))
        here, there = slice(0, None, 2), slice(1, None, 2)
        found = scale.evidence(
            sure.proportion[here], sure.rows_up[here], sure.proportion[there], sure.rows_down[there]
        )
        collapsed = sought.collapse(inside, every, pool)
        if self.cluster is not None:
            found = np.array([*self._clustered(masks, self.of_pairs(pairs, sure.phi), found)])
            if not np.isnan(collapsed).all():
                draws = self._draws(masks[::2], inside)
                collapsed = sought.collapse(inside, every, pool, draws)
        is_below = sure.score[here] + sure.spread[here] < sure.score[there]
        return np.where(is_below & ~np.isnan(collapsed), collapsed, found)

    def _cells(self, masks: Flags) -> Iterable[Ints]:
        """The places of the cells of each mask."""
        return (np.flatnonzero(mask[self.kind]) for mask in masks)

    def sums(self, masks: Flags) -> tuple[Floats, Floats]:
        """The weight of the rows of each mask and pair, and of squares: (masks, pairs)."""
        cells, number = [*self._cells(masks)], len(self.gold)

        def of(weight: Floats | Ints) -> Floats:
            rows = [added_up(weight[one], self.pair[one], number) for one in cells]
            return np.array(rows).reshape(len(masks), number)

        n = of(self.n)
        return n, n if self.sought.coded.log.is_frequency else of(self.squares)

    def pairs(self, masks: Flags) -> Counted:
        """The pairs of the rows of each mask."""
        return self._pairs(*self.sums(masks))

    def _pairs(self, n: Floats, squares: Floats) -> Counted:
        """The pairs of sums that are not 0."""
        where = slices, pairs = np.nonzero(n > 0)
        return Counted(len(n), slices, self.gold[pairs], self.pred[pairs], n[where], squares[where])

    def _places(self, pairs: Counted) -> Ints:
        """The places of pairs in `gold` and `pred`."""
        k = len(self.sought.coded.labels)
        return np.searchsorted(self.gold * k + self.pred, pairs.gold * k + pairs.pred)

    @property
    def whole(self) -> Counted:
        """The pairs of all rows."""
        return self.pairs(np.ones((1, self.is_in.shape[1]), bool))

    def draws(self, masks: Flags, pairs: Counted) -> tuple[Draws, Ints]:
        """The clusters of the rows of masks, and the place of the pair of each of their cells."""
        assert self.cluster is not None  # noqa: S101 - for the type checker
        place = self.of_pairs(pairs, np.arange(len(pairs.n), dtype=np.float64))
        cells = [one[np.argsort(self.cluster[one], kind="stable")] for one in self._cells(masks)]
        slices = np.repeat(np.arange(len(masks)), [*map(len, cells)])
        every = np.concatenate(cells)
        ids = np.stack([slices, self.cluster[every]])
        starts = np.flatnonzero(np.diff(ids, prepend=-1).any(axis=0))
        n = self.n[every].astype(np.float64)
        draws = Draws(len(masks), slices, n, n, starts)
        return draws, place[slices, self.pair[every]].astype(np.int64)

    def covariances(self, masks: Flags, phi: Floats) -> Floats:
        """The covariance of the scores of a slice and of its rest, from clusters that are in both.

        Φ is the sum of the influences φ of the rows of a cluster. The covariance is Σ Φ_in Φ_out,
        divided by the rows in the slice and by the rows in the rest.
        """
        assert self.cluster is not None  # noqa: S101 - for the type checker
        number, sides = int(self.cluster.max(initial=-1)) + 1, []
        for place, cells in enumerate(self._cells(masks)):
            n = self.n[cells]
            moved = n * phi[place, self.pair[cells]]
            with np.errstate(all="ignore"):  # A side may have no rows.
                sides.append(added_up(moved, self.cluster[cells], number) / n.sum())
        both = np.array(sides)
        found: Floats = (both[::2] * both[1::2]).sum(1)
        return found

    def of_pairs(self, pairs: Counted, values: Floats) -> Floats:
        """Values of pairs as a table: (slices, pairs)."""
        found = np.full((pairs.number, len(self.gold)), math.nan)
        found[pairs.slices, self._places(pairs)] = values
        return found

    def _draws(self, masks: Flags, pairs: Counted) -> Floats:
        """The number of clusters that have rows of each pair of slices."""
        assert self.cluster is not None  # noqa: S101 - for the type checker
        found, number = np.zeros((len(masks), len(self.gold))), int(self.cluster.max()) + 1
        for place, cells in enumerate(self._cells(masks)):
            both = np.unique(self.pair[cells] * number + self.cluster[cells])
            found[place] = np.bincount(both // number, minlength=len(self.gold))
        return found[pairs.slices, self._places(pairs)]

    def _clustered(self, masks: Flags, phi: Floats, evidence: Floats) -> Iterator[float]:
        """Convert evidence by row to evidence by cluster; 0 with one cluster on a side.

        Student's t becomes a normal deviate: D. L. Wallace, Annals of Mathematical Statistics 30
        (1959) 1121-1123.
        """
        assert self.cluster is not None  # noqa: S101 - for the type checker
        places = [*self._cells(masks)]
        for question, own in enumerate(evidence.tolist()):
            squares: Floats = np.zeros(0)
            of_cells, clusters = [], []
            for side, sign in ((2 * question, 1), (2 * question + 1, -1)):
                cells = places[side]
                n = self.n[cells]
                moved = sign * phi[side, self.pair[cells]] / n.sum()
                squares = np.append(squares, self.squares[cells] * moved**2)
                of_cells.append(n * moved)
                clusters.append(self.cluster[cells])
            both = np.concatenate(clusters), np.concatenate(of_cells)
            rows_vary = squares.sum()
            clusters_vary = (np.bincount(*both) ** 2).sum()
            effect = clusters_vary / rows_vary if rows_vary > 0 else 0.0
            fewest = min(np.count_nonzero(np.bincount(one)) for one in clusters)
            if fewest > 1 and effect > _NOTHING:
                df = fewest - 1
                effect *= fewest / df  # few clusters show too little variance
                t2 = own**2 / effect
                yield (8 * df + 1) / (8 * df + 3) * math.sqrt(df * math.log1p(t2 / df))
            else:
                yield 0.0


def spans(sought: Sought, looked: Looked, slices: Ints) -> tuple[Ints, Ints]:
    """The first and last code of each slice in each key; all codes if the key is not in its set."""
    keys = sought.coded.keys.values()
    places = looked.places(slices, [key.name for key in keys])
    firsts, lasts = np.full(places.shape, -1), np.full(places.shape, np.iinfo(np.int64).max)
    for at, key in enumerate(keys):
        [has] = np.nonzero(places[:, at] >= 0)
        for ends, name in ((firsts, "first"), (lasts, "last")):
            ends[has, at] = key.values[name].to_numpy()[places[has, at]]
    return firsts, lasts


def _distinct(is_in: Flags) -> tuple[Flags, Ints]:
    """The distinct columns of membership, and which of them each column is."""
    packed = np.packbits(is_in, axis=0)
    _, first, alike = np.unique(packed, axis=1, return_index=True, return_inverse=True)
    alike = alike.reshape(-1)
    return is_in[:, first], alike.astype(np.min_scalar_type(len(first)))

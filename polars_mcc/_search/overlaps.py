"""Overlapping slices: count rows once by the slices they are in, then combine the counts.

The bits of an integer tell which slices a row is in. Few such integers occur. So the pairs of the
rows that are in one slice and not in another are sums over a small table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import polars.selectors as cs

from polars_mcc._counts.classes import is_scored
from polars_mcc._counts.counted import count_columns, counted
from polars_mcc._counts.sliced import KEY
from polars_mcc._inference.arrays import beside
from polars_mcc._inference.estimate import estimate
from polars_mcc._inference.evidence import COLLAPSE
from polars_mcc._inference.pool import Pool
from polars_mcc._search.codes import Coded
from polars_mcc._search.counting import SLICE
from polars_mcc._search.slices import Sought, is_below

IS_IN = "is_in"
"""Whether rows of a comparison are in its slice, or beside it."""
_NOTHING = 1e-9  # a smaller effect is 0: influences cancel in each cluster
_WORD = 63  # slices per integer, a bit each

Mask: TypeAlias = npt.NDArray[np.bool_]
Bits: TypeAlias = npt.NDArray[np.uint64]
Codes: TypeAlias = npt.NDArray[np.int64]


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
    """Counts of rows by kind. Rows of one kind are in the same slices."""

    sought: Sought
    is_in: Mask
    """Whether rows of a kind are in a slice; shape (slices, kinds)."""
    cells: pl.DataFrame
    """A row per `kind`, pair and cluster: `pair`, `n`, `squares` of sample weights."""
    pairs: pl.DataFrame
    """The labels of each pair."""

    @classmethod
    def of(cls, sought: Sought, slices: pl.DataFrame) -> Overlaps:
        """Count the rows of the log by kind, for these slices."""
        coded = sought.coded
        words = [slices[first : first + _WORD] for first in range(0, slices.height, _WORD)]
        columns = [f"{KEY}word {number}" for number in range(len(words))]
        of_rows = [_bits_of_rows(coded, word) for word in words]
        names = tuple(column.removeprefix(KEY) for column in columns)
        rows = coded.log.frame.select(~cs.starts_with(KEY))
        rows = rows.with_columns(pl.Series(*one) for one in zip(columns, of_rows, strict=True))
        log = replace(coded.log, frame=rows, keys=names, has_models=False)
        cluster = ["cluster"] if log.has_clusters else []
        # Sums of floats are then the same in each run.
        order = [*columns, "gold", "pred", *cluster]
        cells = counted(log).filter(is_scored(log)).sort(order).collect()
        kinds = cells.select(columns).unique(maintain_order=True).with_row_index("kind")
        pairs = cells.select("gold", "pred").unique(maintain_order=True).with_row_index("pair")
        if log.has_clusters:
            cells = cells.with_columns(pl.col("cluster").rank("dense"))
        cells = cells.join(kinds, on=columns).drop(columns)
        bits = [
            kinds[column].to_numpy() >> np.arange(word.height, dtype=np.uint64)[:, None]
            for column, word in zip(columns, words, strict=True)
        ]
        return cls(
            sought,
            (np.concatenate(bits) & np.uint64(1)).astype(bool),
            cells.join(pairs, on=["gold", "pred"], nulls_equal=True),
            sought.with_labels(pairs.lazy()).collect(),
        )

    def in_order(self, order: Sequence[int]) -> Overlaps:
        """The same counts, with the slices in another order."""
        return replace(self, is_in=self.is_in[[*order]])

    def has(self, one: int, other: int) -> bool:
        """Whether slice `one` contains all rows of slice `other`."""
        return not np.any(self.is_in[other] & ~self.is_in[one])

    def _masks(self, asked: Sequence[Question]) -> Mask:
        """The kinds of rows of each comparison in the slice, and beside it."""
        masks = []
        for one in asked:
            rows = self.is_in[[*one.within]].all(axis=0) & ~self.is_in[[*one.without]].any(axis=0)
            masks += [self.is_in[one.slice] & rows, ~self.is_in[one.slice] & rows]
        return np.array(masks)

    def evidence(self, asked: Sequence[Question]) -> list[float]:
        """How many standard errors each slice is behind; 0 if not behind, or without rows."""
        if not asked:
            return []
        sought, masks = self.sought, self._masks(asked)
        log = replace(sought.whole, apart=(SLICE, IS_IN))
        here = replace(log, apart=(SLICE,))
        pairs = self._pairs(masks)
        pool = Pool.of(here, pairs)
        of_slices = pairs.filter(IS_IN).drop(IS_IN)
        has_clusters = sought.coded.log.has_clusters
        if sought.to == "expected":
            below = sought.below_expected(here, of_slices, pool).select(SLICE, "evidence")
            return _in_order(below, len(asked))
        found = estimate(log, pairs, replace(sought.asked, pool=pool))
        sure = sought.limits(found)
        both = sure.filter(IS_IN).join(sure.filter(~pl.col(IS_IN)), on=SLICE, suffix="_out")
        evidence = sought.scale.evidence(
            pl.col("proportion"),
            pl.col("rows_up"),
            pl.col("proportion_out"),
            pl.col("rows_down_out"),
        )
        known = _in_order(both.select(SLICE, evidence.fill_nan(None).clip(0)), len(asked))
        if has_clusters:
            known = [*self._clustered(masks, found.influences(sought.metric.name), known)]
            of_slices = self._with_clusters(masks, of_slices)
        both = beside(here, both, sought.collapse(here, of_slices, pool))
        sure = both.filter(is_below(pl.col("score_out"))).select(SLICE, COLLAPSE)
        collapsed: dict[int, float] = dict(sure.drop_nulls(COLLAPSE).rows())
        return [collapsed.get(place, one) for place, one in enumerate(known)]

    def _with_clusters(self, masks: Mask, pairs: pl.DataFrame) -> pl.DataFrame:
        """The pairs of slices with the number of their clusters, as `draws`."""
        kind, is_there = self.cells["kind"].to_numpy(), pl.col("n") > 0
        counted = [
            self.cells.filter(mask[kind])
            .filter(is_there)
            .group_by("pair")
            .agg(pl.lit(place, pl.UInt32).alias(SLICE), draws=pl.col("cluster").n_unique())
            for place, mask in enumerate(masks[::2])
        ]
        draws = pl.concat(counted).join(self.pairs, on="pair").drop("pair")
        return pairs.join(draws, on=[SLICE, "gold", "pred"], how="left", nulls_equal=True)

    def _pairs(self, masks: Mask) -> pl.DataFrame:
        """The pairs of both sides of each comparison."""
        log = self.sought.whole
        kind, pair = (self.cells[name].to_numpy() for name in ("kind", "pair"))
        weights = {
            name: self.cells[name].cast(pl.Float64).to_numpy()
            for name in count_columns(log)
            if name != "n_null"
        }
        sums = {name: np.zeros((len(masks), len(self.pairs))) for name in weights}
        for row, mask in enumerate(masks):
            cells = mask[kind]
            for name, weight in weights.items():
                sums[name][row] = np.bincount(pair[cells], weight[cells], len(self.pairs))
        where = rows, pairs = np.nonzero(sums["n"] > 0)
        return (
            self.pairs.select(pl.col("gold", "pred").gather(pairs))
            .with_columns(
                pl.Series(SLICE, rows // 2, pl.UInt32),
                pl.Series(IS_IN, rows % 2 == 0),
                *(pl.Series(name, one[where]) for name, one in sums.items()),
            )
            .with_columns(pl.col("n").cast(log.numbers.count), n_null=pl.lit(0, log.numbers.count))
        )

    def _clustered(
        self, masks: Mask, moved: pl.DataFrame, evidence: Sequence[float]
    ) -> Iterator[float]:
        """Convert evidence by row to evidence by cluster; 0 with one cluster on a side.

        Student's t becomes a normal deviate: D. L. Wallace, Annals of Mathematical Statistics 30
        (1959) 1121-1123.
        """
        of_pair = moved.join(self.pairs, on=["gold", "pred"], nulls_equal=True)
        kind, n = self.cells["kind"].to_numpy(), pl.col("n").cast(pl.Float64)
        for slice_, both_masks in enumerate(masks.reshape(-1, 2, masks.shape[1])):
            cells = []
            for is_in, mask in zip((True, False), both_masks, strict=True):
                known = of_pair.filter(pl.col(SLICE) == slice_, pl.col(IS_IN) == is_in)
                rows = self.cells.filter(mask[kind]).filter(n > 0)
                sign = 1 if is_in else -1
                moves = rows.join(known.select("pair", "phi"), on="pair", maintain_order="left")
                cells.append(moves.with_columns(phi=sign * pl.col("phi") / n.sum()))
            both = pl.concat(cells)
            squares = both["n" if self.sought.whole.is_frequency else "squares"].to_numpy()
            weight, phi = both["n"].cast(pl.Float64).to_numpy(), both["phi"].to_numpy()
            clusters = np.unique(both["cluster"].fill_null(0).to_numpy(), return_inverse=True)[1]
            rows_vary = (squares * phi**2).sum()
            clusters_vary = (np.bincount(clusters, weight * phi) ** 2).sum()
            effect = clusters_vary / rows_vary if rows_vary > 0 else 0.0
            fewest = min(rows["cluster"].n_unique() for rows in cells)
            if fewest > 1 and effect > _NOTHING:
                df = fewest - 1
                effect *= fewest / df  # few clusters show too little variance
                t2 = evidence[slice_] ** 2 / effect
                yield (8 * df + 1) / (8 * df + 3) * math.sqrt(df * math.log1p(t2 / df))
            else:
                yield 0.0


def _in_order(evidence: pl.DataFrame, number: int) -> list[float]:
    """The evidence of each question in order; 0 where it is unknown."""
    known = dict(evidence.fill_null(0.0).rows())
    return [known.get(question, 0.0) for question in range(number)]


def spans(coded: Coded, slices: pl.DataFrame) -> tuple[Codes, Codes]:
    """The first and last code of each slice in each key; all codes if the key is not in its set."""
    firsts, lasts = (
        slices.select(
            key.known(end).cast(pl.Int64).fill_null(of_all).alias(key.column)
            for key in coded.keys.values()
        )
        for end, of_all in (("first", -1), ("last", np.iinfo(np.int64).max))
    )
    shape = slices.height, len(coded.keys)
    return firsts.to_numpy().reshape(shape), lasts.to_numpy().reshape(shape)


def _bits_of_rows(coded: Coded, slices: pl.DataFrame) -> Bits:
    """An integer per row, with a bit per slice: whether the row is in it."""
    bits = np.left_shift(np.uint64(1), np.arange(slices.height, dtype=np.uint64))
    firsts, lasts = spans(coded, slices)
    of_keys = []
    for key, first, last in zip(coded.keys.values(), firsts.T, lasts.T, strict=True):
        if (first >= 0).any():  # Else no slice has the key.
            codes = np.arange(key.size + 1)
            is_in = (first[:, None] <= codes) & (codes <= last[:, None])
            of_code = np.where(is_in, bits[:, None], np.uint64(0)).sum(0, np.uint64)
            of_keys.append(of_code[coded.rows[key.column].to_numpy()])
    return reduce(np.bitwise_and, of_keys)

"""Pairs → intervals by resampling: the one step that is not a query.

To draw n rows of a slice with replacement is to draw the counts of its pairs from a
multinomial distribution. So a replicate costs as much as there are pairs, whatever n.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from statistics import NormalDist
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_mcc._counts.classes import is_scored, of_pairs
from polars_mcc._counts.pairs import pairs
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.methods import Bootstrap
from polars_mcc._scores.measure import measure

_Floats: TypeAlias = npt.NDArray[np.float64]
_Ints: TypeAlias = npt.NDArray[np.int64]

_CELLS_AT_A_TIME = 2**20  # how many counts are drawn before they are reduced to scores

_NORMAL = NormalDist()


class Interval(NamedTuple):
    """What a slice's replicates say."""

    se: float | None
    mcc_low: float | None
    mcc_high: float | None


class Table:
    """The counts of a slice's pairs, sorted by gold label."""

    def __init__(self, gold: _Ints, pred: _Ints, n: _Ints) -> None:
        """Take a count per pair of labels, which are any integers."""
        labels, codes = np.unique(np.concatenate([gold, pred]), return_inverse=True)
        order = np.argsort(codes[: len(n)], kind="stable")
        self.k = len(labels)
        self.gold, self.pred = codes[: len(n)][order], codes[len(n) :][order]
        self.n = n[order]
        self.s = float(n.sum())
        self.is_hit = self.gold == self.pred
        self.by_pred = np.argsort(self.pred, kind="stable")

    def margins(self, counts: _Ints) -> tuple[_Floats, _Floats, _Floats]:
        """How often each label is gold, is predicted, and both, from (…, pairs) counts."""
        hits = np.zeros((*counts.shape[:-1], self.k))
        hits[..., self.gold[self.is_hit]] = counts[..., self.is_hit]
        return (
            self._add_up(counts, self.gold),
            self._add_up(counts[..., self.by_pred], self.pred[self.by_pred]),
            hits,
        )

    def _add_up(self, counts: _Ints, codes: _Ints) -> _Floats:
        """Counts of shape (…, pairs), added up by a sorted code per pair: (…, labels)."""
        found, first = np.unique(codes, return_index=True)
        sums = np.zeros((*counts.shape[:-1], self.k))
        sums[..., found] = np.add.reduceat(counts, first, axis=-1)
        return sums

    def parts(self, counts: _Ints) -> tuple[_Floats, _Floats, _Floats]:
        """The covariance of gold and pred and their variances, times s², of each replicate.

        As sums over classes of true · false positives and negatives, which do not cancel.
        """
        s = self.s
        t, p, c = self.margins(counts)
        covariance = (c * (s - t - p + c) - (t - c) * (p - c)).sum(axis=-1)
        return covariance, (t * (s - t)).sum(axis=-1), (p * (s - p)).sum(axis=-1)

    def scores(self, counts: _Ints) -> _Floats:
        """R_K of each replicate, NaN where it is 0/0."""
        return _ratio(*self.parts(counts))

    def without_a_row(self) -> _Floats:
        """R_K without one row of each pair, NaN where it is 0/0 (the jackknife)."""
        s = self.s
        t, p, c = self.margins(self.n)
        covariance, var_gold, var_pred = self.parts(self.n)
        return _ratio(
            covariance - c.sum() - self.is_hit * s + p[self.gold] + t[self.pred],
            var_gold - 2 * (s - t[self.gold]),
            var_pred - 2 * (s - p[self.pred]),
        )


def interval(
    table: Table,
    *,
    ci: float,
    method: Bootstrap,
    zero_division: float | None,
    seed: np.random.SeedSequence,
) -> Interval:
    """Draw replicates of a slice, and read its interval off them."""
    score = float(table.scores(table.n))
    if math.isnan(score) or abs(score) == 1:
        return Interval(None, None, None)  # The rows there are say nothing of others.
    generator = np.random.default_rng(seed)
    shares = table.n / table.s
    step = max(1, _CELLS_AT_A_TIME // len(shares))
    draws = [
        table.scores(
            generator.multinomial(int(table.s), shares, size=min(step, method.replicates - done))
        )
        for done in range(0, method.replicates, step)
    ]
    replicates = np.concatenate(draws)
    if zero_division is not None:
        replicates[np.isnan(replicates)] = zero_division
    replicates = replicates[~np.isnan(replicates)]
    if len(replicates) < 2:
        return Interval(None, None, None)
    se = float(replicates.std(ddof=1))
    tails = [(1 - ci) / 2, (1 + ci) / 2]
    if method.bca:
        tails = _bca(tails, replicates, score, table)
    if any(map(math.isnan, tails)):
        return Interval(se, None, None)
    low, high = np.quantile(replicates, tails)
    return Interval(se, float(low), float(high))


def resampled(log: SlicedLog, ci: float, method: Bootstrap) -> pl.DataFrame:
    """Score each slice, with `se`, `mcc_low` and `mcc_high` from replicates of its pairs.

    Each slice has a generator of its own, so that threads do not change what is drawn.
    """
    counted = pairs(log).collect()
    slices = measure(log, of_pairs(log, counted.lazy())).collect()
    slices = (slices.sort(log.slice) if log.slice else slices).with_row_index("slice")
    gold, pred = pl.col("gold"), pl.col("pred")
    cells = counted.lazy().filter(is_scored(log) & (pl.col("n") > 0))
    labels = pl.concat(cells.select(label=side) for side in (gold, pred)).unique()
    labels = labels.sort("label").with_row_index()
    for side in ("gold", "pred"):
        code = labels.select(pl.col("label").alias(side), pl.col("index").alias(f"{side}_code"))
        cells = cells.join(code, on=side, how="left", nulls_equal=True)
    sorted_cells = (
        log.beside(cells, slices.lazy().select(*log.slice, "slice"))
        .sort("slice", "gold", "pred")
        .select(pl.col("slice", "gold_code", "pred_code", "n").cast(pl.Int64))
        .collect()
    )
    place, *columns = (column.to_numpy() for column in sorted_cells)
    n_slices = slices.height
    ends = np.searchsorted(place, np.arange(n_slices + 1))
    seeds = np.random.SeedSequence(method.seed).spawn(n_slices)

    def of_slice(number: int) -> Interval:
        start, end = ends[number], ends[number + 1]
        if start == end:
            return Interval(None, None, None)
        table = Table(*(column[start:end] for column in columns))
        return interval(
            table, ci=ci, method=method, zero_division=log.zero_division, seed=seeds[number]
        )

    with ThreadPoolExecutor(pl.thread_pool_size()) as threads:
        found = list(threads.map(of_slice, range(n_slices)))
    schema = dict.fromkeys(Interval._fields, pl.Float64)
    return pl.concat(
        [slices, pl.DataFrame(found, schema=schema, orient="row")], how="horizontal"
    ).select(*log.slice, "n", "mcc", *schema, "n_null")


def _ratio(covariance: _Floats, var_gold: _Floats, var_pred: _Floats) -> _Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        is_defined = (var_gold > 0) & (var_pred > 0)
        scores = covariance / np.sqrt(var_gold * var_pred)
        return np.where(is_defined, np.clip(scores, -1, 1), np.nan)


def _bca(tails: list[float], replicates: _Floats, score: float, table: Table) -> list[float]:
    """The tails, corrected for bias and acceleration (Efron 1987)."""
    below = float((replicates < score).mean() + (replicates <= score).mean()) / 2
    if not 0 < below < 1:
        return [math.nan, math.nan]
    without = table.without_a_row()
    known = ~np.isnan(without)
    n = table.n[known]
    lead = np.average(without[known], weights=n) - without[known]
    spread = float((n * lead**2).sum())
    acceleration = float((n * lead**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
    bias = _NORMAL.inv_cdf(below)

    def corrected(tail: float) -> float:
        z = bias + _NORMAL.inv_cdf(tail)
        return _NORMAL.cdf(bias + z / (1 - acceleration * z))

    return [corrected(tail) for tail in tails]

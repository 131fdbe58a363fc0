"""Pairs → intervals by resampling: the one step that is not a query.

To draw n rows of a slice with replacement is to draw the counts of its pairs from a multinomial
distribution. So the cost of a replicate depends on the number of pairs, not on n. If the log has
clusters, whole clusters are drawn. A replicate is scored like any slice, so every metric has a
bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_mcc._counts.classes import is_scored, of_pairs
from polars_mcc._counts.counted import merged
from polars_mcc._counts.pairs import pairs
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.asked import Asked, columns_of, with_limits_of
from polars_mcc._inference.methods import Bootstrap
from polars_mcc._scores.measure import measure
from polars_mcc._scores.metric import Metric

_Floats: TypeAlias = npt.NDArray[np.float64]
_Ints: TypeAlias = npt.NDArray[np.int64]

_AT_A_TIME = 2**21  # how many counts are drawn before they are scored
_SLICE, _DRAW = "of:slice", "of:draw"  # no metric has these names

_NORMAL = NormalDist()


@dataclass(frozen=True)
class Table:
    """The cells of a slice: its pairs, split by cluster if whole clusters are drawn."""

    cells: pl.DataFrame  # `gold`, `pred`, `n`, and `cluster`
    place: int = 0

    @property
    def n(self) -> _Ints:
        """The rows of each cell."""
        return self.cells["n"].to_numpy()

    @cached_property
    def clusters(self) -> _Ints | None:
        """The cluster of each cell, as a number from 0 on."""
        if "cluster" not in self.cells.columns:
            return None
        ranks = self.cells["cluster"].rank("dense").fill_null(0)  # a null is a cluster too
        numbers: _Ints = np.unique(ranks.to_numpy(), return_inverse=True)[1]
        return numbers

    @cached_property
    def n_clusters(self) -> int:
        """How many clusters there are."""
        return 0 if self.clusters is None else int(self.clusters.max()) + 1

    def draws(self, generator: np.random.Generator, size: int) -> _Ints:
        """Draw the rows of each cell in `size` replicates: an array (size, cells)."""
        if self.clusters is None:
            return generator.multinomial(int(self.n.sum()), self.n / self.n.sum(), size=size)
        shares = np.full(self.n_clusters, 1 / self.n_clusters)
        drawn = generator.multinomial(self.n_clusters, shares, size=size)
        return drawn[:, self.clusters] * self.n

    def without_a_draw(self, step: int) -> Iterator[_Ints]:
        """The rows of each cell with one row or cluster left out: the jackknife, in steps."""
        n = self.n
        place = np.arange(len(n)) if self.clusters is None else self.clusters
        draws = len(n) if self.clusters is None else self.n_clusters
        for first in range(0, draws, step):
            is_out = place == np.arange(first, min(first + step, draws))[:, None]
            yield n - is_out if self.clusters is None else np.where(is_out, 0, n)

    def as_pairs(self, counts: _Ints) -> pl.DataFrame:
        """The pairs of tables with these counts, (tables, cells): a row per table and cell."""
        tables, cells = counts.shape
        place = np.tile(np.arange(cells), tables)
        return self.cells.select("gold", "pred")[place].select(
            pl.lit(self.place).alias(_SLICE),
            pl.Series(_DRAW, np.repeat(np.arange(tables), cells)),
            pl.all(),
            pl.Series("n", counts.reshape(-1)),
            n_null=pl.lit(0, pl.Int64),
        )

    def as_classes(self, counts: _Ints) -> pl.DataFrame:
        """The classes of tables with these counts, (tables, cells): a row per table and class."""
        gold, pred = self._codes
        labels, tables = self._labels, len(counts)
        is_hit = gold == pred
        sides = {
            "gold_n": _added_up(counts, gold, labels.len()),
            "pred_n": _added_up(counts, pred, labels.len()),
            "hit_n": _added_up(counts[:, is_hit], gold[is_hit], labels.len()),
        }
        return pl.DataFrame(
            {
                _SLICE: self.place,
                _DRAW: np.repeat(np.arange(tables), labels.len()),
                "label": labels[np.tile(np.arange(labels.len()), tables)],
                **{name: side.reshape(-1) for name, side in sides.items()},
            }
        )

    @cached_property
    def _labels(self) -> pl.Series:
        return pl.concat([self.cells["gold"], self.cells["pred"].alias("gold")]).unique().sort()

    @cached_property
    def _codes(self) -> tuple[_Ints, _Ints]:
        codes = pl.DataFrame({"label": self._labels}).with_row_index("code")
        gold, pred = (
            self.cells.select(label=side)
            .join(codes, on="label", how="left", nulls_equal=True, maintain_order="left")["code"]
            .to_numpy()
            for side in ("gold", "pred")
        )
        return gold, pred


def resampled(log: SlicedLog, asked: Asked, method: Bootstrap) -> pl.DataFrame:
    """Score each slice, with `_low`, `_high` and `_se` of each metric from replicates.

    Each slice has its own random generator, so threads do not change the draws.
    """
    counted = pairs(log).collect()
    plain = replace(log, extras=())
    of_slices = merged(plain, counted.lazy()) if log.extras else counted.lazy()
    classes = of_pairs(plain, of_slices)
    metrics, positive = asked.metrics, asked.positive
    slices = measure(plain, classes, metrics, pairs=of_slices, positive=positive).collect()
    slices = (slices.sort(log.slice) if log.slice else slices).with_row_index(_SLICE)
    columns = ["gold", "pred", *log.extras]
    cells = (
        log.beside(
            counted.lazy().filter(is_scored(log) & (pl.col("n") > 0)),
            slices.lazy().select(*log.slice, _SLICE),
        )
        .select(_SLICE, *columns, "n")
        .sort(_SLICE, *columns)
        .collect()
    )
    tables = [
        Table(of_slice.drop(_SLICE), place)
        for (place,), of_slice in cells.group_by(_SLICE, maintain_order=True)
    ]
    seeds = np.random.SeedSequence(method.seed).spawn(slices.height)
    known: list[dict[str, float | None]] = [{"n_clusters": 0} for _ in range(slices.height)]
    for some in _portions(tables, method.replicates):
        step = max(1, _AT_A_TIME // sum(table.cells.height for table in some))
        steps = [min(step, method.replicates - at) for at in range(0, method.replicates, step)]
        generators = [np.random.default_rng(seeds[table.place]) for table in some]
        draws = (
            [table.draws(one, size) for table, one in zip(some, generators, strict=True)]
            for size in steps
        )
        replicates = _scored(log, asked, some, draws)
        without: list[dict[str, _Floats]] | None = None
        if method.bca:
            left = zip_longest(*(table.without_a_draw(step) for table in some))
            without = _scored(replace(log, zero_division=None), asked, some, left)
        for place, table in enumerate(some):
            known[table.place]["n_clusters"] = table.n_clusters
            weights = table.n if table.clusters is None else np.ones(table.n_clusters, np.int64)
            for metric in metrics:
                score = slices[metric.name][table.place]
                lead = None
                if without is not None:
                    lead = _influences(without[place][metric.name], weights)
                found = _interval(metric, score, replicates[place][metric.name], asked.ci, lead)
                known[table.place] |= dict(zip(columns_of([metric.name]), found, strict=True))
    names = [metric.name for metric in metrics]
    schema = {**dict.fromkeys(columns_of(names), pl.Float64()), "n_clusters": pl.Int64()}
    n_clusters = ["n_clusters"] if log.extras else []
    limits_of_slices = pl.DataFrame(known, schema=schema)
    return pl.concat([slices, limits_of_slices], how="horizontal").select(
        *log.slice, "n", *n_clusters, *with_limits_of(names), "n_null"
    )


def _portions(tables: Sequence[Table], replicates: int) -> Iterator[list[Table]]:
    """Split the tables into portions whose replicates fit into memory."""
    portion: list[Table] = []
    for table in tables:
        if sum(one.cells.height for one in [*portion, table]) * replicates > _AT_A_TIME:
            yield from filter(None, [portion])
            portion = []
        portion.append(table)
    yield from filter(None, [portion])


def _scored(
    log: SlicedLog, asked: Asked, tables: Sequence[Table], steps: Iterable[Sequence[_Ints | None]]
) -> list[dict[str, _Floats]]:
    """Score tables with the counts of `steps`: an array per metric, NaN where undefined."""
    one = replace(log.whole, has_models=False, extras=(), apart=(_SLICE, _DRAW))
    wide, names = one.numbers.wide, [metric.name for metric in asked.metrics]
    needs_pairs = any(metric.pairs for metric in asked.metrics)

    def rows_of(item: tuple[Table, _Ints]) -> pl.DataFrame:
        table, counts = item
        return table.as_pairs(counts) if needs_pairs else table.as_classes(counts)

    def scores(drawn: Iterable[tuple[Table, _Ints]]) -> pl.DataFrame:
        with ThreadPoolExecutor(pl.thread_pool_size()) as threads:
            rows = pl.concat(threads.map(rows_of, drawn)).lazy()
        cells = merged(one, rows) if needs_pairs else None  # adds up the clusters of a pair
        classes = rows.with_columns(
            pl.col("^(gold|pred|hit)_n$").cast(wide), null_n=pl.lit(0, wide), unit=pl.lit(1.0)
        )
        if cells is not None:
            classes = of_pairs(one, cells)
        found = measure(one, classes, asked.metrics, pairs=cells, positive=asked.positive)
        values = pl.col(names).cast(pl.Float64).fill_null(math.nan)
        return found.select(_SLICE, _DRAW, values).sort(_SLICE, _DRAW).collect()

    found: dict[int, list[pl.DataFrame]] = {table.place: [] for table in tables}
    for step in steps:
        drawn = zip(tables, step, strict=True)
        of_step = scores((table, counts) for table, counts in drawn if counts is not None)
        for (place,), part in of_step.partition_by(_SLICE, as_dict=True).items():
            found[place].append(part.select(names))
    return [{name: pl.concat(parts)[name].to_numpy() for name in names} for parts in found.values()]


def _interval(
    metric: Metric,
    score: float | None,
    replicates: _Floats,
    ci: float,
    influences: _Floats | None,
) -> tuple[float | None, ...]:
    """The limits and the standard error of a score, from its replicates; None if unknown."""
    unknown = (None, None, None)
    ends = () if metric.range is None else (metric.range.low, metric.range.high)
    is_end = any(score == end for end in ends if not isinstance(end, pl.Expr))
    if score is None or not math.isfinite(score) or is_end:
        return unknown  # At an end of the range, replicates do not vary.
    replicates = replicates[np.isfinite(replicates)]
    if len(replicates) < 2 or replicates.min() == replicates.max():
        return unknown
    se = float(replicates.std(ddof=1))
    tails = [(1 - ci) / 2, (1 + ci) / 2]
    if influences is not None:
        tails = _bca(tails, replicates, score, influences)
    if any(map(math.isnan, tails)):
        return None, None, se
    low, high = np.quantile(replicates, tails)
    return float(low), float(high), se


def _influences(without: _Floats, weights: _Floats | _Ints) -> _Floats:
    """How far each draw moves a score, from the score without it, and how often it occurs."""
    known = ~np.isnan(without)
    without, weights = without[known], weights[known]
    if not len(without):
        return np.zeros((2, 0))
    lead = np.average(without, weights=weights) - without
    return np.stack([lead, weights])


def _bca(tails: list[float], replicates: _Floats, score: float, influences: _Floats) -> list[float]:
    """The tails, corrected for bias and acceleration (Efron 1987)."""
    below = float((replicates < score).mean() + (replicates <= score).mean()) / 2
    if not 0 < below < 1:
        return [math.nan, math.nan]
    lead, n = influences
    spread = float((n * lead**2).sum())
    acceleration = float((n * lead**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
    bias = _NORMAL.inv_cdf(below)

    def corrected(tail: float) -> float:
        z = bias + _NORMAL.inv_cdf(tail)
        return _NORMAL.cdf(bias + z / (1 - acceleration * z))

    return [corrected(tail) for tail in tails]


def _added_up(counts: _Ints, codes: _Ints, labels: int) -> _Ints:
    """Add up counts of shape (tables, cells) by the code of each cell: (tables, labels)."""
    sums = np.zeros((len(counts), labels), dtype=np.int64)
    if len(codes):
        order = np.argsort(codes, kind="stable")
        found, first = np.unique(codes[order], return_index=True)
        sums[:, found] = np.add.reduceat(counts[:, order], first, axis=1)
    return sums

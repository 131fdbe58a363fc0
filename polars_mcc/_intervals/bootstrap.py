"""Pairs → intervals by resampling, of a DataFrame.

To draw n rows of a slice with replacement is to draw the counts of its pairs from a multinomial
distribution. So the cost of a replicate depends on the number of pairs, not on n. If the log has
clusters, whole clusters are drawn. A replicate is scored like any slice, so every metric has a
bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from statistics import NormalDist

import numpy as np
import polars as pl

from polars_mcc._counts.class_counts import classes_of_pairs, is_scored
from polars_mcc._counts.count_rows import merged
from polars_mcc._counts.pair_counts import pairs
from polars_mcc._counts.sliced_log import SlicedLog
from polars_mcc._intervals import interval_options
from polars_mcc._intervals.interval_options import Bootstrap, IntervalOptions
from polars_mcc._metrics.exact_scores import measure
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.slice_sums import Floats, Ints

_AT_A_TIME = 2**21  # how many counts are drawn before they are scored
_SLICE, _DRAW = "of:slice", "of:draw"  # no metric has these names

_NORMAL = NormalDist()


@dataclass(frozen=True)
class Resampled:
    """The cells of a slice: its pairs, split by cluster if whole clusters are drawn.

    A draw takes units: rows of cells, or clusters.
    """

    cells: pl.DataFrame  # `gold`, `pred`, `n`, and `cluster`
    number: int = 0

    @property
    def has_clusters(self) -> bool:
        """Whether whole clusters are drawn."""
        return "cluster" in self.cells.columns

    @property
    def n(self) -> Ints:
        """The rows of each cell."""
        return self.cells["n"].to_numpy()

    @property
    def drawn_n(self) -> Ints:
        """The rows that a cell gets each time its unit is drawn."""
        return self.n if self.has_clusters else np.ones_like(self.n)

    @cached_property
    def units(self) -> Ints:
        """The unit of each cell, as a number from 0 on."""
        if not self.has_clusters:
            return np.arange(self.cells.height)
        ranks = self.cells["cluster"].rank("dense").fill_null(0)  # a null is a cluster too
        numbers: Ints = np.unique(ranks.to_numpy(), return_inverse=True)[1]
        return numbers

    @cached_property
    def weights(self) -> Ints:
        """How often each unit occurs."""
        return np.ones(int(self.units.max()) + 1, np.int64) if self.has_clusters else self.n

    def draws(self, generator: np.random.Generator, size: int) -> Ints:
        """Draw the rows of each cell in `size` replicates: an array (size, cells)."""
        total = self.weights.sum()
        drawn = generator.multinomial(int(total), self.weights / total, size=size)
        return drawn[:, self.units] * self.drawn_n

    def without_a_draw(self, step: int) -> Iterator[Ints]:
        """The rows of each cell with one row or cluster left out: the jackknife, in steps."""
        for first in range(0, len(self.weights), step):
            left_out = np.arange(first, min(first + step, len(self.weights)))[:, None]
            yield self.n - self.drawn_n * (self.units == left_out)

    def jackknife(self, without: Floats) -> Floats:
        """The influence of each draw on a score, from the score without it, and its weight."""
        known = ~np.isnan(without)
        if not known.any():
            return np.zeros((2, 0))
        without, weights = without[known], self.weights[known]
        return np.stack([np.average(without, weights=weights) - without, weights])


def resampled(log: SlicedLog, options: IntervalOptions, method: Bootstrap) -> pl.DataFrame:
    """Score each slice, with `_low`, `_high` and `_se` of each metric from replicates."""
    counted = pairs(log).collect()
    plain = replace(log, pair_splits=())
    of_slices = merged(plain, counted.lazy())
    measured = measure(
        plain,
        classes_of_pairs(plain, of_slices),
        options.metrics,
        pairs=of_slices,
        positive=options.positive,
    )
    slices = (measured.sort(log.slice) if log.slice else measured).with_row_index(_SLICE).collect()
    tables = _tables(log, counted.lazy(), slices.lazy())
    # Each slice has its own random generator, so threads do not change the draws.
    seeds = np.random.SeedSequence(method.seed).spawn(slices.height)
    generators = {table.number: np.random.default_rng(seeds[table.number]) for table in tables}
    names = [metric.name for metric in options.metrics]
    schema: dict[str, pl.DataType] = {_SLICE: pl.UInt32(), "n_clusters": pl.Int64()}
    schema |= dict.fromkeys(interval_options.limit_columns(names), pl.Float64())
    known: list[dict[str, float | None]] = []
    step = max(1, _AT_A_TIME // max(1, sum(table.cells.height for table in tables)))
    sizes = [min(step, method.replicates - at) for at in range(0, method.replicates, step)]
    draws = ([table.draws(generators[table.number], size) for table in tables] for size in sizes)
    replicates = _scored(log, options, tables, draws)
    without: Sequence[pl.DataFrame | None] = [None] * len(tables)
    if method.bca:
        left = zip_longest(*(table.without_a_draw(step) for table in tables))
        without = _scored(replace(log, zero_division=None), options, tables, left)
    for table, drawn, left_out in zip(tables, replicates, without, strict=True):
        n_clusters = len(table.weights) if table.has_clusters else 0
        limits: dict[str, float | None] = {_SLICE: table.number, "n_clusters": n_clusters}
        for metric in options.metrics:
            name = metric.name
            influence = None if left_out is None else table.jackknife(left_out[name].to_numpy())
            score, scores = slices[name][table.number], drawn[name].to_numpy()
            interval = _interval(metric, score, scores, options.ci, influence)
            limits |= dict(zip(interval_options.limit_columns([name]), interval, strict=True))
        known.append(limits)
    shown = [pl.col("n_clusters").fill_null(0)] if log.pair_splits else []
    return slices.join(pl.DataFrame(known, schema), on=_SLICE, how="left").select(
        *log.slice, "n", *shown, *interval_options.with_limit_columns(names), *log.unscored
    )


def _tables(log: SlicedLog, counted: pl.LazyFrame, slices: pl.LazyFrame) -> list[Resampled]:
    """The scored cells of each slice that has some."""
    scored = counted.filter(is_scored(log) & (pl.col("n") > 0))
    columns = ["gold", "pred", *log.pair_splits]
    cells = log.beside(scored, slices.select(*log.slice, _SLICE))
    cells = cells.select(_SLICE, *columns, "n").sort(_SLICE, *columns)
    of_slices = cells.collect().group_by(_SLICE, maintain_order=True)
    return [Resampled(of_slice.drop(_SLICE), number) for (number,), of_slice in of_slices]


def _scored(
    log: SlicedLog,
    options: IntervalOptions,
    tables: Sequence[Resampled],
    steps: Iterable[Sequence[Ints | None]],
) -> list[pl.DataFrame]:
    """Score tables with the counts of `steps`: a row per draw, NaN where undefined."""
    if not tables:
        return []
    alone = replace(log.whole, has_models=False, slice_splits=(_SLICE, _DRAW), pair_splits=())
    names = [metric.name for metric in options.metrics]
    scores_of_draws = []
    for step in steps:
        cells = _pairs_of_draws(
            [(of, n) for of, n in zip(tables, step, strict=True) if n is not None]
        )
        if tables[0].has_clusters:
            cells = merged(alone, cells)
        classes = classes_of_pairs(alone, cells)
        scores = measure(alone, classes, options.metrics, pairs=cells, positive=options.positive)
        values = pl.col(names).cast(pl.Float64).fill_null(math.nan)
        scores_of_draws.append(scores.select(_SLICE, _DRAW, values).sort(_SLICE, _DRAW).collect())
    return pl.concat(scores_of_draws).partition_by(_SLICE)


def _pairs_of_draws(drawn: Sequence[tuple[Resampled, Ints]]) -> pl.LazyFrame:
    """A row per slice, draw and cell, from the counts (draws, cells) of each table."""
    cells = pl.concat([table.cells for table, _ in drawn]).select("gold", "pred")
    places, draws, first = [], [], 0
    for _, counts in drawn:
        size, height = counts.shape
        places.append(np.tile(np.arange(first, first + height), size))
        draws.append(np.repeat(np.arange(size), height))
        first += height
    numbers = np.repeat([table.number for table, _ in drawn], [counts.size for _, counts in drawn])
    rows = cells[np.concatenate(places)].lazy()
    return rows.with_columns(
        pl.Series(_SLICE, numbers),
        pl.Series(_DRAW, np.concatenate(draws)),
        pl.Series("n", np.concatenate([counts.reshape(-1) for _, counts in drawn])),
        n_null=pl.lit(0, pl.Int64),
    )


def _interval(
    metric: Metric, score: float | None, replicates: Floats, ci: float, influence: Floats | None
) -> tuple[float | None, ...]:
    """The limits and the standard error of a score, from its replicates; None if unknown."""
    unknown = (None, None, None)
    is_end = metric.range is not None and score in metric.range.numbers
    if score is None or not math.isfinite(score) or is_end:
        return unknown  # At an end of the range, replicates do not vary.
    replicates = replicates[np.isfinite(replicates)]
    if len(replicates) < 2 or replicates.min() == replicates.max():
        return unknown
    se = float(replicates.std(ddof=1))
    tails = [(1 - ci) / 2, (1 + ci) / 2]
    if influence is not None:
        tails = _bca(tails, replicates, score, influence)
    if any(map(math.isnan, tails)):
        return None, None, se
    low, high = np.quantile(replicates, tails)
    return float(low), float(high), se


def _bca(tails: list[float], replicates: Floats, score: float, influence: Floats) -> list[float]:
    """The tails, corrected for bias and acceleration (Efron 1987)."""
    # Sums of floats may differ in their last bits, although a draw has the counts of the sample.
    is_tie = np.isclose(replicates, score, rtol=1e-12, atol=1e-12)
    below = float(((replicates < score) & ~is_tie).mean() + is_tie.mean() / 2)
    if not 0 < below < 1:
        return [math.nan, math.nan]
    lead, n = influence
    spread = float((n * lead**2).sum())
    acceleration = float((n * lead**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
    bias = _NORMAL.inv_cdf(below)

    def corrected(tail: float) -> float:
        z = bias + _NORMAL.inv_cdf(tail)
        return _NORMAL.cdf(bias + z / (1 - acceleration * z))

    return [corrected(tail) for tail in tails]

"""A frame of pairs → the scores of slices, exact, with standard errors and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from polars_mcc._counts.count_rows import merged
from polars_mcc._counts.reweighted_pairs import reweighted
from polars_mcc._counts.sliced_log import SlicedLog
from polars_mcc._intervals.count_arrays import Counted, CountedCells, floats
from polars_mcc._intervals.interval_options import (
    IntervalOptions,
    limit_columns,
    with_limit_columns,
)
from polars_mcc._intervals.pooled_slices import Pools
from polars_mcc._intervals.scores_of_arrays import Measured, Scorer
from polars_mcc._metrics.scores_of_pairs import measure_pairs


@dataclass(frozen=True)
class Estimate:
    """The scores of slices, and the arrays that their errors come from."""

    scores: pl.DataFrame
    """A row per slice: `n`, `n_clusters` if there are clusters, metrics, intervals, `n_null`. It is
    sorted by the columns that split slices, and then by the other columns of a slice."""
    cells: CountedCells
    scorer: Scorer
    pools: Pools | None
    measured: Mapping[str, Measured]


def estimate(
    log: SlicedLog,
    counts: pl.DataFrame,
    options: IntervalOptions,
    *,
    within: Sequence[str] | None = None,
    in_pool: pl.Expr | None = None,
) -> Estimate:
    """Score each slice of a log from its pairs, with standard errors and intervals.

    If the log has clusters, `counts` are pairs split by cluster. Slices with equal columns `within`
    are compared with each other. Together they have all rows; or those that are `in_pool`, if a row
    is in several slices.
    """
    log, pairs = reweighted(log, counts.lazy())
    counts = pairs.collect()
    pairs = counts.lazy()
    if log.pair_splits:
        pairs = merged(replace(log, pair_splits=()), pairs).collect().lazy()
    order = sorted(log.slice, key=lambda name: name not in log.slice_splits)
    scores = measure_pairs(log, pairs, options.metrics, positive=options.positive).collect()
    scores = scores.sort(order) if order else scores
    cells = CountedCells.of(log, counts, scores)
    scorer = Scorer(
        options.sure,
        cells.labels,
        options.positive,
        zero_division=log.zero_division,
        is_frequency=log.is_frequency,
        is_reweighted=log.is_reweighted,
        epsilon=log.epsilon,
    )
    pools = None if within is None else _pools(cells.pairs, scores, within, in_pool)
    exact = {metric.name: floats(scores[metric.name]) for metric in options.sure}
    draws, place = cells.draws(scores.height, cells.pairs.slices[cells.pair])
    measured = scorer.measured(cells.pairs, options, pools, (draws, cells.pair[place]), exact)
    sizes = [] if (n := draws.n_clusters) is None else [pl.Series("n_clusters", n, pl.Int64)]
    limits = [end for name, known in measured.items() for end in known.interval.columns(name)]
    names = [metric.name for metric in options.metrics]
    unsure = limit_columns(name for name in names if name not in measured)
    none = dict.fromkeys(unsure, pl.lit(None, pl.Float64))
    numbers = ["n", *(size.name for size in sizes), *with_limit_columns(names), *log.unscored]
    with_limits = scores.with_columns(*sizes, *limits, **none).select(*log.slice, *numbers)
    return Estimate(with_limits, cells, scorer, pools, measured)


def _pools(
    pairs: Counted, scores: pl.DataFrame, within: Sequence[str], in_pool: pl.Expr | None
) -> Pools:
    """The pools: slices with equal columns `within` are one pool.

    A pool has the rows of its slices; if `in_pool` is given, of those that it is true for.
    """
    pool_of = np.zeros(scores.height, np.int64)
    if within:
        ranks = scores.select(pl.struct(within).rank("dense")).to_series()
        pool_of = ranks.cast(pl.Int64).to_numpy() - 1
    if in_pool is not None:
        is_own = scores.select(in_pool).to_series().to_numpy()[pairs.slices]
        pairs = Counted(pairs.number, *(array[is_own] for array in pairs[1:]))
    slices, *columns = pairs[1:]
    n_pools = int(pool_of.max(initial=-1)) + 1
    return Pools(pool_of, Counted.of_rows(n_pools, pool_of[slices], *columns)[0])

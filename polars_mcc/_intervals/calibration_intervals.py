"""Pairs of a score and a gold label → the rate of positive rows of each bin, with its interval."""

from __future__ import annotations

import numpy as np
import polars as pl

from polars_mcc._counts.class_counts import is_scored
from polars_mcc._counts.sliced_log import SlicedLog
from polars_mcc._intervals.count_arrays import CountedCells, of_arrays
from polars_mcc._intervals.influence_of_rows import Influence
from polars_mcc._intervals.interval_methods import Sampling, interval
from polars_mcc._intervals.interval_options import IntervalOptions
from polars_mcc._metrics.score_levels_and_bins import (
    Binning,
    in_floats,
    levels_of,
    of_bins,
    probabilities,
)
from polars_mcc._metrics.slice_sums import Floats


def rates_of_bins(
    log: SlicedLog, pairs: pl.LazyFrame, cells: pl.DataFrame, bins: int, ci: float
) -> pl.DataFrame:
    """The bins of each slice, with the interval of their rate. `cells` are split by cluster."""
    binning = Binning(bins)
    levels = levels_of(log, pairs, [binning]).collect()
    rates = of_bins(log, probabilities(log, in_floats(log, levels.lazy())), binning).collect()
    rate, n = rates["rate"].to_numpy(), rates["rows"].to_numpy()
    spread = rate * (1 - rate)
    with np.errstate(all="ignore"):
        if log.has_clusters or not log.is_frequency:
            places = levels.select(*log.slice, "pred", bin=binning.column)
            variance, sampling = _of_draws(log, places, cells, rates)
        else:
            variance, sampling = spread / n, Sampling(n, None, is_frequency=True)
        # The rate is a proportion of the rows.
        zero = np.zeros(len(n))
        facts = Influence(rate, zero, zero + 1, spread, zero + 1, spread, spread)
        limits = interval(rate, facts, variance, sampling, IntervalOptions(ci))
    ends = of_arrays(rate_low=limits.low, rate_high=limits.high)
    return rates.with_columns(*sampling.columns(), *ends)


def _of_draws(
    log: SlicedLog, places: pl.DataFrame, cells: pl.DataFrame, rates: pl.DataFrame
) -> tuple[Floats, Sampling]:
    """The variance of the rate of each bin, and its draws: clusters, or rows of several weights."""
    scored = cells.lazy().filter(is_scored(log))
    beside = scored.join(places.lazy(), on=[*log.slice, "pred"], nulls_equal=True)
    of_cells = CountedCells.of(log.split_by("bin"), beside.collect(), rates)
    draws, order = of_cells.draws(rates.height, of_cells.pairs.slices[of_cells.pair])
    gold = of_cells.labels[of_cells.pairs.gold[of_cells.pair[order]]] == 1
    phi = gold.cast(pl.Float64).to_numpy() - rates["rate"].to_numpy()[draws.slices]
    n = rates["rows"].to_numpy()
    variance = draws.products(phi, phi) / n / n
    return variance, Sampling(draws.effective, draws.n_clusters, log.is_frequency)

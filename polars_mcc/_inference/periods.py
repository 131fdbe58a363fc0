"""Pairs of two periods → the change of each slice's score: after minus before."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.differences import independent, limits_of, with_difference
from polars_mcc._inference.estimate import Estimate, estimate
from polars_mcc._inference.options import IntervalOptions
from polars_mcc._inference.tables import Pool
from polars_mcc._inference.variance import over_draws, with_influence

PERIODS = pl.Enum(["before", "after"])
_LETTERS = {"before": "a", "after": "b"}


def changes(
    log: SlicedLog, apart: SlicedLog, cells: pl.LazyFrame, options: IntervalOptions
) -> pl.LazyFrame:
    """The difference between the scores of both periods, per slice of a log.

    `apart` is the same log with a slice per slice and `period`. `cells` are its pairs. The first
    metric is compared; the others are facts, shown for each period.
    """
    metric, *facts = options.metrics
    cells = cells.cache()
    found = estimate(apart, cells, replace(options, pool=Pool.of(log, cells)))
    sizes = ["n", "n_clusters"] if log.has_clusters else ["n"]

    def of(period: str, column: str) -> pl.Expr:
        return pl.col(column).filter(pl.col("period") == period)

    both = log.per_slice(
        found.scores,
        n_null=pl.col("n_null").sum(),
        **{f"{size}_{period}": of(period, size).sum() for size in sizes for period in _LETTERS},
        **{
            f"{short}_{letter}": of(period, column).max()
            for column, short in limits_of(metric.name).items()
            for period, letter in _LETTERS.items()
        },
        **{
            f"{one.name}_{period}": of(period, one.name).max()
            for one in facts
            for period in _LETTERS
        },
    )
    if not log.has_clusters:
        return independent(both, options.ci)
    se_a, se_b, covariance = map(pl.col, ("se_a", "se_b", "covariance"))
    shared = log.beside(both, _covariances(log, apart, cells, found, metric.name))
    return with_difference(
        shared.with_columns(
            correlation=(covariance / (se_a * se_b)).clip(-1, 1).fill_null(0.0),
            diff_se=(se_a.pow(2) + se_b.pow(2) - 2 * covariance).clip(0).sqrt(),
        ),
        options.ci,
        pl.min_horizontal(f"n_clusters_{period}" for period in _LETTERS) - 1,
    )


def _covariances(
    log: SlicedLog, apart: SlicedLog, cells: pl.LazyFrame, found: Estimate, metric: str
) -> pl.LazyFrame:
    """The `covariance` of the scores of both periods, from the clusters that are in both.

    Φ is the sum of the influences φ of the rows of a cluster. The covariance is Σ Φ_before Φ_after,
    divided by the rows before and by the rows after.
    """
    rows = with_influence(apart, cells, found.influences[metric])
    shares = {}
    for period in _LETTERS:
        is_here = pl.col("period") == period
        n = log.within_slice(pl.col("n").filter(is_here).sum().cast(pl.Float64))
        shares[period] = pl.when(is_here).then(pl.col("phi") / n).otherwise(0.0)
    both = rows.with_columns(**shares)
    products = over_draws(log, both, covariance=("before", "after"))
    return products.select(*log.slice, "covariance")

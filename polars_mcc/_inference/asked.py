"""The options of an estimate, and the counts from which its intervals are made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.methods import normal_critical
from polars_mcc._inference.tables import Pool
from polars_mcc._inference.variance import variances, with_influence
from polars_mcc._log import defaults
from polars_mcc._log.choices import Method
from polars_mcc._scores.metric import Metric
from polars_mcc._scores.metrics import MCC


def columns_of(metrics: Iterable[str]) -> list[str]:
    """The columns of both limits and of the standard error of each metric."""
    return [f"{metric}_{what}" for metric in metrics for what in ("low", "high", "se")]


def with_limits_of(metrics: Iterable[str]) -> list[str]:
    """The columns of the score, both limits and the standard error of each metric."""
    return [column for metric in metrics for column in (metric, *columns_of([metric]))]


@dataclass(frozen=True)
class Asked:
    """The request for intervals: their metrics, confidence level and method."""

    ci: float
    method: Method = defaults.METHOD
    metrics: Sequence[Metric] = (MCC,)
    positive: pl.Expr | None = None
    """Whether a class is the positive one."""
    pool: Pool | None = None
    """The slices that are compared with each other, if slices are."""


@dataclass(frozen=True)
class Counted:
    """The counts and sums from which intervals are made, for metrics of one kind."""

    log: SlicedLog
    cells: pl.LazyFrame
    pairs: pl.LazyFrame
    classes: pl.LazyFrame
    asked: Asked

    @property
    def names(self) -> list[str]:
        return [metric.name for metric in self.asked.metrics]

    def variances(self, of_pair: pl.LazyFrame) -> pl.LazyFrame:
        """The variance of each metric, from the influences of pairs."""
        rows = of_pair
        if self.log.has_clusters:
            rows = with_influence(self.log, self.cells, of_pair, self.names)
        parts = {name: (pl.col(f"phi:{name}"), pl.col(f"unit:{name}")) for name in self.names}
        return variances(self.log, rows, parts)

    def beside(self, scores: pl.LazyFrame, known: pl.LazyFrame) -> pl.LazyFrame:
        """Join the columns of `known` to scores. The scores keep their own `n_clusters`."""
        if "n_clusters" in scores.collect_schema():
            known = known.drop("n_clusters", strict=False)
        return self.log.beside(scores, known)


def critical(log: SlicedLog, ci: float) -> pl.Expr:
    """The critical value: the standard errors to each side, of the normal or of Student's t.

    Student's t is for clusters: it has one degree of freedom less than there are clusters.
    """
    if not log.has_clusters:
        return pl.lit(normal_critical(ci))
    return student_critical(ci, pl.col("n_clusters") - 1)


def student_critical(ci: float, df: pl.Expr) -> pl.Expr:
    """The critical value of Student's t, by its degrees of freedom; null below one.

    One and two degrees are exact. From 3 on it is the expansion of Fisher and Cornish (1960). Its
    error is 0.1 % at 3, and goes to 0 with more.
    """
    z = normal_critical(ci)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    expansion = z + sum(term / df.pow(power) for power, term in enumerate(terms, 1))
    return (
        pl.when(df == 1)
        .then(math.tan(math.pi * ci / 2))
        .when(df == 2)
        .then(ci * math.sqrt(2 / (1 - ci**2)))
        .when(df > 2)
        .then(expansion)
    )

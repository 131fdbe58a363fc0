"""The options of an interval, and the columns of an answer with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from polars_mcc._inference.tables import Pool
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
class IntervalOptions:
    """The request for intervals: their metrics, confidence level and method."""

    ci: float
    method: Method = defaults.METHOD
    metrics: Sequence[Metric] = (MCC,)
    positive: pl.Expr | None = None
    """Whether a class is the positive one."""
    pool: Pool | None = None
    """The slices that are compared with each other, if slices are."""

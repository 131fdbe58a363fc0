"""`check` of gaps: whether the lowest and the highest slice are too far apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import check_number
from polars_mcc._base.message_parts import option, said
from polars_mcc._comparisons.gate_verdicts import NOT_SURE, VERDICT, VERDICTS, table
from polars_mcc._frame.log_options import Described
from polars_mcc._keys.any_key import IntoKey
from polars_mcc._metrics import registry
from polars_mcc._metrics.registry import IntoMetric
from polars_mcc._verbs.gaps import gaps

MAX_GAP = "max_gap"
Widest: TypeAlias = float | Mapping[str, float]
"""The widest gap that may be, for one metric, or by metric."""


def limits(metric: IntoMetric, max_gap: Widest, *others: object) -> dict[Any, float]:
    """The widest gap of each metric, or an error if it is no gap, or if there are others."""
    if any(other is not None for other in others):
        msg = "max_gap is checked alone: leave out min, max and no_worse_than, or check them apart"
        raise ValueError(msg)
    given: Mapping[Any, Any] = max_gap if isinstance(max_gap, Mapping) else {metric: max_gap}
    widest = {name: number for name, number in given.items() if number is not None}
    for number in widest.values():
        check_number("max_gap", number)
        if not 0 <= number < math.inf:
            msg = said(option("max_gap", number), " is no width: it must be at least 0, and finite")
            raise ValueError(msg)
    return widest


def judged_gaps(
    log: Described[Any],
    keys: Sequence[IntoKey],
    widest: Mapping[Any, float],
    min_n: int,
    ci: float | None,
) -> tuple[pl.DataFrame, str]:
    """The answer of `gaps` with verdicts, and the message of an error; "" if all pass."""
    level = defaults.LEVEL if ci is None else ci
    found: pl.DataFrame = gaps(log, *keys, metrics=[*widest], min_n=min_n, ci=level)
    names = [registry.find_metric(metric).name for metric in widest]
    bounds = dict(zip(names, map(float, widest.values()), strict=True))
    bound = pl.col(MAX_GAP)
    verdict = (
        pl.when(pl.col("diff").is_null())
        .then(pl.lit("not judged"))
        .when(pl.col("diff" if ci is None else "diff_low") > bound)
        .then(pl.lit("fails"))
        .when(pl.col("diff") > bound)
        .then(pl.lit(NOT_SURE))
        .otherwise(pl.lit("passes"))
    )
    of_metric = pl.col("metric").replace_strict(bounds, return_dtype=pl.Float64)
    with_limits = found.lazy().collect().with_columns(of_metric.alias(MAX_GAP))
    judged = with_limits.with_columns(verdict.cast(VERDICTS).alias(VERDICT))
    return judged, _failure(judged, ci)


def _failure(judged: pl.DataFrame, ci: float | None) -> str:
    """The message of the error: which gaps are too wide, or cannot be judged; "" if all pass."""
    known = judged.filter(pl.col(VERDICT) != "not judged")
    wide = known.filter(pl.col(VERDICT) == "fails")
    messages = []
    if wide.height:
        each = wide.select("metric", MAX_GAP).unique(maintain_order=True).rows()
        words = ", ".join(f"gap of {name} above {bound}" for name, bound in each)
        sure = "" if ci is None else f", significantly (ci={ci})"
        fail = "fails" if wide.height == 1 else "fail"
        messages.append(f"{wide.height} of {known.height} gaps {fail}: {words}{sure}")
    left = judged.filter(~pl.col("metric").is_in(known["metric"].implode()))
    if left.height:
        names = ", ".join(left["metric"].unique(maintain_order=True))
        messages.append(f"no gap of {names} can be judged: fewer than two slices are compared")
    return "; ".join(messages) + table(wide.drop(VERDICT))

"""The one-sided p-value of a score that misses a threshold, or is worse than a baseline.

A gate judges many slices, so p-values of 10⁻⁴ and below decide. Two tests must agree: the p-value
is the larger of theirs.

- The interval, turned around. A score v, as a proportion of its range, has the limit e. It is
  Wilson's limit of m = z² e(1 - e) / (e - v)² rows. With so many rows, v is
  (p₀ - v) √(m / (p₀(1 - p₀))) standard errors from the threshold p₀. So the p-value is
  (1 - ci) / 2 exactly where the limit is the threshold.
- The likelihood ratio of v and p₀ for these rows (see `evidence`). Far out, or with few rows, the
  interval is too sure: if 93 % of rows are right, at most 1 of 3 is with probability 0.014, but
  the interval says 0.00003.

A metric that needs two gold classes has another scale than a proportion: if 3 rows are of the rarer
class, m may be 30. So for the likelihood ratio m is at most `most`, the rows of a proportion that
varies as the metric does where the threshold is met (see `most_rows` in `_scores/metric.py`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import polars as pl

from polars_mcc._inference.arrays import floats
from polars_mcc._inference.evidence import Scale, rows_with_limit
from polars_mcc._inference.quantiles import critical, student
from polars_mcc._scores.metric import Metric, most_rows
from polars_mcc._scores.segments import Floats, Ints

Bound = Literal["min", "max"]
_KNOWN = 1e6
"""How many times the rows of the slice the threshold stands for: it is a known number."""


def of_threshold(
    slices: pl.DataFrame,
    metric: Metric,
    bound: Bound,
    at: pl.Expr,
    ci: float,
    *,
    is_frequency: bool,
) -> Floats:
    """The p-value that the score of each slice meets its threshold; NaN without an interval.

    `slices` have the columns of `by` with intervals of the level `ci`. With clusters, errors have
    Student's t. `is_frequency`: a weight counts rows.
    """
    df = slices["n_clusters"].to_numpy() - 1 if "n_clusters" in slices.columns else None
    with np.errstate(all="ignore"):
        z = pl.lit(pl.Series(np.broadcast_to(critical(ci, df), slices.height)))
    scale, score, up, down = _turned(metric, bound)
    at = scale.turned(at.cast(pl.Float64))
    limit = pl.when(score < at).then(up).otherwise(down)
    v, known, end = map(scale.proportion, (score, at, limit))
    errors = z * ((known - v) / (end - v).abs())
    if scale.low is None:
        return _tail(slices.select(_filled(errors, limit, at)).to_series(), df)
    errors = errors * (end * (1 - end) / (known * (1 - known))).sqrt()
    rows = rows_with_limit(v, end, z)
    if is_frequency:
        rows = pl.min_horizontal(rows, _most(metric))
    ratio = scale.evidence(v, rows, known, _KNOWN * rows).fill_nan(math.inf)
    errors = pl.when(score < at).then(pl.min_horizontal(errors, ratio)).otherwise(errors)
    return _tail(slices.select(_filled(errors, limit, at)).to_series(), df)


def of_baseline(slices: pl.DataFrame, metric: Metric, bound: Bound, ci: float) -> Floats:
    """The p-value that the score of each slice is no worse after than before; NaN without one.

    `slices` have the columns of `changes` with intervals of the level `ci`.
    """
    z = pl.lit(critical(ci, None))
    scale, after, up, _ = _turned(metric, bound, "_after")
    _, before, _, down = _turned(metric, bound, "_before")
    v, end, v_to, end_to = map(scale.proportion, (after, up, before, down))
    rows = pl.min_horizontal(rows_with_limit(v, end, z), _most(metric, "_after"))
    rows_to = pl.min_horizontal(rows_with_limit(v_to, end_to, z), _most(metric, "_before"))
    half = pl.col("p_value") / 2
    p = pl.when(after < before).then(half).otherwise(1 - half)
    if scale.low is not None:
        ratio = scale.evidence(v, rows, v_to, rows_to).fill_nan(math.inf)
        likely = pl.max_horizontal(p, _normal_tail(ratio))
        p = pl.when(after < before).then(likely).otherwise(p)
    return floats(slices.select(pl.when(half.is_not_null()).then(p)).to_series())


def _turned(
    metric: Metric, bound: Bound, suffix: str = ""
) -> tuple[Scale, pl.Expr, pl.Expr, pl.Expr]:
    """The scale on which more is better, the score, and its limits on the better and worse side."""
    scale = Scale.of(replace(metric, less_is_better=bound == "max"))
    names = (f"{metric.name}{part}{suffix}" for part in ("", "_low", "_high"))
    score, low, high = (scale.turned(pl.col(name)) for name in names)
    return (scale, score, high, low) if bound == "min" else (scale, score, low, high)


def _most(metric: Metric, suffix: str = "") -> pl.Expr:
    """The most rows that the metric is worth; null if any number."""
    fact = most_rows(metric)
    return pl.lit(None, pl.Float64) if fact is None else pl.col(f"{fact.name}{suffix}")


def _filled(errors: pl.Expr, limit: pl.Expr, at: pl.Expr) -> pl.Expr:
    """The errors where there is a limit and a threshold; 0/0 where the score is the threshold."""
    return pl.when(limit.is_finite() & at.is_not_null()).then(errors.fill_nan(0.0))


def _normal_tail(errors: pl.Expr) -> pl.Expr:
    return (errors / math.sqrt(2)).erfc() / 2


def _tail(errors: pl.Series, df: Ints | None) -> Floats:
    """The probability of more errors than these."""
    if df is None:
        return floats(errors.to_frame("z").select(_normal_tail(pl.col("z"))).to_series())
    t = floats(errors)
    with np.errstate(all="ignore"):
        half = student(t, df) / 2
    return np.where(t < 0, 1 - half, half)

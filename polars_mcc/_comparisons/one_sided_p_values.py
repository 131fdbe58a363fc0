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
class, m may be 30. So for the likelihood ratio m has a limit: the rows of a proportion that varies
as the metric does where the threshold is met (see `most_rows` in `_metrics/metric_type.py`).
A ratio such as "lr_pos" has no largest value. There the first test is of its logarithm, and the
second takes Student's t with 1 / se² degrees of freedom: so many rows, of the rarest kind, tell it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import polars as pl

from polars_mcc._comparisons.evidence import Scale, rows_with_limit
from polars_mcc._intervals.count_arrays import floats
from polars_mcc._intervals.interval_methods import critical, normal, student
from polars_mcc._metrics.exact_scores import most_rows
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.slice_sums import Floats, Ints

Bound = Literal["min", "max"]
_KNOWN = 1e6
"""How many times the rows of the slice the threshold stands for: it is a known number."""


def of_threshold(
    slices: pl.DataFrame,
    metric: Metric,
    bound: Bound,
    threshold: pl.Expr,
    ci: float,
    *,
    is_frequency: bool,
) -> Floats:
    """The p-value that the score of each slice meets its threshold; NaN without an interval.

    `slices` have the columns of `by` with intervals of the level `ci`. With clusters, errors have
    Student's t. `is_frequency`: a weight counts rows.
    """
    df = slices["n_clusters"].to_numpy() - 1 if "n_clusters" in slices.columns else None
    scale, score, up, down = _turned(slices, metric, bound)
    to = floats(slices.select(threshold.cast(pl.Float64)).to_series())
    if metric.is_log:
        with np.errstate(all="ignore"):
            beyond = scale.turn * (np.log(to) - np.log(scale.turn * up))
            se = floats(slices[f"{metric.name}_se"])
            errors = critical(ci, df) + beyond / se
            return np.fmax(_tail(errors, df), _tail(errors, 1 / se**2))
    to = scale.turn * np.broadcast_to(to, score.shape)
    with np.errstate(all="ignore"):
        z, is_below = critical(ci, df), score < to
        limit = np.where(is_below, up, down)
        v, known, end = map(scale.proportion, (score, to, limit))
        errors = z * ((known - v) / np.abs(end - v))
        if scale.low is not None:
            errors = errors * np.sqrt(end * (1 - end) / (known * (1 - known)))
            rows = rows_with_limit(v, end, z)
            if is_frequency:
                rows = np.fmin(rows, _max_rows(slices, metric))
            ratio = scale.evidence(v, rows, known, _KNOWN * rows)
            likely = np.fmin(errors, np.where(np.isnan(ratio), math.inf, ratio))
            errors = np.where(is_below, likely, errors)
        # At the threshold, it is 0/0.
        errors = np.where(np.isnan(errors), 0.0, errors)
        errors = np.where(np.isfinite(limit) & ~np.isnan(to), errors, math.nan)
        return _tail(errors, df)


def of_baseline(slices: pl.DataFrame, metric: Metric, bound: Bound, ci: float) -> Floats:
    """The p-value that the score of each slice is no worse after than before; NaN without one.

    `slices` have the columns of `changes` with intervals of the level `ci`.
    """
    z = critical(ci, None)
    scale, after, up, _ = _turned(slices, metric, bound, "_after")
    _, before, _, down = _turned(slices, metric, bound, "_before")
    half, is_worse = floats(slices["p_value"]) / 2, after < before
    p = np.where(is_worse, half, 1 - half)
    if scale.low is None:
        return p
    with np.errstate(all="ignore"):
        v, end, v_to, end_to = map(scale.proportion, (after, up, before, down))
        rows = np.fmin(rows_with_limit(v, end, z), _max_rows(slices, metric, "_after"))
        rows_to = np.fmin(rows_with_limit(v_to, end_to, z), _max_rows(slices, metric, "_before"))
        ratio = scale.evidence(v, rows, v_to, rows_to)
        likely = np.fmax(p, _tail(np.where(np.isnan(ratio), math.inf, ratio), None))
    return np.where(is_worse & ~np.isnan(half), likely, p)


def _turned(
    slices: pl.DataFrame, metric: Metric, bound: Bound, suffix: str = ""
) -> tuple[Scale, Floats, Floats, Floats]:
    """The scale on which more is better, the score, and its limits on the better and worse side."""
    scale = Scale.of(replace(metric, less_is_better=bound == "max"))
    names = (f"{metric.name}{part}{suffix}" for part in ("", "_low", "_high"))
    score, low, high = (scale.turn * floats(slices[name]) for name in names)
    return (scale, score, high, low) if bound == "min" else (scale, score, low, high)


def _max_rows(slices: pl.DataFrame, metric: Metric, suffix: str = "") -> Floats | float:
    """The largest number of effective rows that the metric can have; NaN if any number."""
    fact = most_rows(metric)
    return math.nan if fact is None else floats(slices[f"{fact.name}{suffix}"])


def _tail(errors: Floats, df: Ints | None) -> Floats:
    """The probability of more errors than these, one-sided."""
    with np.errstate(all="ignore"):
        half = (normal(errors) if df is None else student(errors, df)) / 2
    return np.where(errors < 0, 1 - half, half)

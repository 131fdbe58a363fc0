"""`score`: all rows as one slice."""

from __future__ import annotations

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import Method
from polars_mcc._frame.columns import FrameT
from polars_mcc._frame.log_options import Described
from polars_mcc._intervals.interval_options import Resampling
from polars_mcc._metrics.registry import IntoMetrics
from polars_mcc._verbs.by import by


def score(
    log: Described[FrameT],
    *,
    metrics: IntoMetrics = defaults.METRICS,
    ci: float | None = None,
    method: Method | Resampling[FrameT] = defaults.METHOD,
) -> FrameT:
    """Score the whole log as one slice: `by` without keys.

    Args:
        metrics: One metric or several, computed from the same counts: a name of `metrics()`. In
            Python also an expression, as in `by`.
        ci: The confidence level of an interval, such as 0.95. None: no interval.
        method: The kind of interval: "score", "fisher" or "wald", as in `by`. In Python also a
            `Bootstrap`.

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, with one row (per model) and the columns
        `n`, `mcc`, `n_null`, and with `ci` the interval. A log without rows has `n` 0 and `mcc`
        null.

    The errors of `by` are raised.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": [1, 1, 0, 0], "a": [1, 1, 0, 1], "b": [0, 1, 0, 1]})
        >>> log.mcc(pred=["a", "b"]).score()
        shape: (2, 4)
        ┌───────┬─────┬─────────┬────────┐
        │ model ┆ n   ┆ mcc     ┆ n_null │
        │ ---   ┆ --- ┆ ---     ┆ ---    │
        │ str   ┆ i64 ┆ f64     ┆ i64    │
        ╞═══════╪═════╪═════════╪════════╡
        │ a     ┆ 4   ┆ 0.57735 ┆ 0      │
        │ b     ┆ 4   ┆ 0.0     ┆ 0      │
        └───────┴─────┴─────────┴────────┘

    Command line:
        polars-mcc score logs/ --metric mcc --metric f1_macro --format json
    """
    return by(log, metrics=metrics, ci=ci, method=method)

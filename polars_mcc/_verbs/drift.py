"""`drift`: the change of score of each slice between two periods."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import Correction, Method
from polars_mcc._base.errors_on_collect import Failure, unless
from polars_mcc._comparisons import options_of_differences
from polars_mcc._counts.count_rows import merged
from polars_mcc._counts.pair_counts import pairs
from polars_mcc._frame.columns import IntoColumn
from polars_mcc._frame.frames import FrameT
from polars_mcc._frame.log_options import Described
from polars_mcc._intervals.deferred_step import inferred
from polars_mcc._intervals.interval_options import PERIODS, IntervalOptions
from polars_mcc._keys.any_key import IntoKey, check_plain
from polars_mcc._metrics import registry
from polars_mcc._metrics.registry import IntoMetric


def drift(
    log: Described[FrameT],
    *keys: IntoKey,
    before: IntoColumn,
    after: IntoColumn,
    metric: IntoMetric = defaults.METRIC,
    ci: float = defaults.LEVEL,
    method: Method = defaults.METHOD,
    correction: Correction = defaults.CORRECTION,
) -> FrameT:
    """Measure how the score of each slice changed between two periods, with an interval.

    The two periods have different rows, so their scores are independent. The interval of the
    difference follows from the intervals of both scores (Zou 2007). In a log with clusters, such
    as users, a user in both periods counts as one user, and the interval takes the correlation of
    both scores into account.

    Rows outside both periods are ignored; the scan skips them if it can.

    Args:
        *keys: The keys to group by, as in `by`, but no windows.
        before: A Boolean column that marks the rows of the first period, such as
            `pl.col("day") < date(2026, 3, 15)`.
        after: A Boolean column that marks the rows of the second period.
        metric: The metric to compare: a name of `metrics()`. In Python also a function, as in
            `by`.
        ci: The confidence level of the interval.
        method: The kind of interval of each score: "score", "fisher" or "wald", as in `by`.
        correction: The correction of p-values for the number of slices: see `compare`.

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, sorted by the keys. It has one row per slice
        with rows in at least one period, with the keys, `model` if the log has several models, and

        - `n_before`, `n_after`: the rows scored; then, if the log has clusters,
          `n_clusters_before` and `n_clusters_after` (Int64);
        - `mcc_before`, `mcc_after` (Float64; with the name of the metric): the scores; null if the
          period has no row, or for "roc_auc" no row of one gold class;
        - `diff`, `diff_low`, `diff_high`, `diff_se` (Float64): after minus before, with its
          standard error and interval. A `diff` below 0 means that the score became lower;
        - `p_value` (Float64): of no change; `p_adjusted` (Float64): after correction for the number
          of slices;
        - `n_null`: the rows of both periods not scored.

    Raises:
        polars.exceptions.SchemaError: `before` or `after` is not Boolean.
        polars.exceptions.InvalidOperationError: On `collect`: a row is in both periods, or a period
            has no rows.
        ValueError: A key is a window; the metric has no derivative.

    The errors of `by` are raised too.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> is_early = pl.col("day") < pl.date(2026, 3, 15)
        >>> change = log.mcc(pred="bayes").drift(before=is_early, after=~is_early)
        >>> change.select("mcc_before", "mcc_after", "diff_low", "diff_high")
        shape: (1, 4)
        ┌────────────┬───────────┬──────────┬───────────┐
        │ mcc_before ┆ mcc_after ┆ diff_low ┆ diff_high │
        │ ---        ┆ ---       ┆ ---      ┆ ---       │
        │ f64        ┆ f64       ┆ f64      ┆ f64       │
        ╞════════════╪═══════════╪══════════╪═══════════╡
        │ 0.813176   ┆ 0.854907  ┆ 0.005522 ┆ 0.079022  │
        └────────────┴───────────┴──────────┴───────────┘

    Command line:
        polars-mcc drift logs/ --before "day < DATE '2026-03-15'" --after "day >= DATE '2026-03-15'"
    """
    options_of_differences.check(ci, method, correction)
    check_plain(keys, "drift", "windows overlap, but two periods must not", sets=True)
    chosen = registry.find_tested_metric(metric, log.roles.label_dtype)
    has_clusters = log.roles.cluster is not None
    names = options_of_differences.names_of_periods(
        chosen, has_clusters=has_clusters, waiting=log.roles.waiting
    )
    asked = IntervalOptions(ci, method, [chosen])
    periods = {"before": before, "after": after}
    sliced, asked = options_of_differences.cut_log(
        log, keys, asked, names.values(), clusters=True, periods=periods
    )
    of_slices = replace(sliced, pair_splits=("cluster",) if has_clusters else ())
    apart = of_slices.split_by("period")

    def infer(counted: pl.DataFrame) -> pl.DataFrame:
        from polars_mcc._comparisons.corrected_p_values import with_adjusted  # noqa: PLC0415 - NumPy
        from polars_mcc._comparisons.two_periods import changes  # noqa: PLC0415 - NumPy

        cells = merged(apart, counted.lazy().with_columns(period=_period())).collect()
        slices = with_adjusted(changes(of_slices, apart, cells, asked), correction)
        return options_of_differences.answer_of(of_slices, slices, names)

    counted = pairs(sliced)
    answer = inferred(log, of_slices, counted, infer, metrics=asked.metrics, check=_check_periods)
    return log.in_kind(of_slices.answer(answer))


def _period() -> pl.Expr:
    """The period of a pair, or an error if the pair is in both periods."""
    before, after = pl.col("before"), pl.col("after")
    both = Failure(
        before & after, ["a row is both before and after: make the conditions exclude each other"]
    )
    period = pl.when(before).then(pl.lit("before")).otherwise(pl.lit("after"))
    return unless(period, both).cast(PERIODS)


def _check_periods(counted: pl.DataFrame) -> None:
    """Raise an error if a period has no rows."""
    for name in PERIODS.categories:
        if not counted[name].any():
            msg = f"no row of the log is {name}: its condition must be true for some rows"
            raise pl.exceptions.InvalidOperationError(msg)

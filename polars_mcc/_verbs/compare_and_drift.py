"""`compare` and `drift`: the score difference of two models, or of two periods, per slice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import Correction, Method
from polars_mcc._base.errors_and_warnings import Failure, unless
from polars_mcc._base.message_parts import option, refused
from polars_mcc._comparisons import options_of_differences
from polars_mcc._comparisons.columns_of_answers import answer_columns
from polars_mcc._counts.count_rows import merged
from polars_mcc._counts.pair_counts import pairs
from polars_mcc._counts.sides_and_slices import model_named
from polars_mcc._frame.columns import FrameT, IntoColumn, NamedColumns
from polars_mcc._frame.log_options import Described
from polars_mcc._intervals.interval_options import PERIODS, IntervalOptions, inferred
from polars_mcc._keys.any_key import IntoKey, check_plain
from polars_mcc._metrics import registry
from polars_mcc._metrics.registry import IntoMetrics


def compare(
    log: Described[FrameT],
    *keys: IntoKey,
    baseline: IntoColumn | None = None,
    metrics: IntoMetrics = defaults.METRICS,
    min_n: int = defaults.COMPARED_N,
    ci: float = defaults.LEVEL,
    method: Method = defaults.METHOD,
    correction: Correction = defaults.CORRECTION,
) -> FrameT:
    """Compare models with a baseline model on the same rows, in each slice.

    Two models mostly err on the same rows, so the data show their difference more precisely than
    either score. The difference comes from the joint counts of (gold, a, b): a is the baseline, b
    is the other model. With φ, the influence of a row on a score (see *Intervals* of `by`), its
    variance is Σ (φ_b - φ_a)² / n². One scan is enough for any number of models.

    With `nulls="reweight"`, labelled rows stand for the rows of their slice with the same
    predictions of both models. So the scores may differ from those of `by`, where only one
    prediction must be the same. They are null if two predictions occur together without a labelled
    row. The interval is that of all rows with a label, wider by the variance that the rows without
    one add.

    To compare models of two logs, join the logs on a row id. To compare from counts, count with
    the predictions of a as a key: `frame.mcc(pred="b").counts(*keys, "a")`.

    Args:
        *keys: The keys to group by, as in `by`.
        baseline: The baseline, model a: one of the models of the log, or another column. None:
            the first model of the log.
        metrics: One metric or several, counted once, all of labels or all of scores: names of
            `metrics()`. In Python also functions, as in `by`. For a metric of scores, such as
            "roc_auc", the models are the scores of the log; with `method="wald"`, it is the paired
            test of DeLong et al. (1988), where neither is 1.
        min_n: The least number of rows of a slice that is judged: with fewer rows, a p-value is too
            small too often. A score must be of half as many: "tpr" is of rows with the positive
            label. With sample weights w, the rows are (Σ w)² / Σ w².
        ci: The confidence level of the interval.
        method: The kind of interval of each score, "score", "fisher" or "wald". The interval of
            the difference is made from both.
        correction: The correction of p-values for the number of tests, of each metric alone: "fnr"
            and "tpr" are one test. The false discovery rate: "bh" (Benjamini and Hochberg 1995) or
            "by" (Benjamini and Yekutieli 2001, also valid if slices overlap). The probability of
            any false discovery: "holm" or "bonferroni".

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, sorted. It has one row per slice, model b
        and metric, with the columns

        - the keys; `model`, `baseline` and `metric` (String): b, a, and what they are compared by;
        - `n`, and `n_clusters` (Int64) if the log has clusters, as in `by`. A row is scored if gold
          and both models have a label, or both models a score;
        - `score`, of b; `reference`, of a; `diff`, `score` minus `reference`, with `diff_low` and
          `diff_high`, its interval;
        - `p_value`, of the hypothesis that `diff` is 0, and `p_adjusted`, after correction: null
          with fewer than `min_n` rows;
        - `verdict` (Enum): b is "better" or "worse", if `p_adjusted` is below 1 - `ci`; or it
          "differs", by a metric without a better side, such as "selection_rate"; "not sure"; or
          "not judged", without a p-value. Less of a cost, or of "fnr", is better;
        - `n_null` (dtype of `n`): the rows not scored.

        All numbers but the counts are Float64. The interval follows Zou (2007), from the intervals
        of both scores and the correlation of their influences. It need not be symmetric. `p_value`
        is below 1 - `ci` if the interval excludes 0. Both are null if a score has no interval. With
        clusters, the p-value is Student's. For the measured coverage of the interval, see the
        guide, *How sure*.

    Raises:
        ValueError: An option has an unknown value; there is no second model; a metric has no
            derivative; some metrics are of labels and some of scores.

    The errors of `by` are raised too.

    References:
        G. Y. Zou, Toward using confidence intervals to compare correlations, Psychological
        Methods 12 (2007) 399-413.
        M. Itaya et al., Asymptotic properties of Matthews correlation coefficient,
        arXiv 2405.12622: the variance, for two classes.
        E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, Biometrics 44 (1988) 837-845: the
        variance of a difference of two "roc_auc".

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> compared = log.mcc(pred=["logistic", "knn"]).compare()
        >>> compared.select("model", "score", "reference", "diff_low", "diff_high", "verdict")
        shape: (1, 6)
        ┌───────┬──────────┬───────────┬──────────┬───────────┬─────────┐
        │ model ┆ score    ┆ reference ┆ diff_low ┆ diff_high ┆ verdict │
        │ ---   ┆ ---      ┆ ---       ┆ ---      ┆ ---       ┆ ---     │
        │ str   ┆ f64      ┆ f64       ┆ f64      ┆ f64       ┆ enum    │
        ╞═══════╪══════════╪═══════════╪══════════╪═══════════╪═════════╡
        │ knn   ┆ 0.974064 ┆ 0.941349  ┆ 0.021926 ┆ 0.044486  ┆ better  │
        └───────┴──────────┴───────────┴──────────┴───────────┴─────────┘

    Command line::

        polars-mcc compare logs/ --pred old --pred new --by country

        polars-mcc compare logs/ --score old --score new --metric roc_auc
    """
    chosen = registry.with_tests(registry.find_metrics(metrics, log.roles.label_dtype))
    asked = IntervalOptions(ci, method, chosen, min_n=min_n, correction=correction)
    return log.in_kind(paired(log, keys, baseline, asked, answer_columns("compare", log)))


def paired(
    log: Described[Any],
    keys: Sequence[IntoKey],
    baseline: IntoColumn | None,
    asked: IntervalOptions,
    names: Sequence[str],
    *,
    added: Iterable[str] = (),
) -> pl.LazyFrame:
    """The models of a log beside the baseline, in each slice: columns of these names.

    A key may have none of them, nor of those that are `added` later.
    """
    role = registry.role_of(asked.metrics)
    models = log.roles.scores if role == "score" else log.roles.preds
    if log.roles.score_labels and role == "score":
        raise ValueError(
            "a score per class is of one model: compare two models by one class, as in "
            "log(score=['old', 'new'], positive='fraud')"
        )
    model = _baseline_of(models, baseline, role)
    sliced, asked = options_of_differences.cut_log(
        log, keys, asked, [*names, *added], clusters=True, baseline=model
    )

    def infer(cells: pl.DataFrame) -> pl.DataFrame:
        from polars_mcc._comparisons.difference_interval import of_models  # noqa: PLC0415 - NumPy, for it alone

        slices = of_models(sliced, cells, asked).with_columns(baseline=pl.lit(sliced.baseline))
        return slices.select(*sliced.slice, *names)

    answer = inferred(log, sliced, pairs(sliced), infer, metrics=asked.metrics)
    return sliced.answer(answer)


def _baseline_of(
    models: NamedColumns | None, baseline: IntoColumn | None, role: str
) -> IntoColumn | None:
    """The baseline, or the first model if none is named."""
    if models is None:
        return baseline  # `sides_of` raises the error for a log without predictions.
    [first, *other_models] = models.names
    if not other_models and (baseline is None or model_named(baseline, models) is not None):
        raise refused(
            "there is no second model to compare: pass several, as in ",
            option(role, ["old", "new"], of="frame.mcc"),
            ", or name another column, as in ",
            option("baseline", "old"),
        )
    return first if baseline is None else baseline


def drift(
    log: Described[FrameT],
    *keys: IntoKey,
    before: IntoColumn,
    after: IntoColumn,
    metrics: IntoMetrics = defaults.METRICS,
    min_n: int = defaults.COMPARED_N,
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
        metrics: One metric or several, counted once, all of labels or all of scores: names of
            `metrics()`. In Python also functions, as in `by`.
        min_n: The least number of rows, in both periods, of a slice that is judged: see `compare`.
        ci: The confidence level of the interval.
        method: The kind of interval of each score: "score", "fisher" or "wald", as in `by`.
        correction: The correction of p-values for the number of slices, of each metric alone: see
            `compare`.

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, sorted by the keys. It has one row per
        metric, and slice with rows in at least one period, with the keys, `model` if the log has
        several models, and

        - `metric` (String);
        - `n_before`, `n_after`: the rows scored; then, if the log has clusters,
          `n_clusters_before` and `n_clusters_after` (Int64);
        - `reference`, `score` (Float64): the scores before and after; null if the period has no
          row, or for "roc_auc" no row of one gold class;
        - `diff`, `diff_low`, `diff_high` (Float64): after minus before, with its interval. A `diff`
          below 0 means that the score became lower;
        - `p_value`, of no change, and `p_adjusted`, after correction (Float64): null with fewer
          than `min_n` rows;
        - `verdict` (Enum): "better", "worse", "differs", "not sure" or "not judged", as in
          `compare`;
        - `n_null`: the rows of both periods not scored.

    Raises:
        polars.exceptions.SchemaError: `before` or `after` is not Boolean.
        polars.exceptions.InvalidOperationError: On `collect`: a row is in both periods, or a period
            has no rows.
        ValueError: A key is a window; a metric has no derivative.

    The errors of `by` are raised too.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> is_early = pl.col("day") < pl.date(2026, 3, 15)
        >>> change = log.mcc(pred="bayes").drift(before=is_early, after=~is_early)
        >>> change.select("reference", "score", "diff_low", "diff_high", "verdict")
        shape: (1, 5)
        ┌───────────┬──────────┬──────────┬───────────┬─────────┐
        │ reference ┆ score    ┆ diff_low ┆ diff_high ┆ verdict │
        │ ---       ┆ ---      ┆ ---      ┆ ---       ┆ ---     │
        │ f64       ┆ f64      ┆ f64      ┆ f64       ┆ enum    │
        ╞═══════════╪══════════╪══════════╪═══════════╪═════════╡
        │ 0.813176  ┆ 0.854907 ┆ 0.005522 ┆ 0.079022  ┆ better  │
        └───────────┴──────────┴──────────┴───────────┴─────────┘

    Command line::

        polars-mcc drift logs/ --before "day < DATE '2026-03-15'" --after "day >= DATE '2026-03-15'"
    """
    chosen = registry.with_tests(registry.find_metrics(metrics, log.roles.label_dtype))
    asked = IntervalOptions(ci, method, chosen, min_n=min_n, correction=correction)
    check_plain(keys, "drift", "windows overlap, but two periods must not", sets=True)
    names = answer_columns("drift", log)
    periods = {"before": before, "after": after}
    sliced, asked = options_of_differences.cut_log(
        log, keys, asked, names, clusters=True, periods=periods
    )
    has_clusters = log.roles.cluster is not None
    of_slices = replace(sliced, pair_splits=("cluster",) if has_clusters else ())
    apart = of_slices.split_by("period")

    def infer(counted: pl.DataFrame) -> pl.DataFrame:
        from polars_mcc._comparisons.difference_interval import changes  # noqa: PLC0415 - NumPy

        cells = merged(apart, counted.lazy().with_columns(period=_period())).collect()
        return changes(of_slices, apart, cells, asked).select(*of_slices.slice, *names)

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

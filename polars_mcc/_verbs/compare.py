"""`compare`: the score difference of two models on the same rows, per slice."""

from __future__ import annotations

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import Correction, Method
from polars_mcc._base.message_parts import option, said
from polars_mcc._comparisons import options_of_differences
from polars_mcc._counts.gold_and_pred import model_named
from polars_mcc._counts.pair_counts import pairs
from polars_mcc._frame.columns import IntoColumn, NamedColumns
from polars_mcc._frame.frames import FrameT
from polars_mcc._frame.log_options import Described
from polars_mcc._intervals.deferred_step import inferred
from polars_mcc._intervals.interval_options import IntervalOptions
from polars_mcc._keys.any_key import IntoKey
from polars_mcc._metrics import registry
from polars_mcc._metrics.registry import IntoMetric


def compare(
    log: Described[FrameT],
    *keys: IntoKey,
    baseline: IntoColumn | None = None,
    metric: IntoMetric = defaults.METRIC,
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
        metric: The metric to compare: a name of `metrics()`. In Python also a function, as in
            `by`. For a metric of scores, such as "roc_auc", the models are the scores of the log;
            with `method="wald"`, it is the paired test of DeLong et al. (1988), where neither is 1.
        ci: The confidence level of the interval.
        method: The kind of interval of each score, "score", "fisher" or "wald". The interval of
            the difference is made from both.
        correction: The correction of p-values for the number of tests in the answer. The false
            discovery rate: "bh" (Benjamini and Hochberg 1995) or "by" (Benjamini and Yekutieli
            2001, also valid if slices overlap). The probability of any false discovery: "holm" or
            "bonferroni".

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, sorted. It has one row per slice (and per
        model b, if the log has several), with the columns

        - the keys, `model` (String), `n`, and `n_clusters` (Int64) if the log has clusters, as in
          `by`. A row is scored if gold and both models have a label, or both models a score;
        - `mcc_a`, `mcc_b` (with the name of the metric), and `diff` = b - a. `diff` is above 0 if
          b is better; for a metric such as "fnr", where less is better, if b is worse;
        - `diff_low`, `diff_high`, its interval; `diff_se`, its standard error;
        - `p_value`, of the hypothesis that `diff` is 0, and `p_adjusted`, after correction;
        - `n_null` (dtype of `n`): the rows not scored.

        All columns but the counts are Float64. The interval follows Zou (2007), from the intervals
        of both scores and the correlation of their influences. It need not be symmetric. `p_value`
        is below 1 - `ci` if the interval excludes 0. Both are null if a score has no interval.
        `diff_se` is null if the models never differ. With clusters, the p-value is Student's. For
        the measured coverage of the interval, see the guide, *How sure*.

    Raises:
        ValueError: An option has an unknown value; there is no second model; the metric has no
            derivative.

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
        >>> compared.select("model", "mcc_a", "mcc_b", "diff", "diff_low", "diff_high")
        shape: (1, 6)
        ┌───────┬──────────┬──────────┬──────────┬──────────┬───────────┐
        │ model ┆ mcc_a    ┆ mcc_b    ┆ diff     ┆ diff_low ┆ diff_high │
        │ ---   ┆ ---      ┆ ---      ┆ ---      ┆ ---      ┆ ---       │
        │ str   ┆ f64      ┆ f64      ┆ f64      ┆ f64      ┆ f64       │
        ╞═══════╪══════════╪══════════╪══════════╪══════════╪═══════════╡
        │ knn   ┆ 0.941349 ┆ 0.974064 ┆ 0.032715 ┆ 0.021926 ┆ 0.044486  │
        └───────┴──────────┴──────────┴──────────┴──────────┴───────────┘

    Command line:
        polars-mcc compare logs/ --pred old --pred new --by country

        polars-mcc compare logs/ --score old --score new --metric roc_auc
    """
    options_of_differences.check(ci, method, correction)
    chosen = registry.find_tested_metric(metric, log.roles.label_dtype)
    scores = {"score_a": "_a", "score_b": "_b"}
    names = options_of_differences.names_of(
        chosen, ["n", "n_clusters"], scores, waiting=log.roles.waiting
    )
    asked = IntervalOptions(ci, method, [chosen])
    models = log.roles.scores if chosen.is_of_scores else log.roles.preds
    if log.roles.score_labels and chosen.is_of_scores:
        raise ValueError(
            "a score per class is of one model: compare two models by one class, as in "
            "log(score=['old', 'new'], positive='fraud')"
        )
    model = _baseline_of(models, baseline, chosen.role)
    sliced, asked = options_of_differences.cut_log(
        log, keys, asked, names.values(), clusters=True, baseline=model
    )
    if not sliced.has_clusters:
        del names["n_clusters"]

    def infer(cells: pl.DataFrame) -> pl.DataFrame:
        from polars_mcc._comparisons.two_models import of_models  # noqa: PLC0415 - NumPy, for it alone

        slices = of_models(sliced, cells, asked, correction)
        return options_of_differences.answer_of(sliced, slices, names)

    answer = inferred(log, sliced, pairs(sliced), infer, metrics=asked.metrics)
    return log.in_kind(sliced.answer(answer))


def _baseline_of(
    models: NamedColumns | None, baseline: IntoColumn | None, role: str
) -> IntoColumn | None:
    """The baseline, or the first model if none is named."""
    if models is None:
        return baseline  # `sides_of` raises the error for a log without predictions.
    [first, *other_models] = models.names
    if not other_models and (baseline is None or model_named(baseline, models) is not None):
        msg = said(
            "there is no second model to compare: pass several, as in ",
            option(role, ["old", "new"], of="frame.mcc"),
            ", or name another column, as in ",
            option("baseline", "old"),
        )
        raise ValueError(msg)
    return first if baseline is None else baseline

"""`by`: one row per slice, with its score and a confidence interval; `score`: all rows as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import Method, Role, check_choice, check_interval
from polars_mcc._counts.class_counts import classes_of
from polars_mcc._counts.pair_counts import pairs
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._counts.sliced_log import CLASS, MODEL, OfRow, SlicedLog
from polars_mcc._frame.columns import FrameT
from polars_mcc._frame.log_options import Described
from polars_mcc._intervals import interval_options
from polars_mcc._intervals.interval_options import Bootstrap, IntervalOptions, Resampling, inferred
from polars_mcc._keys.any_key import IntoKey
from polars_mcc._metrics import exact_scores, registry
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.registry import IntoMetrics


def by(
    log: Described[FrameT],
    *keys: IntoKey,
    metrics: IntoMetrics = defaults.METRICS,
    ci: float | None = None,
    method: Method | Resampling[FrameT] = defaults.METHOD,
    long: bool = False,
) -> FrameT:
    """Score every slice with MCC (R_K) or other metrics, with optional confidence intervals.

    With s rows, c hits and the marginal counts t_k (gold) and p_k (predicted) of class k::

        R_K = (c·s - Σ t_k·p_k) / √((s² - Σ p_k²) · (s² - Σ t_k²))

    For integer counts, all sums and products are exact and the result is rounded once: the score
    is within 4 units in the last place. For float weights, the sum of each (slice, gold, pred) is
    a float. Its error is at most one unit in the last place if all weights are between 10⁻⁶ and
    10¹². All later steps are exact, except for weights below 10⁻¹⁸ of the total of their slice.

    The query replaces text labels by 64-bit hashes. The probability that any two of K labels
    collide, and count as one class, is below K² / 2⁶⁴ (6·10⁻¹⁰ for 10⁵ labels), for any number of
    rows and slices. `counts` and `classes` show labels, so they use no hashes. Text in local
    Parquet files of 16 MB or more is counted by the codes of the files; the answer is the same (see
    `portable`).

    Args:
        *keys: The keys to group by: columns; `bins`; `each`, `rollup`, `cube` or `sets` of columns;
            `trailing` windows of time. Several keys are crossed. Without keys, all rows are one
            slice. In Python also expressions and selectors.
        metrics: One metric or several, computed from the same counts: a name of `metrics()`, such
            as "accuracy", "f1_macro" or "kappa", or a call, such as "f_beta(2)",
            "cost(fn=10, fp=1)" or "kappa(quadratic)" (see `polars_mcc.metric`). Metrics of one
            class, such as "tpr", need `positive`, the label of the class. Metrics of scores, such
            as "roc_auc", "average_precision", "brier", "log_loss" and "calibration_error", need the
            `score` of the log. If metrics of labels and of scores are asked for together, a row
            needs both a prediction and a score. In Python also a function of the columns of
            `classes`, such as `lambda col: col("recall").min().alias("recall_min")`, or of `gold`,
            `pred` and `n` of the pairs; or an expression of these columns (see `register_metric`).
        ci: The confidence level of an interval for each metric, such as 0.95. None: no interval.
        method: The kind of interval. "score" has the best coverage. "fisher" and "wald" are the
            textbook intervals. In Python also a `Bootstrap`, which resamples the rows, or
            clusters, of a DataFrame.
        long: Name the slice in words, in the column `slice`, such as "country = DE and device =
            pc", and its keys in `keys`, instead of one column per key.

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, sorted by the keys (nulls first, as in
        Polars). It has one row per slice, with the columns

        - `keys` (String), if there are several sets of keys: the names of the keys of the slice,
          "" for the total. A null in a key that `keys` names is a value; a null in any other key
          means all values;
        - the keys, with their dtypes; after a window, `complete` (see `trailing`);
        - `model` (String), if the log has several models; its rows are in the order given;
        - `n` (Int64; Float64 for float weights): the rows scored; with `weight` or
          `sample_weight`, the sum of their weights;
        - `n_clusters` (Int64), if the log has clusters and `ci` is given: the number of clusters;
        - `mcc` (Float64), between -1 and 1, null where `n` is 0; or else the metrics, in the order
          given (Float64; counts such as `tp` have the dtype of `n`);
        - with `ci`, after each metric, its interval and standard error: `mcc_low`, `mcc_high`,
          `mcc_se` (Float64);
        - `n_null` (dtype of `n`): the rows not scored, because a label, a weight or, for metrics of
          scores, a score is null or NaN. A row adds its weight, and 1 if the weight is null;
        - `n_waiting` (dtype of `n`), if labels may come later: those of them without a gold label.

    Intervals:
        Let φ be the influence of a row on a metric: the derivative of the definition of the metric
        (`polars_mcc/_intervals/influence_of_rows.py` has the formula). The variance of the
        metric is Σ φ² / n², over the rows of a slice (the delta method; for R_K of two classes:
        Itaya et al., arXiv 2405.12622). With `sample_weight` w it is Σ w² φ² / (Σ w)². With
        clusters it is Σ (Σ w φ within a cluster)² / (Σ w)². Then Student's t replaces the normal
        distribution; its degrees of freedom are the number of clusters minus one.

        - "score": Wilson's interval (1927) of a proportion of m rows, where m gives the proportion
          the variance of the metric. For recall, m is the number of gold rows of the class, and for
          precision the number of predicted rows. The observed variance takes a rate of 0 or 1 as
          known exactly. So m comes from two tables in which each gold class, or each predicted
          class, has a hit and a miss more; the smaller m counts. With sample weights, m is of at
          most (Σ w)² / Σ w² rows; G clusters count as G - 1.
        - "fisher": symmetric in artanh of the score, after scaling its range to -1 to 1.
        - "wald": symmetric in the score, cut at the ends of its range.
        - `Bootstrap`: percentiles of replicates drawn with replacement; corrected with `bca`.

        The influences on "roc_auc" are DeLong's placements (1988); their variance divides by one
        less than the rows of a class. A row moves "average_precision" by its own precision and by
        the precision of all positive rows below it. A row moves "brier" and "log_loss" by the
        distance of its loss from the mean. A perfect ranking has no variance. So m of "roc_auc" is
        also at most what Hanley and McNeil's variance (1982) gives, and what DeLong's gives with
        half a row added at each end of each class. For "average_precision", half a positive row
        and half a negative row are added above all others. For a loss, a row with no loss is added,
        and a row with the largest loss that a score of the slice allows.

        A custom metric without a range has a symmetric interval, with "score" from the same tables.
        The guide, *How the numbers are checked*, says for each kind of metric from how many rows on
        the 95 % "score" interval was measured to hold, and where it does not.

        If a slice has two gold classes or more, and some are never predicted, a metric is known as
        far as what was never seen is rare: none of n rows, so a rate of at most 1 - (α/2)^(1/n)
        (Clopper and Pearson 1934). The limits hold the metric at two tables: with this recall of
        these classes, and with this rate of false alarms. So MCC, at 0/0 if one class is predicted
        and 0.0 by `zero_division`, has an interval. Proportions of rows keep Wilson's. If
        `zero_division` is not 0, there are no such limits.

        The interval of "lr_pos", "lr_neg" and "dor" is of their logarithm, whatever the method.
        With half a row more in each cell, the logarithm has the standard error `lr_pos_se` (Simel
        et al. 1991). The interval reaches so far from the logarithms with half rows and without,
        down from the smaller and up from the larger. It begins at 0 or ends at infinity where the
        metric does, and there is no `Bootstrap`.

        An interval is null if the metric is 0/0 for another reason, if there is one cluster, or if
        `metrics()` has a reason in `no_interval`: then the error of the metric is far from normal.
        At the end of its range, such as 1, a metric has no standard error, and only "score" gives
        an interval: it shows how low the true score may be although no row is wrong. The same holds
        where all rows have the same influence: "roc_auc" of constant scores, or a loss that is
        equal in all rows.

    Labels for some rows:
        With `nulls="reweight"`, a row with a prediction and no gold label is represented by the
        labelled rows of its slice with the same prediction (Begg and Greenes 1983). Of N rows, N_j
        have the prediction j, and n_j of these a label, the share q_ij of them i. The score is the
        metric of the shares N_j/N · q_ij. So counts such as "tp" are estimates, and Float64. `n`
        counts the labelled rows, and `n_null` all others. Rows without a prediction are left out.
        If a prediction of a slice has no labelled row, all its metrics are null. A total is
        reweighted as one slice, so it is not the sum of its parts.

        With m_j and s_j², the mean and the variance of φ over the labelled rows predicted j, the
        variance is Σ w_j m_j² / N + Σ w_j² s_j² / n_j, where w_j = N_j/N. For m of "score", the
        labelled rows of each predicted class have a hit and a miss of each other class more, and
        this table counts for all metrics.

    Sets and windows:
        Rows are counted once, and the counting streams.

    Lazy logs:
        Without `ci`, the query is one plan of Polars. With `ci`, Polars counts on `collect`, and
        NumPy computes the intervals from the counts, in one deferred step: a filter of the answer
        does not reach the scan, and a plan that must be `portable` is refused.
        This step also warns of labels that make scores wrong (see *Warns*). A plan without `ci`
        cannot.

    Lists of labels:
        A list counts as a set: a label is in it or not. The score is R_K of the indicator
        matrices, (s·c - Σ t_k·p_k) / √((s Σt - Σ t_k²) · (s Σp - Σ p_k²)). An empty list is a row
        without labels. A list that is null, or contains a null, is a null label. Only metrics that
        `metrics()` marks as `multilabel` are available, without intervals; "hamming_loss" is of all
        labels that occur in the log. `score`, `classes` and `counts` take lists too.

    Raises:
        polars.exceptions.ColumnNotFoundError: A named column is missing.
        polars.exceptions.DuplicateError: A key has the name of another key or of a column of the
            answer.
        polars.exceptions.SchemaError: A key has dtype Object, or the index of windows is not a
            date or time.
        TypeError: A bootstrap of a LazyFrame.
        ValueError: An option has an unknown value; `method` without `ci`; a bootstrap of weighted
            rows; a bootstrap or a metric of scores with `nulls="reweight"`; invalid sets of keys or
            windows; an unknown metric; a metric that needs a positive label, and the log has none;
            a metric of scores, and the log has no score; metrics of labels and of scores together,
            if `nulls` is "label" or there is not one score for each prediction; an interval of a
            metric without a derivative, such as a median (the message shows the bootstrap); an
            interval of a lazy log with `portable=True` (ask the counts for it).
        polars.exceptions.InvalidOperationError: On `collect`: a weight is negative, NaN
            or infinite; a score is not between 0 and 1, for metrics of probabilities such as
            "brier"; a gold label has no score, if there is a score per class; or the weights of a
            slice add up to more than 2⁶³ - 1, or to an infinite float.

    All errors but the last are raised from the schema, when the query is built. No data are read.

    Warns:
        PredictionLogWarning: Labels differ only in case, spaces or Unicode form, such as "Yes" and
            "yes"; no predicted label is a gold label; no row has the positive label, or a label
            that a table of a metric names; there is one gold class; or a key is the gold label. The
            message has the labels. Of a DataFrame it comes at once; of a LazyFrame only with `ci`,
            on `collect`. Then the first 1,000 rows of text labels are read again, and more rows
            until each label that was counted is found. A lazy query without `ci` is silent.

    References:
        J. Gorodkin, Comparing two K-category assignments by a K-category correlation
        coefficient, Computational Biology and Chemistry 28 (2004) 367-374.
        E. B. Wilson, Probable inference, the law of succession, and statistical inference,
        Journal of the American Statistical Association 22 (1927) 209-212.
        B. Efron, Better bootstrap confidence intervals, ibid. 82 (1987) 171-185.
        E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, Comparing the areas under two or more
        correlated receiver operating characteristic curves: a nonparametric approach, Biometrics
        44 (1988) 837-845.
        C. B. Begg and R. A. Greenes, Assessment of diagnostic tests when disease verification is
        subject to selection bias, Biometrics 39 (1983) 207-215.
        D. L. Simel, G. P. Samsa and D. B. Matchar, Likelihood ratios with confidence: sample size
        estimation for diagnostic test studies, Journal of Clinical Epidemiology 44 (1991) 763-770.
        J. A. Hanley and B. J. McNeil, The meaning and use of the area under a receiver operating
        characteristic (ROC) curve, Radiology 143 (1982) 29-36.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame(
        ...     {
        ...         "country": ["DE", "DE", "DE", "DE", "FR", "FR", "FR", None],
        ...         "gold": ["cat", "cat", "dog", "dog", "cat", "dog", "cow", "cat"],
        ...         "pred": ["cat", "cat", "dog", "cat", "cat", "dog", None, "cat"],
        ...     }
        ... )
        >>> log.mcc.by("country")
        shape: (3, 4)
        ┌─────────┬─────┬─────────┬────────┐
        │ country ┆ n   ┆ mcc     ┆ n_null │
        │ ---     ┆ --- ┆ ---     ┆ ---    │
        │ str     ┆ i64 ┆ f64     ┆ i64    │
        ╞═════════╪═════╪═════════╪════════╡
        │ null    ┆ 1   ┆ 0.0     ┆ 0      │
        │ DE      ┆ 4   ┆ 0.57735 ┆ 0      │
        │ FR      ┆ 2   ┆ 1.0     ┆ 1      │
        └─────────┴─────┴─────────┴────────┘
        >>> counts = pl.DataFrame({"gold": [1, 1, 0, 0], "pred": [1, 0, 1, 0], "n": [40, 9, 5, 46]})
        >>> counts.mcc(weight="n").by(ci=0.95).columns
        ['n', 'mcc', 'mcc_low', 'mcc_high', 'mcc_se', 'n_null']
        >>> scored = pl.DataFrame({"gold": [True, True, False, False], "p": [0.9, 0.4, 0.4, 0.1]})
        >>> scored.mcc(score="p").by(metrics=["roc_auc", "brier"])
        shape: (1, 4)
        ┌─────┬─────────┬───────┬────────┐
        │ n   ┆ roc_auc ┆ brier ┆ n_null │
        │ --- ┆ ---     ┆ ---   ┆ ---    │
        │ i64 ┆ f64     ┆ f64   ┆ i64    │
        ╞═════╪═════════╪═══════╪════════╡
        │ 4   ┆ 0.875   ┆ 0.135 ┆ 0      │
        └─────┴─────────┴───────┴────────┘

    Command line::

        polars-mcc by logs/ --by country --by device --ci 0.95 --filter "day > DATE '2026-03-01'"
    """
    if not isinstance(method, Bootstrap):
        check_choice("method", method, Method, "Bootstrap(...)")
    check_interval(ci, method)
    asked = registry.find_metrics(metrics, log.roles.label_dtype)
    if ci is not None and isinstance(method, Bootstrap):
        reason = "its labelled rows are drawn by their prediction, which a bootstrap does not do"
        call = "by(..., method=Bootstrap(...))"
        log.roles.check_without(call, reason, "reweight")
        if of_log := [metric.name for metric in asked if metric.is_log]:
            raise ValueError(
                f"metric '{of_log[0]}' is infinite in some draws of a bootstrap: leave out method= "
                "for its interval on the log scale"
            )
        sides_of(log, registry.role_of(asked))  # An error, unless a row has one label or score.
    return log.in_kind(of_metrics(log, keys, asked, ci, method, long=long))


def of_metrics(
    log: Described[Any],
    keys: Sequence[IntoKey],
    asked: Sequence[Metric],
    ci: float | None,
    method: Method | Resampling[Any] = defaults.METHOD,
    *,
    added: Sequence[str] = (),
    long: bool = False,
) -> pl.LazyFrame:
    """The answer of `by`. Another verb may add columns to it later: `added` has their names.

    Metrics of labels and metrics of scores need a count of the log each, of the same slices.
    """
    is_per_class, shown = bool(log.roles.score_labels), [metric.name for metric in asked]
    shown = shown if ci is None else interval_options.with_limit_columns(shown)
    taken = ["n", *shown, "n_null", *([] if ci is None else ["n_clusters"]), *added]
    kinds: dict[tuple[Role, OfRow | None], list[Metric]] = {}
    # Labels are first: a model has the name of its column of labels, if it has one.
    for metric in sorted(asked, key=lambda metric: metric.is_of_scores):
        of_row = metric.of_row_in(log.roles)
        if is_per_class and metric.is_of_scores and of_row is None and ci is not None:
            raise ValueError(
                f"metric '{metric.name}' of a score per class is a mean over classes, which has no "
                "interval here: ask for it without ci, or for one class, as in log(score='p_cat', "
                "positive='cat')"
            )
        kinds.setdefault((metric.role, of_row), []).append(metric)
    roles = {role for role, _ in kinds}
    scored: list[tuple[SlicedLog, pl.LazyFrame]] = []
    for (role, of_row), metrics in kinds.items():
        sides = sides_of(
            log,
            role,
            several=ci is None,
            of_row=of_row,
            by_gold_class=any(metric.mean_over == "pairs of classes" for metric in metrics),
            both=len(roles) > 1,
        )
        sliced = cut(sides, keys, taken=taken, clusters=ci is not None, long=long)
        if sliced.is_multilabel:
            registry.check_multilabel(metrics)
        scored.append((sliced, _scored(log, sliced, metrics, ci, method)))
    (sliced, slices), *of_scores = scored
    for log_of_scores, more_columns in of_scores:
        if sliced.has_models:  # The first score is of the first model, and so on.
            models = dict(zip(log_of_scores.models, sliced.models, strict=True))
            model = pl.col(MODEL).cast(pl.String).replace_strict(models).cast(sliced.model_dtype)
            more_columns = more_columns.with_columns(model)  # noqa: PLW2901
        more_columns = more_columns.drop("n", "n_clusters", *sliced.unscored, strict=False)  # noqa: PLW2901
        slices = sliced.beside(slices, more_columns)
    sizes = ["n", *(["n_clusters"] if ci is not None and sliced.has_clusters else [])]
    return sliced.answer(slices.select(*sliced.slice, *sizes, *shown, *sliced.unscored))


def _scored(
    log: Described[Any],
    sliced: SlicedLog,
    asked: Sequence[Metric],
    ci: float | None,
    method: Method | Resampling[Any],
) -> pl.LazyFrame:
    """The metrics of each slice, all of labels or all of scores; with `ci`, their intervals."""
    positive = registry.positive_class(asked, log.roles.positive, sliced.label_dtype)
    sliced = exact_scores.with_labels_for(sliced, asked)
    if ci is not None and isinstance(method, Bootstrap):
        from polars_mcc._intervals.bootstrap import resampled  # noqa: PLC0415 - NumPy, for it alone

        _check_resampling(log, sliced)
        options = IntervalOptions(ci, metrics=asked, positive=positive)
        return resampled(sliced, options, method).lazy()
    if ci is not None:
        options = IntervalOptions(ci, cast("Method", method), asked, positive)

        def infer(counted: pl.DataFrame) -> pl.DataFrame:
            from polars_mcc._intervals.scores_of_arrays import estimate  # noqa: PLC0415 - NumPy, for it alone

            return interval_options.within_range(
                estimate(sliced, counted, options).scores, interval_options.ranges_of(asked)
            )

        return inferred(log, sliced, pairs(sliced), infer, metrics=asked)
    if sliced.nulls != "reweight" and not any(metric.needs_pairs for metric in asked):
        return exact_scores.measure(sliced, classes_of(sliced), asked, positive=positive)
    cells = pairs(sliced).cache()  # The plan uses them twice.
    if CLASS in sliced.pair_splits:
        return exact_scores.means_over_classes(sliced, cells, asked, positive)
    return exact_scores.measure_pairs(sliced, cells, asked, positive=positive)


def _check_resampling(log: Described[FrameT], sliced: SlicedLog) -> None:
    if log.roles.is_lazy:
        columns = ", ".join(map(repr, [*sliced.keys, *(["model"] if sliced.has_models else [])]))
        raise TypeError(
            "a bootstrap needs a DataFrame, not a lazy query: collect the counts, "
            "lf.mcc.counts(...).collect(), then resample the counts with weight='n'"
            f"{f' and the keys {columns}' if columns else ''}"
        )
    if not sliced.is_frequency or sliced.numbers.count != pl.Int64:
        raise ValueError(
            "a bootstrap draws whole rows, or whole clusters, so it cannot use a sample_weight or "
            "a Float64 weight: use 'score', 'fisher' or 'wald'"
        )


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

    Command line::

        polars-mcc score logs/ --metric mcc --metric f1_macro --format json
    """
    return by(log, metrics=metrics, ci=ci, method=method)

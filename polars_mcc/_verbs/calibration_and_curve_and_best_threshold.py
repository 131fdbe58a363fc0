"""Verbs of scores: `calibration`, the rates of bins; `curve` and `best_threshold`, by threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import check_at_least, check_level
from polars_mcc._base.cuts_of_numbers import Number
from polars_mcc._base.message_parts import option, refused
from polars_mcc._comparisons.gate_rules_and_verdicts import required
from polars_mcc._counts.class_counts import classes_of_pairs
from polars_mcc._counts.count_rows import without_clusters
from polars_mcc._counts.pair_counts import pairs
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._frame.columns import FrameT
from polars_mcc._frame.log_options import Described
from polars_mcc._intervals.interval_options import inferred
from polars_mcc._keys.any_key import IntoKey, check_plain
from polars_mcc._metrics import registry
from polars_mcc._metrics.exact_scores import measure
from polars_mcc._metrics.registry import IntoMetric, IntoMetrics
from polars_mcc._metrics.thresholds import (
    COUNTS,
    ScoreThresholds,
    best_columns,
    check_of_counts,
    curve_columns,
)


def calibration(
    log: Described[FrameT],
    *keys: IntoKey,
    bins: int | None = defaults.BINS,
    ci: float = defaults.LEVEL,
) -> FrameT:
    """Compare scores with the rate of positive rows, in bins of each slice: the reliability table.

    The log must have `score`, and also `positive` if gold is not Boolean. Scores are probabilities,
    from 0 to 1. If they are calibrated, the rate of positive rows in a bin is near the mean score:
    of the rows with scores near 0.8, 80 % are positive. With 10 bins, the metrics "ece" and
    "calibration_error" are of this table; "ece(15)" is of 15 bins.

    Args:
        *keys: The keys to group by, as in `by`.
        bins: The number of bins of a slice. The rows of a slice are sorted by score and cut into
            bins of equal size. Equal scores are in one bin, that of their middle, so there may be
            fewer bins. scikit-learn's `calibration_curve(strategy="quantile")` has the same bins if
            all scores differ and `bins` divides the number of rows: see the notes. None: a bin per
            score, of any numbers, such as deciles from 1 to 10: the rate of positive rows at each.
        ci: The confidence level of the interval of each rate.

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, sorted by the keys and the bin, with the
        keys, `model` if there are several scores, and

        - `bin` (Int64): the number of the bin in its slice, from 1. Low scores come first;
        - `score_min`, `score_max` (Float64): the least and the largest score of the bin;
        - `n` (Int64; Float64 for float weights): the rows of the bin;
        - `n_clusters` (Int64), if the log has clusters: the number of clusters in the bin;
        - `score_mean`, `rate` (Float64): the mean score, and the share of positive rows;
        - `rate_low`, `rate_high` (Float64): Wilson's interval of the rate. It is short, also in
          small bins: shorter than the exact interval. Clusters and sample weights widen it, as
          in `by`;
        - `n_null` (dtype of `n`): the rows of the slice that are not scored: the label, score or
          weight is null, or the score is NaN.

        A slice without scored rows has one row, with a null bin.

    Notes:
        Of n rows in the order of their scores, r rows have an equal score, and f rows a lower one.
        They are in bin ⌊(f + r/2) · bins / n⌋, counted from 0. In scikit-learn the edges of bins
        are percentiles, interpolated between rows, and a score at an edge is below it. So these
        rows are in the bin of their first row: as many as there are k from 1 to bins - 1 with
        k (n - 1) / bins < f. scikit-learn takes no weights here.

    Raises:
        ValueError: The log has no score; gold is not Boolean and there is no `positive`; `bins` is
            below 1; `ci` is not between 0 and 1; the log has `nulls="label"`.
        polars.exceptions.InvalidOperationError: On `collect`: a score is not between 0 and 1, and
            `bins` is not None.

    The errors of `by` are raised too.

    References:
        M. H. DeGroot and S. E. Fienberg, The comparison and evaluation of forecasters, The
        Statistician 32 (1983) 12-22.
        E. B. Wilson, Probable inference, the law of succession, and statistical inference,
        Journal of the American Statistical Association 22 (1927) 209-212.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame(
        ...     {"gold": [True, False, False, True], "score": [0.8, 0.3, 0.3, 0.6]}
        ... )
        >>> log.mcc(score="score").calibration(bins=2).select("bin", "n", "score_mean", "rate")
        shape: (2, 4)
        ┌─────┬─────┬────────────┬──────┐
        │ bin ┆ n   ┆ score_mean ┆ rate │
        │ --- ┆ --- ┆ ---        ┆ ---  │
        │ i64 ┆ i64 ┆ f64        ┆ f64  │
        ╞═════╪═════╪════════════╪══════╡
        │ 1   ┆ 2   ┆ 0.3        ┆ 0.0  │
        │ 2   ┆ 2   ┆ 0.7        ┆ 1.0  │
        └─────┴─────┴────────────┴──────┘

    Command line::

        polars-mcc calibration logs/ --score probability --positive fraud --by country --bins 5
    """
    if bins is not None:
        check_at_least("bins", bins, 1)
    check_level(ci)
    log.roles.check_without("calibration", "a score has two classes", "nulls")
    numbers = ["n", *([] if log.roles.cluster is None else ["n_clusters"])]
    columns = ["bin", "score_min", "score_max", *numbers]
    columns += ["score_mean", "rate", "rate_low", "rate_high", "n_null"]
    sliced = cut(sides_of(log, "score"), keys, taken=columns, clusters=True)

    def infer(cells: pl.DataFrame) -> pl.DataFrame:
        from polars_mcc._intervals.class_and_calibration_intervals import rates_of_bins  # noqa: PLC0415 - NumPy

        scored = without_clusters(sliced, cells.lazy())
        slices = measure(sliced, classes_of_pairs(sliced, scored), [], positive=pl.col("label"))
        table = sliced.beside(
            slices.drop("n"), rates_of_bins(sliced, scored, cells, bins, ci).lazy()
        )
        answer = table.with_columns(
            pl.col(numbers).fill_null(0),  # A slice without scored rows has no bin.
            bin=sliced.within_slice(pl.col("bin").rank("dense")).cast(pl.Int64),
        ).with_columns(n=sliced.numbers.as_count(pl.col("n")))
        return answer.select(*sliced.slice, *columns, *sliced.unscored[1:]).collect()

    answer = inferred(log, sliced, pairs(sliced), infer)
    return log.in_kind(sliced.answer(answer, "bin"))


def curve(
    log: Described[FrameT],
    *keys: IntoKey,
    metrics: IntoMetrics = defaults.CURVE_METRICS,
    thresholds: int | Sequence[Number] | None = None,
) -> FrameT:
    """Compute MCC, F1 and other metrics at every threshold of a model score, per slice.

    The log must have `score`, and also `positive` if gold is not Boolean. A row is predicted
    positive if its score is at least the threshold. One scan counts the rows by slice, gold and
    score. The counts at each threshold are cumulative sums of these counts, and the metrics are as
    exact as in `by`.

    Args:
        *keys: The keys to group by, as in `by`, but no windows.
        metrics: The metrics at each threshold: names of `metrics()` that need only the counts of
            two classes, not each class or pair.
        thresholds: The thresholds. One integer: at most this many, at the quantiles of the scores
            of all rows, the same for all slices, and one above all scores. Several numbers: these;
            memory then does not grow with the number of distinct scores. A float column rounds them
            as its own values; integers and decimals are compared exactly. None: every distinct
            score of the slice, and one above all scores.

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, sorted by the keys and the threshold, with
        the keys, `model` if there are several scores, and

        - `threshold`: dtype of the score, but Int64 for narrower integers, and decimals have 38
          digits. If thresholds are listed: Float64, or integers or decimals if Float64 would round
          one. The last threshold is above all scores, unless thresholds are listed, and no row is
          predicted positive: infinity for floats, else one unit more than the largest score of
          all rows. A score that is infinite, or the largest of 64 bits or more, reaches it;
        - `n`, `tp`, `fp`, `fn`, `tn` (Int64; Float64 for float weights): the rows scored, then the
          true positives, false positives, false negatives and true negatives;
        - `mcc` (Matthews 1975), `f1` = 2·tp / (2·tp + fp + fn), or else the `metrics` (Float64).
          The MCC-F1 curve of Cao, Chicco and Hoffman has f1 as x and (mcc + 1) / 2 as y. If all
          rows, or no rows, are predicted positive, `zero_division` of the log replaces 0/0;
        - `n_null`: the rows not scored: the label, score or weight is null, or the score is NaN.

        A slice without scored rows has one row, with a null threshold.

    Raises:
        ValueError: The log has no score; gold is not Boolean and there is no `positive`;
            thresholds are not in rising order; the log has `nulls="label"`; a key is a window; a
            metric needs more than the counts of two classes.

    The errors of `by` are raised too.

    References:
        Chang Cao, Davide Chicco and Michael M. Hoffman, The MCC-F1 curve, arXiv 2006.11278 (2020).

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": [True, True, False], "score": [0.9, 0.6, 0.7]})
        >>> log.mcc(score="score").curve().select("threshold", "tp", "fp", "mcc")
        shape: (4, 4)
        ┌───────────┬─────┬─────┬──────┐
        │ threshold ┆ tp  ┆ fp  ┆ mcc  │
        │ ---       ┆ --- ┆ --- ┆ ---  │
        │ f64       ┆ i64 ┆ i64 ┆ f64  │
        ╞═══════════╪═════╪═════╪══════╡
        │ 0.6       ┆ 2   ┆ 1   ┆ 0.0  │
        │ 0.7       ┆ 1   ┆ 1   ┆ -0.5 │
        │ 0.9       ┆ 1   ┆ 0   ┆ 0.5  │
        │ inf       ┆ 0   ┆ 0   ┆ 0.0  │
        └───────────┴─────┴─────┴──────┘

    Command line::

        polars-mcc curve logs/ --score probability --by country --thresholds 100
    """
    asked = [
        metric
        for metric in registry.find_metrics(metrics, log.roles.label_dtype)
        if metric.name not in COUNTS
    ]
    check_of_counts(asked)
    cuts = thresholds_of(log, "curve", keys, curve_columns(asked), thresholds)
    return log.in_kind(cuts.log.answer(cuts.curve(asked), "threshold"))


def thresholds_of(
    log: Described[Any],
    verb: str,
    keys: Sequence[IntoKey],
    taken: Sequence[str],
    thresholds: int | Sequence[Number] | None,
) -> ScoreThresholds:
    """The log with its thresholds, after the checks that `curve` and `best_threshold` share."""
    check_plain(
        keys,
        verb,
        "thresholds are of all rows, but windows overlap; slice by dt.truncate(...)",
        sets=True,
    )
    log.roles.check_without(verb, "a score has two classes", "nulls")
    return ScoreThresholds.of(cut(sides_of(log, "score"), keys, taken=taken), thresholds)


def best_threshold(
    log: Described[FrameT],
    *keys: IntoKey,
    metric: IntoMetric = defaults.METRIC,
    min: Mapping[str, float] | None = None,  # noqa: A002 - as a user says it
    max: Mapping[str, float] | None = None,  # noqa: A002 - likewise
    thresholds: int | Sequence[Number] | None = None,
) -> FrameT:
    """Find the threshold with the best MCC (or another metric), per slice and for all rows.

    Args:
        *keys: The keys to group by, as in `by`, but no windows.
        metric: The metric to optimize: a name of `metrics()` that needs only the counts of two
            classes. It is minimized if less of it is better.
        min: Metrics that must not be lower, as in `min={"ppv": 0.9}`: the best threshold is taken
            of those that keep them. 0/0 counts as 0.
        max: Metrics that must not be higher, as in `max={"fpr": 0.05}`.
        thresholds: The thresholds to try. One integer: at most this many, at the quantiles of the
            scores of all rows, the same for all slices, and one above all scores. Several numbers:
            these. None: every distinct score of the slice, and one above all scores.

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, sorted by the keys, with one row per slice,
        the keys, `model` if there are several scores, and

        - `n`: the rows scored;
        - `threshold`: the best threshold of the slice, the largest if several are best, with the
          dtype that it has in `curve`. It is above all scores if it is best to predict no row
          positive: infinity for floats. And `mcc` (with the name of the metric), its score. 0/0
          counts as 0, whatever the `zero_division` of the log is. Null if the slice lacks the gold
          rows that a metric needs, as MCC needs two classes, or if no threshold keeps `min` and
          `max`;
        - with `min` or `max`, each metric that they name, such as `fpr`: its value there;
        - `shared_threshold`: the best threshold of all rows together, which keep `min` and `max`
          together: a slice may miss them there;
        - `mcc_shared`, and such as `fpr_shared`: the values of the slice at the shared threshold;
          `loss`: how much worse its score is than the best, and 0 if it is better, as it may be
          where the slice misses `min` or `max`;
        - `verdict` (String), with `min` or `max`: "kept"; "no threshold keeps fpr ≤ 0.05"; "no
          shared threshold keeps ..."; "the shared threshold does not keep ..."; or "not judged", as
          the slice lacks the gold rows that a metric needs;
        - `n_null`: the rows not scored.

    The best of many thresholds scores better on the rows that chose it than on new rows. Choose the
    threshold on one part of the log, and score it on another part.

    Raises:
        ValueError: `min` or `max` is no mapping, or a bound is outside the range of its metric; two
            metrics have one name.

    The errors of `curve` are raised too.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> tumours = pl.read_parquet("data/breast_cancer.parquet")
        >>> tumours.mcc(score="radius").best_threshold("fold").drop("n", "n_null").head(2)
        shape: (2, 6)
        ┌──────┬───────────┬──────────┬──────────────────┬────────────┬──────────┐
        │ fold ┆ threshold ┆ mcc      ┆ shared_threshold ┆ mcc_shared ┆ loss     │
        │ ---  ┆ ---       ┆ ---      ┆ ---              ┆ ---        ┆ ---      │
        │ i8   ┆ f64       ┆ f64      ┆ f64              ┆ f64        ┆ f64      │
        ╞══════╪═══════════╪══════════╪══════════════════╪════════════╪══════════╡
        │ 0    ┆ 15.06     ┆ 0.737584 ┆ 15.05            ┆ 0.737584   ┆ 0.0      │
        │ 1    ┆ 15.46     ┆ 0.795099 ┆ 15.05            ┆ 0.774777   ┆ 0.020322 │
        └──────┴───────────┴──────────┴──────────────────┴────────────┴──────────┘

    Command line::

        polars-mcc best-threshold logs/ --score probability --by country
    """
    labels = log.roles.label_dtype
    chosen = registry.find_metric(metric, labels)
    for name, bound in (("min", min), ("max", max)):
        if not (bound is None or isinstance(bound, Mapping)):
            raise refused(name, " says which metric to keep, as in ", option(name, {"ppv": 0.9}))
    rules = [*required(metric, "min", min, labels), *required(metric, "max", max, labels)]
    asked = {(one.name, one.formula): one for one in (chosen, *(rule.metric for rule in rules))}
    metrics = [*asked.values()]
    check_of_counts(metrics)
    signs = {"min": "≥", "max": "≤"}
    kept = {f"{rule.value} {signs[rule.bound]} {rule.given}": ~rule.misses() for rule in rules}
    cuts = thresholds_of(log, "best_threshold", keys, best_columns(metrics, kept), thresholds)
    return log.in_kind(cuts.log.answer(cuts.best(metrics, kept)))

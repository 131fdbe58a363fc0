"""`classes`: one row per class of every slice."""

from __future__ import annotations

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import Method, check_choice, check_interval
from polars_mcc._counts.class_counts import classes_of, classes_of_pairs
from polars_mcc._counts.count_rows import without_clusters
from polars_mcc._counts.pair_counts import pairs
from polars_mcc._counts.reweighted_pairs import reweighted
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._counts.sliced_log import SlicedLog
from polars_mcc._frame.columns import FrameT
from polars_mcc._frame.log_options import Described
from polars_mcc._intervals.interval_options import (
    IntervalOptions,
    inferred,
    with_limit_columns,
    within_range,
)
from polars_mcc._keys.any_key import IntoKey
from polars_mcc._metrics.exact_scores import with_sizes
from polars_mcc._metrics.mcc_and_one_vs_rest import CLASS_RANGES, COLUMNS, class_scores


def classes(
    log: Described[FrameT],
    *keys: IntoKey,
    ci: float | None = None,
    method: Method = defaults.METHOD,
) -> FrameT:
    """Score every class of every slice, one-vs-rest: precision, recall, F1, MCC and more.

    Args:
        *keys: The keys to group by, as in `by`.
        ci: The confidence level of an interval for each score of each class, such as 0.95. None:
            no interval.
        method: The kind of interval: "score", "fisher" or "wald", as in `by`.

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, sorted by the keys and the label. It has one
        row per slice and per label that is gold or predicted in the slice, with the columns

        - the keys, `model` if the log has several models, and `label`;
        - `support`, `predicted`, `hits` (Int64; Float64 for float weights): how often the
          label is gold, is predicted, and is both (true positives). With `nulls="reweight"` they
          are estimates for all rows with a prediction, and Float64;
        - `precision` = hits / predicted; `recall` = hits / support; `specificity` = true
          negatives / rows with another gold label; `f1` = 2 hits / (support + predicted); `mcc`,
          the binary MCC of this label against all others (Matthews 1975); `informedness` =
          recall + specificity - 1; `markedness` = precision + NPV - 1 (Powers 2011,
          arXiv 2010.16061); `npv` = true negatives / rows with another prediction; `fpr` =
          1 - specificity; `fnr` = 1 - recall; `jaccard` = hits / (support + predicted - hits)
          (Jaccard 1912); all Float64. `zero_division` of the log replaces each 0/0, but recall and
          `fnr` without gold rows of the label, and specificity and `fpr` without other gold rows,
          are null;
        - with `ci`, after each of these scores, its interval and standard error: `recall_low`,
          `recall_high`, `recall_se` (Float64);
        - `n_clusters` (Int64), if the log has clusters and `ci` is given; `n` and `n_null`: the
          rows of the slice that are scored, and that are not.

        A slice without scored rows has no classes; `by` shows it. Neither has a slice with
        `nulls="reweight"` if one of its predictions has no labelled row.

    The errors of `by` are raised.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": ["a", "a", "b", "c"], "pred": ["a", "b", "b", "a"]})
        >>> log.mcc.classes().select("label", "support", "precision", "recall", "mcc")
        shape: (3, 5)
        ┌───────┬─────────┬───────────┬────────┬─────────┐
        │ label ┆ support ┆ precision ┆ recall ┆ mcc     │
        │ ---   ┆ ---     ┆ ---       ┆ ---    ┆ ---     │
        │ str   ┆ i64     ┆ f64       ┆ f64    ┆ f64     │
        ╞═══════╪═════════╪═══════════╪════════╪═════════╡
        │ a     ┆ 2       ┆ 0.5       ┆ 0.5    ┆ 0.0     │
        │ b     ┆ 1       ┆ 0.5       ┆ 1.0    ┆ 0.57735 │
        │ c     ┆ 1       ┆ 0.0       ┆ 0.0    ┆ 0.0     │
        └───────┴─────────┴───────────┴────────┴─────────┘

        >>> log.mcc.classes(ci=0.95).select("label", "recall", "recall_low", "recall_high")
        shape: (3, 4)
        ┌───────┬────────┬────────────┬─────────────┐
        │ label ┆ recall ┆ recall_low ┆ recall_high │
        │ ---   ┆ ---    ┆ ---        ┆ ---         │
        │ str   ┆ f64    ┆ f64        ┆ f64         │
        ╞═══════╪════════╪════════════╪═════════════╡
        │ a     ┆ 0.5    ┆ 0.094531   ┆ 0.905469    │
        │ b     ┆ 1.0    ┆ 0.206549   ┆ 1.0         │
        │ c     ┆ 0.0    ┆ 0.0        ┆ 0.793451    │
        └───────┴────────┴────────────┴─────────────┘

    Command line::

        polars-mcc classes logs/ --by country --ci 0.95 --format csv
    """
    check_choice("method", method, Method)
    check_interval(ci, method)
    if ci is None:
        sliced = cut(sides_of(log, several=True), keys, taken=COLUMNS)
        if sliced.nulls == "reweight":
            scores = _scored_pairs(sliced, pairs(sliced).cache())
        else:
            scores = _scored(sliced, classes_of(sliced))
        return log.in_kind(sliced.answer(scores, "label"))
    columns = ["label", "support", "predicted", "hits", *with_limit_columns(CLASS_RANGES)]
    taken = [*columns, "n_clusters", "n", "n_null"]
    sliced = cut(sides_of(log), keys, taken=taken, clusters=True)
    columns += ["n_clusters", "n"] if sliced.has_clusters else ["n"]

    def infer(cells: pl.DataFrame) -> pl.DataFrame:
        from polars_mcc._intervals.class_and_calibration_intervals import class_intervals  # noqa: PLC0415 - rare

        counted = without_clusters(sliced, cells.lazy()).collect()
        scores = _scored_pairs(sliced, counted.lazy()).collect()
        own, cells_of_rows = reweighted(sliced, cells.lazy())
        intervals = class_intervals(own, cells_of_rows.collect(), IntervalOptions(ci, method))
        both = scores.join(intervals, on=[*sliced.slice, "label"], how="left", nulls_equal=True)
        shown = both.select(*sliced.slice, *columns, *sliced.unscored)
        return within_range(shown, CLASS_RANGES)

    answer = inferred(log, sliced, pairs(sliced), infer)
    return log.in_kind(sliced.answer(answer, "label"))


def _scored_pairs(log: SlicedLog, counted: pl.LazyFrame) -> pl.LazyFrame:
    """Score each class of counted pairs."""
    log, counted = reweighted(log, counted)
    return with_sizes(log, counted, _scored(log, classes_of_pairs(log, counted)))


def _scored(log: SlicedLog, classes: pl.LazyFrame) -> pl.LazyFrame:
    """Score each class. A rate of gold rows is null without them."""
    support, n = pl.col("support"), pl.col("n")
    of_gold, of_rest = pl.col("recall", "fnr"), pl.col("specificity", "fpr")
    return class_scores(log, classes).with_columns(
        pl.when(support > 0).then(of_gold), pl.when(support < n).then(of_rest)
    )

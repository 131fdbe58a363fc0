"""Which rows of an answer have a score that is 0/0, or none."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from polars_mcc._frame.columns import as_expr
from polars_mcc._metrics import registry
from polars_mcc._metrics.metric_type import Metric

_VALUE_OF_0_0 = {
    "mcc_normalized": 0.5,
    **dict.fromkeys(("fdr", "for", "fpr_macro", "fpr_micro", "fpr_weighted", "lr_neg"), 1.0),
}
"""What stands for 0/0 by default, if it is not 0."""
COLLAPSED, UNSCORED, INFINITE = "×", "○", "∞"
"""The marks of a chart: at the score of a collapsed slice, and apart from all scores; and of a
score that no axis has."""


def where_undefined(result: pl.DataFrame, metric: str, counts_as: float | None = None) -> pl.Expr:
    """Whether a scored row has no score: it is null, NaN, or the value that stands for 0/0.

    That value has no interval, except in the rows of `where_collapsed`. Without intervals, it looks
    like a score: then every 0 of MCC and its kin counts as 0/0, and no 0 of a rate.

    `counts_as` is the value that stands for 0/0; None: the default of the metric.
    """
    score, built_in = as_expr(metric).cast(pl.Float64), _built_in(metric)
    at_0 = score == (_VALUE_OF_0_0.get(metric, 0.0) if counts_as is None else counts_as)
    if (
        built_in is None
        or not built_in.undefined
        or built_in.given == "gold"
        or built_in.no_interval_at is not None  # It is a score all the same.
    ):
        at_0 = pl.lit(value=False)
    elif _has_intervals(result, metric):
        at_0 &= as_expr(f"{metric}_low").is_null()
        if "n_clusters" in result.columns:  # One cluster has no interval.
            at_0 &= pl.col("n_clusters") > 1
    elif built_in.is_log or not built_in.is_of_two:
        at_0 = pl.lit(value=False)
    no_score = score.is_null() | score.is_nan()
    return (no_score | at_0.fill_null(value=False)) & (pl.col("n") > 0)


def where_collapsed(result: pl.DataFrame, metric: str) -> pl.Expr:
    """Whether a slice of several gold classes has one predicted class.

    Its MCC is 0/0, with an interval and without a standard error. The interval of a precision is
    its whole range. Without intervals, slices of one gold class and scores of 0 count too.
    """
    score, at_0 = as_expr(metric).cast(pl.Float64), _VALUE_OF_0_0.get(metric, 0.0)
    if not _has_intervals(result, metric):
        return where_undefined(result, metric) & score.is_finite().fill_null(value=False)
    built_in, se = _built_in(metric), f"{metric}_se"
    if built_in is None or built_in.range is None:
        return pl.lit(value=False)
    (least, largest), low, high = built_in.range.numbers, f"{metric}_low", f"{metric}_high"
    is_collapsed = (score == at_0) & as_expr(low).is_not_null()
    if built_in.given == "pred":
        is_collapsed &= (as_expr(low) == least) & (as_expr(high) == largest)
    elif not built_in.is_of_two or least is None or least >= at_0:
        return pl.lit(value=False)
    if se in result.columns:
        is_collapsed &= as_expr(se).is_null()
    return is_collapsed.fill_null(value=False)


def undefined_in_words(result: pl.DataFrame, metric: str, what: str) -> Iterator[tuple[str, str]]:
    """A mark and a sentence on the collapsed rows, and on the rows without a score."""
    is_collapsed, at_0 = where_collapsed(result, metric), f"{_VALUE_OF_0_0.get(metric, 0.0):g}"
    collapse = f"{metric} is {at_0}, or 0/0 (one class only),"
    if _has_intervals(result, metric):
        built_in = _built_in(metric)
        is_rate = built_in is not None and built_in.given == "pred"
        why = "the class is never predicted" if is_rate else "one class is predicted"
        collapse = f"{metric} is {at_0}, as {why},"
    has_no_score = where_undefined(result, metric) & ~is_collapsed
    is_infinite = as_expr(metric).cast(pl.Float64).is_infinite()
    for mark, is_marked, how in (
        (COLLAPSED, is_collapsed, collapse),
        (UNSCORED, has_no_score, f"{metric} is 0/0 (one class only)"),
        (INFINITE, is_infinite, f"{metric} is infinite, and not drawn,"),
    ):
        if n := result.filter(is_marked).height:
            yield mark, f"{how} in {n:,} of {result.height:,} {what}"


def _built_in(metric: str) -> Metric | None:
    named = (built_in for built_in in registry.BUILT_IN_METRICS if built_in.name == metric)
    return next(named, None)


def _has_intervals(result: pl.DataFrame, metric: str) -> bool:
    built_in = _built_in(metric)
    return f"{metric}_low" in result.columns and (built_in is None or not built_in.no_interval)

"""Facts about slices, computed like metrics, that gates judge by and no answer shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from polars_mcc._metrics.mcc_and_one_vs_rest import Col
from polars_mcc._metrics.metric_type import Metric, Sum, Terms, Value

FACT = "polars_mcc:"
"""Begins the names of facts, which no answer shows."""


def fact(name: str, value: Value) -> Metric:
    """A number about each slice, computed like a metric, that no answer shows."""
    return Metric(
        name,
        lambda terms: value(terms).cast(pl.Float64),
        "",
        "",
        None,
        no_interval="it is no score",
    )


def defined(metric: Metric) -> Metric:
    """The fact whether a metric is defined: 1, or 0 where it is 0/0.

    A mean or minimum over classes is 0/0 if the score of each of these classes is. The fact is null
    where the gold rows that the metric needs are missing: no model could change that. A metric of a
    user does not say which gold rows it needs: NaN counts as 0/0, and null is not judged.
    """

    def value(terms: Terms) -> pl.Expr:
        filled, raw = terms.of(metric, 0.0), terms.of(metric, None)
        raw.sums = {**raw.sums, **raw.sums_of(is_defined)}
        filled_value, raw_value = (metric.value(each).cast(pl.Float64) for each in (filled, raw))
        has_gold = metric.has_gold(terms) if metric.has_gold else ~filled_value.is_infinite()
        is_finite = raw_value.is_not_nan() if metric.is_log else raw_value.is_finite()
        return pl.when(has_gold).then(is_finite.fill_null(value=False).cast(pl.Float64))

    is_defined = replace(
        fact(f"{FACT}defined {metric.name}", value),
        classes=metric.classes,
        is_filled=False,
        is_of_scores=metric.is_of_scores,
        of_row=metric.of_row,
        mean_over=metric.mean_over,
    )
    return is_defined


def most_rows(metric: Metric) -> Metric | None:
    """The fact how many rows of a proportion a metric of two or more gold classes may count as.

    The mean of K equal rates of t_k rows varies as a rate of K² / Σ 1/t_k rows. Each t_k is less by
    half a row, but at least half a row. A rate `of_rest` is of s - t_k rows. For two classes of s
    rows, K² / Σ 1/t_k is 2 (s - Σ t_k² / s). MCC and its kin vary about so, with any number of
    classes: four rows less, so that one row of a rare class tells nothing. None: the metric counts
    rows, as recall does.
    """
    name = f"{FACT}most {metric.name}"
    if metric.needs_all_classes:

        def inverse(col: Col) -> pl.Expr:
            rows = col("n") - col("support") if metric.of_rest else col("support")
            return (1 / (rows - 0.5).clip(lower_bound=0.5)).sum()

        classes: Mapping[str, Sum] = {"k": lambda col: col("support").count(), "inverse": inverse}
        rows = fact(name, lambda terms: terms["k"] ** 2 / terms["inverse"])
        return replace(rows, classes=classes, is_of_labelled=True)
    if not metric.is_of_two or metric.is_of_scores:
        return None

    def value(terms: Terms) -> pl.Expr:
        varies = terms.positive.var_gold if metric.is_of_positive else terms.var_gold
        return (2 * varies / terms.rows_squared * terms.n - 4).clip(lower_bound=0)

    return replace(fact(name, value), is_of_labelled=True)

"""Averages of specificity, NPV, FPR, FNR and Jaccard's index over the classes of a slice."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_mcc._metrics.metric_type import (
    ALTMAN,
    FAWCETT,
    JACCARD,
    Metric,
    Range,
    Terms,
    has_two_gold,
)
from polars_mcc._metrics.precision_recall_f_beta import averages


def _float(number: pl.Expr) -> pl.Expr:
    return number.cast(pl.Float64)


def _has_rest(terms: Terms) -> pl.Expr:
    """Whether a class and its rest are gold. Unlike MCC and its kin, a rate of 0 is no 0/0."""
    return has_two_gold(terms)


def _of_rest(metrics: list[Metric], micro_range: Range) -> list[Metric]:
    """Rates of the rows of the rest of each class. The only gold class has no rest."""
    of_rest = [replace(metric, has_gold=_has_rest, of_rest=True) for metric in metrics]
    undefined = "only one class occurs"
    return [
        metric if metric.classes else replace(metric, range=micro_range, undefined=undefined)
        for metric in of_rest
    ]


def _of_errors(metric: Metric) -> Metric:
    """Less is better, and 0/0 is 1 - `zero_division`."""

    def value(terms: Terms) -> pl.Expr:
        return metric.value(terms.of_errors())

    return replace(metric, value=value, less_is_better=True)


# With one label a row, a miss is a false positive of one class, and a true negative of all others.
_LEAST = Range(lambda terms: 1 - 1 / (_float(terms.k) - 1), 1, "[(K - 2)/(K - 1), 1]")
_MOST = Range(0, lambda terms: 1 / (_float(terms.k) - 1), "[0, 1/(K - 1)]")
_OF_MISSES = "with one label a row, {}(s - c) / (K - 1)s"

SPECIFICITY_NPV_JACCARD = [
    *_of_rest(
        averages(
            "specificity",
            "(s - t - p + c) / (s - t)",
            (
                lambda terms: terms.ratio(terms.tn, terms.rest),
                f"Σ(s - t - p + c) / Σ(s - t); {_OF_MISSES.format('1 - ')}",
            ),
            source=ALTMAN,
            needed=("all gold", "all gold", "two gold"),
            in_sklearn=False,
            in_pycm="TNR",
        ),
        _LEAST,
    ),
    *_of_rest(
        # A class that is predicted in all rows has the NPV 0/0.
        averages(
            "npv",
            "(s - t - p + c) / (s - p)",
            (
                lambda terms: terms.ratio(terms.tn, terms.tn + (terms.t - terms.c)),
                f"Σ(s - t - p + c) / Σ(s - p); {_OF_MISSES.format('1 - ')}",
            ),
            source=ALTMAN,
            needed=("all", "all gold", "all"),
            in_sklearn=False,
            in_pycm="NPV",
        ),
        _LEAST,
    ),
    *map(
        _of_errors,
        _of_rest(
            averages(
                "fpr",
                "(p - c) / (s - t)",
                (
                    lambda terms: terms.ratio(terms.p - terms.c, terms.rest),
                    f"Σ(p - c) / Σ(s - t); {_OF_MISSES.format('')}",
                ),
                source=FAWCETT,
                needed=("all gold", "all gold", "two gold"),
                in_sklearn=False,
                in_pycm="FPR",
            ),
            _MOST,
        ),
    ),
    *map(
        _of_errors,
        averages(
            "fnr",
            "(t - c) / t",
            (
                lambda terms: terms.ratio(terms.t - terms.c, terms.t),
                "Σ(t - c) / Σt; with one label a row, the error rate",
            ),
            source="1 - recall",
            of_rows=("micro", "weighted"),
            in_sklearn=False,
            in_pycm="FNR",
        ),
    ),
    *averages(
        "jaccard",
        "c / (t + p - c)",
        (
            lambda terms: terms.ratio(terms.c, terms.t + terms.p - terms.c),
            "Σc / Σ(t + p - c); with one label a row, c / (2s - c)",
        ),
        source=JACCARD,
        of_rows=(),
    ),
]

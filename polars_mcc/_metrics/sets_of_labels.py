"""Metrics of whole sets of labels: how alike the gold set and the predicted set of a row are."""

from __future__ import annotations

import polars as pl

from polars_mcc._metrics.metric_type import JACCARD, RATIO, RIJSBERGEN, Metric, Terms, Value
from polars_mcc._metrics.precision_specificity_jaccard import ACCURACY

LABELS_OF_LOG = "k:log"
_TSOUMAKAS = "Tsoumakas and Katakis 2007, Int. J. Data Warehousing and Mining 3"
_EMPTY = "each row with two empty lists"


class OfLists(Terms):
    """The terms of rows with lists of labels: also sums of `OF_SETS`, and the labels of the log."""


def _mean_of(name: str) -> Value:
    """The mean over rows. Where both sets are empty, they are equal, and other numbers are 0/0."""

    def value(terms: Terms) -> pl.Expr:
        if not isinstance(terms, OfLists):
            return terms.ratio(terms.c, terms.s)
        total, empty, rows = (terms.column(f"sets:{each}") for each in (name, "empty", "filled"))
        at_0 = 1.0 if name == "equal" else terms.zero_division
        if at_0 is not None:
            total, rows = total + empty * at_0, rows + empty
        return terms.ratio(total, rows)

    return value


def _hamming_loss(terms: Terms) -> pl.Expr:
    """The labels that one set has alone, as a share of all that it might have: of one label, two.

    The labels are those of the log, so that slices are compared: in a small slice few of them
    occur, and a mean over these would be larger for that alone.
    """
    labels = terms.column(LABELS_OF_LOG) if isinstance(terms, OfLists) else 2
    wrong = terms.t + terms.p - 2 * terms.c
    return terms.of_errors().ratio(wrong, terms.s.cast(pl.Float64) * labels)


_LISTED: list[tuple[str, Value, str, str, str, tuple[str, ...]]] = [
    (
        "exact_match",
        _mean_of("equal"),
        f"the share of rows whose two lists have the same labels; {ACCURACY}",
        _TSOUMAKAS,
        "",
        ("scikit-learn: accuracy_score",),
    ),
    (
        "jaccard_samples",
        _mean_of("jaccard"),
        f"the mean over rows of c / (t + p - c), the labels of the row; {ACCURACY}",
        JACCARD,
        _EMPTY,
        (),
    ),
    (
        "f1_samples",
        _mean_of("f1"),
        f"the mean over rows of 2c / (t + p), the labels of the row; {ACCURACY}",
        RIJSBERGEN,
        _EMPTY,
        (),
    ),
    (
        "hamming_loss",
        _hamming_loss,
        "Σ(t + p - 2c) / Ls, L the labels that occur in the log; with one label a row, (s - c) / s",
        _TSOUMAKAS,
        "no label occurs",
        ("scikit-learn: hamming_loss", "PyCM: HammingLoss"),
    ),
]
SETS_OF_LABELS = [
    Metric(
        *(name, value, formula, source, RATIO, undefined, peers),
        less_is_better=value is _hamming_loss,
        multilabel=True,
        is_of_rows=True,
    )
    for name, value, formula, source, undefined, peers in _LISTED
]

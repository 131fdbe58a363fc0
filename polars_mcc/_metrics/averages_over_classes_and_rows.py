"""Averages over classes, of precision, recall, Jaccard, …; and over rows with lists of labels."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import polars as pl

from polars_mcc._metrics import metric_type
from polars_mcc._metrics.mcc_and_one_vs_rest import ERRORS
from polars_mcc._metrics.metric_type import Metric, Needed, Range, Sum, Terms, Value

ACCURACY = "with one label a row, the accuracy"
_IN_SKLEARN = {"precision", "recall", "f1", "jaccard"}


def _has_rest(terms: Terms) -> pl.Expr:
    """Whether a class and its rest are gold. Unlike MCC and its kin, a rate of 0 is no 0/0."""
    return metric_type.has_two_gold(terms)


def averages(
    name: str,
    formula: str,
    formula_of_all: str,
    source: str = metric_type.RIJSBERGEN,
    *,
    needed: tuple[Needed, Needed, Needed] = ("all gold", "any", "any"),
    of_rows: Collection[str] = ("micro",),
    of_rest: Range | None = None,
    in_pycm: str = "",
) -> list[Metric]:
    """The averages of a rate of classes: macro, micro and weighted.

    `needed` are the classes that each needs. Those `of_rows` are means over all rows. `of_rest` is
    the range of the micro average of rates of the rest of each class.
    """
    is_error = name in ERRORS

    def of_classes(terms: Terms) -> pl.Expr:
        return metric_type.mean(terms.of_errors() if is_error else terms)

    def of_all(terms: Terms) -> pl.Expr:
        return terms.total.rate(name, terms.zero_division)

    its_mean = f"the mean of {formula}"
    macro, weighted = metric_type.sums_of_mean(name), metric_type.sums_of_mean(name, "support")
    kinds: list[tuple[str, Value, str, Mapping[str, Sum]]] = [
        ("macro", of_classes, f"{its_mean} over classes that occur", macro),
        ("micro", of_all, formula_of_all, {}),
        ("weighted", of_classes, f"{its_mean}, weighted by t", weighted),
    ]
    # The only gold class has no rest. Unlike MCC and its kin, a rate of 0 is no 0/0.
    undefined_of_all = "only one class occurs" if of_rest else ""
    return [
        Metric(
            f"{name}_{kind}",
            value,
            words,
            source,
            of_rest if of_rest and kind == "micro" else metric_type.RATIO,
            undefined_of_all if kind == "micro" else f"each class where {formula} is 0/0",
            (
                *([f"scikit-learn: {name}_score(average='{kind}')"] if name in _IN_SKLEARN else []),
                *([f"PyCM: {in_pycm}_{kind.title()}"] if in_pycm and kind != "weighted" else []),
            ),
            classes=sums,
            classes_needed=classes_needed,
            multilabel=True,
            is_of_rows=kind in of_rows,
            has_gold=_has_rest if of_rest else None,
            of_rest=of_rest is not None,
            less_is_better=is_error,
        )
        for (kind, value, words, sums), classes_needed in zip(kinds, needed, strict=True)
    ]


# With one label a row, a miss is a false positive of one class, and a true negative of all others.
_LEAST = Range(lambda terms: 1 - 1 / (terms.k.cast(pl.Float64) - 1), 1, "[(K - 2)/(K - 1), 1]")
_MOST = Range(0, lambda terms: 1 / (terms.k.cast(pl.Float64) - 1), "[0, 1/(K - 1)]")
_OF_MISSES = "with one label a row, {}(s - c) / (K - 1)s"

AVERAGES_OVER_CLASSES = [
    # A class that is not predicted has the precision 0/0, however many gold rows it weighs.
    *averages(
        *("precision", "c/p", f"Σc / Σp; {ACCURACY}"),
        needed=("all", "any", "all"),
        in_pycm="PPV",
    ),
    *averages(
        *("recall", "c/t", f"Σc / Σt; {ACCURACY}"),
        of_rows=("micro", "weighted"),
        in_pycm="TPR",
    ),
    *averages("f1", "2c / (t + p)", f"2Σc / (Σt + Σp); {ACCURACY}", in_pycm="F1"),
    *averages(
        "specificity",
        "(s - t - p + c) / (s - t)",
        f"Σ(s - t - p + c) / Σ(s - t); {_OF_MISSES.format('1 - ')}",
        metric_type.ALTMAN,
        needed=("all gold", "all gold", "two gold"),
        in_pycm="TNR",
        of_rest=_LEAST,
    ),
    # A class that is predicted in all rows has the NPV 0/0.
    *averages(
        "npv",
        "(s - t - p + c) / (s - p)",
        f"Σ(s - t - p + c) / Σ(s - p); {_OF_MISSES.format('1 - ')}",
        metric_type.ALTMAN,
        needed=("all", "all gold", "all"),
        in_pycm="NPV",
        of_rest=_LEAST,
    ),
    *averages(
        "fpr",
        "(p - c) / (s - t)",
        f"Σ(p - c) / Σ(s - t); {_OF_MISSES.format('')}",
        metric_type.FAWCETT,
        needed=("all gold", "all gold", "two gold"),
        in_pycm="FPR",
        of_rest=_MOST,
    ),
    *averages(
        "fnr",
        "(t - c) / t",
        "Σ(t - c) / Σt; with one label a row, the error rate",
        "1 - recall",
        of_rows=("micro", "weighted"),
        in_pycm="FNR",
    ),
    *averages(
        "jaccard",
        "c / (t + p - c)",
        "Σc / Σ(t + p - c); with one label a row, c / (2s - c)",
        metric_type.JACCARD,
        of_rows=(),
    ),
]


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
        metric_type.JACCARD,
        _EMPTY,
        (),
    ),
    (
        "f1_samples",
        _mean_of("f1"),
        f"the mean over rows of 2c / (t + p), the labels of the row; {ACCURACY}",
        metric_type.RIJSBERGEN,
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
        *(name, value, formula, source, metric_type.RATIO, undefined, peers),
        less_is_better=value is _hamming_loss,
        multilabel=True,
        is_of_rows=True,
    )
    for name, value, formula, source, undefined, peers in _LISTED
]

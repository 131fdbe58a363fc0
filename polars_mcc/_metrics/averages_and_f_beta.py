"""F_β; averages over classes, of precision, recall, …; and over rows with lists of labels."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import polars as pl

from polars_mcc._base.allowed_values import check_choice, check_number
from polars_mcc._metrics import metric_type
from polars_mcc._metrics.mcc_and_one_vs_rest import ERRORS, Col
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
        *("precision", "c/p", f"Σc / Σp; {ACCURACY}"), needed=("all", "any", "all"), in_pycm="PPV"
    ),
    *averages(
        *("recall", "c/t", f"Σc / Σt; {ACCURACY}"), of_rows=("micro", "weighted"), in_pycm="TPR"
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


Average: TypeAlias = Literal["positive", "macro", "weighted", "micro"]
"""The score of the positive class, a plain or weighted mean over classes, or the score of sums."""

_MOST_BETA = 1e100


def f_beta(beta: float, average: Average = "positive") -> Metric:
    """F_β: the harmonic mean of precision and recall, in which recall weighs β² times as much.

    Args:
        beta: β, above 0. 2 is for misses that matter more, 0.5 for false alarms that do.
        average: "positive": of the positive class. "macro": the mean over the classes that occur.
            "weighted": the mean, weighted by gold rows. "micro": of the sums over classes; with one
            label a row, the accuracy.

    Returns:
        A metric with the name "f2", or "f2_macro", that all verbs take as `metric` or in `metrics`.
        Text is taken too: "f_beta(2)", "f_beta(0.5, macro)".

    Raises:
        ValueError: β is not above 0; `average` has an unknown value.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": list("aaab"), "pred": list("aabb")}).mcc(positive="b")
        >>> log.score(metrics=["f1", "f_beta(2)", polars_mcc.metric.f_beta(0.5)]).row(0)[1:4]
        (0.6666666666666666, 0.8333333333333334, 0.5555555555555556)

    References:
        C. J. van Rijsbergen, Information Retrieval (1979), chapter 7.
    """
    check_number("beta", beta)
    if not 0 < beta < _MOST_BETA:
        raise ValueError(
            f"beta must be above 0 and below {_MOST_BETA:g}, got {beta}; 0 would be ppv, "
            "1 is f1, 2 weighs recall more, 0.5 precision"
        )
    check_choice("average", average, Average)
    squared = float(beta) ** 2

    def of(hits: Any, gold: Any, pred: Any) -> tuple[Any, Any]:  # noqa: ANN401
        return (1 + squared) * hits, squared * gold + pred

    def of_class(col: Col) -> pl.Expr:
        hits, whole = of(col("hits"), col("support"), col("predicted"))
        share: pl.Expr = hits / whole
        return share

    def of_table(terms: Terms) -> pl.Expr:
        table = terms.positive if average == "positive" else terms.total
        return terms.ratio(*of(table.tp, table.gold, table.pred))

    is_mean = average in {"macro", "weighted"}
    formula = f"{1 + squared:g}c / ({squared:g}t + p)"
    metric = Metric(
        f"f{beta:g}_{average}",
        metric_type.mean if is_mean else of_table,
        f"the mean of {formula}" if is_mean else formula,
        metric_type.RIJSBERGEN,
        metric_type.RATIO,
        classes_needed="all gold" if average == "macro" else "any",
        multilabel=True,
        is_of_rows=average == "micro",
    )
    if is_mean:
        weight = "support" if average == "weighted" else None
        return replace(metric, classes=metric_type.sums_of_mean(of_class, weight))
    if average == "micro":
        return metric
    return replace(
        metric.alias(f"f{beta:g}"),
        undefined="tp + fp + fn = 0",
        is_of_positive=True,
        has_gold=metric_type.has_rows("f1"),
    )

"""Averages of precision, recall and F1 over the classes of a slice."""

from __future__ import annotations

from collections.abc import Mapping

from polars_mcc._metrics.metric_type import (
    RATIO,
    RIJSBERGEN,
    Metric,
    Needed,
    Sum,
    Value,
    mean,
    sums_of_mean,
)


def _averages(name: str, column: str, formula: str, micro: tuple[Value, str]) -> list[Metric]:
    """The averages of precision, recall or F1: macro, micro and weighted."""
    value, total = micro
    undefined = f"each class where {formula} is 0/0"
    its_mean = f"the mean of {formula}"
    macro, weighted = sums_of_mean(name), sums_of_mean(name, "support")
    # A class that is not predicted has the precision 0/0, however many gold rows it weighs.
    is_of_pred = name == "precision"
    of_macro: Needed = "all" if is_of_pred else "all gold"
    of_weighted: Needed = "all" if is_of_pred else "any"
    kinds: list[tuple[str, Value, str, str, Mapping[str, Sum], Needed]] = [
        ("macro", mean, f"{its_mean} over classes that occur", undefined, macro, of_macro),
        ("micro", value, f"{total}; with one label a row, the accuracy", "", {}, "any"),
        ("weighted", mean, f"{its_mean}, weighted by t", undefined, weighted, of_weighted),
    ]
    return [
        Metric(
            f"{name}_{kind}",
            value,
            words,
            RIJSBERGEN,
            RATIO,
            undefined,
            (
                f"scikit-learn: {name}_score(average='{kind}')",
                *([] if kind == "weighted" else [f"PyCM: {column}_{kind.title()}"]),
            ),
            classes=sums,
            classes_needed=needed,
            multilabel=True,
            is_of_rows=kind == "micro" or (name, kind) == ("recall", "weighted"),
        )
        for kind, value, words, undefined, sums, needed in kinds
    ]


PRECISION_RECALL_F_BETA = [
    *_averages("precision", "PPV", "c/p", (lambda terms: terms.ratio(terms.c, terms.p), "Σc / Σp")),
    *_averages("recall", "TPR", "c/t", (lambda terms: terms.ratio(terms.c, terms.t), "Σc / Σt")),
    *_averages(
        "f1",
        "F1",
        "2c / (t + p)",
        (lambda terms: terms.ratio(2 * terms.c, terms.t + terms.p), "2Σc / (Σt + Σp)"),
    ),
]

"""Averages of precision, recall and F1 over the classes of a slice."""

from __future__ import annotations

from collections.abc import Collection, Mapping

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

ACCURACY = "with one label a row, the accuracy"


def averages(
    name: str,
    formula: str,
    micro: tuple[Value, str],
    *,
    source: str = RIJSBERGEN,
    needed: tuple[Needed, Needed, Needed] = ("all gold", "any", "any"),
    of_rows: Collection[str] = ("micro",),
    in_sklearn: bool = True,
    in_pycm: str = "",
) -> list[Metric]:
    """The averages of a score of classes: macro, micro and weighted.

    `needed` are the classes that each needs. Those `of_rows` are means over all rows.
    """
    value, total = micro
    undefined = f"each class where {formula} is 0/0"
    its_mean = f"the mean of {formula}"
    macro, weighted = sums_of_mean(name), sums_of_mean(name, "support")
    kinds: list[tuple[str, Value, str, str, Mapping[str, Sum]]] = [
        ("macro", mean, f"{its_mean} over classes that occur", undefined, macro),
        ("micro", value, total, "", {}),
        ("weighted", mean, f"{its_mean}, weighted by t", undefined, weighted),
    ]
    return [
        Metric(
            f"{name}_{kind}",
            value,
            words,
            source,
            RATIO,
            undefined,
            (
                *([f"scikit-learn: {name}_score(average='{kind}')"] if in_sklearn else []),
                *([f"PyCM: {in_pycm}_{kind.title()}"] if in_pycm and kind != "weighted" else []),
            ),
            classes=sums,
            classes_needed=classes_needed,
            multilabel=True,
            is_of_rows=kind in of_rows,
        )
        for (kind, value, words, undefined, sums), classes_needed in zip(kinds, needed, strict=True)
    ]


PRECISION_RECALL_F_BETA = [
    # A class that is not predicted has the precision 0/0, however many gold rows it weighs.
    *averages(
        "precision",
        "c/p",
        (lambda terms: terms.ratio(terms.c, terms.p), f"Σc / Σp; {ACCURACY}"),
        needed=("all", "any", "all"),
        in_pycm="PPV",
    ),
    *averages(
        "recall",
        "c/t",
        (lambda terms: terms.ratio(terms.c, terms.t), f"Σc / Σt; {ACCURACY}"),
        of_rows=("micro", "weighted"),
        in_pycm="TPR",
    ),
    *averages(
        "f1",
        "2c / (t + p)",
        (
            lambda terms: terms.ratio(2 * terms.c, terms.t + terms.p),
            f"2Σc / (Σt + Σp); {ACCURACY}",
        ),
        in_pycm="F1",
    ),
]

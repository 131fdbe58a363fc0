"""The built-in metrics: the expression, formula, source and range of each.

To add a metric, add an entry here, or in `rates` for a metric of the positive class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from polars_mcc._scores.metric import Metric, Needed, Range, Sum, Terms, has_two_gold
from polars_mcc._scores.probabilities import OF_SCORES
from polars_mcc._scores.rates import (
    DAVENPORT,
    FAWCETT,
    KINK,
    OF_POSITIVE,
    RATIO,
    RIJSBERGEN,
    SIGNED,
    Value,
)

_FEWER_CLASSES = pl.min_horizontal(Terms.k_gold, Terms.k_pred).cast(pl.Float64)
_ONE_CLASS = "one gold class, or one predicted class"

_NEAR_0 = "near independence of gold and pred it is biased, and its error is not normal"

_GORODKIN = "Gorodkin 2004, Computational Biology and Chemistry 28"
_POWERS = "Powers 2011, arXiv 2010.16061"
_TAMURA = "Tamura et al. 2025, arXiv 2503.06450"


def _mcc(terms: Terms) -> pl.Expr:
    return terms.correlation(terms.covariance, terms.var_gold, terms.var_pred)


def _mcc_micro(terms: Terms) -> pl.Expr:
    """The MCC of the sum of the one-vs-rest 2 × 2 tables."""
    t_total, p_total = (
        total.cast(pl.Float64) / terms.s.cast(pl.Float64) for total in (terms.t, terms.p)
    )
    cov = (terms.k * terms.hits_times_rows - terms.gold_times_pred) / terms.rows_squared
    return terms.correlation(cov, t_total * (terms.k - t_total), p_total * (terms.k - p_total))


def _mcc_max(terms: Terms) -> pl.Expr:
    """The largest R_K for the marginals of a slice: as many rows as possible are hits.

    With t_k gold rows and p_k predicted rows of class k, min(t_k, p_k) rows can be hits. All
    classes can reach this bound at once: no class has both gold rows and predictions left over,
    so the leftovers can be paired in any way. The denominator depends on the marginals only.
    """
    return terms.correlation(terms.most, terms.var_gold, terms.var_pred)


def _mcc_min(terms: Terms) -> pl.Expr:
    """The least R_K that any predictions can have for the gold labels of a slice.

    Let T be the shares of the gold classes, and P any predicted shares. The least share of hits
    is 0 if all T_k + P_k ≤ 1. Else it is T_k + P_k - 1, for the one class k with T_k + P_k > 1.
    So R is -L(P) / √((1 - P·P)(1 - T·T)), and L is linear in P in each of these regions:
    L = T·P, or T·P - T_k - P_k + 1. L ≤ λ·√(1 - P·P) means L² + λ²·P·P ≤ λ². This set is convex,
    so L / √(1 - P·P) is largest at a corner of a region. Corners have P_i = 1 - T_i and P_j = T_i
    for two classes i, j (or P_k = 1, where R is 0/0, and near which R goes to 0). At such a corner
    no row is a hit: class i is predicted as j, and all other classes as i. So the bound is
    reached, and it is the least of

        -√(T_i / 2(1 - T_i)) · (1 - T_i + T_j) / √(1 - T·T)

    The size of this term grows with T_j. Class i must be the more frequent of the two: with
    d = T_i - T_j and r = 1 - T_i - T_j, T_i (1 - T_j) (1 - d)² - T_j (1 - T_i) (1 + d)² = d·r² ≥ 0.
    The size also grows with T_i up to 1/2, and a third class cannot exceed 1/2. So i is the most
    frequent gold class, and j the second.
    """
    first, second = terms.first, terms.second
    odds = first.cast(pl.Float64) / (2 * (terms.s - first)).cast(pl.Float64)
    rest = (terms.s - first + second).cast(pl.Float64) / terms.s.cast(pl.Float64)
    spread = (terms.var_gold / terms.rows_squared).sqrt()
    return terms.ratio(pl.max_horizontal(-odds.sqrt() * rest, -spread), spread)


_CHI2: Mapping[str, Sum] = {"chi2": lambda col: (col("excess").pow(2) / col("expected")).sum()}


def _phi_squared(terms: Terms) -> pl.Expr:
    """χ²/n. A pair that does not occur adds its expected share."""
    return terms["chi2"] + terms.unseen


def _cramers_v(terms: Terms) -> pl.Expr:
    least = pl.min_horizontal(terms.k_gold, terms.k_pred) - 1
    return terms.ratio(pl.min_horizontal((_phi_squared(terms) * least).sqrt(), least), least)


def _mean_of(column: str, weight: str | None = None) -> dict[str, Sum]:
    """The two sums of a mean over a column of `classes`. Classes without a value are left out."""
    if weight is None:
        return {"total": lambda col: col(column).sum(), "weight": lambda col: col(column).count()}
    return {
        "total": lambda col: (col(column) * col(weight)).sum(),
        "weight": lambda col: col(weight).filter(col(column).is_not_null()).sum(),
    }


def _mean(terms: Terms) -> pl.Expr:
    return terms.ratio(terms["total"], terms["weight"].fill_null(0))  # null without any class


def _least(terms: Terms) -> pl.Expr:
    """The least value of a column of `classes`; without any value, `zero_division`."""
    least, undefined = terms["least"], terms.zero_division
    return least if undefined is None else least.fill_null(undefined)


def _averages(name: str, column: str, formula: str, micro: tuple[Value, str]) -> list[Metric]:
    """The averages of precision, recall or F1: macro, micro and weighted."""
    value, total = micro
    undefined = f"each class where {formula} is 0/0"
    mean = f"the mean of {formula}"
    weighted = _mean_of(name, "support")
    # A class that is not predicted has the precision 0/0, however many gold rows it weighs.
    is_of_pred = name == "precision"
    of_macro: Needed = "all" if is_of_pred else "all gold"
    of_weighted: Needed = "all" if is_of_pred else "any"
    kinds: list[tuple[str, Value, str, str, Mapping[str, Sum], Needed]] = [
        ("macro", _mean, f"{mean} over classes that occur", undefined, _mean_of(name), of_macro),
        ("micro", value, f"{total}; with one label a row, the accuracy", "", {}, "any"),
        ("weighted", _mean, f"{mean}, weighted by t", undefined, weighted, of_weighted),
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


MCC = Metric(
    "mcc",
    _mcc,
    "R_K = (cs - t·p) / √((s² - t·t)(s² - p·p))",
    _GORODKIN,
    SIGNED,
    _ONE_CLASS,
    ("scikit-learn: matthews_corrcoef", "PyCM: Overall_MCC"),
    classes_needed="two gold",
    multilabel=True,
    has_gold=has_two_gold,
)

_OF_CLASSES = [
    Metric(
        "accuracy",
        lambda terms: terms.ratio(terms.c, terms.s),
        "c / s",
        FAWCETT,
        RATIO,
        peers=("scikit-learn: accuracy_score", "PyCM: Overall_ACC"),
        is_of_rows=True,
    ),
    Metric(
        "balanced_accuracy",
        lambda terms: terms["mean"],
        "the mean of c/t over gold classes",
        "Brodersen et al. 2010, ICPR",
        RATIO,
        "",
        ("scikit-learn: balanced_accuracy_score",),
        classes={"mean": lambda col: col("recall").filter(col("support") > 0).mean()},
        classes_needed="all gold",
    ),
    *_averages("precision", "PPV", "c/p", (lambda terms: terms.ratio(terms.c, terms.p), "Σc / Σp")),
    *_averages("recall", "TPR", "c/t", (lambda terms: terms.ratio(terms.c, terms.t), "Σc / Σt")),
    *_averages(
        "f1",
        "F1",
        "2c / (t + p)",
        (lambda terms: terms.ratio(2 * terms.c, terms.t + terms.p), "2Σc / (Σt + Σp)"),
    ),
]

_OF_TWO_CLASSES = [
    Metric(
        "kappa",
        lambda terms: terms.ratio(terms.covariance, terms.apart),
        "(cs - t·p) / (s² - t·p)",
        "Cohen 1960, Educational and Psychological Measurement 20",
        SIGNED,
        "only one class occurs",
        ("scikit-learn: cohen_kappa_score", "PyCM: Kappa"),
        classes_needed="two gold",
    ),
    Metric(
        "informedness",
        lambda terms: terms.ratio(terms.covariance, terms.var_gold),
        "(cs - t·p) / (s² - t·t); for two classes TPR + TNR - 1; the slope of pred on gold",
        f"{_POWERS}, for two classes; the pooled covariance as in R_K",
        SIGNED,
        "one gold class",
        ("PyCM: BM (two classes)",),
        multilabel=True,
        classes_needed="two gold",
    ),
    Metric(
        "markedness",
        lambda terms: terms.ratio(terms.covariance, terms.var_pred),
        "(cs - t·p) / (s² - p·p); for two classes PPV + NPV - 1; the slope of gold on pred",
        f"{_POWERS}, for two classes; the pooled covariance as in R_K",
        SIGNED,
        "one predicted class",
        ("PyCM: MK (two classes)",),
        multilabel=True,
        classes_needed="two gold",
    ),
    Metric(
        "mcc_macro",
        _mean,
        "the mean of the one-vs-rest MCC of each class",
        _TAMURA,
        SIGNED,
        "each class that is gold in all rows or in none, or predicted in all or in none",
        classes=_mean_of("mcc"),
        multilabel=True,
        classes_needed="all",
    ),
    Metric(
        "mcc_micro",
        _mcc_micro,
        "the MCC of the sum of the one-vs-rest 2 × 2 tables; with one label a row, "
        "(Kc - s) / (K - 1)s",
        _TAMURA,
        Range(lambda terms: -1 / (terms.k.cast(pl.Float64) - 1), 1, "[-1/(K - 1), 1]"),
        "only one class occurs",
        ("PyCM: S",),
        is_of_rows=True,
        multilabel=True,
        classes_needed="all gold",
    ),
    Metric(
        "mcc_min_class",
        _least,
        "the least one-vs-rest MCC of any class",
        "shows a class that fails; cf. Stoica and Babu 2024, arXiv 2305.05974",
        SIGNED,
        "each class that is gold in all rows or in none, or predicted in all or in none",
        classes={"least": lambda col: col("mcc").min()},
        multilabel=True,
        classes_needed="all gold",
        no_interval=KINK.format("the worst class"),
    ),
    Metric(
        "mcc_normalized",
        lambda terms: (_mcc(terms) + 1) / 2,
        "(R_K + 1) / 2",
        "Chicco and Jurman 2023, BioData Mining 16",
        RATIO,
        "R_K is 0/0",
        classes_needed="two gold",
        multilabel=True,
    ),
    Metric(
        "mcc_max",
        _mcc_max,
        "(s Σmin(t, p) - t·p) / √((s² - t·t)(s² - p·p)), exact: the largest R_K for the marginals",
        f"{DAVENPORT}, for two classes; for K classes, derived in the code",
        RATIO,
        _ONE_CLASS,
        multilabel=True,
        no_interval=KINK.format("the side that limits a class"),
    ),
    Metric(
        "mcc_min",
        _mcc_min,
        "the least R_K that predictions can have for these gold labels, exact: the most frequent "
        "class predicted as the second most frequent, all other classes as the most frequent",
        "derived in the code, and checked by enumeration",
        Range(-1, 0),
        "one gold class",
        no_interval=KINK.format("the order of the classes by size"),
    ),
    Metric(
        "phi_over_max",
        lambda terms: terms.ratio(terms.covariance, terms.most),
        "R_K / mcc_max: (cs - t·p) / (s Σmin(t, p) - t·p)",
        f"{DAVENPORT}, for two classes",
        Range(lambda _: pl.lit(-1.0), 1, "up to 1"),  # no number, as some marginals allow less
        f"{_ONE_CLASS}, or no class is both gold and predicted",
        multilabel=True,
        no_interval=KINK.format("the side that limits a class"),
    ),
]

_OF_PAIRS = [
    Metric(
        "chi2",
        lambda terms: _phi_squared(terms) * terms.n,
        "Σ (n_ij - t_i p_j / s)² / (t_i p_j / s)",
        "Pearson 1900, Philosophical Magazine 50",
        Range(0, lambda terms: (_FEWER_CLASSES - 1) * terms.n, "[0, (K - 1)s]"),
        peers=("SciPy: chi2_contingency", "PyCM: Chi_Squared"),
        pairs=_CHI2,
        no_interval=_NEAR_0,
    ),
    Metric(
        "cramers_v",
        _cramers_v,
        "√(χ² / s / (m - 1)), m the number of gold or of predicted classes, whichever is smaller; "
        "the root mean square of the canonical correlations of gold and pred",
        "Cramér 1946, Mathematical Methods of Statistics",
        RATIO,
        _ONE_CLASS,
        ("SciPy: association(method='cramer')", "PyCM: V"),
        pairs=_CHI2,
        no_interval=_NEAR_0,
    ),
    Metric(
        "mutual_info",
        lambda terms: terms["total"].clip(0),
        "Σ n_ij/s · ln(s n_ij / t_i p_j), in nats",
        "Shannon 1948, Bell System Technical Journal 27",
        Range(0, lambda _: _FEWER_CLASSES.log(), "[0, ln K]"),
        "",
        ("scikit-learn: mutual_info_score",),
        pairs={"total": lambda col: (col("share") * (col("share") / col("expected")).log()).sum()},
        no_interval=_NEAR_0,
    ),
]

METRICS = (
    MCC,
    *_OF_CLASSES,  # One gold class is enough for them.
    *(replace(metric, has_gold=has_two_gold) for metric in (*_OF_TWO_CLASSES, *_OF_PAIRS)),
    *OF_POSITIVE,
    *OF_SCORES,
)

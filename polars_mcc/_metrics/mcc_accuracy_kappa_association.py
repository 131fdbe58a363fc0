"""MCC and its kin; accuracy, kappa, and how strongly gold and pred are associated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from polars_mcc._metrics import metric_type
from polars_mcc._metrics.metric_type import Metric, Range, Sum, Terms

_ONE_CLASS = "one gold class, or one predicted class"
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
    return terms.correlation(terms.max_covariance, terms.var_gold, terms.var_pred)


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


def _least(terms: Terms) -> pl.Expr:
    """The least value of a column of `classes`; without any value, `zero_division`."""
    least, undefined = terms["least"], terms.zero_division
    return least if undefined is None else least.fill_null(undefined)


MCC = Metric(
    "mcc",
    _mcc,
    "R_K = (cs - t·p) / √((s² - t·t)(s² - p·p))",
    _GORODKIN,
    metric_type.SIGNED,
    _ONE_CLASS,
    ("scikit-learn: matthews_corrcoef", "PyCM: Overall_MCC"),
    classes_needed="two gold",
    multilabel=True,
    has_gold=metric_type.has_two_gold,
)


MCC_VARIANTS = [
    Metric(
        "informedness",
        lambda terms: terms.ratio(terms.covariance, terms.var_gold),
        "(cs - t·p) / (s² - t·t); for two classes TPR + TNR - 1; the slope of pred on gold",
        f"{_POWERS}, for two classes; the pooled covariance as in R_K",
        metric_type.SIGNED,
        "one gold class",
        ("PyCM: BM (two classes)",),
        classes_needed="two gold",
    ),
    Metric(
        "markedness",
        lambda terms: terms.ratio(terms.covariance, terms.var_pred),
        "(cs - t·p) / (s² - p·p); for two classes PPV + NPV - 1; the slope of gold on pred",
        f"{_POWERS}, for two classes; the pooled covariance as in R_K",
        metric_type.SIGNED,
        "one predicted class",
        ("PyCM: MK (two classes)",),
        classes_needed="two gold",
    ),
    Metric(
        "informedness_macro",
        metric_type.mean,
        "the mean of the one-vs-rest TPR + TNR - 1 of each class; informedness pools the classes",
        f"{_POWERS}, for two classes",
        metric_type.SIGNED,
        "each class that is gold in all rows or in none",
        classes=metric_type.sums_of_mean("informedness"),
        classes_needed="all gold",
    ),
    Metric(
        "markedness_macro",
        metric_type.mean,
        "the mean of the one-vs-rest PPV + NPV - 1 of each class; markedness pools the classes",
        f"{_POWERS}, for two classes",
        metric_type.SIGNED,
        "each class that is predicted in all rows or in none",
        classes=metric_type.sums_of_mean("markedness"),
        classes_needed="all",
    ),
    Metric(
        "mcc_macro",
        metric_type.mean,
        "the mean of the one-vs-rest MCC of each class",
        _TAMURA,
        metric_type.SIGNED,
        "each class that is gold in all rows or in none, or predicted in all or in none",
        classes=metric_type.sums_of_mean("mcc"),
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
        classes_needed="all gold",
    ),
    Metric(
        "mcc_min_class",
        _least,
        "the least one-vs-rest MCC of any class",
        "shows a class that fails; cf. Stoica and Babu 2024, arXiv 2305.05974",
        metric_type.SIGNED,
        "each class that is gold in all rows or in none, or predicted in all or in none",
        classes={"least": lambda col: col("mcc").min()},
        classes_needed="all gold",
        no_interval=metric_type.KINK.format("the worst class"),
    ),
    Metric(
        "mcc_normalized",
        lambda terms: (_mcc(terms) + 1) / 2,
        "(R_K + 1) / 2",
        "Chicco and Jurman 2023, BioData Mining 16",
        metric_type.RATIO,
        "R_K is 0/0",
        classes_needed="two gold",
    ),
    Metric(
        "mcc_max",
        _mcc_max,
        "(s Σmin(t, p) - t·p) / √((s² - t·t)(s² - p·p)), exact: the largest R_K for the marginals",
        f"{metric_type.DAVENPORT}, for two classes; for K classes, derived in the code",
        metric_type.RATIO,
        _ONE_CLASS,
        no_interval=metric_type.KINK.format("the side that limits a class"),
    ),
    Metric(
        "mcc_min",
        _mcc_min,
        "the least R_K that predictions can have for these gold labels, exact: the most frequent "
        "class predicted as the second most frequent, all other classes as the most frequent",
        "derived in the code, and checked by enumeration",
        Range(-1, 0),
        "one gold class",
        no_interval=metric_type.KINK.format("the order of the classes by size"),
    ),
    Metric(
        "phi_over_max",
        lambda terms: terms.ratio(terms.covariance, terms.max_covariance),
        "R_K / mcc_max: (cs - t·p) / (s Σmin(t, p) - t·p)",
        f"{metric_type.DAVENPORT}, for two classes",
        Range(lambda _: pl.lit(-1.0), 1, "up to 1"),  # no number, as some marginals allow less
        f"{_ONE_CLASS}, or no class is both gold and predicted",
        no_interval=metric_type.KINK.format("the side that limits a class"),
    ),
]
MCC_VARIANTS = [
    replace(metric, has_gold=metric_type.has_two_gold, multilabel=metric.name != "mcc_min")
    for metric in MCC_VARIANTS
]

_NEAR_0 = "near independence of gold and pred it is biased, and its error is not normal"
_FEWER_CLASSES = pl.min_horizontal(Terms.k_gold, Terms.k_pred).cast(pl.Float64)
_CHI2: Mapping[str, Sum] = {"chi2": lambda col: (col("excess").pow(2) / col("expected")).sum()}


def _phi_squared(terms: Terms) -> pl.Expr:
    """χ²/n. A pair that does not occur adds its expected share."""
    return terms["chi2"] + terms.unseen


def _cramers_v(terms: Terms) -> pl.Expr:
    least = pl.min_horizontal(terms.k_gold, terms.k_pred) - 1
    return terms.ratio(pl.min_horizontal((_phi_squared(terms) * least).sqrt(), least), least)


def _g_mean(terms: Terms) -> pl.Expr:
    score, undefined = terms["log"].exp(), terms.zero_division
    return score if undefined is None else score.fill_null(undefined)  # null without any class


_OF_TWO_CLASSES = [
    Metric(
        "kappa",
        lambda terms: terms.ratio(terms.covariance, terms.chance_disagreement),
        "(cs - t·p) / (s² - t·p)",
        "Cohen 1960, Educational and Psychological Measurement 20",
        metric_type.SIGNED,
        "only one class occurs",
        ("scikit-learn: cohen_kappa_score", "PyCM: Kappa"),
        classes_needed="two gold",
    ),
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
        metric_type.RATIO,
        "one gold class, or one predicted class",
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

_ACCURACY = Metric(
    "accuracy",
    lambda terms: terms.ratio(terms.c, terms.s),
    "c / s",
    metric_type.FAWCETT,
    metric_type.RATIO,
    peers=("scikit-learn: accuracy_score", "PyCM: Overall_ACC"),
    is_of_rows=True,
)

ACCURACY_KAPPA_ASSOCIATION = [
    _ACCURACY,
    replace(
        _ACCURACY,
        name="error_rate",
        value=lambda terms: terms.ratio(terms.s - terms.c, terms.s),
        formula="(s - c) / s",
        source="1 - accuracy",
        peers=("scikit-learn: zero_one_loss", "PyCM: HammingLoss"),
        less_is_better=True,
    ),
    Metric(
        "balanced_accuracy",
        lambda terms: terms["mean"],
        "the mean of c/t over gold classes",
        "Brodersen et al. 2010, ICPR",
        metric_type.RATIO,
        "",
        ("scikit-learn: balanced_accuracy_score",),
        classes={"mean": lambda col: col("recall").filter(col("support") > 0).mean()},
        classes_needed="all gold",
    ),
    Metric(
        "g_mean",
        _g_mean,
        "the K-th root of the product of c/t over the K classes that occur; for two classes "
        "√(tpr · tnr); no interval where it is 0",
        "Kubat and Matwin 1997, ICML",
        metric_type.RATIO,
        "each class where c/t is 0/0",
        ("PyCM: GM (two classes)",),
        classes={"log": lambda col: col("recall").log().mean()},
        classes_needed="all gold",
        no_interval_at=0.0,
        multilabel=True,
    ),
    *(replace(metric, has_gold=metric_type.has_two_gold) for metric in _OF_TWO_CLASSES),
]

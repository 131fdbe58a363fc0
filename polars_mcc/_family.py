"""The metrics that there are: each a small expression over a slice, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import TypeAlias

import polars as pl

from polars_mcc._metrics import Metric, Slice

_Part: TypeAlias = Callable[[Slice], pl.Expr]

_RATIO = "[0, 1]"
_SIGNED = "[-1, 1]"
_ONE_CLASS = "one gold class, or one predicted class"

_DAVENPORT = "Davenport and El-Sanhury 1991, Educational and Psychological Measurement 51"
_GORODKIN = "Gorodkin 2004, Computational Biology and Chemistry 28"
_POWERS = "Powers 2011, arXiv 2010.16061"
_ALTMAN = "Altman and Bland 1994, BMJ 308 and 309"
_FAWCETT = "Fawcett 2006, Pattern Recognition Letters 27"
_RIJSBERGEN = "van Rijsbergen 1979, Information Retrieval"
_TAMURA = "Tamura et al. 2025, arXiv 2503.06450"


def _mcc(of: Slice) -> pl.Expr:
    return of.correlation(of.covariance, of.var_gold, of.var_pred)


def _mcc_micro(of: Slice) -> pl.Expr:
    """The MCC of the sum of the 2 × 2 tables of the classes against the rest."""
    t_total, p_total = (total.cast(pl.Float64) / of.s.cast(pl.Float64) for total in (of.t, of.p))
    cov = (of.k * of.hits_times_rows - of.gold_times_pred) / of.rows_squared
    return of.correlation(cov, t_total * (of.k - t_total), p_total * (of.k - p_total))


def _mcc_max(of: Slice) -> pl.Expr:
    """R_K where the marginals stay and as many rows as can be are hits.

    Of t_k rows of gold class k and p_k predicted ones, min(t_k, p_k) can be hits, and all classes
    can have as many at once: the gold rows that are left over are of other classes than the
    predictions that are left over, so these can be paired in any way. The denominator depends
    on the marginals only.
    """
    return of.correlation(of.most, of.var_gold, of.var_pred)


def _mcc_min(of: Slice) -> pl.Expr:
    """The least R_K of all predictions for the gold labels of a slice.

    Let T be the shares of gold classes and P any predicted shares. The least hits that these
    allow are 0 if all T_k + P_k ≤ 1; else T_k + P_k - 1, of the one class k where it is more. So R
    is -L(P) / √((1 - P·P)(1 - T·T)) with L linear in P in each of these regions: L = T·P, or
    T·P - T_k - P_k + 1. Where L ≤ λ·√(1 - P·P), L² + λ²·P·P ≤ λ²: a convex set, so that L / √(…)
    is largest at a corner of a region. Corners have P_i = 1 - T_i and P_j = T_i for two classes
    i, j (or P_k = 1, where R is 0/0, and near which it goes to 0). There, no row is a hit:
    class i is predicted as j, and all others as i. So the bound is reached, and is the least of

        -√(T_i / 2(1 - T_i)) · (1 - T_i + T_j) / √(1 - T·T)

    which grows in size with T_j. Of i and j, the more frequent one is to be i: with d = T_i - T_j
    and r = 1 - T_i - T_j, T_i (1 - T_j) (1 - d)² - T_j (1 - T_i) (1 + d)² = d·r² ≥ 0. And it
    grows with T_i up to 1/2, which a third class does not pass. So i and j are the most frequent
    gold class, and the second.
    """
    first, second = of.first, of.second
    odds = first.cast(pl.Float64) / (2 * (of.s - first)).cast(pl.Float64)
    rest = (of.s - first + second).cast(pl.Float64) / of.s.cast(pl.Float64)
    spread = (of.var_gold / of.rows_squared).sqrt()
    return of.ratio(pl.max_horizontal(-odds.sqrt() * rest, -spread), spread)


def _phi_squared(of: Slice) -> pl.Expr:
    """χ²/n. What is expected of pairs that do not occur is their part of it."""
    excess, expected = pl.col("excess"), pl.col("expected")
    return of.over_pairs((excess.pow(2) / expected).sum()) + of.unseen


def _cramers_v(of: Slice) -> pl.Expr:
    least = pl.min_horizontal(of.k_gold, of.k_pred) - 1
    return of.ratio(pl.min_horizontal((_phi_squared(of) * least).sqrt(), least), least)


def _mutual_info(of: Slice) -> pl.Expr:
    share, expected = pl.col("share"), pl.col("expected")
    return of.over_pairs((share * (share / expected).log()).sum()).clip(0)


def _averages(name: str, column: str, formula: str, source: str) -> list[Metric]:
    """Of precision, recall or F1: macro, micro and weighted."""
    micro: dict[str, _Part] = {
        "precision": lambda of: of.ratio(of.c, of.p),
        "recall": lambda of: of.ratio(of.c, of.t),
        "f1": lambda of: of.ratio(2 * of.c, of.t + of.p),
    }
    total = {"precision": "Σc / Σp", "recall": "Σc / Σt", "f1": "2Σc / (Σt + Σp)"}[name]

    def peers(average: str, *others: str) -> tuple[str, ...]:
        return f"scikit-learn: {name}_score(average='{average}')", *others

    return [
        Metric(
            f"{name}_macro",
            lambda of: of.mean(name),
            f"the mean of {formula} over classes that occur",
            source,
            _RATIO,
            "each class of which it is 0/0",
            peers("macro", f"PyCM: {column}_Macro"),
        ),
        Metric(
            f"{name}_micro",
            micro[name],
            f"{total}: the accuracy, of one label a row",
            source,
            _RATIO,
            "",
            peers("micro", f"PyCM: {column}_Micro"),
        ),
        Metric(
            f"{name}_weighted",
            lambda of: of.mean(name, "support"),
            f"the mean of {formula}, weighted by t",
            source,
            _RATIO,
            "each class of which it is 0/0",
            peers("weighted"),
        ),
    ]


_OF_CLASSES = [
    Metric(
        "mcc",
        _mcc,
        "R_K = (cs - t·p) / √((s² - t·t)(s² - p·p))",
        _GORODKIN,
        _SIGNED,
        _ONE_CLASS,
        ("scikit-learn: matthews_corrcoef", "PyCM: Overall_MCC"),
    ),
    Metric(
        "accuracy",
        lambda of: of.ratio(of.c, of.s),
        "c / s",
        _FAWCETT,
        _RATIO,
        "",
        ("scikit-learn: accuracy_score", "PyCM: Overall_ACC"),
    ),
    Metric(
        "balanced_accuracy",
        lambda of: of.over_classes(pl.col("recall").filter(pl.col("support") > 0).mean()),
        "the mean of c/t over gold classes",
        "Brodersen et al. 2010, ICPR",
        _RATIO,
        "",
        ("scikit-learn: balanced_accuracy_score",),
    ),
    *_averages("precision", "PPV", "c/p", _RIJSBERGEN),
    *_averages("recall", "TPR", "c/t", _RIJSBERGEN),
    *_averages("f1", "F1", "2c / (t + p)", _RIJSBERGEN),
    Metric(
        "kappa",
        lambda of: of.ratio(of.covariance, of.apart),
        "(cs - t·p) / (s² - t·p)",
        "Cohen 1960, Educational and Psychological Measurement 20",
        _SIGNED,
        "all rows are gold and predicted as one class",
        ("scikit-learn: cohen_kappa_score", "PyCM: Kappa"),
    ),
    Metric(
        "informedness",
        lambda of: of.ratio(of.covariance, of.var_gold),
        "(cs - t·p) / (s² - t·t); of two classes TPR + TNR - 1; the slope of pred on gold",
        f"{_POWERS}, for two classes; the pooled covariance as in R_K",
        _SIGNED,
        "one gold class",
        ("PyCM: BM (two classes)",),
    ),
    Metric(
        "markedness",
        lambda of: of.ratio(of.covariance, of.var_pred),
        "(cs - t·p) / (s² - p·p); of two classes PPV + NPV - 1; the slope of gold on pred",
        f"{_POWERS}, for two classes; the pooled covariance as in R_K",
        _SIGNED,
        "one predicted class",
        ("PyCM: MK (two classes)",),
    ),
    Metric(
        "mcc_macro",
        lambda of: of.mean("mcc"),
        "the mean of the MCC of each class against the rest",
        _TAMURA,
        _SIGNED,
        "each class that is all gold rows, or all predicted ones, or none",
    ),
    Metric(
        "mcc_micro",
        _mcc_micro,
        "the MCC of the sum of the 2 × 2 tables; of one label a row (Kc - s) / (K - 1)s",
        _TAMURA,
        "[-1/(K - 1), 1]",
        "one class in all",
        ("PyCM: S",),
    ),
    Metric(
        "mcc_min_class",
        lambda of: of.least("mcc"),
        "the least MCC of a class against the rest",
        "what a class that fails cannot hide behind; cf. Stoica and Babu 2024, arXiv 2305.05974",
        _SIGNED,
        "each class that is all gold rows, or all predicted ones, or none",
    ),
    Metric(
        "mcc_normalized",
        lambda of: (_mcc(of) + 1) / 2,
        "(R_K + 1) / 2",
        "Chicco and Jurman 2023, BioData Mining 16",
        _RATIO,
        "R_K is",
    ),
    Metric(
        "mcc_max",
        _mcc_max,
        "(s Σmin(t, p) - t·p) / √((s² - t·t)(s² - p·p)): exact, the largest R_K of these marginals",
        f"{_DAVENPORT}, for two classes; for K, see the code",
        _RATIO,
        _ONE_CLASS,
    ),
    Metric(
        "mcc_min",
        _mcc_min,
        "the least R_K of any predictions for these gold labels, exact: the most frequent class "
        "predicted as the second, all others as the first",
        "derived in the code, and checked by enumeration",
        "[-1, 0]",
        "one gold class",
    ),
    Metric(
        "phi_over_max",
        lambda of: of.ratio(of.covariance, of.most),
        "R_K / its largest: (cs - t·p) / (s Σmin(t, p) - t·p)",
        f"{_DAVENPORT}, for two classes",
        "up to 1",
        f"{_ONE_CLASS}, or no class is both",
    ),
]

_OF_PAIRS = [
    Metric(
        "chi2",
        lambda of: _phi_squared(of) * of.n,
        "Σ (n_ij - t_i p_j / s)² / (t_i p_j / s)",
        "Pearson 1900, Philosophical Magazine 50",
        "[0, (K - 1)s]",
        "",
        ("SciPy: chi2_contingency", "PyCM: Chi_Squared"),
    ),
    Metric(
        "cramers_v",
        _cramers_v,
        "√(χ² / s / (least number of gold or predicted classes - 1)): the root mean square of the "
        "canonical correlations of gold and pred",
        "Cramér 1946, Mathematical Methods of Statistics",
        _RATIO,
        _ONE_CLASS,
        ("SciPy: association(method='cramer')", "PyCM: V"),
    ),
    Metric(
        "mutual_info",
        _mutual_info,
        "Σ n_ij/s · ln(s n_ij / t_i p_j), in nats",
        "Shannon 1948, Bell System Technical Journal 27",
        "[0, ln K]",
        "",
        ("scikit-learn: mutual_info_score",),
    ),
]


_tp: _Part = attrgetter("tp")
_fp: _Part = attrgetter("fp")
_fn: _Part = attrgetter("fn")
_tn: _Part = attrgetter("tn")


def _rate(
    name: str,
    sides: tuple[_Part, _Part],
    formula: str,
    source: str,
    *peers: str,
) -> Metric:
    """A count's share of itself and another one."""
    part, rest = sides
    return Metric(
        name,
        lambda of: of.ratio(part(of), part(of) + rest(of)),
        formula,
        source,
        _RATIO,
        f"{formula.split(' / ')[1].strip('()')} = 0",
        peers,
    )


_BINARY = [
    *(
        Metric(
            name, count, words, _FAWCETT, "[0, s]", "", (f"PyCM: {name.upper()}",), is_count=True
        )
        for name, count, words in (
            ("tp", _tp, "gold and predicted positive"),
            ("fp", _fp, "predicted positive, and gold negative"),
            ("fn", _fn, "predicted negative, and gold positive"),
            ("tn", _tn, "gold and predicted negative"),
        )
    ),
    Metric(
        "prevalence",
        lambda of: of.ratio(of.tp + of.fn, of.s),
        "(tp + fn) / s",
        _ALTMAN,
        _RATIO,
        "",
        ("PyCM: PRE",),
    ),
    _rate(
        "precision",
        (_tp, _fp),
        "tp / (tp + fp)",
        _FAWCETT,
        "scikit-learn: precision_score",
        "PyCM: PPV",
    ),
    _rate(
        "recall", (_tp, _fn), "tp / (tp + fn)", _FAWCETT, "scikit-learn: recall_score", "PyCM: TPR"
    ),
    _rate("specificity", (_tn, _fp), "tn / (tn + fp)", _ALTMAN, "PyCM: TNR"),
    Metric(
        "f1",
        lambda of: of.ratio(2 * of.tp, 2 * of.tp + of.fp + of.fn),
        "2tp / (2tp + fp + fn)",
        _RIJSBERGEN,
        _RATIO,
        "tp + fp + fn = 0",
        ("scikit-learn: f1_score", "PyCM: F1"),
    ),
    _rate("ppv", (_tp, _fp), "tp / (tp + fp)", _ALTMAN, "PyCM: PPV"),
    _rate("npv", (_tn, _fn), "tn / (tn + fn)", _ALTMAN, "PyCM: NPV"),
    _rate("tpr", (_tp, _fn), "tp / (tp + fn)", _FAWCETT, "PyCM: TPR"),
    _rate("tnr", (_tn, _fp), "tn / (tn + fp)", _ALTMAN, "PyCM: TNR"),
    _rate("fdr", (_fp, _tp), "fp / (tp + fp)", "1 - ppv", "PyCM: FDR"),
    _rate("fnr", (_fn, _tp), "fn / (tp + fn)", "1 - tpr", "PyCM: FNR"),
    _rate("fpr", (_fp, _tn), "fp / (tn + fp)", _FAWCETT, "PyCM: FPR"),
    _rate("for", (_fn, _tn), "fn / (tn + fn)", "1 - npv", "PyCM: FOR"),
    Metric(
        "phi",
        lambda of: of.correlation(*map(of.positive, ("cov", "var_gold", "var_pred"))),
        "(tp·tn - fp·fn) / √((tp + fp)(tp + fn)(tn + fp)(tn + fn))",
        "Matthews 1975, Biochimica et Biophysica Acta 405",
        _SIGNED,
        "the positive class is all gold rows, or all predicted ones, or none",
        ("scikit-learn: matthews_corrcoef", "PyCM: MCC"),
    ),
    Metric(
        "phi_max",
        lambda of: of.correlation(*map(of.positive, ("most", "var_gold", "var_pred"))),
        "the largest φ of these marginals: min(T, P)s - TP in place of its numerator",
        _DAVENPORT,
        _RATIO,
        "as φ",
    ),
]

_OF_ONE_LABEL = {
    *("accuracy", "balanced_accuracy", "kappa", "mcc_min", "chi2", "cramers_v", "mutual_info"),
}
"""What needs a row to be of one class."""

FAMILY = tuple(
    replace(metric, multilabel=metric.name not in _OF_ONE_LABEL)
    for metric in (*_OF_CLASSES, *_OF_PAIRS, *_BINARY)
)

"""The scores of one class against the rest: the counts of a 2 × 2 table, and their rates."""

from __future__ import annotations

import math
from dataclasses import replace
from operator import attrgetter

import polars as pl

from polars_mcc._metrics import metric_type
from polars_mcc._metrics.mcc_and_one_vs_rest import ERRORS, except_where, given_of, is_of_rest
from polars_mcc._metrics.metric_type import Metric, Range, Terms, Value

_ODDS = Range(0, math.inf, "[0, ∞]")
_COUNT = Range(0, lambda terms: terms.n, "[0, s]")
_GLAS = "Glas et al. 2003, Journal of Clinical Epidemiology 56"
_SIMEL = "Simel, Samsa and Matchar 1991, Journal of Clinical Epidemiology 44"


def _float(number: pl.Expr) -> pl.Expr:
    return number.cast(pl.Float64)


def _count(name: str, words: str) -> Metric:
    peers = (f"PyCM: {name.upper()}",)
    value: Value = attrgetter(f"positive.{name}")
    return Metric(name, value, words, metric_type.FAWCETT, _COUNT, "", peers, is_count=True)


def _rate(name: str, formula: str, source: str, *peers: str) -> Metric:
    """One of `RATES`. Without its gold rows, a rate of gold rows is null."""
    given = given_of(name)

    def value(terms: Terms) -> pl.Expr:
        return terms.positive.rate(name, None if given == "gold" else terms.zero_division)

    undefined = "tp + fp + fn" if given is None else formula.split(" / ")[1].strip("()")
    return Metric(
        name,
        value,
        formula,
        source,
        metric_type.RATIO,
        f"{undefined} = 0",
        peers,
        given=given,
        of_rest=is_of_rest(name),
        has_gold=metric_type.has_rows(name),
    )


def _odds(
    name: str, of: tuple[str, str], formula: str, undefined: str, source: str, *, peer: str
) -> Metric:
    """A ratio of products of counts, infinite at x/0. Null without gold rows of both classes."""

    def value(terms: Terms) -> pl.Expr:
        cells = terms.positive._asdict()
        counts = {cell: _float(cells[cell]) for cell in ("tp", "fn", "fp", "tn", "gold")}
        counts["rest"] = counts["fp"] + counts["tn"]
        part, whole = (counts[one] * counts[other] for one, other in map(str.split, of))
        at_0 = terms.zero_division
        if name in ERRORS and at_0 is not None:
            at_0 = 1 - at_0
        ratio = except_where((part == 0) & (whole == 0), part / whole, at_0)
        return except_where((counts["gold"] == 0) | (counts["rest"] == 0), ratio, None)

    peers = (f"PyCM: {peer}",)
    both = metric_type.has_both
    return Metric(
        *(name, value, formula, source, _ODDS, undefined, peers), has_gold=both, is_log=True
    )


_PRECISION = _rate(
    *("precision", "tp / (tp + fp)", metric_type.FAWCETT),
    *("scikit-learn: precision_score", "PyCM: PPV"),
)
_RECALL = _rate(
    *("recall", "tp / (tp + fn)", metric_type.FAWCETT), *("scikit-learn: recall_score", "PyCM: TPR")
)
_SPECIFICITY = _rate("specificity", "tn / (tn + fp)", metric_type.ALTMAN, "PyCM: TNR")

_METRICS = [
    _count("tp", "gold and predicted positive"),
    _count("fp", "predicted positive, and gold negative"),
    _count("fn", "predicted negative, and gold positive"),
    _count("tn", "gold and predicted negative"),
    Metric(
        "prevalence",
        lambda terms: terms.ratio(terms.positive.gold, terms.s),
        "(tp + fn) / s",
        metric_type.ALTMAN,
        metric_type.RATIO,
        "",
        ("PyCM: PRE",),
        is_of_rows=True,
    ),
    Metric(
        "selection_rate",
        lambda terms: terms.ratio(terms.positive.pred, terms.s),
        "(tp + fp) / s",
        "Barocas, Hardt and Narayanan 2023, Fairness and Machine Learning",
        metric_type.RATIO,
        is_of_rows=True,
    ),
    _PRECISION,
    _RECALL,
    _SPECIFICITY,
    _rate(
        *("f1", "2tp / (2tp + fp + fn)", metric_type.RIJSBERGEN),
        *("scikit-learn: f1_score", "PyCM: F1"),
    ),
    _rate(
        *("jaccard", "tp / (tp + fp + fn)", metric_type.JACCARD),
        *("scikit-learn: jaccard_score", "PyCM: J"),
    ),
    Metric(
        "fowlkes_mallows",
        lambda terms: terms.ratio(
            terms.positive.tp, (_float(terms.positive.gold) * _float(terms.positive.pred)).sqrt()
        ),
        "√(ppv · tpr) = tp / √((tp + fp)(tp + fn)); scikit-learn's fowlkes_mallows_score compares "
        "clusterings",
        "Fowlkes and Mallows 1983, Journal of the American Statistical Association 78",
        metric_type.RATIO,
        "tp + fp = 0 or tp + fn = 0",
        ("PyCM: G",),
        has_gold=metric_type.has_rows("recall"),
    ),
    replace(_PRECISION, name="ppv", source=metric_type.ALTMAN, peers=("PyCM: PPV",)),
    _rate("npv", "tn / (tn + fn)", metric_type.ALTMAN, "PyCM: NPV"),
    replace(_RECALL, name="tpr", peers=("PyCM: TPR",)),
    replace(_SPECIFICITY, name="tnr"),
    _rate("fdr", "fp / (tp + fp)", "1 - ppv", "PyCM: FDR"),
    _rate("fnr", "fn / (tp + fn)", "1 - tpr", "PyCM: FNR"),
    _rate("fpr", "fp / (tn + fp)", metric_type.FAWCETT, "PyCM: FPR"),
    _rate("for", "fn / (tn + fn)", "1 - npv", "PyCM: FOR"),
    _odds("lr_pos", ("tp rest", "fp gold"), "tpr / fpr", "tp + fp = 0", _SIMEL, peer="PLR"),
    _odds("lr_neg", ("fn rest", "tn gold"), "fnr / tnr", "fn + tn = 0", _SIMEL, peer="NLR"),
    _odds(
        *("dor", ("tp tn", "fp fn"), "lr_pos / lr_neg = tp·tn / (fp·fn)"),
        *("tp + fp = 0 or fn + tn = 0", _GLAS),
        peer="DOR",
    ),
    Metric(
        "phi",
        lambda terms: terms.correlation(
            *attrgetter("covariance", "var_gold", "var_pred")(terms.positive)
        ),
        "(tp·tn - fp·fn) / √((tp + fp)(tp + fn)(tn + fp)(tn + fn))",
        "Matthews 1975, Biochimica et Biophysica Acta 405",
        metric_type.SIGNED,
        "the positive class is gold in all rows or in none, or predicted in all or in none",
        ("scikit-learn: matthews_corrcoef", "PyCM: MCC"),
        has_gold=metric_type.has_both,
    ),
    Metric(
        "phi_max",
        lambda terms: terms.correlation(
            terms.positive_most, terms.positive.var_gold, terms.positive.var_pred
        ),
        "the largest φ for these marginals: T = tp + fn and P = tp + fp, and the numerator of φ is "
        "min(T, P)s - T·P",
        metric_type.DAVENPORT,
        metric_type.RATIO,
        "where φ is 0/0",
        has_gold=metric_type.has_both,
        no_interval=metric_type.KINK.format("the side that limits a class"),
    ),
]

POSITIVE_CLASS_RATES = [
    replace(metric, is_of_positive=True, multilabel=True, less_is_better=less_is_better)
    for metric in _METRICS
    for less_is_better in [
        None if metric.name in {"prevalence", "selection_rate"} else metric.name in ERRORS
    ]
]

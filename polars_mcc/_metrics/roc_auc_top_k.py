"""The order of scores: how well a model ranks positive rows above negative ones."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_mcc._metrics.metric_type import RATIO, Metric, Terms, has_both

_DELONG = "DeLong et al. 1988, Biometrics 44"
_BAMBER = "Bamber 1975, Journal of Mathematical Psychology 12"


def _has_positive(terms: Terms) -> pl.Expr:
    return terms.positive.gold > 0


def _auc(terms: Terms) -> pl.Expr:
    """The area under the curve is a share of pairs: exact, and rounded once."""
    return pl.when(has_both(terms)).then(terms.concordant / 2 / terms.positive.var_gold)


ROC_AUC_TOP_K = [
    Metric(
        "roc_auc",
        _auc,
        "(pairs in order + ties / 2) / PN",
        _DELONG,
        RATIO,
        "one gold class (null)",
        ("scikit-learn: roc_auc_score",),
        has_gold=has_both,
    ),
    Metric(
        "average_precision",
        lambda terms: pl.when(_has_positive(terms)).then(terms["total"] / terms["positives"]),
        "Σ p/P · tp/(tp + fp), over scores",
        "Buckley and Voorhees 2000, SIGIR",
        RATIO,
        "no positive row (null)",
        ("scikit-learn: average_precision_score",),
        levels={
            "total": lambda col: (col("positive") * (col("tp") / (col("tp") + col("fp")))).sum(),
            "positives": lambda col: col("positive").sum(),
        },
        has_gold=_has_positive,
    ),
    Metric(
        "roc_auc_ties",
        lambda terms: pl.when(has_both(terms)).then(terms["total"] / terms["all"]),
        "Σ pq / PN, over scores",
        _BAMBER,
        RATIO,
        "one gold class (null)",
        levels={
            "total": lambda col: (col("positive") * col("negative")).sum(),
            "all": lambda col: col("positive").sum() * col("negative").sum(),
        },
        no_interval="it says how coarse the scores are",
        has_gold=has_both,
    ),
]
ROC_AUC_TOP_K = [replace(metric, is_of_scores=True) for metric in ROC_AUC_TOP_K]

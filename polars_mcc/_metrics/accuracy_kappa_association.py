"""Accuracy, kappa, and how strongly gold and pred are associated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from polars_mcc._metrics.metric_type import (
    FAWCETT,
    RATIO,
    SIGNED,
    Metric,
    Range,
    Sum,
    Terms,
    has_two_gold,
)

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
        SIGNED,
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
        RATIO,
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
    FAWCETT,
    RATIO,
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
        RATIO,
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
        RATIO,
        "each class where c/t is 0/0",
        ("PyCM: GM (two classes)",),
        classes={"log": lambda col: col("recall").log().mean()},
        classes_needed="all gold",
        no_interval_at=0.0,
        multilabel=True,
    ),
    *(replace(metric, has_gold=has_two_gold) for metric in _OF_TWO_CLASSES),
]

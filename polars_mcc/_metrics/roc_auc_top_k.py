"""The order of scores: how well a model ranks positive rows above negative ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from polars_mcc._base.allowed_values import check_at_least
from polars_mcc._metrics.metric_type import RATIO, Metric, Terms, has_both

_DELONG = "DeLong et al. 1988, Biometrics 44"
_BAMBER = "Bamber 1975, Journal of Mathematical Psychology 12"
_HAND_TILL = "Hand and Till 2001, Machine Learning 45"
_PROVOST = "Provost and Domingos 2000, CeDER Working Paper IS-00-04"
_OF_CLASSES = (
    "it is of several scores of a row, and counts of each score alone do not tell its error"
)


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
_AUC, _AVERAGE_PRECISION, _ = ROC_AUC_TOP_K
ROC_AUC_TOP_K += [
    replace(
        _AUC,
        name="roc_auc_weighted",
        formula="Σ P · roc_auc / n, over classes; of one score: roc_auc",
        source=_PROVOST,
        peers=("scikit-learn: roc_auc_score(average='weighted')",),
        no_interval=_OF_CLASSES,
        mean_over="gold rows",
    ),
    replace(
        _AUC,
        name="roc_auc_ovo",
        formula="the mean of roc_auc of score j in rows of j and k, j ≠ k; of one score: roc_auc",
        source=_HAND_TILL,
        undefined="a class is not gold (null)",
        peers=("scikit-learn: roc_auc_score(multi_class='ovo')",),
        no_interval=_OF_CLASSES,
        mean_over="pairs of classes",
    ),
    replace(
        _AVERAGE_PRECISION,
        name="average_precision_weighted",
        formula="Σ P · average_precision / n, over classes; of one score: average_precision",
        undefined="no positive row (null)",
        peers=("scikit-learn: average_precision_score(average='weighted')",),
        no_interval=_OF_CLASSES,
        mean_over="gold rows",
    ),
]
ROC_AUC_TOP_K = [replace(metric, is_of_scores=True) for metric in ROC_AUC_TOP_K]


@dataclass(frozen=True)
class _TopK:
    """Whether the gold class is among the k classes with the largest scores: 1 or 0, as a hit.

    Of equal scores, that of the last class is the largest, as in scikit-learn.
    """

    k: int

    def __call__(self, each: Sequence[tuple[pl.Expr, pl.Expr]]) -> tuple[pl.Expr, pl.Expr]:
        hits = []
        for place, (is_gold, own) in enumerate(each):
            above = [
                (score > own) | ((score == own) & pl.lit(other > place))
                for other, (_, score) in enumerate(each)
                if other != place
            ]
            number = pl.sum_horizontal(above, ignore_nulls=False)
            hits.append(pl.when(is_gold).then((number < self.k).cast(pl.Float64)))
        return pl.lit(value=True), pl.coalesce(hits)


def hit(score: pl.Expr, _: pl.Expr | float) -> tuple[pl.Expr, pl.Expr]:
    """What a row adds to the share of hits: its score, which is 0 or 1; and the most, 1."""
    return score, score * 0 + 1


def top_k(k: int) -> Metric:
    """The share of rows whose gold label is among the k classes with the largest scores.

    It needs a score per class, as in `log(score={"cat": "p_cat", "dog": "p_dog"})`.

    Args:
        k: How many classes count, at least 1.

    Returns:
        A metric with the name "top_3" for k = 3, that verbs take as other metrics of a score per
        class. Text is taken too: "top_k(3)". Of equal scores, that of the later class is larger, as
        in scikit-learn, if classes are named in the order of their labels.

    Raises:
        ValueError: k is below 1; in a verb, the log has no score per class.

    Examples:
        >>> import polars as pl
        >>> scores = {"a": [0.5, 0.2, 0.1], "b": [0.4, 0.5, 0.3], "c": [0.1, 0.3, 0.6]}
        >>> log = pl.DataFrame({"gold": list("bca"), **scores}).mcc(score=dict(zip("abc", "abc")))
        >>> log.score(metrics=["top_k(1)", "top_k(2)"]).row(0)[1:3]
        (0.0, 0.6666666666666666)

    References:
        scikit-learn: `top_k_accuracy_score`.
    """
    check_at_least("k", k, 1)
    return Metric(
        f"top_{k}",
        lambda terms: terms["total"] / terms.n,
        f"the share of rows whose gold label has one of the {k} largest scores",
        "scikit-learn: top_k_accuracy_score",
        RATIO,
        is_of_scores=True,
        levels={"total": lambda col: (col("positive") * col("score")).sum()},
        of_row=_TopK(int(k)),
        needs_score_per_class=True,
        influence="top_k",
    )

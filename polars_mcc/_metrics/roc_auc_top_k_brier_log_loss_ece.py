"""How well scores rank rows: ROC AUC and others; and how good they are as probabilities.

Sums are over levels (see `levels_of`). In formulas, P and N count the positive and negative rows of
a slice, r the rows of a level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import Strategy, check_at_least, check_choice
from polars_mcc._base.errors_and_warnings import Failure, unless
from polars_mcc._counts.sliced_log import EPSILON, PRED
from polars_mcc._metrics.mcc_and_one_vs_rest import Col
from polars_mcc._metrics.metric_type import RATIO, Metric, Range, Sum, Terms, has_both
from polars_mcc._metrics.score_levels_and_bins import Binning, outside

_DELONG = "DeLong et al. 1988, Biometrics 44"
_BAMBER = "Bamber 1975, Journal of Mathematical Psychology 12"
_HAND_TILL = "Hand and Till 2001, Machine Learning 45"
_PROVOST = "Provost and Domingos 2000, CeDER Working Paper IS-00-04"
_OF_CLASSES = (
    "it is of several scores of a row, and counts of each score alone do not tell its error"
)


def _has_positive(terms: Terms) -> pl.Expr:
    return terms.positive.gold > 0


ROC_AUC_TOP_K = [
    Metric(
        "roc_auc",
        # The area under the curve is a share of pairs: exact, and rounded once.
        lambda terms: pl.when(has_both(terms)).then(terms.concordant / 2 / terms.positive.var_gold),
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


_MURPHY = "Murphy 1973, Journal of Applied Meteorology 12"
_BIASED = "it is biased, and the bias depends on the rows per score or bin"

Loss: TypeAlias = Callable[[pl.Expr, pl.Expr | float], tuple[pl.Expr, pl.Expr]]
"""From a probability, and the epsilon of the log's scores, the loss of a positive row, and of a
negative row."""
_ROUNDED, _OFF = 0.005, 0.05
"""How far the sum of the scores of a row may be from 1: by rounding to two digits, per class; and
at most, or the zeros of many classes would pass."""
LARGEST_LOG_LOSS = -math.log(EPSILON)


def brier(score: pl.Expr, epsilon: pl.Expr | float) -> tuple[pl.Expr, pl.Expr]:  # noqa: ARG001 - see `Loss`
    """The loss of a positive row, and of a negative row."""
    return (1 - score).pow(2), score.pow(2)


def log_loss(score: pl.Expr, epsilon: pl.Expr | float) -> tuple[pl.Expr, pl.Expr]:
    """The loss of a positive row, and of a negative row, clipped as scikit-learn clips scores."""
    score = score.clip(epsilon, 1 - epsilon)
    return -score.log(), -(1 - score).log()


def _distance(each: Sequence[tuple[pl.Expr, pl.Expr]]) -> tuple[pl.Expr, pl.Expr]:
    """Half the squared distance of the scores of all classes from the gold label, as a miss."""
    squares = [(score - is_gold.cast(pl.Float64)).pow(2) for is_gold, score in each]
    distance = (pl.sum_horizontal(squares, ignore_nulls=False) / 2).sqrt()
    # Rounded scores add up to 1 nearly, and their distance may be a little above 1.
    return pl.lit(value=False), _if_they_add_up(each, distance.clip(upper_bound=1))


def _of_gold(each: Sequence[tuple[pl.Expr, pl.Expr]]) -> tuple[pl.Expr, pl.Expr]:
    """The score of the gold class, as a hit."""
    of_gold = pl.coalesce(pl.when(is_gold).then(score) for is_gold, score in each)
    return pl.lit(value=True), _if_they_add_up(each, of_gold)


def _if_they_add_up(each: Sequence[tuple[pl.Expr, pl.Expr]], score: pl.Expr) -> pl.Expr:
    """A score, or an error on `collect` if the scores of a row are no probabilities of classes."""
    are_outside = [((part < 0) | (part > 1), part) for _, part in each]
    wrong = pl.coalesce(pl.when(is_outside).then(part) for is_outside, part in are_outside)
    columns = (
        pl.when(is_outside).then(pl.lit(part.meta.output_name().removeprefix(PRED)))
        for is_outside, part in are_outside
    )
    total = pl.sum_horizontal([part for _, part in each], ignore_nulls=False)
    end = (
        ", not to 1, as probabilities of classes do; scale the scores, or use a metric of their "
        "order, such as 'roc_auc'"
    )
    message = ("the scores of a row add up to ", total, end)
    is_off = (total - 1).abs() > min(_ROUNDED * len(each), _OFF) + 1e-9
    of_column = (" of '", pl.coalesce(columns), "'")
    return unless(score, outside(wrong.is_not_null(), wrong, *of_column), Failure(is_off, message))


def _sum_of(loss: Loss) -> Mapping[str, Sum]:
    """The sum of the losses of all rows."""

    def total(col: Col) -> pl.Expr:
        positive, negative = loss(col("score"), col("epsilon"))
        return (col("positive") * positive + col("negative") * negative).sum()

    return {"total": total}


def _per_row(terms: Terms) -> pl.Expr:
    return terms["total"] / terms.n


_MEAN_LOSSES = [
    Metric(
        "brier",
        _per_row,
        "mean of (score - gold)²",
        "Brier 1950, Monthly Weather Review 78",
        RATIO,
        peers=("scikit-learn: brier_score_loss",),
        levels=_sum_of(brier),
        of_row=_distance,
    ),
    Metric(
        "log_loss",
        _per_row,
        "mean of -ln of the score of the gold class",
        "Good 1952, Journal of the Royal Statistical Society B 14",
        Range(0, LARGEST_LOG_LOSS),
        peers=("scikit-learn: log_loss",),
        levels=_sum_of(log_loss),
        of_row=_of_gold,
    ),
]

_IS_KNOWN = pl.col("independent") > 1 + 1e-9  # One row says nothing about chance.
_RATE, _ROWS = pl.col("rate"), pl.col("rows")
_DISTANCE = _RATE - pl.col("score_mean")
_CHANCE = _RATE * (1 - _RATE) / (pl.col("independent") - 1)
_SUMS: Mapping[str, Sum] = {
    "distance": lambda _: (_ROWS * _DISTANCE.abs()).sum(),
    "known": lambda _: pl.when(_IS_KNOWN).then(_ROWS).sum(),
    "squares": lambda _: pl.when(_IS_KNOWN).then(_ROWS * (_DISTANCE.pow(2) - _CHANCE)).sum(),
}


def _calibration_error(terms: Terms) -> pl.Expr:
    """The squared distances, without what chance alone adds to them."""
    square = (terms["squares"] / terms["known"]).clip(0)
    return pl.when(terms["known"] > 0).then(square.sqrt())


_OF_BINS = [
    Metric(
        "calibration_error",
        _calibration_error,
        "√ Σ r/n · ((rate - mean score)² - rate (1 - rate)/(r - 1)), over bins of r > 1 rows",
        "Kumar et al. 2019, arXiv 1909.10155",
        RATIO,
        "no bin of two rows (null)",
        bins=_SUMS,
        no_interval=_BIASED,
    ),
    Metric(
        "ece",
        lambda terms: terms["distance"] / terms.n,
        "Σ r/n · abs(rate - mean score), over bins of r rows",
        "Naeini et al. 2015, AAAI",
        RATIO,
        bins=_SUMS,
        no_interval=_BIASED,
    ),
]


def _squares(col: Col) -> pl.Expr:
    """The squared distances of scores from the rates of positive rows, times the rows."""
    rows = col("positive") + col("negative")
    return ((col("score") * rows - col("positive")).pow(2) / rows).sum()


def _resolution(terms: Terms) -> pl.Expr:
    base_rate = terms.positive.gold.cast(pl.Float64) / terms.s.cast(pl.Float64)
    return (terms["total"] / terms.n - base_rate.pow(2)).clip(0)


_PARTS_OF_BRIER = [
    Metric(
        "brier_reliability",
        _per_row,
        "Σ r/n · (score - rate)², over scores of r rows",
        _MURPHY,
        RATIO,
        levels={"total": _squares},
        no_interval=_BIASED,
    ),
    Metric(
        "brier_resolution",
        _resolution,
        "Σ r/n · (rate - P/n)², over scores of r rows",
        _MURPHY,
        RATIO,
        levels={
            "total": lambda col: (
                col("positive").pow(2) / (col("positive") + col("negative"))
            ).sum()
        },
        no_interval=_BIASED,
    ),
    Metric(
        "brier_uncertainty",
        lambda terms: terms.positive.var_gold / terms.rows_squared,
        "PN / n²",
        _MURPHY,
        RATIO,
        no_interval="it is of the labels alone",
    ),
]

_OF_LABELS = {"brier_resolution", "brier_uncertainty"}
"""Scores may be no probabilities for these: only their order, or the labels, count."""

BRIER_LOG_LOSS_ECE = [
    replace(
        metric,
        is_of_scores=True,
        are_probabilities=metric.name not in _OF_LABELS,
        less_is_better=metric.name != "brier_resolution",
    )
    for metric in (*_MEAN_LOSSES, *_OF_BINS, *_PARTS_OF_BRIER)
]
_ECE = next(metric for metric in BRIER_LOG_LOSS_ECE if metric.name == "ece")


def ece(bins: int = defaults.BINS, strategy: Strategy = "quantile") -> Metric:
    """The expected calibration error: how far positive rates are from mean scores, over bins.

    Scores are probabilities, as in `calibration`. The metric "ece" without parentheses has 10 bins
    of equal size: the same number as "ece(10, quantile)".

    Args:
        bins: How many bins, at least 1.
        strategy: "quantile": the rows of a slice are cut into bins of equal size, those of
            `calibration`. "uniform": bins of equal width from 0 to 1; a score at the edge of two
            bins is in the upper one, and 1 is in the last. Equal scores are always in one bin.

    Returns:
        A metric with the name "ece_15_uniform" for 15 bins of equal width, that verbs take as they
        take "ece": without an interval. Text is taken too: "ece(15, uniform)".

    Raises:
        ValueError: `bins` is below 1; `strategy` has an unknown value.
        polars.exceptions.InvalidOperationError: On `collect`: a score is not between 0 and 1.

    Examples:
        >>> import polars as pl
        >>> log = pl.DataFrame({"gold": [True, False] * 2, "p": [1.0, 0.75, 0.625, 0.25]})
        >>> log.mcc(score="p").score(metrics=["ece", "ece(2)", "ece(2, uniform)"]).row(0)[1:4]
        (0.34375, 0.21875, 0.15625)

    References:
        M. P. Naeini, G. F. Cooper, M. Hauskrecht, Obtaining well calibrated probabilities using
        Bayesian binning, AAAI (2015) 2901-2907. C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, On
        calibration of modern neural networks, ICML (2017): bins of equal width.
    """
    check_at_least("bins", bins, 1)
    check_choice("strategy", strategy, Strategy)
    return replace(_ECE, name=f"ece_{bins}_{strategy}", binning=Binning(int(bins), strategy))

"""How good scores are as probabilities.

Sums are over levels (see `levels_of`). In formulas, P and N count the positive and negative rows of
a slice, r the rows of a level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import Strategy, check_at_least, check_choice
from polars_mcc._base.errors_on_collect import Failure, unless
from polars_mcc._counts.sliced_log import EPSILON, PRED
from polars_mcc._metrics.mcc_and_one_vs_rest import Col
from polars_mcc._metrics.metric_type import RATIO, Metric, Range, Sum, Terms
from polars_mcc._metrics.score_levels_and_bins import Binning, outside

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

"""The metrics of scores: the order of scores, and how good they are as probabilities.

To add a metric, add an entry to `OF_SCORES`. Its sums are over levels (see `levels`). In formulas,
P and N count the positive and negative rows of a slice, p and q the rows of a level, tp and fp the
rows at or above a level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import polars as pl

from polars_mcc._counts.sliced import PRED, OfRow
from polars_mcc._log.plan_errors import Failure, message_of, unless
from polars_mcc._scores.class_scores import Col
from polars_mcc._scores.levels import outside
from polars_mcc._scores.metric import Metric, Range, Sum, Terms, has_both
from polars_mcc._scores.rates import RATIO

_DELONG = "DeLong et al. 1988, Biometrics 44"
_BRIER = "Brier 1950, Monthly Weather Review 78"
_BAMBER = "Bamber 1975, Journal of Mathematical Psychology 12"
_MURPHY = "Murphy 1973, Journal of Applied Meteorology 12"
_BIASED = "it is biased, and the bias depends on the rows per score or bin"

Loss: TypeAlias = Callable[[pl.Expr], tuple[pl.Expr, pl.Expr]]
"""From a probability, the loss of a positive row, and of a negative row."""
_ROUNDED, _OFF = 0.005, 0.05
"""How far the sum of the scores of a row may be from 1: by rounding to two digits, per class; and
at most, or the zeros of many classes would pass."""
_EPSILON = 2.0**-52
"""The least and, from 1 on, the largest probability in a log loss: as scikit-learn clips them."""
LARGEST_LOG_LOSS = -math.log(_EPSILON)


def _has_positive(terms: Terms) -> pl.Expr:
    return terms.positive.gold > 0


def _auc(terms: Terms) -> pl.Expr:
    """The area under the curve is a share of pairs: exact, and rounded once."""
    return pl.when(has_both(terms)).then(terms.concordant / 2 / terms.positive.var_gold)


def brier(score: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """The loss of a positive row, and of a negative row."""
    return (1 - score).pow(2), score.pow(2)


def log_loss(score: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    score = score.clip(_EPSILON, 1 - _EPSILON)
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
    are_outside = [((one < 0) | (one > 1), one) for _, one in each]
    wrong = pl.coalesce(pl.when(is_outside).then(one) for is_outside, one in are_outside)
    columns = (
        pl.when(is_outside).then(pl.lit(one.meta.output_name().removeprefix(PRED)))
        for is_outside, one in are_outside
    )
    total = pl.sum_horizontal([one for _, one in each], ignore_nulls=False)
    message = message_of(
        "the scores of a row add up to ",
        total,
        ", not to 1, as probabilities of classes do; scale the scores, or use a metric of their "
        "order, such as 'roc_auc'",
    )
    is_off = (total - 1).abs() > min(_ROUNDED * len(each), _OFF) + 1e-9
    of_column = (" of '", pl.coalesce(columns), "'")
    return unless(score, outside(wrong.is_not_null(), wrong, *of_column), Failure(is_off, message))


def _mean_loss(
    name: str,
    loss: Loss,
    formula: str,
    source: str,
    *,
    peer: str,
    of_row: OfRow,
    largest: float = 1.0,
) -> Metric:
    """The mean of a loss of each row."""

    def total(col: Col) -> pl.Expr:
        positive, negative = loss(col("score"))
        return (col("positive") * positive + col("negative") * negative).sum()

    return Metric(
        name,
        lambda terms: terms["total"] / terms.n,
        formula,
        source,
        Range(0, largest),
        "",
        (peer,),
        levels={"total": total},
        of_row=of_row,
        are_probabilities=True,
        less_is_better=True,
    )


def _decomposed(
    name: str,
    value: Callable[[Terms], pl.Expr],
    formula: str,
    sum_: Sum | None = None,
    *,
    are_probabilities: bool = False,
    no_interval: str = _BIASED,
    less: bool = True,
) -> Metric:
    """A part of the Brier score, over the distinct scores of a slice."""
    return Metric(
        f"brier_{name}",
        value,
        formula,
        _MURPHY,
        RATIO,
        levels={} if sum_ is None else {"total": sum_},
        no_interval=no_interval,
        are_probabilities=are_probabilities,
        less_is_better=less,
    )


def _base_rate(terms: Terms) -> pl.Expr:
    return terms.positive.gold.cast(pl.Float64) / terms.s.cast(pl.Float64)


_IS_KNOWN = pl.col("independent") > 1 + 1e-9  # One row says nothing about chance.
_RATE, _ROWS = pl.col("rate"), pl.col("rows")
_DISTANCE = _RATE - pl.col("score_mean")
_CHANCE = _RATE * (1 - _RATE) / (pl.col("independent") - 1)
_OF_BINS: Mapping[str, Sum] = {
    "distance": lambda _: (_ROWS * _DISTANCE.abs()).sum(),
    "known": lambda _: pl.when(_IS_KNOWN).then(_ROWS).sum(),
    "squares": lambda _: pl.when(_IS_KNOWN).then(_ROWS * (_DISTANCE.pow(2) - _CHANCE)).sum(),
}


def _calibration_error(terms: Terms) -> pl.Expr:
    """The squared distances, without what chance alone adds to them."""
    square = (terms["squares"] / terms["known"]).clip(0)
    return pl.when(terms["known"] > 0).then(square.sqrt())


def _of_bins(
    name: str,
    value: Callable[[Terms], pl.Expr],
    formula: str,
    source: str,
    undefined: str = "",
) -> Metric:
    """A distance between the rates and the mean scores of bins."""
    return Metric(
        name,
        value,
        formula,
        source,
        RATIO,
        undefined,
        bins=_OF_BINS,
        no_interval=_BIASED,
        are_probabilities=True,
        less_is_better=True,
    )


OF_SCORES = [
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
    _mean_loss(
        "brier",
        brier,
        "mean of (score - gold)²",
        _BRIER,
        peer="scikit-learn: brier_score_loss",
        of_row=_distance,
    ),
    _mean_loss(
        "log_loss",
        log_loss,
        "mean of -ln of the score of the gold class",
        "Good 1952, Journal of the Royal Statistical Society B 14",
        peer="scikit-learn: log_loss",
        of_row=_of_gold,
        largest=LARGEST_LOG_LOSS,
    ),
    _of_bins(
        "calibration_error",
        _calibration_error,
        "√ Σ r/n · ((rate - mean score)² - rate (1 - rate)/(r - 1)), over bins of r > 1 rows",
        "Kumar et al. 2019, arXiv 1909.10155",
        "no bin of two rows (null)",
    ),
    _of_bins(
        "ece",
        lambda terms: terms["distance"] / terms.n,
        "Σ r/n · abs(rate - mean score), over bins of r rows",
        "Naeini et al. 2015, AAAI",
    ),
    _decomposed(
        "reliability",
        lambda terms: terms["total"] / terms.n,
        "Σ r/n · (score - rate)², over scores of r rows",
        lambda col: (
            (col("score") * (col("positive") + col("negative")) - col("positive")).pow(2)
            / (col("positive") + col("negative"))
        ).sum(),
        are_probabilities=True,
    ),
    _decomposed(
        "resolution",
        lambda terms: (terms["total"] / terms.n - _base_rate(terms).pow(2)).clip(0),
        "Σ r/n · (rate - P/n)², over scores of r rows",
        lambda col: (col("positive").pow(2) / (col("positive") + col("negative"))).sum(),
        less=False,
    ),
    _decomposed(
        "uncertainty",
        lambda terms: terms.positive.var_gold / terms.rows_squared,
        "PN / n²",
        no_interval="it is of the labels alone",
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
OF_SCORES = [replace(metric, is_of_scores=True) for metric in OF_SCORES]

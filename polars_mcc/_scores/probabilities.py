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

import numpy as np
import polars as pl

from polars_mcc._counts.sliced import PRED, OfRow
from polars_mcc._log.plan_errors import Failure, told, unless
from polars_mcc._scores.column import Col, Column, Columns, Floats
from polars_mcc._scores.levels import Levels, outside
from polars_mcc._scores.metric import Metric, Moves, Range, Sum, Terms, has_both
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


def _has_positive(terms: Terms) -> pl.Expr:
    return terms.positive.gold > 0


def _auc(terms: Terms) -> pl.Expr:
    """The area under the curve is a share of pairs: exact, and rounded once."""
    return pl.when(has_both(terms)).then(terms.concordant / 2 / terms.positive.var_gold)


def _auc_moves(x: Levels) -> Moves:
    """A row moves the area by its placement: the share of the other class that it is beyond.

    DeLong's variance gives the worth. It may be 0, so the worth has a limit: the larger worth of
    two variances that are never 0. One is the variance of Hanley and McNeil (1982), for the worse
    of two shapes. The other is DeLong's variance with half a row more at each end of each class.
    """
    all_p, all_n, both = x.all_positive, x.all_negative, x.all_positive + x.all_negative
    above = (2 * (all_n - x.fp) + x.negative) / (2 * all_n)  # negatives below a positive: a share
    below = (2 * x.tp - x.positive) / (2 * all_p)  # positives above a negative: a share
    area = x.total(x.positive * above) / all_p
    by_positive = (above - area) * both / all_p * _unbiased(x, all_p)
    by_negative = (below - area) * both / all_n * _unbiased(x, all_n)
    p, n = all_p * x.per_weight, all_n * x.per_weight
    other_p, other_n = (np.clip(rows - 1, 0, None) for rows in (p, n))
    up, down = (1 - area) / (2 - area), area / (1 + area)
    shapes = np.fmax(other_p * up + other_n * down, other_n * up + other_p * down)
    (mean_p, square_p), (mean_n, square_n) = (
        _smoothed(x, x.total(count * place), x.total(count * place**2), size)
        for count, place, size in ((x.positive, above, all_p), (x.negative, below, all_n))
    )
    mean = (mean_p + mean_n) / 2
    spread = (square_p - mean_p**2) / p + (square_n - mean_n**2) / n
    most = np.fmax(p * n / (1 + shapes), mean * (1 - mean) / spread) / (p + n)
    squares = x.positive * by_positive**2 + x.negative * by_negative**2
    observed = area * (1 - area) / (x.total(squares) / both)
    worth = np.where(np.isfinite(observed), np.fmin(observed, most), most)
    return Moves(by_positive, by_negative, x.rows.first(area), x.rows.first(worth))


def _smoothed(
    x: Levels,
    total: Floats,
    squares: Floats,
    weight: Floats,
    *,
    more: float = 0.5,
    largest: Floats | float = 1.0,
) -> tuple[Floats, Floats]:
    """The mean and the mean square of values with so many rows more of 0, and of the largest."""
    size = weight * x.per_weight + 2 * more
    mean = (total * x.per_weight + more * largest) / size
    return mean, (squares * x.per_weight + more * largest * largest) / size


def _unbiased(x: Levels, size: Floats) -> Floats:
    """DeLong's variance of a mean divides by its rows minus 1."""
    rows = size * x.per_weight
    return np.sqrt(np.where(rows > 1, rows / (rows - 1), 1.0))


def _ap_moves(x: Levels) -> Moves:
    """A positive row adds its own precision. Each row moves the precision at and below its level.

    The worth comes from a log with two half rows more, a positive and a negative one, above all
    other rows.
    """
    moved, mean = _ap_with(x, 0.0)
    (up, down), smoothed = _ap_with(x, 0.5)
    p, n = x.all_positive * x.per_weight, x.all_negative * x.per_weight
    of_p, of_n = (
        x.total(count * square) * x.per_weight
        for count, square in ((x.positive, up**2), (x.negative, down**2))
    )
    # The row more has the precision 1/2, and adds a quarter to what is at or below it.
    more, less = (x.total(count) + 0.25 for count in _ap_shares(x, 0.5))
    top = (0.5 + more - smoothed) ** 2, less**2
    variance = (of_p + top[0] / 2) * (p + 0.5) / p + (of_n + top[1] / 2) * (n + 0.5) / n
    variance = np.where(n > 0, variance / (p + 0.5) ** 2, np.nan)
    worth = smoothed * (1 - smoothed) / variance / (p + n)
    both = (x.all_positive + x.all_negative) / x.all_positive
    by_positive, by_negative = (move * both for move in moved)
    return Moves(by_positive, by_negative, x.rows.first(mean), x.rows.first(worth))


def _ap_shares(x: Levels, more: float) -> tuple[Floats, Floats]:
    """How the precision of the positive rows of a level changes by a row at or above it."""
    p, fp, tp = (count * x.per_weight for count in (x.positive, x.fp, x.tp))
    above = (tp + fp + 2 * more) ** 2
    return p * (fp + more) / above, p * (tp + more) / above


def _ap_with(x: Levels, more: float) -> tuple[tuple[Floats, Floats], Floats]:
    """How far rows move the precision of all positive rows, times P; and its mean.

    `more` is how many positive, and negative, rows are above all others.
    """
    up, down = (x.total(share) - x.rows.cumulated(share) + share for share in _ap_shares(x, more))
    p, tp, fp = (count * x.per_weight for count in (x.all_positive, x.tp, x.fp))
    precision = (tp + more) / (tp + fp + 2 * more)
    total = x.total(x.positive * precision) * x.per_weight
    mean = (total + more / 2) / (p + more)
    return (precision + up - mean, -down), mean


def _mean_moves(loss: Loss, *, largest: float) -> Callable[[Levels], Moves]:
    """A row moves a mean by its own value.

    The worth is that of a log with a row more without a loss, and a row more with the largest loss
    that a score of the slice allows.
    """

    def moves(x: Levels) -> Moves:
        score = Column(Columns(x.rows, {}), x.score)
        positive, negative = (one.value for one in loss(score))  # type: ignore[arg-type, attr-defined]
        total = x.total(x.positive * positive + x.negative * negative)
        squares = x.total(x.positive * positive**2 + x.negative * negative**2)
        allowed = x.rows.spread(x.rows.max(np.fmax(positive, negative)))
        rows = x.all_positive + x.all_negative
        mean, square = _smoothed(x, total, squares, rows, more=1.0, largest=allowed)
        worth = x.rows.first(mean * (largest - mean) / (square - mean**2))
        observed = total / rows
        return Moves(positive - observed, negative - observed, x.rows.first(observed), worth)

    return moves


def _brier(score: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """The loss of a positive row, and of a negative row."""
    return (1 - score).pow(2), score.pow(2)


def _log_loss(score: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
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
    message = told(
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
        moves=_mean_moves(loss, largest=largest),
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
        moves=_auc_moves,
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
        moves=_ap_moves,
        has_gold=_has_positive,
    ),
    _mean_loss(
        "brier",
        _brier,
        "mean of (score - gold)²",
        _BRIER,
        peer="scikit-learn: brier_score_loss",
        of_row=_distance,
    ),
    _mean_loss(
        "log_loss",
        _log_loss,
        "mean of -ln of the score of the gold class",
        "Good 1952, Journal of the Royal Statistical Society B 14",
        peer="scikit-learn: log_loss",
        of_row=_of_gold,
        largest=-math.log(_EPSILON),
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

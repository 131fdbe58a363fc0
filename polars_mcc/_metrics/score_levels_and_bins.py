"""Pairs of (gold, score) → levels: a row per slice and score, with cumulative counts.

A level is a threshold too: the rows at or above it are `tp` and `fp`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import Strategy
from polars_mcc._base.errors_and_warnings import Failure, unless
from polars_mcc._counts.class_counts import is_scored
from polars_mcc._counts.sliced_log import CLASS, MODEL, PRED, SlicedLog

BOTH = ("positive", "negative")
SQUARES = ("squares_positive", "squares_negative")
"""The sums of squared sample weights, of the rows of either class."""


class Binning(NamedTuple):
    """How the levels of a slice are put into bins: of equal size, or of equal width from 0 to 1.

    Equal scores are in one bin. A score at the edge of two bins of equal width is in the upper one.
    With `bins` of None, each score is a bin.
    """

    bins: int | None = defaults.BINS
    strategy: Strategy = "quantile"

    @property
    def column(self) -> str:
        """The column of levels with their bin."""
        return f"bin:{self.bins}:{self.strategy}"

    def place(self) -> pl.Expr:
        """The number of the bin of a level."""
        if self.bins is None:
            return pl.col("score").rank("dense")
        if self.strategy == "uniform":
            edges = pl.Series([edge / self.bins for edge in range(1, self.bins)], dtype=pl.Float64)
            return pl.lit(edges).search_sorted(pl.col("score"), side="right").cast(pl.UInt32)
        n = pl.col("all_positive") + pl.col("all_negative")
        above = pl.col("tp") + pl.col("fp")
        middle = (n - above + (pl.col("positive") + pl.col("negative")) / 2).cast(pl.Float64)
        place = (middle / n.cast(pl.Float64) * self.bins).floor().clip(0, self.bins - 1)
        return place.cast(pl.UInt32)


BINNING = Binning()
"""That of metrics without a parameter: ten bins of equal size."""


def by_score(log: SlicedLog, pairs: pl.LazyFrame) -> pl.LazyFrame:
    """Count the `positive` and `negative` rows of each slice and `score`, in the wide dtype."""
    counted = {BOTH: pl.col("n").cast(log.numbers.wide)}
    counted |= {} if log.is_frequency else {SQUARES: pl.col("squares")}
    sides = {
        side: pl.when(is_side).then(count).otherwise(0)
        for sides, count in counted.items()
        for side, is_side in zip(sides, (pl.col("gold"), ~pl.col("gold")), strict=True)
    }
    scored = pairs.filter(is_scored(log) & (pl.col("n") > 0)).select(
        *log.slice, score="pred", **sides
    )
    return merged(log, scored)


def merged(log: SlicedLog, levels: pl.LazyFrame) -> pl.LazyFrame:
    """Add up equal scores of a slice."""
    return levels.group_by(*log.slice, "score").agg(pl.col(*BOTH, "^squares_.*$").sum())


def in_units(log: SlicedLog, levels: pl.LazyFrame) -> pl.LazyFrame:
    """Turn the counts of levels into units of the slice, as Int128, and add the `unit`."""
    unit = log.numbers.unit(log.within_slice(pl.sum_horizontal(BOTH).sum()))
    return levels.with_columns(unit=unit).with_columns(
        log.numbers.in_units(pl.col(name), pl.col("unit")).alias(name) for name in BOTH
    )


def levels_of(
    log: SlicedLog, pairs: pl.LazyFrame, binnings: Iterable[Binning] = ()
) -> pl.LazyFrame:
    """The levels of each slice, from the largest score down.

    Six columns count rows in units: `positive` and `negative` the rows of the level, `tp` and `fp`
    the rows at or above the level, `all_positive` and `all_negative` the rows of the slice. `score`
    is `pred` as a float, and `epsilon` that of its dtype. Each binning has a column.
    """
    positive, negative = map(pl.col, BOTH)
    counted = in_units(log, by_score(log, pairs)).filter((positive != 0) | (negative != 0))
    return (
        counted.sort(*log.slice, "score", descending=[False] * len(log.slice) + [True])
        .with_columns(
            pl.col("score").cast(pl.Float64),
            pred="score",
            epsilon=pl.lit(log.epsilon),
            tp=log.within_slice(positive.cum_sum()),
            fp=log.within_slice(negative.cum_sum()),
            all_positive=log.within_slice(positive.sum()),
            all_negative=log.within_slice(negative.sum()),
        )
        .with_columns(**{binning.column: binning.place() for binning in binnings})
    )


def in_floats(log: SlicedLog, levels: pl.LazyFrame) -> pl.LazyFrame:
    """The levels with weights as floats, in place of numbers of units.

    `n` is the weight of a level in the wide dtype.
    """
    counts = (*BOTH, "tp", "fp", "all_positive", "all_negative")
    weights = log.numbers.from_units(pl.col(*counts), pl.col("unit")).cast(pl.Float64)
    return levels.with_columns(
        weights, n=log.numbers.from_units(pl.sum_horizontal(BOTH), pl.col("unit"))
    )


def of_bins(log: SlicedLog, levels: pl.LazyFrame, binning: Binning) -> pl.LazyFrame:
    """The bins of each slice: the rows, `n` and as a float; their scores and positive `rate`.

    `bin` is its number, with gaps. `independent` is how many rows of equal weight would be as good.
    """
    positive, negative, score = map(pl.col, (*BOTH, "score"))
    rows = (positive + negative).sum()
    ends = {"n": pl.col("n").sum(), "score_min": score.min(), "score_max": score.max()}
    sums = {
        "rows": rows,
        "independent": rows if log.is_frequency else rows.pow(2) / pl.sum_horizontal(SQUARES).sum(),
        "score_mean": ((positive + negative) * score).sum() / rows,
        "rate": positive.sum() / rows,
    }
    levels = levels.rename({binning.column: "bin"})
    return log.split_by("bin").per_slice_in_order(levels, ["pred"], sums, **ends)


def probabilities(log: SlicedLog, levels: pl.LazyFrame) -> pl.LazyFrame:
    """Raise an error on `collect` if a score is no probability."""
    score, column = pl.col("score"), pl.col(MODEL) if log.has_models else pl.lit(log.models[0])
    if CLASS in log.slice:
        column = pl.col(CLASS).cast(pl.String).str.strip_prefix(PRED)
    of_column = () if "baseline" in log.pair_splits else (" of '", column, "'")
    is_outside = (score < 0) | (score > 1)
    return levels.with_columns(score=unless(score, outside(is_outside, score, *of_column)))


def outside(is_outside: pl.Expr, score: pl.Expr, *of_column: str | pl.Expr) -> Failure:
    """The failure of a score that is no probability."""
    words = (
        " is not between 0 and 1, as a probability is; scale the scores, use a metric of their "
        "order, such as 'roc_auc', or ask calibration for a bin per score (bins=None, --bins none)"
    )
    return Failure(is_outside, ("the score ", score, *of_column, words))

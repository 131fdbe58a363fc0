"""Pairs of (gold, score) → R_K and other metrics at every threshold, from cumulative sums.

A row is predicted positive if its score is at least the threshold. Rows are counted once,
by score. The counts of a threshold are cumulative sums, from the largest score down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TypeAlias

import polars as pl

from polars_mcc._base import cuts_of_numbers
from polars_mcc._base.allowed_values import check_at_least
from polars_mcc._base.cuts_of_numbers import Number
from polars_mcc._counts.class_counts import is_scored, unscored_sums
from polars_mcc._counts.pair_counts import pairs
from polars_mcc._counts.sliced_log import PRED, SlicedLog
from polars_mcc._metrics.exact_scores import defined, measure
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.positive_class_rates import POSITIVE_CLASS_RATES
from polars_mcc._metrics.score_levels_and_bins import BOTH, by_score, in_units, merged

_COUNTS = [metric for metric in POSITIVE_CLASS_RATES if metric.is_count]
COUNTS = [metric.name for metric in _COUNTS]  # tp, fp, fn and tn


Kept: TypeAlias = Mapping[str, pl.Expr]
"""The conditions of a threshold, each in words, such as `fpr ≤ 0.2`."""


def curve_columns(metrics: Sequence[Metric]) -> list[str]:
    """The columns of the answer with a row per threshold."""
    return ["threshold", "n", *COUNTS, *(metric.name for metric in metrics), "n_null"]


def best_columns(metrics: Sequence[Metric], kept: Kept) -> list[str]:
    """The columns of the answer with the best threshold of each slice."""
    names = [metric.name for metric in metrics]
    shared = ["shared_threshold", *map("{}_shared".format, names), "loss"]
    return ["n", "threshold", *names, *shared, *(["verdict"] if kept else []), "n_null"]


def check_of_counts(metrics: Sequence[Metric]) -> None:
    """Raise a ValueError unless all metrics need only tp, fp, fn and tn."""
    for metric in metrics:
        if metric.classes or metric.needs_pairs:
            raise ValueError(
                f"metric '{metric.name}' is not of the counts of two classes, which are all that a "
                "threshold makes; use a metric such as 'mcc', 'f1', 'tpr', 'accuracy' or 'kappa'"
            )


@dataclass(frozen=True)
class ScoreThresholds:
    """The thresholds of a log: `listed` ones, a number of `quantiles`, or every score.

    With `listed`, the log holds in place of a score how many listed thresholds the score reaches.
    """

    log: SlicedLog
    listed: pl.Series | None = None
    quantiles: int | None = None

    @classmethod
    def of(cls, log: SlicedLog, thresholds: int | Sequence[Number] | None) -> ScoreThresholds:
        """Check the thresholds that a user asks for. A list must be in rising order."""
        if thresholds is None:
            return cls(log)
        if isinstance(thresholds, Integral):
            check_at_least("thresholds", thresholds, 1)
            return cls(log, quantiles=int(thresholds))
        cuts = cuts_of_numbers.as_cuts(thresholds)
        if not cuts:
            raise ValueError(f"thresholds must be numbers in rising order, got {thresholds!r}")
        return cls(_cut_at(log, cuts), listed=cuts_of_numbers.as_series(cuts))

    def curve(self, metrics: Sequence[Metric]) -> pl.LazyFrame:
        """Compute the counts and metrics of each slice at each threshold."""
        log, (levels, slices) = self.log, self._levels()
        points = self._points(log, levels, self._grid(levels))
        scored = _scores_at(log, points, [*_COUNTS, *metrics], log.zero_division)
        scored = scored.drop("n", *log.unscored).with_columns(threshold=self._threshold())
        # A slice without any score has no threshold, but keeps its row with `n_null`.
        columns = [*curve_columns(metrics), *log.unscored[1:]]
        return log.beside(slices, scored).select(*log.slice, *columns)

    def best(self, metrics: Sequence[Metric], kept: Kept) -> pl.LazyFrame:
        """Find the best threshold of each slice, the shared best one, and the loss by sharing.

        The best by the first metric is taken of the thresholds that keep all conditions.
        """
        log, (levels, slices) = self.log, self._levels()
        whole, name = log.whole, metrics[0].name
        grid = self._grid(levels)
        shared = self._best(whole, _of_whole(log, levels), grid, metrics, kept)
        shared = shared.select(*whole.slice, cut="score")
        own = self._best(log, levels, grid, metrics, kept)
        points = self._points(log, levels, shared).drop_nulls("score")
        at_shared = _valued(log, points, metrics).select(
            *log.slice,
            *(pl.col(one.name).alias(f"{one.name}_shared") for one in metrics),
            shared="score",
            shared_is_kept=pl.all_horizontal(pl.lit(value=True), *kept.values()),
        )
        better, worse = pl.col(name), pl.col(f"{name}_shared")
        loss = worse - better if metrics[0].less_is_better else better - worse
        conditions = " and ".join(kept)
        verdicts = {
            "not judged": pl.col("is_kept").is_null(),
            f"no threshold keeps {conditions}": ~pl.col("is_kept"),
            f"no shared threshold keeps {conditions}": pl.col("shared").is_null(),
            f"the shared threshold does not keep {conditions}": ~pl.col("shared_is_kept"),
        }
        said = [pl.when(is_so).then(pl.lit(verdict)) for verdict, is_so in verdicts.items()]
        return (
            log.beside(log.beside(slices, own), at_shared)
            .with_columns(
                threshold=self._threshold(),
                shared_threshold=self._threshold("shared"),
                # Both may be infinite. A shared threshold may miss the bounds of a slice.
                loss=pl.when(better == worse).then(0.0).otherwise(loss.clip(lower_bound=0.0)),
                verdict=pl.coalesce(*said, pl.lit("kept")),
            )
            .select(*log.slice, *best_columns(metrics, kept), *log.unscored[1:])
        )

    def _levels(self) -> tuple[pl.LazyFrame, pl.LazyFrame]:
        """Count positive and negative rows per slice and score; and rows per slice."""
        log = self.log
        counted = pairs(log).cache()
        n = pl.col("n").cast(log.numbers.wide).filter(is_scored(log))
        sums = {"n": n.sum(), **unscored_sums(log)}
        slices = log.per_slice(counted, **sums).with_columns(
            log.numbers.as_count(pl.col(name)).alias(name) for name in sums
        )
        levels = by_score(log, counted)
        return (levels if self.listed is not None else self._with_nobody(levels)).cache(), slices

    def _with_nobody(self, levels: pl.LazyFrame) -> pl.LazyFrame:
        """Add a level without rows above every score: a threshold that nobody reaches."""
        log, dtype = self.log, self.log.pred_dtype
        levels = levels.with_columns(pl.col("score").cast(cuts_of_numbers.with_room_above(dtype)))
        above = cuts_of_numbers.above_all(log.whole.within_slice(pl.col("score").max()), dtype)
        counts = pl.exclude(*log.slice, "score")
        nobody = levels.with_columns(counts * 0, score=above)
        return merged(log, pl.concat([levels, nobody]))

    def _grid(self, levels: pl.LazyFrame) -> pl.LazyFrame | None:
        """The thresholds that all slices share, or None if each slice is cut at its own scores."""
        whole = self.log.whole
        if self.listed is not None:
            places = pl.LazyFrame({"cut": range(1, len(self.listed) + 1)})
            return self.log.per_model(places.cast(self.log.pred_dtype))
        if self.quantiles is None:
            return None
        n = pl.sum_horizontal(BOTH).cast(pl.Float64)
        above = whole.within_slice(n.cum_sum())
        share = above / whole.within_slice(n.sum()) * self.quantiles + 1e-9
        before = (above - n) / whole.within_slice(n.sum()) * self.quantiles + 1e-9
        is_top = pl.col("score") == whole.within_slice(pl.col("score").max())
        return (
            _of_whole(self.log, levels)
            .sort("score", descending=True)
            .with_columns(passes=is_top | (share.floor() > before.floor()))
            .filter("passes")
            .select(*whole.slice, cut="score")
        )

    def _points(
        self, log: SlicedLog, levels: pl.LazyFrame, grid: pl.LazyFrame | None
    ) -> pl.LazyFrame:
        """Count each slice at each threshold, in the units of the slice."""
        whole = log.whole
        levels = in_units(log, levels)
        positive, negative = map(pl.col, BOTH)
        all_of = {"all_positive": positive.sum(), "all_negative": negative.sum()}
        totals = log.per_slice(levels, **all_of, unit=pl.col("unit").max())
        levels = levels.select(*log.slice, "score", *BOTH, is_cut=pl.lit(grid is None))
        if grid is not None:
            # Without keys, a log without scored rows has a row of totals, all null.
            points = whole.beside(totals.drop_nulls("unit").select(*log.slice, "unit"), grid)
            no_rows = dict.fromkeys(BOTH, pl.lit(0, pl.Int128))
            cuts = points.select(*log.slice, score="cut", **no_rows, is_cut=pl.lit(value=True))
            levels = pl.concat([levels, cuts])
        # A threshold comes after the rows that reach it.
        order = [*log.slice, "score", "is_cut"]
        return (
            log.beside(levels, totals)
            .sort(order, descending=[name == "score" for name in order])
            .with_columns(
                tp=log.within_slice(positive.cum_sum()), fp=log.within_slice(negative.cum_sum())
            )
            .filter("is_cut")
        )

    def _best(
        self,
        log: SlicedLog,
        levels: pl.LazyFrame,
        grid: pl.LazyFrame | None,
        metrics: Sequence[Metric],
        kept: Kept,
    ) -> pl.LazyFrame:
        """Find the best threshold of each slice. Of equally good ones, take the largest.

        `is_kept` is false if no threshold keeps the conditions. A slice without the gold rows that
        the metrics need has no row.
        """
        names = [metric.name for metric in metrics]
        points = _valued(log, self._points(log, levels, grid), metrics).drop_nulls(names)
        points = points.with_columns(is_kept=pl.all_horizontal(pl.lit(value=True), *kept.values()))
        for column in ("is_kept", names[0], "score"):
            is_least = column == names[0] and metrics[0].less_is_better
            best = pl.col(column).min() if is_least else pl.col(column).max()
            points = points.filter(pl.col(column) == log.within_slice(best))
        found = pl.when("is_kept").then(pl.col("score", *names))
        return points.select(*log.slice, "is_kept", found)

    def _threshold(self, score: str = "score") -> pl.Expr:
        if self.listed is None:
            return pl.col(score)
        places, listed = range(1, len(self.listed) + 1), self.listed
        return pl.col(score).replace_strict(places, listed, default=None, return_dtype=listed.dtype)


def _cut_at(log: SlicedLog, thresholds: Sequence[Number]) -> SlicedLog:
    """Replace each score by the number of thresholds that it reaches."""
    schema = log.frame.collect_schema()

    def reached(column: str) -> pl.Expr:
        score, dtype = pl.col(column), schema[column]
        are_reached = (cuts_of_numbers.is_above(score, dtype, at, or_at=True) for at in thresholds)
        number = pl.sum_horizontal(reached.cast(pl.UInt32) for reached in are_reached)
        return pl.when(score.is_not_null()).then(number).alias(column)

    frame = log.frame.with_columns(reached(PRED + name) for name in log.models)
    return replace(log, frame=frame, pred_dtype=pl.UInt32())


def _of_whole(log: SlicedLog, levels: pl.LazyFrame) -> pl.LazyFrame:
    """Count positive and negative rows per score, over all rows.

    Each row counts once, also with several sets of keys.
    """
    return merged(log.whole, log.once(levels))


def _valued(log: SlicedLog, points: pl.LazyFrame, metrics: Sequence[Metric]) -> pl.LazyFrame:
    """Score each point by metrics. 0/0 is 0: it is a score that a threshold really has.

    A score is null without the gold rows that its metric needs, which no threshold can change.
    """
    has_gold = {
        metric.name: replace(defined(metric), name=f"has_gold:{metric.name}") for metric in metrics
    }
    values = _scores_at(log, points, [*metrics, *has_gold.values()], 0.0)
    return values.with_columns(
        pl.when(pl.col(has.name).is_not_null()).then(name) for name, has in has_gold.items()
    )


def _scores_at(
    log: SlicedLog, points: pl.LazyFrame, metrics: Sequence[Metric], zero_division: float | None
) -> pl.LazyFrame:
    """Score the two classes of each slice and threshold, from `tp` and `fp` in units."""
    tp, fp = pl.col("tp"), pl.col("fp")
    positive, negative = pl.col("all_positive"), pl.col("all_negative")
    points = points.cache()
    sides = {
        True: (positive, tp + fp, tp),
        False: (negative, positive + negative - tp - fp, negative - fp),
    }
    classes = pl.concat(
        points.select(
            *(*log.slice, "score", "unit"),
            label=pl.lit(label),
            gold_n=gold,
            pred_n=pred,
            hit_n=hits,
            null_n=pl.lit(0, log.numbers.wide),
        )
        for label, (gold, pred, hits) in sides.items()
    )
    at_each = replace(log, zero_division=zero_division).split_by("score")
    return measure(at_each, classes, metrics, positive=pl.col("label"))

"""Counted pairs → the scores of slices, with limits, and their scores given the labels.

`Scorer` takes and gives arrays. `estimate` makes them from frames; a search counts codes itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from polars_mcc._counts.class_counts import classes_of_pairs, is_scored
from polars_mcc._counts.count_rows import merged
from polars_mcc._counts.reweighted_pairs import reweighted
from polars_mcc._counts.sliced_log import EPSILON, SlicedLog
from polars_mcc._intervals import influence_of_rows
from polars_mcc._intervals.auc_brier_influence import INFLUENCES, Levels
from polars_mcc._intervals.count_arrays import Classes, Counted, CountedCells, Draws, floats
from polars_mcc._intervals.influence_of_rows import Influence
from polars_mcc._intervals.interval_methods import Interval, Sampling, interval, log_interval
from polars_mcc._intervals.interval_options import (
    IntervalOptions,
    limit_columns,
    with_limit_columns,
)
from polars_mcc._intervals.never_predicted_classes import between
from polars_mcc._intervals.smoothed_tables import Pools, expected_pairs, tables_of
from polars_mcc._metrics.exact_scores import measure_pairs
from polars_mcc._metrics.metric_type import Metric, Needed
from polars_mcc._metrics.slice_sums import Flags, Floats, Ints, Segments, added_up, numbered

_EXACT, _WORTH = 2**53, 2**14
"""The largest sum of integers that is left to arrays, and the least pairs: a plan takes fewer."""


class Measured(NamedTuple):
    """The scores of slices with their limits, and the influence of one row of each pair."""

    score: Floats
    interval: Interval
    phi: Floats


class Influences(NamedTuple):
    """How far the rows of pairs move each metric."""

    of_metrics: dict[str, Influence]
    pairs: Counted
    """With the places of classes, or of levels."""
    classes: Classes | None
    """The classes of labels; None for scores."""
    is_known: dict[str, Flags]
    """For each metric: whether a slice has the classes of its pool that a comparison needs."""


class Given(NamedTuple):
    """What slices would score given their labels: arrays (slices,)."""

    expected: Floats
    se: Floats
    step: Floats
    """How far the prediction of one row moves the score, at most."""


@dataclass(frozen=True)
class Scorer:
    """Metrics of coded pairs, all of labels or all of scores."""

    metrics: Sequence[Metric]
    labels: pl.Series
    """All labels, in the order of their codes. In a log of scores: all scores, and 0 and 1."""
    positive: pl.Expr | None
    """Whether a label is the positive one."""
    zero_division: float | None
    """What a score at 0/0 is; None: NaN."""
    is_frequency: bool
    """Whether a weight counts rows."""
    rounding: float = 0.0
    """The share of a sum of weights that its order may change."""
    is_reweighted: bool = False
    """Whether labelled rows stand for others."""
    epsilon: float = EPSILON
    """The machine epsilon of the scores."""

    @cached_property
    def is_positive(self) -> Floats:
        """1 for the positive label: (labels,)."""
        is_positive = pl.lit(value=False) if self.positive is None else self.positive
        labels = self.labels.alias("label").to_frame()
        flags = labels.with_columns(is_positive=is_positive.cast(pl.Float64).fill_null(0.0))
        return flags["is_positive"].to_numpy()

    def values(self, margins: Sequence[Ints], zero_division: float | None) -> Floats:
        """The scores of slices from counts of all labels: (slices, labels).

        The counts are how often a label is gold, predicted, and both. Of a metric of scores: of
        positive rows with each score, and of negative rows.
        """
        [metric] = self.metrics
        occurs = (margins[0] > 0) | (margins[1] > 0)
        slices, codes = np.nonzero(occurs)
        number, counts = len(occurs), [margin[occurs] for margin in margins]
        with np.errstate(all="ignore"):
            if metric.is_of_scores:
                # The largest score of a slice is first.
                down = np.lexsort([-codes, slices])
                rows = Segments.of(slices, number)
                both = (count[down].astype(np.float64) for count in counts)
                values = self.labels.cast(pl.Float64).to_numpy()[codes[down]]
                levels = Levels.of(rows, values, *both, epsilon=self.epsilon)
                return INFLUENCES[metric.influence or metric.name](levels).value
            t, p, c = counts
            s = margins[0].sum(1)[slices]
            differences: tuple[Ints, ...] = t - c, p - c, s - t - p + c
            if self.rounding:  # What rounding leaves of float weights is nothing.
                least = s * self.rounding
                differences = tuple(np.where(x > least, x, 0.0) for x in differences)
            t, p, c, fn, fp, tn = (x.astype(np.float64) for x in (t, p, c, *differences))
            rows, is_positive = Segments.of(slices, number), self.is_positive[codes]
            classes = Classes(self.labels, rows, codes, t, p, c, fn, fp, tn, is_positive)
            return influence_of_rows.values_of(classes, metric, zero_division)

    def values_of_pairs(self, pairs: Counted, zero_division: float | None) -> Floats:
        """The scores of slices, from their pairs."""
        [metric] = self.metrics
        with np.errstate(all="ignore"):
            if metric.is_of_scores:
                return INFLUENCES[metric.influence or metric.name](self._levels_of(pairs)[0]).value
            classes, placed = self.classes(pairs)
            own = placed if metric.pairs else None
            return influence_of_rows.values_of(classes, metric, zero_division, own)

    def classes(self, pairs: Counted) -> tuple[Classes, Counted]:
        """The classes of labels of pairs, and the pairs with their places."""
        is_reweighted = self.is_reweighted
        return Classes.of(pairs, self.labels, self.is_positive, is_reweighted=is_reweighted)

    def influences(
        self,
        pairs: Counted,
        pools: Pools | None = None,
        of_pairs: tuple[Classes, Counted] | None = None,
        *,
        is_smoothed: bool = True,
    ) -> Influences:
        """How far rows move the scores of slices, which may be compared within pools.

        `of_pairs`: what `classes` gives, if it is known.
        """
        if any(metric.is_of_scores for metric in self.metrics):
            levels, placed = self._levels_of(pairs)
            of_metrics = influence_of_rows.influences_on_scores(levels, placed, self.metrics)
            return Influences(of_metrics, placed, None, {})
        classes, placed = of_pairs or self.classes(pairs)
        expected, is_known = None, {}
        if pools is not None:
            expected = expected_pairs(classes, pools)
            occurs = classes.t > 0, classes.p > 0
            here = (classes.rows.sum(side.astype(np.float64)) for side in occurs)
            numbers = *here, *expected.n_classes
            for metric in self.metrics:
                is_known[metric.name] = has_classes(metric.classes_needed, *numbers)
        of_metrics = {}
        if metrics := [metric for metric in self.metrics if not metric.pairs]:
            tables = tables_of(classes, placed, expected, is_smoothed=is_smoothed)
            of_metrics |= influence_of_rows.influences_on_classes(
                classes, tables, metrics, self.zero_division
            )
        if metrics := [metric for metric in self.metrics if metric.pairs]:
            of_metrics |= influence_of_rows.influences_on_pairs(
                classes, placed, metrics, expected, is_smoothed=is_smoothed
            )
        if pools is not None and (means := [metric for metric in self.metrics if metric.is_mean]):
            # A slice without rows of the dear class does not tell how much its cost varies.
            of_pools = replace(self, metrics=means).influences(pools.pairs, is_smoothed=is_smoothed)
            for name, moved in of_pools.of_metrics.items():
                of_metrics[name] = of_metrics[name].no_better_known_than(moved, pools.of_slice)
        return Influences(of_metrics, placed, classes, is_known)

    def measured(
        self,
        pairs: Counted,
        options: IntervalOptions,
        pools: Pools | None = None,
        draws: tuple[Draws, Ints] | None = None,
        exact: Mapping[str, Floats] | None = None,
        *,
        of_pairs: tuple[Classes, Counted] | None = None,
    ) -> dict[str, Measured]:
        """The scores of slices with their limits.

        `pools`: scores are compared within these. `draws`: clusters, and the pair of each of their
        cells. `exact`: the scores, if they are known; and `of_pairs`, what `classes` gives.
        """
        with np.errstate(all="ignore"):
            of_metrics, placed, classes, is_known = self.influences(pairs, pools, of_pairs)
            scores = exact or self._scores(of_metrics, classes)
            if draws is None:
                strata = placed.pred if self.is_reweighted else None
                own = Draws(pairs.number, placed.slices, placed.n, placed.squares, None, strata)
                draws = own, np.arange(len(placed.n))
            drawn, pair = draws
            sampling = Sampling(drawn.effective, drawn.n_clusters, self.is_frequency)
            never_predicted = {}
            if classes is not None and self.zero_division == 0:
                metrics = [
                    one for one in self.metrics if not (one.pairs or one.is_log or one.is_mean)
                ]
                gold = placed.gold[pair]
                never_predicted = between(classes, placed, drawn, gold, metrics, ci=options.ci)
            measured = {}
            for metric in self.metrics:
                name, score = metric.name, scores[metric.name]
                moved = of_metrics[name]
                phi = moved.phi[pair]
                variance = drawn.products(phi, phi) / drawn.size / drawn.size
                if metric.is_log and classes is not None:
                    is_0_0 = np.isnan(moved.value)
                    limits = log_interval(
                        metric, score, classes, placed, draws, is_0_0=is_0_0, ci=options.ci
                    )
                    measured[name] = Measured(score, limits, moved.phi)
                    continue
                limits = interval(score, moved, variance, sampling, options)
                if name in never_predicted:
                    limits = limits.widened_by(
                        score,
                        never_predicted[name],
                        moved,
                        is_exact=metric.is_share or options.method != "score",
                        is_compared=options.is_compared or pools is not None,
                    )
                has_limits = is_known.get(name, True) & (score != metric.no_interval_at)
                limits = Interval(*(np.where(has_limits, x, math.nan) for x in limits))
                measured[name] = Measured(score, limits, moved.phi)
            return measured

    def given_labels(self, pairs: Counted, pools: Pools) -> Given:
        """What slices would score, if gold labels were predicted at the rates of their pool.

        A slice that scores less errs more than its mix of labels explains.

        If the rates of the slice are the same, its row of the confusion matrix for a gold label i
        is a draw without replacement: n_i of the N_i rows with this label. The draws are
        independent. With the influence φ_ij of a row on the score, and the rates r_ij, the variance
        of the score is about

            1/n² · Σ_i n_i · (1 - n_i/N_i) · N_i/(N_i - 1) · Σ_j r_ij (φ_ij - Σ_j r_ij φ_ij)²
        """
        [metric] = self.metrics
        k, pool = len(self.labels), pools.pairs
        here, starts = np.unique(pairs.slices.astype(np.int64) * k + pairs.gold, return_index=True)
        rows = Segments(starts, len(pairs.n)).sum(pairs.n)
        of_pool, starts = np.unique(pool.slices.astype(np.int64) * k + pool.gold, return_index=True)
        of_labels = Segments(starts, len(pool.n))
        place = np.searchsorted(of_pool, pools.of_slice[here // k].astype(np.int64) * k + here % k)
        of_gold, at = of_labels.rows_of(place)
        pool_rows = of_labels.sum(pool.n)[place][of_gold]
        rate, own = pool.n[at] / pool_rows, rows[of_gold]
        slices, gold = here[of_gold] // k, here[of_gold] % k
        expected = Counted(pairs.number, slices, gold, pool.pred[at], own * rate, own * rate)
        with np.errstate(all="ignore"):
            of_metrics, _, classes, _ = self.influences(expected, is_smoothed=False)
            phi, of_slices = of_metrics[metric.name].phi, expected.rows
            labels = Segments(np.flatnonzero(np.diff(of_gold, prepend=-1)), len(of_gold))
            not_drawn = np.where(pool_rows > 1, (pool_rows - own) / (pool_rows - 1), 0.0)
            # Differences from the least φ: if all are equal, the variance is exactly 0.
            above = phi - labels.spread(labels.min(phi))
            mean = labels.spread(labels.sum(rate * above))
            squares = of_slices.sum(own * not_drawn * rate * (above - mean) ** 2)
            size = of_slices.sum(own * rate)
            step = of_slices.max(labels.spread(labels.max(above))) / size
            score = self._scores(of_metrics, classes)[metric.name]
            return Given(score, np.sqrt(squares / size**2), step)

    def _scores(
        self, of_metrics: Mapping[str, Influence], classes: Classes | None
    ) -> dict[str, Floats]:
        """The scores of slices in floats, with `zero_division` in place of 0/0."""
        scores = {name: moved.value for name, moved in of_metrics.items()}
        if classes is not None and self.zero_division is not None:
            for metric in self.metrics:
                if not metric.pairs and np.isnan(scores[metric.name]).any():
                    filled = influence_of_rows.values_of(classes, metric, self.zero_division)
                    scores[metric.name] = filled
        return scores

    def _levels_of(self, pairs: Counted) -> tuple[Levels, Counted]:
        """The levels of slices, and their pairs with places in these."""
        k, slices = len(self.labels), pairs.slices.astype(np.int64)
        ids, place = numbered(slices * k + (k - 1 - pairs.pred))
        values = self.labels.cast(pl.Float64).to_numpy()
        is_gold = values[pairs.gold] == 1
        n, squares = (x.astype(np.float64) for x in (pairs.n, pairs.squares))
        both = (added_up(n[side], place[side], len(ids)) for side in (is_gold, ~is_gold))
        placed = Counted(pairs.number, slices, is_gold.astype(np.int64), place, n, squares)
        rows = Segments.of(ids // k, pairs.number)
        score, per_weight = values[k - 1 - ids % k], placed.per_weight
        levels = Levels.of(rows, score, *both, per_weight=per_weight, epsilon=self.epsilon)
        return levels, placed


def has_classes(needed: Needed, gold: Any, pred: Any, *of_all: Any) -> Any:  # noqa: ANN401
    """Whether a slice has the classes, by the number of gold and pred classes, and of all."""
    if needed == "any":
        return gold >= 0
    if needed == "two gold":
        return gold >= 2
    all_gold, all_pred = of_all
    has_all_gold = (gold >= 2) & (gold == all_gold)
    return has_all_gold if needed == "all gold" else has_all_gold & (pred == all_pred)


@dataclass(frozen=True)
class Estimate:
    """The scores of slices, and the arrays that their errors come from."""

    scores: pl.DataFrame
    """A row per slice: `n`, `n_clusters` if there are clusters, metrics, intervals, `n_null`. It is
    sorted by the columns that split slices, and then by the other columns of a slice."""
    cells: CountedCells
    scorer: Scorer
    pools: Pools | None
    measured: Mapping[str, Measured]


def estimate(
    log: SlicedLog,
    counts: pl.DataFrame,
    options: IntervalOptions,
    *,
    within: Sequence[str] | None = None,
    in_pool: pl.Expr | None = None,
) -> Estimate:
    """Score each slice of a log from its pairs, with standard errors and intervals.

    If the log has clusters, `counts` are pairs split by cluster. Slices with equal columns `within`
    are compared with each other. Together they have all rows; or those that are `in_pool`, if a row
    is in several slices.
    """
    log, pairs = reweighted(log, counts.lazy())
    # Pairs may be many: to group and to join codes is faster than text.
    texts = pl.col([name for name in log.slice if counts.schema[name] == pl.String])
    counts = pairs.with_columns(texts.cast(pl.Categorical)).collect()
    pairs = counts.lazy()
    order = sorted(log.slice, key=lambda name: name not in log.slice_splits)
    slices = log.per_slice(log.with_total(pairs), number=pl.lit(0)).collect()
    slices = slices.sort(order) if order else slices
    cells = CountedCells.of(log, counts, slices)
    scorer = Scorer(
        options.sure,
        cells.labels,
        options.positive,
        zero_division=log.zero_division,
        is_frequency=log.is_frequency,
        is_reweighted=log.is_reweighted,
        epsilon=log.epsilon,
    )
    are_exact = cells.pairs.n.dtype.kind == "i" and cells.n.sum() <= _EXACT
    is_worth = are_exact and not log.is_of_scores and counts.height >= _WORTH
    of_pairs = scorer.classes(cells.pairs) if is_worth else None
    classes = of_pairs and _exact_classes(log, counts, cells, slices, of_pairs[0])
    if log.pair_splits and (classes is None or any(metric.pairs for metric in options.metrics)):
        pairs = merged(replace(log, pair_splits=()), pairs).collect().lazy()
    exact = measure_pairs(log, pairs, options.metrics, classes, positive=options.positive)
    scores = exact.sort(order).collect() if order else exact.collect()
    scores = scores.with_columns(texts.cast(pl.String))
    pools = None if within is None else _pools(cells.pairs, scores, within, in_pool)
    known = {metric.name: floats(scores[metric.name]) for metric in options.sure}
    draws, place = cells.draws(scores.height, cells.pairs.slices[cells.pair])
    of_draws = draws, cells.pair[place]
    measured = scorer.measured(cells.pairs, options, pools, of_draws, known, of_pairs=of_pairs)
    sizes = [] if (n := draws.n_clusters) is None else [pl.Series("n_clusters", n, pl.Int64)]
    limits = [end for name, known in measured.items() for end in known.interval.columns(name)]
    names = [metric.name for metric in options.metrics]
    unsure = limit_columns(name for name in names if name not in measured)
    none = dict.fromkeys(unsure, pl.lit(None, pl.Float64))
    numbers = ["n", *(size.name for size in sizes), *with_limit_columns(names), *log.unscored]
    with_limits = scores.with_columns(*sizes, *limits, **none).select(*log.slice, *numbers)
    return Estimate(with_limits, cells, scorer, pools, measured)


def _exact_classes(
    log: SlicedLog,
    counts: pl.DataFrame,
    cells: CountedCells,
    slices: pl.DataFrame,
    of_cells: Classes,
) -> pl.LazyFrame:
    """The counts of each class, with the columns of `classes_of_pairs`.

    The arrays of `of_cells` have exact sums. A plan would group both sides of each pair, which is
    slower if there are many pairs.
    """
    sums = {"gold_n": of_cells.t, "pred_n": of_cells.p, "hit_n": of_cells.c}
    classes = (
        slices[of_cells.rows.of_row]
        .lazy()
        .with_columns(
            of_cells.every[of_cells.codes].alias("label"),
            *(pl.Series(name, n, pl.Float64).cast(pl.Int128) for name, n in sums.items()),
            null_n=pl.lit(0, pl.Int128),
            unit=pl.lit(1.0),
        )
    )
    if len(cells.row) == counts.height and not counts["n_null"].sum():
        return classes
    is_counted = is_scored(log) & (pl.col("n") > 0)
    rest = counts.lazy().with_columns(n=pl.when(is_counted).then(0).otherwise("n"))
    both = pl.concat([classes, classes_of_pairs(log, rest)], how="diagonal")
    return both.group_by(*log.slice, "label").agg(pl.col("unit").max(), pl.col("^.*_n$").sum())


def _pools(
    pairs: Counted, scores: pl.DataFrame, within: Sequence[str], in_pool: pl.Expr | None
) -> Pools:
    """The pools: slices with equal columns `within` are one pool.

    A pool has the rows of its slices; if `in_pool` is given, of those that it is true for.
    """
    pool_of = np.zeros(scores.height, np.int64)
    if within:
        ranks = scores.select(pl.struct(within).rank("dense")).to_series()
        pool_of = ranks.cast(pl.Int64).to_numpy() - 1
    if in_pool is not None:
        is_own = scores.select(in_pool).to_series().to_numpy()[pairs.slices]
        pairs = Counted(pairs.number, *(array[is_own] for array in pairs[1:]))
    slices, *columns = pairs[1:]
    n_pools = int(pool_of.max(initial=-1)) + 1
    return Pools(pool_of, Counted.of_rows(n_pools, pool_of[slices], *columns)[0])

"""Counted pairs of codes → the scores of slices, their limits, and their scores given the labels.

All is arrays. `estimate` makes them from frames, and a search counts codes itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from polars_mcc._inference import influence
from polars_mcc._inference.arrays import Classes, Counted, Draws
from polars_mcc._inference.given_labels import spread_of_draws
from polars_mcc._inference.influence import Influence
from polars_mcc._inference.intervals import Interval, Sampling, interval
from polars_mcc._inference.moves_of_scores import MOVES, Levels
from polars_mcc._inference.never_predicted import between
from polars_mcc._inference.options import IntervalOptions
from polars_mcc._inference.pool import Pools, expected_pairs
from polars_mcc._inference.tables import tables_of
from polars_mcc._scores.metric import Metric, Needed
from polars_mcc._scores.segments import Flags, Floats, Ints, Segments, added_up


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
    """What slices would score given their labels: arrays (slices,). See `given_labels`."""

    expected: Floats
    se: Floats
    step: Floats


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

    @cached_property
    def is_positive(self) -> Floats:
        """1 for the positive label: (labels,)."""
        is_positive = pl.lit(value=False) if self.positive is None else self.positive
        labels = self.labels.alias("label").to_frame()
        found = labels.with_columns(is_positive=is_positive.cast(pl.Float64).fill_null(0.0))
        return found["is_positive"].to_numpy()

    @property
    def is_of_scores(self) -> bool:
        """Whether the metrics are of scores."""
        return any(metric.is_of_scores for metric in self.metrics)

    def values(self, margins: Sequence[Ints], zero_division: float | None) -> Floats:
        """The scores of slices from counts of all labels: (slices, labels).

        The counts are how often a label is gold, predicted, and both. Of a metric of scores: of
        positive rows with each score, and of negative rows.
        """
        [metric] = self.metrics
        occurs = (margins[0] > 0) | (margins[1] > 0)
        slices, codes = np.nonzero(occurs)
        number, counts = len(occurs), [one[occurs] for one in margins]
        with np.errstate(all="ignore"):
            if metric.is_of_scores:
                # The largest score of a slice is first.
                down = np.lexsort([-codes, slices])
                rows = Segments.of(slices, number)
                both = (one[down].astype(np.float64) for one in counts)
                levels = Levels.of(rows, self.labels.to_numpy()[codes[down]], *both)
                return MOVES[metric.name](levels).value
            t, p, c = counts
            s = margins[0].sum(1)[slices]
            differences: tuple[Ints, ...] = t - c, p - c, s - t - p + c
            if self.rounding:  # What rounding leaves of float weights is nothing.
                least = s * self.rounding
                differences = tuple(np.where(one > least, one, 0.0) for one in differences)
            t, p, c, fn, fp, tn = (one.astype(np.float64) for one in (t, p, c, *differences))
            rows, is_positive = Segments.of(slices, number), self.is_positive[codes]
            classes = Classes(self.labels, rows, codes, t, p, c, fn, fp, tn, is_positive)
            return influence.values_of(classes, metric, zero_division)

    def values_of_pairs(self, pairs: Counted, zero_division: float | None) -> Floats:
        """The scores of slices, from their pairs."""
        [metric] = self.metrics
        with np.errstate(all="ignore"):
            if metric.is_of_scores:
                return MOVES[metric.name](self._levels_of(pairs)[0]).value
            classes = Classes.of(pairs, self.labels, self.is_positive)
            return influence.values_of(classes, metric, zero_division)

    def influences(
        self, pairs: Counted, pools: Pools | None = None, *, is_smoothed: bool = True
    ) -> Influences:
        """How far rows move the scores of slices, which may be compared within pools."""
        if self.is_of_scores:
            levels, found = self._levels_of(pairs)
            of_metrics = influence.of_scores(levels, found, self.metrics)
            return Influences(of_metrics, found, None, {})
        classes = Classes.of(pairs, self.labels, self.is_positive)
        found, expected, is_known = pairs.with_places(classes), None, {}
        if pools is not None:
            expected = expected_pairs(classes, pools)
            sides = (classes.t > 0, classes.p > 0)
            here = (classes.rows.sum(one.astype(np.float64)) for one in sides)
            numbers = *here, *expected.n_classes
            for metric in self.metrics:
                is_known[metric.name] = has_classes(metric.classes_needed, *numbers)
        of_metrics = {}
        if metrics := [metric for metric in self.metrics if not metric.pairs]:
            tables = tables_of(classes, found, expected, is_smoothed=is_smoothed)
            of_metrics |= influence.of_classes(classes, tables, metrics, self.zero_division)
        if metrics := [metric for metric in self.metrics if metric.pairs]:
            labels = (self.labels[side] for side in (pairs.gold, pairs.pred))
            both = pl.DataFrame([*labels], ["gold", "pred"])
            of_metrics |= influence.of_pairs(found, both, metrics)
        return Influences(of_metrics, found, classes, is_known)

    def measured(
        self,
        pairs: Counted,
        options: IntervalOptions,
        pools: Pools | None = None,
        draws: tuple[Draws, Ints] | None = None,
        exact: Mapping[str, Floats] | None = None,
    ) -> dict[str, Measured]:
        """The scores of slices with their limits.

        `pools`: scores are compared within these. `draws`: clusters, and the pair of each of their
        cells. `exact`: the scores, if they are known.
        """
        with np.errstate(all="ignore"):
            of_metrics, found, classes, is_known = self.influences(pairs, pools)
            scores = exact or self._scores(of_metrics, classes)
            if draws is None:
                own = Draws(pairs.number, found.slices, found.n, found.squares, None)
                draws = own, np.arange(len(found.n))
            drawn, pair = draws
            sampling = Sampling.of(drawn, is_frequency=self.is_frequency)
            never_predicted = {}
            if classes is not None and self.zero_division == 0:
                metrics = [metric for metric in self.metrics if not metric.pairs]
                gold = found.gold[pair]
                never_predicted = between(classes, found, drawn, gold, metrics, ci=options.ci)
            measured = {}
            for metric in self.metrics:
                name, score = metric.name, scores[metric.name]
                one = of_metrics[name]
                phi = one.phi[pair]
                variance = drawn.products(phi, phi) / drawn.size / drawn.size
                limits = interval(score, one, variance, sampling, options)
                if name in never_predicted:
                    limits = limits.reaching(
                        score,
                        never_predicted[name],
                        one,
                        is_exact=metric.is_share or options.method != "score",
                        is_compared=options.is_compared or pools is not None,
                    )
                measured[name] = Measured(score, limits.where(is_known.get(name)), one.phi)
            return measured

    def given_labels(self, pairs: Counted, pools: Pools) -> Given:
        """What slices would score, if gold labels were predicted at the rates of their pool."""
        [metric] = self.metrics
        k, pool = len(self.labels), pools.pairs
        here, starts = np.unique(pairs.slices.astype(np.int64) * k + pairs.gold, return_index=True)
        rows = Segments(starts, len(pairs.n)).sum(pairs.n)
        of_pool, starts = np.unique(pool.slices.astype(np.int64) * k + pool.gold, return_index=True)
        labels = Segments(starts, len(pool.n))
        ids = pools.of_slice[here // k].astype(np.int64) * k + here % k
        of_gold, at = labels.rows_of(np.searchsorted(of_pool, ids))
        pool_rows = labels.sum(pool.n)[np.searchsorted(of_pool, ids)][of_gold]
        rate, own = pool.n[at] / pool_rows, rows[of_gold]
        slices, gold = here[of_gold] // k, here[of_gold] % k
        expected = Counted(pairs.number, slices, gold, pool.pred[at], own * rate, own * rate)
        with np.errstate(all="ignore"):
            of_metrics, _, classes, _ = self.influences(expected, is_smoothed=False)
            of_label = Segments(np.flatnonzero(np.diff(of_gold, prepend=-1)), len(of_gold))
            phi = of_metrics[metric.name].phi
            se, step = spread_of_draws(expected.rows, of_label, own, pool_rows, rate=rate, phi=phi)
            return Given(self._scores(of_metrics, classes)[metric.name], se, step)

    def _scores(
        self, of_metrics: Mapping[str, Influence], classes: Classes | None
    ) -> dict[str, Floats]:
        """The scores of slices in floats."""
        scores = {name: one.value for name, one in of_metrics.items()}
        for metric in (
            self.metrics if classes is not None and self.zero_division is not None else ()
        ):
            if not metric.pairs and np.isnan(scores[metric.name]).any():
                assert classes is not None  # noqa: S101
                scores[metric.name] = influence.values_of(classes, metric, self.zero_division)
        return scores

    def _levels_of(self, pairs: Counted) -> tuple[Levels, Counted]:
        """The levels of slices, and their pairs with places in these."""
        k, slices = len(self.labels), pairs.slices.astype(np.int64)
        ids, place = np.unique(slices * k + (k - 1 - pairs.pred), return_inverse=True)
        values = self.labels.cast(pl.Float64).to_numpy()
        is_gold = values[pairs.gold] == 1
        n, squares = (one.astype(np.float64) for one in (pairs.n, pairs.squares))
        both = (added_up(n[one], place[one], len(ids)) for one in (is_gold, ~is_gold))
        found = Counted(pairs.number, slices, is_gold.astype(np.int64), place, n, squares)
        rows = Segments.of(ids // k, pairs.number)
        return Levels.of(rows, values[k - 1 - ids % k], *both, per_weight=found.per_weight), found


def has_classes(needed: Needed, gold: Any, pred: Any, *of_all: Any) -> Any:  # noqa: ANN401
    """Whether a slice has the classes, by the number of gold and pred classes, and of all."""
    if needed == "any":
        return gold >= 0
    if needed == "two gold":
        return gold >= 2
    all_gold, all_pred = of_all
    has_all_gold = (gold >= 2) & (gold == all_gold)
    return has_all_gold if needed == "all gold" else has_all_gold & (pred == all_pred)

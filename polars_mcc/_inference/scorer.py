"""Counted pairs as codes → the scores of slices, their limits, and what they were expected to be.

All is arrays. `estimate` does the same for frames, where the exact scores are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mcc._inference import influence
from polars_mcc._inference.arrays import Classes, Counted, Draws, Pairs
from polars_mcc._inference.estimate import Drawn, has_classes, limits_of
from polars_mcc._inference.given_labels import spread_of_draws
from polars_mcc._inference.influence import Influence
from polars_mcc._inference.intervals import Interval, Sampling
from polars_mcc._inference.moves_of_scores import MOVES, Levels
from polars_mcc._inference.options import IntervalOptions
from polars_mcc._inference.pool import tabulated
from polars_mcc._inference.tables import tables_of
from polars_mcc._scores.metric import Metric
from polars_mcc._scores.segments import Flags, Floats, Ints, Segments, added_up


class Measured(NamedTuple):
    """The scores of slices with their limits, and the influence of one row of each pair."""

    score: Floats
    interval: Interval
    phi: Floats


class _Moved(NamedTuple):
    """The scores of slices, and how far the rows of their pairs move them."""

    score: Floats
    influence: Influence
    pairs: Pairs
    classes: Classes | None
    """The classes of labels; None for scores."""
    is_known: Flags | None
    """Whether a slice has the classes of its pool that a comparison needs."""


class Given(NamedTuple):
    """What slices would score given their labels: arrays (slices,). See `given_labels`."""

    expected: Floats
    se: Floats
    step: Floats


@dataclass(frozen=True)
class Scorer:
    """A metric of coded pairs. A score that is 0/0 is `zero_division`, or NaN."""

    metric: Metric
    labels: pl.Series
    """All labels, in the order of their codes."""
    positive: pl.Expr | None
    """Whether a label is the positive one."""
    zero_division: float | None
    is_frequency: bool
    """Whether a weight counts rows."""
    rounding: float
    """The share of a sum of weights that its order may change."""

    @cached_property
    def is_positive(self) -> Floats:
        """1 for the positive label: (labels,)."""
        is_positive = pl.lit(value=False) if self.positive is None else self.positive
        found = (
            self.labels.alias("label")
            .to_frame()
            .with_columns(is_positive=is_positive.cast(pl.Float64).fill_null(0.0))
        )
        return found["is_positive"].to_numpy()

    def values(self, margins: Sequence[Ints], zero_division: float | None) -> Floats:
        """The scores of slices from counts of all labels: (slices, labels).

        The counts are how often a label is gold, predicted, and both. Of a metric of scores: of
        positive rows with each score, and of negative rows.
        """
        occurs = (margins[0] > 0) | (margins[1] > 0)
        slices, codes = np.nonzero(occurs)
        number, counts = len(occurs), [one[occurs] for one in margins]
        with np.errstate(all="ignore"):
            if self.metric.is_of_scores:
                # The largest score of a slice is first.
                down = np.lexsort([-codes, slices])
                rows = Segments.of(slices, number)
                both = (one[down].astype(np.float64) for one in counts)
                levels = _levels(rows, self.labels.to_numpy()[codes[down]], *both)
                return MOVES[self.metric.name](levels).value
            s = margins[0].sum(1)[slices]
            classes = self._classes(number, slices, codes, s, *counts)
            return influence.values_of(classes, self.metric, zero_division)

    def classes_of_pairs(self, pairs: Counted) -> Classes:
        """The classes of slices from their pairs."""
        k = max(len(self.labels), 1)
        sides = [pairs.slices.astype(np.int64) * k + one for one in (pairs.gold, pairs.pred)]
        ids, places = np.unique(np.concatenate(sides), return_inverse=True)
        gold, pred = np.split(places, 2)
        is_hit = pairs.gold == pairs.pred
        t, p = (added_up(pairs.n, one, len(ids)) for one in (gold, pred))
        c = added_up(pairs.n[is_hit], gold[is_hit], len(ids))
        s = added_up(pairs.n, pairs.slices, pairs.number)[ids // k]
        return self._classes(pairs.number, ids // k, ids % k, s, t, p, c)

    def _classes(self, number: int, slices: Ints, codes: Ints, s: Ints, *counts: Ints) -> Classes:
        t, p, c = counts
        differences: tuple[Ints, ...] = t - c, p - c, s - t - p + c
        if self.rounding:  # What rounding leaves of float weights is nothing.
            least = s * self.rounding
            differences = tuple(np.where(one > least, one, 0.0) for one in differences)
        fn, fp, tn = (one.astype(np.float64) for one in differences)
        t, p, c = (one.astype(np.float64) for one in counts)
        rows = Segments.of(slices, number)
        return Classes(self.labels, rows, codes, t, p, c, fn, fp, tn, self.is_positive[codes])

    def values_of_pairs(self, pairs: Counted, zero_division: float | None) -> Floats:
        """The scores of slices, from their pairs."""
        with np.errstate(all="ignore"):
            if self.metric.is_of_scores:
                return MOVES[self.metric.name](self._levels_of(pairs)[0]).value
            classes = self.classes_of_pairs(pairs)
            return influence.values_of(classes, self.metric, zero_division)

    def measured(
        self,
        pairs: Counted,
        ci: float,
        pool: tuple[Ints, Counted] | None = None,
        draws: tuple[Draws, Ints] | None = None,
        exact: Floats | None = None,
    ) -> Measured:
        """The scores of slices with their limits, to be compared.

        `pool`: the pool of each slice, and the pairs of the pools. `draws`: clusters, and the pair
        of each of their cells. `exact`: the scores, if they are known.
        """
        name, asked = self.metric.name, IntervalOptions(ci, metrics=[self.metric], is_compared=True)
        with np.errstate(all="ignore"):
            score, moved, found, classes, is_known = self._moved(pairs, pool)
            score = score if exact is None else exact
            of_draws, pair = draws or (Draws.of_pairs(found), np.arange(len(found.n)))
            sampling = Sampling.of(of_draws, is_frequency=self.is_frequency)
            drawn = Drawn(found, of_draws, pair, sampling)
            seen = classes if self.zero_division == 0 else None
            limits = limits_of({name: score}, {name: moved}, drawn, asked, seen)
        return Measured(score, limits[name].where(is_known), moved.phi)

    def _moved(
        self, pairs: Counted, pool: tuple[Ints, Counted] | None, *, is_smoothed: bool = True
    ) -> _Moved:
        """The scores of slices, and how far rows move them."""
        metric = self.metric
        if metric.is_of_scores:
            levels, found = self._levels_of(pairs)
            [moved] = influence.of_scores(levels, found, [metric]).values()
            return _Moved(moved.value, moved, found, None, None)
        classes = self.classes_of_pairs(pairs)
        gold, pred = (classes.places(pairs.slices, one) for one in (pairs.gold, pairs.pred))
        rows = Segments.of(pairs.slices, pairs.number)
        n, squares = (one.astype(np.float64) for one in (pairs.n, pairs.squares))
        found = Pairs(rows, gold, pred, n, squares)
        expected = is_known = None
        if pool is not None:
            expected = tabulated(classes, *pool)
            sides = (one > 0 for one in (classes.t, classes.p))
            here = (classes.rows.sum(one.astype(np.float64)) for one in sides)
            is_known = has_classes(metric.classes_needed, *here, *expected.n_classes)
        tables = tables_of(classes, found, expected, is_smoothed=is_smoothed)
        [moved] = influence.of_classes(classes, tables, [metric], self.zero_division).values()
        score = moved.value
        if self.zero_division is not None and np.isnan(score).any():
            score = influence.values_of(classes, metric, self.zero_division)
        return _Moved(score, moved, found, classes, is_known)

    def given_labels(self, pairs: Counted, pool_of: Ints, pool: Counted) -> Given:
        """What slices would score, if gold labels were predicted at the rates of their pool."""
        k = len(self.labels)
        here, starts = np.unique(pairs.slices.astype(np.int64) * k + pairs.gold, return_index=True)
        rows = Segments(starts, len(pairs.n)).sum(pairs.n)
        of_pool, starts = np.unique(pool.slices.astype(np.int64) * k + pool.gold, return_index=True)
        labels = Segments(starts, len(pool.n))
        place = np.searchsorted(of_pool, pool_of[here // k].astype(np.int64) * k + here % k)
        of_gold, at = labels.rows_of(place)
        pool_rows = labels.sum(pool.n)[place][of_gold]
        rate, own = pool.n[at] / pool_rows, rows[of_gold]
        slices, gold = here[of_gold] // k, here[of_gold] % k
        expected = Counted(pairs.number, slices, gold, pool.pred[at], own * rate, own * rate)
        with np.errstate(all="ignore"):
            score, moved, *_ = self._moved(expected, None, is_smoothed=False)
            of_label = Segments(np.flatnonzero(np.diff(of_gold, prepend=-1)), len(of_gold))
            of_slice = Segments.of(slices, pairs.number)
            se, step = spread_of_draws(of_slice, of_label, own, pool_rows, rate=rate, phi=moved.phi)
        return Given(score, se, step)

    def _levels_of(self, pairs: Counted) -> tuple[Levels, Pairs]:
        """The levels of slices, and their pairs with places in these."""
        k, slices = len(self.labels), pairs.slices.astype(np.int64)
        ids, place = np.unique(slices * k + (k - 1 - pairs.pred), return_inverse=True)
        values = self.labels.to_numpy()
        is_gold = values[pairs.gold] == 1
        rows = Segments.of(ids // k, pairs.number)
        n, squares = (one.astype(np.float64) for one in (pairs.n, pairs.squares))
        both = (added_up(n[one], place[one], len(ids)) for one in (is_gold, ~is_gold))
        of_slices = Segments.of(slices, pairs.number)
        found = Pairs(of_slices, is_gold.astype(np.int64), place, n, squares)
        levels = _levels(rows, values[k - 1 - ids % k], *both, per_weight=found.per_weight)
        return levels, found


def _levels(
    rows: Segments,
    score: Floats,
    positive: Floats,
    negative: Floats,
    *,
    per_weight: Floats | None = None,
) -> Levels:
    """The levels of slices from their counts, from the largest score of a slice down."""
    tp, fp = rows.cumulated(positive), rows.cumulated(negative)
    all_positive, all_negative = (rows.spread(rows.sum(one)) for one in (positive, negative))
    weights = np.ones(len(score)) if per_weight is None else rows.spread(per_weight)
    return Levels(rows, score, positive, negative, tp, fp, all_positive, all_negative, weights)

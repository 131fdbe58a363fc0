"""Counts by period → the split of a slice where the score changed most, and how sure that is.

A split has some periods before it and some after. A row of the gold label i moves the score by
φ_ij if it is predicted as j (see `influence_of_rows`). Let U be the sum over the rows before of
φ_ij less its mean over all rows with the label i. Where nothing changes, the predictions of each
gold label are a draw without replacement. So U has the mean 0 and known moments, whatever the
labels are:

    Var U = Σ_i n_i (N_i - n_i) / (N_i - 1) · s_i²

n_i of the N_i rows are before, and s_i² is the variance of φ_ij. The third moment is known too.
With few errors U is skewed, so U / √Var U becomes normal by the cube root of a gamma distribution
with this skewness (Wilson and Hilferty 1931). Labels that are skewed away from a change are left
out of it: they do not shorten the tail of the others.

The largest of all splits has the p-value of a *maximally selected statistic*. It is at most the
probability that the first split is as large, plus the probabilities that a split is and the one
before it is not (Worsley 1982). Splits that follow each other are correlated, by known covariances,
so this is nearly the probability itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polars_mcc._intervals.influence_of_rows import NOTHING
from polars_mcc._intervals.interval_methods import normal, normal_quantile
from polars_mcc._metrics.slice_sums import Flags, Floats, Ints, Segments, added_up, numbered

_PRECISION = 2.0**-32  # of an influence, as a share of the largest of its slice
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_FARTHEST = 8.0  # standard errors; beyond them, nothing is left to integrate
_STEPS = 10


class RowsInTime(NamedTuple):
    """Counted rows of slices, in any order: arrays (rows,)."""

    slices: Ints
    periods: Ints
    """The number of the period of each row, from 0, in the order of time."""
    pairs: Ints
    """The place of the pair of each row among all pairs, which are sorted by gold label."""
    n: Floats

    def where(self, chosen: Flags) -> RowsInTime:
        """The chosen rows."""
        return RowsInTime(*(array[chosen] for array in self))


class SplitMoments(NamedTuple):
    """Sums over the rows up to and with each step, where nothing changes: arrays (steps,)."""

    n: Floats
    moved: Floats
    """U: how far the rows before move the score more than all rows do."""
    variance: Floats
    to_right: Floats
    """The third central moments of U of the gold labels that are skewed to the right, added up."""
    to_left: Floats
    """Of those that are skewed to the left: at most 0."""
    beside: Floats
    """The covariance with U of the step before; 0 at the first step."""


class Own(NamedTuple):
    """Sums over the rows of each step alone: arrays (steps,)."""

    n: Floats
    moved: Floats
    variance: Floats
    """Of `moved`, if rows are independent."""


class Split(NamedTuple):
    """The split of each slice where the score changed most: arrays (slices,)."""

    since: Ints
    """The number of the first period after; -1 if no split has enough rows."""
    errors: Floats
    """How many standard errors it is from no change, in the direction that is looked for."""
    p_value: Floats
    critical: Floats
    """The number of such errors that is just significant, at the level that is asked for."""
    is_rise: Flags


@dataclass(frozen=True)
class Steps:
    """The periods in which slices have rows: a step each, sorted by slice and time."""

    of_slice: Segments
    periods: Ints
    moments: SplitMoments
    own: Own

    @classmethod
    def of(cls, number: int, rows: RowsInTime, gold: Ints, phi: Floats) -> Steps:
        """Add up the rows of so many slices.

        A row of a pair moves the score of its slice by `phi`; more is better. It is compared with
        rows of the slice of the same `gold`: of the same label, or of any.
        """
        # The moments of each stratum: the rows of a slice with one gold label.
        own, at = numbered(rows.slices * len(phi) + rows.pairs)
        n, pair = added_up(rows.n, at, len(own)), own % len(phi)
        ids = own // len(phi) * (int(gold.max(initial=0)) + 1) + gold[pair]
        of_stratum = Segments(np.flatnonzero(np.diff(ids, prepend=-1)), len(ids))
        size = of_stratum.sum(n)
        x = phi[pair] - of_stratum.spread(of_stratum.sum(n * phi[pair]) / size)
        squares, cubes = (of_stratum.sum(n * power) / size for power in (x * x, x * x * x))
        # Multiples of a small unit add up to the same sum in any order.
        of_slice = Segments.of(own // len(phi), number)
        unit = np.ldexp(_PRECISION, np.frexp(of_slice.spread(of_slice.max(np.abs(x))))[1])
        x = np.rint(x / unit) * unit
        # The rows of a stratum in a period, in the order of time.
        span = int(rows.periods.max(initial=0)) + 1
        cells, of_row = numbered(of_stratum.of_row[at] * span + rows.periods)
        t, u = (added_up(sums, of_row, len(cells)) for sums in (rows.n, rows.n * x[at]))
        stratum = cells // span
        in_time, whole = Segments.of(stratum, len(size)), size[stratum]
        before = in_time.cumulated(t)
        left = whole - before
        with np.errstate(all="ignore"):
            drawn = np.where(whole > 1, before * left / (whole - 1), 0.0)
            skewed = np.where(whole > 2, drawn * (left - before) / (whole - 2), 0.0)
            apart = np.where(whole > 1, t * left / (whole - 1), 0.0)
        slices = (own // len(phi))[of_stratum.starts]
        steps, at = numbered(slices[stratum] * span + cells % span)

        def of_steps(values: Floats) -> Floats:
            return added_up(values, at, len(steps))

        # A stratum without rows in a step adds what it added before.
        squares, cubes = squares[stratum], cubes[stratum]
        alone = Own(*map(of_steps, (t, u, t * squares)))
        third = skewed * cubes
        parts = drawn * squares, np.fmax(third, 0.0), np.fmin(third, 0.0)
        added = (of_steps(in_time.steps(part)) for part in parts)
        of_slice = Segments.of(steps // span, number)
        totals = (of_slice.cumulated(sums) for sums in (alone.n, alone.moved, *added))
        n_before, moved, variance, to_right, to_left = totals
        beside = variance - of_steps(apart * squares)
        moments = SplitMoments(n_before, moved, variance, to_right, to_left, beside)
        return cls(of_slice, steps % span, moments, alone)

    def split(
        self, min_n: int, level: float, dispersion: Floats, *, falls: bool, rises: bool
    ) -> Split:
        """The split with the largest change of each slice, with `min_n` rows on both sides.

        `dispersion` is how many times as much each slice varies as independent rows would.
        """
        n, moved, variance, to_right, to_left, beside = self.moments
        of_slice = self.of_slice
        rows = of_slice.spread(of_slice.sum(self.own.n))
        # A label that varies may have no rows on one side: what is left is an error of rounding.
        nothing = np.fmax(NOTHING * n, _PRECISION * of_slice.spread(of_slice.max(variance)))
        is_split = (n >= min_n) & (rows - n >= min_n) & (variance > nothing)
        with np.errstate(all="ignore"):
            errors, cubed = moved / np.sqrt(variance), variance**1.5
            ways = [(errors, to_right / cubed)] * falls + [(-errors, -to_left / cubed)] * rises
            each = np.stack([normal_errors(*way) for way in ways])
            largest = np.where(is_split, np.fmax.reduce(each), math.nan)
            best = of_slice.max(largest)
            errors = best / np.sqrt(dispersion)
            # The correlation of each split with the one before it; of two runs of splits, 0.
            follows = np.append(False, is_split[:-1]) & (np.diff(of_slice.of_row, prepend=-1) == 0)
            r = np.where(follows, beside / np.sqrt(variance * np.append(0.0, variance[:-1])), 0.0)
            is_first = of_slice.cumulated(is_split.astype(np.float64)) == 1
            apart = np.where(is_split & ~is_first, np.sqrt((1 - r) / (1 + r)), 0.0)
            looked = Looked(of_slice, np.nan_to_num(apart), len(ways))
            p_value, critical = looked.p_value(errors), looked.critical(level)
        at, found = _first_of_largest(of_slice, largest), ~np.isnan(best)
        since, is_rise = np.full(len(best), -1), np.zeros(len(best), bool)
        since[found] = self.periods[at + 1]
        is_rise[found] = rises & (each[-1][at] == largest[at])
        return Split(since, errors, np.where(found, p_value, math.nan), critical, is_rise)

    def dispersion(self, cuts: int, blocks: Ints) -> Floats:
        """How many times as much blocks of periods vary as independent rows would; at least 1.

        `blocks` has the number of the block of each period, in the order of time. A slice is cut
        where its score changed most, so many times, and blocks vary around the mean of their part.
        Else a fall and a recovery would seem to be chance.
        """
        of_slice, (_, moved, variance) = self.of_slice, self.own
        is_first = np.diff(of_slice.of_row, prepend=-1) > 0
        with np.errstate(all="ignore"):
            for _ in range(cuts):
                parts = Segments(np.flatnonzero(is_first), len(moved))
                rest = _less_mean(parts, moved, variance)
                done, whole = parts.cumulated(variance), parts.spread(parts.sum(variance))
                squared = parts.cumulated(rest) ** 2 / (done * (whole - done) / whole)
                squared = np.where(np.append(is_first[1:], True), math.nan, squared)
                is_first[_first_of_largest(of_slice, squared) + 1] = True
            parts = Segments(np.flatnonzero(is_first), len(moved))
            rest = _less_mean(parts, moved, variance)
            is_new = np.diff(blocks[self.periods], prepend=-1).astype(bool)
            is_new |= np.diff(of_slice.of_row, prepend=-1) > 0
            in_block = Segments(np.flatnonzero(is_new), len(moved))
            of_block = Segments.of(of_slice.of_row[in_block.starts], len(of_slice.starts))
            excess = of_block.sum(in_block.sum(rest) ** 2) / of_slice.sum(variance)
            free = of_block.lengths - of_slice.sum(is_first.astype(np.float64))
            return np.fmax(excess * of_block.lengths / np.maximum(free, 1), 1.0)


@dataclass(frozen=True)
class Looked:
    """The splits that are looked at, for the distribution of the largest."""

    of_slice: Segments
    apart: Floats
    """√((1 - r) / (1 + r)) of each split and the one before it; 0 if there is none."""
    ways: int
    """1 or 2: in how many directions a change is looked for."""

    def p_value(self, errors: Floats) -> Floats:
        """The probability that the largest is as large, where nothing changes; at most 1."""
        return np.minimum(self._bound(np.fmax(errors, 0.0)), 1.0)

    def _bound(self, errors: Floats) -> Floats:
        """The sum of the probabilities, which may be more than 1."""
        crossing = self.of_slice.sum(_first_above(self.of_slice.spread(errors), self.apart))
        return self.ways * (normal(errors) / 2 + crossing)

    def critical(self, level: float) -> Floats:
        """The errors with this p-value, by secants: its logarithm is nearly a parabola."""
        least = max(-normal_quantile(min(level / self.ways, 0.5)), 0.0)
        before = np.full(len(self.of_slice.starts), least)
        beyond, errors = np.log(self._bound(before) / level), before + 0.5
        with np.errstate(all="ignore"):
            for _ in range(_STEPS):
                now = np.log(self._bound(errors) / level)
                slope = (now - beyond) / (errors - before)
                before, beyond = errors, now
                step = np.where(np.isfinite(slope) & (slope < 0), now / slope, 0.0)
                errors = np.fmax(errors - step, 0.0)
        return errors


def normal_errors(errors: Floats, skewness: Floats) -> Floats:
    """The errors of a normal distribution with the same p-value, from those of a skewed one."""
    is_straight = np.abs(skewness) < 1e-5
    g = np.where(is_straight, 1.0, skewness)
    # Beyond the end of the distribution, it is as if at the end.
    root = np.cbrt(np.fmax(1 + g * errors / 2, 0.0))
    return np.where(is_straight, errors, 6 / g * (root - 1) + g / 6)


def _first_above(h: Floats, apart: Floats) -> Floats:
    """P(X < h ≤ Y) of standard normal X and Y: twice Owen's T of h and √((1 - r)/(1 + r)).

    The integral of Owen (1956), by Gauss and Legendre.
    """
    end = np.minimum(apart, _FARTHEST / np.fmax(h, 1.0))
    total = np.zeros(len(h))
    for node, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
        square = 1 + (end * (node + 1) / 2) ** 2
        total += weight * np.exp(-(h**2) * square / 2) / square
    return total * end / (2 * math.pi)


def _first_of_largest(of_slice: Segments, values: Floats) -> Ints:
    """The place of the largest number of each slice that has one; NaN is none."""
    [places] = np.nonzero(values == of_slice.spread(of_slice.max(values)))
    _, first = np.unique(of_slice.of_row[places], return_index=True)
    return places[first]


def _less_mean(parts: Segments, moved: Floats, variance: Floats) -> Floats:
    """How far steps move a score, less the mean of their part."""
    return moved - variance * parts.spread(parts.sum(moved) / parts.sum(variance))

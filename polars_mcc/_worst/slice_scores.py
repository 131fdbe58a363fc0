"""Every slice of up to `depth` keys: its score, its size, and its evidence against the rest."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mcc._base.allowed_values import Correction, Rank, Reference
from polars_mcc._comparisons.evidence_and_p_values import LEVEL, Scale, collapse
from polars_mcc._comparisons.slice_and_reference import ROUNDING
from polars_mcc._counts.label_hashes import wide_of
from polars_mcc._intervals.count_arrays import Counted
from polars_mcc._intervals.interval_options import IntervalOptions
from polars_mcc._intervals.scores_of_arrays import Scorer
from polars_mcc._intervals.smoothed_tables import Pools
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.slice_sums import Flags, Floats, Ints, added_up
from polars_mcc._worst.column_codes import CodedKey, CodedLog
from polars_mcc._worst.failures_in_words import LONGEST_LIST
from polars_mcc._worst.row_losses import RowLosses
from polars_mcc._worst.slice_counts import Margins, SliceCounter, SlicesOfKeys

_NOT_A_NUMBER = -sys.float_info.max
"""Stands for a score of NaN, as NaN in an array is an unknown score."""
_SURER = math.sqrt(2)
"""How many times the evidence by row the evidence by cluster may be: influences in a cluster may
cancel."""

LENIENT = 2.0
"""How many times too large the first p-values may be: they take the variance of the rest from the
whole log."""


@dataclass(frozen=True)
class SearchSettings:
    """The settings of a search: metric, number of keys, least rows, confidence level."""

    metric: Metric
    positive: pl.Expr | None
    depth: int
    min_n: int
    max_share: float
    bins: int | None
    top: int | None
    rank: Rank
    ci: float
    correction: Correction
    verdicts: bool
    long: bool
    to: Reference
    columns: Sequence[str] = ()
    """The columns of the answer after the model."""


@dataclass(frozen=True)
class Cutoff:
    """The largest p-value of a listed slice, for a correction, a level and a number of tests."""

    correction: Correction
    level: float
    tests: int
    longest: int = LONGEST_LIST
    """The most slices of the list."""
    surer: float = 1.0
    """How many times evidence by cluster may be the evidence by row."""

    def passes(self, evidence: float, n_listed: int) -> bool:
        """Whether so much evidence is enough for a list with this number of slices."""
        return bool(p_of(evidence) <= self.largest_p(n_listed))

    def allows_any(self, p: Floats) -> bool:
        """Whether the p-values of all slices allow a list. Holm's procedure does not step up."""
        if self.correction in {"bh", "by"}:
            return bool((np.sort(p) <= self.largest_p(np.arange(1, len(p) + 1))).any())
        return bool((p <= self.largest_p(1)).any())

    def largest_p(self, n_listed: int | Ints) -> float | Floats:
        """The largest p-value of a list with this number of slices."""
        tests = max(self.tests, 1)
        if self.correction == "bonferroni":
            return self.level / tests
        if self.correction == "holm":
            return self.level / np.maximum(tests - n_listed + 1, 1)
        harmonic = (1 / np.arange(1, tests + 1)).sum() if self.correction == "by" else 1.0
        return self.level * n_listed / (tests * harmonic)


def p_of(evidence: float) -> float:
    """The two-sided p-value of so many standard errors; 1 if a slice is not behind."""
    return math.erfc(max(evidence, 0.0) / math.sqrt(2))


class Limits(NamedTuple):
    """Scores and how sure they are, such that more is better: arrays (slices,)."""

    score: Floats
    proportion: Floats
    """The score as a proportion."""
    rows_up: Floats
    """The rows m of the proportion, from the upper limit."""
    rows_down: Floats
    """The same from the lower limit."""
    spread: Floats
    """The distance from the score to its upper limit."""
    phi: Floats
    """The influence of one row of each pair: (pairs,)."""


@dataclass(frozen=True)
class ModelSearch:
    """A search in the coded log of one model."""

    settings: SearchSettings
    log: CodedLog
    model: str
    scale: Scale
    """The metric as a proportion."""
    counter: SliceCounter
    scorer: Scorer
    """It scores 0/0 as 0 or as unknown, never as 1."""

    @classmethod
    def of(cls, settings: SearchSettings, log: CodedLog, model: str) -> ModelSearch:
        """Prepare the search: what counts slices, and what scores them."""
        metric, labels = settings.metric, log.labels
        if metric.labels_needed == "values":
            labels = labels.cast(wide_of(labels.dtype))
        if metric.labels_needed == "equality":
            labels = pl.int_range(len(labels), dtype=pl.UInt32, eager=True)
        counter = SliceCounter.of(log, model, settings.min_n)
        are_floats = counter.is_reweighted or log.sliced.numbers.count.is_float()
        scorer = Scorer(
            [metric],
            labels,
            settings.positive,
            zero_division=0.0 if log.sliced.zero_division == 0 else None,
            is_frequency=log.sliced.is_frequency,
            epsilon=log.sliced.epsilon,
            rounding=ROUNDING if are_floats else 0.0,
            is_reweighted=counter.is_reweighted,
        )
        return cls(settings, log, model, Scale.of(metric), counter, scorer)

    def cutoff(self, tests: int) -> Cutoff:
        """The largest p-value of a listed slice."""
        settings, surer = self.settings, 1.0 if self.log.clusters is None else _SURER
        longest = max(settings.top or 0, LONGEST_LIST)
        return Cutoff(settings.correction, 1 - settings.ci, tests, longest, surer)

    def values(self, counts: Margins | Counted, zero_division: float | None) -> Floats:
        """The scores of slices from their margins; of a metric of pairs, from their pairs."""
        if isinstance(counts, Counted):
            return self.scorer.values_of_pairs(counts, zero_division)
        return self.scorer.values(counts, zero_division)

    def shown(self, counts: Margins | Counted) -> Floats:
        """The scores of slices as in `by`: `_NOT_A_NUMBER` for NaN, NaN for null."""
        zero_division = self.log.sliced.zero_division
        values = self.values(counts, zero_division)
        if zero_division is None or not math.isnan(zero_division):
            return values
        # A score with 0/0 in it is NaN. A score without gold rows is null.
        at_0, at_1 = (self.values(counts, number) for number in (0.0, 1.0))
        return np.where(~np.isnan(at_0) & (at_0 != at_1), _NOT_A_NUMBER, values)

    def limits(self, pairs: Counted, pools: Pools | None = None) -> Limits:
        """The scores of slices, and how sure they are."""
        scale, asked = self.scale, IntervalOptions(LEVEL, is_compared=True)
        [measured] = self.scorer.measured(pairs, asked, pools).values()
        score, ends = scale.turn * measured.score, (measured.interval.low, measured.interval.high)
        low, high = (scale.turn * end for end in ends[:: scale.turn])
        n = pairs.effective(is_frequency=self.scorer.is_frequency)
        rows_up, rows_down = (scale.effective_rows(score, end, n) for end in (high, low))
        proportion = scale.proportion(score)
        return Limits(score, proportion, rows_up, rows_down, high - score, measured.phi)

    @property
    def is_by_pair(self) -> bool:
        """Whether a score needs the pairs of a slice, not only how often each label is met."""
        return bool(self.settings.metric.pairs) or self.counter.is_reweighted

    @property
    def is_by_labels(self) -> bool:
        """Whether a slice is tested by gold label if its rest lacks one of its classes."""
        is_of_rows = self.scorer.is_frequency and not self.scorer.is_reweighted
        return self.settings.metric.needs_all_classes and is_of_rows and self.log.clusters is None

    def below_expected(self, pairs: Counted, pool_of: Ints, pool: Counted) -> tuple[Floats, Floats]:
        """The score of each slice given its labels, and how surely it is below that."""
        scale = self.scale
        here = scale.turn * self.scorer.values_of_pairs(pairs, self.scorer.zero_division)
        expected, se, step = self.scorer.given_labels(pairs, Pools(pool_of, pool))
        there, n = scale.turn * expected, added_up(pairs.n, pairs.slices, pairs.number)
        collapsed = self.collapse(pairs, pool_of, pool)
        with np.errstate(all="ignore"):
            apart = np.where(np.isnan(collapsed), scale.apart(here, n, there, se, step), collapsed)
            is_known = (se > 0) & ~np.isnan(here) & ~np.isnan(there)
            evidence = np.where(is_known, np.where(here < there, apart, 0.0), math.nan)
        return there, evidence

    def collapse(
        self, pairs: Counted, pool_of: Ints, pool: Counted, draws: Floats | None = None
    ) -> Floats:
        """The evidence of slices predicted as one class, if the metric is then 0/0; else NaN."""
        metric = self.settings.metric
        can_be = metric.is_of_two and not metric.is_of_scores
        if not can_be or self.scorer.zero_division is None:
            return np.full(pairs.number, math.nan)
        evidence = collapse(pairs, pool_of, pool, draws)
        if not np.isnan(evidence).all():
            evidence[~np.isnan(self.scorer.values_of_pairs(pairs, None))] = math.nan
        return evidence


class Comparisons(NamedTuple):
    """Slices compared with the rest of the log: arrays (slices,). More is better."""

    reference: Floats
    """The score that the slice is compared with."""
    evidence: Floats
    """How many standard errors the slice is behind the reference; 0 if it is not behind, NaN if it
    cannot be compared."""
    shown: Floats
    """The score as in `by` (see `ModelSearch.shown`); empty unless all slices are shown."""
    shown_rest: Floats
    losses: Floats
    """Of slices that are behind: see `RowLosses.of_slices`; else NaN: (slices, 3)."""


@dataclass(frozen=True)
class ComparedSlices:
    """All slices that were counted and are large enough, set after set: arrays (slices,)."""

    keys: Sequence[CodedKey]
    """All keys of the log."""
    sets: Sequence[SlicesOfKeys]
    starts: Ints
    """The number of the first slice of each set: (sets,)."""
    n: Ints
    """The weight of the scored rows."""
    unscored: Ints
    """The rows that are not scored, and those of them without a gold label: (2, slices)."""
    comparisons: Comparisons
    is_distinct: Flags
    """Whether it has fewer rows than each slice with one key fewer."""
    is_large: Flags
    """Whether it has more than `max_share` of the scored rows: too few are left to compare it."""
    whole: Counted
    """The scored pairs of the log."""
    losses: RowLosses
    shown_overall: float
    """The score of the log as in `by` (see `ModelSearch.shown`)."""
    n_small: int
    """How many slices are too small."""

    def places(self, slices: Ints) -> Ints:
        """The place of the value of each key, -1 if the key is not in the set: (slices, keys)."""
        column = {key: place for place, key in enumerate(self.keys)}
        table = np.full((len(slices), len(self.keys)), -1, np.int64)
        sets = np.searchsorted(self.starts, slices, "right") - 1
        for number in np.unique(sets).tolist():
            [rows] = np.nonzero(sets == number)
            of_keys = self.sets[number]
            for key, places in zip(of_keys.keys, of_keys.places, strict=True):
                table[rows, column[key]] = places[slices[rows] - self.starts[number]]
        return table


def as_shown(scores: Floats) -> pl.Series:
    """A column of the scores that `ModelSearch.shown` gives: NaN becomes null."""
    return pl.Series(scores, nan_to_null=True).replace(_NOT_A_NUMBER, math.nan)

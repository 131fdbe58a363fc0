"""Pairs and classes → standard errors and intervals of the scores of each class; of bins.

A row moves the score of a class by its gold label, by its prediction, or by both. A row with other
labels moves it only through the mean, which is subtracted from every influence. So four kinds of
rows give the variance, without a sum over classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mcc._counts.class_counts import is_scored
from polars_mcc._counts.sliced_log import SlicedLog
from polars_mcc._intervals import smoothed_tables
from polars_mcc._intervals.count_arrays import Classes, Counted, CountedCells, Draws, of_arrays
from polars_mcc._intervals.influence_of_rows import Influence, columns_of_classes
from polars_mcc._intervals.interval_methods import Sampling, interval
from polars_mcc._intervals.interval_options import IntervalOptions
from polars_mcc._intervals.never_predicted_classes import Between, of_each_class
from polars_mcc._metrics.derivatives import Column
from polars_mcc._metrics.mcc_and_one_vs_rest import CLASS_RANGES, RATES, TwoByTwo, given_of
from polars_mcc._metrics.score_levels_and_bins import (
    Binning,
    in_floats,
    levels_of,
    of_bins,
    probabilities,
)
from polars_mcc._metrics.slice_sums import Floats, Ints, Segments, added_up


class _Gradient(NamedTuple):
    """How far a row moves the score of each class: (tables, classes).

    By the gold label, by the prediction, by both, and by the mean of all rows.
    """

    gold: Floats
    pred: Floats
    both: Floats
    mean: Floats


def class_intervals(log: SlicedLog, counts: pl.DataFrame, options: IntervalOptions) -> pl.DataFrame:
    """The standard errors and limits of the scores of each class, a row per slice and class.

    `counts` are pairs, split by cluster if the log has clusters.
    """
    slices = counts.select(log.slice).unique() if log.slice else pl.DataFrame({"": [0]})
    cells = CountedCells.of(log, counts, slices)
    is_positive = np.zeros(len(cells.labels))
    arrays, placed = Classes.of(
        cells.pairs, cells.labels, is_positive, is_reweighted=log.is_reweighted
    )
    draws, order = cells.draws(slices.height, placed.slices[cells.pair])
    pair = cells.pair[order]
    rows = arrays.rows
    sampling = Sampling(
        rows.spread(draws.effective),
        None if draws.n_clusters is None else rows.spread(draws.n_clusters),
        log.is_frequency,
    )
    answers: list[pl.Series] = []
    with np.errstate(all="ignore"):
        tables = smoothed_tables.tables_of(arrays, placed, None)
        col, _ = columns_of_classes(arrays, [table for table, _ in tables], [], None)
        margins = [col("support"), col("predicted"), col("hits")]
        s = rows.spread(arrays.s)
        names = ("support", "predicted", "hits", "fn", "fp", "tn")
        t, p, c, fn, fp, tn = (col(name).value / s for name in names)
        by_class = _ByClass.of(draws, placed.gold[pair], placed.pred[pair], len(arrays.t))
        gaps = None
        has_gaps = None if arrays.has_gaps is None else arrays.has_gaps[rows.of_row]
        if arrays.per_label is not None:
            of_tables = (
                _Gaps.of(
                    rows, arrays.per_label, *table, is_by_pred=place == smoothed_tables.BY_PRED
                )
                for place, table in enumerate(tables)
            )
            gaps = _Gaps(*map(np.stack, zip(*of_tables, strict=True)))
        seen: dict[str, Between] = {}
        if log.zero_division == 0:
            seen = of_each_class(arrays, draws, placed.gold[pair], ci=options.ci)
        for name, score in TwoByTwo.of_floats(col).scores(None).items():
            assert isinstance(score, Column)  # noqa: S101 - it is of arrays
            gold, pred, both = (part * s for part in score.gradient(*margins, each_row=True))
            mean = t * gold + p * pred + c * both
            gradient = _Gradient(gold, pred, both, mean)
            phi_phi = (
                c * (gold + pred + both - mean) ** 2
                + fn * (gold - mean) ** 2
                + fp * (pred - mean) ** 2
                + tn * mean**2
            )
            if gaps is not None:
                phi_phi += (gold**2 * gaps.missed + (gold + both) ** 2 * gaps.hit) / s
            given = given_of(name) if name in RATES else None
            facts = Influence.of(
                score.value, CLASS_RANGES[name], phi_phi, given=given, has_gaps=has_gaps
            )
            if log.is_frequency and not log.has_clusters:
                variance = facts.phi_phi / s
            else:
                observed = _Gradient(*(part[smoothed_tables.OBSERVED] for part in gradient))
                variance = by_class.squares(observed, draws, rows.of_row) / s**2
            limits = interval(facts.value, facts, variance, sampling, options)
            if name in seen:
                is_exact = given is not None or options.method != "score"
                known = np.nan_to_num(facts.value)
                limits = limits.widened_by(known, seen[name], facts, is_exact=is_exact)
            answers += limits.columns(name)
    keys = slices[rows.of_row].select(log.slice) if log.slice else pl.DataFrame()
    answer = pl.concat([keys, arrays.labels], how="horizontal")
    return answer.with_columns(*sampling.columns(), *answers)


class _Gaps(NamedTuple):
    """What rows without a label add to n times the mean of φ² of each class: (classes,).

    Of the rows with the prediction j, those with the gold label k have another influence φ on the
    score of the class k than all others. Their share is q_kj. So the variance of φ is
    q_kj (1 - q_kj) times the square of this difference (see `count_arrays`).
    """

    hit: Floats
    """N_k (f_k - 1) q_kk (1 - q_kk)."""
    missed: Floats
    """Σ_j N_j (f_j - 1) q_kj (1 - q_kj), over all other predictions j."""

    @classmethod
    def of(
        cls,
        rows: Segments,
        per_label: Floats,
        table: smoothed_tables.ClassTable,
        pairs: Counted,
        *,
        is_by_pred: bool,
    ) -> _Gaps:
        """From the counts of classes and pairs at one table."""
        gaps = np.where(table.p > 0, per_label - 1, 0.0)
        p = np.where(table.p > 0, table.p, 1.0)

        def added(n: Floats, pred: Ints) -> Floats:
            return gaps[pred] * n * (1 - n / p[pred])

        # Each pair of two classes has pseudo-rows, u_k v_j of them, also if it does not occur.
        _, u, v = smoothed_tables.pseudo_rows(table, is_by_pred=is_by_pred)
        first, second = (rows.spread(rows.sum(x)) - x for x in (gaps * v, gaps * v**2 / p))
        of_pseudo_rows = u * first - u**2 * second
        is_miss = pairs.gold != pairs.pred
        gold, pred, n = (array[is_miss] for array in (pairs.gold, pairs.pred, pairs.n))
        more = u[gold] * v[pred]
        of_misses = added_up(added(n + more, pred) - added(more, pred), gold, len(p))
        return cls(added(table.c, np.arange(len(p))), of_pseudo_rows + of_misses)


class _ByClass(NamedTuple):
    """The rows of a draw that have a label of a class, as gold or as predicted.

    Each row of a cell counts for its gold class, and a miss for its predicted class too: `cell` is
    its place in the draws, and `of_class` its class. The rows of a draw and a class follow each
    other; `starts` has the first.
    """

    cell: Ints
    gold: Ints
    pred: Ints
    of_class: Ints
    is_of_gold: Ints
    starts: Ints
    number: int

    @classmethod
    def of(cls, draws: Draws, gold: Ints, pred: Ints, number: int) -> _ByClass:
        """Sort the sides of the cells of draws by their class and their draw."""
        [misses] = np.nonzero(gold != pred)
        cell = np.concatenate([np.arange(len(gold)), misses])
        of_class = np.concatenate([gold, pred[misses]]).astype(np.int64)
        is_of_gold = np.arange(len(cell)) < len(gold)
        of_draw = draws.of_cell[cell]
        order = np.lexsort([of_draw, of_class])
        cell, of_class, is_of_gold = cell[order], of_class[order], is_of_gold[order]
        is_new = np.diff(np.stack([of_class, of_draw[order]]), prepend=-1).any(axis=0)
        sides = gold[cell], pred[cell], of_class, is_of_gold
        return cls(cell, *sides, np.flatnonzero(is_new), number)

    def squares(self, gradient: _Gradient, draws: Draws, slices: Ints) -> Floats:
        """The sum of squares of how far each draw moves the score of each class: (classes,).

        In a draw of n rows, x is the sum over the rows with the label of how far each moves the
        score. With the mean m, the draw moves the score by x - m·n. A draw without the label has
        x = 0, and adds (m·n)².
        """
        gold, pred = self.gold, self.pred
        of_gold = gradient.gold[gold] + np.where(
            gold == pred, gradient.pred[gold] + gradient.both[gold], 0.0
        )
        x, of_class = np.where(self.is_of_gold, of_gold, gradient.pred[pred]), self.of_class
        if draws.starts is None or not len(x):
            each, of_each, sizes = draws.squares, draws.slices, draws.squares[self.cell]
            squares = sizes * (x - gradient.mean[of_class]) ** 2
        else:
            of_class, n = of_class[self.starts], draws.size_of_cell
            each, of_each = n[draws.starts] ** 2, draws.slices[draws.starts]
            n = n[self.cell][self.starts]
            x = np.add.reduceat(draws.n[self.cell] * x, self.starts)
            squares, sizes = (x - gradient.mean[of_class] * n) ** 2, n**2
        with_label = added_up(squares, of_class, self.number)
        # A difference of two sums, but the mean may be large where it is small. Multiples of `unit`
        # add up exactly; the parts below `unit` are added up apart.
        exponents = np.frexp(added_up(each, of_each, draws.number))[1]
        unit = np.ldexp(1.0, np.maximum(exponents - 52, -1022))
        without_label = np.zeros(self.number)
        for sizes_part, each_part in zip(
            _parted(sizes, unit[slices][of_class]), _parted(each, unit[of_each]), strict=True
        ):
            total = added_up(each_part, of_each, draws.number)
            without_label += total[slices] - added_up(sizes_part, of_class, self.number)
        return with_label + gradient.mean**2 * np.clip(without_label, 0, None)


def _parted(values: Floats, unit: Floats) -> tuple[Floats, Floats]:
    """Numbers as multiples of a unit, and what is left."""
    multiples = np.rint(values / unit) * unit
    return multiples, values - multiples


def rates_of_bins(
    log: SlicedLog, pairs: pl.LazyFrame, cells: pl.DataFrame, bins: int | None, ci: float
) -> pl.DataFrame:
    """The bins of each slice, with the interval of their rate. `cells` are split by cluster."""
    binning = Binning(bins)
    levels = levels_of(log, pairs, [binning]).collect()
    floats = in_floats(log, levels.lazy())
    floats = floats if bins is None else probabilities(log, floats)
    rates = of_bins(log, floats, binning).collect()
    rate, n = rates["rate"].to_numpy(), rates["rows"].to_numpy()
    spread = rate * (1 - rate)
    with np.errstate(all="ignore"):
        if log.has_clusters or not log.is_frequency:
            places = levels.select(*log.slice, "pred", bin=binning.column)
            variance, sampling = _of_draws(log, places, cells, rates)
        else:
            variance, sampling = spread / n, Sampling(n, None, is_frequency=True)
        # The rate is a proportion of the rows.
        zero = np.zeros(len(n))
        facts = Influence(rate, zero, zero + 1, spread, zero + 1, spread, spread)
        limits = interval(rate, facts, variance, sampling, IntervalOptions(ci))
    ends = of_arrays(rate_low=limits.low, rate_high=limits.high)
    return rates.with_columns(*sampling.columns(), *ends)


def _of_draws(
    log: SlicedLog, places: pl.DataFrame, cells: pl.DataFrame, rates: pl.DataFrame
) -> tuple[Floats, Sampling]:
    """The variance of the rate of each bin, and its draws: clusters, or rows of several weights."""
    scored = cells.lazy().filter(is_scored(log))
    beside = scored.join(places.lazy(), on=[*log.slice, "pred"], nulls_equal=True)
    of_cells = CountedCells.of(log.split_by("bin"), beside.collect(), rates)
    draws, order = of_cells.draws(rates.height, of_cells.pairs.slices[of_cells.pair])
    gold = of_cells.labels[of_cells.pairs.gold[of_cells.pair[order]]] == 1
    phi = gold.cast(pl.Float64).to_numpy() - rates["rate"].to_numpy()[draws.slices]
    n = rates["rows"].to_numpy()
    variance = draws.products(phi, phi) / n / n
    return variance, Sampling(draws.effective, draws.n_clusters, log.is_frequency)

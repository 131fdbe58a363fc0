"""Pairs of slices → the difference of each to a reference: the rest, the total, another slice."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl

from polars_mcc._comparisons.difference_interval import (
    Difference,
    Side,
    difference,
    reaches,
    tested_rows,
    with_limits,
)
from polars_mcc._comparisons.evidence_and_p_values import Scale, better_or_worse, judged
from polars_mcc._counts.count_rows import count_columns, merged
from polars_mcc._counts.sliced_log import SlicedLog, joined
from polars_mcc._intervals.count_arrays import Counted, Draws, floats, of_arrays
from polars_mcc._intervals.interval_methods import normal, normal_critical
from polars_mcc._intervals.interval_options import TO, IntervalOptions
from polars_mcc._intervals.scores_of_arrays import Estimate, Given, Scorer, estimate, has_classes
from polars_mcc._intervals.smoothed_tables import Pools
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.slice_sums import Floats, Ints, added_up, places_in

ROUNDING = 2.0**-40
"""If equal sums of floats are subtracted, rounding may leave up to this share of the sum."""


def pairs_of_rest(
    log: SlicedLog, own: pl.DataFrame, total: pl.DataFrame, within: list[str]
) -> pl.DataFrame:
    """The pairs of the rest of each slice, with the keys of the slice.

    `own` has the pairs of the slices. `total` has the pairs of all rows, per value of the columns
    `within`: the rest of a slice has the same values.
    """
    counts = count_columns(log)
    slices = own.lazy().select(log.slice).unique()
    every = joined(slices, total.lazy(), within, how="inner")
    columns = [*log.slice, "gold", "pred", *counts]
    taken = own.lazy().with_columns(-pl.col(name) for name in counts)
    signed = pl.concat([every.select(columns), taken.select(columns)])
    return merged(log, _subtracted(log, signed)).collect()


def _subtracted(log: SlicedLog, signed: pl.LazyFrame) -> pl.LazyFrame:
    """Subtract float counts, which have a minus sign; what only rounding leaves becomes 0.

    Integers stay in two rows, one of them negative: all later steps add up the rows of a pair.
    """
    if not log.numbers.count.is_float():
        return signed
    n, least = pl.col("n"), pl.col("n").max() * ROUNDING
    sums = signed.group_by(*log.slice, "gold", "pred").agg(
        pl.col(count_columns(log)).sum(), least=least
    )
    return sums.with_columns(n=pl.when(n > pl.col("least")).then(n).otherwise(0.0))


_PART = "of:part"  # no metric has this name
_THAN = "of:than"  # what a score is better or worse than
_SLICE, _REST, _TOTAL = range(3)
_ROUNDING = 1e-12  # a smaller share of a variance is 0


def contrasts(
    log: SlicedLog,
    whole: SlicedLog,
    pairs: pl.DataFrame,
    asked: IntervalOptions,
    to: str | pl.Expr,
    *,
    ratio: bool,
) -> pl.DataFrame:
    """Each slice b with its reference a, and their difference or ratio by each metric.

    Slices are compared within each slice of `whole`. `to` is "rest", "total", "expected", "best" or
    "each", or says whether a slice is the reference of the others. Neither has a p-value unless
    both have as many rows as is asked for.
    """
    word = to if isinstance(to, str) else ""
    if word in {"rest", "total"}:
        estimated, number = _with_rests(log, whole, pairs, asked)
    else:
        estimated = estimate(log, pairs, asked, within=whole.slice)
        number = estimated.scores.height
    pools, rows = estimated.pools, tested_rows(estimated)
    assert pools is not None  # noqa: S101 - for the type checker
    slices, pool_of = np.arange(number), pools.of_slice
    totals = 2 * number + pool_of[:number]  # They come last, in the order of the pools.
    references = {"rest": slices + number, "total": totals, "expected": slices * 0 - 1}
    own, ci = estimated.cells.pairs.of_slices(0, number), asked.ci

    def by(metric: Metric) -> pl.DataFrame:
        if word in references:
            b, a = slices, references[word]
        else:
            b, a = _other_slices(estimated, metric, to)
        scores = Side.of(estimated.scores, metric.name)
        scorer = replace(estimated.scorer, metrics=[metric])
        given = scorer.given_labels(own, pools)
        place = pl.Series(a, dtype=pl.Int64).replace(-1, None)
        both = estimated.scores.select(*log.slice, "n", *log.unscored, score=metric.name)
        both = both[b].with_columns(
            both.select(
                *(pl.col(name).gather(place).alias(f"{name}{TO}") for name in log.slice),
                n_reference=pl.col("n").gather(place),
                reference=pl.col("score").gather(place),
            ),
            expected=expected_scores(scorer, given, own, pools)[b],
        )
        if word == "expected":
            n = pl.Series("n_reference", pools.pairs.sums[0][pool_of], both.schema["n"])
            both = both.with_columns(n, reference="expected")
            change = _to_expected(metric, scores, given, floats(both["n"]), ci)
        elif word == "total":
            change = _to_total(estimated, metric, number, ci)
        elif ratio:
            ratio_of = _ratio_of_ratios if metric.is_log else _ratio
            change, ratios = ratio_of(scores.gather(a), scores.gather(b), ci)
            both = both.with_columns(ratios)
        else:
            change = difference(scores.gather(a), scores.gather(b), ci)
        compared, than = change.beside(both), "reference"
        if ratio and word == "total":
            compared = _as_ratio(compared)
            if metric.is_share and not metric.is_count:
                sides = scores.gather(slices + number), scores.gather(slices), scores.gather(a)
                compared = _share_of_total(compared, *sides, ci)
        is_of_rows = scorer.is_frequency and not scorer.is_reweighted
        if word in {"rest", "total"} and metric.needs_all_classes and is_of_rows:
            here = scores.gather(slices)
            of_labels = _to_expected(metric, here, given, floats(both["n"]), ci).p_value
            compared = _by_labels(compared, metric, estimated.cells.pairs, totals, of_labels)
            than = _THAN
        least = np.append(rows[metric.name], math.inf)[np.stack([a, b])].min(0)
        return judged(compared, metric, asked, better_or_worse(metric, than), least)

    return pl.concat([by(metric) for metric in asked.metrics], how="diagonal")


def _by_labels(
    compared: pl.DataFrame, metric: Metric, pairs: Counted, totals: Ints, p_value: Floats
) -> pl.DataFrame:
    """Test a mean over classes by gold label, if the rest of a slice lacks one of its classes.

    Then the rest has the mean of other classes. `pairs` are of slices, then of their rests.
    """
    slices, n = np.arange(len(totals)), [*map(pairs.n_classes, (pairs.gold, pairs.pred))]
    every = [of_side[totals] for of_side in n]
    own, rest = (
        has_classes(metric.classes_needed, *(of_side[side] for of_side in n), *every)
        for side in (slices, slices + len(totals))
    )
    of_lost = pl.Series(np.where(own & ~rest, p_value, math.nan), nan_to_null=True)
    is_tested = pl.col("p_value").is_not_null()
    return compared.with_columns(
        pl.when(is_tested).then("reference").otherwise("expected").alias(_THAN),
        p_value=pl.coalesce("p_value", pl.lit(of_lost)),
    )


def _with_rests(
    log: SlicedLog, whole: SlicedLog, pairs: pl.DataFrame, asked: IntervalOptions
) -> tuple[Estimate, int]:
    """The scores of the slices, then of their rests, then of the totals; and the number of slices.

    A rest has the keys of its slice, and its rows are in the pool once: with their own slices.
    """
    total = merged(whole, pairs.lazy()).collect()
    rests = pairs_of_rest(log, pairs, total, whole.slice)
    parts = {_SLICE: pairs, _REST: rests, _TOTAL: total}
    every = [rows.with_columns(pl.lit(part).alias(_PART)) for part, rows in parts.items()]
    apart = log.split_by(_PART)
    is_own = pl.col(_PART) == _SLICE
    both = pl.concat(every, how="diagonal")
    estimated = estimate(apart, both, asked, within=whole.slice, in_pool=is_own)
    return estimated, int(estimated.scores.select(is_own.sum()).item())


def _other_slices(estimated: Estimate, metric: Metric, to: str | pl.Expr) -> tuple[Ints, Ints]:
    """The slices b and their references a, -1 if there is none: the best, each other, or a given.

    No slice is compared with itself.
    """
    assert estimated.pools is not None  # noqa: S101 - for the type checker
    pool_of, pools = estimated.pools.of_slice, range(estimated.pools.pairs.number)
    if isinstance(to, str) and to == "each":
        pairs = [np.zeros((2, 0), np.int64)]
        for pool in pools:
            [places] = np.nonzero(pool_of == pool)
            pairs.append(places[np.stack(np.triu_indices(len(places), 1))])
        b, a = np.concatenate(pairs, axis=1)
        return b, a
    if isinstance(to, pl.Expr):
        [references] = np.nonzero(estimated.scores.select(to).to_series().to_numpy())
    else:
        # A tiny slice of one class may score 1, and cannot be compared.
        score, low, *_ = Side.of(estimated.scores, metric.name)
        score = np.where(np.isnan(low), math.nan, -score if metric.less_is_better else score)
        best = np.full(len(pools), math.nan)
        np.fmax.at(best, pool_of, score)
        [references] = np.nonzero(score == best[pool_of])
    reference_of = np.full(len(pools), -1)
    reference_of[pool_of[references[::-1]]] = references[::-1]  # the first one
    a = reference_of[pool_of]
    [b] = np.nonzero(a != np.arange(len(a)))
    return b, a[b]


def expected_scores(scorer: Scorer, given: Given, own: Counted, pools: Pools) -> pl.Series:
    """The scores given the labels, as `by` has scores: NaN at 0/0 if `zero_division` is NaN."""
    expected = pl.Series(given.expected, nan_to_null=True)
    if scorer.zero_division is None or not math.isnan(scorer.zero_division):
        return expected
    filled = replace(scorer, zero_division=0.0).given_labels(own, pools).expected
    is_nan = pl.Series(np.isnan(given.expected) & ~np.isnan(filled))
    return expected.set(is_nan, math.nan)


def _to_expected(metric: Metric, scores: Side, given: Given, n: Floats, ci: float) -> Difference:
    """The difference of each slice to its score given the labels."""
    with np.errstate(all="ignore"):
        is_known = ~np.isnan(scores.low) & (given.se > 0)
        se = np.where(is_known, given.se, math.nan)
        scale = Scale.of(metric)
        score, expected = scale.turn * scores.score, scale.turn * given.expected
        apart = scale.apart(score, n, expected, se, given.step)
        p_value = np.where(is_known, normal(apart), math.nan)
        diff, reach = scores.score - given.expected, normal_critical(ci) * se
    return Difference(diff, diff - reach, diff + reach, p_value)


def _to_total(estimated: Estimate, metric: Metric, number: int, ci: float) -> Difference:
    """The difference of each slice to the total, from the tables of the slice and the rest.

    With a share w of the rows, it is (1 - w) times the difference to the rest, plus a remainder
    c = w·slice + (1 - w)·rest - total. A mean over rows has c = 0, so it has the p-value of the
    difference to the rest. For other metrics the reach of c is added to the reach of the rest.

    The covariances are over the rows of the slice, or of the rest, with the influences φ of a row
    on its score and on the total's, centred within it: Σ φ_own φ_total / n². With sample weights w
    they are Σ w² φ_own φ_total / (Σ w)².
    """
    assert estimated.pools is not None  # noqa: S101 - for the type checker
    pool_of, pairs, k = estimated.pools.of_slice, estimated.cells.pairs, len(estimated.cells.labels)
    phi = estimated.measured[metric.name].phi
    ids = (pool_of[pairs.slices] * k + pairs.gold) * k + pairs.pred
    first = np.searchsorted(pairs.slices, 2 * number)
    of_total = np.append(phi[first:], math.nan)[places_in(ids[first:], ids)]
    draws = Draws(pairs.number, pairs.slices, pairs.n * 1.0, pairs.squares * 1.0, None)
    with np.errstate(all="ignore"):
        mean = added_up(draws.n * of_total, draws.slices, draws.number) / draws.size
        centred = of_total - mean[draws.slices]
        products = [
            draws.products(*both) for both in ((phi, phi), (phi, centred), (centred, centred))
        ]
        own, own_total, total_total = (x[:number] / draws.size[:number] ** 2 for x in products)
        rest_rest, rest_total, total_rest = (
            np.nan_to_num((x / draws.size / draws.size)[number : 2 * number]) for x in products
        )
        n, n_total = draws.size[:number], draws.size[2 * number :][pool_of[:number]]
        w = n / n_total
        remainder = w**2 * (own - 2 * own_total + total_total)
        remainder += (1 - w) ** 2 * (rest_rest - 2 * rest_total + total_rest)
        variance = own - 2 * w * own_total + w**2 * total_total + (1 - w) ** 2 * total_rest
        is_known = remainder > _ROUNDING * variance  # a mean over rows has no remainder
        reach_of_c = np.where(is_known, normal_critical(ci) * np.sqrt(remainder), 0.0)
        scores = Side.of(estimated.scores, metric.name)
        b, places = scores.gather(np.arange(number)), np.arange(number, 2 * number)
        # If the slice is all rows, the difference is 0 for certain.
        down, up = (
            np.where(n == n_total, 0.0, (1 - w) * reach + reach_of_c)
            for reach in reaches(scores.gather(places), b)
        )
        total = scores.score[2 * number :][pool_of[:number]]
        return with_limits(b.score - total, down, up, ci=ci)


def _ratio(a: Side, b: Side, ci: float) -> tuple[Difference, list[pl.Series]]:
    """The difference of the logarithms of both scores, and the ratio with its limits.

    A score of 0 has no logarithm. Then the limits are those of Donner and Zou (2012), and the test
    is that of the difference: it finds one exactly if these limits do not hold 1.
    """
    with np.errstate(all="ignore"):
        log_a, log_b = (
            Side(*(np.where(side.score > 0, np.log(np.clip(x, 0, None)), math.nan) for x in side))
            for side in (a, b)
        )
        change = difference(log_a, log_b, ci)
        is_one_0 = (np.minimum(a.score, b.score) == 0) & (np.maximum(a.score, b.score) > 0)
        least_a, least_b = (
            np.sqrt(np.clip(side.score**2 - (side.score - side.low) ** 2, 0, None))
            for side in (a, b)
        )
        ends = {
            "ratio": (b.score / a.score, change.diff),
            "ratio_low": (least_b / a.high, change.low),
            "ratio_high": (b.high / least_a, change.high),
        }
        ratios = {name: np.where(is_one_0, x, np.exp(log)) for name, (x, log) in ends.items()}
        p_value = np.where(is_one_0, difference(a, b, ci).p_value, change.p_value)
    return change._replace(p_value=p_value), [*of_arrays(**ratios)]


def _ratio_of_ratios(a: Side, b: Side, ci: float) -> tuple[Difference, list[pl.Series]]:
    """The difference of the logarithms of two ratios, and the ratio of both with its limits.

    The limits and the test are of the logarithms with half rows, which are normal and finite. The
    limits hold the ratio, as those of `log_interval` do.
    """
    z = normal_critical(ci)
    with np.errstate(all="ignore"):
        ratio, se = b.score / a.score, np.hypot(a.se, b.se)
        se = np.where(np.isnan(ratio), math.nan, se)
        diff = b.logarithm(z) - a.logarithm(z)
        change = with_limits(diff, z * se, z * se, ci=ci)
        low, high = np.minimum(np.exp(change.low), ratio), np.maximum(np.exp(change.high), ratio)
    return change, [*of_arrays(ratio=ratio, ratio_low=low, ratio_high=high)]


def _as_ratio(to_total: pl.DataFrame) -> pl.DataFrame:
    """The differences to the total as ratios. Beside a total of 0, only the side of 1 is known."""
    score, total = pl.col("score"), pl.col("reference")
    known = pl.when((total >= 0) & (score >= 0) & (total + score > 0))
    ends = {end: (1 + pl.col(f"diff{end}") / total).clip(0) for end in ("", "_low", "_high")}
    ends["_low"] = pl.when(total == 0).then(ends["_low"].clip(0, 1)).otherwise(ends["_low"])
    ratios = {f"ratio{end}": known.then(value) for end, value in ends.items()}
    return to_total.with_columns(**ratios, p_value=known.then("p_value"))


def _share_of_total(
    to_total: pl.DataFrame, rest: Side, own: Side, total: Side, ci: float
) -> pl.DataFrame:
    """The ratios of proportions to the total, from the ratio ρ to the rest and its limits.

    The total is w·slice + (1 - w)·rest, so the ratio is 1 / (w + (1 - w) / ρ). It has the p-value
    of ρ. A slice of all rows has no rest.
    """
    change, ratios = _ratio(rest, own, ci)
    with np.errstate(all="ignore"):
        share = (total.score - rest.score) / (own.score - rest.score)
        of_rows = floats(to_total["n"]) / floats(to_total["n_reference"])
        w = np.clip(np.where(own.score == rest.score, of_rows, share), 0, 1)
        known = {x.name: 1 / (w + (1 - w) / floats(x)) for x in ratios}
    columns = of_arrays(**known, p_value=change.p_value)
    has_rest = pl.Series(~np.isnan(rest.score))
    return to_total.with_columns(
        pl.when(has_rest).then(column).otherwise(column.name).alias(column.name)
        for column in columns
    )

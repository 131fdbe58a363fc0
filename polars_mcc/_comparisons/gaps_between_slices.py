"""Pairs of slices → for each metric, the gap from the lowest to the highest, and their spread.

A score is a proportion v of m rows, as in `evidence_and_p_values`. If all slices are equal, they
have the pooled proportion v̄ = Σ m·v / Σ m, so a slice has the variance v̄(1 - v̄)/m, also one whose
few rows are all wrong or all right. Pearson's X² is Σ m (v - v̄)² / (v̄(1 - v̄)). With few rows of a
rare label it has a longer tail than χ². So its p-value is of the χ² with the first three moments of
X² (Imhof 1961).

The interval of the gap holds for all pairs of slices at once. A pair has the interval of Zou (2007)
with the critical value of Tukey's range of S normal numbers over √2. There the tail of the binomial
distribution is long, if few rows are wrong. Limits of Clopper and Pearson (1934) have this tail,
and Wilson's do not. The gap is the largest of the differences of all pairs, so its limits are the
largest lower and the largest upper limit.

The ratio of the lowest to the highest proportion is the least ratio of all ordered pairs, and its
limits are the least of theirs. A pair has the limits where two tests reach the critical value of
Bonferroni for all ordered pairs: the score test of Miettinen and Nurminen (1985), and the
likelihood ratio with both sides moved by half a row (Yates 1934), which few rows need.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mcc._base.slice_names import slice_name
from polars_mcc._base.values_as_text_or_markdown import as_text
from polars_mcc._comparisons.difference_interval import Side
from polars_mcc._comparisons.evidence_and_p_values import LEVEL, Scale, divergence, judged
from polars_mcc._counts.class_counts import is_scored, unscored_sums
from polars_mcc._counts.sliced_log import KEY, SET, SlicedLog, joined
from polars_mcc._intervals.count_arrays import floats
from polars_mcc._intervals.interval_methods import normal, normal_critical
from polars_mcc._intervals.interval_options import IntervalOptions
from polars_mcc._intervals.scores_of_arrays import estimate
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.slice_sums import Floats, Ints, Segments


class Compared(NamedTuple):
    """Slices that are compared with each other: arrays (slices,)."""

    score: Floats
    below: Floats
    """The effective rows, by the lower limit."""
    above: Floats
    """The effective rows, by the upper limit."""


class Gap(NamedTuple):
    """The gap between slices; NaN is unknown."""

    diff: float = math.nan
    diff_low: float = math.nan
    diff_high: float = math.nan
    ratio: float = math.nan
    ratio_low: float = math.nan
    ratio_high: float = math.nan
    spread: float = math.nan
    p_value: float = math.nan


def gaps_of(groups: Sequence[Compared], scale: Scale, ci: float) -> list[Gap]:
    """The gap between the slices of each group; unknown if there are fewer than two."""
    sizes = [len(group.score) for group in groups]
    z = np.array([range_quantile(max(size, 2), ci) for size in sizes]) / math.sqrt(2)
    slices = Compared(*map(np.concatenate, zip(*groups, strict=True)))
    reaches = np.stack(_reaches(slices, scale, np.repeat(z, sizes)))
    of_each = np.split(reaches, np.cumsum(sizes)[:-1], axis=1)
    unknown = [(math.nan, math.nan)] * len(groups)
    ratios = _limits_of_ratios(groups, ci) if scale.is_share else unknown
    return [_gap_of(*of_group, scale) for of_group in zip(groups, of_each, ratios, strict=True)]


def _gap_of(slices: Compared, reaches: Floats, limits: tuple[float, float], scale: Scale) -> Gap:
    """The gap between slices, from how far they reach and the limits of its ratio."""
    if len(slices.score) < 2:
        return Gap()
    lowest, highest = slices.score.min(), slices.score.max()
    down, up = reaches
    low, high = _limits(slices.score, down, up, scale)
    # The smaller over the larger score; unknown at 0/0, and below 0.
    ratio = lowest / highest if lowest >= 0 and highest > 0 else math.nan
    limits = (math.nan, math.nan) if math.isnan(ratio) else limits
    return Gap(highest - lowest, low, high, ratio, *limits, *_spread_and_p_value(slices, scale))


def _limits(score: Floats, down: Floats, up: Floats, scale: Scale) -> tuple[float, float]:
    """The limits of the gap: for all pairs of slices at once."""
    i, j = (_outermost(side, reach) for side, reach in ((score, -down), (-score, -up)))
    lower = score[i, None] - score[j] - np.hypot(down[i, None], up[j])
    lower[i[:, None] == j] = -math.inf
    i, j = (_outermost(side, reach) for side, reach in ((score, up), (-score, down)))
    upper = score[i, None] - score[j] + np.hypot(up[i, None], down[j])
    upper[i[:, None] == j] = -math.inf
    span = math.inf if scale.low is None or scale.high is None else scale.high - scale.low
    return max(float(lower.max()), 0.0), min(float(upper.max()), span)


def _limits_of_ratios(groups: Sequence[Compared], ci: float) -> list[tuple[float, float]]:
    """The limits of the ratio of the lowest to the highest proportion: for all pairs at once."""
    pairs = [max(math.perm(len(group.score), 2), 1) for group in groups]
    z = np.array([normal_critical(1 - 2 * (1 - ci) / number) for number in pairs])
    limits = []
    for is_low in (True, False):
        sides = [_sides_of_ratio(group, is_low=is_low) for group in groups]
        of_pair = np.repeat(np.arange(len(groups)), [side.shape[-1] for side in sides])
        i, j = np.concatenate(sides, axis=-1)
        # To test whether i / j is above r, test whether j / i is below 1 / r.
        (v_a, m_a), (v_b, m_b) = (j, i) if is_low else (i, j)
        low, high = np.zeros(of_pair.size), np.ones(of_pair.size)
        for _ in range(_HALVINGS):
            r = (low + high) / 2
            errors = errors_below(v_a, m_a, v_b, m_b, 1 / r if is_low else r)
            is_above = (errors > z[of_pair]) != is_low
            low, high = np.where(is_above, low, r), np.where(is_above, r, high)
        limits.append(Segments.of(of_pair, len(groups)).min(low if is_low else high))
    return [*zip(*map(np.ndarray.tolist, limits), strict=True)]


def _sides_of_ratio(slices: Compared, *, is_low: bool) -> Floats:
    """The proportions and the rows of both slices of pairs: (2 slices, 2 numbers, pairs).

    The pair with the least limit is among them.
    """
    v, m = slices.score, np.fmin(slices.below, slices.above)
    rows = -m if is_low else m  # Limits of few rows are far apart.
    i, j = np.meshgrid(_outermost(-v, rows), _outermost(v, rows))
    is_pair = i != j
    return np.stack([[v[side[is_pair]], m[side[is_pair]]] for side in (i, j)])


def errors_below(v_i: Floats, m_i: Floats, v_j: Floats, m_j: Floats, ratio: Floats) -> Floats:
    """How many standard errors v_i / v_j is below a ratio: the fewer of two tests.

    v are proportions of m rows. The first is z of Miettinen and Nurminen (1985). The second is the
    root of the likelihood ratio, and at least 0. Its tail is right if few rows hit, or few miss.
    """
    n = m_i + m_j
    with np.errstate(all="ignore"):
        p = _at_ratio(v_i, m_i, v_j, m_j, ratio)
        variance = ratio * p * (1 - ratio * p) / m_i + ratio**2 * p * (1 - p) / m_j
        z = (ratio * v_j - v_i) / np.sqrt(variance * n / (n - 1))
        v_i, v_j = v_i + 0.5 / m_i, v_j - 0.5 / m_j
        p = _at_ratio(v_i, m_i, v_j, m_j, ratio)
        apart = m_i * divergence(v_i, ratio * p) + m_j * divergence(v_j, p)
        root = np.where(ratio * v_j > v_i, np.sqrt(np.clip(2 * apart, 0, None)), 0.0)
    return np.fmin(z, root)


def _at_ratio(v_i: Floats, m_i: Floats, v_j: Floats, m_j: Floats, ratio: Floats) -> Floats:
    """The likeliest proportion of j, if that of i is `ratio` times as large: a quadratic's root."""
    hits, n = m_i * v_i + m_j * v_j, m_i + m_j
    b = ratio * (m_i + m_j * v_j) + m_j + m_i * v_i
    p: Floats = 2 * hits / (b + np.sqrt(np.clip(b**2 - 4 * n * ratio * hits, 0, None)))
    return p


def _reaches(slices: Compared, scale: Scale, z: Floats) -> tuple[Floats, Floats]:
    """How far the interval of each score reaches down, and up."""
    if scale.low is None or scale.high is None:
        return z / np.sqrt(slices.below), z / np.sqrt(slices.above)
    v, span = scale.proportion(slices.score), scale.high - scale.low
    both = np.stack([v, 1 - v])
    down, up = span * (both - lower_limit(both, np.stack([slices.below, slices.above]), z))
    return down, up


def lower_limit(v: Floats, rows: Floats, z: Floats | float) -> Floats:
    """The lower limit of Clopper and Pearson, of a proportion v of so many rows: any number.

    At the limit, so many hits or more are as probable as more than z normal standard errors. Peizer
    and Pratt (1968) give this number of standard errors, to some hundredths.
    """
    hits = v * rows - 0.5
    misses = rows - hits
    low, high = np.zeros_like(v), np.where(hits > 0, v, 0.0)
    with np.errstate(all="ignore"):
        for _ in range(_HALVINGS):
            p = (low + high) / 2
            q = 1 - p
            apart = hits + 1 / 6 - (rows + 1 / 3) * p
            apart += 0.02 * (q / (hits + 0.5) - p / (misses + 0.5) + (q - 0.5) / (rows + 1))
            skew = 1 + q * _skew(hits / (rows * p)) + p * _skew(misses / (rows * q))
            is_below = apart * np.sqrt(skew / ((rows + 1 / 6) * p * q)) > z
            low, high = np.where(is_below, p, low), np.where(is_below, high, p)
    return low


def _skew(x: Floats) -> Floats:
    """(1 - x² + 2x ln x) / (1 - x)², the g of Peizer and Pratt; by its series near 1."""
    u = 1 - x
    near = u / 3 + u**2 / 6 + u**3 / 10
    return np.where(np.abs(u) < _NEAR, near, (1 - x**2 + 2 * x * np.log(x)) / u**2)


_HALVINGS, _NEAR = 45, 1e-3


def _outermost(score: Floats, reach: Floats) -> Ints:
    """The slices that some pair of the largest limit may be of.

    A limit grows with the score and the reach. So a slice counts only if at most one slice has more
    of both: the other slice of its pair.
    """
    left, found = np.arange(len(score)), []
    for _ in range(2):
        order = left[np.lexsort([-reach[left], -score[left]])]
        most = np.maximum.accumulate(reach[order])
        is_out = np.diff(most, prepend=-math.inf) > 0
        found.append(order[is_out])
        left = order[~is_out]
    return np.concatenate(found)


def _spread_and_p_value(slices: Compared, scale: Scale) -> tuple[float, float]:
    """The standard deviation between slices without that of samples; whether all are equal.

    A score without a range has the variance 1/m.
    """
    df, rows, v = len(slices.score) - 1, np.fmin(slices.below, slices.above), slices.score
    cumulants, span, unit = np.array([1.0, 2.0, 8.0]) * df, 1.0, 1.0
    if scale.low is not None and scale.high is not None:
        v, span = scale.proportion(v), scale.high - scale.low
        mean = (rows * v).sum() / rows.sum()
        unit = mean * (1 - mean)
    if unit == 0:  # All rows are right, or all wrong.
        return 0.0 if df > 1 else math.nan, 1.0
    weights = rows / unit
    whole = weights.sum()
    squares = (weights * (v - (weights * v).sum() / whole) ** 2).sum()
    if scale.low is not None:
        each, every = (_cumulants(m, unit).sum(1) for m in (rows, rows.sum(keepdims=True)))
        cumulants = np.fmax(each - every, cumulants)
    p_value = _upper_tail(squares, *cumulants)
    if df < 2:
        return math.nan, p_value
    between = (squares - df) / (whole - (weights**2).sum() / whole)
    return span * math.sqrt(max(between, 0.0)), p_value


def _cumulants(rows: Floats, unit: float) -> Floats:
    """The first three cumulants of (X - m·v)² / (m·v(1 - v)), for a binomial X of m rows.

    `unit` is v(1 - v). They follow from the sixth central moment of X.
    """
    s = 1 / (rows * unit)
    fourth = 3 + (1 - 6 * unit) * s
    sixth = 15 + (25 - 130 * unit) * s + (1 - 30 * unit + 120 * unit**2) * s**2
    return np.stack([np.ones_like(s), fourth - 1, sixth - 3 * fourth + 2])


def _upper_tail(x: float, mean: float, variance: float, third: float) -> float:
    """The probability of at least x, of a scaled and shifted χ² with these cumulants."""
    df = 8 * variance**3 / third**2
    return chi_squared((x - mean) * math.sqrt(2 * df / variance) + df, df)


@lru_cache(maxsize=256)
def range_quantile(number: int, level: float) -> float:
    """The quantile of the range of so many standard normal numbers.

    The range is at most q with the probability S ∫ φ(x) (Φ(x) - Φ(x - q))^(S-1) dx.
    """
    x = np.linspace(-9, 9, 3601)
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0]) * number
    below = _cdf(x)
    least, most = 0.0, 20.0
    while most - least > 1e-10:
        q = (least + most) / 2
        share = (density * (below - _cdf(x - q)) ** (number - 1)).sum()
        least, most = (q, most) if share < level else (least, q)
    return (least + most) / 2


def _cdf(x: Floats) -> Floats:
    """The standard normal distribution function."""
    p = normal(x) / 2
    return np.where(x < 0, p, 1 - p)


def chi_squared(x: float, df: float) -> float:
    """The probability that χ² is at least x: the incomplete gamma function Q(df/2, x/2).

    Abramowitz and Stegun (1964), 6.5.29 and 6.5.31.
    """
    a, x = df / 2, x / 2
    if x <= 0:
        return 1.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        k = a
        while term > total * _CLOSE:
            k += 1
            term *= x / k
            total += term
        return max(1 - scale * total, 0.0)
    # The continued fraction, by Lentz's method.
    b = x + 1 - a
    c, d = math.inf, 1 / b
    fraction = d
    for k in range(1, _TERMS):
        step = -k * (k - a)
        b += 2
        d = 1 / (b + step * d)
        c = b + step / c
        fraction *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
    return scale * fraction


_CLOSE, _TERMS = 1e-14, 10_000


_GROUP, _ROWS = "of:group", "of:rows"  # no metric has these names
LEAST_ROWS = 0.5
"""A score of fewer effective rows is not compared: it may be nearly anything of its range."""
_AT_ONCE = 4096  # groups of slices


def gaps(
    log: SlicedLog, whole: SlicedLog, pairs: pl.DataFrame, asked: IntervalOptions
) -> pl.DataFrame:
    """The gap between the slices of each slice of `whole`, for each metric.

    Slices of too few rows are left out; and of a metric, slices whose score has no interval, or is
    of fewer than half as many rows.
    """
    own = [key for key in log.keys if key not in whole.keys]
    if log.sets is not None:  # A set without keys of its own has one slice.
        of_keys = [name for name, keys in log.sets.items() if {*keys} & {*own}]
        pairs = pairs.filter(pl.col(SET).cast(pl.String).is_in(of_keys))
    scored = pairs.lazy().filter(is_scored(log))
    rows = log.numbers.total(pl.col("n")).cast(pl.Float64)
    if not log.is_frequency:  # so many rows of equal weight would be as good
        rows = rows.pow(2) / pl.col("squares").sum()
    large = log.per_slice(scored, rows=rows).filter(pl.col("rows") >= asked.min_n).collect()
    kept = joined(pairs, large, log.slice, how="semi")
    estimated = estimate(log, kept, replace(asked, ci=LEVEL, is_compared=True), within=whole.slice)
    effective = estimated.cells.pairs.effective(is_frequency=log.is_frequency)
    scores = estimated.scores.with_columns(pl.Series(_ROWS, effective, pl.Float64))
    unscored = {name: log.numbers.as_count(number) for name, number in unscored_sums(log).items()}
    groups = whole.per_slice(pairs.lazy(), **unscored).with_row_index(_GROUP).collect()
    numbered = groups.lazy().select(*whole.slice, _GROUP)
    slices = whole.beside(scores.lazy(), numbered).sort(_GROUP, *log.slice).collect()
    texts = {key: as_text(pl.col(KEY + key), log.key_dtypes[key]) for key in own}
    names = slices.select(slice_name(texts, log.sets))
    answers = []
    for metric in asked.metrics:
        found = _of_metric(slices, names.to_series(), metric, asked)
        answer = groups.join(found, on=_GROUP, how="left", maintain_order="left")
        answer = answer.with_columns(pl.col("n_slices", "n").fill_null(0))
        answers.append(judged(answer, metric, asked, pl.lit("gap")))
    return pl.concat(answers)


def _of_metric(
    slices: pl.DataFrame, names: pl.Series, metric: Metric, asked: IntervalOptions
) -> pl.DataFrame:
    """The gap of a metric in each group of slices with a known score."""
    score, low, high, _ = Side.of(slices, metric.name)
    scale = Scale.of(metric, 1)
    below, above = scale.rows_by_limits(score, low, high, floats(slices[_ROWS]))
    rows = np.minimum(below, above)
    is_known = (rows > LEAST_ROWS) & ~np.isnan(low) & ~np.isnan(high)
    if scale.low is not None:  # A rate may be of few rows.
        is_known &= np.round(2 * rows, 6) >= asked.min_n
    places = np.flatnonzero(is_known)
    known = slices.select(_GROUP, "n", name=names, score=score)[places]
    ends = {"lowest": pl.col("score").arg_min(), "highest": pl.col("score").arg_max()}
    found = known.group_by(_GROUP, maintain_order=True).agg(
        pl.sum("n"),
        n_slices=pl.len().cast(pl.Int64),
        **{end: pl.col("name").get(place) for end, place in ends.items()},
        **{f"{end}_score": pl.col("score").get(place) for end, place in ends.items()},
    )
    of_each = np.split(places, found["n_slices"].cum_sum().to_numpy()[:-1])[: found.height]
    groups = [Compared(score[of], below[of], above[of]) for of in of_each]
    gaps: list[Gap] = []
    for start in range(0, len(groups), _AT_ONCE):
        gaps += gaps_of(groups[start : start + _AT_ONCE], scale, asked.ci)
    figures = pl.DataFrame(gaps, dict.fromkeys(Gap._fields, pl.Float64()), orient="row")
    return found.hstack(figures.fill_nan(None))

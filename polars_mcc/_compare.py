"""pairs of two models → differences: is one better than the other, on the same rows."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal, TypeAlias

import polars as pl

from polars_mcc._classes import Nulls
from polars_mcc._influence import variance, with_influence
from polars_mcc._intervals import NOTHING, Method, estimate
from polars_mcc._log import Log
from polars_mcc._pairs import merged, pairs

Correction: TypeAlias = Literal["bh", "by", "holm", "bonferroni"]

COLUMNS = (
    "n",
    "n_clusters",
    "mcc_a",
    "mcc_b",
    "diff",
    "se",
    "diff_low",
    "diff_high",
    "p_value",
    "p_adjusted",
    "n_null",
)


def differences(
    log: Log,
    *,
    nulls: Nulls,
    zero_division: float | None,
    ci: float,
    method: Method,
    correction: Correction,
) -> pl.LazyFrame:
    """The score of each model, b, less that of the baseline, a, per slice."""
    labels = [pl.col(name) for name in ("gold", "baseline", "pred")]
    cells = pairs(log).cache()
    if nulls == "drop":  # A row that one model leaves open is scored for neither.
        is_scored = pl.all_horizontal(label.is_not_null() for label in labels)
        cells = cells.with_columns(gold=pl.when(is_scored).then("gold"))
    cluster = {"cluster": pl.col("cluster")} if log.has_clusters else {}
    a, b = (
        estimate(
            log,
            merged(log, cells, gold=pl.col("gold"), pred=pl.col(side), **cluster),
            nulls=nulls,
            zero_division=zero_division,
            ci=ci,
            method=method,
        )
        for side in ("baseline", "pred")
    )
    rows = with_influence(log, cells, a.influences, pred="baseline", name="phi_a")
    rows = with_influence(log, rows, b.influences, name="phi_b")
    of_b = log.beside(b.scores, b.intervals).rename(
        {"mcc": "mcc_b", "se": "se_b", "mcc_low": "low_b", "mcc_high": "high_b"}
    )
    of_a = log.beside(a.scores, a.intervals).select(
        *log.slice, mcc_a="mcc", se_a="se", low_a="mcc_low", high_a="mcc_high"
    )
    moved = variance(log, rows, pl.col("phi_b") - pl.col("phi_a"))
    moved = moved.select(*log.slice, "variance", "units")
    slices = _limits(log.beside(log.beside(of_b, of_a), moved), ci, method)
    shown = [name for name in COLUMNS if cluster or name != "n_clusters"]
    n_clusters = {name: pl.col(name).fill_null(0) for name in shown if name == "n_clusters"}
    return _adjusted(slices.with_columns(**n_clusters), correction).select(*log.slice, *shown)


def _limits(slices: pl.LazyFrame, ci: float, method: Method) -> pl.LazyFrame:
    """The difference with its interval, from those of both scores (Zou 2007).

    The limits of a score tell the variance that it has there; their correlation is that of
    the influences of a row on both. So the interval is Wald's if those of the scores are, and
    else not symmetric, as theirs. For the score interval the correlation is shrunk by
    n / (n + z²): two models that agree on 5 rows need not agree on the next. The p-value is
    below 1 - ci where the interval leaves 0 out: it takes the variance that the limit on the
    side of 0 tells.
    """
    z = NormalDist().inv_cdf((1 + ci) / 2)
    a, b, diff = pl.col("mcc_a"), pl.col("mcc_b"), pl.col("diff")
    se_a, se_b, moved = pl.col("se_a"), pl.col("se_b"), pl.col("variance")
    shared = (se_a.pow(2) + se_b.pow(2) - moved) / (2 * se_a * se_b)
    correlation, units = pl.col("correlation"), pl.col("units")
    known = units / (units + z**2) if method == "score" else pl.lit(1.0)

    def reach(one: pl.Expr, other: pl.Expr) -> pl.Expr:
        squared = one.pow(2) + other.pow(2) - 2 * correlation * one * other
        return squared.clip(0).sqrt()

    down = reach(b - pl.col("low_b"), pl.col("high_a") - a)
    up = reach(pl.col("high_b") - b, a - pl.col("low_a"))
    to_zero = pl.when(diff > 0).then("down").otherwise("up")
    errors = pl.when(diff == 0).then(0.0).otherwise(z * diff.abs() / to_zero)
    return (
        slices.with_columns(diff=b - a, correlation=(shared.clip(-1, 1) * known).fill_null(0.0))
        .with_columns(down=down, up=up)
        .with_columns(
            se=pl.when(moved * units > NOTHING).then(moved.sqrt()),
            diff_low=diff - pl.col("down"),
            diff_high=diff + pl.col("up"),
            p_value=pl.when(to_zero.is_not_null()).then((errors / math.sqrt(2)).erfc()),
        )
    )


def _adjusted(slices: pl.LazyFrame, correction: Correction) -> pl.LazyFrame:
    """Correct the p-values for how many there are.

    Benjamini and Hochberg (1995), Benjamini and Yekutieli (2001): the rate of false
    discoveries. Holm (1979), Bonferroni: the probability of one.
    """
    p = pl.col("p_value")
    m = p.count().cast(pl.Float64)
    place = pl.int_range(pl.len()) + 1
    if correction == "bonferroni":
        return slices.with_columns(p_adjusted=(p * m).clip(upper_bound=1))
    if correction == "holm":
        adjusted = (p * (m + 1 - place)).cum_max()
        return slices.sort("p_value", nulls_last=True).with_columns(
            p_adjusted=adjusted.clip(upper_bound=1)
        )
    rank = m + 1 - place
    tests = m if correction == "bh" else m * (1 / pl.int_range(1, p.count() + 1)).sum()
    return slices.sort("p_value", descending=True, nulls_last=True).with_columns(
        p_adjusted=(p * tests / rank).cum_min().clip(upper_bound=1)
    )

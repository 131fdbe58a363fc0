"""pairs of two models → differences: is one better than the other, on the same rows."""

from __future__ import annotations

from statistics import NormalDist

import polars as pl

from polars_mcc._classes import Nulls
from polars_mcc._differences import Correction, adjusted, side, side_a, with_difference
from polars_mcc._influence import variance, with_influence
from polars_mcc._intervals import NOTHING, Method, estimate
from polars_mcc._log import Log
from polars_mcc._pairs import merged, pairs

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
            merged(log, cells, gold=pl.col("gold"), pred=pl.col(pred), **cluster),
            nulls=nulls,
            zero_division=zero_division,
            ci=ci,
            method=method,
        )
        for pred in ("baseline", "pred")
    )
    rows = with_influence(log, cells, a.influences, pred="baseline", name="phi_a")
    rows = with_influence(log, rows, b.influences, name="phi_b")
    most = pl.col("phi_a_unit") + pl.col("phi_b_unit")
    moved = variance(log, rows, pl.col("phi_b") - pl.col("phi_a"), most)
    moved = moved.select(*log.slice, "variance", "units")
    both = log.beside(log.beside(side(log, b, "b"), side_a(log, a)), moved)
    slices = with_difference(_correlated(both, ci, method), ci)
    shown = [name for name in COLUMNS if cluster or name != "n_clusters"]
    n_clusters = {name: pl.col(name).fill_null(0) for name in shown if name == "n_clusters"}
    return adjusted(slices.with_columns(**n_clusters), correction).select(*log.slice, *shown)


def _correlated(slices: pl.LazyFrame, ci: float, method: Method) -> pl.LazyFrame:
    """Add the standard error of the difference, and the correlation of both scores.

    It is that of the influences of a row on both. For the score interval it is shrunk by
    n / (n + z²): two models that agree on 5 rows need not agree on the next.
    """
    z = NormalDist().inv_cdf((1 + ci) / 2)
    se_a, se_b = pl.col("se_a"), pl.col("se_b")
    moved, units = pl.col("variance"), pl.col("units")
    shared = (se_a.pow(2) + se_b.pow(2) - moved) / (2 * se_a * se_b)
    known = units / (units + z**2) if method == "score" else pl.lit(1.0)
    return slices.with_columns(
        se=pl.when(moved * units > NOTHING).then(moved.sqrt()),
        correlation=(shared.clip(-1, 1) * known).fill_null(0.0),
    )

"""Influences of rows → the variance of a statistic of their slice (the delta method)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from polars_mcc._counts.exact import power_of_two
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._log.labels import are_scored

NOTHING = 1e-20  # a mean square of influences up to this is 0, except for rounding
_FINE = 2.0**80


def exact_sums(
    log: SlicedLog, rows: pl.LazyFrame, by: Sequence[str], **addends: pl.Expr
) -> pl.LazyFrame:
    """Sum floats within each slice, and within `by`; the same bits in any order of rows.

    An addend becomes an integer: it keeps 80 binary digits after the point of the largest addend
    of its slice. Up to 2^46 addends fit into an Int128. A sum is null if an addend is infinite.
    """
    units = {
        f"unit of {name}": log.within_slice(
            power_of_two(addend.abs().fill_nan(math.inf).max().cast(pl.Float64))
        )
        for name, addend in addends.items()
    }
    sums = {}
    for name in addends:
        unit = pl.col(f"unit of {name}")
        whole = (pl.col(name) / unit * _FINE).cast(pl.Int128, strict=False).sum()
        total = whole.cast(pl.Float64) / _FINE * unit.max()
        sums[name] = pl.when(unit.max().is_finite()).then(total)
    keys = [*log.slice, *by]
    scaled = rows.select(*keys, **addends, **units)
    return scaled.group_by(keys).agg(**sums) if keys else scaled.select(**sums)


def with_influence(
    log: SlicedLog,
    cells: pl.LazyFrame,
    influences: pl.LazyFrame,
    *,
    pred: str = "pred",
    name: str = "phi",
) -> pl.LazyFrame:
    """The scored cells, with the influence `phi` of their pair in the column `name`.

    Not an inner join: of several, Polars may first join the influences with each other.
    """
    counts = ["n", "n_null", "squares", "weight"]
    of_pair = influences.drop(counts, strict=False).rename({"pred": pred, "phi": name})
    scored = cells.filter(are_scored(pl.col("gold"), pl.col(pred), log.nulls))
    return scored.join(of_pair, on=[*log.slice, "gold", pred], how="left", nulls_equal=True)


def over_draws(log: SlicedLog, rows: pl.LazyFrame, **products: tuple[str, str]) -> pl.LazyFrame:
    """Sum products of two columns over the independent draws of each slice.

    A draw is a row, or a cluster. The product of columns a and b is Σ (Σ n·a)·(Σ n·b), where the
    inner sums are over the rows of a draw. So the variance of a mean with the influence a is the
    sum of a·a, divided by `n`².

    The result also has `n`, the sum of weights; `draws` = n² / Σ (n of a draw)², so many draws of
    equal size would be as good if all rows of a draw were alike; and `n_clusters`.
    """
    n = pl.col("n").cast(pl.Float64)
    if log.has_clusters:
        columns = {column: n * pl.col(column) for both in products.values() for column in both}
        rows = exact_sums(log, rows, ["cluster"], n=n, **columns).with_columns(n_clusters=1.0)
        of_draw, squared = pl.lit(1.0), pl.col("n").pow(2)
    else:
        of_draw = squared = n if log.is_frequency else pl.col("squares")
    n_clusters = ["n_clusters"] if log.has_clusters else []
    sums = exact_sums(
        log,
        rows,
        [],
        **{name: of_draw * pl.col(a) * pl.col(b) for name, (a, b) in products.items()},
        **{name: pl.col(name) for name in n_clusters},
        squared=squared,
        n=n,
    )
    draws = pl.col("n") / pl.col("squared") * pl.col("n")
    return sums.with_columns(pl.col(n_clusters).cast(pl.Int64), draws=draws).drop("squared")

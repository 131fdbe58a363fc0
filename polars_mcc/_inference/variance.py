"""Influences of rows → the variance of a statistic of their slice (the delta method)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from polars_mcc._counts.exact import sum_in_any_order
from polars_mcc._counts.sliced import SlicedLog

NOTHING = 1e-20  # a mean square of influences up to this is 0, except for rounding


def with_influence(
    log: SlicedLog,
    cells: pl.LazyFrame,
    influences: pl.LazyFrame,
    names: Sequence[str],
    *,
    pred: str = "pred",
    suffix: str = "",
) -> pl.LazyFrame:
    """The scored cells, with `phi:` and `unit:` of their pair for each metric."""
    columns = [f"{what}:{name}" for name in names for what in ("phi", "unit")]
    of_pair = influences.select(
        *(*log.slice, "gold"),
        pl.col("pred").alias(pred),
        pl.col(columns).name.suffix(suffix),
    )
    return cells.join(of_pair, on=[*log.slice, "gold", pred], how="inner", nulls_equal=True)


def variances(
    log: SlicedLog, cells: pl.LazyFrame, influences: Mapping[str, tuple[pl.Expr, pl.Expr]]
) -> pl.LazyFrame:
    """The `variance:` of statistics of each slice, from each influence and its upper bound.

    The variance is the sum of (Σ n·influence)² over independent draws, divided by (Σ n)². A draw
    is a row, or a cluster. `draws` is (Σ n)² / Σ (n of a draw)²: so many draws of equal size would
    be as good if all rows of a draw were alike. `n_clusters` is the number of clusters.
    """
    if not log.has_clusters:
        return log.per_slice(cells, **of_rows(log, influences))
    size = pl.col("size")
    n, sizes = total(size), size.cast(log.numbers.wide)
    moved = {}
    for name, (influence, most) in influences.items():
        moved[f"moved:{name}"] = sum_of(log, pl.col("n") * influence, most)
        moved[f"unit:{name}"] = most.max()
    clusters = cells.group_by(*log.slice, "cluster").agg(size=pl.col("n").sum(), **moved)
    squares = {
        f"variance:{name}": sum_of(
            log, pl.col(f"moved:{name}").pow(2), pl.col(f"unit:{name}").pow(2), bits=0
        )
        / n
        / n
        for name in influences
    }
    return log.per_slice(
        clusters,
        **squares,
        draws=n / (sizes * sizes).sum().cast(pl.Float64) * n,
        n_clusters=size.count().cast(pl.Int64),
    )


def of_rows(
    log: SlicedLog, influences: Mapping[str, tuple[pl.Expr, pl.Expr]]
) -> dict[str, pl.Expr]:
    n, squares = total(pl.col("n")), pl.col("n" if log.is_frequency else "squares")
    bits = 60 if log.is_frequency else 0  # squares are as large as 2^126
    found = {
        f"variance:{name}": sum_of(log, squares * influence.pow(2), most.pow(2), bits) / n / n
        for name, (influence, most) in influences.items()
    }
    return {**found, "draws": n / total(squares) * n}


def total(n: pl.Expr) -> pl.Expr:
    return n.sum().cast(pl.Float64)


def sum_of_squares(log: SlicedLog, addends: pl.Expr, unit: pl.Expr) -> pl.Expr:
    """Sum products of influences in any order. An addend is at most `unit` for each of its rows.

    Each addend keeps 60 binary digits after the point of the unit, so it is faster than `sum_of`.
    """
    if log.numbers.count.is_float():
        return addends.sum()
    fine = float(2**60)
    whole = (addends / unit * fine).cast(pl.Int128, strict=False).sum()
    return whole.cast(pl.Float64) / fine * unit.max()


def sum_of(log: SlicedLog, addends: pl.Expr, unit: pl.Expr, bits: int = 60) -> pl.Expr:
    """Sum over pairs or clusters, in any order; if weights are floats, a plain sum of floats."""
    if log.numbers.count.is_float():
        return addends.sum()
    return sum_in_any_order(addends, unit, bits)

"""Pairs with and without a gold label → pairs in which labelled rows stand for the others.

A row without a gold label is represented by the labelled rows of the same slice with the same
prediction (Begg and Greenes, Biometrics 39, 1983). Of N_j rows with the prediction j, n_j have a
label. So each of these counts as N_j / n_j rows.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_mcc._counts.exact_sums import numbers
from polars_mcc._counts.sliced_log import LABELLED, STRATUM, SlicedLog

_ALL, _OWN, _RATIO = "of:all", "of:labelled", "of:ratio"


def reweighted(log: SlicedLog, pairs: pl.LazyFrame) -> tuple[SlicedLog, pl.LazyFrame]:
    """Let labelled rows stand for rows without a label, if the log asks for it.

    `n` becomes the number of rows that the labelled rows of a pair stand for, a float, and
    `squares` is n · N_j / n_j. `LABELLED` is their own number. `n_null` counts the rows of a pair
    that are not scored. `STRATUM` is the prediction; where two models are compared, both
    predictions. If a prediction of a slice has no labelled row, `n` is 0 in the whole slice.
    """
    if log.nulls != "reweight":
        return log, pairs
    preds = [name for name in ("pred", "baseline") if name == "pred" or name in log.pair_splits]
    is_predicted = pl.all_horizontal(pl.col(preds).is_not_null())
    is_labelled = is_predicted & pl.col("gold").is_not_null()
    n, every, own = pl.col("n"), pl.col(_ALL), pl.col(_OWN)

    def total(is_in: pl.Expr) -> pl.Expr:
        weight = log.numbers.widen(pl.when(is_in).then(n).otherwise(0))
        return log.numbers.total(weight).over([*log.slice, *preds]).cast(pl.Float64)

    # A ratio of 1 changes no digit.
    ratio = pl.when(is_labelled & (own > 0)).then(every / own).otherwise(0.0)
    is_known = log.within_slice(((own > 0) | (every == 0)).all())
    ratios = pairs.with_columns(
        total(is_predicted).alias(_ALL), total(is_labelled).alias(_OWN)
    ).with_columns(pl.when(is_known).then(ratio).otherwise(0.0).alias(_RATIO))
    stands_for = n.cast(pl.Float64) * pl.col(_RATIO)
    counted = ratios.with_columns(
        pl.when(is_labelled).then(n).otherwise(0).cast(log.numbers.count).alias(LABELLED),
        pl.struct(preds).alias(STRATUM),
        n=stands_for,
        squares=stands_for * pl.col(_RATIO),
        n_null=pl.col("n_null") + pl.when(is_labelled).then(0).otherwise(n),
    ).drop(_ALL, _OWN, _RATIO)
    of_floats = numbers(pl.Float64())
    return replace(log, nulls="drop", numbers=of_floats, labelled_numbers=log.numbers), counted


def with_pseudo_rows(log: SlicedLog, pairs: pl.LazyFrame) -> pl.LazyFrame:
    """Two labelled rows more where two models differ and rows have no label: each is right in one.

    The labelled rows of both predictions still stand for as many rows, each for N_j / n_j.
    """
    stratum = [*log.slice, "baseline", "pred"]
    n, squares, own = pl.col("n"), pl.col("squares"), pl.col(_OWN)
    of_stratum = pairs.with_columns(
        pl.col(LABELLED).sum().over(stratum).cast(pl.Float64).alias(_OWN),
        # All labelled pairs of a stratum have one ratio, and a maximum has no order.
        (squares / n).max().over(stratum).fill_nan(1.0).alias(_RATIO),
    )
    has_gap = (pl.col("baseline") != pl.col("pred")) & (pl.col(_RATIO) > 1)
    kept = pl.when(has_gap).then(own / (own + 2)).otherwise(1.0)
    rows = of_stratum.with_columns(n=n * kept, squares=squares * kept)
    each = (
        of_stratum.filter(has_gap)
        .unique(stratum)
        .with_columns(n=pl.col(_RATIO) * own / (own + 2), n_null=pl.lit(0).cast(log.numbers.wide))
    )
    sides = (each.with_columns(gold=side, squares=n * pl.col(_RATIO)) for side in stratum[-2:])
    return pl.concat([rows, *sides], how="vertical_relaxed").drop(_OWN, _RATIO)

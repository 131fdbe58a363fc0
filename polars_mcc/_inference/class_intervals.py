"""Pairs and classes → standard errors and intervals of the scores of each class.

A row moves the score of a class by its gold label, by its prediction, or by both. A row with other
labels moves it only through the mean, which is subtracted from every influence. So four kinds of
rows give the variance, without a sum over classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import polars as pl

from polars_mcc._counts.classes import is_scored
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.asked import Asked, columns_of, critical
from polars_mcc._inference.gradients import of_each_class, sides_of
from polars_mcc._inference.metric_intervals import (
    effective_rows,
    from_tables,
    smoothed_tables,
    with_limits,
)
from polars_mcc._inference.tables import OBSERVED, TABLE, class_tables
from polars_mcc._scores.class_scores import CLASS_GIVEN, CLASS_RANGES, TwoByTwo


def of_each(
    log: SlicedLog, cells: pl.LazyFrame, pairs: pl.LazyFrame, classes: pl.LazyFrame, asked: Asked
) -> pl.LazyFrame:
    """The standard errors and limits of the scores of each class, a row per slice and class.

    The cells are pairs, split by cluster if the log has clusters.
    """
    moves = of_each_class()
    names = [*moves]
    t, p, c = (pl.col(name) / pl.col("s") for name in ("support", "predicted", "hits"))
    columns: dict[str, pl.Expr] = {}
    for name, (gold, pred, hit) in moves.items():
        mean = t * gold + p * pred + c * hit
        columns |= dict(zip(sides_of(name), (gold, pred, hit), strict=True))
        columns[f"mean:{name}"] = mean
        columns[f"phi_phi:{name}"] = (
            c * (gold + pred + hit - mean).pow(2)
            + (t - c) * (gold - mean).pow(2)
            + (p - c) * (pred - mean).pow(2)
            + (1 - t - p + c) * mean.pow(2)
        )
    tables = (
        class_tables(log, pairs, classes)
        .with_columns(**TwoByTwo.of_floats(pl.col).scores(None))
        .cache()
    )
    key = [*log.slice, "label"]
    observed = tables.filter(pl.col(TABLE) == OBSERVED).select(*key, "s", *names, **columns)
    ends = {
        f"{side}:{name}": pl.lit(end)
        for name, ends in CLASS_RANGES.items()
        for side, end in zip(("low", "high"), ends, strict=True)
    }
    of_tables = tables.select(
        *(*key, TABLE),
        **{f"value:{name}": name for name in names},
        **{f"phi_phi:{name}": columns[f"phi_phi:{name}"] for name in names},
        **ends,
    )
    given = {name: smoothed_tables(CLASS_GIVEN.get(name)) for name in names}
    found = (
        of_tables.group_by(key)
        .agg(**from_tables(given))
        .join(_variances(log, cells, observed, names), on=key, how="left", nulls_equal=True)
        .with_columns(
            z=critical(log, asked.ci), **{f"score:{name}": f"value:{name}" for name in names}
        )
    )
    limited = with_limits(found, names, asked.method, effective_rows(log))
    n_clusters = ["n_clusters"] if log.has_clusters else []
    return limited.select(*key, *n_clusters, *columns_of(names))


def _variances(
    log: SlicedLog, cells: pl.LazyFrame, classes: pl.LazyFrame, names: list[str]
) -> pl.LazyFrame:
    """The `variance:` of each score, and the effective number of `draws`: rows, or clusters.

    In a draw of n rows, x is the sum over the rows with the label of how far each moves the score.
    With the mean m, the draw moves the score by x - m·n. A draw without the label has x = 0. So
    the sum of squares over all draws is Σ x² - 2m Σ x·n + m² Σ n².
    """
    if log.is_frequency and not log.has_clusters:
        n = pl.col("s")
        squares = {f"variance:{name}": pl.col(f"phi_phi:{name}") / n for name in names}
        return classes.select(*log.slice, "label", draws=n, **squares)
    scored = cells.filter(is_scored(log) & (pl.col("n") > 0))
    n, is_hit = pl.col("n").cast(pl.Float64), pl.col("gold").eq_missing(pl.col("pred"))
    squares_of_row = n if log.is_frequency else pl.col("squares")
    cluster = ["cluster"] if log.has_clusters else []
    one = scored.select(*log.slice, *cluster, "gold", "pred", is_hit=is_hit, n=n, nn=squares_of_row)
    of_gold = one.select(pl.all().exclude("gold", "pred"), label="gold", is_gold=True)
    of_pred = one.filter(~pl.col("is_hit")).select(
        pl.all().exclude("gold", "pred"), label="pred", is_gold=False
    )
    rows = pl.concat([of_gold, of_pred]).join(
        classes.select(*log.slice, "label", *(side for name in names for side in sides_of(name))),
        on=[*log.slice, "label"],
        nulls_equal=True,
    )
    moved = {
        name: pl.when("is_gold")
        .then(
            pl.col(f"gold:{name}")
            + pl.when("is_hit").then(pl.col(f"pred:{name}") + pl.col(f"hit:{name}")).otherwise(0.0)
        )
        .otherwise(pl.col(f"pred:{name}"))
        for name in names
    }
    of_draws = _of_clusters if log.has_clusters else _of_rows
    sums_of_class, of_slice = of_draws(log, one, rows, moved)
    beside = classes.select(*log.slice, "label", *(f"mean:{name}" for name in names)).join(
        sums_of_class, on=[*log.slice, "label"], how="left", nulls_equal=True
    )
    n, nn = pl.col("n"), pl.col("nn")
    variances = {}
    for name in names:
        mean = pl.col(f"mean:{name}")
        total = pl.col(f"xx:{name}") - 2 * mean * pl.col(f"nx:{name}") + mean.pow(2) * nn
        variances[f"variance:{name}"] = total / n.pow(2)
    n_clusters = ["n_clusters"] if log.has_clusters else []
    return log.beside(beside, of_slice).select(
        *log.slice, "label", *n_clusters, draws=n.pow(2) / nn, **variances
    )


_Moved: TypeAlias = Mapping[str, pl.Expr]
"""For each score, how far a row with the label moves it."""


def _of_rows(
    log: SlicedLog, one: pl.LazyFrame, rows: pl.LazyFrame, moved: _Moved
) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Sum over rows: Σ x² and Σ x·n of each class, `n` and Σ n² of each slice."""
    squares = pl.col("nn")
    products = {f"nx:{name}": (squares * x).sum() for name, x in moved.items()}
    squared = {f"xx:{name}": (squares * x.pow(2)).sum() for name, x in moved.items()}
    of_slice = log.per_slice(one, n=pl.col("n").sum(), nn=squares.sum())
    return rows.group_by(*log.slice, "label").agg(**products, **squared), of_slice


def _of_clusters(
    log: SlicedLog, one: pl.LazyFrame, rows: pl.LazyFrame, moved: _Moved
) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Sum over clusters, as `_of_rows` does: x and n are sums over the rows of a cluster."""
    n, size = pl.col("n"), pl.col("size")
    sizes = one.group_by(*log.slice, "cluster").agg(size=n.sum())
    drawn = (
        rows.group_by(*log.slice, "label", "cluster")
        .agg(**{name: (n * x).sum() for name, x in moved.items()})
        .join(sizes, on=[*log.slice, "cluster"], nulls_equal=True)
    )
    products = {f"nx:{name}": (pl.col(name) * size).sum() for name in moved}
    squared = {f"xx:{name}": pl.col(name).pow(2).sum() for name in moved}
    of_slice = log.per_slice(
        sizes, n=size.sum(), nn=size.pow(2).sum(), n_clusters=size.count().cast(pl.Int64)
    )
    return drawn.group_by(*log.slice, "label").agg(**products, **squared), of_slice

"""Classes or pairs → intervals of any metric, from the influence of each row.

A score with a range, such as 0 to 1, is treated as a proportion. The number of rows of this
proportion is chosen so that it has the variance of the score. The interval of the score is then
Wilson's interval (1927) of the proportion. For a score that is a proportion, such as recall, these
are the rows that could have been wrong, and the interval is Wilson's to the last digit.

The number of rows comes from a table with the margins of the slice and misses in every class. So an
interval has a width even if the observed rows have no miss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference import gradients
from polars_mcc._inference.asked import Counted, columns_of, critical
from polars_mcc._inference.tables import OBSERVED, POOLED, TABLE
from polars_mcc._inference.variance import NOTHING, sum_of
from polars_mcc._log.choices import Method


def of_classes(counted: Counted, scores: pl.LazyFrame) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Add intervals to metrics of classes; also return the influences of pairs."""
    log, names = counted.log, counted.names
    classes = gradients.of_classes(
        log, counted.pairs, counted.classes, counted.asked.metrics, counted.asked.positive
    ).cache()
    rows = gradients.of_rows(log, counted.pairs, classes, names).cache()
    of_pair = rows.filter(pl.col(TABLE) == OBSERVED)
    squares = mean_squares(log, rows, classes, names)
    return _limited(counted, scores, squares, of_pair), of_pair


def of_pairs(counted: Counted, scores: pl.LazyFrame) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Add intervals to metrics of pairs; also return the influences of pairs."""
    log = counted.log
    rows = gradients.of_pairs(log, counted.pairs, counted.classes, counted.asked.metrics).cache()
    squares = mean_squares_of_pairs(log, rows, counted.names)
    return _limited(counted, scores, squares, rows), rows


def _limited(
    counted: Counted, scores: pl.LazyFrame, squares: pl.LazyFrame, of_pair: pl.LazyFrame
) -> pl.LazyFrame:
    log = counted.log
    observed = log.beside(squares, counted.variances(of_pair)).with_columns(
        z=critical(log, counted.asked.ci)
    )
    # A metric may have any name.
    renamed = {f"score:{name}": pl.col(name) for name in counted.names}
    of_slices = log.beside(scores.select(*log.slice, **renamed), observed)
    found = with_limits(of_slices, counted.names, counted.asked.method)
    n_clusters = ["n_clusters"] if log.has_clusters else []
    return counted.beside(scores, found.select(*log.slice, *n_clusters, *columns_of(counted.names)))


def with_limits(slices: pl.LazyFrame, names: Sequence[str], method: Method) -> pl.LazyFrame:
    """Add `_se`, `_low` and `_high` of each score to the columns of its slice."""
    steps: list[dict[str, pl.Expr]] = [{}, {}, {}, {}]
    for name in names:
        for step, columns in zip(steps, _steps(name, method), strict=True):
            step.update(columns)
    for step in steps:  # In steps, because nested expressions grow fast.
        slices = slices.with_columns(**step)
    return slices


def _steps(name: str, method: Method) -> Iterator[dict[str, pl.Expr]]:
    """The columns to compute for the limits of a score; each step uses the steps before."""
    score, value, z, draws = map(pl.col, (f"score:{name}", f"value:{name}", "z", "draws"))
    low, high, span = pl.col(f"low:{name}"), pl.col(f"high:{name}"), pl.col(f"span:{name}")
    variance, phi_phi = pl.col(f"variance:{name}"), pl.col(f"phi_phi:{name}:{OBSERVED}")
    place, se, rows = pl.col(f"place:{name}"), pl.col(f"{name}_se"), pl.col(f"rows:{name}")
    has_score = value.is_not_null() & score.is_finite() & z.is_not_null()
    width = pl.coalesce(high - low, score.abs())
    varies = has_score & (phi_phi > NOTHING * width.pow(2))
    varies &= variance * draws > NOTHING * phi_phi
    # Each row could only move the score away from the end, and their mean moves it nowhere. So
    # every φ is 0, but the φ of a square root, as of Cramér's V, may be infinite.
    varies &= ~((score == low) | (score == high)).fill_null(value=False)
    yield {
        f"span:{name}": width,
        f"place:{name}": pl.when(has_score & (width > 0) & score.is_between(low, high)).then(
            (score - low) / width
        ),
        f"{name}_se": pl.when(varies & variance.is_finite()).then(variance.sqrt()),
        f"rows:{name}": pl.when(varies).then(phi_phi / variance).otherwise(draws),
    }
    yield {f"z2:{name}": z.pow(2) / (rows * _worth(name))} if method == "score" else {}
    ends: Sequence[pl.Expr]
    if method == "score":  # Wilson's
        z2 = pl.col(f"z2:{name}")
        middle, reach = place + z2 / 2, (z2 * place * (1 - place) + z2.pow(2) / 4).sqrt()
        ends = [(middle + sign * reach) / (1 + z2) for sign in (-1, 1)]
    elif method == "fisher":
        middle, reach = (2 * place - 1).arctanh(), z * se / (2 * span * place * (1 - place))
        ends = [((middle + sign * reach).tanh() + 1) / 2 for sign in (-1, 1)]
    else:
        ends = [place + sign * z * se / span for sign in (-1, 1)]
    sides = (f"{name}_low", f"{name}_high")
    yield {side: low + span * end for side, end in zip(sides, ends, strict=True)}
    yield {
        side: pl.when(place.is_null()).then(score + sign * z * se).otherwise(side)
        for side, sign in zip(sides, (-1, 1), strict=True)
    }


def _worth(name: str) -> pl.Expr:
    """The rows of a proportion with the variance of the score, per row of the slice."""
    span, place = pl.col(f"span:{name}"), pl.col(f"place:{name}")
    there = (pl.col(f"pooled:{name}") - pl.col(f"low:{name}")) / span
    observed, pooled = (
        pl.col(f"phi_phi:{name}:{table}") / span.pow(2) for table in (OBSERVED, POOLED)
    )
    worth = (
        pl.when(pooled > NOTHING)
        .then(there * (1 - there) / pooled)
        .when(observed > NOTHING)
        .then(place * (1 - place) / observed)
        .when(((place == 0) | (place == 1)) & pooled.is_not_null())
        .then(pl.coalesce(pl.col(f"end:{name}").abs() * span, 1.0))
    )
    return pl.when(worth > 0).then(worth)


def mean_squares(
    log: SlicedLog, rows: pl.LazyFrame, classes: pl.LazyFrame, names: Sequence[str]
) -> pl.LazyFrame:
    """The mean of φ² and the value of metrics of classes, at both tables, per slice.

    `rows` are the observed pairs, once for each table. `classes` hold what the pool adds.
    """
    in_pool = {f"pool:{name}": _at(POOLED, f"pool:{name}") for name in names}
    ends = {f"end:{name}": _at(OBSERVED, f"end:{name}") for name in names}
    there = {f"pooled:{name}": _at(POOLED, f"value:{name}") for name in names}
    of_slices = log.per_slice(classes, **_of_slices(names), **in_pool, **ends, **there)
    both = log.beside(log.per_slice(rows, **_means(log, names, OBSERVED, POOLED)), of_slices)
    return both.with_columns(
        pl.col(f"phi_phi:{name}:{POOLED}") + pl.col(f"pool:{name}") for name in names
    )


def mean_squares_of_pairs(log: SlicedLog, rows: pl.LazyFrame, names: Sequence[str]) -> pl.LazyFrame:
    """The mean of φ² and the value of metrics of pairs, at the observed table only."""
    unknown = [f"{what}:{name}" for name in names for what in ("pooled", "end")]
    unknown += [f"phi_phi:{name}:{POOLED}" for name in names]
    found = log.per_slice(rows, **_of_slices(names), **_means(log, names, OBSERVED))
    return found.with_columns(**dict.fromkeys(unknown, pl.lit(None, pl.Float64)))


def _at(table: str, column: str) -> pl.Expr:
    """The number that all rows of one table have in a column, within a slice."""
    return pl.col(column).filter(pl.col(TABLE) == table).max()


def _of_slices(names: Sequence[str]) -> dict[str, pl.Expr]:
    columns = [f"{what}:{name}" for name in names for what in ("value", "low", "high")]
    return {column: _at(OBSERVED, column) for column in columns}


def _means(log: SlicedLog, names: Sequence[str], *tables: str) -> dict[str, pl.Expr]:
    n, means = pl.col("n").cast(pl.Float64), {}
    for table in tables:
        is_here = pl.col(TABLE) == table
        for name in names:
            squared, unit = pl.col(f"phi:{name}").pow(2), pl.col(f"unit:{name}").pow(2)
            moved = (pl.col("kept") * n * squared).filter(is_here)
            mean = sum_of(log, moved, unit.filter(is_here)) / n.filter(is_here).sum()
            means[f"phi_phi:{name}:{table}"] = mean
    return means

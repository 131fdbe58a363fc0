"""Pairs and classes → the interval of R_K, which needs more than influences."""

from __future__ import annotations

import math
from typing import NamedTuple

import polars as pl

from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference import mcc_influence
from polars_mcc._inference.asked import Counted, columns_of, critical
from polars_mcc._inference.variance import NOTHING
from polars_mcc._log.choices import Method


def of_mcc(counted: Counted, scores: pl.LazyFrame) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Add intervals to R_K and to metrics a·R_K + b; also return the influences of pairs."""
    log = counted.log
    margins = mcc_influence.margins(log, counted.classes, counted.sums).cache()
    of_pair = mcc_influence.influences(log, counted.pairs, margins)
    if log.extras:
        of_pair = of_pair.cache()
    observed = mcc_influence.observed(log, of_pair, counted.cells)
    observations = log.beside(mcc_influence.ends(log, margins), observed)
    found = _limits(
        log, observations.with_columns(z=critical(log, counted.asked.ci)), counted.asked.method
    )
    limits: dict[str, pl.Expr] = {}
    moved: dict[str, pl.Expr] = {}
    for metric in counted.asked.metrics:
        a, b = metric.of_mcc or (1.0, 0.0)
        of_r_k = [a * pl.col("mcc_se"), a * pl.col("mcc_low") + b, a * pl.col("mcc_high") + b]
        limits |= dict(zip(columns_of([metric.name]), of_r_k, strict=True))
        moved |= {f"phi:{metric.name}": a * pl.col("phi:mcc")}
        moved |= {f"unit:{metric.name}": pl.col("unit:mcc")}
    n_clusters = ["n_clusters"] if log.has_clusters else []
    found = found.select(*log.slice, *n_clusters, **limits)
    return counted.beside(scores, found), of_pair.with_columns(**moved)


def _limits(log: SlicedLog, slices: pl.LazyFrame, method: Method) -> pl.LazyFrame:
    """Compute `mcc_se`, `mcc_low` and `mcc_high` of slices with a critical value `z`."""
    score, se, z = pl.col("score"), pl.col("se"), pl.col("z")
    variance, draws = pl.col("variance:mcc"), pl.col("draws")
    is_known = (score.abs() < 1) & (pl.col("phi_phi") > NOTHING) & z.is_not_null()
    is_known &= variance.is_finite() & (variance > 0) & draws.is_finite()
    is_known &= variance * draws > NOTHING * pl.col("phi_phi")
    slices = slices.with_columns(se=pl.when(is_known).then(variance.sqrt()))
    if method == "score":
        found = _score_limits(slices)
    elif method == "fisher":
        middle, reach = score.arctanh(), z * se / (1 - score.pow(2))
        found = slices.with_columns(low=(middle - reach).tanh(), high=(middle + reach).tanh())
    else:
        found = slices.with_columns(low=score - z * se, high=score + z * se)
    n_clusters = ["n_clusters"] if log.has_clusters else []
    return found.select(
        *log.slice,
        *n_clusters,
        mcc_se=se,
        mcc_low="low",
        mcc_high="high",
    )


def _score_limits(slices: pl.LazyFrame) -> pl.LazyFrame:
    """The limits ρ with (R - ρ)² = z²·V(ρ)/n, where V(ρ) is the variance if the score were ρ.

    This is the idea of Wilson's interval of a proportion (1927). For two balanced classes with
    equally frequent misses, limits above 0 are Wilson's. V(ρ) is the variance at a table made
    from the margins of the slice:

    - from R to 0: a mixture of the observed and the independent table
    - from a positive R to 1: a mixture of the observed table and the table of agreement
    - from a negative R to -1: the observed table
    - beyond 0, if R is positive: the independent table
    - beyond 0, if R is negative: a mixture of the independent table and the table of agreement

    On each path V is cubic. A parabola replaces it, with the slope of V at the start and the
    values of V at both ends.
    """
    score, se = pl.col("score"), pl.col("se")
    phi_phi, phi_y, y_y = pl.col("phi_phi"), pl.col("phi_y"), pl.col("y_y")
    guess_0, guess_2 = pl.col("guess_0"), pl.col("guess_2")
    agree_0, agree_score, agree_1 = (pl.col(f"agree_{at}") for at in ("0", "score", "1"))
    distance, room = pl.col("distance"), 1 - pl.col("distance")
    is_positive = score >= 0

    def either(positive: pl.Expr, negative: pl.Expr) -> pl.Expr:
        return pl.when(is_positive).then(positive).otherwise(negative)

    paths = {
        "to_guess": _Path(
            before=pl.lit(0.0),
            length=distance,
            start=phi_phi,
            slope=either(2 * phi_y, -2 * phi_y),
            end_at_start=guess_0 + score.pow(2) * guess_2,
            end=guess_0,
        ),
        "past_guess": _Path(
            before=distance,
            length=pl.lit(1.0),
            start=guess_0,
            slope=pl.lit(0.0),
            end_at_start=either(guess_0, agree_0),
            end=either(guess_0 + guess_2, agree_1),
        ),
        "outward": _Path(
            before=pl.lit(0.0),
            length=room,
            start=phi_phi,
            slope=either(-2 * phi_y, 2 * phi_y),
            end_at_start=either(agree_score, phi_phi),
            end=either(agree_1, phi_phi + 2 * room * phi_y + room.pow(2) * y_y),
        ),
    }
    draws = pl.when(pl.col("draws").is_between(0, math.inf, closed="none")).then("draws")
    rows = pl.when(se.is_not_null()).then(phi_phi / se.pow(2)).otherwise(draws)
    # If no label is both gold and predicted, R is 0 for every table with these margins.
    score_or_null = pl.when(pl.col("meet") > 0).then(score)
    slices = slices.with_columns(z2=pl.col("z").pow(2) / rows).with_columns(
        distance=pl.when(pl.col("z2").is_not_null()).then(score_or_null.abs())
    )
    is_near = distance.pow(2) >= pl.col("z2") * guess_0
    past_guess = distance + pl.col("past_guess")
    for name, path in paths.items():
        slices = _reach(slices, name, path)
    return slices.with_columns(
        inward=pl.when(is_near).then("to_guess").otherwise(past_guess)
    ).with_columns(
        low=score - either(pl.col("inward"), pl.col("outward")),
        high=score + either(pl.col("outward"), pl.col("inward")),
    )


class _Path(NamedTuple):
    """The variance V of a score along a path, at the distance g from the start, up to `length`.

    V(g) = (1 - u)·S(g) + u·E(g) with u = g / length, where S(0) = `start`, S'(0) = `slope`,
    E(0) = `end_at_start`, E(length) = `end`. `before` is the distance from R to the start.
    """

    before: pl.Expr
    length: pl.Expr
    start: pl.Expr
    slope: pl.Expr
    end_at_start: pl.Expr
    end: pl.Expr


def _reach(slices: pl.LazyFrame, name: str, path: _Path) -> pl.LazyFrame:
    """Add the g with (before + g)² = z²·V(g)/n, but at most the length of the path."""
    before, length, start, slope, end_at_start, end = map(pl.col, _Path._fields)
    rise, bend, a, b, c, root = map(pl.col, ("rise", "bend", "a", "b", "c", "root"))
    z2 = pl.col("z2")
    u = pl.when(b >= 0).then(-2 * c / (b + root)).otherwise((root - b) / (2 * a)).fill_nan(0.0)
    is_enough = a + b + c >= 0
    return (
        slices.with_columns(**path._asdict())
        .with_columns(rise=length * slope + end_at_start - start)
        .with_columns(bend=end - start - rise)
        .with_columns(
            a=length.pow(2) - z2 * bend,
            b=2 * before * length - z2 * rise,
            c=before.pow(2) - z2 * start,
        )
        .with_columns(root=(b.pow(2) - 4 * a * c).clip(0).sqrt())
        .with_columns((length * pl.when(is_enough).then(u.clip(0, 1)).otherwise(1.0)).alias(name))
    )

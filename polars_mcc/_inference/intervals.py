"""Influences → intervals: how sure we are of each score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from polars_mcc._counts.classes import of_pairs
from polars_mcc._counts.counted import added_up
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.influence import ends, influences, margins, observed
from polars_mcc._inference.methods import normal_critical
from polars_mcc._log.choices import Method
from polars_mcc._scores.measure import measure
from polars_mcc._scores.r_k import Summed, summed

COLUMNS = ("n_clusters", "se", "mcc_low", "mcc_high")

NOTHING = 1e-20  # the mean square of influences that are 0 but for rounding


@dataclass(frozen=True)
class Estimate:
    """The pairs, classes and sums of slices, the influence of each pair, and the intervals."""

    log: SlicedLog
    pairs: pl.LazyFrame
    classes: pl.LazyFrame
    sums: Summed
    influences: pl.LazyFrame
    intervals: pl.LazyFrame

    @property
    def scores(self) -> pl.LazyFrame:
        """The score of each slice, with its interval."""
        scores = measure(self.log, self.classes, sums=self.sums)
        return self.log.beside(scores, self.intervals)

    def with_intervals(self, scores: pl.LazyFrame, metrics: Sequence[str]) -> pl.LazyFrame:
        """Scores, `mcc` among these metrics, with its interval, in the order of an answer."""
        log = self.log
        n_clusters = [pl.col("n_clusters").fill_null(0)] if log.has_clusters else []
        limits = pl.col("mcc_low", "mcc_high").clip(-1, 1)
        columns: list[str | pl.Expr] = []
        for metric in metrics:
            columns += ["mcc", "se", limits] if metric == "mcc" else [metric]
        return log.beside(scores, self.intervals).select(
            *log.slice, "n", *n_clusters, *columns, "n_null"
        )


def estimate(
    log: SlicedLog, pairs: pl.LazyFrame, ci: float, method: Method, positive: pl.Expr | None = None
) -> Estimate:
    """How sure each slice of a log is, with `se`, `mcc_low` and `mcc_high`, from its pairs.

    The pairs are apart by cluster if the log has clusters; those of the estimate are not.
    """
    # What is asked for twice is cached: else Polars reads the log again for each time.
    cells = pairs.cache()
    pairs = cells
    if log.has_clusters:
        pairs = added_up(log, cells, gold=pl.col("gold"), pred=pl.col("pred"))
    classes = of_pairs(log, pairs).cache()
    slices, sums = summed(log, classes, positive)
    sums_of_slices = Summed(slices.cache(), sums)
    of_classes = margins(log, classes, sums_of_slices).cache()
    of_pair = influences(log, pairs, of_classes)
    if log.extras:
        of_pair = of_pair.cache()
    observations = log.beside(ends(log, of_classes), observed(log, of_pair, cells))
    limits = _limits(log, observations, ci, method)
    return Estimate(log, pairs, classes, sums_of_slices, of_pair, limits)


def critical(log: SlicedLog, ci: float) -> pl.Expr:
    """How many standard errors an interval reaches: of the normal, or of Student's t.

    Student's t has one degree of freedom less than there are clusters; from 3 on, by the
    expansion of Fisher and Cornish (1960), which is 0.1 % off at 3 and exact at many.
    """
    z = normal_critical(ci)
    if not log.has_clusters:
        return pl.lit(z)
    df = pl.col("n_clusters") - 1
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    expansion = z + sum(term / df.pow(power) for power, term in enumerate(terms, 1))
    return (
        pl.when(df == 1)
        .then(math.tan(math.pi * ci / 2))
        .when(df == 2)
        .then(ci * math.sqrt(2 / (1 - ci**2)))
        .when(df > 2)
        .then(expansion)
    )


def _limits(log: SlicedLog, slices: pl.LazyFrame, ci: float, method: Method) -> pl.LazyFrame:
    score, se, z = pl.col("score"), pl.col("se"), pl.col("z")
    variance, draws = pl.col("variance"), pl.col("draws")
    is_known = (score.abs() < 1) & (pl.col("phi_phi") > NOTHING) & z.is_not_null()
    is_known &= variance.is_finite() & (variance > 0) & draws.is_finite()
    is_known &= variance * draws > NOTHING * pl.col("phi_phi")
    slices = slices.with_columns(z=critical(log, ci)).with_columns(
        se=pl.when(is_known).then(variance.sqrt())
    )
    if method == "score":
        limits = _score_limits(slices)
    elif method == "fisher":
        middle, reach = score.arctanh(), z * se / (1 - score.pow(2))
        limits = slices.with_columns(low=(middle - reach).tanh(), high=(middle + reach).tanh())
    else:
        limits = slices.with_columns(low=score - z * se, high=score + z * se)
    n_clusters = ["n_clusters"] if log.has_clusters else []
    return limits.select(*log.slice, *n_clusters, se=se, mcc_low="low", mcc_high="high")


def _score_limits(slices: pl.LazyFrame) -> pl.LazyFrame:
    """The scores ρ with (R - ρ)² = z²·V(ρ)/n, where V(ρ) is the variance if ρ were the score.

    As in Wilson's interval of a proportion (1927), which it is for two balanced classes that
    are mistaken for each other alike, above 0. V is that of a mixture of tables that have the
    margins of the slice: of the observed one with the independent one on the way to 0, and with
    the one that agrees on the way to 1; of the independent one alone beyond 0, or, if R is
    negative, with the one that agrees; and of the observed one on the way from a negative R
    to -1. Of V, a cubic function, the parabola is taken that has its slope where it starts, and
    its values at both ends.
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
    # Where no label is both gold and predicted, R is 0 whatever the pairs.
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
    """How the variance of a score changes with a distance g from its start, up to `length`.

    V(g) = (1 - u)·S(g) + u·E(g) with u = g / length, where S(0) = `start`, S'(0) = `slope`,
    E(0) = `end_at_start`, E(length) = `end`; `before` is how far the start is from R.
    """

    before: pl.Expr
    length: pl.Expr
    start: pl.Expr
    slope: pl.Expr
    end_at_start: pl.Expr
    end: pl.Expr


def _reach(slices: pl.LazyFrame, name: str, path: _Path) -> pl.LazyFrame:
    """Add the g with (before + g)² = z²·V(g)/n, or the length of the path if it is less."""
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

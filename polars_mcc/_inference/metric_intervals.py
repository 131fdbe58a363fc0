"""Classes or pairs → intervals of any metric, from the influence of each row.

A score with a range, such as 0 to 1, is treated as a proportion of m rows. m is such that the
proportion has the variance of the score. The interval of the score is then Wilson's interval (1927)
of the proportion. For a score that is a proportion, such as recall, these are the rows that could
have been wrong, and the interval is Wilson's to the last digit.

m comes from the smoothed tables (see `tables`), because the observed table takes a rate of 0 or 1
as known exactly. Each table smooths the rates on one side. So m is the smallest that they give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import polars as pl

from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference import gradients
from polars_mcc._inference.asked import Counted, columns_of, critical
from polars_mcc._inference.tables import BY_GOLD, BY_PRED, OBSERVED, POOLED, TABLE, by_table
from polars_mcc._inference.variance import NOTHING, sum_of_squares
from polars_mcc._log.choices import Method

_MOST = 1e12  # rows of a proportion per row of the slice; more than any share of a class allows

EffectiveRows: TypeAlias = Callable[[pl.Expr], pl.Expr]


def of_classes(counted: Counted, scores: pl.LazyFrame) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Add intervals to metrics of classes; also return the influences of pairs."""
    log, names, pool = counted.log, counted.names, counted.asked.pool
    asked = counted.asked
    classes = gradients.of_classes(
        log, counted.pairs, counted.classes, asked.metrics, positive=asked.positive, pool=pool
    ).cache()
    rows = gradients.of_rows(log, counted.pairs, classes, names, pool).cache()
    of_pair = rows.filter(pl.col(TABLE) == OBSERVED)
    tables = {
        metric.name: smoothed_tables(metric.given, is_pooled=pool is not None)
        for metric in asked.metrics
    }
    of_tables = _of_tables(log, rows, classes, names)
    return _limited(counted, scores, of_tables, of_pair, tables), of_pair


def of_pairs(counted: Counted, scores: pl.LazyFrame) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Add intervals to metrics of pairs, whose variance is the observed one."""
    log, names = counted.log, counted.names
    rows = gradients.of_pairs(log, counted.pairs, counted.classes, counted.asked.metrics).cache()
    values = [f"{what}:{name}" for name in names for what in ("value", "low", "high")]
    means = {
        f"phi_phi:{name}": sum_of_squares(
            log, pl.col("n") * pl.col(f"phi:{name}").pow(2), pl.col(f"unit:{name}").pow(2)
        )
        / pl.col("n").sum()
        for name in names
    }
    of_tables = by_table(log).per_slice(
        rows, **{value: pl.col(value).max() for value in values}, **means
    )
    tables = dict.fromkeys(names, (OBSERVED,))
    return _limited(counted, scores, of_tables, rows, tables), rows


def smoothed_tables(given: str | None, *, is_pooled: bool = False) -> tuple[str, ...]:
    """The tables that give m. A rate of a class needs the side that it is given alone."""
    if given == "pred":
        return (BY_PRED,)
    own = (BY_GOLD,) if given == "gold" else (BY_GOLD, BY_PRED)
    return (*own, POOLED) if is_pooled else own


def _limited(
    counted: Counted,
    scores: pl.LazyFrame,
    of_tables: pl.LazyFrame,
    of_pair: pl.LazyFrame,
    tables: Mapping[str, Sequence[str]],
) -> pl.LazyFrame:
    log = counted.log
    of_slices = log.per_slice(of_tables, **from_tables(tables))
    observed = log.beside(of_slices, counted.variances(of_pair)).with_columns(
        z=critical(log, counted.asked.ci)
    )
    # A metric may have any name.
    renamed = {f"score:{name}": pl.col(name) for name in counted.names}
    found = with_limits(
        log.beside(scores.select(*log.slice, **renamed), observed),
        counted.names,
        counted.asked.method,
        effective=effective_rows(log),
    )
    n_clusters = ["n_clusters"] if log.has_clusters else []
    return counted.beside(scores, found.select(*log.slice, *n_clusters, *columns_of(counted.names)))


def from_tables(tables: Mapping[str, Sequence[str]]) -> dict[str, pl.Expr]:
    """From a row per table, what the limits of a slice need.

    `worth:` is the smallest m per row, `most:` the largest mean of φ², of the smoothed tables.
    """
    is_observed, columns = pl.col(TABLE) == OBSERVED, {}
    for name, its_tables in tables.items():
        for what in ("value", "low", "high", "phi_phi"):
            columns[f"{what}:{name}"] = pl.col(f"{what}:{name}").filter(is_observed).max()
        is_smoothed = pl.col(TABLE).is_in([*its_tables])
        columns[f"worth:{name}"] = worth(name).filter(is_smoothed).min()
        columns[f"most:{name}"] = pl.col(f"phi_phi:{name}").filter(is_smoothed).max()
    return columns


def with_limits(
    slices: pl.LazyFrame, names: Sequence[str], method: Method, effective: EffectiveRows
) -> pl.LazyFrame:
    """Add `_low`, `_high` and `_se` of each score to the columns of its slice.

    `effective` gives the effective rows from the rows that the variance of a score tells.
    """
    steps: list[dict[str, pl.Expr]] = [{}, {}, {}, {}, {}]
    for name in names:
        for step, columns in zip(steps, _steps(name, method, effective), strict=True):
            step.update(columns)
    for step in steps:  # In steps, because nested expressions grow fast.
        slices = slices.with_columns(**step)
    return slices


def effective_rows(log: SlicedLog) -> EffectiveRows:
    """How many independent rows of equal weight would be as good.

    Few clusters, and few rows with large weights, hide how much they vary. So G clusters count as
    G - 1, and rows count by their weights w too: (Σ w)² / Σ w².
    """
    if log.has_clusters:
        return lambda rows: rows * (1 - 1 / pl.col("n_clusters"))
    return (lambda rows: rows) if log.is_frequency else lambda rows: rows.clip(None, "draws")


def _steps(name: str, method: Method, effective: EffectiveRows) -> Iterator[dict[str, pl.Expr]]:
    """The columns to compute for the limits of a score; each step uses the steps before."""
    score, value, z, draws = map(pl.col, (f"score:{name}", f"value:{name}", "z", "draws"))
    low, high, span = pl.col(f"low:{name}"), pl.col(f"high:{name}"), pl.col(f"span:{name}")
    variance, phi_phi = pl.col(f"variance:{name}"), pl.col(f"phi_phi:{name}")
    place, se, rows = pl.col(f"place:{name}"), pl.col(f"{name}_se"), pl.col(f"rows:{name}")
    has_score = value.is_not_null() & score.is_finite() & z.is_not_null()
    width = pl.coalesce(high - low, score.abs())
    varies = has_score & (phi_phi > NOTHING * width.pow(2))
    varies &= (variance > 0) & draws.is_finite() & (variance * draws > NOTHING * phi_phi)
    # Each row could only move the score away from the end, and their mean moves it nowhere. So
    # every φ is 0, but the φ of a square root, as of Cramér's V, may be infinite.
    varies &= ~((score == low) | (score == high)).fill_null(value=False)
    known = effective(pl.when(varies).then(phi_phi / variance).otherwise(draws))
    yield {
        f"span:{name}": width,
        f"place:{name}": pl.when(has_score & (width > 0) & score.is_between(low, high)).then(
            (score - low) / width
        ),
        f"{name}_se": pl.when(varies & variance.is_finite()).then(variance.sqrt()),
        f"rows:{name}": pl.when(known.is_finite() & (known > 0)).then(known),
    }
    yield {
        f"z2:{name}": z.pow(2) / (rows * pl.col(f"worth:{name}")),
        f"reach:{name}": z * (se if method != "score" else (pl.col(f"most:{name}") / rows).sqrt()),
    }
    ends: Sequence[pl.Expr]
    if method == "score":  # Wilson's
        z2 = pl.col(f"z2:{name}")
        middle, reach = place + z2 / 2, (z2 * place * (1 - place) + z2.pow(2) / 4).sqrt()
        is_end = {-1: place == 0, 1: place == 1}  # not 1 - 4·10⁻¹⁶
        ends = [
            pl.when(is_end[sign]).then(place).otherwise((middle + sign * reach) / (1 + z2))
            for sign in (-1, 1)
        ]
    elif method == "fisher":
        middle, reach = (2 * place - 1).arctanh(), z * se / (2 * span * place * (1 - place))
        ends = [((middle + sign * reach).tanh() + 1) / 2 for sign in (-1, 1)]
    else:
        ends = [place + sign * z * se / span for sign in (-1, 1)]
    sides = (f"{name}_low", f"{name}_high")
    yield {side: low + span * end for side, end in zip(sides, ends, strict=True)}
    yield {
        side: pl.when(place.is_null() & has_score)
        .then(score + sign * pl.col(f"reach:{name}"))
        .otherwise(side)
        for side, sign in zip(sides, (-1, 1), strict=True)
    }
    are_finite = pl.all_horizontal(pl.col(side).is_finite() for side in sides)
    yield {side: pl.when(are_finite).then(side) for side in sides}


def worth(name: str) -> pl.Expr:
    """The rows m of a proportion with the variance of the score, per row of the slice."""
    low, high = pl.col(f"low:{name}"), pl.col(f"high:{name}")
    there, squared = (pl.col(f"value:{name}") - low) / (high - low), pl.col(f"phi_phi:{name}")
    squared /= (high - low).pow(2)
    is_inside = (there > 0) & (there < 1) & (squared > NOTHING)
    # A rate of a class that the slice does not have is a proportion of all rows.
    is_alone = ((there == 0) | (there == 1)) & (squared <= NOTHING)
    rows = there * (1 - there) / squared
    # Kappa of one gold class is moved by no row. Then φ is only a rounding error.
    is_real = is_inside & (rows < _MOST)
    return pl.when(is_real).then(rows).when(is_alone).then(pl.lit(1.0))


def _of_tables(
    log: SlicedLog, rows: pl.LazyFrame, classes: pl.LazyFrame, names: Sequence[str]
) -> pl.LazyFrame:
    """For each slice and table: the value of each metric, its range, and the mean of φ²."""
    apart = by_table(log)
    values = [f"{what}:{name}" for name in names for what in ("value", "low", "high")]
    more = {f"more:{name}": _rows_more(log, name) for name in names}
    flat = {f"{name}:{part}": sum_ for name, parts in more.items() for part, sum_ in parts.items()}
    of_classes = apart.per_slice(
        classes,
        others=pl.col("others").max(),
        **{value: pl.col(value).max() for value in values},
        **flat,
    )
    means = {
        f"phi_phi:{name}": sum_of_squares(
            log, pl.col("weight") * pl.col(f"phi:{name}").pow(2), pl.col(f"unit:{name}").pow(2)
        )
        for name in names
    }
    s = log.within_slice(pl.col("rows").filter(pl.col(TABLE) == OBSERVED).max())
    both = apart.beside(apart.per_slice(rows, rows=pl.col("weight").sum(), **means), of_classes)
    return both.with_columns(s=s).with_columns(
        (pl.col(f"phi_phi:{name}") + _added_up(f"more:{name}")) / pl.col("s") for name in names
    )


def _rows_more(log: SlicedLog, name: str) -> dict[str, pl.Expr]:
    """The sums over classes that make up the squares of the rows more of a table.

    A class has a hit and a miss more, and the miss is spread over the other classes. With m other
    classes and weights w that is

        Σ_i w_i (gold_i + pred_i + hit_i)² + Σ_i w_i/m Σ_{j≠i} (gold_i + pred_j)².

    In the table by prediction, gold and pred change places.
    """
    gold, pred, hit = map(pl.col, gradients.sides_of(name))
    is_by_pred, w, unit = pl.col(TABLE) == BY_PRED, pl.col("more_rows"), pl.col(f"unit:{name}")
    own = pl.when(is_by_pred).then(pred).otherwise(gold)
    other = pl.when(is_by_pred).then(gold).otherwise(pred)
    square, one = unit.pow(2), pl.lit(1.0)
    addends = {
        "both": (w * (gold + pred + hit).pow(2), square),
        "own": (w * own, unit),
        "own2": (w * own.pow(2), square),
        "cross": (w * own * other, square),
        "other": (other, unit),
        "other2": (other.pow(2), square),
        "weight": (w, one),
        "weighted_other2": (w * other.pow(2), square),
    }
    return {part: sum_of_squares(log, *addend) for part, addend in addends.items()}


def _added_up(name: str) -> pl.Expr:
    """The squares of the rows more of a table, from the sums of `_rows_more`."""

    def sum_of(part: str) -> pl.Expr:
        return pl.col(f"{name}:{part}")

    others = pl.col("others")
    spread = 2 * (sum_of("own") * sum_of("other") - sum_of("cross"))
    spread += sum_of("weight") * sum_of("other2") - sum_of("weighted_other2")
    return (
        sum_of("both") + sum_of("own2") + pl.when(others > 0).then(spread / others).otherwise(0.0)
    )

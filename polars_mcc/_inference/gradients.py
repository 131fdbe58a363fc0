"""Metrics → influences: how far one row of a pair moves each metric.

T_k, P_k and C_k are the shares of rows with class k as gold label, as prediction, and as both. A
score is a function g of these shares. A row of the pair (i, j) moves the score by

    φ_ij = ∂g/∂T_i + ∂g/∂P_j + [i = j]·∂g/∂C_i - Σ_k (T_k·∂g/∂T_k + P_k·∂g/∂P_k + C_k·∂g/∂C_k).

So three numbers per class give the influence of every row. They are derivatives of the expression
that defines the metric. A score of pairs also has a derivative by the share of each pair.

Influences are computed at two tables: see `tables`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import polars as pl

from polars_mcc._counts.classes import beside_class, is_scored, with_margins
from polars_mcc._counts.exact import power_of_two
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.derivative import NoDerivativeError, Tape, Value
from polars_mcc._inference.tables import (
    OBSERVED,
    TABLE,
    TABLES,
    as_float,
    at_each_table,
    both_tables,
    by_table,
)
from polars_mcc._inference.variance import NOTHING
from polars_mcc._scores.class_scores import formulas
from polars_mcc._scores.metric import Metric, OverClasses, OverPairs

_MARGINS = ("support", "predicted", "hits")
_PAIR_MARGINS = ("n", "gold_t", "pred_p")


_N, _S, _T, _P = map(pl.col, ("n", "s", "gold_t", "pred_p"))
_OF_PAIRS = {
    "share": _N / _S,
    "expected": _T * _P / _S / _S,
    "excess": _N / _S - _T * _P / _S / _S,
}


def in_order(log: SlicedLog, *labels: str) -> Callable[[pl.Expr], pl.Expr]:
    """Aggregate over a slice in the order of labels, so that sums of floats are always the same.

    To sort the frame is not enough: Polars leaves out a sort before sums.
    """
    return lambda aggregation: aggregation.over(log.slice or pl.lit(0), order_by=labels)


def of_classes(
    log: SlicedLog,
    pairs: pl.LazyFrame,
    classes: pl.LazyFrame,
    metrics: Sequence[Metric],
    positive: pl.Expr | None,
) -> pl.LazyFrame:
    """How far each class of a slice moves metrics of classes: a row per table and class.

    `kept` is the share of the gold rows of a class that are not in the pool. For each metric:

    - `value:` is the metric at the table, null if it is undefined.
    - `gold:`, `pred:` and `hit:` are how far a row moves the metric if its gold label, its
      prediction, or both are this class.
    - `unit:` is an upper bound of |φ|, null if a derivative is infinite.
    - `pool:` is what the rows in the pool add to the mean of φ².
    - `end:` is described at `_at_end`.
    """
    apart = by_table(log)
    undefined = log.zero_division
    if undefined is not None and math.isnan(undefined):  # A score that is NaN has no interval.
        undefined = None
    frame = both_tables(log, pairs, classes, positive).with_columns(**formulas(undefined))
    tape = _tape_of_classes(in_order(apart, "label"), undefined)
    values = _read(tape, metrics)
    shares = {name: pl.col(name) / pl.col("s") for name in _MARGINS}
    columns = _at_table(values, metrics)
    for name, value in values.items():
        moves = _moves(tape.gradient(value), _MARGINS)
        columns |= dict(zip(sides_of(name), moves, strict=True))
    found = tape.with_aggregates(frame).select(
        *apart.slice,
        "label",
        "drawn",
        kept=1 - pl.col("moved"),
        weight=pl.col("moved") * shares["support"],
        **{f"share:{name}": share for name, share in shares.items()},
        **columns,
    )
    return _centred(apart, found, [*values])


def of_pairs(
    log: SlicedLog, pairs: pl.LazyFrame, classes: pl.LazyFrame, metrics: Sequence[Metric]
) -> pl.LazyFrame:
    """The scored pairs, with `phi:`, `unit:` and `value:` of metrics of pairs."""
    scored = pairs.filter(is_scored(log) & (pl.col("n") > 0))
    names = scored.collect_schema().names()

    def in_slice(label: str) -> pl.Expr:
        return log.within_slice(pl.col(label).n_unique()).cast(pl.Float64)

    s = log.within_slice(pl.col("n").cast(pl.Float64).sum())
    frame = with_margins(log, scored, classes).with_columns(
        gold_t=as_float(log, "gold_t"),
        pred_p=as_float(log, "pred_p"),
        s=s,
        total=s,
        k_gold=in_slice("gold"),
        k_pred=in_slice("pred"),
        given=pl.col("n"),
        n=pl.col("n").cast(pl.Float64),
    )
    tape = _tape_of_pairs(in_order(log, "gold", "pred"))
    frame = frame.with_columns(**_OF_PAIRS)
    values = _read(tape, metrics)
    columns = _at_table(values, metrics)
    units, sums, phis = {}, {}, {}
    for name, value in values.items():
        moves = _moves(tape.gradient(value), _PAIR_MARGINS)
        columns |= dict(zip(sides_of(name), moves, strict=True))
        units[f"unit:{name}"] = _unit(log, [pl.col(side) * pl.len() for side in sides_of(name)])
        hit, gold, pred = (pl.col(side) for side in sides_of(name))
        moved = (
            side.sum().over([*log.slice, label], order_by=["gold", "pred"])
            for side, label in ((gold, "gold"), (pred, "pred"))
        )
        sums[f"phi:{name}"] = sum(moved, start=hit)
        phi = pl.col(f"phi:{name}")
        mean = in_order(log, "gold", "pred")((pl.col("n") / pl.col("s") * phi).sum())
        phis[f"phi:{name}"] = phi - mean
    return (
        tape.with_aggregates(frame)
        .with_columns(**columns)
        .with_columns(**units)
        .with_columns(**sums)
        .with_columns(**phis)
        .with_columns(pl.lit(OBSERVED, TABLES).alias(TABLE), n="given", kept=1.0)
        .select(
            *(TABLE, *names, "kept"),
            *(f"{what}:{name}" for name in values for what in ("value", "low", "high")),
            *units,
            *phis,
        )
    )


def _at_table(values: Mapping[str, Value], metrics: Sequence[Metric]) -> dict[str, pl.Expr]:
    """The value of each metric in its slice, and both ends of its range."""
    columns = {f"value:{name}": one.value.cast(pl.Float64) for name, one in values.items()}
    for metric in metrics:
        ends = (None, None) if metric.range is None else (metric.range.low, metric.range.high)
        for name, end in zip(("low", "high"), ends, strict=True):
            number = end if isinstance(end, pl.Expr) else pl.lit(end)
            columns[f"{name}:{metric.name}"] = number.cast(pl.Float64)
    return columns


def sides_of(name: str) -> list[str]:
    """The columns of the influence on a score: by gold label, by prediction, and by both."""
    return [f"gold:{name}", f"pred:{name}", f"hit:{name}"]


def _moves(derivatives: Mapping[str, pl.Expr], margins: Sequence[str]) -> list[pl.Expr]:
    """Turn derivatives by counts into derivatives by shares of the rows."""
    return [derivatives.get(column, pl.lit(0.0)) * pl.col("s") for column in margins]


def _centred(log: SlicedLog, classes: pl.LazyFrame, names: Sequence[str]) -> pl.LazyFrame:
    """Subtract the mean influence of a row, and add the columns that are sums over classes."""
    shares = [pl.col(f"share:{column}") for column in _MARGINS]
    units: dict[str, pl.Expr] = {"in_pool": in_order(log, "label")(pl.col("weight").sum())}
    means, sums = {}, {}
    for name in names:
        sides = [pl.col(side) for side in sides_of(name)]
        units[f"unit:{name}"] = _unit(log, sides)
        moved = (share * side for share, side in zip(shares, sides, strict=True))
        means[f"gold:{name}"] = sides[0] - in_order(log, "label")(pl.sum_horizontal(moved).sum())
        sums[f"pool:{name}"] = _of_pool(log, *sides)
        sums[f"end:{name}"] = _at_end(log, *sides)
    return (
        classes.with_columns(**units)
        .with_columns(**means)
        .with_columns(**sums)
        .drop("in_pool", "weight", "drawn", *(f"share:{column}" for column in _MARGINS))
    )


def _of_pool(log: SlicedLog, gold: pl.Expr, pred: pl.Expr, hit: pl.Expr) -> pl.Expr:
    """What the rows in the pool add to the mean of φ².

    w_i is the share of all rows that are in the pool and of gold class i. r_j is the share of
    prediction j in the pool. The result is Σ w_i r_j (gold_i + pred_j + [i = j]·hit_i)².
    """
    w, r, total = pl.col("weight"), pl.col("drawn"), in_order(log, "label")
    return (
        total((w * gold.pow(2) + w * r * hit * (hit + 2 * (gold + pred))).sum())
        + pl.col("in_pool") * total((r * pred.pow(2)).sum())
        + 2 * total((w * gold).sum()) * total((r * pred).sum())
    )


def _at_end(log: SlicedLog, gold: pl.Expr, pred: pl.Expr, hit: pl.Expr) -> pl.Expr:
    """The rows of a proportion like the score, per row, if no pair that occurs moves the score.

    Add a share ε·δ_ij of each other pair, with a small ε and δ_ij = T_i + P_j. The score then moves
    by ε·Σ δφ, and its variance per row is ε·Σ δφ². A proportion that moves equally far has this
    variance if it has Σ δφ / Σ δφ² rows per row.
    """
    t, p, k = pl.col("share:support"), pl.col("share:predicted"), pl.len().cast(pl.Float64)
    total = in_order(log, "label")
    of_gold, of_pred = total((t * gold).sum()), total((p * pred).sum())
    all_gold, all_pred = total(gold.sum()), total(pred.sum())
    first = total(k * (t * gold + p * pred).sum() + (gold + pred + (t + p) * hit).sum())
    squares = total(
        k * (t * gold.pow(2) + p * pred.pow(2)).sum()
        + (gold.pow(2) + pred.pow(2) + (t + p) * hit * (hit + 2 * (gold + pred))).sum()
    )
    second = squares + 2 * (of_gold * all_pred + of_pred * all_gold)
    return pl.when(second > NOTHING).then(first / second)


def _unit(log: SlicedLog, sides: Sequence[pl.Expr]) -> pl.Expr:
    """An upper bound of influences, from their parts; null if a part is infinite."""
    most = log.within_slice(pl.max_horizontal(side.abs() for side in sides).max())
    are_finite = log.within_slice(pl.sum_horizontal(sides).is_finite().all())
    return pl.when(are_finite).then(pl.when(most > 0).then(power_of_two(8 * most)).otherwise(1.0))


def of_each_class() -> dict[str, list[pl.Expr]]:
    """How far a row moves each score of a class: by gold label, by prediction, and by both."""
    of_class = formulas(None)
    tape = Tape(_MARGINS, lambda one: one, of_class)
    derivatives = {name: tape.read(pl.col(name)).by for name in of_class}
    return {name: _moves(by, _MARGINS) for name, by in derivatives.items()}


def _tape_of_classes(
    within_slice: Callable[[pl.Expr], pl.Expr], zero_division: float | None
) -> Tape:
    return Tape(_MARGINS, within_slice, formulas(zero_division))


def _tape_of_pairs(within_slice: Callable[[pl.Expr], pl.Expr]) -> Tape:
    return Tape(_PAIR_MARGINS, within_slice, _OF_PAIRS)


def _read(tape: Tape, metrics: Sequence[Metric]) -> dict[str, Value]:
    values = {}
    for metric in metrics:
        terms = OverPairs if metric.pairs else OverClasses
        try:
            values[metric.name] = tape.read(metric.value(terms(metric, None)))
        except NoDerivativeError as error:
            msg = (
                f"metric '{metric.name}' has no standard error by a formula, because {error} has "
                "no derivative; use by(..., method=Bootstrap(...)) on a DataFrame to resample it"
            )
            raise ValueError(msg) from None
    return values


def of_rows(
    log: SlicedLog, pairs: pl.LazyFrame, classes: pl.LazyFrame, names: Sequence[str]
) -> pl.LazyFrame:
    """The scored pairs, with `phi:` of each metric of classes, a row per table and pair.

    `phi:` is the influence of one row of the pair. `kept` is the share of its rows that are not in
    the pool.
    """
    apart = by_table(log)
    gold, pred, hit = ([sides_of(name)[place] for name in names] for place in range(3))
    scored = at_each_table(pairs.filter(is_scored(log)))
    units = [f"unit:{name}" for name in names]
    of_gold = beside_class(apart, scored, "gold", classes, *gold, *hit, *units, "kept")
    is_hit = pl.col("gold").eq_missing(pl.col("pred"))
    return beside_class(apart, of_gold, "pred", classes, *pred).select(
        TABLE,
        pl.col(pairs.collect_schema().names()),
        "kept",
        *units,
        **{
            f"phi:{name}": pl.col(f"gold:{name}")
            + pl.col(f"pred:{name}")
            + pl.when(is_hit).then(f"hit:{name}").otherwise(0.0)
            for name in names
        },
    )

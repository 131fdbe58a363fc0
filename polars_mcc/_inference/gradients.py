"""Metrics → influences: how far one row of a pair moves each metric.

T_k, P_k and C_k are the shares of rows with class k as gold label, as prediction, and as both. A
score is a function g of these shares. A row of the pair (i, j) moves the score by

    φ_ij = ∂g/∂T_i + ∂g/∂P_j + [i = j]·∂g/∂C_i - Σ_k (T_k·∂g/∂T_k + P_k·∂g/∂P_k + C_k·∂g/∂C_k).

So three numbers per class give the influence of every row. They are derivatives of the expression
that defines the metric. A score of pairs also has a derivative by the share of each pair.

Influences are computed at several tables: see `tables`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import polars as pl

from polars_mcc._counts.classes import beside_class, is_scored, with_margins
from polars_mcc._counts.exact import power_of_two
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.tables import (
    BY_GOLD,
    BY_PRED,
    OBSERVED,
    POOLED,
    TABLE,
    TABLES,
    Pool,
    as_float,
    at_each_table,
    by_table,
    class_tables,
    pooled_pairs,
)
from polars_mcc._scores.class_scores import TwoByTwo
from polars_mcc._scores.derivative import Dual, NoDerivativeError, Tape
from polars_mcc._scores.metric import Metric, OverClasses, OverPairs, Terms

_MARGINS = ("support", "predicted", "hits")
_PAIR_MARGINS = ("n", "gold_t", "pred_p")
_COUNTS = {
    **{name: {name: 1.0} for name in (*_MARGINS, *_PAIR_MARGINS)},
    "fn": {"support": 1.0, "hits": -1.0},
    "fp": {"predicted": 1.0, "hits": -1.0},
    "tn": {"support": -1.0, "predicted": -1.0, "hits": 1.0},
}
"""Counts that are columns, so that they are exact, with their derivatives by the margins."""


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
    *,
    positive: pl.Expr | None,
    pool: Pool | None,
) -> pl.LazyFrame:
    """How far each class of a slice moves metrics of classes: a row per table and class.

    `kept_gold` and `kept_pred` are the shares of the observed rows of a class that the table keeps.
    For each metric:

    - `value:` is the metric at the table, null if it is undefined; `low:` and `high:` its range.
    - `gold:`, `pred:` and `hit:` are how far a row moves the metric if its gold label, its
      prediction, or both are this class.
    - `unit:` is an upper bound of |φ|, null if a derivative is infinite.
    """
    apart = by_table(log)
    undefined = log.zero_division
    if undefined is not None and math.isnan(undefined):  # A score that is NaN has no interval.
        undefined = None
    frame = class_tables(log, pairs, classes, positive, pool)
    tape = Tape(_COUNTS, in_order(apart, "label"))
    tape.define(TwoByTwo.of_floats(tape).scores(undefined))
    values = _read(OverClasses(tape), metrics)
    columns = _at_table(values, metrics)
    for name, value in values.items():
        moves = _moves(tape.gradient(value), _MARGINS)
        columns |= dict(zip(sides_of(name), moves, strict=True))
    is_by_pred = pl.col(TABLE) == BY_PRED
    kept = 1 - pl.col("more")
    found = tape.with_columns(frame).select(
        *apart.slice,
        *("label", "support", "more", "others"),
        kept_gold=pl.when(pl.col(TABLE) == BY_GOLD).then(kept).otherwise(1.0),
        kept_pred=pl.when(is_by_pred).then(kept).otherwise(1.0),
        more_rows=pl.col("more") * pl.when(is_by_pred).then("predicted").otherwise("support") / 2,
        **{f"share:{name}": pl.col(name) / pl.col("s") for name in _MARGINS},
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
        gold_t=as_float(log, pl.col("gold_t")),
        pred_p=as_float(log, pl.col("pred_p")),
        s=s,
        total=s,
        k_gold=in_slice("gold"),
        k_pred=in_slice("pred"),
        given=pl.col("n"),
        n=pl.col("n").cast(pl.Float64),
    )
    tape = Tape(_COUNTS, in_order(log, "gold", "pred"))
    tape.define({"share": tape("n") / tape("s")})
    values = _read(OverPairs(tape), metrics)
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
        tape.with_columns(frame)
        .with_columns(**columns)
        .with_columns(**units)
        .with_columns(**sums)
        .with_columns(**phis)
        .with_columns(pl.lit(OBSERVED, TABLES).alias(TABLE), weight="n", n="given")
        .select(
            *(TABLE, *names, "weight"),
            *(f"{what}:{name}" for name in values for what in ("value", "low", "high")),
            *units,
            *phis,
        )
    )


def _at_table(values: Mapping[str, Dual], metrics: Sequence[Metric]) -> dict[str, pl.Expr]:
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
    units, means = {}, {}
    for name in names:
        sides = [pl.col(side) for side in sides_of(name)]
        units[f"unit:{name}"] = _unit(log, sides)
        moved = (share * side for share, side in zip(shares, sides, strict=True))
        means[f"gold:{name}"] = sides[0] - in_order(log, "label")(pl.sum_horizontal(moved).sum())
    columns = [f"share:{column}" for column in _MARGINS]
    return classes.with_columns(**units).with_columns(**means).drop(columns)


def _unit(log: SlicedLog, sides: Sequence[pl.Expr]) -> pl.Expr:
    """An upper bound of influences, from their parts; null if a part is infinite."""
    largest = pl.max_horizontal(side.abs().fill_nan(math.inf) for side in sides)
    most = log.within_slice(largest.max())
    bound = pl.when(most > 0).then(power_of_two(8 * most)).otherwise(1.0)
    return pl.when(most.is_finite()).then(bound)


def of_each_class() -> dict[str, list[pl.Expr]]:
    """How far a row moves each score of a class: by gold label, by prediction, and by both."""
    scores = TwoByTwo.of_floats(Tape(_COUNTS, lambda one: one)).scores(None)
    return {name: _moves(one.by, _MARGINS) for name, one in scores.items() if isinstance(one, Dual)}


def _read(terms: Terms, metrics: Sequence[Metric]) -> dict[str, Dual]:
    """Each metric as an expression with its derivative."""
    return {metric.name: _differentiated(metric, terms) for metric in metrics}


def _differentiated(metric: Metric, terms: Terms) -> Dual:
    try:
        value = metric.value(terms.of(metric, None))
    except NoDerivativeError as error:
        value = error.part
    if isinstance(value, Dual):
        return value
    msg = (
        f"metric '{metric.name}' has no standard error by a formula, because {value} has no "
        "derivative; write it as a function, as in lambda col: col('recall').mean(), with the "
        "methods that register_metric lists, or use by(..., method=Bootstrap(...)) on a DataFrame "
        "to resample it"
    )
    raise ValueError(msg)


def of_rows(
    log: SlicedLog,
    pairs: pl.LazyFrame,
    classes: pl.LazyFrame,
    names: Sequence[str],
    pool: Pool | None,
) -> pl.LazyFrame:
    """The scored pairs, with `phi:` of each metric of classes, a row per table and pair.

    `phi:` is the influence of one row of the pair. `weight` is the rows that the table has of the
    pair, except for the rows more of a smoothed table.
    """
    apart = by_table(log)
    gold, pred, hit = ([sides_of(name)[place] for name in names] for place in range(3))
    scored = pairs.filter(is_scored(log))
    rows = at_each_table(scored).with_columns(weight=pl.col("n").cast(pl.Float64))
    if pool is not None:
        pooled = pooled_pairs(log, classes, pool)
        rows = pl.concat(
            [rows, pooled.with_columns(pl.lit(POOLED, TABLES).alias(TABLE))], how="diagonal"
        )
    units = [f"unit:{name}" for name in names]
    of_gold = beside_class(apart, rows, "gold", classes, *gold, *hit, *units, "kept_gold")
    is_hit = pl.col("gold").eq_missing(pl.col("pred"))
    return beside_class(apart, of_gold, "pred", classes, *pred, "kept_pred").select(
        TABLE,
        pl.col(scored.collect_schema().names()),
        *units,
        weight=pl.col("weight") * pl.col("kept_gold") * pl.col("kept_pred").fill_null(1.0),
        **{
            # In the pool, a prediction may be a label that the slice does not have.
            f"phi:{name}": pl.col(f"gold:{name}")
            + pl.col(f"pred:{name}").fill_null(0.0)
            + pl.when(is_hit).then(f"hit:{name}").otherwise(0.0)
            for name in names
        },
    )

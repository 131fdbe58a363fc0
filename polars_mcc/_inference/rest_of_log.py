"""The rest of a slice: the other rows of the log, by subtracting counts."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.counted import count_columns, merged
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._scores.r_k import correlation

_COUNTS = ("gold_n", "pred_n", "hit_n")
_NEARLY_NOTHING = 2.0**-40
"""The share of a sum of floats that rounding may leave when all of it is subtracted."""


def scores_of_rest(log: SlicedLog, classes: pl.LazyFrame, of_total: pl.LazyFrame) -> pl.LazyFrame:
    """The score of the `rest` of each slice, from the classes of the slice and of the log.

    T and P count a label in the log, t and p in the slice. A sum of products over all classes of
    the rest, such as Σ (T - t)(P - p), is Σ TP - Σ (T·p + t·(P - p)). The second sum needs only
    the classes of the slice.
    """
    t, p, hits = map(pl.col, _COUNTS)
    total_t, total_p = pl.col("total_t"), pl.col("total_p")
    of_all = _weighed(log, of_total)
    of_labels = of_all.select("label", total_t=t, total_p=p)
    sums = of_all.select(
        s=t.sum(), c=hits.sum(), tp=(t * p).sum(), tt=(t * t).sum(), pp=(p * p).sum()
    )
    in_slices = _weighed(log, classes)
    taken = log.per_slice(
        in_slices.join(of_labels, on="label", how="left", nulls_equal=True),
        s_taken=t.sum(),
        c_taken=hits.sum(),
        tp_taken=(total_t * p + t * (total_p - p)).sum(),
        tt_taken=(t * (2 * total_t - t)).sum(),
        pp_taken=(p * (2 * total_p - p)).sum(),
    )
    s, c, tp, tt, pp = (
        pl.col(name) - pl.col(f"{name}_taken") for name in ("s", "c", "tp", "tt", "pp")
    )
    cov, *variances = (part.cast(pl.Float64) for part in (c * s - tp, s * s - tt, s * s - pp))
    is_float = log.numbers.count.is_float()
    least = pl.col("s").pow(2) * _NEARLY_NOTHING if is_float else pl.lit(0)
    var_gold, var_pred = (pl.when(one > least).then(one).otherwise(0.0) for one in variances)
    score = correlation(cov, var_gold, var_pred, zero_division=None)
    return taken.join(sums, how="cross").select(*log.slice, rest=score)


def _weighed(log: SlicedLog, classes: pl.LazyFrame) -> pl.LazyFrame:
    """The counts of classes as weights, in place of numbers of units."""
    counts = log.numbers.from_units(pl.col(_COUNTS), pl.col("unit")).cast(log.numbers.wide)
    return classes.with_columns(counts).drop("null_n", "unit")


def classes_of_rest(log: SlicedLog, classes: pl.LazyFrame, of_total: pl.LazyFrame) -> pl.LazyFrame:
    """The classes of the rest of each slice: counts of the log minus counts of the slice.

    The rest has nearly all classes of the log, so there are as many rows as slices times classes.
    """
    slices = classes.select(log.slice).unique()
    taken = _weighed(log, classes).select(
        *log.slice, "label", pl.col(_COUNTS).name.suffix("_taken")
    )
    of_total = _weighed(log, of_total)
    left = slices.join(of_total, how="cross").join(
        taken, on=[*log.slice, "label"], how="left", nulls_equal=True
    )
    counts = {name: pl.col(name) - pl.col(f"{name}_taken").fill_null(0) for name in _COUNTS}
    unit = log.numbers.unit(log.within_slice(pl.col("gold_n").sum()))
    in_units = log.numbers.in_units(pl.col(_COUNTS).clip(0), pl.col("unit"))
    return (
        left.with_columns(**counts)
        .with_columns(unit=unit)
        .select(*log.slice, "label", in_units, null_n=pl.lit(0, log.numbers.wide), unit="unit")
    )


def pairs_of_rest(apart: SlicedLog, own: pl.DataFrame, total: pl.DataFrame) -> pl.DataFrame:
    """The pairs of the rest of each slice, whose `own` pairs have the columns of `apart`.

    `total` are the pairs of a slice and its rest together.
    """
    on = [name for name in apart.slice if name not in apart.apart]
    taken, counts = own.lazy(), count_columns(apart)
    slices = taken.select(apart.slice).unique()
    every = slices.join(total.lazy(), on=on or pl.lit(0), nulls_equal=True)
    columns = [*apart.slice, "gold", "pred", *counts]
    taken = taken.with_columns(-pl.col(name) for name in counts)
    signed = pl.concat([every.select(columns), taken.select(columns)])
    return merged(apart, taken_away(apart, signed)).collect()


def taken_away(log: SlicedLog, signed: pl.LazyFrame) -> pl.LazyFrame:
    """The pairs of a slice, where the counts of some are negative: these are taken away.

    All later results are sums over pairs. So a pair with integer counts stays in two rows. Float
    counts are added up here: a pair may then be 0 except for rounding, and such a pair is dropped.
    """
    if not log.numbers.count.is_float():
        return signed
    n, most = pl.col("n"), pl.col("n").max()
    return (
        signed.group_by(*log.slice, "gold", "pred")
        .agg(pl.col(count_columns(log)).sum(), least=most * _NEARLY_NOTHING)
        .filter((n > pl.col("least")) | (pl.col("n_null") > 0))
        .with_columns(n.clip(0))
        .drop("least")
    )

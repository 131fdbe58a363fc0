"""classes → scores: a row per slice, with the Matthews correlation coefficient."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from polars_mcc._log import Log
from polars_mcc._pairs import as_count

CLASS_COLUMNS = (
    "label",
    "support",
    "predicted",
    "hits",
    "precision",
    "recall",
    "f1",
    "mcc",
    "n",
    "n_null",
)


class Sums(NamedTuple):
    """What R_K needs of a slice: sums over its classes of marginals and hits.

    `t` and `p` are both the number of rows s, as the sum of the gold and of the predicted
    marginals: for float weights they differ in the last digit, and s² - t·t must be 0 for
    one gold class.
    """

    t: pl.Expr
    p: pl.Expr
    c: pl.Expr
    tp: pl.Expr
    tt: pl.Expr
    pp: pl.Expr

    @classmethod
    def over_classes(cls, t: pl.Expr, p: pl.Expr, hits: pl.Expr) -> Sums:
        """The sums over columns of marginals, a row per class."""
        return cls(
            t=t.sum(),
            p=p.sum(),
            c=hits,
            tp=(t * p).sum(),
            tt=(t * t).sum(),
            pp=(p * p).sum(),
        )


def scores(log: Log, classes: pl.LazyFrame, zero_division: float | None) -> pl.LazyFrame:
    """R_K of each slice (Gorodkin 2004), from sums over its classes."""
    t, p, c = pl.col("gold_n"), pl.col("pred_n"), pl.col("hit_n")
    sums = Sums.over_classes(t, p, c.sum())
    totals = {**sums._asdict(), "null": pl.col("null_n").sum()}
    n = as_count(log, pl.col("t"))
    mcc = r_k(Sums(*map(pl.col, Sums._fields)), zero_division)
    return log.per_slice(classes, **totals).select(
        *log.slice,
        n=n,
        mcc=pl.when(n > 0).then(mcc),
        n_null=as_count(log, pl.col("null")),
    )


def class_scores(log: Log, classes: pl.LazyFrame, zero_division: float | None) -> pl.LazyFrame:
    """The scores of each class against the rest of its slice."""
    t, p, c = pl.col("gold_n"), pl.col("pred_n"), pl.col("hit_n")

    def ratio(part: pl.Expr, of: pl.Expr) -> pl.Expr:
        share = part.cast(pl.Float64) / of.cast(pl.Float64)
        return pl.when(of == 0).then(pl.lit(zero_division, pl.Float64)).otherwise(share)

    s = pl.col("s")
    n = as_count(log, s)
    mcc = correlation(c * s - t * p, t * (s - t), p * (pl.col("s_pred") - p), zero_division)
    return (
        classes.with_columns(
            s=log.within_slice(t.sum()),
            s_pred=log.within_slice(p.sum()),
            null=log.within_slice(pl.col("null_n").sum()),
        )
        .filter(t + p > 0)
        .select(
            *log.slice,
            "label",
            support=as_count(log, t),
            predicted=as_count(log, p),
            hits=as_count(log, c),
            precision=ratio(c, p),
            recall=ratio(c, t),
            f1=ratio(2 * c, t + p),
            mcc=pl.when(n > 0).then(mcc),
            n=n,
            n_null=as_count(log, pl.col("null")),
        )
    )


def r_k(sums: Sums, zero_division: float | None) -> pl.Expr:
    """R_K = (c·s - t·p) / √((s² - p·p)(s² - t·t)), Gorodkin 2004."""
    t, p, c, tp, tt, pp = sums
    return correlation(c * t - tp, t * t - tt, p * p - pp, zero_division)


def correlation(
    cov: pl.Expr, var_gold: pl.Expr, var_pred: pl.Expr, zero_division: float | None
) -> pl.Expr:
    """Divide cov by √(var_gold · var_pred), each rounded once; 0/0 is `zero_division`.

    The square root of the product, not the product of the roots: √(x·x) is x, so that
    a perfect prediction scores 1 and not its neighbour.
    """
    cov, var_gold, var_pred = (e.cast(pl.Float64) for e in (cov, var_gold, var_pred))
    return (
        pl.when((var_gold <= 0) | (var_pred <= 0))
        .then(pl.lit(zero_division, pl.Float64))
        .otherwise((cov / (var_gold * var_pred).sqrt()).clip(-1, 1))
    )

"""Classes → the one-vs-rest scores of each class."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._scores.metric import CLASS_DTYPES
from polars_mcc._scores.r_k import correlation, count_of, divide

COLUMNS = ("label", *CLASS_DTYPES, "n_null")


def formulas(zero_division: float | None) -> dict[str, pl.Expr]:
    """Class scores as float expressions over the counts of a class and `s`, the rows.

    The counts are `support`, `predicted`, `hits`, and `fn`, `fp`, `tn` of the class and the rest.
    """
    t, p = pl.col("support"), pl.col("predicted")
    tp, fn, fp, tn = (pl.col(name) / pl.col("s") for name in ("hits", "fn", "fp", "tn"))
    cov, var_gold, var_pred = tp * tn - fn * fp, (tp + fn) * (fp + tn), (tp + fp) * (fn + tn)
    return {
        "precision": divide(pl.col("hits"), p, zero_division),
        "recall": divide(pl.col("hits"), t, zero_division),
        "specificity": divide(tn, fp + tn, zero_division),
        "f1": divide(2 * pl.col("hits"), t + p, zero_division),
        "mcc": correlation(cov, var_gold, var_pred, zero_division),
        "informedness": divide(cov, var_gold, zero_division),
        "markedness": divide(cov, var_pred, zero_division),
    }


def class_scores(log: SlicedLog, classes: pl.LazyFrame) -> pl.LazyFrame:
    """Score each class against the rest of its slice.

    The columns of `classes` include `s` and `null`: the rows of the slice that are scored, and
    the rows that are not.
    """
    zero_division = log.zero_division
    t, p, c, s = pl.col("gold_n"), pl.col("pred_n"), pl.col("hit_n"), pl.col("s")
    product = log.numbers.product

    def ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
        return divide(part.cast(pl.Float64), whole.cast(pl.Float64), zero_division)

    n = count_of(log, s)
    products = product(c, s) - product(t, p), product(t, s - t), product(p, s - p)
    cov, var_gold, var_pred = (product.to_float() for product in products)
    return classes.filter(t + p > 0).select(
        *log.slice,
        "label",
        support=count_of(log, t),
        predicted=count_of(log, p),
        hits=count_of(log, c),
        precision=ratio(c, p),
        recall=ratio(c, t),
        specificity=ratio(s - t - p + c, s - t),
        f1=ratio(2 * c, t + p),
        mcc=pl.when(n > 0).then(correlation(cov, var_gold, var_pred, zero_division)),
        informedness=pl.when(n > 0).then(divide(cov, var_gold, zero_division)),
        markedness=pl.when(n > 0).then(divide(cov, var_pred, zero_division)),
        n=n,
        n_null=log.numbers.as_count(pl.col("null")),
    )

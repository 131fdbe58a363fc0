"""Classes → the one-vs-rest scores of each class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeAlias

import polars as pl

from polars_mcc._counts.exact_sums import Numbers
from polars_mcc._counts.sliced_log import SlicedLog
from polars_mcc._metrics.mcc import correlation, count_of, divide, rows_of, waiting_of

Col: TypeAlias = Callable[[str], pl.Expr]
"""Gives a column by its name: `pl.col`, or `ArrayColumns` of arrays."""

CLASS_RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("precision", "recall", "specificity", "f1"), (0.0, 1.0)),
    **dict.fromkeys(("mcc", "informedness", "markedness"), (-1.0, 1.0)),
    **dict.fromkeys(("npv", "fpr", "fnr", "jaccard"), (0.0, 1.0)),
}
"""The scores of a class, each with its least and its largest value."""

CLASS_GIVEN: Mapping[str, Literal["gold", "pred"]] = {
    "precision": "pred",
    "recall": "gold",
    "specificity": "gold",
    "npv": "pred",
    "fpr": "gold",
    "fnr": "gold",
}
"""The margin that a rate of a class is given: see `Metric.given`."""

CLASS_DTYPES: Mapping[str, pl.DataType] = dict.fromkeys(
    ("support", "predicted", "hits", *CLASS_RANGES, "n"), pl.Float64()
)
"""The columns of classes that a metric may aggregate, besides `label`."""

COLUMNS = ("label", *CLASS_DTYPES, "n_null")


class TwoByTwo(NamedTuple):
    """The table of a class and the rest: its counts and margins, and products of these."""

    tp: pl.Expr
    fn: pl.Expr
    fp: pl.Expr
    tn: pl.Expr
    gold: pl.Expr
    pred: pl.Expr
    covariance: pl.Expr
    var_gold: pl.Expr
    var_pred: pl.Expr

    @classmethod
    def exact(cls, numbers: Numbers, t: pl.Expr, p: pl.Expr, c: pl.Expr, s: pl.Expr) -> TwoByTwo:
        """The table in units of a slice. Each product is rounded once."""
        product = numbers.product
        products = product(c, s) - product(t, p), product(t, s - t), product(p, s - p)
        return cls(
            c, t - c, p - c, s - t - p + c, t, p, *(number.to_float() for number in products)
        )

    @classmethod
    def of_floats(cls, column: Col) -> TwoByTwo:
        """The table of each class as floats. Products are of shares of the rows.

        They add up products without differences, so no digit is lost where one class has nearly
        all rows.
        """
        counts = [column(name) for name in ("hits", "fn", "fp", "tn", "support", "predicted")]
        tp, fn, fp, tn = (count / column("s") for count in counts[:4])
        products = [tp * tn - fn * fp, (tp + fn) * (fp + tn), (tp + fp) * (fn + tn)]
        return cls(*counts, *products)

    @classmethod
    def of_columns(cls, prefix: str) -> TwoByTwo:
        """The table that is in columns."""
        return cls(*(pl.col(f"{prefix}{name}") for name in cls._fields))

    def scores(self, zero_division: float | None) -> dict[str, pl.Expr]:
        """The scores of the class; 0/0 is `zero_division`, in rates of errors 1 minus it."""
        parts = {
            "precision": (self.tp, self.pred),
            "recall": (self.tp, self.gold),
            "specificity": (self.tn, self.fp + self.tn),
            "f1": (2 * self.tp, self.gold + self.pred),
            "informedness": (self.covariance, self.var_gold),
            "markedness": (self.covariance, self.var_pred),
            "npv": (self.tn, self.fn + self.tn),
            "jaccard": (self.tp, self.tp + self.fn + self.fp),
        }
        errors = {"fpr": (self.fp, self.fp + self.tn), "fnr": (self.fn, self.gold)}
        of_errors = None if zero_division is None else 1 - zero_division
        products = self.covariance, self.var_gold, self.var_pred
        return {
            **{name: divide(*ratio, zero_division) for name, ratio in parts.items()},
            **{name: divide(*ratio, of_errors) for name, ratio in errors.items()},
            "mcc": correlation(*products, zero_division),
        }


def class_scores(log: SlicedLog, classes: pl.LazyFrame) -> pl.LazyFrame:
    """Score each class against the rest of its slice."""
    t, p, c, s = pl.col("gold_n"), pl.col("pred_n"), pl.col("hit_n"), pl.col("s")
    n = count_of(log, s)
    scores = TwoByTwo.exact(log.numbers, t, p, c, s).scores(log.zero_division)
    unscored = log.unscored_as(pl.col("null_n").sum(), waiting_of(log))
    of_slice = {"s": rows_of(log), **unscored}
    return (
        classes.with_columns(log.within_slice(sum_).alias(name) for name, sum_ in of_slice.items())
        .filter(t + p > 0)
        .select(
            *log.slice,
            "label",
            support=count_of(log, t),
            predicted=count_of(log, p),
            hits=count_of(log, c),
            **{name: pl.when(n > 0).then(scores[name]) for name in CLASS_RANGES},
            n=n,
            **{name: log.numbers.as_count(pl.col(name)) for name in unscored},
        )
    )

"""Classes → sums → R_K, Gorodkin's form of the Matthews coefficient; the scores of each class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import add
from typing import Any, Literal, NamedTuple, TypeAlias

import polars as pl

from polars_mcc._counts.class_counts import sums_of_sets
from polars_mcc._counts.exact_sums import Numbers, Product, count_where
from polars_mcc._counts.sliced_log import SlicedLog


class Sums(NamedTuple):
    """The sums of a slice that R_K needs: rows, hits, gold labels and predicted labels.

    With one label a row, there are as many labels as rows. `gold_pred`, `gold_gold` and `pred_pred`
    are sums over the classes of products of their marginals.
    """

    s: pl.Expr
    c: pl.Expr
    t: pl.Expr
    p: pl.Expr
    gold_pred: Product
    gold_gold: Product
    pred_pred: Product

    def moments(self, numbers: Numbers) -> tuple[Product, Product, Product]:
        """The covariance of gold and pred, and the variances of gold and of pred, times s²."""
        c_s, t_s, p_s = (numbers.product(part, self.s) for part in (self.c, self.t, self.p))
        return c_s - self.gold_pred, t_s - self.gold_gold, p_s - self.pred_pred

    @classmethod
    def over_classes(
        cls, t: pl.Expr, p: pl.Expr, hits: pl.Expr, numbers: Numbers, rows: pl.Expr | None = None
    ) -> Sums:
        """Sum the marginals, a row per class. `rows` counts the rows if Σ t does not."""
        products = (numbers.product(*sides).sum() for sides in ((t, p), (t, t), (p, p)))
        return cls(t.sum() if rows is None else rows, hits, t.sum(), p.sum(), *products)

    def columns(self) -> dict[str, pl.Expr]:
        """The expressions to compute, by column name."""
        columns: dict[str, pl.Expr] = {}
        for name, number in self._asdict().items():
            columns |= number.columns(name) if isinstance(number, Product) else {name: number}
        return columns

    def from_columns(self, column: Callable[[str], pl.Expr]) -> Sums:
        """The same sums, read from their computed `columns`."""
        s, c, t, p = map(column, ("s", "c", "t", "p"))
        numbers = self._asdict().items()
        products = (n.from_columns(name, column) for name, n in numbers if isinstance(n, Product))
        return Sums(s, c, t, p, *products)


def rows_of(log: SlicedLog) -> pl.Expr:
    """Count the rows of a slice, from its classes."""
    return pl.col("row_n" if log.is_multilabel else "gold_n").sum()


def waiting_of(log: SlicedLog) -> pl.Expr:
    """Count the rows of a slice without a gold label, from its classes."""
    if log.is_multilabel:
        return pl.col("waiting_n").sum()
    return pl.when(pl.col("label").is_null()).then("null_n").otherwise(0).sum()


def summed(
    log: SlicedLog, classes: pl.LazyFrame, positive: pl.Expr | None = None
) -> tuple[pl.LazyFrame, Sums]:
    """Add up the classes of each slice, in its units. `positive` is true for the positive class.

    Returns a row per slice, and the expressions that read the sums from its columns. Besides the
    sums there are `null`, the rows not scored, and `waiting`, those of them without a gold label;
    the `unit`; and columns that only some metrics need. Polars drops unused columns from the plan,
    so they cost nothing.
    """
    t, p, c = pl.col("gold_n"), pl.col("pred_n"), pl.col("hit_n")
    sums = Sums.over_classes(t, p, c.sum(), log.numbers, rows_of(log))
    is_positive = pl.lit(value=False) if positive is None else positive
    slices = log.per_slice(
        log.with_total(classes),
        **sums.columns(),
        null=pl.col("null_n").sum(),
        waiting=waiting_of(log),
        unit=pl.col("unit").max(),
        **of_marginals(t, p, c, is_positive),
        **(sums_of_sets(log.numbers) if log.is_multilabel else {}),
    )
    return slices, sums.from_columns(pl.col)


def of_marginals(t: pl.Expr, p: pl.Expr, c: pl.Expr, is_positive: pl.Expr) -> dict[str, pl.Expr]:
    """The numbers of a slice, besides `Sums`, that some metrics need: a row per class."""
    return {
        "k": count_where((t > 0) | (p > 0)),
        "k_gold": count_where(t > 0),
        "k_pred": count_where(p > 0),
        "overlap": pl.min_horizontal(t, p).sum(),
        "first": t.max(),
        "second": t.top_k(2).min(),
        **{
            f"positive:{name}": pl.when(is_positive).then(units).otherwise(0).sum()
            for name, units in {"gold": t, "pred": p, "tp": c}.items()
        },
    }


def divide(part: pl.Expr, whole: pl.Expr, zero_division: float | None) -> pl.Expr:
    """Divide as floats; 0/0 is `zero_division`."""
    part, whole = part.cast(pl.Float64), whole.cast(pl.Float64)
    return except_where(whole == 0, part / whole, zero_division)


def correlation(
    cov: pl.Expr, var_gold: pl.Expr, var_pred: pl.Expr, zero_division: float | None
) -> pl.Expr:
    """Divide cov by √(var_gold · var_pred), floats; 0/0 is `zero_division`.

    The root is taken of the product: √(x·x) is exactly x, so a perfect prediction scores exactly
    1. The product of two roots may round to a neighbour of 1.
    """
    score = (cov / (var_gold * var_pred).sqrt()).clip(-1, 1)
    return except_where((var_gold <= 0) | (var_pred <= 0), score, zero_division)


def except_where(undefined: pl.Expr, number: Any, instead: float | None) -> pl.Expr:  # noqa: ANN401
    """A number, but `instead` where it is undefined: expressions, or columns of arrays."""
    if isinstance(number, pl.Expr):
        return pl.when(undefined).then(pl.lit(instead, pl.Float64)).otherwise(number)
    column: pl.Expr = number.except_where(undefined, instead)
    return column


def count_of(log: SlicedLog, units: pl.Expr) -> pl.Expr:
    """Convert a number of units of a slice to a count."""
    unit = pl.col("unit").fill_null(1.0)  # null without rows
    return log.numbers.as_count(log.numbers.from_units(units, unit))


Col: TypeAlias = Callable[[str], pl.Expr]
"""Gives a column by its name: `pl.col`, or `ArrayColumns` of arrays."""

CLASS_RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("precision", "recall", "specificity", "f1"), (0.0, 1.0)),
    **dict.fromkeys(("mcc", "informedness", "markedness"), (-1.0, 1.0)),
    **dict.fromkeys(("npv", "fpr", "fnr", "jaccard"), (0.0, 1.0)),
}
"""The scores of a class, each with its least and its largest value."""

RATES: Mapping[str, tuple[str, str]] = {
    "precision": ("tp", "fp"),
    "recall": ("tp", "fn"),
    "specificity": ("tn", "fp"),
    "npv": ("tn", "fn"),
    "fpr": ("fp", "tn"),
    "fnr": ("fn", "tp"),
    "fdr": ("fp", "tp"),
    "for": ("fn", "tn"),
    "f1": ("tp tp", "fn fp"),
    "jaccard": ("tp", "fn fp"),
}
"""Each rate is part / (part + rest): both are sums of cells of a table of two by two."""

ERRORS = {"fp", "fn", "fpr", "fnr", "fdr", "for", "lr_neg"}
"""Less is better. The rates are 1 minus others, so 0/0 is 1 - `zero_division`."""


def given_of(rate: str) -> Literal["gold", "pred"] | None:
    """The margin that a rate is given: see `Metric.given`."""
    cells = {*RATES[rate]}
    if cells in ({"tp", "fn"}, {"tn", "fp"}):
        return "gold"
    return "pred" if cells in ({"tp", "fp"}, {"tn", "fn"}) else None


def is_of_rest(rate: str) -> bool:
    """Whether a rate counts true negatives: then it is of the rest of a class."""
    return "tn" in RATES[rate]


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

    def rate(self, name: str, zero_division: float | None) -> pl.Expr:
        """One of `RATES`; 0/0 is `zero_division`, in rates of errors 1 minus it."""
        part, rest = map(self._total, RATES[name])
        if name in ERRORS and zero_division is not None:
            zero_division = 1 - zero_division
        return divide(part, part + rest, zero_division)

    def _total(self, cells: str) -> pl.Expr:
        total: pl.Expr = reduce(add, (getattr(self, cell) for cell in cells.split()))
        return total

    def scores(self, zero_division: float | None) -> dict[str, pl.Expr]:
        """The scores of the class; 0/0 is `zero_division`, in rates of errors 1 minus it."""
        products = self.covariance, self.var_gold, self.var_pred
        return {
            **{name: self.rate(name, zero_division) for name in RATES if name in CLASS_RANGES},
            "informedness": divide(self.covariance, self.var_gold, zero_division),
            "markedness": divide(self.covariance, self.var_pred, zero_division),
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

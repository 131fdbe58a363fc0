"""classes → scores: a row per slice, with the Matthews correlation coefficient."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import polars as pl

from polars_mcc._exact import Numbers, Product
from polars_mcc._log import Log
from polars_mcc._pairs import as_count

CLASS_COLUMNS = (
    "label",
    "support",
    "predicted",
    "hits",
    "precision",
    "recall",
    "specificity",
    "f1",
    "mcc",
    "informedness",
    "markedness",
    "n",
    "n_null",
)


class Sums(NamedTuple):
    """What R_K needs of a slice of s rows: hits, and sums over its classes of products."""

    s: pl.Expr
    c: pl.Expr
    tp: Product
    tt: Product
    pp: Product
    labels: tuple[pl.Expr, pl.Expr] | None = None
    """How many labels are gold, and predicted, if these are not one a row."""

    @property
    def t(self) -> pl.Expr:
        """How many labels are gold."""
        return self.s if self.labels is None else self.labels[0]

    @property
    def p(self) -> pl.Expr:
        """How many labels are predicted."""
        return self.s if self.labels is None else self.labels[1]

    def covariance(self, numbers: Numbers) -> Product:
        """Of gold and pred, times s²."""
        return numbers.product(self.c, self.s) - self.tp

    def variances(self, numbers: Numbers) -> tuple[Product, Product]:
        """Of gold and of pred, times s²."""
        products = numbers.product(self.t, self.s), numbers.product(self.p, self.s)
        return products[0] - self.tt, products[1] - self.pp

    @classmethod
    def over_classes(
        cls,
        t: pl.Expr,
        p: pl.Expr,
        hits: pl.Expr,
        numbers: Numbers,
        rows: pl.Expr | None = None,
    ) -> Sums:
        """The sums over columns of marginals, a row per class; `rows`, if these are not Σ t."""
        return cls(
            s=t.sum() if rows is None else rows,
            labels=None if rows is None else (t.sum(), p.sum()),
            c=hits,
            tp=numbers.product(t, p).sum(),
            tt=numbers.product(t, t).sum(),
            pp=numbers.product(p, p).sum(),
        )

    def columns(self) -> dict[str, pl.Expr]:
        """What to compute, by name."""
        s, c, tp, tt, pp, labels = self
        totals = {} if labels is None else dict(zip(("t", "p"), labels, strict=True))
        products = {**tp.columns("tp"), **tt.columns("tt"), **pp.columns("pp")}
        return {"s": s, "c": c, **products, **totals}

    def from_columns(self, column: Callable[[str], pl.Expr]) -> Sums:
        """The same sums, once their `columns` are there."""
        return Sums(
            s=column("s"),
            c=column("c"),
            tp=self.tp.from_columns("tp", column),
            tt=self.tt.from_columns("tt", column),
            pp=self.pp.from_columns("pp", column),
            labels=None if self.labels is None else (column("t"), column("p")),
        )


def sums_over_classes(log: Log) -> Sums:
    """The sums over the classes of a log."""
    t, p, hits = pl.col("gold_n"), pl.col("pred_n"), pl.col("hit_n").sum()
    rows = rows_of(log).sum() if log.multilabel else None
    return Sums.over_classes(t, p, hits, log.numbers, rows)


def rows_of(log: Log) -> pl.Expr:
    """The column of classes that adds up to the rows."""
    return pl.col("row_n" if log.multilabel else "gold_n")


def sums_of_slices(log: Log, classes: pl.LazyFrame) -> tuple[pl.LazyFrame, Sums]:
    """The sums over the classes of each slice, `null` and `unit`; and where the sums are."""
    sums = sums_over_classes(log)
    others = {"null": pl.col("null_n").sum(), "unit": pl.col("unit").max()}
    slices = log.per_slice(classes, **sums.columns(), **others)
    return slices, sums.from_columns(pl.col)


def scores(log: Log, classes: pl.LazyFrame, zero_division: float | None) -> pl.LazyFrame:
    """R_K of each slice (Gorodkin 2004), from sums over its classes."""
    slices, sums = sums_of_slices(log, classes)
    n = count_of(log, pl.col("s"))
    mcc = r_k(sums, log.numbers, zero_division)
    return slices.select(
        *log.slice,
        n=n,
        mcc=pl.when(n > 0).then(mcc),
        n_null=as_count(log, pl.col("null")),
    )


def class_scores(log: Log, classes: pl.LazyFrame, zero_division: float | None) -> pl.LazyFrame:
    """The scores of each class against the rest of its slice."""
    t, p, c, s = pl.col("gold_n"), pl.col("pred_n"), pl.col("hit_n"), pl.col("s")
    product = log.numbers.product

    def ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
        return divide(part.cast(pl.Float64), whole.cast(pl.Float64), zero_division)

    n = count_of(log, s)
    products = product(c, s) - product(t, p), product(t, s - t), product(p, s - p)
    cov, var_gold, var_pred = (product.to_float() for product in products)
    return (
        classes.with_columns(
            s=log.within_slice(rows_of(log).sum()), null=log.within_slice(pl.col("null_n").sum())
        )
        .filter(t + p > 0)
        .select(
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
            n_null=as_count(log, pl.col("null")),
        )
    )


def r_k(sums: Sums, numbers: Numbers, zero_division: float | None) -> pl.Expr:
    """R_K = (c·s - t·p) / √((s² - p·p)(s² - t·t)), Gorodkin 2004."""
    cov = sums.covariance(numbers).to_float()
    var_gold, var_pred = (variance.to_float() for variance in sums.variances(numbers))
    return correlation(cov, var_gold, var_pred, zero_division)


def divide(part: pl.Expr, whole: pl.Expr, zero_division: float | None) -> pl.Expr:
    """Divide two floats; 0/0 is `zero_division`."""
    return pl.when(whole == 0).then(pl.lit(zero_division, pl.Float64)).otherwise(part / whole)


def correlation(
    cov: pl.Expr, var_gold: pl.Expr, var_pred: pl.Expr, zero_division: float | None
) -> pl.Expr:
    """Divide cov by √(var_gold · var_pred), floats; 0/0 is `zero_division`.

    The square root of the product, not the product of the roots: √(x·x) is x, so that
    a perfect prediction scores 1 and not its neighbour.
    """
    return (
        pl.when((var_gold <= 0) | (var_pred <= 0))
        .then(pl.lit(zero_division, pl.Float64))
        .otherwise((cov / (var_gold * var_pred).sqrt()).clip(-1, 1))
    )


def count_of(log: Log, units: pl.Expr) -> pl.Expr:
    """A number of a slice's units, as a count."""
    unit = pl.col("unit").fill_null(1.0)  # of no rows
    return as_count(log, log.numbers.from_units(units, unit))

"""classes, and pairs where they must be → scores: several metrics of each slice, in one query.

A metric is a small expression over what a slice comes to: sums over its classes, each exact and
rounded once. What it sums up itself, over the columns of `classes` or over pairs, it asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from polars_mcc._classes import Nulls, is_scored, with_margins
from polars_mcc._exact import Numbers, Product
from polars_mcc._log import Log
from polars_mcc._pairs import as_count, count_where
from polars_mcc._scores import class_scores, correlation, count_of, divide, sums_over_classes

CLASS_DTYPES: Mapping[str, pl.DataType] = {
    name: pl.Float64()
    for name in (
        *("support", "predicted", "hits", "precision", "recall", "specificity", "f1", "mcc"),
        *("informedness", "markedness", "n"),
    )
}
"""The columns over which a metric may sum up classes; beside them there is `label`."""

PAIR_DTYPES: Mapping[str, pl.DataType] = {"n": pl.Float64(), "share": pl.Float64()}
"""Those over which it may sum up pairs; beside them there are `gold` and `pred`."""

_PAIR_SUMS = "cells"


@dataclass
class Slice:
    """What a metric is made of: columns of a slice, in its units, and sums that it asks for.

    `s` rows, `c` hits, `t` gold and `p` predicted labels (of one label a row, s); `n` is the
    weight of the rows, and `k` how many classes occur. Products are floats, each rounded once.
    Asking for a sum over classes or pairs, or for the positive class, leaves a note of it here.
    """

    zero_division: float | None
    class_sums: dict[str, pl.Expr] = field(default_factory=dict)
    pair_sums: dict[str, pl.Expr] = field(default_factory=dict)
    is_binary: bool = False

    s, c, t, p = pl.col("s"), pl.col("c"), pl.col("t"), pl.col("p")
    n, k = pl.col("total"), pl.col("k")
    k_gold, k_pred = pl.col("k_gold"), pl.col("k_pred")
    covariance, var_gold, var_pred = pl.col("cov"), pl.col("var_gold"), pl.col("var_pred")
    rows_squared, hits_times_rows = pl.col("ss"), pl.col("cs")
    gold_times_pred = pl.col("t_p")
    apart, most = pl.col("apart"), pl.col("most")
    first, second = pl.col("first"), pl.col("second")
    unseen = pl.col("unseen")

    def over_classes(self, aggregation: pl.Expr) -> pl.Expr:
        """An aggregation of the columns of `classes`, floats, over those of a slice."""
        return _asked_for(self.class_sums, "class", aggregation)

    def over_pairs(self, aggregation: pl.Expr) -> pl.Expr:
        """An aggregation of the columns of `_over_pairs` over those of a slice."""
        return _asked_for(self.pair_sums, "pair", aggregation)

    def mean(self, column: str, weight: str | None = None) -> pl.Expr:
        """The mean of a column of `classes`, of those that have one."""
        value = pl.col(column)
        factor = pl.col(weight) if weight is not None else pl.lit(1.0)
        whole = self.over_classes(pl.when(value.is_not_null()).then(factor).sum())
        return self.ratio(self.over_classes((value * factor).sum()), whole.fill_null(0))

    def least(self, column: str) -> pl.Expr:
        """The least of a column of `classes`; of no class, `zero_division`."""
        value = self.over_classes(pl.col(column).min())
        return value if self.zero_division is None else value.fill_null(self.zero_division)

    def ratio(self, part: pl.Expr, whole: pl.Expr) -> pl.Expr:
        """A quotient, where 0/0 is `zero_division`."""
        return divide(part.cast(pl.Float64), whole.cast(pl.Float64), self.zero_division)

    def correlation(self, cov: pl.Expr, var_gold: pl.Expr, var_pred: pl.Expr) -> pl.Expr:
        """A covariance as a correlation, where 0/0 is `zero_division`."""
        return correlation(cov, var_gold, var_pred, self.zero_division)

    def _of_positive(self, column: str) -> pl.Expr:
        self.is_binary = True
        return pl.col(f"positive:{column}")

    @property
    def tp(self) -> pl.Expr:
        """True positives."""
        return self._of_positive("hits")

    @property
    def fp(self) -> pl.Expr:
        """False positives."""
        return self._of_positive("predicted") - self.tp

    @property
    def fn(self) -> pl.Expr:
        """False negatives."""
        return self._of_positive("support") - self.tp

    @property
    def tn(self) -> pl.Expr:
        """True negatives."""
        return self.s - self.tp - self.fp - self.fn

    def positive(self, product: str) -> pl.Expr:
        """`cov`, `var_gold`, `var_pred` or `most`, of the positive class and the rest."""
        return self._of_positive(product)


@dataclass(frozen=True)
class Metric:
    """A score of slices, and what is to be known of it."""

    name: str
    value: Callable[[Slice], pl.Expr]
    formula: str
    source: str
    range: str
    undefined: str = ""
    peers: tuple[str, ...] = ()
    is_count: bool = False
    multilabel: bool = False
    needs_labels: bool = False

    def asks_for(self) -> Slice:
        """What it takes of a slice."""
        of = Slice(None)
        self.value(of)
        return of


def measure(
    log: Log,
    classes: pl.LazyFrame,
    pairs: pl.LazyFrame | None,
    metrics: Sequence[Metric],
    *,
    nulls: Nulls,
    zero_division: float | None,
    positive: pl.Expr | None,
) -> pl.LazyFrame:
    """The metrics of each slice, with its `n` and `n_null`.

    `positive` tells whether a class is the positive one. Metrics that ask for pairs need these,
    and classes that are those of the pairs.
    """
    of = Slice(zero_division)
    values = {metric.name: (metric.value(of), metric.is_count) for metric in metrics}
    if of.class_sums or of.pair_sums:
        classes = classes.cache()
    slices, floats = _summed(log, classes, positive if of.is_binary else None)
    if of.class_sums:
        rows = class_scores(log, classes, zero_division).with_columns(
            pl.col("support", "predicted", "hits", "n").cast(pl.Float64)
        )
        slices = log.beside(slices, log.per_slice(rows, **of.class_sums))
    if of.pair_sums and pairs is not None:
        slices = log.beside(slices, _over_pairs(log, classes, pairs, nulls, of.pair_sums))
    n = count_of(log, of.s)
    if log.multilabel:  # Products of these are taken as well.
        n = pl.when(count_of(log, pl.max_horizontal(of.t, of.p)) >= 0).then(n)
    return slices.with_columns(**floats).select(
        *log.slice,
        n=n,
        **{
            name: count_of(log, value) if is_count else pl.when(n > 0).then(value)
            for name, (value, is_count) in values.items()
        },
        n_null=as_count(log, pl.col("null")),
    )


def _asked_for(sums: dict[str, pl.Expr], kind: str, aggregation: pl.Expr) -> pl.Expr:
    name = f"{kind}:{len(sums)}"
    sums[name] = aggregation
    return pl.col(name)


def _summed(
    log: Log, classes: pl.LazyFrame, positive: pl.Expr | None
) -> tuple[pl.LazyFrame, dict[str, pl.Expr]]:
    """The sums over the classes of each slice, and the floats that they come to.

    What no metric takes is not computed: Polars drops it from the plan.
    """
    numbers = log.numbers
    t, p, hits = pl.col("gold_n"), pl.col("pred_n"), pl.col("hit_n")
    sums = sums_over_classes(log)
    of_positive: dict[str, pl.Expr] = {}
    if positive is not None:
        for name, units in {"support": t, "predicted": p, "hits": hits}.items():
            of_positive[f"positive:{name}"] = pl.when(positive).then(units).otherwise(0).sum()
    slices = log.per_slice(
        log.with_total(classes),
        **sums.columns(),
        null=pl.col("null_n").sum(),
        unit=pl.col("unit").max(),
        k=count_where((t > 0) | (p > 0)),
        k_gold=count_where(t > 0),
        k_pred=count_where(p > 0),
        overlap=pl.min_horizontal(t, p).sum(),
        first=t.max(),
        second=t.top_k(2).min(),
        **of_positive,
    )
    sums = sums.from_columns(pl.col)
    s, t_total, p_total = sums.s, sums.t, sums.p
    var_gold, var_pred = sums.variances(numbers)
    products = {
        "cov": sums.covariance(numbers),
        "var_gold": var_gold,
        "var_pred": var_pred,
        "ss": numbers.product(s, s),
        "cs": numbers.product(sums.c, s),
        "t_p": numbers.product(t_total, p_total),
        "apart": numbers.product(s, s) - sums.tp,
        "most": numbers.product(pl.col("overlap"), s) - sums.tp,
    }
    if of_positive:
        of_gold, of_pred, both = map(pl.col, of_positive)
        guessed = numbers.product(of_gold, of_pred)
        products |= {
            "positive:cov": numbers.product(both, s) - guessed,
            "positive:var_gold": numbers.product(of_gold, s - of_gold),
            "positive:var_pred": numbers.product(of_pred, s - of_pred),
            "positive:most": numbers.product(pl.min_horizontal(of_gold, of_pred), s) - guessed,
        }
    return slices, {
        **({} if log.multilabel else {"t": t_total, "p": p_total}),
        "total": numbers.from_units(s, pl.col("unit")).cast(pl.Float64),
        **{name: product.to_float() for name, product in products.items()},
    }


def _over_pairs(
    log: Log,
    classes: pl.LazyFrame,
    pairs: pl.LazyFrame,
    nulls: Nulls,
    sums: Mapping[str, pl.Expr],
) -> pl.LazyFrame:
    """Sums over the pairs of each slice: of their shares, and of what chance would make them.

    The columns are `gold`, `pred`, and floats, exact and rounded once: `n`, `share` = n/s,
    `expected` = t·p/s², and `excess`, their difference. `unseen` is what is expected of the
    pairs that do not occur.
    """
    numbers: Numbers = log.numbers
    n, t, p, s = (pl.col(name) for name in ("units", "gold_t", "pred_p", "s"))
    scored = pairs.filter(is_scored(pl.col("gold"), pl.col("pred"), nulls) & (pl.col("n") > 0))
    cells = with_margins(log, scored, classes)
    cells = cells.with_columns(s=log.within_slice(n.sum()))
    squared, guessed = numbers.product(s, s), numbers.product(t, p)
    excess = numbers.product(n, s) - guessed

    def of_square(product: Product) -> pl.Expr:
        return product.to_float() / squared.to_float()

    rows = cells.select(
        *log.slice,
        "gold",
        "pred",
        "s",
        **guessed.columns(_PAIR_SUMS),
        n=pl.col("n").cast(pl.Float64),
        share=n.cast(pl.Float64) / s.cast(pl.Float64),
        expected=of_square(guessed),
        excess=of_square(excess),
    )
    seen = guessed.from_columns(_PAIR_SUMS, pl.col).sum()
    slices = log.per_slice(rows, **sums, s=s.max(), **seen.columns(_PAIR_SUMS))
    left = numbers.product(s, s) - seen.from_columns(_PAIR_SUMS, pl.col)
    return slices.select(*log.slice, *sums, unseen=of_square(left))

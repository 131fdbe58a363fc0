"""The type of a metric: its name, formula and source, and an expression over sums of a slice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import polars as pl

from polars_mcc._scores.r_k import correlation, divide

CLASS_DTYPES: Mapping[str, pl.DataType] = {
    name: pl.Float64()
    for name in (
        *("support", "predicted", "hits", "precision", "recall", "specificity", "f1", "mcc"),
        *("informedness", "markedness", "n"),
    )
}
"""The columns of classes that a metric may aggregate, besides `label`."""

CLASS_RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("precision", "recall", "specificity", "f1"), (0.0, 1.0)),
    **dict.fromkeys(("mcc", "informedness", "markedness"), (-1.0, 1.0)),
}
"""The scores of a class, each with its least and its largest value."""

CLASS_GIVEN: Mapping[str, Literal["gold", "pred"]] = {
    "precision": "pred",
    "recall": "gold",
    "specificity": "gold",
}
"""The margin that a rate of a class is given: see `Metric.given`."""

PAIR_DTYPES: Mapping[str, pl.DataType] = {"n": pl.Float64(), "share": pl.Float64()}
"""The columns of pairs that a metric may aggregate, besides `gold` and `pred`."""


Needed: TypeAlias = Literal["any", "two gold", "all gold", "all"]
"""Classes of a slice: any, two gold classes, all gold classes (two or more), or all of them as gold
and as predicted."""


@dataclass(frozen=True)
class Range:
    """The least and the largest value of a metric: numbers, or expressions over `Terms`."""

    low: float | pl.Expr
    high: float | pl.Expr
    text: str = ""

    def __str__(self) -> str:
        """The text that `metrics()` shows."""
        return self.text or f"[{self.low:g}, {self.high:g}]"


@dataclass(frozen=True)
class Terms:
    """The columns of a slice that metrics are made of, in the units of the slice.

    `s` counts rows, `c` hits, `t` gold labels and `p` predicted labels (with one label a row, both
    are s). `n` is the weight of the rows, and `k` the number of classes that occur. Products are
    floats, each rounded once. `tp`, `fp`, `fn` and `tn` count the positive class.
    `terms["name"]` is a sum that the metric itself defines.
    """

    metric: Metric
    zero_division: float | None

    s, c, t, p = pl.col("s"), pl.col("c"), pl.col("t"), pl.col("p")
    n, k = pl.col("total"), pl.col("k")
    k_gold, k_pred = pl.col("k_gold"), pl.col("k_pred")
    covariance, var_gold, var_pred = pl.col("cov"), pl.col("var_gold"), pl.col("var_pred")
    rows_squared, hits_times_rows = pl.col("ss"), pl.col("cs")
    gold_times_pred = pl.col("t_p")
    apart, most = pl.col("apart"), pl.col("most")
    first, second = pl.col("first"), pl.col("second")
    unseen = pl.col("unseen")
    tp = pl.col("positive:hits")
    gold_positive, pred_positive = pl.col("positive:support"), pl.col("positive:predicted")

    def __getitem__(self, name: str) -> pl.Expr:
        """A sum over classes or pairs that the metric defines."""
        return pl.col(sum_name(self.metric.name, name))

    @property
    def fp(self) -> pl.Expr:
        """Predicted positive, but gold negative."""
        return self.pred_positive - self.tp

    @property
    def fn(self) -> pl.Expr:
        """Predicted negative, but gold positive."""
        return self.gold_positive - self.tp

    @property
    def tn(self) -> pl.Expr:
        """Gold and predicted negative."""
        return self.s - self.tp - self.fp - self.fn

    def positive(self, product: str) -> pl.Expr:
        """`cov`, `var_gold`, `var_pred` or `most`, of the positive class and the rest."""
        return pl.col(f"positive:{product}")

    def ratio(self, part: pl.Expr, whole: pl.Expr) -> pl.Expr:
        """Divide; 0/0 is `zero_division`."""
        return divide(part.cast(pl.Float64), whole.cast(pl.Float64), self.zero_division)

    def correlation(self, cov: pl.Expr, var_gold: pl.Expr, var_pred: pl.Expr) -> pl.Expr:
        """Turn a covariance into a correlation; 0/0 is `zero_division`."""
        return correlation(cov, var_gold, var_pred, self.zero_division)


_SUPPORT, _PREDICTED, _HITS = map(pl.col, ("support", "predicted", "hits"))
_FN, _FP, _TN = (pl.col(name) / pl.col("s") for name in ("fn", "fp", "tn"))
_TP = _HITS / pl.col("s")
_POSITIVE_CLASS = pl.col("is_positive")


class OverClasses(Terms):
    """`Terms` as float aggregations over the classes of a slice, which have derivatives.

    The columns are those of `CLASS_DTYPES`; `fn`, `fp` and `tn` of each class against the rest;
    `s`, `total`, `k`, `k_gold`, `k_pred` of the slice; `is_positive`, for the positive class;
    `is_most`, for each class that is gold most often; and `n_most`, the number of these classes.
    Products are of shares of the rows. They add up products without differences, so no digit is
    lost where one class has nearly all rows.
    """

    t, p, c = Terms.s, Terms.s, _HITS.sum()
    rows_squared, gold_times_pred, hits_times_rows = pl.lit(1.0), pl.lit(1.0), _TP.sum()
    covariance = (_TP * _TN - _FN * _FP).sum()
    var_gold = ((_TP + _FN) * (_FP + _TN)).sum()
    var_pred = ((_TP + _FP) * (_FN + _TN)).sum()
    apart = covariance + _FN.sum()
    most = covariance + pl.min_horizontal(_FN, _FP).sum()
    first = _SUPPORT.max()
    second = (
        pl.when(pl.col("n_most") > 1)
        .then(first)
        .otherwise(_SUPPORT.filter(~pl.col("is_most")).max())
    )
    gold_positive, pred_positive, tp, fp, fn, _tn = (
        pl.col(name).filter(_POSITIVE_CLASS).sum()
        for name in ("support", "predicted", "hits", "fp", "fn", "tn")
    )
    tn = pl.when(_POSITIVE_CLASS.sum() > 0).then(_tn).otherwise(Terms.s)

    def __getitem__(self, name: str) -> pl.Expr:
        """A sum over classes that the metric defines."""
        return self.metric.classes[name]

    def positive(self, product: str) -> pl.Expr:
        """The product of this name, of the positive class and the rest."""
        tp, fp, fn, tn = (count / Terms.s for count in (self.tp, self.fp, self.fn, self.tn))
        cov = tp * tn - fp * fn
        products = {
            "cov": cov,
            "var_gold": (tp + fn) * (fp + tn),
            "var_pred": (tp + fp) * (fn + tn),
            "most": cov + pl.min_horizontal(fp, fn),
        }
        return products[product]


class OverPairs(Terms):
    """`Terms` as aggregations over the pairs of a slice, for metrics of pairs."""

    unseen = 1 - pl.col("expected").sum()

    def __getitem__(self, name: str) -> pl.Expr:
        """A sum over pairs that the metric defines."""
        return self.metric.pairs[name]


def has_two_gold(terms: Terms) -> pl.Expr:
    """Whether there are two gold classes; in lists, a label that some rows have and others lack."""
    return terms.var_gold > 0


def has_both(terms: Terms) -> pl.Expr:
    """Whether the positive class and the rest are gold."""
    return terms.positive("var_gold") > 0


OF_GOLD = ({"tp", "fn"}, {"tn", "fp"})
"""The counts that make up the gold rows of the positive class, and of the rest."""


def has_rows(part: str, rest: str) -> Callable[[Terms], pl.Expr]:
    """Whether the rate part / (part + rest) has the gold rows that it needs.

    A rate of gold rows needs them. A rate of predicted rows needs them or predictions.
    """
    is_negative = "tn" in {part, rest}
    is_of_gold = {part, rest} in OF_GOLD

    def has(terms: Terms) -> pl.Expr:
        gold, pred = terms.gold_positive, terms.pred_positive
        gold, pred = (terms.s - gold, terms.s - pred) if is_negative else (gold, pred)
        return gold > 0 if is_of_gold else (gold > 0) | (pred > 0)

    return has


@dataclass(frozen=True)
class Metric:
    """A score of slices: its expression, what `metrics()` shows, and what intervals need."""

    name: str
    value: Callable[[Terms], pl.Expr]
    formula: str
    source: str
    range: Range | None
    undefined: str = ""  # where it is 0/0
    peers: tuple[str, ...] = ()  # functions of other libraries that agree
    classes: Mapping[str, pl.Expr] = field(default_factory=dict)
    """Aggregations over the columns of `classes` of a slice, by name."""
    pairs: Mapping[str, pl.Expr] = field(default_factory=dict)
    """Aggregations over the columns of the pairs of a slice, by name."""
    is_of_positive: bool = False  # whether it scores one class against the rest
    is_count: bool = False
    less_is_better: bool = False
    given: Literal["gold", "pred"] | None = None
    """The margin that a rate is given: it is a share of the rows with a gold or a predicted label.
    """
    of_rest: bool = False
    """Whether these rows have another label than the positive one."""
    classes_needed: Needed = "any"
    """The classes that a slice must have to be compared with another. A mean over the classes of a
    slice is another score without one of them."""
    has_gold: Callable[[Terms], pl.Expr] | None = None
    """Whether a slice has the gold rows that the metric needs; None: it needs none but scored rows.
    """
    no_interval: str = ""
    """Why the metric has no interval and no test; "" if it has."""
    multilabel: bool = False  # whether it is defined for rows with lists of labels

    @property
    def origin(self) -> Literal["positive", "pairs", "classes"]:
        """The counts that the metric needs."""
        if self.is_of_positive:
            return "positive"
        return "pairs" if self.pairs else "classes"

    @property
    def is_of_two(self) -> bool:
        """Whether the metric needs two gold classes, as MCC does."""
        return self.has_gold in {has_two_gold, has_both}

    @property
    def needs_labels(self) -> bool:
        """Whether the metric needs the labels, not just which labels are equal."""
        sums = (*self.classes.values(), *self.pairs.values())
        named = {name for sum_ in sums for name in sum_.meta.root_names()}
        return self.is_of_positive or not named.isdisjoint({"label", "gold", "pred"})

    @property
    def class_sums(self) -> dict[str, pl.Expr]:
        """The sums over classes that the metric defines, by column name."""
        return {sum_name(self.name, name): sum_ for name, sum_ in self.classes.items()}

    @property
    def pair_sums(self) -> dict[str, pl.Expr]:
        """The sums over pairs that the metric defines, by column name."""
        return {sum_name(self.name, name): sum_ for name, sum_ in self.pairs.items()}


FACT = "polars_mcc:"
"""Begins the names of facts, which no answer shows."""


def fact(name: str, value: Callable[[Terms], pl.Expr]) -> Metric:
    """A number about each slice, computed like a metric, that no answer shows."""
    return Metric(
        name,
        lambda terms: value(terms).cast(pl.Float64),
        "",
        "",
        None,
        no_interval="it is no score",
    )


def defined(metric: Metric) -> Metric:
    """The fact whether a metric is defined: 1, or 0 where it is 0/0.

    It is null where the gold rows that the metric needs are missing: no model could change that.
    """

    def value(terms: Terms) -> pl.Expr:
        score = metric.value(replace(terms, metric=metric, zero_division=None))
        is_defined = score.cast(pl.Float64).is_finite().fill_null(value=False)
        has_gold = is_defined if metric.has_gold is None else metric.has_gold(terms)
        return pl.when(has_gold).then(is_defined.cast(pl.Float64))

    return fact(f"{FACT}defined {metric.name}", value)


def sum_name(metric: str, name: str) -> str:
    """The column name of a sum that a metric defines."""
    return f"sum:{metric}:{name}"

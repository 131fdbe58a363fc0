"""The type of a metric: its name, formula and source, and an expression over sums of a slice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import polars as pl

from polars_mcc._base.allowed_values import Role
from polars_mcc._counts.sliced_log import OfRow
from polars_mcc._metrics.mcc_and_one_vs_rest import (
    Col,
    TwoByTwo,
    correlation,
    divide,
    given_of,
    is_of_rest,
)
from polars_mcc._metrics.score_levels_and_bins import BINNING, Binning

if TYPE_CHECKING:
    from typing import Self

    from polars_mcc._frame.roles import Roles
    from polars_mcc._metrics.derivatives import ArrayColumns

Sum: TypeAlias = Callable[[Col], pl.Expr]
"""An aggregation, as a function of columns. A function `lambda col: col("f1").min()` has a
derivative; one that returns an expression of its own has none."""

PAIR_DTYPES: Mapping[str, pl.DataType] = {"n": pl.Float64(), "share": pl.Float64()}
"""The columns of pairs that a metric may aggregate, besides `gold` and `pred`."""

Needed: TypeAlias = Literal["any", "two gold", "all gold", "all"]
"""Classes of a slice: any, two gold classes, all gold classes (two or more), or all of them as gold
and as predicted."""


@dataclass(frozen=True)
class Range:
    """The least and the largest value of a metric: numbers, or functions of `Terms`."""

    low: float | Callable[[Terms], pl.Expr]
    high: float | Callable[[Terms], pl.Expr]
    text: str = ""

    @property
    def numbers(self) -> tuple[float | None, float | None]:
        """Both ends; None for an end that depends on the slice."""
        low, high = (None if callable(end) else end for end in (self.low, self.high))
        return low, high

    def __str__(self) -> str:
        """The text that `metrics()` shows."""
        return self.text or f"[{self.low:g}, {self.high:g}]"


class Terms:
    """The numbers of a slice that metrics are made of: columns, in the units of the slice.

    A metric is one formula of terms. These terms are expressions, so Polars computes the metric
    exactly. The terms of `OverClasses` and `OverPairs` are arrays with derivatives, so the same
    formula gives the interval.

    `s` counts rows, `c` hits, `t` gold labels and `p` predicted labels (with one label a row, both
    are s), and `tn` the true negatives of all classes. `n` is the weight of the rows, and `k` the
    number of classes that occur. Products are floats, each rounded once. `positive` is the table of
    the positive class and the rest, and `total` adds up the tables of all classes. Of a log of
    scores, there are `s`, the gold rows of `positive`, and `concordant` (see `_over_scores`).
    `terms["name"]` is a sum that the metric itself defines.
    """

    s, c, t, p = pl.col("s"), pl.col("c"), pl.col("t"), pl.col("p")
    n, k, tn = pl.col("total"), pl.col("k"), pl.col("tn")
    k_gold, k_pred = pl.col("k_gold"), pl.col("k_pred")
    covariance, var_gold, var_pred = pl.col("cov"), pl.col("var_gold"), pl.col("var_pred")
    rows_squared, hits_times_rows = pl.col("ss"), pl.col("cs")
    gold_times_pred = pl.col("t_p")
    chance_disagreement, max_covariance = pl.col("apart"), pl.col("most")
    concordant = pl.col("concordant")
    first, second = pl.col("first"), pl.col("second")
    unseen = pl.col("unseen")
    positive = TwoByTwo.of_columns("positive:")
    positive_most = pl.col("positive:most")

    column: Col = staticmethod(pl.col)
    sums: Mapping[str, pl.Expr]
    zero_division: float | None

    def of(self, metric: Metric, zero_division: float | None) -> Self:
        """The same terms, with the sums of a metric, and a number in place of 0/0."""
        terms = copy(self)
        terms.sums, terms.zero_division = self.sums_of(metric), zero_division
        return terms

    def sums_of(self, metric: Metric) -> Mapping[str, pl.Expr]:
        """The sums over classes or pairs that a metric defines, by name."""
        names = (*metric.classes, *metric.pairs, *metric.levels, *metric.bins)
        return {name: self.column(sum_name(metric.name, name)) for name in names}

    @classmethod
    def in_columns(cls, column: Col) -> Self:
        """The same terms, in columns of another kind, such as the fields of a struct."""

        def moved(term: pl.Expr) -> pl.Expr:
            return column(term.meta.output_name())

        terms = cls()
        terms.column = column
        for name, term in vars(Terms).items():
            if isinstance(term, pl.Expr):
                setattr(terms, name, moved(term))
        terms.positive = TwoByTwo(*map(moved, cls.positive))
        return terms

    @property
    def total(self) -> TwoByTwo:
        """The sum of the tables of each class and the rest."""
        cells = self.c, self.t - self.c, self.p - self.c, self.tn
        return TwoByTwo(*cells, self.t, self.p, self.covariance, self.var_gold, self.var_pred)

    def of_errors(self) -> Self:
        """The same terms for a rate that is 1 minus another: 0/0 is 1 - `zero_division`."""
        terms, of_0 = copy(self), self.zero_division
        terms.zero_division = None if of_0 is None else 1 - of_0
        return terms

    def __getitem__(self, name: str) -> pl.Expr:
        """A sum over classes or pairs that the metric defines."""
        return self.sums[name]

    def ratio(self, part: pl.Expr, whole: pl.Expr) -> pl.Expr:
        """Divide; 0/0 is `zero_division`."""
        return divide(part, whole, self.zero_division)

    def correlation(self, cov: pl.Expr, var_gold: pl.Expr, var_pred: pl.Expr) -> pl.Expr:
        """Turn a covariance into a correlation; 0/0 is `zero_division`."""
        return correlation(cov, var_gold, var_pred, self.zero_division)


class OverPairs(Terms):
    """Terms that have derivatives: sums over the pairs of slices, as arrays."""

    def __init__(self, column: ArrayColumns) -> None:
        """Take the columns of pairs."""
        self._column = column

    def sums_of(self, metric: Metric) -> Mapping[str, pl.Expr]:
        """The sums that a metric defines, over rows."""
        sums = {**metric.classes, **metric.pairs}
        return {name: sum_(self._column) for name, sum_ in sums.items()}


class OverClasses(OverPairs):
    """Terms that have derivatives: float sums over the classes of slices, as arrays.

    The columns are those of `CLASS_DTYPES`; `fn`, `fp` and `tn` of each class against the rest; `s`
    and `k` of the slice; and `is_positive`, true for the positive class. Products are of shares of
    the rows. Terms that only metrics without an interval need are not here.
    """

    def __init__(self, column: ArrayColumns) -> None:
        """Take the columns of classes."""
        super().__init__(column)
        self.s = self.t = self.p = self.n = column("s")
        self.c, self.tn, self.k = column("hits").sum(), column("tn").sum(), column("k")
        unit: Any = column.number(1.0, is_total=True)
        self.rows_squared = self.gold_times_pred = unit

    # Most metrics need few of these.
    _each = cached_property(lambda self: TwoByTwo.of_floats(self._column))
    covariance: Any = cached_property(lambda self: self._each.covariance.sum())
    var_gold: Any = cached_property(lambda self: self._each.var_gold.sum())
    var_pred: Any = cached_property(lambda self: self._each.var_pred.sum())
    hits_times_rows: Any = cached_property(lambda self: (self._column("hits") / self.s).sum())
    chance_disagreement: Any = cached_property(
        lambda self: self.covariance + (self._column("fn") / self.s).sum()
    )

    @cached_property
    def positive(self) -> TwoByTwo:  # type: ignore[override]
        """The table of the positive class and the rest."""
        is_positive = self._column("is_positive")

        def of_positive(name: str) -> pl.Expr:
            if name == "s":
                return self.s
            total: pl.Expr = self._column(name).filter(is_positive).sum()
            # Without the positive class, all rows are negative.
            return total + self.s * (1 - is_positive.sum()) if name == "tn" else total

        return TwoByTwo.of_floats(of_positive)


Value: TypeAlias = Callable[[Terms], pl.Expr]

RATIO = Range(0, 1)
SIGNED = Range(-1, 1)
KINK = "{} changes at random between samples, so its error is not normal"
ALTMAN = "Altman and Bland 1994, BMJ 308 and 309"
DAVENPORT = "Davenport and El-Sanhury 1991, Educational and Psychological Measurement 51"
FAWCETT = "Fawcett 2006, Pattern Recognition Letters 27"
JACCARD = "Jaccard 1912, New Phytologist 11"
RIJSBERGEN = "van Rijsbergen 1979, Information Retrieval"


def has_two_gold(terms: Terms) -> pl.Expr:
    """Whether there are two gold classes; in lists, a label that some rows have and others lack."""
    return terms.var_gold > 0


def has_both(terms: Terms) -> pl.Expr:
    """Whether the positive class and the rest are gold."""
    return terms.positive.var_gold > 0


def has_rows(rate: str) -> Value:
    """Whether a rate of the positive class has the gold rows that it needs: see `RATES`.

    A rate of gold rows needs them. A rate of predicted rows needs them or predictions.
    """

    def has(terms: Terms) -> pl.Expr:
        gold, pred = terms.positive.gold, terms.positive.pred
        gold, pred = (terms.s - gold, terms.s - pred) if is_of_rest(rate) else (gold, pred)
        return gold > 0 if given_of(rate) == "gold" else (gold > 0) | (pred > 0)

    return has


@dataclass(frozen=True, eq=False)
class Metric:
    """A score of slices: its expression, what `metrics()` shows, and what intervals need."""

    name: str
    value: Value
    formula: str
    source: str
    range: Range | None
    undefined: str = ""  # where it is 0/0
    peers: tuple[str, ...] = ()  # functions of other libraries that agree
    classes: Mapping[str, Sum] = field(default_factory=dict)
    """Aggregations over the columns of `classes` of a slice, by name."""
    pairs: Mapping[str, Sum] = field(default_factory=dict)
    """Aggregations over the columns of the pairs of a slice, by name."""
    levels: Mapping[str, Sum] = field(default_factory=dict)
    """Aggregations over the columns of the score levels of a slice, by name."""
    bins: Mapping[str, Sum] = field(default_factory=dict)
    """Aggregations over the columns of bins of scores of a slice, by name."""
    binning: Binning = BINNING
    of_row: OfRow | None = None
    """With a score per class: makes one score of the scores of a row."""
    needs_score_per_class: bool = False
    mean_over: Literal["classes", "gold rows", "pairs of classes"] = (
        "classes"  # of scores per class
    )
    influence: str = ""
    """The name of the metric of scores whose rows have the same influence; "": its own."""
    is_of_scores: bool = False  # whether it needs scores, not predicted labels
    are_probabilities: bool = False  # whether these scores must be probabilities
    is_of_positive: bool = False  # whether it scores one class against the rest
    is_count: bool = False
    less_is_better: bool | None = False
    """None: neither is better, as of a share of predictions."""
    given: Literal["gold", "pred"] | None = None
    """The margin that a rate is given: it is a share of the rows with one gold or pred label."""
    is_of_rows: bool = False  # whether it is a mean over all rows
    is_log: bool = False  # whether it is a ratio whose interval and tests are of its logarithm
    is_mean: bool = False
    """Whether it is a mean of numbers of rows, which may be equal for all rows of a slice."""
    of_rest: bool = False  # whether these rows have another label than the positive one
    classes_needed: Needed = "any"
    """The classes that a slice must have to be compared with another. A mean over the classes of a
    slice is another score without one of them."""
    has_gold: Value | None = None
    """Whether a slice has the gold rows that the metric needs; None: any scored row will do."""
    no_interval: str = ""  # why the metric has no interval and no test; "" if it has
    no_interval_at: float | None = None  # where it has none: one row moves the score far away
    multilabel: bool = False  # whether it is defined for rows with lists of labels
    is_filled: bool = True
    """Whether `zero_division` stands for scores of classes that are 0/0; else they are null."""
    is_of_labelled: bool = False  # whether it is of labelled rows, also if they stand for others
    named: Collection[object] = ()  # the labels in its table of numbers by label
    of_labels: Callable[[pl.DataType], Metric] | None = None
    """Makes the metric for labels of a dtype; None: it is one metric for all dtypes."""

    def alias(self, name: str) -> Metric:
        """The same metric under another name."""
        return replace(self, name=name)

    def bound(self, labels: pl.DataType) -> Metric:
        """The metric for labels of a dtype."""
        return self if self.of_labels is None else self.of_labels(labels).alias(self.name)

    @property
    def origin(self) -> Literal["positive", "pairs", "classes", "scores"]:
        """The counts that the metric needs."""
        if self.is_of_scores:
            return "scores"
        if self.is_of_positive:
            return "positive"
        return "pairs" if self.pairs else "classes"

    @property
    def role(self) -> Role:
        """Whether it scores the predicted labels of the models, or their scores."""
        return "score" if self.is_of_scores else "pred"

    def of_row_in(self, roles: Roles) -> OfRow | None:
        """What makes one score of the scores of a row, or None; an error if it needs several."""
        if self.needs_score_per_class:
            roles.check_score_per_class()
        return self.of_row if roles.score_labels else None

    @property
    def is_share(self) -> bool:
        """Whether it is a proportion of rows, all or of one label: its interval is Wilson's."""
        return self.is_of_rows or self.is_count or self.given is not None

    @property
    def is_expression(self) -> bool:
        """Whether it is an expression of a user, with columns of its own, and no function."""
        sums = (*self.classes.values(), *self.pairs.values())
        return any(sum_(pl.element().struct.field).meta.root_names() for sum_ in sums)

    @property
    def needs_pairs(self) -> bool:
        """Whether the metric needs pairs: classes are not enough."""
        return bool(self.pairs) or self.is_of_scores

    @property
    def is_of_two(self) -> bool:
        """Whether the metric needs two gold classes, as MCC does."""
        return self.has_gold in {has_two_gold, has_both}

    @property
    def needs_all_classes(self) -> bool:
        """Whether it is a mean over classes, which is another score without one of them."""
        return self.classes_needed in {"all", "all gold"}

    @property
    def labels_needed(self) -> Literal["equality", "names", "values"]:
        """What the metric needs of labels: which are equal, which label each is, or their values.

        An expression with labels in it may compute with them.
        """
        sums = (*self.classes.values(), *self.pairs.values())
        named = {name for sum_ in sums for name in sum_(pl.col).meta.root_names()}
        if named & {"label", "gold", "pred"}:
            return "values"
        return "names" if self.is_of_positive or self.is_of_scores else "equality"


def sums_of_mean(of: str | Sum, weight: str | None = None) -> dict[str, Sum]:
    """The two sums of a mean over `classes`, of a column or of a number made of columns.

    Classes without a value are left out.
    """

    def value(col: Col) -> pl.Expr:
        return col(of) if isinstance(of, str) else of(col)

    if weight is None:
        return {"total": lambda col: value(col).sum(), "weight": lambda col: value(col).count()}
    # Polars adds up a column with nulls in another order than one without.
    return {
        "total": lambda col: (value(col) * col(weight)).fill_null(0).sum(),
        "weight": lambda col: (col(weight) * value(col).is_not_null().cast(pl.Float64)).sum(),
    }


def mean(terms: Terms) -> pl.Expr:
    """The mean of which a metric has the sums; `zero_division` without any class."""
    return terms.ratio(terms["total"], terms["weight"].fill_null(0))  # null without any class


def sum_name(metric: str, name: str) -> str:
    """The column name of a sum that a metric defines."""
    return f"sum:{metric}:{name}"

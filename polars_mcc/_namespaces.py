"""The namespace `mcc`: public, typed classes that hand over to the functions."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, overload

import polars as pl

from polars_mcc import _confusion, _functions, _questions
from polars_mcc._classes import Nulls
from polars_mcc._confusion import Normalize
from polars_mcc._differences import Correction
from polars_mcc._expression import Score
from polars_mcc._intervals import Method, Resampling
from polars_mcc._log import Frame, IntoColumn, IntoColumns, as_expr, check_choice, check_number
from polars_mcc._registry import IntoMetrics
from polars_mcc._slices import Sets
from polars_mcc._worst import Rank

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

PolarsT = TypeVar("PolarsT", pl.DataFrame, pl.LazyFrame)


@pl.api.register_lazyframe_namespace("mcc")
@pl.api.register_dataframe_namespace("mcc")
class FrameMcc(Generic[PolarsT]):
    """`frame.mcc`, of a DataFrame or a LazyFrame: the functions of `polars_mcc`."""

    def __init__(self, frame: PolarsT) -> None:
        """Take the frame: a log, or a counts table."""
        self._frame: PolarsT = frame

    @overload
    def by(
        self,
        *keys: IntoColumn,
        gold: IntoColumn = "gold",
        pred: IntoColumns = "pred",
        weight: IntoColumn | None = None,
        sample_weight: IntoColumn | None = None,
        nulls: Nulls = "drop",
        zero_division: float | None = 0.0,
        metrics: IntoMetrics = "mcc",
        positive: object = None,
        ci: float | None = None,
        method: Method = "score",
        cluster: IntoColumn | None = None,
        sets: Sets = "crossed",
        total: bool = False,
        long: bool = False,
        index: IntoColumn | None = None,
        window: str | None = None,
        every: str | None = None,
    ) -> PolarsT: ...
    @overload
    def by(
        self: FrameMcc[pl.DataFrame],
        *keys: IntoColumn,
        gold: IntoColumn = "gold",
        pred: IntoColumns = "pred",
        weight: IntoColumn | None = None,
        nulls: Nulls = "drop",
        zero_division: float | None = 0.0,
        ci: float,
        method: Resampling,
        n_boot: int = 2000,
        seed: int | None = None,
    ) -> pl.DataFrame: ...
    def by(self, *keys: IntoColumn, **options: Any) -> pl.DataFrame | pl.LazyFrame:
        """Score every slice: see `polars_mcc.by`."""
        return _functions.by(self._frame, *keys, **options)

    def score(
        self,
        *,
        gold: IntoColumn = "gold",
        pred: IntoColumns = "pred",
        weight: IntoColumn | None = None,
        sample_weight: IntoColumn | None = None,
        nulls: Nulls = "drop",
        zero_division: float | None = 0.0,
        metrics: IntoMetrics = "mcc",
        positive: object = None,
        ci: float | None = None,
        method: Method = "score",
        cluster: IntoColumn | None = None,
    ) -> PolarsT:
        """Score the whole frame: see `polars_mcc.score`."""
        return _functions.score(
            self._frame,
            gold=gold,
            pred=pred,
            weight=weight,
            sample_weight=sample_weight,
            nulls=nulls,
            zero_division=zero_division,
            metrics=metrics,
            positive=positive,
            ci=ci,
            method=method,
            cluster=cluster,
        )

    def compare(
        self,
        a: IntoColumn,
        b: IntoColumns,
        *keys: IntoColumn,
        gold: IntoColumn = "gold",
        weight: IntoColumn | None = None,
        sample_weight: IntoColumn | None = None,
        nulls: Nulls = "drop",
        zero_division: float | None = 0.0,
        ci: float = 0.95,
        method: Method = "score",
        cluster: IntoColumn | None = None,
        correction: Correction = "bh",
    ) -> PolarsT:
        """Compare models on the same rows: see `polars_mcc.compare`."""
        return _functions.compare(
            self._frame,
            a,
            b,
            *keys,
            gold=gold,
            weight=weight,
            sample_weight=sample_weight,
            nulls=nulls,
            zero_division=zero_division,
            ci=ci,
            method=method,
            cluster=cluster,
            correction=correction,
        )

    def worst(
        self,
        *keys: IntoColumn,
        gold: IntoColumn = "gold",
        pred: IntoColumns = "pred",
        weight: IntoColumn | None = None,
        sample_weight: IntoColumn | None = None,
        nulls: Nulls = "drop",
        zero_division: float | None = 0.0,
        depth: int = 2,
        min_n: int = 30,
        top: int | None = None,
        rank: Rank = "loss",
        ci: float = 0.95,
        correction: Correction = "bh",
        long: bool = False,
    ) -> PolarsT:
        """Find the slices that fall behind the rest: see `polars_mcc.worst`."""
        return _questions.worst(
            self._frame,
            *keys,
            gold=gold,
            pred=pred,
            weight=weight,
            sample_weight=sample_weight,
            nulls=nulls,
            zero_division=zero_division,
            depth=depth,
            min_n=min_n,
            top=top,
            rank=rank,
            ci=ci,
            correction=correction,
            long=long,
        )

    def drift(
        self,
        before: IntoColumn,
        after: IntoColumn,
        *keys: IntoColumn,
        gold: IntoColumn = "gold",
        pred: IntoColumns = "pred",
        weight: IntoColumn | None = None,
        sample_weight: IntoColumn | None = None,
        nulls: Nulls = "drop",
        zero_division: float | None = 0.0,
        ci: float = 0.95,
        method: Method = "score",
        correction: Correction = "bh",
    ) -> PolarsT:
        """Tell what has changed between two periods: see `polars_mcc.drift`."""
        return _questions.drift(
            self._frame,
            before,
            after,
            *keys,
            gold=gold,
            pred=pred,
            weight=weight,
            sample_weight=sample_weight,
            nulls=nulls,
            zero_division=zero_division,
            ci=ci,
            method=method,
            correction=correction,
        )

    def curve(
        self,
        *keys: IntoColumn,
        gold: IntoColumn = "gold",
        score: IntoColumns = "score",
        positive: object = None,
        weight: IntoColumn | None = None,
        thresholds: int | Sequence[float] | None = None,
        zero_division: float | None = 0.0,
    ) -> PolarsT:
        """Score every threshold: see `polars_mcc.curve`."""
        return _questions.curve(
            self._frame,
            *keys,
            gold=gold,
            score=score,
            positive=positive,
            weight=weight,
            thresholds=thresholds,
            zero_division=zero_division,
        )

    def best_threshold(
        self,
        *keys: IntoColumn,
        gold: IntoColumn = "gold",
        score: IntoColumns = "score",
        positive: object = None,
        weight: IntoColumn | None = None,
        thresholds: int | Sequence[float] | None = None,
    ) -> PolarsT:
        """Find the best threshold of each slice: see `polars_mcc.best_threshold`."""
        return _questions.best_threshold(
            self._frame,
            *keys,
            gold=gold,
            score=score,
            positive=positive,
            weight=weight,
            thresholds=thresholds,
        )

    def check(
        self,
        *keys: IntoColumn,
        min: float | None = None,  # noqa: A002 - as in the function
        no_worse_than: Frame | None = None,
        min_n: int = 1,
        ci: float | None = None,
        gold: IntoColumn = "gold",
        pred: IntoColumns = "pred",
        weight: IntoColumn | None = None,
        nulls: Nulls = "drop",
    ) -> pl.DataFrame:
        """Raise an error that shows the slices that are not good enough: see `polars_mcc.check`."""
        return _questions.check(
            self._frame,
            *keys,
            min=min,
            no_worse_than=no_worse_than,
            min_n=min_n,
            ci=ci,
            gold=gold,
            pred=pred,
            weight=weight,
            nulls=nulls,
        )

    def counts(
        self,
        *keys: IntoColumn,
        gold: IntoColumn = "gold",
        pred: IntoColumns = "pred",
        weight: IntoColumn | None = None,
    ) -> PolarsT:
        """Compress the log into counts: see `polars_mcc.counts`."""
        return _functions.counts(self._frame, *keys, gold=gold, pred=pred, weight=weight)

    def classes(
        self,
        *keys: IntoColumn,
        gold: IntoColumn = "gold",
        pred: IntoColumns = "pred",
        weight: IntoColumn | None = None,
        nulls: Nulls = "drop",
        zero_division: float | None = 0.0,
    ) -> PolarsT:
        """Score every class of every slice: see `polars_mcc.classes`."""
        return _functions.classes(
            self._frame,
            *keys,
            gold=gold,
            pred=pred,
            weight=weight,
            nulls=nulls,
            zero_division=zero_division,
        )

    def confusion(
        self,
        *keys: IntoColumn,
        gold: IntoColumn = "gold",
        pred: IntoColumns = "pred",
        weight: IntoColumn | None = None,
        labels: Sequence[object] | None = None,
        normalize: Normalize | None = None,
        nulls: Nulls = "drop",
        long: bool = False,
        top: int | None = None,
    ) -> PolarsT:
        """Lay the counts out as a confusion matrix: see `polars_mcc.confusion`."""
        return _functions.confusion(
            self._frame,
            *keys,
            gold=gold,
            pred=pred,
            weight=weight,
            labels=labels,
            normalize=normalize,
            nulls=nulls,
            long=long,
            top=top,
        )

    def to_numpy(
        self: FrameMcc[pl.DataFrame],
    ) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
        """A confusion matrix as an array: see `polars_mcc.to_numpy`."""
        return _confusion.to_numpy(self._frame)


@pl.api.register_expr_namespace("mcc")
class ExprMcc:
    """`expr.mcc`: the score of a predicted label, inside any Polars expression."""

    def __init__(self, pred: pl.Expr) -> None:
        """Take the predicted label."""
        self._pred = pred

    def score(
        self,
        gold: IntoColumn = "gold",
        *,
        weight: IntoColumn | None = None,
        labels: Sequence[object] | None = None,
        nulls: Nulls = "drop",
        zero_division: float | None = 0.0,
    ) -> pl.Expr:
        """The R_K of the rows at hand, as one aggregating expression.

        For `select`, `group_by(...).agg`, `over`, `group_by_dynamic` and `rolling`,
        beside other aggregations. For slices alone prefer `by`: without `labels` this
        expression holds the labels of a group in memory. On 10 million rows with 10 text
        labels in 200 slices it took 8 times as long as `by` on 2 cores, and with `labels` 1.5
        times (`python tests/benchmarks/expression_or_by.py` measures both).

        Args:
            gold: The true label: a name or an expression.
            weight: How many rows a row stands for; None for 1.
            labels: All labels that occur. With them, and for Boolean labels, only sums
                are taken, which the streaming engine does in little memory.
            nulls: `"drop"` or `"label"`, as in `polars_mcc.by`.
            zero_division: The score where R_K is 0/0, as in `polars_mcc.by`.

        Returns:
            A Float64 expression, one value per group, named like the predicted label;
            null if no row is scored.

        Raises:
            ValueError: `labels` is empty.
            polars.exceptions.SchemaError: When planned: gold and pred cannot be compared,
                a label is not of their dtype, or the weight is not a number.
            polars.exceptions.InvalidOperationError: On `collect`: a label occurs that is
                not in `labels`; a weight is negative, NaN or infinite; or the weights
                add up to more than 2⁶³ - 1, or to an infinite float.

        Source of the formula: Gorodkin 2004, as in `polars_mcc.by`, and as exact. With float
        weights and `labels`, weights outside of 10⁻⁶ to 10¹² are added up as floats for each
        label: where one label has nearly all the weight, digits cancel.

        Examples:
            >>> import polars as pl
            >>> import polars_mcc
            >>> log = pl.DataFrame(
            ...     {
            ...         "hour": [1, 1, 1, 2, 2],
            ...         "gold": ["a", "a", "b", "a", "b"],
            ...         "pred": ["a", "b", "b", "a", "b"],
            ...         "ms": [11, 12, 90, 10, 12],
            ...     }
            ... )
            >>> mcc = polars_mcc.ExprMcc(pl.col("pred")).score("gold")  # pl.col("pred").mcc
            >>> log.group_by("hour", maintain_order=True).agg(pl.col("ms").max(), mcc=mcc)
            shape: (2, 3)
            ┌──────┬─────┬─────┐
            │ hour ┆ ms  ┆ mcc │
            │ ---  ┆ --- ┆ --- │
            │ i64  ┆ i64 ┆ f64 │
            ╞══════╪═════╪═════╡
            │ 1    ┆ 90  ┆ 0.5 │
            │ 2    ┆ 12  ┆ 1.0 │
            └──────┴─────┴─────┘
        """
        check_choice("nulls", nulls, get_args(Nulls))
        check_number("zero_division", zero_division)
        labels = None if labels is None else list(labels)
        if labels == []:
            msg = "labels is empty; list every label that occurs, or leave labels out"
            raise ValueError(msg)
        inputs = [self._pred, as_expr(gold), *([] if weight is None else [as_expr(weight)])]
        return pl.pipe_with_dtype(inputs, Score(labels, nulls, zero_division))


@pl.api.register_series_namespace("mcc")
class SeriesMcc:
    """`series.mcc`: the score of a predicted label held in a Series."""

    def __init__(self, pred: pl.Series) -> None:
        """Take the predicted labels."""
        self._pred = pred

    def score(
        self,
        gold: pl.Series,
        *,
        weight: pl.Series | None = None,
        nulls: Nulls = "drop",
        zero_division: float | None = 0.0,
    ) -> float | None:
        """The R_K of these predictions, as a float; None if no row is scored.

        Args:
            gold: The true labels, as many.
            weight: How many rows a row stands for; None for 1.
            nulls: `"drop"` or `"label"`, as in `polars_mcc.by`.
            zero_division: The score where R_K is 0/0, as in `polars_mcc.by`.

        Raises:
            ValueError: The Series differ in length.

        Errors of `polars_mcc.by` are raised too.

        Examples:
            >>> import polars as pl
            >>> import polars_mcc
            >>> gold, pred = pl.Series([1, 1, 1, 0, 0]), pl.Series([0, 1, 0, 1, 0])
            >>> round(polars_mcc.SeriesMcc(pred).score(gold), 3)  # pred.mcc.score(gold)
            -0.167
        """
        columns = {"gold": gold, "pred": self._pred}
        if weight is not None:
            columns["weight"] = weight
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            msg = f"the Series must be of one length, but their lengths are {lengths}"
            raise ValueError(msg)
        answer = _functions.score(
            pl.DataFrame(columns),
            weight=None if weight is None else "weight",
            nulls=nulls,
            zero_division=zero_division,
        )
        found: float | None = answer["mcc"].item()
        return found


# help(df.mcc.by), and df.mcc.by? in a notebook, show the documentation of the function.
for _module, _verbs in (
    (_functions, ("by", "score", "compare", "counts", "classes", "confusion")),
    (_confusion, ("to_numpy",)),
    (_questions, ("worst", "drift", "curve", "best_threshold", "check")),
):
    for _verb in _verbs:
        getattr(FrameMcc, _verb).__doc__ = getattr(_module, _verb).__doc__
_self, *_options = inspect.signature(_functions.by).parameters.values()
FrameMcc.by.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [inspect.Parameter("self", _self.kind), *_options], return_annotation="PolarsT"
)

"""The namespace `mcc` on DataFrame, LazyFrame, Expr and Series."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_mcc._log import defaults
from polars_mcc._log.choices import Nulls, check_choice, check_number
from polars_mcc._log.columns import IntoColumn, as_expr
from polars_mcc._scores.expression import Score
from polars_mcc.prediction_log import PredictionLog

pl.api.register_dataframe_namespace("mcc")(PredictionLog.by_default)  # type: ignore[arg-type]
pl.api.register_lazyframe_namespace("mcc")(PredictionLog.by_default)  # type: ignore[arg-type]


@pl.api.register_expr_namespace("mcc")
class ExprMcc:
    """`expr.mcc`: the score of a predicted label, inside any Polars expression."""

    def __init__(self, pred: pl.Expr) -> None:
        """Take the predicted label."""
        self._pred = pred

    def score(
        self,
        gold: IntoColumn = defaults.GOLD,
        *,
        weight: IntoColumn | None = None,
        labels: Sequence[object] | None = None,
        nulls: Nulls = defaults.NULLS,
        zero_division: float | None = defaults.ZERO_DIVISION,
    ) -> pl.Expr:
        """The R_K of the rows at hand, as one aggregating expression.

        For `select`, `group_by(...).agg`, `over`, `group_by_dynamic` and `rolling`, beside other
        aggregations. For slices alone prefer `by`: this took 4 times as long on 10 million rows
        with 10 text labels in 200 slices, and holds them in memory, in `rolling` once per window;
        with `labels`, 2.5 times (`python tests/benchmarks/expression_or_by.py`).

        Args:
            gold: The true label: a name or an expression.
            weight: How many rows a row stands for; None for 1.
            labels: All labels that occur. With them, and for Boolean labels, only sums are taken.
            nulls: `"drop"` or `"label"`, as in `PredictionLog`.
            zero_division: The score where R_K is 0/0, as in `PredictionLog`.

        Returns:
            A Float64 expression, one value per group, named like pred; null if no row is scored.

        Raises:
            ValueError: `labels` is empty.
            polars.exceptions.SchemaError: When planned: gold and pred cannot be compared,
                a label is not of their dtype, or the weight is not a number.
            polars.exceptions.InvalidOperationError: On `collect`: a label is not in `labels`; or,
                as in `by`, weights are no weights, or too large.

        Source of the formula: Gorodkin 2004, as in `by`, and as exact; but with float weights and
        `labels`, digits cancel where one label has nearly all the weight. Without weights and
        `labels`, 63 bits of a hash stand for labels that are text, floats, or wider than 32 bits.

        Examples:
            >>> import polars as pl
            >>> import polars_mcc
            >>> log = pl.DataFrame({"a": [1, 1, 1, 2], "gold": list("aabb"), "pred": list("abba")})
            >>> mcc = polars_mcc.ExprMcc(pl.col("pred")).score("gold")  # pl.col("pred").mcc
            >>> log.group_by("a", maintain_order=True).agg(pl.len(), mcc=mcc)
            shape: (2, 3)
            ┌─────┬─────┬─────┐
            │ a   ┆ len ┆ mcc │
            │ --- ┆ --- ┆ --- │
            │ i64 ┆ u32 ┆ f64 │
            ╞═════╪═════╪═════╡
            │ 1   ┆ 3   ┆ 0.5 │
            │ 2   ┆ 1   ┆ 0.0 │
            └─────┴─────┴─────┘
        """
        check_choice("nulls", nulls, Nulls)
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
        nulls: Nulls = defaults.NULLS,
        zero_division: float | None = defaults.ZERO_DIVISION,
    ) -> float | None:
        """The R_K of these predictions, as a float; None if no row is scored.

        Args:
            gold: The true labels, as many.
            weight: How many rows a row stands for; None for 1.
            nulls: `"drop"` or `"label"`, as in `PredictionLog`.
            zero_division: The score where R_K is 0/0, as in `PredictionLog`.

        Raises:
            ValueError: The Series differ in length. Errors of `PredictionLog` are raised too.

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
        log = PredictionLog(
            pl.DataFrame(columns),
            weight=None if weight is None else "weight",
            nulls=nulls,
            zero_division=zero_division,
        )
        found: float | None = log.score()["mcc"].item()
        return found

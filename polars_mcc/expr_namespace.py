"""The namespace `mcc` of expressions and Series. That of frames is `PredictionLog`."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import NullsOfRows, check_choice, check_number
from polars_mcc._base.unstable_polars import of_dtypes
from polars_mcc._frame.columns import IntoColumn, as_expr
from polars_mcc._metrics.mcc_expression import Score
from polars_mcc.prediction_log import PredictionLog


class ExprMcc:
    """`expr.mcc`: the score of a column of predictions, as a Polars expression."""

    def __init__(self, pred: pl.Expr) -> None:
        """Take the predictions."""
        self._pred = pred

    def score(
        self,
        gold: IntoColumn = defaults.GOLD,
        *,
        weight: IntoColumn | None = None,
        labels: Sequence[object] | None = None,
        nulls: NullsOfRows = defaults.NULLS,
        zero_division: float | None = defaults.ZERO_DIVISION,
    ) -> pl.Expr:
        """Aggregate the rows of the context to their R_K.

        Use it in `select`, `group_by(...).agg`, `over`, `group_by_dynamic` and `rolling`, next to
        other aggregations. For slices alone prefer `by`. On 10 million rows with 10 text labels in
        200 slices, the expression took 4 times as long as `by`, and 2.5 times with `labels`
        (`python tests/benchmarks/expression_or_by.py`). It also holds the rows in memory; in
        `rolling`, once per window.

        Args:
            gold: The true label: a name or an expression.
            weight: How many rows a row stands for. None: 1.
            labels: All labels that occur. With `labels`, or with Boolean labels, the expression
                only computes sums, which is faster.
            nulls: `"drop"` or `"label"`, as in `PredictionLog`.
            zero_division: The score where R_K is 0/0, as in `PredictionLog`.

        Returns:
            A Float64 expression with one value per group and the name of pred; null if no row is
            scored.

        Raises:
            ValueError: `labels` is empty.
            polars.exceptions.SchemaError: When the query is planned: gold and pred cannot be
                compared, a label has another dtype, or the weight is not a number.
            polars.exceptions.InvalidOperationError: On `collect`: a label is not in `labels`; or,
                as in `by`, a weight is negative, NaN or infinite, or the weights add up to too
                much.

        The formula is that of `by` (Gorodkin 2004), and as exact, with one exception: with float
        weights and `labels`, digits cancel if one label has nearly all the weight. Without weights
        and `labels`, labels that are text, floats, or wider than 32 bits are replaced by a 63-bit
        hash.

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
        _check_nulls(nulls)
        check_number("zero_division", zero_division)
        labels = None if labels is None else list(labels)
        if labels == []:
            msg = "labels is empty; list every label that occurs, or leave labels out"
            raise ValueError(msg)
        inputs = [self._pred, as_expr(gold), *([] if weight is None else [as_expr(weight)])]
        return of_dtypes(inputs, Score(labels, nulls, zero_division))


def _check_nulls(nulls: str) -> None:
    """Raise a ValueError unless rows alone say what a null label means."""
    if nulls == "reweight":
        msg = (
            "nulls='reweight' needs the counts of slices, which an expression or a Series has not: "
            "use frame.mcc(nulls='reweight').by(...)"
        )
        raise ValueError(msg)
    check_choice("nulls", nulls, NullsOfRows)


class SeriesMcc:
    """`series.mcc`: the score of a Series of predictions, as a float."""

    def __init__(self, pred: pl.Series) -> None:
        """Take the predicted labels."""
        self._pred = pred

    def score(
        self,
        gold: pl.Series,
        *,
        weight: pl.Series | None = None,
        nulls: NullsOfRows = defaults.NULLS,
        zero_division: float | None = defaults.ZERO_DIVISION,
    ) -> float | None:
        """Compute the R_K of these predictions; None if no row is scored.

        Args:
            gold: The true labels, a Series of the same length.
            weight: How many rows a row stands for. None: 1.
            nulls: `"drop"` or `"label"`, as in `PredictionLog`.
            zero_division: The score where R_K is 0/0, as in `PredictionLog`.

        Raises:
            ValueError: The Series differ in length. The errors of `PredictionLog` are raised too.

        Examples:
            >>> import polars as pl
            >>> import polars_mcc
            >>> gold, pred = pl.Series([1, 1, 1, 0, 0]), pl.Series([0, 1, 0, 1, 0])
            >>> round(polars_mcc.SeriesMcc(pred).score(gold), 3)  # pred.mcc.score(gold)
            -0.167
        """
        _check_nulls(nulls)
        columns = {"gold": gold, "pred": self._pred}
        if weight is not None:
            columns["weight"] = weight
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            msg = f"the Series must have the same length, but their lengths are {lengths}"
            raise ValueError(msg)
        log = PredictionLog(
            pl.DataFrame(columns),
            weight=None if weight is None else "weight",
            nulls=nulls,
            zero_division=zero_division,
        )
        mcc: float | None = log.score()["mcc"].item()
        return mcc

"""The namespace `mcc` of expressions and Series. That of frames is `PredictionLog`."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import NullsOfRows, check_choice, check_number
from polars_mcc._base.unstable_polars import of_dtypes
from polars_mcc._frame.columns import IntoColumn, as_expr
from polars_mcc._metrics.metric_expression import Score
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.registry import IntoMetric, find_metric
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
        metric: IntoMetric = defaults.METRIC,
        positive: object = None,
        weight: IntoColumn | None = None,
        labels: Sequence[object] | None = None,
        nulls: NullsOfRows = defaults.NULLS,
        zero_division: float | None = defaults.ZERO_DIVISION,
    ) -> pl.Expr:
        """Aggregate the rows of the context to a metric of their labels, R_K by default.

        Use it in `select`, `group_by(...).agg`, `over`, `group_by_dynamic` and `rolling`, next to
        other aggregations. For slices alone prefer `by`. On 10 million rows with 10 text labels in
        200 slices, the expression took 4 times as long as `by`, and 2.5 times with `labels`
        (`python tests/benchmarks/expression_or_by.py`). It also holds the rows in memory; in
        `rolling`, once per window.

        Args:
            gold: The true label: a name or an expression.
            metric: A metric of labels: a name of `metrics()`, or a function such as
                `lambda col: col("recall").min()`, as in `by` (see `register_metric`).
            positive: The label of the positive class, for metrics of one class such as "tpr". Of
                Boolean labels it is true.
            weight: How many rows a row stands for. None: 1.
            labels: All labels that occur. With `labels`, or with Boolean labels, the expression
                only computes sums: they stream, so a scan is faster. Metrics of pairs, such as
                "chi2", and float weights have sums for each pair of labels: with more than 6
                labels, the rows are gathered all the same. Metrics of one class, and of hits
                alone, such as "accuracy", always are sums, unless weights are floats.
            nulls: `"drop"` or `"label"`, as in `PredictionLog`.
            zero_division: The score where the metric is 0/0, as in `PredictionLog`.

        Returns:
            An expression with one value per group and the name of pred, in the dtype that `by`
            gives: Float64, but Int64 for counts such as "tp" without float weights. It is null if
            no row is scored; a count is 0.

        Raises:
            ValueError: `labels` is empty; an unknown metric; or a metric of scores, which needs
                `by`.
            TypeError: `metric` is not one name or function; or it is an expression, whose columns
                an expression cannot look up. Pass a function.
            polars.exceptions.SchemaError: When the query is planned: gold and pred cannot be
                compared, a label has another dtype, the weight is not a number, or the metric needs
                `positive`.
            polars.exceptions.InvalidOperationError: On `collect`: a label is not in `labels`; or,
                as in `by`, a weight is negative, NaN or infinite, or the weights add up to too
                much.

        The definitions are those of `by`, and the values are equal to the last bit. Text labels are
        replaced by hashes, as in `by`. So are labels that are floats or wider than 32 bits, for
        metrics such as R_K that do not depend on the order of labels, without weights and `labels`.

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
            >>> f1 = polars_mcc.ExprMcc(pl.col("pred")).score("gold", metric="f1_macro")
            >>> log.select("a", f1=f1.over("a").round(3))["f1"].to_list()
            [0.667, 0.667, 0.667, 0.0]
        """
        asked = _metric_of_rows(metric, nulls)
        check_number("zero_division", zero_division)
        if asked.is_expression:
            raise TypeError(
                f"metric '{asked.name}' is an expression, and its columns are not those of this "
                "query: pass a function, such as lambda col: col('recall').min(), or use "
                "frame.mcc(...).by(...)"
            )
        labels = None if labels is None else list(labels)
        if labels == []:
            raise ValueError("labels is empty; list every label that occurs, or leave labels out")
        inputs = [self._pred, as_expr(gold), *([] if weight is None else [as_expr(weight)])]
        return of_dtypes(inputs, Score(metric, positive, labels, nulls, zero_division))


def _metric_of_rows(metric: IntoMetric, nulls: str) -> Metric:
    """The metric, or a ValueError unless it is of labels, and rows say what a null label means."""
    if nulls == "reweight":
        raise ValueError(
            "nulls='reweight' needs the counts of slices, which an expression or a Series has not: "
            "use frame.mcc(nulls='reweight').by(...)"
        )
    check_choice("nulls", nulls, NullsOfRows)
    asked = find_metric(metric)
    if asked.is_of_scores:
        raise ValueError(
            f"metric '{asked.name}' is of scores, and an expression or a Series has labels: use "
            f"frame.mcc(score=...).by(..., metrics='{asked.name}')"
        )
    return asked


class SeriesMcc:
    """`series.mcc`: the score of a Series of predictions, as a float."""

    def __init__(self, pred: pl.Series) -> None:
        """Take the predicted labels."""
        self._pred = pred

    def score(
        self,
        gold: pl.Series,
        *,
        metric: IntoMetric = defaults.METRIC,
        positive: object = None,
        weight: pl.Series | None = None,
        nulls: NullsOfRows = defaults.NULLS,
        zero_division: float | None = defaults.ZERO_DIVISION,
    ) -> float | None:
        """Compute a metric of these predictions, R_K by default; None if no row is scored.

        Args:
            gold: The true labels, a Series of the same length.
            metric: A metric of labels, as in `by`: a name of `metrics()`, a function or an
                expression.
            positive: The label of the positive class, for metrics of one class such as "tpr".
            weight: How many rows a row stands for. None: 1.
            nulls: `"drop"` or `"label"`, as in `PredictionLog`.
            zero_division: The score where the metric is 0/0, as in `PredictionLog`.

        Raises:
            ValueError: The Series differ in length; or a metric of scores. The errors of
                `PredictionLog` and of `score` are raised too.

        Examples:
            >>> import polars as pl
            >>> import polars_mcc
            >>> gold, pred = pl.Series([1, 1, 1, 0, 0]), pl.Series([0, 1, 0, 1, 0])
            >>> round(polars_mcc.SeriesMcc(pred).score(gold), 3)  # pred.mcc.score(gold)
            -0.167
            >>> polars_mcc.SeriesMcc(pred).score(gold, metric="precision", positive=1)
            0.5
        """
        asked = _metric_of_rows(metric, nulls)
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
            positive=positive,
            nulls=nulls,
            zero_division=zero_division,
        )
        score: float | None = log.score(metrics=asked)[asked.name].item()
        return score

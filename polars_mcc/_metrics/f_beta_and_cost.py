"""Metrics with numbers that a user chooses: F_β, and what errors cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, Literal, TypeAlias

import polars as pl

from polars_mcc._base.allowed_values import check_choice, check_number
from polars_mcc._metrics import label_pairs
from polars_mcc._metrics.label_pairs import IntoByPair
from polars_mcc._metrics.mcc_and_one_vs_rest import Col
from polars_mcc._metrics.metric_type import (
    RATIO,
    RIJSBERGEN,
    Metric,
    Range,
    Terms,
    Value,
    has_rows,
    mean,
    sums_of_mean,
)

Average: TypeAlias = Literal["positive", "macro", "weighted", "micro"]
"""Of the positive class; or a mean over classes, alike or by gold rows; or of the sums of all."""

_MOST = 1e100
_ELKAN = "Elkan 2001, The foundations of cost-sensitive learning, IJCAI"
_GROWS = "it grows with the rows, so only the mean, cost without total, is compared"


def f_beta(beta: float, average: Average = "positive") -> Metric:
    """F_β: the harmonic mean of precision and recall, in which recall weighs β² times as much.

    Args:
        beta: β, above 0. 2 is for misses that matter more, 0.5 for false alarms that do.
        average: "positive": of the positive class. "macro": the mean over the classes that occur.
            "weighted": the mean, weighted by gold rows. "micro": of the sums over classes; with one
            label a row, the accuracy.

    Returns:
        A metric with the name "f2", or "f2_macro", that all verbs take as `metric` or in `metrics`.
        Text is taken too: "f_beta(2)", "f_beta(0.5, macro)".

    Raises:
        ValueError: β is not above 0; `average` has an unknown value.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": list("aaab"), "pred": list("aabb")}).mcc(positive="b")
        >>> log.score(metrics=["f1", "f_beta(2)", polars_mcc.metric.f_beta(0.5)]).row(0)[1:4]
        (0.6666666666666666, 0.8333333333333334, 0.5555555555555556)

    References:
        C. J. van Rijsbergen, Information Retrieval (1979), chapter 7.
    """
    check_number("beta", beta)
    if not 0 < beta < _MOST:
        raise ValueError(
            f"beta must be above 0 and below {_MOST:g}, got {beta}; 0 would be ppv, 1 is f1, "
            "2 weighs recall more, 0.5 precision"
        )
    check_choice("average", average, Average)
    squared = float(beta) ** 2

    def of(hits: Any, gold: Any, pred: Any) -> tuple[Any, Any]:  # noqa: ANN401
        return (1 + squared) * hits, squared * gold + pred

    def of_class(col: Col) -> pl.Expr:
        hits, whole = of(col("hits"), col("support"), col("predicted"))
        share: pl.Expr = hits / whole
        return share

    def of_table(terms: Terms) -> pl.Expr:
        table = terms.positive if average == "positive" else terms.total
        return terms.ratio(*of(table.tp, table.gold, table.pred))

    is_mean = average in {"macro", "weighted"}
    formula = f"{1 + squared:g}c / ({squared:g}t + p)"
    metric = Metric(
        f"f{beta:g}_{average}",
        mean if is_mean else of_table,
        f"the mean of {formula}" if is_mean else formula,
        RIJSBERGEN,
        RATIO,
        classes_needed="all gold" if average == "macro" else "any",
        multilabel=True,
        is_of_rows=average == "micro",
    )
    if is_mean:
        weight = "support" if average == "weighted" else None
        return replace(metric, classes=sums_of_mean(of_class, weight))
    if average == "micro":
        return metric
    return replace(
        metric.alias(f"f{beta:g}"),
        undefined="tp + fp + fn = 0",
        is_of_positive=True,
        has_gold=has_rows("f1"),
    )


def cost(
    costs: IntoByPair | None = None,
    *,
    fn: float = 0,
    fp: float = 0,
    tp: float = 0,
    tn: float = 0,
    total: bool = False,
) -> Metric:
    """What errors cost: the mean cost of a row. Less is better; a benefit is a negative cost.

    Args:
        costs: The cost of a row by its gold label and its prediction, such as
            `{("fraud", "ok"): 10, ("ok", "fraud"): 1}`; a DataFrame with the columns `gold`, `pred`
            and `cost`; or the path of a CSV file with these. Other pairs cost 0. Limits are between
            the least and the largest of these costs.
        fn: Instead of `costs`: the cost of a positive row that is predicted as another class.
        fp: The cost of another row that is predicted as positive.
        tp: The cost of a positive row that is predicted as positive.
        tn: The cost of a row that is neither.
        total: Whether to add up the costs of all scored rows. The sum grows with the rows, so it
            has no interval and is not compared.

    Returns:
        A metric with the name "cost", or "cost_total", that all verbs take; `best_threshold` and
        `curve` only that of `fn`, `fp`, `tp` and `tn`. Text is taken too: "cost(fn=10, fp=1)",
        "cost('costs.csv', total=True)".

    Raises:
        ValueError: No cost is given, or both `costs` and one of the others; all are 0; a cost is
            not finite.
        polars.exceptions.SchemaError: In a verb: a label does not have the dtype of the labels.

    Warns:
        PredictionLogWarning: In a verb, as in `by`: no row has a label of `costs`, which is text or
            an integer.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": [True, True, False, False], "pred": [True, False] * 2})
        >>> log.mcc.score(metrics="cost(fn=10, fp=1)").row(0)
        (4, 2.75, 0)
        >>> dear = polars_mcc.metric.cost({(True, False): 100}).alias("missed")
        >>> log.mcc.score(metrics=dear).row(0)
        (4, 25.0, 0)
        >>> log.mcc.score(metrics="cost(fn=10, fp=1, total=True)").row(0)
        (4, 11.0, 0)

    References:
        C. Elkan, The foundations of cost-sensitive learning, IJCAI (2001) 973-978.
    """
    cells = {"fn": fn, "fp": fp, "tp": tp, "tn": tn}
    cells = {name: label_pairs.checked(name, number) for name, number in cells.items()}
    of_pairs = {} if costs is None else label_pairs.by_pair(costs, "cost")
    numbers = [*cells.values(), *of_pairs.values()]
    if not any(numbers) or (costs is not None and any(cells.values())):
        raise ValueError(
            "cost needs what errors cost: fn and fp, as in cost(fn=10, fp=1), or costs by gold "
            "label and prediction, as in cost({('fraud', 'ok'): 10}); not both, and not only 0"
        )
    labels = {label for pair in of_pairs for label in pair}
    others = [0.0] if len(of_pairs) < len(labels) ** 2 else []  # the cost of pairs without one
    each = [*(cells.values() if costs is None else of_pairs.values()), *others]
    low, high = min(each), max(each)
    sums = " + ".join(f"{number:g}·{name}" for name, number in cells.items() if number)
    formula = "Σ cost · n" if costs is not None else f"({sums})"
    metric = Metric(
        "cost",
        lambda terms: terms["cost"],
        f"{formula} / s",
        _ELKAN,
        Range(low, high),
        less_is_better=True,
        is_mean=True,
    )
    if total:
        ends = Range(lambda terms: low * terms.n, lambda terms: high * terms.n, "[low·s, high·s]")
        metric = replace(metric.alias("cost_total"), formula=formula, range=ends, is_mean=False)
        metric = replace(metric, no_interval=_GROWS)
    if costs is None:
        return replace(metric, value=_of_cells(cells, total=total), is_of_positive=True)

    def of_labels(dtype: pl.DataType) -> Metric:
        numbers = label_pairs.typed(of_pairs, dtype)
        cost = label_pairs.mean_of_pairs(numbers, of="n" if total else "share")
        return replace(metric, pairs={"cost": cost}, named=label_pairs.named(numbers, dtype))

    return replace(metric, of_labels=of_labels)


def _of_cells(cells: Mapping[str, float], *, total: bool) -> Value:
    def value(terms: Terms) -> pl.Expr:
        costs = [getattr(terms.positive, name) * number for name, number in cells.items() if number]
        mean = terms.ratio(reduce(add, costs), terms.s)
        # In integers, n / s is exactly 1: a total of costs is not rounded twice.
        return reduce(add, costs) * (terms.n / terms.s.cast(pl.Float64)) if total else mean

    return value

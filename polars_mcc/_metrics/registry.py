"""The metrics that a user can ask for by name, or add."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from polars_mcc._base.allowed_values import Role
from polars_mcc._base.message_parts import Words, option, quoted, refused, said
from polars_mcc._counts.label_hashes import SEEN
from polars_mcc._frame.missing_and_likely_columns import did_you_mean, nearest
from polars_mcc._metrics.averages_and_f_beta import AVERAGES_OVER_CLASSES, SETS_OF_LABELS
from polars_mcc._metrics.mcc_accuracy_kappa_association import (
    ACCURACY_KAPPA_ASSOCIATION,
    MCC,
    MCC_VARIANTS,
)
from polars_mcc._metrics.mcc_and_one_vs_rest import CLASS_DTYPES, CLASS_RANGES, Col
from polars_mcc._metrics.metric_type import PAIR_DTYPES, Metric, Range
from polars_mcc._metrics.positive_class_rates import POSITIVE_CLASS_RATES
from polars_mcc._metrics.roc_auc_top_k_brier_log_loss_ece import BRIER_LOG_LOSS_ECE, ROC_AUC_TOP_K

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Definition: TypeAlias = pl.Expr | Callable[[Col], pl.Expr]
"""An expression over columns of classes or of pairs, or a function `col` → expression."""
IntoMetric: TypeAlias = str | Metric | Definition
"""The name of a metric, a call such as "f_beta(2)", what such a call makes, or a definition."""
IntoMetrics: TypeAlias = IntoMetric | Sequence[IntoMetric]
"""A metric, or several."""

BUILT_IN_METRICS = (
    MCC,
    *ACCURACY_KAPPA_ASSOCIATION,
    *AVERAGES_OVER_CLASSES,
    *SETS_OF_LABELS,
    *MCC_VARIANTS,
    *POSITIVE_CLASS_RATES,
    *ROC_AUC_TOP_K,
    *BRIER_LOG_LOSS_ECE,
)
"""The metrics of the package. To add one, add an entry to the list of its family."""
_REGISTRY = {metric.name: metric for metric in BUILT_IN_METRICS}
_BUILT_IN = frozenset(_REGISTRY)
_RESERVED = {
    *("n", "n_null", "n_waiting", "n_clusters", "diff", "period"),
    *("model", "keys", "slice", "complete"),
}
"""Columns that an answer may have besides its metrics."""


def metrics() -> pl.DataFrame:
    """List the metrics that `by` and `score` take: the built-in and the registered ones.

    In the formulas, s is the number of rows and c the number of hits. t and p are the marginals:
    how often each class is gold, and how often it is predicted; t·p = Σ t_k p_k. K is the number
    of classes that occur in a slice, as gold or as predicted. In a sum over classes, c is the
    number of hits of one class. In the formulas of metrics from "scores", a score has p positive
    and q negative rows, r in all; tp and fp are the positive and the negative rows at or above it;
    and P and N are all positive and all negative rows.

    Returns:
        A row per metric, in the order of the registry. `multilabel` is Boolean, all others String.

        - `metric`: the name; `formula`; `source`; `range`;
        - `undefined`: where the metric is 0/0. `zero_division` takes its place, but rates without
          their gold rows, such as "tpr" and "lr_pos", are null, and rates of errors, such as "fdr",
          "lr_neg" and "fpr_macro", are 1 - `zero_division`;
        - `from`: the counts that the metric needs: "classes"; "pairs", which are more rows;
          "positive", the counts of the positive class and of the rest; or "scores", the counts of
          positive and of negative rows by the model's score, which `score` names;
        - `no_interval`: why the metric has no interval and no test; "" if it has;
        - `multilabel`: whether the metric is defined for rows with lists of labels;
        - `peers`: functions of other libraries with equal results. The tests call them.

    Examples:
        >>> import polars_mcc
        >>> polars_mcc.metrics().filter(metric="kappa")["formula"].item()
        '(cs - t·p) / (s² - t·p)'
    """
    rows = [
        {
            "metric": metric.name,
            "formula": metric.formula,
            "source": metric.source,
            "range": "" if metric.range is None else str(metric.range),
            "undefined": metric.undefined,
            "from": metric.origin,
            "no_interval": metric.no_interval,
            "multilabel": metric.multilabel,
            "peers": "; ".join(metric.peers),
        }
        for metric in _REGISTRY.values()
    ]
    return pl.DataFrame(rows)


def register_metric(
    name: str,
    definition: Definition,
    *,
    formula: str = "",
    source: str = "",
    range: tuple[float, float] | None = None,  # noqa: A002 - what metrics() calls it
    less_is_better: bool | None = False,
) -> None:
    """Register a metric of your own: `metrics=[...]` then takes its name.

    The name is known in this process only. Registering the same name again replaces the metric.

    Args:
        name: The name of the metric, and of its column.
        definition: A function such as `lambda col: col("recall").min()`: `col` gives a column, as
            `pl.col` does, and the function returns an aggregation with one value per slice. An
            expression is taken too, such as `pl.col("recall").min()`, but a confidence interval
            of an expression needs `Bootstrap`. The columns are of the classes of a slice:
            `support`, `predicted`, `hits`, `precision`, `recall`, `specificity`, `f1`, `mcc`,
            `informedness`, `markedness`, `npv`, `fpr`, `fnr`, `jaccard`, `n` (all Float64; `n` is
            the rows of the slice) and `label`. With `gold` or `pred`, the columns are of the pairs
            of a slice: `gold`, `pred`, `n`, how often the pair occurs, and `share`, n as a share of
            the slice (both Float64). Labels that are integers are Int128, so nothing below 2^127
            wraps, and the result is Int64; labels that are floats or decimals are Float64.

            An interval without `Bootstrap` needs the derivative of the function. `col` then gives
            an array that knows its derivatives, with methods named as in Polars: `+ - * / **`,
            comparisons, `& | ~`, `abs`, `alias`, `cast` to a float, `clip`, `count`, `drop_nulls`,
            `exp`, `fill_null`, `filter`, `is_null`, `is_not_null`, `log`, `max`, `mean`, `min`,
            `pow`, `sqrt` and `sum`. Any other method is an error that names it.
        formula: The formula that `metrics()` shows.
        source: The source that `metrics()` shows.
        range: The least and the largest value, such as `(0, 1)`. A confidence interval stays
            inside. None: unknown or unbounded; the interval is then symmetric.
        less_is_better: Whether a smaller value is better, as for an error rate. None: neither is
            better; then comparisons say "differs", and searches take more as better.

    Raises:
        ValueError: The name belongs to a built-in metric or to a column of answers; or the range
            is not two finite numbers in rising order.
        TypeError: The definition is no Polars expression, and no function that returns one.
        polars.exceptions.ColumnNotFoundError: The definition names an unknown column.
        polars.exceptions.SchemaError: The definition is not an aggregation.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> polars_mcc.register_metric("recall_min", lambda col: col("recall").min())
        >>> log = pl.DataFrame({"gold": ["a", "a", "b"], "pred": ["a", "b", "b"]})
        >>> log.mcc.score(metrics=["mcc", "recall_min"]).row(0)
        (3, 0.5, 0.5, 0)
    """
    if isinstance(definition, Metric):
        msg = "a metric of polars_mcc.metric is passed as it is, as in metrics=[metric.cost(fn=2)]"
        raise TypeError(msg)
    if name in _BUILT_IN | _RESERVED:
        built_in = f", or the built-in metric, as in metrics='{name}'" if name in _BUILT_IN else ""
        raise ValueError(
            f"'{name}' is a built-in metric or a column of answers; use another name, such as "
            f"'my_{name}'{built_in}"
        )
    if range is not None and not (
        len(range) == 2 and all(map(math.isfinite, range)) and range[0] < range[1]
    ):
        msg = f"range must be the least and the largest value, such as (0, 1), got {range!r}"
        raise ValueError(msg)
    metric = replace(
        _of_definition(name, definition),
        formula=formula,
        source=source,
        range=None if range is None else Range(*range),
        less_is_better=less_is_better,
    )
    if metric.labels_needed == "equality":  # Label dtypes are unknown.
        check_aggregations([metric], pl.String())
    _REGISTRY[name] = metric


def find_metrics(metrics: IntoMetrics, labels: pl.DataType | None = None) -> list[Metric]:
    """Find the metrics that a user asks for, or raise an error.

    `labels` is the dtype of the labels; None: the metrics are only named.
    """
    asked = [*map(_found, listed(metrics))]
    asked = [metric if labels is None else metric.bound(labels) for metric in asked]
    if (seen := SEEN.get()) is not None:
        seen.named |= named_labels(asked)
    names = [metric.name for metric in asked]
    if not names:
        raise ValueError("metrics is empty: list at least one, such as 'mcc'")
    for name in names:
        if names.count(name) > 1 or name in _RESERVED:
            raise ValueError(
                f"metrics would make two columns named '{name}', or answers use this name for "
                f"another column: name a metric once, or rename an expression, as in "
                f".alias('my_{name}')"
            )
        if pl.col(name).meta.has_multiple_outputs():
            msg = f"Polars takes the name '{name}' for a pattern; rename it, as in .alias('mine')"
            raise ValueError(msg)
    return asked


def named_labels(metrics: Iterable[Metric]) -> dict[str, Collection[object]]:
    """The labels that tables of metrics name, such as costs, by the name of the metric."""
    return {metric.name: metric.named for metric in metrics if metric.named}


def _found(metric: IntoMetric) -> Metric:
    """The metric that a user names, writes as a call, or defines."""
    if isinstance(metric, Metric):
        return metric
    if not isinstance(metric, str):
        return _of_definition(None, metric)
    if metric in _REGISTRY:
        return _REGISTRY[metric]
    # Loaded for calls alone, and for the error.
    from polars_mcc._metrics import calls_and_names_elsewhere as typed  # noqa: PLC0415

    found = typed.of_call(metric)
    if found is None:
        near = f" The nearest are {quoted(nearest(metric, _REGISTRY)[:5])};"
        if "(" in metric:
            near = (
                f" Write calls, as in {'; '.join(example for _, example in typed.CALLS.values())};"
            )
        hint = typed.known_elsewhere(metric) or did_you_mean(metric, _REGISTRY) + near
        if "," in metric and "(" not in metric:
            hint = ": name one metric, or give several as a list, where several can be asked;"
        every = Words("metrics()", "polars-mcc metrics")
        raise refused(f"no metric '{metric}'{hint} ", every, " lists all.")
    return found


def find_metric(metric: IntoMetric, labels: pl.DataType | None = None) -> Metric:
    """Find the one metric that a user asks for, or raise an error: see `find_metrics`."""
    if not _is_one(metric):
        raise TypeError(f"metric must be one name of metrics(), or one expression, got {metric!r}")
    [asked] = find_metrics(metric, labels)
    return asked


def needs_two_classes(options: Mapping[str, Any], *, or_positive: bool = False) -> bool:
    """Whether a verb with these options computes a metric that needs two gold classes.

    `or_positive`: or one of the positive class, which gold labels may lack.
    """
    metrics = [options[name] for name in ("metrics", "metric") if name in options]
    asked = [metric for given in metrics for metric in find_metrics(given)]
    return any(metric.is_of_two or (or_positive and metric.is_of_positive) for metric in asked)


def find_tested_metric(metric: IntoMetric, labels: pl.DataType) -> Metric:
    """Find the one metric that a user asks for, or raise an error if it has no test."""
    [asked] = with_tests([find_metric(metric, labels)])
    return asked


def role_of(metrics: Iterable[Metric]) -> Role:
    """Whether metrics score predicted labels or scores; an error if some do and some do not."""
    [role, *more_roles] = {metric.role for metric in metrics}
    if more_roles:
        msg = "some metrics are of predicted labels and some of scores: ask for each kind alone"
        raise ValueError(msg)
    return role


def check_sure(metrics: Iterable[Metric], instead: str = "score it with by") -> None:
    """Raise a ValueError unless all metrics have intervals. It says what to do `instead`."""
    for metric in metrics:
        if metric.no_interval:
            other = "roc_auc" if metric.is_of_scores else "mcc"
            raise ValueError(
                f"metric '{metric.name}' has no interval and no test: {metric.no_interval}; "
                f"{instead}, and test another metric, such as '{other}'"
            )


def with_tests(metrics: list[Metric], *, ratio: bool = False) -> list[Metric]:
    """The metrics; a ValueError unless differences of all, or with `ratio` ratios, have a test."""
    check_sure(metrics)
    for metric in metrics:
        if metric.is_log and not ratio:
            raise refused(
                f"metric '{metric.name}' has no largest value, so its differences have no test: "
                "compare ratios, as in contrast with ",
                option("ratio", value=True),
                ", or test 'tpr' and 'fpr' apart",
            )
    return metrics


def check_rate(metric: Metric, where: str) -> None:
    """Raise a ValueError if a metric counts rows. `where` has more of them, as large slices do."""
    if metric.is_count:
        why = f"counts rows, and {where} have more: use a rate, as 'tpr'"
        raise ValueError(f"metric '{metric.name}' {why}")


def check_multilabel(metrics: Iterable[Metric]) -> None:
    """Raise a ValueError unless all metrics are defined for rows with several labels."""
    for metric in metrics:
        if not metric.multilabel:
            names = ", ".join(repr(name) for name, other in _REGISTRY.items() if other.multilabel)
            raise ValueError(
                f"metric '{metric.name}' needs one label a row, but the labels are lists; for "
                f"lists, use {names}"
            )


def listed(metrics: IntoMetrics) -> list[IntoMetric]:
    """The metrics that a user asks for, one or several, as a list."""
    return [metrics] if _is_one(metrics) else [*metrics]


def _is_one(metrics: IntoMetrics) -> TypeIs[IntoMetric]:
    return isinstance(metrics, (str, Metric, pl.Expr)) or callable(metrics)


def _of_definition(name: str | None, definition: Definition) -> Metric:
    expression = definition(pl.col) if callable(definition) else definition
    if not isinstance(expression, pl.Expr):
        raise TypeError(
            "a metric must be a name or a polars expression, or a function of col that returns "
            f"an expression, got {expression!r}"
        )
    if expression.meta.has_multiple_outputs():
        msg = f"a metric must be one column, but {expression} gives several; list them one by one"
        raise ValueError(msg)
    named = {*expression.meta.root_names()}
    is_of_pairs = bool(named & {"gold", "pred"})
    of_classes, of_pairs = ("label", *CLASS_DTYPES), ("gold", "pred", *PAIR_DTYPES)
    for column in sorted(named - {*(of_pairs if is_of_pairs else of_classes)}):
        built_in = f"; for the metric of this name, pass '{column}'" if column in _REGISTRY else ""
        raise pl.exceptions.ColumnNotFoundError(
            f"no column '{column}' for a metric{built_in}; use columns of classes(), "
            f"{', '.join(map(repr, of_classes))}; or of pairs, {', '.join(map(repr, of_pairs))}"
        )
    sums = {"value": definition if callable(definition) else lambda _: expression}
    # A mean of scores of classes is another score without one of the classes.
    is_of_all = not named.isdisjoint(CLASS_RANGES) and "label" not in named
    return Metric(
        name=expression.meta.output_name() if name is None else name,
        value=lambda terms: terms["value"],
        formula="",
        source="",
        range=None,
        classes={} if is_of_pairs else sums,
        pairs=sums if is_of_pairs else {},
        classes_needed="all gold" if is_of_all else "any",
        multilabel=not is_of_pairs,
    )


class NoPositiveError(ValueError):
    """A metric of one class lacks its label."""


def positive_class(
    metrics: Sequence[Metric], positive: pl.Expr | None, labels: pl.DataType
) -> pl.Expr | None:
    """Check the metrics for labels of this dtype, and return the condition "the class is positive".

    It is None if no metric needs it. Else `positive` must be given, or the labels must be Boolean.
    """
    check_aggregations(metrics, labels)
    if any(metric.is_of_scores for metric in metrics):  # The label says whether a row is positive.
        return pl.col("label")
    name = next((metric.name for metric in metrics if metric.is_of_positive), None)
    if name is None:
        return None
    if positive is None:
        if labels != pl.Boolean:
            of_all = f"{name}_macro"
            hint = f"; for all classes, use '{of_all}'" if of_all in _REGISTRY else ""
            msg = said(
                f"metric '{name}' scores one class against the rest: say which label is positive, "
                "as in ",
                option("positive", "fraud", of="log"),
                f"; the labels are {labels}{hint}",
            )
            raise NoPositiveError(msg)
        positive = pl.lit(value=True)
    return pl.col("label").eq_missing(positive)


def check_aggregations(metrics: Iterable[Metric], labels: pl.DataType) -> None:
    """Raise a SchemaError unless each metric has one value per slice."""
    classes = pl.Schema({"label": labels, **CLASS_DTYPES})
    pairs = pl.Schema({"gold": labels, "pred": labels, **PAIR_DTYPES})
    for metric in metrics:
        if metric.name in _BUILT_IN and metric is _REGISTRY[metric.name]:
            continue  # Tests check them.
        of_classes = [("class", classes, sum_(pl.col)) for sum_ in metric.classes.values()]
        of_pairs = [("pair", pairs, sum_(pl.col)) for sum_ in metric.pairs.values()]
        for kind, schema, expression in of_classes + of_pairs:
            rows = pl.LazyFrame(schema={"slice": pl.Int8(), **schema}).group_by("slice")
            dtype = rows.agg(expression.alias("value")).collect_schema()["value"]
            if isinstance(dtype, pl.List):
                raise pl.exceptions.SchemaError(
                    f"metric '{metric.name}' has a value for each {kind}, but must have one "
                    f"per slice; aggregate it, as in {expression}.mean() or .min()"
                )

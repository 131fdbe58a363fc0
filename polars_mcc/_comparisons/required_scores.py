"""The thresholds of `check`: one per metric, or one per slice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import polars as pl

from polars_mcc._base.allowed_values import check_number
from polars_mcc._base.message_parts import Words, option, refused
from polars_mcc._counts.sliced_log import joined
from polars_mcc._frame.columns import as_expr
from polars_mcc._intervals.interval_options import PERIODS, ranges_of
from polars_mcc._metrics import registry
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.registry import IntoMetric
from polars_mcc._metrics.slice_facts import FACT, defined

Bounds: TypeAlias = float | Mapping[str, float] | pl.DataFrame
"""A threshold for one metric, thresholds by metric, or a DataFrame with one per slice."""


@dataclass(frozen=True)
class Rule:
    """The least or the largest value that a slice may have, for one metric."""

    metric: Metric
    bound: Literal["min", "max"]
    given: float | pl.DataFrame
    """The threshold, or a frame with one per slice."""
    value: str
    """The column that is compared with the threshold."""

    @property
    def mark(self) -> str:
        """The column that says whether a slice fails."""
        threshold = "each" if isinstance(self.given, pl.DataFrame) else self.given
        return f"{FACT}{self.bound} {self.metric.name} {threshold}"

    @property
    def p_value(self) -> str:
        """The column with the p-value that a slice meets the threshold."""
        return f"{self.mark} p"

    @property
    def threshold(self) -> pl.Expr:
        """The threshold of each slice."""
        return pl.col(self.bound) if isinstance(self.given, pl.DataFrame) else pl.lit(self.given)

    @property
    def can_judge(self) -> pl.Expr:
        """Whether a slice has a threshold, and the gold labels that the score needs."""
        return pl.all_horizontal(self.threshold.is_not_null(), self.has_gold)

    @property
    def has_gold(self) -> pl.Expr:
        """Whether a slice has the gold labels that the score needs."""
        return pl.all_horizontal(pl.col(self._defined).is_not_null())

    @property
    def is_0(self) -> pl.Expr:
        """Whether the score is 0/0; if it is compared, the score of the baseline is not."""
        *before, here = map(pl.col, self._defined)
        return pl.all_horizontal(here == 0, *(mark == 1 for mark in before))

    @property
    def _defined(self) -> list[str]:
        """The marks that say whether the score is defined; the last one is of the log itself."""
        mark = defined(self.metric).name
        return [f"{mark}_{period}" for period in PERIODS.categories] if self.is_diff else [mark]

    @property
    def is_diff(self) -> bool:
        """Whether the difference to a baseline is compared."""
        return self.value == "diff"

    def misses(self, part: str = "") -> pl.Expr:
        """Whether the score, or its limit "_low" or "_high", is on the wrong side."""
        value = pl.col(f"{self.value}{part}")
        return value < self.threshold if self.bound == "min" else value > self.threshold

    @property
    def fails(self) -> pl.Expr:
        """Whether the score is 0/0 or misses the threshold; null if it cannot be judged."""
        is_wrong = self.misses().fill_null(value=False) | self.is_0
        return pl.when(self.can_judge).then(is_wrong)

    def surely_fails(self, ci: float) -> pl.Expr:
        """Whether the whole interval misses the threshold, and the p-value is below 1 - ci.

        It is null without a p-value.
        """
        is_beyond = self.misses({"min": "_high", "max": "_low"}[self.bound])
        p = pl.col(self.p_value)
        return pl.when(p.is_not_null()).then(is_beyond & (p < 1 - ci))

    def words(self, *, is_0: bool) -> str:
        """The text of a failure, for the message; `is_0`: some slices fail because of 0/0."""
        wrong = {"min": "below", "max": "above"}[self.bound]
        threshold = f"its {self.bound}" if isinstance(self.given, pl.DataFrame) else self.given
        threshold = "the baseline" if self.is_diff else threshold
        return f"{self.metric.name} {wrong} {threshold}{' or 0/0' if is_0 else ''}"


def required(
    asked: IntoMetric, bound: Literal["min", "max"], given: Bounds | None, labels: pl.DataType
) -> list[Rule]:
    """The thresholds that a user gives, `min` or `max`, for metrics of labels of this dtype."""
    if given is None:
        return []
    of_metrics = [*given.items()] if isinstance(given, Mapping) else [(asked, given)]
    rules = [
        Rule(metric, bound, threshold, metric.name)
        for name, threshold in of_metrics
        for metric in registry.find_metrics(name, labels)
    ]
    for rule in rules:
        frame = rule.given if isinstance(rule.given, pl.DataFrame) else None
        if frame is None or isinstance(given, Mapping):
            check_number(bound, rule.given)  # type: ignore[arg-type]
        elif not frame.schema.get(bound, pl.String()).is_numeric():
            msg = f"{bound} is a frame without a numeric column '{bound}'; it has {frame.schema}"
            raise ValueError(msg)
        _check_range(rule)
        if bound == "min" and rule.metric.less_is_better:
            instead = option("max", rule.given) if frame is None else Words("max=...")
            raise refused(
                f"for '{rule.metric.name}' less is better: pass a maximum, as in ", instead
            )
    return [*{rule.mark: rule for rule in rules if rule.given is not None}.values()]  # each once


def _check_range(rule: Rule) -> None:
    """Raise a ValueError if no score can pass a threshold, or none can fail it: 70 for 0.7, NaN.

    None, and a null in a frame, is no threshold.
    """
    name, limits = rule.metric.name, rule.metric.range
    low, high = ranges_of([rule.metric]).get(name, (None, None))
    given, bound = rule.given, rule.bound
    numbers = given[bound].cast(pl.Float64).unique() if isinstance(given, pl.DataFrame) else [given]
    for number in numbers:
        if number is None:
            continue
        if not -math.inf < number < math.inf:
            raise refused(option(bound, number), f" is no threshold for {name}: it must be finite")
        if (low is not None and number < low) or (high is not None and number > high):
            raise refused(option(bound, number), f" is outside the range of {name}, {limits}")


def with_own(slices: pl.LazyFrame, rules: Sequence[Rule], keys: Sequence[str]) -> pl.LazyFrame:
    """Join the thresholds given per slice. A slice that only has a threshold gets a row too."""
    for rule in rules:
        if not isinstance(rule.given, pl.DataFrame):
            continue
        named = [name for name in rule.given.columns if name != rule.bound]
        if {*named} != {*keys} or rule.bound in keys:
            raise ValueError(
                f"{rule.bound} must have the keys of the slices, {', '.join(map(repr, keys))}, and "
                f"a column '{rule.bound}'; it has {', '.join(map(repr, rule.given.columns))}"
            )
        if rule.given.select(map(as_expr, named)).is_duplicated().any():
            raise ValueError(f"{rule.bound} has several rows for one slice: keep one row per slice")
        for key, dtype in slices.select(map(as_expr, named)).collect_schema().items():
            own_dtype = rule.given.schema[key]
            if dtype != own_dtype and not (dtype.is_integer() and own_dtype.is_integer()):
                msg = f"'{key}' is {own_dtype} in {rule.bound}, but {dtype} in the log: cast it"
                raise ValueError(msg)
        own = rule.given.lazy()
        on = [as_expr(name) for name in named]
        # Slices that only have a threshold come last.
        slices = joined(slices, own, on, how="full", coalesce=True, maintain_order="left_right")
    return slices

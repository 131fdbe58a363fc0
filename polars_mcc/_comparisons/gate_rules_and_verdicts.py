"""The thresholds and the baseline of `check`, the verdict of each slice, and sentences about it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product, takewhile
from typing import Any, Literal, TypeAlias

import polars as pl
import polars.selectors as cs

from polars_mcc._base.allowed_values import Correction, check_number
from polars_mcc._base.message_parts import Words, option, refused
from polars_mcc._base.slice_names import slice_name
from polars_mcc._base.values_as_text_or_markdown import as_text, rows_in_words
from polars_mcc._counts.exact_sums import FloatNumbers
from polars_mcc._counts.pair_counts import pairs
from polars_mcc._counts.sliced_log import COMPLETE, KEY, SET, SlicedLog, joined
from polars_mcc._frame.columns import as_expr
from polars_mcc._frame.labels import as_compared, common_dtype, is_text
from polars_mcc._intervals.interval_options import PERIODS, ranges_of
from polars_mcc._metrics import registry
from polars_mcc._metrics.exact_scores import FACT, defined
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.registry import IntoMetric

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
    than: str = "the baseline"
    """What a difference is compared with."""

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
        threshold = self.than if self.is_diff else threshold
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


FAILED, VERDICT, ADJUSTED = "failed", "verdict", "p_adjusted"
NOT_SURE = "not significant"
VERDICTS = pl.Enum(["fails", NOT_SURE, "passes", "not judged"])
_SHOWN = 20  # slices that a message shows, at most


def verdict_of(is_not_judged: pl.Expr, fails: pl.Expr, is_not_sure: pl.Expr) -> pl.Expr:
    """The verdict of a slice, by the first of these that is true."""
    words = {"not judged": is_not_judged, "fails": fails, NOT_SURE: is_not_sure}
    said = [pl.when(is_so).then(pl.lit(word)) for word, is_so in words.items()]
    return pl.coalesce(*said, pl.lit("passes")).cast(VERDICTS)


@dataclass(frozen=True)
class Judging:
    """What a slice must fulfil. With a level `ci`, a failure must be significant."""

    rules: Sequence[Rule]
    ci: float | None
    correction: Correction | None
    is_small: pl.Expr
    """Whether a slice has too few rows."""

    def marked(self, slices: pl.DataFrame, *, is_frequency: bool) -> pl.DataFrame:
        """Add the verdict of each slice, and a mark per rule: whether the slice fails it.

        The mark is null if the rule does not judge the slice. `is_frequency`: a weight
        counts rows.
        """
        if self.ci is not None:
            slices = self._with_p_values(slices, self.ci, is_frequency=is_frequency)
        fails = (
            rule.fails if self.ci is None else rule.surely_fails(self.ci) for rule in self.rules
        )
        marks = [rule.mark for rule in self.rules]
        failed = [pl.when(rule.mark).then(pl.lit(rule.metric.name)) for rule in self.rules]
        is_not_sure = pl.any_horizontal(self._is_not_sure(rule) for rule in self.rules)
        verdict = verdict_of(
            pl.all_horizontal(pl.col(marks).is_null()), pl.any_horizontal(marks), is_not_sure
        )
        return slices.with_columns(
            pl.when(~self.is_small).then(fails_it).alias(rule.mark)
            for rule, fails_it in zip(self.rules, fails, strict=True)
        ).with_columns(
            pl.concat_str(failed, separator=", ", ignore_nulls=True).alias(FAILED),
            verdict.alias(VERDICT),
        )

    def _is_not_sure(self, rule: Rule) -> pl.Expr:
        """Whether a slice misses a threshold, but does not fail."""
        return ~pl.col(rule.mark) & rule.misses()

    def _with_p_values(
        self, slices: pl.DataFrame, ci: float, *, is_frequency: bool
    ) -> pl.DataFrame:
        """Add the p-value of each rule, and `p_adjusted`, the least of a slice.

        They are corrected for all slices and rules that are judged.
        """
        import numpy as np  # noqa: PLC0415 - only for intervals

        from polars_mcc._comparisons import evidence_and_p_values as tests  # noqa: PLC0415 - likewise
        from polars_mcc._intervals.count_arrays import floats, of_arrays  # noqa: PLC0415 - likewise

        p_values = []
        for rule in self.rules:
            if rule.is_diff:
                p = floats(slices[rule.p_value])
            else:
                asked = (rule.metric, rule.bound, rule.threshold, ci)
                p = tests.of_threshold(slices, *asked, is_frequency=is_frequency)
            able = slices.select((~self.is_small & rule.can_judge).alias("able"))["able"]
            p_values.append(np.where(able.to_numpy(), p, np.nan))
        every = np.concatenate(p_values)
        if self.correction is not None:
            every = tests.adjusted(every, self.correction)
        names = [rule.p_value for rule in self.rules]
        columns = dict(zip(names, np.split(every, len(names)), strict=True))
        return slices.with_columns(of_arrays(**columns)).with_columns(
            pl.min_horizontal(names).alias(ADJUSTED)
        )

    def failing(self, marked: pl.DataFrame) -> Iterator[str]:
        """How many slices fail, by rule; and how many miss one by chance: a sentence each."""
        times = {}
        for rule in self.rules:
            slices = marked.filter(rule.mark)
            if slices.height:
                is_0 = self.ci is None and slices.select(rule.is_0.any()).item()
                times[rule.words(is_0=is_0)] = slices.height
        if times:
            what = (
                words if len(self.rules) == 1 else f"{words} ({n})" for words, n in times.items()
            )
            sure = "" if self.ci is None else f", significantly (ci={self.ci})"
            n = marked.filter(pl.col(VERDICT) == "fails").height
            judged = marked.filter(pl.col(VERDICT) != "not judged").height
            yield f"{n} of {judged} slices {'fails' if n == 1 else 'fail'}: {', '.join(what)}{sure}"
        not_sure = marked.filter(pl.col(VERDICT) == NOT_SURE)
        if not_sure.height:
            words = [
                rule.words(is_0=False)
                for rule in self.rules
                if not_sure.select(self._is_not_sure(rule).any()).item()
            ]
            has = "has" if not_sure.height == 1 else "have"
            yield f"{not_sure.height} more {has} {' or '.join(words)}, but not significantly"

    def met(self, marked: pl.DataFrame, size: str) -> Iterator[str]:
        """A sentence for each requirement, with the score that is nearest to its limit.

        No slice fails. `size` is the column of rows.
        """
        apart = [name for name in (SET, "model") if name in marked.columns]
        keys = {*takewhile(lambda name: name not in _AFTER_KEYS, marked.columns)} - {SET}
        parts = marked.partition_by(apart, maintain_order=True) if apart else [marked]
        for part, rule in product(parts, self.rules):
            # Of a key that a set lacks, all values are null.
            own = [key for key in keys if part[key].null_count() < part.height]
            texts = {key: as_text(as_expr(key), part.schema[key]) for key in own}
            limit, name = rule.threshold.alias(_LIMIT), slice_name(texts).alias(_NAME)
            slices = part.filter(pl.col(rule.mark).is_not_null()).with_columns(limit, name)
            margin = pl.col(rule.value) - pl.col(_LIMIT)
            nearest = slices.sort(margin, descending=rule.bound == "max").head(1)
            # A key with a time zone is no value of Python where no zones are, as in Windows.
            for row in nearest.drop(cs.datetime(time_zone="*")).to_dicts():
                figure = rule.metric.name + f" minus {rule.than}" * rule.is_diff
                figure += f" {in_words(row, rule.value, has_limits=self.ci is not None)}"
                if slices.height > 1:
                    ends = {"min": "lowest", "max": "highest"}
                    is_of_frame = isinstance(rule.given, pl.DataFrame)
                    end = "nearest" if is_of_frame else ends[rule.bound]
                    figure = f"{end} {figure} of {row[_NAME]}"
                outside = slices.select(self._is_not_sure(rule).sum()).item()
                left, rows = part.height - slices.height, slices.select(size).sum().item()
                yield requirement(
                    row,
                    f"{figure}, {AT[rule.bound]} {row[_LIMIT]:g}",
                    "passes",
                    f"{slices.height:,} slice{'s' * (slices.height > 1)}",
                    "" if COMPLETE in part.columns else rows_in_words(rows),
                    f"{outside:,} outside but not significantly" * (outside > 0),
                    f"{left:,} not judged" * (left > 0),
                )

    def unjudged(self, marked: pl.DataFrame, models: Sequence[str]) -> list[str]:
        """The metrics that are judged in no slice, each with the model if there are several."""
        of_models = marked.group_by(models, maintain_order=True) if models else [((), marked)]
        unjudged = {
            f"{rule.metric.name}{''.join(f' of {name}' for name in model)}": None
            for model, slices in of_models
            for rule in self.rules
            if slices[rule.mark].is_null().all()
        }
        return [*unjudged]

    def left_out(self, marked: pl.DataFrame, sizes: Sequence[str], few: str) -> str:
        """How many slices are not judged, and why."""
        left = marked.filter(pl.col(VERDICT) == "not judged")
        number = left.height
        if not number:
            return ""
        bounds = sorted({rule.bound for rule in self.rules if isinstance(rule.given, pl.DataFrame)})
        has_own = bool(bounds) and all(isinstance(rule.given, pl.DataFrame) for rule in self.rules)
        has_gold = pl.any_horizontal(rule.has_gold for rule in self.rules)
        why = {
            "not in the log": pl.all_horizontal(pl.col(sizes).is_null()),
            f"no {' and no '.join(bounds)}": pl.all_horizontal(pl.col(bounds).is_null(), has_own),
            few: self.is_small,
            "no interval": pl.all_horizontal(has_gold, self.ci is not None),
            "no score, or not the gold labels that it needs": pl.lit(value=True),
        }
        reasons = {}
        for words, is_so in why.items():
            rest = left.filter(~is_so)
            if rest.height < left.height:
                reasons[words] = left.height - rest.height
            left = rest
        each = (
            f"{words} ({times})" if len(reasons) > 1 else words for words, times in reasons.items()
        )
        return f" ({number} not judged: {', '.join(each)})"


AT = {"min": "at least", "max": "at most"}
_AFTER_KEYS = ("model", "baseline", "metric", "n", COMPLETE)
_LIMIT, _NAME = f"{FACT}limit", f"{FACT}name"


def in_words(row: Mapping[str, Any], name: str, *, has_limits: bool = True) -> str:
    """A score with its interval, if it has one: `0.924 (0.904 to 0.944)`."""
    score, low, high = (row.get(f"{name}{part}") for part in ("", "_low", "_high"))
    text = "unknown" if score is None else f"{score:{'.3f' if isinstance(score, float) else ','}}"
    is_alone = not has_limits or low is None or high is None
    return text if is_alone else f"{text} ({low:.3f} to {high:.3f})"


def requirement(row: Mapping[str, Any], figure: str, *judged: str) -> str:
    """The sentence about a requirement: its figure and limit, and what was judged."""
    model = f"{row['model']}: " if "model" in row else ""
    return f"{model}{figure}: {', '.join(filter(None, judged))}"


def table(frame: pl.DataFrame) -> str:
    """The frame as text: all columns, and the first rows. "" if there is no row."""
    if frame.is_empty():
        return ""
    more = f"\n… and {frame.height - _SHOWN} more" if frame.height > _SHOWN else ""
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=-1, tbl_hide_dataframe_shape=True):
        return f"\n{frame.head(_SHOWN)}{more}"


def in_sets(baseline: SlicedLog, log: SlicedLog, model: tuple[str, ...]) -> SlicedLog:
    """The baseline in the sets of keys of the log. Its model is a key of each set."""
    sets = log.sets and {name: (*keys, *model) for name, keys in log.sets.items()}
    return replace(baseline, sets=sets)


def kind_of(dtype: pl.DataType) -> object:
    """Equal for dtypes whose values can be compared: those of all numbers, or of all text."""
    return "text" if is_text(dtype) else dtype.is_numeric() or dtype.base_type()


def with_baseline(baseline: SlicedLog, log: SlicedLog) -> tuple[SlicedLog, pl.LazyFrame]:
    """Stack the pairs of two logs as two periods: the baseline is `before`, the log `after`."""
    labels = common_dtype(
        [("the labels", log.label_dtype), ("the labels of the baseline", baseline.label_dtype)]
    )
    numbers = baseline.numbers if isinstance(baseline.numbers, FloatNumbers) else log.numbers
    apart = replace(log, label_dtype=labels, pred_dtype=labels, numbers=numbers)
    apart = apart.split_by("period")

    def of(cells: pl.LazyFrame, period: str, dtype: pl.DataType) -> pl.LazyFrame:
        sides = (
            as_compared(pl.col(side), f"{side} of {period}", dtype, labels).cast(labels).alias(side)
            for side in ("gold", "pred")
        )
        return cells.select(
            pl.lit(period, PERIODS).alias("period"),
            *log.slice,
            *sides,
            pl.col("n").cast(numbers.count),
            "n_null",
        )

    counted = pairs(baseline)
    if log.has_models:  # In counts, the model is a key. Drop models that the log does not have.
        [*_, model] = log.slice
        models = pl.col(KEY + "model").cast(log.model_dtype, strict=False)
        counted = counted.with_columns(models.alias(model)).filter(pl.col(model).is_not_null())
    both = [of(counted, "before", baseline.label_dtype), of(pairs(log), "after", log.label_dtype)]
    return apart, pl.concat(both, how="vertical_relaxed")

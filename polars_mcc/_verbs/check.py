"""`check`: raise an error that shows the slices that miss a threshold or a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import polars as pl

from polars_mcc._counts.cut import cut
from polars_mcc._counts.exact import Floats
from polars_mcc._counts.pairs import pairs
from polars_mcc._counts.sliced import KEY, SET, SlicedLog
from polars_mcc._inference.asked import Asked
from polars_mcc._inference.intervals import ranges_of
from polars_mcc._inference.periods import PERIODS, changes, columns_for, columns_in_answer
from polars_mcc._log import defaults
from polars_mcc._log.choices import check_at_least, check_level, check_number
from polars_mcc._log.columns import MissingColumn, quoted
from polars_mcc._log.described import Described, Meaning
from polars_mcc._log.frames import Frame, OtherFrame
from polars_mcc._log.keys import IntoKey, check_plain
from polars_mcc._log.labels import common_dtype
from polars_mcc._scores import registry
from polars_mcc._scores.metric import Metric
from polars_mcc._scores.registry import IntoMetric
from polars_mcc._verbs.by import by

_FAILED, _VERDICT = "failed", "verdict"
_POSITIVE = ("tp", "fp", "fn")
_VERDICTS = pl.Enum(["fails", "passes", "not judged"])
_SHOWN = 20  # slices that a message shows, at most
_LABELS = 10  # labels that a message shows, at most


Bar: TypeAlias = float | Mapping[str, float] | pl.DataFrame
"""A threshold for one metric, thresholds by metric, or a DataFrame with one per slice."""


class CheckError(AssertionError):
    """Slices of a log fail `check`. The message shows which.

    Attributes:
        failures: The slices that fail, one row each.
        judged: All slices, with their `verdict`.
    """

    __module__ = "polars_mcc"  # where users find it

    def __init__(self, message: str, judged: pl.DataFrame) -> None:
        """Take the message, and the judged slices."""
        super().__init__(message)
        self.judged = judged
        self.failures = judged.filter(pl.col(_VERDICT) == "fails")

    def __reduce__(self) -> tuple[type[CheckError], tuple[str, pl.DataFrame]]:
        """Keep `judged` when the error is pickled, as between processes."""
        return type(self), (str(self), self.judged)


def check(
    log: Described[Any],
    *keys: IntoKey,
    min: Bar | None = None,  # noqa: A002 - as a user says it
    max: Bar | None = None,  # noqa: A002 - likewise
    metric: IntoMetric = defaults.METRIC,
    no_worse_than: pl.DataFrame | pl.LazyFrame | OtherFrame | None = None,
    min_n: int = defaults.CHECKED_N,
    ci: float | None = None,
) -> pl.DataFrame:
    """Raise an error if a slice misses a threshold or is worse than a baseline: a release gate.

    Unlike the other verbs, `check` runs the query of a LazyFrame at once.

    Args:
        *keys: The keys to group by, as in `by`.
        min: The least score that a slice may have: a number, for `metric`; or one number per
            metric, as `{"mcc": 0.5, "recall_macro": 0.6}`. In Python also a DataFrame with the
            keys and a column `min`: one threshold per slice.
        max: The largest score that a slice may have, in the same forms, for metrics where less is
            better, as `{"fnr": 0.1}`.
        metric: The metric to check, if `min` and `max` do not name metrics: a name of `metrics()`.
            In Python also an expression, as in `by`.
        no_worse_than: A baseline, instead of `min` and `max`: the counts of another log, such as
            the log of last week, by the same keys (see `counts`).
        min_n: The least number of rows of a slice, here and in the baseline. Smaller slices are not
            judged.
        ci: The confidence level of a failure. A slice fails only if the whole interval of its score
            is below `min` (above `max`), or the whole interval of its difference to the baseline is
            on the worse side of 0. A slice without an interval, such as one of a single predicted
            class, is judged by its score. None: the score alone decides, however few the rows. The
            level holds for each slice; there is no correction for the number of slices.

    Returns:
        A DataFrame with one row per slice and the columns of `by`, or with a baseline the columns
        of `drift` without p-values, and

        - `failed` (String): the metrics that fail, "" if none does;
        - `verdict` (Enum): "passes" or "not judged". A slice is not judged if it has too few rows
          or no score, or if a DataFrame of thresholds has none for it. A threshold for a slice
          that the log does not have is a row that is not judged.

    Raises:
        polars_mcc.CheckError: A slice fails, or no slice is judged. It is an AssertionError. Its
            message and its attribute `failures` have a table of the slices that fail.
        ValueError: Neither thresholds nor a baseline, or both; `min` for a metric where less is
            better; a positive label that no row has; a baseline for windows, clusters or sample
            weights.

    The errors of `by` are raised too.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": ["a", "a", "b", "b"], "pred": ["a", "a", "b", "a"]})
        >>> log.mcc.check(min=0.5)["verdict"].to_list()
        ['passes']
        >>> log.mcc.check(min={"mcc": 0.6, "accuracy": 0.7})
        Traceback (most recent call last):
            ...
        polars_mcc.CheckError: 1 of 1 slices fails: mcc below 0.6 (1)
        ┌─────┬─────────┬──────────┬────────┬────────┐
        │ n   ┆ mcc     ┆ accuracy ┆ n_null ┆ failed │
        │ --- ┆ ---     ┆ ---      ┆ ---    ┆ ---    │
        │ i64 ┆ f64     ┆ f64      ┆ i64    ┆ str    │
        ╞═════╪═════════╪══════════╪════════╪════════╡
        │ 4   ┆ 0.57735 ┆ 0.75     ┆ 0      ┆ mcc    │
        └─────┴─────────┴──────────┴────────┴────────┘

    Command line:
        polars-mcc check logs/ --by country --min 0.6 --min-n 100

        polars-mcc check logs/ --by country --min mcc=0.5 --min recall_macro=0.6 --max fnr=0.1
    """
    chosen = registry.one(metric) if no_worse_than is None else registry.tested(metric)
    bars = [*_bars(metric, "min", min), *_bars(metric, "max", max)]
    if bool(bars) == (no_worse_than is not None):
        msg = (
            "check needs either min or max, such as min=0.6, or no_worse_than=, the counts of a "
            "baseline"
        )
        raise ValueError(msg)
    check_at_least("min_n", min_n, 1)
    if ci is not None:
        check_level(ci)
        registry.check_sure(bar.metric for bar in bars)
    if no_worse_than is None:
        of_bars = {bar.metric.name: bar.asked for bar in bars}
        sliced = cut(log, keys, answers=[*of_bars, _FAILED, _VERDICT])
        found, sizes = by(log, *keys, metrics=[*of_bars.values()], ci=ci).lazy(), ["n"]
        found = _with_own_bars(found, bars, [*sliced.names.values()])
    else:
        level = defaults.LEVEL if ci is None else ci
        found = _compared(log, keys, no_worse_than, level, chosen)
        sizes = ["n_before", "n_after"]
        bars = [_Bar(chosen, metric, "max" if chosen.less_is_better else "min", 0.0, "diff")]
    is_sized = pl.all_horizontal(pl.col(size) >= min_n for size in sizes).fill_null(value=False)
    has_score = pl.any_horizontal(bar.has_score for bar in bars)
    fails = {
        f"fails {place}": bar.fails(ci) & bar.has_score & is_sized for place, bar in enumerate(bars)
    }
    names = [
        pl.when(name).then(pl.lit(bar.metric.name)) for name, bar in zip(fails, bars, strict=True)
    ]
    verdict = (
        pl.when(~(is_sized & has_score))
        .then(pl.lit("not judged"))
        .when(pl.any_horizontal(*fails))
        .then(pl.lit("fails"))
        .otherwise(pl.lit("passes"))
    )
    judged = (
        found.with_columns(**fails)
        .with_columns(
            pl.concat_str(names, separator=", ", ignore_nulls=True).alias(_FAILED),
            verdict.cast(_VERDICTS).alias(_VERDICT),
        )
        .collect()
    )
    if no_worse_than is None:
        rates = [bar.value for bar in bars if bar.metric.is_of_positive]
        _check_positive(log, judged.select(pl.col(rates).cast(pl.Float64)))
    counted = {bar.words: judged[name].sum() for name, bar in zip(fails, bars, strict=True)}
    failing = {words: times for words, times in counted.items() if times}
    what = ", ".join(
        words if len(bars) == 1 else f"{words} ({times})" for words, times in failing.items()
    )
    what += "" if ci is None else f", significantly (ci={ci})"
    hidden = [_VERDICT] if len(bars) > 1 else [_FAILED, _VERDICT]
    return _passed(judged.drop(*fails), what, min_n, hidden)


@dataclass(frozen=True)
class _Bar:
    """The least or the largest value that a slice may have, for one metric."""

    metric: Metric
    asked: IntoMetric
    side: Literal["min", "max"]
    at: float | pl.DataFrame
    value: str  # the column that is compared with the threshold

    @property
    def has_score(self) -> pl.Expr:
        """Whether a slice has the score, and a threshold."""
        value = pl.col(self.value)
        return value.is_not_null() & value.is_not_nan() & self._at.is_not_null()

    @property
    def _at(self) -> pl.Expr:
        return pl.col(self.side) if isinstance(self.at, pl.DataFrame) else pl.lit(self.at)

    def fails(self, ci: float | None) -> pl.Expr:
        """Whether the score, or with a level the whole interval, is on the wrong side."""
        end = {"min": "high", "max": "low"}[self.side]
        value = pl.col(self.value) if ci is None else pl.coalesce(f"{self.value}_{end}", self.value)
        return value < self._at if self.side == "min" else value > self._at

    @property
    def words(self) -> str:
        """The text of a failure, for the message."""
        wrong = {"min": "below", "max": "above"}[self.side]
        if self.value == "diff":
            return f"{self.metric.name} {wrong} the baseline"
        at = f"its {self.side}" if isinstance(self.at, pl.DataFrame) else self.at
        return f"{self.metric.name} {wrong} {at}"


def _bars(asked: IntoMetric, side: Literal["min", "max"], given: Bar | None) -> list[_Bar]:
    """The thresholds that a user gives."""
    if given is None:
        return []
    of_metrics = [*given.items()] if isinstance(given, Mapping) else [(asked, given)]
    bars = [
        _Bar(metric, name, side, at, metric.name)
        for name, at in of_metrics
        for metric in registry.chosen(name)
    ]
    for bar in bars:
        if not isinstance(bar.at, pl.DataFrame) or isinstance(given, Mapping):
            check_number(side, bar.at)  # type: ignore[arg-type]
            _check_range(bar)
        elif not bar.at.schema.get(side, pl.String()).is_numeric():
            msg = f"{side} is a frame without a numeric column '{side}'; it has {bar.at.schema}"
            raise ValueError(msg)
        if side == "min" and bar.metric.less_is_better:
            msg = f"for '{bar.metric.name}' less is better: pass a maximum, as in max={bar.at!r}"
            raise ValueError(msg)
    return bars


def _check_positive(log: Described[Any], rates: pl.DataFrame) -> None:
    """Raise a ValueError if no row has the positive label: its rates are 0/0.

    The rows are counted again only if every rate may be 0/0. Labels of an Enum are known to exist.
    """
    meaning = log.meaning
    is_known = isinstance(meaning.label_dtype, (pl.Boolean, pl.Enum))
    if meaning.positive is None or is_known or not rates.width:
        return
    if not all(rate.fill_nan(None).drop_nulls().is_in([0.0, 1.0]).all() for rate in rates):
        return
    all_rows = by(log, metrics=_POSITIVE).lazy().collect()
    if all_rows["n"].sum() and not all_rows.select(pl.sum_horizontal(_POSITIVE)).sum().item():
        label = pl.select(meaning.positive).item()
        columns = quoted(meaning.label_columns)
        rows = log.frame.lazy() if isinstance(log.frame, Frame) else None
        told = f"; the labels are {labels_of(meaning, rows)}" if rows is not None else ""
        msg = f"no scored row has the positive label {label!r} in {columns}{told}"
        raise ValueError(msg)


def labels_of(meaning: Meaning, rows: pl.LazyFrame) -> str:
    """The labels that occur in some rows, for a message."""
    found = pl.concat(rows.select(one.explode().alias("label")) for one in meaning.labels)
    labels = (
        found.unique().drop_nulls().sort("label").head(_LABELS + 1).collect()["label"].to_list()
    )
    more = ["…"] if len(labels) > _LABELS else []
    return ", ".join([*map(repr, labels[:_LABELS]), *more])


def _check_range(bar: _Bar) -> None:
    """Raise a ValueError if no score can pass a threshold, or none can fail it: 70 for 0.7."""
    name, limits = bar.metric.name, bar.metric.range
    if limits is None or bar.at is None:  # None is no threshold
        return
    low, high = ranges_of([bar.metric])[name]
    if not ((low is None or bar.at >= low) and (high is None or bar.at <= high)):
        msg = f"{bar.side}={bar.at} is outside the range of {name}, {limits}"
        raise ValueError(msg)


def _with_own_bars(found: pl.LazyFrame, bars: Sequence[_Bar], keys: Sequence[str]) -> pl.LazyFrame:
    """Join the thresholds given per slice. A slice that only has a threshold gets a row too."""
    for bar in bars:
        if not isinstance(bar.at, pl.DataFrame):
            continue
        named = [name for name in bar.at.columns if name != bar.side]
        if {*named} != {*keys} or bar.side in keys:
            msg = (
                f"{bar.side} must have the keys of the slices, {', '.join(map(repr, keys))}, and a "
                f"column '{bar.side}'; it has {', '.join(map(repr, bar.at.columns))}"
            )
            raise ValueError(msg)
        if bar.at.select(named).is_duplicated().any():
            msg = f"{bar.side} has several rows for one slice: keep one row per slice"
            raise ValueError(msg)
        for key, dtype in found.select(named).collect_schema().items():
            own_dtype = bar.at.schema[key]
            if dtype != own_dtype and not (dtype.is_integer() and own_dtype.is_integer()):
                msg = f"'{key}' is {own_dtype} in {bar.side}, but {dtype} in the log: cast it"
                raise ValueError(msg)
        own = bar.at.lazy()
        found = found.join(
            own,
            on=named,
            how="full",
            nulls_equal=True,
            coalesce=True,
            maintain_order="left_right",  # slices that only have a threshold come last
        )
    return found


def _compared(
    log: Described[Any], keys: tuple[IntoKey, ...], baseline: object, ci: float, metric: Metric
) -> pl.LazyFrame:
    """Compare the log with the counts of the baseline, slice by slice, like two periods."""
    check_plain(keys, "no_worse_than", "its rows are of another time", sets=True)
    reason = "no_worse_than is a table of counts, which has neither clusters nor sample weights"
    log.meaning.check_without("check", reason, "cluster", "sample_weight")
    columns = columns_for(metric.name, has_clusters=False)
    sliced = cut(log, keys, answers=[_FAILED, _VERDICT, *columns])
    model = ("model",) if sliced.has_models else ()
    try:
        counts = Described(baseline, weight="n", nulls=sliced.nulls)  # type: ignore[arg-type]
        before = cut(counts, [*sliced.keys, *model], answers=())
    except MissingColumn as error:
        msg = f"no_worse_than is not the counts of these slices: {error.problem}"
        raise pl.exceptions.ColumnNotFoundError(msg) from error
    for column, what in ((SET, "sets of keys"), ("model", "models")):
        if column in counts.meaning.schema and column not in (*sliced.keys, *model):
            msg = (
                f"no_worse_than has counts of several {what}, so it counts each row several times: "
                f"use counts({', '.join(map(repr, sliced.keys))}), or filter to one"
            )
            raise ValueError(msg)
    before = replace(before, sets=sliced.sets, always=model)
    apart, cells = _with_baseline(before, sliced)
    positive = registry.checked([metric], log.meaning.positive, apart.label_dtype)
    found = changes(sliced, apart, cells, Asked(ci, metrics=[metric], positive=positive))
    shown = [name for name in columns if name not in {"p_value", "p_adjusted"}]
    return sliced.answer(found.select(*sliced.slice, *columns_in_answer(metric.name, shown)))


def _with_baseline(baseline: SlicedLog, log: SlicedLog) -> tuple[SlicedLog, pl.LazyFrame]:
    """Stack the pairs of two logs as two periods: the baseline is `before`, the log `after`."""
    labels = common_dtype(
        [("the labels", log.label_dtype), ("the labels of the baseline", baseline.label_dtype)]
    )
    numbers = baseline.numbers if isinstance(baseline.numbers, Floats) else log.numbers
    apart = replace(log, label_dtype=labels, pred_dtype=labels, numbers=numbers)
    apart = replace(apart, apart=("period",), has_total=False)

    def of(cells: pl.LazyFrame, period: str) -> pl.LazyFrame:
        return cells.select(
            pl.lit(period, PERIODS).alias("period"),
            *log.slice,
            pl.col("gold", "pred").cast(labels),
            pl.col("n").cast(numbers.count),
            "n_null",
        )

    counted = pairs(baseline)
    if log.has_models:  # In counts, the model is a key. Drop models that the log does not have.
        [*_, model] = log.slice
        models = pl.col(KEY + "model").cast(log.model_dtype, strict=False)
        counted = counted.with_columns(models.alias(model)).filter(pl.col(model).is_not_null())
    both = [of(counted, "before"), of(pairs(log), "after")]
    return apart, pl.concat(both, how="vertical_relaxed")


def _passed(judged: pl.DataFrame, what: str, min_n: int, hidden: list[str]) -> pl.DataFrame:
    """The judged slices, or a CheckError if a slice fails or none is judged."""
    fails, _, left_out = (judged.filter(pl.col(_VERDICT) == name) for name in _VERDICTS.categories)
    number = judged.height - left_out.height
    if number and fails.is_empty():
        return judged
    verb = "fails" if fails.height == 1 else "fail"
    message = f"{fails.height} of {number} slices {verb}: {what}"
    if not number:
        message = "there is no slice to judge"
    if not left_out.is_empty():
        message += f" ({left_out.height} not judged: fewer than {min_n} rows, or no score)"
    if not fails.is_empty():
        message += f"\n{_table(fails.drop(hidden))}"
    raise CheckError(message, judged)


def _table(frame: pl.DataFrame) -> str:
    """The frame as text: all columns, and the first rows."""
    more = f"\n… and {frame.height - _SHOWN} more" if frame.height > _SHOWN else ""
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=-1, tbl_hide_dataframe_shape=True):
        return f"{frame.head(_SHOWN)}{more}"

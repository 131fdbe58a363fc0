"""The counts of a baseline beside those of a log: the same slices in two periods."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_mcc._counts.exact_sums import FloatNumbers
from polars_mcc._counts.pair_counts import pairs
from polars_mcc._counts.sliced_log import KEY, SlicedLog
from polars_mcc._frame.labels import as_compared, common_dtype, is_text
from polars_mcc._intervals.interval_options import PERIODS


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

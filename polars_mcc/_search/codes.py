"""The values of keys and labels → codes: small integers that are fast to count.

A first pass over the log finds the values. A value with too few rows gets no code: no slice of it
can be large enough. Numbers with many values are cut at quantiles, and times by day, week or month.
Such a key has three kinds of slices: one part, all parts up to one, and all parts from one on.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from polars_mcc._counts.sliced import KEY, PRED, SlicedLog
from polars_mcc._log.text import as_text

_SAMPLED = 100_000  # rows of the sample for quantiles, about
_FEW = 3  # numbers of at most _FEW · bins different values are not cut
_TEXTS = (pl.String, pl.Categorical, pl.Enum)


@dataclass(frozen=True)
class Key:
    """A key of the log, its codes, and the values of its slices."""

    name: str
    code: pl.Expr
    codes: pl.Enum
    values: pl.DataFrame
    """A row per value: `value` in the dtype of the result, `text`, and the `first` and `last` of
    the codes that the value covers."""
    n_small: int = 0
    """How many values have too few rows for a slice."""

    @property
    def column(self) -> str:
        """The column of the log."""
        return KEY + self.name

    def known(self, what: str) -> pl.Expr:
        """Look up a column of `values` for each slice, by the place of its value."""
        return pl.lit(self.values[what]).gather(pl.col(self.column))

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.codes.categories)

    @property
    def is_cut(self) -> bool:
        """Whether values are ranges: then a code is in several values."""
        return self.values.height > self.size


@dataclass(frozen=True)
class Coded:
    """A log with codes in place of keys and labels. A value without a code is null."""

    log: SlicedLog
    keys: Mapping[str, Key]
    labels: pl.Series
    """The labels, in the order of their codes."""
    rows: int
    sides: Sequence[pl.LazyFrame] | None = None
    """The hits and the misses, if they are in memory as two frames."""


def is_ordered(dtype: pl.DataType) -> bool:
    """Whether values can be cut into ranges: numbers, dates and datetimes."""
    return dtype.is_numeric() or isinstance(dtype, (pl.Date, pl.Datetime))


def coded(log: SlicedLog, *, bins: int | None, least: float) -> Coded:
    """Find the values of a log, and replace keys and labels with codes.

    Args:
        log: The log. Its keys are columns.
        bins: The number of parts of a key of numbers. None: neither numbers nor times are cut.
        least: The least rows of a slice.
    """
    columns = {key: pl.col(KEY + key) for key in log.keys}
    ordered = [key for key in log.keys if bins is not None and is_ordered(log.key_dtypes[key])]
    numbers = [key for key in ordered if log.key_dtypes[key].is_numeric()]
    times = [key for key in ordered if key not in numbers]
    sides = ["gold", *(PRED + name for name in log.models)]
    labels = [log.frame.select(label=pl.col(side).cast(log.label_dtype)) for side in sides]
    spans = [(columns[key].max() - columns[key].min()).alias(f"span:{key}") for key in times]
    # One query per column: in one query, Polars would keep all columns in memory.
    whole = log.frame.select(pl.len().alias("rows"), *spans).collect()
    known = pl.concat([side.unique() for side in labels]).unique().drop_nulls().sort("label")
    found_labels = known.collect().to_series()
    rows = whole["rows"].item()
    breaks = _breaks(log, numbers, rows, bins or 0)
    units = {key: _unit(whole[f"span:{key}"].item()) for key in times}
    columns |= {key: columns[key].dt.truncate(unit) for key, unit in units.items()}
    found = {key: _sizes(log, columns[key]) for key in log.keys if key not in breaks}

    def of(name: str) -> Key:
        if name in breaks:
            return _of_numbers(name, columns[name], log.key_dtypes[name], breaks[name])
        if name in units:
            return _of_times(name, columns[name], found[name], units[name])
        return _of_values(name, columns[name], found[name], least, as_words=name in ordered)

    keys = {name: of(name) for name in log.keys}
    label_codes, code = _coder(found_labels)
    frame = log.frame.select(
        *(key.code.alias(key.column) for key in keys.values()),
        *(code(pl.col(side).cast(log.label_dtype)).alias(side) for side in sides),
        "weight",
        *log.weight_sums,
        *(pl.col(name).hash() if name == "cluster" else name for name in log.extras),
    )
    as_codes = replace(log, frame=frame, sets=None, label_dtype=label_codes, pred_dtype=label_codes)
    return Coded(as_codes, keys, found_labels, rows)


def _sizes(log: SlicedLog, column: pl.Expr) -> pl.DataFrame:
    """The sum of weights of each value."""
    rows = log.frame.select(column.alias("value"), pl.col("weight").cast(pl.Float64))
    return rows.group_by("value").agg(n=pl.col("weight").sum()).collect()


def _coder(
    values: pl.Series, every: pl.Series | None = None
) -> tuple[pl.Enum, Callable[[pl.Expr], pl.Expr]]:
    """The codes of some values, and a function that turns a column into codes; others are null.

    `every` has all values of the column, if `values` are only some of them.
    """
    if isinstance(values.dtype, _TEXTS):
        names = values.cast(pl.String)
        taken = {*(names if every is None else every.cast(pl.String))}
        missing = "null"
        while missing in taken:
            missing += "'"
        codes = pl.Enum(names.fill_null(missing))
        has_null = names.has_nulls()

        def of_text(column: pl.Expr) -> pl.Expr:
            text = column.cast(pl.String)
            return (text.fill_null(missing) if has_null else text).cast(codes, strict=False)

        return codes, of_text
    codes = pl.Enum([str(code) for code in range(len(values))])
    hashes, places = values.hash(), pl.Series(range(len(values)), dtype=pl.UInt32)

    def of_any(column: pl.Expr) -> pl.Expr:
        if not places.len():
            return pl.lit(None, codes)
        found = column.hash().replace_strict(hashes, places, default=None, return_dtype=pl.UInt32)
        return found.cat.to(codes)

    return codes, of_any


def _of_values(
    name: str, column: pl.Expr, sizes: pl.DataFrame, least: float, *, as_words: bool
) -> Key:
    """A key with a slice per value."""
    texts = sizes.with_columns(text=as_text(pl.col("value"), sizes.schema["value"]))
    kept = texts.filter(pl.col("n") >= least).sort("text", "n", nulls_last=True)
    codes, code = _coder(kept["value"], sizes["value"])
    values = kept.select(pl.col("text").alias("value") if as_words else "value", "text")
    place = pl.int_range(pl.len(), dtype=pl.UInt32)
    values = values.with_columns(first=place, last=place)
    return Key(name, code(column), codes, values, sizes.height - kept.height)


def _of_numbers(
    name: str, column: pl.Expr, dtype: pl.DataType, breaks: Sequence[float | int]
) -> Key:
    """A key of numbers, cut at `breaks`."""
    ends = [repr(end).removesuffix(".0") for end in breaks]
    between = [f"above {low} up to {high}" for low, high in itertools.pairwise(ends)]
    parts = [f"up to {ends[0]}", *between, f"above {ends[-1]}"]
    to = [f"up to {end}" for end in ends]
    after = ["", *(f"above {end}" for end in ends)]
    others = ["NaN", None] if dtype.is_float() else [None]
    wide = pl.Int128() if dtype.is_integer() else pl.Float64()
    is_above = [column.cast(wide) > pl.lit(end, wide) for end in breaks]
    part = pl.sum_horizontal(above.cast(pl.UInt32) for above in is_above)
    part = pl.when(column.is_null()).then(len(parts) + len(others) - 1).otherwise(part)
    if dtype.is_float():
        part = pl.when(column.is_nan().fill_null(value=False)).then(len(parts)).otherwise(part)
    codes = pl.Enum([str(place) for place in range(len(parts) + len(others))])
    return Key(name, part.cast(pl.UInt32).cat.to(codes), codes, _parts(parts, to, after, others))


def _of_times(name: str, column: pl.Expr, sizes: pl.DataFrame, unit: str) -> Key:
    """A key of times, cut by a calendar unit."""
    sizes = sizes.sort("value", nulls_last=True)
    days = sizes["value"].drop_nulls().dt.to_string("%Y-%m" if unit == "1mo" else "%Y-%m-%d")
    parts = [f"week of {day}" if unit == "1w" else day for day in days]
    to = [*(f"before {day}" for day in days[1:]), ""]
    after = [f"from {day} on" for day in days]
    codes, code = _coder(sizes["value"])
    others = [None] if sizes["value"].has_nulls() else []
    return Key(name, code(column), codes, _parts(parts, to, after, others))


def _parts(
    parts: Sequence[str], to: Sequence[str], after: Sequence[str], others: Sequence[str | None]
) -> pl.DataFrame:
    """The values of a cut key: each part, and the ranges of two or more parts from either end."""
    last = len(parts) - 1
    found = [(text, place, place) for place, text in enumerate([*parts, *others])]
    found += [(to[place], 0, place) for place in range(1, last)]
    found += [(after[place], place, last) for place in range(1, last)]
    schema = {"value": pl.String, "first": pl.UInt32, "last": pl.UInt32}
    return pl.DataFrame(found, schema=schema, orient="row").with_columns(text="value")


def _unit(span: dt.timedelta | None) -> str:
    """The calendar unit for times that span this long."""
    days = 0 if span is None else span.days
    return "1d" if days < 14 else "1w" if days < 26 * 7 else "1mo"


def _breaks(
    log: SlicedLog, names: Sequence[str], rows: int, bins: int
) -> dict[str, list[float | int]]:
    """Where to cut keys of many different numbers: at round numbers near their quantiles."""
    if not names or not rows:
        return {}
    every = math.ceil(rows / _SAMPLED)
    # A sample by hash, not every k-th row: a log may be periodic.
    is_sampled = pl.int_range(pl.len(), dtype=pl.UInt64).hash(1) % every == 0
    frame = log.frame.select(*(KEY + name for name in names), "weight")
    sampled = (frame.filter(is_sampled) if every > 1 else frame).collect()
    found = {}
    for name in names:
        column, is_integer = pl.col(KEY + name), log.key_dtypes[name].is_integer()
        column = column if is_integer else column.cast(pl.Float64)
        is_number = column.is_not_null() if is_integer else column.is_finite()
        values = sampled.filter(is_number & (pl.col("weight") > 0)).select(
            value=column, weight=pl.col("weight").cast(pl.Float64)
        )
        if values["value"].n_unique() > _FEW * bins:
            found[name] = _rounded(_quantiles(values.sort("value"), bins))
    return {name: ends for name, ends in found.items() if ends}


def _quantiles(values: pl.DataFrame, bins: int) -> list[float | int]:
    """The quantiles by weight that cut the values into `bins` parts, below the largest value."""
    upto = values["weight"].cum_sum()
    places = [int(upto.search_sorted(upto[-1] * part / bins)) for part in range(1, bins)]
    ends = sorted({values["value"][min(place, len(upto) - 1)] for place in places})
    return [end for end in ends if end < values["value"][-1]]


def _rounded(ends: list[float | int]) -> list[float | int]:
    """Numbers rounded to about a tenth of their distance, if they stay distinct."""
    gaps = [high - low for low, high in itertools.pairwise(ends)]
    rounded: list[float | int] = []
    for at, end in enumerate(ends):
        gap = min(gaps[max(at - 1, 0) : at + 1], default=abs(end) or 1)
        digits = 1 - math.floor(math.log10(gap)) if 0 < gap < math.inf else None
        if digits is None:
            rounded.append(end)
        elif isinstance(end, int):
            step = 10 ** max(-digits, 0)
            rounded.append(end // step * step)
        else:
            rounded.append(round(end, min(digits, 300)))
    return sorted({*rounded}) if len({*rounded}) == len(ends) else ends

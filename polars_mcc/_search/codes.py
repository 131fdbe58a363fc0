"""The values of keys and labels → codes, which are counted in their place.

A first look at the log tells which values there are. A value of few rows has no code: no slice of
it can have enough. Numbers of many values are cut at quantiles, times by day, week or month; the
slices of such a key are its parts, all up to one of them, and all from one on.
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

_SAMPLED = 100_000  # rows from which quantiles are taken
_FEW = 3  # numbers of so many times as few values as parts are left as they are
_TEXTS = (pl.String, pl.Categorical, pl.Enum)


@dataclass(frozen=True)
class Key:
    """A key of the log, and the values that its slices have."""

    name: str
    code: pl.Expr
    codes: pl.Enum
    values: pl.DataFrame
    """A row per value: `value` in the dtype of the answer, `text`, and the codes that it is of,
    from `first` to `last`."""
    n_small: int = 0
    """How many values have too few rows to be a slice."""

    @property
    def column(self) -> str:
        """The column of the log."""
        return KEY + self.name

    def known(self, what: str) -> pl.Expr:
        """What is known of the value that a slice has, from its place: a column of `values`."""
        return pl.lit(self.values[what]).gather(pl.col(self.column))

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.codes.categories)

    @property
    def is_cut(self) -> bool:
        """Whether a code is of several values."""
        return self.values.height > self.size


@dataclass(frozen=True)
class Coded:
    """A log whose keys and labels are codes; other values of a key are null."""

    log: SlicedLog
    keys: Mapping[str, Key]
    labels: pl.Series
    """The labels, by their code."""
    rows: int
    sides: Sequence[pl.LazyFrame] | None = None
    """The rows that are right, and those that are wrong, if they are apart in memory."""


def is_ordered(dtype: pl.DataType) -> bool:
    """Whether values have an order by which they are cut: numbers and times."""
    return dtype.is_numeric() or isinstance(dtype, (pl.Date, pl.Datetime))


def coded(log: SlicedLog, *, bins: int | None, least: float) -> Coded:
    """Look at the values of a log, and code it.

    Args:
        log: The log, whose slices are of columns.
        bins: Into how many parts numbers are cut. None: neither numbers nor times are cut.
        least: The rows that a slice must have.
    """
    columns = {key: pl.col(KEY + key) for key in log.keys}
    ordered = [key for key in log.keys if bins is not None and is_ordered(log.key_dtypes[key])]
    numbers = [key for key in ordered if log.key_dtypes[key].is_numeric()]
    times = [key for key in ordered if key not in numbers]
    sides = ["gold", *(PRED + name for name in log.models)]
    labels = [log.frame.select(label=pl.col(side).cast(log.label_dtype)) for side in sides]
    spans = [(columns[key].max() - columns[key].min()).alias(f"span:{key}") for key in times]
    # One by one, each reads its own column: together Polars would keep all columns in memory.
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
    """How many rows each value has."""
    rows = log.frame.select(column.alias("value"), pl.col("weight").cast(pl.Float64))
    return rows.group_by("value").agg(n=pl.col("weight").sum()).collect()


def _coder(
    values: pl.Series, every: pl.Series | None = None
) -> tuple[pl.Enum, Callable[[pl.Expr], pl.Expr]]:
    """The codes of these values, and what gives each of a column its code; others are null.

    `every` are all values that a column has, if they are more.
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
    """A key whose values are slices as they are."""
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
    """A key of numbers that is cut."""
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
    """A key of times that is cut, by the calendar."""
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
    """The parts of a key; all up to one, and all from one on, of two parts or more."""
    last = len(parts) - 1
    found = [(text, place, place) for place, text in enumerate([*parts, *others])]
    found += [(to[place], 0, place) for place in range(1, last)]
    found += [(after[place], place, last) for place in range(1, last)]
    schema = {"value": pl.String, "first": pl.UInt32, "last": pl.UInt32}
    return pl.DataFrame(found, schema=schema, orient="row").with_columns(text="value")


def _unit(span: dt.timedelta | None) -> str:
    """By what times are cut that span so long."""
    days = 0 if span is None else span.days
    return "1d" if days < 14 else "1w" if days < 26 * 7 else "1mo"


def _breaks(
    log: SlicedLog, names: Sequence[str], rows: int, bins: int
) -> dict[str, list[float | int]]:
    """Where numbers are cut, of which there are many: near their quantiles, at round numbers."""
    if not names or not rows:
        return {}
    every = math.ceil(rows / _SAMPLED)
    # Not every so many rows: a log may repeat itself.
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
    """The values up to which there is a tenth of the weight, two tenths …, below the largest."""
    upto = values["weight"].cum_sum()
    places = [int(upto.search_sorted(upto[-1] * part / bins)) for part in range(1, bins)]
    ends = sorted({values["value"][min(place, len(upto) - 1)] for place in places})
    return [end for end in ends if end < values["value"][-1]]


def _rounded(ends: list[float | int]) -> list[float | int]:
    """Numbers rounded to about a tenth of how far they are apart."""
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

"""Cut numbers and times into bins with names: the key `bins`, and how every verb cuts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from polars_mcc._log.columns import IntoColumn, one
from polars_mcc._log.described import Described
from polars_mcc._log.frames import Frame
from polars_mcc._log.keys import Bins, IntoKey, KeySets, Number

FORMATS: Mapping[str, str] = {
    "1h": "%Y-%m-%d %H:00",
    "1d": "%Y-%m-%d",
    "1w": "%Y-%m-%d",
    "1mo": "%Y-%m",
    "1y": "%Y",
}
"""The units of the calendar, and how the start of one is written. A week begins on Monday."""

_SAMPLED = 100_000  # rows of the sample for quantiles, about


@dataclass(frozen=True)
class Cuts:
    """Where numbers are cut. Bin 0 is up to the first end, bin 1 up to the second, and so on."""

    ends: tuple[Number, ...]
    dtype: pl.DataType

    def name(self, first: int, last: int, x: str = "x") -> str:
        """The name of the bins from `first` to `last`: `≤ 25`, `26 to 45`, `25 < x ≤ 45.5`."""
        low = self.ends[first - 1] if first else None
        high = self.ends[last] if last < len(self.ends) else None
        if low is None or high is None:
            return f"≤ {_text(high)}" if low is None else f"> {_text(low)}"
        if not self.dtype.is_integer():
            return f"{_text(low)} < {x} ≤ {_text(high)}"
        return f"{low + 1}" if low + 1 == high else f"{low + 1} to {high}"

    def said(self, key: str, first: int, last: int) -> str:
        """The same in a sentence: `age ≤ 25`, `age 26 to 45`, `25 < age ≤ 45.5`."""
        name = self.name(first, last, key)
        if name[0] not in "≤>" and not self.dtype.is_integer():
            return name
        return f"{key} {name}" if name[0] in "≤>" or " to " in name else f"{key} = {name}"

    @property
    def names(self) -> list[str]:
        """The names of all bins, in order. NaN is the last bin of floats."""
        names = [self.name(place, place) for place in range(len(self.ends) + 1)]
        return [*names, "NaN"] if self.dtype.is_float() else names

    def place(self, column: pl.Expr) -> pl.Expr:
        """The bin of each number; null for null."""
        wide = pl.Int128() if self.dtype.is_integer() else pl.Float64()
        above = (column.cast(wide) > pl.lit(end, wide) for end in self.ends)
        place = pl.sum_horizontal(one.cast(pl.UInt32) for one in above)
        if self.dtype.is_float():
            place = pl.when(column.is_nan()).then(len(self.ends) + 1).otherwise(place)
        return pl.when(column.is_not_null()).then(place.cast(pl.UInt32))


def _text(end: Number | None) -> str:
    return repr(end).removesuffix(".0")


def bins(column: IntoColumn, cuts: int | Sequence[Number] | str) -> Bins:
    """Slice by ranges of numbers or of times, with names that people use.

    Args:
        column: A column of numbers, or of dates and datetimes.
        cuts: Where to cut. A number of bins, such as 5: at round numbers near the quantiles, about
            as many rows in each bin. Numbers, such as `[18, 25, 45]`: there. A unit of the
            calendar, `"1h"`, `"1d"`, `"1w"`, `"1mo"`, `"1q"` or `"1y"`: times by hour, day and so
            on.

    Returns:
        A key for the verbs that take keys, also inside `each`, `rollup`, `cube` and `sets`. An end
        belongs to the bin below it. Numbers become an Enum in the order of the bins: `≤ 25`,
        `26 to 45` and `> 45` for integers, `25 < x ≤ 45.5` for floats. NaN is a bin of its own.
        Null stays null. Times become String, such as `2026-03`, or `2026-Q1` for quarters; a week
        is the date of its Monday. This text is in the order of time.

        The quantiles are read from the log, by weight; of a log of more than 100,000 rows, from a
        sample. A lazy log is read for them when the answer is collected. So the names are not known
        before, and the key is String, with rows in the order of the bins. With numbers in `cuts`,
        it is an Enum.

    Raises:
        ValueError: The cuts do not rise, are not finite, or are none of the above.

    The verb raises a SchemaError if the dtype of the column does not fit the cuts.

    Examples:
        >>> import polars as pl
        >>> from polars_mcc import bins
        >>> log = pl.DataFrame({"age": [17, 20, 44, 70], "gold": [0, 1, 0, 1], "pred": 1})
        >>> log.mcc.by(bins("age", [18, 25, 45]), metrics="accuracy")
        shape: (4, 4)
        ┌──────────┬─────┬──────────┬────────┐
        │ age      ┆ n   ┆ accuracy ┆ n_null │
        │ ---      ┆ --- ┆ ---      ┆ ---    │
        │ enum     ┆ i64 ┆ f64      ┆ i64    │
        ╞══════════╪═════╪══════════╪════════╡
        │ ≤ 18     ┆ 1   ┆ 0.0      ┆ 0      │
        │ 19 to 25 ┆ 1   ┆ 1.0      ┆ 0      │
        │ 26 to 45 ┆ 1   ┆ 0.0      ┆ 0      │
        │ > 45     ┆ 1   ┆ 1.0      ┆ 0      │
        └──────────┴─────┴──────────┴────────┘
    """
    if isinstance(cuts, str):
        if cuts not in {*FORMATS, "1q"}:
            msg = f"cuts={cuts!r} is no unit of the calendar: use one of {[*FORMATS, '1q']}"
            raise ValueError(msg)
        return Bins(column, cuts)
    if isinstance(cuts, int) and not isinstance(cuts, bool):
        if cuts < 2:
            msg = f"cuts={cuts} is the number of bins, and must be at least 2"
            raise ValueError(msg)
        return Bins(column, cuts)
    ends = tuple(cuts) if isinstance(cuts, Iterable) else ()
    are_numbers = all(isinstance(end, (int, float)) and math.isfinite(end) for end in ends)
    if not ends or not are_numbers or any(b <= a for a, b in itertools.pairwise(ends)):
        msg = f"cuts must be rising numbers, a number of bins, or a unit such as '1mo', got {cuts}"
        raise ValueError(msg)
    return Bins(column, ends)


def settled(log: Described[Any], keys: Sequence[IntoKey]) -> list[IntoKey]:
    """The keys, with an expression in place of each `bins`. Quantiles are read from the log."""
    return _each(keys, lambda key: _as_expr(log, key))


def lazily(
    log: Described[Any], keys: Sequence[IntoKey], verb: Callable[..., Any]
) -> pl.LazyFrame | None:
    """The answer of a verb that must first read a lazy log for quantiles; None if it need not.

    The bins have no names before the log is read, so their keys are String.
    """
    waiting: list[str] = []

    def as_text(key: Bins) -> pl.Expr:
        if not isinstance(key.cuts, int):
            return _as_expr(log, key)
        column = one(log.meaning.schema, key.column, "bins")
        _check(column.name, column.dtype, key.cuts)
        waiting.append(column.name)
        return column.expr.cast(pl.String)

    if not log.meaning.is_lazy:
        return None
    planned = _each(keys, as_text)
    if not waiting:
        return None
    schema = verb(log, *planned).collect_schema()

    def answer() -> pl.DataFrame:
        found: pl.DataFrame = verb(log, *settled(log, keys)).collect()
        return found.cast(dict(schema))

    return pl.defer(answer, schema=schema)


def said(key: str, text: pl.Expr) -> pl.Expr:
    """Values of `bins` in a sentence: `age ≤ 25`, `25 < age ≤ 45.5`, and else `age = 26`."""
    name = pl.lit(key)
    is_open, is_between = text.str.contains("^[≤>] "), text.str.contains(" < x ≤ ", literal=True)
    between = pl.format(
        "{}{}{}",
        text.str.split(" x ").list.first(),
        pl.lit(f" {key} "),
        text.str.split(" x ").list.last(),
    )
    return (
        pl.when(is_open)
        .then(pl.format("{} {}", name, text))
        .when(is_between)
        .then(between)
        .otherwise(pl.format("{} = {}", name, text))
    )


def _each(keys: Sequence[Any], settle: Callable[[Bins], pl.Expr]) -> list[Any]:
    """Replace each `bins`, also inside sets of keys."""
    found: list[Any] = []
    for key in keys:
        if isinstance(key, Bins):
            found.append(settle(key))
        elif isinstance(key, KeySets):
            found.append(replace(key, columns=tuple(_each(key.columns, settle))))
        else:
            found.append(tuple(_each(key, settle)) if isinstance(key, tuple) else key)
    return found


def _check(name: str, dtype: pl.DataType, cuts: int | Sequence[Number] | str) -> None:
    is_time = isinstance(dtype, pl.Datetime) or (dtype == pl.Date and cuts != "1h")
    if not (is_time if isinstance(cuts, str) else dtype.is_numeric()):
        what = "times" if isinstance(cuts, str) else "numbers"
        hint = ", such as bins(…, '1mo')" if dtype.is_temporal() else "; cast it first"
        msg = f"bins of {what} need a column of {what}, but '{name}' is {dtype}{hint}"
        raise pl.exceptions.SchemaError(msg)


def _as_expr(log: Described[Any], key: Bins) -> pl.Expr:
    column = one(log.meaning.schema, key.column, "bins")
    _check(column.name, column.dtype, key.cuts)
    if isinstance(key.cuts, str):
        return in_calendar(column.expr, key.cuts).alias(column.name)
    if isinstance(key.cuts, int):
        ends = _of_log(log, column.expr, column.dtype, key.cuts)
    elif column.dtype.is_integer():
        ends = sorted({math.floor(end) for end in key.cuts})
    else:
        ends = [float(end) for end in key.cuts]
    cuts = Cuts((*ends,), column.dtype)
    names = cuts.names if ends else ["all", *(["NaN"] if column.dtype.is_float() else [])]
    place = cuts.place(column.expr)
    return place.replace_strict(range(len(names)), names, return_dtype=pl.Enum(names)).alias(
        column.name
    )


def _of_log(log: Described[Any], column: pl.Expr, dtype: pl.DataType, number: int) -> list[Number]:
    """The cuts near the quantiles of a log."""
    if not isinstance(log.meaning.source, Frame):
        msg = (
            "bins of a number of parts read the log, which must be a Polars frame: name the cuts, "
            "as in bins('age', [18, 25, 45])"
        )
        raise TypeError(msg)
    weight = log.meaning.weight
    weights = pl.lit(1) if weight is None else weight.expr
    rows = log.meaning.source.lazy().select(column.alias("value"), weights.alias("weight"))
    n = rows.select(pl.len()).collect().item()
    return ends_of(sampled(rows, n), "value", dtype, number)


def in_calendar(column: pl.Expr, unit: str) -> pl.Expr:
    """The text of the calendar unit of a time, in the order of time."""
    if unit == "1q":
        return pl.format("{}-Q{}", column.dt.to_string("%Y"), column.dt.quarter())
    return column.dt.truncate(unit).dt.to_string(FORMATS[unit])


def sampled(rows: pl.LazyFrame, n: int) -> pl.DataFrame:
    """About `_SAMPLED` of `n` rows: a sample by hash, as every k-th row may be periodic."""
    every = math.ceil(n / _SAMPLED)
    is_sampled = pl.int_range(pl.len(), dtype=pl.UInt64).hash(1) % every == 0
    return (rows.filter(is_sampled) if every > 1 else rows).collect()


def ends_of(
    rows: pl.DataFrame, name: str, dtype: pl.DataType, number: int, few: int = 0
) -> list[Number]:
    """Where to cut a column: round numbers near its quantiles by `weight`; none if it has `few`."""
    is_integer = dtype.is_integer()
    column = pl.col(name) if is_integer else pl.col(name).cast(pl.Float64)
    is_number = column.is_not_null() if is_integer else column.is_finite()
    values = rows.filter(is_number & (pl.col("weight") > 0)).select(
        value=column, weight=pl.col("weight").cast(pl.Float64)
    )
    if values["value"].n_unique() <= few:
        return []
    return _rounded(_quantiles(values.sort("value"), number))


def _quantiles(values: pl.DataFrame, number: int) -> list[Number]:
    """The quantiles by weight that cut the values into parts, below the largest value."""
    if values.is_empty():
        return []
    upto = values["weight"].cum_sum()
    places = [int(upto.search_sorted(upto[-1] * part / number)) for part in range(1, number)]
    ends = sorted({values["value"][min(place, len(upto) - 1)] for place in places})
    return [end for end in ends if end < values["value"][-1]]


def _rounded(ends: list[Number]) -> list[Number]:
    """Numbers rounded to about a tenth of their distance, if they stay distinct."""
    gaps = [high - low for low, high in itertools.pairwise(ends)]
    rounded: list[Number] = []
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

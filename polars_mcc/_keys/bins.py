"""The key `bins`: numbers and times cut into ranges with names. Every verb cuts by this code."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Literal

import polars as pl

from polars_mcc._base.cuts_of_numbers import Number, as_cuts, is_above
from polars_mcc._base.message_parts import Words, as_code, as_sql, column, option, said
from polars_mcc._base.values_as_text_or_markdown import as_text
from polars_mcc._frame import columns
from polars_mcc._frame.columns import Frame, IntoColumn, NamedColumns, as_expr, resolved
from polars_mcc._frame.log_options import Described
from polars_mcc._keys.any_key import Key, Made, word

UNITS = ("1h", "1d", "1w", "1mo", "1q", "1y")
FORMATS = {"1h": "%Y-%m-%d %H:00", "1d": "%Y-%m-%d", "1w": "%Y-%m-%d", "1mo": "%Y-%m", "1y": "%Y"}
"""How the start of a unit of the calendar is written. A week begins on Monday."""

FEW = 3
"""A search cuts numbers that have more than `FEW` times as many values as bins."""
_FEW_TIMES = 60  # it cuts times with more values, such as two months of days
_STEPS = (1, 5, 15, 60, 5 * 60, 15 * 60, 60 * 60, 6 * 60 * 60, 24 * 60 * 60)
"""The seconds to which durations and times of the day are rounded."""
_MANY = 100_000  # numbers, of which those that are near each other are cut as one


@word("bins(age, 5)", of_one=True)
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
        belongs to the bin below it: 0.1 is `≤ 0.1`, also in Float32 or Decimal. Numbers become an
        Enum in the order of the bins: `≤ 25`, `26 to 45` and `> 45` for integers, `25 < x ≤ 45.5`
        for floats. NaN is a bin of its own. Null stays null. Times become String, such as
        `2026-03`, or `2026-Q1` for quarters; a week is the date of its Monday. An hour that clocks
        repeat is `2026-10-25 02:00`, and then `2026-10-25 02:00 +01:00`. This text is in the order
        of time, and `plot.over_time` draws it over time.

        The quantiles are read from the log, by weight; in a log of more than 100,000 rows, numbers
        that are near each other count as one. The order of the rows changes no cut. A lazy log is
        read for them when the answer is collected. So the names are not known before, and the key
        is String, with rows in the order of the bins. With numbers in `cuts`, it is an Enum. A
        store needs numbers in `cuts`. The log must be a Polars frame.

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
        if cuts not in UNITS:
            raise ValueError(f"cuts={cuts!r} is no unit of the calendar: use one of {[*UNITS]}")
        return Bins(column, cuts)
    if isinstance(cuts, Integral) and not isinstance(cuts, bool):
        if cuts < 2:
            raise ValueError(f"cuts={cuts} is the number of bins, and must be at least 2")
        return Bins(column, int(cuts))
    ends = as_cuts(cuts)
    if not ends:
        msg = f"cuts must be rising numbers, a number of bins, or a unit such as '1mo', got {cuts}"
        raise ValueError(msg)
    return Bins(column, ends)


@dataclass(frozen=True)
class Bins(Key):
    """A column that is cut into bins: the result of `bins`."""

    column: IntoColumn
    cuts: int | tuple[Number, ...] | str
    """A number of bins, where to cut, or a unit of the calendar."""
    stands_for: ClassVar[Literal["column"]] = "column"

    def __repr__(self) -> str:
        """The call that makes it."""
        cuts = [*self.cuts] if isinstance(self.cuts, tuple) else self.cuts
        return f"bins({as_code(self.column)}, {as_code(cuts)})"

    def made(self, schema: pl.Schema) -> Made:
        """The column with the names of the bins."""
        column, cuts = self._checked(schema), self.cuts
        if isinstance(cuts, int):
            example = replace(self, cuts=(18, 25, 45))
            msg = f"{self} would read the log for its cuts: name them, as in {example}"
            raise ValueError(msg)  # noqa: TRY004 - of a verb that cannot read it
        if isinstance(cuts, str):
            named = _name_of_time(column.expr, column.dtype, cuts)
        else:
            named = Cuts.of(cuts, column.dtype).name_of(column.expr)
        return Made([named.alias(column.name)], [(column.name,)])

    @property
    def is_settled(self) -> bool:
        """Whether the cuts are known. A number of bins is cut at the quantiles of the log."""
        return not isinstance(self.cuts, int)

    def settled(self, log: Described[Any], *, unread: bool) -> Bins | pl.Expr:
        """Bins with known cuts. A number of bins is cut near the quantiles of the log.

        `unread`: the names are not known without the quantiles, so the key is text.
        """
        column = self._checked(log.roles.schema)
        if not isinstance(log.roles.source, Frame):
            msg = f"{self} needs a Polars frame: add a column with the bins, and pass its name"
            raise TypeError(msg)
        if not isinstance(self.cuts, int):
            return self
        if unread:
            return column.expr.cast(pl.String)
        [cuts] = cuts_of(_rows_of(log, [column.expr]), self.cuts)
        return replace(self, cuts=cuts.ends)

    def _checked(self, schema: pl.Schema) -> NamedColumns:
        """The column, or an error if it does not fit the cuts."""
        column = columns.one_column(schema, self.column, "bins")
        dtype, cuts = column.dtype, self.cuts
        is_time = isinstance(dtype, pl.Datetime) or (dtype == pl.Date and cuts != "1h")
        if not (is_time if isinstance(cuts, str) else dtype.is_numeric()):
            what = "times" if isinstance(cuts, str) else "numbers"
            hint: str = "; cast it, or slice by the column itself"
            if is_clock(dtype):
                code = self._as_number(column.name, is_time=dtype == pl.Time)
                hint = said("; cut a number of it, as in ", code)
            elif isinstance(dtype, (pl.Date, pl.Datetime)):
                hint = f": cut it by '1d' or longer, as in {replace(self, cuts='1mo')}"
            elif isinstance(cuts, str):
                hint = said("; ", columns.made_a_time(column.name, dtype))
            msg = f"bins of {what} need a column of {what}, but '{column.name}' is {dtype}"
            raise pl.exceptions.SchemaError(said(msg, hint))
        return column

    @staticmethod
    def _as_number(name: str, *, is_time: bool) -> Words:
        """Bins of the seconds of a duration, or of the hour of a time."""
        python = f"{column(name)}.dt.{'hour' if is_time else 'total_seconds'}()"
        sql = as_sql(name)
        in_sql = f"EXTRACT(hour FROM {sql})" if is_time else f"{sql} / INTERVAL '1 second'"
        in_shell = option("keys", f"bins({as_code(in_sql)}, 4)").in_shell
        return Words(f"bins({python}, 4)", in_shell)


@dataclass(frozen=True)
class Cuts:
    """Where numbers are cut. Bin 0 is up to the first end, bin 1 up to the second, and so on."""

    ends: tuple[Number, ...]
    dtype: pl.DataType

    @classmethod
    def of(cls, cuts: Iterable[Number], dtype: pl.DataType) -> Cuts:
        """The cuts as numbers of the column's dtype, each once."""
        if dtype.is_integer():
            cuts = map(math.floor, cuts)
        elif dtype.is_float():
            cuts = map(float, cuts)
        return cls((*dict.fromkeys(cuts),), dtype)

    def name(self, first: int, last: int) -> str:
        """The name of the bins from `first` to `last`: `≤ 25`, `26 to 45`, `25 < x ≤ 45.5`."""
        low = self.ends[first - 1] if first else None
        high = self.ends[last] if last < len(self.ends) else None
        if low is None:
            return "all" if high is None else f"≤ {self._text(high)}"
        if high is None:
            return f"> {self._text(low)}"
        if not self.dtype.is_integer():
            return f"{self._text(low)} < x ≤ {self._text(high)}"
        return f"{low + 1}" if low + 1 == high else f"{low + 1} to {high}"

    def _text(self, end: Number) -> str:
        if not is_clock(self.dtype):
            return str(end).removesuffix(".0")
        text = as_text(pl.lit(end, pl.Int64).cast(self.dtype), self.dtype)
        return str(pl.select(text).item())

    @property
    def names(self) -> list[str]:
        """The names of all bins, in order. NaN is the last bin of floats."""
        names = [self.name(place, place) for place in range(len(self.ends) + 1)]
        return [*names, "NaN"] if self.dtype.is_float() else names

    def bin_of(self, column: pl.Expr) -> pl.Expr:
        """The bin of each number; null for null."""
        number, dtype = column, self.dtype
        if is_clock(dtype):
            number, dtype = column.to_physical(), pl.Int64()
        are_above = (is_above(number, dtype, end, or_at=False) for end in self.ends)
        ends_below = (is_above_end.cast(pl.UInt32) for is_above_end in are_above)
        place = pl.sum_horizontal(pl.lit(0, pl.UInt32), *ends_below)
        if self.dtype.is_float():
            place = pl.when(column.is_nan()).then(len(self.ends) + 1).otherwise(place)
        return pl.when(column.is_not_null()).then(place.cast(pl.UInt32))

    def name_of(self, column: pl.Expr) -> pl.Expr:
        """The name of the bin of each number, as an Enum in the order of the bins."""
        codes, names = range(len(self.names)), self.names
        return self.bin_of(column).replace_strict(codes, names, return_dtype=pl.Enum(names))


def _name_of_time(time: pl.Expr, dtype: pl.DataType, unit: str) -> pl.Expr:
    """The name of the unit of a time. An hour that clocks repeat has its UTC offset in the name."""
    date = time.dt.date()
    if unit == "1q":
        return pl.format("{}-Q{}", date.dt.to_string("%Y"), date.dt.quarter())
    if unit != "1h":
        return date.dt.truncate(unit).dt.to_string(FORMATS[unit])
    hour, zone = time.dt.to_string(FORMATS[unit]), getattr(dtype, "time_zone", None)
    if zone is None:
        return hour
    local = time.dt.replace_time_zone(None)
    first = local.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    again = pl.format("{} {}", hour, time.dt.to_string("%:z"))
    return pl.when(first < time).then(again).otherwise(hour)


_NAME_OF_TIME = (
    r"^(?<year>\d{4})(?:-Q(?<quarter>[1-4])|-(?<month>\d\d)"
    r"(?:-(?<day>\d\d)(?: (?<hour>\d\d):00(?: [+-]\d\d:\d\d)?)?)?)?$"
)


def times_named(key: pl.Series) -> pl.Series | None:
    """The first time of each unit that bins of times name; None if not all texts are such names."""
    if key.dtype != pl.String or key.null_count() == len(key):
        return None
    of_quarter = (pl.col("quarter").cast(pl.Int8) * 3 - 2).cast(pl.String)
    month = pl.coalesce("month", of_quarter, pl.lit("1"))
    day, hour = pl.coalesce("day", pl.lit("1")), pl.coalesce("hour", pl.lit("0"))
    text = pl.format("{}-{}-{} {}:00", "year", month, day, hour)
    time = text.str.to_datetime("%Y-%m-%d %H:%M", strict=False)
    # The name of a key may be a pattern.
    parts = key.alias("key").str.extract_groups(_NAME_OF_TIME).struct.unnest()
    times = parts.select(time).to_series().alias(key.name)
    return times if times.null_count() == key.null_count() else None


def cut_if_many(
    log: Described[Any], columns: Mapping[str, IntoColumn], number: int
) -> dict[str, Bins]:
    """Bins of the columns of numbers and of times with many values, as the search cuts them."""
    schema = resolved(log.roles.schema, [*columns.values()], "key")
    numeric = [name for name, dtype in schema.items() if dtype.is_numeric()]
    times = [name for name, dtype in schema.items() if is_calendar(dtype)]
    if not (numeric or times) or not isinstance(log.roles.source, Frame):
        return {}
    binned: dict[str, Bins] = {}
    if numeric:
        rows = _rows_of(log, [as_expr(columns[name]) for name in numeric])
        cuts = zip(numeric, cuts_of(rows, number, few=FEW * number), strict=True)
        binned |= {name: Bins(columns[name], cut.ends) for name, cut in cuts if cut.ends}
    if times:
        # By their places: a name may be a pattern.
        of_times = {str(at): as_expr(columns[name]) for at, name in enumerate(times)}
        rows = log.roles.source.lazy().select(**of_times)
        spans = [span(pl.col(at)).alias(at) for at in of_times]
        # Few remainders, so that they need little memory.
        numbers = [(pl.col(at).hash() % 2**22).n_unique().alias(f"n{at}") for at in of_times]
        facts = rows.select(*spans, *numbers).collect(engine="streaming").row(0)
        for name, days, n in zip(times, facts, facts[len(times) :], strict=False):
            if n > _FEW_TIMES:
                binned[name] = Bins(columns[name], unit_of(days))
    return {name: binned[name] for name in columns if name in binned}


def is_calendar(dtype: pl.DataType) -> bool:
    """Whether values are dates or datetimes, which are cut by units of the calendar."""
    return isinstance(dtype, (pl.Date, pl.Datetime))


def is_clock(dtype: pl.DataType) -> bool:
    """Whether values are durations or times of the day, which a search cuts as numbers."""
    return isinstance(dtype, (pl.Duration, pl.Time))


def span(times: pl.Expr) -> pl.Expr:
    """How many days lie between the first and the last date of times; null without times."""
    return (times.max().dt.date() - times.min().dt.date()).dt.total_days()


def unit_of(days: int | None) -> str:
    """The unit of the calendar that cuts times over this many days into few bins."""
    if days is None or days < 14:
        return "1d"
    return "1w" if days < 26 * 7 else "1mo"


def _rows_of(log: Described[Any], columns: Sequence[pl.Expr]) -> pl.LazyFrame:
    """Columns of a Polars log, with the weight of each row as the last column."""
    weight = log.roles.weight
    named = {str(place): column for place, column in enumerate(columns)}
    weights = pl.lit(1) if weight is None else weight.expr
    assert isinstance(log.roles.source, Frame)  # noqa: S101 - for the type checker
    return log.roles.source.lazy().select(**named, weight=weights)


def cuts_of(rows: pl.LazyFrame, number: int, few: int = 0) -> list[Cuts]:
    """Where to cut columns of numbers: round numbers near their quantiles by weight.

    The last column of the rows is the weight. There are no cuts if a column has `few` values. The
    order of rows changes nothing: threads may read them in any order.
    """
    *columns, (weight, _) = rows.collect_schema().items()
    weighed = []
    for name, dtype in columns:
        is_whole = dtype.is_integer() or is_clock(dtype)
        value = pl.col(name).to_physical() if is_whole else pl.col(name).cast(pl.Float64)
        is_number = value.is_not_null() if is_whole else value.is_finite()
        found = rows.filter(is_number & (pl.col(weight) > 0))
        weighed.append(found.select(value=value, weight=pl.col(weight).cast(pl.Float64)))
    low, high = pl.col("value").min().alias("low"), pl.col("value").max().alias("high")
    facts = [found.select(pl.len(), low, high) for found in weighed]
    for place, fact in enumerate(pl.collect_all(facts, engine="streaming")):
        n, *ends = fact.row(0)
        if n > _MANY:
            weighed[place] = _condensed(weighed[place], *map(float, ends))
    found_of = zip(columns, pl.collect_all(weighed, engine="streaming"), strict=True)
    return [
        Cuts((*(_ends(found, number, dtype) if found["value"].n_unique() > few else ()),), dtype)
        for (_, dtype), found in found_of
    ]


def _condensed(values: pl.LazyFrame, low: float, high: float) -> pl.LazyFrame:
    """Values that are near each other as one, their largest, with their weight.

    They are near if they differ by at most 1/32768 of their range, and by 0.4 %.
    """
    value = pl.col("value").cast(pl.Float64)
    of_range = ((value / 2 - low / 2) / (high / 2 - low / 2) * 2**15).floor().alias("of range")
    of_size = (value.abs().log() * 2**8).floor().alias("of size")
    near = values.group_by(of_range, of_size, value.sign().alias("sign"))
    sums = near.agg(pl.col("value").max(), pl.col("weight").sum())
    # The last digits of a sum of floats depend on the threads.
    return sums.select("value", pl.col("weight").cast(pl.Float32).cast(pl.Float64))


def places_sampled(rows: int) -> pl.Series:
    """The places of about 100,000 of so many rows, by hash, as every k-th row may be periodic."""
    step = max(math.ceil(rows / _MANY), 1)
    parts = [pl.Series(dtype=pl.UInt32)]
    for start in range(0, rows, _MANY):  # A few at a time: a hash has 8 bytes.
        places = pl.int_range(start, min(start + _MANY, rows), dtype=pl.UInt64, eager=True)
        parts.append(places.filter(places.hash(1) % step == 0).cast(pl.UInt32))
    return pl.concat(parts)


def _ends(values: pl.DataFrame, number: int, dtype: pl.DataType) -> list[float | int]:
    """Round numbers near the quantiles by weight, below the largest value."""
    if values.is_empty():
        return []
    values = values.sort("value", "weight")
    upto = values["weight"].cum_sum()
    parts = pl.Series([upto[-1] * part / number for part in range(1, number)])
    places = upto.search_sorted(parts).clip(upper_bound=len(upto) - 1)
    ends, largest = values["value"].gather(places).unique().sort(), values["value"][-1]
    exact = ends.filter(ends < largest).to_list()
    units = {"ms": 10**3, "us": 10**6, "ns": 10**9}
    second = units[getattr(dtype, "time_unit", "ns")] if is_clock(dtype) else 0
    rounded = sorted({*_rounded(exact, [steps * second for steps in _STEPS if second])})
    is_cut = len(rounded) == len(exact) and values["value"][0] <= min(rounded, default=largest)
    return rounded if is_cut and max(rounded, default=-math.inf) < largest else exact


def _rounded(ends: list[float | int], steps: Sequence[int]) -> list[float | int]:
    """Numbers rounded to about a tenth of their distance: to these steps, or to powers of ten."""
    gaps = [high - low for low, high in itertools.pairwise(ends)]
    rounded: list[float | int] = []
    for at, end in enumerate(ends):
        gap = min(gaps[max(at - 1, 0) : at + 1], default=abs(end) or 1)
        digits = 1 - math.floor(math.log10(gap)) if 0 < gap < math.inf else None
        if digits is None:
            rounded.append(end)
        elif isinstance(end, int):
            step = max((of for of in steps if of <= gap / 10), default=10 ** max(-digits, 0))
            rounded.append(end // step * step)
        else:
            rounded.append(round(end, min(max(digits, -300), 300)))
    return rounded

"""The values of keys and labels → codes: small integers that are fast to count.

A first pass over the log finds the values. A value with too few rows gets no code: no slice of it
can be large enough. Numbers with many values are cut at quantiles, and times by day, week or month.
Such a key has three kinds of slices: one part, all parts up to one, and all parts from one on.

Text in local Parquet files has codes already: one pass reads them, and gives the values too. The
codes stay in memory, one or two bytes per row and column. Codes larger than a budget are read again
for each pass.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mcc._counts import codes as raw
from polars_mcc._counts.coded import scan_worth_reading
from polars_mcc._counts.counted import weight_total
from polars_mcc._counts.parquet import TEXTS, Codes, Unsuited
from polars_mcc._counts.sliced import KEY, PRED, SlicedLog
from polars_mcc._log.bins import FEW, FORMATS, Cuts, cuts_of
from polars_mcc._log.text import as_text
from polars_mcc._log.words import clause

_SPARSE = 3  # integers are codes if their range has at most so many times as many numbers
_KEPT = 2**29  # most bytes of codes that are kept in memory between passes
_INTEGERS = {
    pl.Boolean,
    pl.Date,
    pl.Int8,
    pl.Int16,
    pl.Int32,
    pl.Int64,
    pl.UInt8,
    pl.UInt16,
    pl.UInt32,
}
_PIECE = 2**20  # least rows of a piece, except for the last


@dataclass(frozen=True)
class Key:
    """A key of the log, its codes, and the values of its slices."""

    name: str
    code: pl.Expr
    """The code of each row; `size` if the value has none."""
    size: int
    """How many codes there are."""
    values: pl.DataFrame
    """A row per value: `value` in the dtype of the result, how the slice is `said`, such as
    `age ≤ 25`, and the `first` and `last` of the codes that the value covers."""
    n_small: int = 0
    """How many values have too few rows for a slice."""
    is_cut: bool = False
    """Whether values are ranges: then a code is in several values."""

    @property
    def column(self) -> str:
        """The column of the log."""
        return KEY + self.name

    def known(self, what: str) -> pl.Expr:
        """Look up a column of `values` for each slice, by the place of its value."""
        return pl.lit(self.values[what]).gather(pl.col(self.column))


@dataclass(frozen=True)
class Coded:
    """A log with codes in place of keys and labels. The code of a null label is the largest."""

    log: SlicedLog
    keys: Mapping[str, Key]
    labels: pl.Series
    """The labels, in the order of their codes."""
    rows: int
    kept: Sequence[pl.DataFrame] | None = None
    """The rows, if they are in memory."""

    @cached_property
    def most(self) -> Mapping[str, int]:
        """The number of codes of each column, with the code of values without one if it occurs."""
        sides = ["gold", *(PRED + name for name in self.log.models)]
        sizes = {key.column: key.size for key in self.keys.values()}
        sizes |= dict.fromkeys(sides, len(self.labels))
        if self.kept is None:
            return {name: size + 1 for name, size in sizes.items()}
        tops = [[piece[name].max() for name in sizes] for piece in self.kept if piece.height]
        occurs = [size in of_pieces for size, *of_pieces in zip(sizes.values(), *tops, strict=True)]
        return {name: sizes[name] + int(is_in) for name, is_in in zip(sizes, occurs, strict=True)}

    def pieces(self) -> Iterator[pl.DataFrame]:
        """All rows, piece by piece."""
        if self.kept is not None:
            yield from self.kept
        else:
            yield from self.log.frame.collect_batches(chunk_size=_PIECE, maintain_order=True)


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
    spans = [(columns[key].max() - columns[key].min()).alias(f"span:{key}") for key in times]
    # One query per column: in one query, Polars would keep all columns in memory.
    checks = [] if log.weight_name is None else [weight_total(log).alias("weight")]
    whole = log.frame.select(pl.len().alias("rows"), *spans, *checks).collect()
    rows = whole["rows"].item()
    read = _read(log, sides, rows)
    if "gold" in read.values:
        found_labels = read.values["gold"].series(log.label_dtype).drop_nulls().sort()
    else:
        labels = [log.frame.select(label=pl.col(side).cast(log.label_dtype)) for side in sides]
        known = pl.concat([side.unique() for side in labels]).unique().drop_nulls().sort("label")
        found_labels = known.collect().to_series()
    cuts = {}
    if numbers and rows and bins is not None:
        dtypes = [log.key_dtypes[key] for key in numbers]
        of_numbers = log.frame.select(*(KEY + key for key in numbers), "weight")
        found_cuts = cuts_of(of_numbers, dtypes, bins, few=FEW * bins)
        cuts = {key: one for key, one in zip(numbers, found_cuts, strict=True) if one.ends}
    units = {key: _unit(whole[f"span:{key}"].item()) for key in times}
    columns |= {key: columns[key].dt.truncate(unit) for key, unit in units.items()}
    found = {
        key: read.sizes(KEY + key, log.key_dtypes[key])
        if KEY + key in read.values
        else _sizes(log, columns[key])
        for key in log.keys
        if key not in cuts
    }

    def of(name: str) -> Key:
        if name in cuts:
            return _of_numbers(name, columns[name], cuts[name])
        if name in units:
            return _of_times(name, columns[name], found[name], units[name])
        return _of_values(name, columns[name], found[name], least, as_words=name in ordered)

    keys = {name: of(name) for name in log.keys}
    code, _, n_codes = _coder(found_labels)
    if n_codes > len(found_labels):  # All integers from the least to the largest have codes.
        every = pl.Series(range(n_codes), dtype=pl.Int64) + found_labels.to_physical()[0]
        found_labels = every.cast(found_labels.to_physical().dtype).cast(found_labels.dtype)
    of_columns = {key.column: _small(key.code, key.size) for key in keys.values()}
    of_columns |= {
        side: _small(code(pl.col(side).cast(log.label_dtype)), len(found_labels)) for side in sides
    }
    others = [
        *([] if log.weight_name is None else ["weight"]),
        *log.weight_sums,
        *(pl.col(name).hash() if name == "cluster" else name for name in log.extras),
    ]
    frame = log.frame.select(
        *(code.alias(name) for name, code in of_columns.items() if name not in read.values), *others
    )
    if read.values:
        kept = list(read.pieces(of_columns, frame.collect(), log.label_dtype))
    else:
        dtypes = frame.collect_schema().dtypes()
        bytes_ = (
            sum(1 if one == pl.UInt8 else 2 if one == pl.UInt16 else 8 for one in dtypes) * rows
        )
        kept = None
        if bytes_ <= _KEPT:
            kept = list(frame.collect_batches(chunk_size=_PIECE, maintain_order=True))
    as_codes = replace(log, frame=frame, sets=None, label_dtype=pl.UInt32(), pred_dtype=pl.UInt32())
    return Coded(as_codes, keys, found_labels, rows, kept)


def _small(code: pl.Expr, size: int) -> pl.Expr:
    """Codes in the smallest integers. A value without a code has the code `size`."""
    dtype = pl.UInt8() if size < 2**8 else pl.UInt16() if size < 2**16 else pl.UInt32()
    return code.to_physical().cast(pl.UInt32).fill_null(size).cast(dtype)


@dataclass(frozen=True)
class _Read:
    """Columns of text whose codes were read from local Parquet files."""

    values: Mapping[str, raw.Values]
    groups: Sequence[Mapping[str, Codes]]

    def sizes(self, column: str, dtype: pl.DataType) -> pl.DataFrame:
        """The number of rows of each value."""
        values = self.values[column].series(dtype)
        n = np.zeros(len(values), np.int64)
        for group in self.groups:
            n += np.bincount(group[column], minlength=len(values))
        return pl.DataFrame({"value": values, "n": n.astype(np.float64)}).filter(pl.col("n") > 0)

    def pieces(
        self, codes: Mapping[str, pl.Expr], others: pl.DataFrame, labels: pl.DataType
    ) -> Iterator[pl.DataFrame]:
        """The rows with other codes, made from the values, and other columns."""
        new = {}
        for name, values in self.values.items():
            dtype = labels if not name.startswith(KEY) else pl.String()
            series = values.series(dtype).alias(name)
            new[name] = series.to_frame().select(codes[name].alias(name)).to_series().to_numpy()
        start, waiting, n_rows = 0, [], 0
        for place, group in enumerate(self.groups):
            waiting.append(group)
            n_rows += len(next(iter(group.values())))
            if n_rows < _PIECE and place + 1 < len(self.groups):
                continue
            piece = pl.DataFrame(
                {
                    name: np.concatenate([of_name[one[name]] for one in waiting])
                    for name, of_name in new.items()
                }
            )
            yield pl.concat([piece, others.slice(start, n_rows)], how="horizontal")
            start, waiting, n_rows = start + n_rows, [], 0


def _read(log: SlicedLog, sides: Sequence[str], rows: int) -> _Read:
    """Read the text of a log without weights from local Parquet files, if they are worth it."""
    dtypes = log.frame.collect_schema()
    names = [KEY + key for key in log.keys if isinstance(dtypes[KEY + key], TEXTS)]
    if all(isinstance(dtypes[side], TEXTS) for side in sides):
        names += sides
    scan = scan_worth_reading(log, names) if names and rows * len(names) <= _KEPT else None
    if scan is None:
        return _Read({}, [])
    labels = raw.Values()
    values = {name: raw.Values() if name.startswith(KEY) else labels for name in names}
    try:
        return _Read(values, raw.codes_of_log(scan, values))
    except (Unsuited, OSError, UnicodeError):
        return _Read({}, [])


def _sizes(log: SlicedLog, column: pl.Expr) -> pl.DataFrame:
    """The sum of weights of each value."""
    rows = log.frame.select(column.alias("value"), pl.col("weight").cast(pl.Float64))
    return rows.group_by("value").agg(n=pl.col("weight").sum()).collect()


class _Coder(NamedTuple):
    """How a column is turned into codes; null for other values than the known ones."""

    code: Callable[[pl.Expr], pl.Expr]
    codes: Sequence[int]
    """The code of each value."""
    size: int
    """How many codes there are."""


def _coder(values: pl.Series, every: pl.Series | None = None) -> _Coder:
    """Choose codes for some values of a column.

    `every` has all values of the column, if `values` are only some of them.
    """
    if isinstance(values.dtype, TEXTS):
        return _of_text(values, values if every is None else every)
    if values.dtype in _INTEGERS and values.drop_nulls().len():
        return _of_integers(values)
    hashes, places = values.hash(), pl.Series(range(len(values)), dtype=pl.UInt32)

    def of_any(column: pl.Expr) -> pl.Expr:
        return column.hash().replace_strict(hashes, places, default=None, return_dtype=pl.UInt32)

    return _Coder(of_any, range(len(values)), len(values))


def _of_text(values: pl.Series, every: pl.Series) -> _Coder:
    names, taken = values.cast(pl.String), {*every.cast(pl.String)}
    missing = "null"
    while missing in taken:
        missing += "'"
    codes = pl.Enum(names.fill_null(missing))
    has_null = names.has_nulls()

    def of_text(column: pl.Expr) -> pl.Expr:
        text = column.cast(pl.String)
        return (text.fill_null(missing) if has_null else text).cast(codes, strict=False)

    return _Coder(of_text, range(len(values)), len(values))


def _of_integers(values: pl.Series) -> _Coder:
    """The distance from the least integer, if few codes are without a value; it streams."""
    numbers = values.to_physical().cast(pl.Int64)
    known = numbers.drop_nulls().to_list()
    least, most = min(known), max(known)
    size = most - least + 1
    if size > _SPARSE * len(values):
        return _coder(values.cast(pl.String))

    def of_integer(column: pl.Expr) -> pl.Expr:
        number = column.to_physical().cast(pl.Int64)
        code = pl.when(number.is_between(least, most)).then(number - least)
        return code.fill_null(pl.when(number.is_null()).then(size)) if has_null else code

    has_null = values.has_nulls()
    codes = (numbers - least).fill_null(size).to_list()
    return _Coder(of_integer, codes, size + has_null)


def _of_values(
    name: str, column: pl.Expr, sizes: pl.DataFrame, least: float, *, as_words: bool
) -> Key:
    """A key with a slice per value."""
    texts = sizes.with_columns(text=as_text(pl.col("value"), sizes.schema["value"]))
    kept = texts.filter(pl.col("n") >= least).sort("text", "n", nulls_last=True)
    code, codes, size = _coder(kept["value"], sizes["value"])
    text = pl.col("text")
    values = kept.select(text.alias("value") if as_words else "value", said=clause(name, text))
    place = pl.Series(codes, dtype=pl.UInt32)
    values = values.with_columns(first=place, last=place)
    return Key(name, code(column), size, values, sizes.height - kept.height)


def _of_numbers(name: str, column: pl.Expr, cuts: Cuts) -> Key:
    """A key of numbers, cut into bins."""
    n_bins = len(cuts.ends) + 1
    others = ["NaN", None] if cuts.dtype.is_float() else [None]
    values = _ranges(n_bins, others, cuts.name, key=name)
    size = n_bins + len(others)
    return Key(name, cuts.place(column).fill_null(size - 1), size, values, is_cut=True)


def _of_times(name: str, column: pl.Expr, sizes: pl.DataFrame, unit: str) -> Key:
    """A key of times, cut by a calendar unit."""
    sizes = sizes.sort("value", nulls_last=True)
    days = sizes["value"].drop_nulls().dt.to_string(FORMATS[unit])
    week = "in the week of " if unit == "1w" else ""

    def named(first: int, last: int) -> str:
        if first == last:
            return f"{week}{days[first]}"
        return f"before {days[last + 1]}" if first == 0 else f"from {days[first]} on"

    # Codes are in the order of time, which text is not.
    code, _, size = _coder(sizes["value"].cast(pl.String))
    others = [None] if sizes["value"].has_nulls() else []
    values = _ranges(len(days), others, named, key=name)
    return Key(name, code(column.cast(pl.String)), size, values, is_cut=True)


def _ranges(
    number: int, others: Sequence[str | None], named: Callable[[int, int], str], *, key: str
) -> pl.DataFrame:
    """The values of a cut key: each bin, and the ranges of two or more bins from either end."""
    last = number - 1
    spans = [(place, place) for place in range(number)]
    spans += [(0, place) for place in range(1, last)]
    spans += [(place, last) for place in range(1, last)]
    alone = [(one, at, at) for at, one in enumerate(others, number)]
    ranges = [(named(*span), *span) for span in spans]
    found = [*ranges[:number], *alone, *ranges[number:]]
    schema = {"value": pl.String, "first": pl.UInt32, "last": pl.UInt32}
    values = pl.DataFrame(found, schema=schema, orient="row")
    return values.with_columns(said=clause(key, pl.col("value")))


def _unit(span: dt.timedelta | None) -> str:
    """The calendar unit for times that span this long."""
    days = 0 if span is None else span.days
    return "1d" if days < 14 else "1w" if days < 26 * 7 else "1mo"

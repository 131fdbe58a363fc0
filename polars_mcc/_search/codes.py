"""The values of keys and labels → codes: small integers that are fast to count.

The log is read once. Numbers with many values are cut at quantiles, and times by day, week or
month. Text arrives as numbered categories: numbers of its own in local Parquet files, else numbers
by Polars. A value with too few rows gets no code: no slice of it can be large enough. A key that is
cut has three kinds of slices: one bin, all bins up to one, and all bins from one on.

The codes stay in memory: one or two bytes per row and column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from polars_mcc._counts.coded import rows_of, scan_worth_reading
from polars_mcc._counts.codes import Values, codes_of_log
from polars_mcc._counts.counted import weight_total
from polars_mcc._counts.parquet import FAILURES, need
from polars_mcc._counts.sliced import KEY, PRED, SlicedLog
from polars_mcc._log.bins import FEW, FORMATS, Cuts, cuts_of
from polars_mcc._log.labels import is_text
from polars_mcc._log.text import as_text
from polars_mcc._log.words import clause

if TYPE_CHECKING:
    from polars_mcc._counts.parquet import Codes

_NEAR = 2**20  # most integers in a table that says the code of each: 4 MB
_INTEGERS = {
    *(pl.Boolean, pl.Int8, pl.Int16, pl.Int32, pl.Int64),
    *(pl.UInt8, pl.UInt16, pl.UInt32),
}


@dataclass(frozen=True)
class Key:
    """A key of the log, and the values of its slices."""

    name: str
    size: int
    """How many codes there are. A row whose value has no code has the code `size`."""
    values: pl.DataFrame
    """A row per value: `value` in the dtype of the result, how the slice is `said`, such as
    `age ≤ 25`, and the `first` and `last` of the codes that the value covers."""
    n_small: int = 0
    """How many values have too few rows for a slice."""

    @property
    def column(self) -> str:
        """The column of the log."""
        return KEY + self.name

    @property
    def is_cut(self) -> bool:
        """Whether a code may be in several values, as values are ranges."""
        return self.size < self.values.height

    @property
    def codes(self) -> pl.LazyFrame:
        """The codes of each value: its `number`, and each code in the column of the key."""
        codes = pl.int_ranges("first", pl.col("last") + 1, dtype=pl.UInt32)
        number = pl.int_range(pl.len(), dtype=pl.UInt32)
        values = self.values.lazy().select(codes.alias(self.column), number=number)
        return values.explode(self.column)

    def known(self, what: str) -> pl.Expr:
        """Look up a column of `values` for each slice, by the number of its value."""
        return pl.lit(self.values[what]).gather(pl.col(self.column))


@dataclass(frozen=True)
class Coded:
    """A log with codes in place of keys and labels. A null label has no code."""

    log: SlicedLog
    keys: Mapping[str, Key]
    labels: pl.Series
    """The labels, in the order of their codes. In a log of scores: the scores, with 0 and 1 for the
    gold labels."""
    rows: pl.DataFrame
    """The rows of the log, in memory."""


def is_ordered(dtype: pl.DataType) -> bool:
    """Whether values can be cut into ranges: numbers, dates and datetimes."""
    return dtype.is_numeric() or isinstance(dtype, (pl.Date, pl.Datetime))


def coded(log: SlicedLog, *, bins: int | None, least: float) -> Coded:
    """Replace the keys and labels of a log with codes.

    Args:
        log: The log. Its keys are columns.
        bins: The number of bins of a key of numbers. None: neither numbers nor times are cut.
        least: The least rows of a slice.
    """
    if log.weight_name is not None:
        log.frame.select(weight_total(log)).collect()  # An error if a weight is invalid.
    cuts, units = ({}, {}) if bins is None else (_cuts(log, bins), _units(log))
    read = _read(log, cuts, units)
    keys = {}
    for name in log.keys:
        column = read[KEY + name]
        if name in cuts:
            one = cuts[name]
            keys[name] = _cut_key(name, [*one.names, None], len(one.ends) + 1, one.name)
        elif name in units:
            keys[name], column = _of_times(name, column, units[name])
        else:
            sizes = read.lazy().group_by(value=KEY + name).agg(_n(log)).collect()
            as_words = bins is not None and is_ordered(log.key_dtypes[name])
            keys[name], column = _of_values(name, column, sizes, least, as_words=as_words)
        read = read.with_columns(column.alias(KEY + name))
    labelled = ["gold", *(PRED + name for name in log.models)]
    labels = pl.concat([read[name].unique() for name in labelled]).unique().drop_nulls()
    labels = labels.gather(labels.cast(_in_memory(log)).arg_sort())
    rows = read.with_columns(_codes(read[name], labels).alias(name) for name in labelled)
    label = pl.col(labelled)
    frame = rows.lazy().with_columns(pl.when(label < len(labels)).then(label))
    if log.weight_name is None:
        frame = frame.with_columns(weight=pl.lit(1, pl.Int64))
    dtype = pl.UInt32()
    as_codes = replace(log, frame=frame, sets=None, label_dtype=dtype, pred_dtype=dtype)
    return Coded(as_codes, keys, labels.cast(_in_memory(log)), rows)


def _in_memory(log: SlicedLog) -> pl.DataType:
    """The dtype of both labels, or of scores and of gold labels as 0 and 1."""
    return pl.Float64() if log.is_of_scores else log.label_dtype


def _n(log: SlicedLog) -> pl.Expr:
    """The rows of a value, or the sum of their weights."""
    n = pl.len() if log.weight_name is None else pl.col("weight").cast(pl.Float64).sum()
    return n.cast(pl.Float64).alias("n")


def _cuts(log: SlicedLog, bins: int) -> dict[str, Cuts]:
    """Where each key of numbers with many values is cut."""
    numbers = [key for key in log.keys if log.key_dtypes[key].is_numeric()]
    if not numbers:
        return {}
    rows = log.frame.select(*(KEY + key for key in numbers), "weight")
    found = cuts_of(rows, bins, few=FEW * bins)
    return {key: cuts for key, cuts in zip(numbers, found, strict=True) if cuts.ends}


def _units(log: SlicedLog) -> dict[str, str]:
    """For each key of times, the unit that cuts it: days, weeks or months."""
    times = [key for key in log.keys if isinstance(log.key_dtypes[key], (pl.Date, pl.Datetime))]
    if not times:
        return {}
    spans = log.frame.select(pl.col(KEY + key).max() - pl.col(KEY + key).min() for key in times)
    days = [0 if span is None else span.days for span in spans.collect().row(0)]
    units = ["1d" if n < 14 else "1w" if n < 26 * 7 else "1mo" for n in days]
    return dict(zip(times, units, strict=True))


def _read(log: SlicedLog, cuts: Mapping[str, Cuts], units: Mapping[str, str]) -> pl.DataFrame:
    """Keys, labels, weights and clusters, in memory. Text is numbered, numbers are cut."""
    labels = dict.fromkeys(["gold", *(PRED + name for name in log.models)], _in_memory(log))
    texts = {KEY + name: dtype for name, dtype in log.key_dtypes.items()} | labels
    texts = {name: dtype for name, dtype in texts.items() if is_text(dtype)}
    known = _text_of_files(log, [*texts])
    weights = [] if log.weight_name is None else ["weight", *log.weight_sums]
    columns = {name: pl.col(name) for name in (*(KEY + key for key in log.keys), *weights)}
    columns |= {KEY + key: _bin(pl.col(KEY + key), one) for key, one in cuts.items()}
    # A day of a zone may have two midnights, so a time is a date first.
    dates = {key: pl.col(KEY + key).dt.date().dt.truncate(unit) for key, unit in units.items()}
    columns |= {KEY + key: date for key, date in dates.items()}
    columns |= {name: pl.col(name).cast(dtype) for name, dtype in labels.items()}
    columns |= {name: pl.col(name).hash() for name in log.extras}  # the cluster
    of_labels = pl.Categories.random()  # The labels of all models are numbered alike.
    for name, dtype in texts.items():
        if dtype == pl.String:
            categories = of_labels if name in labels else pl.Categories.random()
            columns[name] = columns[name].cast(pl.Categorical(categories))
    asked = {name: column for name, column in columns.items() if name not in known}
    read = log.frame.select(**asked).collect(engine="streaming")
    return pl.concat([pl.DataFrame(known), read], how="horizontal")


def _text_of_files(log: SlicedLog, names: Sequence[str]) -> dict[str, pl.Series]:
    """Columns of text, by the numbers of local Parquet files, if they are large and have these."""
    scan = scan_worth_reading(log, names) if names else None
    if scan is None:
        return {}
    labels = Values()
    values = {name: Values() if name.startswith(KEY) else labels for name in names}
    try:
        groups = codes_of_log(scan, values)
        need(rows_of(log) == sum(len(group[names[0]]) for group in groups))
    except FAILURES:
        return {}
    texts = {name: one.series(pl.String()) for name, one in values.items()}
    return {
        name: text.cast(pl.Enum(text.drop_nulls())).gather(
            np.concatenate([group[name] for group in groups])
        )
        for name, text in texts.items()
        if groups
    }


def _codes(column: pl.Series, values: pl.Series) -> pl.Series:
    """The place of each value of a column; the number of values for another value."""
    column, values, size = column.to_physical(), values.to_physical(), len(values)
    places = np.arange(size + 1, dtype=np.min_scalar_type(size))
    if values.null_count() == size or not _are_near(values):
        known, others = pl.Series(places[:-1]), pl.Series(places).dtype
        return column.hash().replace_strict(values.hash(), known, default=size, return_dtype=others)
    # Look up the distance from one below the least. Null comes last.
    below, above = int(values.min()) - 1, int(values.max()) + 1  # type: ignore[arg-type]

    def distance(numbers: pl.Series) -> Codes:
        near = numbers.cast(pl.Int64).clip(below, above) - below
        return near.fill_null(above - below + 1).to_numpy()

    of_distance = np.full(above - below + 2, size, places.dtype)
    of_distance[distance(values)] = places[:-1]
    return pl.Series(of_distance[distance(column)])


def _are_near(values: pl.Series) -> bool:
    """Whether values are integers, or numbers of text, that fit in a small table."""
    if values.dtype not in _INTEGERS:
        return False
    least, most = int(values.min()), int(values.max())  # type: ignore[arg-type]
    return most - least < _NEAR and max(-least, most) < 2**62  # so that one more fits


def _of_values(
    name: str, column: pl.Series, sizes: pl.DataFrame, least: float, *, as_words: bool
) -> tuple[Key, pl.Series]:
    """A key with a slice per value, and its codes."""
    text = pl.col("text")
    kept = (
        sizes.filter(pl.col("n") >= least)
        .with_columns(text=as_text(pl.col("value"), column.dtype))
        .sort("text", "n", nulls_last=True)
    )
    code = pl.int_range(pl.len(), dtype=pl.UInt32)
    values = kept.select(
        text.alias("value") if as_words else "value", said=clause(name, text), first=code, last=code
    )
    key = Key(name, kept.height, values, sizes.height - kept.height)
    return key, _codes(column, kept["value"])


def _bin(column: pl.Expr, cuts: Cuts) -> pl.Expr:
    """The bin of each number. After the bins come NaN, of floats, and null."""
    null = len(cuts.names)
    dtype = pl.UInt8 if null < 2**8 - 1 else pl.UInt32
    return cuts.bin_of(column).fill_null(null).cast(dtype)


def _of_times(name: str, column: pl.Series, unit: str) -> tuple[Key, pl.Series]:
    """A key of times, cut by a unit of the calendar, and its codes."""
    starts = column.unique().sort(nulls_last=True)
    days = starts.drop_nulls().dt.to_string(FORMATS[unit])
    week = "in the week of " if unit == "1w" else ""

    def said(first: int, last: int) -> str:
        if first == last:
            return f"{week}{days[first]}"
        return f"before {days[last + 1]}" if first == 0 else f"from {days[first]} on"

    names = [said(code, code) for code in range(len(days))] + [None] * starts.null_count()
    return _cut_key(name, names, len(days), said), _codes(column, starts)


def _cut_key(
    key: str, names: Sequence[str | None], number: int, said: Callable[[int, int], str]
) -> Key:
    """A key that is cut. Its values are each bin, NaN and null, and ranges of bins from either end.

    `names` are of all codes: first the `number` of bins in order, then NaN and null.
    """
    last = number - 1
    ranges = [(0, code) for code in range(1, last)] + [(code, last) for code in range(1, last)]
    found = [
        *((name, code, code) for code, name in enumerate(names)),
        *((said(*span), *span) for span in ranges),
    ]
    schema = {"value": pl.String, "first": pl.UInt32, "last": pl.UInt32}
    values = pl.DataFrame(found, schema=schema, orient="row")
    return Key(key, len(names), values.with_columns(said=clause(key, pl.col("value"))))

"""The values of keys and labels → codes: small integers that are fast to count.

The log is read once. Text arrives as numbers, from local Parquet files or as categories of
Polars. Numbers with many values are cut at quantiles, and times by day, week or month. A value with
too few rows gets no code: no slice of it can be large enough. A key that is cut has three kinds of
slices: one bin, all bins up to one, and all bins from one on.

The codes stay in memory: one or two bytes per row and column. Codes have the order in which values
were found. Only the small tables of values are sorted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs

from polars_mcc._base.slice_names import clause
from polars_mcc._base.unstable_polars import of_places, without_columns
from polars_mcc._base.values_as_text_or_markdown import as_text
from polars_mcc._counts.count_rows import null_and_squared, weight_total
from polars_mcc._counts.pair_counts import n_rows_of
from polars_mcc._counts.parquet_codes import Values, codes_of_log, combined
from polars_mcc._counts.parquet_files import Unsuited, need, scan_of
from polars_mcc._counts.sliced_log import KEY, PRED, SlicedLog
from polars_mcc._frame.labels import is_text
from polars_mcc._keys.bins import (
    FEW,
    FORMATS,
    Cuts,
    cuts_of,
    is_calendar,
    is_clock,
    places_sampled,
    span,
    unit_of,
)
from polars_mcc._metrics.slice_sums import Floats, Ints, added_up

if TYPE_CHECKING:
    from polars_mcc._counts.parquet_files import Codes

_SMALL = 50_000  # rows whose values are counted, not estimated
_STEP = 2**17  # least rows that are counted at once
_NEAR = 2**20  # most integers in a table that says the code of each
_INTEGERS = {
    *(pl.Boolean, pl.Int8, pl.Int16, pl.Int32, pl.Int64),
    *(pl.UInt8, pl.UInt16, pl.UInt32),
}


@dataclass(frozen=True, eq=False)
class CodedKey:
    """A key of the log, and the values of its slices. A slice has the place of its value."""

    name: str
    size: int
    """How many codes there are. A row whose value has no code has the code `size`."""
    values: pl.DataFrame
    """A row per value: `value` in the dtype of the result, how the slice is `said`, such as
    `age ≤ 25`, and the `first` and `last` of the codes that the value covers."""
    rank: Ints
    """The place of each value in the order of the result; at -1, of no value: (values + 1,)."""
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


class CodedColumn(NamedTuple):
    """A column as codes, and the value of each code. A null is a value."""

    codes: Codes
    values: pl.Series


class RowWeights(NamedTuple):
    """The weights of rows: arrays (rows,)."""

    n: Ints
    """Integers of 64 bits, or floats. A null weight is 0."""
    n_null: Ints
    """How many rows without a weight the row stands for."""
    squares: Floats | None
    """The squared sample weights; None if a weight counts rows."""


@dataclass(frozen=True)
class CodedLog:
    """A log with codes in place of keys and labels."""

    sliced: SlicedLog
    keys: Mapping[str, CodedKey]
    labels: pl.Series
    """The labels, sorted, in the order of their codes. A row without a label has the next code. If
    null is a label, it is the last. In a log of scores: the scores, with 0 and 1 for the gold
    labels."""
    rows: Mapping[str, Codes]
    """The codes of each column."""
    weights: RowWeights | None
    clusters: Ints | None
    """A number for the cluster of each row."""
    n_of_texts: Mapping[str, pl.DataFrame]
    """The rows, or the sum of weights, of each value of a key of text."""
    n_values: Mapping[str, int]
    """How many values each key of text or of integers has."""
    sampled: Ints
    """The places of some rows."""
    sample: pl.DataFrame
    """These rows, with their values."""


def is_ordered(dtype: pl.DataType) -> bool:
    """Whether values can be cut into ranges: numbers, dates and times, durations."""
    return dtype.is_numeric() or is_calendar(dtype) or is_clock(dtype)


def coded_log(log: SlicedLog, *, bins: int | None, least: float) -> CodedLog:
    """Replace the keys and labels of a log with codes.

    Args:
        log: The log. Its keys are columns.
        bins: The number of bins of a key of numbers. None: neither numbers nor times are cut.
        least: The least rows of a slice.
    """
    label_dtype = pl.Float64() if log.is_of_scores else log.label_dtype  # gold: 0 and 1
    sides = dict.fromkeys(["gold", *(PRED + name for name in log.models)], label_dtype)
    read, texts = _read(log, sides)
    weights = _weights(log, read)
    labels, rows = _labels(log, sides, read, texts)
    sampled = places_sampled(len(rows["gold"])).to_numpy()
    sample = _sample(log, read, texts, sampled)
    cuts = {}
    if bins is not None:
        ordered = [key for key, dtype in log.key_dtypes.items() if is_ordered(dtype)]
        numbers = [key for key in ordered if not is_calendar(log.key_dtypes[key])]
        of_keys = read.lazy().select(
            *(KEY + key for key in numbers),
            weight=pl.lit(1) if log.weight_name is None else "weight",
        )
        cuts = dict(zip(numbers, cuts_of(of_keys, bins, few=FEW * bins), strict=True))
    weight = None if weights is None else weights.n
    if weights is not None and weights.squares is not None:
        # No slice is worth more rows of equal weight than it has; rows of weight 0 are none.
        weight = ((weights.n > 0) | (weights.n_null > 0)).astype(np.int64)
    keys, n_of_texts, n_values = {}, {}, {}
    for name, dtype in log.key_dtypes.items():
        column = KEY + name
        if dtype.is_integer():  # Of many rows, an estimate suffices.
            is_small = read.height < _SMALL
            count = pl.col(column).n_unique() if is_small else pl.col(column).approx_n_unique()
            n_values[name] = read.select(count).item()
        if name in cuts and cuts[name].ends:
            keys[name], rows[column] = _of_bins(name, read[column], cuts[name])
        elif bins is not None and is_calendar(dtype):
            keys[name], rows[column] = _of_times(name, read[column])
        else:
            coded = texts.pop(column) if column in texts else codes_of(read[column])
            sizes = totals([coded.codes], [len(coded.values)], weight)
            if is_text(dtype):
                of_values = pl.DataFrame({"text": coded.values.cast(pl.String), "n": sizes})
                n_of_texts[name] = of_values.filter(pl.col("n") > 0).drop_nulls("text")
                n_values[name] = int(np.count_nonzero(sizes))
            as_words = bins is not None and is_ordered(dtype)
            keys[name], rows[column] = _of_values(name, coded, sizes, least, as_words=as_words)
        read = read.drop(column, strict=False)
    clusters = read["cluster"].to_numpy() if log.has_clusters else None
    return CodedLog(
        log, keys, labels, rows, weights, clusters, n_of_texts, n_values, sampled, sample
    )


def _read(
    log: SlicedLog, labels: Mapping[str, pl.DataType]
) -> tuple[pl.DataFrame, dict[str, CodedColumn]]:
    """Keys, labels, weights and clusters, in memory; and columns of text by numbers of files."""
    columns = {KEY + key: pl.col(KEY + key) for key in log.keys}
    columns |= {name: pl.col(name).cast(dtype) for name, dtype in labels.items()}
    columns |= {name: pl.col(name).hash() for name in log.pair_splits}  # the cluster
    texts = {KEY + name: dtype for name, dtype in log.key_dtypes.items()} | dict(labels)
    known = _text_of_files(log, [name for name, dtype in texts.items() if is_text(dtype)])
    of_labels = pl.Categories.random()  # The labels of all models are numbered alike.
    for name, dtype in texts.items():
        if dtype == pl.String:
            categories = of_labels if name in labels else pl.Categories.random()
            columns[name] = columns[name].cast(pl.Categorical(categories))
    asked = {name: column for name, column in columns.items() if name not in known}
    if log.weight_name is not None:
        asked |= {name: pl.col(name) for name in ("weight", *log.weight_sums)}
    if not asked:
        return without_columns(len(known["gold"].codes)), known
    return log.frame.select(**asked).collect(engine="streaming"), known


def _text_of_files(log: SlicedLog, names: Sequence[str]) -> dict[str, CodedColumn]:
    """Columns of text, by the numbers of local Parquet files, if they are large and have these."""
    scan = scan_of(log, names) if names else None
    if scan is None:
        return {}
    labels = Values()
    values = {name: Values() if name.startswith(KEY) else labels for name in names}
    try:
        groups = [{**group} for group in codes_of_log(scan, values)]
        need(n_rows_of(log) == sum(len(group[names[0]]) for group in groups))
    except Unsuited:
        return {}
    texts = {name: values[name].series(pl.String()) for name in names}
    # One column after another, so that only one is twice in memory.
    return {
        name: CodedColumn(np.concatenate([group.pop(name) for group in groups]), texts[name])
        for name in names
        if groups
    }


def _weights(log: SlicedLog, read: pl.DataFrame) -> RowWeights | None:
    """The weights of rows, or an error if a weight is invalid."""
    if log.weight_name is None:
        return None
    read.lazy().select(weight_total(log)).collect()
    weight = read["weight"].cast(log.numbers.count)
    null, squared = null_and_squared(log)
    n_null, squares = read.select(n_null=null, squares=squared).get_columns()
    of_sample = None if log.is_frequency else squares.fill_null(0).to_numpy()
    return RowWeights(weight.fill_null(0).to_numpy(), n_null.to_numpy(), of_sample)


def _labels(
    log: SlicedLog,
    sides: Mapping[str, pl.DataType],
    read: pl.DataFrame,
    texts: dict[str, CodedColumn],
) -> tuple[pl.Series, dict[str, Codes]]:
    """The labels that occur, sorted, and the codes of gold and of each prediction."""
    if "gold" in texts:
        columns = {side: texts[side].codes for side in sides}
        values = texts["gold"].values
    else:
        together = pl.concat([read[side] for side in sides], rechunk=False)
        codes, values = codes_of(together)
        columns = dict(zip(sides, np.split(codes, len(sides)), strict=True))
    sizes = [totals([codes], [len(values)]) for codes in columns.values()]
    labels = values.cast(sides["gold"])
    is_label = pl.Series(np.max(sizes, axis=0) > 0)
    if log.nulls != "label":
        is_label &= labels.is_not_null()
    order = labels.arg_sort(nulls_last=True).to_numpy()
    order = order[is_label.to_numpy()[order]]
    numbered = {side: places_in_order(codes, len(values), order) for side, codes in columns.items()}
    return labels.gather(order), numbered


def _sample(
    log: SlicedLog, read: pl.DataFrame, texts: Mapping[str, CodedColumn], places: Ints
) -> pl.DataFrame:
    """Some rows: keys, labels and weights."""
    columns = {name: text.values.gather(text.codes[places]) for name, text in texts.items()}
    rows = read.select(~cs.by_name("cluster", require_all=False))
    rows = rows[places] if len(places) < rows.height else rows
    known = [values.alias(name) for name, values in columns.items()]
    rows = pl.DataFrame([*rows.get_columns(), *known])
    if log.weight_name is None:
        rows = rows.with_columns(weight=pl.lit(1, pl.Int64))
    return rows.with_columns(cs.categorical().cast(pl.String))


def codes_of(column: pl.Series) -> CodedColumn:
    """The codes of a column, and their values."""
    if column.dtype.is_nested() or column.dtype == pl.Object:
        return _by_hash(column)
    numbers = column.to_physical()
    if numbers.dtype not in _INTEGERS:
        return _by_hash(column)
    ends: Any = numbers.min(), numbers.max()
    if None in ends:  # all null, or no rows
        return CodedColumn(np.zeros(len(column), np.uint8), column[:1])
    least, span = int(ends[0]), int(ends[1]) - int(ends[0])
    if span >= min(_NEAR, max(4 * len(column), 2**8)) or abs(least) >= 2**62:
        return _by_hash(column)
    has_null = numbers.null_count() > 0
    dtype = np.min_scalar_type(span + has_null)
    known = numbers.fill_null(ends[0]).to_numpy()
    codes: Codes = np.empty(len(column), dtype)
    for rows in portions(len(column)):
        codes[rows] = known[rows].astype(np.int64) - least
    if has_null:
        codes[numbers.is_null().to_numpy()] = span + 1
    values = pl.int_range(least, least + span + 1, eager=True).cast(numbers.dtype)
    is_numbered = isinstance(column.dtype, (pl.Categorical, pl.Enum))
    values = of_places(values, column.dtype) if is_numbered else values.cast(column.dtype)
    return CodedColumn(codes, values.extend_constant(None, 1) if has_null else values)


def _by_hash(column: pl.Series) -> CodedColumn:
    """The codes of any column: a place per distinct value."""
    values = column.unique()
    values = values.set(values == 0, 0.0) if column.dtype.is_float() else values  # or -0.0
    known = pl.Series(np.arange(len(values), dtype=np.min_scalar_type(max(len(values), 1))))
    of_hash = values.to_physical().hash()
    codes = column.to_physical().hash().replace_strict(of_hash, known, return_dtype=known.dtype)
    return CodedColumn(codes.to_numpy(), values)


def portions(rows: int, least: int = 0) -> Iterator[slice]:
    """Split rows into portions that fit in the caches. NumPy makes 64-bit integers of codes."""
    step = max(_STEP, least)
    return (slice(start, start + step) for start in range(0, rows, step))


def totals(codes: Sequence[Codes], sizes: Sequence[int], weight: Ints | None = None) -> Ints:
    """Count the rows of each combination of codes, or add up their weights in their dtype.

    The result has an axis per column of codes. `sizes` are the numbers of codes.
    """
    number = math.prod(sizes)
    table: Ints = np.zeros(number, np.int64 if weight is None else weight.dtype)
    for rows in portions(len(codes[0]), number):
        code = combined([column[rows] for column in codes], sizes, None)
        if weight is None:
            table += np.bincount(code, minlength=number)
        else:
            table += added_up(weight[rows], code, number)
    return table.reshape(sizes)


def places_in_order(codes: Codes, number: int, order: Ints) -> Codes:
    """Other codes of so many values: their places in an order; its length for other values."""
    of_code = np.full(max(number, 1), len(order), np.min_scalar_type(len(order)))
    of_code[order] = np.arange(len(order))
    places = np.empty_like(codes, of_code.dtype)
    for rows in portions(len(codes)):
        places[rows] = of_code[codes[rows]]
    return places


def _of_values(
    name: str, column: CodedColumn, sizes: Floats, least: float, *, as_words: bool
) -> tuple[CodedKey, Codes]:
    """A key with a slice per value, and its codes."""
    codes, values = column
    [kept] = np.nonzero(sizes >= least)
    n_small = int(np.count_nonzero(sizes)) - len(kept)
    if len(kept) < len(values):
        codes = places_in_order(codes, len(values), kept)
        values, sizes = values.gather(kept), sizes[kept]
    text = as_text(pl.col("value"), values.dtype).alias("text")
    places = np.arange(len(values))
    rows = pl.DataFrame({"value": values, "n": sizes, "first": places, "last": places})
    rows = rows.with_columns(text).with_columns(said=clause(name, pl.col("text")))
    order = rows.select(pl.arg_sort_by("text", "n", nulls_last=True)).to_series().to_numpy()
    shown = pl.col("text").alias("value") if as_words else pl.col("value")
    rows = rows.select(shown, "said", "first", "last")
    rank = np.append(places_in_order(places, len(values), order), len(values))
    return CodedKey(name, len(values), rows, rank, n_small), codes


def _of_bins(name: str, column: pl.Series, cuts: Cuts) -> tuple[CodedKey, Codes]:
    """A key of numbers that is cut, and its codes. After the bins come NaN, of floats, and null."""
    null = len(cuts.names)
    dtype = pl.UInt8 if null < 2**8 - 1 else pl.UInt32
    bin_of = cuts.bin_of(pl.col(column.name)).fill_null(null).cast(dtype)
    codes = column.to_frame().lazy().select(bin_of).collect().to_series().to_numpy()
    return _cut_key(name, [*cuts.names, None], len(cuts.ends) + 1, cuts.name), codes


def _of_times(name: str, column: pl.Series) -> tuple[CodedKey, Codes]:
    """A key of times, cut by a unit of the calendar, and its codes."""
    unit = unit_of(column.to_frame().select(span(pl.col(column.name))).item())
    # A day of a zone may have two midnights, so a time is a date first.
    codes, values = codes_of(column.dt.date().dt.truncate(unit))
    order = values.arg_sort(nulls_last=True).to_numpy()
    order = order[totals([codes], [len(values)])[order] > 0]
    starts = values.gather(order)
    days = starts.drop_nulls().dt.to_string(FORMATS[unit])
    week = "in the week of " if unit == "1w" else ""

    def said(first: int, last: int) -> str:
        if first == last:
            return f"{week}{days[first]}"
        return f"before {days[last + 1]}" if first == 0 else f"from {days[first]} on"

    names = [said(code, code) for code in range(len(days))] + [None] * starts.null_count()
    return _cut_key(name, names, len(days), said), places_in_order(codes, len(values), order)


def _cut_key(
    key: str, names: Sequence[str | None], number: int, said: Callable[[int, int], str]
) -> CodedKey:
    """A key that is cut. Its values are each bin, NaN and null, and ranges of bins from either end.

    `names` are of all codes: first the `number` of bins in order, then NaN and null.
    """
    last = number - 1
    ranges = [(0, code) for code in range(1, last)] + [(code, last) for code in range(1, last)]
    slices = [
        *((name, code, code) for code, name in enumerate(names)),
        *((said(*span), *span) for span in ranges),
    ]
    schema = {"value": pl.String, "first": pl.Int64, "last": pl.Int64}
    values = pl.DataFrame(slices, schema=schema, orient="row")
    values = values.select("value", clause(key, pl.col("value")).alias("said"), "first", "last")
    return CodedKey(key, len(names), values, np.arange(values.height + 1))

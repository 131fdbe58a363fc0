"""log → pairs of other slices: of several sets of keys, and of windows of time.

Counts add up, so rows are counted once: what is coarser, or overlaps, is summed up from counts.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import polars as pl
import polars.selectors as cs

from polars_mcc._log import (
    SET,
    TOTAL,
    AnyFrame,
    IntoColumn,
    Log,
    as_expr,
    dtype_of,
    key_column,
    pred_column,
)
from polars_mcc._pairs import count_columns, merged, pairs

Sets: TypeAlias = Literal["crossed", "each", "rollup", "cube"] | Sequence[str | tuple[str, ...]]
"""Which sets of keys make slices, in SQL's words, or one by one."""

KeySet: TypeAlias = tuple[str, ...]

_UNITS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
    "w": 7 * 86_400 * 10**9,
}
_MONTHS = {"mo": 1, "q": 3, "y": 12}


def sets_of(keys: Sequence[str], sets: Sets, *, total: bool) -> list[KeySet]:
    """The sets of keys that a user asks for, the total last.

    Raises:
        ValueError: There is no such kind of sets, a set is listed twice, or names no key.
    """
    if not keys:
        msg = f"sets={sets!r} needs keys to make sets of: name some, as in by('country', sets=...)"
        raise ValueError(msg)
    everything = tuple(keys)
    kinds: dict[str, Iterable[KeySet]] = {
        "crossed": [everything],
        "each": [(key,) for key in keys],
        "rollup": [everything[:size] for size in range(len(keys), -1, -1)],
        "cube": subsets(keys, range(len(keys), -1, -1)),
    }
    if not isinstance(sets, str):
        listed = [(one,) if isinstance(one, str) else tuple(one) for one in sets]
        _check_listed(keys, listed)
    elif sets in kinds:
        listed = list(kinds[sets])
    else:
        msg = (
            f"sets must be one of {', '.join(map(repr, kinds))}, or a list of tuples, got {sets!r}"
        )
        raise ValueError(msg)
    return [*listed, ()] if total and () not in listed else listed


def subsets(keys: Sequence[str], sizes: Iterable[int]) -> list[KeySet]:
    """The sets of so many of the keys, in their order."""
    return [found for size in sizes for found in itertools.combinations(keys, size)]


def name_of(keys: KeySet) -> str:
    """The name of a set of keys, as answers show it."""
    return ", ".join(keys) if keys else TOTAL


def of_sets(log: Log, sets: Sequence[KeySet], always: KeySet = ()) -> tuple[Log, pl.LazyFrame]:
    """The pairs of the slices of each set of keys, and the log that these are of.

    A set that is part of another is summed up from the smallest such; only the others are
    counted from rows. A key that is not of a set is null there; those of `always` are of all.
    """
    names = list(map(name_of, sets))
    for name in names:
        if names.count(name) > 1:
            msg = f"two sets of keys have one name, '{name}'; rename a key whose name has a comma"
            raise ValueError(msg)
    resliced = replace(log, sets=tuple(names), has_total=() in sets and not always)
    largest_first = sorted(sets, key=len, reverse=True)
    parents = {
        keys: next((other for other in reversed(largest_first) if {*keys} < {*other}), None)
        for keys in sets
    }
    counted = _of_rows(log, [keys for keys, parent in parents.items() if parent is None], always)
    for keys in largest_first:
        parent = parents[keys]
        if parent is not None:
            counted[keys] = merged_pairs(replace(log, keys=(*keys, *always)), counted[parent])
        if keys in parents.values():
            counted[keys] = counted[keys].cache()
    dtypes = log.columns.collect_schema()
    counts = ["gold", "pred", *log.extras, *count_columns(log)]

    def null_unless_of(keys: KeySet, column: str) -> pl.Expr:
        inactive = {key_column(key) for key in log.keys} - {*map(key_column, (*keys, *always))}
        null = pl.lit(None, dtypes[column]) if column in inactive else pl.col(column)
        return null.alias(column)

    every = [
        cells.select(
            pl.lit(name_of(keys), resliced.set_names).alias(SET),
            *(null_unless_of(keys, column) for column in log.slice),
            *counts,
        )
        for keys, cells in counted.items()
    ]
    return resliced, pl.concat(every)


def merged_pairs(log: Log, cells: pl.LazyFrame) -> pl.LazyFrame:
    """Add up pairs that are the same, in the slices of a log that may be coarser than theirs."""
    return merged(log, cells, **{name: pl.col(name) for name in ("gold", "pred", *log.extras)})


LONG = ("slice", "value")
"""The columns of a slice in the long form."""


def can_be_long(keys: Iterable[str]) -> bool:
    """Whether no key has the name of a column of the long form."""
    return not set(LONG).intersection(keys)


def in_long_form(sets: Sequence[KeySet], answer: pl.LazyFrame) -> pl.LazyFrame:
    """An answer of several sets, with `slice` and `value`, as text, in place of its keys."""
    keys = list(dict.fromkeys(itertools.chain(*sets)))
    is_one = pl.col(SET).is_in([name_of(one) for one in sets if len(one) == 1])

    def text(key: str) -> pl.Expr:
        is_active = pl.col(SET).is_in([name_of(one) for one in sets if key in one])
        missing = pl.when(~is_one).then(pl.lit("null"))
        return pl.when(is_active).then(pl.coalesce(as_expr(key).cast(pl.String), missing))

    values = [text(key) for key in keys]
    has_value = pl.any_horizontal(value.is_not_null() for value in values)
    value = pl.when(has_value).then(pl.concat_str(values, separator=", ", ignore_nulls=True))
    return answer.select(pl.col(SET).alias("slice"), value.alias("value"), ~cs.by_name(SET, *keys))


@dataclass(frozen=True)
class Windows:
    """Trailing windows, each named by the bucket that it ends with.

    It has as many buckets as there are offsets: so far the rows of a bucket go on.
    """

    bucket: pl.Expr
    name: str
    offsets: tuple[str, ...]


def windows_of(frame: AnyFrame, index: IntoColumn, window: str, every: str | None) -> Windows:
    """Windows of a length, one for every so much time of an index.

    Raises:
        ValueError: A length is none, or that of the windows is not a multiple of `every`.
        polars.exceptions.SchemaError: The index is neither Date nor Datetime.
    """
    name, dtype = dtype_of(frame, index, "index")
    every = window if every is None else every
    (length, months), (step, is_months) = _length("window", window), _length("every", every)
    if months != is_months or length % step:
        msg = (
            f"window={window!r} must be a multiple of every={every!r}: counts are added up, "
            "and those of a part of a step are not known"
        )
        raise ValueError(msg)
    if not isinstance(dtype, (pl.Date, pl.Datetime)):
        msg = f"index '{name}' must be Date or Datetime, but is {dtype}; cast or parse it first"
        raise pl.exceptions.SchemaError(msg)
    number, unit = _parts("every", every)
    is_clock = unit not in {"d", "w", *_MONTHS}
    if is_clock and dtype == pl.Date:
        msg = f"every={every!r} is less than a day, but index '{name}' is Date"
        raise ValueError(msg)
    bucket = as_expr(index)
    zone = dtype.time_zone if isinstance(dtype, pl.Datetime) else None
    if is_clock and zone is not None:  # Hours of the clock are not all alike.
        bucket = bucket.dt.convert_time_zone("UTC").dt.truncate(f"{number}{unit}")
        bucket = bucket.dt.convert_time_zone(zone)
    else:
        bucket = bucket.dt.truncate(f"{number}{unit}")
    offsets = tuple(f"{place * number}{unit}" for place in range(length // step))
    return Windows(bucket.alias(name), name, offsets)


def of_windows(log: Log, cells: pl.LazyFrame, windows: Windows) -> pl.LazyFrame:
    """The pairs of each window, from those of its buckets, up to the last bucket of the log.

    Rows without a time are in one slice of their own.
    """
    first, *_ = windows.offsets
    bucket, offset = pl.col(key_column(windows.name)), pl.col("offset")
    cells = cells.cache()
    reached = pl.LazyFrame({"offset": windows.offsets}).join(
        cells.select(last=bucket.max()), how="cross"
    )
    spread = (
        cells.join(reached, how="cross")
        .filter(bucket.is_not_null() | (offset == first))
        .with_columns(bucket.dt.offset_by(offset))
        .filter(bucket.is_null() | (bucket <= pl.col("last")))
    )
    return merged_pairs(log, spread)


def _check_listed(keys: Sequence[str], listed: Sequence[KeySet]) -> None:
    if not listed:
        msg = "sets is empty: list at least one set of keys, such as ('country', 'device')"
        raise ValueError(msg)
    seen: list[Collection[str]] = []
    for one in listed:
        for key in one:
            if key not in keys:
                msg = f"sets has {one!r}, but there is no key {key!r}; the keys are {list(keys)}"
                raise ValueError(msg)
        if len({*one}) < len(one) or {*one} in seen:
            msg = f"sets has {one!r}, of which a key or the whole is there twice"
            raise ValueError(msg)
        seen.append({*one})
    for key in keys:
        if not any(key in one for one in listed):
            msg = f"key {key!r} is in none of the sets; leave it out, or add ({key!r},)"
            raise ValueError(msg)


def _of_rows(log: Log, sets: Sequence[KeySet], always: KeySet) -> dict[KeySet, pl.LazyFrame]:
    """The pairs of sets of which none is part of another, from one scan."""
    if len(sets) == 1:
        return {keys: pairs(replace(log, keys=(*keys, *always))) for keys in sets}
    if max(map(len, sets)) == 1:
        return _of_single_keys(log, sets, always)
    # Crossed keys have so many groups that Polars would keep the rows of most in memory, were
    # they counted in one grouping. So they are counted one by one, from columns kept in memory.
    source = _encoded(log, [*log.columns.collect_schema()])
    clusters = {"cluster"} & {*log.extras}
    return {
        keys: _decoded(
            log,
            pairs(replace(source, keys=(*keys, *always))),
            [*map(key_column, (*keys, *always)), *clusters],
        )
        for keys in sets
    }


def _of_single_keys(log: Log, sets: Sequence[KeySet], always: KeySet) -> dict[KeySet, pl.LazyFrame]:
    """Count each row once for each key, all in one grouping, which streams.

    Keys of one dtype share a column of values.
    """
    source = _encoded(log, ["gold", *map(pred_column, log.preds)])
    dtypes = log.columns.collect_schema()
    slots: list[pl.DataType] = []
    for (key,) in sets:
        dtype = dtypes[key_column(key)]
        slots += [dtype] if dtype not in slots else []
    stacked = replace(
        source,
        keys=(*(f"{SET}:{place}" for place in range(len(slots))), *always),
        sets=tuple(map(name_of, sets)),
    )

    def slot_of(key: str) -> int:
        return slots.index(dtypes[key_column(key)])

    def rows_of(key: str) -> pl.LazyFrame:
        values = {
            key_column(f"{SET}:{place}"): (
                pl.col(key_column(key)) if place == slot_of(key) else pl.lit(None, dtype)
            )
            for place, dtype in enumerate(slots)
        }
        rows = replace(source, keys=(key, *always)).rows
        name = pl.lit(name_of((key,)), stacked.set_names).alias(SET)
        return rows.with_columns(name, **values).drop(key_column(key))

    rows = pl.concat([rows_of(key) for (key,) in sets], how="diagonal")
    cells = _decoded(log, pairs(stacked, rows), []).cache()
    return {
        (key,): cells.filter(pl.col(SET) == name_of((key,))).select(
            pl.col(key_column(f"{SET}:{slot_of(key)}")).alias(key_column(key)),
            *replace(log, keys=always).slice,
            *("gold", "pred", *log.extras, *count_columns(log)),
        )
        for (key,) in sets
    }


def _encoded(log: Log, columns: Sequence[str]) -> Log:
    """The log, for several passes over its rows: text of these columns as 4 bytes."""
    dtypes = log.columns.collect_schema()
    text = [name for name in columns if dtypes.get(name) == pl.String]
    encoded = log.columns.with_columns(pl.col(text).cast(pl.Categorical)).cache()
    labels = pl.Categorical() if log.labels == pl.String else log.labels
    return replace(log, columns=encoded, labels=labels, pred=labels)


def _decoded(log: Log, cells: pl.LazyFrame, columns: Sequence[str]) -> pl.LazyFrame:
    """The pairs of a log that was encoded, with labels, and what of these columns is text."""
    dtypes = log.columns.collect_schema()
    text = [name for name in columns if dtypes[name] == pl.String]
    labels = pl.col("gold", "pred").cast(log.labels)
    return cells.with_columns(pl.col(text).cast(pl.String), labels)


def _parts(name: str, length: str) -> tuple[int, str]:
    found = re.fullmatch(r"(\d+)([a-z]+)", length) if isinstance(length, str) else None
    if found is None or found[2] not in {*_UNITS, *_MONTHS} or int(found[1]) == 0:
        msg = f"{name} must be a number and a unit, as '7d', '12h', '1w' or '3mo', got {length!r}"
        raise ValueError(msg)
    return int(found[1]), found[2]


def _length(name: str, length: str) -> tuple[int, bool]:
    """A length, in months or in nanoseconds."""
    number, unit = _parts(name, length)
    return (number * _MONTHS[unit], True) if unit in _MONTHS else (number * _UNITS[unit], False)

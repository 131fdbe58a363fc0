"""A sliced log → its pairs, by a plan, by codes, or by window; or its counts of equal rows.

Rows of trailing windows are counted once, by part; parts add up to windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from polars_mcc._base.unstable_polars import deferred
from polars_mcc._counts import label_hashes
from polars_mcc._counts.count_rows import count_pairs_of_sets, in_order, merged, weight_total
from polars_mcc._counts.parquet_files import Scan, Unsuited, need, scan_of
from polars_mcc._counts.sliced_log import COMPLETE, KEY, MODEL, PRED, SET, SlicedLog
from polars_mcc._frame.labels import is_text
from polars_mcc._keys.any_key import Windows

if TYPE_CHECKING:
    from polars_mcc._counts.parquet_codes import Job

GOLD, N = "polars_mcc:gold", "polars_mcc:n"
HAS_NONE, TIMES = "polars_mcc:has_none", "polars_mcc:times"


def pairs(log: SlicedLog) -> pl.LazyFrame:
    """Count the rows of each slice and (gold, pred), in one scan: see `count_pairs`."""
    if log.windows is not None:
        return label_hashes.watched(log, count_pairs_of_windows(log, log.windows))

    def of_codes(scan: Scan) -> pl.DataFrame:
        return pairs_and_classes(log, scan, classes_suffice=False)[0]

    return label_hashes.watched(log, by_codes(log, count_pairs_of_sets(log), of_codes))


def joint(log: SlicedLog) -> pl.LazyFrame:
    """Count equal rows: the same keys, gold and predictions of all models, so nothing is lost.

    `N` is the number of rows, or the sum of the weights.

    Keys keep their names, and predictions have the prefix `PRED`. In a log with weights, rows
    without a weight are counted separately: `HAS_NONE` marks them, and `TIMES` is the number of
    rows.
    """
    preds = [PRED + name for name in log.models]
    labels = {GOLD: pl.col("gold"), **{pred: pl.col(pred) for pred in preds}}
    if log.is_multilabel:
        labels = {name: in_order(label) for name, label in labels.items()}
    keys = {KEY + name: name for name in log.keys}
    alike = [pl.col(key).alias(name) for key, name in keys.items()]
    alike += [label.alias(name) for name, label in labels.items()]
    if log.weight_name is None:
        counts = log.frame.group_by(alike).agg(pl.len().cast(pl.Int64).alias(N))
        names = {**keys, "gold": GOLD, "n": N}
        return by_codes(log, counts, lambda scan: equal_rows(log, scan).rename(names))
    return log.frame.group_by(*alike, pl.col("weight").is_null().alias(HAS_NONE)).agg(
        weight_total(log).alias(N), pl.len().alias(TIMES)
    )


@dataclass
class Reading:
    """A progress bar of rows that are counted by codes."""

    advance: Callable[[int], None]
    """Called with the number of rows that were read."""
    is_coded: bool = False
    """Whether codes are used."""


READING: ContextVar[Reading | None] = ContextVar("READING", default=None)
"""The bar to report to, while a query is made."""


def by_codes(
    log: SlicedLog, plain: pl.LazyFrame, count: Callable[[Scan], pl.DataFrame]
) -> pl.LazyFrame:
    """Count by codes where rows are text in local files, else by the plain plan.

    Text costs a plan of Polars more than codes do; integers do not, and Booleans cost less.
    """
    if log.is_multilabel or log.windows is not None or log.slice_splits:
        return plain
    columns = [*(KEY + key for key in log.keys), "gold", *(PRED + name for name in log.models)]
    scan = scan_of(log, [*columns, *log.pair_splits])
    kinds = [] if scan is None else scan.dtypes.dtypes()
    is_text_most = sum(map(is_text, kinds)) > kinds.count(pl.Boolean())
    if scan is None or not is_text_most or not scan.is_suited():
        return plain
    schema, reading = plain.collect_schema(), READING.get()
    if reading is not None:
        reading.is_coded = True
        scan = replace(scan, advance=reading.advance)

    def answer() -> pl.DataFrame:
        try:
            counts = count(scan)
        except Unsuited:
            return plain.collect(engine="streaming")
        return counts.select(pl.col(name).cast(dtype) for name, dtype in schema.items())

    return deferred(answer, schema, once=True)


def equal_rows(log: SlicedLog, scan: Scan) -> pl.DataFrame:
    """Count equal rows by codes: see `joint`."""
    job = tuple(KEY + key for key in log.keys), ("gold", *(PRED + name for name in log.models))
    [(counts, _)] = _counted(log, scan, [job], classes_suffice=False)
    return counts


def pairs_and_classes(
    log: SlicedLog, scan: Scan, *, classes_suffice: bool
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Count the pairs of each slice by codes. If classes suffice, many pairs become classes."""
    sets = log.sets or {"": log.keys}
    slices = [(name, model) for name in sets for model in log.models]
    jobs = [
        (tuple(KEY + key for key in sets[name]), ("gold", PRED + model, *log.pair_splits))
        for name, model in slices
    ]
    counts = _counted(log, scan, jobs, classes_suffice=classes_suffice)
    of_slices: tuple[list[pl.DataFrame], ...] = ([], [])
    for (name, model), frames in zip(slices, counts, strict=True):
        named = {SET: pl.lit(name, log.set_dtype)} if log.sets else {}
        named |= {MODEL: pl.lit(model, log.model_dtype)} if log.has_models else {}
        for of_kind, frame in zip(of_slices, frames, strict=True):
            of_kind.append(frame.rename({PRED + model: "pred"}, strict=False).with_columns(**named))
    pairs, classes = (pl.concat(of_kind, how="diagonal") for of_kind in of_slices)
    # Rows have no weight, so none is null, and counts are in units of 1.
    return pairs.with_columns(n_null=pl.lit(0, pl.Int64)), classes.with_columns(unit=pl.lit(1.0))


def _counted(
    log: SlicedLog, scan: Scan, jobs: Sequence[Job], *, classes_suffice: bool
) -> Iterator[tuple[pl.DataFrame, ...]]:
    """The counts of each job, with values in place of codes."""
    from polars_mcc._counts.parquet_codes import Values, count  # noqa: PLC0415 - NumPy

    are_hashed = is_text(scan.dtypes["gold"]) and log.label_dtype == pl.UInt64
    sides = ("gold", "baseline", "label", *(PRED + name for name in log.models))
    dtypes = {**scan.dtypes, **dict.fromkeys(sides, pl.String() if are_hashed else log.label_dtype)}
    labels = Values()
    values = {name: labels if name in sides else Values() for name in dtypes}
    is_label = log.nulls == "label"
    counts, rows = count(
        scan, jobs, values, classes_suffice=classes_suffice, nulls_are_labels=is_label
    )
    need(n_rows_of(log) == sum(rows))
    of_files = pl.DataFrame({"n": rows}, {"n": pl.Int64}).with_columns(scan.folders)
    series = {name: values[name].series(dtype) for name, dtype in dtypes.items()}
    if are_hashed:
        series |= dict.fromkeys(sides, label_hashes.hashed(series["gold"]))

    def decoded(frame: pl.DataFrame) -> pl.DataFrame:
        coded = [name for name in frame.columns if name in series]
        return frame.with_columns(series[name].gather(frame[name]).alias(name) for name in coded)

    for (keys, _), frames in zip(jobs, counts, strict=True):
        of_job = tuple(map(decoded, frames))
        _check(of_job, of_files.select("n", *(key for key in keys if key in of_files)))
        yield of_job


def n_rows_of(log: SlicedLog) -> int:
    """How many rows Polars finds in a log. Of Parquet files it reads only the footers."""
    return int(log.frame.select(pl.len()).collect().item())


def _check(counts: Iterable[pl.DataFrame], of_files: pl.DataFrame) -> None:
    """Raise unless counts and files have equally many rows, for each value of the folders."""
    folders = [name for name in of_files.columns if name != "n"]
    n = pl.sum_horizontal(pl.col("^(n|gold_n|null_n)$"))
    parts = [frame.select(*folders, n=n) for frame in counts]
    by, total = [*folders, pl.lit(0).alias("every")], pl.col("n").sum()
    counted, of_footers = (
        frame.group_by(by).agg(total).filter(pl.col("n") > 0).sort(pl.all())
        for frame in (pl.concat(parts), of_files)
    )
    need(counted.equals(of_footers))


_BEGINS, _ORIGIN, _ENDS, _PLACE = "begins:", "origin:", "ends:", "place:"
_LAST, _END = "last:", "end:"


def count_pairs_of_windows(log: SlicedLog, windows: Windows) -> pl.LazyFrame:
    """Count the pairs of each window from the pairs of its parts, up to the last step of the log.

    Steps are numbered from the origin, where the first step begins. A window ends with a step and
    has a fixed number of steps. Its name is its last day, hour, minute or second. Rows without a
    time form a slice of their own.

    Days and longer steps are of local time, hours and shorter steps of UTC: so no clock is set
    between two steps.
    """
    key = KEY + windows.index.name
    index, origin, ends = pl.col(key), pl.col(_ORIGIN), pl.col(_ENDS)
    # One scan serves the rows and the span of the log, its first and last time.
    frame = log.frame.with_columns(_without_zone(windows, index)).cache()
    unit = f"1{_unit(windows)}"
    span = frame.select(
        index.min().dt.truncate(_part(windows)).alias(_ORIGIN),
        index.min().dt.truncate(unit).alias(_BEGINS),
        index.max().dt.truncate(unit).alias(_ENDS),
    )
    part = index.dt.truncate(_part(windows))
    parts = replace(log, frame=frame.with_columns(part), windows=None)
    pairs = count_pairs_of_sets(parts)
    places = pl.LazyFrame({_PLACE: range(windows.per_window)}, schema={_PLACE: pl.Int64})
    last = _step(windows, origin, ends)
    is_untimed = index.is_null() & (pl.col(_PLACE) == 0)
    of_steps = (
        pairs.join(span, how="cross")
        .with_columns(_step(windows, origin, index).alias(key), last.alias(_LAST))
        .join(places, how="cross")
        .with_columns(index + pl.col(_PLACE))
        .filter((index <= pl.col(_LAST)) | is_untimed)
    )
    # Join by window: there are far fewer windows than slices.
    slices = merged(parts, of_steps).cache()
    steps = slices.group_by(key).agg().join(span, how="cross")
    named = slices.join(_names_of(windows, steps, index), on=key, nulls_equal=True)
    return named.with_columns(pl.col(_END).alias(key)).drop(_END)


def _names_of(windows: Windows, steps: pl.LazyFrame, index: pl.Expr) -> pl.LazyFrame:
    """The name of each window, and whether it is complete; null for rows without a time.

    Clocks of a zone may skip a day. No window ends with this day if each day ends a window;
    otherwise the window has the name of the day before.
    """
    unit, origin = _unit(windows), pl.col(_ORIGIN)
    start, after = (_after(windows, origin, index + steps) for steps in (1 - windows.per_window, 1))
    begun, ended = _in_zone(windows, start), _in_zone(windows, after)
    first = _in_zone(windows, pl.col(_BEGINS))
    end = _in_zone(windows, pl.col(_ENDS).dt.offset_by(f"1{unit}"))
    last = after.dt.offset_by(f"-1{unit}")
    is_skipped = _in_zone(windows, last) == ended
    name = pl.when(is_skipped).then(last.dt.offset_by("-1d")).otherwise(last)
    is_daily = not windows.is_clock and not windows.is_months and windows.size == 1
    is_named = ~is_skipped if is_daily else pl.lit(value=True)
    return steps.filter(is_named | index.is_null()).select(
        index,
        _in_zone(windows, name).alias(_END),
        ((begun >= first) & (ended <= end)).alias(COMPLETE),
    )


def _unit(windows: Windows) -> str:
    """The unit of window names: days, or the unit of steps if it is shorter than a day."""
    return windows.unit if windows.is_clock else "d"


def _part(windows: Windows) -> str:
    """The length of a part: rows are counted by part, and a step is one or several parts."""
    if windows.align == "calendar":
        return f"{windows.number}{windows.unit}"
    return "1mo" if windows.is_months else f"1{_unit(windows)}"


def _zone(windows: Windows) -> str | None:
    zone: str | None = getattr(windows.index.dtype, "time_zone", None)
    return zone


def _without_zone(windows: Windows, time: pl.Expr) -> pl.Expr:
    """A time on clocks that are never set: UTC for hours, the local calendar for days."""
    if _zone(windows) is None:
        return time
    if windows.is_clock:
        return time.dt.convert_time_zone("UTC")
    return time.dt.replace_time_zone(None)


def _in_zone(windows: Windows, time: pl.Expr) -> pl.Expr:
    """The same time in the zone of the log. A day is its first moment, at most an hour late.

    A day that clocks have skipped is the first moment of the next day.
    """
    zone = _zone(windows)
    if zone is None:
        return time
    if windows.is_clock:
        return time.dt.convert_time_zone(zone)
    midnight, noon = (
        day.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
        for day in (time, time.dt.offset_by("-12h"))
    )
    # From the noon before: days on which clocks are set may have no midnight.
    return pl.coalesce(midnight, noon + pl.duration(hours=12))


def _step(windows: Windows, origin: pl.Expr, time: pl.Expr) -> pl.Expr:
    """The number of the step of a time, from 0."""
    if windows.is_clock:
        passed = (time - origin).dt.total_nanoseconds()
    elif windows.is_months:
        passed = _months(time) - _months(origin)
    else:
        passed = (time.dt.date() - origin.dt.date()).dt.total_days()
    return passed // windows.size


def _months(time: pl.Expr) -> pl.Expr:
    return time.dt.year().cast(pl.Int64) * 12 + time.dt.month().cast(pl.Int64)


def _after(windows: Windows, origin: pl.Expr, steps: pl.Expr) -> pl.Expr:
    """The time that is a number of steps after the origin."""
    unit = "ns" if windows.is_clock else "mo" if windows.is_months else "d"
    length = pl.concat_str((steps * windows.size).cast(pl.String), pl.lit(unit))
    return origin.dt.offset_by(length)

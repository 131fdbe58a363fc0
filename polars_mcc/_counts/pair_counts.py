"""A sliced log → its pairs, by a plan or by codes; or its counts of equal rows, of all models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from polars_mcc._base.unstable_polars import deferred
from polars_mcc._counts import label_hashes
from polars_mcc._counts.count_rows import count_pairs_of_sets, weight_total
from polars_mcc._counts.count_windows import count_pairs_of_windows
from polars_mcc._counts.labels_seen import watched
from polars_mcc._counts.multilabel_counts import in_order
from polars_mcc._counts.parquet_files import Scan, Unsuited, need, scan_of
from polars_mcc._counts.sliced_log import KEY, MODEL, PRED, SET, SlicedLog
from polars_mcc._frame.labels import is_text

if TYPE_CHECKING:
    from polars_mcc._counts.parquet_codes import Job

GOLD, N = "polars_mcc:gold", "polars_mcc:n"
HAS_NONE, TIMES = "polars_mcc:has_none", "polars_mcc:times"


def pairs(log: SlicedLog) -> pl.LazyFrame:
    """Count the rows of each slice and (gold, pred), in one scan: see `count_pairs`."""
    if log.windows is not None:
        return watched(log, count_pairs_of_windows(log, log.windows))
    counts = by_codes(
        log,
        count_pairs_of_sets(log),
        lambda scan: pairs_and_classes(log, scan, classes_suffice=False)[0],
    )
    return watched(log, counts)


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
    for (keys, _), frames in zip(jobs, counts, strict=True):
        decoded = tuple(
            frame.with_columns(
                series[name].gather(frame[name]).alias(name)
                for name in frame.columns
                if name in series
            )
            for frame in frames
        )
        _check(decoded, of_files.select("n", *(key for key in keys if key in of_files)))
        yield decoded


def n_rows_of(log: SlicedLog) -> int:
    """How many rows Polars finds in a log. Of Parquet files it reads only the footers."""
    rows: int = log.frame.select(pl.len()).collect().item()
    return rows


def _check(counts: Iterable[pl.DataFrame], of_files: pl.DataFrame) -> None:
    """Raise unless counts and files have equally many rows, for each value of the folders."""
    folders = [name for name in of_files.columns if name != "n"]
    n = pl.sum_horizontal(pl.col("^(n|gold_n|null_n)$"))
    parts = [frame.select(*folders, n=n) for frame in counts]
    counted, of_footers = (
        frame.group_by(folders).agg(pl.col("n").sum()).filter(pl.col("n") > 0).sort(folders)
        if folders
        else frame.sum()
        for frame in (pl.concat(parts), of_files)
    )
    need(counted.equals(of_footers.select(counted.columns)))

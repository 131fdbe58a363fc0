"""Several sets of keys → their pairs, with few passes over the rows.

Counts add up. So the counts of ("a",) come from the counts of ("a", "b"), and need no rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from polars_mcc._counts.counted import count_columns, counted, labelled, merged
from polars_mcc._counts.sliced import KEY, PRED, SET, SlicedLog
from polars_mcc._log.keys import KeySet, name_of


def counted_by_sets(log: SlicedLog) -> pl.LazyFrame:
    """Count the pairs of each set of keys, or of the only set.

    A set that is part of larger sets is summed up from the smallest of these. All other sets are
    counted from rows. A key that is not in a set is null there. Every set has the keys in `always`.
    """
    if log.sets is None:
        return counted(log)
    parents = log.parents
    of_rows = _of_rows(log, [keys for keys, parent in parents.items() if parent is None])
    pairs: dict[KeySet, pl.LazyFrame] = {}  # the pairs that other sets are summed up from
    of_sets = []
    for sets, frame in of_rows.items():
        are_parents = [keys for keys in sets if keys in parents.values()]
        of_sets.append(frame.cache() if are_parents else frame)
        for keys in are_parents:
            pairs[keys] = of_sets[-1].filter(pl.col(SET) == name_of(keys))
    for keys in sorted(parents, key=len, reverse=True):
        parent = parents[keys]
        if parent is not None:
            of_set = _as_set(log, keys, merged(_of_one_set(log, keys), pairs[parent]))
            pairs[keys] = of_set.cache() if keys in parents.values() else of_set
            of_sets.append(pairs[keys])
    return pl.concat(of_sets)


def _as_set(log: SlicedLog, keys: KeySet, pairs: pl.LazyFrame) -> pl.LazyFrame:
    """Add the name of a set to its pairs, and a null column for each key that is not in the set."""
    inactive = {
        KEY + key: pl.lit(None, log.key_dtypes[key])
        for key in log.keys
        if key not in (*keys, *log.always)
    }
    columns = (
        inactive.get(column, pl.col(column)).alias(column)
        for column in replace(log, sets=None).slice
    )
    name = pl.lit(name_of(keys), log.set_names).alias(SET)
    return pairs.select(name, *columns, *_counted_columns(log))


def _counted_columns(log: SlicedLog) -> list[str]:
    return ["gold", "pred", *log.extras, *count_columns(log)]


def _of_one_set(log: SlicedLog, keys: KeySet) -> SlicedLog:
    """The log with the slices of one set of keys."""
    return replace(log, keys=(*keys, *log.always), sets=None)


def _of_rows(log: SlicedLog, sets: Sequence[KeySet]) -> dict[tuple[KeySet, ...], pl.LazyFrame]:
    """Count sets of keys from one scan: all sets in one frame, or one frame for each set.

    No set is part of another set.
    """
    if len(sets) == 1:
        return {(keys,): _as_set(log, keys, counted(_of_one_set(log, keys))) for keys in sets}
    if max(map(len, sets)) == 1:
        return {(*sets,): _of_single_keys(log, [key for (key,) in sets])}
    # Crossed keys have many groups: in one group by, Polars would keep the rows of most groups in
    # memory. So the sets are counted one by one, from columns kept in memory.
    source = _encoded(log, [*log.frame.collect_schema()])
    clusters = {"cluster"} & {*log.extras}

    def of_set(keys: KeySet) -> pl.LazyFrame:
        encoded = [*(KEY + key for key in (*keys, *log.always)), *clusters]
        return _as_set(log, keys, _decoded(log, counted(_of_one_set(source, keys)), encoded))

    return {(keys,): of_set(keys) for keys in sets}


def _of_single_keys(log: SlicedLog, keys: Sequence[str]) -> pl.LazyFrame:
    """Count each row once per key, in one group by, which streams.

    Keys of the same dtype share a column of values.
    """
    source = _encoded(log, ["gold", *(PRED + name for name in log.models)])
    dtypes = log.frame.collect_schema()
    slots = list(dict.fromkeys(dtypes[KEY + key] for key in keys))
    slot_names = [f"{SET}:{place}" for place in range(len(slots))]
    stacked = replace(source, keys=(*slot_names, *log.always))

    def slot_of(key: str) -> str:
        return KEY + slot_names[slots.index(dtypes[KEY + key])]

    def rows_of(key: str) -> pl.LazyFrame:
        values = {
            KEY + slot: pl.col(KEY + key) if KEY + slot == slot_of(key) else pl.lit(None, dtype)
            for slot, dtype in zip(slot_names, slots, strict=True)
        }
        rows = _of_one_set(source, (key,)).rows
        name = pl.lit(name_of((key,)), log.set_names).alias(SET)
        return rows.with_columns(name, **values).drop(KEY + key)

    rows = pl.concat([rows_of(key) for key in keys], how="diagonal")
    pairs = _decoded(log, counted(stacked, rows), [])
    of_keys = {
        KEY + key: pl.when(pl.col(SET) == name_of((key,))).then(slot_of(key)) for key in keys
    }
    return pairs.with_columns(**of_keys).select(*log.slice, *_counted_columns(log))


def _encoded(log: SlicedLog, columns: Sequence[str]) -> SlicedLog:
    """Cast text columns to Categorical, 4 bytes a value, for several passes over the rows."""
    dtypes = log.frame.collect_schema()
    text = [name for name in columns if dtypes.get(name) == pl.String]
    encoded = log.frame.with_columns(pl.col(text).cast(pl.Categorical)).cache()
    if log.is_multilabel:  # Lists stay as they are.
        return replace(log, frame=encoded)
    labels, preds = (
        pl.Categorical() if dtype == pl.String else dtype
        for dtype in (log.label_dtype, log.pred_dtype)
    )
    return replace(log, frame=encoded, label_dtype=labels, pred_dtype=preds)


def _decoded(log: SlicedLog, pairs: pl.LazyFrame, columns: Sequence[str]) -> pl.LazyFrame:
    """Cast the labels of an encoded log, and its text `columns`, back to their dtypes."""
    dtypes = log.frame.collect_schema()
    text = [name for name in columns if dtypes[name] == pl.String]
    pairs = pairs.with_columns(pl.col(text).cast(pl.String))
    return pairs if log.is_multilabel else labelled(log, pairs)

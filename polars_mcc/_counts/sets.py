"""Several sets of keys → their pairs, in one group by over the rows.

Counts add up. So the counts of ("a",) come from the counts of ("a", "b"), and need no rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from polars_mcc._counts.counted import count_columns, counted, merged
from polars_mcc._counts.sliced import KEY, SET, SlicedLog
from polars_mcc._log.keys import KeySet


def counted_by_sets(log: SlicedLog) -> pl.LazyFrame:
    """Count the pairs of each set of keys, or of the only set.

    A set that is part of larger sets is summed up from the smallest of these. All other sets are
    counted from rows. A key that is not in a set is null there.
    """
    if log.sets is None:
        return counted(log)
    by_size = dict(sorted(log.sets.items(), key=lambda item: len(item[1])))
    parents = {
        name: next((larger for larger, all_ in by_size.items() if {*keys} < {*all_}), None)
        for name, keys in log.sets.items()
    }
    of_rows = _from_rows(log, {name: log.sets[name] for name in parents if parents[name] is None})
    of_rows = of_rows.cache() if any(parents.values()) else of_rows
    summed: dict[str, pl.LazyFrame] = {}
    for name, keys in reversed(by_size.items()):
        parent = parents[name]
        if parent is not None:
            of_parent = summed.get(parent, of_rows.filter(pl.col(SET) == parent))
            one_set = replace(log, keys=keys, sets=None)
            of_set = merged(one_set, of_parent).with_columns(_named(log, name))
            summed[name] = of_set.cache() if name in parents.values() else of_set
    return pl.concat([of_rows, *summed.values()], how="diagonal")


def _named(log: SlicedLog, name: str) -> pl.Expr:
    return pl.lit(name, log.set_names).alias(SET)


def _from_rows(log: SlicedLog, sets: Mapping[str, KeySet]) -> pl.LazyFrame:
    """Count each row once per set, in one group by, which streams.

    A group by of all keys would be slow, as most of them are null. So a key that some sets lack
    goes to the first free column of its dtype: two sets of two texts each need two columns.
    """
    log = replace(log, frame=log.frame.cache()) if len(sets) > 1 else log
    shared = [key for key in log.keys if all(key in keys for keys in sets.values())]
    columns: dict[tuple[pl.DataType, int], str] = {}
    column_of: dict[str, dict[str, str]] = {}
    for name, keys in sets.items():
        own = [key for key in keys if key not in shared]
        dtypes = [log.key_dtypes[key] for key in own]
        column_of[name] = {
            key: columns.setdefault((dtype, dtypes[:place].count(dtype)), f"{SET}:{len(columns)}")
            for place, (key, dtype) in enumerate(zip(own, dtypes, strict=True))
        }
    stacked = replace(log, keys=(*columns.values(), *shared))

    def rows_of(name: str) -> pl.LazyFrame:
        free = {KEY + key: KEY + column for key, column in column_of[name].items()}
        one_set = replace(log, keys=sets[name], sets=None)
        return one_set.rows.rename(free).with_columns(_named(log, name))

    pairs = counted(stacked, pl.concat(map(rows_of, sets), how="diagonal"))
    values = {
        KEY + key: pl.coalesce(
            pl.when(pl.col(SET) == name).then(KEY + own[key])
            for name, own in column_of.items()
            if key in own
        )
        for key in log.keys
        if key not in shared
    }
    named = pairs.with_columns(**values)
    return named.select(*log.slice, "gold", "pred", *log.pair_splits, *count_columns(log))

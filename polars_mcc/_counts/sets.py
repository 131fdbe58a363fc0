"""Several sets of keys → their pairs, in one group by over the rows.

Counts add up. So the counts of ("a",) come from the counts of ("a", "b"), and need no rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from polars_mcc._counts.counted import count_columns, counted, merged
from polars_mcc._counts.sliced import KEY, SET, SlicedLog
from polars_mcc._log.keys import KeySet, name_of


def counted_by_sets(log: SlicedLog) -> pl.LazyFrame:
    """Count the pairs of each set of keys, or of the only set.

    A set that is part of larger sets is summed up from the smallest of these. All other sets are
    counted from rows. A key that is not in a set is null there. Every set has the keys in `always`.
    """
    if log.sets is None:
        return counted(log)
    by_size = sorted(log.sets, key=len)
    parents = {
        keys: next((other for other in by_size if {*keys} < {*other}), None) for keys in log.sets
    }
    of_rows = _from_rows(log, [keys for keys, parent in parents.items() if parent is None])
    of_rows = of_rows.cache() if any(parents.values()) else of_rows
    summed: dict[KeySet, pl.LazyFrame] = {}
    for keys in reversed(by_size):
        parent = parents[keys]
        if parent is not None:
            of_parent = summed.get(parent, of_rows.filter(pl.col(SET) == name_of(parent)))
            name = pl.lit(name_of(keys), log.set_names).alias(SET)
            of_set = merged(_of_one_set(log, keys), of_parent).with_columns(name)
            summed[keys] = of_set.cache() if keys in parents.values() else of_set
    return pl.concat([of_rows, *summed.values()], how="diagonal")


def _of_one_set(log: SlicedLog, keys: KeySet) -> SlicedLog:
    """The log with the slices of one set of keys."""
    return replace(log, keys=(*keys, *log.always), sets=None)


def _from_rows(log: SlicedLog, sets: Sequence[KeySet]) -> pl.LazyFrame:
    """Count each row once per set, in one group by, which streams.

    A group by of all keys would be slow, as most of them are null. So each key of a set goes to the
    first free column of its dtype: two sets of two texts each need two columns.
    """
    log = replace(log, frame=log.frame.cache()) if len(sets) > 1 else log
    columns: dict[tuple[pl.DataType, int], str] = {}
    column_of: dict[tuple[KeySet, str], str] = {}
    for keys in sets:
        dtypes = [log.key_dtypes[key] for key in keys]
        for place, key in enumerate(keys):
            free = (dtypes[place], dtypes[:place].count(dtypes[place]))
            column_of[keys, key] = columns.setdefault(free, f"{SET}:{len(columns)}")
    stacked = replace(log, keys=(*columns.values(), *log.always))

    def rows_of(keys: KeySet) -> pl.LazyFrame:
        free = {KEY + key: KEY + column_of[keys, key] for key in keys}
        name = pl.lit(name_of(keys), log.set_names).alias(SET)
        return _of_one_set(log, keys).rows.rename(free).with_columns(name)

    pairs = counted(stacked, pl.concat(map(rows_of, sets), how="diagonal"))

    def value_of(key: str) -> pl.Expr:
        places = {name_of(keys): column_of[keys, key] for keys in sets if key in keys}
        return pl.coalesce(
            pl.when(pl.col(SET) == name).then(KEY + column) for name, column in places.items()
        )

    values = {KEY + key: value_of(key) for key in log.keys if key not in log.always}
    named = pairs.with_columns(**values)
    return named.select(*log.slice, "gold", "pred", *log.extras, *count_columns(log))

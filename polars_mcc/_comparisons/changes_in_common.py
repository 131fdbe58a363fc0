"""Changes of slices that share rows → which are part of a surer one.

A failure is seen in every slice that has some of its rows. So, the surest first, each slice that
changed is tested again without the rows of all surer slices that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

import numpy as np
import polars as pl
import polars.selectors as cs

from polars_mcc._comparisons.columns_of_answers import CHANGED, SEEN, VERDICT
from polars_mcc._counts.sliced_log import KEY, MODEL, SET, SlicedLog, joined

SINCE, PART_OF, _NUMBER, _IN = "since", "part_of", "of:number", "polars_mcc:in:"

Again: TypeAlias = Callable[..., pl.LazyFrame]
"""Counts the pairs of rows of the log, to which a function adds keys, by these and by period."""


def with_surer(
    log: SlicedLog,
    judged: pl.DataFrame,
    seen: pl.DataFrame,
    counted: Callable[[pl.DataFrame], pl.DataFrame],
    verdicts: Callable[[pl.DataFrame], Collection[str]],
) -> pl.DataFrame:
    """Say in `verdict` which changes are part of a surer one; `PART_OF` names its slice.

    `seen` has the slices whose change is known, and its period, `SEEN`: what changed since then is
    no part of it. `counted` counts rows of slices; `verdicts` tests them.
    """
    changed = judged.filter(pl.col(VERDICT).is_in(CHANGED)).sort("p_value", -pl.col("errors"))
    if log.sets is None or changed.is_empty():  # Slices of the same keys share no rows.
        return judged.with_columns(pl.lit(None, pl.String).alias(PART_OF))
    changed = changed.group_by(log.slice, maintain_order=True).agg(VERDICT)
    slices = pl.concat([changed.drop(VERDICT), seen], how="diagonal")
    newest = slices.group_by(log.slice, maintain_order=True).agg(pl.col(SEEN).max())
    cells, n = counted(newest.with_row_index(_NUMBER)), newest.height
    numbers = cells.select(cs.starts_with(KEY + _IN).fill_null(n)).to_numpy()
    time, since = cells[SINCE].to_numpy(), np.append(newest[SEEN].fill_null(-1), -1)
    # Of the slices of each row: the surest, whether one changed now, and the last known change.
    surest = np.where(since[numbers] >= 0, numbers, n).min(1)
    is_out, last = np.zeros(len(time), bool), since[numbers].max(1)
    part_of: list[int | None] = [None] * changed.height
    # First those of which earlier changes are known: their p-values are of what is new.
    for number in np.argsort(since[: changed.height] < 0, kind="stable").tolist():
        here, own = (numbers == number).any(1), changed[VERDICT][number]
        whole, start = here & (time >= since[number]), last[here].max(initial=-1)
        rests = [whole & (surest == n)]
        if start >= 0:
            rests += [whole & ~is_out & (time >= start)]
        is_whole = any((rest == whole).all() for rest in rests)
        if is_whole or any({*own} & {*verdicts(cells.filter(rest))} for rest in rests):
            surest[here], is_out[here] = np.minimum(surest[here], number), True
        else:
            part_of[number] = int(surest[here].min())
    [names], causes = newest.select(log.in_words), pl.Series(part_of, dtype=pl.UInt32)
    parts = changed.select(*log.slice, names.gather(causes).alias(PART_OF))
    judged, is_part = joined(judged, parts, log.slice), pl.col(PART_OF).is_not_null()
    verdict = pl.when(is_part).then(pl.lit("part of", judged.schema[VERDICT])).otherwise(VERDICT)
    return judged.with_columns(verdict.alias(VERDICT))


def counted_by_slice(
    log: SlicedLog, counts: pl.DataFrame, again: Again, slices: pl.DataFrame
) -> pl.DataFrame:
    """The pairs by period of rows in slices, by the number of their slice of each set of keys.

    Keys that are counted together anyway are not counted again.
    """
    sets, of_sets = log.sets or {}, slices.partition_by(SET, as_dict=True)
    names = [_IN + of_set for (of_set,) in of_sets]

    def numbered(rows: pl.LazyFrame) -> pl.LazyFrame:
        for (of_set,), own in of_sets.items():
            on = [KEY + key for key in sets[of_set]] + [MODEL] * log.has_models
            number = pl.col(_NUMBER).alias(KEY + _IN + of_set)
            rows = joined(rows, own.lazy().select(*on, number), on)
        return rows.filter(pl.any_horizontal(cs.starts_with(KEY + _IN).is_not_null()))

    needed = {key for (of_set,) in of_sets for key in sets[of_set]}
    finest = [of_set for of_set, keys in sets.items() if {*keys} >= needed]
    of_finest = counts.lazy().filter(pl.col(SET).is_in(finest[:1]))
    rows = numbered(of_finest) if finest else again(numbered, names)
    return rows.collect(engine="streaming")

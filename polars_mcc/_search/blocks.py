"""Group keys into blocks, so that few passes over the rows count every set of keys.

Counts add up: one group by of five keys gives the counts of every three of them. A block has as
many keys as a fast table can hold, so there are fewer blocks than sets. Hits and misses have
separate group bys. Hits are many rows with few pairs of labels; misses are few rows with many
pairs. So both tables stay small.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from polars_mcc._counts.counted import counted, merged
from polars_mcc._counts.sliced import PRED
from polars_mcc._log.keys import KeySet
from polars_mcc._search.codes import Coded

_QUICK = 2**17  # most groups of a table that fits in the caches of a processor
_MOST = 2**22  # most groups in memory at once
_KEPT = 2**29  # most bytes of codes that are kept in memory between passes


@dataclass(frozen=True)
class Block:
    """Keys that are counted together, and the sets of keys that are summed from these counts."""

    keys: KeySet
    sets: Sequence[KeySet]
    apart: str | None = None
    """The key that splits the block into passes, each with some of its values. It is in all sets.
    None: one pass."""


def blocks(
    sizes: Mapping[str, int], depth: int, labels: int, cut: Collection[str] = ()
) -> list[Block]:
    """Blocks that together have every set of up to `depth` keys, each set once.

    `sizes` has the number of values of each key. A slice of a key in `cut` has several codes, so
    these keys cannot split a block into passes.
    """

    def groups(keys: Sequence[str]) -> int:
        return math.prod(sizes[key] for key in keys) * max(labels, 1)

    names = [*sizes]
    most = min(depth, len(names))
    largest = itertools.combinations(names, most) if names else ()
    left = dict.fromkeys(sorted(largest, key=groups, reverse=True))
    place = {key: at for at, key in enumerate(names)}

    def in_order(keys: Iterable[str]) -> KeySet:
        return tuple(sorted(keys, key=place.__getitem__))

    def new_with(key: str, block: set[str]) -> int:
        """How many sets that are left the block would gain with this key."""
        return sum(
            in_order([*part, key]) in left for part in itertools.combinations(block, most - 1)
        )

    found: list[KeySet] = []
    while left:
        block = {*next(iter(left))}
        while True:
            fits = [key for key in names if key not in block and groups([*block, key]) <= _QUICK]
            new = {key: new_with(key, block) for key in fits}
            best = max(fits, key=lambda key: (new[key], -sizes[key]), default=None)
            if best is None or not new[best]:
                break
            block.add(best)
        found.append(in_order(block))
        for set_ in itertools.combinations(found[-1], most):
            left.pop(set_, None)
    whole = {key: size for key, size in sizes.items() if key not in cut}
    given: set[KeySet] = set()
    parts: list[Block] = []
    for keys in sorted(found, key=groups):  # A set is summed up from the smallest block.
        sets = [set_ for size in range(1, most + 1) for set_ in itertools.combinations(keys, size)]
        parts += _in_passes(
            Block(keys, [set_ for set_ in sets if set_ not in given]), whole, groups
        )
        given.update(sets)
    return parts


def _in_passes(
    block: Block, sizes: Mapping[str, int], groups: Callable[[KeySet], int]
) -> Iterator[Block]:
    """The block, or, if it is too large, two or more: sets with its largest key, and other sets."""
    whole = [key for key in block.keys if key in sizes]
    largest = max(whole, key=lambda key: sizes[key], default=None)
    if not block.sets:
        return
    if largest is None or groups(block.keys) <= _MOST:
        yield block
        return
    yield Block(block.keys, [set_ for set_ in block.sets if largest in set_], largest)
    others = [set_ for set_ in block.sets if largest not in set_]
    keys = tuple(key for key in block.keys if key != largest)
    yield from _in_passes(Block(keys, others), sizes, groups)


def kept(coded: Coded) -> Coded:
    """Collect the coded log into memory, if it is small enough: each pass reads it again."""
    log = coded.log
    is_alone = log.weight_name is None  # a weight of 1 takes no memory
    columns = log.frame.drop("weight") if is_alone else log.frame
    if sum(map(_bytes, columns.collect_schema().values())) * coded.rows > _KEPT:
        return coded
    weight = [pl.lit(1, pl.Int64).alias("weight")] if is_alone else []
    frame = columns.collect()
    if len(log.models) > 1:  # Each model has its own hits and misses.
        return replace(coded, log=replace(log, frame=frame.lazy().with_columns(weight)))
    is_hit = frame.select(_is_hit(PRED + log.models[0])).to_series()
    sides = [frame.filter(side).lazy().with_columns(weight) for side in (is_hit, ~is_hit)]
    return replace(coded, log=replace(log, frame=pl.concat(sides)), sides=sides)


def _is_hit(pred: str) -> pl.Expr:
    return pl.col("gold").eq_missing(pl.col(pred))


def _bytes(dtype: pl.DataType) -> int:
    if isinstance(dtype, pl.Enum):
        return 1 if len(dtype.categories) < 2**8 else 2 if len(dtype.categories) < 2**16 else 4
    return 8


def counted_blocks(coded: Coded, chosen: Sequence[Block]) -> Iterator[tuple[Block, pl.DataFrame]]:
    """The pairs of the slices of each block; in several passes if the block is large."""
    log = replace(coded.log, extras=())
    is_hit = _is_hit(PRED + log.models[0])
    sides = coded.sides or [log.frame.filter(side) for side in (is_hit, ~is_hit)]
    for block in chosen:
        most = math.prod(coded.keys[key].size + 1 for key in block.keys) * len(coded.labels) * 2
        passes = math.ceil(min(most, coded.rows) / _MOST) if block.apart else 1
        for place in range(passes):
            rows = sides
            if block.apart and passes > 1:
                code = pl.col(coded.keys[block.apart].column).to_physical()
                rows = [side.filter(code % passes == place) for side in sides]
            of_sides = [replace(log, keys=block.keys, frame=side) for side in rows]
            yield block, pl.concat([counted(side).collect() for side in of_sides])


def of_set(coded: Coded, block: KeySet, keys: KeySet, cells: pl.LazyFrame) -> pl.LazyFrame:
    """The pairs of the slices of a set of keys, from the pairs of a block that has the set.

    The columns of keys hold places in `Key.values`, not codes.
    """
    log = replace(coded.log, keys=keys, extras=())
    columns = [coded.keys[key].column for key in keys]
    pairs = cells.filter(pl.all_horizontal(pl.col(columns).is_not_null()))
    pairs = pairs if keys == block else merged(log, pairs)
    pairs = pairs.with_columns(pl.col(columns).to_physical().cast(pl.UInt32))
    for name in keys:
        key = coded.keys[name]
        if key.is_cut:
            place = pl.int_range(pl.len(), dtype=pl.UInt32).alias("place")
            spans = key.values.lazy().select(
                place, pl.int_ranges("first", pl.col("last") + 1, dtype=pl.UInt32).alias(key.column)
            )
            of_code = pairs.join(spans.explode(key.column), on=key.column)
            pairs = merged(log, of_code.drop(key.column).rename({"place": key.column}))
    return pairs

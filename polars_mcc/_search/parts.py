"""A listed slice of several keys → the slice of each key alone, and what each key adds.

What a key adds is its Shapley value: the mean, over all orders of the keys, of how far the score
moves when this key is added to the keys before it. It starts at the score of all rows, and what the
keys add sums up to the score of the slice. This is the divergence of an item in E. Pastor, L. de
Alfaro and E. Baralis, Looking for Trouble: Analyzing Classifier Behavior via Pattern Divergence,
SIGMOD 2021.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import polars as pl

from polars_mcc._scores.segments import Ints
from polars_mcc._search.slices import Looked, Sought

Places: TypeAlias = tuple[int | None, ...]
"""For each key, the place of the value of a slice; None if its set lacks the key."""

_Known: TypeAlias = tuple[float | None, float | None]
"""The rows and the score of a slice. A coarser slice may be unknown: with sample weights it may
count as fewer rows than its parts, too few to be tested."""


def dtype_of(metric: str, count: pl.DataType) -> pl.List:
    """A row per key of a slice: the slice of this key alone, and what the key adds."""
    numbers = {"n": count, metric: pl.Float64(), "adds": pl.Float64()}
    return pl.List(pl.Struct({"key": pl.String(), "slice": pl.String(), **numbers}))


def places_of(looked: Looked, slices: Ints, keys: Sequence[str]) -> list[Places]:
    """The place of the value of each key, of slices by their numbers."""
    rows = looked.places(slices, keys).tolist()
    return [tuple(None if place < 0 else place for place in row) for row in rows]


def parts(sought: Sought, looked: Looked, chosen: Ints) -> pl.Series:
    """The parts of each chosen slice of two or more keys; null for a slice of one key."""
    keys = [*sought.coded.keys.values()]
    slices = places_of(looked, chosen, [*sought.coded.keys])
    known: dict[Places, _Known] = {}
    for subset in {subset for one in slices for subset in subsets(one)}:
        number = looked.number_of(
            {key.name: place for key, place in zip(keys, subset, strict=True) if place is not None}
        )
        if number is not None:
            known[subset] = looked.n[number].item(), _known(sought, looked.compared.score[number])
    known[(None,) * len(keys)] = looked.n_rows, _known(sought, looked.overall)
    metric = sought.metric.name

    def of_slice(slice_: Places) -> list[dict[str, Any]] | None:
        used = [(at, place) for at, place in enumerate(slice_) if place is not None]
        listed = []
        for at, place in used:
            n, score = known.get(_only(slice_, [at]), (None, None))
            said, adds = keys[at].values["said"][place], _shapley(known, slice_, at)
            listed.append(
                {"key": keys[at].name, "slice": said, "n": n, metric: score, "adds": adds}
            )
        return listed if len(used) > 1 else None

    dtype = dtype_of(metric, sought.coded.log.numbers.count)
    return pl.Series("parts", [of_slice(one) for one in slices], dtype=dtype)


def _known(sought: Sought, score: float) -> float | None:
    return None if math.isnan(score) else sought.scale.turn * float(score)


def _only(slice_: Places, kept: Collection[int]) -> Places:
    """The coarser slice with some of the keys, by their places in the set."""
    return tuple(place if at in kept else None for at, place in enumerate(slice_))


def subsets(slice_: Places) -> Iterator[Places]:
    """The coarser slices with some of the keys, those with the fewest first, and the slice."""
    used = [at for at, place in enumerate(slice_) if place is not None]
    for size in range(1, len(used) + 1):
        for kept in itertools.combinations(used, size):
            yield _only(slice_, kept)


def _shapley(known: Mapping[Places, _Known], slice_: Places, at: int) -> float | None:
    """What a key adds to the other keys of a slice; None if a score on the way is unknown."""
    others = [other for other, place in enumerate(slice_) if place is not None and other != at]
    orders = math.factorial(len(others) + 1)
    total = 0.0
    for size in range(len(others) + 1):
        share = math.factorial(size) * math.factorial(len(others) - size) / orders
        for kept in itertools.combinations(others, size):
            slices = _only(slice_, kept), _only(slice_, [*kept, at])
            (_, before), (_, after) = (known.get(one, (None, None)) for one in slices)
            if before is None or after is None:
                return None
            total += share * (after - before)
    return total

"""All kinds of keys, by the names that users call: `--by` takes each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from polars_mcc._log.bins import bins
from polars_mcc._log.key_sets import cube, each, rollup, sets
from polars_mcc._log.trailing import trailing


class KindOfKey(NamedTuple):
    """A function that makes a key, as the command line calls it."""

    make: Callable[..., Any]
    example: str
    of_one: bool = False
    """Whether only the first argument is a column."""


KINDS: Mapping[str, KindOfKey] = {
    "bins": KindOfKey(bins, "bins(age, 5)", of_one=True),
    "cube": KindOfKey(cube, "cube(country, device)"),
    "each": KindOfKey(each, "each(country, \"date_trunc('week', ts)\")"),
    "rollup": KindOfKey(rollup, "rollup(country, city)"),
    "sets": KindOfKey(sets, "sets((country, device), country, ())"),
    "trailing": KindOfKey(trailing, "trailing(day, '7d', every='1d')", of_one=True),
}

"""Random tables {(gold, pred): n} that are hard to score, with integer and float weights."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import polars as pl

MOST = 2**63 - 1
"""The largest total that is counted exactly."""

IntegerTable = dict[tuple[int, int], int]
FloatTable = dict[tuple[int, int], float]


def _square(classes: int, cell: Callable[[bool], int]) -> IntegerTable:
    table = {(g, p): cell(g == p) for g in range(classes) for p in range(classes)}
    too_many = sum(table.values()) // MOST + 1
    return {pair: n // too_many for pair, n in table.items()} if too_many > 1 else table


def small(rng: random.Random) -> IntegerTable:
    return _square(rng.randint(2, 5), lambda _: rng.randint(0, 30))


def any_size(rng: random.Random) -> IntegerTable:
    return _square(rng.randint(2, 5), lambda _: int(10 ** rng.uniform(0, 18)))


def huge(rng: random.Random) -> IntegerTable:
    return _square(rng.randint(2, 3), lambda _: 10**18 - rng.randint(0, 10**6))


def imbalanced(rng: random.Random) -> IntegerTable:
    table = _square(rng.randint(2, 4), lambda _: rng.randint(0, 3))
    return table | {(0, 0): 10**12 + rng.randint(0, 9)}


def near_zero(rng: random.Random) -> IntegerTable:
    """a·d - b·c is 1 or -1, by the inverse of a modulo b."""
    b = rng.randint(10**8, 10**9)
    a = next(a for a in iter(lambda: rng.randint(10**8, 10**9), None) if math.gcd(a, b) == 1)
    d = pow(a, -1, b)
    c = (a * d - 1) // b
    rows = [(a, b), (c, d)]
    rng.shuffle(rows)
    return {(g, p): n for g, row in enumerate(rows) for p, n in enumerate(row)}


def near_one(rng: random.Random) -> IntegerTable:
    return _square(
        rng.randint(2, 5),
        lambda hit: rng.randint(10**15, 10**17) if hit else rng.randint(0, 3),
    )


def near_minus_one(rng: random.Random) -> IntegerTable:
    return {(g, 1 - p): n for (g, p), n in near_one(rng).items() if g < 2 and p < 2}


def many_classes(rng: random.Random) -> IntegerTable:
    most = 10 ** rng.uniform(0, 15)
    return _square(rng.randint(6, 50), lambda hit: int(rng.random() * most * (1 + 20 * hit)))


INTEGERS = (
    small,
    any_size,
    huge,
    imbalanced,
    near_zero,
    near_one,
    near_minus_one,
    many_classes,
)


def plain_weights(rng: random.Random) -> FloatTable:
    return {pair: rng.random() for pair in _square(rng.randint(2, 5), lambda _: 1)}


def weights_of_any_size(rng: random.Random) -> FloatTable:
    """Weights from 10^-8 to 10^8 times a random size."""
    size = 10 ** rng.uniform(-290, 290)
    table = _square(rng.randint(2, 5), lambda _: 1)
    return {pair: size * 10 ** rng.uniform(-8, 8) for pair in table}


def imbalanced_weights(rng: random.Random) -> FloatTable:
    """10^12 against a few tenths."""
    return {pair: n + rng.random() for pair, n in imbalanced(rng).items()}


def near_one_weights(rng: random.Random) -> FloatTable:
    return {(g, p): (1e16 if g == p else 1) * rng.random() for g, p in near_one(rng)}


def near_zero_weights(rng: random.Random) -> FloatTable:
    """d = b·c / a, so a·d - b·c is only the rounding error."""
    a, b, c = (rng.uniform(1, 2) * 2.0 ** -rng.randint(0, 20) for _ in range(3))
    return {(0, 0): a, (0, 1): b, (1, 0): c, (1, 1): b * c / a}


FLOATS = (
    plain_weights,
    weights_of_any_size,
    imbalanced_weights,
    near_one_weights,
    near_zero_weights,
)

BEYOND_LABELS = (weights_of_any_size, near_one_weights)
"""Families with weights outside 10^-6 to 10^12, where sums per label are plain float sums."""


def as_integers(table: Mapping[tuple[int, int], float]) -> IntegerTable:
    """A table of floats, multiplied by a power of two to make all counts integers."""
    weights = {pair: Fraction(weight) for pair, weight in table.items()}
    scale = max((weight.denominator for weight in weights.values()), default=1)
    return {pair: int(weight * scale) for pair, weight in weights.items()}


def counts_of(some: Sequence[Mapping[tuple[int, int], float]]) -> pl.DataFrame:
    """Many tables as one counts table: each table is a slice."""
    cells = [(i, g, p, n) for i, table in enumerate(some) for (g, p), n in table.items()]
    return pl.DataFrame(cells, schema=["table", "gold", "pred", "n"], orient="row")

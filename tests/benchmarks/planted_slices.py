"""How many planted bad slices `worst` lists, how often, and how many slices that are not bad.

A log has eight keys of six values. Four slices of one to three keys are planted, in which misses
are more frequent; or none. So it is known which slices are behind the rest: the slices with a
larger expected rate of misses. SliceLine searches the same logs for slices with errors.

Last, one slice is planted beside keys of numbers that do not matter: is it named by its cause?

    python tests/benchmarks/planted_slices.py [--logs 100] [--only TEXT|beside] [--peers 2]
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from measuring import print_head, print_row

import polars_mcc  # noqa: F401 - registers the namespace

VALUES = 6
KEYS = [f"key{place}" for place in range(8)]
USUAL = 0.1

Slice = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Setting:
    """A kind of log, and how it is searched."""

    depth: int = 3
    rows: int = 200_000
    classes: int = 4
    is_balanced: bool = True
    keys: str = "independent"
    planted: str = "apart"
    correction: str = "bh"

    @property
    def cells(self) -> list[str]:
        mix = "balanced" if self.is_balanced else "95:5"
        rows = f"{self.rows:,}".replace(",", " ")
        cells = [str(self.depth), rows, f"{self.classes}, {mix}", self.keys, self.planted]
        return [*cells[:-1], f"{self.planted}; by"] if self.correction == "by" else cells

    def __str__(self) -> str:
        return " | ".join(self.cells)

    @property
    def mix(self) -> list[float]:
        if self.is_balanced:
            return [1 / self.classes] * self.classes
        return [0.95, *[0.05 / (self.classes - 1)] * (self.classes - 1)]


def settings() -> Iterator[Setting]:
    """The settings to run. Each differs in few things from the usual setting."""
    usual = Setting()
    for depth in (1, 2, 3):
        for rows in (20_000, 200_000):
            yield replace(usual, depth=depth, rows=rows)
            yield replace(usual, depth=depth, rows=rows, planted="none")
    for classes, is_balanced in ((2, True), (2, False), (10, True)):
        yield replace(usual, classes=classes, is_balanced=is_balanced)
        yield replace(usual, classes=classes, is_balanced=is_balanced, planted="none")
    for keys, planted in itertools.product(("nested", "nearly equal"), ("apart", "none")):
        yield replace(usual, keys=keys, planted=planted)
    for depth, keys in ((2, "independent"), (3, "independent"), (3, "nested")):
        yield replace(usual, depth=depth, keys=keys, planted="overlapping")
    yield replace(usual, correction="by")


def population(keys: str) -> tuple[np.ndarray, np.ndarray]:
    """Every row that a log may have, an array (rows, keys), and the probability of each row.

    If `keys` is "nested", each value of the last key stands for two values of the first key. If it
    is "nearly equal", the last key is drawn again in 2 % of the rows, else equal to the first.
    """
    if keys == "nested":
        grid = np.indices([VALUES] * 7, dtype=np.uint8).reshape(7, -1).T
        return np.column_stack([grid, grid[:, 0] // 2]), np.full(len(grid), 1 / len(grid))
    grid = np.indices([VALUES] * 8, dtype=np.uint8).reshape(8, -1).T
    share = np.full(len(grid), 1 / len(grid))
    if keys == "nearly equal":
        share *= np.where(grid[:, 7] == grid[:, 0], 0.98 * VALUES, 0) + 0.02
    return grid, share


def planted_in(setting: Setting, rng: np.random.Generator) -> dict[Slice, float]:
    """The planted slices, of one to three keys, with their rates of misses."""
    if setting.planted == "none":
        return {}
    last = 7 if setting.keys == "independent" else 6  # else the last key depends on the first
    names = KEYS[:7] if last == 6 else KEYS
    sizes = [size for size in (1, 2, 3, 3) if size <= setting.depth]
    rates = {1: 0.22, 2: 0.26, 3: 0.30} if setting.rows > 100_000 else {1: 0.25, 2: 0.35, 3: 0.5}
    if setting.planted == "overlapping":
        key, other, *_ = rng.permutation(names).tolist()
        value = int(rng.integers(VALUES))
        third = [name for name in names if name not in {key, other}]
        parts = [
            ((key, value), (other, 1)),
            ((key, value), (third[0], 2)),
            ((other, 1), (third[0], 2)),
        ]
        return {tuple(sorted(part)): rates[2] for part in parts}
    found: dict[Slice, float] = {}
    while len(found) < len(sizes):
        size = sizes[len(found)]
        chosen = sorted(rng.choice(names, size, replace=False).tolist())
        slice_ = tuple((name, int(rng.integers(VALUES))) for name in chosen)
        is_nested = any({*slice_} <= {*one} or {*one} <= {*slice_} for one in found)
        if not is_nested:
            found[slice_] = rates[size]
    return found


def inside(columns: np.ndarray, slice_: Slice) -> np.ndarray:
    places = [(KEYS.index(name), value) for name, value in slice_]
    return np.all([columns[:, place] == value for place, value in places], axis=0)


def rates_of(columns: np.ndarray, planted: dict[Slice, float]) -> np.ndarray:
    rate = np.full(len(columns), USUAL)
    for slice_, misses in planted.items():
        rate = np.where(inside(columns, slice_), np.maximum(rate, misses), rate)
    return rate


def log_of(setting: Setting, planted: dict[Slice, float], rng: np.random.Generator) -> pl.DataFrame:
    grid = rng.integers(0, VALUES, (setting.rows, len(KEYS)), dtype=np.uint8)
    if setting.keys == "nested":
        grid[:, 7] = grid[:, 0] // 2
    elif setting.keys == "nearly equal":
        grid[:, 7] = np.where(rng.random(setting.rows) < 0.98, grid[:, 0], grid[:, 7])
    gold = rng.choice(setting.classes, setting.rows, p=setting.mix)
    wrong = (gold + rng.integers(1, setting.classes, setting.rows)) % setting.classes
    is_wrong = rng.random(setting.rows) < rates_of(grid, planted)
    columns = {name: pl.Series(grid[:, place]).cast(pl.String) for place, name in enumerate(KEYS)}
    return pl.DataFrame({**columns, "gold": gold, "pred": np.where(is_wrong, wrong, gold)})


def ours(log: pl.DataFrame, setting: Setting) -> list[Slice]:
    found = log.mcc.worst(*KEYS, depth=setting.depth, correction=setting.correction)
    return [
        tuple((key, int(row[key])) for key in row["keys"].split(", "))
        for row in found.rows(named=True)
    ]


def of_sliceline(log: pl.DataFrame, setting: Setting) -> list[Slice]:
    """The four best slices of SliceLine: four is the largest number of planted slices."""
    from sliceline.slicefinder import Slicefinder  # noqa: PLC0415 - it is optional

    errors = (log["gold"] != log["pred"]).cast(pl.Int8).to_numpy()
    finder = Slicefinder(alpha=0.95, k=4, max_l=setting.depth, min_sup=30, verbose=False)
    finder.fit(log.select(KEYS).to_numpy(), errors)
    return [
        tuple((key, int(value)) for key, value in zip(KEYS, row, strict=True) if value is not None)
        for row in finder.top_slices_
    ]


@dataclass(frozen=True)
class Found:
    """What was found in one log."""

    planted: int
    recalled: int
    listed: int
    false: int


def look(setting: Setting, seed: int, finder: str) -> Found:
    rng = np.random.default_rng([seed, setting.rows])
    planted = planted_in(setting, rng)
    log = log_of(setting, planted, rng)
    found = (of_sliceline if finder == "SliceLine" else ours)(log, setting)
    every, share = population(setting.keys)
    rate = rates_of(every, planted)
    false = 0
    for slice_ in found if planted else ():
        is_in = inside(every, slice_)
        there, elsewhere = (np.average(rate[one], weights=share[one]) for one in (is_in, ~is_in))
        false += there <= elsewhere + 1e-9
    masks = {slice_: inside(every, slice_) for slice_ in {*found, *planted}}

    def is_same(one: Slice, other: Slice) -> bool:
        """Whether both slices share nine tenths of their rows, as keys may be nearly equal."""
        both, either = masks[one] & masks[other], masks[one] | masks[other]
        return bool(share[both].sum() >= 0.9 * share[either].sum())

    recalled = sum(any(is_same(one, other) for other in found) for one in planted)
    return Found(len(planted), recalled, len(found), false if planted else len(found))


def row_of(setting: Setting, finder: str, found: Sequence[Found]) -> list[str]:
    planted = sum(one.planted for one in found)
    listed = [one.listed - one.false for one in found]
    shares = [one.false / max(one.listed, 1) for one in found]
    recall = f"{sum(one.recalled for one in found) / planted:.1%}" if planted else ""
    times = f"{sum(listed) / planted:.2f}" if planted else ""
    error = np.std(shares) / np.sqrt(len(shares))
    *cells, about = setting.cells
    about = about if finder == "polars_mcc" else f"{about}; {finder}"
    false = f"{np.mean(shares):.1%} ± {error:.1%}"
    return [*cells, about, recall, false, times]


def beside_numbers(rows: int, rate: float, keys: int, seed: int) -> str:
    """How one slice is named beside keys of numbers that do not matter.

    The rate of misses in DE is `rate`, or of phones in DE for two `keys`, and 10 % elsewhere.
    """
    rng = np.random.default_rng([seed, rows])
    country = rng.choice(["DE", "FR", "US", "GB", "IT", "ES", "BR", "IN"], rows)
    device = rng.choice(["pc", "phone", "tv"], rows)
    numbers = {f"x{place}": rng.normal(size=rows) for place in range(5)}
    is_bad = (country == "DE") & ((device == "phone") | (keys == 1))
    gold = rng.integers(0, 3, rows)
    is_wrong = rng.random(rows) < np.where(is_bad, rate, USUAL)
    pred = np.where(is_wrong, (gold + rng.integers(1, 3, rows)) % 3, gold)
    columns = {"country": country, "device": device, **numbers, "age": rng.integers(18, 90, rows)}
    log = pl.DataFrame({**columns, "gold": gold, "pred": pred})
    named = log.mcc.worst(*columns)["slice"].to_list()
    wanted = "country = DE and device = phone" if keys == 2 else "country = DE"
    if named == [wanted]:
        return "alone"
    return "with others" if wanted in named else "another" if named else "none"


def print_beside_numbers(logs: int, sizes: Sequence[int]) -> None:
    names = ("alone", "with others", "another", "none")
    print()
    print_head(["rows", "keys of the slice", "errors in it"], names)
    settings = itertools.product(sizes, ((1, 0.13), (1, 0.15), (1, 0.2), (2, 0.25)))
    for rows, (keys, rate) in settings:
        found = [beside_numbers(rows, rate, keys, seed) for seed in range(logs)]
        counts = [found.count(name) for name in names]
        print_row(f"{rows:,}".replace(",", " "), keys, f"{rate:.0%}", *counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--only", default="", help="only settings whose text contains this")
    parser.add_argument("--peers", type=int, default=0, help="logs that SliceLine searches")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    chosen = [setting for setting in settings() if options.only in str(setting)]
    labels = ["depth", "rows", "classes", "keys", "planted"]
    print_head(labels, ["recall", "false discoveries", "per planted"])
    os.environ["POLARS_MAX_THREADS"] = "1"  # of the processes below
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        for setting in chosen:
            finders = {"polars_mcc": options.logs, "SliceLine": options.peers}
            for finder, logs in finders.items():
                if logs and (finder == "polars_mcc" or setting.planted != "none"):
                    seeds = range(logs)
                    found = pool.map(look, [setting] * logs, seeds, [finder] * logs)
                    print_row(*row_of(setting, finder, [*found]))
    if not options.only or options.only == "beside":
        print_beside_numbers(options.logs, (10_000, 20_000, 50_000))


if __name__ == "__main__":
    main()

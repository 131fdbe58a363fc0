"""Frames and strategies that several tests use."""

from __future__ import annotations

import datetime as dt
import inspect
import ntpath
import os
import posixpath
import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, count, islice, product

import polars as pl
import pytest
from _pytest.mark import ParameterSet
from hypothesis import strategies as st
from polars.io.plugins import register_io_source
from tables import counts_of

import polars_mcc

CODES = range(6)
MANY = 80  # cases of a test, at most
NAMES = ["ant", "bee", "cat", "dog", "elk", "fox"]
INTEGERS = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]
LABELS = {
    pl.String(): NAMES,
    pl.Categorical(): NAMES,
    pl.Enum(NAMES): NAMES,
    pl.Boolean(): [False, True, False, True, False, True],
    pl.Date(): [dt.date(2026, 1, 1 + code) for code in CODES],
    pl.Float64(): [code / 4 for code in CODES],
    **{dtype(): list(CODES) for dtype in INTEGERS},
}

codes = st.one_of(st.none(), st.sampled_from(CODES))
keys = st.sampled_from([None, "x", "y", "z"])
rows = st.lists(st.tuples(keys, codes, codes), max_size=40)


def log_of(rows: list[tuple], dtype: pl.DataType | None = None) -> pl.DataFrame:
    """A log of rows (key, gold, pred), whose codes stand for labels of `dtype`."""
    dtype = dtype or pl.String()
    names = LABELS[dtype]

    def column(name: str, values: list[int | None]) -> pl.Series:
        labels = [None if value is None else names[value] for value in values]
        return pl.Series(name, labels, dtype=dtype)

    return pl.DataFrame(
        [
            pl.Series("key", [row[0] for row in rows], dtype=pl.String),
            column("gold", [row[1] for row in rows]),
            column("pred", [row[2] for row in rows]),
        ]
    )


def coded(rows: list[tuple], dtype: pl.DataType) -> list[tuple]:
    """The rows with labels in place of codes, for an oracle."""
    names = LABELS[dtype]
    return [(key, *(None if c is None else names[c] for c in pair)) for key, *pair in rows]


def mcc_of(table) -> float | None:
    """The score by polars_mcc of a table {(gold, pred): n}."""
    return counts_of([table]).mcc(weight="n").score()["mcc"].item()


on_posix = pytest.mark.skipif(
    os.name != "posix", reason="needs signals, modes or shells that Windows lacks"
)
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc or /dev/full of Linux")


class _PathOfWindows:
    """`os.path` of Windows, on the files of this system, with their links."""

    def realpath(self, path) -> str:
        if ntpath.splitdrive(path)[0]:
            return ntpath.realpath(path)
        return posixpath.realpath(path.replace("\\", "/")).replace("/", "\\")

    def __getattr__(self, name):
        return getattr(ntpath, name)


class _OsOfWindows:
    path, sep = _PathOfWindows(), "\\"

    def __getattr__(self, name):
        return getattr(os, name)


def with_paths_of_windows(monkeypatch) -> None:
    """Run the package with paths of Windows, here."""
    for name, module in [*sys.modules.items()]:
        if name.startswith("polars_mcc._") and vars(module).get("os") is os:
            monkeypatch.setattr(module, "os", _OsOfWindows())


def some_slow(values, *slow) -> list:
    """The values of a parameter; those that are slow are for `-m slow`."""
    marks = pytest.mark.slow
    return [pytest.param(value, marks=marks) if value in slow else value for value in values]


def in_browser(test):
    """A test in Chromium: one process of those that run the tests has it."""
    return pytest.mark.slow(pytest.mark.xdist_group("browser")(test))


def first(
    default: int, values, *, of_several: bool = False, later: str = "release"
) -> list[ParameterSet]:
    """The values of a parameter or `of_several`; those after the first few are for `-m release`.

    `later` is their mark: "slow", which CI runs too, or "release".
    """
    cases = [_case(", " if of_several else "", value, is_named=False) for value in values]
    mark = getattr(pytest.mark, later)
    return cases[:default] + [case._replace(marks=(*case.marks, mark)) for case in cases[default:]]


def in_turn(default: int | None = None, /, **values) -> pytest.MarkDecorator:
    """A test of any two values of two parameters together, but not of each combination of values.

    The first cases have each value of each parameter. They run by default, or as many as `default`
    says, and the rest of them are for `-m slow`. Later cases only pair these values anew, and are
    for `-m release`; very many are cut off. `**{"a, b": [...]}` has tuples, and a parameter of one
    value that has a name is `named`.
    """
    lists = {names: [*some] for names, some in values.items()}
    cases = []
    for places in islice(in_pairs([*map(len, lists.values())]), MANY):
        both = zip(lists.items(), places, strict=True)
        chosen = [_case(names, some[place]) for (names, some), place in both]
        cases.append(
            pytest.param(
                *(value for case in chosen for value in case.values),
                id="-".join(case.id for case in chosen),
                marks=[mark for case in chosen for mark in case.marks],
            )
        )
    longest = max(map(len, lists.values()))
    end = max(default or 0, longest)
    cases = first(default or longest, cases[:end], later="slow") + first(0, cases[end:])
    return pytest.mark.parametrize(", ".join(values), cases)


def in_pairs(sizes: list[int]) -> Iterator[list[int]]:
    """Places in lists of these sizes: each place soon, and any two places of two lists once."""
    every = [[(list_, place) for place in range(size)] for list_, size in enumerate(sizes)]
    left = {both for two in combinations(every, 2) for both in product(*two)}
    times = Counter()
    for turn in count():
        if turn >= max(sizes) and not left:
            return
        chosen = [*min(left)] if turn >= max(sizes) else []
        for places in every:
            if not {*places} & {*chosen}:
                new = {
                    place: sum(tuple(sorted((place, other))) in left for other in chosen)
                    for place in places
                }
                chosen.append(min(places, key=lambda at: (times[at] > 0, -new[at], times[at])))
        chosen.sort()
        left -= {*combinations(chosen, 2)}
        times.update(chosen)
        yield [place for _, place in chosen]


def _case(names: str, value, *, is_named: bool = True) -> ParameterSet:
    """A value, or a tuple of values, with an id that a command line takes."""
    if not isinstance(value, ParameterSet):
        value = pytest.param(*(value if ", " in names else [value]))
    if not is_named:
        return value
    said = value.id or ", ".join(map(_in_words, value.values))
    return value._replace(id=re.sub(r"[^\w .,:=*-]+", "", said)[:40] or "none")


def _in_words(value) -> str:
    """The same words in each process: no address in memory, and no order of a set."""
    listed = sorted(map(str, value)) if isinstance(value, set | frozenset) else value
    return re.sub(r" at 0x\w+", "", getattr(value, "__name__", str(listed)))


def named(values: dict[str, object]) -> list[ParameterSet]:
    """The values of a parameter, with their names."""
    return [pytest.param(value, id=name) for name, value in values.items()]


LOG_OPTIONS = inspect.signature(polars_mcc.PredictionLog.__init__).parameters


def ask(frame, verb: str, *keys, **options):
    """Call a verb of a log; options that describe the columns go to `PredictionLog`."""
    about = {name: options.pop(name) for name in [*options] if name in LOG_OPTIONS}
    return getattr(polars_mcc.PredictionLog(frame, **about), verb)(*keys, **options)


def source_of(frame: pl.DataFrame) -> tuple[pl.LazyFrame, list[pl.Expr | None]]:
    """A source of rows, and the predicates of the queries that read it, in order."""
    predicates: list[pl.Expr | None] = []

    def rows(with_columns, predicate, n_rows, _):
        if n_rows is not None:  # A look at the first labels, for remarks.
            yield frame.select(with_columns).head(n_rows)
            return
        predicates.append(predicate)
        chosen = frame if predicate is None else frame.filter(predicate)
        yield chosen if with_columns is None else chosen.select(with_columns)

    return register_io_source(rows, schema=frame.schema, is_pure=True), predicates

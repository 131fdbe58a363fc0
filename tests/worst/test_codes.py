"""Codes of keys: every row is in the slices whose text matches its value, and in no other."""

from __future__ import annotations

import datetime as dt
import math
import re

import numpy as np
import polars as pl
import pytest
from support import first

from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._keys import bins as bins_module
from polars_mcc._worst.column_codes import CodedKey, coded_log

ROWS = 3000


def codes_of(
    column: pl.Series, *, bins: int | None = 10, least: float = 1
) -> tuple[CodedKey, list]:
    """The key, and the code of each row."""
    log = pl.DataFrame({"key": column}).with_columns(gold=1, pred=1)
    found = coded_log(cut(sides_of(log.mcc()), ["key"], taken=()), bins=bins, least=least)
    key = found.keys["key"]
    codes = found.rows["key:key"].tolist()
    return key, [None if code == key.size else code for code in codes]


def values_of(key: CodedKey, code: int) -> set:
    return {
        row["value"]
        for row in key.values.rows(named=True)
        if code is not None and row["first"] <= code <= row["last"]
    }


def is_in(number: float | None, words: str) -> bool:
    """Whether a number is in the range that the words name."""
    if number is None or math.isnan(number):
        return words == "NaN" and number is not None
    if words == "NaN":
        return False
    low, high = ends_in(words)
    return low < number <= high


def ends_in(words: str) -> tuple[float, float]:
    """The ends of a range that the words name: the first is not in it."""
    if words[0] in "≤>":
        end = float(words[2:])
        return (-math.inf, end) if words[0] == "≤" else (end, math.inf)
    if " to " in words:
        first, last = map(int, words.split(" to "))
        return first - 1, last
    if " < x ≤ " in words:
        low, high = map(float, words.split(" < x ≤ "))
        return low, high
    return int(words) - 1, int(words)


@pytest.mark.parametrize("kind", first(1, ["integers", "floats", "few at once", "decimals"]))
def test_numbers_are_cut_where_their_words_say(kind):
    rng = np.random.default_rng(1)
    numbers = {
        "integers": pl.Series(rng.integers(-50, 1000, ROWS)),
        "floats": pl.Series([*rng.lognormal(0, 2, ROWS - 3), math.nan, math.inf, None]),
        "few at once": pl.Series(np.where(rng.random(ROWS) < 0.7, 0.0, rng.random(ROWS))),
        "decimals": pl.Series(rng.integers(0, 10**5, ROWS)).cast(pl.Decimal(12, 2)) / 100,
    }[kind]
    key, codes = codes_of(numbers)
    assert key.is_cut
    words = [word for word in key.values["value"] if word is not None]
    assert len({*words}) == len(words)
    for number, code in zip(numbers.cast(pl.Float64), codes, strict=True):
        expected = {word for word in words if is_in(number, word)}
        assert values_of(key, code) == (expected if number is not None else {None}), number


def test_numbers_of_few_values_are_left_alone():
    numbers = pl.Series([*range(30)] * 5)
    key, codes = codes_of(numbers)
    assert not key.is_cut
    assert [values_of(key, code) for code in codes] == [{str(number)} for number in numbers]
    key, codes = codes_of(pl.Series(range(200)), bins=None)
    assert [values_of(key, code) for code in codes] == [{number} for number in range(200)]


@pytest.mark.parametrize(("days", "unit"), [(10, "day"), (100, "week"), (700, "month")])
def test_times_are_cut_by_the_calendar(days, unit):
    first = dt.date(2026, 3, 4)
    dates = [first + dt.timedelta(days=place % days) for place in range(ROWS)]
    key, codes = codes_of(pl.Series([*dates, None]))
    assert values_of(key, codes[-1]) == {None}

    def starts(day: dt.date) -> dt.date:
        start = {"day": day, "week": day - dt.timedelta(days=day.weekday())}
        return start.get(unit, day.replace(day=1))

    form = "%Y-%m" if unit == "month" else "%Y-%m-%d"
    for day, code in zip(dates[:days], codes, strict=False):
        start = starts(day).strftime(form)
        for word in values_of(key, code):
            [edge] = re.findall(r"[\d-]+", word)
            is_here = {"before": start < edge, "from": start >= edge}.get(word.split()[0])
            assert start == edge if is_here is None else is_here
        assert sum(word.endswith(start) for word in values_of(key, code)) >= 1


@pytest.mark.parametrize(
    "values",
    [
        ["a", "b", None, "null", "null'"],
        [True, False, None],
        [7, -2, None],
        [-(2**63), -(2**63) + 1, None],
        [2**63 - 1, -(2**63), None],
        [dt.timedelta(1), dt.timedelta(2), None],
        [{"x": 1, "y": None}, {"x": 1, "y": "null"}, None],
        [[1, 2], [], None, [None]],
        [b"a", b"", None],
    ],
    ids=str,
)
def test_each_value_is_a_slice_of_its_own(values):
    """For every dtype, and for null, even if a value has the text "null"."""
    column = pl.Series(values * 3 + values[:1])
    key, codes = codes_of(column, least=4, bins=None)
    assert key.values["value"].to_list() == values[:1]
    assert key.n_small == len(values) - 1
    assert codes == [0 if value == values[0] else None for value in column.to_list()]
    key, codes = codes_of(column, bins=None)
    places = key.values["first"].to_list()
    found = [key.values["value"].to_list()[places.index(code)] for code in codes]
    assert found == column.to_list()


def test_values_of_no_rows():
    for column in (pl.Series([], dtype=pl.String), pl.Series([], dtype=pl.Float64)):
        key, codes = codes_of(column)
        assert (key.size, codes) == (0, [])
    key, codes = codes_of(pl.Series(["a", "b"]), least=2)
    assert (key.size, key.n_small, codes) == (0, 2, [None, None])


@pytest.mark.parametrize(
    "numbers",
    [
        [2**60 + place for place in range(1000)],
        [2**64 - 1 - place * 7 for place in range(1000)],
        [-(2**63) + place for place in range(1000)],
    ],
    ids=["large", "unsigned", "least"],
)
def test_large_integers_are_cut(numbers):
    dtype = pl.UInt64 if max(numbers) >= 2**63 else pl.Int64
    key, codes = codes_of(pl.Series(numbers, dtype=dtype))
    assert key.size == 11
    for number, code in zip(numbers, codes, strict=True):
        for words in values_of(key, code):
            first, last = (re.search(form, words) for form in (r"(-?\d+) to", r"(?:≤|to) (-?\d+)"))
            after = re.search(r"> (-?\d+)", words)
            assert first or last or after
            assert after is None or number > int(after[1])
            assert first is None or number >= int(first[1])
            assert last is None or number <= int(last[1])


def test_parts_have_about_as_many_rows_whatever_the_spread():
    rng = np.random.default_rng(0)
    for numbers in (10 ** rng.uniform(0, 9, ROWS), 1.7e308 * rng.uniform(-1, 1, ROWS)):
        key, codes = codes_of(pl.Series(numbers))
        sizes = pl.Series(codes).value_counts()["count"]
        assert key.size == 10 + 2
        assert sizes.min() > ROWS / 20
        assert sizes.max() < ROWS / 6


def test_a_log_that_repeats_itself_is_sampled_fairly(monkeypatch):
    monkeypatch.setattr(bins_module, "_MANY", ROWS // 50)
    key, _ = codes_of(pl.Series([float(place % 50) for place in range(ROWS)]))
    assert key.size >= 8


def test_negative_zero_is_zero():
    key, codes = codes_of(pl.Series([-0.0, 0.0, -0.0, 1.5]), bins=None)
    assert sorted(map(str, key.values["value"])) == ["0.0", "1.5"]
    assert codes[0] == codes[1] == codes[2] != codes[3]

"""A search in words."""

from __future__ import annotations

import re

import polars as pl
import pytest

from polars_mcc._base.slice_names import clause, slice_name
from polars_mcc._base.values_as_text_or_markdown import percent, rows_in_words
from polars_mcc._worst.failures_in_words import (
    collapse_in_words,
    confusion_in_words,
    summed_up,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DE", "k = DE"),
        (None, "k = null"),
        ("null", 'k = "null"'),
        ("1 and b = 2", 'k = "1 and b = 2"'),
        ('"a"', r'k = "\"a\""'),
        ("", "k = "),
        ("26", "k = 26"),
        ("≤ 25", "k ≤ 25"),
        ("> 4.5", "k > 4.5"),
        ("26 to 45", "k 26 to 45"),
        ("-5 to -3", "k -5 to -3"),
        ("25 < x ≤ 45.5", "25 < k ≤ 45.5"),
        ("before 2026-03-16", "k before 2026-03-16"),
        ("from 2026-03-16 on", "k from 2026-03-16 on"),
        ("in the week of 2026-03-16", "k in the week of 2026-03-16"),
        ("2026-03", "k = 2026-03"),
        ("before lunch", "k = before lunch"),
        ("from now on", "k = from now on"),
        ("to 5 to", "k = to 5 to"),
    ],
)
def test_a_clause(text, expected):
    values = pl.DataFrame({"k": [text]}, schema={"k": pl.String})
    assert values.select(clause("k", pl.col("k"))).item() == expected


@pytest.mark.parametrize("key", ["a.b", "$1", "^a.*$", "x", "a and b"])
def test_a_key_of_any_name(key):
    values = pl.DataFrame({"k": ["1 < x ≤ 2"]})
    assert values.select(clause(key, pl.col("k"))).item() == f"1 < {key} ≤ 2"


def test_several_keys_of_some_sets():
    rows = pl.DataFrame({"keys": ["a, b", "b", ""], "a": ["x", None, None], "b": ["≤ 3", None, ""]})
    named = slice_name(
        {"a": pl.col("a"), "b": pl.col("b")}, {"a, b": ("a", "b"), "b": ("b",), "": ()}
    )
    assert rows.select(named).to_series().to_list() == ["a = x and b ≤ 3", "b = null", "all rows"]
    assert rows.head(1).select(slice_name({})).item() == "all rows"


def test_confusions_and_shares():
    plain = str.maketrans("\u00a0", " ")
    assert confusion_in_words(0, 1, 0.4, 0.28).translate(plain) == (
        "40 % of gold 0 predicted 1, 28 % elsewhere"
    )
    assert confusion_in_words("a", None, 0.052, None).translate(plain) == (
        "5.2 % of gold a predicted null, none elsewhere"
    )
    assert collapse_in_words("no", "yes", 1200) == "predicts only 'no': 0 of 1,200 'yes' found"
    assert collapse_in_words(None, 1, 2.5) == "predicts only 'null': 0 of 2.5 '1' found"
    assert [percent(one).translate(plain) for one in (0, 0.1, 0.0996, 1)] == [
        *("0 %", "10 %", "10.0 %", "100 %")
    ]
    assert [rows_in_words(n) for n in (1, 2000, 0.5)] == ["1 row", "2,000 rows", "0.5 rows"]


def said_of(**columns) -> str:
    """The sum of a search of rows with some values; the others are of an ordinary row."""
    row = {
        "slice": "k = 1",
        "n": 40,
        "metric": "mcc",
        "score": 0.1,
        "reference": 0.2,
        "expected": 0.3,
    }
    row |= {"p_adjusted": 0.5, "n_tested": 9, "n_untested": 0, "verdict": "not behind", **columns}
    to = row.pop("to", "rest")
    verdicts = row.pop("verdict").split(", ")
    answer = pl.DataFrame([{**row, "verdict": verdict} for verdict in verdicts])
    return summed_up(answer, to, has_models=False)


def test_the_nearest_slice_of_each_model_in_which_no_slice_fails():
    verdicts = {"a": ["listed", "not behind"], "b": ["not behind"] * 2}
    verdicts |= {"c": ["too few rows"], "d": ["not behind"], "e": ["no interval"]}
    row = {
        "n": 40,
        "metric": "mcc",
        "score": 0.1,
        "reference": 0.2,
        "p_adjusted": 0.5,
        "n_tested": 2,
    }
    answer = pl.DataFrame(
        {"slice": f"k = {at}", "model": model, "verdict": verdict, "n_untested": 0, **row}
        for model, of_model in verdicts.items()
        for at, verdict in enumerate(of_model)
    )
    said = summed_up(answer, "rest", has_models=True)
    named = re.findall(r"([A-Z][a-z ]+): (k = [0-9]) \((.)\)", said)
    assert named == [("Nearest", "k = 0", "b"), ("Nearest", "k = 0", "d")]


def test_a_search_in_words():
    assert said_of() == (
        "9 slices tested: none is worse than the rest of the log. "
        "Nearest: k = 1 (n 40, mcc 0.100, rest of the log 0.200, p_adjusted 0.5)."
    )
    assert said_of(to="expected", score=None, expected=None, p_adjusted=None) == (
        "9 slices tested: none is worse than expected of their labels. "
        "Nearest: k = 1 (n 40, mcc undefined, expected undefined)."
    )
    explained = "explained by those listed"
    assert said_of(verdict="listed, not behind", n_untested=2) == (
        "9 slices tested (2 more not: too few rows or labels): 1 is worse than the rest of the log."
    )
    assert said_of(verdict=f"listed, listed, beyond the list, {explained}", n_untested=1) == (
        "9 slices tested (1 more not: too few rows or labels): 2 are worse than the rest of the "
        "log; 1 more not listed; 1 more only because they share rows with these."
    )
    assert said_of(verdict=f"listed, {explained}, {explained}") == (
        "9 slices tested: 1 is worse than the rest of the log; 2 more only because they share rows "
        "with these."
    )

"""Texts that differ only in case, spaces or Unicode form: which do, and how it is said."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_mcc._counts.warnings_on_labels_and_keys import alike, differ

SAME = [
    ("Yes", "yes", "YES"),
    ("yes", "yes ", " yes", "yes\r", "yes\u00a0", "yes\u200b", "\ufeffyes"),
    ("Credit Card", "creditcard", "credit  card"),
    ("caf\u00e9", "cafe\u0301"),
    ("yes", "ｙｅｓ"),
    ("H₂O", "H2O"),
    ("COVID 19", "covid19"),
    ("STRASSE", "Straße"),
    ("1", " 1"),
]
APART = [
    ("a+", "a-", "a"),
    ("C", "C++", "C#"),
    ("1.5", "15", "1,5", "1 5"),
    ("-1", "1", "+1", "−1"),
    ("10-20", "1020", "10 20"),
    ("10²", "102", "10⁵", "105"),
    ("yes", "yes?", "!yes", "yes*", "yes."),
    ("credit_card", "credit-card", "credit card"),
    ("resume", "résumé"),
    (".", ",", "", "-"),
    ("01", "1", "1.0"),
    ("spam", "ham"),
]


@pytest.mark.parametrize("texts", SAME, ids=repr)
def test_these_differ_only_in_case_spaces_or_unicode_form(texts):
    assert alike([*texts, "other"]) == [sorted(texts)]
    assert all(alike(pair) == [sorted(pair)] for pair in itertools.combinations(texts, 2))


@pytest.mark.parametrize("texts", APART, ids=repr)
def test_these_are_labels_of_their_own(texts):
    assert alike(texts) == []


@given(st.lists(st.text(max_size=6), unique=True))
def test_any_texts_are_grouped_at_most_once(texts):
    found = [text for group in alike(texts) for text in group]
    assert len(found) == len({*found})
    assert {*found} <= {*texts}


def test_the_sentence_has_the_rows_of_each_text_by_column():
    groups = [["A", "a"], ["b", "b "], ["c", "C"]]
    gold, pred = {"A": 1, "a": 1200, "b": 2, "b ": 2.5}, {"a": 3, "c": 1, "C": 1}
    assert differ(groups, [("g", gold), ("p", pred)]) == (
        "differ only in case, spaces or Unicode form: "
        "'g' has 'A' (1 row) and 'a' (1,200 rows), 'b' (2 rows) and 'b ' (2.5 rows); "
        "'p' has 'a' (3 rows), 'c' (1 row) and 'C' (1 row)"
    )
    many = [[one, one.upper()] for one in "abcdefghijk"]
    told = differ(many, [("k", dict.fromkeys("abcdefghijkABCDEFGHIJK", 1))])
    assert told.endswith("'j' (1 row) and 'J' (1 row), …")

"""Texts that differ only in spelling: which do, and the code that makes them one."""

from __future__ import annotations

import itertools

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_mcc._counts.spelling import Spelled, alike, code_of, remark

SAME = [
    ("Yes", "yes", "YES"),
    ("yes", "yes ", " yes", "yes\r", "yes\u00a0", "yes\u200b", "\ufeffyes"),
    ("Yes.", "yes", "yes!", "'yes'", '"yes"', "`yes`"),
    ("credit_card", "credit-card", "Credit Card", "creditcard", "credit – card", "credit  card"),
    ("non-fraud", "nonfraud", "non fraud"),
    ("caf\u00e9", "cafe\u0301"),
    ("yes", "ｙｅｓ"),
    ("H₂O", "H2O"),
    ("U.S.", "us", "US"),
    ("N/A", "na"),
    ("COVID-19", "covid19", "Covid 19"),
    ("STRASSE", "Straße"),
    ("don't", "don’t", "dont"),
    ("1", "1.", " 1"),
]
APART = [
    ("a+", "a-", "a"),
    ("C", "C++", "C#"),
    ("F#", "F"),
    ("1.5", "15", "1,5", "1-5", "1_5", "1/5", "1:5", "1 5"),
    ("-1", "1", "+1", "−1"),
    ("10-20", "1020", "10 20"),
    (".5", "5", "0.5"),
    ("<5", ">5", "5", "≤5", "5%", "$5"),
    ("(0, 5]", "[0, 5]", "[0, 5)"),
    ("10²", "102", "10⁵", "105"),
    ("5'", '5"'),
    ("v1.5", "v15"),
    ("yes", "yes?", "!yes", "yes*"),
    ("resume", "résumé"),
    ("B-PER", "I-PER"),
    (":)", ":("),
    (".", ",", "", "-"),
    ("01", "1", "1.0"),
    ("spam", "ham"),
]


@pytest.mark.parametrize("texts", SAME, ids=repr)
def test_these_differ_only_in_spelling(texts):
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


def said(chosen, texts, kept=()):
    changed = {text: 2 for text in texts if text in chosen}
    columns = [Spelled("x", code_of("x"), pl.String(), "--gold", changed)]
    return remark("labels", "if", columns, chosen, texts=texts, kept=kept)


@pytest.mark.parametrize(
    ("chosen", "texts", "kinds", "code"),
    [
        ({"yes": "Yes"}, ["Yes", "yes"], "case", ".replace({'yes': 'Yes'})"),
        ({"yes ": "yes"}, ["yes", "yes "], "spaces", ".replace({'yes ': 'yes'})"),
        ({"a_b": "a-b"}, ["a-b", "a_b"], "punctuation", ".replace({'a_b': 'a-b'})"),
        ({"e\u0301": "é"}, ["é", "e\u0301"], "Unicode form", ".replace({'e\u0301': 'é'})"),
        (
            {one.upper() + " ": one for one in "abcde"},
            [*"abcde", "A ", "B ", "C ", "D ", "E "],
            "case and spaces",
            ".str.strip_chars().str.to_lowercase()",
        ),
        (
            {"A": "a", "B": "b", "C": "c", "D": "d", "E_": "e"},
            [*"abcdeABCD", "E_"],
            "case and punctuation",
            ".replace({'A': 'a', 'B': 'b', 'C': 'c', 'D': 'd', 'E_': 'e'})",
        ),
    ],
)
def test_the_code_makes_the_spellings_one(chosen, texts, kinds, code):
    told = said(chosen, texts)
    assert told.startswith(f"labels differ only in {kinds}: 'x' has ")
    assert told.endswith(f"; if, use pl.col('x'){code}")
    mended = pl.DataFrame({"x": texts}).select(eval(told.split("use ")[1]))  # noqa: S307 - our own
    of_shell = told.in_shell.split("--gold ")[1]
    of_shell = pl.sql_expr(of_shell.strip("\"'").removesuffix(" AS x"))
    for one in (mended, pl.DataFrame({"x": texts}).select(x=of_shell)):
        assert one["x"].n_unique() == len(texts) - len(chosen)
        after = dict(zip(texts, one["x"], strict=True))
        assert all(after[old] == after[new] for old, new in chosen.items())


def test_a_function_keeps_a_label_that_is_named_elsewhere():
    chosen, texts = {one: one.upper() for one in "abcde"}, [*"abcdeABCDE"]
    assert "str.to_lowercase()" in said(chosen, texts)
    assert "replace({" in said(chosen, texts, kept=["A"])
    assert "replace({" in said({one: one.upper() for one in "bcdef"}, [*"bcdefBCDEF", "A", "a"])

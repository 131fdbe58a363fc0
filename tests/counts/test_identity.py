"""Hashes stand for labels and slices: how often they agree by accident, and what that does."""

from __future__ import annotations

import datetime as dt
import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from support import codes, log_of

from polars_mcc._counts import identity

MANY = 40_000
TEXTS = {
    "numbered": [f"label-{k}" for k in range(MANY)],
    "one character": [chr(0x4E00 + k % 20_000) + "ab"[k // 20_000] for k in range(MANY)],
    "long, differing in front": [f"{k:05}" + "x" * 40 for k in range(MANY)],
    "long, differing at the end": ["x" * 40 + f"{k:05}" for k in range(MANY)],
    "of growing length": ["x" * k for k in range(2_000)],
}


def collisions(words: pl.Series) -> int:
    return len(words) - words.n_unique()


def expected_collisions(things: int, bits: int) -> tuple[float, float]:
    """Of a hash that is random: its mean, and five standard deviations."""
    mean = things * (things - 1) / 2**bits / 2
    return mean, 5 * math.sqrt(mean) + 1


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("shift", [0, 16, 40])
def test_a_narrow_hash_of_labels_collides_as_often_as_a_random_one(texts, shift):
    """The bound in `identity.py` is that of a random hash; so 24 of its bits must look random."""
    label = pl.Series("label", texts)
    words = pl.select(identity.of_label(pl.lit(label), pl.String())).to_series()
    assert words.dtype == pl.UInt64
    assert collisions(words) == 0
    mean, five_sigma = expected_collisions(len(texts), 24)
    assert abs(collisions(words // 2**shift % 2**24) - mean) <= five_sigma


SLICES = {
    "integers, and swapped": [(k, k + 1) for k in range(0, MANY, 2)]
    + [(k + 1, k) for k in range(0, MANY, 2)],
    "days": [(dt.date(1950, 1, 1) + dt.timedelta(k), k) for k in range(MANY)],
    "floats, one of them null": [(k / 8, k / 8 or None) for k in range(MANY)],
    "one that does not vary": [(k, 0) for k in range(MANY)],
}


@pytest.mark.parametrize("slices", SLICES.values(), ids=SLICES)
@pytest.mark.parametrize("shift", [0, 32, 64, 100])
def test_a_narrow_identity_of_classes_collides_as_often_as_a_random_one(slices, shift):
    classes = pl.DataFrame(slices, schema=["a", "b"], orient="row").with_columns(
        label=pl.int_range(pl.len()) % 7
    )
    words = classes.select(word=identity.of_class(["a", "b"], "label"))
    assert words.schema == {"word": pl.Int128}
    assert collisions(words["word"]) == 0
    narrow = pl.col("word") // pl.lit(2**shift, pl.Int128) % pl.lit(2**24, pl.Int128)
    mean, five_sigma = expected_collisions(MANY, 24)
    assert abs(collisions(words.select(narrow).to_series()) - mean) <= five_sigma


def test_a_collision_would_change_the_score(monkeypatch):
    """So the tests that compare scores with an oracle notice a hash that is too narrow."""
    log = log_of([("x", gold, gold) for gold in range(6)] + [("x", 0, 1), ("x", 2, 3)])
    right = log.mcc.by("key")
    monkeypatch.setattr(identity, "of_label", lambda label, _: label.hash() % 2)
    assert not log.mcc.by("key").equals(right)


number_keys = st.tuples(st.none() | st.integers(-2, 2), st.sampled_from([None, 0.0, -0.0, 0.5]))


@given(st.lists(st.tuples(number_keys, codes, codes), max_size=40))
def test_slices_by_number_are_those_by_text(rows):
    """Number keys are grouped by one integer, text keys by their columns."""
    log = log_of([("", gold, pred) for _, gold, pred in rows])
    log = log.with_columns(
        a=pl.Series([key[0] for key, *_ in rows], dtype=pl.Int8),
        b=pl.Series([key[1] for key, *_ in rows], dtype=pl.Float64),
    )
    as_text = log.with_columns(pl.col("a", "b").replace(-0.0, 0.0).cast(pl.String))
    by_text = as_text.mcc.by("a", "b").cast({"a": pl.Int8, "b": pl.Float64})
    by_number = log.mcc.by("a", "b")
    assert_frame_equal(by_number, by_text.sort("a", "b"), check_exact=True)

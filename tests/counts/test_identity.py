"""Integers in place of labels: exact codes, and hashes, which may collide."""

from __future__ import annotations

import datetime as dt
import math

import polars as pl
import polars.selectors as cs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from support import codes, first, in_turn, log_of, named

from polars_mcc import cube
from polars_mcc._counts import label_hashes

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
    """The expected collisions of a random hash: the mean, and five standard deviations."""
    mean = things * (things - 1) / 2**bits / 2
    return mean, 5 * math.sqrt(mean) + 1


@in_turn(shift=[0, 16, 40], texts=named(TEXTS))
def test_a_narrow_hash_of_labels_collides_as_often_as_a_random_one(texts, shift):
    """The bound in `label_hashes.py` is of a random hash, so 24 of its bits must look random."""
    label = pl.Series("label", texts)
    words = pl.select(label_hashes.of_label(pl.lit(label))).to_series()
    assert words.dtype == pl.UInt64
    assert collisions(words) == 0
    mean, five_sigma = expected_collisions(len(texts), 24)
    assert abs(collisions(words // 2**shift % 2**24) - mean) <= five_sigma


def test_a_collision_would_change_the_score(monkeypatch):
    """So tests that compare scores with an oracle would find a hash that is too narrow."""
    log = log_of([("x", gold, gold) for gold in range(6)] + [("x", 0, 1), ("x", 2, 3)])
    right = log.mcc.by("key")
    monkeypatch.setattr(label_hashes, "of_label", lambda label: label.hash() % 2)
    assert not log.mcc.by("key").equals(right)


MANY_NAMES = pl.Enum([f"name-{k}" for k in range(70_000)])
WIDTHS: dict[pl.DataType, list] = {
    pl.Boolean(): [False, True],
    **{
        dtype: sorted({low, low + 1, 0, 1, high - 1, high})
        for dtype, low, high in [
            (pl.Int8(), -(2**7), 2**7 - 1),
            (pl.Int16(), -(2**15), 2**15 - 1),
            (pl.Int32(), -(2**31), 2**31 - 1),
            (pl.UInt8(), 0, 2**8 - 1),
            (pl.UInt16(), 0, 2**16 - 1),
            (pl.UInt32(), 0, 2**32 - 1),
        ]
    },
    pl.Date(): [dt.date.min, dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date.max],
    pl.Enum(["only"]): ["only"],
    MANY_NAMES: ["name-0", "name-1", "name-255", "name-256", "name-65535", "name-69999"],
    pl.Categorical(): ["a", "b"],
    pl.Categorical(pl.Categories("letters", physical=pl.UInt8)): ["a", "b"],
}
WIDE: dict[pl.DataType, list] = {
    pl.Int64(): [-(2**63), 0, 2**63 - 1],
    pl.Float64(): [0.0, -0.0, float("nan")],
    pl.String(): ["", "a"],
    pl.Datetime(): [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)],
    pl.Null(): [],
}


@st.composite
def frames(draw, dtypes=(*WIDTHS, *WIDE)) -> pl.DataFrame:
    """A frame of keys a, b, c and labels of any width, with the values at the limits of a dtype."""
    label = draw(st.sampled_from(dtypes))
    columns = {name: draw(st.sampled_from(dtypes)) for name in "abc"} | {"gold": label}
    columns |= {"pred": label, "other": label}
    values = {**WIDTHS, **WIDE}
    height = draw(st.integers(0, 12))
    return pl.DataFrame(
        {
            name: pl.Series(
                [draw(st.sampled_from([None, *values[dtype]])) for _ in range(height)], dtype=dtype
            )
            for name, dtype in columns.items()
        }
    )


VERBS = {
    "by": lambda log: log.by("a", "b"),
    "interval": lambda log: log.by("a", ci=0.95),
    "counts": lambda log: log.counts("a", "b"),
    "classes": lambda log: log.classes("b"),
    "models": lambda log: log(pred=["pred", "other"]).by("a"),
    "compare": lambda log: log(pred=["pred", "other"]).compare("a"),
    "label": lambda log: log(nulls="label", pred=["pred", "other"]).by("a", "b"),
    "sets": lambda log: log.by(cube("a", "b")),
    "some labels": lambda log: log(nulls="reweight").by("a", ci=0.9),
}


@pytest.mark.parametrize("verb", first(3, VERBS.values()), ids=VERBS)
@given(frame=frames(dtypes=(pl.Boolean(),)))
def test_answers_of_booleans_are_those_of_integers(verb, frame):
    labels = ["gold", "pred", "other"]
    found = verb(frame.lazy().mcc).collect()
    as_integers = frame.with_columns(pl.col(labels).cast(pl.Int8)).lazy().mcc
    expected = verb(as_integers).collect()
    given = {*found.columns} & {"gold", "pred", "label"}
    expected = expected.with_columns(pl.col(given).cast(pl.Boolean))
    # The last digits of a p-value depend on the place of its row.
    p_values = cs.starts_with("p_") & cs.float()
    assert_frame_equal(found.drop(p_values), expected.drop(p_values), check_exact=True)
    assert_frame_equal(found.select(p_values), expected.select(p_values), rel_tol=1e-12)


@pytest.mark.parametrize("dtype", [*WIDTHS, *WIDE], ids=repr)
def test_a_pair_of_labels_is_one_integer_and_tells_labels_apart(dtype):
    values = [None, *WIDTHS.get(dtype, WIDE.get(dtype))]
    pairs = pl.DataFrame(
        [(a, b) for a in values for b in values],
        schema={"gold": dtype, "pred": dtype},
        orient="row",
    )
    pair = label_hashes.of_pair(pl.col("gold"), pl.col("pred"), dtype)
    gold, pred = pair.labels(pl.col("number"))
    found = pairs.with_columns(number=pair.number).with_columns(g=gold, p=pred)
    different = pairs.select(pl.col("gold").n_unique()).item()
    assert found["number"].n_unique() == different**2
    assert found["g"].n_unique() == found["p"].n_unique() == different
    equal = pl.col("gold").eq_missing(pl.col("pred"))
    assert found.select((equal == (pl.col("g") == pl.col("p"))).all()).item()


@pytest.mark.slow
@given(frames())
def test_several_models_are_scored_as_each_alone(frame):
    together = frame.mcc(pred=["pred", "other"]).by("a")
    for name in ("pred", "other"):
        alone = frame.mcc(pred=name).by("a")
        of_one = together.filter(model=name).drop("model")
        assert_frame_equal(of_one, alone, check_exact=True)


number_keys = st.tuples(st.none() | st.integers(-2, 2), st.sampled_from([None, 0.0, -0.0, 0.5]))


@given(st.lists(st.tuples(number_keys, codes, codes), max_size=40))
def test_slices_by_number_are_those_by_text(rows):
    """0.0 and -0.0 are one slice, and all nulls are one slice, whatever the dtypes."""
    log = log_of([("", gold, pred) for _, gold, pred in rows])
    log = log.with_columns(
        a=pl.Series([key[0] for key, *_ in rows], dtype=pl.Int8),
        b=pl.Series([key[1] for key, *_ in rows], dtype=pl.Float64),
    )
    as_text = log.with_columns(pl.col("a", "b").replace(-0.0, 0.0).cast(pl.String))
    by_text = as_text.mcc.by("a", "b").cast({"a": pl.Int8, "b": pl.Float64})
    by_number = log.mcc.by("a", "b")
    assert_frame_equal(by_number, by_text.sort("a", "b"), check_exact=True)

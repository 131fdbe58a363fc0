"""Every set of keys is counted once, with the counts of a plain group_by."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_mcc._counts.cut import cut
from polars_mcc._scores import registry
from polars_mcc._search import blocks as blocks_module
from polars_mcc._search.blocks import blocks, kept
from polars_mcc._search.codes import coded
from polars_mcc._search.slices import Sought, looked_at

KEYS = ["a", "b", "c", "age"]


@given(
    sizes=st.lists(st.sampled_from([1, 2, 6, 20, 300, 10**5]), min_size=1, max_size=8),
    depth=st.integers(1, 4),
    labels=st.sampled_from([0, 2, 10]),
)
def test_each_set_is_of_one_block(sizes, depth, labels):
    named = {f"k{place}": size for place, size in enumerate(sizes)}
    found = blocks(named, depth, labels)
    every = [keys for size in range(1, depth + 1) for keys in itertools.combinations(named, size)]
    assert Counter(keys for block in found for keys in block.sets) == Counter(every)
    assert all({*keys} <= {*block.keys} for block in found for keys in block.sets)
    assert all(block.apart in {*keys, None} for block in found for keys in block.sets)


def test_small_keys_share_blocks():
    assert len(blocks(dict.fromkeys("abcdefgh", 6), 3, 4)) <= 12  # of 56 sets of three
    assert len(blocks(dict.fromkeys("abcdefghij", 20), 2, 10)) <= 20  # of 45 sets of two


def log_of(rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    gold = rng.integers(0, 3, rows)
    return pl.DataFrame(
        {
            "a": [["x", "y", None][place] for place in rng.integers(0, 3, rows)],
            "b": rng.integers(0, 5, rows),
            "c": rng.integers(0, 60, rows).astype(str),
            "age": rng.integers(18, 90, rows),
            "gold": gold,
            "pred": np.where(rng.random(rows) < 0.8, gold, rng.integers(0, 3, rows)),
            "w": rng.integers(1, 4, rows),
        }
    )


@pytest.mark.parametrize("in_passes", [False, True])
@pytest.mark.parametrize("are_kept", [False, True])
def test_counts_are_those_of_each_slice(monkeypatch, in_passes, are_kept):
    if in_passes:
        monkeypatch.setattr(blocks_module, "_MOST", 40)
        monkeypatch.setattr(blocks_module, "_QUICK", 30)
    if not are_kept:
        monkeypatch.setattr(blocks_module, "_KEPT", 0)
    log = log_of(900)
    every = kept(coded(cut(log.mcc(weight="w"), KEYS, answers=()), bins=4, least=20))
    looked = looked_at(Sought(every, registry.one("mcc"), None, 3, 20), lambda _: 0.0)
    keys = every.keys
    codes = every.log.frame.with_columns(pl.col("^key:.*$").to_physical()).collect()
    rows = codes.rows(named=True)
    columns = [key.column for key in keys.values()]
    found = {
        tuple(row[column] for column in columns): row["n"] for row in looked.slices.rows(named=True)
    }
    assert len(found) == looked.slices.height
    ranges = [
        [None, *((one["first"], one["last"]) for one in key.values.rows(named=True))]
        for key in keys.values()
    ]
    sums = Counter()
    for row in rows:
        places = [
            [
                place - 1
                for place, span in enumerate(spans)
                if span is None or (row[column] is not None and span[0] <= row[column] <= span[1])
            ]
            for column, spans in zip(columns, ranges, strict=True)
        ]
        for slice_ in itertools.product(*places):
            if 1 <= sum(place >= 0 for place in slice_) <= 3:
                sums[tuple(None if place < 0 else place for place in slice_)] += row["weight"]
    large = {slice_: n for slice_, n in sums.items() if n >= 20}
    distinct = {
        slice_: n
        for slice_, n in large.items()
        if sum(place is not None for place in slice_) == 1
        or not any(
            large[tuple(None if one == at else place for one, place in enumerate(slice_))] == n
            for at, place_ in enumerate(slice_)
            if place_ is not None
        )
    }
    assert found == distinct
    assert looked.n_small == len(sums) - len(large) + sum(key.n_small for key in keys.values())

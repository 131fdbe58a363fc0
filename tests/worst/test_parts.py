"""What each key of a slice adds: compare with all orders of the keys, scored by `score`."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from support import in_turn

KEYS = ("a", "b", "c")


def log_of(seed: int, rows: int = 4000) -> pl.DataFrame:
    """A log in which a = 1, b = 1 and c = 1 each add misses, and more where they meet."""
    rng = np.random.default_rng(seed)
    keys = {name: rng.integers(0, 3, rows) for name in KEYS}
    a, b, c = (values == 1 for values in keys.values())
    misses = 0.05 + 0.1 * a + 0.05 * b + 0.5 * (a & b) * c
    gold = rng.integers(0, 3, rows)
    pred = np.where(rng.random(rows) < misses, (gold + rng.integers(1, 3, rows)) % 3, gold)
    return pl.DataFrame({**keys, "gold": gold, "pred": pred})


def added(log: pl.DataFrame, slice_: dict, metric: str) -> dict[str, float]:
    """The mean over all orders of the keys, by filters alone."""
    found = dict.fromkeys(slice_, 0.0)
    orders = [*itertools.permutations(slice_)]
    for order in orders:
        rows = log
        for key in order:
            before = rows.mcc.score(metrics=metric)[metric].item()
            rows = rows.filter(pl.col(key) == slice_[key])
            after = rows.mcc.score(metrics=metric)[metric].item()
            found[key] += (after - before) / len(orders)
    return found


@in_turn(1, metric=["mcc", "f1_macro"], **{"depth, seed": [(2, 0), (3, 1), (3, 2)]})
def test_what_each_key_adds(depth, seed, metric):
    log = log_of(seed)
    answer = log.mcc.worst(*KEYS, depth=depth, metric=metric, bins=None)
    crossed = [row for row in answer.rows(named=True) if "," in row["keys"]]
    assert max(len(row["keys"].split(", ")) for row in crossed) == depth
    overall = log.mcc.score(metrics=metric)[metric].item()
    for row in crossed:
        slice_ = {key: row[key] for key in row["keys"].split(", ")}
        expected = added(log, slice_, metric)
        assert [part["key"] for part in row["parts"]] == [*slice_]
        for part in row["parts"]:
            key = part["key"]
            alone = log.filter(pl.col(key) == slice_[key])
            assert part["slice"] == f"{key} = {slice_[key]}"
            assert part["n"] == alone.height
            assert part[metric] == pytest.approx(alone.mcc.score(metrics=metric)[metric].item())
            assert part["adds"] == pytest.approx(expected[key], rel=1e-9)
        total = sum(part["adds"] for part in row["parts"])
        assert total == pytest.approx(row[metric] - overall, rel=1e-9)


def test_a_slice_of_one_key_has_no_parts():
    answer = log_of(0).mcc.worst(*KEYS, depth=1, bins=None)
    assert answer["verdict"].to_list() == ["listed"] * answer.height != []
    assert answer["parts"].null_count() == answer.height


def test_a_rate_that_should_be_small_adds_what_makes_it_larger():
    log = log_of(1).with_columns(pl.col("gold", "pred") == 0)
    answer = log.mcc.worst(*KEYS, depth=2, metric="fnr", bins=None)
    overall = log.mcc.score(metrics="fnr")["fnr"].item()
    for row in answer.rows(named=True):
        if row["parts"] is not None:
            total = sum(part["adds"] for part in row["parts"])
            assert total == pytest.approx(row["fnr"] - overall, rel=1e-9) > 0


def test_a_coarser_slice_that_weights_make_too_small_has_no_score():
    """One row of a = 1 has most of its weight, so all of a = 1 counts as few rows."""
    log = log_of(1).with_row_index()
    heavy = log.filter(pl.col("a") == 1, pl.col("b") == 0)["index"][0]
    log = log.with_columns(w=pl.when(pl.col("index") == heavy).then(80.0).otherwise(1.0))
    answer = log.mcc(sample_weight="w").worst("a", "b", min_n=400, bins=None, verdicts=True)
    parts = answer.filter(keys="a, b", a=1, b=1)["parts"].item().to_list()
    assert [(part["key"], part["n"] is None, part["adds"]) for part in parts] == [
        ("a", True, None),
        ("b", False, None),
    ]


def test_the_nearest_slice_has_parts():
    log = log_of(3).with_columns(pred=pl.col("gold"))
    log = log.with_columns(pred=pl.when(pl.int_range(pl.len()) % 9 > 0).then("pred").otherwise(0))
    row, *_ = log.mcc.worst("a", "b", bins=None, min_n=400, verdicts=True).rows(named=True)
    assert row["verdict"] == "not behind"
    total = sum(part["adds"] for part in row["parts"] or [])
    assert (row["keys"], total) == (
        "a, b",
        pytest.approx(row["mcc"] - log.mcc.score()["mcc"].item()),
    )

"""Every set of keys is counted once, with the counts of a plain group_by."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import polars as pl
import pytest
from support import first, in_turn

from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._metrics import registry
from polars_mcc._worst import column_codes, slice_counts
from polars_mcc._worst.compared_slices import compared_slices
from polars_mcc._worst.slice_scores import ModelSearch, SearchSettings

KEYS = ["a", "b", "c", "age"]


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
            "w": (w := rng.integers(1, 4, rows)),
            "large": w * 10**15 + rng.integers(0, 9, rows),
        }
    )


WAYS = {
    "tables": {},
    "grouped": {(slice_counts, "_CELLS_OF_TABLE"): 40},
    "in several passes": {(slice_counts, "_CELLS_AT_ONCE"): 20_000, (column_codes, "_STEP"): 7},
}


@in_turn(weight=[None, "w", "large"], way=WAYS)
def test_counts_are_those_of_each_slice(monkeypatch, way, weight):
    for place, value in WAYS[way].items():
        monkeypatch.setattr(*place, value)
    least = 9 * (10**15 if weight == "large" else 1)
    log = log_of(400)
    every = column_codes.coded_log(
        cut(sides_of(log.mcc(weight=weight)), KEYS, taken=()), bins=4, least=least
    )
    settings = SearchSettings(
        metric=registry.find_metric("mcc"),
        positive=None,
        depth=3,
        min_n=least,
        max_share=1,
        bins=4,
        top=None,
        rank="loss",
        ci=0.95,
        correction="bh",
        verdicts=True,
        long=False,
        to="rest",
    )
    looked = compared_slices(ModelSearch.of(settings, every, "pred"))
    keys = every.keys
    columns = [key.column for key in keys.values()]
    sizes = {key.column: key.size for key in keys.values()}
    weights = np.ones(400, int) if weight is None else every.weights.n
    rows = [
        {
            "weight": int(weights[at]),
            **{
                name: int(every.rows[name][at]) if every.rows[name][at] != size else None
                for name, size in sizes.items()
            },
        }
        for at in range(400)
    ]
    [kept] = np.nonzero(looked.is_distinct)
    places = [
        tuple(None if place < 0 else place for place in row) for row in looked.places(kept).tolist()
    ]
    found = dict(zip(places, looked.n[kept].tolist(), strict=True))
    assert len(found) == len(kept) > 50
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
    large = {slice_: n for slice_, n in sums.items() if n >= least}
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


@pytest.mark.parametrize("most", first(1, [2**22, 1]), ids=["tables", "grouped"])
def test_large_weights_lose_no_row(monkeypatch, most):
    """One row weighs 2^61, the others 1: floats would lose all of these."""
    monkeypatch.setattr(slice_counts, "_CELLS_OF_TABLE", most)
    log = log_of(400).with_columns(
        w=pl.when(pl.int_range(400) == 7).then(2**61).otherwise(1), other="pred"
    )
    found = log.mcc(weight="w").worst("b", "c", min_n=1, verdicts=True, bins=None)
    overall = log.mcc(weight="w").score()["mcc"].item()
    for place, row in enumerate(found.iter_rows(named=True)):
        is_in = pl.all_horizontal(
            pl.lit(value=True), *(pl.col(k) == row[k] for k in ("b", "c") if row[k] is not None)
        )
        assert row["n"] == log.filter(is_in)["w"].sum()
        if place % 10 == 0:
            rest = log.filter(~is_in).mcc(weight="w").score()["mcc"].item()
            assert row["loss"] == pytest.approx(rest - overall)
    assert found.height > 50

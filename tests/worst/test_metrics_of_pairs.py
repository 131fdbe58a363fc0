"""`worst` with metrics of pairs: costs by label, weighted kappa."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support import LABELS, in_turn, log_of

from polars_mcc import PredictionLog, metric
from polars_mcc._worst import slice_counts


def log_in(dtype: pl.DataType, rows: int) -> pl.DataFrame:
    rng, k = np.random.default_rng(1), 2 if dtype == pl.Boolean else 4
    gold = rng.integers(0, k, rows)
    pred = np.clip(gold + rng.integers(-1, 2, rows), 0, k - 1)
    keys = ["xyz"[place % 3] for place in range(rows)]
    return log_of([*zip(keys, gold.tolist(), pred.tolist(), strict=True)], dtype)


@in_turn(
    way=["tables", "groups"],
    dtype=[pl.Int8(), pl.Boolean(), pl.Enum(LABELS[pl.String()])],
    options=[{}, {"weight": "w"}, {"sample_weight": "f"}, {"nulls": "reweight"}],
    asked=["cost by pair", "kappa(quadratic)", "kappa(linear)"],
)
def test_a_search_scores_slices_and_rests_as_contrast_does(way, dtype, options, asked, monkeypatch):
    if way == "groups":
        monkeypatch.setattr(slice_counts, "_CELLS_OF_TABLE", 20)
    frame = log_in(dtype, 900)
    i = pl.int_range(pl.len())
    frame = frame.with_columns(other=i % 4, w=i % 3, f=0.1 + i % 7 / 3)
    if "nulls" in options:
        frame = frame.with_columns(gold=pl.when(i % 5 > 0).then("gold"))
    names = LABELS[dtype]
    costs = {(names[0], names[1]): 5, (names[1], names[0]): 1}
    chosen = metric.cost(costs) if asked == "cost by pair" else asked
    log = PredictionLog(frame, **options)
    found = log.worst("key", "other", metric=chosen, depth=2, verdicts=True, bins=None)
    assert found.height >= 14
    keys = {"key": ["key"], "other": ["other"], "key, other": ["key", "other"]}
    contrasts = {said: log.contrast(*of_set, metrics=chosen) for said, of_set in keys.items()}
    for row in found.to_dicts():
        of_set = keys[row["keys"]]
        here = [pl.col(key).cast(pl.String) == str(row[key]) for key in of_set]
        [known] = contrasts[row["keys"]].filter(*here).to_dicts()
        for name in ("score", "reference", "n"):
            assert row[name] == pytest.approx(known[name], rel=1e-9)


@in_turn(
    to=["rest", "total", "best", "each"],
    options=[{}, {"weight": "w"}, {"sample_weight": "f"}],
    weights=["linear", "quadratic"],
)
def test_weighted_kappa_of_two_classes_is_kappa_in_all_comparisons(to, options, weights):
    """Its variance is at the rates of all slices too: small slices with few errors are no proof."""
    frame = log_in(pl.Boolean(), 400)
    i = pl.int_range(pl.len())
    frame = frame.with_columns(part=i % 23, w=i % 3, f=0.1 + i % 7 / 3)
    log = PredictionLog(frame, **options)
    asked = (f"kappa({weights})", "kappa")
    weighted, plain = (log.contrast("part", to=to, metrics=name) for name in asked)
    assert {*weighted["metric"]} == {f"kappa_{weights}"}
    assert_frame_equal(weighted.drop("metric"), plain.drop("metric"))

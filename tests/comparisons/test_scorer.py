"""Pairs that a search counts give the same numbers as pairs from a frame."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from support import in_turn

from polars_mcc._counts.pair_counts import pairs
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._intervals.interval_options import IntervalOptions
from polars_mcc._intervals.scores_of_arrays import Scorer, estimate
from polars_mcc._intervals.smoothed_tables import Pools
from polars_mcc._metrics import registry
from polars_mcc._worst.column_codes import coded_log
from polars_mcc._worst.slice_counts import SliceCounter, pairs_of

METRICS = ["mcc", "accuracy", "f1_macro", "kappa", "balanced_accuracy", "roc_auc", "brier"]


def log_of(seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    n = 900
    gold = rng.integers(0, 3, n)
    return pl.DataFrame(
        {
            "key": rng.integers(0, 4, n).astype(str),
            "gold": gold,
            "pred": np.where(rng.random(n) < 0.7, gold, rng.integers(0, 3, n)),
            "w": rng.random(n) + 0.5,
        }
    )


@in_turn(4, name=METRICS, weight=[None, "weight", "sample_weight"])
def test_arrays_of_codes_have_the_limits_of_frames(name, weight):
    metric = registry.find_metric(name)
    log = log_of(METRICS.index(name))
    roles = {} if weight is None else {weight: "w"}
    if metric.is_of_scores:
        log = log.with_columns(pl.col("gold") == 1, p=(pl.col("pred") / 3 + 0.1).round(2))
        roles |= {"score": "p"}
    described = log.mcc(**roles)
    sliced = cut(sides_of(described, metric.role), ["key"], taken=())
    cells = pairs(sliced).collect()
    positive = registry.positive_class([metric], described.roles.positive, sliced.label_dtype)
    asked = IntervalOptions(0.95, metrics=[metric], positive=positive, is_compared=True)
    of_frame = estimate(sliced, cells, asked, within=[])
    by = of_frame.scores
    expected = of_frame.scorer.given_labels(of_frame.cells.pairs, of_frame.pools)
    every = coded_log(sliced, bins=None, least=1)
    counter = SliceCounter.of(every, sliced.models[0], 1)
    [batch] = counter.batches(1)
    order = every.keys["key"].rank[batch.sets[0].places[0]].argsort()
    scorer = Scorer([metric], every.labels, positive, 0.0, sliced.is_frequency, 2.0**-40)
    four = pairs_of(batch.pairs, np.arange(4))
    pools = Pools(np.zeros(4, int), counter.whole())
    [found] = scorer.measured(four, asked, pools).values()
    given = scorer.given_labels(four, pools)
    for column, values in {
        name: found.score,
        f"{name}_low": found.interval.low,
        f"{name}_high": found.interval.high,
        f"{name}_se": found.interval.se,
    }.items():
        assert values[order] == pytest.approx(by[column].to_numpy(), rel=1e-10)
    for values, of_expected in zip(given, expected, strict=True):
        assert values[order] == pytest.approx(of_expected, rel=1e-12)

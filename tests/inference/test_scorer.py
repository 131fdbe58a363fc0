"""Two ways to the same numbers: arrays of codes in a search, and frames of every other question."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from support import in_turn

from polars_mcc._counts.cut import cut
from polars_mcc._counts.pairs import pairs
from polars_mcc._inference.estimate import estimate
from polars_mcc._inference.given_labels import given_labels
from polars_mcc._inference.options import IntervalOptions
from polars_mcc._inference.pool import Pool
from polars_mcc._inference.scorer import Scorer
from polars_mcc._scores import registry
from polars_mcc._search.codes import coded
from polars_mcc._search.counting import Counting

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
    metric = registry.one(name)
    log = log_of(METRICS.index(name))
    roles = {} if weight is None else {weight: "w"}
    if metric.is_of_scores:
        log = log.with_columns(pl.col("gold") == 1, p=(pl.col("pred") / 3 + 0.1).round(2))
        roles |= {"score": "p"}
    described = log.mcc(**roles)
    sliced = cut(described, ["key"], taken=(), role=metric.role)
    cells = pairs(sliced).collect()
    positive = registry.positive_class([metric], described.meaning.positive, sliced.label_dtype)
    asked = IntervalOptions(0.95, metrics=[metric], positive=positive, is_compared=True)
    by = estimate(sliced, cells, asked).scores.sort("key:key")
    expected = given_labels(sliced, cells, Pool.of(sliced.whole, cells), asked).sort("key:key")
    every = coded(sliced, bins=None, least=1)
    counting = Counting(every, sliced.models[0], 1)
    [batch] = counting.batches(1)
    order = every.keys["key"].rank[batch.sets[0].places[0]].argsort()
    scorer = Scorer(metric, every.labels, positive, 0.0, sliced.is_frequency, 2.0**-40)
    four = batch.counts.pairs(np.arange(4))
    found = scorer.measured(four, 0.95)
    given = scorer.given_labels(four, np.zeros(4, int), counting.whole().pairs(np.zeros(1, int)))
    for column, values in {
        name: found.score,
        f"{name}_low": found.interval.low,
        f"{name}_high": found.interval.high,
        f"{name}_se": found.interval.se,
    }.items():
        assert values[order] == pytest.approx(by[column].to_numpy(), rel=1e-10)
    for column, values in zip(("expected", "expected_se", "expected_step"), given, strict=True):
        assert values[order] == pytest.approx(expected[column].to_numpy(), rel=1e-9)

"""`worst` for metrics of scores: the planted slice, and scores that scikit-learn gives too."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score
from support import first, in_turn

from polars_mcc._worst import compared_slices

PEERS = {
    "roc_auc": roc_auc_score,
    "average_precision": average_precision_score,
    "brier": brier_score_loss,
    "log_loss": log_loss,
}


@pytest.fixture(scope="module")
def log() -> pl.DataFrame:
    """Slices of four countries and two devices; scores tell nothing for FR on a phone."""
    rng = np.random.default_rng(1)
    n = 6000
    country, device = rng.choice(["DE", "FR", "IT", "US"], n), rng.choice(["pc", "phone"], n)
    is_bad = (country == "FR") & (device == "phone")
    gold = rng.random(n) < 0.4
    logit = 1.8 * np.where(is_bad, 0, gold) + rng.normal(size=n) - 1.2
    score = (1 / (1 + np.exp(-logit))).round(2)
    return pl.DataFrame(
        {"country": country, "device": device, "gold": gold, "p": score, "user": np.arange(n) // 2}
    )


@in_turn(metric=PEERS, to=["rest", "expected"])
def test_the_planted_slice_is_listed(log, metric, to):
    found = log.mcc(score="p").worst("country", "device", metric=metric, to=to)
    first = found.row(0, named=True)
    assert first["slice"] == "country = FR and device = phone"
    assert first["verdict"] == "listed"
    is_in = (pl.col("country") == "FR") & (pl.col("device") == "phone")
    for column, rows in (("score", log.filter(is_in)), ("reference", log.filter(~is_in))):
        want = PEERS[metric](rows["gold"].to_numpy(), rows["p"].to_numpy())
        assert first[column] == pytest.approx(want, rel=1e-12)
    assert (first["confusion"], first["confused_gold"]) == (None, None)
    assert first["n"] == log.filter(is_in).height


def test_rests_are_the_same_a_few_at_a_time(log, monkeypatch):
    whole = log.mcc(score="p").worst("country", "device", metric="roc_auc", verdicts=True)
    monkeypatch.setattr(compared_slices, "_LABELS_AT_ONCE", 500)
    few = log.mcc(score="p").worst("country", "device", metric="roc_auc", verdicts=True)
    assert_frame_equal(few, whole, check_exact=True)


@pytest.mark.parametrize("metric", first(2, PEERS))
def test_every_slice_and_its_rest_have_the_scores_of_scikit_learn(log, metric):
    found = log.mcc(score="p").worst("country", "device", metric=metric, verdicts=True)
    assert found.height == 4 + 2 + 8
    for row in found.iter_rows(named=True):
        is_in = pl.all_horizontal(
            pl.lit(value=True),
            *(pl.col(key) == row[key] for key in ("country", "device") if row[key] is not None),
        )
        for column, rows in (("score", log.filter(is_in)), ("reference", log.filter(~is_in))):
            want = PEERS[metric](rows["gold"].to_numpy(), rows["p"].to_numpy())
            assert row[column] == pytest.approx(want, rel=1e-9)


def test_counts_and_lazy_logs_give_the_same(log):
    counts = log.group_by("country", "device", "gold", "p").agg(n=pl.len())
    whole = log.mcc(score="p").worst("country", "device", metric="roc_auc")
    of_counts = counts.mcc(score="p", weight="n").worst("country", "device", metric="roc_auc")
    assert_frame_equal(of_counts, whole, rel_tol=1e-9)
    lazy = log.lazy().mcc(score="p").worst("country", "device", metric="roc_auc")
    assert_frame_equal(lazy.collect(), whole, rel_tol=1e-12)


def test_clusters_and_several_models(log):
    both = log.with_columns(q=pl.col("p").shuffle(seed=0))
    found = both.mcc(score=["p", "q"], cluster="user").worst("country", "device", metric="roc_auc")
    of_one = log.mcc(score="p", cluster="user").worst("country", "device", metric="roc_auc")
    assert_frame_equal(found.filter(model="p").drop("model"), of_one, rel_tol=1e-12)


def test_equal_slices_are_not_listed():
    rng = np.random.default_rng(8)
    gold = rng.random(4000) < 0.3
    log = pl.DataFrame(
        {
            "gold": gold,
            "p": (1 / (1 + np.exp(0.5 - 1.5 * gold - rng.normal(size=4000)))).round(2),
            **{f"key{at}": rng.integers(0, 5, 4000).astype(str) for at in range(3)},
        }
    )
    for metric in PEERS:
        found = log.mcc(score="p").worst("key0", "key1", "key2", metric=metric)
        assert found.is_empty()

"""Peers named in the registry agree with our metrics; the page lists where they differ."""

from __future__ import annotations

import conformance
import numpy as np
import polars as pl
import pytest
import sklearn.metrics
from sklearn.metrics import multilabel_confusion_matrix
from support import ask, first, some_slow

import polars_mcc

BINARY = set(polars_mcc.metrics().filter(pl.col("from") == "positive")["metric"])


@pytest.mark.slow
def test_peers_agree_where_nothing_is_undefined():
    """PyCM has no ratio where the rate below is 0."""
    found = list(conformance.differences(conformance.REGULAR))
    assert {difference.metric for difference in found} == {"lr_pos", "dor"}
    assert {(difference.ours, difference.theirs) for difference in found} == {(np.inf, "None")}


@pytest.mark.slow
def test_every_peer_that_is_named_is_asked():
    """An unknown function name would raise; a peer that is never called would prove nothing."""
    asked = {
        peer
        for table in conformance.REGULAR.values()
        for metric in polars_mcc.metrics()["metric"]
        for peer in conformance.peers_of(metric)
        if conformance.theirs(peer, table, is_binary=metric in BINARY) is not None
    }
    named = {peer for peers in polars_mcc.metrics()["peers"] if peers for peer in peers.split("; ")}
    assert asked == named
    assert {peer.split(":")[0] for peer in named} == {"scikit-learn", "PyCM", "SciPy"}


@pytest.mark.parametrize("where", first(4, [*conformance.REGULAR, *conformance.DEGENERATE]))
def test_rows_score_as_their_counts(where):
    table = {**conformance.REGULAR, **conformance.DEGENERATE}[where]
    gold, pred = conformance.rows_of(table)
    names = polars_mcc.metrics()["metric"].to_list()
    log = pl.DataFrame({"gold": gold, "pred": pred, "score": pred / conformance.HIGHEST})
    roles = {"pred": "pred", "score": "score", "positive": conformance.POSITIVE}
    [row] = log.mcc(**roles).score(metrics=names).to_dicts()
    expected = conformance.ours(table)
    for name in names:
        found, of_counts = (float(one[name] or 0) for one in (row, expected))
        assert found == pytest.approx(of_counts, rel=1e-15, abs=1e-16), name
        assert (row[name] is None) is (expected[name] is None), name


LIKE_OTHERS = ("two classes, worse than chance", "three classes", "all right")


@pytest.mark.parametrize("where", some_slow(conformance.REGULAR, *LIKE_OTHERS))
def test_weighted_against_scikit_learn(where):
    """All metrics that take weights in scikit-learn, with a random weight per row."""
    gold, pred = conformance.rows_of(conformance.REGULAR[where])
    weights = np.random.default_rng(7).exponential(size=len(gold))
    score = pred / conformance.HIGHEST
    log = pl.DataFrame({"gold": gold, "pred": pred, "score": score, "w": weights})
    names, asked = polars_mcc.metrics()["metric"].to_list(), 0
    described = {"pred": "pred", "score": "score", "positive": conformance.POSITIVE}
    found = [
        ask(log, "score", metrics=names, **described, **{role: "w"})
        for role in ("weight", "sample_weight")
    ]
    for metric in names:
        for peer in conformance.peers_of(metric):
            library, function = peer.split(": ")
            if library != "scikit-learn" or function == "mutual_info_score":
                continue
            name, options = conformance.called(function)
            if options and name not in conformance.SCORERS:
                options |= {"zero_division": 0.0}
            sides, positive = (gold, pred), conformance.POSITIVE
            if metric in BINARY:
                sides = (gold == positive, pred == positive)
            if name in conformance.SCORERS:
                sides = (gold == positive, score)
                options |= {"labels": [False, True]} if name == "log_loss" else {}
            expected = getattr(sklearn.metrics, name)(*sides, sample_weight=weights, **options)
            for answer in found:
                score_of = answer[metric].item()
                assert score_of == pytest.approx(expected, rel=1e-12, abs=1e-15), metric
            asked += 1
    assert asked > 15


def test_the_confusion_matrix_of_each_class():
    for table in conformance.REGULAR.values():
        gold, pred = conformance.rows_of(table)
        classes = pl.DataFrame({"gold": gold, "pred": pred}).mcc.classes()
        found = classes.select(
            tp="hits",
            fp=pl.col("predicted") - pl.col("hits"),
            fn=pl.col("support") - pl.col("hits"),
        ).rows()
        expected = multilabel_confusion_matrix(gold, pred)
        assert found == [(m[1, 1], m[0, 1], m[1, 0]) for m in expected]


def test_the_page_has_the_tables_that_are_made():
    """If this fails, run `python tests/conformance.py --write`."""
    assert conformance.PAGE.read_text(encoding="utf-8") == conformance.page()

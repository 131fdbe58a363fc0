"""`classes`: the scores of each label, one-vs-rest."""

from __future__ import annotations

import oracles
import polars as pl
import pytest
from hypothesis import given
from sklearn.metrics import matthews_corrcoef, precision_recall_fscore_support
from support import coded, log_of, rows


@given(rows=rows)
def test_classes_against_scikit_learn(rows, run):
    answer = run(log_of(rows), lambda frame: frame.mcc.classes("key"))
    tables = oracles.by_slice(coded(rows, pl.String()))
    found = {(row["key"], row["label"]): row for row in answer.iter_rows(named=True)}
    assert len(found) == answer.height
    expected = set()
    for key, table in tables.items():
        if not table:
            continue
        gold, pred = zip(*oracles.rows_of(table), strict=True)
        labels = oracles.labels_of(table)
        expected |= {(key, label) for label in labels}
        metrics = precision_recall_fscore_support(gold, pred, labels=labels, zero_division=0.0)
        for label, precision, recall, f1, support in zip(labels, *metrics, strict=True):
            row = found[key, label]
            assert row["support"] == support
            assert row["predicted"] == pred.count(label)
            assert row["hits"] == table[label, label]
            assert row["precision"] == pytest.approx(precision, rel=1e-15)
            assert row["recall"] == (pytest.approx(recall, rel=1e-15) if support else None)
            assert row["f1"] == pytest.approx(f1, rel=1e-15)
            one, rest = ([x == label for x in side] for side in (gold, pred))
            assert row["mcc"] == pytest.approx(matthews_corrcoef(one, rest), abs=1e-14)
            tp, fp, fn, tn = oracles.two_by_two(table, label)
            has_rest = tp + fn < len(gold)
            specificity = pytest.approx(tn / (tn + fp), rel=1e-15) if has_rest else None
            assert row["specificity"] == specificity
            informedness = tp / (tp + fn) - fp / (fp + tn) if tp + fn > 0 and has_rest else 0
            assert row["informedness"] == pytest.approx(informedness, abs=1e-15)
            has_both = 0 < tp + fp < len(gold)
            markedness = tp / (tp + fp) - fn / (fn + tn) if has_both else 0
            assert row["markedness"] == pytest.approx(markedness, abs=1e-15)
            assert row["n"] == len(gold)
            assert row["n"] + row["n_null"] == sum(1 for row in rows if row[0] == key)
    assert set(found) == expected


def test_classes_are_sorted_and_typed(run):
    log = log_of([("y", 1, 0), ("x", 2, 2), ("x", 0, 2)])
    answer = run(log, lambda frame: frame.mcc.classes("key"))
    assert answer.select("key", "label").rows() == [
        ("x", "ant"),
        ("x", "cat"),
        ("y", "ant"),
        ("y", "bee"),
    ]
    counts = ["support", "predicted", "hits", "n", "n_null"]
    assert set(answer.select(counts).dtypes) == {pl.Int64}


def test_an_undefined_score_is_what_was_asked_for(run):
    log = log_of([("x", 0, 1)])
    answer = run(log, lambda frame: frame.mcc(zero_division=None).classes("key"))
    assert answer.select("precision", "recall", "f1", "mcc").rows() == [
        (None, 0.0, 0.0, None),
        (0.0, None, 0.0, None),
    ]


def test_classes_of_several_models_and_of_counts(run):
    log = log_of([("x", 0, 0), ("x", 1, 0), ("x", 1, 1)]).with_columns(other=pl.col("gold"))
    both = run(log, lambda frame: frame.mcc(pred=["pred", "other"]).classes("key"))
    assert both["model"].to_list() == ["pred", "pred", "other", "other"]
    assert both.filter(model="pred").drop("model").equals(log.mcc.classes("key"))
    counts = log.mcc.counts("key")
    assert counts.mcc(weight="n").classes("key").equals(log.mcc.classes("key"))

"""`classes`: the scores of each label, one-vs-rest."""

from __future__ import annotations

import math
from fractions import Fraction

import oracles
import polars as pl
import pytest
from hypothesis import given
from sklearn.metrics import matthews_corrcoef, precision_recall_fscore_support
from support import coded, in_turn, log_of, rows


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
            rates = {"npv": (tn, fn), "fpr": (fp, tn), "fnr": (fn, tp), "jaccard": (tp, fp + fn)}
            at_0 = {"npv": 0.0, "fpr": None, "fnr": None}
            for name, (part, others) in rates.items():
                is_known = part + others > 0
                rate = pytest.approx(part / (part + others), rel=1e-15) if is_known else at_0[name]
                assert row[name] == rate, name
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


@pytest.mark.parametrize(
    ("hits", "missed", "wrong", "rest"),
    [
        (10**15 - 1, 1, 0, 7),
        (10**15 - 1, 1, 1, 10**15 - 1),
        (999, 1, 10**15, 1),
        (1, 10**15 - 1, 10**15 - 1, 1),
        (10**15, 31, 10**7, 10**12),
        (123_456_789, 10**15, 5, 10**15),
        (40, 9, 5, 46),
    ],
)
def test_standard_errors_of_rates_are_those_of_proportions(hits, missed, wrong, rest):
    """√(xy / (x + y)³) of a rate x / (x + y), also with one error in 10¹⁵ rows."""
    pairs = {"gold": "aabb", "pred": "abab", "n": [hits, missed, wrong, rest]}
    log = pl.DataFrame({name: [*values] for name, values in pairs.items()})
    found = log.mcc(weight="n").classes(ci=0.95).filter(label="a").row(0, named=True)
    rates = {
        "recall": (hits, missed),
        "precision": (hits, wrong),
        "specificity": (rest, wrong),
        "npv": (rest, missed),
        "fpr": (wrong, rest),
        "fnr": (missed, hits),
        "jaccard": (hits, missed + wrong),
    }
    for name, (x, y) in rates.items():
        se = math.sqrt(Fraction(x * y, (x + y) ** 3))
        # At an end of its range, a rate has no standard error.
        assert found[f"{name}_se"] == (pytest.approx(se, rel=1e-12) if se else None), name


@in_turn(rest=[0.0, 0.001, 0.2], about=[{}, {"cluster": "row"}])
def test_standard_errors_hold_if_nearly_all_weight_is_hits(rest, about):
    """Few rows without the label decide the score: their squares are no difference of large sums.

    Markedness is a/(a + c) + d/(d + b) - 1. Both parts are proportions, of other rows.
    """
    a, b, c, d = ([10_000.0, 0.3], [0.1], [0.7], [rest])

    def variance(x, y):  # of Σx / (Σx + Σy), of rows with these weights
        one, other, both = sum(x), sum(y), (sum(x) + sum(y)) ** 2
        squares = sum(w * w for w in x) * other**2 + sum(w * w for w in y) * one**2
        return squares / both**2

    rows = [("a", "a", w) for w in a] + [("a", "b", *b), ("b", "a", *c), ("b", "b", *d)]
    log = pl.DataFrame(rows, schema=["gold", "pred", "w"], orient="row").with_row_index("row")
    found = log.mcc(sample_weight="w", **about).classes(ci=0.95).filter(label="a")
    expected = math.sqrt(variance(a, c) + variance(d, b))
    assert found["markedness_se"].item() == pytest.approx(expected, rel=1e-6)

"""`confusion`: the confusion matrix, its cells, and the costliest confusions."""

from __future__ import annotations

import math

import numpy as np
import oracles
import polars as pl
import pytest
from hypothesis import example, given
from sklearn.metrics import confusion_matrix
from support import LABELS, NAMES, coded, log_of, rows

import polars_mcc


@pytest.mark.parametrize("normalize", [None, "gold", "pred", "all"])
@given(rows=rows)
def test_each_slice_against_scikit_learn(rows, normalize, run):
    answer = run(
        log_of(rows),
        lambda f: f.mcc.confusion("key", labels=NAMES, normalize=normalize),
    )
    tables = oracles.by_slice(coded(rows, pl.String()))
    assert answer.height == len(tables) * len(NAMES)
    for (key,), matrix in answer.group_by("key"):
        assert matrix["gold"].to_list() == NAMES
        cells = matrix.select(NAMES).to_numpy()
        scored = sum(tables[key].values())
        assert set(matrix["n_null"]) == {sum(1 for row in rows if row[0] == key) - scored}
        if scored == 0:
            assert not cells.any()
            continue
        gold, pred = zip(*oracles.rows_of(tables[key]), strict=True)
        how = {None: None, "gold": "true", "pred": "pred", "all": "all"}[normalize]
        expected = confusion_matrix(gold, pred, labels=NAMES, normalize=how)
        np.testing.assert_allclose(cells, expected, rtol=1e-15)
    assert_is_long_form(answer, log_of(rows), normalize, run)


def assert_is_long_form(wide, log, normalize, run):
    """The long form has the cells of the matrix. Without `labels`, it leaves out cells of 0."""
    value, names = "n" if normalize is None else "share", pl.Enum(NAMES)
    ask = {"normalize": normalize, "long": True}
    square = run(log, lambda f: f.mcc.confusion("key", labels=NAMES, **ask))
    assert square.columns == ["key", "gold", "pred", value, "n_null"]
    unpivoted = wide.unpivot(NAMES, index=["key", "gold", "n_null"], variable_name="pred")
    unpivoted = unpivoted.with_columns(pl.col("gold", "pred").cast(names))
    unpivoted = unpivoted.sort("key", "gold", "pred")
    assert square.rows() == unpivoted.select("key", "gold", "pred", "value", "n_null").rows()
    occurring = run(log, lambda f: f.mcc.confusion("key", **ask))
    assert occurring.filter(pl.col(value) > 0).equals(square.filter(pl.col(value) > 0))
    without = occurring.filter(pl.col(value) == 0)
    assert without.select("gold", "pred").rows() == [(None, None)] * without.height
    assert {*occurring["key"]} == {*wide["key"]}, "a slice without scored rows has a row"


def test_the_labels_that_occur_are_found_in_a_dataframe():
    log = pl.DataFrame({"gold": [3, 1, None], "pred": [2, 1, 9]})
    answer = log.mcc.confusion()
    assert answer.columns == ["gold", "1", "2", "3", "9", "n_null"]
    assert answer.row(2) == (3, 0, 1, 0, 0, 1)


@pytest.mark.parametrize("dtype", [pl.Boolean(), pl.Enum(NAMES)], ids=str)
def test_a_dtype_with_few_labels_needs_no_list(run, dtype):
    answer = run(log_of([("x", 0, 1), ("x", 1, 1)], dtype), lambda f: f.mcc.confusion())
    labels = list(dict.fromkeys(map(str, LABELS[dtype])))
    assert answer.columns == ["gold", *labels, "n_null"]
    assert answer[labels[1]].to_list()[:2] == [1, 1]


def test_a_lazy_matrix_needs_its_labels():
    log = log_of([("x", 0, 1)]).lazy()
    with pytest.raises(
        ValueError, match=r"pass labels=\[\.\.\.\], cast the String labels to an En"
    ):
        log.mcc.confusion()


def test_nulls_are_a_row_and_a_column(run):
    log = log_of([("x", 0, None), ("x", None, None), ("x", 1, 1)])
    answer = run(log, lambda f: f.mcc(nulls="label").confusion(labels=["ant", "bee"]))
    assert answer.columns == ["gold", "ant", "bee", "null", "n_null"]
    assert answer.rows() == [("ant", 0, 0, 1, 0), ("bee", 0, 1, 0, 0), (None, 0, 0, 1, 0)]


def test_a_label_that_is_not_listed_is_an_error(run):
    log = log_of([("x", 0, 1)])
    for labels in (["ant"], ["bee"], []):
        with pytest.raises(pl.exceptions.InvalidOperationError, match="is not in labels"):
            run(log, lambda f, labels=labels: f.mcc.confusion(labels=labels))


def test_columns_of_one_name_are_an_error(run):
    log = pl.DataFrame({"key": ["x"], "gold": ["gold"], "pred": ["gold"]})
    with pytest.raises(pl.exceptions.DuplicateError, match="2 columns named 'gold'"):
        run(log, lambda f: f.mcc.confusion("key", labels=["gold"]))


def test_bad_labels(run):
    log = log_of([("x", 0, 1)])
    with pytest.raises(ValueError, match="lists a label twice"):
        run(log, lambda f: f.mcc.confusion(labels=["ant", "ant"]))
    with pytest.raises(
        pl.exceptions.SchemaError, match="do not have the dtype of the columns, String"
    ):
        run(log, lambda f: f.mcc.confusion(labels=[1, 2]))
    with pytest.raises(ValueError, match="normalize must be one of 'gold', 'pred', 'all'"):
        run(log, lambda f: f.mcc.confusion(labels=NAMES, normalize="true"))


def test_models_and_float_weights(run):
    log = pl.DataFrame({"gold": ["u", "v"], "a": ["u", "v"], "b": ["u", "u"], "w": [0.5, 2.0]})
    answer = run(log, lambda f: f.mcc(pred=["b", "a"], weight="w").confusion(labels=["u", "v"]))
    assert answer.rows() == [
        ("b", "u", 0.5, 0.0, 0.0),
        ("b", "v", 2.0, 0.0, 0.0),
        ("a", "u", 0.5, 0.0, 0.0),
        ("a", "v", 0.0, 2.0, 0.0),
    ]


@example(rows=[("x", 0, 0), ("x", 0, 1), ("x", 1, 1), ("x", 1, 1), ("x", 2, 1), ("x", 1, 2)])
@given(rows=rows)
def test_contributions_add_up_and_losses_are_what_correcting_would_gain(rows, run):
    log = log_of(rows)
    answer = run(log, lambda f: f.mcc.confusion("key", top=100))
    assert answer.columns == ["key", "gold", "pred", "n", "contribution", "loss", "n_null"]
    tables = oracles.by_slice(coded(rows, pl.String()))
    confusions = {
        (key, *pair) for key, table in tables.items() for pair in table if len({*pair}) > 1
    }
    assert {row[:3] for row in answer.rows()} == confusions
    for (key,), found in answer.group_by("key"):
        table = tables[key]
        score, s = float(oracles.exact(table)), sum(table.values())
        t, p = oracles.marginals(table)
        spread = math.sqrt(
            (s * s - sum(n * n for n in t.values())) * (s * s - sum(n * n for n in p.values()))
        )
        hits = sum(n * (s - (p[g] + t[g]) / 2) for (g, q), n in table.items() if g == q)
        total = found["contribution"].sum()
        if spread:
            assert total + hits / spread == pytest.approx(score, abs=1e-14)
        else:
            assert total == 0
        assert found["contribution"].is_sorted()
        for row in found.iter_rows(named=True):
            gold, pred = row["gold"], row["pred"]
            assert row["n"] == table[gold, pred]
            right = {**table, (gold, pred): 0}
            right[gold, gold] = table[gold, gold] + table[gold, pred]
            gain = float(oracles.exact(right)) - score
            assert row["loss"] == pytest.approx(gain, abs=1e-14)
            part = -row["n"] * (p[gold] + t[pred]) / 2
            assert row["contribution"] == pytest.approx(part / spread if spread else 0, rel=1e-15)


def test_the_costliest_confusions_of_each_slice(run):
    log = log_of(
        [("x", 0, 1)] * 3 + [("x", 1, 0), ("x", 0, 0), ("y", 1, 1), ("z", 1, 0), ("z", 0, 2)]
    )
    top = run(log, lambda f: f.mcc.confusion("key", top=1, normalize="gold"))
    assert top.select("key", "gold", "pred", "share").rows() == [
        ("x", "ant", "bee", 0.75),
        ("z", "ant", "cat", 1.0),
    ], "ties go to the first label; a slice without confusions has no row"
    whole = run(log, lambda f: f.mcc.confusion(top=2))
    assert whole.select("gold", "pred", "n").rows() == [("ant", "bee", 3), ("bee", "ant", 2)]


def test_the_costliest_by_float_weights_and_models(run):
    log = pl.DataFrame({"gold": ["u", "v", "v"], "a": ["u", "u", "v"], "b": ["v", "v", "v"]})
    log = log.with_columns(w=pl.Series([2.5, 0.5, 1.0]))
    answer = run(log, lambda f: f.mcc(pred=["b", "a"], weight="w", nulls="label").confusion(top=1))
    assert answer.select("model", "gold", "pred", "n").rows() == [
        ("b", "u", "v", 2.5),
        ("a", "v", "u", 0.5),
    ]
    tenfold = (
        log.with_columns(pl.col("w") * 10)
        .mcc(pred="a", weight="w")
        .confusion(top=1)
        .row(0, named=True)
    )
    plain = answer.row(1, named=True)
    assert tenfold["contribution"] == pytest.approx(plain["contribution"], rel=1e-15)
    assert tenfold["loss"] == pytest.approx(plain["loss"], rel=1e-14)
    assert plain["loss"] == pytest.approx(1 - log.mcc(pred="a", weight="w").score()["mcc"].item())


def test_an_array_as_scikit_learn_has_it():
    log = log_of([("x", 0, 1), ("x", 1, 1), ("y", 2, 0), ("y", 2, None), (None, 1, 0)])
    of_all = polars_mcc.to_numpy(log.mcc.confusion(labels=NAMES))
    scored = log.drop_nulls(["gold", "pred"])
    expected = confusion_matrix(scored["gold"], scored["pred"], labels=NAMES)
    np.testing.assert_array_equal(of_all, expected)
    assert of_all.dtype == np.int64
    of_slices = polars_mcc.to_numpy(log.mcc.confusion("key", labels=NAMES))
    assert of_slices.shape == (3, 6, 6)
    np.testing.assert_array_equal(of_slices.sum(axis=0), expected)
    shares = polars_mcc.to_numpy(log.mcc.confusion(labels=NAMES, normalize="all"))
    assert shares.sum() == pytest.approx(1)
    empty = log_of([]).mcc.confusion("key", labels=NAMES)
    assert polars_mcc.to_numpy(empty).shape == (0, 6, 6)


def test_no_array_of_other_frames():
    log = log_of([("x", 0, 1)])
    with pytest.raises(TypeError, match="got LazyFrame: call collect.. first"):
        polars_mcc.to_numpy(log.lazy().mcc.confusion(labels=NAMES))
    for other in (log, log.mcc.confusion(long=True), log.mcc.by()):
        with pytest.raises(ValueError, match="to_numpy takes a wide result of confusion"):
            polars_mcc.to_numpy(other)


def test_what_is_not_scored_is_no_confusion_and_no_unlisted_label(run):
    log = log_of([("x", 0, 0), ("x", 1, None), ("x", None, 2)]).with_columns(w=1)
    unscored = run(log, lambda f: f.mcc.confusion(labels=["ant"]))
    assert unscored.rows() == [("ant", 1, 2)]
    weightless = log_of([("x", 0, 0), ("x", 0, 1), ("x", 1, 0)]).with_columns(
        w=pl.Series([1, 0, 2])
    )
    answer = run(weightless, lambda f: f.mcc(weight="w").confusion(top=5))
    assert answer.select("gold", "pred").rows() == [("bee", "ant")]


def test_bad_top(run):
    log = log_of([("x", 0, 1)])
    for top in (0, 1.5, "all"):
        with pytest.raises(ValueError, match="top must be an integer of at least 1"):
            run(log, lambda f, top=top: f.mcc.confusion(top=top))
    with pytest.raises(ValueError, match="leave labels out"):
        run(log, lambda f: f.mcc.confusion(top=1, labels=NAMES))
    with pytest.raises(pl.exceptions.DuplicateError, match="key 'pred' has the name"):
        run(log.with_columns(q="pred"), lambda f: f.mcc(pred="q").confusion("pred", top=1))
    with pytest.raises(pl.exceptions.InvalidOperationError, match="'ant' is not in labels"):
        run(log, lambda f: f.mcc.confusion(labels=["bee"], long=True))

"""`confusion`: the counts as a matrix."""

from __future__ import annotations

import numpy as np
import oracles
import polars as pl
import pytest
from hypothesis import given
from sklearn.metrics import confusion_matrix
from support import LABELS, NAMES, coded, log_of, rows

import polars_mcc


@pytest.mark.parametrize("normalize", [None, "gold", "pred", "all"])
@given(rows=rows)
def test_each_slice_against_scikit_learn(rows, normalize, run):
    answer = run(
        log_of(rows),
        lambda f: polars_mcc.confusion(f, "key", labels=NAMES, normalize=normalize),
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


def test_the_labels_that_occur_are_found_in_a_dataframe():
    log = pl.DataFrame({"gold": [3, 1, None], "pred": [2, 1, 9]})
    answer = polars_mcc.confusion(log)
    assert answer.columns == ["gold", "1", "2", "3", "9", "n_null"]
    assert answer.row(2) == (3, 0, 1, 0, 0, 1)


@pytest.mark.parametrize("dtype", [pl.Boolean(), pl.Enum(NAMES)], ids=str)
def test_a_dtype_with_few_labels_needs_no_list(run, dtype):
    answer = run(log_of([("x", 0, 1), ("x", 1, 1)], dtype), polars_mcc.confusion)
    labels = list(dict.fromkeys(map(str, LABELS[dtype])))
    assert answer.columns == ["gold", *labels, "n_null"]
    assert answer[labels[1]].to_list()[:2] == [1, 1]


def test_a_lazy_matrix_needs_its_labels():
    log = log_of([("x", 0, 1)]).lazy()
    with pytest.raises(
        ValueError, match=r"pass labels=\[\.\.\.\], cast the String labels to an En"
    ):
        polars_mcc.confusion(log)


def test_nulls_are_a_row_and_a_column(run):
    log = log_of([("x", 0, None), ("x", None, None), ("x", 1, 1)])
    answer = run(log, lambda f: polars_mcc.confusion(f, labels=["ant", "bee"], nulls="label"))
    assert answer.columns == ["gold", "ant", "bee", "null", "n_null"]
    assert answer.rows() == [("ant", 0, 0, 1, 0), ("bee", 0, 1, 0, 0), (None, 0, 0, 1, 0)]


def test_a_label_that_is_not_listed_is_an_error(run):
    log = log_of([("x", 0, 1)])
    for labels in (["ant"], ["bee"], []):
        with pytest.raises(pl.exceptions.InvalidOperationError, match="is not in labels"):
            run(log, lambda f, labels=labels: polars_mcc.confusion(f, labels=labels))


def test_columns_of_one_name_are_an_error(run):
    log = pl.DataFrame({"key": ["x"], "gold": ["gold"], "pred": ["gold"]})
    with pytest.raises(pl.exceptions.DuplicateError, match="2 columns named 'gold'"):
        run(log, lambda f: polars_mcc.confusion(f, "key", labels=["gold"]))


def test_bad_labels(run):
    log = log_of([("x", 0, 1)])
    with pytest.raises(ValueError, match="names a label twice"):
        run(log, lambda f: polars_mcc.confusion(f, labels=["ant", "ant"]))
    with pytest.raises(pl.exceptions.SchemaError, match="are not of dtype String"):
        run(log, lambda f: polars_mcc.confusion(f, labels=[1, 2]))
    with pytest.raises(ValueError, match="normalize must be one of 'gold', 'pred', 'all'"):
        run(log, lambda f: polars_mcc.confusion(f, labels=NAMES, normalize="true"))


def test_models_and_float_weights(run):
    log = pl.DataFrame({"gold": ["u", "v"], "a": ["u", "v"], "b": ["u", "u"], "w": [0.5, 2.0]})
    answer = run(
        log, lambda f: polars_mcc.confusion(f, pred=["b", "a"], labels=["u", "v"], weight="w")
    )
    assert answer.rows() == [
        ("b", "u", 0.5, 0.0, 0.0),
        ("b", "v", 2.0, 0.0, 0.0),
        ("a", "u", 0.5, 0.0, 0.0),
        ("a", "v", 0.0, 2.0, 0.0),
    ]

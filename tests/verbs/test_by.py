"""`by` and `score`: every slice, on every kind of frame, from a log or from its counts."""

from __future__ import annotations

import oracles
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sklearn.metrics import matthews_corrcoef
from support import LABELS, coded, first, log_of, rows

SCHEMA = {"key": pl.String, "n": pl.Int64, "mcc": pl.Float64, "n_null": pl.Int64}


@pytest.mark.parametrize("dtype", first(6, LABELS), ids=str)
@given(rows=rows)
def test_every_slice_is_exact(rows, dtype, run):
    """Compare with exact arithmetic and scikit-learn. The oracles group the rows on their own."""
    answer = run(log_of(rows, dtype), lambda frame: frame.mcc.by("key"))
    assert answer.schema == SCHEMA
    tables = oracles.by_slice(coded(rows, dtype))
    assert answer["key"].to_list() == sorted(tables, key=lambda key: (key is not None, key))
    for key, n, mcc, n_null in answer.iter_rows():
        table = tables[key]
        assert n == sum(table.values())
        assert n + n_null == sum(1 for row in rows if row[0] == key)
        truth = oracles.exact(table)
        if truth is None:
            assert mcc is None
            continue
        assert oracles.ulps(mcc, truth) <= 4, (mcc, truth)
        gold, pred = zip(*(map(str, pair) for pair in oracles.rows_of(table)), strict=True)
        assert mcc == pytest.approx(matthews_corrcoef(gold, pred), abs=1e-14)


@given(rows=rows, splits=st.lists(st.integers(0, 2), min_size=40, max_size=40))
def test_a_counts_table_is_a_compressed_log(rows, splits, run):
    """The log, its counts, and the merged counts of any split of the log give equal answers.

    `score` is the only slice.
    """
    log = log_of(rows)
    expected = log.mcc.by("key")

    def merged(frame):
        part = pl.Series(splits[: len(rows)], dtype=pl.Int64)
        parts = [frame.filter(part == i).mcc.counts("key") for i in range(3)]
        return pl.concat(parts).mcc(weight="n").by("key")

    assert_frame_equal(run(log, merged), expected, check_exact=True)
    counts = log.mcc.counts("key")
    again = pl.concat([counts, counts]).mcc(weight="n").counts("key")
    assert_frame_equal(again, counts.with_columns(pl.col("n") * 2), check_exact=True)
    assert_frame_equal(counts.mcc(weight="n").by("key"), expected, check_exact=True)
    assert counts.columns == ["key", "gold", "pred", "n"]
    expanded = counts.select(pl.all().repeat_by("n").explode()).drop_nulls("n").rows()
    names = coded(rows, pl.String())
    assert sorted(map(repr, (row[:3] for row in expanded))) == sorted(map(repr, names))
    assert_frame_equal(counts, counts.sort("key", "gold", "pred"), check_exact=True)
    answer = run(log, lambda f: f.mcc.score())
    one_slice = log.mcc.by(pl.lit("all").alias("key")).drop("key")
    if rows:
        assert_frame_equal(answer, one_slice, check_exact=True)
    else:
        assert answer.rows() == [(0, None, 0)]


def test_keys_gold_and_pred_may_be_expressions(run):
    log = pl.DataFrame(
        {
            "age": [20, 25, 40, 41, 47],
            "truth": [1, 0, 1, 1, 0],
            "p": [0.7, 0.2, 0.9, 0.1, 0.3],
        }
    )
    answer = run(
        log,
        lambda frame: frame.mcc(gold=pl.col("truth") == 1, pred=pl.col("p") > 0.5).by(
            (pl.col("age") // 10 * 10).alias("decade")
        ),
    )
    assert answer.rows() == [(20, 2, 1.0, 0), (40, 3, 0.5, 0)]


def test_selectors_and_patterns_are_keys(run):
    log = pl.DataFrame({"a": ["x"], "b": ["y"], "c": [1], "gold": [1], "pred": [1]})
    for keys in ([pl.selectors.string()], [pl.col("^[ab]$")], ["a", pl.col("b")]):
        answer = run(log, lambda frame, keys=keys: frame.mcc.by(*keys))
        assert answer.columns == ["a", "b", "n", "mcc", "n_null"]


@pytest.mark.parametrize(
    "pred",
    [["b", "a"], ["b", pl.col("a")], pl.col("b", "a"), ~pl.selectors.by_name("key", "gold")],
    ids=["list", "list with expression", "expression", "selector"],
)
def test_several_models_are_the_models_one_by_one(run, pred):
    log = pl.DataFrame(
        {
            "key": ["y", "x", "x", "x", None, "y"],
            "gold": ["u", "v", "u", "v", "u", "v"],
            "a": ["u", "v", "v", "v", "u", None],
            "b": pl.Series(["v", "v", "u", "v", None, "v"], dtype=pl.Enum(["u", "v"])),
        }
    )
    answer = run(log, lambda frame: frame.mcc(pred=pred).by("key"))
    assert answer.columns == ["key", "model", "n", "mcc", "n_null"]
    assert answer["model"].dtype == pl.String
    # A selector gives the order of the frame.
    order = ["a", "b"] if pl.selectors.is_selector(pred) else ["b", "a"]
    assert answer["model"].to_list() == order * 3
    for model in order:
        assert_frame_equal(
            answer.filter(pl.col("model") == model).drop("model"),
            log.mcc(pred=model).by("key"),
            check_exact=True,
        )


def test_counts_of_several_models_have_the_model_as_a_key(run):
    log = log_of([("x", 0, 0), ("x", 1, 0), ("y", 1, None), ("y", 2, 2)]).rename({"pred": "b"})
    log = log.with_columns(a=pl.lit("bee"))
    counts = run(log, lambda frame: frame.mcc(pred=["a", "b"]).counts("key"))
    assert counts.columns == ["key", "model", "gold", "pred", "n"]
    assert_frame_equal(
        counts.mcc(weight="n").by("key", "model"),
        log.mcc(pred=["a", "b"]).by("key"),
        check_exact=True,
    )


def test_one_model_in_a_list_still_has_a_name(run):
    log = pl.DataFrame({"gold": [1, 0], "a": [1, 0]})
    assert run(log, lambda f: f.mcc(pred=["a"]).score()).rows() == [("a", 2, 1.0, 0)]


@pytest.mark.parametrize("last", first(1, ["ab", "zz", "za"]))
def test_a_cluster_without_weight_does_not_count(last):
    labels = {"gold": ["a", "a", "b", last[0]], "pred": ["a", "b", "b", last[1]]}
    rows = {"w": [1.0, 1.0, 1.0, 0.0], "user": [1, 2, 3, 4], "score": [0.1, 0.2, 0.9, 0.5]}
    log = pl.DataFrame({**labels, **rows})
    described = log.mcc(pred="pred", sample_weight="w", cluster="user", score="score", positive="a")
    answers = [
        described.by(ci=0.95),
        described.by(metrics="brier", ci=0.95),
        described.classes(ci=0.95),
        described.calibration(bins=1),
    ]
    assert [one["n_clusters"][0] for one in answers] == [3, 3, 3, 3]
    without = log.filter(pl.col("w") > 0).mcc(sample_weight="w", cluster="user")
    assert described.by(ci=0.95).equals(without.by(ci=0.95))

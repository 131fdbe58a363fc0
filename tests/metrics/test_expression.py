"""The expression scores as `by` does, in every context of expressions."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from support import LABELS, NAMES, first, in_turn, log_of, rows
from tables import counts_of

import polars_mcc

mcc = polars_mcc.ExprMcc(pl.col("pred")).score


def physical_plan(lf: pl.LazyFrame) -> str:
    plan = lf.show_graph(engine="streaming", plan_stage="physical", raw_output=True)
    assert plan is not None
    return plan


@in_turn(
    weight=[None, "w", "f"],
    labels=[pytest.param(None, id="any labels"), pytest.param(NAMES, id="known labels")],
    nulls=["drop", "label"],
)
@given(rows=rows, weights=st.lists(st.integers(0, 99), min_size=40, max_size=40))
def test_in_agg_it_is_by(rows, weights, weight, labels, nulls, run):
    log = log_of(rows).with_columns(
        w=pl.Series(weights[: len(rows)], dtype=pl.Int64),
        f=pl.Series([w / 4 for w in weights[: len(rows)]], dtype=pl.Float64),
    )
    score = mcc("gold", weight=weight, labels=labels, nulls=nulls)
    found = run(log, lambda f: f.group_by("key").agg(mcc=score).sort("key"))
    expected = log.mcc(weight=weight, nulls=nulls).by("key").select("key", "mcc")
    # Multiples of 1/4 up to 40 × 99/4 are exact in floats, and so are their products.
    assert_frame_equal(found, expected, check_exact=True)


@pytest.mark.parametrize("dtype", first(6, LABELS), ids=str)
@given(rows=rows)
def test_labels_of_any_dtype(rows, dtype):
    log = log_of(rows, dtype)
    expected = log.mcc.score()["mcc"].item()
    listed = list(dict.fromkeys(LABELS[dtype]))
    found = log.select(some=mcc("gold"), listed=mcc("gold", labels=listed))
    assert found.rows() == [(expected, expected)]


@given(rows=rows)
def test_in_select_over_and_filter(rows, run):
    log = log_of(rows)
    whole = run(log, lambda f: f.select(mcc("gold")))
    assert whole.rows() == [(log.mcc.score()["mcc"].item(),)]
    over = run(log, lambda f: f.select("key", mcc=mcc("gold").over("key")))
    slices = dict(log.mcc.by("key").select("key", "mcc").rows())
    assert over["mcc"].to_list() == [slices[row[0]] for row in rows]
    of_x = run(log, lambda f: f.filter(pl.col("key") == "x").select(mcc("gold")))
    assert of_x.item() == slices.get("x")


@pytest.mark.parametrize("labels", [None, NAMES], ids=["any labels", "known labels"])
@given(rows=rows)
def test_in_windows_of_time(rows, labels, run):
    start = dt.datetime(2026, 1, 1)
    log = log_of(rows).with_columns(
        ts=pl.Series(
            [start + dt.timedelta(hours=7 * i) for i in range(len(rows))], dtype=pl.Datetime
        )
    )
    score = mcc("gold", labels=labels)

    def brute(low: dt.datetime, high: dt.datetime, closed: str) -> float | None:
        window = log.filter(pl.col("ts").is_between(low, high, closed=closed))
        return window.mcc.score()["mcc"].item()

    day = dt.timedelta(days=1)
    daily = run(log, lambda f: f.group_by_dynamic("ts", every="1d").agg(mcc=score))
    assert daily["mcc"].to_list() == [brute(ts, ts + day, "left") for ts in daily["ts"]]
    trailing = run(log, lambda f: f.rolling("ts", period="1d").agg(mcc=score))
    assert trailing["mcc"].to_list() == [brute(ts - day, ts, "right") for ts in trailing["ts"]]
    as_column = run(log, lambda f: f.select(mcc=score.rolling("ts", period="1d")))
    assert as_column["mcc"].equals(trailing["mcc"], null_equal=True)


def test_booleans_and_known_labels_stream(tmp_path):
    log_of([("x", 0, 1)]).with_columns(w=1.5).write_parquet(tmp_path / "log.parquet")
    log = pl.scan_parquet(tmp_path / "log.parquet")
    is_ant = pl.col("gold", "pred") == "ant"
    known, weighted = mcc("gold", labels=NAMES), mcc("gold", weight="w", labels=NAMES)
    for query in (
        log.group_by("key").agg(known),
        log.group_by("key").agg(weighted),
        log.with_columns(is_ant).group_by("key").agg(mcc("gold")),
    ):
        assert "in-memory-map" not in physical_plan(query)
    assert "in-memory-map" in physical_plan(log.group_by("key").agg(mcc("gold"))), "what it avoids"


def test_it_is_named_like_the_prediction(run):
    log = pl.DataFrame({"gold": [1, 0], "a": [1, 0], "b": [0, 1]})
    scores = run(log, lambda f: f.select(polars_mcc.ExprMcc(pl.col("a", "b")).score()))
    assert scores.to_dict(as_series=False) == {"a": [1.0], "b": [-1.0]}
    scores = run(
        log, lambda f: f.select(polars_mcc.ExprMcc(pl.col("a") > 0).score(pl.col("gold") > 0))
    )
    assert scores.columns == ["a"]


def test_the_namespace_is_the_class():
    log = log_of([("x", 0, 0), ("x", 1, 0)])
    assert log.select(pl.col("pred").mcc.score("gold")).equals(log.select(mcc("gold")))
    assert log["pred"].mcc.score(log["gold"]) == polars_mcc.SeriesMcc(log["pred"]).score(
        log["gold"]
    )


def test_zero_division(run):
    log = log_of([("x", 0, 0)])
    for undefined in (0.0, None, 0.5):
        for labels in (None, NAMES):
            query = mcc("gold", zero_division=undefined, labels=labels)
            assert run(log, lambda f, q=query: f.select(q)).item() == undefined


def test_a_label_that_is_not_listed_is_an_error(run):
    log = log_of([("x", 0, 1), ("x", 2, 0), ("x", None, 2)])
    message = r"labels=\['ant', 'bee'\] leave out the gold or pred of 1 rows"
    with pytest.raises(pl.exceptions.InvalidOperationError, match=message):
        run(log, lambda f: f.group_by("key").agg(mcc("gold", labels=["ant", "bee"])))


def test_bad_arguments(run):
    log = log_of([("x", 0, 1)]).with_columns(w=-1, i=1, t=pl.lit("1"))
    with pytest.raises(
        pl.exceptions.InvalidOperationError, match="weight 'w' has or adds up to -1"
    ):
        run(log, lambda f: f.select(mcc("gold", weight="w")))
    with pytest.raises(pl.exceptions.SchemaError, match="'i' is Int.*, 'pred' is String"):
        run(log, lambda f: f.select(mcc("i")))
    with pytest.raises(pl.exceptions.SchemaError, match="weight must be integer or float, but 't'"):
        run(log, lambda f: f.select(mcc("gold", weight="t")))
    with pytest.raises(
        pl.exceptions.SchemaError, match="do not have the dtype of the columns, String"
    ):
        run(log, lambda f: f.select(mcc("gold", labels=[1])))
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="nope"):
        run(log, lambda f: f.select(mcc("nope")))
    for weight in (float("nan"), float("inf"), -float("inf")):
        for labels in (None, ["ant", "bee"]):
            query = mcc("gold", weight="w", labels=labels)
            with pytest.raises(pl.exceptions.InvalidOperationError, match="weight 'w' has or adds"):
                run(log.with_columns(w=weight), lambda f, q=query: f.select(q))
    log = log_of([("x", 0, 1), ("x", 1, 1)])
    for weights in ([-1, 3], [-0.5, 3.0]):
        for labels in (None, ["ant", "bee"]):
            query = mcc("gold", weight="w", labels=labels)
            message = f"weight 'w' has or adds up to {weights[0]}"
            with pytest.raises(pl.exceptions.InvalidOperationError, match=message):
                run(log.with_columns(w=pl.Series(weights)), lambda f, q=query: f.select(q))
    with pytest.raises(ValueError, match="labels is empty; list every label that occurs, or"):
        mcc("gold", labels=[])
    with pytest.raises(ValueError, match="nulls must be one of 'drop', 'label', got 'keep'"):
        mcc("gold", nulls="keep")


@pytest.mark.parametrize("labels", [None, [None], ["ant", "bee"]])
@pytest.mark.parametrize("weight", [None, "w", "share"])
def test_all_labels_are_null(run, labels, weight):
    log = pl.DataFrame({"gold": [None] * 3, "pred": [None] * 3, "w": 2, "share": 0.5})
    for nulls, score in (("drop", None), ("label", 0.0)):
        query = mcc("gold", weight=weight, labels=labels, nulls=nulls)
        assert run(log, lambda f, q=query: f.select(q)).item() == score


def test_large_counts(run):
    cell = 10**18
    log = counts_of([{(1, 1): cell, (1, 0): cell, (0, 1): cell, (0, 0): 2}])
    for labels in (None, [0, 1]):
        query = mcc("gold", weight="n", labels=labels)
        assert run(log, lambda f, q=query: f.select(q)).item() == -0.5
    too_many = pl.concat([log] * 4)
    for labels in (None, [0, 1]):
        query = mcc("gold", weight="n", labels=labels)
        with pytest.raises(pl.exceptions.InvalidOperationError, match="12000000000000000008, more"):
            run(too_many, lambda f, q=query: f.select(q))


class TestSeries:
    def test_a_float_or_none(self):
        gold, pred = pl.Series([1, 0, None]), pl.Series([1, 0, 1])
        assert pred.mcc.score(gold) == 1.0
        assert pred.clear().mcc.score(gold.clear()) is None
        assert pred.mcc.score(gold, nulls="label") == pytest.approx(1.5 / 6**0.5)
        assert pl.Series([1]).mcc.score(pl.Series([1]), zero_division=None) is None

    def test_weights(self):
        gold, pred = pl.Series([1, 1, 0]), pl.Series([1, 0, 0])
        repeated = pl.Series([1, 1, 1, 0, 0]), pl.Series([1, 1, 0, 0, 0])
        weight = pl.Series([2, 1, 2])
        assert pred.mcc.score(gold, weight=weight) == repeated[1].mcc.score(repeated[0])

    def test_lengths_must_agree(self):
        with pytest.raises(ValueError, match=r"\{'gold': 1, 'pred': 2\}"):
            pl.Series([1, 0]).mcc.score(pl.Series([1]))

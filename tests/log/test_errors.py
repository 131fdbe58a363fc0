"""What cannot be scored is refused, with the column, the value and the way out."""

from __future__ import annotations

import importlib.util

import polars as pl
import pytest
from support import ask, log_of

from polars_mcc import PredictionLog

LOG = pl.DataFrame(
    {
        "country": ["DE", "FR"],
        "gold": ["u", "v"],
        "pred": ["u", "u"],
        "number": [1, 2],
        "w": [0.5, 0.5],
        "list": [["u"], ["v"]],
    }
)
FRAMES = pytest.mark.parametrize("frame", [LOG, LOG.lazy()], ids=["DataFrame", "LazyFrame"])


@FRAMES
@pytest.mark.parametrize(
    ("keys", "arguments", "error", "message"),
    [
        (
            ["contry"],
            {},
            "ColumnNotFoundError",
            "no column 'contry' for key; did you mean 'country'?",
        ),
        (["ry"], {}, "ColumnNotFoundError", "no column 'ry' for key; did you mean 'country'?"),
        ([pl.col("contry") + "x"], {}, "ColumnNotFoundError", "did you mean 'country'?"),
        ([], {"gold": "zzz"}, "ColumnNotFoundError", "no column 'zzz' for gold. The columns are '"),
        ([], {"pred": "predd"}, "ColumnNotFoundError", "for pred; did you mean 'pred'?"),
        ([], {"pred": ["pred", "x"]}, "ColumnNotFoundError", "no column 'x' for pred"),
        ([], {"pred": []}, "ColumnNotFoundError", "pred=[] matches no column"),
        ([], {"weight": "weight"}, "ColumnNotFoundError", "no column 'weight' for weight"),
        (["country", "country"], {}, "DuplicateError", "two key columns have the same name"),
        ([], {"pred": ["pred", "pred"]}, "DuplicateError", "two pred columns have the same name"),
        (
            [pl.lit(1).alias("n")],
            {},
            "DuplicateError",
            "key 'n' has the name of a column of the an",
        ),
        ([pl.lit(1).alias("mcc")], {}, "DuplicateError", "pl.col('mcc').alias('mcc_key')"),
        ([pl.lit(1).alias("model")], {"pred": ["pred"]}, "DuplicateError", "key 'model' has"),
        ([], {"gold": "number"}, "SchemaError", "'number' is Int64, 'pred' is String"),
        ([], {"gold": "number", "pred": "w"}, "SchemaError", "'number' is Int64, 'w' is Float64"),
        ([], {"pred": ["pred", "number"]}, "SchemaError", "'number' is Int64"),
        (
            [],
            {"gold": "list"},
            "SchemaError",
            "'list' has lists of labels, but 'pred' is String: make both",
        ),
        ([], {"weight": "country"}, "SchemaError", "weight must be integer or float, but 'countr"),
        ([], {"gold": pl.col("gold", "pred")}, "ValueError", "gold must be one column, but "),
        ([], {"nulls": "keep"}, "ValueError", "nulls must be one of 'drop', 'label', got 'keep'"),
        ([], {"zero_division": "warn"}, "TypeError", "must be a number or None, got 'warn'"),
        ([1], {}, "TypeError", "key must be a column name or a polars expression, got 1"),
        ([["country"]], {}, "TypeError", "got ['country']; unpack a list with *"),
    ],
)
def test_refused_when_the_query_is_built(frame, keys, arguments, error, message):
    expected = getattr(pl.exceptions, error, None) or {"ValueError": ValueError}.get(
        error, TypeError
    )
    with pytest.raises(expected) as raised:
        ask(frame, "by", *keys, **arguments)
    assert message in str(raised.value)


def test_many_columns_are_not_all_listed():
    wide = pl.DataFrame({f"c{i}": [1] for i in range(50)})
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="and 40 more"):
        wide.mcc.score()
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="There are no columns"):
        pl.DataFrame().mcc.score()


def test_other_frames_are_refused():
    with pytest.raises(TypeError, match=r"or a frame that narwhals takes, got builtins\.dict$"):
        PredictionLog({"gold": [1], "pred": [1]})


def test_a_frame_of_another_engine_needs_pyarrow(monkeypatch):
    duckdb, _ = pytest.importorskip("duckdb"), pytest.importorskip("narwhals")
    log = PredictionLog(duckdb.sql("SELECT 1 AS gold, 1 AS pred"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"needs pyarrow.*'polars-mcc\[engines\]'"):
        log.score().collect()


@pytest.mark.parametrize("verb", ["counts", "classes", "confusion"])
def test_keys_must_not_hide_a_column_of_the_answer(verb):
    hidden = {"counts": "gold", "classes": "support", "confusion": "n_null"}[verb]
    with pytest.raises(pl.exceptions.DuplicateError, match=f"key '{hidden}' has the name of a co"):
        ask(LOG, verb, pl.lit(1).alias(hidden))


@pytest.mark.parametrize(
    ("weight", "shown"),
    [
        ([1, -2], "-2"),
        ([0.5, -0.25], "-0.25"),
        ([0.5, float("nan")], "NaN"),
        ([0.5, float("inf")], "inf"),
    ],
)
def test_weights_that_are_none(run, weight, shown):
    log = LOG.with_columns(w=pl.Series(weight))
    message = f"weight 'w' has or adds up to {shown}: weights must be finite and not negative"
    with pytest.raises(pl.exceptions.InvalidOperationError, match=message):
        run(log, lambda frame: frame.mcc(weight="w").by("country"))
    with pytest.raises(pl.exceptions.InvalidOperationError, match=message):
        run(log, lambda frame: frame.mcc(weight="w").counts())


def test_counts_cannot_hold_rows_without_a_weight(run):
    log = LOG.with_columns(w=pl.Series([None, 1]))
    with pytest.raises(pl.exceptions.InvalidOperationError, match="weight 'w' is null in 1 rows"):
        run(log, lambda frame: frame.mcc(weight="w").counts())


@pytest.mark.parametrize("verb", ["by", "classes"])
@pytest.mark.parametrize("column", ["n", "mcc"])
def test_what_cannot_be_counted_exactly_is_an_error(run, verb, column):
    log = log_of([("x", 0, 0), ("x", 1, 0), ("x", 2, 1)]).with_columns(w=2**62)
    with pytest.raises(pl.exceptions.InvalidOperationError, match=r"add up to at least \d+, more"):
        run(log, lambda frame: ask(frame, verb, "key", weight="w").select(column))

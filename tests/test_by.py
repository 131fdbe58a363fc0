"""`by` and `score`: every slice, on every kind of frame, from a log or its counts."""

from __future__ import annotations

import inspect
import math

import oracles
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_series_equal
from sklearn.metrics import matthews_corrcoef
from support import LABELS, coded, counts_frame, log_of, rows

import polars_mcc

SCHEMA = {"key": pl.String, "n": pl.Int64, "mcc": pl.Float64, "n_null": pl.Int64}


@pytest.mark.parametrize("dtype", LABELS, ids=str)
@given(rows=rows)
def test_every_slice_is_exact(rows, dtype, run):
    """Against exact arithmetic and scikit-learn, on rows that oracles group themselves."""
    answer = run(log_of(rows, dtype), lambda frame: polars_mcc.by(frame, "key"))
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
    """From the log = from its counts = from the merged counts of any split of the log."""
    log = log_of(rows)
    expected = polars_mcc.by(log, "key")

    def merged(frame):
        part = pl.Series(splits[: len(rows)], dtype=pl.Int64)
        parts = [polars_mcc.counts(frame.filter(part == i), "key") for i in range(3)]
        return polars_mcc.by(pl.concat(parts), "key", weight="n")

    assert_frame_equal(run(log, merged), expected, check_exact=True)
    counts = polars_mcc.counts(log, "key")
    again = polars_mcc.counts(pl.concat([counts, counts]), "key", weight="n")
    assert_frame_equal(again, counts.with_columns(pl.col("n") * 2), check_exact=True)
    assert_frame_equal(polars_mcc.by(counts, "key", weight="n"), expected, check_exact=True)


@given(rows=rows)
def test_counts_are_the_rows(rows, run):
    counts = run(log_of(rows), lambda frame: polars_mcc.counts(frame, "key"))
    assert counts.columns == ["key", "gold", "pred", "n"]
    expanded = counts.select(pl.all().repeat_by("n").explode()).drop_nulls("n").rows()
    names = coded(rows, pl.String())
    assert sorted(map(repr, (row[:3] for row in expanded))) == sorted(map(repr, names))
    assert_frame_equal(counts, counts.sort("key", "gold", "pred"), check_exact=True)


@given(rows=rows)
def test_score_is_the_only_slice(rows, run):
    log = log_of(rows)
    answer = run(log, polars_mcc.score)
    one_slice = polars_mcc.by(log, pl.lit("all").alias("key")).drop("key")
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
        lambda frame: polars_mcc.by(
            frame,
            (pl.col("age") // 10 * 10).alias("decade"),
            gold=pl.col("truth") == 1,
            pred=pl.col("p") > 0.5,
        ),
    )
    assert answer.rows() == [(20, 2, 1.0, 0), (40, 3, 0.5, 0)]


def test_selectors_and_patterns_are_keys(run):
    log = pl.DataFrame({"a": ["x"], "b": ["y"], "c": [1], "gold": [1], "pred": [1]})
    for keys in ([pl.selectors.string()], [pl.col("^[ab]$")], ["a", pl.col("b")]):
        answer = run(log, lambda frame, keys=keys: polars_mcc.by(frame, *keys))
        assert answer.columns == ["a", "b", "n", "mcc", "n_null"]


@pytest.mark.parametrize(
    "pred",
    [["b", "a"], ["b", pl.col("a")], pl.col("b", "a"), ~pl.selectors.by_name("key", "gold")],
    ids=str,
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
    answer = run(log, lambda frame: polars_mcc.by(frame, "key", pred=pred))
    assert answer.columns == ["key", "model", "n", "mcc", "n_null"]
    assert answer["model"].dtype == pl.String
    # A selector of what is not named gives the order of the frame.
    order = ["a", "b"] if pl.selectors.is_selector(pred) else ["b", "a"]
    assert answer["model"].to_list() == order * 3
    for model in order:
        assert_frame_equal(
            answer.filter(pl.col("model") == model).drop("model"),
            polars_mcc.by(log, "key", pred=model),
            check_exact=True,
        )


def test_counts_of_several_models_have_the_model_as_a_key(run):
    log = log_of([("x", 0, 0), ("x", 1, 0), ("y", 1, None), ("y", 2, 2)]).rename({"pred": "b"})
    log = log.with_columns(a=pl.lit("bee"))
    counts = run(log, lambda frame: polars_mcc.counts(frame, "key", pred=["a", "b"]))
    assert counts.columns == ["key", "model", "gold", "pred", "n"]
    assert_frame_equal(
        polars_mcc.by(counts, "key", "model", weight="n"),
        polars_mcc.by(log, "key", pred=["a", "b"]),
        check_exact=True,
    )


def test_one_model_in_a_list_still_has_a_name(run):
    log = pl.DataFrame({"gold": [1, 0], "a": [1, 0]})
    assert run(log, lambda f: polars_mcc.score(f, pred=["a"])).rows() == [("a", 2, 1.0, 0)]


def test_models_of_no_rows_are_scored_as_nothing(run):
    log = pl.DataFrame({"gold": ["u"], "a": ["u"], "b": ["v"], "w": [0.5]}).clear()
    for weight in (None, "w"):
        answer = run(log, lambda f, w=weight: polars_mcc.score(f, pred=["a", "b"], weight=w))
        assert answer.rows() == [("a", 0, None, 0), ("b", 0, None, 0)]


def test_an_empty_frame_without_dtypes(run):
    nothing = pl.DataFrame({"key": [], "gold": [], "pred": []})
    assert run(nothing, polars_mcc.score).rows() == [(0, None, 0)]
    assert run(nothing, lambda frame: polars_mcc.by(frame, "key")).rows() == []


@pytest.mark.parametrize("undefined", [0.0, float("nan"), None, 1.0])
def test_zero_division(run, undefined):
    one_gold = [(1, 1), (1, 0)]
    one_pred = [(1, 1), (0, 1)]
    one_row = [(1, 1)]
    log = pl.DataFrame(
        [
            {"key": key, "gold": gold, "pred": pred}
            for key, pairs in enumerate([one_gold, one_pred, one_row])
            for gold, pred in pairs
        ]
    )
    found = run(log, lambda f: polars_mcc.by(f, "key", zero_division=undefined))["mcc"]
    assert_series_equal(found, pl.Series("mcc", [undefined] * 3, dtype=pl.Float64))


def test_nulls_are_counted_or_a_class(run):
    log = pl.DataFrame(
        {
            "key": ["x"] * 4 + ["y"],
            "gold": ["u", "v", "v", None, None],
            "pred": ["u", "v", None, None, "u"],
        }
    )
    dropped = run(log, lambda frame: polars_mcc.by(frame, "key"))
    assert dropped.rows() == [("x", 2, 1.0, 2), ("y", 0, None, 1)]
    labelled = run(log, lambda frame: polars_mcc.by(frame, "key", nulls="label"))
    as_text = run(
        log.with_columns(pl.col("gold", "pred").fill_null("a class like any other")),
        lambda frame: polars_mcc.by(frame, "key"),
    )
    assert_frame_equal(labelled, as_text, check_exact=True)
    assert labelled["n_null"].to_list() == [0, 0]


def test_rows_without_a_weight_are_not_scored(run):
    log = pl.DataFrame({"gold": [1, 0, 1], "pred": [1, 0, 0], "w": [2, 3, None]})
    for nulls in ("drop", "label"):
        query = lambda frame, nulls=nulls: polars_mcc.score(frame, weight="w", nulls=nulls)  # noqa: E731
        assert run(log, query).rows() == [(5, 1.0, 1)]
        assert run(log.with_columns(pl.col("w") / 2), query).rows() == [(2.5, 1.0, 1.0)]


@given(st.lists(st.floats(1e-3, 1e3), min_size=9, max_size=9))
def test_float_weights(weights):
    """The weights as exact fractions of a common denominator, scored as integers."""
    pairs = [(g, p) for g in "abc" for p in "abc"]
    log = counts_frame(dict.fromkeys(pairs, 1)).with_columns(n=pl.Series(weights))
    found = polars_mcc.score(log, weight="n")
    assert found.schema["n"] == pl.Float64
    as_integers = {
        pair: int(math.ldexp(weight, 80)) for pair, weight in zip(pairs, weights, strict=True)
    }
    truth = oracles.exact(as_integers)
    # Floats lose what the subtractions cancel; integers do not.
    tolerance = 16 * 2**-53 * oracles.cancellation(as_integers)
    assert found["mcc"].item() == pytest.approx(float(truth), abs=tolerance)


def test_one_class_with_weights_that_do_not_add_up_in_binary(run):
    """0.1 + 0.2 + 0.3 depends on the order: a degenerate slice is still degenerate."""
    log = pl.DataFrame({"gold": ["u"] * 6, "pred": ["u", "v"] * 3, "w": [0.1, 0.2, 0.3] * 2})
    for frame in (log, log.rename({"gold": "pred", "pred": "gold"})):
        answer = run(frame, lambda f: polars_mcc.score(f, weight="w", zero_division=None))
        assert answer["mcc"].to_list() == [None]


@pytest.mark.parametrize(
    ("gold", "pred"),
    [
        (pl.Int8, pl.UInt64),
        (pl.Int64, pl.UInt8),
        (pl.Float32, pl.Float64),
    ],
)
def test_numbers_compare_by_value(run, gold, pred):
    log = pl.DataFrame({"gold": [1, 2, 3], "pred": [1, 2, 4]}, schema={"gold": gold, "pred": pred})
    assert (
        run(log, polars_mcc.score)["mcc"].item()
        == run(log.cast(pl.Int64), polars_mcc.score)["mcc"].item()
    )


def test_text_compares_by_text(run):
    some = {
        "string": pl.String(),
        "categorical": pl.Categorical(),
        "enum": pl.Enum(["b", "a"]),
        "other enum": pl.Enum(["c", "a", "b"]),
    }
    for one in some.values():
        for other in some.values():
            log = pl.DataFrame(
                {"gold": ["a", "b", "a"], "pred": ["a", "b", "b"]},
                schema={"gold": one, "pred": other},
            )
            assert run(log, polars_mcc.score)["mcc"].item() == 0.5, (one, other)


def test_a_column_of_nulls_fits_any_label(run):
    log = pl.DataFrame({"gold": ["a", "b"], "pred": [None, None]})
    assert run(log, polars_mcc.score).rows() == [(0, None, 2)]


def test_zeros_are_one_label_and_so_are_nans(run):
    nan = float("nan")
    log = pl.DataFrame({"gold": [0.0, nan, 1.0], "pred": [-0.0, nan, 1.0]})
    assert run(log, polars_mcc.score).rows() == [(3, 1.0, 0)]


@pytest.mark.parametrize("name", ["", "a b", "日本", "^x.*$", "*", "key:n", "weight", "label"])
def test_columns_may_have_any_name(run, name):
    log = pl.DataFrame({name: [1, 0], "gold": [1, 0], "pred": [1, 0]})
    answer = run(log, lambda frame: polars_mcc.by(frame, name))
    assert answer.columns == [name, "n", "mcc", "n_null"]
    assert answer.rows() == [(0, 1, 0.0, 0), (1, 1, 0.0, 0)]
    for argument in ("gold", "pred", "weight"):
        answer = run(log, lambda frame, a=argument: polars_mcc.score(frame, **{a: name}))
        assert answer["n"].item() == (1 if argument == "weight" else 2)
    models = run(log, lambda frame: polars_mcc.score(frame, pred=[name, "pred"]))
    assert models["model"].to_list() == [name, "pred"]


@pytest.mark.parametrize("name", ["gold", "pred"])
def test_slices_of_a_label_have_one_class(run, name):
    log = pl.DataFrame({"gold": [1, 0], "pred": [1, 0]})
    answer = run(log, lambda frame: polars_mcc.by(frame, name))
    assert answer.rows() == [(0, 1, 0.0, 0), (1, 1, 0.0, 0)]


@pytest.mark.parametrize(
    "key",
    [
        pl.Series([[1], [2], None]),
        pl.Series([{"a": 1}, {"a": 2}, None]),
        pl.Series(["1.5", "2.5", None]).cast(pl.Decimal(10, 2)),
        pl.Series([float("nan"), 1.0, None]),
        pl.Series([None, None, None]),
    ],
    ids=lambda key: str(key.dtype),
)
def test_keys_of_any_dtype(run, key):
    log = pl.DataFrame({"key": key, "gold": [1, 1, 1], "pred": [1, 1, 1]})
    answer = run(log, lambda frame: polars_mcc.by(frame, "key"))
    assert answer["n"].sum() == 3
    assert answer.height == key.n_unique()
    assert answer["key"].dtype == key.dtype


@pytest.mark.parametrize("cell", [2**33, 10**18])
def test_more_rows_than_32_bits(run, cell):
    log = counts_frame({(1, 1): cell, (1, 0): cell, (0, 1): cell, (0, 0): 2})
    answer = run(log, lambda frame: polars_mcc.score(frame, weight="n"))
    table = {(1, 1): cell, (1, 0): cell, (0, 1): cell, (0, 0): 2}
    assert answer["n"].item() == sum(table.values())
    assert oracles.ulps(answer["mcc"].item(), oracles.exact(table)) <= 4


def test_the_namespace_is_the_functions(run):
    log = log_of([("x", 0, 0), ("x", 1, 0), ("y", 1, None), ("y", 2, 2)])
    both = [
        (lambda f: f.mcc.by("key"), lambda f: polars_mcc.by(f, "key")),
        (lambda f: f.mcc.score(), polars_mcc.score),
        (lambda f: f.mcc.counts("key"), lambda f: polars_mcc.counts(f, "key")),
        (lambda f: f.mcc.classes("key"), lambda f: polars_mcc.classes(f, "key")),
        (
            lambda f: f.mcc.confusion("key", labels=["ant", "bee", "cat"]),
            lambda f: polars_mcc.confusion(f, "key", labels=["ant", "bee", "cat"]),
        ),
    ]
    for sugar, function in both:
        assert_frame_equal(run(log, sugar), run(log, function), check_exact=True)


def test_help_shows_the_documentation_of_the_function():
    for verb in ("by", "score", "counts", "classes", "confusion"):
        function, method = getattr(polars_mcc, verb), getattr(polars_mcc.FrameMcc, verb)
        assert method.__doc__ == function.__doc__
        arguments = list(inspect.signature(method).parameters.values())[1:]
        assert arguments == list(inspect.signature(function).parameters.values())[1:]

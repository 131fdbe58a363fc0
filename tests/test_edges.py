"""Edge cases: a test for each row of the design's table of edge cases."""

from __future__ import annotations

import datetime as dt
import inspect
import math
import pathlib
import random
import re
import sys
import zoneinfo

import polars as pl
import pytest
from polars.testing import assert_frame_equal, assert_series_equal
from runner import invoke
from support import NAMES, ask, first, log_of

import polars_mcc

mcc = polars_mcc.ExprMcc(pl.col("pred")).score


def test_an_empty_frame_without_dtypes(run):
    nothing = pl.DataFrame({"key": [], "gold": [], "pred": []})
    assert run(nothing, lambda f: f.mcc.score()).rows() == [(0, None, 0)]
    assert run(nothing, lambda frame: frame.mcc.by("key")).rows() == []


def test_models_of_no_rows_are_scored_as_nothing(run):
    log = pl.DataFrame({"gold": ["u"], "a": ["u"], "b": ["v"], "w": [0.5]}).clear()
    for weight in (None, "w"):
        answer = run(log, lambda f, w=weight: f.mcc(pred=["a", "b"], weight=w).score())
        assert answer.rows() == [("a", 0, None, 0), ("b", 0, None, 0)]


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
    found = run(log, lambda f: f.mcc(zero_division=undefined).by("key"))["mcc"]
    assert_series_equal(found, pl.Series("mcc", [undefined] * 3, dtype=pl.Float64))


def test_one_class_with_weights_that_do_not_add_up_in_binary(run):
    """0.1 + 0.2 + 0.3 depends on the order: a degenerate slice is still degenerate."""
    log = pl.DataFrame({"gold": ["u"] * 6, "pred": ["u", "v"] * 3, "w": [0.1, 0.2, 0.3] * 2})
    for frame in (log, log.rename({"gold": "pred", "pred": "gold"})):
        answer = run(frame, lambda f: f.mcc(weight="w", zero_division=None).score())
        assert answer["mcc"].to_list() == [None]


def test_nulls_are_counted_or_a_class(run):
    log = pl.DataFrame(
        {
            "key": ["x"] * 4 + ["y"],
            "gold": ["u", "v", "v", None, None],
            "pred": ["u", "v", None, None, "u"],
        }
    )
    dropped = run(log, lambda frame: frame.mcc.by("key"))
    assert dropped.rows() == [("x", 2, 1.0, 2), ("y", 0, None, 1)]
    labelled = run(log, lambda frame: frame.mcc(nulls="label").by("key"))
    as_text = run(
        log.with_columns(pl.col("gold", "pred").fill_null("a class like any other")),
        lambda frame: frame.mcc.by("key"),
    )
    assert_frame_equal(labelled, as_text, check_exact=True)
    assert labelled["n_null"].to_list() == [0, 0]


def test_rows_without_a_weight_are_not_scored(run):
    log = pl.DataFrame({"gold": [1, 0, 1], "pred": [1, 0, 0], "w": [2, 3, None]})
    for nulls in ("drop", "label"):
        query = lambda frame, nulls=nulls: frame.mcc(weight="w", nulls=nulls).score()  # noqa: E731
        assert run(log, query).rows() == [(5, 1.0, 1)]
        assert run(log.with_columns(pl.col("w") / 2), query).rows() == [(2.5, 1.0, 1.0)]


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
        run(log, lambda f: f.mcc.score())["mcc"].item()
        == run(log.cast(pl.Int64), lambda f: f.mcc.score())["mcc"].item()
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
            assert run(log, lambda f: f.mcc.score())["mcc"].item() == 0.5, (one, other)


def test_a_column_of_nulls_fits_any_label(run):
    log = pl.DataFrame({"gold": ["a", "b"], "pred": [None, None]})
    assert run(log, lambda f: f.mcc.score()).rows() == [(0, None, 2)]


def test_zeros_are_one_label_and_nan_is_none(run):
    nan = float("nan")
    log = pl.DataFrame({"gold": [0.0, nan, 1.0], "pred": [-0.0, nan, 1.0]})
    assert run(log, lambda f: f.mcc.score()).rows() == [(2, 1.0, 1)]


@pytest.mark.parametrize("name", ["", "a b", "日本", "^x.*$", "*", "key:n", "weight", "label"])
def test_columns_may_have_any_name(run, name):
    log = pl.DataFrame({name: [1, 0], "gold": [1, 0], "pred": [1, 0]})
    answer = run(log, lambda frame: frame.mcc.by(name))
    assert answer.columns == [name, "n", "mcc", "n_null"]
    assert answer.rows() == [(0, 1, 0.0, 0), (1, 1, 0.0, 0)]
    for argument in ("gold", "pred", "weight"):
        answer = run(log, lambda frame, a=argument: ask(frame, "score", **{a: name}))
        assert answer["n"].item() == (1 if argument == "weight" else 2)
    models = run(log, lambda frame: frame.mcc(pred=[name, "pred"]).score())
    assert models["model"].to_list() == [name, "pred"]


@pytest.mark.parametrize("name", ["gold", "pred"])
def test_slices_of_a_label_have_one_class(run, name):
    log = pl.DataFrame({"gold": [1, 0], "pred": [1, 0]})
    answer = run(log, lambda frame: frame.mcc.by(name))
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
    answer = run(log, lambda frame: frame.mcc.by("key"))
    assert answer["n"].sum() == 3
    assert answer.height == key.n_unique()
    assert answer["key"].dtype == key.dtype


def test_an_empty_frame_has_the_schema_of_a_full_one(run):
    log = log_of([("x", 0, 1)])
    queries = [
        lambda f: f.mcc.by("key"),
        lambda f: f.mcc.score(),
        lambda f: f.mcc.counts("key"),
        lambda f: f.mcc.classes("key"),
        lambda f: f.mcc.confusion("key", labels=NAMES),
        lambda f: f.group_by("key").agg(mcc("gold")),
    ]
    for query in queries:
        assert run(log.clear(), query).schema == run(log, query).schema
    assert run(log.clear(), queries[0]).height == 0
    for weight in (None, pl.lit(1), pl.lit(1.0)):
        answer = run(log.clear(), lambda f, w=weight: f.mcc(weight=w).score())
        assert answer.rows() == [(0, None, 0)]
    assert run(log.clear(), lambda f: f.select(mcc("gold"))).rows() == [(None,)]


@pytest.mark.parametrize("weight", [None, pl.lit(3), pl.lit(0.3)], ids=["rows", "counts", "floats"])
def test_one_row_has_one_class(run, weight):
    log = pl.DataFrame({"gold": ["u"], "pred": ["u"]})
    for undefined in (0.0, None, -1.0):
        query = lambda f, u=undefined: f.mcc(weight=weight, zero_division=u).score()  # noqa: E731
        assert run(log, query)["mcc"].item() == undefined
        for labels in (None, ["u", "v"]):
            score = mcc("gold", weight=weight, zero_division=undefined, labels=labels)
            assert run(log, lambda f, s=score: f.select(s)).item() == undefined


def test_weights_of_zero_are_no_rows(run):
    log = pl.DataFrame({"key": ["x", "x", "y"], "gold": [1, 0, 1], "pred": [1, 0, 0]})
    for zero in (0, 0.0, -0.0):
        weighed = log.with_columns(w=zero)
        answer = run(weighed, lambda f: f.mcc(weight="w").by("key"))
        assert answer.rows() == [("x", 0, None, 0), ("y", 0, None, 0)]
        assert run(weighed, lambda f: f.mcc(weight="w").classes()).height == 0
        for labels in (None, [0, 1]):
            score = mcc("gold", weight="w", labels=labels)
            assert run(weighed, lambda f, s=score: f.select(s)).item() is None


def test_categories_of_other_string_caches_compare_by_text(run):
    """Separate Categoricals, and Categoricals with other `pl.Categories`, have other codes."""
    gold = pl.Series("gold", ["a", "b", "a"])
    pred = pl.Series("pred", ["b", "a", "b"])
    dtypes = [
        pl.Categorical(),
        pl.Categorical(pl.Categories("animals")),
        pl.Categorical(pl.Categories.random()),
        pl.Enum(["b", "a"]),
        pl.String(),
    ]
    for gold_dtype in dtypes:
        for pred_dtype in dtypes:
            log = pl.DataFrame([pred.cast(pred_dtype), gold.cast(gold_dtype)])
            assert run(log, lambda f: f.mcc.score())["mcc"].item() == -1, (gold_dtype, pred_dtype)
            for labels in (None, ["a", "b"]):
                score = mcc("gold", labels=labels)
                assert run(log, lambda f, s=score: f.select(s)).item() == -1


@pytest.mark.parametrize(
    ("gold", "pred"),
    [([1], ["1"]), ([1], [1.0]), ([True], ["true"]), (["1"], [b"1"])],
    ids=str,
)
def test_labels_that_look_alike_are_not_alike(gold, pred):
    log = pl.DataFrame({"gold": gold, "pred": pred})
    hint = "as in pl.col('pred') >= 0.5"
    if not log.schema["pred"].is_float():
        name = "gold" if log.schema["pred"] == pl.String else "pred"
        hint = f"as in pl.col('{name}').cast(pl.String)"
        if log.schema["gold"] == pl.Boolean:  # The cast would be "true", not "True".
            hint = "as in pl.col('pred')"
    for frame in (log, log.lazy()):
        with pytest.raises(pl.exceptions.SchemaError, match=re.escape(hint)):
            frame.mcc.score()


def test_long_and_foreign_labels_are_told_apart(run):
    long = "x" * 1_000_000
    labels = [long + "a", long + "b", "日本", "日本 ", "e\u0301", "\u00e9", "", " ", "0", "00"]
    log = pl.DataFrame({"gold": labels, "pred": labels})
    assert run(log, lambda f: f.mcc.score()).rows() == [(10, 1.0, 0)]
    moved = log.with_columns(pred=pl.Series([*labels[1:], labels[0]]))
    coded = pl.DataFrame({"gold": range(10), "pred": [*range(1, 10), 0]})
    assert run(moved, lambda f: f.mcc.score()).equals(coded.mcc.score())


def test_200_keys(run):
    keys = [f"k{i}" for i in range(200)]
    log = pl.DataFrame({key: [i % 2, None, i % 2] for i, key in enumerate(keys)})
    log = log.with_columns(gold=pl.Series([1, 1, 0]), pred=pl.Series([1, 0, 0]))
    answer = run(log, lambda frame: frame.mcc.by(*keys))
    assert answer.select("n", "mcc", "n_null").rows() == [(1, 0.0, 0), (2, 1.0, 0)]
    assert answer.columns[:200] == keys


def test_columns_of_the_answer_may_be_columns_of_the_log(run):
    """They may be labels and weights. As keys, they are renamed here, because they must be."""
    log = pl.DataFrame({"n": [1, 0], "mcc": [1, 0], "n_null": [2, 3], "model": ["x", "y"]})
    answer = run(log, lambda f: f.mcc(gold="n", pred="mcc", weight="n_null").score())
    assert answer.rows() == [(5, 1.0, 0)]
    renamed = run(log, lambda f: f.mcc(gold="mcc", pred="n").by(pl.col("n").alias("k")))
    assert renamed.columns == ["k", "n", "mcc", "n_null"]
    assert run(log, lambda f: f.mcc(gold="n", pred="mcc").by("model")).height == 2


def test_keys_that_cannot_be_grouped_are_refused():
    log = pl.DataFrame({"key": pl.Series([object()], dtype=pl.Object), "gold": [1], "pred": [1]})
    with pytest.raises(pl.exceptions.SchemaError, match="key 'key' has dtype Object"):
        log.mcc.by("key")


@pytest.mark.parametrize("nulls", ["drop", "label"])
def test_an_expression_of_labels_that_are_all_null(run, nulls):
    log = pl.DataFrame({"gold": [None, None], "pred": [None, None], "w": [0.5, 1.0]})
    score = polars_mcc.ExprMcc(pl.col("pred")).score(weight="w", nulls=nulls, zero_division=0.25)
    answer = run(log, lambda log: log.select(score))
    assert answer["pred"].to_list() == [None if nulls == "drop" else 0.25]


@pytest.mark.parametrize("kind", ["weight", "sample_weight"])
@pytest.mark.parametrize("dtype", [pl.Int64, pl.Float64])
def test_n_and_n_null_are_sums_of_weights_and_a_null_weight_adds_1(run, kind, dtype):
    rows = [("a", "a", 2), ("b", "b", 3), (None, "b", 5), ("a", None, 7), ("a", "a", None)]
    rows += [(None, "a", None), ("b", "a", 0)]
    log = pl.DataFrame(rows, {"gold": pl.String, "pred": pl.String, "w": dtype}, orient="row")
    found = run(log, lambda f: f.mcc(**{kind: "w"}).by(metrics="accuracy", ci=0.9))
    n, n_null = 2 + 3, 5 + 7 + 1 + 1
    assert found.select("n", "n_null").row(0) == (n, n_null)
    assert found.schema["n"] == found.schema["n_null"] == dtype


def weighed(kind: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A log, and the same with rows of weight 0 between the others.

    They have labels, scores, a cluster, and values of keys that no other row has.
    """
    rng = random.Random(4)
    rows = [
        {
            "k": rng.choice("abc"),
            "j": rng.choice("xy"),
            "gold": (gold := rng.choice("ppqqr")),
            "pred": gold if rng.random() < 0.7 else rng.choice("pqr"),
            "other": gold if rng.random() < 0.8 else "q",
            "s": round(rng.random(), 2),
            "t": round(rng.random(), 2),
            "user": number // 4,
            "w": rng.randint(1, 3),
        }
        for number in range(240)
    ]
    nothing = [
        ("a", "x", "new", "p", "new too", 0.001, 0.999),
        ("b", "y", "p", "newer", "p", 0.999, 0.001),
        ("c", "v", None, "newest", "q", 0.123, 0.5),
        ("z", "x", "q", "q", "q", 0.555, 0.555),
        ("z", "y", "p", "q", "newest", None, 0.1),
    ]
    names = ("k", "j", "gold", "pred", "other", "s", "t")
    of_0 = [dict(zip(names, values, strict=True), user=-1, w=0) for values in nothing]
    mixed = [*of_0[:2], *rows[:100], *of_0[2:], *rows[100:]]
    schema = pl.DataFrame(rows).schema
    types = {"w": pl.Float64 if "float" in kind else pl.Int64}
    plain, with_0 = (pl.DataFrame(part, schema).cast(types) for part in (rows, mixed))
    return plain, with_0


SURE = ["mcc", "accuracy", "kappa", "f1_macro", "recall_macro", "mcc_macro", "cramers_v", "tpr"]
OF_SCORES = ["roc_auc", "average_precision", "brier", "log_loss", "calibration_error", "ece"]
EARLY = pl.col("j") == "x"
WALK = {
    "by": lambda log: log.by("k", metrics=SURE),
    "by, interval": lambda log: log.by("k", metrics=SURE, ci=0.9),
    "by, scores": lambda log: log.by("k", metrics=OF_SCORES),
    "by, interval of scores": lambda log: log.by("k", metrics=OF_SCORES[:4], ci=0.9),
    "by, sets": lambda log: log.by(polars_mcc.rollup("k", "j")),
    "by, bins": lambda log: log.by(polars_mcc.bins("t", 3)),
    "score": lambda log: log.score(metrics=SURE, ci=0.9),
    "counts": lambda log: log.counts("k"),
    "classes": lambda log: log.classes(),
    "classes, interval": lambda log: log.classes("k", ci=0.9),
    "confusion": lambda log: log.confusion(),
    "confusion, labels": lambda log: log.confusion(labels=["p", "q", "r"]),
    "confusion, long": lambda log: log.confusion("k", long=True),
    "confusion, top": lambda log: log.confusion(top=2),
    "curve": lambda log: log.curve(),
    "best_threshold": lambda log: log.best_threshold("k"),
    "calibration": lambda log: log.calibration("k", bins=4),
    "compare": lambda log: log(pred=["pred", "other"], score=None).compare("k", metrics="f1_macro"),
    "contrast": lambda log: log.contrast("k", metrics="f1_macro"),
    "contrast, total": lambda log: log.contrast("k", to="total", ratio=True),
    "drift": lambda log: log.drift("k", before=EARLY, after=~EARLY),
    "gaps": lambda log: log.gaps("k", metrics=["accuracy", "f1_macro"]),
    "changes": lambda log: log(time=(100 * pl.col("t")).cast(pl.Int32).cast(pl.Date)).changes("k"),
    "worst": lambda log: log.worst("k", "j", verdicts=True),
    "check": lambda log: log.check("k", metric="accuracy", min=0.01),
}
REFUSED = {
    "counts": {"sample_weight", "clusters"},
    "contrast": {"clusters"},
    "contrast, total": {"clusters"},
    "gaps": {"clusters"},
    "changes": {"clusters", "sample_weight"},
}


def test_the_walk_has_all_verbs():
    files = pathlib.Path(polars_mcc.__file__).parent.glob("_verbs/[a-z]*.py")
    verbs = {verb for file in files for verb in file.stem.split("_and_")}
    verbs -= {"engine_counts"}  # counts of a frame of Spark
    assert {name.split(",")[0] for name in WALK} == verbs


@pytest.mark.parametrize("kind", ["weight", "sample_weight", "float weight", "clusters"])
@pytest.mark.parametrize("verb", WALK)
def test_rows_of_weight_0_change_no_answer(verb, kind):
    """Only a slice of such rows alone is one more row: of 0 rows, and without a score."""
    if kind in REFUSED.get(verb, ()):
        return
    options = {"sample_weight" if kind == "sample_weight" else "weight": "w", "positive": "p"}
    options |= {"cluster": "user"} if kind == "clusters" else {}
    plain, with_0 = (
        WALK[verb](frame.mcc(pred="pred", score="s", **options)) for frame in weighed(kind)
    )
    n = next((name for name in ("n", "n_before") if name in with_0.columns), None)
    of_0 = pl.lit(value=False) if n is None else pl.col(n).fill_null(0) == 0
    if "k" in with_0.columns and verb not in {"worst", "by, sets", "counts", "classes, interval"}:
        assert with_0.filter(of_0)["k"].to_list() == ["z"]
    assert_frame_equal(with_0.filter(~of_0), plain.filter(~of_0), rel_tol=1e-12, abs_tol=1e-14)
    scores = set(SURE + OF_SCORES) & {*with_0.columns}
    assert with_0.filter(of_0).select(scores).null_count().row(0) == (
        (with_0.filter(of_0).height,) * len(scores)
    )


def test_an_enum_has_classes_only_where_labels_occur():
    labels = pl.Enum(["p", "q", "never", "of weight 0"])
    log = pl.DataFrame(
        {"gold": ["p", "q", "q", "of weight 0"], "pred": ["p", "q", "p", "p"], "w": [1, 2, 1, 0]},
        {"gold": labels, "pred": labels, "w": pl.Int64},
    )
    described = log.mcc(weight="w")
    assert described.classes()["label"].to_list() == ["p", "q"]
    assert described.score(metrics="recall_macro")["recall_macro"].item() == (1 + 2 / 3) / 2
    matrix = described.confusion()
    assert matrix.columns == ["gold", *labels.categories, "n_null"]
    assert matrix.filter(pl.col("gold").is_in(["p", "q"])).drop("n_null").rows() == [
        ("p", 1, 0, 0, 0),
        ("q", 1, 2, 0, 0),
    ]
    assert matrix[2:].select(labels.categories.to_list()).sum().row(0) == (0, 0, 0, 0)


FLOATS = {"NaN": [math.nan], "beside": [math.nan, 5.0], "all": [-0.0, math.nan, None, 0.0]}
OF_K = {verb: ask for verb, ask in WALK.items() if '"k"' in inspect.getsource(ask)} | {
    "curve, slices": lambda log: log.curve("k"),
    "reweight": lambda log: log(gold=pl.when(pl.col("t") > 9).then("gold"), nulls="reweight").by(
        "k"
    ),
}


@pytest.mark.parametrize("verb", first(8, OF_K))
def test_nan_and_both_zeros_are_two_slices_on_every_engine(verb):
    """The answer is that of categories whose text is that of the floats."""
    rows = weighed("weight")[0]
    for values in FLOATS.values():
        keys = pl.Series("k", (values * rows.height)[: rows.height], pl.Float64)
        texts = keys.replace(-0.0, 0.0).cast(pl.String).cast(pl.Enum(["0.0", "5.0", "NaN"]))
        floats, expected = (_asked(verb, rows.with_columns(k=k).lazy()) for k in (keys, texts))
        of_memory = _asked(verb, rows.with_columns(keys).lazy(), "in-memory")
        eager = _asked(verb, rows.with_columns(keys))
        for found in (floats, of_memory, eager):
            assert_frame_equal(found, expected, rel_tol=1e-12, abs_tol=1e-14)


def _asked(
    verb: str, frame: pl.DataFrame | pl.LazyFrame, engine: str = "streaming"
) -> pl.DataFrame:
    log = frame.mcc(pred="pred", score="s", positive="p")
    found = OF_K[verb](log).lazy().collect(engine=engine)
    return found.with_columns(pl.col("^k$").cast(pl.String))


def test_a_key_with_a_time_zone_needs_no_zones_of_python(monkeypatch, tmp_path):
    """Windows has none; Polars has its own."""
    monkeypatch.setitem(sys.modules, "tzdata", None)
    zoneinfo.reset_tzpath([])
    times = pl.datetime_range(
        dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 3), "1h", time_zone="Asia/Thimphu", eager=True
    )
    label = pl.int_range(49) % 2
    log = pl.DataFrame({"ts": times, "day": times.dt.truncate("1d"), "c": "x"}).with_columns(
        gold=label, pred=label
    )
    log.write_parquet(tmp_path / "log.parquet")
    try:
        with pytest.raises(zoneinfo.ZoneInfoNotFoundError):
            log.row(0)
        log.mcc.check("day", min=0.5)
        log.mcc.worst("day", "c")
        log.mcc(time="ts", min_age="1d").report("day", "c", format="json")
        for form in ("table", "csv", "json", "markdown"):
            done = invoke("by", str(tmp_path / "log.parquet"), "--by", "day", "--format", form)
            assert "2026-01-02" in done.stdout, done.stderr
    finally:
        zoneinfo.reset_tzpath()

"""What cannot be scored is refused, with the column, the value and the way out."""

from __future__ import annotations

import re

import polars as pl
import pytest
from support import ask, in_turn, log_of

import polars_mcc
from polars_mcc import PredictionLog, each, trailing

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


@in_turn(
    texts=["gold", "pred"],
    of=[
        pytest.param(pl.DataFrame, id="DataFrame"),
        pytest.param(pl.DataFrame.lazy, id="LazyFrame"),
    ],
    dtype=[pl.String, pl.Categorical, pl.Enum(["True", "False"])],
)
def test_words_beside_booleans_are_compared(texts, dtype, of):
    """A cast of Booleans to text would give "true", which is no label "True"."""
    other = {"gold": "pred", "pred": "gold"}[texts]
    columns = {other: [True, False, None, True], texts: ["True", "False", "True", "False"]}
    log = pl.DataFrame(columns).with_columns(pl.col(texts).cast(dtype))
    with pytest.raises(pl.exceptions.SchemaError) as raised:
        of(log).mcc.score()
    advice = str(raised.value).rsplit("as in ", 1)[1]
    assert advice == f"pl.col('{texts}') == 'True'"
    mended = log.mcc(**{texts: eval(advice)}).score()  # noqa: S307 - our own
    assert mended.select("n", "n_null").row(0) == (3, 1)
    assert mended["mcc"].item() == pytest.approx(0.5)


@in_turn(kind=["weight", "label"], verb=["score", "by", "classes", "confusion", "counts", "worst"])
def test_an_error_about_a_value_is_its_message_alone(verb, kind):
    rows = pl.DataFrame({"k": ["a", "b"] * 5, "gold": [1, 0] * 5, "pred": [1, 1] * 5, "w": -1})
    if kind == "weight":
        log, told = rows.mcc(weight="w"), "weight 'w' has or adds up to -"
    else:
        log, told = rows.with_columns(gold=7, pred=True).mcc, "'gold' has the label 7, but beside "
    keys = () if verb in {"score", "confusion"} else ("k",)
    with pytest.raises(pl.exceptions.InvalidOperationError) as raised:
        getattr(log, verb)(*keys)
    assert str(raised.value).startswith(told)
    assert "\n" not in str(raised.value)
    assert "conversion" not in str(raised.value)


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
        (
            [],
            {"nulls": "keep"},
            "ValueError",
            "'drop', 'label', 'reweight', got 'keep'",
        ),
        ([], {"zero_division": "warn"}, "TypeError", "must be a number or None, got 'warn'"),
        ([1], {}, "TypeError", "key must be a column name or a polars expression, got 1"),
        ([["country"]], {}, "TypeError", "got ['country']; unpack a list with *"),
    ],
)
def test_refused_when_the_query_is_built(keys, arguments, error, message):
    expected = getattr(pl.exceptions, error, None) or {"ValueError": ValueError}.get(
        error, TypeError
    )
    for frame in (LOG, LOG.lazy()):
        with pytest.raises(expected) as raised:
            ask(frame, "by", *keys, **arguments)
        assert message in str(raised.value)


def test_many_columns_are_not_all_listed():
    wide = pl.DataFrame({f"c{i}": [1] for i in range(50)})
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="and 40 more"):
        wide.mcc.score()
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="There are no columns"):
        pl.DataFrame().mcc.score()


def test_of_many_columns_the_nearest_are_listed():
    wide = pl.DataFrame({f"c{i}": [1] for i in range(50)} | {"golden": [1], "note": ["x"]})
    with pytest.raises(pl.exceptions.ColumnNotFoundError) as raised:
        wide.mcc.score()
    told, call = str(raised.value).split(" Name the labels: ")
    assert told.startswith("no column 'gold' (the true label); did you mean 'golden'? The columns")
    assert told.endswith(", 'golden', 'note' and 42 more."), "the nearest ten, in their order"
    assert call == 'df.mcc(gold="...", pred="...").score()'


def test_what_matches_no_column_lists_few_of_them():
    wide = pl.DataFrame({"gold": [1], "pred": [1], **{f"c{i}": [1] for i in range(50)}})
    nothing = pl.selectors.string()
    for ask_it in (lambda: wide.mcc(pred=nothing), lambda: wide.mcc.by(each(nothing))):
        with pytest.raises(pl.exceptions.ColumnNotFoundError, match=r"'c7' and 42 more$"):
            ask_it()


@pytest.mark.parametrize(
    ("verb", "options", "message"),
    [
        (
            "by",
            {"metric": "accuracy"},
            "by() has no option 'metric'; did you mean metrics=...? The options are metrics, ci, ",
        ),
        (
            "by",
            {"groups": "race"},
            (
                "by() has no option 'groups'. The options are metrics, ci, method, long. Keys come "
                "first, without a name, as in by('country')."
            ),
        ),
        ("worst", {"metrics": ["mcc"]}, "worst() has no option 'metrics'; did you mean metric="),
        ("score", {"zzz": 1}, "score() has no option 'zzz'. The options are metrics, ci, method."),
        (
            "score",
            {"positive": "u", "metrics": "tpr"},
            "score() has no option 'positive', but the log has, as in log(positive=...).score(...)",
        ),
        ("engine_counts", {"ci": 0.9}, "engine_counts() has no option 'ci'. It has none."),
    ],
)
def test_an_unknown_option_of_a_verb(verb, options, message):
    with pytest.raises(TypeError) as raised:
        getattr(LOG.mcc, verb)(**options)
    assert str(raised.value).startswith(message)


RECALL = pl.col("recall").mean()


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        (["recall", RECALL], "two columns named 'recall'"),
        ([RECALL, RECALL], "as in .alias('my_recall')"),
        (["mcc", "kappa", "mcc"], "two columns named 'mcc'"),
        (pl.col("n").max(), "answers use this name for another column"),
        (RECALL.alias("^m$"), "Polars takes the name '^m$' for a pattern"),
    ],
)
def test_metrics_of_one_name(metrics, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ask(LOG, "by", "country", positive="u", metrics=metrics)


def test_an_expression_that_names_a_metric_says_how_to_ask_for_it():
    message = "no column 'fdr' for a metric; for the metric of this name, pass 'fdr'; use columns"
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match=re.escape(message)):
        LOG.mcc(positive="u").by(metrics=pl.col("fdr").min())


@pytest.mark.parametrize("name", ["npv", "n"])
def test_a_metric_cannot_be_registered_under_a_name_that_is_taken(name):
    with pytest.raises(ValueError, match=f"'{name}' is a built-in metric or a col") as raised:
        polars_mcc.register_metric(name, RECALL)
    assert str(raised.value).endswith(
        "; use another name, such as 'my_npv', or the built-in metric, as in metrics='npv'"
        if name == "npv"
        else "; use another name, such as 'my_n'"
    )


def test_windows_of_text_say_how_to_convert_it():
    log = LOG.with_columns(ts=pl.Series(["2026-03-01 12:00:00", "2026-03-09 13:00:00"]))
    with pytest.raises(pl.exceptions.SchemaError) as raised:
        log.mcc.by(trailing("ts", "7d"))
    told = str(raised.value)
    assert told.startswith(
        "index 'ts' must be Date or Datetime, but is String; parse it first, as "
    )
    texts = ["2026-03-31T12:00", "2026-03-31T12:00Z", "31/3/2026"]
    ways_out = re.findall(r"pl\.col\('ts'\)\S+\)", told)
    for text, way_out in zip(texts, ways_out, strict=True):  # They are to be pasted.
        parsed = pl.select(ts=pl.lit(text)).select(eval(way_out, {"pl": pl}))  # noqa: S307
        assert f"{parsed.item():%d.%m.%Y}" == "31.03.2026"
    window = trailing(eval(ways_out[0], {"pl": pl}), "7d")  # noqa: S307
    assert log.mcc.by(window)["n"].to_list() == [1, 1]
    with pytest.raises(
        pl.exceptions.SchemaError,
        match=r"Int64; make it a time: pl.from_epoch\('number', 's'\) if it",
    ):
        log.mcc.by(trailing("number", "7d"))


ADDED = {
    "pandas": "df.assign(ts_key=...)",
    "pyarrow": "df.append_column('ts_key', ...)",
    "duckdb": "df.project('*, ... AS ts_key')",
    "ibis": "df.mutate(ts_key=...)",
    "dask": "df.assign(ts_key=...)",
}
"""How each engine adds a column."""


@pytest.mark.filterwarnings("ignore")  # those of the engines
@pytest.mark.parametrize("name", ADDED)
def test_an_expression_on_a_frame_of_another_engine(name):
    """The engine adds the column by a call of its own."""
    pytest.importorskip("pyarrow")
    module = pytest.importorskip({"dask": "dask.dataframe"}.get(name, name))
    if name != "pyarrow":
        pytest.importorskip("pandas")
    rows = LOG.select("gold", "pred", ts="country")
    frame = {
        "pandas": rows.to_pandas,
        "pyarrow": rows.to_arrow,
        "duckdb": lambda: module.from_arrow(rows.to_arrow()),
        "ibis": lambda: module.memtable(rows.to_pandas()),
        "dask": lambda: module.from_pandas(rows.to_pandas(), npartitions=1),
    }[name]()
    with pytest.raises(TypeError) as raised:
        PredictionLog(frame).by(pl.col("ts").str.to_datetime())
    assert str(raised.value).endswith(
        f"and {name} cannot compute it: add it as a column and pass its name, as in {ADDED[name]}"
    )
    method = getattr(frame, ADDED[name].split("(")[0].removeprefix("df."))
    added = {
        "pyarrow": lambda: method("ts_key", frame["ts"]),
        "duckdb": lambda: method("*, ts AS ts_key"),
    }.get(name, lambda: method(ts_key=frame["ts"]))()
    answer = PredictionLog(added).by("ts_key").lazy().collect()
    assert answer.equals(rows.mcc.by(pl.col("ts").alias("ts_key")))


@pytest.mark.parametrize("name", ["pandas", "pyarrow", "duckdb"])
def test_words_beside_booleans_are_compared_by_the_engine(name):
    pytest.importorskip("pyarrow")
    module = pytest.importorskip(name)
    rows = pl.DataFrame({"gold": [True, False, True], "pred": ["True", "False", "False"]})
    df = {
        "pandas": rows.to_pandas,
        "pyarrow": rows.to_arrow,
        "duckdb": lambda: module.from_arrow(rows.to_arrow()),
    }[name]()
    with pytest.raises(pl.exceptions.SchemaError) as raised:
        PredictionLog(df).score()
    names = {"df": df}
    if name == "pyarrow":
        names["pc"] = pytest.importorskip("pyarrow.compute")
    mended = eval(str(raised.value).rsplit("as in ", 1)[1], names)  # noqa: S307 - our own
    found = PredictionLog(mended, pred="pred_label").score().lazy().collect()
    assert found["mcc"].item() == pytest.approx(0.5)


def test_messages_on_a_frame_of_another_engine_have_no_call_of_polars():
    pytest.importorskip("pyarrow")
    table = LOG.drop("list").with_columns(ts=pl.lit("2026-03-01")).to_arrow()
    refused = [
        lambda: PredictionLog(table.drop_columns(["gold"])).by("country"),
        lambda: PredictionLog(table).by("contry"),
        lambda: PredictionLog(table, weight="country").by(),
        lambda: PredictionLog(table).by(metrics="tpr"),
        lambda: PredictionLog(table).by(metric="mcc"),
        lambda: PredictionLog(table).by(positive="u"),
        lambda: PredictionLog(table).by("country", "country"),
    ]
    for ask_it in refused:
        with pytest.raises((TypeError, ValueError, pl.exceptions.PolarsError)) as raised:
            ask_it()
        assert ".mcc" not in str(raised.value)
        assert "pl." not in str(raised.value)


def test_other_frames_are_refused():
    with pytest.raises(TypeError, match=r"or a frame that narwhals takes, got builtins\.dict$"):
        PredictionLog({"gold": [1], "pred": [1]})


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


@in_turn(column=["n", "mcc"], verb=["by", "classes"])
def test_what_cannot_be_counted_exactly_is_an_error(run, verb, column):
    log = log_of([("x", 0, 0), ("x", 1, 0), ("x", 2, 1)]).with_columns(w=2**62)
    with pytest.raises(pl.exceptions.InvalidOperationError, match=r"add up to at least \d+, more"):
        run(log, lambda frame: ask(frame, verb, "key", weight="w").select(column))

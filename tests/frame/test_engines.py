"""Frames of other engines: these count, Polars finishes, and the answer is Polars'."""

from __future__ import annotations

import datetime as dt
import functools
import importlib
import re
import subprocess
import sys

import polars as pl
import pytest
from engine_cases import (
    CALLS,
    DIGITS,
    LABELS,
    SCORED_BY_SQL,
    check_equal,
    check_float_weights,
    check_sql,
    log,
)
from polars.testing import assert_frame_equal
from support import ask, in_turn, named, some_slow

import polars_mcc
from polars_mcc import PredictionLog, cube, each, trailing
from polars_mcc._frame import engines, pandas_and_pyarrow

pytestmark = pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")

OURS = log()


def _pandas(frame: pl.DataFrame):
    return frame.to_pandas()


def _pandas_arrow(frame: pl.DataFrame):
    return frame.to_pandas(use_pyarrow_extension_array=True)


def _pyarrow(frame: pl.DataFrame):
    return frame.to_arrow()


def _duckdb(frame: pl.DataFrame):
    return importlib.import_module("duckdb").from_arrow(frame.to_arrow())


def _dask(frame: pl.DataFrame):
    return importlib.import_module("dask.dataframe").from_pandas(
        _pandas_arrow(frame), npartitions=3
    )


def _ibis(frame: pl.DataFrame):
    ibis = importlib.import_module("ibis")
    return ibis.memtable(frame.to_arrow())


def _narwhals(frame: pl.DataFrame):
    return importlib.import_module("narwhals").from_native(_duckdb(frame))


ENGINES = {
    "pandas": (_pandas, "pandas"),
    "pandas of arrow": (_pandas_arrow, "pandas"),
    "pyarrow": (_pyarrow, "pyarrow"),
    "duckdb": (_duckdb, "duckdb"),
    "dask": (_dask, "dask"),
    "ibis": (_ibis, "ibis"),
    "narwhals": (_narwhals, "duckdb"),
}
EAGER = {"pandas", "pandas of arrow", "pyarrow"}


def maker(name: str):
    """What makes a frame of an engine of one of Polars."""
    make, module = ENGINES[name]
    for needed in (module, "pyarrow"):
        pytest.importorskip(needed)
    return make


@functools.cache
def both(name: str):
    """The frame of an engine, and the one of Polars that has its rows."""
    theirs = maker(name)(OURS)
    # pandas has no dates and no integers that are missing: what Polars makes of its columns.
    return theirs, pl.from_pandas(theirs) if name == "pandas" else OURS


@pytest.fixture(params=some_slow(ENGINES, "pandas of arrow", "dask", "ibis", "narwhals"))
def engine(request):
    """The name of an engine, and what makes its frame of one of Polars."""
    return request.param, maker(request.param)


@pytest.fixture
def frame(engine):
    return both(engine[0])


@in_turn(3, call=named(CALLS), name=ENGINES)
def test_the_answer_is_that_of_polars(call, name):
    check_equal(*both(name), call)


def test_weights_that_are_floats(frame):
    check_float_weights(*frame)


# A column of pandas without values has no dtype.
@in_turn(
    3,
    name=[name for name in ENGINES if name != "pandas"],
    call=["by", "score", "counts", "compare", "weight"],
)
def test_of_no_rows_and_of_one(name, call):
    for rows in (OURS.head(0), OURS.head(1)):
        check_equal(maker(name)(rows), rows, CALLS[call])


def test_lazy_in_lazy_out(engine, frame):
    """A lazy engine is asked on `collect`, once; columns in memory are read at once, and once."""
    name, _ = engine
    asked = []

    def noted(read):
        def note(*arguments):
            asked.append(arguments)
            return read(*arguments)

        return note

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "collected", noted(engines.collected))
        patch.setattr(pandas_and_pyarrow.InMemory, "read", noted(pandas_and_pyarrow.InMemory.read))
        answer = PredictionLog(frame[0]).by(cube("country", "device"), ci=0.95)
        assert isinstance(answer, pl.DataFrame if name in EAGER else pl.LazyFrame)
        assert len(asked) == (name in EAGER)
        answer.lazy().collect()
        assert len(asked) == 1


def test_only_counts_travel(frame):
    """What the engine is asked for has a row per combination that occurs."""
    keys = ["country", "device", "gold", "pred"]
    counted = PredictionLog(frame[0]).engine_counts("country", "device")
    travelled = (
        importlib.import_module("narwhals")
        .from_native(counted)
        .lazy()
        .collect("pyarrow")
        .to_arrow()
    )
    in_polars = pl.DataFrame(pl.from_arrow(travelled))
    assert_frame_equal(
        in_polars.select(pl.col(keys).cast(pl.String), "n"),
        OURS.group_by(keys).agg(n=pl.len().cast(pl.Int64)),
        check_row_order=False,
        check_dtypes=False,
    )
    assert (
        PredictionLog(in_polars, weight="n")
        .by("country", "device")
        .equals(OURS.mcc.by("country", "device"))
    )


def test_counts_of_an_engine_are_a_log_for_it(frame):
    counted = PredictionLog(frame[0], pred=["pred", "other"]).engine_counts("country", "day")
    answer = PredictionLog(counted, weight="n", pred="other").compare("country", baseline="pred")
    want = OURS.mcc(pred="other").compare("country", baseline="pred")
    assert_frame_equal(answer.lazy().collect(), want, check_exact=True)


def test_an_engine_counts_rows_of_its_own_columns(frame):
    for key in (pl.col("country").alias("land"), each("country")):
        with pytest.raises(TypeError, match="engine_counts takes names of columns, got"):
            PredictionLog(frame[0]).engine_counts(key)
    for weight in ("weight", "sample_weight"):
        with pytest.raises(ValueError, match=f"engine_counts does not support {weight}"):
            PredictionLog(frame[0], **{weight: "n"}).engine_counts("country")


def test_an_expression_that_is_computed_is_refused(engine, frame):
    """It says how to write it, and that works."""
    _, make = engine
    message = (
        r"key .*dt\.truncate.* is a Polars expression, and \w+ cannot compute it: add it as a co"
    )
    with pytest.raises(TypeError, match=message):
        PredictionLog(frame[0]).by(pl.col("day").dt.truncate("1w"))
    for arguments, role in {
        "gold": "gold",
        "pred": "pred",
        "weight": "weight",
        "sample_weight": "sample_weight",
    }.items():
        with pytest.raises(TypeError, match=f"^{role} "):
            ask(frame[0], "by", **{arguments: pl.col("n") + 1, **_labels(arguments)})
    with pytest.raises(TypeError, match="^cluster "):
        PredictionLog(frame[0], cluster=pl.col("user") // 2).by(ci=0.9)
    with pytest.raises(TypeError, match="^index "):
        PredictionLog(frame[0]).by(trailing(pl.col("day").dt.truncate("1w"), "2w"))
    with pytest.raises(TypeError, match="^before "):
        PredictionLog(frame[0]).drift(before=pl.col("user") < 9, after="late")
    nw = importlib.import_module("narwhals")
    with_key = nw.from_native(make(OURS)).with_columns(
        tablets=nw.col("device").fill_null("pc") == "tv"
    )
    answer = PredictionLog(with_key).by("tablets").lazy().collect()
    key = (pl.col("device").fill_null("pc") == "tv").alias("tablets")
    assert answer.equals(OURS.mcc.by(key))


def _labels(role: str) -> dict[str, str]:
    """Integers, where an expression over integers takes the place of a label."""
    return {"gold": {"pred": "n"}, "pred": {"gold": "n"}}.get(role, {})


def test_a_column_that_is_not_there_is_named(frame):
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="did you mean 'country'"):
        PredictionLog(frame[0]).by("county")
    with pytest.raises(pl.exceptions.SchemaError, match="'gold' is String, 'user' is Int"):
        PredictionLog(frame[0], pred="user").by("country")
    with pytest.raises(pl.exceptions.DuplicateError, match="key 'n' has the name"):
        PredictionLog(frame[0]).engine_counts("n")


def test_a_dtype_that_polars_has_not_is_named():
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    log = duckdb.sql("SELECT uuid() AS user, 1 AS gold, 1 AS pred")
    message = "column 'user' has a dtype of duckdb that narwhals cannot convert"
    with pytest.raises(pl.exceptions.SchemaError, match=message):
        PredictionLog(log).by("user")
    assert PredictionLog(log).by().collect()["n"].item() == 1


@pytest.mark.parametrize("module", ["duckdb", "ibis"])
def test_lists_of_labels(module):
    """Where the engine groups by lists."""
    pytest.importorskip(module)
    pytest.importorskip("pyarrow")
    rows = OURS.with_columns(
        pl.concat_list("gold", "other").alias("gold"), pl.concat_list("pred", "other").alias("pred")
    )
    make, _ = ENGINES[module]
    check_equal(make(rows), rows, CALLS["by"])
    check_equal(make(rows), rows, CALLS["classes"])


@pytest.mark.parametrize("name", ["pyarrow", "duckdb", "pandas of arrow"])
def test_weights_are_checked_and_missing_ones_counted(name):
    make, module = ENGINES[name]
    for needed in (module, "pyarrow"):
        pytest.importorskip(needed)
    rows = OURS.head(4).with_columns(n=pl.Series([-1, 2, None, None], dtype=pl.Int64), country=1)
    with pytest.raises(
        pl.exceptions.InvalidOperationError, match="weight 'n' has or adds up to -1"
    ):
        PredictionLog(make(rows), weight="n").by().lazy().collect()
    rows = rows.with_columns(n=pl.Series([1, 2, None, None], dtype=pl.Int64))
    check_equal(make(rows), rows, CALLS["weight"])
    huge = rows.with_columns(n=2**62, gold=pl.lit("a"), pred=pl.lit("a"))
    with pytest.raises(pl.exceptions.InvalidOperationError, match=r"add up to at least \d{19}"):
        PredictionLog(make(huge), weight="n").by().lazy().collect()


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A store of the counts of the digits."""
    store = tmp_path_factory.mktemp("store")
    polars_mcc.keep_counts(DIGITS, store, "ink_band", "confidence_band")
    return store


def test_duckdb_scores_counts_with_the_sql_of_the_page(stored):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.read_parquet(f"{stored}/*.parquet").create_view("counts")
    check_sql(connection.sql(SCORED_BY_SQL).fetchall())


def test_the_plans_that_the_page_shows():
    """Their steps, in their order; how they are laid out is up to the engine."""
    duckdb, ibis = pytest.importorskip("duckdb"), pytest.importorskip("ibis")
    plan = PredictionLog(duckdb.read_parquet(str(DIGITS))).engine_counts("ink_band").explain()
    steps = re.findall(r"hash.group.by|projection(?!s)|parquet.scan", plan, re.IGNORECASE)
    assert [step.lower().replace("_", " ") for step in steps[:3]] == [
        *("hash group by", "projection", "parquet scan")
    ]
    sql = str(
        ibis.to_sql(PredictionLog(ibis.memtable(pl.read_parquet(DIGITS))).engine_counts("ink_band"))
    )
    assert 'COUNT(*) AS "n"' in sql
    assert re.search(r"GROUP BY\s+1,\s+2,\s+3", sql)
    plan = pl.scan_parquet(DIGITS).mcc.counts("ink_band").explain()
    steps = re.findall(r"SORT BY|AGGREGATE|Parquet SCAN|PROJECT 3/12 COLUMNS", plan)
    assert steps == ["SORT BY", "AGGREGATE", "Parquet SCAN", "PROJECT 3/12 COLUMNS"]


def test_a_dataset_of_pyarrow_is_a_log(tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    for part in range(3):
        OURS[part::3].write_parquet(tmp_path / f"{part}.parquet")
    log = pl.scan_pyarrow_dataset(dataset.dataset(tmp_path))
    want = OURS.mcc.by("country", ci=0.95)
    assert_frame_equal(PredictionLog(log).by("country", ci=0.95).collect(), want, check_exact=True)


def test_a_frame_of_polars_that_narwhals_has_wrapped_is_unwrapped():
    narwhals = pytest.importorskip("narwhals")
    answer = PredictionLog(narwhals.from_native(OURS.lazy())).by(pl.col("day").dt.truncate("1w"))
    assert isinstance(answer, pl.LazyFrame)
    assert "PYTHON" not in answer.explain()


def test_other_frames_are_refused():
    with pytest.raises(TypeError, match="or a frame that narwhals takes, got builtins.int"):
        PredictionLog(5)
    with pytest.raises(TypeError, match="is for logs of other engines"):
        OURS.mcc.engine_counts()


@pytest.mark.slow
def test_without_narwhals_the_extra_is_named():
    code = (
        "import sys; sys.modules['narwhals'] = None; import polars_mcc\n"
        "try: polars_mcc.PredictionLog({})\n"
        "except TypeError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("expected a polars DataFrame or LazyFrame, got builtins.dict; ")
    assert "pip install 'polars-mcc[engines]'" in done.stdout


DAY = dt.date(2026, 3, 1)
LATE = pl.DataFrame(
    {
        "user": [*range(40), *range(0, 40, 2), 5, 5, None, 99],
        "label": [LABELS[user % 7] for user in range(40)]
        + [LABELS[user % 5] for user in range(0, 40, 2)]
        + ["emu", None, "cat", "cat"],
        "at": [None if user % 3 else DAY for user in range(40)]
        + [DAY + dt.timedelta(days=1)] * 20
        + [DAY + dt.timedelta(days=2)] * 4,
    },
    schema_overrides={"user": pl.Int32},
)
"""Labels of users: half of them have a second one, which is newer."""


@pytest.mark.parametrize("engine", ENGINES)
def test_labels_that_come_later_are_joined_by_the_engine(engine):
    make = maker(engine)
    late = LATE.drop_nulls("user") if engine == "pandas" else LATE  # It would make them floats.
    options = {"on": "user", "gold": "label", "latest": "at"}
    rows = OURS.drop("n").filter(pl.col("user") > 2)
    described = PredictionLog(make(rows), outcomes=make(late), **options)
    ours = rows.mcc(outcomes=late, **options)
    assert 0 < ours.by()["n_waiting"].item() < ours.by()["n"].item()
    for keys, asked in ((["country"], {}), (["country", "device"], {"ci": 0.95})):
        answer = described.by(*keys, **asked)
        assert isinstance(answer, pl.DataFrame if engine in EAGER else pl.LazyFrame)
        assert_frame_equal(answer.lazy().collect(), ours.by(*keys, **asked))
    without_time = {**options, "latest": None}
    with pytest.raises(pl.exceptions.InvalidOperationError, match="has two labels in 'label'"):
        PredictionLog(make(rows), outcomes=make(late), **without_time).by().lazy().collect()
    tied = pl.concat([late, late.tail(1).with_columns(label=pl.lit("emu"))])
    with pytest.raises(pl.exceptions.InvalidOperationError, match="user 99 has two labels at its"):
        PredictionLog(make(rows), outcomes=make(tied), **options).by().lazy().collect()
    other = _pyarrow(late) if engine not in EAGER else _duckdb(late)
    with pytest.raises(TypeError, match="two engines"):
        PredictionLog(make(rows), outcomes=other, **options)

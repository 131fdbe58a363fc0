"""Codes of local Parquet files and the plain plan count alike, to the last bit."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from polars.testing import assert_frame_equal
from support import some_slow

from polars_mcc import PredictionLog, cube, each, trailing
from polars_mcc._counts import coded, codes, parquet
from polars_mcc._store.rows import counts_to_keep

TEXTS = ["", "a", "b", "A", "ä", "b ", "null"]
DTYPES: dict[str, tuple[pl.DataType, list]] = {
    "text": (pl.String(), TEXTS),
    "enum": (pl.Enum(TEXTS), TEXTS),
    "category": (pl.Categorical(), TEXTS),
    "int8": (pl.Int8(), [-128, 0, 1, 127]),
    "int64": (pl.Int64(), [-(2**63), -1, 0, 1, 5, 2**63 - 1]),
    "near": (pl.Int64(), [2**62, 2**62 + 7]),
    "uint64": (pl.UInt64(), [2**64 - 1, 2**64 - 3]),
    "boolean": (pl.Boolean(), [False, True]),
    "date": (pl.Date(), [dt.date(1969, 12, 31), dt.date(1970, 1, 2), dt.date(1970, 2, 2)]),
    "float": (pl.Float64(), [0.0, -0.0, float("nan"), 1.5]),
}
# Polars 2.0 panics if it joins what an empty file has: "min > max ... min = 1.0, max = 0.0".
FEWEST = int(pl.__version__.startswith("2.0."))
LABELS = ["text", "enum", "category", "int8", "near", "boolean", "date"]


@pytest.fixture(autouse=True)
def small_files_are_worth_it(monkeypatch):
    monkeypatch.setattr(coded, "_WORTH", 0)
    monkeypatch.setattr(coded, "_WORTH_ONE", 0)
    monkeypatch.setattr(parquet, "_ROWS", 0)


@pytest.fixture
def reads(monkeypatch) -> list[str]:
    """The row groups that are read."""
    found: list[str] = []
    read = parquet.RowGroup.read

    def noted(group: parquet.RowGroup) -> Any:
        found.append(f"{Path(group.path).name}:{group.group}")
        return read(group)

    monkeypatch.setattr(parquet.RowGroup, "read", noted)
    return found


def is_coded(query: pl.LazyFrame) -> bool:
    return "PYTHON SCAN" in query.explain()


@st.composite
def logs(draw) -> list[pl.DataFrame]:
    """The files of a log."""
    label = draw(st.sampled_from(LABELS))
    kinds = {"a": draw(st.sampled_from([*DTYPES])), "b": draw(st.sampled_from([*DTYPES]))}
    kinds |= dict.fromkeys(("gold", "pred", "other"), label)
    n_files = draw(st.integers(1, 3))
    files = []
    for _ in range(n_files):
        height = draw(st.integers(FEWEST, 25))
        columns = {}
        for name, kind in kinds.items():
            dtype, values = DTYPES[kind]
            some = draw(st.lists(st.sampled_from([None, *values]), min_size=1, max_size=4))
            listed = [some[draw(st.integers(0, len(some) - 1))] for _ in range(height)]
            columns[name] = pl.Series(listed, dtype=dtype)
        files.append(pl.DataFrame(columns).select(draw(st.permutations([*columns]))))
    return files


def scanned(folder: Path, files: list[pl.DataFrame], rows: int = 7) -> pl.LazyFrame:
    for place, file in enumerate(files):
        day = folder / f"day=2026-01-{place % 2 + 1:02}" / f"city={'abä'[place]}"
        day.mkdir(parents=True, exist_ok=True)
        file.write_parquet(day / f"{place}.parquet", row_group_size=rows)
    return pl.scan_parquet(folder, hive_partitioning=True, include_file_paths="file")


VERBS = {
    "by": lambda log: log.by("a", "b"),
    "whole": lambda log: log.score(),
    "by day": lambda log: log.by("day", "a"),
    "by file": lambda log: log.by("file", "b"),
    "by city": lambda log: log.by("city", ci=0.9),
    "interval": lambda log: log.by("a", ci=0.95),
    "null is a label": lambda log: log(nulls="label").by("b"),
    "metrics": lambda log: log.by("a", metrics=["accuracy", "kappa"]),
    "models": lambda log: log(pred=["pred", "other"]).by("b"),
    "models, interval": lambda log: log(pred=["other", "pred"]).by("a", ci=0.9),
    "each": lambda log: log.by(each("a", "b", total=True)),
    "cube": lambda log: log(pred=["pred", "other"]).by("day", cube("a", "b"), ci=0.9),
    "counts": lambda log: log.counts("b", "a"),
    "classes": lambda log: log.classes("a"),
    "confusion": lambda log: log.confusion("a", long=True),
    "clusters": lambda log: log(cluster="b").by("a", ci=0.9),
    "windows": lambda log: log.by(trailing("day", "2d")),
    "store": lambda log: counts_to_keep(log(pred=["pred", "other"]), ["b", "a"]).sort(pl.all()),
}
FILTERS = {
    "all": lambda log: log,
    "day": lambda log: log.filter(pl.col("day") > dt.date(2026, 1, 1)),
    "equal": lambda log: log.filter(pl.col("a") == pl.col("a")),
    "labels": lambda log: log.filter(
        (pl.col("other") == pl.col("gold")) | (pl.col("day") <= dt.date(2026, 1, 1))
    ),
    "null": lambda log: log.filter(pl.col("a").is_not_null()),
    "between": lambda log: log.filter(
        pl.col("day").is_between(dt.date(2026, 1, 1), dt.date(2026, 1, 2), closed="right")
        | ~pl.col("other").is_null()
    ),
    "some": lambda log: log.filter(
        pl.col("a").is_in(log.head(9).collect()["a"].implode(), nulls_equal=True)
    ),
    "renamed": lambda log: log.rename({"a": "b", "b": "a"}),
    "first": lambda log: log.head(11),
    "key": lambda log: log.with_columns(a=pl.col("a").cast(pl.String) + "x"),
}
LIMITS = [(2**20, 2**15), (2**20, 0), (2**8, 0), (4, 0)]


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
@given(logs(), st.sampled_from([*FILTERS]), st.sampled_from(LIMITS))
@settings(
    max_examples=max(2, settings.default.max_examples // 2),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_both_ways_give_one_answer(tmp_path_factory, verb, files, kind, limits):
    frame = FILTERS[kind](scanned(tmp_path_factory.mktemp("log"), files))
    found = verb(PredictionLog(frame))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes, "MOST", limits[0])
        patch.setattr(codes, "_FEW", limits[1])
        answer = found.collect()
        expected = verb(PredictionLog(frame, portable=True)).collect()
    # The influences of clusters are floats, which threads add in any order.
    is_exact = "n_clusters" not in answer.columns
    assert_frame_equal(answer, expected, check_exact=is_exact, rel_tol=1e-12, abs_tol=1e-12)


@pytest.fixture
def log(tmp_path) -> pl.LazyFrame:
    """A log of text in three files, with other dictionaries in each row group."""
    rng = np.random.default_rng(0)
    size = 4000
    names = [f"name-{place}" for place in range(40)]
    gold = rng.integers(0, 5, size)
    pred = np.where(rng.random(size) < 0.8, gold, rng.integers(0, 5, size))
    frame = pl.DataFrame(
        {
            "key": [names[place] for place in rng.integers(0, 40, size)],
            "number": rng.integers(0, 9, size),
            "gold": [names[place] for place in gold],
            "pred": [names[place] for place in pred],
            "other": [names[place] for place in rng.permutation(gold)],
        }
    )
    for place in range(3):
        part = frame[place * 1300 : (place + 1) * 1300]
        part.write_parquet(tmp_path / f"{place}.parquet", row_group_size=500)
    return pl.scan_parquet(tmp_path / "*.parquet")


GROUPS = [f"{file}.parquet:{group}" for file in range(3) for group in range(3)]
ONCE = {
    "by": lambda log: log.by("key"),
    "interval": lambda log: log.by("key", ci=0.95, metrics=["mcc", "kappa", "f1_macro"]),
    "compare": lambda log: log(pred=["pred", "other"]).compare("key"),
    "contrast": lambda log: log.contrast("key"),
    "contrast, best": lambda log: log.contrast("key", to="best"),
    "classes": lambda log: log.classes("key", ci=0.9),
    "sets": lambda log: log.by(cube("key", "number"), ci=0.95),
    "worst": lambda log: log.worst("key", "number"),
    "many labels": lambda log: log.by("key"),
}


@pytest.mark.parametrize("verb", some_slow(ONCE, "contrast"))
def test_each_row_group_is_read_once_and_on_collect(log, reads, verb, monkeypatch):
    if verb == "many labels":
        monkeypatch.setattr(codes, "_FEW", 0)
    query = ONCE[verb](log.mcc)
    assert reads == []
    answer = query.collect()
    assert sorted(reads) == GROUPS
    expected = ONCE[verb](log.mcc(portable=True)).collect()
    assert sorted(reads) == GROUPS, "the plain plan reads with Polars"
    assert_frame_equal(answer, expected, rel_tol=1e-12, abs_tol=1e-12)


def test_a_query_of_an_answer_is_that_of_the_collected_answer(log):
    query = log.mcc.by("key", ci=0.95)
    assert is_coded(query)
    answer = query.collect()
    some = pl.col("key") > "name-20"
    assert_frame_equal(query.filter(some).collect(), answer.filter(some))
    assert_frame_equal(query.select("mcc").head(3).collect(), answer.select("mcc").head(3))
    counts = log.mcc.counts("key")
    assert_frame_equal(counts.filter(some).collect(), counts.collect().filter(some))


def test_what_is_no_local_file_of_text_goes_the_plain_way(log, tmp_path):
    files = str(tmp_path / "*.parquet")
    frame = log.collect()
    frame.write_csv(tmp_path / "log.csv")
    numbers = pl.col("gold", "pred").str.slice(5).cast(pl.Int64)
    assert is_coded(log.mcc.by("key"))
    number = pl.col("number")
    for kept in (
        number > 3,
        number.is_between(2, 9) & ~number.is_in([3, 4]),
        pl.col("key").is_in(["name-1", "name-2"]) | number.is_null(),
    ):
        assert is_coded(log.filter(kept).mcc.by("key"))
    for plain in (
        log.mcc(portable=True),
        log.with_columns(w=2.0).mcc(weight="w"),
        log.with_columns(pl.col("gold", "pred") + "x").mcc,
        log.join(log.unique("key"), on="key", how="semi").mcc,
        log.with_columns(numbers).select("gold", "pred", key="number").mcc,
        log.head(100).mcc,
        log.with_columns(key=pl.col("key").shift()).mcc,
        log.unique().mcc,
        pl.scan_csv(tmp_path / "log.csv").mcc,
        frame.lazy().mcc,
        pl.scan_parquet(files, row_index_name="at").filter(pl.col("at") > 1).mcc,
        pl.scan_parquet(files, n_rows=9).mcc,
        pl.concat([log, log]).mcc,
    ):
        assert not is_coded(plain.by("key"))


CONSTANTS = {
    "nanoseconds": pl.Series([2**60 + 1, 2**60 + 2]).cast(pl.Datetime("ns")),
    "zone": pl.Series([2**50, 2**50 + 1]).cast(pl.Datetime("us", "Europe/Berlin")),
    "duration": pl.Series([1, 2]).cast(pl.Duration("ns")),
    "decimal": pl.Series(["1.10", "1.20"]).cast(pl.Decimal(38, 20)),
    "float": pl.Series([0.1, 0.1 + 2**-56]),
    "single": pl.Series([0.1, 0.2], dtype=pl.Float32),
    "wide": pl.Series([2**64 - 1, 2**64 - 2], dtype=pl.UInt64),
    "bytes": pl.Series([b"a", b"b"]),
    "enum": pl.Series(["b", "a"], dtype=pl.Enum(["b", "a"])),
    "category": pl.Series(["b", "a"], dtype=pl.Categorical),
}


@pytest.mark.parametrize("values", CONSTANTS.values(), ids=CONSTANTS)
def test_a_constant_of_a_filter_keeps_its_digits(log, tmp_path, values):
    one = pl.concat([values] * 1950).rename("one")
    log.collect().with_columns(one).write_parquet(tmp_path / "0.parquet")
    frame = pl.scan_parquet(tmp_path / "0.parquet")
    constant = pl.lit(values[0], dtype=values.dtype)
    if values.dtype.is_temporal():  # Python's times have no nanoseconds.
        constant = pl.lit(values.to_physical()[0]).cast(values.dtype)
    for kept in (pl.col("one") <= constant, pl.col("one").is_in([values[0]])):
        found = frame.filter(kept)
        assert_frame_equal(
            found.mcc.by("key").collect(), found.mcc(portable=True).by("key").collect()
        )


def test_a_file_that_is_gone_or_changed_is_an_error_of_polars(log, tmp_path):
    query = log.mcc.by("key")
    frame = log.collect()
    frame.with_columns(gold=1).write_parquet(tmp_path / "1.parquet")
    with pytest.raises(pl.exceptions.PolarsError):
        query.collect()
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"1\.parquet"):
        query.collect()


WRITERS: dict[str, dict[str, Any]] = {
    "pages that fell back to plain": {"dictionary_pagesize_limit": 60, "data_page_size": 100},
    "no dictionary": {"use_dictionary": False},
    "of one row group": {"row_group_size": 10**6},
    "of other pages": {"data_page_version": "2.0", "compression": "none"},
    "without a schema of Arrow": {"store_schema": False},
}


@pytest.mark.parametrize("options", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("kind", ["text", "large text", "dictionary"])
def test_files_of_other_writers(log, tmp_path, reads, options, kind):
    table = log.collect().to_arrow()
    text = {"text": pa.string(), "large text": pa.large_string()}
    dtype = text.get(kind, pa.dictionary(pa.int32(), pa.string()))
    for place, name in enumerate(table.column_names):
        if name != "number":
            table = table.set_column(place, name, table.column(name).cast(pa.string()).cast(dtype))
    (tmp_path / "other").mkdir()
    pq.write_table(table, tmp_path / "other" / "0.parquet", **{"row_group_size": 900, **options})
    other = pl.scan_parquet(tmp_path / "other").mcc
    answer = other.by("key", "number", ci=0.9).collect()
    assert reads
    expected = other(portable=True).by("key", "number", ci=0.9).collect()
    assert_frame_equal(answer, expected, check_exact=True)


@pytest.mark.parametrize("writer", ["duckdb", "pandas", "pandas categories"])
def test_files_of_duckdb_and_pandas(log, tmp_path, writer):
    module = pytest.importorskip(writer.split()[0])
    frame = log.collect()
    path = tmp_path / "other.parquet"
    if writer == "duckdb":
        module.sql("SELECT * FROM frame").write_parquet(str(path))
    else:
        data = module.DataFrame(frame.to_dict(as_series=False))
        data = data.astype({"key": "category"}) if "categories" in writer else data
        data.to_parquet(path)
    other = pl.scan_parquet(path).mcc
    assert is_coded(other.by("key"))
    answer = other.by("key").collect().with_columns(pl.col("key").cast(pl.String))
    assert_frame_equal(answer, frame.mcc.by("key"), check_row_order=False)


def test_a_file_without_a_column_is_an_error_of_polars(tmp_path):
    pl.DataFrame({"gold": ["a"], "pred": ["b"]}).write_parquet(tmp_path / "0.parquet")
    pl.DataFrame({"gold": ["a"], "other": ["b"]}).write_parquet(tmp_path / "1.parquet")
    query = pl.scan_parquet(tmp_path).mcc.score()
    assert is_coded(query)
    with pytest.raises(pl.exceptions.SchemaError, match="other"):
        query.collect()


def test_enums_of_other_categories_are_as_the_plain_way_has_them(tmp_path):
    for place, names in enumerate((["a", "b"], ["b", "a", "c"])):
        frame = pl.DataFrame({"gold": ["a", "b"], "pred": ["b", "b"]}).cast(pl.Enum(names))
        frame.write_parquet(tmp_path / f"{place}.parquet")
    log = pl.scan_parquet(tmp_path)
    outcomes = []
    for portable in (False, True):
        try:
            outcomes.append(log.mcc(portable=portable).score().collect().rows())
        except pl.exceptions.PolarsError as error:  # noqa: PERF203 - there are two
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]

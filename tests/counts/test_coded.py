"""Codes of local Parquet files and the plain plan count alike, to the last bit."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import polars as pl
import polars.selectors as cs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from polars.testing import assert_frame_equal
from support import first, in_turn, named, some_slow

from polars_mcc import CheckError, PredictionLog, cube, each, trailing
from polars_mcc._counts import parquet_codes, parquet_files
from polars_mcc._store.stored_columns import counts_to_keep

TEXTS = ["", "a", "b", "A", "ä", "b ", "null"]
DTYPES: dict[str, tuple[pl.DataType, list]] = {
    "text": (pl.String(), TEXTS),
    "enum": (pl.Enum(TEXTS), TEXTS),
    "category": (pl.Categorical(), TEXTS),
    "int8": (pl.Int8(), [-128, 0, 1, 127]),
    "int64": (pl.Int64(), [-(2**63), -1, 0, 1, 5, 2**63 - 1]),
    "near": (pl.Int64(), [2**62, 2**62 + 7]),
    "16 bits": (pl.Int32(), [2**15 - 1, 2**15, 2**15 + 9]),
    "uint64": (pl.UInt64(), [2**64 - 1, 2**64 - 3]),
    "boolean": (pl.Boolean(), [False, True]),
    "date": (pl.Date(), [dt.date(1969, 12, 31), dt.date(1970, 1, 2), dt.date(1970, 2, 2)]),
    "float": (pl.Float64(), [0.0, -0.0, float("nan"), 1.5]),
}
LABELS = ["text", "enum", "category", "int8", "near", "16 bits", "boolean", "date"]


@pytest.fixture(autouse=True)
def small_files_are_worth_it(monkeypatch):
    monkeypatch.setattr(parquet_files, "_WORTH", 0)
    monkeypatch.setattr(parquet_files, "_WORTH_ONE", 0)
    monkeypatch.setattr(parquet_files, "_ROWS", 0)


@pytest.fixture
def reads(monkeypatch) -> list[str]:
    """The row groups that are read."""
    found: list[str] = []
    read = parquet_files.RowGroup.read

    def noted(group: parquet_files.RowGroup) -> Any:
        found.append(f"{Path(group.scan.files.paths[group.place]).name}:{group.group}")
        return read(group)

    monkeypatch.setattr(parquet_files.RowGroup, "read", noted)
    return found


def is_coded(query: pl.LazyFrame) -> bool:
    """Whether codes are in the plan of a question without intervals."""
    return "PYTHON SCAN" in query.explain()


def plainly(ask: Callable[[Any], pl.LazyFrame], log: pl.LazyFrame, **options: Any) -> pl.DataFrame:
    """The answer by the plain plan. `portable=True` turns codes off too, but has no intervals."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_files, "_WORTH", math.inf)
        return ask(PredictionLog(log, **options)).collect()


@st.composite
def logs(draw) -> list[pl.DataFrame]:
    """The files of a log."""
    label = draw(st.sampled_from(LABELS))
    kinds = {"a": draw(st.sampled_from([*DTYPES])), "b": draw(st.sampled_from([*DTYPES]))}
    kinds |= dict.fromkeys(("gold", "pred", "other"), label)
    n_files = draw(st.integers(1, 3))
    files = []
    for _ in range(n_files):
        height = draw(st.integers(0, 25))
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
    "labels for some rows": lambda log: log(nulls="reweight").by("a", ci=0.9),
    "classes, labels for some rows": lambda log: log(nulls="reweight").classes("b"),
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
PLANS = {
    "all": lambda log: log,
    "renamed": lambda log: log.rename({"a": "b", "b": "a"}),
    "a day": lambda log: log.filter(pl.col("day") > dt.date(2026, 1, 1)),
}
LIMITS = [(2**20, 2**15, 2**23), (2**20, 0, 2**23), (2**8, 0, 9), (4, 0, 2**23), (4, 2**15, 9)]


@pytest.mark.parametrize("verb", first(4, VERBS.values()), ids=VERBS)
@given(logs(), st.sampled_from([*PLANS]), st.sampled_from(LIMITS))
@settings(
    max_examples=settings.default.max_examples // 4,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_both_ways_give_one_answer(tmp_path_factory, verb, files, kind, limits):
    frame = PLANS[kind](scanned(tmp_path_factory.mktemp("log"), files))
    found = verb(PredictionLog(frame))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_codes, "MOST", limits[0])
        patch.setattr(parquet_codes, "_FEW", limits[1])
        patch.setattr(parquet_codes, "_SORTED", limits[2])
        answer = found.collect()
        expected = plainly(verb, frame)
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
    "gaps": lambda log: log.gaps(each("key", "number")),
    "classes": lambda log: log.classes("key", ci=0.9),
    "sets": lambda log: log.by(cube("key", "number"), ci=0.95),
    "worst": lambda log: log.worst("key", "number", verdicts=True),
    "many labels": lambda log: log.by("key"),
    "many pairs": lambda log: log.by("key", ci=0.95),
}


@pytest.mark.parametrize("verb", some_slow(ONCE, "contrast"))
def test_each_row_group_is_read_once_and_on_collect(log, reads, verb, monkeypatch):
    if verb.startswith("many"):
        monkeypatch.setattr(parquet_codes, "_FEW" if verb == "many labels" else "MOST", 0)
    query = ONCE[verb](log.mcc)
    assert reads == []
    answer = query.collect()
    assert sorted(reads) == GROUPS
    expected = plainly(ONCE[verb], log)
    assert sorted(reads) == GROUPS, "the plain plan reads with Polars"
    assert_frame_equal(answer, expected, rel_tol=1e-12, abs_tol=1e-12)


def test_a_query_of_an_answer_is_that_of_the_collected_answer(log, reads):
    query = log.mcc.by("key", ci=0.95)
    answer = query.collect()
    assert sorted(reads) == GROUPS
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
    for plain in (
        log.filter(pl.col("number") > 3).mcc,
        log.filter(pl.col("key") != "name-1").mcc,
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


@pytest.fixture
def day(tmp_path) -> Path:
    """Two folders of a log: 3 rows that are right, and 2 that are wrong."""
    for day, pred in (("2026-01-01", ["a", "b", "a"]), ("2026-01-02", ["b", "a"])):
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        frame = pl.DataFrame({"gold": ["a", "b", "a"][: len(pred)], "pred": pred})
        frame.write_parquet(folder / "0.parquet")
    return tmp_path


RIGHT = {"accuracy": [1.0, 0.0], "n": [3, 2]}


@pytest.mark.parametrize("fault", ["a row is lost", "folders are mixed up", "all are of one day"])
def test_counts_that_contradict_the_footers_are_not_used(day, fault, monkeypatch):
    read = parquet_files.RowGroup.read

    def wrong(group: parquet_files.RowGroup) -> Any:
        if fault == "a row is lost":
            found = read(group)
            return {name: one._replace(codes=one.codes[1:]) for name, one in found.items()}
        return read(group._replace(place=0 if fault == "all are of one day" else 1 - group.place))

    monkeypatch.setattr(parquet_files.RowGroup, "read", wrong)
    query = pl.scan_parquet(day, hive_partitioning=True).mcc.by("day", metrics="accuracy")
    assert is_coded(query)
    assert query.collect().select([*RIGHT]).to_dict(as_series=False) == RIGHT


def test_a_plan_that_polars_reads_otherwise_is_not_coded(day, monkeypatch):
    parquet_scan = parquet_files.parquet_scan
    monkeypatch.setattr(parquet_files, "parquet_scan", lambda _, names: parquet_scan(log, names))
    log = pl.scan_parquet(day, hive_partitioning=True)
    assert log.filter(pl.col("gold") == "a").mcc.score().collect()["n"].item() == 3


def test_a_search_does_not_use_columns_of_other_lengths(log, monkeypatch):
    read = parquet_files.RowGroup.read

    def wrong(group: parquet_files.RowGroup) -> Any:
        return {name: one._replace(codes=one.codes[1:]) for name, one in read(group).items()}

    expected = log.collect().mcc.worst("key", "number", verdicts=True)
    monkeypatch.setattr(parquet_files.RowGroup, "read", wrong)
    assert_frame_equal(log.mcc.worst("key", "number", verdicts=True).collect(), expected)


@in_turn(kind=["text", "integers"], is_first=[True, False])
def test_many_values_are_left_to_polars_before_they_are_read(tmp_path, reads, kind, is_first):
    numbers = np.random.default_rng(0).integers(0, 5000, 20_000) ** 2
    many = pl.Series([f"{number**2}" for number in numbers.tolist()])
    keys = many if kind == "text" else pl.Series(numbers)
    frame = pl.DataFrame({"gold": "a", "pred": "b", "key": keys})
    frame.write_parquet(tmp_path / "1.parquet", row_group_size=10_000)
    if not is_first:
        frame[:1].write_parquet(tmp_path / "0.parquet")
    query = pl.scan_parquet(tmp_path).mcc.by("key")
    assert is_coded(query) == (not is_first), "the first footer tells when the plan is made"
    assert query.collect().height == keys.n_unique()
    assert not any(group.startswith("1") for group in reads)


FOLDERS: dict[str, tuple[list[str], pl.DataType | None, list]] = {
    "float": (["0.1", "0.5", "0.9"], None, [0.1, 0.5, 0.9]),
    "single": (["0.25", "0.5", "0.75"], pl.Float32(), [0.25, 0.5, 0.75]),
    "decimal": (["0.10", "0.50"], pl.Decimal(4, 2), [Decimal("0.1"), Decimal("0.5")]),
    "ms": (["2026-01-01"], pl.Datetime("ms"), [dt.datetime(2026, 1, 1)]),
    "ns": (
        ["2026-01-01", "2026-01-02"],
        pl.Datetime("ns"),
        [dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2)],
    ),
    "enum": (["x", "y"], pl.Enum(["y", "x"]), ["y", "x"]),
    "category": (["x", "y"], pl.Categorical(), ["x", "y"]),
    "named": (["x", "y"], pl.Categorical(pl.Categories("of a folder")), ["x", "y"]),
    "text": (["1", "01"], pl.String(), ["01", "1"]),
    "integer": (["1", "-7"], None, [-7, 1]),
    "wide": (["1", str(2**64 - 1)], pl.UInt64(), [1, 2**64 - 1]),
    "boolean": (["true", "false"], pl.Boolean(), [False, True]),
    "date": (["1969-12-31", "2026-01-01"], None, [dt.date(1969, 12, 31), dt.date(2026, 1, 1)]),
    "null": (["x", "__HIVE_DEFAULT_PARTITION__"], None, [None, "x"]),
}
CODED = {"enum", "category", "named", "text", "integer", "wide", "boolean", "date", "null"}


@pytest.mark.parametrize("kind", first(8, FOLDERS))
def test_folders_are_keys_of_their_own_dtype(tmp_path, kind):
    names, dtype, values = FOLDERS[kind]
    for name in names:
        (tmp_path / f"key={name}").mkdir()
        frame = pl.DataFrame({"gold": ["a", "b"], "pred": ["a", "a"]})
        frame.write_parquet(tmp_path / f"key={name}" / "0.parquet")
    schema = None if dtype is None else {"key": dtype}
    log = pl.scan_parquet(tmp_path, hive_partitioning=True, hive_schema=schema)
    query = log.mcc.by("key")
    assert is_coded(query) == (kind in CODED)
    found = query.collect()
    assert found["key"].to_list() == values
    assert found["n"].to_list() == [2] * len(values)
    assert dtype is None or found["key"].dtype == dtype


@pytest.mark.parametrize("kind", ["enum", "category", "named", "text"])
def test_folders_are_labels_too(tmp_path, kind):
    names, dtype, _ = FOLDERS[kind]
    for name in names:
        (tmp_path / f"gold={name}").mkdir()
        frame = pl.DataFrame({"pred": [*names, names[0]], "key": ["k", "k", "other"]})
        frame.write_parquet(tmp_path / f"gold={name}" / "0.parquet")
    log = pl.scan_parquet(tmp_path, hive_partitioning=True, hive_schema={"gold": dtype})
    query = log.mcc.by("key", metrics="accuracy")
    assert is_coded(query)
    assert query.collect().select("key", "n", "accuracy").rows() == [
        ("k", 4, 0.5),
        ("other", 2, 0.5),
    ]


def test_a_file_that_is_not_there_yet_is_no_error_before_it_is_read(tmp_path):
    frame = pl.DataFrame({"gold": ["a", "b"], "pred": ["a", "a"], "key": ["x", "y"]})
    frame.write_parquet(tmp_path / "0.parquet")
    query = pl.scan_parquet([tmp_path / "0.parquet", tmp_path / "1.parquet"]).mcc.by("key")
    with pytest.raises(FileNotFoundError, match=r"1\.parquet"):
        query.collect()
    frame.write_parquet(tmp_path / "1.parquet")
    assert query.collect()["n"].to_list() == [2, 2]


@pytest.mark.parametrize("limit", ["_PER_ROW", "_ALL"])
def test_tables_much_larger_than_the_log_are_left_to_polars(log, monkeypatch, reads, limit):
    def ask(log: Any) -> pl.LazyFrame:
        return log.by(cube("key", "number"), ci=0.9)

    expected = plainly(ask, log)
    monkeypatch.setattr(parquet_codes, limit, 0)
    monkeypatch.setattr(parquet_codes, "_SPARE", 0)
    monkeypatch.setattr(pl, "thread_pool_size", lambda: 1)  # Each thread has two groups waiting.
    assert is_coded(log.mcc.by(cube("key", "number")))
    assert_frame_equal(ask(log.mcc).collect(), expected)
    assert len(reads) < len(GROUPS)


NO_CONDITIONS: list = []
ALL_ROWS = {
    "true": lambda log: log.filter(pl.lit(value=True)),
    "1 = 1": lambda log: log.sql("SELECT * FROM self WHERE 1 = 1"),
    "no conditions": lambda log: log.filter(reduce(and_, NO_CONDITIONS, pl.lit(value=True))),
    "true of a key": lambda log: log.filter(pl.lit(value=True) | (pl.col("key") == "x")),
}


@pytest.mark.parametrize("plan", ALL_ROWS.values(), ids=ALL_ROWS)
def test_a_filter_that_is_true_keeps_all_rows(log, plan):
    kept = plan(log).mcc
    assert kept.score().collect()["n"].item() == 3900
    assert kept.by("key").collect()["n"].sum() == 3900
    with pytest.raises(CheckError, match="3,900|3900"):
        kept.check(min=0.99).collect()


@in_turn(ignored=[False, True], fault=["another column", "another text", "another Enum"])
def test_files_that_differ_are_an_error_of_polars(tmp_path, fault, ignored):
    frame = pl.DataFrame({"gold": ["a", "b"], "pred": ["b", "b"], "key": ["x", "y"]})
    frame = frame.cast({"gold": pl.Enum(["a", "b"]), "pred": pl.Enum(["a", "b"])})
    other = {
        "another column": frame.with_columns(more=1),
        "another text": frame.with_columns(pl.col("key").cast(pl.Categorical)),
        "another Enum": frame.cast({"gold": pl.Enum(["b", "a"]), "pred": pl.Enum(["b", "a"])}),
    }[fault]
    frame.write_parquet(tmp_path / "0.parquet")
    other.write_parquet(tmp_path / "1.parquet")
    log = pl.scan_parquet(tmp_path, extra_columns="ignore" if ignored else "raise")
    query = log.mcc.counts("key")
    assert is_coded(query)
    if ignored and fault == "another column":
        assert query.collect()["n"].to_list() == [2, 2]
        return
    with pytest.raises(pl.exceptions.SchemaError):
        query.collect()


def test_a_filter_reads_its_own_file(tmp_path):
    for name, x in (("run[1].parquet", [1.0, 0.0]), ("run1.parquet", [0.0, 1.0])):
        frame = pl.DataFrame({"gold": ["a", "b"], "pred": ["a", "a"], "x": x, "*": x, "^a$": x})
        frame.write_parquet(tmp_path / name)
    log = pl.scan_parquet(tmp_path)
    for column in ("x", "*", "^a$"):
        found = log.filter(cs.by_name(column) > 0.5).mcc.counts().collect()
        assert sorted(found.select("gold", "pred", "n").rows()) == [("a", "a", 1), ("b", "a", 1)]


def test_a_file_that_is_gone_or_changed_is_an_error_of_polars(log, tmp_path):
    query = log.mcc.by("key")
    frame = log.collect()
    frame.with_columns(gold=1).write_parquet(tmp_path / "1.parquet")
    with pytest.raises(pl.exceptions.PolarsError):
        query.collect()
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"1\.parquet"):
        query.collect()


READ_BY_CODES = [
    lambda log: log.by("key"),
    lambda log: log.counts("key", "number"),
    lambda log: log(pred=["pred", "other"]).compare("kind"),
    lambda log: log.worst("key", "kind", verdicts=True, min_n=1),
]


def test_a_damaged_file_is_named_or_answered_as_by_polars(log, tmp_path):
    frame = log.collect()
    frame = frame.with_columns(kind=pl.col("key").cast(pl.Enum(frame["key"].unique().sort())))
    (tmp_path / "damaged").mkdir()
    good, bad = (tmp_path / "damaged" / f"{name}.parquet" for name in ("good", "bad"))
    for path in (good, bad):
        frame.write_parquet(path, row_group_size=1000, compression="uncompressed")
    whole = bad.read_bytes()
    damaged = pl.scan_parquet(tmp_path / "damaged")
    reached = Counter[str]()
    for place in range(200, len(whole) - 8000, 1900):
        bad.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        for ask in READ_BY_CODES:
            try:
                answer = ask(damaged.mcc).collect()
            except pl.exceptions.ComputeError as error:
                reached["refused" if f"{error}".startswith(f"'{bad}' cannot") else f"{error}"] += 1
            else:
                assert_frame_equal(answer, plainly(ask, damaged), check_exact=True)
                reached["answered"] += 1
    assert reached == {"refused": 24, "answered": 12}


WRITERS: dict[str, dict[str, Any]] = {
    "pages that fell back to plain": {"dictionary_pagesize_limit": 60, "data_page_size": 100},
    "no dictionary": {"use_dictionary": False},
    "of one row group": {"row_group_size": 10**6},
    "of other pages": {"data_page_version": "2.0", "compression": "none"},
    "without a schema of Arrow": {"store_schema": False},
}


@in_turn(2, kind=["text", "large text", "dictionary"], options=named(WRITERS))
def test_files_of_other_writers(log, tmp_path, reads, options, kind):
    table = log.collect().to_arrow()
    text = {"text": pa.string(), "large text": pa.large_string()}
    dtype = text.get(kind, pa.dictionary(pa.int32(), pa.string()))
    for place, name in enumerate(table.column_names):
        if name != "number":
            table = table.set_column(place, name, table.column(name).cast(pa.string()).cast(dtype))
    (tmp_path / "other").mkdir()
    pq.write_table(table, tmp_path / "other" / "0.parquet", **{"row_group_size": 900, **options})
    other = pl.scan_parquet(tmp_path / "other")

    def ask(log: Any) -> pl.LazyFrame:
        return log.by("key", "number", ci=0.9)

    answer = ask(other.mcc).collect()
    assert reads
    assert_frame_equal(answer, plainly(ask, other), check_exact=True)


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


ENDS = {
    pa.int8(): (-128, 127),
    pa.int16(): (-(2**15), -(2**15) + 4095),
    pa.int32(): (2**31 - 4096, 2**31 - 1),
    pa.int64(): (2**63 - 4096, 2**63 - 1),
    pa.uint8(): (0, 255),
    pa.uint16(): (2**16 - 4096, 2**16 - 1),
    pa.uint32(): (2**32 - 4096, 2**32 - 1),
    pa.uint64(): (2**64 - 4096, 2**64 - 1),
    pa.date32(): (-2048, 2047),
    pa.bool_(): (0, 1),
    pa.dictionary(pa.int32(), pa.string()): (0, 255),
    pa.dictionary(pa.int8(), pa.string()): (0, 127),
}
"""The values of a column, as far apart as codes may be."""


@pytest.mark.parametrize("dtype", ENDS, ids=str)
@pytest.mark.parametrize("is_null", [lambda n: n < 0, lambda n: n % 3 == 0, lambda n: n >= 0])
def test_a_column_is_its_codes_and_their_values(dtype, is_null):
    least, largest = ENDS[dtype]
    numbers = [None if is_null(n) else least + n * 7 % (largest - least + 1) for n in range(9000)]
    numbers[1] = None if is_null(1) else largest
    if pa.types.is_dictionary(dtype):
        places = pa.array(numbers, dtype.index_type)
        every = pa.DictionaryArray.from_arrays(places, [f"text {n}" for n in range(largest + 1)])
    elif dtype == pa.bool_():
        every = pa.array([None if n is None else n == 1 for n in numbers], dtype)
    else:
        every = pa.array(numbers, pa.int32() if dtype == pa.date32() else dtype).cast(dtype)
    for array in (every, every.slice(1), every.slice(8, 4001), every.slice(4500)):
        half = len(array) // 2
        for column in (pa.chunked_array([array]), pa.chunked_array([array[:half], array[half:]])):
            codes, values = parquet_files._decoded(column)
            own = values if isinstance(values, (range, list)) else values.to_pylist()
            listed = column.cast(pa.int32()) if dtype == pa.date32() else column
            assert [own[code] for code in codes.tolist()] == listed.to_pylist()
            assert codes.dtype.kind == "i"
            assert codes.min() >= 0


def test_integers_that_are_too_far_apart_have_no_codes():
    for numbers in ([0, 4096], [-(2**63), 2**63 - 1], [None, 2**62, 0]):
        with pytest.raises(parquet_files.Unsuited):
            parquet_files._decoded(pa.chunked_array([pa.array(numbers, pa.int64())]))


def test_codes_too_large_for_the_number_of_a_pair_are_left_to_polars(tmp_path, monkeypatch):
    """The first file is in a table, and the codes of its first key have more bits than numbers."""
    monkeypatch.setattr(parquet_codes, "MOST", 2**10)
    monkeypatch.setattr(parquet_codes, "in_threads", map)
    keys = [f"key {n}" for n in range(8)]
    for file, (size, other) in enumerate([(100, 1), (10, 2), (10, 2)]):
        texts = {key: pl.int_range(2**12, eager=True) // 7**n % other for n, key in enumerate(keys)}
        texts[keys[0]] = pl.int_range(2**12, eager=True) % size
        texts |= {"gold": texts[keys[1]], "pred": texts[keys[2]]}
        rows = pl.DataFrame(texts).select(pl.all().cast(pl.String))
        rows.write_parquet(tmp_path / f"{file}.parquet", row_group_size=2**12)
    plain = pl.read_parquet(tmp_path / "*.parquet").mcc.counts(*keys)
    assert_frame_equal(pl.scan_parquet(tmp_path / "*.parquet").mcc.counts(*keys).collect(), plain)

"""Steps of a store, the dtypes that it stores, and other readers of its table."""

from __future__ import annotations

import datetime as dt
import json
import random
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable
from polars.testing import assert_frame_equal
from store_cases import Logs, keep
from support import first

import polars_mcc
from polars_mcc import PredictionLog
from polars_mcc._store import delta_table as stores
from polars_mcc._store.delta_table import (
    INPUT,
    INPUT_COLUMNS,
    NEWEST,
    SIZE,
    VERSION,
    Input,
    Store,
    delta_dtype,
    is_store,
    open_store,
    schema_as_text,
    schema_of_text,
)

SCHEMA = pl.Schema({"key": pl.Enum(["a", "b"]), "gold": pl.UInt8, "pred": pl.UInt8, "n": pl.Int64})
COLUMNS = {"gold": "gold", "pred": "pred"}


def store_in(folder: Path | str) -> Store:
    store = Store.of(str(folder))
    return store if store.table else store.made({"columns": COLUMNS}, SCHEMA)


def counts(inputs: list[Input], number: int) -> pl.DataFrame:
    """As many rows of an input as its size says, each of `number` rows of a log."""
    of_input = [pl.DataFrame(schema={**SCHEMA, **INPUT_COLUMNS})]
    for one in inputs:
        rows = pl.DataFrame(
            {"key": ["a"] * one.size, "gold": 1, "pred": 255, "n": number}, schema=SCHEMA
        )
        about = {INPUT: one.path, SIZE: one.size, VERSION: one.version, NEWEST: one.newest}
        of_input.append(
            rows.with_columns(
                pl.lit(value, INPUT_COLUMNS[name]).alias(name) for name, value in about.items()
            )
        )
    return pl.concat(of_input)


def step(store: Store, *inputs: Input, number: int = 1, dropped: tuple[str, ...] = ()) -> bool:
    return store.step([*inputs], counts([*inputs], number), dropped)


@pytest.mark.slow
def test_any_steps_leave_what_a_dictionary_would_have(tmp_path):
    """Adding, replacing and dropping many inputs at once, with rows or without."""
    draw = random.Random(0)
    names = ["a", "it's", 'b"\\', "ü/x=1", "--", "%s", "\n", "z" * 300]
    for round_ in range(2):
        folder, want = tmp_path / str(round_), {}
        store = store_in(folder)
        for number in range(1, 26):
            paths = draw.sample(names, draw.choice([0, 1, 1, 2, 6]))
            dropped = [
                one for one in draw.sample(names, draw.choice([0, 0, 1, 4])) if one not in paths
            ]
            inputs = [Input(path, draw.choice([0, 1, 2, 40]), f"{number}") for path in paths]
            assert step(store, *inputs, number=number, dropped=(*dropped,))
            want = {path: one for path, one in want.items() if path not in dropped}
            want |= {one.path: (one, number) for one in inputs}
            for read in (store, Store.of(str(folder))):
                assert {
                    (one.path, one.size, one.version, one.rows) for one in read.inputs.values()
                } == {
                    (one.path, one.size, one.version, one.size * times)
                    for one, times in want.values()
                }
            total = sum(one.size * times for one, times in want.values())
            if store.table.version():
                assert store.scan().collect()["n"].sum() == total
                assert store.scan().collect_schema() == SCHEMA


@pytest.mark.parametrize("size", first(1, [0, 3]))
def test_of_two_steps_from_one_version_one_is_done(tmp_path, size):
    """Whether they add, replace or drop inputs, with rows or without."""
    store_in(tmp_path)
    for second in (Input("b", 2, "y"), Input("a", 0, "y"), Input("a", 5, "y"), None):
        assert step(Store.of(str(tmp_path)), Input("a", 1, "0"), dropped=("b",))
        one, other = (Store.of(str(tmp_path)) for _ in range(2))
        assert step(one, Input("a", size, "x"))
        before = Store.of(str(tmp_path))
        others = () if second is None else (second,)
        assert not step(other, *others, dropped=() if others else ("a",))
        after = Store.of(str(tmp_path))
        assert after.inputs == before.inputs
        assert after.table.version() == before.table.version()
        assert not step(other, *others, dropped=() if others else ("a",)), "it is still too old"


def test_two_processes_make_one_store(tmp_path):
    one, other = (Store.of(str(tmp_path)) for _ in range(2))
    made = [
        each.made({"columns": COLUMNS, "by": name}, SCHEMA)
        for each, name in ((one, "x"), (other, "y"))
    ]
    assert [each.about["by"] for each in made] == ["x", "x"]


def test_a_step_ends_where_it_began_if_files_were_merged_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "_MAX_FILES", 3)
    store = store_in(tmp_path)
    for number in range(6):
        assert step(store, Input(f"{number}", 2, "1"))
    other = Store.of(str(tmp_path))
    assert [*store.upkeep(None)] == ["6 of 6 files merged"]
    assert len(store.table.file_uris()) == 1
    if not step(other, Input("0", 3, "2")):  # Else the merge was seen.
        assert step(Store.of(str(tmp_path)), Input("0", 3, "2"))
    found = Store.of(str(tmp_path))
    assert sum(one.rows for one in found.inputs.values()) == 13
    assert [*found.upkeep(None)] == []


def test_few_files_are_not_merged(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "_MAX_FILES", 3)
    store = store_in(tmp_path)
    for number in range(3):
        assert step(store, Input(f"{number}", 2, "1"))
    assert [*store.upkeep(None)] == []
    assert len(store.table.file_uris()) == 3


def test_a_folder_with_a_file_is_no_store_and_hidden_files_do_not_count(tmp_path):
    (tmp_path / ".hidden").touch()
    (tmp_path / "_delta_log").mkdir()
    assert Store.of(str(tmp_path)).table is None
    (tmp_path / "odd.").touch()
    with pytest.raises(ValueError, match="is not a store of counts, and has 'odd.': use a folder"):
        Store.of(str(tmp_path))


def test_files_are_deleted_when_their_time_is_over(tmp_path):
    store = store_in(tmp_path)
    for version in "xy":
        assert step(store, Input("a", 1, version))
    first = next(iter(open_store(str(tmp_path), version=1).table.file_uris()))
    assert [*store.upkeep(7)] == []
    assert (
        DeltaTable(tmp_path).metadata().configuration["delta.logRetentionDuration"]
        == "interval 7 days"
    )
    assert Path(first).exists()
    properties = {"delta.deletedFileRetentionDuration": "interval 0 days"}
    store.table.alter.set_table_properties(properties)
    assert [*Store.of(str(tmp_path)).upkeep(None)] == ["1 file of earlier versions deleted"]
    assert not Path(first).exists()
    assert Store.of(str(tmp_path)).scan().collect().height == 1


KEYS = {
    pl.UInt8: [0, 255],
    pl.UInt16: [0, 2**16 - 1],
    pl.UInt32: [0, 2**32 - 1],
    pl.UInt64: [0, 2**64 - 1],
    pl.Int8: [-128, 127],
    pl.Int128: [-(10**37), 10**37],
    pl.Boolean: [True, False],
    pl.Float32: [0.1, float("inf")],
    pl.Float64: [0.1, float("nan")],
    pl.Decimal(38, 2): [Decimal("1.25"), Decimal("-7.50")],
    pl.String: ["", "é\0"],
    pl.Binary: [b"", b"\0\xff"],
    pl.Categorical: ["x", "y"],
    pl.Enum(["b", "a"]): ["a", "b"],
    pl.Date: [dt.date(1, 1, 1), dt.date(2026, 1, 2)],
    pl.Time: [dt.time(1, 2, 3, 4), dt.time(23, 59, 59, 999999)],
    pl.Duration("ms"): [dt.timedelta(days=-1), dt.timedelta(milliseconds=1)],
    pl.Duration("us"): [dt.timedelta(days=-1), dt.timedelta(microseconds=1)],
    pl.Datetime("ms"): [dt.datetime(1, 1, 1), dt.datetime(2026, 1, 2, 3, 4, 5, 6000)],
    pl.Datetime("us"): [dt.datetime(1, 1, 1), dt.datetime(2026, 1, 2, 3, 4, 5, 6)],
    pl.Datetime("us", "Europe/Berlin"): [0, 1_750_000_000_000_001],
    pl.Datetime("ns"): [1, 1_750_000_000_000_000_001],
    pl.List(pl.UInt8): [[1, 2], []],
    pl.Array(pl.Categorical, 2): [["a", "b"], ["b", "b"]],
    pl.Struct({"a": pl.UInt64, "b": pl.Time}): [
        {"a": 2**64 - 1, "b": None},
        {"a": None, "b": dt.time(1)},
    ],
}


@pytest.mark.parametrize("dtype", first(6, KEYS), ids=str)
def test_keys_of_every_dtype_come_back(tmp_path, dtype):
    log = pl.DataFrame({"gold": ["u", "v", "v"], "pred": ["u", "v", "u"]})
    log = log.with_columns(key=pl.Series([*KEYS[dtype], None], dtype=dtype, strict=False))
    assert log["key"].null_count() == 1
    log.write_parquet(tmp_path / "log.parquet")
    log = pl.read_parquet(tmp_path / "log.parquet")
    polars_mcc.keep_counts(tmp_path / "log.parquet", tmp_path / "store", "key")
    kept = PredictionLog.from_store(tmp_path / "store")
    assert_frame_equal(kept.by("key").collect(), log.mcc.by("key"))


def test_a_dtype_of_delta_is_itself():
    assert schema_of_text(schema_as_text(SCHEMA)) == SCHEMA
    for dtype in map(delta_dtype, KEYS):
        assert delta_dtype(dtype) == dtype
    assert delta_dtype(pl.Null()) == pl.String()


@pytest.mark.slow
def test_others_read_the_table(tmp_path):
    """Polars and DuckDB (by Arrow: its extension needs a network) compute the same counts."""
    logs, store = Logs(tmp_path / "logs"), tmp_path / "store"
    for name in "abc":
        logs.write(f"{name}.parquet")
    keep(logs, store)
    logs.write("b.parquet")
    keep(logs, store)
    assert_frame_equal(
        pl.scan_delta(str(store)).mcc(weight="n").by("country").collect(),
        logs.scan().mcc.by("country").collect(),
    )
    table = DeltaTable(store)
    rows = table.to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.register("counts", rows)
        [(n, right)] = connection.sql(
            "SELECT sum(n), sum(n) FILTER (gold = pred) FROM counts"
        ).fetchall()
    log = logs.scan().collect()
    assert (n, right) == (log.height, (log["gold"] == log["pred"]).sum())
    comments = {one.name: one.metadata["comment"] for one in table.schema().fields}
    assert comments["gold"] == "true label, String in Polars"
    assert comments["pred"] == "predicted label, String in Polars"
    assert comments["day"] == "key, Int64 in Polars"
    assert comments["input"] == "the file, object or table that the rows come from"
    assert "Each row stands for n rows of the log" in table.metadata().description


def test_what_is_no_store_of_ours_is_left_alone(tmp_path):
    pl.DataFrame({"gold": [1], "pred": [1]}).write_delta(tmp_path / "other")
    assert not is_store(str(tmp_path / "other"), None)
    assert not is_store(str(tmp_path / "none"), None)
    for name in ("other", "none"):
        with pytest.raises(
            ValueError, match=f"{name}' is not a store of counts: make one with polars-m"
        ):
            open_store(str(tmp_path / name))
    logs = Logs(tmp_path / "logs")
    logs.write("a.parquet")
    with pytest.raises(
        ValueError, match="other' is not a store of counts: make one with polars-mcc"
    ):
        keep(logs, tmp_path / "other")
    store = store_in(tmp_path / "new")
    assert is_store(str(tmp_path / "new"), None)
    with pytest.raises(
        ValueError, match="new' has no counts yet: add counts with polars-mcc counts"
    ):
        store.scan()
    about = json.loads(DeltaTable(tmp_path / "new").metadata().configuration["polars_mcc.counts"])
    assert about == {"columns": COLUMNS}

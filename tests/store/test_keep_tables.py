"""Delta and Iceberg tables as inputs: the store follows the files that come and go."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable, convert_to_deltalake
from polars.testing import assert_frame_equal
from store_cases import KEYS, Logs, contents, s3_server

import polars_mcc
from polars_mcc import PredictionLog
from polars_mcc._inputs import formats
from polars_mcc._store import count_and_commit, new_and_changed
from polars_mcc._store.delta_table import Store


@pytest.fixture
def draw(tmp_path):
    return Logs(tmp_path / "logs").rows


def keep(table: Path | str, store: Path | str, *keys: str) -> dict[str, int]:
    done = polars_mcc.keep_counts(str(table), store, *(keys or KEYS))
    return dict(done["status"].value_counts().iter_rows())


def check(table: Path | str, store: Path | str, *keys: str, scan=pl.scan_delta) -> None:
    kept, log = PredictionLog.from_store(store), PredictionLog(scan(str(table)))
    want = log.counts(*(keys or KEYS)).collect()
    assert_frame_equal(kept.counts(*(keys or KEYS)).collect(), want)


@pytest.fixture(scope="module")
def server():
    with s3_server() as environment:
        yield environment


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.slow)])
def place(request, tmp_path, monkeypatch):
    """The folder or URL of the tables and stores."""
    if request.param == "local":
        return str(tmp_path)
    import boto3  # noqa: PLC0415 - only this case may see its warnings

    for name, value in request.getfixturevalue("server").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_S3_ALLOW_UNSAFE_RENAME", "true")
    boto3.client("s3").create_bucket(Bucket=tmp_path.name.replace("_", "-"))
    return f"s3://{tmp_path.name.replace('_', '-')}"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # boto's
def test_a_delta_table_is_counted_version_by_version(place, draw):
    table, store = f"{place}/table", f"{place}/store"
    draw().write_delta(table)
    assert keep(table, store) == {"counted": 1}
    for _ in range(2):
        draw().write_delta(table, mode="append")
    assert keep(table, store) == {"counted": 2, "unchanged": 1}
    check(table, store)
    assert keep(table, store) == {"unchanged": 3}
    DeltaTable(table).optimize.compact()
    assert keep(table, store) == {"counted": 1, "removed": 3}
    check(table, store)
    DeltaTable(table).delete("country = 'DE'")
    assert keep(table, store) == {"counted": 1, "removed": 1}
    check(table, store)
    draw().write_delta(table, mode="overwrite")
    assert keep(table, store) == {"counted": 1, "removed": 1}
    check(table, store)
    assert all("table/" in path for path, _ in contents(store))


def test_files_that_a_table_keeps_are_not_read_again(tmp_path, draw):
    table, store = tmp_path / "table", tmp_path / "store"
    draw().write_delta(table)
    keep(table, store)
    for file in table.glob("*.parquet"):
        file.write_bytes(b"?")
    draw().write_delta(table, mode="append")
    assert keep(table, store) == {"counted": 1, "unchanged": 1}


def test_partitions_are_columns_and_columns_may_be_added(tmp_path, draw):
    table, store = tmp_path / "table", tmp_path / "store"
    partitions = {"partition_by": ["country", "when"]}
    when = pl.lit(dt.date(2026, 1, 2)).alias("when")
    log = draw().with_columns(when, country=pl.col("country").replace("FR", "F R/é%41="))
    log.write_delta(table, delta_write_options=partitions)
    keys = "country", "when", "device"
    more = draw().with_columns(when, device=pl.lit("phone"))
    more.write_delta(table, mode="append", delta_write_options={"schema_mode": "merge"})
    assert keep(table, store, *keys) == {"counted": 6}
    check(table, store, *keys)


def test_a_step_of_a_table_is_taken_as_a_whole(tmp_path, draw, monkeypatch):
    """The store changes once, so no query and no killed process can see a row twice."""
    table, store = tmp_path / "table", tmp_path / "store"
    monkeypatch.setattr(new_and_changed, "_CHUNK_LIMITS", (1, 0))
    monkeypatch.setattr(count_and_commit, "_SECONDS_BETWEEN_STEPS", 0.0)
    for _ in range(4):
        draw().write_delta(table, mode="append")
    keep(table, store)
    DeltaTable(table).optimize.compact()
    draw().write_delta(table, mode="append")
    draw().write_delta(table, mode="append")
    taken, seen = Store.step, []

    def step(self, *arguments):
        done = taken(self, *arguments)
        seen.append(PredictionLog.from_store(store).score().collect()["n"].item())
        return done

    monkeypatch.setattr(Store, "step", step)
    assert keep(table, store) == {"counted": 3, "removed": 4}
    assert len(seen) == 1
    check(table, store)


def test_a_table_without_rows_has_none_in_the_store(tmp_path, draw):
    table, store = tmp_path / "table", tmp_path / "store"
    draw().write_delta(table)
    keep(table, store)
    DeltaTable(table).delete()
    assert keep(table, store) == {"removed": 1}
    assert contents(store) == {}
    draw().write_delta(table, mode="append")
    assert keep(table, store) == {"counted": 1}
    check(table, store)


def test_who_has_looked_before_a_step_does_not_take_it_back(tmp_path, draw, monkeypatch):
    """Meanwhile another process counts a later version, in which files were replaced."""
    table, store = tmp_path / "table", tmp_path / "store"
    for _ in range(2):
        draw().write_delta(table, mode="append")
    keep(table, store)
    draw().write_delta(table, mode="append")
    looked, meanwhile = count_and_commit.Keeping._counts_of, [1]

    def slowly(self, chunk):
        if meanwhile:
            meanwhile.pop()
            DeltaTable(table).optimize.compact()
            assert keep(table, store) == {"counted": 1, "removed": 2}
        return looked(self, chunk)

    monkeypatch.setattr(count_and_commit.Keeping, "_counts_of", slowly)
    assert keep(table, store) == {"unchanged": 1}
    check(table, store)


def test_a_table_that_was_made_anew_is_followed(tmp_path, draw):
    """The versions of the new table start at 0 again."""
    table, store = tmp_path / "table", tmp_path / "store"
    for _ in range(3):
        draw().write_delta(table, mode="append")
    keep(table, store)
    shutil.rmtree(table)
    draw().write_delta(table)
    assert keep(table, store) == {"counted": 1, "removed": 3}
    assert keep(table, store) == {"unchanged": 1}
    check(table, store)


def test_a_table_that_was_made_anew_with_files_of_the_same_names_is_followed(tmp_path, draw):
    table, store = tmp_path / "a b/ü", tmp_path / "store"
    for _ in range(2):
        shutil.rmtree(table, ignore_errors=True)
        table.mkdir(parents=True)
        draw().write_parquet(table / "a.parquet")
        convert_to_deltalake(table)
        keep(table, store)
        kept = PredictionLog.from_store(store).counts(*KEYS).collect()
        assert_frame_equal(kept, pl.scan_parquet(table / "a.parquet").mcc.counts(*KEYS).collect())


def test_a_link_that_turns_to_another_table_takes_its_counts_along(tmp_path, draw):
    link, store = tmp_path / "now", tmp_path / "store"
    for name in "ab":
        draw().write_delta(tmp_path / name)
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / name)
        keep(link, store)
        check(tmp_path / name, store)
    assert keep(tmp_path / "b", store) == {"replaced": 1}
    check(tmp_path / "b", store)


def test_a_step_that_cannot_be_taken_is_not_begun(tmp_path, draw):
    table, store = tmp_path / "table", tmp_path / "store"
    draw().write_delta(table)
    keep(table, store)
    before = contents(store)
    draw().write_delta(table, mode="overwrite")
    draw().write_delta(table, mode="append")
    Path(DeltaTable(table).file_uris()[0]).write_bytes(b"PAR1")
    with pytest.raises(pl.exceptions.PolarsError, match="parquet'?: .*; the store .* is unchanged"):
        keep(table, store)
    assert contents(store) == before


@pytest.mark.slow
def test_a_table_whose_files_do_not_stand_alone_is_counted_as_a_whole(tmp_path, draw, monkeypatch):
    """Such as a table with deletion vectors; also if a table gains or loses the feature."""
    table, store = tmp_path / "table", tmp_path / "store"
    for _ in range(2):
        log = draw().with_columns(at=pl.lit(dt.datetime(2026, 1, 1)))
        log.write_delta(table, mode="append")
    assert DeltaTable(table).protocol().reader_features == ["timestampNtz"]
    assert keep(table, store) == {"counted": 2}
    monkeypatch.setattr(formats, "_FEATURES_OF_PLAIN_FILES", set())
    assert keep(table, store) == {"counted": 1, "removed": 2}
    check(table, store)
    assert keep(table, store) == {"unchanged": 1}
    log.write_delta(table, mode="append")
    assert keep(table, store) == {"replaced": 1}
    check(table, store)
    monkeypatch.undo()
    assert keep(table, store) == {"counted": 3, "removed": 1}
    check(table, store)


@pytest.mark.slow
def test_an_iceberg_table_is_counted_version_by_version(tmp_path, draw, monkeypatch):
    pytest.importorskip("pyarrow", reason="pyiceberg writes with pyarrow; .ci/run has both")
    pytest.importorskip("pyiceberg", reason="no pyiceberg here; .ci/run has it elsewhere")
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415
    from pyiceberg.types import StringType  # noqa: PLC0415

    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    catalog = SqlCatalog(
        "logs", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}"
    )
    catalog.create_namespace("logs")
    table = catalog.create_table("logs.log", schema=draw().to_arrow().schema)
    folder, store = tmp_path / "logs/log", tmp_path / "store"

    def is_right() -> None:
        check(folder, store, scan=formats.scan_iceberg)

    for status in ("counted", "replaced"):
        draw().write_iceberg(table, mode="append")
        assert keep(folder, store) == {status: 1}
        is_right()
        assert keep(folder, store) == {"unchanged": 1}
    draw().write_iceberg(table, mode="overwrite")
    assert keep(folder, store) == {"replaced": 1}
    is_right()
    with table.update_schema() as update:
        update.add_column("device", StringType())
    assert keep(folder, store) == {"replaced": 1}
    is_right()

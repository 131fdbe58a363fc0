"""What Polars calls unstable or private: each test fails where a new Polars changes it."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import polars_mcc
from polars_mcc._base.unstable_polars import (
    at_largest,
    batches_of,
    by_sql,
    deferred,
    is_scan_alone,
    of_dtypes,
    of_places,
    parquet_files,
    parquet_scan,
    source_of,
    without_columns,
)

PACKAGE = Path(polars_mcc.__file__).parent
ROWS = pl.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "x"]})


@pytest.fixture
def files(tmp_path) -> pl.LazyFrame:
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        ROWS.write_parquet(tmp_path / f"day={day}" / "0.parquet")
    return pl.scan_parquet(tmp_path / "*" / "*.parquet", hive_partitioning=True)


@pytest.mark.parametrize("once", [False, True])
def test_a_deferred_frame_is_computed_on_collect_and_once_if_asked(once):
    calls = []

    def rows():
        calls.append(1)
        return ROWS

    frame = deferred(rows, ROWS.schema, once=once)
    twice = pl.concat([frame, frame.filter(pl.col("a") > 1)])
    assert twice.collect_schema() == ROWS.schema
    assert calls == []
    assert twice.collect().height == 5
    assert len(calls) == (1 if once else 2)


def test_a_source_is_asked_for_the_columns_and_the_filter_of_a_query():
    asked = []

    def batches(columns, predicate, n_rows, _):
        asked.append((columns, predicate is not None, n_rows))
        for batch in batches_of(ROWS.lazy()):
            rows = batch.select(columns or batch.columns)
            yield rows if predicate is None else rows.filter(predicate)

    source = source_of(batches, ROWS.schema)
    assert source.filter(pl.col("a") > 1).select("a").collect()["a"].to_list() == [2, 3]
    assert asked == [(["a"], True, None)]


def test_batches_have_the_order_of_the_rows():
    many = pl.DataFrame({"a": range(200_000)})
    found = [*batches_of(many.lazy().filter(pl.col("a") % 2 == 0))]
    assert pl.concat(found)["a"].to_list() == [*range(0, 200_000, 2)]


def test_an_expression_of_dtypes_is_made_in_the_plan():
    def made(inputs):
        return pl.lit(", ".join(f"{one.meta.output_name()} {dtype}" for one, dtype in inputs))

    assert ROWS.lazy().select(of_dtypes([pl.col("a"), pl.col("b")], made)).collect().item() == (
        "a Int64, b String"
    )


@pytest.mark.parametrize("dtype", [pl.Enum(["x", "y"]), pl.Categorical(pl.Categories("of-test"))])
def test_values_of_categories_by_their_places(dtype):
    known = pl.Series(["x", "y"], dtype=dtype)
    assert of_places(known.to_physical(), known.dtype).cast(pl.String).to_list() == ["x", "y"]


@pytest.mark.parametrize("engine", ["streaming", "in-memory"])
def test_a_value_at_the_largest_other(engine):
    rows = pl.LazyFrame({"id": [1, 1, 2, 2], "a": [*"xyzz"], "by": [2, 1, None, 3]})
    largest = rows.group_by("id").agg(at_largest(pl.col("a"), pl.col("by"))).sort("id")
    assert largest.collect(engine=engine)["a"].to_list() == ["x", "z"]


def test_sql_asks_self():
    found = by_sql(ROWS.lazy(), "SELECT *, a + 1 AS c FROM self WHERE b = 'x'").collect()
    assert found.rows() == [(1, "x", 2), (3, "x", 4)]


def test_folders_have_the_dtypes_that_are_given(files):
    [path, *_] = parquet_scan(files, ["a"]).paths
    found = parquet_files(path, hive_schema=pl.Schema({"day": pl.String()}), schema=ROWS.schema)
    assert found.select("day", "a").collect().rows() == [("1", 1), ("1", 2), ("1", 3)]


def test_rows_may_have_no_columns():
    assert without_columns(3).with_columns(a=pl.lit(1))["a"].to_list() == [1, 1, 1]


def test_a_scan_alone_is_known_by_its_plan(files, tmp_path):
    ROWS.write_ipc(tmp_path / "log.ipc")
    assert all(map(is_scan_alone, (files, pl.scan_ipc(tmp_path / "log.ipc"), ROWS.lazy())))
    assert not is_scan_alone(files.filter(pl.col("a") > 1))


def test_the_files_and_columns_of_a_scan_are_found(files):
    renamed = files.select("day", key="b", gold="a").with_columns(pred="gold")
    found = parquet_scan(renamed, ["key", "gold", "pred", "day"])
    assert found is not None, "Polars shows its plans in another way"
    assert found.columns == {"key": "b", "gold": "a", "pred": "a", "day": "day"}
    assert [Path(path).parent.name for path in found.paths] == ["day=1", "day=2"]
    assert found.folders.to_dict(as_series=False) == {"day": [1, 2]}
    assert not found.may_differ


@pytest.mark.parametrize(
    "other",
    [
        lambda scan: scan.filter(pl.col("a") > 1),
        lambda scan: scan.head(3),
        lambda scan: scan.with_row_index(),
        lambda scan: scan.with_columns(pl.col("a") + 1),
        lambda scan: scan.select(pl.col("a", "b").unique()),
        lambda scan: pl.concat([scan, scan]),
        lambda scan: scan.collect().lazy(),
    ],
)
def test_another_plan_is_no_scan(files, other):
    assert parquet_scan(other(files), ["a", "b"]) is None


def test_what_is_private_is_asked_here_alone():
    private = re.compile(r"\._(ldf|df|s|pyexpr|from_pydf|from_pyldf)\b|polars\._|polars_runtime")
    found = {path.stem for path in PACKAGE.rglob("*.py") if private.search(path.read_text("utf-8"))}
    assert found == {"unstable_polars"}

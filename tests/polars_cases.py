"""What Polars does otherwise than this package needs, each as small as it gets.

A case says what would be right, and is expected to fail: a case that passes is mended in Polars,
and then what works around it can go.
"""

from __future__ import annotations

import math

import deltalake
import polars as pl
import pyarrow as pa
import pytest


def case(workaround: str) -> pytest.MarkDecorator:
    """Expect that a case fails; say what works around it."""
    return pytest.mark.xfail(raises=BaseException, reason=workaround, strict=True)


@case("computed, in _counts/sliced_log.py")
@pytest.mark.parametrize("engine", ["streaming", "in-memory"])
def test_the_minimum_of_a_column_is_its_least_value_in_any_order(engine):
    rows = pl.LazyFrame({"n": [1, 2]}).sort("n")
    least = pl.col("n").min().over(pl.lit(0), order_by="n", descending=True)
    assert rows.select(least).collect(engine=engine)["n"].to_list() == [1, 1]


@case("joined, in _counts/sliced_log.py")
def test_nan_equals_nan_in_a_join_of_sorted_rows():
    rows = pl.LazyFrame({"k": [math.nan]})
    both = rows.join(pl.LazyFrame({"k": [math.nan]}), on="k", nulls_equal=True)
    assert both.collect(engine="in-memory").height == 1


@case("deferred(..., once=True), in _base/unstable_polars.py")
def test_a_source_that_a_plan_uses_twice_runs_once():
    runs = []

    def read() -> pl.DataFrame:
        runs.append(1)
        return pl.DataFrame({"n": [1]})

    frame = pl.defer(read, schema={"n": pl.Int64})
    pl.concat([frame, frame]).collect()
    assert len(runs) == 1


@case("_without_bytes, in _cli/outputs.py")
def test_bytes_are_written_as_json_or_are_an_error():
    with pytest.raises(pl.exceptions.PolarsError):
        pl.DataFrame({"key": [b"a"]}).write_json()


@case("_of_arrow, in _frame/pandas_and_pyarrow.py")
@pytest.mark.parametrize("dtype", [pa.timestamp("us", "Nowhere"), pa.decimal256(50, 2)])
def test_values_of_a_dictionary_that_polars_does_not_have_are_an_error(dtype):
    values = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([None], dtype))
    with pytest.raises(pl.exceptions.PolarsError):
        pl.from_arrow(values)


@case("Store.scan, in _store/delta_table.py")
@pytest.mark.parametrize("name", ["a folder", "ü"])
def test_a_delta_table_may_be_in_any_folder(tmp_path, name):
    deltalake.write_deltalake(tmp_path / name, pa.table({"n": [1]}))
    assert pl.scan_delta(tmp_path / name).collect().height == 1

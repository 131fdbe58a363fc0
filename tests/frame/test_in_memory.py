"""Frames of pandas and PyArrow: a question needs some columns, and the others may be anything."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support import in_turn

from polars_mcc import PredictionLog

pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
nw = pytest.importorskip("narwhals")

LABELS = {
    "gold": ["a", "b", "a", "b", "a", "b"],
    "pred": ["a", "b", "b", "b", "a", "a"],
    "key": ["x", "x", "y", "y", "x", "y"],
}
PLAIN = pl.DataFrame(LABELS)
INDIA = dt.timezone(dt.timedelta(hours=5, minutes=30))
DAYS = [dt.datetime(2026, 1, 1, 23, tzinfo=INDIA)] * 6


def _table(values, dtype=None):
    return pa.table({**LABELS, "odd": pa.array(values, dtype)})


def _pandas(values):
    return pd.DataFrame(LABELS).assign(odd=values)


def _called(*names):
    """A frame of pandas with further columns of these names."""
    frame = pd.DataFrame([["?"] * len(names)] * 6, columns=pd.Index(names, dtype=object))
    return pd.concat([pd.DataFrame(LABELS), frame], axis=1)


ODD = {
    "integer names": lambda: _called(0, 1),
    "no name": lambda: _called(None),
    "names of tuples": lambda: _called(("a", "b"), ("a", "c")),
    "equal names": lambda: _called("u", "u", 0, "0"),
    "pd.cut": lambda: _pandas(pd.cut(range(6), 3)),
    "intervals": lambda: _pandas(pd.IntervalIndex.from_breaks(range(7))),
    "zone +05:30": lambda: _pandas(pd.Series(pd.to_datetime(DAYS))),
    "zone +05:30, objects": lambda: _pandas(pd.Series(DAYS, dtype=object)),
    "category of +05:30": lambda: _pandas(pd.Categorical(DAYS)),
    "periods": lambda: _pandas(pd.period_range("2026-01", periods=6, freq="M")),
    "objects": lambda: _pandas([object() for _ in range(6)]),
    "mixed": lambda: _pandas(pd.Series([1, "a", None, 2.0, b"x", [1]])),
    "sparse": lambda: _pandas(pd.arrays.SparseArray([0, 0, 1, 0, 0, 1])),
    "complex": lambda: _pandas([1j] * 6),
    "category of mixed": lambda: _pandas(pd.Categorical([1, "a"] * 3)),
    "Arrow: zone +05:30": lambda: _table(DAYS, pa.timestamp("us", "+05:30")),
    "Arrow: dictionary of +05:30": lambda: _table(
        pa.array(DAYS, pa.timestamp("us", "+05:30")).dictionary_encode()
    ),
    "Arrow: decimal256": lambda: _table([Decimal(1)] * 6, pa.decimal256(50, 2)),
    "Arrow: intervals": lambda: _table([(1, 2, 3)] * 6, pa.month_day_nano_interval()),
    "Arrow: equal names": lambda: pa.table(
        [*map(pa.array, LABELS.values()), [1] * 6, [2] * 6], names=[*LABELS, "odd", "odd"]
    ),
}


@in_turn(6, odd=ODD, wrapped=[pytest.param(False, id="native"), pytest.param(True, id="narwhals")])
def test_a_column_that_is_not_needed_is_not_converted(odd, wrapped):
    frame = nw.from_native(ODD[odd]()) if wrapped and "names" not in odd else ODD[odd]()
    log = PredictionLog(frame)
    assert_frame_equal(log.by("key", ci=0.9), PLAIN.mcc.by("key", ci=0.9), check_exact=True)
    assert_frame_equal(log.counts("key"), PLAIN.mcc.counts("key"))
    native = nw.from_native(log.engine_counts("key")).to_polars().cast({"n": pl.Int64})
    want = PLAIN.mcc.counts("key")
    columns = pl.col("key", "gold", "pred").cast(pl.String)
    assert_frame_equal(
        native.with_columns(columns).select(want.columns), want, check_row_order=False
    )


@pytest.mark.parametrize("odd", ["intervals", "zone +05:30", "periods", "Arrow: decimal256"])
def test_a_column_that_polars_has_not_is_named_where_it_is_needed(odd):
    with pytest.raises(
        pl.exceptions.SchemaError, match=r"column 'odd' is .*: cast it in p\w+ first"
    ):
        PredictionLog(ODD[odd]()).by("odd")
    with pytest.raises(pl.exceptions.SchemaError, match="column 'odd' is "):
        PredictionLog(ODD[odd](), gold="odd", pred="odd").by("key")


def test_columns_of_one_name_are_named_where_they_are_needed():
    for odd, name in (("equal names", "u"), ("equal names", "0"), ("Arrow: equal names", "odd")):
        with pytest.raises(pl.exceptions.DuplicateError, match=f"are called '{name}': rename one"):
            PredictionLog(ODD[odd]()).by(name)


def test_names_that_are_integers_are_written_as_text():
    frame = pd.DataFrame(LABELS).set_axis([0, 1, 2], axis=1)
    answer = PredictionLog(frame, gold="0", pred="1").by("2")
    assert_frame_equal(answer, PLAIN.mcc.by("key").rename({"key": "2"}))


INTEGERS, FLOATS = [3, 1, 2, 1, 3, None], [0.5, 1.5, 0.5, -1.0, 1.5, None]
BOOLEANS = [True, False, True, True, False, None]
DATES = [dt.date(2026, 1, 1 + day) for day in (0, 1, 0, 2, 1)] + [None]
DECIMALS = [Decimal("0.5"), Decimal("1.25"), Decimal("0.5"), Decimal(-1), Decimal("1.25"), None]
VALUES = {
    "Int64": (INTEGERS, pl.Int64()),
    "Float64": (FLOATS, pl.Float64()),
    "Boolean": (BOOLEANS, pl.Boolean()),
    "Date": (DATES, pl.Date()),
    "Decimal": (DECIMALS, None),
}
KINDS = {
    "objects": lambda values: pd.Series(values, dtype=object),
    "category": pd.Categorical,
    "category in order": lambda values: pd.Categorical(values, ordered=True),
    "dictionary": lambda values: pa.array(values).dictionary_encode(),
    "Arrow": pa.array,
}


@in_turn(dtype=VALUES, kind=KINDS)
def test_categories_and_objects_are_keys_and_labels_of_their_own_dtype(kind, dtype):
    values, own = VALUES[dtype]
    column, other = KINDS[kind](values), KINDS[kind](values[::-1])
    if isinstance(column, pa.Array | pa.ChunkedArray):
        frame = pa.table({**LABELS, "odd": column, "other": other})
    else:
        frame = pd.DataFrame(LABELS).assign(odd=column, other=other)
    ours = PLAIN.with_columns(pl.Series("odd", values, own), pl.Series("other", values[::-1], own))
    of_keys = PredictionLog(frame).by("odd", ci=0.9)
    assert_frame_equal(
        of_keys, ours.mcc.by("odd", ci=0.9), check_dtypes=dtype != "Decimal", check_exact=True
    )
    labels = {"gold": "odd", "pred": "other"}
    assert_frame_equal(
        PredictionLog(frame, **labels).counts("key"),
        ours.mcc(**labels).counts("key"),
        check_dtypes=dtype != "Decimal",
    )
    assert PredictionLog(frame, **labels).score().equals(ours.mcc(**labels).score())


def test_intervals_of_pandas_are_text_in_their_order():
    frame = pd.DataFrame(LABELS).assign(odd=pd.cut([1, 9, 10, 2, 9, 1], [0, 5, 9, 10]))
    answer = PredictionLog(frame).by("odd")
    assert answer["odd"].to_list() == ["(0, 5]", "(5, 9]", "(9, 10]"]
    assert answer["n"].to_list() == [3, 2, 1]


@pytest.mark.parametrize("late", ["a", 2.5, True])
def test_objects_of_two_kinds_are_an_error_that_names_the_column(late):
    """The first thousand tell the dtype."""
    values = pd.Series([1] * 1000 + [late], dtype=object)
    frame = pd.DataFrame({"gold": values, "pred": values, "key": ["x"] * 1001})
    with pytest.raises(pl.exceptions.PolarsError, match="column 'gold' cannot be read as Int64"):
        PredictionLog(frame).counts("key")


def test_no_time_of_a_datetime_is_lost():
    """To Arrow, a column of dates with a datetime is one of dates."""
    values = pd.Series([dt.date(2026, 1, 1), dt.datetime(2026, 1, 1, 5)] * 3, dtype=object)
    with pytest.raises(pl.exceptions.SchemaError, match="key 'odd' has dtype Object"):
        PredictionLog(_pandas(values)).by("odd")
    zones = [dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)] * 3
    with pytest.raises(pl.exceptions.SchemaError, match="key 'odd' has dtype Object"):
        PredictionLog(_pandas(pd.Series(zones, dtype=object))).by("odd")

"""Bins: rows fall into the bin whose name says so, in every verb."""

from __future__ import annotations

import datetime as dt
import math
import re
import shlex
from collections import Counter
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from runner import invoke
from support import in_turn, some_slow

from polars_mcc import Bootstrap, PredictionLog, bins, cube, each, sets, trailing
from polars_mcc._keys.bins import cut_if_many

I = pl.int_range(400)  # noqa: E741
LOG = pl.select(
    age=(I * 7) % 61 + 18,
    income=((I * 37) % 101).cast(pl.Float64) / 8,
    ts=pl.datetime(2026, 1, 30, 22) + pl.duration(hours=I * 5),
    country=pl.when(I % 3 > 0).then(pl.lit("DE")),
    gold=I % 2,
    pred=(I // 3) % 2,
    other=(I // 5) % 2,
    times=I % 4,
    score=I % 17,
)


_NUMBER = r"(-?[\d.e+-]+)"
_NAMES = {
    f"≤ {_NUMBER}": lambda value, end: value <= float(end),
    f"> {_NUMBER}": lambda value, end: value > float(end),
    f"{_NUMBER} < x ≤ {_NUMBER}": lambda value, low, high: float(low) < value <= float(high),
    r"(-?\d+) to (-?\d+)": lambda value, low, high: int(low) <= value <= int(high),
    r"(-?\d+)": lambda value, one: value == int(one),
    "all": lambda value: not math.isnan(value),
    "NaN": math.isnan,
}


def has(name: str | None, value: float | None) -> bool:
    """Whether a value is in the bin of this name, from the name alone."""
    if value is None or name is None:
        return value is name
    matches = [(re.fullmatch(pattern, name), is_in) for pattern, is_in in _NAMES.items()]
    [(found, is_in)] = [held for held in matches if held[0]]
    return is_in(value, *found.groups())


def named(values: pl.Series, cuts) -> list:
    """The bin of each value, as `by` names it: one row a slice."""
    log = pl.DataFrame({"x": values, "row": range(len(values)), "gold": 1, "pred": 1})
    answer = log.mcc.by("row", bins("x", cuts))
    return answer.sort("row")["x"].to_list()


rising = st.lists(
    st.floats(-1e6, 1e6).map(lambda x: round(x, 3)), min_size=1, max_size=6, unique=True
).map(sorted)


@given(
    floats=st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6), st.just(math.nan)), min_size=1),
    integers=st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=1),
    cuts=rising,
)
def test_a_number_is_in_the_bin_that_its_name_says(floats, integers, cuts):
    floats = pl.Series([*floats, *cuts], dtype=pl.Float64)  # an end is in the bin below it
    for values in (floats, pl.Series(integers, dtype=pl.Int64)):
        for value, name in zip(values, named(values, cuts), strict=True):
            assert has(name, value), (value, name)


@pytest.mark.parametrize(
    ("dtype", "cuts", "value", "name"),
    [
        *((dtype, [0.1, 0.2], 0.1, "≤ 0.1") for dtype in (pl.Float16, pl.Float32, pl.Float64)),
        *((dtype, [0.1, 0.2], 0.2, "0.1 < x ≤ 0.2") for dtype in (pl.Float16, pl.Float32)),
        (pl.Float32, [0.1, 0.2], np.nextafter(np.float32(0.1), np.float32(1)), "0.1 < x ≤ 0.2"),
        (pl.Decimal(2, 1), [0.1, 0.2], Decimal("0.1"), "≤ 0.1"),
        (pl.Decimal(2, 1), [0.1, 100], Decimal("9.9"), "0.1 < x ≤ 100"),
        (pl.Decimal(38, 20), [0.1, 0.2], Decimal("0.10000000000000000001"), "0.1 < x ≤ 0.2"),
        (pl.Decimal(38, 20), [Decimal("0.1"), 0.2], Decimal("0.1"), "≤ 0.1"),
        (pl.Decimal(38, 0), [2**53, 2**53 + 1], Decimal(2**53 + 1), "9007199254740992 < x ≤ 900"),
        (pl.Int64, [2**53, 2**53 + 1], 2**53 + 1, "9007199254740993"),
        (pl.Int8, [-300, 1.5, 300], 1, "-299 to 1"),
        (pl.UInt8, [-1, 255.5], 255, "0 to 255"),
        (pl.UInt64, [2**63, 2**64 - 2], 2**64 - 1, f"> {2**64 - 2}"),
        (pl.Int128, [-(2**100), 2**100], 2**100 + 1, f"> {2**100}"),
        (pl.UInt128, [0, 2**127], 2**127 + 1, f"> {2**127}"),
        (pl.UInt128, [0, 2**127], 2**127, f"1 to {2**127}"),
    ],
    ids=str,
)
def test_a_number_of_any_dtype_is_in_the_bin_that_its_name_says(dtype, cuts, value, name):
    values = pl.Series([value])
    values = values.cast(dtype) if dtype.is_float() else pl.Series([value], dtype=dtype)
    [found] = named(values, cuts)
    assert found.startswith(name)


@pytest.mark.parametrize("dtype", [pl.Float16, pl.Float32, pl.Float64, pl.Decimal(3, 1)], ids=str)
def test_a_slice_of_the_search_has_the_rows_that_it_says(dtype):
    """The search rounds its cuts: to 0.4, which no Float32 is."""
    tenths = [place % 40 for place in range(4_000)]
    x = pl.Series([Decimal(one) / 10 for one in tenths]).cast(dtype)
    log = pl.DataFrame({"x": x, "gold": 1, "pred": [int(one > 8) for one in tenths]})
    found = log.mcc.worst("x", metric="accuracy", verdicts=True, long=True)
    slices = dict(found.select("slice", "n").iter_rows())
    upto = {name: n for name, n in slices.items() if re.fullmatch(r"x ≤ [\d.]+", name)}
    assert len(upto) > 5
    for name, n in upto.items():
        end = round(float(name[4:]) * 10)
        assert abs(end - float(name[4:]) * 10) < 1e-9, "the cut is a tenth"
        assert n == sum(one <= end for one in tenths)


@in_turn(number=[2, 5, 10], name=["age", "income"])
def test_quantiles_make_bins_of_about_the_same_size_with_short_names(name, number):
    answer = LOG.mcc.by(bins(name, number))
    assert answer.height == number
    share = 1 / number
    assert answer["n"].sum() == LOG.height
    assert (answer["n"] / LOG.height).is_between(share * 0.5, share * 1.6).all()
    edges = re.findall(r"[\d.]+", " ".join(answer[name]))
    assert max(map(len, edges)) <= 5, "round numbers"


def test_bins_are_in_their_own_order(run):
    cuts = [9, 18, 25, 100]
    answer = run(LOG, lambda log: log.mcc.by(bins("age", cuts)))
    assert answer["age"].to_list() == ["10 to 18", "19 to 25", "26 to 100"]
    assert isinstance(answer.schema["age"], pl.Enum)
    assert answer.schema["age"].categories.to_list() == [
        *("≤ 9", "10 to 18", "19 to 25", "26 to 100", "> 100")
    ]
    one = LOG.mcc.by(bins("age", [24, 25]))["age"].to_list()
    assert one == ["≤ 24", "25", "> 25"]


@pytest.mark.parametrize(
    ("unit", "name"),
    [
        ("1h", lambda ts: ts.strftime("%Y-%m-%d %H:00")),
        ("1d", lambda ts: ts.strftime("%Y-%m-%d")),
        ("1w", lambda ts: (ts - dt.timedelta(days=ts.weekday())).strftime("%Y-%m-%d")),
        ("1mo", lambda ts: ts.strftime("%Y-%m")),
        ("1q", lambda ts: f"{ts.year}-Q{(ts.month + 2) // 3}"),
        ("1y", lambda ts: f"{ts.year}"),
    ],
)
def test_times_are_named_by_the_calendar(run, unit, name):
    answer = run(LOG, lambda log: log.mcc.by(bins("ts", unit)))
    expected: dict[str, int] = {}
    for ts in LOG["ts"]:
        expected[name(ts)] = expected.get(name(ts), 0) + 1
    assert dict(answer.select("ts", "n").rows()) == expected
    assert answer["ts"].is_sorted()


# A night when clocks go back by an hour at 3; by half an hour; from midnight to 23; from 1 to
# midnight, so that the day has two; and a day that clocks skip.
NIGHTS = [
    ("Europe/Berlin", dt.datetime(2026, 10, 24, 12), {"2026-10-25 02:00 +01:00": 4}),
    ("Australia/Lord_Howe", dt.datetime(2026, 4, 4, 6), {"2026-04-05 01:00 +10:30": 2}),
    ("Africa/Cairo", dt.datetime(2026, 10, 29, 9), {"2026-10-29 23:00 +02:00": 4}),
    ("America/Havana", dt.datetime(2026, 10, 31, 20), {"2026-11-01 00:00 -05:00": 4}),
    ("America/Havana", dt.datetime(2026, 3, 7, 20), {}),
    ("Pacific/Apia", dt.datetime(2011, 12, 29, 20), {}),
    ("Asia/Kathmandu", dt.datetime(2026, 3, 28, 20), {}),
    ("UTC", dt.datetime(2026, 3, 28, 20), {}),
]


@in_turn(3, unit=["ms", "us", "ns"], **{"zone, start, again": NIGHTS})
def test_an_hour_that_clocks_repeat_has_two_bins(run, zone, start, again, unit):
    """The standard library knows the hour, and whether it is the second of this name."""
    quarters = [start + dt.timedelta(minutes=15 * step) for step in range(150)]
    ts = pl.Series(quarters).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    log = pl.DataFrame({"ts": [*ts.dt.cast_time_unit(unit), None], "gold": 1, "pred": 1})
    log = log.with_columns(pl.col("ts").cast(pl.Datetime(unit, zone)))
    local = [one.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)) for one in quarters]
    hours = Counter((one.strftime("%Y-%m-%d %H:00"), one.fold, one.utcoffset()) for one in local)
    answer = run(log, lambda frame: frame.mcc.by(bins("ts", "1h"), metrics="accuracy"))
    assert answer["n"].to_list() == [1, *hours.values()], "in the order of time"
    assert [name[:16] for name in answer["ts"][1:]] == [name for name, *_ in hours]
    assert {name: n for name, n in answer.select("ts", "n").rows()[1:] if name[16:]} == again
    days = Counter(f"{one:%Y-%m-%d}" for one in local)
    answer = run(log, lambda frame: frame.mcc.by(bins("ts", "1d"), metrics="accuracy"))
    assert dict(answer.select("ts", "n").rows()[1:]) == days
    searched = log.with_columns(pred=pl.int_range(pl.len()) % 2)
    found = searched.mcc.worst("ts", metric="accuracy", min_n=1, verdicts=True, long=True)
    slices = found.filter(pl.col("slice").str.contains("="), pl.col("slice") != "ts = null")
    assert sorted(slices.select("slice", "n").rows()) == [
        (f"ts = {day}", n) for day, n in sorted(days.items())
    ]


def test_a_lazy_log_is_read_for_quantiles_when_the_answer_is_collected(tmp_path):
    LOG.write_parquet(tmp_path / "log.parquet")
    lazy = pl.scan_parquet(tmp_path / "log.parquet")
    query = lazy.mcc.by(bins("income", 4), ci=0.95)
    assert query.collect_schema()["income"] == pl.String
    eager = LOG.mcc.by(bins("income", 4), ci=0.95)
    answer = query.collect()
    assert answer.schema == query.collect_schema()
    assert_frame_equal(answer, eager.with_columns(pl.col("income").cast(pl.String)))
    missing = pl.scan_parquet(tmp_path / "log.parquet").mcc.by(bins("income", 4))
    (tmp_path / "log.parquet").unlink()
    assert missing.collect_schema().names() == ["income", "n", "mcc", "n_null"]
    with pytest.raises(FileNotFoundError):
        missing.collect()


def test_quantiles_are_of_the_rows_that_counts_stand_for():
    counts = LOG.mcc.counts("age")
    assert_frame_equal(counts.mcc(weight="n").by(bins("age", 4)), LOG.mcc.by(bins("age", 4)))
    many = pl.DataFrame({"x": [1, 2, 3, 4], "gold": 1, "pred": 1, "n": [1, 1, 1, 997]})
    assert many.mcc(weight="n").by(bins("x", 2))["x"].to_list() == ["all"]


@pytest.mark.parametrize("numbers", [[1.0, -1.0] * 40, [*np.linspace(-1, 1, 80)]], ids=["2", "80"])
@pytest.mark.parametrize("beside", [[], [*range(80)]], ids=["alone", "beside"])
def test_the_largest_floats_are_cut(numbers, beside):
    largest = [1.7976931348623157e308 * number for number in numbers]
    log = pl.DataFrame({"k": pl.Series([*largest, *beside], dtype=pl.Float64)})
    log = log.with_columns(gold=pl.int_range(pl.len()) % 2, pred=1)
    found = log.mcc.by(bins("k", 10))
    assert found["n"].sum() == log.height
    assert found.height >= 2
    assert log.mcc.worst("k", min_n=1, verdicts=True)["n"].max() >= log.height / 4


rng = np.random.default_rng(5)
MANY = 120_000
SHAPES = {
    "heavy tail": rng.lognormal(3, 3, MANY),
    "both signs": rng.normal(0, 1, MANY) ** 3,
    "times beside 0": np.append(1.7e9 + rng.random(MANY - 1) * 2.6e6, 0.0),
    "far from 0": rng.integers(2**62, 2**62 + 10**9, MANY),
    "mostly 0": np.where(rng.random(MANY) < 0.35, 0, rng.random(MANY)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_many_rows_have_the_same_cuts_in_any_order_near_their_quantiles(shape):
    numbers = SHAPES[shape]
    log = pl.DataFrame({"k": numbers, "w": rng.choice([0.1, 0.3], MANY), "gold": 1, "pred": 1})
    weights = {"rows": np.ones(MANY), "sample_weight": log["w"].to_numpy()}
    for kind, weight in weights.items():
        options = {} if kind == "rows" else {kind: "w"}
        orders = (log, log.reverse().lazy(), log.sample(fraction=1, shuffle=True, seed=1).lazy())
        found = [rows.mcc(**options).by(bins("k", 5)).lazy().collect() for rows in orders]
        assert found[0]["k"].to_list() == found[1]["k"].to_list() == found[2]["k"].to_list()
        ends = [float(re.findall(_NUMBER, name)[-1]) for name in found[0]["k"][:-1]]
        assert len(ends) >= 3
        for end in ends:
            below, upto = (
                weight[is_in].sum() / weight.sum() for is_in in (numbers < end, numbers <= end)
            )
            assert any(below - 0.03 <= part / 5 <= upto + 0.03 for part in range(1, 5)), end


def test_the_search_and_the_report_cut_many_rows_alike_in_any_order():
    seconds = pl.int_range(MANY) * 37 % 86_400
    log = pl.DataFrame({"k": SHAPES["heavy tail"], "gold": rng.integers(0, 2, MANY)}).with_columns(
        pred=pl.when(pl.col("k") > 300).then(1 - pl.col("gold")).otherwise("gold"),
        t=dt.datetime(2026, 1, 1) + pl.duration(seconds=seconds),
    )
    other = log.sample(fraction=1, shuffle=True, seed=2)
    found, expected = (rows.mcc.worst("k", verdicts=True) for rows in (other, log))
    assert_frame_equal(found, expected)
    cuts = [cut_if_many(rows.mcc(), {"k": "k", "t": "t"}, 10) for rows in (other.lazy(), log)]
    assert cuts[0] == cuts[1]
    assert [key.cuts for key in cuts[0].values()][1:] == ["1d"]


@pytest.mark.parametrize("number", [2, 4])
@pytest.mark.parametrize(
    "pair",
    [(101, 203), (-128, 127), (1234, 5678), (-1.28, 1.27), (0.96, 1.0), (-(2**63), 2**63 - 1)],
)
def test_two_values_are_two_bins(pair, number):
    """A round number may be below both, or above."""
    log = pl.DataFrame({"k": [*pair] * 50, "gold": ["u", "v"] * 50, "pred": ["u"] * 100})
    assert log.mcc.by(bins("k", number))["n"].to_list() == [50, 50]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        ([5, 5, 5], ["all"]),
        ([None, None], [None]),
        ([math.nan, 1.0], ["all", "NaN"]),
        ([math.inf, -math.inf, 1.0, 2.0], ["≤ 1", "> 1"]),
    ],
)
def test_little_to_cut(values, expected):
    dtype = pl.Int64 if values and all(isinstance(one, int) for one in values) else pl.Float64
    log = pl.DataFrame({"x": pl.Series(values, dtype=dtype)})
    log = log.with_columns(gold=pl.lit(1), pred=pl.lit(1))
    assert log.mcc.by(bins("x", 2))["x"].to_list() == expected


VERBS = {
    "counts": lambda log, *keys: log.counts(*keys),
    "classes": lambda log, *keys: log.classes(*keys),
    "confusion": lambda log, *keys: log.confusion(*keys, long=True),
    "compare": lambda log, *keys: log(pred=["pred", "other"]).compare(*keys),
    "contrast": lambda log, *keys: log.contrast(*keys),
    "contrast, best": lambda log, *keys: log.contrast(*keys, to="best"),
    "gaps": lambda log, *keys: log.gaps(*keys, metrics="accuracy"),
    "drift": lambda log, *keys: log.drift(
        *keys, before=pl.col("country").is_null(), after=pl.col("country") == "DE"
    ),
    "curve": lambda log, *keys: log(score="score", positive=1).curve(*keys, thresholds=3),
    "best_threshold": lambda log, *keys: log(score="score", positive=1).best_threshold(*keys),
    "calibration": lambda log, *keys: log(score="gold", positive=1).calibration(*keys),
    "check": lambda log, *keys: log.check(*keys, metric="accuracy", min=0),
    "bootstrap": lambda log, *keys: log.by(*keys, ci=0.9, method=Bootstrap(100, seed=1)),
    "worst": lambda log, *keys: log.worst(*keys, min_n=1, verdicts=True),
}


@in_turn(7, cuts=[[30, 50], 3], verb=some_slow(VERBS, "contrast"))
def test_every_verb_takes_bins(verb, cuts):
    """The answer is that of a column which already has the names of the bins."""
    edges = [30, 50]
    if cuts == 3:
        names = LOG.mcc.by(bins("age", 3)).schema["age"].categories
        edges = [int(re.findall(r"\d+", name)[-1]) for name in names[:-1]]
    first, last = f"≤ {edges[0]}", f"> {edges[1]}"
    middle = f"{edges[0] + 1} to {edges[1]}"
    place = (pl.col("age") > edges[0]).cast(pl.Int8) + (pl.col("age") > edges[1]).cast(pl.Int8)
    column = place.replace_strict([0, 1, 2], [first, middle, last])
    cut = LOG.with_columns(age=column.cast(pl.Enum([first, middle, last])))
    assert_frame_equal(VERBS[verb](LOG.mcc, bins("age", cuts)), VERBS[verb](cut.mcc, "age"))


@pytest.mark.slow
def test_bins_within_sets_and_beside_windows():
    names = ["≤ 30", "31 to 50", "> 50"]
    place = (pl.col("age") > 30).cast(pl.Int8) + (pl.col("age") > 50).cast(pl.Int8)
    cut = LOG.with_columns(age=place.replace_strict([0, 1, 2], names, return_dtype=pl.Enum(names)))
    age = bins("age", [30, 50])
    assert_frame_equal(LOG.mcc.by(each(age, "country")), cut.mcc.by(each("age", "country")))
    assert_frame_equal(LOG.mcc.by(cube(age, "country")), cut.mcc.by(cube("age", "country")))
    listed = sets((age, "country"), age, ())
    assert_frame_equal(LOG.mcc.by(listed), cut.mcc.by(sets(("age", "country"), "age", ())))
    week = trailing("ts", "7d")
    assert_frame_equal(LOG.mcc.by(age, week), cut.mcc.by("age", week))
    lazy = LOG.lazy().mcc.by(sets((bins("age", 3), "country"), bins("age", 3))).collect()
    assert lazy["keys"].unique(maintain_order=True).to_list() == ["age, country", "age"]
    assert lazy.filter(pl.col("keys") == "age").height == 3
    inside = LOG.mcc.contrast("country", within=age, metrics="accuracy")
    assert_frame_equal(inside, cut.mcc.contrast("country", within="age", metrics="accuracy"))
    assert LOG.lazy().mcc.contrast("country", within=[bins("age", 3)]).collect().height == 6


@pytest.mark.parametrize(
    ("cuts", "message"),
    [
        (1, "cuts=1 is the number of bins, and must be at least 2"),
        (True, "cuts must be rising numbers"),
        ([], "cuts must be rising numbers"),
        ([3, 3], "cuts must be rising numbers"),
        ([3, 2], "cuts must be rising numbers"),
        ([1, math.inf], "cuts must be rising numbers"),
        (["a"], "cuts must be rising numbers"),
        (1.5, "cuts must be rising numbers"),
        ("7d", "cuts='7d' is no unit of the calendar"),
    ],
)
def test_cuts_that_make_no_sense(cuts, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        bins("age", cuts)


@pytest.mark.parametrize("cuts", [np.array([30, 50]), pl.Series([30, 50]), (30, 50), np.int64(5)])
def test_cuts_of_numpy_and_polars(cuts):
    plain = 5 if np.ndim(cuts) == 0 else [30, 50]
    assert repr(bins("age", cuts)) == repr(bins("age", plain))


def test_a_column_and_its_bins_need_two_names():
    message = "two key columns have the same name 'age'; rename one with .alias(...)"
    with pytest.raises(pl.exceptions.DuplicateError, match=re.escape(message)):
        LOG.mcc.by(bins("age", [30]), "age")
    renamed = LOG.mcc.by(bins(pl.col("age").alias("age_2"), [30]), "age")
    assert renamed.columns[:2] == ["age_2", "age"]


@in_turn(
    log=[pytest.param(LOG, id="eager"), pytest.param(LOG.lazy(), id="lazy")],
    **{
        "key, error, message": [
            (
                bins("country", 3),
                pl.exceptions.SchemaError,
                "'country' is String; cast it, or slice",
            ),
            (
                bins("ts", 3),
                pl.exceptions.SchemaError,
                r"'ts' is Datetime.* in bins\(.ts., .1mo.\)",
            ),
            (
                bins(pl.col("ts").dt.date(), "1h"),
                pl.exceptions.SchemaError,
                "cut it by '1d' or longer",
            ),
            (
                bins(pl.col("ts").dt.time(), "1h"),
                pl.exceptions.SchemaError,
                "'ts' is Time; cut a number of it",
            ),
            (bins("age", "1mo"), pl.exceptions.SchemaError, "bins of times need a column of times"),
            (bins("agee", 3), pl.exceptions.ColumnNotFoundError, "did you mean 'age'"),
        ]
    },
)
def test_columns_that_cannot_be_cut(log, key, error, message):
    with pytest.raises(error, match=message):
        log.mcc.by(key)


@pytest.mark.parametrize("cuts", [5, [30, 50]], ids=str)
def test_another_engine_needs_a_column(cuts):
    pytest.importorskip("narwhals")
    import duckdb  # noqa: PLC0415

    log = PredictionLog(duckdb.sql("SELECT 1 AS age, 1 AS gold, 1 AS pred"))
    with pytest.raises(TypeError, match=r'bins\("age", .*\) needs a Polars frame: add a'):
        log.by(bins("age", cuts))


@given(seed=st.integers(0, 2**16), number=st.integers(2, 12))
def test_the_names_of_any_bins_hold_their_rows(seed, number):
    rng = np.random.default_rng(seed)
    values = {
        0: rng.normal(size=200) * 10.0 ** rng.integers(-5, 6),
        1: rng.integers(-50, 50, 200).astype(float),
        2: rng.lognormal(0, 3, 200),
    }[seed % 3]
    column = pl.Series(values if seed % 2 else np.round(values, 2))
    if seed % 5 == 0:
        column = column.round(0).cast(pl.Int64, strict=False)
    for value, name in zip(column, named(column, number), strict=True):
        assert has(name, value), (value, name)


LOW, HIGH = -(2**127), 2**127 - 1


@in_turn(
    cut=[LOW - 1, LOW, -1, 0, 1, 2**63, 2**64, HIGH, 2**127, 2**128 - 1, 2**128, 1e40, -1e60],
    **{
        "dtype, values": [
            (pl.UInt128, [0, 1, 2**64, 2**127, 2**127 + 1, 2**128 - 1]),
            (pl.Int128, [LOW, LOW + 1, -1, 0, 2**64, HIGH]),
            (pl.UInt64, [0, 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]),
            (pl.Int8, [-128, -1, 0, 1, 2, 127]),
        ]
    },
)
def test_integers_are_compared_with_any_cut_exactly(dtype, values, cut):
    log = pl.DataFrame({"gold": 1, "pred": 1, "x": pl.Series(values, dtype=dtype)})
    found = log.mcc.by(bins("x", [cut]))
    at = math.floor(cut)
    want = [
        (f"≤ {at}", sum(one <= at for one in values)),
        (f"> {at}", sum(one > at for one in values)),
    ]
    assert found.select("x", "n").rows() == [one for one in want if one[1]]


@pytest.mark.parametrize("dtype", [pl.UInt128, pl.Int128])
def test_a_number_of_bins_of_integers_of_128_bits(dtype):
    least = LOW if dtype == pl.Int128 else 2**128 - 300
    values = [least + place for place in range(300)]
    log = pl.DataFrame({"gold": [0, 1] * 150, "pred": 1, "x": pl.Series(values, dtype=dtype)})
    found = log.mcc.by(bins("x", 3))
    assert found["n"].sum() == 300
    assert found["n"].to_list() == pytest.approx([100] * 3, abs=15)
    assert found.equals(log.lazy().mcc.by(bins("x", 3)).collect())
    log.mcc.worst("x", min_n=10)


@pytest.mark.parametrize("key", ["waited", "clock"])
def test_a_duration_or_a_time_says_how_to_cut_it(key, tmp_path, monkeypatch):
    """What the message advises is done, in Python and in the shell."""
    monkeypatch.chdir(tmp_path)
    waited = pl.Series(range(0, 40 * 7, 7)).cast(pl.Duration("ms")) * 1000
    clock = [dt.time(3 * place % 24, 59) for place in range(40)]
    log = pl.DataFrame({"waited": waited, "clock": clock}).with_columns(gold=1, pred=1)
    log.write_parquet("log.parquet")
    numbers = range(0, 40 * 7, 7) if key == "waited" else [time.hour for time in clock]
    with pytest.raises(pl.exceptions.SchemaError, match="cut a number of it, as in ") as raised:
        log.mcc.by(bins(key, 4))
    way_out = eval(str(raised.value).split("as in ")[1])  # noqa: S307 - our own message
    found = log.mcc.by(way_out)
    names = found[key].cast(pl.String).to_list()
    wanted = Counter(next(name for name in names if has(name, number)) for number in numbers)
    assert dict(found[key, "n"].cast({key: pl.String}).rows()) == wanted
    refused = invoke("by", "log.parquet", "--by", f"bins({key}, 4)")
    typed = shlex.split(refused.stderr.split("as in ")[1])
    done = invoke("by", "log.parquet", *typed, "--format", "csv")
    assert pl.read_csv(done.stdout_bytes)["n"].to_list() == found["n"].to_list()

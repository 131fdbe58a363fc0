"""Labels in another frame, against dictionaries; rows that wait, in each verb; rows of an age."""

from __future__ import annotations

import datetime as dt
import itertools
import random
import re
import warnings
from collections import defaultdict

import polars as pl
import polars.selectors as cs
import pytest
from polars.testing import assert_frame_equal
from support import first

import polars_mcc
from polars_mcc import PredictionLog as Log
from polars_mcc import PredictionLogWarning, bins, each, trailing

IDS = [*"abcdefghij", None]
NotFound = pl.exceptions.ColumnNotFoundError
DAYS = [dt.date(2026, 3, day) for day in range(1, 6)]


def labels_of(rows: list[tuple], *, has_time: bool) -> dict[object, set]:
    """The labels of each id, at its newest time: rows of (id, label, time)."""
    newest: dict[object, object] = {}
    labels: dict[object, set] = defaultdict(set)
    for id_, label, time in rows:
        at = -1 if time is None or not has_time else time
        if id_ not in newest or at > newest[id_]:
            newest[id_] = at
            labels[id_] = set()
        if at == newest[id_] and label is not None:
            labels[id_].add(label)
    return labels


def drawn(draw: random.Random, *, of_two: int, has_time: bool) -> tuple[list, list]:
    """Predictions (id, country, pred) and labels (id, label, time), with few or many conflicts."""
    ids = [*range(30), None]
    predictions = [
        (draw.choice(ids), draw.choice(["DE", "FR", None]), draw.choice(["x", "y", "z", None]))
        for _ in range(draw.randint(0, 60))
    ]
    truth = {id_: draw.choice("xyz") for id_ in ids}
    labels = []
    for _ in range(draw.randint(0, 60)):
        id_, time = draw.choice([*ids, *range(100, 110)]), draw.choice([*range(50), *[None] * 25])
        label = (
            truth.get(id_, "x") if draw.random() * of_two < 1 or has_time else draw.choice("xyz")
        )
        if has_time:  # Equal times have equal labels, unless there are conflicts.
            label = draw.choice("xyz") if of_two > 1 else "xyz"[hash((id_, time)) % 3]
        labels.append((id_, draw.choice([label, label, None]), time))
    return predictions, labels


DTYPES = [
    pl.Int64(),
    pl.UInt8(),
    pl.String(),
    pl.Categorical(),
    pl.Decimal(10, 2),
    pl.Date(),
    pl.Datetime("ms", "UTC"),
    pl.Binary(),
    pl.Struct({"tens": pl.Int64(), "ones": pl.String()}),
]
"""Of ids; a struct stands for several columns."""


def as_id(values: list[int | None], dtype: pl.DataType) -> dict[str, pl.Series]:
    """The columns of an id."""
    numbers = pl.Series(values, dtype=pl.Int64)
    if isinstance(dtype, pl.Struct):
        return {"tens": numbers // 10, "ones": (numbers % 10).cast(pl.String)}
    if dtype in (pl.String, pl.Categorical, pl.Binary):
        numbers = numbers.cast(pl.String)
    return {"id": numbers.cast(dtype)}


def in_message(id_: int, dtype: pl.DataType) -> str:
    """An id as an error names it."""
    columns = as_id([id_], dtype).items()
    if dtype == pl.Binary:
        return f"id {str(id_).encode().hex()} has"
    return ", ".join(f"{name} {column.cast(pl.String).item()}" for name, column in columns) + " has"


@pytest.mark.parametrize("has_time", [False, True])
@pytest.mark.parametrize("dtype", first(4, [*DTYPES[:3], DTYPES[-1], *DTYPES[3:-1]]))
@pytest.mark.parametrize("seed", first(4, range(8)))
def test_each_prediction_has_the_label_that_a_dictionary_gives(seed, dtype, has_time):
    draw = random.Random(f"{seed} {has_time}")
    predictions, rows = drawn(draw, of_two=1 if seed % 4 else 20, has_time=has_time)
    known = labels_of([row for row in rows if row[0] is not None], has_time=has_time)
    ids, countries, preds = zip(*predictions, strict=True) if predictions else ((), (), ())
    log = pl.DataFrame(
        {**as_id([*ids], dtype), "country": [*countries], "pred": [*preds]},
        schema_overrides={"country": pl.String, "pred": pl.String},
    )
    of_labels, labels, times = zip(*rows, strict=True) if rows else ((), (), ())
    outcomes = pl.DataFrame(
        {**as_id([*of_labels], dtype), "y": [*labels], "at": [*times], "other": 1},
        schema_overrides={"y": pl.String, "at": pl.Int64},
    )
    options = {"outcomes": outcomes, "on": [*as_id([], dtype)], "gold": "y"}
    options |= {"latest": "at"} if has_time else {}
    lazy = {**options, "outcomes": outcomes.lazy()}
    of_two = [id_ for id_, some in known.items() if len(some) > 1]
    if of_two:
        for ask in (
            lambda: log.mcc(**options),
            lambda: log.lazy().mcc(**lazy).by("country").collect(),
        ):
            with pytest.raises(pl.exceptions.InvalidOperationError, match="two labels") as error:
                ask()
            assert any(in_message(id_, dtype) in str(error.value) for id_ in of_two)
        return
    gold = [next(iter(known.get(id_, ())), None) if id_ is not None else None for id_ in ids]
    joined = log.with_columns(y=pl.Series(gold, dtype=pl.String))
    described = log.mcc(**options)
    assert_frame_equal(described.frame.select(joined.columns), joined)
    expected = joined.mcc(gold="y", waiting=True).by("country")
    assert_frame_equal(described.by("country"), expected)
    assert_frame_equal(log.lazy().mcc(**lazy).by("country").collect(), expected)
    assert_frame_equal(log.lazy().mcc(**options).by("country").collect(), expected)
    waiting = joined.group_by("country").agg(n=pl.col("y").null_count().cast(pl.Int64))
    assert dict(expected.select("country", "n_waiting").rows()) == dict(waiting.rows())


PREDICTIONS = pl.DataFrame(
    {
        "id": [1, 2, 3, 4, 5, 6, 7, 8],
        "part": ["a", "a", "b", "b"] * 2,
        "country": ["DE", "DE", "FR", "FR"] * 2,
        "day": DAYS[:4] * 2,
        "pred": ["x", "y", "x", None, "x", "y", "y", "x"],
        "second": ["x", "x", "x", "y", "y", "y", "y", "x"],
        "score": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, None, 0.8],
        "n": [1, 2, 3, 4, 5, 6, 7, 8],
    }
)
OUTCOMES = pl.DataFrame({"id": [1, 2, 3, 5, 6, 9], "y": [*"xyxyyx"], "at": [1, 1, 2, 3, 4, 5]})


def asked(**options) -> Log:
    return PREDICTIONS.mcc(outcomes=OUTCOMES, on="id", gold="y", **options)


WAYS = {
    "by": lambda log: log.by(),
    "by, ci": lambda log: log.by(ci=0.95),
    "by, pairs": lambda log: log.by(metrics="mutual_info"),
    "by, bins": lambda log: log.by(bins("id", 2)),
    "by, windows": lambda log: log.by(trailing("day", "1w")),
    "by, sets": lambda log: log.by(each("country", total=True)).filter(keys=""),
    "score": lambda log: log.score(),
    "classes": lambda log: log.classes().head(1),
    "classes, ci": lambda log: log.classes(ci=0.95).head(1),
    "confusion": lambda log: log.confusion().head(1),
    "confusion, long": lambda log: log.confusion(long=True, labels=["x", "y"]).head(1),
    "confusion, top": lambda log: log.confusion(top=1).head(1),
    "contrast": lambda log: log.contrast("country"),
    "gaps": lambda log: log.gaps("country"),
    "drift": lambda log: log.drift(before=pl.col("id") < 3, after=pl.col("id") >= 3),
    "worst": lambda log: log.worst("country", min_n=1, verdicts=True),
    "compare": lambda log: log(pred=["second", "pred"]).compare(),
    "curve": lambda log: log(positive="x", score="score").curve().head(1),
    "best_threshold": lambda log: log(positive="x", score="score").best_threshold(),
    "calibration": lambda log: log(positive="x", score="score").calibration(bins=1),
    "scores": lambda log: log(positive="x", score="score").by(metrics="brier"),
    "both": lambda log: log(positive="x", pred="pred", score="score").by(metrics=["mcc", "brier"]),
}


@pytest.mark.parametrize("weight", [None, "n"])
@pytest.mark.parametrize("way", WAYS)
def test_each_verb_tells_how_many_rows_wait(way, weight):
    """Rows 4, 7 and 8 have no label; in row 4 there is no prediction either."""
    log = asked(weight=weight)
    for kind in (log, log.with_frame(log.frame.lazy())):
        if way == "confusion" and kind is not log:
            continue
        answer = WAYS[way](kind).lazy().collect()
        assert answer.columns[-2:] == ["n_null", "n_waiting"]
        waiting = answer.filter(pl.col("n_null") > 0)["n_waiting"].sum()
        assert waiting == (4 + 7 + 8 if weight else 3), answer
        assert waiting <= answer["n_null"].sum()


def test_a_log_whose_labels_do_not_come_later_does_not_tell():
    assert "n_waiting" not in PREDICTIONS.mcc(gold="second").by().columns
    told = PREDICTIONS.mcc(gold="pred", pred="second", waiting=True).by()
    assert told.select("n", "n_null", "n_waiting").rows() == [(7, 1, 1)]


def test_a_list_of_labels_waits_too():
    log = pl.DataFrame({"id": [1, 2, 3, 4], "pred": [["a"], ["b"], None, ["a", "b"]]})
    labels = pl.DataFrame({"id": [1, 1, 3, 4], "gold": [["a", "b"], ["b", "a"], ["a"], None]})
    answer = log.mcc(outcomes=labels, on="id").by(metrics="mcc")
    assert answer.select("n", "n_null", "n_waiting").rows() == [(1, 3, 2)]


def test_a_check_tells_how_many_rows_wait():
    assert asked().check(min=0.0)["n_waiting"].item() == 3


def test_ids_may_be_several_columns_and_expressions():
    labels = OUTCOMES.with_columns(part=pl.Series([*"aababa"]))
    by_two = PREDICTIONS.mcc(outcomes=labels, on=["id", "part"], gold="y").by()
    expected = PREDICTIONS.join(labels, on=["id", "part"], how="left").mcc(gold="y").by()
    assert_frame_equal(by_two.drop("n_waiting"), expected)
    text = OUTCOMES.with_columns(pl.col("id").cast(pl.String) + " ")
    stripped = pl.col("id").cast(pl.String).str.strip_chars()
    assert PREDICTIONS.mcc(outcomes=text, on=stripped, gold="y").by().equals(asked().by())
    shouted = pl.col("y").str.to_uppercase().alias("gold")
    pred = pl.col("pred").str.to_uppercase()
    upper = PREDICTIONS.mcc(outcomes=OUTCOMES, on="id", gold=shouted, pred=pred)
    assert upper.by().equals(asked().by())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"on": None}, ValueError, "outcomes needs the columns"),
        (
            {"on": "nr"},
            NotFound,
            "predictions have no column 'nr' for on",
        ),
        ({"on": "n"}, NotFound, "outcomes have no column 'n' for on"),
        (
            {"gold": "label"},
            NotFound,
            "outcomes have no column 'label'",
        ),
        (
            {"latest": "then"},
            NotFound,
            "outcomes have no column 'then'",
        ),
        ({"latest": "y"}, pl.exceptions.SchemaError, "latest must be a date"),
        ({"gold": "id"}, pl.exceptions.DuplicateError, "both the predictions and the outcomes"),
        ({"nulls": "label"}, ValueError, "waits has no class"),
        ({"outcomes": None}, ValueError, "on is about labels in another frame"),
        ({"outcomes": 3}, TypeError, "expected a polars DataFrame"),
        ({"on": pl.col("id").cast(pl.String), "outcomes": OUTCOMES}, None, ""),
        (
            {"outcomes": OUTCOMES.cast({"id": pl.String})},
            pl.exceptions.SchemaError,
            "'id' is Int64",
        ),
        ({"outcomes": OUTCOMES.cast({"id": pl.Int8})}, None, ""),
        ({"min_age": "1d"}, ValueError, "min_age needs time too"),
        ({"min_age": "1d", "time": "n"}, pl.exceptions.SchemaError, "time 'n' must be Date or"),
        ({"min_age": "soon", "time": "day"}, ValueError, "min_age must be a length of time"),
        ({"min_age": "1d", "time": "day", "now": "soon"}, ValueError, "now must be a time like"),
        ({"now": "2026-03-04", "time": "day"}, ValueError, "now needs min_age too"),
    ],
)
def test_what_is_wrong_is_said(options, error, message):
    described = {"outcomes": OUTCOMES, "on": "id", "gold": "y", **options}
    if error is None:
        assert Log(PREDICTIONS, **described).by().equals(asked().by())
        return
    with pytest.raises(error, match=message):
        Log(PREDICTIONS, **described)


UTC = dt.UTC
TIMES = [dt.datetime(2026, 3, day, tzinfo=UTC) for day in (1, 2)]
KINDS_OF_ID: dict[pl.DataType, list] = {
    pl.Int64(): [1, 2],
    pl.String(): ["1", "2"],
    pl.Binary(): [b"1", b"2"],
    pl.Decimal(10, 2): [1, 2],
    pl.Decimal(12, 4): [1, 2],
    pl.Date(): [time.date() for time in TIMES],
    pl.Duration("ms"): [dt.timedelta(1), dt.timedelta(2)],
    pl.Duration("ns"): [dt.timedelta(1), dt.timedelta(2)],
    pl.Datetime("ms"): [time.replace(tzinfo=None) for time in TIMES],
    pl.Datetime("us"): [time.replace(tzinfo=None) for time in TIMES],
    pl.Datetime("us", "UTC"): TIMES,
    pl.Datetime("ms", "Asia/Tokyo"): TIMES,
    pl.Datetime("ns", "UTC"): TIMES,
}
"""Ids that are equal in all dtypes of a kind."""
OF_A_KIND = [pl.Decimal, pl.Duration, (pl.Date, pl.Datetime), (pl.Int64, pl.Decimal)]
OF_A_KIND += [(pl.Int64, pl.String), (pl.Binary, pl.String)]


def test_a_cast_of_ids_that_is_advised_makes_them_match():
    reached = 0
    for one, other in itertools.product(KINDS_OF_ID, repeat=2):
        if not any(isinstance(one, kind) and isinstance(other, kind) for kind in OF_A_KIND):
            continue
        frames = [
            pl.DataFrame({"id": pl.Series(KINDS_OF_ID[dtype], dtype=dtype)})
            for dtype in (one, other)
        ]
        log, labels = frames[0].with_columns(pred=1), frames[1].with_columns(y=1)
        if one != other:
            with pytest.raises(pl.exceptions.SchemaError, match="cast both, as in") as raised:
                log.mcc(outcomes=labels, on="id", gold="y")
            code = eval(str(raised.value).split("as in ")[1], {"pl": pl})  # noqa: S307 - it is to be pasted
            log, labels = (frame.with_columns(code) for frame in (log, labels))
            reached += 1
        scored = log.mcc(outcomes=labels, on="id", gold="y").score(metrics="accuracy")
        assert scored.select("n", "n_waiting").row(0) == (2, 0), (one, other)
    assert reached == 2 + 2 + 30 + 4 + 2 + 2


def test_ids_that_cannot_match_are_refused():
    nested = [pl.List(pl.Int64), pl.Array(pl.Int64, 2), pl.Struct({"a": pl.Int64})]
    asked = {"on": "id", "gold": "y"}
    for dtype, other in [*zip(nested, nested, strict=True), (pl.Int64, nested[0])]:
        outcomes = pl.LazyFrame(schema={"id": other, "y": pl.Int64})
        with pytest.raises(
            pl.exceptions.SchemaError, match="an id must be a plain value"
        ) as raised:
            pl.LazyFrame(schema={"id": dtype, "pred": pl.Int64}).mcc(outcomes=outcomes, **asked)
        assert "cast" not in str(raised.value)
    floats = [pl.Float32, pl.Float64]
    for dtype, other in [
        *itertools.product(floats, floats),
        (pl.Int64, pl.Float64),
        (pl.Float32, pl.String),
    ]:
        outcomes = pl.LazyFrame(schema={"id": other, "y": pl.Int64})
        with pytest.raises(pl.exceptions.SchemaError, match=r"pl.col\('id'\).cast\(pl.Int64\)$"):
            pl.LazyFrame(schema={"id": dtype, "pred": pl.Int64}).mcc(outcomes=outcomes, **asked)
    apart = [(pl.Float64, pl.Categorical), (pl.Duration, pl.Int64), (pl.Duration, pl.String)]
    apart += [(pl.Int64, pl.Date), (pl.Datetime, pl.Int64), (pl.Int64, pl.Time)]
    for dtype, other in [*apart, (pl.Boolean, pl.Int64), (pl.Object, pl.String)]:
        outcomes = pl.LazyFrame(schema={"id": other, "y": pl.Int64})
        why = (
            r"\.map\(str\) of pandas$" if dtype == pl.Object else "name columns with the same ids$"
        )
        with pytest.raises(pl.exceptions.SchemaError, match=why):
            pl.LazyFrame(schema={"id": dtype, "pred": pl.Int64}).mcc(outcomes=outcomes, **asked)
    duckdb = pytest.importorskip("duckdb")
    log, labels = (
        duckdb.sql(f"SELECT {id_} AS id, 1 AS {label}")
        for id_, label in (("1", "pred"), ("'1'", "y"))
    )
    with pytest.raises(
        pl.exceptions.SchemaError, match="cast both, as in String, by the engine"
    ) as raised:
        Log(log, outcomes=labels, **asked)
    assert "pl.col" not in str(raised.value)


@pytest.mark.parametrize("now", [None, dt.date(2026, 3, 4), "2026-03-04"])
@pytest.mark.parametrize("age", ["2d", dt.timedelta(days=2), "48h"])
def test_rows_are_old_enough(now, age):
    is_old = pl.col("day") <= dt.date(2026, 3, 2)
    expected = PREDICTIONS.filter(is_old).mcc(gold="second").by()
    for frame in (PREDICTIONS, PREDICTIONS.lazy()):
        answer = frame.mcc(gold="second", time="day", min_age=age, now=now).by()
        assert answer.lazy().collect().equals(expected)


@pytest.mark.parametrize(
    "dtype", [pl.Date, *(pl.Datetime("ms", zone) for zone in (None, "UTC", "Asia/Tokyo"))]
)
def test_a_row_of_the_future_makes_no_other_row_old(dtype):
    now = dt.datetime.now(dt.UTC)
    # A time without a zone is old where on earth it is latest: no row is near the 8 days.
    times = pl.Series([now - dt.timedelta(days) for days in (50, 20, 10, 6, 0)]).cast(dtype)
    times = pl.concat([times, pl.Series([dt.datetime(9999, 12, 31)] * 3).cast(dtype)])
    log = pl.DataFrame({"at": times, "gold": [1, 0] * 4, "pred": [1, 0, 1, 1, 0, 0, 1, 1]})
    for frame in (log, log.lazy()):
        of_age = [frame.mcc(time="at", min_age=f"{age}d").by().lazy() for age in (8, 15, 60)]
        counted = pl.concat(answer.select("n").sum() for answer in of_age)
        assert counted.collect()["n"].to_list() == [3, 2, 0]
        with pytest.warns(PredictionLogWarning, match="3 rows is after now"):
            looked = (
                frame.mcc(time="at")
                .changes(lookback="8d", metric="accuracy", to="rest", min_n=1)
                .lazy()
                .collect()
            )
        assert looked["n_before"].item() + looked["n_after"].item() == 5


def test_an_age_counts_calendar_months_and_zones():
    times = [dt.datetime(2026, 2, 28), dt.datetime(2026, 3, 1), dt.datetime(2026, 3, 31), None]
    times = pl.Series(times).dt.replace_time_zone("Europe/Berlin")
    log = pl.DataFrame({"at": times, "gold": [1, 0, 1, 1], "pred": [1, 0, 0, 0]})
    of_month = log.mcc(time="at", min_age="1mo").by()
    assert of_month["n"].item() == 1  # 28 February is a month before 31 March.
    told = log.mcc(time="at", min_age="30d", now=dt.datetime(2026, 3, 31, tzinfo=dt.UTC))
    assert told.by()["n"].item() == 2
    for now in (dt.datetime(2026, 3, 31), "2026-03-31 00:00"):
        assert log.mcc(time="at", min_age="30d", now=now).by()["n"].item() == 2
        assert log.mcc(time="at", min_age="31d", now=now).by()["n"].item() == 1


def test_a_lazy_log_reads_nothing_before_collect():
    def read() -> pl.DataFrame:
        raise AssertionError

    rows = pl.defer(read, schema=PREDICTIONS.schema)
    labels = pl.defer(read, schema=OUTCOMES.schema)
    log = rows.mcc(outcomes=labels, on="id", gold="y", latest="at", time="day", min_age="1d")
    assert log.by("country").collect_schema().names()[-1] == "n_waiting"
    assert log.by("country", ci=0.95).collect_schema().names()[-1] == "n_waiting"


@pytest.fixture(scope="module")
def fraud() -> pl.DataFrame:
    """Rows predicted "fraud" are all labelled, and 30 % of the others."""
    draw = random.Random(1)
    rows = []
    for place in range(2000):
        is_fraud = draw.random() < 0.1
        pred = is_fraud if draw.random() < 0.9 else not is_fraud
        label = is_fraud if pred or draw.random() < 0.3 else None
        names = (None if value is None else "fraud" if value else "ok" for value in (label, pred))
        rows.append((place % 2, *names))
    return pl.DataFrame(rows, schema=["key", "gold", "pred"], orient="row")


REMARK = "known for 100 % of the rows predicted 'fraud', and for 30 % of those predicted 'ok'"
ASK = {
    "by": lambda log: log.by("key"),
    "by, ci": lambda log: log.by("key", ci=0.95),
    "contrast": lambda log: log.contrast("key"),
    "gaps": lambda log: log.gaps("key"),
    "check": lambda log: log.check(min=-1.0),
    "score": lambda log: log.score(ci=0.95),
    "classes": lambda log: log.classes().head(1),
}


@pytest.mark.parametrize("ask", ASK)
def test_labels_that_are_known_unevenly_are_told(fraud, ask):
    log = fraud.mcc(waiting=True)
    with pytest.warns(PredictionLogWarning, match=REMARK):
        ASK[ask](log)
    if ask not in {"by", "classes"}:
        with pytest.warns(PredictionLogWarning, match=REMARK):
            ASK[ask](log.with_frame(fraud.lazy())).lazy().collect()
    assert REMARK in fraud.mcc(waiting=True).report("key", format="md").replace("\\", "")
    few = fraud.head(40)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PredictionLogWarning)
        ASK[ask](few.mcc(waiting=True))
        ASK[ask](fraud.drop_nulls().mcc(waiting=True))


def test_labels_that_come_sooner_are_told():
    """Frauds are confirmed after two days, other rows after twenty."""
    draw, rows = random.Random(2), []
    for place in range(400):
        is_fraud = place % 4 == 0
        day = dt.date(2026, 1, 1) + dt.timedelta(days=place % 50)
        at = day + dt.timedelta(days=draw.choice([1, 2, 3]) if is_fraud else draw.randint(10, 30))
        rows.append((place, day, "fraud" if is_fraud else "ok", at))
    log = pl.DataFrame(rows, schema=["id", "day", "y", "at"], orient="row")
    labels, log = log.select("id", "y", "at"), log.with_columns(pred="y").drop("y", "at")
    late = {"outcomes": labels, "on": "id", "gold": "y", "latest": "at"}
    told = "a label 'y' that is 'fraud' comes after 2.0 days on average, and one that is 'ok' after"
    with pytest.warns(PredictionLogWarning, match=told):
        log.mcc(**late, time="day").by()
    assert told in log.mcc(**late, time="day").report("day", format="md")
    # An age is advised that 99 of 100 labels of the slowest class have had; with it, nothing is.
    delays = sorted((at - day).days for _, day, y, at in rows if y == "ok")
    late_day = delays[round(0.99 * (len(delays) - 1))]
    options = {**late, "time": "day", "now": dt.date(2026, 6, 1)}
    for age in (f"{late_day - 1}d", dt.timedelta(1), f"{late_day}d", "2mo", dt.timedelta(60)):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", PredictionLogWarning)
            log.mcc(**options, min_age=age).by()
        ages = re.findall(r"min_age='(\d+)d'", " ".join(str(one.message) for one in heard))
        is_met = age in {f"{late_day}d", "2mo", dt.timedelta(60)}
        assert ages == ([] if is_met else [str(late_day)]), age
    with warnings.catch_warnings():
        warnings.simplefilter("error", PredictionLogWarning)
        log.mcc(**late).by()
        log.mcc(**late | {"latest": None}, time="day").by()


def test_labels_that_stop_coming_are_told():
    """Of rows that are old enough, a tenth waits; since 20 April, nearly all do."""
    draw, start = random.Random(3), dt.date(2026, 3, 1)
    rows = [
        (start + dt.timedelta(day), draw.random() < 0.5) for day in range(60) for _ in range(20)
    ]
    log = pl.DataFrame(rows, schema=["day", "y"], orient="row").with_row_index("id")
    log = log.with_columns(pred=pl.when(pl.col("id") % 5 > 0).then("y").otherwise(~pl.col("y")))
    come = log.filter(pl.col("id") % 10 > 0).select("id", "y")
    stopped = come.join(log, on="id").filter(
        (pl.col("day") < dt.date(2026, 4, 23)) | (pl.col("id") % 7 == 0)
    )
    log, options = log.drop("y"), {"on": "id", "gold": "y", "time": "day", "min_age": "0d"}
    ask = {
        "by": lambda log: log.by(),
        "check": lambda log: log.check(min=-1.0),
        "lazy check": lambda log: log.with_frame(log.frame.lazy()).check(min=-1.0),
        "changes": lambda log: log.changes(),
        "lazy changes": lambda log: log.with_frame(log.frame.lazy()).changes().collect(),
        "counts": lambda log: (
            log.counts("day").mcc(weight="n", waiting=True, time="day", min_age="0d").changes()
        ),
    }
    newest = [id_ for id_, day, _ in log.iter_rows() if day >= dt.date(2026, 4, 23)]
    share = 1 - sum(id_ % 10 > 0 and id_ % 7 == 0 for id_ in newest) / len(newest)
    for name, question in ask.items():
        described = log.mcc(outcomes=stopped.select("id", "y"), **options)
        told = f"not come for {100 * share:.0f} % of the rows since 2026-04-23, and for 10 %"
        with pytest.warns(PredictionLogWarning, match=told) as heard:
            question(described)
        assert sum("not come" in str(one.message) for one in heard) == 1 + (name == "counts")
        with warnings.catch_warnings():
            warnings.simplefilter("error", PredictionLogWarning)
            question(log.mcc(outcomes=come, **options))
    assert told in log.mcc(outcomes=stopped.select("id", "y"), **options).report("day", format="md")


def test_a_selector_selects_columns_of_the_user():
    log = asked(latest="at", time="day")
    keys = log.by(cs.temporal()).columns
    assert keys[:1] == ["day"]
    assert keys[1] == "n"


def test_ids_of_other_spelling_are_told():
    labels = OUTCOMES.with_columns(pl.col("id") + 100)
    late = {"outcomes": labels, "on": "id", "gold": "y"}
    with pytest.warns(PredictionLogWarning, match="no prediction has a label 'y': all 7 rows wait"):
        PREDICTIONS.mcc(**late).by()
    with pytest.warns(PredictionLogWarning, match="have the same spelling"):
        PREDICTIONS.lazy().mcc(**late).score(ci=0.95).collect()


def test_a_prediction_that_is_not_in_the_first_rows_is_named():
    rows = pl.DataFrame({"id": range(3000)})
    log = rows.with_columns(
        pred=pl.when(pl.col("id") < 2000).then(pl.lit("ok")).otherwise(pl.lit("fraud"))
    )
    known = log.filter((pl.col("pred") == "fraud") | (pl.col("id") % 10 == 0))
    labels = known.select("id", gold="pred")
    with pytest.warns(
        PredictionLogWarning, match="100 % of the rows predicted 'fraud', and for 10 %"
    ):
        log.mcc(outcomes=labels, on="id").by()


def test_a_gate_says_how_many_rows_wait():
    with pytest.raises(polars_mcc.CheckError, match="; 3 rows wait for a label\n"):
        asked().check("part", min=0.99)
    several = asked(pred=["pred", "second"])
    with pytest.raises(polars_mcc.CheckError, match="; 3 rows wait for a label\n"):
        several.check(each("part", total=True), min=0.99)


@pytest.mark.parametrize("ask", [name for name in ASK if name != "contrast"])
def test_a_log_that_is_reweighted_waits_too_and_is_not_told(fraud, ask):
    log = fraud.mcc(waiting=True, nulls="reweight")
    with warnings.catch_warnings():
        warnings.simplefilter("error", PredictionLogWarning)
        answer = ASK[ask](log)
    assert answer["n_waiting"].sum() == fraud["gold"].null_count() == answer["n_null"].sum()


@pytest.mark.parametrize("options", [{"nulls": "label"}, {"sample_weight": "w"}])
def test_what_cannot_be_reweighted_is_not_told(fraud, options):
    """If null is a class, no label is missing."""
    log = fraud.with_columns(w=pl.lit(1.5)).mcc(**options)
    assert REMARK in fraud.mcc().report("key", format="md")
    assert "is known for" not in log.report("key", format="md")
    with warnings.catch_warnings():
        warnings.simplefilter("error", PredictionLogWarning)
        log.by("key", ci=0.95)


@pytest.mark.parametrize("is_lazy", [True, False])
def test_times_of_labels_of_every_dtype(is_lazy):
    """The newest label of an id counts; a time of day or an age has no day to compare."""
    end = 2**63
    times = [
        pl.Series([dt.time(1), dt.time(1, 0, 0, 1)]),
        pl.Series([-1, 1], dtype=pl.Duration("ns")),
        pl.Series([end - 1, end], dtype=pl.UInt64),
        pl.Series([0, 2 * end - 1], dtype=pl.UInt64),
        pl.Series([-end + 1, end - 1], dtype=pl.Int64),
        pl.Series([0, 255], dtype=pl.UInt8),
        pl.Series([dt.date(2026, 1, 1), dt.date(2026, 1, 2)]),
    ]
    reached = 0
    rows = pl.DataFrame({"id": range(400), "day": [dt.datetime(2026, 1, 1)] * 400, "pred": 1})
    for when in times:
        old, new = (pl.DataFrame({"id": range(400), "y": y}) for y in (0, 1))
        labels = [
            frame.with_columns(at=when.gather([place] * 400))
            for place, frame in enumerate((old, new))
        ]
        for both in (labels, labels[::-1]):
            found = pl.concat(both)
            frames = (rows.lazy(), found.lazy()) if is_lazy else (rows, found)
            log = frames[0].mcc(outcomes=frames[1], on="id", gold="y", latest="at", time="day")
            score = log.by(metrics="accuracy").lazy().collect()
            assert score["n", "accuracy"].rows() == [(400, 1.0)], when.dtype
            reached += 1
    assert reached == 14
    wide = found.cast({"at": pl.Int32}).cast({"at": pl.Int128})
    with pytest.raises(pl.exceptions.SchemaError, match="an integer of 64 bits, but 'at' is Int"):
        rows.mcc(outcomes=wide, on="id", gold="y", latest="at").by()


@pytest.mark.parametrize(
    ("value", "text"),
    [(dt.timedelta(days=1), "1d"), (b"\xff", "ff"), (dt.time(1, 2, 3, 4), "01:02:03.000004")],
)
def test_two_labels_are_told_in_each_dtype(value, text):
    other = {"1d": dt.timedelta(2), "ff": b"\xfe"}.get(text, dt.time(2))
    outcomes = pl.DataFrame({"id": [value, value], "gold": [value, other]})
    log = pl.DataFrame({"id": [value], "pred": [value]})
    in_lists = outcomes.with_columns(gold=pl.concat_list("gold"))
    for labels, told in ((outcomes, f"'{text}'"), (in_lists, f'["{text}"]')):
        predicted = log.with_columns(pred=labels["gold"].head(1))
        with pytest.raises(pl.exceptions.InvalidOperationError, match=f"^id {text} has") as error:
            predicted.mcc(outcomes=labels, on="id")
        assert told in str(error.value)

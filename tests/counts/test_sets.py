"""Keys that are several sets of columns: SQL's grouping sets."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from datetime import date, time
from decimal import Decimal

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import exact
from polars.testing import assert_frame_equal
from support import in_turn

import polars_mcc
from polars_mcc import Bootstrap, cube, each, plot, rollup, sets, trailing
from polars_mcc._display.table_and_to_numpy import cell_texts, key_columns, slices_in_words

KEYS = ("a", "b", "c")
values = st.sampled_from([None, "x", "y"])
codes = st.one_of(st.none(), st.integers(0, 2))
logs = st.lists(st.tuples(values, values, st.sampled_from([1, 2]), codes, codes), max_size=30)
SCHEMA = {"a": pl.String, "b": pl.String, "c": pl.Int8, "gold": pl.Int64, "pred": pl.Int64}


def frame_of(rows) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def scores_of_sets(rows, sets_of_keys) -> list[tuple]:
    """(keys, values, n, mcc, n_null) of each slice, from a loop over rows and sets."""
    found = []
    for keys in sets_of_keys:
        tables: dict[tuple, Counter] = {(): Counter()} if not keys else {}
        left_out: Counter = Counter()
        for *key_values, gold, pred in rows:
            active = dict(zip(KEYS, key_values, strict=True))
            slice_ = tuple(active[key] for key in keys)
            table = tables.setdefault(slice_, Counter())
            if gold is None or pred is None:
                left_out[slice_] += 1
            else:
                table[gold, pred] += 1
        for slice_, table in tables.items():
            truth = exact(table)
            shown = dict(zip(keys, slice_, strict=True))
            cells = tuple(shown.get(key) for key in KEYS)
            score = None if truth is None else float(truth)
            found.append((", ".join(keys), *cells, table.total(), score, left_out[slice_]))
    return found


def as_rows(answer: pl.DataFrame) -> list[tuple]:
    return answer.select("keys", *KEYS, "n", "mcc", "n_null").rows()


def in_order(rows: list[tuple]) -> list[tuple]:
    return sorted(rows, key=repr)


ALL = [keys for size in range(4) for keys in itertools.combinations(KEYS, size)]
SETS = {
    "sets": ([sets(KEYS, total=True)], [KEYS, ()]),
    "each": ([each(*KEYS, total=True)], [("a",), ("b",), ("c",), ()]),
    "rollup": ([rollup(*KEYS)], [KEYS, ("a", "b"), ("a",), ()]),
    "cube": ([cube(*KEYS)], ALL),
    # As in SQL, keys listed together are crossed.
    "beside": (["a", each("b", "c")], [("a", "b"), ("a", "c")]),
    "both": ([each("a", "b", total=True), rollup("c")], [("a", "c"), ("b", "c"), ("c",), *ALL[:3]]),
    "again": (["a", each("a", "b")], [("a",), ("a", "b")]),
    "without": ([cube("a", "b", total=False), "c"], [("a", "b", "c"), ("a", "c"), ("b", "c")]),
}


@pytest.mark.parametrize("name", SETS)
@given(rows=logs)
def test_every_set_is_scored_by_its_definition(run, name, rows):
    keys, wanted_sets = SETS[name]
    answer = run(frame_of(rows), lambda log: log.mcc.by(*keys))
    columns = [pl.lit(None).alias(key) for key in KEYS if key not in answer.columns]
    wanted = scores_of_sets(rows, wanted_sets)
    found = as_rows(answer.with_columns(columns))
    assert len(found) == len(wanted)
    for one, truth in zip(in_order(found), in_order(wanted), strict=True):
        assert one[:5] == truth[:5]
        assert one[6] == truth[6]
        assert one[5] == pytest.approx(truth[5], abs=1e-15)


@given(rows=logs)
def test_listed_sets_are_theirs_in_their_order(rows):
    answer = frame_of(rows).mcc.by(sets(("c", "a"), "b", ()))
    names = answer["keys"].unique(maintain_order=True).to_list()
    assert names == (["c, a", "b", ""] if rows else [""])
    reordered = [("a, c" if row[0] == "c, a" else row[0], *row[1:]) for row in as_rows(answer)]
    wanted = scores_of_sets(rows, [("a", "c"), ("b",), ()])
    assert [row[:5] for row in in_order(reordered)] == [row[:5] for row in in_order(wanted)]


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("ROLLUP (a, b, c)", [rollup(*KEYS)]),
        ("CUBE (a, b, c)", [cube(*KEYS)]),
        ("GROUPING SETS ((a, b), (c), ())", [sets(("a", "b"), "c", total=True)]),
        ("a, ROLLUP (b, c)", ["a", rollup("b", "c")]),
        ("CUBE (a, b), GROUPING SETS ((c), ())", [cube("a", "b"), each("c", total=True)]),
    ],
)
def test_the_words_mean_what_they_mean_in_sql(sql, keys, tmp_path):
    log = frame_of([("x", "y", 1, 0, 0), (None, "y", 1, 0, 1), ("x", None, 2, 1, 1)] * 3)
    log.write_parquet(tmp_path / "log.parquet")
    size = "(1 - grouping(a)) + (1 - grouping(b)) + (1 - grouping(c))"
    counted = duckdb.sql(
        f"SELECT a, b, c, {size} AS size, count(*) AS n "  # noqa: S608 - our own
        f"FROM '{tmp_path}/log.parquet' GROUP BY {sql}"
    )
    answer = log.mcc.by(*keys)
    size = pl.col("keys").str.split(", ").list.len()
    size = pl.when(pl.col("keys") == "").then(0).otherwise(size)
    found = answer.select(*KEYS, size.cast(pl.Int64).alias("size"), "n").rows()
    assert in_order(found) == in_order(counted.fetchall())


def test_a_key_that_is_null_is_not_all_values(run):
    log = frame_of([(None, "y", 1, 0, 0), ("x", "y", 1, 0, 1)])
    answer = run(log, lambda log: log.mcc.by(each("a", total=True)))
    assert answer.select("keys", "a", "n").rows() == [("a", None, 1), ("a", "x", 1), ("", None, 2)]


def test_an_interval_of_a_set_is_that_of_its_slices(run):
    log = pl.DataFrame(
        {
            "a": ["x", "y", "x", None] * 30,
            "b": ["u", "u", "v"] * 40,
            "user": [1, 2, 3, 4, 5, 6, 7, 8] * 15,
            "gold": ["p", "q", "q", "r", "p"] * 24,
            "pred": ["p", "q", "r"] * 40,
            "other": ["p", "q"] * 60,
            "w": [0.25, 1.5, 2.0, 1.0, 0.125, 3.0] * 20,
        }
    )
    about = {"cluster": "user", "pred": ["pred", "other"], "sample_weight": "w"}
    answer = run(log, lambda log: log.mcc(**about).by(each("a", "b", total=True), ci=0.9))
    for keys in (["a"], ["b"], []):
        alone = log.mcc(**about).by(*keys, ci=0.9)
        part = answer.filter(pl.col("keys") == ", ".join(keys)).select(alone.columns)
        assert_frame_equal(part, alone, rel_tol=1e-12)


def test_labels_and_keys_of_any_dtype_come_back(run):
    enum = pl.Enum(["p", "q"])
    log = pl.DataFrame(
        {
            "enum": pl.Series(["p", "q", None, "p"], dtype=enum),
            "category": pl.Series(["x", "y", "x", None], dtype=pl.Categorical),
            "list": [[1], [1], [2], None],
            "gold": pl.Series(["p", "q", "p", "q"], dtype=enum),
            "pred": ["p", "q", "q", "q"],
        }
    )
    answer = run(log, lambda log: log.mcc.by(each("enum", "category", "list")))
    schema = {name: log.schema[name] for name in ("enum", "category", "list")}
    assert {name: answer.schema[name] for name in schema} == schema
    assert answer["n"].to_list() == [1, 2, 1, 1, 2, 1, 1, 2, 1]


def test_the_long_form_names_slices_in_words(run):
    log = frame_of([(None, "y", 1, 0, 0), ("x", "y", 1, 0, 1)])
    answer = run(log, lambda log: log.mcc.by(cube("a", "c"), long=True))
    assert answer.columns == ["slice", "keys", "n", "mcc", "n_null"]
    assert answer.select("slice", "keys", "n").rows() == [
        ("a = null and c = 1", "a, c", 1),
        ("a = x and c = 1", "a, c", 1),
        ("a = null", "a", 1),
        ("a = x", "a", 1),
        ("c = 1", "c", 2),
        ("all rows", "", 2),
    ]


@pytest.mark.parametrize("name", ["slice", "value", "keys", "n", "mcc"])
def test_a_key_of_any_name_can_be_long(run, name):
    """The long form has no column of this name, so there is no clash."""
    log = frame_of([("x", "y", 1, 0, 0), ("x", "y", 1, 0, 1)]).rename({"a": name})
    answer = run(log, lambda log: log.mcc.by(each(name, "b"), long=True))
    rows = [(f"{name} = x", name, 2), ("b = y", "b", 2)]
    assert answer.select("slice", "keys", "n").rows() == rows
    found = run(log, lambda log: log.mcc.worst(name, "b", min_n=1, long=True))
    assert found.columns[:2] == ["slice", "keys"]


@pytest.mark.parametrize(
    ("dtype", "values", "texts"),
    [
        (pl.List(pl.Int64), [[1, None], [], None], ["[1, null]", "[]", None]),
        (
            pl.Array(pl.String, 2),
            [["a", "b"], None, ["c", None]],
            ['["a", "b"]', None, '["c", null]'],
        ),
        (pl.Duration("ms"), [90_000, 0, None], ["1m 30s", "0ms", None]),
        (
            pl.Struct({"x": pl.Int8, "y": pl.List(pl.Duration("us"))}),
            [{"x": 1, "y": [1]}, {"x": None, "y": None}, None],
            ['{"x": 1, "y": ["1µs"]}', '{"x": null, "y": null}', None],
        ),
        (pl.Binary, [b"ab", b"\xff", None], ["6162", "ff", None]),
    ],
    ids=str,
)
def test_a_key_of_any_dtype_can_be_long(run, dtype, values, texts):
    key = pl.Series("key", values, dtype=dtype)
    log = pl.DataFrame({"key": key, "one": [1, 1, 1], "gold": [1, 0, 1], "pred": [1, 0, 0]})
    answer = run(log, lambda log: log.mcc.by("key", long=True))
    named = {f"key = {'null' if text is None else text}" for text in texts}
    assert {*answer["slice"]} == named
    crossed = run(log, lambda log: log.mcc.by("key", "one", long=True))
    assert {*crossed["slice"]} == {f"{name} and one = 1" for name in named}
    asked = {"min_n": 1, "long": True, "verdicts": True}
    found = run(log, lambda log: log.mcc.worst("key", "one", **asked))
    assert {*found["slice"]} <= {*answer["slice"], *crossed["slice"], "one = 1"}


TWINS = {  # values that are nearly one
    pl.String: ["null", None, "", " ", '"null"', "1", "1 and one = 1", '"1 and one = 1"'],
    pl.Categorical: ["null", None],
    pl.Enum(["null", "x"]): ["null", None],
    pl.Boolean: [True, False, None],
    pl.Int128: [2**100, 2**100 + 1],
    pl.Float64: [0.3, 0.1 + 0.2, math.nan, math.inf, None],
    pl.Decimal(30, 20): [Decimal(1), Decimal("1.00000000000000000001")],
    pl.Binary: [b"", b"null", b"\x00", b"\x00\x00", None],
    pl.Date: [date(2026, 1, 1), date(2026, 1, 2), None],
    pl.Time: [time(1, 2, 3), time(1, 2, 3, 1), time(1, 2, 3, 2), None],
    pl.Datetime("ns"): [0, 1, 1000, None],
    pl.Datetime("us", "Europe/Berlin"): [1761438600_000_000, 1761442200_000_000],  # 02:30 twice
    pl.Duration("ns"): [0, 1, -1, 86_400_000_000_000, None],
    pl.List(pl.String): [["a, b"], ["a", "b"], ["null"], [None], [], [""], ['a", "b'], None],
    pl.List(pl.Float64): [[math.nan], [None], [math.inf], [], None],
    pl.List(pl.Time): [[time(1, 2, 3)], [time(1, 2, 3, 1)]],
    pl.Array(pl.List(pl.String), 1): [[["a], [b"]], [["a"]], [None], None],
    pl.Struct({"a": pl.String, "b": pl.String}): [
        *({"a": "x", "b": "y, b: z"}, {"a": 'x", "b": "y', "b": "z"}, {"a": "x, b: y", "b": "z"}),
        *({"a": None, "b": None}, {"a": "null", "b": None}, None),
    ],
}


def test_every_slice_has_its_own_name():
    reached = 0
    for dtype, values in TWINS.items():
        n = len(values)
        key = pl.Series("key", [*values, *values], dtype=dtype)
        log = pl.DataFrame({"key": key, "one": [1] * n + [2] * n}).with_columns(gold=1, pred=1)
        crossed = log.mcc.by("key", "one", long=True)
        assert crossed["slice"].n_unique() == crossed.height == 2 * n, dtype
        asked = {"min_n": 1, "long": True, "verdicts": True, "bins": None}
        found = log.mcc.worst("key", "one", **asked)["slice"].to_list()
        assert len({*found}) == len(found) <= 3 * n + 2, dtype
        drawn = plot.slices(log.mcc.by("key"), metric="mcc").to_dict()
        [rows] = drawn["datasets"].values()
        assert len({row["slice"] for row in rows}) == n, dtype
        assert len({*cell_texts(log.mcc.by("key"))["key"]}) == n, dtype
        reached += n
    assert reached == sum(map(len, TWINS.values())) == 72


NAMED = {"State": ["TX", None], "City, State": ["LA", "NY"], "City": ["u", None], "z": [1, 2]}


@pytest.mark.parametrize(
    "listed",
    [
        [("State",), ("City, State",), ("City",)],
        [("State", "City, State"), ("City", "State", "City, State")],
        [("City, State", "z"), ("City", "z"), ("State", "z"), ("State", "City")],
        [("City", "State"), ("City, State", "z")],
        [("City, State",), ("City", "z"), ("State", "z")],
    ],
)
def test_a_name_with_a_comma_is_one_key(listed):
    log = pl.DataFrame(NAMED, schema_overrides={"z": pl.Int64})
    log = log.with_columns(gold=pl.Series([0, 1]), pred=pl.Series([0, 1]))
    rows = [dict(zip(NAMED, values, strict=True)) for values in zip(*NAMED.values(), strict=True)]
    named = {
        " and ".join(f"{key} = {'null' if row[key] is None else row[key]}" for key in own)
        for own in listed
        for row in rows
    }
    # The name of a set has its keys in the order of the set; a slice, in the order of the log.
    key = sets(*listed)
    of_log = {" and ".join(sorted(name.split(" and "))) for name in named}
    said = log.mcc.by(key, long=True)["slice"]
    drawn = log.mcc.by(key)
    words = drawn.select(slices_in_words(drawn, key_columns(drawn))).to_series()
    for names in (said, words):
        assert {" and ".join(sorted(name.split(" and "))) for name in names} == of_log


def test_weights_are_added_up_once():
    log = frame_of([("x", "y", 1, 0, 0), ("x", "z", 1, 0, 1), ("y", "y", 2, 1, 1)])
    counts = log.with_columns(n=pl.Series([2**62, 2**61, 2**60])).mcc(weight="n")
    answer = counts.by(cube("a", "b"))
    for keys in ([], ["a"], ["b"], ["a", "b"]):
        alone = counts.by(*keys)
        part = answer.filter(pl.col("keys") == ", ".join(keys)).select(alone.columns)
        assert_frame_equal(part, alone, check_exact=True)


def test_a_selector_names_several_columns(run):
    log = frame_of([("x", "y", 1, 0, 0), ("x", "z", 2, 0, 1)])
    text = pl.selectors.string()
    by_name = log.mcc.by(each("a", "b"))
    assert run(log, lambda log: log.mcc.by(each(text))).equals(by_name)
    listed = run(log, lambda log: log.mcc.by(sets((text,), pl.col("a"))))
    assert listed["keys"].to_list() == ["a, b", "a, b", "a"]


def test_an_expression_is_a_key_of_several_sets(run):
    log = frame_of([("x", "y", 1, 0, 0), ("x", "z", 2, 0, 1)])
    double = (pl.col("c") * 2).alias("double")
    answer = run(log, lambda log: log.mcc.by(sets((double, "a"), double)))
    assert answer["double"].to_list() == [2, 4, 2, 4]
    with pytest.raises(pl.exceptions.DuplicateError, match="two key columns have the same name"):
        log.mcc.by(sets((double, "a"), pl.col("c").alias("double")))


VERBS = {
    "counts": lambda log, *keys: log.mcc.counts(*keys),
    "classes": lambda log, *keys: log.mcc.classes(*keys),
    "confusion": lambda log, *keys: log.mcc.confusion(*keys, labels=labels_of(log)),
    "long confusion": lambda log, *keys: log.mcc.confusion(*keys, long=True, normalize="all"),
    "costliest": lambda log, *keys: log.mcc.confusion(*keys, top=1),
    "compare": lambda log, *keys: log.mcc(pred=["pred", "other"]).compare(*keys),
    "drift": lambda log, *keys: log.mcc.drift(*keys, before=pl.col("c") == 1, after="late"),
    "curve": lambda log, *keys: log.mcc(gold="late", score="c").curve(*keys),
    "grid": lambda log, *keys: log.mcc(gold="late", score="c").curve(*keys, thresholds=2),
    "best": lambda log, *keys: log.mcc(gold="late", score="c").best_threshold(*keys),
    "calibration": lambda log, *keys: log.mcc(gold="late", score=pl.col("c") / 2).calibration(
        *keys, bins=2
    ),
    "bootstrap": lambda log, *keys: log.collect().mcc.by(*keys, ci=0.9, method=Bootstrap(seed=1)),
}


def labels_of(log: pl.LazyFrame) -> list:
    return pl.Series([0, 1, 2], dtype=pl.Int64).cast(log.collect_schema()["gold"]).to_list()


@in_turn(
    2,
    verb=VERBS,
    dtype=[pytest.param(pl.Int64, id="integers"), pytest.param(pl.String, id="text")],
    **{
        "key, sets_of_keys": [
            pytest.param(*(each("a", "b", total=True), [["a"], ["b"], []]), id="each"),
            pytest.param(*(sets(("a", "b"), ("b", "c")), [["a", "b"], ["b", "c"]]), id="crossed"),
        ]
    },
)
@settings(max_examples=settings.default.max_examples // 4)
@given(rows=logs.filter(lambda rows: {row[2] for row in rows} == {1, 2}))
def test_every_verb_takes_sets(verb, key, sets_of_keys, dtype, rows):
    """For each set, a verb gives the same rows as for the keys of this set alone."""
    log = frame_of(rows).lazy().with_columns(pl.col("gold", "pred").cast(dtype))
    log = log.with_columns(other="gold", late=pl.col("c") == 2)
    ask = VERBS[verb]
    answer = ask(log, key).lazy().collect()
    for keys in sets_of_keys:
        alone = ask(log, *keys).lazy().collect().drop("p_adjusted", strict=False)
        part = answer.filter(pl.col("keys") == ", ".join(keys)).select(alone.columns)
        if verb == "bootstrap":  # Draws depend on the place of a slice in the answer.
            part, alone = (frame.select(*keys, "n", "mcc") for frame in (part, alone))
        assert_frame_equal(part, alone, rel_tol=1e-12)


@pytest.mark.parametrize("ci", [None, 0.9])
def test_a_gate_of_sets(ci):
    log = frame_of([("x", "y", 1, 0, 0), ("y", "y", 1, 1, 1), ("x", "z", 2, 0, 1)] * 9)
    judged = log.mcc.check(each("a", "b"), metric="accuracy", min=0, ci=ci)
    assert judged["keys"].to_list() == ["a", "a", "b", "b"]
    baseline = log.mcc.counts("a", "b")
    compared = log.mcc.check(each("a", "b", total=True), no_worse_than=baseline, ci=ci)
    assert compared["diff"].to_list() == [0.0] * 5
    with pytest.raises(ValueError, match=r"each row several times: use counts\('a', 'b'\)"):
        log.mcc.check("a", "b", no_worse_than=log.mcc.counts(each("a", "b")))


@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        ([each()], ValueError, r"each\(\) is empty: name keys, as in each\('country'"),
        ([sets()], ValueError, r"sets\(\) is empty"),
        ([sets("d")], pl.exceptions.ColumnNotFoundError, "no column 'd' for key"),
        ([sets(("a", "b"), ("b", "a"))], ValueError, r"sets\(...\) has \('b', 'a'\) twice"),
        ([sets(("a", "a"))], pl.exceptions.DuplicateError, "two key columns have the same name"),
        (["a", "a"], pl.exceptions.DuplicateError, "two key columns have the same name"),
        ([each(("a", "b"))], TypeError, r"got \('a', 'b'\); unpack a list with \*"),
        ([each(each("a"))], TypeError, "key must be a column name or a polars expression, got ea"),
        ([each(pl.selectors.float())], pl.exceptions.ColumnNotFoundError, "matches no column"),
    ],
)
def test_sets_that_make_no_sense(keys, error, message):
    with pytest.raises(error, match=message):
        frame_of([]).mcc.by(*keys)


def test_the_total_alone_is_a_set(run):
    log = frame_of([("x", "y", 1, 0, 0), ("y", "y", 1, 1, 1)])
    answer = run(log, lambda log: log.mcc.by(sets(())))
    assert_frame_equal(answer, log.mcc.by().select(pl.lit("").alias("keys"), pl.all()))


def test_the_long_form_needs_keys():
    with pytest.raises(ValueError, match="long=True names slices by their keys"):
        frame_of([]).mcc.by(long=True)


@pytest.mark.parametrize("key", [each("a"), rollup("a"), cube("a"), sets("a"), trailing("a", "1d")])
def test_worst_makes_its_own_sets(key):
    word = repr(key).split("(", 1)[0]
    with pytest.raises(
        ValueError, match=rf"worst does not support {word}\(...\): it crosses columns"
    ):
        frame_of([]).mcc.worst("b", key)


def test_names_that_would_be_taken_for_one():
    log = frame_of([]).with_columns(pl.lit(1).alias("a, b"))
    with pytest.raises(ValueError, match="two sets of keys are called 'a, b'"):
        log.mcc.by(sets(("a", "b"), ("a, b",)))
    with pytest.raises(pl.exceptions.DuplicateError, match="key 'keys' has the name"):
        frame_of([]).rename({"a": "keys"}).mcc.by(each("keys"))


def test_a_key_is_shown_as_it_was_said():
    public = {name: getattr(polars_mcc, name) for name in polars_mcc.__all__}
    for key in (
        each("a", "b", total=True),
        rollup("a", total=False),
        cube("a", "b"),
        sets(("a", "b"), "c", ()),
        trailing("day", "7d", every="1d", align="calendar"),
    ):
        assert eval(repr(key), public) == key  # noqa: S307

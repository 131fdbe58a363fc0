"""`by` with several sets of keys: SQL's grouping sets, from rows that are counted once."""

from __future__ import annotations

import itertools
from collections import Counter

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import exact
from polars.testing import assert_frame_equal

import polars_mcc

KEYS = ("a", "b", "c")
values = st.sampled_from([None, "x", "y"])
codes = st.one_of(st.none(), st.integers(0, 2))
logs = st.lists(st.tuples(values, values, st.sampled_from([1, 2]), codes, codes), max_size=30)
SCHEMA = {"a": pl.String, "b": pl.String, "c": pl.Int8, "gold": pl.Int64, "pred": pl.Int64}


def frame_of(rows) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def scores_of_sets(rows, sets) -> list[tuple]:
    """(keys, values, n, mcc, n_null) of each slice, by looking at each row for each set."""
    found = []
    for keys in sets:
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


SETS = {
    "crossed": [KEYS],
    "each": [("a",), ("b",), ("c",)],
    "rollup": [KEYS, ("a", "b"), ("a",), ()],
    "cube": [keys for size in range(4) for keys in itertools.combinations(KEYS, size)],
}


@pytest.mark.parametrize("sets", SETS)
@given(rows=logs)
def test_every_set_is_scored_by_its_definition(run, sets, rows):
    answer = run(frame_of(rows), lambda log: polars_mcc.by(log, *KEYS, sets=sets, total=True))
    wanted = scores_of_sets(rows, {*SETS[sets], ()})
    found = as_rows(answer)
    assert len(found) == len(wanted)
    for one, truth in zip(in_order(found), in_order(wanted), strict=True):
        assert one[:5] == truth[:5]
        assert one[6] == truth[6]
        assert one[5] == pytest.approx(truth[5], abs=1e-15)


@given(rows=logs)
def test_listed_sets_are_theirs_in_their_order(rows):
    sets = [("c", "a"), "b", ()]
    answer = polars_mcc.by(frame_of(rows), *KEYS, sets=sets)
    names = answer["keys"].unique(maintain_order=True).to_list()
    assert names == (["c, a", "b", ""] if rows else [""])
    reordered = [("a, c" if row[0] == "c, a" else row[0], *row[1:]) for row in as_rows(answer)]
    wanted = scores_of_sets(rows, [("a", "c"), ("b",), ()])
    assert [row[:5] for row in in_order(reordered)] == [row[:5] for row in in_order(wanted)]


@pytest.mark.parametrize("sets", ["rollup", "cube"])
def test_the_words_mean_what_they_mean_in_sql(sets, tmp_path):
    log = frame_of([("x", "y", 1, 0, 0), (None, "y", 1, 0, 1), ("x", None, 2, 1, 1)] * 3)
    log.write_parquet(tmp_path / "log.parquet")
    size = "(1 - grouping(a)) + (1 - grouping(b)) + (1 - grouping(c))"
    counted = duckdb.sql(
        f"SELECT a, b, c, {size} AS size, count(*) AS n "  # noqa: S608 - our own
        f"FROM '{tmp_path}/log.parquet' GROUP BY {sets} (a, b, c)"
    )
    answer = polars_mcc.by(log, *KEYS, sets=sets)
    size = pl.col("keys").str.split(", ").list.len()
    size = pl.when(pl.col("keys") == "").then(0).otherwise(size)
    found = answer.select(*KEYS, size.cast(pl.Int64).alias("size"), "n").rows()
    assert in_order(found) == in_order(counted.fetchall())


def test_a_key_that_is_null_is_not_all_values(run):
    log = frame_of([(None, "y", 1, 0, 0), ("x", "y", 1, 0, 1)])
    answer = run(log, lambda log: polars_mcc.by(log, "a", sets="each", total=True))
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
    options = {"ci": 0.9, "cluster": "user", "pred": ["pred", "other"], "sample_weight": "w"}
    answer = run(log, lambda log: polars_mcc.by(log, "a", "b", sets="each", total=True, **options))
    for keys in (["a"], ["b"], []):
        alone = polars_mcc.by(log, *keys, **options)
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
    answer = run(log, lambda log: polars_mcc.by(log, "enum", "category", "list", sets="each"))
    schema = {name: log.schema[name] for name in ("enum", "category", "list")}
    assert {name: answer.schema[name] for name in schema} == schema
    assert answer["n"].to_list() == [1, 2, 1, 1, 2, 1, 1, 2, 1]


def test_the_long_form_has_one_column_of_values(run):
    log = frame_of([(None, "y", 1, 0, 0), ("x", "y", 1, 0, 1)])
    answer = run(log, lambda log: polars_mcc.by(log, "a", "c", sets="cube", long=True))
    assert answer.columns == ["slice", "value", "n", "mcc", "n_null"]
    assert answer.select("slice", "value", "n").rows() == [
        ("a, c", "null, 1", 1),
        ("a, c", "x, 1", 1),
        ("a", None, 1),
        ("a", "x", 1),
        ("c", "1", 2),
        ("", None, 2),
    ]


def test_weights_are_added_up_once():
    log = frame_of([("x", "y", 1, 0, 0), ("x", "z", 1, 0, 1), ("y", "y", 2, 1, 1)])
    counts = log.with_columns(n=pl.Series([2**62, 2**61, 2**60]))
    answer = polars_mcc.by(counts, "a", "b", sets="cube", weight="n")
    for keys in ([], ["a"], ["b"], ["a", "b"]):
        alone = polars_mcc.by(counts, *keys, weight="n")
        part = answer.filter(pl.col("keys") == ", ".join(keys)).select(alone.columns)
        assert_frame_equal(part, alone, check_exact=True)


@pytest.mark.parametrize(
    ("keys", "options", "message"),
    [
        ((), {"sets": "each"}, "needs keys"),
        (("a",), {"sets": "all"}, "'crossed', 'each', 'rollup', 'cube', or a list"),
        (("a",), {"sets": []}, "sets is empty"),
        (("a",), {"sets": [("d",)]}, r"\('d',\), but there is no key 'd'; the keys are \['a'\]"),
        (("a", "b"), {"sets": [("a", "b"), ("b", "a")]}, "is there twice"),
        (("a", "b"), {"sets": [("a", "a"), "b"]}, "is there twice"),
        (("a", "b"), {"sets": [("a",)]}, "key 'b' is in none of the sets"),
        (("a",), {"total": True, "ci": 0.9, "method": "bootstrap"}, "crossed keys only"),
    ],
)
def test_sets_that_make_no_sense(keys, options, message):
    with pytest.raises(ValueError, match=message):
        polars_mcc.by(frame_of([]), *keys, **options)


def test_names_that_would_be_taken_for_one():
    log = frame_of([]).with_columns(pl.lit(1).alias("a, b"))
    with pytest.raises(ValueError, match="two sets of keys have one name, 'a, b'"):
        polars_mcc.by(log, "a", "b", "a, b", sets=[("a", "b"), ("a, b",)])
    with pytest.raises(pl.exceptions.DuplicateError, match="key 'keys' has the name"):
        polars_mcc.by(frame_of([]).rename({"a": "keys"}), "keys", sets="each")

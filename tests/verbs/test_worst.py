"""`worst`: the slices that fall behind the rest, by looking at each."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import exact, score_interval
from polars.testing import assert_frame_equal
from scipy.stats import false_discovery_control
from support import ask

from polars_mcc import each, sets
from polars_mcc._counts.classes import of_pairs
from polars_mcc._counts.counted import merged
from polars_mcc._counts.cut import cut
from polars_mcc._counts.pairs import pairs
from polars_mcc._inference.rest_of_log import scores_of_rest, taken_away

Z = NormalDist().inv_cdf(0.975)
KEYS = ("a", "b", "c")


def log_of(seed: int, rows: int = 3000, wrong: float = 0.35) -> pl.DataFrame:
    """A log with a bad slice of one key, and one of two; `wrong` is how often they are."""
    rng = np.random.default_rng(seed)
    keys = {name: rng.integers(0, 4, rows) for name in KEYS}
    gold = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    misses = np.full(rows, 0.1)
    misses[keys["a"] == 1] = wrong
    misses[(keys["b"] == 2) & (keys["c"] == 3)] = wrong + 0.25
    pred = np.where(rng.random(rows) < misses, (gold + rng.integers(1, 3, rows)) % 3, gold)
    return pl.DataFrame({**keys, "gold": gold, "pred": pred})


def table_of(rows) -> Counter:
    return Counter((row["gold"], row["pred"]) for row in rows if None not in row.values())


def behind(part: Counter, rest: Counter) -> tuple[float, float, float] | None:
    """The difference, the upper end of Zou's interval, and the p-value (1 if it is not behind)."""
    ends = []
    for table in (part, rest):
        sides = [{pair[side] for pair in table} for side in (0, 1)]
        if min(map(len, sides)) < 2 or not sides[0] & sides[1]:
            return None
        ends.append((float(exact(table)), *score_interval(table, Z)))
    (b, low_b, high_b), (a, low_a, high_a) = ends
    down, up = math.hypot(b - low_b, high_a - a), math.hypot(high_b - b, a - low_a)
    z = Z * abs(b - a) / (down if b > a else up)
    return b - a, b - a + up, 2 * NormalDist().cdf(-z) if b < a else 1.0


def rejected(tests: list, method: str) -> list[bool]:
    """Which of the differences are below 0, after a correction for those that are known."""
    adjusted = iter(
        false_discovery_control([test[2] for test in tests if test is not None], method=method)
    )
    return [test is not None and next(adjusted) < 0.05 for test in tests]


def folds(bad: list, tables: dict, everything: Counter, method: str) -> list[tuple]:
    """Which of the bad slices are told by which other."""
    pairs = [(fine, coarse) for fine in bad for coarse in bad if {*coarse} < {*fine}]
    within = [behind(tables[fine], tables[coarse] - tables[fine]) for fine, coarse in pairs]
    adds = dict(zip(pairs, rejected(within, method), strict=True))
    folded = [pair for pair in pairs if not adds[pair]]
    for fine, coarse in pairs:
        if adds[fine, coarse] and fine not in {
            one for one, other in folded if len(one) > len(other)
        }:
            left = behind(tables[coarse] - tables[fine], everything - tables[coarse])
            if left[1] >= 0:
                folded.append((coarse, fine))
    return folded


def worst_of(log: pl.DataFrame, method: str, depth: int = 2, min_n: int = 30) -> dict:
    """{slice: (n, score, score of the rest, loss, n_folded)} of those that are reported."""
    rows = log.rows(named=True)
    everything = table_of(rows)
    tables = {}
    for size in range(1, depth + 1):
        for keys in itertools.combinations(KEYS, size):
            for row in rows:
                slice_ = tuple((key, row[key]) for key in keys)
                tables.setdefault(slice_, Counter()).update(table_of([row]))
    tests = {
        slice_: behind(table, everything - table) if table.total() >= min_n else None
        for slice_, table in tables.items()
    }
    bad = list(itertools.compress(tests, rejected([*tests.values()], method)))
    folded = folds(bad, tables, everything, method)
    kept = [slice_ for slice_ in bad if slice_ not in {one for one, _ in folded}]
    number = sum(test is not None for test in tests.values())
    overall = float(exact(everything))
    return {
        slice_: (
            tables[slice_].total(),
            float(exact(tables[slice_])),
            float(exact(everything - tables[slice_])),
            float(exact(everything - tables[slice_])) - overall,
            sum(into == slice_ for _, into in folded),
            number,
            len(tables) - number,
        )
        for slice_ in kept
    }


def slice_of(row: dict) -> tuple:
    return tuple((key, row[key]) for key in row["keys"].split(", "))


NUMBERS = ("n", "mcc", "mcc_rest", "loss", "n_folded", "n_tested", "n_untested")


@pytest.mark.parametrize("method", ["bh", "by"])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_looking_at_each_slice_finds(run, seed, method):
    log = log_of(seed, rows=1500)
    answer = run(log, lambda log: log.mcc.worst(*KEYS, correction=method, min_n=60))
    wanted = worst_of(log, method, min_n=60)
    assert len(wanted) >= 2
    found = {slice_of(row): row for row in answer.rows(named=True)}
    assert found.keys() == wanted.keys()
    for slice_, numbers in wanted.items():
        assert [found[slice_][name] for name in NUMBERS] == pytest.approx(list(numbers), abs=1e-14)
    assert answer["loss"].is_sorted(descending=True)


def test_three_keys_are_crossed_if_asked_for():
    log = log_of(5, rows=2500)
    answer = log.mcc.worst(*KEYS, depth=3)
    assert {slice_of(row) for row in answer.rows(named=True)} == worst_of(log, "bh", 3).keys()


def test_the_difference_is_that_of_by(run):
    """Of each slice with its rest, both counted by a filter."""
    log = log_of(1)
    answer = run(log, lambda log: log.mcc.worst(*KEYS, ci=0.9, rank="gap"))
    assert answer["diff_high"].is_sorted()
    for row in answer.rows(named=True):
        inside = pl.all_horizontal(pl.col(key) == value for key, value in slice_of(row))
        change = log.mcc.drift(ci=0.9, before=~inside, after=inside).rows(named=True)[0]
        for column in ("diff", "diff_low", "diff_high", "p_value"):
            assert row[column] == pytest.approx(change[column], rel=1e-9), column
        assert (row["mcc"], row["mcc_rest"]) == (change["mcc_after"], change["mcc_before"])


@pytest.mark.parametrize("engine", ["streaming", "in-memory"])
def test_counts_models_and_weights_are_as_rows(engine):
    log = log_of(2).with_columns(other="gold", half=pl.lit(0.5), one=pl.lit(1.0))
    alone = log.mcc.worst(*KEYS)
    assert not alone.is_empty()
    counts = log.lazy().mcc.counts(*KEYS)
    from_counts = counts.mcc(weight="n").worst(*KEYS).collect(engine=engine)
    assert_frame_equal(from_counts, alone, rel_tol=1e-9)
    models = log.lazy().mcc(pred=["other", "pred"]).worst(*KEYS).collect(engine=engine)
    assert models["model"].unique().to_list() == ["pred"]
    # The tests are twice as many, if a model that does not err has an interval for each.
    assert_frame_equal(models.head(1)[alone.columns[:12]], alone.head(1)[alone.columns[:12]])
    weighted = log.lazy().mcc(sample_weight="half").worst(*KEYS).collect(engine=engine)
    same = ["keys", *KEYS, "mcc", "mcc_rest", "diff_low", "n_folded"]
    in_halves = log.mcc.worst(*KEYS, min_n=60).select(same)
    assert_frame_equal(weighted.select(same), in_halves, rel_tol=1e-9)
    floats = log.lazy().mcc(weight="one").worst(*KEYS).collect(engine=engine)
    assert_frame_equal(floats.select(same), alone.select(same), rel_tol=1e-9)


def test_a_null_is_a_value_and_not_all_values(run):
    log = log_of(3).with_columns(a=pl.when(pl.col("a") != 1).then("a"))
    answer = run(log, lambda log: log.mcc.worst(*KEYS))
    assert answer.filter(pl.col("keys") == "a")["a"].to_list() == [None]
    long = run(log, lambda log: log.mcc.worst(*KEYS, long=True))
    assert long.filter(pl.col("slice") == "a").select("slice", "value").rows() == [("a", None)]
    assert ("b, c", "2, 3") in long.select("slice", "value").rows()


@pytest.mark.parametrize("most", [20, 10**17])
def test_the_score_of_the_rest_is_that_of_what_is_left(most):
    """By which slices are sorted out before they are tested: from sums over their classes."""
    rng = np.random.default_rng(3)
    rows = [(key, gold, pred) for key in "xyz" for gold in range(4) for pred in range(4)]
    n = rng.integers(0, most, len(rows)).tolist()
    counts = pl.DataFrame(rows, schema=["key", "gold", "pred"], orient="row").with_columns(
        n=pl.Series(n)
    )
    log = cut(counts.mcc(weight="n"), [each("key")], answers=())
    cells = pairs(log)
    total = merged(log.whole, cells)
    classes = [of_pairs(log, cells), of_pairs(log.whole, total)]
    found = scores_of_rest(log, log.whole, *classes).collect()
    for key, score in found.select("key:key", "rest").iter_rows():
        left = {}
        for (other, *pair), count in zip(rows, n, strict=True):
            if other != key:
                left[tuple(pair)] = left.get(tuple(pair), 0) + count
        assert score == pytest.approx(float(exact(left)), rel=1e-14)


@pytest.mark.parametrize("parts", [[0.1, 0.2], [0.3, -5e-17]], ids=["less", "more"])
def test_what_rounding_leaves_of_floats_is_nothing(parts):
    """Else the rest of a slice would have labels that it has not."""
    counts = pl.DataFrame({"key": "x", "gold": 1, "pred": 1, "n": [0.3]})
    log = cut(counts.mcc(weight="n"), ["key"], answers=())
    pair = {"key:key": "x", "gold": 1, "pred": 1, "n_null": 0.0}
    taken = [{**pair, "n": sum(parts), "sign": -1}]
    kept = {**pair, "pred": 2, "n": 1e-9, "sign": 1}
    signed = pl.LazyFrame([{**pair, "n": 0.3, "sign": 1}, *taken, kept])
    left = taken_away(log, signed).collect()
    assert left.select("pred", "n").rows() == [(2, 1e-9)]


def test_top_is_the_head(run):
    log = log_of(1)
    answer = run(log, lambda log: log.mcc.worst(*KEYS, top=2))
    assert_frame_equal(answer, log.mcc.worst(*KEYS).head(2), rel_tol=1e-9)


def test_a_model_that_guesses_has_no_bad_slice(run):
    rng = np.random.default_rng(0)
    log = pl.DataFrame(
        {
            **{key: rng.integers(0, 5, 4000) for key in KEYS},
            **{label: rng.integers(0, 2, 4000) for label in ("gold", "pred")},
        }
    )
    assert run(log, lambda log: log.mcc.worst(*KEYS)).is_empty()


@pytest.mark.parametrize("rows", [0, 1, 2, 40])
def test_small_logs_have_no_bad_slice(run, rows):
    answer = run(log_of(0).head(rows), lambda log: log.mcc.worst(*KEYS))
    assert answer.is_empty()
    assert answer.columns == log_of(0).mcc.worst(*KEYS).columns


rows = st.lists(
    st.tuples(*[st.sampled_from([None, "x", "y"])] * 2, *[st.sampled_from([0, 0, 1, None])] * 2),
    max_size=60,
)


@given(rows=rows, times=st.integers(1, 30))
def test_it_holds_on_any_log(rows, times):
    """What is reported is behind, and together with what is not, all slices are looked at."""
    schema = {"a": pl.String, "b": pl.String, "gold": pl.Int8, "pred": pl.Int8}
    log = pl.DataFrame(rows * times, schema=schema, orient="row")
    answer = log.mcc.worst("a", "b", min_n=1, correction="bonferroni")
    slices = log.mcc.by(sets("a", "b", ("a", "b")))
    for row in answer.rows(named=True):
        assert row["mcc"] < row["mcc_rest"]
        assert row["diff_high"] < 0
        assert row["p_value"] <= row["p_adjusted"] < 0.05
        assert row["n_tested"] + row["n_untested"] == slices.height


@pytest.mark.parametrize(
    ("keys", "options", "message"),
    [
        ((), {}, "name the keys to slice by"),
        (("a",), {"depth": 0}, "depth must be an integer of at least 1, got 0"),
        (("a",), {"min_n": 0}, "min_n must be an integer of at least 1"),
        (("a",), {"top": 0.5}, "top must be an integer"),
        (("a",), {"rank": "n"}, "rank must be one of 'loss', 'gap'"),
        (("a",), {"ci": 95}, "ci must be a confidence level"),
    ],
)
def test_options_that_make_no_sense(keys, options, message):
    with pytest.raises(ValueError, match=message):
        ask(log_of(0), "worst", *keys, **options)


def test_of_a_slice_of_all_rows_no_rest_is_tested_whatever_the_order():
    """Floats that are added up and taken away again leave something that is no rest."""
    rng = random.Random(3)
    rows = [
        {
            "all": "a",
            "half": half,
            "gold": gold,
            "pred": gold ^ (half == "y" and rng.random() < 0.4),
        }
        for half in "xy"
        for gold in (0, 1) * 100
    ]
    weights = [rng.random() * 10 ** rng.uniform(-3, 3) for _ in rows]
    for _ in range(20):
        rng.shuffle(rows)
        found = pl.DataFrame(rows).with_columns(w=pl.Series(weights))
        answer = found.mcc(sample_weight="w").worst("half", "all", depth=1, min_n=1)
        assert answer.select("half", "n_tested", "n_untested").rows() == [("y", 2, 1)]


@pytest.mark.parametrize("metric", ["accuracy", "f1_macro", "recall", "fnr"])
def test_the_slices_that_fall_behind_in_any_metric(metric):
    """What is listed is what two logs, the slice and the rest, say of each other."""
    rng = np.random.default_rng(4)
    gold = rng.integers(0, 2, 6000)
    country, device = rng.integers(0, 5, 6000), rng.integers(0, 4, 6000)
    wrong = rng.random(6000) < np.where(country == 3, 0.35, 0.1)
    labels = {"gold": gold, "pred": np.where(wrong, 1 - gold, gold)}
    log = pl.DataFrame({"country": country, "device": device, **labels})
    described = log.mcc(positive=1)
    found = described.worst("country", "device", metric=metric)
    [row, *_] = found.to_dicts()
    assert (row["country"], row["device"]) == (3, None)
    is_slice = pl.col("country") == 3
    [expected] = described.drift(before=~is_slice, after=is_slice, metric=metric).to_dicts()
    same = {metric: f"{metric}_after", f"{metric}_rest": f"{metric}_before", "diff": "diff"}
    same |= {"diff_low": "diff_low", "diff_high": "diff_high", "p_value": "p_value"}
    for ours, theirs in same.items():
        assert row[ours] == pytest.approx(expected[theirs], rel=1e-9), ours
    overall = described.score(metrics=metric)[metric].item()
    assert row["loss"] == pytest.approx(abs(row[f"{metric}_rest"] - overall), rel=1e-9)


def test_metrics_of_pairs_are_refused():
    log = pl.DataFrame({"key": [1], "gold": ["a"], "pred": ["a"]})
    with pytest.raises(ValueError, match="'chi2' is of pairs"):
        log.mcc.worst("key", metric="chi2")

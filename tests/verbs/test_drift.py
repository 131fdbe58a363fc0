"""`drift`: the change of a score between two periods with different rows."""

from __future__ import annotations

import math
from collections import Counter
from statistics import NormalDist

import numpy as np
import oracles
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import exact, score_interval, standard_error
from polars.testing import assert_frame_equal
from scipy.stats import false_discovery_control
from support import ask, in_turn, source_of

Z = NormalDist().inv_cdf(0.975)
BEFORE, AFTER = pl.col("week") == 1, pl.col("week") == 2
cells = st.lists(st.integers(1, 40), min_size=9, max_size=9)
PAIRS = [(gold, pred) for gold in range(3) for pred in range(3)]


def counts_of(tables: dict) -> pl.DataFrame:
    rows = [
        (key, week, gold, pred, n)
        for (key, week), table in tables.items()
        for (gold, pred), n in table.items()
    ]
    return pl.DataFrame(rows, schema=["key", "week", "gold", "pred", "n"], orient="row")


def mover(first: tuple, second: tuple) -> tuple[float, float]:
    """Zou's interval of b - a, from (score, low, high) of two independent scores."""
    (a, low_a, high_a), (b, low_b, high_b) = first, second
    down, up = math.hypot(b - low_b, high_a - a), math.hypot(high_b - b, a - low_a)
    return b - a - down, b - a + up


@given(first=cells, second=cells)
def test_the_interval_is_zous_of_two_score_intervals(run, first, second):
    old, new = (dict(zip(PAIRS, counts, strict=True)) for counts in (first, second))
    counts = counts_of({("x", 1): old, ("x", 2): new, ("x", 3): new})
    asked = {"before": BEFORE, "after": AFTER, "min_n": 1}
    answer = run(counts, lambda log: log.mcc(weight="n").drift("key", **asked))
    [row] = answer.rows(named=True)
    scores = [float(exact(table)) for table in (old, new)]
    both = Counter(old) + Counter(new)
    limits = [
        (score, *score_interval(table, Z, pool=both))
        for score, table in zip(scores, (old, new), strict=True)
    ]
    low, high = mover(*limits)
    assert (row["n_before"], row["n_after"]) == (sum(first), sum(second))
    assert [row["reference"], row["score"]] == pytest.approx(scores, abs=1e-15)
    assert row["diff"] == pytest.approx(scores[1] - scores[0], abs=1e-15)
    assert (row["diff_low"], row["diff_high"]) == pytest.approx((low, high), abs=1e-8)
    assert (row["p_value"] < 0.05) == (not low < 0 < high)


def test_by_wald_the_p_value_is_that_of_a_z_test():
    old = dict(zip(PAIRS, [30, 4, 2, 5, 40, 1, 0, 3, 20], strict=True))
    new = dict(zip(PAIRS, [20, 9, 4, 5, 30, 6, 3, 3, 20], strict=True))
    counts = counts_of({("x", 1): old, ("x", 2): new})
    answer = counts.mcc(weight="n").drift(method="wald", before=BEFORE, after=AFTER)
    [row] = answer.rows(named=True)
    z = row["diff"] / math.hypot(standard_error(old), standard_error(new))
    assert row["p_value"] == pytest.approx(2 * NormalDist().cdf(-abs(z)), rel=1e-9)


def test_of_two_equal_periods_nothing_has_changed():
    table = dict(zip(PAIRS, [30, 4, 2, 5, 40, 1, 0, 3, 20], strict=True))
    [row] = (
        counts_of({("x", 1): table, ("x", 2): table})
        .mcc(weight="n")
        .drift(before=BEFORE, after=AFTER)
        .rows(named=True)
    )
    assert (row["diff"], row["p_value"]) == (0, 1)
    assert row["diff_low"] == -row["diff_high"]


LOG = pl.DataFrame(
    {
        "key": ["x", "x", "x", "y", "y", "z", None, "x", "x", "x"] * 6,
        "week": [1, 1, 2, 1, 1, 2, 2, 3, None, 2] * 6,
        "gold": ["p", "q", "q", "p", "q", "p", "p", "q", "p", None] * 6,
        "a": ["p", "q", "p", "p", "p", "p", "q", "q", "p", "p"] * 6,
        "b": ["q", "q", "q", "p", "q", "q", "q", "q", "p", "p"] * 6,
    }
)


def test_a_slice_of_one_period_is_shown(run):
    answer = run(LOG, lambda log: log.mcc(pred="a").drift("key", before=BEFORE, after=AFTER))
    columns = answer.select("key", "n_before", "n_after", "n_null").rows()
    assert columns == [(None, 0, 6, 0), ("x", 12, 6, 6), ("y", 12, 0, 0), ("z", 0, 6, 0)]
    assert answer["diff"].is_null().to_list() == [True, False, True, True]


def test_each_period_is_scored_as_its_rows_are(run):
    options = {"pred": ["b", "a"]}
    answer = run(LOG, lambda log: ask(log, "drift", "key", before=BEFORE, after=AFTER, **options))
    for period, name, score in ((BEFORE, "before", "reference"), (AFTER, "after", "score")):
        alone = ask(LOG.filter(period), "by", "key", **options)
        there = answer.filter(pl.col(f"n_{name}") > 0)
        shown = there.select("key", "model", n=f"n_{name}", mcc=score)
        assert_frame_equal(shown, alone.select("key", "model", "n", "mcc"))
    wanted = false_discovery_control(answer["p_value"].drop_nulls().to_numpy())
    assert answer["p_adjusted"].drop_nulls().to_numpy() == pytest.approx(wanted)


@in_turn(
    keys=[pytest.param((), id="all rows"), pytest.param(("key",), id="slices")],
    **{
        "rows, missing": [
            pytest.param(*(LOG.head(0), "before"), id="no rows"),
            pytest.param(*(LOG.filter(AFTER), "before"), id="none before"),
            pytest.param(*(LOG.filter(BEFORE), "after"), id="none after"),
        ]
    },
)
def test_a_period_without_rows_is_an_error(run, rows, missing, keys):
    with pytest.raises(
        pl.exceptions.InvalidOperationError, match=f"no row of the log is {missing}:"
    ):
        run(rows, lambda log: log.mcc(pred="a").drift(*keys, before=BEFORE, after=AFTER))


def test_a_period_of_rows_that_are_not_scored_is_none_without_rows(run):
    unscored = LOG.with_columns(pl.when(~BEFORE).then("a"))
    answer = run(unscored, lambda log: log.mcc(pred="a").drift(before=BEFORE, after=AFTER))
    assert answer.select("n_before", "reference", "diff").rows() == [(0, None, None)]


def test_a_row_of_both_periods_is_an_error(run):
    with pytest.raises(pl.exceptions.InvalidOperationError, match="both before and after"):
        run(LOG, lambda log: log.mcc(pred="a").drift(before=BEFORE, after=pl.col("week") < 3))


def test_a_period_is_a_boolean():
    with pytest.raises(
        pl.exceptions.SchemaError, match="after must be a Boolean .* 'week' is Int64"
    ):
        LOG.mcc(pred="a").drift(before=BEFORE, after="week")
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="no column 'weak' for before"):
        LOG.mcc(pred="a").drift(before=pl.col("weak") == 1, after=AFTER)


def test_only_the_rows_of_the_periods_are_read():
    log, predicates = source_of(LOG)
    query = log.mcc(pred="a").drift("key", before=BEFORE, after=AFTER)
    assert not predicates
    assert_frame_equal(query.collect(), LOG.mcc(pred="a").drift("key", before=BEFORE, after=AFTER))
    assert predicates
    assert all("week" in one.meta.root_names() for one in predicates)


def test_how_often_a_change_is_found_where_there_is_none():
    """At 95 %, in 1 of 20 slices. The log has 400 slices of one model in two periods."""
    rng = np.random.default_rng(4)
    n = 400 * 2 * 150
    gold = rng.integers(0, 2, n)
    pred = np.where(rng.random(n) < 0.8, gold, 1 - gold)
    log = pl.DataFrame({"gold": gold, "pred": pred}).with_columns(
        key=pl.int_range(n) % 400, week=pl.int_range(n) // 400 % 2 + 1
    )
    answer = log.mcc.drift("key", before=BEFORE, after=AFTER)
    found = Counter((answer["p_value"] < 0.05).to_list())[True]
    assert 8 <= found <= 34  # 20 ± 3 standard deviations
    assert (answer["p_adjusted"] < 0.05).sum() <= 1


@pytest.mark.parametrize("metric", ["accuracy", "mcc"])
def test_a_user_of_both_periods_is_one_user(metric, run):
    """Compute the variance of the difference from the sum of influences of each user."""
    rng = np.random.default_rng(2)
    user = rng.integers(0, 40, 800)
    skill = rng.random(40)
    gold = rng.integers(0, 2, 800)
    pred = np.where(rng.random(800) < 0.4 + 0.6 * skill[user], gold, 1 - gold)
    late = rng.random(800) < 0.4
    log = pl.DataFrame({"user": user, "gold": gold, "pred": pred, "late": late, "key": "x"})
    found = run(
        log,
        lambda f: f.mcc(cluster="user").drift(
            "key", before=~pl.col("late"), after="late", metrics=metric, method="wald"
        ),
    )
    moved = np.zeros(40)
    for period, sign in ((False, -1), (True, 1)):
        rows = log.filter(late=period)
        table = Counter(rows.select("gold", "pred").iter_rows())
        phi = oracles.moves(table, 1)[metric]
        influence = np.array([float(phi[row]) for row in rows.select("gold", "pred").iter_rows()])
        moved += sign * np.bincount(rows["user"], influence, minlength=40) / rows.height
    clusters = log.group_by("late").agg(pl.col("user").n_unique()).sort("late")["user"].to_list()
    assert found.select("n_clusters_before", "n_clusters_after").row(0) == tuple(clusters)
    se = oracles.se_of_wald(found.row(0, named=True), df=min(clusters) - 1)
    assert se == pytest.approx(math.sqrt((moved**2).sum()), rel=1e-6)
    apart = log.with_columns(pl.col("user") + 100 * pl.col("late"))
    independent = apart.mcc(cluster="user").drift(
        "key", before=~pl.col("late"), after="late", metrics=metric, method="wald"
    )
    of_others = oracles.se_of_wald(independent.row(0, named=True), df=min(clusters) - 1)
    assert se < of_others, "the same users are in both"


@pytest.mark.parametrize("metric", ["mcc", "accuracy", "f1_macro"])
def test_periods_without_a_miss_have_an_interval_as_if_no_cluster_were_in_both(metric):
    rows = pl.int_range(48)
    log = pl.select(gold=rows % 2, pred=rows % 2, late=rows >= 24, user=rows % 8)
    apart = log.with_columns(pl.col("user") + 8 * pl.col("late"))
    asked = {"before": ~pl.col("late"), "after": "late", "metrics": metric}
    found, expected = (one.mcc(cluster="user").drift(**asked) for one in (log, apart))
    assert found["diff_low"].item() < 0 == found["diff"].item() < found["diff_high"].item()
    assert_frame_equal(found, expected)


def test_clusters_of_one_row_are_rows():
    rng = np.random.default_rng(3)
    log = pl.DataFrame({"gold": rng.integers(0, 3, 300), "pred": rng.integers(0, 3, 300)})
    log = log.with_columns(row=pl.int_range(300), late=pl.int_range(300) % 2 == 0)
    periods = {"before": ~pl.col("late"), "after": "late", "metrics": "f1_macro"}
    periods["method"] = "wald"
    plain, clustered = log.mcc.drift(**periods), log.mcc(cluster="row").drift(**periods)
    for name in ("reference", "score", "diff"):
        assert clustered[name].item() == pytest.approx(plain[name].item(), rel=1e-12)
    # No cluster is in both periods, so there is no covariance.
    df = clustered["n_clusters_after"].item() - 1
    of_rows, of_clusters = (one.row(0, named=True) for one in (plain, clustered))
    se = oracles.se_of_wald(of_clusters, df=df)
    assert se == pytest.approx(oracles.se_of_wald(of_rows), rel=1e-6)

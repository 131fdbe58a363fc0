"""Interval formulas of R_K, against differentiation, definitions and resampled rows."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import oracles
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy import stats
from support import LABELS, ask, first, in_turn, log_of, some_slow
from tables import counts_of

from polars_mcc import Bootstrap

Z = NormalDist().inv_cdf(0.975)
INTERVAL = ["mcc_se", "mcc_low", "mcc_high"]
NATIVE = ["score", "fisher", "wald"]

cells = st.integers(0, 3).flatmap(lambda size: st.integers(0, 10**size))
tables = st.integers(2, 4).flatmap(
    lambda k: st.lists(st.lists(cells, min_size=k, max_size=k), min_size=k, max_size=k)
)


def is_defined(table: oracles.Table) -> bool:
    return all(len(+side) > 1 for side in oracles.marginals(table))


def interval(table: oracles.Table, method: str | Bootstrap = "score") -> dict:
    counts = counts_of([table])
    return counts.mcc(weight="n").by(ci=0.95, method=method).row(0, named=True)


@given(tables)
def test_errors_and_limits_are_those_of_their_definitions(matrix):
    """Numerical differentiation gives the error; the error gives Fisher's and Wald's limits."""
    table = oracles.table_of(matrix)
    assume(is_defined(table))
    fisher, wald = interval(table, "fisher"), interval(table, "wald")
    expected, r, se = oracles.standard_error(table), fisher["mcc"], fisher["mcc_se"]
    # Without a number for 0/0, a class that is never predicted has no limits of its own.
    log = counts_of([table]).mcc(weight="n", zero_division=None)
    found = log.score(ci=0.95).row(0, named=True)
    limits = pytest.approx(oracles.score_interval(table, Z), rel=0, abs=1e-9)
    assert [found["mcc_low"], found["mcc_high"]] == limits
    assert interval(table)["mcc_se"] == se == wald["mcc_se"]
    if abs(r) == 1 or expected < 1e-9:
        assert [fisher[limit] for limit in INTERVAL] == [wald[limit] for limit in INTERVAL]
        assert se is fisher["mcc_low"] is fisher["mcc_high"] is None
        return
    assert se == pytest.approx(expected, rel=1e-10, abs=0)
    reach = Z * se / (1 - r * r)
    limits = [math.tanh(math.atanh(r) - reach), math.tanh(math.atanh(r) + reach)]
    assert [fisher["mcc_low"], fisher["mcc_high"]] == pytest.approx(limits, abs=1e-9)
    limits = [max(-1.0, r - Z * se), min(1.0, r + Z * se)]
    assert [wald["mcc_low"], wald["mcc_high"]] == pytest.approx(limits, abs=1e-12)


@pytest.mark.parametrize(
    "matrix",
    [
        [[10**12, 1], [1, 3]],
        [[10**15, 5], [7, 11]],
        [[10**18, 10**18], [10**18, 2]],
        [[10**17, 1, 2], [3, 10**17, 0], [1, 5, 10**9]],
    ],
)
def test_standard_errors_of_huge_tables(matrix):
    table = oracles.table_of(matrix)
    assert interval(table)["mcc_se"] == pytest.approx(
        oracles.standard_error(table), rel=1e-7, abs=0
    )


@in_turn(
    method=NATIVE,
    rest=[
        ((1,), (1, 3)),
        ((0,), (0, 4)),
        ((3,), (3, 1)),
        ((0, 2), (1, 5, 0), (0, 1, 9)),
    ],
)
def test_intervals_settle_as_one_class_grows(rest, method):
    """From 10⁸ hits of the common class to 10¹³ and 10¹⁷, nothing changes."""
    few, many, most = (
        interval(oracles.table_of([(n, *rest[0]), *rest[1:]]), method)
        for n in (10**8, 10**13, 10**17)
    )
    for limit in ("mcc_low", "mcc_high"):
        if few[limit] is None:
            assert many[limit] is most[limit] is None
        else:
            assert many[limit] == pytest.approx(few[limit], abs=1e-6)
            assert most[limit] == pytest.approx(few[limit], abs=1e-6)


def test_the_variance_of_phi():
    """The formula for two classes: Bishop, Fienberg and Holland (1975), equation 11.2-11."""
    table = oracles.table_of([[40, 10], [5, 45]])
    a, b, c, d = 0.4, 0.1, 0.05, 0.45
    phi = (a * d - b * c) / math.sqrt((a + b) * (c + d) * (a + c) * (b + d))
    row, col = (a + b, c + d), (a + c, b + d)
    skew_row = (row[0] - row[1]) / math.sqrt(row[0] * row[1])
    skew_col = (col[0] - col[1]) / math.sqrt(col[0] * col[1])
    variance = (
        1
        - phi**2
        + phi * (1 + phi**2 / 2) * skew_row * skew_col
        - 0.75 * phi**2 * (skew_row**2 + skew_col**2)
    ) / 100
    found = interval(table)
    assert found["mcc"] == pytest.approx(phi, rel=1e-14)
    assert found["mcc_se"] == pytest.approx(math.sqrt(variance), rel=1e-12)


@given(st.integers(0, 500), st.integers(0, 500))
def test_score_limits_of_balanced_symmetric_tables_are_nearly_wilsons(hits, misses):
    """For these tables, R is 2·accuracy - 1. The smoothed margin has one row less or more."""
    assume(hits + misses > 9)
    found = interval(oracles.table_of([[hits, misses], [misses, hits]]))
    expected = [2 * limit - 1 for limit in oracles.wilson(2 * hits, 2 * (hits + misses), Z)]
    limits = [found["mcc_low"], found["mcc_high"]]
    assert limits == pytest.approx(expected, abs=0.3 / (hits + misses))


@given(tables, st.sampled_from(NATIVE))
def test_an_interval_holds_its_score_and_widens_with_its_level(matrix, method):
    counts = counts_of([oracles.table_of(matrix)])
    by_level = [
        counts.mcc(weight="n").by(ci=ci, method=method).row(0, named=True)
        for ci in (0.5, 0.9, 0.99)
    ]
    for narrow, wide in itertools.pairwise(by_level):
        assert [value is None for value in narrow.values()] == [
            value is None for value in wide.values()
        ]
        if narrow["mcc_low"] is not None:
            assert -1 <= wide["mcc_low"] <= narrow["mcc_low"] <= narrow["mcc"] + 1e-12
            assert narrow["mcc"] - 1e-12 <= narrow["mcc_high"] <= wide["mcc_high"] <= 1


@pytest.mark.slow
@given(tables)
def test_gold_and_pred_and_labels_can_be_swapped(matrix):
    counts = counts_of([oracles.table_of(matrix)])
    swapped = counts.rename({"gold": "pred", "pred": "gold"})
    renamed = counts.with_columns((-pl.col("gold", "pred")).cast(pl.String))
    # What a class that is never predicted may add knows the gold labels, and has no mirror.
    for other, zero_division in ((swapped, None), (renamed, None), (renamed, 0.0)):
        found, answer = (
            one.mcc(weight="n", zero_division=zero_division).by(ci=0.95) for one in (counts, other)
        )
        assert_frame_equal(answer, found, abs_tol=1e-7, rel_tol=1e-9)


# Clusters and weights.


@pytest.fixture(scope="module")
def users():
    """A log of 40 users, in two slices. Each user has 1 to 30 weighted rows and its own score."""
    rng = np.random.default_rng(5)
    size = rng.integers(1, 31, 40)
    user = np.repeat(np.arange(40), size)
    gold = rng.integers(0, 3, size.sum())
    is_hit = rng.random(size.sum()) < np.repeat(rng.uniform(0.3, 1, 40), size)
    pred = np.where(is_hit, gold, rng.integers(0, 3, size.sum()))
    other = np.where(rng.random(size.sum()) < 0.7, pred, rng.integers(0, 3, size.sum()))
    return pl.DataFrame(
        {
            "user": user,
            "slice": np.where(rng.random(size.sum()) < 0.6, "x", "y"),
            "gold": gold,
            "pred": pred,
            "other": other,
            "w": rng.integers(1, 9, size.sum()) / 4,
        }
    )


def by_rows(rows: pl.DataFrame, weight: str | None, cluster: str | None) -> list[float]:
    """Σ weight · influence of each row or cluster, by the definition."""
    w = rows[weight].to_list() if weight else [1.0] * rows.height
    slopes = oracles.influences_of_rows(list(zip(rows["gold"], rows["pred"], strict=True)), w)
    return oracles.moved(rows[cluster] if cluster else range(rows.height), w, slopes)


@in_turn(weight=[None, "w"], cluster=[None, "user"])
def test_weighted_and_clustered_errors_are_those_of_rows(run, users, weight, cluster):
    found = run(
        users,
        lambda log: log.mcc(sample_weight=weight, cluster=cluster).by(
            "slice", ci=0.95, method="wald"
        ),
    )
    for name, *_ in found.iter_rows():
        rows = users.filter(pl.col("slice") == name)
        moved = by_rows(rows, weight, cluster)
        answer = found.row(by_predicate=pl.col("slice") == name, named=True)
        assert answer["mcc_se"] == pytest.approx(math.hypot(*moved), rel=1e-10)
        z = Z
        if cluster:
            assert answer["n_clusters"] == len(moved) == rows[cluster].n_unique()
            z = stats.t.ppf(0.975, len(moved) - 1)
        assert answer["mcc_high"] - answer["mcc"] == pytest.approx(z * answer["mcc_se"], rel=1e-6)


def test_score_limits_count_the_rows_that_would_be_as_good(users):
    """With clusters, n is the number of independent rows that have the same standard error.

    It is multiplied by 1 - 1 / clusters.
    """
    found = users.mcc(cluster="user").by(ci=0.95).row(0, named=True)
    plain = users.mcc.by(ci=0.95).row(0, named=True)
    counts = users.group_by("gold", "pred").len()
    table = {(gold, pred): n for gold, pred, n in counts.iter_rows()}
    rows = users.height * (plain["mcc_se"] / found["mcc_se"]) ** 2 * 39 / 40
    limits = oracles.score_interval(table, stats.t.ppf(0.975, 39), rows)
    assert [found["mcc_low"], found["mcc_high"]] == pytest.approx(limits, abs=1e-6)


def test_clusters_of_one_row_are_rows(users):
    each = users.with_row_index("row")
    found = each.mcc(cluster="row").by("slice", ci=0.95)
    plain = each.mcc.by("slice", ci=0.95)
    assert found["n_clusters"].to_list() == found["n"].to_list()
    assert found["mcc_se"].to_list() == pytest.approx(plain["mcc_se"].to_list(), rel=1e-12)


@in_turn(ci=[0.5, 0.9, 0.95, 0.99], df=[1, 2, 3, 4, 5, 12, 13, 30, 1000])
def test_students_t(df, ci):
    """From the width of Fisher's interval. The expansion begins at df = 13."""
    rng = np.random.default_rng(df)
    log = pl.DataFrame({"user": np.arange(20 * (df + 1)) % (df + 1)}).with_columns(
        gold=pl.Series(rng.integers(0, 2, 20 * (df + 1))),
    )
    log = log.with_columns(
        pred=pl.when(pl.Series(rng.random(log.height) < 0.7)).then("gold").otherwise(0)
    )
    estimate = log.mcc(cluster="user").by(ci=ci, method="fisher").row(0, named=True)
    reach = math.atanh(estimate["mcc"]) - math.atanh(estimate["mcc_low"])
    found = reach * (1 - estimate["mcc"] ** 2) / estimate["mcc_se"]
    assert found == pytest.approx(stats.t.ppf((1 + ci) / 2, df), rel=1e-10 if df < 13 else 1e-5)


@pytest.mark.parametrize(
    "method", [*NATIVE, Bootstrap(seed=1), Bootstrap(seed=1, bca=True)], ids=str
)
def test_a_counts_table_has_the_interval_of_its_log(users, method):
    counts = users.mcc.counts("slice")
    found = counts.mcc(weight="n").by("slice", ci=0.95, method=method)
    expected = users.mcc.by("slice", ci=0.95, method=method)
    if isinstance(method, Bootstrap):
        assert_frame_equal(found, expected, rel_tol=1e-13, abs_tol=0)
    else:
        assert_frame_equal(found, expected, check_exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", some_slow(range(3), 1, 2))
def test_the_last_bit_does_not_depend_on_the_order(users, seed):
    """Sums of floats are added up as integers, so the order of rows or counts does not matter.

    This holds on one engine only: without keys, Polars' other engine divides by multiplying.
    """
    weighed = users.with_columns(w=pl.int_range(pl.len()) % 5)
    asked = {
        "by": lambda lf: lf.mcc.by("slice", ci=0.95),
        "whole": lambda lf: lf.mcc.score(ci=0.9, method="fisher"),
        "clusters": lambda lf: lf.mcc(cluster="user").by("slice", ci=0.95),
        "sample weight": lambda lf: lf.mcc(sample_weight="w").by("slice", ci=0.95),
        "compare": lambda lf: lf.mcc(pred="other").compare("slice", baseline="pred"),
        "compare clusters": lambda lf: lf.mcc(cluster="user", pred="other").compare(
            baseline="pred"
        ),
        "worst": lambda lf: lf.mcc.worst("slice", "user", min_n=2, long=True),
        "expected": lambda lf: lf.mcc.contrast("slice", to="expected"),
    }
    shuffled = weighed.sample(fraction=1.0, shuffle=True, seed=seed)
    for query in asked.values():
        assert_frame_equal(query(shuffled), query(weighed), check_exact=True)


@pytest.mark.parametrize("method", NATIVE)
def test_clusters_can_be_counted_too(users, method):
    counts = users.mcc.counts("slice", "user")
    found = counts.mcc(weight="n", cluster="user").by("slice", ci=0.95, method=method)
    expected = users.mcc(cluster="user").by("slice", ci=0.95, method=method)
    assert_frame_equal(found, expected, check_exact=True)


def test_a_weight_is_rows_and_a_sample_weight_is_not(users):
    """Four times the weight is four times the rows; four times the sample weight is the same."""
    more = users.with_columns(w=4.0, once=1.0)
    rows = more.mcc(weight="w").by("slice", ci=0.95)
    sample = more.mcc(sample_weight="w").by("slice", ci=0.95)
    once = more.mcc(sample_weight="once").by("slice", ci=0.95)
    plain = more.mcc.by("slice", ci=0.95)
    assert rows["mcc_se"].to_list() == pytest.approx([se / 2 for se in plain["mcc_se"]], rel=1e-12)
    assert_frame_equal(sample.drop("n"), plain.drop("n"), rel_tol=1e-9, check_dtypes=False)
    assert_frame_equal(once, plain, rel_tol=1e-9, check_dtypes=False)
    copies = pl.concat([users] * 4)
    assert_frame_equal(
        rows.drop("n"),
        copies.mcc.by("slice", ci=0.95).drop("n"),
        check_dtypes=False,
        rel_tol=1e-9,
    )


@pytest.mark.parametrize(
    ("size", "cluster"),
    [(1e-250, None), (1e-9, None), (1e250, None), (1e-100, "user"), (1e9, "user"), (1e100, "user")],
)
def test_weights_of_any_size(users, size, cluster):
    """Weights w divide the standard error of rows by √w. With clusters, it stays the same."""
    log = users.with_columns(w=pl.lit(size))
    found = log.mcc(weight="w", cluster=cluster).by("slice", ci=0.95)
    plain = log.mcc(cluster=cluster).by("slice", ci=0.95)
    by = 1 if cluster else math.sqrt(size)
    assert found["mcc_se"].to_list() == pytest.approx([se / by for se in plain["mcc_se"]], rel=1e-9)


@in_turn(option=[{"sample_weight": "w"}, {"weight": "w", "cluster": "user"}], size=[1e-250, 1e250])
def test_weights_whose_squares_are_no_floats_have_no_interval(users, size, option):
    """The standard error is null rather than wrong."""
    found = ask(users.with_columns(w=pl.lit(size)), "by", "slice", ci=0.95, **option)
    plain = users.mcc.by("slice")
    assert found["mcc"].to_list() == pytest.approx(plain["mcc"].to_list(), rel=1e-14)
    assert found.select(INTERVAL).null_count().row(0) == (2, 2, 2)


def test_a_total_that_is_too_large_is_an_error():
    log = pl.DataFrame({"user": [1, 2], "gold": [0, 0], "pred": [0, 0], "n": [2**62, 2**62]})
    with pytest.raises(pl.exceptions.InvalidOperationError, match="add up to at least 92233720"):
        log.mcc(weight="n", cluster="user").by(ci=0.95)


# The edges.


def test_the_scores_are_the_same_with_an_interval(users):
    for cluster in (None, "user"):
        found = users.mcc(cluster=cluster).by("slice", ci=0.95)
        expected = users.mcc.by("slice")
        assert_frame_equal(found.select(expected.columns), expected, check_exact=True)


def test_what_there_is_no_interval_of(run):
    """One gold class, one predicted class and one row of another, or no scored row."""
    log = pl.DataFrame(
        {
            "key": [*"ooooppppnnddddd"],
            "gold": [*"aaaaaaababaabbb"],
            "pred": [*"ababaaaa", None, None, *"ccddd"],
        }
    )
    for method in NATIVE:
        found = run(log, lambda frame: frame.mcc.by("key", ci=0.9, method=method))  # noqa: B023
        # No label is both gold and predicted: at 0, no row moves the score, but hits may come.
        [known] = found.filter(key="d").to_dicts()
        assert known["mcc_se"] is None
        assert known["mcc_low"] is not None
        others = found.filter(pl.col("key") != "d")
        assert others.select(INTERVAL).null_count().row(0) == (3, 3, 3)
        assert dict(found.select("key", "mcc").iter_rows()) == {"o": 0, "p": 0, "n": None, "d": 0}


def test_a_perfect_slice_is_not_certain():
    for n in (2, 5, 50, 5000):
        found = interval(oracles.table_of([[n, 0], [0, n]]))
        low, _ = oracles.score_interval(oracles.table_of([[n, 0], [0, n]]), Z)
        assert found["mcc_se"] is None
        assert (found["mcc_low"], found["mcc_high"]) == (pytest.approx(low, abs=1e-9), 1)
        for method in ("fisher", "wald", Bootstrap(), Bootstrap(bca=True)):
            other = interval(oracles.table_of([[n, 0], [0, n]]), method)
            assert [other[name] for name in INTERVAL] == [None] * 3
    always_wrong = interval(oracles.table_of([[0, 9], [9, 0]]))
    assert always_wrong["mcc_low"] == always_wrong["mcc"] == -1
    assert -0.9 < always_wrong["mcc_high"] < -0.3


def test_a_cycle_of_labels_has_no_standard_error():
    """Each row has the same influence, so the delta method finds no variation."""
    found = interval({(0, 1): 9, (1, 2): 9, (2, 0): 9})
    assert found["mcc"] == pytest.approx(-0.5)
    assert found["mcc_se"] is None
    assert found["mcc_low"] is not None


def test_one_cluster_tells_nothing():
    log = pl.DataFrame({"user": [1, 1, 1, 1], "gold": [0, 1, 1, 0], "pred": [0, 1, 0, 0]})
    found = log.mcc(cluster="user").score(ci=0.95).row(0, named=True)
    assert found["n_clusters"] == 1
    assert [found[name] for name in INTERVAL] == [None] * 3


def test_a_null_cluster_is_a_cluster(users):
    """The rows of an unknown user are one cluster, as rows with a null key are one slice."""
    known = pl.when(pl.col("user") > 9).then("user")
    found = users.mcc(cluster=known).score(ci=0.95)
    assert found["n_clusters"].item() == 31
    expected = users.mcc(cluster=known.fill_null(-1)).score(ci=0.95)
    assert_frame_equal(found, expected, check_exact=True)


def test_no_rows_and_no_keys(run):
    log = pl.DataFrame(schema={"gold": pl.String, "a": pl.String, "b": pl.String})
    found = run(log, lambda frame: frame.mcc(pred=["a", "b"]).score(ci=0.95))
    assert found.rows() == [(model, 0, None, None, None, None, 0) for model in "ab"]
    found = run(log, lambda frame: frame.mcc(pred="a").score(ci=0.95))
    assert found.rows() == [(0, None, None, None, None, 0)]
    found = run(log, lambda frame: frame.mcc(pred="a").by("b", ci=0.95))
    assert found.height == 0


def test_null_labels_are_left_out_or_a_label(run):
    log = pl.DataFrame(
        {"gold": [*"aabbaabb"], "pred": ["a", "a", "b", None, "b", "a", "a", None], "key": 1}
    )
    dropped = run(log, lambda frame: frame.mcc.by("key", ci=0.95))
    expected = log.drop_nulls().mcc.by("key", ci=0.95)
    assert_frame_equal(dropped.drop("n_null"), expected.drop("n_null"), check_exact=True)
    assert dropped["n_null"].item() == 2
    labelled = run(log, lambda frame: frame.mcc(nulls="label").by("key", ci=0.95))
    expected = log.with_columns(pl.col("pred").fill_null("?")).mcc.by("key", ci=0.95)
    # Labels with other names are added up in another order.
    assert_frame_equal(labelled, expected, rel_tol=1e-14, abs_tol=0)


def test_several_models_have_the_intervals_of_each(users):
    both = users.mcc(pred=["pred", "other"], cluster="user").by("slice", ci=0.9)
    for model in ("pred", "other"):
        found = both.filter(pl.col("model") == model).drop("model")
        expected = users.mcc(pred=model, cluster="user").by("slice", ci=0.9)
        assert_frame_equal(found, expected, check_exact=True)


# Resampling.


@in_turn(cluster=[None, "user"], sample_weight=[None, "w"])
def test_errors_are_those_of_resampled_rows(users, sample_weight, cluster):
    """2000 resamples of rows or whole users. At n = 500 the delta method is some percent off."""
    rng = np.random.default_rng(3)
    unit = users[cluster].to_numpy() if cluster else np.arange(users.height)
    cell = (users["gold"] * 3 + users["pred"]).to_numpy()
    tables_ = np.zeros((unit.max() + 1, 9))
    np.add.at(tables_, (unit, cell), users[sample_weight].to_numpy() if sample_weight else 1)
    picks = rng.integers(0, len(tables_), (2000, len(tables_)))
    replicates = tables_[picks].sum(axis=1).reshape(-1, 3, 3)
    t, p = replicates.sum(axis=2), replicates.sum(axis=1)
    s = replicates.sum(axis=(1, 2))
    c = replicates.trace(axis1=1, axis2=2)
    scores = (c * s - (t * p).sum(1)) / np.sqrt((s**2 - (t**2).sum(1)) * (s**2 - (p**2).sum(1)))
    found = users.mcc(sample_weight=sample_weight, cluster=cluster).score(ci=0.95)
    assert found["mcc_se"].item() == pytest.approx(scores.std(), rel=0.06)


def test_the_bootstrap_is_that_of_rows(users):
    """Draws of counts and draws of rows have the same distribution (Kolmogorov and Smirnov)."""
    from polars_mcc._intervals.bootstrap import Resampled  # noqa: PLC0415 - not public

    gold, pred = users["gold"].to_numpy(), users["pred"].to_numpy()
    rng = np.random.default_rng(9)
    picks = rng.integers(0, len(gold), (4000, len(gold)))
    of_rows = oracles.scores_of_rows(gold[picks], pred[picks], 3)
    draws = Resampled(users.mcc.counts()).draws(rng, 4000)
    of_counts = oracles.scores_of_counts(users.mcc.counts().select("gold", "pred").rows(), draws, 3)
    assert stats.ks_2samp(of_counts, of_rows).pvalue > 0.01
    found = users.mcc.by(ci=0.95, method=Bootstrap(replicates=4000, seed=1))
    assert found["mcc_se"].item() == pytest.approx(of_rows.std(), rel=0.05)
    low, high = np.quantile(of_rows, [0.025, 0.975])
    assert found["mcc_low"].item() == pytest.approx(low, abs=0.006)
    assert found["mcc_high"].item() == pytest.approx(high, abs=0.006)


def test_percentiles_are_not_corrected_unless_asked(users):
    corrected, plain, default = (
        users.mcc.by("slice", ci=0.9, method=Bootstrap(replicates=200, seed=1, **options))
        for options in ({"bca": True}, {"bca": False}, {})
    )
    assert default.equals(plain)
    assert not default.equals(corrected)


def test_bca_is_that_of_scipy(users):
    rows = users.head(150)
    gold, pred = rows["gold"].to_numpy(), rows["pred"].to_numpy()

    def statistic(gold, pred, axis=-1):  # noqa: ARG001
        return oracles.scores_of_rows(np.atleast_2d(gold), np.atleast_2d(pred), 3).squeeze()

    expected = stats.bootstrap(
        (gold, pred),
        statistic,
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        batch=1000,
        method="BCa",
        rng=np.random.default_rng(1),
    ).confidence_interval
    found = rows.mcc.by(ci=0.95, method=Bootstrap(replicates=20_000, seed=2, bca=True))
    assert found["mcc_low"].item() == pytest.approx(expected.low, abs=0.006)
    assert found["mcc_high"].item() == pytest.approx(expected.high, abs=0.006)


def test_bca_is_that_of_its_definition():
    """Efron (1987), from the same replicates, for a table with skewness and bias."""
    table = oracles.table_of([[40, 1, 0], [2, 6, 1], [1, 0, 3]])
    there = {pair: n for pair, n in table.items() if n}
    n = np.array([*there.values()])
    generator = np.random.default_rng(np.random.SeedSequence(4).spawn(1)[0])
    draws = generator.multinomial(n.sum(), n / n.sum(), size=999)
    replicates = oracles.scores_of_counts([*there], draws, 3)
    score = float(oracles.exact(table))
    normal = NormalDist()
    bias = normal.inv_cdf(float(np.mean(replicates < score) + np.mean(replicates <= score)) / 2)
    without = {pair: {**table, pair: n - 1} for pair, n in table.items() if n}
    leave_one_out = [
        float(oracles.exact(rest)) for pair, rest in without.items() for _ in range(table[pair])
    ]
    lead = np.mean(leave_one_out) - np.array(leave_one_out)
    acceleration = (lead**3).sum() / (6 * (lead**2).sum() ** 1.5)
    assert abs(bias) > 0.03
    assert abs(acceleration) > 0.03
    z = [bias + normal.inv_cdf(tail) for tail in (0.025, 0.975)]
    tails = [normal.cdf(bias + one / (1 - acceleration * one)) for one in z]
    found = interval(table, Bootstrap(replicates=999, seed=4, bca=True))
    limits = [found["mcc_low"], found["mcc_high"]]
    assert limits == pytest.approx(np.quantile(replicates, tails), rel=1e-9)


@pytest.mark.slow
def test_bca_of_replicates_on_one_side_is_unknown(users):
    """Two replicates that are both below the score do not give its bias."""
    found = [
        users.mcc.by(ci=0.9, method=Bootstrap(replicates=2, seed=seed, bca=True)).row(0, named=True)
        for seed in range(12)
    ]
    unknown = [row for row in found if row["mcc_low"] is None]
    assert 0 < len(unknown) < 12
    assert all(row["mcc_high"] is None and row["mcc_se"] > 0 for row in unknown)


@pytest.mark.parametrize("bca", first(1, [False, True]), ids=["percentiles", "bca"])
def test_a_seed_makes_it_come_out_the_same(users, bca):
    def found(seed: int | None, log: pl.DataFrame = users) -> pl.DataFrame:
        method = Bootstrap(replicates=200, seed=seed, bca=bca)
        return log.mcc.by("slice", ci=0.95, method=method)

    assert_frame_equal(found(1), found(1), check_exact=True)
    assert_frame_equal(found(1), found(1, users.sample(fraction=1, shuffle=True)), check_exact=True)
    assert not found(1).equals(found(2))
    assert not found(None).equals(found(None))


@pytest.mark.parametrize("nulls", ["drop", "label"])
def test_the_bootstrap_takes_models_nulls_and_no_rows(users, nulls):
    log = users.with_columns(pred=pl.when(pl.col("w") > 0.3).then("pred"))
    found = log.mcc(pred=["pred", "other"], nulls=nulls).by(
        "slice", ci=0.9, method=Bootstrap(seed=0)
    )
    expected = log.mcc(pred=["pred", "other"], nulls=nulls).by("slice", ci=0.9)
    assert found.schema == expected.schema
    assert_frame_equal(found.drop(INTERVAL), expected.drop(INTERVAL), check_exact=True)
    assert found["mcc_se"].to_list() == pytest.approx(expected["mcc_se"].to_list(), rel=0.15)
    nothing = log.clear().mcc.by(ci=0.9, method=Bootstrap())
    assert nothing.rows() == [(0, None, None, None, None, 0)]


# Options that raise an error.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ci": 95}, "ci must be a confidence level between 0 and 1, such as 0.95, got 95"),
        ({"ci": "0.95"}, "got '0.95'"),
        ({"ci": 0.95, "method": "exact"}, "method must be one of 'score', 'fisher', 'wald'"),
        ({"method": "wald"}, "method='wald' needs a confidence level: pass ci=0.95"),
        ({"weight": "w", "sample_weight": "w"}, "pass only one of them"),
        ({"method": Bootstrap()}, r"method=Bootstrap\(.*\) needs a confidence level"),
        ({"ci": 0.9, "method": Bootstrap(), "weight": "w"}, "draws whole rows, or"),
        (
            {"ci": 0.9, "method": Bootstrap(), "sample_weight": "w"},
            "draws whole rows, or",
        ),
    ],
)
def test_options_that_are_refused(users, options, message):
    with pytest.raises(ValueError, match=message):
        ask(users, "by", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"replicates": 1}, "replicates must be an integer of at least 2, got 1"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
    ],
)
def test_bootstraps_that_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Bootstrap(**options)


def test_a_cluster_is_true_of_a_log_also_where_no_interval_is_asked_for(users):
    assert users.mcc(cluster="user").by("slice").equals(users.mcc.by("slice"))


def test_a_lazy_bootstrap_is_refused_with_the_way_out(users):
    message = r"lf.mcc.counts\(...\).collect\(\), .* weight='n' and the keys 'slice'"
    with pytest.raises(TypeError, match=message):
        users.lazy().mcc.by("slice", ci=0.95, method=Bootstrap())


def test_a_missing_cluster_and_a_key_that_hides_a_limit(users):
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="'usr' for cluster; did you mean"):
        users.mcc(cluster="usr").by(ci=0.95)
    with pytest.raises(pl.exceptions.DuplicateError, match="key 'mcc_se'"):
        users.mcc.by(pl.col("slice").alias("mcc_se"), ci=0.95)
    assert users.mcc.by(pl.col("slice").alias("mcc_se")).columns[0] == "mcc_se"


# Keys and labels of any dtype.

SOME = [(key, g, p) for key in ("x", "y", None) for g in range(4) for p in (g, g, (g * g + 1) % 5)]


@pytest.mark.parametrize("dtype", first(4, LABELS), ids=str)
def test_labels_of_any_dtype(run, dtype):
    some = [(key, g % 2, p % 2) for key, g, p in SOME] if dtype == pl.Boolean() else SOME
    expected = log_of(some, pl.Int64()).mcc.by("key", ci=0.95)
    found = run(log_of(some, dtype), lambda log: log.mcc.by("key", ci=0.95))
    assert_frame_equal(found, expected, rel_tol=1e-12)
    drawn, expected = (
        log_of(some, d).mcc.by("key", ci=0.95, method=Bootstrap(replicates=50, seed=1, bca=True))
        for d in (dtype, pl.Int64())
    )
    assert drawn["mcc"].to_list() == pytest.approx(expected["mcc"].to_list(), rel=1e-12)


@pytest.mark.parametrize(
    "keys",
    first(
        4,
        [
            pl.Series([[1], [2, 3], None], dtype=pl.List(pl.Int64)),
            pl.Series([{"a": 1}, {"a": None}, None], dtype=pl.Struct({"a": pl.Int64})),
            pl.Series([[1, 2], [3, 4], None], dtype=pl.Array(pl.Int64, 2)),
            pl.Series([math.nan, -0.0, None]),
            pl.Series([b"a", b"b", None]),
            pl.Series([1, 2**100, None], dtype=pl.Int128),
            pl.Series(["x", "y", None], dtype=pl.Categorical),
            pl.Series(["x", "y", None], dtype=pl.Enum(["y", "x"])),
        ],
    ),
    ids=lambda keys: str(keys.dtype),
)
def test_keys_of_any_dtype(run, keys):
    log = log_of(SOME)
    place = log["key"].replace_strict({"x": 0, "y": 1, None: 2}, return_dtype=pl.Int64)
    keyed = log.with_columns(key=keys.gather(place))
    expected = log.mcc.by("key", ci=0.95)
    found = run(keyed, lambda frame: frame.mcc.by("key", ci=0.95))
    drawn = keyed.mcc.by("key", ci=0.95, method=Bootstrap(replicates=50))
    for column in ("mcc", "mcc_se", "mcc_high"):
        assert sorted(found[column]) == pytest.approx(sorted(expected[column]), rel=1e-12)
    assert sorted(drawn["mcc"]) == sorted(expected["mcc"])

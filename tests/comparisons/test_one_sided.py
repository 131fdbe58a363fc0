"""The p-value of a gate: the interval turned around, and the likelihood ratio of as many rows."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, entropy, norm, t
from support import first

import polars_mcc

CI = 0.95
BOUNDS = {"min": ("_high", 1), "max": ("_low", -1)}
RANGES = {"mcc": (-1, 1), "kappa": (-1, 1)}


def counts_of(*tables: list[list[int]]) -> pl.DataFrame:
    rows = [
        (key, gold, pred, n)
        for key, table in enumerate(tables)
        for gold, of_gold in enumerate(table)
        for pred, n in enumerate(of_gold)
    ]
    return pl.DataFrame(rows, schema=["key", "gold", "pred", "n"], orient="row")


def p_of(log, metric: str, bound: str, at: float, ci: float = CI) -> float:
    try:
        found = log.check(metric=metric, ci=ci, **{bound: at})
    except polars_mcc.CheckError as error:
        found = error.judged
    return found["p_adjusted"].item()


def turned(log, metric: str, at: float, side: str, df: float = math.inf) -> float:
    """The one-sided p-value by bisection: the level whose limit is the threshold."""

    def apart(error: float) -> float:
        level = 1 - 2 * t.sf(error, df)
        return log.by(metrics=metric, ci=level)[f"{metric}{side}"].item() - at

    return t.sf(brentq(apart, 0.01, 7.5, xtol=1e-6), df)


def likely(log, metric: str, bound: str, at: float, most: float, df: float = math.inf) -> float:
    """The likelihood ratio of a proportion of the rows of Wilson's limit; more is better."""
    side, sign = BOUNDS[bound]
    low, high = RANGES.get(metric, (0, 1))
    found = log.by(metrics=metric, ci=CI)
    v, end, known = (
        (one - low) / (high - low)
        for one in (found[metric].item(), found[metric + side].item(), at)
    )
    if sign < 0:
        v, end, known = 1 - v, 1 - end, 1 - known
    z = t.ppf((1 + CI) / 2, df)
    rows = min(z**2 * end * (1 - end) / (end - v) ** 2, most)
    v += 0.5 / rows
    if v >= known:
        return 0.5
    return t.sf(math.sqrt(2 * rows * entropy([v, 1 - v], [known, 1 - known])), df)


TABLE = [[60, 12], [9, 25]]
FOUR = 2 * (106 - (72**2 + 34**2) / 106) - 4  # the most rows of MCC and kappa
CASES = [
    ("recall", "min", math.inf, (0.75, 0.9)),
    ("recall", "max", math.inf, (0.6, 0.4)),
    ("fnr", "max", math.inf, (0.1,)),
    ("accuracy", "min", math.inf, (0.85,)),
    ("mcc", "min", FOUR, (0.6, 0.8)),
    ("mcc", "max", FOUR, (0.3, 0.0)),
    ("kappa", "min", FOUR, (0.7,)),
    ("recall_macro", "min", 4 / (1 / 71.5 + 1 / 33.5), (0.85,)),
]


@pytest.mark.parametrize(
    ("metric", "bound", "most", "thresholds"), first(3, CASES, of_several=True)
)
def test_both_tests_must_agree(metric, bound, most, thresholds):
    log = counts_of(TABLE).mcc(weight="n", positive=1)
    for at in thresholds:
        interval = turned(log, metric, at, BOUNDS[bound][0])
        want = max(interval, likely(log, metric, bound, at, most))
        assert p_of(log, metric, bound, at) == pytest.approx(want, rel=1e-4)
        assert p_of(log, metric, bound, at, ci=0.8) == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize(
    ("metric", "at"), first(1, [("recall", 0.9), ("mcc", 0.8), ("accuracy", 0.95)], of_several=True)
)
def test_clusters_have_students_t(metric, at):
    rng = np.random.default_rng(3)
    users, gold = rng.integers(0, 12, 400), rng.integers(0, 2, 400)
    rate = rng.uniform(0.6, 1, 12)
    pred = np.where(rng.random(400) < rate[users], gold, 1 - gold)
    log = pl.DataFrame({"gold": gold, "pred": pred, "user": users})
    described = log.mcc(cluster="user", positive=1)
    df = log["user"].n_unique() - 1
    want = turned(described, metric, at, "_high", df)
    shares = log["gold"].value_counts(normalize=True)["proportion"]
    most = 2 * 400 * (1 - (shares**2).sum()) - 4 if metric == "mcc" else math.inf
    want = max(want, likely(described, metric, "min", at, most, df))
    assert p_of(described, metric, "min", at) == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize("at", [0.85, 0.93, 0.99])
def test_few_rows_are_no_surer_than_the_binomial_distribution(at):
    """The interval alone is: by a factor of 500 with 3 rows."""
    found = [(n, hits, binom.cdf(hits, n, at)) for n in (3, 10, 40, 200) for hits in range(n)]
    found = [one for one in found if 1e-9 < one[2] < 0.05]
    log = counts_of(*([[n, 0], [n - hits, hits]] for n, hits, _ in found))
    with pytest.raises(polars_mcc.CheckError) as raised:
        log.mcc(weight="n", positive=1).check(
            "key", metric="recall", min=at, ci=CI, correction=None
        )
    times = raised.value.judged["p_adjusted"] / pl.Series([exact for *_, exact in found])
    assert times.min() > 1, found[times.arg_min()]
    assert times.max() < 3.5, found[times.arg_max()]


def test_where_the_limit_is_the_threshold_the_interval_has_half_of_the_error():
    """With very many rows, the likelihood ratio says the same."""
    log = counts_of([[600_000, 120_000], [90_000, 250_000]]).mcc(weight="n", positive=1)
    for metric in ("mcc", "recall"):
        found = log.by(metrics=metric, ci=0.9)
        for bound, (side, _) in BOUNDS.items():
            at = found[metric + side].item()
            assert p_of(log, metric, bound, at, ci=0.9) == pytest.approx(0.05, rel=0.06)


def test_a_score_at_an_end_or_at_the_threshold():
    perfect = counts_of([[50, 0], [0, 50]]).mcc(weight="n", positive=1)
    assert p_of(perfect, "recall", "min", 1.0) == 0.5
    assert p_of(perfect, "recall", "min", 0.9) > 0.95
    assert p_of(perfect, "mcc", "min", -1.0) == 1
    assert p_of(perfect, "recall", "max", 0.9) == pytest.approx(
        norm.sf(math.sqrt(5 / 0.9)), rel=1e-9
    )
    wrong = counts_of([[50, 0], [50, 0]]).mcc(weight="n", positive=1)
    assert p_of(wrong, "recall", "min", 0.0) == 0.5
    log = counts_of(TABLE).mcc(weight="n", positive=1)
    score = log.score(metrics="mcc")["mcc"].item()
    assert p_of(log, "mcc", "min", score) == p_of(log, "mcc", "max", score) == 0.5
    assert p_of(log, "mcc", "min", 1.0) < 1e-6


def test_a_metric_without_a_range_has_a_symmetric_test():
    def hits_times(col):
        return (3 * col("hits").sum() / col("n").max()).alias("hits_times")

    log = counts_of(TABLE).mcc(weight="n")
    found = log.by(metrics=hits_times, ci=CI)
    score, high = found["hits_times"].item(), found["hits_times_high"].item()
    at = score + 1.7 * (high - score)
    want = norm.sf(1.7 * norm.ppf(0.975))
    try:
        judged = log.check(metric=hits_times, min=at, ci=CI)
    except polars_mcc.CheckError as error:
        judged = error.judged
    assert judged["p_adjusted"].item() == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("weight", [1, 0.05])
def test_sample_weights_of_any_size_say_the_same(weight):
    log = counts_of(TABLE).filter(pl.col("n") > 0)
    rows = log.select(pl.exclude("n").repeat_by("n").explode()).with_columns(w=pl.lit(weight))
    found = p_of(rows.mcc(sample_weight="w"), "mcc", "min", 0.8)
    want = turned(log.mcc(weight="n"), "mcc", 0.8, "_high")
    likelihood = likely(log.mcc(weight="n"), "mcc", "min", 0.8, math.inf)
    assert found == pytest.approx(max(want, likelihood), rel=1e-4)


def test_one_row_of_a_rare_class_tells_nothing():
    log = counts_of([[58, 1], [1, 0]]).mcc(weight="n")
    assert log.by(ci=CI)["mcc_high"].item() < 0.9
    assert log.check(min=0.9, ci=CI)["verdict"].to_list() == ["not significant"]


@pytest.mark.parametrize(
    ("metric", "rel"), [("mcc", 1e-9), ("accuracy", 1e-9), ("recall_macro", 0.05)]
)
def test_a_baseline_is_tested_by_its_difference_and_by_its_ratio(metric, rel):
    """As in `drift`, but one-sided; and the likelihood ratio of two proportions.

    Limits of a mean over classes are of both periods together.
    """
    before, after = [[70, 5], [4, 21]], TABLE
    both = pl.concat(
        [counts_of(one).with_columns(at=pl.lit(at)) for at, one in enumerate((before, after))]
    )
    log, baseline = (counts_of(one).mcc(weight="n") for one in (after, before))
    drift = both.mcc(weight="n").drift(
        before=pl.col("at") == 0, after=pl.col("at") == 1, metrics=metric
    )
    low, high = RANGES.get(metric, (0, 1))

    def rows(log, side: str, table: list[list[int]]) -> tuple[float, float]:
        found = log.by(metrics=metric, ci=CI)
        v, end = ((found[metric + part].item() - low) / (high - low) for part in ("", side))
        gold = np.array(table).sum(axis=1)
        most = {
            "mcc": 2 * (gold.sum() - (gold**2).sum() / gold.sum()) - 4,
            "accuracy": math.inf,
            "recall_macro": 4 / (1 / (gold - 0.5)).sum(),
        }[metric]
        return v, min(norm.ppf(0.975) ** 2 * end * (1 - end) / (end - v) ** 2, most)

    (v, m), (w, k) = rows(log, "_high", after), rows(baseline, "_low", before)
    v, w = v + 0.5 / m, w - 0.5 / k
    mean = (m * v + k * w) / (m + k)
    apart = sum(n * entropy([x, 1 - x], [mean, 1 - mean]) for n, x in ((m, v), (k, w)))
    want = max(drift["p_value"].item() / 2, norm.sf(math.sqrt(2 * apart)))

    def p_of_baseline(log, counts) -> float:
        try:
            found = log.check(no_worse_than=counts, metric=metric, ci=CI)
        except polars_mcc.CheckError as error:
            found = error.judged
        return found["p_adjusted"].item()

    assert p_of_baseline(log, counts_of(before)) == pytest.approx(want, rel=rel)
    better = p_of_baseline(baseline, counts_of(after))
    assert better == pytest.approx(1 - drift["p_value"].item() / 2, rel=1e-9)

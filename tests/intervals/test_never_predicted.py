"""Limits where a gold class is never predicted: of MCC by its formula, of all metrics by tables."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import in_turn
from tables import counts_of

from polars_mcc import Bootstrap

ALPHA = 0.05
BOTH_SIDES = ["mcc", "kappa", "informedness", "f1_macro", "mcc_macro", "mcc_normalized"]


def log_of(matrix, labels="abcdef") -> pl.DataFrame:
    """Counts of a confusion matrix: gold in rows."""
    places = [*itertools.product(range(len(matrix)), repeat=2)]
    rows = [(labels[i], labels[j], int(matrix[i][j])) for i, j in places]
    return pl.DataFrame(rows, schema=["gold", "pred", "n"], orient="row").filter(pl.col("n") > 0)


def limits(matrix, metric="mcc", **options) -> tuple[float | None, float | None]:
    found = log_of(matrix).mcc(weight="n", positive="b", **options).score(metrics=[metric], ci=0.95)
    return found[f"{metric}_low"].item(), found[f"{metric}_high"].item()


def largest_rate(n: float) -> float:
    """The rate at which none of n rows does something with the probability α/2, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 - middle) ** n > ALPHA / 2 else (low, middle)
    return low


@pytest.mark.parametrize(("rare", "others"), [(2, 2), (3, 40), (30, 270), (500, 20), (7, 10**6)])
def test_mcc_of_two_classes(rare, others):
    """The formula of the guide: the class is never predicted, and has the share T of the rows."""
    low, high = limits([[others, 0], [rare, 0]])
    t, up, down = rare / (rare + others), largest_rate(rare), largest_rate(others)
    assert high == pytest.approx(math.sqrt(up * (1 - t) / (1 - t * up)), rel=1e-9)
    assert low == pytest.approx(-math.sqrt(down * t / (1 - (1 - t) * down)), rel=1e-9)
    assert limits([[0, rare], [0, others]]) == pytest.approx((low, high), rel=1e-9)


def scores(table: np.ndarray) -> dict[str, float]:
    """Scores of a dense table of real numbers; a score of a class at 0/0 is 0."""
    s, t, p, c = table.sum(), table.sum(1), table.sum(0), np.diag(table)
    over = lambda part, whole: part / whole if whole > 0 else 0.0  # noqa: E731
    cov, var_t, var_p = c.sum() * s - t @ p, s**2 - t @ t, s**2 - p @ p
    occurs = (t + p) > 0
    f1 = [2 * c[k] / (t[k] + p[k]) for k in np.flatnonzero(occurs)]
    phi = [
        over(c[k] * s - t[k] * p[k], math.sqrt(t[k] * (s - t[k]) * p[k] * (s - p[k])))
        for k in np.flatnonzero(occurs)
    ]
    mcc = over(cov, math.sqrt(max(var_t * var_p, 0)))
    return {
        "mcc": mcc,
        "mcc_normalized": (mcc + 1) / 2,
        "kappa": over(cov, s**2 - t @ p),
        "informedness": over(cov, var_t),
        "f1_macro": float(np.mean(f1)),
        "mcc_macro": float(np.mean(phi)),
    }


def extremes(matrix: np.ndarray) -> list[np.ndarray]:
    """The tables of the least and the largest rates of what was never seen, row by row."""
    table, k = matrix.astype(float), len(matrix)
    t = table.sum(1)
    never = [j for j in range(k) if matrix[:, j].sum() == 0 and t[j] > 0]
    if len(never) == 0 or (t > 0).sum() < 2 or sum(t[never]) < 2:
        return []
    most = table.copy()
    for j in never:
        most[j] *= 1 - largest_rate(sum(t[never]))
        most[j, j] += largest_rate(sum(t[never])) * t[j]
    others = [i for i in range(k) if i not in never]
    if sum(t[others]) < 2:
        others = [*range(k)]
    rate, least = largest_rate(sum(t[others])), table.copy()
    for i in others:
        to = [j for j in never if j != i]
        if to:
            least[i] *= 1 - rate
            least[i, to] += rate * t[i] * t[to] / sum(t[to])
    return [least, most]


matrices = (
    st.integers(2, 5)
    .flatmap(
        lambda k: st.lists(
            st.lists(st.integers(0, 40), min_size=k, max_size=k), min_size=k, max_size=k
        )
    )
    .flatmap(
        lambda rows: st.tuples(st.just(rows), st.sets(st.integers(0, len(rows) - 1), min_size=1))
    )
    .map(
        lambda drawn: np.array(
            [[0 if j in drawn[1] else n for j, n in enumerate(row)] for row in drawn[0]]
        )
    )
)


@pytest.mark.slow
@given(matrices.filter(lambda matrix: matrix.sum() > 0))
@example(np.array([[0, 0, 0], [0, 0, 2], [0, 0, 1]]))  # A row of b has no other class to go to.
def test_limits_are_those_of_two_tables(matrix):
    """Where a score has other limits too, the distances add up as squares."""
    log = log_of(matrix).mcc(weight="n", positive="b")
    here = log.score(metrics=BOTH_SIDES, ci=0.95).row(0, named=True)
    # Without a number for 0/0 there are no such limits; where nothing is 0/0, all else is equal.
    plain = log(zero_division=None).score(metrics=BOTH_SIDES, ci=0.95).row(0, named=True)
    known, tables = scores(matrix.astype(float)), extremes(matrix)
    for name in BOTH_SIDES:
        low, score, high = (here[f"{name}{end}"] for end in ("_low", "", "_high"))
        assert score is None or score == pytest.approx(known[name], abs=1e-9)
        if not tables:
            assert name in {"f1_macro", "mcc_macro"} or low == plain[f"{name}_low"]
            continue
        ends = [scores(table)[name] for table in tables]
        own = 0.0, 0.0
        if name == "mcc_macro":  # `plain` is the mean of fewer classes, also where it is equal.
            assert low <= min(*ends, score) + 1e-9, (name, matrix)
            assert high >= max(*ends, score) - 1e-9, (name, matrix)
            continue
        if plain[f"{name}_low"] is not None:
            own = score - plain[f"{name}_low"], plain[f"{name}_high"] - score
        down = math.hypot(score - min(*ends, score), own[0])
        up = math.hypot(max(*ends, score) - score, own[1])
        least = 0.0 if name in {"f1_macro", "mcc_normalized"} else -1.0
        assert low == pytest.approx(max(score - down, least), abs=1e-7), (name, matrix)
        assert high == pytest.approx(min(score + up, 1.0), abs=1e-7), (name, matrix)


NOTHING_SEEN = [[40, 0], [12, 0]]


def test_a_score_of_predictions_that_were_never_made_may_be_anything():
    assert limits(NOTHING_SEEN, "precision") == limits(NOTHING_SEEN, "fdr") == (0, 1)
    assert limits(NOTHING_SEEN, "markedness") == (-1, 1)
    assert limits([[40, 0], [0, 0]], "precision") == (None, None)


@pytest.mark.parametrize("metric", ["accuracy", "recall", "specificity", "npv", "prevalence"])
def test_a_proportion_of_rows_keeps_the_limits_of_wilson(metric):
    assert limits(NOTHING_SEEN, metric) == limits(NOTHING_SEEN, metric, zero_division=None)


@pytest.mark.parametrize("zero_division", [None, math.nan, 1.0])
def test_another_number_for_0_by_0_has_no_interval(zero_division):
    assert limits(NOTHING_SEEN, zero_division=zero_division) == (None, None)


@pytest.mark.parametrize("matrix", [[[40, 0], [1, 0]], [[40, 0], [0, 0]], [[0, 40], [0, 0]]])
def test_one_row_and_one_class_tell_nothing(matrix):
    assert limits(matrix) == (None, None)


def test_no_row_outside_the_classes_that_are_never_predicted():
    """All rows are predicted "c": rows of "a" might be "b", and the reverse."""
    low, high = limits([[0, 0, 30], [0, 0, 20], [0, 0, 0]])
    assert -0.5 < low < 0 < high < 0.5


@pytest.mark.parametrize("method", ["score", "fisher", "wald"])
def test_each_formula_has_the_limits_of_a_collapse(method):
    found = log_of(NOTHING_SEEN).mcc(weight="n").score(ci=0.95, method=method)
    assert (found["mcc_low"].item(), found["mcc_high"].item()) == limits(NOTHING_SEEN)
    assert found["mcc_se"].item() is None


def test_the_bootstrap_has_no_limits_of_a_collapse():
    found = log_of(NOTHING_SEEN).mcc(weight="n").score(ci=0.95, method=Bootstrap(100, seed=1))
    assert found["mcc_low"].item() is None


def test_a_cluster_is_one_row():
    """12 rows of b are in 3 clusters, and 40 rows of a in 5; all rows of a cluster may be alike."""
    gold = ["a"] * 40 + ["b"] * 12
    users = [*(i % 5 for i in range(40)), *(5 + i % 3 for i in range(12))]
    log = pl.DataFrame({"gold": gold, "pred": "a", "user": users})
    found = log.mcc(cluster="user").score(ci=0.95)
    t, up, down = 12 / 52, largest_rate(3), largest_rate(5)
    assert found["mcc_high"].item() == pytest.approx(math.sqrt(up * (1 - t) / (1 - t * up)))
    assert found["mcc_low"].item() == pytest.approx(-math.sqrt(down * t / (1 - (1 - t) * down)))
    one = log.with_columns(user=pl.when(pl.col("gold") == "b").then(99).otherwise("user"))
    assert one.mcc(cluster="user").score(ci=0.95)["mcc_low"].item() is None


def test_unequal_weights_count_for_fewer_rows():
    log = pl.DataFrame(
        {"gold": ["a"] * 40 + ["b"] * 12, "pred": "a", "w": [1.0] * 40 + [4.0] + [0.5] * 11}
    )
    found = log.mcc(sample_weight="w").score(ci=0.95)
    rows, weight = 9.5**2 / (16 + 11 / 4), 9.5
    t, up, down = weight / (40 + weight), largest_rate(rows), largest_rate(40)
    assert found["mcc_high"].item() == pytest.approx(math.sqrt(up * (1 - t) / (1 - t * up)))
    assert found["mcc_low"].item() == pytest.approx(-math.sqrt(down * t / (1 - (1 - t) * down)))


def test_a_slice_has_the_limits_that_it_has_alone():
    matrices = [NOTHING_SEEN, [[9, 3], [2, 8]], [[5, 0], [0, 0]], [[0, 30], [0, 9]]]
    log = pl.concat(log_of(one).with_columns(key=i) for i, one in enumerate(matrices))
    found = log.mcc(weight="n").by("key", ci=0.95).sort("key")
    alone = [log.filter(key=i).drop("key").mcc(weight="n").score(ci=0.95) for i in range(4)]
    assert found.drop("key").equals(pl.concat(alone))


def test_to_a_metric_of_one_class_all_others_are_one():
    """ "b" has 30 rows. That "c" is never predicted either tells nothing of it."""
    log = log_of([[300, 0, 0], [30, 0, 0], [270, 0, 0]]).mcc(weight="n", positive="b")
    found = log.score(metrics=["phi"], ci=0.95)
    t, up = 30 / 600, largest_rate(30)
    assert found["phi_high"].item() == pytest.approx(math.sqrt(up * (1 - t) / (1 - t * up)))
    of_class = log.classes(ci=0.95).filter(label="b")
    assert of_class["mcc_high"].item() == pytest.approx(found["phi_high"].item())


# What compares slices.


def log_that_collapses() -> pl.DataFrame:
    """A model that is the same in each week, but predicts one class for cooks in the last one."""
    rng = np.random.default_rng(8)
    n = 40_000
    gold = rng.random(n) < 0.25
    pred = np.where(rng.random(n) < 0.82, gold, ~gold)
    log = pl.DataFrame({"gold": gold, "pred": pred, "week": rng.integers(0, 8, n)})
    log = log.with_columns(work=pl.Series(rng.choice([*"abcdefg", "cook"], n)))
    is_bad = (pl.col("week") == 7) & (pl.col("work") == "cook")
    return log.with_columns(pred=pl.when(is_bad).then(pl.lit(value=False)).otherwise("pred"))


def test_each_comparison_sees_a_collapse():
    log = log_that_collapses()
    last = pl.col("week") == 7
    [drift] = log.mcc.drift("work", before=~last, after=last).filter(work="cook").to_dicts()
    asked = log.filter(last).mcc
    [rest] = asked.contrast("work").filter(work="cook").to_dicts()
    [expected] = asked.contrast("work", to="expected").filter(work="cook").to_dicts()
    better = log.filter(last, work="cook").with_columns(other="gold")
    [models] = better.mcc(pred="pred").compare(baseline="other").to_dicts()
    for row in (drift, rest, expected, models):
        assert row["p_value"] < 1e-6
        assert row["diff_high"] < -0.1
    found = log.mcc.worst("week", "work", bins=None)
    assert found["slice"][0] == "week = 7 and work = cook"
    assert found["score"][0] == 0


def counted(**slices) -> pl.DataFrame:
    return pl.concat(
        counts_of([table]).with_columns(key=pl.lit(key)) for key, table in slices.items()
    )


def test_the_evidence_of_a_collapse_is_the_probability_of_it():
    """With the rates of all rows, none of 9 rows of class 1 is predicted 1, nor one of 20 of 0."""
    log = counted(
        bad={(0, 0): 20, (1, 0): 9}, good={(0, 0): 300, (0, 1): 20, (1, 0): 40, (1, 1): 111}
    )
    options = {"min_n": 5, "verdicts": True, "max_share": 1.0}
    found = log.mcc(weight="n").worst("key", **options).filter(key="bad")
    p = (1 - 20 / 340) ** 20 * (1 - 111 / 160) ** 9
    assert found["p_value"].item() == pytest.approx(2 * p, rel=1e-9)
    for to in ("rest", "expected"):
        again = log.mcc(weight="n").worst("key", to=to, **options).filter(key="bad")
        assert again["p_value"].item() == pytest.approx(2 * p, rel=1e-9)
    huge = log.with_columns(n=pl.col("n") * 10**6)
    assert huge.mcc(weight="n").worst("key", **options).filter(key="bad")["p_value"].item() == 0


# The classes of a slice: each is a slice of two classes, itself and the rest.

OF_CLASS = ["precision", "recall", "specificity", "markedness", "mcc"]
"""Scores that have no other limits there than these, or Wilson's."""


def drawn(seed: int) -> pl.DataFrame:
    """Rows of three slices whose classes 2 and 3 are hardly ever predicted."""
    rng = np.random.default_rng(seed)
    n = 150
    gold = rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])
    pred = np.where((gold < 2) & (rng.random(n) < 0.8), gold, rng.choice(2, n))
    pred = np.where(rng.random(n) < 0.01, gold, pred)
    columns = {"gold": gold, "pred": pred, "key": rng.integers(0, 3, n)}
    users = {"user": rng.integers(0, 25, n), "w": rng.exponential(size=n)}
    return pl.DataFrame({**columns, **users})


@in_turn(
    1,
    seed=range(3),
    method=["score", "wald"],
    described=[{}, {"cluster": "user"}, {"sample_weight": "w"}],
)
def test_a_class_has_the_limits_of_itself_beside_the_rest(described, method, seed):
    log = drawn(seed)
    found = log.mcc(**described).classes("key", ci=0.95, method=method)
    reached = 0
    for row in found.filter(predicted=0).to_dicts():
        is_label = pl.col("gold", "pred") == row["label"]
        two = log.filter(key=row["key"]).with_columns(is_label)
        asked = ["phi" if name == "mcc" else name for name in OF_CLASS]
        [other] = (
            two.mcc(positive=True, **described).by(metrics=asked, ci=0.95, method=method).to_dicts()
        )
        for name, same in zip(OF_CLASS, asked, strict=True):
            for end in ("_low", "_high"):
                a, b = row[name + end], other[same + end]
                assert (a is None) == (b is None), (name, row)
                assert a is None or a == pytest.approx(b, abs=1e-9), (name, end, row)
        reached += row["mcc_low"] is not None
    assert reached >= 2


@pytest.mark.slow
def test_the_unit_of_sample_weights_changes_no_evidence():
    """With weights of 100 for 1, rows are not 100 times as many."""
    rng = np.random.default_rng(7)
    gold = rng.random(3000) < 0.2
    pred = np.where(rng.random(3000) < 0.8, gold, ~gold)
    columns = {"gold": gold, "pred": pred, "key": rng.integers(0, 30, 3000)}
    log = pl.DataFrame({**columns, "user": rng.integers(0, 900, 3000)})
    log = log.with_columns(pl.when(key=4).then(pl.lit(value=False)).otherwise("pred").alias("pred"))
    for described in ({}, {"cluster": "user"}):
        found = []
        for unit in (1.0, 100.0):
            weighed = log.with_columns(w=unit * (1 + pl.col("key") % 3))
            asked = weighed.mcc(sample_weight="w", **described)
            found.append(asked.worst("key", bins=None, verdicts=True).select("slice", "p_value"))
        one, other = found
        assert one["slice"][0] == "key = 4"
        assert other["slice"].to_list() == one["slice"].to_list()
        assert other["p_value"].to_list() == pytest.approx(one["p_value"].to_list(), rel=1e-6)


@pytest.mark.slow
def test_a_collapse_is_evidence_only_where_it_makes_the_score_0_by_0():
    table = {(0, 0): 900, (1, 0): 100}
    others = {(0, 0): 1687, (0, 1): 112, (1, 1): 141, (1, 0): 58}
    log = counted(C=table, **dict.fromkeys("ABDE", others)).mcc(weight="n", positive=1)

    def p_of(metric: str) -> float | None:
        found = log.worst("key", metric=metric, verdicts=True)
        return found.filter(key="C")["p_value"].item()

    assert p_of("mcc") == p_of("phi") < 1e-50
    assert p_of("accuracy") > 0.05
    assert p_of("mcc_micro") > 0.05
    assert p_of("precision") is p_of("markedness") is None


def test_a_collapse_of_a_model_that_knows_nothing_is_not_listed():
    """The slice scores no worse than the rest. Only the predictions differ."""
    rest = {(0, 0): 5000, (0, 1): 5000, (1, 0): 4800, (1, 1): 5200}
    log = counted(C={(0, 0): 200, (1, 0): 200}, A=rest)
    assert log.mcc(weight="n").worst("key", min_n=5).is_empty()

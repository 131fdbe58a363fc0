"""`lr_pos`, `lr_neg`, `dor`: intervals and tests of their logarithms, against loops and peers."""

from __future__ import annotations

import itertools
import math
import random
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sklearn.metrics import class_likelihood_ratios
from support import ask

import polars_mcc

NAMES = ("lr_pos", "lr_neg", "dor")
Cells = tuple[float, float, float, float]  # tp, fn, fp, tn

rng = random.Random(1)
TABLES: dict[int, Cells] = {
    place: tuple(rng.choice((0, 1, 3, 20, 300)) for _ in range(4)) for place in range(60)
}
TABLES |= {60: (30, 10, 5, 60), 61: (0, 5, 4, 30), 62: (5, 0, 7, 0), 63: (0, 5, 0, 9)}
ALL_CELLS = [place for place, cells in TABLES.items() if min(cells) > 0]
GOLD_OF_BOTH = [place for place, (tp, fn, fp, tn) in TABLES.items() if tp + fn and fp + tn]


def log_of(tables: dict[int, Cells]) -> pl.DataFrame:
    """A third label beside the positive one: half of the rows of the rest."""
    rows = []
    for place, (tp, fn, fp, tn) in tables.items():
        rows += [(place, 1, 1, tp), (place, 1, 0, fn - fn // 2), (place, 1, 2, fn // 2)]
        rows += [(place, 0, 1, fp), (place, 0, 2, tn // 3), (place, 2, 2, tn - tn // 3)]
    columns = ["place", "gold", "pred", "n"]
    return pl.DataFrame(rows, columns, orient="row")


def described(tables: dict[int, Cells], **options) -> polars_mcc.PredictionLog:
    return log_of(tables).mcc(weight="n", positive=1, **options)


def log_and_se(name: str, cells: Cells, half: float = 0.5) -> tuple[float, float]:
    """Simel et al., and Woolf for the odds ratio, with half a row more in each cell."""
    tp, fn, fp, tn = (cell + half for cell in cells)
    gold, rest = tp + fn, fp + tn
    if name == "lr_pos":
        return math.log(tp / gold / (fp / rest)), math.sqrt(1 / tp - 1 / gold + 1 / fp - 1 / rest)
    if name == "lr_neg":
        return math.log(fn / gold / (tn / rest)), math.sqrt(1 / fn - 1 / gold + 1 / tn - 1 / rest)
    return math.log(tp * tn / (fp * fn)), math.sqrt(1 / tp + 1 / fn + 1 / fp + 1 / tn)


def value_of(name: str, cells: Cells) -> float | None:
    """NaN at 0/0; None without gold rows of a class."""
    tp, fn, fp, tn = cells
    if not (tp + fn and fp + tn):
        return None
    of = {"lr_pos": (tp * (fp + tn), fp * (tp + fn)), "lr_neg": (fn * (fp + tn), tn * (tp + fn))}
    part, whole = {**of, "dor": (tp * tn, fp * fn)}[name]
    return part / whole if whole else math.inf if part else math.nan


@pytest.mark.parametrize("method", ["score", "wald"])
@pytest.mark.parametrize("ci", [0.05, 0.95])
def test_limits_are_those_of_the_logarithm_with_half_rows(ci, method):
    z, seen = NormalDist().inv_cdf((1 + ci) / 2), set()
    found = described(TABLES).by("place", metrics=[*NAMES], ci=ci, method=method)
    for row, name in itertools.product(found.to_dicts(), NAMES):
        cells = TABLES[row["place"]]
        value, ends = value_of(name, cells), [row[f"{name}_{end}"] for end in ("low", "high", "se")]
        if value is None or math.isnan(value):
            assert ends == [None] * 3
            at_0 = 1.0 if name == "lr_neg" else 0.0
            assert row[name] == (None if value is None else at_0)
            seen.add(value is None)
            continue
        middle, se = log_and_se(name, cells)
        centre = math.exp(middle)
        limits = [
            min(centre, value) * math.exp(-z * se),
            max(centre, value) * math.exp(z * se),
        ]
        assert row[name] == pytest.approx(value, rel=1e-15)
        assert ends == pytest.approx([*limits, se], rel=1e-12)
        seen |= {(name, at) for at in (0, math.inf) if value == at}
    assert seen == {True, False, *itertools.product(NAMES, (0, math.inf))}


def test_values_of_peers():
    """Scikit-learn has NaN where the rate below is 0; statsmodels is asked with half rows."""
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    found = described(TABLES).by("place", metrics=[*NAMES], ci=0.9)
    at = {row["place"]: row for row in found.to_dicts()}
    assert len(ALL_CELLS) > 10
    for place in ALL_CELLS:
        tp, fn, fp, tn = TABLES[place]
        gold, pred = np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0])
        pair = class_likelihood_ratios(gold, pred, sample_weight=[tp, fn, fp, tn])
        assert [at[place]["lr_pos"], at[place]["lr_neg"]] == pytest.approx(pair, rel=1e-13)
    for place in {*GOLD_OF_BOTH} - {62, 63}:
        if at[place]["dor_se"] is None:
            continue
        halved = tables.Table2x2(np.array(TABLES[place]).reshape(2, 2) + 0.5)
        low, high = halved.oddsratio_confint(alpha=0.1)
        by_half = at[place]["dor"] / halved.oddsratio
        assert at[place]["dor_se"] == pytest.approx(halved.log_oddsratio_se, rel=1e-12)
        assert at[place]["dor_low"] == pytest.approx(low * min(by_half, 1), rel=1e-12)
        assert at[place]["dor_high"] == pytest.approx(high * max(by_half, 1), rel=1e-12)


@pytest.mark.parametrize("weight", [1.0, 0.25, 1e-150, "w"])
@pytest.mark.parametrize("cluster", [None, "user"])
def test_errors_of_weights_and_clusters_from_rows(weight, cluster):
    """The sums of squares of influences, which are differences of the logarithm in loops."""
    draw = np.random.default_rng(3)
    gold = draw.random(200) < 0.4
    pred = np.where(draw.random(200) < 0.8, gold, ~gold)
    w = draw.integers(1, 9, 200) / 4 if weight == "w" else np.full(200, weight)
    user = draw.integers(0, 30, 200)
    log = pl.DataFrame({"gold": gold, "pred": pred, "w": w, "user": user})
    found = log.mcc(sample_weight="w", cluster=cluster).score(metrics=[*NAMES], ci=0.9)
    cell_of = (2 * ~gold + ~pred).astype(int)
    shares = np.array([w[cell_of == cell].sum() for cell in range(4)]) / w.sum()
    half = (w**2).sum() / w.sum() ** 2 / 2
    mean_w = 2 * half * w.sum()
    for name in NAMES:
        middle, _ = log_and_se(name, tuple(shares), half)

        def moved(cell, name=name):
            step = np.where(np.arange(4) == cell, 1e-6, 0.0)
            up, down = (log_and_se(name, tuple(x), half)[0] for x in (shares + step, shares - step))
            return (up - down) / 2e-6

        phi = np.array([*map(moved, range(4))])
        of_rows = w / w.sum() * phi[cell_of]
        sums = np.bincount(user, of_rows) if cluster else of_rows
        variance = (sums**2).sum() + 0.5 * (mean_w / w.sum()) ** 2 * (phi**2).sum()
        z = NormalDist().inv_cdf(0.95)
        if cluster:
            number = len(set(user))
            variance, z = variance / (1 - 1 / number), stats.t.ppf(0.95, number - 1)
        se = math.sqrt(variance)
        both = middle, math.log(found[name].item())
        ends = [math.exp(min(both) - z * se), math.exp(max(both) + z * se), se]
        assert found.select(f"{name}_low", f"{name}_high", f"{name}_se").row(0) == pytest.approx(
            ends, rel=1e-6
        )


@pytest.mark.parametrize("name", NAMES)
def test_the_ratio_of_two_ratios(name):
    z = NormalDist().inv_cdf(0.95)
    asked = {"metrics": name, "ratio": True, "to": {"place": 60}, "ci": 0.9, "min_n": 1}
    found = described(TABLES).contrast("place", **asked)
    middle_to, se_to = log_and_se(name, TABLES[60])
    compared = 0
    for row in found.to_dicts():
        value, to = value_of(name, TABLES[row["place"]]), value_of(name, TABLES[60])
        ends = [row["ratio_low"], row["ratio_high"], row["p_value"]]
        if value is None or math.isnan(value):
            assert ends == [None] * 3
            continue
        middle, se = log_and_se(name, TABLES[row["place"]])
        middle, se, ratio = middle - middle_to, math.hypot(se, se_to), value / to
        assert row["ratio"] == pytest.approx(ratio, rel=1e-14)
        low = min(math.exp(middle - z * se), ratio)
        high = max(math.exp(middle + z * se), ratio)
        p = 2 * stats.norm.sf(abs(middle) / se)
        assert ends == pytest.approx([low, high, p], rel=1e-9)
        compared += 1
    assert compared > 30


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("threshold", [0.5, 4.0])
def test_a_gate_tests_the_logarithm(name, threshold):
    bound = "max" if name == "lr_neg" else "min"
    options = {"ci": 0.9, "correction": None, bound: {name: threshold}}
    with pytest.raises(polars_mcc.CheckError) as error:
        described(TABLES).check("place", **options)
    verdicts = set()
    for row in error.value.judged.to_dicts():
        cells = TABLES[row["place"]]
        value = value_of(name, cells)
        verdicts.add(row["verdict"])
        if value is None or math.isnan(value):
            assert row["verdict"] == "not judged"
            continue
        middle, se = log_and_se(name, cells)
        own = math.log(value) if 0 < value < math.inf else -math.inf if value == 0 else math.inf
        nearest = max(middle, own) if bound == "min" else min(middle, own)
        errors = (math.log(threshold) - nearest) / se * (1 if bound == "min" else -1)
        p = max(stats.norm.sf(errors), stats.t.sf(errors, 1 / se**2))
        assert row["p_adjusted"] == pytest.approx(p, rel=1e-7)
        beyond = value < threshold if bound == "min" else value > threshold
        fails = beyond and p < 0.1 and stats.norm.sf(errors) < 0.05
        assert row["verdict"] == ("fails" if fails else "not significant" if beyond else "passes")
    assert {"fails", "passes", "not judged"} <= verdicts


def test_a_gate_of_values():
    with pytest.raises(polars_mcc.CheckError, match="2 of 3 slices fail: lr_pos below 10 or 0/0"):
        described({0: (30, 10, 5, 60), 1: (3, 10, 0, 60), 2: (0, 3, 0, 3)}).check(
            "place", min={"lr_pos": 10}
        )
    described({1: (3, 10, 0, 60)}).check("place", min={"lr_pos": 10})
    with pytest.raises(ValueError, match="for 'lr_neg' less is better: pass a maximum"):
        described(TABLES).check(min={"lr_neg": 0.1})
    with pytest.raises(ValueError, match=r"outside the range of dor, \[0, ∞\]"):
        described(TABLES).check(min={"dor": -1})


@pytest.mark.parametrize("name", NAMES)
def test_differences_have_no_test(name):
    log = log_of(TABLES).with_columns(other="gold")
    one = log.mcc(weight="n", positive=1, pred="pred")
    calls = {
        "compare": lambda: log.mcc(weight="n", positive=1, pred=["pred", "other"]).compare(
            metrics=name
        ),
        "contrast": lambda: one.contrast("place", metrics=name),
        "drift": lambda: one.drift(
            metrics=name, before=pl.col("place") < 9, after=pl.col("place") > 9
        ),
        "worst": lambda: one.worst("place", metric=name),
        "gaps": lambda: one.gaps("place", metrics=["tpr", name]),
        "max_gap": lambda: one.check("place", max_gap={name: 1}),
        "baseline": lambda: one.check("place", metric=name, no_worse_than=one.counts("place")),
        "report": lambda: one.report("place", metrics=name),
    }
    for call in calls.values():
        with pytest.raises(ValueError, match=f"'{name}' has no largest value.* ratio=True, or"):
            call()
    with pytest.raises(ValueError, match=f"'{name}' is not compared with the total: .*to='rest'"):
        one.contrast("place", metrics=name, to="total", ratio=True)
    with pytest.raises(ValueError, match=f"'{name}' is infinite in some draws of a bootstrap"):
        one.by("place", metrics=["mcc", name], ci=0.9, method=polars_mcc.Bootstrap())
    answer = one.by("place", metrics=name, ci=0.9)
    with pytest.raises(ValueError, match=f"'{name}_se' is of a logarithm: use plot.slices"):
        polars_mcc.plot.funnel(answer, metric=name)
    polars_mcc.plot.slices(answer.head(9), metric=name)


def test_the_best_threshold_may_be_infinitely_good():
    log = pl.DataFrame(
        {
            "key": [0] * 6 + [1] * 6,
            "gold": [True, True, False, True, False, False] * 2,
            "s": [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.95, 0.1, 0.2, 0.6, 0.1],
        }
    )
    [first, second] = ask(log, "best_threshold", "key", score="s", metric="lr_pos").to_dicts()
    assert first["lr_pos"] == second["lr_pos"] == math.inf
    assert first["threshold"] in {0.9, 0.8}
    assert first["loss"] == (0.0 if first["lr_pos_shared"] == math.inf else math.inf)
    assert not math.isnan(second["loss"])
    kept = log.mcc(score="s").best_threshold(metric="lr_pos", min={"tpr": 1.0})
    assert kept["lr_pos"].item() == pytest.approx(1.5, rel=1e-15)

"""Metrics with parameters: F_β, costs and weighted kappa, as calls and as functions."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sklearn.metrics import cohen_kappa_score, fbeta_score
from support import LABELS, in_turn, log_of

import polars_mcc
from polars_mcc import CheckError, PredictionLog, metric

Z = NormalDist().inv_cdf(0.975)
ORDERED = [dtype for dtype in LABELS if dtype.is_numeric() or dtype in {pl.Boolean, pl.Enum}]
COSTS = {(0, 1): 5, (1, 0): 1, (2, 0): 40, (2, 1): -3, (3, 3): -1}


def codes_of(seed: int, classes: int = 4, rows: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    gold = rng.choice(classes, rows, p=np.arange(classes, 0, -1) / sum(range(classes + 1)))
    return gold, np.clip(gold + rng.integers(-1, 2, rows), 0, classes - 1)


def log_and_codes(
    dtype: pl.DataType, seed: int = 1, rows: int = 300
) -> tuple[pl.DataFrame, np.ndarray, np.ndarray]:
    """A log with labels of a dtype, and the codes of both sides."""
    gold, pred = codes_of(seed, 2 if dtype == pl.Boolean else 4, rows)
    keys = ["xyz"[place % 3] for place in range(rows)]
    frame = log_of([*zip(keys, gold.tolist(), pred.tolist(), strict=True)], dtype)
    return frame, gold, pred


@in_turn(dtype=[*LABELS], beta=[0.5, 1, 2, 3.7], key=["x", "z"])
def test_f_beta_is_that_of_scikit_learn(dtype, beta, key):
    frame, gold, pred = log_and_codes(dtype)
    here = (frame["key"] == key).to_numpy()
    averages = ["positive", "macro", "weighted", "micro"]
    calls = [f"f_beta({beta}, {average})" for average in averages]
    answer = frame.mcc(positive=LABELS[dtype][1]).by("key", metrics=calls)
    of_key = answer.filter(key=key).row(0, named=True)
    for average in averages:
        name = f"f{beta}" + ("" if average == "positive" else f"_{average}")
        known = "binary" if average == "positive" else average
        sides = (gold[here], pred[here])
        sides = [side == 1 for side in sides] if average == "positive" else sides
        expected = fbeta_score(*sides, beta=beta, average=known)
        assert of_key[name] == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("nulls", ["drop", "label", "reweight"])
@pytest.mark.parametrize("ci", [None, 0.9])
def test_f_beta_of_1_is_f1(nulls, ci):
    frame, *_ = log_and_codes(pl.String())
    frame = frame.with_columns(gold=pl.when(pl.int_range(pl.len()) % 9 > 0).then("gold"))
    log = frame.mcc(nulls=nulls, positive="bee")
    kinds = ["", "_macro", "_weighted", "_micro"]
    calls = ["f_beta(1)", *(f"f_beta(1, {kind[1:]})" for kind in kinds[1:])]
    found = log.by("key", metrics=calls, ci=ci)
    expected = log.by("key", metrics=[f"f1{kind}" for kind in kinds], ci=ci)
    assert_frame_equal(found, expected, rel_tol=1e-13)


@in_turn(dtype=[*LABELS], weight=[None, "w"], lazy=[False, True])
def test_costs_are_a_mean_over_rows(dtype, weight, lazy):
    frame, gold, pred = log_and_codes(dtype)
    frame = frame.with_columns(w=pl.int_range(pl.len()) % 4)
    named = {pair: cost for pair, cost in COSTS.items() if max(pair) < len({*gold.tolist()})}
    names = LABELS[dtype]
    costs = metric.cost({(names[i], names[j]): cost for (i, j), cost in named.items()})
    of_positive = metric.cost(fn=10, fp=1.5, tp=-2, tn=0.25).alias("of_positive")
    asked = frame.lazy() if lazy else frame
    log = PredictionLog(asked, positive=names[1], weight=weight)
    totals = [
        metric.cost({(names[i], names[j]): cost for (i, j), cost in named.items()}, total=True),
        metric.cost(fn=10, fp=1.5, tp=-2, tn=0.25, total=True).alias("total_of_positive"),
    ]
    answer = log.by("key", metrics=[costs, of_positive, *totals]).lazy().collect()
    for row in answer.to_dicts():
        here = np.flatnonzero((frame["key"] == row["key"]).to_numpy())
        n = [int(w) if weight else 1 for w in frame["w"].gather(here)]
        pairs = [*zip(gold[here].tolist(), pred[here].tolist(), n, strict=True)]
        total = sum(n)
        mean = sum(named.get((i, j), 0) * w for i, j, w in pairs) / total
        assert row["cost"] == pytest.approx(mean, rel=1e-13, abs=1e-15)
        assert row["cost_total"] == pytest.approx(mean * total, rel=1e-13, abs=1e-12)
        cells = {(1, 1): -2, (1, 0): 10, (0, 1): 1.5, (0, 0): 0.25}
        whole = sum(cells[int(i == 1), int(j == 1)] * w for i, j, w in pairs)
        assert row["of_positive"] == pytest.approx(whole / total, rel=1e-13)
        assert row["total_of_positive"] == whole


@pytest.mark.parametrize("costs", [{"fn": 10, "fp": 1}, {"costs": {(True, False): 10}}])
def test_a_total_of_costs_grows_with_the_rows(costs):
    """It is a plain value, also of float weights and as an expression, and is not compared."""
    frame = pl.DataFrame({"gold": [True, True, False], "pred": [True, False, True], "k": [1, 1, 2]})
    asked = metric.cost(**costs, total=True)
    want = 10.0 if "costs" in costs else 11.0
    [row] = frame.mcc.score(metrics=asked, ci=0.9).to_dicts()
    assert row["cost_total"] == want
    assert row["cost_total_low"] is row["cost_total_high"] is row["cost_total_se"] is None
    weighted = frame.with_columns(w=0.1).mcc(weight="w").score(metrics=asked)
    assert weighted["cost_total"].item() == pytest.approx(want / 10, rel=1e-15)
    value = polars_mcc.ExprMcc(pl.col("pred")).score(metric=asked)
    assert frame.select(value).item() == want
    assert frame.clear().mcc.score(metrics=asked).row(0) == (0, None, 0)
    assert frame.mcc.check(max={asked: 12})["verdict"].to_list() == ["passes"]
    for verb, options in (
        ("contrast", {"metrics": asked}),
        ("worst", {"metric": asked}),
        ("gaps", {"metrics": [asked]}),
    ):
        with pytest.raises(ValueError, match="'cost_total' has no interval.*grows with the rows"):
            getattr(frame.mcc, verb)("k", **options)


@in_turn(dtype=ORDERED, weights=["linear", "quadratic"], ordered=[False, True])
def test_weighted_kappa_is_that_of_scikit_learn_and_of_statsmodels(dtype, weights, ordered):
    """The standard error is that of Fleiss, Cohen and Everitt 1969."""
    frame, gold, pred = log_and_codes(dtype, rows=400)
    k = len({*gold.tolist()})
    order = [*LABELS[dtype][:k]] if ordered else None
    kappa = metric.kappa(weights, order=order)
    [answer] = frame.mcc.score(metrics=kappa, ci=0.95).to_dicts()
    name = f"kappa_{weights}"
    assert answer[name] == pytest.approx(cohen_kappa_score(gold, pred, weights=weights), rel=1e-12)
    table = np.zeros((k, k))
    np.add.at(table, (gold, pred), 1)
    power = {"linear": 1, "quadratic": 2}[weights]
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    distances = np.abs(np.subtract.outer(np.arange(k), np.arange(k))) ** power
    known = inter_rater.cohens_kappa(table, weights=distances)
    assert answer[name] == pytest.approx(known.kappa, rel=1e-12)
    assert answer[f"{name}_se"] == pytest.approx(known.std_kappa, rel=1e-10)
    by_pair = {
        (LABELS[dtype][i], LABELS[dtype][j]): float(distances[i, j])
        for i, j in itertools.product(range(k), repeat=2)
        if i != j
    }
    [same] = frame.mcc.score(metrics=metric.kappa(by_pair), ci=0.95).to_dicts()
    assert same["kappa_weighted"] == pytest.approx(answer[name], rel=1e-12)
    assert same["kappa_weighted_se"] == pytest.approx(answer[f"{name}_se"], rel=1e-10)


@in_turn(
    dtype=[pl.Int8(), pl.UInt64(), pl.Int64(), pl.Float64()],
    power=[1, 2],
    weight=[None, "w", "f"],
    lazy=[False, True],
)
def test_numbers_are_their_own_places_in_weighted_kappa(dtype, power, weight, lazy):
    """Their distance counts, also from one end of the dtype to the other; in loops."""
    ends = [0.5] if dtype.is_float() else pl.select(a=dtype.min(), b=dtype.max()).row(0)
    places = [*ends, 3, 4, 20]
    rng = np.random.default_rng(3)
    gold = [places[i] for i in rng.integers(0, len(places), 90)]
    pred = [one if rng.random() < 0.5 else places[rng.integers(len(places))] for one in gold]
    frame = pl.DataFrame(
        {"gold": gold, "pred": pred}, schema_overrides={"gold": dtype, "pred": dtype}
    )
    i = pl.int_range(pl.len())
    frame = frame.with_columns(key=i % 3, w=i % 4, f=0.1 + i % 7 / 3)
    options = {"sample_weight" if weight == "f" else "weight": weight}
    name = f"kappa_{['linear', 'quadratic'][power - 1]}"
    log = (frame.lazy() if lazy else frame).mcc(**options)
    asked = metric.kappa(["linear", "quadratic"][power - 1])
    answer = log.by("key", metrics=asked, ci=0.95).lazy().collect()
    by_expression = {}
    if weight != "f":
        value = polars_mcc.ExprMcc(pl.col("pred")).score(metric=asked, **options)
        by_expression = dict(frame.group_by("key").agg(value).iter_rows())
    for row in answer.to_dicts():
        part = frame.filter(key=row["key"])
        n = part[weight].to_list() if weight else [1] * part.height
        sides = [*zip(part["gold"].to_list(), part["pred"].to_list(), strict=True)]
        assert row[name] == pytest.approx(kappa_in_loops(sides, n, power), rel=1e-11)
        if by_expression:
            assert by_expression[row["key"]] == row[name]
        if not weight:
            assert row[f"{name}_se"] == pytest.approx(error_in_loops(sides, power), rel=1e-5)


def kappa_in_loops(sides: list[tuple[float, float]], n: list[float], power: int) -> float:
    """1 - O/E, with each gold label beside each prediction."""
    rows = [*zip(sides, n, strict=True)]
    observed = sum(w * abs(x - y) ** power for (x, y), w in rows) / sum(n)
    both = itertools.product(rows, repeat=2)
    expected = sum(v * w * abs(x - y) ** power for ((x, _), v), ((_, y), w) in both)
    return 1 - observed / (expected / sum(n) ** 2)


def error_in_loops(sides: list[tuple[float, float]], power: int) -> float:
    """The standard error by the delta method: each row a little heavier and lighter."""
    rows, little = range(len(sides)), 1e-4
    slopes = [
        kappa_in_loops(sides, [1 + little * (i == j) for i in rows], power)
        - kappa_in_loops(sides, [1 - little * (i == j) for i in rows], power)
        for j in rows
    ]
    return math.sqrt(sum((slope / 2 / little) ** 2 for slope in slopes))


@pytest.mark.parametrize("dtype", [pl.String(), pl.Categorical(), pl.Date()])
def test_labels_without_an_order_need_one(dtype):
    frame, gold, pred = log_and_codes(dtype)
    for weights in ("linear", "quadratic"):
        with pytest.raises(ValueError, match=rf"kappa\({weights}\) needs the order of the labels"):
            frame.mcc.score(metrics=f"kappa({weights})")
        kappa = metric.kappa(weights, order=LABELS[dtype][:4])
        found = frame.mcc.score(metrics=kappa)[f"kappa_{weights}"].item()
        assert found == pytest.approx(cohen_kappa_score(gold, pred, weights=weights), rel=1e-12)
        lacking = metric.kappa(weights, order=LABELS[dtype][:3])
        for log in (frame.mcc, frame.lazy().mcc):
            with pytest.raises(pl.exceptions.InvalidOperationError, match="is not in the order of"):
                log.score(metrics=lacking).lazy().collect()


def test_kappa_of_two_classes_has_no_weights():
    """Nor has its interval, also of a few light rows of a class."""
    frame, *_ = log_and_codes(pl.Boolean())
    calls = ["kappa", "kappa(linear)", "kappa(quadratic)"]
    light = pl.DataFrame(
        {
            "gold": [False] * 55 + [True] * 3,
            "pred": [False] * 48 + [True] * 10,
            "w": [0.9] * 48 + [1.8] * 7 + [0.25] * 3,
        }
    )
    for log in (frame.mcc, light.mcc(sample_weight="w")):
        [answer] = log.score(metrics=calls, ci=0.95).to_dicts()
        for end in ("", "_se", "_low", "_high"):
            values = [answer[name + end] for name in ("kappa", "kappa_linear", "kappa_quadratic")]
            assert values == pytest.approx([values[0]] * 3, rel=1e-12)


def interval_of_cost(gold: np.ndarray, pred: np.ndarray, k: int) -> tuple[float, float]:
    """Wilson's interval of a proportion with the variance of the costs, in loops.

    In the smoothed table, each gold class has a hit more, and a miss spread over other classes; its
    rows are scaled back.
    """
    table = np.zeros((k, k))
    np.add.at(table, (gold, pred), 1)
    smooth = np.zeros((k, k))
    for i in range(k):
        rows = table[i].sum()
        for j in range(k):
            pseudo = 1.0 if i == j else 1.0 / (k - 1)
            smooth[i, j] = (table[i, j] + pseudo) * rows / (rows + 2)
    cost = np.array([[COSTS.get((i, j), 0) for j in range(k)] for i in range(k)], float)
    low, high = cost.min(), cost.max()
    n = table.sum()
    mean = (smooth * cost).sum() / n
    variance = (smooth * (cost - mean) ** 2).sum() / n
    v = (mean - low) / (high - low)
    m = n * v * (1 - v) * (high - low) ** 2 / variance
    p = ((table * cost).sum() / n - low) / (high - low)
    middle, reach = p + Z**2 / 2 / m, Z * math.sqrt(p * (1 - p) / m + Z**2 / 4 / m**2)
    return tuple(low + (high - low) * (middle + s * reach) / (1 + Z**2 / m) for s in (-1, 1))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rows", [30, 400])
def test_the_interval_of_a_cost_is_wilsons_at_a_smoothed_table(seed, rows):
    gold, pred = codes_of(seed, rows=rows)
    gold[:4], pred[:4] = range(4), range(4)
    frame = pl.DataFrame({"gold": gold, "pred": pred})
    [answer] = frame.mcc.score(metrics=metric.cost(COSTS), ci=0.95).to_dicts()
    found = answer["cost_low"], answer["cost_high"]
    assert found == pytest.approx(interval_of_cost(gold, pred, 4), rel=1e-9)


def table_of_costs(cells: dict[str, float], labels: list) -> dict:
    """The costs of each pair of labels, of which the first is the positive one."""
    first, sides = labels[0], {"tp": (True, True), "fn": (True, False), "fp": (False, True)}
    name_of = {pair: name for name, pair in sides.items()}
    pairs = itertools.product(labels, repeat=2)
    return {(i, j): cells[name_of.get((i == first, j == first), "tn")] for i, j in pairs}


@in_turn(
    12,
    labels=[[True, False], ["yes", "no"], [2, 0, 1]],
    options=[{}, {"sample_weight": "w"}, {"cluster": "user"}, {"weight": "n"}],
    method=["score", "wald"],
    seed=[1, 2, 3],
)
def test_limits_are_between_the_costs_of_rows_and_a_table_has_those_of_fn_and_fp(
    labels, options, method, seed
):
    rng = np.random.default_rng(seed)
    reached = Counter()
    for rows in (3, 50, 400):
        gold = rng.choice(len(labels), rows, p=rng.dirichlet(np.ones(len(labels))))
        is_right = rng.random(rows) < rng.choice([0.6, 0.97, 1.0])
        pred = np.where(is_right, gold, rng.integers(0, len(labels), rows))
        sides = {"gold": [labels[i] for i in gold], "pred": [labels[i] for i in pred]}
        frame = pl.DataFrame(sides).with_columns(
            w=pl.Series(rng.random(rows) + 0.1), n=pl.Series(rng.integers(1, 4, rows))
        )
        frame = frame.with_columns(user=pl.int_range(pl.len()) // 2)
        log = frame.mcc(positive=labels[0], **options)
        for costs in ((5, 10, 5, 5), (-2, 10, 1, 0), (0, 10, 1, 0), (-3, -1, -2, -1.5)):
            cells = dict(zip(("tp", "fn", "fp", "tn"), map(float, costs), strict=True))
            table = metric.cost(table_of_costs(cells, labels))
            asked = {"ci": 0.95, "method": method}
            one, other = (
                log.score(metrics=costs, **asked).select("cost", "cost_low", "cost_high").row(0)
                for costs in (metric.cost(**cells), table)
            )
            assert other == pytest.approx(one, rel=1e-9, abs=1e-12)
            if method == "score" and one[1] is not None:
                assert min(costs) <= one[1] <= one[2] <= max(costs)
                assert one[1] - 1e-12 <= one[0] <= one[2] + 1e-12
                reached["in range"] += 1
            reached["alike"] += 1
    assert reached["alike"] == 12
    assert method != "score" or reached["in range"] >= 8


def test_a_pair_that_is_not_in_the_table_costs_nothing_which_limits_allow():
    frame = pl.DataFrame({"gold": [1, 0] * 25, "pred": [1, 0] * 25})
    some = metric.cost({(1, 1): 5, (0, 0): 5, (1, 0): 10})
    low, high = frame.mcc.score(metrics=some, ci=0.95).select("cost_low", "cost_high").row(0)
    assert 0 < low < 5 < high < 10
    same = frame.with_columns(k=pl.int_range(50) // 25).mcc(positive=1)
    for asked in ("cost(tp=5, fn=5, fp=5, tn=5)", metric.cost(dict.fromkeys(EVERY, 5))):
        assert same.score(metrics=asked, ci=0.95).row(0)[1:4] == (5, 5, 5)
        assert same.worst("k", metric=asked, min_n=5).is_empty()
        assert same.gaps("k", metrics=asked, min_n=5)["n_slices"].item() == 0
        assert same.contrast("k", metrics=asked)["p_value"].to_list() == [1, 1]


EVERY = [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_dear_error_that_was_not_seen_widens_the_interval():
    frame = pl.DataFrame({"gold": [0, 0, 1, 1, 2, 2] * 20, "pred": [0, 0, 1, 1, 2, 2] * 20})
    cheap, dear = (
        frame.mcc.score(metrics=metric.cost({(0, 1): 1, (2, 0): cost}), ci=0.95)["cost_high"].item()
        for cost in (1, 100)
    )
    assert 0 < cheap < 0.1
    assert dear > 1


EARLY = pl.col("i") < 400
VERBS = {
    "compare": lambda log, asked: log(pred=["pred", "other"]).compare("key", metrics=asked),
    "contrast": lambda log, asked: log.contrast("key", metrics=asked),
    "expected": lambda log, asked: log.contrast("key", metrics=asked, to="expected"),
    "drift": lambda log, asked: log.drift("key", metrics=asked, before=EARLY, after=~EARLY),
    "check": lambda log, asked: log.check(
        "key", metric=asked, max=10 if "cost" in str(asked) else 1, ci=0.95
    ),
    "report": lambda log, asked: log.report("key", metrics=asked),
    "worst": lambda log, asked: log.worst("key", metric=asked, verdicts=True),
    "curve": lambda log, asked: log(score="score", pred=None).curve(metrics=asked),
    "best_threshold": lambda log, asked: log(score="score").best_threshold(metric=asked),
}


@in_turn(
    verb=[*VERBS],
    asked=["f_beta(2)", "f_beta(2, macro)", "cost(fn=10, fp=1)", "cost by pair", "kappa(linear)"],
)
def test_verbs_take_them_or_say_why_not(verb, asked):
    gold, pred = codes_of(5, 2, 900)
    i = np.arange(900)
    frame = pl.DataFrame({"gold": gold == 1, "pred": pred == 1, "key": i % 3, "i": i})
    frame = frame.with_columns(
        other=pl.when(pl.col("i") % 5 == 0).then("gold").otherwise("pred"),
        score=pl.col("pred") * 0.5 + pl.col("i") % 7 / 14,
    )
    chosen = (
        metric.cost({(True, False): 10, (False, True): 1}) if asked == "cost by pair" else asked
    )
    of_pairs = asked in {"cost by pair", "kappa(linear)"}
    of_classes = asked == "f_beta(2, macro)"
    if (of_pairs or of_classes) and verb in {"curve", "best_threshold"}:
        with pytest.raises(ValueError, match="is not of the counts of two classes"):
            VERBS[verb](frame.mcc, chosen)
        return
    answer = VERBS[verb](frame.mcc, chosen)
    if verb in {"contrast", "drift", "compare"}:
        assert answer["p_value"].null_count() == 0


def test_the_best_threshold_has_the_least_cost():
    frame = pl.DataFrame({"gold": [1, 1, 0, 1, 0, 0, 0, 1], "s": [8, 7, 6, 5, 4, 3, 2, 1]})
    best = frame.mcc(score="s", positive=1).best_threshold(metric="cost(fn=10, fp=1)")
    costs = {
        cut: frame.select(
            (pl.col("s") < cut) * pl.col("gold") * 10 + (pl.col("s") >= cut) * (1 - pl.col("gold"))
        )
        .to_series()
        .mean()
        for cut in range(1, 9)
    }
    assert best["cost"].item() == min(costs.values())
    assert costs[best["threshold"].item()] == min(costs.values())


def test_a_slice_with_dear_errors_is_found():
    gold, pred = codes_of(7, 2, 6000)
    key = np.arange(6000) % 6
    pred = np.where((key == 2) & (gold == 1), 0, pred)
    frame = pl.DataFrame({"gold": gold == 1, "pred": pred == 1, "key": key})
    found = frame.mcc.worst("key", metric="cost(fn=10, fp=1)", bins=None)
    assert found["slice"].to_list() == ["key = 2"]
    with pytest.raises(CheckError, match="cost above 2"):
        frame.mcc.check("key", max={"cost(fn=10, fp=1)": 2})


def test_costs_come_from_a_frame_or_a_file(tmp_path):
    gold, pred = codes_of(9)
    costs = [(i, j, cost) for (i, j), cost in COSTS.items()]
    table = pl.DataFrame(costs, schema=["gold", "pred", "cost"], orient="row")
    path = tmp_path / "costs.csv"
    table.write_csv(path)
    weights = tmp_path / "weights.csv"
    table.rename({"cost": "weight"}).write_csv(weights)
    for dtype in (pl.Int8(), pl.String()):
        frame = pl.DataFrame({"gold": gold, "pred": pred}).cast(dtype)
        names = {code: code if dtype.is_integer() else str(code) for code in range(4)}
        by_pair = {(names[i], names[j]): cost for (i, j), cost in COSTS.items()}
        given = [by_pair, table.with_columns(pl.col("gold", "pred").cast(dtype)), str(path)]
        found = [frame.mcc.score(metrics=metric.cost(costs))["cost"].item() for costs in given]
        found.append(frame.mcc.score(metrics=f"cost('{path}')")["cost"].item())
        assert len({*found}) == 1
        kappas = [
            frame.mcc.score(metrics=metric.kappa(asked))["kappa_weighted"].item()
            for asked in (by_pair, str(weights))
        ]
        assert kappas[0] == kappas[1]


def test_two_of_one_name_need_another():
    log = pl.DataFrame({"gold": [True, False], "pred": [True, True]}).mcc
    with pytest.raises(ValueError, match=r"two columns named 'cost'.*\.alias\('my_cost'\)"):
        log.score(metrics=["cost(fn=1)", "cost(fp=1)"])
    other = metric.cost(fp=1).alias("false_alarms")
    assert log.score(metrics=["cost(fn=1)", other]).columns == [
        "n",
        "cost",
        "false_alarms",
        "n_null",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f_beta(0)", "beta must be above 0"),
        ("f_beta(x)", "beta must be a number"),
        ("f_beta()", r"write it as in f_beta\(2\)"),
        ("f_beta(2, every)", "average must be one of 'positive', 'macro', 'weighted', 'micro'"),
        ("f_beta(2", r"'f_beta\(2' is no metric; write it as"),
        ("f_beta(2) + 1", "it is more than a call"),
        ("f_beta(2)(3)", "it is more than a call"),
        ("cost(fn=10).alias('x')", "it is more than a call"),
        ("f_beta(1e155)", "beta must be above 0 and below"),
        ("kappa(linear, order=[])", "needs two labels or more"),
        ("cost()", "cost needs what errors cost"),
        ("cost(fn=0)", "cost needs what errors cost"),
        ("cost(fn=ten)", "fn must be a number"),
        ("cost(fn=1e999)", "fn must be a finite number, got inf"),
        ("cost(10)", "is no metric"),
        ("cost(fm=10)", "unexpected keyword argument 'fm'"),
        ("kappa(cubic)", "weights must be one of 'linear', 'quadratic', weights by pair of labels"),
        ("g_beta(2)", r"no metric 'g_beta\(2\)'.*calls, as in f_beta\(2\)"),
    ],
)
def test_a_wrong_call_says_how_it_is_written(text, message):
    log = pl.DataFrame({"gold": [True, False], "pred": [True, True]}).mcc
    with (
        pytest.raises(ValueError, match=message)
        if "must be a number" not in message
        else (pytest.raises((ValueError, TypeError), match=message))
    ):
        log.score(metrics=text)


def test_a_label_of_another_dtype_is_an_error():
    log = pl.DataFrame({"gold": [1, 2], "pred": [1, 1]}).mcc
    with pytest.raises(pl.exceptions.SchemaError, match="label 'fraud' of a metric does not have"):
        log.score(metrics=metric.cost({("fraud", 1): 3}))
    with pytest.raises(ValueError, match="cost is by gold label and prediction"):
        metric.cost({"fraud": 3})
    with pytest.raises(ValueError, match="needs the columns gold, pred and cost"):
        metric.cost(pl.DataFrame({"gold": [1], "cost": [1]}))


def test_costs_in_utf_16_are_told(tmp_path):
    (tmp_path / "cost.csv").write_text("gold,pred,cost\na,b,1\n", "utf-16")
    with pytest.raises(ValueError, match="cost.csv': .*write it as UTF-8$"):
        metric.cost(str(tmp_path / "cost.csv"))


def test_the_functions_are_a_module_of_their_own():
    assert "metric" not in polars_mcc.__all__
    assert "metric" in dir(polars_mcc)
    assert metric.__all__ == ["cost", "ece", "f_beta", "kappa", "top_k"]


@pytest.mark.parametrize("offset", [2000, 10**8, 10**15])
def test_labels_that_are_large_integers_lose_no_digit(offset):
    gold, pred = codes_of(11)
    small, large = (
        pl.DataFrame({"gold": gold + shift, "pred": pred + shift}) for shift in (0, offset)
    )
    asked = {"metrics": "kappa(quadratic)", "ci": 0.95}
    assert_frame_equal(large.mcc.score(**asked), small.mcc.score(**asked), rel_tol=1e-13)
    value = polars_mcc.ExprMcc(pl.col("pred")).score(metric="kappa(quadratic)")
    want = small.mcc.score(metrics="kappa(quadratic)")["kappa_quadratic"].item()
    assert large.select(value).item() == pytest.approx(want, rel=1e-13)


def test_metrics_are_keys_of_bounds():
    gold, pred = codes_of(12, 2)
    log = pl.DataFrame({"gold": gold == 1, "pred": pred == 1, "score": pred}).mcc
    costs = metric.cost({(True, False): 10})
    assert log.check(max={costs: 9})["verdict"].to_list() == ["passes"]
    assert log(score="score").best_threshold(max={metric.cost(fp=1): 0.9}).height == 1
    for asked in (
        {"metric": costs_named_ppv(), "min": {"ppv": 0.1}},
        {"max": {"cost(fn=10, fp=1)": 0.5, "cost(fn=1, fp=10)": 0.1}},
    ):
        with pytest.raises(ValueError, match="name of another column of the answer, '(ppv|cost)'"):
            log(score="score").best_threshold(**asked)


def costs_named_ppv():
    return metric.cost(fn=3, fp=1).alias("ppv")


def test_no_shared_threshold_has_no_score():
    frame = pl.DataFrame({"gold": [1, 0, 1, 0], "score": [1, 2, 3, 4]})
    log = frame.mcc(score="score", positive=1)
    answer = log.best_threshold(metric="cost(fn=10, fp=1)", max={"cost(fn=10, fp=1)": 0.01})
    [row] = answer.to_dicts()
    assert {row[name] for name in ("threshold", "cost", "shared_threshold", "cost_shared")} == {
        None
    }


def test_a_pair_is_named_once():
    costs = pl.DataFrame({"gold": [1, 1], "pred": [2, 2], "cost": [3, 4]})
    with pytest.raises(ValueError, match="cost has a pair of gold and pred twice"):
        metric.cost(costs)


def test_a_cost_is_any_finite_real_number():
    log = pl.DataFrame({"gold": [*"aab"], "pred": [*"bbb"]})
    for number in (1.25, Fraction(5, 4), Decimal("1.25"), np.float32(1.25)):
        asked = polars_mcc.metric.cost({("a", "b"): number})
        assert log.mcc.score(metrics=asked)["cost"].item() == pytest.approx(2 * 1.25 / 3, rel=1e-15)
    for number in (Decimal("NaN"), Decimal("Infinity"), True, "1"):
        with pytest.raises((TypeError, ValueError), match="number"):
            polars_mcc.metric.cost({("a", "b"): number})

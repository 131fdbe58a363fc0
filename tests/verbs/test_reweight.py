"""Labels for some rows only: labelled rows stand for the rows of their slice with their prediction.

The oracle computes shares, influences and variances in loops over rows.
"""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import oracles_of_labels as oracle
import polars as pl
import pytest
from oracles import se_of_wald
from polars.testing import assert_frame_equal
from support import in_turn

import polars_mcc
from polars_mcc import Bootstrap, CheckError, PredictionLog, cube, rollup
from polars_mcc._worst import slice_counts

CLASS_NAMES = {
    "text": ["ant", "bee", "cat", "dog", "elk"],
    "integers": [7, -3, 12, 0, 5],
    "Booleans": [False, True],
    "dates": [pl.date(2026, 1, day) for day in range(1, 6)],
}
METRICS = ["mcc", "accuracy", "kappa", "f1_macro", "tpr", "ppv"]
TWO_MODELS = ["pred", "other"]
Z = NormalDist().inv_cdf(0.975)


def labels_of(kind: str, classes: int) -> list:
    names = CLASS_NAMES[kind][:classes]
    return pl.select(pl.concat_list(names)).item().to_list() if kind == "dates" else names


def log_of(seed: int, labels: list, rows: int = 400) -> pl.DataFrame:
    """Rows of two models, with a label at a rate that depends on both predictions."""
    rng, k = np.random.default_rng(seed), len(labels)
    truth = rng.integers(0, k, rows)
    sides = {}
    for name in TWO_MODELS:
        side = np.where(rng.random(rows) < 0.7, truth, rng.integers(0, k, rows))
        sides[name] = [labels[i] if rng.random() < 0.97 else None for i in side]
    rates = dict(zip(labels, rng.uniform(0.3, 1, k), strict=True))
    comes = [rng.random() < rates.get(pred, 0.5) for pred in sides["pred"]]
    gold = [labels[i] if is_here else None for i, is_here in zip(truth, comes, strict=True)]
    return pl.DataFrame(
        {
            "gold": gold,
            "complete": [labels[i] for i in truth],
            **sides,
            "a": rng.choice(["x", "y", None], rows).tolist(),
            "b": rng.integers(0, 2, rows),
            "n": rng.integers(0, 4, rows),
            "is_old": rng.random(rows) < 0.4,
        }
    )


def rows_of(frame: pl.DataFrame, weight: str | None, *, models: bool = False) -> list[oracle.Row]:
    n = [1] * frame.height if weight is None else frame[weight].to_list()
    preds = [*zip(*(frame[name] for name in TWO_MODELS), strict=True)] if models else frame["pred"]
    return [*zip(frame["gold"], preds, n, strict=True)]


def in_slice(frame: pl.DataFrame, answer: dict, keys: list[str]) -> pl.DataFrame:
    """The rows of a slice. In sets of keys, a null in a key that is not named means all values."""
    named = answer["keys"].split(", ") if "keys" in answer else keys
    is_in = [pl.col(key).eq_missing(pl.lit(answer[key])) for key in named if key]
    return frame.filter(*is_in)


def assert_is(found: float | None, expected: float | None, rel: float = 1e-9) -> None:
    if expected is None or math.isnan(expected):  # 0/0, which is zero_division
        assert found in {None, 0.0}
    else:
        assert found == pytest.approx(expected, rel=rel, abs=1e-12)


def assert_sizes(answer: dict, rows: list[oracle.Row]) -> None:
    labelled = oracle.labelled(rows)
    assert answer["n"] == labelled
    assert answer["n_null"] == sum(n for *_, n in rows) - labelled


KINDS = [
    *(("text", classes) for classes in (2, 3, 4, 5)),
    ("integers", 5),
    ("Booleans", 2),
    ("dates", 3),
]


@in_turn(
    **{"kind, classes": KINDS},
    weight=[None, "n"],
    keys=[[], ["a"], ["a", "b"]],
    seed=[1, 2, 3],
)
def test_scores_and_errors_are_those_of_the_formulas(kind, classes, weight, keys, seed, run):
    labels = labels_of(kind, classes)
    frame, positive = log_of(seed, labels), labels[1]
    options = {"nulls": "reweight", "positive": positive, "weight": weight}
    plain = run(frame, lambda f: PredictionLog(f, **options).by(*keys, metrics=METRICS))
    sure = PredictionLog(frame, **options).by(*keys, metrics=METRICS, ci=0.9)
    assert_frame_equal(sure.select(plain.columns), plain, rel_tol=1e-12)
    n_errors = 0
    for answer in sure.to_dicts():
        rows = rows_of(in_slice(frame, answer, keys), weight)
        assert_sizes(answer, rows)
        for name in METRICS:
            assert_is(answer[name], oracle.score(rows, name, positive))
            if answer[f"{name}_se"] is not None:
                n_errors += 1
                assert_is(answer[f"{name}_se"], oracle.standard_error(rows, name, positive), 1e-6)
                assert answer[f"{name}_low"] < answer[name] < answer[f"{name}_high"]
    assert n_errors > 0


@in_turn(**{"kind, classes": KINDS}, weight=[None, "n"], seed=[21, 22], errs=[True, False])
def test_intervals_are_wilsons_of_two_smoothed_tables(kind, classes, weight, seed, errs):
    """Also in slices without errors, and where all rows have a label."""
    labels = labels_of(kind, classes)
    frame, positive = log_of(seed, labels), labels[1]
    pred = "pred" if errs else pl.coalesce("gold", "pred")
    gold = pl.when(pl.col("b") == 0).then("gold").otherwise("complete")
    frame = frame.with_columns(pred).with_columns(gold)
    log = PredictionLog(frame, nulls="reweight", positive=positive, weight=weight)
    for answer in log.by("a", "b", metrics=METRICS, ci=0.95).to_dicts():
        rows = rows_of(in_slice(frame, answer, ["a", "b"]), weight)
        if {gold for gold, _ in oracle.shares(rows)} == {pred for _, pred in oracle.shares(rows)}:
            for name in METRICS:
                expected = oracle.score_interval(rows, name, Z, positive)
                found = answer[f"{name}_low"], answer[f"{name}_high"]
                assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("keys", [rollup("a", "b"), cube("a", "b")])
def test_a_total_is_reweighted_as_one_slice(keys, run):
    """It is not the sum of its parts."""
    frame = log_of(4, labels_of("text", 3))
    answers = run(frame, lambda f: f.mcc(nulls="reweight").by(keys, metrics=["mcc", "accuracy"]))
    for answer in answers.to_dicts():
        rows = rows_of(in_slice(frame, answer, ["a", "b"]), None)
        assert_sizes(answer, rows)
        for name in ("mcc", "accuracy"):
            assert_is(answer[name], oracle.score(rows, name))


@in_turn(**{"kind, classes": KINDS}, weight=[None, "n"])
def test_with_all_labels_it_is_drop(kind, classes, weight):
    """The intervals too, and those of classes and of all metrics that have one."""
    labels = labels_of(kind, classes)
    one = pl.when(pl.col("a") == "y").then(pl.lit(labels[0])).otherwise("other")  # collapsed
    frame = log_of(5, labels).with_columns(gold="complete", other=one)
    known = polars_mcc.metrics().filter(pl.col("from") != "scores")
    sure = known.filter(no_interval="")["metric"].to_list()
    log = frame.mcc(weight=weight, positive=labels[1])
    counted = pl.col(pl.Int64, pl.Float64).cast(pl.Float64)
    questions = (
        lambda log: log.by("a", metrics=known["metric"].to_list()),
        lambda log: log.by("a", metrics=sure, ci=0.95),
        lambda log: log.classes("b"),
        lambda log: log.classes("b", ci=0.95),
        lambda log: log(pred=TWO_MODELS).compare("b"),
        lambda log: log(pred=TWO_MODELS).compare("a", metrics="f1_macro"),
        lambda log: log(pred="other").by("a", ci=0.95),
        lambda log: log.contrast("a"),
        lambda log: log.contrast("a", to="best", metrics="f1_macro"),
        lambda log: log.contrast("a", to={"a": "x"}, metrics="tpr"),
        lambda log: log.gaps("a", metrics=["mcc", "f1_macro", "tpr"]),
        lambda log: log.drift("b", before="is_old", after=~pl.col("is_old")),
        lambda log: log.check("a", min=-1, ci=0.95),
        lambda log: log.worst("a", "b", "is_old", verdicts=True, min_n=5),
        lambda log: log(pred="other").worst("a", "b", metric="f1_macro", verdicts=True, min_n=5),
    )
    start = KINDS.index((kind, classes)) + (weight == "n")  # Each question has each kind of weight.
    for ask in questions[start % 3 :: 3]:
        found, expected = (ask(log(nulls=nulls)) for nulls in ("reweight", "drop"))
        assert_frame_equal(found.select(counted), expected.select(counted), rel_tol=1e-7)


@in_turn(**{"kind, classes": KINDS[:5]}, keys=[[], ["b"]], seed=[6, 7])
def test_scores_of_classes(kind, classes, keys, seed):
    labels = labels_of(kind, classes)
    frame = log_of(seed, labels)
    plain = frame.mcc(nulls="reweight").classes(*keys)
    sure = frame.mcc(nulls="reweight").classes(*keys, ci=0.9)
    assert_frame_equal(sure.select(plain.columns), plain, rel_tol=1e-12)
    assert sure.height == classes * (2 if keys else 1)
    for answer in sure.to_dicts():
        rows, label = rows_of(in_slice(frame, answer, keys), None), answer["label"]
        assert_sizes(answer, rows)
        size = sum(n for n, _ in oracle.strata(rows).values())
        assert answer["predicted"] == pytest.approx(oracle.strata(rows)[label][0])
        of_gold = sum(share for (gold, _), share in oracle.shares(rows).items() if gold == label)
        assert answer["support"] == pytest.approx(size * of_gold)
        for name, of in (("recall", "tpr"), ("precision", "ppv")):
            assert_is(answer[name], oracle.score(rows, of, label))
            assert_is(answer[f"{name}_se"], oracle.standard_error(rows, of, label), 1e-6)
        alone = PredictionLog(frame, nulls="reweight", positive=label)
        names = ["tpr", "ppv", "phi"]
        one = in_slice(alone.by(*keys, metrics=names, ci=0.9), answer, keys).to_dicts()[0]
        for name, of in (("recall", "tpr"), ("precision", "ppv"), ("mcc", "phi")):
            for end in ("", "_low", "_high", "_se"):
                assert answer[f"{name}{end}"] == pytest.approx(one[f"{of}{end}"], rel=1e-6)


@in_turn(
    **{"kind, classes": KINDS},
    weight=[None, "n"],
    keys=[[], ["b"]],
    metric=["mcc", "accuracy", "f1_macro", "tpr"],
)
def test_two_models_are_compared_in_strata_of_both_predictions(kind, classes, weight, keys, metric):
    labels = labels_of(kind, classes)
    frame, positive = log_of(8, labels, 1500), labels[1]
    log = frame.mcc(pred=TWO_MODELS, weight=weight, nulls="reweight", positive=positive)
    for answer in log.compare(*keys, metrics=metric).to_dicts():
        rows = rows_of(in_slice(frame, answer, keys), weight, models=True)
        assert_sizes(answer, rows)
        a, b = (oracle.score(rows, metric, positive, place) for place in (0, 1))
        assert_is(answer["reference"], a)
        assert_is(answer["score"], b)
        assert answer["diff"] == pytest.approx(b - a)
        assert answer["diff_low"] < b - a < answer["diff_high"]


@pytest.mark.parametrize("metric", ["mcc", "accuracy", "f1_macro"])
@pytest.mark.parametrize("weight", [None, "n"])
def test_the_order_of_the_rows_changes_no_digit_of_two_models(metric, weight):
    frame = log_of(5, labels_of("text", 5), rows=3000)
    options = {"pred": TWO_MODELS, "nulls": "reweight", "weight": weight}
    answers = [
        shuffled.mcc(**options).compare("a", "b", metrics=metric).lazy().collect()
        for seed in range(3)
        for rows in [frame.sample(fraction=1, shuffle=True, seed=seed)]
        for shuffled in (rows, rows.lazy())
    ]
    for answer in answers:
        assert_frame_equal(answer, answers[0], check_exact=True)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("metric", ["mcc", "accuracy", "tpr"])
@pytest.mark.parametrize("rows", [300, 3000])
def test_the_interval_of_two_models_is_that_of_all_labels_and_more(classes, metric, rows):
    labels = labels_of("text", classes)
    frame = log_of(15, labels, rows)
    options = {"pred": TWO_MODELS, "positive": labels[1]}
    found = frame.mcc(nulls="reweight", **options).compare(metrics=metric).row(0, named=True)
    counted = rows_of(frame, None, models=True)
    weighed = [
        (gold, *preds, n * size / sum(of_gold.values()))
        for preds, (size, of_gold) in oracle.strata(counted).items()
        for gold, n in of_gold.items()
    ]
    complete = pl.DataFrame(weighed, schema=["gold", *TWO_MODELS, "n"], orient="row")
    of_all = complete.mcc(weight="n", **options).compare(metrics=metric).row(0, named=True)
    diff, reach = found["diff"], Z**2 * oracle.added_variance(counted, metric, labels[1])
    assert reach > 0
    for end in ("diff_low", "diff_high"):
        expected = math.sqrt((of_all[end] - of_all["diff"]) ** 2 + reach)
        assert abs(found[end] - diff) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("weight", [None, "n"])
@pytest.mark.parametrize("to", ["rest", "best", "each", {"b": 1}])
@pytest.mark.parametrize("metric", ["mcc", "accuracy"])
def test_a_slice_and_its_reference_are_reweighted_apart(weight, to, metric, run):
    frame = log_of(9, labels_of("text", 3)).with_columns(b=pl.col("n") % 3)
    answers = run(
        frame,
        lambda f: f.mcc(nulls="reweight", weight=weight).contrast(
            "b", to=to, metrics=metric, method="wald"
        ),
    )
    assert answers.height > 1
    for answer in answers.to_dicts():
        is_own = pl.col("b") == answer["b"]
        is_other = ~is_own if to == "rest" else pl.col("b") == answer["b_to"]
        own, other = (rows_of(frame.filter(side), weight) for side in (is_own, is_other))
        assert_sizes(answer, own)
        assert answer["n_reference"] == oracle.labelled(other)
        assert_is(answer["score"], oracle.score(own, metric))
        assert_is(answer["reference"], oracle.score(other, metric))
        both = math.hypot(*(oracle.standard_error(rows, metric) for rows in (own, other)))
        assert se_of_wald(answer) == pytest.approx(both, rel=1e-6)


def test_periods_are_reweighted_apart(run):
    frame = log_of(10, labels_of("text", 3), 1000)
    is_old = pl.col("is_old")
    asked = {"before": is_old, "after": ~is_old, "method": "wald"}
    answers = run(frame, lambda f: f.mcc(nulls="reweight").drift("b", **asked))
    for answer in answers.to_dicts():
        here = frame.filter(b=answer["b"])
        before, after = (rows_of(here.filter(side), None) for side in (is_old, ~is_old))
        for name, score, rows in (("before", "reference", before), ("after", "score", after)):
            assert answer[f"n_{name}"] == oracle.labelled(rows)
            assert_is(answer[score], oracle.score(rows, "mcc"))
        both = math.hypot(*(oracle.standard_error(rows, "mcc") for rows in (before, after)))
        assert se_of_wald(answer) == pytest.approx(both, rel=1e-6)


def effective_rows(rows: list[oracle.Row]) -> float:
    """Kish's number of rows of equal weight; 0 if a prediction has no labelled row."""
    strata = [(size, sum(of_gold.values())) for size, of_gold in oracle.strata(rows).values()]
    if not strata or not all(labelled for _, labelled in strata):
        return 0.0
    return sum(size for size, _ in strata) ** 2 / sum(size**2 / n for size, n in strata)


@in_turn(
    **{"kind, classes": KINDS},
    weight=[None, "n"],
    metric=["mcc", "accuracy", "f1_macro", "tpr"],
    way=["tables", "groups"],
)
def test_a_search_reweights_slices_and_their_rests_apart(
    kind, classes, weight, metric, way, monkeypatch
):
    if way == "groups":
        monkeypatch.setattr(slice_counts, "_CELLS_OF_TABLE", 20)
    labels = labels_of(kind, classes)
    frame, positive = log_of(17, labels, 600), labels[1]
    frame = frame.with_columns(d=pl.int_range(pl.len()) % 7)
    log = PredictionLog(frame, nulls="reweight", positive=positive, weight=weight)
    keys = ["a", "b", "d"]
    found = log.worst(*keys, metric=metric, depth=2, verdicts=True, min_n=12, bins=None)
    large = 0
    for pair in [*itertools.combinations(keys, 1), *itertools.combinations(keys, 2)]:
        for _, rows in frame.group_by(pair):
            large += effective_rows(rows_of(rows, weight)) >= 12
    assert found.height == large
    for answer in found.to_dicts():
        own = in_slice(frame, answer, keys)
        others = frame.join(own.unique(keys), on=keys, how="anti", nulls_equal=True)
        rows = rows_of(own, weight)
        assert_sizes(answer, rows)
        assert effective_rows(rows) >= 12
        assert_is(answer["score"], oracle.score(rows, metric, positive))
        assert_is(answer["reference"], oracle.score(rows_of(others, weight), metric, positive))


def log_with_a_bad_slice() -> pl.DataFrame:
    """In y = 1 and z = 2, more rows are wrong. In x = 0, few rows predicted "ok" have a label."""
    rng = np.random.default_rng(19)
    x, y, z = (rng.integers(0, 6, 30_000) for _ in range(3))
    gold = rng.random(30_000) < 0.06
    is_bad = (y == 1) & (z == 2)
    pred = gold ^ (rng.random(30_000) < np.where(is_bad, 0.3, 0.04))
    comes = rng.random(30_000) < np.where((x == 0) & ~pred, 0.3, 1.0)
    frame = pl.DataFrame({"x": x, "y": y, "z": z, "complete": gold, "pred": pred})
    return frame.with_columns(gold=pl.when(pl.Series(comes)).then("complete"))


def test_a_search_names_no_slice_for_its_missing_labels():
    frame, asked = log_with_a_bad_slice(), {"metric": "accuracy", "bins": None}
    keys = ["x", "y", "z"]
    drop, found, complete = (
        log.worst(*keys, **asked)
        for log in (frame.mcc, frame.mcc(nulls="reweight"), frame.mcc(gold="complete"))
    )
    assert drop["slice"].to_list() == ["y = 1 and z = 2", "x = 0"]
    assert found["slice"].to_list() == complete["slice"].to_list() == ["y = 1 and z = 2"]
    answer, of_all = found.row(0, named=True), complete.row(0, named=True)
    assert answer["diff_low"] < of_all["diff"] < answer["diff_high"]
    assert answer["diff_high"] - answer["diff_low"] > of_all["diff_high"] - of_all["diff_low"]
    assert answer["confusion"].split(", ")[0].endswith("of gold False predicted True")
    of_slice = frame.filter(y=1, z=2).mcc(nulls="reweight")
    shares = of_slice.classes().filter(pl.col("label") == answer["confused_gold"])
    assert answer["confused"] == pytest.approx(1 - shares["recall"].item())
    contrasted = frame.mcc(nulls="reweight").contrast("y", "z", metrics="accuracy")
    beside = contrasted.filter(y=1, z=2).row(0, named=True)
    for name in ("diff", "diff_low", "diff_high", "n", "n_null"):
        assert answer[name] == pytest.approx(beside[name], rel=1e-3)


def test_a_search_leaves_out_a_prediction_without_labels():
    log = log_with_gap().mcc(nulls="reweight")
    found = log.worst("k", verdicts=True, min_n=2)
    assert found.select("k", "score", "reference").rows() == [
        ("x", pytest.approx(0.577, abs=1e-3), None)
    ]
    assert found.select("verdict", "n_tested", "n_untested").rows() == [("no interval", 0, 2)]


def test_models_are_reweighted_each_by_its_own_predictions():
    frame = log_of(11, labels_of("text", 3))
    both = frame.mcc(pred=TWO_MODELS, nulls="reweight").by("b", ci=0.95)
    for name in TWO_MODELS:
        alone = frame.mcc(pred=name, nulls="reweight").by("b", ci=0.95)
        assert_frame_equal(both.filter(model=name).drop("model"), alone)


@pytest.mark.parametrize("keys", [(), ("a", "b")])
def test_counts_keep_null_labels_for_it(keys):
    frame = log_of(12, labels_of("text", 3))
    counts = frame.mcc(nulls="reweight").counts(*keys)
    assert_frame_equal(counts, frame.mcc.counts(*keys))
    found = counts.mcc(nulls="reweight", weight="n").by(*keys, ci=0.95)
    assert_frame_equal(found, frame.mcc(nulls="reweight").by(*keys, ci=0.95))


def log_with_gap() -> pl.DataFrame:
    """In slice y, no row predicted "b" has a label."""
    known = {"gold": ["a", "b", "a", "b"] * 30, "pred": ["a", "b", "b", "b"] * 30}
    x = pl.DataFrame(known).with_columns(k=pl.lit("x"))
    y = x.with_columns(k=pl.lit("y"), gold=pl.when(pl.col("pred") != "b").then("gold"))
    return pl.concat([x, y])


def test_a_prediction_without_labels_leaves_all_metrics_null():
    log = log_with_gap().mcc(nulls="reweight", positive="b")
    metrics = ["mcc", "accuracy", "tpr", "tp", "ppv", "chi2"]
    for ci in (None, 0.95):
        of_y = log.by("k", metrics=[*metrics[:5]], ci=ci).row(1, named=True)
        assert (of_y.pop("k"), of_y.pop("n"), of_y.pop("n_null")) == ("y", 30, 90)
        assert {*of_y.values()} == {None}
    assert log.by("k", metrics=metrics)["chi2"].is_null().to_list() == [False, True]
    assert {*log.classes("k")["k"]} == {*log.classes("k", ci=0.9)["k"]} == {"x"}
    [diff] = log.contrast("k", to="each").select("diff", "p_value").rows()
    assert diff == (None, None)


@pytest.mark.parametrize("ci", [None, 0.95])
def test_a_gate_does_not_judge_a_prediction_without_labels(ci):
    frame = log_with_gap()
    verdicts = frame.mcc(nulls="reweight").check("k", min=0.2, ci=ci)["verdict"].to_list()
    assert verdicts == ["passes", "not judged"]
    with pytest.raises(CheckError, match="there is no slice to judge"):
        frame.filter(k="y").mcc(nulls="reweight").check("k", min=0.2, ci=ci)


def test_a_gate_compares_with_counts_that_have_null_labels():
    frame, new = (log_of(seed, labels_of("text", 3)) for seed in (13, 14))
    log = new.mcc(nulls="reweight")
    judged = log.check("b", no_worse_than=frame.mcc.counts("b"), ci=0.95)
    for answer in judged.to_dicts():
        for name, rows in (("reference", frame), ("score", new)):
            expected = oracle.score(rows_of(rows.filter(b=answer["b"]), None), "mcc")
            assert_is(answer[name], expected)


def test_rows_without_labels_never_narrow_an_interval():
    """With few labels of a prediction, the interval is wide, also if no error was seen."""
    widths = []
    for unlabelled in (0, 30, 300, 3000):
        pairs = [("a", "a", 200), ("b", "b", 200), ("b", "a", 4), (None, "a", unlabelled)]
        frame = pl.DataFrame(pairs, schema=["gold", "pred", "n"], orient="row")
        answer = frame.mcc(nulls="reweight", weight="n", positive="b").by(
            metrics=["tpr", "mcc"], ci=0.95
        )
        widths.append(answer["tpr_high"].item() - answer["tpr_low"].item())
    assert widths == sorted(widths)
    perfect = pl.DataFrame({"gold": ["a", "b", None], "pred": ["a", "b", "a"], "n": [40, 40, 4000]})
    low = perfect.mcc(nulls="reweight", weight="n", positive="b").by(metrics="tpr", ci=0.95)
    assert low["tpr"].item() == 1
    assert low["tpr_low"].item() < 0.3


LISTS = pl.DataFrame({"gold": [["a"], None], "pred": [["a"], ["b"]]})
PLAIN = pl.DataFrame({"gold": [True, None], "pred": [True, False], "p": [0.1, 0.9], "user": [1, 2]})


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda log: log(cluster="user").by(), "nulls='reweight' does not support cluster: .*out"),
        (lambda log: log(sample_weight="p").by(), "does not support sample_weight: .*leave one"),
        (lambda _: LISTS.mcc(nulls="reweight").by(), "does not support lists of labels"),
        (lambda log: log(score="p").by(metrics="roc_auc"), "scores: .*log\\(nulls='drop'\\)"),
        (
            lambda log: log(score="p", pred="pred").by(metrics=["mcc", "roc_auc"]),
            "nulls='reweight' does not support",
        ),
        (lambda log: log(score="p").curve(), "does not support scores"),
        (lambda log: log(score="p").best_threshold(), "does not support scores"),
        (lambda log: log(score="p").calibration(), "does not support scores"),
        (lambda log: log.by(ci=0.9, method=Bootstrap(9)), "Bootstrap.* does not support nulls="),
        (lambda log: log.contrast("user", to="expected"), "expected'\\) does not support nulls="),
        (lambda log: log.contrast("user", to="total"), "total'\\) does not support.*the rest"),
        (
            lambda log: log.worst("user", to="expected"),
            "worst\\(..., to='expected'\\) does not support nulls='reweight'",
        ),
        (lambda log: log.confusion(), "confusion does not support nulls='reweight'"),
        (lambda log: log.report("user"), "report does not support nulls='reweight'"),
        (
            lambda _: PLAIN.select(pl.col("pred").mcc.score("gold", nulls="reweight")),
            "use frame.mcc\\(nulls='reweight'\\)",
        ),
        (
            lambda _: PLAIN["pred"].mcc.score(PLAIN["gold"], nulls="reweight"),
            "use frame.mcc\\(nulls='reweight'\\)",
        ),
    ],
)
def test_what_is_refused_says_why(ask, message):
    for frame in (PLAIN, PLAIN.lazy()):
        with pytest.raises(ValueError, match=message):
            ask(PredictionLog(frame, nulls="reweight"))

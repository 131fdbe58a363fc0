"""Promises for every metric, and refusals: cases that failed before."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from oracles import se_of_wald, table_of
from scipy import stats
from support import first, some_slow
from tables import counts_of

import polars_mcc

FAMILY = polars_mcc.metrics()
SURE = FAMILY.filter(pl.col("from") != "scores", no_interval="")["metric"].to_list()
UNSURE = FAMILY.filter(pl.col("no_interval") != "")["metric"].to_list()
OF_SCORES = FAMILY.filter(pl.col("from") == "scores")["metric"].to_list()

MANY = [(15, 15), (10, 90), (30, 300)]


def two_groups(wrong: dict[str, tuple[int, int]]) -> pl.DataFrame:
    """Groups of rows with two equally frequent classes, and some wrong rows: (wrong, rows)."""
    frames = [
        pl.DataFrame({"group": group, "row": range(rows)}).with_columns(
            gold=pl.col("row") % 2, pred=pl.col("row") % 2 ^ (pl.col("row") < misses).cast(pl.Int64)
        )
        for group, (misses, rows) in wrong.items()
    ]
    return pl.concat(frames)


@pytest.mark.parametrize("to", some_slow(["rest", "total"], "rest"))
@pytest.mark.parametrize(
    ("wrong", "rows"), [(3, 50), pytest.param(5, 1000, marks=pytest.mark.slow)]
)
def test_a_group_without_errors_is_not_known_exactly(wrong, rows, to):
    """Fisher's exact test gives 0.06 and 0.24. The total took the perfect group as certain."""
    log = two_groups({"a": (wrong, rows), "b": (0, rows)})
    found = log.mcc.contrast("group", to=to, metrics="accuracy")
    exact = stats.fisher_exact([[wrong, rows - wrong], [0, rows]]).pvalue
    assert exact / 2 < found["p_value"].min() <= found["p_value"].max() < exact
    of_mcc = log.mcc.contrast("group", to=to)["p_value"]
    assert of_mcc.to_list() == pytest.approx(found["p_value"].to_list(), rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "metric", some_slow(["accuracy", "recall_micro", "prevalence"], "recall_micro", "prevalence")
)
def test_a_mean_over_rows_differs_from_the_total_as_from_the_rest(metric):
    log = two_groups({"a": (9, 40), "b": (12, 100), "c": (20, 70)})
    rest, total = (
        log.mcc(positive=1).contrast("group", to=to, metrics=metric) for to in ("rest", "total")
    )
    share = (1 - rest["n"] / log.height).to_list()
    assert total["p_value"].to_list() == pytest.approx(rest["p_value"].to_list(), rel=1e-6)
    for column in ("diff", "diff_low", "diff_high"):
        expected = [w * value for w, value in zip(share, rest[column], strict=True)]
        assert total[column].to_list() == pytest.approx(expected, rel=1e-6, abs=1e-12), column


@pytest.mark.parametrize("weights", [1e200, 1e-200, 1e300])
def test_a_gate_is_not_passed_by_an_interval_that_is_no_number(weights):
    log = pl.DataFrame({"gold": [0, 1] * 20, "pred": [1, 0] * 20}).with_columns(w=pl.lit(weights))
    described = log.mcc(sample_weight="w")
    with pytest.raises(polars_mcc.CheckError, match="1 of 1 slices fails|no slice to judge"):
        described.check(metric="accuracy", min=0.9, ci=0.95)
    found = described.score(metrics=["accuracy", "mcc", "kappa"], ci=0.95)
    values = [value for value in found.row(0) if value is not None]
    assert all(map(math.isfinite, values))


@pytest.mark.parametrize("name", first(6, UNSURE))
def test_metrics_without_an_interval_say_why(name):
    log = two_groups({"a": (9, 40), "b": (12, 100)}).with_columns(other="gold")
    roles = {"score": ["pred", "other"]} if name in OF_SCORES else {}
    described = log.mcc(pred="pred", positive=1, **{role: one for role, (one, _) in roles.items()})
    [row] = described.score(metrics=[name, "mcc"], ci=0.95).to_dicts()
    assert [row[f"{name}_{end}"] for end in ("se", "low", "high")] == [None] * 3
    assert row[name] is not None
    assert row["mcc_low"] is not None
    early = pl.col("row") < 9
    is_loss = name in {"calibration_error", "ece", "brier_reliability", "brier_uncertainty"}
    least = -1.0 if name == "mcc_min" else 0.0
    limit = {"max": 0.9} if is_loss else {"min": least + 0.1}
    calls = {
        "contrast": lambda: described.contrast("group", metrics=name),
        "worst": lambda: described.worst("group", metric=name),
        "drift": lambda: described.drift(metrics=name, before=early, after=~early),
        "compare": lambda: log.mcc(pred=["pred", "other"], positive=1, **roles).compare(
            metrics=name
        ),
        "check": lambda: described.check(metric=name, ci=0.95, **limit),
        "baseline": lambda: described.check(metric=name, no_worse_than=described.counts()),
    }
    for call in calls.values():
        with pytest.raises(
            ValueError, match=f"'{name}' has no interval and no test: .*'(mcc|roc_auc)'"
        ):
            call()
    described.check(metric=name, **({"max": 1.0} if is_loss else {"min": least}))


@pytest.mark.parametrize(
    ("positive", "negative"), [(5, 5), *(pytest.param(*n, marks=pytest.mark.slow) for n in MANY)]
)
@pytest.mark.parametrize(
    ("name", "least"),
    [("roc_auc", 0.93), ("average_precision", 0.91), ("brier", 0.92), ("log_loss", 0.92)],
)
def test_intervals_of_scores_hold_the_truth(name, least, positive, negative):
    """Normal scores of AUC 0.8 become probabilities."""
    rng, rows, samples = np.random.default_rng(7), positive + negative, 400
    distance = math.sqrt(2) * stats.norm.ppf(0.8)

    def scored(gold: np.ndarray, x: np.ndarray) -> pl.DataFrame:
        odds = positive / negative * np.exp(distance * (x + gold * distance - distance / 2))
        return pl.DataFrame({"gold": gold, "p": odds / (1 + odds)})

    places = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    counts = np.repeat([positive, negative], len(places))
    whole = scored(np.repeat([True, False], len(places)), np.tile(places, 2))
    whole = whole.with_columns(n=pl.Series(counts)).mcc(score="p", weight="n")
    truth = whole.score(metrics=name)[name][0]
    gold = np.tile(np.arange(rows) < positive, samples)
    log = scored(gold, rng.standard_normal(samples * rows))
    log = log.with_columns(sample=pl.Series(np.arange(samples * rows) // rows))
    found = log.mcc(score="p").by("sample", metrics=name, ci=0.95)
    inside = found.select(pl.lit(truth).is_between(f"{name}_low", f"{name}_high")).to_series()
    noise = 3 * math.sqrt(least * (1 - least) / samples)
    assert inside.mean() > least - noise
    assert found[f"{name}_low"].null_count() == 0


def test_phi_of_two_classes_is_mcc():
    rng = np.random.default_rng(3)
    gold = rng.random(3000) < 0.1
    pred = np.where(rng.random(3000) < 0.2, ~gold, gold)
    keys = {name: rng.integers(0, 8, 3000) for name in "abc"}
    log = pl.DataFrame({**keys, "gold": gold, "pred": pred})
    both = log.mcc.by("a", metrics=["mcc", "phi"], ci=0.95)
    searched = [
        log.mcc.worst(*keys, metric=metric, verdicts=True).sort("keys", *keys)
        for metric in ("mcc", "phi")
    ]
    for end in ("", "_se", "_low", "_high"):
        assert both[f"phi{end}"].to_list() == pytest.approx(both[f"mcc{end}"].to_list(), rel=1e-9)
    for column in ("verdict", "n_tested", "n_untested"):
        assert searched[0][column].to_list() == searched[1][column].to_list()
    mcc, phi = (found["p_value"].fill_null(-1).to_list() for found in searched)
    assert phi == pytest.approx(mcc, rel=1e-6)


OVER_CLASSES = ["f1_macro", "balanced_accuracy", "mcc_macro", "precision_macro"]
OVER_ROWS = ["mcc", "kappa", "f1_weighted", "accuracy"]


@pytest.mark.parametrize(
    ("over_classes", "over_rows"),
    [
        (OVER_CLASSES[:1], OVER_ROWS[:1]),
        pytest.param(OVER_CLASSES[1:], OVER_ROWS[1:], marks=pytest.mark.slow),
    ],
    ids=["first", "others"],
)
def test_a_mean_over_other_classes_is_not_compared(over_classes, over_rows):
    """Group b has no row of class 2. Its macro F1 is a mean of two classes and not of three."""
    a = table_of([[30, 2, 1], [3, 30, 2], [2, 2, 9]])
    b = table_of([[30, 9, 0], [8, 30, 0], [0, 0, 0]])
    log = pl.concat(
        [
            counts_of([table]).with_columns(group=pl.lit(name))
            for name, table in zip("ab", (a, b), strict=True)
        ]
    )
    described = log.mcc(weight="n")
    for metric in over_classes:
        found, to_expected = (
            described.contrast("group", metrics=metric, to=to) for to in ("rest", "expected")
        )
        assert found.select("diff_low", "diff_high").null_count().row(0) == (2, 2)
        assert found["diff"].null_count() == 0
        # All rows of class 2 are in a, so a is tested by gold label.
        assert found["p_value"].to_list() == to_expected["p_value"].to_list()
        assert [p is None for p in found["p_value"]] == [False, True]
        searched = described.worst("group", metric=metric, verdicts=True)
        assert dict(searched.select("group", "verdict").iter_rows())["b"] == "no interval"
    for metric in over_rows:
        found = described.contrast("group", metrics=metric)
        assert found["p_value"].null_count() == 0


@pytest.mark.slow
def test_one_missed_class_is_no_overwhelming_evidence():
    """49 rows with 2 positives, both missed, had p = 8·10⁻²³ by informedness."""
    a = table_of([[45, 2], [2, 0]])
    b = table_of([[2600, 130], [30, 270]])
    log = pl.concat(
        [
            counts_of([table]).with_columns(group=pl.lit(name))
            for name, table in zip("ab", (a, b), strict=True)
        ]
    )
    for metric in ("informedness", "balanced_accuracy", "mcc", "kappa", "f1_macro"):
        [p] = (
            log.mcc(weight="n")
            .worst("group", metric=metric, verdicts=True)
            .filter(group="a")["p_value"]
            .to_list()
        )
        assert p > 1e-3, metric


@pytest.mark.parametrize("clusters", some_slow([2, 3, 4, 10, 40], 10, 40))
def test_with_clusters_p_is_students_and_agrees_with_the_interval(clusters):
    rng = np.random.default_rng(clusters)
    rows = clusters * 20
    gold = rng.integers(0, 2, rows)
    a, b = (np.where(rng.random(rows) < miss, 1 - gold, gold) for miss in (0.3, 0.15))
    log = pl.DataFrame({"gold": gold, "a": a, "b": b, "user": np.arange(rows) % clusters})
    described = log.mcc(pred=["a", "b"], cluster="user")
    for ci in (0.5, 0.8, 0.95, 0.99):
        [row] = described.compare(ci=ci).to_dicts()
        excludes = not row["diff_low"] < 0 < row["diff_high"]
        assert (row["p_value"] < 1 - ci) == excludes
    df = clusters - 1
    for ci in (0.5, 0.95, 0.99):
        wald = described.compare(method="wald", metrics="accuracy", ci=ci).row(0, named=True)
        expected = 2 * stats.t.sf(abs(wald["diff"] / se_of_wald(wald, ci, df)), df)
        error = 1e-12 if df < 3 else 1e-4 if df < 5 else 1e-7
        assert wald["p_value"] == pytest.approx(expected, abs=error)


@pytest.mark.parametrize("rows", [2, 20, 2000])
def test_a_score_that_no_row_moves_has_no_interval(rows):
    """With one gold class kappa is 0 for any predictions. Rounding had left ± 3·10⁻⁸."""
    for pred in (0, 1):
        log = pl.DataFrame({"gold": [0] * rows, "pred": [pred] * (rows - 1) + [1]})
        found = log.mcc.score(metrics=["kappa", "mcc", "informedness"], ci=0.95).row(0, named=True)
        assert found["kappa_low"] is None or found["kappa_high"] - found["kappa_low"] > 0.01
        assert found["mcc_low"] is found["informedness_low"] is None


def test_the_best_slice_can_be_compared():
    """A slice of two rows of one class has the best macro F1, 1.0, of one class."""
    log = two_groups({"a": (9, 40), "b": (12, 100)})
    tiny = pl.DataFrame({"group": ["tiny"] * 2, "row": [0, 1], "gold": [0, 0], "pred": [0, 0]})
    found = pl.concat([log, tiny]).mcc.contrast("group", to="best", metrics="f1_macro")
    assert set(found["group_to"]) == {"b"}
    assert found.filter(group="a")["p_value"].null_count() == 0

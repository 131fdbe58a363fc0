"""A class whose gold rows are all inside a slice: the rest has the mean of other classes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats
from support import in_turn

from polars_mcc import metrics
from polars_mcc._metrics import registry

BAD = {"aa": 20, "ab": 80, "bb": 20, "ba": 80, "cc": 20, "ca": 40}
GOOD = {"aa": 200, "bb": 200}
MEANS = [
    name
    for name in metrics().filter(pl.col("no_interval") == "")["metric"]
    if registry.find_metric(name).needs_all_classes and not registry.find_metric(name).pairs
]


def log_of(**slices: dict[str, int]) -> pl.DataFrame:
    rows = [
        (slice_, *cell)
        for slice_, cells in slices.items()
        for cell, n in cells.items()
        for _ in range(n)
    ]
    return pl.DataFrame(rows, ["s", "gold", "pred"], orient="row")


@pytest.mark.parametrize("more", [{}, {"ac": 10}], ids=["no c in the rest", "c predicted there"])
def test_it_is_tested_by_gold_label_and_the_loss_is_that_of_by(more):
    """All means over classes. The loss is the score of `by` without the slice minus that of all."""
    log = log_of(A=BAD, B={**GOOD, **more}, C={"aa": 150, "bb": 150})
    reached = 0
    for name in MEANS:
        sign = -1 if registry.find_metric(name).less_is_better else 1
        found = log.mcc.worst("s", metric=name, verdicts=True).rows_by_key("s", named=True)
        [a], [b], [c] = found["A"], found["B"], found["C"]
        assert (a["verdict"], b["verdict"], c["verdict"]) == ("listed", *["no interval"] * 2), name
        assert a["p_value"] < 1e-20
        overall = log.mcc.score(metrics=name)[name].item()
        for slice_, row in {"A": a, "B": b, "C": c}.items():
            rest = log.filter(pl.col("s") != slice_).mcc.score(metrics=name)[name].item()
            assert row["loss"] == pytest.approx(sign * (rest - overall), abs=1e-12), name
        for to in ("rest", "total"):
            [row] = log.mcc.contrast("s", metrics=name, to=to).filter(s="A").to_dicts()
            assert row["p_value"] == pytest.approx(a["p_value"], rel=1e-6)
            assert row["diff_low"] is None
        reached += 1
    assert reached == len(MEANS) >= 12


@in_turn(6, metric=["f1_macro", "recall_macro"], less=[6, 10, 14])
def test_its_p_value_is_that_of_draws_without_replacement(metric, less):
    """Predictions of a and b fall on slice and rest at random; those of c are all in the slice."""
    slice_ = {"aa": 40 - less, "ab": less, "bb": 36, "ba": 4, "cc": 18, "ca": 2}
    rest = {"aa": 180, "ab": 20, "bb": 190, "ba": 10}
    log = log_of(A=slice_, B=rest)
    scores, chances = np.zeros((41, 41)), np.zeros((41, 41))
    for aa, ba in itertools.product(range(41), range(41)):
        hits, preds = (aa, 40 - ba, 18), (aa + ba + 2, 80 - aa - ba, 18)
        golds = np.array([40, 40, 20])
        means = {"recall_macro": hits / golds, "f1_macro": 2 * np.array(hits) / (golds + preds)}
        scores[aa, ba] = means[metric].mean()
        chances[aa, ba] = 1.0
        for gold, drawn in (("a", aa), ("b", ba)):
            in_all = [slice_[f"{gold}{pred}"] + rest[f"{gold}{pred}"] for pred in "ab"]
            chances[aa, ba] *= stats.hypergeom.pmf(drawn, sum(in_all), in_all[0], 40)
    here, mean = scores[40 - less, 4], (scores * chances).sum()
    exact = chances[abs(scores - mean) >= abs(here - mean) - 1e-12].sum()
    [row] = log.mcc.contrast("s", metrics=metric).filter(s="A").to_dicts()
    assert here == pytest.approx(row["score"], rel=1e-12)
    assert 1 <= row["p_value"] / exact < 8  # moved by half of what one row may change: careful


def test_rows_that_are_not_independent_and_equal_are_not_tested():
    log = log_of(A=BAD, B=GOOD).with_columns(w=pl.int_range(pl.len()) % 3 + 0.5)
    log = log.with_columns(user=pl.int_range(pl.len()) // 4)
    for options in ({"sample_weight": "w"}, {"cluster": "user"}):
        found = log.mcc(**options).worst("s", metric="f1_macro", verdicts=True)
        assert set(found["verdict"]) == {"no interval"}
        assert found["p_value"].null_count() == found.height == 2
    found = log.mcc(sample_weight="w").contrast("s", metrics="f1_macro")
    assert found["p_value"].null_count() == 2
    counts = log_of(A=BAD, B=GOOD).group_by("s", "gold", "pred").len("k")
    weighed = counts.mcc(weight="k").worst("s", metric="f1_macro")
    assert weighed["p_value"].item() < 1e-20


@pytest.mark.parametrize("zero_division", [0.0, 1.0, None, math.nan])
def test_the_loss_has_the_scores_of_by_whatever_0_by_0_is(zero_division):
    """In A, c is predicted and never gold; B has the gold rows; nobody predicts d."""
    log = log_of(A={"aa": 40, "ac": 5, "bb": 40}, B={"aa": 40, "bb": 40, "ca": 9, "cc": 5, "da": 3})
    options = {"zero_division": zero_division}
    found = log.mcc(**options).worst("s", metric="precision_macro", verdicts=True)
    overall = log.mcc(**options).score(metrics="precision_macro")["precision_macro"].item()
    for row in found.to_dicts():
        rest = log.filter(pl.col("s") != row["s"]).mcc(**options).score(metrics="precision_macro")
        both = [rest["precision_macro"].item(), overall]
        assert row["reference"] == pytest.approx(both[0], nan_ok=True)
        is_known = None not in both and not any(map(math.isnan, both))
        assert row["loss"] == (pytest.approx(both[0] - both[1]) if is_known else None)

"""`ece` with bins of one's choice: plain loops over rows give the same numbers."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support import in_turn

from polars_mcc import CheckError, metric


def log_of(seed: int, rows: int = 400) -> pl.DataFrame:
    """Scores with ties, at edges of bins and a bit below; and two slices."""
    rng = np.random.default_rng(seed)
    score = rng.random(rows)
    edges = rng.integers(0, 16, rows) / rng.choice([3, 5, 10, 15], rows)
    score = np.where(rng.random(rows) < 0.5, score, edges.clip(0, 1))
    score = np.where(rng.random(rows) < 0.2, np.nextafter(score, 0), score)
    gold = rng.random(rows) < score**2
    weight = rng.integers(0, 4, rows)
    key = rng.choice(["x", "y"], rows, p=[0.9, 0.1])
    return pl.DataFrame({"gold": gold, "p": score, "w": weight, "key": key})


def place_of(score: float, scores: list[float], weights: list[float], bins: int, how: str) -> int:
    if how == "uniform":
        return sum(score >= edge / bins for edge in range(1, bins))
    below = sum(w for s, w in zip(scores, weights, strict=True) if s < score)
    tied = sum(w for s, w in zip(scores, weights, strict=True) if s == score)
    return min(int((below + tied / 2) / sum(weights) * bins), bins - 1)


def by_loops(rows: pl.DataFrame, bins: int, how: str, weight: str | None) -> float:
    weights = rows[weight].to_list() if weight else [1] * rows.height
    scores, gold = rows["p"].to_list(), rows["gold"].to_list()
    distance = [0.0] * bins
    for is_positive, score, w in zip(gold, scores, weights, strict=True):
        distance[place_of(score, scores, weights, bins, how)] += w * (is_positive - score)
    return math.fsum(map(abs, distance)) / sum(weights)


@in_turn(
    seed=[1, 2],
    bins=[1, 2, 3, 10, 15],
    how=["uniform", "quantile"],
    role=[None, "weight", "sample_weight"],
    lazy=[False, True],
)
def test_the_error_is_that_of_plain_loops(seed, bins, how, role, lazy):
    log = log_of(seed)
    options = {role: "w"} if role else {}
    frame = log.lazy() if lazy else log
    call = f"ece({bins}, {how})"
    found = frame.mcc(score="p", **options).by("key", metrics=call).lazy().collect()
    for row in found.to_dicts():
        want = by_loops(log.filter(key=row["key"]), bins, how, "w" if role else None)
        assert row[f"ece_{bins}_{how}"] == pytest.approx(want, rel=1e-12, abs=1e-15)
    assert found.height == 2


def test_several_bins_in_one_call():
    """Each is as if asked alone; ten bins of equal size are the metric without parentheses."""
    log = log_of(3).mcc(score="p", weight="w")
    own = [metric.ece(7, "uniform"), metric.ece().alias("plain")]
    calls = ["ece(15, uniform)", "ece", "ece(bins=10)", "ece(15)", *own, "calibration_error"]
    found = log.by("key", metrics=calls)
    names = ["ece_15_uniform", "ece", "ece_10_quantile", "ece_15_quantile", "ece_7_uniform"]
    assert found.columns == ["key", "n", *names, "plain", "calibration_error", "n_null"]
    for call in calls:
        alone = log.by("key", metrics=call)
        assert_frame_equal(alone, found.select(alone.columns))
    assert found["ece"].to_list() == found["ece_10_quantile"].to_list() == found["plain"].to_list()
    assert len({*found.select(names).row(0)}) == 4


@pytest.mark.parametrize("how", ["uniform", "quantile"])
def test_models_and_a_score_per_class(how):
    log = log_of(4).with_columns(q=1 - pl.col("p"))
    names, call = ["p", "q"], f"ece(4, {how})"
    models = log.mcc(score=names).score(metrics=call)
    each = [log.mcc(score=name).score(metrics=call)[f"ece_4_{how}"].item() for name in names]
    assert models[f"ece_4_{how}"].to_list() == each
    classes = log.with_columns(gold=pl.when("gold").then(pl.lit("a")).otherwise(pl.lit("b")))
    found = classes.mcc(score={"a": "p", "b": "q"}).score(metrics=call)
    of_other = log.with_columns(gold=~pl.col("gold")).mcc(score="q").score(metrics=call)
    want = (each[0] + of_other[f"ece_4_{how}"].item()) / 2
    assert found[f"ece_4_{how}"].item() == pytest.approx(want, rel=1e-13)


def test_a_gate_and_no_interval():
    log = log_of(5).mcc(score="p")
    value = log.score(metrics="ece(5, uniform)")["ece_5_uniform"].item()
    assert log.check(max={"ece(5, uniform)": value})["verdict"].to_list() == ["passes"]
    with pytest.raises(CheckError, match="ece_5_uniform above"):
        log.check(max={"ece(5, uniform)": value * 0.99})
    with_ci = log.score(metrics="ece(5, uniform)", ci=0.9)
    assert with_ci["ece_5_uniform"].item() == pytest.approx(value, rel=1e-14)
    assert with_ci.select("^ece.*_(low|high|se)$").row(0) == (None, None, None)
    with pytest.raises(ValueError, match="'ece_5_uniform' has no interval and no test"):
        log.contrast("key", metrics="ece(5, uniform)")


def test_rows_that_are_not_scored_have_no_bin():
    log = pl.DataFrame({"gold": [True, None, False, True], "p": [0.5, 0.1, None, float("nan")]})
    for call in ("ece(3, uniform)", "ece(3)"):
        assert log.mcc(score="p").score(metrics=call).row(0) == (1, 0.5, 3)
        assert log.clear().mcc(score="p").score(metrics=call).row(0) == (0, None, 0)


def test_what_is_refused():
    log = log_of(6).mcc(score="p")
    for call, message in {
        "ece(0)": "bins must be an integer of at least 1",
        "ece(2.5)": "bins must be an integer",
        "ece(5, equal)": "strategy must be one of 'uniform', 'quantile', got 'equal'",
        "ece(5, bin=2)": r"is no metric.*write it as in ece\(15, uniform\)",
    }.items():
        with pytest.raises((ValueError, TypeError), match=message):
            log.score(metrics=call)
    wrong = pl.DataFrame({"gold": [True, False], "p": [1.5, 0.5]}).mcc(score="p")
    with pytest.raises(pl.exceptions.PolarsError, match=r"the score 1.5 of 'p' is not between"):
        wrong.score(metrics="ece(5, uniform)")

"""Metrics under the names that people type, and names of other libraries."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from support import ask

import polars_mcc
from polars_mcc._metrics.calls_and_names_elsewhere import ELSEWHERE, known_elsewhere

OURS = {*polars_mcc.metrics()["metric"]}
CALLS = {"f_beta(2)", "top_k(3)", "ece(15, uniform)", "cost(fn=10, fp=1)", "kappa(quadratic)"}
CALLS |= {"kappa(linear)"}


def drawn(rates: dict[str, list[list[float]]], rows: int) -> pl.DataFrame:
    """A log: by slice, the rates of predictions given each gold label, all as frequent."""
    rng = np.random.default_rng(1)
    parts = []
    for key, given in rates.items():
        gold = rng.integers(len(given), size=rows)
        pred = [rng.choice(len(given), p=given[label]) for label in gold]
        parts.append(pl.DataFrame({"key": key, "gold": gold, "pred": pred}))
    return pl.concat(parts)


def test_a_name_of_another_library_is_told_ours():
    for name, ours in ELSEWHERE.items():
        named = {*re.findall("'([^']+)'", ours)}
        assert named, name
        assert known_elsewhere(name) == f"; here it is {ours}."
        assert named <= OURS | CALLS, (name, ours)
        assert name not in OURS, name
    assert known_elsewhere("zzz") == ""


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("f2", r"'f_beta\(2\)'"),
        ("fbeta_score", r"'f_beta\(2\)'"),
        ("CSI", "'jaccard'"),
        ("IoU", "'jaccard'"),
        ("threat-score", "'jaccard'"),
        ("sensitivity", "'recall'"),
        ("error", "'error_rate'"),
        ("Youden", "'informedness'"),
        ("auc", "'roc_auc'"),
        ("hand_till", "'roc_auc_ovo'"),
        ("expected_calibration_error", r"'ece', with 10 bins.*'ece\(15, uniform\)'"),
        ("ap", "'average_precision'"),
        ("geometric_mean_score", "'g_mean'"),
        ("demographic parity", "the gap of 'selection_rate' between slices"),
    ],
)
def test_the_error_for_such_a_name(name, ours, run):
    log = pl.DataFrame({"gold": ["a"], "pred": ["a"]})
    message = rf"^no metric '{name}'; here it is {ours}.*metrics\(\) lists all"
    with pytest.raises(ValueError, match=message):
        run(log, lambda frame: frame.mcc.score(metrics=["mcc", name]))


def test_no_interval_of_the_geometric_mean_where_a_recall_is_0(run):
    """One hit more moves √(0 · 0.9) far away. A class that is predicted has no hit here."""
    table = {"a": (0, 5, 4), "b": (3, 40, 1), "c": (2, 1, 44)}
    cells = [(g, p, n) for g, row in table.items() for p, n in zip("abc", row, strict=True)]
    counts = pl.DataFrame(cells, schema=["gold", "pred", "n"], orient="row")
    counts = pl.concat(
        [counts.with_columns(key=pl.lit("none")), counts.with_columns(key=pl.lit("some"))]
    )
    is_hit = (pl.col("key") == "some") & (pl.col("gold") == "a") & (pl.col("pred") == "a")
    counts = counts.with_columns(n=pl.when(is_hit).then(3).otherwise("n"))
    for method in ("score", "fisher", "wald"):
        none, some = run(
            counts,
            lambda f, method=method: f.mcc(weight="n").by(
                "key", metrics="g_mean", ci=0.9, method=method
            ),
        ).iter_rows(named=True)
        assert none["g_mean"] == 0
        assert none["g_mean_low"] is none["g_mean_high"] is none["g_mean_se"] is None
        recalls = [3 / 12, 40 / 44, 44 / 47]
        assert some["g_mean"] == pytest.approx(np.prod(recalls) ** (1 / 3), rel=1e-15)
        assert some["g_mean_low"] < some["g_mean"] < some["g_mean_high"]
    pair = counts.mcc(weight="n").contrast("key", metrics="g_mean")
    assert pair["diff"].abs().to_list() == pytest.approx([some["g_mean"]] * 2, rel=1e-15)
    assert pair["p_value"].to_list() == pair["diff_low"].to_list() == [None, None]


@pytest.mark.parametrize("zero_division", [0.0, None, 1.0])
def test_the_geometric_mean_of_a_class_that_is_never_gold(zero_division):
    log = pl.DataFrame({"gold": ["a", "a", "b"], "pred": ["a", "c", "b"]})
    found = log.mcc(zero_division=zero_division).score(metrics="g_mean")["g_mean"].item()
    assert found == pytest.approx(
        {0.0: 0, None: 0.5 ** (1 / 2), 1.0: 0.5 ** (1 / 3)}[zero_division]
    )


ERRORS = [
    "error_rate",
    *(f"{rate}_{mean}" for rate in ("fpr", "fnr") for mean in ("macro", "weighted")),
]


@pytest.mark.parametrize(
    "metric", [*ERRORS, "fpr_micro", "fnr_micro", "jaccard_macro", "npv_macro"]
)
def test_less_is_better_of_errors_alone(metric):
    good, bad = 0.9 * np.eye(3) + 0.1 / 3, 0.3 * np.eye(3) + 0.7 / 3
    log = drawn({"good": good.tolist(), "more": good.tolist(), "bad": bad.tolist()}, 400)
    assert log.mcc.worst("key", metric=metric)["key"].to_list() == ["bad"]
    of_slices = dict(log.mcc.by("key", metrics=metric).select("key", metric).rows())
    between = (of_slices["good"] + of_slices["bad"]) / 2
    is_error = metric in {*ERRORS, "fpr_micro", "fnr_micro"}
    with pytest.raises(polars_mcc.CheckError) as raised:
        log.mcc.check("key", **{"max" if is_error else "min": {metric: between}}, ci=0.95)
    assert raised.value.failures["key"].to_list() == ["bad"]
    if is_error:
        with pytest.raises(ValueError, match=f"for '{metric}' less is better"):
            log.mcc.check("key", min={metric: between})


@pytest.mark.parametrize("name", ["npv", "fpr", "fnr", "jaccard"])
def test_functions_of_the_new_columns_of_classes(name, run):
    log = drawn({"x": [[0.6, 0.4, 0], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]}, 90)
    most = run(
        log, lambda f: f.mcc.score(metrics=lambda col: col(name).max().alias("most"), ci=0.9)
    )
    classes = log.mcc.classes(ci=0.9)
    [largest] = classes.filter(pl.col(name) == pl.col(name).max()).to_dicts()
    assert most["most"].item() == largest[name]
    assert most["most_se"].item() == pytest.approx(largest[f"{name}_se"], rel=1e-12)
    macro = log.mcc.score(metrics=f"{name}_macro")[f"{name}_macro"].item()
    assert macro == pytest.approx(classes[name].mean(), rel=1e-14)


def test_intervals_of_opposite_rates_mirror_each_other():
    log = drawn({"x": [[0.6, 0.4, 0], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]}, 60)
    pairs = [("accuracy", "error_rate")]
    kinds = ("macro", "micro", "weighted")
    pairs += [(f"specificity_{kind}", f"fpr_{kind}") for kind in kinds]
    pairs += [(f"recall_{kind}", f"fnr_{kind}") for kind in kinds]
    found = ask(log, "score", metrics=[name for pair in pairs for name in pair], ci=0.95)
    for right, wrong in pairs:
        for end, other in (("", ""), ("_low", "_high"), ("_high", "_low")):
            assert found[right + end].item() == pytest.approx(
                1 - found[wrong + other].item(), rel=1e-9
            )
    # With one label a row, micro specificity is the accuracy of K - 1 classes in a narrower range.
    for end in ("_low", "_high"):
        accuracy, micro = found[f"accuracy{end}"].item(), found[f"specificity_micro{end}"].item()
        assert micro == pytest.approx(1 - (1 - accuracy) / 2, rel=1e-9)

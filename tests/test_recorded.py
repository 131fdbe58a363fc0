"""Answers that were recorded: no change of the code changes a number without being told.

`python tests/test_recorded.py` records them again, where a change is wanted.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import polars as pl
import pytest
from engine_cases import CALLS, log

from polars_mcc import Bootstrap, PredictionLog, bins

RECORDED = Path(__file__).parent / "recorded.json"
ROWS = log(800)
FISHER = {"ci": 0.9, "method": "fisher"}
MODELS = {"pred": ["pred", "other"], "cluster": "user"}
SCORES = {"gold": "is_gold", "score": "score", "positive": True}
FEW = {name: call for name, call in CALLS.items() if name not in {"counts", "cube"}}
CASES = FEW | {
    "worst": lambda f: PredictionLog(f).worst("country", "device", verdicts=True),
    "wald": lambda f: PredictionLog(f).by("country", ci=0.9, method="wald"),
    "all metrics": lambda f: PredictionLog(f, positive="cat").score(
        metrics=["accuracy", "kappa", "f1_macro", "recall_weighted", "precision", "fnr"], ci=0.95
    ),
    "sample weights": lambda f: PredictionLog(f, sample_weight="share").by("device", ci=0.9),
    "null as a label, interval": lambda f: PredictionLog(f, nulls="label").by("device", **FISHER),
    "bootstrap": lambda f: PredictionLog(f).by("device", ci=0.9, method=Bootstrap(50, seed=1)),
    "sure classes": lambda f: PredictionLog(f).classes("device", ci=0.9),
    "models of clusters": lambda f: PredictionLog(f, **MODELS).by("device", ci=0.9),
    "compare models of clusters": lambda f: PredictionLog(f, **MODELS).compare("device"),
    "contrast, best": lambda f: PredictionLog(f).contrast(
        "country", to="best", within="device", min_n=1
    ),
    "gaps": lambda f: PredictionLog(f).gaps(
        "country", metrics=["mcc", "accuracy"], within="device", min_n=1
    ),
    "changes": lambda f: PredictionLog(f, time="day").changes("country", alternative="two-sided"),
    "drift of clusters": lambda f: PredictionLog(f, cluster="user").drift(
        before=pl.col("early"), after=~pl.col("early")
    ),
    "worst, accuracy": lambda f: PredictionLog(f, sample_weight="share").worst(
        "country", "device", metric="accuracy", verdicts=True
    ),
    "bins": lambda f: PredictionLog(f).by(bins("score", 2), ci=0.9),
    "sure scores": lambda f: PredictionLog(f, pred=None, **SCORES).by(
        "country", metrics=["roc_auc", "brier", "log_loss", "average_precision"], ci=0.9
    ),
}


def answer_of(name: str) -> list[dict]:
    answer = CASES[name](ROWS)
    return json.loads(json.dumps(answer.to_dicts(), default=str, ensure_ascii=False))


def is_near(found, expected) -> bool:
    """Whether two values of JSON are equal, up to the last digits of floats."""
    if isinstance(expected, float) and isinstance(found, float):
        both = math.isnan(found) and math.isnan(expected)
        return both or math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(expected, dict | list) and type(found) is type(expected):
        places = [*expected] if isinstance(expected, dict) else range(len(expected))
        same = [*found] == places if isinstance(expected, dict) else len(found) == len(expected)
        return same and all(is_near(found[place], expected[place]) for place in places)
    return found == expected


ANSWERS = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}


@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_the_one_that_was_recorded(name):
    found = answer_of(name)
    assert len(found) == len(ANSWERS[name])
    for row, expected in zip(found, ANSWERS[name], strict=True):
        assert is_near(row, expected), (row, expected)


if __name__ == "__main__":
    answers = (f"{json.dumps(name)}: {json.dumps(answer_of(name))}" for name in CASES)
    RECORDED.write_text("{\n" + ",\n".join(answers) + "\n}\n", "utf-8")
    sys.stdout.write(f"{len(CASES)} answers are in {RECORDED}\n")

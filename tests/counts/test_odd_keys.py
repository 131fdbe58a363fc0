"""Keys that make no useful slices are named; ordinary keys are not."""

from __future__ import annotations

import re
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score
from support import first, in_turn

import polars_mcc

ROWS = 3000
rng = np.random.default_rng(1)
GOLD = rng.integers(0, 2, ROWS)
PRED = np.where(rng.random(ROWS) < 0.2, 1 - GOLD, GOLD)
LOG = pl.DataFrame(
    {
        "country": rng.choice(["DE", "FR", "IT"], ROWS),
        "is_new": rng.integers(0, 2, ROWS),
        "age": rng.integers(18, 90, ROWS),
        "share": rng.random(ROWS),
        "hint": GOLD * 0.2 + rng.random(ROWS),
        "day": pl.Series(rng.integers(0, 60, ROWS).astype(np.int32)).cast(pl.Date),
        "row": np.arange(ROWS),
        "uid": [f"user {place}" for place in rng.permutation(ROWS)],
        "label": GOLD,
        "text_label": np.where(GOLD == 1, "yes", "no"),
        "threshold": np.where(PRED == 1, 0.5, 0.0) + rng.random(ROWS) / 2,
        "old": np.where(rng.random(ROWS) < 0.3, 1 - GOLD, GOLD),
        "odds": np.clip(0.5 + (GOLD - 0.5) * 0.4 + rng.normal(0, 0.15, ROWS), 0, 1),
        "gold": GOLD,
        "pred": PRED,
    }
)
ORDINARY = ["country", "is_new", "age", "share", "hint", "day"]
ODD = {
    "row": "has a value of its own in nearly every row. Is it the id of a row?",
    "uid": "is text with about 3,000 values",
    "label": "has one label of 'gold'. Is it a label?",
    "text_label": "has one label of 'gold'. Is it a label?",
    "threshold": "has one label of 'pred'. Is it a prediction or the score?",
    "old": "meets 'gold' nearly as often as 'pred' does",
    "odds": "sorts the rows by 'gold' as well as the model. Is it a score?",
}


def said(log, *keys, **options) -> list[str]:
    """The warnings of `worst`, when the answer is collected."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", polars_mcc.PredictionLogWarning)
        answer = log.mcc.worst(*keys, depth=1, **options)
        if isinstance(answer, pl.LazyFrame):
            assert caught == []
            answer.collect()
    assert {one.category for one in caught} <= {polars_mcc.PredictionLogWarning}
    return [str(one.message) for one in caught]


@in_turn(name=ODD, kind=["lazy", "counts", "eager"])
def test_an_odd_key_is_named(name, kind):
    log = LOG.lazy() if kind == "lazy" else LOG
    if kind == "counts":
        if name in {"row", "odds", "threshold"}:
            pytest.skip("a count of its own for each row")
        log = LOG.mcc.counts(name)
    told = said(log, name) if kind != "counts" else told_of_counts(log, name)
    assert len(told) == 1
    assert ODD[name] in told[0]
    assert f"key '{name}'" in told[0]


@in_turn(strength=[0.05, 0.15, 0.2, 0.25, 0.3, 0.6], wrong=[0.05, 0.4])
def test_a_key_that_sorts_as_well_as_the_model_is_named(strength, wrong):
    random = np.random.default_rng(int(100 * (strength + wrong)))
    score = np.clip(0.5 + (GOLD - 0.5) * strength + random.normal(0, 0.15, ROWS), 0, 1)
    pred = np.where(random.random(ROWS) < wrong, 1 - GOLD, GOLD)
    told = said(LOG.with_columns(odds=pl.Series(score), pred=pl.Series(pred)), "odds")
    sorts, of_model = (2 * roc_auc_score(GOLD, one) - 1 for one in (score, pred))
    assert (ODD["odds"] in "".join(told)) == (sorts >= max(of_model, 0.5)), told


def told_of_counts(counts: pl.DataFrame, name: str) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", polars_mcc.PredictionLogWarning)
        counts.mcc(weight="n").worst(name, depth=1)
    return [str(one.message) for one in caught]


def test_ordinary_keys_are_not_named():
    assert said(LOG, *ORDINARY) == []
    few = LOG.head(40)
    assert [one for one in said(few, "country", "is_new", "age") if "id" not in one] == []
    empty = LOG.clear()
    assert said(empty, *ORDINARY, "row", "old") == []


@pytest.mark.parametrize("seed", first(5, range(20)))
def test_keys_of_noise_are_not_named(seed):
    """A rare class, a bad model, keys of any kind."""
    random = np.random.default_rng(seed)
    rows, rare = 400, 0.03
    gold = (random.random(rows) < rare).astype(int)
    log = pl.DataFrame(
        {
            "few": random.integers(0, 3, rows),
            "many": random.integers(0, 40, rows).astype(str),
            "number": random.normal(size=rows),
            "share": random.random(rows),
            "flag": random.integers(0, 2, rows),
            "gold": gold,
            "pred": np.where(random.random(rows) < 0.03, 1 - gold, gold),
        }
    )
    told = said(log, "few", "many", "number", "share", "flag")
    assert [one for one in told if "is text with" not in one] == []


def test_the_key_of_a_large_log_is_judged_by_a_sample():
    rows = pl.int_range(300_000)
    gold = rows.hash(1) % 2
    log = pl.select(
        gold=gold,
        pred=pl.when(rows.hash(2) % 5 > 0).then(gold).otherwise(1 - gold),
        user=pl.format("u{}", rows.hash(3) % 4000),  # 75 rows each, 25 in a sample of 100,000
        row=rows,
        copy=gold,
    )
    told = said(log.lazy(), "user", "row", "copy")
    assert [re.findall(r"key '(\w+)'", one)[0] for one in told] == ["row", "copy"]


def test_a_few_texts_are_no_ids():
    assert [one for one in said(LOG, "country", min_n=10**6) if "country" in one] == []

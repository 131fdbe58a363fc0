"""A slice with one predicted label is said to have one: compare with counts of its rows."""

from __future__ import annotations

import json
import warnings
from collections import Counter

import numpy as np
import polars as pl
from support import in_turn

ROW = pl.int_range(6000)
LABELS = {
    "text": ["no", "yes", "maybe", "never"],
    "integers": [0, 1, 2, 3],
    "null": ["no", None, "maybe", "never"],
}


def log_of(labels: list) -> pl.DataFrame:
    """A log that errs in 5 % of rows, except in four countries.

    In c0 only the first label is predicted; in c1 only the last, which no gold label is; in c2
    also, but all gold labels are the first. In c3 two labels are predicted, often wrongly.
    """
    label = pl.Series("label", labels)
    return pl.select(place=ROW.hash(5) % 12, at=ROW.hash(6) % 6, wrong=ROW.hash(7) % 20).select(
        country=pl.format("c{}", "place"),
        gold=pl.lit(label).gather(pl.when(pl.col("place") == 2).then(0).otherwise(_GOLD)),
        pred=pl.lit(label).gather(
            pl.when(pl.col("place") == 0)
            .then(0)
            .when(pl.col("place").is_in([1, 2]))
            .then(3)
            .when(pl.col("place") == 3)
            .then(pl.col("wrong") % 2)
            .when(pl.col("wrong") == 0)
            .then((_GOLD + 1) % 3)
            .otherwise(_GOLD)
        ),
        user=ROW // 2,
        w=pl.lit(0.5),
        n=pl.lit(2),
    )


_GOLD = pl.when(pl.col("at") < 3).then(0).when(pl.col("at") < 5).then(1).otherwise(2)


def sentence_of(log: pl.DataFrame, country: str, times: float) -> str | None:
    """The sentence on a slice with one predicted label, from the rows of the slice."""
    rows = log.filter(country=country).select("gold", "pred").rows()
    golds, preds = Counter(gold for gold, _ in rows), {pred for _, pred in rows}
    if len(preds) > 1 or len(golds) < 2:
        return None
    [pred] = preds
    most, n = max(((gold, n) for gold, n in golds.items() if gold != pred), key=lambda one: one[1])
    pred, most = ("null" if one is None else one for one in (pred, most))
    return f"predicts only '{pred}': 0 of {n * times:g} '{most}' found"


@in_turn(
    labels=LABELS,
    **{
        "options, times": [
            ({}, 1),
            ({"sample_weight": "w"}, 0.5),
            ({"weight": "n"}, 2),
            ({"cluster": "user"}, 1),
        ]
    },
)
def test_a_listed_slice_that_predicts_one_label_says_so(labels, options, times):
    log = log_of(LABELS[labels])
    asked = log.mcc(nulls="label" if labels == "null" else "drop", **options)
    found = asked.worst("country", metric="accuracy")
    said = dict(found.select("country", "confusion").rows())
    assert {"c0", "c1", "c2", "c3"} == said.keys()
    for country, told in said.items():
        want = sentence_of(log, country, times)
        assert told == want or (want is None and " predicted " in told)
    assert said["c0"].startswith("predicts only ")
    assert said["c1"].startswith("predicts only ")
    assert found.filter(country="c0")["confused"].item() == 1.0


def test_also_if_the_rest_misses_the_label_as_often():
    """Nowhere is "yes" found, so no confusion is more frequent than in the rest."""
    is_odd = ROW % 4 == 0
    log = pl.select(
        place=pl.when(is_odd).then(pl.lit("odd")).otherwise(pl.lit("even")),
        gold=pl.when(is_odd & (ROW % 8 == 0) | (ROW % 90 == 1))
        .then(pl.lit("yes"))
        .otherwise(pl.lit("no")),
        pred=pl.lit("no"),
    )
    [row] = log.mcc.worst("place", metric="accuracy").rows(named=True)
    assert row["place"] == "odd"
    assert row["confusion"] == "predicts only 'no': 0 of 750 'yes' found"
    assert row["confused_gold"] is None


def test_rows_that_are_not_scored_do_not_count():
    log = log_of(LABELS["text"])
    unscored = log.filter(country="c0").head(50)
    log = pl.concat(
        [
            log,
            unscored.with_columns(gold=pl.lit(None, pl.String), pred=pl.lit("maybe")),
            unscored.with_columns(gold=pl.lit("yes"), pred=pl.lit(None, pl.String)),
        ]
    )
    found = log.mcc.worst("country", metric="accuracy").filter(country="c0")
    assert found["n_null"].item() == 100
    assert found["confusion"].item() == sentence_of(log_of(LABELS["text"]), "c0", 1)


def test_scores_confuse_no_labels():
    log = log_of(LABELS["text"]).with_columns(
        gold=pl.col("gold") == "no", s=pl.when(pl.col("pred") == "no").then(0.9).otherwise(0.2)
    )
    found = log.mcc(score="s").worst("country", metric="brier")
    assert found.height > 0
    assert found["confusion"].is_null().all()


def test_the_report_has_it_in_its_table():
    log = log_of(LABELS["text"]).filter(~pl.col("country").is_in(["c1", "c2", "c3"]))
    found = json.loads(log.mcc.report("country", metrics="accuracy", format="json"))
    [rows] = [section["rows"] for section in found["sections"] if section["id"] == "worst"]
    [told] = [row["confusion"] for row in rows if row["slice"] == "country = c0"]
    assert told == sentence_of(log, "c0", 1)


def test_the_default_metric_lists_it_too():
    log = log_of(LABELS["text"]).lazy()
    found = log.mcc.worst("country").collect()
    said = dict(found.select("country", "confusion").rows())
    assert {"c0", "c1"} <= said.keys()
    assert [said[one] for one in ("c0", "c1")] == [
        sentence_of(log.collect(), one, 1) for one in ("c0", "c1")
    ]


def test_what_cannot_be_computed_warns_nobody():
    """A constant key has no rest."""
    rng = np.random.default_rng(0)
    log = pl.DataFrame({"one": [1] * 60, "gold": rng.integers(0, 2, 60), "user": [*range(30)] * 2})
    log = log.with_columns(pred="gold")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = log.mcc(cluster="user").worst("one", verdicts=True)
    assert found.select("verdict", "diff").rows() == [("too few rows", None)]

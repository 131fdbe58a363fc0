"""The sentences of the verdict: their words, their numbers, and the section that each links to."""

from __future__ import annotations

import json
import re

import polars as pl
import pytest
from support import log_of

from polars_mcc import each, sets

N = 4_000
I = pl.int_range(N)  # noqa: E741
IS_BAD = (I % 10 == 3) & (I // 10 % 4 == 1)
MISSED = pl.when(IS_BAD).then(I % 3 > 0).otherwise(I % 29 == 0)
GOLD = I.hash() % 5
LOG = pl.select(
    gold=GOLD,
    pred=pl.when(MISSED).then((GOLD + 1) % 5).otherwise(GOLD),
    good=pl.when(I % 97 == 0).then((GOLD + 2) % 5).otherwise(GOLD),
    country=pl.format("c{}", I % 10),
    device=pl.format("d{}", I // 10 % 4),
)


def said(log, *keys, **options) -> list[str]:
    """The verdict, which is at most eight sentences, each of a section that is there."""
    report = json.loads(log.report(*keys, format="json", **options))
    ids = {section["id"] for section in report["sections"]}
    assert all(sentence["section"] in ids for sentence in report["verdict"])
    assert len(report["verdict"]) <= 8
    return [sentence["text"].replace("\u00a0", " ") for sentence in report["verdict"]]


def told(log, section: str, *keys, **options) -> list[str]:
    """The sentences of a section."""
    report = json.loads(log.report(*keys, format="json", **options))
    [texts] = [one["sentences"] for one in report["sections"] if one["id"] == section]
    return [text.replace("\u00a0", " ") for text in texts]


def test_how_good_how_sure_and_which_slices_are_behind():
    texts = said(LOG.mcc, "country", "device")
    score, low, high = LOG.mcc.score(ci=0.95).select("mcc", "mcc_low", "mcc_high").row(0)
    assert texts[0] == (
        f"MCC is {score:.3f} (95 % confidence interval {low:.3f} to {high:.3f}) over 4,000 rows."
    )
    right = 1 / 5 + score * 4 / 5
    meaning = f"With 5 equally frequent labels, an MCC of {score:.3f} means that {100 * right:.0f}"
    assert told(LOG.mcc, "total", "country") == [f"{meaning} % of the rows are right."]
    [found] = LOG.mcc.worst("country", "device").iter_rows(named=True)
    low, high = found["diff_low"], found["diff_high"]
    assert texts[2].replace("−", "-") == (
        f"1 of {found['n_tested']} slices tested is worse than the rest of the log: country = c3 "
        f"and device = d1, where MCC is {found['score']:.3f} over {found['n']} rows, and "
        f"{found['reference']:.3f} in the rest: a difference of {found['diff']:.3f} (95 % "
        f"confidence interval {low:.3f} to {high:.3f}; p < 0.001)."
    )
    gaps = LOG.mcc.gaps(each("country", "device")).sort("diff_low", descending=True)
    row = gaps.row(0, named=True)
    assert texts[1].startswith(f"MCC is {row['lowest_score']:.3f} in {row['lowest']} and ")
    assert texts[-1] == "All rows are scored."


def test_nothing_found_is_a_verdict():
    texts = said(LOG.mcc(pred="good"), "country", "device")
    assert texts[1] == "No gap between slices of one key is significant."
    n_tested = LOG.mcc(pred="good").worst("country", "device", verdicts=True)["n_tested"][0]
    assert texts[2] == f"None of {n_tested} slices tested is worse than the rest of the log."
    assert texts[3:] == ["All rows are scored."]


def test_which_model_is_better_and_where_it_is_not():
    both = LOG.with_columns(
        new=pl.when(pl.col("country") == "c7").then((pl.col("gold") + 1) % 5).otherwise("good")
    ).mcc(pred=["pred", "good", "new"])
    texts = said(both, "country")
    better, worse = both.compare().iter_rows(named=True)
    start = texts.index(next(text for text in texts if text.startswith("good is better")))
    first, second = texts[start].split("; new is ")
    assert first == (
        f"good is better than pred: the difference in MCC is +{better['diff']:.3f} (95 % "
        f"confidence interval {better['diff_low']:.3f} to {better['diff_high']:.3f}; p < 0.001), "
        "and it is worse in none of 10 slices"
    )
    word, other = ("better", "worse") if worse["diff"] > 0 else ("worse", "better")
    assert second.startswith(f"{word} than pred: ")
    by = both.compare("country").filter(model="new", verdict=other)
    row = by.sort(pl.col("diff").abs(), descending=True).row(0, named=True)
    named = f"{other} in {by.height} of 10 slices, most of all in country = {row['country']}: a "
    assert f", and it is {named}difference of " in second


@pytest.mark.slow
def test_where_a_model_is_worse_is_looked_for_in_pairs_of_keys():
    """One slice of 40 is worse, and no single key shows it."""
    is_there = (pl.col("country") == "c3") & (pl.col("device") == "d1") & (I.hash(7) % 5 < 2)
    new = pl.when(is_there).then((pl.col("gold") + 1) % 5).otherwise("gold")
    log = LOG.with_columns(old="good", new=new).mcc(pred=["old", "new"])
    [found] = [text for text in said(log, "country", "device") if "difference in MCC" in text]
    pairs = log.compare(sets(("country", "device")), correction="by")
    row = pairs.filter(country="c3", device="d1").row(0, named=True)
    assert row["p_adjusted"] < 0.05
    where = "of all in country = c3 and device = d1: a difference of"
    assert re.search(r"and it is (?:better or )?worse in \d of 54 slices, ", found), found
    assert f"{where} −{abs(row['diff']):.3f} (" in found
    one = json.loads(log.report("country", "device", depth=1, format="json"))
    assert not any("pairs of keys" in section["id"] for section in one["sections"])


def test_no_difference_is_said_so():
    log = LOG.with_columns(same="good").mcc(pred=["good", "same"])
    assert any(
        text.startswith(
            "same and good do not differ significantly: the difference in MCC is +0.000"
        )
        for text in said(log)
    )


def test_less_is_better_where_it_is():
    log = LOG.with_columns(pl.col("gold", "pred", "good") == 1).mcc(pred=["pred", "good"])
    texts = said(log, "country", metrics="fnr")
    assert texts[0].startswith("pred: fnr is 0.")
    better = "good is better than pred: the difference in fnr is −0."
    assert any(text.startswith(better) for text in texts)


def test_rows_that_are_not_scored_have_a_reason():
    log = log_of([("x", 0, None), ("x", None, 0), ("y", 1, 1), ("y", 0, 0)])
    assert said(log.mcc)[-1] == (
        "1 row is not scored: gold is null; 1 row is not scored: pred is null."
    )
    both = log.with_columns(other="gold").mcc(pred=["pred", "other"])
    assert said(both)[-1] == (
        "1 row is not scored for model pred: gold is null; 1 row is not scored for model pred: "
        "pred is null; 1 row is not scored for model other: gold is null, other is null."
    )


@pytest.mark.parametrize("rows", [[], [("x", 0, 0)], [("x", None, 0)]])
def test_little_to_say(rows):
    texts = said(log_of(rows).mcc(pred=["pred", "gold"]), "key")
    scored = bool(rows) and rows[0][1] is not None
    one_class = "all labels of 'gold' are 'ant': with one gold class, MCC and its kin are 0/0."
    if scored:
        assert texts[0] == "Read the warnings first: all labels of 'gold' are 'ant'."
        assert told(log_of(rows).mcc(pred=["pred", "gold"]), "labels", "key") == [one_class]
        assert texts[1].startswith("pred: MCC is undefined (0/0) over 1 row; gold: ")
    else:
        assert texts[0] == "pred: no row is scored; gold: no row is scored."
    assert "No slice was tested: none has enough rows and two labels." in texts
    assert (
        "gold and pred cannot be compared, because one of them has no confidence interval."
    ) in texts


@pytest.mark.parametrize("counts_as", [1.0, 0.5, -0.5])
def test_a_report_says_what_0_by_0_counts_as(counts_as):
    """A constant model, and a perfect one: MCC is 0/0 and 1."""
    gold = [0, 1] * 100
    log = pl.DataFrame({"gold": gold, "constant": [0] * 200, "perfect": gold, "k": ["a"] * 200})
    log = log.mcc(pred=["constant", "perfect"], zero_division=counts_as)
    [score] = [text for text in said(log, "k") if "(0/0)" in text]
    assert score.startswith("constant: MCC is undefined (0/0) over 200 rows; perfect: MCC is 1.000")
    meaning = f"0/0 counts as {counts_as:g} in every score."
    assert told(log, "total", "k") == [meaning]
    assert not [text for text in told(log(zero_division=0.0), "total", "k") if "0/0" in text]

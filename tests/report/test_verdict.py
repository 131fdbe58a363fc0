"""The verdict is sentences made of the numbers of an answer, each with the section that has it."""

from __future__ import annotations

import json

import polars as pl
import pytest
from support import log_of

from polars_mcc import sets

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
    report = json.loads(log.report(*keys, format="json", **options))
    ids = {section["id"] for section in report["sections"]}
    assert all(sentence["section"] in ids for sentence in report["verdict"])
    return [sentence["text"].replace("\u00a0", " ") for sentence in report["verdict"]]


def test_how_good_how_sure_and_which_slices_are_behind():
    texts = said(LOG.mcc, "country", "device")
    score, low, high = LOG.mcc.score(ci=0.95).select("mcc", "mcc_low", "mcc_high").row(0)
    assert texts[0] == f"MCC {score:.3f} (95 % interval {low:.3f} to {high:.3f}), of 4,000 rows."
    [found] = LOG.mcc.worst("country", "device").iter_rows(named=True)
    assert texts[1] == f"{found['n_tested']} slices looked at, 1 behind."
    assert texts[2].startswith(f"country = c3, device = d1: MCC {found['mcc']:.3f}, elsewhere ")
    assert f"n {found['n']}. Of gold {found['confused_gold']}, " in texts[2]
    confused = f"{100 * found['confused']:.0f} % are predicted {found['confused_pred']}; elsewhere"
    assert confused in texts[2]
    assert texts[3:] == ["All rows are scored."]


def test_nothing_found_is_a_verdict():
    texts = said(LOG.mcc(pred="good"), "country", "device")
    assert "looked at, none behind. Nearest: " in texts[1]
    assert len(texts) == 3


def test_which_model_is_better_and_where_it_is_not():
    both = LOG.with_columns(
        new=pl.when(pl.col("country") == "c7").then((pl.col("gold") + 1) % 5).otherwise("good")
    ).mcc(pred=["pred", "good", "new"])
    texts = said(both, "country")
    better, worse = both.compare().iter_rows(named=True)
    start = texts.index(next(text for text in texts if text.startswith("good is better")))
    assert texts[start] == (
        f"good is better than pred: MCC +{better['diff']:.3f} (95 % interval "
        f"{better['diff_low']:.3f} to {better['diff_high']:.3f}; p < 0.001)."
    )
    assert texts[start + 1] == "It is shown to be worse in none of 10 slices by country."
    by = both.compare("country").filter(model="new", country="c7").row(0, named=True)
    word = "better" if worse["diff"] > 0 else "worse"
    assert texts[start + 2].startswith(f"new is {word} than pred: ")
    if word == "better":
        expected = f"c7 (−{abs(by['diff']):.3f}, p < 0.001)"
        assert texts[start + 3] == f"It is worse in 1 of 10 slices by country: {expected}."


def test_where_a_model_is_worse_is_looked_for_in_pairs_of_keys():
    """One cell of 40 is worse, which no key alone shows."""
    is_there = (pl.col("country") == "c3") & (pl.col("device") == "d1") & (I.hash(7) % 5 < 2)
    new = pl.when(is_there).then((pl.col("gold") + 1) % 5).otherwise("gold")
    log = LOG.with_columns(old="good", new=new).mcc(pred=["old", "new"])
    texts = said(log, "country", "device")
    [found] = [text for text in texts if "pairs of keys" in text]
    pairs = log.compare(sets(("country", "device")), correction="by")
    row = pairs.filter(country="c3", device="d1").row(0, named=True)
    assert row["p_adjusted"] < 0.05
    assert found.startswith(
        "It is worse in 1 of 40 slices by pairs of keys: country = c3, device = d1 "
        f"(−{abs(row['diff']):.3f}, p"
    )
    one = said(log, "country", "device", depth=1)
    assert not any("pairs of keys" in text for text in one)


def test_no_difference_is_said_so():
    log = LOG.with_columns(same="good").mcc(pred=["good", "same"])
    assert any(
        text.startswith("Nothing shows that same differs from good: MCC +0.000")
        for text in said(log)
    )


def test_less_is_better_where_it_is():
    log = LOG.with_columns(pl.col("gold", "pred", "good") == 1).mcc(pred=["pred", "good"])
    texts = said(log, "country", metric="fnr")
    assert texts[0].startswith("pred: fnr 0.")
    assert any(text.startswith("good is better than pred: fnr −0.") for text in texts)


def test_rows_that_are_not_scored_have_a_reason():
    log = log_of([("x", 0, None), ("x", None, 0), ("y", 1, 1), ("y", 0, 0)])
    assert said(log.mcc)[-2:] == [
        "1 row is not scored: gold is null.",
        "1 row is not scored: pred is null.",
    ]
    both = log.with_columns(other="gold").mcc(pred=["pred", "other"])
    assert said(both)[-1] == "1 row is not scored by other: gold is null, other is null."


@pytest.mark.parametrize("rows", [[], [("x", 0, 0)], [("x", None, 0)]])
def test_little_to_say(rows):
    texts = said(log_of(rows).mcc(pred=["pred", "gold"]), "key")
    scored = bool(rows) and rows[0][1] is not None
    assert texts[0] == ("pred: MCC 0.000, of 1 row." if scored else "pred: no row is scored.")
    assert "No slice has enough rows and two labels: none was looked at." in texts
    assert "gold and pred cannot be compared: one has no interval." in texts

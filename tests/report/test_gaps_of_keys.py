"""The gaps between slices that a report tells: those of `gaps`, and none where nothing differs."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support import first

from polars_mcc import bins, each, trailing

KEYS = ("a", "b")
NONE = "No gap between slices of one key is significant."


def log_of(seed: int, rows: int = 4000, false_positives: float = 0.1) -> pl.DataFrame:
    """Two keys of four values; in a = 0, other rows of gold 0 are predicted 1."""
    rng = np.random.default_rng(seed)
    keys = {key: rng.integers(0, 4, rows) for key in KEYS}
    gold = rng.integers(0, 2, rows)
    misses = np.where((keys["a"] == 0) & (gold == 0), false_positives, 0.1)
    pred = np.where(rng.random(rows) < misses, 1 - gold, gold)
    return pl.DataFrame({**keys, "gold": gold, "pred": pred})


LOG = log_of(3, false_positives=0.3)


def told(log, *keys, **options) -> tuple[list[str], list[dict], dict | None]:
    """The sentences on gaps, the rows of their section, and the section, if there is one."""
    report = json.loads(log.report(*keys, format="json", **options))
    texts = [one["text"] for one in report["verdict"] if one["kind"] == "gaps"]
    section = next((one for one in report["sections"] if one["id"] == "gaps"), None)
    rows = [] if section is None else section["rows"]
    return [text.replace("\u00a0", " ") for text in texts], rows, section


def rates_of(log: pl.DataFrame, key: str, gold: int) -> dict[str, float]:
    """The share of the rows of a gold label that is predicted as the other, of each slice."""
    counts: dict[str, list[int]] = {}
    for value, label, pred in log.select(key, "gold", "pred").rows():
        if label == gold:
            counts.setdefault(f"{key} = {value}", []).append(pred != gold)
    return {name: sum(wrong) / len(wrong) for name, wrong in counts.items()}


@pytest.mark.parametrize("positive", [1, 0, None])
def test_the_section_is_the_answer_of_its_query(positive):
    log = LOG.mcc(positive=positive)
    _, rows, section = told(log, *KEYS, min_n=20, ci=0.9)
    answer = eval(section["query"], {"log": LOG, "each": each})  # noqa: S307
    order = ["keys", "metric"]
    assert_frame_equal(
        pl.DataFrame(rows).sort(order), answer.sort(order), check_dtypes=False, rel_tol=1e-12
    )
    assert {row["metric"] for row in rows} == {"mcc", "fnr", "fpr"}
    assert [row["diff_low"] for row in rows] == sorted(answer["diff_low"], reverse=True)
    positive = 1 if positive is None else positive
    for row in rows:
        if row["metric"] != "mcc":
            of_label = positive if row["metric"] == "fnr" else 1 - positive
            rates = rates_of(LOG, row["keys"], of_label)
            assert row["lowest"] == min(rates, key=rates.__getitem__)
            assert row["highest"] == max(rates, key=rates.__getitem__)
            assert row["diff"] == pytest.approx(max(rates.values()) - min(rates.values()))
    assert f" is {positive}, predicted" not in section["notes"][0]


@pytest.mark.parametrize(
    "dtype",
    first(
        3,
        [
            *(pl.Decimal(5, 1), pl.Float16, pl.UInt128, pl.String, pl.Enum(["0", "1"])),
            *(pl.Categorical, pl.Duration, pl.Binary, pl.Boolean),
            *(pl.Decimal(38, 0), pl.Float32, pl.Int128, pl.Date),
        ],
    ),
    ids=str,
)
def test_labels_of_any_dtype_have_gaps(dtype):
    labels = pl.Series(["0", "1"])
    if dtype not in {pl.String, pl.Binary, pl.Categorical} and not isinstance(dtype, pl.Enum):
        labels = pl.Series([0, 1], dtype=pl.Int32)
    labels = labels.cast(dtype)
    other = LOG.with_columns(pl.lit(labels).gather(side).alias(side) for side in ("gold", "pred"))
    texts, rows, _ = told(other.mcc, *KEYS)
    expected, of_integers, _ = told(LOG.mcc, *KEYS)
    assert rows == of_integers
    assert len(texts) == len(expected) == 1


def test_the_verdict_says_the_widest_gaps():
    [gap], rows, _ = told(LOG.mcc(positive=1), *KEYS)
    row = rows[0]
    low, high = row["diff_low"], row["diff_high"]
    assert gap == (
        f"fpr (label 0, predicted 1) is {row['lowest_score']:.3f} in {row['lowest']} and "
        f"{row['highest_score']:.3f} in a = 0: a ratio of {row['ratio']:.3f} "
        f"({row['ratio_low']:.3f} to {row['ratio_high']:.3f}), a gap of "
        f"{row['diff']:.3f} (95 % confidence interval {low:.3f} to {high:.3f}; p < 0.001)."
    )
    rates = rates_of(LOG, "a", 0)
    assert row["diff"] == pytest.approx(rates["a = 0"] - min(rates.values()))
    both = LOG.with_columns(good="gold").mcc(pred=["good", "pred"])
    [gap], rows, _ = told(both, *KEYS)
    assert gap.startswith("pred: fpr (label 0, predicted 1) is ")
    assert len(rows) == 2 * 2 * 3
    assert told(log_of(1).mcc, *KEYS)[0] == [NONE]
    few = [
        "No gap between slices of one key is measured: fewer than two of a key have enough rows."
    ]
    assert told(LOG.mcc, *KEYS, min_n=3000)[0] == few
    assert told(LOG.head(0).mcc, *KEYS)[0] == few


def test_the_tables_show_the_slices_in_words():
    page, text = (LOG.mcc.report("a", format=form) for form in ("html", "md"))
    shown = ["keys", "metric", "lowest", "lowest_score", "highest", "highest_score"]
    shown += ["ratio", "low to high", "diff", "low to high", "p_adjusted", "verdict"]
    assert f"| {' | '.join(shown)} |" in text
    assert "<h2>Gaps between slices</h2>" in page
    assert "a = 0" in page.partition("<h2>Gaps between slices</h2>")[2].partition("</section>")[0]


def test_which_logs_have_gaps():
    third = LOG.with_columns(gold=pl.when(pl.int_range(pl.len()) < 40).then(2).otherwise("gold"))
    texts, rows, _ = told(third.mcc, *KEYS, metrics="accuracy")
    assert [row["metric"] for row in rows] == ["accuracy"] * 2
    assert texts[0].startswith("accuracy is ")
    assert "ratio" in texts[0]
    assert told(LOG.with_columns(user="a").mcc(cluster="user"), *KEYS) == ([], [], None)
    assert told(LOG.mcc) == ([], [], None)
    days = LOG.with_columns(day=pl.date(2026, 1, 1) + pl.duration(days="a"))
    assert told(days.mcc, trailing("day", "2d")) == ([], [], None)
    of_one = [row["metric"] for row in told(LOG.mcc(positive=1), "a", metrics="fnr")[1]]
    assert sorted(of_one) == ["fnr", "fpr"]
    [row] = told(third.mcc(positive=1), "a", metrics="cost(fn=10, fp=1)")[1]
    paid = {
        f"a = {value}": np.mean([10 * (g == 1 != p) + (g != 1 == p) for g, p in rows.rows()])
        for (value,), rows in third.select("a", "gold", "pred")
        .partition_by("a", as_dict=True, include_key=False)
        .items()
    }
    assert row["metric"] == "cost"
    assert row["highest_score"] == pytest.approx(paid[row["highest"]]) == max(paid.values())
    plain, weighed = (
        told(log, bins("a", [1]))[1] for log in (LOG.mcc, LOG.with_columns(n=2).mcc(weight="n"))
    )
    assert [row["n"] for row in weighed] == [2 * row["n"] for row in plain]
    sampled = told(LOG.with_columns(w=2.0).mcc(sample_weight="w"), bins("a", [1]))[1]
    assert [row["diff_low"] for row in sampled] == pytest.approx([row["diff_low"] for row in plain])


@pytest.mark.release
def test_where_nothing_differs_nothing_is_told():
    """At most 5 % of 100 logs, give or take two standard errors, by the query of the section."""
    logs = [log_of(seed, 1000).mcc(positive=1) for seed in range(100)]
    query = told(logs[0], *KEYS, depth=1)[2]["query"].replace("log.mcc(positive=1)", "log")
    sure = []
    for seed, log in enumerate(logs):
        found = eval(query, {"log": log, "each": each})  # noqa: S307
        sure.append((found["p_adjusted"] < 0.05).any())
        if sure[-1] or seed < 5:
            assert (told(log, *KEYS, depth=1)[0] != [NONE]) == sure[-1]
    assert 0 < sum(sure) <= 100 * (0.05 + 2 * np.sqrt(0.05 * 0.95 / 100))

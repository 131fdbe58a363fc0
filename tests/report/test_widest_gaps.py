"""The gaps in error rates that a report tells: real ones, and none where nothing differs."""

from __future__ import annotations

import itertools
import json

import numpy as np
import polars as pl
import pytest
from scipy.stats import false_discovery_control, norm
from support import first

from polars_mcc import bins, each
from polars_mcc._report.widest_gaps import gaps

KEYS = ("a", "b")


def log_of(seed: int, rows: int = 4000, false_positives: float = 0.1) -> pl.DataFrame:
    """Two keys of four values; in a = 0, other rows of gold 0 are predicted 1."""
    rng = np.random.default_rng(seed)
    keys = {key: rng.integers(0, 4, rows) for key in KEYS}
    gold = rng.integers(0, 2, rows)
    misses = np.where((keys["a"] == 0) & (gold == 0), false_positives, 0.1)
    pred = np.where(rng.random(rows) < misses, 1 - gold, gold)
    return pl.DataFrame({**keys, "gold": gold, "pred": pred})


def p_of(k: int, n: int, j: int, m: int) -> float:
    """The likelihood ratio test of two proportions, each moved by half a row to the other."""
    v, w = (k + 0.5) / n, (j - 0.5) / m
    if v >= w:
        return 1.0
    both = (n * v + m * w) / (n + m)

    def far(share: float) -> float:
        parts = ((share, both), (1 - share, 1 - both))
        return sum(one * np.log(one / other) for one, other in parts if one > 0)

    return float(2 * norm.sf(np.sqrt(2 * (n * far(v) + m * far(w)))))


def wanted(log: pl.DataFrame) -> dict:
    """The widest significant gap of each key and gold label: every pair of slices, in Python."""
    found = []
    for key, gold in itertools.product(KEYS, (0, 1)):
        of_gold = log.filter(gold=gold)
        rates = [
            (value, rows.height, (rows["pred"] != gold).sum())
            for (value,), rows in of_gold.group_by(key)
        ]
        for low, high in itertools.permutations(sorted(rates), 2):
            if low[2] / low[1] < high[2] / high[1]:
                p = p_of(low[2], low[1], high[2], high[1])
                found.append((key, gold, high, low, high[2] / high[1] - low[2] / low[1], p))
    adjusted = false_discovery_control([one[-1] for one in found])
    widest: dict = {}
    for (key, gold, high, low, diff, _), p in zip(found, adjusted, strict=True):
        if p < 0.05 and diff > widest.get((key, gold), (0,))[0]:
            widest[key, gold] = (diff, high, low, p)
    return widest


@pytest.mark.parametrize("seed", range(6))
def test_the_widest_gap_of_each_key(seed):
    log = log_of(seed, false_positives=0.3)
    found = gaps(log.mcc.classes(each(*KEYS)), KEYS, 30, 0.05)
    expected = wanted(log)
    assert ("a", 0) in expected
    assert {(row["key"], row["gold"]) for row in found.rows(named=True)} == {*expected}
    assert found["diff"].is_sorted(descending=True)
    for row in found.rows(named=True):
        diff, high, low, p = expected[row["key"], row["gold"]]
        assert row["pred"] == 1 - row["gold"]
        assert (row["slice"], row["n"]) == (f"{row['key']} = {high[0]}", high[1])
        assert (row["slice_to"], row["n_to"]) == (f"{row['key']} = {low[0]}", low[1])
        assert row["rate"] == pytest.approx(high[2] / high[1])
        assert row["diff"] == pytest.approx(diff)
        assert row["p_adjusted"] == pytest.approx(p, rel=1e-6)


@pytest.mark.parametrize(
    "dtype",
    first(
        3,
        [
            *(pl.Decimal(5, 1), pl.Float16, pl.UInt128, pl.String, pl.Enum(["0", "1"])),
            *(pl.Categorical, pl.Duration, pl.Binary),
            *(pl.Decimal(38, 0), pl.Float32, pl.Int128, pl.Date),
        ],
    ),
    ids=str,
)
def test_labels_of_any_dtype_have_gaps(dtype):
    log = log_of(3, false_positives=0.3)
    labels = pl.Series(["0", "1"])
    if dtype not in {pl.String, pl.Binary, pl.Categorical} and not isinstance(dtype, pl.Enum):
        labels = pl.Series([0, 1], dtype=pl.Int32)
    labels = labels.cast(dtype)
    other = log.with_columns(pl.lit(labels).gather(side).alias(side) for side in ("gold", "pred"))
    found = gaps(other.mcc.classes(each(*KEYS)), KEYS, 30, 0.05)
    want = gaps(log.mcc.classes(each(*KEYS)), KEYS, 30, 0.05)
    assert want.height > 0
    assert found.drop("gold", "pred").equals(want.drop("gold", "pred"))
    for side in ("gold", "pred"):
        assert found[side].equals(labels.gather(want[side]), check_names=False)
    assert len(verdict(other.mcc, *KEYS)) == 1 + want.height


@pytest.mark.slow
def test_where_nothing_differs_nothing_is_told():
    """At most 5 % of 200 logs, give or take two standard errors."""
    told = sum(
        not gaps(log_of(seed, 1000).mcc.classes(each(*KEYS)), KEYS, 30, 0.05).is_empty()
        for seed in range(200)
    )
    assert told <= 200 * (0.05 + 2 * np.sqrt(0.05 * 0.95 / 200))


def test_small_slices_and_many_slices_are_left_out():
    log = log_of(0, false_positives=0.5).with_columns(many=pl.int_range(pl.len()) % 60)
    found = gaps(log.mcc.classes(each("a", "many")), ("a", "many"), 30, 0.05)
    assert {*found["key"]} == {"a"}
    assert gaps(log.mcc.classes(each("a")), ("a",), 10_000, 0.05).is_empty()


def verdict(log, *keys, **options) -> list[str]:
    found = json.loads(log.report(*keys, format="json", **options))
    texts = [one["text"] for one in found["verdict"] if one["kind"] in {"gap", "gaps"}]
    return [text.replace("\u00a0", " ") for text in texts]


@pytest.mark.slow
def test_the_verdict_says_the_rates_with_their_rows():
    log = log_of(3, false_positives=0.3)
    [head, gap] = verdict(log.mcc, *KEYS)
    assert head == "The widest gaps in error rates between slices of one key:"
    [row] = gaps(log.mcc.classes(each(*KEYS)), KEYS, 30, 0.05).rows(named=True)
    inside = log.filter(gold=0, a=0)
    outside = log.filter(pl.col("a") == int(row["slice_to"][-1]), gold=0)
    rates = [f"{100 * (one['pred'] == 1).mean():.3g}" for one in (inside, outside)]
    assert gap.startswith(f"a = 0: {round(float(rates[0]))} % of {inside.height} rows with gold 0")
    assert gap.endswith(f"% of {outside.height} (p < 0.001).")
    assert " are predicted 1; a = " in gap
    none = verdict(log_of(1).mcc, *KEYS)
    assert none == ["No gap in error rates between slices of one key is significant."]


@pytest.mark.slow
def test_only_two_classes_and_independent_rows_have_gaps():
    log = log_of(3, false_positives=0.3)
    third = log.with_columns(gold=pl.when(pl.int_range(pl.len()) < 40).then(2).otherwise("gold"))
    assert verdict(third.mcc, *KEYS) == []
    assert verdict(log.with_columns(user="a").mcc(cluster="user"), *KEYS) == []
    assert verdict(log.mcc) == []
    assert len(verdict(log.with_columns(other="pred").mcc(pred=["pred", "other"]), *KEYS)) == 3
    assert len(verdict(log.with_columns(n=2).mcc(weight="n"), bins("a", [1]))) == 2

"""`changes`: beside loops over days with scikit-learn's scores, and where nothing can be said."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import special, stats
from sklearn import metrics as sk
from support import first

import polars_mcc
from polars_mcc import PredictionLog, bins, each, rollup, trailing

LABELS = ["ant", "bee", "cat"]
SCORES = {
    "mcc": sk.matthews_corrcoef,
    "accuracy": sk.accuracy_score,
    "kappa": sk.cohen_kappa_score,
    "error_rate": sk.zero_one_loss,
}
START = dt.date(2026, 1, 1)


def log_of(seed: int, *, days: int = 30, rows: int = 900, fall: int | None = None) -> pl.DataFrame:
    """Two slices; from day `fall` on, the first is right less often."""
    rng = np.random.default_rng(seed)
    day = rng.integers(0, days, rows)
    part = rng.choice(["x", "y"], rows)
    gold = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    right = np.where((part == "x") & (day >= (days if fall is None else fall)), 0.45, 0.8)
    pred = np.where(rng.random(rows) < right, gold, rng.integers(0, 3, rows))
    return pl.DataFrame(
        {
            "part": part,
            "day": [START + dt.timedelta(int(d)) for d in day],
            "gold": [LABELS[i] for i in gold],
            "pred": [LABELS[i] for i in pred],
        }
    )


def score_of(metric: str, table: np.ndarray) -> float:
    """The score of a table of counts, by scikit-learn."""
    gold, pred = np.indices((3, 3))
    return SCORES[metric](gold.ravel(), pred.ravel(), sample_weight=table.ravel())


def by_loops(rows: pl.DataFrame, metric: str, min_n: int, dispersion: float) -> dict[str, object]:
    """The answer for one slice. Its dispersion is tested with the arrays."""
    table = np.zeros((3, 3))
    codes = [(d, LABELS.index(g), LABELS.index(p)) for _, d, g, p in rows.iter_rows()]
    for _, g, p in codes:
        table[g, p] += 1
    turn = -1 if metric == "error_rate" else 1
    phi, step = np.zeros((3, 3)), 1e-4
    for g, p in itertools.product(range(3), repeat=2):
        ends = []
        for sign in (1, -1):
            moved = table / len(codes)
            moved[g, p] += sign * step
            ends.append(score_of(metric, moved))
        phi[g, p] = turn * (ends[0] - ends[1]) / (2 * step)
    rates = table / table.sum(1, keepdims=True)
    above = phi - (rates * phi).sum(1, keepdims=True)
    days = sorted({day for day, *_ in codes})
    splits, of_gold = [], table.sum(1)
    for day in days[:-1]:
        before = Counter(g for d, g, _ in codes if d <= day)
        n = np.array([before[g] for g in range(3)])
        moved = sum(above[g, p] for d, g, p in codes if d <= day)
        drawn = n * (of_gold - n) / (of_gold - 1)
        variance = (drawn * (rates * above**2).sum(1)).sum()
        skewed = drawn * (of_gold - 2 * n) / (of_gold - 2)
        third = np.fmax(skewed * (rates * above**3).sum(1), 0).sum() / variance**1.5
        errors = moved / math.sqrt(variance)
        normal = 6 / third * (np.cbrt(1 + third * errors / 2) - 1) + third / 6 if third else errors
        splits.append({"n": n, "variance": variance, "errors": normal})
    allowed = [k for k, s in enumerate(splits) if min_n <= s["n"].sum() <= len(codes) - min_n]
    best = max(allowed, key=lambda k: splits[k]["errors"])
    h = max(splits[best]["errors"], 0) / math.sqrt(dispersion)
    p_value = stats.norm.sf(h)
    for one, two in itertools.pairwise(allowed):
        n, after = splits[one]["n"], splits[two]["n"]
        shared = (n * (of_gold - after) / (of_gold - 1) * (rates * above**2).sum(1)).sum()
        r = shared / math.sqrt(splits[one]["variance"] * splits[two]["variance"])
        p_value += 2 * special.owens_t(h, math.sqrt((1 - r) / (1 + r)))
    since = days[best + 1]
    answer: dict[str, object] = {"since": since, "p_value": min(p_value, 1.0)}
    before, after = (lambda d: d < since), (lambda d: d >= since)
    names = ("before", "reference", "reference_expected"), ("after", "score", "expected")
    for (side, score, expected), is_here in zip(names, (before, after), strict=True):
        own = np.zeros((3, 3))
        for d, g, p in codes:
            own[g, p] += is_here(d)
        answer[f"n_{side}"] = own.sum()
        answer[score] = score_of(metric, own)
        answer[expected] = score_of(metric, own.sum(1, keepdims=True) * rates)
    return answer


@pytest.mark.parametrize("metric", SCORES)
@pytest.mark.parametrize("seed", first(1, range(4)))
def test_beside_loops(metric, seed):
    log = log_of(seed, fall=18 if seed % 2 else None)
    answer = log.mcc(time="day").changes("part", metric=metric, min_n=60, max_changes=1)
    assert answer.height == 2
    for row in answer.iter_rows(named=True):
        expected = by_loops(log.filter(part=row["part"]), metric, 60, row["dispersion"])
        for name, value in expected.items():
            if isinstance(value, dt.date):
                assert row[name] == value
            else:
                assert row[name] == pytest.approx(value, rel=1e-4, abs=1e-9), name
        explained = row["expected"] - row["reference_expected"]
        diff = row["score"] - row["reference"] - explained
        assert row["diff"] == pytest.approx(diff, abs=1e-14)


@pytest.mark.parametrize("to", ["expected", "rest"])
@pytest.mark.parametrize("alternative", ["worse", "better", "two-sided"])
def test_a_change_is_sure_exactly_if_its_limits_leave_out_0(to, alternative):
    seen = set()
    for seed in range(12):
        log = log_of(seed, fall=15 if seed % 3 == 0 else None).mcc(time="day")
        options = {"to": to, "alternative": alternative, "ci": 0.8, "max_changes": 1}
        answer = log.changes("part", correction="bonferroni", **options)
        for low, high, p, adjusted, verdict in answer.select(
            "diff_low", "diff_high", "p_value", "p_adjusted", "verdict"
        ).iter_rows():
            seen.add(verdict)
            assert adjusted == pytest.approx(min(2 * p, 1))
            assert (verdict in {"worse", "better"}) == (adjusted < 0.2)
            falls, rises = alternative != "better" and high < 0, alternative != "worse" and low > 0
            assert (p < 0.2 - 1e-6) == (falls or rises)
            assert verdict not in {"worse": {"better"}, "better": {"worse"}}.get(alternative, ())
    assert {"no change", "worse" if alternative != "better" else "no change"} <= seen


def test_a_fall_is_found_with_its_day():
    log = log_of(1, days=60, rows=6000, fall=40)
    found = log.mcc(time="day").changes("part")
    assert found["part"].to_list()[0] == "x"
    assert found["verdict"].to_list() == ["worse", "no change"]
    assert abs((found["since"][0] - START).days - 40) <= 1
    assert found["p_value"][0] < 1e-9


def fallen_and_recovered() -> PredictionLog:
    log = log_of(2, days=60, rows=8000)
    bad = (pl.col("part") == "x") & pl.col("day").is_between(
        START + dt.timedelta(20), START + dt.timedelta(34)
    )
    return log.with_columns(pred=pl.when(bad).then(pl.lit("ant")).otherwise("pred")).mcc(time="day")


def test_a_fall_and_a_recovery_are_two_changes():
    log = fallen_and_recovered()
    found = log.changes("part", alternative="two-sided")
    both = found.filter(part="x").sort("since")
    assert both["verdict"].to_list() == ["worse", "better"]
    assert [(day - START).days for day in both["since"]] == [20, 35]
    once = log.changes("part", alternative="two-sided", max_changes=1)
    assert once["part"].n_unique() == once.height
    falls = log.changes("part").filter(part="x")
    assert falls.select("verdict", pl.col("since").dt.day()).rows() == [("worse", 21)]


def test_a_moved_mix_of_labels_is_no_change():
    """Recall and false alarms stay, and there are ten times as many positives: accuracy falls."""
    rng = np.random.default_rng(4)
    n, day = 20_000, rng.integers(0, 60, 20_000)
    gold = rng.random(n) < np.where(day < 30, 0.05, 0.5)
    pred = np.where(gold, rng.random(n) < 0.6, rng.random(n) < 0.05)
    days = [START + dt.timedelta(int(d)) for d in day]
    log = pl.DataFrame({"day": days, "gold": gold, "pred": pred}).mcc(time="day")
    [row] = log.changes(metric="accuracy").to_dicts()
    assert (row["verdict"], row["since"]) == ("labels moved", START + dt.timedelta(30))
    assert row["score"] < row["reference"] - 0.1
    assert row["expected"] == pytest.approx(row["score"], abs=0.02)
    assert row["diff_low"] < 0 < row["diff_high"]
    [plain] = log.changes(metric="accuracy", to="rest").to_dicts()
    assert plain["verdict"] == "worse"
    assert plain["diff"] == plain["score"] - plain["reference"]


def test_periods_and_times():
    log = log_of(5, fall=15)
    by_day = log.mcc(time="day").changes("part")
    hours = pl.col("day").cast(pl.Datetime("us")) + pl.duration(hours=pl.int_range(pl.len()) % 24)
    for dtype in (pl.Datetime("ms"), pl.Datetime("us", "Asia/Tokyo")):
        zone = dtype.time_zone
        times = log.with_columns(day=hours.dt.replace_time_zone(zone).cast(dtype))
        found = times.mcc(time="day").changes("part")
        assert found.schema["since"] == dtype
        assert_frame_equal(found.with_columns(pl.col("since").dt.date()), by_day)
    each_time = log.mcc(time="day").changes("part", every=None)
    assert_frame_equal(each_time, by_day)
    weekly = log.mcc(time="day").changes("part", every="1w")
    assert set(weekly["since"].dt.weekday()) == {1}
    none = log.with_columns(day=pl.when(pl.int_range(pl.len()) % 5 > 0).then("day"))
    found = none.mcc(time="day").changes("part")
    untimed = none.filter(pl.col("day").is_null()).group_by("part").len()
    assert sorted(found.select("part", "n_untimed").rows()) == sorted(untimed.rows())
    rest = none.drop_nulls().mcc(time="day").changes("part")
    assert_frame_equal(found.drop("n_untimed"), rest.drop("n_untimed"))


def of_blocks(rows: pl.DataFrame, block_of: Callable[[dt.datetime], int]) -> list[float]:
    """The dispersion of accuracy, for each cut of a slice into two, if blocks are so numbered."""
    hits: dict[dt.datetime, list[bool]] = defaultdict(list)
    for time, gold, pred in rows.sort("time").select("time", "gold", "pred").iter_rows():
        hits[time].append(gold == pred)
    mean = sum(map(sum, hits.values())) / rows.height
    moved = [sum(hit) - len(hit) * mean for hit in hits.values()]
    variance = [len(hit) * mean * (1 - mean) for hit in hits.values()]
    found = []
    for cut in range(1, len(hits)):
        blocks: dict[int, float] = defaultdict(float)
        for i, time in enumerate(hits):
            part = slice(cut) if i < cut else slice(cut, None)
            less = variance[i] * sum(moved[part]) / sum(variance[part])
            blocks[block_of(time)] += moved[i] - less
        excess = sum(x**2 for x in blocks.values()) / sum(variance)
        found.append(max(1.0, excess * len(blocks) / (len(blocks) - 2)))
    return found


def test_blocks_are_of_the_calendar_whatever_other_slices_and_times_there_are():
    monday, hours, reached = dt.datetime(1969, 12, 29), dt.timedelta(hours=42), 0
    rng = np.random.default_rng(7)
    for every, step, block_of in (
        ("1d", dt.timedelta(1), lambda time: (time - monday).days // 7),
        (None, dt.timedelta(1), lambda time: (time - monday).days // 7),
        ("6h", dt.timedelta(hours=6), lambda time: (time - dt.datetime(1970, 1, 1)) // hours),
        ("1mo", dt.timedelta(31), lambda time: ((time.year - 1970) * 12 + time.month - 1) // 7),
    ):
        times = [dt.datetime(2026, 1, 1) + i * step for i in range(60) if rng.random() < 0.8]
        if every == "1mo":
            times = [time.replace(day=1) for time in times]
        right = dict(zip(times, 0.7 + 0.3 * np.sin(np.arange(len(times)) / 3), strict=True))
        rows = pl.DataFrame({"time": times * 20, "part": "x", "gold": [0, 1] * (10 * len(times))})
        hit = pl.Series([rng.random() < right[time] for time in rows["time"]])
        rows = rows.with_columns(pred=pl.when(hit).then("gold").otherwise(1 - pl.col("gold")))
        earlier = [time - 3 * step for time in times]
        beside = rows.with_columns(time=pl.Series(earlier * 20), part=pl.lit("y"))
        asked = {"every": every, "metric": "accuracy", "to": "rest", "max_changes": 1}
        whole = rows.vstack(beside)
        answers = [
            log.mcc(time="time").changes("part", **asked).filter(part="x").to_dicts()[0]
            for log in (rows, whole)
        ]
        for name in ("p_value", "dispersion"):
            alone, other = (answer[name] for answer in answers)
            assert other == pytest.approx(alone, rel=1e-12), (every, name)
        by_hand = min(of_blocks(rows, block_of), key=lambda d: abs(d - alone))
        assert alone == pytest.approx(by_hand, rel=1e-9), every
        assert alone > 1.5
        reached += 1
    assert reached == 4


def test_lookback_is_before_the_end_of_the_newest_period():
    log = log_of(6)
    newest = START + dt.timedelta(29)
    found = log.mcc(time="day").changes("part", lookback="10d")
    late = log.filter(pl.col("day") > newest - dt.timedelta(10))
    assert_frame_equal(found, late.mcc(time="day").changes("part"))
    assert_frame_equal(found, log.mcc(time="day").changes("part", lookback=dt.timedelta(10)))


def test_kinds_of_logs_agree(tmp_path):
    log = log_of(7, fall=15)
    expected = log.mcc(time="day").changes("part")
    assert_frame_equal(log.lazy().mcc(time="day").changes("part").collect(), expected)
    counts = log.mcc.counts("part", "day").sample(fraction=1, shuffle=True, seed=1)
    assert counts.mcc(weight="n", time="day").changes("part").equals(expected)
    floats = counts.with_columns(pl.col("n").cast(pl.Float64))
    as_floats = floats.mcc(weight="n", time="day").changes("part")
    assert_frame_equal(as_floats, expected, check_dtypes=False, rel_tol=1e-12)
    engine = PredictionLog(log.to_arrow(), time="day").changes("part")
    assert_frame_equal(engine, expected)
    log.write_parquet(tmp_path / "log.parquet")
    scanned = pl.scan_parquet(tmp_path / "log.parquet").mcc(time="day").changes("part")
    assert_frame_equal(scanned.collect(), expected)
    models = log.with_columns(other="gold").mcc(pred=["pred", "other"], time="day").changes("part")
    assert_frame_equal(
        models.filter(model="pred").drop("model", "p_adjusted"), expected.drop("p_adjusted")
    )
    of_right = models.filter(model="other")
    assert of_right["verdict"].to_list() == ["not judged"] * 2


def test_keys():
    log = log_of(8).with_columns(x=pl.int_range(pl.len()) % 10, s=pl.lit("a")).mcc(time="day")
    sets = log.changes(each("part", total=True))
    assert sorted(sets["keys"].unique()) == ["", "part"]
    total = sets.filter(keys="").drop("keys", "part")
    assert_frame_equal(total.drop("p_adjusted"), log.changes().drop("p_adjusted"))
    crossed = log.changes(rollup("part", "s"))
    assert sorted(crossed["keys"].unique()) == ["", "part", "part, s"]
    assert log.changes(bins("x", 2)).height == 2
    with pytest.raises(ValueError, match="windows overlap"):
        log.changes(trailing("day", "7d"))
    with pytest.raises(pl.exceptions.DuplicateError, match="since"):
        log.changes(pl.col("s").alias("since"))


def test_nothing_to_say():
    log = log_of(9)
    described = log.mcc(time="day")
    for frame, height in ((log.clear(), 0), (log.head(1), 1), (log.filter(day=START), 2)):
        found = frame.mcc(time="day").changes("part")
        assert found.schema == described.changes("part").schema
        assert found["verdict"].to_list() == ["not judged"] * height
        assert found["since"].null_count() == height
    assert log.clear().mcc(time="day").changes().height == 1
    lazy = log.lazy().mcc(time="day").changes("part")
    assert lazy.collect_schema() == described.changes("part").schema
    too_many = described.changes("part", min_n=10_000)
    assert too_many["verdict"].to_list() == ["not judged"] * 2


def test_false_alarms_are_a_level():
    log = log_of(10).mcc(time="day")
    for every, alarms, level in (
        ("1d", "1y", 1 / 365),
        ("1w", "1y", 7 / 365),
        ("1d", "3mo", 1 / 90),
    ):
        asked = log.changes("part", every=every, false_alarms=alarms)
        assert_frame_equal(asked, log.changes("part", every=every, ci=1 - level))
    gate = log.check("part", min=0.1, false_alarms="1y")
    assert_frame_equal(gate, log.check("part", min=0.1, ci=1 - 1 / 365))
    with pytest.raises(ValueError, match="correction=None does not limit"):
        log.check("part", min=0.1, false_alarms="1y", correction=None)
    with pytest.raises(ValueError, match="ci and false_alarms both"):
        log.check("part", min=0.1, false_alarms="1y", ci=0.95)


def test_no_slice_vanishes():
    log = log_of(14)
    old = log.with_columns(
        part=pl.when(pl.col("day") < START + dt.timedelta(3)).then(pl.lit("old")).otherwise("part")
    )
    found = old.mcc(time="day").changes("part", lookback="9d")
    assert found.filter(part="old").select("verdict", "n_untimed", "n_null").rows() == [
        ("not judged", 0, 0)
    ]
    known = pl.DataFrame({"part": ["y"], "since": [dt.date(2026, 6, 1)]})
    assert log.mcc(time="day").changes("part", known=known)["part"].sort().to_list() == ["x", "y"]


def test_changes_of_a_slice_are_beside_each_other_in_the_order_of_time():
    found = fallen_and_recovered().changes("part", alternative="two-sided")
    parts = found["part"].to_list()
    assert parts == sorted(parts, key=parts.index)
    first = found.group_by("part", maintain_order=True).agg(pl.col("p_value").min())
    assert first["p_value"].is_sorted()
    assert all(part["since"].is_sorted() for part in found.partition_by("part"))


def test_labels_that_end_are_no_change():
    """Positives come on 27 of 30 days, and hits are alike: the last days say nothing."""
    rows = [
        (
            START + dt.timedelta(d),
            g := int(d < 27 and j < 2),
            0 if g and (2 * d + j) % 6 == 0 else g,
        )
        for d in range(30)
        for j in range(20)
    ]
    log = pl.DataFrame(rows, schema=["day", "gold", "pred"], orient="row").mcc(
        time="day", positive=1
    )
    assert log.changes(metric="tpr")["verdict"].to_list() == ["no change"]


REFUSED = {
    "does not support to='rest'": lambda log: log.changes(false_alarms="1y", to="rest"),
    "known has the key 'part'": lambda log: log.changes(known=log.changes("part")),
    "needs the time of a prediction": lambda log: log(time=None).changes(),
    "ci and false_alarms both": lambda log: log.changes(ci=0.9, false_alarms="1y"),
    "correction='bh' does not limit": lambda log: log.changes(false_alarms="1y", correction="bh"),
    "must be longer than a period of 1w": lambda log: log.changes(every="1w", false_alarms="3d"),
    "false_alarms must be a number and a unit": lambda log: log.changes(false_alarms="often"),
    "every must be a number and a unit": lambda log: log.changes(every="day"),
    "every='6h' is shorter than a day": lambda log: log.changes(every="6h"),
    "lookback must be a length of time": lambda log: log.changes(lookback="long"),
    "alternative must be one of": lambda log: log.changes(alternative="other"),
    "to must be one of": lambda log: log.changes(to="best"),
    "min_n must be an integer": lambda log: log.changes(min_n=0),
    "max_changes must be an integer": lambda log: log.changes(max_changes=0),
    "'tp' counts rows": lambda log: log(positive="ant").changes(metric="tp"),
    "'brier' is of scores": lambda log: log(score="s", positive="ant").changes(metric="brier"),
    "does not support cluster": lambda log: log(cluster="part").changes(),
    "does not support sample_weight": lambda log: log(sample_weight="s").changes(),
    "does not support nulls='reweight'": lambda log: log(nulls="reweight").changes(),
    "min_age='30d'": lambda log: log(waiting=True).changes(),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message):
    log = log_of(11).with_columns(s=0.5).mcc(time="day")
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        REFUSED[message](log)


def test_known_changes_that_cannot_be_used():
    log = log_of(11).mcc(time="day")
    with pytest.raises(TypeError, match="known must be a DataFrame"):
        log.changes("part", known="seen.csv")
    numbers = pl.DataFrame({"part": ["x"], "since": [3]})
    with pytest.raises(pl.exceptions.SchemaError, match="'since' of Int64, which is no time"):
        log.changes("part", known=numbers)
    typo = pl.DataFrame({"part": ["X"], "since": [START]})
    with pytest.warns(polars_mcc.PredictionLogWarning, match="known has 1 row of no slice"):
        log.changes("part", known=typo)


def test_rows_after_now_are_told():
    log = log_of(12)
    late = pl.when(pl.int_range(pl.len()) < 7).then(dt.date(2999, 1, 1)).otherwise("day")
    log = log.with_columns(day=late)
    with pytest.warns(polars_mcc.PredictionLogWarning, match="the time of 7 rows is after now"):
        log.mcc(time="day").changes()
    with pytest.warns(polars_mcc.PredictionLogWarning, match="the time of 7 rows is after now"):
        log.lazy().mcc(time="day").changes().collect()


def test_engines_of_times():
    """Times in memory are cut after the count; a lazy engine would count each time."""
    frame = log_of(13).with_columns(pl.col("day").cast(pl.Datetime("us")) + pl.duration(hours=5))
    expected = frame.mcc(time="day").changes("part", every="1w")
    assert_frame_equal(
        PredictionLog(frame.to_arrow(), time="day").changes("part", every="1w"), expected
    )
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.from_arrow(frame.to_arrow())
    with pytest.raises(ValueError, match="add a column of days with the engine"):
        PredictionLog(relation, time="day").changes()
    assert PredictionLog(relation, time="day").changes(every=None).collect().height == 1

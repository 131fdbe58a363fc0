"""`changes` of slices that share rows: one failure is one alarm, beside loops over rows."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from runner import invoke
from support import first

from polars_mcc import PredictionLog, cube, each, rollup, sets

START = dt.date(2026, 3, 1)
KEYS = ["version", "device", "country"]
V3, PHONE, IT = pl.col("version") == "v3", pl.col("device") == "phone", pl.col("country") == "IT"
CELL = "version = v3 and device = phone"


def log_of(seed: int = 0, rows: int = 24_000, errs: float = 0.4, *, two: bool = False):
    """60 nights. From 10 April on, v3 errs on phones; `two`: from 20 March on, Italy does too."""
    rng = np.random.default_rng(seed)
    values = [["v1", "v2", "v3"], ["phone", "tablet", "web"], ["DE", "FR", "IT"]]
    frame = {key: rng.choice(own, rows) for key, own in zip(KEYS, values, strict=True)}
    log = pl.DataFrame({"day": rng.integers(0, 60, rows), **frame, "gold": rng.random(rows) < 0.3})
    is_bad = log.select(V3 & PHONE & (pl.col("day") >= 40)).to_series().to_numpy()
    is_worse = log.select(IT & (pl.col("day") >= 19)).to_series().to_numpy() & two
    is_wrong = rng.random(rows) < np.select([is_bad, is_worse], [errs, 0.11], 0.06)
    return log.with_columns(
        day=pl.lit(START) + pl.duration(days="day"), pred=pl.col("gold") ^ pl.Series(is_wrong)
    )


def said(row: dict[str, object]) -> str:
    """The slice of a row in words."""
    return " and ".join(f"{k} = {row[k]}" for k in KEYS if row[k] is not None) or "all rows"


def with_verdict(found: pl.DataFrame, verdict: str = "worse") -> list[str]:
    return [*map(said, found.filter(verdict=verdict).to_dicts())]


def by_loops(log: pl.DataFrame, found: pl.DataFrame, level: float, turn: int, **asked: object):
    """The verdict of each sure change, and what it is part of: what is left is asked again."""
    tested = found.drop_nulls("p_value").group_by("keys", *KEYS).agg(pl.all()).to_dicts()
    kept: dict[str, set[int]] = {}
    answer = []
    for own in sorted(tested, key=lambda own: min(own["p_value"])):
        if max(own["p_adjusted"]) >= level:
            continue
        verdicts = ["worse" if turn * diff < 0 else "better" for diff in own["diff"]]
        values = [(key, own[key]) for key in KEYS if own[key] is not None]
        rows = {i for i, row in enumerate(log.to_dicts()) if all(row[k] == v for k, v in values)}
        surer = [other for other, taken in kept.items() if taken & rows]
        left = log[sorted(rows.difference(*kept.values()))].mcc(time="day")
        again = (
            left.changes(**asked, ci=1 - level / len(tested)) if surer else {"verdict": verdicts}
        )
        if {*again["verdict"]} & {*verdicts}:
            kept[said(own)] = rows
            answer.append((said(own), verdicts, [None] * len(verdicts)))
        else:
            answer.append((said(own), ["part of"] * len(verdicts), surer[:1] * len(verdicts)))
    return answer


CASES = [
    (each(*KEYS, total=True), {}),
    (cube(*KEYS), {"max_changes": 1}),
    (rollup(*KEYS), {"alternative": "two-sided", "to": "rest", "metric": "error_rate"}),
    (sets(("version", "device"), ("device", "country")), {"alternative": "two-sided"}),
    (cube(*KEYS), {"correction": "bh", "alternative": "two-sided"}),
]


@pytest.mark.parametrize("case", first(3, range(len(CASES))))
def test_beside_loops_over_the_rows_that_are_left(case):
    keys, asked = CASES[case]
    reached: Counter[str] = Counter()
    for seed, level in ((0, 0.05), (1, 0.2)):
        log = log_of(seed, 5000, 0.3, two=True)
        found = log.mcc(time="day").changes(keys, **asked, ci=1 - level)
        turn = -1 if "metric" in asked else 1
        for name, verdicts, part_of in by_loops(log, found, level, turn, **asked):
            rows = [row for row in found.to_dicts() if said(row) == name]
            assert [row["verdict"] for row in rows] == verdicts, name
            assert [row["part_of"] for row in rows] == part_of, name
            reached.update(verdicts)
        is_sure = (pl.col("p_adjusted") < level).fill_null(value=False)
        is_alarm = pl.col("verdict").is_in(["worse", "better", "part of"])
        assert found.filter(is_sure ^ is_alarm).is_empty(), "no alarm but those of the first test"
    assert reached["part of"] > 1
    assert reached["worse"] > 1


def of_kind(kind: str, log: pl.DataFrame, folder) -> PredictionLog:
    """The same log in another form."""
    described = {"time": "day"}
    if kind == "lazy":
        log = log.lazy()
    elif kind == "parquet":
        texts = pl.col("gold", "pred").cast(pl.String)
        log.with_columns(texts).write_parquet(folder / "log.parquet")
        log = pl.scan_parquet(folder / "log.parquet")
    elif kind == "counts":  # So many rows that p-values are 0, and no noise.
        labels = pl.DataFrame({"gold": [0, 0, 1, 1], "pred": [0, 1, 0, 1]})
        cells = log.select("day", *KEYS).unique().join(labels, how="cross")
        is_bad = V3 & PHONE & (pl.col("day") >= dt.date(2026, 4, 10))
        errs = pl.when(is_bad).then(400_000).otherwise(60_000)
        log = cells.with_columns(
            n=pl.when(pl.col("gold") != pl.col("pred")).then(errs).otherwise(10**6 - errs)
        )
        described["weight"] = "n"
    elif kind == "arrow":
        log = log.to_arrow()
    elif kind == "late":
        ids = log.with_row_index("id")
        log = ids.drop("gold").lazy()
        described |= {"on": "id", "outcomes": ids.select("id", "gold").lazy(), "min_age": "1d"}
    elif kind == "times":
        log = log.with_columns(day=pl.col("day").cast(pl.Datetime) + pl.duration(hours=5))
    elif kind == "models":
        log = log.with_columns(good=pl.col("gold"), same="pred")
        described["pred"] = ["same", "pred", "good"]
    return PredictionLog(log, **described)


@pytest.mark.parametrize(
    "kind", ["frame", "lazy", "parquet", "counts", "arrow", "late", "times", "models"]
)
def test_a_version_that_fails_on_one_device_is_one_alarm(kind, tmp_path):
    log = of_kind(kind, log_of(), tmp_path)
    for keys, n_part, cause in (
        (each(*KEYS, total=True), 5, "version = v3"),
        (cube(*KEYS), 15, CELL),
    ):
        found = log.changes(keys).lazy().collect()
        models = found.partition_by("model") if kind == "models" else [found]
        for of_model in models[: 2 if kind == "models" else 1]:
            assert with_verdict(of_model) == [cause]
            parts = of_model.filter(verdict="part of")
            assert parts.height == n_part
            assert {*parts["part_of"]} == {cause}
            assert of_model["part_of"].count() == n_part
        assert len(models) == (3 if kind == "models" else 1)
        if kind == "models":
            assert models[2]["part_of"].count() == 0


def test_the_log_is_read_again_only_if_slices_that_changed_may_share_rows():
    log, reads = log_of(rows=6000), []

    def read() -> pl.DataFrame:
        reads.append(1)
        return log

    healthy = log.with_columns(pred="gold")
    frame = pl.defer(read, schema=log.schema)
    asked = {"one set": [*KEYS], "cube": [cube(*KEYS)], "total": [each("version", total=True)]}
    for keys in asked.values():
        PredictionLog(frame, time="day").changes(*keys).collect()
    assert len(reads) == 3
    found = PredictionLog(frame, time="day").changes(each(*KEYS)).collect()
    assert len(reads) == 5
    assert_frame_equal(found, log.mcc(time="day").changes(each(*KEYS)))
    log = healthy
    PredictionLog(frame, time="day").changes(each(*KEYS)).collect()
    assert len(reads) == 6


def test_rows_that_are_not_looked_at_have_no_part():
    """With lookback; and keys of any value, in logs whose days begin before 1970."""
    log = log_of().with_columns(
        version=pl.col("version").replace("v3", None),
        device=pl.col("device").replace_strict(
            ["phone", "tablet", "web"], [float("nan"), 0.0, 1.5]
        ),
        country=pl.concat_list("country"),
        day=pl.col("day").dt.offset_by("-60y"),
    )
    described, late = log.mcc(time="day"), log.filter(pl.col("day") > dt.date(1966, 4, 4))
    found = described.changes(cube(*KEYS), lookback="25d")
    assert_frame_equal(found, late.mcc(time="day").changes(cube(*KEYS)))
    [alarm] = found.filter(verdict="worse").to_dicts()
    assert (alarm["keys"], alarm["version"]) == ("version, device", None)
    parts = found.filter(verdict="part of")
    assert {*parts["part_of"]} == {"version = null and device = NaN"}


def test_a_known_change_explains_others_but_not_what_is_new():
    """The cause alone is noted: its echoes are none. A failure since then, in its rows, is new."""
    log, keys = log_of(two=False), each(*KEYS, total=True)
    found = log.mcc(time="day").changes(keys)
    known = found.filter(verdict="worse").select("keys", *KEYS, "since")
    again = log.mcc(time="day").changes(keys, known=known)
    assert with_verdict(again) == []
    assert {*again.filter(verdict="part of")["part_of"]} == {"version = v3"}
    assert again.filter(version="v3")["verdict"].to_list() == ["no change"]
    for is_new, cause in (
        (IT & (pl.col("day") >= START + dt.timedelta(30)), "country = IT"),  # elsewhere too
        ((pl.col("version") == "v3") & (pl.col("day") >= START + dt.timedelta(50)), "version = v3"),
    ):
        wrong = pl.int_range(pl.len()) % 2 == 0
        worse = log.with_columns(
            pred=pl.when(is_new & wrong).then(~pl.col("gold")).otherwise("pred")
        )
        again = worse.mcc(time="day").changes(keys, known=known)
        assert with_verdict(again) == [cause]
    every = (
        log.mcc(time="day")
        .changes(known=None)
        .select("since")
        .with_columns(keys=pl.lit(""), version=None, device=None, country=None)
    )
    again = worse.mcc(time="day").changes(keys, known=every)
    assert with_verdict(again) == ["all rows"], "their fall is known, and this one is new"


def test_the_shell_shows_what_is_part_of_what(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log_of().write_parquet("log.parquet")
    asked = ["changes", "log.parquet", "--by", "each(version, device)", "--time", "day"]
    done = invoke(*asked, "--false-alarms", "1y")
    assert done.exit_code == 1
    assert "┆ part_of" in done.stdout
    assert done.stdout.count("┆ version = v3 ┆") == 1
    invoke(*asked, "--out", "found.csv")
    (tmp_path / "seen.csv").write_text("keys,version,device,since\nversion,v3,,2026-04-10\n")
    assert invoke(*asked, "--false-alarms", "1y", "--known", "seen.csv").exit_code == 0
    assert invoke(*asked, "--false-alarms", "1y", "--known", "found.csv").exit_code == 0


def test_a_key_of_this_name_is_renamed():
    log = log_of(rows=300).rename({"country": "part_of"}).mcc(time="day")
    with pytest.raises(pl.exceptions.DuplicateError, match="key 'part_of' has .* rename it, as in"):
        log.changes("part_of")

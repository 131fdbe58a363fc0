"""The job of the guide, night after night: examples/guide/every_night.md."""

from __future__ import annotations

import datetime as dt
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pages
import polars as pl
import pytest
from runner import invoke
from support import on_posix

PAGE = pages.GUIDE / "every_night.md"
[MAKES_SCRIPT] = pages.blocks("bash", PAGE)
START, FALL = dt.date(2026, 3, 1), dt.date(2026, 4, 4)
FIRST, LAST = dt.date(2026, 4, 2), dt.date(2026, 4, 22)


def commands(night: str) -> dict[str, list[str]]:
    """The commands of the script in one night, by name."""
    text = MAKES_SCRIPT.replace("\\\n", " ").replace("$night", night).replace("$lake", ".")
    lines = [line for line in text.splitlines() if line.startswith("step polars-mcc ")]
    return {line.split()[2]: shlex.split(line)[2:] for line in lines}


class Lake:
    """Predictions and labels that come within a week. France is worse from FALL on."""

    def __init__(self) -> None:
        self.draw = np.random.default_rng(0)
        self.labels = pl.DataFrame()
        for name in ("predictions", "labels"):
            Path(name).mkdir()

    def pass_day(self, day: dt.date) -> None:
        """Write the predictions of a day, and the labels that come on it."""
        draw, n = self.draw, 400
        country, gold = draw.choice(["DE", "FR", "IT"], n), draw.random(n) < 0.25
        recall = np.where((country == "FR") & (day >= FALL), 0.45, 0.85)
        ids = np.arange(n) + n * (day - START).days
        rows = pl.DataFrame({"request_id": ids, "country": country}).with_columns(
            ts=pl.lit(dt.datetime(day.year, day.month, day.day))
            + pl.duration(minutes=pl.int_range(n)),
            pred=pl.Series(draw.random(n) < np.where(gold, recall, 0.03)),
        )
        rows.write_parquet(f"predictions/{day}.parquet")
        # Positives come later than negatives. One label of twenty never comes.
        delay = pl.duration(
            hours=pl.Series(np.where(gold, draw.integers(48, 168, n), draw.integers(0, 48, n)))
        )
        labels = rows.select("request_id", gold=pl.Series(gold), labelled_at=pl.col("ts") + delay)
        self.labels = pl.concat([self.labels, labels.filter(pl.Series(draw.random(n) < 0.95))])
        come = self.labels.filter(pl.col("labelled_at").dt.date() == day)
        if come.height:
            come.write_parquet(f"labels/{day}.parquet")


def assert_each_row_is_counted_once(night: dt.date) -> None:
    """The store has what plain loops count, of what is known this night."""
    known = {}
    for file in Path("labels").iterdir():
        known |= {request: gold for request, gold, _ in pl.read_parquet(file).iter_rows()}
    expected: Counter[tuple] = Counter()
    for file in Path("predictions").iterdir():
        for request, country, ts, pred in pl.read_parquet(file).iter_rows():
            expected[country, ts.date(), known.get(request), pred] += 1
    assert max(day for _, day, _, _ in expected) == night - dt.timedelta(days=1)
    kept = pl.scan_delta("store").select("country", "day", "gold", "pred", "n").collect()
    found: Counter[tuple] = Counter()
    for country, day, gold, pred, n in kept.iter_rows():
        found[country, day, gold, pred] += n
    assert found == expected


@pytest.mark.slow
def test_a_fall_is_found_once_and_nothing_else_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lake, day, codes = Lake(), START, {}
    Path("seen.csv").write_text("country,since\n")
    while day < LAST:
        lake.pass_day(day)
        day += dt.timedelta(days=1)
        if day < FIRST or (day - FIRST).days % 4:  # Most nights the job does not run.
            continue
        night = str(day)
        Path("nights", night).mkdir(parents=True)
        of_night = commands(night)
        done = {name: invoke(*of_night[name]) for name in ("counts", "changes", "check")}
        codes[day] = {name: of_step.exit_code for name, of_step in done.items()}
        if day in {FIRST, FALL, LAST}:
            assert_each_row_is_counted_once(day)
        told = pl.read_csv(f"nights/{night}/changes.csv", try_parse_dates=True)
        assert told["n_waiting"].sum() > 0
        news = told.filter(verdict="worse")
        assert codes[day]["changes"] == (1 if news.height else 0), night
        for country, since in news.select("country", "since").iter_rows():
            with Path("seen.csv").open("a") as seen:
                seen.write(f"{country},{since}\n")
    assert Path("seen.csv").read_text("utf-8") == f"country,since\nFR,{FALL}\n"
    [found] = [night for night, of_night in codes.items() if of_night["changes"]]
    first_labelled = FALL + dt.timedelta(days=8)
    assert first_labelled <= found <= first_labelled + dt.timedelta(days=5)
    assert {of_night["counts"] for of_night in codes.values()} == {0}
    assert codes[FIRST]["check"] == 0
    assert invoke(*commands(night)["report"]).exit_code == 0
    assert Path("nights", night, "report.html").stat().st_size > 10_000
    assert done["counts"].stderr.splitlines() == [
        f"polars-mcc: ./store: the newest row is of {day - dt.timedelta(days=1)}",
        "polars-mcc: ./store: 4 counted, 0 replaced, 46 recounted, 2 unchanged",
    ]


@on_posix
@pytest.mark.parametrize(
    ("codes", "expected", "n_run"),
    [
        ({}, 0, 4),
        ({"changes": 1}, 1, 4),
        ({"check": 1}, 1, 4),
        ({"counts": 2}, 2, 1),
        ({"changes": 1, "check": 2}, 2, 3),
    ],
)
def test_the_exit_code_of_the_script(codes, expected, n_run, tmp_path):
    """An error ends it; after an alarm, the rest is done."""
    program = tmp_path / "polars-mcc"
    cases = "".join(f"{name}) exit {code};; " for name, code in codes.items())
    program.write_text(f"#!/usr/bin/env bash\necho $1 >> run\ncase $1 in {cases}*) exit 0;; esac\n")
    program.chmod(0o755)
    night = tmp_path / "nights" / "2026-04-30"
    night.mkdir(parents=True)
    (night / "changes.csv").write_text(
        "country,metric,since,verdict,n\nFR,mcc,2026-04-10,worse,7\nDE,mcc,2026-04-01,no change,8\n"
    )
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    script = f"{MAKES_SCRIPT}\nbash nightly.sh 2026-04-30"
    run = ["bash", "-c", script]
    done = subprocess.run(
        run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == expected, done.stderr
    assert (tmp_path / "run").read_text("utf-8").split() == [
        "counts",
        "changes",
        "check",
        "report",
    ][:n_run]
    assert done.stdout == ("FR,2026-04-10\n" if n_run == 4 else "")
    assert (tmp_path / "seen.csv").read_text("utf-8") == "country,since\n"


def test_airflow_runs_the_commands_of_the_script(monkeypatch):
    """Airflow is not installed here: the page runs with stand-ins that note what it asks for."""
    tasks = {}

    class Operator:
        def __init__(self, task_id, bash_command, **options):
            tasks[task_id] = self
            self.command, self.options, self.after = bash_command, options, []

        def __rshift__(self, others):
            for other in others if isinstance(others, list) else [others]:
                other.after.append(self)
            return others

        def __rrshift__(self, others):
            self.after += others
            return self

    class Dag:
        def __init__(self, *name, **options):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

    names = ("airflow", "airflow.sdk", "airflow.providers", "airflow.providers.standard")
    names += tuple(f"airflow.providers.standard.{name}" for name in ("operators", "operators.bash"))
    for name in names:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["airflow.sdk"].DAG = Dag
    sys.modules[names[-1]].BashOperator = Operator
    [dag] = pages.blocks("py", PAGE)
    exec(compile(dag, "<page>", "exec"), {})  # noqa: S102
    typed = {
        name: shlex.split(
            task.command.partition("polars-mcc ")[2].replace(
                "{{ data_interval_end | ds }}", "NIGHT"
            )
        )
        for name, task in tasks.items()
    }
    assert {name: sorted(words) for name, words in typed.items()} == {
        name: sorted(words) for name, words in commands("NIGHT").items()
    }
    after = {name: {*task.after} for name, task in tasks.items()}
    of = tasks.get
    assert after == {
        "counts": set(),
        "changes": {of("counts")},
        "check": {of("counts")},
        "report": {of("changes"), of("check")},
    }
    assert [name for name, task in tasks.items() if "retries" in task.options] == ["counts"]
    assert tasks["report"].options["trigger_rule"] == "all_done"


def test_github_runs_the_script_and_keeps_the_night():
    [text] = pages.blocks("yaml", PAGE)
    steps = [re.sub(r"\s+", " ", step) for step in re.split(r"^      - ", text, flags=re.MULTILINE)]
    assert [step for step in steps if step.startswith("run: ")][-1] == "run: bash nightly.sh "
    assert steps[-1].startswith("uses: actions/upload-artifact@")
    assert steps[-1].endswith(" if: always() with: name: night path: nights/ ")
    assert "LAKE: s3://lake" in text
    assert "lake=${LAKE:-.}" in MAKES_SCRIPT

"""Type checkers see the class: the kind of frame comes back, without casts."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from pages import ROOT

pytestmark = pytest.mark.slow

USER = """
import duckdb
import narwhals as nw
import polars as pl
import polars_mcc
from polars_mcc import Bootstrap, PredictionLog, cube, each, rollup, sets, trailing

df = pl.DataFrame()
lf = pl.LazyFrame()
eager = PredictionLog(df)
lazy = PredictionLog(lf, gold="label", pred=["a", "b"], weight="n", cluster="user", nulls="label")
reveal_type(eager.by("key", pl.col("age") // 10))
reveal_type(lazy.by(pl.selectors.string(), ci=0.95, method="fisher"))
reveal_type(lazy(zero_division=None, sample_weight="w").score())
reveal_type(eager(nulls="label").score(metrics=["kappa", pl.col("f1").min()]))
reveal_type(eager.by("key", ci=0.95, method=Bootstrap(replicates=100, seed=1, bca=True)))
reveal_type(lazy.by(each("a", "b", total=True), rollup("c", pl.col("d")), ci=0.95, long=True))
reveal_type(eager.by(cube("a", "b", total=False), sets(("c", "d"), "c", ())))
reveal_type(lazy.compare("key", baseline="a", correction="holm"))
reveal_type(eager.worst("a", "b", rank="gap", top=3))
reveal_type(lazy.drift("b", before=pl.col("a") < 1, after="later"))
reveal_type(eager(score=["s", "t"]).curve("a", thresholds=[0.1, 0.5]))
reveal_type(lazy(score="s", positive=1).best_threshold(thresholds=100))
reveal_type(lazy(score="s", positive=1).calibration("a", bins=5, ci=0.9))
reveal_type(eager.check("a", min=0.6, ci=0.95, no_worse_than=lf))
reveal_type(lazy.counts(trailing("ts", "7d", every="1d", align="calendar"), "key"))
reveal_type(eager.classes("key"))
reveal_type(lazy.confusion("a", labels=["a"], normalize="gold"))
reveal_type(PredictionLog(duckdb.read_parquet("log.parquet")).by("key"))
reveal_type(PredictionLog(nw.from_native(df), gold="label").confusion())
reveal_type(lazy.report("key"))
reveal_type(polars_mcc.metrics())
reveal_type(polars_mcc.progress(lf, lambda rows: PredictionLog(rows).by("key")))
reveal_type(polars_mcc.ExprMcc(pl.col("pred")).score("gold", labels=[1, 2]))
reveal_type(polars_mcc.SeriesMcc(df["pred"]).score(df["gold"]))
polars_mcc.register_metric("lowest", pl.col("f1").min())
polars_mcc.register_metric("highest", lambda col: col("f1").max())
eager.worst("key", metric=lambda col: col("recall").filter(col("support") > 9).mean())
eager.score(metrics=["mcc", lambda col: 1 - col("recall").mean()])
share = polars_mcc.to_numpy(eager.confusion()) / polars_mcc.to_numpy(eager.confusion("a")).sum()
polars_mcc.plot.slices(eager.by("key")).properties(title="Mine").save("mine.svg")
"""
KINDS = [
    *("DataFrame", "LazyFrame", "LazyFrame", "DataFrame", "DataFrame", "LazyFrame", "DataFrame"),
    *("LazyFrame", "DataFrame", "LazyFrame", "DataFrame", "LazyFrame", "LazyFrame", "DataFrame"),
    *("LazyFrame", "DataFrame", "LazyFrame", "DataFrame | LazyFrame", "DataFrame | LazyFrame"),
    *("str", "DataFrame", "DataFrame", "Expr", "float | None"),
]
MISTAKES = {
    "lazy_bootstrap": "PredictionLog(pl.LazyFrame()).by(ci=0.9, method=Bootstrap())",
    "no_such_policy": "PredictionLog(pl.DataFrame(), nulls='keep')",
    "no_such_option": "PredictionLog(pl.DataFrame())(golds='label')",
    "no_frame": "PredictionLog([1, 2])",
    "no_such_metric_type": "PredictionLog(pl.DataFrame()).by(metrics=[1])",
}


@pytest.fixture
def files(tmp_path):
    """What a user has written: all at once, for what is to be found out about Polars takes long."""
    (tmp_path / "user.py").write_text(USER)
    imports = "import polars as pl\nfrom polars_mcc import Bootstrap, PredictionLog\n"
    for name, mistake in MISTAKES.items():
        (tmp_path / f"{name}.py").write_text(f"{imports}{mistake}\n")
    return tmp_path


def kind(revealed: str) -> str:
    """A type without modules, and its members in order: as checkers differ in these."""
    plain = re.sub(r"(?<![\w])(?:\w+\.)+", "", revealed)
    union = re.fullmatch(r"Union\[(.*)\]", plain)
    return " | ".join(
        sorted(union[1].split(", ")) if union else sorted(plain.split(" | "), key=str)
    )


def check(files, command: list[str]) -> str:
    done = subprocess.run(command, cwd=files, capture_output=True, text=True, check=False)
    return done.stdout


def test_under_strict_mypy(files):
    # If mypy has checked the package, it has read Polars, and its cache saves a second reading.
    kept = ["--config-file", ROOT / "pyproject.toml", "--cache-dir", ROOT / ".mypy_cache"]
    command = [sys.executable, "-m", "mypy", "--strict", *kept, "--hide-error-context", "."]
    lines = check(files, command).splitlines()
    of_user = [line for line in lines if line.startswith("user.py:")]
    assert [line for line in of_user if "error" in line] == []
    revealed = [kind(line.split('"')[1]) for line in of_user if "Revealed" in line]
    assert revealed == [kind(one) for one in KINDS]
    for name in MISTAKES:
        assert any(line.startswith(f"{name}.py:") for line in lines), name


def test_under_strict_pyright(files):
    pytest.importorskip("pyright")
    (files / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    told = json.loads(check(files, [*command, "."]))["generalDiagnostics"]
    of_file = {
        name: [one for one in told if one["file"].endswith(f"{name}.py")]
        for name in ("user", *MISTAKES)
    }
    assert [one for one in of_file["user"] if one["severity"] == "error"] == []
    messages = [one["message"] for one in of_file["user"] if one["message"].startswith("Type of")]
    assert [kind(message.split('"')[-2]) for message in messages] == [kind(one) for one in KINDS]
    for name in MISTAKES:
        assert any(one["severity"] == "error" for one in of_file[name]), name

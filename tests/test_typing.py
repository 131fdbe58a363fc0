"""Type checkers see the functions and classes: the kind of frame comes back."""

from __future__ import annotations

import subprocess
import sys

import pytest

USER = """
import polars as pl
import polars_mcc

df = pl.DataFrame()
lf = pl.LazyFrame()
reveal_type(polars_mcc.by(df, "key", pl.col("age") // 10))
reveal_type(polars_mcc.by(lf, pl.selectors.string(), pred=["a", "b"], weight="n"))
reveal_type(polars_mcc.score(lf, zero_division=None))
reveal_type(polars_mcc.confusion(df, labels=["a"], normalize="gold"))
reveal_type(polars_mcc.FrameMcc(df).classes("key", nulls="label"))
reveal_type(polars_mcc.FrameMcc(lf).counts("key"))
reveal_type(polars_mcc.by(lf, "key", ci=0.95, method="fisher", cluster="user"))
reveal_type(polars_mcc.by(df, "key", ci=0.95, method="bootstrap", seed=1))
reveal_type(polars_mcc.FrameMcc(lf).by("key", ci=0.95, sample_weight="w"))
reveal_type(polars_mcc.FrameMcc(df).by("key", ci=0.95, method="bca", n_boot=100))
reveal_type(polars_mcc.FrameMcc(lf).compare("a", ["b", "c"], "key", correction="holm"))
reveal_type(polars_mcc.by(lf, "a", "b", sets=[("a",), "b", ()], long=True, ci=0.95))
reveal_type(polars_mcc.by(df, "a", index="ts", window="7d", every="1d"))
reveal_type(polars_mcc.FrameMcc(lf).worst("a", "b", rank="gap", top=3))
reveal_type(polars_mcc.drift(df, pl.col("a") < 1, "later", "b"))
reveal_type(polars_mcc.FrameMcc(lf).curve("a", score=["s", "t"], thresholds=[0.1, 0.5]))
reveal_type(polars_mcc.best_threshold(df, positive=1, thresholds=100))
reveal_type(polars_mcc.FrameMcc(lf).check("a", min=0.6, ci=0.95))
reveal_type(polars_mcc.by(lf, "a", metrics=["kappa", pl.col("f1").min()], positive=1, ci=0.9))
reveal_type(polars_mcc.FrameMcc(df).score(metrics="accuracy"))
reveal_type(polars_mcc.FrameMcc(lf).confusion("a", top=3))
polars_mcc.register_metric("lowest", pl.col("f1").min())
share = polars_mcc.to_numpy(polars_mcc.confusion(df)) / polars_mcc.FrameMcc(df).to_numpy().sum()
reveal_type(polars_mcc.metrics())
chart = polars_mcc.plot.slices(polars_mcc.by(df, "key"))
chart.properties(title="Mine").save("mine.svg")
reveal_type(polars_mcc.ExprMcc(pl.col("pred")).score("gold", labels=[1, 2]))
reveal_type(polars_mcc.SeriesMcc(df["pred"]).score(df["gold"]))
"""
KINDS = [
    *("DataFrame", "LazyFrame", "LazyFrame", "DataFrame", "DataFrame", "LazyFrame"),
    *("LazyFrame", "DataFrame", "LazyFrame", "DataFrame", "LazyFrame"),
    *("LazyFrame", "DataFrame", "LazyFrame", "DataFrame", "LazyFrame", "DataFrame", "DataFrame"),
    *("LazyFrame", "DataFrame", "LazyFrame", "DataFrame"),
    "Expr",
]


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """Check code in one folder, so that what mypy found in Polars is looked up the next time."""
    folder = tmp_path_factory.mktemp("user")

    def check(code: str) -> subprocess.CompletedProcess[str]:
        (folder / "user.py").write_text(code)
        return subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--hide-error-context", "user.py"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )

    return check


def test_a_user_under_strict_mypy(mypy):
    done = mypy(USER)
    assert done.returncode == 0, done.stdout
    revealed = [line.split('"')[1] for line in done.stdout.splitlines() if "Revealed" in line]
    assert [kind.rsplit(".", 1)[-1] for kind in revealed[:-1]] == KINDS
    assert revealed[-1] in {"float | None", "Union[builtins.float, None]", "builtins.float | None"}


@pytest.mark.parametrize("by", ["by(lf, ", "FrameMcc(lf).by("])
def test_a_bootstrap_of_a_lazy_frame_is_found(by, mypy):
    code = "import polars, polars_mcc\nlf = polars.LazyFrame()\npolars_mcc."
    told = mypy(f"{code}{by}ci=0.9, method='bca')").stdout
    assert "No overload variant" in told or "incompatible type \"Literal['bca']" in told


def test_a_wrong_argument_is_found(mypy):
    done = mypy("import polars_mcc, polars\npolars_mcc.classes(polars.DataFrame(), nulls='keep')")
    assert 'has incompatible type "Literal' in done.stdout.replace('Argument "nulls"', "")

"""Type checkers see the functions and classes: the kind of frame comes back."""

from __future__ import annotations

import subprocess
import sys

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
reveal_type(polars_mcc.compare(object(), "a", "b", "key"))
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
    *("LazyFrame", "DataFrame", "LazyFrame", "object", "DataFrame"),
    "Expr",
]


MISTAKES = {
    "lazy_bootstrap": "polars_mcc.by(pl.LazyFrame(), ci=0.9, method='bca')",
    "lazy_bootstrap_of_the_class": "polars_mcc.FrameMcc(pl.LazyFrame()).by(ci=0.9, method='bca')",
    "no_such_policy": "polars_mcc.classes(pl.DataFrame(), nulls='keep')",
}


def test_under_strict_mypy(tmp_path):
    """All at once: what mypy has to find out about Polars takes it half a minute."""
    (tmp_path / "user.py").write_text(USER)
    for name, mistake in MISTAKES.items():
        (tmp_path / f"{name}.py").write_text(f"import polars as pl, polars_mcc\n{mistake}\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--hide-error-context", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    of_file = {
        name: [line for line in lines if line.startswith(f"{name}.py:")] for name in MISTAKES
    }
    told = {name: "\n".join(found) for name, found in of_file.items()}
    of_user = [line for line in lines if line.startswith("user.py:")]
    assert [line for line in of_user if "error" in line] == []
    revealed = [line.split('"')[1] for line in of_user if "Revealed" in line]
    assert [kind.rsplit(".", 1)[-1] for kind in revealed[:-1]] == KINDS
    assert revealed[-1] in {"float | None", "Union[builtins.float, None]", "builtins.float | None"}
    for name in ("lazy_bootstrap", "lazy_bootstrap_of_the_class"):
        assert (
            "No overload variant" in told[name]
            or "incompatible type \"Literal['bca']" in told[name]
        )
    assert 'has incompatible type "Literal' in told["no_such_policy"].replace(
        'Argument "nulls"', ""
    )

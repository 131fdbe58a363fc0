"""A log, and what is asked of it, for the tests of other engines."""

from __future__ import annotations

import datetime as dt
import random
import re
from pathlib import Path

import polars as pl
from polars.testing import assert_frame_equal
from support import ask

from polars_mcc import PredictionLog as Log
from polars_mcc import cube, each, sets, trailing

ROOT = Path(__file__).parent.parent
DIGITS = ROOT / "data" / "digits.parquet"
PAGE = (ROOT / "examples" / "guide" / "larger_than_a_machine.md").read_text("utf-8")


def block(language: str) -> str:
    """The first block of code of a language in the page on engines."""
    return re.search(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)[1]


SCORED_BY_SQL, SPARK, SPARK_PLAN = block("sql"), block("py"), block("text")


LABELS = ["cat", "Cat", "cat ", "dòg", "", "emu", None]
"""Some that a collation, or a file of fixed widths, would take for one."""


def log(rows: int = 4000) -> pl.DataFrame:
    """A log with whatever an engine may take for something else: null, "", case, spaces, -0.0."""
    draw = random.Random(9)
    countries = ["DE", "de", "FR", "", "Ünited", None]
    return pl.DataFrame(
        {
            "country": draw.choices(countries, k=rows),
            "device": draw.choices(["tv", "pc", None], [6, 3, 1], k=rows),
            "day": [dt.date(2026, 3, 1 + int(9 * draw.random())) for _ in range(rows)],
            "gold": draw.choices(LABELS, k=rows),
            "pred": draw.choices(LABELS, [9, 1, 1, 1, 1, 1, 1], k=rows),
            "other": draw.choices(LABELS, [1, 1, 1, 1, 9, 1, 1], k=rows),
            "code": draw.choices([-(2**31), 0, 7, 2**31 - 1], k=rows),
            "guess": draw.choices([-(2**31), 0, 7, 2**31 - 1], [1, 9, 1, 1], k=rows),
            "real": draw.choices([-0.0, 0.0, 0.1, 1e300], k=rows),
            "is_gold": draw.choices([True, False], k=rows),
            "score": draw.choices([0.1, 0.25, 0.5, 0.9], k=rows),
            "user": draw.choices(range(40), k=rows),
            "n": draw.choices([0, 1, 2, 1000], k=rows),
            "share": draw.choices([0.25, 0.5, 3.0], k=rows),
            "early": [place < rows // 2 for place in range(rows)],
            "late": [place > rows // 2 for place in range(rows)],
        },
        schema_overrides={"code": pl.Int32, "guess": pl.Int64, "user": pl.Int32},
    ).with_columns(pred=pl.when(pl.col("user") % 3 > 0).then("gold").otherwise("pred"))


BOTH = {"gold": "code", "pred": "guess"}
# The first twelve ask an engine for different counts; most of the others ask for the same.
CALLS = {
    "by": lambda f: Log(f).by("country", "device"),
    "null as a label": lambda f: Log(f, nulls="label").by("country"),
    "labels for some rows": lambda f: Log(f, nulls="reweight").by("country", ci=0.9),
    "floats": lambda f: Log(f, gold="real", pred="real", zero_division=None).by("real"),
    "several models": lambda f: Log(f, pred=["pred", "other"]).by("device"),
    "float weight": lambda f: Log(f, weight="share").by("country"),
    "clusters": lambda f: Log(f, cluster="user").by("country", ci=0.95),
    "compare": lambda f: Log(f, pred=["pred", "gold"]).compare("country", baseline="other"),
    "cube": lambda f: Log(f).by(cube("country", "device", "user")),
    "windows": lambda f: Log(f).by("device", trailing("day", "3d", every="1d")),
    "worst": lambda f: Log(f).worst("country", "device", "user", min_n=5),
    "curve": lambda f: Log(f, gold="is_gold", score="score").curve("country"),
    "by a date": lambda f: Log(f).by(pl.col("day").alias("date")),
    "integers": lambda f: ask(f, "by", "country", **BOTH),
    "Booleans": lambda f: Log(f, gold="early", pred="late").by("is_gold"),
    "a selector": lambda f: Log(f).by(pl.selectors.by_name("country", "device")),
    "score": lambda f: Log(f).score(),
    "weight": lambda f: Log(f, weight="n").by("country"),
    "sample weight": lambda f: Log(f, sample_weight="n").by("country", ci=0.9),
    "counts": lambda f: Log(f).counts("country", "day"),
    "counts of models": lambda f: Log(f, pred=["pred", "other"]).counts("device"),
    "classes": lambda f: Log(f).classes("country"),
    "confusion": lambda f: Log(f).confusion("device", long=True),
    "metrics": lambda f: Log(f, positive="cat").by("country", metrics=["accuracy", "phi"]),
    "interval": lambda f: Log(f).by("country", ci=0.95),
    "fisher": lambda f: Log(f, weight="n").by("country", ci=0.95, method="fisher"),
    "each": lambda f: Log(f).by(each("country", "device", total=True), long=True),
    "sets": lambda f: Log(f).by(sets(("country",), "device", ())),
    "contrast": lambda f: Log(f).contrast("country", to="total", metrics="kappa"),
    "gaps": lambda f: Log(f).gaps("country", within="device", metrics=["accuracy", "mcc"]),
    "changes": lambda f: Log(f, time="day").changes("country"),
    "sure metrics": lambda f: Log(f, positive="cat").by(metrics=["accuracy", "phi"], ci=0.9),
    "drift": lambda f: Log(f).drift("country", before="early", after="late"),
    "best threshold": lambda f: Log(f, gold="code", positive=7, score="score").best_threshold(),
    "calibration": lambda f: Log(f, gold="is_gold", score="score").calibration("country"),
    "check": lambda f: Log(f).check("country", metric="accuracy", min=0),
}


def check_equal(frame, ours: pl.DataFrame, call) -> None:
    """What an engine's log gives is what Polars' gives, to the last bit."""
    answer = call(frame)
    assert_frame_equal(answer.lazy().collect(), call(ours), check_exact=True)


def check_float_weights(frame, ours: pl.DataFrame) -> None:
    """Floats are added in any order, where they are the weights."""
    answer, want = (Log(log, sample_weight="share").by("country", ci=0.9) for log in (frame, ours))
    assert_frame_equal(answer.lazy().collect(), want, rel_tol=1e-14)


def check_sql(rows: list[tuple]) -> None:
    """What SQL makes of the counts of the digits is what we make of the digits."""
    found = pl.DataFrame(rows, schema=["ink_band", "n", "mcc"], orient="row").sort("ink_band")
    want = pl.scan_parquet(DIGITS).mcc.by("ink_band").drop("n_null").collect()
    want = want.with_columns(pl.col("ink_band").cast(pl.String)).sort("ink_band")
    assert_frame_equal(found, want, check_dtypes=False, rel_tol=1e-12)

"""A log, and what is asked of it, for the tests of other engines."""

from __future__ import annotations

import datetime as dt
import random
import re
from pathlib import Path

import polars as pl
from polars.testing import assert_frame_equal

import polars_mcc

ROOT = Path(__file__).parent.parent
DIGITS = ROOT / "data" / "digits.parquet"
PAGE = (ROOT / "examples" / "beyond_one_machine.md").read_text("utf-8")


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
CALLS = {
    "by": lambda f: polars_mcc.by(f, "country", "device"),
    "by a date": lambda f: polars_mcc.by(f, pl.col("day").alias("date")),
    "null as a label": lambda f: polars_mcc.by(f, "country", nulls="label"),
    "integers": lambda f: polars_mcc.by(f, "country", **BOTH),
    "floats": lambda f: polars_mcc.by(f, "real", gold="real", pred="real", zero_division=None),
    "Booleans": lambda f: polars_mcc.by(f, "is_gold", gold="early", pred="late"),
    "several models": lambda f: polars_mcc.by(f, "device", pred=["pred", "other"]),
    "a selector": lambda f: polars_mcc.by(f, pl.selectors.by_name("country", "device")),
    "score": polars_mcc.score,
    "weight": lambda f: polars_mcc.by(f, "country", weight="n"),
    "float weight": lambda f: polars_mcc.by(f, "country", weight="share"),
    "sample weight": lambda f: polars_mcc.by(f, "country", sample_weight="n", ci=0.9),
    "counts": lambda f: polars_mcc.counts(f, "country", "day"),
    "counts of models": lambda f: polars_mcc.counts(f, "device", pred=["pred", "other"]),
    "classes": lambda f: polars_mcc.classes(f, "country"),
    "confusion": lambda f: polars_mcc.confusion(f, "device", long=True),
    "metrics": lambda f: polars_mcc.by(f, "country", metrics=["accuracy", "phi"], positive="cat"),
    "interval": lambda f: polars_mcc.by(f, "country", ci=0.95),
    "fisher": lambda f: polars_mcc.by(f, "country", ci=0.95, method="fisher", weight="n"),
    "clusters": lambda f: polars_mcc.by(f, "country", ci=0.95, cluster="user"),
    "compare": lambda f: polars_mcc.compare(f, "other", ["pred", "gold"], "country"),
    "each": lambda f: polars_mcc.by(f, "country", "device", sets="each", total=True, long=True),
    "cube": lambda f: polars_mcc.by(f, "country", "device", "user", sets="cube"),
    "sets": lambda f: polars_mcc.by(f, "country", "device", sets=[("country",), "device", ()]),
    "windows": lambda f: polars_mcc.by(f, "device", index="day", window="3d", every="1d"),
    "worst": lambda f: polars_mcc.worst(f, "country", "device", "user", min_n=5),
    "drift": lambda f: polars_mcc.drift(f, "early", "late", "country"),
    "curve": lambda f: polars_mcc.curve(f, "country", gold="is_gold"),
    "best threshold": lambda f: polars_mcc.best_threshold(f, gold="code", positive=7),
    "check": lambda f: polars_mcc.check(f, "country", min=-1),
}


def check_equal(frame, ours: pl.DataFrame, call) -> None:
    """What an engine's log gives is what Polars' gives, to the last bit."""
    answer = call(frame)
    assert_frame_equal(answer.lazy().collect(), call(ours), check_exact=True)


def check_float_weights(frame, ours: pl.DataFrame) -> None:
    """Floats are added in any order, where they are the weights."""
    answer, want = (
        polars_mcc.by(log, "country", sample_weight="share", ci=0.9) for log in (frame, ours)
    )
    assert_frame_equal(answer.lazy().collect(), want, rel_tol=1e-14)


def check_sql(rows: list[tuple]) -> None:
    """What SQL makes of the counts of the digits is what we make of the digits."""
    found = pl.DataFrame(rows, schema=["ink_band", "n", "mcc"], orient="row").sort("ink_band")
    want = pl.scan_parquet(DIGITS).mcc.by("ink_band").drop("n_null").collect()
    want = want.with_columns(pl.col("ink_band").cast(pl.String)).sort("ink_band")
    assert_frame_equal(found, want, check_dtypes=False, rel_tol=1e-12)

"""Random plans of local Parquet files: codes and the plain plan give one answer, or one error."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import polars.selectors as cs
import pytest
from hypothesis import settings
from polars.testing import assert_frame_equal
from support import first
from test_coded import VERBS, plainly, small_files_are_worth_it

from polars_mcc import PredictionLog
from polars_mcc._counts import pair_counts

__all__ = ["small_files_are_worth_it"]  # the fixture, for each test of this file

TEXTS = ["", "a", "b", "A", "ä", "b ", "null", None]
NAMED = pl.Categorical(pl.Categories("of the tests of plans"))
LABELS = {
    "text": pl.String(),
    "enum": pl.Enum(TEXTS[:-1]),
    "category": pl.Categorical(),
    "named categories": NAMED,
}
KEYS: dict[str, tuple[pl.DataType, list]] = {
    **{kind: (dtype, TEXTS) for kind, dtype in LABELS.items()},
    "integer": (pl.Int64(), [-1, 0, 7, 2**40, None]),
    "boolean": (pl.Boolean(), [True, False, None]),
    "date": (pl.Date(), [dt.date(1969, 12, 31), dt.date(2026, 1, 2), None]),
    "float": (pl.Float64(), [0.0, -0.0, float("nan"), 0.1, None]),
}
# The names of folders, and their dtypes by `hive_schema`; None: as Polars infers them.
TIMES = [pl.Datetime(unit) for unit in ("ms", "us", "ns")]
DAYS = [None, None, pl.Date(), pl.Date(), pl.String(), *TIMES]
CITIES: list[tuple[list[str], pl.DataType | None]] = [
    (["x", "ä y", "null"], None),
    (["x", "y", "x y"], pl.Enum(["y", "x", "x y"])),
    (["x", "y", "x y"], pl.Categorical()),
    (["a", "b", "A"], NAMED),
    (["0.1", "0.5", "0.9"], None),
    (["0.1", "0.5", "0.9"], pl.Float32()),
    (["0.1", "0.5", "1.5"], pl.Decimal(6, 2)),
    (["0.1", "0.5", "0.10"], pl.String()),
    (["1", "01", "-7"], None),
    (["1", "0", "3"], pl.UInt8()),
    (["2", "1", "3"], pl.Int128()),
    (["true", "false", "true"], pl.Boolean()),
    (["2026-01-01", "1969-12-31", "2026-01-01"], None),
    (["2026-01-01 10:00:00", "2026-01-01 10:00:01", "2026-01-02 00:00:00"], None),
    (["__HIVE_DEFAULT_PARTITION__", "x", "y"], None),
]
NAMES = ["run[1].parquet", "run1.parquet", "a b.parquet", "*.parquet", "x%20y.parquet", "ä.parquet"]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"extra_columns": "ignore"},
    {"missing_columns": "insert"},
    {"low_memory": True},
    {"use_statistics": False, "parallel": "columns"},
    {"cast_options": pl.ScanCastOptions(integer_cast="upcast")},
    {"n_rows": 11},
    {"row_index_name": "at"},
    {"hidden_file_prefix": "run["},
]


def _query(condition: str) -> Any:
    return lambda log: log.sql(f"SELECT * FROM self WHERE {condition}")  # noqa: S608 - ours


HARMLESS = {
    "all": lambda log: log,
    "renamed": lambda log: log.rename({"a": "b", "b": "a"}),
    "renamed by expressions": lambda log: log.with_columns(a=pl.col("b"), pred=pl.col("other")),
    "selected": lambda log: log.select(cs.all()),
    "columns beside": lambda log: log.with_columns(z=pl.col("x").cum_sum(), w=pl.lit(1)),
    "dropped": lambda log: log.drop("x"),
    "labels of folders": lambda log: log.with_columns(gold=pl.col("city")),
}
OTHERS = {
    "true": lambda log: log.filter(pl.lit(value=True)),
    "1 = 1": _query("1 = 1"),
    "false": lambda log: log.filter(pl.lit(value=False)),
    "a day": lambda log: log.filter(pl.col("day") > pl.col("day").min()),
    "a city": lambda log: log.filter(pl.col("city") == pl.col("city").first()),
    "a city and more": lambda log: log.filter((pl.col("city") > "x") & (pl.col("x") > 0.5)),
    "a city or more": lambda log: log.filter((pl.col("city") > "x") | (pl.col("x") > 0.5)),
    "a number": lambda log: log.filter(pl.col("x") > 0.5),
    "a number in SQL": _query("x > 0.5 AND pred IS NOT NULL"),
    "the column *": lambda log: log.filter(cs.by_name("*") > 1),
    "the column ^a$": lambda log: log.filter(cs.by_name("^a$") > 1),
    "equal columns": lambda log: log.filter(pl.col("gold") == pl.col("pred")),
    "a file": lambda log: log.filter(pl.col("file").str.contains("run", literal=True)),
    "head": lambda log: log.head(11),
    "tail": lambda log: log.tail(5),
    "slice": lambda log: log.slice(3, 9),
    "each third": lambda log: log.gather_every(3),
    "shifted": lambda log: log.with_columns(pl.col("pred").shift()),
    "filled": lambda log: log.with_columns(pl.col("pred").fill_null("a")),
    "without nulls": lambda log: log.drop_nulls(["gold"]),
    "twice": lambda log: pl.concat([log, log]),
    "unique": lambda log: log.unique(["a", "gold"], keep="first"),
    "joined": lambda log: log.join(log.select("a").head(1), on="a", how="semi"),
    "some rows of select": lambda log: log.select(cs.all().head(7)),
    "rows of a window": lambda log: log.select(cs.all().filter(pl.col("x") > 0.5)),
    "exploded": lambda log: log.with_columns(z=pl.lit([1, 2])).explode("z"),
    "a function": lambda log: log.map_batches(lambda frame: frame.head(9)),
    "an index": lambda log: log.with_row_index("z").filter(pl.col("z") > 4),
    "in memory": lambda log: log.collect().lazy(),
}


def a_log(draw: Random, folder: Path) -> pl.LazyFrame:
    """Files of random columns in folders, and a scan of them."""
    # Text is twice as likely as the others: `by` counts no other labels by codes.
    label = draw.choice([*LABELS.values(), pl.String()])
    text_or_other = [*LABELS, *KEYS]
    kinds = {"a": draw.choice(text_or_other), "b": draw.choice(text_or_other)}
    day, (cities, city) = draw.choice(DAYS), draw.choice(CITIES)
    is_odd = draw.random() < 0.2
    for place in range(draw.randint(1, 4)):
        rows = draw.randint(1, 30)

        def some(values: list, dtype: pl.DataType | None, rows: int = rows) -> pl.Series:
            return pl.Series(draw.choices(draw.choices(values, k=4), k=rows), dtype=dtype)

        columns = {name: some(KEYS[kind][1], KEYS[kind][0]) for name, kind in kinds.items()}
        columns |= {name: some(TEXTS, label) for name in ("gold", "pred", "other")}
        columns |= {"x": some([0.1, 0.7, 2.0], None), "*": some([1, 2], None)}
        columns["^a$"] = some([1, 2, 3], None)
        if place and is_odd:
            change = draw.choice(["more", "fewer", "other text", "other integers", "other order"])
            columns |= {"extra": some([1], None)} if change == "more" else {}
            columns = {
                name: column
                for name, column in draw.sample([*columns.items()], len(columns))
                if not (change == "fewer" and name == draw.choice(["x", "b"]))
            }
            if change == "other text":
                name = draw.choice(["pred", "other"])
                columns[name] = columns[name].cast(pl.String).cast(pl.Categorical)
            elif change == "other integers":
                columns["*"] = columns["*"].cast(pl.Int16)
        path = folder / f"day=2026-01-{place % 2 + 1:02}" / f"city={draw.choice(cities)}"
        path.mkdir(parents=True, exist_ok=True)
        file = path / draw.choice(NAMES)
        pl.DataFrame(columns).write_parquet(file, row_group_size=draw.choice([7, 100]))
    schema = {"day": day, "city": city}
    given = {name: dtype for name, dtype in schema.items() if dtype is not None}
    whole = {name: given.get(name, pl.String()) for name in schema} if given else None
    options = draw.choice(OPTIONS) if draw.random() < 0.3 else {}
    return pl.scan_parquet(
        folder, hive_partitioning=True, hive_schema=whole, include_file_paths="file", **options
    )


def outcome(verb: str, log: pl.LazyFrame, kinds: list[str], *, is_plain: bool) -> Any:
    """The answer to a question, or the kind of its error."""
    try:
        for kind in kinds:
            log = (HARMLESS | OTHERS)[kind](log)
        return plainly(VERBS[verb], log) if is_plain else VERBS[verb](PredictionLog(log)).collect()
    # Whatever one way raises, the other has to.
    except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001
        return type(error).__name__


@pytest.fixture
def checks(monkeypatch) -> list[str]:
    """A remark for each log that was counted by codes to the end."""
    found: list[str] = []
    check = pair_counts._check

    def noted(*arguments: Any) -> None:
        check(*arguments)
        found.append("coded")

    monkeypatch.setattr(pair_counts, "_check", noted)
    return found


@pytest.mark.parametrize("verb", first(2, VERBS))
def test_codes_and_the_plain_plan_give_one_outcome(verb, tmp_path, checks):
    draw, ways = Random(verb), Counter()
    most = settings.default.max_examples
    for number in range(most):
        log = a_log(draw, tmp_path / str(number))
        kinds = draw.choices([*HARMLESS], k=2)
        if draw.random() < 0.4:
            kinds.insert(draw.randint(0, 2), draw.choice([*OTHERS]))
        checks.clear()
        answer = outcome(verb, log, kinds, is_plain=False)
        way = "coded" if checks else "plain"
        expected = outcome(verb, log, kinds, is_plain=True)
        said = f"log {number} of {tmp_path}: {kinds}"
        if isinstance(answer, str) or isinstance(expected, str):
            assert str(answer) == str(expected), said
            ways["error"] += 1
            continue
        # The influences of clusters are floats, which threads add in any order.
        is_exact = "n_clusters" not in answer.columns
        try:
            assert_frame_equal(answer, expected, check_exact=is_exact, rel_tol=1e-12, abs_tol=1e-12)
        except AssertionError as error:
            raise AssertionError(said) from error
        ways[way] += 1
    assert ways["plain"] or most < 15, ways
    assert ways["coded"] or most < 15 or verb == "windows", ways

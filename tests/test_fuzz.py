"""Random frames of every kind: `by` and the expression, against a few lines of Python.

`HYPOTHESIS_PROFILE=long python -m pytest tests/test_fuzz.py` searches a hundred times longer.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import oracles
import polars as pl
import tables
from hypothesis import given
from hypothesis import strategies as st
from support import CODES, INTEGERS, LABELS, NAMES, ask

import polars_mcc

TEXT = [pl.String(), pl.Categorical(), pl.Enum(NAMES), pl.Enum(NAMES[::-1])]
COMPARABLE = [
    TEXT,
    [dtype() for dtype in INTEGERS],
    [pl.Float32(), pl.Float64()],
    [pl.Boolean()],
    [pl.Date()],
    [pl.Null()],
]
KEYS = {
    pl.String(): ["", "x", "日本", "a\nb", "=1"],
    pl.Int8(): [-1, 0, 1],
    pl.UInt64(): [0, 2**64 - 1],
    pl.Float64(): [0.0, -0.0, math.nan, math.inf, 0.1],
    pl.Boolean(): [False, True],
    pl.Date(): [dt.date(1900, 1, 1), dt.date(2026, 1, 1)],
    pl.Decimal(10, 2): [Decimal("0.10"), Decimal("-3.00")],
    pl.Categorical(): ["x", "y"],
    pl.Enum(["y", "x"]): ["x", "y"],
    pl.List(pl.Int64()): [[], [1], [1, None]],
    pl.Struct({"a": pl.String(), "b": pl.Int8()}): [{"a": "x", "b": None}, {"a": None, "b": 1}],
    pl.Null(): [None],
}
WEIGHTS = {
    pl.Int64(): st.integers(0, 10**15),
    pl.UInt8(): st.integers(0, 255),
    pl.Float64(): st.floats(0, 1e12, allow_subnormal=False).filter(lambda w: w == 0 or w > 1e-6),
    pl.Float32(): st.floats(0, 2**20, width=32).filter(lambda w: w == 0 or w > 1e-6),
}


@st.composite
def logs(draw):
    """Draw a log, the names of its keys, models and weight, and a list of its labels."""
    rows = draw(st.integers(0, 25))

    def column(name: str, dtype: pl.DataType, values: st.SearchStrategy) -> pl.Series:
        some = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        return pl.Series(name, some, dtype=dtype)

    dtypes = draw(st.sampled_from(COMPARABLE))
    label = st.sampled_from(_labels(dtypes[0]))
    models = draw(st.lists(st.sampled_from(["pred", "a", "n", "日本"]), min_size=1, unique=True))
    keys = draw(st.lists(st.sampled_from(["key", "", "a b", "label"]), max_size=2, unique=True))
    columns = [column(name, draw(st.sampled_from(dtypes)), label) for name in ["gold", *models]]
    for name in keys:
        dtype = draw(st.sampled_from(list(KEYS)))
        columns.append(column(name, dtype, st.sampled_from(KEYS[dtype])))
    weight = draw(st.none() | st.sampled_from(list(WEIGHTS)))
    if weight is not None:
        columns.append(column("w", weight, WEIGHTS[weight]))
    # A dict: from a list of Series, Polars would rename the column "".
    frame = pl.DataFrame({column.name: column for column in columns})
    return frame, keys, models, None if weight is None else "w", _labels(dtypes[0])


def _labels(dtype: pl.DataType) -> list:
    return [None] if dtype == pl.Null else list(dict.fromkeys(LABELS.get(dtype, list(CODES))))


def _same(value: object) -> object:
    """A value of a key as a dict key: equal keys are equal, and null is not the text "None"."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return repr(value) if isinstance(value, (list, dict)) else value


def expected(log, keys, model, weight, nulls):
    """The exact table of each slice, and the weights of the rows left out of it."""
    found: dict[tuple, tuple[Counter, list]] = {}
    for row in log.iter_rows(named=True):
        table, left_out = found.setdefault(tuple(_same(row[key]) for key in keys), (Counter(), []))
        gold, pred = row["gold"], row[model]
        n = 1 if weight is None else row[weight]
        if n is None:
            left_out.append(1)
        elif nulls == "drop" and (gold is None or pred is None):
            left_out.append(n)
        else:
            table[gold, pred] += Fraction(n)
    if not keys:
        found.setdefault((), (Counter(), []))
    return found


@given(logs(), st.sampled_from(["drop", "label"]), st.sampled_from([0.0, None, 0.5]))
def test_every_frame_is_scored_exactly(run, log, nulls, undefined):
    frame, keys, models, weight, labels = log
    options = {"nulls": nulls, "zero_division": undefined}
    answer = run(frame, lambda f: ask(f, "by", *keys, pred=models, weight=weight, **options))
    assert answer.columns == [*keys, "model", "n", "mcc", "n_null"]
    seen = set()
    for *key, model, n, score, n_null in answer.iter_rows():
        seen.add((tuple(map(_same, key)), model))
        slices = expected(frame, keys, model, weight, nulls)
        table, left_out = slices[tuple(map(_same, key))]
        total = sum(table.values())
        assert n == total if isinstance(n, int) else math.isclose(n, total, rel_tol=2**-50)
        assert math.isclose(n_null, math.fsum(left_out), rel_tol=2**-50)
        integers = tables.as_integers(table)
        truth = oracles.exact(integers)
        if truth is None or _is_degenerate(integers):
            assert score == (None if truth is None else undefined)
        elif weight is None or frame[weight].dtype.is_integer():
            assert oracles.ulps(score, truth) <= 4
        else:
            # Each cell is rounded to a float: an error in its last place.
            assert abs(score - float(truth)) <= 1e-12
    for model in models:
        assert {(key, model) for key in expected(frame, keys, model, weight, nulls)} <= seen
    assert len(seen) == answer.height

    if not keys:
        for known in (None, labels):
            found = run(
                frame,
                lambda f, known=known: f.select(
                    polars_mcc.ExprMcc(pl.col(models)).score(
                        "gold", weight=weight, labels=known, **options
                    )
                ),
            )
            for ours, same in zip(found.row(0), answer["mcc"], strict=True):
                assert ours == same or math.isclose(ours, same, rel_tol=1e-12, abs_tol=1e-12)


def _is_degenerate(table) -> bool:
    return any(sum(n > 0 for n in side.values()) <= 1 for side in oracles.marginals(table))

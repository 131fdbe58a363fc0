"""The score has all its digits, compared with exact arithmetic on hard tables."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import oracles
import polars as pl
import pytest
import tables
from benchmarks.exactness import QUERIES, errors
from hypothesis import given
from hypothesis import strategies as st
from support import first, in_turn

import polars_mcc

mcc = polars_mcc.ExprMcc(pl.col("pred")).score


@in_turn(family=tables.INTEGERS, query=QUERIES)
def test_counts_are_scored_to_4_ulp(family, query):
    rng = random.Random(family.__name__)
    some = [family(rng) for _ in range(20 if family is tables.many_classes else 300)]
    assert max(errors(some, query)) <= 4


@in_turn(family=tables.FLOATS, query=QUERIES)
def test_float_weights_are_scored_to_8_ulp(family, query):
    if family in tables.BEYOND_LABELS and query == "agg, labels":
        pytest.skip("exact for weights between 10^-6 and 10^12 only")
    rng = random.Random(family.__name__)
    assert max(errors([family(rng) for _ in range(300)], query)) <= 8


@given(
    exponent=st.integers(-1000, 1000),
    cells=st.lists(st.floats(1e-3, 1e3), min_size=9, max_size=9),
)
def test_sums_by_label_of_floats_of_any_size(exponent, cells):
    """With known labels, weights out of range are added as floats: subtractions may lose digits."""
    pairs = [(g, p) for g in range(3) for p in range(3)]
    table = {pair: math.ldexp(n, exponent) for pair, n in zip(pairs, cells, strict=True)}
    found = tables.counts_of([table]).select(mcc("gold", weight="n", labels=[0, 1, 2])).item()
    integers = tables.as_integers(table)
    tolerance = 4 * 2**-53 * oracles.cancellation(integers)
    assert found == pytest.approx(float(oracles.exact(integers)), abs=tolerance)


@in_turn(
    dtype=[pl.Int64, pl.UInt64, pl.Int128, pl.Float64],
    **{
        "matrix, score": [
            ([[10**12, 1], [1, 3]], 0.749999999999),
            ([[10**15, 5], [7, 11]], 0.648181),
            ([[10**18, 10**18], [10**18, 2]], -0.5),
        ]
    },
)
def test_where_peers_lose_digits(run, matrix, score, dtype):
    table = oracles.table_of(matrix)
    log = tables.counts_of([table]).cast({"n": dtype})
    found = run(log, lambda frame: frame.mcc(weight="n").score())["mcc"].item()
    assert oracles.ulps(found, oracles.exact(table)) <= 4
    assert found == pytest.approx(score, abs=1e-6)


@pytest.mark.slow
def test_very_many_cells_of_floats():
    """400 classes, a weight in every cell, and hits close to chance."""
    rng = random.Random(0)
    table = {(g, p): rng.random() for g in range(400) for p in range(400)}
    found = tables.counts_of([table]).mcc(weight="n").score()["mcc"].item()
    assert oracles.ulps(found, oracles.exact(tables.as_integers(table))) <= 8


@pytest.mark.parametrize("weight", first(1, [1e-7 / 3, 1e9 / 3, 0.1]))
def test_a_million_rows_of_a_float(run, weight):
    """An ordinary float sum of these rows is off by 10^-11."""
    rows = 1_000_000
    log = pl.DataFrame({"gold": [1, 1, 0, 0], "pred": [1, 0, 1, 0]}).select(
        pl.all().repeat_by(pl.Series([rows - 3, 1, 1, 1])).explode(), w=pl.lit(weight)
    )
    answer = run(log, lambda frame: frame.mcc(weight="w").score())
    assert answer["n"].item() == pytest.approx(float(rows * Fraction(weight)), rel=2**-52)
    truth = oracles.exact({(1, 1): rows - 3, (1, 0): 1, (0, 1): 1, (0, 0): 1})
    for labels in (None, [0, 1]):
        query = mcc("gold", weight="w", labels=labels)
        assert oracles.ulps(run(log, lambda f, q=query: f.select(q)).item(), truth) <= 8
    # A cell is rounded to a float, with an error relative to the cell.
    assert oracles.ulps(answer["mcc"].item(), truth) <= 8


@pytest.mark.parametrize("weight", [1e-20, 1e15, 1e20, 1e30])
def test_many_rows_of_a_float_that_is_out_of_range(run, weight):
    """Such weights add up as floats do; integers would wrap around."""
    rows = 100_000
    log = pl.DataFrame({"gold": [0, 1] * rows, "pred": [0, 1] * rows}).with_columns(w=weight)
    answer = run(log, lambda frame: frame.mcc(weight="w").score())
    assert answer["n"].item() == pytest.approx(2 * rows * weight, rel=2 * rows * 2**-53)
    assert answer["mcc"].item() == 1
    query = mcc("gold", weight="w", labels=[0, 1])
    assert run(log, lambda frame: frame.select(query)).item() == 1


def test_order_and_engine_do_not_matter_for_floats(run):
    rng = random.Random(0)
    log = pl.DataFrame(
        {
            "gold": [rng.randrange(3) for _ in range(10_000)],
            "pred": [rng.randrange(3) for _ in range(10_000)],
            "w": [10 ** rng.uniform(-6, 6) for _ in range(10_000)],
        }
    )
    answer = run(log, lambda frame: frame.mcc(weight="w").by())
    assert answer.equals(log.reverse().mcc(weight="w").by())
    assert answer["n"].item() == pytest.approx(math.fsum(log["w"]), rel=2**-52)


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-300, 1e300])
def test_floats_at_the_ends_of_their_range(run, size):
    log = tables.counts_of([{(0, 0): 6.0, (0, 1): 2.0, (1, 0): 1.0, (1, 1): 3.0}])
    log = log.with_columns(pl.col("n") * size)
    truth = oracles.exact({(0, 0): 6, (0, 1): 2, (1, 0): 1, (1, 1): 3})
    answer = run(log, lambda frame: frame.mcc(weight="n").score())
    assert answer["n"].item() == 12 * size
    assert oracles.ulps(answer["mcc"].item(), truth) <= (8 if size > 1e-300 else 10**6)


@pytest.mark.parametrize(
    ("weight", "dtype"), [(2**63 - 1, pl.Int64), (2**64 - 1, pl.UInt64), (2**127 - 1, pl.Int128)]
)
def test_counts_do_not_wrap_around(run, weight, dtype):
    log = pl.DataFrame({"gold": [0, 0, 0, 1], "pred": [0, 0, 1, 1]})
    log = log.with_columns(w=pl.lit(weight, dtype))
    queries = [
        lambda frame: frame.mcc(weight="w").score(),
        lambda frame: frame.mcc(weight="w").classes(),
        lambda frame: frame.select(mcc("gold", weight="w")),
        lambda frame: frame.select(mcc("gold", weight="w", labels=[0, 1])),
    ]
    for query in queries:
        with pytest.raises(
            pl.exceptions.InvalidOperationError, match="the rows add up to at least"
        ):
            run(log, query)
    most = log.head(1).with_columns(w=pl.lit(2**63 - 1, dtype))
    assert run(most, queries[0])["n"].item() == 2**63 - 1
    if weight > 2**63 - 1:
        with pytest.raises(
            pl.exceptions.InvalidOperationError, match="the rows add up to at least"
        ):
            run(most.with_columns(w=pl.lit(2**63, dtype)), queries[0])


def test_floats_that_add_up_to_infinity(run):
    log = tables.counts_of([{(0, 0): 1e308, (0, 1): 1e308}])
    with pytest.raises(pl.exceptions.InvalidOperationError, match="the weights add up to inf"):
        run(log, lambda frame: frame.mcc(weight="n").score())


@pytest.mark.release
def test_more_than_2_to_the_32_rows(tmp_path):
    """In the whole log, in one cell, and left out. A file is read 65 times, to save disk space."""
    rows = 2**26
    for name, gold in (("hit", True), ("null", None)):
        row = pl.DataFrame({"gold": gold, "pred": True}, schema_overrides={"gold": pl.Boolean})
        row.select(pl.all().repeat_by(rows).explode()).write_parquet(tmp_path / f"{name}.parquet")
    few = pl.DataFrame({"gold": [True, False, False], "pred": [False, True, False]})
    few.write_parquet(tmp_path / "few.parquet")
    names = ["hit"] * 65 + ["null"] * 65 + ["few"]
    log = pl.scan_parquet([tmp_path / f"{name}.parquet" for name in names])
    table = {(1, 1): 65 * rows, (1, 0): 1, (0, 1): 1, (0, 0): 1}
    assert table[1, 1] > 2**32

    [(n, score, n_null)] = log.mcc.score().collect().rows()
    assert (n, n_null) == (sum(table.values()), 65 * rows)
    assert oracles.ulps(score, oracles.exact(table)) <= 4
    assert log.mcc.counts().collect().rows() == [
        (None, True, 65 * rows),
        (False, False, 1),
        (False, True, 1),
        (True, False, 1),
        (True, True, 65 * rows),
    ]
    assert log.select(mcc("gold")).collect().item() == score


@pytest.mark.parametrize("cell", [2**32, 2**33 + 1, 10**18])
def test_more_than_2_to_the_32_rows_by_weight(run, cell):
    table = {(1, 1): cell, (1, 0): cell, (0, 1): cell, (0, 0): 2}
    log = tables.counts_of([table])
    answer = run(log, lambda frame: frame.mcc(weight="n").score())
    assert answer["n"].item() == sum(table.values())
    assert oracles.ulps(answer["mcc"].item(), oracles.exact(table)) <= 4
    null = log.with_columns(gold=pl.lit(None, pl.Int64))
    assert run(null, lambda f: f.mcc(weight="n").score())["n_null"].item() == 3 * cell + 2

"""Derivatives by arithmetic, against finite differences of the same function by NumPy."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from polars_mcc._scores.derivative import Dual, NoDerivativeError, Tape

STEP = 1e-6


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    numbers = {"x": rng.random(10) + 0.1, "y": rng.random(10) + 0.2, "c": rng.random(10)}
    return pl.DataFrame({"slice": [0] * 5 + [1] * 5, **numbers})


def tape() -> Tape:
    return Tape({"x": {"x": 1}, "y": {"y": 1}}, lambda one: one.over("slice"))


SMOOTH = {
    "sum": lambda col: col("x").sum(),
    "mean of a product": lambda col: (col("x") * col("y")).mean(),
    "weighted mean": lambda col: (col("x") * col("y")).sum() / col("y").sum(),
    "filter": lambda col: (col("x") / col("y")).filter(col("c") > 0.4).mean(),
    "two conditions": lambda col: col("x").filter(col("c") < 0.9, col("y") > 0.3).sum(),
    "equal to a value": lambda col: (col("x") * 2).filter(slice=1).sum(),
    "filtered before the sum": lambda col: (
        col("x").filter(col("c") > 0.4) * col("y").filter(col("c") > 0.4) / 2
    ).sum(),
    "of the least": lambda col: col("x").filter(col("y") == col("y").min()).sum(),
    "least": lambda col: col("x").min(),
    "largest less least": lambda col: col("x").max() - col("y").filter(col("c") > 0.1).min(),
    "variance, nested": lambda col: ((col("x") - col("x").mean()) ** 2).mean(),
    "geometric mean": lambda col: col("x").log().mean().exp(),
    "log of a base": lambda col: col("x").log(3).sum(),
    "a power that varies": lambda col: col("x").pow(col("y")).mean(),
    "a number to a power": lambda col: (2.0 ** col("x")).mean(),
    "root": lambda col: (col("x").sum() * col("x").sum() + (col("x") * col("x")).sum()).sqrt(),
    "from numbers": lambda col: ((3 - col("x")) * 2 / (1 + 1 / col("y"))).sum(),
    "cut": lambda col: col("x").mean().clip(0, 0.3) + col("x").clip(0.4, 0.8).sum(),
    "filled": lambda col: (col("x").filter(col("c") > 2).max().fill_null(col("y").sum()) + 1).cast(
        pl.Float64
    ),
    "nothing to fill": lambda col: (col("x") * 3).sum().fill_null(col("y").sum()),
    "times a condition": lambda col: ((col("c") > 0.5) * col("x")).sum(),
    "times a count": lambda col: (1 - col("x")).mean() * pl.len() * col("y").count(),
    "sign": lambda col: -(col("x").sum() - 10).abs(),
    "named": lambda col: (pl.lit(1.0) - col("x")).drop_nulls().sum().alias("named"),
    "none left": lambda col: col("x").filter(col("c") > 2).mean(),
}


@pytest.mark.parametrize("score", SMOOTH.values(), ids=SMOOTH)
def test_derivatives_are_those_of_differences(frame, score):
    one = tape()
    value = score(one)
    slopes = {f"d{name}": slope for name, slope in one.gradient(value).items()}
    found = one.with_columns(frame.lazy()).select(value=value.value, **slopes).collect()

    def values(numbers: pl.DataFrame) -> np.ndarray:
        return numbers.with_columns(value=score(pl.col).over("slice"))["value"].to_numpy()

    np.testing.assert_allclose(found["value"].to_numpy(), values(frame), rtol=1e-14)
    for column in ("x", "y"):
        for row in range(frame.height):
            step = STEP * (np.arange(frame.height) == row)
            above, below = (
                values(frame.with_columns(pl.Series(column, frame[column].to_numpy() + moved)))
                for moved in (step, -step)
            )
            slope = found[f"d{column}"][row] if f"d{column}" in found.columns else 0
            difference = np.nan_to_num((above - below)[row] / (2 * STEP))
            assert (slope or 0) == pytest.approx(difference, abs=1e-7), (column, row)


def test_an_aggregation_is_computed_once():
    one = tape()
    first, second = (one("x").sum() / one("y").sum() for _ in range(2))
    assert first.meta.eq(second)
    frame = one.with_columns(pl.LazyFrame(schema={"slice": pl.Int8, "x": pl.Int8, "y": pl.Int8}))
    assert len(frame.collect_schema()) == 5


@pytest.mark.parametrize(
    ("score", "named"),
    [
        (lambda col: col("x").std() * col("y"), "std"),
        (lambda col: col("x") * col("x").median(), "median"),
        (lambda col: col("y") - (col("x") > 0.5), ">"),
        (lambda col: (col("x") * 10).cast(pl.Int64) + col("y"), "cast"),
        (lambda col: col("y") + pl.when(col("c") > 0).then(col("x")), "when"),
        (lambda col: col("x").filter(col("c") > 0.1) + col("y").filter(col("c") > 0.2), "x"),
    ],
)
def test_a_part_that_has_no_derivative_is_named(score, named):
    score(pl.col)
    with pytest.raises(NoDerivativeError, match=named):
        score(tape())


@pytest.mark.parametrize("method", ["median", "std", "floor", "first", "n_unique", "len"])
def test_a_method_without_a_rule_gives_an_expression_without_a_derivative(method):
    assert not isinstance(getattr(tape()("x"), method)(), Dual)

"""Derivatives of expressions by arithmetic, against numerical differentiation."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from polars_mcc._inference.derivative import NoDerivativeError, Tape

X, Y, C = pl.col("x"), pl.col("y"), pl.col("c")
STEP = 1e-6


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    numbers = {"x": rng.random(10) + 0.1, "y": rng.random(10) + 0.2, "c": rng.random(10)}
    return pl.DataFrame({"slice": [0] * 5 + [1] * 5, **numbers})


SMOOTH = {
    "sum": X.sum(),
    "mean of a product": (X * Y).mean(),
    "weighted mean": (X * Y).sum() / Y.sum(),
    "filter": (X / Y).filter(C > 0.4).mean(),
    "least": X.min(),
    "largest less least": X.max() - Y.min(),
    "variance, nested": (X - X.mean()).pow(2).mean(),
    "geometric mean": X.log().mean().exp(),
    "log of a base": X.log(3).sum(),
    "a base that varies": (X + 1).log(Y + 1).mean(),
    "a power that varies": X.pow(Y).mean(),
    "a number to a power": pl.lit(2.0).pow(X).mean(),
    "root": (X.sum() * X.sum() + (X * X).sum()).sqrt(),
    "either": pl.when(X > Y).then(X * X).otherwise(Y).sum(),
    "least of two": pl.min_horizontal(X, Y).sum() / Y.sum(),
    "largest of two sums": pl.max_horizontal(X.sum(), Y.sum()),
    "sum of three": pl.sum_horizontal(X, Y, C).mean(),
    "cut at a number": X.mean().clip(0, 0.3),
    "cut at a column": X.clip(Y, 1.0).mean(),
    "filled": X.fill_null(0).sum(),
    "of counts": (1 - X).mean() * pl.len(),
    "sign": -(X.sum() - 10).abs(),
    "artanh": (X / 3).mean().arctanh(),
    "log1p": X.log1p().sum(),
    "where a sum is 0": pl.when(Y.sum() == 0).then(None).otherwise(X.sum() / Y.sum()),
}


@pytest.mark.parametrize("expression", SMOOTH.values(), ids=SMOOTH)
def test_derivatives_are_those_of_differences(frame, expression):
    tape = Tape(["x", "y"], lambda aggregation: aggregation.over("slice"))
    value = tape.read(expression)
    slopes = {f"d{name}": one for name, one in tape.gradient(value).items()}
    found = tape.with_aggregates(frame.lazy()).select(value=value.value, **slopes).collect()

    def values(numbers: pl.DataFrame) -> pl.Series:
        return numbers.with_columns(value=expression.over("slice"))["value"]

    assert found["value"].to_list() == pytest.approx(values(frame).to_list(), rel=1e-14)
    for column in ("x", "y"):
        for row in range(frame.height):
            here = (pl.int_range(pl.len()) == row).cast(pl.Float64)
            above, below = (
                values(frame.with_columns(pl.col(column) + sign * STEP * here))[row]
                for sign in (1, -1)
            )
            slope = found[f"d{column}"][row] if f"d{column}" in found.columns else 0
            assert slope == pytest.approx((above - below) / (2 * STEP), abs=1e-7), (column, row)


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        (X.median(), "Median"),
        (X.std(), "Std"),
        (X.quantile(0.1), "Quantile"),
        ((X > 0.5).mean(), "Gt"),
        (X.floor().mean(), "Floor"),
        ((X * 10).cast(pl.Int64).mean(), "Cast"),
        (X.first(), "First"),
        (X.clip(float("-inf"), 0.9).mean(), "NaN or infinity"),
        (X.filter(C > 0.1) + Y.filter(C > 0.2), "Filter"),
    ],
)
def test_what_has_no_derivative_is_named(expression, named):
    with pytest.raises(NoDerivativeError, match=named):
        Tape(["x", "y"], lambda aggregation: aggregation).read(expression.sum())

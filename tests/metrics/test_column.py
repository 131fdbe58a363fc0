"""Derivatives by arithmetic, against finite differences of the same function by NumPy."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from support import first

from polars_mcc._metrics.derivatives import ArrayColumns, Column, NoDerivativeError
from polars_mcc._metrics.slice_sums import Segments

STEP = 1e-6


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    numbers = {"x": rng.random(10) + 0.1, "y": rng.random(10) + 0.2, "c": rng.random(10)}
    return pl.DataFrame({"slice": [0] * 5 + [1] * 5, **numbers, "label": list("abcdeabcde")})


def columns_of(frame: pl.DataFrame) -> ArrayColumns:
    rows = Segments.of(frame["slice"].to_numpy(), 2)
    arrays: dict = {name: frame[name].to_numpy().astype(float) for name in ("slice", "c")}
    columns = ArrayColumns(rows, arrays, frame.select("label"))
    for name in ("x", "y"):
        arrays[name] = Column(columns, frame[name].to_numpy(), is_variable=True)
    return columns


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
    "times a count": lambda col: (1 - col("x")).mean() * 3 * col("y").count(),
    "of a label": lambda col: col("x").filter(col("label") == "b").sum(),
    "of some labels": lambda col: (
        col("x").filter(col("label").str.to_uppercase().is_in(["B", "C"]), ~(col("c") > 0.9)).mean()
    ),
    "either": lambda col: col("x").filter((col("c") > 0.5) | (col("y") < 0.5)).sum(),
    "sign": lambda col: -(col("x").sum() - 10).abs(),
    "named": lambda col: (1.0 - col("x")).drop_nulls().sum().alias("named"),
    "none left": lambda col: col("x").filter(col("c") > 2).mean(),
}


@pytest.mark.parametrize("score", first(14, SMOOTH.values()), ids=SMOOTH)
def test_derivatives_are_those_of_differences(frame, score):
    col = columns_of(frame)
    with np.errstate(all="ignore"):
        value = score(col)
        found = value.of_slices().value
        slopes = dict(zip("xy", value.gradient(col("x"), col("y")), strict=True))

    def values(numbers: pl.DataFrame) -> np.ndarray:
        return numbers.with_columns(value=score(pl.col).over("slice"))["value"].to_numpy()

    expected = pl.Series(values(frame)[[0, 5]]).fill_nan(None)
    np.testing.assert_allclose(found, expected.to_numpy(), rtol=1e-14)
    for column in ("x", "y"):
        for row in range(frame.height):
            step = STEP * (np.arange(frame.height) == row)
            above, below = (
                values(frame.with_columns(pl.Series(column, frame[column].to_numpy() + moved)))
                for moved in (step, -step)
            )
            difference = np.nan_to_num((above - below)[row] / (2 * STEP))
            slope = np.nan_to_num(slopes[column][row])
            assert slope == pytest.approx(difference, abs=1e-7), (column, row)


@pytest.mark.parametrize(
    ("score", "named"),
    [
        (lambda col: col("x").std() * col("y"), "std"),
        (lambda col: col("x") * col("x").median(), "median"),
        (lambda col: (col("x") * 10).cast(pl.Int64) + col("y"), "cast"),
        (lambda col: col("x").filter(col("c") > 0.1) + col("y").filter(col("c") > 0.2), "filtered"),
        (lambda col: (col("x") * pl.col("y")).sum(), "y"),
    ],
)
def test_a_part_that_has_no_derivative_is_named(frame, score, named):
    score(pl.col)
    with pytest.raises(NoDerivativeError, match=named):
        score(columns_of(frame))


@pytest.mark.parametrize("method", ["median", "std", "floor", "first", "n_unique", "len"])
def test_a_method_without_a_rule_is_named_with_those_there_are(frame, method):
    with pytest.raises(NoDerivativeError, match=f"'{method}' has no derivative.*clip, count"):
        getattr(columns_of(frame)("x"), method)()

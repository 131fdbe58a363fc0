"""How often `gaps` finds a gap between equal slices, and its interval covers, by simulation.

    python tests/benchmarks/gaps_coverage.py [--samples 2000]

A log has two classes; 30 % of the rows are positive. Rows of both classes are wrong at the same
rate, 0.02, 0.1 or 0.5. Slices have 30 rows, 300 rows, or 30 to 3,000 rows, in a geometric series.
They are all equal; or they differ: the logarithms of their rates are evenly spread, up to a factor
of 2 from the middle, in any order of sizes.

For equal slices: how often p < 0.05 and p < 0.01, the most of all sizes and rates; and how often
the interval of the gap holds 0, the least of these. For other slices: how often it holds the true
gap, the least. A sample without a gap is left out: a slice may lack a class. If slices differ, a
sample is also left out where `gaps` does not compare all of its slices, because the true gap is of
all. A setting is left out if most of its samples are.

The second table is why a gap needs an interval: the mean of the largest minus the smallest of equal
slices, beside the mean of `spread`.

The last table is of the four-fifths rule, `check(min_ratio={"selection_rate": 0.8}, ci=0.95)`.
Every second group is selected at the rate, the others at 0.8 of it: how often the gate stops them,
which should be at most 0.05, and how often the interval holds 0.8. Then at 0.5 of it: how often the
gate finds them. In "30 and 3,000", the groups at the lower rate are small; in "3,000 and 30",
large.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import polars as pl
from measuring import print_head, print_row

import polars_mcc  # noqa: F401 - registers the namespace

METRICS = ("tpr", "fpr", "accuracy", "mcc", "f1_macro")
RATES = (0.02, 0.1, 0.5)
SIZES = {"30": (30, 30), "300": (300, 300), "30 to 3,000": (30, 3000)}
POSITIVE, FACTOR = 0.3, 2.0
SETTINGS = [*itertools.product(SIZES, RATES)]
GROUPS = {"30": [30], "3,000": [3000], "30 and 3,000": [30, 3000], "3,000 and 30": [3000, 30]}
LEAST = 0.8  # the four-fifths rule
FEWEST = 0.5  # of the samples must have a gap
WORST = {
    "p < 0.05, equal slices": max,
    "p < 0.01, equal slices": max,
    "the interval holds 0, equal slices": min,
    "the interval holds the gap, slices that differ": min,
}
MEANS = ("mean gap", "mean spread")


def shares_of(rates: np.ndarray) -> np.ndarray:
    """The shares of rows, gold by prediction, of slices with these rates of errors."""
    gold = np.array([1 - POSITIVE, POSITIVE])
    wrong = gold * rates[:, None]
    is_right = np.eye(2, dtype=bool)
    return np.where(is_right, (gold - wrong)[:, :, None], wrong[:, :, None])


def truths_of(shares: np.ndarray) -> dict[str, float]:
    """The true gap of each metric, from a very large log."""
    n = np.rint(shares * 1e12).astype(np.int64)
    part, gold, pred = np.indices(n.shape).reshape(3, -1)
    log = pl.DataFrame({"part": part, "gold": gold, "pred": pred, "n": n.ravel()})
    scores = log.mcc(weight="n", positive=1).by("part", metrics=METRICS)
    return {name: scores[name].max() - scores[name].min() for name in METRICS}


def found(
    rates: np.ndarray, sizes: np.ndarray, samples: int, rng: np.random.Generator
) -> pl.DataFrame:
    """The gaps of samples of these slices."""
    shares = shares_of(rates).reshape(len(rates), -1)
    drawn = rng.multinomial(sizes, shares, size=(samples, len(rates)))
    sample, part, pair = np.nonzero(drawn)
    frame = pl.DataFrame(
        {"sample": sample, "part": part, "gold": pair // 2, "pred": pair % 2}
        | {"n": drawn[sample, part, pair]}
    )
    log = frame.mcc(weight="n", positive=1)
    return log.gaps("part", within="sample", metrics=METRICS).drop_nulls("diff_low")


def per_metric(gaps: pl.DataFrame, value: pl.Expr, samples: int) -> dict[str, float]:
    """The mean of a value for each metric, where most samples have a gap."""
    means = gaps.group_by("metric").agg(value.mean().alias("mean"), n=pl.len())
    return dict(means.filter(pl.col("n") > FEWEST * samples).select("metric", "mean").rows())


def measured(number: int, samples: int) -> dict[str, list[dict[str, float]]]:
    """What is measured, for each size and rate."""
    rng = np.random.default_rng([number, samples])
    measures: dict[str, list[dict[str, float]]] = {}
    for name, rate in SETTINGS:
        sizes = np.rint(np.geomspace(*SIZES[name], number)).astype(np.int64)
        equal = found(np.full(number, rate), sizes, samples, rng)
        factors = FACTOR ** rng.permutation(np.linspace(-1, 1, number))
        rates = np.minimum(rate * factors, 0.95)
        true = pl.col("metric").replace_strict(truths_of(shares_of(rates)), return_dtype=pl.Float64)
        other = found(rates, sizes, samples, rng).filter(pl.col("n_slices") == number)
        asked = [
            (equal, pl.col("p_value") < 0.05),
            (equal, pl.col("p_value") < 0.01),
            (equal, pl.col("diff_low") == 0),
            (other, true.is_between("diff_low", "diff_high")),
            (equal, pl.col("diff")),
            (equal, pl.col("spread")),
        ]
        for what, (gaps, value) in zip((*WORST, *MEANS), asked, strict=True):
            measures.setdefault(what, []).append(per_metric(gaps, value, samples))
    return measures


def selected(
    ratio: float,
    rate: float,
    sizes: Sequence[int],
    number: int,
    samples: int,
    rng: np.random.Generator,
) -> pl.DataFrame:
    """The gaps of the selection rate of samples, where every second group has a lower rate."""
    rows = np.resize(sizes, number)
    rates = np.resize([ratio * rate, rate], number)
    hits = rng.binomial(rows, rates, size=(samples, number))
    sample, part, pred = np.indices((samples, number, 2)).reshape(3, -1)
    n = np.stack([rows - hits, hits], axis=-1).ravel()
    frame = pl.DataFrame({"sample": sample, "part": part, "pred": pred, "n": n}).filter(
        pl.col("n") > 0
    )
    log = frame.mcc(gold="pred", weight="n", positive=1)
    return log.gaps("part", within="sample", metrics="selection_rate").drop_nulls("ratio_low")


def ratio_gates(
    number: int, sizes: Sequence[int], rate: float, samples: int, rng: np.random.Generator
) -> list[float]:
    """How often a gate stops groups at the ratio it asks for, is covered, and finds half of it."""
    healthy, poor = (selected(ratio, rate, sizes, number, samples, rng) for ratio in (LEAST, 0.5))
    stops, finds = (int((of["ratio_high"] < LEAST).sum()) / samples for of in (healthy, poor))
    holds = healthy.select(pl.lit(LEAST).is_between("ratio_low", "ratio_high").mean()).item()
    return [stops, holds, finds]


def gates(
    samples: int, rng: np.random.Generator
) -> list[tuple[tuple[int, str, float], list[float]]]:
    """The figures of `ratio_gates`, for each number of groups, their sizes, and each rate."""
    settings = itertools.product((2, 5, 50), GROUPS.items(), (0.02, 0.1, 0.5))
    return [
        ((number, name, rate), ratio_gates(number, sizes, rate, samples, rng))
        for number, (name, sizes), rate in settings
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--samples", type=int, default=2000)
    args = parser.parse_args()
    samples = args.samples
    slices_of = (2, 3, 10, 50)
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        # The longest first.
        of_slices = {number: pool.submit(measured, number, samples) for number in slices_of[::-1]}
        of_gates = pool.submit(gates, samples // 4, np.random.default_rng(samples))
    measures = {number: of_slices[number].result() for number in slices_of}
    print_head(["what", "slices"], METRICS)
    for what, worst in WORST.items():
        for number, measure in measures.items():
            cells = (worst(of[name] for of in measure[what] if name in of) for name in METRICS)
            print_row(what, number, *(f"{cell:.3f}" for cell in cells))
    print()
    print_head(["slices", "rows of a slice", "rate"], ["mean gap of accuracy", "mean `spread`"])
    for number in slices_of[1:]:
        for place, (size, rate) in enumerate(SETTINGS):
            means = (measures[number][what][place]["accuracy"] for what in MEANS)
            if rate < 0.5 and size != "300":
                print_row(number, size, rate, *(f"{mean:.3f}" for mean in means))
    print()
    print_head(["groups", "rows of a group", "rate"], ["stops at 0.8", "holds 0.8", "finds 0.5"])
    for labels, figures in of_gates.result():
        print_row(*labels, *(f"{figure:.3f}" for figure in figures))


if __name__ == "__main__":
    main()

"""How often intervals of costs, F_β, weighted kappa and ratios cover the true score, by simulation.

    python tests/benchmarks/costs_coverage.py [--samples 2000]

Rows are drawn from a table of shares, gold by prediction, as in partial_labels.py, with two to five
classes. A table says the least coverage of 95 % intervals over six settings: each class is found
with the same rate, 0.7, 0.9 or 0.97, and the classes are equal, or each is half as frequent as the
one before. As many rows are drawn as give, on average, so many of the rarest class.

The costs: a missed row of the rarest class costs 10 or 100, and a false alarm of it 1; each error
costs its distance, and three times as much in one direction ("steps"); of all errors, one costs 100
and the others 1 ("one dear error"). Such an error may be rarer than one in all rows.

The second table compares two slices with equal shares: how often p < 0.01 comes, divided by 0.01.
The last two are the same of the likelihood ratios and their ratio, of the rarest class; the tests
are of ratios.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce

import numpy as np
import polars as pl
from measuring import print_head, print_row
from partial_labels import FOUND, SHARES, draws_of, table_of

from polars_mcc import metric

RATIOS = ("lr_pos", "lr_neg", "dor")
LABELS = {"f2": "F2", "f2_macro": "F2 macro", "c10": "cost 10:1", "c100": "cost 100:1"}
LABELS |= {"steps": "cost in steps", "dear": "one dear error"}
LABELS |= {"kappa_linear": "kappa linear", "kappa_quadratic": "kappa quadratic"}
LABELS |= {name: f"`{name}`" for name in RATIOS}
COMPARED = ("f2", "c10", "steps", "kappa_quadratic")


def metrics_of(classes: int) -> list:
    errors = [*itertools.permutations(range(classes), 2)]
    steps = {(i, j): abs(i - j) * (3 if i > j else 1) for i, j in errors}
    dear = dict.fromkeys(errors, 1) | {(classes - 1, 0): 100}
    return [
        *("f_beta(2)", "f_beta(2, macro)", metric.cost(fn=10, fp=1).alias("c10")),
        *(metric.cost(fn=100, fp=1).alias("c100"), metric.cost(steps).alias("steps")),
        *(metric.cost(dear).alias("dear"), metric.kappa("linear", order=range(classes))),
        *("kappa(quadratic)", *RATIOS),
    ]


def counts_of(drawn: np.ndarray) -> pl.DataFrame:
    where = np.nonzero(drawn)
    return pl.DataFrame(dict(zip(("sample", "gold", "pred"), where, strict=True))).with_columns(
        n=pl.Series(drawn[where])
    )


def settings(classes: int) -> Iterator[np.ndarray]:
    for found, shares in itertools.product(FOUND, SHARES):
        yield table_of(classes, found, shares)


def rows_for(shares: np.ndarray, rarest: int) -> int:
    return int(np.ceil(rarest / shares.sum(1).min()))


def coverage(shares: np.ndarray, rows: int, samples: int, names: Sequence[str]) -> dict[str, float]:
    """How often the interval of each metric covers the true score."""
    rng, k = np.random.default_rng([rows, len(shares)]), len(shares)
    options = {"weight": "n", "positive": k - 1}
    whole = counts_of(np.rint(shares * 1e12).astype(np.int64)[None])
    asked = [one for name, one in zip(LABELS, metrics_of(k), strict=True) if name in names]
    truth = whole.mcc(**options).score(metrics=asked).row(0, named=True)
    log = counts_of(draws_of(shares, rows, samples, rng)).mcc(**options)
    found = log.by("sample", metrics=asked, ci=0.95)
    covers = {}
    for name in names:
        low, high = pl.col(f"{name}_low"), pl.col(f"{name}_high")
        hits = (low <= truth[name]) & (truth[name] <= high)
        covers[name] = found.drop_nulls(low).select(hits.mean()).item()
    return covers


def false_alarms(
    shares: np.ndarray, rows: int, samples: int, names: Sequence[str]
) -> dict[str, float]:
    """How often p < 0.01 of two slices with equal shares comes, divided by 0.01."""
    rng, k = np.random.default_rng([rows, len(shares), 2]), len(shares)
    halves = [counts_of(draws_of(shares, rows, samples, rng)) for _ in range(2)]
    both = pl.concat(half.with_columns(half=pl.lit(place)) for place, half in enumerate(halves))
    log, times = both.mcc(weight="n", positive=k - 1), {}
    for name, asked in zip(LABELS, metrics_of(k), strict=True):
        if name in names:
            options = {"to": "each", "metrics": asked, "ratio": name in RATIOS, "min_n": 1}
            tests = log.contrast("half", within="sample", **options)
            times[name] = tests.select((pl.col("p_value") < 0.01).mean()).item() / 0.01
    return times


def print_ends(
    of_slices: str,
    names: Mapping[str, str],
    worse: Callable[[float, float], float],
    measured: Callable[[np.ndarray, int], dict[str, float]],
    digits: int,
) -> None:
    """The worst number of each metric over all settings, by classes and rows."""
    print_head(["classes", f"rows of the rarest class{of_slices}"], [*names.values()])
    for classes, rarest in itertools.product((2, 3, 5), (10, 30, 100)):
        cells = [measured(shares, rows_for(shares, rarest)) for shares in settings(classes)]
        ends = (reduce(worse, [cell[name] for cell in cells]) for name in names)
        print_row(classes, rarest, *(f"{end:.{digits}f}" for end in ends))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--samples", type=int, default=2000)
    args = parser.parse_args()
    others = [name for name in LABELS if name not in RATIOS]
    for intervals, tested in ((others, COMPARED), (RATIOS, RATIOS)):
        covers = partial(coverage, samples=args.samples, names=intervals)
        least = {name: f"least: {LABELS[name]}" for name in intervals}
        print_ends("", least, min, covers, 3)
        print()
        alarms = partial(false_alarms, samples=args.samples, names=tested)
        most = {name: f"times, most: {LABELS[name]}" for name in tested}
        print_ends(", a side", most, max, alarms, 2)
        print()


if __name__ == "__main__":
    main()

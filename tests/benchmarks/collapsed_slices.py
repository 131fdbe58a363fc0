"""Whether `worst` lists a slice in which the model predicts the most frequent class only, first.

A log has three keys of 12, 8 and 5 values that do not matter, and one value more of the second key:
there, all predictions are the most frequent class. Elsewhere the model finds 70 % of the rows of
each other class, and errs in 5 % of the rows of the most frequent one.

Last, logs without such a slice: 6000 rows, two keys of twenty values, and rare classes, so that the
predictions of small slices collapse by chance.

    python tests/benchmarks/collapsed_slices.py [--logs 20]
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
import polars as pl
from measuring import print_head, print_row

import polars_mcc  # noqa: F401 - registers the namespace


def log_of(
    rows: int,
    classes: int,
    share: float,
    keys: tuple[int, ...],
    rng: np.random.Generator,
    *,
    found: float = 0.7,
    false: float = 0.05,
) -> pl.DataFrame:
    """A log of a model that errs as often everywhere. Class 0 has the share of the rows."""
    others = 0.5 ** np.arange(classes - 1)
    gold = rng.choice(classes, rows, p=[share, *(1 - share) * others / others.sum()])
    wrong = (gold + rng.integers(1, classes, rows)) % classes
    missed = np.where(rng.random(rows) < 0.8, 0, wrong)  # A missed row is mostly taken for class 0.
    is_right = rng.random(rows) < np.where(gold == 0, 1 - false, found)
    pred = np.where(is_right, gold, np.where(gold == 0, wrong, missed))
    names = {
        f"key{place}": rng.choice(size, rows, p=rng.dirichlet(np.full(size, 2.0)))
        for place, size in enumerate(keys)
    }
    columns = {name: pl.Series(values).cast(pl.String) for name, values in names.items()}
    return pl.DataFrame({"gold": gold, "pred": pred, **columns})


def named(size: int, classes: int, share: float, seed: int) -> list[str]:
    """The slices that are listed if so many rows collapse."""
    rng = np.random.default_rng([seed, size, classes])
    log = log_of(20_000, classes, share, (12, 8, 5), rng)
    is_bad = pl.Series(np.isin(np.arange(log.height), rng.choice(log.height, size, replace=False)))
    log = log.with_columns(
        key1=pl.when(is_bad).then(pl.lit("bad")).otherwise("key1"),
        pred=pl.when(is_bad).then(0).otherwise("pred"),
    )
    return log.mcc.worst("key0", "key1", "key2", depth=2)["slice"].to_list()


def lists_something(classes: int, share: float, found: float, seed: int) -> bool:
    """Whether something is listed where no slice is bad."""
    rng = np.random.default_rng([seed, classes])
    log = log_of(6000, classes, share, (20, 20), rng, found=found, false=0.01)
    return log.mcc.worst("key0", "key1", depth=2, min_n=20).height > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--logs", type=int, default=20)
    args = parser.parse_args()
    logs, classes_of = args.logs, (2, 3, 6)
    labels = ["classes", "most frequent class"]
    print_head([*labels, "rows of the slice"], ["listed first", "alone"])
    for classes, share, size in itertools.product(classes_of, (0.6, 0.9), (60, 120, 300, 1000)):
        lists = [named(size, classes, share, seed) for seed in range(logs)]
        first = sum(one[:1] == ["key1 = bad"] for one in lists)
        alone = sum(one == ["key1 = bad"] for one in lists)
        print_row(classes, f"{share:.0%}", size, first, alone)
    print()
    print_head([*labels, "recall of the others"], ["something is listed"])
    settings = itertools.product(classes_of, ((0.6, 0.7), (0.95, 0.3), (0.98, 0.5)))
    for classes, (share, found) in settings:
        listed = sum(lists_something(classes, share, found, seed) for seed in range(logs))
        print_row(classes, f"{share:.0%}", f"{found:.0%}", listed)


if __name__ == "__main__":
    main()

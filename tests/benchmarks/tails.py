"""How often p-values are small for slices that are not behind, compared with the right rate.

Slices are drawn from one table, and compared with ten million rows from the same table. One test is
the likelihood ratio of two proportions, as in `worst`. The other is normal, with the standard error
of the slice (Wald). Numbers are P(p ≤ t and behind) / (t/2): 1 is right, above 1 is too often.

    python tests/benchmarks/tails.py [--slices 200_000] [--metric mcc]
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import polars as pl
from scipy.special import erfc

import polars_mcc  # noqa: F401 - registers the namespace
from polars_mcc._counts.cut import cut
from polars_mcc._inference.intervals import estimate
from polars_mcc._scores import registry
from polars_mcc._search.codes import Coded
from polars_mcc._search.slices import SLICE, Sought

MIXES = {"2": [0.5, 0.5], "2, 95:5": [0.95, 0.05], "4": [0.25] * 4, "10": [0.1] * 10}
SIZES = (40, 100, 400)
BARS = (1e-1, 1e-2, 1e-3, 1e-4)
MISSES = 0.1
REST = 10_000_000
AT_ONCE = 20_000


def pairs_of(counts: np.ndarray, labels: int, first: int) -> pl.DataFrame:
    """Turn tables, one per row of `counts`, into pairs."""
    slices, places = np.nonzero(counts)
    return pl.DataFrame(
        {
            SLICE: slices + first,
            "gold": places // labels,
            "pred": places % labels,
            "n": counts[slices, places],
        }
    ).with_columns(n_null=pl.lit(0, pl.Int64))


def p_values(metric: str, mix: list[float], rows: int, slices: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    labels = len(mix)
    misses = np.full((labels, labels), MISSES / (labels - 1))
    np.fill_diagonal(misses, 1 - MISSES)
    table = (np.array(mix)[:, None] * misses).ravel()
    rest = pairs_of(rng.multinomial(REST, table, size=1), labels, first=-1)
    found: dict[str, list[np.ndarray]] = {"likelihood ratio": [], "Wald": []}
    for first in range(0, slices, AT_ONCE):
        drawn = pairs_of(rng.multinomial(rows, table, size=AT_ONCE), labels, first)
        log = cut(drawn.mcc(weight="n"), [], answers=())
        coded = Coded(log, {}, pl.Series(range(labels), dtype=pl.Int64), 0)
        positive = pl.col("label") == 0
        sought = Sought(coded, registry.one(metric), positive, 1, 1)
        apart = replace(sought.numbered, label_dtype=pl.Int64())
        estimated = estimate(apart, pl.concat([rest, drawn]).lazy(), sought.asked)
        sure = sought.limits(estimated).join(
            estimated.scores.select(SLICE, se=f"{metric}_se"), on=SLICE
        )
        known = sure.collect()
        [here] = known.filter(pl.col(SLICE) < 0).rows(named=True)
        evidence = sought.scale.evidence(
            pl.col("place"),
            pl.col("rows_up"),
            pl.lit(here["place"]),
            pl.lit(here["rows_down"]),
        )
        slices_ = known.filter(pl.col(SLICE) >= 0)
        behind = (here["score"] - pl.col("score")) / pl.col("se")
        for name, of in (("likelihood ratio", evidence), ("Wald", behind)):
            z = slices_.select(of.fill_nan(None).fill_null(0.0).clip(0)).to_series().to_numpy()
            found[name].append(np.where(z > 0, erfc(z / np.sqrt(2)), 1.0))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slices", type=int, default=200_000)
    parser.add_argument("--metric", default="mcc")
    options = parser.parse_args()
    print("| classes | rows | test | " + " | ".join(f"{bar:g}" for bar in BARS) + " |")
    print("| --- | --: | --- | " + " | ".join("--:" for _ in BARS) + " |")
    for name, mix in MIXES.items():
        for rows in SIZES:
            for test, p in p_values(options.metric, mix, rows, options.slices).items():
                ratios = " | ".join(f"{np.mean(p <= bar) / (bar / 2):.2f}" for bar in BARS)
                print(f"| {name} | {rows} | {test} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()

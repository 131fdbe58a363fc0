"""How often intervals of a difference cover the truth, if two models differ on few rows.

    python tests/benchmarks/few_differences.py

Two models predict the same rows, as in interval_coverage.py. The second copies the first with the
probability 0.8, 0.95 or 0.99. `compare` has Zou's interval. The other columns are Wald's interval,
and Wald's with one or two extra rows on either side (Bonett and Price 2012, for proportions). An
extra row moves the difference by the root mean square of the rows that differ.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from interval_coverage import counts, given_gold, margins
from measuring import print_head, print_row

Z = 1.959963984540054
CLASSES = (2, 4)
MIXES = ("balanced", "95:5")
METHODS = ("compare", "wald", "one row more", "two rows more")


def influence(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R_K of tables of shares, and how far a row of each pair moves it."""
    t, p = shares.sum(axis=2), shares.sum(axis=1)
    hits = np.trace(shares, axis1=1, axis2=2)
    b, c = 1 - (p**2).sum(axis=1), 1 - (t**2).sum(axis=1)
    root = np.sqrt(b * c)
    score = (hits - (t * p).sum(axis=1)) / root
    moved = (np.eye(t.shape[1]) - p[:, :, None] - t[:, None, :]) / root[:, None, None]
    spread = (p / b[:, None])[:, None, :] + (t / c[:, None])[:, :, None]
    moved = moved + score[:, None, None] * spread
    return score, moved - (shares * moved).sum(axis=(1, 2))[:, None, None]


@np.errstate(all="ignore")
def adjusted(draws: np.ndarray, more: int) -> tuple[np.ndarray, np.ndarray]:
    """Wald's interval of the difference, with `more` extra rows on either side."""
    shares, n = draws / draws.sum(axis=(1, 2, 3), keepdims=True), draws.sum(axis=(1, 2, 3))
    (score_a, of_a), (score_b, of_b) = (influence(shares.sum(axis=axis)) for axis in (3, 2))
    moved = of_b[:, :, None, :] - of_a[:, :, :, None]
    differs = draws * (1 - np.eye(draws.shape[1]))
    size = (differs * moved**2).sum(axis=(1, 2, 3)) / differs.sum(axis=(1, 2, 3))
    square = (draws * moved**2).sum(axis=(1, 2, 3))
    rows = n + 2 * more
    se = np.sqrt(square + 2 * more * np.nan_to_num(size)) / rows
    middle = (score_b - score_a) * n / rows
    return middle - Z * se, middle + Z * se


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--samples", type=int, default=1500, help="samples per setting")
    size = parser.parse_args().samples
    rng = np.random.default_rng(5)
    scores, found = ((0.6, 0.6), (0.9, 0.9), (0.6, 0.9)), []
    copies = (0.8, 0.95, 0.99)
    for classes, mix, (first, second), copied, n in itertools.product(
        CLASSES, MIXES, scores, copies, (100, 300, 1000)
    ):
        pi = margins(classes, mix)
        a, b = given_gold(pi, first), given_gold(pi, second)
        same = copied * a[:, :, None] * np.eye(classes)
        joint = pi[:, None, None] * (same + (1 - copied) * a[:, :, None] * b[:, None, :])
        draws = rng.multinomial(n, joint.ravel(), size=size)
        draws = draws.reshape(-1, classes, classes, classes)
        log = counts(draws, "gold", "a", "b").mcc(weight="n", pred="b")
        answer = log.compare("sample", baseline="a").sort("sample")
        limits = {name: adjusted(draws, more) for more, name in enumerate(METHODS[1:])}
        limits["compare"] = answer["diff_low"].to_numpy(), answer["diff_high"].to_numpy()
        truth, known = (1 - copied) * (second - first), ~np.isnan(limits["compare"][0])
        covers = {
            name: ((low <= truth + 1e-9) & (truth - 1e-9 <= high))[known].mean()
            for name, (low, high) in limits.items()
        }
        found.append(((draws * (1 - np.eye(classes))).sum() / size, covers))
    print_head(["rows that differ", "settings"], METHODS)
    for least, most in ((3, 10), (10, 30), (30, 1000)):
        of_size = [covers for differ, covers in found if least <= differ < most]
        cells = []
        for name in METHODS:
            values = [covers[name] for covers in of_size]
            cells.append(f"{min(values):.3f} to {max(values):.3f} ({np.median(values):.3f})")
        print_row(f"{least} to {most}", len(of_size), *cells)


if __name__ == "__main__":
    main()

"""Ways to an interval and to a p-value that were tried, on the same simulated tables.

    python tests/benchmarks/tried.py [--samples 2000]

Pure NumPy: nothing here calls polars_mcc. A score is a proportion v of m rows, and m is such that
the proportion has the variance of the score at some table. The ways differ in this table.

Prints two tables. The first has the least coverage of 95 % intervals over metrics and settings, for
each way, and the mean width at 1000 rows beside the first way. The second has, for each test, the
largest share of p < 0.01 where nothing differs, over the level. A score that is undefined is left
out, and so is a mean over classes of which the sample lacks one.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator

import numpy as np
from measuring import print_head, print_row
from promises import MIXES, models
from scipy.special import erfc, xlogy

Z = 1.959963984540054
POSITIVE = -1  # the last class
MEANS = ("balanced_accuracy", "recall_macro", "precision_macro", "f1_macro", "mcc_macro")
SIGNED = ("kappa", "informedness", "markedness", "mcc", "mcc_macro", "phi")
Scores = dict[str, np.ndarray]


def over(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros_like(part + whole), where=whole != 0)


def scores(t: np.ndarray, p: np.ndarray, c: np.ndarray, occurs: np.ndarray) -> Scores:
    """The metrics of tables, from the shares of each class: gold, predicted, hits."""
    s, k = t.sum(-1), occurs.sum(-1)
    cov = c.sum(-1) * s - (t * p).sum(-1)
    var_gold, var_pred = s * s - (t * t).sum(-1), s * s - (p * p).sum(-1)
    recall, precision, f1 = over(c, t), over(c, p), over(2 * c, t + p)
    one = t * (s[..., None] - t) * p * (s[..., None] - p)
    phi = over(c * s[..., None] - t * p, np.sqrt(one.clip(0)))
    a, b, h = t[..., POSITIVE], p[..., POSITIVE], c[..., POSITIVE]
    gold = occurs & (t > 0)
    return {
        "accuracy": c.sum(-1) / s,
        "balanced_accuracy": over((recall * gold).sum(-1), gold.sum(-1)),
        **{
            f"{name}_macro": (of_class * occurs).sum(-1) / k
            for name, of_class in (("recall", recall), ("precision", precision), ("f1", f1))
        },
        "f1_weighted": (f1 * t).sum(-1) / s,
        "precision_weighted": (precision * t).sum(-1) / s,
        "mcc_macro": (phi * occurs).sum(-1) / k,
        "kappa": over(cov, s * s - (t * p).sum(-1)),
        "informedness": over(cov, var_gold),
        "markedness": over(cov, var_pred),
        "mcc": over(cov, np.sqrt((var_gold * var_pred).clip(0))),
        "phi": phi[..., POSITIVE],
        "tpr": over(h, a),
        "ppv": over(h, b),
        "tnr": over(s - a - b + h, s - a),
        "npv": over(s - a - b + h, s - b),
        "f1": over(2 * h, a + b),
    }


def margins(tables: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return tables.sum(-1), tables.sum(-2), np.einsum("...kk->...k", tables)


def occurring(tables: np.ndarray) -> np.ndarray:
    return (tables.sum(-1) + tables.sum(-2)) > 0


def shifted(name: str, score: np.ndarray) -> np.ndarray:
    """The score as a proportion."""
    return (score + 1) / 2 if name in SIGNED else score


def of_tables(tables: np.ndarray) -> Scores:
    found = scores(*margins(tables / tables.sum((-1, -2), keepdims=True)), occurring(tables))
    return {name: np.clip(shifted(name, score), 0, 1) for name, score in found.items()}


def worth(tables: np.ndarray, smoothed: np.ndarray, step: float = 1e-6) -> Scores:
    """The rows m, from central differences at smoothed tables."""
    n, occurs = tables.sum((-1, -2)), occurring(tables)
    q = smoothed / smoothed.sum((-1, -2), keepdims=True)
    sides, k = margins(q), q.shape[-1]
    value = scores(*sides, occurs)
    slopes = {name: np.zeros((3, *sides[0].shape)) for name in value}
    for side, label in itertools.product(range(3), range(k)):
        ends = []
        for sign in (1, -1):
            moved = [one.copy() for one in sides]
            moved[side][..., label] += sign * step
            ends.append(scores(*moved, occurs))
        for name, slope in slopes.items():
            slope[side][..., label] = (ends[0][name] - ends[1][name]) / (2 * step)
    found = {}
    for name, (gold, pred, hit) in slopes.items():
        phi = gold[..., :, None] + pred[..., None, :] + np.eye(k) * hit[..., :, None]
        phi = phi - (q * phi).sum((-1, -2), keepdims=True)
        span = 2 if name in SIGNED else 1
        square, v = (q * phi**2).sum((-1, -2)) / span**2, shifted(name, value[name])
        is_known = (v > 1e-9) & (v < 1 - 1e-9) & (square > 1e-15)
        found[name] = np.where(is_known, n * v * (1 - v) / np.where(is_known, square, 1), 1e12)
    return found


def half_and_half(k: int) -> np.ndarray:
    return (np.eye(k) + (1 - np.eye(k)) / (k - 1)) / 2


def more_rows(tables: np.ndarray, more: float) -> np.ndarray:
    return tables + more * half_and_half(tables.shape[-1])


def by_gold(tables: np.ndarray, more: float = 2) -> np.ndarray:
    t = tables.sum(-1, keepdims=True)
    grown = tables + more * half_and_half(tables.shape[-1]) * (t > 0)
    return grown * over(t, t + more)


def by_pred(tables: np.ndarray, more: float = 2) -> np.ndarray:
    return by_gold(tables.swapaxes(-1, -2), more).swapaxes(-1, -2)


def same_margins(tables: np.ndarray) -> np.ndarray:
    """Two rows of each gold class get random predictions of such rows."""
    t = tables.sum(-1, keepdims=True)
    share = np.where(t > 0, 2 / (t + 2), 0)
    pool = (share * tables).sum(-2, keepdims=True)
    return tables * (1 - share) + share * t * pool / pool.sum(-1, keepdims=True)


def pooled(tables: np.ndarray, total: np.ndarray) -> np.ndarray:
    smooth = by_gold(total)
    return tables.sum(-1, keepdims=True) * over(smooth, smooth.sum(-1, keepdims=True))


def least(*found: Scores) -> Scores:
    return {name: np.minimum.reduce([one[name] for one in found]) for name in found[0]}


def both_sides(tables: np.ndarray) -> Scores:
    return least(worth(tables, by_gold(tables)), worth(tables, by_pred(tables)))


WAYS: dict[str, Callable[[np.ndarray], Scores]] = {
    "a table with the same margins and two random rows per class (before)": lambda tables: worth(
        tables, same_margins(tables)
    ),
    "a table with one row more of each class, half right, half wrong": lambda tables: worth(
        tables, more_rows(tables, 1)
    ),
    "a table with two rows more of each class": lambda tables: worth(tables, more_rows(tables, 2)),
    "a table with two rows more of each true class, scaled back to its size": lambda tables: worth(
        tables, by_gold(tables)
    ),
    "the same by true and by predicted class: the larger variance": both_sides,
}


def wilson(v: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    z2 = Z * Z / m
    middle, reach = v + z2 / 2, np.sqrt(z2 * v * (1 - v) + z2 * z2 / 4)
    return (middle - reach) / (1 + z2), (middle + reach) / (1 + z2)


def drawn(table: np.ndarray, n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    return rng.multinomial(n, table.ravel(), size).reshape(-1, *table.shape).astype(float)


def settings(sizes: tuple[int, ...]) -> Iterator[tuple[np.ndarray, int]]:
    for mix, n in itertools.product(MIXES.values(), sizes):
        for given in models(mix).values():
            yield mix[:, None] * given, n


def intervals(samples: int, rng: np.random.Generator) -> None:
    least_from = {way: {30: 1.0, 8: 1.0} for way in WAYS}
    widths: dict[str, list[float]] = {way: [] for way in WAYS}
    number = 0
    for table, n in settings((15, 30, 60, 200, 1000)):
        small = n * table.sum(1).min()
        if small < 7.4:
            continue
        number += 1
        tables = drawn(table, n, samples if len(table) < 30 else samples // 4, rng)
        tables = tables[(tables.sum(-1) > 0).all(-1)]
        truth, observed = of_tables(table[None]), of_tables(tables)
        for way, rows_of in WAYS.items():
            rows = rows_of(tables)
            for name, true in truth.items():
                low, high = wilson(observed[name], rows[name])
                covers = ((low - 1e-9 <= true) & (true <= high + 1e-9)).mean()
                for rows_of_class, lowest in least_from[way].items():
                    if small >= rows_of_class - 0.6:
                        least_from[way][rows_of_class] = min(lowest, covers)
                if n == 1000:
                    widths[way].append((high - low).mean())
    first = np.array(widths[next(iter(WAYS))])
    print(f"{number} settings, {len(truth)} metrics\n")
    figures = ["from 30 rows of a class", "from 8 rows", "width at 1000 rows"]
    print_head(["the variance comes from"], figures)
    for way, lowest in least_from.items():
        width = (np.array(widths[way]) / first).mean()
        print_row(way, f"{lowest[30]:.3f}", f"{lowest[8]:.3f}", f"{width:.3f}")


def likelihood_ratio(v: np.ndarray, m: np.ndarray, w: np.ndarray, k: np.ndarray) -> np.ndarray:
    both = np.clip((v * m + w * k) / (m + k), 1e-12, 1 - 1e-12)
    far = [
        rows * (xlogy(one, one / both) + xlogy(1 - one, (1 - one) / (1 - both)))
        for one, rows in ((v, m), (w, k))
    ]
    return erfc(np.sqrt(sum(far).clip(0)))


def pearson(v: np.ndarray, m: np.ndarray, w: np.ndarray, k: np.ndarray) -> np.ndarray:
    both = np.clip((v * m + w * k) / (m + k), 1e-12, 1 - 1e-12)
    return erfc(np.abs(v - w) / np.sqrt(2 * both * (1 - both) * (1 / m + 1 / k)))


def mover(v: np.ndarray, m: np.ndarray, w: np.ndarray, k: np.ndarray) -> np.ndarray:
    (low_v, high_v), (low_w, high_w) = wilson(v, m), wilson(w, k)
    down, up = np.hypot(w - low_w, high_v - v), np.hypot(high_w - w, v - low_v)
    return erfc(Z * np.abs(w - v) / np.where(w > v, down, up) / np.sqrt(2))


TESTS = {
    "likelihood ratio of two proportions": likelihood_ratio,
    "Pearson's, with the pooled proportion": pearson,
    "from both intervals (Zou 2007), which `contrast` and `drift` use": mover,
}
SIDES = ((15, 15), (15, 35), (18, 42), (60, 140), (30, 1000), (60, 3000), (200, 800))


def is_known(name: str, tables: np.ndarray) -> np.ndarray:
    """Whether the score of a table is defined, and a mean over all classes."""
    t, p, _ = margins(tables)
    s = t.sum(-1)
    a, b = t[..., POSITIVE], p[..., POSITIVE]
    two = [(side > 0).sum(-1) >= 2 for side in (t, p)]
    known = {
        **dict.fromkeys(MEANS, (t > 0).all(-1)),
        "precision_weighted": (t > 0).all(-1) & (p > 0).all(-1),
        **dict.fromkeys(("kappa", "informedness", "markedness"), two[0] & two[1]),
        "mcc": two[0] & two[1],
        "phi": (a > 0) & (a < s) & (b > 0) & (b < s),
        "tpr": a > 0,
        "ppv": b > 0,
        "tnr": a < s,
        "npv": b < s,
        "f1": a + b > 0,
    }
    return known.get(name, np.ones(len(tables), dtype=bool))


def p_values(samples: int, rng: np.random.Generator) -> None:
    most = {(test, way): 0.0 for test in TESTS for way in ("own", "pooled")}
    for n, rest in SIDES:
        for table, _ in settings((n,)):
            if len(table) == 30 and n < 60:
                continue
            size = samples if len(table) < 30 else samples // 5
            here, there = drawn(table, n, size, rng), drawn(table, rest, size, rng)
            v, w = of_tables(here), of_tables(there)
            own = both_sides(here), both_sides(there)
            pool = tuple(worth(side, pooled(side, here + there)) for side in (here, there))
            both = tuple(map(least, own, pool))
            for name, (way, rows) in itertools.product(v, {"own": own, "pooled": both}.items()):
                known = is_known(name, here) & is_known(name, there)
                for test, p_of in TESTS.items():
                    p = p_of(v[name], rows[0][name], w[name], rows[1][name])
                    often = (known & (p < 0.01)).mean() / 0.01
                    most[test, way] = max(most[test, way], often)
    print()
    print_head(["the test"], ["from the slice's own tables", "and from the pooled table"])
    for test in TESTS:
        print_row(test, *(f"{most[test, way]:.1f}" for way in ("own", "pooled")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--samples", type=int, default=2000)
    samples = parser.parse_args().samples
    rng = np.random.default_rng(3)
    intervals(samples, rng)
    p_values(4 * samples, rng)


if __name__ == "__main__":
    main()

"""Other ways to the same numbers. Nothing here calls polars_mcc, or Polars.

A table is a dict of counts, {(gold, pred): n}; rows are a list of (gold, pred).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

Table = Mapping[tuple[Hashable, Hashable], int]
Row = tuple[Hashable, Hashable]


def table_of(matrix: Sequence[Sequence[int]]) -> dict[tuple[int, int], int]:
    return {(g, p): n for g, line in enumerate(matrix) for p, n in enumerate(line)}


def labels_of(table: Table) -> list[Hashable]:
    return sorted({label for pair in table for label in pair}, key=repr)


def marginals(table: Table) -> tuple[Counter, Counter]:
    """How often each label is gold, and how often it is predicted."""
    t, p = Counter(), Counter()
    for (gold, pred), n in table.items():
        t[gold] += n
        p[pred] += n
    return t, p


def exact(table: Table) -> Decimal | None:
    """R_K to 60 digits from its definition by counts; 0 if undefined, None if empty."""
    s = sum(table.values())
    if s == 0:
        return None
    labels = labels_of(table)
    t, p = marginals(table)
    c = sum(n for (g, q), n in table.items() if g == q)
    cov = c * s - sum(t[k] * p[k] for k in labels)
    var = (s * s - sum(x * x for x in p.values())) * (s * s - sum(x * x for x in t.values()))
    if var == 0:
        return Decimal(0)
    with localcontext() as context:
        context.prec = 60
        return Decimal(cov) / Decimal(var).sqrt()


def cancellation(table: Table) -> float:
    """How much the subtractions of R_K enlarge an error in its sums: s² / the smaller variance."""
    s = sum(table.values())
    spread = min(s * s - sum(n * n for n in side.values()) for side in marginals(table))
    return s * s / spread if spread else math.inf


def ulps(found: float, truth: Decimal) -> float:
    """How far `found` is from `truth`, in units in the last place of the truth."""
    return float(abs(Decimal(found) - truth) / Decimal(math.ulp(float(truth))))


def triple_sum(table: Table) -> float:
    """Gorodkin 2004, equation 8: sums over k, l, m of products of cells."""
    labels = labels_of(table)

    def cell(g: Hashable, p: Hashable) -> int:
        return table.get((g, p), 0)

    numerator = sum(
        cell(k, k) * cell(m, n) - cell(n, k) * cell(k, m)
        for k in labels
        for n in labels
        for m in labels
    )

    def side(line) -> int:
        total = 0
        for k in labels:
            own = sum(line(k, m) for m in labels)
            rest = sum(line(j, m) for j in labels if j != k for m in labels)
            total += own * rest
        return total

    denominator = side(cell) * side(lambda k, m: cell(m, k))
    return numerator / math.sqrt(denominator) if denominator else 0.0


def one_vs_rest_sums(table: Table) -> float:
    """Sum of the classes' 2×2 covariances over the root of the sums of variances."""
    s = sum(table.values())
    cov = var_gold = var_pred = Fraction(0)
    for k in labels_of(table):
        tp = table.get((k, k), 0)
        fn = sum(n for (g, p), n in table.items() if g == k != p)
        fp = sum(n for (g, p), n in table.items() if p == k != g)
        tn = s - tp - fn - fp
        cov += Fraction(tp * tn - fp * fn, s * s)
        var_gold += Fraction((tp + fn) * (fp + tn), s * s)
        var_pred += Fraction((tp + fp) * (fn + tn), s * s)
    product = var_gold * var_pred
    return float(cov) / math.sqrt(product) if product else 0.0


def one_hot(rows: Iterable[Row]) -> float:
    """Covariance of the one-hot matrices, from rows."""
    rows = list(rows)
    labels = sorted({label for row in rows for label in row}, key=repr)
    x, y = (
        np.array([[row[side] == label for label in labels] for row in rows], dtype=float)
        for side in (0, 1)
    )
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    product = (x * x).sum() * (y * y).sum()
    return float((x * y).sum() / math.sqrt(product)) if product > 1e-12 else 0.0


def all_tables(n: int, classes: int) -> Iterator[dict[tuple[int, int], int]]:
    """Every table of `n` rows: the ways to put dividers between its cells."""
    pairs = list(itertools.product(range(classes), repeat=2))
    places = n + len(pairs) - 1
    for dividers in itertools.combinations(range(places), len(pairs) - 1):
        edges = [-1, *dividers, places]
        counts = (high - low - 1 for low, high in itertools.pairwise(edges))
        yield dict(zip(pairs, counts, strict=True))


def rows_of(table: Table) -> list[Row]:
    return [pair for pair, n in table.items() for _ in range(n)]


def by_slice(rows: Iterable[tuple]) -> dict[Hashable, Counter]:
    """The table of each slice, from rows (key, gold, pred) without nulls in gold or pred."""
    tables: dict[Hashable, Counter] = {}
    for key, gold, pred in rows:
        table = tables.setdefault(key, Counter())
        if gold is not None and pred is not None:
            table[gold, pred] += 1
    return tables


# Two classes: tp, fn, fp, tn.


def binary(tp: int, fn: int, fp: int, tn: int) -> float:
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / math.sqrt(product)


def matthews_1975(tp: int, fn: int, fp: int, tn: int) -> float:
    n = tp + fn + fp + tn
    s, p = (tp + fn) / n, (tp + fp) / n
    return (tp / n - s * p) / math.sqrt(p * s * (1 - s) * (1 - p))


def pearson(tp: int, fn: int, fp: int, tn: int) -> float:
    gold = [1] * (tp + fn) + [0] * (fp + tn)
    pred = [1] * tp + [0] * fn + [1] * fp + [0] * tn
    return float(np.corrcoef(gold, pred)[0, 1])


def root_of_rates(tp: int, fn: int, fp: int, tn: int) -> float:
    ppv, tpr, tnr, npv = tp / (tp + fp), tp / (tp + fn), tn / (tn + fp), tn / (tn + fn)
    right = math.sqrt(ppv * tpr * tnr * npv)
    wrong = math.sqrt((1 - ppv) * (1 - tpr) * (1 - tnr) * (1 - npv))
    return right - wrong


def informedness_markedness(tp: int, fn: int, fp: int, tn: int) -> float:
    informedness = tp / (tp + fn) + tn / (tn + fp) - 1
    markedness = tp / (tp + fp) + tn / (tn + fn) - 1
    return math.copysign(math.sqrt(max(informedness * markedness, 0)), informedness)


def root_of_chi2(tp: int, fn: int, fp: int, tn: int) -> float:
    """|MCC|, by Pearson's χ² of the 2×2 table from its expected counts."""
    n = tp + fn + fp + tn
    observed = np.array([[tp, fn], [fp, tn]], dtype=float)
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / n
    return math.sqrt(float(((observed - expected) ** 2 / expected).sum()) / n)


def phi_max(tp: int, fn: int, fp: int, tn: int) -> float:
    """The largest φ of the marginals (Davenport and El-Sanhury 1991)."""
    n = tp + fn + fp + tn
    low, high = sorted([(tp + fn) / n, (tp + fp) / n])
    return math.sqrt(low / high) * math.sqrt((1 - high) / (1 - low))

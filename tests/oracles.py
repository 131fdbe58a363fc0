"""The same scores, computed in other ways. Nothing here calls polars_mcc, or Polars.

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
import pytest
from scipy import stats

Table = Mapping[tuple[Hashable, Hashable], int]
Row = tuple[Hashable, Hashable]


def table_of(matrix: Sequence[Sequence[int]]) -> dict[tuple[int, int], int]:
    return {(g, p): n for g, line in enumerate(matrix) for p, n in enumerate(line)}


def se_of_wald(answer: Mapping[str, float], ci: float = 0.95, df: int | None = None) -> float:
    """The standard error of a difference, from its interval of Wald."""
    z = stats.norm.ppf((1 + ci) / 2) if df is None else stats.t.ppf((1 + ci) / 2, df)
    return (answer["diff_high"] - answer["diff_low"]) / 2 / z


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
    """Sum of the one-vs-rest covariances / √(product of both sums of one-vs-rest variances)."""
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
    """Correlation of the one-hot matrices, from rows."""
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
    """Every table of `n` rows: all ways to place dividers between its cells."""
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


# Formulas for two classes, from tp, fn, fp, tn.


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
    """|MCC|, from Pearson's χ² of the 2×2 table and its expected counts."""
    n = tp + fn + fp + tn
    observed = np.array([[tp, fn], [fp, tn]], dtype=float)
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / n
    return math.sqrt(float(((observed - expected) ** 2 / expected).sum()) / n)


def phi_max(tp: int, fn: int, fp: int, tn: int) -> float:
    """The largest φ of the marginals (Davenport and El-Sanhury 1991)."""
    n = tp + fn + fp + tn
    low, high = sorted([(tp + fn) / n, (tp + fp) / n])
    return math.sqrt(low / high) * math.sqrt((1 - high) / (1 - low))


# Standard errors and intervals: by definition, in 60 digits or from rows.


def _r_k(table: Mapping[tuple[Hashable, Hashable], Decimal]) -> Decimal:
    s = sum(table.values())
    t, p = Counter(), Counter()
    for (gold, pred), n in table.items():
        t[gold] += n
        p[pred] += n
    c = sum(n for (gold, pred), n in table.items() if gold == pred)
    cov = c * s - sum(n * p[k] for k, n in t.items())
    var = (s * s - sum(n * n for n in p.values())) * (s * s - sum(n * n for n in t.values()))
    return cov / var.sqrt()


def influences(table: Table) -> dict[tuple[Hashable, Hashable], float]:
    """The derivative of R_K by the count of each pair that occurs, by central differences."""
    step = Decimal(10) ** -20
    with localcontext() as context:
        context.prec = 60
        counts = {pair: Decimal(n) for pair, n in table.items() if n}
        slopes = {
            pair: (_r_k({**counts, pair: n + step}) - _r_k({**counts, pair: n - step})) / 2 / step
            for pair, n in counts.items()
        }
    return {pair: float(slope) for pair, slope in slopes.items()}


def influences_of_rows(rows: Sequence[Row], weights: Sequence[float]) -> list[float]:
    """The influence of each row, which is the influence of its pair."""
    table: dict[Row, float] = {}
    for pair, weight in zip(rows, weights, strict=True):
        table[pair] = table.get(pair, 0) + weight
    slopes = influences(table)
    return [slopes[pair] for pair in rows]


def moved(units: Iterable[Hashable], *columns: Sequence[float]) -> list[float]:
    """The products of the columns, added up by unit."""
    sums: dict[Hashable, float] = {}
    for unit, *factors in zip(units, *columns, strict=True):
        sums[unit] = sums.get(unit, 0) + math.prod(factors)
    return list(sums.values())


def standard_error(table: Table) -> float:
    """The standard error of R_K, by the delta method."""
    return math.sqrt(sum(table[pair] * slope**2 for pair, slope in influences(table).items()))


def wilson(hits: int, n: int, z: float) -> tuple[float, float]:
    """Wilson's interval of a proportion (1927)."""
    share, width = hits / n, z * z / n
    middle = (share + width / 2) / (1 + width)
    reach = z * math.sqrt(share * (1 - share) / n + width / n / 4) / (1 + width)
    return middle - reach, middle + reach


def _matrix(table: Table, labels: Sequence[Hashable]) -> np.ndarray:
    return np.array([[table.get((g, p), 0) for p in labels] for g in labels], dtype=float)


def smoothed(matrix: np.ndarray, more: float = 2) -> np.ndarray:
    """Each gold class gets a hit and a miss, spread over the other classes, and its old size."""
    k, t = len(matrix), matrix.sum(axis=1, keepdims=True)
    of_class = (np.eye(k) + (1 - np.eye(k)) / (k - 1)) * more / 2
    return np.where(t > 0, (matrix + of_class) * t / (t + more), 0)


def smoothed_tables(table: Table, pool: Table | None = None) -> list[np.ndarray]:
    """By gold, by prediction, and the gold counts of the table with the rates of the pool."""
    labels = labels_of(+Counter(table) + (+Counter(pool or {})))
    matrix = _matrix(table, labels)
    found = [smoothed(matrix), smoothed(matrix.T).T]
    if pool is not None:
        rates = smoothed(_matrix(pool, labels))
        rates /= np.maximum(rates.sum(axis=1, keepdims=True), 1e-300)
        found.append(matrix.sum(axis=1, keepdims=True) * rates)
    return found


def as_proportion(
    table: Table, pool: Table | None = None, rows: float | None = None
) -> tuple[float, float]:
    """R_K as a proportion of m rows, and m: the smallest m of the smoothed tables."""
    n = sum(table.values()) if rows is None else rows
    found = []
    for matrix in smoothed_tables(table, pool):
        q = matrix / matrix.sum()
        t, p = q.sum(axis=1), q.sum(axis=0)
        b, c = p @ (1 - p), t @ (1 - t)
        score = (np.trace(q) - t @ p) / math.sqrt(b * c)
        phi = (np.eye(len(t)) - p[:, None] - t[None, :] + t @ p) / math.sqrt(b * c)
        phi -= score * ((1 - p[None, :]) / b + (1 - t[:, None]) / c - 1)
        found.append(n * (1 - score**2) / float((q * phi**2).sum()))
    return (float(exact(table)) + 1) / 2, min(found)


def score_interval(
    table: Table, z: float, rows: float | None = None, pool: Table | None = None
) -> tuple[float, float]:
    """Wilson's interval of R_K as a proportion."""
    v, m = as_proportion(table, pool, rows)
    low, high = wilson(v * m, m, z)
    return 2 * low - 1, 2 * high - 1


def scores_of_counts(pairs: Sequence[Row], counts: np.ndarray, classes: int) -> np.ndarray:
    """R_K of many tables; counts have the shape (tables, pairs)."""
    tables = np.zeros((len(counts), classes, classes))
    for place, (gold, pred) in enumerate(pairs):
        tables[:, gold, pred] = counts[:, place]
    t, p = tables.sum(axis=2), tables.sum(axis=1)
    s, c = tables.sum(axis=(1, 2)), tables.trace(axis1=1, axis2=2)
    products = (s**2 - (t**2).sum(1)) * (s**2 - (p**2).sum(1))
    return (c * s - (t * p).sum(1)) / np.sqrt(products)


def scores_of_rows(gold: np.ndarray, pred: np.ndarray, classes: int) -> np.ndarray:
    """R_K of each line of labels 0 … classes - 1, from one-hot sums; NaN where undefined."""
    n = gold.shape[-1]
    labels = np.arange(classes)[:, None, None]
    is_gold, is_pred = gold == labels, pred == labels
    t, p = is_gold.sum(axis=-1) / n, is_pred.sum(axis=-1) / n
    both = (is_gold & is_pred).sum(axis=-1) / n
    with np.errstate(invalid="ignore", divide="ignore"):
        return (both - t * p).sum(axis=0) / np.sqrt((1 - (t * t).sum(0)) * (1 - (p * p).sum(0)))


# All metrics, each by its definition, in fractions; None where it is 0/0.


def _over(part: Fraction | int, whole: Fraction | int) -> Fraction | None:
    return Fraction(part) / whole if whole else None


def _odds(tp: int, fp: int, fn: int, tn: int) -> dict[str, Fraction | float | None]:
    """The likelihood ratios and their ratio; without gold rows of a class, there is none."""
    if not (tp + fn and fp + tn):
        return dict.fromkeys(("lr_pos", "lr_neg", "dor"))
    tpr, fpr = Fraction(tp, tp + fn), Fraction(fp, fp + tn)
    pairs = {"lr_pos": (tpr, fpr), "lr_neg": (1 - tpr, 1 - fpr), "dor": (tp * tn, fp * fn)}
    return {
        name: Fraction(part) / whole if whole else math.inf if part else float(name == "lr_neg")
        for name, (part, whole) in pairs.items()
    }


def _phi(tp: Fraction | int, fp: int, fn: int, tn: int) -> float | None:
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return float(Fraction(tp * tn - fp * fn)) / math.sqrt(product) if product else None


def two_by_two(table: Table, label: Hashable) -> tuple[int, int, int, int]:
    """Tp, fp, fn, tn of one class against the rest."""
    tp = table.get((label, label), 0)
    fp = sum(n for (g, p), n in table.items() if p == label != g)
    fn = sum(n for (g, p), n in table.items() if g == label != p)
    return tp, fp, fn, sum(table.values()) - tp - fp - fn


def _mean(values: Iterable[float | Fraction | None], undefined: float) -> float:
    """The mean, with `undefined` in place of None."""
    found = [undefined if value is None else value for value in values]
    return float(sum(Fraction(value) for value in found) / len(found))


OF_SETS = ("exact_match", "jaccard_samples", "f1_samples")
"""Metrics of two sets of labels a row. With one label a row, they are the accuracy."""


def family(table: Table, undefined: float = 0.0) -> dict[str, float | None]:
    """The metrics of all classes of a table that is not empty, without the bounds of MCC."""
    s = sum(table.values())
    occur = sorted({x for pair, n in table.items() if n for x in pair}, key=repr)
    sides = {label: two_by_two(table, label) for label in occur}
    t = {label: tp + fn for label, (tp, _, fn, _) in sides.items()}
    p = {label: tp + fp for label, (tp, fp, _, _) in sides.items()}
    c = sum(tp for tp, *_ in sides.values())
    chance = Fraction(sum(t[k] * p[k] for k in occur), s * s)
    cov = Fraction(sum(tp * tn - fp * fn for tp, fp, fn, tn in sides.values()))
    gold_spread = sum(t[k] * (s - t[k]) for k in occur)
    pred_spread = sum(p[k] * (s - p[k]) for k in occur)
    of_class = {
        "precision": {k: _over(sides[k][0], p[k]) for k in occur},
        "recall": {k: _over(sides[k][0], t[k]) for k in occur},
        "f1": {k: _over(2 * sides[k][0], t[k] + p[k]) for k in occur},
        "jaccard": {k: _over(tp, tp + fp + fn) for k, (tp, fp, fn, _) in sides.items()},
        "specificity": {k: _over(tn, tn + fp) for k, (_, fp, _, tn) in sides.items()},
        "npv": {k: _over(tn, tn + fn) for k, (_, _, fn, tn) in sides.items()},
    }
    for error, rate in (("fnr", "recall"), ("fpr", "specificity")):
        of_class[error] = {k: None if x is None else 1 - x for k, x in of_class[rate].items()}
    signed = {
        name: [None if None in both else sum(both) - 1 for both in zip(*rates, strict=True)]
        for name, rates in {
            "informedness_macro": (of_class["recall"].values(), of_class["specificity"].values()),
            "markedness_macro": (of_class["precision"].values(), of_class["npv"].values()),
        }.items()
    }
    recalls = [float(undefined if x is None else x) for x in of_class["recall"].values()]
    phis = [_phi(*side) for side in sides.values()]
    pooled = [sum(side) for side in zip(*sides.values(), strict=True)]
    mcc = float(exact(table)) if gold_spread and pred_spread else None
    found: dict[str, float | Fraction | None] = {
        "mcc": mcc,
        **dict.fromkeys(("accuracy", *OF_SETS), Fraction(c, s)),
        **dict.fromkeys(("error_rate", "hamming_loss"), 1 - Fraction(c, s)),
        "g_mean": math.prod(recalls) ** (1 / len(recalls)),
        **{name: _mean(values, undefined) for name, values in signed.items()},
        "balanced_accuracy": _mean((of_class["recall"][k] for k in occur if t[k]), undefined),
        "kappa": _over(Fraction(c, s) - chance, 1 - chance),
        "informedness": _over(cov, gold_spread),
        "markedness": _over(cov, pred_spread),
        "mcc_macro": _mean(phis, undefined),
        "mcc_micro": _phi(*pooled),
        "mcc_min_class": min(undefined if phi is None else phi for phi in phis),
        "mcc_normalized": ((undefined if mcc is None else mcc) + 1) / 2,
    }
    tp_total, fp_total, fn_total, tn_total = pooled
    micro = {
        **dict.fromkeys(("precision", "recall", "f1"), Fraction(c, s)),
        "jaccard": Fraction(tp_total, tp_total + fp_total + fn_total),
        "specificity": _over(tn_total, tn_total + fp_total),
        "npv": _over(tn_total, tn_total + fn_total),
        "fnr": 1 - Fraction(c, s),
        "fpr": _over(fp_total, tn_total + fp_total),
    }
    for name, values in of_class.items():
        at_0 = 1 - undefined if name in {"fnr", "fpr"} else undefined
        filled = {k: Fraction(at_0 if v is None else v) for k, v in values.items()}
        found[f"{name}_macro"] = _mean(values.values(), at_0)
        found[f"{name}_micro"] = micro[name]
        found[f"{name}_weighted"] = sum(filled[k] * t[k] for k in occur) / s
    expected = {(g, q): Fraction(t[g] * p[q], s) for g in occur for q in occur if t[g] * p[q]}
    chi2 = sum((table.get(pair, 0) - e) ** 2 / e for pair, e in expected.items())
    least = min(sum(map(bool, side.values())) for side in (t, p)) - 1
    v2 = _over(chi2 / s, least)
    found["chi2"] = chi2
    found["cramers_v"] = None if v2 is None else math.sqrt(v2)
    found["mutual_info"] = sum(
        n / s * math.log(n / expected[pair]) for pair, n in table.items() if n
    )
    return {name: None if value is None else float(value) for name, value in found.items()}


def of_positive(table: Table, label: Hashable) -> dict[str, float | None]:
    """The metrics of one class against the rest."""
    tp, fp, fn, tn = two_by_two(table, label)
    s = tp + fp + fn + tn
    spread = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    found: dict[str, float | Fraction | None] = {
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "tn": tn,
        "prevalence": Fraction(tp + fn, s),
        "selection_rate": Fraction(tp + fp, s),
        **dict.fromkeys(("precision", "ppv"), _over(tp, tp + fp)),
        **dict.fromkeys(("recall", "tpr"), _over(tp, tp + fn)),
        **dict.fromkeys(("specificity", "tnr"), _over(tn, tn + fp)),
        "f1": _over(2 * tp, 2 * tp + fp + fn),
        "jaccard": _over(tp, tp + fp + fn),
        "fowlkes_mallows": tp / math.sqrt((tp + fp) * (tp + fn)) if (tp + fp) * (tp + fn) else None,
        "npv": _over(tn, tn + fn),
        "fdr": _over(fp, tp + fp),
        "fnr": _over(fn, tp + fn),
        "fpr": _over(fp, tn + fp),
        "for": _over(fn, tn + fn),
        **_odds(tp, fp, fn, tn),
        "phi": _phi(tp, fp, fn, tn),
        "phi_max": phi_max(tp, fn, fp, tn) if spread else None,
    }
    return {name: None if value is None else float(value) for name, value in found.items()}


AT_0: Mapping[str, float | None] = {
    **dict.fromkeys(("recall", "tpr", "fnr", "specificity", "tnr", "fpr")),
    **dict.fromkeys(("lr_pos", "lr_neg", "dor")),
    **dict.fromkeys(("fdr", "for", "fpr_micro"), 1.0),
}
"""What stands for 0/0, if it is not 0: nothing where gold rows are missing, all errors else."""


def shown(name: str, value: float | None, **close: float) -> object:
    """A score as an answer shows it: what `pytest.approx` accepts, or None."""
    value = AT_0.get(name, 0.0) if value is None else value
    return None if value is None else pytest.approx(value, **close)


# Every score in decimals, and its derivative by the share of a pair: differences in 80 digits.


def in_decimals(p: Mapping[tuple[int, int], Decimal], n: int, positive: int) -> dict[str, Decimal]:
    """All metrics of a table of shares. Each class must be gold, predicted, and hit."""
    one, labels = Decimal(1), sorted({label for pair in p for label in pair})
    gold = {k: sum(x for (g, _), x in p.items() if g == k) for k in labels}
    pred = {k: sum(x for (_, q), x in p.items() if q == k) for k in labels}
    hit = {k: p[k, k] for k in labels}
    accuracy, chance = sum(hit.values()), sum(gold[k] * pred[k] for k in labels)
    spread_gold, spread_pred = (one - sum(x * x for x in side.values()) for side in (gold, pred))
    root = (spread_gold * spread_pred).sqrt()
    precision = {k: hit[k] / pred[k] for k in labels}
    recall = {k: hit[k] / gold[k] for k in labels}
    f1 = {k: 2 * hit[k] / (gold[k] + pred[k]) for k in labels}
    jaccard = {k: hit[k] / (gold[k] + pred[k] - hit[k]) for k in labels}
    rest = {k: one - gold[k] - pred[k] + hit[k] for k in labels}
    specificity = {k: rest[k] / (1 - gold[k]) for k in labels}
    npvs = {k: rest[k] / (1 - pred[k]) for k in labels}
    fpr, fnr = ({k: 1 - rate[k] for k in labels} for rate in (specificity, recall))
    phi = {
        k: (hit[k] - gold[k] * pred[k]) / (gold[k] * (1 - gold[k]) * pred[k] * (1 - pred[k])).sqrt()
        for k in labels
    }
    most = sum(min(gold[k], pred[k]) for k in labels) - chance
    first, second = sorted(gold.values())[:-3:-1]
    size = len(labels)
    # In independent labels, rounding could leave less than 0.
    phi2 = max(Decimal(0), sum(x * x / (gold[g] * pred[q]) for (g, q), x in p.items()) - 1)
    t, q, tp = gold[positive], pred[positive], hit[positive]
    fp, fn, tn = q - tp, t - tp, 1 - t - q + tp
    ppv, tpr, tnr, npv = tp / q, tp / t, tn / (tn + fp), tn / (tn + fn)
    root_positive = (t * (1 - t) * q * (1 - q)).sqrt()
    found = {
        "mcc": (accuracy - chance) / root,
        **dict.fromkeys(("accuracy", *OF_SETS), accuracy),
        **dict.fromkeys(("error_rate", "hamming_loss"), 1 - accuracy),
        "g_mean": math.prod(recall.values()) ** (one / size),
        "informedness_macro": sum(recall[k] + specificity[k] - 1 for k in labels) / size,
        "markedness_macro": sum(precision[k] + npvs[k] - 1 for k in labels) / size,
        "balanced_accuracy": sum(recall.values()) / size,
        "kappa": (accuracy - chance) / (1 - chance),
        "informedness": (accuracy - chance) / spread_gold,
        "markedness": (accuracy - chance) / spread_pred,
        "mcc_macro": sum(phi.values()) / size,
        "mcc_micro": (size * accuracy - 1) / (size - 1),
        "mcc_min_class": min(phi.values()),
        "mcc_normalized": ((accuracy - chance) / root + 1) / 2,
        "mcc_max": most / root,
        "mcc_min": -(first / (2 * (1 - first))).sqrt() * (1 - first + second) / spread_gold.sqrt(),
        "phi_over_max": (accuracy - chance) / most,
        "chi2": phi2 * n,
        "cramers_v": (phi2 / (size - 1)).sqrt(),
        "mutual_info": sum(x * (x / (gold[g] * pred[q])).ln() for (g, q), x in p.items() if x),
        "tp": tp * n,
        "fp": fp * n,
        "fn": fn * n,
        "tn": tn * n,
        "prevalence": t,
        "selection_rate": q,
        "precision": ppv,
        "recall": tpr,
        "specificity": tnr,
        "f1": 2 * tp / (t + q),
        "jaccard": tp / (t + q - tp),
        "fowlkes_mallows": (ppv * tpr).sqrt(),
        "ppv": ppv,
        "npv": npv,
        "tpr": tpr,
        "tnr": tnr,
        "fdr": 1 - ppv,
        "fnr": 1 - tpr,
        "fpr": 1 - tnr,
        "for": 1 - npv,
        "lr_pos": tpr / (1 - tnr),
        "lr_neg": (1 - tpr) / tnr,
        "dor": tp * tn / (fp * fn),
        "phi": (tp * tn - fp * fn) / root_positive,
        "phi_max": (min(t, q) - t * q) / root_positive,
    }
    misses = (1 - accuracy) / (size - 1)
    for name, of_class, micro in (
        ("precision", precision, accuracy),
        ("recall", recall, accuracy),
        ("f1", f1, accuracy),
        ("jaccard", jaccard, accuracy / (2 - accuracy)),
        ("specificity", specificity, 1 - misses),
        ("npv", npvs, 1 - misses),
        ("fpr", fpr, misses),
        ("fnr", fnr, 1 - accuracy),
    ):
        found[f"{name}_macro"] = sum(of_class.values()) / size
        found[f"{name}_micro"] = micro
        found[f"{name}_weighted"] = sum(of_class[k] * gold[k] for k in labels)
    return found


def moves(table: Table, positive: int) -> dict[str, dict[tuple[int, int], Decimal]]:
    """For each metric, the influence of a row of each pair, by central differences."""
    n, step = sum(table.values()), Decimal(10) ** -25
    with localcontext() as context:
        context.prec = 80
        shares = {pair: Decimal(count) / n for pair, count in table.items()}
        slopes: dict[str, dict[tuple[int, int], Decimal]] = {}
        for pair, share in shares.items():
            above, below = (
                in_decimals(shares | {pair: share + sign * step}, n, positive) for sign in (1, -1)
            )
            for name in above:
                slopes.setdefault(name, {})[pair] = (above[name] - below[name]) / (2 * step)
        return {
            name: {
                pair: slope - sum(shares[other] * of_pair[other] for other in shares)
                for pair, slope in of_pair.items()
            }
            for name, of_pair in slopes.items()
        }


def intervals(
    table: Table, positive: int, ranges: Mapping[str, tuple[float, float, str]], z: float
) -> dict[str, tuple[float, float]]:
    """Wilson's interval of each metric with a range, from the influences at the smoothed tables.

    `ranges` has both ends of each metric, and the margin that it is given: "gold", "pred", or "".
    """
    n, labels = sum(table.values()), labels_of(table)
    with localcontext() as context:
        context.prec = 80
        shares = {pair: Decimal(count) / n for pair, count in table.items()}
        scores = in_decimals(shares, n, positive)
        rows: dict[str, list[float]] = {name: [] for name in ranges}
        for side, matrix in zip(("gold", "pred"), smoothed_tables(table), strict=True):
            cells = {
                (g, p): Decimal(matrix[i, j])
                for i, g in enumerate(labels)
                for j, p in enumerate(labels)
            }
            whole = sum(cells.values())
            there = {pair: cell / whole for pair, cell in cells.items()}
            values, of_pairs = in_decimals(there, n, positive), moves(cells, positive)
            for name, (low, high, given) in ranges.items():
                if given in {"", side}:
                    v = float(values[name] - Decimal(low)) / (high - low)
                    phi = of_pairs[name]
                    square = float(sum(there[pair] * phi[pair] ** 2 for pair in there))
                    rows[name].append(n * v * (1 - v) * (high - low) ** 2 / square)
        found = {}
        for name, (low, high, _) in ranges.items():
            v, m = float(scores[name] - Decimal(low)) / (high - low), min(rows[name])
            found[name] = tuple(low + (high - low) * end for end in wilson(v * m, m, z))
        return found


def standard_errors(table: Table, positive: int) -> dict[str, float]:
    """The standard error of each metric, from the influence of its rows."""
    n = sum(table.values())
    with localcontext() as context:
        context.prec = 80
        return {
            name: float(
                (sum(table[pair] * phi * phi for pair, phi in of_pair.items()) / n / n).sqrt()
            )
            for name, of_pair in moves(table, positive).items()
        }

"""Scores where labels came for some rows only, by definition. Nothing here calls polars_mcc.

Begg and Greenes, Biometrics 39 (1983). Rows are a list of (gold, pred, n); gold may be None. If two
models are compared, pred is the tuple of both predictions: the strata are these tuples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

import numpy as np

Row = tuple[Hashable, Hashable, float]
_STEP = 1e-30  # of a complex number: its derivative is exact


def strata(rows: Sequence[Row]) -> dict[Hashable, tuple[float, dict[Hashable, float]]]:
    """For each prediction: the rows, and the labelled rows of each gold label."""
    found: dict[Hashable, tuple[float, dict[Hashable, float]]] = {}
    for gold, pred, n in rows:
        if n == 0 or pred is None or (isinstance(pred, tuple) and None in pred):
            continue
        size, of_gold = found.get(pred, (0, {}))
        if gold is not None:
            of_gold = {**of_gold, gold: of_gold.get(gold, 0) + n}
        found[pred] = size + n, of_gold
    return found


def labelled(rows: Sequence[Row]) -> float:
    return sum(sum(of_gold.values()) for _, of_gold in strata(rows).values())


def shares(rows: Sequence[Row]) -> dict[tuple[Hashable, Hashable], float] | None:
    """p_ij = w_j q_ij; None if a prediction has no labelled row, or there are no rows."""
    found = strata(rows)
    total = sum(size for size, _ in found.values())
    p = {}
    for pred, (size, of_gold) in found.items():
        if not of_gold:
            return None
        for gold, n in of_gold.items():
            p[gold, pred] = size / total * (n / sum(of_gold.values()))
    return p or None


def _matrix(p, labels) -> np.ndarray:
    matrix = np.zeros((len(labels), len(labels)), dtype=complex)
    for (gold, pred), share in p.items():
        matrix[labels.index(gold), labels.index(pred)] += share
    return matrix


def mcc(p: np.ndarray) -> complex:
    t, q, c = p.sum(1), p.sum(0), np.trace(p)
    s = p.sum()
    return (c * s - t @ q) / np.sqrt((s**2 - q @ q) * (s**2 - t @ t))


def accuracy(p: np.ndarray) -> complex:
    return np.trace(p) / p.sum()


def kappa(p: np.ndarray) -> complex:
    chance = p.sum(1) @ p.sum(0) / p.sum() ** 2
    return (accuracy(p) - chance) / (1 - chance)


def f1_macro(p: np.ndarray) -> complex:
    both = p.sum(1) + p.sum(0)
    return np.mean(2 * np.diag(p)[both != 0] / both[both != 0])


def precision(p: np.ndarray, place: int) -> complex:
    return p[place, place] / p[:, place].sum()


def recall(p: np.ndarray, place: int) -> complex:
    return p[place, place] / p[place].sum()


SCORES: dict[str, Callable[[np.ndarray], complex]] = {
    "mcc": mcc,
    "accuracy": accuracy,
    "kappa": kappa,
    "f1_macro": f1_macro,
}


def score_of(name: str, labels: Sequence[Hashable], positive: Hashable) -> Callable:
    """A score by name, as a function of a matrix of these labels."""
    of_class = {"tpr": recall, "ppv": precision}
    if name in of_class:
        return lambda p: of_class[name](p, labels.index(positive))
    return SCORES[name]


def labels_of(p) -> list[Hashable]:
    preds = [one for _, pred in p for one in (pred if isinstance(pred, tuple) else (pred,))]
    return sorted({*(gold for gold, _ in p), *preds})


def of_model(p, place: int | None):
    """The shares of one of two models."""
    if place is None:
        return p
    found: dict = {}
    for (gold, pred), share in p.items():
        found[gold, pred[place]] = found.get((gold, pred[place]), 0) + share
    return found


def score(rows: Sequence[Row], name: str, positive=None, place: int | None = None) -> float | None:
    """The score of p; NaN if it is 0/0."""
    p = shares(rows)
    if p is None:
        return None
    p = of_model(p, place)
    labels = labels_of(p)
    with np.errstate(all="ignore"):
        return float(score_of(name, labels, positive)(_matrix(p, labels)).real)


def influences(p, name: str, positive=None) -> dict[tuple[Hashable, Hashable], float]:
    """The derivative of the score by each share, less the mean of the derivatives."""
    labels = labels_of(p)
    of = score_of(name, labels, positive)
    slopes = {}
    with np.errstate(all="ignore"):
        for gold, pred in p:
            moved = _matrix(p, labels)
            moved[labels.index(gold), labels.index(pred)] += _STEP * 1j
            slopes[gold, pred] = float(of(moved).imag) / _STEP
    mean = sum(p[pair] * slope for pair, slope in slopes.items())
    return {pair: slope - mean for pair, slope in slopes.items()}


def variance(rows: Sequence[Row], phi) -> float:
    """Of two phases: Σ w_j m_j² / N + Σ w_j² s_j² / n_j. `phi` has the influence of each pair."""
    found = strata(rows)
    total = sum(size for size, _ in found.values())
    added = 0.0
    for pred, (size, of_gold) in found.items():
        w, n = size / total, sum(of_gold.values())
        mean = sum(m / n * phi[gold, pred] for gold, m in of_gold.items())
        spread = sum(m / n * (phi[gold, pred] - mean) ** 2 for gold, m in of_gold.items())
        added += w * mean**2 / total + w**2 * spread / n
    return added


def standard_error(rows: Sequence[Row], name: str, positive=None) -> float:
    return math.sqrt(variance(rows, influences(shares(rows), name, positive)))


RANGES = {"mcc": (-1, 1), "kappa": (-1, 1)}
GIVEN = {"tpr": "gold", "ppv": "pred"}


def smoothed_tables(rows: Sequence[Row], labels: Sequence[Hashable]) -> dict[str, np.ndarray]:
    """The rows of each pair, if each gold class, or each prediction, has a hit and a miss more.

    If some rows have no label, a prediction has a miss of each other gold label more. The rows with
    a prediction stay as many. So do the rows with a gold label.
    """
    k, found = len(labels), strata(rows)
    by_pred, counted = np.zeros((k, k)), np.zeros((k, k))
    pseudo = np.full((k, k), 1 / (k - 1))
    np.fill_diagonal(pseudo, 1)
    per_label = rows_per_label(rows, labels)
    of_preds = np.ones((k, k)) if per_label.max() > 1 else pseudo
    for pred, (size, of_gold) in found.items():
        column, own = labels.index(pred), sum(of_gold.values())
        for gold, n in of_gold.items():
            by_pred[labels.index(gold), column] = n
            counted[labels.index(gold), column] = n * size / own
        more = of_preds[:, column]
        by_pred[:, column] = (by_pred[:, column] + more) * size / (own + more.sum())
    by_gold = np.zeros((k, k))
    for place, line in enumerate(counted):
        if line.sum():
            as_good = line.sum() ** 2 / (line @ per_label)  # Kish
            kept = as_good / (as_good + 2)
            by_gold[place] = line * kept + pseudo[place] * line.sum() * (1 - kept) / 2
    return {"gold": by_gold, "pred": by_pred}


def rows_per_label(rows: Sequence[Row], labels: Sequence[Hashable]) -> np.ndarray:
    """N_j / n_j; for a label that is never predicted, what a labelled row stands for on average."""
    found = {
        pred: (size, size / sum(of_gold.values())) for pred, (size, of_gold) in strata(rows).items()
    }
    sizes, ratios = np.array([*found.values()]).T
    return np.array([found.get(label, (0, sizes @ ratios / sizes.sum()))[1] for label in labels])


def score_interval(rows: Sequence[Row], name: str, z: float, positive=None) -> tuple[float, float]:
    """Wilson's interval of m rows; m is the smallest that the smoothed tables give."""
    p = shares(rows)
    labels, (low, high) = labels_of(p), RANGES.get(name, (0, 1))
    of, ratios = score_of(name, labels, positive), rows_per_label(rows, labels)
    asked = [GIVEN[name]] if name in GIVEN else ["gold", "pred"]
    if ratios.max() > 1 and "pred" not in asked:
        asked.append("pred")
    tables, ms = smoothed_tables(rows, labels), []
    for table in (tables[side] for side in asked):
        total, q = table.sum(), table / table.sum()
        phi = np.zeros(q.shape)
        for place in np.ndindex(q.shape):
            moved = q.astype(complex)
            moved[place] += _STEP * 1j
            phi[place] = float(of(moved).imag) / _STEP
        phi -= (q * phi).sum()
        added = (q * phi**2).sum() / total
        for column, ratio in enumerate(ratios):
            if w := q[:, column].sum():
                share = q[:, column] / w
                spread = share @ phi[:, column] ** 2 - (share @ phi[:, column]) ** 2
                added += w * (ratio - 1) * spread / total
        v = (float(of(q).real) - low) / (high - low)
        ms.append(v * (1 - v) * (high - low) ** 2 / added)
    v, width = (score(rows, name, positive) - low) / (high - low), z * z / min(ms)
    middle, reach = v + width / 2, math.sqrt(width * v * (1 - v) + width**2 / 4)
    ends = ((middle + side * reach) / (1 + width) for side in (-1, 1))
    return tuple(low + (high - low) * end for end in ends)


def added_variance(rows: Sequence[Row], name: str, positive=None) -> float:
    """What rows without a label add to the variance of the difference of two models.

    Σ w_j (f_j - 1) s_j² / N: the larger of two. One has two labelled rows more of each pair of
    different predictions that lacks labels, each right in one model.
    """
    found, added = strata(rows), []
    total = sum(size for size, _ in found.values())
    for more in (0, 1):
        q = {}
        for pred, (size, of_gold) in found.items():
            own = dict(of_gold)
            if pred[0] != pred[1] and sum(own.values()) < size:
                for gold in pred:
                    own[gold] = own.get(gold, 0) + more
            q[pred] = {gold: n / sum(own.values()) for gold, n in own.items()}
        p = {(i, j): found[j][0] / total * share for j, of in q.items() for i, share in of.items()}
        a, b = (influences(of_model(p, place), name, positive) for place in (0, 1))
        spread = 0.0
        for pred, (size, of_gold) in found.items():
            phi = {gold: b[gold, pred[1]] - a[gold, pred[0]] for gold in q[pred]}
            mean = sum(q[pred][gold] * phi[gold] for gold in phi)
            s2 = sum(q[pred][gold] * (phi[gold] - mean) ** 2 for gold in phi)
            spread += size / total * (size / sum(of_gold.values()) - 1) * s2 / total
        added.append(spread)
    return max(added)

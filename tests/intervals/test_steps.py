"""Each step of inference, one at a time: the oracles are dense matrices and loops over rows.

A reader can stop after a step and print its arrays. Each test makes the input of one step by hand.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support import in_turn

import polars_mcc
from polars_mcc._counts.pair_counts import pairs as pairs_of
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._intervals import influence_of_rows, scores_of_arrays, smoothed_tables
from polars_mcc._intervals.count_arrays import (
    Classes,
    Counted,
    CountedCells,
    labels_and_codes,
)
from polars_mcc._intervals.smoothed_tables import (
    BY_GOLD,
    BY_PRED,
    OBSERVED,
    POOLED,
    Pools,
    expected_pairs,
)
from polars_mcc._metrics.registry import find_metrics
from polars_mcc._metrics.slice_sums import Segments, numbered, sorted_rows

rng = np.random.default_rng(20)
LABELS = 4
POSITIVE = 1


@pytest.fixture(autouse=True)
def _zero_by_zero():
    """0/0 is NaN, as where the verbs call the steps."""
    with np.errstate(all="ignore"):
        yield


def matrix_of(*rows: list[float]) -> np.ndarray:
    """A matrix of all labels; the labels that are not given have no rows."""
    found = np.zeros((LABELS, LABELS))
    found[: len(rows), : len(rows)] = rows
    return found


FULL = [rng.integers(1, 30, (LABELS, LABELS)) + 10.0 * np.eye(LABELS) for _ in range(3)]
MATRICES = {
    "four classes": FULL[0],
    "cells without rows": matrix_of([9, 1, 0], [0, 5, 2], [0, 0, 7]),
    "a class never gold": matrix_of([6, 2, 1], [3, 8, 0], [0, 0, 0]),
    "a class never predicted": matrix_of([6, 2, 0], [3, 8, 0], [1, 2, 0]),
    "no rows": matrix_of(),
    "one class": matrix_of([7]),
    "no hits": matrix_of([0, 4], [3, 0]),
    "uneven": matrix_of([1e6, 3, 1], [2, 40, 0], [1, 0, 2]),
}
SEVERAL = [*MATRICES.values()]


def arrays_of(matrices: list[np.ndarray], per_weight: float = 1.0) -> tuple[Classes, Counted]:
    """The classes and the pairs of slices with these matrices, by loops."""
    classes, cells, places = [], [], {}
    for at, matrix in enumerate(matrices):
        for label in range(LABELS):
            t, p, c = matrix[label].sum(), matrix[:, label].sum(), matrix[label, label]
            if t + p > 0:
                places[at, label] = len(classes)
                rest = matrix.sum() - t - p + c
                row = (at, label, t, p, c, t - c, p - c, rest, float(label == POSITIVE))
                classes.append(row)
    for at, matrix in enumerate(matrices):
        for gold, pred in zip(*np.nonzero(matrix), strict=True):
            cells.append((at, places[at, gold], places[at, pred], matrix[gold, pred]))
    number = len(matrices)
    of_slice, codes, *counts = np.array(classes, float).reshape(-1, 9).T
    slices, gold, pred, n = np.array(cells, float).reshape(-1, 4).T
    rows = Segments.of(of_slice.astype(int), number)
    every = pl.Series("label", range(LABELS))
    found = Classes(every, rows, codes.astype(int), *counts)
    places = (one.astype(int) for one in (slices, gold, pred))
    return found, Counted(number, *places, n, n / per_weight)


def dense_smoothed(matrix: np.ndarray, more: float, others: int | None = None) -> np.ndarray:
    """Each gold class gets a hit and a miss more, and its old size. `more` is both together.

    A last column has the misses of a class that is alone.
    """
    occurs = (matrix.sum(axis=0) + matrix.sum(axis=1)) > 0
    others = int(occurs.sum()) - 1 if others is None else others
    found = np.hstack([matrix, np.zeros((len(matrix), 1))])
    for label, t in enumerate(matrix.sum(axis=1)):
        if t > 0:
            found[label, label] += more / 2
            for other in np.flatnonzero(occurs):
                if other != label:
                    found[label, other] += more / 2 / others
            if not others:
                found[label, -1] += more / 2
            found[label] *= t / (t + more)
    return found


def counts_of(matrix: np.ndarray, occurs: np.ndarray) -> np.ndarray:
    """t, p, c, fn, fp and tn of the classes that occur."""
    t, p = matrix.sum(axis=1)[:LABELS], matrix.sum(axis=0)[:LABELS]
    c = np.diag(matrix[:LABELS, :LABELS])
    return np.array([t, p, c, t - c, p - c, matrix.sum() - t - p + c])[:, occurs]


def check_table(
    found: smoothed_tables.ClassTable,
    matrices: list[np.ndarray],
    dense: list[np.ndarray],
):
    """A table has the counts of dense matrices, slice after slice."""
    occur = [(one.sum(axis=0) + one.sum(axis=1)) > 0 for one in matrices]
    expected = np.hstack([counts_of(*both) for both in zip(dense, occur, strict=True)])
    size = np.concatenate(
        [np.full(one.sum(), m.sum()) for one, m in zip(occur, matrices, strict=True)]
    )
    assert found.t.shape == size.shape
    assert np.abs(np.array(found[:6]) - expected).max(initial=0) <= 1e-13 * size.max(initial=1)
    # Counts that are not near 0 keep their digits, also in a large slice.
    large = expected > 1e-3
    np.testing.assert_allclose(np.array(found[:6])[large], expected[large], rtol=1e-10)


@in_turn(matrices=[*([one] for one in SEVERAL), SEVERAL], per_weight=[1.0, 0.25, 8.0])
def test_a_smoothed_class_has_a_pseudo_hit_and_a_pseudo_miss(matrices, per_weight):
    classes, pairs = arrays_of(matrices, per_weight)
    found = [table for table, _ in smoothed_tables.tables_of(classes, pairs, None)]
    check_table(found[OBSERVED], matrices, matrices)
    by_gold = [dense_smoothed(one, 2 / per_weight) for one in matrices]
    by_pred = [dense_smoothed(one.T, 2 / per_weight).T for one in matrices]
    check_table(found[BY_GOLD], matrices, by_gold)
    check_table(found[BY_PRED], matrices, by_pred)
    np.testing.assert_array_equal(found[BY_GOLD].t, classes.t)
    np.testing.assert_array_equal(found[BY_PRED].p, classes.p)


@pytest.mark.parametrize("per_weight", [1.0, 0.25])
def test_the_cells_of_a_smoothed_table_and_its_pseudo_rows_are_all_rows(per_weight):
    classes, pairs = arrays_of(SEVERAL, per_weight)
    for place, (table, cells) in enumerate(smoothed_tables.tables_of(classes, pairs, None)):
        margin = table.p if place == BY_PRED else table.t
        rows = np.bincount(cells.slices, cells.n, len(SEVERAL))
        rows += classes.rows.sum(table.pseudo_share * margin)
        np.testing.assert_allclose(rows, [one.sum() for one in SEVERAL], rtol=1e-14)


def log_of(matrices: list[np.ndarray], pools: list[str]):
    """A log of counts with the keys `pool` and `slice`, cut by both, and its counted pairs."""
    rows = [
        (pool, at, gold, pred, int(matrix[gold, pred]))
        for at, (pool, matrix) in enumerate(zip(pools, matrices, strict=True))
        for gold, pred in zip(*np.nonzero(matrix), strict=True)
    ]
    schema = {"pool": pl.String, **dict.fromkeys(("slice", "gold", "pred", "n"), pl.Int64)}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    log = cut(sides_of(polars_mcc.PredictionLog(frame, weight="n")), ["pool", "slice"], taken=[])
    keys = {"key:pool": pools, "key:slice": range(len(matrices))}
    slices = pl.DataFrame(keys, schema={"key:pool": pl.String, "key:slice": pl.Int64})
    return log, slices, pairs_of(log).collect()


def coded(matrices: list[np.ndarray], pools: list[str]):
    """The cells of the matrices, their classes, and their pairs with places of classes."""
    log, slices, counts = log_of(matrices, pools)
    cells = CountedCells.of(log, counts, slices)
    is_positive = (cells.labels == POSITIVE).to_numpy() * 1.0
    return cells, *Classes.of(cells.pairs, cells.labels, is_positive)


def test_counted_pairs_become_the_arrays_of_their_matrices():
    _, classes, found = coded(SEVERAL, ["x"] * len(SEVERAL))
    expected, pairs = arrays_of(SEVERAL)
    for name in ("t", "p", "c", "fn", "fp", "tn", "codes", "is_positive"):
        np.testing.assert_array_equal(getattr(classes, name), getattr(expected, name))
    np.testing.assert_array_equal(classes.rows.starts, expected.rows.starts)
    for one, other in zip(found, pairs, strict=True):
        np.testing.assert_array_equal(one, other)


def pooled(matrices: list[np.ndarray], pools: list[str]):
    cells, classes, found = coded(matrices, pools)
    _, pool_of = np.unique(np.array(pools, str), return_inverse=True)
    pairs = cells.pairs
    of_pools, *_ = Counted.of_rows(len({*pools}), pool_of[pairs.slices], *pairs[2:])
    return classes, found, expected_pairs(classes, Pools(pool_of, of_pools))


POOLS = ["x", "y", "x", "y", "y", "x", "x", "z"]


def test_expected_pairs_are_the_gold_rows_at_the_rates_of_the_pool():
    classes, _, expected = pooled(SEVERAL, POOLS)
    found = {}
    for at, gold, pred, n in zip(*expected.pairs[1:5], strict=True):
        label = -1 if pred < 0 else classes.codes[pred]
        key = (int(at), int(classes.codes[gold]), int(label))
        found[key] = found.get(key, 0) + n
    truth = {}
    for at, (matrix, pool) in enumerate(zip(SEVERAL, POOLS, strict=True)):
        total = sum(one for one, name in zip(SEVERAL, POOLS, strict=True) if name == pool)
        occurs = (matrix.sum(axis=0) + matrix.sum(axis=1)) > 0
        for gold, pred in zip(*np.nonzero(total), strict=True):
            rate = Fraction(int(total[gold, pred]), int(total[gold].sum()))
            if rows := int(matrix[gold].sum()):
                key = (at, int(gold), int(pred) if occurs[pred] else -1)
                truth[key] = truth.get(key, 0) + rows * rate
    assert found.keys() == truth.keys()
    for key, n in truth.items():
        assert found[key] == pytest.approx(float(n), rel=1e-14), key


def test_a_pool_knows_the_rows_and_the_number_of_its_classes():
    classes, _, expected = pooled(SEVERAL, POOLS)
    totals = {
        name: sum(one for one, pool in zip(SEVERAL, POOLS, strict=True) if pool == name)
        for name in POOLS
    }
    for place, (at, label) in enumerate(zip(classes.rows.of_row, classes.codes, strict=True)):
        total = totals[POOLS[at]]
        assert expected.pool_rows[place] == total[label].sum()
        assert (
            expected.n_other_classes[place]
            == ((total.sum(axis=0) + total.sum(axis=1)) > 0).sum() - 1
        )
    for side, axis in enumerate((1, 0)):
        numbers = [(totals[pool].sum(axis=axis) > 0).sum() for pool in POOLS]
        assert expected.n_classes[side].tolist() == numbers


def test_the_pooled_table_is_smoothed_by_the_rows_of_the_pool():
    classes, pairs, expected = pooled(SEVERAL, POOLS)
    found, _ = smoothed_tables.tables_of(classes, pairs, expected)[POOLED]
    dense = []
    for matrix, pool in zip(SEVERAL, POOLS, strict=True):
        total = sum(one for one, name in zip(SEVERAL, POOLS, strict=True) if name == pool)
        rates = dense_smoothed(total, 2) / np.maximum(total.sum(axis=1, keepdims=True), 1e-300)
        dense.append(matrix.sum(axis=1, keepdims=True) * rates)
    check_table(found, SEVERAL, dense)


def drawn(seed: int, *, of: str):
    """Random rows of three slices, the middle one without rows, and their draws."""
    seeded = np.random.default_rng(seed)
    size = 60
    slices = np.sort(seeded.choice([0, 2], size))
    cluster, pair = seeded.integers(0, 9, size), np.arange(size)
    n = seeded.integers(1, 5, size) if of == "frequency" else seeded.uniform(0.1, 3, size)
    n = np.ones(size, int) if of == "clusters" else n
    frame = pl.DataFrame({"gold": 0, "pred": 0, "k": slices, "cluster": cluster, "n": n})
    about = {
        "frequency": {"weight": "n"},
        "sample weights": {"sample_weight": "n"},
        "clusters": {"cluster": "cluster"},
        "clusters of sample weights": {"cluster": "cluster", "sample_weight": "n"},
    }[of]
    log = cut(sides_of(polars_mcc.PredictionLog(frame, **about)), ["k"], taken=[], clusters=True)
    cells = frame.with_columns(key=slices, pair=pair, squares=pl.col("n").cast(float) ** 2)
    cells = cells.rename({"key": "key:k"}).sample(fraction=1, shuffle=True, seed=seed)
    of_cells = CountedCells.of(log, cells, pl.DataFrame({"key:k": range(3)}))
    found, order = of_cells.draws(3, of_cells.pairs.slices[of_cells.pair])
    rows = [*zip(slices, cluster, n.astype(float), pair, strict=True)]
    return found, cells["pair"][of_cells.row[order]].to_numpy(), rows, seeded.normal(size=(2, size))


def each_draw(rows, at: int, of: str):
    """The rows of each draw of a slice: (the weight of a row, its place)."""
    here = [(cluster, n, pair) for number, cluster, n, pair in rows if number == at]
    if of == "frequency":
        return [[(1.0, pair)] for _, n, pair in here for _ in range(int(n))]
    if of == "sample weights":
        return [[(n, pair)] for _, n, pair in here]
    clusters = {cluster for cluster, _, _ in here}
    return [[(n, pair) for c, n, pair in here if c == cluster] for cluster in sorted(clusters)]


@in_turn(
    of=["frequency", "sample weights", "clusters", "clusters of sample weights"], seed=range(3)
)
def test_products_are_sums_over_draws(of, seed):
    draws, order, rows, (a, b) = drawn(seed, of=of)
    found = draws.products(a[order], b[order]), draws.size, draws.effective, draws.n_clusters
    for at in range(3):
        each = each_draw(rows, at, of)
        size = sum(n for one in each for n, _ in one)
        product = sum(
            sum(n * a[pair] for n, pair in one) * sum(n * b[pair] for n, pair in one)
            for one in each
        )
        squares = sum(sum(n for n, _ in one) ** 2 for one in each)
        scale = max(squares, 1.0)
        assert found[0][at] == pytest.approx(product, abs=1e-13 * scale)
        assert found[1][at] == pytest.approx(size, rel=1e-14)
        if each:
            assert found[2][at] == pytest.approx(size**2 / squares, rel=1e-13)
        else:
            assert np.isnan(found[2][at])
        if "clusters" in of:
            assert found[3][at] == len(each)
            assert sum(draws.slices[draws.starts] == at) == len(each)
        else:
            assert found[3] is None


def _ratio(part, whole):
    return np.divide(part, whole, out=np.zeros_like(part * whole), where=np.real(whole) != 0)


def dense_scores(m: np.ndarray) -> dict[str, complex]:
    """Scores of a matrix by their definitions: complex counts give derivatives without error."""
    s, t, p, c = m.sum(), m.sum(axis=1), m.sum(axis=0), np.diag(m)
    k, gold = (np.real(t + p) > 0).sum(), np.real(t) > 0
    cov, var_t, var_p = c.sum() * s - t @ p, s**2 - t @ t, s**2 - p @ p
    f1 = _ratio(2 * c, t + p)
    one = _ratio(c * s - t * p, np.sqrt(t * (s - t) * p * (s - p)))
    tp, fn, fp = c[POSITIVE], t[POSITIVE] - c[POSITIVE], p[POSITIVE] - c[POSITIVE]
    tn = s - tp - fn - fp
    return {
        "mcc": cov / np.sqrt(var_t * var_p),
        "accuracy": c.sum() / s,
        "balanced_accuracy": _ratio(c, t).sum() / gold.sum(),
        "precision_macro": _ratio(c, p).sum() / k,
        "f1_macro": f1.sum() / k,
        "f1_weighted": f1 @ t / s,
        "kappa": cov / (s**2 - t @ p),
        "informedness": cov / var_t,
        "markedness": cov / var_p,
        "mcc_macro": one.sum() / k,
        "tpr": tp / (tp + fn),
        "precision": tp / (tp + fp),
        "f1": 2 * tp / (2 * tp + fp + fn),
        "prevalence": (tp + fn) / s,
        "phi": (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)),
    }


METRICS = sorted(dense_scores(FULL[0]))
SIDED = {"tpr": [BY_GOLD], "precision": [BY_PRED]}


def dense_influence(matrix: np.ndarray, metric: str) -> np.ndarray:
    """How far one row of each cell moves a score, times the rows: by a complex step."""
    found = np.zeros_like(matrix)
    for cell in np.ndindex(*matrix.shape):
        moved = matrix.astype(complex)
        moved[cell] += 1e-30j
        found[cell] = dense_scores(moved)[metric].imag / 1e-30
    return matrix.sum() * found


def without_empty(matrix: np.ndarray) -> np.ndarray:
    occurs = (matrix.sum(axis=0) + matrix.sum(axis=1)) > 0
    return matrix[np.ix_(occurs, occurs)]


WITH_SCORES = [one for name, one in MATRICES.items() if name not in {"no rows", "one class"}]


@pytest.mark.parametrize("metric", METRICS)
def test_an_influence_is_how_far_one_row_more_moves_the_score(metric):
    classes, pairs = arrays_of(WITH_SCORES)
    three = smoothed_tables.tables_of(classes, pairs, None)
    found = influence_of_rows.influences_on_classes(classes, three, find_metrics(metric), 0.0)[
        metric
    ]
    for at, matrix in enumerate(WITH_SCORES):
        here = pairs.slices == at
        n, phi = pairs.n[here], found.phi[here]
        expected = dense_influence(matrix, metric)[matrix > 0]
        scale = np.abs(expected).max()
        assert np.abs(phi - expected).max() <= 1e-12 * scale
        assert abs(n @ phi) <= 1e-13 * scale * n.sum()
        assert found.phi_phi[at] == pytest.approx(n @ expected**2 / n.sum(), rel=1e-11)
        assert found.value[at] == pytest.approx(dense_scores(matrix)[metric], rel=1e-14)


def check_smoothed(
    found: influence_of_rows.Influence, at: int, dense: list[np.ndarray], metric: str
):
    """The mean of φ² over all cells of the smoothed tables, and the effective rows."""
    squares, rows = [], []
    for matrix in dense:
        phi = dense_influence(matrix, metric)
        squares.append((matrix * phi**2).sum() / matrix.sum())
        score, low, high = dense_scores(matrix)[metric], found.least[at], found.largest[at]
        rows.append((score - low) * (high - score) / squares[-1])
    assert found.max_variance[at] == pytest.approx(max(squares), rel=1e-11)
    assert found.effective_rows[at] == pytest.approx(min(rows), rel=1e-11)


@pytest.mark.parametrize("metric", METRICS)
def test_pseudo_rows_have_the_squares_of_all_cells_of_the_smoothed_table(metric):
    classes, pairs = arrays_of(WITH_SCORES)
    three = smoothed_tables.tables_of(classes, pairs, None)
    found = influence_of_rows.influences_on_classes(classes, three, find_metrics(metric), 0.0)[
        metric
    ]
    for at, matrix in enumerate(map(without_empty, WITH_SCORES)):
        both = {
            BY_GOLD: dense_smoothed(matrix, 2)[:, :-1],
            BY_PRED: dense_smoothed(matrix.T, 2).T[:-1],
        }
        check_smoothed(found, at, [both[side] for side in SIDED.get(metric, both)], metric)


@pytest.mark.parametrize("metric", sorted({*METRICS} - {*SIDED}))
def test_pseudo_rows_of_a_pool_have_the_squares_of_all_its_cells(metric):
    classes, pairs, expected = pooled(FULL, ["x", "y", "x"])
    four = smoothed_tables.tables_of(classes, pairs, expected)
    found = influence_of_rows.influences_on_classes(classes, four, find_metrics(metric), 0.0)[
        metric
    ]
    for at, pool in enumerate((FULL[0] + FULL[2], FULL[1], FULL[0] + FULL[2])):
        matrix, rates = FULL[at], dense_smoothed(pool, 2)[:, :-1] / pool.sum(axis=1, keepdims=True)
        dense = [dense_smoothed(matrix, 2)[:, :-1], dense_smoothed(matrix.T, 2).T[:-1]]
        dense.append(matrix.sum(axis=1, keepdims=True) * rates)
        check_smoothed(found, at, dense, metric)


def entropy(col):
    return -(col("share") * col("share").log()).sum()


NAMES = pl.Series(range(100))
ENTROPY = replace(
    *find_metrics("mutual_info"),
    pairs={"entropy": entropy},
    value=lambda terms: terms["entropy"],
    range=None,
)


def test_an_influence_on_a_score_of_pairs_is_that_of_one_row_more():
    classes, pairs = arrays_of(WITH_SCORES)
    [found] = influence_of_rows.influences_on_pairs(classes, pairs, [ENTROPY]).values()
    for at, matrix in enumerate(WITH_SCORES):
        share = matrix[matrix > 0] / matrix.sum()
        entropy = -(share @ np.log(share))
        expected = -np.log(share) - entropy
        assert found.value[at] == pytest.approx(entropy, rel=1e-13)
        assert np.abs(found.phi[pairs.slices == at] - expected).max() <= 1e-12


@pytest.mark.parametrize(
    "matrices", [[], [matrix_of()], [matrix_of([7])], [matrix_of(), matrix_of([7]), matrix_of()]]
)
def test_each_step_of_few_rows_gives_arrays_of_the_right_shape(matrices):
    classes, pairs, expected = pooled(matrices, ["x"] * len(matrices))
    number, k, cells = len(matrices), classes.t.shape, pairs.n.shape
    assert [one.shape for one in (classes.s, classes.rows.lengths, pairs.per_weight)] == [
        (number,)
    ] * 3
    assert expected.pool_rows.shape == expected.n_other_classes.shape == k
    assert expected.n_classes[0].shape == expected.n_classes[1].shape == (number,)
    four = smoothed_tables.tables_of(classes, pairs, expected)
    assert {one.shape for table, _ in four for one in table} == {k}
    assert len(four[OBSERVED][1].n) == cells[0]
    for name, found in influence_of_rows.influences_on_classes(
        classes, four, find_metrics(METRICS), 0.0
    ).items():
        assert found.phi.shape == cells, name
        assert {one.shape for one in found[:-1]} == {(number,)}, name
    [found] = influence_of_rows.influences_on_pairs(classes, pairs, [ENTROPY]).values()
    assert found.phi.shape == cells


def test_portions_of_slices_have_the_same_intervals_of_metrics_of_pairs(monkeypatch):
    i = pl.int_range(600)
    frame = pl.select(gold=i * i % 4, pred=(i * i + i % 5 // 4) % 4, key=i % 20)
    costs = polars_mcc.metric.cost({(0, 1): 5, (1, 0): 1, (2, 0): 40})
    asked = {"metrics": [costs, "kappa(quadratic)"], "ci": 0.95}
    whole = frame.mcc.by("key", **asked)
    monkeypatch.setattr(influence_of_rows, "_AT_ONCE", 9)
    assert_frame_equal(frame.mcc.by("key", **asked), whole, rel_tol=1e-12)


@pytest.mark.parametrize("rows", [0, 1, 200])
@pytest.mark.parametrize("largest", [3, 2**40], ids=["one integer", "too large for one integer"])
def test_rows_are_sorted_as_tuples_of_python_are(rows, largest):
    columns = [
        rng.integers(-1, 3, rows),
        rng.choice([0, 1, largest], rows),
        rng.integers(0, 2, rows),
    ]
    columns.append(rng.choice([0, largest], rows))
    order, is_new = sorted_rows(*columns)
    tuples = [*zip(*(column.tolist() for column in columns), strict=True)]
    assert order.tolist() == sorted(range(rows), key=tuples.__getitem__)
    found = [tuples[place] for place in order]
    assert is_new.tolist() == [not at or found[at - 1] != one for at, one in enumerate(found)]


@pytest.mark.parametrize("apart", [1, 10_000])
@pytest.mark.parametrize("number", [0, 60])
def test_numbers_that_occur_are_numbered(number, apart):
    ids = rng.integers(0, 40, number) * apart
    found, places = numbered(ids)
    assert found.tolist() == sorted({*ids.tolist()})
    assert found[places].tolist() == ids.tolist()


@pytest.mark.parametrize("values", [["b", "é", "a", "B"], [3, 1, 2**40], [0.5, -2.0]])
@pytest.mark.parametrize("null", [[], [None]])
def test_labels_have_the_codes_of_their_order(values, null):
    gold, pred = (pl.Series(rng.permutation([*values] * 2).tolist() + null) for _ in range(2))
    labels, *codes = labels_and_codes(gold, pred)
    assert labels.to_list() == [*null, *sorted(values)]
    for side, of_side in zip((gold, pred), codes, strict=True):
        assert [labels[int(code)] for code in of_side] == side.to_list()


WEIGHTS = [[1], [0, 0, 3], [0, 2, None], [2**58 // 300], [2**52 // 300], [0.5, 0.0, None]]
OPTIONS = [{"weight": "w"}, {"sample_weight": "w"}, {"weight": "w", "cluster": "user"}]


@in_turn(rows=[300, 0, 1], nulls=["drop", "label"], weights=WEIGHTS, options=OPTIONS)
def test_an_interval_changes_no_bit_of_a_score(rows, nulls, weights, options, monkeypatch):
    """With an interval, scores of integer weights come from arrays, and else from a plan."""
    monkeypatch.setattr(scores_of_arrays, "_WORTH", 0)
    known = polars_mcc.metrics().filter(pl.col("from").is_in(["classes", "pairs"]))["metric"]
    names = ["mcc", *known[1::9]]
    labels = pl.Enum(["a", "b", "c"])
    log = pl.DataFrame(
        {
            "key": pl.Series(rng.integers(0, 9, rows)) // (4 if nulls == "label" else 1),
            "user": rng.integers(0, 9, rows),
            **{
                side: rng.choice([*labels.categories, None], rows).tolist()
                for side in ("gold", "pred")
            },
        },
        schema_overrides={"key": pl.Int64, "gold": labels, "pred": labels},
    )
    dtype = pl.Float64 if 0.5 in weights else pl.Int64
    w = pl.Series("w", rng.choice(weights, rows).tolist(), dtype)
    described = log.with_columns(w).mcc(positive="a", nulls=nulls, **options)
    for keys in ([], [polars_mcc.rollup("key")]):
        plain = described.by(*keys, metrics=names)
        found = described.by(*keys, metrics=names, ci=0.9).select(plain.columns)
        assert_frame_equal(found, plain, check_exact=True)

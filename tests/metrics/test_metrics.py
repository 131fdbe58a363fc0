"""`metrics=`: all metrics against exact definitions in fractions, and their bounds."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import oracles
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from support import NAMES, ask, coded, in_turn, log_of, rows, some_slow
from tables import counts_of

import polars_mcc
from polars_mcc import each, trailing

ALL = polars_mcc.metrics()
FAMILY = ALL.filter(pl.col("from") != "scores")
OF_POSITIVE = FAMILY.filter(pl.col("from") == "positive")["metric"].to_list()
OF_CLASSES = [name for name in FAMILY["metric"] if name not in OF_POSITIVE]
BOUNDS = ["mcc_max", "mcc_min", "phi_over_max"]
CLOSE = {"rel": 4e-15, "abs": 4e-16}
"""The tolerance: a metric is a few roundings from its fraction, a mean one more per class."""

cells = st.integers(0, 30)
matrices = st.integers(2, 5).flatmap(
    lambda k: st.lists(st.lists(cells, min_size=k, max_size=k), min_size=k, max_size=k)
)


def measured(table, **options) -> dict[str, float | None]:
    [row] = ask(counts_of([table]), "score", weight="n", **options).to_dicts()
    return row


@pytest.mark.slow
@pytest.mark.parametrize("ci", some_slow([None, 0.95], None))
def test_the_order_of_rows_changes_no_bit(ci):
    """With many labels: sums of floats in another order have other last bits."""
    i = pl.int_range(997)
    pred = pl.when(i % 5 > 0).then(i * i % 13).otherwise(i % 13)
    log = pl.select(key=i % 3, gold=i % 13, pred=pred)
    metrics = FAMILY if ci is None else FAMILY.filter(no_interval="")
    options = {"metrics": metrics["metric"].to_list(), "ci": ci}
    answer, *others = (
        order.cast(pl.String).mcc(positive="1").by("key", **options)
        for order in [log, *(log.sample(fraction=1, shuffle=True, seed=seed) for seed in range(5))]
    )
    for other in others:
        assert_frame_equal(other, answer, check_exact=True)


@in_turn(keys=[(), ("key",)], ci=[None, 0.9])
def test_ends_of_columns_are_those_of_the_classes(keys, ci):
    """In an order, Polars takes the first or last value of a column for its minimum or maximum."""
    ends = {
        f"{name}_{end}": (lambda col, name=name, end=end: getattr(col(name), end)())
        for name in ("recall", "f1", "support")
        for end in ("min", "max")
    }
    metrics = [lambda col, name=name, of=of: of(col).alias(name) for name, of in ends.items()]
    rng = np.random.default_rng(0)
    for labels in ["ab", "cd", "ef", "gh", "abcd"]:
        gold, other = rng.choice([*labels], (2, 90))
        pred = np.where(rng.random(90) < 0.5, gold, other)
        log = pl.DataFrame({"key": [0, 1, 2] * 30, "gold": gold, "pred": pred})
        found = log.mcc.by(*keys, metrics=metrics, ci=ci).select(*keys, *ends)
        of_classes = [of(pl.col).alias(name) for name, of in ends.items()]
        classes = log.mcc.classes(*keys).with_columns(pl.col("support").cast(pl.Float64))
        expected = classes.group_by(keys).agg(of_classes) if keys else classes.select(of_classes)
        assert_frame_equal(found, expected.sort(keys) if keys else expected, check_exact=True)


@given(matrices, st.integers(0, 5))
def test_every_metric_by_its_definition(matrix, label):
    table = oracles.table_of(matrix)
    assume(sum(table.values()))
    names = [*(name for name in OF_CLASSES if name not in BOUNDS), *OF_POSITIVE]
    found = measured(table, metrics=names, positive=label)
    expected = oracles.family(table) | oracles.of_positive(table, label)
    assert set(names) == set(expected)
    for name in names:
        assert found[name] == oracles.shown(name, expected[name], **CLOSE), name


@given(rows=rows)
@pytest.mark.parametrize("nulls", ["drop", "label"])
def test_slices_and_engines(rows, nulls, run):
    """On each engine, a slice of rows scores as its exact table."""
    names = [name for name in OF_CLASSES if name not in BOUNDS]
    names = [*names, *OF_POSITIVE]
    answer = run(
        log_of(rows),
        lambda f: f.mcc(positive="ant", nulls=nulls).by("key", metrics=names),
    )
    log = coded(rows, pl.String())
    if nulls == "label":
        log = [(key, gold or "null", pred or "null") for key, gold, pred in log]
    tables = oracles.by_slice(log)
    assert answer["key"].to_list() == sorted(tables, key=lambda key: (key is not None, key or ""))
    for row in answer.iter_rows(named=True):
        table = tables[row["key"]]
        assert row["n"] == sum(table.values())
        if not table:
            counts = dict.fromkeys(("tp", "fp", "fn", "tn"), 0)
            assert {name: row[name] for name in names} == {**dict.fromkeys(names), **counts}
            continue
        expected = oracles.family(table) | oracles.of_positive(table, "ant")
        for name in names:
            assert row[name] == oracles.shown(name, expected[name], **CLOSE), name


@in_turn(
    name=["kappa", "informedness", "phi_over_max", "chi2", "phi"], dtype=[pl.Int64, pl.Float64]
)
def test_no_digit_is_lost_where_one_class_is_nearly_all(dtype, name):
    """Float differences such as c/s - chance cancel: with 10^12 rows of one class 4 digits stay."""
    counts = pl.DataFrame({"gold": [0, 0, 1, 1], "pred": [0, 1, 0, 1], "n": [10**12, 1, 1, 3]})
    counts = counts.with_columns(pl.col("n").cast(dtype))
    found = counts.mcc(weight="n", positive=_positive(name)).score(metrics=name)
    table = {(0, 0): 10**12, (0, 1): 1, (1, 0): 1, (1, 1): 3}
    expected = oracles.family(table) | oracles.of_positive(table, 1) | {"phi_over_max": 0.75}
    expected["phi_over_max"] = expected["mcc"]  # The marginals agree.
    assert found[name].item() == pytest.approx(expected[name], rel=1e-15, abs=0)


def _positive(name: str) -> int | None:
    return 1 if name in OF_POSITIVE else None


# Bounds over all tables of a few rows.


def _bounds_of(tables: list[dict]) -> pl.DataFrame:
    names = ["mcc", *BOUNDS]
    return counts_of(tables).mcc(weight="n", zero_division=None).by("table", metrics=names)


@pytest.mark.parametrize(("n", "classes"), [(8, 2), (6, 3), (3, 4)])
def test_the_bounds_are_reached_and_not_passed(n, classes):
    tables = list(oracles.all_tables(n, classes))
    best: dict[object, float] = {}
    least: dict[object, float] = {}
    bounds = _bounds_of(tables)
    listed = list(zip(tables, bounds.iter_rows(named=True), strict=True))
    for table, row in listed:
        if row["mcc"] is None:
            continue
        t, p = oracles.marginals(table)
        margins = tuple(t[k] for k in range(classes)), tuple(p[k] for k in range(classes))
        best[margins] = max(row["mcc"], best.get(margins, -1))
        least[margins[0]] = min(row["mcc"], least.get(margins[0], 1))
    for table, row in listed:
        t, p = oracles.marginals(table)
        gold, pred = tuple(t[k] for k in range(classes)), tuple(p[k] for k in range(classes))
        assert (row["mcc"] is None) == (row["mcc_max"] is None)
        assert (row["mcc_min"] is None) == (max(gold) == n)
        if row["mcc"] is None:
            continue
        assert row["mcc_max"] == pytest.approx(best[gold, pred], rel=4e-16, abs=0)
        assert row["mcc_min"] == pytest.approx(least[gold], rel=1e-15, abs=0)
        assert (row["mcc_max"] == 1) == (gold == pred)
        if row["mcc_max"] > 0:
            ratio = row["mcc"] / row["mcc_max"]
            assert row["phi_over_max"] == pytest.approx(ratio, rel=1e-15, abs=0)
        else:
            assert row["phi_over_max"] is None
    assert len(best) > 10


@given(st.lists(st.integers(1, 40), min_size=2, max_size=6), st.randoms())
def test_no_predictions_score_below_the_least(gold_n, random):
    """For tables too large to enumerate: random predictions, and the predictions that confuse two
    classes, which the bound claims to be the worst."""
    gold = [label for label, n in enumerate(gold_n) for _ in range(n)]
    k = len(gold_n)

    def table_of(pred: list[int]) -> dict:
        table: dict[tuple[int, int], int] = {}
        for pair in zip(gold, pred, strict=True):
            table[pair] = table.get(pair, 0) + 1
        return table

    random_ones = [[random.randrange(k) for _ in gold] for _ in range(5)]
    confused = [
        [j if label == i else i for label in gold] for i, j in itertools.permutations(range(k), 2)
    ]
    found = _bounds_of([table_of(pred) for pred in (*random_ones, *confused)])
    bounds = set(found["mcc_min"].to_list())
    assert len(bounds) == 1
    [bound] = bounds
    assert found["mcc"].min() == pytest.approx(bound, rel=1e-15)
    assert -1 <= bound < 0


# The interface.


def test_columns_are_in_the_order_given_and_typed(run):
    log = log_of([("x", 0, 0), ("x", 1, 0), ("y", 2, 2)])
    names = ["f1_macro", "tp", "mcc", "accuracy"]
    answer = run(log, lambda f: f.mcc(positive="ant").by("key", metrics=names))
    assert answer.columns == ["key", "n", *names, "n_null"]
    assert answer.schema["tp"] == pl.Int64
    assert answer.schema["f1_macro"] == pl.Float64
    assert answer.drop("f1_macro", "tp", "accuracy").equals(log.mcc.by("key"))


@pytest.mark.slow
def test_with_intervals_sets_windows_and_models(run):
    """`metrics=` does not change the other columns, and options do not change the metrics."""
    log = log_of([("x", i % 3, (i * i) % 4) for i in range(40)] + [("y", 1, 1), (None, 2, 0)])
    log = log.with_columns(
        other=pl.col("gold").reverse(), w=2, user=pl.int_range(1, pl.len() + 1) // 5 + 1
    )
    names = ["accuracy", "mcc", "chi2", "mcc_macro"]
    asked = {
        "interval": ("key", {"ci": 0.9}),
        "clusters": ("key", {"ci": 0.9, "cluster": "user"}),
        "sets": (each("key", "w", total=True), {}),
        "sets with intervals": (each("key", "w", total=True), {"ci": 0.9, "long": True}),
        "windows": (trailing(pl.date(2026, 1, "user"), "2d", every="1d"), {}),
        "models": ("key", {"pred": ["pred", "other"]}),
        "weights": ("key", {"weight": "w"}),
    }
    for name, (key, option) in asked.items():
        answer = run(log, lambda f, o=option, k=key: ask(f, "by", k, metrics=names, **o))
        plain = ask(log, "by", key, **option)
        rest = answer.select(plain.columns)
        assert_frame_equal(rest, plain, rel_tol=1e-12, abs_tol=0)
        one_by_one = {key: value for key, value in option.items() if key not in {"ci", "cluster"}}
        for metric in names:
            alone = ask(log, "by", key, metrics=metric, **one_by_one)[metric]
            assert alone.to_list() == pytest.approx(answer[metric].to_list(), rel=1e-15), name


def test_booleans_have_a_positive_class():
    log = pl.DataFrame({"gold": [True, True, False, None], "pred": [True, False, False, True]})
    answer = log.mcc.score(metrics=["tp", "fp", "fn", "tn", "tpr"])
    assert answer.row(0) == (3, 1, 0, 1, 1, 0.5, 1)
    answer = log.mcc(positive=False).score(metrics=["tp", "fp"])
    assert answer.row(0) == (3, 1, 1, 1)


@pytest.mark.parametrize(
    ("labels", "positive"),
    [(["a", "b"], "a"), (pl.Series(["a", "b"], dtype=pl.Categorical), "a"), ([1, 2], 1)],
)
def test_a_positive_class_of_any_dtype(run, labels, positive):
    log = pl.DataFrame({"gold": labels, "pred": labels})
    answer = run(log, lambda f: f.mcc(positive=positive).score(metrics=["tp", "tn"]))
    assert answer.row(0) == (2, 1, 1, 0)


def test_an_undefined_metric_is_what_was_asked_for(run):
    log = log_of([("x", 0, 0), ("x", 0, 0)])
    names = ["mcc", "kappa", "mcc_max", "mcc_min", "phi_over_max", "cramers_v", "informedness"]
    for value in (None, 5.0):
        answer = run(log, lambda f, v=value: f.mcc(zero_division=v).score(metrics=names))
        assert answer.select(names).row(0) == (value,) * len(names)
    nan = run(log, lambda f: f.mcc(zero_division=math.nan).score(metrics=names))
    assert all(map(math.isnan, nan.select(names).row(0)))


def test_a_mean_over_classes_leaves_out_what_is_null(run):
    """A label that is never gold has no recall: it counts as 0, or the mean leaves it out."""
    log = log_of([("x", 0, 0), ("x", 0, 1)])
    names = ["recall_macro", "precision_weighted"]
    as_zero = run(log, lambda f: f.mcc.score(metrics=names))
    assert as_zero.select(names).row(0) == (0.25, 1.0)
    left_out = run(log, lambda f: f.mcc(zero_division=None).score(metrics=names))
    assert left_out.select(names).row(0) == (0.5, 1.0)
    never_predicted = log_of([("x", 0, 0), ("x", 1, 0)])
    left_out = never_predicted.mcc(zero_division=None).score(metrics=names)
    assert left_out["precision_weighted"].item() == 0.5


def test_no_rows(run):
    empty = log_of([])
    answer = run(empty, lambda f: f.mcc(positive="ant").score(metrics=[*OF_CLASSES, "tp"]))
    assert answer.row(0) == (0, *[None] * len(OF_CLASSES), 0, 0)
    assert run(empty, lambda f: f.mcc.by("key", metrics=OF_CLASSES)).height == 0


def test_own_expressions(run):
    log = log_of([("x", 0, 0), ("x", 1, 0), ("x", 1, 1), ("y", 2, 2)])
    worst = pl.col("label").sort_by("recall", "label").first().alias("worst")
    weighted = (pl.col("recall") * pl.col("support")).sum() / pl.col("support").sum()
    metrics = [pl.col("recall").min(), worst, weighted.alias("mine"), "recall_weighted"]
    answer = run(log, lambda f: f.mcc.by("key", metrics=metrics))
    assert answer.columns == ["key", "n", "recall", "worst", "mine", "recall_weighted", "n_null"]
    assert answer.rows() == [
        ("x", 3, 0.5, "bee", 2 / 3, 2 / 3, 0),
        ("y", 1, 1.0, "cat", 1.0, 1.0, 0),
    ]


@given(rows=rows)
def test_own_expressions_over_pairs(rows, run):
    """A cost per pair of labels gives the same mean as a cost per row."""
    gold, pred, n = pl.col("gold"), pl.col("pred"), pl.col("n")
    price = pl.when(gold == pred).then(0).when(gold == "ant").then(10.0).otherwise(1.0)
    cost = (price * n).sum() / n.sum()
    largest = pl.col("share").filter(gold != pred).max().alias("largest")
    answer = run(
        log_of(rows),
        lambda f: f.mcc.by("key", metrics=[cost.alias("cost"), "mcc", largest]),
    )
    assert answer.columns == ["key", "n", "cost", "mcc", "largest", "n_null"]
    scored = log_of(rows).drop_nulls(["gold", "pred"])
    priced = scored.with_columns(price=price).group_by("key").agg(pl.col("price").mean())
    expected = dict(priced.rows())
    for row in answer.iter_rows(named=True):
        if row["n"] == 0:
            assert (row["cost"], row["largest"]) == (None, None)
            continue
        assert row["cost"] == pytest.approx(expected[row["key"]], rel=1e-14)
        of_slice = scored.filter(pl.col("key").eq_missing(pl.lit(row["key"])))
        misses = of_slice.filter(gold != pred).group_by("gold", "pred").len()["len"]
        most = misses.max() / of_slice.height if len(misses) else None
        assert row["largest"] == pytest.approx(most)


def test_a_distance_of_labels_that_are_numbers(run):
    log = pl.DataFrame({"gold": [1, 2, 3, 4], "pred": [1, 3, 1, None], "w": [1, 2, 3, 4]})
    error = ((pl.col("gold") - pl.col("pred")).abs() * pl.col("n")).sum() / pl.col("n").sum()
    answer = run(log, lambda f: f.mcc(weight="w").score(metrics=error.alias("mae")))
    assert answer.row(0) == (6, (0 + 2 + 6) / 6, 4)
    polars_mcc.register_metric("mae", error)
    assert log.mcc.score(metrics="mae")["mae"].item() == 1.0
    assert polars_mcc.metrics().filter(metric="mae")["from"].item() == "pairs"


def test_a_registered_metric():
    log = log_of([("x", 0, 0), ("x", 1, 0)])
    polars_mcc.register_metric("lowest", pl.col("f1").min(), formula="min F1")
    assert polars_mcc.metrics().filter(metric="lowest")["formula"].item() == "min F1"
    assert log.mcc.score(metrics="lowest")["lowest"].item() == 0.0
    polars_mcc.register_metric("lowest", pl.col("f1").max())
    assert log.mcc.score(metrics="lowest")["lowest"].item() == pytest.approx(2 / 3)
    for name in ("mcc", "n", "model"):
        with pytest.raises(ValueError, match=f"'{name}' is a built-in metric or a column"):
            polars_mcc.register_metric(name, pl.col("f1").min())
    with pytest.raises(pl.exceptions.SchemaError, match="'low' has a value for each class"):
        polars_mcc.register_metric("low", pl.col("f1"))


def test_a_metric_and_a_key_of_any_name():
    log = log_of([("x", 0, 0), ("x", 1, 0)]).rename({"key": "value"})
    answer = log.mcc.by("value", metrics=pl.col("f1").max().alias("key"))
    assert answer.row(0) == ("x", 2, pytest.approx(2 / 3), 0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"metrics": "mcc,kappa"}, ValueError, "no metric 'mcc,kappa': name one metric, or give"),
        ({"metrics": "f1macro"}, ValueError, "no metric 'f1macro'; did you mean 'f1_macro'"),
        ({"metrics": "zzz"}, ValueError, r"no metric 'zzz'. The nearest are ('\w+'(, )?){5}; m"),
        ({"metrics": "fbeta(2)"}, ValueError, r"here it is 'f_beta\(2\)', with any number .* m"),
        ({"metrics": "kappa_quadratic"}, ValueError, r"here it is 'kappa\(quadratic\)'. m"),
        ({"metrics": "disparate_impact_ratio"}, ValueError, "the ratio of 'selection_rate'"),
        ({"metrics": "statistical_parity_difference"}, ValueError, "gap of 'selection_rate'"),
        ({"metrics": "average_odds_difference"}, ValueError, "mean of the gaps of 'tpr' and"),
        ({"metrics": "equalized_odds_ratio"}, ValueError, "smaller of the ratios of 'tpr' and"),
        ({"metrics": "likelihood_ratio_positive"}, ValueError, "here it is 'lr_pos'"),
        ({"metrics": "f_beta(0)"}, ValueError, "got 0; 0 would be ppv"),
        ({"metrics": []}, ValueError, "metrics is empty"),
        ({"metrics": ["mcc", "mcc"]}, ValueError, "two columns named 'mcc'"),
        ({"metrics": pl.col("n").max()}, ValueError, "two columns named 'n'"),
        (
            {"metrics": ["mcc", pl.col("f1").min().alias("mcc_se")], "ci": 0.9},
            ValueError,
            "the name of another column of the answer, 'mcc_se'",
        ),
        (
            {"metrics": pl.col("f1").median(), "ci": 0.9},
            ValueError,
            r"'f1' has no standard error by a formula, because .*median.* has .*Bootstrap\(...\)",
        ),
        ({"metrics": pl.col("f1", "mcc").min()}, ValueError, "must be one column, but .* several"),
        ({"metrics": [1]}, TypeError, "a metric must be a name or a polars expression, .* got 1"),
        ({"metrics": pl.col("tp").max()}, pl.exceptions.ColumnNotFoundError, "no column 'tp' for"),
        (
            {"metrics": (pl.col("gold") == pl.col("label")).any()},
            pl.exceptions.ColumnNotFoundError,
            "no column 'label' .* or of pairs, 'gold', 'pred', 'n', 'share'",
        ),
        ({"metrics": pl.col("gold")}, pl.exceptions.SchemaError, "a value for each pair"),
        ({"metrics": pl.col("f1")}, pl.exceptions.SchemaError, "a value for each class"),
        ({"metrics": "tpr"}, ValueError, "say which label is positive.*labels are String"),
        (
            {"metrics": "tpr", "positive": 1},
            pl.exceptions.SchemaError,
            "^positive=1 does not have the dtype of the labels, String$",
        ),
        ({"metrics": "f1"}, ValueError, "for all classes, use 'f1_macro'"),
    ],
)
def test_errors(run, options, error, message):
    with pytest.raises(error, match=message):
        run(log_of([("x", 0, 0)]), lambda f: ask(f, "by", "key", **options))


def test_a_key_that_is_named_as_a_metric_is_an_error():
    log = log_of([("x", 0, 0)]).rename({"key": "kappa"})
    with pytest.raises(pl.exceptions.DuplicateError, match="key 'kappa' has the name"):
        log.mcc.by("kappa", metrics=["mcc", "kappa"])


def test_the_registry_says_what_it_should():
    assert ALL["metric"].is_unique().all()
    assert (ALL["formula"] != "").all()
    assert (ALL["range"] != "").all()
    assert (ALL["source"] != "").all()
    assert not ALL["formula"].str.contains("|", literal=True).any()
    assert {*ALL["from"]} == {"classes", "pairs", "positive", "scores"}
    assert set(NAMES).isdisjoint(ALL["metric"])


DTYPES = [
    *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128),
    *(pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.UInt128),
    *(pl.Float16, pl.Float32, pl.Float64, pl.Decimal(4, 1)),
]
WITH_LABELS = {
    "plus": lambda col: ((col("gold") + col("pred")) * col("share")).sum(),
    "distance": lambda col: ((col("gold") - col("pred")).abs() * col("share")).sum(),
    "square": lambda col: ((col("gold") - col("pred")).pow(2) * col("share")).sum(),
    "product": lambda col: (col("gold") * col("pred") * col("share")).sum(),
    "label": lambda col: (col("label") * col("label") * col("support")).sum(),
}
BY_HAND = {
    "plus": lambda g, p: g + p,
    "distance": lambda g, p: abs(g - p),
    "square": lambda g, p: (g - p) ** 2,
    "product": lambda g, p: g * p,
    "label": lambda g, _: g * g,
}
ASKED = {
    "score": lambda log, name: log.score(metrics=name)[name],
    "ci": lambda log, name: log.score(metrics=name, ci=0.9)[name],
    "bootstrap": lambda log, name: log.score(
        metrics=name, ci=0.9, method=polars_mcc.Bootstrap(20, seed=1)
    )[name],
    "check": lambda log, name: log.check(metric=name, max=10**9)[name],
    "contrast": lambda log, name: log.contrast("k", metrics=name)["score"],
    "drift": lambda log, name: log.drift(
        metrics=name, before=pl.col("k") == 1, after=pl.col("k") == 2
    )["score"],
    "compare": lambda log, name: log(pred=["gold", "pred"]).compare(metrics=name)["score"],
    "worst": lambda log, name: log.worst("k", metric=name, min_n=1, verdicts=True)["score"],
    "baseline": lambda log, name: log.check(metric=name, ci=0.9, no_worse_than=log.counts())[
        "score"
    ],
}


@in_turn(dtype=DTYPES, metric=WITH_LABELS, verb=ASKED)
def test_expressions_compute_with_labels_of_any_dtype(verb, metric, dtype):
    """A sum of two Int8 is no Int8, 25 - 50 is no UInt8, and 12.5 squared has two decimals."""
    half = 1 if pl.Series(dtype=dtype).dtype.is_integer() else Fraction(1, 2)
    cells = [(100 * half, 100 * half, 5), (3 * half, 100 * half, 2), (25 * half, 50 * half, 3)]
    cells.append((100 * half, 0 * half, 4))
    listed = [(float(g), float(p)) for g, p, n in cells for _ in range(n)]
    log = pl.DataFrame(listed, schema=["gold", "pred"], orient="row")
    log = log.with_columns(pl.all().cast(dtype), k=1)
    if verb in {"contrast", "drift", "worst"}:
        log = pl.concat([log, log.with_columns(k=2)])
    polars_mcc.register_metric("mine", WITH_LABELS[metric])
    found = ASKED[verb](log.mcc, "mine").to_list()
    total = sum(BY_HAND[metric](g, p) * n for g, p, n in cells)
    want = total if metric == "label" else Fraction(total, 14)
    assert found
    assert found == pytest.approx([float(want)] * len(found), rel=1e-12)


@pytest.mark.parametrize("kind", [pl.Boolean, pl.Int8, pl.String])
def test_a_selection_rate_of_all_predictions_has_the_predictions_as_gold(kind):
    i = pl.int_range(500)
    said = pl.when(i % 11 > 0).then(i * i % 7 < 3)
    log = pl.select(key=i % 3, gold=pl.when(i % 5 > 0).then(i % 2 == 0), pred=said)
    log = log.with_columns(pl.col("gold", "pred").cast(pl.Int8).cast(kind))
    positive = pl.select(pl.lit(1).cast(kind)).item()
    expected = log.group_by("key").agg(
        n=pl.col("pred").count(),
        selection_rate=pl.col("pred").eq(positive).mean(),
        n_null=pl.col("pred").null_count(),
    )
    found = log.mcc(gold="pred", positive=positive).by("key", metrics="selection_rate")
    assert_frame_equal(found, expected.sort("key"), check_dtypes=False, rel_tol=1e-15)
    scored = log.drop_nulls().group_by("key").agg(rate=pl.col("pred").eq(positive).mean())
    labelled = log.mcc(positive=positive).by("key", metrics="selection_rate")
    assert labelled["selection_rate"].to_list() == scored.sort("key")["rate"].to_list()


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt8, pl.Int64, pl.UInt64])
def test_a_result_of_integer_labels_is_an_integer_and_never_wraps(dtype):
    log = pl.DataFrame({"gold": [100, 100, 3], "pred": [100, 3, 100]}).cast(dtype).mcc
    sums = {"most": (pl.col("gold") + pl.col("pred")).max(), "total": pl.col("label").sum()}
    answer = log.score(metrics=[one.alias(name) for name, one in sums.items()])
    assert answer.select("most", "total").row(0) == (200, 103)
    assert answer.schema["most"] == answer.schema["total"] == pl.Int64
    large = pl.DataFrame({"gold": [2**62, 1], "pred": [2**62, 2]}).mcc
    with pytest.raises(pl.exceptions.PolarsError, match="9223372036854775808"):
        large.score(metrics=(pl.col("gold") + pl.col("pred")).max().alias("most"))

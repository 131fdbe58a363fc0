"""Standard errors and intervals of all metrics, against differences, Wilson and resampling."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import oracles
import polars as pl
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy import stats
from support import ask, first, in_turn
from tables import counts_of

import polars_mcc
from polars_mcc._intervals import influence_of_rows

Z = NormalDist().inv_cdf(0.975)
FAMILY = polars_mcc.metrics().filter(pl.col("from") != "scores")
NAMES = FAMILY["metric"].to_list()
SURE = FAMILY.filter(no_interval="")["metric"].to_list()
ONE_VALUE = [
    "mcc_max",
    "mcc_min",
    "prevalence",
    "selection_rate",
    "phi_max",
]  # they do not depend on hits
ODDS = FAMILY.filter(range="[0, ∞]")["metric"].to_list()

RANGES = {
    row["metric"]: (0 if row["range"] == "[0, 1]" else -1, 1, "")
    for row in FAMILY.to_dicts()
    if row["range"] in {"[0, 1]", "[-1, 1]"} and not row["no_interval"]
}
GIVEN = {
    **dict.fromkeys(("recall", "specificity", "tpr", "tnr", "fnr", "fpr"), "gold"),
    **dict.fromkeys(("precision", "ppv", "npv", "fdr", "for"), "pred"),
}
RANGES |= {name: (0, 1, given) for name, given in GIVEN.items()}

some = st.integers(0, 2).flatmap(lambda size: st.integers(1, 10 ** (size + 1)))
tables = (
    st.integers(2, 4)
    .flatmap(lambda k: st.lists(st.lists(some, min_size=k, max_size=k), min_size=k, max_size=k))
    .map(oracles.table_of)
)


def measured(table: oracles.Table, metrics=NAMES, **options) -> dict:
    options = {"positive": 1, "ci": 0.95, **options}
    [row] = ask(counts_of([table]), "by", weight="n", metrics=metrics, **options).to_dicts()
    return row


@settings(max_examples=settings.default.max_examples // 2)
@given(tables)
def test_standard_errors_are_those_of_numerical_differentiation(table):
    t, p = oracles.marginals(table)
    # At a kink, where two classes are alike, there is no derivative.
    assume(all(t[k] != p[k] for k in t) and len({*t.values()}) == len(t))
    assume(oracles.family(table)["mcc_min_class"] is not None)
    found, expected = measured(table), oracles.standard_errors(table, 1)
    assert {*expected} == {*NAMES}
    for name in {*NAMES} - {*SURE}:
        assert found[f"{name}_se"] is found[f"{name}_low"] is found[f"{name}_high"] is None
    for name in SURE:
        if name in ODDS:
            continue  # Its error is of its logarithm: see test_log_intervals.py.
        se = expected[name]
        span = sum(table.values()) if name in {"tp", "fp", "fn", "tn", "chi2"} else 1
        if se < 1e-9 * span:
            assert found[f"{name}_se"] is None or found[f"{name}_se"] < 1e-8 * span, name
        else:
            assert found[f"{name}_se"] == pytest.approx(se, rel=1e-9), name


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples // 2)
@given(tables)
@example({(0, 0): 2, (0, 1): 4, (1, 0): 1, (1, 1): 2})  # independent
def test_intervals_are_wilsons_with_the_variance_of_smoothed_tables(table):
    t, p = oracles.marginals(table)
    assume(all(t[k] != p[k] for k in t) and len({*t.values()}) == len(t))
    found = measured(table)
    for name, limits in oracles.intervals(table, 1, RANGES, Z).items():
        if name not in ONE_VALUE:  # they have kinks where two margins are equal
            ends = [found[f"{name}_low"], found[f"{name}_high"]]
            assert ends == pytest.approx(limits, abs=1e-8), name


def test_the_table_of_a_note():
    """The numbers are from ../shared/statistics.md: complex steps, and 40 000 resamples."""
    table = oracles.table_of([[50, 7, 3], [4, 60, 9], [6, 2, 20]])

    def geometric(col):
        return col("recall").log().mean().exp().alias("geometric")

    def of_class(score, label):
        name = f"{score}:{label}"
        return lambda col: col(score).filter(col("label") == label).sum().alias(name)

    one_class = [of_class(*one) for one in (("recall", 0), ("precision", 1), ("f1", 2))]
    expected = {
        "accuracy": (0.807453416149068, 0.03107518401361325),
        "balanced_accuracy": (0.789845618612742, 0.03591424712057785),
        "kappa": (0.695447888699048, 0.04834207774901429),
        "f1_macro": (0.781690140845070, 0.03512878323870208),
        "f1_weighted": (0.809669611874143, 0.03059261003431814),
        "precision_macro": (0.775966183574879, 0.03540687966090266),
        "geometric": (0.787963987917804, 0.03768621614438313),
        "recall:0": (0.833333333333333, 0.04811252243246882),
        "precision:1": (0.869565217391304, 0.04054368731479625),
        "f1:2": (0.666666666666667, 0.07027283689263066),
    }
    names = [name for name in expected if name in NAMES]
    found = measured(table, metrics=[*names, geometric, *one_class])
    for name, (value, se) in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-13), name
        assert found[f"{name}_se"] == pytest.approx(se, rel=1e-12), name


def proportions(table: oracles.Table, label: int) -> dict[str, tuple[int, int]]:
    """The part and the whole of each metric that is a proportion."""
    tp, fp, fn, tn = oracles.two_by_two(table, label)
    n, hits = tp + fp + fn + tn, sum(c for (g, q), c in table.items() if g == q)
    return {
        **dict.fromkeys(("accuracy", "precision_micro", "recall_micro", "f1_micro"), (hits, n)),
        **dict.fromkeys(("precision", "ppv"), (tp, tp + fp)),
        **dict.fromkeys(("recall", "tpr"), (tp, tp + fn)),
        **dict.fromkeys(("specificity", "tnr"), (tn, tn + fp)),
        "npv": (tn, tn + fn),
        "fdr": (fp, tp + fp),
        "fnr": (fn, tp + fn),
        "fpr": (fp, tn + fp),
        "for": (fn, tn + fn),
        "prevalence": (tp + fn, n),
        "selection_rate": (tp + fp, n),
    }


def assert_wilson(table: oracles.Table) -> None:
    """The interval of each proportion is Wilson's, by SciPy."""
    cases = proportions(table, 1)
    found = measured(table, metrics=[*cases])
    for name, (part, whole) in cases.items():
        limits = [found[f"{name}_low"], found[f"{name}_high"]]
        if whole == 0:
            # Without predictions, a precision may be anything, if the label has gold rows.
            t, p = oracles.marginals(table)
            unseen = sum(n for label, n in t.items() if not p[label])
            own = [label for label in t if (label == 1) != (name in {"npv", "for"})]
            is_open = (
                sum(n > 0 for n in t.values()) > 1 and unseen > 1 and sum(t[one] for one in own)
            )
            is_open = is_open and GIVEN.get(name) == "pred"
            assert limits == ([0, 1] if is_open else [None, None]), name
            continue
        wilson = stats.binomtest(part, whole).proportion_ci(0.95, method="wilson")
        assert limits == pytest.approx([wilson.low, wilson.high], rel=1e-9, abs=1e-12), name


few = st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=3, max_size=3)


@given(few.map(oracles.table_of))
def test_intervals_of_proportions_are_wilsons(table):
    """The rows are those that could have been wrong. All or none of them may be right."""
    assume(sum(table.values()))
    assert_wilson(table)


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples // 5)
@given(st.lists(few.map(oracles.table_of), min_size=1, max_size=12))
@example(
    [
        oracles.table_of([[2, 7, 7]] * 3),  # Cramér's V is 0, and its derivative is infinite.
        oracles.table_of([[0, 1], [2, 0]]),  # φ / φ_max is -2.
    ]
)
def test_intervals_stay_within_the_range_and_have_the_score_inside(tables):
    """The tables are slices of one log, as one query takes as long for one as for many."""
    log = pl.concat([counts_of([table]).with_columns(slice=i) for i, table in enumerate(tables)])
    bounded = FAMILY.filter(~pl.col("metric").is_in(["chi2", "mutual_info"])).to_dicts()
    for method in ("score", "fisher", "wald"):
        described = log.filter(pl.col("n") > 0).mcc(weight="n", positive=1)
        answer = described.by("slice", metrics=NAMES, ci=0.95, method=method)
        for found, row in itertools.product(answer.to_dicts(), bounded):
            name = row["metric"]
            low, score, high = (found[f"{name}{end}"] for end in ("_low", "", "_high"))
            assert (low is None) == (high is None), name
            if low is None:
                continue
            assert low - 1e-9 <= score <= high + 1e-9, (name, method)
            if row["range"] in {"[0, 1]", "[-1, 1]"}:
                least = 0 if row["range"] == "[0, 1]" else -1
                assert least - 1e-12 <= low, (name, method)
                assert high <= 1 + 1e-12, (name, method)


@pytest.mark.parametrize(
    "matrix",
    [
        [[5, 0], [7, 0]],
        [[0, 5], [0, 7]],
        [[0, 4, 0], [0, 0, 0], [6, 0, 0]],
        [[3, 0, 0], [0, 0, 2], [0, 0, 4]],
        [[1, 0], [0, 0]],
        [[0, 0], [0, 9]],
    ],
)
def test_intervals_of_proportions_where_a_class_is_not_predicted(matrix):
    assert_wilson(oracles.table_of(matrix))


# Weights, clusters, classes, and the order of rows.

OF_ROWS = ["accuracy", "f1_macro", "kappa", "tpr", "phi", "mcc"]


@pytest.fixture(scope="module")
def users() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    gold = rng.choice(3, 400, p=[0.5, 0.3, 0.2])
    pred = np.where(rng.random(400) < 0.7, gold, rng.choice(3, 400))
    other = np.where(rng.random(400) < 0.6, gold, rng.choice(3, 400))
    columns = {"gold": gold, "pred": pred, "other": other, "user": rng.integers(0, 60, 400)}
    log = pl.DataFrame(
        {**columns, "w": rng.integers(1, 9, 400) / 4, "slice": rng.integers(0, 3, 400)}
    )
    return log.with_columns(pl.when(pl.col("w") < 2).then("gold"))


def influences(log: pl.DataFrame, name: str, weights: np.ndarray) -> np.ndarray:
    """The influence of each row, from a table whose cells are sums of weights."""
    scale = 4
    table: dict[tuple[int, int], int] = dict.fromkeys(itertools.product(range(3), repeat=2), 0)
    for gold, pred, w in zip(log["gold"], log["pred"], weights, strict=True):
        table[gold, pred] += round(w * scale)
    phi = oracles.moves(table, 1)[name]
    return np.array([float(phi[row]) for row in log.select("gold", "pred").iter_rows()])


@in_turn(cluster=[None, "user"], weight=[None, "w"], name=OF_ROWS)
def test_standard_errors_from_rows(users, name, weight, cluster):
    log = users.drop_nulls("gold")
    w = np.ones(log.height) if weight is None else log[weight].to_numpy()
    moved = w * influences(log, name, w)
    if cluster:
        moved = np.bincount(log[cluster].to_numpy(), moved)
    expected = math.sqrt((moved**2).sum()) / w.sum()
    found = users.mcc(sample_weight=weight, cluster=cluster, positive=1).score(metrics=name, ci=0.9)
    assert found[f"{name}_se"].item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "options",
    first(
        3,
        [
            {},
            {"weight": pl.col("w") * 4},
            {"sample_weight": "w"},
            {"cluster": "user"},
            {"sample_weight": "w", "cluster": "user"},
            {"pred": ["pred", "other"]},
        ],
    ),
    ids=lambda options: ", ".join(options) or "plain",
)
def test_classes_are_sure_as_the_positive_class_is(users, run, options):
    """A class has the interval of the metric of this class, with any weights and clusters."""
    same = {"precision": "precision", "recall": "recall", "specificity": "specificity", "f1": "f1"}
    log = users.with_columns(pl.col("gold").cast(pl.Int32))
    classes = run(log, lambda f: f.mcc(**options).classes("slice", ci=0.9))
    for label in range(3):
        found = classes.filter(label=label)
        metrics = [*same.values(), "phi"]
        expected = log.mcc(positive=label, **options).by("slice", metrics=metrics, ci=0.9)
        for of_class, metric in {**same, "mcc": "phi"}.items():
            for end in ("", "_se", "_low", "_high"):
                assert found[of_class + end].to_list() == pytest.approx(
                    expected[metric + end].to_list(), rel=1e-9
                ), (of_class, end)


def test_the_interval_of_a_class_does_not_depend_on_ci(users):
    plain = users.mcc.classes("slice")
    sure = users.mcc.classes("slice", ci=0.9)
    assert_frame_equal(sure.select(plain.columns), plain, check_exact=True)


def test_models_sets_and_weights_are_as_each_alone(users):
    names = ["accuracy", "f1_macro", "chi2", "mcc"]
    both = users.mcc(pred=["pred", "other"]).by(
        polars_mcc.each("slice", total=True), metrics=names, ci=0.9
    )
    for model in ("pred", "other"):
        alone = users.mcc(pred=model).by("slice", metrics=names, ci=0.9)
        of_model = both.filter(model=model, keys="slice").drop("model", "keys")
        assert_frame_equal(of_model, alone, rel_tol=1e-12, abs_tol=0)
    counted = users.mcc.counts("slice").mcc(weight="n").by("slice", metrics=names, ci=0.9)
    expected = users.mcc.by("slice", metrics=names, ci=0.9)
    assert_frame_equal(counted.drop("n_null"), expected.drop("n_null"), rel_tol=1e-12, abs_tol=0)


@pytest.mark.parametrize("seed", first(1, range(2)))
def test_the_order_of_rows_does_not_matter(users, run, seed):
    names = [name for name in NAMES if name != "mcc"]
    expected = users.mcc(positive=1).by("slice", metrics=names, ci=0.9)
    shuffled = users.sample(fraction=1, shuffle=True, seed=seed)
    answer = run(shuffled, lambda f: f.mcc(positive=1).by("slice", metrics=names, ci=0.9))
    assert_frame_equal(answer, expected, rel_tol=1e-11, abs_tol=1e-14)


def test_a_metric_of_one_s_own_is_differentiated(users):
    """Accuracy written over classes, and over pairs, has the standard error of accuracy."""
    log = users.drop_nulls("gold")
    expected = log.mcc.score(metrics="accuracy", ci=0.9)

    def of_classes(col):
        return (col("hits").sum() / col("support").sum()).alias("own")

    def of_pairs(col):
        return col("share").filter(col("gold") == col("pred")).sum().alias("own")

    def of_counts(col):
        return (((col("gold") == col("pred")) * col("n")).sum() / col("n").sum()).alias("own")

    def nested(col):
        return (col("hits") / col("n").max()).sum().alias("own")

    for own in (of_classes, of_pairs, of_counts, nested):
        found = log.mcc.score(metrics=own, ci=0.9)
        assert found["own"].item() == pytest.approx(expected["accuracy"].item(), rel=1e-14)
        assert found["own_se"].item() == pytest.approx(expected["accuracy_se"].item(), rel=1e-12)
        wald = log.mcc.score(metrics=own, ci=0.9, method="wald")
        reach = NormalDist().inv_cdf(0.95) * expected["accuracy_se"].item()
        assert wald["own_low"].item() == pytest.approx(found["own"].item() - reach, rel=1e-9)
    polars_mcc.register_metric("own_in_range", of_classes, range=(0, 1))
    found = log.mcc.score(metrics="own_in_range", ci=0.9)
    assert found["own_in_range_low"].item() == pytest.approx(
        expected["accuracy_low"].item(), rel=1e-9
    )


def test_a_curved_metric_of_pairs_has_the_standard_error_of_the_delta_method(users):
    def own(col):
        return ((col("share") * 2) ** 2 / 4).filter(col("gold") != col("pred")).sum().alias("own")

    counts = users.drop_nulls("gold").group_by("gold", "pred").len()
    n, is_miss = counts["len"].sum(), (counts["gold"] != counts["pred"]).cast(pl.Int64)
    share = counts["len"] / n
    found = counts.mcc(weight="len").score(metrics=own, ci=0.9)
    squares = (share**2 * is_miss).sum()
    phi = 2 * share * is_miss - 2 * squares
    assert found["own"].item() == pytest.approx(squares, rel=1e-13)
    assert found["own_se"].item() == pytest.approx(((share * phi**2).sum() / n) ** 0.5, rel=1e-12)


@pytest.mark.slow
def test_the_bootstrap_of_any_metric(users):
    """It agrees with the delta method, with clusters too. It needs no derivative."""
    names = ["mcc", "f1_macro", "accuracy"]
    median = pl.col("recall").median().alias("median")
    for cluster in (None, "user"):
        log = users.mcc(cluster=cluster)
        method = polars_mcc.Bootstrap(replicates=4000, seed=1)
        found = log.score(metrics=[*names, median], ci=0.9, method=method)
        exact = log.score(metrics=names, ci=0.9)
        assert found["n_null"].item() == exact["n_null"].item()
        for name in names:
            assert found[f"{name}_se"].item() == pytest.approx(exact[f"{name}_se"].item(), rel=0.06)
            for end in ("low", "high"):
                limit = exact[f"{name}_{end}"].item()
                assert found[f"{name}_{end}"].item() == pytest.approx(limit, abs=0.015)
        assert found["median_se"].item() > 0


@in_turn(
    ask_for=[
        lambda log, own: log.by(metrics=own, ci=0.9),
        lambda log, own: log.worst("user", metric=own).collect(),
    ],
    **{
        "own, shown": [
            (
                lambda col: col("recall").median(),
                r"'median' has no derivative; there are .*, sqrt, sum",
            ),
            (pl.col("recall").mean(), r'col\("recall"\).mean\(\)'),
        ]
    },
)
def test_what_has_no_derivative_says_what_to_do(users, own, shown, ask_for):
    message = rf"'recall' has no .* {shown}.* as a function, .* method=Bootstrap\(...\)"
    log = users.lazy().mcc
    with pytest.raises(ValueError, match=message):
        ask_for(log, own)


def test_an_expression_and_a_function_are_one_metric(users):
    method = polars_mcc.Bootstrap(replicates=50, seed=1)
    for options in ({}, {"ci": 0.9, "method": method}):
        expected = users.mcc.by("slice", metrics=pl.col("recall").mean(), **options)
        found = users.mcc.by("slice", metrics=lambda col: col("recall").mean(), **options)
        assert_frame_equal(found, expected, rel_tol=1e-12)


@pytest.mark.slow
def test_a_function_is_searched_and_compared_as_its_built_in_twin(users):
    polars_mcc.register_metric("own_f1", lambda col: col("f1").mean(), range=(0, 1))
    both = users.mcc(pred=["pred", "other"])
    for ask_for in (
        lambda metric: users.mcc.worst("user", metric=metric, verdicts=True),
        lambda metric: both.compare("slice", metrics=metric),
        lambda metric: users.mcc.contrast("slice", metrics=metric),
    ):
        expected = ask_for("f1_macro").with_columns(metric=pl.lit("own_f1"))
        assert_frame_equal(ask_for("own_f1"), expected, rel_tol=1e-9)


@pytest.mark.parametrize(
    "name", first(3, ["z", "draws", "s", "value", "draw", "table", "covariance"])
)
def test_a_metric_may_have_any_name(users, name):
    expected = users.mcc.by("slice", metrics="accuracy", ci=0.9)

    def own(col):
        return (col("hits").sum() / col("support").sum()).alias(name)

    if name != "value":  # the long form has a column of this name
        for method in ("wald", polars_mcc.Bootstrap(replicates=50, seed=1)):
            found = users.mcc.by("slice", metrics=own, ci=0.9, method=method)
            assert found[name].to_list() == pytest.approx(expected["accuracy"].to_list())
            assert found[f"{name}_se"].null_count() == 0
    key = users.rename({"slice": name}).mcc.by(name, metrics="accuracy", ci=0.9)
    assert_frame_equal(key.rename({name: "slice"}), expected)


def test_what_is_linear_in_r_k_has_its_interval(users):
    found = users.mcc.by("slice", metrics=["mcc_normalized", "mcc"], ci=0.9)
    alone = users.mcc.by("slice", metrics="mcc_normalized", ci=0.9)
    assert_frame_equal(found.select(alone.columns), alone, check_exact=True)
    for end in ("", "_low", "_high"):
        expected = (found[f"mcc{end}"] + 1) / 2
        assert found[f"mcc_normalized{end}"].to_list() == pytest.approx(expected.to_list())
    assert found["mcc_normalized_se"].to_list() == pytest.approx((found["mcc_se"] / 2).to_list())


def test_an_expression_called_mcc_is_not_r_k(users):
    """It has the interval of the expression, which is `mcc_macro` here."""
    found = users.mcc.by("slice", metrics=lambda col: col("mcc").mean(), ci=0.9, method="wald")
    expected = users.mcc.by("slice", metrics="mcc_macro", ci=0.9, method="wald")
    assert_frame_equal(found, expected.rename(lambda name: name.replace("_macro", "")))


@pytest.mark.parametrize("undefined", [None, math.nan, 0.0])
def test_whatever_stands_for_0_over_0(users, undefined):
    """A score that is defined has its interval; one that is NaN or null has none."""
    same = users.head(3).with_columns(slice=9, gold=0, pred=0)
    log = pl.concat([users, same], how="vertical_relaxed")
    names = ["accuracy", "kappa", "f1_macro"]
    found = log.mcc(zero_division=undefined).by("slice", metrics=names, ci=0.9)
    usual = users.mcc.by("slice", metrics=names, ci=0.9)
    assert_frame_equal(found.filter(pl.col("slice") != 9), usual, check_dtypes=False)
    [one] = found.filter(slice=9).to_dicts()
    assert one["kappa_low"] is one["kappa_high"] is None
    assert one["accuracy_low"] is not None


def test_a_range_of_no_width_and_edges_of_the_bootstrap(users):
    one = pl.DataFrame({"gold": ["a"] * 9, "pred": ["a"] * 9})
    [row] = one.mcc.by(metrics=["chi2", "mutual_info"], ci=0.9).to_dicts()
    assert row["chi2_low"] is row["mutual_info_high"] is None
    for bca in (False, True):
        method = polars_mcc.Bootstrap(replicates=200, seed=1, bca=bca)
        names = ["chi2", "tp", "mcc_micro"]
        found = users.mcc(positive=1).by("slice", metrics=names, ci=0.9, method=method)
        assert found["chi2_low"].null_count() == 0
        known = users.drop_nulls()
        single = known.head(1).with_columns(slice=9)
        log = pl.concat([known, single], how="vertical_relaxed")
        found = log.mcc.by("slice", ci=0.9, method=method)
        assert found["mcc_low"].null_count() == 1
    for wrong in ((1, 0), (0,), (0, math.inf)):
        with pytest.raises(ValueError, match="range must be the least and the largest value"):
            polars_mcc.register_metric("odd", pl.col("recall").min(), range=wrong)


@pytest.mark.parametrize("name", ["f1_macro", "kappa", "balanced_accuracy", "phi"])
def test_standard_errors_are_near_the_jackknife(users, name):
    """The jackknife leaves out one row at a time. It differs by about 1 / n."""
    log = users.drop_nulls("gold")
    table = {(g, p): n for g, p, n in log.mcc.counts().select("gold", "pred", "n").iter_rows()}

    def score(cells: dict) -> float:
        return counts_of([cells]).mcc(weight="n", positive=1).score(metrics=name)[name].item()

    without = {pair: score({**table, pair: n - 1}) for pair, n in table.items()}
    n = sum(table.values())
    mean = sum(table[pair] * value for pair, value in without.items()) / n
    spread = sum(table[pair] * (value - mean) ** 2 for pair, value in without.items())
    jackknife = math.sqrt((n - 1) / n * spread)
    found = log.mcc(positive=1).score(metrics=name, ci=0.9)[f"{name}_se"].item()
    assert found == pytest.approx(jackknife, rel=0.02)


NAMED = ["place", "of slice", "of gold", "is_b", "is_rest", "pair", "phi", "gold", "score"]


@in_turn(5, verb=["by", "compare", "contrast", "drift"], name=NAMED)
def test_a_tested_metric_may_have_any_name(users, verb, name):
    ask = {
        "by": lambda log, own: log.by("slice", metrics=own, ci=0.9),
        "compare": lambda log, own: log.compare("slice", metrics=own),
        "contrast": lambda log, own: log.contrast("slice", metrics=own),
        "drift": lambda log, own: log.drift(
            "slice", before=pl.col("user") < 20, after=pl.col("user") > 19, metrics=own
        ),
    }[verb]
    log = users.mcc(pred=["pred", "other"] if verb == "compare" else "pred")

    def asked(name: str) -> pl.DataFrame:
        found = ask(log, lambda col: (col("support") * col("recall")).sum().alias(name))
        if verb == "by":
            return found.rename(lambda column: column.replace(name, "own", 1))
        return found.with_columns(pl.col("metric").str.replace(name, "own", literal=True))

    assert_frame_equal(asked(name), asked("own"))


@in_turn(
    is_lazy=[False, True],
    own=[lambda col: col("n").max().alias("own"), lambda col: col("label").max().alias("own")],
)
def test_what_no_row_moves_has_no_standard_error(users, own, is_lazy):
    log = (users.lazy() if is_lazy else users).mcc
    found = log.by("slice", metrics=own, ci=0.9).lazy().collect()
    assert found["own"].null_count() == 0
    assert found["own_se"].null_count() == found.height


def test_infinite_scores_have_no_difference_and_no_warning(users):
    log = users.mcc(pred=["pred", "other"])
    found = log.compare("slice", metrics=lambda col: (col("recall").mean() / 0).alias("own"))
    assert found["p_value"].null_count() == found.height


@pytest.mark.parametrize("at_once", first(2, [1, 4, 7]))
def test_a_few_slices_at_a_time_give_what_all_give_at_once(users, monkeypatch, at_once):
    def answers() -> list[pl.DataFrame]:
        log = users.with_columns(key=pl.col("user") % 7).mcc
        return [
            log.by("key", metrics=["mcc", "f1_macro", "precision_macro"], ci=0.9),
            log.contrast("key"),
            users.clear().mcc.by("slice", ci=0.9),
        ]

    expected = answers()
    monkeypatch.setattr(influence_of_rows, "_AT_ONCE", at_once)
    for found, want in zip(answers(), expected, strict=True):
        assert_frame_equal(found, want, check_exact=True)

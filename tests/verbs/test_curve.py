"""`curve` and `best_threshold`: compare with predictions made at every threshold."""

from __future__ import annotations

import math
import re
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import exact
from polars.testing import assert_frame_equal
from sklearn.metrics import f1_score
from support import ask, in_turn

from polars_mcc import bins

scores = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 0.25, 0.5, 0.75, 1.0, math.nan, 1e300]))
golds = st.sampled_from([True, False, None])
rows = st.lists(st.tuples(st.sampled_from([None, "x", "y"]), golds, scores), max_size=25)
SCHEMA = {"key": pl.String, "gold": pl.Boolean, "score": pl.Float64}
COUNTS = ["tp", "fp", "fn", "tn"]


def frame_of(rows) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def is_scored(gold, score) -> bool:
    return gold is not None and score is not None and not math.isnan(score)


def predicted(rows, threshold) -> Counter:
    """{(gold, pred): n} of rows (gold, score, weight)."""
    table = Counter()
    for gold, score, weight in rows:
        table[gold, score >= threshold] += weight
    return table


def curve_of(rows, thresholds=None) -> list[tuple]:
    """(key, threshold, n, tp, fp, fn, tn, mcc, n_null), from the predictions at each threshold."""
    found = []
    for key in sorted({row[0] for row in rows}, key=lambda key: (key is not None, key)):
        all_of = [(gold, score) for k, gold, score in rows if k == key]
        part = [(gold, score, 1) for gold, score in all_of if is_scored(gold, score)]
        left_out = len(all_of) - len(part)
        cuts = thresholds or [*sorted({score for _, score, _ in part}), math.inf]
        for cut in cuts if part else ():
            table = predicted(part, cut)
            counts = [table[gold, pred] for pred in (True, False) for gold in (True, False)]
            score = pytest.approx(float(exact(table)), abs=1e-15)
            found.append((key, cut, len(part), *counts, score, left_out))
        if not part:
            found.append((key, *[None], 0, *[None] * 5, left_out))
    return found


def shown(answer: pl.DataFrame) -> list[tuple]:
    return answer.select("key", "threshold", "n", *COUNTS, "mcc", "n_null").rows()


@given(
    rows=rows,
    listed=st.sets(st.sampled_from([-1.0, 0.0, 0.3, 0.5, 2.0]), min_size=1).map(sorted),
    number=st.integers(1, 6),
)
def test_thresholds_are_scores_or_listed_or_quantiles_of_all_rows(run, rows, listed, number):
    def curve(thresholds):
        ask = lambda log: log.mcc(score="score").curve("key", thresholds=thresholds)  # noqa: E731
        return shown(run(frame_of(rows), ask))

    assert curve(None) == curve_of(rows)
    assert curve(listed) == curve_of(rows, listed)
    everything = sorted(score for _, gold, score in rows if is_scored(gold, score))
    cuts = []
    for cut in sorted(set(everything)):
        reached = sum(score >= cut for score in everything)
        above = sum(score > cut for score in everything)
        steps = [Fraction(n * number, len(everything)) for n in (reached, above)]
        if math.floor(steps[0]) > math.floor(steps[1]):
            cuts.append(cut)
    assert len(cuts) <= number
    assert curve(number) == curve_of(rows, [*cuts, math.inf])


@given(
    rows=rows,
    cuts=st.sampled_from([None, 3, [0.25, 0.5]]),
    zero_division=st.sampled_from([0.0, None, 1.0, math.nan]),
)
def test_the_best_is_the_best_of_all(run, rows, cuts, zero_division):
    """0/0 is 0, whatever `zero_division` is; without two gold classes nothing is best."""
    frame = frame_of(rows)
    answer = run(
        frame,
        lambda log: log.mcc(score="score", zero_division=zero_division).best_threshold(
            "key", thresholds=cuts
        ),
    )

    def best_of(part: list, points: pl.DataFrame) -> tuple[float | None, float | None]:
        if len({gold for gold, _, _ in part}) < 2:
            return None, None
        scored = {cut: float(exact(predicted(part, cut))) for cut in points["threshold"].unique()}
        largest = max(scored.values())
        return largest, max(cut for cut, score in scored.items() if score > largest - 1e-12)

    log = frame.mcc(score="score")
    points, pooled = (log.curve(*keys, thresholds=cuts) for keys in (["key"], []))
    everything = [(gold, score, 1) for _, gold, score in rows if is_scored(gold, score)]
    _, shared = best_of(everything, pooled)
    assert answer["shared_threshold"].drop_nulls().unique().to_list() in ([], [shared])
    for row in answer.rows(named=True):
        part = [(g, s, 1) for k, g, s in rows if k == row["key"] and is_scored(g, s)]
        best, cut = best_of(part, points.filter(pl.col("key").eq_missing(row["key"])))
        assert row["threshold"] == cut
        assert row["mcc"] == (None if best is None else pytest.approx(best, abs=1e-15))
        if best is None:
            assert (row["mcc_shared"], row["loss"]) == (None, None)
        else:
            of_shared = float(exact(predicted(part, shared)))
            assert row["mcc_shared"] == pytest.approx(of_shared, abs=1e-15)
            assert row["loss"] == row["mcc"] - row["mcc_shared"]


@in_turn(thresholds=[None, 4, [0.1, 0.8]], zero_division=[0.0, None, 1.0, -1.0, math.nan])
def test_a_threshold_of_0_by_0_is_better_than_worse_than_guessing(run, zero_division, thresholds):
    """All rows or no rows predicted positive have an MCC of 0, and each other cut is below 0."""
    rows = {"gold": [True, True, False, False], "score": [0.1, 0.2, 0.8, 0.8]}
    log = pl.DataFrame(rows)
    given = {"score": "score", "zero_division": zero_division}
    best = run(log, lambda frame: frame.mcc(**given).best_threshold(thresholds=thresholds))
    largest = 0.1 if isinstance(thresholds, list) else math.inf
    assert best.row(0)[1:6] == (largest, 0.0, largest, 0.0, 0.0)
    curve = log.mcc(score="score").curve(thresholds=thresholds)
    assert curve["mcc"].max() == 0 > curve["mcc"][-1 if largest < 1 else -2]
    # Precision is 0/0 above all scores; less of a false discovery rate is better, and it is 1.
    high = {**given, "score": pl.col("score") / 2}
    for metric, worst in {"ppv": 0.0, "f1": 0.0, "fdr": 1.0}.items():
        asked = {"metric": metric, "thresholds": [0.9]}
        at = run(log, lambda frame, asked=asked: frame.mcc(**high).best_threshold(**asked))
        assert at.row(0)[1:3] == (0.9, worst)


def test_of_thresholds_that_are_as_good_it_is_the_largest(run):
    log = pl.DataFrame({"gold": [True, False, True, False], "score": [0.9, 0.8, 0.7, 0.6]})
    assert run(log, lambda f: f.mcc(score="score").best_threshold())["threshold"].item() == 0.9


TOPS = {  # the largest score, and the threshold that no row reaches
    "Float32": (0.5, math.inf),
    "Float64": (1e300, math.inf),
    "Int8": (127, 128),
    "UInt8": (255, 256),
    "UInt32": (2**32 - 1, 2**32),
    "Int64": (2**53, 2**53 + 1),
    "UInt64": (2**63, 2**63 + 1),
    "UInt128": (9, 10),
    "Decimal(2, 2)": (Decimal("0.99"), Decimal("1.00")),
}
COSTS = {  # of cells (gold, pred) of a slice
    "cost(fn=1, fp=10)": lambda n: Fraction(n[1, 0] + 10 * n[0, 1], n.total()),
    "error_rate": lambda n: Fraction(n[1, 0] + n[0, 1], n.total()),
    "fpr": lambda n: Fraction(n[0, 1], n[0, 1] + n[0, 0]),
    "fnr": lambda n: Fraction(n[1, 0], n[1, 1] + n[1, 0]),
}


@pytest.mark.parametrize("name", TOPS)
def test_no_rows_may_be_best(run, name):
    """A threshold above all scores is tried, in each slice and for all, so no loss is negative."""
    dtype = pl.Decimal(2, 2) if "(" in name else getattr(pl, name)()
    top, above = TOPS[name]
    scores = [top, top / 3, top / 9, 0, top, top / 3, top / 3, top / 9, 0, top / 9]
    if dtype.is_integer():
        scores = map(int, scores)
    column = pl.Series([*map(Decimal, scores)] if "(" in name else [*scores]).cast(dtype)
    gold = [True, False, True, False, False, False, True, False, True, False]
    log = pl.DataFrame({"key": ["a"] * 4 + ["b"] * 6, "gold": gold, "score": column})
    reached = Counter()
    for metric, bound in [*((metric, None) for metric in COSTS), ("fnr", {"fpr": 0.0})]:
        for thresholds in (None, 3, [Decimal("0.1"), Decimal("0.3")]):
            options = {"metric": metric, "max": bound, "thresholds": thresholds, "score": "score"}
            best = run(log, lambda f, options=options: ask(f, "best_threshold", "key", **options))
            grid = log.mcc(score="score").curve(thresholds=thresholds)["threshold"].to_list()
            for row in best.rows(named=True):
                part = log.filter(key=row["key"])
                own = [*part["score"].unique(), above] if thresholds is None else grid
                bad = {}
                for cut in own:
                    pred = [score >= cut for score in part["score"]]
                    cells = Counter(zip(part["gold"], pred, strict=True))
                    if bound is None or cells[False, True] == 0:
                        bad[cut] = COSTS[metric](cells)
                least = min(bad.values(), default=None)
                cut = max((cut for cut, cost in bad.items() if cost == least), default=None)
                assert row["threshold"] == cut
                assert row[metric.split("(")[0]] == (None if least is None else float(least))
                assert (row["loss"] or 0) >= 0
                reached[cut == above] += 1
    assert reached[True] >= 8
    curve = run(log, lambda f: ask(f, "curve", score="score"))
    assert curve.select("threshold", "tp", "fp").row(-1) == (above, 0, 0)
    assert curve["threshold"].n_unique() == 5


def test_infinity_is_a_score_too(run):
    """Then no threshold is above it. What misses a bound at the shared threshold loses nothing."""
    log = pl.DataFrame(
        {"key": list("aaab"), "gold": [0, 1, 1, 0], "score": [math.inf, 2.0, 1.0, 1.0]}
    )
    asked = {"score": "score", "positive": 1, "metric": "fpr"}
    best = run(log, lambda f: ask(f, "best_threshold", "key", **asked))
    assert best.select("threshold", "fpr", "shared_threshold", "loss").rows() == [
        (math.inf, 1.0, math.inf, 0.0),
        (math.inf, 0.0, math.inf, 0.0),
    ]
    kept = {"score": "score", "positive": 1, "metric": "recall", "max": {"fpr": 0.5}}
    rows = {"key": list("aabb"), "gold": [0, 1, 0, 1], "score": [3, 2, 1, 2]}
    best = run(pl.DataFrame(rows), lambda f: ask(f, "best_threshold", "key", **kept))
    assert best.select(
        "threshold", "recall", "shared_threshold", "recall_shared", "loss"
    ).rows() == [
        (4, 0.0, 2, 1.0, 0.0),
        (2, 1.0, 2, 1.0, 0.0),
    ]


def test_one_threshold_for_all_loses_nothing_of_all(run):
    rng = np.random.default_rng(1)
    gold = rng.random(300) < 0.3
    log = pl.DataFrame({"gold": gold, "score": rng.normal(gold * 1.5, 1)})
    [row] = run(log, lambda f: f.mcc(score="score").best_threshold()).rows(named=True)
    assert row["threshold"] == row["shared_threshold"]
    assert (row["loss"], row["n"]) == (0, 300)
    at = run(log, lambda log: log.mcc(score="score").curve(thresholds=[row["threshold"]]))
    by = log.mcc(pred=pl.col("score") >= row["threshold"]).score()
    assert at["mcc"].item() == by["mcc"].item() == row["mcc"]


def test_weights_are_rows(run):
    rows = [
        ("x", True, 0.9, 3),
        ("x", False, 0.9, 1),
        ("x", False, 0.1, 10**17),
        ("x", True, 0.1, 7),
    ]
    log = pl.DataFrame(rows, schema=[*SCHEMA, "n"], orient="row")
    answer = run(log, lambda log: log.mcc(weight="n", score="score").curve())
    for row in answer.rows(named=True):
        table = predicted([row[1:] for row in rows], row["threshold"])
        assert row["mcc"] == pytest.approx(float(exact(table)), rel=1e-15)
    floats = log.with_columns(pl.col("n") / 7)
    of_floats = run(floats, lambda log: log.mcc(weight="n", score="score").curve())
    assert of_floats.schema["tp"] == pl.Float64
    assert of_floats["mcc"].to_list() == pytest.approx(answer["mcc"].to_list(), rel=1e-14)
    assert run(floats, lambda log: log.mcc(weight="n", score="score").best_threshold())[
        "threshold"
    ].item() == pytest.approx(0.9)


def test_f1_is_scikit_learns():
    rng = np.random.default_rng(2)
    gold = rng.random(100) < 0.3
    log = pl.DataFrame({"gold": gold, "score": rng.normal(gold, 1).round(1)})
    for row in log.mcc(score="score").curve().rows(named=True):
        pred = log["score"].to_numpy() >= row["threshold"]
        assert row["f1"] == pytest.approx(f1_score(gold, pred), abs=1e-15)


@pytest.mark.filterwarnings("error")
def test_several_scores_are_models(run):
    log = pl.DataFrame(
        {"gold": [1, 1, 0, 0, 2], "a": [0.9, 0.6, 0.7, 0.1, 0.2], "b": [5, 4, 3, 2, None]}
    )
    answer = run(log, lambda log: log.mcc(score=["b", "a"], positive=1).curve())
    for name in ("a", "b"):
        alone = log.mcc(score=name, positive=1).curve()
        part = answer.filter(pl.col("model") == name).drop("model")
        nobody = pl.col("tp", "fp") == 0  # of integers, it is one more than the largest
        alone = alone.with_columns(
            threshold=pl.when(pl.all_horizontal(nobody)).then(math.inf).otherwise("threshold")
        )
        assert_frame_equal(part, alone)
    best = run(log, lambda log: log.mcc(score=["b", "a"], positive=1).best_threshold(thresholds=2))
    assert best["model"].to_list() == ["b", "a"]
    assert best["n_null"].to_list() == [1, 0]


BEYOND = 2**53 + 1  # no Float64
CASES = {
    "Float16": ([0.1, 0.2, 0.7], ["0.1", "0.2", "0.7"]),
    "Float32": ([0.1, 0.2, 0.7], ["0.1", "0.2", "0.7"]),
    "Float64": ([0.1, 0.2, 0.7], ["0.1", "0.2", "0.7"]),
    "Int8": ([-300, -1, 0.5, 3, 300], [-128, -1, 0, 1, 3, 127]),
    "UInt16": ([-0.5, 3, 2**16], [0, 3, 2**16 - 1]),
    "Int64": ([-0.5, BEYOND - 1, BEYOND, BEYOND + 1], [-1, 0, BEYOND - 1, BEYOND, BEYOND + 1]),
    "UInt64": ([-1, BEYOND, 2**63 + 1, 2**64], [0, BEYOND, 2**63, 2**63 + 1, 2**64 - 1]),
    "Int128": ([-(2**100) - 1, BEYOND], [-(2**100) - 2, -(2**100) - 1, BEYOND - 1, BEYOND]),
    "UInt128": ([BEYOND, 2**127 + 1], [BEYOND - 1, BEYOND, 2**127, 2**127 + 1, 2**128 - 1]),
    "Decimal(2, 1)": ([0.1, 0.65, 0.7, 9.9, 10], ["0.1", "0.6", "0.7", "9.9", "-9.9"]),
    "Decimal(38, 20)": (
        [0.1, Decimal("0.10000000000000000001"), 0.7],
        ["0.1", "0.10000000000000000001", "0.7", "0.69999999999999999999"],
    ),
    "Decimal(38, 0)": ([BEYOND, 10**30 + 1], [str(BEYOND - 1), str(BEYOND), str(10**30 + 1)]),
}


@in_turn(verb=["curve", "best_threshold"], name=CASES)
def test_a_threshold_is_reached_by_what_is_at_least_as_large(run, name, verb):
    """NumPy rounds a threshold of floats. Integers and decimals are compared as fractions."""
    dtype = pl.Decimal(*map(int, re.findall(r"\d+", name))) if "(" in name else getattr(pl, name)()
    cuts, scores = CASES[name]
    if dtype.is_integer():
        column = pl.Series(scores, dtype=dtype)
    else:
        column = pl.Series([Decimal(score) for score in scores]).cast(dtype)
    number = getattr(np, name.lower()) if dtype.is_float() else Fraction
    numbers, limits = ([number(str(one)) for one in listed] for listed in (scores, cuts))
    gold = [place % 3 > 0 for place in range(len(scores))]
    log = pl.DataFrame({"gold": [*gold, True], "s": pl.concat([column, column.clear(1)])})
    tables = [Counter(zip(gold, (s >= at for s in numbers), strict=True)) for at in limits]
    answer = run(log, lambda frame: getattr(frame.mcc(score="s"), verb)(thresholds=cuts))
    assert (answer["n"][0], answer["n_null"][0]) == (len(scores), 1)
    shown = [Fraction(str(cut)) for cut in answer["threshold"]]
    if verb == "curve":
        assert shown == [Fraction(str(cut)) for cut in cuts]
        for count, cell in {"tp": (True, True), "fp": (False, True), "fn": (True, False)}.items():
            assert answer[count].to_list() == [table[cell] for table in tables]
    else:
        values = [float(exact(table) or 0) for table in tables]
        best = max(place for place, value in enumerate(values) if value == max(values))
        assert shown == [Fraction(str(cuts[best]))]
        assert answer["mcc"].item() == pytest.approx(values[best], abs=1e-15)


def test_each_model_is_cut_in_its_own_dtype(run):
    log = pl.DataFrame({"gold": [True, False], "a": [0.7, 0.1], "b": [0.7, 0.1]})
    log = log.with_columns(pl.col("a").cast(pl.Float32), c=pl.Series([Decimal("0.7"), Decimal(0)]))
    asked = ["a", "b", "c"]
    answer = run(log, lambda frame: frame.mcc(score=asked).curve(thresholds=[0.7]))
    assert answer["tp"].to_list() == [1, 1, 1]


@in_turn(
    ask=["thresholds", "bins"],
    cuts=[[10**400], [math.nan], [0.5, Decimal("0.5")], ["0.5"], [1, None]],
)
def test_cuts_that_are_no_rising_numbers(cuts, ask):
    log = pl.DataFrame({"gold": [True], "s": [0.5]}).mcc(score="s")
    with pytest.raises(ValueError, match="rising"):
        log.curve(thresholds=cuts) if ask == "thresholds" else bins("s", cuts)


@pytest.mark.parametrize("other", [pl.Int64, pl.UInt64, pl.Int128, pl.Int8])
def test_whole_scores_of_several_widths_keep_their_digits(run, other):
    """2^53 and 2^53 + 1 are one Float64."""
    log = pl.DataFrame({"gold": [False, True], "a": [2**53, 2**53 + 1], "b": [1, 2]})
    log = log.cast({"b": other})
    answer = run(log, lambda frame: frame.mcc(score=["a", "b"]).by(metrics="roc_auc"))
    assert answer["roc_auc"].to_list() == [1, 1]
    cuts = run(log, lambda frame: frame.mcc(score=["a", "b"]).curve())["threshold"]
    assert cuts.to_list() == [2**53, 2**53 + 1, 2**53 + 2, 1, 2, 3]


@pytest.mark.parametrize(
    ("gold", "positive"),
    [
        (pl.Series(["yes", "no", "no"]), "yes"),
        (pl.Series(["yes", "no", "no"], dtype=pl.Enum(["no", "yes"])), "yes"),
        (pl.Series(["yes", "no", "no"], dtype=pl.Categorical), "yes"),
        (pl.Series([1, 0, 0], dtype=pl.UInt8), 1),
        (pl.Series([False, True, True]), False),
    ],
    ids=["text", "enum", "category", "integer", "boolean"],
)
def test_the_positive_label_may_be_of_any_dtype(gold, positive):
    log = pl.DataFrame({"gold": gold, "score": [0.9, 0.3, 0.4]})
    answer = log.mcc(positive=positive, score="score").curve(thresholds=[0.5])
    assert answer.select(*COUNTS).rows() == [(1, 0, 0, 2)]


@in_turn(
    verb=["curve", "best_threshold"],
    **{
        "options, error, message": [
            ({"gold": "label"}, ValueError, "gold 'label' is Int64: say which label is positive"),
            (
                {"gold": "label", "positive": "a"},
                pl.exceptions.SchemaError,
                "'a' does not have the dtype of the labels",
            ),
            ({"score": "key"}, pl.exceptions.SchemaError, "score must be a number, but 'key'"),
            ({"score": "scores"}, pl.exceptions.ColumnNotFoundError, "'scores' for score"),
            ({"thresholds": [0.5, 0.1]}, ValueError, "in rising order"),
            ({"thresholds": [math.nan, 1]}, ValueError, "in rising order"),
            ({"thresholds": [math.nan]}, ValueError, "in rising order"),
            ({"thresholds": []}, ValueError, "in rising order"),
            ({"thresholds": 0.5}, ValueError, "in rising order"),
            ({"thresholds": 0}, ValueError, "thresholds must be an integer of at least 1"),
        ]
    },
)
def test_what_cannot_be_cut(verb, options, error, message):
    log = frame_of([]).with_columns(label=pl.lit(1, pl.Int64))
    with pytest.raises(error, match=message):
        ask(log, verb, "key", **{"score": "score", **options})


@in_turn(2, weight=[None, 0, 0.0], thresholds=[None, 2, [0.35, 0.5]])
def test_a_slice_without_scored_rows_has_no_score(run, thresholds, weight):
    """As in `by`. Rows of weight 0 do not count."""
    log = pl.DataFrame({"key": ["x"] * 4 + ["y"] * 2, "gold": [False, True] * 3})
    is_scored = (pl.col("key") == "x") | pl.lit(weight is not None)
    log = log.with_columns(
        score=pl.when(is_scored).then(pl.int_range(6) / 6),
        weight=pl.when(pl.col("key") == "x").then(1).otherwise(pl.lit(weight)),
    )
    about = {"score": "score", "weight": "weight", "thresholds": thresholds}
    metrics = ["mcc", "f1", "accuracy", "tpr"]
    alone = log.filter(pl.col("key") == "y")
    for frame, keys in [(log, ["key"]), (alone, ["key"]), (alone, [])]:
        curve = run(frame, lambda f, keys=keys: ask(f, "curve", *keys, metrics=metrics, **about))
        points = curve.filter(pl.col("n") == 0)
        assert points.height > 0
        assert points.select(metrics).null_count().row(0) == (points.height,) * 4
        if weight is None:
            assert points["threshold"].to_list() == [None]
        best = run(
            frame,
            lambda f, keys=keys: ask(f, "best_threshold", *keys, metric="accuracy", **about),
        )
        nothing = best.filter(pl.col("n") == 0).select("threshold", "accuracy", "loss")
        assert nothing.rows() == [(None, None, None)]


def test_any_metric_of_two_classes_at_every_threshold(run):
    """Compare with `by`, on rows that are predicted with the threshold."""
    rng = np.random.default_rng(3)
    log = pl.DataFrame({"gold": rng.random(80) < 0.3, "score": rng.integers(0, 8, 80), "key": 1})
    names = ["mcc", "accuracy", "kappa", "tpr", "fnr", "tp", "phi_over_max", "mcc_min"]
    answer = run(log, lambda f: ask(f, "curve", "key", score="score", metrics=names))
    for row in answer.iter_rows(named=True):
        cut = log.with_columns(pred=pl.col("score") >= row["threshold"])
        [expected] = cut.mcc.score(metrics=names).to_dicts()
        assert {name: row[name] for name in names} == {name: expected[name] for name in names}
    best = run(log, lambda f: ask(f, "best_threshold", score="score", metric="kappa"))
    assert best["kappa"].item() == answer["kappa"].max()
    assert best.columns[1:6] == [
        *("threshold", "kappa", "shared_threshold", "kappa_shared", "loss")
    ]
    least = run(log, lambda f: ask(f, "best_threshold", score="score", metric="fnr"))
    assert (least["fnr"].item(), least["loss"].item()) == (0.0, 0.0)
    with pytest.raises(ValueError, match="metric 'f1_macro' is not of the counts of two classes"):
        ask(log, "curve", score="score", metrics="f1_macro")


@in_turn(
    metric=["recall", "ppv", "fpr", "f_beta(2)", "cost(fn=10, fp=1)"],
    kept=[{"min": {"ppv": 0.8}}, {"max": {"fpr": 0.1}}, {"min": {"ppv": 0.7, "recall": 0.6}}],
    thresholds=[None, [0.2, 0.4, 0.6, 0.8], 5],
    lazy=[False, True],
)
def test_the_best_threshold_keeps_other_metrics(metric, kept, thresholds, lazy):
    """Against the curve: the best of the thresholds that keep the bounds."""
    rng = np.random.default_rng(7)
    gold = rng.random(300) < 0.4
    score = np.round(np.clip(gold * 0.3 + rng.random(300) * 0.7, 0, 1), 2)
    frame = pl.DataFrame({"key": np.arange(300) % 4, "gold": gold, "score": score})
    log = (frame.lazy() if lazy else frame).mcc(score="score")
    asked = {"metric": metric, "thresholds": thresholds, **kept}
    found = log.best_threshold("key", **asked).lazy().collect()
    name = {"f_beta(2)": "f2"}.get(metric, metric.split("(")[0])
    metrics = [*dict.fromkeys([metric, "ppv", "fpr", "recall"])]
    curve = frame.mcc(score="score").curve("key", metrics=metrics, thresholds=thresholds)
    whole = frame.mcc(score="score").curve(metrics=metrics, thresholds=thresholds)
    conditions = [pl.col(one) >= bound for one, bound in kept.get("min", {}).items()]
    conditions += [pl.col(one) <= bound for one, bound in kept.get("max", {}).items()]
    sign = -1 if metric.startswith(("fpr", "cost")) else 1
    order = [pl.col(name) * sign, "threshold"]
    [shared] = whole.filter(conditions).sort(order)["threshold"].tail(1).to_list() or [None]
    named = [*dict.fromkeys([name, *kept.get("min", {}), *kept.get("max", {})])]
    words = " and ".join(
        f"{one} {sign} {bound}"
        for of, sign in (("min", "≥"), ("max", "≤"))
        for one, bound in kept.get(of, {}).items()
    )
    assert [*found.columns] == [
        *("key", "n", "threshold", *named),
        *("shared_threshold", *(f"{one}_shared" for one in named), "loss", "verdict", "n_null"),
    ]
    for row in found.to_dicts():
        points = curve.filter(pl.col("key") == row["key"])
        left = points.filter(conditions).sort(order).tail(1)
        best = (
            left.select("threshold", *named).row(0) if left.height else (None,) * (1 + len(named))
        )
        assert tuple(row[one] for one in ("threshold", *named)) == best
        assert row["shared_threshold"] == shared
        if not left.height:
            verdict = f"no threshold keeps {words}"
        elif shared is None:
            verdict = f"no shared threshold keeps {words}"
        else:
            at_shared = points.filter(pl.col("threshold") == shared)
            if thresholds:  # Else the slice may have no row with this score.
                assert tuple(row[f"{one}_shared"] for one in named) == at_shared.select(named).row(
                    0
                )
            rows = frame.filter(pl.col("key") == row["key"])
            at_shared = rows.mcc(score="score").curve(metrics=metrics, thresholds=[shared])
            are_kept = at_shared.filter(conditions).height
            verdict = "kept" if are_kept else f"the shared threshold does not keep {words}"
        assert row["verdict"] == verdict


def test_no_threshold_may_keep_a_metric():
    log = pl.DataFrame({"gold": [0, 1, 0], "score": [1, 2, 3]}).mcc(score="score", positive=1)
    answer = log.best_threshold(min={"ppv": 0.9}).drop("n", "n_null").row(0, named=True)
    assert answer.pop("verdict") == "no threshold keeps ppv ≥ 0.9"
    assert {*answer.values()} == {None}
    with pytest.raises(ValueError, match="min says which metric to keep, as in min={'ppv': 0.9}"):
        log.best_threshold(min=0.9)
    with pytest.raises(ValueError, match="min=9 is outside the range of ppv"):
        log.best_threshold(min={"ppv": 9})
    with pytest.raises(ValueError, match="'f1_macro' is not of the counts of two classes"):
        log.best_threshold(max={"f1_macro": 0.9})


def test_the_verdict_says_which_threshold_keeps_the_conditions():
    """The shared threshold is 0.8, above which `miss` and `none` have a negative row."""
    rows = {
        "kept": [(True, 0.9), *[(False, 0.1)] * 5],
        "miss": [(True, 0.95), (True, 0.9), (False, 0.85), (False, 0.2)],
        "none": [(False, 0.9), (True, 0.3)],
        "one class": [(True, 0.9), (True, 0.4)],
        "no rows": [(None, 0.9)],
    }
    of_many = [("kept", True, 0.8)] * 8 + [(key, *row) for key in rows for row in rows[key]]
    frame = pl.DataFrame(of_many, schema=["key", "gold", "score"], orient="row")
    asked = {"min": {"ppv": 0.8}, "max": {"fpr": 0.4}, "thresholds": [0.8, 0.9, 0.95]}
    found = frame.mcc(score="score").best_threshold("key", **asked)
    words = "ppv ≥ 0.8 and fpr ≤ 0.4"
    assert found["shared_threshold"].drop_nulls().unique().to_list() == [0.8]
    assert dict(found.select("key", "verdict").iter_rows()) == {
        "kept": "kept",
        "miss": f"the shared threshold does not keep {words}",
        "no rows": "not judged",
        "none": f"no threshold keeps {words}",
        "one class": "not judged",
    }
    strict = frame.mcc(score="score").best_threshold("key", max={"fpr": 0}, thresholds=[0.8])
    assert strict["verdict"][0] == "no shared threshold keeps fpr ≤ 0"
    assert "verdict" not in frame.mcc(score="score").best_threshold("key").columns

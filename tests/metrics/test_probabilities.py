"""Metrics of scores: against fractions of all pairs, scikit-learn, and what must not matter."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import oracles_of_scores as oracles
import polars as pl
import pytest
import sklearn.metrics
from hypothesis import assume, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from support import ask, first, in_turn

import polars_mcc
from polars_mcc import CheckError, each, trailing

FAMILY = polars_mcc.metrics().filter(pl.col("from") == "scores")
NAMES = FAMILY["metric"].to_list()
OF_ORDER = ["roc_auc", "average_precision", "roc_auc_ties"]
OF_ORDER += ["roc_auc_weighted", "roc_auc_ovo", "average_precision_weighted"]
OF_GROUPS = ["brier_resolution", "brier_uncertainty"]
"""Metrics of equal scores: the scores need an order no more than a range."""
OF_PROBABILITIES = [name for name in NAMES if name not in OF_ORDER + OF_GROUPS]
SCIKIT_LEARN = {
    "roc_auc": sklearn.metrics.roc_auc_score,
    "average_precision": sklearn.metrics.average_precision_score,
    "brier": sklearn.metrics.brier_score_loss,
    "log_loss": lambda *sides, **options: sklearn.metrics.log_loss(
        *sides, labels=[False, True], **options
    ),
}
SCHEMA = {"gold": pl.Boolean, "p": pl.Float64, "w": pl.Float64}

# Few scores, so that there are ties; and scores that differ in the last bit, or are 0 or 1.
scores = st.one_of(
    st.sampled_from([0.0, -0.0, 0.25, 0.5, math.nextafter(0.5, 1), 0.75, 1.0]), st.floats(0, 1)
)
some_rows = st.lists(st.tuples(st.booleans(), scores), min_size=1, max_size=30)
lists_of_rows = st.lists(some_rows, min_size=1, max_size=15)


def close(name: str, expected: Fraction | float | None):
    """A float near the value of an oracle; a root is as near as its square."""
    if expected is None:
        return None
    if name == "calibration_error":
        return _Root(float(expected))
    return pytest.approx(float(expected), rel=1e-12, abs=1e-14)


def assert_close(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    """All is near, and of a root its square."""
    square = pl.col("^calibration_error$").pow(2)
    frames = (found.with_columns(square), expected.with_columns(square))
    assert_frame_equal(*frames, rel_tol=1e-12, abs_tol=1e-14)


def near(value: float | None):
    return None if value is None else pytest.approx(value, rel=1e-12, abs=1e-14)


class _Root:
    def __init__(self, value: float) -> None:
        self.square = value**2

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and other**2 == pytest.approx(self.square, abs=1e-14)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"√{self.square}"


def test_the_oracles_are_all_metrics_of_scores():
    assert sorted(oracles.FAMILY) == sorted(NAMES)


@pytest.fixture(scope="module")
def log() -> pl.DataFrame:
    """Slices of 0 to 40 rows: few scores or many, one class or two, missing scores and golds."""
    rng = np.random.default_rng(11)
    frames = []
    for key in range(60):
        n = int(rng.integers(0, 12 if key % 2 else 41)) + 1
        many = rng.random(n) ** 2
        p = many if key % 3 == 0 else many.round(1)
        p = np.where(rng.random(n) < 0.1, rng.choice([0.0, -0.0, 1.0, math.nan], n), p)
        other = np.where(rng.random(n) < 0.5, p, rng.random(n).round(2))
        rate = [0.5, 0.1, 0.9, 0.0, 1.0][key % 5]
        columns = {"p": p, "other": other, "gold": rng.random(n) < rate}
        counted = {"n": rng.integers(0, 4, n), "w": rng.exponential(size=n)}
        columns |= counted | {"odd": rng.integers(0, 3, n), "is_null": rng.random(n) < 0.1}
        frames.append(pl.DataFrame(columns).with_columns(key=pl.lit(key)))
    log = pl.concat(frames)
    return log.with_columns(
        p=pl.when(pl.col("is_null") & (pl.col("odd") == 1)).then(None).otherwise("p"),
        gold=pl.when(pl.col("is_null") & (pl.col("odd") == 2)).then(None).otherwise("gold"),
        day=pl.date(2026, 1, 1) + pl.duration(days=pl.col("key") % 7),
    )


def rows_of(log: pl.DataFrame, score: str = "p", weight: str | None = None) -> list[oracles.Row]:
    known = log.filter(pl.col("gold").is_not_null() & pl.col(score).is_not_nan())
    weights = [1] * known.height if weight is None else known[weight].to_list()
    return list(zip(known["gold"], known[score], weights, strict=True))


def expected_of(rows: list[oracles.Row], names=NAMES, *, is_sample=False) -> dict[str, object]:
    if not sum(weight for *_, weight in rows):
        return dict.fromkeys(names)
    options = {"calibration_error": {"is_sample": is_sample}}
    return {
        name: close(name, oracles.FAMILY[name](rows, **options.get(name, {}))) for name in names
    }


@in_turn(2, portable=[False, True], role=[None, "weight n", "weight w", "sample_weight w"])
def test_slices_by_their_definitions(run, log, role, portable):
    kind, _, column = (role or "").partition(" ")
    options = {kind: column} if role else {}
    answer = run(
        log, lambda f: f.mcc(score="p", portable=portable, **options).by("key", metrics=NAMES)
    )
    assert answer.columns == ["key", "n", *NAMES, "n_null"]
    assert answer["key"].to_list() == [*range(60)]
    for found in answer.to_dicts():
        part = log.filter(key=found["key"])
        rows = rows_of(part, weight=column or None)
        n = math.fsum(weight for *_, weight in rows)
        total = part[column].sum() if column else part.height
        assert found["n"] == pytest.approx(n, rel=1e-14, abs=0)
        assert found["n_null"] == pytest.approx(total - n, rel=1e-12, abs=1e-12)
        expected = expected_of(rows, is_sample=kind == "sample_weight")
        assert {name: found[name] for name in NAMES} == expected, found["key"]


@pytest.mark.parametrize("role", first(1, ["weight", "sample_weight", None]))
def test_slices_as_scikit_learn(log, role):
    options = {role: "w"} if role else {}
    answer = log.mcc(score="p", **options).by("key", metrics=[*SCIKIT_LEARN])
    compared = 0
    for found in answer.to_dicts():
        rows = rows_of(log.filter(key=found["key"]), weight="w" if role else None)
        gold, score, weights = map(np.array, zip(*rows, strict=True))
        for name, peer in SCIKIT_LEARN.items():
            if name in OF_ORDER and not 0 < gold.sum() < len(gold):
                continue
            expected = peer(gold, score, sample_weight=weights)
            assert found[name] == pytest.approx(expected, rel=1e-12, abs=1e-15), name
            compared += 1
    assert compared > 160


@given(lists_of_rows)
def test_any_rows_by_their_definitions(lists):
    """The lists are slices of one log, as one query takes as long for one as for many."""
    log = pl.concat(
        pl.DataFrame([(*row, 1.0) for row in rows], SCHEMA, orient="row").with_columns(key=key)
        for key, rows in enumerate(lists)
    )
    for found in log.mcc(score="p").by("key", metrics=NAMES).to_dicts():
        rows = [(*row, 1) for row in lists[found["key"]]]
        assert {name: found[name] for name in NAMES} == expected_of(rows)
        parts = [found[f"brier_{part}"] for part in ("reliability", "uncertainty", "resolution")]
        brier = parts[0] + parts[1] - parts[2]
        assert found["brier"] == pytest.approx(brier, rel=1e-12, abs=1e-14)


def of_rows(rows, metrics=NAMES, score=lambda p: p, **options) -> dict:
    """The metrics of rows (is positive, score), or (is positive, score, weight)."""
    columns = zip(*rows, strict=True)
    named = dict(zip(("gold", "p", "w"), columns, strict=False))
    log = pl.DataFrame(named).with_columns(p=score(pl.col("p")))
    return ask(log, "score", score="p", metrics=metrics, **options).to_dicts()[0]


@given(some_rows)
def test_scores_that_are_moved_or_turned_round(rows):
    """Only the order matters to an area, and only the levels to resolution and uncertainty.

    The area of -score is 1 minus the area. The area of the other class is the same number.
    """
    assume(len({p for _, p in rows}) == len({math.exp(p) for _, p in rows}))
    assume(len({p for _, p in rows}) == len({p * 8 - 3 for _, p in rows}))
    found, names = of_rows(rows), [*OF_ORDER, "brier_resolution", "brier_uncertainty"]
    for move in (pl.Expr.exp, pl.Expr.rank, lambda p: p * 8 - 3, lambda p: p * 2.0**900):
        moved = of_rows(rows, names, score=move)
        assert moved["roc_auc"] == found["roc_auc"]
        assert moved["roc_auc_ties"] == found["roc_auc_ties"]
        assert [moved[name] for name in names] == [near(found[name]) for name in names]
    negated = of_rows(rows, OF_ORDER, score=lambda p: -p)
    others = of_rows([(not gold, p) for gold, p in rows], OF_ORDER)
    assert others["roc_auc"] == negated["roc_auc"]
    assert found["roc_auc_ties"] == negated["roc_auc_ties"] == others["roc_auc_ties"]
    if found["roc_auc"] is None:
        assert negated["roc_auc"] is None
        return
    assert negated["roc_auc"] == pytest.approx(1 - found["roc_auc"], abs=1e-15)
    both = of_rows([(not gold, 1 - p) for gold, p in rows], ["brier", "brier_uncertainty"])
    assert both["brier"] == pytest.approx(found["brier"], abs=1e-15)
    assert both["brier_uncertainty"] == found["brier_uncertainty"]


@pytest.mark.slow
@given(some_rows, st.integers(2, 5))
def test_rows_that_are_repeated_are_weights(rows, times):
    repeated, weighted = of_rows(rows * times), of_rows([(*row, times) for row in rows], weight="w")
    assert repeated == weighted
    once = of_rows(rows)
    weighed = of_rows([(*row, times / 4) for row in rows], sample_weight="w")
    for name in NAMES:
        is_root = name == "calibration_error"  # The more rows, the less chance adds to it.
        assert once[name] == (close(name, weighed[name]) if is_root else near(weighed[name])), name
        assert is_root or once[name] == near(repeated[name]), name


@given(st.lists(st.booleans(), min_size=1, max_size=20), scores)
def test_one_score_for_all(golds, p):
    """The area is a half; the Brier score is that of a constant; nothing resolves."""
    found = of_rows([(gold, p) for gold in golds])
    rate = Fraction(sum(golds), len(golds))
    is_both = 0 < rate < 1
    assert found["roc_auc"] == (0.5 if is_both else None)
    assert found["roc_auc_ties"] == (1.0 if is_both else None)
    assert found["average_precision"] == near(float(rate) if rate else None)
    off = (Fraction(p) - rate) ** 2
    assert found["brier"] == close("brier", off + rate * (1 - rate))
    assert found["brier_reliability"] == close("", off)
    assert found["brier_resolution"] == close("", Fraction(0))
    assert found["brier_uncertainty"] == close("", rate * (1 - rate))
    assert found["ece"] == close("", abs(Fraction(p) - rate))


# Dtypes, and scores that are odd.


@pytest.mark.parametrize(
    "dtype",
    [pl.Float32, pl.Float64, pl.Decimal(10, 2), pl.Int8, pl.UInt64, pl.Int64, pl.Int128],
)
def test_scores_of_each_dtype(run, log, dtype):
    """A score counts as the float that it is: a Float32 is one of 24 bits.

    Log losses of Float32 are clipped elsewhere: see
    `test_a_log_loss_clips_scores_at_the_epsilon_of_their_dtype`.
    """
    names = [name for name in NAMES if name != "log_loss" or dtype != pl.Float32]
    of_dtype = log.with_columns(pl.col("p").fill_nan(None).round(1).cast(dtype))
    answer = run(of_dtype, lambda f: f.mcc(score="p").by("key", metrics=names))
    as_float = of_dtype.with_columns(pl.col("p").cast(pl.Float64))
    expected = as_float.mcc(score="p").by("key", metrics=names)
    assert_close(answer, expected)
    for found in answer.head(10).to_dicts():
        rows = rows_of(as_float.filter(key=found["key"]).drop_nulls("p"))
        assert {name: found[name] for name in names} == expected_of(rows, names)


@pytest.mark.parametrize("ci", [None, 0.9])
def test_whole_numbers_that_are_one_float_are_two_scores(ci):
    log = pl.DataFrame({"gold": [True, False, True, False], "p": [2**53, 2**53, 2**53 + 1, 0]})
    found = log.mcc(score="p").score(metrics=["roc_auc", "average_precision"], ci=ci)
    few = log.with_columns(p=pl.col("p").rank("dense"))
    expected = few.mcc(score="p").score(metrics=["roc_auc", "average_precision"], ci=ci)
    assert found["roc_auc"].item() == 0.875
    assert_frame_equal(found, expected, check_exact=True)


def test_zeros_are_one_score(run):
    log = pl.DataFrame({"gold": [True, False, True, False], "p": [-0.0, 0.0, 0.0, -0.0]})
    names = ["roc_auc", "roc_auc_ties", "brier", "log_loss", "brier_reliability"]
    found = run(log, lambda f: f.mcc(score="p").score(metrics=names, ci=0.9))
    half_lost = -(math.log(2.0**-52) + math.log(1 - 2.0**-52)) / 2
    assert found.select(names).row(0) == (0.5, 1.0, 0.5, pytest.approx(half_lost, rel=1e-14), 0.25)
    assert found["roc_auc_se"].item() is None


def test_infinite_scores_have_an_order(run):
    p = [math.inf, math.inf, 1e308, -math.inf, -math.inf, 5e-324, math.nan]
    log = pl.DataFrame({"gold": [True, False, True, False, True, False, True], "p": p})
    found = run(log, lambda f: f.mcc(score="p").score(metrics=OF_ORDER, ci=0.9))
    rows = [(gold, score, 1) for gold, score in log.rows() if not math.isnan(score)]
    assert {name: found[name].item() for name in OF_ORDER} == expected_of(rows, OF_ORDER)
    assert (found["n"].item(), found["n_null"].item()) == (6, 1)
    gold, score = (np.array(side) for side in list(zip(*rows, strict=True))[:2])
    # Not by differences: infinities minus infinities are NaN.
    _, covariance = oracles.delong(gold, [score])
    expected = math.sqrt(covariance[0, 0])
    assert found["roc_auc_se"].item() == pytest.approx(expected, rel=1e-12)


@in_turn(ci=[None, 0.9], wrong=[-0.25, 1.5, math.inf, -math.inf, 50.0], name=OF_PROBABILITIES)
def test_scores_that_are_no_probabilities(name, wrong, ci):
    log = pl.LazyFrame({"gold": [True, False, True], "p": [0.5, 0.25, wrong]})
    query = log.mcc(score="p").score(metrics=name, ci=ci)
    message = rf"the score {wrong} of 'p' is not between 0 and 1, as a probability is; .*'roc_auc'"
    with pytest.raises(pl.exceptions.InvalidOperationError, match=message):
        query.collect()
    with pytest.raises(pl.exceptions.InvalidOperationError, match=f"^{message}"):
        log.collect().mcc(score="p").score(metrics=name, ci=ci)
    of_order = log.mcc(score="p").score(metrics=OF_ORDER + OF_GROUPS, ci=ci).collect()
    assert of_order["roc_auc"].item() == (0.5 if wrong < 0.25 else 1.0)
    assert of_order["brier_resolution"].item() == pytest.approx(2 / 9, rel=1e-15)


def test_what_is_not_scored_may_be_no_probability(log):
    """A score of a row without a gold label, or without a weight, does not count."""
    more = log.head(2).with_columns(p=7.0, gold=pl.Series([None, True]), n=pl.lit(0, pl.Int64))
    both = pl.concat([log, more])
    found = both.mcc(score="p", weight="n").by("key", metrics=NAMES, ci=0.9)
    expected = log.mcc(score="p", weight="n").by("key", metrics=NAMES, ci=0.9)
    assert_close(found, expected)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_a_log_loss_is_not_infinite(p):
    """Scores are cut at 2^-52, as in scikit-learn."""
    found = of_rows([(p == 0, p)], ["log_loss"])["log_loss"]
    assert found == pytest.approx(52 * math.log(2), rel=1e-15)
    right = of_rows([(p == 1, p)], ["log_loss"])["log_loss"]
    assert right == pytest.approx(2.0**-52, rel=1e-12)
    assert found == sklearn.metrics.log_loss([p == 0], [p], labels=[False, True])


# Few rows.


def test_no_rows(run):
    empty = pl.DataFrame(schema={**SCHEMA, "key": pl.Int64})
    nothing = run(empty, lambda f: f.mcc(score="p").score(metrics=NAMES))
    assert nothing.row(0) == (0, *[None] * len(NAMES), 0)
    assert run(empty, lambda f: f.mcc(score="p").by("key", metrics=NAMES, ci=0.9)).height == 0
    sure = run(empty, lambda f: f.mcc(score="p").score(metrics=NAMES, ci=0.9))
    assert {*sure.drop("n", "n_null").row(0)} == {None}
    only_nulls = empty.vstack(pl.DataFrame([(True, None, 1.0, 1)], empty.schema, orient="row"))
    found = run(only_nulls, lambda f: f.mcc(score="p").score(metrics=NAMES))
    assert found.row(0) == (0, *[None] * len(NAMES), 1)


@in_turn(gold=[True, False], ci=[None, 0.9])
def test_one_row(run, gold, ci):
    log = pl.DataFrame({"gold": [gold], "p": [0.75]})
    found = run(log, lambda f: f.mcc(score="p").score(metrics=NAMES, ci=ci))
    off = 0.25 if gold else 0.75
    assert found.select(NAMES).row(0, named=True) == {
        "roc_auc": None,
        "average_precision": 1.0 if gold else None,
        "brier": off**2,
        "log_loss": pytest.approx(-math.log(1 - off), rel=1e-15),
        "calibration_error": None,
        "ece": off,
        "brier_reliability": off**2,
        "brier_resolution": 0.0,
        "brier_uncertainty": 0.0,
        "roc_auc_ties": None,
        "roc_auc_weighted": None,
        "roc_auc_ovo": None,
        "average_precision_weighted": 1.0 if gold else None,
    }


def test_a_bin_of_one_row_is_no_calibration():
    """Ten rows are ten bins, and say nothing about chance: a gate cannot judge them."""
    log = pl.DataFrame({"gold": [True, False] * 5, "p": [0.01 * place for place in range(10)]})
    assert log.mcc(score="p").score(metrics="calibration_error").row(0) == (10, None, 0)
    with pytest.raises(CheckError, match="no slice can be judged by calibration_error"):
        log.mcc(score="p").check(max={"calibration_error": 0.5, "brier": 1}, min_n=1)
    twice = pl.concat([log, log.with_columns(gold=True)]).mcc(score="p")
    assert twice.score(metrics="calibration_error")["calibration_error"].item() > 0.5


@pytest.mark.parametrize("gold", [True, False])
def test_one_class_has_no_area(run, gold):
    log = pl.DataFrame({"gold": [gold] * 4, "p": [0.1, 0.2, 0.2, 0.9]})
    found = run(log, lambda f: f.mcc(score="p").score(metrics=OF_ORDER, ci=0.9))
    [row] = found.to_dicts()
    assert (row["roc_auc"], row["roc_auc_ties"]) == (None, None)
    assert row["average_precision"] == (1.0 if gold else None)
    assert {row[f"roc_auc_{end}"] for end in ("se", "low", "high")} == {None}


# Sets, windows, models, positive classes, and labels in the same call.


def test_sets_and_windows_are_as_each_alone(run, log):
    keys = each("key", "odd", total=True)
    answer = run(log, lambda f: f.mcc(score="p", weight="n").by(keys, metrics=NAMES))
    for alone in ("key", "odd"):
        expected = log.mcc(score="p", weight="n").by(alone, metrics=NAMES)
        found = answer.filter(keys=alone).select(expected.columns)
        assert_close(found, expected)
    total = log.mcc(score="p", weight="n").score(metrics=NAMES)
    found = answer.filter(keys="").select(total.columns)
    assert_close(found, total)
    days = run(log, lambda f: f.mcc(score="p").by(trailing("day", "3d", every="1d"), metrics=NAMES))
    for found in days.to_dicts()[::3]:  # the first and the last are among them
        age = pl.lit(found["day"]) - pl.col("day")
        part = log.filter(age.is_between(pl.duration(), pl.duration(days=2)))
        assert {name: found[name] for name in NAMES} == expected_of(rows_of(part))
    assert days.height >= 7


def test_models_are_as_each_alone(run, log):
    names = ["other", "p"]
    answer = run(log, lambda f: f.mcc(score=names).by("key", metrics=NAMES, ci=0.9))
    for model in names:
        expected = log.mcc(score=model).by("key", metrics=NAMES, ci=0.9)
        found = answer.filter(model=model).drop("model")
        assert_close(found, expected)
    assert answer["model"].unique(maintain_order=True).to_list() == names


def test_models_of_several_dtypes(log):
    both = log.select(
        "key", "gold", "p", tenths=pl.col("p").fill_nan(None).round(1).cast(pl.Decimal(4, 1))
    )
    answer = both.mcc(score=["p", "tenths"]).by("key", metrics=OF_ORDER)
    for model in ("p", "tenths"):
        expected = both.mcc(score=model).by("key", metrics=OF_ORDER)
        found = answer.filter(model=model).drop("model")
        assert_close(found, expected)


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        (pl.Series(["fine", "fraud"]), "fraud"),
        (pl.Series(["fine", "fraud"], dtype=pl.Categorical), "fraud"),
        (pl.Series([7, 3], dtype=pl.UInt8), 3),
        (pl.Series([True, False]), False),
    ],
)
def test_a_positive_class_of_any_dtype(run, log, labels, positive):
    named = pl.when("gold").then(pl.lit(labels[1])).when(~pl.col("gold")).then(pl.lit(labels[0]))
    told = log.with_columns(gold=named.cast(labels.dtype))
    answer = run(told, lambda f: f.mcc(score="p", positive=positive).by("key", metrics=NAMES))
    assert_close(answer, log.mcc(score="p").by("key", metrics=NAMES))


def test_three_gold_classes_are_one_against_the_rest():
    gold = ["a", "b", "c", "a", "c", None]
    log = pl.DataFrame({"gold": gold, "p": [0.9, 0.4, 0.3, 0.2, 0.95, 0.5]})
    found = log.mcc(score="p", positive="a").score(metrics=NAMES)
    known = log.drop_nulls().with_columns(pl.col("gold") == "a")
    assert_frame_equal(
        found.drop("n_null"), known.mcc(score="p").score(metrics=NAMES).drop("n_null")
    )
    assert found["n_null"].item() == 1


@in_turn(models=[1, 2], ci=[None, 0.9])
def test_labels_and_scores_in_one_call(run, log, ci, models):
    """A row is scored if it has both: as in a log of the rows that have both."""
    cuts = {"cut_p": pl.col("p") >= 0.3, "cut_other": pl.col("other") >= 0.6}
    cut = log.with_columns(
        pl.when(pl.col("odd") != 0).then(value).alias(name) for name, value in cuts.items()
    )
    pred, score = [*cuts][:models], ["p", "other"][:models]
    names = ["roc_auc", "f1", "mcc", "brier"]
    both = {"pred": pred, "score": score, "positive": True}
    answer = run(cut, lambda f: f.mcc(**both).by("key", metrics=names, ci=ci))
    assert [name for name in answer.columns if name in names] == names
    if models == 2:
        assert {*answer["model"]} == {*pred}
    for label, of_score in zip(pred, score, strict=True):
        is_there = pl.col(label).is_not_null() & pl.col(of_score).is_not_nan()
        known = cut.with_columns(pl.when(is_there).then(label).alias(label)).with_columns(
            pl.when(is_there).then(of_score).alias(of_score)
        )
        of_model = answer.filter(model=label).drop("model") if models == 2 else answer
        for part, of_one in ((names[1:3], {"pred": label}), (names[::3], {"score": of_score})):
            alone = known.mcc(positive=True, **of_one).by("key", metrics=part, ci=ci)
            assert_frame_equal(of_model.select(alone.columns), alone, rel_tol=1e-12, abs_tol=1e-15)


# Exact sums.


@pytest.mark.parametrize(("n", "kind"), [(3_000, "sample_weight"), pytest.param(50_000, "weight")])
def test_an_area_of_many_weights_is_rounded_once(n, kind):
    """The sums over many scores need more than 128 bits: a limb carries into the next."""
    rng = np.random.default_rng(4)
    log = pl.DataFrame({"gold": rng.random(n) < 0.4, "p": rng.random(n), "w": rng.random(n)})
    whole = log.with_columns((pl.col("w") * 2.0**53).cast(pl.Int128)).sort("p")
    below, in_order = 0, 0
    for gold, _, w in whole.iter_rows():
        if gold:
            in_order += w * below
        else:
            below += w
    pairs = below * sum(whole.filter("gold")["w"].to_list())
    found = ask(log, "score", score="p", metrics="roc_auc", **{kind: "w"})["roc_auc"].item()
    assert found == pytest.approx(float(Fraction(in_order, pairs)), rel=3e-16, abs=0)


def test_an_area_of_large_counts_is_rounded_once():
    rng = np.random.default_rng(3)
    for most in (2**31, 2**56):
        counts = rng.integers(0, most, 100).tolist()
        rows = [(bool(i % 2), int(i**2 % 37) / 37, w) for i, w in enumerate(counts)]
        found = of_rows(rows, ["roc_auc", "roc_auc_ties"], weight="w")
        for name in ("roc_auc", "roc_auc_ties"):
            expected = float(oracles.FAMILY[name](rows))
            assert found[name] == pytest.approx(expected, rel=4e-16, abs=0)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_does_not_matter(run, log, seed):
    shuffled = log.sample(fraction=1, shuffle=True, seed=seed)
    answer = run(shuffled, lambda f: f.mcc(score="p", weight="n").by("key", metrics=NAMES, ci=0.9))
    expected = log.mcc(score="p", weight="n").by("key", metrics=NAMES, ci=0.9)
    assert_close(answer, expected)


# Errors, and the registry.


@pytest.mark.parametrize(
    ("options", "metrics", "message"),
    [
        ({"pred": "cut"}, "roc_auc", r"this log has no score: .* frame.mcc\(score='probability'\)"),
        ({"score": "p"}, ["roc_auc", "mcc"], "this log has scores and no predicted labels"),
        ({"pred": "cut", "score": ["p", "other"]}, ["mcc", "brier"], "need a score for each pred"),
        (
            {"pred": "cut", "score": "p", "nulls": "label"},
            ["mcc", "brier"],
            "a row is scored by labels and by scores if it has both",
        ),
    ],
)
def test_errors(log, options, metrics, message):
    cut = log.with_columns(cut=pl.col("p") >= 0.5)
    with pytest.raises(ValueError, match=message):
        cut.mcc(**options).by("key", metrics=metrics)


def test_a_label_must_be_positive():
    log = pl.DataFrame({"gold": ["a", "b"], "p": [0.5, 0.6]})
    with pytest.raises(ValueError, match="say which label is positive"):
        log.mcc(score="p").score(metrics="roc_auc")


def test_a_threshold_has_no_metric_of_scores(log):
    for verb in ("curve", "best_threshold"):
        with pytest.raises(ValueError, match="'roc_auc' is not of the counts of two classes"):
            ask(log, verb, score="p", **{"metrics" if verb == "curve" else "metric": "roc_auc"})


def test_the_registry_says_which_are_sure():
    sure = FAMILY.filter(no_interval="")["metric"].to_list()
    assert sure == ["roc_auc", "average_precision", "brier", "log_loss"]
    assert not FAMILY["multilabel"].any()


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32, pl.Float16])
def test_a_log_loss_clips_scores_at_the_epsilon_of_their_dtype(dtype):
    """As scikit-learn does; and all answers are those of scores that are clipped already."""
    rng, kind = np.random.default_rng(2), np.dtype(str(dtype).lower()).type
    gold = rng.random(300) < 0.5
    p = rng.normal(np.where(gold, 0.7, 0.3), 0.4).clip(0, 1).astype(kind)
    assert {0.0, 1.0} < {*p.tolist()}
    frame = pl.DataFrame(
        {"gold": gold, "k": rng.integers(0, 3, 300), "p": pl.Series(p, dtype=dtype)}
    )
    frame = frame.with_columns(other=pl.col("p").reverse())
    epsilon = float(np.finfo(kind).eps)

    def loss(is_positive: bool, score: float) -> float:
        score = min(max(score, epsilon), 1 - epsilon)
        return -math.log(score if is_positive else 1 - score)

    expected = sum(map(loss, gold.tolist(), p.tolist())) / 300
    found = frame.mcc(score="p").score(metrics="log_loss")["log_loss"].item()
    assert found == pytest.approx(expected, rel=1e-12)
    of_peer = sklearn.metrics.log_loss(gold, p, labels=[False, True])  # its sums are of this dtype
    assert found == pytest.approx(of_peer, rel=100 * epsilon)

    clipped = frame.with_columns(pl.col("p", "other").cast(pl.Float64).clip(epsilon, 1 - epsilon))
    asked = {
        "by": lambda log: log.by("k", metrics="log_loss", ci=0.95),
        "contrast": lambda log: log.contrast("k", metrics="log_loss"),
        "worst": lambda log: log.worst("k", metric="log_loss", verdicts=True),
    }
    for ask_ in asked.values():
        answers = (ask_(log.mcc(score="p")) for log in (frame, clipped))
        assert_frame_equal(*answers, rel_tol=1e-12, abs_tol=1e-14)
    both = (log.mcc(score=["p", "other"]).compare(metrics="log_loss") for log in (frame, clipped))
    assert_frame_equal(*both, rel_tol=1e-12, abs_tol=1e-14)
    resampled = (
        log.mcc(score="p").score(
            metrics="log_loss", ci=0.9, method=polars_mcc.Bootstrap(replicates=50, seed=1)
        )
        for log in (frame, clipped)
    )
    assert_frame_equal(*resampled, rel_tol=1e-12, abs_tol=1e-14)


def test_a_log_loss_clips_all_models_at_the_largest_epsilon_and_each_class_too():
    frame = pl.DataFrame({"gold": [True, False, True], "p": [0.0, 0.25, 1.0]})
    frame = frame.with_columns(single=pl.col("p").cast(pl.Float32))
    found = frame.mcc(score=["p", "single"]).score(metrics="log_loss")
    expected = (-math.log(2**-23) - math.log(0.75) - math.log1p(-(2**-23))) / 3
    assert found["log_loss"].to_list() == pytest.approx([expected, expected], rel=1e-12)
    classes = pl.DataFrame({"gold": ["a", "b"], "a": [0.0, 0.5], "b": [1.0, 0.5]})
    for dtype, epsilon in ((pl.Float64, 2**-52), (pl.Float32, 2**-23)):
        log = classes.cast({"a": dtype, "b": dtype}).mcc(score={"a": "a", "b": "b"})
        expected = (-math.log(epsilon) - math.log(0.5)) / 2
        for ci in (None, 0.9):
            found = log.score(metrics="log_loss", ci=ci)["log_loss"].item()
            assert found == pytest.approx(expected, rel=1e-12)

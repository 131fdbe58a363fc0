"""A score per class: scikit-learn on each slice gives the same numbers."""

from __future__ import annotations

import math
from datetime import date
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sklearn.metrics import (
    average_precision_score,
    log_loss,
    roc_auc_score,
    top_k_accuracy_score,
)
from support import in_turn

from polars_mcc import each, trailing

LABELS = ["cat", "dog", "eel"]
SCORES = {label: f"p_{label}" for label in LABELS}
METRICS = ["roc_auc", "average_precision", "brier", "log_loss"]


@pytest.fixture(scope="module")
def animals() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    n = 600
    gold = rng.integers(0, 3, n)
    odds = np.exp(rng.normal(size=(n, 3)) + 1.2 * np.eye(3)[gold])
    share = (odds / odds.sum(1, keepdims=True)).round(2)
    columns = dict(zip(SCORES.values(), share.T, strict=True))
    return pl.DataFrame(
        {"gold": [LABELS[code] for code in gold], "key": rng.choice(["x", "y"], n), **columns}
    )


def expected(rows: pl.DataFrame) -> dict[str, float]:
    scores = rows.select(SCORES.values()).to_numpy()
    gold = np.array([LABELS.index(label) for label in rows["gold"]])
    is_gold = np.eye(3)[gold]
    # scikit-learn's log loss wants rows that add up to 1, so its definition is written out.
    of_gold = scores[np.arange(len(gold)), gold].clip(2**-52, 1 - 2**-52)
    each = [roc_auc_score(is_gold[:, k], scores[:, k]) for k in range(3)]
    return {
        "roc_auc": float(np.mean(each)),
        "average_precision": average_precision_score(is_gold, scores, average="macro"),
        "brier": float(((scores - is_gold) ** 2).sum(1).mean() / 2),
        "log_loss": float(-np.log(of_gold).mean()),
    }


@pytest.mark.parametrize("lazy", [False, True])
def test_each_slice_has_the_means_of_scikit_learn(animals, lazy):
    frame = animals.lazy() if lazy else animals
    found = frame.mcc(score=SCORES).by("key", metrics=METRICS).lazy().collect()
    assert found["key"].to_list() == ["x", "y"]
    for row in found.iter_rows(named=True):
        rows = animals.filter(key=row["key"])
        assert (row["n"], row["n_null"]) == (rows.height, 0)
        want = expected(rows)
        assert {name: row[name] for name in METRICS} == pytest.approx(want, rel=1e-12)


FEW = {"a": [0.7, 0.4], "b": [0.2, 0.5], "c": [0.1, 0.1]}  # gold is a, then b
ASKED = {
    "score": lambda log, metric: log.score(metrics=metric)[metric].to_list(),
    "ci": lambda log, metric: log.score(metrics=metric, ci=0.9)[metric].to_list(),
    "by": lambda log, metric: log.by("one", metrics=metric)[metric].to_list(),
    "check": lambda log, metric: log.check("one", metric=metric, max=1)[metric].to_list(),
    "contrast": lambda log, metric: log.contrast("gold", metrics=metric, to="total")["score"],
}


@in_turn(
    dtype=[
        *(pl.Float64, pl.Float32, pl.Float16),
        *(pl.Decimal(2, 1), pl.Decimal(6, 3), pl.Decimal(38, 20)),
    ],
    ask=ASKED,
)
def test_losses_of_scores_of_any_dtype_are_those_of_their_values(dtype, ask):
    """Summed in fractions: a loss has more digits than a Decimal(2, 1) or a Float16."""
    few = pl.DataFrame(FEW, schema=dict.fromkeys(FEW, pl.Float64)).cast(dtype)
    values = [[Fraction(score) for score in row] for row in few.rows()]
    gold = [[1, 0, 0], [0, 1, 0]]
    squares = [
        sum((s - g) ** 2 for s, g in zip(row, is_gold, strict=True)) / 2
        for row, is_gold in zip(values, gold, strict=True)
    ]
    logs = [-math.log(values[row][row]) for row in (0, 1)]
    log = few.with_columns(gold=pl.Series(["a", "b"]), one=1).mcc(score={one: one for one in FEW})
    for metric, loss in {"brier": squares, "log_loss": logs}.items():
        want = loss if ask == "contrast" else [sum(loss) / 2]
        assert [*ASKED[ask](log, metric)] == pytest.approx([*map(float, want)], rel=1e-15)


def test_log_loss_of_rows_that_add_up_to_1_is_that_of_scikit_learn():
    rows = pl.DataFrame({"gold": ["a", "b", "c"], "a": [0.5, 0.25, 0.25], "b": 0.25, "c": 0.25})
    rows = rows.with_columns(b=1 - pl.col("a") - 0.25)
    found = rows.mcc(score={"a": "a", "b": "b", "c": "c"}).score(metrics="log_loss")
    want = log_loss(rows["gold"], rows.select("a", "b", "c").to_numpy())
    assert found["log_loss"].item() == pytest.approx(want, rel=1e-14)


def test_two_classes_are_one_score(animals):
    two = animals.filter(pl.col("gold") != "eel").with_columns(q=1 - pl.col("p_cat"))
    of_classes = two.mcc(score={"cat": "p_cat", "dog": "q"}).by("key", metrics=METRICS[2:], ci=0.9)
    of_one = two.mcc(score="p_cat", positive="cat").by("key", metrics=METRICS[2:], ci=0.9)
    assert_frame_equal(of_classes, of_one, rel_tol=1e-12)


def test_a_row_without_a_score_or_a_label_is_not_scored(animals):
    broken = animals.with_row_index().with_columns(
        p_dog=pl.when(pl.col("index") == 0).then(None).otherwise("p_dog"),
        p_eel=pl.when(pl.col("index") == 1).then(float("nan")).otherwise("p_eel"),
        gold=pl.when(pl.col("index") == 2).then(None).otherwise("gold"),
    )
    found = broken.mcc(score=SCORES).score(metrics=METRICS)
    whole = animals[3:].mcc(score=SCORES).score(metrics=METRICS)
    assert (found["n"].item(), found["n_null"].item()) == (animals.height - 3, 3)
    assert_frame_equal(found.drop("n_null"), whole.drop("n_null"), rel_tol=1e-14)


def test_a_missing_class_has_no_mean_of_classes(animals):
    found = animals.filter(pl.col("gold") != "eel").mcc(score=SCORES).score(metrics=METRICS)
    assert found["roc_auc"].item() is None
    assert found["average_precision"].item() is None
    assert found["brier"].item() > 0


OF_CLASSES = ["roc_auc_weighted", "roc_auc_ovo", "average_precision_weighted"]


def means_of_scikit_learn(rows: pl.DataFrame, labels=LABELS, weight=None) -> dict[str, float]:
    """Of rows that have all labels. scikit-learn wants rows that add up to 1 for a mean of AUCs."""
    scores = rows.select(SCORES[label] for label in labels).to_numpy()
    is_gold = np.array([[label == gold for label in labels] for gold in rows["gold"]])
    options = {} if weight is None else {"sample_weight": rows[weight].to_numpy()}
    pairs = [
        roc_auc_score(*(side[is_gold[:, [j, k]].any(1), j] for side in (is_gold, scores)))
        for j in range(len(labels))
        for k in range(len(labels))
        if j != k
    ]
    return {
        "roc_auc_weighted": roc_auc_score(is_gold, scores, average="weighted", **options),
        "roc_auc_ovo": float(np.mean(pairs)),
        "average_precision_weighted": average_precision_score(
            is_gold, scores, average="weighted", **options
        ),
    }


@in_turn(digits=[0, 1, 2, 9], lazy=[False, True])
def test_means_of_other_kinds_are_those_of_scikit_learn(animals, digits, lazy):
    """With many equal scores, and with few eels in a slice."""
    rare = (pl.col("gold") != "eel") | (pl.col("key") == "x") | (pl.int_range(pl.len()) % 7 == 0)
    log = animals.filter(rare).with_columns(pl.col(*SCORES.values()).round(digits))
    found = (log.lazy() if lazy else log).mcc(score=SCORES).by("key", metrics=OF_CLASSES)
    for row in found.lazy().collect().to_dicts():
        rows = log.filter(key=row["key"])
        assert (row["n"], row["n_null"]) == (rows.height, 0)
        want = means_of_scikit_learn(rows)
        assert {name: row[name] for name in OF_CLASSES} == pytest.approx(want, rel=1e-13)
        assert len({*want.values(), row["n"]}) == 4
    alone = [log.mcc(score=SCORES).by("key", metrics=name)[name] for name in OF_CLASSES]
    assert_frame_equal(pl.DataFrame(alone), found.lazy().collect().select(OF_CLASSES))


def test_means_of_auc_are_the_calls_of_scikit_learn():
    rng = np.random.default_rng(8)
    shares = rng.dirichlet(np.ones(4), 300).round(2)
    shares[:, 3] = 1 - shares[:, :3].sum(1)
    gold = (rng.random(300) ** 2 * 4).astype(int)
    columns = {f"p{label}": shares[:, label] for label in range(4)}
    log = pl.DataFrame({"gold": gold, **columns}).mcc(score={k: f"p{k}" for k in range(4)})
    found = log.score(metrics=["roc_auc", "roc_auc_weighted", "roc_auc_ovo"]).row(0)[1:4]
    kinds = [("ovr", "macro"), ("ovr", "weighted"), ("ovo", "macro")]
    want = [roc_auc_score(gold, shares, multi_class=kind, average=mean) for kind, mean in kinds]
    assert found == pytest.approx(want, rel=1e-13)


def test_two_classes_are_one_auc(animals):
    two = animals.filter(pl.col("gold") != "eel").with_columns(q=1 - pl.col("p_cat"))
    names = ["roc_auc", "roc_auc_weighted", "roc_auc_ovo"]
    found = two.mcc(score={"cat": "p_cat", "dog": "q"}).by("key", metrics=names)
    want = two.mcc(score="p_cat", positive="cat").by("key", metrics=names)
    assert_frame_equal(found, want, rel_tol=1e-14)
    assert (want["roc_auc"] == want["roc_auc_ovo"]).all()


def test_a_weighted_mean_leaves_out_a_missing_class(animals):
    """As scikit-learn does, given the indicators of labels. A plain mean and pairs need all."""
    log = animals.filter((pl.col("gold") != "eel") | (pl.col("key") == "x"))
    found = log.mcc(score=SCORES).by("key", metrics=OF_CLASSES).filter(key="y").to_dicts()[0]
    want = means_of_scikit_learn(log.filter(key="y"), ["cat", "dog"])
    assert found["roc_auc_ovo"] is None
    for name in ("roc_auc_weighted", "average_precision_weighted"):
        assert found[name] == pytest.approx(want[name], rel=1e-13)
    judged = log.mcc(score=SCORES).check("key", min=dict.fromkeys(OF_CLASSES, 0.3))
    assert judged["verdict"].to_list() == ["passes"] * 2
    cats = log.filter(pl.col("gold") == "cat").mcc(score=SCORES).score(metrics=OF_CLASSES)
    assert cats.row(0)[1:4] == (None, None, 1.0)
    none = log.clear().mcc(score=SCORES).score(metrics=OF_CLASSES)
    assert none.row(0) == (0, None, None, None, 0)


def test_means_of_other_kinds_of_rows_with_nulls_and_weights(animals):
    broken = animals.with_row_index().with_columns(
        p_dog=pl.when(pl.col("index") % 7 == 0).then(None).otherwise("p_dog"),
        gold=pl.when(pl.col("index") % 5 == 2).then(None).otherwise("gold"),
        w=pl.col("index") % 4 / 2,
        m=pl.col("index") % 3,
    )
    whole = broken.drop_nulls()
    found = broken.mcc(score=SCORES).score(metrics=OF_CLASSES)
    assert (found["n"].item(), found["n_null"].item()) == (
        whole.height,
        broken.height - whole.height,
    )
    assert found.row(0)[1:4] == pytest.approx([*means_of_scikit_learn(whole).values()], rel=1e-13)
    repeated = whole.select(pl.all().repeat_by("m")).explode(pl.all())
    found = broken.mcc(score=SCORES, weight="m").score(metrics=OF_CLASSES)
    want = means_of_scikit_learn(repeated)
    assert found.row(0)[1:4] == pytest.approx([*want.values()], rel=1e-13)
    halves = broken.mcc(score=SCORES, sample_weight=pl.col("m") / 2).score(metrics=OF_CLASSES)
    assert halves.row(0)[1:4] == pytest.approx([*want.values()], rel=1e-13)


def test_pairs_of_classes_in_windows_and_sets_of_keys(animals):
    days = [date(2026, 1, 1 + row // 200) for row in range(animals.height)]
    dated = animals.with_columns(day=pl.Series(days))
    log = dated.mcc(score=SCORES)
    names = [*OF_CLASSES, "roc_auc", "top_k(1)"]
    windows = log.by(trailing("day", "2d"), metrics=names).filter(day=date(2026, 1, 2))
    rows = dated.filter(pl.col("day") <= date(2026, 1, 2))
    want = means_of_scikit_learn(rows)
    assert windows.select(OF_CLASSES).row(0, named=True) == pytest.approx(want, rel=1e-13)
    total = log.by(each("key", total=True), metrics=names).filter(keys="")
    assert total.select(OF_CLASSES).row(0) == pytest.approx(
        [*means_of_scikit_learn(dated).values()], rel=1e-13
    )


def test_a_mean_of_another_kind_has_no_interval(animals):
    for name in OF_CLASSES:
        with pytest.raises(ValueError, match=f"'{name}' of a score per class .* ask for it wit"):
            animals.mcc(score=SCORES).score(metrics=name, ci=0.9)
        for log in (animals.mcc(score=SCORES), animals.mcc(score="p_cat", positive="cat")):
            with pytest.raises(
                ValueError, match="no interval and no test: it is of several scores"
            ):
                log.contrast("key", metrics=name)


def test_weights_are_rows(animals):
    weighed = animals.with_columns(w=pl.int_range(pl.len()) % 3)
    repeated = weighed.select(pl.all().repeat_by("w")).explode(pl.all())
    found = weighed.mcc(score=SCORES, weight="w").by("key", metrics=METRICS)
    assert_frame_equal(found, repeated.mcc(score=SCORES).by("key", metrics=METRICS), rel_tol=1e-12)


def test_losses_have_intervals_and_tests(animals):
    log = animals.mcc(score=SCORES)
    found = log.by("key", metrics="brier", ci=0.95)
    for row in found.iter_rows(named=True):
        rows = animals.filter(key=row["key"])
        scores = rows.select(SCORES.values()).to_numpy()
        is_gold = np.array([[label == gold for label in LABELS] for gold in rows["gold"]])
        loss = ((scores - is_gold) ** 2).sum(1) / 2
        assert row["brier_se"] == pytest.approx(loss.std() / len(loss) ** 0.5, rel=1e-12)
        assert row["brier_low"] < row["brier"] < row["brier_high"]
    contrast = log.contrast("key", metrics="log_loss", to="each")
    assert (contrast["diff_low"] < contrast["diff"]).all()
    assert log.worst("key", metric="log_loss", min_n=10, verdicts=True).height == 2
    assert log.check("key", metric="brier", max=0.5)["verdict"].to_list() == ["passes"] * 2


@pytest.mark.parametrize(
    "ask",
    [
        lambda log: log.contrast("key", metrics="roc_auc"),
        lambda log: log.worst("key", metric="roc_auc"),
        lambda log: log.curve("key"),
        lambda log: log.best_threshold("key"),
    ],
)
def test_a_mean_over_classes_has_no_interval(animals, ask):
    with pytest.raises(ValueError, match=r"as in log\(score='p_cat', positive='cat'\)"):
        ask(animals.mcc(score=SCORES))


def test_a_mean_over_classes_is_asked_without_an_interval(animals):
    with pytest.raises(ValueError, match="'roc_auc' of a score per class .* ask for it without ci"):
        animals.mcc(score=SCORES).by("key", metrics=["log_loss", "roc_auc"], ci=0.95)


def test_a_score_per_class_is_one_model(animals):
    with pytest.raises(ValueError, match="a score per class is of one model"):
        animals.mcc(score=SCORES).compare("key", metrics="brier")


@pytest.mark.parametrize("ci", [None, 0.9])
def test_labels_and_a_score_per_class_are_of_the_same_rows(animals, ci):
    pred = pl.when(pl.int_range(pl.len()) % 5 == 0).then(pl.lit("dog")).otherwise("gold")
    mixed = animals.with_columns(pred=pl.when(pl.int_range(pl.len()) != 7).then(pred))
    mixed = mixed.with_columns(p_eel=pl.when(pl.int_range(pl.len()) != 9).then("p_eel"))
    whole = mixed.filter(pl.int_range(pl.len()).is_in([7, 9]).not_())
    log, want = (frame.mcc(pred="pred", score=SCORES) for frame in (mixed, whole))
    names = ["brier", "mcc", "log_loss"]
    found = log.by("key", metrics=names, ci=ci)
    assert found["n_null"].sum() == 2
    parts = [want.by("key", metrics=name, ci=ci) for name in names]
    for part in parts:
        columns = [name for name in part.columns if name != "n_null"]
        assert_frame_equal(found.select(columns), part.select(columns), rel_tol=1e-12)


@pytest.mark.parametrize("scores", [{"score": SCORES}, {"score": "p_cat", "positive": "cat"}])
def test_a_list_of_one_model_is_one_model(animals, scores):
    """The answer names the model, as `pred` is a list."""
    log = animals.with_columns(pred="gold")
    want = log.mcc(pred="pred", **scores).by("key", metrics=["brier", "accuracy"], ci=0.9)
    found = log.mcc(pred=["pred"], **scores).by("key", metrics=["brier", "accuracy"], ci=0.9)
    assert_frame_equal(found.drop("model"), want)
    assert found["model"].unique().to_list() == ["pred"]
    judged = log.mcc(pred=["pred"], **scores).check("key", min={"accuracy": 1}, max={"brier": 1})
    assert judged["verdict"].to_list() == ["passes"] * 2
    if "positive" in scores:
        other = log.mcc(pred="pred", score=["p_cat"], positive="cat")
        found = other.by("key", metrics=["brier", "accuracy"], ci=0.9)
        assert_frame_equal(found.drop("model"), want)


def test_no_rows(animals):
    log = animals.clear().mcc(score=SCORES)
    assert log.score(metrics=["roc_auc", "brier"]).row(0) == (0, None, None, 0)
    assert log.score(metrics="roc_auc").row(0) == (0, None, 0)
    assert log.by(each("key", total=True), metrics="roc_auc").row(0) == ("", None, 0, None, 0)


@in_turn(scores=[(1.0, 4.1399e-8, 1.9e-22), (1.0, 0.01, 0.0)], dtype=[pl.Float32, pl.Float64])
def test_a_sure_mistake_with_rounded_scores_is_a_distance_of_1(scores, dtype):
    row = dict(zip("abc", ([score] for score in scores), strict=True))
    log = pl.DataFrame({"gold": ["c"], **row}).with_columns(pl.col("a", "b", "c").cast(dtype))
    assert log.mcc(score={name: name for name in "abc"}).score(metrics="brier").row(0)[1] == 1


def test_a_score_per_class_is_of_one_of_several_predictions(animals):
    log = animals.with_columns(one="gold", two="gold").mcc(pred=["one", "two"], score=SCORES)
    with pytest.raises(ValueError, match=r"'one', 'two' and .* ask for each kind alone"):
        log.score(metrics=["mcc", "brier"])
    assert log.score(metrics="mcc")["mcc"].to_list() == [1, 1]
    assert_frame_equal(log.score(metrics="brier"), animals.mcc(score=SCORES).score(metrics="brier"))
    assert log.check(metric="brier", max=0.5).height == 1


@in_turn(ask=["by", "check"], metric=METRICS)
def test_a_label_without_a_score_is_an_error(animals, metric, ask):
    """A mistyped label must not drop its rows."""
    log = animals.lazy().mcc(score={"cta": "p_cat", "dog": "p_dog", "eel": "p_eel"})
    with pytest.raises(
        pl.exceptions.PolarsError, match="gold label cat has no score.*'cta', 'dog'"
    ):
        log.check(metric=metric, max=1) if ask == "check" else log.by(metrics=metric).collect()


@pytest.mark.parametrize(
    "score", [{"cat": "p_cat"}, {"cat": "p_cat", None: "p_dog"}, {"cat": pl.col("^p_.*$")}]
)
def test_a_score_per_class_needs_two_labels(animals, score):
    with pytest.raises(ValueError, match="one column for each of two labels or more"):
        animals.mcc(score=score)


@pytest.mark.parametrize("metric", ["brier", "log_loss"])
def test_the_scores_of_a_row_add_up_to_1(animals, metric):
    odds = animals.with_columns(pl.col("^p_.*$") / 2)
    with pytest.raises(pl.exceptions.PolarsError, match=r"of a row add up to 0\.\d+, not to 1"):
        odds.mcc(score=SCORES).score(metrics=metric)
    assert odds.mcc(score=SCORES).score(metrics="roc_auc")["roc_auc"].item() > 0.5


@in_turn(
    1,
    metric=["brier", "log_loss"],
    **{
        "classes, off, passes": [
            *((2, 0.01, True), (2, 0.011, False), (3, -0.015, True), (3, -0.016, False)),
            *((10, 0.05, True), (10, 0.051, False), (11, -0.05, True), (11, -0.051, False)),
            *((100, -0.05, True), (100, 0.051, False), (250, -1.0, False), (250, 0.0, True)),
        ]
    },
)
def test_the_scores_of_a_row_add_up_to_nearly_1_however_many_classes(metric, classes, off, passes):
    """250 zeros once passed: the bound was 0.005 for each class."""
    names = [f"p{number}" for number in range(classes)]
    row = dict.fromkeys(names, (1 + off) / classes)
    log = pl.DataFrame({"gold": ["p1"], **row}).mcc(score={name: name for name in names})
    if passes:
        assert 0 <= log.score(metrics=metric)[metric].item() < math.inf
    else:
        with pytest.raises(pl.exceptions.PolarsError, match=r"of a row add up to .*, not to 1"):
            log.score(metrics=metric)


@pytest.mark.parametrize("metric", ["brier", "log_loss"])
def test_a_score_of_a_class_must_be_a_probability(animals, metric):
    wrong = animals.with_columns(p_eel=pl.col("p_eel") + 1.5)
    with pytest.raises(
        pl.exceptions.PolarsError, match=r"the score [12]\.\d+ of 'p_eel' is not between 0 and 1"
    ):
        wrong.mcc(score=SCORES).score(metrics=metric)
    assert wrong.mcc(score=SCORES).score(metrics="roc_auc")["roc_auc"].item() > 0.5


def test_a_label_of_another_dtype_is_an_error(animals):
    with pytest.raises(pl.exceptions.SchemaError, match="does not have the dtype"):
        animals.mcc(score={1: "p_cat", 2: "p_dog"})


@pytest.mark.parametrize("metric", [*METRICS, "ece"])
def test_the_scores_of_a_class_may_have_any_name(animals, metric):
    names = dict(zip(LABELS, ["score", "class", "weight"], strict=True))
    renamed = animals.rename({SCORES[label]: name for label, name in names.items()})
    for ask in (lambda log: log.by("key", metrics=metric), lambda log: log.score(metrics=metric)):
        assert_frame_equal(ask(renamed.mcc(score=names)), ask(animals.mcc(score=SCORES)))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("digits", [0, 1, 2])
@pytest.mark.parametrize("ci", [None, 0.95])
def test_top_k_is_that_of_scikit_learn(animals, k, digits, ci):
    """Also with many equal scores."""
    log = animals.with_columns(pl.col(*SCORES.values()).round(digits))
    found = log.mcc(score=SCORES).by("key", metrics=f"top_k({k})", ci=ci)
    for row in found.to_dicts():
        rows = log.filter(key=row["key"])
        scores = rows.select(SCORES.values()).to_numpy()
        want = top_k_accuracy_score(rows["gold"].to_list(), scores, k=k, labels=LABELS)
        assert row[f"top_{k}"] == pytest.approx(want, rel=1e-14)
        if ci is not None:
            se = math.sqrt(want * (1 - want) / rows.height)
            assert row[f"top_{k}_se"] == pytest.approx(se, rel=1e-12)
            assert row[f"top_{k}_low"] < want < row[f"top_{k}_high"]


def test_top_k_is_a_proportion_with_an_interval_and_tests(animals):
    log = animals.mcc(score=SCORES)
    all_hit = log.by("key", metrics="top_k(3)", ci=0.95)
    assert all_hit["top_3"].to_list() == [1, 1]
    assert (all_hit["top_3_low"] < 1).all()
    assert log.contrast("key", metrics="top_k(2)", to="each")["p_value"].item() > 0
    assert log.worst("key", metric="top_k(1)", min_n=10, verdicts=True).height == 2
    assert log.check("key", min={"top_k(2)": 0.1})["verdict"].to_list() == ["passes"] * 2
    none = animals.select("gold", **{label: pl.lit(float(label == "eel")) for label in LABELS})
    none = none.filter(pl.col("gold") == "cat").mcc(score={label: label for label in LABELS})
    [row] = none.score(metrics="top_k(1)", ci=0.95).to_dicts()
    assert (row["top_1"], row["top_1_low"]) == (0, 0)
    assert 0 < row["top_1_high"] < 0.1


def test_top_k_needs_a_score_per_class(animals):
    for log in (
        animals.mcc(score="p_cat", positive="cat"),
        animals.lazy().mcc(score="p_cat", positive="cat"),
    ):
        for ask in (
            lambda log: log.score(metrics="top_k(2)"),
            lambda log: log.contrast("key", metrics="top_k(2)"),
            lambda log: log.worst("key", metric="top_k(2)"),
        ):
            with pytest.raises(ValueError, match="this log has one score: name a score per class"):
                ask(log)
    with pytest.raises(ValueError, match="k must be an integer of at least 1"):
        animals.mcc(score=SCORES).score(metrics="top_k(0)")

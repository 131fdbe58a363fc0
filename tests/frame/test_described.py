"""`PredictionLog`: what is said of a log is said once, checked at once, and heard by every verb."""

from __future__ import annotations

import inspect
import pickle
import re

import polars as pl
import pytest
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal
from support import first, in_turn

import polars_mcc
from polars_mcc import PredictionLog, each, trailing

LOG = pl.DataFrame(
    {
        "country": ["DE", "DE", "FR", "FR", "FR"],
        "day": pl.Series(range(5)).cast(pl.Date),
        "label": ["a", "b", "a", "b", None],
        "one": ["a", "b", "b", "b", "a"],
        "two": ["a", "a", "a", None, "b"],
        "sure": [0.9, 0.2, 0.4, 0.3, 0.5],
        "n": [3, 1, 2, 4, 1],
        "user": [1, 1, 2, 2, 3],
    }
)
VERBS = [
    name for name, _ in inspect.getmembers(PredictionLog, inspect.isfunction) if name[0] != "_"
]
OF_DESCRIPTION = {"again", "in_kind", "with_frame"}
ASKED = {
    "by": {},
    "score": {},
    "compare": {"baseline": "one"},
    "worst": {},
    "contrast": {"to": "best"},  # the fastest to plan
    "gaps": {},
    "changes": {},
    "drift": {"before": pl.col("n") > 2, "after": pl.col("n") <= 2},
    "curve": {},
    "best_threshold": {},
    "calibration": {"bins": 2},
    "check": {"min": 0, "metric": "accuracy"},
    "counts": {},
    "classes": {},
    "confusion": {"labels": ["a", "b"]},
    "report": {"format": "md"},
}


def test_the_verbs():
    assert {*VERBS} - OF_DESCRIPTION == {*ASKED, "engine_counts"}


@in_turn(
    kind=[pl.DataFrame, pl.LazyFrame],
    **{
        "said, error, message": [
            (
                {"gold": "lable"},
                pl.exceptions.ColumnNotFoundError,
                "for gold; did you mean 'label'?",
            ),
            ({"pred": ["one", "three"]}, pl.exceptions.ColumnNotFoundError, "'three' for pred"),
            (
                {"score": "shure"},
                pl.exceptions.ColumnNotFoundError,
                "for score; did you mean 'sure'?",
            ),
            ({"weight": "m"}, pl.exceptions.ColumnNotFoundError, "no column 'm' for weight"),
            ({"sample_weight": "m"}, pl.exceptions.ColumnNotFoundError, "'m' for sample_weight"),
            (
                {"cluster": "usr"},
                pl.exceptions.ColumnNotFoundError,
                "for cluster; did you mean 'user'",
            ),
            (
                {"weight": "one"},
                pl.exceptions.SchemaError,
                "weight must be integer or float, but 'one'",
            ),
            (
                {"score": "two"},
                pl.exceptions.SchemaError,
                "score must be a number, but 'two' is Str",
            ),
            ({"pred": "n"}, pl.exceptions.SchemaError, "labels cannot be compared"),
            (
                {"positive": 1},
                pl.exceptions.SchemaError,
                "positive=1 does not have the dtype of the labels, String",
            ),
            (
                {"nulls": "keep"},
                ValueError,
                "'drop', 'label', 'reweight', got 'keep'",
            ),
            ({"zero_division": "0"}, TypeError, "zero_division must be a number or None, got '0'"),
            ({"weight": "n", "sample_weight": "n"}, ValueError, "pass only one of them"),
            ({"gold": pl.col("label", "one")}, ValueError, "gold must be one column, but"),
            (
                {"pred": ["one", pl.col("two").alias("one")]},
                pl.exceptions.DuplicateError,
                "two pred",
            ),
        ]
    },
)
def test_all_is_checked_at_once(kind, said, error, message):
    frame = LOG if kind is pl.DataFrame else LOG.lazy()
    described = {"gold": "label", "pred": "one"} | said
    with pytest.raises(error, match=re.escape(message)):
        PredictionLog(frame, **described)
    with pytest.raises(error, match=re.escape(message)):
        frame.mcc(**described)
    with pytest.raises(error, match=re.escape(message)):
        PredictionLog(frame, gold="label", pred="one")(**described)


def test_a_frame_is_described_without_being_read():
    def read(*_):
        pytest.fail("it was read")
        yield

    frame = register_io_source(read, schema=LOG.schema)
    log = PredictionLog(frame, gold="label", pred=["one", "two"], score="sure", cluster="user")
    log(weight="n", positive="a").best_threshold(each("country", total=True))
    log.compare("country", trailing("day", "2d"))


def test_missing_labels_are_named_by_a_call_to_paste():
    """A frame may have a namespace that it does not use: the verb is the first to raise."""
    log = pl.DataFrame({"segment": ["a"], "y_true": [1], "y_pred": [1], "y_score": [0.5]}).mcc
    with pytest.raises(pl.exceptions.ColumnNotFoundError) as raised:
        log.by("segment", each("y_true"), metrics=["kappa"], ci=0.9)
    problem, call = str(raised.value).split("Name the labels: ")
    assert problem.startswith(
        "no column 'gold' (the true label). The columns are 'segment', 'y_true', "
    )
    assert call == (
        'df.mcc(gold="y_true", pred="y_pred")'
        '.by("segment", each("y_true"), metrics=["kappa"], ci=0.9)'
    )
    assert eval(call, {"df": log.frame, "each": each}).height == 1  # noqa: S307 - it is to be pasted
    with pytest.raises(pl.exceptions.ColumnNotFoundError) as raised:
        log(gold="y_truth")
    assert "Name the labels" not in str(raised.value), "the user has named it"
    assert "did you mean 'y_true'?" in str(raised.value)
    with pytest.raises(pl.exceptions.ColumnNotFoundError) as raised:
        log(gold="y_true", pred="pred")
    assert "Name the labels" not in str(raised.value), "the user has named it"
    with pytest.raises(pl.exceptions.ColumnNotFoundError) as raised:
        log.check(pl.col("y_true") > 0, min=0.5, no_worse_than=None)
    assert str(raised.value).endswith(".check(..., min=0.5, no_worse_than=None)")


def test_a_verb_can_be_sent_to_another_process():
    log = LOG.mcc(gold="label", pred="one")
    verb = pickle.loads(pickle.dumps(PredictionLog.by))  # noqa: S301 - our own
    assert verb is PredictionLog.by
    assert_frame_equal(verb(log, "country"), log.by("country"))


@pytest.mark.parametrize(
    ("unnamed", "named", "message"),
    [
        (("label", "one"), {}, 'name the options: df.mcc(gold="label", pred="one")'),
        (("label",), {"weight": "n"}, 'name the options: df.mcc(gold="label")'),
        (
            (),
            {"y_true": "label", "y_pred": "one"},
            "there is no option 'y_true', 'y_pred'; did you mean gold=\"label\", pred=\"one\"? ",
        ),
        ((), {"pos_label": "a", "y_score": "p"}, 'did you mean positive="a", score="p"? '),
        ((), {"zzz": "label"}, "there is no option 'zzz'. The options are gold, pred, score"),
    ],
)
def test_options_that_are_unknown_or_unnamed(unnamed, named, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        LOG.mcc(*unnamed, **named)
    if not unnamed:
        with pytest.raises(TypeError, match=re.escape(message)):
            PredictionLog(LOG, **named)


@pytest.mark.parametrize(
    ("columns", "known", "call"),
    [
        ({"label": 1, "prediction": 1}, {}, 'gold="label", pred="prediction"'),
        ({"Target": 1, "predictedLabel": 1}, {}, 'gold="Target", pred="predictedLabel"'),
        ({"label": 1, "true_label": 1, "yhat": 1}, {}, 'gold="true_label", pred="yhat"'),
        ({"y_test": 1, "y_hat": 1}, {}, 'gold="y_test", pred="y_hat"'),
        (
            {"label": "a", "pred_a": "a", "pred_b": "a"},
            {},
            'gold="label", pred=["pred_a", "pred_b"]',
        ),
        (
            {"label": "a", "target": 1, "pred_id": "a", "predicted": 1},
            {},
            'gold="target", pred="predicted"',
        ),
        ({"label": True, "pred_proba": 0.5, "bert": True}, {}, 'gold="label", pred="..."'),
        ({"labels": ["a"], "preds": ["a"]}, {}, 'gold="labels", pred="preds"'),
        ({"is_fraud": 1, "y_pred": 1}, {}, 'gold="...", pred="y_pred"'),
        ({"a": 1, "b": 1}, {}, 'gold="...", pred="..."'),
        ({"a": 1, "label": 1, "yhat": 1}, {"gold": "a"}, 'gold="a", pred="yhat"'),
        ({"a": 1, "label": 1}, {"pred": "a"}, 'pred="a", gold="label"'),
        ({"label": 1, "p": 0.5}, {"score": "p"}, 'score="p", gold="label"'),
        (
            {"label": "a", "yhat": "a"},
            {"nulls": "label"},
            'nulls="label", gold="label", pred="yhat"',
        ),
        ({"is_true": 1, "gold": 1, "prediction": 1}, {}, 'pred="prediction"'),
        ({"pred_old": 1, "pred": 1, "label": 1}, {}, 'gold="label"'),
        ({"label_source": 1, "label": 1, "yhat": 1}, {}, 'gold="label", pred="yhat"'),
        ({"y_hat": 1, "y": 1}, {}, 'gold="y", pred="y_hat"'),
        ({"expected_output": 1, "output": 1}, {}, 'gold="expected_output", pred="output"'),
        ({"label": 1, "yhat": 1, "n": 2}, {"weight": "n"}, 'weight="n", gold="label", pred="yhat"'),
    ],
)
def test_likely_labels(columns, known, call):
    frame = pl.LazyFrame({name: [value] for name, value in columns.items()})
    with pytest.raises(pl.exceptions.ColumnNotFoundError) as raised:
        (frame.mcc(**known) if known else frame.mcc).score()
    question = "" if known else ".score()"
    assert str(raised.value).endswith(f"Name the labels: df.mcc({call}){question}")


def test_what_is_said_again_changes_that_alone():
    log = LOG.mcc(gold="label", pred="one", weight="n")
    other = log(pred="two", zero_division=None)
    assert repr(log) == 'PredictionLog(DataFrame, gold="label", pred="one", weight="n")'
    assert repr(other) == (
        'PredictionLog(DataFrame, gold="label", pred="two", weight="n", zero_division=None)'
    )
    assert_frame_equal(
        other.by("country"),
        PredictionLog(LOG, gold="label", pred="two", weight="n", zero_division=None).by("country"),
    )
    assert_frame_equal(
        log.by("country"), LOG.mcc(gold="label", pred="one", weight="n").by("country")
    )
    assert (
        repr(log(gold="label", weight=None)) == 'PredictionLog(DataFrame, gold="label", pred="one")'
    )
    assert repr(LOG.lazy().mcc) == "PredictionLog(LazyFrame)"
    said = LOG.mcc(gold=pl.col("label"), pred=["one", pl.col("two").alias("2")]).said
    assert said == """gold=pl.col("label"), pred=["one", pl.col("two").alias("2")]"""
    with pytest.raises(TypeError, match="golds"):
        log(golds="label")


@pytest.mark.parametrize("verb", first(6, [*ASKED]))
def test_lazy_in_lazy_out(verb):
    """And the answer of the one is that of the other; `check` and `report` decide now."""
    pytest.importorskip("altair")
    preds = "two" if verb in {"compare", "worst"} else ["one", "two"]
    said = {"gold": "label", "pred": preds, "score": "sure", "positive": "a"}
    said |= {"time": pl.date(2026, 3, 1 + pl.col("n"))} if verb == "changes" else {}
    ask = lambda frame: getattr(PredictionLog(frame, **said), verb)("country", **ASKED[verb])  # noqa: E731
    if verb == "score":
        ask = lambda frame: PredictionLog(frame, **said).score()  # noqa: E731
    eager, lazy = ask(LOG), ask(LOG.lazy())
    if verb == "report":
        made = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
        assert made.sub("", eager) == made.sub("", lazy)
        return
    assert isinstance(eager, pl.DataFrame)
    assert isinstance(lazy, pl.DataFrame if verb == "check" else pl.LazyFrame)
    assert_frame_equal(eager, lazy.lazy().collect())


def test_predictions_and_scores():
    """A log has labels, or scores, or both; who asks for the other is told so."""
    labels = LOG.mcc(gold="label", pred="one", positive="a")
    scores = LOG.mcc(gold="label", score="sure", positive="a")
    both = LOG.mcc(gold="label", pred="one", score="sure", positive="a")
    assert_frame_equal(both.by("country"), labels.by("country"))
    assert_frame_equal(both.curve("country"), scores.curve("country"))
    with pytest.raises(
        ValueError, match="this log has scores and no predicted labels: cut a score"
    ):
        scores.by("country")
    with pytest.raises(ValueError, match="this log has no score: say which column has the model's"):
        labels.curve("country")
    cut = LOG.mcc(gold=pl.col("label") == "a", pred=pl.col("sure") >= 0.4)
    at = scores.curve(thresholds=[0.4])
    assert cut.score()["mcc"].item() == at["mcc"].item()


@pytest.mark.parametrize(
    ("verb", "said", "message"),
    [
        (
            "contrast",
            {"cluster": "user"},
            r"contrast does not support cluster.*\(cluster=None\).contrast",
        ),
        ("gaps", {"cluster": "user"}, r"gaps does not support cluster.*\(cluster=None\).gaps"),
        (
            "counts",
            {"sample_weight": "n"},
            r"counts does not support .*log\(sample_weight=None\).counts",
        ),
        ("curve", {"nulls": "label"}, r"curve does not support .*log\(nulls='drop'\).curve"),
        ("best_threshold", {"nulls": "label"}, r"best_threshold does not support nulls='label'"),
        ("calibration", {"nulls": "label"}, r"calibration does not support nulls='label'"),
    ],
)
def test_a_verb_refuses_what_it_cannot_take_into_account(verb, said, message):
    log = LOG.mcc(gold="label", pred="one", score="sure", positive="a", **said)
    with pytest.raises(ValueError, match=message):
        getattr(log, verb)("country", **ASKED[verb])
    answer = getattr(log(**dict.fromkeys(said, None) | {"nulls": "drop"}), verb)
    answer("country", **ASKED[verb])


@pytest.mark.parametrize("verb", ["by", "classes", "confusion", "counts", "check", "curve"])
def test_what_is_true_of_a_log_is_no_error_where_nobody_asks_for_it(verb):
    """Clusters make no difference without an interval, nor does a positive label without use."""
    plain = LOG.mcc(gold="label", pred="one", score="sure", positive="a")
    said = plain(cluster="user", positive="a")
    options = ASKED[verb] | ({"normalize": "gold"} if verb == "confusion" else {})
    assert_frame_equal(
        getattr(said, verb)("country", **options), getattr(plain, verb)("country", **options)
    )


def test_a_score_that_is_taken_for_a_label():
    log = pl.DataFrame({"gold": [True, False], "sure": [0.9, 0.1]})
    with pytest.raises(pl.exceptions.SchemaError, match=r"as in pl\.col\('sure'\) >= 0\.5$"):
        log.mcc(pred="sure")


def test_gold_and_pred_of_one_name_are_two_columns():
    log = pl.DataFrame({"d": [1, 2, 1]})
    for gold, pred in (("d", pl.col("d").cast(pl.String)), (pl.col("d").cast(pl.String), "d")):
        with pytest.raises(pl.exceptions.SchemaError, match="labels cannot be compared: 'd' is "):
            log.mcc(gold=gold, pred=pred)
    with pytest.raises(pl.exceptions.SchemaError, match="'d' has lists of labels, but 'd' is Int"):
        log.mcc(gold=pl.concat_list("d"), pred="d")
    assert log.mcc(gold="d", pred=(pl.col("d") == 1).cast(pl.Int64)).score()["n"].item() == 3


def test_it_is_the_namespace():
    assert isinstance(LOG.mcc, PredictionLog)
    assert isinstance(LOG.lazy().mcc(gold="label", pred="one"), PredictionLog)
    assert LOG.mcc.frame is LOG
    assert polars_mcc.PredictionLog(LOG, gold="label", pred="one").frame is LOG
    with pytest.raises(TypeError, match=r"expected a polars DataFrame .*, got builtins\.list"):
        PredictionLog([1, 2])

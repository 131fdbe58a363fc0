"""Labels and keys whose values differ only in case, spaces or Unicode form: who says so, when."""

from __future__ import annotations

import datetime as dt
import html
import itertools
import json
import shlex
import warnings
from pathlib import Path

import polars as pl
import pytest
from runner import invoke
from support import first, in_turn

from polars_mcc import PredictionLog, PredictionLogWarning

GOLD = ["Yes", "yes", "No", "no"] * 60
LOG = pl.DataFrame(
    {
        "gold": GOLD,
        "pred": [
            ["Yes", "No"][(label.lower() == "no") != (i % 7 == 0)] for i, label in enumerate(GOLD)
        ],
        "p2": [
            ["Yes", "No"][(label.lower() == "no") != (i % 5 == 0)] for i, label in enumerate(GOLD)
        ],
        "score": [i % 11 / 10 for i in range(240)],
        "sex": ["Male", "MALE", "male", "male", "Female", "Female"] * 40,
        "day": [i // 120 for i in range(240)],
        "date": [dt.date(2026, 3, 1 + i // 12) for i in range(240)],
    }
)
SPELLED = "differ only in case, spaces or Unicode form: "
TOLD = (
    f"labels {SPELLED}'gold' has 'No' (60 rows) and 'no' (60 rows), 'Yes' (60 rows) and 'yes' "
    "(60 rows); "
)
OF_KEY = (
    f"values of a key {SPELLED}'sex' has 'MALE' (40 rows) and 'Male' (40 rows) and 'male' (80 rows)"
)
TEXTS = [pl.String(), pl.Categorical(), pl.Enum(["no", "No", "yes", "Yes"])]

PLAIN = {
    "by": (["day"], {}),
    "score": ([], {}),
    "classes": (["day"], {}),
    "confusion": ([], {"long": True}),
    "counts": (["day"], {}),
}
"""Calls whose lazy answer is a plan of Polars, which cannot warn."""
DEFERRED = {
    "by ": (["day"], {"ci": 0.9}),
    "by  ": (["day"], {"ci": 0.9, "metrics": ["tpr"], "positive": "Yes"}),
    "classes ": ([], {"ci": 0.9}),
    "compare": ([], {"pred": ["pred", "p2"]}),
    "contrast": (["day"], {}),
    "gaps": (["day"], {}),
    "changes": (["day"], {"time": "date"}),
    "drift": ([], {"before": pl.col("day") == 0, "after": pl.col("day") == 1}),
    "calibration": ([], {"score": "score", "positive": "Yes"}),
    "worst": (["day"], {"min_n": 10}),
    "check": (["day"], {"min": 0.1}),
}
SCORES = {
    "curve": ([], {"score": "score", "positive": "Yes"}),
    "best_threshold": ([], {"score": "score", "positive": "Yes", "metric": "f1"}),
}


def warned(ask):
    """The sentences of a call, and its answer."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PredictionLogWarning)
        answer = ask()
    return [str(one.message) for one in caught], answer


def asked(frame, verb, keys, options):
    about = {"pred", "score", "positive", "gold", "time"} & options.keys()
    log = PredictionLog(frame, **{name: options[name] for name in about})
    rest = {name: value for name, value in options.items() if name not in about}
    return getattr(log, verb.strip())(*keys, **rest)


def of_dtype(dtype):
    return LOG.with_columns(pl.col("gold", "pred", "p2").cast(dtype))


def test_every_verb_says_it_once_and_a_plain_lazy_plan_is_silent():
    reached = {"eager": 0, "lazy": 0, "silent": 0}
    verbs = {**PLAIN, **DEFERRED, **SCORES}.items()
    for dtype, (verb, (keys, options)) in zip(itertools.cycle(TEXTS), verbs, strict=False):
        told, _ = warned(lambda d=dtype, v=verb, k=keys, o=options: asked(of_dtype(d), v, k, o))
        assert [TOLD in one for one in told] == [True], verb
        reached["eager"] += 1

        def lazily(dtype=dtype, verb=verb, keys=keys, options=options):
            return asked(of_dtype(dtype).lazy(), verb, keys, options).lazy().collect()

        told, _ = warned(lazily)
        if verb in DEFERRED:
            assert [TOLD in one for one in told] == [True], verb
            reached["lazy"] += 1
        else:
            assert told == [], verb
            reached["silent"] += 1
    told, page = warned(lambda: LOG.mcc.report("sex", "day", format="json"))
    assert len([one for one in told if TOLD in one]) == 1
    sections = {one["id"]: one["sentences"] for one in json.loads(page)["sections"]}
    labels = sections["labels"]
    assert [TOLD in one for one in labels] == [True, False]
    assert OF_KEY in labels[1]
    assert reached == {"eager": 18, "lazy": 11, "silent": 7}


def test_lists_of_labels():
    lists = LOG.with_columns(pl.concat_list("gold"), pl.concat_list("pred"))
    told, _ = warned(lists.mcc.by)
    assert [TOLD in one for one in told] == [True]


SHELL = {
    "by": "--by day",
    "by ": "--by day --ci 0.9",
    "score": "",
    "classes": "--by day",
    "confusion": "",
    "counts": "--by day",
    "compare": "--pred pred --pred p2",
    "contrast": "--by day",
    "gaps": "--by day",
    "changes": "--by day --time date::DATE",
    "drift": "--before 'day = 0' --after 'day = 1'",
    "calibration": "--score score --positive Yes",
    "curve": "--score score --positive Yes",
    "best-threshold": "--score score --positive Yes --metric f1",
    "worst": "--by day --min-n 10",
    "check": "--by day --min 0.1",
    "check ": "--by day --min 0.9",
    "report": "--by sex --out page.json",
}


@in_turn(2, verb=SHELL, ending=["csv", "parquet"])
def test_every_command_says_it_once_and_what_to_type(verb, ending, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    getattr(LOG, f"write_{ending}")(f"log.{ending}")
    line = [verb.strip(), f"log.{ending}", *shlex.split(SHELL[verb])]
    told = [one for one in invoke(*line).stderr.splitlines() if "differ only" in one]
    of_labels = [one for one in told if TOLD in one]
    assert len(of_labels) == 1, told


@pytest.mark.slow
def test_keys_of_worst():
    for log in (LOG, LOG.lazy(), LOG.with_columns(pl.col("sex").cast(pl.Categorical))):
        told, _ = warned(lambda log=log: log.mcc.worst("sex", min_n=5).lazy().collect())
        [told] = [one for one in told if OF_KEY in one]


@pytest.mark.slow
def test_keys_of_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    LOG.write_csv("log.csv")
    for verb, options in {"worst": [], "report": ["--out", "page.html"]}.items():
        done = invoke(verb, "log.csv", *options, "--by", "sex", "--min-n", "5")
        if verb == "report":
            assert OF_KEY in html.unescape(Path("page.html").read_text("utf-8"))
            continue
        assert len([one for one in done.stderr.splitlines() if OF_KEY in one]) == 1


def test_a_key_of_many_values_is_not_looked_at():
    values = [f"user {i}" for i in range(1200)]
    log = pl.DataFrame({"k": [*values, "USER 1"], "gold": [0, 1] * 600 + [1], "pred": 1})
    assert "differ only" not in "".join(warned(lambda: log.mcc.worst("k"))[0])
    few = pl.concat([log.head(500), log.tail(1)])
    assert "differ only" in "".join(warned(lambda: few.mcc.worst("k", min_n=1))[0])


def of_pairs(pairs):
    """A log of (gold, pred): rows."""
    rows = [pair for pair, n in pairs.items() for _ in range(n)]
    return pl.DataFrame(rows, schema=["gold", "pred"], orient="row")


CODES = {("us", "us"): 40, ("US", "US"): 30, ("us", "US"): 5, ("US", "us"): 9, ("them", "them"): 20}
LETTERS = {(one, one): 20 for one in "abcdeABCDE"} | {("c", "C"): 15, ("C", "c"): 20}


@pytest.mark.parametrize("pairs", [CODES, LETTERS], ids=["codes", "letters"])
def test_spellings_that_a_model_tells_apart_are_classes(pairs):
    assert warned(of_pairs(pairs).mcc.by)[0] == []


@pytest.mark.parametrize(
    "pairs",
    [
        {**CODES, ("us", "US"): 25},  # not told apart
        {("us", "us"): 81, ("us", "US"): 9, ("US", "us"): 9, ("US", "US"): 1},  # at random
        {("us", "us"): 40, ("US", "us"): 30, ("them", "them"): 20},  # never predicted
        {**CODES, ("no", "NO"): 9, ("NO", "no"): 9, ("yes", "YES"): 9, ("YES", "yes"): 9},
        {("us", "us"): 40, ("us", "US"): 1, ("them", "them"): 20},  # never gold
    ],
)
def test_spellings_that_no_model_tells_apart_are_said(pairs):
    [told] = warned(of_pairs(pairs).mcc.by)[0]
    assert told.startswith(f"labels {SPELLED}")
    assert ("'us'" in told) == (("no", "NO") not in pairs), "a pair that is told apart is not said"


def test_labels_that_are_named_apart_are_classes():
    log = LOG.with_columns(gold=pl.col("gold").replace({"no": "No"}), q=1 - pl.col("score"))
    both = log.filter(pl.col("gold") != "No")
    scores = {"Yes": "score", "yes": "q"}
    assert warned(lambda: both.mcc(score=scores).by(metrics="roc_auc"))[0] == []
    [told], _ = warned(lambda: log.mcc(positive="yes").by(metrics="tpr"))
    assert "'Yes' (60 rows) and 'yes' (60 rows)" in told, "one of them is named"


@pytest.mark.parametrize("weighted", [{"weight": "w"}, {"sample_weight": "w"}])
def test_rows_are_weights_unless_these_are_an_importance(weighted):
    [told], _ = warned(lambda: LOG.with_columns(w=pl.lit(2.5)).mcc(**weighted).by())
    assert f"'no' ({150 if 'weight' in weighted else 60} rows)" in told


def test_a_label_that_comes_late_is_found_without_the_text_of_all_rows():
    n = 200_000
    late = pl.DataFrame({"gold": ["a", "b"] * n, "pred": ["a", "b"] * n})
    late = pl.concat([late, pl.DataFrame({"gold": ["a"], "pred": ["A "]})])
    for ask in (late.mcc.by, late.lazy().mcc.by(ci=0.9).collect, late.mcc.confusion):
        [told], _ = warned(ask)
        assert "'pred' has 'A ' (1 row) and 'a' (200,000 rows)" in told


@pytest.mark.slow
def test_labels_that_were_counted_are_not_read_again(monkeypatch):
    from polars_mcc._counts import warnings_on_labels_and_keys  # noqa: PLC0415 - what is watched

    read = []
    labels = warnings_on_labels_and_keys.LogLabels.labels

    def watched(rows, *sides, **of):
        read.append(rows.frame.select(pl.len()).collect().item())
        return labels(rows, *sides, **of)

    monkeypatch.setattr(warnings_on_labels_and_keys.LogLabels, "labels", watched)
    log = pl.DataFrame({"gold": ["a", "b", "b"] * 5000, "pred": ["a", "a", "b"] * 5000})
    for verb, (keys, options) in {**PLAIN, **DEFERRED}.items():
        if "score" not in options and "positive" not in options and verb not in {"worst", "drift"}:
            renamed = log.with_columns(day=1, p2="gold", date=dt.date(2026, 3, 1))
            asked(renamed, verb, keys, options)
            if verb in DEFERRED:
                asked(renamed.lazy(), verb, keys, options).lazy().collect()
    assert max(read) < 5000, "only the first rows"


@pytest.mark.parametrize(
    ("log", "about", "sentence"),
    first(
        1,
        [
            (
                LOG.with_columns(pl.col("pred", "p2").str.to_uppercase()),
                {},
                "no label of 'pred' is a",
            ),
            (
                LOG.with_columns(pl.col("gold", "pred", "p2").str.to_lowercase()),
                {"positive": "Y"},
                "no scored row has",
            ),
            (LOG.with_columns(gold=pl.lit("Yes")), {}, "all labels of 'gold' are 'Yes'"),
        ],
        of_several=True,
    ),
    ids=["never met", "no positive", "one class"],
)
def test_deferred_answers_warn_of_all_that_eager_ones_do(log, about, sentence):
    if sentence.startswith("no label"):
        log = log.filter(pl.col("gold").is_in(["yes", "no"]))
    reached = 0
    for verb, (keys, options) in {**PLAIN, **DEFERRED}.items():
        if {"score", "positive"} & options.keys() or verb == "check":
            continue
        options = {**options, **about}  # noqa: PLW2901
        told, later = (
            warned(lambda v=verb, k=keys, o=options, f=frame: asked(f, v, k, o).lazy().collect())[0]
            for frame in (log, log.lazy())
        )
        has_no_metric = verb.strip() in {"classes", "confusion", "counts"}
        is_said = not (sentence.startswith("all") and has_no_metric)
        assert any(one.startswith(sentence) for one in told) == is_said, verb
        assert later == (told if verb in DEFERRED else []), verb
        reached += 1
    assert reached == 13


@pytest.mark.filterwarnings("error::polars_mcc.PredictionLogWarning")
@pytest.mark.parametrize("dtype", [pl.Int64(), pl.Boolean(), pl.Float64(), pl.Date()], ids=str)
def test_other_dtypes_are_not_looked_at(dtype):
    codes = pl.DataFrame({"gold": [0, 1, 1, 0] * 9, "pred": [0, 1, 0, 0] * 9})
    log = codes.cast(pl.Int32).cast(dtype) if dtype == pl.Date() else codes.cast(dtype)
    log.mcc.by()
    log.lazy().mcc.by(ci=0.9).collect()

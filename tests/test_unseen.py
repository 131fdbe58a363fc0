"""Nothing passes unseen: 0/0, missing gold rows, labels that never meet, NaN, 0/1 and Booleans."""

from __future__ import annotations

import datetime as dt
import math
import re
import warnings

import polars as pl
import pytest
import support
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from support import ask, first, in_turn

import polars_mcc
from polars_mcc import CheckError, PredictionLogWarning

COLLAPSED = {"gold": [1, 0, 1, 0], "pred": [0, 0, 0, 0]}
NO_POSITIVE = {"gold": [0, 0, 0, 0], "pred": [0, 1, 0, 0]}
NO_NEGATIVE = {"gold": [1, 1, 1, 1], "pred": [0, 1, 1, 1]}
FINE = {"gold": [1, 0, 1, 0], "pred": [1, 0, 1, 0]}


def slices(**tables) -> pl.DataFrame:
    """A log with a slice per name."""
    return pl.concat(
        pl.DataFrame(table).select(pl.lit(key).alias("key"), "gold", "pred")
        for key, table in tables.items()
    )


def verdicts(log: pl.DataFrame, **bars) -> dict[str, str]:
    """The verdict of each slice, whether the check passes or not."""
    try:
        judged = ask(log, "check", "key", positive=1, **bars)
    except CheckError as error:
        judged = error.judged
    return dict(judged.select("key", pl.col("verdict").cast(pl.String)).iter_rows())


LOG = slices(collapsed=COLLAPSED, no_positive=NO_POSITIVE, no_negative=NO_NEGATIVE, fine=FINE)


@in_turn(
    undefined=[0.0, 1.0, None, math.nan],
    ci=[None, 0.95],
    **{
        "metric, fails, left_out": [
            ("mcc", {"collapsed"}, {"no_positive", "no_negative"}),
            ("phi", {"collapsed"}, {"no_positive", "no_negative"}),
            ("kappa", {"collapsed"}, {"no_positive", "no_negative"}),
            ("tpr", {"collapsed"}, {"no_positive"}),
            ("fnr", {"collapsed"}, {"no_positive"}),
            ("fpr", set(), {"no_negative"}),
            ("specificity", set(), {"no_negative"}),
            ("precision", {"collapsed", "no_positive"}, set()),
            ("fdr", {"collapsed", "no_positive"}, set()),
            ("f1", {"collapsed", "no_positive"}, set()),
        ]
    },
)
def test_0_over_0_is_never_a_pass(metric, fails, left_out, undefined, ci):
    is_error = metric in {"fnr", "fpr", "fdr"}
    bars = {"max": 0.5} if is_error else {"min": 0.5}
    if ci is not None and metric == "f1":
        fails = fails - {"collapsed"}  # 0 of 2: the interval reaches 0.5
    found = verdicts(LOG, metric=metric, zero_division=undefined, ci=ci, **bars)
    surely = {key for key, verdict in found.items() if verdict == "fails"}
    if ci is None:
        assert surely == fails
    assert surely <= fails
    assert {key for key, verdict in found.items() if verdict == "not judged"} == left_out


@pytest.mark.parametrize("undefined", [0.0, 1.0, None, math.nan])
def test_rates_without_their_gold_rows_are_null(undefined):
    names = ["tpr", "fnr", "recall", "fpr", "tnr", "specificity"]
    scored = ask(LOG, "by", "key", positive=1, metrics=names, ci=0.9, zero_division=undefined)
    rows = {row["key"]: row for row in scored.to_dicts()}
    for key, missing in {"no_positive": names[:3], "no_negative": names[3:]}.items():
        for name in names:
            limits = [rows[key][f"{name}{end}"] for end in ("", "_low", "_high")]
            assert limits == [None] * 3 if name in missing else None not in limits
    classes = ask(LOG, "classes", "key", zero_division=undefined)
    assert_frame_equal(
        classes.select(pl.col("recall").is_null(), pl.col("specificity").is_null()),
        classes.select(recall=pl.col("support") == 0, specificity=pl.col("support") == pl.col("n")),
    )


def test_a_rate_of_errors_at_0_over_0_is_the_worst():
    found = ask(slices(a=COLLAPSED), "by", positive=1, metrics=["precision", "fdr", "npv", "for"])
    assert found.row(0)[1:5] == (0.0, 1.0, 0.5, 0.5)
    every = slices(a={"gold": [1, 0], "pred": [1, 1]})
    assert ask(every, "by", positive=1, metrics=["npv", "for"]).row(0)[1:3] == (0.0, 1.0)


def test_a_metric_that_no_slice_can_be_judged_by_fails_the_gate():
    log = slices(a=NO_POSITIVE, b=NO_POSITIVE)
    for labels in (pl.Boolean, pl.Int64):
        typed = log.with_columns(pl.col("gold", "pred").cast(labels))
        with pytest.raises(CheckError, match="there is no slice to judge .2 not judged"):
            typed.mcc(positive=1).check("key", max={"fnr": 0.1})
        with pytest.raises(CheckError, match="^no slice can be judged by fnr$"):
            typed.mcc(positive=1).check("key", min={"accuracy": 0.1}, max={"fnr": 0.1})
    with pytest.raises(CheckError, match="all labels of 'gold' are 0: with one gold class, MCC"):
        log.mcc.check("key", min=0.1)
    with pytest.raises(CheckError, match=r"key 'gold' is the gold label.*use classes\(\)"):
        LOG.mcc.check("gold", min=0.1)


def test_slices_that_are_not_judged_are_counted_with_the_reason():
    small = pl.concat([LOG, slices(small={"gold": [1], "pred": [1]})])
    message = (
        "1 of 2 slices fails: mcc below 0.5 or 0/0 (3 not judged: fewer than 2 rows (1), no score, "
        "or not the gold labels that it needs (2))"
    )
    with pytest.raises(CheckError, match=f"^{re.escape(message)}\n"):
        small.mcc.check("key", min=0.5, min_n=2)


def test_a_baseline_judges_what_has_a_score_in_both():
    before, after = (
        slices(a=FINE, b=FINE, c=NO_POSITIVE),
        slices(a=COLLAPSED, b=NO_POSITIVE, c=FINE),
    )
    with pytest.raises(CheckError) as raised:
        after.mcc.check("key", no_worse_than=before.mcc.counts("key"))
    assert raised.value.judged["verdict"].to_list() == ["fails", "not judged", "not judged"]
    collapsed = slices(a=COLLAPSED)
    collapsed.mcc.check("key", no_worse_than=collapsed.mcc.counts("key"))


YES = pl.DataFrame({"key": [1, 2] * 5, "gold": ["Yes", "No"] * 5, "pred": ["yes", "no"] * 5})
NEVER = (
    "no label of 'pred' is a label of 'gold', so no row is a hit: 'gold' has 'No', 'Yes'; 'pred' "
    "has 'no', 'yes'; did you mean 'No' by 'no'?"
)


@pytest.mark.parametrize("as_frame", [pl.DataFrame, pl.LazyFrame])
def test_labels_that_never_meet_do_not_pass(as_frame):
    log = as_frame(YES)
    for options in (
        {"max": {"mcc": 0.5}},
        {"min": 0, "metric": "accuracy"},
        {"no_worse_than": YES.mcc.counts("key")},
    ):
        with pytest.raises(ValueError, match=re.escape(NEVER)):
            log.mcc.check("key", **options)
    both = log.with_columns(good="gold")
    with pytest.raises(ValueError, match=re.escape(NEVER)):
        both.mcc(pred=["good", "pred"]).check("key", min={"accuracy": 0})
    with pytest.raises(ValueError, match="no label of 'pred' is a label"):
        log.with_columns(gold=pl.lit("1")).mcc.check(min={"accuracy": 0})


def test_a_model_that_is_always_wrong_is_judged():
    wrong = pl.DataFrame({"gold": ["a", "b"] * 5, "pred": ["b", "a"] * 5})
    with pytest.raises(CheckError, match="mcc below"):
        wrong.mcc.check(min=0.1)


@pytest.mark.parametrize(
    ("log", "options", "verb", "keys", "message"),
    [
        (YES, {}, "by", ["key"], NEVER),
        (YES, {}, "classes", [], NEVER),
        (YES, {}, "confusion", [], NEVER),
        (YES.with_columns(pl.concat_list("gold"), pl.concat_list("pred")), {}, "score", [], NEVER),
        (
            YES.with_columns(pred="gold"),
            {"positive": "yes"},
            "by",
            [],
            "no scored row has the positive label 'yes' in 'gold', 'pred'; the labels are 'No', 'Y",
        ),
        (LOG.filter(gold=1), {}, "by", ["key"], "all labels of 'gold' are 1: with one gold class"),
        (LOG, {}, "by", ["gold"], "key 'gold' is the gold label, so each slice has one gold class"),
        (
            LOG,
            {},
            "contrast",
            [pl.col("gold").alias("g")],
            "key 'gold' is the gold label, so each slice has",
        ),
    ],
)
def test_eager_calls_warn_of_a_log_that_has_no_score(log, options, verb, keys, message):
    with pytest.warns(PredictionLogWarning, match=re.escape(message)) as warned:
        ask(log, verb, *keys, **options)
    assert warned[0].filename == support.__file__  # where it is called


def test_what_is_computed_in_a_thread_of_our_own_warns_at_no_line():
    with pytest.warns(PredictionLogWarning, match=re.escape(NEVER)) as warned:
        YES.lazy().mcc.by("key", ci=0.95).collect()
    told = [one.filename for one in warned if one.category is PredictionLogWarning]
    assert {*told} <= {"sys", "<sys>"}


MISSPELT = {("fruad", "ok"): 10, ("ok", "fraud"): 1}
COSTS = {("fraud", "ok"): 10, ("ok", "fraud"): 1, ("fraud", None): 5}
DEAR = pl.DataFrame(
    {
        "key": [0, 0, 1, 1] * 1000,
        "gold": ["ok"] * 3998 + ["fraud"] * 2,
        "pred": ["ok", "ok"] * 1999 + ["fraud", "ok"],
    }
)
ASKED_OF_COSTS = {
    "by": lambda log, cost: log.by("key", metrics=["mcc", cost]),
    "by, ci": lambda log, cost: log.by("key", metrics=cost, ci=0.95),
    "contrast": lambda log, cost: log.contrast("key", metrics=cost),
    "gaps": lambda log, cost: log.gaps("key", metrics=cost),
    "worst": lambda log, cost: log.worst("key", metric=cost),
    "check": lambda log, cost: log.check("key", max=9, metric=cost),
    "check, gap": lambda log, cost: log.check("key", max_gap=9, metric=cost),
    "report": lambda log, cost: log.report("key", metrics=cost, format="md"),
    "kappa": lambda log, _: log.score(metrics=polars_mcc.metric.kappa(MISSPELT), ci=0.9),
}


@pytest.mark.parametrize("ask_of", ASKED_OF_COSTS.values(), ids=ASKED_OF_COSTS)
def test_a_label_of_a_table_that_no_row_has_is_said(ask_of):
    message = (
        r"^no row has labels that the table of '(cost|kappa_weighted)' names, so they count for "
        "nothing: 'fruad'; the log has labels such as 'ok'$"
    )
    cost = polars_mcc.metric.cost(MISSPELT)
    with pytest.warns(PredictionLogWarning, match=message):
        ask_of(DEAR.mcc, cost)
    if ask_of is not ASKED_OF_COSTS["by"]:  # A lazy answer without intervals does not warn.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer = ask_of(DEAR.lazy().mcc, cost)
            heard = answer.collect() if isinstance(answer, pl.LazyFrame) else answer
        said = [re.search(message, str(one.message)) for one in caught]
        assert any(said) or "table of 'cost'" in heard


@pytest.mark.filterwarnings("error::polars_mcc.PredictionLogWarning")
def test_a_table_whose_labels_occur_is_no_warning():
    for ask_of in ASKED_OF_COSTS.values():
        if ask_of is not ASKED_OF_COSTS["kappa"]:
            ask_of(DEAR.mcc, polars_mcc.metric.cost(COSTS))
    # The labels of an Enum are known to exist.
    enum = DEAR.cast(dict.fromkeys(["gold", "pred"], pl.Enum(["fraud", "ok", "new"])))
    enum.mcc.score(metrics=polars_mcc.metric.cost({("new", "ok"): 3}))


def test_integers_of_a_table_that_no_row_has_are_said():
    cost = polars_mcc.metric.cost({(2, 0): 10, (0, 1): 1})
    message = "names, so they count for nothing: 2; the log has labels such as 0, 1"
    for dtype in (pl.Int8, pl.UInt64):
        log = LOG.cast({"gold": dtype, "pred": dtype})
        with pytest.warns(PredictionLogWarning, match=message):
            log.mcc.score(metrics=cost)
        with pytest.warns(PredictionLogWarning, match=message):
            log.lazy().mcc.score(metrics=cost, ci=0.9).collect()


@pytest.mark.filterwarnings("error::polars_mcc.PredictionLogWarning")
def test_no_warning_without_need():
    ask(LOG, "by", "key")
    ask(LOG, "by", "gold", metrics="accuracy")
    ask(LOG, "classes", "gold")
    ask(LOG.filter(gold=1), "by", metrics="accuracy")
    ask(LOG.clear(), "by", positive=1)
    late = pl.DataFrame({"gold": [0] * 3000 + [1], "pred": [1] * 3000 + [1]})
    ask(late, "by", positive=1)
    with pytest.warns(PredictionLogWarning, match="key 'gold'"):
        LOG.lazy().mcc.by("gold")


def test_nan_labels_are_missing(run):
    nan = math.nan
    log = pl.DataFrame({"gold": [1.0, nan, None, 2.0, 2.0], "pred": [1.0, 1.0, nan, nan, 2.0]})
    null = log.fill_nan(None)
    for nulls in ("drop", "label"):
        for verb in ("score", "classes", "counts"):
            found, expected = (
                run(frame, lambda f, v=verb, n=nulls: ask(f, v, nulls=n)) for frame in (log, null)
            )
            assert_frame_equal(found, expected)
        expressed = log.select(polars_mcc.ExprMcc(pl.col("pred")).score("gold", nulls=nulls))
        assert expressed.item() == null.mcc(nulls=nulls).score()["mcc"].item()
    lists = log.select(pl.concat_list("gold"), pl.concat_list("pred"))
    assert_frame_equal(run(lists, lambda f: ask(f, "score")), run(null, lambda f: ask(f, "score")))
    assert log.mcc.report(format="json")  # it counts the reasons


@pytest.mark.parametrize("dtype", first(1, [pl.Int64, pl.UInt8, pl.Int128]))
def test_0_and_1_beside_booleans_are_one_pair_of_labels(run, dtype):
    log = pl.DataFrame({"gold": [0, 1, 1, 0, None], "score": [0.1, 0.9, 0.2, 0.3, 0.4]})
    log = log.with_columns(pl.col("gold").cast(dtype))
    cut = log.with_columns(pred=pl.col("score") >= 0.5)
    booleans = cut.with_columns(pl.col("gold").cast(pl.Boolean))
    for verb, options in (("by", {"metrics": ["mcc", "tpr"], "ci": 0.9}), ("counts", {})):
        expected = run(booleans, lambda f, v=verb, o=options: ask(f, v, **o))
        assert_frame_equal(run(cut, lambda f, v=verb, o=options: ask(f, v, **o)), expected)
        asked = run(cut, lambda f, v=verb, o=options: ask(f, v, positive=1, **o))
        assert_frame_equal(asked, expected)
    expression = {"pred": [pl.col("score") >= 0.5, pl.col("gold").alias("same")]}
    assert run(log, lambda f: ask(f, "score", **expression))["mcc"].to_list()[1] == 1
    assert cut.select(polars_mcc.ExprMcc(pl.col("pred")).score()).item() == pytest.approx(3**-0.5)
    baseline = run(log.with_columns(pred="gold"), lambda f: ask(f, "counts"))
    with pytest.raises(CheckError, match="mcc below the baseline"):
        cut.mcc.check(no_worse_than=baseline)


def test_an_integer_beside_booleans_is_0_or_1(run):
    log = pl.DataFrame({"deciles": [0, 1, 7], "pred": [True, False, True]})
    message = "'deciles' has the label 7, but beside Booleans only 0 and 1 are labels"
    for verb in ("score", "classes", "counts", "worst", "compare"):
        options = {"gold": "deciles", "pred": ["pred"] if verb == "compare" else "pred"}
        keys = {"worst": ["pred"], "compare": []}.get(verb, [])
        if verb == "compare":
            options["pred"] = ["pred", pl.col("pred").alias("other")]
        with pytest.raises(pl.exceptions.PolarsError, match=message):
            run(log, lambda f, v=verb, k=keys, o=options: ask(f, v, *k, **o))


@pytest.mark.parametrize(
    ("gold", "pred", "given", "advice"),
    [
        (["1", "0"], [1, 0], "pred", "as in pl.col('pred').cast(pl.String)"),
        ([1, 0], ["1", "0"], "pred", "as in pl.col('gold').cast(pl.String)"),
        ([1, 0], [0.1, 0.9], "pred", "cut the score at a threshold, as in pl.col('pred') >= 0.5"),
        ([True, False], [0.1, 0.9], pl.col("pred") * 2, "as in (...) >= 0.5"),
        (["1", "0"], [1, 0], pl.col("pred") * 1, "as in (...).cast(pl.String)"),
        ([0.5, 1.0], [1, 0], "pred", "as in pl.col('pred').cast(pl.Float64)"),
    ],
)
def test_advice_to_cast_can_be_pasted(gold, pred, given, advice):
    log = pl.DataFrame({"gold": gold, "pred": pred})
    with pytest.raises(pl.exceptions.SchemaError, match=re.escape(advice)):
        log.mcc(pred=given)
    if isinstance(given, str):
        mended = eval(advice.split("as in ")[1], {"pl": pl})  # noqa: S307 - our own words
        log.with_columns(mended).mcc.score()


def test_wide_labels(run):
    most = 2**128 - 1
    log = pl.DataFrame({"gold": pl.Series([most, 1, most], dtype=pl.UInt128), "pred": [1, 1, 0]})
    unsigned = log.with_columns(pl.col("pred").cast(pl.UInt8))
    assert run(unsigned, lambda f: f.mcc.classes())["label"].to_list() == [0, 1, most]
    with pytest.raises(pl.exceptions.PolarsError, match=f"'gold' has the label {most}, too large"):
        run(log, lambda f: f.mcc.score())


def test_score_and_limits_stand_together():
    log = pl.concat([LOG, LOG]).with_columns(old="gold", part=pl.Series([0, 1] * 16))
    assert log.mcc.by("key", ci=0.9).columns == [
        *("key", "n", "mcc", "mcc_low", "mcc_high", "mcc_se", "n_null")
    ]
    with pl.Config(tbl_width_chars=80):
        shown = str(log.mcc.by("key", ci=0.9))
    assert all(f" {name} " in shown for name in ("mcc", "mcc_low", "mcc_high"))
    limits = ["diff", "diff_low", "diff_high"]
    for answer in (
        log.mcc.contrast("key"),
        log.mcc(pred=["pred", "old"]).compare("key"),
        log.mcc.drift("key", before=pl.col("part") == 0, after=pl.col("part") == 1),
    ):
        first = answer.columns.index("diff")
        assert answer.columns[first : first + 3] == limits
    classes = log.mcc.classes(ci=0.9).columns
    first = classes.index("recall")
    assert classes[first + 1 : first + 4] == ["recall_low", "recall_high", "recall_se"]


# A random walk: labels of many dtypes, in columns of many names, in logs of many shapes.

DAYS = [dt.date(2026, 1, day) for day in (1, 2, 3)]
KINDS = [
    (("0/1", (0, 1)), [pl.Int8, pl.UInt32, pl.Int64, pl.UInt128, pl.Boolean]),
    (("integers", (0, 1, 2)), [pl.Int8, pl.UInt8, pl.Int64, pl.UInt64, pl.Int128]),
    (("floats", (-0.0, 1.0, 2.5)), [pl.Float32, pl.Float64]),
    (("text", ("no", "yes", "é")), [pl.String, pl.Categorical, pl.Enum(["é", "yes", "no"])]),
    (("days", (*DAYS,)), [pl.Date]),
]
NAMES = ["plain", "^a$", "*", "^.*$", "a, b", " ", "key:a", "gold ", "n ", "\u2028", "'", '"']


@st.composite
def walks(draw):
    """A frame, its options, and its rows as (key, gold, pred) with None for a missing label."""
    (kind, labels), dtypes = draw(st.sampled_from(KINDS))
    key, gold, pred = draw(st.lists(st.sampled_from(NAMES), min_size=3, max_size=3, unique=True))
    one = st.one_of(st.none(), st.sampled_from(labels))
    row = st.tuples(st.sampled_from([None, "x", "y"]), one, one)
    rows = draw(st.lists(row, max_size=draw(st.sampled_from([0, 1, 3, 12, 30]))))
    frame = pl.DataFrame({key: pl.Series([row[0] for row in rows], dtype=pl.String)})
    for place, name in ((1, gold), (2, pred)):
        values = [row[place] for row in rows]
        dtype = draw(st.sampled_from(dtypes))
        if kind == "floats" and draw(st.booleans()):
            values = [math.nan if value is None else value for value in values]
        if dtype == pl.Boolean:
            values = [None if value is None else bool(value) for value in values]
        frame = frame.with_columns(pl.Series(values, dtype=dtype).alias(name))
    options = {"gold": gold, "pred": pred, "positive": labels[1]}
    return frame, key, options, rows, draw(st.booleans())


def defined_by_hand(rows: list[tuple], positive: object) -> dict[str, float | int | None]:
    """The scores of a slice by their definitions; None without gold rows, or without rows."""
    scored = [(g, p) for _, g, p in rows if g is not None and p is not None]
    n, hits = len(scored), sum(g == p for g, p in scored)
    labels = {label for pair in scored for label in pair}
    t = {k: sum(g == k for g, _ in scored) for k in labels}
    p = {k: sum(q == k for _, q in scored) for k in labels}
    square_t, square_p = (n * n - sum(x * x for x in side.values()) for side in (t, p))
    both = sum(t[k] * p[k] for k in labels)
    tp = sum(g == q == positive for g, q in scored)
    gold, pred = t.get(positive, 0), p.get(positive, 0)
    return {
        "n": n,
        "n_null": len(rows) - n,
        "mcc": None
        if not n
        else (hits * n - both) / math.sqrt(square_t * square_p)
        if square_t * square_p
        else 0.0,
        "accuracy": hits / n if n else None,
        "tpr": tp / gold if gold else None,
        "fnr": 1 - tp / gold if gold else None,
        "fpr": (pred - tp) / (n - gold) if n > gold else None,
        "precision": None if not n else tp / pred if pred else 0.0,
        "is_two": len([k for k in labels if t[k]]) > 1,
        "is_one_pred": len([k for k in labels if p[k]]) < 2,
    }


METRICS = ["mcc", "accuracy", "tpr", "fnr", "fpr", "precision"]


@settings(max_examples=settings.default.max_examples // 3)
@given(walks())
def test_a_random_walk_over_names_dtypes_verbs_and_shapes(walk):
    frame, key, options, rows, is_lazy = walk
    log = frame.lazy() if is_lazy else frame
    of_key = {value: [row for row in rows if row[0] == value] for value in {row[0] for row in rows}}
    expected = {value: defined_by_hand(part, options["positive"]) for value, part in of_key.items()}

    def asked(verb: str, *keys: str, **more: object) -> pl.DataFrame:
        answer = getattr(polars_mcc.PredictionLog(log, **options), verb)(*keys, **more)
        return answer.lazy().collect() if verb != "check" else answer

    for keys, scores in (
        ([key], expected),
        ([], {None: defined_by_hand(rows, options["positive"])}),
    ):
        found = asked("by", *keys, metrics=METRICS)
        for row in found.rows():
            value, numbers = (row[0], row[1:]) if keys else (None, row)
            of_hand = [scores[value][name] for name in ("n", *METRICS, "n_null")]
            assert [*numbers] == pytest.approx(of_hand, abs=1e-12)
        assert found.height == len(scores)
    counted = asked("counts", key)
    assert counted["n"].sum() == len(rows)
    classes = asked("classes", key)
    assert classes["hits"].sum() == sum(g == p is not None for _, g, p in rows)
    contrasted = asked("contrast", key)
    assert contrasted["n"].to_list() == asked("by", key)["n"].to_list()
    _check_gate(asked, key, expected)


def _check_gate(asked, key: str, expected: dict) -> None:
    """The verdicts on mcc and fnr, by their definition."""
    try:
        judged = asked("check", key, min={"mcc": 0.2}, max={"fnr": 0.4})
        passed = True
    except CheckError as error:
        judged, passed = error.judged, False
    except ValueError as error:
        assert "no label of" in str(error) or "no scored row has the positive" in str(error)  # noqa: PT017
        return
    verdicts = dict(zip(judged[key], judged["verdict"], strict=True))
    is_judged = {"mcc": False, "fnr": False}
    for value, scores in expected.items():
        is_there = {"mcc": scores["is_two"], "fnr": scores["fnr"] is not None}
        is_judged = {name: is_judged[name] or is_there[name] for name in is_there}
        fails = is_there["mcc"] and (scores["mcc"] < 0.2 or scores["is_one_pred"])
        fails |= is_there["fnr"] and scores["fnr"] > 0.4
        wanted = "fails" if fails else "passes" if any(is_there.values()) else "not judged"
        assert verdicts[value] == wanted
    assert passed == (all(is_judged.values()) and "fails" not in verdicts.values())


def test_a_model_without_a_name_is_a_model():
    log = LOG.with_columns(pl.col("pred").alias(""))
    compared = ask(log, "compare", pred=["", "pred"])
    assert compared.select("model", "diff").rows() == [("pred", 0.0)]

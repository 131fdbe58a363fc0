"""Verbs that compare: the same columns and verdicts, whatever is asked, and one count."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats
from support import in_turn, source_of

import polars_mcc
from polars_mcc import each

END = "diff diff_low diff_high p_value p_adjusted verdict n_null"
COLUMNS = {
    "compare": "baseline metric n score reference",
    "contrast": "metric n n_reference score reference expected",
    "drift": "metric n_before n_after reference score",
    "gaps": "metric n_slices n lowest lowest_score highest highest_score ratio ratio_low "
    "ratio_high spread",
    "changes": "metric since n_before n_after reference score reference_expected expected "
    "dispersion n_untimed part_of",
    "worst": "metric n score reference expected beside p_beside loss confusion confused_gold "
    "confused_pred confused confused_rest explained_by n_tested n_untested",
}
"""What each verb has between the model and the end."""
TESTS = ["compare", "contrast", "drift", "gaps"]
EARLY = pl.col("early")
NEEDED = {
    "compare": {"baseline": "third"},
    "drift": {"before": EARLY, "after": ~EARLY},
    "worst": {"verdicts": True, "min_n": 1},
}
METRICS = ["mcc", "fnr", "accuracy", "cost(fn=10, fp=1)", "f1_macro"]


@pytest.fixture(scope="module")
def log() -> pl.DataFrame:
    rng = np.random.default_rng(6)
    gold, key = rng.integers(0, 2, 900), rng.choice(["x", "y", "z"], 900)
    is_wrong = rng.random((3, 900)) < np.stack([np.where(key == "y", 0.4, 0.1)] * 3)
    pred, other, third = np.where(is_wrong, 1 - gold, gold)
    third = np.where(rng.random(900) < 0.1, 1 - third, third)
    return pl.DataFrame(
        {
            "key": key,
            "device": rng.choice(["a", "b"], 900),
            "user": rng.integers(0, 80, 900),
            "gold": gold,
            "pred": pred,
            "other": other,
            "third": third,
            "score": pl.Series(np.where(rng.random(900) < 0.8, pred, 1 - pred) * 0.5 + 0.25),
            "early": rng.random(900) < 0.5,
        }
    ).with_columns(
        (pl.date(2026, 1, 1) + pl.duration(days=pl.int_range(pl.len()) % 30)).alias("day"),
        pl.col("gold", "pred", "other", "third").replace_strict(
            {0: "no", 1: "yes"}, return_dtype=pl.Enum(["no", "yes"])
        ),
    )


def asked(verb: str, frame, *keys, described: dict | None = None, **options):
    """A verb of a log of one model; `changes` needs a time."""
    time = {"time": "day"} if verb == "changes" else {}
    of_log = frame.mcc(positive="yes", **time, **(described or {}))
    return getattr(of_log, verb)(*keys, **NEEDED.get(verb, {}), **options)


def lazy_and_eager(ask, log: pl.DataFrame) -> pl.DataFrame:
    """The answer, which is the same of both frames, as its schema says before."""
    query = ask(log.lazy())
    found = ask(log)
    assert query.collect_schema() == found.schema
    assert_frame_equal(query.collect(), found)
    return found


def test_every_verb_that_compares_has_the_same_names_at_the_end(log):
    reached = 0
    for verb, models, keys in itertools.product(COLUMNS, (["pred"], ["pred", "other"]), (1, 2)):
        described = {"pred": models if len(models) > 1 else models[0]}
        found = lazy_and_eager(
            lambda f, v=verb, k=keys, d=described: asked(v, f, *["key", "device"][:k], described=d),
            log,
        )
        own = [] if verb == "gaps" else ["key", "device"][:keys]
        own = ["slice", "keys", *own] if verb == "worst" else own
        own += ["model"] if len(models) > 1 or verb == "compare" else []
        assert found.columns == [*own, *COLUMNS[verb].split(), *END.split()], verb
        assert found.schema["metric"] == pl.String
        assert set(found["metric"]) == {"mcc"}
        reached += 1
    assert reached == 24


@in_turn(
    verb=TESTS,
    metrics=[METRICS, METRICS[:2], ["selection_rate", "tpr"]],
    keys=[["key"], [each("key", "device", total=True)], []],
    described=[{}, {"pred": ["pred", "other"]}, {"cluster": "user"}, {"weight": "user"}],
)
def test_several_metrics_are_the_single_calls_to_the_bit(verb, metrics, keys, described, log):
    if verb in {"contrast", "gaps"}:
        keys = keys if keys and (verb == "gaps" or keys == ["key"]) else ["key"]
        described = {} if "cluster" in described else described
    found = lazy_and_eager(
        lambda f: asked(verb, f, *keys, described=described, metrics=metrics), log
    )
    alone = [asked(verb, log, *keys, described=described, metrics=metric) for metric in metrics]
    assert [*found["metric"].unique(maintain_order=True)] == [one["metric"][0] for one in alone]
    for one in alone:
        mine = found.filter(metric=one["metric"][0])
        assert_frame_equal(mine, one, check_exact=True)
    assert found.height == len(metrics) * alone[0].height
    # Of text, one metric may be computed from hashes, and others from labels: in another order.
    text = log.with_columns(pl.col("gold", "pred", "other", "third").cast(pl.String))
    of_text = asked(verb, text, *keys, described=described, metrics=metrics)
    assert_frame_equal(of_text, found, rel_tol=1e-12, abs_tol=1e-13)


@pytest.mark.parametrize("to", ["rest", "total", "expected", "best", "each", {"key": "x"}])
def test_several_metrics_to_each_reference(to, log):
    for ratio in (False, True):
        if ratio and to == "expected":
            continue
        options = {"to": to, "ratio": ratio, "within": "device"}
        metrics = ["accuracy", "fnr", *(["lr_pos"] if ratio and to != "total" else ["mcc"])]
        options["metrics"] = metrics
        found = lazy_and_eager(lambda f, o=options: asked("contrast", f, "key", **o), log)
        for metric in metrics:
            one = asked("contrast", log, "key", **options | {"metrics": metric})
            assert_frame_equal(found.filter(metric=metric), one, check_exact=True)
        effect = "ratio ratio_low ratio_high" if ratio else "diff diff_low diff_high"
        names = f"{COLUMNS['contrast']} {effect} p_value p_adjusted verdict n_null".split()
        own = [
            "device",
            "key",
            *(["key_to"] if to in ("best", "each") or to == {"key": "x"} else []),
        ]
        assert found.columns == own + names


@pytest.mark.parametrize("verb", TESTS)
def test_several_metrics_read_the_log_once(verb, log):
    source, read = source_of(log)
    found = asked(verb, source, "key", metrics=METRICS).collect()
    assert found["metric"].n_unique() == len(METRICS)
    assert len(read) == 1


def test_metrics_of_scores_have_the_same_columns(log):
    described = {"pred": None, "score": ["score", pl.col("score").sqrt().alias("root")]}
    found = lazy_and_eager(
        lambda f: f.mcc(positive="yes", **described).compare("key", metrics=["brier", "roc_auc"]),
        log,
    )
    names = ["key", "model", *COLUMNS["compare"].split(), *END.split()]
    assert (found.columns, found["baseline"].unique().item()) == (names, "score")
    for metric in ("roc_auc", "brier"):
        one = log.mcc(positive="yes", **described).compare("key", metrics=metric)
        assert_frame_equal(found.filter(metric=metric), one, check_exact=True)
    with pytest.raises(ValueError, match="some metrics are of predicted labels and some of scores"):
        log.mcc(positive="yes", score="score").contrast("key", metrics=["mcc", "brier"])


@pytest.mark.parametrize("correction", ["bh", "holm"])
@pytest.mark.parametrize("verb", TESTS)
def test_each_metric_is_corrected_alone_and_the_verdict_follows(verb, correction, log):
    metrics, keys = [*METRICS, "selection_rate"], ["key"]
    if verb == "gaps":
        keys = [each("key", "device")]
    found = asked(verb, log, *keys, metrics=metrics, correction=correction, ci=0.9)
    words = set()
    for rows in found.partition_by("metric", maintain_order=True):
        metric, p = rows["metric"][0], rows["p_value"].to_numpy()
        if correction == "bh":
            wanted = stats.false_discovery_control(p)
        else:
            order = np.argsort(p)
            wanted = np.empty(len(p))
            wanted[order] = np.minimum(
                np.maximum.accumulate(np.sort(p) * np.arange(len(p), 0, -1)), 1
            )
        assert rows["p_adjusted"].to_list() == pytest.approx(wanted.tolist(), rel=1e-12)
        for row in rows.iter_rows(named=True):
            word = "not sure"
            if row["p_adjusted"] < 1 - 0.9:
                is_less = metric in {"fnr", "cost"}
                word = "better" if (row["diff"] > 0) != is_less else "worse"
                word = "differs" if metric == "selection_rate" else word
                word = "gap" if verb == "gaps" else word
            assert row["verdict"] == word, row
            words.add(word)
    assert words >= {"gaps": {"gap", "not sure"}}.get(
        verb, {"better", "worse"} if verb == "contrast" else set()
    )


def test_a_metric_of_errors_and_its_opposite_say_the_same(log):
    """More of tpr is better, and less of fnr: the same slices are better, and as surely."""
    found = asked("contrast", log, "key", metrics=["tpr", "fnr"])
    tpr, fnr = (found.filter(metric=name) for name in ("tpr", "fnr"))
    assert tpr["verdict"].to_list() == fnr["verdict"].to_list()
    assert {"better", "worse"} >= {*tpr["verdict"]} - {"not sure"}
    assert tpr["p_adjusted"].to_list() == pytest.approx(fnr["p_adjusted"].to_list())


@pytest.mark.parametrize("verb", TESTS)
def test_a_small_slice_is_shown_not_judged_and_does_not_count_as_a_test(verb, log):
    tiny = log.head(40).with_columns(key=pl.lit("tiny"))
    whole = pl.concat([log, tiny])
    if verb == "gaps":  # A set with one large slice has no gap.
        found = asked(verb, log, each("key", pl.lit(1).alias("one")), metrics=["mcc", "fnr"])
        assert found["verdict"].to_list()[2:] == ["not judged"] * 2
        assert found["p_adjusted"].to_list()[2:] == [None] * 2
        return
    metrics = ["accuracy", "fnr"]
    found, every = (
        asked(verb, whole, "key", metrics=metrics, min_n=min_n).filter(metric="accuracy")
        for min_n in (100, 1)
    )
    small, large = found.filter(key="tiny"), found.filter(pl.col("key") != "tiny")
    assert small.select("verdict", "p_value", "p_adjusted").row(0) == ("not judged", None, None)
    shown = ["score", "reference", "diff", "diff_low", "diff_high"]
    assert_frame_equal(found.select(shown), every.select(shown))
    wanted = stats.false_discovery_control(large["p_value"].to_numpy())
    assert large["p_adjusted"].to_list() == pytest.approx(wanted.tolist())
    assert every.filter(key="tiny")["verdict"].item() != "not judged"
    with pytest.raises(ValueError, match="min_n must be"):
        asked(verb, whole, "key", min_n=0)


def test_a_rate_needs_half_as_many_rows_of_its_own(log):
    """With 60 of 90 rows of x positive, fnr is judged up to min_n=90, and fpr up to 60."""
    few = log.filter(key="x").group_by("gold").agg(pl.all().head(60)).explode(pl.exclude("gold"))
    rare = few.filter((pl.col("gold") == "yes") | (pl.int_range(pl.len()).over("gold") < 30))
    both = pl.concat([rare, log.filter(key="y").select(rare.columns)])
    for verb in ("contrast", "compare"):
        for min_n in (90, 91):
            found = asked(verb, both, "key", metrics=["accuracy", "fnr"], min_n=min_n)
            is_judged = (found.filter(key="x")["verdict"] != "not judged").to_list()
            assert is_judged == [min_n == 90] * 2
        rates = asked(verb, both, "key", metrics="fpr", min_n=61).filter(key="x")
        assert rates["verdict"].item() == "not judged"
        rates = asked(verb, both, "key", metrics="fpr", min_n=59).filter(key="x")
        assert rates["p_value"].item() is not None


@pytest.mark.parametrize(
    "verb", [verb for verb in COLUMNS if verb != "drift"]
)  # A period without rows is an error.
def test_a_log_without_rows_has_the_same_columns(verb, log):
    metrics = {"metrics": ["mcc", "fnr"]} if verb in TESTS else {}
    found = lazy_and_eager(lambda f: asked(verb, f.clear(), "key", **metrics), log)
    assert found.height == (2 if verb == "gaps" else 0)
    full = asked(verb, log, "key", **metrics)
    assert found.schema == full.schema


def test_a_key_named_like_a_column_is_refused_with_the_way_out(log):
    reached = 0
    for verb, columns in COLUMNS.items():
        for name in (*columns.split(), *END.split()):
            if verb == "gaps" or (verb, name) == ("changes", "since"):
                continue  # A gap has no column of its keys.
            renamed = log.with_columns(pl.col("key").alias(name))
            with pytest.raises(
                pl.exceptions.DuplicateError,
                match=rf"key '{name}' .* rename it, as in .*{name}_key",
            ):
                asked(verb, renamed, name)
            reached += 1
    assert reached == 77
    with pytest.raises(pl.exceptions.DuplicateError, match="key 'lowest_score'"):
        log.with_columns(lowest_score="device").mcc.gaps("key", within="lowest_score")
    free = asked("contrast", log.rename({"key": "baseline"}), "baseline")
    assert free.columns[:2] == ["baseline", "metric"]


def test_a_baseline_of_counts_has_the_columns_of_drift(log):
    before, after = (log.filter(one).mcc(positive="yes") for one in (EARLY, ~EARLY))
    for metric in ("mcc", "fnr", "accuracy"):
        counts = before.counts("key")
        try:
            judged = after.check("key", no_worse_than=counts, metric=metric, ci=0.95)
        except polars_mcc.CheckError as error:
            judged = error.judged
        names = [*COLUMNS["drift"].split(), *END.split()[:3], "n_null"]
        assert judged.columns == ["key", *names, "p_adjusted", "failed", "verdict"]
        found = asked("drift", log, "key", metrics=metric)
        assert_frame_equal(judged.select("key", *names), found.select("key", *names))


def test_a_metric_registered_without_a_better_side_differs(log):
    def said_yes(col):
        return (col("n") * (col("pred") == "yes")).sum() / col("n").sum()

    polars_mcc.register_metric("said_yes", said_yes, range=(0, 1), less_is_better=None)
    far = log.with_columns(pred=pl.when(pl.col("key") == "x").then(pl.lit("no")).otherwise("pred"))
    found = far.mcc(positive="yes").contrast("key", metrics=["said_yes", "selection_rate"])
    assert {*found.filter(key="x")["verdict"]} == {"differs"}


def test_a_chart_of_several_metrics_has_a_colour_for_each(log):
    found = asked("contrast", log, "key", metrics=["mcc", "fnr"])
    drawn = polars_mcc.plot.differences(found).to_dict()
    rows = next(rows for rows in drawn["datasets"].values() if len(rows) == 6)
    assert {row["model"] for row in rows} == {"mcc", "fnr"}
    assert {row["slice"] for row in rows} == {"x", "y", "z"}

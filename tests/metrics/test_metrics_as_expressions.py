"""The expression computes each metric of labels as `by` does, to the last bit."""

from __future__ import annotations

import datetime as dt
import io
import random
import warnings

import polars as pl
import pytest
from sklearn import metrics as sk
from support import LABELS, in_turn

import polars_mcc
from polars_mcc._metrics import registry
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.registry import BUILT_IN_METRICS, find_metric

score = polars_mcc.ExprMcc(pl.col("pred")).score
OWN = {
    "least": lambda col: col("recall").min(),
    "apart": lambda col: (col("n") * (col("gold") != col("pred"))).sum() / col("n").sum(),
    "largest": lambda col: col("label").drop_nulls().max(),
    "spread": lambda col: (col("f1") * col("support")).sum() - col("mcc").mean(),
}
DTYPES = [pl.String(), pl.Boolean(), pl.Int64(), pl.Date(), pl.Enum(LABELS[pl.String()])]
DTYPES += [pl.Categorical(), pl.UInt8(), pl.Float64(), pl.UInt64()]
SOME = ["f1_macro", "accuracy", "tpr", "tp", "chi2", "cramers_v", "mcc_min", OWN["least"]]


def log_of(dtype: pl.DataType, seed: int, rows: int = 250) -> pl.DataFrame:
    rng = random.Random(seed)
    labels = list(dict.fromkeys(LABELS[dtype]))
    gold = [rng.choice([*labels, None]) for _ in range(rows)]
    pred = [g if rng.random() < 0.5 else rng.choice([*labels, None]) for g in gold]
    start = dt.datetime(2026, 1, 1)
    return pl.DataFrame(
        {
            "key": [rng.choice("xyz") for _ in gold],
            "gold": pl.Series(gold, dtype=dtype),
            "pred": pl.Series(pred, dtype=dtype),
            "integer": [rng.choice([0, 1, 2, 7, None]) for _ in gold],
            "float": [rng.random() * 10 for _ in gold],
            "ts": [start + dt.timedelta(hours=7 * i) for i in range(rows)],
        }
    ).vstack(
        pl.DataFrame({"key": ["alone"], "gold": [labels[0]], "pred": [labels[0]]})
        .select(
            "key",
            pl.col("gold", "pred").cast(dtype),
            integer=1,
            float=0.1,
            ts=start + dt.timedelta(9e3),
        )
        .cast({"integer": pl.Int64, "ts": pl.Datetime("us")})
    )


def asked() -> dict[str, Metric]:
    """Every metric of labels, by name, with those of a user."""
    names = [metric.name for metric in BUILT_IN_METRICS if not metric.is_of_scores]
    return {name: find_metric(name) for name in [*names, *OWN]}


@pytest.fixture(autouse=True)
def own_metrics(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTRY", {**registry._REGISTRY})
    for name, definition in OWN.items():
        polars_mcc.register_metric(name, definition)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", polars_mcc.PredictionLogWarning)
        yield


@in_turn(
    dtype=DTYPES,
    weight=[None, "integer", "float"],
    nulls=["drop", "label"],
    zero_division=[0.0, None, 0.25],
    listed=[False, True],
)
def test_every_metric_is_that_of_by(dtype, weight, nulls, zero_division, listed):
    labels = list(dict.fromkeys(LABELS[dtype]))
    log = log_of(dtype, seed=len(str(dtype)))
    described = log.mcc(weight=weight, nulls=nulls, zero_division=zero_division, positive=labels[1])
    options = {"weight": weight, "nulls": nulls, "zero_division": zero_division}
    options |= {"positive": labels[1], "labels": labels if listed else None}
    kinds: dict[str, list[str]] = {}
    for name, metric in asked().items():
        kinds.setdefault(metric.labels_needed, []).append(name)
    assert len(kinds) == 3
    # Each metric has each dtype and each other value in some case. Plans of 36 pairs take long.
    step = 6 if listed and weight == "float" else 3
    start = DTYPES.index(dtype) + [0.0, None, 0.25].index(zero_division)
    kinds = {kind: names[start % min(step, len(names)) :: step] for kind, names in kinds.items()}
    for names in kinds.values():  # `by` keeps labels for all metrics as one of them needs them.
        found = log.group_by("key").agg(score(metric=name, **options).alias(name) for name in names)
        expected = described.by("key", metrics=names).select("key", *names)
        for name in names:
            both = found.sort("key")[name], expected[name]
            assert both[0].equals(both[1], null_equal=True), (name, *both)
            assert both[0].dtype == both[1].dtype, name


@in_turn(dtype=DTYPES[1:4], weight=[None, "float"], metric=SOME)
def test_every_context(dtype, weight, metric, run):
    log = log_of(dtype, seed=3, rows=60)
    positive = LABELS[dtype][1]
    value = score(metric=metric, positive=positive, weight=weight).alias("score")

    def by(rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
        described = rows.mcc(positive=positive, weight=weight)
        return described.by(*keys, metrics=metric).rename({find_metric(metric).name: "score"})

    slices = by(log, "key").select("key", "score")
    assert run(log, lambda f: f.group_by("key").agg(value).sort("key")).equals(slices)
    over = run(log, lambda f: f.select("key", value.over("key")))
    assert over.equals(log.select("key").join(slices, on="key", how="left", maintain_order="left"))
    assert run(log, lambda f: f.select(value)).item() == by(log)["score"].item()
    daily = run(log, lambda f: f.group_by_dynamic("ts", every="2d").agg(value))
    rolled = run(log, lambda f: f.rolling("ts", period="3d").agg(value))
    as_column = run(log, lambda f: f.select(value.rolling("ts", period="3d")))
    assert as_column["score"].equals(rolled["score"], null_equal=True)
    ends = [(daily, dt.timedelta(0), dt.timedelta(2), "left")]
    ends += [(rolled, dt.timedelta(3), dt.timedelta(0), "right")]
    for found, before, after, closed in ends:
        for ts, number in found.select("ts", "score").rows()[::20]:
            window = log.filter(pl.col("ts").is_between(ts - before, ts + after, closed=closed))
            assert number == by(window)["score"].item(), (ts, window)


@pytest.mark.parametrize("keys", [["key"], []])
def test_by_adds_up_classes_in_one_way(keys):
    """All engines give the same last bit, and a slice has the score of its rows alone."""
    log = log_of(pl.String(), seed=8, rows=2000)
    names = ["balanced_accuracy", "f1_macro", "f1_weighted", "mcc_macro", "chi2", "mutual_info"]
    query = log.lazy().mcc.by(*keys, metrics=names)
    answer = query.collect(engine="streaming")
    assert query.collect(engine="in-memory").equals(answer)
    for key in ("x", "y", "z") if keys else ():
        alone = log.filter(pl.col("key") == key).mcc.score(metrics=names)
        assert alone.select(names).equals(answer.filter(pl.col("key") == key).select(names))


def test_other_libraries_agree():
    log = log_of(pl.String(), seed=5).drop_nulls()
    gold, pred, weight = (log[name].to_list() for name in ("gold", "pred", "float"))
    expected = {
        "accuracy": sk.accuracy_score(gold, pred, sample_weight=weight),
        "balanced_accuracy": sk.balanced_accuracy_score(gold, pred, sample_weight=weight),
        "kappa": sk.cohen_kappa_score(gold, pred, sample_weight=weight),
        "f1_macro": sk.f1_score(gold, pred, average="macro", sample_weight=weight),
        "f1_weighted": sk.f1_score(gold, pred, average="weighted", sample_weight=weight),
        "mcc": sk.matthews_corrcoef(gold, pred, sample_weight=weight),
        "recall": sk.recall_score(gold, pred, labels=["bee"], average=None, sample_weight=weight)[
            0
        ],
        "least": min(sk.recall_score(gold, pred, average=None, sample_weight=weight)),
    }
    for labels in (None, LABELS[pl.String()]):
        of_all = (
            score(metric=name, positive="bee", weight="float", labels=labels).alias(name)
            for name in expected
        )
        found = log.select(of_all).row(0, named=True)
        assert found == pytest.approx({name: float(x) for name, x in expected.items()}, rel=1e-12)
    plain = log.select(score(metric="mutual_info")).item()
    assert plain == pytest.approx(sk.mutual_info_score(gold, pred), rel=1e-12)


def test_sums_suffice_for_one_class(tmp_path):
    """They stream, although the labels are not listed."""
    log_of(pl.String(), seed=1).write_parquet(tmp_path / "log.parquet")
    log = pl.scan_parquet(tmp_path / "log.parquet")
    for metric in ("tpr", "accuracy", "phi"):
        query = log.group_by("key").agg(score(metric=metric, positive="bee", weight="integer"))
        plan = query.show_graph(engine="streaming", plan_stage="physical", raw_output=True)
        assert plan is not None
        assert "in-memory-map" not in plan, metric


def test_a_plan_can_be_sent():
    log = log_of(pl.String(), seed=1)
    query = (
        log.lazy().group_by("key").agg(score(metric="f1_macro"), least=score(metric=OWN["least"]))
    )
    received = pl.LazyFrame.deserialize(io.BytesIO(query.serialize())).sort("key")
    assert received.collect().equals(query.sort("key").collect())


def test_without_rows_a_count_is_0(run):
    log = log_of(pl.String(), seed=1).clear()
    for labels in (None, ["ant", "bee"]):
        query = [
            score(metric=metric, positive="bee", labels=labels).alias(str(place))
            for place, metric in enumerate(["tp", "f1_macro", "chi2", "accuracy"])
        ]
        assert run(log, lambda f, q=query: f.select(q)).row(0) == (0, None, None, None)


def test_errors(run):
    log = log_of(pl.String(), seed=1)
    with pytest.raises(ValueError, match=r"'roc_auc' is of scores.*frame.mcc\(score=...\).by"):
        score(metric="roc_auc")
    with pytest.raises(ValueError, match="no metric 'f1_makro'; did you mean 'f1_macro'"):
        score(metric="f1_makro")
    with pytest.raises(TypeError, match=r"'recall' is an expression.* pass a function"):
        score(metric=pl.col("recall").min())
    with pytest.raises(TypeError, match="metric must be one name"):
        score(metric=["mcc", "f1_macro"])
    positive = r"say which label is positive, as in score\(positive='fraud'\); the labels are Str"
    with pytest.raises(pl.exceptions.SchemaError, match=positive):
        run(log, lambda f: f.select(score(metric="tpr")))
    with pytest.raises(pl.exceptions.SchemaError, match="positive=3 does not have the dtype"):
        run(log, lambda f: f.select(score(metric="tpr", positive=3)))
    with pytest.raises(pl.exceptions.SchemaError, match="has a value for each class"):
        run(log, lambda f: f.select(score(metric=lambda col: col("recall"))))
    for metric in ("accuracy", "f1_macro", "chi2"):
        for weight in (None, "float"):
            query = score(metric=metric, labels=["ant", "bee"], weight=weight)
            with pytest.raises(pl.exceptions.InvalidOperationError, match="leave out the gold or"):
                run(log, lambda f, q=query: f.select(q))
        wrong = score(metric=metric, weight=-pl.col("float"))
        with pytest.raises(pl.exceptions.InvalidOperationError, match="weight 'float' has or adds"):
            run(log, lambda f, q=wrong: f.select(q))


def test_a_series_takes_the_same_metrics():
    log = log_of(pl.String(), seed=2)
    gold, pred = log["gold"], log["pred"]
    for metric in [*SOME, pl.col("recall").min()]:
        name = find_metric(metric).name
        expected = log.mcc(positive="bee").score(metrics=metric)[name].item()
        assert pred.mcc.score(gold, metric=metric, positive="bee") == expected
    with pytest.raises(ValueError, match="'brier' is of scores"):
        pred.mcc.score(gold, metric="brier")
    with pytest.raises(ValueError, match="say which label is positive"):
        pred.mcc.score(gold, metric="tpr")


@in_turn(
    dtype=DTYPES,
    weight=[None, "integer"],
    asked=["f_beta(2)", "f_beta(0.5, macro)", "cost(fn=10, fp=1)", "costs", "quadratic", "linear"],
)
def test_metrics_with_parameters_are_those_of_by(dtype, weight, asked):
    labels = list(dict.fromkeys(LABELS[dtype]))
    log = log_of(dtype, seed=5)
    made = asked
    if asked == "costs":
        made = polars_mcc.metric.cost({(labels[0], labels[1]): 7, (labels[1], labels[0]): 2})
    elif asked in {"quadratic", "linear"}:
        made = polars_mcc.metric.kappa(asked, order=labels)
    options = {"positive": labels[1], "weight": weight}
    found = log.group_by("key").agg(value=score(metric=made, **options)).sort("key")
    expected = log.mcc(**options).by("key", metrics=made)
    assert found["value"].to_list() == expected.to_series(2).to_list()


def test_a_metric_of_ordered_labels_needs_the_order():
    log = pl.DataFrame({"gold": ["a", "b"], "pred": ["a", "a"]})
    with pytest.raises(pl.exceptions.SchemaError, match="needs the order of the labels"):
        log.select(score(metric="kappa(linear)"))

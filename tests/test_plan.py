"""The query plan: one lazy scan of native nodes, ready to run elsewhere.

Intervals and tests are computed from counts in one deferred step. The counts have such a plan.
"""

from __future__ import annotations

import datetime as dt
import io
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support import NAMES, first, log_of

import polars_mcc
from polars_mcc import bins, cube, each, trailing

FAMILY = polars_mcc.metrics()
METRICS = FAMILY.filter(pl.col("from") != "scores")["metric"].to_list()
OF_SCORES = FAMILY.filter(pl.col("from") == "scores")["metric"].to_list()
PROBABILITY = pl.col("ms") / 2


def of_scores(lf: pl.LazyFrame):
    return lf.mcc(score=[pl.col("ms") / 2, (pl.col("w") / 3).alias("s")], positive="ant")


NATIVE = {
    "by": lambda lf: lf.mcc.by("key"),
    "models": lambda lf: lf.mcc(pred=["pred", "other"]).by("key"),
    "weight": lambda lf: lf.mcc(weight="w").by("key"),
    "score": lambda f: f.mcc.score(),
    "counts": lambda lf: lf.mcc.counts("key"),
    "classes": lambda lf: lf.mcc.classes("key"),
    "confusion": lambda lf: lf.mcc.confusion("key", labels=NAMES),
    "long": lambda lf: lf.mcc.confusion("key", labels=NAMES, long=True),
    "cells": lambda lf: lf.mcc.confusion("key", long=True, normalize="pred"),
    "confusions": lambda lf: lf.mcc.confusion("key", top=2),
    "metrics": lambda lf: lf.mcc(positive="ant").by("key", metrics=METRICS),
    "of scores": lambda lf: lf.mcc(score=PROBABILITY, positive="ant").by("key", metrics=OF_SCORES),
    "averages": lambda lf: lf.mcc.by("key", metrics=["f1_macro", "kappa"]),
    "cost": lambda lf: lf.mcc.by("key", metrics=(pl.col("gold") != pl.col("pred")).mean()),
    "own": lambda lf: lf.mcc.by("key", metrics=pl.col("label").max().alias("last")),
    "each": lambda lf: lf.mcc.by(each("key", "w", "ms", total=True)),
    "cube": lambda lf: lf.mcc.by(cube("key", "w"), long=True),
    "windows": lambda lf: lf.mcc.by("key", trailing("day", "7d", every="1d")),
    "curve": lambda lf: lf.mcc(score="ms", positive="ant").curve("key"),
    "grid": lambda lf: lf.mcc(score="ms", positive="ant").curve("key", thresholds=3),
    "best": lambda lf: lf.mcc(score=["ms", "w"], positive="ant").best_threshold("key"),
}
"""Questions that are one native plan."""

DEFERRED = {
    "metrics of all": lambda lf: lf.mcc(positive="ant").score(metrics=METRICS, ci=0.95),
    "sure of scores": lambda lf: lf.mcc(score=PROBABILITY, positive="ant").by(
        "key", metrics=OF_SCORES, ci=0.95
    ),
    "compare scores": lambda lf: lf.mcc(score=[PROBABILITY, "w"], positive="ant").compare(
        "key", metrics="roc_auc"
    ),
    "interval": lambda lf: lf.mcc.by("key", ci=0.95),
    "fisher": lambda lf: lf.mcc(sample_weight="w").by("key", ci=0.95, method="fisher"),
    "clusters": lambda lf: lf.mcc(cluster="ms").by("key", ci=0.95),
    "sure classes": lambda lf: lf.mcc.classes("key", ci=0.95),
    "compare": lambda lf: lf.mcc(pred="other").compare("key", baseline="pred"),
    "compare models": lambda lf: lf.mcc(pred=["other", "gold"]).compare("key", baseline="pred"),
    "sure cube": lambda lf: lf.mcc.by(cube("key", "w"), ci=0.95, long=True),
    "sure windows": lambda lf: lf.mcc.by(trailing("day", "7d", every="1d"), ci=0.95),
    "contrast": lambda lf: lf.mcc.contrast("key", metrics="f1_macro"),
    "gaps": lambda lf: lf.mcc.gaps(each("key", "other"), metrics=["mcc", "f1_macro"], within="w"),
    "changes": lambda lf: lf.mcc(time="day").changes(each("key", "other")),
    "contrast of total": lambda lf: lf.mcc.contrast("key", to="total", within="w"),
    "drift": lambda lf: lf.mcc.drift("key", before=pl.col("ms") < 2, after=pl.col("ms") > 1),
    "calibration": lambda lf: of_scores(lf).calibration("key", bins=2),
    "calibration of clusters": lambda lf: of_scores(lf)(cluster="ms").calibration("key"),
}
"""Questions with an interval or a test: counts, and one deferred step."""

VERBS = NATIVE | DEFERRED


EACH_VERB = pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
EACH_NATIVE = pytest.mark.parametrize("verb", NATIVE.values(), ids=NATIVE)
EACH_DEFERRED = pytest.mark.parametrize("verb", DEFERRED.values(), ids=DEFERRED)
ENUM = pl.Enum(NAMES)


@pytest.fixture
def log(tmp_path):
    rows = log_of([("x", 0, 0), ("x", 1, 0), ("y", 1, None), (None, 2, 2)])
    rows = rows.with_columns(
        other="gold", w=2, ms=pl.Series([1, 2, 1, 2]), day=pl.lit(dt.date(2026, 3, 1))
    )
    rows.write_parquet(tmp_path / "log.parquet")
    return pl.scan_parquet(tmp_path / "log.parquet")


@EACH_NATIVE
def test_one_scan_of_native_nodes(log, verb):
    plan = verb(log).explain()
    assert plan.count("Parquet SCAN") == 1
    assert "python" not in plan.lower()
    assert "map_batches" not in plan


def test_only_the_needed_columns_are_read(log):
    assert "PROJECT 3/7 COLUMNS" in log.mcc.by("key").explain()
    assert "PROJECT 4/7 COLUMNS" in VERBS["models"](log).explain()
    assert "PROJECT 2/7 COLUMNS" in log.mcc.score().explain()


def test_filters_go_into_the_scan(log):
    before = log.filter(pl.col("ms") > 0).mcc.by("key")
    assert 'SELECTION: col("ms") > 0' in before.explain()
    after = log.mcc.by("key").filter(pl.col("key") == "x")
    assert 'SELECTION: col("key") == "x"' in after.explain()
    assert after.collect().rows() == [("x", 2, 0.0, 0)]


def grouped_by(query: pl.LazyFrame) -> str:
    """The columns of the first group_by that runs, which is the last one in the plan."""
    [*_, columns] = re.findall(r"BY \[(.*)\]$", query.explain(), flags=re.MULTILINE)
    return columns


def test_the_reduction_follows_from_the_schema(log):
    """Rows are grouped by class, not by pair, and by the fewest and smallest columns possible."""
    numbered = log.with_columns(number=1, is_gold=True, is_pred=False)
    by_columns = 'col("key:key"), col("label")'
    assert grouped_by(log.mcc.by("key")) == by_columns
    assert grouped_by(log.mcc.classes("key")) == by_columns
    assert grouped_by(log.mcc.score()) == 'col("label")'
    narrow = numbered.with_columns(
        pl.col("number").cast(pl.Int8), pl.col("gold", "pred").cast(ENUM)
    )
    assert grouped_by(narrow.mcc.by("number")) == 'col("key:number"), col("label")'
    by_pair = 'col("key:key"), col("gold"), col("pred")'
    assert grouped_by(log.mcc.counts("key")) == by_pair
    assert grouped_by(log.mcc(weight="w").by("key")) == by_pair
    of_booleans = grouped_by(numbered.mcc(gold="is_gold", pred="is_pred").by("key"))
    assert of_booleans == by_pair, "there are only four pairs"
    models = log.mcc(pred=["pred", "other"]).by("key").explain()
    assert models.count('BY [col("key:key"), col("label")]') == 1, "the gold labels of all, once"


def test_text_labels_are_hashed_where_their_names_are_not_asked_for(log):
    assert log.mcc.by("key").explain().count(".hash()") == 2
    assert log.mcc(pred=["pred", "other"]).by("key").explain().count(".hash()") == 3
    assert ".hash()" not in log.mcc.classes("key").explain()
    enum = log.with_columns(pl.col("gold", "pred").cast(ENUM))
    assert ".hash()" not in enum.mcc.by("key").explain()


STREAMING = {
    *("filter", "group-by", "multi-scan", "multiplexer", "reduce", "scalar-window", "select"),
    *("sort", "unordered-union", "with-columns"),
}
OF_SETS = {"ordered-union", "cross-join", "equi-join", "in-memory-source"}
"""Of several sets of keys and of windows: their names, and the parts that windows consist of."""


def steps_of(query: pl.LazyFrame) -> set[str]:
    """The steps that the streaming engine takes."""
    physical = query.show_graph(
        engine="streaming", plan_stage="physical", raw_output=True, show=False
    )
    return set(re.findall(r'label="([a-z-]+)', physical))


@pytest.mark.parametrize("verb", ["by", "models", "score", "counts", "classes"])
def test_every_node_streams(log, verb):
    assert steps_of(VERBS[verb](log)) <= STREAMING


@EACH_NATIVE
def test_a_plan_can_be_serialised(log, verb):
    query = verb(log)
    sent = query.serialize()
    assert b"polars_mcc" not in sent, "no reference to a Python function, here or there"
    received = pl.LazyFrame.deserialize(io.BytesIO(sent))
    assert received.collect().equals(query.collect())


def nodes_of(query: pl.LazyFrame) -> set[str]:
    """The kinds of nodes of a plan, as Polars shows them to other engines."""
    plan, found = query._ldf.visit(), set()
    waiting = [plan.get_node()]
    while waiting:
        plan.set_node(waiting.pop())
        try:
            node = plan.view_current_node()
        except NotImplementedError as error:  # for nodes not shown, such as Python functions
            found.add(str(error))
        else:
            kind = type(node).__name__
            found.add(f"{kind} {node.function[0]}" if kind == "MapFunction" else kind)
        waiting += plan.get_inputs()
    return found


# The nodes that polars-cloud names (scans, joins, group_bys, sorts), and row-by-row nodes.
DISTRIBUTED = {
    *("Scan", "GroupBy", "Join", "Sort", "Union", "Cache"),
    *("Select", "HStack", "SimpleProjection", "Filter"),
    *("MapFunction unpivot", "MapFunction explode"),
    "nested loop join",  # of a few rows
}


@EACH_NATIVE
def test_every_node_can_be_distributed(log, verb):
    assert nodes_of(verb(log)) <= DISTRIBUTED | {"DataFrameScan"}  # names of models and keys


@pytest.fixture
def collected(monkeypatch) -> list[tuple[pl.LazyFrame, str]]:
    """The queries of files that are collected, each with its engine."""
    found = []
    collect = pl.LazyFrame.collect

    def noted(self, *, engine="auto", **options):
        if "Parquet SCAN" in self.explain():
            found.append((self, engine))
        return collect(self, engine=engine, **options)

    monkeypatch.setattr(pl.LazyFrame, "collect", noted)
    return found


@EACH_DEFERRED
def test_an_interval_is_one_step_after_native_counts(log, verb, collected):
    query = verb(log)
    plan = query.explain()
    assert plan.count("PYTHON SCAN") == 1
    assert "Parquet SCAN" not in plan
    assert collected == [], "nothing is counted before it is asked"
    query.collect()
    [(counts, engine), *again] = collected
    assert engine == "streaming"
    for query, _ in again:  # The first rows, for the text of labels; of scores, the labels alone.
        assert "SLICE" in query.explain() or "PROJECT 1/7 COLUMNS" in query.explain()
    assert len(again) <= 1
    assert counts.explain().count("Parquet SCAN") == 1
    assert nodes_of(counts) <= DISTRIBUTED | {"DataFrameScan"}
    assert steps_of(counts) <= STREAMING | OF_SETS


@pytest.mark.parametrize("options", [{}, {"positive": 1}, {"pred": ["pred", "other"]}], ids=str)
def test_a_sound_log_of_numbers_is_not_read_again(log, collected, options):
    codes = pl.col("gold", "pred", "other").replace_strict({"ant": 0, "bee": 1, "cat": 2})
    codes = log.with_columns(codes.cast(pl.Int8))
    codes.mcc(**options).by("key", metrics=["mcc", "accuracy"], ci=0.95).collect()
    assert len(collected) == 1


def test_the_counts_of_an_interval_read_only_what_they_need(log, collected):
    log.filter(pl.col("ms") > 0).mcc.by("key", ci=0.95).collect()
    [(counts, _), _] = collected
    assert "PROJECT 4/7 COLUMNS" in counts.explain(), "the filter needs one of them"
    assert 'SELECTION: col("ms") > 0' in counts.explain()


def test_a_filter_of_the_answer_is_not_pushed_into_a_deferred_step(log, collected):
    query = log.mcc.by("key", ci=0.95)
    some = query.filter(pl.col("key") == "x").collect()
    [(counts, _), _] = collected
    assert "SELECTION" not in counts.explain()
    assert_frame_equal(some, query.collect().filter(pl.col("key") == "x"))


POSITIVE = {"score": PROBABILITY, "positive": "ant"}
EARLY, LATE = pl.col("ms") < 2, pl.col("ms") > 1
# The options of the log; the keys of the counts; and the question, which is the same of both.
REFUSED = {
    "by": ({}, ["key"], lambda log: log.by("key", ci=0.95)),
    "score": ({}, [], lambda log: log.score(ci=0.95)),
    "models": ({"pred": ["pred", "other"]}, ["key"], lambda log: log.by("key", ci=0.95)),
    "clusters": ({"cluster": "ms"}, ["key", "ms"], lambda log: log.by("key", ci=0.95)),
    "classes": ({}, ["key"], lambda log: log.classes("key", ci=0.95)),
    "calibration": (POSITIVE, ["key", "ms"], lambda log: log.calibration("key")),
    "of scores": (
        POSITIVE,
        ["key", "ms"],
        lambda log: log.by("key", metrics=["roc_auc", "brier"], ci=0.95),
    ),
    "compare": ({}, ["key", "other"], lambda log: log.compare("key", baseline="other")),
    "drift": ({}, ["key", "ms"], lambda log: log.drift("key", before=EARLY, after=LATE)),
    "contrast": ({}, ["key"], lambda log: log.contrast("key")),
    "gaps": ({}, ["key"], lambda log: log.gaps("key")),
    "changes": ({"time": "day"}, ["key", "day"], lambda log: log.changes("key")),
    "worst": ({}, ["key"], lambda log: log.worst("key", min_n=1, verdicts=True)),
    "check": (
        {},
        ["key"],
        lambda log: log.check("key", metric="accuracy", min=0.0, min_n=1, ci=0.95),
    ),
}


@pytest.mark.parametrize("verb", first(4, REFUSED))
def test_an_interval_is_asked_of_the_counts_of_a_portable_plan(log, verb):
    options, keys, ask = REFUSED[verb]
    theirs = log.mcc(**options, portable=True)
    with pytest.raises(
        ValueError, match=r"portable=True, ask for counts\(\.\.\.\), .* with weight='n'"
    ):
        ask(theirs)
    models = options.get("pred", "pred")
    sent = log.mcc(pred=models, portable=True).counts(*keys).serialize()
    assert b"polars_mcc" not in sent
    counts = pl.LazyFrame.deserialize(io.BytesIO(sent)).collect()
    if "model" in counts.columns:
        parts = counts.partition_by("model", include_key=False)
        found = pl.concat(ask(part.mcc(weight="n")) for part in parts)
        want = ask(log.mcc(**options)).collect().drop("model")
        assert_frame_equal(found, want, check_row_order=False)
        return
    found = ask(counts.mcc(**options, weight="n"))
    assert_frame_equal(found, ask(log.mcc(**options)).lazy().collect(), rel_tol=1e-12)


def test_a_plan_for_another_engine_has_cuts_that_are_given(log):
    theirs = log.mcc(portable=True)
    with pytest.raises(ValueError, match=r"give the cuts, as in bins\('age', \[18, 65\]\)"):
        theirs.by(bins("ms", 2))
    assert "PYTHON SCAN" not in theirs.by(bins("ms", [2])).explain()


def test_no_worse_than_is_asked_of_the_counts_of_a_portable_plan(log):
    theirs, before = log.mcc(portable=True), log.mcc.counts("key").collect()
    options = {"metric": "accuracy", "no_worse_than": before, "min_n": 1}
    with pytest.raises(ValueError, match=r"portable=True, ask for counts"):
        theirs.check("key", **options)
    found = theirs.counts("key").collect().mcc(weight="n").check("key", **options)
    assert_frame_equal(found, log.mcc.check("key", **options))


def test_a_data_frame_is_never_sent(log):
    """So its intervals are computed, also with `portable=True`."""
    rows = log.collect()
    assert_frame_equal(rows.mcc(portable=True).by("key", ci=0.9), rows.mcc.by("key", ci=0.9))


def test_a_node_that_cannot_be_distributed_is_seen(log):
    python = log.map_batches(lambda frame: frame)
    assert nodes_of(python) - DISTRIBUTED == {"opaque python mapfunction"}
    numbered = log.sort("key").with_row_index()
    assert nodes_of(numbered) - DISTRIBUTED == {"MapFunction row_index"}


@EACH_NATIVE
def test_polars_takes_the_plan_for_its_cluster(log, verb):
    cloud = pytest.importorskip("polars._utils.cloud")
    if not hasattr(cloud, "prepare_cloud_plan"):
        pytest.skip("this Polars has no such check")
    sent = verb(log).sink_parquet("s3://bucket/scores.parquet", lazy=True)
    assert b"polars_mcc" not in cloud.prepare_cloud_plan(sent)


@EACH_NATIVE
def test_a_gpu_gives_the_same_answer(log, verb):
    """Needs cudf_polars. Polars runs what it cannot: 128-bit integers, at the end."""
    pytest.importorskip("cudf_polars")
    query = verb(log)
    assert_frame_equal(query.collect(engine="gpu"), query.collect(), rel_tol=1e-12)


def test_a_search_reads_the_keys_once(log, monkeypatch):
    """What `worst` counts next depends on what it found, in the codes that are in memory."""
    plans = []
    collect = pl.LazyFrame.collect

    def noted(self, *args, **options):
        plans.append(self.explain())
        return collect(self, *args, **options)

    query = log.mcc.worst("key", "w", "ms", min_n=1, verdicts=True)
    monkeypatch.setattr(pl.LazyFrame, "collect", noted)
    assert {*query.collect()["verdict"]} == {"no interval", "too few rows"}
    asked, *plans = plans
    assert "PYTHON SCAN" in asked
    of_log = [plan for plan in plans if "Parquet SCAN" in plan]
    assert len([plan for plan in of_log if '"key:key"' in plan]) == 1
    assert all("python" not in plan.lower() for plan in plans)


def test_nothing_is_read_before_it_is_asked(tmp_path):
    rows = log_of([("x", 0, 0), ("x", 1, 0)])
    rows.write_parquet(tmp_path / "log.parquet")
    query = pl.scan_parquet(tmp_path / "log.parquet").mcc.worst("key")
    (tmp_path / "log.parquet").unlink()
    assert query.collect_schema()["key"] == pl.String
    with pytest.raises(FileNotFoundError):
        query.collect()


def test_an_expression_can_be_serialised(log):
    """The expression is resolved at planning, so the plan refers to polars_mcc by name."""
    mcc = polars_mcc.ExprMcc(pl.col("pred")).score("gold")
    query = log.group_by("key").agg(mcc).sort("key")
    received = pl.LazyFrame.deserialize(io.BytesIO(query.serialize()))
    assert_frame_equal(received.collect(), query.collect(), check_exact=True)
    assert "python" not in query.explain().lower()


@EACH_VERB
def test_the_answer_is_one_however_it_is_asked_for(log, verb, tmp_path):
    """Its schema is known beforehand, it can be written as it comes, and engines agree."""
    query = verb(log)
    answer = query.collect(engine="in-memory")
    assert query.collect_schema() == answer.schema
    query.sink_parquet(tmp_path / "answer.parquet")
    rows = log.collect()
    at_once = verb(rows)
    assert isinstance(at_once, pl.DataFrame)
    for other in (
        pl.read_parquet(tmp_path / "answer.parquet"),
        query.collect(engine="streaming"),
        at_once,
    ):
        assert_frame_equal(other, answer, rel_tol=1e-12)


@EACH_VERB
@pytest.mark.usefixtures("log")
def test_nothing_is_read_before_collect(verb, tmp_path):
    """A file whose pages are damaged still has a schema, so the query can be built."""
    file = tmp_path / "log.parquet"
    content = bytearray(file.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    content[4:-footer] = bytes(len(content) - footer - 4)
    file.write_bytes(content)
    query = verb(pl.scan_parquet(file))
    with pytest.raises(pl.exceptions.PolarsError):
        query.collect()


def modules_loaded(code: str) -> set[str]:
    """The modules that some code loads, without the modules that `import polars` loads."""
    code = (
        f"import sys, polars\nbefore = {{*sys.modules}}\n{code}\nprint(*{{*sys.modules}} - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {*done.stdout.split()}


def test_importing_loads_polars_and_little_else():
    """`import polars_mcc` takes no time; the first log loads the verbs, and no library."""
    assert modules_loaded("import polars_mcc") == {"polars_mcc", "polars_mcc._version"}
    loaded = modules_loaded("import polars_mcc; polars.DataFrame().mcc")
    small = {"base64", "binascii", "bisect", "_bisect"}  # newer versions of Polars load them too
    small |= {"contextvars", "_contextvars"}
    assert {module for module in loaded if not module.startswith("polars")} <= small
    assert len([module for module in loaded if module.startswith("polars_mcc")]) <= 88


def test_a_plain_score_loads_nothing_more(tmp_path):
    pl.DataFrame({"gold": ["a", "b"], "pred": ["a", "a"]}).write_parquet(tmp_path / "log")
    scan = f"polars.scan_parquet({str(tmp_path / 'log')!r})"
    query = f"import polars_mcc\n{scan}.mcc.by('gold').collect()"
    more = modules_loaded(query) - modules_loaded("import polars_mcc; polars.DataFrame().mcc")
    assert {module for module in more if not module.startswith("polars.")} == set()


@pytest.mark.parametrize("kind", first(1, ["columns", "expressions", "sets"]))
def test_a_key_costs_no_query_of_all_columns(kind):
    """With 4,800 columns, a query of the schema for each of 100 keys takes 4 to 13 seconds."""
    names = [f"key {place}" for place in range(100)]
    keys = {
        "columns": names,
        "expressions": [pl.col(name).cast(pl.Int8) for name in names],
        "sets": [each(*names)],
    }[kind]

    def seconds(columns):
        schema = dict.fromkeys(["gold", "pred", *names, *map(str, range(columns))], pl.Int64)
        log = pl.LazyFrame(schema=schema).mcc()
        log.roles  # noqa: B018 - the schema is read once
        begin = time.perf_counter()
        assert {*names} < {*log.by(*keys).collect_schema()}
        return time.perf_counter() - begin

    seconds(0)  # what is imported
    assert seconds(4_700) < 10 * seconds(0) + 0.5


@pytest.mark.parametrize("is_lazy", [True, False])
def test_what_polars_calls_unstable_is_asked_in_one_module(log, is_lazy):
    """Polars warns where it is asked. In other tests too, such a warning is an error."""
    with warnings.catch_warnings(record=True) as found, pl.Config(warn_unstable=True):
        warnings.simplefilter("always")
        rows = log if is_lazy else log.collect()
        for verb in [*VERBS.values()][::4]:
            verb(rows).lazy().collect()
    told = (one for one in found if issubclass(one.category, pl.exceptions.UnstableWarning))
    places = {Path(one.filename).stem for one in told}
    assert places == ({"unstable_polars"} if is_lazy else set())

"""A Spark cluster of two workers on this machine: it counts, and only counts come to the driver."""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
import re
import shutil
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from engine_cases import (
    CALLS,
    DIGITS,
    ROOT,
    SCORED_BY_SQL,
    SPARK,
    SPARK_PLAN,
    check_equal,
    check_float_weights,
    check_sql,
    log,
)
from polars.testing import assert_frame_equal
from support import first, named, on_linux

import polars_mcc
from polars_mcc import PredictionLog, cube
from polars_mcc._counts import parquet_files

REQUIRED = os.environ.get("POLARS_MCC_SPARK") == "required"
IS_HERE = importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(not IS_HERE and not REQUIRED, reason="needs PySpark and Java"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

OURS = log()
ROWS = 5_000_000
FILES = 40


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    sql = importlib.import_module("pyspark.sql")
    here = str(tmp_path_factory.mktemp("spark"))
    session = (
        sql.SparkSession.builder.master("local-cluster[2,1,1024]")
        .appName("polars_mcc")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", here)
        .config("spark.sql.warehouse.dir", here)
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.files.openCostInBytes", "134217728")  # A file is a task.
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def theirs(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    OURS.write_parquet(path)
    return spark.read.parquet(str(path))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """The folder of a log of 5 million rows in 40 files."""
    folder = tmp_path_factory.mktemp("large")
    place = pl.int_range(pl.len())
    for file in range(FILES):
        pl.select(place=pl.int_range(ROWS // FILES)).select(
            slice="s" + ((place * 7919 + file) % 200).cast(pl.String),
            gold="label " + (place.hash(file) % 10).cast(pl.String),
            pred="label "
            + (place.hash(file) % 10 + (place.hash(99) % 7 == 0).cast(pl.UInt64)).cast(pl.String),
        ).write_parquet(folder / f"{file:02}.parquet")
    return folder


@pytest.mark.parametrize("call", first(12, named(CALLS)))
def test_the_answer_is_that_of_polars(theirs, call):
    check_equal(theirs, OURS, call)


def test_weights_that_are_floats(theirs):
    check_float_weights(theirs, OURS)


def test_labels_that_come_later(spark, theirs, tmp_path):
    users = pl.DataFrame({"user": range(0, 40, 2)}, schema={"user": pl.Int32})
    first = users.with_columns(label=pl.lit("cat"), at=pl.lit(1, pl.Int64))
    labels = pl.concat(
        [first, first.head(9).with_columns(label=pl.lit("emu"), at=pl.lit(2, pl.Int64))]
    )
    labels.write_parquet(tmp_path / "labels.parquet")
    outcomes = spark.read.parquet(str(tmp_path / "labels.parquet"))
    options = {"on": "user", "gold": "label", "latest": "at"}
    log = PredictionLog(theirs, outcomes=outcomes, **options)
    ours = OURS.drop("n").mcc(outcomes=labels, **options)
    assert_frame_equal(log.by("country", ci=0.95).collect(), ours.by("country", ci=0.95))
    with pytest.raises(pl.exceptions.InvalidOperationError, match="two labels in 'label'"):
        PredictionLog(theirs, outcomes=outcomes, **options | {"latest": None}).by().collect()


def test_nothing_runs_before_collect(spark, theirs):
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup
    before = len(jobs())
    answer = PredictionLog(theirs).by(cube("country", "device"), ci=0.95)
    assert isinstance(answer, pl.LazyFrame)
    assert len(jobs()) == before
    answer.collect()
    assert len(jobs()) > before


def test_rows_are_counted_before_the_shuffle(spark, large):
    """The plan: each task adds up its rows, and what is shuffled is counts."""
    counted = PredictionLog(spark.read.parquet(str(large))).engine_counts("slice")
    plan = counted._jdf.queryExecution().executedPlan().toString()
    steps = re.findall(
        r"(HashAggregate|Exchange|FileScan).*?(partial_count|count|hash|parquet)", plan
    )
    assert steps == [
        ("HashAggregate", "count"),
        ("Exchange", "hash"),
        ("HashAggregate", "partial_count"),
        ("FileScan", "parquet"),
    ]


def test_the_plan_that_the_page_shows(spark):
    counted = PredictionLog(spark.read.parquet(str(DIGITS))).engine_counts("ink_band")
    plan = counted._jdf.queryExecution().executedPlan().toString()
    plan = re.sub(r"#\d+L?|, \[plan_id=\d+\]|, output=\[.*\]| Batched: .*", "", plan)
    assert plan.strip() == SPARK_PLAN.strip()


def test_the_code_of_the_page(spark, monkeypatch):
    monkeypatch.chdir(ROOT)
    session = {"spark": spark, "polars_mcc": polars_mcc}
    exec(SPARK, session)  # noqa: S102
    want = pl.scan_parquet(DIGITS).mcc(pred=["logistic", "knn"]).compare("ink_band")
    as_text = want.with_columns(pl.col("ink_band").cast(pl.String)).sort("ink_band")
    assert_frame_equal(session["scores"].sort("ink_band"), as_text.collect(), check_exact=True)


def test_spark_scores_counts_with_the_sql_of_the_page(spark, tmp_path):
    polars_mcc.keep_counts(DIGITS, tmp_path / "store", "ink_band", "confidence_band")
    spark.read.parquet(str(tmp_path / "store")).createOrReplaceTempView("counts")
    check_sql([tuple(row) for row in spark.sql(SCORED_BY_SQL).collect()])


def test_only_counts_come_to_the_driver(spark, large):
    counted = PredictionLog(spark.read.parquet(str(large))).engine_counts("slice")
    sent = counted.toArrow()
    assert sent.num_rows == 200 * 20
    assert sent.nbytes < 100 * sent.num_rows
    shuffled = shuffled_bytes(spark)
    print(
        f"Spark: {ROWS} rows, {sent.num_rows} counts; {shuffled} bytes shuffled, "
        f"{sent.nbytes} bytes of Arrow to the driver"
    )
    answer = PredictionLog(spark.read.parquet(str(large))).by("slice", ci=0.95).collect()
    want = pl.scan_parquet(large).mcc.by("slice", ci=0.95).collect()
    assert want["n"].sum() == ROWS
    assert_frame_equal(answer, want, check_exact=True)


def shuffled_bytes(spark) -> int:
    """What the last job that shuffled wrote for it, as Spark has it."""
    java = spark.sparkContext._gateway
    no_quantiles, of_all = java.new_array(java.jvm.double, 0), java.jvm.java.util.ArrayList()
    store = spark.sparkContext._jsc.sc().statusStore()
    stages = store.stageList(None, False, False, no_quantiles, of_all)  # noqa: FBT003 - Java's
    written = (stages.apply(place).shuffleWriteBytes() for place in range(stages.size()))
    return next(size for size in written if size)


def executors(spark) -> dict[bytes, list[int]]:
    """The processes of each executor of this cluster."""
    ours = spark.sparkContext.applicationId.encode()
    found: dict[bytes, list[int]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:  # It has ended.
            continue
        if ours in words and b"--executor-id" in words:
            name = words[words.index(b"--executor-id") + 1]
            found.setdefault(name, []).append(int(process.name))
    return found


@on_linux
def test_a_worker_dies_in_the_middle(spark, large):
    """What it had counted is counted again, and nothing twice."""
    want = pl.scan_parquet(large).mcc.by("slice").collect()
    context = spark.sparkContext
    found = []

    def ask() -> None:
        context.setJobGroup("dies", "")
        found.append(PredictionLog(spark.read.parquet(str(large))).by("slice").collect())

    asking = threading.Thread(target=ask)
    [(victim, processes), *others] = sorted(executors(spark).items())
    assert others
    asking.start()
    done = 0
    while done < 5:
        assert asking.is_alive(), "the query has ended before a worker was killed"
        done = max((stage.numCompletedTasks for stage in stages(context)), default=0)
        time.sleep(0.005)
    for process in processes:
        with suppress(ProcessLookupError):  # A script that starts an executor ends before it.
            os.kill(process, signal.SIGKILL)
    assert done < FILES
    asking.join(timeout=120)
    assert_frame_equal(found[0], want, check_exact=True)
    assert victim not in executors(spark)
    print(f"Spark: a worker killed after {done} of {FILES} tasks; the answer is exact")


def stages(context):
    tracker = context.statusTracker()
    found = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
    return [stage for stage in found if stage is not None and stage.numTasks == FILES]


def test_files_of_spark_are_counted_by_their_codes(theirs, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "_WORTH", 0)
    monkeypatch.setattr(parquet_files, "_WORTH_ONE", 0)
    theirs.write.parquet(str(tmp_path / "log"))
    ours = pl.scan_parquet(tmp_path / "log" / "*.parquet").mcc(pred=["pred", "other"])
    assert "PYTHON SCAN" in ours.by(cube("country", "day")).explain()
    found = ours.by(cube("country", "day"), ci=0.9).collect()
    monkeypatch.setattr(parquet_files, "_WORTH", math.inf)
    assert "PYTHON SCAN" not in ours.by(cube("country", "day")).explain()
    expected = ours.by(cube("country", "day"), ci=0.9).collect()
    assert_frame_equal(found, expected, check_exact=True)
    assert_frame_equal(found, OURS.mcc(pred=["pred", "other"]).by(cube("country", "day"), ci=0.9))

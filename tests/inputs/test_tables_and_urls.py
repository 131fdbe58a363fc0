"""Logs other than local files: Delta and Iceberg tables, and objects of an S3 server."""

from __future__ import annotations

import os
import subprocess
import sys

import boto3
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from runner import invoke
from store_cases import s3_server
from support import in_turn, log_of

import polars_mcc
from polars_mcc._inputs import read_files

FIRST = log_of([("x", 0, 0), ("x", 1, 0), ("y", 1, None)])
SECOND = log_of([("y", 2, 2), ("x", 2, 2), ("y", 0, 1)])
BOTH = pl.concat([FIRST, SECOND])


def answer_of(*arguments: str, environment: dict[str, str] | None = None) -> pl.DataFrame:
    words = ["by", *arguments, "--format", "parquet"]
    if environment is None:
        done = invoke(*words)
        assert done.exit_code == 0, done.stderr
        return pl.read_parquet(done.stdout_bytes)
    # Polars reads some of the environment once in a process.
    command = [sys.executable, "-m", "polars_mcc", *words]
    of_process = subprocess.run(
        command, capture_output=True, check=False, env={**os.environ, **environment}
    )
    assert of_process.returncode == 0, of_process.stderr
    return pl.read_parquet(of_process.stdout)


def test_a_delta_table_is_read_as_it_is_now(tmp_path):
    table = str(tmp_path / "log")
    SECOND.write_delta(table)
    FIRST.write_delta(table, mode="overwrite")
    SECOND.write_delta(table, mode="append")
    assert len(list((tmp_path / "log").glob("*.parquet"))) == 3, "one of which is no more"
    assert_frame_equal(answer_of(table, "--by", "key"), BOTH.mcc.by("key"))
    where = ["--filter", "key = 'y'"]
    assert_frame_equal(answer_of(table, *where), BOTH.filter(key="y").mcc.score())


@pytest.mark.slow
def test_an_iceberg_table_is_read_as_it_is_now(tmp_path, monkeypatch):
    pytest.importorskip("pyiceberg", reason="no pyiceberg here; .ci/run has it elsewhere")
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415

    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    catalog = SqlCatalog(
        "logs", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}"
    )
    catalog.create_namespace("logs")
    table = catalog.create_table("logs.log", schema=FIRST.to_arrow().schema)
    SECOND.write_iceberg(table, mode="append")
    FIRST.write_iceberg(table, mode="overwrite")
    SECOND.write_iceberg(table, mode="append")
    folder = tmp_path / "logs/log"
    assert len(list(folder.glob("data/*.parquet"))) == 3, "one of which is no more"
    assert_frame_equal(answer_of(str(folder), "--by", "key"), BOTH.mcc.by("key"))


@pytest.mark.parametrize(
    ("inside", "kind", "package", "extra"),
    [
        ("_delta_log/00000000000000000000.json", "Delta", "deltalake", "store"),
        ("metadata/v1.metadata.json", "Iceberg", "pyiceberg", "iceberg"),
    ],
)
def test_what_a_table_needs_is_named(inside, kind, package, extra, tmp_path, monkeypatch):
    file = tmp_path / "log" / inside
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    found = read_files.find_logs([str(tmp_path / "log")])
    assert (found.files, found.format.name) == ([str(tmp_path / "log")], kind)
    install = rf"reading {kind} tables needs {package}, .*: pip install 'polars-mcc\[{extra}\]'"
    with pytest.raises(ModuleNotFoundError, match=install):
        read_files.scan_logs(found)


@pytest.mark.parametrize("url", ["hf://datasets/a/b", "https://a.b/c", "https://a.b/*", "x3://a/b"])
def test_urls_that_cannot_be_listed_are_left_to_polars(url, monkeypatch):
    monkeypatch.setattr(
        "polars_mcc._inputs.buckets_and_credentials.listing", lambda *_: pytest.fail("it is listed")
    )
    assert read_files.find_logs([url]).files == [url]


def test_a_folder_called_metadata_is_a_folder(tmp_path):
    (tmp_path / "log/metadata").mkdir(parents=True)
    FIRST.write_parquet(tmp_path / "log/metadata/0.parquet")
    assert read_files.find_logs([str(tmp_path / "log")]).format.name == "Parquet"


@pytest.fixture
def bucket(tmp_path):
    """Environment variables for a bucket `logs` with two days of logs and a CSV file."""
    with s3_server() as environment:
        key = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
        url = environment["AWS_ENDPOINT_URL"]
        client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", **key)
        client.create_bucket(Bucket="logs")
        for day, rows in {"day=2026-01-01": FIRST, "day=2026-01-02": SECOND}.items():
            rows.write_parquet(tmp_path / "0.parquet")
            client.upload_file(str(tmp_path / "0.parquet"), "logs", f"{day}/0.parquet")
        BOTH.write_csv(tmp_path / "both.csv")
        client.upload_file(str(tmp_path / "both.csv"), "logs", "both.csv")
        yield environment
        # All servers of a process have the same objects.
        for listed in client.list_objects_v2(Bucket="logs")["Contents"]:
            client.delete_object(Bucket="logs", Key=listed["Key"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # boto's
def test_objects_of_an_s3_server(bucket):
    for url in ("s3://logs/**/*.parquet", "s3://logs/both.csv"):
        answer = answer_of(url, "--by", "key", environment=bucket)
        assert_frame_equal(answer, BOTH.mcc.by("key"))
    one = "s3://logs/day=2026-01-02/0.parquet"
    answer = answer_of(one, "--by", "day", "--by", "key", environment=bucket)
    assert_frame_equal(answer.drop("day"), SECOND.mcc.by("key"))
    command = [sys.executable, "-m", "polars_mcc", "by", "s3://logs/no.parquet"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **bucket}
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "no file 's3://logs/no.parquet'; a log is a file" in done.stderr


DAYS = [FIRST.with_columns(day=pl.date(2026, 1, 1)), SECOND.with_columns(day=pl.date(2026, 1, 2))]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # boto's
def test_folders_of_objects_are_keys(bucket, monkeypatch):
    for name, value in bucket.items():
        monkeypatch.setenv(name, value)
    expected = pl.concat(DAYS).mcc.by("day", "key")
    client = boto3.client("s3", endpoint_url=bucket["AWS_ENDPOINT_URL"])
    client.put_object(Bucket="logs", Key="a/_SUCCESS", Body=b"")
    for day in ("day=2026-01-01", "day=2026-01-02"):
        copied = {"Bucket": "logs", "Key": f"{day}/0.parquet"}
        client.copy(copied, "logs", f"a/{day}/0.parquet")
    urls = ["s3://logs/a", "s3://logs/a/", "s3://logs/a/**/*.parquet", "s3://logs/a/day=*/*"]
    urls += ["s3://logs/day=*/*.parquet"]
    for url in urls:
        assert_frame_equal(answer_of(url, "--by", "day", "--by", "key"), expected)
    for url in ("s3://logs/a/day=2026-01-02", "s3://logs/a/day=2026-01-02/0.parquet"):
        found = answer_of(url, "--by", "day", "--by", "key")
        assert_frame_equal(found, DAYS[1].mcc.by("day", "key"))
    for url in ("s3://logs/none", "s3://logs/none/", "s3://logs/none/*"):
        refused = invoke("by", url)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert f"'{url}'; " in refused.stderr
    client.put_object(Bucket="logs", Key="a/b.csv", Body=b"gold,pred\n")
    refused = invoke("by", "s3://logs/a")
    assert "folder 's3://logs/a' has CSV and Parquet files" in refused.stderr
    client.delete_object(Bucket="logs", Key="a/b.csv")
    client.delete_object(Bucket="logs", Key="a/_SUCCESS")
    # Without obstore, Polars expands them.
    monkeypatch.setattr("polars_mcc._inputs.formats.find_spec", lambda _: None)
    for url in ("s3://logs/a/", "s3://logs/a/**/*.parquet"):
        assert_frame_equal(answer_of(url, "--by", "day", "--by", "key"), expected)


OF_FOLDERS = {"gold": "v", "pred": "v", "key": "z"}


@in_turn(1, deep=["", "/run=3", "/x"], name=OF_FOLDERS)
def test_a_folder_above_a_file_does_not_replace_its_column(name, deep, tmp_path, monkeypatch):
    """The answer is that of the rows of the file, whatever the path that names it."""
    folder = tmp_path / f"{name}={OF_FOLDERS[name]}{deep}"
    folder.mkdir(parents=True)
    rows = pl.DataFrame({"gold": ["u", "v", "u"], "pred": ["u", "v", "v"], "key": ["a", "a", "b"]})
    rows.write_parquet(folder / "log.parquet")
    expected = rows.mcc.by("key")
    places = {
        tmp_path: [str(folder), f"{folder}/log.parquet", f"{folder}/*.parquet"],
        folder: ["log.parquet", ".", "./log.parquet", "*.parquet", f"../{folder.name}/log.parquet"],
    }
    for place, logs in places.items():
        monkeypatch.chdir(place)
        for log in logs:
            assert_frame_equal(answer_of(log, "--by", "key"), expected)
            if "run=" in deep:
                found = answer_of(log, "--by", "run", "--by", "key", "--filter", "run = 3")
                assert_frame_equal(
                    found, rows.with_columns(run=pl.lit(3, pl.Int64())).mcc.by("run", "key")
                )
        store = str(tmp_path / f"store{len([*tmp_path.iterdir()])}")
        done = invoke("counts", logs[-1], "--by", "key", "--out", store)
        assert done.exit_code == 0, done.stderr
        kept = polars_mcc.PredictionLog.from_store(store).by("key").collect()
        assert_frame_equal(kept, expected)


@pytest.mark.slow
def test_a_folder_above_a_file_is_a_key_from_inside_too(tmp_path, monkeypatch):
    folder = tmp_path / "day=2026-01-01"
    folder.mkdir()
    FIRST.write_parquet(folder / "log.parquet")
    expected = DAYS[0].mcc.by("day", "key")
    for place, log in {tmp_path: f"{folder}/log.parquet", folder: "log.parquet"}.items():
        monkeypatch.chdir(place)
        assert_frame_equal(answer_of(log, "--by", "day", "--by", "key"), expected)
        store = str(tmp_path / f"store-{place.name}")
        done = invoke("counts", log, "--by", "day", "--by", "key", "--out", store)
        assert done.exit_code == 0, done.stderr
        kept = polars_mcc.PredictionLog.from_store(store).by("day", "key").collect()
        assert_frame_equal(kept, expected)


def test_below_what_is_named_folders_make_the_column_as_in_polars(tmp_path):
    for day, rows in {"1": FIRST, "2": SECOND}.items():
        (tmp_path / f"logs/day={day}").mkdir(parents=True)
        rows.with_columns(day=7).write_parquet(tmp_path / f"logs/day={day}/log.parquet")
    plain = pl.read_parquet(tmp_path / "logs/", hive_partitioning=True)
    for log in (tmp_path / "logs", tmp_path / "logs/*/*.parquet"):
        assert_frame_equal(answer_of(str(log), "--by", "day"), plain.mcc.by("day"))

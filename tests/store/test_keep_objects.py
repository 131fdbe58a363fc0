"""Stores and inputs in object storage: the same as local ones, and what only objects have."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import obstore
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from store_cases import KEYS, Logs, Objects, contents, keep, s3_server
from support import first

import polars_mcc
from polars_mcc import PredictionLog
from polars_mcc._inputs import buckets_and_credentials
from polars_mcc._store import count_and_commit, stored_columns

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # boto's
STORE = "s3://bucket/a/store"


@pytest.fixture(scope="module")
def server():
    with s3_server() as environment:
        yield environment


@pytest.fixture
def logs(server, monkeypatch):
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    logs = Objects("bucket")
    for name in ("a", "b", "part=1/c"):
        logs.write(f"{name}.parquet")
    yield logs
    for one in logs.client.list_objects_v2(Bucket="bucket").get("Contents", []):
        logs.client.delete_object(Bucket="bucket", Key=one["Key"])


def test_what_is_new_is_counted_and_what_has_changed_is_replaced(logs):
    assert keep(logs, STORE) == {"counted": 3}
    logs.check(STORE)
    assert keep(logs, STORE) == {"unchanged": 3}
    logs.write("d.parquet")
    logs.write("b.parquet")
    assert keep(logs, STORE) == {"counted": 1, "replaced": 1, "unchanged": 2}
    assert logs.is_kept(STORE)


@pytest.mark.slow
def test_an_etag_tells_what_sizes_do_not(logs):
    """One object changes but keeps its size; another is written again unchanged."""
    path = logs.write("d.parquet")
    rows = logs.versions[path, logs.now()[path]]
    data = io.BytesIO()
    rows.write_parquet(data, metadata={"about": "x"})
    logs.put("d.parquet", data.getvalue(), rows)
    keep(logs, STORE)
    before = len(data.getvalue())
    rows.write_parquet(data := io.BytesIO(), metadata={"about": "y"})
    assert len(data.getvalue()) == before
    logs.put("d.parquet", data.getvalue(), rows)
    assert keep(logs, STORE) == {"replaced": 1, "unchanged": 3}
    logs.put("d.parquet", data.getvalue(), rows)
    assert keep(logs, STORE) == {"unchanged": 4}


@pytest.mark.slow
def test_what_is_gone_can_be_forgotten(logs):
    keep(logs, STORE)
    logs.client.delete_object(Bucket="bucket", Key="logs/b.parquet")
    assert keep(logs, STORE) == {"unchanged": 2, "gone": 1}
    assert keep(logs, STORE, forget=True) == {"unchanged": 2, "forgotten": 1}
    assert logs.is_kept(STORE)


@pytest.mark.slow
def test_an_object_that_becomes_a_folder_of_its_name_is_counted_once(logs):
    keep(logs, STORE)
    logs.client.delete_object(Bucket="bucket", Key="logs/b.parquet")
    logs.write("b.parquet/part-0.parquet")
    assert keep(logs, STORE) == {"unchanged": 2, "replaced": 1}
    assert logs.is_kept(STORE)
    logs.write("b.parquet")  # An object may stand beside a folder of its name: both are logs.
    assert keep(f"{logs.place}/*.parquet", STORE) == {"unchanged": 1, "counted": 1}
    assert logs.is_kept(STORE)


@pytest.mark.parametrize(
    ("pattern", "number"),
    first(
        2,
        [
            ("s3://bucket/logs", 4),
            ("s3://bucket/logs/", 4),
            ("s3://bucket/logs/*.parquet", 3),
            ("s3://bucket/logs/**/*.parquet", 4),
            ("s3://bucket/logs/[!a].parquet", 1),
            ("s3://bucket/logs/?.parquet", 2),
            ("s3://bucket/logs/part=*/c.parquet", 1),
            ("s3://bucket/logs/a.parquet", 1),
            ("s3://bucket/**/a b.parquet", 1),
            ("s3://bucket/x/x[1].parquet", 1),
            ("s3://bucket/x", 2),
        ],
        of_several=True,
    ),
)
def test_folders_and_globs_are_what_they_are_locally(logs, pattern, number):
    logs.write("a b.parquet")
    for name in ("x[1]", "x1"):
        data = io.BytesIO()
        logs.rows().head(len(name)).write_parquet(data)
        logs.client.put_object(Bucket="bucket", Key=f"x/{name}.parquet", Body=data.getvalue())
    for name in ("_x.parquet", "readme.txt"):
        logs.client.put_object(Bucket="bucket", Key=f"logs/{name}", Body=b"?")
    assert keep(pattern, STORE) == {"counted": number}
    if "/x" in pattern:
        sizes = {path.rpartition("/")[2]: rows for (path, _), rows in contents(STORE).items()}
        assert sizes["x[1].parquet"] == 4
        assert sizes.get("x1.parquet", 2) == 2


def test_what_is_not_there_is_said(logs):
    for place in ("s3://bucket/none/", "s3://bucket/logs/none.parquet"):
        with pytest.raises(FileNotFoundError, match=f"'{place}'; a log is a file"):
            keep(place, STORE)
    with pytest.raises(ValueError, match="is inside the store 's3://bucket/logs'"):
        keep(logs, "s3://bucket/logs")
    with pytest.raises(ValueError, match="'s3://bucket/none' is not a store of counts"):
        PredictionLog.from_store("s3://bucket/none")


@pytest.mark.slow
def test_logs_and_stores_here_and_there(logs, tmp_path, server):
    """Local paths and URLs mix; credentials come from the environment or storage_options."""
    local = Logs(tmp_path / "logs", 1)
    local.write("x.parquet")
    both = [local.place, logs.place]
    polars_mcc.keep_counts(both, tmp_path / "store", *KEYS)
    polars_mcc.keep_counts(both, STORE, *KEYS)
    want = pl.concat([local.scan(), logs.scan()]).mcc.by(*KEYS).collect()
    for store in (tmp_path / "store", STORE):
        assert_frame_equal(PredictionLog.from_store(store).by(*KEYS).collect(), want)
    options = {name.lower(): value for name, value in server.items() if "DEFAULT" not in name}
    with pytest.MonkeyPatch.context() as patched:
        for name in server:
            patched.delenv(name)
        found = polars_mcc.keep_counts(both, STORE, *KEYS, storage_options=options)
        assert found["status"].to_list() == ["unchanged"] * 4
        logs.write("b.parquet")
        polars_mcc.keep_counts(both, STORE, *KEYS, storage_options=options)
        kept = PredictionLog.from_store(STORE, storage_options=options)
        want = pl.concat([local.scan(), logs.scan()]).mcc.by(*KEYS).collect()
        assert_frame_equal(kept.by(*KEYS).collect(), want)


def test_credentials_of_inputs_are_those_of_a_profile_too(logs, tmp_path):
    """Without options and environment variables, boto3 finds them, as in Polars."""
    keep(logs, tmp_path / "store")
    (tmp_path / "credentials").write_text(
        "[other]\naws_access_key_id = key\naws_secret_access_key = secret\n"
    )
    with pytest.MonkeyPatch.context() as patched:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patched.delenv(name)
        patched.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
        patched.setenv("AWS_PROFILE", "other")
        assert keep(logs, tmp_path / "store") == {"unchanged": 3}


@pytest.mark.slow
def test_no_input_is_opened_that_a_listing_tells(logs, monkeypatch):
    keep(logs, STORE)
    heads = []
    head = obstore.head
    monkeypatch.setattr(obstore, "head", lambda *a: heads.append(a[1]) or head(*a))
    monkeypatch.setattr(
        count_and_commit, "counts_to_keep", lambda *_: pytest.fail("an input is read")
    )
    assert keep(logs, STORE) == {"unchanged": 3}
    assert heads == []


@pytest.mark.slow
def test_a_late_listing_of_inputs_loses_nothing(logs):
    """An object that is not listed yet is neither gone nor forgotten; it is counted later."""
    keep(logs, STORE)
    new = logs.write("new.parquet")
    listing = buckets_and_credentials.listing
    late = {"s3://bucket/logs/a.parquet", new}

    def before(*arguments):
        return (one for one in listing(*arguments) if one.path not in late)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("polars_mcc._inputs.read_files.listing", before)
        assert keep(logs, STORE, forget=True) == {"unchanged": 2}
    assert len(contents(STORE)) == 3
    assert keep(logs, STORE) == {"unchanged": 3, "counted": 1}
    assert logs.is_kept(STORE)


@pytest.mark.slow
def test_an_object_that_changes_after_it_was_listed_is_counted_as_it_is_then(logs, monkeypatch):
    counted, changes = stored_columns.counts_to_keep, [1, 1]

    def changed_and_counted(*arguments):
        if changes:
            changes.pop()
            logs.write("a.parquet")
        return counted(*arguments)

    monkeypatch.setattr(count_and_commit, "counts_to_keep", changed_and_counted)
    keep(logs, STORE)
    assert logs.is_kept(STORE)


@pytest.mark.slow
def test_the_command_line(logs):
    def command(*words: str) -> subprocess.CompletedProcess[str]:
        whole = [sys.executable, "-m", "polars_mcc", *words]
        return subprocess.run(whole, capture_output=True, text=True, check=False, env=os.environ)

    by = ("--by", "country", "--by", "day")
    done = command("counts", logs.place, *by, "--out", STORE)
    assert done.returncode == 0, done.stderr
    assert "a/store: 3 counted, 0 replaced, 0 unchanged" in done.stderr
    done = command("by", STORE, "--by", "country", "--format", "csv")
    assert done.stdout == logs.scan().mcc.by("country").collect().write_csv()
    answer = command("counts", STORE, "--by", "country", "--format", "csv").stdout
    assert answer == logs.scan().mcc.counts("country").collect().write_csv()


def test_what_a_url_needs_is_named(logs, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "obstore", None)
    needs = r"'s3://bucket/.*' needs obstore, .*: pip install 'polars-mcc\[cloud\]'"
    with pytest.raises(ModuleNotFoundError, match=needs):
        keep(logs, tmp_path / "store")
    monkeypatch.setitem(sys.modules, "deltalake", None)
    needs = r"the store '.*' needs deltalake, .*: pip install 'polars-mcc\[store\]'"
    with pytest.raises(ModuleNotFoundError, match=needs):
        PredictionLog.from_store(STORE)


@pytest.mark.slow
def test_what_cannot_be_reached_is_named(logs, tmp_path, monkeypatch):
    def options(url: str) -> dict[str, str]:
        return {"aws_endpoint_url": url, "aws_access_key_id": "a", "aws_secret_access_key": "b"}

    Logs(tmp_path / "logs").write("a.parquet")
    no = {**options("http://127.0.0.1:1"), "allow_http": "no"}
    with pytest.raises(
        OSError, match="cannot read 's3://bucket/a/store' as a Delta table .are its name and the c"
    ):
        keep(tmp_path, STORE, storage_options=no)
    monkeypatch.setenv("AWS_ENDPOINT_URL", logs.client.meta.endpoint_url)
    done = subprocess.run(
        [sys.executable, "-m", "polars_mcc", "counts", "s3://nobucket/logs/", "--out", STORE],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("polars-mcc: 's3://nobucket/logs/")
    assert done.stderr.count("\n") == 1

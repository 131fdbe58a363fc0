"""Logs whose inputs are added, corrected, renamed, linked and deleted, for tests of stores."""

from __future__ import annotations

import io
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import polars as pl
from moto.server import ThreadedMotoServer
from polars.testing import assert_frame_equal

import polars_mcc
from polars_mcc import PredictionLog
from polars_mcc._store.delta_table import Store

KEYS = ["country", "day"]


class Logs:
    """A folder of log files, and the rows of each version of each file."""

    smallest = 0

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.folder = folder
        self.draw = random.Random(seed)
        self.clock = time.time_ns() - 10**15
        self.versions: dict[tuple[str, str], pl.DataFrame] = {}
        folder.mkdir(parents=True)

    @property
    def place(self) -> str:
        return str(self.folder)

    def rows(self, size: int | None = None) -> pl.DataFrame:
        size = self.draw.randrange(1, 300) if size is None else size
        return pl.DataFrame(
            {
                "country": self.draw.choices(["DE", "FR", None], k=size),
                "day": self.draw.choices([1, 2, 3], k=size),
                "gold": self.draw.choices(["cat", "dog", "emu"], k=size),
                "pred": self.draw.choices(["cat", "dog", None], k=size),
            },
            schema={"country": pl.String, "day": pl.Int64, "gold": pl.String, "pred": pl.String},
        )

    def write(self, name: str, size: int | None = None) -> Path:
        """Write or rewrite a file. Each write has its own modification time."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        beside = path.with_name(f".{path.name}")
        rows = self.rows(size)
        rows.write_parquet(beside)
        self.clock += self.draw.randrange(10**7, 10**9)
        os.utime(beside, ns=(self.clock, self.clock))
        beside.replace(path)
        self.versions[path.as_posix(), str(self.clock)] = rows
        return path

    def delete(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)

    def now(self) -> dict[str, str]:
        """The current version of each file."""
        return {file.as_posix(): str(file.stat().st_mtime_ns) for file in self.files()}

    def files(self) -> list[Path]:
        return sorted(file for file in self.folder.rglob("*.parquet") if file.is_file())

    def scan(self) -> pl.LazyFrame:
        return pl.scan_parquet(self.files(), hive_partitioning=False)

    def check(self, store: Path | str) -> None:
        """Assert that the store and the log give the same scores and counts."""
        same_scores(store, self.scan())

    def is_kept(self, store: Path | str) -> bool:
        """Assert that the store is right. Return whether it has the newest version of all."""
        said = contents(store)
        if not said:
            return not self.now()
        same_counts(store, pl.concat([self.versions[one] for one in said]).lazy())
        return {*said} == {*self.now().items()}


class Objects(Logs):
    """Log files in a bucket. The version of an object is its ETag."""

    smallest = 1
    """deltalake keeps other threads, as that of the server, waiting while it notes empty inputs."""

    def __init__(self, bucket: str, seed: int = 0) -> None:
        self.bucket = bucket
        self.draw = random.Random(seed)
        self.versions = {}
        self.client = boto3.client("s3")
        self.client.create_bucket(Bucket=bucket)

    @property
    def place(self) -> str:
        return f"s3://{self.bucket}/logs"

    def write(self, name: str, size: int | None = None) -> str:
        rows, file = self.rows(size), io.BytesIO()
        rows.write_parquet(file)
        return self.put(name, file.getvalue(), rows)

    def put(self, name: str, data: bytes, rows: pl.DataFrame) -> str:
        put = self.client.put_object(Bucket=self.bucket, Key=f"logs/{name}", Body=data)
        path = f"{self.place}/{name}"
        self.versions[path, put["ETag"]] = rows
        return path

    def delete(self, name: str) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=f"logs/{name}")

    def now(self) -> dict[str, str]:
        found: list[dict[str, Any]] = self.client.list_objects_v2(
            Bucket=self.bucket, Prefix="logs/"
        ).get("Contents", [])
        return {f"s3://{self.bucket}/{one['Key']}": one["ETag"] for one in found}

    def scan(self) -> pl.LazyFrame:
        return pl.concat([self.versions[one] for one in self.now().items()]).lazy()


def same_scores(store: Path | str, log: pl.LazyFrame) -> None:
    kept, rows = PredictionLog.from_store(store), PredictionLog(log)
    assert_frame_equal(kept.by("country", ci=0.9).collect(), rows.by("country", ci=0.9).collect())
    same_counts(store, log)


def same_counts(store: Path | str, log: pl.LazyFrame) -> None:
    kept, rows = PredictionLog.from_store(store), PredictionLog(log)
    assert_frame_equal(kept.counts(*KEYS).collect(), rows.counts(*KEYS).collect())


def keep(logs: Logs | Path | str, store: Path | str, **options: Any) -> dict[str, int]:
    place = logs.place if isinstance(logs, Logs) else logs
    done = polars_mcc.keep_counts(place, store, *KEYS, **options)
    return dict(done["status"].value_counts().iter_rows())


def contents(store: Path | str) -> dict[tuple[str, str], float]:
    """The number of rows in a store, by path and version of an input."""
    kept = Store.of(str(store))
    if kept.table is None:
        return {}
    return {(one.path, one.version): one.rows for one in kept.inputs.values()}


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """Run an S3 server in a thread. Yield the environment variables of its clients."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }
    server.stop()

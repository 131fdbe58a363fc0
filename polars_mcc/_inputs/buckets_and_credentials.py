"""Inputs in object storage, and local ones: what exists, its size and version; AWS credentials.

The credentials of a store are in `_store/delta_table`.
"""

from __future__ import annotations

import importlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from polars_mcc._base.errors_and_warnings import missing
from polars_mcc._inputs.paths_and_settings import Options, is_url
from polars_mcc._store.delta_table import Input

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_MAX_REQUESTS = 32  # concurrent requests to an object storage


_SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "azure", "adl", "abfs", "abfss")


def is_in_bucket(path: str) -> bool:
    """Whether a path is the URL of an object storage, so that it can be listed."""
    return path.split("://", 1)[0] in _SCHEMES and is_url(path)


def folder_of_glob(path: str) -> str | None:
    """The folder that all matches of a glob are in; None if the path is not a glob."""
    prefix, *pattern = re.split(r"(?=[*?\[])", path, maxsplit=1)
    if not pattern:
        return None
    return os.path.dirname(prefix) or "."  # noqa: PTH120 - it may be a URL


def looked_up(path: str, options: Options | None = None) -> Input | None:
    """Look up the size and version of one file; None if there is none, or a folder of this name."""
    with suppress(FileNotFoundError, NotADirectoryError):
        if not is_url(path):
            status = os.stat(path)  # noqa: PTH116 - thousands of inputs
            is_folder = stat.S_ISDIR(status.st_mode)
            return None if is_folder else Input(path, status.st_size, str(status.st_mtime_ns))
        bucket, key = _split(path)
        with _open_bucket(path, options) as store:
            return _input(bucket, store.head(key))
    return None


def looked_up_all(paths: Iterable[str], options: Options | None = None) -> dict[str, Input]:
    """Look up many files, by path; missing ones are left out. Objects are looked up in parallel."""
    paths, look = [*paths], partial(looked_up, options=options)
    with ThreadPoolExecutor(_MAX_REQUESTS) as executor:
        seen = executor.map(look, paths) if any(map(is_url, paths)) else map(look, paths)
        return {file.path: file for file in seen if file is not None}


def listing(url: str, options: Options | None = None) -> Iterator[Input]:
    """List all objects below a URL."""
    bucket, prefix = _split(url)
    with _open_bucket(url, options) as store:
        for chunk in store.list(prefix.rstrip("/") or None):
            yield from (_input(bucket, about) for about in chunk)


def _split(url: str) -> tuple[str, str]:
    """Split a URL into the URL of the bucket and the name of the object."""
    scheme, _, path = url.partition("://")
    bucket, _, key = path.partition("/")
    return f"{scheme}://{bucket}", key


def _input(bucket: str, about: Any) -> Input:  # noqa: ANN401 - obstore's own
    version = about["e_tag"] or about["version"] or about["last_modified"].isoformat()
    return Input(f"{bucket}/{about['path']}", about["size"], version)


# Settings of the connection. obstore takes them apart from the settings of the storage.
_CONNECTION_SETTINGS = {
    *("allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_only"),
    *("pool_idle_timeout", "pool_max_idle_per_host", "proxy_url", "proxy_excludes"),
    *("read_timeout", "timeout", "user_agent"),
}


@contextmanager
def _open_bucket(url: str, options: Options | None) -> Iterator[ObjectStore]:
    """Open the bucket of a URL, and turn errors of obstore into OSErrors that name the URL."""
    try:
        obstore = importlib.import_module("obstore")
    except ModuleNotFoundError:
        raise missing(subject=f"'{url}'", package="obstore", extra="cloud") from None
    of_clouds = ("AWS_", "AZURE_", "GOOGLE_")
    environment = (item for item in os.environ.items() if item[0].startswith(of_clouds))
    try:
        yield _bucket(_split(url)[0], frozenset((options or {}).items()), frozenset(environment))
    except obstore.exceptions.BaseError as error:
        what = re.split(r"\n|: <\?xml", str(error), maxsplit=1)[0]
        raise OSError(
            f"'{url}' cannot be reached ({what}): check its name, and the credentials in the "
            "environment, a profile or storage_options"
        ) from error


@lru_cache(maxsize=32)
def _bucket(
    bucket: str, options: frozenset[tuple[str, str]], environment: frozenset[tuple[str, str]]
) -> ObjectStore:
    """Open a bucket with settings as Polars takes them. Opened again if the environment changes."""
    from obstore.store import from_url  # noqa: PLC0415 - it is optional

    plain = {name: re.sub(r"^(aws|azure|google)_", "", name.lower()) for name, _ in options}
    of_connection = {item for item in options if plain[item[0]] in _CONNECTION_SETTINGS}
    config: dict[str, Any] = {name.lower(): value for name, value in options - of_connection}
    connection: dict[str, Any] = {plain[name]: value for name, value in of_connection}
    provider: dict[str, Any] = {}
    names = {re.sub("^aws_", "", name.lower()) for name, _ in options | environment}
    if bucket.startswith("s3") and names.isdisjoint(_SETTINGS_OF_USER):
        with suppress(ImportError, ValueError):  # Else obstore asks the machine.
            from obstore.auth.boto3 import Boto3CredentialProvider  # noqa: PLC0415

            provider["credential_provider"] = Boto3CredentialProvider()
    return from_url(bucket, config=config or None, client_options=connection or None, **provider)  # type: ignore[arg-type]


_SETTINGS_OF_USER = {"access_key_id", "skip_signature"}
"""Settings that name the user. With one of them, no AWS profile is looked up."""

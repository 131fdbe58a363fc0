"""Folders in a file system or an object storage: list them, read files, write files whole.

obstore reads and writes objects. It does not write local files: its `LocalStore` renames files, but
never calls fsync (0.12, seen with `strace`). After a power cut, a file could be lost or empty. So
this module writes local files itself.
"""

from __future__ import annotations

import importlib
import os
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from polars_mcc._log.extras import missing

if TYPE_CHECKING:
    from obstore.store import ObjectStore

Options: TypeAlias = Mapping[str, str]
"""Credentials and settings of an object storage, as in `storage_options` of Polars."""

_AT_ONCE = 32  # concurrent requests to an object storage
_OLD = 24 * 60 * 60  # seconds after which a temporary file counts as left behind


@dataclass(frozen=True)
class Listed:
    """A file or object: where it is, its size and its version."""

    path: str
    """The path without symbolic links, or the URL."""
    size: int
    version: str
    """Changes when the file is rewritten: the modification time in nanoseconds, or the ETag."""


class Place(Protocol):
    """A folder of a store: a file appears in it whole, or not at all."""

    path: str
    options: Options | None

    def names(self) -> dict[str, float]:
        """List the files of the folder, without subfolders: name → write time (since 1970, s)."""

    def read(self, name: str) -> bytes:
        """Read a file, or raise FileNotFoundError."""

    def create(self, name: str, data: bytes) -> bool:
        """Write a new file, whole. Return False if the name is taken."""

    def remove(self, names: Iterable[str]) -> None:
        """Delete files. Missing ones are no error."""

    def prepare(self) -> None:
        """Make the folder, and delete old temporary files in it."""


_SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "azure", "adl", "abfs", "abfss")


def as_dict(options: Options | None) -> dict[str, Any] | None:
    """Settings as Polars takes them: a dict, or None if there are none."""
    return dict(options) if options else None


def is_url(path: str) -> bool:
    """Whether a path is a URL."""
    return "://" in path


def is_in_bucket(path: str) -> bool:
    """Whether a path is the URL of an object storage, so that it can be listed."""
    return path.split("://", 1)[0] in _SCHEMES and is_url(path)


def before_pattern(path: str) -> str | None:
    """The folder that all matches of a glob are in; None if the path is not a glob."""
    prefix, *pattern = re.split(r"(?=[*?\[])", path, maxsplit=1)
    if not pattern:
        return None
    folder, slash, _ = prefix.rpartition("/")
    return folder or slash or "."


def is_there(path: str, options: Options | None = None) -> bool:
    """Whether a file or folder exists, or objects below a URL."""
    if is_url(path):
        return looked_up(path, options) is not None or any(True for _ in listing(path, options))
    return os.path.exists(path)  # noqa: PTH110 - as os.stat


def place(path: str, options: Options | None = None) -> Place:
    """Open the folder of a path or URL, which need not exist."""
    if is_url(path):
        return _Bucket(path.rstrip("/"), options)
    return _Folder(path)


def looked_up(path: str, options: Options | None = None) -> Listed | None:
    """Look up the size and version of one file; None if it does not exist."""
    if not is_url(path):
        with suppress(FileNotFoundError, NotADirectoryError):
            found = os.stat(path)  # noqa: PTH116 - thousands of inputs
            return Listed(path, found.st_size, str(found.st_mtime_ns))
        return None
    bucket, key = _split(path)
    with suppress(FileNotFoundError), _obstore(path) as obstore:
        return _listed(bucket, obstore.head(_opened(bucket, options), key))
    return None


def looked_up_all(paths: Iterable[str], options: Options | None = None) -> dict[str, Listed]:
    """Look up many files, by path; missing ones are left out. Objects are looked up in parallel."""
    paths = [*paths]
    if not any(map(is_url, paths)):
        found = [looked_up(path) for path in paths]
    else:
        with ThreadPoolExecutor(min(len(paths), _AT_ONCE)) as executor:
            found = [*executor.map(lambda path: looked_up(path, options), paths)]
    return {one.path: one for one in found if one is not None}


def listing(url: str, options: Options | None = None) -> Iterator[Listed]:
    """List all objects below a URL."""
    bucket, prefix = _split(url)
    with _obstore(url) as obstore:
        for chunk in obstore.list(_opened(bucket, options), prefix=prefix.rstrip("/") or None):
            yield from (_listed(bucket, about) for about in chunk)


def content(path: str, options: Options | None = None) -> Iterator[bytes]:
    """Read the bytes of a file, in chunks."""
    if is_url(path):
        bucket, key = _split(path)
        with _obstore(path) as obstore:
            yield from map(bytes, obstore.get(_opened(bucket, options), key).stream())
        return
    with open(path, "rb") as file:  # noqa: PTH123 - as os.stat
        while part := file.read(2**20):
            yield part


def put(target: Path, data: bytes, *, is_new: bool = False) -> None:
    """Write a local file atomically: write a temporary file, fsync it, then rename or link it.

    `is_new`: raise FileExistsError if the file exists. The file system must replace atomically on a
    rename within a folder, must refuse a link where a file exists (POSIX, NTFS, NFS), and must keep
    what fsync has written.
    """
    beside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        (os.link if is_new else os.replace)(beside, target)
        _synchronise(target.parent)
    finally:
        beside.unlink(missing_ok=True)


def _synchronise(folder: Path) -> None:
    """Write the names of a folder to the disk, on systems that can open a folder."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


class _Folder:
    """A folder in a file system."""

    options: Options | None = None

    def __init__(self, path: str) -> None:
        self.path = path
        self._folder = Path(path)

    def names(self) -> dict[str, float]:
        found = {}
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # Another process deleted the file.
                    found[entry.name] = entry.stat().st_mtime
        return found

    def read(self, name: str) -> bytes:
        if self._folder.is_file():
            msg = f"'{self.path}' is a file, not a folder"
            raise NotADirectoryError(msg)
        return (self._folder / name).read_bytes()

    def create(self, name: str, data: bytes) -> bool:
        try:
            put(self._folder / name, data, is_new=True)
        except FileExistsError:
            return False
        return True

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            (self._folder / name).unlink(missing_ok=True)

    def prepare(self) -> None:
        try:
            self._folder.mkdir(exist_ok=True)
        except FileNotFoundError:
            msg = f"cannot make '{self.path}': there is no folder '{self._folder.parent}'"
            raise FileNotFoundError(msg) from None
        now = time.time()
        left = [
            name
            for name, written in self.names().items()
            if re.search(r"^\..*\.[0-9a-f]{32}$", name) and now - written > _OLD
        ]
        self.remove(left)


class _Bucket:
    """A folder in an object storage: the objects whose names share a prefix."""

    def __init__(self, path: str, options: Options | None) -> None:
        self.path = path
        self.options = options
        bucket, prefix = _split(path)
        with _obstore(path):
            self._store = _opened(bucket, options)
        self._prefix = f"{prefix}/" if prefix else ""

    def names(self) -> dict[str, float]:
        with _obstore(self.path) as obstore:
            found = obstore.list_with_delimiter(self._store, self._prefix.rstrip("/") or None)
        return {
            about["path"].removeprefix(self._prefix): about["last_modified"].timestamp()
            for about in found["objects"]
        }

    def read(self, name: str) -> bytes:
        with _obstore(self.path) as obstore:
            return bytes(obstore.get(self._store, self._prefix + name).bytes())

    def create(self, name: str, data: bytes) -> bool:
        with _obstore(self.path) as obstore:
            try:
                # A multipart upload cannot fail if the object exists.
                obstore.put(
                    self._store, self._prefix + name, data, mode="create", use_multipart=False
                )
            except obstore.exceptions.AlreadyExistsError:
                return False
        return True

    def remove(self, names: Iterable[str]) -> None:
        with suppress(FileNotFoundError), _obstore(self.path) as obstore:
            obstore.delete(self._store, [self._prefix + name for name in names])

    def prepare(self) -> None:
        """Do nothing: objects need no folder, and are never half written."""


def _split(url: str) -> tuple[str, str]:
    """Split a URL into the URL of the bucket and the name of the object."""
    scheme, _, path = url.partition("://")
    bucket, _, key = path.partition("/")
    return f"{scheme}://{bucket}", key


def _listed(bucket: str, about: Any) -> Listed:  # noqa: ANN401 - obstore's own
    version = about["e_tag"] or about["version"] or about["last_modified"].isoformat()
    return Listed(f"{bucket}/{about['path']}", about["size"], version)


# Settings of the connection. obstore takes them apart from the settings of the storage.
_OF_CONNECTION = {
    *("allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_only"),
    *("pool_idle_timeout", "pool_max_idle_per_host", "proxy_url", "proxy_excludes"),
    *("read_timeout", "timeout", "user_agent"),
}


@contextmanager
def _obstore(path: str) -> Iterator[ModuleType]:
    """Import obstore, and turn its errors into OSErrors that name the path."""
    try:
        obstore = importlib.import_module("obstore")
    except ModuleNotFoundError:
        raise missing(subject=f"'{path}'", package="obstore", extra="cloud") from None
    try:
        yield obstore
    except obstore.exceptions.BaseError as error:
        what = re.split(r"\n|: <\?xml", str(error), maxsplit=1)[0]
        msg = (
            f"'{path}' cannot be reached ({what}): check its name, and the credentials in the "
            "environment, a profile or storage_options"
        )
        raise OSError(msg) from error


def _opened(bucket: str, options: Options | None) -> ObjectStore:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_"))
    }
    return _store(bucket, _items(options or {}), _items(environment))


def _items(settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(settings.items()))


@lru_cache(maxsize=32)
def _store(
    bucket: str, options: tuple[tuple[str, str], ...], environment: tuple[tuple[str, str], ...]
) -> ObjectStore:
    """Open a bucket, with the settings that Polars takes, and those of the environment."""
    from obstore.store import from_url  # noqa: PLC0415 - it is optional

    config: dict[str, Any] = {}
    connection: dict[str, Any] = {}
    for name, value in options:
        plain = re.sub(r"^(aws|azure|google)_", "", name.lower())
        if plain in _OF_CONNECTION:
            connection[plain] = value
        else:
            config[name.lower()] = value
    more: dict[str, Any] = {}
    given = {*(re.sub("^aws_", "", name) for name in config), *(name for name, _ in environment)}
    if bucket.startswith("s3") and given.isdisjoint(_TELL_WHO):
        with suppress(ImportError, ValueError):  # Else obstore asks the machine.
            from obstore.auth.boto3 import Boto3CredentialProvider  # noqa: PLC0415

            more["credential_provider"] = Boto3CredentialProvider()
    return from_url(bucket, config=config or None, client_options=connection or None, **more)  # type: ignore[arg-type]


_TELL_WHO = {"access_key_id", "skip_signature", "AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE"}
"""Settings that name the user. With one of them, no AWS profile is looked up."""

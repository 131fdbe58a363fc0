"""Paths and URLs, and the settings of an object storage."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypeAlias

Options: TypeAlias = Mapping[str, str]
"""Credentials and settings of an object storage, as in `storage_options` of Polars."""


def as_dict(options: Options | None) -> dict[str, str] | None:
    """Settings as the libraries take them: a dict, or None if there are none."""
    return dict(options) if options else None


def is_url(path: str) -> bool:
    """Whether a path is a URL. `C://logs` is on a drive of Windows."""
    return path.find("://") > 1


def slashed(path: str) -> str:
    """A path with slashes, as Polars and URLs have it on Windows too."""
    return path if is_url(path) else path.replace(os.sep, "/")


def real_path(path: str) -> str:
    """The path from the root, with slashes and without links."""
    return slashed(os.path.realpath(path))


def partitions(path: str) -> list[str]:
    """The folders `name=value` of a path: hive partitions."""
    return [folder for folder in path.split("/")[:-1] if "=" in folder]


def partition_columns(path: str) -> list[str]:
    """The names of the columns that the hive partitions of a path make."""
    return [folder.partition("=")[0] for folder in partitions(path)]

"""Find every file in local folders and globs; what cannot be read is an error that names it.

The standard library loses rows or does not end (seen in Python 3.10):

- `glob.glob` and `Path.glob` leave out a folder that they cannot read, and say nothing.
- `os.walk` takes a link to such a folder for a file.
- `glob.glob` and `os.walk`, if they follow links, do not end where two links make a loop.
- `Path.glob` does not follow links before Python 3.13.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import posixpath
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from json import JSONDecodeError
from pathlib import Path
from typing import TypeAlias

import polars as pl

from polars_mcc._base.errors_and_warnings import reason
from polars_mcc._base.message_parts import in_shell, quoted
from polars_mcc._inputs.formats import FORMATS, NDJSON, PARQUET, ROWS_FOR_DTYPES, STDIN, by_suffix
from polars_mcc._inputs.paths_and_settings import is_url, partitions, real_path, slashed


class FileSearch:
    """A search for files. It follows links to folders."""

    def __init__(self) -> None:
        """Start with no link followed."""
        self.links: set[str] = set()
        """The links to folders that were found."""

    def files(self, folder: str) -> list[str]:
        """All files below a folder. A real folder is read once, even if links lead to it."""
        root = posixpath.normpath(folder)
        below = self._below("" if root == os.curdir else root, lambda _: True)
        files = [path for path, is_folder in below if not is_folder]
        return sorted(files, key=lambda file: Path(file).parts)

    def matches(self, pattern: str) -> list[str]:
        """The files and folders that match a glob, with the rules of `glob.glob`."""
        return sorted(path for path, _ in self._matches(pattern) if path)

    def _matches(self, pattern: str) -> list[tuple[str, bool]]:
        """The matches of a glob, and whether each may be a folder."""
        if not glob.has_magic(pattern):
            return [(pattern, True)] if not pattern or _is_there(pattern) else []
        above, last = os.path.split(pattern)
        folders = [path for path, may_be_folder in self._matches(above) if may_be_folder]
        if last == "**":
            below = (path for folder in folders for path in self._below(folder, _matcher("*")))
            return [*((folder, True) for folder in folders), *below]
        if glob.has_magic(last):
            return [path for folder in folders for path in self._inside(folder, _matcher(last))]
        paths = [_join(folder, last) for folder in folders]
        return [(path, True) for path in paths if _is_there(path)]

    def _below(self, root: str, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, bool]]:
        """The paths at any depth below a folder, and whether each is a folder."""
        folders, seen = [(root, real_path(root))], set[Place]()
        while folders:
            folder, real = folders.pop()
            if (place := place_of(f"{folder}/", f"{real}/")) in seen:
                continue
            seen.add(place)
            inside = self._inside(folder, is_wanted)
            yield from inside
            for path in (path for path, is_folder in inside if is_folder):
                if path in self.links:  # Links come last: a real path tells more than a link.
                    folders.insert(0, (path, real_path(path)))
                else:
                    folders.append((path, _join(real, os.path.basename(path))))  # noqa: PTH119 - thousands of folders

    def _inside(self, folder: str, is_wanted: Callable[[str], bool]) -> list[tuple[str, bool]]:
        """The paths right in a folder whose names are wanted, and whether each is a folder."""
        wanted: list[os.DirEntry[str]] = []
        # A folder that was deleted meanwhile has no files. With the dot, a folder that may be
        # listed but not entered is an error.
        gone = suppress(FileNotFoundError, NotADirectoryError)
        with naming(folder), gone, os.scandir(_join(folder, os.curdir)) as entries:
            wanted += (entry for entry in entries if is_wanted(entry.name))
        paths = ((_join(folder, entry.name), entry) for entry in wanted)
        return [(path, self._is_folder(path, entry)) for path, entry in paths]

    def _is_folder(self, path: str, entry: os.DirEntry[str]) -> bool:
        if not entry.is_symlink():
            return entry.is_dir()
        try:
            is_folder = stat.S_ISDIR(entry.stat().st_mode)
        except OSError as error:
            if by_suffix(path) is None and not entry.name.startswith((".", "_")):
                raise named_error(path, error) from error  # It may have been a folder of logs.
            return False  # A log is an error when it is read.
        if not is_folder:
            return False
        real = real_path(path)
        if any(real_path(str(above)) == real for above in Path(path).absolute().parents):
            msg = f"'{path}' is a link to a folder that it is in, so it has no end; delete the link"
            raise OSError(msg)
        self.links.add(path)
        return True


def is_hidden(name: str) -> bool:
    """Whether a file or folder belongs to other tools. `_day=1` is a partition."""
    return name.startswith((".", "_")) and "=" not in name


def is_no_log(path: str) -> bool:
    """Whether a file is known to be no log: a README, a checksum, or hidden and of no format."""
    name = path.rpartition("/")[2]
    is_told = is_hidden(name) or re.fullmatch(r"README(\.\w+)?|.*\.crc", name, re.IGNORECASE)
    return bool(is_told) and by_suffix(name) is None


def named_error(path: str, error: OSError) -> OSError:
    """An error that names a file or folder that the system cannot read, and says what to do."""
    if isinstance(error, FileNotFoundError) and Path(path).is_symlink():
        target = real_path(path)
        msg = f"'{path}' is a broken link to '{target}'; restore the target, or delete the link"
    else:
        why = error.strerror or str(error).partition(" (os error")[0]
        msg = f"'{path}' cannot be read ({why}); make it readable, or name only the other logs"
    return type(error)(msg)


Place: TypeAlias = tuple[str, frozenset[str]]


def place_of(path: str, real: str) -> Place:
    """What tells whether two paths are one log: the real path, and the partitions.

    A link that puts a file into another partition makes another log of it.
    """
    own, of_real = frozenset(partitions(path)), frozenset(partitions(real))
    return real, own if own - of_real else of_real


def absolute(path: str) -> str:
    """The path from the root, with the folders `name=value` above the working directory."""
    if is_url(path):
        return path
    goes_up = "/../" in path.lstrip("./")  # It may go up from the target of a link.
    return real_path(path) if goes_up else slashed(os.path.abspath(path))  # noqa: PTH100


def real_paths(paths: Iterable[str]) -> dict[str, str]:
    """The real path of each path. A folder of thousands of files is resolved once; URLs stay."""
    of_folder = cache(real_path)
    real = {}
    for path in paths:
        folder, name = os.path.split(path)
        if is_url(path):
            real[path] = path
        elif not name or os.path.islink(path):  # noqa: PTH114 - thousands of inputs
            real[path] = real_path(path)
        else:
            real[path] = _join(of_folder(folder), name)
    return real


def each_once(paths: Iterable[str]) -> dict[str, str]:
    """One path of each log, the real path if it is one of them; by path, the real path."""
    path_of = dict[Place, str]()
    for path, real in real_paths(paths).items():
        own = absolute(path)
        if (place := place_of(own, real)) not in path_of or own == real:
            path_of[place] = path
    return {path: real for (real, _), path in path_of.items()}


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Turn errors of the system into errors that name a file or folder."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # It already has a message.
            raise
        raise named_error(path, error) from error


def _is_there(path: str) -> bool:
    with naming(path), suppress(FileNotFoundError, NotADirectoryError):
        os.lstat(path)
        return True
    return False


def _matcher(pattern: str) -> Callable[[str], bool]:
    """A test whether a name matches a part of a glob."""
    matches = re.compile(fnmatch.translate(pattern)).match
    return lambda name: matches(name) is not None and (pattern[0] == "." or name[0] != ".")


def _join(folder: str, name: str) -> str:
    return posixpath.join(folder, name)


TOLD_BY_FIRST_ROWS = (
    f"the first {ROWS_FOR_DTYPES:,} rows of JSON lines tell the columns and dtypes; let all rows "
    "tell them, and write Parquet: pl.read_ndjson(FILE, infer_schema_length=None)"
)

_UNREADABLE = OSError, JSONDecodeError, pl.exceptions.PolarsError, pl.exceptions.PanicException
_NOT_PARSED = re.compile(r"could not parse `(.*)` as dtype `\w+` at column '(.*)'")


@contextmanager
def naming_unreadable(file: str, format_name: str) -> Iterator[None]:
    """Turn errors of the system and of Polars into errors that name the file."""
    try:
        yield
    except _UNREADABLE as error:
        if isinstance(error, OSError) and file != STDIN:
            raise named_error(file, error) from error
        first = str(error).split("\n", 1)[0]
        way_out = "leave it out, or write it again"
        if failed := _NOT_PARSED.match(first):
            null, column = map(shlex.quote, failed.groups())
            is_number = re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", failed[1], re.IGNORECASE)
            way_out = f"add --null {null} if that is no value"
            way_out = "write all numbers with a decimal point" if is_number else way_out
            way_out += f", or --text {column} to read text"
        elif file != STDIN and format_name == PARQUET.name and by_suffix(file) is None:
            endings = [end for known in FORMATS for end in known.suffixes if end.count(".") == 1]
            way_out = f"the end of its name must tell its format: {', '.join(endings)}"
        if format_name == NDJSON and first.endswith("character 0 ('ï')"):
            first = "it begins with a byte order mark: write it as UTF-8 without one"
        if format_name == NDJSON and re.search(r"\('[NI]'\)", first):
            first = "JSON has no NaN, Infinity or None: write null"
        elif format_name == NDJSON and first.startswith("cannot parse"):
            way_out = TOLD_BY_FIRST_ROWS
        msg = f"'{file}' cannot be read as {format_name} ({first}); {way_out}"
        raise pl.exceptions.ComputeError(msg) from error


def names_first(error: BaseException, paths: Sequence[str]) -> bool:
    """Whether the message of an error begins with one of these files."""
    return reason(error).startswith(tuple(f"'{slashed(path)}" for path in paths))


@contextmanager
def naming_files(paths: Sequence[str], *beginnings: str) -> Iterator[None]:
    """Name files in the errors about them: all errors, or those whose messages so begin."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        what = in_shell(reason(error))
        if not what.startswith(beginnings or "") or names_first(error, paths):
            raise
        known = [kind for kind in type(error).__mro__ if "polars_mcc" not in kind.__module__]
        raise known[0](f"{quoted(paths)}: {what}") from None

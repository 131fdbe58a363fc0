"""What makes slices, as a user says it: columns, and kinds of keys that are more than a column.

A kind of key is a subclass of `Key`, in a file of its own: `bins`, `key_sets`, `trailing`. The
function that makes it is registered with `word` for the command line, and is exported by
`polars_mcc/_public_names.py`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

import polars as pl

from polars_mcc._log.columns import Columns, IntoColumn, by_name, resolved
from polars_mcc._log.described import Described
from polars_mcc._log.messages import Words, option, said
from polars_mcc._log.windows import Windows

T = TypeVar("T", bound=Hashable)
F = TypeVar("F", bound=Callable[..., Any])

KeySet: TypeAlias = tuple[str, ...]
"""The names of keys that are crossed. An empty set is the total."""

TOTAL = ""  # the name of the set of no keys: all rows are one slice


class Made(NamedTuple):
    """What a key stands for."""

    columns: Sequence[IntoColumn]
    sets: Sequence[KeySet] = ()
    """The sets of names that it slices by; windows have none."""
    windows: Windows | None = None


class Key:
    """A key that is more than a column."""

    stands_for: ClassVar[Literal["column", "sets", "windows"]]

    def made(self, schema: pl.Schema) -> Made:
        """The columns, sets and windows that the key stands for."""
        raise NotImplementedError

    @property
    def is_settled(self) -> bool:
        """Whether the key stands for the same columns whatever rows the log has."""
        return True

    def settled(self, log: Described[Any], *, unread: bool) -> IntoKey:  # noqa: ARG002
        """The same key, without what has to be read from the log first: most need no rows.

        `unread`: a key of the same name and dtype instead, for the schema of an answer.
        """
        return self


IntoKey: TypeAlias = str | pl.Expr | Key
"""What a user groups by: a column, bins, several sets of columns, or windows of time."""


class Word(NamedTuple):
    """A function that makes a key, for the command line."""

    make: Callable[..., Any]
    example: str
    of_one: bool
    """Whether only the first argument is a column."""


WORDS: dict[str, Word] = {}
"""The functions that make keys, by name."""


def word(example: str, *, of_one: bool = False) -> Callable[[F], F]:
    """Register a function that makes keys."""

    def registered(make: F) -> F:
        WORDS[make.__name__] = Word(make, example, of_one)
        return make

    return registered


def settled(log: Described[Any], keys: Sequence[IntoKey], *, unread: bool = False) -> list[IntoKey]:
    """The keys, without what has to be read from the log first: see `Key.settled`."""
    return [key.settled(log, unread=unread) if isinstance(key, Key) else key for key in keys]


@dataclass(frozen=True)
class Keys:
    """The keys of a question, resolved against the schema."""

    columns: Columns
    sets: tuple[KeySet, ...] | None
    """The sets of keys, without the index of a window. None if there is one set."""
    windows: Windows | None


def found(schema: pl.Schema, keys: Sequence[IntoKey], *, long: bool) -> Keys:
    """Resolve the keys of a question into columns, sets and windows, or raise an error."""
    resolved(schema, [key for key in keys if not isinstance(key, Key)], "key")
    made = [key.made(schema) if isinstance(key, Key) else of_column(schema, key) for key in keys]
    timed = [key for key, one in zip(keys, made, strict=True) if one.windows is not None]
    if len(timed) > 1:
        msg = f"only one trailing(...) is allowed as a key, but {timed[1]} is the second"
        raise ValueError(msg)
    windows = next((one.windows for one in made if one.windows is not None), None)
    groups = [one.sets for one in made if one.windows is None]
    once: list[IntoColumn] = []
    for column in itertools.chain(*(one.columns for one in made)):
        if not any(is_same(column, other) for other in once):  # It may be in several sets.
            once.append(column)
    columns = Columns(tuple(once), resolved(schema, once, "key"))
    if windows is not None and windows.index.name in columns.names:
        msg = f"key '{windows.index.name}' is given twice: as the index of trailing(), and alone"
        raise pl.exceptions.DuplicateError(msg)
    has_sets = any(isinstance(key, Key) and key.stands_for == "sets" for key in keys)
    if not long and not has_sets:
        return Keys(columns, None, windows)
    if long and not columns.names:
        msg = said(
            option("long", value=True),
            " names slices by their keys: name at least one, as in ",
            Words("by('country')", "--by country"),
        )
        raise ValueError(msg)
    crossed = [tuple(dict.fromkeys(itertools.chain(*one))) for one in itertools.product(*groups)]
    by_content = {frozenset(one): one for one in reversed(crossed)}
    distinct = tuple(one for one in crossed if by_content[frozenset(one)] is one)
    if same := twice(map(name_of, distinct)):
        msg = (
            f"two sets of keys are called '{same[0]}'; rename a key whose name is empty, or has a "
            "comma"
        )
        raise ValueError(msg)
    return Keys(columns, distinct, windows)


def of_column(schema: pl.Schema, key: IntoColumn) -> Made:
    """What a column stands for, or a selector of several columns."""
    return Made([*by_name(schema, [key], "key")], [(*resolved(schema, [key], "key"),)])


def columns_of(schema: pl.Schema, keys: Iterable[IntoKey]) -> Iterator[IntoColumn]:
    """The columns of keys that stand for columns."""
    for key in keys:
        if isinstance(key, Key) and key.stands_for == "column":
            yield from key.made(schema).columns
        else:
            yield from of_column(schema, key).columns  # type: ignore[arg-type] # or an error


def name_of(keys: KeySet) -> str:
    """The name of a set of keys in the column `keys` of an answer."""
    return ", ".join(keys) if keys else TOTAL


def check_plain(keys: Sequence[IntoKey], verb: str, reason: str, *, sets: bool = False) -> None:
    """Raise a ValueError if a verb gets windows, or sets of keys without `sets`."""
    for key in keys:
        if isinstance(key, Key) and key.stands_for not in {"column", "sets" if sets else ""}:
            name, *_ = repr(key).split("(")
            msg = f"{verb} does not support {name}(...): {reason}"
            raise ValueError(msg)


def twice(values: Iterable[T]) -> list[T]:
    """The values that occur more than once."""
    return [value for value, times in Counter(values).items() if times > 1]


def is_same(one: IntoColumn, other: IntoColumn) -> bool:
    """Whether two columns are the same name, or the same expression."""
    if isinstance(one, pl.Expr) and isinstance(other, pl.Expr):
        return one.meta.eq(other)
    return isinstance(one, str) and isinstance(other, str) and one == other

"""What makes slices, as a user says it: columns, and kinds of keys that are more than a column.

A kind of key is a subclass of `Key`, in a file of its own beside this one. The function that makes
it is registered with `word` for the command line, and `polars_mcc/_public_names.py` exports it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

import polars as pl

from polars_mcc._base.allowed_values import Align
from polars_mcc._base.message_parts import Words, option, refused
from polars_mcc._frame.columns import IntoColumn, NamedColumns, resolved
from polars_mcc._frame.log_options import Described

T = TypeVar("T", bound=Hashable)
F = TypeVar("F", bound=Callable[..., Any])

KeySet: TypeAlias = tuple[str, ...]
"""The names of keys that are crossed. An empty set is the total."""

TOTAL = ""  # the name of the set of no keys: all rows are one slice

_SECOND = 10**9
UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": _SECOND, "m": 60 * _SECOND, "h": 3600 * _SECOND}
UNITS |= {"d": 86_400 * _SECOND, "w": 7 * 86_400 * _SECOND}
MONTHS = {"mo": 1, "q": 3, "y": 12}


@dataclass(frozen=True)
class Windows:
    """Trailing windows of an index, resolved against the schema."""

    index: NamedColumns
    number: int
    unit: str  # a step is `number` of this unit of Polars durations
    per_window: int  # steps in a window
    align: Align

    @property
    def is_clock(self) -> bool:
        """Whether steps are hours or less: their length does not depend on the calendar."""
        return self.unit not in {"d", "w", *MONTHS}

    @property
    def is_months(self) -> bool:
        """Whether steps are months, whose lengths differ."""
        return self.unit in MONTHS

    @property
    def size(self) -> int:
        """The length of a step in months, in days, or in nanoseconds if `is_clock`."""
        length, _ = length_of(self.number, self.unit)
        return length if self.is_months or self.is_clock else length // UNITS["d"]


def length_of(number: int, unit: str) -> tuple[int, bool]:
    """A length in months or in nanoseconds, and whether it is in months."""
    return number * (UNITS | MONTHS)[unit], unit in MONTHS


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
        """The same key, after reading what depends on the rows, such as the cuts of bins.

        `unread`: nothing is read; the key has only the right name and dtype.
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
    """The keys, after reading what depends on the rows: see `Key.settled`."""
    return [key.settled(log, unread=unread) if isinstance(key, Key) else key for key in keys]


class Keys(NamedTuple):
    """The keys of a question, resolved against the schema."""

    columns: NamedColumns
    sets: tuple[KeySet, ...] | None
    """The sets of keys, without the index of a window. None if there is one set."""
    windows: Windows | None


def keys_of(schema: pl.Schema, keys: Sequence[IntoKey], *, long: bool) -> Keys:
    """Resolve the keys of a question into columns, sets and windows, or raise an error."""
    resolved(schema, [key for key in keys if not isinstance(key, Key)], "key")
    made = [key.made(schema) if isinstance(key, Key) else of_column(schema, key) for key in keys]
    timed = [key for key, part in zip(keys, made, strict=True) if part.windows is not None]
    if len(timed) > 1:
        msg = f"only one trailing(...) is allowed as a key, but {timed[1]} is the second"
        raise ValueError(msg)
    windows = next((part.windows for part in made if part.windows is not None), None)
    groups = [part.sets for part in made if part.windows is None]
    given: list[IntoColumn] = []
    for column in itertools.chain(*(part.columns for part in made)):
        if not any(is_same(column, known) for known in given):  # It may be in several sets.
            given.append(column)
    columns = NamedColumns(tuple(given), resolved(schema, given, "key"))
    if windows is not None and windows.index.name in columns.names:
        msg = f"key '{windows.index.name}' is given twice: as the index of trailing(), and alone"
        raise pl.exceptions.DuplicateError(msg)
    has_sets = any(isinstance(key, Key) and key.stands_for == "sets" for key in keys)
    if not long and not has_sets:
        return Keys(columns, None, windows)
    if long and not columns.names:
        raise refused(
            option("long", value=True),
            " names slices by their keys: name at least one, as in ",
            Words("by('country')", "--by country"),
        )
    crossed = [tuple(dict.fromkeys(itertools.chain(*sets))) for sets in itertools.product(*groups)]
    by_content = {frozenset(names): names for names in reversed(crossed)}
    distinct = tuple(names for names in crossed if by_content[frozenset(names)] is names)
    if same := twice(map(name_of, distinct)):
        raise ValueError(
            f"two sets of keys are called '{same[0]}'; rename a key whose name is empty, or has a "
            "comma"
        )
    return Keys(columns, distinct, windows)


def of_column(schema: pl.Schema, key: IntoColumn) -> Made:
    """What a column stands for, or a selector of several columns."""
    names = tuple(resolved(schema, [key], "key"))
    is_selector = isinstance(key, pl.Expr) and key.meta.is_column_selection()
    return Made(names if is_selector else [key], [names])


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
            raise ValueError(f"{verb} does not support {name}(...): {reason}")


def twice(values: Iterable[T]) -> list[T]:
    """The values that occur more than once."""
    return [value for value, times in Counter(values).items() if times > 1]


def is_same(column: IntoColumn, other: IntoColumn) -> bool:
    """Whether two columns are the same name, or the same expression."""
    if isinstance(column, pl.Expr) and isinstance(other, pl.Expr):
        return column.meta.eq(other)
    return isinstance(column, str) and isinstance(other, str) and column == other

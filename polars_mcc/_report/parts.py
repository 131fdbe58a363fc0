"""Keys → the parts of a report. Each part makes its own slices and has its own section."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from polars_mcc._counts.sliced import SET
from polars_mcc._log import defaults
from polars_mcc._log import keys as keys_of_question
from polars_mcc._log.bins import Bins, cut_if_many
from polars_mcc._log.columns import IntoColumn
from polars_mcc._log.described import Described
from polars_mcc._log.key_sets import KeySets, each
from polars_mcc._log.keys import IntoKey, Key, Keys, is_same, name_of
from polars_mcc._log.messages import Words, as_sql, said
from polars_mcc._log.trailing import Trailing


@dataclass(frozen=True)
class Part:
    """One key of a report: a column, sets of columns, or windows."""

    key: IntoKey
    """The key for the log. Numbers and times with many values are binned."""
    by_name: IntoKey
    """The same key for the counts, whose columns have the names of the keys."""
    name: str
    needed: Mapping[str, IntoColumn]
    """The columns that the key is made of, by name."""
    joins: Sequence[Sequence[Part]] = ()
    """The sets of parts that slice, if the report made the key of them."""
    min_n: int = 0
    """Slices of fewer rows are not shown."""
    is_time: bool = False
    """Whether the key is bins of times, whose names are texts."""

    @property
    def is_column(self) -> bool:
        """Whether the key is one column, which may be binned."""
        return not isinstance(self.key, Key) or self.key.stands_for == "column"

    @property
    def sets(self) -> Sequence[Sequence[Part]]:
        """The sets of parts that slice; none for windows, and for sets that the user named."""
        return [(self,)] if self.is_column else self.joins

    @property
    def columns(self) -> list[str]:
        """The columns of an answer that identify a slice."""
        return [SET, *self.needed] if isinstance(self.key, KeySets) else [*self.needed]

    @property
    def note(self) -> str:
        """How the report cuts the times of the key; "" if it does not."""
        if not isinstance(self.key, Bins) or not isinstance(self.key.cuts, str):
            return ""
        unit = {"1d": "day", "1w": "week, which its Monday names", "1mo": "month"}[self.key.cuts]
        return f"{self.name} has many values, so it is cut by {unit}."


def joined(
    sets: Sequence[Sequence[Part]], name: str = "", *, total: bool = False, min_n: int = 0
) -> Part:
    """One part that slices by several sets of columns, and by all rows as a slice if `total`."""
    needed = {name: one for part in itertools.chain(*sets) for name, one in part.needed.items()}
    of_log = tuple(tuple(part.key for part in one) for one in sets)
    by_name = tuple(tuple(part.by_name for part in one) for one in sets)
    is_each = all(len(one) == 1 for one in sets)
    shown = (
        each(*itertools.chain(*of_log), total=total) if is_each else KeySets("sets", of_log, total)
    )
    return Part(shown, KeySets("sets", by_name, total), name, needed, sets, min_n)


def named(parts: Sequence[Part]) -> str:
    """The name of a set of columns in an answer."""
    return name_of(tuple(part.name for part in parts))


def crossed(parts: Sequence[Part]) -> list[Part]:
    """Each column of the parts as a part, but for windows: the search crosses them, and bins."""
    columns = {
        name: column
        for part in parts
        if not isinstance(part.key, Trailing)
        for name, column in part.needed.items()
    }
    return [Part(column, name, name, {name: column}) for name, column in columns.items()]


def parts_of(log: Described[Any], keys: Sequence[IntoKey]) -> list[Part]:
    """Make a part of each column, each set of columns such as `rollup(...)`, and each window."""
    schema = log.meaning.schema
    found = [(key, keys_of_question.found(schema, [key], long=False)) for key in keys]
    plain = [one.columns.each for key, one in found if not isinstance(key, Key)]
    cuts = cut_if_many(log, dict(itertools.chain(*plain)), defaults.BINS)
    parts = [part for key, one in found for part in _of_key(key, one, cuts)]
    known: dict[str, IntoColumn] = {}
    distinct: dict[str, Part] = {}
    for part in parts:
        for name, column in part.needed.items():
            if not is_same(known.setdefault(name, column), column):
                msg = said(
                    f"two keys have the name '{name}'; rename one of them, as in ",
                    Words(f"pl.col(...).alias('{name}_key')", f"… AS {as_sql(f'{name}_key')}"),
                )
                raise pl.exceptions.DuplicateError(msg)
        if part.name in distinct and repr(part.key) != repr(distinct[part.name].key):
            part = replace(part, name=repr(part.key))  # noqa: PLW2901 - the same part, renamed
        distinct.setdefault(part.name, part)
    return list(distinct.values())


def _of_key(key: IntoKey, found: Keys, cuts: Mapping[str, Bins]) -> Iterator[Part]:
    """The part of a key, or the parts of a selector."""
    columns = dict(found.columns.each)
    if isinstance(key, Trailing) and found.windows is not None:
        index = found.windows.index
        [column] = index.given
        name = f"{index.name}, {key.window}"
        yield Part(key, replace(key, index=index.name), name, {index.name: column})
    elif isinstance(key, KeySets):
        listed = found.sets or ()
        by_name = KeySets("sets", listed, total=() in listed)
        name = f"{key.kind}({', '.join(columns)})"
        yield Part(key, by_name, name, columns)
    else:
        for name, column in columns.items():
            cut = None if isinstance(key, Key) else cuts.get(name)
            of_counts = name if cut is None else replace(cut, column=name)
            is_time = any(isinstance(one, Bins) and isinstance(one.cuts, str) for one in (key, cut))
            yield Part(cut or column, of_counts, name, {name: column}, is_time=is_time)

"""A log and keys → the parts of a report, and the counts by all keys, which answer for the log.

Counts are a log with fewer rows. In two cases the log is still needed. Intervals with clusters or
sample weights need the rows. Keys with very many values would make about as many counts as the log
has rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import polars as pl
import polars.selectors as cs

from polars_mcc._counts.cut import cut
from polars_mcc._counts.pairs import GOLD, HAS_NONE, TIMES, N, joint
from polars_mcc._counts.sides import sides_of
from polars_mcc._counts.sliced import KEY, PRED, SET, SlicedLog
from polars_mcc._log import defaults
from polars_mcc._log.bins import Bins, cut_if_many
from polars_mcc._log.columns import IntoColumn, NamedColumns, as_many_as_fit, distinct
from polars_mcc._log.described import Described
from polars_mcc._log.key_sets import KeySets, each
from polars_mcc._log.keys import TOTAL, IntoKey, Key, Keys, columns_of, is_same, keys_of, name_of
from polars_mcc._log.messages import Words, as_arguments, as_code, as_sql, said
from polars_mcc._log.trailing import Trailing
from polars_mcc._verbs.counts import counts

Verb: TypeAlias = Callable[..., Any]
Collect: TypeAlias = Callable[[str, Callable[[pl.LazyFrame], pl.LazyFrame]], pl.DataFrame]
"""Collects a query on the log. Its first argument says what the query is about."""

_MOST = 2**22  # counts in memory, at most
_TAKEN = {"model", "gold", "pred", "n"}  # column names that a counts table reserves


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
    shown = KeySets("sets", of_log, total)
    if all(len(one) == 1 for one in sets):
        shown = each(*itertools.chain(*of_log), total=total)
    return Part(shown, KeySets("sets", by_name, total), name, needed, sets, min_n)


def named(parts: Sequence[Part]) -> str:
    """The name of a set of columns in an answer."""
    return name_of(tuple(part.name for part in parts))


def crossed(parts: Sequence[Part]) -> list[Part]:
    """Each column of the parts as a part, but for windows: the search crosses them, and bins."""
    each_part = (part.needed for part in parts if not isinstance(part.key, Trailing))
    columns = {name: column for needed in each_part for name, column in needed.items()}
    return [Part(column, name, name, {name: column}) for name, column in columns.items()]


def parts_of(log: Described[Any], keys: Sequence[IntoKey]) -> list[Part]:
    """Make a part of each column, each set of columns such as `rollup(...)`, and each window."""
    schema = log.roles.schema
    found = [(key, keys_of(schema, [key], long=False)) for key in keys]
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


class Answer(NamedTuple):
    """A frame, and the call of a verb that gives it, as a user would write it."""

    rows: pl.DataFrame
    query: str


def without(frame: pl.DataFrame, columns: Collection[str]) -> pl.DataFrame:
    """Drop columns by exact name: `drop` would read a name like `^m.*$` as a pattern."""
    return frame[[name for name in frame.columns if name not in columns]]


def called(log: Described[Any], verb: Verb, *keys: IntoKey, **options: object) -> str:
    """The code of a call of a verb, as a user would write it."""
    described = f"({log.said})" if log.said else ""
    arguments = ", ".join(filter(None, [*map(as_code, keys), as_arguments(options)]))
    return f"log.mcc{described}.{verb.__name__}({arguments})"


@dataclass(frozen=True)
class Once:
    """A log, and its counts by as many of the keys as fit into memory."""

    log: Described[Any]
    collect: Collect
    counts: Described[Any] | None
    keys: Sequence[str]
    """The names of the keys of the counts."""

    @property
    def rows_are_draws(self) -> bool:
        """Whether rows are independent: the log has neither clusters nor sample weights."""
        return self.log.roles.is_frequency and self.log.roles.cluster is None

    @property
    def preds(self) -> NamedColumns:
        """The predictions of the log."""
        preds = self.log.roles.preds
        assert preds is not None  # noqa: S101 - counts need predictions
        return preds

    def counts_answer(self, parts: Sequence[Part], *, needs_draws: bool) -> bool:
        """Whether the counts can answer a question about these keys.

        `needs_draws`: the answer has intervals or p-values, so rows must be independent.
        """
        has_keys = self.counts is not None and all({*self.keys} >= {*one.needed} for one in parts)
        return has_keys and (self.rows_are_draws or not needs_draws)

    def ask(
        self,
        about: str,
        verb: Verb,
        parts: Sequence[Part] = (),
        *,
        needs_draws: bool = True,
        **options: Any,  # noqa: ANN401 - of any verb
    ) -> Answer:
        """Call a verb on the counts if they are enough, else on the rows of the log."""
        keys, names = [part.key for part in parts], [part.by_name for part in parts]
        query = called(self.log, verb, *keys, **options)
        if self.counts_answer(parts, needs_draws=needs_draws):
            return Answer(verb(self.counts, *names, **options), query)
        log = self.log.with_frame
        return Answer(self.collect(about, lambda rows: verb(log(rows), *keys, **options)), query)

    def ask_each(
        self,
        about: str,
        verb: Verb,
        parts: Sequence[Part],
        **options: Any,  # noqa: ANN401 - of any verb
    ) -> list[Answer]:
        """Call a verb on all rows, and on each part: once for all sets of columns together."""
        sets = [one for part in parts for one in part.sets]
        rows, _ = self.ask(about, verb, [joined(sets, total=True)] if sets else [], **options)
        keys = {SET, *(part.name for one in sets for part in one)}

        def of(names: Sequence[str], shown: Sequence[str], *key: IntoKey) -> Answer:
            found = rows.filter(pl.col(SET).is_in(names)) if sets else rows
            query = called(self.log, verb, *key, **options)
            return Answer(without(found, keys.difference(shown)), query)

        found = [of([TOTAL], [])]
        for part in parts:
            of_part = [*map(named, part.sets)]
            alone = None if of_part else self.ask(about, verb, [part], **options)
            found.append(alone or of(of_part, part.columns, part.key))
        return found

    def size(self, parts: Sequence[Part]) -> float:
        """The number of slices of crossed keys; infinite if the counts lack one of the keys."""
        if self.counts is None or not self.counts_answer(parts, needs_draws=False):
            return math.inf
        frame: Any = self.counts.frame
        return _groups(frame, [part.by_name for part in parts])

    def fewer(self, most: int, parts: Sequence[Part]) -> pl.DataFrame:
        """A counts table of at most `most` rows, by as many keys as fit; else an empty frame.

        A key that a part bins is binned here too.
        """
        if self.counts is None or not most:
            return pl.DataFrame()
        frame: Any = self.counts.frame
        rows: pl.DataFrame = frame.filter(pl.col(N).is_not_null())
        models = [name for name in rows.columns if name.startswith(PRED)]
        keys: dict[str, IntoKey] = {name: name for name in self.keys if name not in _TAKEN}
        keys |= {part.name: part.by_name for part in parts if part.name in keys}

        def fits(names: Sequence[str]) -> bool:
            by = [keys[name] for name in names]
            return sum(_groups(rows, by, GOLD, model) for model in models) <= most

        kept = as_many_as_fit([*keys], lambda name: _groups(frame, [keys[name]]), fits) or ()
        found: pl.DataFrame = counts(self.counts.with_frame(rows), *(keys[name] for name in kept))
        return found


def _groups(frame: pl.DataFrame, keys: Iterable[IntoKey], *labels: str) -> int:
    """The number of groups by crossed keys and labels."""
    return int(frame.select(distinct([*columns_of(frame.schema, keys), *labels])).item())


def counted_once(log: Described[Any], columns: Mapping[str, IntoColumn], collect: Collect) -> Once:
    """Count a log by as many of these columns as fit into `_MOST` counts."""
    roles = log.roles
    weight = None if roles.weight is None else roles.weight.expr
    plain = log(weight=weight, sample_weight=None, cluster=None)

    def sliced(rows: pl.LazyFrame, names: Iterable[str]) -> SlicedLog:
        given: Sequence[Any] = [columns[name] for name in names]
        return cut(sides_of(plain.with_frame(rows)), given, taken=[])

    def number(keys: Sequence[str], *, labels: bool = True) -> int:
        """Estimate the number of groups, within 10 % or so, in little memory (HyperLogLog)."""

        def query(frame: pl.LazyFrame) -> pl.LazyFrame:
            log = sliced(frame, keys)
            labelled = ["gold", *(PRED + name for name in log.models)] if labels else []
            columns = [*(KEY + name for name in log.keys), *labelled]
            return log.frame.select(pl.struct(columns).hash().approx_n_unique())

        return int(collect("number of counts", query).item())

    chosen: Sequence[str] | None = [*columns]
    # A log with few rows has few counts, so its groups are not estimated.
    if collect("rows", lambda rows: rows.select(pl.len())).item() > _MOST:
        chosen = as_many_as_fit(
            [*columns],
            lambda name: number([name], labels=False),
            lambda keys: number(keys) <= _MOST,
        )
    if chosen is None:
        return Once(log, collect, None, [])
    table = collect("counts", lambda rows: joint(sliced(rows, chosen)))
    once = Once(log, collect, None, chosen)
    models = [pl.col(PRED + name).alias(name) for name in once.preds.names]
    as_log = plain.with_frame(
        _as_rows(table),
        gold=pl.col(GOLD).alias(roles.gold.name),
        pred=models if once.preds.is_several else models[0],
        score=None,
        weight=N,
    )
    return replace(once, counts=as_log)


def _as_rows(table: pl.DataFrame) -> pl.DataFrame:
    """Turn counts into a log. Rows with a null weight have no sum, so each one stays a row."""
    if HAS_NONE not in table.columns:
        return table
    times = pl.when(HAS_NONE).then(TIMES).otherwise(1)
    n = pl.when(~pl.col(HAS_NONE)).then(N)
    rows = table.with_columns(n.alias(N)).select(pl.exclude(HAS_NONE, TIMES).repeat_by(times))
    return rows.explode(cs.all())

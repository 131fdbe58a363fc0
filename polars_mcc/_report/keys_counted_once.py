"""A log and keys → the keys of the sections, and the counts by all keys, which answer for the log.

Counts are a log with fewer rows. In two cases the log is still needed. Intervals with clusters or
sample weights need the rows. Keys with very many values would make about as many counts as the log
has rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import polars as pl
import polars.selectors as cs

from polars_mcc._base import defaults
from polars_mcc._base.message_parts import Words, as_arguments, as_code, as_sql, said
from polars_mcc._counts.pair_counts import GOLD, HAS_NONE, TIMES, N, joint
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._counts.sliced_log import KEY, PRED, SET, SlicedLog
from polars_mcc._frame.columns import IntoColumn, NamedColumns, as_expr
from polars_mcc._frame.log_options import Described
from polars_mcc._keys import any_key
from polars_mcc._keys.any_key import IntoKey, Key, Keys
from polars_mcc._keys.bins import Bins, cut_if_many
from polars_mcc._keys.each_rollup_cube_sets_trailing import KeySets, Trailing, each

Verb: TypeAlias = Callable[..., Any]
Collect: TypeAlias = Callable[[str, Callable[[pl.LazyFrame], pl.LazyFrame]], pl.DataFrame]
"""Collects a query on the log. Its first argument says what the query is about."""

_MAX_COUNTS = 2**22  # counts in memory, at most


@dataclass(frozen=True)
class SectionKey:
    """A key that has a section of the report: a column, sets of columns, or windows."""

    of_log: IntoKey
    """The key for the log. Numbers and times with many values are binned."""
    of_counts: IntoKey
    """The same key for the counts, whose columns have the names of the keys."""
    name: str
    needed: Mapping[str, IntoColumn]
    """The columns that the key is made of, by name."""
    joins: Sequence[Sequence[SectionKey]] = ()
    """The sets of keys that slice, if the report made a key of them."""
    is_time: bool = False
    """Whether the key is bins of times, whose names are texts."""

    @property
    def is_column(self) -> bool:
        """Whether the key is one column, which may be binned."""
        return not isinstance(self.of_log, Key) or self.of_log.stands_for == "column"

    @property
    def sets(self) -> Sequence[Sequence[SectionKey]]:
        """The sets of keys that slice; none for windows, and for sets that the user named."""
        return [(self,)] if self.is_column else self.joins

    @property
    def columns(self) -> list[str]:
        """The columns of an answer that identify a slice."""
        return [SET, *self.needed] if isinstance(self.of_log, KeySets) else [*self.needed]

    @property
    def note(self) -> str:
        """How the report cuts the times of the key; "" if it does not."""
        if not isinstance(self.of_log, Bins) or not isinstance(self.of_log.cuts, str):
            return ""
        unit = {"1d": "day", "1w": "week, which its Monday names", "1mo": "month"}[self.of_log.cuts]
        return f"{self.name} has many values, so it is cut by {unit}."


def key_of_sets(
    sets: Sequence[Sequence[SectionKey]], name: str = "", *, total: bool = False
) -> SectionKey:
    """One key that slices by several sets of columns, and by all rows as a slice if `total`."""
    needed = {name: column for key in chain(*sets) for name, column in key.needed.items()}
    of_log = tuple(tuple(key.of_log for key in keys) for keys in sets)
    of_counts = tuple(tuple(key.of_counts for key in keys) for keys in sets)
    shown = KeySets("sets", of_log, total)
    if all(len(keys) == 1 for keys in sets):
        shown = each(*chain(*of_log), total=total)
    return SectionKey(shown, KeySets("sets", of_counts, total), name, needed, sets)


def set_name(keys: Sequence[SectionKey]) -> str:
    """The name of a set of keys in an answer."""
    return any_key.name_of(tuple(key.name for key in keys))


def keys_to_search(keys: Sequence[SectionKey]) -> list[SectionKey]:
    """Each column as a key, but for windows: the search crosses columns, and bins them."""
    each_key = (key.needed for key in keys if not isinstance(key.of_log, Trailing))
    columns = {name: column for needed in each_key for name, column in needed.items()}
    return [SectionKey(column, name, name, {name: column}) for name, column in columns.items()]


def section_keys(log: Described[Any], keys: Sequence[IntoKey]) -> list[SectionKey]:
    """A key for each column, each set of columns such as `rollup(...)`, and each window."""
    schema = log.roles.schema
    made = [(key, any_key.keys_of(schema, [key], long=False)) for key in keys]
    plain = [of_key.columns.each for key, of_key in made if not isinstance(key, Key)]
    cuts = cut_if_many(log, dict(chain(*plain)), defaults.BINS)
    columns: dict[str, IntoColumn] = {}
    by_name: dict[str, SectionKey] = {}
    for key in chain(*(_section_keys(key, of_key, cuts) for key, of_key in made)):
        for name, column in key.needed.items():
            if not any_key.is_same(columns.setdefault(name, column), column):
                msg = said(
                    f"two keys have the name '{name}'; rename one of them, as in ",
                    Words(f"pl.col(...).alias('{name}_key')", f"… AS {as_sql(f'{name}_key')}"),
                )
                raise pl.exceptions.DuplicateError(msg)
        same = by_name.setdefault(key.name, key)
        if repr(key.of_log) != repr(same.of_log):
            other = repr(key.of_log)
            by_name.setdefault(other, replace(key, name=other))
    return list(by_name.values())


def _section_keys(key: IntoKey, made: Keys, cuts: Mapping[str, Bins]) -> Iterator[SectionKey]:
    """The section key of a key, or those of a selector."""
    columns = dict(made.columns.each)
    if isinstance(key, Trailing) and made.windows is not None:
        index = made.windows.index
        [column] = index.given
        name = f"{index.name}, {key.window}"
        yield SectionKey(key, replace(key, index=index.name), name, {index.name: column})
    elif isinstance(key, KeySets):
        sets = made.sets or ()
        of_counts = KeySets("sets", sets, total=() in sets)
        yield SectionKey(key, of_counts, f"{key.kind}({', '.join(columns)})", columns)
    else:
        for name, column in columns.items():
            cut = None if isinstance(key, Key) else cuts.get(name)
            in_counts = name if cut is None else replace(cut, column=name)
            bins = [either for either in (key, cut) if isinstance(either, Bins)]
            is_time = any(isinstance(either.cuts, str) for either in bins)
            yield SectionKey(cut or column, in_counts, name, {name: column}, is_time=is_time)


class Answer(NamedTuple):
    """A frame, and the call of a verb that gives it, as a user would write it."""

    rows: pl.DataFrame
    query: str


def without(frame: pl.DataFrame, columns: Collection[str]) -> pl.DataFrame:
    """Drop columns by exact name: `drop` would read a name like `^m.*$` as a pattern."""
    return frame[[name for name in frame.columns if name not in columns]]


def call_as_code(log: Described[Any], verb: Verb, *keys: IntoKey, **options: object) -> str:
    """The code of a call of a verb, as a user would write it."""
    described = f"({log.said})" if log.said else ""
    arguments = ", ".join(filter(None, [*map(as_code, keys), as_arguments(options)]))
    return f"log.mcc{described}.{verb.__name__}({arguments})"


@dataclass(frozen=True)
class CountedLog:
    """A log, and its counts by as many of the keys as fit into memory."""

    log: Described[Any]
    collect: Collect
    counts: Described[Any] | None
    keys: Sequence[str]
    """The names of the keys of the counts."""

    def described(self, **changed: Any) -> CountedLog:  # noqa: ANN401 - of any option
        """The same log and counts, with these options changed."""
        counts = None if self.counts is None else self.counts(**changed)
        return replace(self, log=self.log(**changed), counts=counts)

    @property
    def preds(self) -> NamedColumns:
        """The predictions of the log."""
        preds = self.log.roles.preds
        assert preds is not None  # noqa: S101 - counts need predictions
        return preds

    def counts_answer(self, keys: Sequence[SectionKey], *, needs_draws: bool) -> bool:
        """Whether the counts can answer a question about these keys.

        `needs_draws`: the answer has intervals or p-values, so rows must be independent: the log
        has neither clusters nor sample weights.
        """
        has_keys = self.counts is not None and all({*self.keys} >= {*key.needed} for key in keys)
        are_draws = self.log.roles.is_frequency and self.log.roles.cluster is None
        return has_keys and (are_draws or not needs_draws)

    def ask(
        self,
        about: str,
        verb: Verb,
        keys: Sequence[SectionKey] = (),
        *,
        needs_draws: bool = True,
        **options: Any,  # noqa: ANN401 - of any verb
    ) -> Answer:
        """Call a verb on the counts if they are enough, else on the rows of the log."""
        of_log = [key.of_log for key in keys]
        query = call_as_code(self.log, verb, *of_log, **options)
        if self.counts_answer(keys, needs_draws=needs_draws):
            return Answer(verb(self.counts, *(key.of_counts for key in keys), **options), query)
        log = self.log.with_frame
        return Answer(self.collect(about, lambda rows: verb(log(rows), *of_log, **options)), query)

    def ask_each(
        self,
        about: str,
        verb: Verb,
        keys: Sequence[SectionKey],
        **options: Any,  # noqa: ANN401 - of any verb
    ) -> Iterator[Answer]:
        """Answer for all rows, then for each key. One call serves all keys that are columns."""
        sets = [*chain(*(key.sets for key in keys))]
        rows, _ = self.ask(about, verb, [key_of_sets(sets, total=True)] if sets else [], **options)
        names = {SET, *(key.name for key in chain(*sets))}
        total = rows.filter(pl.col(SET) == any_key.TOTAL) if sets else rows
        yield Answer(without(total, names), call_as_code(self.log, verb, **options))
        for key in keys:
            if key.sets:
                slices = rows.filter(pl.col(SET).is_in([*map(set_name, key.sets)]))
                slices = without(slices, names.difference(key.columns))
                yield Answer(slices, call_as_code(self.log, verb, key.of_log, **options))
            else:
                yield self.ask(about, verb, [key], **options)

    def n_slices(self, keys: Sequence[SectionKey]) -> float:
        """The number of slices of crossed keys; infinite if the counts lack one of the keys."""
        if self.counts is None or not self.counts_answer(keys, needs_draws=False):
            return math.inf
        frame: Any = self.counts.frame
        columns = any_key.columns_of(frame.schema, [key.of_counts for key in keys])
        # Hashes take less memory than rows.
        return int(frame.select(pl.struct(*map(as_expr, columns)).hash().n_unique()).item())


def count_once(
    log: Described[Any], columns: Mapping[str, IntoColumn], collect: Collect
) -> CountedLog:
    """Count a log by as many of these columns as fit into `_MAX_COUNTS` counts."""
    roles = log.roles
    weight = None if roles.weight is None else roles.weight.expr
    plain = log(weight=weight, sample_weight=None, cluster=None, time=None)

    def sliced(rows: pl.LazyFrame, names: Iterable[str]) -> SlicedLog:
        given: Sequence[Any] = [columns[name] for name in names]
        return cut(sides_of(plain.with_frame(rows)), given, taken=[])

    def n_counts(keys: Sequence[str]) -> int:
        """Estimate the number of counts, within 10 % or so, in little memory (HyperLogLog)."""

        def query(frame: pl.LazyFrame) -> pl.LazyFrame:
            log = sliced(frame, keys)
            labels = ("gold", *(PRED + name for name in log.models))
            columns = [*(KEY + name for name in log.keys), *labels]
            return log.frame.select(pl.struct(columns).hash().approx_n_unique())

        return int(collect("number of counts", query).item())

    # A log with few rows has few counts, so they are not estimated.
    is_large = collect("rows", lambda rows: rows.select(pl.len())).item() > _MAX_COUNTS
    kept, by_size = [*columns], list[str]()
    while is_large and n_counts(kept) > _MAX_COUNTS:
        if not kept:
            return CountedLog(log, collect, None, [])
        # The columns that make most counts are left out first.
        by_size = by_size or sorted(kept, key=lambda name: n_counts([name]))
        kept.remove(by_size.pop())
    table = collect("counts", lambda rows: joint(sliced(rows, kept)))
    counted = CountedLog(log, collect, None, kept)
    models = [pl.col(PRED + name).alias(name) for name in counted.preds.names]
    as_log = plain.with_frame(
        _as_rows(table),
        gold=pl.col(GOLD).alias(roles.gold.name),
        pred=models if counted.preds.is_several else models[0],
        score=None,
        weight=N,
    )
    return replace(counted, counts=as_log)


def _as_rows(table: pl.DataFrame) -> pl.DataFrame:
    """Turn counts into a log. Rows with a null weight have no sum, so each one stays a row."""
    if HAS_NONE not in table.columns:
        return table
    times = pl.when(HAS_NONE).then(TIMES).otherwise(1)
    n = pl.when(~pl.col(HAS_NONE)).then(N)
    rows = table.with_columns(n.alias(N)).select(pl.exclude(HAS_NONE, TIMES).repeat_by(times))
    return rows.explode(cs.all())

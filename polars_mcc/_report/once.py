"""A log → its counts by all keys, made once. A report asks these counts instead of the log.

Counts are a log with fewer rows. In two cases the log is still needed. Intervals with clusters or
sample weights need the rows. Keys with very many values would make about as many counts as the log
has rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import polars as pl
import polars.selectors as cs

from polars_mcc._counts.cut import cut
from polars_mcc._counts.joint import GOLD, HAS_NONE, TIMES, N, joint
from polars_mcc._counts.sliced import KEY, PRED, SET, SlicedLog
from polars_mcc._log.columns import Columns, IntoColumn, as_many_as_fit, distinct
from polars_mcc._log.described import Described
from polars_mcc._log.keys import TOTAL, IntoKey, columns_of
from polars_mcc._log.messages import as_arguments, as_code
from polars_mcc._report.parts import Part, joined, named
from polars_mcc._verbs.counts import counts

Collect: TypeAlias = Callable[[str, Callable[[pl.LazyFrame], pl.LazyFrame]], pl.DataFrame]
"""Collects a query on the log. Its first argument says what the query is about."""

_MOST = 2**22  # counts in memory, at most
_TAKEN = {"model", "gold", "pred", "n"}  # column names that a counts table reserves


class Answer(NamedTuple):
    """A frame, and the call of a verb that gives it, as a user would write it."""

    rows: pl.DataFrame
    query: str


def without(frame: pl.DataFrame, columns: Collection[str]) -> pl.DataFrame:
    """Drop columns by exact name: `drop` would read a name like `^m.*$` as a pattern."""
    return frame[[name for name in frame.columns if name not in columns]]


def called(log: Described[Any], verb: Callable[..., Any], *keys: IntoKey, **options: object) -> str:
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
        return self.log.meaning.is_frequency and self.log.meaning.cluster is None

    @property
    def preds(self) -> Columns:
        """The predictions of the log."""
        preds = self.log.meaning.preds
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
        verb: Callable[..., Any],
        parts: Sequence[Part] = (),
        *,
        needs_draws: bool = True,
        **options: Any,  # noqa: ANN401 - of any verb
    ) -> Answer:
        """Call a verb on the counts if they are enough, else on the rows of the log."""
        keys = [part.key for part in parts]
        if self.counts_answer(parts, needs_draws=needs_draws):
            rows = verb(self.counts, *(part.by_name for part in parts), **options)
        else:
            rows = self.collect(
                about, lambda rows: verb(self.log.with_frame(rows), *keys, **options)
            )
        return Answer(rows, called(self.log, verb, *keys, **options))

    def ask_each(
        self,
        about: str,
        verb: Callable[..., Any],
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
            names = [*map(named, part.sets)]
            is_asked = of(names, part.columns, part.key) if names else None
            found.append(is_asked or self.ask(about, verb, [part], **options))
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
            named = [keys[name] for name in names]
            return sum(_groups(rows, named, GOLD, model) for model in models) <= most

        kept = as_many_as_fit([*keys], lambda name: _groups(frame, [keys[name]]), fits) or ()
        found: pl.DataFrame = counts(self.counts.with_frame(rows), *(keys[name] for name in kept))
        return found


def _groups(frame: pl.DataFrame, keys: Iterable[IntoKey], *labels: str) -> int:
    """The number of groups by crossed keys and labels."""
    number: int = frame.select(distinct([*columns_of(frame.schema, keys), *labels])).item()
    return number


def counted_once(log: Described[Any], columns: Mapping[str, IntoColumn], collect: Collect) -> Once:
    """Count a log by as many of these columns as fit into `_MOST` counts."""
    meaning = log.meaning
    weight = None if meaning.weight is None else meaning.weight.expr
    plain = log(weight=weight, sample_weight=None, cluster=None)

    def sliced(rows: pl.LazyFrame, names: Iterable[str]) -> SlicedLog:
        given: Sequence[Any] = [columns[name] for name in names]
        return cut(plain.with_frame(rows), given, taken=[])

    def number(keys: Sequence[str], *, labels: bool = True) -> int:
        """Estimate the number of groups, within 10 % or so, in little memory (HyperLogLog)."""

        def query(frame: pl.LazyFrame) -> pl.LazyFrame:
            log = sliced(frame, keys)
            labelled = ["gold", *(PRED + name for name in log.models)] if labels else []
            columns = [*(KEY + name for name in log.keys), *labelled]
            return log.frame.select(pl.struct(columns).hash().approx_n_unique())

        groups: int = collect("number of counts", query).item()
        return groups

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
        gold=pl.col(GOLD).alias(meaning.gold.name),
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

"""A log → its counts by all keys, made once. A report asks these counts instead of the log.

Counts are a log with fewer rows. In two cases the log is still needed. Intervals with clusters or
sample weights need the rows. Keys with very many values would make about as many counts as the log
has rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import polars as pl
import polars.selectors as cs

from polars_mcc._counts.cut import cut
from polars_mcc._counts.joint import GOLD, HAS_NONE, TIMES, N, joint
from polars_mcc._counts.sliced import KEY, PRED, SlicedLog
from polars_mcc._log.columns import IntoColumn, as_many_as_fit, distinct
from polars_mcc._log.described import Described
from polars_mcc._log.keys import columns_of
from polars_mcc._report.parts import Part
from polars_mcc._verbs.counts import counts

Query: TypeAlias = Callable[[pl.LazyFrame], pl.LazyFrame]
Collect: TypeAlias = Callable[[str, Query], pl.DataFrame]
"""Collects a query on the log. Its first argument says what the query is about."""

_MOST = 2**22  # counts in memory, at most
_TAKEN = {"model", "gold", "pred", "n"}  # column names that a counts table reserves


@dataclass(frozen=True)
class Once:
    """A log, and its counts by as many of the keys as fit into memory."""

    log: Described[Any]
    collect: Collect
    counts: Described[Any] | None
    keys: Sequence[str]
    """The names of the keys of the counts."""
    rows_are_draws: bool
    """Whether rows are independent: the log has neither clusters nor sample weights."""

    def counts_answer(self, parts: Sequence[Part], *, needs_draws: bool) -> bool:
        """Whether the counts can answer a question about these keys.

        `needs_draws`: the answer has intervals or p-values, so rows must be independent.
        """
        has_keys = self.counts is not None and all({*self.keys} >= {*one.needed} for one in parts)
        return has_keys and (self.rows_are_draws or not needs_draws)

    def ask(
        self,
        about: str,
        question: Callable[..., Any],
        parts: Sequence[Part] = (),
        *,
        needs_draws: bool = True,
    ) -> pl.DataFrame:
        """Answer a question from the counts if they are enough, else from the rows of the log.

        A question is a function of a log and its keys, such as a verb.
        """
        if self.counts_answer(parts, needs_draws=needs_draws):
            answer: pl.DataFrame = question(self.counts, *(part.by_name for part in parts))
            return answer
        keys = [part.key for part in parts]
        return self.collect(about, lambda rows: question(self.log.with_frame(rows), *keys))

    def size(self, parts: Sequence[Part]) -> float:
        """The number of slices of crossed keys; infinite if the counts lack one of the keys."""
        if self.counts is None or not self.counts_answer(parts, needs_draws=False):
            return math.inf
        frame: Any = self.counts.frame
        columns = [*columns_of(frame.schema, [part.by_name for part in parts])]
        number: int = frame.select(distinct(columns)).item()
        return number

    def fewer(self, most: int, parts: Sequence[Part]) -> pl.DataFrame:
        """A counts table of at most `most` rows, by as many keys as fit; else an empty frame.

        A key that a part bins is binned here too.
        """
        if self.counts is None or not most:
            return pl.DataFrame()
        frame: Any = self.counts.frame
        rows: pl.DataFrame = frame.filter(pl.col(N).is_not_null())
        models = [name for name in rows.columns if name.startswith(PRED)]
        keys = {name: Part(name, name, name, {name: name}) for name in self.keys}
        keys |= {part.name: part for part in parts if part.name in keys}

        def fits(names: Sequence[str]) -> bool:
            columns = [*columns_of(rows.schema, [keys[name].by_name for name in names])]
            counted = (distinct([*columns, GOLD, model]) for model in models)
            return bool(sum(rows.select(number).item() for number in counted) <= most)

        names = [name for name in keys if name not in _TAKEN]
        kept = as_many_as_fit(names, lambda name: self.size([keys[name]]), fits) or ()
        found: pl.DataFrame = counts(
            self.counts.with_frame(rows), *(keys[name].by_name for name in kept)
        )
        return found


def counted_once(log: Described[Any], columns: Mapping[str, IntoColumn], collect: Collect) -> Once:
    """Count a log by as many of these columns as fit into `_MOST` counts."""
    meaning = log.meaning
    rows_are_draws = meaning.is_frequency and meaning.cluster is None
    plain = log
    if not rows_are_draws:
        weight = None if meaning.weight is None else meaning.weight.expr
        plain = log(weight=weight, sample_weight=None, cluster=None)

    def sliced(rows: pl.LazyFrame, names: Iterable[str]) -> SlicedLog:
        given: Sequence[Any] = [columns[name] for name in names]
        return cut(plain.with_frame(rows), given, answers=[])

    chosen = _few_enough([*columns], sliced, collect)
    if chosen is None:
        return Once(log, collect, None, [], rows_are_draws)
    table = collect("counts", lambda rows: joint(sliced(rows, chosen)))
    assert meaning.preds is not None  # noqa: S101 - counts need predictions
    models = [pl.col(PRED + name).alias(name) for name in meaning.preds.names]
    as_log = plain.with_frame(
        _as_rows(table),
        gold=pl.col(GOLD).alias(meaning.gold.name),
        pred=models if meaning.preds.is_several else models[0],
        score=None,
        weight=N,
    )
    return Once(log, collect, as_log, chosen, rows_are_draws)


def _few_enough(
    names: Sequence[str],
    sliced: Callable[[pl.LazyFrame, Iterable[str]], SlicedLog],
    collect: Collect,
) -> Sequence[str] | None:
    """Choose the keys to count by. None: there are too many counts even without keys.

    A log with few rows has few counts, so its groups are not estimated.
    """
    rows: int = collect("rows", lambda rows: rows.select(pl.len())).item()
    if rows <= _MOST:
        return names

    def number(keys: Sequence[str], *, labels: bool = True) -> int:
        """Estimate the number of groups, within 10 % or so, in little memory (HyperLogLog)."""

        def query(frame: pl.LazyFrame) -> pl.LazyFrame:
            log = sliced(frame, keys)
            labelled = ["gold", *(PRED + name for name in log.models)] if labels else []
            columns = [*(KEY + name for name in log.keys), *labelled]
            return log.frame.select(pl.struct(columns).hash().approx_n_unique())

        groups: int = collect("number of counts", query).item()
        return groups

    return as_many_as_fit(
        names, lambda name: number([name], labels=False), lambda keys: number(keys) <= _MOST
    )


def _as_rows(table: pl.DataFrame) -> pl.DataFrame:
    """Turn counts into a log. Rows with a null weight have no sum, so each one stays a row."""
    if HAS_NONE not in table.columns:
        return table
    times = pl.when(HAS_NONE).then(TIMES).otherwise(1)
    n = pl.when(~pl.col(HAS_NONE)).then(N)
    rows = table.with_columns(n.alias(N)).select(pl.exclude(HAS_NONE, TIMES).repeat_by(times))
    return rows.explode(cs.all())

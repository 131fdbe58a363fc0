"""Labels that are missing for some rows more often than for others: scores of the rest mislead."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import polars as pl

from polars_mcc._base.message_parts import Words, option, said
from polars_mcc._base.values_as_text_or_markdown import rows_in_words
from polars_mcc._frame.columns import Frame
from polars_mcc._frame.late_labels import is_as_long
from polars_mcc._frame.log_options import Described
from polars_mcc._frame.roles import LABELLED_AT, Roles

_LEAST_ROWS, _LEAST_GAP, _LEAST_Z = 30, 0.1, 5.0
"""Rows of a prediction; the difference of two shares; and this difference per standard error."""

CollectQuery: TypeAlias = Callable[[Callable[[pl.LazyFrame], pl.LazyFrame]], pl.DataFrame]
"""Collects a query of the rows of a log."""


def labelled_unevenly(
    counts: pl.DataFrame, log: Described[Any], in_words: Callable[[str | None, object], str]
) -> Iterator[str]:
    """A sentence for each model for whose predictions labels are known unevenly.

    `counts` has the rows of each `model` and `pred`, and how many of them are `labelled`.
    `in_words` says a prediction of a model.
    """
    wait = said(", or its time, wait until all are there (", Words("min_age", "--min-age"), ")")
    no_weight = wait if log.min_age is None else ", no weight repairs it"
    many = counts.filter(pl.col("n") >= _LEAST_ROWS)
    shares = many.with_columns(share=pl.col("labelled") / pl.col("n")).sort("share", "pred")
    for (model,), rows in shares.group_by("model", maintain_order=True):
        few, most = rows.row(0, named=True), rows.row(-1, named=True)
        if not _is_more(few["labelled"], few["n"], most["labelled"], most["n"]):
            continue
        of_model = "" if model is None else f" by {model}"
        known, seldom = (f"{100 * row['share']:.0f} %" for row in (most, few))
        yield said(
            f"a label '{log.roles.gold.name}' is known for {known} of the rows predicted "
            f"{in_words(model, most['pred'])}{of_model}, and for {seldom} of those predicted "
            f"{in_words(model, few['pred'])}: the labelled rows are not like all rows. If only the "
            "prediction decides whether a label comes, use ",
            option("nulls", "reweight"),
            "; if the label itself does",
            no_weight,
        )


def _is_more(few: float, of_few: float, many: float, of_many: float) -> bool:
    """Whether the second of two shares is larger, by far and not by chance."""
    gap, mean = many / of_many - few / of_few, (few + many) / (of_few + of_many)
    error = math.sqrt(mean * (1 - mean) * (1 / of_few + 1 / of_many))
    return gap > max(_LEAST_GAP, _LEAST_Z * error)


def seldom_of_late(log: Described[Any], collect: CollectQuery) -> Iterator[str]:
    """A sentence if labels stopped coming, of a log whose rows are all old enough for them."""
    roles = log.roles
    if roles.waiting and roles.time is not None and log.min_age is not None:
        time, is_waiting = roles.time.expr.dt.date(), roles.gold.expr.is_null()
        n = pl.lit(1) if roles.weight is None else roles.weight.expr
        columns = {"time": time, "n": n, "waiting": is_waiting * n}
        sums = pl.col("n", "waiting").sum()
        days = collect(lambda rows: rows.select(**columns).group_by("time").agg(sums))
        yield from labels_that_stopped(days, roles.gold.name)


def labels_that_stopped(of_times: pl.DataFrame, gold: str) -> Iterator[str]:
    """A sentence if labels of that age are missing for the newest seven times, and not before.

    `of_times` has the rows of each `time`, `n`, and how many of them are `waiting`. All are old
    enough for their labels.
    """
    rows = of_times.drop_nulls().filter(pl.col("n") > 0).sort("time")
    older, newest = (part["n", "waiting"].sum().row(0) for part in (rows[:-7], rows[-7:]))
    if all(n >= _LEAST_ROWS for n, _ in (older, newest)) and _is_more(*older[::-1], *newest[::-1]):
        before, now = (f"{100 * waiting / n:.0f} %" for n, waiting in (older, newest))
        yield said(
            f"a label '{gold}' has not come for {now} of the rows since {rows['time'][-7]}, and "
            f"for {before} of the rows before, though all are old enough: scores of the newest "
            "rows are of quick labels; have labels stopped coming? If not, use a longer ",
            Words("min_age", "--min-age"),
        )


def none_labelled(counts: pl.DataFrame, roles: Roles) -> Iterator[str]:
    """A sentence if all rows wait: then the ids of both frames may differ."""
    n = float(counts["n"].sum())
    if roles.waiting and n and not counts["labelled"].sum():
        yield (
            f"no prediction has a label '{roles.gold.name}': all {rows_in_words(n)} wait; do the "
            "ids of predictions and labels have the same spelling?"
        )


def sooner_for_some(log: Described[Any], collect: CollectQuery) -> Iterator[str]:
    """A sentence if labels of one class come sooner than labels of another.

    It needs the times of predictions and labels.
    """
    roles, frame = log.roles, log.roles.source
    if not isinstance(frame, Frame) or LABELLED_AT not in frame.collect_schema():
        return
    if roles.time is None or roles.is_multilabel:
        return
    times = (column.cast(pl.Datetime("us")) for column in (pl.col(LABELLED_AT), roles.time.expr))
    days = operator.sub(*times).dt.total_seconds(fractional=True) / 86_400
    age, n = pl.col("days"), pl.len()
    sums = {"n": n, "age": age.mean(), "error": age.std() / n.sqrt(), "late": age.quantile(0.99)}

    def ages(rows: pl.LazyFrame) -> pl.LazyFrame:
        labelled = rows.select(gold=roles.gold.expr, days=days).drop_nulls()
        return labelled.group_by("gold").agg(**sums).filter(pl.col("n") >= _LEAST_ROWS)

    each = collect(ages).sort("age", "gold")
    if each.height < 2:
        return
    first, last = each.row(0, named=True), each.row(-1, named=True)
    gap, error = last["age"] - first["age"], math.hypot(first["error"], last["error"])
    late = f"{max(*map(math.ceil, each['late']), 1)}d"
    is_met = log.min_age is not None and is_as_long(log.min_age, late)
    if gap > max(_LEAST_GAP * last["age"], _LEAST_Z * error) and not is_met:
        yield said(
            f"a label '{roles.gold.name}' that is {first['gold']!r} comes after {first['age']:.1f} "
            f"days on average, and one that is {last['gold']!r} after {last['age']:.1f}: the "
            "newest rows have too many of those that come soon. Score only rows that are old "
            "enough for 99 % of each, as with ",
            option("min_age", late),
        )

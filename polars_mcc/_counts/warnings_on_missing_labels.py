"""Labels that are missing for some rows more often than for others: scores of the rest mislead."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

from polars_mcc._base.message_parts import option, said
from polars_mcc._base.values_as_text_or_markdown import rows_in_words
from polars_mcc._frame.frames import Frame
from polars_mcc._frame.log_options import Described
from polars_mcc._frame.roles import LABELLED_AT, Roles

_LEAST_ROWS, _LEAST_GAP, _LEAST_Z = 30, 0.1, 5.0
"""Rows of a prediction; the difference of two shares; and this difference per standard error."""


def labelled_unevenly(
    counts: pl.DataFrame, gold: str, in_words: Callable[[str | None, object], str]
) -> Iterator[str]:
    """A sentence for each model for whose predictions labels are known unevenly.

    `counts` has the rows of each `model` and `pred`, and how many of them are `labelled`.
    `in_words` says a prediction of a model.
    """
    many = counts.filter(pl.col("n") >= _LEAST_ROWS)
    shares = many.with_columns(share=pl.col("labelled") / pl.col("n")).sort("share", "pred")
    for (model,), rows in shares.group_by("model", maintain_order=True):
        few, most = rows.row(0, named=True), rows.row(-1, named=True)
        gap = most["share"] - few["share"]
        n = few["n"], most["n"]
        mean = (few["labelled"] + most["labelled"]) / sum(n)
        error = math.sqrt(mean * (1 - mean) * (1 / n[0] + 1 / n[1]))
        if gap <= _LEAST_GAP or gap <= _LEAST_Z * error:
            continue
        of_model = "" if model is None else f" by {model}"
        known, seldom = (f"{100 * row['share']:.0f} %" for row in (most, few))
        yield said(
            f"a label '{gold}' is known for {known} of the rows predicted "
            f"{in_words(model, most['pred'])}{of_model}, and for {seldom} of those predicted "
            f"{in_words(model, few['pred'])}: the labelled rows are not like all rows. If only the "
            "prediction decides whether a label comes, use ",
            option("nulls", "reweight"),
            "; if the label itself does, or its time, wait until all are there, as with ",
            option("min_age", "30d"),
        )


def none_labelled(counts: pl.DataFrame, roles: Roles) -> Iterator[str]:
    """A sentence if all rows wait: then the ids of both frames may differ."""
    n = float(counts["n"].sum())
    if roles.waiting and n and not counts["labelled"].sum():
        yield (
            f"no prediction has a label '{roles.gold.name}': all {rows_in_words(n)} wait; do the "
            "ids of predictions and labels have the same spelling?"
        )


def sooner_for_some(
    log: Described[Any],
    collect: Callable[[Callable[[pl.LazyFrame], pl.LazyFrame]], pl.DataFrame],
) -> Iterator[str]:
    """A sentence if labels of one class come sooner than labels of another.

    It needs the times of predictions and labels. `collect` collects a query of the rows of the log.
    """
    roles, frame = log.roles, log.roles.source
    if not isinstance(frame, Frame) or LABELLED_AT not in frame.collect_schema():
        return
    if roles.time is None or roles.is_multilabel:
        return
    times = (column.cast(pl.Datetime("us")) for column in (pl.col(LABELLED_AT), roles.time.expr))
    days = operator.sub(*times).dt.total_seconds(fractional=True) / 86_400
    age, n = pl.col("days"), pl.len()
    sums = {"n": n, "age": age.mean(), "error": age.std() / n.sqrt()}

    def ages(rows: pl.LazyFrame) -> pl.LazyFrame:
        labelled = rows.select(gold=roles.gold.expr, days=days).drop_nulls()
        return labelled.group_by("gold").agg(**sums).filter(pl.col("n") >= _LEAST_ROWS)

    each = collect(ages).sort("age", "gold")
    if each.height < 2:
        return
    first, last = each.row(0, named=True), each.row(-1, named=True)
    gap, error = last["age"] - first["age"], math.hypot(first["error"], last["error"])
    if gap > max(_LEAST_GAP * last["age"], _LEAST_Z * error):
        yield said(
            f"a label '{roles.gold.name}' that is {first['gold']!r} comes after {first['age']:.1f} "
            f"days on average, and one that is {last['gold']!r} after {last['age']:.1f}: the "
            "newest rows have too many of those that come soon. Score only rows that are old "
            "enough for all, as with ",
            option("min_age", "30d"),
        )

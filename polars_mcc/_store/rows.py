"""The rows of a store: what they are of, and how they are made into a log again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from polars_mcc._counts.cut import cut
from polars_mcc._counts.joint import GOLD, HAS_NONE, TIMES, joint
from polars_mcc._counts.joint import N as ROWS
from polars_mcc._counts.sliced import PRED
from polars_mcc._log.columns import as_expr
from polars_mcc._log.described import Described
from polars_mcc._log.keys import IntoKey, check_plain
from polars_mcc._log.plan_errors import Failure, told, unless
from polars_mcc._store.kept import N


def counts_to_keep(log: Described[Any], keys: Sequence[IntoKey]) -> pl.LazyFrame:
    """How many rows of a log are alike: a column per key, for gold, for each model, and `N`."""
    meaning = log.meaning
    if meaning.preds is None:
        msg = (
            "a store has counts of predicted labels: say which column is pred, and leave score out"
        )
        raise ValueError(msg)
    check_plain(keys, "a store", "its rows are counted once; name the columns alone")
    labels = _labels(log)
    sliced = cut(log, keys, answers=[*labels, N], lists=True)
    n = pl.col(ROWS)
    if sliced.weight_name is not None:
        message = told(
            f"weight '{sliced.weight_name}' is null in ",
            pl.col(TIMES),
            " rows that are alike, which counts cannot hold; fill or filter them first",
        )
        n = unless(n, Failure(pl.col(HAS_NONE), message))
    named = [pl.col(column).alias(name) for name, column in labels.items()]
    return joint(sliced).select(*sliced.keys, *named, n.alias(N))


def _labels(log: Described[Any]) -> dict[str, str]:
    """The columns of labels, by their names."""
    preds = log.meaning.preds
    assert preds is not None  # noqa: S101 - counts are of predictions
    gold = log.meaning.gold
    for name, pred in zip(preds.names, preds.given, strict=True):
        if name == gold.name and not as_expr(pred).meta.eq(as_expr(gold.given[0])):
            msg = f"gold and pred are both called '{name}', and not the same: name one otherwise"
            raise ValueError(msg)
    return {gold.name: GOLD, **{name: PRED + name for name in preds.names}}


def description(log: Described[Any]) -> dict[str, Any]:
    """How the counts of a log are described, as a log."""
    preds = log.meaning.preds
    assert preds is not None  # noqa: S101 - as above
    names = [*preds.names]
    return {"gold": log.meaning.gold.name, "pred": names if preds.is_several else names[0]}


def as_described(known: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by which a log is made of the counts of a store."""
    return {**known["columns"], "weight": N}

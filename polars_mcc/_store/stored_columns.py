"""A log → the counts that a store keeps, and how these counts become a log again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from polars_mcc._base.errors_and_warnings import Failure, unless
from polars_mcc._counts.pair_counts import GOLD, HAS_NONE, TIMES, joint
from polars_mcc._counts.pair_counts import N as ROWS
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._counts.sliced_log import PRED
from polars_mcc._frame.columns import as_expr
from polars_mcc._frame.log_options import Described
from polars_mcc._keys.any_key import IntoKey, check_plain
from polars_mcc._store.delta_table import INPUT_COLUMNS, N


def counts_to_keep(log: Described[Any], keys: Sequence[IntoKey]) -> pl.LazyFrame:
    """Count equal rows of a log: a column per key, for gold and for each model, and `N`."""
    roles = log.roles
    if roles.preds is None:
        raise ValueError("a store holds counts of predicted labels: pass pred, and leave score out")
    check_plain(keys, "a store", "each row is counted once; pass plain columns")
    gold, preds = roles.gold, roles.preds
    for name, pred in zip(preds.names, preds.given, strict=True):
        if name == gold.name and not as_expr(pred).meta.eq(gold.expr):
            msg = f"gold and pred are different columns, both called '{name}': rename one of them"
            raise ValueError(msg)
    labels = {gold.name: GOLD, **{name: PRED + name for name in preds.names}}
    sliced = cut(sides_of(log, several=True), keys, taken=[*labels, N, *INPUT_COLUMNS])
    n = pl.col(ROWS)
    if sliced.weight_name is not None:
        message = (
            f"weight '{sliced.weight_name}' is null in ",
            pl.col(TIMES),
            " equal rows, which a store cannot count; fill the nulls or filter the rows first",
        )
        n = unless(n, Failure(pl.col(HAS_NONE), message))
    named = [pl.col(column).alias(name) for name, column in labels.items()]
    return joint(sliced).select(*map(as_expr, sliced.keys), *named, n.alias(N))


def names_of_labels(log: Described[Any]) -> dict[str, Any]:
    """The names of gold and pred, by which the counts are a log again; and whether rows wait."""
    preds = log.roles.preds
    assert preds is not None  # noqa: S101 - a store needs predictions
    names = [*preds.names]
    labels = {"gold": log.roles.gold.name, "pred": names if preds.is_several else names[0]}
    return labels | ({"waiting": True} if log.roles.waiting else {})


def log_options_of(known: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `PredictionLog` for the counts of a store."""
    return {**known["columns"], "weight": N}

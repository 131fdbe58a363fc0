"""pairs → confusion matrix: the one step that makes something dense, when asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypeAlias

import polars as pl

from polars_mcc._classes import Nulls, is_scored, not_scored
from polars_mcc._log import Log
from polars_mcc._pairs import as_count
from polars_mcc._plan_errors import Failure

Normalize: TypeAlias = Literal["gold", "pred", "all"]


def confusion(
    log: Log,
    pairs: pl.LazyFrame,
    labels: pl.Series,
    normalize: Normalize | None,
    nulls: Nulls,
) -> pl.LazyFrame:
    """Spread the pairs of each slice over `labels` × `labels`, in their order."""
    columns = _columns(log, labels)
    scored = is_scored(pl.col("gold"), pl.col("pred"), nulls)
    cells = (
        pairs.filter(scored)
        .group_by(*log.slice, "gold")
        .agg(
            pl.when(pl.col("pred").eq_missing(pl.lit(label, log.labels)))
            .then("n")
            .otherwise(0)
            .sum()
            .alias(column)
            for column, label in zip(columns, labels, strict=True)
        )
    )
    listed = labels.implode()
    sums = {
        "n_null": not_scored(log, nulls).sum(),
        **{
            side: pl.col(side)
            .filter(scored & ~pl.col(side).is_in(listed, nulls_equal=True))
            .first()
            for side in ("gold", "pred")
        },
    }
    unlisted = pl.coalesce(pl.col("gold", "pred").cast(pl.String))
    message = pl.format(
        "label '{}' is not in labels: list every label that occurs, or leave labels out", unlisted
    )
    squares = (
        log.per_slice(pairs, **sums)
        .select(
            *log.slice,
            n_null=as_count(log, pl.col("n_null"), Failure(unlisted.is_not_null(), message)),
            gold=pl.lit(listed),
        )
        .explode("gold")
    )
    return squares.join(
        cells, on=[*log.slice, "gold"], how="left", nulls_equal=True, maintain_order="left"
    ).select(
        *log.slice,
        "gold",
        *_shares(log, columns, normalize),
        "n_null",
    )


def _columns(log: Log, labels: pl.Series) -> list[str]:
    names = ["null" if label is None else str(label) for label in labels]
    model = ["model"] if log.several else []
    for name, times in Counter([*log.keys, *model, "gold", *names, "n_null"]).items():
        if times > 1:
            msg = (
                f"the matrix would have {times} columns named '{name}': it has the keys, "
                "'gold', the labels as text, and 'n_null'; rename a key or a label, or take "
                "counts(), which has a row per cell"
            )
            raise pl.exceptions.DuplicateError(msg)
    return names


def _shares(log: Log, columns: Sequence[str], normalize: Normalize | None) -> list[pl.Expr]:
    cells = [pl.col(column).fill_null(0) for column in columns]
    if normalize is None:
        return cells
    cells = [cell.cast(log.numbers.wide) for cell in cells]
    gold_n = pl.sum_horizontal(cells)

    def share(cell: pl.Expr) -> pl.Expr:
        whole = gold_n
        if normalize != "gold":
            whole = log.within_slice((cell if normalize == "pred" else gold_n).sum())
        part, whole = cell.cast(pl.Float64), whole.cast(pl.Float64)
        return pl.when(whole > 0).then(part / whole).otherwise(0.0)

    return [share(cell) for cell in cells]

"""Which rows of an answer have a score that is 0/0, or none."""

from __future__ import annotations

import polars as pl

from polars_mcc._log.columns import as_expr
from polars_mcc._scores import registry

_AT_0 = {"mcc_normalized": 0.5, "fdr": 1.0, "for": 1.0}
"""What stands for 0/0 by default, if it is not 0."""


def undefined(result: pl.DataFrame, metric: str) -> pl.Expr:
    """Whether a scored row has no score: it is null, NaN, or what stands for 0/0.

    What stands for 0/0 has no interval. In an answer without intervals it looks like a score.
    There, every 0 of MCC and its kin is meant, and no 0 of a rate.
    """
    score = as_expr(metric).cast(pl.Float64)
    no_score = score.is_null() | score.is_nan()
    known = next((one for one in registry.built_in() if one.name == metric), None)
    at_0 = score == _AT_0.get(metric, 0.0)
    if known is None or not known.undefined or known.given == "gold":
        at_0 = pl.lit(value=False)
    elif f"{metric}_low" in result.columns and not known.no_interval:
        at_0 &= as_expr(f"{metric}_low").is_null()
        if "n_clusters" in result.columns:  # One cluster has no interval.
            at_0 &= pl.col("n_clusters") > 1
    elif not known.is_of_two:
        at_0 = pl.lit(value=False)
    return (no_score | at_0.fill_null(value=False)) & (pl.col("n") > 0)


def counted(result: pl.DataFrame, metric: str, what: str) -> str:
    """A sentence on the rows of an answer whose score is undefined; "" if there are none."""
    rows = result.filter(undefined(result, metric))
    if rows.is_empty():
        return ""
    is_shown = rows.select(as_expr(metric).cast(pl.Float64).is_finite().any()).item()
    may_be_0 = is_shown and f"{metric}_low" not in result.columns
    is_0 = "0, or 0/0 (one class only)," if may_be_0 else "0/0 (one class only)"
    return f"{metric} is {is_0} in {rows.height:,} of {result.height:,} {what}"

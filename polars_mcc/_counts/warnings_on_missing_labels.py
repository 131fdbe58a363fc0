"""Labels that are missing for some predictions more often: scores of labelled rows then mislead."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import polars as pl

from polars_mcc._base.message_parts import option, said

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

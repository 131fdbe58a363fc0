"""A search in words: its slices, their confusions, and what was tested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from polars_mcc._base.allowed_values import Reference
from polars_mcc._base.values_as_text_or_markdown import count_as_text, label_text, percent
from polars_mcc._counts.sliced_log import SAID

LONGEST_LIST = 100
"""The most slices of a list, unless `top` is larger."""
_MORE = {
    "beyond the list": "not listed",
    "explained by those listed": "only because they share rows with these",
}
_REFERENCES = {"rest": "the rest of the log", "expected": "expected of their labels"}


def summed_up(answer: pl.DataFrame, to: Reference, *, has_models: bool) -> str:
    """Sum up a search in words, from a result with all verdicts."""
    models = answer.unique("model") if has_models else answer.head(1)
    if models.is_empty():
        return "No slice was tested: none has enough rows and two labels."
    of_models = f" of {models.height} models" if models.height > 1 else ""
    untested = models["n_untested"].sum()
    small = f" ({untested:,} more not: too few rows or labels)" if untested else ""
    n_of = {str(verdict): n for verdict, n in answer["verdict"].value_counts().rows()}
    listed = n_of.get("listed", 0)
    worse = [f"{listed or 'none'} {'are' if listed > 1 else 'is'} worse than {_REFERENCES[to]}"]
    worse += [
        f"{n_of[verdict]:,} more {words}" for verdict, words in _MORE.items() if verdict in n_of
    ]
    nearest = _nearest(answer, has_models=has_models).iter_rows(named=True)
    shown = [_unlisted_in_words("Nearest", row, to, has_models=has_models) for row in nearest]
    tested = f"{models['n_tested'].sum():,} slices{of_models} tested{small}"
    return " ".join([f"{tested}: {'; '.join(worse)}.", *shown])


def _nearest(answer: pl.DataFrame, *, has_models: bool) -> pl.DataFrame:
    """The slice that is nearest to the list, of each model in which no slice fails."""
    fails = (pl.col("verdict") == "listed").any()
    fails = fails.over("model") if has_models else fails
    slices = answer.filter(~fails, verdict="not behind")
    return slices.unique("model", keep="first", maintain_order=True) if has_models else slices[:1]


def _unlisted_in_words(
    name: str, row: Mapping[str, Any], to: Reference, *, has_models: bool
) -> str:
    """A slice that is not listed, with the scores that are compared."""
    here, there = (
        "undefined" if score is None else f"{score:.3f}"
        for score in (row["score"], row["reference" if to == "rest" else to])
    )
    reference = "rest of the log" if to == "rest" else "expected"
    p = row["p_adjusted"]  # None: with clusters it is not computed for all slices.
    sure = "" if p is None else f", p_adjusted {p:.2g}"
    model = f" ({row['model']})" if has_models else ""
    scores = f"{row['metric']} {here}, {reference} {there}{sure}"
    return f"{name}: {row[SAID]}{model} (n {count_as_text(row['n'])}, {scores})."


def confusion_in_words(gold: object, pred: object, share: float, rest: float | None) -> str:
    """A confusion in words, such as `40 % of gold 0 predicted 1, 28 % elsewhere`."""
    elsewhere = "none elsewhere" if rest is None else f"{percent(rest)} elsewhere"
    return f"{percent(share)} of gold {label_text(gold)} predicted {label_text(pred)}, {elsewhere}"


def collapse_in_words(pred: object, missed: object, n: float) -> str:
    """One predicted label in words, such as `predicts only 'no': 0 of 120 'yes' found`.

    `missed` is the most frequent label that is not predicted, `n` its rows.
    """
    rows = count_as_text(n)
    return f"predicts only '{label_text(pred)}': 0 of {rows} '{label_text(missed)}' found"

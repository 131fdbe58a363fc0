"""Keys that make no useful slices: ids of rows, labels, predictions and scores of a model.

A sample of the rows is enough to see it. Slices of such a key differ by construction: a slice
"where the score is high" says nothing about where the model fails.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from polars_mcc._base.message_parts import as_time, said
from polars_mcc._counts.sliced_log import KEY, PRED, SlicedLog
from polars_mcc._counts.warnings_on_labels_and_keys import alike, differ
from polars_mcc._frame.labels import is_text
from polars_mcc._keys.bins import cuts_of
from polars_mcc._worst.column_codes import CodedLog, codes_of, totals

_BINS = 20  # bins of numbers: at most one of them holds the threshold of a score
_FEW_VALUES = 1_000  # values of a text that are compared with each other, at most
_MANY = 50  # least values of a text that may be an id or a time
_LEAST = 10  # rows of a value, to say that all have one label
_PURE = 0.9  # share of the rows whose value has one label; the rest is noise, or that one bin
_LEAST_KAPPA = 0.5  # kappa of a key with gold, as a share of the kappa of the model
_LEAST_GINI = 0.5  # Gini coefficient from which a number between 0 and 1 is called a score


def odd_keys(log: CodedLog, gold: str, min_n: float) -> Iterator[str]:
    """A sentence for each key that is probably an id, a label, a prediction or a score.

    `gold` is the name of the gold label. A slice needs `min_n` rows.
    """
    sliced, weights = log.sliced, log.weights
    n = len(log.rows["gold"]) if weights is None else float(weights.n.sum())
    models = () if sliced.is_of_scores else sliced.models
    names = {"gold": gold, **{PRED + name: name for name in models}}
    rows = log.sample.with_columns(pl.col(side).cast(sliced.label_dtype) for side in names)
    yield from _spellings(log)
    for key in sliced.keys:
        dtype, of_key = sliced.key_dtypes[key], rows.rename({KEY + key: "key"})
        if dtype.is_nested() or rows.is_empty() or key == gold:  # Another warning is of gold.
            continue
        values = log.n_values.get(key, 0)
        if is_text(dtype) and values > _MANY and n < values * min_n:
            yield said(
                f"key '{key}' is text with about {float(f'{min(values, n):.2g}'):,.0f} values, so "
                "most of its slices have too few rows. Is it a time? Convert it, as in ",
                as_time(key),
                ". Is it an id? Leave it out.",
            )
        elif dtype.is_integer() and values >= 0.9 * n and n >= 100:
            yield (
                f"key '{key}' has a value of its own in nearly every row. Is it the id of a row? "
                "Leave it out."
            )
        elif label := _pure_label(rows[KEY + key], log, names):
            what = "label" if label == gold else "prediction or the score"
            yield (
                f"nearly every value of key '{key}' has one label of '{label}'. Is it a {what}? "
                "Leave it out: its slices differ by construction."
            )
        elif models and _is_prediction(of_key, sliced):
            yield (
                f"key '{key}' has labels for values, and meets '{gold}' nearly as often as "
                f"'{models[0]}' does. Is it a prediction of another model? Leave it out."
            )
        elif models and _is_score(of_key, sliced):
            yield (
                f"key '{key}' is between 0 and 1, and sorts the rows by '{gold}' as well as the "
                "model. Is it a score? Leave it out."
            )


def _spellings(log: CodedLog) -> Iterator[str]:
    """A sentence for each key of few values that differ only in case, spaces or Unicode form.

    All rows count: the values of a key with a few rows each make slices too.
    """
    for key, of_values in log.n_of_texts.items():
        rows = dict(of_values.iter_rows()) if log.n_values[key] <= _FEW_VALUES else {}
        if groups := alike(rows):
            yield f"values of a key {differ(groups, [(key, rows)])}; each makes slices of its own"


def _pure_label(key: pl.Series, log: CodedLog, names: dict[str, str]) -> str | None:
    """The name of the first label column that the values of a key tell."""
    weight = log.sample["weight"]
    if key.dtype.is_numeric():  # Numbers with many values are binned.
        rows = pl.DataFrame({"key": key, "weight": weight})
        [cuts] = cuts_of(rows.lazy(), _BINS, few=_BINS)
        key = rows.select(cuts.bin_of(pl.col("key"))).to_series() if cuts.ends else key
    codes, values = codes_of(key)
    n_labels = len(log.labels)
    shape = len(values), n_labels + 1
    weights = None if log.weights is None else log.weights.n[log.sampled]
    for side, name in names.items():
        sides = [codes, log.rows[side][log.sampled]]
        n, number = (totals(sides, shape, weight)[:, :n_labels] for weight in (weights, None))
        is_enough = n.sum(1) >= _LEAST
        is_pure = is_enough & (np.count_nonzero(number, axis=1) == 1)
        n_told = np.count_nonzero(number[is_pure].any(0))
        if n_told > 1 and n[is_pure].sum() >= _PURE * n[is_enough].sum():
            return name
    return None


def _is_prediction(rows: pl.DataFrame, log: SlicedLog) -> bool:
    """Whether the values of a key are labels that meet gold as those of the first model do."""
    dtype, labels, gold = rows.schema["key"], log.label_dtype, pl.col("gold")
    are_alike = dtype == labels or (is_text(dtype) and is_text(labels))
    if not (are_alike or (dtype.is_integer() and labels.is_integer())):
        return False
    pred = PRED + log.models[0]
    guess = pl.col("key").cast(labels, strict=False)
    known = rows.select("gold", pred, "weight", guess=guess).drop_nulls()
    of_gold = known["gold"].unique()
    is_label = known["guess"].is_in(of_gold.implode()).all()
    if known.height < rows.height / 2 or not is_label or known["guess"].n_unique() < 2:
        return False
    of_key, of_model = (_kappa(known, gold, pl.col(side)) for side in ("guess", pred))
    return of_key >= _LEAST_KAPPA * max(of_model, 0.2)


def _kappa(rows: pl.DataFrame, gold: pl.Expr, guess: pl.Expr) -> float:
    """How much more often than by chance two columns agree: Cohen's kappa."""
    n = pl.col("weight").cast(pl.Float64)
    agree = rows.select((n * (gold == guess)).sum() / n.sum()).item()
    shares = [
        rows.group_by(side.alias("label")).agg(share=n.sum() / rows["weight"].sum())
        for side in (gold, guess)
    ]
    both = shares[0].join(shares[1], on="label")
    chance: float = both.select((pl.col("share") * pl.col("share_right")).sum()).item()
    return (agree - chance) / (1 - chance) if chance < 1 else 0.0


def _is_score(rows: pl.DataFrame, log: SlicedLog) -> bool:
    """Whether a float between 0 and 1 sorts two gold classes as well as the model does."""
    known = rows.drop_nulls(["gold", "key"])
    key, labels = known["key"], known["gold"].unique().sort()
    is_weighted = log.weight_name is not None
    if not key.dtype.is_float() or len(labels) != 2 or is_weighted:
        return False
    if not key.is_between(0, 1).all():
        return False
    is_second, pred = pl.col("gold") == labels[1], pl.col(PRED + log.models[0]) == labels[1]

    def gini(score: pl.Expr) -> float:
        """Twice the area under the ROC curve, minus 1. For predictions it is informedness."""
        of_second = score.rank().filter(is_second).mean() - score.rank().mean()
        coefficient: float | None = known.select(2 * of_second / (~is_second).sum()).item()
        return abs(coefficient or 0.0)

    return gini(pl.col("key")) >= max(gini(pred.cast(pl.Int8)), _LEAST_GINI)

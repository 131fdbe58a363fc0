"""`confusion`: the counts as a confusion matrix per slice, or its cells, or the costliest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl

from polars_mcc._counts.classes import is_scored, not_scored, of_pairs, with_margins
from polars_mcc._counts.cut import cut
from polars_mcc._counts.pairs import pairs as pairs_of
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._log.choices import Normalize, check_at_least, check_choice
from polars_mcc._log.described import Described
from polars_mcc._log.frames import FrameT
from polars_mcc._log.keys import IntoKey
from polars_mcc._log.labels import as_labels, known_labels, label_names
from polars_mcc._log.plan_errors import Failure, told
from polars_mcc._scores.r_k import correlation, divide, summed

_COST = ("contribution", "loss")


def confusion(
    log: Described[FrameT],
    *keys: IntoKey,
    labels: Sequence[object] | None = None,
    normalize: Normalize | None = None,
    long: bool = False,
    top: int | None = None,
) -> FrameT:
    """Lay the counts out as a confusion matrix per slice, or list the confusions that cost most.

    Args:
        *keys: What makes slices, as in `by`.
        labels: The labels, in the order of rows and columns; all that occur must be listed, and
            others may be. None: the labels that a Boolean or Enum column can have, or else those
            that occur, sorted. The columns of a lazy matrix must be known before data are read,
            so for a LazyFrame of other labels they are listed; not so if `long`.
        normalize: Shares in place of counts: of each gold label ("gold": the rows add up to 1),
            of each predicted label ("pred": the columns do), or of the slice ("all"). A share of
            nothing is 0.
        long: A row per cell in place of a column per label: of all `labels`, if they are listed,
            or else of the pairs that occur.
        top: Only the confusions, gold and pred apart, that cost most of the score, at most so
            many of each slice, the costliest first; long.

    Returns:
        A frame of the kind of the log, sorted by the keys: for each slice a row per label,
        `gold`, and a column per predicted label, named by its text ("null" for null, if the log
        takes null for a label). Cells are Int64, or Float64 for shares and for float weights.
        `n_null` is the number of rows of the slice that are in no cell. `to_numpy` makes an array
        of it.

        If `long`, the columns are the keys, `gold`, `pred` (in a dtype that holds both), `n`, or
        `share` (Float64) with `normalize`, and `n_null`. With `top` there are also, before
        `n_null`,

        - `contribution` (Float64), below 0: the pair's part of R_K. Of n_ij rows with gold label
          i and predicted label j ≠ i it is -n_ij (p_i + t_j) / 2, over the denominator of R_K;
          with n_ii (s - (p_i + t_i) / 2) for the hits, all add up to R_K. By this they are
          ranked; pairs of one contribution, by their labels.
        - `loss` (Float64): what R_K would gain if these rows were predicted right.

    Raises:
        ValueError: The labels of a LazyFrame are not known; `top` is no positive integer, or
            given with `labels`.
        polars.exceptions.DuplicateError: Two columns would have one name.
        polars.exceptions.InvalidOperationError: On `collect`: a label occurs that is not
            in `labels`.

    Errors of `by` are raised too.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": ["a", "a", "b", "a"], "pred": ["a", "b", "b", "a"]})
        >>> log.mcc.confusion()
        shape: (2, 4)
        ┌──────┬─────┬─────┬────────┐
        │ gold ┆ a   ┆ b   ┆ n_null │
        │ ---  ┆ --- ┆ --- ┆ ---    │
        │ str  ┆ i64 ┆ i64 ┆ i64    │
        ╞══════╪═════╪═════╪════════╡
        │ a    ┆ 2   ┆ 1   ┆ 0      │
        │ b    ┆ 0   ┆ 1   ┆ 0      │
        └──────┴─────┴─────┴────────┘
        >>> log.mcc.confusion(top=3).select("gold", "pred", "n", pl.col("loss").round(3)).rows()
        [('a', 'b', 1, 0.423)]

    Command line:
        polars-mcc confusion logs/ --by country --top 5
    """
    if normalize is not None:
        check_choice("normalize", normalize, Normalize)
    if top is not None:
        check_at_least("top", top, 1)
        if labels is not None:
            msg = "top lists confusions that occur: leave labels out"
            raise ValueError(msg)
    cell = ["pred", _value_name(normalize)] if long or top is not None else []
    cost = () if top is None else _COST
    sliced = cut(log, keys, answers=["gold", *cell, *cost, "n_null"])
    pairs = pairs_of(sliced)
    if top is not None:
        found = _costliest(sliced, pairs, normalize, top)
        return log.in_kind(sliced.answer(found, "contribution", "gold", "pred"))
    if long and labels is None:
        found = _long(sliced, pairs, None, normalize)
        return log.in_kind(sliced.answer(found, "gold", "pred"))
    listed = as_labels(
        _labels_of(log, sliced) if labels is None else labels,
        sliced.label_dtype,
        null=sliced.nulls == "label",
    )
    matrix = (_long if long else _wide)(sliced, pairs, listed, normalize)
    return log.in_kind(sliced.answer(matrix))


def _labels_of(log: Described[Any], sliced: SlicedLog) -> Sequence[object]:
    known = known_labels(sliced.label_dtype)
    if known is not None:
        return known
    if log.meaning.is_lazy:
        msg = (
            f"the columns of a lazy confusion matrix must be known beforehand: pass labels=[...], "
            f"cast the {sliced.label_dtype} labels to an Enum, collect() first, or take long=True, "
            "which has a row per cell"
        )
        raise ValueError(msg)
    return sliced.distinct_labels().collect().to_series().to_list()


def _wide(
    log: SlicedLog, pairs: pl.LazyFrame, labels: pl.Series, normalize: Normalize | None
) -> pl.LazyFrame:
    """A row per slice and gold label, and a column per predicted label, in the order of labels."""
    columns = _columns(log, labels)
    value = _value_name(normalize)
    lines = (
        _cells(log, pairs, normalize)
        .group_by(*log.slice, "gold")
        .agg(
            pl.col(value)
            .filter(pl.col("pred").eq_missing(pl.lit(label, log.label_dtype)))
            .sum()
            .alias(column)
            for column, label in zip(columns, labels, strict=True)
        )
    )
    squares = _with_label(_slices(log, pairs, labels), "gold", labels)
    return _beside(log, squares, lines, ["gold"]).select(
        *log.slice, "gold", pl.col(columns).fill_null(0), "n_null"
    )


def _long(
    log: SlicedLog, pairs: pl.LazyFrame, labels: pl.Series | None, normalize: Normalize | None
) -> pl.LazyFrame:
    """A row per slice and pair: of all labels, if they are listed, or of the pairs that occur.

    A slice of which no row is scored has one row without labels, for the sake of `n_null`.
    """
    value = _value_name(normalize)
    pairs = pairs.cache()
    cells = _cells(log, pairs, normalize)
    slices = _slices(log, pairs, labels)
    if labels is None:
        found = _beside(log, slices, cells, [])
    else:
        squares = _with_label(_with_label(slices, "gold", labels), "pred", labels)
        found = _beside(log, squares, cells, ["gold", "pred"])
    return found.select(*log.slice, "gold", "pred", pl.col(value).fill_null(0), "n_null")


def _costliest(
    log: SlicedLog, pairs: pl.LazyFrame, normalize: Normalize | None, top: int
) -> pl.LazyFrame:
    """The confusions of each slice that cost most of its score, at most so many.

    The numerator of R_K is a sum over pairs, Σ n_ij (s [i = j] - (p_i + t_j) / 2), because
    Σ t_k p_k is Σ n_ij p_i, and Σ n_ij t_j. So a pair's part of R_K, its `contribution`, is that
    term, divided by the denominator, and all of them add up to R_K. `loss` is what R_K would
    gain if these rows were predicted right: if n_ij rows moved from (i, j) to (i, i).
    """
    numbers, value = log.numbers, _value_name(normalize)
    pairs = pairs.cache()
    cells = _cells(log, pairs, normalize)
    classes = of_pairs(log, pairs).cache()
    slices, sums = summed(log, classes)
    n, s = pl.col("units"), pl.col("s")
    gold_t, gold_p, pred_t, pred_p = map(pl.col, ("gold_t", "gold_p", "pred_t", "pred_p"))
    var_gold, var_pred = sums.variances(numbers)
    cov = sums.covariance(numbers)
    # If n rows move, c, p_i and -p_j become as many more.
    moved = numbers.product(n, gold_p - pred_p + n)
    floats = {
        "cov": cov,
        "var_gold": var_gold,
        "var_pred": var_pred,
        "cov_if": cov + numbers.product(n, s - gold_t + pred_t),
        "var_pred_if": var_pred - moved - moved,
        "cost": numbers.product(n, gold_p) + numbers.product(n, pred_t),
    }
    columns = {name: pl.col(name) for name in floats}
    score = correlation(columns["cov"], columns["var_gold"], columns["var_pred"], 0.0)
    score_if = correlation(columns["cov_if"], columns["var_gold"], columns["var_pred_if"], 0.0)
    spread = (columns["var_gold"] * columns["var_pred"]).sqrt()
    confusions = cells.filter(pl.col("gold").ne_missing(pl.col("pred")) & (pl.col("n") > 0))
    found = (
        log.beside(
            with_margins(log, confusions, classes), slices.select(*log.slice, *sums.columns())
        )
        .with_columns(**{name: product.to_float() for name, product in floats.items()})
        .select(
            *log.slice,
            "gold",
            "pred",
            value,
            contribution=divide(-columns["cost"] / 2, spread, 0.0),
            loss=score_if - score,
        )
        .sort("contribution", "gold", "pred")
        .filter(log.within_slice(pl.int_range(pl.len())) < top)
    )
    return log.beside(found, _slices(log, pairs, None))


def _value_name(normalize: Normalize | None) -> str:
    """The column of counts, or of shares."""
    return "n" if normalize is None else "share"


def _cells(log: SlicedLog, pairs: pl.LazyFrame, normalize: Normalize | None) -> pl.LazyFrame:
    """The pairs that are scored, with their share of a gold label, a predicted one, or all."""
    scored = pairs.filter(is_scored(log))
    if normalize is None:
        return scored
    n = pl.col("n").cast(log.numbers.wide)
    group = [*log.slice, *([] if normalize == "all" else [normalize])]
    part, whole = n.cast(pl.Float64), (n.sum().over(group) if group else n.sum())
    return scored.with_columns(share=divide(part, whole.cast(pl.Float64), 0.0))


def _slices(log: SlicedLog, pairs: pl.LazyFrame, labels: pl.Series | None) -> pl.LazyFrame:
    """The slices and how many of their rows are in no cell; or an error for a missing label."""
    sums = {"n_null": not_scored(log).sum()}
    failures: list[Failure] = []
    if labels is not None:
        scored, listed = is_scored(log), labels.implode()
        for side in ("gold", "pred"):
            is_missing = scored & ~pl.col(side).is_in(listed, nulls_equal=True)
            sums[side] = pl.col(side).filter(is_missing).first()
        unlisted = pl.coalesce(pl.col("gold", "pred").cast(pl.String))
        message = told(
            "label '",
            unlisted,
            "' is not in labels: list every label that occurs, or leave labels out",
        )
        failures.append(Failure(unlisted.is_not_null(), message))
    n_null = log.numbers.as_count(pl.col("n_null"), *failures)
    return log.per_slice(pairs, **sums).select(*log.slice, n_null=n_null)


def _with_label(slices: pl.LazyFrame, side: str, labels: pl.Series) -> pl.LazyFrame:
    """Repeat each row for each label."""
    return slices.with_columns(pl.lit(labels.implode()).first().alias(side)).explode(side)


def _beside(
    log: SlicedLog, slices: pl.LazyFrame, cells: pl.LazyFrame, labels: list[str]
) -> pl.LazyFrame:
    cells = cells.drop("n_null", strict=False)
    on = [*log.slice, *labels] or pl.lit(0)
    return slices.join(cells, on=on, how="left", nulls_equal=True, maintain_order="left")


def _columns(log: SlicedLog, labels: pl.Series) -> list[str]:
    names = label_names(labels)
    for name, times in Counter([*log.names.values(), "gold", *names, "n_null"]).items():
        if times > 1:
            msg = (
                f"the matrix would have {times} columns named '{name}': it has the keys, "
                "'gold', the labels as text, and 'n_null'; rename a key or a label, or take "
                "long=True, which has a row per cell"
            )
            raise pl.exceptions.DuplicateError(msg)
    return names

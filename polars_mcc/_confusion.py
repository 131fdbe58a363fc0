"""pairs → confusion matrix: its cells, or, the one step that makes something dense, the square."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal, TypeAlias

import polars as pl

from polars_mcc._classes import Nulls, is_scored, not_scored, of_pairs, with_margins
from polars_mcc._log import Log, check_collected
from polars_mcc._pairs import as_count
from polars_mcc._plan_errors import Failure
from polars_mcc._scores import correlation, divide, sums_of_slices

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Normalize: TypeAlias = Literal["gold", "pred", "all"]

COST = ("contribution", "loss")


def wide(
    log: Log, pairs: pl.LazyFrame, labels: pl.Series, normalize: Normalize | None, nulls: Nulls
) -> pl.LazyFrame:
    """A row per slice and gold label, and a column per predicted label, in the order of labels."""
    columns = _columns(log, labels)
    value = value_name(normalize)
    lines = (
        _cells(log, pairs, normalize, nulls)
        .group_by(*log.slice, "gold")
        .agg(
            pl.col(value)
            .filter(pl.col("pred").eq_missing(pl.lit(label, log.labels)))
            .sum()
            .alias(column)
            for column, label in zip(columns, labels, strict=True)
        )
    )
    slices = _slices(log, pairs, nulls, labels)
    squares = slices.with_columns(gold=pl.lit(labels.implode()).first()).explode("gold")
    return _beside(log, squares, lines, ["gold"]).select(
        *log.slice, "gold", pl.col(columns).fill_null(0), "n_null"
    )


def long(
    log: Log,
    pairs: pl.LazyFrame,
    labels: pl.Series | None,
    normalize: Normalize | None,
    nulls: Nulls,
) -> pl.LazyFrame:
    """A row per slice and pair: of all labels, if they are listed, or of the pairs that occur.

    A slice of which no row is scored has one row without labels, for the sake of `n_null`.
    """
    value = value_name(normalize)
    pairs = pairs.cache()
    cells = _cells(log, pairs, normalize, nulls)
    slices = _slices(log, pairs, nulls, labels)
    if labels is None:
        one = pl.lit(value=True).alias("one")
        found = _beside(log, slices.with_columns(one), cells.with_columns(one), ["one"])
    else:
        listed = pl.lit(labels.implode()).first()
        squares = slices.with_columns(gold=listed).explode("gold")
        squares = squares.with_columns(pred=listed).explode("pred")
        found = _beside(log, squares, cells, ["gold", "pred"])
    return found.select(*log.slice, "gold", "pred", pl.col(value).fill_null(0), "n_null")


def costliest(
    log: Log, pairs: pl.LazyFrame, normalize: Normalize | None, nulls: Nulls, top: int
) -> pl.LazyFrame:
    """The confusions of each slice that cost most of its score, at most so many.

    The numerator of R_K is a sum over pairs, Σ n_ij (s [i = j] - (p_i + t_j) / 2), because
    Σ t_k p_k is Σ n_ij p_i, and Σ n_ij t_j. So a pair's part of R_K, its `contribution`, is that
    term, divided by the denominator, and all of them add up to R_K. `loss` is what R_K would
    gain if these rows were predicted right: if n_ij rows moved from (i, j) to (i, i).
    """
    numbers, value = log.numbers, value_name(normalize)
    pairs = pairs.cache()
    cells = _cells(log, pairs, normalize, nulls)
    classes = of_pairs(log, pairs, nulls).cache()
    slices, sums = sums_of_slices(log, classes)
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
        log.beside(with_margins(log, confusions, classes), slices.drop("null", "unit"))
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
    return log.beside(found, _slices(log, pairs, nulls, None))


def value_name(normalize: Normalize | None) -> str:
    """The column of counts, or of shares."""
    return "n" if normalize is None else "share"


def to_numpy(matrix: pl.DataFrame) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    """The squares of a confusion matrix as an array, in scikit-learn's orientation.

    Args:
        matrix: What `confusion` gives, wide: a column per predicted label.

    Returns:
        An array of shape (labels, labels), a row per gold and a column per predicted label, as
        `sklearn.metrics.confusion_matrix` has it; of several slices, (slices, labels, labels) in
        the order of the frame. Int64, or Float64 for shares and float weights.

    Raises:
        TypeError: It is no DataFrame.
        ValueError: It is no such matrix.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": ["a", "a", "b", "a"], "pred": ["a", "b", "b", "a"]})
        >>> polars_mcc.to_numpy(polars_mcc.confusion(log))
        array([[2, 1],
               [0, 1]])
    """
    check_collected(matrix, "to_numpy takes")
    names = matrix.columns
    if names[-1:] != ["n_null"] or "gold" not in names or "pred" in names:
        msg = (
            "to_numpy takes what confusion() gives, a column per predicted label between 'gold' "
            f"and 'n_null', but the columns are {names}"
        )
        raise ValueError(msg)
    before = names.index("gold")
    cells = matrix.select(names[before + 1 : -1])
    array = cells.to_numpy()
    if before == 0:
        return array
    return array.reshape(-1, cells.width, cells.width)


def _cells(
    log: Log, pairs: pl.LazyFrame, normalize: Normalize | None, nulls: Nulls
) -> pl.LazyFrame:
    """The pairs that are scored, with their share of a gold label, a predicted one, or all."""
    scored = pairs.filter(is_scored(pl.col("gold"), pl.col("pred"), nulls))
    if normalize is None:
        return scored
    n = pl.col("n").cast(log.numbers.wide)
    group = [*log.slice, *([] if normalize == "all" else [normalize])]
    part, whole = n.cast(pl.Float64), (n.sum().over(group) if group else n.sum())
    return scored.with_columns(share=divide(part, whole.cast(pl.Float64), 0.0))


def _slices(log: Log, pairs: pl.LazyFrame, nulls: Nulls, labels: pl.Series | None) -> pl.LazyFrame:
    """The slices and how many of their rows are in no cell; or an error for a missing label."""
    sums = {"n_null": not_scored(log, nulls).sum()}
    failures: list[Failure] = []
    if labels is not None:
        scored, listed = is_scored(pl.col("gold"), pl.col("pred"), nulls), labels.implode()
        for side in ("gold", "pred"):
            is_missing = scored & ~pl.col(side).is_in(listed, nulls_equal=True)
            sums[side] = pl.col(side).filter(is_missing).first()
        unlisted = pl.coalesce(pl.col("gold", "pred").cast(pl.String))
        message = pl.format(
            "label '{}' is not in labels: list every label that occurs, or leave labels out",
            unlisted,
        )
        failures.append(Failure(unlisted.is_not_null(), message))
    n_null = as_count(log, pl.col("n_null"), *failures)
    return log.per_slice(pairs, **sums).select(*log.slice, n_null=n_null)


def _beside(log: Log, slices: pl.LazyFrame, cells: pl.LazyFrame, labels: list[str]) -> pl.LazyFrame:
    cells = cells.drop("n_null", strict=False)
    on = [*log.slice, *labels]
    return slices.join(cells, on=on, how="left", nulls_equal=True, maintain_order="left")


def _columns(log: Log, labels: pl.Series) -> list[str]:
    names = ["null" if label is None else str(label) for label in labels]
    model = ["model"] if log.several else []
    for name, times in Counter([*log.keys, *model, "gold", *names, "n_null"]).items():
        if times > 1:
            msg = (
                f"the matrix would have {times} columns named '{name}': it has the keys, "
                "'gold', the labels as text, and 'n_null'; rename a key or a label, or take "
                "long=True, which has a row per cell"
            )
            raise pl.exceptions.DuplicateError(msg)
    return names

"""`confusion`: a confusion matrix per slice, its cells, or the confusions that cost most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl

from polars_mcc._base.allowed_values import Normalize, check_at_least, check_choice
from polars_mcc._base.errors_and_warnings import Failure
from polars_mcc._base.message_parts import option, said
from polars_mcc._base.values_as_text_or_markdown import label_text
from polars_mcc._counts.class_counts import classes_of_pairs, is_scored, unscored_sums, with_margins
from polars_mcc._counts.pair_counts import pairs as pairs_of
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._counts.sliced_log import SlicedLog, joined
from polars_mcc._frame.columns import FrameT, as_expr
from polars_mcc._frame.labels import as_labels, known_labels
from polars_mcc._frame.log_options import Described
from polars_mcc._keys.any_key import IntoKey
from polars_mcc._metrics.mcc_and_one_vs_rest import correlation, divide, summed


def confusion(
    log: Described[FrameT],
    *keys: IntoKey,
    labels: Sequence[object] | None = None,
    normalize: Normalize | None = None,
    long: bool = False,
    top: int | None = None,
) -> FrameT:
    """Show the confusion matrix of each slice, or list the confusions that cost the most score.

    Args:
        *keys: The keys to group by, as in `by`.
        labels: The labels, in the order of the rows and columns. Every label that occurs must be
            listed; more labels may be. None: the labels of a Boolean or Enum column, else the
            labels that occur, sorted. In Python a LazyFrame with labels of another dtype needs
            `labels` or `long`, because a query knows its columns before data are read.
        normalize: Shares instead of counts. "gold": each row of the matrix adds up to 1; "pred":
            each column does; "all": the matrix of the slice does. A share of zero rows is 0.
        long: One row per cell instead of one column per label: all cells of `labels`, if they are
            listed, else the pairs that occur.
        top: List only the confusions (gold and pred differ) that cost the most score, at most this
            many per slice, the costliest first, one per row.

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, sorted by the keys. Each slice has one row
        per gold label, `gold`, and one column per predicted label, named by its text ("null" for
        null, if the log has `nulls="label"`). Cells are Int64, or Float64 for shares and for float
        weights. `n_null` is the number of rows of the slice that are in no cell. `to_numpy` turns
        the frame into an array.

        With `long`, the columns are the keys, `gold`, `pred` (in a dtype that holds both), `n` (or
        `share`, Float64, with `normalize`) and `n_null`. With `top` there are also, before
        `n_null`,

        - `contribution` (Float64), below 0: the part of R_K from this pair. For n_ij rows with gold
          label i and predicted label j ≠ i it is -n_ij (p_i + t_j) / 2, divided by the denominator
          of R_K. For hits it is n_ii (s - (p_i + t_i) / 2), divided likewise. All parts add up to
          R_K. Rows are sorted by contribution, then by the labels.
        - `loss` (Float64): how much R_K would rise if these rows were predicted correctly.

    Raises:
        ValueError: The labels of a LazyFrame are not known; `top` is not a positive integer, or is
            given with `labels`; the log has `nulls="reweight"`.
        polars.exceptions.DuplicateError: Two columns would have the same name.
        polars.exceptions.InvalidOperationError: On `collect`: a label occurs that is not
            in `labels`.

    The errors of `by` are raised too.

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

    Command line::

        polars-mcc confusion logs/ --by country --top 5
    """
    if normalize is not None:
        check_choice("normalize", normalize, Normalize)
    if top is not None:
        check_at_least("top", top, 1)
        if labels is not None:
            raise ValueError("top lists only confusions that occur: leave labels out")
    value = "n" if normalize is None else "share"
    cell = ["pred", value] if long or top is not None else []
    cost = () if top is None else ("contribution", "loss")
    reason = "it shows the labelled rows as they are"
    log.roles.check_without("confusion", reason, "reweight")
    sliced = cut(sides_of(log), keys, taken=["gold", *cell, *cost, "n_null"])
    pairs = pairs_of(sliced).cache()  # The plan uses them several times.
    cells = _cells(sliced, pairs, normalize)
    if top is not None:
        confusions = sliced.beside(
            _costliest(sliced, pairs, cells, value, top), _slices(sliced, pairs, None)
        )
        return log.in_kind(sliced.answer(confusions, "contribution", "gold", "pred"))
    if long and labels is None:
        matrix = _matrix(sliced, pairs, cells, None, value, long=True)
        return log.in_kind(sliced.answer(matrix, "gold", "pred"))
    listed = as_labels(
        _labels_of(log, sliced) if labels is None else labels,
        sliced.label_dtype,
        null=sliced.nulls == "label",
    )
    return log.in_kind(sliced.answer(_matrix(sliced, pairs, cells, listed, value, long=long)))


def _labels_of(log: Described[Any], sliced: SlicedLog) -> Sequence[object]:
    known = known_labels(sliced.label_dtype)
    if known is not None:
        return known
    if log.roles.is_lazy:
        raise ValueError(
            f"a lazy confusion matrix must know its columns beforehand: pass labels=[...], "
            f"cast the {sliced.label_dtype} labels to an Enum, collect() first, or use long=True, "
            "which has one row per cell"
        )
    return sliced.distinct_labels().collect().to_series().to_list()


def _matrix(
    log: SlicedLog,
    pairs: pl.LazyFrame,
    cells: pl.LazyFrame,
    labels: pl.Series | None,
    value: str,
    *,
    long: bool,
) -> pl.LazyFrame:
    """One row per slice and gold label, with a column per predicted label; or one row per cell.

    With `labels` there are all their cells, in the order of the labels; else the cells that occur,
    and a slice without scored rows has one row without labels, to show its `n_null`.
    """
    slices, on, sides, values = _slices(log, pairs, labels), log.slice, ["gold", "pred"], [value]
    if labels is not None and not long:
        sides, values = ["gold"], _columns(log, labels)
        cells = cells.group_by(*log.slice, "gold").agg(
            pl.col(value)
            .filter(pl.col("pred").eq_missing(pl.lit(label, log.label_dtype)))
            .sum()
            .alias(name)
            for name, label in zip(values, labels, strict=True)
        )
    if labels is not None:  # Repeat each slice for each label.
        on = [*log.slice, *sides]
        for side in sides:
            slices = slices.with_columns(pl.lit(labels.implode()).first().alias(side)).explode(side)
    matrix = joined(slices, cells, on, maintain_order="left")
    shown = (as_expr(name).fill_null(0) for name in values)
    return matrix.select(*log.slice, *sides, *shown, *log.unscored)


def _costliest(
    log: SlicedLog, pairs: pl.LazyFrame, cells: pl.LazyFrame, value: str, top: int
) -> pl.LazyFrame:
    """The `top` confusions of each slice that cost the most score.

    The numerator of R_K is a sum over pairs, Σ n_ij (s [i = j] - (p_i + t_j) / 2), because
    Σ t_k p_k equals Σ n_ij p_i, and also Σ n_ij t_j. The `contribution` of a pair is its term
    divided by the denominator of R_K, so the contributions add up to R_K. `loss` is how much R_K
    would rise if these rows were predicted correctly: if n_ij rows moved from (i, j) to (i, i).
    """
    numbers = log.numbers
    classes = classes_of_pairs(log, pairs).cache()
    slices, sums = summed(log, classes)
    n, s = pl.col("units"), pl.col("s")
    gold_t, gold_p, pred_t, pred_p = map(pl.col, ("gold_t", "gold_p", "pred_t", "pred_p"))
    covariance, of_gold, of_pred = sums.moments(numbers)
    # If n rows move from (i, j) to (i, i), then c and p_i grow by n, and p_j shrinks by n.
    moved = numbers.product(n, gold_p - pred_p + n)
    floats = {
        "cov": covariance,
        "var_gold": of_gold,
        "var_pred": of_pred,
        "cov_if": covariance + numbers.product(n, s - gold_t + pred_t),
        "var_pred_if": of_pred - moved - moved,
        "cost": numbers.product(n, gold_p) + numbers.product(n, pred_t),
    }
    cov, var_gold, var_pred, cov_if, var_pred_if, cost = map(pl.col, floats)
    score = correlation(cov, var_gold, var_pred, 0.0)
    score_if = correlation(cov_if, var_gold, var_pred_if, 0.0)
    spread = (var_gold * var_pred).sqrt()
    confusions = cells.filter(pl.col("gold").ne_missing(pl.col("pred")))
    return (
        log.beside(
            with_margins(log, confusions, classes), slices.select(*log.slice, *sums.columns())
        )
        .with_columns(**{name: product.to_float() for name, product in floats.items()})
        .select(
            *log.slice,
            "gold",
            "pred",
            value,
            contribution=divide(-cost / 2, spread, 0.0),
            loss=score_if - score,
        )
        .sort("contribution", "gold", "pred")
        .filter(log.within_slice(pl.int_range(pl.len())) < top)
    )


def _cells(log: SlicedLog, pairs: pl.LazyFrame, normalize: Normalize | None) -> pl.LazyFrame:
    """The scored pairs, with their share of the gold label, of the predicted label, or of all."""
    scored = pairs.filter(is_scored(log) & (pl.col("n") > 0)).drop("n_null")
    if normalize is None:
        return scored
    n = pl.col("n").cast(log.numbers.wide)
    group = [*log.slice, *([] if normalize == "all" else [normalize])]
    part, whole = n.cast(pl.Float64), (n.sum().over(group) if group else n.sum())
    return scored.with_columns(share=divide(part, whole.cast(pl.Float64), 0.0))


def _slices(log: SlicedLog, pairs: pl.LazyFrame, labels: pl.Series | None) -> pl.LazyFrame:
    """The slices with their number of rows in no cell; an error if a label is not listed."""
    unscored = unscored_sums(log)
    sums = {**unscored}
    failures: list[Failure] = []
    if labels is not None:
        scored, listed = is_scored(log) & (pl.col("n") > 0), labels.implode()
        for side in ("gold", "pred"):
            is_missing = scored & ~pl.col(side).is_in(listed, nulls_equal=True)
            sums[side] = pl.col(side).filter(is_missing).first()
        unlisted = pl.coalesce(pl.col("gold", "pred").cast(pl.String))
        message = (
            "label '",
            unlisted,
            "' is not in labels: list every label that occurs, or leave labels out",
        )
        failures.append(Failure(unlisted.is_not_null(), message))
    numbers = {name: log.numbers.as_count(pl.col(name), *failures) for name in unscored}
    return log.per_slice(pairs, **sums).select(*log.slice, **numbers)


def _columns(log: SlicedLog, labels: pl.Series) -> list[str]:
    names = [*map(label_text, labels)]
    for name, times in Counter([*log.names.values(), "gold", *names, "n_null"]).items():
        if times > 1:
            msg = said(
                f"the matrix would have {times} columns named '{name}': its columns are the keys, "
                "'gold', the labels as text, and 'n_null'; rename a key or a label, or use ",
                option("long", value=True),
                ", which has one row per cell",
            )
            raise pl.exceptions.DuplicateError(msg)
    return names

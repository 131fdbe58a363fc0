"""The verbs: typed functions that take a frame and give the same kind of frame back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, get_args, overload

import polars as pl

from polars_mcc import _classes, _confusion, _pairs, _scores
from polars_mcc._classes import Nulls
from polars_mcc._confusion import Normalize
from polars_mcc._labels import as_labels, known_labels
from polars_mcc._log import Frame, IntoColumn, IntoColumns, Log, check_choice, check_number, read

FrameT = TypeVar("FrameT", pl.DataFrame, pl.LazyFrame)


def by(
    frame: FrameT,
    *keys: IntoColumn,
    gold: IntoColumn = "gold",
    pred: IntoColumns = "pred",
    weight: IntoColumn | None = None,
    nulls: Nulls = "drop",
    zero_division: float | None = 0.0,
) -> FrameT:
    """Score every slice with the Matthews correlation coefficient R_K.

    With s rows, c hits and the marginal counts t_k (gold) and p_k (predicted) of class k:

        R_K = (c·s - Σ t_k·p_k) / √((s² - Σ p_k²) · (s² - Σ t_k²))

    For integer counts every sum and product is exact, and rounded once at the end: the score
    is within 4 units in the last place. For float weights the sum of each (slice, gold, pred)
    is a float, off by at most one unit in its last place if the weights are between 10⁻⁶ and
    10¹²; from there on all is exact but for weights below 10⁻¹⁸ of their slice's total.

    Without weights, rows are reduced to the classes of each slice, one pass over the log,
    and hashes of 64 bits stand for labels meanwhile, if these are text, or if all keys are
    numbers, dates or Enums: two of K labels are taken for one with a probability below
    K² / 2⁶⁴, 6·10⁻¹⁰ for 10⁵ labels, whatever the number of rows and slices. `counts`,
    `classes` and `confusion`, which show labels, use no hashes.

    Args:
        frame: A log, one row per prediction, or a counts table with `weight="n"`.
        *keys: The columns whose values make the slices: names, expressions such as
            `pl.col("ts").dt.truncate("1d")`, or selectors. None: one slice, all rows.
        gold: The true label: a name or an expression.
        pred: The predicted label; or several models, as a list, a selector or an
            expression with several outputs. Labels may be integers, floats, text
            (String, Categorical, Enum), Booleans, dates; gold and pred compare by value.
        weight: How many rows a row stands for (a frequency, not an importance): integer
            or float, not negative. None: 1. A row whose weight is null is not scored.
        nulls: What a null label is. `"drop"`: the row is not scored, and counted in
            `n_null`. `"label"`: a class of its own, so that an abstention is a miss.
        zero_division: The score of a slice with one gold class or one predicted class,
            where R_K is 0/0: 0.0, `float("nan")`, or None for null.

    Returns:
        A frame of the kind that was given, sorted by the keys (nulls first, as Polars
        sorts), a row per slice, with the columns

        - the keys, with their dtypes;
        - `model` (String), if `pred` is several: rows in the order given;
        - `n` (Int64; Float64 for float weights): the rows scored;
        - `mcc` (Float64): between -1 and 1; null where `n` is 0;
        - `n_null` (as `n`): the rows not scored, because a label or weight is null.

    Raises:
        polars.exceptions.ColumnNotFoundError: A named column is missing.
        polars.exceptions.DuplicateError: A key has the name of another key or of a
            column of the answer.
        polars.exceptions.SchemaError: Gold and pred cannot be compared (String and
            Int64), the weight is not a number, or a key has dtype Object.
        polars.exceptions.InvalidOperationError: On `collect`: a weight is negative, NaN
            or infinite; or a slice adds up to more than 2⁶³ - 1, or to an infinite float.

    The first three come from the schema, when the query is built; no data are read.

    References:
        J. Gorodkin, Comparing two K-category assignments by a K-category correlation
        coefficient, Computational Biology and Chemistry 28 (2004) 367-374.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame(
        ...     {
        ...         "country": ["DE", "DE", "DE", "DE", "FR", "FR", "FR", None],
        ...         "gold": ["cat", "cat", "dog", "dog", "cat", "dog", "cow", "cat"],
        ...         "pred": ["cat", "cat", "dog", "cat", "cat", "dog", None, "cat"],
        ...     }
        ... )
        >>> polars_mcc.by(log, "country")
        shape: (3, 4)
        ┌─────────┬─────┬─────────┬────────┐
        │ country ┆ n   ┆ mcc     ┆ n_null │
        │ ---     ┆ --- ┆ ---     ┆ ---    │
        │ str     ┆ i64 ┆ f64     ┆ i64    │
        ╞═════════╪═════╪═════════╪════════╡
        │ null    ┆ 1   ┆ 0.0     ┆ 0      │
        │ DE      ┆ 4   ┆ 0.57735 ┆ 0      │
        │ FR      ┆ 2   ┆ 1.0     ┆ 1      │
        └─────────┴─────┴─────────┴────────┘
    """
    check_choice("nulls", nulls, get_args(Nulls))
    check_number("zero_division", zero_division)
    log = read(frame, keys, gold, pred, weight, answers=["n", "mcc", "n_null"])
    classes = _classes.classes(log, nulls, named=False)
    if not keys:
        classes = log.with_every_model(classes)
    return _as(frame, log.answer(_scores.scores(log, classes, zero_division)))


def score(
    frame: FrameT,
    *,
    gold: IntoColumn = "gold",
    pred: IntoColumns = "pred",
    weight: IntoColumn | None = None,
    nulls: Nulls = "drop",
    zero_division: float | None = 0.0,
) -> FrameT:
    """Score the whole frame: `by` with no keys.

    Args and errors are those of `by`.

    Returns:
        A frame of the kind that was given: one row (per model), `n`, `mcc`, `n_null`.
        No rows give `n` 0 and `mcc` null.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": [1, 1, 0, 0], "a": [1, 1, 0, 1], "b": [0, 1, 0, 1]})
        >>> polars_mcc.score(log, pred=["a", "b"])
        shape: (2, 4)
        ┌───────┬─────┬─────────┬────────┐
        │ model ┆ n   ┆ mcc     ┆ n_null │
        │ ---   ┆ --- ┆ ---     ┆ ---    │
        │ str   ┆ i64 ┆ f64     ┆ i64    │
        ╞═══════╪═════╪═════════╪════════╡
        │ a     ┆ 4   ┆ 0.57735 ┆ 0      │
        │ b     ┆ 4   ┆ 0.0     ┆ 0      │
        └───────┴─────┴─────────┴────────┘
    """
    return by(frame, gold=gold, pred=pred, weight=weight, nulls=nulls, zero_division=zero_division)


def counts(
    frame: FrameT,
    *keys: IntoColumn,
    gold: IntoColumn = "gold",
    pred: IntoColumns = "pred",
    weight: IntoColumn | None = None,
) -> FrameT:
    """Compress a log into counts: a row per slice and (gold, pred) that occurs.

    A counts table is a log whose rows stand for `n` rows each: give it to any verb
    with `weight="n"`, concatenated with other counts if you like, and the answer is
    that of the rows it came from. Labels that are null are counted too, so that the
    policy for them can be chosen later.

    Args and errors are those of `by`. In addition, a weight that is null is an error on
    `collect`: rows of unknown weight cannot be added up.

    Returns:
        A frame of the kind that was given, sorted, with the keys, `model` if `pred` is
        several (from then on a key), `gold` and `pred` (in a dtype that holds both), and
        `n` (Int64; Float64 for float weights).

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": ["a", "a", "b", "a"], "pred": ["a", "b", "b", "a"]})
        >>> counts = polars_mcc.counts(log)
        >>> counts
        shape: (3, 3)
        ┌──────┬──────┬─────┐
        │ gold ┆ pred ┆ n   │
        │ ---  ┆ ---  ┆ --- │
        │ str  ┆ str  ┆ i64 │
        ╞══════╪══════╪═════╡
        │ a    ┆ a    ┆ 2   │
        │ a    ┆ b    ┆ 1   │
        │ b    ┆ b    ┆ 1   │
        └──────┴──────┴─────┘
        >>> polars_mcc.score(counts, weight="n").equals(polars_mcc.score(log))
        True
    """
    log = read(frame, keys, gold, pred, weight, answers=["gold", "pred", "n"])
    countable = _pairs.countable(log, _pairs.pairs(log))
    return _as(frame, log.answer(countable, "gold", "pred"))


def classes(
    frame: FrameT,
    *keys: IntoColumn,
    gold: IntoColumn = "gold",
    pred: IntoColumns = "pred",
    weight: IntoColumn | None = None,
    nulls: Nulls = "drop",
    zero_division: float | None = 0.0,
) -> FrameT:
    """Score every class of every slice, one against the rest.

    Args and errors are those of `by`; `zero_division` stands for each 0/0 in turn.

    Returns:
        A frame of the kind that was given, sorted by the keys and the label, a row per
        slice and label that is gold or predicted there, with the columns

        - the keys, `model` if `pred` is several, and `label`;
        - `support`, `predicted`, `hits` (Int64; Float64 for float weights): how often the
          label is gold, is predicted, and is both (true positives);
        - `precision` = hits / predicted, `recall` = hits / support, `f1` = 2 hits /
          (support + predicted), and `mcc`, the binary MCC of this label against all
          others (Matthews 1975), all Float64;
        - `n` and `n_null`: the rows of the slice that are scored, and that are not.

        A slice in which no row is scored has no classes; `by` shows it.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": ["a", "a", "b", "c"], "pred": ["a", "b", "b", "a"]})
        >>> polars_mcc.classes(log).select("label", "support", "precision", "recall", "mcc")
        shape: (3, 5)
        ┌───────┬─────────┬───────────┬────────┬─────────┐
        │ label ┆ support ┆ precision ┆ recall ┆ mcc     │
        │ ---   ┆ ---     ┆ ---       ┆ ---    ┆ ---     │
        │ str   ┆ i64     ┆ f64       ┆ f64    ┆ f64     │
        ╞═══════╪═════════╪═══════════╪════════╪═════════╡
        │ a     ┆ 2       ┆ 0.5       ┆ 0.5    ┆ 0.0     │
        │ b     ┆ 1       ┆ 0.5       ┆ 1.0    ┆ 0.57735 │
        │ c     ┆ 1       ┆ 0.0       ┆ 0.0    ┆ 0.0     │
        └───────┴─────────┴───────────┴────────┴─────────┘
    """
    check_choice("nulls", nulls, get_args(Nulls))
    check_number("zero_division", zero_division)
    log = read(frame, keys, gold, pred, weight, answers=_scores.CLASS_COLUMNS)
    reduced = _classes.classes(log, nulls, named=True)
    return _as(frame, log.answer(_scores.class_scores(log, reduced, zero_division), "label"))


def confusion(
    frame: FrameT,
    *keys: IntoColumn,
    gold: IntoColumn = "gold",
    pred: IntoColumns = "pred",
    weight: IntoColumn | None = None,
    labels: Sequence[object] | None = None,
    normalize: Normalize | None = None,
    nulls: Nulls = "drop",
) -> FrameT:
    """Lay the counts out as a confusion matrix per slice.

    Args:
        frame: A log or a counts table; as in `by`, like all that follow but these two.
        *keys: The columns that make the slices.
        gold: The true label.
        pred: The predicted label, or several models.
        weight: How many rows a row stands for.
        nulls: `"drop"` or `"label"`.
        labels: The labels, in the order of rows and columns; all that occur must be
            listed. None: the labels that a Boolean or Enum column can have; else, for a
            DataFrame, those that occur, sorted. A LazyFrame of other labels needs a list,
            because its columns must be known before data are read.
        normalize: Shares in place of counts: of each gold label (`"gold"`: the rows add
            up to 1), of each predicted label (`"pred"`: the columns do), or of the slice
            (`"all"`). A share of nothing is 0.

    Returns:
        A frame of the kind that was given, sorted by the keys: for each slice a row per
        label, `gold`, and a column per predicted label, named by its text ("null" for
        null, with `nulls="label"`). Cells are Int64, or Float64 for shares and for float
        weights. `n_null` is the number of rows of the slice that are in no cell.

    Raises:
        ValueError: The labels of a LazyFrame are not known.
        polars.exceptions.DuplicateError: Two columns would have one name.
        polars.exceptions.InvalidOperationError: On `collect`: a label occurs that is not
            in `labels`.

    Errors of `by` are raised too.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": ["a", "a", "b", "a"], "pred": ["a", "b", "b", "a"]})
        >>> polars_mcc.confusion(log)
        shape: (2, 4)
        ┌──────┬─────┬─────┬────────┐
        │ gold ┆ a   ┆ b   ┆ n_null │
        │ ---  ┆ --- ┆ --- ┆ ---    │
        │ str  ┆ i64 ┆ i64 ┆ i64    │
        ╞══════╪═════╪═════╪════════╡
        │ a    ┆ 2   ┆ 1   ┆ 0      │
        │ b    ┆ 0   ┆ 1   ┆ 0      │
        └──────┴─────┴─────┴────────┘
    """
    check_choice("nulls", nulls, get_args(Nulls))
    if normalize is not None:
        check_choice("normalize", normalize, get_args(Normalize))
    log = read(frame, keys, gold, pred, weight, answers=["gold", "n_null"])
    square = as_labels(
        _labels_of(frame, log) if labels is None else labels, log.labels, null=nulls == "label"
    )
    matrix = _confusion.confusion(log, _pairs.pairs(log), square, normalize, nulls)
    return _as(frame, log.answer(matrix))


def _labels_of(frame: Frame, log: Log) -> Sequence[object]:
    known = known_labels(log.labels)
    if known is not None:
        return known
    if isinstance(frame, pl.LazyFrame):
        msg = (
            f"the columns of a lazy confusion matrix must be known beforehand: pass labels=[...], "
            f"cast the {log.labels} labels to an Enum, collect() first, or take counts(), "
            "which has a row per cell"
        )
        raise ValueError(msg)  # noqa: TRY004 - the frame is fine, its labels are unknown
    return log.distinct_labels().collect().to_series().to_list()


@overload
def _as(frame: pl.DataFrame, answer: pl.LazyFrame) -> pl.DataFrame: ...
@overload
def _as(frame: pl.LazyFrame, answer: pl.LazyFrame) -> pl.LazyFrame: ...
def _as(frame: Frame, answer: pl.LazyFrame) -> Frame:
    return answer.collect() if isinstance(frame, pl.DataFrame) else answer

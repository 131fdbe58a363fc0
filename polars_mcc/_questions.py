"""More verbs: which slices fail, what has changed, where to cut a score, is it good enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf
from typing import cast, get_args

import polars as pl

from polars_mcc import _check, _curve, _drift, _worst
from polars_mcc._classes import Nulls
from polars_mcc._curve import Thresholds
from polars_mcc._differences import Correction
from polars_mcc._functions import FrameT, as_kind_of, by
from polars_mcc._intervals import Method
from polars_mcc._labels import as_label
from polars_mcc._log import (
    SET,
    AnyFrame,
    Frame,
    IntoColumn,
    IntoColumns,
    Log,
    as_expr,
    check_choice,
    check_level,
    check_number,
    dtype_of,
    read,
)
from polars_mcc._slices import LONG, in_long_form, subsets
from polars_mcc._worst import Rank


def worst(
    frame: FrameT,
    *keys: IntoColumn,
    gold: IntoColumn = "gold",
    pred: IntoColumns = "pred",
    weight: IntoColumn | None = None,
    sample_weight: IntoColumn | None = None,
    nulls: Nulls = "drop",
    zero_division: float | None = 0.0,
    depth: int = 2,
    min_n: int = 30,
    top: int | None = None,
    rank: Rank = "loss",
    ci: float = 0.95,
    correction: Correction = "bh",
    long: bool = False,
) -> FrameT:
    """Find the slices that fall behind the rest of the log, without naming them beforehand.

    Every slice of up to `depth` keys is compared with the rest of the log: with all rows that
    are not of it, whose counts are those of the log less those of the slice. The two have no
    row in common, so their difference has an interval as in `compare`, with no correlation.
    Slices whose p-value, corrected for the number of slices looked at, is below 1 - ci are
    reported, but for those that another one tells:

    - a finer slice that is not behind the rest of a coarser one adds nothing to it (all of DE is
      bad, so DE on a phone is): it is folded into that;
    - a coarser slice of which nothing bad is left without a finer one (tablets in BR are bad, so
      tablets are, and BR): it is folded into that one.

    Rows are read once.

    Args:
        frame: A log, or a counts table with `weight="n"`.
        *keys: The columns to look at: names, expressions, selectors.
        gold: The true label.
        pred: The predicted label, or several models: each is compared with itself elsewhere.
        weight: How many rows a row stands for.
        sample_weight: How much a row counts.
        nulls: `"drop"`, or `"label"`, as in `by`.
        zero_division: The score where R_K is 0/0.
        depth: How many keys are crossed, at most. With k keys of v values there are about
            (k·v)² / 2 slices at a depth of 2, all of them counted.
        min_n: Slices of fewer rows are not tested.
        top: How many slices to report, at most. None: all.
        rank: `"loss"`: first the slice without which the score of the log would be best.
            `"gap"`: first the one whose difference is surely largest (by `diff_high`).
        ci: The confidence level: of the intervals, and of what is reported.
        correction: `"bh"` (Benjamini and Hochberg) keeps the expected share of slices that are
            reported, but not behind, below 1 - ci where tests are independent or help each other;
            `"by"` (Benjamini and Yekutieli) whatever the overlap of slices; `"holm"`,
            `"bonferroni"`: the probability of a single one.
        long: `slice` (names of keys) and `value` (as text) in place of a column per key.

    Returns:
        A frame of the kind that was given, a row per slice that is reported, the worst first:

        - `keys` (String): the names of the keys of the slice;
        - the keys, with their dtypes; null if not of the slice, which `keys` tells from a null
          that is a value;
        - `model` (String), if `pred` is several;
        - `n`, `mcc`: of the slice;
        - `mcc_rest` (Float64): of all other rows; `diff`, `diff_low`, `diff_high`: the
          slice less the rest, and its interval;
        - `p_value`, `p_adjusted` (Float64): of no difference, two-sided; corrected;
        - `loss` (Float64): how much better the log would score without the slice;
        - `n_folded` (Int64): the slices that are folded into this one;
        - `n_tested`, `n_untested` (Int64; the same in all rows): the slices looked at, and those
          that have too few rows or no interval;
        - `n_null`: rows of the slice not scored.

    Measured (`python tests/benchmarks/planted_slices.py`; the README has the table): of three
    slices planted in each of 100 logs, 96 to 97 % are reported, and of the slices reported, 3.1 %
    at most are not behind the rest; the level asked for is 5 %.

    Memory: where keys are crossed, the columns are kept while their sets are counted, text as 4
    bytes a row. The rest of a slice has as many pairs as the log, so slices that are bad, times
    the different pairs of the log, is what the rest takes.

    Raises:
        ValueError: There are no keys; `depth` or `min_n` is below 1; an option has no such value.

    Errors of `by` are raised too.

    References:
        Y. Benjamini and Y. Hochberg, Journal of the Royal Statistical Society B 57 (1995)
        289-300. Y. Benjamini and D. Yekutieli, Annals of Statistics 29 (2001) 1165-1188.
        The difference: G. Y. Zou, Psychological Methods 12 (2007) 399-413.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> counts = pl.DataFrame(
        ...     {
        ...         "country": ["DE", "DE", "DE", "DE", "FR", "FR", "FR", "FR"],
        ...         "gold": ["cat", "cat", "dog", "dog", "cat", "cat", "dog", "dog"],
        ...         "pred": ["cat", "dog", "cat", "dog", "cat", "dog", "cat", "dog"],
        ...         "n": [60, 40, 30, 70, 95, 5, 4, 96],
        ...     }
        ... )
        >>> found = polars_mcc.worst(counts, "country", weight="n")
        >>> found.select("country", "n", "mcc", "mcc_rest", "diff_high")
        shape: (1, 5)
        ┌─────────┬─────┬──────────┬──────────┬───────────┐
        │ country ┆ n   ┆ mcc      ┆ mcc_rest ┆ diff_high │
        │ ---     ┆ --- ┆ ---      ┆ ---      ┆ ---       │
        │ str     ┆ i64 ┆ f64      ┆ f64      ┆ f64       │
        ╞═════════╪═════╪══════════╪══════════╪═══════════╡
        │ DE      ┆ 200 ┆ 0.301511 ┆ 0.910046 ┆ -0.461828 │
        └─────────┴─────┴──────────┴──────────┴───────────┘
    """
    check_choice("nulls", nulls, get_args(Nulls))
    check_choice("rank", rank, get_args(Rank))
    check_choice("correction", correction, get_args(Correction))
    check_number("zero_division", zero_division)
    check_level(ci)
    _check_at_least("depth", depth, 1)
    _check_at_least("min_n", min_n, 1)
    if top is not None:
        _check_at_least("top", top, 1)
    log = read(
        frame,
        keys,
        gold,
        pred,
        weight,
        answers=[SET, *_worst.COLUMNS, *(LONG if long else [])],
        sample_weight=sample_weight,
    )
    if not log.keys:
        msg = "worst looks for slices: name the keys to slice by, as in worst('country', 'device')"
        raise ValueError(msg)
    sets = subsets(log.keys, range(min(depth, len(log.keys)), 0, -1))
    search = _worst.Search(
        nulls=nulls,
        zero_division=zero_division,
        ci=ci,
        correction=correction,
        min_n=min_n,
        rank=rank,
    )
    log, found = search.worst(log, sets)
    ranked = log.named(found)
    if long:
        ranked = in_long_form(sets, ranked)
    return as_kind_of(frame, ranked if top is None else ranked.head(top))


def drift(
    frame: FrameT,
    before: IntoColumn,
    after: IntoColumn,
    *keys: IntoColumn,
    gold: IntoColumn = "gold",
    pred: IntoColumns = "pred",
    weight: IntoColumn | None = None,
    sample_weight: IntoColumn | None = None,
    nulls: Nulls = "drop",
    zero_division: float | None = 0.0,
    ci: float = 0.95,
    method: Method = "score",
    correction: Correction = "bh",
) -> FrameT:
    """Tell how the score of each slice has changed from one period to another.

    The rows of two periods are different ones, so their scores are independent, and the interval
    of the difference follows from those of both (Zou 2007). Where users have many rows in both
    periods, they are not quite independent, and the interval is not to be trusted to the digit.
    Rows of neither period are not looked at; nor are they read, where the scan can tell.

    Args:
        frame: A log, or a counts table with `weight="n"` whose keys tell the periods apart.
        before: Whether a row is of the first period: a Boolean expression, or a column's name,
            such as `pl.col("day") < date(2026, 3, 15)`.
        after: Whether it is of the second.
        *keys: The columns that make the slices, as in `by`, like all that follow but the last.
        gold: The true label.
        pred: The predicted label, or several models.
        weight: How many rows a row stands for.
        sample_weight: How much a row counts.
        nulls: `"drop"` or `"label"`.
        zero_division: The score where R_K is 0/0.
        ci: The confidence level of the interval.
        method: `"score"`, `"fisher"` or `"wald"`: of the scores, as in `by`.
        correction: What `p_adjusted` holds: see `worst`, or `compare`.

    Returns:
        A frame of the kind that was given, sorted by the keys, a row per slice that has rows in
        one of the periods, with the keys, `model` if `pred` is several, and

        - `n_before`, `n_after`: the rows scored;
        - `mcc_before`, `mcc_after` (Float64): the scores; null where there is no row;
        - `diff`, `se`, `diff_low`, `diff_high` (Float64): after less before, with its
          standard error and interval: below 0, the slice has become worse;
        - `p_value`, `p_adjusted` (Float64): of no change; corrected for the number of slices;
        - `n_null`: the rows of both periods not scored.

    Raises:
        polars.exceptions.SchemaError: `before` or `after` is not Boolean.
        polars.exceptions.InvalidOperationError: On `collect`: a row is of both periods.

    Errors of `by` are raised too.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> counts = pl.DataFrame(
        ...     {
        ...         "week": [1, 1, 1, 1, 2, 2, 2, 2],
        ...         "gold": ["cat", "cat", "dog", "dog", "cat", "cat", "dog", "dog"],
        ...         "pred": ["cat", "dog", "cat", "dog", "cat", "dog", "cat", "dog"],
        ...         "n": [95, 5, 4, 96, 60, 40, 30, 70],
        ...     }
        ... )
        >>> change = polars_mcc.drift(counts, pl.col("week") == 1, pl.col("week") == 2, weight="n")
        >>> change.select("mcc_before", "mcc_after", "diff_low", "diff_high")
        shape: (1, 4)
        ┌────────────┬───────────┬───────────┬───────────┐
        │ mcc_before ┆ mcc_after ┆ diff_low  ┆ diff_high │
        │ ---        ┆ ---       ┆ ---       ┆ ---       │
        │ f64        ┆ f64       ┆ f64       ┆ f64       │
        ╞════════════╪═══════════╪═══════════╪═══════════╡
        │ 0.910046   ┆ 0.301511  ┆ -0.751556 ┆ -0.461828 │
        └────────────┴───────────┴───────────┴───────────┘
    """
    check_choice("nulls", nulls, get_args(Nulls))
    check_choice("method", method, get_args(Method))
    check_choice("correction", correction, get_args(Correction))
    check_number("zero_division", zero_division)
    check_level(ci)
    log = read(
        frame,
        keys,
        gold,
        pred,
        weight,
        answers=_drift.COLUMNS,
        sample_weight=sample_weight,
        periods={"before": before, "after": after},
    )
    apart, cells = _drift.cells_of_periods(log)
    changes = _drift.changes(
        apart,
        cells,
        nulls=nulls,
        zero_division=zero_division,
        ci=ci,
        method=method,
        correction=correction,
    )
    return as_kind_of(frame, replace(log, extras=()).answer(changes))


def curve(
    frame: FrameT,
    *keys: IntoColumn,
    gold: IntoColumn = "gold",
    score: IntoColumns = "score",
    positive: object = None,
    weight: IntoColumn | None = None,
    thresholds: int | Sequence[float] | None = None,
    zero_division: float | None = 0.0,
) -> FrameT:
    """Score every threshold of a model that gives scores, per slice, from one scan.

    A row is predicted positive if its score is at least the threshold. Rows are counted once, by
    slice, gold and score; the counts of the thresholds are cumulative sums of these, and the
    scores are exact, as those of `by`.

    Args:
        frame: A log, or a counts table with `weight="n"`.
        *keys: The columns that make the slices, as in `by`.
        gold: The true label: Boolean, or of any dtype with `positive`.
        score: How sure a model is that a row is positive: a number, the larger the surer. Several
            models, as in `by`: a list, a selector, an expression with several outputs.
        positive: The label that is positive; all others are negative. None: True.
        weight: How many rows a row stands for.
        thresholds: None: every distinct score of the slice. An integer: at most so many,
            at the quantiles of the scores of all rows, the same for all slices. A list: these.
            With a list, memory does not grow with the number of distinct scores.
        zero_division: The score where it is 0/0: where all, or no, rows are predicted positive.

    Returns:
        A frame of the kind that was given, sorted by the keys and the threshold, with
        the keys, `model` if there are several scores, and

        - `threshold`: of the dtype of the score; Float64 if thresholds are listed;
        - `n`, `tp`, `fp`, `fn`, `tn` (Int64; Float64 for float weights): the rows scored, and of
          which kind they are at this threshold;
        - `mcc`, `f1` (Float64): Matthews 1975; 2·tp / (2·tp + fp + fn). The MCC-F1 curve of
          Cao, Chicco and Hoffman has f1 as x and (mcc + 1) / 2 as y;
        - `n_null`: the rows not scored, because label, score or weight is null, or the score NaN.

        A slice of which no row is scored has one row, without a threshold.

    Raises:
        ValueError: Gold is not Boolean and there is no `positive`; thresholds are not in order.
        polars.exceptions.SchemaError: A score is not a number.

    Errors of `by` are raised too.

    References:
        C. Cao, D. Chicco and M. M. Hoffman, The MCC-F1 curve, arXiv 2006.11278 (2020).

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame(
        ...     {"gold": [True, True, False, False], "score": [0.9, 0.6, 0.7, 0.1]}
        ... )
        >>> polars_mcc.curve(log).select("threshold", "tp", "fp", "mcc")
        shape: (4, 4)
        ┌───────────┬─────┬─────┬─────────┐
        │ threshold ┆ tp  ┆ fp  ┆ mcc     │
        │ ---       ┆ --- ┆ --- ┆ ---     │
        │ f64       ┆ i64 ┆ i64 ┆ f64     │
        ╞═══════════╪═════╪═════╪═════════╡
        │ 0.1       ┆ 2   ┆ 2   ┆ 0.0     │
        │ 0.6       ┆ 2   ┆ 1   ┆ 0.57735 │
        │ 0.7       ┆ 1   ┆ 1   ┆ 0.0     │
        │ 0.9       ┆ 1   ┆ 0   ┆ 0.57735 │
        └───────────┴─────┴─────┴─────────┘
    """
    check_number("zero_division", zero_division)
    log = _scored(frame, keys, gold, positive, score, weight, _curve.COLUMNS)
    cut = _cut(log, thresholds)
    return as_kind_of(frame, cut.log.answer(cut.curve(zero_division), "threshold"))


def best_threshold(
    frame: FrameT,
    *keys: IntoColumn,
    gold: IntoColumn = "gold",
    score: IntoColumns = "score",
    positive: object = None,
    weight: IntoColumn | None = None,
    thresholds: int | Sequence[float] | None = None,
) -> FrameT:
    """Find the threshold with the best score: of each slice, and one for all.

    Args are those of `curve`.

    Returns:
        A frame of the kind that was given, sorted by the keys, a row per slice, with the keys,
        `model` if there are several scores, and

        - `n`: the rows scored;
        - `threshold`, `mcc`: the best threshold of the slice, the largest if several are, and
          the score there; null if the slice has only one gold class;
        - `shared_threshold`: the best threshold of all rows taken together;
        - `mcc_shared`: the score of the slice there, and `loss`: how much less it is;
        - `n_null`: the rows not scored.

    The best of many thresholds looks better than it is on rows that it was not chosen on: choose
    on one part of a log, and score on another.

    Errors of `curve` are raised.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame(
        ...     {
        ...         "country": ["DE", "DE", "DE", "FR", "FR", "FR"],
        ...         "gold": [True, True, False, True, False, False],
        ...         "score": [0.9, 0.6, 0.2, 0.9, 0.7, 0.6],
        ...     }
        ... )
        >>> polars_mcc.best_threshold(log, "country").drop("n", "n_null")
        shape: (2, 6)
        ┌─────────┬───────────┬─────┬──────────────────┬────────────┬──────┐
        │ country ┆ threshold ┆ mcc ┆ shared_threshold ┆ mcc_shared ┆ loss │
        │ ---     ┆ ---       ┆ --- ┆ ---              ┆ ---        ┆ ---  │
        │ str     ┆ f64       ┆ f64 ┆ f64              ┆ f64        ┆ f64  │
        ╞═════════╪═══════════╪═════╪══════════════════╪════════════╪══════╡
        │ DE      ┆ 0.6       ┆ 1.0 ┆ 0.9              ┆ 0.5        ┆ 0.5  │
        │ FR      ┆ 0.9       ┆ 1.0 ┆ 0.9              ┆ 1.0        ┆ 0.0  │
        └─────────┴───────────┴─────┴──────────────────┴────────────┴──────┘
    """
    log = _scored(frame, keys, gold, positive, score, weight, _curve.BEST)
    cut = _cut(log, thresholds)
    return as_kind_of(frame, cut.log.answer(cut.best()))


def check(
    frame: AnyFrame,
    *keys: IntoColumn,
    min: float | None = None,  # noqa: A002 - as the command line has it
    no_worse_than: AnyFrame | None = None,
    min_n: int = 1,
    ci: float | None = None,
    gold: IntoColumn = "gold",
    pred: IntoColumns = "pred",
    weight: IntoColumn | None = None,
    nulls: Nulls = "drop",
) -> pl.DataFrame:
    """Raise an error that shows the slices that are not good enough: a gate, or a test.

    Unlike the other verbs it decides now: the query of a LazyFrame is run.

    Args:
        frame: A log, or a counts table with `weight="n"`.
        *keys: The columns that make the slices, as in `by`.
        min: The least score of a slice.
        no_worse_than: The counts of a baseline, such as last week's `counts(log, *keys)`, with
            which each slice is compared. One of this and `min` is to be given.
        min_n: Slices of fewer rows, here or in the baseline, are not judged.
        ci: The level at which one must be sure that a slice fails: it does if all of the
            interval of its score is below `min`, or all of the interval of its difference to
            the baseline below 0. A slice without an interval, such as one of a single predicted
            class, is judged by its score. None: scores decide, however few the rows.
        gold: The true label.
        pred: The predicted label, or several models.
        weight: How many rows a row stands for.
        nulls: `"drop"` or `"label"`.

    Returns:
        A DataFrame, a row per slice, with the columns of `by`, or of `drift` for a
        baseline, and `verdict` (Enum): `"passes"` or `"not judged"`.

    Raises:
        polars_mcc.CheckError: A slice fails, or none is judged. It is an AssertionError, whose
            message has a table of the slices that fail; so has its attribute `failures`.
        ValueError: Neither or both of `min` and `no_worse_than`.

    Errors of `by` are raised too.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": ["a", "a", "b", "b"], "pred": ["a", "a", "b", "a"]})
        >>> polars_mcc.check(log, min=0.5).select("n", "mcc", "verdict")
        shape: (1, 3)
        ┌─────┬─────────┬─────────┐
        │ n   ┆ mcc     ┆ verdict │
        │ --- ┆ ---     ┆ ---     │
        │ i64 ┆ f64     ┆ enum    │
        ╞═════╪═════════╪═════════╡
        │ 4   ┆ 0.57735 ┆ passes  │
        └─────┴─────────┴─────────┘
        >>> polars_mcc.check(log, min=0.6)
        Traceback (most recent call last):
            ...
        polars_mcc.CheckError: 1 of 1 slices fails: mcc below 0.6
        ┌─────┬─────────┬────────┐
        │ n   ┆ mcc     ┆ n_null │
        │ --- ┆ ---     ┆ ---    │
        │ i64 ┆ f64     ┆ i64    │
        ╞═════╪═════════╪════════╡
        │ 4   ┆ 0.57735 ┆ 0      │
        └─────┴─────────┴────────┘
    """
    if (min is None) == (no_worse_than is None):
        msg = "check needs one of min=0.6, say, and no_worse_than=the counts of a baseline"
        raise ValueError(msg)
    check_number("min", min)
    check_choice("nulls", nulls, get_args(Nulls))
    _check_at_least("min_n", min_n, 1)
    if ci is not None:
        check_level(ci)
    shown = [_check.VERDICT, *(_drift.COLUMNS if min is None else ())]
    log = read(frame, keys, gold, pred, weight, answers=shown)
    if min is not None:
        scores = by(
            frame.lazy() if isinstance(frame, pl.DataFrame) else frame,
            *keys,
            gold=gold,
            pred=pred,
            weight=weight,
            nulls=nulls,
            ci=ci,
        )
        judged = (
            cast("Frame", scores)
            .lazy()
            .with_columns(
                _check.verdict(
                    fails=_check.below("mcc", None if ci is None else "mcc_high", min),
                    is_judged=pl.col("n") >= min_n,
                )
            )
        )
        what = f"mcc below {min}"
    else:
        judged = _compared(log, no_worse_than, nulls, 0.95 if ci is None else ci)
        judged = judged.with_columns(
            _check.verdict(
                fails=_check.below("diff", None if ci is None else "diff_high", 0),
                is_judged=(pl.col("n_before") >= min_n) & (pl.col("n_after") >= min_n),
            )
        )
        what = "mcc below that of the baseline"
    if ci is not None:
        what += f", surely (ci={ci})"
    return _check.passed(judged.collect(), what, min_n)


def _compared(log: Log, baseline: AnyFrame | None, nulls: Nulls, ci: float) -> pl.LazyFrame:
    """The slices of a log and of the counts of a baseline, compared as two periods."""
    assert baseline is not None  # noqa: S101 - for the type checker
    counted = [*log.keys, *(["model"] if log.several else [])]
    try:
        before = read(baseline, counted, "gold", "pred", "n", answers=())
    except pl.exceptions.ColumnNotFoundError as error:
        msg = f"no_worse_than is not the counts of these slices: {error}"
        raise pl.exceptions.ColumnNotFoundError(msg) from error
    apart, cells = _check.with_baseline(before, log)
    changes = _drift.changes(
        apart,
        cells,
        nulls=nulls,
        zero_division=0.0,
        ci=ci,
        method="score",
        correction="bh",
    )
    return log.answer(changes).drop("p_value", "p_adjusted")


def _scored(  # noqa: PLR0917 - what both verbs take
    frame: AnyFrame,
    keys: Sequence[IntoColumn],
    gold: IntoColumn,
    positive: object,
    score: IntoColumns,
    weight: IntoColumn | None,
    answers: Sequence[str],
) -> Log:
    """A log whose models give scores, and whose gold is whether a row is positive."""
    is_positive = _is_positive(frame, gold, positive)
    return read(
        frame,
        keys,
        is_positive,
        score,
        weight,
        answers=answers,
        role="score",
        computed=[is_positive],
    )


def _is_positive(frame: AnyFrame, gold: IntoColumn, positive: object) -> pl.Expr:
    name, dtype = dtype_of(frame, gold, "gold")
    if positive is None:
        if dtype != pl.Boolean:
            msg = (
                f"gold '{name}' is {dtype}: say which label is positive, as in positive=1, or make "
                f"it Boolean, as in pl.col('{name}') == 'fraud'"
            )
            raise ValueError(msg)
        return as_expr(gold)
    return as_expr(gold) == pl.lit(as_label(positive, dtype), dtype)


def _cut(log: Log, thresholds: int | Sequence[float] | None) -> Thresholds:
    quantiles: int | None = None
    cuts: list[float] | None = None
    if isinstance(thresholds, int):
        _check_at_least("thresholds", thresholds, 1)
        quantiles = thresholds
    elif thresholds is not None:
        cuts = [float(cut) for cut in thresholds]
        if not cuts or not all(low < high for low, high in pairwise([*cuts, inf])):
            msg = f"thresholds must be numbers in rising order, got {thresholds!r}"
            raise ValueError(msg)
    return Thresholds(_curve.cut_at(log, cuts) if cuts else log, cuts, quantiles)


def _check_at_least(name: str, value: object, least: int) -> None:
    if not (isinstance(value, int) and value >= least):
        msg = f"{name} must be an integer of at least {least}, got {value!r}"
        raise ValueError(msg)

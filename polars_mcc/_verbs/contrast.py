"""`contrast`: compare each slice with the rest of the log, the total, or another slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import polars as pl
import polars.selectors as cs

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import Correction, Method
from polars_mcc._base.message_parts import Words, option, refused
from polars_mcc._comparisons import options_of_differences
from polars_mcc._comparisons.columns_of_answers import answer_columns
from polars_mcc._counts.pair_counts import pairs
from polars_mcc._counts.sliced_log import KEY, SlicedLog
from polars_mcc._frame.columns import FrameT, as_expr
from polars_mcc._frame.labels import from_text
from polars_mcc._frame.log_options import Described
from polars_mcc._intervals.interval_options import TO, IntervalOptions, inferred
from polars_mcc._keys.any_key import IntoKey
from polars_mcc._metrics import registry
from polars_mcc._metrics.registry import IntoMetrics

To: TypeAlias = str | Mapping[str, object]
"""The reference of a slice: one of `_WORDS`, or the keys of one slice."""

_WORDS = ("rest", "total", "expected", "best", "each")


def contrast(
    log: Described[FrameT],
    *keys: IntoKey,
    to: To = defaults.TO,
    within: IntoKey | Sequence[IntoKey] | None = None,
    ratio: bool = False,
    metrics: IntoMetrics = defaults.METRICS,
    min_n: int = defaults.COMPARED_N,
    ci: float = defaults.LEVEL,
    method: Method = defaults.METHOD,
    correction: Correction = defaults.CORRECTION,
) -> FrameT:
    """Compare each slice with the rest of the log, the total, the best slice, or a given slice.

    Args:
        *keys: The columns to slice by, and `bins` of columns. In Python also expressions and
            selectors.
        to: The reference of each slice. "rest": all rows outside the slice. "total": all rows,
            those of the slice included. "expected": what the slice would score given its labels,
            which is `expected`; so it errs more than its mix of gold labels explains if it
            scores less. "best": the best slice that can be compared. "each": every
            other slice, each pair once. Or the keys of one slice, as `{"country": "US"}`.
        within: Compare slices only within each value of these columns, such as countries within
            each device. The rest, the total and the best slice are then of the same device.
        ratio: Compare by the ratio of both scores instead of the difference. It is 0 if the score
            of the slice is 0, and infinite if the score of the reference is; null if both are.
        metrics: One metric or several, counted once, all of labels or all of scores: names of
            `metrics()`. In Python also functions, as in `by`.
        min_n: The least number of rows of a slice that is judged, and of its reference: with fewer
            rows, a p-value is too small too often. A score must be of half as many: "tpr" is of
            rows with the positive label. With sample weights w, the rows are (Σ w)² / Σ w².
        ci: The confidence level of the interval.
        method: The kind of interval of each score, "score", "fisher" or "wald", as in `by`. The
            interval of the difference is made from both.
        correction: The correction of p-values for the number of tests, of each metric alone: see
            `compare`.

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, sorted. It has one row per metric and slice
        (or pair of slices, for "each"), with the columns

        - the columns of `within` and the keys; `<key>_to`, the keys of the reference, if it is a
          slice (no slice is compared with itself); `model` (String), if the log has several models;
        - `metric` (String);
        - `n`, `n_reference` (Int64; Float64 for float weights): the rows scored, of the slice and
          of the reference;
        - `score`, `reference` (Float64): both scores;
        - `expected` (Float64): of the slice given its labels: if its rows were predicted at the
          rates of all rows with their gold label;
        - `diff`, the slice minus the reference, with `diff_low` and `diff_high`, its interval; or
          with `ratio`: `ratio`, `ratio_low`, `ratio_high`;
        - `p_value`, that both scores are equal, and `p_adjusted`, after correction (Float64): null
          with fewer than `min_n` rows;
        - `verdict` (Enum): the slice is "better" or "worse", or it "differs"; "not sure" or "not
          judged", as in `compare`;
        - `n_null`: the rows of the slice not scored.

        The test asks whether two scores are equal, not whether all rates are. Its variances come
        from the slices and from all rows that are compared, whichever is larger. The interval of
        the difference and the p-value are null if a slice lacks a gold class that a mean over
        classes, such as "f1_macro", has elsewhere: it is then a mean of other classes. For
        "precision_macro", "precision_weighted" and "mcc_macro", all classes must be predicted
        too. With one gold class they are null for these, "kappa", "markedness", "mcc" and
        "roc_auc". If it is the rest that lacks a class, as all its gold rows are inside the slice,
        the slice has the p-value and the verdict of "expected", also beside the total: rows of this
        class are no better and no worse than themselves. Not so with sample weights or
        `nulls="reweight"`.

        Two slices have no row in common. A slice and the total share the rows of the slice. The
        interval takes this into account, unless one of the scores has no standard error. If a slice
        is nearly all rows, compare it with the rest instead. The interval follows Zou (2007), from
        the intervals of both scores. The interval of a ratio is made in the same way from
        logarithms. If one score is 0, the ratio is 0 or infinite, as one limit is; the other limit
        follows Donner and Zou (2012), and the p-value is that of the difference. A ratio is null if
        both scores are 0 or one is negative. Simulated for rates near 0, the 95 % interval held in
        93 % of samples or more where at least two rows of each side are expected to count in the
        rate, and in 88 % or more below that. With "total", the ratio of a proportion of rows, such
        as "accuracy" or "tpr", has the interval and the p-value that follow from its ratio to the
        rest. Of other metrics the interval of the difference is divided by the total, as if the
        total were known exactly.
        "lr_pos", "lr_neg" and "dor" have no largest value, so they are compared with `ratio` alone,
        and not with the total. The limits and the test are of their logarithms, as in `by`; at 0
        and infinity too.
        With "best", the row with the lowest `diff` is the gap between the best and the worst slice.
        The interval ignores that these two were picked as best and worst: with many slices it shows
        a gap even if there is none.
        With "expected", the test is whether the rates given the gold labels are equal. The variance
        is that of draws without replacement from all rows (multivariate hypergeometric), and the
        interval is as wide.

    Raises:
        TypeError: `to` is neither text nor a mapping.
        ValueError: There are no keys; a key is also in `within`; `to` is an unknown word, does not
            name exactly the keys, or has a value that a key cannot have; an option has an unknown
            value; the log has clusters, or sample weights if `to` is "expected", which has no
            ratio; `to` is "expected" or "total", and the log has `nulls="reweight"`; a metric has
            no derivative, or no largest value and no `ratio`, or is compared with the total; some
            metrics are of labels and some of scores.
        polars.exceptions.InvalidOperationError: On `collect`: the log has no row of the slice `to`.

    The errors of `by` are raised too.

    References:
        G. Y. Zou, Toward using confidence intervals to compare correlations, Psychological
        Methods 12 (2007) 399-413. G. Y. Zou and A. Donner, Construction of confidence limits about
        effect measures: a general approach, Statistics in Medicine 27 (2008) 1693-1702: ratios.
        A. Donner and G. Y. Zou, Closed-form confidence intervals for functions of the normal mean
        and standard deviation, Statistical Methods in Medical Research 21 (2012) 347-359: ratios of
        which one score is 0.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet").mcc(pred="logistic")
        >>> found = log.contrast("ink_band", metrics="accuracy")
        >>> found.select("ink_band", "score", "reference", "diff_low", "diff_high", "verdict")
        shape: (3, 6)
        ┌──────────┬──────────┬───────────┬───────────┬───────────┬──────────┐
        │ ink_band ┆ score    ┆ reference ┆ diff_low  ┆ diff_high ┆ verdict  │
        │ ---      ┆ ---      ┆ ---       ┆ ---       ┆ ---       ┆ ---      │
        │ enum     ┆ f64      ┆ f64       ┆ f64       ┆ f64       ┆ enum     │
        ╞══════════╪══════════╪═══════════╪═══════════╪═══════════╪══════════╡
        │ light    ┆ 0.932007 ┆ 0.954774  ┆ -0.047963 ┆ -0.000793 ┆ not sure │
        │ medium   ┆ 0.953947 ┆ 0.94365   ┆ -0.012634 ┆ 0.03052   ┆ not sure │
        │ heavy    ┆ 0.955631 ┆ 0.943022  ┆ -0.010435 ┆ 0.032712  ┆ not sure │
        └──────────┴──────────┴───────────┴───────────┴───────────┴──────────┘

    Command line::

        polars-mcc contrast logs/ --by country --to country=US --within device --metric mcc,f1_macro
    """
    named = registry.find_metrics(metrics, log.roles.label_dtype)
    chosen = registry.with_tests(named, ratio=ratio)
    asked = IntervalOptions(ci, method, chosen, min_n=min_n, correction=correction)
    inside, names, of_whole = options_of_differences.keys_and_within(log, "contrast", keys, within)
    _check_to(log, to, names, ratio=ratio)
    for metric in chosen:
        if metric.is_log and to == "total":
            raise refused(
                f"metric '{metric.name}' is not compared with the total: compare with the rest, ",
                option("to", "rest"),
            )
    is_slice = isinstance(to, Mapping) or to in {"best", "each"}
    to_keys = {KEY + name + TO: name + TO for name in names} if is_slice else {}
    shown = answer_columns("contrast", log, ratio=ratio)
    sliced, asked = options_of_differences.cut_log(
        log, [*inside, *keys], asked, [*to_keys.values(), *shown]
    )
    coarser = replace(sliced.whole, keys=tuple(of_whole))

    def infer(cells: pl.DataFrame) -> pl.DataFrame:
        from polars_mcc._comparisons.slice_and_reference import contrasts  # noqa: PLC0415 - NumPy, for it alone

        slices = contrasts(sliced, coarser, cells, asked, reference, ratio=ratio)
        references = (pl.col(column).alias(name) for column, name in to_keys.items())
        return slices.select(*sliced.slice, *references, *shown)

    reference = _is_there(sliced, to) if isinstance(to, Mapping) else to
    check = partial(_check_there, to, reference)
    slices = inferred(log, sliced, pairs(sliced), infer, metrics=asked.metrics, check=check)
    # Only pairs of slices are several rows of a slice.
    answer = sliced.answer(slices, *(to_keys.values() if to == "each" else ()))
    # The keys of the reference come right after the keys of the slice.
    first = [*of_whole, *names, *to_keys.values()]
    return log.in_kind(answer.select(*map(as_expr, first), ~cs.by_name(first)))


def _check_to(log: Described[Any], to: To, keys: Sequence[str], *, ratio: bool) -> None:
    """Raise an error unless `to` is a reference for slices of these keys."""
    if not isinstance(to, (str, Mapping)):
        msg = f"to must be text, or the keys of a slice, as {{'country': 'US'}}, got {to!r}"
        raise TypeError(msg)
    if isinstance(to, Mapping) and {*to} != {*keys}:
        listed = ", ".join(map(repr, keys))
        why = f" is not a slice of the keys {listed}: give a value for each key"
        raise refused(option("to", dict(to)), why)
    if isinstance(to, str) and to not in _WORDS:
        words = ", ".join(map(repr, _WORDS))
        example = Words("{'country': 'US'}", "country=US")
        raise refused(f"to must be one of {words}, or a slice, as ", example, f", got {to!r}")
    call = Words(f"contrast(..., to={to!r})", f"contrast --to {to}")
    if to in ("expected", "total"):
        reason = "a slice is not reweighted as the total is, so compare it with the rest"
        log.roles.check_without(call, reason, "reweight")
    if to == "expected":
        log.roles.check_without(call, "rows must be of equal weight", "sample_weight")
        if ratio:
            both = option("ratio", ratio), " does not support ", option("to", to)
            raise refused(*both, ": leave one of them out")


def _check_there(to: To, reference: pl.Expr | str, cells: pl.DataFrame) -> None:
    """Raise an error if the slice of the reference has no rows."""
    if isinstance(to, Mapping) and cells.filter(reference).is_empty():
        values = " and ".join(f"{key} = {value}" for key, value in to.items())
        raise pl.exceptions.InvalidOperationError(f"no row of the log is in the slice {values}")


def _is_there(log: SlicedLog, slice_: Mapping[str, object]) -> pl.Expr:
    """Whether a row is of a slice."""
    return pl.all_horizontal(
        pl.col(KEY + key).eq_missing(_value(key, value, log.key_dtypes[key]))
        for key, value in slice_.items()
    )


def _value(key: str, value: object, dtype: pl.DataType) -> pl.Expr:
    """The value in the dtype of the key, or a ValueError if the key cannot have it."""
    try:
        # Values from the command line are text.
        known = from_text(value, dtype) if isinstance(value, str) else value
        [typed] = pl.Series([known], dtype=dtype)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        typed = None
    if typed is None and value is not None:
        why = f": key '{key}' is {dtype} and cannot have this value"
        raise refused(option("to", {key: value}), why)
    return pl.lit(typed, dtype)

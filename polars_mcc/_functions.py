"""The verbs: typed functions that take a frame and give the same kind of frame back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, get_args, overload

import polars as pl

from polars_mcc import (
    _classes,
    _compare,
    _confusion,
    _intervals,
    _metrics,
    _pairs,
    _registry,
    _scores,
    _slices,
)
from polars_mcc._classes import Nulls
from polars_mcc._confusion import Normalize
from polars_mcc._differences import Correction
from polars_mcc._intervals import Method, Resampling
from polars_mcc._labels import as_label, as_labels, known_labels
from polars_mcc._log import (
    SET,
    AnyFrame,
    Frame,
    IntoColumn,
    IntoColumns,
    Log,
    check_choice,
    check_level,
    check_number,
    opened,
    read,
)
from polars_mcc._registry import IntoMetrics
from polars_mcc._slices import Sets

FrameT = TypeVar("FrameT", pl.DataFrame, pl.LazyFrame, AnyFrame)


@overload
def by(
    frame: FrameT,
    *keys: IntoColumn,
    gold: IntoColumn = "gold",
    pred: IntoColumns = "pred",
    weight: IntoColumn | None = None,
    sample_weight: IntoColumn | None = None,
    nulls: Nulls = "drop",
    zero_division: float | None = 0.0,
    metrics: IntoMetrics = "mcc",
    positive: object = None,
    ci: float | None = None,
    method: Method = "score",
    cluster: IntoColumn | None = None,
    sets: Sets = "crossed",
    total: bool = False,
    long: bool = False,
    index: IntoColumn | None = None,
    window: str | None = None,
    every: str | None = None,
) -> FrameT: ...
@overload
def by(
    frame: pl.DataFrame,
    *keys: IntoColumn,
    gold: IntoColumn = "gold",
    pred: IntoColumns = "pred",
    weight: IntoColumn | None = None,
    nulls: Nulls = "drop",
    zero_division: float | None = 0.0,
    ci: float,
    method: Resampling,
    n_boot: int = 2000,
    seed: int | None = None,
) -> pl.DataFrame: ...
def by(
    frame: FrameT,
    *keys: IntoColumn,
    gold: IntoColumn = "gold",
    pred: IntoColumns = "pred",
    weight: IntoColumn | None = None,
    sample_weight: IntoColumn | None = None,
    nulls: Nulls = "drop",
    zero_division: float | None = 0.0,
    metrics: IntoMetrics = "mcc",
    positive: object = None,
    ci: float | None = None,
    method: Method | Resampling = "score",
    cluster: IntoColumn | None = None,
    n_boot: int = 2000,
    seed: int | None = None,
    sets: Sets = "crossed",
    total: bool = False,
    long: bool = False,
    index: IntoColumn | None = None,
    window: str | None = None,
    every: str | None = None,
) -> FrameT:
    """Score every slice with the Matthews correlation coefficient R_K, and say how sure it is.

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
    `classes` and `confusion`, which show labels, use no hashes. With an interval, rows are
    reduced to pairs, and these are matched with the classes by such hashes.

    Args:
        frame: A log, one row per prediction, or a counts table with `weight="n"`.
        *keys: The columns whose values make the slices: names, expressions such as
            `pl.col("ts").dt.truncate("1d")`, or selectors. None: one slice, all rows.
        gold: The true label: a name or an expression.
        pred: The predicted label; or several models, as a list, a selector or an
            expression with several outputs. Labels may be integers, floats, text
            (String, Categorical, Enum), Booleans, dates; gold and pred compare by value. Or
            lists of these, if rows have several labels: see *Lists of labels*.
        weight: How many rows a row stands for (a frequency, not an importance): integer
            or float, not negative. None: 1. A row whose weight is null is not scored.
        sample_weight: How much a row counts (an importance: of a survey, of a class). The
            score is that of `weight`; the interval is wider, because a row that counts for
            ten is not ten rows.
        nulls: What a null label is. `"drop"`: the row is not scored, and counted in
            `n_null`. `"label"`: a class of its own, so that an abstention is a miss.
        zero_division: The score of a slice with one gold class or one predicted class,
            where R_K is 0/0: 0.0, `float("nan")`, or None for null.
        metrics: What to score slices with, from the same counts: a name of `metrics()`, such
            as `"accuracy"`, `"f1_macro"` or `"kappa"`, a list of names, and expressions over the
            columns of `classes`, such as `pl.col("recall").min().alias("recall_min")`, or over
            `gold`, `pred` and `n` of the pairs (see `register_metric`). With those of two by two
            tables, such as `"tpr"`, one class is held against the rest.
        positive: That class, for these metrics. None: True, of Boolean labels.
        ci: The confidence level of an interval for each score, such as 0.95. None: none.
        method: How the interval is made; see *Intervals*. `"score"`, `"fisher"`, `"wald"`
            are part of the query; `"bootstrap"` (its percentiles) and `"bca"` (corrected for
            bias and acceleration) draw rows with replacement from the counts, outside of the
            query, and so take a DataFrame, which for a large log is that of `counts`.
        cluster: What rows have in common that are not independent, such as a user: the
            interval is then as wide as the clusters differ.
        n_boot: How many replicates a bootstrap draws, per slice.
        seed: What makes a bootstrap come out the same again.
        sets: Which sets of the keys make slices, with SQL's meaning. `"crossed"`: all together.
            `"each"`: each key alone. `"rollup"`: all, all but the last, and so on, none.
            `"cube"`: every set. Or a list of tuples of names of keys; () is the total.
        total: Add the total, all rows as one slice, where the sets have none.
        long: `slice` (names of keys) and `value` (as text) in place of a column per key, which
            is what charts take.
        index: A Date or Datetime, by which windows go.
        window: How long the windows are, such as `"7d"`, `"12h"`, `"1w"`, `"3mo"`.
        every: How often there is one, such as `"1d"`; the window must be a multiple of it.
            None: as often as makes them touch.

    Returns:
        A frame of the kind that was given, sorted by the keys (nulls first, as Polars
        sorts), a row per slice, with the columns

        - `keys` (String), with `sets`, `total` or `long`: the names of the keys of the slice, ""
          for the total. So a null in a key that is named is a value, and another is all values;
        - the keys, with their dtypes; then the index: the start of the last `every` of a window;
        - `model` (String), if `pred` is several: rows in the order given;
        - `n` (Int64; Float64 for float weights): the rows scored;
        - `n_clusters` (Int64), with `cluster`: how many clusters these are of;
        - `mcc` (Float64): between -1 and 1; null where `n` is 0; or the metrics, in the order
          given (Float64; counts such as `tp` as `n`);
        - `se`, `mcc_low`, `mcc_high` (Float64), with `ci`: the standard error, and the interval;
        - `n_null` (as `n`): the rows not scored, because a label or weight is null.

    Intervals:
        With φ, the influence of a row on R_K (`polars_mcc/_influence.py` has the formula), the
        variance of the score is Σ φ² / n², over the rows of a slice (the delta method; for two
        classes: Itaya et al., arXiv 2405.12622). With `sample_weight` w it is Σ w² φ² / (Σ w)²;
        with clusters, Σ (Σ w φ within a cluster)² / (Σ w)², and Student's t with one degree of
        freedom less than there are clusters takes the place of the normal distribution.

        - `"score"` asks which scores would have made the observed one likely, with the variance
          that they have themselves, as Wilson's interval does for a proportion.
        - `"fisher"`: symmetric in artanh R. `"wald"`: symmetric in R; cut at -1 and 1.

        Measured on tables of two and four classes, balanced and 95:5, with scores of 0 to 0.9,
        from 100 rows on, a 95 % interval covers the truth in so many of 4000 samples, at least
        and at most: `"score"` 94 and 97 %, `"fisher"` 27 and 96 %, `"wald"` 26 and 100 %,
        `"bootstrap"` 50 and 99 %, `"bca"` 41 and 99 %. The others fail where few rows of a rare
        class are hit. With 10 rows, `"score"` covers 87 to 100 %. README, *How sure are we*,
        has the table and the command.

        There is no interval (null) for a slice of one gold class or one predicted class, of
        labels that are never both gold and predicted, or of one cluster. Where R_K is 1 or -1,
        there is no standard error, and of the methods only `"score"` has an interval: rows
        without a miss do not say that there are none.

    Sets and windows:
        Rows are counted once: a set that is part of another is summed up from its counts, and so
        are windows from those of their steps. A window ends with the step that it is named by,
        and there is one for each step up to the last of the log, if it has rows; rows without
        a time are a slice of their own. All this streams, but for listed sets of two or more
        keys of which none is part of another: their columns are kept in memory meanwhile, text as
        4 bytes a row.

    Lists of labels:
        A list is taken for a set: each label is there or not, and the score is R_K of the
        indicator matrices, (s·c - Σ t_k·p_k) / √((s Σt - Σ t_k²) · (s Σp - Σ p_k²)). An empty
        list is a row without labels; one that is null, or has a null in it, is a null label. Of
        `metrics`, those that `metrics()` calls `multilabel`; no intervals. `score`, `classes` and
        `counts` take lists too.

    Raises:
        polars.exceptions.ColumnNotFoundError: A named column is missing.
        polars.exceptions.DuplicateError: A key has the name of another key or of a
            column of the answer.
        polars.exceptions.SchemaError: Gold and pred cannot be compared (String and
            Int64), the weight is not a number, the index no time, or a key has dtype Object.
        TypeError: A bootstrap of a LazyFrame.
        ValueError: An option has no such value; both `weight` and `sample_weight`; `cluster`
            or a method without `ci`; a bootstrap of rows that are weighted or in clusters;
            sets that name no key, or one twice; a window that is no multiple of `every`; no
            metric of this name; metrics of a positive class that is not given; an interval
            without `mcc`.
        polars.exceptions.InvalidOperationError: On `collect`: a weight is negative, NaN
            or infinite; or a slice adds up to more than 2⁶³ - 1, or to an infinite float.

    All but the last come from the schema, when the query is built; no data are read.

    References:
        J. Gorodkin, Comparing two K-category assignments by a K-category correlation
        coefficient, Computational Biology and Chemistry 28 (2004) 367-374.
        E. B. Wilson, Probable inference, the law of succession, and statistical inference,
        Journal of the American Statistical Association 22 (1927) 209-212.
        B. Efron, Better bootstrap confidence intervals, ibid. 82 (1987) 171-185.

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
        >>> counts = pl.DataFrame(
        ...     {"gold": ["a", "a", "b", "b"], "pred": ["a", "b", "a", "b"], "n": [40, 10, 5, 45]}
        ... )
        >>> polars_mcc.by(counts, weight="n", ci=0.95).select("n", "mcc", "mcc_low", "mcc_high")
        shape: (1, 4)
        ┌─────┬──────────┬──────────┬──────────┐
        │ n   ┆ mcc      ┆ mcc_low  ┆ mcc_high │
        │ --- ┆ ---      ┆ ---      ┆ ---      │
        │ i64 ┆ f64      ┆ f64      ┆ f64      │
        ╞═════╪══════════╪══════════╪══════════╡
        │ 100 ┆ 0.703526 ┆ 0.539535 ┆ 0.815225 │
        └─────┴──────────┴──────────┴──────────┘
        >>> log = log.with_columns(device=pl.Series(["tv", "tv", "pc", "pc"] * 2))
        >>> polars_mcc.by(log, "country", "device", sets="each", total=True, long=True)
        shape: (6, 5)
        ┌─────────┬───────┬─────┬──────────┬────────┐
        │ slice   ┆ value ┆ n   ┆ mcc      ┆ n_null │
        │ ---     ┆ ---   ┆ --- ┆ ---      ┆ ---    │
        │ str     ┆ str   ┆ i64 ┆ f64      ┆ i64    │
        ╞═════════╪═══════╪═════╪══════════╪════════╡
        │ country ┆ null  ┆ 1   ┆ 0.0      ┆ 0      │
        │ country ┆ DE    ┆ 4   ┆ 0.57735  ┆ 0      │
        │ country ┆ FR    ┆ 2   ┆ 1.0      ┆ 1      │
        │ device  ┆ pc    ┆ 3   ┆ 0.5      ┆ 1      │
        │ device  ┆ tv    ┆ 4   ┆ 1.0      ┆ 0      │
        │         ┆ null  ┆ 7   ┆ 0.730297 ┆ 1      │
        └─────────┴───────┴─────┴──────────┴────────┘
    """
    check_choice("nulls", nulls, get_args(Nulls))
    check_number("zero_division", zero_division)
    check_choice("method", method, [*get_args(Method), *get_args(Resampling)])
    if ci is None:
        _check_no_interval(method, cluster)
    else:
        check_level(ci)
    asked = _registry.chosen(metrics)
    names: list[str] = [metric.name for metric in asked]
    if ci is not None and "mcc" not in names:
        msg = f"ci makes an interval of mcc, which is not among metrics={names}: add it"
        raise ValueError(msg)
    is_one_set: bool = isinstance(sets, str) and sets == "crossed" and not total and not long
    windows: _slices.Windows | None = _windows(frame, index, window, every)
    is_plain = is_one_set and windows is None
    log = read(
        frame,
        [*keys, *([] if windows is None else [windows.bucket])],
        gold,
        pred,
        weight,
        answers=[
            *("n", *names, "n_null"),
            *([] if ci is None else _intervals.COLUMNS),
            *(_slices.LONG if long else []),
            *([] if is_one_set else [SET]),
        ],
        sample_weight=sample_weight,
        cluster=cluster,
        lists=ci is None,
        computed=[] if windows is None else [windows.bucket],
    )
    _registry.check_aggregations(asked, log.labels)
    if log.multilabel:
        _registry.check_multilabel(asked)
    is_positive = _is_positive(log, asked, positive)
    needs_pairs = any(metric.asks_for().pair_sums for metric in asked)
    cells: pl.LazyFrame | None = None
    wanted: list[_slices.KeySet] = []
    if not is_plain:
        log, cells, wanted = _resliced(log, None if is_one_set else sets, windows, total=total)

    def measured(classes: pl.LazyFrame, pairs: pl.LazyFrame | None) -> pl.LazyFrame:
        return _metrics.measure(
            log,
            classes,
            pairs,
            asked,
            nulls=nulls,
            zero_division=zero_division,
            positive=is_positive,
        )

    if ci is None:
        if needs_pairs:  # They are used twice.
            cells = (_pairs.pairs(log) if cells is None else cells).cache()
        if cells is None:
            named = is_positive is not None or any(metric.needs_labels for metric in asked)
            classes = _classes.classes(log, nulls, named=named)
        else:
            classes = _classes.of_pairs(log, cells, nulls)
        answer = log.answer(measured(classes, cells))
    elif method == "bootstrap" or method == "bca":  # noqa: PLR1714 - mypy narrows this
        _check_resampling(frame, log, method, n_boot, seed, is_plain=is_plain, metrics=names)
        from polars_mcc import _bootstrap  # noqa: PLC0415 - NumPy is loaded for it alone

        found = _bootstrap.resampled(
            log,
            nulls=nulls,
            zero_division=zero_division,
            ci=ci,
            method=method,
            n_boot=n_boot,
            seed=seed,
        )
        answer = log.answer(found.lazy())
    else:
        estimate = _intervals.estimate(
            log,
            _pairs.pairs(log) if cells is None else cells,
            nulls=nulls,
            zero_division=zero_division,
            ci=ci,
            method=method,
        )
        scores = measured(estimate.classes, estimate.pairs)
        answer = log.answer(estimate.with_intervals(log, scores, names))
    return as_kind_of(frame, _slices.in_long_form(wanted, answer) if long else answer)


def score(
    frame: FrameT,
    *,
    gold: IntoColumn = "gold",
    pred: IntoColumns = "pred",
    weight: IntoColumn | None = None,
    sample_weight: IntoColumn | None = None,
    nulls: Nulls = "drop",
    zero_division: float | None = 0.0,
    metrics: IntoMetrics = "mcc",
    positive: object = None,
    ci: float | None = None,
    method: Method = "score",
    cluster: IntoColumn | None = None,
) -> FrameT:
    """Score the whole frame: `by` with no keys.

    Args and errors are those of `by`, which has the bootstraps too.

    Returns:
        A frame of the kind that was given: one row (per model), `n`, `mcc`, `n_null`, and
        with `ci` the interval. No rows give `n` 0 and `mcc` null.

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
    return by(
        frame,
        gold=gold,
        pred=pred,
        weight=weight,
        sample_weight=sample_weight,
        nulls=nulls,
        zero_division=zero_division,
        ci=ci,
        method=method,
        cluster=cluster,
        metrics=metrics,
        positive=positive,
    )


def compare(
    frame: FrameT,
    a: IntoColumn,
    b: IntoColumns,
    *keys: IntoColumn,
    gold: IntoColumn = "gold",
    weight: IntoColumn | None = None,
    sample_weight: IntoColumn | None = None,
    nulls: Nulls = "drop",
    zero_division: float | None = 0.0,
    ci: float = 0.95,
    method: Method = "score",
    cluster: IntoColumn | None = None,
    correction: Correction = "bh",
) -> FrameT:
    """Compare models on the same rows: is b better than a, in each slice?

    Two models that see the same rows mostly err on the same ones, so their difference is known
    better than either score. It is taken from the joint counts of (gold, a, b): with φ, the
    influence of a row on a score (see *Intervals* of `by`), the variance of the difference is
    Σ (φ_b - φ_a)² / n². One scan, for any number of models.

    To compare models of two logs, join these on what tells their rows apart.

    Args:
        frame: A log with a column per model, or its counts: those of `counts(log, *keys, a,
            pred=b)`, with `weight="n"`, tell how often gold, a and b (`pred`) meet.
        a: The baseline: a name or an expression.
        b: The model to compare with it; or several, as a list, a selector or an expression
            with several outputs, each compared with `a`.
        *keys: The columns that make the slices, as in `by`, like all that follow but the last.
        gold: The true label.
        weight: How many rows a row stands for.
        sample_weight: How much a row counts.
        nulls: `"drop"`: a row is scored if gold and both models have a label there.
            `"label"`: null is a label.
        zero_division: The score where R_K is 0/0.
        ci: The confidence level of the interval.
        method: `"score"`, `"fisher"` or `"wald"`: how the interval of each score is made, from
            which that of the difference is.
        cluster: What rows have in common that are not independent.
        correction: For how many p-values there are in the answer. Of the discoveries, how many
            are false: `"bh"` (Benjamini and Hochberg 1995), `"by"` (Benjamini and Yekutieli
            2001: also if slices overlap). Whether one is false: `"holm"`, `"bonferroni"`.

    Returns:
        A frame of the kind that was given, sorted, a row per slice (and `model`, if `b` is
        several), with the columns

        - the keys, `model` (String), `n`, `n_clusters` (Int64) with `cluster`, as in `by`;
        - `mcc_a`, `mcc_b`, and `diff` = `mcc_b` - `mcc_a`: above 0 where b is better;
        - `se`, the standard error of `diff`; `diff_low`, `diff_high`, its interval;
        - `p_value`, of `diff` being 0, and `p_adjusted`, corrected;
        - `n_null` (as `n`): the rows not scored.

        All but the counts are Float64. The interval is Zou's (2007): from those of both scores
        and the correlation of their influences; so it may be longer on one side. `p_value` is
        below 1 - `ci` where it leaves 0 out. Both are null where a score has no interval.
        `se` is null where the models never differ.

        Measured from 100 rows on, as in `by`: the interval covers the difference in 94 to 99.9 %
        of samples if classes are balanced, and in 92 to 100 % if they are 95:5 (by `"wald"`: 91
        to 99 %, and 55 to 100 %). It is above 97 % where few rows tell the models apart, or a
        rare class is hardly ever hit. Of two equal models, p is below 0.05 in at most 5.6 and
        7.4 % of samples (by `"wald"`: 6.3 and 16 %). README, *How sure are we*, has the command.

    Raises:
        ValueError: An option has no such value; `a` is also in `b`; both `weight` and
            `sample_weight`.

    Errors of `by` are raised too.

    References:
        G. Y. Zou, Toward using confidence intervals to compare correlations, Psychological
        Methods 12 (2007) 399-413.
        M. Itaya et al., Asymptotic properties of Matthews correlation coefficient,
        arXiv 2405.12622: the variance, for two classes.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> counts = pl.DataFrame(
        ...     {
        ...         "gold": ["x", "x", "x", "y", "y", "y"],
        ...         "old": ["x", "x", "y", "y", "y", "x"],
        ...         "new": ["x", "y", "x", "y", "x", "y"],
        ...         "n": [80, 3, 17, 85, 2, 13],
        ...     }
        ... )
        >>> compared = polars_mcc.compare(counts, "old", "new", weight="n")
        >>> compared.select("mcc_a", "mcc_b", "diff", "diff_low", "diff_high", "p_value")
        shape: (1, 6)
        ┌──────────┬──────────┬──────────┬──────────┬───────────┬──────────┐
        │ mcc_a    ┆ mcc_b    ┆ diff     ┆ diff_low ┆ diff_high ┆ p_value  │
        │ ---      ┆ ---      ┆ ---      ┆ ---      ┆ ---       ┆ ---      │
        │ f64      ┆ f64      ┆ f64      ┆ f64      ┆ f64       ┆ f64      │
        ╞══════════╪══════════╪══════════╪══════════╪═══════════╪══════════╡
        │ 0.700561 ┆ 0.950048 ┆ 0.249487 ┆ 0.139172 ┆ 0.366775  ┆ 0.000009 │
        └──────────┴──────────┴──────────┴──────────┴───────────┴──────────┘
    """
    check_choice("nulls", nulls, get_args(Nulls))
    check_number("zero_division", zero_division)
    check_choice("method", method, get_args(Method))
    check_choice("correction", correction, get_args(Correction))
    check_level(ci)
    log = read(
        frame,
        keys,
        gold,
        b,
        weight,
        answers=_compare.COLUMNS,
        sample_weight=sample_weight,
        baseline=a,
        cluster=cluster,
    )
    if isinstance(a, str) and a in log.preds:
        msg = f"model '{a}' is the baseline; leave it out of those that are compared with it"
        raise ValueError(msg)
    found = _compare.differences(
        log,
        nulls=nulls,
        zero_division=zero_division,
        ci=ci,
        method=method,
        correction=correction,
    )
    return as_kind_of(frame, log.answer(found))


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
    log = read(frame, keys, gold, pred, weight, answers=["gold", "pred", "n"], lists=True)
    countable = _pairs.countable(log, _pairs.pairs(log))
    return as_kind_of(frame, log.answer(countable, "gold", "pred"))


def engine_counts(
    frame: AnyFrame, *keys: str, gold: str = "gold", pred: str | Sequence[str] = "pred"
) -> Any:  # noqa: ANN401 - it is the frame of another library
    """The query by which another engine counts a log, as a frame of that engine.

    It is what the verbs ask of Spark, DuckDB, Dask, Ibis, pandas or PyArrow, given their frames.
    Look at its plan, `engine_counts(...).explain()`, or keep the counts where the log is,
    `engine_counts(...).write.parquet("s3://lake/counts")`.

    Args:
        frame: A frame that narwhals takes.
        *keys: The names of the columns that make the slices.
        gold: The name of the true label.
        pred: The name of the predicted label, or of those of several models.

    Returns:
        A frame of the engine, in any order, a row per combination of values that occurs in the
        columns that are named, with these columns and `n`, how many rows there are of it: a log
        for any verb, with `weight="n"`.

    Raises:
        TypeError: It is a frame of Polars, which has `counts`, or none that narwhals takes.

    Errors of `by` are raised too.

    Examples:
        >>> import duckdb
        >>> import polars_mcc
        >>> log = duckdb.sql("SELECT i % 2 AS gold, i % 3 % 2 AS pred FROM range(12) t(i)")
        >>> polars_mcc.engine_counts(log).order("gold, pred").fetchall()
        [(0, 0, 4), (0, 1, 2), (1, 0, 4), (1, 1, 2)]
    """
    engine = opened(frame)
    if isinstance(engine, Frame):
        msg = "engine_counts is for logs of other engines: of a polars frame, take counts(...)"
        raise TypeError(msg)
    models = [pred] if isinstance(pred, str) else list(pred)
    read(frame, keys, gold, models, None, answers=["n"], lists=True)
    return engine.native_counts(list(dict.fromkeys([*keys, gold, *models])))


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
        - `precision` = hits / predicted; `recall` = hits / support; `specificity`, the recall of
          all others; `f1` = 2 hits / (support + predicted); `mcc`, the binary MCC of this
          label against all others (Matthews 1975); `informedness` = recall + specificity - 1,
          and `markedness`, the same of the predictions: precision + NPV - 1 (Powers 2011,
          arXiv 2010.16061); all Float64;
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
    log = read(frame, keys, gold, pred, weight, answers=_scores.CLASS_COLUMNS, lists=True)
    reduced = _classes.classes(log, nulls, named=True)
    return as_kind_of(frame, log.answer(_scores.class_scores(log, reduced, zero_division), "label"))


def confusion(
    frame: FrameT,
    *keys: IntoColumn,
    gold: IntoColumn = "gold",
    pred: IntoColumns = "pred",
    weight: IntoColumn | None = None,
    labels: Sequence[object] | None = None,
    normalize: Normalize | None = None,
    nulls: Nulls = "drop",
    long: bool = False,
    top: int | None = None,
) -> FrameT:
    """Lay the counts out as a confusion matrix per slice.

    Args:
        frame: A log or a counts table; as in `by`, like all that follow but the last four.
        *keys: The columns that make the slices.
        gold: The true label.
        pred: The predicted label, or several models.
        weight: How many rows a row stands for.
        nulls: `"drop"` or `"label"`.
        labels: The labels, in the order of rows and columns; all that occur must be
            listed, and others may be. None: the labels that a Boolean or Enum column can have;
            else, for a DataFrame, those that occur, sorted. A LazyFrame of other labels needs a
            list, because its columns must be known before data are read; not so if `long`.
        normalize: Shares in place of counts: of each gold label (`"gold"`: the rows add
            up to 1), of each predicted label (`"pred"`: the columns do), or of the slice
            (`"all"`). A share of nothing is 0.
        long: A row per cell in place of a column per label: of all `labels`, if they are listed,
            or else of the pairs that occur.
        top: Only the confusions, gold and pred apart, that cost most of the score, at most so
            many of each slice, the costliest first; long.

    Returns:
        A frame of the kind that was given, sorted by the keys: for each slice a row per
        label, `gold`, and a column per predicted label, named by its text ("null" for
        null, with `nulls="label"`). Cells are Int64, or Float64 for shares and for float
        weights. `n_null` is the number of rows of the slice that are in no cell. `to_numpy`
        makes an array of it.

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
        >>> polars_mcc.confusion(log, top=3)
        shape: (1, 6)
        ┌──────┬──────┬─────┬──────────────┬─────────┬────────┐
        │ gold ┆ pred ┆ n   ┆ contribution ┆ loss    ┆ n_null │
        │ ---  ┆ ---  ┆ --- ┆ ---          ┆ ---     ┆ ---    │
        │ str  ┆ str  ┆ i64 ┆ f64          ┆ f64     ┆ i64    │
        ╞══════╪══════╪═════╪══════════════╪═════════╪════════╡
        │ a    ┆ b    ┆ 1   ┆ -0.216506    ┆ 0.42265 ┆ 0      │
        └──────┴──────┴─────┴──────────────┴─────────┴────────┘
    """
    check_choice("nulls", nulls, get_args(Nulls))
    if normalize is not None:
        check_choice("normalize", normalize, get_args(Normalize))
    _check_top(top, labels)
    is_long: bool = long or top is not None
    cell: list[str] = ["pred", _confusion.value_name(normalize)] if is_long else []
    cost: Sequence[str] = [] if top is None else _confusion.COST
    log = read(frame, keys, gold, pred, weight, answers=["gold", *cell, *cost, "n_null"])
    pairs, has_null = _pairs.pairs(log), nulls == "label"
    if top is not None:
        found = _confusion.costliest(log, pairs, normalize, nulls, top)
        return as_kind_of(frame, log.answer(found, "contribution", "gold", "pred"))
    if long and labels is None:
        found = _confusion.long(log, pairs, None, normalize, nulls)
        return as_kind_of(frame, log.answer(found, "gold", "pred"))
    listed = as_labels(
        _labels_of(frame, log) if labels is None else labels, log.labels, null=has_null
    )
    matrix = (_confusion.long if long else _confusion.wide)(log, pairs, listed, normalize, nulls)
    return as_kind_of(frame, log.answer(matrix))


def _check_top(top: object, labels: Sequence[object] | None) -> None:
    if top is None:
        return
    if not (isinstance(top, int) and top >= 1):
        msg = f"top must be an integer of at least 1, got {top!r}"
        raise ValueError(msg)
    if labels is not None:
        msg = "top lists confusions that occur: leave labels out"
        raise ValueError(msg)


def _check_no_interval(method: str, cluster: IntoColumn | None) -> None:
    given = {"cluster": cluster is not None, f"method={method!r}": method != "score"}
    for option, is_given in given.items():
        if is_given:
            msg = f"{option} makes the interval, not the score: give the level too, as ci=0.95"
            raise ValueError(msg)


def _windows(
    frame: AnyFrame, index: IntoColumn | None, window: str | None, every: str | None
) -> _slices.Windows | None:
    if index is not None and window is not None:
        return _slices.windows_of(frame, index, window, every)
    given = {"index": index, "window": window, "every": every}
    for option, value in given.items():
        if value is not None:
            msg = (
                f"{option}={value!r} needs both an index and a window, as in "
                "index='day', window='7d', every='1d'"
            )
            raise ValueError(msg)
    return None


def _resliced(
    log: Log, sets: Sets | None, windows: _slices.Windows | None, *, total: bool
) -> tuple[Log, pl.LazyFrame, list[_slices.KeySet]]:
    wanted: list[_slices.KeySet] = []
    if sets is None:
        cells = _pairs.pairs(log)
    else:
        always = () if windows is None else (windows.name,)
        crossed = log.keys[: len(log.keys) - len(always)]
        wanted = _slices.sets_of(crossed, sets, total=total)
        log, cells = _slices.of_sets(log, wanted, always)
    if windows is not None:
        cells = _slices.of_windows(log, cells, windows)
    return log, cells, wanted


def _is_positive(log: Log, metrics: Sequence[_metrics.Metric], positive: object) -> pl.Expr | None:
    """Whether a class is the positive one, for metrics that ask for it."""
    binary = [metric.name for metric in metrics if metric.asks_for().is_binary]
    if not binary:
        if positive is not None:
            msg = (
                f"positive={positive!r} is for metrics of one class, such as 'tpr', and 'phi', its "
                f"MCC, but metrics={[metric.name for metric in metrics]} has none"
            )
            raise ValueError(msg)
        return None
    if positive is None:
        if log.labels != pl.Boolean:
            name = binary[0]
            of_all = f"{name}_macro"
            hint = f"; of all classes there is '{of_all}'" if _registry.is_known(of_all) else ""
            msg = (
                f"metric '{name}' is of one class against the rest: say which label is positive, "
                f"as in positive='fraud'; the labels are {log.labels}{hint}"
            )
            raise ValueError(msg)
        positive = True
    label = pl.lit(as_label(positive, log.labels), log.labels)
    return pl.col("label").eq_missing(label)


def _check_resampling(
    frame: AnyFrame,
    log: Log,
    method: str,
    n_boot: object,
    seed: object,
    *,
    is_plain: bool,
    metrics: list[str],
) -> None:
    if is_lazy(frame):
        columns = ", ".join(map(repr, [*log.keys, *(["model"] if log.several else [])]))
        msg = (
            f"method='{method}' draws from counts that are at hand, which a lazy query has not: "
            "take the counts first, lf.mcc.counts(...).collect(), and resample these with "
            f"weight='n'{f' and the keys {columns}' if columns else ''}"
        )
        raise TypeError(msg)
    if not is_plain:
        msg = (
            f"method='{method}' resamples the slices of the crossed keys only: for other sets, or "
            "windows, use 'score', 'fisher' or 'wald'"
        )
        raise ValueError(msg)
    if metrics != ["mcc"]:
        msg = f"method='{method}' scores mcc only: take metrics={metrics} in a query of their own"
        raise ValueError(msg)
    if log.extras or not log.is_frequency or log.numbers.count != pl.Int64:
        msg = (
            f"method='{method}' draws whole rows, independent and alike: with a cluster, a "
            "sample_weight or a weight that is Float64, use 'score', 'fisher' or 'wald'"
        )
        raise ValueError(msg)
    for name, value, least in (("n_boot", n_boot, 2), ("seed", seed, 0)):
        is_none = name == "seed" and value is None
        if not (is_none or (isinstance(value, int) and value >= least)):
            msg = f"{name} must be an integer of at least {least}, got {value!r}"
            raise ValueError(msg)


def _labels_of(frame: AnyFrame, log: Log) -> Sequence[object]:
    known = known_labels(log.labels)
    if known is not None:
        return known
    if is_lazy(frame):
        msg = (
            f"the columns of a lazy confusion matrix must be known beforehand: pass labels=[...], "
            f"cast the {log.labels} labels to an Enum, collect() first, or take long=True, "
            "which has a row per cell"
        )
        raise ValueError(msg)
    return log.distinct_labels().collect().to_series().to_list()


@overload
def as_kind_of(frame: pl.DataFrame, answer: pl.LazyFrame) -> pl.DataFrame: ...
@overload
def as_kind_of(frame: pl.LazyFrame, answer: pl.LazyFrame) -> pl.LazyFrame: ...
@overload
def as_kind_of(frame: AnyFrame, answer: pl.LazyFrame) -> Frame: ...
def as_kind_of(frame: AnyFrame, answer: pl.LazyFrame) -> Frame:
    return answer if is_lazy(frame) else answer.collect()


def is_lazy(frame: AnyFrame) -> bool:
    """Whether nothing is to be read of a frame before `collect`."""
    source = opened(frame)
    if isinstance(source, Frame):
        return isinstance(source, pl.LazyFrame)
    return source.is_lazy

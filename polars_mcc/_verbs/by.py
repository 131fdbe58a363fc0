"""`by`: a row per slice, with its score, and how sure that is."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.classes import classes, of_pairs
from polars_mcc._counts.cut import cut
from polars_mcc._counts.identity import unnamed
from polars_mcc._counts.pairs import pairs
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.asked import Asked, columns_of
from polars_mcc._inference.intervals import estimate, ranges_of, within_range
from polars_mcc._inference.methods import Bootstrap, Resampling
from polars_mcc._log import defaults
from polars_mcc._log.choices import Method, check_choice, check_interval
from polars_mcc._log.described import Described
from polars_mcc._log.frames import FrameT
from polars_mcc._log.keys import IntoKey
from polars_mcc._scores import registry
from polars_mcc._scores.measure import measure
from polars_mcc._scores.registry import IntoMetrics


def by(
    log: Described[FrameT],
    *keys: IntoKey,
    metrics: IntoMetrics = defaults.METRICS,
    ci: float | None = None,
    method: Method | Resampling[FrameT] = defaults.METHOD,
    long: bool = False,
) -> FrameT:
    """Score every slice with the Matthews correlation coefficient R_K, and say how sure it is.

    With s rows, c hits and the marginal counts t_k (gold) and p_k (predicted) of class k:

        R_K = (c·s - Σ t_k·p_k) / √((s² - Σ p_k²) · (s² - Σ t_k²))

    For integer counts every sum and product is exact, and rounded once at the end: the score
    is within 4 units in the last place. For float weights the sum of each (slice, gold, pred)
    is a float, off by at most one unit in its last place if the weights are between 10⁻⁶ and
    10¹²; from there on all is exact but for weights below 10⁻¹⁸ of their slice's total.

    Meanwhile hashes of 64 bits stand for labels that are text: two of K labels are taken for one
    with a probability below K² / 2⁶⁴, 6·10⁻¹⁰ for 10⁵ labels, whatever the number of rows and
    slices. With `ci`, and metrics of pairs, this holds of labels of all dtypes. `counts`
    and `classes`, which show labels, use no hashes.

    Args:
        *keys: What makes slices: a column, an expression or selector; `each`, `rollup`, `cube` or
            `sets` of columns; `trailing` windows of time. Several are crossed. None: one slice,
            all rows.
        metrics: What to score slices with, from the same counts: a name of `metrics()`, such as
            "accuracy", "f1_macro" or "kappa", or several; in Python also an expression over the
            columns of `classes`, such as `pl.col("recall").min().alias("recall_min")`, or over
            `gold`, `pred` and `n` of the pairs (see `register_metric`). For metrics of two by two
            tables, such as "tpr", the log says which label is positive.
        ci: The confidence level of an interval for each metric, such as 0.95. None: no interval.
        method: How intervals are made. "score" covers best; "fisher" and "wald" are the
            textbook's; a `Bootstrap` resamples the rows, or clusters, of a DataFrame.
        long: Show a slice as two columns, `slice` (names of keys) and `value` (as text), in place
            of a column per key: what charts take.

    Returns:
        A frame of the kind of the log, sorted by the keys (nulls first, as Polars sorts), a row
        per slice, with the columns

        - `keys` (String), if there are several sets of keys: the names of the keys of the slice,
          "" for the total. So a null in a key that is named is a value, and another is all values;
        - the keys, with their dtypes; after a window, `complete` (see `trailing`);
        - `model` (String), if `pred` is several: rows in the order given;
        - `n` (Int64; Float64 for float weights): the rows scored;
        - `n_clusters` (Int64), with an interval of clusters: how many clusters these are of;
        - `mcc` (Float64): between -1 and 1; null where `n` is 0; or the metrics, in the order
          given (Float64; counts such as `tp` as `n`);
        - after each metric, with `ci`, its standard error and interval: `mcc_se`, `mcc_low`,
          `mcc_high` (Float64);
        - `n_null` (as `n`): the rows not scored, because a label or weight is null.

    Intervals:
        Let φ be the influence of a row on a metric: the derivative of the metric's own definition
        (`polars_mcc/_inference/gradients.py` has the formula). The variance of the metric is
        Σ φ² / n², over the rows of a slice (the delta method; for R_K of two classes: Itaya et
        al., arXiv 2405.12622). With `sample_weight` w it is Σ w² φ² / (Σ w)². With clusters it is
        Σ (Σ w φ within a cluster)² / (Σ w)², and Student's t with one degree of freedom less than
        there are clusters takes the place of the normal distribution.

        - "score" of R_K asks which scores would have made the observed one likely, with the
          variance that they have themselves. Any other metric with a range has Wilson's interval
          (1927), of a proportion of m rows. m is chosen so that the proportion has the variance
          of the metric. For recall, m is the number of gold rows of the class. Where all rows are
          right the observed variance is 0. So m comes from a table with the same margins, in
          which two rows of each gold class are predicted at random.
        - "fisher": symmetric in artanh of the score, scaled from -1 to 1. "wald": symmetric in the
          score, cut at the ends of its range. A metric of one's own without a range has this one.
        - `Bootstrap`: percentiles of rows drawn with replacement, or, with `bca`, corrected.

        From 100 rows on, a 95 % interval of R_K by "score" covered the truth in 94 to 97 % of
        samples, by the others in as few as 26 %, where few rows of a rare class are hit. README,
        *How sure are we*, has tables for all kinds of metrics, with the misses, and the commands.
        The least of classes (`mcc_min_class`) is covered worst: its interval does not know that
        the least was chosen.

        There is no interval (null) of a metric that is 0/0, or of one cluster; of R_K, also if
        labels are never both gold and predicted. Where a metric is at the end of its range, such
        as 1, there is no standard error, and only "score" gives an interval: it says how low the
        true score may be though no row is wrong. Metrics of pairs have no interval there.

    Sets and windows:
        Rows are counted once, and all streams, but for sets of two or more keys of which none is
        part of another: their columns are kept in memory, text as 4 bytes a row.

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
        polars.exceptions.SchemaError: A key has dtype Object, or the index of windows is no time.
        TypeError: A bootstrap of a LazyFrame.
        ValueError: An option has no such value; a method without `ci`; a bootstrap of weighted
            rows; sets of keys, or windows, that make no sense; no metric of
            this name; metrics of a positive class that is not known; an interval of a metric that
            has no derivative, such as a median: the message tells of the bootstrap.
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
        >>> log.mcc.by("country")
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
        >>> counts = pl.DataFrame({"gold": [1, 1, 0, 0], "pred": [1, 0, 1, 0], "n": [40, 9, 5, 46]})
        >>> counts.mcc(weight="n").by(ci=0.95).columns
        ['n', 'mcc', 'mcc_se', 'mcc_low', 'mcc_high', 'n_null']

    Command line:
        polars-mcc by logs/ --by country --by device --ci 0.95 --filter "day > DATE '2026-03-01'"
    """
    if not isinstance(method, Bootstrap):
        check_choice("method", method, Method, "Bootstrap(...)")
    check_interval(ci, method)
    asked = registry.chosen(metrics)
    names = [metric.name for metric in asked]
    answers = ["n", *names, "n_null"]
    answers += [] if ci is None else ["n_clusters", *columns_of(names)]
    sliced = cut(log, keys, answers=answers, lists=ci is None, cluster=ci is not None, long=long)
    if sliced.is_multilabel:
        registry.check_multilabel(asked)
    positive = registry.checked(asked, log.meaning.positive, sliced.label_dtype)
    if ci is not None and isinstance(method, Bootstrap):
        _check_resampling(log, sliced)
        resampling = Asked(ci, metrics=asked, positive=positive)
        from polars_mcc._inference import bootstrap  # noqa: PLC0415 - NumPy is loaded for it alone

        return log.in_kind(sliced.answer(bootstrap.resampled(sliced, resampling, method).lazy()))
    if not any(metric.needs_labels for metric in asked):
        sliced = unnamed(sliced)
    if ci is None and any(metric.pairs for metric in asked):
        cells = pairs(sliced).cache()  # They are used twice.
        slices = measure(sliced, of_pairs(sliced, cells), asked, pairs=cells, positive=positive)
    elif ci is None:
        slices = measure(sliced, classes(sliced), asked, positive=positive)
    else:
        assert not isinstance(method, Resampling)  # noqa: S101 - for the type checker
        found = estimate(sliced, pairs(sliced), Asked(ci, method, asked, positive))
        slices = within_range(found.scores, ranges_of(asked))
    return log.in_kind(sliced.answer(slices))


def _check_resampling(log: Described[FrameT], sliced: SlicedLog) -> None:
    if log.meaning.is_lazy:
        columns = ", ".join(map(repr, [*sliced.keys, *(["model"] if sliced.has_models else [])]))
        msg = (
            "a bootstrap draws from counts that are at hand, which a lazy query has not: take the "
            "counts first, lf.mcc.counts(...).collect(), and resample these with weight='n'"
            f"{f' and the keys {columns}' if columns else ''}"
        )
        raise TypeError(msg)
    if not sliced.is_frequency or sliced.numbers.count != pl.Int64:
        msg = (
            "a bootstrap draws whole rows, or whole clusters of them: with a sample_weight or a "
            "weight that is Float64, use 'score', 'fisher' or 'wald'"
        )
        raise ValueError(msg)

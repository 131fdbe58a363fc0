"""`by`: a row per slice, with its score, and how sure that is."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.classes import classes, of_pairs
from polars_mcc._counts.cut import cut
from polars_mcc._counts.identity import unnamed
from polars_mcc._counts.pairs import pairs
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference import intervals
from polars_mcc._inference.methods import Bootstrap, Resampling
from polars_mcc._log import defaults
from polars_mcc._log.choices import Method, check_choice, check_level
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
        ci: The confidence level of an interval for each score, such as 0.95. None: no interval.
        method: How the interval is made. "score" covers best; "fisher" and "wald" are the
            textbook's; a `Bootstrap` resamples the rows of a DataFrame.
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
        - `se`, `mcc_low`, `mcc_high` (Float64), with `ci`: the standard error, and the interval;
        - `n_null` (as `n`): the rows not scored, because a label or weight is null.

    Intervals:
        With φ, the influence of a row on R_K (`polars_mcc/_inference/influence.py` has the
        formula), the variance of the score is Σ φ² / n², over the rows of a slice (the delta
        method; for two classes: Itaya et al., arXiv 2405.12622). With `sample_weight` w it is
        Σ w² φ² / (Σ w)²; with clusters, Σ (Σ w φ within a cluster)² / (Σ w)², and Student's t
        with one degree of freedom less than there are clusters takes the place of the normal
        distribution.

        - "score" asks which scores would have made the observed one likely, with the variance
          that they have themselves, as Wilson's interval does for a proportion.
        - "fisher": symmetric in artanh R. "wald": symmetric in R; cut at -1 and 1.
        - `Bootstrap`: percentiles of rows drawn with replacement, or, with `bca`, corrected.

        From 100 rows on, a 95 % interval by "score" covered the truth in 94 to 97 % of samples,
        by the others in as few as 26 %, where few rows of a rare class are hit. README, *How sure
        are we*, has the table and the command.

        There is no interval (null) for a slice of one gold class or one predicted class, of
        labels that are never both gold and predicted, or of one cluster. Where R_K is 1 or -1,
        there is no standard error, and of the methods only "score" has an interval: rows
        without a miss do not say that there are none.

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
        ValueError: An option has no such value; a method without `ci`; a bootstrap of rows that
            are weighted or in clusters; sets of keys, or windows, that make no sense; no metric of
            this name; metrics of a positive class that is not known; an interval without `mcc`.
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
        ['n', 'mcc', 'se', 'mcc_low', 'mcc_high', 'n_null']

    Command line:
        polars-mcc by logs/ --by country --by device --ci 0.95 --filter "day > DATE '2026-03-01'"
    """
    if not isinstance(method, Bootstrap):
        check_choice("method", method, Method, "Bootstrap(...)")
    if ci is not None:
        check_level(ci)
    elif method != defaults.METHOD:
        msg = f"method={method!r} makes the interval, not the score: give the level too, as ci=0.95"
        raise ValueError(msg)
    asked = registry.chosen(metrics)
    names = [metric.name for metric in asked]
    if ci is not None and "mcc" not in names:
        msg = f"ci makes an interval of mcc, which is not among metrics={names}: add it"
        raise ValueError(msg)
    answers = ["n", *names, "n_null", *([] if ci is None else intervals.COLUMNS)]
    sliced = cut(log, keys, answers=answers, lists=ci is None, cluster=ci is not None, long=long)
    registry.check_aggregations(asked, sliced.label_dtype)
    if sliced.is_multilabel:
        registry.check_multilabel(asked)
    positive = registry.is_positive(asked, log.meaning.positive, sliced.label_dtype)
    if ci is not None and isinstance(method, Bootstrap):
        _check_resampling(log, sliced, names)
        from polars_mcc._inference import bootstrap  # noqa: PLC0415 - NumPy is loaded for it alone

        return log.in_kind(sliced.answer(bootstrap.resampled(sliced, ci, method).lazy()))
    if not any(metric.needs_labels for metric in asked):
        sliced = unnamed(sliced)
    if ci is None and any(metric.pairs for metric in asked):
        cells = pairs(sliced).cache()  # They are used twice.
        slices = measure(sliced, of_pairs(sliced, cells), asked, pairs=cells, positive=positive)
    elif ci is None:
        slices = measure(sliced, classes(sliced), asked, positive=positive)
    else:
        assert not isinstance(method, Resampling)  # noqa: S101 - for the type checker
        found = intervals.estimate(sliced, pairs(sliced), ci, method, positive)
        scores = measure(
            sliced, found.classes, asked, sums=found.sums, pairs=found.pairs, positive=positive
        )
        slices = found.with_intervals(scores, names)
    return log.in_kind(sliced.answer(slices))


def _check_resampling(log: Described[FrameT], sliced: SlicedLog, metrics: list[str]) -> None:
    if log.meaning.is_lazy:
        columns = ", ".join(map(repr, [*sliced.keys, *(["model"] if sliced.has_models else [])]))
        msg = (
            "a bootstrap draws from counts that are at hand, which a lazy query has not: take the "
            "counts first, lf.mcc.counts(...).collect(), and resample these with weight='n'"
            f"{f' and the keys {columns}' if columns else ''}"
        )
        raise TypeError(msg)
    if metrics != ["mcc"]:
        msg = f"a bootstrap scores mcc only: take metrics={metrics} in a query of their own"
        raise ValueError(msg)
    if sliced.extras or not sliced.is_frequency or sliced.numbers.count != pl.Int64:
        msg = (
            "a bootstrap draws whole rows, independent and alike: with a cluster, a "
            "sample_weight or a weight that is Float64, use 'score', 'fisher' or 'wald'"
        )
        raise ValueError(msg)

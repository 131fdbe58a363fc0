"""`calibration`: the rate of positive rows among rows with similar scores."""

from __future__ import annotations

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import check_at_least, check_level
from polars_mcc._counts.class_counts import classes_of_pairs
from polars_mcc._counts.count_rows import without_clusters
from polars_mcc._counts.pair_counts import pairs
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._frame.frames import FrameT
from polars_mcc._frame.log_options import Described
from polars_mcc._intervals.interval_options import inferred
from polars_mcc._keys.any_key import IntoKey
from polars_mcc._metrics.exact_scores import measure


def calibration(
    log: Described[FrameT],
    *keys: IntoKey,
    bins: int = defaults.BINS,
    ci: float = defaults.LEVEL,
) -> FrameT:
    """Compare scores with the rate of positive rows, in bins of each slice: the reliability table.

    The log must have `score`, and also `positive` if gold is not Boolean. Scores are probabilities,
    from 0 to 1. If they are calibrated, the rate of positive rows in a bin is near the mean score:
    of the rows with scores near 0.8, 80 % are positive. With 10 bins, the metrics "ece" and
    "calibration_error" are of this table; "ece(15)" is of 15 bins.

    Args:
        *keys: The keys to group by, as in `by`.
        bins: The number of bins of a slice. The rows of a slice are sorted by score and cut into
            bins of equal size. Equal scores are in one bin, that of their middle, so there may be
            fewer bins. scikit-learn's `calibration_curve(strategy="quantile")` has the same bins if
            all scores differ and `bins` divides the number of rows: see the notes.
        ci: The confidence level of the interval of each rate.

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, sorted by the keys and the bin, with the
        keys, `model` if there are several scores, and

        - `bin` (Int64): the number of the bin in its slice, from 1. Low scores come first;
        - `score_min`, `score_max` (Float64): the least and the largest score of the bin;
        - `n` (Int64; Float64 for float weights): the rows of the bin;
        - `n_clusters` (Int64), if the log has clusters: the number of clusters in the bin;
        - `score_mean`, `rate` (Float64): the mean score, and the share of positive rows;
        - `rate_low`, `rate_high` (Float64): Wilson's interval of the rate. It is short, also in
          small bins: shorter than the exact interval. Clusters and sample weights widen it, as
          in `by`;
        - `n_null` (dtype of `n`): the rows of the slice that are not scored: the label, score or
          weight is null, or the score is NaN.

        A slice without scored rows has one row, with a null bin.

    Notes:
        Of n rows in the order of their scores, r rows have an equal score, and f rows a lower one.
        They are in bin ⌊(f + r/2) · bins / n⌋, counted from 0. In scikit-learn the edges of bins
        are percentiles, interpolated between rows, and a score at an edge is below it. So these
        rows are in the bin of their first row: as many as there are k from 1 to bins - 1 with
        k (n - 1) / bins < f. scikit-learn takes no weights here.

    Raises:
        ValueError: The log has no score; gold is not Boolean and there is no `positive`; `bins` is
            below 1; `ci` is not between 0 and 1; the log has `nulls="label"`.
        polars.exceptions.InvalidOperationError: On `collect`: a score is not between 0 and 1.

    The errors of `by` are raised too.

    References:
        M. H. DeGroot and S. E. Fienberg, The comparison and evaluation of forecasters, The
        Statistician 32 (1983) 12-22.
        E. B. Wilson, Probable inference, the law of succession, and statistical inference,
        Journal of the American Statistical Association 22 (1927) 209-212.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame(
        ...     {"gold": [True, False, False, True], "score": [0.8, 0.3, 0.3, 0.6]}
        ... )
        >>> log.mcc(score="score").calibration(bins=2).select("bin", "n", "score_mean", "rate")
        shape: (2, 4)
        ┌─────┬─────┬────────────┬──────┐
        │ bin ┆ n   ┆ score_mean ┆ rate │
        │ --- ┆ --- ┆ ---        ┆ ---  │
        │ i64 ┆ i64 ┆ f64        ┆ f64  │
        ╞═════╪═════╪════════════╪══════╡
        │ 1   ┆ 2   ┆ 0.3        ┆ 0.0  │
        │ 2   ┆ 2   ┆ 0.7        ┆ 1.0  │
        └─────┴─────┴────────────┴──────┘

    Command line:
        polars-mcc calibration logs/ --score probability --positive fraud --by country --bins 5
    """
    check_at_least("bins", bins, 1)
    check_level(ci)
    log.roles.check_without("calibration", "a score has two classes", "nulls")
    numbers = ["n", *([] if log.roles.cluster is None else ["n_clusters"])]
    columns = ["bin", "score_min", "score_max", *numbers]
    columns += ["score_mean", "rate", "rate_low", "rate_high", "n_null"]
    sliced = cut(sides_of(log, "score"), keys, taken=columns, clusters=True)

    def infer(cells: pl.DataFrame) -> pl.DataFrame:
        from polars_mcc._intervals.class_and_calibration_intervals import rates_of_bins  # noqa: PLC0415 - NumPy

        scored = without_clusters(sliced, cells.lazy())
        slices = measure(sliced, classes_of_pairs(sliced, scored), [], positive=pl.col("label"))
        table = sliced.beside(
            slices.drop("n"), rates_of_bins(sliced, scored, cells, bins, ci).lazy()
        )
        answer = table.with_columns(
            pl.col(numbers).fill_null(0),  # A slice without scored rows has no bin.
            bin=sliced.within_slice(pl.col("bin").rank("dense")).cast(pl.Int64),
        ).with_columns(n=sliced.numbers.as_count(pl.col("n")))
        return answer.select(*sliced.slice, *columns, *sliced.unscored[1:]).collect()

    answer = inferred(log, sliced, pairs(sliced), infer)
    return log.in_kind(sliced.answer(answer, "bin"))

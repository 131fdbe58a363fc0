"""The variance of a score → its interval.

A score with a range, such as 0 to 1, is treated as a proportion of m rows. m is such that the
proportion has the variance of the score. The interval of the score is then Wilson's interval (1927)
of the proportion. For a score that is a proportion, such as recall, these are the rows that could
have been wrong, and the interval is Wilson's to the last digit.

m comes from the smoothed tables (see `tables`), because the observed table takes a rate of 0 or 1
as known exactly. Each table smooths the rates on one side. So m is the smallest that they give.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.influences import Influences
from polars_mcc._inference.options import IntervalOptions
from polars_mcc._inference.quantiles import critical
from polars_mcc._inference.tables import METRIC, OBSERVED, TABLE, by_metric
from polars_mcc._inference.variance import NOTHING, over_draws, with_influence
from polars_mcc._log.choices import Method

_MOST = 1e12  # rows of a proportion per row of the slice; more than any share of a class allows

# `score` is the exact metric. `value` is the same metric of one table, in floats.
_SCORE, _VALUE, _LEAST, _LARGEST = map(pl.col, ("score", "value", "least", "largest"))
_VARIANCE, _PHI_PHI, _DRAWS, _Z = map(pl.col, ("variance", "phi_phi", "draws", "z"))
_SPAN, _PROPORTION, _SE, _ROWS = map(pl.col, ("span", "proportion", "se", "rows"))


def limits_of_slices(
    log: SlicedLog,
    cells: pl.LazyFrame,
    measured: pl.LazyFrame,
    found: Influences,
    options: IntervalOptions,
) -> pl.LazyFrame:
    """The limits and the standard error of each score, a row per slice."""
    each = by_metric(log)
    rows = with_influence(log, cells, found.observed) if log.has_clusters else found.observed
    variances = over_draws(each, rows, variance=("phi", "phi")).with_columns(
        variance=pl.col("variance") / pl.col("n") / pl.col("n")
    )
    names = [metric.name for metric in options.sure]
    scores = pl.concat(
        measured.select(*log.slice, pl.lit(name).alias(METRIC), score=pl.col(name).cast(pl.Float64))
        for name in names
    )
    known = each.beside(each.beside(scores, of_tables(each, found.tables)), variances)
    return in_columns(log, limits(each, known, options.ci, options.method), names)


def limits(log: SlicedLog, scores: pl.LazyFrame, ci: float, method: Method) -> pl.LazyFrame:
    """Add the standard error of each score, `se`, and its interval from `low` to `high`.

    `scores` has the columns that `of_tables` gives, the `score`, its `variance`, the `draws`, and
    `n_clusters` if the log has clusters.
    """
    known = _with_rows(log, scores.with_columns(z=critical(ci, log)))
    placed = _with_ends(known, method)
    error = _SE if method != "score" else (pl.col("most") / _ROWS).sqrt()
    has_proportion = _PROPORTION.is_not_null()
    found = placed.with_columns(
        low=pl.when(has_proportion)
        .then(_LEAST + _SPAN * pl.col("low"))
        .otherwise(_SCORE - _Z * error),
        high=pl.when(has_proportion)
        .then(_LEAST + _SPAN * pl.col("high"))
        .otherwise(_SCORE + _Z * error),
    )
    are_finite = pl.col("low").is_finite() & pl.col("high").is_finite() & pl.col("has_score")
    return found.with_columns(pl.when(are_finite).then(pl.col("low", "high")))


def of_tables(log: SlicedLog, tables: pl.LazyFrame) -> pl.LazyFrame:
    """The observed table of each slice, with what its smoothed tables tell.

    `worth` is the smallest m per row of the slice, and `most` the largest mean of φ².
    """
    is_observed = pl.col(TABLE) == OBSERVED
    observed = {
        name: pl.col(name).filter(is_observed).max()
        for name in ("value", "least", "largest", "phi_phi")
    }
    is_smoothed = pl.col("is_smoothed")
    return log.per_slice(
        tables,
        **observed,
        worth=_worth().filter(is_smoothed).min(),
        most=_PHI_PHI.filter(is_smoothed).max(),
    )


def in_columns(log: SlicedLog, limits: pl.LazyFrame, metrics: Iterable[str]) -> pl.LazyFrame:
    """The limits and the standard errors of all metrics of a slice in one row."""
    n_clusters = {"n_clusters": pl.col("n_clusters").max()} if log.has_clusters else {}
    return log.per_slice(
        limits,
        **n_clusters,
        **{
            f"{name}_{part}": pl.col(part).filter(pl.col(METRIC) == name).max()
            for name in metrics
            for part in ("low", "high", "se")
        },
    )


def _worth() -> pl.Expr:
    """The rows m of a proportion with the variance of the score, per row of the slice."""
    proportion, squared = (_VALUE - _LEAST) / (_LARGEST - _LEAST), _PHI_PHI
    squared = squared / (_LARGEST - _LEAST).pow(2)
    # Kappa of one gold class is moved by no row. Then φ is only a rounding error.
    rows = proportion * (1 - proportion) / squared
    is_real = (proportion > 0) & (proportion < 1) & (squared > NOTHING) & (rows < _MOST)
    # A rate of a class that the slice does not have is a proportion of all rows.
    is_alone = ((proportion == 0) | (proportion == 1)) & (squared <= NOTHING)
    return pl.when(is_real).then(rows).when(is_alone).then(pl.lit(1.0))


def _with_rows(log: SlicedLog, scores: pl.LazyFrame) -> pl.LazyFrame:
    """Add the `proportion` of a score in its range of width `span`, its `se`, and how many `rows`.

    `rows` are the independent rows of equal weight that would have this variance: without weights
    and clusters, n. If the rows seem not to vary, they are the rows that there are.
    """
    has_score = _VALUE.is_not_null() & _SCORE.is_finite() & _Z.is_not_null()
    span = pl.coalesce(_LARGEST - _LEAST, _SCORE.abs())
    is_inside = pl.col("has_score") & (_SPAN > 0) & _SCORE.is_between(_LEAST, _LARGEST)
    rows = _effective(log, pl.when("varies").then(_PHI_PHI / _VARIANCE).otherwise(_DRAWS))
    return (
        scores.with_columns(has_score=has_score, span=span)
        .with_columns(
            varies=pl.col("has_score") & _varies(),
            proportion=pl.when(is_inside).then((_SCORE - _LEAST) / _SPAN),
        )
        .with_columns(se=pl.when(pl.col("varies") & _VARIANCE.is_finite()).then(_VARIANCE.sqrt()))
        .with_columns(rows=rows)
        .with_columns(rows=pl.when(_ROWS.is_finite() & (_ROWS > 0)).then(_ROWS))
    )


def _varies() -> pl.Expr:
    """Whether rows move the score by more than rounding does."""
    is_moved = NOTHING * _SPAN.pow(2) < _PHI_PHI
    is_known = (_VARIANCE > 0) & _DRAWS.is_finite() & (_VARIANCE * _DRAWS > NOTHING * _PHI_PHI)
    # At an end, each row could only move the score away from it, and their mean moves it nowhere.
    # So every φ is 0, but the φ of a square root, as of Cramér's V, may be infinite.
    is_end = ((_SCORE == _LEAST) | (_SCORE == _LARGEST)).fill_null(value=False)
    return is_moved & is_known & ~is_end


def _effective(log: SlicedLog, rows: pl.Expr) -> pl.Expr:
    """How many independent rows of equal weight would be as good.

    Few clusters, and few rows with large weights, hide how much they vary. So G clusters count as
    G - 1, and rows count by their weights w too: (Σ w)² / Σ w².
    """
    if log.has_clusters:
        return rows * (1 - 1 / pl.col("n_clusters"))
    return rows if log.is_frequency else rows.clip(None, _DRAWS)


def _with_ends(scores: pl.LazyFrame, method: Method) -> pl.LazyFrame:
    """Add the proportions of both limits in the range, `low` and `high`."""
    if method == "wald":
        reach = _Z * _SE / _SPAN
        return scores.with_columns(low=_PROPORTION - reach, high=_PROPORTION + reach)
    if method == "fisher":
        middle, reach = (
            (2 * _PROPORTION - 1).arctanh(),
            _Z * _SE / (2 * _SPAN * _PROPORTION * (1 - _PROPORTION)),
        )
        ends = ((end.tanh() + 1) / 2 for end in (middle - reach, middle + reach))
        return scores.with_columns(**dict(zip(("low", "high"), ends, strict=True)))
    z2 = pl.col("z2")  # Wilson's interval
    middle, reach = (
        _PROPORTION + z2 / 2,
        (z2 * _PROPORTION * (1 - _PROPORTION) + z2.pow(2) / 4).sqrt(),
    )
    return scores.with_columns(z2=_Z.pow(2) / (_ROWS * pl.col("worth"))).with_columns(
        # At an end exactly: the formula gives 1 - 4·10⁻¹⁶.
        low=pl.when(_PROPORTION == 0).then(_PROPORTION).otherwise((middle - reach) / (1 + z2)),
        high=pl.when(_PROPORTION == 1).then(_PROPORTION).otherwise((middle + reach) / (1 + z2)),
    )

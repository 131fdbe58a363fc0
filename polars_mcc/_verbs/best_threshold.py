"""`best_threshold`: where to cut a score, in each slice and in all."""

from __future__ import annotations

from collections.abc import Sequence

from polars_mcc._log import defaults
from polars_mcc._log.described import Described
from polars_mcc._log.frames import FrameT
from polars_mcc._log.keys import IntoKey
from polars_mcc._scores import registry
from polars_mcc._scores.registry import IntoMetric
from polars_mcc._scores.thresholds import best_columns, check_of_counts
from polars_mcc._verbs.curve import thresholds_of


def best_threshold(
    log: Described[FrameT],
    *keys: IntoKey,
    metric: IntoMetric = defaults.METRIC,
    thresholds: int | Sequence[float] | None = None,
) -> FrameT:
    """Find the threshold with the best score: of each slice, and one for all.

    Args:
        *keys: What makes slices, as in `by`; but no windows.
        metric: What is to be best: a name of `metrics()` that is of two classes; the least, if
            less of it is better.
        thresholds: Where scores are cut. An integer: at most so many thresholds, at the quantiles
            of the scores of all rows, the same for all slices. A list: these thresholds. None:
            every distinct score of the slice.

    Returns:
        A frame of the kind of the log, sorted by the keys, a row per slice, with the keys,
        `model` if there are several scores, and

        - `n`: the rows scored;
        - `threshold`, `mcc` (called by the metric): the best threshold of the slice, the largest
          if several are, and the score there; null if the slice has only one gold class;
        - `shared_threshold`: the best threshold of all rows taken together;
        - `mcc_shared`: the score of the slice there, and `loss`: how much worse it is;
        - `n_null`: the rows not scored.

    The best of many thresholds looks better than it is on rows that it was not chosen on: choose
    on one part of a log, and score on another.

    Errors of `curve` are raised.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> tumours = pl.read_parquet("data/breast_cancer.parquet")
        >>> tumours.mcc(score="radius").best_threshold("fold").drop("n", "n_null").head(2)
        shape: (2, 6)
        ┌──────┬───────────┬──────────┬──────────────────┬────────────┬──────────┐
        │ fold ┆ threshold ┆ mcc      ┆ shared_threshold ┆ mcc_shared ┆ loss     │
        │ ---  ┆ ---       ┆ ---      ┆ ---              ┆ ---        ┆ ---      │
        │ i8   ┆ f64       ┆ f64      ┆ f64              ┆ f64        ┆ f64      │
        ╞══════╪═══════════╪══════════╪══════════════════╪════════════╪══════════╡
        │ 0    ┆ 15.06     ┆ 0.737584 ┆ 15.05            ┆ 0.737584   ┆ 0.0      │
        │ 1    ┆ 15.46     ┆ 0.795099 ┆ 15.05            ┆ 0.774777   ┆ 0.020322 │
        └──────┴───────────┴──────────┴──────────────────┴────────────┴──────────┘

    Command line:
        polars-mcc best-threshold logs/ --score probability --by country
    """
    chosen = registry.one(metric)
    check_of_counts([chosen])
    cuts = thresholds_of(log, "best_threshold", keys, best_columns(chosen), thresholds)
    return log.in_kind(cuts.log.answer(cuts.best(chosen)))

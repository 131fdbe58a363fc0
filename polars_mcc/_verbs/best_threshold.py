"""`best_threshold`: the best threshold of each slice, and the best for all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polars_mcc._base import defaults
from polars_mcc._base.cuts_of_numbers import Number
from polars_mcc._base.message_parts import option, said
from polars_mcc._comparisons.required_scores import required
from polars_mcc._frame.frames import FrameT
from polars_mcc._frame.log_options import Described
from polars_mcc._keys.any_key import IntoKey
from polars_mcc._metrics import registry
from polars_mcc._metrics.registry import IntoMetric
from polars_mcc._metrics.thresholds import best_columns, check_of_counts
from polars_mcc._verbs.curve import thresholds_of


def best_threshold(
    log: Described[FrameT],
    *keys: IntoKey,
    metric: IntoMetric = defaults.METRIC,
    min: Mapping[str, float] | None = None,  # noqa: A002 - as a user says it
    max: Mapping[str, float] | None = None,  # noqa: A002 - likewise
    thresholds: int | Sequence[Number] | None = None,
) -> FrameT:
    """Find the threshold with the best MCC (or another metric), per slice and for all rows.

    Args:
        *keys: The keys to group by, as in `by`, but no windows.
        metric: The metric to optimize: a name of `metrics()` that needs only the counts of two
            classes. It is minimized if less of it is better.
        min: Metrics that must not be lower, as in `min={"ppv": 0.9}`: the best threshold is taken
            of those that keep them. 0/0 counts as 0.
        max: Metrics that must not be higher, as in `max={"fpr": 0.05}`.
        thresholds: The thresholds to try. One integer: at most this many, at the quantiles of the
            scores of all rows, the same for all slices, and one above all scores. Several numbers:
            these. None: every distinct score of the slice, and one above all scores.

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, sorted by the keys, with one row per slice,
        the keys, `model` if there are several scores, and

        - `n`: the rows scored;
        - `threshold`: the best threshold of the slice, the largest if several are best, with the
          dtype that it has in `curve`. It is above all scores if it is best to predict no row
          positive: infinity for floats. And `mcc` (with the name of the metric), its score. 0/0
          counts as 0, whatever the `zero_division` of the log is. Null if the slice lacks the gold
          rows that a metric needs, as MCC needs two classes, or if no threshold keeps `min` and
          `max`;
        - `shared_threshold`: the best threshold of all rows together, which keep `min` and `max`
          together: a slice may miss them there;
        - `mcc_shared`: the score of the slice at the shared threshold; `loss`: how much worse this
          is than the best, and 0 if it is better, as it may be where the slice misses `min` or
          `max`;
        - `n_null`: the rows not scored.

    The best of many thresholds scores better on the rows that chose it than on new rows. Choose the
    threshold on one part of the log, and score it on another part.

    Raises:
        ValueError: `min` or `max` is no mapping, or a bound is outside the range of its metric.

    The errors of `curve` are raised too.

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
    labels = log.roles.label_dtype
    chosen = registry.find_metric(metric, labels)
    for name, bound in (("min", min), ("max", max)):
        if not (bound is None or isinstance(bound, Mapping)):
            msg = said(name, " says which metric to keep, as in ", option(name, {"ppv": 0.9}))
            raise ValueError(msg)
    rules = [*required(metric, "min", min, labels), *required(metric, "max", max, labels)]
    for rule in rules:
        if rule.metric.name == chosen.name and rule.metric.formula != chosen.formula:
            msg = f"two metrics are named '{chosen.name}': rename one of them, as in .alias('mine')"
            raise ValueError(msg)
    check_of_counts([chosen, *(rule.metric for rule in rules)])
    cuts = thresholds_of(log, "best_threshold", keys, best_columns(chosen), thresholds)
    kept = [(rule.metric, ~rule.misses()) for rule in rules]
    return log.in_kind(cuts.log.answer(cuts.best(chosen, kept)))

"""Commands that score slices, classes and thresholds, and the list of metrics."""

from __future__ import annotations

from typing import Any

from polars_mcc._base import allowed_values, defaults
from polars_mcc._cli import outputs, shared_options
from polars_mcc._cli.app_and_answers import app, command, errors_as_lines, run_verb
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._frame.labels import known_labels
from polars_mcc._inputs.log_from_files import LogOptions, TypedLog, typed_label
from polars_mcc._inputs.read_files import find_logs
from polars_mcc._metrics import registry
from polars_mcc.prediction_log import PredictionLog


@command
def by(
    *logs: shared_options.LogPaths,
    sliced: shared_options.LogAndKeys = shared_options.LogAndKeys(),
    scores: shared_options.ScoreOptions = shared_options.ScoreOptions(),
    long: bool = False,
    output: shared_options.OutputOptions = shared_options.OutputOptions(),
) -> None:
    """Score every slice with MCC (R_K) or other metrics, with optional confidence intervals.

    For example:

    `polars-mcc by logs/ --by country --by device --ci 0.95 --filter "day > DATE '2026-03-01'"`

    Args:
        long: Name the slice in words, in the column `slice`, such as "country = DE and device =
            pc", and its keys in `keys`, instead of one column per key.
    """
    run_verb(PredictionLog.by, sliced.read(logs), output, **vars(scores), long=long)


@command
def score(
    *logs: shared_options.LogPaths,
    scores: shared_options.ScoreOptions = shared_options.ScoreOptions(),
    of_log: shared_options.OfLog = LogOptions(),
    output: shared_options.OutputOptions = shared_options.OutputOptions(),
) -> None:
    """Score the whole log as one slice: `polars-mcc by` without keys.

    For example:

    `polars-mcc score logs/ --metric mcc --metric f1_macro --format json`
    """
    run_verb(PredictionLog.score, TypedLog(find_logs(logs), of_log), output, **vars(scores))


@command
def classes(
    *logs: shared_options.LogPaths,
    sliced: shared_options.LogAndKeys = shared_options.LogAndKeys(),
    intervals: shared_options.TypedIntervals = shared_options.TypedIntervals(),
    output: shared_options.OutputOptions = shared_options.OutputOptions(),
) -> None:
    """Score every class of every slice, one-vs-rest: precision, recall, F1, MCC and more.

    For example:

    `polars-mcc classes logs/ --by country --ci 0.95 --format csv`
    """
    run_verb(PredictionLog.classes, sliced.read(logs), output, **vars(intervals))


@command
def confusion(
    *logs: shared_options.LogPaths,
    sliced: shared_options.LogAndKeys = shared_options.LogAndKeys(),
    labels: list[str] | None = None,
    normalize: allowed_values.Normalize | None = None,
    long: bool = False,
    top: int | None = None,
    output: shared_options.OutputOptions = shared_options.OutputOptions(),
) -> None:
    """Show the confusion matrix of each slice, or list the confusions that cost the most score.

    For example:

    `polars-mcc confusion logs/ --by country --top 5`

    Args:
        labels: The labels, in the order of the rows and columns. Every label that occurs must be
            listed; more labels may be. Without it: the labels of a Boolean or Enum column, else
            the labels that occur, sorted. Repeat --labels for several.
        normalize: Shares instead of counts. "gold": each row of the matrix adds up to 1; "pred":
            each column does; "all": the matrix of the slice does. A share of zero rows is 0.
        long: One row per cell instead of one column per label: all cells of --labels, if they are
            listed, else the pairs that occur.
        top: List only the confusions (gold and pred differ) that cost the most score, at most this
            many per slice, the costliest first, one per row.
    """
    log = sliced.read(logs)
    if labels is not None:
        known: list[object] | None = [typed_label(log.log, "--labels", text) for text in labels]
    elif long or top is not None or known_labels(log.log.roles.label_dtype) is not None:
        known = None
    else:  # The matrix has a column per label.
        of_rows = log.log.with_frame
        distinct = log.collect(
            "", lambda rows: cut(sides_of(of_rows(rows)), log.keys, taken=()).distinct_labels()
        )
        known = distinct.to_series().to_list()
    asked: dict[str, Any] = {"normalize": normalize, "long": long, "top": top}
    run_verb(PredictionLog.confusion, log, output, labels=known, **asked)


@command
def curve(
    *logs: shared_options.LogPaths,
    sliced: shared_options.LogAndKeys = shared_options.LogAndKeys(),
    metrics: shared_options.MetricNames = [*defaults.CURVE_METRICS],
    thresholds: shared_options.ThresholdOptions = shared_options.ThresholdOptions(),
    output: shared_options.OutputOptions = shared_options.OutputOptions(),
) -> None:
    """Compute MCC, F1 and other metrics at every threshold of a model score, per slice.

    For example:

    `polars-mcc curve logs/ --score probability --by country --thresholds 100`

    Args:
        metrics: The metrics at each threshold: names of `polars-mcc metrics` that need only the
            counts of two classes, not each class or pair. Repeat --metric for several.
    """
    asked: dict[str, Any] = {"metrics": metrics, "thresholds": thresholds.asked}
    run_verb(PredictionLog.curve, sliced.read(logs), output, **asked)


@command
def best_threshold(
    *logs: shared_options.LogPaths,
    sliced: shared_options.LogAndKeys = shared_options.LogAndKeys(),
    metric: str = defaults.METRIC,
    min: list[str] | None = None,  # noqa: A002 - the name of the option
    max: list[str] | None = None,  # noqa: A002 - likewise
    thresholds: shared_options.ThresholdOptions = shared_options.ThresholdOptions(),
    output: shared_options.OutputOptions = shared_options.OutputOptions(),
) -> None:
    """Find the threshold with the best MCC (or another metric), per slice and for all rows.

    For example:

    `polars-mcc best-threshold logs/ --score probability --by country`

    Args:
        metric: The metric to optimize: a name of `polars-mcc metrics` that needs only the counts of
            two classes. It is minimized if less of it is better.
        min: A metric that must not be lower, such as ppv=0.9: the best threshold is taken of those
            that keep it. Repeat --min for several.
        max: A metric that must not be higher, such as fpr=0.05. Repeat --max for several.
    """
    asked: dict[str, Any] = {"metric": metric, "thresholds": thresholds.asked}
    asked |= {
        "min": shared_options.thresholds_by_metric("--min", min),
        "max": shared_options.thresholds_by_metric("--max", max),
    }
    run_verb(PredictionLog.best_threshold, sliced.read(logs), output, **asked)


@command
def calibration(
    *logs: shared_options.LogPaths,
    sliced: shared_options.LogAndKeys = shared_options.LogAndKeys(),
    bins: int = defaults.BINS,
    ci: float = defaults.LEVEL,
    output: shared_options.OutputOptions = shared_options.OutputOptions(),
) -> None:
    """Compare scores with the rate of positive rows, in bins of each slice: the reliability table.

    For example:

    `polars-mcc calibration logs/ --score probability --positive fraud --by country --bins 5`

    Args:
        bins: The number of bins of a slice. The rows of a slice are sorted by score and cut into
            bins of equal size. Equal scores are in one bin, so there may be fewer bins.
        ci: The confidence level of the interval of each rate.
    """
    run_verb(PredictionLog.calibration, sliced.read(logs), output, bins=bins, ci=ci)


@app.command
def metrics() -> None:
    """List the metrics that `--metric` accepts.

    Metrics with "positive" in the column "from" score one class against the rest (see --positive).
    """
    with errors_as_lines((), None):
        outputs.show(
            outputs.terminal_table(registry.metrics().select("metric", "from", "range", "formula"))
        )

"""Commands that score slices, classes and thresholds, and that compare models, slices, periods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
from cyclopts import Parameter

from polars_mcc._base import allowed_values, defaults
from polars_mcc._base.visible_text import say
from polars_mcc._cli import outputs, shared_options
from polars_mcc._cli.app_and_answers import app, command, errors_as_lines, run_verb
from polars_mcc._comparisons.columns_of_answers import CHANGED, VERDICT
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._frame.labels import known_labels
from polars_mcc._inputs import read_files
from polars_mcc._inputs.find_files import naming_files
from polars_mcc._inputs.log_from_files import LogOptions, TypedLog, or_none, typed_label
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
    log = TypedLog(read_files.find_logs(logs), of_log)
    run_verb(PredictionLog.score, log, output, **vars(scores))


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
            counts of two classes, not each class or pair. Repeat --metric for several, or write
            --metric a,b.
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
            that keep it. The answer has its values, and a verdict. Repeat --min for several.
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
    bins: int | Literal["none"] = defaults.BINS,
    ci: float = defaults.LEVEL,
    output: shared_options.OutputOptions = shared_options.OutputOptions(),
) -> None:
    """Compare scores with the rate of positive rows, in bins of each slice: the reliability table.

    For example:

    `polars-mcc calibration logs/ --score probability --positive fraud --by country --bins 5`

    Args:
        bins: The number of bins of a slice. The rows of a slice are sorted by score and cut into
            bins of equal size. Equal scores are in one bin, so there may be fewer bins. none: a bin
            per score, of any numbers, such as deciles from 1 to 10.
        ci: The confidence level of the interval of each rate.
    """
    run_verb(PredictionLog.calibration, sliced.read(logs), output, bins=or_none(bins), ci=ci)


@command
def compare(
    *logs: shared_options.LogPaths,
    sliced: shared_options.LogAndKeys = shared_options.LogAndKeys(),
    baseline: str | None = None,
    differences: shared_options.DifferenceOptions = shared_options.DifferenceOptions(),
    output: shared_options.OutputOptions = shared_options.OutputOptions(),
) -> None:
    """Compare models with a baseline model on the same rows, in each slice.

    For example:

    `polars-mcc compare logs/ --pred old --pred new --by country`

    Args:
        baseline: The baseline, model a: one of the models of the log, or another column. Without
            it: the first model of the log.
    """
    log = sliced.read(logs, baseline=baseline)
    run_verb(PredictionLog.compare, log, output, **log.columns, **vars(differences))


@command
def contrast(
    *logs: shared_options.LogPaths,
    sliced: shared_options.LogAndColumns = shared_options.LogAndColumns(),
    to: shared_options.ReferenceWords = [defaults.TO],
    within: list[str] | None = None,
    ratio: bool = False,
    differences: shared_options.DifferenceOptions = shared_options.DifferenceOptions(),
    output: shared_options.OutputOptions = shared_options.OutputOptions(),
) -> None:
    """Compare each slice with the rest of the log, the total, the best slice, or a given slice.

    For example:

    `polars-mcc contrast logs/ --by country --to country=US --within device --metric f1_macro`

    Args:
        to: The reference of each slice. "rest": all rows outside the slice. "total": all rows,
            those of the slice included. "expected": what the slice would score given its labels,
            which is `expected`; so it errs more than its mix of gold labels explains if it
            scores less. "best": the best slice that can be compared. "each": every other slice,
            each pair once. Or the keys of one slice, as `--to country=US`. Repeat --to for several
            keys.
        within: Compare slices only within each value of these columns, such as countries within
            each device. The rest, the total and the best slice are then of the same device. Repeat
            --within for several.
        ratio: Compare by the ratio of both scores instead of the difference. It is 0 if the score
            of the slice is 0, and infinite if the score of the reference is; null if both are.
    """
    log = sliced.read(logs, within=within)
    options = {"to": shared_options.word_or_slice("--to", to), **log.columns, **vars(differences)}
    run_verb(PredictionLog.contrast, log, output, ratio=ratio, **options)


@command
def gaps(
    *logs: shared_options.LogPaths,
    sliced: shared_options.LogAndKeys = shared_options.LogAndKeys(),
    metrics: shared_options.MetricNames = [defaults.METRICS],
    within: list[str] | None = None,
    min_n: int = defaults.MIN_N,
    ci: float = defaults.LEVEL,
    correction: allowed_values.Correction = defaults.CORRECTION,
    output: shared_options.OutputOptions = shared_options.OutputOptions(),
) -> None:
    """Measure how far the lowest and the highest slice are apart, and whether it is chance.

    For example:

    `polars-mcc gaps logs/ --by sex --metric tpr --metric fpr --positive yes --within country`

    Args:
        metrics: One metric or several, all of labels or all of scores: names of `polars-mcc
            metrics`. Repeat --metric for several, or write --metric a,b.
        within: Compare slices only within each value of these columns, such as countries within
            each device. Repeat --within for several.
        min_n: The least number of rows of a slice. Smaller slices are left out: below 30 rows, the
            p-value is too small too often. A score must be of half as many: "tpr" is of rows with
            the positive label. With sample weights w, the rows are (Σ w)² / Σ w².
        ci: The confidence level of the interval of the gap.
        correction: The correction of p-values for the number of tests in the answer: "bh", "by",
            "holm" or "bonferroni", as in `compare`.
    """
    log = sliced.read(logs, within=within)
    options: dict[str, Any] = {"min_n": min_n, "ci": ci, "correction": correction}
    run_verb(PredictionLog.gaps, log, output, metrics=metrics, **log.columns, **options)


@command
def drift(
    *logs: shared_options.LogPaths,
    sliced: shared_options.LogAndKeys = shared_options.LogAndKeys(),
    before: str,
    after: str,
    differences: shared_options.DifferenceOptions = shared_options.DifferenceOptions(),
    output: shared_options.OutputOptions = shared_options.OutputOptions(),
) -> None:
    """Measure how the score of each slice changed between two periods, with an interval.

    For example:

    `polars-mcc drift logs/ --before "day < DATE '2026-03-15'" --after "day >= DATE '2026-03-15'"`

    Args:
        before: A Boolean column that marks the rows of the first period, such as `day < DATE
            '2026-03-15'`.
        after: A Boolean column that marks the rows of the second period.
    """
    log = sliced.read(logs, before=before, after=after)
    run_verb(PredictionLog.drift, log, output, **log.columns, **vars(differences))


@Parameter(name="*")
@dataclass(frozen=True)
class ChangeOptions:
    """Options of a search for changes.

    Attributes:
        every: The length of a period, such as "1d", "1w" or "6h". Days are those of the zone of the
            time; weeks begin on Mondays. none: each value of the time is a period of its own.
        metric: The metric to compare: a name of `polars-mcc metrics`, of labels, with an interval.
        ci: The confidence level of the limits. 1 - ci is the level of the test.
        false_alarms: How long healthy slices are without a false alarm, on average, if the command
            runs once in each period, such as "1y": instead of --ci, which is then 1 minus --every
            divided by it. It allows for all slices of the answer, and needs a correction by "holm"
            or "bonferroni".
        correction: The correction of p-values for the number of slices: "bh", "by", "holm" or
            "bonferroni", as in `compare`.
        alternative: Whether to find slices that became "worse", "better", or either, "two-sided".
            Only the last tells that a score fell, and recovered.
        to: What the rows after are compared with. "expected": with what they would score given
            their labels, at the rates of all rows of the slice; the rows before likewise. "rest":
            with the score of the rows before. Then a change of the mix of labels counts too.
        lookback: Only look at the last periods, such as "90d" before the end of the newest, or
            before now if that is earlier.
        known: Changes that somebody has seen: a file with rows of an earlier answer, with the keys
            and `since` (Parquet, CSV, NDJSON, JSON or IPC; it may be without rows). Of these
            slices, only rows from `since` on are looked at, so that they are not found again. Rows
            whose `verdict` is neither "worse" nor "better" are left out.
        min_n: The least number of rows before and after. With weights, the least sum.
        max_changes: The largest number of changes of a slice. If a change is sure, the rows before
            it and the rows after it are looked at in the same way.
    """

    every: str = "1d"
    metric: str = defaults.METRIC
    ci: float = defaults.LEVEL
    false_alarms: str | None = None
    correction: allowed_values.Correction = defaults.CHECK_CORRECTION
    alternative: allowed_values.Alternative = "worse"
    to: allowed_values.Reference = "expected"
    lookback: str | None = None
    known: str | None = None
    min_n: int = defaults.MIN_N
    max_changes: int = defaults.MAX_CHANGES


@command
def changes(
    *logs: shared_options.LogPaths,
    sliced: shared_options.LogAndKeys = shared_options.LogAndKeys(),
    asked: ChangeOptions = ChangeOptions(),
    output: shared_options.OutputOptions = shared_options.OutputOptions(),
) -> None:
    """Find since when each slice is worse, and whether that is chance.

    --time names the time of a row. With --false-alarms, the exit code is 1 if a slice changed,
    or if none can be judged. A slice that changed only with the rows of a surer one is "part of"
    it, and no alarm.

    For example:

    `polars-mcc changes logs/ --by country --time ts --false-alarms 1y`
    """
    log, known, min_n = sliced.read(logs), asked.known, asked.min_n
    options = vars(asked) | {"every": or_none(asked.every)}
    options["known"] = known and _seen_changes(known)
    with naming_files([known or ""], "known has"):
        found = run_verb(PredictionLog.changes, log, output, reads=[known], **options)
    if asked.false_alarms is None:
        return
    if is_unjudged := (found[VERDICT] == "not judged").all():
        needs = f"{min_n} rows before and {min_n} after some period, and two labels"
        say(f"there is no slice to judge: it needs {needs}; --filter and --min-age leave rows out")
    if is_unjudged or found[VERDICT].is_in(CHANGED).any():
        raise SystemExit(1)


def _seen_changes(path: str) -> pl.LazyFrame:
    """The changes of a file."""
    try:
        return read_files.scan_answer(path)
    except FileNotFoundError:
        msg = f"'{path}': no file for --known: begin one with a line of the keys and 'since'"
        raise FileNotFoundError(msg) from None


@app.command
def metrics() -> None:
    """List the metrics that `--metric` accepts.

    Metrics with "positive" in the column "from" score one class against the rest (see --positive).
    """
    with errors_as_lines((), None):
        outputs.show(
            outputs.terminal_table(registry.metrics().select("metric", "from", "range", "formula"))
        )

"""Commands that compare models, slices and periods."""

from __future__ import annotations

from typing import Any

from polars_mcc._base import allowed_values, defaults
from polars_mcc._cli.answers_and_exit_codes import run_verb
from polars_mcc._cli.app import command
from polars_mcc._cli.shared_options import (
    DifferenceOptions,
    LogAndColumns,
    LogAndKeys,
    LogPaths,
    MetricNames,
    OutputOptions,
    ReferenceWords,
    word_or_slice,
)
from polars_mcc.prediction_log import PredictionLog


@command
def compare(
    *logs: LogPaths,
    sliced: LogAndKeys = LogAndKeys(),
    baseline: str | None = None,
    differences: DifferenceOptions = DifferenceOptions(),
    output: OutputOptions = OutputOptions(),
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
    *logs: LogPaths,
    sliced: LogAndColumns = LogAndColumns(),
    to: ReferenceWords = [defaults.TO],
    within: list[str] | None = None,
    ratio: bool = False,
    differences: DifferenceOptions = DifferenceOptions(),
    output: OutputOptions = OutputOptions(),
) -> None:
    """Compare each slice with the rest of the log, the total, the best slice, or a given slice.

    For example:

    `polars-mcc contrast logs/ --by country --to country=US --within device --metric f1_macro`

    Args:
        to: The reference of each slice. "rest": all rows outside the slice. "total": all rows,
            those of the slice included. "expected": what the slice would score given its labels,
            which is `mcc_expected`; so it errs more than its mix of gold labels explains if it
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
    options = {"to": word_or_slice("--to", to), **log.columns, **vars(differences)}
    run_verb(PredictionLog.contrast, log, output, ratio=ratio, **options)


@command
def gaps(
    *logs: LogPaths,
    sliced: LogAndKeys = LogAndKeys(),
    metrics: MetricNames = [defaults.METRICS],
    within: list[str] | None = None,
    min_n: int = defaults.CHECKED_N,
    ci: float = defaults.LEVEL,
    correction: allowed_values.Correction = defaults.CORRECTION,
    output: OutputOptions = OutputOptions(),
) -> None:
    """Measure how far the lowest and the highest slice are apart, and whether it is chance.

    For example:

    `polars-mcc gaps logs/ --by sex --metric tpr --metric fpr --positive yes --within country`

    Args:
        metrics: One metric or several, all of labels or all of scores: names of `polars-mcc
            metrics`. Repeat --metric for several.
        within: Compare slices only within each value of these columns, such as countries within
            each device. Repeat --within for several.
        min_n: The least number of rows of a slice. Smaller slices are left out. With sample weights
            w, the rows are (Σ w)² / Σ w².
        ci: The confidence level of the interval of the gap.
        correction: The correction of p-values for the number of tests in the answer: "bh", "by",
            "holm" or "bonferroni", as in `compare`.
    """
    log = sliced.read(logs, within=within)
    options: dict[str, Any] = {"min_n": min_n, "ci": ci, "correction": correction}
    run_verb(PredictionLog.gaps, log, output, metrics=metrics, **log.columns, **options)


@command
def drift(
    *logs: LogPaths,
    sliced: LogAndKeys = LogAndKeys(),
    before: str,
    after: str,
    differences: DifferenceOptions = DifferenceOptions(),
    output: OutputOptions = OutputOptions(),
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

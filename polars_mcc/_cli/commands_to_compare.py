"""Commands that compare models, slices and periods."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_mcc._base import allowed_values, defaults
from polars_mcc._base.visible_text import say
from polars_mcc._cli import shared_options
from polars_mcc._cli.app_and_answers import command, run_verb
from polars_mcc._inputs import read_files
from polars_mcc._inputs.find_files import naming_files
from polars_mcc._inputs.log_from_files import or_none
from polars_mcc._verbs.changes import CHANGED, VERDICT
from polars_mcc.prediction_log import PredictionLog


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
    min_n: int = defaults.CONTRASTED_N,
    differences: shared_options.DifferenceOptions = shared_options.DifferenceOptions(),
    output: shared_options.OutputOptions = shared_options.OutputOptions(),
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
        min_n: The least number of rows, of a slice and of its reference, for a p-value: with fewer
            rows, it is too small too often. A score must be of half as many: "tpr" is of rows with
            the positive label. With sample weights w, the rows are (Σ w)² / Σ w².
    """
    log = sliced.read(logs, within=within)
    options = {"to": shared_options.word_or_slice("--to", to), **log.columns, **vars(differences)}
    run_verb(PredictionLog.contrast, log, output, ratio=ratio, min_n=min_n, **options)


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
            metrics`. Repeat --metric for several.
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


@command
def changes(
    *logs: shared_options.LogPaths,
    sliced: shared_options.LogAndKeys = shared_options.LogAndKeys(),
    every: str = "1d",
    metric: str = defaults.METRIC,
    ci: float = defaults.LEVEL,
    false_alarms: str | None = None,
    correction: allowed_values.Correction = defaults.CHECK_CORRECTION,
    alternative: allowed_values.Alternative = "worse",
    to: allowed_values.Reference = "expected",
    lookback: str | None = None,
    known: str | None = None,
    min_n: int = defaults.MIN_N,
    max_changes: int = defaults.MAX_CHANGES,
    output: shared_options.OutputOptions = shared_options.OutputOptions(),
) -> None:
    """Find since when each slice is worse, and whether that is chance.

    --time names the time of a row. With --false-alarms, the exit code is 1 if a slice changed,
    or if none can be judged.

    For example:

    `polars-mcc changes logs/ --by country --time ts --false-alarms 1y`

    Args:
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
    log = sliced.read(logs)
    options: dict[str, Any] = {
        "every": or_none(every),
        "metric": metric,
        "ci": ci,
        "false_alarms": false_alarms,
        "correction": correction,
        "alternative": alternative,
        "to": to,
        "lookback": lookback,
        "known": known and _seen_changes(known),
        "min_n": min_n,
        "max_changes": max_changes,
    }
    with naming_files([known or ""], "known has"):
        options |= log.columns
        found = run_verb(PredictionLog.changes, log, output, reads=[known], **options)
    if false_alarms is None:
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

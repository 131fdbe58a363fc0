"""Commands that compare models, slices and periods, and search for bad slices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cyclopts import Parameter

from polars_mcc._base import allowed_values, defaults
from polars_mcc._cli.answers_and_exit_codes import answer
from polars_mcc._cli.app import command
from polars_mcc._cli.shared_options import (
    DifferenceOptions,
    LogAndColumns,
    LogAndKeys,
    LogPaths,
    OutputOptions,
    ReferenceWords,
    reference,
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
    answer(PredictionLog.compare, log, output, **log.columns, **vars(differences))


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
        ratio: Compare by the ratio of both scores instead of the difference.
    """
    log = sliced.read(logs, within=within)
    asked = {"to": reference("--to", to), "ratio": ratio, **log.columns, **vars(differences)}
    answer(PredictionLog.contrast, log, output, **asked)


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
    answer(PredictionLog.drift, log, output, **log.columns, **vars(differences))


@Parameter(name="*")
@dataclass(frozen=True)
class SearchOptions:
    """Options of a search, and of the list that it returns.

    Attributes:
        metric: The metric that is compared: a name of `polars-mcc metrics`, where the column `from`
            is not "pairs". If less is better, as for "fnr", slices with a higher value are listed.
        to: What a slice is compared with. "rest": the score of all other rows. "expected": what the
            slice would score given its labels, which is `mcc_expected`. Then slices are listed
            that err more than their mix of gold labels explains.
        depth: The largest number of keys that are crossed. All slices are counted: at depth 2, ten
            keys of 20 values each make about 18,000 slices.
        min_n: The least number of rows, or sum of weights, of a slice. Smaller slices are not
            tested. With sample weights w, the rows are (Σ w)² / Σ w²: so many rows of equal weight
            would be as good.
        max_share: The largest share of the rows, or of the sum of weights, of a listed slice. If a
            larger slice is behind, its verdict is "most rows".
        bins: The number of bins. A numeric key with more than three times as many values is cut at
            round numbers near its quantiles. Its slices are the bins, all numbers up to a cut, and
            all numbers above a cut. Dates and times are cut by day, week or month, whichever gives
            few enough bins. Their slices are the bins, all times before a cut, and all times from
            a cut on. none: each number and each time is a value of its own.
        top: The largest number of rows of the answer, for all models together. Without it: all
            rows. A list has at most 100 slices: those with the most evidence.
        rank: The order of the list. "loss": by how much better the log would score without the
            slice. "gap": by how far the interval of the difference is from 0.
        ci: The confidence level of the intervals. It also limits false slices: on average they are
            at most 1 - ci of the list (see --correction). The p-values stay the same.
        correction: How false slices are limited: slices that are listed, but are not worse than
            the rest. "bh" (Focused Benjamini-Hochberg) keeps their expected share of the list
            below 1 - ci if tests are independent or positively dependent. "by" (Benjamini and
            Yekutieli) does so for any overlap of slices. "holm" and "bonferroni" limit the
            probability of a single false slice.
        verdicts: Return every slice that was tested: the listed slices first, then by verdict, the
            nearest to the list first. Columns that are known only for the listed slices, or for the
            nearest slice if none is listed, are null elsewhere: limits, confusions, parts, expected
            scores that are not compared, and with clusters some p-values.
        long: Leave out the columns of the keys: `slice` says their values.
    """

    metric: str = defaults.METRIC
    to: allowed_values.Reference = defaults.TO
    depth: int = defaults.DEPTH
    min_n: int = defaults.MIN_N
    max_share: float = defaults.MAX_SHARE
    bins: int | Literal["none"] = defaults.BINS
    top: int | None = None
    rank: allowed_values.Rank = defaults.RANK
    ci: float = defaults.LEVEL
    correction: allowed_values.Correction = defaults.CORRECTION
    verdicts: bool = False
    long: bool = False

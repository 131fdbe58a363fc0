"""`gaps`: how far the lowest and the highest slice are apart, beyond chance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import Correction, check_number
from polars_mcc._base.message_parts import option, refused
from polars_mcc._base.values_as_text_or_markdown import rows_in_words
from polars_mcc._comparisons import gate_rules_and_verdicts as gates
from polars_mcc._comparisons import options_of_differences
from polars_mcc._comparisons.columns_of_answers import answer_columns
from polars_mcc._counts.pair_counts import pairs
from polars_mcc._counts.sliced_log import SET
from polars_mcc._frame.columns import FrameT
from polars_mcc._frame.log_options import Described
from polars_mcc._intervals.interval_options import IntervalOptions, inferred
from polars_mcc._keys.any_key import IntoKey, name_of
from polars_mcc._metrics import registry
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.registry import IntoMetric, IntoMetrics

Widest: TypeAlias = float | Mapping[str, float]
"""The widest gap, or the least ratio, that may be, for one metric, or by metric."""


def gaps(
    log: Described[FrameT],
    *keys: IntoKey,
    metrics: IntoMetrics = defaults.METRICS,
    within: IntoKey | Sequence[IntoKey] | None = None,
    min_n: int = defaults.MIN_N,
    ci: float = defaults.LEVEL,
    correction: Correction = defaults.CORRECTION,
) -> FrameT:
    """Measure how far the lowest and the highest slice are apart, and whether it is chance.

    The largest of many equal scores minus the smallest is not 0. Of twenty slices of 30 rows with a
    rate of 10 % each, it is 0.2 on average. So the limits of the gap, and the p-value, allow for
    having looked at all slices, and `spread` is without the differences of samples.

    Args:
        *keys: The keys to slice by: columns and `bins`, which are crossed; or `each`, `rollup`,
            `cube` or `sets` of them, for a gap of each set. In Python also expressions and
            selectors.
        metrics: One metric or several, counted once, all of labels or all of scores, and with
            intervals: as in `by`.
        within: Compare slices only within each value of these columns, such as countries within
            each device.
        min_n: The least number of rows of a slice. Smaller slices are left out: below 30 rows, the
            p-value is too small too often. A score must be of half as many: "tpr" is of rows with
            the positive label. With sample weights w, the rows are (Σ w)² / Σ w².
        ci: The confidence level of the interval of the gap.
        correction: The correction of p-values for the number of tests, of each metric alone: see
            `compare`.

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, sorted. It has one row per metric, and per
        set of keys, value of `within` and model, with the columns

        - `keys` (String), if there are several sets of keys: the names of the keys; the columns of
          `within`; `model` (String), if the log has several models;
        - `metric` (String), in the order given;
        - `n_slices` (Int64): the slices that are compared. A slice of fewer than `min_n` rows is
          not, nor one whose score has no interval in `contrast`, such as a "tpr" without positive
          rows, or whose interval is nearly all of its range;
        - `n` (Int64; Float64 for float weights): the rows scored of these slices;
        - `lowest`, `highest` (String): the slices with the lowest and the highest score, in words;
          `lowest_score`, `highest_score` (Float64): their scores;
        - `ratio` (Float64): `lowest_score` divided by `highest_score`; null at 0/0, and if a score
          is negative. `ratio_low` and `ratio_high` (Float64): its interval, for scores from 0 to 1,
          such as "selection_rate"; else null;
        - `spread` (Float64): the standard deviation of the true scores between slices; null below
          three slices;
        - `diff` (Float64): the gap, which is `highest_score` minus `lowest_score`, with `diff_low`,
          `diff_high`, the interval of the largest difference of the true scores. `diff_low` is at
          least 0. All of these are null below two slices;
        - `p_value`, that all slices are equal, and `p_adjusted`, after correction (Float64);
        - `verdict` (Enum): "gap" if `p_adjusted` is below 1 - `ci`; "not sure"; or "not judged",
          below two slices;
        - `n_null`: the rows not scored, of all slices.

        Let each score be a proportion v of m rows, as in its interval, and v̄ = Σ m·v / Σ m. The
        test is Pearson's X² = Σ m (v - v̄)² / (v̄ (1 - v̄)): its variances are at the rate of all
        slices, so no slice has a variance of 0. Few rows of a rare label give X² a longer tail than
        χ² has, so the p-value is that of the χ² with the first three moments of X² (Imhof 1961).
        The square of `spread` is (X² - (S - 1)) / (W - Σ w² / W), and at least 0, of S slices with
        w = m / (v̄ (1 - v̄)), and W = Σ w (DerSimonian and Laird 1986).

        The interval is a union over all pairs of slices. Each pair has the interval of Zou (2007),
        of the limits of Clopper and Pearson (1934), at the critical value of Tukey's range of S
        slices: the limits of the binomial distribution, as Peizer and Pratt (1968) approximate it.
        The limits of the gap are the largest lower and the largest upper limit.
        The ratio has limits of the same kind. Each slice is divided by each other slice. The lower
        limit is the smallest lower limit of these ratios, and the upper limit is the smallest upper
        limit. The level of each is Bonferroni's: 1 - `ci` is divided by the number of pairs. Two
        tests give limits, and the farther one counts: the score test of Miettinen and Nurminen
        (1985), and, as few rows may hit or miss, the likelihood ratio test with both sides moved by
        half a row (Yates 1934).
        So it may be that `diff_low` is 0 although the p-value is small: many small differences are
        sure together, and none alone. The guide has the measured coverage.

    Raises:
        ValueError: There are no keys, or windows; a key is also in `within`; an option has an
            unknown value; a metric has no interval, or is a count, such as "tp"; some metrics are
            of labels and some of scores; the log has clusters, whose rows may be in several slices.

    The errors of `by` are raised too.

    References:
        C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits, Biometrika 26
        (1934) 404-413. R. DerSimonian and N. Laird, Meta-analysis in clinical trials, Controlled
        Clinical Trials 7 (1986) 177-188. J. P. Imhof, Computing the distribution of quadratic forms
        in normal variables, Biometrika 48 (1961) 419-426. O. Miettinen and M. Nurminen,
        Comparative analysis of two rates, Statistics in Medicine 4 (1985) 213-226. D. B. Peizer and
        J. W. Pratt, A normal approximation for binomial, F, beta, and other common, related tail
        probabilities, Journal of the American Statistical Association 63 (1968) 1416-1456. J. W.
        Tukey, The problem of multiple comparisons (1953). F. Yates, Contingency tables involving
        small numbers and the χ² test, Supplement to the Journal of the Royal Statistical Society 1
        (1934) 217-235. G. Y. Zou, Toward using confidence intervals to compare correlations,
        Psychological Methods 12 (2007) 399-413.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet").mcc(pred="logistic")
        >>> found = log.gaps("ink_band", metrics="accuracy")
        >>> found.select("lowest", "highest", "diff", "diff_low", "diff_high", "p_value")
        shape: (1, 6)
        ┌──────────────────┬──────────────────┬──────────┬──────────┬───────────┬──────────┐
        │ lowest           ┆ highest          ┆ diff     ┆ diff_low ┆ diff_high ┆ p_value  │
        │ ---              ┆ ---              ┆ ---      ┆ ---      ┆ ---       ┆ ---      │
        │ str              ┆ str              ┆ f64      ┆ f64      ┆ f64       ┆ f64      │
        ╞══════════════════╪══════════════════╪══════════╪══════════╪═══════════╪══════════╡
        │ ink_band = light ┆ ink_band = heavy ┆ 0.023625 ┆ 0.0      ┆ 0.056582  ┆ 0.123649 │
        └──────────────────┴──────────────────┴──────────┴──────────┴───────────┴──────────┘

    Command line::

        polars-mcc gaps logs/ --by sex --metric tpr --metric fpr --positive yes --within country
    """
    chosen = registry.with_tests(registry.find_metrics(metrics, log.roles.label_dtype))
    options = IntervalOptions(ci, metrics=chosen, min_n=min_n, correction=correction)
    for one in chosen:
        registry.check_rate(one, "large slices")
    inside, _, of_whole = options_of_differences.keys_and_within(
        log, "gaps", keys, within, sets=True
    )
    names = answer_columns("gaps", log)
    sliced, options = options_of_differences.cut_log(
        log, [*inside, *keys], options, names, shown=of_whole
    )
    whole = replace(sliced, keys=(*of_whole,), has_total=False)

    def infer(cells: pl.DataFrame) -> pl.DataFrame:
        from polars_mcc._comparisons import gaps_between_slices  # noqa: PLC0415 - NumPy, for it alone

        found = gaps_between_slices.gaps(sliced, whole, cells, options)
        return found.select(*whole.slice, *names)

    answer = whole.answer(inferred(log, sliced, pairs(sliced), infer, metrics=chosen))
    if sliced.sets is not None:  # A set is called after its own keys.
        own = {
            name: name_of(tuple(key for key in keys if key not in of_whole))
            for name, keys in sliced.sets.items()
        }
        answer = answer.with_columns(pl.col(SET).replace(own))
    return log.in_kind(answer)


class Rule(NamedTuple):
    """What a gate asks of the gaps of metrics."""

    option: str
    value: str
    """The column that is limited."""
    end: str
    """The column of the limit that must be beyond, to be sure."""
    what: str
    at: str
    beyond: str
    must: str
    """What a number that is no limit is, and what it must be."""
    limits: Mapping[Metric, float] = {}


_WIDTH = "no width: it must be at least 0, and finite"
_MAX_GAP = Rule("max_gap", "diff", "diff_low", "gap", "at most", "above", _WIDTH)
_SHARE = "no ratio of proportions: it must be above 0 and at most 1, of a metric from 0 to 1"
_MIN_RATIO = Rule("min_ratio", "ratio", "ratio_high", "ratio", "at least", "below", _SHARE)


def asked_of_gaps(
    metric: IntoMetric, max_gap: Widest | None, min_ratio: Widest | None, *others: object
) -> Rule | None:
    """What is asked of gaps, or an error if no gap can be so; None if nothing is asked."""
    rule, given = (_MIN_RATIO, min_ratio) if max_gap is None else (_MAX_GAP, max_gap)
    if given is None:
        return None
    if any(other is not None for other in (*others, min_ratio if rule is _MAX_GAP else None)):
        left = "min, max, no_worse_than" + " and min_ratio" * (rule is _MAX_GAP)
        raise ValueError(f"{rule.option} is checked alone: leave out {left}, or check them apart")
    of_metrics: Mapping[Any, Any] = given if isinstance(given, Mapping) else {metric: given}
    limits = {}
    for name, number in of_metrics.items():
        if number is None:
            continue
        check_number(rule.option, number)
        one = registry.find_metric(name)
        limits[one] = float(number)
        is_share = one.range is not None and one.range.numbers == (0, 1)
        is_ratio = is_share and 0 < number <= 1
        if not (is_ratio if rule is _MIN_RATIO else 0 <= number < math.inf):
            raise refused(option(rule.option, {one.name: number}), f" is {rule.must}")
    return rule._replace(limits=limits)


def judged_gaps(
    log: Described[Any],
    keys: Sequence[IntoKey],
    rule: Rule,
    min_n: int,
    ci: float | None,
) -> tuple[pl.DataFrame, str, Iterator[str]]:
    """The answer of `gaps` with verdicts, the message of an error, "" if all pass; and sentences.

    The sentences are about the requirements that are met.
    """
    level = defaults.LEVEL if ci is None else ci
    found: pl.DataFrame = gaps(log, *keys, metrics=[*rule.limits], min_n=min_n, ci=level)
    bounds = {metric.name: number for metric, number in rule.limits.items()}
    limit = pl.col("metric").replace_strict(bounds, return_dtype=pl.Float64)
    side = -1 if rule.value == "ratio" else 1
    is_wide, is_surely = (
        side * pl.col(name) > side * pl.col(rule.option) for name in (rule.value, rule.end)
    )
    fails = is_wide if ci is None else is_surely
    verdict = gates.verdict_of(pl.col(rule.value).is_null(), fails, is_wide)
    with_limits = found.lazy().collect().with_columns(limit.alias(rule.option))
    judged = with_limits.drop(gates.VERDICT).with_columns(verdict.alias(gates.VERDICT))
    _, names, _ = options_of_differences.keys_and_within(log, "gaps", keys, None, sets=True)
    met = (_met(row, rule, ", ".join(names)) for row in judged.iter_rows(named=True))
    return judged, _failure(judged, rule, min_n, ci), met


def _met(row: Mapping[str, Any], rule: Rule, keys: str) -> str:
    """A sentence about a gap that does not fail."""
    if row[gates.VERDICT] == "not judged":
        judged = ["not judged: fewer than two groups"]
    else:
        judged = ["passes", f"{row['n_slices']:,} groups", rows_in_words(row["n"])]
        judged += ["outside but not significantly"] * (row[gates.VERDICT] == gates.NOT_SURE)
    figure = (
        f"{row['metric']} {rule.what} of {row.get(SET, keys)} {gates.in_words(row, rule.value)}"
    )
    return gates.requirement(row, f"{figure}, {rule.at} {row[rule.option]:g}", *judged)


def _failure(judged: pl.DataFrame, rule: Rule, min_n: int, ci: float | None) -> str:
    """The message of the error: which gaps are too wide, or cannot be judged; "" if all pass."""
    if judged.is_empty():
        return "there is no slice to judge"
    known = judged.filter(pl.col(gates.VERDICT) != "not judged")
    wide, messages = known.filter(pl.col(gates.VERDICT) == "fails"), []
    if wide.height:
        bounds = wide.select("metric", rule.option).unique(maintain_order=True).rows()
        words = ", ".join(f"{rule.what} of {name} {rule.beyond} {bound}" for name, bound in bounds)
        fail = "fails" if wide.height == 1 else "fail"
        sure = "" if ci is None else f", significantly (ci={ci})"
        messages.append(f"{wide.height} of {known.height} {rule.what}s {fail}: {words}{sure}")
    apart = [name for name in ("metric", "model") if name in judged.columns]
    left = {*judged.select(apart).rows()} - {*known.select(apart).rows()}
    if left:
        names = ", ".join(" of ".join(row) for row in sorted(left))
        few = f"fewer than two slices of {min_n} rows or more are compared"
        few += ", or all scores are 0" * (rule.value == "ratio")
        messages.append(f"no {rule.what} of {names} can be judged: {few}")
    return "; ".join(messages) + gates.table(wide.drop(gates.VERDICT))

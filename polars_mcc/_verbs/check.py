"""`check`: raise an error that shows the slices that miss a threshold or a baseline."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from polars_mcc._base import allowed_values, defaults
from polars_mcc._base.allowed_values import Correction
from polars_mcc._base.message_parts import Words, cast, column, option, quoted, refused, said
from polars_mcc._base.values_as_text_or_markdown import rows_in_words
from polars_mcc._comparisons import gate_rules_and_verdicts as gates
from polars_mcc._comparisons import options_of_differences
from polars_mcc._comparisons.columns_of_answers import answer_columns
from polars_mcc._counts.label_hashes import with_wide_labels
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._counts.sliced_log import COMPLETE, N_WAITING, SET
from polars_mcc._counts.warnings_on_labels_and_keys import (
    LogLabels,
    key_is_gold,
    no_positive,
    no_shared_label,
    one_class,
)
from polars_mcc._frame.columns import OtherFrame
from polars_mcc._frame.labels import common_dtype
from polars_mcc._frame.log_options import Described
from polars_mcc._frame.missing_and_likely_columns import MissingColumn
from polars_mcc._intervals.interval_options import PERIODS, IntervalOptions, inferred, limit_columns
from polars_mcc._keys.any_key import IntoKey, check_plain
from polars_mcc._metrics import registry
from polars_mcc._metrics.exact_scores import FACT, defined, fact, most_rows
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.registry import IntoMetric
from polars_mcc._verbs.by_and_score import of_metrics
from polars_mcc._verbs.compare_and_drift import paired
from polars_mcc._verbs.gaps import Widest, asked_of_gaps, judged_gaps

LOGGER = logging.getLogger("polars_mcc")
"""Where requirements that are met are said."""
_OWN = {"p_value", gates.ADJUSTED, gates.VERDICT}  # of the verbs that compare
_HITS, _POSITIVE = f"{FACT}hits", f"{FACT}positive"


class CheckError(AssertionError):
    """Slices of a log fail `check`. The message shows which.

    Attributes:
        failures: The slices that fail, one row each.
        judged: All slices, with their `verdict`.
    """

    __module__ = "polars_mcc"  # where users find it

    def __init__(self, message: str, judged: pl.DataFrame) -> None:
        """Take the message, and the judged slices."""
        super().__init__(message)
        self.judged = judged
        self.failures = judged.filter(pl.col(gates.VERDICT) == "fails")

    def __reduce__(self) -> tuple[type[CheckError], tuple[str, pl.DataFrame]]:
        """Keep `judged` when the error is pickled, as between processes."""
        return type(self), (str(self), self.judged)


def check(
    log: Described[Any],
    *keys: IntoKey,
    min: gates.Bounds | None = None,  # noqa: A002 - as a user says it
    max: gates.Bounds | None = None,  # noqa: A002 - likewise
    metric: IntoMetric = defaults.METRIC,
    no_worse_than: str | pl.DataFrame | pl.LazyFrame | OtherFrame | None = None,
    max_gap: Widest | None = None,
    min_ratio: Widest | None = None,
    min_n: int | None = None,
    ci: float | None = None,
    false_alarms: str | None = None,
    correction: Correction | None = defaults.CHECK_CORRECTION,
) -> pl.DataFrame:
    """Raise an error if a slice misses a threshold or is worse than a baseline: a release gate.

    Unlike the other verbs, `check` runs the query of a LazyFrame at once. If it passes, it logs a
    sentence for each requirement, with its figure, its limit and the rows judged: at the level INFO
    of the logger "polars_mcc".

    0/0 is never a pass: without `ci`, a slice fails if its score is 0/0 although it has the gold
    labels that the metric needs, unless the slice of `no_worse_than` is 0/0 too. With `ci`, the
    interval decides. In a mean over classes, a class at 0/0 counts as 0, whatever `zero_division`
    is.

    Args:
        *keys: The keys to group by, as in `by`.
        min: The least score that a slice may have: a number, for `metric`; or one number per
            metric, as `{"mcc": 0.5, "recall_macro": 0.6}`. In Python also a DataFrame with the
            keys and a column `min`: one threshold per slice.
        max: The largest score that a slice may have, in the same forms, for metrics where less is
            better, as `{"fnr": 0.1}`.
        metric: The metric to check, if `min` and `max` do not name metrics: a name of `metrics()`.
            In Python also a function, as in `by`.
        no_worse_than: A baseline, instead of `min` and `max`. It is the name of another model or
            column of the log, and both are tested on the same rows, as in `compare`. Or it is the
            counts of another log, such as the log of last week, by the same keys (see `counts`).
        max_gap: The widest gap between two slices, instead of the others: a number, for `metric`,
            or one number per metric, as `{"fpr": 0.05}` (see `gaps`). With `ci`, a gap fails if its
            lower limit is wider. The interval allows for all slices; each gap is judged alone.
        min_ratio: The least ratio of the lowest to the highest slice, instead of the others, as
            `{"selection_rate": 0.8}`, the four-fifths rule: for metrics from 0 to 1. With `ci`, a
            ratio fails if its upper limit is less (see `gaps`).
        min_n: The least number of rows of a slice, here and in the baseline. Smaller slices are not
            judged. None: 1, but 30 with `max_gap` and `min_ratio`.
        ci: The confidence level of the gate. A slice fails only if the whole interval of its score
            is below `min` (above `max`), or the whole interval of its difference to the baseline is
            on the worse side of 0, and `p_adjusted` is below 1 - `ci`. So a log that is as good as
            it must be fails in at most 1 - `ci` of runs, whatever the number of slices. A slice
            without an interval is not judged. None: the score alone decides, however few the rows.
        false_alarms: How long a log that is as good as it must be passes, on average, if it is
            checked once a day, such as "1y": instead of `ci`, which is then 1 minus a day divided
            by it. It needs a correction by "holm" or "bonferroni".
        correction: With `ci`, the correction of p-values for the number of tests: slices, metrics
            and models that are judged. "holm" and "bonferroni" limit the probability that a healthy
            log fails to 1 - `ci`. "bh" and "by" limit the share of healthy slices in the list of
            failures (see `compare`). None: no correction; each slice may fail by chance.

    Returns:
        A DataFrame with one row per slice and the columns of `by`, or with a baseline the columns
        of `compare` (a model) or `drift` (counts) without p-values and verdict, and

        - `p_adjusted` (Float64), with `ci`: the p-value, after correction, that the slice meets its
          threshold. It is one-sided. If there are several metrics, it is the least of theirs;
        - `failed` (String): the metrics that fail, "" if none does;
        - `verdict` (Enum): "passes", "not judged" or, with `ci`, "not significant": the score
          misses the threshold, but not significantly. A slice is not judged if it has too few rows,
          no score, such as a "roc_auc" with one gold class, or with `ci` no interval; if a
          prediction has no labelled row, with `nulls="reweight"`; or if a DataFrame of thresholds
          has none for it. A threshold for a slice that the log does not have is a row that is not
          judged.

        With `max_gap` or `min_ratio`: the columns of `gaps` without its verdict, then the limit
        (Float64), with the name of the option, and `verdict`.

    Significance:
        The p-value is the larger of two. One turns the interval around: it is (1 - `ci`) / 2 where
        the limit of the score is the threshold. The other is the likelihood ratio of a proportion
        of as many rows as the interval has (see `worst`); it is more careful with few rows. So a
        slice with few rows may pass although its interval is below the threshold. For "lr_pos",
        "lr_neg" and "dor" it is Student's t instead, with 1 / se² degrees of freedom.

    Raises:
        polars_mcc.CheckError: A slice fails, or no slice is judged. It is an AssertionError. Its
            message and its attribute `failures` have a table of the slices that fail.
        ValueError: Neither thresholds nor a baseline, or both; an unknown `correction`, or one
            without `ci`; `min` for a metric where less is better; a positive label that no row has;
            counts as the baseline for windows, clusters or sample weights; a text that is no model
            and no column.
        polars.exceptions.SchemaError: A key of the baseline is not of the kind of the log's key:
            text beside numbers, for example.

    The errors of `by` are raised too.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": ["a", "a", "b", "b"], "pred": ["a", "a", "b", "a"]})
        >>> log.mcc.check(min=0.5)["verdict"].to_list()
        ['passes']
        >>> log.mcc.check(min={"mcc": 0.6, "accuracy": 0.7})
        Traceback (most recent call last):
            ...
        polars_mcc.CheckError: 1 of 1 slices fails: mcc below 0.6 (1)
        ┌─────┬─────────┬──────────┬────────┬────────┐
        │ n   ┆ mcc     ┆ accuracy ┆ n_null ┆ failed │
        │ --- ┆ ---     ┆ ---      ┆ ---    ┆ ---    │
        │ i64 ┆ f64     ┆ f64      ┆ i64    ┆ str    │
        ╞═════╪═════════╪══════════╪════════╪════════╡
        │ 4   ┆ 0.57735 ┆ 0.75     ┆ 0      ┆ mcc    │
        └─────┴─────────┴──────────┴────────┴────────┘

    Command line::

        polars-mcc check logs/ --by country --min 0.6 --min-n 100

        polars-mcc check logs/ --by country --min mcc=0.5 --min recall_macro=0.6 --max fnr=0.1

        polars-mcc check logs/ --by country --score p --min roc_auc=0.8 --max calibration_error=0.1
    """
    ci = options_of_differences.level_without(false_alarms, ci, correction)
    find = registry.find_metric if no_worse_than is None else registry.find_tested_metric
    labels = log.roles.label_dtype
    chosen = find(metric, labels)
    of_gaps = asked_of_gaps(metric, max_gap, min_ratio, min, max, no_worse_than)
    unasked = defaults.CHECKED_N if of_gaps is None else defaults.MIN_N
    min_n = unasked if min_n is None else min_n
    if of_gaps is not None:
        found = judged_gaps(log, keys, of_gaps, min_n, ci)
        _check_labels_of_gaps(log, found[0], [*of_gaps.limits])
        return _decided(*found)
    rules = [
        *gates.required(metric, "min", min, labels),
        *gates.required(metric, "max", max, labels),
    ]
    if bool(rules) == (no_worse_than is not None):
        raise refused(
            "check needs either min or max, such as ",
            option("min", 0.6),
            ", or ",
            Words("no_worse_than=", "--no-worse-than"),
            ", another model or the counts of a baseline",
        )
    allowed_values.check_at_least("min_n", min_n, 1)
    _check_options(ci, correction, rules)
    common_dtype([*log.roles.gold.dtypes.items()])  # Lists are refused.
    if log.roles.zero_division != 0:  # Classes at 0/0 would lift a mean, or be left out.
        log = log(zero_division=0.0)
    if no_worse_than is None:
        slices, sizes = _scored(log, keys, rules, ci), ["n"]
    else:
        level = defaults.LEVEL if ci is None else ci
        metrics = [chosen, *_marks([chosen], level)]
        asked = IntervalOptions(level, metrics=metrics, min_n=min_n)
        slices, rule, sizes = _against(log, keys, no_worse_than, asked)
        rules = [rule]
    is_small = ~pl.all_horizontal(pl.col(sizes) >= min_n).fill_null(value=False)
    judging = gates.Judging(rules, ci, correction, is_small)
    marked = judging.marked(slices.collect(), is_frequency=log.roles.is_frequency)
    has_models = log.roles.has_models({rule.metric.role for rule in rules})
    models = ["model"] if has_models or isinstance(no_worse_than, str) else []
    _check_labels(log, marked, models)
    judged = marked[[name for name in marked.columns if not name.startswith(FACT)]]
    unjudged = judging.unjudged(marked, models)
    if judged.height and not unjudged and "fails" not in judged[gates.VERDICT]:
        return _decided(judged, "", judging.met(marked, sizes[-1]))
    messages = [*judging.failing(marked)]
    if (judged[gates.VERDICT] == "not judged").all():
        messages.append("there is no slice to judge")
    elif unjudged:
        messages.append(f"no slice can be judged by {', '.join(unjudged)}")
    why = judging.left_out(marked, sizes, f"fewer than {min_n} rows")
    if unjudged and any(rule.metric.is_of_two for rule in rules):
        about_labels = (*key_is_gold(log, keys), *one_class(LogLabels.of(log)))
        why += "".join(f"; {sentence}" for sentence in about_labels)
    if no_worse_than is None and log.roles.waiting:
        why += _waiting_in_words(judged)
    failures = judged.filter(pl.col(gates.VERDICT) == "fails").drop(gates.VERDICT)
    shown = failures if len(rules) > 1 else failures.drop(gates.FAILED)
    message = f"{'; '.join(messages)}{why}{gates.table(shown)}"
    return _decided(judged, message)


def _decided(judged: pl.DataFrame, message: str, met: Iterable[str] = ()) -> pl.DataFrame:
    """What is judged, or an error if there is a message. Else say which requirements are `met`."""
    if message:
        raise CheckError(message, judged)
    for requirement in met:
        LOGGER.info(requirement)
    return judged


def _waiting_in_words(judged: pl.DataFrame) -> str:
    """How many rows wait for their label. Rows are in several windows: then nothing is said."""
    if COMPLETE in judged.columns:
        return ""
    for name in {SET, "model"}.intersection(judged.columns):
        judged = judged.filter(pl.col(name) == pl.col(name).first())
    n = float(judged[N_WAITING].sum())
    return f"; {rows_in_words(n)} {'waits' if n == 1 else 'wait'} for a label" if n else ""


def _scored(
    log: Described[Any], keys: tuple[IntoKey, ...], rules: Sequence[gates.Rule], ci: float | None
) -> pl.LazyFrame:
    """The columns of `by`, with the thresholds given per slice and the marks of each slice."""
    metrics = [*{rule.metric.name: rule.metric for rule in rules}.values()]
    marks = _marks(metrics, ci, is_per_class=bool(log.roles.score_labels))
    slices = of_metrics(log, keys, [*metrics, *marks], ci, added=_added(ci))
    slices = slices.drop(limit_columns(mark.name for mark in marks), strict=False)
    names = slices.collect_schema().names()
    return gates.with_own(slices, rules, names[: names.index("n")])


def _check_options(
    ci: float | None, correction: Correction | None, rules: Sequence[gates.Rule]
) -> None:
    """Raise a ValueError for an unknown correction, or a level that some metric has no use for."""
    if correction is not None:
        allowed_values.check_choice("correction", correction, Correction, "None")
    if ci is not None:
        allowed_values.check_level(ci)
        registry.check_sure((rule.metric for rule in rules), "check it in a call without ci")
    elif correction not in {None, defaults.CHECK_CORRECTION}:
        allowed_values.needs_level("correction", correction)


def _added(ci: float | None) -> list[str]:
    """The columns that the verb adds to scores or differences."""
    return [*([] if ci is None else [gates.ADJUSTED]), gates.FAILED, gates.VERDICT]


def _marks(
    metrics: Sequence[Metric], ci: float | None, *, is_per_class: bool = False
) -> list[Metric]:
    """Facts on a slice: its hits, its labels of the positive class, which metrics are defined.

    With a level, also the largest number of effective rows of a metric.
    """
    of_log = []
    has_scores = any(metric.is_of_scores for metric in metrics)
    if not all(metric.is_of_scores for metric in metrics):
        of_log.append(fact(_HITS, lambda terms: terms.c))
    if has_scores and not is_per_class:
        positive = fact(_POSITIVE, lambda terms: terms.positive.gold)
        of_log.append(replace(positive, is_of_scores=True))
    elif any(metric.is_of_positive for metric in metrics):
        of_log.append(fact(_POSITIVE, lambda terms: terms.positive.gold + terms.positive.pred))
    max_rows = filter(None, map(most_rows, metrics if ci is not None else ()))
    return [*of_log, *map(defined, metrics), *max_rows]


def _check_labels(log: Described[Any], marked: pl.DataFrame, models: Sequence[str]) -> None:
    """Raise a ValueError if the labels of a log never meet, or no row has the positive label.

    The rows are read again only then. Labels of an Enum are known to exist. For scores, the
    positive label must be gold; else it may also be a predicted label.
    """
    roles = log.roles
    suspects: dict[str, Callable[[LogLabels], Iterator[str]]] = {_HITS: no_shared_label}
    if not isinstance(roles.label_dtype, (pl.Boolean, pl.Enum)):
        suspects[_POSITIVE] = no_positive
    for mark, sentences in suspects.items():
        for name in {mark, f"{mark}_{PERIODS.categories[-1]}"}.intersection(marked.columns):
            rows = marked.select(*models, name).drop_nulls(name)
            totals = rows.group_by(models).sum() if models else rows.sum()
            if rows.height and not (totals[name] > 0).all():
                is_gold_alone = mark == _POSITIVE and roles.scores is not None
                labels = log(pred=None) if is_gold_alone else log
                for sentence in sentences(LogLabels.of(labels)):
                    raise ValueError(sentence)


def _check_labels_of_gaps(
    log: Described[Any], gaps: pl.DataFrame, metrics: Sequence[Metric]
) -> None:
    """Do so if a gap is nothing, as it is without the positive label. The log is counted again."""
    marks = _marks(metrics, None, is_per_class=bool(log.roles.score_labels))
    marks = [mark for mark in marks if mark.name in {_HITS, _POSITIVE}]
    if marks and (gaps["diff"].fill_null(0.0) == 0).any():
        marked = of_metrics(log, [], marks, None).lazy().collect()
        _check_labels(log, marked, [name for name in marked.columns if name == "model"])


def _against(
    log: Described[Any], keys: tuple[IntoKey, ...], baseline: object, asked: IntervalOptions
) -> tuple[pl.LazyFrame, gates.Rule, list[str]]:
    """The differences to a baseline, the rule that none is worse, and the columns of sizes.

    The first metric that is asked for is compared; the others are marks.
    """
    metric = asked.metrics[0]
    least = gates.Rule(metric, "max" if metric.less_is_better else "min", 0.0, "diff")
    if isinstance(baseline, str):
        least = replace(least, than=baseline)
        return _paired(log, keys, baseline, least, asked), least, ["n"]
    return _compared(log, keys, baseline, least, asked), least, ["n_before", "n_after"]


def _paired(
    log: Described[Any],
    keys: tuple[IntoKey, ...],
    baseline: str,
    least: gates.Rule,
    asked: IntervalOptions,
) -> pl.LazyFrame:
    """Compare the models of the log with one of them, on the same rows: the test of `compare`."""
    models = log.roles.scores if least.metric.is_of_scores else log.roles.preds
    named = () if models is None else models.names
    if baseline not in {*named, *log.roles.schema}:
        raise refused(
            Words("no model and no column", "no model, no column and no file"),
            f" '{baseline}': ",
            Words("no_worse_than", "--no-worse-than"),
            f" takes a model of the log ({quoted(named)}), a column that is one, or ",
            Words("a DataFrame of the counts of another log", "a file of counts"),
        )
    names = [name for name in answer_columns("compare", log) if name not in _OWN]
    facts = [f"{mark.name}_{period}" for mark in asked.metrics[1:] for period in PERIODS.categories]
    columns = [*names, "p_value", *facts]
    slices = paired(log, keys, baseline, asked, columns, added=_added(asked.ci))
    half = pl.col("p_value") / 2
    p = pl.when(least.misses()).then(half).otherwise(1 - half)
    return slices.with_columns(p.alias(least.p_value)).drop("p_value")


def _compared(
    log: Described[Any],
    keys: tuple[IntoKey, ...],
    baseline: object,
    least: gates.Rule,
    asked: IntervalOptions,
) -> pl.LazyFrame:
    """Compare the log with the counts of the baseline, slice by slice, like two periods.

    Add the p-value of the rule that no slice is worse.
    """
    metric = least.metric
    if metric.is_of_scores:
        raise ValueError(
            "no_worse_than is a table of counts of labels, and metric "
            f"'{metric.name}' needs scores: compare two periods with drift"
        )
    check_plain(keys, "no_worse_than", "its rows are of another time", sets=True)
    reason = "no_worse_than is a table of counts, which has neither clusters nor sample weights"
    log.roles.check_without("check", reason, "cluster", "sample_weight")
    names = [name for name in answer_columns("drift", log) if name not in _OWN]
    sliced = cut(sides_of(log), keys, taken=[*_added(asked.ci), *names])
    model = ("model",) if sliced.has_models else ()
    try:
        counts = Described(baseline, weight="n", nulls=sliced.nulls)  # type: ignore[arg-type]
        before = cut(sides_of(counts), [*sliced.keys, *model], taken=())
    except MissingColumn as error:
        msg = f"no_worse_than is not the counts of these slices: {error.problem}"
        raise pl.exceptions.ColumnNotFoundError(msg) from error
    for name, dtype in sliced.key_dtypes.items():
        other = before.key_dtypes[name]
        if gates.kind_of(dtype) != gates.kind_of(other) and pl.Null not in (dtype, other):
            msg = said(
                f"key '{name}' is {dtype} in the log but {other} in no_worse_than; ",
                "cast one, as in ",
                cast(column(name), repr(other)),
            )
            raise pl.exceptions.SchemaError(msg)
    for extra, what in ((SET, "sets of keys"), ("model", "models")):
        if extra in counts.roles.schema and extra not in (*sliced.keys, *model):
            call = f"counts({', '.join(map(repr, sliced.keys))})"
            raise refused(
                f"no_worse_than has counts of several {what}, so it counts each row several times: "
                "use ",
                Words(call, f"counts {option('keys', sliced.keys).in_shell}".rstrip()),
                ", or filter to one",
            )
    apart, cells = gates.with_baseline(gates.in_sets(before, sliced, model), sliced)
    if metric.labels_needed == "values":
        apart = with_wide_labels(apart)
        cells = cells.with_columns(pl.col("gold", "pred").cast(apart.label_dtype))
    positive = registry.positive_class([metric], log.roles.positive, apart.label_dtype)
    options = replace(asked, positive=positive)

    def infer(cells: pl.DataFrame) -> pl.DataFrame:
        from polars_mcc._comparisons.difference_interval import Periods, facts_of  # noqa: PLC0415 - NumPy, for it alone
        from polars_mcc._comparisons.evidence_and_p_values import of_baseline  # noqa: PLC0415 - likewise
        from polars_mcc._intervals.count_arrays import of_arrays  # noqa: PLC0415 - likewise

        periods = Periods.of(sliced, apart, cells, options)
        slices = periods.compared(sliced, metric.name, asked.ci)
        both = periods.before, periods.after
        facts = facts_of(both, options)
        p = of_baseline(both, slices["p_value"], metric, least.bound, asked.ci)
        facts += of_arrays(**{least.p_value: p})
        return slices.with_columns(metric=pl.lit(metric.name)).select(*sliced.slice, *names, *facts)

    return sliced.answer(inferred(log, sliced, cells, infer))

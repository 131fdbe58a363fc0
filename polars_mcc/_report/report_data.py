"""A log → the answers of a report: frames, each with the call of the verb that gives it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import Correction, ReportFormat, check_choice, check_level
from polars_mcc._base.errors_and_warnings import heard
from polars_mcc._base.values_as_text_or_markdown import label_text, rows_in_words
from polars_mcc._comparisons.evidence_and_p_values import better_or_worse, judged
from polars_mcc._counts.label_hashes import Seen, labelled_rows
from polars_mcc._counts.pair_counts import pairs as pairs_of
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._counts.sliced_log import SET
from polars_mcc._counts.warnings_on_labels_and_keys import (
    LogLabels,
    key_is_gold,
    missing_unevenly,
    remarks,
)
from polars_mcc._counts.warnings_on_missing_labels import seldom_of_late, sooner_for_some
from polars_mcc._display.table_and_to_numpy import slices_in_words
from polars_mcc._frame.columns import as_expr
from polars_mcc._frame.labels import are_scored
from polars_mcc._frame.log_options import Described
from polars_mcc._intervals.interval_options import IntervalOptions, limit_columns
from polars_mcc._keys.any_key import IntoKey
from polars_mcc._keys.bins import is_calendar
from polars_mcc._metrics import registry
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._report.keys_counted_once import (
    Answer,
    Collect,
    CountedLog,
    SectionKey,
    call_as_code,
    count_once,
    key_of_sets,
    keys_to_search,
    set_name,
    without,
)
from polars_mcc._verbs.by_and_score import by
from polars_mcc._verbs.calibration_and_curve_and_best_threshold import calibration
from polars_mcc._verbs.changes import changes
from polars_mcc._verbs.compare_and_drift import compare
from polars_mcc._verbs.confusion import confusion
from polars_mcc._verbs.contrast import contrast
from polars_mcc._verbs.gaps import gaps
from polars_mcc._verbs.worst import worst
from polars_mcc._worst.failures_in_words import summed_up

TABLE_METRICS = ["mcc", "accuracy", "f1_macro"]
SCORE_METRICS = ["roc_auc", "brier", "calibration_error"]
MAX_WORST = 20  # rows in the table of the worst slices, at most
_MAX_VALUES_IN_PAIRS = 50  # values of a key, at most, in pairs of keys that compare models
_MAX_SLICES_OF_PAIRS = 20_000  # slices of all these pairs together, at most
_MAX_CONFUSIONS = 5  # confusions per model that the report lists
WORDS = "polars_mcc:words"  # a column: no key has this name


@dataclass(frozen=True)
class ReportSettings:
    """The options of a report, as the user gave them; see `report`."""

    metrics: registry.IntoMetrics
    ci: float
    depth: int
    min_n: int
    title: str
    format: ReportFormat
    sensitive: Sequence[IntoKey] = ()
    in_words: Callable[[str], str] = str
    """A message in the words of Python, or of the shell."""

    def __post_init__(self) -> None:
        """Raise an error if a value is not allowed."""
        check_level(self.ci)
        check_choice("format", self.format, ReportFormat)
        for metric in self.scored:
            if metric.is_of_scores:
                raise ValueError(
                    f"report takes metrics of labels, but '{metric.name}' is of scores; leave it "
                    "out: a log with predicted labels and scores has sections of both"
                )

    @cached_property
    def scored(self) -> Sequence[Metric]:
        """The metrics that models and slices are compared by. The first is drawn and searched."""
        return registry.find_metrics(self.metrics)

    def of_verb(self, option: Literal["metric", "metrics"]) -> dict[str, Any]:
        """The options of a verb that takes the first metric, or all, if it is not the default."""
        first, *more = registry.listed(self.metrics)
        given = first if option == "metric" or not more else [first, *more]
        is_default = isinstance(given, str) and given == defaults.METRIC
        return {"ci": self.ci, **({} if is_default else {option: given})}

    def beside(self, names: Iterable[str]) -> list[registry.IntoMetric]:
        """The metrics, and those of these names."""
        others = {*names} - {metric.name for metric in self.scored}
        return [*registry.listed(self.metrics), *(name for name in names if name in others)]


class Since(NamedTuple):
    """Since when slices are worse, the surest first."""

    rows: pl.DataFrame
    """The answer of `changes`, with each slice in words, in the column `WORDS`."""
    query: str
    why_not: str
    """Why the log cannot say it, else ""."""

    def with_verdict(self, verdict: str) -> pl.DataFrame:
        """The slices with this verdict."""
        return self.rows if self.why_not else self.rows.filter(verdict=verdict)

    @property
    def n_judged(self) -> int:
        """The number of slices with enough rows."""
        return self.rows.height - self.with_verdict("not judged").height


class Worst(NamedTuple):
    """The listed slices, worst first, and a sentence that sums up the search."""

    listed: pl.DataFrame
    n_tested: int
    summary: str
    query: str
    key_warnings: Sequence[str]
    """Sentences about keys that make no useful slices."""


def answers(
    log: Described[Any], keys: Sequence[SectionKey], collect: Collect, settings: ReportSettings
) -> Answers:
    """Count a log once, and score the slices. All other answers are asked for when needed."""
    columns = {name: column for key in keys for name, column in key.needed.items()}
    # Times that the report cuts are counted by day: there are fewer days than times.
    raw = {name for key in keys if not key.note for name in key.needed}
    days = {name: as_expr(columns[name]).dt.date() for name in columns.keys() - raw}
    counted = count_once(log, columns | days, collect)
    # Only the metrics of the report have intervals.
    metrics = settings.beside(TABLE_METRICS)
    unsure = limit_columns(map(str, metrics[len(settings.scored) :]))
    scores = [
        Answer(without(rows, unsure), query)
        for rows, query in counted.ask_each("scores", by, keys, metrics=metrics, ci=settings.ci)
    ]
    return Answers(counted, settings, keys, [*columns], scores[0], scores[1:])


@dataclass(frozen=True)
class Answers:
    """All answers that a report is made of."""

    counted: CountedLog
    settings: ReportSettings
    keys: Sequence[SectionKey]
    columns: Sequence[str]
    """The names of the columns of all keys."""
    total: Answer
    slices: Sequence[Answer]
    """The scores by each of the keys."""
    n_sensitive: int = 0

    @property
    def log(self) -> Described[Any]:
        """The log, as the user described it."""
        return self.counted.log

    @property
    def metric(self) -> str:
        """The name of the first metric."""
        return self.settings.scored[0].name

    @property
    def errors(self) -> Sequence[str]:
        """The columns of standard errors: a report shows intervals instead."""
        return [f"{metric.name}_se" for metric in self.settings.scored]

    @property
    def less_is_better(self) -> bool:
        return bool(self.settings.scored[0].less_is_better)

    @property
    def models(self) -> Sequence[str]:
        return self.counted.preds.names

    @property
    def has_models(self) -> bool:
        """Whether the answers have a column `model`."""
        return self.counted.preds.is_several

    @property
    def sensitive(self) -> Sequence[SectionKey]:
        """The keys whose gaps are what the report is about: the first ones."""
        return self.keys[: self.n_sensitive]

    def of_model(self, row: Mapping[str, Any]) -> str:
        """The model of a row in words, in brackets; "" if there is only one."""
        return f" ({row['model']})" if self.has_models else ""

    def rows_of(self, model: str, answer: pl.DataFrame) -> pl.DataFrame:
        """The rows of one model, without the column `model`."""
        is_of_model = pl.col("model") == model
        return answer.filter(is_of_model).drop("model") if self.has_models else answer

    @cached_property
    def remarks(self) -> Sequence[str]:
        """What makes scores wrong, 0 or 0/0."""
        sides = LogLabels.of(self.counted.counts or self.log)
        pairs = self.pairs.lazy().with_columns(model="model" if self.has_models else None)
        return [
            *missing_unevenly(sides, labelled_rows(pairs), self.log),
            *sooner_for_some(self.log, partial(self.counted.collect, "ages of labels")),
            *seldom_of_late(self.log, partial(self.counted.collect, "labels by day")),
            *remarks(sides, Seen()),
            *key_is_gold(self.log, [key.of_log for key in self.keys]),
            *(self.worst.key_warnings if self.worst else []),
        ]

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """The pairs of labels of each model, with and without a weight: `n` and `n_null` rows."""
        pairs, _ = self.counted.ask("confusions", _pairs, needs_draws=False)
        models = pl.Enum(self.models)  # They keep the order of `pred`.
        return pairs.with_columns(pl.col("model").cast(models)) if self.has_models else pairs

    @property
    def is_scored(self) -> pl.Expr:
        """Whether a pair is scored: with both labels, unless null is a label."""
        return are_scored(pl.col("gold"), pl.col("pred"), self.log.roles.nulls)

    @cached_property
    def cells(self) -> pl.DataFrame:
        """The confusion matrix of each model in long form."""
        return self.pairs.filter(self.is_scored)

    @cached_property
    def costliest(self) -> Answer:
        """The confusions that cost each model most."""
        cells = Described(self.cells.filter(pl.col("n") > 0), weight="n", nulls="label")
        rows = confusion(cells, *(["model"] if self.has_models else []), top=_MAX_CONFUSIONS)
        # Every cell is scored: `n_null` is 0 in all rows.
        return Answer(rows.drop("n_null"), call_as_code(self.log, confusion, top=_MAX_CONFUSIONS))

    def bases(self, metric: Metric) -> Sequence[str]:
        """How many rows each model is scored on; a rate is scored on the rows of one label."""
        roles = self.log.roles
        if metric.given is None:
            return [rows_in_words(n) for n in self.total.rows["n"]]
        name = label = True if roles.positive is None else roles.positive_label
        is_of_rate = pl.col(metric.given) == pl.lit(label, roles.label_dtype)
        if metric.of_rest:
            is_of_rate = ~is_of_rate
            rest = {*self.cells[metric.given]} - {label, None}
            name = rest.pop() if len(rest) == 1 else f"not {label}"
        cells = self.cells.filter(is_of_rate)
        what = {"gold": "labelled", "pred": "predicted"}[metric.given]
        numbers: list[Any] = [self.rows_of(model, cells)["n"].sum() for model in self.models]
        return [f"{rows_in_words(n)} {what} {name}" for n in numbers]

    @cached_property
    def unscored(self) -> pl.DataFrame:
        """The rows that are not scored, per model and reason: `pred`, `reason`, `n_null`."""
        roles = self.log.roles
        model = pl.col("model") if self.has_models else pl.lit(self.models[0])
        weight = None if roles.weight is None else f"{roles.weight.name} is null"
        of_gold = "the label {} has not come" if roles.waiting else "{} is null"
        sides = {"gold": (of_gold, pl.lit(roles.gold.name)), "pred": ("{} is null", model)}
        nulls = [
            pl.when(~self.is_scored & pl.col(side).is_null()).then(pl.format(*words))
            for side, words in sides.items()
        ]
        unlabelled = self.pairs.filter(~self.is_scored).with_columns(n_null="n", weight=None)
        unweighted = self.pairs.with_columns(weight=pl.lit(weight))
        rows = pl.concat([unlabelled, unweighted], how="vertical_relaxed")
        reason = pl.concat_str([*nulls, "weight"], separator=", ", ignore_nulls=True)
        groups = rows.filter(pl.col("n_null") > 0).group_by(pred=model, reason=reason)
        sums = groups.agg(pl.col("n_null").sum()).sort("pred", "reason")
        return sums.with_columns(pl.col("pred").cast(pl.String))

    @cached_property
    def waiting_since(self) -> Sequence[Any]:
        """The times of the first, the middle and the last row that waits; empty without times."""
        roles = self.log.roles
        if not roles.waiting or roles.time is None:
            return ()
        is_waiting, time = roles.gold.expr.is_null(), roles.time.expr.sort()
        places = (0, pl.len() // 2, -1)

        def query(rows: pl.LazyFrame) -> pl.LazyFrame:
            times = rows.filter(is_waiting).select(time=time).drop_nulls()
            each = (pl.col("time").get(place, null_on_oob=True) for place in places)
            return times.select(time.alias(str(place)) for place, time in enumerate(each))

        return self.counted.collect("rows that wait", query).rows()[0]

    @cached_property
    def worst(self) -> Worst | None:
        """The slices that are behind the rest of the log; None without keys."""
        keys, settings = keys_to_search(self.keys), self.settings
        if not keys:
            return None
        options = {"depth": settings.depth, "min_n": settings.min_n, **settings.of_verb("metric")}
        options |= {"long": True}
        with heard() as key_warnings:
            slices, _ = self.counted.ask("worst slices", worst, keys, verdicts=True, **options)
        summary = summed_up(slices, "rest", has_models=self.has_models)
        listed = slices.filter(verdict="listed").drop("verdict")
        of_models = slices.unique("model") if self.has_models else slices.head(1)
        query = call_as_code(
            self.log, worst, *(key.of_log for key in keys), top=MAX_WORST, **options
        )
        n_tested = int(of_models["n_tested"].sum())
        return Worst(listed, n_tested, summary, query, key_warnings)

    @property
    def has_positive(self) -> bool:
        """Whether one label is positive."""
        return self.log.roles.positive is not None or self.log.roles.label_dtype == pl.Boolean

    @cached_property
    def two_labels(self) -> Sequence[Any]:
        """The positive and the other label, if there are two; without `positive`, the last is."""
        labels = pl.concat([self.cells["gold"], self.cells["pred"]]).unique().sort().to_list()
        positive = self.log.roles.positive_label
        if len(labels) != 2 or None in labels or positive not in {None, *labels}:
            return ()
        return labels if positive == labels[0] else labels[::-1]

    @property
    def error_rates(self) -> Mapping[str, str]:
        """The error rates of two labels, each with the errors that it counts."""
        both = [label_text(label) for label in self.two_labels]
        errors = zip(("fnr", "fpr"), itertools.permutations(both, 2), strict=False)
        return {name: f"label {gold}, predicted {pred}" for name, (gold, pred) in errors}

    @property
    def shares(self) -> list[str]:
        """The metrics of gaps that are shares of rows: of others, a ratio means little."""
        scored = [metric.name for metric in self.settings.scored if metric.is_share]
        return [*scored, *self.error_rates]

    @cached_property
    def gaps(self) -> Answer | None:
        """The gaps between the slices of each key, the widest first; None without keys.

        They are of the metric, and of the error rates of two labels. With clusters there are none.
        """
        if not self._single or self.log.roles.cluster is not None:
            return None
        counted, settings = self.counted, self.settings
        if self.two_labels and not self.has_positive:
            counted = counted.described(positive=self.two_labels[0])
        metrics = settings.beside(self.error_rates)
        options: dict[str, Any] = {"min_n": settings.min_n, "ci": settings.ci}
        found = counted.ask("gaps", gaps, [key_of_sets(self._single)], metrics=metrics, **options)
        is_first = pl.col(SET).is_in([key.name for key in self.sensitive])
        order = [is_first, "diff_low", "diff"]
        rows = found.rows.sort(order, descending=True, nulls_last=True, maintain_order=True)
        return Answer(rows, found.query)

    @cached_property
    def since(self) -> Since | None:
        """Since when slices are worse; None unless the log has a time. The counts have no times."""
        if self.log.roles.time is None:
            return None
        sets, rows = self.sets_in_time, replace(self.counted, counts=None)
        asked = [key_of_sets([*sets.values()], total=True)] if sets else []
        options = {"min_n": self.settings.min_n, **self.settings.of_verb("metric")}
        try:
            found, query = rows.ask("changes", changes, asked, **options)
        except (ValueError, pl.exceptions.DuplicateError) as error:  # The verb refuses.
            return Since(pl.DataFrame(), "", str(error))
        names = [SET, *(key.name for key in self.timeless)] if sets else []
        said = slices_in_words(found, names).alias(WORDS)
        return Since(found.with_columns(said, pl.col("since").dt.date()), query, "")

    def days_of(self, of_set: str) -> pl.DataFrame:
        """The scores by day of the slices of one set of keys, beside what their labels explain."""
        time, log = self.log.roles.time, self.log.with_frame
        asked = {"to": "expected", **self.settings.of_verb("metrics")}
        assert time is not None  # noqa: S101 - for the type checker
        day = time.expr.dt.date().alias(time.name)
        within = [key.of_log for key in self.sets_in_time.get(of_set, ())] or None
        return self.counted.collect(
            "days of changes",
            lambda rows: contrast(log(rows), day, within=within, **asked),
        )

    @cached_property
    def sets_in_time(self) -> Mapping[str, Sequence[SectionKey]]:
        """The sets of keys asked for changes, by name: each key, and those of the worst slices."""
        keys = self.timeless
        listed = {*(self.worst.listed[SET] if self.worst else ()), *(key.name for key in keys)}
        sizes = range(1, self.settings.depth + 1)
        sets = itertools.chain(*(itertools.combinations(keys, size) for size in sizes))
        return {name: own for own in sets if (name := set_name(own)) in listed}

    @cached_property
    def timeless(self) -> Sequence[SectionKey]:
        """The keys that are one column, but for times."""
        of_time = {
            key.name
            for key, answer in zip(self.keys, self.slices, strict=True)
            if key.is_time or (key.is_column and is_calendar(answer.rows.schema[key.name]))
        }
        return [key for (key,) in self._single if key.name not in of_time]

    @cached_property
    def compared(self) -> Sequence[Answer]:
        """The other models compared with the first: over all rows, and by `compared_keys`.

        Over all rows they are compared by each metric, in slices by the first. Nothing if there is
        one model.
        """
        if len(self.models) == 1:
            return []
        keys, scored = self.compared_keys, self.settings.scored
        options = self.settings.of_verb("metrics")
        all_rows, *of_keys = self.counted.ask_each("models", compare, keys, **options)
        n_plain = len(self.keys)
        compared = [Answer(self._judged(all_rows.rows, scored), all_rows.query)]
        for rows, query in of_keys[:n_plain]:
            compared.append(Answer(self._judged(rows, scored[:1]), query))
        for key, answer in zip(keys[n_plain:], of_keys[n_plain:], strict=True):
            rows = self._judged(answer.rows, scored[:1], "by")  # It holds if slices overlap.
            rows = rows.filter(pl.col("n") >= self.settings.min_n)
            query = call_as_code(self.log, compare, key.of_log, correction="by", **options)
            compared.append(Answer(rows, query))
        return compared

    def _judged(
        self, rows: pl.DataFrame, metrics: Sequence[Metric], correction: Correction = "bh"
    ) -> pl.DataFrame:
        """The rows of each metric, corrected alone."""
        asked = IntervalOptions(self.settings.ci, correction=correction)
        return pl.concat(
            judged(rows.filter(metric=metric.name), metric, asked, better_or_worse(metric))
            for metric in metrics
        )

    @cached_property
    def compared_keys(self) -> Sequence[SectionKey]:
        """The keys, and the pairs of keys as one key if their slices are few."""
        counted, names = self.counted, {key.name for key in self.keys}
        if self.settings.depth < 2 or not counted.counts_answer([], needs_draws=True):
            return self.keys
        few = [key for (key,) in self._single if counted.n_slices([key]) <= _MAX_VALUES_IN_PAIRS]
        pairs = [pair for pair in itertools.combinations(few, 2) if set_name(pair) not in names]
        if not pairs or sum(map(counted.n_slices, pairs)) > _MAX_SLICES_OF_PAIRS:
            return self.keys
        return [*self.keys, key_of_sets(pairs, "pairs of keys")]

    @property
    def _single(self) -> Sequence[tuple[SectionKey]]:
        """The keys that are one column, each as a set."""
        return [(key,) for key in self.keys if key.is_column]

    @cached_property
    def of_scores(self) -> Sequence[Answer]:
        """How good the scores are, of all rows and by each column, and how calibrated.

        Nothing unless the log has scores; the last unless they are probabilities. The counts do not
        have the scores.
        """
        roles, ci = self.log.roles, self.settings.ci
        has_answer = self.has_positive and not roles.score_labels and roles.nulls != "label"
        if roles.scores is None or not has_answer:
            return []
        given, scores = [*map(as_expr, roles.scores.given)], pl.all().cast(pl.Float64)
        is_share = scores.fill_nan(None).is_between(0, 1).all()
        are_probabilities = self.counted.collect(
            "scores", lambda rows: rows.select(given).select(pl.all_horizontal(is_share))
        ).item()
        keys = [key_of_sets(self._single, total=True)] if self._single else []
        metrics = SCORE_METRICS if are_probabilities else SCORE_METRICS[:1]
        rows, long = replace(self.counted, counts=None), {"long": True} if keys else {}
        good = rows.ask("scores", by, keys, metrics=metrics, ci=ci, **long)
        return [good, rows.ask("calibration", calibration, ci=ci)] if are_probabilities else [good]


def _pairs(log: Described[Any]) -> Any:  # noqa: ANN401 - a frame as the log is
    """The pairs of labels of each model."""
    sliced = cut(sides_of(log), [], taken=[])
    return log.in_kind(sliced.answer(pairs_of(sliced), "gold", "pred"))

"""A log → the answers of a report: frames, each with the call of the verb that gives it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl

from polars_mcc._counts.cut import cut
from polars_mcc._counts.pairs import pairs as pairs_of
from polars_mcc._counts.remarks import LogLabels, heard, key_is_gold, remarks
from polars_mcc._counts.sides import sides_of
from polars_mcc._inference.differences import with_adjusted
from polars_mcc._inference.options import columns_of
from polars_mcc._log import defaults
from polars_mcc._log.choices import ReportFormat, check_at_least, check_choice, check_level
from polars_mcc._log.columns import as_expr
from polars_mcc._log.described import Described
from polars_mcc._log.labels import are_scored
from polars_mcc._report.gaps import gaps
from polars_mcc._report.once import (
    Answer,
    Collect,
    Once,
    Part,
    called,
    counted_once,
    crossed,
    joined,
    named,
    without,
)
from polars_mcc._scores import registry
from polars_mcc._scores.metric import Metric
from polars_mcc._scores.registry import IntoMetric
from polars_mcc._search.words import rows_in_words, summed_up
from polars_mcc._verbs.by import by
from polars_mcc._verbs.calibration import calibration
from polars_mcc._verbs.classes import classes
from polars_mcc._verbs.compare import compare
from polars_mcc._verbs.confusion import confusion
from polars_mcc._verbs.worst import worst

_METRICS = ["mcc", "accuracy", "f1_macro"]
OF_SCORES = ["roc_auc", "brier", "calibration_error"]
TOP = 20  # rows in the table of the worst slices, at most
_VALUES = 50  # values of a key, at most, to compare models in the slices of pairs of keys
_PAIRS = 20_000  # slices of all pairs of keys together, at most, to compare models there
_CONFUSIONS = 5  # confusions per model that the report lists


@dataclass(frozen=True)
class Options:
    """The options of a report, as the user gave them; see `report`."""

    metric: IntoMetric
    ci: float
    depth: int
    min_n: int
    title: str
    format: ReportFormat
    explored: int

    def __post_init__(self) -> None:
        """Raise an error if a value is not allowed."""
        check_level(self.ci)
        check_choice("format", self.format, ReportFormat)
        check_at_least("explored", self.explored, 0)
        if self.scored.is_of_scores:
            msg = (
                f"report takes a metric of labels, but '{self.scored.name}' is of scores; leave it "
                "out: a log with predicted labels and scores has sections of both"
            )
            raise ValueError(msg)

    @cached_property
    def scored(self) -> Metric:
        """The metric that is drawn and compared."""
        return registry.one(self.metric)

    @property
    def of_verb(self) -> dict[str, Any]:
        """The options of a verb that compares; `metric` only if it is not the default."""
        is_default = isinstance(self.metric, str) and self.metric == defaults.METRIC
        return {"ci": self.ci, **({} if is_default else {"metric": self.metric})}


class Worst(NamedTuple):
    """The listed slices, worst first, and a sentence that sums up the search."""

    listed: pl.DataFrame
    looked: str
    query: str
    odd_keys: Sequence[str]
    """Sentences about keys that make no useful slices."""


def answers(
    log: Described[Any], parts: Sequence[Part], collect: Collect, options: Options
) -> Answers:
    """Count a log once, and score the slices. All other answers are asked for when needed."""
    needed = {name: column for part in parts for name, column in part.needed.items()}
    # Times that the report cuts are counted by day: there are fewer days than times.
    raw = {name for part in parts if not part.note for name in part.needed}
    days = {name: as_expr(needed[name]).dt.date() for name in needed.keys() - raw}
    once = counted_once(log, needed | days, collect)
    # Only the metric of the report has intervals.
    others = [other for other in _METRICS if other != options.scored.name]
    metrics = [options.metric, *others]
    total, *slices = (
        Answer(without(rows, columns_of(others)), query)
        for rows, query in once.ask_each("scores", by, parts, metrics=metrics, ci=options.ci)
    )
    return Answers(once, parts, options, [*needed], total, [*zip(parts, slices, strict=True)])


@dataclass(frozen=True)
class Answers:
    """All answers that a report is made of."""

    once: Once
    parts: Sequence[Part]
    options: Options
    keys: Sequence[str]
    """The names of all keys."""
    total: Answer
    slices: Sequence[tuple[Part, Answer]]

    @property
    def metric(self) -> str:
        """The name of the metric."""
        return self.options.scored.name

    @property
    def less_is_better(self) -> bool:
        return self.options.scored.less_is_better

    @property
    def models(self) -> Sequence[str]:
        return self.once.preds.names

    @property
    def has_models(self) -> bool:
        """Whether the answers have a column `model`."""
        return self.once.preds.is_several

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
        return [
            *remarks(LogLabels.of(self.once.counts or self.once.log, self.once.log)),
            *key_is_gold(self.once.log, [part.key for part in self.parts]),
            *(self.worst.odd_keys if self.worst else []),
        ]

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """The pairs of labels of each model, with and without a weight: `n` and `n_null` rows."""
        pairs, _ = self.once.ask("confusions", _pairs, needs_draws=False)
        models = pl.Enum(self.models)  # They keep the order of `pred`.
        return pairs.with_columns(pl.col("model").cast(models)) if self.has_models else pairs

    @property
    def is_scored(self) -> pl.Expr:
        """Whether a pair is scored: with both labels, unless null is a label."""
        return are_scored(pl.col("gold"), pl.col("pred"), self.once.log.roles.nulls)

    @cached_property
    def cells(self) -> pl.DataFrame:
        """The confusion matrix of each model in long form."""
        return self.pairs.filter(self.is_scored)

    @cached_property
    def costliest(self) -> Answer:
        """The confusions that cost each model most."""
        counted = Described(self.cells.filter(pl.col("n") > 0), weight="n", nulls="label")
        rows = confusion(counted, *(["model"] if self.has_models else []), top=_CONFUSIONS)
        # Every cell is scored: `n_null` is 0 in all rows.
        return Answer(rows.drop("n_null"), called(self.once.log, confusion, top=_CONFUSIONS))

    @cached_property
    def bases(self) -> Sequence[str]:
        """How many rows each model is scored on; a rate is scored on the rows of one label."""
        metric, roles, total = self.options.scored, self.once.log.roles, self.total.rows
        if metric.given is None:
            return [rows_in_words(n) for n in total["n"]]
        label = True if roles.positive is None else roles.positive_label
        is_positive = pl.col(metric.given) == pl.lit(label, roles.label_dtype)
        of_rate = self.cells.filter(~is_positive if metric.of_rest else is_positive)
        others = sorted({*self.cells[metric.given]} - {label, None})
        name = f"not {label}" if metric.of_rest and len(others) > 1 else label
        name = others[0] if metric.of_rest and len(others) == 1 else name
        what = {"gold": "with gold", "pred": "predicted"}[metric.given]
        numbers: list[Any] = [self.rows_of(model, of_rate)["n"].sum() for model in self.models]
        return [f"{rows_in_words(n)} {what} {name}" for n in numbers]

    @cached_property
    def unscored(self) -> pl.DataFrame:
        """The rows that are not scored, per model and reason: `pred`, `reason`, `n_null`."""
        roles, pairs = self.once.log.roles, self.pairs
        model = pl.col("model") if self.has_models else pl.lit(self.models[0])
        weight = None if roles.weight is None else f"{roles.weight.name} is null"
        nulls = [
            pl.when(~self.is_scored & pl.col(side).is_null()).then(pl.format("{} is null", name))
            for side, name in (("gold", pl.lit(roles.gold.name)), ("pred", model))
        ]
        unlabelled = pairs.filter(~self.is_scored).with_columns(n_null="n", weight=None)
        unweighted = pairs.with_columns(weight=pl.lit(weight))
        rows = pl.concat([unlabelled, unweighted], how="vertical_relaxed")
        reason = pl.concat_str([*nulls, "weight"], separator=", ", ignore_nulls=True)
        groups = rows.filter(pl.col("n_null") > 0).group_by(pred=model, reason=reason)
        found = groups.agg(pl.col("n_null").sum()).sort("pred", "reason")
        return found.with_columns(pl.col("pred").cast(pl.String))

    @cached_property
    def worst(self) -> Worst | None:
        """The slices that are behind the rest of the log; None without keys."""
        keys, options = crossed(self.parts), self.options
        if not keys:
            return None
        of_verb = {"depth": options.depth, "min_n": options.min_n, **options.of_verb, "long": True}
        with heard() as odd_keys:
            found, _ = self.once.ask("worst slices", worst, keys, verdicts=True, **of_verb)
        looked = summed_up(found, self.metric, "rest", has_models=self.has_models)
        listed = found.filter(verdict="listed").drop("verdict")
        query = called(self.once.log, worst, *(part.key for part in keys), top=TOP, **of_verb)
        return Worst(listed, looked, query, odd_keys)

    @cached_property
    def gaps(self) -> Answer | None:
        """The gaps in error rates; None unless there are two classes, keys, independent rows."""
        labels = pl.concat([self.cells["gold"], self.cells["pred"]]).unique()
        are_two = len(labels) == 2 and not labels.has_nulls()
        asked = [(part,) for part in self.parts if part.is_column]
        if not are_two or not asked or not self.once.rows_are_draws:
            return None
        found, query = self.once.ask("error rates", classes, [joined(asked)])
        names = [part.name for (part,) in asked]
        return Answer(gaps(found, names, self.options.min_n, 1 - self.options.ci), query)

    @property
    def compared(self) -> Answer | None:
        """The other models compared with the first; None if there is one model."""
        return next(iter(self._compared), None)

    @property
    def compared_by(self) -> Sequence[tuple[Part, Answer]]:
        """Models compared in the slices of each key, and of pairs of keys if these are few."""
        return [*zip([*self.parts, *self._pairs], self._compared[1:], strict=False)]

    @cached_property
    def _compared(self) -> Sequence[Answer]:
        """Models compared over all rows, and by each part; nothing if there is one model."""
        if len(self.models) == 1:
            return []
        log, options, pairs = self.once.log, self.options.of_verb, self._pairs
        found = self.once.ask_each("models", compare, [*self.parts, *pairs], **options)
        found = [Answer(with_adjusted(rows, defaults.CORRECTION), query) for rows, query in found]
        for part in pairs:  # "by" holds if slices overlap.
            rows = with_adjusted(found.pop().rows, "by").filter(pl.col("n") >= part.min_n)
            found.append(Answer(rows, called(log, compare, part.key, correction="by", **options)))
        return found

    @cached_property
    def _pairs(self) -> Sequence[Part]:
        """The pairs of keys as one part, if their slices are few."""
        once, names = self.once, {part.name for part in self.parts}
        if self.options.depth < 2 or not once.counts_answer([], needs_draws=True):
            return []
        few = [part for part in self.parts if part.is_column and once.size([part]) <= _VALUES]
        pairs = [one for one in itertools.combinations(few, 2) if named(one) not in names]
        if not pairs or sum(map(once.size, pairs)) > _PAIRS:
            return []
        return [joined(pairs, "pairs of keys", min_n=self.options.min_n)]

    @cached_property
    def of_scores(self) -> Sequence[Answer]:
        """How good the scores are, of all rows and by each column, and how calibrated.

        Nothing unless the log has scores; the last unless they are probabilities. The counts do not
        have the scores.
        """
        roles = self.once.log.roles
        has_positive = roles.positive is not None or roles.label_dtype == pl.Boolean
        has_answer = has_positive and not roles.score_labels and roles.nulls != "label"
        if roles.scores is None or not has_answer:
            return []
        given, scores = [*map(as_expr, roles.scores.given)], pl.all().cast(pl.Float64)
        is_share = scores.fill_nan(None).is_between(0, 1).all()
        are_probabilities = self.once.collect(
            "scores", lambda rows: rows.select(given).select(pl.all_horizontal(is_share))
        ).item()
        ci, columns = self.options.ci, [(part,) for part in self.parts if part.is_column]
        asked = [joined(columns, total=True)] if columns else []
        metrics = OF_SCORES if are_probabilities else OF_SCORES[:1]
        rows, long = replace(self.once, counts=None), {"long": True} if asked else {}
        found = [rows.ask("scores", by, asked, metrics=metrics, ci=ci, **long)]
        return [*found, rows.ask("calibration", calibration, ci=ci)] if are_probabilities else found


def _pairs(log: Described[Any]) -> Any:  # noqa: ANN401 - a frame as the log is
    """The pairs of labels of each model."""
    sliced = cut(sides_of(log), [], taken=[])
    return log.in_kind(sliced.answer(pairs_of(sliced), "gold", "pred"))
